/*
 * style: from the bottom to the top, the values of properties that hide, the text of CSS
 * and its selectors, the rules of a page, and what they say of one element.
 */
#include "tools/web/style.h"

#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>

/* The properties that hide, and their values. */

enum property {
	PROPERTY_DISPLAY,
	PROPERTY_CONTENT, /* content-visibility */
	PROPERTY_VISIBILITY,
	PROPERTY_OPACITY,
	PROPERTY_FILTER,
	PROPERTY_FONT_SIZE,
	PROPERTY_POSITION,
	PROPERTY_LEFT,
	PROPERTY_RIGHT,
	PROPERTY_TOP,
	PROPERTY_BOTTOM,
	PROPERTY_INDENT,
	PROPERTY_MARGIN_LEFT,
	PROPERTY_MARGIN_TOP,
	PROPERTY_TRANSFORM,
	PROPERTY_CLIP,
	PROPERTY_CLIP_PATH,
	PROPERTY_WIDTH,
	PROPERTY_HEIGHT,
	PROPERTY_MAX_WIDTH,
	PROPERTY_MAX_HEIGHT,
	PROPERTY_PADDING,
	PROPERTY_OVERFLOW,
	PROPERTY_COLOUR,
	PROPERTY_BACKGROUND,
	PROPERTIES,
};

/* Of a colour the value is its number instead: VALUE_COLOUR and eight bits each of R, G and B. */
enum {
	VALUE_NONE,  /* it is not set */
	VALUE_OTHER, /* it hides nothing */
	VALUE_HIDES,
	VALUE_RELATIVE, /* a size of text that depends on the one around it */
	VALUE_COLOUR = 1 << 24,
};

/* A length or a number of CSS, as far as it matters here. */
struct length {
	double number;
	char unit[5]; /* in lower case; longer ones are cut */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | ' ') : c;
}

/* May C be in a name? All bytes of other characters than ASCII may. */
static bool is_name(char c)
{
	return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' ||
	       c == '_' || (unsigned char)c >= 0x80;
}

static struct str skip_blanks(struct str text)
{
	while (text.size > 0 && text_is_web_blank(text.data[0]))
		text = str_part(text, 1, text.size);
	return text;
}

/* Is the first word of TEXT this WORD? */
static bool first_is(struct str text, const char *word)
{
	const size_t size = strlen(word);

	return str_starts_caseless(text, word) &&
	       (text.size == size || !is_name(text.data[size]));
}

enum { NUMBER_MOST = 100000000 };

/* Take the first number of *TEXT, wherever it begins. False: there is none. */
static bool take_length(struct str *text, struct length *length)
{
	double scale = 0;
	size_t at = 0, unit = 0;
	bool minus;

	*length = (struct length){0};
	while (at < text->size &&
	       !(is_digit(text->data[at]) &&
		 (at == 0 || !is_name(text->data[at - 1]) || text->data[at - 1] == '-')))
		at++;
	if (at == text->size)
		return false;
	minus = at > 0 &&
		(text->data[at - 1] == '-' ||
		 (text->data[at - 1] == '.' && at > 1 && text->data[at - 2] == '-'));
	if (at > 0 && text->data[at - 1] == '.')
		scale = 1;
	for (; at < text->size; at++) {
		const char c = text->data[at];

		if (c == '.' && scale == 0 && at + 1 < text->size &&
		    is_digit(text->data[at + 1])) {
			scale = 1;
			continue;
		}
		if (!is_digit(c))
			break;
		if (scale != 0) {
			scale /= 10;
			length->number += (c - '0') * scale;
		} else if (length->number < NUMBER_MOST) {
			length->number = length->number * 10 + (c - '0');
		}
	}
	length->number = minus ? -length->number : length->number;
	for (; at < text->size && (text->data[at] == '%' || is_name(text->data[at])); at++) {
		if (unit + 1 < sizeof(length->unit))
			length->unit[unit++] = lower(text->data[at]);
	}
	*text = str_part(*text, at, text->size);
	return true;
}

static bool unit_is(const struct length *length, const char *units)
{
	return length->unit[0] != '\0' && str_among(units, str_of(length->unit));
}

enum {
	NEAR_NOTHING_PX = 1, /* a box or a text of this size shows nothing that could be read */
	FAR_PX = 500,        /* further to the left or above is off the screen … */
	FAR_EM = 40,
	FAR_PERCENT = 100,
	FAR_RIGHT_PX = 5000, /* … and so is this to the right; pages are long, but not wide */
	DIGIT_TWICE = 0x11, /* of a short colour each digit stands for two: "f" is "ff" */
};

/*
 * About NEAR_NOTHING_PX, of the usual text of 16 px (em, ch) or of a screen of 1,500
 * (vw).
 */
static const double near_nothing_em = 0.07;
/* Nobody sees an opacity of less, and at this scale 100 px are one. */
static const double near_nothing_part = 0.01;

