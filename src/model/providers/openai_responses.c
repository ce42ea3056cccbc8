/*
 * openai_responses: answers of the Responses API and of servers that imitate it. The
 * event at an item's end has the item that counts; the pieces streamed before are only
 * for display. Events of unknown kinds are ignored.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "model/answer.h"
#include "model/conversation.h"
#include "model/failure.h"
#include "model/provider.h"
#include "model/providers/openai_chat.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define RESPONSES_EXTRA "response_item"
/* … and the pages that the words of a message cite. */
#define RESPONSES_CITED "cited"
/* Between the texts of a summary, which are its paragraphs. */
#define RESPONSES_PARAGRAPH "\n\n"

/* Items of a response's output as parts of an answer. */

/* A namespace that models write for tools that have none. */
#define NO_NAMESPACE "functions"

enum item_kind {
	ITEM_MESSAGE,
	ITEM_REASONING,
	ITEM_FUNCTION,
	ITEM_CUSTOM,
	ITEM_BUILT_IN, /* a call of a tool that the service knows and we did not offer */
	ITEM_OTHER,    /* hosted calls and their results, compaction, and unknown items */
};

static enum item_kind item_kind(const struct value *item)
{
	struct str type = value_str(value_member(item, "type"));

	if (str_is(type, "message"))
		return ITEM_MESSAGE;
	if (str_is(type, "reasoning"))
		return ITEM_REASONING;
	if (str_is(type, "function_call"))
		return ITEM_FUNCTION;
	if (str_is(type, "custom_tool_call"))
		return ITEM_CUSTOM;
	/* Only an item that waits for an answer has this id. */
	if (str_ends(type, STR("_call")) &&
	    value_str(value_member(item, "call_id")).size > 0)
		return ITEM_BUILT_IN;
	return ITEM_OTHER;
}

static enum part_kind part_kind(enum item_kind kind)
{
	switch (kind) {
	case ITEM_MESSAGE:
		return PART_TEXT;
	case ITEM_FUNCTION:
	case ITEM_CUSTOM:
	case ITEM_BUILT_IN:
		return PART_CALL;
	default:
		return PART_THINKING;
	}
}

/* The kind of part that ITEM becomes. */
static enum part_kind openai_responses_part_kind(const struct value *item)
{
	return part_kind(item_kind(item));
}

/* The id that events use for ITEM. A call of llama.cpp has only the id of the call. */
static struct str item_key(const struct value *item)
{
	struct str id = value_str(value_member(item, "id"));

	return id.size > 0 ? id : value_str(value_member(item, "call_id"));
}

/* Set the tool that a call means: its name, in its namespace if there is one. */
static void name_tool(struct answer *answer, struct answer_part *part,
		      enum item_kind kind, const struct value *item)
{
	struct str id = value_str(value_member(item, "call_id"));
	struct str name = value_str(value_member(item, "name"));
	struct str space = value_str(value_member(item, "namespace"));
	struct str type = value_str(value_member(item, "type"));
	struct buf whole;

	if (kind == ITEM_BUILT_IN)
		name = str_part(type, 0, type.size - strlen("_call"));
	if (name.size == 0 || space.size == 0 || str_is(space, NO_NAMESPACE)) {
		answer_part_call(answer, part, id, name);
		return;
	}
	buf_init(&whole, MODEL_ANSWER_MAX);
	(void)buf_addstr(&whole, space);
	if (!str_ends(space, STR("_")))
		(void)buf_addc(&whole, '_');
	(void)buf_addstr(&whole, name);
	answer_part_call(answer, part, id, buf_str(&whole));
	buf_fini(&whole);
}

/*
 * ITEM came as SIZE bytes, at INDEX of the output (< 0: not known). It begins, or it is
 * complete and replaces what was streamed.
 */
static void openai_responses_begin_item(struct answer *answer, int64_t index,
					const struct value *item)
{
	enum item_kind kind = item_kind(item);
	struct answer_part *part =
		answer_part(answer, part_kind(kind), index, item_key(item));

	if (part_kind(kind) == PART_CALL)
		name_tool(answer, part, kind, item);
}

/* Append to OUT the texts named KEY of all objects in LIST, with BETWEEN between them. */
static void join_texts(const struct value *list, const char *key, const char *between,
		       struct buf *out)
{
	for (size_t i = 0; i < value_count(list); i++) {
		struct str text = value_str(value_member(value_item(list, i), key));

		if (text.size > 0 && out->size > 0)
			(void)buf_adds(out, between);
		(void)buf_addstr(out, text);
	}
}

