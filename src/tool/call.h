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
#include "base/json/fields.h"
#include "base/str.h"
#include "base/value.h"
#include "process/frame.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

struct files;
struct frame_reader;
struct program_terms;

enum {
	CALL_FDS_MAX = FRAME_FDS_MAX,
	CALL_FRAGMENT_MAX =
		16 << 10, /* of one output event: a front shows lines, not megabytes */
};

/*
 * The key under which the folder of the next command is sent among the marks, whose
 * keys are paths. No path is empty, so this key is free.
 */
#define CALL_FOLDER_KEY ""

/* Limits of a command besides time. 0: this process does not watch that limit. */
struct call_limits {
	uint64_t memory; /* bytes of all its processes together */
	uint64_t pids;
	/* the kernel enforces these; they are here for sentences */
	uint64_t file_size, tmp;
	uint64_t free_space; /* bytes that must stay free at `space` */
	double quiet_s;      /* seconds without output */
	/*
	 * for a file tool, not a command: bytes of a file that it shows, and of text
	 * that it writes
	 */
	uint64_t read_bytes, write_bytes;
	uint64_t watches; /* for the look of undo: folders that it watches */
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
	struct files *files; /* roots of the cell, for file tools */
	/* IN_FRONT: the hash that a person has approved (tool.h); or NULL */
	const char *approved;
	const char *workspace; /* absolute, as in the view */
	const char *folder;    /* where commands start; follows `cd` between calls */
	const char *const *environment; /* for programs, NULL-ended, built from scratch */
	int64_t deadline_ms;            /* monotonic; CLOCK_NEVER: none */
	/*
	 * The cell has a view of its own (L3); otherwise paths are the host's, limited
	 * by rules
	 */
	bool has_view;
	bool terse;   /* nobody reads the details, so they may be left out */
	bool is_last; /* the cell ends with this call: files left in /tmp are lost */
	/*
	 * The call runs alone and there is more than one processor: the front may be
	 * woken early
	 */
	bool heralds;
	double grace_s;    /* TERM to KILL */
	const char *agent; /* the agent whose policy holds, for remedies */
	struct call_limits limits;
	int listener;      /* for refused system calls (sandbox.h); -1: none */
	bool as_root;      /* its programs take themselves for root (sandbox.h) */
	const char *space; /* the writable part of the workspace, or NULL */
	const char *layer; /* the part under a layer in memory (`scratch`), or NULL */
	/* where the layer of a review lies in memory, whose size nothing else bounds; -1: none */
	int review_memory;
	/* the folder that has the changes of the base on which the cell stands; -1: no base */
	int base_layer;
	/* path -> mark: files read in this session, for the paths of this call */
	const struct value *seen;
	/* the result of the tool's prepare() in this worker; NULL: none */
	void *prepared;
	const struct program_terms *terms; /* for every program that the tool starts */
	int fds[CALL_FDS_MAX]; /* descriptors handed over by the front (exec); -1 else */
	/* readable when a cancel may have come: poll it together with a program */
	int control_fd;
	/* for frames on control_fd; NULL: only cancels come there */
	struct frame_reader *reader;
	bool cancelled;        /* set by call_stopped */
	int64_t question;      /* number of the last question */
	struct value *reply;   /* the reply to it, until it is taken; or NULL */
	bool awaits_reply;     /* a reply may come at any time */
	int64_t next_check_ms; /* used by call_stopped only */
	void *owner;           /* used by the worker only */
};

/*
 * Has the deadline passed or a cancel arrived? Cheap: it polls the socket at most every
 * few milliseconds.
 */
bool call_stopped(struct call *call);

/* Set the sentence and status for a tool that ended because of call_stopped. */
enum result_status call_stop_result(struct call *call, struct tool_result *result);

/*
 * The environment of a call's programs: the texts of CELL (NULL-ended), with the texts
 * of MORE (a list, or NULL) replacing those of the same name. The caller frees the
 * list, but not the texts.
 */
const char **call_environment(const char *const *cell, const struct value *more);

/*
 * The call's program has ended: wake the front for the result. Sent at most once, and
 * only with `heralds`.
 */
void call_ending(struct call *call);

enum call_stream { CALL_STDOUT = 1, CALL_STDERR = 2 };
/*
 * Send output as it comes, for events. It may be merged or dropped under load, so a
 * result repeats the important parts.
 */
void call_output(struct call *call, enum call_stream stream, struct str bytes);

/*
 * Send the progress, and a line for the caller's log. The message is sent immediately,
 * or dropped when the front does not take it in time. TOTAL < 0: not known; MESSAGE and
 * LOGGER may be NULL.
 */
void call_progress(struct call *call, double progress, double total, const char *message);
void call_log(struct call *call, const char *level, const char *logger, struct str text);

/*
 * Ask the caller. KIND is "form" or "url" (REQUEST: message, and schema or url) for a
 * person, "sampling" (REQUEST as in MCP) for a model, "roots" for the folders in which
 * the caller works, "several" for more of these at the same time (`requests`: by name,
 * each with its `kind`). `key`: distinguishes the answers; `required`: the call needs
 * an answer. Only one question may be open: false while another is open, when this one
 * is too large, and when nobody is there.
 */
bool call_ask(struct call *call, const char *kind, const struct value *request);
/* The kind for a model, and the most tokens that such an answer may have. */
#define CALL_ASK_SAMPLING "sampling"
enum { CALL_SAMPLING_TOKENS_MAX = 4000 };
/*
 * The answer to call_ask: an object with an "action" (accept, decline, cancel), which
 * the caller owns; NULL when none has come yet. Poll call->control_fd before, and ask
 * call_stopped too.
 */
