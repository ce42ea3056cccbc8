/* screen: events in, bytes out. */
#include "tui/screen.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "tui/keys.h"
#include "tui/paint.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct stage {
	int fd;
	struct screen *screen;
};

/* One line of a play: kind, call, tool, text, data as JSON. */
struct cue {
	const char *kind, *call, *tool, *text, *data;
};

static struct stage stage_open(struct screen_options options)
{
	struct stage stage = {.fd = -1};

	assert_true(fd_memory_file("screen", STR(""), &stage.fd, NULL));
	stage.screen = screen_new(stage.fd, &options);
	return stage;
}

static void stage_play(struct stage *stage, const struct cue *cue)
{
	auto_value struct value *data = NULL;
	struct event event = {.call = cue->call,
			      .tool = cue->tool,
			      .text = str_of(cue->text)};
	struct event_sink sink = screen_sink(stage->screen);
	struct err err = {0};

	assert_true(event_kind_parse(cue->kind, &event.kind));
	if (cue->data && !value_parse(str_of(cue->data), 0, &data, &err))
		fail_msg("%s", err.text);
	event.data = data;
	assert_true(sink.event(sink.context, &event, NULL));
}

static void stage_close(struct stage *stage, struct buf *shown)
{
	screen_free(stage->screen);
	assert_true(lseek(stage->fd, 0, SEEK_SET) == 0);
	assert_true(fd_read_all(stage->fd, shown, "screen", NULL));
	fd_close(&stage->fd);
}

static void shows(struct screen_options options, const struct cue *cues, const char *expected)
{
	struct stage stage = stage_open(options);
	struct buf shown;

	buf_init(&shown, 1 << 20);
	for (; cues->kind; cues++)
		stage_play(&stage, cues);
	stage_close(&stage, &shown);
	if (strcmp(shown.data, expected) != 0)
		fail_msg("expected:\n%s\nshown:\n%s", expected, shown.data);
	buf_fini(&shown);
}

static const struct screen_options wide = {.unicode = true, .columns = 40};
static const struct screen_options ascii = {.columns = 30};
static const struct screen_options coloured = {.unicode = true, .colour = true, .columns = 24};

static const char done_result[] =
	"{\"status\":\"done\",\"text\":\"all\\n3 tests ok\\n[exit code 0, 0.42 s; in .]\","
	"\"exit_code\":0,\"seconds\":0.42,\"level\":3,\"left_out\":{\"bytes\":0,\"lines\":0},"
	"\"details\":{\"stdout_bytes\":15}}";

/* "server started", and it is gone: the line that says so stays. */
static void a_command_whose_processes_were_ended_says_so(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "bash", NULL,
		 "{\"arguments\":{\"command\":\"serve &\"}}"},
		{"tool_ended", "c1", "bash", NULL,
		 "{\"status\":\"done\",\"text\":\"up\\n[exit code 0; 1 process left]\","
		 "\"exit_code\":0,\"seconds\":0.4,\"level\":3,"
		 "\"details\":{\"stdout_bytes\":3,\"left_processes\":1}}"},
		{0},
	};

	(void)state;
	shows(wide, cues,
	      "┌─ bash ────────────────────────────────\n"
	      "│ serve &\n"
	      "│\n"
	      "│ ✅ exit 0 · 0.4 s\n"
	      "│ up\n"
	      "│ [exit code 0; 1 process left]\n"
	      "└───────────────────────────────────────\n");
}

static void a_whole_session(void **state)
{
	static const struct cue cues[] = {
		{"session_began", NULL, NULL, NULL,
		 "{\"session\":\"ab12\",\"workspace\":\"/w/p\",\"agent\":\"default\","
		 "\"model\":\"replay:x\",\"replay\":true,\"level\":3}"},
		{"turn_began", NULL, NULL, "fix it\n", NULL},
		{"text", NULL, NULL, "\n\nI run ", NULL},
		{"text", NULL, NULL, "the tests.\n", NULL},
		{"message", NULL, NULL, NULL,
		 "{\"parts\":[{\"kind\":\"text\",\"text\":\"I run the tests.\"}]}"},
		{"tool_began", "c1", "bash", NULL,
		 "{\"arguments\":{\"command\":\"make test\"}}"},
		{"tool_output", "c1", "bash", "all\n", "{\"stream\":1}"},
		{"tool_ended", "c1", "bash", NULL, done_result},
		{"message", NULL, NULL, NULL,
		 "{\"parts\":[{\"kind\":\"text\",\"text\":\"Green.\"}]}"},
		{"turn_ended", NULL, NULL, NULL,
		 "{\"reason\":\"stopped\",\"iterations\":2,\"usage\":{\"input\":10,\"output\":4,"
		 "\"cached\":3,\"money\":0.0123},\"seconds\":1.25,\"level\":3,\"changed\":[]}"},
		{0},
	};

	(void)state;
	shows(wide, cues,
	      "glovebox · agent default · model replay:x · cell L3 · /w/p\n"
	      "The model's words are recorded (a replay). Everything else is real: the tools,\n"
	      "the commands and the files run and change inside the cell.\n"
	      "\n"
	      "> fix it\n"
	      "\n"
	      "I run the tests.\n"
	      "\n"
	      "┌─ bash ────────────────────────────────\n"
	      "│ make test\n"
	      "│\n"
	      "│ ✅ exit 0 · 0.4 s\n"
	      "│ all\n"
	      "│ 3 tests ok\n"
	      "└───────────────────────────────────────\n"
	      "\n"
	      "Green.\n"
	      "\n"
	      "── done · 2 answers · tokens 10 in, 4 out, 3 cached · $0.0123 · 1.2 s · cell L3 · "
	      "0 changed files\n");
}

