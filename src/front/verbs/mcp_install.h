/*
 * mcp_install: the entry by which other people's agents start `glovebox mcp`, in the form and the
 * file that each of them reads. Printed, or added to that file after a look at the difference.
 */
#pragma once
#include <stdbool.h>
#include <stdio.h>

struct mcp_install {
	const char *client;           /* "claude", "codex", … */
	const char *const *arguments; /* of the program, NULL-ended: "mcp", … */
	bool has_workspace;           /* they name one: none is added for editors */
	bool write;                   /* add the entry, after a yes on standard input */
};

/* An exit code; what went wrong has been said. */
int mcp_install(const struct mcp_install *install, FILE *out);

/* The names of all clients, for the help: "claude, codex, …". */
#define MCP_INSTALL_CLIENTS "claude, codex, gemini, qwen, opencode, vscode, cursor"
