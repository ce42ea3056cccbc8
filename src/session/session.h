/*
 * session: a conversation's hands. It holds one policy, the cell made from it, and what
 * has been read so far, and it is the one way from a request to a result
 * (ARCHITECTURE.md): tool, schema, policy, events, cell, result. Command line, agent loop
 * and the C library all call session_start.
 *
 * One thread. Open it from a thread that lives as long as the session (the cell dies with
 * the thread that opened it).
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
	const char *workspace;      /* a folder; may be a symlink: the user named it */
	const char *workspace_name; /* by what name, when WORKSPACE is not it; or NULL */
	struct policy *take_policy; /* moved into the session */
	const struct tool *const *tools; /* NULL-ended; must outlive the session */
	struct event_sink sink;          /* event NULL: nobody listens */
	struct loop *loop; /* the front's own, which outlives the session; NULL: it makes one */
	/* The program that is the cell's anchor, by exec with an empty environment (NULL:
	 * /proc/self/exe). It must call session_role() first thing in main. */
	const char *program;
	/*
	 * True for one-shot verbs that read no key: no second exec; the caller has
	 * wiped its environment already.
	 */
	bool direct;
	/*
	 * Workers kept ready ahead beside the busy ones: 2 for conversations; `direct`
	 * ones make them on demand.
	 */
	unsigned ready_workers;
	/* What shape.h looks at is taken from here; NULL: environ */
	const char *const *caller_environment;
	const char *resolver; /* the name server a proxy asks; NULL: the machine's own */
	/* enum sandbox_level below which session_open fails; 0: L3; SESSION_ANY_LEVEL */
	int minimum_level;
	/*
	 * Files that no command may change or make, wherever a writable tree holds them: what
	 * the policy was read from. NULL-ended, or NULL.
	 */
	const char *const *protected_files;
	/*
	 * The folder of all projects' undo stores, made when it is wanted (undo_store.h); NULL:
	 * what this session does cannot be undone.
	 */
	const char *undo_folder;
	uint64_t undo_space; /* of all of them together; 0: UNDO_ALL_MAX (undo_projects.h) */
	/* The session is there to undo this (undo_aim.h); NULL: it is not. */
	const struct undo_aim *undoes;
	/*
	 * Trees and files that are shown read-only besides, each at a path of its own; ends with
	 * {0} (shape.h). NULL: none.
	 */
	const struct shape_shown *shown;
	/*
	 * Somebody behind the sink answers EVENT_QUESTION by running_answer. False: each is
	 * declined, and no event tells of it.
	 */
	bool answers_questions;
	/*
	 * Somebody behind the sink answers EVENT_APPROVAL_WANTED. False: what the policy would ask
	 * for is refused at once.
	 */
	bool answers_approvals;
	/* They pass it on to somebody, and keep the time: it is over when they say so. */
	bool relays_approvals;
	int cancel_fd; /* readable: cancel all calls under way; -1: none */
	/*
	 * The caller says when it waits for something else (session_rest): what is made ahead of
	 * calls beside the first worker is made then, and not while it has to be quick.
	 */
	bool rests;
	/*
	 * What the caller has to do anyway is done here (once, not with `direct`): the cell is
	 * made by other processes and takes some milliseconds. NULL: nothing.
	 */
	void (*meanwhile)(void *context);
	void *meanwhile_context;
};

/*
 * Make the cell and wait until its first worker is walled in; with `direct` the first call
 * waits for that, and session_broken tells why it failed. On failure nothing has run;
 * ERR.code is ECHILD when the cell could not be built (exit code 5; `exec` 125), else it is
 * the workspace or a policy entry that is wrong (exit code 1).
 */
bool session_open(const struct session_options *options, struct session **session,
		  struct err *err);

/*
 * Settle the tools that POLICY names against those there are (TOOLS, NULL-ended): for who
 * lists them without a cell. session_open does so itself.
 */
bool session_check_tools(struct policy *policy, const struct tool *const *tools,
			 struct err *err);

/*
 * The specification of the cell that session_open would make for POLICY, which is settled
 * (policy_set_path), without making it: for who explains it. ERR as session_open's. In either
 * case shape_tidy and spec_fini SPEC, which was initialised.
 */
