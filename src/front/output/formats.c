/* formats: translates events into the lines of Claude Code's forms. */

#include "front/output/formats.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "front/verb.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* A run that makes so many calls at the same time is none that we know. */
	CALLS_MAX = 1000,
	CALL_NAME_MAX = 256,
};

static const char *const names[] = {
	[FORMATS_TEXT] = "text",
	[FORMATS_JSON] = "json",
	[FORMATS_STREAM] = "stream-json",
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* The reasons for the end of a turn that have a name of their own there. */
static const struct {
	const char *reason, *subtype;
} ends[] = {
	{"stopped", "success"},
	{"patch", "success"},
	{"plan", "success"},
	{"iterations", "error_max_turns"},
	{"money", "error_max_budget_usd"},
};

/* The ends of an answer, by `finish` of EVENT_MESSAGE. */
static const struct {
	const char *finish, *reason;
} finishes[] = {
	{"stop", "end_turn"},   {"calls", "tool_use"},    {"length", "max_tokens"},
	{"refused", "refusal"}, {"paused", "pause_turn"},
};

struct formats {
	enum formats_kind kind;
	int fd;
	int gone; /* errno of the write that failed; nothing is written after it. Or 0 */
	struct buf line;
	char *session, *model;
	struct value *tools, *calls, *denials; /* calls: "SESSION ID" -> the part */
	char *said;                            /* the last words of the agent, or NULL */
	char *note;          /* the last notice to the person, or NULL */
	struct value *ended; /* data of EVENT_TURN_ENDED, or NULL */
	int64_t began_ms;    /* monotonic */
	/* the wall time since which the service has been asked, and all such times */
	int64_t asked_ms, answer_ms;
};

bool formats_parse(const char *name, enum formats_kind *kind, struct err *err)
{
	for (size_t i = FORMATS_TEXT; i < NAMES; i++) {
		if (strcmp(name, names[i]) == 0) {
			*kind = (enum formats_kind)i;
			return true;
		}
	}
	return err_set(err, EINVAL,
		       "--output-format: no format \"%.40s\": text, json or stream-json",
		       name);
}

struct formats *formats_new(enum formats_kind kind, int fd)
{
	struct formats *formats = memory_alloc(sizeof(*formats));

	formats->kind = kind;
	formats->fd = fd;
	formats->began_ms = clock_now_ms();
	formats->session = memory_copy("");
	formats->model = memory_copy("");
	formats->tools = value_new_array();
	formats->calls = value_new_object();
	formats->denials = value_new_array();
	buf_init(&formats->line, EVENT_JSON_MAX);
	return formats;
}

void formats_free(struct formats *formats)
{
	if (formats == NULL)
		return;
	buf_fini(&formats->line);
	free(formats->session);
	free(formats->model);
	free(formats->said);
	free(formats->note);
	value_free(formats->tools);
	value_free(formats->calls);
	value_free(formats->denials);
	value_free(formats->ended);
	free(formats);
}

void formats_set_tools(struct formats *formats, const struct tool *const *tools,
		       const struct policy *policy)
{
	for (; *tools != NULL; tools++) {
		if (!(*tools)->internal && policy_has_tool(policy, (*tools)->name))
			value_append(formats->tools, value_new_text((*tools)->name));
	}
}

/* Write LINE, which is freed. */
static void write_line(struct formats *formats, struct value *take_line)
{
	struct err err;

	buf_clear(&formats->line);
	if (!value_print(take_line, 0, &formats->line) || !buf_addc(&formats->line, '\n'))
		formats->gone = E2BIG;
	if (formats->gone == 0 &&
	    !fd_write_all(formats->fd, formats->line.data, formats->line.size, &err))
		formats->gone = err.code;
	value_free(take_line);
}

static struct value *new_line(const struct formats *formats, const char *type,
			      const char *subtype)
{
	struct value *line = value_new_object();

	value_set_text(line, "type", type);
	if (subtype != NULL)
		value_set_text(line, "subtype", subtype);
	value_set_text(line, "session_id", formats->session);
	return line;
}

static void take_text(char **place, struct str text)
{
	free(*place);
	*place = memory_copy_str(text);
}

/* Their counts of input leave out what came from a cache or went into one. */
static struct value *usage_of(const struct value *usage)
{
	const int64_t cached = value_integer(value_member(usage, "cached"));
	const int64_t written = value_integer(value_member(usage, "cache_writes"));
	const int64_t input = value_integer(value_member(usage, "input"));
	struct value *made = value_new_object();

	value_set_integer(made, "input_tokens", input - cached - written);
	value_set_integer(made, "cache_creation_input_tokens", written);
	value_set_integer(made, "cache_read_input_tokens", cached);
	value_set_integer(made, "output_tokens",
			  value_integer(value_member(usage, "output")));
	return made;
}

static void begin(struct formats *formats, const struct value *data)
{
	struct value *line;

	take_text(&formats->session, value_str(value_member(data, "session")));
	take_text(&formats->model, value_str(value_member(data, "model")));
	if (formats->kind != FORMATS_STREAM)
		return;
	line = new_line(formats, "system", "init");
	value_set_str(line, "cwd", value_str(value_member(data, "workspace")));
	value_set(line, "tools", value_ref(formats->tools));
	value_set(line, "mcp_servers", value_new_array());
	value_set_text(line, "model", formats->model);
	value_set_text(line, "permissionMode", "default");
	value_set(line, "slash_commands", value_new_array());
	value_set_text(line, "apiKeySource", "none");
	write_line(formats, line);
}

static void name_call(const char *session, const char *call, char name[CALL_NAME_MAX])
{
	(void)snprintf(name, CALL_NAME_MAX, "%s %s", session, call != NULL ? call : "");
}

/* The arguments of a call as an object, which they may not be. */
static struct value *input_of(const struct value *part)
{
	struct value *input = NULL;

	if (value_parse(value_str(value_member(part, "arguments")), VALUE_REPAIR, &input,
			NULL) &&
	    value_kind(input) == VALUE_OBJECT)
		return input;
	value_free(input);
	return value_new_object();
}

/* PART of a message as a block of theirs; NULL: it has none. */
static struct value *block_of(const struct value *part)
{
	const struct str kind = value_str(value_member(part, "kind"));
	const struct str text = value_str(value_member(part, "text"));
	struct value *block = value_new_object();

	if (str_is(kind, "call")) {
		value_set_text(block, "type", "tool_use");
		value_set_str(block, "id", value_str(value_member(part, "call")));
		value_set_str(block, "name", value_str(value_member(part, "tool")));
		value_set(block, "input", input_of(part));
	} else if (str_is(kind, "thinking")) {
		value_set_text(block, "type", "thinking");
		value_set_str(block, "thinking", text);
		value_set_text(block, "signature", "");
	} else {
		value_set_text(block, "type", "text");
		value_set_str(block, "text", text);
	}
	return block;
}

static const char *stop_reason_of(struct str finish)
{
	for (size_t i = 0; i < sizeof(finishes) / sizeof(finishes[0]); i++) {
		if (str_is(finish, finishes[i].finish))
			return finishes[i].reason;
	}
	return "end_turn";
}

/* An event of a session: of the run's own, or of a delegate that works for its call PARENT. */
struct source {
	const char *session, *parent; /* PARENT NULL: the run's own */
	int64_t number;
};

static void set_parent(struct value *line, const struct source *source)
{
	value_set(line, "parent_tool_use_id",
		  source->parent != NULL ? value_new_text(source->parent)
					 : value_new_null());
}

/* The last words are those behind the last call, or else what a hand-over says. */
static void note_words(struct formats *formats, const struct value *parts)
{
	struct buf said;

	buf_init(&said, EVENT_JSON_MAX);
	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);

		if (str_is(value_str(value_member(part, "kind")), "text"))
			(void)buf_addstr(&said, value_str(value_member(part, "text")));
	}
	if (str_trim(buf_str(&said)).size > 0)
		take_text(&formats->said, buf_str(&said));
	buf_fini(&said);
}

