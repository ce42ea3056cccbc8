/*
 * mcp_install: adds `glovebox mcp` to the servers of another agent, by that agent's own
 * command (`claude mcp add …`). Without such a command it prints the entry, in the form
 * and with the place of the file that the agent reads. Only the agent's own program
 * writes to that file.
 *
 * A client is one row of the table here, with its command as its documentation has it.
 * Also add it to docs/clients.md and tests/fronts/clients_test.py.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct mcp_install {
	const char *client;           /* "claude", "codex", … */
	const char *const *arguments; /* of the program, NULL-ended: "mcp", … */
	bool has_workspace;           /* among the arguments: none is added for editors */
	bool prints;    /* only print the entry, its place and the command */
	double limit_s; /* the client's command is ended after this time */
};

/*
 * Returns an exit code; complaints have been printed. CODE_DONE: the entry was printed as
 * `prints` says, or the client's command ended with 0. CODE_FAILED: it failed, or there is
 * none and the entry was printed. CODE_TIMED_OUT or CODE_SIGNAL + n: it was stopped.
 */
int mcp_install(const struct mcp_install *install, FILE *out);

/* The names of all clients, for the help: "claude, codex, …". */
#define MCP_INSTALL_CLIENTS "claude, codex, gemini, qwen, opencode, vscode, cursor"
