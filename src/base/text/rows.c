/* rows: checks a value by recursion over rows, and remembers the way in a chain. */

#include "base/text/rows.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A longer word is no slip of a name. */
enum { SLIP_MAX = 64 };

/* From this number on a double is whole, and a JSON library may have made it of one. */
#define WHOLES_BEGIN 0x1p53

/* The problem. */

/* Append to TEXT the JSON pointer (RFC 6901) of AT. */
static void add_pointer(struct buf *text, const struct rows_place *at)
{
	if (!at)
		return;
	add_pointer(text, at->above);
	(void)buf_addc(text, '/');
	if (!at->key)
		(void)buf_addf(text, "%zu", at->index);
	for (const char *c = at->key ? at->key : ""; *c && text->size < ROWS_POINTER_MAX;
	     c++) {
		if (*c == '~' || *c == '/')
			(void)buf_addf(text, "~%c", *c == '~' ? '0' : '1');
		else
			(void)buf_addc(text, *c);
	}
}

/* Add the way to AT to the pointer of PROBLEM. A long pointer is cut. */
static void rows_point(struct rows_problem *problem, const struct rows_place *at)
{
	struct buf text;
	size_t size;

	buf_init(&text, (size_t)4 * ROWS_POINTER_MAX);
	(void)buf_adds(&text, problem->pointer);
	add_pointer(&text, at);
	size = text_character_border(buf_str(&text), ROWS_POINTER_MAX - 1);
	memcpy(problem->pointer, text.data, size);
	problem->pointer[size] = '\0';
	buf_fini(&text);
}

/* The value that is looked at, and the row that it has to fit. */
struct look {
	const struct row *row;
	const struct value *value;
	const struct rows_place *at;
	struct rows_problem *problem; /* or NULL */
};

/* Fill the problem. Always false. */
static bool wrong(const struct look *look, enum rows_fault fault)
{
	if (!look->problem)
		return false;
	*look->problem = (struct rows_problem){.fault = fault,
					       .row = look->row,
					       .value = look->value};
	rows_point(look->problem, look->at);
	return false;
}

static bool is_kind(const struct look *look, enum value_kind wanted)
{
	if (value_kind(look->value) == wanted)
		return true;
	(void)wrong(look, ROWS_KIND);
	if (look->problem)
		look->problem->wanted = wanted;
	return false;
}

bool rows_refuse(struct rows_problem *problem, const struct rows_place *below,
		 const char *format, ...)
{
	va_list arguments;

	rows_point(problem, below);
	va_start(arguments, format);
	(void)vsnprintf(problem->why.text, sizeof(problem->why.text), format, arguments);
	va_end(arguments);
	return false;
}

/* Values without parts. */

static bool is_bounded(const struct row *row)
{
	return row->max > row->min;
}

/* Has the value, whose size is SIZE, LEAST to MOST characters, bytes or parts? */
static bool is_sized(const struct look *look, size_t size, double least, double most)
{
	const bool below = (double)size < least;

	if (!below && (double)size <= most)
		return true;
	(void)wrong(look, !below ? ROWS_ABOVE : size > 0 ? ROWS_BELOW : ROWS_EMPTY);
	if (look->problem) {
		look->problem->bound = below ? least : most;
		look->problem->size = size;
	}
	return false;
}

/* The same by the bounds of the row. */
static bool is_in_bounds(const struct look *look, size_t size)
{
	return !is_bounded(look->row) ||
	       is_sized(look, size, look->row->min, look->row->max);
}

/* Is the value a text without NUL, of LEAST to MOST bytes? */
static bool is_bytes(const struct look *look, double least, double most)
{
	struct str text = value_str(look->value);

	if (!is_kind(look, VALUE_STRING))
		return false;
	if (text.size && memchr(text.data, '\0', text.size))
		return wrong(look, ROWS_NUL);
	return is_sized(look, text.size, least, most);
}

static bool is_text(const struct look *look)
{
	struct str text = value_str(look->value);
	/* There are at most as many characters as bytes: most texts need no count. */
	const bool counts = look->row->min > 1 || (double)text.size > look->row->max;
	size_t size = counts ? 0 : text.size;

	for (size_t i = 0; counts && i < text.size; i++)
		size += ((unsigned char)text.data[i] & 0xc0) != 0x80;
	return is_kind(look, VALUE_STRING) && is_in_bounds(look, size);
}

static bool is_choice(const struct look *look)
{
	return is_kind(look, VALUE_STRING) &&
	       (str_among(look->row->choices, value_str(look->value)) ||
		wrong(look, ROWS_CHOICE));
}

static bool is_number(const struct look *look)
{
	const struct row *row = look->row;
	const bool whole = row->kind != ROW_NUMBER && row->kind != ROW_SECONDS;
	const double number = value_number(look->value);
	double least = is_bounded(row) ? row->min : -DBL_MAX;
	bool below;

	if (value_kind(look->value) != VALUE_INTEGER &&
	    (!whole || fabs(number) < WHOLES_BEGIN) &&
	    !is_kind(look, whole ? VALUE_INTEGER : VALUE_REAL))
		return false;
	if (!is_bounded(row) && (row->kind == ROW_COUNT || row->kind == ROW_ID))
		least = 0;
	below = number < least || (row->kind == ROW_SECONDS && number <= 0);
	if (!below && !(is_bounded(row) && number > row->max))
		return true;
	(void)wrong(look, below ? ROWS_BELOW : ROWS_ABOVE);
	if (look->problem)
		look->problem->bound = below ? least : row->max;
	return false;
}

/* Objects and lists. */

const struct row *rows_find(const struct row *table, const char *name)
{
	for (const struct row *row = table; row && row->name; row++) {
		if (strcmp(row->name, name) == 0)
			return row;
	}
	return NULL;
}

