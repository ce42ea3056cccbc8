/*
 * session: carries out the calls of one conversation. It holds one policy, the cell made
 * from the policy, and the marks of the files read so far. It is the only way from a
 * request to a result (ARCHITECTURE.md): tool, schema, policy, events, cell, result. The
 * command line, the agent loop and the C library all call session_start.
 *
 * One thread. Open the session from a thread that lives as long as the session, because
 * the cell dies with the thread that opened it.
 *
 * The calls of this module are in call.c (a call is judged), running.c (it is queued,
 * runs and ends), jobs.c (it goes on without its caller) and left.c (what a killed session
 * or a killed git left). Calls that only read may be sent to one worker together. File
 * calls have two workers for each core, and searches one of these two: a search uses all
 * cores that it finds and takes as long as its expression and the disk want, so the other
 * workers stay free for a call that wants one file. Searches are sent together with
 * searches only.
 *
 * running_become_job answers the caller of a call, which goes on as a job of the session.
 * The tool `job` is answered by the session, which asks the worker of the job:
 * the output of a job is kept there, bounded, and nowhere else. While a job that can
 * write runs, an audit is due: each call in the meantime starts with a look, and the
 * worker of the job looks at its end.
 *
 * With `direct` the session sends its call while the cell is being built. The worker
 * finds the call in its socket when its walls stand. An error of the building is then
 * the result of the call (session_broken).
 *
 * After a writing call whose worker had to be killed, a fresh worker audits what it
 * left and undoes the write that it had begun (cell/pending.h). A session that
 * was killed may have had such writes in folders that a person had granted to it. For
 * these the next session makes a worker that sees the folders, and uses it only for this.
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/value.h"
#include "cell/cell.h"
#include "guard/guard.h"
#include "policy/policy.h"
#include "policy/rules.h"
#include "process/loop.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/event.h"
#include "tool/mask.h"
#include "tool/tool.h"
#include "view/review.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ceiling;
struct cell_spec;
struct credential;
struct keeper;
struct masking;
struct running; /* one call under way */
struct publish;
struct session;
struct shape_base;
struct shape_home;
struct shape_shown;
struct shape_ssh;
struct starter;
struct undo_aim;

/* As minimum_level: a cell of any strength will do. */
enum { SESSION_ANY_LEVEL = -1 };

/* How often the time of a call ELSEWHERE begins anew, because it reported progress. */
enum { SESSION_PROLONGED_MAX = 10 };

/* How the use of a cell and its commands is counted (docs/accounts.md). */
enum session_counting {
	COUNTING_COMMANDS, /* each command by estimates, the cell not */
	COUNTING_CELL,     /* and the cell by a control group, where one can be made */
	/* the session is for one command, whose accounts are those of such a cell */
	COUNTING_ONE,
};

