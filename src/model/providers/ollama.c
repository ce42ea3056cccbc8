/* ollama: answers of Ollama's API, one JSON object a line, and requests to it. */

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "model/conversation.h"
#include "model/failure.h"
#include "model/provider.h"
#include "model/providers/openai_chat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

/*
 * In a thinking part's `extra`, under CHAT_EXTRA_FIELD: the thinking came from this API
 * and goes back to it.
 */
#define OLLAMA_THINKING "thinking"

/* A conversation as the body of one request to Ollama. */

static void begin_message(const char *role, struct buf *body)
{
	bool is_first = str_ends(buf_str(body), STR("["));

	(void)buf_addf(body, "%s{\"role\":\"%s\",\"content\":", is_first ? "" : ",", role);
}

/* Join all text of MESSAGE, or all thinking that came from this API. */
static void join(const struct message *message, enum part_kind kind, struct buf *joined)
{
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		struct str field = value_str(value_member(part->extra, CHAT_EXTRA_FIELD));

		if (part->kind == kind &&
		    (kind == PART_TEXT || str_is(field, OLLAMA_THINKING)))
			(void)buf_addstr(joined, str_of(part->text));
	}
}

static void write_model_message(const struct message *message, struct buf *body)
{
	struct buf text, thinking;

	buf_init(&text, body->max);
	buf_init(&thinking, body->max);
	join(message, PART_TEXT, &text);
	join(message, PART_THINKING, &thinking);
	begin_message("assistant", body);
	(void)value_quote(buf_str(&text), body);
	if (thinking.size > 0) {
		(void)buf_adds(body, ",\"thinking\":");
		(void)value_quote(buf_str(&thinking), body);
	}
	conversation_add_calls(message, "", NULL, conversation_add_arguments, body);
	(void)buf_addc(body, '}');
	body->overflowed = body->overflowed || text.overflowed || thinking.overflowed;
	buf_fini(&text);
	buf_fini(&thinking);
}

/* Append a message of the user with the pictures in the results of MESSAGE, if any. */
static void write_pictures(const struct message *message, struct buf *body)
{
	const char *separator = "";

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		const struct value *pictures =
			part->kind == PART_RESULT ? part->pictures : NULL;

		for (size_t n = 0; n < value_count(pictures); n++) {
			if (!separator[0]) {
				begin_message("user", body);
				(void)buf_adds(body, "\"" CONVERSATION_PICTURES
						     "\",\"images\":[");
			}
			(void)buf_addf(body, "%s", separator);
			(void)value_print(value_member(value_item(pictures, n), "data"),
					  0, body);
			separator = ",";
		}
	}
	if (separator[0])
		(void)buf_adds(body, "]}");
}

/* Append the PICTURES of the message that is being written, if it has any. */
static void write_own_pictures(const struct value *pictures, struct buf *body)
{
	for (size_t i = 0; i < value_count(pictures); i++) {
		(void)buf_adds(body, i == 0 ? ",\"images\":[" : ",");
		(void)value_print(value_member(value_item(pictures, i), "data"), 0, body);
	}
	if (value_count(pictures) > 0)
		(void)buf_addc(body, ']');
}

/* SEES: the pictures of its results follow, because a result of this API has none. */
static void write_user_message(const struct message *message, bool sees, struct buf *body)
{
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind == PART_RESULT) {
			begin_message("tool", body);
			(void)value_quote(str_of(conversation_result_text(part)), body);
			(void)buf_adds(body, ",\"tool_name\":");
			(void)value_quote(str_of(part->tool), body);
			(void)buf_adds(body, ",\"tool_call_id\":");
			(void)value_quote(str_of(part->call_id), body);
			(void)buf_addc(body, '}');
		}
	}
	if (sees)
		write_pictures(message, body);
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind == PART_TEXT && !conversation_is_blank(part->text)) {
			begin_message("user", body);
			(void)value_quote(str_of(part->text), body);
			if (sees)
				write_own_pictures(part->pictures, body);
			(void)buf_addc(body, '}');
		}
	}
}

static void write_messages(const struct conversation *conversation, bool sees,
			   struct buf *body)
{
	(void)buf_adds(body, ",\"messages\":[");
	if (!conversation_is_blank(conversation->system_prompt)) {
		begin_message("system", body);
		(void)value_quote(str_of(conversation->system_prompt), body);
		(void)buf_addc(body, '}');
	}
	for (size_t i = 0; i < conversation->message_count; i++) {
		const struct message *message = &conversation->messages[i];

		if (message->speaker == SPEAKER_USER)
			write_user_message(message, sees, body);
		else if (message->part_count > 0)
			write_model_message(message, body);
	}
	(void)buf_addc(body, ']');
}

