/*
 * value: a JSON value (RFC 8259, strict: UTF-8 checked, no duplicate keys, no NaN,
 * nothing after the end). Values have counted references: a caller that gets a value by
 * `value_new_…`, `value_parse` or `value_ref` frees it; members and items are borrowed
 * from their container. Only value.c knows the JSON library.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct value;

enum value_kind {
	VALUE_NULL,
	VALUE_BOOLEAN,
	VALUE_INTEGER,
	VALUE_REAL,
	VALUE_STRING,
	VALUE_ARRAY,
	VALUE_OBJECT,
};

enum value_flags {
	/* allow // and block comments and trailing commas (configuration) */
	VALUE_COMMENTS = 1,
	/*
	 * blank a code fence and trailing commas (a model's text); includes
	 * VALUE_HALVES
	 */
	VALUE_REPAIR = 2,
	VALUE_PRETTY = 4, /* value_print: indent by two */
	VALUE_SORTED = 8, /* value_print: keys sorted */
	/*
	 * half of an escaped surrogate pair becomes U+FFFD: the text was cut inside a
	 * character
	 */
	VALUE_HALVES = 16,
	/*
	 * an integer of more than 64 bits becomes a real: some programs know only reals
	 */
	VALUE_WIDE = 32,
	/*
	 * a text that is only searched; includes VALUE_HALVES and VALUE_WIDE, and a number that
	 * is too large for a real becomes 1e308
	 */
	VALUE_SEARCHED = 64,
	/* of members with one name the last one holds, as in most other programs */
	VALUE_LAST = 128,
};

/*
 * Limits of nesting, of a text, and of values. A value of two bytes of text takes a
 * hundred bytes of memory.
 */
enum { VALUE_DEPTH_MAX = 128, VALUE_TEXT_MAX = 64 << 20, VALUE_PARTS_MAX = 2 << 20 };

/*
 * Call this once at the start of our programs: when there is no memory for a value, the
 * process ends, as everywhere. By default the JSON library loses a byte of a text when
 * memory is short.
 */
void value_own_memory(void);

/* On failure ERR gives line, column and the text found there, and *VALUE is unchanged. */
bool value_parse(struct str text, unsigned flags, struct value **value, struct err *err);

void value_free(struct value *value); /* NULL is allowed */
/* Overwrite all texts in VALUE, which nobody reads any more. NULL is allowed. */
void value_wipe(const struct value *value);
/*
 * Return VALUE with one more owner, who must not change anything that other owners see.
 * NULL for NULL.
 */
struct value *value_ref(const struct value *value);
void value_auto_free(struct value **value);
#define auto_value __attribute__((cleanup(value_auto_free)))

enum value_kind value_kind(const struct value *value); /* NULL pointer: VALUE_NULL */
const char *value_kind_name(enum value_kind kind);     /* "string", "integer", … */

/* Readers. For a value of the wrong kind, and for NULL, they return an empty result. */
const char *value_text(const struct value *value); /* NULL unless a string */
struct str value_str(const struct value *value); /* empty unless a string; may hold NUL */
/* Is TEXT one of the texts in ARRAY (or NULL)? */
bool value_has_text(const struct value *array, const char *text);
int64_t value_integer(const struct value *value); /* a real is cut toward zero */
double value_number(const struct value *value);
bool value_is_true(const struct value *value);
bool value_is_number(const struct value *value);
/* 1 equals 1.0 (JSON Schema) */
bool value_equal(const struct value *a, const struct value *b);

size_t value_count(const struct value *value);                     /* items or members */
struct value *value_item(const struct value *array, size_t index); /* NULL past the end */
/* NULL if absent */
struct value *value_member(const struct value *object, const char *key);

/* The part of VALUE at the JSON pointer POINTER (RFC 6901); NULL when there is none. */
struct value *value_at_pointer(struct value *value, const char *pointer);
/*
 * Put TAKE_PART at POINTER, which begins with '/'. Objects on the way are made. False when
 * the way leads through anything else; VALUE may have changed then.
 */
bool value_set_at(struct value *value, const char *pointer, struct value *take_part);

/*
 * Members in the order of the text:
 *   for (void *at = value_first(object); at; at = value_next(object, at))
 *           use(value_key(at), value_at(at));
 */
void *value_first(const struct value *object);
void *value_next(const struct value *object, void *at);
const char *value_key(void *at);
struct value *value_at(void *at);

/* Builders. `take_…` arguments move into the container. */
struct value *value_new_object(void);
struct value *value_new_array(void);
/* invalid UTF-8 becomes U+FFFD; NULL: null */
struct value *value_new_text(const char *text);
struct value *value_new_str(struct str text); /* invalid UTF-8 becomes U+FFFD */
/* An array of the NULL-ended TEXTS. */
struct value *value_new_texts(const char *const *texts);
struct value *value_new_integer(int64_t number);
struct value *value_new_real(double number); /* NaN and infinities become null */
struct value *value_new_boolean(bool truth);
struct value *value_new_null(void);
struct value *value_copy(const struct value *value); /* deep */

void value_set(struct value *object, const char *key, struct value *take_value);
/* Set copies of those members of FROM that NAMES (NULL-ended) lists and FROM has. */
void value_set_members(struct value *object, const struct value *from,
		       const char *const *names);
void value_set_text(struct value *object, const char *key, const char *text);
void value_set_str(struct value *object, const char *key, struct str text);
void value_set_integer(struct value *object, const char *key, int64_t number);
void value_set_real(struct value *object, const char *key, double number);
void value_set_boolean(struct value *object, const char *key, bool truth);
void value_remove(struct value *object, const char *key);
void value_append(struct value *array, struct value *take_value);

/* Append VALUE as JSON text. False when BUF is full. */
bool value_print(const struct value *value, unsigned flags, struct buf *buf);

/*
 * Append TEXT as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. Control
 * characters are escaped, also U+0080 to U+009F, because a terminal obeys them.
 */
bool value_quote(struct str text, struct buf *buf);

/*
 * The grammar of JSON (RFC 8259) for value.c: which parts may be blanked out before
 * parsing, how deeply a text is nested, and a sentence about the first error.
 */

/* Append TEXT with U+FFFD in place of each byte that is not UTF-8. */
bool value_syntax_mend(struct str text, struct buf *out);
