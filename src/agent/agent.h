/*
 * agent: the loop. A turn sends the conversation to the model, gets text and calls,
 * starts each call with session_start, adds the results to the conversation, and repeats
 * this until the model stops, calls generate_patch, a limit is reached or the person
 * interrupts. A failed or refused call is a result that the model reads. Only a broken
 * model service or journal ends a turn early, and even then the record has an answer for
 * every call.
 *
 * A front puts the parts together in this order (the recorder first, because the
 * session's events pass through it):
 *
 *	recorder = recorder_new(journal, screen_sink(screen));
 *	session_options.sink = recorder_sink(recorder);
 *	session_open(&session_options, &session, &err);
 *	agent_open(&(struct agent_options){.session = session, …}, &agent, &err);
 *	agent_submit(agent, "fix the test", NULL, &outcome, &err);
 *	agent_close(agent);
 *	session_close(session);
 *	recorder_free(recorder);
 *
 * A circle is seen before a result is told (request.ending): the agent compares the
 * call and its result with earlier ones, and with what the session knows of its own
 * writing (session_writes). It then adds a sentence to the result, answers a read from
 * the earlier one, or ends the turn.
 *
 * Hooks (hooks.h) are asked at the moments that their header lists; agent_options.hooks has
 * those of the front and of its configuration.
 *
 * AGENTS.md is read in the cell by tools/read_project.c; this module puts it into the
 * prompt.
 */
#pragma once

#include "agent/history.h"
#include "agent/hooks.h"
#include "agent/limits.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "model/model.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;

/*
 * All members are borrowed for the life of the agent. The limits are those of the
 * session's policy.
 */
struct agent_options {
	struct session *session;
	struct model *model;
	struct recorder *recorder; /* whose sink the session was opened with */
	const char *name;          /* of the role: "default" */
	const char *prompt;        /* of the role; NULL: none. The workspace is added. */
	const char *parent; /* id of the session that delegated to this one; NULL: none */
	/* of the role: name -> command, or an object (config_role.checks); NULL: none */
	const struct value *checks;
	/*
	 * The id of the session in the recorder's journal that goes on; NULL: a new
	 * session. This process claims the session (journal_claim); the session keeps its
	 * workspace.
	 */
	const char *resume;
	/*
	 * The person interrupts by making this descriptor readable (it is the same as
	 * session_options.cancel_fd). After an interrupt it is read until it is empty, so
	 * that the next turn starts without an interrupt. A pipe, eventfd or signalfd,
	 * non-blocking; -1: none.
	 */
	int cancel_fd;
	/*
	 * Asked between the results of calls and the next request: append to TEXT what the
	 * person has said meanwhile, which joins the conversation (EVENT_STEERED). False:
	 * nothing. NULL: nobody says anything.
	 */
	bool (*steers)(void *context, struct buf *text);
	void *steers_context;
	const struct agent_hooks *hooks; /* the first that is asked; NULL: none */
	/*
	 * Called after all calls of an answer, IN_FRONT, with the `files` that they changed; its
	 * text joins the conversation (EVENT_CHECK_ENDED), and the `notices` in its details are told
	 * to the person. NULL: there is none.
	 */
	const struct tool *diagnoses;
	/* a person or a program answers questions (EVENT_APPROVAL_WANTED) */
	bool answered;
	/*
	 * Called before each request of a turn, while no call is under way: the front may go
	 * over to another mode, by agent_change or session_set_mode, and then tells it
	 * (agent_tell_mode). AGREED: the mode in which the person wants a plan carried out
	 * that was just presented; NULL: none. NULL: the mode stays.
	 */
	bool (*between)(void *context, const enum policy_mode *agreed, struct err *err);
	void *between_context;
};

/*
 * Begins the record (EVENT_SESSION_BEGAN) or resumes it. A resumed session has its old
 * conversation and the old marks of the files that it has read. Calls that were under way
 * are answered with a sentence that says so (EVENT_SESSION_RESUMED, EVENT_TOOL_ENDED).
 * Then reads the project's instructions for agents (EVENT_INSTRUCTIONS). ERR: the journal
 * failed (EBUSY: another process has the session), cancel_fd cannot be polled, money is
 * limited but the price of the model is unknown, or the policy forbids a check of the
 * role.
 */
