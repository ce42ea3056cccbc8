/* session_parts: the inside of a session and its calls, for session*.c and running*.c only. */
#pragma once
#include "base/memory.h"
#include "process/loop.h"
#include "runtime/cell.h"
#include "runtime/session.h"

#include <stdbool.h>
#include <stdint.h>

struct session {
	struct policy *policy;
	const struct tool *const *all_tools;
	const struct tool **offered; /* NULL-ended */
	struct value **schemas;      /* one for each of all_tools; NULL: not made yet */
	struct event_sink sink;
	struct loop *loop;
	struct cell *cell;
	struct running *first, *last; /* in the order of starting; freed ones are gone */
	struct running *first_queued; /* of these, by running_set_state */
	size_t queued_files, queued_others, busy_files, busy_others;
	bool one_call; /* opened for one call: the cell ends with it */
	size_t next_id;
	size_t cores;
	int cancel_fd;
	struct watch cancel_watch;
	char *folder;          /* where the next command starts */
	struct value *seen;    /* real path -> mark */
	struct value *aliases; /* path as asked -> real path, where they differ */
	/* real path -> text, null (was absent) or false (too large to keep) */
	struct value *before;
	size_t before_bytes;
	size_t audits_wanted; /* how often a worker died before its audit */
	const char **changed; /* made anew by session_changed */
};

enum running_state { RUNNING_NEW, RUNNING_QUEUED, RUNNING_BUSY, RUNNING_DONE };

struct running {
	struct session *session;
	struct running *next, *previous;
	char *id;
	const struct tool *tool;
	struct value *arguments;
	struct value *plan; /* what runs in place of their command (policy.h); or NULL */
	int fds[3];
	size_t fd_count;
	enum running_state state;
	bool cancelled;
	bool audits; /* its worker first looks at what an earlier call may have left */
	size_t audits_of; /* `audits_wanted` when it was sent */
	bool heralds;     /* its worker says when the result is about to come */
	bool auditing; /* its worker died; what it left is looked at before it is answered */
	double timeout_s; /* < 0: none */
	int64_t deadline_ms;
	int64_t began_us;
	struct worker_end *worker;
	struct timer kill_timer;
	bool asks;             /* it was granted the network */
	uint64_t number;       /* its name for the proxy; never 0 */
	struct value *refused; /* hosts, until the result is there; NULL: none */
	struct tool_result result;
	void (*done)(void *context, struct running *running);
	void *context;
};

/* Of one that is counted: not without a tool, unless it is new or done. */
void running_set_state(struct running *running, enum running_state state);
/* It starts no program. */
bool running_is_file_call(const struct running *running);
/* The only call under way, and it and its worker have a processor each. */
bool running_is_alone(const struct running *running);
/* NULL: none may begin. *WAITING: how many could, with a worker each. */
struct running *running_next_queued(const struct session *session, size_t *waiting);
/* RUNNING has its tool, and is looked at: its worker may wake up meanwhile. */
void running_expect(const struct running *running);
/* Give queued calls to idle workers. */
void running_dispatch(struct session *session);
/*
 * The result stands in running->result: fill in the rest, tell the sink, remember what
 * was read.
 */
void running_finish(struct running *running);
/* A host was refused to the call NUMBER, or, when that is 0, to all that run programs. */
void running_refused(void *context, uint64_t number, const char *target, const char *remedy);
/*
 * Grant RUNNING the network: the variables by which its programs reach it, the caller's;
 * NULL: they cannot.
 */
struct value *running_begin_network(struct running *running);
/* What it was granted ends, and what was refused comes into its result. */
void running_end_network(struct running *running);
/* Cancel whatever is under way. */
void running_cancel_all(struct session *session);

/* What of `seen` may matter to CALL, and what came back of it (session_memory.c). */
struct value *session_memory_for(struct session *session, const struct running *running);
void session_memory_take(struct session *session, struct running *running);
bool session_emit(struct session *session, enum event_kind kind,
		  const struct running *running, struct str text,
		  const struct value *data, struct err *err);
/* May it run? False: its result says why not (session_judge.c). */
bool session_judge(struct running *running, const struct request *request);
