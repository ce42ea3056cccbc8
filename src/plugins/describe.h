/*
 * describe: the description that a script prints about itself. The description is not
 * trusted: every part is checked, and an error names its place. There are two dialects,
 * and one struct for both.
 *
 * A script of the contract prints, for `schema`, one JSON object with id, version,
 * args_mode and exactly one function.
 *
 * A toolbox (Amp's name) is an executable in any language that finds its task in
 * TOOLBOX_ACTION. With "describe" it prints its description in one of two forms:
 *
 *   {"name": …, "description": …, "args": {NAME: [TYPE, DESCRIPTION]}}, or "inputSchema" with
 *   a JSON Schema instead of "args"; or lines:
 *
 *   name: NAME
 *   description: TEXT          (again, or indented below: one more line of it)
 *   ARGUMENT: TYPE DESCRIPTION
 *
 * An argument is required unless its type ends with "?", or its description begins with
 * "optional" or "(optional)". With "execute" it gets the arguments on standard input, in
 * the form of its description, and prints the answer; its exit status decides.
 *
 * The name of the tool is "tb__" and NAME, as in other agents that know toolboxes.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

#define TOOLBOX_PREFIX   "tb__"
#define TOOLBOX_DESCRIBE "TOOLBOX_ACTION=describe"
#define TOOLBOX_EXECUTE  "TOOLBOX_ACTION=execute"

enum {
	PLUGIN_SCHEMA_MAX = 64 << 10, /* bytes of the whole */
	PLUGIN_ID_MAX = 64,           /* the limit of model services for a name */
	PLUGIN_VERSION_MAX = 64,
	PLUGIN_KEYS_MAX = 64,
	PLUGIN_PROPERTIES_MAX = 256,
};

enum plugin_dialect { PLUGIN_SCRIPT, PLUGIN_TOOLBOX };

enum plugin_mode {
	PLUGIN_FLAGS,
	PLUGIN_POSITIONAL,
	PLUGIN_JSON,
	PLUGIN_TOOLBOX_JSON, /* this and the next are never in args_mode */
	PLUGIN_TOOLBOX_TEXT,
	PLUGIN_MODES,
};

/* One argument of a script. Only a position is required, or has a value when absent. */
struct plugin_argument {
	const char *name;
	bool required;
	const struct value *initial; /* or NULL */
};

struct plugin_schema {
	char id[PLUGIN_ID_MAX + 1];
	char version[PLUGIN_VERSION_MAX + 1];
	char *description; /* never NULL */
	enum plugin_mode mode;
	/*
	 * The JSON Schema of the arguments. Only the defaults from `positional` were
	 * added to its properties.
	 */
	struct value *parameters;
	/* in the order in which the script gets them; their members are borrowed */
	struct plugin_argument *arguments;
	size_t argument_count;
	struct value *config_keys; /* texts */
	struct value *warnings;    /* texts for the author */
	struct value *described;   /* owns the members of the arguments; or NULL */
};

/*
 * Read SCHEMA from the TEXT that a script or an executable of DIALECT printed. When it
 * returns true, call plugin_schema_fini later.
 */
bool plugin_schema_parse(enum plugin_dialect dialect, struct str text,
			 struct plugin_schema *schema, struct err *err);

/* Free the members of SCHEMA. */
void plugin_schema_fini(struct plugin_schema *schema);

const char *plugin_mode_name(enum plugin_mode mode);
/* The word for the question that DIALECT answers with its description. */
const char *plugin_dialect_question(enum plugin_dialect dialect);

/* The variable in which the value of config key NAME travels. The caller frees it. */
char *plugin_schema_variable(const char *name);