static bool is_nothing(const struct length *length)
{
	const double size = length->number < 0 ? -length->number : length->number;

	if (size == 0)
		return true;
	if (unit_is(length, "em rem ex ch vw vh"))
		return size < near_nothing_em;
	if (unit_is(length, "%"))
		return size < 1;
	return size <= NEAR_NOTHING_PX;
}

/* Is LENGTH so far outside that a text there is not seen? SIDE: per cents are of the screen. */
static bool is_far(const struct length *length, bool side, bool to_right)
{
	if (unit_is(length, "%"))
		return side && length->number <= -FAR_PERCENT;
	if (unit_is(length, "vw vh"))
		return length->number <= -FAR_PERCENT;
	if (unit_is(length, "em rem ex ch in cm"))
		return length->number <= -FAR_EM;
	return length->number <= -FAR_PX || (to_right && length->number >= FAR_RIGHT_PX);
}

/* Is one of the lengths in VALUE far outside? */
static uint32_t far_value(struct str value, bool side, bool to_right)
{
	struct length length;

	while (take_length(&value, &length)) {
		if (is_far(&length, side, to_right))
			return VALUE_HIDES;
	}
	return VALUE_OTHER;
}

static uint32_t size_value(struct str value)
{
	struct length length;

	return take_length(&value, &length) && is_nothing(&length) ? VALUE_HIDES
								   : VALUE_OTHER;
}

static uint32_t zero_value(struct str value)
{
	struct length length;

	return take_length(&value, &length) &&
			       length.number <=
				       (unit_is(&length, "%") ? 1 : near_nothing_part)
		       ? VALUE_HIDES
		       : VALUE_OTHER;
}

static uint32_t font_size_value(struct str value)
{
	struct length length;

	if (first_is(value, "smaller") || first_is(value, "larger") ||
	    first_is(value, "inherit") || first_is(value, "unset"))
		return VALUE_RELATIVE;
	if (!take_length(&value, &length))
		return VALUE_OTHER;
	if (is_nothing(&length))
		return VALUE_HIDES;
	return unit_is(&length, "em ex ch %") ? VALUE_RELATIVE : VALUE_OTHER;
}

/* `font`: the size is the first length behind the words and the weight ("bold 700 0/0 a"). */
static uint32_t font_value(struct str value)
{
	struct length length;

	while (take_length(&value, &length)) {
		if (length.unit[0] != '\0' || length.number == 0)
			return is_nothing(&length) ? VALUE_HIDES : VALUE_OTHER;
	}
	return VALUE_OTHER;
}

/* The colours that have a name, as far as texts are hidden with them. */
static const struct {
	const char *name;
	uint32_t rgb;
} colours[] = {
	{"white", 0xffffff},       {"black", 0x000000},      {"red", 0xff0000},
	{"lime", 0x00ff00},        {"blue", 0x0000ff},       {"yellow", 0xffff00},
	{"gray", 0x808080},        {"grey", 0x808080},       {"silver", 0xc0c0c0},
	{"green", 0x008000},       {"navy", 0x000080},       {"snow", 0xfffafa},
	{"ivory", 0xfffff0},       {"whitesmoke", 0xf5f5f5}, {"ghostwhite", 0xf8f8ff},
	{"floralwhite", 0xfffaf0}, {"lightgray", 0xd3d3d3},  {"lightgrey", 0xd3d3d3},
	{"azure", 0xf0ffff},       {"mintcream", 0xf5fffa},  {"seashell", 0xfff5ee},
};

static uint32_t hex_colour(struct str digits)
{
	uint32_t parts[4] = {0, 0, 0, 255};
	const size_t wide = digits.size > 4 ? 2 : 1;

	if (digits.size != 3 && digits.size != 4 && digits.size != 6 && digits.size != 8)
		return VALUE_OTHER;
	for (size_t i = 0; i < digits.size; i++) {
		const int digit = text_hex_digit(digits.data[i]);

		if (digit < 0)
			return VALUE_OTHER;
		parts[i / wide] = wide == 1    ? (uint32_t)digit * DIGIT_TWICE
				  : i % 2 == 0 ? (uint32_t)digit << 4
					       : parts[i / wide] | (uint32_t)digit;
	}
	if (parts[3] == 0)
		return VALUE_HIDES;
	return VALUE_COLOUR | parts[0] << 16 | parts[1] << 8 | parts[2];
}

/* "rgb(255 255 255 / 0)", "rgba(100%,0%,0%,0)", "hsl(0, 0%, 100%)" (only white and black). */
static uint32_t function_colour(struct str value)
{
	const bool is_hsl = str_starts_caseless(value, "hsl");
	struct length length;
	uint32_t rgb = 0;
	unsigned count = 0;
	double third = 0;

	for (; count < 4 && take_length(&value, &length); count++) {
		const double most = unit_is(&length, "%") ? 100 : 255;
		const double part = length.number < 0      ? 0
				    : length.number > most ? most
							   : length.number;

		if (count == 3)
			return length.number == 0 ? VALUE_HIDES : VALUE_COLOUR | rgb;
		third = length.number;
		rgb = rgb << 8 | (uint32_t)(part * 255 / most);
	}
	if (count < 3 || (is_hsl && third != 0 && third < 100))
		return VALUE_OTHER;
	return VALUE_COLOUR | (is_hsl ? third == 0 ? 0 : 0xffffff : rgb);
}

