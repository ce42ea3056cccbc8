/*
 * openai_responses_request: a conversation as the body of one request to the Responses API.
 * Stateless: the service stores nothing, and all that it said stands in the input again,
 * each item in its place. Written straight into the buffer, as a long conversation is not
 * built a second time.
 */
#include "model/providers/openai_responses.h"

#include <stddef.h>

#include "base/hash.h"
#include "model/conversation.h"
#include "model/providers/openai_chat.h"

/* Digits of a hash that tell the conversations of one account apart. */
enum { CACHE_KEY_DIGITS = 32 };

/* An item begins: after a comma unless it is the first since LIST. */
static void begin_item(size_t list, struct buf *body)
{
	if (body->size > list)
		(void)buf_addc(body, ',');
	(void)buf_addc(body, '{');
}

/* Append `,"KEY":"TEXT"`. */
static void write_member(const char *key, struct str text, struct buf *body)
{
	(void)buf_addf(body, ",\"%s\":", key);
	(void)value_quote(text, body);
}

/* The members of ITEM; what is written after it begins with a comma. */
static void write_members(const struct value *item, struct buf *body)
{
	const char *separator = "";

	for (void *at = value_first(item); at; at = value_next(item, at)) {
		(void)buf_adds(body, separator);
		(void)value_quote(str_of(value_key(at)), body);
		(void)buf_addc(body, ':');
		(void)value_print(value_at(at), 0, body);
		separator = ",";
	}
}

static bool is_type(const struct value *item, const char *type)
{
	return str_is(value_str(value_member(item, "type")), type);
}

/* The item that PART came as when it is one of TYPE, or NULL. */
static const struct value *item_of(const struct part *part, const char *type)
{
	const struct value *item = value_member(part->extra, RESPONSES_EXTRA);

	return is_type(item, type) ? item : NULL;
}

static void write_text(const struct part *part, size_t list, struct buf *body)
{
	const struct value *item = item_of(part, "message");

	if (request_is_blank(part->text))
		return;
	begin_item(list, body);
	if (item)
		write_members(item, body);
	else
		(void)buf_adds(body, "\"type\":\"message\",\"role\":\"assistant\"");
	(void)buf_adds(body, ",\"content\":[{\"type\":\"output_text\"");
	write_member("text", str_of(part->text), body);
	(void)buf_adds(body, ",\"annotations\":[]}]}");
}

static void write_call(const struct part *part, size_t list, struct buf *body)
{
	const struct value *function = item_of(part, "function_call");
	const struct value *custom = item_of(part, "custom_tool_call");
	struct buf arguments;

	begin_item(list, body);
	if (custom || function)
		write_members(custom ? custom : function, body);
	else
		(void)buf_adds(body, "\"type\":\"function_call\"");
	write_member("call_id", str_of(part->call_id), body);
	if (!custom) {
		if (!value_member(function, "name"))
			write_member("name", str_of(part->tool), body);
		buf_init(&arguments, body->max);
		request_add_arguments(part, &arguments);
		write_member("arguments", buf_str(&arguments), body);
		body->overflowed = body->overflowed || arguments.overflowed;
		buf_fini(&arguments);
	}
	(void)buf_addc(body, '}');
}

/*
 * Does ITEM say enough to go back? A service that stored nothing can read reasoning only
 * when it is in there, and takes none that nothing of the same answer follows.
 */
static bool may_go_back(const struct value *item, bool is_followed)
{
	if (value_kind(item) != VALUE_OBJECT)
		return false;
	if (!is_type(item, "reasoning"))
		return true;
	return is_followed && (value_str(value_member(item, "encrypted_content")).size > 0 ||
			       value_count(value_member(item, "content")) > 0);
}

/* Is there a text or a call after part AT of MESSAGE? */
static bool is_followed(const struct message *message, size_t at)
{
	for (size_t i = at + 1; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind == PART_CALL ||
		    (part->kind == PART_TEXT && !request_is_blank(part->text)))
			return true;
	}
	return false;
}

static void write_model_message(const struct message *message, size_t list, struct buf *body)
{
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		const struct value *item = value_member(part->extra, RESPONSES_EXTRA);

		if (part->kind == PART_TEXT) {
			write_text(part, list, body);
		} else if (part->kind == PART_CALL) {
			write_call(part, list, body);
		} else if (may_go_back(item, is_followed(message, i))) {
			if (body->size > list)
				(void)buf_addc(body, ',');
			(void)value_print(item, 0, body);
		}
	}
}

/* Was the call CALL_ID, of the model's newest message before END, one of a free text? */
static bool is_custom(const struct conversation *conversation, size_t end,
		      const char *call_id)
{
	struct str wanted = str_of(call_id);

	while (end > 0 && conversation->messages[end - 1].speaker != SPEAKER_MODEL)
		end--;
	for (size_t i = 0; end > 0 && i < conversation->messages[end - 1].part_count; i++) {
		const struct part *part = &conversation->messages[end - 1].parts[i];

		if (part->kind == PART_CALL && str_is(wanted, part->call_id))
			return item_of(part, "custom_tool_call") != NULL;
	}
	return false;
}

