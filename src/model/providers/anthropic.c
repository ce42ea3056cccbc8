/*
 * anthropic: answers of the Messages API and of servers that imitate it. Blocks are told
 * apart by their number, so that they may overlap; what is unknown among them is kept
 * and sent back, what is unknown among events is nothing to us.
 */
#include "model/providers/anthropic.h"

#include <errno.h>

#include "model/failure.h"

/* The version that has all that we use; the API still serves it on request. */
static const char *const headers[] = {"anthropic-version: 2023-06-01", NULL};

/* The bytes of an event, against which what is kept of it is counted. */
struct block_event {
	struct answer *answer;
	int64_t index; /* -1: not said */
	size_t size;
};

/* Input as text: the API's pieces of JSON, or a value that came whole. */
static void print_input(const struct value *input, struct buf *out)
{
	if (value_kind(input) == VALUE_STRING)
		(void)buf_addstr(out, value_str(input));
	else if (value_count(input) > 0)
		(void)value_print(input, 0, out);
}

/* BLOCK without the members that the part itself holds, or NULL when that is nothing. */
static struct value *rest_of_block(const struct value *block, const char *const *held)
{
	struct value *rest = value_copy(block);

	for (; *held; held++)
		value_remove(rest, *held);
	if (value_count(rest) > 0)
		return rest;
	value_free(rest);
	return NULL;
}

static void begin_text(const struct block_event *event, const struct value *block)
{
	struct answer_part *part =
		answer_part_begin(event->answer, PART_TEXT, event->index);

	answer_part_add(event->answer, part, value_str(value_member(block, "text")));
}

static struct answer_part *begin_thinking(const struct block_event *event,
					  const struct value *block)
{
	static const char *const held[] = {"thinking", NULL};
	struct answer_part *part =
		answer_part_begin(event->answer, PART_THINKING, event->index);

	answer_part_keep(event->answer, part, ANTHROPIC_EXTRA, rest_of_block(block, held),
			 event->size);
	answer_part_add(event->answer, part, value_str(value_member(block, "thinking")));
	return part;
}

static void begin_call(const struct block_event *event, const struct value *block)
{
	static const char *const held[] = {"type", "id", "name", "input", NULL};
	struct answer_part *part =
		answer_part_begin(event->answer, PART_CALL, event->index);
	struct value *rest = rest_of_block(block, held);
	struct buf input;

	answer_part_call(event->answer, part, value_str(value_member(block, "id")),
			 value_str(value_member(block, "name")));
	if (rest)
		answer_part_keep(event->answer, part, ANTHROPIC_EXTRA, rest, event->size);
	buf_init(&input, MODEL_ANSWER_MAX);
	print_input(value_member(block, "input"), &input);
	/* An input that comes with the beginning is whole; later pieces are ignored. */
	if (input.size > 0)
		answer_part_settle(event->answer, part, buf_str(&input));
	buf_fini(&input);
}

static void begin_other(const struct block_event *event, const struct value *block)
{
	struct answer_part *part =
		answer_part_begin(event->answer, PART_THINKING, event->index);

	answer_part_keep(event->answer, part, ANTHROPIC_EXTRA, value_copy(block),
			 event->size);
}

/* Settle the part whose block is open at the event's number. */
static void end_block(const struct block_event *event)
{
	struct answer_part *part = answer_part_open(event->answer, event->index);
	struct value *block = answer_part_kept(part, ANTHROPIC_EXTRA);
	struct str collected = answer_part_collected(part);
	struct value *input = NULL;

	if (block && collected.size > 0 && value_parse(collected, 0, &input, NULL))
		value_set(block, "input", input);
	answer_part_settle(event->answer, part, STR(""));
}

static void begin_block(const struct block_event *event, const struct value *block)
{
	struct str type = value_str(value_member(block, "type"));

	/* Servers may repeat a number or leave it out: a new block ends the open one. */
	end_block(event);
	if (str_is(type, "text"))
		begin_text(event, block);
	else if (str_is(type, "thinking"))
		(void)begin_thinking(event, block);
	else if (str_is(type, "tool_use"))
		begin_call(event, block);
	else if (type.size > 0)
		begin_other(event, block);
}