/* How far the look is for which a person waits: files; 0: not known. None of it is trusted. */
struct session_wait {
	int64_t done, all;
};

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
	/* The program that makes the cell's anchor, by exec with an empty environment (NULL:
	 * /proc/self/exe). It must call session_role() first thing in main. */
	const char *program;
	/*
	 * That process, shared by many sessions of this thread (cell/starter.h); it outlives
	 * them. With `dormant`, session_open of all but the first returns while the cell is
	 * being built (session_is_built). NULL: one for this session.
	 */
	struct starter *starter;
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
	/*
	 * The credentials that the policy names; borrowed, and not with `direct`, because
	 * the front gets to know their keys. Those whose key is there are used
	 * (cell/vault.h).
	 */
	const struct credential *credentials;
	size_t credential_count;
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
	 * (store.h). NULL: the steps of this session cannot be undone.
	 */
	const char *undo_folder;
	/*
	 * The workspace and the state folder are made for this session, and the caller removes
	 * them after it: nothing is kept for a session that comes later.
	 */
	bool fresh;
	/* Nothing runs in the workspace, which is to hold the files of another one as they are. */
	bool unguarded;
	/*
	 * The file with the key of all sessions' marks (masking.h), made when it is missing. NULL:
	 * the marks of this session mean nothing to another one.
	 */
	const char *marks_key;
	/* of all stores together; 0: UNDO_ALL_MAX (store.h) */
	uint64_t undo_space;
	/*
	 * Takes all writes to the trees of `write` (view/review.h): open, locked and borrowed
	 * until session_close, after which its counts are those of this session. NULL: the
	 * cell writes to the trees themselves.
	 */
	struct review *review;
	/*
	 * The layers over which the session works (view/below.h): those of its callers, or those
	 * that the layer `review` names; borrowed. NULL: none.
	 */
	const struct below *below;
	/* The steps that this session is opened to undo (plan.h); NULL: none. */
	const struct undo_aim *undoes;
	/*
	 * More trees and files that are shown read-only, each at its own path; ended by
	 * {0} (shape.h). NULL: none.
	 */
	const struct shape_shown *shown;
	/* A home of the cell's own (shape.h). NULL: the project's private one. */
	const struct shape_home *home;
	/* The root of the cell (shape.h), borrowed until it is open. NULL: this machine's. */
	const struct shape_base *base;
	/* The place at which the cell shows the workspace as well (shape.h); NULL: nowhere. */
	const char *at;
	/*
	 * The folder in which commands begin, in the view: absolute. NULL: the workspace.
	 */
	const char *start_folder;
	/*
	 * The receiver behind the sink answers EVENT_QUESTION with running_answer. False:
	 * each question is declined, and no event reports it.
	 */
	bool answers_questions;
	/* The same for the question of a tool that `plans` (tool.h). */
	bool answers_plans;
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
	/*
	 * A person has answered `always`: keep a RULE of a kind of policy/rules.h for this
	 * agent and workspace. NULL: nobody keeps rules, and `always` is not offered.
	 */
	bool (*keep_rule)(void *context, enum rule_kind kind, const char *rule,
			  struct err *err);
	void *keep_rule_context;
	/* The ports of the policy's `publish` are published for as long as the session lives. */
	bool publishes;
	/* Programs of the cell find an ssh agent (shape.h): session_take_socket. Or NULL. */
	const struct shape_ssh *ssh;
	/* Programs of the cell may ask a person (view/shape.h): session_take_socket. */
	bool asks;
	/* gets a line for each entry of the policy that the ceiling takes; or NULL */
	struct buf *told;
	enum session_counting counting;
	/*
	 * Called some ten times a second while session_close, or the call of a `direct` session,
	 * waits for a look that undo needs; with WAIT NULL when session_close waits no more. NULL:
	 * nobody is told, and session_close waits for a shorter time.
	 */
	void (*waits)(void *context, const struct session_wait *wait);
	void *waits_context;
	int cancel_fd; /* readable: cancel all calls under way; -1: none */
	/*
	 * The caller calls session_rest when it waits for something else. Everything that
	 * is made ahead of calls, except the first worker, is made then, and not while a
	 * call has to be quick.
	 */
	bool rests;
	/*
	 * One of many cells, most of which wait: the next worker is made when a call has
	 * begun, with `starter` also the first one of all cells but the first, and after CELL_DORMANT_MS without a call the cell has no worker and no
	 * groups any more (cell/cell.h).
	 */
	bool dormant;
	/*
	 * Work that the caller has to do anyway. It is done once, while other processes
	 * make the cell, which takes some milliseconds (not with `direct`). NULL:
	 * nothing.
	 */
	void (*meanwhile)(void *context);
	void *meanwhile_context;
};

/*
 * From now on no session has more than CEILING (policy/ceiling.h) allows, whatever its
 * policy says and a person grants. Borrowed for good. session_ceiling: it; NULL: no bound.
 */
void session_bound(const struct ceiling *ceiling);
const struct ceiling *session_ceiling(void);
/*
 * From now on no cell of this program shows PATH (copied; NULL is fine), a file or a folder of
 * glovebox's own, to anything in it, whatever its policy says and a person grants. To be called
 * by one thread. False: there are too many.
 */
bool session_hide(const char *path, struct err *err);

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
 * Kill everything in the cell of SESSION, which can only be closed then. For a caller that ends
 * many sessions at the same time: it kills all of them, then closes them. Where calls may have
 * left something, the next session in the workspace looks, as after a front that was killed.
 * WAITS: wait until nothing of the cell is left, and close the files of SESSION, in the
 * workspace of which nobody will look. After a call without it, this may be done in a thread
 * for each session.
 */
void session_abandon(struct session *session, bool waits);
/*
 * Nobody wants the layer of SESSION (session_options.review): its end keeps nothing of it,
 * and the caller removes it. Nothing where it has none.
 */
void session_drop_layer(struct session *session);
/*
 * Are new tokens of a login on their way into its file (cell/vault.h)? session_close waits for
 * them.
 */
bool session_is_renewing(const struct session *session);

/*
 * Call this in main(), before anything else: when this process was started as the starter
 * of cells, or as the groups process of one, it plays that role and never returns. TOOLS is the
 * table of tools that workers run.
 */
