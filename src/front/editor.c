/* editor: `glovebox acp`, and the process that works in one session of it. */

#include "front/editor.h"

#include "acp/acp.h"
#include "acp/process.h"
#include "agent/agent.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "build_config.h"
#include "front/agents.h"
#include "front/conversation/delegated.h"
#include "front/conversation/mentions.h"
#include "front/extend/invoke.h"
#include "front/interrupt.h"
#include "front/login/logins.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "mcp/client/remote.h"
#include "model/model.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/tool.h"
#include "tools/patches/patch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* An editor answers from memory, so one that is slower is busy with something else. */
	BUFFER_MS = 100,
	/* After so many questions without an answer the editor is not asked in this turn. */
	SILENCE_MAX = 3,
	BUFFER_MAX = 4 << 20, /* a larger text is no work of a person's hands */
	QUEUE_MAX = 32,
	SENTENCE_MAX = 1 << 10,
	SHOWN_MAX = 1 << 20, /* of a patch that a person wants to see */
};

struct editor {
	const struct value *request;
	struct options options;
	struct setup *setup;
	struct talk *talk;
	char *model;         /* as it was set; NULL: that of the options */
	struct value *queue; /* what the editor wants, in its order */
	size_t done;         /* so many of the first ones were done */
	bool over;           /* no more lines will come */
	/* texts of the editor */
	int64_t asked;       /* the number of the last question */
	bool answered;       /* it has its answer */
	struct value *text;  /* of the answer; or NULL */
	unsigned silence;    /* questions in a row that had no answer in time */
	struct value *known; /* path -> an object of the marks that the file had on disk */
};

/* Lines to the process that speaks with the editor. */

static void say(const struct value *line)
{
	struct buf text;

	buf_init(&text, ACP_PROCESS_LINE_MAX);
	if (value_print(line, 0, &text) && buf_addc(&text, '\n'))
		(void)fd_write_all(STDOUT_FILENO, text.data, text.size, NULL);
	buf_fini(&text);
}

static struct value *new_line(const char *word)
{
	struct value *line = value_new_object();

	value_set_text(line, "editor", word);
	return line;
}

static struct value *agents_of(const struct setup *setup)
{
	struct value *names = value_new_array();

	for (void *at = value_first(setup->agents); at != NULL;
	     at = value_next(setup->agents, at))
		value_append(names, value_new_text(value_key(at)));
	return names;
}

static struct value *levels_of(void)
{
	struct value *levels = value_new_array();

	for (const struct model_level *at = model_levels; at->name != NULL; at++) {
		struct value *row = value_new_object();

		value_set_text(row, "value", at->name);
		value_set_text(row, "name", at->name);
		value_set_text(row, "description", at->title);
		value_append(levels, row);
	}
	return levels;
}

static void add_name(void *context, const char *name)
{
	value_append(context, value_new_text(name));
}

/* As ACP has them; what is typed behind the name is always taken. */
static void add_command(void *context, const char *name, const char *description)
{
	struct value *row = value_new_object(), *input = value_new_object();

	value_set_text(row, "name", name);
	value_set_text(row, "description", description);
	value_set_text(input, "hint", "text");
	value_set(row, "input", input);
	value_append(context, row);
}

/* The editor may want the next thing. FAILED: why the last one was not done; or NULL. */
static void tell_idle(struct editor *editor, const char *failed)
{
	auto_value struct value *line = new_line("idle");
	struct value *models = value_new_array(), *commands = value_new_array();

	setup_each_model(editor->setup, add_name, models);
	invoke_each(editor->setup, add_command, commands);
	value_set(line, "commands", commands);
	value_set_text(line, "session", talk_id(editor->talk));
	value_set_text(line, "agent", editor->setup->agent);
	value_set_text(line, "model", talk_model_name(editor->talk));
	value_set_text(line, "mode", policy_modes[editor->setup->mode].name);
	value_set(line, "agents", agents_of(editor->setup));
	value_set(line, "models", models);
	if (talk_has_levels(editor->talk)) {
		const struct model_level *level = editor->setup->thinking;

		value_set_text(line, "thought_level",
			       level != NULL ? level->name : model_levels->name);
		value_set(line, "thought_levels", levels_of());
	}
	value_set_integer(line, "context", (int64_t)talk_context(editor->talk));
	if (failed != NULL)
		value_set_text(line, "failed", failed);
	say(line);
}

