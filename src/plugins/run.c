/*
 * run: in the worker: runs one subcommand of one script, and then its `error` when the
 * run has failed.
 */

#include "plugins/run.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "plugins/describe.h"
#include "process/follow.h"
#include "tool/call.h"
#include "tool/limits.h"
#include "tool/tool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PLUGIN_CHANNEL_MESSAGES = 10000,
	PLUGIN_CHANNEL_FAULTS = 5,   /* the most faults that are reported */
	PLUGIN_CHANNEL_TEXT = 50000, /* bytes of all texts in the answer */
	PLUGIN_QUESTIONS_AT_ONCE = 8,
};

/* Shorter secrets would be found everywhere. */
enum { PLUGIN_SECRET_MIN = 4 };
#define PLUGIN_REDACTED "[redacted]"

/* The order: what the front tells the worker. */

/* The words by which scripts know the subcommands. */
static const char *const subcommands[] = {
	[RUN_SCHEMA] = "schema", [RUN_PREVIEW] = "preview", [RUN_ERROR] = "error",
	[RUN_TEST] = "test",     [RUN_WORK] = "run",
};

static const struct field argument_fields[] = {
	FIELD(struct plugin_argument, name),
	FIELD(struct plugin_argument, required),
	FIELD(struct plugin_argument, initial, .optional = true),
	{0},
};

static const struct field order_fields[] = {
	FIELD(struct run_order, subcommand, .max = RUN_WORK),
	FIELD(struct run_order, code),
	FIELD(struct run_order, late_s),
	FIELD(struct run_order, id, .optional = true),
	FIELD(struct run_order, file),
	FIELD(struct run_order, copy),
	FIELD(struct run_order, dialect, .max = PLUGIN_TOOLBOX),
	FIELD(struct run_order, mode, .max = PLUGIN_MODES - 1),
	FIELD(struct run_order, folder, .optional = true),
	FIELD(struct run_order, python, .optional = true),
	FIELD(struct run_order, timeout_s),
	FIELD(struct run_order, stream_stderr),
	FIELD_LIST(struct run_order, arguments, argument_count, "arguments", argument_fields),
	FIELD(struct run_order, environment),
	FIELD(struct run_order, secrets),
	{0},
};

static struct value *order_print(const struct run_order *order)
{
	const bool given = order->subcommand == RUN_WORK || order->subcommand == RUN_ERROR;
	auto_value struct value *none = value_new_array();
	struct run_order said = *order;

	if (!given || said.environment == NULL)
		said.environment = none;
	if (!given || said.secrets == NULL)
		said.secrets = none;
	return fields_print(order_fields, &said);
}

bool run_order_parse(const struct value *carried, struct arena *arena,
		     struct run_order *order)
{
	*order = (struct run_order){0};
	return fields_read(carried, order_fields, order, arena, NULL) &&
	       value_kind(order->environment) == VALUE_ARRAY &&
	       value_kind(order->secrets) == VALUE_ARRAY;
}

struct tool run_order_tool(const struct run_order *order, const struct value *parameters)
{
	return (struct tool){
		.name = order->id != NULL ? order->id : plugin_tool.name,
		.params = parameters != NULL ? NULL : plugin_tool.params,
		.schema = parameters,
		.carrier = plugin_tool.name,
		.carried = order_print(order),
		.effects = EFFECT_RUNS,
		.timeout_s = order->timeout_s + PLUGIN_AFTER_S,
		.internal = true,
	};
}

/* The words and the input of a script, for each way in which scripts take arguments. */

struct building {
	const struct run_order *order;
	struct arena *arena;
	const char **argv;
	size_t max, count;
};

static bool add_word(struct building *building, const char *name, struct str word,
		     struct err *err)
{
	if (word.size > 0 && memchr(word.data, '\0', word.size))
		return err_set(err, EINVAL, "\"%s\" may not hold a NUL character", name);
	if (word.size > KERNEL_ARGUMENT_MAX)
		return err_set(err, E2BIG,
			       "\"%s\" is %zu bytes long, and one argument of a program is at most "
			       "%d: send less (or its author sets args_mode to \"json\", which has "
			       "no such limit)",
			       name, word.size, KERNEL_ARGUMENT_MAX);
	if (building->count >= building->max)
		return err_set(err, E2BIG, "over %zu words", building->max);
	building->argv[building->count++] = arena_copy(building->arena, word);
	return true;
}

/*
 * Add a text as it is, and any other value as compact JSON: true, 5, 0.1, [1,2]. A number
 * without a fraction is written without one: 3.0 fits an integer, and scripts look for
 * digits.
 */
static bool add_value(struct building *building, const char *name,
		      const struct value *value, struct err *err)
{
	struct buf text;
	bool ok;

	if (value_kind(value) == VALUE_STRING)
		return add_word(building, name, value_str(value), err);
	buf_init(&text, KERNEL_ARGUMENT_MAX);
	ok = value_print(value, 0, &text) ||
	     err_set(err, E2BIG,
		     "\"%s\" is over %d bytes as JSON, more than one argument of a program can "
		     "be: send less (or its author sets args_mode to \"json\")",
		     name, KERNEL_ARGUMENT_MAX);
	if (value_kind(value) == VALUE_REAL && str_ends(buf_str(&text), STR(".0")))
		buf_truncate(&text, text.size - strlen(".0"));
	ok = ok && add_word(building, name, buf_str(&text), err);
	buf_fini(&text);
	return ok;
}

static bool add_flag(struct building *building, const char *name,
		     const struct value *value, struct err *err)
{
	struct buf flag;
	bool negative = value_kind(value) == VALUE_BOOLEAN && !value_is_true(value);
	bool ok;

	if (value == NULL || value_kind(value) == VALUE_NULL)
		return true;
	buf_init(&flag, KERNEL_ARGUMENT_MAX);
	(void)buf_addf(&flag, "--%s%s", negative ? "no-" : "", name);
	ok = add_word(building, name, buf_str(&flag), err);
	buf_fini(&flag);
	return ok && (value_kind(value) == VALUE_BOOLEAN ||
		      add_value(building, name, value, err));
}

