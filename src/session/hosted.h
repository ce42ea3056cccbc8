/*
 * hosted: a program that the front speaks with all the time: an MCP server, a bridge, a language
 * server. It is a program on pipes (piped.h) in the cell of a session, started again and again. This
 * module has its tool, and keeps the end of its standard error. The owner has the messages, and decides
 * about a new start.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "process/loop.h"
#include "session/piped.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>

enum {
	HOSTED_WORDS_MAX = 2 << 10,    /* of the program's standard error */
	HOSTED_SENTENCE_MAX = 8 << 10, /* that holds these words */
};

struct hosted_options {
	const char *name;      /* of the call */
	struct value *carried; /* what the owner adds to the call, as `exec` takes it */
	/* The program is ended when it was not used for `idle_s` of `carried` (hosted_use). */
	bool has_idle_time;
	/* The program has printed BYTES. */
	void (*said)(void *owner, struct str bytes);
	/* The program prints no more, and ends soon; or NULL. */
	void (*fell_silent)(void *owner);
	/* The call that runs the program has ended, while the pipes were open. */
	void (*ended)(void *owner, const struct tool_result *result);
	void *owner;
};

struct hosted {
	struct hosted_options options;
	struct value *no_schema;
	struct piped program;
	struct buf words;
};

/* All members of OPTIONS are borrowed for the life of HOSTED. */
void hosted_init(struct hosted *hosted, const struct hosted_options *options);
void hosted_fini(struct hosted *hosted);

/*
 * Open the pipes on LOOP; bytes may be sent. TAKE_ERROR is the program's standard error, whose other
 * end the owner reads; -1: it is read here. After a failure hosted_cancel closes what is open.
 */
bool hosted_open(struct hosted *hosted, struct loop *loop, int take_error, struct err *err);
/* Then start the program of ARGUMENTS, which `exec` takes, in the cell of SESSION. */
void hosted_start(struct hosted *hosted, struct session *session, struct value *arguments);
/* Are the pipes open? They stay so until one of the next two. */
bool hosted_is_open(const struct hosted *hosted);
/* Close the pipes and cancel the call. `ended` is not called. */
void hosted_cancel(struct hosted *hosted);
/* The same, and wait for the end of the call, before its session may be closed. */
void hosted_stop(struct hosted *hosted);
/* Close the pipe of the input only: a program that behaves ends then. */
void hosted_end_input(struct hosted *hosted);

/* The buffer to which the owner appends its messages, before hosted_write. */
struct buf *hosted_waiting(struct hosted *hosted);
/* Write what was added to hosted_waiting, as far as the program takes it now. */
void hosted_write(struct hosted *hosted);
/* How often the pipes were opened: another number than before means another program. */
unsigned hosted_generation(const struct hosted *hosted);
/* The call that runs the program; NULL: none. */
const struct running *hosted_running(const struct hosted *hosted);
/* The program is in use: its idle time begins anew. */
void hosted_use(struct hosted *hosted);
/* Read what the program has printed by now. False: that made the owner close the pipes. */
bool hosted_drain(struct hosted *hosted);

/* The end of the program's standard error, without white space around it. */
struct str hosted_words(const struct hosted *hosted);
/*
 * Add the reason for the end of a program whose call had RESULT: "was ended by signal 9", or FAILED, such
 * as "could not be run", and why.
 */
void hosted_add_end(const struct tool_result *result, const char *failed, struct buf *why);