/* For the talk: LINE has come, or the end of the lines. */
static bool heard(void *context, const struct value *line)
{
	struct editor *editor = context;
	const struct value *number = value_member(line, "buffer");

	if (line == NULL) {
		editor->over = true;
		return true;
	}
	if (number != NULL) {
		if (value_integer(number) == editor->asked && !editor->answered) {
			editor->answered = true;
			editor->text = value_member(line, "text") != NULL
					       ? value_copy(value_member(line, "text"))
					       : NULL;
		}
		return true;
	}
	if (value_member(line, "do") == NULL)
		return false;
	if (value_count(editor->queue) - editor->done < QUEUE_MAX)
		value_append(editor->queue, value_copy(line));
	return true;
}

/* Texts that the editor holds and that are not saved. */

/*
 * Ask the editor for its text of PATH. NULL: it has none, or none in time. The caller
 * frees it.
 */
static struct value *ask_editor(struct editor *editor, const char *path)
{
	auto_value struct value *line = new_line("buffer");
	const int64_t until_ms = clock_now_ms() + BUFFER_MS;
	struct value *text;

	editor->asked++;
	editor->answered = false;
	value_set_integer(line, "number", editor->asked);
	value_set_text(line, "path", path);
	say(line);
	while (!editor->answered && !editor->over && clock_now_ms() < until_ms)
		loop_turn(session_loop(talk_session(editor->talk)), until_ms);
	editor->silence = editor->answered ? 0 : editor->silence + 1;
	editor->answered = true;
	text = editor->text;
	editor->text = NULL;
	return text;
}

/* Compare TEXT of the editor with the file PATH, in the cell. False: that was not possible. */
static bool compare(struct editor *editor, const char *path, const struct value *text,
		    const struct value *wanted, struct tool_result *result)
{
	static const char *const lines[] = {"start_line", "end_line"};
	auto_value struct value *arguments = value_new_object();
	const struct request request = {
		.tool = "unsaved",
		.arguments = arguments,
		.id = "unsaved",
		.by_front = true,
		.quiet = true,
	};

	value_set_text(arguments, "path", path);
	value_set(arguments, "text", value_copy(text));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const struct value *line = value_member(wanted, lines[i]);

		if (value_is_number(line))
			value_set(arguments, lines[i], value_copy(line));
	}
	session_call(talk_session(editor->talk), &request, result);
	return result->status == RESULT_DONE;
}

/* The file PATH has, or had, a content with MARK on disk. */
static void know(struct editor *editor, const char *path, const char *mark)
{
	struct value *marks = value_member(editor->known, path);

	if (mark == NULL)
		return;
	if (marks == NULL) {
		marks = value_new_object();
		value_set(editor->known, path, marks);
	}
	value_set_boolean(marks, mark, true);
}

/* Had the file PATH the content TEXT, perhaps with a last line end that editors leave out? */
static bool is_known(const struct editor *editor, const char *path, struct str text)
{
	const struct value *marks = value_member(editor->known, path);
	char mark[HASH_MARK_HEX + 1];
	struct buf whole;
	bool known;

	hash_mark(text, mark);
	known = value_member(marks, mark) != NULL;
	if (known || str_ends(text, STR("\n")))
		return known;
	buf_init(&whole, BUFFER_MAX + 1);
	(void)buf_addstr(&whole, text);
	(void)buf_addc(&whole, '\n');
	hash_mark(buf_str(&whole), mark);
	buf_fini(&whole);
	return value_member(marks, mark) != NULL;
}

/* A call and one file that it reads or changes. */
struct touched {
	struct editor *editor;
	const struct value *arguments;
	bool changes;
	struct hook_answer *answer;
};

static void take_unsaved(struct touched *touched, const char *path,
			 const struct tool_result *result)
{
	const long long first = value_integer(value_member(result->details, "first_line"));
	const long long last = value_integer(value_member(result->details, "last_line"));

	if (touched->changes) {
		touched->answer->decision = HOOK_DENY;
		(void)buf_addf(&touched->answer->reason,
			       "The editor has unsaved changes in %s (lines %lld-%lld). Ask the "
			       "person to save it.",
			       path, first, last);
		return;
	}
	buf_clear(&touched->answer->shown);
	(void)buf_addf(&touched->answer->shown,
		       "[%s as the editor has it, with changes in lines %lld-%lld that are not "
		       "saved; commands still see the file on disk]\n",
		       path, first, last);
	(void)buf_addstr(&touched->answer->shown, buf_str(&result->text));
}