static bool is_in_order(const struct run_order *order, const char *name)
{
	bool found = false;

	for (size_t i = 0; i < order->argument_count; i++)
		found = found || strcmp(order->arguments[i].name, name) == 0;
	return found;
}

static bool add_flags(struct building *building, const struct value *arguments,
		      struct err *err)
{
	const struct run_order *order = building->order;

	for (size_t i = 0; i < order->argument_count; i++) {
		const char *name = order->arguments[i].name;

		if (!add_flag(building, name, value_member(arguments, name), err))
			return false;
	}
	/*
	 * Add the arguments that the schema allows without naming them. Such a name may
	 * hold no blank: one word is one flag.
	 */
	for (void *at = value_first(arguments); at; at = value_next(arguments, at)) {
		const char *name = value_key(at);

		if (is_in_order(order, name))
			continue;
		if (name[0] == '\0' || strpbrk(name, " \t\r\n=") != NULL)
			return err_set(err, EINVAL,
				       "\"%.64s\" cannot be the name of a flag", name);
		if (!add_flag(building, name, value_at(at), err))
			return false;
	}
	return true;
}

static const struct value *position_value(const struct plugin_argument *position,
					  const struct value *arguments)
{
	const struct value *given = value_member(arguments, position->name);

	return value_kind(given) != VALUE_NULL ? given : position->initial;
}

/*
 * Add the arguments by position. A missing value before a given one becomes an empty
 * word.
 */
static bool add_positions(struct building *building, const struct value *arguments,
			  struct err *err)
{
	const struct plugin_argument *positions = building->order->arguments;
	size_t last = building->order->argument_count;

	while (last > 0 && !positions[last - 1].required &&
	       position_value(&positions[last - 1], arguments) == NULL)
		last--;
	for (size_t i = 0; i < last; i++) {
		const char *name = positions[i].name;
		const struct value *value = position_value(&positions[i], arguments);

		if (value == NULL && positions[i].required)
			return err_set(err, EINVAL, "\"%s\" is missing", name);
		if (value == NULL ? !add_word(building, name, STR(""), err)
				  : !add_value(building, name, value, err))
			return false;
	}
	return true;
}

/*
 * Does TEXT have a character that the line reader of any language takes for the end of a
 * line (or of the text)?
 */
static bool ends_lines(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		const unsigned char *at = (const unsigned char *)text.data + i;
		size_t left = text.size - i;

		if ((*at < 0x20 && *at != '\t') ||
		    (left > 1 && at[0] == 0xc2 && at[1] == 0x85) ||
		    (left > 2 && at[0] == 0xe2 && at[1] == 0x80 &&
		     (at[2] == 0xa8 || at[2] == 0xa9)))
			return true;
	}
	return false;
}

static bool add_value_line(const char *name, const struct value *value, struct buf *lines,
			   struct err *err)
{
	if (value == NULL || value_kind(value) == VALUE_NULL)
		return true;
	if (value_kind(value) == VALUE_STRING && ends_lines(value_str(value)))
		return err_set(err, EINVAL,
			       "\"%.64s\" may not hold a line end or a control character: this "
			       "tool reads one line for each argument",
			       name);
	(void)buf_addf(lines, "%s: ", name);
	if (value_kind(value) == VALUE_STRING)
		(void)buf_addstr(lines, value_str(value));
	else
		(void)value_print(value, 0, lines);
	return buf_addc(lines, '\n') || err_set(err, E2BIG, "the arguments are too large");
}

/*
 * Append ARGUMENTS as "name: value" lines. A value that would be read as another line is
 * refused.
 */
static bool add_lines(const struct run_order *order, const struct value *arguments,
		      struct buf *lines, struct err *err)
{
	for (size_t i = 0; i < order->argument_count; i++) {
		const char *name = order->arguments[i].name;

		if (!add_value_line(name, value_member(arguments, name), lines, err))
			return false;
	}
	return true;
}

bool run_arguments_build(const struct run_order *order, const struct value *arguments,
			 struct arena *arena, const char **argv, size_t max,
			 size_t *count, struct buf *input, struct err *err)
{
	struct building building = {order, arena, argv, max, *count};
	bool ok = false;

	switch (order->mode) {
	case PLUGIN_FLAGS:
		ok = add_flags(&building, arguments, err);
		break;
	case PLUGIN_POSITIONAL:
		ok = add_positions(&building, arguments, err);
		break;
	case PLUGIN_TOOLBOX_TEXT:
		ok = add_lines(order, arguments, input, err);
		break;
	case PLUGIN_MODES:
		break;
	case PLUGIN_JSON:
	case PLUGIN_TOOLBOX_JSON:
		ok = (order->mode != PLUGIN_JSON ||
		      add_word(&building, "", STR("--args-json"), err)) &&
		     (value_print(arguments, 0, input) ||
		      err_set(err, E2BIG, "the arguments are too large"));
		break;
	}
	*count = building.count;
	return ok;
}

/* Questions of a script. */

/* Is TYPE, of a line, that of a question? */
static bool is_question(struct str type)
{
	return str_among("question sampling roots questions", type);
}

static bool need(bool fine, const char *what, struct err *err)
{
	return fine || err_set(err, EINVAL, "needs %s", what);
}

static bool is_text(const struct value *value)
{
	return value_kind(value) == VALUE_STRING;
}

/* One request, with the note whether the call can do without its answer. */
static struct value *request_of(const struct value *line, const char **kind, struct err *err)
{
	const struct str type = value_str(value_member(line, "type"));
	const struct value *asked = value_member(line, "request");
	const bool by_url = value_member(line, "url") != NULL;
	struct value *request;

	if (str_is(type, "question")) {
		*kind = by_url ? "url" : "form";
		if (!need(is_text(value_member(line, "message")), "\"message\"", err))
			return NULL;
		request = value_new_object();
		value_set_members(request, line,
				  (const char *const[]){"message",
							by_url ? "url" : "schema", NULL});
	} else if (str_is(type, "sampling")) {
		*kind = CALL_ASK_SAMPLING;
		if (!need(value_kind(asked) == VALUE_OBJECT, "the object \"request\"", err))
			return NULL;
		request = value_copy(asked);
	} else {
		*kind = "roots";
		if (!str_is(type, "roots")) {
			(void)err_set(err, EINVAL,
				      "\"type\" must be question, sampling or roots");
			return NULL;
		}
		request = value_new_object();
	}
	value_set_members(request, line, (const char *const[]){"required", NULL});
	return request;
}

