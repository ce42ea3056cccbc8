/* theme: the table of roles, the table of colours, and the reader of a person's own theme. */

#include "tui/theme.h"

#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char theme_names[] = "dark light plain";

static const char *const role_names[PAINT_STYLES + 1] = {
	[PAINT_PLAIN] = "plain",       [PAINT_BOLD] = "bold",
	[PAINT_DIM] = "dim",           [PAINT_ERROR] = "error",
	[PAINT_GOOD] = "good",         [PAINT_WARNING] = "warning",
	[PAINT_ADDED] = "added",       [PAINT_REMOVED] = "removed",
	[PAINT_HUNK] = "hunk",         [PAINT_CHANGED] = "changed",
	[PAINT_EMPHASIS] = "emphasis", [PAINT_CODE] = "code",
	[PAINT_KEYWORD] = "keyword",   [PAINT_STRING] = "string",
	[PAINT_COMMENT] = "comment",   [PAINT_NUMBER] = "number",
};

static const struct theme dark = {{
	[PAINT_BOLD] = "1",
	[PAINT_DIM] = "2",
	[PAINT_ERROR] = "31",
	[PAINT_GOOD] = "32",
	[PAINT_WARNING] = "33",
	[PAINT_ADDED] = "32",
	[PAINT_REMOVED] = "31",
	[PAINT_HUNK] = "36",
	[PAINT_CHANGED] = "4",
	[PAINT_EMPHASIS] = "3",
	[PAINT_CODE] = "36",
	[PAINT_KEYWORD] = "35",
	[PAINT_STRING] = "32",
	[PAINT_COMMENT] = "2",
	[PAINT_NUMBER] = "36",
}};

static const struct theme dark_rgb = {{
	[PAINT_BOLD] = "1",
	[PAINT_DIM] = "2",
	[PAINT_ERROR] = "38;2;240;113;120",
	[PAINT_GOOD] = "38;2;152;195;121",
	[PAINT_WARNING] = "38;2;229;192;123",
	[PAINT_ADDED] = "38;2;152;195;121",
	[PAINT_REMOVED] = "38;2;240;113;120",
	[PAINT_HUNK] = "38;2;86;182;194",
	[PAINT_CHANGED] = "4",
	[PAINT_EMPHASIS] = "3",
	[PAINT_CODE] = "38;2;86;182;194",
	[PAINT_KEYWORD] = "38;2;198;120;221",
	[PAINT_STRING] = "38;2;152;195;121",
	[PAINT_COMMENT] = "38;2;127;132;142",
	[PAINT_NUMBER] = "38;2;209;154;102",
}};

/* Yellow and cyan cannot be read on white. */
static const struct theme light = {{
	[PAINT_BOLD] = "1",
	[PAINT_DIM] = "2",
	[PAINT_ERROR] = "31",
	[PAINT_GOOD] = "32",
	[PAINT_WARNING] = "35",
	[PAINT_ADDED] = "32",
	[PAINT_REMOVED] = "31",
	[PAINT_HUNK] = "34",
	[PAINT_CHANGED] = "4",
	[PAINT_EMPHASIS] = "3",
	[PAINT_CODE] = "34",
	[PAINT_KEYWORD] = "35",
	[PAINT_STRING] = "32",
	[PAINT_COMMENT] = "2",
	[PAINT_NUMBER] = "34",
}};

static const struct theme light_rgb = {{
	[PAINT_BOLD] = "1",
	[PAINT_DIM] = "2",
	[PAINT_ERROR] = "38;2;179;38;30",
	[PAINT_GOOD] = "38;2;27;94;32",
	[PAINT_WARNING] = "38;2;138;81;0",
	[PAINT_ADDED] = "38;2;27;94;32",
	[PAINT_REMOVED] = "38;2;179;38;30",
	[PAINT_HUNK] = "38;2;0;90;140",
	[PAINT_CHANGED] = "4",
	[PAINT_EMPHASIS] = "3",
	[PAINT_CODE] = "38;2;0;90;140",
	[PAINT_KEYWORD] = "38;2;136;23;152",
	[PAINT_STRING] = "38;2;27;94;32",
	[PAINT_COMMENT] = "38;2;100;100;100",
	[PAINT_NUMBER] = "38;2;138;81;0",
}};