/* For paths of a call: the call touches the file PATH. */
static void touch(void *context, const char *path)
{
	struct touched *touched = context;
	struct editor *editor = touched->editor;
	struct tool_result result;
	struct buf absolute;

	if (path == NULL || touched->answer->decision == HOOK_DENY ||
	    editor->silence >= SILENCE_MAX)
		return;
	buf_init(&absolute, PATH_MAX);
	tool_result_init(&result);
	if (path_normal(editor->setup->workspace, path, &absolute)) {
		auto_value struct value *text = ask_editor(editor, absolute.data);

		if (value_text(text) != NULL && value_str(text).size <= BUFFER_MAX &&
		    compare(editor, path, text, touched->arguments, &result)) {
			know(editor, absolute.data,
			     value_text(value_member(result.details, "mark")));
			if (!value_is_true(value_member(result.details, "same")) &&
			    !is_known(editor, absolute.data, value_str(text)))
				take_unsaved(touched, path, &result);
		}
	}
	tool_result_fini(&result);
	buf_fini(&absolute);
}

/* For the agent: a call of the model is about to start. */
static void before(void *context, const struct hook_moment *moment,
		   struct hook_answer *answer)
{
	const struct tool *tool = moment->tool;
	const bool only_writes =
		tool != NULL && tool->where == IN_CELL && tool->carrier == NULL &&
		(tool->effects & EFFECT_WRITES) != 0 && (tool->effects & EFFECT_RUNS) == 0;
	struct touched touched = {
		.editor = context,
		.arguments = moment->arguments,
		.changes = only_writes,
		.answer = answer,
	};

	if (moment->kind != HOOK_BEFORE_CALL || tool == NULL ||
	    (!only_writes && strcmp(tool->name, "read_file") != 0))
		return;
	touch(&touched, value_text(value_member(moment->arguments, "path")));
	if (tool->visit_paths != NULL)
		tool->visit_paths(moment->arguments, touch, &touched);
}

/* The wishes of the editor. */

/*
 * Let ENTRY show FOLDERS, and write them where the rights of SETUP let the workspace be
 * written.
 */
static void add_folders(const struct value *folders, const struct setup *setup,
			struct value *entry)
{
	const size_t count = value_count(setup->entries);
	const struct value *rights =
		value_member(value_item(setup->entries, count > 0 ? count - 1 : 0), "entry");
	const struct value *had = value_member(rights, "write");

	value_set(entry, "read", value_copy(folders));
	if (!value_has_text(had, ".") && !value_has_text(had, setup->workspace))
		return;
	struct value *write = value_copy(had);

	for (size_t i = 0; i < value_count(folders); i++)
		value_append(write, value_copy(value_item(folders, i)));
	value_set(entry, "write", write);
}

static bool model_of(const struct editor *editor, const char *name,
		     const struct setup *setup, struct model_options *model, struct err *err)
{
	if (name == NULL)
		name = editor->model;
	if (name == NULL)
		name = options_text(&editor->options, "model");
	return talk_model(name, &setup->role, model, err);
}

static void tell_model(struct editor *editor, const char *format, const char *name)
{
	struct buf sentence;

	buf_init(&sentence, SENTENCE_MAX);
	for (const char *at = format; *at != '\0'; at++) {
		if (*at == '%')
			(void)buf_adds(&sentence, name);
		else
			(void)buf_addc(&sentence, *at);
	}
	(void)agent_notice(talk_agent(editor->talk), sentence.data, true, NULL);
	buf_fini(&sentence);
}

/* The questions of servers that the editor takes. Every editor can permit something. */
static unsigned elicits(const struct editor *editor)
{
	const struct value *request = editor->request;

	return REMOTE_ASKS_MODEL |
	       (value_is_true(value_member(request, "forms")) ? REMOTE_ASKS_FORMS : 0U) |
	       (value_is_true(value_member(request, "addresses")) ? REMOTE_ASKS_ADDRESSES
								  : 0U);
}

/*
 * Make a setup for AGENT in MODE; NULL: in that of the options. What more folders change
 * depends on the rights of the agent, so its own setup is made first. NULL: the complaint was
 * printed.
 */
