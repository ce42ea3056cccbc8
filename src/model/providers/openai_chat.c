/*
 * openai_chat: answers of Chat Completions servers and of all that imitate them. The
 * reader is tolerant on purpose: everything that it accepts beyond the API is sent by
 * real servers.
 */

#include "model/providers/openai_chat.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/conversation.h"
#include "model/failure.h"
#include "model/model.h"
#include "model/provider.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAT_EXTRA_DETAILS "reasoning_details"

/*
 * In a call's `extra`, and beside its function: signatures of thoughts, which Gemini
 * wants back.
 */
#define CHAT_EXTRA_CALL "extra_content"

/*
 * OpenRouter's reasoning details, which are streamed in pieces and must be sent back
 * unchanged in one piece.
 */

static bool same_detail(const struct value *a, const struct value *b)
{
	static const char *const keys[] = {"type", "index", "id"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct value *mine = value_member(a, keys[i]);
		const struct value *other = value_member(b, keys[i]);

		if (i == 2 &&
		    (value_kind(mine) == VALUE_NULL || value_kind(other) == VALUE_NULL))
			continue;
		if (!mine || !other ? mine != other : !value_equal(mine, other))
			return false;
	}
	return true;
}

/*
 * Make one detail of the COUNT pieces from FIRST on: the texts under KEY are joined; of
 * the other members the values that are not null are taken.
 */
static struct value *join_details(const struct value *list, size_t first, size_t count,
				  const char *key)
{
	struct value *joined = value_copy(value_item(list, first));
	struct buf text;

	buf_init(&text, MODEL_ANSWER_MAX);
	for (size_t i = first; i < first + count; i++) {
		const struct value *piece = value_item(list, i);

		(void)buf_addstr(&text, value_str(value_member(piece, key)));
		for (void *at = value_first(piece); at; at = value_next(piece, at)) {
			if (value_kind(value_at(at)) != VALUE_NULL)
				value_set(joined, value_key(at), value_ref(value_at(at)));
		}
	}
	value_set_str(joined, key, buf_str(&text));
	buf_fini(&text);
	return joined;
}

/* Join the pieces of the reasoning details in the EXTRA of a thinking part. */
static void openai_chat_settle_details(struct value *extra)
{
	struct value *list = value_ref(value_member(extra, CHAT_EXTRA_DETAILS));
	struct value *settled;
	size_t count = value_count(list);

	if (!list)
		return;
	settled = value_new_array();
	for (size_t first = 0, run; first < count; first += run) {
		struct value *item = value_item(list, first);
		const char *key = NULL;

		run = 1;
		if (str_is(value_str(value_member(item, "type")), "reasoning.text"))
			key = "text";
		if (str_is(value_str(value_member(item, "type")), "reasoning.summary"))
			key = "summary";
		while (key && first + run < count &&
		       same_detail(item, value_item(list, first + run)))
			run++;
		value_append(settled, run > 1 ? join_details(list, first, run, key)
					      : value_ref(item));
	}
	value_set(extra, CHAT_EXTRA_DETAILS, settled);
	value_free(list);
}

/* The fields in which servers send reasoning as text, the preferred one first. */
static const char *const chat_reasoning_fields[] = {"reasoning_content", "reasoning", NULL};

static void note_field(struct answer *answer, const char *field)
{
	struct value *extra = answer_thinking_extra(answer);

	if (!value_member(extra, CHAT_EXTRA_FIELD))
		value_set_text(extra, CHAT_EXTRA_FIELD, field);
}

static void take_details(struct answer *answer, const struct value *list, bool shown)
{
	static const char *const text_keys[] = {"text", "summary", NULL};
	struct value *extra, *kept;

	if (value_kind(list) != VALUE_ARRAY || value_count(list) == 0)
		return;
	extra = answer_thinking_extra(answer);
	if (!value_member(extra, CHAT_EXTRA_DETAILS))
		value_set(extra, CHAT_EXTRA_DETAILS, value_new_array());
	kept = value_member(extra, CHAT_EXTRA_DETAILS);
	for (size_t i = 0; i < value_count(list); i++) {
		struct value *item = value_item(list, i);

		value_append(kept, value_ref(item));
		if (!shown)
			answer_add_thinking(answer, failure_first_text(item, text_keys));
	}
}

