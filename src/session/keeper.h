/*
 * keeper: the work of a session that makes its steps undoable (for session/ only). A
 * keeper holds the project's store and opens it when it is first needed. It makes
 * checkpoints before and after commands; these are calls of the session's own, of
 * which no event tells. It also gives file tools the logs that they write to.
 *
 * A checkpoint after a command tells the command's changes apart from others'. The
 * command's result waits for that checkpoint when the last look took no longer than
 * KEEPER_WAIT_US, or in a session of one call. Otherwise the checkpoint is made while the
 * model thinks.
 *
 * A checkpoint is the internal tool in tools/checkpoint.c: it looks, compares with the
 * list made last, and copies. files/place.c writes to the log of a call before it
 * replaces anything. The hand-over (generate_patch) is the plan of all steps of the
 * session.
 */
#pragma once

#include "base/err.h"
#include "session/session.h"
#include "tool/tool.h"
#include "undo/plan.h"
#include "undo/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keeper;
struct running;
struct session;
struct undo_store;

/*
 * FOLDER holds the stores of all projects, which may take SPACE bytes together. When
 * FOLDER is NULL or cannot be used, the files that file tools replace are kept in memory
 * for the session's patch, and commands are not looked at. All functions accept a keeper
 * that is NULL (the session closes).
 */
struct keeper *keeper_new(struct session *session, const char *folder, uint64_t space);
/* Make the looks that are owed, within KEEPER_CLOSE_MS; then free KEEPER. */
void keeper_close(struct keeper *keeper);

/* The store, which is opened and made when that was not done yet. */
struct undo_store *keeper_store(struct keeper *keeper);
/* Is the store one from which steps can be undone? */
bool keeper_keeps(const struct keeper *keeper);

/*
 * Start the checkpoint or the patch that waiting calls need first. Called before each
 * look at the queue.
 */
void keeper_begin(struct keeper *keeper);
/* Must the queued call RUNNING wait for a checkpoint or a patch? */
bool keeper_holds(const struct keeper *keeper, const struct running *running);
/* RUNNING goes to a worker: give it its log. False with the sentence in ERR. */
bool keeper_give(struct keeper *keeper, struct running *running, struct err *err);
/*
 * RUNNING is with its worker: make meanwhile the file for which the next call would wait.
 */
void keeper_sent(struct keeper *keeper, const struct running *running);
/* Is a checkpoint made between the result of RUNNING and its end? */
bool keeper_will_look(const struct keeper *keeper, const struct running *running);
/* The result of RUNNING stands. True: the keeper finishes RUNNING, a little later. */
bool keeper_waits(struct keeper *keeper, struct running *running);
/* RUNNING is finished. */
void keeper_finish(struct keeper *keeper, struct running *running);
/* RUNNING was cancelled while it waits for the keeper. */
void keeper_cancel(struct keeper *keeper);

/*
 * keeper_nested: the known repositories deep in the workspace, for the audit of a call
 * (guard.h); NULL: none. keeper_nested_begin: when the cell exists, report the folders
 * that its guard leaves out.
 */
const struct value *keeper_nested(const struct keeper *keeper);
void keeper_nested_begin(struct keeper *keeper);
/*
 * Are there repositories deep in the workspace that the keeper's list does not hold, or
 * that checkpoints no longer find?
 */
bool keeper_misses_nested(const struct keeper *keeper);

/* As session_run, session_adopt, session_checkpoint and session_has_news. */
const char *keeper_run(const struct keeper *keeper);
void keeper_adopt(struct keeper *keeper, const char *run, bool handed);
void keeper_checkpoint(struct keeper *keeper, bool begins_turn);
bool keeper_has_news(const struct keeper *keeper);
/* The paths of session_changed, NULL-ended; the caller frees each of them and the list. */
char **keeper_changed(struct keeper *keeper);
/* Fill WRITES, except whether a job writes (session_writes). */
void keeper_writes(const struct keeper *keeper, struct session_writes *writes);

