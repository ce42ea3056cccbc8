/*
 * replay: plays one turn per question, after comparing the results with the turn's
 * expectations.
 */

#include "model/provider.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text/rows.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The keys of a script. */

static bool are_turns(const struct row *row, const struct value *turns,
		      struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i + 1 < value_count(turns); i++) {
		if (value_is_true(value_member(value_item(turns, i), "repeat")))
			return rows_refuse(problem, &(struct rows_place){.index = i},
					   "only the last turn may repeat");
	}
	return true;
}

static bool are_calls(const struct row *row, const struct value *calls,
		      struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i < value_count(calls); i++) {
		const struct value *call = value_item(calls, i);
		const struct value *arguments = value_member(call, "arguments");
		const enum value_kind kind = value_kind(arguments);
		const struct rows_place place = {.index = i};

		if (str_trim(value_str(value_member(call, "tool"))).size == 0)
			return rows_refuse(problem, &place, "\"tool\" is empty");
		if (arguments && kind != VALUE_OBJECT && kind != VALUE_STRING)
			return rows_refuse(problem, &place,
					   "\"arguments\" is to be an object, or a string "
					   "that goes out unchanged");
	}
	return true;
}

static bool are_expected(const struct row *row, const struct value *expected,
			 struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i < value_count(expected); i++) {
		if (value_count(value_item(expected, i)) == 0)
			return rows_refuse(problem, &(struct rows_place){.index = i},
					   "it expects nothing");
	}
	return true;
}

static const struct row call_rows[] = {
	{"tool", ROW_TEXT, .required = true},
	{"arguments", ROW_ANY},
	{0},
};

static const struct row expect_rows[] = {
	{"tool", ROW_TEXT},
	{"contains", ROW_TEXT},
	/* as in the event log */
	{"status", ROW_CHOICE, .choices = "done failed denied timed_out cancelled"},
	{0},
};

/* A larger number is a typing error, and not exact in other programs. */
#define USAGE_MAX 0x1p53

static const struct row usage_rows[] = {
	{"input", ROW_COUNT, .max = USAGE_MAX},
	{"output", ROW_COUNT, .max = USAGE_MAX},
	{"cached", ROW_COUNT, .max = USAGE_MAX},
	{0},
};

static const struct row turn_rows[] = {
	{"thinking", ROW_TEXT},
	{"text", ROW_TEXT},
	{"calls", ROW_LIST, .max = ANSWER_CALLS_MAX, .rows = call_rows, .check = are_calls},
	{"expect", ROW_LIST, .rows = expect_rows, .check = are_expected},
	{"delay_ms", ROW_COUNT, .max = REPLAY_DELAY_MAX_MS},
	{"repeat", ROW_FLAG},
	{"usage", ROW_OBJECT, .rows = usage_rows},
	{0},
};

static const struct row script_rows[] = {
	{"name", ROW_TEXT},
	{"turns", ROW_LIST, .required = true, .min = 1, .max = REPLAY_SCRIPT_MAX,
	 .rows = turn_rows, .check = are_turns},
	{0},
};

/* Append the place of POINTER in words: ", turn 3, call 2". */
static void add_place(const char *pointer, struct buf *where)
{
	static const char *const nouns[][2] = {{"/turns/", "turn"},
					       {"/calls/", "call"},
					       {"/expect/", "expectation"}};

	for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++) {
		const char *found = strstr(pointer, nouns[i][0]);

		if (found)
			(void)buf_addf(where, ", %s %lu", nouns[i][1],
				       strtoul(found + strlen(nouns[i][0]), NULL, 10) + 1);
	}
}

