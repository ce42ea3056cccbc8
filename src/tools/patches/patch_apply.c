/* patch_apply: find the place of each hunk, refuse what is not sure, then build; see
 * patch_apply.h. */
#include "tools/patches/patch_apply.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { APPLY_QUOTED = 200 /* bytes of an anchor in a sentence */ };

/* One hunk's place. */
struct spot {
	size_t start, end;
	struct buf text; /* what takes the place */
	size_t hunk;
	bool unchanged; /* made before */
};

struct applying {
	const char *shown;
	const struct patch_file *file;
	struct str text;
	bool exact_only, given_ends;
	struct shown_ends ends; /* of the text */
	struct spot *spots;
	struct patch_outcome *outcomes;
	struct buf *sentence;
	size_t cursor; /* end of the hunk before */
};

static bool refuse(struct applying *applying, size_t index, const char *sentence)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];

	buf_addf(applying->sentence, "Hunk %zu of %zu of %s (line %zu of the patch): %s",
		 index + 1, applying->file->hunk_count, applying->shown, hunk->at,
		 sentence);
	return false;
}

/*
 * The end of the line in TEXT at or behind FROM that is ANCHOR but for its indentation and
 * blanks at its end; (size_t)-1 when there is none.
 */
static size_t find_anchor(struct str text, struct str anchor, size_t from)
{
	struct str rest = str_part(text, from, text.size);
	struct str line;

	while (str_next_line(&rest, &line)) {
		if (str_equal(str_trim(line), anchor))
			return text.size - rest.size;
	}
	return (size_t)-1;
}

/* The end of the last anchor of HUNK when they are looked for from FROM on. */
static size_t find_anchors(const struct patch_hunk *hunk, struct str text, size_t from)
{
	for (size_t i = 0; i < hunk->anchor_count && from != (size_t)-1; i++)
		from = find_anchor(text, hunk->anchors[i], from);
	return from;
}

/*
 * Of several places the first behind the anchors: only when each place of the first anchor
 * leads to the same one.
 */
static size_t choose_by_anchors(const struct applying *applying, size_t index,
				const struct match *match)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	size_t chosen = (size_t)-1;
	size_t from = 0;

	while (hunk->anchor_count > 0) {
		size_t behind = find_anchors(hunk, applying->text, from);
		size_t here = 0;

		if (behind == (size_t)-1)
			return chosen;
		while (here < match->count && match->spans[here].start < behind)
			here++;
		if (here < match->count && chosen != (size_t)-1 && chosen != here)
			return (size_t)-1;
		if (here < match->count)
			chosen = here;
		from = find_anchor(applying->text, hunk->anchors[0], from);
	}
	return chosen;
}

/* The one span that CHOSEN says yes to; (size_t)-1 when there is none or are several. */
static size_t only_one(const struct applying *applying, const struct patch_hunk *hunk,
		       const struct match *match,
		       bool (*chosen)(const struct applying *applying,
				      const struct patch_hunk *hunk, struct match_span span))
{
	size_t found = (size_t)-1;

	for (size_t i = 0; i < match->count; i++) {
		if (!chosen(applying, hunk, match->spans[i]))
			continue;
		if (found != (size_t)-1)
			return (size_t)-1;
		found = i;
	}
	return found;
}

static bool stands_where_said(const struct applying *applying,
			      const struct patch_hunk *hunk, struct match_span span)
{
	return hunk->line && match_line(applying->text, span.start) == hunk->line;
}

static bool stands_at_the_end(const struct applying *applying,
			      const struct patch_hunk *hunk, struct match_span span)
{
	return hunk->at_end && span.end == applying->text.size;
}

static bool stands_behind(const struct applying *applying, const struct patch_hunk *hunk,
			  struct match_span span)
{
	(void)hunk;
	return span.start >= applying->cursor;
}