/* Append the words of a message. A refusal among them makes the answer a refusal. */
static void take_words(struct answer *answer, const struct value *content, struct buf *out)
{
	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *piece = value_item(content, i);
		struct str refusal = value_str(value_member(piece, "refusal"));

		(void)buf_addstr(out, value_str(value_member(piece, "text")));
		(void)buf_addstr(out, refusal);
		if (refusal.size > 0)
			answer_set_finish(answer, MODEL_FINISH_REFUSED);
	}
	/* In the API the content is a list, but a text is accepted too. */
	(void)buf_addstr(out, value_str(content));
}

/*
 * A free text is no JSON, so it becomes the one argument of an object, except when it is
 * an object itself.
 */
static void take_input(const struct value *input, struct buf *out)
{
	auto_value struct value *parsed = NULL;
	struct str text = value_str(input);

	if (value_parse(text, 0, &parsed, NULL) && value_kind(parsed) == VALUE_OBJECT) {
		(void)buf_addstr(out, text);
		return;
	}
	(void)buf_adds(out, "{\"input\":");
	(void)value_quote(text, out);
	(void)buf_addc(out, '}');
}

/* Append the text of ITEM's part: words, thoughts or arguments. */
static void item_text(struct answer *answer, enum item_kind kind,
		      const struct value *item, struct buf *out)
{
	const struct value *arguments = value_member(item, "arguments");
	const struct value *action = value_member(item, "action");

	switch (kind) {
	case ITEM_MESSAGE:
		take_words(answer, value_member(item, "content"), out);
		break;
	case ITEM_REASONING:
		join_texts(value_member(item, "summary"), "text", RESPONSES_PARAGRAPH, out);
		if (out->size == 0)
			join_texts(value_member(item, "content"), "text",
				   RESPONSES_PARAGRAPH, out);
		break;
	case ITEM_FUNCTION:
		if (value_kind(arguments) == VALUE_OBJECT)
			(void)value_print(arguments, 0, out);
		else
			(void)buf_addstr(out, value_str(arguments));
		break;
	case ITEM_CUSTOM:
		take_input(value_member(item, "input"), out);
		break;
	case ITEM_BUILT_IN:
		if (!action)
			action = value_member(item, "operation");
		if (action)
			(void)value_print(action, 0, out);
		break;
	case ITEM_OTHER:
		break;
	}
}

/*
 * A copy of ITEM without the members that the part holds itself, for the caller to free;
 * NULL when nothing is to be kept.
 */
static struct value *item_rest(enum item_kind kind, const struct value *item)
{
	struct value *rest;

	/*
	 * Nobody can give the answer that such a call waits for, so it goes back as a
	 * call of a function.
	 */
	if (kind == ITEM_BUILT_IN)
		return NULL;
	rest = value_copy(item);
	if (kind == ITEM_MESSAGE) {
		value_remove(rest, "content");
	} else if (kind == ITEM_FUNCTION) {
		value_remove(rest, "arguments");
		if (!value_member(rest, "namespace"))
			value_remove(rest, "name");
	}
	if (kind == ITEM_FUNCTION || kind == ITEM_CUSTOM)
		value_remove(rest, "call_id");
	return rest;
}

/* Keep the pages that the words of CONTENT cite. They are no part of what goes back. */
static void keep_cited(struct answer *answer, struct answer_part *part,
		       const struct value *content)
{
	struct value *cited = value_new_array();

	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *notes =
			value_member(value_item(content, i), "annotations");

		for (size_t n = 0; n < value_count(notes); n++) {
			const struct value *note = value_item(notes, n);

			if (str_is(value_str(value_member(note, "type")), "url_citation"))
				value_append(cited, value_copy(note));
		}
	}
	/* Their bytes were counted with those of the item. */
	if (value_count(cited) > 0)
		answer_part_keep(answer, part, RESPONSES_CITED, cited, 0);
	else
		value_free(cited);
}

