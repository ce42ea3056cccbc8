/*
 * tool: what a model can call. A tool is one file with one `struct tool`; its parameter
 * rows make the schema the model sees, the check of the call, the paths the policy
 * judges, the listing, the manual page and the label on the screen. execute() is plain
 * blocking C and runs in a worker, inside the cell.
 *
 * A tool that is made while the program runs brings a JSON Schema in place of rows and
 * names a carrier. Workers know only the compiled table, so the carrier finds all that
 * it must know of the tool in the frame of the call.
 *
 * A tool may have a `prepare`, which makes something ahead in an idle worker. It is
 * given to the one call that this worker then serves. tools/shell.c is the example: a
 * shell that waits for its text. A conversation keeps two such workers and one plain
 * one. File calls take only plain workers, because a worker that has started a program
 * is never used again; the programs that read_file starts for a PDF have walls of their
 * own, which keep them from the worker.
 */
#pragma once
#include "base/buf.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "policy/policy.h"
#include "process/usage.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

enum tool_effects {
	EFFECT_READS = POLICY_READS,
	EFFECT_WRITES = POLICY_WRITES, /* changes files of the workspace */
	EFFECT_RUNS = POLICY_RUNS,     /* starts programs: its worker serves one call */
	/* writes what later sessions read, and no file of the workspace */
	EFFECT_NOTES = POLICY_NOTES,
};

/*
 * The place where a call is carried out. IN_FRONT: in this process, by execute(), or by
 * `begin` with a later result; offered only where a front has set a `keeper`. IN_JOBS: about the session's jobs, answered by
 * session/jobs.c. ELSEWHERE: by another program that this process talks to, for example
 * a server in a cell of its own, which answers later (`begin`).
 */
enum tool_where { IN_CELL, IN_FRONT, IN_JOBS, ELSEWHERE };

enum result_status {
	RESULT_FAILED,
	RESULT_DONE,
	RESULT_DENIED,
	RESULT_TIMED_OUT,
	RESULT_CANCELLED
};
const char *result_status_name(enum result_status status); /* "done", "timed_out", … */

struct call;
struct running;
struct tool_result;

/*
 * Effects that calls of a tool would have later and elsewhere. A person approves or
 * refuses them as a whole before. Where no person can be asked, no question is put.
 */
struct tool_leave {
	const char *effect; /* its name, besides those of session/approval.h */
	const char *wish;   /* the wish, behind "Agent … wants to" */
	const char *because, *rule, *scope; /* as in session/approval.h */
	/*
	 * Fill SUBJECT with everything that CALL would permit, as text, and HASH with
	 * its content hash, which execute() then finds in call->approved. False: CALL
	 * would permit nothing.
	 */
	bool (*asks)(struct call *call, struct buf *subject, char hash[HASH_HEX + 1]);
};

/* May the definition of a server's tool be kept from models (deferred.h)? */
enum tool_defer { DEFER_AUTO, DEFER_ALWAYS, DEFER_NEVER };

/*
 * A tool of the table in tools/tools.c, or one made while the program runs (of a plugin
 * or server). Workers know only the table, so a tool made later names a `carrier` in
 * it.
 */
