/* plugin_channel: lines to content, events and questions; see plugin_channel.h. */
#include "plugins/plugin_channel.h"

#include "base/buf.h"
#include "base/fd.h"
#include "plugins/plugin_question.h"
#include "plugins/plugin_redact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_BYTES = 64 << 10,
	ANSWERS_PIPE = 1 << 20, /* what a script may leave unread */
	LINE_MAX_BYTES = RESULT_CONTENT_BYTES_MAX,
	TEXT_LEAST = 100,
};

static bool is_text(const struct value *value)
{
	return value_kind(value) == VALUE_STRING;
}

static bool is_base64(const struct value *value)
{
	return is_text(value) && base64_is_valid(value_str(value));
}

static bool need(bool fine, const char *what, struct err *err)
{
	return fine || err_set(err, EINVAL, "needs %s", what);
}

/* Is this item what MCP's clients will take? */
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

/* It waits as {kind, request, id}. */
static bool take_question(struct plugin_channel *channel, const struct value *line,
			  struct err *err)
{
	const struct value *id = value_member(line, "id");
	struct value *question, *request;
	const char *kind;

	if (!plugin_question_read(line, &kind, &request, err))
		return false;
	question = value_new_object();
	value_set_text(question, "kind", kind);
	value_set(question, "request", request);
	value_set(question, "id", id != NULL ? value_copy(id) : value_new_null());
	if (value_count(channel->questions) >= PLUGIN_CHANNEL_QUESTIONS) {
		value_free(question);
		return err_set(err, E2BIG, "over %d questions wait",
			       PLUGIN_CHANNEL_QUESTIONS);
	}
	value_append(channel->questions, question);
	plugin_channel_turn(channel);
	return true;
}

/* ANSWER goes to the script, with the ID it gave its question. */
static void answer(struct plugin_channel *channel, const struct value *id,
		   struct value *take_answer)
{
	struct buf line;

	value_set(take_answer, "id", value_copy(id));
	buf_init(&line, ANSWERS_PIPE);
	/* One that its script does not read is lost: nobody waits for it here. */
	if (value_print(take_answer, 0, &line) && buf_addc(&line, '\n') &&
	    channel->write_fd >= 0 && write(channel->write_fd, line.data, line.size) < 0)
		fd_close(&channel->write_fd);
	buf_fini(&line);
	value_free(take_answer);
}

/* Its script waits for a line all the same. */
static void answer_nobody(struct plugin_channel *channel, const struct value *id)
{
	struct value *nobody = value_new_object();

	value_set_text(nobody, "action", "cancel");
	answer(channel, id, nobody);
}

/* A text of the answer, cleaned and within what is left of its room. */
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
		/* At least a line of it; a limit of 0 would be none. */
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
	if (plugin_question_is(type))
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
	if (plugin_question_is(type))
		answer_nobody(channel, value_member(line, "id"));
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
	if (channel->skips)
		note_fault(channel, "is too long");
	plugin_redact(channel->secrets, &channel->line);
	struct str line = str_trim(buf_str(&channel->line));
	if (!channel->skips && line.size > 0 && !plugin_channel_line(channel, line, &err))
		note_fault(channel, err.text);
	channel->skips = false;
	buf_clear(&channel->line);
}

static void take_bytes(struct plugin_channel *channel, struct str bytes)
{
	while (bytes.size > 0) {
		const char *feed = memchr(bytes.data, '\n', bytes.size);
		size_t size = feed != NULL ? (size_t)(feed - bytes.data) : bytes.size;

		if (!channel->skips && !buf_addstr(&channel->line, str_part(bytes, 0, size)))
			channel->skips = true;
		if (feed == NULL)
			return;
		line_ends(channel);
		bytes = str_part(bytes, size + 1, bytes.size - size - 1);
	}
}

/* False: nothing is there now, or any more. */
bool plugin_channel_read(struct plugin_channel *channel)
{
	char bytes[READ_BYTES];
	ssize_t size = read(channel->read_fd, bytes, sizeof(bytes));

	if (size > 0)
		take_bytes(channel, (struct str){bytes, (size_t)size});
	return size > 0;
}

void plugin_channel_turn(struct plugin_channel *channel)
{
	struct value *reply = call_take_reply(channel->call);

	if (reply != NULL)
		answer(channel, channel->open_id, reply);
	while (!channel->call->awaits_reply && value_count(channel->questions) > 0) {
		struct value *question = value_item(channel->questions, 0);
		auto_value struct value *rest = value_new_array();

		value_free(channel->open_id);
		channel->open_id = value_copy(value_member(question, "id"));
		bool asked = call_ask(channel->call,
				      value_text(value_member(question, "kind")),
				      value_member(question, "request"));
		for (size_t i = 1; i < value_count(channel->questions); i++)
			value_append(rest, value_ref(value_item(channel->questions, i)));
		value_free(channel->questions);
		channel->questions = rest;
		rest = NULL;
		if (asked)
			return;
		answer_nobody(channel, channel->open_id);
	}
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
					   .questions = value_new_array(),
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

void plugin_channel_end(struct plugin_channel *channel)
{
	/* While our copies of the script's ends are open, reading would meet no end. */
	fd_close(&channel->script_fds[0]);
	fd_close(&channel->script_fds[1]);
	while (channel->read_fd >= 0 && plugin_channel_read(channel))
		;
	if (channel->line.size > 0 || channel->skips)
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
	value_free(channel->questions);
	value_free(channel->open_id);
	buf_fini(&channel->line);
}
