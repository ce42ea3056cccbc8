/*
 * session_parts: the inside of a session and its calls, for session*.c and running*.c
 * only.
 */
#pragma once
#include "base/hash.h"
#include "base/memory.h"
#include "cell/cell.h"
#include "guard/guard.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/denial.h"

#include <stdbool.h>
#include <stdint.h>

struct keeper;

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
	/* the first that is queued; running_set_state keeps it */
	struct running *first_queued;
	size_t queued_files, queued_others, busy_files, busy_others;
	size_t queued_searches, busy_searches; /* of the file calls */
	size_t queued_commands, busy_writers;  /* of a person or model; jobs included */
	bool answers_questions;
	bool answers_approvals, relays_approvals;
	bool one_call; /* opened for one call: the cell ends with it */
	size_t next_id;
	size_t cores;
	/* at the same time: with more there would be no descriptors left */
	size_t commands_most;
	int cancel_fd;
	struct watch cancel_watch;
	char *folder;          /* where the next command starts */
	struct value *seen;    /* real path -> mark */
	struct value *aliases; /* path as asked -> real path, where they differ */
	/*
	 * The last wall-clock time at which everything that calls had done was audited
	 * and no other call that could write was running. 0: never.
	 */
	int64_t quiet_ns;
	size_t audits_wanted; /* how many audits by a fresh worker were asked for */
	/* found before the first call; told in the first result; or NULL */
	struct tool_result *said;
	/*
	 * files that killed gits left and that other processes may hold (running_left.c)
	 */
	struct value *held;
	bool unseen; /* commands may have left something where no audit has looked */
	/*
	 * a result has said that files left in /tmp exist in the cell only (layer_tell.h)
	 */
	bool told_own;
	bool taken_over; /* files that a dead front's commands left are not audited yet */
	char **changed;  /* made anew by session_changed */
	struct job *first_job; /* by number */
	int64_t next_job;
	struct keeper *keeper; /* NULL: nothing can be undone */
	/* what a person granted until the session ends (approval.c): grant -> true */
	struct value *granted;
	/*
	 * granted folders that were written in: the shown name -> true when granted for
	 * the session
	 */
	struct value *outside;
	struct widening *first_widening; /* in the order of asking (extra.c) */
	struct timer widened;            /* due when the first of these is answered */
	int64_t last_approval; /* below 0: the number of the last question to a person */
};

/*
 * A call is also RUNNING_NEW while it awaits a job: it has no worker and is not counted.
 * RUNNING_AHEAD is like RUNNING_QUEUED, but a worker already has the call, behind another
 * call (running_batch.c). A RUNNING_AHEAD call is not counted either.
 */
enum running_state {
	RUNNING_NEW,
	RUNNING_AHEAD,
	RUNNING_QUEUED,
	RUNNING_BUSY,
	RUNNING_DONE
};

/*
 * A call that goes on after its caller was answered. Its `work` is in the list of the
 * session's calls.
 */
struct job {
	struct session *session;
	struct job *next;
	int64_t number;
	struct running *work;
	int64_t ended_us; /* 0: it runs */
	/* how many questions its worker was asked and has answered, in order */
	uint64_t asked, answered;
	/* its worker has said, since the last question, that a program waits for input */
	bool waits;
	bool told; /* somebody has been shown its end */
};

/* How far the files are known that a killed git may have left. */
enum left_state {
	LEFT_UNSEEN, /* no worker has looked */
	LEFT_SEEN,   /* those that were found are in `left` */
	LEFT_JUDGED, /* each of them has been looked at from outside of the cell */
};

/* The event that a call which asks a job waits for. */
enum job_wish {
	WISH_NONE,
	WISH_ANSWER, /* the worker's answer */
	/* the worker's word that it has typed or signalled; then a moment for effects */
	WISH_DONE,
	WISH_EFFECT, /* the end of that moment */
	WISH_END,    /* the job's end, or the call's own deadline */
};

/* An action that a person must approve before a tool of the front does it. */
struct leave {
	char *subject;
	/* the hash of the content that is approved, as the tool has it */
	char hash[HASH_HEX + 1];
	bool given;
};