static bool ollama_write(const struct provider_settings *settings,
			 const struct model_request *request, struct buf *body,
			 struct err *err)
{
	const char *separator = "";

	(void)buf_adds(body, "{\"model\":");
	(void)value_quote(str_of(settings->model), body);
	write_messages(request->conversation, settings->sees, body);
	openai_chat_write_tools(request, body);
	(void)buf_adds(body, ",\"stream\":true,\"options\":{");
	if (settings->context > 0) {
		(void)buf_addf(body, "\"num_ctx\":%" PRIu64, settings->context);
		separator = ",";
	}
	if (settings->temperature >= 0) {
		auto_value struct value *number = value_new_real(settings->temperature);

		(void)buf_addf(body, "%s\"temperature\":", separator);
		(void)value_print(number, 0, body);
		separator = ",";
	}
	if (settings->answer_max > 0)
		(void)buf_addf(body, "%s\"num_predict\":%" PRIu64, separator,
			       settings->answer_max);
	(void)buf_adds(body, "}}");
	return conversation_fits(body, err);
}

static void take_calls(struct answer *answer, const struct value *calls)
{
	for (size_t i = 0; i < value_count(calls); i++) {
		const struct value *call = value_item(calls, i);
		const struct value *function = value_member(call, "function");
		const struct value *arguments = value_member(function, "arguments");
		struct buf text;

		buf_init(&text, MODEL_ANSWER_MAX);
		if (value_kind(arguments) == VALUE_OBJECT)
			(void)value_print(arguments, 0, &text);
		else
			(void)buf_addstr(&text, value_str(arguments));
		/* Each call comes as a whole, never as the rest of the call before. */
		(void)answer_add_call(answer, -1, value_str(value_member(call, "id")),
				      value_str(value_member(function, "name")),
				      buf_str(&text));
		buf_fini(&text);
	}
}

static void take_message(struct answer *answer, const struct value *message)
{
	struct str thinking = value_str(value_member(message, "thinking"));
	const struct value *calls = value_member(message, "tool_calls");

	if (thinking.size > 0) {
		answer_add_thinking(answer, thinking);
		value_set_text(answer_thinking_extra(answer), CHAT_EXTRA_FIELD,
			       OLLAMA_THINKING);
	}
	answer_add_text(answer, value_str(value_member(message, "content")));
	if (value_kind(calls) == VALUE_ARRAY)
		take_calls(answer, calls);
}

static void take_end(struct answer *answer, const struct value *root)
{
	struct str reason = value_str(value_member(root, "done_reason"));
	const struct model_usage usage = {
		.input = failure_count(root, "prompt_eval_count"),
		.output = failure_count(root, "eval_count"),
	};

	answer_set_usage(answer, &usage);
	answer_set_finish(answer, str_is(reason, "length") ? MODEL_FINISH_LENGTH
							   : MODEL_FINISH_STOP);
}

static bool take_line(struct answer *answer, struct str data, bool *end, struct err *err)
{
	auto_value struct value *root = NULL;

	data = str_trim(data);
	if (data.size == 0)
		return true;
	if (!failure_parse(data, "a line of the answer is no JSON", &root, err))
		return false;
	if (failure_is_error(root))
		return failure_refuse_status(root, err);
	if (value_kind(value_member(root, "message")) != VALUE_OBJECT &&
	    !value_member(root, "done"))
		return err_set(err, EBADMSG,
			       "the answer is JSON, but not of Ollama (no \"message\"): check "
			       "the base URL, or write openai-chat:NAME");
	take_message(answer, value_member(root, "message"));
	if (value_is_true(value_member(root, "done"))) {
		take_end(answer, root);
		*end = true;
	}
	return true;
}

static bool ollama_event(struct answer *answer, struct str name, struct str data,
			 bool *end, struct err *err)
{
	(void)name;
	return take_line(answer, data, end, err);
}

static bool ollama_whole(struct answer *answer, struct str body, struct err *err)
{
	bool end = false;

	return take_line(answer, body, &end, err);
}

const struct provider ollama_provider = {
	.name = "ollama",
	.base_url = "http://127.0.0.1:11434",
	.path = "/api/chat",
	.key_name = "OLLAMA_API_KEY",
	.key_header = "Authorization: Bearer ",
	.streams_lines = true,
	.takes_context = true,
	.request = ollama_write,
	.event = ollama_event,
	.whole = ollama_whole,
	.error = failure_error,
};