static struct value *requests_of(const struct value *line, struct err *err)
{
	const struct value *asked = value_member(line, "requests");
	auto_value struct value *requests = value_new_object();
	struct value *request;

	if (value_kind(asked) != VALUE_OBJECT || value_count(asked) == 0 ||
	    value_count(asked) > PLUGIN_QUESTIONS_AT_ONCE) {
		(void)err_set(err, EINVAL,
			      "needs the object \"requests\" with 1 to %d questions",
			      PLUGIN_QUESTIONS_AT_ONCE);
		return NULL;
	}
	for (void *at = value_first(asked); at != NULL; at = value_next(asked, at)) {
		const char *kind;
		struct value *one = request_of(value_at(at), &kind, err);

		if (one == NULL) {
			(void)err_while(err, "\"%.64s\"", value_key(at));
			return NULL;
		}
		value_set_text(one, "kind", kind);
		value_set(requests, value_key(at), one);
	}
	request = value_new_object();
	value_set(request, "requests", value_ref(requests));
	return request;
}

bool plugin_question_read(const struct value *line, struct plugin_question *question,
			  struct err *err)
{
	const bool several = str_is(value_str(value_member(line, "type")), "questions");
	const struct value *id = value_member(line, "id");
	const char *kind = "several";
	struct value *request =
		several ? requests_of(line, err) : request_of(line, &kind, err);

	if (request == NULL)
		return false;
	/* A client tells its answers apart by this key. */
	if (!several && is_text(id))
		value_set(request, "key", value_copy(id));
	*question = (struct plugin_question){kind, request, value_copy(id)};
	return true;
}

/* Turns the lines of a script into content, events and questions. */

enum {
	READ_BYTES = 64 << 10,
	ANSWERS_PIPE = 1 << 20, /* bytes that a script may leave unread */
	LINE_MAX_BYTES = RESULT_CONTENT_BYTES_MAX,
	TEXT_LEAST = 100,
};

static bool is_base64(const struct value *value)
{
	return is_text(value) && buf_base64_is_valid(value_str(value));
}

/* Is ITEM in a form that MCP's clients take? */
static bool item_is_sound(const struct value *item, struct str type, struct err *err)
{
	const struct value *resource = value_member(item, "resource");

	if (str_is(type, "text"))
		return need(is_text(value_member(item, "text")), "\"text\"", err);
	if (str_is(type, "image") || str_is(type, "audio"))
		return need(is_base64(value_member(item, "data")), "\"data\" in base64",
			    err) &&
		       need(is_text(value_member(item, "mimeType")), "\"mimeType\"", err);
	if (str_is(type, "resource_link"))
		return need(is_text(value_member(item, "uri")) &&
				    is_text(value_member(item, "name")),
			    "\"uri\" and \"name\"", err);
	return need(is_text(value_member(resource, "uri")), "\"resource\" with \"uri\"",
		    err) &&
	       need(is_text(value_member(resource, "text")) ||
			    is_base64(value_member(resource, "blob")),
		    "\"resource\" with \"text\", or \"blob\" in base64", err);
}

static bool take_progress(struct plugin_channel *channel, const struct value *line,
			  struct err *err)
{
	const struct value *progress = value_member(line, "progress");
	const struct value *total = value_member(line, "total");

	if (!need(value_is_number(progress), "the number \"progress\"", err))
		return false;
	call_progress(channel->call, value_number(progress),
		      value_is_number(total) ? value_number(total) : -1,
		      value_text(value_member(line, "message")));
	return true;
}

static bool take_log(struct plugin_channel *channel, const struct value *line,
		     struct err *err)
{
	const struct value *data = value_member(line, "data");
	const char *level = value_text(value_member(line, "level"));
	struct buf text;

	if (!need(data != NULL, "\"data\"", err))
		return false;
	buf_init(&text, READ_BYTES);
	if (is_text(data))
		(void)buf_addstr(&text, value_str(data));
	else
		(void)value_print(data, 0, &text);
	call_log(channel->call, level != NULL ? level : "info",
		 value_text(value_member(line, "logger")), buf_str(&text));
	buf_fini(&text);
	return true;
}

/*
 * Send ANSWER to the script, with the ID that the script gave its question. NULL: the
 * answer is "cancel", because the script waits for a line in any case.
 */
static void answer(struct plugin_channel *channel, const struct value *id,
		   struct value *take_answer)
{
	struct buf line;

	if (take_answer == NULL) {
		take_answer = value_new_object();
		value_set_text(take_answer, "action", "cancel");
	}
	value_set(take_answer, "id", value_copy(id));
	buf_init(&line, ANSWERS_PIPE);
	/*
	 * An answer that the script does not read is lost, because waiting for the script
	 * would block the worker.
	 */
	if (value_print(take_answer, 0, &line) && buf_addc(&line, '\n') &&
	    channel->write_fd >= 0 && write(channel->write_fd, line.data, line.size) < 0)
		fd_close(&channel->write_fd);
	buf_fini(&line);
	value_free(take_answer);
}

/* Answer the first question, and remove it. */
static void answer_first(struct plugin_channel *channel, struct value *take_answer)
{
	assert(channel->question_count > 0);
	const struct plugin_question first = channel->questions[0];

	channel->question_count--;
	memmove(channel->questions, channel->questions + 1,
		channel->question_count * sizeof(first));
	answer(channel, first.id, take_answer);
	value_free(first.request);
	value_free(first.id);
}

/* Pass on the answer, if one has come, and ask the next question that waits. */
static void plugin_channel_turn(struct plugin_channel *channel)
{
	struct value *reply = call_take_reply(channel->call);

	if (reply != NULL)
		answer_first(channel, reply);
	while (!channel->call->awaits_reply && channel->question_count > 0 &&
	       !call_ask(channel->call, channel->questions[0].kind,
			 channel->questions[0].request))
		answer_first(channel, NULL);
}