static void take_reasoning(struct answer *answer, const struct value *delta)
{
	bool shown = false;

	/*
	 * Servers that change from one name to the other send both fields, with equal
	 * text.
	 */
	for (size_t i = 0; chat_reasoning_fields[i] && !shown; i++) {
		struct str text = value_str(value_member(delta, chat_reasoning_fields[i]));

		if (text.size > 0) {
			answer_add_thinking(answer, text);
			note_field(answer, chat_reasoning_fields[i]);
			shown = true;
		}
	}
	take_details(answer, value_member(delta, CHAT_EXTRA_DETAILS), shown);
}

/* Take text, or a list of typed pieces of text and thinking (Mistral). */
static void take_content(struct answer *answer, const struct value *content)
{
	static const char *const text_keys[] = {"text", NULL};

	answer_add_text(answer, value_str(content));
	if (value_kind(content) != VALUE_ARRAY)
		return;
	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *piece = value_item(content, i);
		const struct value *thinking = value_member(piece, "thinking");

		answer_add_text(answer, failure_first_text(piece, text_keys));
		answer_add_thinking(answer, value_str(thinking));
		for (size_t n = 0;
		     value_kind(thinking) == VALUE_ARRAY && n < value_count(thinking); n++)
			answer_add_thinking(answer,
					    failure_first_text(value_item(thinking, n),
							       text_keys));
	}
}

static struct answer_part *take_call(struct answer *answer, int64_t index,
				     const struct value *id, const struct value *function)
{
	const struct value *arguments = value_member(function, "arguments");
	char number[32] = "";
	struct str id_text = value_str(id);
	struct answer_part *part;
	struct buf text;

	if (value_kind(id) == VALUE_INTEGER) {
		(void)snprintf(number, sizeof(number), "%lld", (long long)value_integer(id));
		id_text = str_of(number);
	}
	buf_init(&text, MODEL_ANSWER_MAX);
	/* In the API the arguments are a string; some servers send the object itself. */
	if (value_kind(arguments) == VALUE_OBJECT || value_kind(arguments) == VALUE_ARRAY)
		(void)value_print(arguments, 0, &text);
	else
		(void)buf_addstr(&text, value_str(arguments));
	part = answer_add_call(answer, index, id_text,
			       value_str(value_member(function, "name")), buf_str(&text));
	buf_fini(&text);
	return part;
}

/* Keep EXTRA, which came with a call and must go back with the call, unchanged. */
static void keep_extra(struct answer *answer, struct answer_part *part, struct value *extra)
{
	struct buf text;

	if (!part || value_kind(extra) != VALUE_OBJECT || value_count(extra) == 0)
		return;
	buf_init(&text, MODEL_ANSWER_MAX);
	(void)value_print(extra, 0, &text);
	answer_part_keep(answer, part, CHAT_EXTRA_CALL, value_ref(extra), text.size);
	buf_fini(&text);
}

static void take_calls(struct answer *answer, const struct value *delta)
{
	const struct value *calls = value_member(delta, "tool_calls");
	const struct value *old = value_member(delta, "function_call");

	for (size_t i = 0; value_kind(calls) == VALUE_ARRAY && i < value_count(calls); i++) {
		const struct value *call = value_item(calls, i);
		const struct value *index = value_member(call, "index");

		struct answer_part *part =
			take_call(answer,
				  value_is_number(index) ? value_integer(index) : -1,
				  value_member(call, "id"), value_member(call, "function"));

		keep_extra(answer, part, value_member(call, CHAT_EXTRA_CALL));
	}
	if (value_kind(old) == VALUE_OBJECT)
		(void)take_call(answer, -1, NULL, old);
}