static void a_cell_without_a_filter_is_named(void **state)
{
	static const struct cue cues[] = {
		{"session_began", NULL, NULL, NULL,
		 "{\"session\":\"ab12\",\"workspace\":\"/w/p\",\"agent\":\"default\","
		 "\"model\":\"m\",\"replay\":false,\"level\":0,\"unfiltered\":true}"},
		{"turn_ended", NULL, NULL, NULL,
		 "{\"reason\":\"stopped\",\"iterations\":1,\"usage\":{},\"seconds\":0,"
		 "\"level\":0,\"unfiltered\":false,\"changed\":[]}"},
		{0},
	};

	(void)state;
	shows(wide, cues,
	      "glovebox · agent default · model m · cell L0 unfiltered · /w/p\n"
	      "\n"
	      "── done · 1 answer · 0.0 s · cell L0 · 0 changed files\n");
}

static void ascii_for_other_locales(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "bash", NULL, "{\"arguments\":{\"command\":\"false\"}}"},
		{"tool_ended", "c1", "bash", NULL,
		 "{\"status\":\"done\",\"text\":\"no\",\"exit_code\":1,\"seconds\":2}"},
		{0},
	};

	(void)state;
	shows(ascii, cues,
	      "+- bash ----------------------\n"
	      "| false\n"
	      "|\n"
	      "| [x] exit 1, 2.0 s\n"
	      "| no\n"
	      "+-----------------------------\n");
}

static void an_edit_is_a_coloured_diff(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "edit_file", NULL,
		 "{\"arguments\":{\"path\":\"a.c\",\"edits\":[{\"old\":\"1\",\"new\":\"2\"}]}}"},
		{"tool_ended", "c1", "edit_file", NULL,
		 "{\"status\":\"done\",\"text\":\"edited\",\"exit_code\":null,\"seconds\":0,"
		 "\"details\":{\"diff\":\"--- a/a.c\\n+++ b/a.c\\n@@ -1 +1 @@\\n-1\\n+2\\n\"}}"},
		{0},
	};

	(void)state;
	shows(coloured, cues,
	      "\x1b[2m┌─ edit_file ───────────\x1b[0m\n"
	      "\x1b[2m│\x1b[0m a.c edits=[1]\n"
	      "\x1b[2m│\x1b[0m\n"
	      "\x1b[2m│\x1b[0m ✅ \x1b[1mdone\x1b[0m\x1b[2m · 0.0 s\x1b[0m\n"
	      "\x1b[2m│\x1b[0m \x1b[1m--- a/a.c\x1b[0m\n"
	      "\x1b[2m│\x1b[0m \x1b[1m+++ b/a.c\x1b[0m\n"
	      "\x1b[2m│\x1b[0m \x1b[36m@@ -1 +1 @@\x1b[0m\n"
	      "\x1b[2m│\x1b[0m \x1b[31m-1\x1b[0m\n"
	      "\x1b[2m│\x1b[0m \x1b[32m+2\x1b[0m\n"
	      "\x1b[2m└───────────────────────\x1b[0m\n");
}

static void the_last_lines_of_long_output(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "bash", NULL,
		 "{\"arguments\":{\"command\":\"seq 13\"}}"},
		{"tool_ended", "c1", "bash", NULL,
		 "{\"status\":\"timed_out\","
		 "\"text\":\"1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n11\\n12\\n13\\n\","
		 "\"exit_code\":null,\"signal\":9,\"seconds\":120.06,"
		 "\"left_out\":{\"bytes\":900,\"lines\":30},"
		 "\"details\":{\"spill\":\"/tmp/glovebox/1.log\"}}"},
		{0},
	};

	(void)state;
	shows(wide, cues,
	      "┌─ bash ────────────────────────────────\n"
	      "│ seq 13\n"
	      "│\n"
	      "│ ❌ timed out · signal 9 · 120.1 s\n"
	      "│ … 33 more lines (/tmp/glovebox/1.log)\n"
	      "│ 4\n│ 5\n│ 6\n│ 7\n│ 8\n│ 9\n│ 10\n│ 11\n│ 12\n│ 13\n"
	      "└───────────────────────────────────────\n");
}

static void the_first_lines_of_what_was_found(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "bash", NULL,
		 "{\"arguments\":{\"command\":\"1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n11\\n12\\n13\"}}"},
		{"tool_ended", "c1", "bash", NULL,
		 "{\"status\":\"done\",\"text\":\"a\\nb\\nc\\nd\\ne\\nf\\ng\\n\",\"exit_code\":null,"
		 "\"seconds\":0,\"left_out\":{\"bytes\":9,\"lines\":3}}"},
		{"tool_ended", "c2", "glob", NULL,
		 "{\"status\":\"done\",\"text\":\"a\\n\",\"seconds\":0,\"left_out\":{\"lines\":1}}"},
		{0},
	};

	(void)state;
	shows(ascii, cues,
	      "+- bash ----------------------\n"
	      "| 1\n| 2\n| 3\n| 4\n| 5\n| 6\n| 7\n| 8\n| 9\n| 10\n| 11\n| 12\n"
	      "| ... 1 more line\n"
	      "|\n"
	      "| [ok] done, 0.0 s\n"
	      "| a\n| b\n| c\n| d\n| e\n"
	      "| ... 5 more lines\n"
	      "+-----------------------------\n"
	      "\n"
	      "+- glob ----------------------\n"
	      "|\n"
	      "| [ok] done, 0.0 s\n"
	      "| a\n"
	      "| ... 1 more line\n"
	      "+-----------------------------\n");
}

