/*
 * call: what execute() is given, inside the worker. Everything the tool may know of the
 * session is here; it opens files through files/files and starts programs through
 * process/, and it asks call_stopped() in every long loop.
 *
 * While it runs, a call may report how far it is, write to the log of its caller and
 * ask a question. The session makes events of these, and running_answer sends the
 * reply back.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

struct files;
struct frame_reader;
struct program_launcher;
struct program_terms;

enum {
	CALL_FDS_MAX = 3,
	CALL_FRAGMENT_MAX =
		16 << 10, /* of one output event: a front shows lines, not megabytes */
};

/* The folder of the next command travels beside the marks: no path is empty. */
#define CALL_FOLDER_KEY ""

/* Limits of a command besides time; 0: this process does not watch that limit. */
struct call_limits {
	uint64_t memory; /* bytes of its processes together */
	uint64_t pids;
	uint64_t file_size, tmp; /* kept by the kernel: here for sentences */
	uint64_t free_space;     /* bytes that stay free at `space` */
	double quiet_s;          /* without output */
	/* of a file tool, not of a command: bytes of a file shown, and of text brought */
	uint64_t read_bytes, write_bytes;
};

struct call {
	const struct tool *tool;
	const struct value *arguments; /* validated, defaults filled in */
	/* The value that the called tool hands to its carrier (tool.h); or NULL */
	const struct value *carried;
	/*
	 * The commands to run in place of the command in `arguments`, without a shell:
	 * objects with `join` (";", "&&", "||", "|") and `argv`. NULL: the command
	 * itself.
	 */
	const struct value *plan;
	struct files *files; /* the roots of the cell, for file tools */
	const char *approved; /* IN_FRONT: the hash of what a person has approved (tool.h); or NULL */
	const char *workspace; /* absolute, as in the view */
	const char *folder;    /* where commands start: follows `cd` between calls */
	const char *const *environment; /* for programs, NULL-ended, built from scratch */
	int64_t deadline_ms;            /* monotonic; CLOCK_NEVER: none */
	/* It has a view of its own (L3); else its paths are the host's, under rules */
	bool has_view;
	bool terse;   /* nobody looks at its details: they may be left out */
	bool is_last; /* the cell ends with this call: what it leaves in /tmp is gone */
	/* It is alone, and there is more than one processor: who is next may be woken early */
	bool heralds;
	double grace_s;    /* TERM to KILL */
	const char *agent; /* whose policy holds, for remedies */
	struct call_limits limits;
	int listener;      /* of refused system calls (sandbox.h); -1: none */
	const char *space; /* the writable part of the workspace, or NULL */
	const char *layer; /* the part under a layer in memory (`scratch`), or NULL */
	/* path -> mark: read in this session, for the paths of this call */
	const struct value *seen;
	void *prepared; /* what the tool's prepare() made in this worker; NULL: nothing */
	const struct program_terms *terms;  /* of every program the tool starts */
	struct program_launcher **launcher; /* for the first of them (program.h) */
	int fds[CALL_FDS_MAX]; /* descriptors handed over by the front (exec); -1 else */
	/* readable when a cancel may have come: for poll beside a program */
	int control_fd;
	struct frame_reader *reader; /* of what comes there (ask.h); NULL: only cancels do */
	bool cancelled;              /* set by call_stopped */
	int64_t question;            /* number of the last one that was asked */
	struct value *reply;         /* to it, until it is taken; or NULL */
	bool awaits_reply;           /* it may come any time */
	int64_t next_check_ms;       /* call_stopped's own */
	void *owner;                 /* the worker's own */
};

/*
 * Has the deadline passed or a cancel arrived? Cheap: asks the socket at most every few
 * ms.
 */
bool call_stopped(struct call *call);

/* The sentence and status for a tool that ended because of call_stopped. */
enum result_status call_stop_result(struct call *call, struct tool_result *result);

/*
 * The environment of a call's programs: CELL (NULL-ended) with the texts of MORE (a list,
 * or NULL) in the places of what has the same names. The caller frees the list, not what
 * is in it.
 */
const char **call_environment(const char *const *cell, const struct value *more);

/* Its program has ended: the front wakes up for the result. Once; said for who says it not. */
void call_ending(struct call *call);

enum call_stream { CALL_STDOUT = 1, CALL_STDERR = 2 };
/*
 * Output as it comes, for events; may be merged or dropped under load, so results
 * repeat what matters.
 */
void call_output(struct call *call, enum call_stream stream, struct str bytes);

