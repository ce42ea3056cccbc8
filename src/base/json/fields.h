/*
 * fields: one table says how a struct stands as a JSON object. The table prints the struct
 * and reads it back, so that the two cannot differ. A row is one member: its name in the
 * object, its kind, its place in the struct, and what a reader accepts. A table ends with
 * {0}:
 *
 *	static const struct field root_fields[] = {
 *		FIELD_PATH(struct guard_root, path, "path"),
 *		FIELD_CHOICE(struct guard_root, walk, "walk", walk_names),
 *		{0},
 *	};
 *	static const struct field guard_fields[] = {
 *		FIELD(struct guard, earlier),
 *		FIELD_LIST(struct guard, roots, root_count, "roots", root_fields),
 *		{0},
 *	};
 *
 * The objects come from other processes and from files, and are not trusted. A member that
 * is missing, of another kind, out of its bounds, too large for its place, or a C string with
 * a NUL byte is an error that names the place (roots: 2: walk) and the fault. It leaves the
 * struct's member as it is, and a list empty. Members that no row names are left alone. The other rows are read
 * all the same, so that a caller that can do with less takes the rest.
 *
 * Texts of the kind FIELD_TEXT, and values, are borrowed from the object. All that a
 * reader makes (copies, lists) comes from its arena; without one the struct owns it, and
 * fields_free frees it.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_kind {
	FIELD_IS_TEXT = 1, /* const char *: borrowed */
	FIELD_IS_COPY,     /* char * */
	FIELD_IS_PATH, /* char *: bytes; a text of the form of path_key in the object */
	FIELD_IS_STR,  /* struct str: borrowed */
	FIELD_IS_INTEGER, /* int, int64_t */
	/*
	 * unsigned integers of any size, and enums; one of 64 bits goes as the int64_t of the
	 * same bits
	 */
	FIELD_IS_NATURAL,
	FIELD_IS_REAL,    /* double */
	FIELD_IS_FLAG,    /* bool */
	FIELD_IS_CHOICE,  /* an enum that counts from 0: in words, `choices` */
	FIELD_IS_NUMBERS, /* an array of naturals in the struct, and how many there are */
	FIELD_IS_TEXTS,   /* const char **: borrowed texts, NULL-ended, and how many */
	FIELD_IS_PATHS,   /* char **: paths as of FIELD_IS_PATH, and how many */
	FIELD_IS_LIST,    /* a pointer to structs with `rows`, and how many there are */
	FIELD_IS_OBJECT,  /* a struct with `rows` */
	FIELD_IS_VALUE,   /* struct value *: borrowed */
};

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset, size;
	/*
	 * The object may lack the member, which then stays as it is. It is not printed when
	 * it is 0, false, empty or NULL.
	 */
	bool optional;
	/* of a number, the bytes of a text, the items of a list; max 0: there are none */
	int64_t min, max;
	const char *const *choices;
	size_t choice_count;
	const struct field *rows;
	size_t item_size, count_offset;
	const void *initial; /* an item of a list before it is read; NULL: all zero */
};

/* Whole lists and arrays; further arguments are members of struct field by name. */
#define FIELD_SIZE(type, member) sizeof(((type *)NULL)->member)
#define FIELD_AS(type, member, as, what, ...)                                   \
	{                                                                       \
		.name = (as), .kind = (what), .offset = offsetof(type, member), \
		.size = FIELD_SIZE(type, member), __VA_ARGS__                   \
	}
#define FIELD_KIND(member) \
	_Generic((member),                   \
	const char *: FIELD_IS_TEXT,         \
	char *: FIELD_IS_COPY,               \
	struct str: FIELD_IS_STR,            \
	int: FIELD_IS_INTEGER,               \
	int64_t: FIELD_IS_INTEGER,           \
	unsigned: FIELD_IS_NATURAL,          \
	uint64_t: FIELD_IS_NATURAL,          \
	double: FIELD_IS_REAL,               \
	bool: FIELD_IS_FLAG,                 \
	struct value *: FIELD_IS_VALUE,      \
	const struct value *: FIELD_IS_VALUE)
/* A member whose name and kind are those of the struct's. */
#define FIELD(type, member, ...) \
	FIELD_AS(type, member, #member, FIELD_KIND(((type *)NULL)->member), __VA_ARGS__)
#define FIELD_NAMED(type, member, as, ...) \
	FIELD_AS(type, member, as, FIELD_KIND(((type *)NULL)->member), __VA_ARGS__)
#define FIELD_PATH(type, member, as, ...) \
	FIELD_AS(type, member, as, FIELD_IS_PATH, __VA_ARGS__)
#define FIELD_CHOICE(type, member, as, words, ...)                      \
	FIELD_AS(type, member, as, FIELD_IS_CHOICE, .choices = (words), \
		 .choice_count = sizeof(words) / sizeof((words)[0]), __VA_ARGS__)
#define FIELD_COUNTED(type, member, count, ...)         \
	.item_size = sizeof(((type *)NULL)->member[0]), \
	.count_offset = offsetof(type, count), __VA_ARGS__
#define FIELD_NUMBERS(type, member, count, as, ...)  \
	FIELD_AS(type, member, as, FIELD_IS_NUMBERS, \
		 FIELD_COUNTED(type, member, count, __VA_ARGS__))
#define FIELD_TEXTS(type, member, count, as, ...)  \
	FIELD_AS(type, member, as, FIELD_IS_TEXTS, \
		 FIELD_COUNTED(type, member, count, __VA_ARGS__))
#define FIELD_PATHS(type, member, count, as, ...)  \
	FIELD_AS(type, member, as, FIELD_IS_PATHS, \
		 FIELD_COUNTED(type, member, count, __VA_ARGS__))
#define FIELD_LIST(type, member, count, as, of, ...)            \
	FIELD_AS(type, member, as, FIELD_IS_LIST, .rows = (of), \
		 FIELD_COUNTED(type, member, count, __VA_ARGS__))
/* The rows of OF, whose offsets are those in TYPE, as an object of their own. */
#define FIELD_GROUP(as, of, ...)                                                 \
	{                                                                        \
		.name = (as), .kind = FIELD_IS_OBJECT, .rows = (of), __VA_ARGS__ \
	}

/* An object with the members of the struct at FROM. */
struct value *fields_print(const struct field *fields, const void *from);
/* Put these members into OBJECT. */
void fields_set(struct value *object, const struct field *fields, const void *from);
/*
 * Set the members of the struct at TO from OBJECT, with memory of ARENA or, when it is NULL,
 * of the struct's own. False: some member of OBJECT does not fit, and ERR (may be NULL)
 * names the first.
 */
bool fields_read(const struct value *object, const struct field *fields, void *to,
		 struct arena *arena, struct err *err);
/* Free what fields_read has made without an arena in the struct at OF, and forget it. */
void fields_free(const struct field *fields, void *of);