/* The open part of KIND, or a new one when no block began there: some leave that out. */
static struct answer_part *part_for(const struct block_event *event, enum part_kind kind)
{
	struct answer_part *part = answer_part_open(event->answer, event->index);
	auto_value struct value *block = NULL;

	if (part && answer_part_kind(part) == kind)
		return part;
	if (kind == PART_TEXT)
		return answer_part_begin(event->answer, kind, event->index);
	block = value_new_object();
	value_set_text(block, "type", "thinking");
	return begin_thinking(event, block);
}

static bool is_thinking(const struct value *block)
{
	return str_is(value_str(value_member(block, "type")), "thinking");
}

static void take_input(const struct block_event *event, const struct value *piece)
{
	struct answer_part *part = answer_part_open(event->answer, event->index);
	const struct value *block = answer_part_kept(part, ANTHROPIC_EXTRA);
	struct buf text;

	if (!part || answer_part_kind(part) == PART_TEXT || is_thinking(block))
		return;
	buf_init(&text, MODEL_ANSWER_MAX);
	print_input(piece, &text);
	if (answer_part_kind(part) == PART_CALL)
		answer_part_add(event->answer, part, buf_str(&text));
	else
		answer_part_collect(event->answer, part, buf_str(&text));
	buf_fini(&text);
}

static void take_signature(const struct block_event *event, struct str signature)
{
	struct answer_part *part = answer_part_open(event->answer, event->index);
	struct value *block = answer_part_kept(part, ANTHROPIC_EXTRA);

	if (!is_thinking(block))
		return;
	value_set_str(block, "signature", signature);
	/* Kept already; this counts it. */
	answer_part_keep(event->answer, part, ANTHROPIC_EXTRA, value_ref(block),
			 event->size);
}

static void take_delta(const struct block_event *event, const struct value *delta)
{
	struct str type = value_str(value_member(delta, "type"));
	struct str text = value_str(value_member(delta, "text"));
	struct str thinking = value_str(value_member(delta, "thinking"));

	if (str_is(type, "text_delta") && text.size > 0)
		answer_part_add(event->answer, part_for(event, PART_TEXT), text);
	else if (str_is(type, "thinking_delta") && thinking.size > 0)
		answer_part_add(event->answer, part_for(event, PART_THINKING), thinking);
	else if (str_is(type, "signature_delta"))
		take_signature(event, value_str(value_member(delta, "signature")));
	else if (str_is(type, "input_json_delta"))
		take_input(event, value_member(delta, "partial_json"));
}

/*
 * The API counts what was read from its cache and written to it beside the input, we as
 * parts of it. Counts are totals, and later ones replace what was said before.
 */
static void take_usage(struct answer *answer, const struct value *usage)
{
	struct model_usage sum = *answer_usage(answer);
	uint64_t fresh = sum.input - sum.cached - sum.cache_writes;
	const struct {
		const struct value *from;
		const char *key;
		uint64_t *count;
	} rows[] = {
		{usage, "input_tokens", &fresh},
		{usage, "cache_read_input_tokens", &sum.cached},
		{usage, "cache_creation_input_tokens", &sum.cache_writes},
		{usage, "output_tokens", &sum.output},
		{value_member(usage, "output_tokens_details"), "thinking_tokens",
		 &sum.reasoning},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t count = service_count(rows[i].from, rows[i].key);

		/* Some know it at the beginning only, others at the end only. */
		if (count > 0)
			*rows[i].count = count;
	}
	sum.input = fresh + sum.cached + sum.cache_writes;
	answer_set_usage(answer, &sum);
}

/* Why it was refused is said beside the content. */
static void take_refusal(struct answer *answer, const struct value *details)
{
	struct str category = value_str(value_member(details, "category"));
	struct str explanation = value_str(value_member(details, "explanation"));
	struct buf text;

	if (category.size == 0 && explanation.size == 0)
		return;
	buf_init(&text, MODEL_ANSWER_MAX);
	(void)buf_adds(&text, "The service refused");
	if (category.size > 0)
		(void)buf_addf(&text, " (%.*s)", (int)category.size, category.data);
	(void)buf_adds(&text, explanation.size > 0 ? ": " : ".");
	(void)buf_addstr(&text, explanation);
	answer_part_add(answer, answer_part_begin(answer, PART_TEXT, -1), buf_str(&text));
	buf_fini(&text);
}

