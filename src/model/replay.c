/*
 * replay: plays one turn per question, after comparing the results with the turn's
 * expectations.
 */

#include "model/provider.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Checks a replay's script and names the place of an error. A table has every key of a
 * script; for an unknown key the error names the nearest one.
 */

/* The longest text like "demo.json, turn 3, call 2". */
enum { WHERE_MAX = 512, KEYS_MAX = 10 };

struct key {
	const char *name;
	enum value_kind kind; /* VALUE_NULL: it is checked separately */
	bool required;
};

static const struct key script_keys[] = {
	{"name", VALUE_STRING, false},
	{"turns", VALUE_ARRAY, true},
	{0},
};

static const struct key turn_keys[] = {
	{"thinking", VALUE_STRING, false},  {"text", VALUE_STRING, false},
	{"calls", VALUE_ARRAY, false},      {"expect", VALUE_ARRAY, false},
	{"delay_ms", VALUE_INTEGER, false}, {"repeat", VALUE_BOOLEAN, false},
	{"usage", VALUE_OBJECT, false},     {0},
};

static const struct key call_keys[] = {
	{"tool", VALUE_STRING, true},
	{"arguments", VALUE_NULL, false},
	{0},
};

static const struct key expect_keys[] = {
	{"tool", VALUE_STRING, false},
	{"contains", VALUE_STRING, false},
	{"status", VALUE_STRING, false},
	{0},
};

static const struct key usage_keys[] = {
	{"input", VALUE_INTEGER, false},
	{"output", VALUE_INTEGER, false},
	{"cached", VALUE_INTEGER, false},
	{0},
};

/* The statuses of a tool's result, as in the event log. */
static const char *const statuses[] = {"done",      "failed",    "denied",
				       "timed_out", "cancelled", NULL};

static const struct key *find_key(const struct key *keys, const char *name)
{
	for (; keys->name; keys++) {
		if (strcmp(keys->name, name) == 0)
			return keys;
	}
	return NULL;
}

static bool refuse_key(const struct key *keys, const char *name, const char *where,
		       struct err *err)
{
	const char *names[KEYS_MAX + 1] = {0};
	const char *nearest;

	for (size_t i = 0; i < KEYS_MAX && keys[i].name; i++)
		names[i] = keys[i].name;
	nearest = text_nearest(name, names);
	return err_set(err, EINVAL, "%s: unknown key \"%.80s\"%s%s%s", where, name,
		       nearest ? "; did you mean \"" : "", nearest ? nearest : "",
		       nearest ? "\"?" : "");
}

static bool check_object(const struct value *object, const struct key *keys,
			 const char *where, struct err *err)
{
	if (value_kind(object) != VALUE_OBJECT)
		return err_set(err, EINVAL, "%s: an object was expected, not %s", where,
			       value_kind_name(value_kind(object)));
	for (void *at = value_first(object); at; at = value_next(object, at)) {
		const struct key *key = find_key(keys, value_key(at));
		enum value_kind kind = value_kind(value_at(at));

		if (!key)
			return refuse_key(keys, value_key(at), where, err);
		if (key->kind != VALUE_NULL && kind != key->kind)
			return err_set(err, EINVAL, "%s: \"%s\" is to be %s, not %s",
				       where, key->name, value_kind_name(key->kind),
				       value_kind_name(kind));
		if (kind == VALUE_INTEGER && value_integer(value_at(at)) < 0)
			return err_set(err, EINVAL, "%s: \"%s\" is less than 0", where,
				       key->name);
	}
	for (; keys->name; keys++) {
		if (keys->required && !value_member(object, keys->name))
			return err_set(err, EINVAL, "%s: \"%s\" is missing", where,
				       keys->name);
	}
	return true;
}

static bool check_call(const struct value *call, const char *where, struct err *err)
{
	const struct value *arguments = value_member(call, "arguments");
	enum value_kind kind = value_kind(arguments);

	if (!check_object(call, call_keys, where, err))
		return false;
	if (str_trim(value_str(value_member(call, "tool"))).size == 0)
		return err_set(err, EINVAL, "%s: \"tool\" is empty", where);
	if (arguments && kind != VALUE_OBJECT && kind != VALUE_STRING)
		return err_set(err, EINVAL,
			       "%s: \"arguments\" is to be an object, or a string that goes out "
			       "unchanged",
			       where);
	return true;
}

static bool check_expect(const struct value *expect, const char *where, struct err *err)
{
	const char *status = value_text(value_member(expect, "status"));

	if (!check_object(expect, expect_keys, where, err))
		return false;
	if (value_count(expect) == 0)
		return err_set(err, EINVAL, "%s: it expects nothing", where);
	for (size_t i = 0; status && statuses[i]; i++) {
		if (strcmp(status, statuses[i]) == 0)
			return true;
	}
	if (status)
		return err_set(err, EINVAL,
			       "%s: \"status\" is done, failed, denied, timed_out or cancelled, "
			       "not \"%.40s\"",
			       where, status);
	return true;
}

static bool check_rows(const struct value *rows, const char *where, const char *noun,
		       bool (*check)(const struct value *row, const char *where,
				     struct err *err),
		       struct err *err)
{
	for (size_t i = 0; i < value_count(rows); i++) {
		char row_where[WHERE_MAX];

		/*
		 * Places are nested at most twice; a script's name that is too long is
		 * cut.
		 */
		(void)snprintf(row_where, sizeof(row_where), "%.*s, %s %zu",
			       WHERE_MAX / 2, where, noun, i + 1);
		if (!check(value_item(rows, i), row_where, err))
			return false;
	}
	return true;
}

static bool check_turn(const struct value *turn, bool is_last, const char *where,
		       struct err *err)
{
	const struct value *usage = value_member(turn, "usage");

	if (!check_object(turn, turn_keys, where, err))
		return false;
	if (value_integer(value_member(turn, "delay_ms")) > REPLAY_DELAY_MAX_MS)
		return err_set(err, EINVAL, "%s: \"delay_ms\" is more than %d", where,
			       REPLAY_DELAY_MAX_MS);
	if (value_is_true(value_member(turn, "repeat")) && !is_last)
		return err_set(err, EINVAL, "%s: only the last turn may repeat", where);
	if (value_count(value_member(turn, "calls")) > ANSWER_CALLS_MAX)
		return err_set(err, EINVAL, "%s: more than %d calls", where,
			       ANSWER_CALLS_MAX);
	if (usage && !check_object(usage, usage_keys, where, err))
		return false;
	return check_rows(value_member(turn, "calls"), where, "call", check_call, err) &&
	       check_rows(value_member(turn, "expect"), where, "expectation",
			  check_expect, err);
}

static bool replay_check(const struct value *script, const char *name, struct err *err)
{
	const struct value *turns = value_member(script, "turns");

	if (!check_object(script, script_keys, name, err))
		return false;
	if (value_count(turns) == 0)
		return err_set(err, EINVAL, "%s: there is no turn in \"turns\"", name);
	for (size_t i = 0; i < value_count(turns); i++) {
		char where[WHERE_MAX];

		(void)snprintf(where, sizeof(where), "%.200s, turn %zu", name, i + 1);
		if (!check_turn(value_item(turns, i), i + 1 == value_count(turns), where,
				err))
			return false;
	}
	return true;
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
