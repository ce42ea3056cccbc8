/*
 * openai_responses: answers of the Responses API and of servers that imitate it. The
 * event of an item's end has the item that counts; pieces that stream before are for
 * display. Events of unknown kinds are ignored.
 */
#include "model/providers/openai_responses.h"

#include <errno.h>

#include "model/failure.h"

static int64_t index_of(const struct value *event, const char *key)
{
	const struct value *index = value_member(event, key);

	return value_is_number(index) ? value_integer(index) : -1;
}

/* The part that EVENT, which streams a piece of it, names. */
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

/* False when TYPE is no piece of an item. */
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
		.input = service_count(usage, "input_tokens"),
		.output = service_count(usage, "output_tokens"),
		.cached = service_count(sent, "cached_tokens"),
		.cache_writes = service_count(sent, "cache_write_tokens"),
		.reasoning = service_count(value_member(usage, "output_tokens_details"),
					   "reasoning_tokens"),
	};

	if (value_kind(usage) == VALUE_OBJECT)
		answer_set_usage(answer, &counts);
}

/* Items whose own end never came: some servers say them only with the response. */
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

/* RESPONSE, which came as SIZE bytes, is over: how it ended, and what it holds. */
static bool take_response(struct answer *answer, const struct value *response,
			  size_t size, struct err *err)
{
	const struct value *details = value_member(response, "incomplete_details");
	struct str status = value_str(value_member(response, "status"));

	take_usage(answer, response);
	if (str_is(status, "failed") || service_is_error(response))
		return service_refuse(response, err);
	take_output(answer, value_member(response, "output"), size);
	/* An answer that its own items have made a refusal stays one. */
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
		return service_refuse(event, err);
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

	if (!service_parse_event(data, &root, end, err))
		return false;
	if (!root)
		return true;
	type = value_str(value_member(root, "type"));
	if (type.size > 0)
		return take_event(answer, type, root, data.size, end, err);
	/* Gateways give up in words of their own. */
	if (service_is_error(root))
		return service_refuse(root, err);
	return take_event(answer, name, root, data.size, end, err);
}

static bool responses_whole(struct answer *answer, struct str body, struct err *err)
{
	auto_value struct value *root = NULL;

	if (!service_parse_whole(body, &root, err))
		return false;
	if (value_kind(value_member(root, "output")) != VALUE_ARRAY)
		return err_set(err, EBADMSG,
			       "the answer is JSON, but not of the Responses API (no "
			       "\"output\"): check the base URL, or use openai-chat");
	return take_response(answer, root, body.size, err);
}

const struct provider openai_provider = {
	.name = "openai",
	.base_url = "https://api.openai.com/v1",
	.path = "/responses",
	.key_name = "OPENAI_API_KEY",
	.key_header = "Authorization: Bearer ",
	.may_hide_cut = true,
	.request = openai_responses_write,
	.event = responses_event,
	.whole = responses_whole,
	.error = service_error,
};