/* The colour that VALUE begins with; VALUE_HIDES: one that lets everything through. */
static uint32_t colour_value(struct str value)
{
	size_t size = 0;

	if (value.size > 0 && value.data[0] == '#') {
		while (size + 1 < value.size && is_name(value.data[size + 1]))
			size++;
		return hex_colour(str_part(value, 1, size));
	}
	if (str_starts_caseless(value, "rgb") || str_starts_caseless(value, "hsl"))
		return function_colour(value);
	if (first_is(value, "transparent"))
		return VALUE_HIDES;
	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++) {
		if (first_is(value, colours[i].name))
			return VALUE_COLOUR | colours[i].rgb;
	}
	return VALUE_OTHER;
}

/* rect(top, right, bottom, left) */
static uint32_t clip_value(struct str value)
{
	struct length sides[4];

	if (!str_starts_caseless(value, "rect"))
		return VALUE_OTHER;
	for (size_t i = 0; i < 4; i++) {
		if (!take_length(&value, &sides[i]))
			return VALUE_OTHER;
	}
	return sides[1].number - sides[3].number <= NEAR_NOTHING_PX ||
			       sides[2].number - sides[0].number <= NEAR_NOTHING_PX
		       ? VALUE_HIDES
		       : VALUE_OTHER;
}

enum { HALF_PERCENT = 50 };

static uint32_t clip_path_value(struct str value)
{
	const bool is_inset = str_starts_caseless(value, "inset");
	struct length length;
	bool all_zero = true, any = false;

	if (!is_inset && !str_starts_caseless(value, "circle") &&
	    !str_starts_caseless(value, "ellipse") &&
	    !str_starts_caseless(value, "polygon"))
		return VALUE_OTHER;
	if (!is_inset && !str_starts_caseless(value, "polygon"))
		return size_value(value);
	while (take_length(&value, &length)) {
		if (is_inset && unit_is(&length, "%") && length.number >= HALF_PERCENT)
			return VALUE_HIDES;
		any = true;
		all_zero = all_zero && length.number == 0;
	}
	return !is_inset && any && all_zero ? VALUE_HIDES : VALUE_OTHER;
}

/* `transform`, `translate`, `scale`: made small to nothing, or moved away. */
static uint32_t transform_value(struct str value)
{
	for (size_t at = 0; at < value.size; at++) {
		const struct str rest = str_part(value, at, value.size);

		if (str_starts_caseless(rest, "scale") && zero_value(rest) == VALUE_HIDES)
			return VALUE_HIDES;
		if (str_starts_caseless(rest, "translate"))
			return far_value(rest, false, true);
	}
	return VALUE_OTHER;
}

static uint32_t padding_value(struct str value)
{
	struct length length;

	while (take_length(&value, &length)) {
		if (length.number > 0)
			return VALUE_OTHER;
	}
	return VALUE_NONE;
}

static uint32_t filter_value(struct str value)
{
	for (size_t at = 0; at < value.size; at++) {
		const struct str rest = str_part(value, at, value.size);

		if (str_starts_caseless(rest, "opacity("))
			return zero_value(rest);
	}
	return VALUE_OTHER;
}

static uint32_t word_value(struct str value, const char *one, const char *other)
{
	return first_is(value, one) || (other != NULL && first_is(value, other))
		       ? VALUE_HIDES
		       : VALUE_OTHER;
}

