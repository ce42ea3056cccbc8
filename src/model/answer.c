/*
 * answer: blocks in the order of their first fragment, and the slot rule for tool calls.
 */
#include "model/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

/* ASCII's own character for one that cannot be kept. */
enum { SUBSTITUTE = 0x1a };

/*
 * Where a reader of JSON stands in a call's arguments, so that "whole?" costs no parsing.
 */
struct scan {
	size_t depth;
	bool in_string, escaped, begun, whole;
};

struct block {
	enum part_kind kind;
	struct buf text; /* a call: its arguments */
	char *id, *tool; /* a call; id NULL while unknown, tool "" while unknown */
	int64_t index;   /* a call */
	struct scan scan;
	struct value *extra; /* thinking */
};

struct answer {
	const struct model_sink *sink;
	struct block *blocks;
	size_t count, capacity, calls;
	size_t bytes; /* of all blocks, held against MODEL_ANSWER_MAX */
	bool overflowed, finished;
	enum model_finish finish;
	struct model_usage usage;
};

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
		buf_fini(&answer->blocks[i].text);
		free(answer->blocks[i].id);
		free(answer->blocks[i].tool);
		value_free(answer->blocks[i].extra);
	}
	free(answer->blocks);
	free(answer);
}

static struct block *answer_add_block(struct answer *answer, enum part_kind kind)
{
	struct block *block;

	if (answer->count == answer->capacity) {
		answer->capacity = answer->capacity ? answer->capacity * 2 : 4;
		answer->blocks = memory_grow(answer->blocks, answer->capacity,
					     sizeof(*answer->blocks));
	}
	block = &answer->blocks[answer->count++];
	*block = (struct block){.kind = kind};
	buf_init(&block->text, MODEL_ANSWER_MAX);
	return block;
}

/* May SIZE bytes more come in? */
static bool answer_takes(struct answer *answer, size_t size)
{
	if (size > MODEL_ANSWER_MAX - answer->bytes)
		answer->overflowed = true;
	else if (!answer->overflowed)
		answer->bytes += size;
	return !answer->overflowed;
}

/* The block of KIND since the last call, or a new one. */
static struct block *answer_open_block(struct answer *answer, enum part_kind kind)
{
	for (size_t i = answer->count; i > 0; i--) {
		struct block *block = &answer->blocks[i - 1];

		if (block->kind == kind)
			return block;
		if (block->kind == PART_CALL)
			break;
	}
	return answer_add_block(answer, kind);
}

void answer_add_text(struct answer *answer, struct str fragment)
{
	if (fragment.size == 0 || !answer_takes(answer, fragment.size))
		return;
	(void)buf_addstr(&answer_open_block(answer, PART_TEXT)->text, fragment);
	if (answer->sink && answer->sink->text)
		answer->sink->text(answer->sink->context, fragment);
}

void answer_add_thinking(struct answer *answer, struct str fragment)
{
	if (fragment.size == 0 || !answer_takes(answer, fragment.size))
		return;
	(void)buf_addstr(&answer_open_block(answer, PART_THINKING)->text, fragment);
	if (answer->sink && answer->sink->thinking)
		answer->sink->thinking(answer->sink->context, fragment);
}

struct value *answer_thinking_extra(struct answer *answer)
{
	struct block *block = answer_open_block(answer, PART_THINKING);

	if (!block->extra)
		block->extra = value_new_object();
	return block->extra;
}

