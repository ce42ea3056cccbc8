#include "agent/limits.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much is left of a turn. */

static const double ms_per_s = 1000;

void limits_init(struct limits *limits, int64_t now_ms)
{
	limits->began_ms = now_ms;
	limits->at_ms = now_ms;
	limits->announced = AGENT_STOPPED;
}

static double limits_elapsed_s(const struct limits *limits, int64_t now_ms)
{
	return (double)(now_ms - limits->began_ms) / ms_per_s;
}

static void limits_describe(const struct limits *limits, enum agent_reason reason,
			    struct buf *sentence)
{
	switch (reason) {
	case AGENT_ITERATIONS:
		buf_addf(sentence, "%" PRIu64 " answers of the model",
			 limits->iterations_max);
		break;
	case AGENT_TOKENS:
		buf_addf(sentence, "%" PRIu64 " tokens, %" PRIu64 " used",
			 limits->tokens_max, limits->tokens);
		break;
	case AGENT_MONEY:
		buf_addf(sentence, "%.6g US dollars, %.4f spent%s", limits->money_max,
			 limits->money,
			 limits->money_is_lost ? ", and an answer whose tokens the service "
						 "did not count"
					       : "");
		break;
	case AGENT_WALL:
		buf_addf(sentence, "%.0f seconds", limits->wall_s);
		break;
	default:
		buf_addf(sentence, "%.0f seconds in commands, %.0f used", limits->shell_s,
			 limits->shell_seconds);
		break;
	}
}

static bool limits_over(double used, double next, double max)
{
	return max > 0 && used + next >= max;
}

/*
 * The first limit that is reached now or, when AFTER_ANOTHER, after a step that uses as
 * much as the last one; AGENT_STOPPED: none.
 */
static enum agent_reason limits_reached(const struct limits *limits, int64_t now_ms,
					bool after_another)
{
	uint64_t more = after_another ? 1 : 0;
	uint64_t tokens = after_another ? limits->step_tokens : 0;
	double money = after_another ? limits->step_money : 0;
	double seconds = after_another ? limits->step_seconds : 0;
	double shell = after_another ? limits->step_shell_seconds : 0;

	if (limits->iterations_max > 0 && limits->iterations + more >= limits->iterations_max)
		return AGENT_ITERATIONS;
	if (limits->tokens_max > 0 && limits->tokens + tokens >= limits->tokens_max)
		return AGENT_TOKENS;
	if (limits_over(limits->money, money, limits->money_max) ||
	    (limits->money_max > 0 && limits->money_is_lost))
		return AGENT_MONEY;
	if (limits_over(limits_elapsed_s(limits, now_ms), seconds, limits->wall_s))
		return AGENT_WALL;
	if (limits_over(limits->shell_seconds, shell, limits->shell_s))
		return AGENT_SHELL;
	return AGENT_STOPPED;
}

static void limits_close_step(struct limits *limits, int64_t now_ms)
{
	limits->step_tokens = limits->tokens - limits->at_tokens;
	limits->step_money = limits->money - limits->at_money;
	limits->step_seconds = (double)(now_ms - limits->at_ms) / ms_per_s;
	limits->step_shell_seconds = limits->shell_seconds - limits->at_shell_seconds;
	limits->at_tokens = limits->tokens;
	limits->at_money = limits->money;
	limits->at_ms = now_ms;
	limits->at_shell_seconds = limits->shell_seconds;
}