struct running {
	struct session *session;
	struct running *next, *previous;
	char *id;
	const struct tool *tool;
	struct value *arguments;
	/* the numbers of them that were capped (schema_cap.h); NULL: none */
	struct value *capped;
	/* runs in place of the command in the arguments (policy.h); or NULL */
	struct value *plan;
	struct value *trace; /* of the request; or NULL */
	/*
	 * how its command destroys data, to be told in its answer
	 * (policy/command_harm.h); NULL: nothing much
	 */
	const struct command_harm *harm;
	int fds[3];
	size_t fd_count;
	enum running_state state;
	bool cancelled;
	bool audits; /* its worker first looks at what an earlier call may have left */
	enum audit_reach reach; /* of that audit */
	size_t audits_of;       /* `audits_wanted` when it was sent */
	bool quiet;             /* the session's own: no event tells of it */
	bool terse;             /* its details may be left out */
	/* called by the front: the policy need not name a tool that only reads */
	bool by_front;
	/* the result stands; a checkpoint is made before the result is told */
	bool keeping;
	bool begun;   /* a worker had it: it may have changed something */
	bool looked;  /* a checkpoint has seen what it changed */
	bool lost;    /* its worker ended before it answered */
	uint32_t log; /* the number of its undo log */
	int log_fd;   /* -1: it has none */
	int plan_fd;  /* the changes of the session, for the patch; -1: none */
	/*
	 * The journal of the files that it writes, and the unfinished writes that the
	 * journal of its dead worker lists; a fresh worker finishes those.
	 */
	struct pending_journal journal;
	struct value *unfinished;
	bool mends; /* its worker was given the writes that dead fronts left unfinished */
	/* when it was sent there was no other call, and more than one processor */
	bool alone;
	bool heralds; /* its worker says when the result is about to come */
	bool mending; /* it only finishes what dead fronts left; `auditing` is set, too */
	bool mended;  /* its worker has finished those writes */
	/* when the worker of its tool got it, by the clock of files; 0: not yet */
	int64_t sent_ns;
	enum left_state left_state;
	/* files that killed gits may have left (audit.h); NULL: none */
	struct value *left;
	/* a fresh worker looks at what the call left before the call is answered */
	bool auditing;
	double timeout_s; /* < 0: none */
	int64_t deadline_ms;
	int64_t began_us;
	struct worker_end *worker;
	/*
	 * in a batch: the call that ends before this one begins, and the call that begins
	 * after this one; or NULL
	 */
	struct running *before, *after;
	/* its worker still has later calls, which other workers make now */
	bool recalled;
	/* of the first call of a batch: due when that call is slow */
	struct timer recall;
	struct timer kill_timer;
	bool asks;       /* it was granted the network */
	uint64_t number; /* its name for the proxy; never 0 */
	/* hosts refused to it, until the result is there; NULL: none */
	struct value *refused;
	/* the job whose work this call is; NULL: an ordinary call */
	struct job *job;
	struct timer patience; /* due when the call becomes a job */
	double patience_s;     /* 0: none */
	struct job *awaits;    /* the job whose end or answer it waits for */
	enum job_wish wish;
	uint64_t ask; /* the number of its last question */
	/* the id of the question that waits for an answer; 0: none */
	int64_t question;
	/* the verdict about which a person is asked; NULL: it may run */
	struct verdict *wanted;
	struct leave *leave; /* what its tool wants approved (tool.h); or NULL */
	/* folders outside of the policy that it wants (extra.h); or NULL */
	struct extra *extras;
	bool asked_worker; /* a worker that sees those folders is on its way */
	struct approval *first_approval; /* in the order of asking */
	/* host -> a person's answer, for as long as it runs; or NULL */
	struct value *granted;
	struct tool_result result;
	void (*ending)(void *context, struct tool_result *result);
	void (*done)(void *context, struct running *running);
	void *context;
};

/*
 * Move RUNNING to STATE and update the session's counts. A call without a tool may only
 * be new or done.
 */
void running_set_state(struct running *running, enum running_state state);
/* RUNNING starts no program. */
bool running_is_file_call(const struct running *running);
/* Calls of TOOL are the session's own: their changes belong to nobody's steps. */
bool running_is_ours(const struct tool *tool);
/*
 * RUNNING starts programs (command), or may write (writer), and is not the session's own.
 */
