/*
 * answer_parts: parts that the API names while they stream and sends whole at their end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/answer_inside.h"

static bool part_is_named(const struct answer_part *part, int64_t index, struct str key)
{
	bool both_say_index = index >= 0 && part->index >= 0;

	if (both_say_index && part->index != index)
		return false;
	/* Behind some gateways an id is drawn anew for each event, or an index is always 0. */
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
		/* Shown text cannot be taken back; the kept text becomes the true one. */
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
