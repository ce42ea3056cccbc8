/*
 * anthropic: answers of the Messages API and of servers that imitate it. Blocks are told
 * apart by their number, so they may overlap. An unknown block is kept and sent back; an
 * unknown event is ignored.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "model/conversation.h"
#include "model/failure.h"
#include "model/provider.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define ANTHROPIC_EXTRA "anthropic_block"

/*
 * How much a model may write and think. Each generation of models has its own words for
 * these limits, and refuses the words of the others.
 */

enum {
	/* Generations, by the numbers in a name: claude-opus-4-7 is 407. */
	GENERATION_OTHER = 0, /* no Claude: a server that imitates the API */
	GENERATION_3_5 = 305,
	GENERATION_3_7 = 307,
	/* Decides itself how long to think, and refuses budgets and temperatures. */
	GENERATION_ADAPTIVE = 407,
	GENERATION_UNNAMED = 9999, /* names without a number are newer than these */
};

enum {
	/*
	 * The tokens of one answer that every model of a generation can give. Some models
	 * can give more, but the number in the request is taken off the context.
	 */
	OUTPUT_3 = 4096,
	OUTPUT_3_5 = 8192,
	OUTPUT_CLAUDE = 32000,
	/*
	 * For models behind servers that imitate the API: on a small machine the whole
	 * context may be small.
	 */
	OUTPUT_OTHER = 16000,
	/* Added to a thinking budget that is not below the number above. */
	OUTPUT_AFTER_THINKING = 8000,
	/* The API refuses a smaller budget. */
	THINKING_MIN = 1024,
};

/*
 * Take the one or two digits at *AT as a number, and move *AT behind them. False: there
 * are none, or more (a date has eight).
 */
static bool take_number(struct str text, size_t *at, unsigned *number)
{
	size_t end = *at;

	*number = 0;
	while (end < text.size && text.data[end] >= '0' && text.data[end] <= '9') {
		if (end == *at + 2)
			return false;
		*number = *number * 10 + (unsigned)(text.data[end] - '0');
		end++;
	}
	if (end == *at)
		return false;
	*at = end;
	return true;
}

static unsigned generation_of(struct str name)
{
	size_t at = str_find(name, STR("claude"), 0);
	unsigned major, minor;

	if (at == (size_t)-1)
		return GENERATION_OTHER;
	while (at < name.size && (name.data[at] < '0' || name.data[at] > '9'))
		at++;
	if (!take_number(name, &at, &major))
		return GENERATION_UNNAMED;
	if (at < name.size && (name.data[at] == '-' || name.data[at] == '.')) {
		at++;
		if (take_number(name, &at, &minor))
			return major * 100 + minor;
	}
	return major * 100;
}

static uint64_t output_of(unsigned generation)
{
	if (generation == GENERATION_OTHER)
		return OUTPUT_OTHER;
	if (generation < GENERATION_3_5)
		return OUTPUT_3;
	return generation < GENERATION_3_7 ? OUTPUT_3_5 : OUTPUT_CLAUDE;
}

static void write_adaptive(uint64_t budget, struct buf *body)
{
	/* These models show their thinking only when the request asks for it. */
	(void)buf_addf(body,
		       ",\"thinking\":{\"type\":\"adaptive\",\"display\":\"summarized\"},"
		       "\"output_config\":{\"effort\":\"%s\"}",
		       conversation_effort(budget));
}

/* Append `"max_tokens":…` and the members about thinking and temperature. */
static void anthropic_write_limits(const struct provider_settings *settings, struct buf *body)
{
	unsigned generation = generation_of(str_of(settings->model));
	bool adaptive = generation >= GENERATION_ADAPTIVE;
	uint64_t most = settings->max_output;
	uint64_t output = most > 0 ? OUTPUT_CLAUDE : output_of(generation);
	uint64_t budget = settings->thinking_budget;

	/* Older models refuse a budget for thinking. */
	if (generation != GENERATION_OTHER && generation < GENERATION_3_7)
		budget = 0;
	/* One limit counts the tokens of the thinking and of the answer together. */
	if (budget >= output)
		output = budget + OUTPUT_AFTER_THINKING;
	if (most > 0 && output > most)
		output = most;
	if (adaptive) {
		(void)buf_addf(body, "\"max_tokens\":%llu", (unsigned long long)output);
		if (budget > 0)
			write_adaptive(budget, body);
		return;
	}
	if (budget > 0 && budget < THINKING_MIN)
		budget = THINKING_MIN;
	if (budget >= output)
		budget = output / 2 < THINKING_MIN ? 0 : output / 2;
	(void)buf_addf(body, "\"max_tokens\":%llu", (unsigned long long)output);
	if (budget > 0) {
		(void)buf_addf(body,
			       ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":%llu}",
			       (unsigned long long)budget);
	} else if (settings->temperature >= 0) {
		auto_value struct value *number = value_new_real(settings->temperature);

		(void)buf_adds(body, ",\"temperature\":");
		(void)value_print(number, 0, body);
	}
}

