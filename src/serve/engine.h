/*
 * engine: a process with many cells and one caller (`glovebox serve`), or with one cell that
 * outlives its callers (`glovebox start`): programs, files and tools, over the lines of caller.h. docs/serve.md is the table of methods for those who
 * use it. Each cell is a session (session/session.h), and each request that wants
 * anything of a cell is a call of this session: there is no second way past its checks.
 *
 * One thread, one loop. Requests are taken between two turns of the loop, in their order;
 * answers come in the order in which the work ends. A request that has to wait for its
 * call is a task. The files of this folder: engine.c takes requests, has the cells and
 * the tasks, and answers the methods about cells; programs.c is exec/…; files.c is file/…;
 * trees.c is tree/…; runs.c is run/…; tools.c is tool/… and what is said about the changes
 * of a cell.
 *
 * The front knows configuration, agents and policies: it opens the session of a cell
 * (struct engine_host), and the engine closes it.
 *
 * Ceilings: ENGINE_TASKS calls under way, ENGINE_CELL_TASKS of them in one cell, and
 * ENGINE_KEPT_MIB that are kept for all of them together: outputs and answers that are
 * gathered, files that are written, and input that programs have not read. The engine ends when the
 * caller's input ends, when stop_fd becomes readable, or when its parent dies. Everything
 * in its cells is killed then, and a call that has not ended after ENGINE_CALLS_MS ends with the
 * process. It looks at the workspaces of its caller for ENGINE_LOOK_MS at most; the next session
 * in a workspace looks at what is left.
 */
#pragma once

#include "base/err.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "process/loop.h"
#include "serve/caller.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ENGINE_VERSION = 1,
	ENGINE_CELLS = 1024,     /* unless --max-cells says otherwise */
	ENGINE_CELLS_MAX = 4096, /* the most that it may say */
	ENGINE_TASKS = 1024,     /* calls under way */
	ENGINE_CELL_TASKS = 64,  /* of them in one cell */
	ENGINE_CALLERS = 64,     /* of a cell that outlives them */
	ENGINE_LOOKERS = 4,      /* callers above that, which ask what runs, and end it */
	ENGINE_SPARE = 2, /* a caller that is refused is one, and its process another */
	/*
	 * MiB that are kept for them together: as many calls as may be under way with what an
	 * output is given when the caller names no `keep`, and 1 GiB for those that ask for more
	 */
	ENGINE_KEPT_MIB = 1024 + 2 * ENGINE_TASKS,
	ENGINE_PIECE = 8 << 20,          /* bytes of a file or a tar in one message */
	ENGINE_NAME = 128,               /* bytes of a name that the caller gives */
	ENGINE_VARIABLE = 128 << 10,     /* bytes of a variable, as the kernel has it */
	ENGINE_SECONDS = 30 * 24 * 3600, /* the longest time that a caller may name */
	ENGINE_CALLS_MS = 3000, /* for calls at its end; half of it until all is killed */
	ENGINE_LOOK_MS = 1000,  /* for looks into workspaces then */
	ENGINE_END_MS = 1500,   /* until the engine returns, when everything is killed */
};

/* The wishes of the caller for a new cell. All values are borrowed. */
struct engine_wish {
	const char *workspace; /* a folder that exists; NULL: a fresh one */
	bool layered; /* a layer over that folder takes all that is written to it */
	const char *snapshot; /* a layer over this snapshot is the workspace; or NULL */
	const char *base;     /* the root of the cell (cell_base); NULL: the policy's */
	const char *at;       /* where the workspace is shown as well; NULL: nowhere */
	const char *agent;    /* whose rights hold; NULL: default */
	const char *within; /* whose rights bound them, if the configuration has it; or NULL */
	const struct value *policy; /* that holds in place of an agent's; or NULL */
	const struct value *env; /* {NAME: value}, besides those of the policy; or NULL */
	const struct value *limits; /* keys of `limits`, in place of the policy's; or NULL */
	unsigned ready;             /* workers that are made ahead of calls */
};

