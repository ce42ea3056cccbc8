/*
 * match_indent: whole lines that differ in their indentation alone, all by the same rule:
 * one prefix for another, or so many blanks for each tab. The new text is indented by
 * that rule too. A file that indents with tabs never gets blanks from here, and the other
 * way round.
 */
#include "tools/match.h"

#include "base/memory.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum {
	INDENT_LINES_MAX = 10000, /* of one edit: the comparison is by line and place */
	INDENT_UNIT_MIN = 2,      /* blanks that one tab may stand for */
	INDENT_UNIT_MAX = 8,
};

enum rule_kind { RULE_PREFIX, RULE_BLANKS_TO_TABS, RULE_TABS_TO_BLANKS };

struct rule {
	enum rule_kind kind;
	struct str from, to;   /* RULE_PREFIX */
	ptrdiff_t unit, shift; /* else: blanks per tab; tabs or blanks added */
};

struct line {
	struct str indent, body; /* body without blanks at its end and without line end */
	/* in the text; end: before the line end and the blanks there */
	size_t start, end;
	size_t next; /* start of the next line */
};

struct lines {
	struct line *items;
	size_t count;
};

/* How the file indents as a whole: what a result may not mix in. */
struct style {
	bool tabs, blanks;
};

static struct line line_at(struct str text, size_t at)
{
	struct line line = {.start = at};
	const char *feed = memchr(text.data + at, '\n', text.size - at);
	size_t end = feed ? (size_t)(feed - text.data) : text.size;
	size_t body = at;

	line.next = feed ? end + 1 : end;
	while (end > at && text.data[end - 1] != '\0' && strchr(" \t\r", text.data[end - 1]))
		end--;
	while (body < end && (text.data[body] == ' ' || text.data[body] == '\t'))
		body++;
	line.end = end;
	line.indent = str_part(text, at, body - at);
	line.body = str_part(text, body, end - body);
	return line;
}

static struct lines split(struct str text)
{
	struct lines lines = {0};

	for (size_t at = 0; at < text.size;) {
		size_t count = lines.count;
		struct line line = line_at(text, at);

		if ((count & (count - 1)) == 0)
			lines.items = memory_grow(lines.items, count ? 2 * count : 1,
						  sizeof(*lines.items));
		lines.items[lines.count++] = line;
		at = line.next;
	}
	return lines;
}

static bool is_all(struct str text, char c)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] != c)
			return false;
	}
	return true;
}

static struct style style_of(const struct lines *lines)
{
	size_t tabs = 0, blanks = 0;

	for (size_t i = 0; i < lines->count; i++) {
		if (lines->items[i].indent.size && lines->items[i].indent.data[0] == '\t')
			tabs++;
		else if (lines->items[i].indent.size)
			blanks++;
	}
	return (struct style){tabs > blanks, blanks > tabs};
}

/* Append INDENT as RULE makes it. False when the rule does not fit it. */
static bool rule_apply(const struct rule *rule, struct str indent, struct buf *out)
{
	ptrdiff_t size = (ptrdiff_t)indent.size;

	if (rule->kind == RULE_PREFIX) {
		if (!str_starts(indent, rule->from))
			return false;
		buf_addstr(out, rule->to);
		buf_addstr(out, str_part(indent, rule->from.size, indent.size));
		return true;
	}
	if (rule->kind == RULE_BLANKS_TO_TABS) {
		if (!is_all(indent, ' ') || size % rule->unit)
			return false;
		size = size / rule->unit + rule->shift;
	} else {
		if (!is_all(indent, '\t'))
			return false;
		size = size * rule->unit + rule->shift;
	}
	for (ptrdiff_t i = 0; i < size; i++)
		buf_addc(out, rule->kind == RULE_BLANKS_TO_TABS ? '\t' : ' ');
	return size >= 0;
}

/* Does RULE make each line of OLD what stands in the file? */
static bool rule_holds(const struct rule *rule, const struct lines *old,
		       const struct line *file)
{
	struct buf made;
	bool holds = true;

	buf_init(&made, SIZE_MAX);
	for (size_t i = 0; holds && i < old->count; i++) {
		if (old->items[i].body.size == 0)
			continue;
		buf_clear(&made);
		holds = rule_apply(rule, old->items[i].indent, &made) &&
			str_equal(buf_str(&made), file[i].indent);
	}
	buf_fini(&made);
	return holds;
}

/*
 * The new text, each line indented by RULE. False when the rule or the file's style
 * forbids it.
 */