static void nothing_foreign_reaches_the_terminal(void **state)
{
	static const struct cue cues[] = {
		{"text", NULL, NULL, "\x1b", NULL},
		{"text", NULL, NULL, "]0;owned\a red\x1b[3", NULL},
		{"text", NULL, NULL, "1m\r\nnext \xe2\x82", NULL},
		{"text", NULL, NULL, "\xac\x9b\xe2", NULL},
		{"text", NULL, NULL, "\x80", NULL},
		{"text", NULL, NULL, "\xae\xe2\x81\xa6", NULL},
		{"message", NULL, NULL, NULL, "{\"parts\":[]}"},
		{"notice", NULL, NULL, "a\x1b[2Jb\bc\xe2\x80\xae", NULL},
		{"tool_ended", "c9", "ba\x1b[5msh", NULL,
		 "{\"status\":\"failed\",\"text\":\"\\u001b[1mx\\u009b2J\",\"seconds\":0}"},
		{0},
	};

	(void)state;
	shows(ascii, cues,
	      "red\nnext €\\x9B\\xE2\\x80\\xAE\\xE2\\x81\\xA6\n"
	      "\n"
	      "! ab\\x08c\\xE2\\x80\\xAE\n"
	      "\n"
	      "+- ba\\x1B[5msh ---------------\n"
	      "|\n"
	      "| [x] failed, 0.0 s\n"
	      "| x\\xC2\\x9B2J\n"
	      "+-----------------------------\n");
}

static void what_a_person_judges_by_loses_nothing(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "bash", NULL,
		 "{\"arguments\":{\"command\":\"a\\u001b]0;b\\u0007c #\\rd\\u200b\"}}"},
		{"tool_ended", "c1", "bash", NULL,
		 "{\"status\":\"done\",\"text\":\"x\\u001b[1my\",\"exit_code\":0,"
		 "\"seconds\":0}"},
		{"tool_began", "c2", "edit_file", NULL,
		 "{\"arguments\":{\"path\":\"a\\u001b[8m\\nb\"}}"},
		{"tool_ended", "c2", "edit_file", NULL,
		 "{\"status\":\"done\",\"text\":\"edited\",\"seconds\":0,"
		 "\"details\":{\"diff\":\"+a\\u001b]0;b\\u0007c #\\r\\td\\udb40\\udc41\\n+e\\r\\n\"}}"},
		{0},
	};

	(void)state;
	shows(ascii, cues,
	      "+- bash ----------------------\n"
	      "| a\\x1B]0;b\\x07c #\\x0Dd\\xE2\\x80\\x8B\n"
	      "|\n"
	      "| [ok] exit 0, 0.0 s\n"
	      "| xy\n"
	      "+-----------------------------\n"
	      "\n"
	      "+- edit_file -----------------\n"
	      "| a\\x1B[8m\\x0Ab\n"
	      "|\n"
	      "| [ok] done, 0.0 s\n"
	      "| +a\\x1B]0;b\\x07c #\\x0D\td\\xF3\\xA0\\x81\\x81\n"
	      "| +e\\x0D\n"
	      "+-----------------------------\n");
}

static void side_by_side_calls_keep_their_own_arguments(void **state)
{
	static const struct cue cues[] = {
		{"message", NULL, NULL, NULL,
		 "{\"parts\":[{\"kind\":\"call\",\"call\":\"a\",\"tool\":\"glob\","
		 "\"arguments\":\"{\\\"pattern\\\":\\\"*.c\\\"}\"},"
		 "{\"kind\":\"call\",\"call\":\"b\",\"tool\":\"read_file\",\"arguments\":\"7\"}]}"},
		{"tool_began", "a", "glob", NULL,
		 "{\"arguments\":{\"pattern\":\"*.c\",\"limit\":100}}"},
		{"tool_began", "b", "read_file", NULL,
		 "{\"arguments\":{\"start_line\":3,\"path\":\"x\"}}"},
		{"tool_ended", "b", "read_file", NULL,
		 "{\"status\":\"done\",\"text\":\"\",\"seconds\":0}"},
		{"tool_ended", "a", "glob", NULL,
		 "{\"status\":\"denied\",\"text\":\"no\",\"seconds\":0}"},
		{0},
	};

	(void)state;
	shows(ascii, cues,
	      "+- read_file -----------------\n"
	      "| x start_line=3\n"
	      "|\n"
	      "| [ok] done, 0.0 s\n"
	      "+-----------------------------\n"
	      "\n"
	      "+- glob ----------------------\n"
	      "| *.c\n"
	      "|\n"
	      "| [x] denied, 0.0 s\n"
	      "| no\n"
	      "+-----------------------------\n");
}

