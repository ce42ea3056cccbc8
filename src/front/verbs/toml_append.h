/*
 * toml_append: checks whether one more table may be appended to another program's
 * settings in TOML. The text is only parsed as far as this check needs.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

enum toml_answer {
	TOML_FREE,     /* the table may be appended */
	TOML_IS_THERE, /* the table, or a key of it, is in the text */
	TOML_REFUSED,  /* ERR names the line and the reason */
};

/* May the table [GROUP.NAME] be appended to TEXT? */
enum toml_answer toml_look(struct str text, const char *group, const char *name,
			   struct err *err);
