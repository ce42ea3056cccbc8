/*
 * session: carries out the calls of one conversation. It holds one policy, the cell made
 * from the policy, and the marks of the files read so far. It is the only way from a
 * request to a result (ARCHITECTURE.md): tool, schema, policy, events, cell, result. The
 * command line, the agent loop and the C library all call session_start.
 *
 * One thread. Open the session from a thread that lives as long as the session, because
 * the cell dies with the thread that opened it.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "tool/event.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>

struct cell_spec;
struct session;
struct shape_shown;
struct undo_aim;

/* As minimum_level: a cell of any strength will do. */
enum { SESSION_ANY_LEVEL = -1 };

struct session_options {
	const char *workspace; /* a folder; may be a symlink: the user named it */
	/* the user's name for it, when WORKSPACE was resolved before; or NULL */
	const char *workspace_name;
	struct policy *take_policy;      /* moved into the session */
	const struct tool *const *tools; /* NULL-ended; must outlive the session */
	struct event_sink sink;          /* event NULL: nobody listens */
	/*
	 * the front's own loop, which outlives the session; NULL: the session makes one
	 */
	struct loop *loop;
	/* The program that is the cell's anchor, by exec with an empty environment (NULL:
	 * /proc/self/exe). It must call session_role() first thing in main. */
	const char *program;
	/*
	 * True for one-shot verbs that read no key: no second exec; the caller has
	 * wiped its environment already.
	 */
	bool direct;
	/*
	 * How many workers are kept ready beside the busy ones: 2 for conversations; with
	 * `direct` workers are made when they are needed.
	 */
	unsigned ready_workers;
	/* The environment from which shape.h takes its variables; NULL: environ */
	const char *const *caller_environment;
	/* the name server that a proxy asks; NULL: the machine's own */
	const char *resolver;
	/* session_open fails below this enum sandbox_level; 0: L3; SESSION_ANY_LEVEL */
	int minimum_level;
	/*
	 * Files that no command may change or create, even inside a writable tree: the
	 * files that the policy was read from. NULL-ended, or NULL.
	 */
	const char *const *protected_files;
	/*
	 * The folder of all projects' undo stores, made when it is first needed
	 * (undo_store.h). NULL: the steps of this session cannot be undone.
	 */
	const char *undo_folder;
	/* of all stores together; 0: UNDO_ALL_MAX (undo_projects.h) */
	uint64_t undo_space;
	/* The steps that this session is opened to undo (undo_aim.h); NULL: none. */
	const struct undo_aim *undoes;
	/*
	 * More trees and files that are shown read-only, each at its own path; ended by
	 * {0} (shape.h). NULL: none.
	 */
	const struct shape_shown *shown;
	/*
	 * The receiver behind the sink answers EVENT_QUESTION with running_answer. False:
	 * each question is declined, and no event reports it.
	 */
	bool answers_questions;
	/*
	 * The receiver behind the sink answers EVENT_APPROVAL_WANTED. False: a call for
	 * which the policy would ask is refused immediately.
	 */
	bool answers_approvals;
	/*
	 * The receiver passes approvals on to somebody else and keeps the time limit
	 * itself: a question is over when the receiver says so.
	 */
	bool relays_approvals;
	int cancel_fd; /* readable: cancel all calls under way; -1: none */
	/*
	 * The caller calls session_rest when it waits for something else. Everything that
	 * is made ahead of calls, except the first worker, is made then, and not while a
	 * call has to be quick.
	 */
	bool rests;
	/*
	 * Work that the caller has to do anyway. It is done once, while other processes
	 * make the cell, which takes some milliseconds (not with `direct`). NULL:
	 * nothing.
	 */
	void (*meanwhile)(void *context);
	void *meanwhile_context;
};

/*
 * Make the cell and wait until its first worker is walled in. With `direct` the first
 * call waits for that worker instead, and session_broken tells why the cell failed. On
 * failure nothing has run. ERR.code is ECHILD when the cell could not be built (exit code
 * 5; `exec` 125); otherwise the workspace or a policy entry is wrong (exit code 1).
 */
bool session_open(const struct session_options *options, struct session **session,
		  struct err *err);

/*
 * Settle the tools that POLICY names against TOOLS (NULL-ended), the tools that exist.
 * For a caller that lists tools without a cell; session_open does this itself.
 */
bool session_check_tools(struct policy *policy, const struct tool *const *tools,
			 struct err *err);

/*
 * Fill SPEC with the specification of the cell that session_open would make for POLICY,
 * without making the cell; for a caller that explains it. POLICY is settled
 * (policy_set_path). ERR as session_open's. After success and after failure, call
 * shape_tidy and spec_fini on SPEC, which the caller has initialised.
 */
bool session_shape(const struct session_options *options, struct policy *policy,
		   struct cell_spec *spec, struct err *err);