bool session_shape(const struct session_options *options, struct policy *policy,
		   struct cell_spec *spec, struct err *err);

/* Ends all calls, kills everything in the cell, waits for it. NULL is fine. */
void session_close(struct session *session);

/*
 * In main(), before anything else: when this process was started as anchor of a cell, be
 * it and never return. TOOLS is the table of tools that workers run.
 */
void session_role(int argc, char **argv, const struct tool *const *tools);

struct loop *session_loop(struct session *session);
int session_level(const struct session *session); /* 0..3 */
/* What RESULT, of a call of SESSION, left where it exists in the cell only: a sentence, or nothing. */
void session_print_own(const struct session *session, const struct tool_result *result,
		       struct buf *out);
/* Why the cell could not be built or serves no call any more; NULL while it does. */
const char *session_broken(const struct session *session);
const char *session_workspace(const struct session *session); /* real, absolute */
const struct policy *session_policy(const struct session *session);
/*
 * Add to RESULT, as denials, what a program says in MESSAGES that it could not write or reach
 * (claims.h): of output that went past its call, as that of `exec` does.
 */
void session_judge_messages(const struct session *session, struct str messages,
			    struct tool_result *result);
/*
 * The tools this session's policy has, NULL-ended, without internal ones; valid as long
 * as the session, or until session_set_tools.
 */
const struct tool *const *session_tools(const struct session *session);
/*
 * From now on there are TOOLS (NULL-ended; they outlive the session, and so do those there were,
 * whose calls may be under way). What its cell carries out itself stays what it was. False, and
 * nothing has changed: the policy does not fit them.
 */
bool session_set_tools(struct session *session, const struct tool *const *tools,
		       struct err *err);

/*
 * An earlier process of this conversation has read these: path -> mark, as EVENT_TOOL_ENDED has
 * them in `seen`. What changed since is noticed by whoever wants to write it.
 */
void session_recall(struct session *session, const struct value *seen);

/*
 * The name under which this session's steps are kept (`undo --list` shows it), and: go on
 * under RUN, which an earlier process of this conversation had, or other hands, here. Its steps
 * are then this session's and part of its patch, as far as this one may read what they changed;
 * HANDED: they were in one already. What a command did in
 * whose midst that process was killed is nobody's step.
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
	bool by_front; /* may call internal tools, and those that only read without being named */
	/*
	 * By the front: this tool, which is in no table, in the place of the one named `tool`.
	 * It is internal, has a `schema` and outlives the call.
	 */
	const struct tool *made;
	bool quiet; /* the session's own: no event tells of it, no cancel_fd ends it */
	bool terse; /* nobody looks at its details: a tool that only reads may leave them out */
	/*
	 * Whose work it is (trace.h), for its programs and for who carries it out ELSEWHERE; or
	 * NULL. A reference is taken.
	 */
	struct value *trace;
	double timeout_s;  /* > 0: this deadline instead of the tool's; < 0: none */
	double most_s;     /* > 0: no later deadline than this, whoever named it */
	double patience_s; /* > 0: a call that takes longer becomes a job, where it can */
	/*
	 * The caller has its result, of which no event tells yet: the result may be added to. CONTEXT
	 * is that of session_start. Not called for the end of a job. NULL: nobody adds anything.
	 */
	void (*ending)(void *context, struct tool_result *result);
};

struct running; /* one call under way */

/* Steps 1 to 6. Never fails: what is wrong becomes the result, ready at once. DONE (may
 * be NULL) is called from the loop, or from session_start itself when the result is ready
 * at once. */
struct running *session_start(struct session *session, const struct request *request,
			      void (*done)(void *context, struct running *running),
			      void *context);
bool running_is_done(const struct running *running);
/* Has a worker been sent the call, and with it the descriptors? */
bool running_is_sent(const struct running *running);
/* The result; valid until running_free. Only when done. */
const struct tool_result *running_result(const struct running *running);
/*
 * The answer to the QUESTION (its id) of EVENT_QUESTION: an object with an "action". False: it
 * is not, or no longer, open.
 */
bool running_answer(struct running *running, int64_t question, const struct value *answer,
		    struct err *err);