static void message(struct formats *formats, const struct source *source,
		    const struct value *data)
{
	const struct value *parts = value_member(data, "parts");
	struct value *content = value_new_array(), *made = value_new_object(), *line;
	char id[32];

	if (value_count(formats->calls) > CALLS_MAX) {
		value_free(formats->calls);
		formats->calls = value_new_object();
	}
	for (size_t i = 0; i < value_count(parts); i++) {
		struct value *part = value_item(parts, i);
		char name[CALL_NAME_MAX];

		value_append(content, block_of(part));
		if (!str_is(value_str(value_member(part, "kind")), "call"))
			continue;
		name_call(source->session, value_text(value_member(part, "call")), name);
		value_set(formats->calls, name, value_ref(part));
	}
	if (source->parent == NULL)
		note_words(formats, parts);
	(void)snprintf(id, sizeof(id), "msg_%lld", (long long)source->number);
	value_set_text(made, "id", id);
	value_set_text(made, "type", "message");
	value_set_text(made, "role", "assistant");
	value_set_text(made, "model", formats->model);
	value_set(made, "content", content);
	value_set_text(made, "stop_reason",
		       stop_reason_of(value_str(value_member(data, "finish"))));
	value_set(made, "stop_sequence", value_new_null());
	value_set(made, "usage", usage_of(value_member(data, "usage")));
	line = new_line(formats, "assistant", NULL);
	value_set(line, "message", made);
	set_parent(line, source);
	if (formats->kind == FORMATS_STREAM)
		write_line(formats, line);
	else
		value_free(line);
}