/* Say in SENTENCE what PROBLEM is, behind its place. */
static void add_problem(const struct rows_problem *problem, struct buf *sentence)
{
	const char *name = problem->row->name;
	const char *found = value_kind_name(value_kind(problem->value));
	const char *nearest = problem->nearest;

	switch (problem->fault) {
	case ROWS_KIND:
		if (!name ||
		    (problem->row->kind == ROW_LIST && problem->wanted == VALUE_OBJECT))
			(void)buf_addf(sentence, "an object was expected, not %s", found);
		else
			(void)buf_addf(sentence, "\"%s\" is to be %s, not %s", name,
				       value_kind_name(problem->wanted), found);
		break;
	case ROWS_UNKNOWN:
		(void)buf_addf(sentence, "unknown key \"%.80s\"%s%s%s", problem->key,
			       nearest ? "; did you mean \"" : "", nearest ? nearest : "",
			       nearest ? "\"?" : "");
		break;
	case ROWS_MISSING:
		(void)buf_addf(sentence, "\"%s\" is missing", name);
		break;
	case ROWS_EMPTY:
		(void)buf_addf(sentence, "there is no turn in \"%s\"", name);
		break;
	case ROWS_BELOW:
	case ROWS_ABOVE:
		(void)buf_addf(sentence, "\"%s\" %s %s than %.0f%s", name,
			       problem->row->kind == ROW_LIST ? "has" : "is",
			       problem->fault == ROWS_BELOW ? "less" : "more",
			       problem->bound,
			       problem->row->kind == ROW_LIST ? " items" : "");
		break;
	case ROWS_CHOICE:
		(void)buf_addf(sentence, "\"%s\" is one of %s, not \"%.40s\"", name,
			       problem->row->choices, value_text(problem->value));
		break;
	case ROWS_NUL:
	case ROWS_OTHER:
		(void)buf_adds(sentence, problem->why.text);
	}
}

static bool replay_check(const struct value *script, const char *name, struct err *err)
{
	static const struct row whole = {.kind = ROW_OBJECT, .rows = script_rows};
	struct rows_problem problem;
	struct buf sentence;

	if (rows_check(&whole, script, &problem))
		return true;
	buf_init(&sentence, ERR_TEXT_MAX);
	(void)buf_addf(&sentence, "%.200s", name);
	add_place(problem.pointer, &sentence);
	(void)buf_adds(&sentence, ": ");
	add_problem(&problem, &sentence);
	(void)err_set(err, EINVAL, "%s", sentence.data);
	buf_fini(&sentence);
	return false;
}

/* Bytes of a result that are quoted when it does not fit. */
enum { SHOWN_MAX = 200 };

struct replay {
	struct value *script;
	const struct value *turns;
	char *name;
	size_t at; /* the next turn */
	/* answered questions: this makes the ids of calls unique when a turn repeats */
	size_t asked;
};

bool replay_open(struct str script, const char *name, struct replay **replay, struct err *err)
{
	auto_value struct value *parsed = NULL;
	struct replay *opened;

	if (script.size > REPLAY_SCRIPT_MAX)
		return err_set(err, EFBIG, "%s: larger than %d MiB", name,
			       REPLAY_SCRIPT_MAX >> 20);
	if (!value_parse(script, VALUE_COMMENTS, &parsed, err))
		return err_while(err, "%s", name);
	if (!replay_check(parsed, name, err))
		return err_while(err, "a replay that cannot be played");
	opened = memory_alloc(sizeof(*opened));
	opened->script = value_ref(parsed);
	opened->turns = value_member(parsed, "turns");
	opened->name = memory_copy(name);
	*replay = opened;
	return true;
}

void replay_close(struct replay *replay)
{
	if (!replay)
		return;
	value_free(replay->script);
	free(replay->name);
	free(replay);
}

/*
 * The next result after the model's last message. The position goes forward with each
 * call; NULL after the last result.
 */
static const struct part *next_result(const struct conversation *conversation,
				      size_t *message_at, size_t *part_at)
{
	for (; *message_at < conversation->message_count; (*message_at)++, *part_at = 0) {
		const struct message *message = &conversation->messages[*message_at];

		while (*part_at < message->part_count) {
			const struct part *part = &message->parts[(*part_at)++];

			if (part->kind == PART_RESULT)
				return part;
		}
	}
	return NULL;
}

static size_t first_after_model(const struct conversation *conversation)
{
	size_t at = conversation->message_count;

	while (at > 0 && conversation->messages[at - 1].speaker != SPEAKER_MODEL)
		at--;
	return at;
}

