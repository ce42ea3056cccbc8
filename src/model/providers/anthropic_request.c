/*
 * anthropic_request: a conversation as the body of one Messages request. Written straight
 * into the buffer, and the same bytes each time for what was there before: that is what
 * the service's cache is found by.
 */
#include "model/providers/anthropic.h"

#include <stddef.h>

#include "model/conversation.h"

/*
 * Up to this block the service keeps what it read. Four are allowed: we mark the tools,
 * the system prompt, and the ends of the newest two of the user's messages, of which one
 * was the end of the request before.
 */
#define CACHE_MARK ",\"cache_control\":{\"type\":\"ephemeral\"}"

enum { MARKED_MESSAGES = 2 };

/* Messages of one speaker in a row: one message of the API, which wants them in turns. */
struct run {
	enum speaker speaker;
	size_t first, end;
};

static const struct value *kept_block(const struct part *part)
{
	return value_member(part->extra, ANTHROPIC_EXTRA);
}

/*
 * Is PART sent back? A thinking part is sent only with the block that this service gave it:
 * data of other providers means nothing here.
 */
static bool is_written(const struct part *part)
{
	switch (part->kind) {
	case PART_TEXT:
		return !request_is_blank(part->text);
	case PART_THINKING:
		return value_kind(kept_block(part)) == VALUE_OBJECT;
	default:
		return true;
	}
}

static bool has_words(const struct message *message)
{
	for (size_t i = 0; i < message->part_count; i++) {
		if (is_written(&message->parts[i]))
			return true;
	}
	return false;
}

/* The next run at or after *AT, which is moved behind it. */
static bool next_run(const struct conversation *conversation, size_t *at, struct run *run)
{
	const struct message *messages = conversation->messages;
	size_t count = conversation->message_count;

	while (*at < count && !has_words(&messages[*at]))
		(*at)++;
	if (*at == count)
		return false;
	*run = (struct run){.speaker = messages[*at].speaker, .first = *at};
	while (*at < count &&
	       (messages[*at].speaker == run->speaker || !has_words(&messages[*at])))
		(*at)++;
	run->end = *at;
	return true;
}

static size_t count_user_runs(const struct conversation *conversation)
{
	struct run run;
	size_t at = 0, count = 0;

	while (next_run(conversation, &at, &run))
		count += run.speaker == SPEAKER_USER ? 1 : 0;
	return count;
}

/* Blocks stay open, as a mark may follow; the next one or the run's end closes them. */
static void open_block(bool *is_open, const char *type, struct buf *body)
{
	(void)buf_adds(body, *is_open ? "},{\"type\":" : "{\"type\":");
	(void)value_quote(str_of(type), body);
	*is_open = true;
}

static void write_text_member(const char *key, struct str text, struct buf *body)
{
	(void)buf_addf(body, ",\"%s\":", key);
	(void)value_quote(text, body);
}

/*
 * Ids and names of a conversation that began with another service may hold what this one
 * refuses; a call and its result are changed alike.
 */
static void write_name_member(const char *key, const char *name, struct buf *body)
{
	(void)buf_addf(body, ",\"%s\":\"", key);
	for (; *name; name++) {
		bool is_plain = (*name >= 'a' && *name <= 'z') ||
				(*name >= 'A' && *name <= 'Z') ||
				(*name >= '0' && *name <= '9') || *name == '-';

		(void)buf_addc(body, is_plain ? *name : '_');
	}
	(void)buf_addc(body, '"');
}

/* The members of a kept BLOCK beside its type. */
static void write_kept(const struct value *block, struct buf *body)
{
	for (void *at = value_first(block); at; at = value_next(block, at)) {
		if (str_is(str_of(value_key(at)), "type"))
			continue;
		(void)buf_addc(body, ',');
		(void)value_quote(str_of(value_key(at)), body);
		(void)buf_addc(body, ':');
		(void)value_print(value_at(at), 0, body);
	}
}

static void write_thinking(const struct part *part, bool *is_open, struct buf *body)
{
	const struct value *block = kept_block(part);
	const char *type = value_text(value_member(block, "type"));

	open_block(is_open, type, body);
	if (str_is(str_of(type), "thinking"))
		write_text_member("thinking", str_of(part->text), body);
	write_kept(block, body);
}