/* The content of a result: its text, or a list when it has pictures. */
static struct value *content_of(const struct value *data)
{
	const struct value *items = value_member(data, "content");
	const struct str text = value_str(value_member(data, "text"));
	struct value *list = value_new_array(), *block = value_new_object();

	value_set_text(block, "type", "text");
	value_set_str(block, "text", text);
	value_append(list, block);
	for (size_t i = 0; i < value_count(items); i++) {
		const struct value *item = value_item(items, i);
		struct value *source = value_new_object();

		if (!str_is(value_str(value_member(item, "type")), "image")) {
			value_free(source);
			continue;
		}
		value_set_text(source, "type", "base64");
		value_set_str(source, "media_type",
			      value_str(value_member(item, "mimeType")));
		value_set_str(source, "data", value_str(value_member(item, "data")));
		block = value_new_object();
		value_set_text(block, "type", "image");
		value_set(block, "source", source);
		value_append(list, block);
	}
	if (value_count(list) > 1)
		return list;
	value_free(list);
	return value_new_str(text);
}

static void note_denial(struct formats *formats, const struct value *part, const char *call)
{
	struct value *denial = value_new_object();

	value_set_str(denial, "tool_name", value_str(value_member(part, "tool")));
	value_set_text(denial, "tool_use_id", call);
	value_set(denial, "tool_input", input_of(part));
	value_append(formats->denials, denial);
}

/* The summary of a patch that was handed over is what the agent says last. */
static void note_handover(struct formats *formats, const struct value *part)
{
	auto_value struct value *input = input_of(part);
	const struct str summary = value_str(value_member(input, "summary"));

	if (str_is(value_str(value_member(part, "tool")), "generate_patch") &&
	    str_trim(summary).size > 0)
		take_text(&formats->said, summary);
}

static void result(struct formats *formats, const struct source *source, const char *call,
		   const struct value *data)
{
	const struct str status = value_str(value_member(data, "status"));
	struct value *block, *content, *made, *line;
	const struct value *part;
	const struct str plan =
		value_str(value_member(value_member(data, "details"), "plan"));
	char name[CALL_NAME_MAX];

	name_call(source->session, call, name);
	part = value_member(formats->calls, name);
	/* The program's own calls have no part in the conversation. */
	if (part == NULL)
		return;
	if (str_is(status, "denied"))
		note_denial(formats, part, call);
	if (str_is(status, "done") && source->parent == NULL)
		note_handover(formats, part);
	/* In mode plan the plan is the answer. */
	if (plan.size > 0 && source->parent == NULL)
		take_text(&formats->said, plan);
	value_remove(formats->calls, name);
	if (formats->kind != FORMATS_STREAM)
		return;
	block = value_new_object();
	value_set_text(block, "type", "tool_result");
	value_set_text(block, "tool_use_id", call);
	value_set(block, "content", content_of(data));
	value_set_boolean(block, "is_error", !str_is(status, "done"));
	content = value_new_array();
	value_append(content, block);
	made = value_new_object();
	value_set_text(made, "role", "user");
	value_set(made, "content", content);
	line = new_line(formats, "user", NULL);
	value_set(line, "message", made);
	set_parent(line, source);
	write_line(formats, line);
}

static void compacted(struct formats *formats, const struct value *data)
{
	struct value *line, *about;

	if (formats->kind != FORMATS_STREAM)
		return;
	about = value_new_object();
	value_set_text(about, "trigger", "auto");
	value_set_integer(about, "pre_tokens", value_integer(value_member(data, "tokens")));
	line = new_line(formats, "system", "compact_boundary");
	value_set(line, "compact_metadata", about);
	write_line(formats, line);
}