bool running_is_command(const struct running *running);
bool running_is_writer(const struct running *running);
/* RUNNING is the only call under way, and it and its worker have a processor each. */
bool running_is_alone(const struct running *running);
/* How many file calls may begin beside the busy ones; SEARCHES: how many searches. */
size_t running_room(const struct session *session, bool searches);
/* How many file calls are queued: only searches when SEARCHES, else all others. */
size_t running_queued(const struct session *session, bool searches);
/* How many commands may run at the same time, by the limit of descriptors. */
size_t running_commands_most(void);
/*
 * An answer is expected within US microseconds: keep the loop awake for it. The loop may
 * sleep when workers are being made and want the only other processor, because they would
 * then wait for ours.
 */
void running_stay(struct session *session, int64_t us);
/*
 * The queued call that may begin next; NULL: none. *WAITING: how many could begin, with a
 * worker each.
 */
struct running *running_next_queued(const struct session *session, size_t *waiting);
/* RUNNING has its tool and is still being judged: its worker may already wake up. */
void running_expect(const struct running *running);
/* Give queued calls to idle workers. */
void running_dispatch(struct session *session);
/*
 * The result stands in running->result: fill in the rest, tell the sink, remember what
 * was read.
 */
void running_finish(struct running *running);
/*
 * TARGET was refused to the call NUMBER, or, when NUMBER is 0, to all calls that run
 * programs.
 */
void running_refused(void *context, uint64_t number, const char *target, const char *remedy);
/*
 * Grant RUNNING the network. Returns the variables by which its programs reach it, owned
 * by the caller; NULL: there are none.
 */
struct value *running_begin_network(struct running *running);
/* How far claims about hosts in RESULT are believed in SESSION's cell. */
enum claims_hosts session_weighs_hosts(const struct session *session,
				       const struct tool_result *result);
/* End the network grant of RUNNING and add the refused hosts to its result. */
void running_end_network(struct running *running);
/* Cancel all calls under way except jobs and the session's own calls. */
void running_cancel_all(struct session *session);

/*
 * session_memory_for: the marks in `seen` that may matter to RUNNING.
 * session_memory_take: remember the marks that came with its result (session_memory.c).
 */
struct value *session_memory_for(struct session *session, const struct running *running);
void session_memory_take(struct session *session, struct running *running);
/* Send an event to the sink. RUNNING NULL: the event belongs to no call. */
bool session_emit(struct session *session, enum event_kind kind,
		  const struct running *running, struct str text,
		  const struct value *data, struct err *err);
/* May RUNNING be started as a job? False: its result says why not (session_job.c). */
bool job_may_begin(struct running *running);
/* Does RUNNING ask to be a job from the beginning? */
bool job_is_wanted(const struct running *running);
/* Append to TEXT the call that does ACTION to JOB: job {"id": 3, "action": "wait"}. */
void job_add_call(const struct job *job, const char *action, struct buf *text);
/* Append to TEXT a short name of JOB: the beginning of its command, or its tool. */
void job_add_label(const struct job *job, struct buf *text);
/* Does a job other than EXCEPT (or NULL) run that can write? */
bool job_writes(const struct session *session, const struct job *except);
/* After patience_s from now RUNNING becomes a job; 0: never. */
void job_begin_patience(struct running *running);
void job_free_all(struct session *session);

/* running.c: RUNNING is busy from now on, with WORKER. */
void running_begin(struct running *running, struct worker_end *worker);
/* Append to TEXT the message that tells WORKER of RUNNING; false when it does not fit. */
bool running_print(struct running *running, const struct worker_end *worker,
		   struct buf *text);

/*
 * Calls that only read may be sent to one worker together, so that neither side sleeps
 * between them (running_batch.c). batch_print: WORKER is about to get RUNNING; put queued
 * calls behind RUNNING and append all of them to TEXT. False: RUNNING goes without
 * others. batch_recall: queue the other calls of RUNNING's batch again. batch_go_on:
 * RUNNING has its result; true when WORKER is busy with the next call.
 */
bool batch_print(struct running *running, const struct worker_end *worker, struct buf *text);
void batch_recall(struct running *running);
bool batch_go_on(struct running *running, struct worker_end *worker);