/*
 * How far it is, and a word for the log of the caller: told at once, or dropped when
 * nobody takes it in time. TOTAL < 0: nobody knows; MESSAGE and LOGGER may be NULL.
 */
void call_progress(struct call *call, double progress, double total, const char *message);
void call_log(struct call *call, const char *level, const char *logger, struct str text);

/*
 * Ask the caller: KIND "form" or "url" (REQUEST: message, and schema or url) for a
 * person, "sampling" (REQUEST as MCP has it) for a model, "roots" for the folders it
 * works in, "several" for more of these at once (`requests`: by name, each with its
 * `kind`). `key`: how the asked tell answers apart; `required`: the call cannot do
 * without. One question at a time: false while another is open, for one that is too
 * large, and when nobody is there.
 */
bool call_ask(struct call *call, const char *kind, const struct value *request);
/*
 * The answer to it, an object with an "action" (accept, decline, cancel), the caller's;
 * NULL when none has come yet: poll call->control_fd. Ask call_stopped, too.
 */
struct value *call_take_reply(struct call *call);

/* The mark of PATH (as in the view, absolute) when this session has read it, or NULL. A
 * mark is a content hash in hex, or "stat:…" for files over 16 MiB (files.h). */
const char *call_seen(const struct call *call, const char *path);
/* This session has now read or written PATH with content MARK. */
void call_saw(struct tool_result *result, const char *path, const char *mark);
/* The folder the next command starts in (inside the roots only; the runtime checks). */
void call_set_folder(struct call *call, struct tool_result *result, const char *folder);

/* Arguments, after validation: */
const char *call_text(const struct call *call, const char *name); /* NULL when absent */
struct str call_str(const struct call *call, const char *name);
int64_t call_count(const struct call *call, const char *name, int64_t absent);
bool call_flag(const struct call *call, const char *name);

/*
 * What a worker says of its call while that runs, and asks of the caller it: FRAME_TELL
 * and FRAME_QUESTION, and FRAME_REPLY for the answer. All JSON. One question at a time
 * is open; its number is the worker's. Read by a front (running.c), which trusts
 * none of it, and by the call that asked (call.c).
 */

/* A word for a person; a form or a conversation for a model; and what is answered to it. */
enum { TELL_MAX = 64 << 10, TELL_QUESTION_MAX = 4 << 20 };

struct tell_question {
	int64_t id;            /* 1, 2, … in its call */
	const char *kind;      /* "form", "url", "sampling", "roots" or "several" */
	struct value *request; /* an object */
};

bool call_tell_print_question(const struct tell_question *question, struct buf *out);
/* QUESTION holds on to what was parsed: value_free *OBJECT. */
bool call_tell_parse_question(struct str text, struct tell_question *question,
			      struct value **object, struct err *err);

/* ANSWER is an object with an "action": accept, decline or cancel. */
bool call_tell_is_answer(const struct value *answer);
bool call_tell_print_reply(int64_t id, const struct value *answer, struct buf *out);
/* *ANSWER is the caller's. */
bool call_tell_parse_reply(struct str text, int64_t *id, struct value **answer,
			   struct err *err);

/*
 * What a front may want of a call that goes on as a job, and the answer to it. The front
 * sends FRAME_ASK, one at a time, to a call whose tool `answers` (tool.h); the worker
 * answers each with FRAME_ANSWER, a result of wire.h, and with FRAME_WAITS says of its
 * own accord that a program waits for somebody to type.
 */

struct ask {
	int64_t job;          /* the number under which people know the call */
	bool reads;           /* wants to see output */
	int64_t since;        /* from this byte on; < 0: what no answer has shown yet */
	struct str input;     /* to be typed; data NULL: nothing */
	int signal;           /* for what it runs; 0: none */
	struct value *object; /* what `input` lies in; ask_fini */
};

bool ask_print(const struct ask *ask, struct buf *out);
/* ASK is filled in whole; ask_fini it when true. */
bool ask_parse(struct str text, struct ask *ask, struct err *err);
void ask_fini(struct ask *ask);

/*
 * In the worker, when call->control_fd can be read: the next ask, or false when none has come
 * yet. A cancel, a front that is gone and whatever else comes set call->cancelled.
 */
bool ask_next(struct call *call, struct ask *ask);
/* The answer to the ask that came last. */
void ask_answer(const struct call *call, const struct tool_result *result);
/* A program of this call waits for input at its terminal. */
void ask_tell_waiting(const struct call *call);