static const struct theme plain = {{
	[PAINT_BOLD] = "1",
	[PAINT_DIM] = "2",
	[PAINT_ERROR] = "1",
	[PAINT_WARNING] = "1",
	[PAINT_HUNK] = "2",
	[PAINT_CHANGED] = "4",
	[PAINT_EMPHASIS] = "4",
	[PAINT_CODE] = "1",
	[PAINT_KEYWORD] = "1",
	[PAINT_COMMENT] = "2",
}};

static const struct {
	const char *name;
	const struct theme *sixteen, *rgb;
} shipped[] = {
	{"dark", &dark, &dark_rgb},
	{"light", &light, &light_rgb},
	{"plain", &plain, &plain},
};

const struct theme *theme_shipped(const char *name, bool rgb)
{
	for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++) {
		if (strcmp(shipped[i].name, name) == 0)
			return rgb ? shipped[i].rgb : shipped[i].sixteen;
	}
	return NULL;
}

bool theme_has_rgb(void)
{
	const char *said = getenv("COLORTERM");

	return said != NULL &&
	       (strcmp(said, "truecolor") == 0 || strcmp(said, "24bit") == 0);
}

/* The sixteen colours with the parts that xterm gives them. */
static const struct {
	const char *name, *code;
	uint8_t parts[3];
} colours[] = {
	{"black", "30", {0, 0, 0}},
	{"red", "31", {205, 0, 0}},
	{"green", "32", {0, 205, 0}},
	{"yellow", "33", {205, 205, 0}},
	{"blue", "34", {0, 0, 238}},
	{"magenta", "35", {205, 0, 205}},
	{"cyan", "36", {0, 205, 205}},
	{"white", "37", {229, 229, 229}},
	{"bright_black", "90", {127, 127, 127}},
	{"bright_red", "91", {255, 0, 0}},
	{"bright_green", "92", {0, 255, 0}},
	{"bright_yellow", "93", {255, 255, 0}},
	{"bright_blue", "94", {92, 92, 255}},
	{"bright_magenta", "95", {255, 0, 255}},
	{"bright_cyan", "96", {0, 255, 255}},
	{"bright_white", "97", {255, 255, 255}},
};

static const struct {
	const char *name, *code;
} attributes[] = {{"bold", "1"}, {"dim", "2"}, {"italic", "3"}, {"underline", "4"}};

enum { COLOURS = sizeof(colours) / sizeof(colours[0]), PARTS = 3, SAID_MAX = 60 };

static const char *nearest_of_sixteen(const int parts[PARTS])
{
	int best = INT_MAX;
	size_t found = 0;

	for (size_t i = 0; i < COLOURS; i++) {
		int distance = 0;

		for (size_t k = 0; k < PARTS; k++) {
			const int part = parts[k] - colours[i].parts[k];

			distance += part * part;
		}
		if (distance < best) {
			best = distance;
			found = i;
		}
	}
	return colours[found].code;
}

/* Read "#rrggbb" and append its code; false: it is none. */
static bool add_parts(struct str word, bool rgb, struct buf *code)
{
	int parts[PARTS];

	if (word.size != 1 + 2 * PARTS || word.data[0] != '#')
		return false;
	for (size_t i = 0; i < PARTS; i++) {
		const int high = text_hex_digit(word.data[1 + 2 * i]);
		const int low = text_hex_digit(word.data[2 + 2 * i]);

		if (high < 0 || low < 0)
			return false;
		parts[i] = high * 16 + low;
	}
	return rgb ? buf_addf(code, "38;2;%d;%d;%d", parts[0], parts[1], parts[2])
		   : buf_adds(code, nearest_of_sixteen(parts));
}