/* Ends all calls, kills everything in the cell, waits for it. NULL is fine. */
void session_close(struct session *session);

/*
 * Call this in main(), before anything else: when this process was started as the anchor
 * of a cell, or as its groups process, it plays that role and never returns. TOOLS is the
 * table of tools that workers run.
 */
void session_role(int argc, char **argv, const struct tool *const *tools);

struct loop *session_loop(struct session *session);
int session_level(const struct session *session); /* 0..3 */
/*
 * Append to OUT one sentence about the files that RESULT, of a call of SESSION, left
 * where they exist in the cell only, or nothing.
 */
void session_print_own(const struct session *session, const struct tool_result *result,
		       struct buf *out);
/* Why the cell could not be built or serves no call any more; NULL while it does. */
const char *session_broken(const struct session *session);
const char *session_workspace(const struct session *session); /* real, absolute */
const struct policy *session_policy(const struct session *session);
/*
 * MESSAGES is output that did not pass through its call, such as that of `exec`. Add to
 * RESULT, as denials, the files and hosts that a program says in MESSAGES it could not
 * write or reach (claims.h).
 */
void session_judge_messages(const struct session *session, struct str messages,
			    struct tool_result *result);
/*
 * The tools this session's policy has, NULL-ended, without internal ones; valid as long
 * as the session, or until session_set_tools.
 */
const struct tool *const *session_tools(const struct session *session);
/*
 * Replace the session's tools by TOOLS (NULL-ended). TOOLS and the old tools outlive the
 * session, because calls of old tools may be under way. The tools that the cell carries
 * out itself stay as they were. False: the policy does not fit TOOLS, and nothing has
 * changed.
 */
bool session_set_tools(struct session *session, const struct tool *const *tools,
		       struct err *err);

/*
 * SEEN lists files that an earlier process of this conversation has read: path -> mark,
 * as EVENT_TOOL_ENDED has them in `seen`. A tool that wants to write such a file notices
 * when the file has changed since.
 */
void session_recall(struct session *session, const struct value *seen);

/*
 * session_run: the name under which this session's steps are kept (`undo --list` shows
 * it). session_adopt: go on under the name RUN, which an earlier process of this
 * conversation, or another session, used in this workspace. The steps of RUN are then
 * this session's steps. They are part of its patch as far as this session may read the
 * files that they changed. HANDED: the steps were in a patch already. The changes of a
 * command that was running when that process was killed are nobody's step.
 */
const char *session_run(const struct session *session);
void session_adopt(struct session *session, const char *run, bool handed);

struct request {
	const char *tool;
	const struct value *arguments; /* an object; NULL: see arguments_text */
	struct str arguments_text;     /* JSON as a model or person wrote it */
	const char *id;                /* for events; NULL: "c1", "c2", … */
	int fds[3]; /* only for internal tools: become the program's 0-2 */
	size_t fd_count;
	/* may call internal tools, and tools that only read without being named */
	bool by_front;
	/*
	 * Set by the front: use this tool, which is in no table, in the place of the one
	 * named `tool`. It is internal, has a `schema` and outlives the call.
	 */
	const struct tool *made;
	bool quiet; /* the session's own: no event tells of it, no cancel_fd ends it */
	/* nobody looks at its details: a tool that only reads may leave them out */
	bool terse;
	/*
	 * The trace of the request that this call works for (trace.h). The call's
	 * programs get it, and the code that carries out the call ELSEWHERE; or NULL. A
	 * reference is taken.
	 */
	struct value *trace;
	double timeout_s; /* > 0: this deadline instead of the tool's; < 0: none */
	/* > 0: the deadline is never later than this, wherever it comes from */
	double most_s;
	double patience_s; /* > 0: a call that takes longer becomes a job, where it can */
	/*
	 * Called when the result stands, before an event reports it: the callee may add
	 * to the result. CONTEXT is that of session_start. Not called for the end of a
	 * job. NULL: nobody adds anything.
	 */
	void (*ending)(void *context, struct tool_result *result);
};

struct running; /* one call under way */

/*
 * Take a call through steps 1 to 6. Never fails: an error becomes the result, which is
 * then ready immediately. DONE (may be NULL) is called from the loop, or by session_start
 * itself when the result is ready immediately.
 */
struct running *session_start(struct session *session, const struct request *request,
			      void (*done)(void *context, struct running *running),
			      void *context);
bool running_is_done(const struct running *running);
/* Has the call, with its descriptors, been sent to a worker? */
bool running_is_sent(const struct running *running);
/* The result; valid until running_free. Only when done. */
const struct tool_result *running_result(const struct running *running);
/*
 * Answer the question whose id in EVENT_QUESTION is QUESTION. ANSWER is an object with an
 * "action". False: the question is not open, or ANSWER is wrong or could not be sent.
 */
