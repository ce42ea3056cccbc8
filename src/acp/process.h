/*
 * process: the process of one session of an editor: our program again, by exec with an
 * empty environment (front/editor.c). It has the agent, the journal and the cell of the
 * session. The process that speaks with the editor has none of them, and stays quick while
 * a model is asked or a command runs. When either of them ends, however it ends, the other
 * one does, and the cell with it.
 *
 * The process reads its request, an object, from a descriptor:
 *
 *	environment    name -> value: the variables of the caller, with its API keys
 *	words          the options of `glovebox acp`, as they were given
 *	workspace      the folder of the session
 *	directories    more folders, which the cell shows as it shows the workspace; or absent
 *	resume         the id of the session that goes on, with its `agent` and `model`;
 *	               absent: a new one
 *	servers        MCP servers of the editor, by name, as `mcpServers` has them; or absent
 *	buffers        true: the editor can be asked for texts that are not saved
 *	forms, addresses   true: the editor takes such questions of tools
 *
 * Then lines go both ways, each a JSON object. To the process:
 *
 *	{"do": "prompt", "text": T, "pictures": [P, …], "links": [PATH, …]}   the pictures as
 *	                        agent_submit takes them; what the paths name goes with the prompt
 *	{"do": "set", "key": "mode" | "agent" | "model" | "thought_level", "to": NAME}
 *	{"call": C, "id": N, "action": A, …}   the answer to an approval (session/approval.h)
 *	                        or to another question (EVENT_QUESTION)
 *	{"buffer": N, "text": T}               without text: the editor has no such file
 *
 * A prompt is cancelled by SIGINT. From the process come its events (docs/events.md), and
 *
 *	{"editor": "idle", "session", "agent", "model", "mode", "agents", "models",
 *	 "thought_level", "thought_levels",
 *	 "context", "failed"}   the process may be told the next thing; `failed`: why the last
 *	                        one was not done; context: the tokens that the model takes, or 0;
 *	                        thought_levels: as ACP has choices, where the model has any
 *	{"editor": "says", "text": T}   the answer to a command, which was no turn
 *	{"editor": "keyless"}   there is no model to ask; the process ends
 *	{"editor": "buffer", "number": N, "path": P}
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "process/loop.h"

#include <stdbool.h>

/* argv[0] of the process; then the descriptors of the request, the events, the complaints,
 * the lines to it, and the caller. */
#define ACP_PROCESS_ROLE "glovebox-acp"
enum { ACP_PROCESS_ARGUMENTS = 6 };

/* The longest line to the process: a prompt, or the text of a file, with its escapes. */
enum { ACP_PROCESS_LINE_MAX = 32 << 20 };

/* The prompts that are commands of the program itself: "/NAME" alone, or with a HINT behind. */
struct acp_command {
	const char *name, *description;
	const char *hint; /* NULL: nothing may stand behind the name */
};
extern const struct acp_command acp_commands[]; /* ends with {0} */

struct acp_process;

struct acp_process_options {
	struct loop *loop; /* it calls the functions below, and outlives the process */
	const struct value *request;
	/* Called with each line of the process; LINE is borrowed. */
	void (*line)(void *context, const struct value *line);
	/* Called when the process has ended and its lines were taken. */
	void (*ended)(void *context);
	void *context;
};

bool acp_process_start(const struct acp_process_options *options,
		       struct acp_process **process, struct err *err);
void acp_process_say(struct acp_process *process, const struct value *line);
/* Cancel the prompt under way. Call it once for each prompt. */
void acp_process_cancel(struct acp_process *process);
/* Ask the process to end (SIGTERM); `ended` is called later. */
void acp_process_ask_to_end(struct acp_process *process);
/* PAUSED: read no more lines, because nobody takes what is made of them. */
void acp_process_pause(struct acp_process *process, bool paused);
/* Append the last sentence of its standard error to OUT, or that it ended unexpectedly. */
void acp_process_why(const struct acp_process *process, struct buf *out);
/* Kills a process that still runs. Not within `line` and `ended`. NULL is fine. */
void acp_process_free(struct acp_process *process);
