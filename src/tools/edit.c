/*
 * edit: match every edit, refuse what is not sure, then build the new text in one pass;
 * see edit.h.
 */
#include "tools/edit.h"

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	EDIT_ANCHOR_MIN = 8, /* bytes that old and new must share to be "made before" */
};

struct replacement {
	size_t start, end;
	const struct buf *text;
	size_t edit;
};

struct plan {
	const char *shown;
	struct str text;
	const struct edit *edits;
	size_t count;
	bool exact_only, given_ends;
	struct shown_ends ends; /* of the text */
	struct edit_outcome *outcomes;
	struct buf *sentence;
	struct match *matches;
	struct replacement *replacements;
	size_t replacement_count;
};

static bool plan_refuse(struct plan *plan, size_t index, const char *sentence)
{
	if (plan->count > 1)
		buf_addf(plan->sentence, "Edit %zu of %zu: ", index + 1, plan->count);
	buf_adds(plan->sentence, sentence);
	return false;
}

/* The line end at or after AT, or (at the end of the text) before it. */
static enum shown_end end_at(struct str text, size_t at)
{
	size_t feed = str_find(text, STR("\n"), at);

	if (feed == (size_t)-1) {
		const char *last = text.size ? memrchr(text.data, '\n', text.size) : NULL;

		if (!last)
			return SHOWN_END_NONE;
		feed = (size_t)(last - text.data);
	}
	return feed > 0 && text.data[feed - 1] == '\r' ? SHOWN_END_CRLF : SHOWN_END_LF;
}

enum shown_end edit_fit_line_ends(struct str text, const struct shown_ends *ends,
				  size_t at, struct buf *new)
{
	enum shown_end wanted = shown_end_of_all(ends);
	struct shown_ends mine = {0};

	if (wanted == SHOWN_END_NONE) {
		shown_count_ends(buf_str(new), &mine);
		if (shown_end_of_all(&mine) != SHOWN_END_NONE)
			wanted = end_at(text, at);
	}
	return shown_set_ends(new, wanted) ? wanted : SHOWN_END_NONE;
}

static bool say_several(struct plan *plan, size_t index, const struct match *match)
{
	struct buf *out = plan->sentence;

	(void)plan_refuse(plan, index, "");
	buf_addf(out, "the old text stands at %zu places in %s: ", match->count,
		 plan->shown);
	edit_add_places(plan->text, match, out);
	buf_adds(out, ". Add lines around it to \"old\" until it is the only one, or set "
		      "\"replace_all\": true to change all.");
	return false;
}

static size_t common_start(struct str a, struct str b)
{
	size_t at = 0;

	while (at < a.size && at < b.size && a.data[at] == b.data[at])
		at++;
	return at;
}

static size_t common_end(struct str a, struct str b, size_t limit)
{
	size_t at = 0;

	while (at < limit && a.data[a.size - at - 1] == b.data[b.size - at - 1])
		at++;
	return at;
}

bool edit_shares_enough(struct str old, struct str new)
{
	size_t smaller = old.size < new.size ? old.size : new.size;
	size_t start = common_start(old, new);

	return start + common_end(old, new, smaller - start) >= EDIT_ANCHOR_MIN;
}

/*
 * Was the edit made before? Only when the new text stands exactly once and shares enough
 * with the old at its ends to know that this is the very place.
 */
static bool is_already_made(struct plan *plan, size_t index)
{
	const struct edit *edit = &plan->edits[index];
	struct edit_outcome *outcome = &plan->outcomes[index];
	struct match match;
	bool once;

	if (!edit_shares_enough(edit->old, edit->new) || edit->replace_all)
		return false;
	match_init(&match);
	once = match_find(plan->text, edit->new, STR(""), false, MATCH_LINE_END, &match) &&
	       match.count == 1;
	if (once) {
		outcome->already = true;
		outcome->line = match_line(plan->text, match.spans[0].start);
	}
	match_fini(&match);
	return once;
}

static bool say_missed(struct plan *plan, size_t index)
{
	const struct edit *edit = &plan->edits[index];
	struct buf *out = plan->sentence;
	size_t first;

	(void)plan_refuse(plan, index, "");
	buf_addf(out, "the old text was not found in %s", plan->shown);
	if (plan->exact_only)
		buf_adds(out, ", which has changed since it was read (so only exact text is "
			      "taken). Read it again");
	buf_adds(out, ". Nothing was changed. ");
	if (match_is_numbered(edit->old, &first))
		buf_adds(out, "It begins with line numbers, as read_file shows them: leave the "
			      "numbers and the tab after them away. ");
	edit_explain_miss(plan->text, edit->old, out);
	return false;
}