bool running_answer(struct running *running, int64_t question, const struct value *answer,
		    struct err *err);
/* The same for a caller that knows the CALL only by its id. */
bool session_answer(struct session *session, const char *call, int64_t question,
		    const struct value *answer, struct err *err);
/*
 * The person who answered approval questions is gone: refuse all open and all future
 * ones.
 */
void session_hear_nobody(struct session *session);
/*
 * For the code that carries out a tool ELSEWHERE: the arguments and the id of RUNNING,
 * valid until it ends.
 */
const struct value *running_arguments(const struct running *running);
const char *running_id(const struct running *running);
const struct value *running_trace(const struct running *running); /* or NULL */
/*
 * Put a question to the caller of RUNNING. KIND and REQUEST are those of a plugin's
 * question ("form", "url", "several"). The tool's `answered` is called later, perhaps
 * before running_ask returns; it is not called when the call ends first. While a question
 * is open the call's deadline waits. False: nobody can be asked, or a question is open
 * already.
 */
bool running_ask(struct running *running, const char *kind, const struct value *request);
/*
 * End RUNNING with TAKE_RESULT, which is moved. A call that has already ended keeps its
 * result.
 */
void running_end(struct running *running, struct tool_result *take_result);
/*
 * Report how far RUNNING is, or a line for its log, as call_progress and call_log do
 * (call.h).
 */
void running_progress(struct running *running, double progress, double total,
		      const char *message);
void running_log(struct running *running, const char *level, const char *logger,
		 struct str text);
/* The result comes as CANCELLED within 500 ms. */
void running_cancel(struct running *running);
void running_free(struct running *running); /* cancels and waits when not done */

/*
 * A job is a call that goes on after its caller has been answered, until it ends, its
 * deadline comes or the session closes. People and models know a job by its number. The
 * tool `job` (IN_JOBS) reads its output, types input for it and sends it signals. At most
 * this many jobs run at the same time, and as many jobs that have ended are kept to be
 * read.
 */
enum { SESSION_JOBS_MAX = 16 };
/*
 * Let RUNNING go on as a job. The result for its caller then comes immediately, or within
 * seconds when the worker is first asked for the output so far. That result says how to
 * go on. False, and nothing has changed: RUNNING is done or cannot become a job now, or
 * the session is for one call, has no tool `job`, or already runs SESSION_JOBS_MAX jobs.
 */
bool running_become_job(struct running *running);

/*
 * Start REQUEST, turn the loop until the call is done, and move the result to *RESULT
 * (tool_result_fini it).
 */
void session_call(struct session *session, const struct request *request,
		  struct tool_result *result);

/*
 * Take the workspace as it is now as the state from which the next commands start. The
 * look begins immediately, so that it runs while the model thinks; the first command
 * waits for the end of the look. BEGINS_TURN: the steps from here on belong together
 * (undo --turn).
 */
void session_checkpoint(struct session *session, bool begins_turn);

/*
 * The caller now waits for something else, such as a model, and does not turn the loop.
 * Workers for the next calls are asked for, and what the last calls left is put away.
 * Returns immediately.
 */
void session_rest(struct session *session);

/*
 * Undo the step NUMBER of this workspace (0: the newest that can be undone), in the cell,
 * with the policy's rights (docs/undo.md). RESULT, initialised, says what became of it.
 */
void session_undo(struct session *session, uint32_t number, struct tool_result *result);

/*
 * Would the step NUMBER be undone with exactly the rights that it was made with? True
 * when there is no such step.
 */
bool session_made_step(struct session *session, uint32_t number);

/*
 * Undo all steps of AIM. AIM names the run of a patch (`run` and `last_step` in the
 * details of generate_patch), or a turn of one. The steps are undone only when each of
 * their files is still as they have left it and no step of somebody else came in between;
 * else nothing is undone. The undo of each step is a step of its own. An undo of a run
 * that was killed midway goes on when it is asked for again.
 */
void session_undo_run(struct session *session, const struct undo_aim *aim,
		      struct tool_result *result);

/*
 * The paths that this session has changed, as far as it knows them. A path below the
 * workspace is relative to it. NULL-ended; borrowed.
 */
const char *const *session_changed(struct session *session);
/* May the session have changed something since generate_patch was last done? */
bool session_has_news(const struct session *session);

/*
 * Counters of this session's writing. A caller compares two readings: did a file change
 * in between? A file tool reports what it wrote. A look after a command finds what the
 * command changed, perhaps only after the next call has begun.
 */
struct session_writes {
	uint64_t found;   /* changes, so far */
	uint64_t writers; /* calls that have ended and could have changed something */
	/* there are looks after commands; else FOUND counts file tools only */
	bool looks;
	bool writing; /* a job that could change something runs now */
};
void session_writes(const struct session *session, struct session_writes *writes);