static struct setup *make_setup(const struct editor *editor, const char *agent,
				const enum policy_mode *mode)
{
	const struct value *folders = value_member(editor->request, "directories");
	struct setup *setup = memory_alloc(sizeof(*setup));
	struct setup_flags flags = {
		.workspace = value_text(value_member(editor->request, "workspace")),
		.agent = agent,
		.mode = mode,
		.serves = folders == NULL,
		.hurries = mode != NULL,
		.servers = value_member(editor->request, "servers"),
		.asks = elicits(editor),
	};
	int code = setup_open(setup, &editor->options, &flags);

	if (code == CODE_DONE && folders != NULL) {
		auto_value struct value *entry = value_new_object();

		add_folders(folders, setup, entry);
		setup_fini(setup);
		flags.entry = entry;
		flags.serves = true;
		code = setup_open(setup, &editor->options, &flags);
		setup->said = NULL; /* it names the rows of options, and this is none */
	}
	setup->publishes = true;
	if (code == CODE_DONE)
		return setup;
	setup_fini(setup);
	free(setup);
	return NULL;
}

/* For talk_options. */

static struct setup *remake(void *context, const char *agent, enum policy_mode mode)
{
	const struct editor *editor = context;

	return make_setup(editor, agent != NULL ? agent : editor->setup->agent, &mode);
}

static void taken(void *context, struct setup *setup, bool used)
{
	struct editor *editor = context;
	struct setup *over = used ? editor->setup : setup;

	setup_fini(over);
	free(over);
	if (used)
		editor->setup = setup;
}

static const char not_made[] = "The change was not made; the log of glovebox says why.";

/* Go on as AGENT. The sentence of a failure, or NULL. */
static const char *change_hands(struct editor *editor, const char *agent)
{
	const enum policy_mode mode = editor->setup->mode;
	struct setup *setup = make_setup(editor, agent, &mode);
	struct model_options model = {0}, now = {0};
	struct err err = {0};
	bool fine, same;

	if (setup == NULL)
		return not_made;
	fine = model_of(editor, NULL, setup, &model, &err) &&
	       model_of(editor, NULL, editor->setup, &now, &err);
	same = model.temperature == now.temperature &&
	       model.thinking_budget == now.thinking_budget &&
	       str_equal(str_of(model.name), str_of(now.name));
	if (!fine)
		(void)verb_complain(CODE_FAILED, "%s", err.text);
	fine = fine && talk_change(editor->talk, setup, same ? NULL : &model) == CODE_DONE;
	taken(editor, setup, fine);
	return fine ? NULL : not_made;
}

static const char *set_mode(struct editor *editor, const char *to)
{
	enum policy_mode mode;

	if (!policy_mode_parse(to, &mode))
		return "There is no such mode.";
	return talk_set_mode(editor->talk, mode) == CODE_DONE ? NULL : not_made;
}

static const char *set_agent(struct editor *editor, const char *to)
{
	const char *failed;

	if (strcmp(to, editor->setup->agent) == 0)
		return NULL;
	if (value_member(editor->setup->agents, to) == NULL)
		return "There is no such agent.";
	failed = change_hands(editor, to);
	if (failed == NULL)
		tell_model(editor,
			   "The person goes on with the agent %: from here on its tools and "
			   "its rights hold, in a new cell; what ran in the old one has ended.",
			   to);
	return failed;
}

/* Go on with the model TO; NULL: the same name, as the setup has it asked now. */
static bool change_model(struct editor *editor, const char *to)
{
	struct model_options model;
	struct err err = {0};

	if (!model_of(editor, to, editor->setup, &model, &err)) {
		(void)verb_complain(CODE_FAILED, "%s", err.text);
		return false;
	}
	return talk_change(editor->talk, NULL, &model) == CODE_DONE;
}

static const char *set_model(struct editor *editor, const char *to)
{
	if (!change_model(editor, to))
		return "The model was not changed; the log of glovebox says why.";
	free(editor->model);
	editor->model = memory_copy(to);
	return NULL;
}

static const char *set_thinking(struct editor *editor, const char *to)
{
	const struct model_level *level = model_level_find(to);
	const struct model_level *before = editor->setup->thinking;

	if (!talk_has_levels(editor->talk))
		return "This model has no levels of thinking.";
	if (level == NULL)
		return "There is no such level.";
	setup_set_thinking(editor->setup, level);
	if (!change_model(editor, NULL)) {
		setup_set_thinking(editor->setup, before != NULL ? before : model_levels);
		return not_made;
	}
	/* Setups that are made later have it from the options. */
	options_set(&editor->options, "thinking", level->name);
	return NULL;
}