static bool refuse_unknown(const struct look *look, const char *key)
{
	const struct row *rows = look->row->rows;
	size_t count = 0;

	(void)wrong(look, ROWS_UNKNOWN);
	if (!look->problem)
		return false;
	while (rows && rows[count].name)
		count++;
	auto_free const char **names = memory_array(count + 1, sizeof(*names));
	for (size_t i = 0; i < count; i++)
		names[i] = rows[i].name;
	look->problem->key = key;
	look->problem->nearest = strlen(key) < SLIP_MAX ? text_nearest(key, names) : NULL;
	return false;
}

static bool fits(const struct look *look);

/* Is the value an object with the rows of its row? */
static bool is_object(const struct look *look)
{
	const struct value *object = look->value;

	if (!is_kind(look, VALUE_OBJECT))
		return false;
	for (void *at = value_first(object); at; at = value_next(object, at)) {
		const struct rows_place place = {look->at, value_key(at), 0};
		const struct row *row = rows_find(look->row->rows, place.key);

		if (!row)
			return refuse_unknown(look, place.key);
		if (!fits(&(struct look){row, value_at(at), &place, look->problem}))
			return false;
	}
	for (const struct row *row = look->row->rows; row && row->name; row++) {
		if (row->required && !value_member(object, row->name))
			return wrong(&(struct look){row, object, look->at, look->problem},
				     ROWS_MISSING);
	}
	return true;
}

/* Is the value a text, as in a list of names, or an object with the rows of its row? */
static bool is_either(const struct look *look)
{
	if (value_kind(look->value) != VALUE_STRING)
		return is_object(look);
	return look->row->choices ? is_choice(look) : is_bytes(look, 1, look->row->max);
}

/* Does the value fit as an item or a member of the list or object that its row is about? */
static bool is_part(const struct look *look)
{
	switch (look->row->kind) {
	case ROW_LIST:
	case ROW_OBJECTS:
	case ROW_ENTRIES:
		return is_object(look);
	case ROW_SOURCES:
	case ROW_CHECKS:
		return is_either(look);
	case ROW_TEXTS:
	case ROW_ARGV:
		return is_bytes(look, 0, DBL_MAX);
	default:
		return is_bytes(look, 1, look->row->max) &&
		       (!look->row->choices || is_choice(look));
	}
}

/* Is the value a list of parts? BOUNDED: the bounds of its row are those of the list. */
static bool is_list(const struct look *look, bool bounded)
{
	const size_t count = value_count(look->value);

	if (!is_kind(look, VALUE_ARRAY) ||
	    !(bounded ? is_in_bounds(look, count)
		      : is_sized(look, count, 0, ROWS_ITEMS_MAX)))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct rows_place place = {look->at, NULL, i};

		if (!is_part(&(struct look){look->row, value_item(look->value, i), &place,
					    look->problem}))
			return false;
	}
	return true;
}

/* Is the value an object of parts under any names? */
static bool is_map(const struct look *look)
{
	if (!is_kind(look, VALUE_OBJECT) || (look->row->kind == ROW_ENTRIES &&
					     !is_in_bounds(look, value_count(look->value))))
		return false;
	for (void *at = value_first(look->value); at; at = value_next(look->value, at)) {
		const struct rows_place place = {look->at, value_key(at), 0};

		if (!is_part(&(struct look){look->row, value_at(at), &place, look->problem}))
			return false;
	}
	return true;
}

static bool fits_kind(const struct look *look)
{
	switch (look->row->kind) {
	case ROW_ANY:
	case ROW_SIZE:
		return true;
	case ROW_TEXT:
	case ROW_COMMAND:
		return is_text(look);
	case ROW_BYTES:
		return is_bytes(look, 0, is_bounded(look->row) ? look->row->max : DBL_MAX);
	case ROW_PATH:
	case ROW_FOLDER:
	case ROW_ADDRESS:
		return is_bytes(look, 1, is_bounded(look->row) ? look->row->max : DBL_MAX);
	case ROW_CHOICE:
		return is_choice(look);
	case ROW_FLAG:
		return is_kind(look, VALUE_BOOLEAN);
	case ROW_INTEGER:
	case ROW_COUNT:
	case ROW_ID:
	case ROW_NUMBER:
	case ROW_SECONDS:
		return is_number(look);
	case ROW_TEXTS:
	case ROW_ARGV:
	case ROW_LIST:
		return is_list(look, true);
	case ROW_NAMES:
	case ROW_WORDS:
	case ROW_PATHS:
	case ROW_HOSTS:
	case ROW_VARIABLES:
	case ROW_SOURCES:
		return is_list(look, false);
	case ROW_OBJECT:
		return is_object(look);
	case ROW_OBJECTS:
		return value_kind(look->value) == VALUE_ARRAY ? is_list(look, true)
							      : is_object(look);
	case ROW_EITHER:
	case ROW_SECRETS:
		return is_either(look);
	case ROW_VALUES:
		return is_kind(look, VALUE_OBJECT);
	case ROW_ENTRIES:
	case ROW_CHECKS:
		return is_map(look);
	}
	return false;
}

static bool fits(const struct look *look)
{
	struct rows_problem unwanted;
	struct look inner = *look;

	if (!fits_kind(look))
		return false;
	if (!look->row->check)
		return true;
	/* The function finds the place of the value in the problem, and adds to it. */
	inner.problem = look->problem ? look->problem : &unwanted;
	(void)wrong(&inner, ROWS_OTHER);
	return look->row->check(look->row, look->value, inner.problem);
}

bool rows_check(const struct row *row, const struct value *value,
		struct rows_problem *problem)
{
	return fits(&(struct look){row, value, NULL, problem});
}