/* Take one delta of a stream, or the message of a whole answer. */
static void take_message(struct answer *answer, const struct value *message)
{
	struct str refusal = value_str(value_member(message, "refusal"));

	take_reasoning(answer, message);
	take_content(answer, value_member(message, "content"));
	take_calls(answer, message);
	if (refusal.size > 0) {
		answer_add_text(answer, refusal);
		answer_set_finish(answer, MODEL_FINISH_REFUSED);
	}
}

/* False (with ERR) when the service says that the answer ended with an error. */
static bool take_finish(struct answer *answer, const struct value *choice, struct err *err)
{
	static const struct {
		const char *word;
		enum model_finish finish;
	} words[] = {
		{"tool_calls", MODEL_FINISH_CALLS},
		{"function_call", MODEL_FINISH_CALLS},
		{"tool_use", MODEL_FINISH_CALLS},
		{"length", MODEL_FINISH_LENGTH},
		{"max_tokens", MODEL_FINISH_LENGTH},
		{"model_length", MODEL_FINISH_LENGTH},
		{"refusal", MODEL_FINISH_REFUSED},
		{"content_filter", MODEL_FINISH_REFUSED},
		{"safety", MODEL_FINISH_REFUSED},
	};
	struct str reason = value_str(value_member(choice, "finish_reason"));

	if (reason.size == 0)
		return true;
	if (str_is(reason, "error"))
		return failure_is_error(choice)
			       ? failure_refuse_status(choice, err)
			       : err_set(err, EAGAIN,
					 "the service ended the answer with an error "
					 "it does not name");
	/* An answer whose own text made it a refusal stays a refusal. */
	if (answer_is_refused(answer))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_is(reason, words[i].word)) {
			answer_set_finish(answer, words[i].finish);
			return true;
		}
	}
	answer_set_finish(answer, MODEL_FINISH_STOP);
	return true;
}

static void take_usage(struct answer *answer, const struct value *root)
{
	const struct value *usage = value_member(root, "usage");
	const struct value *sent = value_member(usage, "prompt_tokens_details");
	const struct value *timings = value_member(root, "timings");
	struct model_usage counts = {0};

	if (value_kind(usage) == VALUE_OBJECT) {
		counts.input = failure_count(usage, "prompt_tokens");
		counts.output = failure_count(usage, "completion_tokens");
		counts.cached = failure_count(sent, "cached_tokens");
		if (counts.cached == 0)
			counts.cached = failure_count(usage, "prompt_cache_hit_tokens");
		counts.cache_writes = failure_count(sent, "cache_write_tokens");
		counts.reasoning =
			failure_count(value_member(usage, "completion_tokens_details"),
				      "reasoning_tokens");
		answer_set_usage(answer, &counts);
	} else if (value_kind(timings) == VALUE_OBJECT) {
		/* llama.cpp counts the tokens from its cache separately. */
		counts.cached = failure_count(timings, "cache_n");
		counts.input = failure_count(timings, "prompt_n") + counts.cached;
		counts.output = failure_count(timings, "predicted_n");
		answer_set_usage(answer, &counts);
	}
}

static bool take_root(struct answer *answer, const struct value *root, struct err *err)
{
	const struct value *choices = value_member(root, "choices");

	for (size_t i = 0; value_kind(choices) == VALUE_ARRAY && i < value_count(choices);
	     i++) {
		const struct value *choice = value_item(choices, i);
		const struct value *delta = value_member(choice, "delta");
		const struct value *message = value_member(choice, "message");

		/*
		 * We ask for one choice; the text of a second one would be shown as well.
		 */
		if (value_integer(value_member(choice, "index")) != 0)
			continue;
		take_message(answer, delta);
		/* Some servers send the whole message again at the end of a stream. */
		if (message && !answer_has_content(answer))
			take_message(answer, message);
		if (!take_finish(answer, choice, err))
			return false;
	}
	take_usage(answer, root);
	return true;
}