static void the_change_is_a_diff_that_can_be_copied(void **state)
{
	static const struct cue cues[] = {
		{"turn_ended", NULL, NULL, NULL,
		 "{\"reason\":\"patch\",\"iterations\":1,\"usage\":{},\"seconds\":0,\"level\":2,"
		 "\"changed\":[{\"path\":\"a\",\"added\":1,\"removed\":0,\"state\":\"created\"},"
		 "{\"path\":\"b\"}],"
		 "\"patch\":\"--- /dev/null\\n+++ b/a\\n@@ -0,0 +1 @@\\n+x\\n\"}"},
		{0},
	};

	(void)state;
	shows(ascii, cues,
	      "The change:\n"
	      "--- /dev/null\n"
	      "+++ b/a\n"
	      "@@ -0,0 +1 @@\n"
	      "+x\n"
	      "\n"
	      "-- done, 1 answer, 0.0 s, cell L2, 2 changed files\n"
	      "   a +1 -0 created\n"
	      "   b\n");
}

static void reasoning_is_dim_and_only_with_colour(void **state)
{
	static const struct cue cues[] = {
		{"thinking", NULL, NULL, "hm", NULL},
		{"text", NULL, NULL, "yes", NULL},
		{"notice", NULL, NULL, "told", "{\"to_model\":true}"},
		{0},
	};

	(void)state;
	shows(coloured, cues,
	      "\x1b[2mhm\x1b[0m\n\nyes\n\n\x1b[33m! to the model: \x1b[0m\x1b[2mtold\x1b[0m\n");
	shows(wide, cues, "yes\n\n! to the model: told\n");
}

static void on_a_terminal_thinking_is_a_line(void **state)
{
	static const struct screen_options terminal = {.terminal = true,
						       .colour = true,
						       .unicode = true,
						       .columns = 40};
	static const struct screen_options telling = {.terminal = true,
						      .colour = true,
						      .unicode = true,
						      .thinking = true,
						      .columns = 40};
	static const struct cue cues[] = {
		{"thinking", NULL, NULL, "hm", NULL},
		{"thinking", NULL, NULL, "hm", NULL},
		{"text", NULL, NULL, "*yes*", NULL},
		{0},
	};

	(void)state;
	shows(terminal, cues, "\x1b[2mthought for 0 s\x1b[0m\n\n\x1b[3myes\x1b[0m\n");
	shows(telling, cues, "\x1b[2mhmhm\x1b[0m\n\n\x1b[3myes\x1b[0m\n");
}

/* On a terminal a call is a line, and what matters. */

static const struct keys keys = {.bound = {{{'y', KEYS_ALT}, TYPING_VIEWER, true}},
				 .count = 1};

static const struct screen_options on_terminal = {.terminal = true,
						  .unicode = true,
						  .keys = &keys,
						  .columns = 60};

static void on_a_terminal_a_command_is_a_line_and_its_last_lines(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "bash", NULL,
		 "{\"arguments\":{\"command\":\"make test\"}}"},
		{"tool_ended", "c1", "bash", NULL, done_result},
		{"tool_began", "c2", "bash", NULL, "{\"arguments\":{\"command\":\"true\"}}"},
		{"tool_ended", "c2", "bash", NULL,
		 "{\"status\":\"done\",\"text\":\"(command completed with no output)\\n[exit code 0; in .]\",\"exit_code\":0,"
		 "\"seconds\":0,\"details\":{\"stdout_bytes\":0,\"stderr_bytes\":0}}"},
		{"tool_began", "c3", "bash", NULL, "{\"arguments\":{\"command\":\"seq 8\"}}"},
		{"tool_ended", "c3", "bash", NULL,
		 "{\"status\":\"done\",\"text\":\"1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n[exit code 2, 0 s; in .]\","
		 "\"exit_code\":2,\"seconds\":0,\"left_out\":{\"lines\":10},"
		 "\"details\":{\"stdout_bytes\":15}}"},
		{0},
	};

	(void)state;
	shows(on_terminal, cues,
	      "● bash make test · 0.4 s\n  all\n  3 tests ok\n\n● bash true · 0.0 s\n"
	      "● bash seq 8 · exit 2 · 0.0 s\n  … 13 more lines (Alt+Y)\n  4\n  5\n  6\n  7\n  8\n");
}

static void on_a_terminal_a_failure_has_its_reason(void **state)
{
	static const struct cue cues[] = {
		{"tool_ended", "c1", "bash", NULL,
		 "{\"status\":\"denied\",\"text\":\"No rule lists it.\\nAsk for one.\",\"seconds\":0}"},
		{"tool_ended", "c2", "read_file", NULL,
		 "{\"status\":\"timed_out\",\"text\":\"\",\"seconds\":1.5}"},
		{0},
	};
	static const struct screen_options red = {.terminal = true,
						  .colour = true,
						  .columns = 40};

	(void)state;
	shows(on_terminal, cues,
	      "● bash · denied · 0.0 s\n  No rule lists it.\n\n● read_file · timed out · 1.5 s\n");
	shows(red, cues,
	      "\x1b[31m*\x1b[0m \x1b[31mbash\x1b[0m\x1b[2m, \x1b[0m\x1b[31mdenied\x1b[0m\x1b[2m, 0.0 s\x1b[0m\n"
	      "  No rule lists it.\n\n"
	      "\x1b[31m*\x1b[0m \x1b[31mread_file\x1b[0m\x1b[2m, \x1b[0m\x1b[31mtimed out\x1b[0m"
	      "\x1b[2m, 1.5 s\x1b[0m\n");
}

