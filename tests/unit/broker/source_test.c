/* source: the first place that is there, and sentences that hold nothing of a value. */
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/value.h"
#include "broker/source.h"
#include "process/loop.h"

enum { TEXT_MAX = 4096, PATIENCE_MS = 60000 };

/* A home with a loop, and the answer to the last question. */
struct desk {
	char home[64];
	struct source_terms terms;
	const char *environment[8];
	struct credential credential;
	struct source *source;
	char value[SOURCE_VALUE_MAX + 1], why[ERR_TEXT_MAX];
	unsigned answers;
};

static void desk_open(struct desk *desk)
{
	*desk = (struct desk){.home = "/tmp/glovebox-unit-XXXXXX"};
	assert_non_null(mkdtemp(desk->home));
	desk->terms = (struct source_terms){loop_new(), desk->home, desk->environment};
	desk->environment[0] = "PATH=/usr/bin:/bin";
}

static void desk_end_source(struct desk *desk)
{
	source_free(desk->source);
	desk->source = NULL;
	credential_fini(&desk->credential);
}

static void desk_close(struct desk *desk)
{
	desk_end_source(desk);
	loop_free(desk->terms.loop);
	fd_folder_remove(desk->home);
}

static void desk_from(struct desk *desk, const char *from)
{
	auto_value struct value *entry = NULL;
	char text[TEXT_MAX];
	struct err err = {0};

	desk_end_source(desk);
	(void)snprintf(text, sizeof(text),
		       "{\"from\": [%s], \"hosts\": [\"a.example\"], \"place\": \"bearer\"}",
		       from);
	if (!value_parse(str_of(text), 0, &entry, &err) ||
	    !credential_read("a", entry, &desk->credential, &err))
		fail_msg("%s", err.text);
	desk->source = source_new(&desk->credential, &desk->terms);
}

static void desk_file(struct desk *desk, const char *name, mode_t mode, const char *text)
{
	char path[128];
	struct err err;

	(void)snprintf(path, sizeof(path), "%s/%s", desk->home, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text, strlen(text), &err));
	assert_int_equal(fchmod(fd, mode), 0);
}

static void heard(void *context, struct str value, const struct err *why)
{
	struct desk *desk = context;

	desk->answers++;
	desk->value[0] = '\0';
	desk->why[0] = '\0';
	if (value.data != NULL)
		(void)snprintf(desk->value, sizeof(desk->value), "%.*s", (int)value.size,
			       value.data);
	else
		(void)snprintf(desk->why, sizeof(desk->why), "%s", why->text);
}

/* Ask, and wait for the answer. */
static void ask(struct desk *desk)
{
	const int64_t until = clock_now_ms() + PATIENCE_MS;
	const unsigned before = desk->answers;

	source_ask(desk->source, heard, desk);
	while (desk->answers == before && clock_now_ms() < until)
		loop_turn(desk->terms.loop, until);
	assert_int_equal(desk->answers, before + 1);
}

static void answers_with(struct desk *desk, const char *from, const char *value,
			 const char *why)
{
	desk_from(desk, from);
	ask(desk);
	if (strcmp(desk->value, value) != 0 || strcmp(desk->why, why) != 0)
		fail_msg("%s: \"%s\" \"%s\"", from, desk->value, desk->why);
}

static void the_first_that_is_there_gives_the_value(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	desk.environment[1] = "A=";
	desk.environment[2] = "B=value-of-b";
	desk_file(&desk, "key", 0600, "value-of-file\n");
	desk_file(&desk, "all.json", 0400,
		  "{\"a/b\": [{\"key\": \"value-in-json\"}], \"empty\": \"\"}");
	answers_with(&desk, "\"env:B\"", "value-of-b", "");
	answers_with(&desk, "\"env:A\", \"env:B\"", "value-of-b", "");
	answers_with(&desk, "\"file:~/none\", \"file:~/key\", \"env:B\"", "value-of-file",
		     "");
	answers_with(&desk, "\"file:~/all.json#/a~1b/0/key\"", "value-in-json", "");
	answers_with(&desk, "\"file:~/all.json#/empty\", \"env:B\"", "value-of-b", "");
	answers_with(&desk, "{\"command\": [\"no-such-program\"]}, \"env:B\"",
		     "value-of-b", "");
	answers_with(&desk, "{\"command\": [\"printf\", \"value-of-%s\\\\n\", \"command\"]}",
		     "value-of-command", "");
	answers_with(&desk,
		     "\"env:A\", \"file:~/none\", \"file:~/all.json#/b\", {\"command\": "
		     "[\"no-such-program\"]}",
		     "",
		     "A is not set, ~/none is not there, ~/all.json has no text at /b, there is "
		     "no program no-such-program");
	desk_close(&desk);
}