static bool take_question(struct plugin_channel *channel, const struct value *line,
			  struct err *err)
{
	if (channel->question_count >= PLUGIN_QUESTIONS_MAX)
		return err_set(err, E2BIG, "over %d questions wait",
			       PLUGIN_QUESTIONS_MAX - 1);
	if (!plugin_question_read(line, &channel->questions[channel->question_count], err))
		return false;
	channel->question_count++;
	plugin_channel_turn(channel);
	return true;
}

/* A text for the answer, cleaned and cut to the room that is left. */
static struct value *text_item(struct plugin_channel *channel, const struct value *line)
{
	const struct str text = value_str(value_member(line, "text"));
	struct value *item = value_copy(line);
	struct text_cut cut = {0};
	struct buf clean, shown;

	buf_init(&clean, (size_t)4 * LINE_MAX_BYTES);
	buf_init(&shown, (size_t)4 * LINE_MAX_BYTES);
	(void)text_clean(text, &clean);
	if (clean.size <= PLUGIN_CHANNEL_TEXT - channel->text_shown) {
		(void)buf_addstr(&shown, buf_str(&clean));
		channel->text_shown += clean.size;
	} else {
		/* At least one line, because a limit of 0 would mean no limit. */
		const size_t left = PLUGIN_CHANNEL_TEXT - channel->text_shown;
		const struct text_limits limits = {
			.bytes = left > TEXT_LEAST ? left : TEXT_LEAST};

		(void)text_shorten(buf_str(&clean), &limits, &shown, &cut);
		channel->text_shown = PLUGIN_CHANNEL_TEXT;
	}
	if (channel->spill != NULL)
		spill_add(channel->spill, text);
	if (channel->spill != NULL && !str_ends(text, STR("\n")))
		spill_add(channel->spill, STR("\n"));
	channel->cut.bytes += cut.bytes;
	channel->cut.lines += cut.lines;
	value_set_str(item, "text", buf_str(&shown));
	buf_fini(&shown);
	buf_fini(&clean);
	return item;
}

static bool take_line(struct plugin_channel *channel, const struct value *line,
		      struct str type, struct err *err)
{
	if (++channel->messages > PLUGIN_CHANNEL_MESSAGES)
		return err_set(err, E2BIG, "over %d lines", PLUGIN_CHANNEL_MESSAGES);
	if (str_is(type, "progress"))
		return take_progress(channel, line, err);
	if (str_is(type, "log"))
		return take_log(channel, line, err);
	if (is_question(type))
		return take_question(channel, line, err);
	if (!str_among("text image audio resource resource_link", type))
		return err_set(err, EINVAL,
			       "\"type\" must be text, image, audio, resource, resource_link, "
			       "progress, log, question, questions, sampling or roots");
	if (!item_is_sound(line, type, err))
		return false;
	return tool_add_content(channel->result, str_is(type, "text")
							 ? text_item(channel, line)
							 : value_ref(line)) ||
	       err_set(err, E2BIG, "over %d items or %d bytes of content",
		       RESULT_CONTENT_ITEMS_MAX, RESULT_CONTENT_BYTES_MAX);
}

bool plugin_channel_line(struct plugin_channel *channel, struct str text, struct err *err)
{
	auto_value struct value *line = NULL;

	if (!value_parse(text, 0, &line, err))
		return false;
	const struct str type = value_str(value_member(line, "type"));
	if (take_line(channel, line, type, err))
		return true;
	if (is_question(type))
		answer(channel, value_member(line, "id"), NULL);
	return false;
}

static void note_fault(struct plugin_channel *channel, const char *why)
{
	struct buf text;

	if (value_count(channel->faults) >= PLUGIN_CHANNEL_FAULTS)
		return;
	buf_init(&text, 2 * ERR_TEXT_MAX);
	(void)buf_addf(&text, "descriptor 3, line %zu: %s", channel->lines, why);
	value_append(channel->faults, value_new_str(buf_str(&text)));
	buf_fini(&text);
}

static void line_ends(struct plugin_channel *channel)
{
	struct err err = {0};

	channel->lines++;
	if (channel->line.overflowed) {
		note_fault(channel, "is too long");
	} else {
		run_redact(channel->secrets, &channel->line);
		struct str line = str_trim(buf_str(&channel->line));
		if (line.size > 0 && !plugin_channel_line(channel, line, &err))
			note_fault(channel, err.text);
	}
	buf_clear(&channel->line);
}

/* Read once. False: there is nothing now, or the script has closed its end. */
static bool plugin_channel_read(struct plugin_channel *channel)
{
	char bytes[READ_BYTES];
	ssize_t size = read(channel->read_fd, bytes, sizeof(bytes));

	struct str rest = {bytes, size > 0 ? (size_t)size : 0};

	while (buf_take_line(&channel->line, &rest))
		line_ends(channel);
	return size > 0;
}

bool plugin_channel_open(struct plugin_channel *channel, struct call *call,
			 struct tool_result *result, const struct value *secrets,
			 struct spill *spill, struct err *err)
{
	int told[2], answers[2];

	*channel = (struct plugin_channel){.call = call,
					   .result = result,
					   .secrets = secrets,
					   .spill = spill,
					   .read_fd = -1,
					   .write_fd = -1,
					   .script_fds = {-1, -1, -1},
					   .faults = value_new_array()};
	buf_init(&channel->line, LINE_MAX_BYTES);
	if (!fd_pipe(told, err))
		return false;
	channel->read_fd = told[0];
	channel->script_fds[0] = told[1];
	if (!fd_pipe(answers, err))
		return false;
	channel->script_fds[1] = answers[0];
	channel->write_fd = answers[1];
	(void)fcntl(channel->write_fd, F_SETPIPE_SZ, ANSWERS_PIPE);
	return fd_set_blocking(channel->read_fd, false, err) &&
	       fd_set_blocking(channel->write_fd, false, err);
}

/* Read what the script wrote last; nothing of the script runs any more. */
static void plugin_channel_end(struct plugin_channel *channel)
{
	/*
	 * While our copies of the script's ends are open, a read would never come to the
	 * end.
	 */
	fd_close(&channel->script_fds[0]);
	fd_close(&channel->script_fds[1]);
	while (channel->read_fd >= 0 && plugin_channel_read(channel))
		;
	if (channel->line.size > 0 || channel->line.overflowed)
		line_ends(channel);
}