/* From SAYS, a message or the end of one. False for an end that is a failure. */
static bool take_stop(struct answer *answer, const struct value *says, struct err *err)
{
	static const struct {
		const char *word;
		enum model_finish finish;
	} words[] = {
		{"tool_use", MODEL_FINISH_CALLS},
		{"max_tokens", MODEL_FINISH_LENGTH},
		{"refusal", MODEL_FINISH_REFUSED},
		{"pause_turn", MODEL_FINISH_PAUSED},
	};
	struct str reason = value_str(value_member(says, "stop_reason"));
	enum model_finish finish = MODEL_FINISH_STOP;

	if (reason.size == 0)
		return true;
	if (str_is(reason, "model_context_window_exceeded"))
		return err_set(err, E2BIG,
			       "the answer was cut because the model's context is full "
			       "(model_context_window_exceeded): begin a new session");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_is(reason, words[i].word))
			finish = words[i].finish;
	}
	if (finish == MODEL_FINISH_REFUSED && !answer_is_refused(answer))
		take_refusal(answer, value_member(says, "stop_details"));
	answer_set_finish(answer, finish);
	return true;
}

static bool take_event(struct answer *answer, struct str type, const struct value *root,
		       size_t size, bool *end, struct err *err)
{
	const struct value *number = value_member(root, "index");
	const struct block_event event = {
		.answer = answer,
		.index = value_kind(number) == VALUE_INTEGER ? value_integer(number) : -1,
		.size = size,
	};

	if (str_is(type, "message_start")) {
		take_usage(answer, value_member(value_member(root, "message"), "usage"));
	} else if (str_is(type, "content_block_start")) {
		begin_block(&event, value_member(root, "content_block"));
	} else if (str_is(type, "content_block_delta")) {
		take_delta(&event, value_member(root, "delta"));
	} else if (str_is(type, "content_block_stop")) {
		end_block(&event);
	} else if (str_is(type, "message_delta")) {
		take_usage(answer, value_member(root, "usage"));
		return take_stop(answer, value_member(root, "delta"), err);
	} else if (str_is(type, "message_stop")) {
		*end = true;
	}
	return true;
}

static bool anthropic_event(struct answer *answer, struct str name, struct str data,
			    bool *end, struct err *err)
{
	auto_value struct value *root = NULL;
	struct str type;

	if (!service_parse_event(data, &root, end, err))
		return false;
	if (!root)
		return true;
	type = value_str(value_member(root, "type"));
	if (type.size == 0)
		type = name;
	if (str_is(type, "error") || service_is_error(root))
		return service_refuse(root, err);
	return take_event(answer, type, root, data.size, end, err);
}

static bool anthropic_whole(struct answer *answer, struct str body, struct err *err)
{
	auto_value struct value *root = NULL;
	const struct value *content;

	if (!service_parse_whole(body, &root, err))
		return false;
	content = value_member(root, "content");
	if (value_kind(content) != VALUE_ARRAY)
		return err_set(err, EBADMSG,
			       "the answer is JSON, but not of the Messages API (no "
			       "\"content\"): check the base URL");
	for (size_t i = 0; i < value_count(content); i++) {
		const struct block_event event = {
			.answer = answer,
			.index = (int64_t)i,
			/* All of them are in BODY, whose size was held against the ceiling. */
			.size = 0,
		};

		begin_block(&event, value_item(content, i));
	}
	take_usage(answer, value_member(root, "usage"));
	return take_stop(answer, root, err);
}

const struct provider anthropic_provider = {
	.name = "anthropic",
	.base_url = "https://api.anthropic.com",
	.path = "/v1/messages",
	.key_name = "ANTHROPIC_API_KEY",
	.key_header = "x-api-key: ",
	.headers = headers,
	.request = anthropic_write,
	.event = anthropic_event,
	.whole = anthropic_whole,
	.error = service_error,
};