/* Commands of the program itself. */

static void say_text(struct str text)
{
	auto_value struct value *line = new_line("says");

	value_set_str(line, "text", text);
	say(line);
}

static void show_changes(const struct editor *editor)
{
	struct buf patch, text;

	buf_init(&patch, PATCH_BYTES_MAX);
	buf_init(&text, SHOWN_MAX);
	if (talk_diff(editor->talk, &patch)) {
		/* Lines of a patch begin with a sign, so none of them ends the block. */
		(void)buf_adds(&text, "```diff\n");
		(void)buf_addstr(&text, str_part(buf_str(&patch), 0, SHOWN_MAX / 2));
		(void)buf_end_line(&text);
		(void)buf_adds(&text, "```");
	} else {
		(void)buf_addstr(&text, buf_str(&patch));
	}
	say_text(buf_str(&text));
	buf_fini(&text);
	buf_fini(&patch);
}

static void undo(const struct editor *editor, const char *number)
{
	struct tool_result result;
	uint64_t step = 0;

	if (number[0] != '\0' &&
	    (!text_parse_count(number, UINT32_MAX, &step, NULL) || step == 0)) {
		say_text(STR("That is no step; `glovebox undo --list` names them."));
		return;
	}
	tool_result_init(&result);
	session_undo(talk_session(editor->talk), (uint32_t)step, &result);
	say_text(str_trim(buf_str(&result.text)));
	if (result.status == RESULT_DONE)
		(void)talk_tell_undone(editor->talk, &result, NULL);
	tool_result_fini(&result);
}

/* Is TEXT a command of the program itself? Then carry it out. */
static bool take_command(const struct editor *editor, const char *text)
{
	struct str rest = str_trim(str_of(text)), name = {0}, more;

	if (!str_starts(rest, STR("/")))
		return false;
	rest = str_part(rest, 1, SIZE_MAX);
	(void)str_next_word(&rest, &name);
	for (const struct acp_command *command = acp_commands; command->name != NULL;
	     command++) {
		more = str_trim(rest);
		if (!str_is(name, command->name) || (command->hint == NULL && more.size > 0))
			continue;
		if (command->hint == NULL) {
			show_changes(editor);
		} else {
			auto_free char *number = memory_copy_str(more);

			undo(editor, number);
		}
		return true;
	}
	return false;
}

/* For mentions_attach_files: the text of the file PATH that the editor has not saved. */
static void add_unsaved(void *context, const char *path, struct buf *text)
{
	auto_value struct value *arguments = value_new_object();
	struct hook_answer answer;
	struct touched touched = {.editor = context,
				  .arguments = arguments,
				  .answer = &answer};

	hook_answer_init(&answer);
	touch(&touched, path);
	(void)buf_addstr(text, buf_str(&answer.shown));
	hook_answer_fini(&answer);
}

/* One turn with TEXT, or with what it calls. NULL, or why it failed. */
static const char *take_prompt(struct editor *editor, const char *text,
			       const struct value *pictures, const struct value *links)
{
	const bool buffers = value_is_true(value_member(editor->request, "buffers"));
	struct agent_outcome outcome = {0};
	struct invocation invocation;
	int code = CODE_FAILED;

	editor->silence = 0;
	mentions_attach_files(editor->talk, links, buffers ? add_unsaved : NULL, editor);
	const enum invoked invoked = invoke(editor->talk, text, &invocation);
	if (invoked == INVOKED) {
		mentions_attach_once(editor->talk, buf_str(&invocation.prompt));
		code = invocation_turn(editor->talk, &invocation, pictures, &outcome);
	} else if (invoked == INVOKED_NOTHING) {
		code = talk_turn(editor->talk, text, pictures, &outcome);
	}
	invocation_fini(&invocation);
	if (invoked == INVOKED_FAILED)
		return "Nothing was sent; the log of glovebox says why.";
	return code != CODE_DONE && outcome.iterations == 0 &&
			       outcome.reason == AGENT_MODEL_FAILED
		       ? "The model did not answer; the log of glovebox says why."
		       : NULL;
}