/* The parts of a cell that the front has made. */
struct engine_place {
	struct session *session;
	void *kept;  /* the front's own; freed by `closed` after the session */
	char *fresh; /* the folder that was made for it; NULL: it was there before */
	/* the layer over its workspace, which `kept` holds, and where it lies; NULL: none */
	const char *layer, *layer_lies;
	/* the hash of the snapshot that it works over, which `kept` holds; NULL: none */
	const char *snapshot;
	/*
	 * where programs begin and relative names of the caller start: that of the base of a cell
	 * without a workspace; NULL: the workspace
	 */
	const char *folder;
	const struct tool *const *tools; /* those of the session; they outlive it */
	double wall_s; /* the deadline of a program that asks for none; 0: none */
};

/* A run of our own agent, which the front has begun. */
struct engine_run;

/* The wishes of the caller for a run. All values are borrowed. */
struct engine_run_wish {
	const char *prompt;
	const char *model, *agent; /* or NULL */
	const char *pace; /* of a pipe: a byte is taken from it before each request to the model; or NULL */
	const struct value *budget; /* tokens, money, seconds, answers; or NULL */
	/* Called with each event of the run, {session, agent, event_of} as EVENT_CHILD has it. */
	void (*event)(void *context, const struct value *event);
	/* Called once, when the run has ended, with what became of it. */
	void (*ended)(void *context, struct value *take_told);
	void *context;
};

/* The files of a snapshot, as they were counted. */
struct engine_snapshot {
	const char *digest; /* over all of them */
	int64_t entries, bytes;
	/* the changes of the base of its cell, as tree_get packs them, and that base; -1: none */
	int layer;
	const struct session_base *base;
};

/* The front's part. */
struct engine_host {
	/*
	 * Open the session of a new cell in LOOP; its cell may still be being built then
	 * (session_is_built). False: nothing is left, and ERR says why.
	 * Its code is ECHILD where the machine could not build the cell, EACCES where a bound
	 * refuses it, and EINVAL where the wish is wrong.
	 */
	bool (*open)(void *context, const struct engine_wish *wish, struct loop *loop,
		     struct engine_place *place, struct err *err);
	/*
	 * The session of PLACE is closed. KEEPS: a fresh workspace, or its layer, stays. False:
	 * nothing stays, because nothing is in it.
	 */
	bool (*closed)(void *context, struct engine_place *place, bool keeps);
	/*
	 * Begin the snapshot NAME of the workspace FROM: the workspace of PLACE is its folder,
	 * which is empty, and which its session may write. False: nothing is left; EEXIST: the
	 * name is taken.
	 */
	bool (*freeze)(void *context, const char *name, const char *from,
		       struct loop *loop, struct engine_place *place, struct err *err);
	/*
	 * The session of such a PLACE is closed. MADE: the snapshot is whole, and gets its name;
	 * NULL: it goes. False: it has gone, and ERR says why. *WAITS is -1, or a descriptor of the
	 * snapshot: it is to be asked again, for the same, when that can be read. Without MADE it
	 * is NULL.
	 */
	bool (*frozen)(void *context, struct engine_place *place,
		       const struct engine_snapshot *made, int *waits, struct err *err);
	/*
	 * Let an agent work in the workspace of PLACE, with no right that the cell lacks. `end`
	 * asks it to end, and a second time ends it; `free` ends it without a word. NULL with
	 * ERR: it could not begin.
	 */
	struct engine_run *(*run)(void *context, struct engine_place *place,
				  const struct engine_run_wish *wish, struct loop *loop,
				  struct err *err);
	void (*run_end)(struct engine_run *run);
	void (*run_free)(struct engine_run *run);
	void *context;
};

/*
 * An engine whose cell outlives its callers. It opens this one cell itself, and ends when the
 * cell is closed or broken. At most ENGINE_CALLERS of this user, or root, are served at the
 * same time, and ENGINE_LOOKERS more that only ask what runs and end it. When a caller goes, its
 * requests and programs end, but for those that stay.
 */
