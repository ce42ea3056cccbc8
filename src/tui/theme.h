/*
 * theme: the colours of texts on a terminal, by the role of a text. `dark` and `light` are made for
 * terminals with such a ground, `plain` uses bold and dim text alone. A person writes their own one
 * in the file themes/NAME.json of the configuration's folder:
 *
 *	{"base": "light", "error": "bold red", "added": "#2e7d32"}
 *
 * A value is any of the words bold, dim, italic, underline, and at most one colour: none, black,
 * red, green, yellow, blue, magenta, cyan, white, bright_black to bright_white, or #rrggbb. The
 * roles that are not named are those of the base, which is `dark` unless given.
 *
 * A terminal that does not know colours by their parts (COLORTERM) gets the nearest of its sixteen.
 * A theme never changes once it is made, so every thread may read it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

/* The roles, which are the styles of paint.h. Their names stand in the table of theme.c. */
enum paint_style {
	PAINT_PLAIN, /* the terminal's own colours, in every theme */
	PAINT_BOLD,
	PAINT_DIM,
	PAINT_ERROR,
	PAINT_GOOD,
	PAINT_WARNING,
	PAINT_ADDED,   /* lines of a diff */
	PAINT_REMOVED, /* likewise */
	PAINT_HUNK,    /* the place of a part of a diff */
	PAINT_CHANGED, /* words of such lines that differ, beside the colour of the line */
	PAINT_EMPHASIS,
	PAINT_CODE, /* in the words of a model */
	PAINT_KEYWORD,
	PAINT_STRING,
	PAINT_COMMENT,
	PAINT_NUMBER,
	PAINT_STYLES
};

enum {
	THEME_CODE_MAX = 40, /* "1;2;3;4;38;2;255;255;255" */
	THEME_FILE_MAX = 16 << 10,
};

struct theme {
	char codes[PAINT_STYLES][THEME_CODE_MAX]; /* between "ESC [" and "m"; "": nothing */
};

/* The theme NAME of the program. RGB: the terminal knows colours by their parts. NULL: none. */
const struct theme *theme_shipped(const char *name, bool rgb);
/* The names of these, with blanks between them. */
extern const char theme_names[];

/* Does the environment say that the terminal knows colours by their parts? */
bool theme_has_rgb(void);

/* Read a theme from TEXT, JSON with comments. ERR says what does not fit. */
bool theme_parse(struct str text, bool rgb, struct theme *theme, struct err *err);