/* A quiet call of the session's own, of TOOL, that nobody has judged (session_call.c). */
struct running *running_of_session(struct session *session, const struct tool *tool);
/*
 * Finish what killed fronts had begun to write in folders that were granted to them
 * (session_mend.c).
 */
void session_mend(struct session *session);

/* RUNNING, which had a worker, ends, now or after its checkpoint (running_audit.c). */
void running_finish_next(struct running *running);
/*
 * The worker of RUNNING died before any audit. When it could write, a fresh worker audits
 * before the call is answered. The result of the call stands already.
 */
void running_finish_audited(struct running *running);
/* How far RUNNING's worker audits before it makes the call. */
enum audit_reach audit_reach_of(const struct running *running);
/*
 * The result of RUNNING has come. True: the call is answered only after a fresh worker
 * has looked where the call's own audit did not reach, or has removed files that a killed
 * git left. The first happens in a cell of one call only; in other cells the session's
 * end looks there.
 */
bool running_looks_again(struct running *running);
/*
 * At the session's end, when none of its calls runs: look where no audit has looked, and
 * report the findings as a notice. When that is impossible the next session does it. ALL:
 * look also in the trees where checkpoints looked.
 */
void session_look_whole(struct session *session, bool all);
/*
 * running_answer.c: RUNNING fails without an answer of a worker, for the reason WHY. The
 * caller then calls running_finish.
 */
void running_fail(struct running *running, const char *why);
/* RUNNING ends because there is no cell any more. */
void running_fail_without_cell(struct running *running);
/*
 * The worker did not answer in time: kill it from outside, for the deadline or the
 * cancel. This is the `due` of kill_timer.
 */
void running_kill_due(struct timer *timer);
/*
 * A frame of the call's worker has come; NULL: the worker is lost. As worker_end.frame.
 */
bool running_frame_arrived(void *context, const struct frame *frame);
/*
 * Files that a killed git may have left (running_left.c). running_take_left: move the
 * files that RESULT notes to RUNNING. running_left_waits: judge the files; true when a
 * worker must still be asked to remove some. running_left_carried: the message for the
 * worker that looks, owned by the caller; NULL: none.
 */
void running_take_left(struct running *running, struct tool_result *result);
bool running_left_waits(struct running *running);
struct value *running_left_carried(const struct running *running);
/* The same for a session that was killed, before the first call of this session. */
void session_put_left_away(struct session *session);

/*
 * The audit in RESULT is done. No audit is due any more, unless this one failed, a job
 * may write, or another audit was asked for after RUNNING was sent.
 */
void running_audit_done(const struct running *running, const struct tool_result *result);
void running_audit_arrived(struct running *running, const struct frame *frame);

/*
 * RUNNING's worker reports or asks something (tell.h). PAYLOAD is not trusted
 * (running_tell.c).
 */
void running_told(struct running *running, struct str payload);
void running_asked(struct running *running, struct str payload);

/* Begin or cancel RUNNING, whose tool has a `begin` of its own (running_elsewhere.c). */
void elsewhere_call(struct running *running);
void elsewhere_cancel(struct running *running);

/* Carry out RUNNING, a call of the tool `job` (session_jobs.c). */
void jobs_call(struct running *running);
/*
 * Ask JOB's worker for RUNNING, or answer RUNNING immediately when the job gives no
 * answers.
 */
void jobs_read(struct running *running, struct job *job);
/* RUNNING, which asks a job, is cancelled. */
void jobs_cancel(struct running *running);
/*
 * jobs_answered: JOB's worker has answered a question. jobs_waits: the worker says that a
 * program waits for input. jobs_ended: JOB has ended.
 */
void jobs_answered(struct job *job, const struct frame *frame);
void jobs_waits(struct job *job);
void jobs_ended(struct job *job);

/*
 * May RUNNING run, or may a person be asked for it (`wanted`)? False: its result says why
 * not (session_judge.c).
 */
bool session_judge(struct running *running, const struct request *request);
/* Make a denial the result of RUNNING. */
void session_deny(struct running *running, const char *because, const char *rule);
/* The command of RUNNING may run: drop the question about it. */
void running_unwant(struct running *running);
/* Begin RUNNING, which was judged and announced (session_call.c). */
void running_proceed(struct running *running);