static bool chat_event(struct answer *answer, struct str name, struct str data, bool *end,
		       struct err *err)
{
	auto_value struct value *root = NULL;

	if (!failure_parse_event(data, &root, end, err))
		return false;
	if (!root)
		return true;
	if (str_is(name, "error") || failure_is_error(root))
		return failure_refuse_status(root, err);
	return take_root(answer, root, err);
}

static bool chat_whole(struct answer *answer, struct str body, struct err *err)
{
	auto_value struct value *root = NULL;

	if (!failure_parse_whole(body, &root, err))
		return false;
	if (value_kind(value_member(root, "choices")) != VALUE_ARRAY)
		return err_set(err, EBADMSG,
			       "the answer is JSON, but not of a chat model (no \"choices\"): "
			       "check the base URL");
	return take_root(answer, root, err);
}

static void chat_done(struct answer *answer)
{
	answer_each_extra(answer, openai_chat_settle_details);
}

static bool openai_chat_write(const struct provider_settings *settings,
			      const struct model_request *request, struct buf *body,
			      struct err *err);

const struct provider openai_chat_provider = {
	.name = "openai-chat",
	.base_url = "https://api.openai.com/v1",
	.path = "/chat/completions",
	.key_name = "OPENAI_API_KEY",
	.key_header = "Authorization: Bearer ",
	.request = openai_chat_write,
	.event = chat_event,
	.whole = chat_whole,
	.done = chat_done,
	.error = failure_error,
};

/*
 * A conversation as the body of one Chat Completions request. Written straight into the
 * buffer, so that a long conversation is not built a second time.
 */

static bool message_has(const struct message *message, enum part_kind kind)
{
	for (size_t i = 0; i < message->part_count; i++) {
		if (message->parts[i].kind == kind)
			return true;
	}
	return false;
}

/* Append `"KEY":` and the text of all parts of KIND as one string. */
static void write_joined(const struct message *message, enum part_kind kind,
			 const char *key, struct buf *body)
{
	struct buf joined;

	buf_init(&joined, body->max);
	for (size_t i = 0; i < message->part_count; i++) {
		if (message->parts[i].kind == kind)
			(void)buf_addstr(&joined, str_of(message->parts[i].text));
	}
	(void)buf_addf(body, "\"%s\":", key);
	(void)value_quote(buf_str(&joined), body);
	body->overflowed = body->overflowed || joined.overflowed;
	buf_fini(&joined);
}

/* Append the arguments: a string whose content is a JSON object. */
static void write_arguments(const struct part *call, struct buf *body)
{
	struct buf object;

	buf_init(&object, body->max);
	conversation_add_arguments(call, &object);
	(void)value_quote(buf_str(&object), body);
	body->overflowed = body->overflowed || object.overflowed;
	buf_fini(&object);
}

static const char *known_field(const struct value *extra)
{
	struct str field = value_str(value_member(extra, CHAT_EXTRA_FIELD));

	for (size_t i = 0; chat_reasoning_fields[i]; i++) {
		if (str_is(field, chat_reasoning_fields[i]))
			return chat_reasoning_fields[i];
	}
	return NULL;
}

/*
 * Reasoning goes back in the field in which it came. Some servers refuse a conversation
 * without it, and those that do not need it drop it in their template. Details are
 * preferred, because they have the text too, with a signature. Thinking of other
 * providers is not sent.
 */
static void write_reasoning(const struct message *message, struct buf *body)
{
	const char *field = NULL;
	const char *separator = ",\"" CHAT_EXTRA_DETAILS "\":[";
	bool has_details = false;

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		const struct value *list = value_member(part->extra, CHAT_EXTRA_DETAILS);

		if (part->kind != PART_THINKING)
			continue;
		if (!field)
			field = known_field(part->extra);
		for (size_t n = 0; n < value_count(list); n++) {
			(void)buf_adds(body, separator);
			(void)value_print(value_item(list, n), 0, body);
			separator = ",";
			has_details = true;
		}
	}
	if (has_details) {
		(void)buf_addc(body, ']');
	} else if (field) {
		(void)buf_addc(body, ',');
		write_joined(message, PART_THINKING, field, body);
	}
}

