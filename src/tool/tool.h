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
 * is never used again.
 */
#pragma once
#include "base/buf.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

enum param_kind {
	PARAM_TEXT = 1,
	/*
	 * judged by the policy: for writing when the tool has EFFECT_WRITES, else for
	 * reading
	 */
	PARAM_PATH,
	/* a path always judged for reading (where to start, where to run) */
	PARAM_FOLDER,
	PARAM_COUNT, /* an integer >= 0 */
	PARAM_ID,    /* an integer >= 0 that names something: never another one instead */
	PARAM_INTEGER,
	PARAM_SECONDS, /* a number > 0 */
	PARAM_BOOLEAN,
	PARAM_CHOICE, /* one of `choices` */
	PARAM_LIST,   /* an array of objects with the parameters in `rows` */
	PARAM_TEXTS,  /* an array of strings */
	/* what is to run, judged by the policy's list: shell text; a program and its arguments */
	PARAM_COMMAND,
	PARAM_ARGV,
};

/*
 * One parameter; a table of them ends with {0}. The first four are written in place,
 * the rest by name.
 */
struct tool_param {
	const char *name;
	enum param_kind kind;
	bool required;
	const char *description; /* shown to the model, made from the constants */
	/* other names taken, blank-separated: "file file_path"; never shown */
	const char *aliases;
	const char *choices; /* blank-separated */
	/*
	 * default as JSON text, shown in the schema and filled in before execute; NULL:
	 * absent
	 */
	const char *initial;
	int64_t min,
		/*
		 * bounds for numbers when max > min; for texts and lists, of their
		 * length. A number over its max becomes it (schema.h), unless it is
		 * an ID; all else out of bounds is refused.
		 */
		max;
	const struct tool_param *rows;
};

enum tool_effects {
	EFFECT_READS = POLICY_READS,
	EFFECT_WRITES = POLICY_WRITES, /* changes files of the workspace */
	EFFECT_RUNS = POLICY_RUNS,     /* starts programs: its worker serves one call */
};

/*
 * IN_FRONT: by execute() in this process, or later (`begin`); only for agents that name
 * it, and served where a front has put somebody behind it (`keeper`). IN_JOBS: of the
 * session's jobs, answered by jobs.c. ELSEWHERE: somebody whom this process talks
 * to carries it out and answers later (`begin`): a server in a cell of its own.
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
 * refuses them as a whole before. Without a person who can be asked, no question is put.
 */
struct tool_leave {
	const char *effect; /* a word of its own, beside those of approval.h */
	const char *wish;   /* what is wanted, behind "Agent … wants to" */
	const char *because, *rule, *scope; /* as approval.h has them */
	/*
	 * All of what CALL would let happen, as text, and the HASH of its content, which
	 * execute() then finds in call->approved. False: nothing.
	 */
	bool (*asks)(struct call *call, struct buf *subject, char hash[HASH_HEX + 1]);
};

/*
 * A tool of the table in tools.c, or one made while the program runs (a plugin, a
 * server's): workers know only the table, so that the latter names a `carrier` of it.
 */