static bool add_colour(struct str word, bool rgb, struct buf *code)
{
	for (size_t i = 0; i < COLOURS; i++) {
		if (str_is(word, colours[i].name))
			return buf_adds(code, colours[i].code);
	}
	return add_parts(word, rgb, code);
}

/* Append the code of WORD. *COLOURED: a word before was a colour, and this one may be none. */
static bool add_word(struct str word, bool rgb, bool *coloured, struct buf *code)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		if (str_is(word, attributes[i].name))
			return buf_adds(code, attributes[i].code);
	}
	if (*coloured)
		return false;
	*coloured = true;
	return str_is(word, "none") || add_colour(word, rgb, code);
}

/* The code of the words TEXT; false: they are no colour. */
static bool parse_words(struct str text, bool rgb, char code[THEME_CODE_MAX])
{
	bool coloured = false, fine = true;
	struct str rest = text, word;
	struct buf codes;

	buf_init(&codes, THEME_CODE_MAX - 1);
	while (fine && str_next_word(&rest, &word)) {
		const size_t before = codes.size;

		if (before > 0)
			(void)buf_addc(&codes, ';');
		fine = add_word(word, rgb, &coloured, &codes) && !codes.overflowed;
		if (codes.size == before + 1 && before > 0)
			buf_truncate(&codes, before);
	}
	if (fine)
		memcpy(code, codes.size > 0 ? codes.data : "", codes.size + 1);
	buf_fini(&codes);
	return fine;
}

/* Take the member KEY of a theme. */
static bool take_role(const char *key, const struct value *value, bool rgb,
		      struct theme *theme, struct err *err)
{
	const char *nearest;

	for (size_t role = PAINT_BOLD; role < PAINT_STYLES; role++) {
		if (strcmp(role_names[role], key) != 0)
			continue;
		return parse_words(value_str(value), rgb, theme->codes[role]) ||
		       err_set(err, EINVAL,
			       "/%s: \"%.*s\" is no colour: at most one colour (red, "
			       "bright_red, #aa0000), and bold, dim, italic, underline",
			       key, SAID_MAX, value_text(value));
	}
	nearest = text_nearest(key, role_names + PAINT_BOLD);
	return err_set(err, EINVAL, "/: there is no role \"%.*s\"%s%s", SAID_MAX, key,
		       nearest != NULL ? "; did you mean " : "",
		       nearest != NULL ? nearest : "");
}

static bool take_base(const struct value *base, bool rgb, struct theme *theme,
		      struct err *err)
{
	const struct theme *found =
		theme_shipped(base != NULL ? value_text(base) : "dark", rgb);

	if (found == NULL)
		return err_set(err, EINVAL, "/base: must be one of: %s", theme_names);
	*theme = *found;
	return true;
}

bool theme_parse(struct str text, bool rgb, struct theme *theme, struct err *err)
{
	auto_value struct value *value = NULL;
	bool fine;

	if (!value_parse(text, VALUE_COMMENTS, &value, err))
		return false;
	if (value_kind(value) != VALUE_OBJECT)
		return err_set(err, EINVAL, "/: must be an object, not %s",
			       value_kind_name(value_kind(value)));
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		if (value_kind(value_at(at)) != VALUE_STRING)
			return err_set(err, EINVAL, "/%.*s: must be text, not %s",
				       SAID_MAX, value_key(at),
				       value_kind_name(value_kind(value_at(at))));
	}
	fine = take_base(value_member(value, "base"), rgb, theme, err);
	for (void *at = value_first(value); fine && at != NULL; at = value_next(value, at)) {
		if (strcmp(value_key(at), "base") != 0)
			fine = take_role(value_key(at), value_at(at), rgb, theme, err);
	}
	return fine;
}
