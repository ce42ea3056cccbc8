/* answer_calls: the slot rule of answer_add_call, by which fragments find their call. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/answer_inside.h"

static bool part_has_id(const struct answer_part *part, struct str id)
{
	return part->id && str_is(id, part->id);
}

/*
 * The newest call whose id is ID and whose index agrees; a nameless fragment needs no
 * index.
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
 * The newest call at INDEX; the last one without an index, or when only arguments came.
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

/* Does the fragment begin a call of its own although SLOT is where it points? */
static bool slot_is_another(const struct answer_part *slot, int64_t index, struct str id,
			    struct str name, struct str arguments)
{
	bool same_index = index >= 0 && index == slot->index;
	bool same_name = str_is(name, slot->tool);

	if (id.size > 0 && slot->id && !part_has_id(slot, id)) {
		/* Some servers draw a new id for every piece; a call has a name. */
		return name.size > 0 || !same_index || slot->scan.whole;
	}
	if (name.size == 0 || slot->tool[0] == '\0')
		return false;
	if (!slot->scan.begun) {
		/* A name in pieces comes for a slot that is surely meant. */
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