static const struct {
	const char *name;
	enum property property;
} names[] = {
	{"display", PROPERTY_DISPLAY},
	{"content-visibility", PROPERTY_CONTENT},
	{"visibility", PROPERTY_VISIBILITY},
	{"opacity", PROPERTY_OPACITY},
	{"filter", PROPERTY_FILTER},
	{"font-size", PROPERTY_FONT_SIZE},
	{"font", PROPERTY_FONT_SIZE},
	{"position", PROPERTY_POSITION},
	{"left", PROPERTY_LEFT},
	{"inset-inline-start", PROPERTY_LEFT},
	{"inset", PROPERTY_LEFT},
	{"right", PROPERTY_RIGHT},
	{"top", PROPERTY_TOP},
	{"bottom", PROPERTY_BOTTOM},
	{"text-indent", PROPERTY_INDENT},
	{"margin-left", PROPERTY_MARGIN_LEFT},
	{"margin-top", PROPERTY_MARGIN_TOP},
	{"margin", PROPERTY_MARGIN_LEFT},
	{"transform", PROPERTY_TRANSFORM},
	{"translate", PROPERTY_TRANSFORM},
	{"scale", PROPERTY_TRANSFORM},
	{"clip", PROPERTY_CLIP},
	{"clip-path", PROPERTY_CLIP_PATH},
	{"-webkit-clip-path", PROPERTY_CLIP_PATH},
	{"width", PROPERTY_WIDTH},
	{"height", PROPERTY_HEIGHT},
	{"max-width", PROPERTY_MAX_WIDTH},
	{"max-height", PROPERTY_MAX_HEIGHT},
	{"padding", PROPERTY_PADDING},
	{"padding-top", PROPERTY_PADDING},
	{"padding-bottom", PROPERTY_PADDING},
	{"overflow", PROPERTY_OVERFLOW},
	{"overflow-x", PROPERTY_OVERFLOW},
	{"overflow-y", PROPERTY_OVERFLOW},
	{"color", PROPERTY_COLOUR},
	{"-webkit-text-fill-color", PROPERTY_COLOUR},
	{"background", PROPERTY_BACKGROUND},
	{"background-color", PROPERTY_BACKGROUND},
};

static uint32_t value_of(enum property property, const char *name, struct str value)
{
	/* The value of a variable is not known. */
	if (str_find(value, STR("var("), 0) != (size_t)-1)
		return VALUE_OTHER;
	switch (property) {
	case PROPERTY_DISPLAY:
		return word_value(value, "none", NULL);
	case PROPERTY_CONTENT:
		return word_value(value, "hidden", NULL);
	case PROPERTY_VISIBILITY:
		return first_is(value, "inherit")
			       ? VALUE_RELATIVE
			       : word_value(value, "hidden", "collapse");
	case PROPERTY_OPACITY:
		return zero_value(value);
	case PROPERTY_FILTER:
		return filter_value(value);
	case PROPERTY_FONT_SIZE:
		return strcmp(name, "font") == 0 ? font_value(value)
						 : font_size_value(value);
	case PROPERTY_POSITION:
		/* HIDES: with a place that is far away. */
		return first_is(value, "relative")
			       ? VALUE_RELATIVE
			       : word_value(value, "absolute", "fixed");
	case PROPERTY_LEFT:
		return far_value(value, true, true);
	case PROPERTY_RIGHT:
	case PROPERTY_TOP:
	case PROPERTY_BOTTOM:
		return far_value(value, true, false);
	case PROPERTY_INDENT:
		return far_value(value, true, true);
	case PROPERTY_MARGIN_LEFT:
	case PROPERTY_MARGIN_TOP:
		return far_value(value, false, true);
	case PROPERTY_TRANSFORM:
		return strcmp(name, "scale") == 0       ? zero_value(value)
		       : strcmp(name, "translate") == 0 ? far_value(value, false, true)
							: transform_value(value);
	case PROPERTY_CLIP:
		return clip_value(value);
	case PROPERTY_CLIP_PATH:
		return clip_path_value(value);
	case PROPERTY_WIDTH:
	case PROPERTY_HEIGHT:
	case PROPERTY_MAX_WIDTH:
	case PROPERTY_MAX_HEIGHT:
		return size_value(value);
	case PROPERTY_PADDING:
		return padding_value(value);
	case PROPERTY_OVERFLOW:
		return first_is(value, "visible") ? VALUE_OTHER : VALUE_HIDES;
	case PROPERTY_COLOUR:
	case PROPERTY_BACKGROUND:
		return colour_value(value);
	case PROPERTIES:
		break;
	}
	return VALUE_NONE;
}

/* The text of CSS. */

/* The bytes of the escape at the beginning of TEXT ("\66 "); its character goes to OUT. */
static size_t read_escape(struct str text, char out[5])
{
	uint32_t code = 0;
	size_t at = 1;
	struct buf character;

	out[0] = '\0';
	while (at < text.size && at <= 6 && text_hex_digit(text.data[at]) >= 0)
		code = code << 4 | (uint32_t)text_hex_digit(text.data[at++]);
	if (at == 1) {
		if (text.size > 1 && text.data[1] != '\n') {
			out[0] = text.data[1];
			out[1] = '\0';
		}
		return text.size > 1 ? 2 : 1;
	}
	if (at < text.size && text_is_web_blank(text.data[at]))
		at++;
	if (code == 0 || code > 0x10ffff)
		return at;
	buf_init(&character, 4);
	text_add_code(code, &character);
	memcpy(out, character.data, character.size + 1);
	buf_fini(&character);
	return at;
}

/* The bytes of the comment at the beginning of TEXT; 0: there is none. */
static size_t comment_size(struct str text)
{
	size_t end;

	if (!str_starts(text, STR("/*")))
		return 0;
	end = str_find(text, STR("*/"), 2);
	return end == (size_t)-1 ? text.size : end + 2;
}

