/* session_parts: the inside of a session and its calls, for session*.c and running*.c only. */
#pragma once
#include "base/hash.h"
#include "base/memory.h"
#include "cell/cell.h"
#include "guard/audit.h"
#include "process/loop.h"
#include "session/session.h"
#include "session/session_undo.h"
#include "tool/claims.h"

#include <stdbool.h>
#include <stdint.h>

struct session {
	struct policy *policy;
	const struct tool *const *all_tools;
	const struct tool **offered; /* NULL-ended */
	struct value **schemas;      /* one for each of all_tools; NULL: not made yet */
	struct event_sink sink;
	struct loop *loop;
	bool own_loop;
	struct cell *cell;
	struct running *first, *last; /* in the order of starting; freed ones are gone */
	struct running *first_queued; /* of these, by running_set_state */
	size_t queued_files, queued_others, busy_files, busy_others;
	size_t queued_searches, busy_searches; /* of the file calls */
	size_t queued_commands, busy_writers;  /* of a person or model; jobs included */
	bool answers_questions;
	bool answers_approvals, relays_approvals;
	bool one_call; /* opened for one call: the cell ends with it */
	size_t next_id;
	size_t cores;
	size_t commands_most; /* at once: with more there would be no descriptors left */
	int cancel_fd;
	struct watch cancel_watch;
	char *folder;          /* where the next command starts */
	struct value *seen;    /* real path -> mark */
	struct value *aliases; /* path as asked -> real path, where they differ */
	/*
	 * Wall clock: until then all that its calls had done was looked at, and none of them ran that
	 * could write. 0: never.
	 */
	int64_t quiet_ns;
	size_t audits_wanted; /* how often a worker died before its audit */
	struct tool_result *said; /* before the first call, for the first that is answered; or NULL */
	struct value *held; /* of what killed gits left: what others may hold (running_left.c) */
	bool unseen; /* commands may have left something where none of their audits looked */
	bool told_own; /* that what programs left in /tmp is in the cell only (layer_tell.h) */
	bool taken_over; /* what a dead front's commands left has not been looked at yet */
	char **changed;  /* made anew by session_changed */
	struct job *first_job; /* by number */
	int64_t next_job;
	struct keeper *keeper; /* NULL: nothing can be undone */
	struct value *granted; /* by a person, until the end (approval.c): grant -> true */
	/* folders to be written that were granted, as they are shown -> true: for the session */
	struct value *outside;
	struct widening *first_widening; /* in the order of asking (extra.c) */
	struct timer widened;            /* due when the first of these is answered */
	int64_t last_approval; /* below 0: the number of the last question to a person */
};

/*
 * RUNNING_NEW also while it awaits a job: it has no worker and is not counted. RUNNING_AHEAD: as if
 * queued, but a worker has it already, behind another call (running_batch.c); not counted either.
 */
enum running_state {
	RUNNING_NEW,
	RUNNING_AHEAD,
	RUNNING_QUEUED,
	RUNNING_BUSY,
	RUNNING_DONE
};

/* A call that goes on for nobody; its `work` is in the list of the session's calls. */
struct job {
	struct session *session;
	struct job *next;
	int64_t number;
	struct running *work;
	int64_t ended_us;         /* 0: it runs */
	uint64_t asked, answered; /* its worker was and has: in this order */
	bool waits; /* its worker says so: for input, since it was asked last */
	bool told;  /* somebody has been shown its end */
};

/* What is known of files that a killed git may have left. */
enum left_state {
	LEFT_UNSEEN, /* no worker has looked */
	LEFT_SEEN,   /* those that were found are in `left` */
	LEFT_JUDGED, /* and each has been looked at from outside of the cell */
};

/* What a call waits for that asks a job. */
enum job_wish {
	WISH_NONE,
	WISH_ANSWER, /* the worker's */
	WISH_DONE, /* the worker's, that it has typed or signalled; then a moment for effects */
	WISH_EFFECT, /* the end of that moment */
	WISH_END,    /* the job's end, or the call's own deadline */
};

/* What a person is to approve before a tool of the front does it. */
struct leave {
	char *subject;
	char hash[HASH_HEX + 1]; /* of its content, as the tool has it */
	bool given;
};

