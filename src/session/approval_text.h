/* approval_text: the content of a question, for approval*.c only. */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

struct running;

enum {
	COMMAND_SHOWN_MAX = 16 << 10, /* a person reads all of what they judge */
	/* Every byte of a command may be shown as four. */
	SHOWN_MAX = 8 * COMMAND_SHOWN_MAX,
	APPROVAL_FILE = 48,
};

struct approval_subject {
	const char *effect;
	struct str subject;
	const char *because, *rule, *scope;
	/* what is wanted, for an effect that a tool names (tool.h); or NULL */
	const char *wish;
	/* which folder it is, beside its name (approval_file); or NULL */
	const char *file;
};

/*
 * Append what the call runs, as its caller gave it: its command, or its tool with all
 * arguments.
 */
void approval_command(const struct running *running, struct buf *text);

/* Write the device and inode of the file that FD holds, in digits. */
void approval_file(int fd, char file[APPROVAL_FILE]);

/*
 * Make the data of EVENT_APPROVAL_WANTED with the hash and the form, but without the id.
 */
struct value *approval_data(const struct running *running,
			    const struct approval_subject *subject);
