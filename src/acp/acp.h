/*
 * acp: an agent for editors, by the Agent Client Protocol, version 1: JSON-RPC 2.0, one
 * message a line, on two descriptors. The client is an editor, or another program that
 * shows a conversation to a person.
 *
 * This process speaks with the client and knows its sessions. Each session works in a
 * process of its own (process.h), so a session that asks a model or runs a command delays
 * no other one, and what ends it ends nothing else. update.h translates what happens into
 * the client's words, prompt.h what the client sends.
 *
 * A session is stored when it is made, and session/load and session/resume go on with it
 * in a later process. Requests of one session are answered in their order, except
 * session/cancel, which is heard at any time. What the policy asks a person about becomes
 * session/request_permission, and an error, an unknown option or a client that is gone is
 * a no. Where the client can read texts that are not saved (fs/read_text_file), a session
 * is told of them; no other method of the client is called, because commands and file
 * tools of a cell must see the same files.
 *
 * Keys are kept outside of the protocol: a client with a terminal runs the program's own
 * `login` there, every other one has keys looked for by `authenticate`. Sessions look for
 * them when they are opened, so what logout forgets is forgotten for the next one.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "process/loop.h"

#include <stdbool.h>

struct acp_options {
	struct loop *loop;
	int input, output; /* the caller's */
	int stop_fd;       /* readable: end now; -1: none */
	const char *version;
	/* the members of each session's request that are the same for all (process.h) */
	const struct value *request;
	/* Is there a model to ask, with the keys that there are now? ERR: why not. */
	bool (*ready)(const void *context, struct err *err);
	/* Forget the keys that are kept. */
	bool (*logout)(const void *context, struct err *err);
	const void *context; /* of both */
};

/*
 * Serve until the end of the input, the death of our parent or a signal; then all sessions
 * have ended. False: the output failed before that.
 */
bool acp_run(const struct acp_options *options, struct err *err);