void plugin_channel_close(struct plugin_channel *channel)
{
	plugin_channel_end(channel);
	fd_close(&channel->read_fd);
	fd_close(&channel->write_fd);
	if (value_count(channel->faults) > 0)
		value_set(tool_details(channel->result), "channel_faults",
			  value_ref(channel->faults));
	value_free(channel->faults);
	for (size_t i = 0; i < channel->question_count; i++) {
		value_free(channel->questions[i].request);
		value_free(channel->questions[i].id);
	}
	buf_fini(&channel->line);
}

enum {
	WORDS_MAX = 1024,
	INPUT_MAX = 64 << 20,
	/*
	 * The part of the answer that a model reads of a file; the rest is in a spill
	 * file.
	 */
	SHOWN_BYTES = 50000,
	SHOWN_LEAST = 2000,   /* of standard output, beside any other texts */
	ERROR_TAIL = 4 << 10, /* of stderr, behind a failure */
	OUTPUT_MAX = PROGRAM_HEAD + PROGRAM_TAIL + 4096,
	CLEAN_MAX = 4 * OUTPUT_MAX, /* \xHH for a byte */
	CODE_TIMED_OUT = 124,       /* the code of timeout(1) and shells */
	CODE_SIGNAL = 128,
};

/* The time that the subcommand `error` may take. */
#define ERROR_SECONDS 2.0
/* reserved of the call's own time, when the call would end earlier */
#define AFTER_SECONDS 3.0

struct script {
	struct call *call;
	struct tool_result *result;
	struct arena arena;
	struct run_order order;
	struct plugin_channel channel;
	bool has_channel;
	struct plugin_redact_stream streams[2];
	bool streams_output, streams_error;
	bool runs; /* the subcommand is the work itself, so its output is kept too */
	struct spill spill;
	struct text_cut cut; /* of the answer */
	struct program_run run;
	struct limit_watch limits;
};

static bool stopped(void *context)
{
	struct script *script = context;

	if (call_stopped(script->call) && script->call->cancelled)
		return true;
	if (script->has_channel)
		plugin_channel_turn(&script->channel);
	return false;
}

static void show(struct script *script, int stream, struct str bytes)
{
	struct buf shown;

	if (!script->runs)
		return;
	buf_init(&shown, PROGRAM_READ * 4);
	run_redact_piece(&script->streams[stream - 1], bytes, &shown);
	spill_add(&script->spill, buf_str(&shown));
	if (stream == 1 ? script->streams_output : script->streams_error)
		call_output(script->call, (enum call_stream)stream, buf_str(&shown));
	buf_fini(&shown);
}

static void output(void *context, int stream, struct str bytes)
{
	show(context, stream, bytes);
}

static void side(void *context)
{
	struct script *script = context;

	/* The descriptor is ready without a byte only when all writers have closed it. */
	if (!plugin_channel_read(&script->channel))
		script->run.side_fd = -1;
}

static void add_variable(struct value *more, const char *name, const char *value)
{
	struct buf text;

	buf_init(&text, KERNEL_ARGUMENT_MAX);
	if (buf_addf(&text, "%s=%s", name, value))
		value_append(more, value_new_str(buf_str(&text)));
	buf_fini(&text);
}

/* Find the first python3 in PATH. */
static bool find_python(const char *const *environment, struct buf *path)
{
	for (; *environment != NULL; environment++) {
		struct str list = str_of(*environment), folder;

		if (!str_starts(list, STR("PATH=")))
			continue;
		list = str_part(list, strlen("PATH="), list.size);
		while (path_next_folder(&list, &folder)) {
			buf_clear(path);
			(void)buf_addf(path, "%.*s/python3", (int)folder.size, folder.data);
			if (access(path->data, X_OK) == 0)
				return true;
		}
	}
	return false;
}

static bool is_toolbox(const struct script *script)
{
	return script->order.dialect == PLUGIN_TOOLBOX;
}

/*
 * The environment, built from nothing: the variables that every command of the cell has,
 * and those of the contract.
 */
static struct value *variables(const struct script *script)
{
	const struct run_order *order = &script->order;
	const bool asks = order->subcommand == RUN_SCHEMA;
	struct value *more = value_new_array();
	struct buf found;

	buf_init(&found, KERNEL_ARGUMENT_MAX);
	if (order->python != NULL)
		add_variable(more, "AGENT_TOOL_PYTHON", order->python);
	else if (find_python(script->call->environment, &found))
		add_variable(more, "AGENT_TOOL_PYTHON", found.data);
	buf_fini(&found);
	if (is_toolbox(script))
		value_append(more,
			     value_new_text(asks ? TOOLBOX_DESCRIBE : TOOLBOX_EXECUTE));
	for (size_t i = 0; i < value_count(order->environment); i++)
		value_append(more, value_ref(value_item(order->environment, i)));
	return more;
}

/* The words of one start. *INPUT_FD becomes the script's input, or stays -1. */
static bool words_of(struct script *script, enum run_subcommand subcommand,
		     const char *code, const char ***argv, int *input_fd, struct err *err)
{
	const struct run_order *order = &script->order;
	const char **words = arena_alloc(&script->arena, (WORDS_MAX + 1) * sizeof(*words));
	const char *file = script->call->has_view ? order->file : order->copy;
	const bool tests = subcommand == RUN_TEST;
	size_t count = 0;
	struct buf input;
	bool ok = true;

	if (tests)
		words[count++] = str_ends(str_of(file), STR(".bats")) ? "bats" : "bash";
	else if (!is_toolbox(script))
		words[count++] = "bash";
	words[count++] = file;
	if (!is_toolbox(script) && !tests)
		words[count++] = subcommands[subcommand];
	if (code != NULL)
		words[count++] = code;
	buf_init(&input, INPUT_MAX);
	if (!tests && subcommand != RUN_SCHEMA) {
		ok = run_arguments_build(order, script->call->arguments, &script->arena,
					 words, WORDS_MAX, &count, &input, err);
		if (ok && order->mode >= PLUGIN_JSON)
			ok = fd_memory_file("arguments", buf_str(&input), input_fd, err);
	}
	buf_fini(&input);
	*argv = words;
	return ok;
}