static bool rule_rewrite(const struct rule *rule, struct str replacement,
			 const struct style *style, struct buf *out)
{
	struct lines lines = split(replacement);
	bool ok = true;

	for (size_t i = 0; ok && i < lines.count; i++) {
		const struct line *line = &lines.items[i];
		size_t from = out->size;

		if (line->body.size) {
			ok = rule_apply(rule, line->indent, out);
			if (ok && style->tabs &&
			    memchr(out->data + from, ' ', out->size - from))
				ok = false;
			if (ok && style->blanks &&
			    memchr(out->data + from, '\t', out->size - from))
				ok = false;
			buf_addstr(out, line->body);
		}
		buf_addstr(out, str_part(replacement, line->end, line->next - line->end));
	}
	free(lines.items);
	return ok;
}

/* The prefix rule that the first line that is not blank suggests. */
static struct rule prefix_rule(struct str old, struct str file)
{
	size_t same = 0;

	while (same < old.size && same < file.size &&
	       old.data[old.size - same - 1] == file.data[file.size - same - 1])
		same++;
	return (struct rule){.kind = RULE_PREFIX,
			     .from = str_part(old, 0, old.size - same),
			     .to = str_part(file, 0, file.size - same)};
}

/* Try one rule: the replacement it gives must be the only one that rules give. */
static bool rule_try(const struct rule *rule, const struct lines *old,
		     const struct line *file, struct str replacement,
		     const struct style *style, size_t *found, struct buf *out)
{
	struct buf made;
	bool agrees = true;

	if (!rule_holds(rule, old, file))
		return true;
	buf_init(&made, SIZE_MAX);
	if (rule_rewrite(rule, replacement, style, &made)) {
		agrees = *found == 0 || str_equal(buf_str(&made), buf_str(out));
		if (++*found == 1)
			buf_addstr(out, buf_str(&made));
	}
	buf_fini(&made);
	return agrees;
}

/*
 * Rules of so many blanks per tab. PLAIN: none added or taken, the natural meaning; tried
 * first.
 */
static bool try_units(const struct lines *old, const struct line *file, size_t first,
		      bool plain, struct str replacement, const struct style *style,
		      size_t *found, struct buf *out)
{
	ptrdiff_t old_size = (ptrdiff_t)old->items[first].indent.size;
	ptrdiff_t file_size = (ptrdiff_t)file[first].indent.size;
	bool sure = true;

	for (ptrdiff_t unit = INDENT_UNIT_MIN; sure && unit <= INDENT_UNIT_MAX; unit++) {
		struct rule to_tabs = {.kind = RULE_BLANKS_TO_TABS,
				       .unit = unit,
				       .shift = file_size - old_size / unit};
		struct rule to_blanks = {.kind = RULE_TABS_TO_BLANKS,
					 .unit = unit,
					 .shift = file_size - old_size * unit};

		if (!plain || to_tabs.shift == 0)
			sure = rule_try(&to_tabs, old, file, replacement, style, found, out);
		if (sure && (!plain || to_blanks.shift == 0))
			sure = rule_try(&to_blanks, old, file, replacement, style, found,
					out);
	}
	return sure;
}

/*
 * Find the rule between OLD and the lines FILE of the file; OUT becomes the new text.
 * False: none, or not sure.
 */
static bool find_rule(const struct lines *old, const struct line *file, size_t first,
		      struct str replacement, const struct style *style, struct buf *out)
{
	struct rule rule;
	size_t found = 0;
	bool sure;

	assert(old->items && file && first < old->count);
	rule = prefix_rule(old->items[first].indent, file[first].indent);
	sure = rule_try(&rule, old, file, replacement, style, &found, out);
	if (!found)
		sure = try_units(old, file, first, true, replacement, style, &found, out);
	if (!found && sure)
		sure = try_units(old, file, first, false, replacement, style, &found, out);
	return sure && found > 0;
}

static bool bodies_equal(const struct lines *old, const struct line *file, size_t first)
{
	if (!str_equal(old->items[first].body, file[first].body))
		return false;
	for (size_t i = 0; i < old->count; i++) {
		if (!str_equal(old->items[i].body, file[i].body))
			return false;
	}
	return true;
}

void match_indent(struct str text, struct str old, struct str replacement,
		  struct match *match)
{
	struct lines file = split(text);
	struct lines wanted = split(old);
	struct style style = style_of(&file);
	size_t first = 0;
	size_t found = 0;

	while (first < wanted.count && wanted.items[first].body.size == 0)
		first++;
	if (first < wanted.count && wanted.count <= INDENT_LINES_MAX) {
		for (size_t i = 0; i + wanted.count <= file.count; i++) {
			const struct line *last = &file.items[i + wanted.count - 1];

			if (!bodies_equal(&wanted, &file.items[i], first))
				continue;
			found = i;
			match_add(match, file.items[i].start,
				  str_ends(old, STR("\n")) ? last->next : last->end);
		}
	}
	/* Several places are told as such; a single one needs a rule that is sure. */
	if (match->count == 1 && !find_rule(&wanted, &file.items[found], first,
					    replacement, &style, &match->replacement)) {
		buf_clear(&match->replacement);
		match->count = 0;
	}
	free(file.items);
	free(wanted.items);
}