void answer_each_extra(struct answer *answer, void (*each)(struct value *extra))
{
	for (size_t i = 0; i < answer->count; i++) {
		if (answer->blocks[i].extra)
			each(answer->blocks[i].extra);
	}
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

static bool block_has_id(const struct block *block, struct str id)
{
	return block->id && str_is(id, block->id);
}

/*
 * The newest call whose id is ID and whose index agrees; a nameless fragment needs no
 * index.
 */
static struct block *slot_by_id(struct answer *answer, int64_t index, struct str id,
				bool nameless)
{
	for (size_t i = answer->count; id.size > 0 && i > 0; i--) {
		struct block *block = &answer->blocks[i - 1];

		if (block->kind == PART_CALL && block_has_id(block, id) &&
		    (nameless || index < 0 || block->index < 0 || block->index == index))
			return block;
	}
	return NULL;
}

/*
 * The newest call at INDEX; the last one without an index, or when only arguments came.
 */
static struct block *slot_by_index(struct answer *answer, int64_t index, bool anonymous)
{
	struct block *last = NULL;

	for (size_t i = answer->count; i > 0; i--) {
		struct block *block = &answer->blocks[i - 1];

		if (block->kind != PART_CALL)
			continue;
		if (index < 0 || block->index == index)
			return block;
		if (!last)
			last = block;
	}
	return last && (anonymous || last->index < 0) ? last : NULL;
}

static bool str_is_blank(struct str text)
{
	return str_trim(text).size == 0;
}

/* Does the fragment begin a call of its own although SLOT is where it points? */
static bool slot_is_another(const struct block *slot, int64_t index, struct str id,
			    struct str name, struct str arguments)
{
	bool same_index = index >= 0 && index == slot->index;
	bool same_name = str_is(name, slot->tool);

	if (id.size > 0 && slot->id && !block_has_id(slot, id)) {
		/* Some servers draw a new id for every piece; a call has a name. */
		return name.size > 0 || !same_index || slot->scan.whole;
	}
	if (name.size == 0 || slot->tool[0] == '\0')
		return false;
	if (!slot->scan.begun) {
		/* A name in pieces comes for a slot that is surely meant. */
		return !same_name && !(same_index && slot->id && str_is_blank(arguments));
	}
	return !same_name || (slot->scan.whole && !str_is_blank(arguments));
}

static struct block *answer_new_call(struct answer *answer, int64_t index)
{
	struct block *block;

	if (answer->calls == ANSWER_CALLS_MAX) {
		answer->overflowed = true;
		return NULL;
	}
	answer->calls++;
	block = answer_add_block(answer, PART_CALL);
	block->index = index;
	block->tool = memory_copy("");
	return block;
}

static void block_add_name(struct answer *answer, struct block *block, struct str name)
{
	bool first = block->tool[0] == '\0';
	char *joined;
	size_t size = strlen(block->tool);

	if (name.size == 0 || str_is(name, block->tool))
		return;
	joined = memory_alloc(size + name.size + 1);
	memcpy(joined, block->tool, size);
	memcpy(joined + size, name.data, name.size);
	free(block->tool);
	block->tool = joined;
	if (first && answer->sink && answer->sink->call)
		answer->sink->call(answer->sink->context, block->tool);
}

void answer_add_call(struct answer *answer, int64_t index, struct str id, struct str name,
		     struct str arguments)
{
	struct block *slot;

	id = str_trim(id);
	name = str_trim(name);
	if (!answer_takes(answer, id.size + name.size + arguments.size))
		return;
	slot = slot_by_id(answer, index, id, name.size == 0);
	if (!slot)
		slot = slot_by_index(answer, index, id.size == 0 && name.size == 0);
	if (!slot || slot_is_another(slot, index, id, name, arguments)) {
		if (id.size == 0 && name.size == 0 && str_is_blank(arguments))
			return;
		slot = answer_new_call(answer, index);
		if (!slot)
			return;
	}
	if (!slot->id && id.size > 0)
		slot->id = memory_copy_str(id);
	block_add_name(answer, slot, name);
	(void)buf_addstr(&slot->text, arguments);
	scan_feed(&slot->scan, arguments);
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

bool answer_has_content(const struct answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		const struct block *block = &answer->blocks[i];

		if (block->kind == PART_CALL || !str_is_blank(buf_str(&block->text)))
			return true;
	}
	return false;
}

bool answer_is_finished(const struct answer *answer)
{
	return answer->finished;
}

bool answer_is_refused(const struct answer *answer)
{
	return answer->finished && answer->finish == MODEL_FINISH_REFUSED;
}

bool answer_calls_are_whole(const struct answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		const struct block *block = &answer->blocks[i];

		if (block->kind == PART_CALL && block->scan.begun && !block->scan.whole)
			return false;
	}
	return answer->calls > 0;
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
		const struct block *block = &answer->blocks[i];

		if (block->id && strcmp(block->id, id) == 0)
			return false;
	}
	return true;
}

/* Every call gets an id that no other call of this answer has. */
static void answer_settle_ids(struct answer *answer, size_t message_number)
{
	size_t number = 0;

	for (size_t i = 0; i < answer->count; i++) {
		struct block *block = &answer->blocks[i];
		char made[64];

		if (block->kind != PART_CALL ||
		    (block->id && id_is_free(answer, block->id, i)))
			continue;
		do {
			number++;
			(void)snprintf(made, sizeof(made), "call_%zu_%zu", message_number,
				       number);
		} while (!id_is_free(answer, made, answer->count));
		free(block->id);
		block->id = memory_copy(made);
	}
}

static void answer_put_block(struct block *block, struct message *message)
{
	struct str text = buf_str(&block->text);

	/* Parts are C strings; what follows a NUL must not vanish unseen. */
	for (size_t i = 0; i < text.size; i++) {
		if (block->text.data[i] == '\0')
			block->text.data[i] = SUBSTITUTE;
	}
	switch (block->kind) {
	case PART_TEXT:
		if (!str_is_blank(text))
			(void)message_add_text(message, block->text.data);
		break;
	case PART_THINKING:
		if (text.size > 0 || value_count(block->extra) > 0)
			(void)message_add_thinking(message, block->text.data,
						   value_ref(block->extra));
		break;
	case PART_CALL:
		(void)message_add_call(message, block->id, block->tool,
				       str_is_blank(text) ? "{}" : block->text.data);
		break;
	case PART_RESULT:
		break;
	}
}

bool answer_finish(struct answer *answer, struct conversation *into,
		   enum model_finish *finish, struct model_usage *usage, struct err *err)
{
	struct message *message;
	enum model_finish reason = answer->finished ? answer->finish : MODEL_FINISH_STOP;

	if (!answer_fits(answer, err))
		return false;
	for (size_t i = 0; i < answer->count; i++) {
		if (answer->blocks[i].kind == PART_CALL && answer->blocks[i].tool[0] == '\0')
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
		answer_put_block(&answer->blocks[i], message);
	if (finish)
		*finish = reason;
	if (usage)
		*usage = answer->usage;
	return true;
}