/* The inside of a keeper, for keeper.c and undo.c only. */

enum {
	KEEPER_TITLE_MAX = 400, /* bytes of a step's title */
	RUN_DIGITS = 12,
	/* tidy after so many logs; looking at all of them takes milliseconds */
	UNDO_TIDY_EVERY = 32,
};

/* A command whose changes nobody has looked at yet. */
struct keeper_owner {
	char *title;
	/*
	 * when it ran, by the wall clock: a file that changed at another time was changed
	 * by somebody else
	 */
	int64_t began_ms, ended_ms;
	bool with_jobs; /* jobs wrote beside it */
};

struct keeper {
	struct session *session;
	char *folder;
	uint64_t space;           /* of all stores together */
	struct undo_store *store; /* NULL: not opened yet, or it cannot be */
	char run[RUN_DIGITS + 1];
	/* the list shows the workspace as it is, as far as anybody knows */
	bool fresh;
	bool listed; /* this session has looked before */
	bool owed;   /* a command has run since the list was made */
	/* no store, or checkpoints fail: commands run without checkpoints */
	bool broken;
	struct buf trouble; /* a text to be told once, with the next result */
	struct buf why;     /* broken: the reason */
	bool tells_broken;  /* `why` is told in full, with the next command's result */
	struct keeper_owner owes; /* the command that is owed a checkpoint */
	bool owed_next; /* a command ended during a checkpoint: it is owed the next one */
	struct keeper_owner owes_next;
	int64_t turn_ms; /* when the turn began; 0: there is none */
	/* the worker of the last look was lost: another one looks again */
	bool lost_one;
	/* the checkpoint under way */
	struct running *sync;
	struct running *owner; /* the call that waits for it, or NULL */
	struct running *over;  /* done, to be freed */
	bool starting, is_step;
	/*
	 * The list, the next list and the log; the last two stay open when nothing was
	 * written in them.
	 */
	int fds[3];
	uint32_t log;
	bool blank; /* the log has no name yet */
	/*
	 * when the session rests: makes files for the next checkpoint, and that
	 * checkpoint
	 */
	struct timer ahead;
	bool settles, untidy;
	bool young; /* the last look found changes that it did not know */
	/*
	 * the object folder of the workspace's repository, O_PATH; -1: none, -2: not
	 * looked yet
	 */
	int objects;
	bool may_link;
	int64_t look_us;
	bool told_left;
	/* repositories deep in the workspace; NULL: none known */
	struct value *nested;      /* as guard.h has it */
	struct value *nested_keys; /* keys of their folders -> true */
	size_t nested_bytes;
	bool nested_looked, nested_full;
	/* a look through all folders follows the look for the last command */
	bool sweeping;
	/* the repositories that the last look found must be audited: one more look */
	bool again;
	/*
	 * the store is in memory: nothing can be undone, and commands are not looked at
	 */
	bool in_memory;
	/*
	 * the logs of this session that hold changes, in the order in which they were
	 * written
	 */
	struct keeper_step {
		uint32_t number;
		/* written under other rights, by a session that was adopted */
		bool foreign;
	} * steps;
	size_t step_count, step_room;
	size_t handed; /* how many steps there were when a patch was last made */
	uint64_t kept; /* bytes of these logs, in memory */
	int64_t lost;  /* calls whose replaced files were not kept in memory any more */
	/* changes that were found, by the calls themselves or by the looks after them */
	uint64_t changes;
	uint64_t writers; /* calls that have ended and could have changed something */
	/* the changes, for the call that asks for them */
	struct {
		struct undo_plan plan;
		/* the call that gets contents out of git, or NULL */
		struct running *fetch;
		struct running *over; /* done, to be freed */
		/* the list of wanted contents, the contents, what git printed */
		int fds[3];
		/* a look at the changes of jobs was asked for, once */
		bool looked;
		bool begun, ready;
		struct err trouble;
	} patch;
};