enum limits_answer limits_step(struct limits *limits, int64_t now_ms,
			       enum agent_reason *reason, struct buf *sentence)
{
	limits_close_step(limits, now_ms);
	*reason = limits_reached(limits, now_ms, false);
	if (*reason == AGENT_STOPPED)
		*reason = limits->announced;
	if (*reason != AGENT_STOPPED) {
		buf_adds(sentence, "The limit of this run is reached (");
		limits_describe(limits, *reason, sentence);
		buf_adds(sentence, "); a new prompt goes on from here.");
		return LIMITS_STOP;
	}
	limits->announced = limits_reached(limits, now_ms, true);
	limits->iterations++;
	if (limits->announced == AGENT_STOPPED)
		return LIMITS_GO;
	buf_adds(sentence, "This is the last step of this run (limit: ");
	limits_describe(limits, limits->announced, sentence);
	buf_adds(sentence,
		 "). Calls of this answer still run, but you will not see their results. "
		 "Finish now: say what is done and what is left.");
	return LIMITS_LAST;
}

double limits_left_s(const struct limits *limits, int64_t now_ms, bool runs)
{
	double left = INFINITY;

	if (limits->wall_s > 0)
		left = limits->wall_s - limits_elapsed_s(limits, now_ms);
	if (runs && limits->shell_s > 0 && limits->shell_s - limits->shell_seconds < left)
		left = limits->shell_s - limits->shell_seconds;
	return left > 0 ? left : 0;
}

int64_t limits_deadline_ms(const struct limits *limits)
{
	if (limits->wall_s <= 0)
		return CLOCK_NEVER;
	return limits->began_ms + (int64_t)(limits->wall_s * ms_per_s);
}

/* Finds repeated calls and timeouts. */

enum {
	/* The name and arguments of one call as text: arguments are part of a 16 MiB answer. */
	CIRCLE_TEXT_MAX = 64 << 20,
	/*
	 * Larger answers are not kept, and so not given again: three answers stay in
	 * memory.
	 */
	CIRCLE_ANSWER_MAX = 256 << 10,
	/*
	 * The model gets a sentence of its own after so many times the number of calls
	 * that the first warning needs, …
	 */
	CIRCLE_SAY_TIMES = 2,
	/* … or, where several calls take turns, after each of them has got a warning. */
	CIRCLE_SAY_LONG_TIMES = CIRCLE_CALLS,
};

void circle_fini(struct circle *circle)
{
	for (size_t i = 0; i < CIRCLE_CALLS; i++)
		value_free(circle->seen[i].answer);
	*circle = (struct circle){0};
}

void circle_name(struct circle_call *call, const char *tool, const char *arguments)
{
	auto_value struct value *value = NULL;
	struct str given = str_trim(str_of(arguments));
	struct buf text;

	call->tool = tool;
	if (given.size == 0)
		given = STR("{}");
	buf_init(&text, CIRCLE_TEXT_MAX);
	buf_adds(&text, tool);
	buf_addc(&text, '\0');
	if (value_parse(given, VALUE_REPAIR, &value, NULL))
		(void)value_print(value, VALUE_SORTED, &text);
	else
		buf_addstr(&text, given);
	hash_text(buf_str(&text), call->key);
	buf_fini(&text);
}

/* Makes results comparable by removing the parts that differ each time. */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t digits(struct str text, size_t at)
{
	size_t count = 0;

	while (at + count < text.size && isdigit((unsigned char)text.data[at + count]))
		count++;
	return count;
}

/* SHAPE with a digit for each "0": its size when TEXT has it at AT, else 0. */
static size_t shape(struct str text, size_t at, const char *shape)
{
	const size_t size = strlen(shape);

	for (size_t i = 0; i < size; i++) {
		char c = at + i < text.size ? text.data[at + i] : '\0';

		if (shape[i] == '0' ? !isdigit((unsigned char)c) : c != shape[i])
			return 0;
	}
	return at + size < text.size && isdigit((unsigned char)text.data[at + size])
		       ? 0
		       : size;
}