/* The same for who knows the CALL by its id alone. */
bool session_answer(struct session *session, const char *call, int64_t question,
		    const struct value *answer, struct err *err);
/* Whoever answered is gone: what is asked now, and would be, is refused. */
void session_hear_nobody(struct session *session);
/* For who carries out a tool that is ELSEWHERE: what is asked for, and its id, until the end. */
const struct value *running_arguments(const struct running *running);
const char *running_id(const struct running *running);
const struct value *running_trace(const struct running *running); /* or NULL */
/*
 * Ask whoever called RUNNING: KIND and REQUEST as those of a plugin's question ("form", "url",
 * "several"). The tool's `answered` follows, perhaps from within; never when the call ends
 * first. While a question is open its deadline waits. False: nobody can be asked, or one is open.
 */
bool running_ask(struct running *running, const char *kind, const struct value *request);
/* Its result, moved; one that has ended meanwhile keeps what it has. */
void running_end(struct running *running, struct tool_result *take_result);
/* How far it is, and words for the log; as call_progress and call_log (call.h). */
void running_progress(struct running *running, double progress, double total,
		      const char *message);
void running_log(struct running *running, const char *level, const char *logger,
		 struct str text);
void running_cancel(struct running *running); /* the result comes as CANCELLED within 500 ms */
void running_free(struct running *running); /* cancels and waits when not done */

/*
 * A job is a call that goes on when its caller has been answered: until it ends, its deadline
 * comes or the session closes. People and models know it by a number, and the tool `job`
 * (IN_JOBS) reads it, types for it, sends it signals. So many run at once; of those that have
 * ended as many stay to be read.
 */
enum { SESSION_JOBS_MAX = 16 };
/*
 * Let RUNNING go on as a job. Its result then comes at once, or within seconds when its worker
 * is asked what it has printed so far, and says how to go on. False, and nothing has changed:
 * it is done, or waits for its worker's end, or the session is for one call, has no tool `job`,
 * or as many jobs as there may be.
 */
bool running_become_job(struct running *running);

/* Start, turn the loop until done, move the result to *RESULT (tool_result_fini it). */
void session_call(struct session *session, const struct request *request,
		  struct tool_result *result);

/*
 * What is there now is what the next commands start from. Begun at once, so that it runs while the
 * model thinks; the first command waits for its end. BEGINS_TURN: the steps from here on belong
 * together (undo --turn).
 */
void session_checkpoint(struct session *session, bool begins_turn);

/*
 * The caller waits for something else now, such as a model, and does not turn the loop: workers
 * for the next calls are asked for, and what the last ones left is put away. Takes no time.
 */
void session_rest(struct session *session);

/*
 * Undo the step NUMBER of this workspace (0: the newest that can be undone), in the cell, with
 * the policy's rights (docs/undo.md). RESULT, initialised, says what became of it.
 */
void session_undo(struct session *session, uint32_t number, struct tool_result *result);

/* Would that step be undone with the very rights that it was made with? True when there is none. */
bool session_made_step(struct session *session, uint32_t number);

/*
 * Undo all steps of AIM, which names the run of a patch (`run` and `last_step` in the details of
 * generate_patch) or a turn of one, when each of their files is what they have left in it and
 * nobody else's step came in between: else nothing. Each is a step of its own; killed in between it
 * goes on when it is asked for again.
 */
void session_undo_run(struct session *session, const struct undo_aim *aim,
		      struct tool_result *result);

/*
 * Paths (relative to the workspace where below it) that this session has changed, as far as
 * it is known; NULL-ended; borrowed.
 */
const char *const *session_changed(struct session *session);
/* May it have changed something since generate_patch was done last? */
bool session_has_news(const struct session *session);

/*
 * What is known of this session's writing, to be held against what was known before: did a file
 * change in between? A file tool says what it wrote. A look after a command finds what the
 * command changed, perhaps only while the next call runs already.
 */
struct session_writes {
	uint64_t found;   /* changes, so far */
	uint64_t writers; /* calls that have ended and could have changed something */
	bool looks; /* there are looks after commands; else FOUND knows of file tools only */
	bool writing; /* a job that could change something runs now */
};
void session_writes(const struct session *session, struct session_writes *writes);