struct engine_standing {
	int listener; /* a listening socket, which stays the owner's */
	/*
	 * The cell is open. *CELL becomes its name; the engine frees it. False: ERR says why the
	 * engine is to end.
	 */
	bool (*ready)(void *context, const struct engine_place *place, char **cell,
		      struct err *err);
	void *context;
};

struct engine_options {
	struct engine_host host;
	const char *program; /* its version, for `hello` */
	size_t max_cells;
	int input, output; /* the caller's; they stay the owner's */
	int stop_fd;       /* readable: end now; -1: none */
	/* NULL: one caller, at `input` and `output` */
	const struct engine_standing *standing;
};

/*
 * Serve the caller until it goes; with `standing`, serve callers until the cell is closed. False:
 * the output failed before that, or the cell could not be opened. All cells are closed then.
 */
bool engine_run(const struct engine_options *options, struct err *err);

/* May METHOD be called with PARAMS (NULL: none)? For the fuzz target of the reader. */
bool engine_check(const char *method, const struct value *params);

/* The inside, for the files of this folder. */

struct engine;
struct engine_host_tool;
struct engine_pieces;
struct engine_tree;

struct engine_cell {
	struct engine_cell *next;
	struct engine *engine;
	char *name;
	struct engine_place place;
	int64_t opened_ms, used_ms; /* by the monotonic clock */
	double idle_s;  /* closed when it was not used for so long; 0: never */
	size_t tasks;   /* that are under way */
	uint64_t calls; /* so far */
	bool failed; /* it could not be built, its caller knows, and it is to be closed */
	struct timer idle;
	struct engine_host_tool *tools; /* the caller's own (tools.c) */
	const struct tool **offered;    /* with those; or NULL */
};

/* A request that waits for a call, or a program that the caller has started. */
struct engine_task {
	struct engine_task *next;
	struct engine *engine;
	struct engine_cell *cell;
	struct caller *caller; /* NULL: it has gone, or the task stays without one */
	struct value *id;      /* of the request that its end answers; NULL: none */
	struct running *running;
	bool cancelled; /* by $/cancel */
	bool rests;     /* nothing of it is under way, but it can still be asked for */
	bool over;      /* its end was told, and it may be freed */
	bool left;      /* its caller has gone; its call was cancelled */
	bool tidies; /* it has its turns also when its caller has gone, and ends itself */
	uint64_t kept; /* bytes of ENGINE_KEPT_MIB that are charged to it */
	/* In each turn of the loop, before the next: RUNNING may be done. */
	void (*turn)(struct engine_task *task);
	/* Frees the task with everything; its call is cancelled when it runs. */
	void (*free)(struct engine_task *task);
};

struct engine {
	struct engine_options options;
	struct loop *loop;
	struct engine_caller *callers;
	struct watch stopping, parent, listening;
	struct timer listens_again;
	int spare[ENGINE_SPARE]; /* descriptors for a caller when there are no others */
	bool stopped;            /* by a signal, or because the parent has died */
	bool failed;             /* the output of the caller, whose error `gone` is */
	int gone;
	struct engine_cell *cells; /* the one that was used last comes first */
	size_t cell_count;
	size_t passing; /* cells that failed, or end when nobody uses them: all have to be looked at */
	uint64_t cells_made, programs_made;
	struct engine_task *tasks;
	size_t task_count;
	uint64_t kept;
	struct engine_pieces *pieces; /* of files that are not whole yet (files.c) */
	struct engine_tree *trees;    /* that pass in pieces (trees.c) */
	size_t tree_count;            /* with those whose calls are under way */
	uint64_t trees_made, runs_made;
};

/* One request. */
struct engine_request {
	struct engine *engine;
	struct caller *caller;
	const struct value *id;
	const struct value *params; /* an object that fits the rows, or NULL */
	struct engine_cell *cell;   /* of the member `cell`; NULL: it has none */
};