/* The size of a number with a unit of time at AT ("0.02 s", "3ms", "0m0.12s"), or 0. */
static size_t lasting(struct str text, size_t at)
{
	static const char units[] =
		"s ms us µs ns sec secs second seconds min minute minutes";
	size_t size = digits(text, at), unit, end;

	if (at + size + 1 < text.size && text.data[at + size] == 'm' &&
	    digits(text, at + size + 1) > 0)
		size += 1 + digits(text, at + size + 1);
	if (at + size < text.size && text.data[at + size] == '.')
		size += 1 + digits(text, at + size + 1);
	unit = at + size;
	unit += unit < text.size && text.data[unit] == ' ';
	for (end = unit; end < text.size && is_word(text.data[end]);)
		end++;
	return str_among(units, str_part(text, unit, end - unit)) && end > unit ? end - at
										: 0;
}

/* The size of the time at AT: a time of day, a date, or a duration; 0: there is none. */
static size_t time_size(struct str text, size_t at)
{
	size_t size = shape(text, at, "0000-00-00");

	if (size == 0)
		size = shape(text, at, "00:00:00");
	return size > 0 ? size : lasting(text, at);
}

static void add_timeless(struct str text, struct buf *out)
{
	for (size_t at = 0; at < text.size;) {
		const bool begins =
			isdigit((unsigned char)text.data[at]) &&
			(at == 0 ||
			 (!is_word(text.data[at - 1]) && text.data[at - 1] != '.') ||
			 (text.data[at - 1] == 'T' && at > 1 &&
			  isdigit((unsigned char)text.data[at - 2])));
		const size_t size = begins ? time_size(text, at) : 0;

		if (size > 0)
			(void)buf_adds(out, "0");
		else
			(void)buf_addc(out, text.data[at]);
		at += size > 0 ? size : 1;
	}
}

/* Remove the path of the spill file, because each run of a call has another path. */
static void remove_spill(const struct tool_result *result, struct buf *text)
{
	struct str name = value_str(value_member(result->details, "spill"));
	size_t at = 0;

	if (name.size == 0)
		name = value_str(value_member(result->details, "saved"));
	while (name.size > 0 && (at = str_find(buf_str(text), name, at)) != (size_t)-1)
		buf_remove(text, at, name.size);
}

static void result_key(const struct tool_result *result, char key[HASH_HEX + 1])
{
	struct buf whole, timeless;

	buf_init(&whole, CIRCLE_TEXT_MAX);
	buf_init(&timeless, CIRCLE_TEXT_MAX);
	(void)buf_addstr(&whole, buf_str(&result->text));
	remove_spill(result, &whole);
	(void)buf_addf(&timeless, "%s %d %d ", result_status_name(result->status),
		       result->exit_code, result->signal);
	add_timeless(buf_str(&whole), &timeless);
	if (result->content != NULL)
		(void)value_print(result->content, VALUE_SORTED, &timeless);
	hash_text(buf_str(&timeless), key);
	buf_fini(&timeless);
	buf_fini(&whole);
}

/* Finds circles of calls. */

static struct circle_seen *find(struct circle *circle, const char *key)
{
	for (size_t i = 0; i < CIRCLE_CALLS; i++) {
		if (strcmp(circle->seen[i].key, key) == 0)
			return &circle->seen[i];
	}
	return NULL;
}

/* The place for KEY: its own place, or that of the call that was made longest ago. */
static struct circle_seen *place_for(struct circle *circle, const char *key)
{
	struct circle_seen *known = find(circle, key);
	struct circle_seen *oldest = &circle->seen[0];

	for (size_t i = 1; i < CIRCLE_CALLS; i++) {
		if (circle->seen[i].last < oldest->last)
			oldest = &circle->seen[i];
	}
	return known != NULL ? known : oldest;
}

/* Forget the counts of earlier calls: the next circle begins here. */
static void begin_anew(struct circle *circle)
{
	circle->idle = 0;
	circle->said = false;
	for (size_t i = 0; i < CIRCLE_CALLS; i++) {
		circle->seen[i].count = circle->seen[i].count > 0;
		circle->seen[i].circles = false;
	}
}

/* The number of different calls in this circle. */
static size_t members(const struct circle *circle)
{
	size_t count = 0;

	for (size_t i = 0; i < CIRCLE_CALLS; i++)
		count += circle->seen[i].circles;
	return count;
}