struct tool {
	const char *name;
	const char *title;       /* for people, in listings; NULL: the name */
	const char *description; /* one or two sentences */
	const char *example;     /* JSON arguments for help and for refusals */
	/* other accepted tool names, separated by blanks; never shown */
	const char *aliases;
	/*
	 * The parameters. The policy judges a ROW_PATH (for writing when the tool has
	 * EFFECT_WRITES, else for reading), a ROW_FOLDER (always for reading: where to
	 * start, where to run), and by its list of commands a ROW_COMMAND (shell text) and
	 * a ROW_ARGV (a program with its arguments). `description` is shown to the model;
	 * `initial` is JSON text, shown in the schema and filled in before execute. A
	 * number over its `max` becomes `max` (schema.h), except a ROW_ID; any other value
	 * out of bounds is refused.
	 */
	const struct row *params;
	/*
	 * A foreign JSON Schema of the arguments, in place of `params` (which is NULL
	 * then). It is used unchanged, and no argument is judged as a path. NULL: none.
	 */
	const struct value *schema;
	/* an object for listings, passed on unchanged; or NULL */
	const struct value *annotations;
	/*
	 * The internal tool whose execute() carries out this one in the worker, and the
	 * data that it needs besides the arguments (call->carried; an object, or NULL).
	 * NULL: its own execute().
	 */
	const char *carrier;
	struct value *carried;
	unsigned effects;
	/*
	 * Deadline, unless the call has a `timeout_s` argument. With a carrier, the
	 * policy's deadline for commands applies when it is earlier.
	 */
	double timeout_s;
	/* the maximum of the `timeout_s` argument; 0: there is no such argument */
	double timeout_max_s;
	/*
	 * When the argument `background` is true, the call is a job from the beginning
	 * (session/jobs.c). This is then the maximum of `timeout_s`, and the deadline
	 * without it. 0: there is no such argument.
	 */
	double job_max_s;
	bool answers; /* answers questions (FRAME_ASK) while it runs */
	/*
	 * It searches a whole tree with all cores, for as long as that takes. Such
	 * calls may use only some of the workers for file calls.
	 */
	bool searches;
	enum tool_where where;
	/*
	 * ELSEWHERE, IN_FRONT, both with `keeper`. `begin` takes RUNNING over; its
	 * result comes with running_end, immediately or later. `stop`: RUNNING was
	 * cancelled or is too late. It already has its result and must not be used any
	 * more.
	 */
	void (*begin)(void *keeper, struct running *running);
	void (*stop)(void *keeper, struct running *running);
	/* ELSEWHERE: a call may go on as a job after its caller was answered */
	bool goes_on;
	/*
	 * The answer to running_ask of RUNNING, which goes on; NULL: the tool never
	 * asks.
	 */
	void (*answered)(void *keeper, struct running *running, const struct value *answer);
	void *keeper;
	/*
	 * May a call with ARGUMENTS run at the same time as the other calls of a
	 * message? NULL: yes if the tool only reads.
	 */
	bool (*goes_beside)(void *keeper, const struct value *arguments);
	/*
	 * Visits paths in ARGUMENTS that no row names, such as those inside a patch.
	 * They are judged and remembered like those of ROW_PATH. NULL: there are
	 * none.
	 */
	void (*visit_paths)(const struct value *arguments,
			    void (*visit)(void *context, const char *path), void *context);
	/* its first descriptor is a log of the session's changes (undo/plan.h) */
	bool wants_changes;
	/*
	 * IN_FRONT: changes data of the front (facts, schedules), no file of the
	 * workspace
	 */
	bool keeps;
	/* IN_FRONT: only in the run of an agent, whose own work it is about */
	bool in_runs;
	/* IN_FRONT: stands for deferred tools, and is offered only where there are some */
	bool stands_in;
	/* the server that has it, by its name in the configuration; NULL: none has */
	const char *server;
	enum tool_defer defer;
	/*
	 * IN_FRONT: offered in MODE_PLAN and in no other mode. Its question goes to the
	 * receiver of session_options.answers_plans.
	 */
	bool plans;
	/* only for agents that name it: "every tool" does not include it */
	bool when_named;
	/* not offered to models or clients, but used by the front (exec) */
	bool internal;
	/* its results are for the program and no model: nothing in them is masked (mask.h) */
	bool plain;
	/* one worker makes all its calls, and keeps what it needs for them */
	bool resident;
	/*
	 * That worker, while it is idle, answers its calls too, from what it keeps. When it
	 * cannot, it says so by TOOL_NOT_LISTED at once, and another worker makes the call.
	 */
	bool by_resident;
	/*
	 * For an internal tool: its calls are judged, including paths, as calls of this
	 * tool. NULL: a call needs no entry in an agent's list of tools.
	 */
	const char *judged_as;
	/* IN_FRONT, by execute(); NULL: no approval needed */
	const struct tool_leave *leave;
	/*
	 * It makes requests of its own: it gets the network of the cell as a command does, and
	 * "every tool" includes it only where the policy lists or asks for hosts.
	 */
	bool fetches;
	bool is_step; /* internal, and yet a step that can be undone */
	enum result_status (*execute)(struct call *call, struct tool_result *result);
	/*
	 * For a tool with EFFECT_RUNS: make something for the next call ahead, in an
	 * idle worker (a shell that waits for its text). CALL has no arguments and no
	 * deadline yet. The returned value becomes call->prepared of the only call that
	 * the worker serves; NULL: execute() does without. Programs started here are
	 * killed when another tool gets the worker. Only the first tool of the table
	 * with a prepare() is used.
	 */
	void *(*prepare)(const struct call *call);
};

/* A member of the details of a failed call, true; see `by_resident`. */
#define TOOL_NOT_LISTED "not_listed"