static void write_model_message(const struct message *message, struct buf *body)
{
	bool has_calls = message_has(message, PART_CALL);

	(void)buf_adds(body, ",{\"role\":\"assistant\",");
	if (has_calls && !message_has(message, PART_TEXT))
		(void)buf_adds(body, "\"content\":null");
	else
		write_joined(message, PART_TEXT, "content", body);
	write_reasoning(message, body);
	conversation_add_calls(message, "\"type\":\"function\",", CHAT_EXTRA_CALL,
			       write_arguments, body);
	(void)buf_addc(body, '}');
}

static void write_result(const struct part *part, struct buf *body)
{
	(void)buf_adds(body, ",{\"role\":\"tool\",\"tool_call_id\":");
	(void)value_quote(str_of(part->call_id), body);
	(void)buf_adds(body, ",\"content\":");
	(void)value_quote(str_of(conversation_result_text(part)), body);
	(void)buf_addc(body, '}');
}

/*
 * Append the user's message of TEXT, behind the pictures OF_RESULTS and before its OWN, which
 * come with a text only. Both are pieces of its content, each with a comma before it.
 */
static void write_user_content(struct str text, struct str of_results, struct str own,
			       struct buf *body)
{
	const bool has_pictures = of_results.size > 0 || own.size > 0;

	if (text.size == 0 && !has_pictures)
		return;
	(void)buf_adds(body, ",{\"role\":\"user\",\"content\":");
	if (of_results.size > 0) {
		(void)buf_adds(body, "[{\"type\":\"text\",\"text\":\"" CONVERSATION_PICTURES
				     "\"}");
		(void)buf_addstr(body, of_results);
	}
	if (text.size > 0 && has_pictures)
		(void)buf_addf(body, "%c{\"type\":\"text\",\"text\":",
			       of_results.size > 0 ? ',' : '[');
	if (text.size > 0)
		(void)value_quote(text, body);
	if (text.size > 0 && has_pictures)
		(void)buf_addc(body, '}');
	(void)buf_addstr(body, own);
	(void)buf_adds(body, has_pictures ? "]}" : "}");
}

static void add_pictures(const struct part *part, bool sees, struct buf *pieces)
{
	if (sees)
		(void)conversation_add_pictures(
			part, ",{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:",
			";base64,", "\"}}", pieces);
}

/*
 * Append the user's messages from FIRST to before END. Results come first, because they
 * must follow their calls. Then all text follows as one message, because many templates
 * want the speakers in turns. The message has the pictures of the results as well (SEES),
 * because a result of this API is a text.
 */
static void write_user_run(const struct conversation *conversation, size_t first,
			   size_t end, bool sees, struct buf *body)
{
	struct buf text, pictures, own;

	buf_init(&text, body->max);
	buf_init(&pictures, body->max);
	buf_init(&own, body->max);
	for (size_t i = first; i < end; i++) {
		const struct message *message = &conversation->messages[i];

		for (size_t n = 0; n < message->part_count; n++) {
			const struct part *part = &message->parts[n];

			if (part->kind == PART_RESULT) {
				write_result(part, body);
				add_pictures(part, sees, &pictures);
			}
			if (part->kind != PART_TEXT || conversation_is_blank(part->text))
				continue;
			if (text.size > 0)
				(void)buf_adds(&text, "\n\n");
			(void)buf_adds(&text, part->text);
			add_pictures(part, sees, &own);
		}
	}
	write_user_content(buf_str(&text), buf_str(&pictures), buf_str(&own), body);
	body->overflowed = body->overflowed || text.overflowed || pictures.overflowed ||
			   own.overflowed;
	buf_fini(&pictures);
	buf_fini(&own);
	buf_fini(&text);
}