struct value *call_take_reply(struct call *call);

/*
 * The mark of PATH (as in the view, absolute) if this session has read it, or NULL. A
 * mark is a content hash in hex, or "stat:…" for files over 16 MiB (files.h).
 */
const char *call_seen(const struct call *call, const char *path);
/* Note that this session has now read or written PATH with the content MARK. */
void call_saw(struct tool_result *result, const char *path, const char *mark);
/*
 * Set the folder in which the next command starts (inside the roots only; the session
 * checks).
 */
void call_set_folder(struct call *call, struct tool_result *result, const char *folder);

/* Arguments, after validation. */
const char *call_text(const struct call *call, const char *name); /* NULL when absent */
struct str call_str(const struct call *call, const char *name);
int64_t call_count(const struct call *call, const char *name, int64_t absent);
bool call_flag(const struct call *call, const char *name);

/*
 * Spills: files in the cell's temporary folder that hold what an answer had no room for.
 * A spill is nameless until it is kept; the newest SPILL_KEPT stay.
 *
 * base/text/text.h cuts long texts and long lines. The output of a command beyond that
 * lies in a spill, of which tools/shown.h tells the lines that speak of a failure.
 */

enum { SPILL_KEPT = 16 };

/*
 * Set PATH to the folder of the spill files, from a program's ENVIRONMENT. Returns its
 * text.
 */
const char *spill_folder(const char *const *environment, struct buf *path);

/*
 * Open a nameless file below FOLDER (which is made when missing). -1: there is no
 * spill.
 */
int spill_open(const char *folder);
/* Name the file, and set PATH to FOLDER/N.log. */
bool spill_keep(int fd, const char *folder, struct buf *path);

/*
 * A spill that is filled piece by piece. Initialise it with {.fd = -1}, and close `fd` in
 * the end.
 */
struct spill {
	const char *const *environment; /* of the call's programs */
	int fd;
	bool tried; /* the first byte makes the file */
	uint64_t kept, dropped;
};
/*
 * Append BYTES, up to PROGRAM_SPILL in all. Once some bytes were dropped, all later
 * ones are.
 */
void spill_add(struct spill *spill, struct str bytes);
/* If the spill holds something, name it and set PATH. */
bool spill_name(const struct spill *spill, struct buf *path);

/*
 * The messages that a worker sends about its running call (FRAME_TELL), the questions
 * it asks the caller (FRAME_QUESTION), and their answers (FRAME_REPLY). All are JSON.
 * One question is open at a time; the worker numbers them. They are read by the front
 * (session/running.c), which trusts none of them, and by the call that asked (call.c).
 */

/*
 * Bytes of a message for a person; and of a question (a form, or a conversation for a
 * model) or its reply.
 */
enum { TELL_MAX = 64 << 10, TELL_QUESTION_MAX = 4 << 20 };

/* A report of a call, and the data of its event. */
struct tell_report {
	double progress; /* NAN: it is a line of the log */
	double total;    /* 0: unknown */
	struct str text, level, logger;
};
extern const struct field tell_progress_fields[], tell_line_fields[];

struct tell_question {
	int64_t id;            /* 1, 2, … in each call */
	const char *kind;      /* "form", "url", "sampling", "roots" or "several" */
	struct value *request; /* an object */
};

bool call_tell_print_question(const struct tell_question *question, struct buf *out);
/* QUESTION points into the parsed *OBJECT, which the caller frees with value_free. */
bool call_tell_parse_question(struct str text, struct tell_question *question,
			      struct value **object, struct err *err);

/* Is ANSWER an object with an "action" of accept, decline or cancel? */
bool call_tell_is_answer(const struct value *answer);
bool call_tell_print_reply(int64_t id, const struct value *answer, struct buf *out);
/* The caller owns *ANSWER. */
bool call_tell_parse_reply(struct str text, int64_t *id, struct value **answer,
			   struct err *err);

/*
 * A question from the front to a call that goes on as a job. The front sends one
 * FRAME_ASK at a time, to a call whose tool `answers` (tool.h). The worker answers each
 * with FRAME_ANSWER, a printed result (tool_result_print). It sends FRAME_WAITS by
 * itself when a program waits for somebody to type.
 */

struct ask {
	int64_t job; /* the number of the job that people see */
	bool reads;  /* asks for output */
	/* from this byte on; < 0: output that no answer has shown yet */
	int64_t since;
	struct str input;     /* text to type; data NULL: none */
	int signal;           /* to send to the programs; 0: none */
	struct value *object; /* owns the bytes of `input`; freed by ask_fini */
};

bool ask_print(const struct ask *ask, struct buf *out);
/* Fill all of ASK. When it returns true, call ask_fini later. */
bool ask_parse(struct str text, struct ask *ask, struct err *err);
void ask_fini(struct ask *ask);

/*
 * In the worker, when call->control_fd is readable: read the next ask. False when none
 * has come yet. A cancel, a closed socket and any other frame set call->cancelled.
 */
bool ask_next(struct call *call, struct ask *ask);
/* Answer the last ask. */
void ask_answer(const struct call *call, const struct tool_result *result);
/* Tell the front that a program of this call waits for input at its terminal. */
void ask_tell_waiting(const struct call *call);