static void openai_responses_take_item(struct answer *answer, int64_t index,
				       const struct value *item, size_t size)
{
	enum item_kind kind = item_kind(item);
	struct answer_part *part;
	struct value *rest;
	struct buf text;

	if (value_kind(item) != VALUE_OBJECT)
		return;
	part = answer_part(answer, part_kind(kind), index, item_key(item));
	if (answer_part_is_settled(part))
		return;
	buf_init(&text, MODEL_ANSWER_MAX);
	item_text(answer, kind, item, &text);
	if (part_kind(kind) == PART_CALL)
		name_tool(answer, part, kind, item);
	answer_part_settle(answer, part, buf_str(&text));
	rest = item_rest(kind, item);
	if (rest)
		answer_part_keep(answer, part, RESPONSES_EXTRA, rest, size);
	if (kind == ITEM_MESSAGE)
		keep_cited(answer, part, value_member(item, "content"));
	buf_fini(&text);
}

/*
 * A conversation as the body of one request to the Responses API. The service stores
 * nothing: everything that it said is in the input again, each item in its place. The
 * body is written straight into the buffer, so that a long conversation is not built a
 * second time.
 */

/* Digits of a hash that tells the conversations of one account apart. */
enum { CACHE_KEY_DIGITS = 32 };

/* Begin an item, with a comma before it, except when it is the first one since LIST. */
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

/* Append the members of ITEM. Further members begin with a comma. */
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

/* The item from which PART was made, when it has the type TYPE; or NULL. */
static const struct value *item_of(const struct part *part, const char *type)
{
	const struct value *item = value_member(part->extra, RESPONSES_EXTRA);

	return is_type(item, type) ? item : NULL;
}

static void write_text(const struct part *part, size_t list, struct buf *body)
{
	const struct value *item = item_of(part, "message");

	if (conversation_is_blank(part->text))
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
		conversation_add_arguments(part, &arguments);
		write_member("arguments", buf_str(&arguments), body);
		body->overflowed = body->overflowed || arguments.overflowed;
		buf_fini(&arguments);
	}
	(void)buf_addc(body, '}');
}

/*
 * Has ITEM enough data to go back? A service that stored nothing can read reasoning only
 * when it is in ITEM. It refuses reasoning that no other item of the same answer follows.
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
		    (part->kind == PART_TEXT && !conversation_is_blank(part->text)))
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

/*
 * Was the call CALL_ID, in the model's newest message before END, a call with a free
 * text?
 */
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

static void write_result(const struct part *part, bool custom, bool sees, size_t list,
			 struct buf *body)
{
	begin_item(list, body);
	(void)buf_addf(body, "\"type\":\"%s\"",
		       custom ? "custom_tool_call_output" : "function_call_output");
	write_member("call_id", str_of(part->call_id), body);
	if (sees && value_count(part->pictures) > 0) {
		(void)buf_adds(body, ",\"output\":[{\"type\":\"input_text\"");
		write_member("text", str_of(conversation_result_text(part)), body);
		(void)buf_addc(body, '}');
		(void)conversation_add_pictures(
			part, ",{\"type\":\"input_image\",\"image_url\":\"data:", ";base64,",
			"\"}", body);
		(void)buf_addc(body, ']');
	} else {
		write_member("output", str_of(conversation_result_text(part)), body);
	}
	(void)buf_addc(body, '}');
}

/*
 * Append the user's message AT: results first, because they must follow their calls, then
 * its texts.
 */
static void write_user_message(const struct conversation *conversation, size_t at,
			       bool sees, size_t list, struct buf *body)
{
	const struct message *message = &conversation->messages[at];
	const char *separator = "";

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind == PART_RESULT)
			write_result(part, is_custom(conversation, at, part->call_id),
				     sees, list, body);
	}
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind != PART_TEXT || conversation_is_blank(part->text))
			continue;
		if (!separator[0]) {
			begin_item(list, body);
			(void)buf_adds(body,
				       "\"type\":\"message\",\"role\":\"user\",\"content\":[");
		}
		(void)buf_addf(body, "%s{\"type\":\"input_text\"", separator);
		write_member("text", str_of(part->text), body);
		(void)buf_addc(body, '}');
		if (sees)
			(void)conversation_add_pictures(
				part, ",{\"type\":\"input_image\",\"image_url\":\"data:",
				";base64,", "\"}", body);
		separator = ",";
	}
	if (separator[0])
		(void)buf_adds(body, "]}");
}