static void write_result(const struct part *part, bool custom, size_t list, struct buf *body)
{
	begin_item(list, body);
	(void)buf_addf(body, "\"type\":\"%s\"",
		       custom ? "custom_tool_call_output" : "function_call_output");
	write_member("call_id", str_of(part->call_id), body);
	write_member("output", str_of(request_result_text(part)), body);
	(void)buf_addc(body, '}');
}

/* The user's message AT: results first, as they must follow their calls, then its texts. */
static void write_user_message(const struct conversation *conversation, size_t at,
			       size_t list, struct buf *body)
{
	const struct message *message = &conversation->messages[at];
	const char *separator = "";

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind == PART_RESULT)
			write_result(part, is_custom(conversation, at, part->call_id),
				     list, body);
	}
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind != PART_TEXT || request_is_blank(part->text))
			continue;
		if (!separator[0]) {
			begin_item(list, body);
			(void)buf_adds(body,
				       "\"type\":\"message\",\"role\":\"user\",\"content\":[");
		}
		(void)buf_addf(body, "%s{\"type\":\"input_text\"", separator);
		write_member("text", str_of(part->text), body);
		(void)buf_addc(body, '}');
		separator = ",";
	}
	if (separator[0])
		(void)buf_adds(body, "]}");
}

static void write_input(const struct conversation *conversation, struct buf *body)
{
	size_t list;

	(void)buf_adds(body, ",\"input\":[");
	list = body->size;
	for (size_t i = 0; i < conversation->message_count; i++) {
		if (conversation->messages[i].speaker == SPEAKER_MODEL)
			write_model_message(&conversation->messages[i], list, body);
		else
			write_user_message(conversation, i, list, body);
	}
	(void)buf_addc(body, ']');
}

static void write_tools(const struct model_request *request, struct buf *body)
{
	const char *separator = ",\"tools\":[";

	for (size_t i = 0; i < request->tool_count; i++) {
		const struct model_tool *tool = &request->tools[i];

		(void)buf_addf(body, "%s{\"type\":\"function\"", separator);
		write_member("name", str_of(tool->name), body);
		write_member("description", str_of(tool->description), body);
		(void)buf_adds(body, ",\"parameters\":");
		request_add_schema(tool, body);
		/* Unless told the service wants every argument to be required. */
		(void)buf_adds(body, ",\"strict\":false}");
		separator = ",";
	}
	if (request->tool_count > 0)
		(void)buf_addc(body, ']');
}

/*
 * Requests with one key are led to one cache. It is that of all requests that begin alike:
 * with the same system prompt and the same first message.
 */
static void write_cache_key(const struct conversation *conversation, struct buf *body)
{
	char hex[HASH_HEX + 1];
	struct buf beginning;

	buf_init(&beginning, body->max);
	(void)buf_addstr(&beginning, str_of(conversation->system_prompt));
	(void)buf_addc(&beginning, '\0');
	if (conversation->message_count > 0) {
		const struct message *first = &conversation->messages[0];

		for (size_t i = 0; i < first->part_count; i++)
			(void)buf_addstr(&beginning, str_of(first->parts[i].text));
	}
	hash_text(buf_str(&beginning), hex);
	write_member("prompt_cache_key", (struct str){hex, CACHE_KEY_DIGITS}, body);
	buf_fini(&beginning);
}

static void write_reasoning(const struct provider_settings *settings,
			    enum openai_family family, struct buf *body)
{
	if (family == OPENAI_PLAIN)
		return;
	(void)buf_adds(body, ",\"include\":[\"reasoning.encrypted_content\"]");
	if (settings->thinking_budget == 0)
		return;
	(void)buf_addf(body, ",\"reasoning\":{\"effort\":\"%s\",\"summary\":\"auto\"}",
		       request_effort(settings->thinking_budget));
}

bool openai_responses_write(const struct provider_settings *settings,
			    const struct model_request *request, struct buf *body,
			    struct err *err)
{
	enum openai_family family = openai_family_of(settings->model);

	(void)buf_adds(body, "{\"model\":");
	(void)value_quote(str_of(settings->model), body);
	if (!request_is_blank(request->conversation->system_prompt))
		write_member("instructions", str_of(request->conversation->system_prompt),
			     body);
	write_input(request->conversation, body);
	write_tools(request, body);
	write_reasoning(settings, family, body);
	if (settings->temperature >= 0 && family != OPENAI_REASONS) {
		auto_value struct value *number = value_new_real(settings->temperature);

		(void)buf_adds(body, ",\"temperature\":");
		(void)value_print(number, 0, body);
	}
	if (settings->max_output > 0)
		(void)buf_addf(body, ",\"max_output_tokens\":%llu",
			       (unsigned long long)settings->max_output);
	write_cache_key(request->conversation, body);
	(void)buf_adds(body, ",\"store\":false,\"stream\":true}");
	return request_fits(body, err);
}
