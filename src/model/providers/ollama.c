/* ollama: its answers, one JSON object a line. */
#include "model/providers/ollama.h"

#include <errno.h>

#include "base/value.h"
#include "model/failure.h"
#include "model/providers/openai_chat.h"

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
		/* Each comes whole: it is never the rest of the one before. */
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
		.input = service_count(root, "prompt_eval_count"),
		.output = service_count(root, "eval_count"),
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
	if (!service_parse(data, "a line of the answer is no JSON", &root, err))
		return false;
	if (service_is_error(root))
		return service_refuse(root, err);
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
	.error = service_error,
};