/*
 * Maximum of bytes of a result's text. A tool that gets here has ignored its own
 * ceiling.
 */
enum { RESULT_TEXT_MAX = 4 << 20 };
/* Maximum of items besides the text, and of bytes of all of them as JSON. */
enum { RESULT_CONTENT_ITEMS_MAX = 64, RESULT_CONTENT_BYTES_MAX = 12 << 20 };

/* The result of a call, in the same shape for every outcome. */
struct tool_result {
	enum result_status status;
	struct buf text; /* for the model: the status and the next step come first */
	/* object for people and programs, never for the model; NULL: none */
	struct value *details;
	/*
	 * Content other than plain text, in the shape of MCP's content: an array of
	 * objects with a "type" (image, audio, resource, resource_link, text); NULL:
	 * none.
	 */
	struct value *content;
	int exit_code;  /* of a program; -1: none ran, or a signal ended it */
	int signal;     /* the signal that ended it; 0: none */
	double seconds; /* set by the session */
	uint64_t left_out_bytes, left_out_lines; /* because of ceilings */
	struct sandbox_strength strength;        /* of the cell; set by the session */
	/* path -> mark: the files that the session has now read (call_saw) */
	struct value *seen;
	/*
	 * The use of the programs of a call with EFFECT_RUNS. The worker fills in its
	 * estimate, the session the time and all that is known better outside of the cell.
	 */
	struct accounts accounts;
};

void tool_result_init(struct tool_result *result);
void tool_result_fini(struct tool_result *result);

/*
 * Set the status and append the sentence; returns the status, for `return
 * tool_fail(…)`.
 */
enum result_status tool_fail(struct tool_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
enum result_status tool_done(struct tool_result *result);
/* The details object, and the list KEY in it, made on first use. */
struct value *tool_details(struct tool_result *result);
struct value *tool_details_list(struct tool_result *result, const char *key);

/*
 * Add ITEM to the content. False, and ITEM is freed, when it is not an object with a
 * "type", or when there is too much content.
 */
bool tool_add_content(struct tool_result *result, struct value *take_item);
/* Is CONTENT an array of such items within the bounds? SIZE: its bytes as JSON. */
bool tool_content_fits(const struct value *content, size_t size);

/*
 * Append CONTENT for readers of text, each item on lines of its own: a text as it is,
 * any other item as its description.
 */
void tool_add_content_text(const struct value *content, struct buf *text);

/*
 * The whole result as one JSON object: status, text, content (when there is some),
 * exit_code, signal, seconds, level, unfiltered (at L0), left_out, details, without
 * `seen`. The object shares its content with RESULT.
 */
struct value *tool_result_value(const struct tool_result *result);

/* Set `level` of OBJECT and, at L0, where the level does not say it, `unfiltered`. */
void tool_set_strength(struct value *object, struct sandbox_strength strength);
/* For a person, behind the level. */
static inline const char *tool_lack(bool unfiltered)
{
	return unfiltered ? " without a filter of system calls" : "";
}

/* Do calls of TOOL get the network of the cell? */
static inline bool tool_gets_network(const struct tool *tool)
{
	return tool->fetches || (tool->effects & EFFECT_RUNS) != 0;
}
/* May models and clients call TOOL, and is there somebody to carry it out? */
bool tool_is_served(const struct tool *tool);
/*
 * Call VISIT for each path in ARGUMENTS of TOOL: those of its parameters of the kind ROW_PATH,
 * and those that the tool itself finds there (visit_paths).
 */
void tool_visit_paths(const struct tool *tool, const struct value *arguments,
		      void (*visit)(void *context, const char *path), void *context);
const struct tool *tool_find(const struct tool *const *tools,
			     const char *name); /* also by an alias */
/* The tool for which workers are prepared, or NULL. */
const struct tool *tool_prepared(const struct tool *const *tools);
/*
 * The tool name nearest to NAME, without internal tools; NULL when NAME resembles none.
 */
const char *tool_nearest(const struct tool *const *tools, const char *name);

/*
 * Print RESULT as the payload of a frame: numbers and sizes of the parts first.
 * Includes `seen`, which never leaves the product (tool_result_value).
 */
bool tool_result_print(const struct tool_result *result, struct buf *out);
/*
 * Read such a payload into RESULT, which the caller has initialised. A command may have
 * taken over the worker, so everything is checked, and a payload can fill only one
 * result. EPROTO on failure.
 */
bool tool_result_parse(struct str payload, struct tool_result *result, struct err *err);