struct engine_method {
	const char *name;
	/* The rows of `params`. One named `cell` is the cell, which must be open. */
	const struct row *params;
	void (*take)(const struct engine_request *request);
};

/* Each ends with {0}. */
extern const struct engine_method engine_programs[];
extern const struct engine_method engine_files[];
extern const struct engine_method engine_tools[];
extern const struct engine_method engine_trees[];
extern const struct engine_method engine_runs[];

/* The row of `cell`, which most methods have. */
#define ENGINE_ROW_CELL                                                                   \
	{                                                                                 \
		.name = "cell", .kind = ROW_BYTES, .required = true, .min = 0,            \
		.max = ENGINE_NAME, .description = "the name that cell/open has answered" \
	}

/* The rows of a method that has no other member than its cell. */
extern const struct row engine_cell_params[];

/* May one more call begin in the cell of REQUEST, and keep KEPT bytes? False: it was refused. */
bool engine_has_room(const struct engine_request *request, uint64_t kept);
/*
 * Let *CHARGED, the bytes of ENGINE_KEPT_MIB that something uses, be KEPT from now on. False: it
 * stays as it was, because too many would be kept. Fewer than before always fit.
 */
bool engine_charge(struct engine *engine, uint64_t *charged, uint64_t kept);
/* Refuse the request ID, for which engine_charge had no room. */
void engine_refuse_kept(struct caller *caller, const struct value *id);
/* Add TASK, all of whose members but `next` and `engine` the caller has filled. */
void engine_add_task(struct engine_task *task, const struct engine_request *request,
		     const struct value *id);
/* Nothing of TASK is under way any more, but it stays. */
void engine_rest_task(struct engine_task *task);
/* Free what all tasks have: for `free` of a task. */
void engine_task_fini(struct engine_task *task);
/*
 * Answer the request ID of CALLER, whose call in CELL has not done what it should, by RESULT: with the
 * kind, the rule and the remedy. WHAT begins the sentence. CANCELLED: by the caller.
 */
void engine_refuse_result(struct caller *caller, const struct engine_cell *cell,
			  const struct value *id, bool cancelled,
			  const struct tool_result *result, const char *what);
/* The accounts of a call, as the wire has them. The caller owns the value. */
struct value *engine_accounts(const struct tool_result *result);
/* For rows of variables: are all members of VALUE texts, with names of variables? */
bool engine_check_variables(const struct row *row, const struct value *value,
			    struct rows_problem *problem);
/* For rows of a piece: is VALUE Base64 of ENGINE_PIECE bytes at most? (files.c) */
bool engine_check_piece(const struct row *row, const struct value *value,
			struct rows_problem *problem);
/* The variables ENV, {NAME: value} or NULL, as a list of NAME=value. The caller owns it. */
struct value *engine_variables(const struct value *env);
/*
 * The path of TEXT, relative to the workspace of CELL, in normal form. False: it is too long
 * for PATH, or leads above /.
 */
bool engine_path(const struct engine_cell *cell, const char *text, struct buf *path);
/* Forget the pieces of files that CELL has got, or that CALLER sends (files.c); one is NULL. */
void engine_files_forget(struct engine *engine, const struct engine_cell *cell,
			 const struct caller *caller);
/* Forget the trees that pass into or out of CELL, or that are CALLER's (trees.c); one is NULL. */
void engine_trees_forget(struct engine *engine, const struct engine_cell *cell,
			 const struct caller *caller);
/* CALLER goes: it looks at no job any more, and types at none (programs.c). */
void engine_programs_forget(struct engine *engine, const struct caller *caller);
/* Free the caller's own tools of CELL, whose session is closed. */
void engine_tools_free(struct engine_cell *cell);
/* Take the response of the caller to request NUMBER of ours (tools.c). */
void engine_tools_answer(struct engine *engine, int64_t number,
			 const struct mcp_message *message);