/* The bytes of the string in quotes at the beginning of TEXT. */
static size_t string_size(struct str text)
{
	size_t at = 1;

	while (at < text.size && text.data[at] != text.data[0] && text.data[at] != '\n')
		at += text.data[at] == '\\' && at + 1 < text.size ? 2 : 1;
	return at < text.size ? at + 1 : at;
}

/*
 * The bytes of TEXT before the first of ENDS that stands in no string, comment, bracket or block;
 * TEXT.size: there is none.
 */
static size_t find_end(struct str text, const char *ends)
{
	size_t depth = 0;

	for (size_t at = 0; at < text.size;) {
		const struct str rest = str_part(text, at, text.size);
		const size_t comment = comment_size(rest);
		const char c = text.data[at];

		if (comment > 0) {
			at += comment;
			continue;
		}
		if (depth == 0 && c != '\0' && strchr(ends, c) != NULL)
			return at;
		if (c == '"' || c == '\'') {
			at += string_size(rest);
			continue;
		}
		if (c == '(' || c == '[' || c == '{')
			depth++;
		else if ((c == ')' || c == ']' || c == '}') && depth > 0)
			depth--;
		at += c == '\\' && at + 1 < text.size ? 2 : 1;
	}
	return text.size;
}

enum {
	PLAIN_MAX = 512
}; /* bytes of a value that matter: the longest have four lengths */

/* Write TEXT without comments and escapes to OUT, as far as there is room. */
static struct str plain_text(struct str text, char out[PLAIN_MAX])
{
	size_t size = 0;

	for (size_t at = 0; at < text.size && size + 5 < PLAIN_MAX;) {
		const struct str rest = str_part(text, at, text.size);
		const size_t comment = comment_size(rest);

		if (comment > 0) {
			at += comment;
		} else if (text.data[at] == '\\') {
			char character[5];

			at += read_escape(rest, character);
			for (const char *c = character; *c != '\0'; c++)
				out[size++] = *c;
		} else {
			out[size++] = text.data[at++];
		}
	}
	return str_trim((struct str){out, size});
}

struct declaration {
	uint32_t value;
	uint8_t property;
	bool important;
};

/* Read "NAME: VALUE !important". False: it hides nothing and shows nothing. */
static bool read_declaration(struct str text, struct declaration *declaration)
{
	const size_t colon = find_end(text, ":");
	char name_room[PLAIN_MAX], value_room[PLAIN_MAX];
	struct str name, value;
	size_t mark;

	if (colon == text.size)
		return false;
	name = plain_text(str_part(text, 0, colon), name_room);
	value = plain_text(str_part(text, colon + 1, text.size), value_room);
	mark = str_find(value, STR("!"), 0);
	declaration->important =
		mark != (size_t)-1 &&
		first_is(skip_blanks(str_part(value, mark + 1, value.size)), "important");
	value = str_trim(str_part(value, 0, mark));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!str_is_caseless(name, names[i].name))
			continue;
		declaration->property = (uint8_t)names[i].property;
		declaration->value = value_of(names[i].property, names[i].name, value);
		return declaration->value != VALUE_NONE;
	}
	return false;
}

/* Take the next declaration of *REST, which are separated by ";". False: none is left. */
static bool take_declaration(struct str *rest, struct declaration *declaration)
{
	while (rest->size > 0) {
		const size_t end = find_end(*rest, ";");
		const struct str text = str_part(*rest, 0, end);

		*rest = str_part(*rest, end + 1, rest->size);
		if (read_declaration(text, declaration))
			return true;
	}
	return false;
}

/* Selectors. */

enum { PART_CLASSES = 4 };

/* Names of one element; 0: any. */
struct part {
	uint64_t tag, id, classes[PART_CLASSES];
	size_t class_count;
	bool is_child; /* of the part before it, and not only below it */
};

struct selector {
	struct part parts[STYLE_PARTS];
	size_t count;
	uint32_t weight, order;
	uint32_t first, last; /* its declarations */
	uint32_t next;        /* in its list, + 1; 0: the last one */
};

enum { LISTS = 1 << 10 };

struct styles {
	struct selector *selectors;
	size_t count;
	struct declaration *declarations;
	size_t declaration_count;
	uint32_t lists[LISTS]; /* by a name of the last part */
	size_t bytes, work;
	uint32_t order;
	bool full;
};

/* FNV-1a, of NAME in lower case; 0 stands for no name. */
static uint64_t number_of(struct str name)
{
	uint64_t number = 0xcbf29ce484222325;

	for (size_t i = 0; i < name.size; i++)
		number = (number ^ (unsigned char)lower(name.data[i])) * 0x100000001b3;
	return name.size > 0 ? number | 1 : 0;
}