static void write_input(const struct conversation *conversation, bool sees, struct buf *body)
{
	size_t list;

	(void)buf_adds(body, ",\"input\":[");
	list = body->size;
	for (size_t i = 0; i < conversation->message_count; i++) {
		if (conversation->messages[i].speaker == SPEAKER_MODEL)
			write_model_message(&conversation->messages[i], list, body);
		else
			write_user_message(conversation, i, sees, list, body);
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
		conversation_add_schema(tool, body);
		/* Without this member the service wants every argument to be required. */
		(void)buf_adds(body, ",\"strict\":false}");
		separator = ",";
	}
	if (request->searches > 0)
		(void)buf_addf(body, "%s{\"type\":\"web_search\"}", separator);
	if (request->tool_count > 0 || request->searches > 0)
		(void)buf_addc(body, ']');
}

/*
 * Requests with the same key are sent to the same cache. Requests that begin alike, with
 * the same system prompt and the same first message, get the same key.
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
			    enum openai_family family, bool searches, struct buf *body)
{
	static const char pages[] = "\"web_search_call.action.sources\"";

	if (family == OPENAI_PLAIN) {
		if (searches)
			(void)buf_addf(body, ",\"include\":[%s]", pages);
		return;
	}
	(void)buf_addf(body, ",\"include\":[\"reasoning.encrypted_content\"%s%s]",
		       searches ? "," : "", searches ? pages : "");
	if (settings->thinking_budget == 0)
		return;
	(void)buf_addf(body, ",\"reasoning\":{\"effort\":\"%s\",\"summary\":\"auto\"}",
		       conversation_effort(settings->thinking_budget));
}

/* A provider's `request`. */
static bool openai_responses_write(const struct provider_settings *settings,
				   const struct model_request *request, struct buf *body,
				   struct err *err)
{
	enum openai_family family = openai_family_of(settings->model);

	(void)buf_adds(body, "{\"model\":");
	(void)value_quote(str_of(settings->model), body);
	if (!conversation_is_blank(request->conversation->system_prompt))
		write_member("instructions", str_of(request->conversation->system_prompt),
			     body);
	write_input(request->conversation, settings->sees, body);
	write_tools(request, body);
	write_reasoning(settings, family, request->searches > 0, body);
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
	return conversation_fits(body, err);
}

static int64_t index_of(const struct value *event, const char *key)
{
	const struct value *index = value_member(event, key);

	return value_is_number(index) ? value_integer(index) : -1;
}

/* The part that EVENT names. EVENT streams a piece of this part. */
static struct answer_part *part_of(struct answer *answer, enum part_kind kind,
				   const struct value *event)
{
	return answer_part(answer, kind, index_of(event, "output_index"),
			   value_str(value_member(event, "item_id")));
}

static void take_delta(struct answer *answer, enum part_kind kind, const struct value *event)
{
	struct str delta = value_str(value_member(event, "delta"));

	if (delta.size > 0)
		answer_part_add(answer, part_of(answer, kind, event), delta);
}

/* False: TYPE is not that of a piece of an item. */
static bool take_piece(struct answer *answer, struct str type, const struct value *event)
{
	static const struct {
		const char *type;
		enum part_kind kind;
	} deltas[] = {
		{"response.output_text.delta", PART_TEXT},
		{"response.refusal.delta", PART_TEXT},
		{"response.reasoning_summary_text.delta", PART_THINKING},
		{"response.reasoning_text.delta", PART_THINKING},
		{"response.function_call_arguments.delta", PART_CALL},
	};

	for (size_t i = 0; i < sizeof(deltas) / sizeof(deltas[0]); i++) {
		if (str_is(type, deltas[i].type)) {
			take_delta(answer, deltas[i].kind, event);
			return true;
		}
	}
	if (str_is(type, "response.reasoning_summary_part.added")) {
		if (index_of(event, "summary_index") > 0)
			answer_part_add(answer, part_of(answer, PART_THINKING, event),
					STR(RESPONSES_PARAGRAPH));
		return true;
	}
	return false;
}

static void take_usage(struct answer *answer, const struct value *response)
{
	const struct value *usage = value_member(response, "usage");
	const struct value *sent = value_member(usage, "input_tokens_details");
	struct model_usage counts = {
		.input = failure_count(usage, "input_tokens"),
		.output = failure_count(usage, "output_tokens"),
		.cached = failure_count(sent, "cached_tokens"),
		.cache_writes = failure_count(sent, "cache_write_tokens"),
		.reasoning = failure_count(value_member(usage, "output_tokens_details"),
					   "reasoning_tokens"),
	};

	if (value_kind(usage) == VALUE_OBJECT)
		answer_set_usage(answer, &counts);
}

/*
 * Take items whose own end never came, because some servers send them only with the
 * response.
 */