/*
 * A conversation as the body of one Messages request, written straight into the buffer.
 * The bytes of old messages are the same in each request, because the service finds its
 * cache by them.
 */

/*
 * The service caches the request up to a block with this mark. Four marks are allowed. We
 * mark the tools, the system prompt, and the ends of the newest two of the user's
 * messages; one of these was the end of the request before.
 */
#define CACHE_MARK ",\"cache_control\":{\"type\":\"ephemeral\"}"

enum { MARKED_MESSAGES = 2 };

/*
 * Consecutive messages of one speaker. They become one message of the API, which wants
 * the speakers in turns.
 */
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
		return !conversation_is_blank(part->text);
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

/* Find the next run at or after *AT, and move *AT behind the run. */
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

/*
 * A block stays open, because a cache mark may follow. The next block or the end of the
 * run closes it.
 */
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
 * A conversation that began with another service may have ids and names that this service
 * refuses. The id of a call and that of its result are changed in the same way.
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

/* Append the members of a kept BLOCK, except its type. */
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
	conversation_add_arguments(part, body);
	write_kept(kept_block(part), body);
}

static void write_result(const struct part *part, bool sees, bool *is_open, struct buf *body)
{
	open_block(is_open, "tool_result", body);
	write_name_member("tool_use_id", part->call_id, body);
	if (sees && value_count(part->pictures) > 0) {
		(void)buf_adds(body, ",\"content\":[{\"type\":\"text\"");
		write_text_member("text", str_of(conversation_result_text(part)), body);
		(void)buf_addc(body, '}');
		(void)conversation_add_pictures(part,
						",{\"type\":\"image\",\"source\":{\"type\":"
						"\"base64\",\"media_type\":\"",
						"\",\"data\":\"", "\"}}", body);
		(void)buf_addc(body, ']');
	} else {
		write_text_member("content", str_of(conversation_result_text(part)), body);
	}
	if (part->is_error)
		(void)buf_adds(body, ",\"is_error\":true");
}

static void write_part(const struct part *part, bool sees, bool *is_open, struct buf *body)
{
	if (!is_written(part))
		return;
	switch (part->kind) {
	case PART_TEXT:
		open_block(is_open, "text", body);
		write_text_member("text", str_of(part->text), body);
		/* The block of the last one stays open. */
		if (sees)
			(void)conversation_add_pictures(
				part,
				"},{\"type\":\"image\",\"source\":{\"type\":\"base64\","
				"\"media_type\":\"",
				"\",\"data\":\"", "\"}", body);
		break;
	case PART_THINKING:
		write_thinking(part, is_open, body);
		break;
	case PART_CALL:
		write_call(part, is_open, body);
		break;
	case PART_RESULT:
		write_result(part, sees, is_open, body);
		break;
	}
}

/* Append the parts of the run that are results, or all other parts. */
static void write_parts(const struct conversation *conversation, const struct run *run,
			bool results, bool sees, bool *is_open, struct buf *body)
{
	for (size_t i = run->first; i < run->end; i++) {
		const struct message *message = &conversation->messages[i];

		for (size_t n = 0; n < message->part_count; n++) {
			if ((message->parts[n].kind == PART_RESULT) == results)
				write_part(&message->parts[n], sees, is_open, body);
		}
	}
}

static void write_messages(const struct conversation *conversation, bool sees,
			   struct buf *body)
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
		/* The API refuses results behind other parts. */
		write_parts(conversation, &run, true, sees, &is_open, body);
		write_parts(conversation, &run, false, sees, &is_open, body);
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
		conversation_add_schema(tool, body);
	}
	if (request->tool_count > 0)
		(void)buf_adds(body, CACHE_MARK "}");
	if (request->searches > 0)
		(void)buf_addf(body,
			       "%s{\"type\":\"web_search_20250305\",\"name\":\"web_search\","
			       "\"max_uses\":%u}",
			       request->tool_count > 0 ? "," : ",\"tools\":[",
			       request->searches);
	if (request->tool_count > 0 || request->searches > 0)
		(void)buf_addc(body, ']');
}