static void write_call(const struct part *part, bool *is_open, struct buf *body)
{
	open_block(is_open, "tool_use", body);
	write_name_member("id", part->call_id, body);
	write_name_member("name", part->tool, body);
	(void)buf_adds(body, ",\"input\":");
	request_add_arguments(part, body);
	write_kept(kept_block(part), body);
}

static void write_result(const struct part *part, bool *is_open, struct buf *body)
{
	open_block(is_open, "tool_result", body);
	write_name_member("tool_use_id", part->call_id, body);
	write_text_member("content", str_of(request_result_text(part)), body);
	if (part->is_error)
		(void)buf_adds(body, ",\"is_error\":true");
}

static void write_part(const struct part *part, bool *is_open, struct buf *body)
{
	if (!is_written(part))
		return;
	switch (part->kind) {
	case PART_TEXT:
		open_block(is_open, "text", body);
		write_text_member("text", str_of(part->text), body);
		break;
	case PART_THINKING:
		write_thinking(part, is_open, body);
		break;
	case PART_CALL:
		write_call(part, is_open, body);
		break;
	case PART_RESULT:
		write_result(part, is_open, body);
		break;
	}
}

/* The run's parts that are results, or all others. */
static void write_parts(const struct conversation *conversation, const struct run *run,
			bool results, bool *is_open, struct buf *body)
{
	for (size_t i = run->first; i < run->end; i++) {
		const struct message *message = &conversation->messages[i];

		for (size_t n = 0; n < message->part_count; n++) {
			if ((message->parts[n].kind == PART_RESULT) == results)
				write_part(&message->parts[n], is_open, body);
		}
	}
}

static void write_messages(const struct conversation *conversation, struct buf *body)
{
	size_t user_runs = count_user_runs(conversation);
	const char *separator = "";
	struct run run;
	size_t at = 0;

	(void)buf_adds(body, ",\"messages\":[");
	while (next_run(conversation, &at, &run)) {
		bool is_user = run.speaker == SPEAKER_USER;
		bool is_open = false;

		(void)buf_addf(body, "%s{\"role\":\"%s\",\"content\":[", separator,
			       is_user ? "user" : "assistant");
		/* The API refuses results that do not come first. */
		write_parts(conversation, &run, true, &is_open, body);
		write_parts(conversation, &run, false, &is_open, body);
		if (is_user && user_runs-- <= MARKED_MESSAGES)
			(void)buf_adds(body, CACHE_MARK);
		(void)buf_adds(body, "}]}");
		separator = ",";
	}
	(void)buf_addc(body, ']');
}

static void write_tools(const struct model_request *request, struct buf *body)
{
	for (size_t i = 0; i < request->tool_count; i++) {
		const struct model_tool *tool = &request->tools[i];

		(void)buf_adds(body, i == 0 ? ",\"tools\":[{\"name\":" : "},{\"name\":");
		(void)value_quote(str_of(tool->name), body);
		write_text_member("description", str_of(tool->description), body);
		(void)buf_adds(body, ",\"input_schema\":");
		request_add_schema(tool, body);
	}
	if (request->tool_count > 0)
		(void)buf_adds(body, CACHE_MARK "}]");
}

bool anthropic_write(const struct provider_settings *settings,
		     const struct model_request *request, struct buf *body, struct err *err)
{
	const struct conversation *conversation = request->conversation;

	(void)buf_adds(body, "{\"model\":");
	(void)value_quote(str_of(settings->model), body);
	(void)buf_addc(body, ',');
	anthropic_write_limits(settings, body);
	write_tools(request, body);
	if (!request_is_blank(conversation->system_prompt)) {
		(void)buf_adds(body, ",\"system\":[{\"type\":\"text\"");
		write_text_member("text", str_of(conversation->system_prompt), body);
		(void)buf_adds(body, CACHE_MARK "}]");
	}
	write_messages(conversation, body);
	(void)buf_adds(body, ",\"stream\":true}");
	return request_fits(body, err);
}