static void take_output(struct answer *answer, const struct value *output, size_t size)
{
	bool settled[] = {
		[PART_TEXT] = answer_has_settled(answer, PART_TEXT),
		[PART_THINKING] = answer_has_settled(answer, PART_THINKING),
		[PART_CALL] = answer_has_settled(answer, PART_CALL),
	};

	for (size_t i = 0; i < value_count(output); i++) {
		const struct value *item = value_item(output, i);

		if (!settled[openai_responses_part_kind(item)])
			openai_responses_take_item(answer, (int64_t)i, item,
						   i == 0 ? size : 0);
	}
}

/* RESPONSE, which came as SIZE bytes, is over: take how it ended, and its content. */
static bool take_response(struct answer *answer, const struct value *response,
			  size_t size, struct err *err)
{
	const struct value *details = value_member(response, "incomplete_details");
	struct str status = value_str(value_member(response, "status"));

	take_usage(answer, response);
	if (str_is(status, "failed") || failure_is_error(response))
		return failure_refuse_status(response, err);
	take_output(answer, value_member(response, "output"), size);
	/* An answer whose own items made it a refusal stays a refusal. */
	if (answer_is_refused(answer))
		return true;
	if (!str_is(status, "incomplete"))
		answer_set_finish(answer, MODEL_FINISH_STOP);
	else if (str_is(value_str(value_member(details, "reason")), "content_filter"))
		answer_set_finish(answer, MODEL_FINISH_REFUSED);
	else
		answer_set_finish(answer, MODEL_FINISH_LENGTH);
	return true;
}

static bool take_event(struct answer *answer, struct str type, const struct value *event,
		       size_t size, bool *end, struct err *err)
{
	const struct value *item = value_member(event, "item");
	int64_t index = index_of(event, "output_index");

	if (str_is(type, "error"))
		return failure_refuse_status(event, err);
	if (take_piece(answer, type, event))
		return true;
	if (str_is(type, "response.output_item.added")) {
		openai_responses_begin_item(answer, index, item);
	} else if (str_is(type, "response.output_item.done")) {
		openai_responses_take_item(answer, index, item, size);
	} else if (str_is(type, "response.completed") ||
		   str_is(type, "response.incomplete") || str_is(type, "response.failed")) {
		*end = true;
		return take_response(answer, value_member(event, "response"), size, err);
	}
	return true;
}

static bool responses_event(struct answer *answer, struct str name, struct str data,
			    bool *end, struct err *err)
{
	auto_value struct value *root = NULL;
	struct str type;

	if (!failure_parse_event(data, &root, end, err))
		return false;
	if (!root)
		return true;
	type = value_str(value_member(root, "type"));
	if (type.size > 0)
		return take_event(answer, type, root, data.size, end, err);
	/* Gateways report their own errors in another form. */
	if (failure_is_error(root))
		return failure_refuse_status(root, err);
	return take_event(answer, name, root, data.size, end, err);
}

static bool responses_whole(struct answer *answer, struct str body, struct err *err)
{
	auto_value struct value *root = NULL;

	if (!failure_parse_whole(body, &root, err))
		return false;
	if (value_kind(value_member(root, "output")) != VALUE_ARRAY)
		return err_set(err, EBADMSG,
			       "the answer is JSON, but not of the Responses API (no "
			       "\"output\"): check the base URL, or use openai-chat");
	return take_response(answer, root, body.size, err);
}

/* The words name the pages that they are from; the search itself names all that it found. */
static void responses_sources(const struct part *part,
			      void (*each)(void *context, struct str url, struct str title),
			      void *context)
{
	const struct value *lists[] = {
		value_member(part->extra, RESPONSES_CITED),
		value_member(value_member(item_of(part, "web_search_call"), "action"),
			     "sources"),
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (size_t n = 0; n < value_count(lists[i]); n++) {
			const struct value *page = value_item(lists[i], n);

			each(context, value_str(value_member(page, "url")),
			     value_str(value_member(page, "title")));
		}
	}
}

const struct provider openai_provider = {
	.name = "openai",
	.base_url = "https://api.openai.com/v1",
	.path = "/responses",
	.key_name = "OPENAI_API_KEY",
	.key_header = "Authorization: Bearer ",
	.takes_thinking = true,
	.may_hide_cut = true,
	.sources = responses_sources,
	.request = openai_responses_write,
	.event = responses_event,
	.whole = responses_whole,
	.error = failure_error,
};
