/* weigh: compares three states of a path. */

#include "tools/review/weigh.h"

#include <string.h>

/* The outcome for one part of a state, its content or its permissions. */
enum part { PART_KEEPS, PART_TAKES, PART_CLASHES };

static bool same_content(const struct undo_state *a, const struct undo_state *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == UNDO_ABSENT || a->kind == UNDO_FOLDER ||
	       (a->hashed && b->hashed && a->size == b->size &&
		memcmp(a->digest, b->digest, UNDO_DIGEST) == 0);
}

/* Have A and B permissions that can be compared? Those of a link mean nothing. */
static bool have_modes(const struct undo_state *a, const struct undo_state *b)
{
	return a->kind == b->kind && (a->kind == UNDO_FILE || a->kind == UNDO_FOLDER);
}

static bool same_mode(const struct undo_state *a, const struct undo_state *b)
{
	return !have_modes(a, b) || a->mode == b->mode;
}

static enum part weigh_content(const struct undo_state *base, const struct undo_state *below,
			       const struct undo_state *layer)
{
	if (same_content(layer, below) || same_content(layer, base))
		return PART_KEEPS;
	return same_content(base, below) ? PART_TAKES : PART_CLASHES;
}

static enum part weigh_mode(const struct undo_state *base, const struct undo_state *below,
			    const struct undo_state *layer)
{
	if (same_mode(layer, below) || (have_modes(layer, base) && same_mode(layer, base)))
		return PART_KEEPS;
	return have_modes(base, below) && same_mode(base, below) ? PART_TAKES
								 : PART_CLASHES;
}

enum weigh_class weigh(const struct undo_state *base, const struct undo_state *below,
		       const struct undo_state *layer, struct undo_state *target)
{
	*target = *layer;
	if (same_content(layer, below) && same_mode(layer, below))
		return WEIGH_THERE;
	if (base == NULL)
		return WEIGH_NO_BASE;
	const enum part content = weigh_content(base, below, layer);
	const enum part mode = weigh_mode(base, below, layer);
	if (mode == PART_CLASHES)
		return WEIGH_CONFLICT;
	if (have_modes(layer, below) && mode == PART_KEEPS)
		target->mode = below->mode;
	if (content == PART_CLASHES)
		return base->kind == UNDO_FILE && below->kind == UNDO_FILE &&
				       layer->kind == UNDO_FILE
			       ? WEIGH_MERGE
			       : WEIGH_CONFLICT;
	if (content == PART_KEEPS && mode == PART_KEEPS)
		return WEIGH_THERE;
	/* Only the permissions are the layer's: the content stays the user's. */
	if (content == PART_KEEPS) {
		*target = *below;
		target->mode = layer->mode;
	}
	return WEIGH_APPLY;
}