void session_role(int argc, char **argv, const struct tool *const *tools);

struct loop *session_loop(struct session *session);
struct sandbox_strength session_strength(const struct session *session);
/*
 * The base on which the session's cell stands: its word, and its digest and the user that it names
 * ("": it has none). The word is NULL on this machine's root. A snapshot of the cell notes `lasting`
 * and `mark` (image/base.h) as what it lies over.
 */
struct session_base {
	char *word, *digest, *user, *lasting, *mark;
};
const struct session_base *session_base(const struct session *session);
/* Set `base` of OBJECT to these as an object, without empty ones; nothing on this machine's root. */
void session_tell_base(const struct session *session, struct value *object);
/* Where the ports of the session's cell are published. */
const struct publish *session_publish(const struct session *session);
/* As cell_take_socket of cell/cell.h, for the session's cell. */
int session_take_socket(struct session *session, const char *path);
/*
 * Append to OUT one sentence about the files that RESULT, of a call of SESSION, left
 * where they exist in the cell only, or nothing.
 */
void session_print_own(const struct session *session, const struct tool_result *result,
		       struct buf *out);
/*
 * The use of the cell of SESSION so far. Exact where it has a control group (a limit needs
 * it, or `counting`), else only the bytes of its network are known. HOSTS (or NULL) gets
 * {host, in, out} for each host.
 */
void session_accounts(const struct session *session, struct accounts *accounts,
		      struct value *hosts);
/* Why the cell could not be built or serves no call any more; NULL while it does. */
const char *session_broken(const struct session *session);
/* False while the cell is being built; it may also break then. */
bool session_is_built(const struct session *session);
/*
 * Does the sink want to hear of all calls (event_sink.hears_all)? A caller then gives no
 * request.quiet to spare the events of a call that somebody else has asked for.
 */
bool session_hears_all(const struct session *session);
const char *session_workspace(const struct session *session); /* real, absolute */
/* The workspace as programs and the model see it (session_options.at). */
const char *session_shown(const struct session *session);
const struct policy *session_policy(const struct session *session);
/* Calls that begin later are judged in MODE. Neither this mode nor the one before is MODE_PLAN. */
void session_set_mode(struct session *session, enum policy_mode mode);
/*
 * MESSAGES is output that did not pass through its call, such as that of `exec`. Add to
 * RESULT, as denials, the files and hosts that a program says in MESSAGES it could not
 * write or reach (denial.h).
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
/* The changes that were landed in this session (session_review) are part of its patch from now on. */
void session_take_landed(struct session *session);

