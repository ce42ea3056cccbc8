/*
 * plugin_source: the entries of `plugins` in a configuration, in all their forms, and the
 * placeholders of its texts.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>

/* Where placeholders get their values. */
struct plugin_places {
	const char *config_dir;         /* CONFIG_DIR, and where relative paths begin */
	const char *working_dir;        /* WORKING_DIR */
	const char *const *environment; /* of the caller, NULL-ended: ${env:NAME} */
};

/*
 * Append TEXT with ${env:NAME}, ${CONFIG_DIR} and ${WORKING_DIR} replaced ("$${" stands for
 * "${"). False: a variable that is not set, or no such placeholder; ERR names it.
 */
bool plugin_expand(const struct plugin_places *places, struct str text, struct buf *out,
		   struct err *err);
/* All texts in VALUE, deep, as a new value. */
bool plugin_expand_value(const struct plugin_places *places, const struct value *value,
			 struct value **expanded, struct err *err);

enum plugin_source_kind { PLUGIN_FILE = 1, PLUGIN_FOLDER, PLUGIN_EITHER, PLUGIN_GIT };

struct plugin_source {
	bool is_toolbox; /* executables (toolbox.h), else scripts */
	enum plugin_source_kind kind;
	char *text; /* the absolute path, or the URL */
	char *ref;  /* of git; NULL: its default branch */
};

/* One entry of `plugins`. plugin_source_fini SOURCE when true. */
bool plugin_source_parse(const struct plugin_places *places, const struct value *entry,
			 struct plugin_source *source, struct err *err);
/* Does ENTRY, whatever else is wrong with it, name a toolbox? */
bool plugin_source_is_toolbox(const struct value *entry);
void plugin_source_fini(struct plugin_source *source);
/* Append how people know it: the path, or URL#REF. */
void plugin_source_name(const struct plugin_source *source, struct buf *name);