struct running {
	struct session *session;
	struct running *next, *previous;
	char *id;
	const struct tool *tool;
	struct value *arguments;
	struct value *capped; /* numbers of them (schema_cap.h); NULL: none */
	struct value *plan;  /* what runs in place of their command (policy.h); or NULL */
	struct value *trace; /* of the request; or NULL */
	/* what its command destroys, for its answer (policy/command_harm.h); NULL: nothing much */
	const struct command_harm *harm;
	int fds[3];
	size_t fd_count;
	enum running_state state;
	bool cancelled;
	bool audits; /* its worker first looks at what an earlier call may have left */
	enum audit_reach reach; /* of that */
	size_t audits_of;       /* `audits_wanted` when it was sent */
	bool quiet;             /* the session's own: no event tells of it */
	bool terse;             /* its details may be left out */
	bool by_front; /* the front's own: its policy need not name a tool that only reads */
	bool keeping; /* the result stands; a checkpoint is made before it is told */
	bool begun;   /* a worker had it: it may have changed something */
	bool looked;  /* a checkpoint has seen what it changed */
	bool lost;    /* its worker ended before it answered */
	uint32_t log; /* the number of its undo log */
	int log_fd;   /* -1: it has none */
	int plan_fd;  /* what the session has changed, for the patch; -1: none */
	/* of what it writes, and what its dead worker's said: a fresh one finishes that */
	struct pending_journal journal;
	struct value *unfinished;
	bool mends; /* its worker was given what dead fronts left unfinished */
	bool alone; /* when it was sent: there was no other, and more than one processor */
	bool heralds; /* its worker says when the result is about to come */
	bool mending; /* it is nothing but what dead fronts left; auditing, too */
	bool mended;  /* its worker has finished that */
	int64_t sent_ns; /* when its tool's worker got it, by the clock of files; 0: not yet */
	enum left_state left_state;
	struct value *left; /* what killed gits may have left (audit.h); NULL: nothing */
	bool auditing; /* its worker died; what it left is looked at before it is answered */
	double timeout_s; /* < 0: none */
	int64_t deadline_ms;
	int64_t began_us;
	struct worker_end *worker;
	/* in a batch: it begins when `before` is over, and `after` when it is; or NULL */
	struct running *before, *after;
	bool recalled;       /* its worker has calls behind it that others make now */
	struct timer recall; /* of the first of a batch, when it is slow */
	struct timer kill_timer;
	bool asks;             /* it was granted the network */
	uint64_t number;       /* its name for the proxy; never 0 */
	struct value *refused; /* hosts, until the result is there; NULL: none */
	struct job *job;       /* this is its work; NULL: an ordinary call */
	struct timer patience; /* then it becomes a job */
	double patience_s;     /* 0: none */
	struct job *awaits;    /* the job whose end or answer it waits for */
	enum job_wish wish;
	uint64_t ask;           /* the job's number of its question */
	int64_t question;       /* its worker's, that waits for an answer; 0: none */
	struct verdict *wanted; /* a person is to be asked for its command; NULL: it may run */
	struct leave *leave;  /* what its tool wants approved (tool.h); or NULL */
	struct extra *extras; /* folders that it wants besides (extra.h); or NULL */
	bool asked_worker;    /* one that sees them is on its way */
	struct approval *first_approval; /* in the order of asking */
	struct value *granted;           /* hosts, for as long as it runs; or NULL */
	struct tool_result result;
	void (*ending)(void *context, struct tool_result *result);
	void (*done)(void *context, struct running *running);
	void *context;
};

/* Of one that is counted: not without a tool, unless it is new or done. */
void running_set_state(struct running *running, enum running_state state);
/* It starts no program. */
bool running_is_file_call(const struct running *running);
/* What calls of TOOL do belongs to nobody's steps. */
bool running_is_ours(const struct tool *tool);
/* It starts programs, or may write: for somebody. */
bool running_is_command(const struct running *running);
bool running_is_writer(const struct running *running);
/* The only call under way, and it and its worker have a processor each. */
bool running_is_alone(const struct running *running);
/* How many calls of file tools may begin beside those that are busy: SEARCHES, or others. */
size_t running_room(const struct session *session, bool searches);
/* How many of these are queued. */
size_t running_queued(const struct session *session, bool searches);
/* How many commands may run at once, by the limit of descriptors. */
size_t running_commands_most(void);
/*
 * An answer is expected within US: the loop stays awake for it, unless workers that are being made
 * want the only other processor; then it would wait for ours.
 */
void running_stay(struct session *session, int64_t us);
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
/* What RESULT claims of hosts is worth this in SESSION's cell. */
enum claims_hosts session_weighs_hosts(const struct session *session,
				       const struct tool_result *result);
/* What it was granted ends, and what was refused comes into its result. */
void running_end_network(struct running *running);
/* Cancel whatever is under way. */
void running_cancel_all(struct session *session);

/* What of `seen` may matter to CALL, and what came back of it (session_memory.c). */
struct value *session_memory_for(struct session *session, const struct running *running);
void session_memory_take(struct session *session, struct running *running);
/* RUNNING NULL: of no call. */
bool session_emit(struct session *session, enum event_kind kind,
		  const struct running *running, struct str text,
		  const struct value *data, struct err *err);