static void on_a_terminal_an_edit_is_a_patch_that_can_be_copied(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "edit_file", NULL,
		 "{\"arguments\":{\"path\":\"a.c\",\"edits\":[{\"old\":\"1\",\"new\":\"2\"}]}}"},
		{"tool_ended", "c1", "edit_file", NULL,
		 "{\"status\":\"done\",\"text\":\"edited\",\"exit_code\":null,\"seconds\":0,"
		 "\"details\":{\"diff\":\"--- a/a.c\\n+++ b/a.c\\n@@ -7 +7 @@\\n-1\\n+2\\n\"}}"},
		{0},
	};

	(void)state;
	shows(on_terminal, cues,
	      "● edit_file a.c:7 +1 -1 · 0.0 s\n--- a/a.c\n+++ b/a.c\n@@ -7 +7 @@\n-1\n+2\n");
}

static void on_a_terminal_reading_in_a_row_is_one_line(void **state)
{
	static const char read[] = "{\"status\":\"done\",\"text\":\"x\",\"seconds\":0}";
	static const struct cue cues[] = {
		{"tool_began", "c1", "read_file", NULL, "{\"arguments\":{\"path\":\"a\"}}"},
		{"tool_ended", "c1", "read_file", NULL, read},
		{"text", NULL, NULL, "Now", NULL},
		{"tool_ended", "c2", "read_file", NULL, read},
		{"tool_ended", "c3", "grep", NULL, read},
		{"tool_began", "c4", "batch_read", NULL,
		 "{\"arguments\":{\"files\":[{\"path\":\"b\"},{\"path\":\"c\"}]}}"},
		{"tool_ended", "c4", "batch_read", NULL, read},
		{"tool_ended", "c5", "glob", NULL, read},
		{"turn_ended", NULL, NULL, NULL,
		 "{\"reason\":\"stopped\",\"iterations\":1,\"usage\":{},\"seconds\":0,\"level\":3,"
		 "\"patch\":\"--- a/x\\n\",\"changed\":[{\"path\":\"x\",\"added\":2,\"removed\":1},"
		 "{\"path\":\"y\",\"added\":12,\"removed\":2}]}"},
		{0},
	};

	(void)state;
	shows(on_terminal, cues,
	      "● read_file a · 0.0 s\n\nNow\n\n● read 3 files, 2 searches\n\n"
	      "── done · 1 answer · 0.0 s · cell L3 · 2 changed files +14\n-3 · /diff\n");
}

static void on_a_terminal_the_call_that_hands_over_is_not_shown(void **state)
{
	static const struct cue cues[] = {
		{"tool_ended", "c1", "generate_patch", NULL,
		 "{\"status\":\"done\",\"text\":\"x\",\"seconds\":0,\"details\":{\"patch\":\"--- a/x\\n\"}}"},
		{"tool_ended", "c2", "generate_patch", NULL,
		 "{\"status\":\"failed\",\"text\":\"Nothing has changed.\",\"seconds\":0}"},
		{0},
	};

	(void)state;
	shows(on_terminal, cues,
	      "● generate_patch · failed · 0.0 s\n  Nothing has changed.\n");
}

static void on_a_terminal_a_call_takes_one_row(void **state)
{
	static const struct cue cues[] = {
		{"tool_began", "c1", "bash", NULL,
		 "{\"arguments\":{\"command\":\"echo one two three four five six\\nrm -rf x\"}}"},
		{"tool_ended", "c1", "bash", NULL,
		 "{\"status\":\"done\",\"text\":\"\",\"exit_code\":0,\"seconds\":12}"},
		{0},
	};
	static const struct screen_options narrow = {.terminal = true,
						     .unicode = true,
						     .columns = 40};

	(void)state;
	shows(narrow, cues, "● bash echo one two three fou… · 12.0 s\n");
}

