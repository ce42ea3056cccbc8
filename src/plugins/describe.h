/*
 * describe: the description that a script prints about itself (`schema`): one JSON
 * object with id, version, args_mode and exactly one function. The description is not
 * trusted: every part is checked, and an error names its place.
 *
 * A toolbox is a second dialect of the same description: this module turns what the
 * toolbox describes into the schema of a script, and makes the lines that the toolbox
 * reads.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

enum {
	PLUGIN_SCHEMA_MAX = 64 << 10, /* bytes of the whole */
	PLUGIN_ID_MAX = 64,           /* the limit of model services for a name */
	PLUGIN_KEYS_MAX = 64,
	PLUGIN_PROPERTIES_MAX = 256,
};

enum plugin_mode {
	PLUGIN_FLAGS,
	PLUGIN_POSITIONAL,
	PLUGIN_JSON,
	PLUGIN_TOOLBOX_JSON, /* this and the next are never in args_mode */
	PLUGIN_TOOLBOX_TEXT,
	PLUGIN_MODES,
};

struct plugin_schema {
	char *id;
	char *version;
	char *description; /* never NULL */
	enum plugin_mode mode;
	/*
	 * The JSON Schema of the arguments. Only the defaults from `positional` were
	 * added to its properties.
	 */
	struct value *parameters;
	struct value *positional; /* objects with name, required and default, in their order */
	struct value *config_keys; /* texts */
	struct value *warnings;    /* texts for the author */
};

/*
 * Read TEXT into SCHEMA, of which all members are set. When it returns true, call
 * plugin_schema_fini later.
 */
bool plugin_schema_parse(struct str text, struct plugin_schema *schema, struct err *err);

/* Free the members of SCHEMA. */
void plugin_schema_fini(struct plugin_schema *schema);

const char *plugin_mode_name(enum plugin_mode mode);

/* The variable in which the value of config key NAME travels. The caller frees it. */
char *plugin_schema_variable(const char *name);

/*
 * The other dialect of plugins (Amp's toolboxes): an executable in any language that
 * finds its task in TOOLBOX_ACTION. With "describe" it prints its description in one of
 * two forms:
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

#define TOOLBOX_PREFIX   "tb__"
#define TOOLBOX_DESCRIBE "TOOLBOX_ACTION=describe"
#define TOOLBOX_EXECUTE  "TOOLBOX_ACTION=execute"

/*
 * Read SCHEMA from the TEXT that an executable printed about itself, which is not trusted.
 * plugin_schema_fini SCHEMA when true.
 */
bool describe_toolbox_parse(struct str text, struct plugin_schema *schema, struct err *err);

/*
 * Append ARGUMENTS as "name: value" lines, in ORDER (names). A value that would be read as
 * another line is refused, and ERR names it.
 */
bool describe_toolbox_lines(const struct value *order, const struct value *arguments,
			    struct buf *lines, struct err *err);

/*
 * List the executables in the folder PLACE, by name, without hidden ones; an empty list
 * when PLACE is an executable itself. False: PLACE does not exist. FILES is then NULL, or
 * the caller must free it too.
 */
bool describe_toolbox_list(const char *place, struct value **files, struct err *err);