static size_t choose(const struct applying *applying, size_t index, const struct match *match)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	size_t chosen = match->count == 1 ? 0 : (size_t)-1;

	/* Line numbers of another state of the file would be a guess. */
	if (chosen == (size_t)-1 && !applying->exact_only)
		chosen = only_one(applying, hunk, match, stands_where_said);
	if (chosen == (size_t)-1)
		chosen = only_one(applying, hunk, match, stands_at_the_end);
	if (chosen == (size_t)-1)
		chosen = choose_by_anchors(applying, index, match);
	if (chosen == (size_t)-1 && index > 0)
		chosen = only_one(applying, hunk, match, stands_behind);
	return chosen;
}

static bool say_several(struct applying *applying, size_t index, const struct match *match)
{
	struct buf *out = applying->sentence;

	(void)refuse(applying, index, "its old lines stand at ");
	buf_addf(out, "%zu places: ", match->count);
	edit_add_places(applying->text, match, out);
	buf_adds(out,
		 applying->file->hunks[index].line
			 ? ". Add context lines until it is the only one, or give the right "
			   "line number. Nothing was changed."
			 : ". Add context lines until it is the only one, or name a line "
			   "before it (`@@ int main(void)`). Nothing was changed.");
	return false;
}

/* The first anchor of HUNK that does not stand in TEXT behind those before it; NULL: all do. */
static const struct str *lost_anchor(const struct patch_hunk *hunk, struct str text)
{
	size_t from = 0;

	for (size_t i = 0; i < hunk->anchor_count; i++) {
		from = find_anchor(text, hunk->anchors[i], from);
		if (from == (size_t)-1)
			return &hunk->anchors[i];
	}
	return NULL;
}

static bool say_lost_anchor(struct applying *applying, size_t index, struct str anchor)
{
	struct buf *out = applying->sentence;
	bool is_there = find_anchor(applying->text, anchor, 0) != (size_t)-1;

	(void)refuse(applying, index, "the line behind its @@ (`");
	text_add_name(out, str_part(anchor, 0, text_character_border(anchor, APPLY_QUOTED)));
	buf_adds(out, is_there ? "`) does not stand behind the one named before it. Name them in "
				 "their order. "
			       : "`) does not stand in the file. ");
	if (!is_there)
		edit_add_nearest(applying->text, anchor, out);
	buf_adds(out, "Name a line that stands before the place, whole, or let @@ stand alone. "
		      "Nothing was changed.");
	return false;
}

static bool say_missed(struct applying *applying, size_t index)
{
	struct buf *out = applying->sentence;

	(void)refuse(applying, index, "its old lines were not found");
	if (applying->exact_only)
		buf_adds(out, " in the file, which has changed since it was read (so only exact "
			      "text is taken). Read it again");
	buf_adds(out, ". Nothing was changed. ");
	edit_explain_miss(applying->text, applying->file->hunks[index].old, out);
	return false;
}

/* The new lines are there already: nothing is to be done at this place. */
static bool is_already_made(struct applying *applying, size_t index)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	struct match match;
	bool made;

	match_init(&match);
	match.whole_lines = true;
	made = hunk->new.size > 0 &&
	       match_find(applying->text, hunk->new, STR(""), false, MATCH_LINE_END,
			  &match) &&
	       match.count == 1 &&
	       (edit_shares_enough(hunk->old, hunk->new) ||
		stands_where_said(applying, hunk, match.spans[0]));
	if (made) {
		struct spot *spot = &applying->spots[index];

		spot->start = match.spans[0].start;
		spot->end = match.spans[0].end;
		spot->unchanged = true;
		applying->outcomes[index].already = true;
		applying->outcomes[index].line = match_line(applying->text, spot->start);
	}
	match_fini(&match);
	return made;
}

/* The next line of *REST with its end. False when nothing is left. */
static bool next_whole_line(struct str *rest, struct str *line)
{
	const char *start = rest->data;

	if (!str_next_line(rest, line))
		return false;
	line->size = (size_t)(rest->data - start);
	return true;
}

