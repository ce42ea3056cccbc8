/* approval_text: the content of a question, for approval.c alone. */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

struct running;

enum {
	COMMAND_SHOWN_MAX = 16 << 10, /* what is to be judged is read whole */
	/* Every byte of it may be shown as four. */
	SHOWN_MAX = 8 * COMMAND_SHOWN_MAX,
	APPROVAL_FILE = 48,
};

struct approval_subject {
	const char *effect;
	struct str subject;
	const char *because, *rule, *scope;
	const char *wish; /* of an effect that a tool names (tool.h); or NULL */
	const char *file; /* of a folder: which it is, beside its name (approval_file); or NULL */
};

/* What the call runs, as it was asked for: its command, or all that its tool was given. */
void approval_command(const struct running *running, struct buf *text);

/* Device and inode of what FD holds, in digits. */
void approval_file(int fd, char file[APPROVAL_FILE]);

/* The data of EVENT_APPROVAL_WANTED but for its id, with the hash and the form. */
struct value *approval_data(const struct running *running,
			    const struct approval_subject *subject);