/*
 * May a file have changed since the result in SEEN? When nobody looks for changes after
 * commands, only one case is certain: the same call that gave the same result twice, with
 * no other writing call between, has changed nothing itself.
 */
static bool is_changed(const struct circle_seen *seen, const struct circle_call *call,
		       const struct session_writes *writes)
{
	return seen->found != writes->found ||
	       (!writes->looks && seen->writers != call->writers);
}

/*
 * The number of calls in this circle: the calls without progress, and the first round
 * before them, as far as no other call lies between.
 */
static uint64_t length(const struct circle *circle)
{
	uint64_t first = circle->calls - circle->idle + 1;
	bool longer = true;

	while (longer) {
		longer = false;
		for (size_t i = 0; i < CIRCLE_CALLS && !longer; i++)
			longer = circle->seen[i].circles &&
				 circle->seen[i].base + 1 == first;
		first -= longer;
	}
	return circle->calls + 1 - first;
}

static void decide(struct circle *circle, const char *tool)
{
	const size_t calls = members(circle);
	const uint64_t total = length(circle);
	const uint64_t stop = circle->stop == 0
				      ? UINT64_MAX
				      : circle->stop + (calls > 1 ? CIRCLE_CALLS_MORE : 0);
	const uint64_t say =
		circle->warn * (calls > 1 ? CIRCLE_SAY_LONG_TIMES : CIRCLE_SAY_TIMES);

	if (circle->verdict >= CIRCLE_REPEATS)
		return;
	if (total >= stop) {
		circle->verdict = CIRCLE_REPEATS;
		if (calls == 1)
			(void)err_set(&circle->why, 0,
				      "The model called %s %" PRIu64
				      " times with the same arguments and the same result, so "
				      "the run was stopped.",
				      tool, total);
		else
			(void)err_set(&circle->why, 0,
				      "The model's last %" PRIu64
				      " calls were the same %zu over and over, with the same "
				      "results, so the run was stopped.",
				      total, calls);
	} else if (total >= say && say > 0 && !circle->said) {
		circle->said = true;
		circle->verdict = CIRCLE_SAY;
		(void)err_set(&circle->why, 0,
			      "The last %" PRIu64
			      " calls brought nothing new: the same calls, the same results, and "
			      "no file changed. Do something else, or end your turn and say what "
			      "you wait for or cannot do.",
			      total);
		if (circle->stop > 0) {
			const size_t size = strlen(circle->why.text);

			(void)snprintf(circle->why.text + size,
				       sizeof(circle->why.text) - size,
				       " After %" PRIu64 " such calls the run ends.", stop);
		}
	}
}

static void add_ordinal(uint64_t number, struct buf *text)
{
	static const char *const words[] = {"first", "second", "third",   "fourth",
					    "fifth", "sixth",  "seventh", "eighth",
					    "ninth", "tenth"};

	if (number <= sizeof(words) / sizeof(words[0]))
		(void)buf_adds(text, words[number - 1]);
	else
		(void)buf_addf(text, "%" PRIu64 ".", number);
}

/* The call came again without progress: count it in SEEN. */
static void count_again(struct circle *circle, struct circle_seen *seen, const char *tool)
{
	if (!seen->circles)
		seen->base = seen->last;
	seen->last = ++circle->calls;
	seen->count++;
	seen->circles = true;
	circle->idle++;
	decide(circle, tool);
}

static bool is_warned(const struct circle *circle, const struct circle_seen *seen)
{
	return circle->warn > 0 && seen->count >= circle->warn;
}

static void add_warning(const struct circle_seen *seen, const char *how, struct buf *text)
{
	(void)buf_end_line(text);
	(void)buf_adds(text, "[the ");
	add_ordinal(seen->count, text);
	(void)buf_addf(text,
		       " identical call %s; do something else, or say what you wait for]\n",
		       how);
}