/* Take the name at the beginning of *TEXT, with escapes. 0: there is none. */
static uint64_t take_name(struct str *text)
{
	char room[PLAIN_MAX];
	size_t at = 0;

	while (at < text->size && (is_name(text->data[at]) || text->data[at] == '\\')) {
		char character[5];

		at += text->data[at] == '\\'
			      ? read_escape(str_part(*text, at, text->size), character)
			      : 1;
	}
	const struct str name = plain_text(str_part(*text, 0, at), room);

	*text = str_part(*text, at, text->size);
	return number_of(name);
}

/* Read one part from *TEXT. False: it has something that is not understood. */
static bool take_part(struct str *text, struct part *part)
{
	bool any = false;

	if (text->size > 0 && text->data[0] == '*') {
		*text = str_part(*text, 1, text->size);
		any = true;
	} else {
		part->tag = take_name(text);
		any = part->tag != 0;
	}
	while (text->size > 0 && (text->data[0] == '.' || text->data[0] == '#')) {
		const bool is_id = text->data[0] == '#';
		uint64_t name;

		*text = str_part(*text, 1, text->size);
		name = take_name(text);
		if (name == 0 || (is_id && part->id != 0 && part->id != name) ||
		    (!is_id && part->class_count == PART_CLASSES))
			return false;
		if (is_id)
			part->id = name;
		else
			part->classes[part->class_count++] = name;
		any = true;
	}
	return any;
}

/* Read TEXT, which has no comments. False: it has something that is not understood. */
static bool read_selector(struct str text, struct selector *selector)
{
	text = str_trim(text);
	while (text.size > 0) {
		struct part part = {0};
		const size_t size = text.size;

		if (text.data[0] == '>' && selector->count > 0) {
			part.is_child = true;
			text = skip_blanks(str_part(text, 1, text.size));
		}
		if (selector->count == STYLE_PARTS || !take_part(&text, &part) ||
		    text.size == size)
			return false;
		if (text.size > 0 && !text_is_web_blank(text.data[0]) && text.data[0] != '>')
			return false;
		text = skip_blanks(text);
		selector->weight += (part.id != 0 ? 1U << 16 : 0) +
				    ((uint32_t)part.class_count << 8) + (part.tag != 0);
		selector->parts[selector->count++] = part;
	}
	return selector->count > 0;
}

static uint32_t *list_of(struct styles *styles, uint64_t name)
{
	return &styles->lists[name % LISTS];
}

static uint64_t key_of(const struct part *part)
{
	return part->id != 0           ? part->id
	       : part->class_count > 0 ? part->classes[0]
				       : part->tag;
}

static void keep_selector(struct styles *styles, const struct selector *selector)
{
	uint32_t *list = list_of(styles, key_of(&selector->parts[selector->count - 1]));

	if (styles->count == STYLE_SELECTORS) {
		styles->full = true;
		return;
	}
	styles->selectors = memory_more(styles->selectors, styles->count,
					sizeof(styles->selectors[0]));
	styles->selectors[styles->count] = *selector;
	styles->selectors[styles->count++].next = *list;
	*list = (uint32_t)styles->count;
}

/* Read a rule: its SELECTORS, and the declarations in its BLOCK. */
static void add_rule(struct styles *styles, struct str selectors, struct str block)
{
	const size_t first = styles->declaration_count;
	struct declaration declaration;
	char room[PLAIN_MAX];

	while (take_declaration(&block, &declaration)) {
		styles->declarations =
			memory_more(styles->declarations, styles->declaration_count,
				    sizeof(styles->declarations[0]));
		styles->declarations[styles->declaration_count++] = declaration;
	}
	while (selectors.size > 0 && styles->declaration_count > first) {
		const size_t end = find_end(selectors, ",");
		struct selector selector = {.order = styles->order++,
					    .first = (uint32_t)first,
					    .last = (uint32_t)styles->declaration_count};
		struct str text = str_part(selectors, 0, end), plain = {room, 0};

		/* Comments go; escapes stay, because "\." is no class. */
		for (size_t at = 0; at < text.size && plain.size < PLAIN_MAX;) {
			const size_t comment = comment_size(str_part(text, at, text.size));

			if (comment == 0)
				room[plain.size++] = text.data[at];
			at += comment > 0 ? comment : 1;
		}
		if (plain.size < PLAIN_MAX && read_selector(plain, &selector))
			keep_selector(styles, &selector);
		selectors = str_part(selectors, end + 1, selectors.size);
	}
}

/* Do the rules in the block behind HEAD ("@media screen") hold for a reader on a screen? */
static bool is_for_screens(struct str head)
{
	struct str rest;

	if (first_is(head, "@layer"))
		return true;
	if (!first_is(head, "@media"))
		return false;
	rest = str_trim(str_part(head, strlen("@media"), head.size));
	return rest.size == 0 || str_is_caseless(rest, "all") ||
	       str_is_caseless(rest, "screen") || str_is_caseless(rest, "only screen");
}