bool agent_open(const struct agent_options *options, struct agent **agent, struct err *err);
void agent_close(struct agent *agent); /* NULL is fine */

/*
 * Call it between turns, or in `between`: the agent goes on with another session, model, name or prompt.
 * The recorder, cancel_fd and the conversation stay the same, and nothing is resumed.
 * Objects that OPTIONS no longer names may be closed afterwards. On failure nothing has
 * changed.
 */
bool agent_change(struct agent *agent, const struct agent_options *options, struct err *err);

/*
 * Record SENTENCE as an EVENT_NOTICE, which the front shows. TO_MODEL: SENTENCE joins the
 * conversation too. False when SENTENCE could not be recorded.
 */
bool agent_notice(struct agent *agent, const char *sentence, bool to_model, struct err *err);

/*
 * Between turns, or while agent_options.steers is asked: ITEMS, which are taken, go with the
 * next text of the person, behind those that wait (`attached` of EVENT_TURN_BEGAN).
 */
void agent_attach(struct agent *agent, struct value *take_items);

/*
 * Carry out REQUEST for the person, with an id that no other call of the session has, and wait
 * for its end. It is judged, shown and recorded as a call of the model is, and no answer to
 * the model. BEGINS_TURN: it may change files, and its steps belong together (undo --turn).
 */
void agent_call(struct agent *agent, const struct request *request, bool begins_turn,
		struct tool_result *result);

/*
 * Between turns: go back to before the prompt that was recorded as event FROM
 * (EVENT_REWOUND). What was said since stays in the record. PROMPT: its text.
 */
bool agent_rewind(struct agent *agent, int64_t from, struct str prompt, struct err *err);

/* Between turns: give the session the title NAME (EVENT_NAMED). */
bool agent_name(struct agent *agent, const char *name, struct err *err);

/*
 * Between turns: from now on the prompt has the style TEXT, which is called NAME (EVENT_STYLED);
 * both empty: none. A resumed session has it as well.
 */
bool agent_set_style(struct agent *agent, const char *name, const char *text,
		     struct err *err);
/* Its name; NULL: there is none. */
const char *agent_style(const struct agent *agent);

/* The newest list of tasks (tools/todo.h), or NULL. */
const struct value *agent_tasks(const struct agent *agent);
/* Append the words of the model's last answer. */
void agent_last_words(const struct agent *agent, struct buf *text);

/* The tokens of the next request, by the part of it that they are in. */
struct agent_tokens {
	uint64_t fixed; /* the prompt of the role, the instructions and the tools: estimated */
	uint64_t said;    /* the conversation */
	uint64_t context; /* that the model takes; 0: not known */
};
void agent_count_tokens(const struct agent *agent, struct agent_tokens *tokens);

/*
 * The session is in another mode than before: record EVENT_MODE_CHANGED, whose text the model
 * reads.
 */
bool agent_tell_mode(struct agent *agent, struct err *err);

const char *agent_reason_name(enum agent_reason reason); /* "stopped", "model_failed" */

struct agent_outcome {
	enum agent_reason reason;
	bool may_pass; /* AGENT_MODEL_FAILED: the service was down, and may answer later */
	/* the reason for the end; "" when the turn simply stopped */
	char sentence[ERR_TEXT_MAX];
	uint64_t iterations;      /* answers of the model */
	struct model_usage usage; /* summed */
	double seconds, shell_seconds;
	/*
	 * of the last program that ran in a call; -1: there was none, or a signal ended
	 * it
	 */
	int last_exit_code;
	size_t changed; /* files in the hand-over */
};

/*
 * Carry out one turn. PICTURES: those that go with TEXT, as in EVENT_TURN_BEGAN; NULL: none.
 * True: *OUTCOME is filled, also after model failures and interrupts;
 * its sentence has then been an EVENT_NOTICE. False: an event could not be recorded, and
 * nothing was run after that.
 */
