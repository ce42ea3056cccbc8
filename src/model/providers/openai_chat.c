/*
 * openai_chat: answers of Chat Completions servers and of all that imitate them. Tolerant
 * on purpose: what it accepts beyond the API is what servers really send.
 */
#include "model/providers/openai_chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/failure.h"
#include "model/provider.h"

const char *const chat_reasoning_fields[] = {"reasoning_content", "reasoning", NULL};

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
			answer_add_thinking(answer, service_first_text(item, text_keys));
	}
}

static void take_reasoning(struct answer *answer, const struct value *delta)
{
	bool shown = false;

	/* Servers on their way from one name to the other send both, with equal text. */
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

/* Text, or a list of typed pieces of text and thinking (Mistral). */
static void take_content(struct answer *answer, const struct value *content)
{
	static const char *const text_keys[] = {"text", NULL};

	answer_add_text(answer, value_str(content));
	if (value_kind(content) != VALUE_ARRAY)
		return;
	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *piece = value_item(content, i);
		const struct value *thinking = value_member(piece, "thinking");

		answer_add_text(answer, service_first_text(piece, text_keys));
		answer_add_thinking(answer, value_str(thinking));
		for (size_t n = 0;
		     value_kind(thinking) == VALUE_ARRAY && n < value_count(thinking); n++)
			answer_add_thinking(answer,
					    service_first_text(value_item(thinking, n),
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
	/* By the API a string; some send the object itself. */
	if (value_kind(arguments) == VALUE_OBJECT || value_kind(arguments) == VALUE_ARRAY)
		(void)value_print(arguments, 0, &text);
	else
		(void)buf_addstr(&text, value_str(arguments));
	part = answer_add_call(answer, index, id_text,
			       value_str(value_member(function, "name")), buf_str(&text));
	buf_fini(&text);
	return part;
}

/* Keep EXTRA, which came with a call and has to go back with it, unchanged. */
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

/* One delta of a stream or the message of a whole answer. */
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
		return service_is_error(choice)
			       ? service_refuse(choice, err)
			       : err_set(err, EAGAIN,
					 "the service ended the answer with an error "
					 "it does not name");
	/* An answer that its own text has made a refusal stays one. */
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
		counts.input = service_count(usage, "prompt_tokens");
		counts.output = service_count(usage, "completion_tokens");
		counts.cached = service_count(sent, "cached_tokens");
		if (counts.cached == 0)
			counts.cached = service_count(usage, "prompt_cache_hit_tokens");
		counts.cache_writes = service_count(sent, "cache_write_tokens");
		counts.reasoning =
			service_count(value_member(usage, "completion_tokens_details"),
				      "reasoning_tokens");
		answer_set_usage(answer, &counts);
	} else if (value_kind(timings) == VALUE_OBJECT) {
		/* llama.cpp counts apart what it took from its cache. */
		counts.cached = service_count(timings, "cache_n");
		counts.input = service_count(timings, "prompt_n") + counts.cached;
		counts.output = service_count(timings, "predicted_n");
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

		/* We ask for one; a second would be told twice. */
		if (value_integer(value_member(choice, "index")) != 0)
			continue;
		take_message(answer, delta);
		/* Some close a stream with the whole message once more. */
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

	if (!service_parse_event(data, &root, end, err))
		return false;
	if (!root)
		return true;
	if (str_is(name, "error") || service_is_error(root))
		return service_refuse(root, err);
	return take_root(answer, root, err);
}

static bool chat_whole(struct answer *answer, struct str body, struct err *err)
{
	auto_value struct value *root = NULL;

	if (!service_parse_whole(body, &root, err))
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
	.error = service_error,
};