struct request {
	const char *tool;
	const struct value *arguments; /* an object; NULL: see arguments_text */
	struct str arguments_text;     /* JSON as a model or person wrote it */
	const char *id;                /* for events; NULL: "c1", "c2", … */
	int fds[CALL_FDS_MAX]; /* only for internal tools; 0-2 are the program's */
	size_t fd_count;
	/* may call internal tools, and tools that only read without being named */
	bool by_front;
	/*
	 * Set by the front: use this tool, which is in no table, in the place of the one
	 * named `tool`. It is internal, has a `schema` and outlives the call.
	 */
	const struct tool *made;
	bool quiet; /* the session's own: no event tells of it, no cancel_fd ends it */
	bool unheard; /* no event tells of it, because somebody else tells; cancel_fd ends it */
	/*
	 * a program that may run for as long as the session: who asks for the changes of the
	 * session does not wait for its end, as with a job
	 */
	bool beside;
	/* folders that this call alone sees; ended by {0} (view/shape.h). NULL: none */
	const struct shape_shown *lent;
	/* nobody looks at its details: a tool that only reads may leave them out */
	bool terse;
	/*
	 * The trace of the request that this call works for (event.h). The call's
	 * programs get it, and the code that carries out the call ELSEWHERE; or NULL. A
	 * reference is taken.
	 */
	struct value *trace;
	/*
	 * The request of a client that this call answers, as attributes of its span: only
	 * receivers of events in this process are told. NULL: none. A reference is taken.
	 */
	struct value *origin;
	/*
	 * A person must agree to the call for this reason, even if the policy allows it;
	 * NULL: the policy alone decides
	 */
	const char *asks_for;
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
/*
 * End CALL now, which another program or agent carries out, as one that has failed; its caller
 * reads WHY. False: no such call is under way.
 */
bool session_stop_call(struct session *session, const char *call, const char *why);
/* running_answer for a caller that knows the CALL only by its id. */
bool session_answer(struct session *session, const char *call, int64_t question,
		    const struct value *answer, struct err *err);
/*
 * The open question QUESTION of CALL, whose tool is carried out ELSEWHERE: its REQUEST, as
 * EVENT_QUESTION has it, and its kind; both are borrowed until it is answered. NULL: no such
 * question is open.
 */
const char *session_question(const struct session *session, const char *call,
			     int64_t question, const struct value **request);
/*
 * For the code that carries out a tool ELSEWHERE: the arguments and the id of RUNNING,
 * valid until it ends.
 */
const struct value *running_arguments(const struct running *running);
const char *running_id(const struct running *running);
const struct value *running_trace(const struct running *running); /* or NULL */
/*
 * Put a question to the caller of RUNNING. KIND and REQUEST are those of a plugin's
 * question ("form", "url", "sampling", "several"). The tool's `answered` is called later, perhaps
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
 * (call.h). When its time is over, a call that has reported progress meanwhile gets its
 * time once more, SESSION_PROLONGED_MAX times, within the bound of its caller (most_s) and the ceiling.
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
/* Append a line for each job that runs: its number and the beginning of its command. */
void session_jobs_running(const struct session *session, struct buf *text);

/*
 * Start REQUEST, turn the loop until the call is done, and move the result to *RESULT
 * (tool_result_fini it).
 */
void session_call(struct session *session, const struct request *request,
		  struct tool_result *result);

/*
 * Is there room for more in the layer of SESSION? True where it has none. False: ERR says what to
 * do.
 */
bool session_has_room(const struct session *session, struct err *err);

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
 * The same for AIM, which names no run: a step, or all steps above one. These are undone
 * together, by one step that is an undo: when one of their files has changed since,
 * nothing is undone. After a kill the next call goes on.
 */
void session_undo_aim(struct session *session, const struct undo_aim *aim,
		      struct tool_result *result);

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
 * Undo the steps of this session since SINCE_MS (wall clock), the newest first, each by a step
 * of its own. A file that somebody else has changed since is left as it is; RESULT, which is
 * initialised, names it.
 */
void session_rewind(struct session *session, int64_t since_ms, struct tool_result *result);

/*
 * Steps of this session may have been undone by another one. Those that this session has undone,
 * it knows.
 */
void session_note_undone(struct session *session);

/*
 * The paths that this session has changed and not put back, as far as it knows them. A path below the
 * workspace is relative to it. NULL-ended; borrowed.
 */
const char *const *session_changed(struct session *session);
/* May the session have changed something since generate_patch was last done? */
bool session_has_news(const struct session *session);

/*
 * The host of the web whose page a call, or a delegate, has read since session_speak; "": none. A question to a person
 * names it, and an answer to it is kept for no later session: the page may have asked for it.
 */
const char *session_has_read(const struct session *session);
/* A former session of the same turn had read a page of HOST; "": none had. */
void session_note_host(struct session *session, const char *host);
/* A person speaks: what comes from now on is what they want. */
void session_speak(struct session *session);

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

/* The inside of a session and its calls, for the files of src/session only. */

/* A question that a person was asked before: a grant by its key, a host. All zero: nothing. */
struct grants {
	struct grant {
		char *name;
		bool yes;
	} * items;
	size_t count;
};

struct session {
	struct policy *policy;
	const struct tool *const *all_tools;
	const struct tool **offered; /* NULL-ended */
	struct event_sink sink;
	struct loop *loop;
	bool own_loop;
	char *web_host; /* of session_has_read; or NULL */
	struct cell *cell;
	struct session_base base;
	/* in the order of starting, also jobs whose caller has freed them */
	struct running *first, *last;
	/* the first that is queued; running_step keeps it */
	struct running *first_queued;
	size_t queued_files, queued_others, busy_files, busy_others;
	size_t queued_searches, busy_searches; /* of the file calls */
	size_t queued_commands, busy_writers;  /* of a person or model; jobs included */
	bool answers_questions, answers_plans;
	bool answers_approvals, relays_approvals;
	/* of session_options */
	bool (*keep_rule)(void *context, enum rule_kind kind, const char *rule,
			  struct err *err);
	void *keep_rule_context;
	bool one_call; /* opened for one call: the cell ends with it */
	enum session_counting counting;
	int64_t opened_us;
	struct timer quota; /* the next look at the limits of the whole cell (quota.c) */
	const char *over;   /* the key of the limit that the cell has reached; or NULL */
	size_t next_id;
	size_t cores;
	/* at the same time: with more there would be no descriptors left */
	size_t commands_most;
	void (*waits)(void *context, const struct session_wait *wait);
	void *waits_context;
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
	/* how often an audit was asked for that no call sent before has made */
	size_t audits_wanted;
	/* found before the first call; told in the first result; or NULL */
	struct tool_result *said;
	bool told_unheld; /* that no later session would find the log of a call */
	/* the writes to be put back before another call begins (left.c); NULL: none */
	struct unmended *unmended;
	/*
	 * files that killed gits left and that other processes may hold (left.c)
	 */
	struct git_left held;
	bool unseen; /* commands may have left something where no audit has looked */
	/*
	 * a result has said that files left in /tmp exist in the cell only
	 * (cell/layers/layer.h)
	 */
	bool told_own;
	bool taken_over; /* files that a dead front's commands left are not audited yet */
	char **changed;  /* made anew by session_changed */
	struct job *first_job; /* by number */
	int64_t next_job;
	struct review *review;        /* NULL: writes go to the trees themselves */
	bool told_layer;              /* a result has said where the writes are */
	struct review_counts layered; /* what it holds after the last call */
	struct keeper *keeper;        /* NULL: nothing can be undone */
	/* the marks of its secrets; NULL: they are shown */
	struct masking *masking;
	/* what a person granted until the session ends (approval.c) */
	struct grants granted;
	/*
	 * granted folders that were written in: the shown name -> true when granted for
	 * the session
	 */
	struct value *outside;
	struct widening *first_widening; /* in the order of asking (approval.c) */
	size_t showing; /* folders that extra_show still adds: calls wait for them */
	struct timer widened;  /* due when the first of these is answered */
	int64_t last_approval; /* below 0: the number of the last question to a person */
};

/*
 * The life of a call, in its order. running_step (running.c) is the only function that
 * sets the state, and its table says which state may follow which.
 *
 * A call passes from RUNNING_BUSY back to RUNNING_QUEUED when a fresh worker is to look at
 * what the call left (enum running_due); its result stands from then on.
 */
enum running_state {
	RUNNING_NEW,       /* it is being judged, or it is the session's own */
	RUNNING_ASKING,    /* a person is asked, or a granted folder is being shown */
	RUNNING_ELSEWHERE, /* the code of its tool carries it out, outside of the cell */
	RUNNING_AWAITING, /* it has asked a job, and awaits the answer or the job's end */
	RUNNING_AHEAD,    /* a worker has it already, behind another call (batch) */
	RUNNING_QUEUED,   /* it waits for a worker */
	RUNNING_BUSY,     /* a worker has it */
	RUNNING_STANDING, /* its result stands; it is told after a checkpoint */
	RUNNING_OVER,
};

/* An event in the life of a call: a row in the table of running_step. */
enum running_happening {
	HAPPENS_JUDGED,    /* it may run as far as the policy goes */
	HAPPENS_ELSEWHERE, /* the code of its tool begins */
	HAPPENS_AWAITS,    /* it asks a job */
	HAPPENS_QUEUED,    /* it wants a worker, for itself or for a look */
	HAPPENS_GATHERED,  /* it goes along with the call before it in a batch */
	HAPPENS_RECALLED,  /* that batch is dissolved */
	HAPPENS_SENT,      /* a worker takes it */
	HAPPENS_STANDS,    /* the keeper makes a checkpoint before its end */
	HAPPENS_END,       /* its result is told */
};

/* The party that has made the call. */
enum running_kind {
	RUNNING_FOR_CALLER, /* a model or a client */
	/* the front or the session: the policy need not name a tool that only reads */
	RUNNING_FOR_FRONT,
};

/* The work for which the call wants a worker. */
enum running_due {
	DUE_CALL, /* the call itself */
	/* the result stands: a fresh worker looks at what the call left */
	DUE_LOOK,
	DUE_MEND, /* like DUE_LOOK, but only to put back what dead fronts left */
};

/* Changes in the workspace by the call, as far as a keeper must know. */
enum running_changes {
	CHANGES_NONE,     /* no worker had it */
	CHANGES_POSSIBLE, /* a worker had it */
	CHANGES_SEEN,     /* and a checkpoint has seen what it changed */
};

/* The other calls that were under way when the call was sent. */
enum running_company {
	COMPANY_OTHERS, /* other calls, or there is one processor only */
	COMPANY_NOBODY,
	/* nobody, and its worker says when the result is about to come */
	COMPANY_HERALD,
};

/* A call that goes on after its caller was answered, in the list of the session's jobs. */
struct job {
	struct session *session;
	struct job *next;
	int64_t number;
	struct running *work; /* the call; NULL while the job is being freed */
	int64_t ended_us;     /* 0: it runs */
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

/* The descriptors of a call, and the writes that it begins. */
struct running_files {
	/* its log, if it has one, before those that its caller has given */
	int fds[CALL_FDS_MAX];
	size_t fd_count;
	uint32_t log; /* the number of its log; 0: it is no step */
	int log_fd;   /* -1: it has none */
	int plan_fd;  /* the changes of the session, for the patch; -1: none */
	/* its log, or that of a dead front's call, as the next front would find it */
	struct pending_log held;
	/*
	 * the rights of the writer, when a write in `held` has no end because the writer was
	 * killed: a fresh worker puts it back; NULL: there is none
	 */
	struct value *unfinished;
};

/* The time that a call has. */
struct running_times {
	int64_t began_us;
	double timeout_s; /* < 0: none */
	int64_t deadline_ms;
	/* of a call ELSEWHERE: the time began anew so often, and progress came since */
	unsigned prolonged;
	bool progressed;
	int64_t latest_ms; /* the time never begins anew beyond this */
	struct timer kill_timer;
	struct timer patience; /* due when the call becomes a job */
	double patience_s;     /* 0: none */
};

/* The questions that are put to a person or a client because of a call. */
struct running_asking {
	/* the verdict about which a person is asked; NULL: it may run */
	struct verdict *wanted;
	bool by_caller;      /* the caller wants that, and not the policy (asks_for) */
	struct leave *leave; /* what its tool wants approved (tool.h); or NULL */
	/* folders outside of the policy that it wants (approval.h); or NULL */
	struct extra *extras;
	bool worker_asked;      /* a worker that sees those folders is on its way */
	struct approval *first; /* in the order of asking */
	/* the id of the question of its tool that waits for an answer; 0: none */
	int64_t question;
	/* of that question: its kind, and its request as the event of it has it; or NULL */
	char *kind;
	struct value *request;
	int64_t questions; /* how often its tool has asked, ELSEWHERE */
	unsigned refusals; /* how often the answer was no */
};

/* A call and its worker. */
struct running_busy {
	struct worker_end *worker; /* NULL: it has none now */
	/* when the worker of its tool got it, by the clock of files; 0: not yet */
	int64_t sent_ns;
	bool audits; /* the worker first looks at what an earlier call may have left */
	bool lost;   /* a worker ended before it answered */
	/* the resident worker's list did not serve it: any other worker makes it */
	bool walks;
	enum guard_walk reach; /* of that audit */
	size_t audits_of;      /* `audits_wanted` when the call was sent */
	enum running_company company;
};

/* A call's place among calls that one worker has together (running.c). */
struct running_batch {
	/*
	 * the call that ends before this one begins, and the call that begins after this
	 * one; or NULL
	 */
	struct running *before, *after;
	/* its worker still has later calls, which other workers make now */
	bool recalled;
	/* of the first call of a batch: due when that call is slow */
	struct timer recall;
};

/* Files that killed gits may have left (guard.h, left.c). */
struct running_left {
	enum left_state state;
	struct git_left files;
};

/* A host that was refused to a call. */
struct running_refused {
	struct running_refused *next;
	char *target;
	/* what helps; NULL: the host was looked up, and the call's words say it */
	char *remedy;
	char *rule;   /* that refuses it */
	bool guessed; /* another call may have asked for it */
};

/* A call's access to the network. */
struct running_network {
	bool asks;                       /* it was granted the network */
	struct running_refused *refused; /* in the order of asking */
	/* a person's answers about hosts, for as long as it runs */
	struct grants granted;
};

/* The secrets in a call (masking.h). */
struct running_masked {
	/* the arguments for the worker, when those of the call have marks; or NULL */
	struct value *arguments;
	bool off;                      /* all files that it names are shown as they are */
	bool asked;                    /* its worker is to tell the secrets first */
	struct mask_stream streams[2]; /* of its output */
};

/*
 * A call that asks a job. The caller of a call that has become a job gets its answer in the
 * same way: the call asks itself.
 */
struct running_awaits {
	struct job *job; /* whose end or answer it waits for; NULL: none */
	enum job_wish wish;
	uint64_t ask;       /* the number of its last question */
	struct timer timer; /* due when it has waited long enough */
};

/* How far the code is that has started a call, and that frees it. */
enum caller_state {
	CALLER_WAITS,
	CALLER_ANSWERED, /* and the call goes on as a job, or did so */
	CALLER_GONE,     /* it has freed the call, which belongs to its job from now on */
};

/* The code that has started a call. */
struct running_caller {
	enum caller_state state;
	/* the result for the caller, when the call has become a job */
	struct tool_result answer;
	void (*ending)(void *context, struct tool_result *result);
	void (*done)(void *context, struct running *running);
	void *context;
};

/* How much is told of a call. */
struct running_told {
	bool quiet;   /* no event */
	bool unheard; /* no event either; but it may be cancelled */
	bool terse;   /* its details may be left out */
};

struct running {
	struct session *session;
	struct running *next, *previous;
	char *id;
	uint64_t number; /* its name for the proxy; never 0 */
	const struct tool *tool;
	struct value *arguments;
	/* the numbers of them that were capped (schema.h); NULL: none */
	struct value *capped;
	/* runs in place of the command in the arguments (policy.h); or NULL */
	struct value *plan;
	struct value *trace, *origin; /* of the request; or NULL */
	/*
	 * how its command destroys data, to be told in its answer
	 * (policy/command.h); NULL: nothing much
	 */
	const struct command_harm *harm;
	enum running_kind kind;
	enum running_state state;
	enum running_due due;
	enum running_changes changes;
	const char *limit; /* the key of the limit of its whole cell that ended it; or NULL */
	bool cancelled;
	bool beside; /* of the request */
	struct running_told told;
	struct running_files files;
	struct running_times times;
	struct running_asking asking;
	struct running_batch batch;
	struct running_busy busy;
	struct running_left left;
	struct running_network network;
	struct running_awaits awaits;
	struct running_masked masked;
	/* the job that it has become, in which it goes on; NULL: an ordinary call */
	struct job *job;
	struct running_caller caller;
	struct tool_result result;
};

/*
 * Move RUNNING to the state that follows HAPPENING, and update the session's counts. A call
 * without a tool can only end.
 */
void running_step(struct running *running, enum running_happening happening);
/* The result that the caller of RUNNING gets. */
static inline struct tool_result *running_told(struct running *running)
{
	return running->job != NULL || running->caller.state != CALLER_WAITS
		       ? &running->caller.answer
		       : &running->result;
}
/* Calls of TOOL are the session's own: their changes belong to nobody's steps. */
bool running_is_ours(const struct tool *tool);
/*
 * RUNNING starts programs (command), or may write (writer), and is not the session's own.
 */
bool running_is_command(const struct running *running);
bool running_is_writer(const struct running *running);
/*
 * An answer is expected within US microseconds: keep the loop awake for it. The loop may
 * sleep when workers are being made and want the only other processor, because they would
 * then wait for ours.
 */
void running_stay(struct session *session, int64_t us);
/* Give queued calls to idle workers. */
void running_dispatch(struct session *session);
/*
 * The result stands in running->result: fill in the rest, tell the sink, remember what
 * was read.
 */
void running_finish(struct running *running);

/* RUNNING's worker asks something (call.h). PAYLOAD is not trusted. */
void running_question_take(struct running *running, struct str payload);
/* The question of RUNNING, if there is one, is not open any more. */
void running_question_end(struct running *running);
/* RUNNING goes on as JOB, which holds up no other call. Its caller is not answered yet. */
void running_set_job(struct running *running, struct job *job);
/* The answer for the caller of RUNNING, which goes on as a job, stands: tell it. */
void running_tell(struct running *running);
/* As running_cancel, also when the caller of RUNNING was answered. */
void running_cancel_work(struct running *running);
/*
 * TARGET was refused to the call NUMBER, or, when NUMBER is 0, to all calls that run
 * programs.
 */
void running_refused(void *context, uint64_t number, const char *target, const char *rule,
		     const char *remedy);
/* How far claims about hosts in RESULT are believed in SESSION's cell. */
enum claims_hosts session_weighs_hosts(const struct session *session,
				       const struct tool_result *result);

/*
 * session_memory_for: the marks in `seen` that may matter to RUNNING.
 * session_memory_take: remember the marks that came with its result.
 */
struct value *session_memory_for(struct session *session, const struct running *running);
void session_memory_take(struct session *session, struct running *running);
/*
 * Note what the layer of a review holds now, by the RESULT of a call of TOOL. The first result
 * with a change in the layer says who lands it.
 */
void session_note_layer(struct session *session, const struct tool *tool,
			struct tool_result *result);
/* Note that RESULT of a call of TOOL with ARGUMENTS has a page of the web (tools/web/web_fetch.c). */
void session_note_web(struct session *session, const struct tool *tool,
		      const struct value *arguments, const struct tool_result *result);
/* Send an event to the sink. RUNNING NULL: the event belongs to no call. */
bool session_emit(struct session *session, enum event_kind kind,
		  const struct running *running, struct str text,
		  const struct value *data, struct err *err);
/* EVENT_TOOL_ENDED with DATA, of RUNNING, whose result its caller gets now. */
bool session_emit_end(const struct running *running, const struct value *data,
		      struct err *err);
/* May RUNNING be started as a job? False: its result says why not (jobs.c). */
bool job_may_begin(struct running *running);
/* Does RUNNING ask to be a job from the beginning? */
bool job_is_wanted(const struct running *running);
/* The work of a job that runs and can write, other than EXCEPT (or NULL); NULL: none. */
const struct running *job_writer(const struct session *session, const struct job *except);
static inline bool job_writes(const struct session *session, const struct job *except)
{
	return job_writer(session, except) != NULL;
}
/* After patience_s from now RUNNING becomes a job; 0: never. */
void job_begin_patience(struct running *running);
void job_free_all(struct session *session);

/* A quiet call of the session's own, of TOOL, that nobody has judged (call.c). */
struct running *running_of_session(struct session *session, const struct tool *tool);

/*
 * At the session's end, when none of its calls runs: look where no audit has looked, and
 * report the findings as a notice. When that is impossible the next session does it. ALL:
 * look also in the trees where checkpoints looked.
 */
void session_look_whole(struct session *session, bool all);
/*
 * Files that a killed git may have left (left.c). running_take_left: move the
 * files that RESULT notes to RUNNING. running_left_waits: judge the files; true when a
 * worker must still be asked to remove some. running_left_carried: the message for the
 * worker that looks, owned by the caller; NULL: none.
 */
void running_take_left(struct running *running, struct tool_result *result);
bool running_left_waits(struct running *running);
struct value *running_left_carried(const struct running *running);
/*
 * Hold the log of RUNNING for the next front, as long as it writes: each file is to be
 * entirely old or entirely new, even when a process is killed. running_drop_log ends that.
 * A write that could not be put back is noted in `unmended` (left.c).
 */
bool running_hold_log(struct running *running, struct err *err);
/* FD is the log of RUNNING, and its first descriptor. */
void running_set_log(struct running *running, int fd);
void running_drop_log(struct running *running);
/*
 * To be called before a call begins: try again to put back what is `unmended`. No call may
 * begin while anything is. CLOSES: the session closes, and leaves it to a later one.
 */
void session_mend_again(struct session *session, bool closes);
/*
 * The rights of the killed worker of RUNNING, when a write in its log has no end, as an
 * object for place_put_back, owned by the caller; else NULL (left.c).
 */
struct value *running_unfinished(const struct running *running);
/*
 * Before the first call of this session: put back the writes that killed fronts have left
 * without an end, and do the same as above for a session that was killed (left.c). False:
 * nobody could try to put them back, and no call may begin.
 */
bool session_mend(struct session *session, struct err *err);

/* Begin RUNNING, whose tool has a `begin` of its own (running.c). */
void session_elsewhere_call(struct running *running);

/* Carry out RUNNING, a call of the tool `job` (jobs.c). */
void session_jobs_call(struct running *running);
/* RUNNING, a call of the tool `job` that asks one, is cancelled. */
void session_jobs_cancel(struct running *running);
/* The call of JOB is over. */
void session_jobs_over(struct job *job);
/*
 * session_jobs_answered: JOB's worker has answered a question. session_jobs_waits: the
 * worker says that a program waits for input.
 */
void session_jobs_answered(struct job *job, const struct frame *frame);
void session_jobs_waits(struct job *job);

/* The folder in which RUNNING's call would run: the one that it names, or the session's. */
void session_call_folder(const struct running *running, struct buf *folder);
/* Make a denial the result of RUNNING. */
void session_deny(struct running *running, const char *because, const char *rule);
/* Begin RUNNING, which was judged and announced (call.c). */
void running_proceed(struct running *running);

/*
 * The limits of a whole cell (quota.c). session_quota_begin: look at them from now on.
 * session_quota_allows: may RUNNING, a command, still begin? False: its result says why not.
 * session_quota_tell: RUNNING is over; its result gets its accounts, and the limit.
 */
void session_quota_begin(struct session *session);
bool session_quota_allows(struct running *running);
void session_quota_tell(struct running *running);
