/* json_insert: finds the place of a new member by the tokens of the text. */
#include "front/verbs/json_insert.h"

#include <string.h>

enum {
	INDENT_MAX = 64,       /* a deeper line counts as moved, not as indented */
	PRETTY_MAX = 64 << 10, /* an entry as it is printed */
};

/* The result of a walk over an object's tokens. */
struct spot {
	size_t open, close; /* its braces */
	size_t last;        /* the offset behind its last token (comments do not count) */
	bool empty, comma;  /* empty: it has no member; comma: its last token is one */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/*
 * The offset behind the comment at AT; AT when there is none. A comment of a line ends
 * before the line end.
 */
static size_t skip_comment(struct str text, size_t at)
{
	size_t end = at;

	if (str_starts(str_part(text, at, 2), STR("//")))
		end = str_find(text, STR("\n"), at);
	else if (str_starts(str_part(text, at, 2), STR("/*")))
		end = str_find(text, STR("*/"), at + 2);
	else
		return at;
	if (end == (size_t)-1)
		return text.size;
	return text.data[at + 1] == '*' ? end + 2 : end;
}

static size_t skip_space(struct str text, size_t at)
{
	while (at < text.size) {
		size_t next = is_blank(text.data[at]) ? at + 1 : skip_comment(text, at);

		if (next == at)
			break;
		at = next;
	}
	return at;
}

/* The offset behind the token at AT: a string, a mark, a word or a number. */
static size_t skip_token(struct str text, size_t at)
{
	size_t end = at + 1;

	if (text.data[at] == '"') {
		while (end < text.size && text.data[end] != '"')
			end += text.data[end] == '\\' ? 2 : 1;
		return end < text.size ? end + 1 : text.size;
	}
	if (strchr("{}[],:", text.data[at]))
		return end;
	while (end < text.size && !is_blank(text.data[end]) &&
	       !strchr("{}[],:\"/", text.data[end]))
		end++;
	return end;
}

static bool is_key(struct str token, const char *wanted)
{
	auto_value struct value *key = NULL;

	return token.size > 0 && token.data[0] == '"' &&
	       value_parse(token, 0, &key, NULL) && str_is(value_str(key), wanted);
}

/*
 * Walk over the object whose brace is at OPEN, and look for the key MEMBER (may be NULL).
 * *VALUE is the offset of the member's value; 0: there is no such member. TEXT is known
 * to be valid.
 */
static struct spot walk(struct str text, size_t open, const char *member, size_t *value)
{
	struct spot place = {.open = open, .last = open + 1, .empty = true};
	size_t at = skip_space(text, open + 1), depth = 1;
	bool wanted = false;

	while (at < text.size) {
		size_t end = skip_token(text, at);
		struct str token = str_part(text, at, end - at);
		bool opens = text.data[at] == '{' || text.data[at] == '[';
		bool closes = text.data[at] == '}' || text.data[at] == ']';

		depth -= closes;
		if (depth == 0) {
			place.close = at;
			return place;
		}
		if (member && depth == 1 && wanted && text.data[at] != ':') {
			*value = at;
			wanted = false;
		} else if (member && depth == 1 && text.data[skip_space(text, end)] == ':') {
			wanted = is_key(token, member);
		}
		depth += opens;
		place.empty = false;
		place.comma = depth == 1 && text.data[at] == ',';
		place.last = end;
		at = skip_space(text, end);
	}
	place.close = text.size;
	return place;
}

/* The blanks at the beginning of the line of AT. */
static struct str indent_of(struct str text, size_t at)
{
	size_t start = at, end;

	while (start > 0 && text.data[start - 1] != '\n')
		start--;
	for (end = start; end < at && (text.data[end] == ' ' || text.data[end] == '\t');)
		end++;
	return str_part(text, start, end - start < INDENT_MAX ? end - start : 0);
}

/* The indentation of one level: that of the first indented line. */
static struct str unit_of(struct str text)
{
	for (size_t at = str_find(text, STR("\n"), 0); at != (size_t)-1;
	     at = str_find(text, STR("\n"), at + 1)) {
		size_t end = at + 1;

		while (end < text.size && (text.data[end] == ' ' || text.data[end] == '\t'))
			end++;
		if (end > at + 1 && end < text.size && !is_blank(text.data[end]) &&
		    end - at <= INDENT_MAX)
			return str_part(text, at + 1, end - at - 1);
	}
	return STR("  ");
}

/*
 * Append `"NAME": ENTRY` on several lines. All of them except the first are indented by
 * INDENT.
 */
static void add_pretty(const char *name, const struct value *entry, struct str indent,
		       struct str unit, struct str line_end, struct buf *out)
{
	struct buf text;
	struct str rest, line;
	bool first = true;

