/*
 * rows: checks a JSON value against a table of rows, and names the first part that does
 * not fit. A row is one member of an object: its name, its kind, its bounds, its choices,
 * and the rows of the objects in it. A table ends with {0}. The parameters of a tool, the
 * keys of the configuration, the script of a replay and the servers of a configuration
 * are such tables:
 *
 *	static const struct row range_rows[] = {
 *		{"path", ROW_PATH, true, "File to read"},
 *		{"lines", ROW_COUNT, false, "Most lines", .min = 1, .max = 100},
 *		{0},
 *	};
 *	static const struct row range = {.kind = ROW_OBJECT, .rows = range_rows};
 *
 * rows_check changes nothing and makes no sentence. It tells what is wrong (enum
 * rows_fault), where (a JSON pointer), the row, the value that was found, and the nearest
 * name where a name is wrong. The user of a table makes the sentence from that, because a
 * model, a person who configures and the author of a script read different words.
 *
 * The members of an object are checked in the order of the value, and its required members
 * after them in the order of the table. A grammar that no kind has (a host, a size) is a
 * function of the row, `check`, which is called when the kind fits and which refuses with
 * rows_refuse.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

/* Most items of the lists whose `max` bounds an item. People write them by hand. */
enum { ROWS_ITEMS_MAX = 1024, ROWS_POINTER_MAX = 512 };

/*
 * Kinds in one group are checked alike. They are told apart by the users of a table: a
 * path is judged, a host is reached. Bounds hold when `max` is more than `min`.
 */
enum row_kind {
	ROW_ANY = 1, /* any value, which `check` judges */
	ROW_SIZE,    /* the same: bytes, or a text like "512M" */

	ROW_TEXT, /* a text; bounds are those of its characters */
	ROW_COMMAND,

	/* a text without NUL, of at most `max` bytes */
	ROW_BYTES,
	ROW_PATH, /* this one and the next two are not empty */
	ROW_FOLDER,
	ROW_ADDRESS,

	ROW_CHOICE, /* a text that is one of `choices` */
	ROW_FLAG,   /* true or false */

	ROW_INTEGER, /* a whole number */
	ROW_COUNT,   /* this one and the next: at least 0 unless there are bounds */
	ROW_ID,      /* the number is a name: nothing replaces it by another one */
	ROW_NUMBER,
	ROW_SECONDS, /* more than 0 */

	ROW_TEXTS, /* a list of texts without NUL; bounds are those of its items */
	ROW_ARGV,

	/*
	 * a list of at most ROWS_ITEMS_MAX texts, each of 1 to `max` bytes without NUL, and
	 * one of `choices` unless these are NULL
	 */
	ROW_NAMES,
	ROW_WORDS,
	ROW_PATHS,
	ROW_HOSTS,
	ROW_VARIABLES,

	ROW_LIST,    /* a list of objects with `rows`; bounds are those of its items */
	ROW_OBJECT,  /* an object with `rows` */
	ROW_OBJECTS, /* the same, or a list of 1 to `max` of them */
	ROW_VALUES,  /* an object with any members */
	/* a text, as in ROW_NAMES, or an object with `rows` */
	ROW_EITHER,
	ROW_SECRETS, /* the same; only its place differs */
	ROW_SOURCES, /* a list of at most ROWS_ITEMS_MAX values as of ROW_EITHER */
	ROW_ENTRIES, /* an object: any name -> object with `rows`; bounds are of its members */
	ROW_CHECKS, /* an object: any name -> value as of ROW_EITHER */
};

struct rows_problem;

/* The first four members are written by position, the rest by name. */
struct row {
	const char *name;
	enum row_kind kind;
	bool required;
	const char *description; /* for a model, or for the manual */
	/* other accepted names, separated by blanks; never shown, and unknown to rows_check */
	const char *aliases;
	const char *choices; /* separated by blanks */
	const char *initial; /* the default, as the user of the table writes it; or NULL */
	double min, max;
	const struct row *rows;
	/* Is VALUE, whose kind fits ROW, sound? False after rows_refuse. Or NULL. */
	bool (*check)(const struct row *row, const struct value *value,
		      struct rows_problem *problem);
	/* for a tool: marks in the text become bytes (tool/mask.h); unknown to rows_check */
	enum row_unmasks { UNMASKS_NOT, UNMASKS, UNMASKS_PATTERN } unmasks;
	/* where the user of the table stores the value; unknown to rows_check */
	int home;
	size_t offset;
};

enum rows_fault {
	ROWS_KIND = 1, /* the value is not of the `wanted` kind */
	ROWS_UNKNOWN,  /* the object has the member `key`, which no row has */
	ROWS_MISSING,  /* the object lacks the member of `row` */
	ROWS_EMPTY,    /* a text or a list has nothing in it */
	ROWS_BELOW,    /* a number, or the size of a text or list, is below `bound` */
	ROWS_ABOVE,
	ROWS_NUL,    /* a text has a NUL */
	ROWS_CHOICE, /* a text is none of the row's choices */
	ROWS_OTHER,  /* `check` of the row has refused; `why` says why */
};

/* All pointers are borrowed from the table and from the value. */
struct rows_problem {
	enum rows_fault fault;
	/* of the value; of the object for ROWS_UNKNOWN and ROWS_MISSING; "": the whole */
	char pointer[ROWS_POINTER_MAX];
	/* the row of the value, of the list that it is an item of, or of the object */
	const struct row *row;
	const struct value *value;
	enum value_kind wanted;
	double bound;
	size_t size; /* of a text (characters or bytes) or list that is outside its bounds */
	const char *key;
	const char *nearest; /* the name that was probably meant in place of `key`, or NULL */
	struct err why;
};

/* A place in the value, below another one (NULL: the whole value). */
struct rows_place {
	const struct rows_place *above;
	const char *key; /* NULL: an item */
	size_t index;
};

/*
 * Does VALUE fit ROW, whose name does not matter? If not, PROBLEM (NULL: only the answer
 * matters) gets the first part that does not fit.
 */
bool rows_check(const struct row *row, const struct value *value,
		struct rows_problem *problem);

/* The row of TABLE with NAME, or NULL. */
const struct row *rows_find(const struct row *table, const char *name);

/*
 * For `check` of a row: refuse the value, or the part of it at BELOW (or NULL), with a
 * sentence that continues its pointer. Always false.
 */
bool rows_refuse(struct rows_problem *problem, const struct rows_place *below,
		 const char *format, ...) __attribute__((format(printf, 3, 4)));
