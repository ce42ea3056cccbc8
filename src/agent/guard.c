/* guard: repeated calls and timeouts; see guard.h. */
#include "agent/guard.h"

#include "base/buf.h"
#include "base/value.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	/* The name and arguments of one call as text: arguments are part of a 16 MiB answer. */
	GUARD_TEXT_MAX = 64 << 20,
	/* Larger answers are not kept, and so not given again: three of these stay in memory. */
	GUARD_ANSWER_MAX = 256 << 10,
	/* A sentence by itself comes after so many times the calls of the first warning, … */
	GUARD_SAY_TIMES = 2,
	/* … or, where several calls take turns, after each has been warned of. */
	GUARD_SAY_CIRCLE_TIMES = GUARD_CIRCLE,
};

void guard_fini(struct guard *guard)
{
	for (size_t i = 0; i < GUARD_CIRCLE; i++)
		value_free(guard->seen[i].answer);
	*guard = (struct guard){0};
}

void guard_name(struct guard_call *call, const char *tool, const char *arguments)
{
	auto_value struct value *value = NULL;
	struct str given = str_trim(str_of(arguments));
	struct buf text;

	call->tool = tool;
	if (given.size == 0)
		given = STR("{}");
	buf_init(&text, GUARD_TEXT_MAX);
	buf_adds(&text, tool);
	buf_addc(&text, '\0');
	if (value_parse(given, VALUE_REPAIR, &value, NULL))
		(void)value_print(value, VALUE_SORTED, &text);
	else
		buf_addstr(&text, given);
	hash_text(buf_str(&text), call->key);
	buf_fini(&text);
}

/* Results without what differs each time. */

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

/* The size of the time at AT: a clock's, a date, or how long something took; or 0. */
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

/* Each run keeps what its answer does not show under another name. */
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

	buf_init(&whole, GUARD_TEXT_MAX);
	buf_init(&timeless, GUARD_TEXT_MAX);
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

/* Circles. */

static struct guard_seen *find(struct guard *guard, const char *key)
{
	for (size_t i = 0; i < GUARD_CIRCLE; i++) {
		if (strcmp(guard->seen[i].key, key) == 0)
			return &guard->seen[i];
	}
	return NULL;
}

/* Where KEY is remembered: its own place, or that of the call longest ago. */
static struct guard_seen *place_for(struct guard *guard, const char *key)
{
	struct guard_seen *known = find(guard, key);
	struct guard_seen *oldest = &guard->seen[0];

	for (size_t i = 1; i < GUARD_CIRCLE; i++) {
		if (guard->seen[i].last < oldest->last)
			oldest = &guard->seen[i];
	}
	return known != NULL ? known : oldest;
}

/* Forget the counts of earlier calls: the next circle begins here. */
static void begin_anew(struct guard *guard)
{
	guard->idle = 0;
	guard->said = false;
	for (size_t i = 0; i < GUARD_CIRCLE; i++) {
		guard->seen[i].count = guard->seen[i].count > 0;
		guard->seen[i].circles = false;
	}
}

/* Different calls of this circle. */
static size_t members(const struct guard *guard)
{
	size_t count = 0;

	for (size_t i = 0; i < GUARD_CIRCLE; i++)
		count += guard->seen[i].circles;
	return count;
}

/*
 * May a file have changed between what SEEN has and now? Where nobody looks after commands only
 * the call's own writing is known to be none when the same call said the same twice.
 */
static bool is_changed(const struct guard_seen *seen, const struct guard_call *call,
		       const struct session_writes *writes)
{
	return seen->found != writes->found ||
	       (!writes->looks && seen->writers != call->writers);
}

/*
 * Calls of this circle: those without progress, and the first round before them, as far as no
 * other call lies between.
 */
static uint64_t length(const struct guard *guard)
{
	uint64_t first = guard->calls - guard->idle + 1;
	bool longer = true;

	while (longer) {
		longer = false;
		for (size_t i = 0; i < GUARD_CIRCLE && !longer; i++)
			longer = guard->seen[i].circles && guard->seen[i].base + 1 == first;
		first -= longer;
	}
	return guard->calls + 1 - first;
}