static bool is_model_message(const struct message *message)
{
	return message->speaker == SPEAKER_MODEL && message->part_count > 0;
}

static void write_messages(const struct conversation *conversation, bool sees,
			   struct buf *body)
{
	size_t first = 0;
	size_t list = body->size;

	if (!conversation_is_blank(conversation->system_prompt)) {
		(void)buf_adds(body, ",{\"role\":\"system\",\"content\":");
		(void)value_quote(str_of(conversation->system_prompt), body);
		(void)buf_addc(body, '}');
	}
	for (size_t i = 0; i < conversation->message_count; i++) {
		const struct message *message = &conversation->messages[i];

		if (!is_model_message(message))
			continue;
		write_user_run(conversation, first, i, sees, body);
		write_model_message(message, body);
		first = i + 1;
	}
	write_user_run(conversation, first, conversation->message_count, sees, body);
	/* Each tool began with a comma, so replace the first comma. */
	if (body->size > list)
		body->data[list] = '[';
	else
		(void)buf_addc(body, '[');
	(void)buf_addc(body, ']');
}

void openai_chat_write_tools(const struct model_request *request, struct buf *body)
{
	const char *separator = ",\"tools\":[";

	for (size_t i = 0; i < request->tool_count; i++) {
		const struct model_tool *tool = &request->tools[i];

		(void)buf_addf(body, "%s{\"type\":\"function\",\"function\":{\"name\":",
			       separator);
		(void)value_quote(str_of(tool->name), body);
		(void)buf_adds(body, ",\"description\":");
		(void)value_quote(str_of(tool->description), body);
		(void)buf_adds(body, ",\"parameters\":");
		conversation_add_schema(tool, body);
		(void)buf_adds(body, "}}");
		separator = ",";
	}
	if (request->tool_count > 0)
		(void)buf_addc(body, ']');
}

static bool openai_chat_write(const struct provider_settings *settings,
			      const struct model_request *request, struct buf *body,
			      struct err *err)
{
	(void)buf_adds(body, "{\"model\":");
	(void)value_quote(str_of(settings->model), body);
	(void)buf_adds(body, ",\"messages\":");
	write_messages(request->conversation, settings->sees, body);
	openai_chat_write_tools(request, body);
	if (settings->temperature >= 0 &&
	    openai_family_of(settings->model) != OPENAI_REASONS) {
		auto_value struct value *number = value_new_real(settings->temperature);

		(void)buf_adds(body, ",\"temperature\":");
		(void)value_print(number, 0, body);
	}
	/* Models that reason refuse the older name, and other servers do not know the newer. */
	if (settings->answer_max > 0)
		(void)buf_addf(body, ",\"%s\":%" PRIu64,
			       openai_family_of(settings->model) == OPENAI_REASONS
				       ? "max_completion_tokens"
				       : "max_tokens",
			       settings->answer_max);
	(void)buf_adds(body,
		       ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
	return conversation_fits(body, err);
}

/* Finds the family of a model by the beginning of its name. */

/* The first row that fits counts. */
static const struct {
	const char *start;
	enum openai_family family;
} rows[] = {
	{"gpt-3", OPENAI_PLAIN},   {"gpt-4", OPENAI_PLAIN},  {"chatgpt-", OPENAI_PLAIN},
	{"gpt-oss", OPENAI_OTHER}, {"gpt-", OPENAI_REASONS}, {"o1", OPENAI_REASONS},
	{"o3", OPENAI_REASONS},    {"o4", OPENAI_REASONS},   {"codex-", OPENAI_REASONS},
};

enum openai_family openai_family_of(const char *model)
{
	struct str name = str_of(model);

	for (size_t slash; (slash = str_find(name, STR("/"), 0)) != (size_t)-1;)
		name = str_part(name, slash + 1, name.size);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (str_starts(name, str_of(rows[i].start)))
			return rows[i].family;
	}
	return OPENAI_OTHER;
}