bool agent_submit(struct agent *agent, const char *text, const struct value *pictures,
		  struct agent_outcome *outcome, struct err *err);

/*
 * Between turns: have the conversation summarised but for its last answer, as is done when
 * it grows too long. MATTERS: what the summary must keep above all, in the person's words;
 * NULL: nothing. The limits are those of a turn of its own. Returns as agent_submit.
 */
bool agent_compact(struct agent *agent, const char *matters,
		   struct agent_outcome *outcome, struct err *err);

/*
 * The rest of the limits of the turn under way, for a delegate that works for this turn;
 * 0: no such limit. Between turns nothing is limited.
 */
struct agent_budget {
	bool used_up;
	uint64_t tokens, answers;
	double money, seconds;
};
void agent_left(const struct agent *agent, struct agent_budget *left);
/* The usage of the turn under way; between turns it is zero. */
void agent_used(const struct agent *agent, struct model_usage *usage);
/*
 * A delegate used USAGE and ANSWERS for the turn under way. They count as the turn's own.
 */
void agent_spent(struct agent *agent, const struct model_usage *usage, uint64_t answers);

/*
 * Answer the question QUESTION of CALL, which the front has put to the person: session_answer.
 * Where the person agrees that the model is asked for a server (kind CALL_ASK_SAMPLING,
 * as mcp/client/sampling.h has it), ask it now, without tools, within the limits of the
 * turn, for CALL_SAMPLING_TOKENS_MAX at most; ANSWER gets the result as its content. A
 * model that fails, and a limit that is reached, are a no.
 */
bool agent_answer(struct agent *agent, const char *call, int64_t question,
		  const struct value *answer, struct err *err);

/*
 * Have the service of the model search the web for QUERY, for CALL, within the limits of the
 * turn. *FOUND gets `text` and `sources`, a list of {url, title}; the caller frees it. ERR: the
 * model cannot search (model_searches) or failed, or a limit is reached.
 */
bool agent_search(struct agent *agent, const char *call, const char *query,
		  struct value **found, struct err *err);

/*
 * The structures that the files of the loop share: the agent and the turn under way.
 * agent.c calls the other files: calls.c asks the model and runs its calls, history.c keeps
 * the conversation, and checks.c checks the work. Not for fronts.
 */

struct agent {
	struct agent_options options;
	struct history history;
	struct model_tool *tools; /* the tools that the model is offered */
	char **schemas;           /* the schemas of these tools, printed */
	size_t tool_count;
	uint64_t last_id; /* the highest number in the ids that we gave */
	/* epoll over cancel_fd and timer_fd: one descriptor for model_ask */
	int stop_fd;
	int timer_fd;           /* the turn's end by wall time */
	size_t fixed_bytes;     /* of each request: the system prompt and the tools */
	struct turn *turn;      /* under way; NULL: none */
	struct value *attached; /* goes with the next text of the person; NULL: nothing */
	enum hook_decision permission; /* of the question that is being recorded */
	unsigned syntax_missing; /* languages whose tool is not in the cell (checks.c) */
};

struct turn {
	struct limits limits;
	struct circle circle;
	struct agent_outcome *outcome;
	const char *text; /* what the person said */
	bool over;
	bool looked;         /* the workspace was looked at before the first command */
	unsigned fruitless;  /* answers in a row that have no call and are empty or cut */
	struct value *patch; /* details of the last successful generate_patch; owned */
	/* files that delegates changed: path -> the file; owned */
	struct value *delegated;
	/* paths that calls of the last answer changed; owned (checks.c) */
	struct value *edited;
	struct value *checks;  /* name -> the last result of the check; owned */
	unsigned check_rounds; /* rounds of repair that were begun */
	struct asked *asked;   /* the calls that run now (calls.c) */
	size_t asked_count;
	struct value *hooks_said; /* of these calls, for the model (hooks.c); owned */
	unsigned stops;           /* how often a hook has made the turn go on */
	bool planned; /* a plan was presented that is not to be carried out now */
	enum policy_mode agreed; /* the mode to carry a plan out in; MODE_PLAN: none */
	bool check_cancelled;
};

