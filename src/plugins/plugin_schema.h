/*
 * plugin_schema: what a script says of itself (`schema`): one JSON object with id, version,
 * args_mode and exactly one function. Bytes of a stranger: all of it is checked, and what is
 * wrong is said with its place.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

enum {
	PLUGIN_SCHEMA_MAX = 64 << 10, /* bytes of the whole */
	PLUGIN_ID_MAX = 64,           /* what model services take as a name */
	PLUGIN_KEYS_MAX = 64,
	PLUGIN_PROPERTIES_MAX = 256,
};

enum plugin_mode {
	PLUGIN_FLAGS,
	PLUGIN_POSITIONAL,
	PLUGIN_JSON,
	PLUGIN_TOOLBOX_JSON, /* toolbox.h; no script's args_mode says these */
	PLUGIN_TOOLBOX_TEXT,
	PLUGIN_MODES,
};

struct plugin_schema {
	char *id;
	char *version;
	char *description; /* never NULL */
	enum plugin_mode mode;
	/*
	 * The JSON Schema of the arguments, as it came but for defaults of `positional` that were
	 * added to its properties.
	 */
	struct value *parameters;
	struct value *positional; /* objects with name, required and default, in their order */
	struct value *config_keys; /* texts */
	struct value *warnings;    /* texts for the author */
};

/* SCHEMA is filled in whole; plugin_schema_fini it when true. */
bool plugin_schema_parse(struct str text, struct plugin_schema *schema, struct err *err);
/* Likewise of what was parsed already. MODE: another one than "args_mode" says; or NULL. */
bool plugin_schema_read(const struct value *root, const enum plugin_mode *mode,
			struct plugin_schema *schema, struct err *err);
void plugin_schema_fini(struct plugin_schema *schema);

/* Can NAME be a tool's? */
bool plugin_schema_is_name(struct str name);

const char *plugin_mode_name(enum plugin_mode mode);

/* The variable in which the value of config key NAME travels. The caller frees it. */
char *plugin_schema_variable(const char *name);