/*
 * A loose match is no reason to change the lines that only stand around: they stay as the
 * file has them, byte for byte. MADE holds the new lines. False when the lines do not
 * correspond: MADE is then as it was.
 */
static bool keep_context(struct str file, struct str kinds, struct buf *made)
{
	struct str new = buf_str(made), old_line, new_line;
	bool ok = true;
	struct buf out;

	buf_init(&out, SIZE_MAX);
	for (size_t i = 0; ok && i < kinds.size; i++) {
		ok = (kinds.data[i] == '+' || next_whole_line(&file, &old_line)) &&
		     (kinds.data[i] == '-' || next_whole_line(&new, &new_line));
		if (!ok || kinds.data[i] == '-')
			continue;
		if (kinds.data[i] == ' ' &&
		    str_ends(old_line, STR("\n")) == str_ends(new_line, STR("\n")))
			new_line = old_line;
		buf_addstr(&out, new_line);
	}
	ok = ok && file.size == 0 && new.size == 0;
	if (ok) {
		buf_fini(made);
		*made = out;
	} else {
		buf_fini(&out);
	}
	return ok;
}

/* The new lines at the byte AT get the file's line ends, unless they are to keep theirs. */
static void fit_ends(struct applying *applying, size_t index, size_t at)
{
	if (!applying->given_ends)
		applying->outcomes[index].end_set =
			edit_fit_line_ends(applying->text, &applying->ends, at,
					   &applying->spots[index].text);
}

static void take_spot(struct applying *applying, size_t index, const struct match *match,
		      size_t chosen)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	struct patch_outcome *outcome = &applying->outcomes[index];
	struct spot *spot = &applying->spots[index];

	spot->start = match->spans[chosen].start;
	spot->end = match->spans[chosen].end;
	buf_addstr(&spot->text, buf_str(&match->replacement));
	fit_ends(applying, index, spot->start);
	if (match->level != MATCH_EXACT)
		(void)keep_context(str_part(applying->text, spot->start,
					    spot->end - spot->start),
				   hunk->kinds, &spot->text);
	outcome->level = match->level;
	outcome->line = match_line(applying->text, spot->start);
	outcome->said = hunk->line != outcome->line ? hunk->line : 0;
	applying->cursor = spot->end;
}

/*
 * TEXT goes behind a last line without a line end: move the line end of TEXT to its
 * front. The old last line then has one, and the new last line has none.
 */
static void move_end_to_front(struct buf *text)
{
	size_t end = str_ends(buf_str(text), STR("\r\n")) ? 2 : 1;
	struct buf moved;

	if (!str_ends(buf_str(text), STR("\n")))
		end = 0;
	buf_init(&moved, SIZE_MAX);
	buf_adds(&moved, end == 2 ? "\r\n" : "\n");
	buf_addstr(&moved, str_part(buf_str(text), 0, text->size - end));
	buf_fini(text);
	*text = moved;
}

/* Lines that are only added: behind the anchors, or at the end of the file. */
static bool place_addition(struct applying *applying, size_t index)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	struct spot *spot = &applying->spots[index];
	const struct str *lost = lost_anchor(hunk, applying->text);
	size_t size = applying->text.size;
	size_t behind = size;

	if (hunk->line > 0 && size > 0)
		return refuse(applying, index,
			      "it only adds lines and shows none of those around them. Give it "
			      "context lines. Nothing was changed.");
	if (lost)
		return say_lost_anchor(applying, index, *lost);
	if (hunk->anchor_count > 0)
		behind = find_anchors(hunk, applying->text, 0);
	if (hunk->anchor_count > 0 &&
	    find_anchors(hunk, applying->text,
			 find_anchor(applying->text, hunk->anchors[0], 0)) != (size_t)-1)
		return refuse(applying, index,
			      "the line behind its @@ stands at several places. Give context "
			      "lines. Nothing was changed.");
	spot->start = spot->end = behind;
	buf_addstr(&spot->text, hunk->new);
	fit_ends(applying, index, behind);
	if (spot->text.size > 0 && behind == size && size > 0 &&
	    !str_ends(applying->text, STR("\n")))
		move_end_to_front(&spot->text);
	applying->outcomes[index].level = MATCH_EXACT;
	applying->outcomes[index].line = match_line(applying->text, behind);
	applying->cursor = behind;
	return true;
}