static struct str skip_comments(struct str text)
{
	for (;;) {
		size_t comment;

		text = skip_blanks(text);
		comment = comment_size(text);
		/* Marks that hide a sheet from browsers of the last century. */
		comment = comment == 0 && str_starts(text, STR("<!--"))  ? 4
			  : comment == 0 && str_starts(text, STR("-->")) ? 3
									 : comment;
		if (comment == 0)
			return text;
		text = str_part(text, comment, text.size);
	}
}

void style_add(struct styles *styles, struct str sheet)
{
	if (sheet.size > STYLE_BYTES - styles->bytes) {
		styles->full = true;
		sheet = str_part(sheet, 0, STYLE_BYTES - styles->bytes);
	}
	styles->bytes += sheet.size;
	while ((sheet = skip_comments(sheet)).size > 0) {
		const size_t end = find_end(sheet, "{;}");
		const struct str head = str_trim(str_part(sheet, 0, end));
		const bool has_block = end < sheet.size && sheet.data[end] == '{';
		const struct str rest = str_part(sheet, end + 1, sheet.size);
		size_t block;

		sheet = rest;
		if (!has_block)
			continue;
		/* The rules in such a block are read as those around it; its "}" then ends nothing. */
		if (is_for_screens(head))
			continue;
		block = find_end(rest, "}");
		sheet = str_part(rest, block + 1, rest.size);
		if (head.size > 0 && head.data[0] != '@')
			add_rule(styles, head, str_part(rest, 0, block));
	}
}

/* The look of an element. */

static bool part_fits(const struct part *part, const struct style_element *element)
{
	if ((part->tag != 0 && part->tag != element->tag) ||
	    (part->id != 0 && part->id != element->id))
		return false;
	for (size_t i = 0; i < part->class_count; i++) {
		bool found = false;

		for (size_t j = 0; j < element->class_count && !found; j++)
			found = part->classes[i] == element->classes[j];
		if (!found)
			return false;
	}
	return true;
}

static bool spend(struct styles *styles)
{
	if (styles->work == 0) {
		styles->full = true;
		return false;
	}
	styles->work--;
	return true;
}

/* Do the first COUNT parts of SELECTOR fit to elements around ELEMENT? */
static bool around_fits(struct styles *styles, const struct selector *selector,
			size_t count, const struct style_element *element)
{
	if (count == 0)
		return true;
	/* COUNT is the place of the part that fits already. */
	const bool is_child = selector->parts[count].is_child;

	for (element = element->parent; element != NULL && spend(styles);
	     element = element->parent) {
		if (part_fits(&selector->parts[count - 1], element) &&
		    around_fits(styles, selector, count - 1, element))
			return true;
		if (is_child)
			return false;
	}
	return false;
}

struct cascade {
	struct {
		uint32_t value;
		uint64_t rank;
	} won[PROPERTIES];
};

/* In ranks the weight of a selector and its order stand below these. */
#define RANK_IMPORTANT ((uint64_t)1 << 62)
#define RANK_OWN       ((uint64_t)1 << 61)

static void apply(struct cascade *cascade, const struct declaration *declaration,
		  uint64_t rank)
{
	rank |= declaration->important ? RANK_IMPORTANT : 0;
	if (cascade->won[declaration->property].value == VALUE_NONE ||
	    rank >= cascade->won[declaration->property].rank) {
		cascade->won[declaration->property].value = declaration->value;
		cascade->won[declaration->property].rank = rank;
	}
}

/* Apply the rules whose last part is listed under NAME, a name of ELEMENT. */
static void apply_list(struct styles *styles, const struct style_element *element,
		       uint64_t name, struct cascade *cascade)
{
	for (uint32_t at = *list_of(styles, name); at != 0 && spend(styles);
	     at = styles->selectors[at - 1].next) {
		const struct selector *selector = &styles->selectors[at - 1];
		const struct part *last = &selector->parts[selector->count - 1];

		if (key_of(last) != name || !part_fits(last, element) ||
		    !around_fits(styles, selector, selector->count - 1, element))
			continue;
		for (uint32_t i = selector->first; i < selector->last; i++)
			apply(cascade, &styles->declarations[i],
			      (uint64_t)selector->weight << 32 | selector->order);
	}
}

static bool is_set(const struct cascade *cascade, enum property property, uint32_t value)
{
	return cascade->won[property].value == value;
}

static bool hides(const struct cascade *cascade, enum property property)
{
	return is_set(cascade, property, VALUE_HIDES);
}

