/* answer: parts in the order of their first fragment, and the message made of them. */

#include "model/answer.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The position of a JSON reader in a call's arguments. It tells without parsing whether
 * they are complete.
 */
struct scan {
	size_t depth;
	bool in_string, escaped, begun, whole;
};

struct answer_part {
	enum part_kind kind;
	struct buf text; /* of a call: its arguments */
	/* of a call; id NULL while unknown, tool "" while unknown */
	char *id, *tool;
	/* of a call, or of a part that its API names; < 0: not known */
	int64_t index;
	char *key;            /* of a part that its API names; or NULL */
	bool settled;         /* of such a part: nothing more is added */
	struct buf collected; /* of such a part: its collected bytes */
	struct scan scan;
	struct value *extra;
};

struct answer {
	const struct model_sink *sink;
	struct answer_part *parts;
	size_t count, calls;
	size_t bytes; /* of all parts, at most MODEL_ANSWER_MAX */
	bool overflowed, finished;
	enum model_finish finish;
	struct model_usage usage;
};

/* ASCII's own substitute for a character that cannot be kept. */
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

/* Make a new part at the end; NULL when a limit is reached. */
static struct answer_part *answer_new_part(struct answer *answer, enum part_kind kind)
{
	struct answer_part *part;

	if (answer->count == ANSWER_PARTS_MAX ||
	    (kind == PART_CALL && answer->calls == ANSWER_CALLS_MAX)) {
		answer->overflowed = true;
		return NULL;
	}
	answer->parts = memory_more(answer->parts, answer->count, sizeof(*answer->parts));
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

/* Count SIZE more bytes. False: they are too many. */
static bool answer_takes(struct answer *answer, size_t size)
{
	if (size > MODEL_ANSWER_MAX - answer->bytes)
		answer->overflowed = true;
	else if (!answer->overflowed)
		answer->bytes += size;
	return !answer->overflowed;
}

static bool answer_is_blank(struct str text)
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

/* Append FRAGMENT, which was counted, to PART; answer_put gives it to the sink too. */
static void answer_fill(struct answer_part *part, struct str fragment)
{
	(void)buf_addstr(&part->text, fragment);
	if (part->kind == PART_CALL)
		scan_feed(&part->scan, fragment);
}

static void answer_put(struct answer *answer, struct answer_part *part, struct str fragment)
{
	const struct model_sink *sink = answer->sink;

	answer_fill(part, fragment);
	if (part->kind == PART_TEXT && sink && sink->text)
		sink->text(sink->context, fragment);
	if (part->kind == PART_THINKING && sink && sink->thinking)
		sink->thinking(sink->context, fragment);
}

/* The part of KIND since the last call, or a new one; NULL when a limit is reached. */
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

	/* Between two calls there are at most two parts, text and thinking. */
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
		/*
		 * An answer often pauses in the middle of data that only the service
		 * understands.
		 */
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

/* Is ID different from the ids of the first COUNT parts? */
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

/*
 * Do ARGUMENTS mean "no arguments", in JSON or in Python, the language of most servers?
 */
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

	/*
	 * Parts are C strings. Replace each NUL, so that the text behind it is not lost.
	 */
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

/* How fragments of a call find the call: the rule for slots of answer_add_call. */

static bool part_has_id(const struct answer_part *part, struct str id)
{
	return part->id && str_is(id, part->id);
}

/*
 * The newest call with the id ID and the same index. A NAMELESS fragment needs no index.
 */
static struct answer_part *slot_by_id(struct answer *answer, int64_t index, struct str id,
				      bool nameless)
{
	for (size_t i = answer->count; id.size > 0 && i > 0; i--) {
		struct answer_part *part = &answer->parts[i - 1];

		if (part->kind == PART_CALL && part_has_id(part, id) &&
		    (nameless || index < 0 || part->index < 0 || part->index == index))
			return part;
	}
	return NULL;
}

/*
 * The newest call at INDEX. Without an index, or when only arguments came, it is the last
 * call.
 */
static struct answer_part *slot_by_index(struct answer *answer, int64_t index, bool anonymous)
{
	struct answer_part *last = NULL;

	for (size_t i = answer->count; i > 0; i--) {
		struct answer_part *part = &answer->parts[i - 1];

		if (part->kind != PART_CALL)
			continue;
		if (index < 0 || part->index == index)
			return part;
		if (!last)
			last = part;
	}
	return last && (anonymous || last->index < 0) ? last : NULL;
}

/* Does the fragment begin a new call, although it points to SLOT? */
static bool slot_is_another(const struct answer_part *slot, int64_t index, struct str id,
			    struct str name, struct str arguments)
{
	bool same_index = index >= 0 && index == slot->index;
	bool same_name = str_is(name, slot->tool);

	if (id.size > 0 && slot->id && !part_has_id(slot, id)) {
		/*
		 * Some servers make a new id for every fragment of a call, but a fragment
		 * with a name begins a call.
		 */
		return name.size > 0 || !same_index || slot->scan.whole;
	}
	if (name.size == 0 || slot->tool[0] == '\0')
		return false;
	if (!slot->scan.begun) {
		/*
		 * The name of a call may come in pieces, when there is no doubt about the
		 * slot.
		 */
		return !same_name &&
		       !(same_index && slot->id && answer_is_blank(arguments));
	}
	return !same_name || (slot->scan.whole && !answer_is_blank(arguments));
}

static void part_add_name(struct answer *answer, struct answer_part *part, struct str name)
{
	bool first = part->tool[0] == '\0';
	char *joined;
	size_t size = strlen(part->tool);

	if (name.size == 0 || str_is(name, part->tool))
		return;
	joined = memory_alloc(size + name.size + 1);
	memcpy(joined, part->tool, size);
	memcpy(joined + size, name.data, name.size);
	free(part->tool);
	part->tool = joined;
	if (first && answer->sink && answer->sink->call)
		answer->sink->call(answer->sink->context, part->tool);
}

struct answer_part *answer_add_call(struct answer *answer, int64_t index, struct str id,
				    struct str name, struct str arguments)
{
	struct answer_part *slot;

