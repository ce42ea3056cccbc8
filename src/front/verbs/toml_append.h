/*
 * toml_append: one table more at the end of somebody's settings in TOML. The text is not
 * understood as a whole, only as far as it must be to know that a table may follow it.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

enum toml_answer {
	TOML_FREE,     /* the table may be appended */
	TOML_IS_THERE, /* it, or a key of it, is in the text */
	TOML_REFUSED,  /* ERR names the line and what is in the way */
};

/* May the table [GROUP.NAME] be appended to TEXT? */
enum toml_answer toml_look(struct str text, const char *group, const char *name,
			   struct err *err);