struct tool {
	const char *name;
	const char *title;       /* for people, in listings; NULL: its name */
	const char *description; /* one or two sentences */
	const char *example;     /* JSON arguments for help and for refusals */
	const char *aliases; /* other tool names taken, blank-separated; never shown */
	const struct tool_param *params;
	/*
	 * A foreign JSON Schema of the arguments, in the place of `params` (NULL then):
	 * judged as it is, no path in it; NULL: there is none.
	 */
	const struct value *schema;
	const struct value *annotations; /* an object for listings, as it came; or NULL */
	/*
	 * The internal tool whose execute() carries it out in the worker, and what that
	 * wants to know besides the arguments (call->carried; an object, or NULL). NULL:
	 * its own.
	 */
	const char *carrier;
	struct value *carried;
	unsigned effects;
	/*
	 * Deadline unless the call's own `timeout_s` argument says otherwise; of one with
	 * a carrier the policy's for commands, when that is earlier.
	 */
	double timeout_s;
	/* most its `timeout_s` argument may ask for; 0: it has none */
	double timeout_max_s;
	/*
	 * The most its `timeout_s` may ask for, and the deadline unless it does, when the
	 * argument `background` is true: it then is a job from the beginning
	 * (jobs.c); 0: it has no such argument.
	 */
	double job_max_s;
	bool answers; /* asks (ask.h) while it runs */
	/*
	 * It looks through a whole tree, by all cores, and takes as long as what it looks
	 * for: such calls hold some of the workers for file calls, never all.
	 */
	bool searches;
	enum tool_where where;
	/*
	 * ELSEWHERE, IN_FRONT: take RUNNING on; running_end, from within or later, is its
	 * result. `stop`: it was cancelled or is too late, has its result already and is
	 * not to be touched any more. Both with `keeper`.
	 */
	void (*begin)(void *keeper, struct running *running);
	void (*stop)(void *keeper, struct running *running);
	/* ELSEWHERE: RUNNING goes on as WORK, a job; it is WORK that is ended or stopped. */
	void (*moved)(void *keeper, struct running *running, struct running *work);
	/* The answer to running_ask of RUNNING, which goes on; NULL: it asks nothing. */
	void (*answered)(void *keeper, struct running *running, const struct value *answer);
	void *keeper;
	/*
	 * May a call with ARGUMENTS go beside the others of its answer? NULL: when the
	 * tool only reads.
	 */
	bool (*goes_beside)(void *keeper, const struct value *arguments);
	/*
	 * Paths in ARGUMENTS that no row names (a patch holds them): judged and
	 * remembered as those of PARAM_PATH are. NULL: there are none.
	 */
	void (*visit_paths)(const struct value *arguments,
			    void (*visit)(void *context, const char *path), void *context);
	/* its first descriptor is a log of what the session has changed (plan.h) */
	bool wants_changes;
	bool keeps; /* IN_FRONT: changes what is kept there (facts, schedules), no file of the workspace */
	bool when_named; /* of no agent's but those that name it: "every tool" is without it */
	bool internal; /* not offered to models or clients: the front's own (exec) */
	/*
	 * Of an internal tool: whose rights its calls need, paths and all, as if they
	 * were calls of this one; NULL: what the front has for itself is in nobody's list
	 * of tools.
	 */
	const char *judged_as;
	const struct tool_leave *leave; /* IN_FRONT, by execute(); NULL: it needs none */
	bool is_step;                   /* internal, and yet a step that can be undone */
	enum result_status (*execute)(struct call *call, struct tool_result *result);
	/*
	 * Of a tool with EFFECT_RUNS: make ahead, in an idle worker, what its next call
	 * will want (a shell that waits for its text). CALL has no arguments and no
	 * deadline yet. The returned value becomes call->prepared of the one call the
	 * worker serves; NULL: nothing, execute() then does without. Programs it starts
	 * are killed when another tool gets the worker. The first tool of the table that
	 * has one counts.
	 */
	void *(*prepare)(const struct call *call);
	/* A call is probably coming: what was prepared wakes up, for a moment. NULL: nothing does. */
	void (*rouse)(void *prepared);
};

/*
 * Most bytes of a result's text: over it the tool has failed to honour its own ceiling.
 */
enum { RESULT_TEXT_MAX = 4 << 20 };
/* Most items beside the text, and most bytes of them all as JSON. */
enum { RESULT_CONTENT_ITEMS_MAX = 64, RESULT_CONTENT_BYTES_MAX = 12 << 20 };

/* One shape for every outcome. */
struct tool_result {
	enum result_status status;
	struct buf text; /* for the model: status and next step first in what matters */
	/* object for people and programs, never for the model; NULL: none */
	struct value *details;
	/*
	 * Content other than plain text, in the shape of MCP's content: an array of
	 * objects with a "type" (image, audio, resource, resource_link, text); NULL:
	 * nothing is.
	 */
	struct value *content;
	int exit_code;  /* of a program; -1: none ran or it died of a signal */
	int signal;     /* that ended it, 0: none */
	double seconds; /* filled by the runtime */
	uint64_t left_out_bytes, left_out_lines; /* by ceilings */
	int level;                               /* 0..3, filled by the runtime */
	struct value *seen; /* path -> mark: what the session has now read (call_saw) */
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
/* The details object, made on first use. */
struct value *tool_details(struct tool_result *result);

/*
 * Add ITEM to the content. False, and it is gone, when it is no object with a "type" or
 * there is too much already.
 */
bool tool_add_content(struct tool_result *result, struct value *take_item);
/* Is it an array of such items, within the bounds? SIZE: bytes of it as JSON. */
bool tool_content_fits(const struct value *content, size_t size);

/*
 * Append CONTENT for readers of text, each item on lines of its own: what is text as it
 * is, of all else what it is.
 */
void tool_add_content_text(const struct value *content, struct buf *text);

/*
 * The whole result as one JSON object: status, text, content (when there is some),
 * exit_code, signal, seconds, level, left_out, details. (`seen` is not part of it.) Its
 * content is RESULT's own.
 */
struct value *tool_result_value(const struct tool_result *result);

/* Is it one that models and clients may call, and somebody is there to carry it out? */
bool tool_is_served(const struct tool *tool);
const struct tool *tool_find(const struct tool *const *tools,
			     const char *name); /* aliases too */
/* The tool for which workers are prepared, or NULL. */
const struct tool *tool_prepared(const struct tool *const *tools);
/* The name nearest to NAME, internal tools aside; NULL when it is a slip of none. */
const char *tool_nearest(const struct tool *const *tools, const char *name);

/*
 * RESULT as one payload of a frame, with `seen`, which never leaves the product
 * (tool_result_value). Its numbers and the sizes of its parts come first.
 */
bool tool_result_print(const struct tool_result *result, struct buf *out);
/*
 * The other way; RESULT is initialised by the caller. A worker may have been taken over
 * by what it ran: everything is checked, and can only fill one result. EPROTO.
 */
bool tool_result_parse(struct str payload, struct tool_result *result, struct err *err);