static void a_line_of_a_file_gives_the_value(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	desk.environment[1] = "B=value-of-b";
	desk_file(&desk, "npmrc", 0600,
		  "; a comment\n//a.example/:_authTokens=no-such-value\n"
		  "//a.example/:_authToken=value-of-line\r\n//b.example/:_authToken=${TOKEN}\n"
		  "[other]\nafter=value-behind\n");
	desk_file(&desk, "toml", 0600,
		  "token = \"value-outside\"\n[registries]\ntoken = \"value-of-another\"\n"
		  "[registry]\n  token = \"value-in#section\" # a comment\n"
		  "open = \"value-without-end\n");
	desk_file(&desk, "yaml", 0600, "---\n:key: value-of-yaml\n:short: 'tiny'\n");
	answers_with(&desk, "\"file:~/npmrc#=//a.example/:_authToken\"", "value-of-line",
		     "");
	answers_with(&desk, "\"file:~/npmrc#=//b.example/:_authToken\", \"env:B\"",
		     "value-of-b", "");
	answers_with(&desk, "\"file:~/npmrc#=after\"", "", "~/npmrc has no value of after");
	answers_with(&desk, "\"file:~/npmrc#[other]after\"", "value-behind", "");
	answers_with(&desk, "\"file:~/toml#[registry]token\"", "value-in#section", "");
	answers_with(&desk, "\"file:~/toml#=token\"", "value-outside", "");
	answers_with(&desk, "\"file:~/toml#[registry]open\"", "value-without-end", "");
	answers_with(&desk, "\"file:~/toml#[none]token\", \"env:B\"", "value-of-b", "");
	answers_with(&desk, "\"file:~/yaml#=:key\"", "value-of-yaml", "");
	answers_with(&desk, "\"file:~/yaml#=:short\", \"env:B\"", "",
		     "file:~/yaml#=:short: a key has 8 to 16384 bytes, this has 4");
	desk_close(&desk);
}

static void a_place_that_is_wrong_ends_the_search(void **state)
{
	struct desk desk;
	char path[128];

	(void)state;
	desk_open(&desk);
	desk.environment[1] = "B=value-of-b";
	desk_file(&desk, "open", 0640, "secret-value\n");
	desk_file(&desk, "lines", 0600, "secret-value\nsecond\n");
	desk_file(&desk, "short", 0600, "secret\n");
	desk_file(&desk, "no.json", 0600, "secret-value");
	(void)snprintf(path, sizeof(path), "%s/pipe", desk.home);
	assert_int_equal(mkfifo(path, 0600), 0);
	answers_with(&desk, "\"file:~/open\", \"env:B\"", "",
		     "file ~/open may be read by others: chmod 600 ~/open");
	answers_with(&desk, "\"file:~/lines\", \"env:B\"", "",
		     "file:~/lines: a key is one line of visible ASCII, without blanks");
	answers_with(&desk, "\"file:~/short\", \"env:B\"", "",
		     "file:~/short: a key has 8 to 16384 bytes, this has 6");
	answers_with(&desk, "\"file:~/no.json#/a\", \"env:B\"", "",
		     "file ~/no.json is no JSON");
	answers_with(&desk, "\"file:~/pipe\", \"env:B\"", "",
		     "file ~/pipe is no regular file");
	answers_with(&desk, "{\"command\": [\"sh\", \"-c\", \"echo secret-value; exit 3\"]}",
		     "", "command: sh: it ended with exit code 3");
	answers_with(&desk,
		     "{\"command\": [\"sh\", \"-c\", \"echo secret-value; echo b\"]}", "",
		     "command: sh: a key is one line of visible ASCII, without blanks");
	answers_with(&desk, "{\"command\": [\"head\", \"-c\", \"100000\", \"/dev/zero\"]}",
		     "", "command: head: it printed more than 64 KiB");
	answers_with(&desk, "{\"command\": [\"sh\", \"-c\", \"kill -9 $$\"]}", "",
		     "command: sh: signal 9 ended it");
	desk_close(&desk);
}