extern const char turn_interrupted[]; /* the sentence about an interrupt */

/*
 * End the turn. The reason of the first call stays. SENTENCE NULL: there is nothing to
 * say.
 */
void turn_end(struct turn *turn, enum agent_reason reason, const char *sentence);

/* The model failed: end the turn. */
void turn_failed(struct agent *agent, struct turn *turn, const struct err *why);
/* For model_sink, with the agent as context: record a notice about a repetition. */
void turn_retry(void *context, const struct err *why, double wait_s);

/* Count USAGE as used by TURN. */
void turn_add_usage(struct turn *turn, const struct model_usage *usage);
/* USAGE in the form of events; the caller frees it. */
struct value *turn_usage_value(const struct model_usage *usage);
/* Has the person interrupted? It stays true until the end of the turn. */
bool agent_interrupted(const struct agent *agent);

/* Make an id that no call of the session has. */
enum { AGENT_ID = 24 };
void agent_new_id(struct agent *agent, char id[AGENT_ID]);
/*
 * The number in an id of our form; UINT64_MAX: ID has another form. All numbers up to
 * last_id are used.
 */
uint64_t agent_id_number(const char *id);

/*
 * Ask the model once, and record its answer as EVENT_MESSAGE; the answer is then the last
 * message of the history. A model that fails ends the turn and is not an error.
 */
bool agent_ask_model(struct agent *agent, struct turn *turn, struct err *err);

/*
 * The service refused the conversation as too long: have its older part summarised.
 * *SHORTER: the conversation is now shorter, or the turn is over.
 */
bool agent_compact_overflow(struct agent *agent, struct turn *turn, bool *shorter,
			    struct err *err);

/* Record an answer to CALL of TOOL, which has no result of its own. */
bool agent_calls_answer(struct agent *agent, const char *call, const char *tool,
			enum result_status status, const char *text, struct err *err);

/*
 * Run the calls of the last message. Afterwards each call has its result in the record.
 */
bool agent_calls_run(struct agent *agent, struct turn *turn, struct err *err);

/* For recorder_permits, with the agent as context: hooks, or that there is nobody to ask. */
const char *agent_calls_decide(void *context, const struct event *event);
void agent_calls_answer_question(void *context, const struct event *event);

/*
 * Take the facts for the hand-over from RESULT of TOOL: the patch of generate_patch, and
 * the files that a delegate changed.
 */
void agent_handover_take(struct turn *turn, const struct tool *tool,
			 const struct tool_result *result);

/* The checks of a turn (checks.c). */

/*
 * May the role's checks run at all? ERR names the check and the reason why not. The
 * person learns this before any model is asked, because no model can repair it.
 */
bool agent_checks_judge(const struct agent *agent, struct err *err);

/* A call of TOOL ended well: note the files that it changed for the syntax checks. */
void agent_checks_note(struct turn *turn, const struct tool *tool,
		       const struct tool_result *result);

/*
 * Check the syntax of the files that the calls of this answer changed, and ask
 * agent_options.diagnoses about them.
 */
bool agent_checks_syntax(struct agent *agent, struct turn *turn, struct err *err);

/*
 * The turn is over. If the model itself ended it and files were changed, all named checks
 * run. Red checks let the turn go on, and the model is told of them. After the last round
 * the turn ends with AGENT_CHECKS.
 */
bool agent_checks_finish(struct agent *agent, struct turn *turn, struct err *err);

/* Append "Checks: build green, tests red." or nothing. */
void agent_checks_tell(const struct turn *turn, struct buf *text);
/* Put each check's last state into DATA of EVENT_TURN_ENDED; nothing without checks. */
void agent_checks_describe(const struct agent *agent, const struct turn *turn,
			   struct value *data);