/* May RUNNING be started as a job? False: its result says why not (session_job.c). */
bool job_may_begin(struct running *running);
/* Does RUNNING ask to be a job from the beginning? */
bool job_is_wanted(const struct running *running);
/* The call of ACTION in a sentence: job {"id": 3, "action": "wait"}. */
void job_add_call(const struct job *job, const char *action, struct buf *text);
/* What JOB is, in some words: the beginning of its command, or its tool. */
void job_add_label(const struct job *job, struct buf *text);
/* Does any job but EXCEPT (or NULL) run that can write? */
bool job_writes(const struct session *session, const struct job *except);
/* From now on RUNNING may take its patience_s (0: for ever), then it becomes a job. */
void job_begin_patience(struct running *running);
void job_free_all(struct session *session);

/* running.c: RUNNING is busy from now on, with WORKER. */
void running_begin(struct running *running, struct worker_end *worker);
/* What WORKER is told of it; false when it does not fit. */
bool running_print(struct running *running, const struct worker_end *worker,
		   struct buf *text);

/*
 * Calls that only read may be sent to a worker together, so that neither side sleeps between
 * them (running_batch.c). batch_print: some of the queue stand behind RUNNING, which WORKER is
 * about to get, and TEXT is all of them; false: it goes alone. batch_recall: the others of its
 * batch are queued again. batch_go_on: RUNNING has its result; true when WORKER is busy with the
 * next.
 */
bool batch_print(struct running *running, const struct worker_end *worker, struct buf *text);
void batch_recall(struct running *running);
bool batch_go_on(struct running *running, struct worker_end *worker);

/* A quiet call of the session's own, of TOOL, that nobody has judged (session_call.c). */
struct running *running_of_session(struct session *session, const struct tool *tool);
/* What killed fronts left in folders that were granted to them (session_mend.c). */
void session_mend(struct session *session);

/* The end of a call that had a worker (running_audit.c). */
void running_finish_next(struct running *running);
/*
 * The worker died and no audit was made. One that could write is looked after by a fresh
 * worker before the call is answered; the result stands already.
 */
void running_finish_audited(struct running *running);
/* How far RUNNING's worker looks first. */
enum audit_reach audit_reach_of(const struct running *running);
/*
 * The result of RUNNING has come. True: it is answered after a fresh worker has looked where its
 * audit did not reach, as in a cell of one call (in others the session's end does that), or has
 * removed what a killed git left.
 */
bool running_looks_again(struct running *running);
/*
 * The session's end, nothing of it runs: look where no audit has, and tell it as a notice. Where
 * that cannot be done the next session does it. ALL: also in the trees where checkpoints looked.
 */
void session_look_whole(struct session *session, bool all);
/* running_answer.c: it ends without an answer of a worker, for WHY; running_finish is the caller's. */
void running_fail(struct running *running, const char *why);
/* It ends because there is no cell any more. */
void running_fail_without_cell(struct running *running);
/*
 * The worker did not answer in time: what the deadline or the cancel meant is carried
 * out from outside. Of its kill_timer.
 */
void running_kill_due(struct timer *timer);
/* A frame of its worker; NULL: that is lost. As worker_end.frame. */
bool running_frame_arrived(void *context, const struct frame *frame);
/*
 * Files that a killed git may have left (running_left.c). running_take_left: those that RESULT
 * notes become RUNNING's. running_left_waits: some are there that no worker has been asked to
 * remove; they are judged then. running_left_carried: what the look's worker is told, the
 * caller's; NULL: nothing.
 */
void running_take_left(struct running *running, struct tool_result *result);
bool running_left_waits(struct running *running);
struct value *running_left_carried(const struct running *running);
/* The same of a session that was killed, before the first call of this one. */
void session_put_left_away(struct session *session);

/* Nothing is due any more, unless one more worker has died since this audit was sent for. */
void running_audit_done(const struct running *running, const struct tool_result *result);
void running_audit_arrived(struct running *running, const struct frame *frame);

/* RUNNING's worker tells or asks (tell.h): what came is not trusted (running_tell.c). */
void running_told(struct running *running, struct str payload);
void running_asked(struct running *running, struct str payload);

/* RUNNING's tool is ELSEWHERE (running_elsewhere.c). */
void elsewhere_call(struct running *running);
void elsewhere_cancel(struct running *running);

/* RUNNING is a call of the tool `job` (session_jobs.c). */
void jobs_call(struct running *running);
/* Ask JOB's worker, or answer at once for one that gives no answers. */
void jobs_read(struct running *running, struct job *job);
/* RUNNING, which asks a job, is cancelled. */
void jobs_cancel(struct running *running);
/* JOB's worker has answered / says that a program waits for input; JOB has ended. */
void jobs_answered(struct job *job, const struct frame *frame);
void jobs_waits(struct job *job);
void jobs_ended(struct job *job);

/* May it run, or be asked for (`wanted`)? False: its result says why not (session_judge.c). */
bool session_judge(struct running *running, const struct request *request);
/* Its result is that it was denied. */
void session_deny(struct running *running, const char *because, const char *rule);
/* Its command may run. */
void running_unwant(struct running *running);
/* What was judged and announced begins (session_call.c). */
void running_proceed(struct running *running);