static bool place_hunk(struct applying *applying, size_t index)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	const struct str *lost;
	struct match match;
	size_t chosen;
	bool ok = true;

	applying->outcomes[index].miscounted = hunk->miscounted;
	if (hunk->old.size == 0)
		return place_addition(applying, index);
	match_init(&match);
	match.whole_lines = true;
	if (!match_find(applying->text, hunk->old, hunk->new, false,
			applying->exact_only ? MATCH_EXACT : MATCH_LINE_NUMBERS, &match)) {
		match_fini(&match);
		return is_already_made(applying, index) || say_missed(applying, index);
	}
	lost = lost_anchor(hunk, applying->text);
	if (lost) {
		match_fini(&match);
		return say_lost_anchor(applying, index, *lost);
	}
	chosen = match.count > MATCH_SPANS_MAX ? (size_t)-1
					       : choose(applying, index, &match);
	if (chosen == (size_t)-1)
		ok = say_several(applying, index, &match);
	else
		take_spot(applying, index, &match, chosen);
	match_fini(&match);
	return ok;
}

static int compare_spots(const void *a, const void *b)
{
	const struct spot *left = a;
	const struct spot *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->hunk < right->hunk ? -1 : left->hunk > right->hunk;
}

static bool build(struct applying *applying, struct buf *out)
{
	size_t count = applying->file->hunk_count;
	size_t at = 0;

	if (count)
		qsort(applying->spots, count, sizeof(*applying->spots), compare_spots);
	for (size_t i = 0; i < count; i++) {
		const struct spot *spot = &applying->spots[i];

		if (spot->unchanged)
			continue;
		if (spot->start < at) {
			buf_clear(out);
			return refuse(applying, spot->hunk,
				      "it changes lines that another hunk changes too. Merge them "
				      "into one. Nothing was changed.");
		}
		buf_addstr(out, str_part(applying->text, at, spot->start - at));
		buf_addstr(out, buf_str(&spot->text));
		at = spot->end;
	}
	buf_addstr(out, str_part(applying->text, at, applying->text.size));
	if (!out->overflowed)
		return true;
	buf_addf(applying->sentence,
		 "%s would become larger than this tool writes (%zu bytes). Nothing was changed.",
		 applying->shown, out->max);
	return false;
}

bool patch_apply(const char *shown, const struct patch_file *file, struct str text,
		 unsigned how, struct buf *out, struct patch_outcome *outcomes,
		 struct buf *sentence)
{
	struct applying applying = {.shown = shown,
				    .file = file,
				    .text = text,
				    .exact_only = (how & EDIT_EXACT_ONLY) != 0,
				    .given_ends = (how & EDIT_GIVEN_ENDS) != 0,
				    .outcomes = outcomes,
				    .sentence = sentence};
	bool ok = true;

	shown_count_ends(text, &applying.ends);
	applying.spots = memory_array(file->hunk_count + 1, sizeof(*applying.spots));
	memset(outcomes, 0, file->hunk_count * sizeof(*outcomes));
	for (size_t i = 0; i < file->hunk_count; i++) {
		applying.spots[i].hunk = i;
		buf_init(&applying.spots[i].text, SIZE_MAX);
	}
	for (size_t i = 0; ok && i < file->hunk_count; i++)
		ok = place_hunk(&applying, i);
	ok = ok && build(&applying, out);
	for (size_t i = 0; i < file->hunk_count; i++)
		buf_fini(&applying.spots[i].text);
	free(applying.spots);
	return ok;
}