static bool fits(const struct value *expect, const struct part *result)
{
	const char *tool = value_text(value_member(expect, "tool"));
	const char *status = value_text(value_member(expect, "status"));
	struct str part = value_str(value_member(expect, "contains"));

	if (tool && strcmp(tool, result->tool ? result->tool : "") != 0)
		return false;
	if (status && (strcmp(status, "done") == 0) == result->is_error)
		return false;
	return str_find(str_of(result->text), part, 0) != (size_t)-1;
}

static void add_quoted(struct buf *out, struct str text)
{
	struct str shown = str_part(text, 0, text_character_border(text, SHOWN_MAX));

	(void)value_quote(shown, out);
	if (shown.size < text.size)
		(void)buf_adds(out, "…");
}

/* Set ERR: which row of the turn did not fit, and all results. Always false. */
static bool refuse_results(const struct replay *replay, size_t row,
			   const struct value *expect,
			   const struct conversation *conversation, struct err *err)
{
	size_t message_at = first_after_model(conversation), part_at = 0;
	const struct part *result = next_result(conversation, &message_at, &part_at);
	struct buf came, wanted;

	buf_init(&came, ERR_TEXT_MAX);
	buf_init(&wanted, ERR_TEXT_MAX);
	(void)value_print(expect, 0, &wanted);
	if (!result)
		(void)buf_adds(&came, "no result");
	for (; result; result = next_result(conversation, &message_at, &part_at)) {
		(void)buf_addf(&came, "%s%s (%s) ", came.size > 0 ? "; " : "",
			       result->tool, result->is_error ? "not done" : "done");
		add_quoted(&came, str_of(result->text));
	}
	(void)err_set(err, EPROTO,
		      "the replay %s does not fit: turn %zu, expectation %zu wants %s, but this "
		      "came: %s",
		      replay->name, replay->at + 1, row + 1,
		      wanted.overflowed ? "a long text" : wanted.data, came.data);
	buf_fini(&came);
	buf_fini(&wanted);
	return false;
}

static bool check_results(const struct replay *replay, const struct value *turn,
			  const struct conversation *conversation, struct err *err)
{
	const struct value *rows = value_member(turn, "expect");
	size_t message_at = first_after_model(conversation), part_at = 0;

	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);
		const struct part *result;

		do {
			result = next_result(conversation, &message_at, &part_at);
		} while (result && !fits(row, result));
		if (!result)
			return refuse_results(replay, i, row, conversation, err);
	}
	return true;
}

/* The newest text of the user, except texts that stand beside results. */
static struct str newest_prompt(const struct conversation *conversation)
{
	for (size_t i = conversation->message_count; i > 0; i--) {
		const struct message *message = &conversation->messages[i - 1];
		const char *text = NULL;
		bool has_result = false;

		for (size_t n = 0; n < message->part_count; n++) {
			has_result = has_result || message->parts[n].kind == PART_RESULT;
			if (message->parts[n].kind == PART_TEXT && !text)
				text = message->parts[n].text;
		}
		if (message->speaker == SPEAKER_USER && text && !has_result)
			return str_of(text);
	}
	return STR("");
}

static void add_with_prompt(struct str text, struct str prompt, struct buf *out)
{
	static const char mark[] = "${prompt}";
	size_t at = 0;

	for (;;) {
		size_t found = str_find(text, STR(mark), at);

		if (found == (size_t)-1)
			break;
		(void)buf_addstr(out, str_part(text, at, found - at));
		(void)buf_addstr(out, prompt);
		at = found + sizeof(mark) - 1;
	}
	(void)buf_addstr(out, str_part(text, at, text.size));
}

static bool wait_for_word(int stop_fd, int delay_ms, struct err *err)
{
	struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
	int ready;

	do {
		ready = poll(&stop, 1, delay_ms);
	} while (ready < 0 && errno == EINTR);
	return ready <= 0 || err_set(err, ECANCELED, "stopped");
}

/* The size of the first word of TEXT with the blanks behind it. */
static size_t word_size(struct str text)
{
	size_t at = 0;

	while (at < text.size && !strchr(" \t\r\n", text.data[at]))
		at++;
	while (at < text.size && text.data[at] && strchr(" \t\r\n", text.data[at]))
		at++;
	return at > 0 ? at : 1;
}

