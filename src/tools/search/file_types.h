/* file_types: kinds of source files by name ("c", "python"), each a few name patterns. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

struct file_type {
	const char *names;    /* blank-separated, the usual one first */
	const char *patterns; /* blank-separated */
};

/* NULL: unknown. A leading dot is passed over. */
const struct file_type *file_type_find(const char *name);
bool file_type_fits(const struct file_type *type, struct str file_name);

/* For a refusal: what is nearest to NAME, or NULL. */
const struct file_type *file_type_nearest(const char *name);
/* Append the usual name of TYPE, or of all types, ", " between. */
void file_type_add_name(const struct file_type *type, struct buf *out);
void file_type_add_all(struct buf *out);