/* Start the script and follow it to its end. script->run then holds the result. */
static bool follow(struct script *script, enum run_subcommand subcommand, const char *code,
		   const struct value *more, int64_t deadline_ms, struct err *err)
{
	struct program_run *run = &script->run;
	const char *folder = subcommand != RUN_SCHEMA ? script->order.folder : NULL;
	auto_free const char **environment =
		call_environment(script->call->environment, more);
	auto_close int input_fd = -1;
	const char **argv = NULL;

	program_run_init(run);
	if (!words_of(script, subcommand, code, &argv, &input_fd, err))
		return false;
	run->start.argv = argv;
	run->start.environment = environment;
	run->start.folder = folder != NULL ? folder : script->call->workspace;
	run->start.fds[0] = input_fd;
	run->start.terms = script->call->terms;
	run->deadline_ms = deadline_ms;
	run->stop_fd = script->call->control_fd;
	run->stopped = stopped;
	run->output = output;
	run->context = script;
	if (script->has_channel) {
		run->start.placed_fds = script->channel.script_fds;
		run->side_fd = script->channel.read_fd;
		run->side = side;
	}
	limit_watch_start(&script->limits, script->call, run);
	return follow_program(run, err);
}

/* Append PART in the form for a reader: without secrets, escapes and NUL. */
static void clean_part(const struct script *script, struct str part, struct buf *out)
{
	struct buf plain;

	buf_init(&plain, OUTPUT_MAX);
	(void)buf_addstr(&plain, part);
	run_redact(script->order.secrets, &plain);
	(void)text_clean(buf_str(&plain), out);
	buf_fini(&plain);
}

static void add_output(struct script *script, const struct program_output *from,
		       size_t most, struct buf *text)
{
	const struct text_limits limits = {.bytes = most};
	const uint64_t missing = follow_output_missing(from);
	struct text_cut cut = {0};
	struct buf part, clean, tail;

	buf_init(&part, OUTPUT_MAX);
	buf_init(&clean, CLEAN_MAX);
	buf_init(&tail, CLEAN_MAX);
	if (missing > 0) {
		follow_output_tail(from, &part);
		clean_part(script, buf_str(&from->head), &clean);
		clean_part(script, buf_str(&part), &tail);
		text_shorten_torn(buf_str(&clean), buf_str(&tail), missing, &limits, text,
				  &cut);
	} else {
		program_output_text(from, &part);
		clean_part(script, buf_str(&part), &clean);
		(void)text_shorten(buf_str(&clean), &limits, text, &cut);
	}
	script->cut.bytes += cut.bytes;
	script->cut.lines += cut.lines;
	buf_fini(&part);
	buf_fini(&clean);
	buf_fini(&tail);
}

/*
 * The number of the spill file's line at which the gap begins. The spill file has both
 * streams mixed.
 */
static size_t line_of_gap(const struct script *script, struct str text)
{
	size_t gap = str_find(text, STR("[… "), 0);

	if (script->run.error.total > 0 || gap == (size_t)-1)
		return 1;
	return 1 + text_count_lines(str_part(text, 0, gap));
}

/* When the answer was cut, append where the rest is, and the call that reads it. */
static void add_rest(struct script *script)
{
	struct tool_result *result = script->result;
	const struct spill *spill = &script->spill;
	struct buf *text = &result->text, path;
	char size[32];

	result->left_out_bytes += script->cut.bytes;
	result->left_out_lines += script->cut.lines;
	if (script->cut.bytes == 0)
		return;
	const size_t line = line_of_gap(script, buf_str(text));
	(void)buf_end_line(text);
	(void)buf_addf(text, "[left out: %s", text_size(script->cut.bytes, size));
	buf_init(&path, PATH_MAX);
	if (script->call->is_last || !spill_name(spill, &path)) {
		(void)buf_adds(text, ", which is not kept: ask it for less]\n");
	} else {
		(void)buf_addf(text,
			       " of %s; read_file {\"path\": \"%s\", \"start_line\": %zu} "
			       "shows the rest",
			       text_size(spill->kept + spill->dropped, size), path.data,
			       line);
		if (spill->dropped > 0)
			(void)buf_addf(text, " of the first %s; what came later is not kept",
				       text_size(spill->kept, size));
		(void)buf_adds(text, "]\n");
		value_set_text(tool_details(result), "spill", path.data);
	}
	buf_fini(&path);
}

/* Append the time limit that the script ran into, and who may raise the limit. */
static void add_lateness(const struct script *script, double timeout_s, struct buf *text)
{
	const bool own = timeout_s >= script->order.timeout_s;
	const bool said = script->run.out.total + script->run.error.total > 0;

	(void)buf_addf(text,
		       "Timed out after %g s, and was ended with all it had started; %s.",
		       timeout_s,
		       said ? "what it had printed stands above" : "it had printed nothing");
	if (script->order.subcommand == RUN_WORK)
		(void)buf_addf(text, " Ask it for less at once, or have the user raise %s.",
			       own ? "plugin_policy.bash_timeout_seconds"
				   : "limits.wall_s of this agent");
}

/* The room in the answer that the texts of descriptor 3 leave for standard output. */
static size_t room_of(const struct script *script)
{
	const size_t shown = script->channel.text_shown;

	return shown < SHOWN_BYTES - SHOWN_LEAST ? SHOWN_BYTES - shown : SHOWN_LEAST;
}

/*
 * The default text for a failed run: the script's output, the reason, and how it ended.
 */
static void add_failure(struct script *script, double timeout_s)
{
	const struct program_run *run = &script->run;
	struct buf *text = &script->result->text;
	const char *signal_name = run->signal ? sigabbrev_np(run->signal) : NULL;

	add_output(script, &run->out, room_of(script), text);
	(void)buf_end_line(text);
	if (run->error.total > 0) {
		(void)buf_adds(text, "STDERR:\n");
		add_output(script, &run->error, ERROR_TAIL, text);
		(void)buf_end_line(text);
	}
	if (run->ending == PROGRAM_TIMED_OUT)
		add_lateness(script, timeout_s, text);
	else if (run->ending == PROGRAM_CANCELLED)
		(void)buf_addf(text, "Cancelled after %.1f s.", run->seconds);
	else if (run->signal)
		(void)buf_addf(text, "It was ended by signal %d (SIG%s) after %.2f s.",
			       run->signal, signal_name ? signal_name : "?", run->seconds);
	else
		(void)buf_addf(text, "It failed with exit code %d after %.2f s.",
			       run->exit_code, run->seconds);
}

