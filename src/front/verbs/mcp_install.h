/*
 * mcp_install: makes the entry by which another agent starts `glovebox mcp`, in the form
 * and for the file that this agent reads. The entry is printed, or added to the file
 * after the person has seen the difference.
 *
 * A client is one row of the table here. Also add it to docs/clients.md and
 * tests/fronts/clients_test.py.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdio.h>

struct mcp_install {
	const char *client;           /* "claude", "codex", … */
	const char *const *arguments; /* of the program, NULL-ended: "mcp", … */
	bool has_workspace;           /* among the arguments: none is added for editors */
	bool write;                   /* add the entry, after a yes on standard input */
};

/* Returns an exit code; complaints have been printed. */
int mcp_install(const struct mcp_install *install, FILE *out);

/* The names of all clients, for the help: "claude, codex, …". */
#define MCP_INSTALL_CLIENTS "claude, codex, gemini, qwen, opencode, vscode, cursor"

/*
 * Adds one member to another program's settings, a JSON text that may hold comments and
 * trailing commas. The existing text is kept, byte by byte.
 */

enum json_insert_answer {
	JSON_INSERTED,
	JSON_IS_THERE, /* the same entry: nothing to do */
	JSON_DIFFERS,  /* an entry of this name that says something else */
	JSON_REFUSED,  /* ERR says why it is not possible */
};

/*
 * OUT gets TEXT (an empty TEXT counts as an empty object) with ENTRY as member NAME of
 * the object GROUP, which is made when it is missing. OUT is written only for
 * JSON_INSERTED; the result has then been parsed again and compared.
 */
enum json_insert_answer mcp_install_json_insert(struct str text, const char *group,
						const char *name, const struct value *entry,
						struct buf *out, struct err *err);

/*
 * Checks whether one more table may be appended to another program's settings in TOML.
 * The text is only parsed as far as this check needs.
 */

enum toml_answer {
	TOML_FREE,     /* the table may be appended */
	TOML_IS_THERE, /* the table, or a key of it, is in the text */
	TOML_REFUSED,  /* ERR names the line and the reason */
};

/* May the table [GROUP.NAME] be appended to TEXT? */
enum toml_answer mcp_install_toml_look(struct str text, const char *group,
				       const char *name, struct err *err);