/* A provider's `request`. */
static bool anthropic_write(const struct provider_settings *settings,
			    const struct model_request *request, struct buf *body,
			    struct err *err)
{
	const struct conversation *conversation = request->conversation;

	(void)buf_adds(body, "{\"model\":");
	(void)value_quote(str_of(settings->model), body);
	(void)buf_addc(body, ',');
	anthropic_write_limits(settings, body);
	write_tools(request, body);
	if (!conversation_is_blank(conversation->system_prompt)) {
		(void)buf_adds(body, ",\"system\":[{\"type\":\"text\"");
		write_text_member("text", str_of(conversation->system_prompt), body);
		(void)buf_adds(body, CACHE_MARK "}]");
	}
	write_messages(conversation, settings->sees, body);
	(void)buf_adds(body, ",\"stream\":true}");
	return conversation_fits(body, err);
}

/* This version has everything that we use, and the API still serves it on request. */
static const char *const headers[] = {"anthropic-version: 2023-06-01", NULL};

/* One event of the stream. Kept data is counted with the event's bytes. */
struct block_event {
	struct answer *answer;
	int64_t index; /* -1: the event has none */
	size_t size;
};

/*
 * Append a call's input as text: the API's pieces of JSON, or a value that came as a
 * whole.
 */
static void print_input(const struct value *input, struct buf *out)
{
	if (value_kind(input) == VALUE_STRING)
		(void)buf_addstr(out, value_str(input));
	else if (value_count(input) > 0)
		(void)value_print(input, 0, out);
}

/* BLOCK without the members that the part itself holds; NULL: nothing is left. */
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
	/*
	 * An input that comes with the beginning of a block is complete, and later pieces
	 * are ignored.
	 */
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

/* Settle the part whose block is open at the number of EVENT. */
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

	/*
	 * Some servers repeat a number or leave it out, so a new block ends the open one.
	 */
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

/*
 * The open part of KIND, or a new one, because some servers leave out the beginning of a
 * block.
 */
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
	/* The block is kept already; this call only counts its bytes. */
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
 * The API counts tokens that were read from its cache or written to it separately from
 * the input; we count them as parts of the input. Counts are totals, and later ones
 * replace earlier ones.
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
		uint64_t count = failure_count(rows[i].from, rows[i].key);

		/*
		 * Some servers send a count only at the beginning, others only at the
		 * end.
		 */
		if (count > 0)
			*rows[i].count = count;
	}
	sum.input = fresh + sum.cached + sum.cache_writes;
	answer_set_usage(answer, &sum);
}

/* The reason of a refusal is not in the content but in DETAILS. */
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

/*
 * Take the reason of the stop from SAYS, a message or its end. False: the end is a
 * failure.
 */
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

	if (!failure_parse_event(data, &root, end, err))
		return false;
	if (!root)
		return true;
	type = value_str(value_member(root, "type"));
	if (type.size == 0)
		type = name;
	if (str_is(type, "error") || failure_is_error(root))
		return failure_refuse_status(root, err);
	return take_event(answer, type, root, data.size, end, err);
}

static bool anthropic_whole(struct answer *answer, struct str body, struct err *err)
{
	auto_value struct value *root = NULL;
	const struct value *content;

	if (!failure_parse_whole(body, &root, err))
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
			/* All blocks are in BODY, whose size was checked already. */
			.size = 0,
		};

		begin_block(&event, value_item(content, i));
	}
	take_usage(answer, value_member(root, "usage"));
	return take_stop(answer, root, err);
}

/* The results of a search are a block of their own; a search that failed has none. */
static void anthropic_sources(const struct part *part,
			      void (*each)(void *context, struct str url, struct str title),
			      void *context)
{
	const struct value *block = kept_block(part);
	const struct value *content = value_member(block, "content");

	if (!str_is(value_str(value_member(block, "type")), "web_search_tool_result"))
		return;
	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *page = value_item(content, i);

		each(context, value_str(value_member(page, "url")),
		     value_str(value_member(page, "title")));
	}
}

const struct provider anthropic_provider = {
	.name = "anthropic",
	.base_url = "https://api.anthropic.com",
	.path = "/v1/messages",
	.key_name = "ANTHROPIC_API_KEY",
	.key_header = "x-api-key: ",
	.headers = headers,
	.takes_thinking = true,
	.sources = anthropic_sources,
	.request = anthropic_write,
	.event = anthropic_event,
	.whole = anthropic_whole,
	.error = failure_error,
};