	id = str_trim(id);
	name = str_trim(name);
	if (!answer_takes(answer, id.size + name.size + arguments.size))
		return NULL;
	slot = slot_by_id(answer, index, id, name.size == 0);
	if (!slot)
		slot = slot_by_index(answer, index, id.size == 0 && name.size == 0);
	if (!slot || slot_is_another(slot, index, id, name, arguments)) {
		if (id.size == 0 && name.size == 0 && answer_is_blank(arguments))
			return NULL;
		slot = answer_new_part(answer, PART_CALL);
		if (!slot)
			return NULL;
		slot->index = index;
	}
	if (!slot->id && id.size > 0)
		slot->id = memory_copy_str(id);
	part_add_name(answer, slot, name);
	answer_put(answer, slot, arguments);
	return slot;
}

/* Parts that the API names while they stream, and sends whole at their end. */

static bool part_is_named(const struct answer_part *part, int64_t index, struct str key)
{
	bool both_say_index = index >= 0 && part->index >= 0;

	if (both_say_index && part->index != index)
		return false;
	/* Behind some gateways every event has a new id, or the index is always 0. */
	if (both_say_index && !part->settled)
		return true;
	if (key.size > 0 && part->key)
		return str_is(key, part->key);
	return both_say_index || (index < 0 && key.size == 0 && !part->settled);
}

struct answer_part *answer_part(struct answer *answer, enum part_kind kind, int64_t index,
				struct str key)
{
	struct answer_part *part;

	for (size_t i = answer->count; i > 0; i--) {
		part = &answer->parts[i - 1];
		if (part->kind == kind && part_is_named(part, index, key))
			return part;
	}
	part = answer_takes(answer, key.size) ? answer_part_begin(answer, kind, index)
					      : NULL;
	if (part && key.size > 0)
		part->key = memory_copy_str(key);
	return part;
}

struct answer_part *answer_part_begin(struct answer *answer, enum part_kind kind,
				      int64_t index)
{
	struct answer_part *part = answer_new_part(answer, kind);

	if (part)
		part->index = index;
	return part;
}

struct answer_part *answer_part_open(struct answer *answer, int64_t index)
{
	for (size_t i = answer->count; i > 0; i--) {
		struct answer_part *part = &answer->parts[i - 1];

		if (!part->settled && (index < 0 || part->index == index))
			return part;
	}
	return NULL;
}

enum part_kind answer_part_kind(const struct answer_part *part)
{
	return part->kind;
}

void answer_part_add(struct answer *answer, struct answer_part *part, struct str fragment)
{
	if (part && !part->settled && answer_takes(answer, fragment.size) &&
	    fragment.size > 0)
		answer_put(answer, part, fragment);
}

void answer_part_settle(struct answer *answer, struct answer_part *part, struct str whole)
{
	struct str shown;

	if (!part || part->settled)
		return;
	shown = buf_str(&part->text);
	if (whole.size > shown.size && !answer_takes(answer, whole.size - shown.size))
		return;
	if (str_starts(whole, shown)) {
		if (whole.size > shown.size)
			answer_put(answer, part, str_part(whole, shown.size, whole.size));
	} else if (whole.size > 0) {
		/*
		 * Text that was shown cannot be taken back, but the stored text becomes
		 * the complete one.
		 */
		buf_clear(&part->text);
		part->scan = (struct scan){0};
		answer_fill(part, whole);
	}
	part->settled = true;
}

bool answer_part_is_settled(const struct answer_part *part)
{
	return part && part->settled;
}

bool answer_has_settled(const struct answer *answer, enum part_kind kind)
{
	for (size_t i = 0; i < answer->count; i++) {
		if (answer->parts[i].kind == kind && answer->parts[i].settled)
			return true;
	}
	return false;
}

void answer_part_call(struct answer *answer, struct answer_part *part, struct str id,
		      struct str tool)
{
	bool is_new;

	if (!part || part->settled || !answer_takes(answer, id.size + tool.size))
		return;
	id = str_trim(id);
	tool = str_trim(tool);
	if (id.size > 0) {
		free(part->id);
		part->id = memory_copy_str(id);
	}
	if (tool.size == 0 || str_is(tool, part->tool))
		return;
	is_new = part->tool[0] == '\0';
	free(part->tool);
	part->tool = memory_copy_str(tool);
	if (is_new && answer->sink && answer->sink->call)
		answer->sink->call(answer->sink->context, part->tool);
}

void answer_part_keep(struct answer *answer, struct answer_part *part, const char *key,
		      struct value *take_value, size_t size)
{
	if (!part || !answer_takes(answer, size)) {
		value_free(take_value);
		return;
	}
	if (!part->extra)
		part->extra = value_new_object();
	value_set(part->extra, key, take_value);
}

struct value *answer_part_kept(const struct answer_part *part, const char *key)
{
	return part ? value_member(part->extra, key) : NULL;
}

void answer_part_collect(struct answer *answer, struct answer_part *part, struct str fragment)
{
	if (part && answer_takes(answer, fragment.size))
		(void)buf_addstr(&part->collected, fragment);
}

struct str answer_part_collected(const struct answer_part *part)
{
	return part ? buf_str(&part->collected) : STR("");
}