static void decide(struct guard *guard, const char *tool)
{
	const size_t calls = members(guard);
	const uint64_t total = length(guard);
	const uint64_t stop = guard->stop == 0
				      ? UINT64_MAX
				      : guard->stop + (calls > 1 ? GUARD_CIRCLE_MORE : 0);
	const uint64_t say =
		guard->warn * (calls > 1 ? GUARD_SAY_CIRCLE_TIMES : GUARD_SAY_TIMES);

	if (guard->verdict >= GUARD_REPEATS)
		return;
	if (total >= stop) {
		guard->verdict = GUARD_REPEATS;
		if (calls == 1)
			(void)err_set(&guard->why, 0,
				      "The model called %s %" PRIu64
				      " times with the same arguments and the same result, so "
				      "the run was stopped.",
				      tool, total);
		else
			(void)err_set(&guard->why, 0,
				      "The model's last %" PRIu64
				      " calls were the same %zu over and over, with the same "
				      "results, so the run was stopped.",
				      total, calls);
	} else if (total >= say && say > 0 && !guard->said) {
		guard->said = true;
		guard->verdict = GUARD_SAY;
		(void)err_set(&guard->why, 0,
			      "The last %" PRIu64
			      " calls brought nothing new: the same calls, the same results, and "
			      "no file changed. Do something else, or end your turn and say what "
			      "you wait for or cannot do.",
			      total);
		if (guard->stop > 0) {
			const size_t size = strlen(guard->why.text);

			(void)snprintf(guard->why.text + size,
				       sizeof(guard->why.text) - size,
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

/* The call came again without progress; SEEN is told of it. */
static void count_again(struct guard *guard, struct guard_seen *seen, const char *tool)
{
	if (!seen->circles)
		seen->base = seen->last;
	seen->last = ++guard->calls;
	seen->count++;
	seen->circles = true;
	guard->idle++;
	decide(guard, tool);
}

static bool is_warned(const struct guard *guard, const struct guard_seen *seen)
{
	return guard->warn > 0 && seen->count >= guard->warn;
}

static void add_warning(const struct guard_seen *seen, const char *how, struct buf *text)
{
	(void)buf_end_line(text);
	(void)buf_adds(text, "[the ");
	add_ordinal(seen->count, text);
	(void)buf_addf(text,
		       " identical call %s; do something else, or say what you wait for]\n",
		       how);
}

struct value *guard_answer(struct guard *guard, const struct guard_call *call,
			   const struct session_writes *writes)
{
	struct guard_seen *seen = find(guard, call->key);
	struct value *answer;
	struct buf text;

	if (seen == NULL || seen->answer == NULL || !call->only_reads ||
	    !is_warned(guard, seen) || writes->writing ||
	    seen->writers != writes->writers || seen->found != writes->found)
		return NULL;
	count_again(guard, seen, call->tool);
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

static void take_timeout(struct guard *guard, struct tool_result *result)
{
	guard->timeouts = result->status == RESULT_TIMED_OUT ? guard->timeouts + 1 : 0;
	if (guard->warn > 0 && guard->timeouts >= GUARD_TIMEOUTS_TOLD) {
		(void)buf_end_line(&result->text);
		(void)buf_adds(&result->text, "[the ");
		add_ordinal(guard->timeouts, &result->text);
		(void)buf_adds(&result->text,
			       " call in a row that ran into its time limit; run it with "
			       "background=true and follow it with the tool job, or do less at "
			       "once]\n");
	}
	if (guard->stop == 0 || guard->timeouts < GUARD_TIMEOUTS_END ||
	    guard->verdict >= GUARD_REPEATS)
		return;
	guard->verdict = GUARD_TIMEOUTS;
	(void)err_set(&guard->why, 0,
		      "%" PRIu64
		      " calls in a row ran into their time limit, so the run was stopped.",
		      guard->timeouts);
}

static void keep_answer(struct guard_seen *seen, const struct guard_call *call,
			const struct tool_result *result)
{
	value_free(seen->answer);
	seen->answer = NULL;
	if (call->only_reads && result->text.size <= GUARD_ANSWER_MAX &&
	    result->content == NULL &&
	    (result->status == RESULT_DONE || result->status == RESULT_FAILED))
		seen->answer = tool_result_value(result);
}

void guard_result(struct guard *guard, const struct guard_call *call,
		  const struct session_writes *writes, struct tool_result *result)
{
	struct guard_seen *seen = find(guard, call->key);
	char key[HASH_HEX + 1];
	bool again;

	if (call->waits) {
		begin_anew(guard);
		guard->calls++;
		guard->timeouts = 0;
		return;
	}
	result_key(result, key);
	again = seen != NULL && strcmp(seen->result, key) == 0 &&
		!is_changed(seen, call, writes);
	if (!again) {
		begin_anew(guard);
		seen = place_for(guard, call->key);
		memcpy(seen->key, call->key, sizeof(seen->key));
		memcpy(seen->result, key, sizeof(seen->result));
		seen->count = 1;
	}
	keep_answer(seen, call, result);
	seen->found = writes->found;
	seen->writers = writes->writers;
	if (again)
		count_again(guard, seen, call->tool);
	else
		seen->last = ++guard->calls;
	if (again && is_warned(guard, seen))
		add_warning(seen, "with the same result", &result->text);
	take_timeout(guard, result);
}

enum guard_verdict guard_verdict(const struct guard *guard, struct err *why)
{
	*why = guard->why;
	return guard->verdict;
}

bool guard_take_sentence(struct guard *guard, struct err *sentence)
{
	if (guard->verdict != GUARD_SAY)
		return false;
	*sentence = guard->why;
	guard->verdict = GUARD_GO;
	return true;
}
