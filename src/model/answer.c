/* answer: parts in the order of their first fragment, and the message made of them. */
#include "model/answer_inside.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

/* ASCII's own character for one that cannot be kept. */
enum { SUBSTITUTE = 0x1a };

struct answer *answer_new(const struct model_sink *sink)
{
	struct answer *answer = memory_alloc(sizeof(*answer));

	answer->sink = sink;
	return answer;
}

void answer_free(struct answer *answer)
{
	if (!answer)
		return;
	for (size_t i = 0; i < answer->count; i++) {
		buf_fini(&answer->parts[i].text);
		buf_fini(&answer->parts[i].collected);
		free(answer->parts[i].id);
		free(answer->parts[i].tool);
		free(answer->parts[i].key);
		value_free(answer->parts[i].extra);
	}
	free(answer->parts);
	free(answer);
}

struct answer_part *answer_new_part(struct answer *answer, enum part_kind kind)
{
	struct answer_part *part;

	if (answer->count == ANSWER_PARTS_MAX ||
	    (kind == PART_CALL && answer->calls == ANSWER_CALLS_MAX)) {
		answer->overflowed = true;
		return NULL;
	}
	if (answer->count == answer->capacity) {
		answer->capacity = answer->capacity ? answer->capacity * 2 : 4;
		answer->parts = memory_grow(answer->parts, answer->capacity,
					    sizeof(*answer->parts));
	}
	part = &answer->parts[answer->count++];
	*part = (struct answer_part){.kind = kind, .index = -1};
	buf_init(&part->text, MODEL_ANSWER_MAX);
	buf_init(&part->collected, MODEL_ANSWER_MAX);
	if (kind == PART_CALL) {
		answer->calls++;
		part->tool = memory_copy("");
	}
	return part;
}

bool answer_takes(struct answer *answer, size_t size)
{
	if (size > MODEL_ANSWER_MAX - answer->bytes)
		answer->overflowed = true;
	else if (!answer->overflowed)
		answer->bytes += size;
	return !answer->overflowed;
}

bool answer_is_blank(struct str text)
{
	return str_trim(text).size == 0;
}

static void scan_feed(struct scan *scan, struct str text)
{
	for (size_t i = 0; i < text.size && !scan->whole; i++) {
		char c = text.data[i];

		if (scan->escaped) {
			scan->escaped = false;
		} else if (scan->in_string) {
			scan->escaped = c == '\\';
			scan->in_string = c != '"';
		} else if (c == '"') {
			scan->in_string = true;
		} else if (c == '{' || c == '[') {
			scan->depth++;
			scan->begun = true;
		} else if ((c == '}' || c == ']') && scan->depth > 0) {
			scan->depth--;
			scan->whole = scan->depth == 0;
		} else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
			scan->begun = true;
		}
	}
}

void answer_fill(struct answer_part *part, struct str fragment)
{
	(void)buf_addstr(&part->text, fragment);
	if (part->kind == PART_CALL)
		scan_feed(&part->scan, fragment);
}

void answer_put(struct answer *answer, struct answer_part *part, struct str fragment)
{
	const struct model_sink *sink = answer->sink;

	answer_fill(part, fragment);
	if (part->kind == PART_TEXT && sink && sink->text)
		sink->text(sink->context, fragment);
	if (part->kind == PART_THINKING && sink && sink->thinking)
		sink->thinking(sink->context, fragment);
}

/* The part of KIND since the last call, or a new one; NULL over the ceiling. */
static struct answer_part *answer_open_part(struct answer *answer, enum part_kind kind)
{
	for (size_t i = answer->count; i > 0; i--) {
		struct answer_part *part = &answer->parts[i - 1];

		if (part->kind == kind)
			return part;
		if (part->kind == PART_CALL)
			break;
	}
	return answer_new_part(answer, kind);
}

static void answer_add_fragment(struct answer *answer, enum part_kind kind,
				struct str fragment)
{
	struct answer_part *part;

	if (fragment.size == 0 || !answer_takes(answer, fragment.size))
		return;
	part = answer_open_part(answer, kind);
	if (part)
		answer_put(answer, part, fragment);
}

void answer_add_text(struct answer *answer, struct str fragment)
{
	answer_add_fragment(answer, PART_TEXT, fragment);
}

void answer_add_thinking(struct answer *answer, struct str fragment)
{
	answer_add_fragment(answer, PART_THINKING, fragment);
}

struct value *answer_thinking_extra(struct answer *answer)
{
	struct answer_part *part = answer_open_part(answer, PART_THINKING);

	/* Text and thinking between two calls are two parts at most. */
	assert(part);
	if (!part->extra)
		part->extra = value_new_object();
	return part->extra;
}

void answer_each_extra(struct answer *answer, void (*each)(struct value *extra))
{
	for (size_t i = 0; i < answer->count; i++) {
		if (answer->parts[i].extra)
			each(answer->parts[i].extra);
	}
}

void answer_set_finish(struct answer *answer, enum model_finish finish)
{
	answer->finish = finish;
	answer->finished = true;
}

void answer_set_usage(struct answer *answer, const struct model_usage *usage)
{
	answer->usage = *usage;
}