static void add_late(struct value *variables, double timeout_s)
{
	char seconds[32];

	(void)snprintf(seconds, sizeof(seconds), "%g", timeout_s);
	add_variable(variables, "AGENT_TOOL_TIMED_OUT", "1");
	add_variable(variables, "AGENT_TOOL_TIMEOUT_SECONDS", seconds);
}

/* Ask the script for its own words about the failure. */
static bool ask_for_words(struct script *script, const struct value *more,
			  double timeout_s, struct buf *words)
{
	const struct program_run failed = script->run;
	const struct limit_watch failed_limits = script->limits;
	const bool late = failed.ending == PROGRAM_TIMED_OUT;
	auto_value struct value *variables = value_copy(more);
	char code[16];
	struct err err;

	(void)snprintf(code, sizeof(code), "%d",
		       late            ? CODE_TIMED_OUT
		       : failed.signal ? CODE_SIGNAL + failed.signal
				       : failed.exit_code);
	if (late)
		add_late(variables, timeout_s);
	bool ok = follow(script, RUN_ERROR, code, variables,
			 clock_deadline(ERROR_SECONDS), &err);
	ok = ok && script->run.ending == PROGRAM_ENDED && script->run.exit_code == 0 &&
	     script->run.out.total > 0;
	if (ok)
		add_output(script, &script->run.out, SHOWN_BYTES, words);
	program_run_fini(&script->run);
	script->run = failed;
	script->limits = failed_limits;
	return ok && str_trim(buf_str(words)).size > 0;
}

static double time_of(const struct script *script)
{
	double own = script->order.timeout_s;
	double left = (double)(script->call->deadline_ms - clock_now_ms()) / 1000;

	if (script->call->deadline_ms == CLOCK_NEVER || own + AFTER_SECONDS <= left)
		return own;
	return left > 2 * AFTER_SECONDS ? left - AFTER_SECONDS : left / 2;
}

static void fail_run(struct script *script, const struct value *more, double timeout_s)
{
	struct tool_result *result = script->result;
	const struct program_run *run = &script->run;
	const struct text_cut before = script->cut;
	struct buf words;

	script->runs = script->has_channel = false;
	buf_init(&words, OUTPUT_MAX);
	if (run->ending != PROGRAM_CANCELLED && !is_toolbox(script) &&
	    ask_for_words(script, more, timeout_s, &words)) {
		(void)buf_addstr(&result->text, buf_str(&words));
	} else {
		script->cut = before;
		add_failure(script, timeout_s);
	}
	buf_fini(&words);
	result->status = run->ending == PROGRAM_TIMED_OUT   ? RESULT_TIMED_OUT
			 : run->ending == PROGRAM_CANCELLED ? RESULT_CANCELLED
							    : RESULT_FAILED;
}

static void end_streams(struct script *script)
{
	for (int stream = 1; stream <= 2; stream++) {
		show(script, stream, (struct str){0});
		run_redact_end(&script->streams[stream - 1]);
	}
}

static enum result_status run_script(struct script *script)
{
	struct tool_result *result = script->result;
	auto_value struct value *more = variables(script);
	const double timeout_s = time_of(script);
	struct plugin_channel *channel = &script->channel;
	struct err err = {0};

	script->runs = script->streams_output = true;
	script->streams_error = script->order.stream_stderr;
	for (int i = 0; i < 2; i++)
		run_redact_begin(&script->streams[i], script->order.secrets);
	bool ok = plugin_channel_open(channel, script->call, result,
				      script->order.secrets, &script->spill, &err);
	script->has_channel = ok;
	ok = ok && follow(script, RUN_WORK, NULL, more, clock_deadline(timeout_s), &err);
	end_streams(script);
	plugin_channel_end(channel);
	script->cut = channel->cut;
	if (!ok) {
		(void)tool_fail(result, "%s: %s", script->order.id, err.text);
	} else {
		result->exit_code = script->run.exit_code;
		result->signal = script->run.signal;
		if (script->run.ending == PROGRAM_ENDED && script->run.exit_code == 0) {
			add_output(script, &script->run.out, room_of(script), &result->text);
			(void)tool_done(result);
		} else {
			fail_run(script, more, timeout_s);
		}
		add_rest(script);
		limit_watch_tell(&script->limits, &script->run, result);
	}
	plugin_channel_close(channel);
	return result->status;
}

/* Append the first line, without characters that a terminal obeys. */
static void add_preview(struct str output, struct buf *text)
{
	struct str line;

	if (!str_next_line(&output, &line))
		return;
	for (size_t at = 0, shown = 0; at < line.size && shown < PLUGIN_PREVIEW_MAX;) {
		struct str rest = str_part(line, at, line.size - at);
		size_t length = text_utf8_length(rest);
		const unsigned char *byte = (const unsigned char *)rest.data;
		/* U+0080 to U+009F, too */
		bool control = length == 0 || byte[0] < 0x20 || byte[0] == 0x7f ||
			       (byte[0] == 0xc2 && length == 2 && byte[1] < 0xa0);

		if (!control) {
			(void)buf_add(text, rest.data, length);
			shown++;
		}
		at += length > 0 ? length : 1;
	}
}

static enum result_status look(struct script *script)
{
	const struct run_order *order = &script->order;
	const bool preview = order->subcommand == RUN_PREVIEW;
	const bool asks = order->subcommand == RUN_SCHEMA;
	auto_value struct value *more = variables(script);
	const struct program_run *run = &script->run;
	struct tool_result *result = script->result;
	struct err err = {0};
	struct buf output;
	char code[16];