static void plan_add(struct plan *plan, size_t index)
{
	const struct match *match = &plan->matches[index];

	plan->replacements =
		memory_grow(plan->replacements, plan->replacement_count + match->count,
			    sizeof(*plan->replacements));
	for (size_t i = 0; i < match->count; i++)
		plan->replacements[plan->replacement_count++] =
			(struct replacement){match->spans[i].start, match->spans[i].end,
					     &match->replacement, index};
}

static bool plan_match(struct plan *plan, size_t index)
{
	const struct edit *edit = &plan->edits[index];
	struct match *match = &plan->matches[index];
	struct edit_outcome *outcome = &plan->outcomes[index];

	if (edit->old.size == 0)
		return plan_refuse(plan, index,
				   "\"old\" is empty. Give the text to be replaced; "
				   "write_file makes or replaces whole files.");
	if (str_equal(edit->old, edit->new))
		return plan_refuse(plan, index,
				   "\"old\" and \"new\" are the same; nothing would "
				   "change.");
	if (!match_find(plan->text, edit->old, edit->new, edit->replace_all,
			plan->exact_only ? MATCH_EXACT : MATCH_LINE_NUMBERS, match))
		return is_already_made(plan, index) || say_missed(plan, index);
	if (match->count > MATCH_SPANS_MAX)
		return plan_refuse(plan, index,
				   "the old text stands at more than a million "
				   "places; use a command (sed) for that.");
	if (match->count > 1 && !edit->replace_all)
		return say_several(plan, index, match);
	if (match->count > 1 && plan->exact_only)
		return plan_refuse(plan, index,
				   "the file has changed since it was read, and the "
				   "old text stands at several places. Read it again "
				   "before replacing all. Nothing was changed.");
	outcome->level = match->level;
	outcome->count = match->count;
	outcome->line = match_line(plan->text, match->spans[0].start);
	if (!plan->given_ends)
		outcome->end_set =
			edit_fit_line_ends(plan->text, &plan->ends, match->spans[0].start,
					   &match->replacement);
	plan_add(plan, index);
	return true;
}

static int compare_replacements(const void *a, const void *b)
{
	const struct replacement *left = a;
	const struct replacement *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->edit < right->edit ? -1 : left->edit > right->edit;
}

static bool plan_check_disjoint(struct plan *plan)
{
	for (size_t i = 1; i < plan->replacement_count; i++) {
		const struct replacement *before = &plan->replacements[i - 1];
		const struct replacement *at = &plan->replacements[i];

		if (before->end <= at->start)
			continue;
		buf_addf(plan->sentence,
			 "Edits %zu and %zu overlap at line %zu of %s: all edits are made against "
			 "the file as it is now. Merge them into one. Nothing was changed.",
			 (before->edit < at->edit ? before->edit : at->edit) + 1,
			 (before->edit < at->edit ? at->edit : before->edit) + 1,
			 match_line(plan->text, at->start), plan->shown);
		return false;
	}
	return true;
}

static bool plan_build(const struct plan *plan, struct buf *out)
{
	size_t at = 0;

	(void)buf_reserve(out, plan->text.size < out->max ? plan->text.size : 0);
	for (size_t i = 0; i < plan->replacement_count; i++) {
		const struct replacement *item = &plan->replacements[i];

		buf_addstr(out, str_part(plan->text, at, item->start - at));
		buf_addstr(out, buf_str(item->text));
		at = item->end;
	}
	buf_addstr(out, str_part(plan->text, at, plan->text.size - at));
	if (!out->overflowed)
		return true;
	buf_addf(plan->sentence,
		 "%s would become larger than this tool writes (%zu bytes). "
		 "Nothing was changed.",
		 plan->shown, out->max);
	return false;
}

bool edit_apply(const char *shown, struct str text, const struct edit *edits,
		size_t count, unsigned how, struct buf *out,
		struct edit_outcome *outcomes, struct buf *sentence)
{
	struct plan plan = {.shown = shown,
			    .text = text,
			    .edits = edits,
			    .count = count,
			    .exact_only = (how & EDIT_EXACT_ONLY) != 0,
			    .given_ends = (how & EDIT_GIVEN_ENDS) != 0,
			    .outcomes = outcomes,
			    .sentence = sentence};
	bool ok = true;

	plan.matches = memory_array(count, sizeof(*plan.matches));
	shown_count_ends(text, &plan.ends);
	memset(outcomes, 0, count * sizeof(*outcomes));
	for (size_t i = 0; i < count; i++)
		match_init(&plan.matches[i]);
	for (size_t i = 0; ok && i < count; i++)
		ok = plan_match(&plan, i);
	if (ok && plan.replacement_count)
		qsort(plan.replacements, plan.replacement_count,
		      sizeof(*plan.replacements), compare_replacements);
	ok = ok && plan_check_disjoint(&plan) && plan_build(&plan, out);
	for (size_t i = 0; i < count; i++)
		match_fini(&plan.matches[i]);
	free(plan.matches);
	free(plan.replacements);
	return ok;
}