struct value *circle_answer(struct circle *circle, const struct circle_call *call,
			    const struct session_writes *writes)
{
	struct circle_seen *seen = find(circle, call->key);
	struct value *answer;
	struct buf text;

	if (seen == NULL || seen->answer == NULL || !call->only_reads ||
	    !is_warned(circle, seen) || writes->writing ||
	    seen->writers != writes->writers || seen->found != writes->found)
		return NULL;
	count_again(circle, seen, call->tool);
	answer = value_copy(seen->answer);
	buf_init(&text, 2 * RESULT_TEXT_MAX);
	(void)buf_addstr(&text, value_str(value_member(answer, "text")));
	add_warning(seen,
		    "with the same result, answered from before without running because no "
		    "file changed since",
		    &text);
	value_set_str(answer, "text", buf_str(&text));
	value_set_boolean(answer, "from_before", true);
	value_set_real(answer, "seconds", 0);
	buf_fini(&text);
	return answer;
}

static void take_timeout(struct circle *circle, struct tool_result *result)
{
	circle->timeouts = result->status == RESULT_TIMED_OUT ? circle->timeouts + 1 : 0;
	if (circle->warn > 0 && circle->timeouts >= CIRCLE_TIMEOUTS_TOLD) {
		(void)buf_end_line(&result->text);
		(void)buf_adds(&result->text, "[the ");
		add_ordinal(circle->timeouts, &result->text);
		(void)buf_adds(&result->text,
			       " call in a row that ran into its time limit; run it with "
			       "background=true and follow it with the tool job, or do less at "
			       "once]\n");
	}
	if (circle->stop == 0 || circle->timeouts < CIRCLE_TIMEOUTS_END ||
	    circle->verdict >= CIRCLE_REPEATS)
		return;
	circle->verdict = CIRCLE_TIMEOUTS;
	(void)err_set(&circle->why, 0,
		      "%" PRIu64
		      " calls in a row ran into their time limit, so the run was stopped.",
		      circle->timeouts);
}

static void keep_answer(struct circle_seen *seen, const struct circle_call *call,
			const struct tool_result *result)
{
	value_free(seen->answer);
	seen->answer = NULL;
	if (call->only_reads && result->text.size <= CIRCLE_ANSWER_MAX &&
	    result->content == NULL &&
	    (result->status == RESULT_DONE || result->status == RESULT_FAILED))
		seen->answer = tool_result_value(result);
}

void circle_result(struct circle *circle, const struct circle_call *call,
		   const struct session_writes *writes, struct tool_result *result)
{
	struct circle_seen *seen = find(circle, call->key);
	char key[HASH_HEX + 1];
	bool again;

	if (call->waits) {
		begin_anew(circle);
		circle->calls++;
		circle->timeouts = 0;
		return;
	}
	result_key(result, key);
	again = seen != NULL && strcmp(seen->result, key) == 0 &&
		!is_changed(seen, call, writes);
	if (!again) {
		begin_anew(circle);
		seen = place_for(circle, call->key);
		memcpy(seen->key, call->key, sizeof(seen->key));
		memcpy(seen->result, key, sizeof(seen->result));
		seen->count = 1;
	}
	keep_answer(seen, call, result);
	seen->found = writes->found;
	seen->writers = writes->writers;
	if (again)
		count_again(circle, seen, call->tool);
	else
		seen->last = ++circle->calls;
	if (again && is_warned(circle, seen))
		add_warning(seen, "with the same result", &result->text);
	take_timeout(circle, result);
}

enum circle_verdict circle_verdict(const struct circle *circle, struct err *why)
{
	*why = circle->why;
	return circle->verdict;
}

bool circle_take_sentence(struct circle *circle, struct err *sentence)
{
	if (circle->verdict != CIRCLE_SAY)
		return false;
	*sentence = circle->why;
	circle->verdict = CIRCLE_GO;
	return true;
}
