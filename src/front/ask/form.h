/*
 * form: puts a question of an MCP server or a plugin to the person of a conversation
 * (EVENT_QUESTION): the fields of a form one by one, an address, which is shown whole and
 * is opened only by a key, or what a server wants the model to be asked, which is shown
 * whole. What the person types must fit the schema of its field. Where the terminal
 * cannot show rows that change, the answer is a no.
 */
#pragma once

#include "base/value.h"

struct console;

/*
 * The answer to REQUEST, a question of KIND ("form", "url", "sampling" or "several",
 * session.h); the caller frees it. The question ends with a no when WAKE_FD becomes
 * readable.
 */
struct value *form_ask(struct console *console, int wake_fd, const char *kind,
		       const struct value *request);