	buf_init(&text, PRETTY_MAX);
	(void)value_quote(str_of(name), &text);
	(void)buf_adds(&text, ": ");
	(void)value_print(entry, VALUE_PRETTY, &text);
	rest = buf_str(&text);
	while (str_next_line(&rest, &line)) {
		if (!first) {
			(void)buf_addstr(out, line_end);
			(void)buf_addstr(out, indent);
		}
		first = false;
		/* The printer indents each level by two blanks. */
		while (str_starts(line, STR("  "))) {
			(void)buf_addstr(out, unit);
			line = str_part(line, 2, line.size);
		}
		(void)buf_addstr(out, line);
	}
	buf_fini(&text);
}

/*
 * The offset behind comments that follow AT on its line: such comments belong to the text
 * before them.
 */
static size_t behind_remarks(struct str text, size_t at)
{
	size_t end = at;

	while (end < text.size) {
		size_t next = text.data[end] == ' ' || text.data[end] == '\t'
				      ? end + 1
				      : skip_comment(text, end);

		if (next == end || memchr(text.data + end, '\n', next - end))
			break;
		if (text.data[end] == '/')
			at = next;
		end = next;
	}
	return at;
}

static void add_member(struct str text, const struct spot *place, const char *name,
		       const struct value *entry, struct buf *out)
{
	struct str line_end =
		str_find(text, STR("\r\n"), 0) != (size_t)-1 ? STR("\r\n") : STR("\n");
	struct str outer = indent_of(text, place->close);
	struct str unit = unit_of(text);
	size_t behind = behind_remarks(text, place->last);
	bool line_follows = memchr(text.data + behind, '\n', place->close - behind) != NULL;
	struct buf indent;

	if (place->empty)
		outer = indent_of(text, place->open);
	buf_init(&indent, 2 * INDENT_MAX);
	(void)buf_addstr(&indent, outer);
	(void)buf_addstr(&indent, unit);
	(void)buf_addstr(out, str_part(text, 0, place->last));
	if (!place->empty && !place->comma)
		(void)buf_addc(out, ',');
	(void)buf_addstr(out, str_part(text, place->last, behind - place->last));
	(void)buf_addstr(out, line_end);
	(void)buf_addstr(out, buf_str(&indent));
	add_pretty(name, entry, buf_str(&indent), unit, line_end, out);
	if (!line_follows) {
		(void)buf_addstr(out, line_end);
		(void)buf_addstr(out, outer);
	}
	(void)buf_addstr(out, str_part(text, behind, text.size));
	buf_fini(&indent);
}

/* OLD with the entry, as a value: the new text must be equal to it. */
static struct value *wanted_value(const struct value *old, const char *group,
				  const char *name, const struct value *entry)
{
	struct value *wanted = value_copy(old);

	if (!value_member(wanted, group))
		value_set(wanted, group, value_new_object());
	value_set(value_member(wanted, group), name, value_copy(entry));
	return wanted;
}

static bool check_result(struct str made, const struct value *wanted, struct err *err)
{
	auto_value struct value *read = NULL;

	if (!value_parse(made, VALUE_COMMENTS, &read, err))
		return false;
	return value_equal(read, wanted) ||
	       err_set(err, 0, "the entry could not be added without changing others");
}

static void insert(struct str text, const char *group, const char *name,
		   const struct value *entry, struct buf *out)
{
	auto_value struct value *whole = value_new_object();
	size_t open = skip_space(text, 0), value = 0;
	struct spot place = walk(text, open, group, &value);

	if (value) {
		place = walk(text, value, NULL, NULL);
		add_member(text, &place, name, entry, out);
		return;
	}
	value_set(whole, name, value_copy(entry));
	add_member(text, &place, group, whole, out);
}

enum json_insert_answer json_insert(struct str text, const char *group, const char *name,
				    const struct value *entry, struct buf *out,
				    struct err *err)
{
	auto_value struct value *old = NULL;
	auto_value struct value *wanted = NULL;
	const struct value *there;
	struct buf made;
	bool fits;

	if (str_trim(text).size == 0)
		text = STR("{}\n");
	if (!value_parse(text, VALUE_COMMENTS, &old, err))
		return JSON_REFUSED;
	if (value_kind(old) != VALUE_OBJECT) {
		(void)err_set(err, 0, "it holds no JSON object");
		return JSON_REFUSED;
	}
	there = value_member(old, group);
	if (there && value_kind(there) != VALUE_OBJECT) {
		(void)err_set(err, 0, "\"%s\" in it is no object", group);
		return JSON_REFUSED;
	}
	there = value_member(there, name);
	if (there)
		return value_equal(there, entry) ? JSON_IS_THERE : JSON_DIFFERS;
	wanted = wanted_value(old, group, name, entry);
	buf_init(&made, out->max);
	insert(text, group, name, entry, &made);
	fits = check_result(buf_str(&made), wanted, err) && buf_addstr(out, buf_str(&made));
	buf_fini(&made);
	return fits ? JSON_INSERTED : JSON_REFUSED;
}