static void a_file_that_changed_gives_its_new_value(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	desk_file(&desk, "key", 0600, "first-value");
	desk_from(&desk, "\"file:~/key\"");
	ask(&desk);
	assert_string_equal(desk.value, "first-value");
	desk_file(&desk, "key", 0600, "other-value");
	ask(&desk);
	assert_string_equal(desk.value, "other-value");
	desk_close(&desk);
}

static void a_place_stays_what_it_was_when_the_session_began(void **state)
{
	struct desk desk;
	char path[128], link[128], from[256], why[512];

	(void)state;
	desk_open(&desk);
	desk_file(&desk, "key", 0600, "value-of-file");
	desk_file(&desk, "other", 0600, "other-secret");
	(void)snprintf(path, sizeof(path), "%s/other", desk.home);
	(void)snprintf(link, sizeof(link), "%s/key", desk.home);
	desk_from(&desk, "\"file:~/key\"");
	assert_int_equal(unlink(link), 0);
	ask(&desk);
	assert_string_equal(desk.why, "~/key is not there");
	assert_int_equal(symlink(path, link), 0);
	ask(&desk);
	assert_string_equal(desk.why,
			    "file ~/key has become a link since the session began");
	/* A link that was there is followed, and no one that comes behind it. */
	desk_from(&desk, "\"file:~/key\"");
	ask(&desk);
	assert_string_equal(desk.value, "other-secret");

	desk_file(&desk, "tool", 0700, "#!/bin/sh\necho value-of-tool\n");
	(void)snprintf(path, sizeof(path), "%s/tool", desk.home);
	(void)snprintf(from, sizeof(from), "{\"command\": [\"%s\"], \"keep_s\": 0}", path);
	desk_from(&desk, from);
	ask(&desk);
	assert_string_equal(desk.value, "value-of-tool");
	desk_file(&desk, "tool", 0700, "#!/bin/sh\necho value-of-another\n");
	ask(&desk);
	(void)snprintf(why, sizeof(why),
		       "command: %s: %s has changed since the session began: start a new one",
		       path, path);
	assert_string_equal(desk.value, "");
	assert_string_equal(desk.why, why);
	desk_close(&desk);
}

static void a_command_is_kept_and_runs_once_for_all(void **state)
{
	struct desk desk;
	char from[256];

	(void)state;
	desk_open(&desk);
	(void)snprintf(from, sizeof(from),
		       "{\"command\": [\"sh\", \"-c\", \"echo x >>%s/runs; wc -c <%s/runs | "
		       "sed s/^/value-is-/\"]}",
		       desk.home, desk.home);
	desk_from(&desk, from);
	source_ask(desk.source, heard, &desk);
	source_ask(desk.source, heard, &desk);
	while (desk.answers < 2)
		loop_turn(desk.terms.loop, clock_now_ms() + PATIENCE_MS);
	assert_string_equal(desk.value, "value-is-2");
	ask(&desk);
	assert_string_equal(desk.value, "value-is-2");
	/* keep_s 0: again each time */
	(void)snprintf(from + strlen(from) - 1, sizeof(from) - strlen(from) + 1,
		       ", \"keep_s\": 0}");
	desk_from(&desk, from);
	ask(&desk);
	assert_string_equal(desk.value, "value-is-4");
	ask(&desk);
	assert_string_equal(desk.value, "value-is-6");
	desk_close(&desk);
}

static void a_command_that_failed_is_not_started_again_at_once(void **state)
{
	struct desk desk;
	char from[256];

	(void)state;
	desk_open(&desk);
	(void)snprintf(from, sizeof(from),
		       "{\"command\": [\"sh\", \"-c\", \"echo x >>%s/runs; "
		       "exit $(wc -l <%s/runs)\"]}",
		       desk.home, desk.home);
	desk_from(&desk, from);
	for (int i = 0; i < 3; i++) {
		ask(&desk);
		assert_string_equal(desk.why, "command: sh: it ended with exit code 1");
	}
	/* Another session asks anew. */
	desk_from(&desk, from);
	ask(&desk);
	assert_string_equal(desk.why, "command: sh: it ended with exit code 2");
	desk_close(&desk);
}