static void child(struct formats *formats, const char *call, const struct value *data)
{
	const struct value *event = value_member(data, "event_of");
	const struct source source = {
		.session = value_text(value_member(data, "session")),
		.parent = call,
		.number = value_integer(value_member(event, "n")),
	};
	const char *kind = value_text(value_member(event, "event"));

	if (kind == NULL || source.session == NULL || call == NULL)
		return;
	if (strcmp(kind, event_kind_name(EVENT_MESSAGE)) == 0)
		message(formats, &source, event);
	if (strcmp(kind, event_kind_name(EVENT_TOOL_ENDED)) == 0)
		result(formats, &source, value_text(value_member(event, "call")), event);
}

static bool take(void *context, const struct event *event, struct err *err)
{
	struct formats *formats = context;
	const struct source source = {.session = "", .number = event->number};

	(void)err;
	switch (event->kind) {
	case EVENT_SESSION_BEGAN:
	case EVENT_SESSION_RESUMED:
		begin(formats, event->data);
		break;
	case EVENT_MESSAGE:
		if (event->wall_ms > formats->asked_ms)
			formats->answer_ms += event->wall_ms - formats->asked_ms;
		message(formats, &source, event->data);
		break;
	case EVENT_TOOL_ENDED:
		result(formats, &source, event->call, event->data);
		break;
	case EVENT_CHILD:
		child(formats, event->call, event->data);
		break;
	case EVENT_NOTICE:
		if (!value_is_true(value_member(event->data, "to_model")))
			take_text(&formats->note, event->text);
		break;
	case EVENT_COMPACTED:
		compacted(formats, event->data);
		break;
	case EVENT_TURN_ENDED:
		value_free(formats->ended);
		formats->ended = value_copy(event->data);
		break;
	default:
		break;
	}
	/* The service is asked behind a kept event, and only fragments come before its answer. */
	if (event_is_kept(event->kind))
		formats->asked_ms = event->wall_ms;
	return true;
}

struct event_sink formats_sink(struct formats *formats)
{
	return (struct event_sink){.event = take, .context = formats};
}

/* Did the agent itself end its turn? */
static bool is_whole(const struct formats *formats)
{
	const struct str reason = value_str(value_member(formats->ended, "reason"));

	return str_is(reason, "stopped") || str_is(reason, "patch");
}

static const char *subtype_of(const struct formats *formats, int code)
{
	const struct str reason = value_str(value_member(formats->ended, "reason"));

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (str_is(reason, ends[i].reason) &&
		    (code == CODE_DONE) == (strcmp(ends[i].subtype, "success") == 0))
			return ends[i].subtype;
	}
	return "error_during_execution";
}

static void write_result(struct formats *formats, int code, const char *said)
{
	const struct value *usage = value_member(formats->ended, "usage");
	const bool priced = value_is_true(value_member(usage, "money_known"));
	struct value *line = new_line(formats, "result", subtype_of(formats, code));

	value_set_boolean(line, "is_error", code != CODE_DONE);
	value_set_integer(line, "duration_ms", clock_now_ms() - formats->began_ms);
	value_set_integer(line, "duration_api_ms", formats->answer_ms);
	value_set_integer(line, "num_turns",
			  value_integer(value_member(formats->ended, "iterations")));
	value_set_text(line, "result", said);
	value_set(line, "total_cost_usd",
		  priced ? value_new_real(value_number(value_member(usage, "money")))
			 : value_new_null());
	value_set(line, "usage", usage_of(usage));
	value_set(line, "permission_denials", value_ref(formats->denials));
	write_line(formats, line);
}

int formats_end(struct formats *formats, int code)
{
	static const char unbegun[] =
		"The run could not begin or go on; standard error says why.";
	const char *said = formats->said;

	/* The turn itself says in a notice why it ended early. */
	if (formats->ended != NULL && !is_whole(formats) && formats->note != NULL) {
		said = formats->note;
		(void)verb_complain(code, "%s", said);
	} else if (code != CODE_DONE && formats->ended == NULL) {
		said = unbegun;
	}
	if (said == NULL)
		said = "";
	if (formats->kind != FORMATS_TEXT) {
		write_result(formats, code, said);
	} else if (code == CODE_DONE) {
		buf_clear(&formats->line);
		(void)buf_addstr(&formats->line, str_trim(str_of(said)));
		(void)buf_addc(&formats->line, '\n');
		struct err err;

		if (!fd_write_all(formats->fd, formats->line.data, formats->line.size, &err))
			formats->gone = err.code;
	}
	if (code != CODE_DONE || formats->gone == 0 || formats->gone == EPIPE)
		return code;
	return verb_complain(CODE_FAILED,
			     "the work is done, but not all of it was printed: %s",
			     strerror(formats->gone));
}