static void a_long_prompt_is_cut(void **state)
{
	static const struct cue cues[] = {
		{"turn_began", NULL, NULL, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12", NULL},
		{0},
	};

	(void)state;
	shows(wide, cues,
	      "> 1\n> 2\n> 3\n> 4\n> 5\n> 6\n> 7\n> 8\n> 9\n> 10\n> … 2 more lines\n");
}

static void narrow_rules_fit(void **state)
{
	static const struct screen_options narrow = {.unicode = true, .columns = 1};
	static const struct cue cues[] = {
		{"tool_ended", "c", "bash", NULL, "{\"status\":\"done\",\"text\":\"\"}"},
		{0},
	};

	(void)state;
	shows(narrow, cues,
	      "┌─ bash ────────────\n│\n│ ✅ done · 0.0 s\n└───────────────────\n");
}

static void wide_characters_take_two_columns(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
	} rows[] = {
		{"", 0},
		{"abc", 3},
		{"\xe4\xb8\xad\xe6\x96\x87", 4}, /* CJK */
		{"e\xcc\x81", 1},                /* combining accent */
		{"\xe2\x9c\x85", 2},             /* check mark */
		{"\xe2\x9d\xa4\xef\xb8\x8f", 2}, /* heart in its emoji form */
		{"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", 2}, /* joined by ZWJ */
		{"\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa", 2},             /* a flag */
		{"\xf0\x9f\xab\xa9", 2}, /* an emoji of Unicode 16 */
		{"\xff\xfe", 2},         /* no UTF-8 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(paint_width_of(str_of(rows[i].text)), rows[i].columns);
	assert_int_equal(paint_width_fit(STR("\xe4\xb8\xad\xe6\x96\x87"), 3), 3);
	assert_int_equal(paint_width_fit(STR("e\xcc\x81x"), 1), 3);
	assert_int_equal(paint_width_fit(STR("abc"), 9), 3);
}

/* A woman and a girl, joined: two columns, or four. */
#define JOINED "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"

static void characters_of_doubtful_width_move_nothing_behind_them(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 256);
	paint_steady(STR("> e\xcc\x81x " JOINED "\x1b[1m" JOINED "y\x1b[0m"), 0, &out);
	assert_string_equal(out.data, "> e\xcc\x81\x1b[4Gx " JOINED
				      "\x1b[8G\x1b[1m" JOINED "\x1b[10Gy\x1b[0m");
	buf_fini(&out);
	assert_int_equal(paint_width_reach(STR("abc")), 3);
	assert_int_equal(paint_width_reach(STR("\x1b[1mabc" JOINED "\x1b[0m")), 7);
	assert_int_equal(paint_width_reach(STR(JOINED "abc")), 5);
	/* Where it is drawn by its characters, it does not get into the next row. */
	assert_int_equal(paint_width_fit(STR("ab" JOINED), 5), 2);
	assert_int_equal(paint_width_fit(STR("ab" JOINED), 6), 2 + strlen(JOINED));
}

static void the_spinner_fits_and_turns(void **state)
{
	struct paint paint;

	(void)state;
	paint_init(&paint);
	paint.columns = 20;
	paint_spinner(&paint, "bash make test-everything", 3210);
	assert_string_equal(paint.out.data, "/ 3 s  bash make...");
	buf_clear(&paint.out);
	paint.unicode = true;
	paint_spinner(&paint, "bash", 3310);
	assert_string_equal(paint.out.data, "⠦ 3 s  bash");
	paint_fini(&paint);
}

/* What the descriptor holds, once it holds MARK. */
static void wait_for(int fd, const char *mark, struct buf *shown)
{
	int64_t give_up_ms = clock_now_ms() + 30000;
	char name[FD_NAME_ROOM];

	/* By name: a position of its own, as the screen's thread writes at that of FD. */
	do {
		auto_close int reader = open(fd_name(fd, name), O_RDONLY | O_CLOEXEC);

		buf_clear(shown);
		assert_true(fd_read_all(reader, shown, "screen", NULL));
		assert_true(clock_now_ms() < give_up_ms);
		(void)sched_yield();
	} while (!strstr(shown->data, mark));
}

static void the_spinner_is_cleared_before_other_words(void **state)
{
	static const struct screen_options terminal = {.terminal = true, .columns = 40};
	static const struct cue began = {"turn_began", NULL, NULL, "go", NULL};
	static const struct cue tool = {"tool_began", "c1", "bash", NULL,
					"{\"arguments\":{\"command\":\"make\"}}"};
	static const struct cue words = {"text", NULL, NULL, "Now.", NULL};
	struct stage stage = stage_open(terminal);
	struct buf shown;
	const char *at;

	(void)state;
	buf_init(&shown, 1 << 20);
	stage_play(&stage, &began);
	wait_for(stage.fd, " s  model\x1b[K", &shown);
	stage_play(&stage, &tool);
	wait_for(stage.fd, " s  bash make\x1b[K", &shown);
	stage_play(&stage, &words);
	buf_clear(&shown);
	stage_close(&stage, &shown);
	at = strstr(shown.data, "Now.");
	assert_non_null(at);
	assert_memory_equal(at - 5, "\r\x1b[K\n", 5);
	assert_string_equal(at, "Now.\n");
	buf_fini(&shown);
}

static void flow_gives_the_same_text_however_it_is_cut(void **state)
{
	static const char text[] =
		"a \xf0\x9f\x98\x80 \x1b[1mb\x1b[0m\tc\xc3\xa9\nd\r\ne\n";

	(void)state;
	for (size_t step = 1; step < sizeof(text); step++) {
		struct screen_flow flow;
		struct buf out;

		buf_init(&out, 4096);
		screen_flow_init(&flow);
		for (size_t at = 0; at < sizeof(text) - 1; at += step)
			screen_flow_add(&flow, str_part(STR(text), at, step), &out);
		screen_flow_end(&flow, &out);
		assert_string_equal(out.data, "a \xf0\x9f\x98\x80 b\tc\xc3\xa9\nd\ne\n");
		screen_flow_fini(&flow);
		buf_fini(&out);
	}
}

/* TEXT as it stands on lines of 20 columns, the same however it came. */
static void wraps(const char *text, const char *expected)
{
	for (size_t step = 1; step <= strlen(text); step++) {
		struct screen_flow flow;
		struct paint_wrap wrap;
		struct buf clean, out;

		buf_init(&clean, 4096);
		buf_init(&out, 4096);
		screen_flow_init(&flow);
		paint_wrap_init(&wrap);
		for (size_t at = 0; at < strlen(text); at += step) {
			buf_clear(&clean);
			screen_flow_add(&flow, str_part(str_of(text), at, step), &clean);
			paint_wrap_add(&wrap, buf_str(&clean), 20, &out);
		}
		buf_clear(&clean);
		screen_flow_end(&flow, &clean);
		paint_wrap_add(&wrap, buf_str(&clean), 20, &out);
		paint_wrap_end(&wrap, 20, 0, &out);
		assert_string_equal(out.data, expected);
		paint_wrap_fini(&wrap);
		screen_flow_fini(&flow);
		buf_fini(&out);
		buf_fini(&clean);
	}
}

static void prose_is_broken_between_words(void **state)
{
	(void)state;
	wraps("one two three four five six", "one two three four\nfive six");
	/* The last column stays free. */
	wraps("0123456789 12345678 9", "0123456789 12345678\n9");
	wraps("0123456789 123456789 9", "0123456789\n123456789 9");
	wraps("a  \n\n  b", "a\n\n  b");
	wraps("see https://example.org/a/very/long/address then go on",
	      "see\nhttps://example.org/a/very/long/address\nthen go on");
	wraps("e\xcc\x81t\xc3\xa9 \xf0\x9f\x98\x80 caf\xc3\xa9 and so it goes on",
	      "e\xcc\x81t\xc3\xa9 \xf0\x9f\x98\x80 caf\xc3\xa9 and so\nit goes on");
	/* Ten characters of two columns each; none is cut, and no line begins with 。 */
	wraps("一二三四五六七八九十", "一二三四五六七八九\n十");
	wraps("一二三四五六七八九。十", "一二三四五六七八\n九。十");
}

/* Read again for each of its characters it takes half an hour. */
static void a_word_without_an_end_is_read_once(void **state)
{
	enum { SIZE = 256 << 10 };
	struct paint_wrap wrap;
	struct buf text, out;

	(void)state;
	buf_init(&text, SIZE);
	buf_init(&out, 2 * SIZE);
	for (size_t i = 0; i < SIZE; i++)
		buf_addc(&text, 'a');
	paint_wrap_init(&wrap);
	paint_wrap_add(&wrap, buf_str(&text), 20, &out);
	paint_wrap_end(&wrap, 20, 0, &out);
	assert_string_equal(out.data, text.data);
	paint_wrap_fini(&wrap);
	buf_fini(&out);
	buf_fini(&text);
}

static void stand_nowhere(void *context)
{
	(void)context;
}

/* What tools say goes on behind the bar; a command is to be copied, and a long name stays whole. */
static void blocks_are_broken_between_words(void **state)
{
	auto_value struct value *arguments = NULL, *result = NULL;
	struct paint paint;

	(void)state;
	assert_true(value_parse(STR("{\"command\":\"echo one two three four\"}"), 0,
				&arguments, NULL));
	assert_true(value_parse(STR("{\"status\":\"denied\",\"text\":\"It may not write "
				    "/a/very/long/path/of/it there.\",\"seconds\":0}"),
				0, &result, NULL));
	paint_init(&paint);
	paint.wraps = true;
	paint.columns = 20;
	paint_call(&paint, "bash", arguments, result);
	assert_string_equal(paint.out.data, "+- bash ------------\n"
					    "| echo one two three four\n"
					    "|\n"
					    "| [x] denied, 0.0 s\n"
					    "| It may not write /a/very/long/path/of/it\n"
					    "| there.\n"
					    "+-------------------\n");
	paint_fini(&paint);
}

static void a_delegates_notice_is_whole_on_a_narrow_terminal(void **state)
{
	auto_value struct value *data = NULL;
	struct screen_child child = {0};
	struct paint paint;

	(void)state;
	assert_true(value_parse(STR("{\"agent\":\"a\",\"session\":\"s\",\"event_of\":{"
				    "\"event\":\"notice\",\"text\":\"The rest of it is told "
				    "below\"}}"),
				0, &data, NULL));
	paint_init(&paint);
	paint.wraps = true;
	paint.columns = 24;
	screen_child_paint(&child, &paint, data, stand_nowhere, NULL);
	assert_string_equal(paint.out.data, "+- delegate a, s -------\n"
					    "| ! The rest of it is\n"
					    "| told below\n");
	screen_child_fini(&child);
	paint_fini(&paint);
}

static void what_is_copied_stays_on_its_line(void **state)
{
	static const char code[] =
		"Run:\n```sh\nmake test && make install PREFIX=/usr\n```\n"
		"and then be done with it.";

	(void)state;
	wraps(code, "Run:\n```sh\nmake test && make install PREFIX=/usr\n```\n"
		    "and then be done\nwith it.");
	wraps("    int a = function_of(one, two);\nx",
	      "    int a = function_of(one, two);\nx");
	wraps("| a table | has its columns |", "| a table | has its columns |");
}

static void only_a_terminal_has_lines_with_an_end(void **state)
{
	static const struct screen_options terminal = {.terminal = true, .columns = 24};
	static const struct screen_options pipe = {.columns = 24};
	static const struct cue cues[] = {
		{"text", NULL, NULL, "All of it is mended now, ", NULL},
		{"text", NULL, NULL, "and te", NULL},
		{"text", NULL, NULL, "sted.", NULL},
		{"message", NULL, NULL, NULL, "{\"parts\":[]}"},
		{"notice", NULL, NULL, "something to be read by a person", NULL},
		{0},
	};

	(void)state;
	shows(terminal, cues,
	      "All of it is mended\nnow, and tested.\n\n"
	      "! something to be read\nby a person\n");
	shows(pipe, cues,
	      "All of it is mended now, and tested.\n\n! something to be read by a person\n");
}

static void options_follow_the_environment(void **state)
{
	struct screen_options options;

	(void)state;
	assert_int_equal(setenv("LC_ALL", "de_DE.utf8", 1), 0);
	options = screen_options_of(STDERR_FILENO);
	assert_true(options.unicode);
	assert_int_equal(setenv("LC_ALL", "C", 1), 0);
	assert_int_equal(setenv("TERM", "dumb", 1), 0);
	options = screen_options_of(STDERR_FILENO);
	assert_false(options.unicode || options.colour || options.terminal);
}

static void colours_and_columns_can_be_asked_for(void **state)
{
	auto_close int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct screen_options options;

	(void)state;
	assert_int_equal(unsetenv("NO_COLOR"), 0);
	assert_int_equal(setenv("CLICOLOR_FORCE", "0", 1), 0);
	assert_int_equal(setenv("COLUMNS", "33", 1), 0);
	options = screen_options_of(fd);
	assert_false(options.colour);
	assert_int_equal(options.columns, 33);
	assert_int_equal(setenv("CLICOLOR_FORCE", "1", 1), 0);
	assert_int_equal(setenv("COLUMNS", "many", 1), 0);
	options = screen_options_of(fd);
	assert_true(options.colour && !options.terminal);
	assert_int_equal(options.columns, 0);
	assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
	assert_false(screen_options_of(fd).colour);
	assert_int_equal(unsetenv("CLICOLOR_FORCE"), 0);
	assert_int_equal(unsetenv("NO_COLOR"), 0);
	assert_int_equal(setenv("FORCE_COLOR", "1", 1), 0);
	assert_true(screen_options_of(fd).colour);
	assert_int_equal(unsetenv("FORCE_COLOR"), 0);
	assert_int_equal(unsetenv("COLUMNS"), 0);
}

static void marks_of_direction_are_shown_and_not_obeyed(void **state)
{
	const struct paint_excerpt all = {.head = 5};
	struct paint paint;

	(void)state;
	paint_init(&paint);
	paint.columns = 40;
	paint_lines(&paint,
		    STR("a\tb\xe2\x80\xae"
			"c\n\xd7\x90"),
		    &all);
	assert_string_equal(paint.out.data, "a\tb\\xE2\\x80\\xAEc\n\xd7\x90\n");
	paint_fini(&paint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_whose_processes_were_ended_says_so),
		cmocka_unit_test(a_whole_session),
		cmocka_unit_test(a_cell_without_a_filter_is_named),
		cmocka_unit_test(ascii_for_other_locales),
		cmocka_unit_test(an_edit_is_a_coloured_diff),
		cmocka_unit_test(the_last_lines_of_long_output),
		cmocka_unit_test(the_first_lines_of_what_was_found),
		cmocka_unit_test(nothing_foreign_reaches_the_terminal),
		cmocka_unit_test(what_a_person_judges_by_loses_nothing),
		cmocka_unit_test(side_by_side_calls_keep_their_own_arguments),
		cmocka_unit_test(the_change_is_a_diff_that_can_be_copied),
		cmocka_unit_test(reasoning_is_dim_and_only_with_colour),
		cmocka_unit_test(on_a_terminal_thinking_is_a_line),
		cmocka_unit_test(on_a_terminal_a_command_is_a_line_and_its_last_lines),
		cmocka_unit_test(on_a_terminal_a_failure_has_its_reason),
		cmocka_unit_test(on_a_terminal_an_edit_is_a_patch_that_can_be_copied),
		cmocka_unit_test(on_a_terminal_reading_in_a_row_is_one_line),
		cmocka_unit_test(on_a_terminal_the_call_that_hands_over_is_not_shown),
		cmocka_unit_test(on_a_terminal_a_call_takes_one_row),
		cmocka_unit_test(a_long_prompt_is_cut),
		cmocka_unit_test(narrow_rules_fit),
		cmocka_unit_test(wide_characters_take_two_columns),
		cmocka_unit_test(characters_of_doubtful_width_move_nothing_behind_them),
		cmocka_unit_test(the_spinner_fits_and_turns),
		cmocka_unit_test(the_spinner_is_cleared_before_other_words),
		cmocka_unit_test(flow_gives_the_same_text_however_it_is_cut),
		cmocka_unit_test(prose_is_broken_between_words),
		cmocka_unit_test(a_word_without_an_end_is_read_once),
		cmocka_unit_test(blocks_are_broken_between_words),
		cmocka_unit_test(a_delegates_notice_is_whole_on_a_narrow_terminal),
		cmocka_unit_test(what_is_copied_stays_on_its_line),
		cmocka_unit_test(only_a_terminal_has_lines_with_an_end),
		cmocka_unit_test(options_follow_the_environment),
		cmocka_unit_test(colours_and_columns_can_be_asked_for),
		cmocka_unit_test(marks_of_direction_are_shown_and_not_obeyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