static void a_command_ends_with_the_process_that_asks(void **state)
{
	char from[256], path[128], pid[32] = "";
	struct desk desk;
	int status;

	(void)state;
	desk_open(&desk);
	(void)snprintf(path, sizeof(path), "%s/pid", desk.home);
	(void)snprintf(from, sizeof(from),
		       "{\"command\": [\"sh\", \"-c\", \"echo $$ >%s; exec sleep 8\"]}",
		       path);
	desk_from(&desk, from);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	const pid_t child = fork();
	if (child == 0) {
		source_ask(desk.source, heard, &desk);
		for (;;)
			(void)pause();
	}
	const int64_t until = clock_now_ms() + PATIENCE_MS;
	for (int fd = -1; strchr(pid, '\n') == NULL && clock_now_ms() < until;
	     fd_close(&fd)) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			(void)!read(fd, pid, sizeof(pid) - 1);
	}
	const pid_t command = (pid_t)strtol(pid, NULL, 10);
	assert_true(command > 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	/* It is ours now. It would end by itself, but not by this signal. */
	assert_int_equal(waitpid(command, &status, 0), command);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	desk_close(&desk);
}

static void a_command_has_a_small_environment(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	desk.environment[1] = "OTHER_API_KEY=other";
	desk.environment[2] = "HOME=/somewhere";
	answers_with(&desk,
		     "{\"command\": [\"sh\", \"-c\", \"echo value-${OTHER_API_KEY-none}-$HOME\"]}",
		     "value-none-/somewhere", "");
	desk_close(&desk);
}

static void a_source_may_go_while_its_command_runs(void **state)
{
	struct desk desk;
	char from[128], path[128];

	(void)state;
	desk_open(&desk);
	/* The program and its child are ended, so nothing writes the file. */
	(void)snprintf(from, sizeof(from),
		       "{\"command\": [\"sh\", \"-c\", \"(sleep 1; echo >%s/late) & sleep 1\"]}",
		       desk.home);
	desk_from(&desk, from);
	source_ask(desk.source, heard, &desk);
	desk_end_source(&desk);
	assert_int_equal(desk.answers, 0);
	(void)snprintf(path, sizeof(path), "%s/late", desk.home);
	assert_int_equal(access(path, F_OK), -1);
	desk_close(&desk);
}

static void a_look_names_the_place_and_starts_nothing(void **state)
{
	struct desk desk;
	struct buf shown;
	struct err err = {0};

	(void)state;
	desk_open(&desk);
	buf_init(&shown, TEXT_MAX);
	desk_from(&desk, "\"env:A\", {\"command\": [\"false\", \"x\"]}");
	assert_true(source_look(&desk.credential, &desk.terms, &shown, &err));
	assert_string_equal(shown.data, "command: false");
	buf_clear(&shown);
	desk_from(&desk, "\"env:A\", \"file:~/key\"");
	assert_false(source_look(&desk.credential, &desk.terms, &shown, &err));
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.text, "A is not set, ~/key is not there");
	desk_file(&desk, "key", 0644, "value-of-file");
	assert_false(source_look(&desk.credential, &desk.terms, &shown, &err));
	assert_string_equal(err.text, "file ~/key may be read by others: chmod 600 ~/key");
	buf_fini(&shown);
	desk_close(&desk);
}

/* An answer that frees the source, while another question waits. */
static void frees(void *context, struct str value, const struct err *why)
{
	struct desk *desk = context;

	heard(context, value, why);
	source_free(desk->source);
	desk->source = NULL;
}

static void an_answer_may_free_the_source(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	desk_from(&desk, "{\"command\": [\"echo\", \"value-of-echo\"]}");
	source_ask(desk.source, frees, &desk);
	source_ask(desk.source, heard, &desk);
	while (desk.answers == 0)
		loop_turn(desk.terms.loop, clock_now_ms() + PATIENCE_MS);
	assert_int_equal(desk.answers, 1);
	assert_string_equal(desk.value, "value-of-echo");
	desk_close(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_is_there_gives_the_value),
		cmocka_unit_test(a_line_of_a_file_gives_the_value),
		cmocka_unit_test(a_place_that_is_wrong_ends_the_search),
		cmocka_unit_test(a_file_that_changed_gives_its_new_value),
		cmocka_unit_test(a_place_stays_what_it_was_when_the_session_began),
		cmocka_unit_test(a_command_is_kept_and_runs_once_for_all),
		cmocka_unit_test(a_command_that_failed_is_not_started_again_at_once),
		cmocka_unit_test(a_command_ends_with_the_process_that_asks),
		cmocka_unit_test(a_command_has_a_small_environment),
		cmocka_unit_test(a_source_may_go_while_its_command_runs),
		cmocka_unit_test(a_look_names_the_place_and_starts_nothing),
		cmocka_unit_test(an_answer_may_free_the_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