	(void)snprintf(code, sizeof(code), "%d", order->code);
	if (order->late_s > 0)
		add_late(more, order->late_s);
	if (!follow(script, order->subcommand, order->subcommand == RUN_ERROR ? code : NULL,
		    more, clock_deadline(time_of(script)), &err))
		return tool_fail(result, "%s: %s", subcommands[order->subcommand], err.text);
	result->exit_code = run->exit_code;
	result->signal = run->signal;
	const bool ended = run->ending == PROGRAM_ENDED && run->exit_code == 0;
	if (!ended && !preview) {
		add_failure(script, order->timeout_s);
		result->status = run->ending == PROGRAM_TIMED_OUT ? RESULT_TIMED_OUT
								  : RESULT_FAILED;
		return result->status;
	}
	if (asks && run->out.total > PLUGIN_SCHEMA_MAX)
		return tool_fail(result, "over %d bytes were printed", PLUGIN_SCHEMA_MAX);
	if (!preview && !asks) {
		add_output(script, &run->out, SHOWN_BYTES, &result->text);
		return tool_done(result);
	}
	buf_init(&output, OUTPUT_MAX);
	program_output_text(&run->out, &output);
	if (asks)
		(void)buf_addstr(&result->text, buf_str(&output));
	else if (ended)
		add_preview(buf_str(&output), &result->text);
	buf_fini(&output);
	return tool_done(result);
}

static enum result_status plugin_execute(struct call *call, struct tool_result *result)
{
	struct script script = {.call = call, .result = result};
	const struct run_order *order = &script.order;

	arena_init(&script.arena);
	program_run_init(&script.run);
	script.spill = (struct spill){.environment = call->environment, .fd = -1};
	if (!run_order_parse(call->carried, &script.arena, &script.order))
		(void)tool_fail(result, "No script to run.");
	else if (order->subcommand == RUN_WORK)
		(void)run_script(&script);
	else if (is_toolbox(&script) && order->subcommand != RUN_SCHEMA)
		/* A toolbox has no subcommand for a preview or an error. */
		(void)tool_done(result);
	else
		(void)look(&script);
	fd_close(&script.spill.fd);
	program_run_fini(&script.run);
	arena_fini(&script.arena);
	return result->status;
}

static const struct row no_params[] = {{0}};

const struct tool plugin_tool = {
	.name = "plugin",
	.description = "Carry out a tool that is a script.",
	.example = "{}",
	.params = no_params,
	.effects = EFFECT_RUNS,
	.timeout_s = 60,
	.internal = true,
	.execute = plugin_execute,
};

enum {
	PIECE_MAX = 1 << 20,
	NEEDLES_MAX = 2 * PLUGIN_KEYS_MAX, /* each plain, and in the form of JSON */
};

void run_redact_add(struct value *list, struct str secret)
{
	struct buf quoted;

	if (secret.size < PLUGIN_SECRET_MIN)
		return;
	value_append(list, value_new_str(secret));
	buf_init(&quoted, PIECE_MAX);
	/* Compare the text between the quotes. */
	if (value_quote(secret, &quoted) && quoted.size - 2 != secret.size)
		value_append(list,
			     value_new_str(str_part(buf_str(&quoted), 1, quoted.size - 2)));
	buf_fini(&quoted);
}

/*
 * The secrets that a text is searched for. Texts may be large: BEGINS lets the search
 * skip most bytes.
 */
struct needles {
	struct str list[NEEDLES_MAX];
	size_t count;
	bool begins[UCHAR_MAX + 1]; /* a secret begins with this byte */
};

static void needles_fill(struct needles *needles, const struct value *secrets)
{
	*needles = (struct needles){0};
	for (size_t i = 0; i < value_count(secrets) && i < NEEDLES_MAX; i++) {
		struct str secret = value_str(value_item(secrets, i));

		needles->list[needles->count++] = secret;
		needles->begins[(unsigned char)secret.data[0]] = true;
	}
}

/*
 * The length of the longest secret at the beginning of TEXT; 0: none. *LONGER: the whole
 * rest of TEXT may be the beginning of a secret.
 */
static size_t needle_at(const struct needles *needles, struct str text, bool *longer)
{
	size_t longest = 0;

	*longer = false;
	for (size_t i = 0; i < needles->count; i++) {
		struct str needle = needles->list[i];

		if (needle.size > text.size)
			*longer = *longer || str_starts(needle, text);
		else if (needle.size > longest && str_starts(text, needle))
			longest = needle.size;
	}
	return longest;
}

/*
 * Append TEXT without secrets, and return how many bytes were taken. MORE: further text
 * may follow.
 */
static size_t take(const struct value *secrets, struct str text, bool more, struct buf *out)
{
	struct needles needles;
	size_t at = 0, plain = 0; /* the bytes from `plain` on are not appended yet */

	needles_fill(&needles, secrets);
	while (at < text.size) {
		bool longer = false;
		size_t size = 0;

		if (needles.begins[(unsigned char)text.data[at]])
			size = needle_at(&needles, str_part(text, at, text.size - at),
					 &longer);
		if (more && longer)
			break;
		if (size > 0) {
			(void)buf_addstr(out, str_part(text, plain, at - plain));
			(void)buf_adds(out, PLUGIN_REDACTED);
			plain = at + size;
		}
		at += size > 0 ? size : 1;
	}
	(void)buf_addstr(out, str_part(text, plain, at - plain));
	return at;
}

void run_redact(const struct value *secrets, struct buf *text)
{
	struct buf out;

	if (value_count(secrets) == 0 || text->size == 0)
		return;
	buf_init(&out, text->max);
	(void)take(secrets, buf_str(text), false, &out);
	buf_fini(text);
	*text = out;
}

void run_redact_begin(struct plugin_redact_stream *stream, const struct value *secrets)
{
	stream->secrets = secrets;
	buf_init(&stream->held, PIECE_MAX);
}

void run_redact_piece(struct plugin_redact_stream *stream, struct str bytes, struct buf *out)
{
	size_t taken;

	buf_clear(out);
	/*
	 * This stream is only for events, which show a part of the output. A piece that
	 * does not fit is not shown at all.
	 */
	if (bytes.data != NULL && !buf_addstr(&stream->held, bytes))
		buf_clear(&stream->held);
	taken = take(stream->secrets, buf_str(&stream->held), bytes.data != NULL, out);
	buf_remove(&stream->held, 0, taken);
}

void run_redact_end(struct plugin_redact_stream *stream)
{
	buf_fini(&stream->held);
}
