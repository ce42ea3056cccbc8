/*
 * toolbox: the other dialect of plugins (Amp's toolboxes): an executable in any language that is
 * told by TOOLBOX_ACTION what to do. With "describe" it prints what it is, in one of two forms:
 *
 *   {"name": …, "description": …, "args": {NAME: [TYPE, DESCRIPTION]}}, or "inputSchema" with
 *   a JSON Schema instead of "args"; or lines:
 *
 *   name: NAME
 *   description: TEXT          (again, or indented below: one more line of it)
 *   ARGUMENT: TYPE DESCRIPTION
 *
 * An argument is required unless its type ends with "?", or its description begins with
 * "optional" or "(optional)". With "execute" it gets the arguments on standard input, in the form
 * it described itself in, and prints the answer; its exit status decides.
 *
 * As a tool its name is "tb__" and NAME, as agents of that contract are told it.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "plugins/plugin_schema.h"

#include <stdbool.h>

#define TOOLBOX_PREFIX   "tb__"
#define TOOLBOX_DESCRIBE "TOOLBOX_ACTION=describe"
#define TOOLBOX_EXECUTE  "TOOLBOX_ACTION=execute"

/*
 * Read SCHEMA from the TEXT that an executable printed about itself, which is not trusted.
 * plugin_schema_fini SCHEMA when true.
 */
bool toolbox_parse(struct str text, struct plugin_schema *schema, struct err *err);

/*
 * Append ARGUMENTS as "name: value" lines, in ORDER (names). A value that would be read as
 * another line is refused, and ERR names it.
 */
bool toolbox_lines(const struct value *order, const struct value *arguments,
		   struct buf *lines, struct err *err);

/*
 * The executables in the folder PLACE, by name, without hidden ones; none when PLACE is one
 * itself. False: there is none. FILES is then NULL or the caller's, too.
 */
bool toolbox_list(const char *place, struct value **files, struct err *err);