static void do_one(struct editor *editor, const struct value *wish)
{
	const char *key = value_text(value_member(wish, "key"));
	const char *to = value_text(value_member(wish, "to"));
	const char *text = value_text(value_member(wish, "text"));
	const char *failed = NULL;

	if (text != NULL && take_command(editor, text)) {
		failed = NULL;
	} else if (text != NULL) {
		failed = take_prompt(editor, text, value_member(wish, "pictures"),
				     value_member(wish, "links"));
	} else if (key == NULL || to == NULL) {
		failed = "Nothing is wanted.";
	} else if (strcmp(key, "mode") == 0) {
		failed = set_mode(editor, to);
	} else if (strcmp(key, "agent") == 0) {
		failed = set_agent(editor, to);
	} else if (strcmp(key, "thought_level") == 0) {
		failed = set_thinking(editor, to);
	} else {
		failed = set_model(editor, to);
	}
	tell_idle(editor, failed);
}

/* The process itself. */

static void woken(struct watch *watch, short events)
{
	(void)watch;
	(void)events;
}

/* Wait until something is wanted, or a signal comes. */
static void wait_for_wish(const struct editor *editor)
{
	struct watch signals = {.fd = talk_interrupt_fd(editor->talk),
				.events = POLLIN,
				.ready = woken};
	struct loop *loop = session_loop(talk_session(editor->talk));

	loop_add(loop, &signals);
	loop_turn(loop, CLOCK_NEVER);
	loop_remove(&signals);
}

/* The next thing that the editor wants; NULL: nothing. The caller frees it. */
static struct value *take_wish(struct editor *editor)
{
	struct value *wish;

	if (editor->done == value_count(editor->queue)) {
		value_free(editor->queue);
		editor->queue = value_new_array();
		editor->done = 0;
		return NULL;
	}
	wish = value_item(editor->queue, editor->done++);
	return value_ref(wish);
}

static int serve(struct editor *editor)
{
	tell_idle(editor, NULL);
	while (!editor->over && !talk_is_over(editor->talk)) {
		auto_value struct value *wish = take_wish(editor);

		if (wish != NULL) {
			do_one(editor, wish);
			continue;
		}
		wait_for_wish(editor);
		/* Without a wish, a prompt that was cancelled had ended before the signal. */
		if (editor->done == value_count(editor->queue))
			talk_calm(editor->talk);
	}
	return talk_signal(editor->talk) != 0 ? CODE_SIGNAL + talk_signal(editor->talk)
					      : CODE_DONE;
}

/* Take the options of the words in the request, and what the stored session had. */
static bool take_options(struct editor *editor, struct err *err)
{
	const struct value *list = value_member(editor->request, "words");
	const char **words = memory_array(value_count(list) + 1, sizeof(*words));
	static const char *const stored[] = {"agent", "model", "mode"};
	bool fine;

	for (size_t i = 0; i < value_count(list); i++)
		words[i] = value_text(value_item(list, i));
	fine = options_parse(&editor->options, verb_acp.options, words, false, err);
	free(words);
	for (size_t i = 0; fine && i < sizeof(stored) / sizeof(stored[0]); i++) {
		const char *text = value_text(value_member(editor->request, stored[i]));

		if (text != NULL)
			options_fill(&editor->options, stored[i], text);
	}
	return fine;
}

static int open_talk(struct editor *editor)
{
	const bool buffers = value_is_true(value_member(editor->request, "buffers"));
	const struct agent_hooks hooks = {.ask = before, .context = editor};
	struct talk_options options = {
		.json = true,
		.answers = true,
		.answers_forms = true,
		.kept = true,
		.resume = value_text(value_member(editor->request, "resume")),
		.heard = heard,
		.remake = remake,
		.taken = taken,
		.context = editor,
		.hooks = buffers ? &hooks : NULL,
	};
	struct err err = {0};

	editor->setup = make_setup(editor, options_text(&editor->options, "agent"), NULL);
	if (editor->setup == NULL)
		return CODE_FAILED;
	if (!model_of(editor, NULL, editor->setup, &options.model, &err) ||
	    !talk_model_is_named(&options.model, &err)) {
		auto_value struct value *line = new_line("keyless");

		say(line);
		return verb_complain(CODE_FAILED, "%s", err.text);
	}
	return talk_open(&options, editor->setup, &editor->talk);
}