static bool say(struct str text, int delay_ms, int stop_fd, struct answer *answer,
		void (*add)(struct answer *answer, struct str fragment), struct err *err)
{
	while (delay_ms > 0 && text.size > 0) {
		size_t size = word_size(text);

		add(answer, str_part(text, 0, size));
		text = str_part(text, size, text.size);
		if (!wait_for_word(stop_fd, delay_ms, err))
			return false;
	}
	add(answer, text);
	return true;
}

static void ask_for_calls(const struct replay *replay, const struct value *calls,
			  struct answer *answer)
{
	for (size_t i = 0; i < value_count(calls); i++) {
		const struct value *call = value_item(calls, i);
		const struct value *arguments = value_member(call, "arguments");
		struct buf text;
		char id[64];

		(void)snprintf(id, sizeof(id), "replay_%zu_%zu", replay->asked + 1, i + 1);
		buf_init(&text, REPLAY_SCRIPT_MAX * 2);
		if (value_kind(arguments) == VALUE_STRING)
			(void)buf_addstr(&text, value_str(arguments));
		else if (arguments)
			(void)value_print(arguments, 0, &text);
		(void)answer_add_call(answer, (int64_t)i, str_of(id),
				      value_str(value_member(call, "tool")),
				      buf_str(&text));
		buf_fini(&text);
	}
}

static bool play(const struct replay *replay, const struct value *turn,
		 const struct model_request *request, struct answer *answer, struct err *err)
{
	struct str prompt = newest_prompt(request->conversation);
	int delay_ms = (int)value_integer(value_member(turn, "delay_ms"));
	const struct value *usage = value_member(turn, "usage");
	struct model_usage counts = {
		.input = (uint64_t)value_integer(value_member(usage, "input")),
		.output = (uint64_t)value_integer(value_member(usage, "output")),
		.cached = (uint64_t)value_integer(value_member(usage, "cached")),
	};
	struct buf thinking, text;
	bool ok;

	buf_init(&thinking, MODEL_ANSWER_MAX);
	buf_init(&text, MODEL_ANSWER_MAX);
	add_with_prompt(value_str(value_member(turn, "thinking")), prompt, &thinking);
	add_with_prompt(value_str(value_member(turn, "text")), prompt, &text);
	ok = say(buf_str(&thinking), delay_ms, request->stop_fd, answer,
		 answer_add_thinking, err) &&
	     say(buf_str(&text), delay_ms, request->stop_fd, answer, answer_add_text, err);
	buf_fini(&thinking);
	buf_fini(&text);
	if (!ok)
		return false;
	ask_for_calls(replay, value_member(turn, "calls"), answer);
	answer_set_usage(answer, &counts);
	answer_set_finish(answer, value_count(value_member(turn, "calls")) > 0
					  ? MODEL_FINISH_CALLS
					  : MODEL_FINISH_STOP);
	return true;
}

/*
 * The turn after those that CONVERSATION has. A turn that repeats stands for all later
 * ones.
 */
static size_t turn_of(const struct replay *replay, const struct conversation *conversation)
{
	size_t count = value_count(replay->turns), answers = 0;
	const struct value *last = value_item(replay->turns, count - 1);

	for (size_t i = 0; i < conversation->message_count; i++)
		answers += conversation->messages[i].speaker == SPEAKER_MODEL;
	return answers >= count && value_is_true(value_member(last, "repeat")) ? count - 1
									       : answers;
}

bool replay_ask(struct replay *replay, const struct model_request *request,
		struct answer *answer, struct err *err)
{
	const struct value *turn;

	if (replay->asked == 0)
		replay->at = turn_of(replay, request->conversation);
	turn = value_item(replay->turns, replay->at);
	if (!turn)
		return err_set(err, EPROTO,
			       "the replay %s has only %zu turns, and one more was asked for",
			       replay->name, value_count(replay->turns));
	if (!wait_for_word(request->stop_fd, 0, err) ||
	    !check_results(replay, turn, request->conversation, err) ||
	    !play(replay, turn, request, answer, err))
		return false;
	replay->asked++;
	if (!value_is_true(value_member(turn, "repeat")))
		replay->at++;
	return true;
}