static bool is_hidden(const struct cascade *cascade)
{
	const bool is_placed = hides(cascade, PROPERTY_POSITION);
	const bool is_moved =
		is_placed || is_set(cascade, PROPERTY_POSITION, VALUE_RELATIVE);
	const bool has_no_room =
		hides(cascade, PROPERTY_WIDTH) || hides(cascade, PROPERTY_HEIGHT) ||
		hides(cascade, PROPERTY_MAX_WIDTH) || hides(cascade, PROPERTY_MAX_HEIGHT);

	return hides(cascade, PROPERTY_DISPLAY) || hides(cascade, PROPERTY_CONTENT) ||
	       hides(cascade, PROPERTY_OPACITY) || hides(cascade, PROPERTY_FILTER) ||
	       hides(cascade, PROPERTY_INDENT) || hides(cascade, PROPERTY_MARGIN_LEFT) ||
	       hides(cascade, PROPERTY_MARGIN_TOP) ||
	       hides(cascade, PROPERTY_TRANSFORM) || hides(cascade, PROPERTY_CLIP_PATH) ||
	       (is_placed && hides(cascade, PROPERTY_CLIP)) ||
	       (is_moved &&
		(hides(cascade, PROPERTY_LEFT) || hides(cascade, PROPERTY_RIGHT) ||
		 hides(cascade, PROPERTY_TOP) || hides(cascade, PROPERTY_BOTTOM))) ||
	       (has_no_room && hides(cascade, PROPERTY_OVERFLOW) &&
		!is_set(cascade, PROPERTY_PADDING, VALUE_OTHER));
}

enum { COLOURS_ALIKE = 8 }; /* of 255, for each of R, G and B */

static enum style_sight colour_sight(const struct cascade *cascade)
{
	const uint32_t text = cascade->won[PROPERTY_COLOUR].value;
	const uint32_t ground = cascade->won[PROPERTY_BACKGROUND].value;

	if (text == VALUE_NONE)
		return STYLE_INHERITED;
	if (text == VALUE_HIDES)
		return STYLE_UNSEEN;
	if (text < VALUE_COLOUR || ground < VALUE_COLOUR)
		return STYLE_SEEN;
	for (unsigned shift = 0; shift <= 16; shift += 8) {
		if (abs((int)(text >> shift & 255) - (int)(ground >> shift & 255)) >
		    COLOURS_ALIKE)
			return STYLE_SEEN;
	}
	return STYLE_UNSEEN;
}

static enum style_sight sight_of(const struct cascade *cascade, enum property property)
{
	const uint32_t value = cascade->won[property].value;

	return value == VALUE_HIDES   ? STYLE_UNSEEN
	       : value == VALUE_OTHER ? STYLE_SEEN
				      : STYLE_INHERITED;
}

/* Did a rule, and not the element itself, say one of the values that hide? */
static bool is_by_rule(const struct cascade *cascade)
{
	for (size_t i = 0; i < PROPERTIES; i++) {
		if ((cascade->won[i].value == VALUE_HIDES ||
		     (i == PROPERTY_COLOUR && cascade->won[i].value >= VALUE_COLOUR)) &&
		    (cascade->won[i].rank & RANK_OWN) == 0)
			return true;
	}
	return false;
}

struct style_look style_look(struct styles *styles, const struct style_element *element,
			     struct str own)
{
	struct cascade cascade = {0};
	struct declaration declaration;
	struct style_look look;

	if (styles->count > 0) {
		apply_list(styles, element, 0, &cascade);
		if (element->tag != 0)
			apply_list(styles, element, element->tag, &cascade);
		if (element->id != 0)
			apply_list(styles, element, element->id, &cascade);
		for (size_t i = 0; i < element->class_count; i++)
			apply_list(styles, element, element->classes[i], &cascade);
	}
	while (take_declaration(&own, &declaration))
		apply(&cascade, &declaration, RANK_OWN);
	look = (struct style_look){
		.hidden = is_hidden(&cascade),
		.visibility = sight_of(&cascade, PROPERTY_VISIBILITY),
		.size = sight_of(&cascade, PROPERTY_FONT_SIZE),
		.colour = colour_sight(&cascade),
	};
	look.by_rule = (look.hidden || look.visibility == STYLE_UNSEEN ||
			look.size == STYLE_UNSEEN || look.colour == STYLE_UNSEEN) &&
		       is_by_rule(&cascade);
	return look;
}

void style_name(struct style_element *element, struct str tag, struct str id,
		struct str classes, const struct style_element *parent)
{
	*element = (struct style_element){.tag = number_of(tag),
					  .id = number_of(id),
					  .parent = parent};
	while (element->class_count < STYLE_CLASSES &&
	       (classes = skip_blanks(classes)).size > 0) {
		size_t end = 0;

		while (end < classes.size && !text_is_web_blank(classes.data[end]))
			end++;
		element->classes[element->class_count++] =
			number_of(str_part(classes, 0, end));
		classes = str_part(classes, end, classes.size);
	}
}

bool style_is_full(const struct styles *styles)
{
	return styles->full;
}

struct styles *style_new(void)
{
	struct styles *styles = memory_alloc(sizeof(*styles));

	*styles = (struct styles){.work = STYLE_WORK};
	return styles;
}

void style_free(struct styles *styles)
{
	if (styles == NULL)
		return;
	free(styles->selectors);
	free(styles->declarations);
	free(styles);
}