const struct model_usage *answer_usage(const struct answer *answer)
{
	return &answer->usage;
}

static bool answer_is_paused(const struct answer *answer)
{
	return answer->finished && answer->finish == MODEL_FINISH_PAUSED;
}

bool answer_has_content(const struct answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		const struct answer_part *part = &answer->parts[i];

		if (part->kind == PART_CALL || !answer_is_blank(buf_str(&part->text)))
			return true;
		/* A pause is often in the middle of what only the service understands. */
		if (answer_is_paused(answer) && value_count(part->extra) > 0)
			return true;
	}
	return false;
}

struct str answer_last_words(const struct answer *answer)
{
	for (size_t i = answer->count; answer->calls == 0 && i > 0; i--) {
		if (answer->parts[i - 1].kind == PART_TEXT)
			return buf_str(&answer->parts[i - 1].text);
	}
	return STR("");
}

bool answer_is_finished(const struct answer *answer)
{
	return answer->finished;
}

bool answer_is_stopped(const struct answer *answer)
{
	return answer->finished && answer->finish == MODEL_FINISH_STOP;
}

bool answer_is_refused(const struct answer *answer)
{
	return answer->finished && answer->finish == MODEL_FINISH_REFUSED;
}

bool answer_calls_are_whole(const struct answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		const struct answer_part *part = &answer->parts[i];

		if (part->kind == PART_CALL && part->scan.begun && !part->scan.whole)
			return false;
	}
	return answer->calls > 0;
}

size_t answer_size(const struct answer *answer)
{
	return answer->bytes + answer->count;
}

bool answer_fits(const struct answer *answer, struct err *err)
{
	if (answer->overflowed)
		return err_set(err, EIO,
			       "the answer is longer than %d MiB or asks for over %d calls, "
			       "and was refused",
			       MODEL_ANSWER_MAX >> 20, ANSWER_CALLS_MAX);
	return true;
}

/* Has none of the first COUNT blocks this ID? */
static bool id_is_free(const struct answer *answer, const char *id, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct answer_part *part = &answer->parts[i];

		if (part->id && strcmp(part->id, id) == 0)
			return false;
	}
	return true;
}

/* Every call gets an id that no other call of this answer has. */
static void answer_settle_ids(struct answer *answer, size_t message_number)
{
	size_t number = 0;

	for (size_t i = 0; i < answer->count; i++) {
		struct answer_part *part = &answer->parts[i];
		char made[64];

		if (part->kind != PART_CALL || (part->id && id_is_free(answer, part->id, i)))
			continue;
		do {
			number++;
			(void)snprintf(made, sizeof(made), "call_%zu_%zu", message_number,
				       number);
		} while (!id_is_free(answer, made, answer->count));
		free(part->id);
		part->id = memory_copy(made);
	}
}

/* No arguments, in JSON's words or in those of the language that most servers speak. */
static bool is_nothing(struct str arguments)
{
	arguments = str_trim(arguments);
	return arguments.size == 0 || str_is(arguments, "null") ||
	       str_is(arguments, "None");
}

static void answer_tell_part(struct answer_part *part, struct message *message)
{
	struct str text = buf_str(&part->text);
	bool has_extra = value_count(part->extra) > 0;
	struct part *told = NULL;

	/* Parts are C strings; what follows a NUL must not vanish unseen. */
	for (size_t i = 0; i < text.size; i++) {
		if (part->text.data[i] == '\0')
			part->text.data[i] = SUBSTITUTE;
	}
	switch (part->kind) {
	case PART_TEXT:
		if (!answer_is_blank(text))
			told = message_add_text(message, part->text.data);
		break;
	case PART_THINKING:
		if (text.size > 0 || has_extra)
			told = message_add_thinking(message, part->text.data, NULL);
		break;
	case PART_CALL:
		told = message_add_call(message, part->id, part->tool,
					is_nothing(text) ? "{}" : part->text.data);
		break;
	case PART_RESULT:
		break;
	}
	if (told && has_extra)
		told->extra = value_ref(part->extra);
}

bool answer_finish(struct answer *answer, struct conversation *into,
		   enum model_finish *finish, struct model_usage *usage, struct err *err)
{
	struct message *message;
	enum model_finish reason = answer->finished ? answer->finish : MODEL_FINISH_STOP;

	if (!answer_fits(answer, err))
		return false;
	for (size_t i = 0; i < answer->count; i++) {
		if (answer->parts[i].kind == PART_CALL && answer->parts[i].tool[0] == '\0')
			return err_set(err, EPROTO,
				       "the model asked for a tool without naming it");
	}
	if (answer->calls == 0 && reason == MODEL_FINISH_CALLS)
		reason = MODEL_FINISH_STOP;
	if (answer->calls > 0 &&
	    (reason != MODEL_FINISH_LENGTH || answer_calls_are_whole(answer)))
		reason = MODEL_FINISH_CALLS;

	answer_settle_ids(answer, into->message_count);
	message = conversation_add(into, SPEAKER_MODEL);
	for (size_t i = 0; i < answer->count; i++)
		answer_tell_part(&answer->parts[i], message);
	if (finish)
		*finish = reason;
	if (usage)
		*usage = answer->usage;
	return true;
}
