/*
 * mcp_install: makes the entry by which another agent starts `glovebox mcp`, in the form
 * and for the file that this agent reads. The entry is printed, or added to the file
 * after the person has seen the difference.
 */
#pragma once
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