static int work(const struct value *request)
{
	struct editor editor = {
		.request = request,
		.queue = value_new_array(),
		.known = value_new_object(),
		.answered = true,
	};
	struct err err = {0};
	int code = CODE_DONE;

	if (!take_options(&editor, &err))
		code = verb_complain(CODE_USAGE, "%s", err.text);
	if (code == CODE_DONE)
		code = open_talk(&editor);
	if (code == CODE_DONE)
		code = serve(&editor);
	talk_close(editor.talk);
	if (editor.setup != NULL)
		setup_fini(editor.setup);
	free(editor.setup);
	options_fini(&editor.options);
	value_free(editor.queue);
	value_free(editor.known);
	value_free(editor.text);
	free(editor.model);
	return code;
}

bool editor_role(int argc, char **argv, int *code)
{
	auto_value struct value *request = NULL;
	int fds[ACP_PROCESS_ARGUMENTS - 1];

	if (argc == 0 || strcmp(argv[0], ACP_PROCESS_ROLE) != 0)
		return false;
	*code = delegated_begin(argc, argv, fds, ACP_PROCESS_ARGUMENTS - 1, &request);
	if (*code == CODE_DONE)
		*code = work(request);
	return true;
}

/* `glovebox acp`: the process that speaks with the editor. */

/* For acp_options: would a session with these OPTIONS find a model? */
static bool is_ready(const void *context, struct err *err)
{
	const struct options *options = context;
	const struct setup_flags flags = {.workspace = "/"};
	struct model_options model;
	struct setup setup;
	bool ready;

	ready = setup_open(&setup, options, &flags) == CODE_DONE
			? talk_model(options_text(options, "model"), &setup.role, &model,
				     err) &&
				  talk_model_is_named(&model, err)
			: err_set(err, EINVAL,
				  "The configuration cannot be used; the log of glovebox says "
				  "why.");
	setup_fini(&setup);
	return ready;
}

static bool forget_logins(const void *context, struct err *err)
{
	size_t count;

	(void)context;
	return logins_forget(NULL, &count, err);
}

static int acp_verb_run(const struct options *options, FILE *out)
{
	auto_value struct value *request = value_new_object();
	struct interrupt *interrupt = NULL;
	struct acp_options serving = {
		.loop = loop_new(),
		.input = STDIN_FILENO,
		.output = STDOUT_FILENO,
		.version = GLOVEBOX_VERSION,
		.request = request,
		.ready = is_ready,
		.logout = forget_logins,
		.context = options,
	};
	struct err err = {0};
	int code = CODE_DONE;

	(void)out;
	/* The keys of services are in our environment, and go to the process of each session. */
	setup_hide_memory();
	value_set(request, "environment", orchestrate_environment());
	value_set(request, "words", options_words(options));
	if (!interrupt_open(&interrupt, &err) || !interrupt_start(interrupt, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	serving.stop_fd = interrupt_fd(interrupt);
	if (code == CODE_DONE && isatty(STDIN_FILENO))
		(void)fputs("glovebox: speaking ACP on standard input and output, for an editor; "
			    "see: glovebox acp --help\n",
			    stderr);
	if (code == CODE_DONE && !acp_run(&serving, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE && interrupt_signal(interrupt) != 0)
		code = CODE_SIGNAL + interrupt_signal(interrupt);
	interrupt_close(interrupt);
	loop_free(serving.loop);
	return code;
}

/* clang-format off */
static const struct option_row acp_verb_options[] = {
	RUN_OPTION_ROWS_MODEL,
	RUN_OPTION_ROWS_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};
/* clang-format on */

static const char acp_verb_help[] =
	"Be the agent of an editor, by the Agent Client Protocol: JSON, a message a line,\n"
	"on standard input and output. An editor starts this command by itself, and shows\n"
	"the conversation, each call with its diff, and what the agent asks.\n\n"
	"Each session has a cell of its own for its folder, with the rights of the agent.\n"
	"Texts that the editor has not saved are read, and never overwritten. The editor\n"
	"chooses mode, model and agent; the options say what it begins with. Sessions are\n"
	"those of glovebox sessions, and an editor can go on with them.\n\n"
	"docs/editors.md has the entry for Zed, JetBrains, Neovim and Emacs.\n\n"
	"Exit codes: 0 the end of the input, 1 failed, 128+n ended by signal n.";

const struct verb verb_acp = {
	.name = "acp",
	.summary = "be the agent of an editor (Agent Client Protocol)",
	.arguments = "",
	.help = acp_verb_help,
	.example = "  glovebox acp --model qwen3-coder --agent coder",
	.options = acp_verb_options,
	.run = acp_verb_run,
};
