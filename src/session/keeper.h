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
 * A checkpoint before the second of two commands keeps the changes that others made
 * between them. The keeper makes it when it can poll that the watching worker was told of something.
 *
 * A checkpoint is the internal tool in tools/looks/checkpoint.c: it looks, compares with the
 * list made last, and copies. One worker makes all of them and keeps that list; the
 * keeper counts the checkpoints that it has taken, by which the worker knows whether the
 * last one stands. A long list is written to the disk while the session rests.
 * files/place.c writes to the log of a call before it replaces anything. The hand-over
 * (generate_patch) is the plan of all steps of the session.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "guard/scan.h"
#include "process/loop.h"
#include "session/session.h"
#include "undo/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct keeper;
struct running;
struct session;
struct session_writes;
struct tool_result;
struct undo_store;
struct value;

/*
 * FOLDER holds the stores of all projects, which may take SPACE bytes together. When
 * FOLDER is NULL or cannot be used, the files that file tools replace are kept as long as
 * the session lives, for its patch, and commands are not looked at. All functions accept a keeper
 * that is NULL (the session closes).
 */
struct keeper *keeper_new(struct session *session, const char *folder, uint64_t space);
/*
 * Make the looks that are owed, within KEEPER_CLOSE_MS; then free KEEPER. A look that is owed to
 * no command gets only a moment. A person whose session `waits` is told how far it is, and ends it
 * with the descriptor that cancels.
 */
void keeper_close(struct keeper *keeper);
/* LOOK has DONE so many files of ALL. False: it is not the keeper's look. */
bool keeper_told(struct keeper *keeper, const struct running *look, int64_t done,
		 int64_t all);

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
/* Before RUNNING goes to a worker: give it its log. False with the sentence in ERR. */
bool keeper_before(struct keeper *keeper, struct running *running, struct err *err);
/*
 * After the result of RUNNING stands: is a checkpoint due now, later or never? True: now,
 * and the keeper finishes RUNNING after it.
 */
bool keeper_after(struct keeper *keeper, struct running *running);
/*
 * RUNNING is finished with RESULT, which is its own; or it goes on as a job, and RESULT is
 * the answer for its caller.
 */
void keeper_finish(struct keeper *keeper, struct running *running,
		   struct tool_result *result);
/* RUNNING was cancelled while it waits for the keeper. */
void keeper_cancel(struct keeper *keeper);

/* Is the workspace watched, and has nothing in it changed since the last look? */
bool keeper_is_quiet(const struct keeper *keeper);

/* As session_take_landed. */
void keeper_take_landed(struct keeper *keeper);
/* As session_run, session_adopt, session_checkpoint and session_has_news. */
const char *keeper_run(const struct keeper *keeper);
void keeper_adopt(struct keeper *keeper, const char *run, bool handed);
void keeper_checkpoint(struct keeper *keeper, bool begins_turn);
bool keeper_has_news(const struct keeper *keeper);
/* Of STEPS, those of this session that are undone are in effect no more. */
void keeper_note_undone(struct keeper *keeper, const struct undo_steps *steps);
/* The paths of session_changed, NULL-ended; the caller frees each of them and the list. */
char **keeper_changed(struct keeper *keeper);
/* Fill WRITES, except whether a job writes (session_writes). */
void keeper_writes(const struct keeper *keeper, struct session_writes *writes);

/* The inside of a keeper, for keeper.c only. */

enum { RUN_DIGITS = 12 }; /* of a session's name for its steps */

/* The steps that can be undone, from here on. */
enum keeper_reach {
	KEEPS_ALL,
	/* checkpoints fail: commands run without them */
	KEEPS_TOOLS,
	/*
	 * There is no store: the files that tools replace are kept in logs without names,
	 * for the patch only, and commands are not looked at.
	 */
	KEEPS_MEMORY,
};

/*
 * A command whose changes nobody has looked at yet, or the last one that was looked at: a
 * later look may find more of its changes.
 */
struct keeper_owner {
	char *title;
	/*
	 * when it ran, by the wall clock: a file that changed at another time was changed
	 * by somebody else
	 */
	int64_t began_ms, ended_ms;
	bool with_others; /* jobs or other commands wrote beside it */
	bool owed;        /* a look is owed to it */
};

/*
 * The list of the workspace. The worker that looks keeps it, and writes a long one only
 * when it is told to.
 */
struct keeper_list {
	enum {
		LIST_UNKNOWN, /* this session has not looked yet */
		LIST_OLD,     /* the workspace may have changed since */
		LIST_FRESH,   /* the list is taken to show the workspace as it is now */
	} state;
	bool unsaved; /* the list on the disk is an older one */
	/* a look at the whole workspace is due, when there is time (checkpoint.h) */
	bool owes_whole;
	bool young;     /* the last look found changes that it did not know */
	uint64_t looks; /* that were taken */
	int64_t rows;   /* that the worker's list has */
	/* the workspace, where it was empty before any look; inode 0: it was not */
	dev_t device;
	ino_t inode;
	/*
	 * The list that shows the workspace as this session saw it last; -1: no look was
	 * taken yet. Another session may have put its own list in the place of this one.
	 */
	int own;
	/*
	 * An inotify instance and an eventfd (watcher.h); -1: not made yet. The changes
	 * between two commands are others': one look for the next command keeps them, so
	 * that the command cannot overwrite what nobody has seen.
	 */
	int events, pending;
	bool watched;   /* the worker that looks watches with them */
	bool caught_up; /* that look was made, or is under way */
	/* when the last look began, and the one under way, by the wall clock; 0: never */
	int64_t looked_ms, looking_ms;
};

/* A call of the keeper's own. */
struct keeper_call {
	struct running *running; /* NULL: none is under way */
	struct running *over;    /* done, to be freed */
	bool starts;             /* session_start has not returned */
};

/* The look under way; what outlives it is said. */
struct keeper_look {
	struct keeper_call call;
	struct running *owner; /* the call that waits for it, or NULL */
	bool is_step;          /* it is owed to a command */
	/* it is made for the list's sake: to write it, or to look at the whole workspace */
	bool tends;
	/* the repositories that it found must be audited: one more look */
	bool again;
	/* the worker of the last look was lost: another one looks again */
	bool lost_one;
	bool blank; /* the log has no name yet */
	uint32_t log;
	/*
	 * The list, the next list and the log; the last two stay open when nothing was
	 * written in them.
	 */
	int fds[3];
	int64_t us; /* how long the last one took */
};

/* Repositories deep in the workspace. */
struct keeper_nested {
	enum {
		NESTED_UNSEEN, /* no look was taken yet */
		NESTED_SEEN,
		NESTED_FULL,     /* there are more than are noted */
		NESTED_SWEEPING, /* and a look through all folders is due */
	} state;
	struct marks known; /* `more` of the audits (guard.h) */
	size_t bytes;
};

/* The logs of this session that hold changes, in the order in which they were written. */
struct keeper_steps {
	struct keeper_step {
		uint32_t number;
		/* written under other rights, by a session that was adopted */
		bool foreign;
		bool undone; /* it is in effect no more */
	} * items;
	size_t count, room;
	size_t looked; /* how many there were at the last look */
	size_t handed; /* how many there were when a patch was last made */
	uint64_t kept; /* bytes of these logs */
	int64_t lost;  /* calls whose replaced files were not kept any more */
};

/* The changes, for the call that asks for them. */
struct keeper_patch {
	enum {
		PATCH_NONE,  /* nobody asks */
		PATCH_BEGUN, /* a call gets contents out of git */
		PATCH_READY, /* or `trouble` says why not */
	} state;
	bool looked; /* a look at the changes of jobs was asked for, once */
	struct undo_plan plan;
	struct keeper_call fetch; /* the call that gets contents out of git */
	/* the list of wanted contents, the contents, what git printed */
	int fds[3];
	struct err trouble;
};

/* Texts for the results of calls. */
struct keeper_words {
	struct buf trouble; /* to be told once, with the next result */
	struct buf why;     /* why commands run without checkpoints */
	bool tells_why;     /* in full, with the next command's result */
	bool told_left, told_unwatched, told_missed, told_unkept;
};

/* The object folder of the workspace's repository. */
struct keeper_objects {
	int fd; /* O_PATH; -1: there is none, -2: not looked yet */
	bool may_link;
};

/* Work for the time of rest: files for the next checkpoint, and that checkpoint. */
struct keeper_rest {
	struct timer timer;
	bool settles; /* it has looked once since the last call */
	enum {
		STORE_TIDY,
		STORE_OVERFULL, /* tidying did not bring it below its ceiling */
		STORE_UNTIDY,   /* logs have come since it was tidied */
	} store;
};

/* The end of the session, which waits for the look that is due. */
struct keeper_closing {
	bool begun;
	int cancel_fd; /* -1: it was readable before, which meant the calls */
	bool ended;    /* the person does not want to wait */
	struct session_wait wait;
};

struct keeper {
	struct session *session;
	char *folder;
	uint64_t space;           /* of all stores together */
	struct undo_store *store; /* NULL: not opened yet, or it cannot be */
	char run[RUN_DIGITS + 1];
	int64_t turn_ms; /* when the turn began; 0: there is none */
	enum keeper_reach reach;
	struct keeper_list list;
	struct keeper_owner owes; /* the command of the last look, or of the next */
	/* the command that has ended during the look: it is owed the next one */
	struct keeper_owner owes_next;
	struct keeper_look look;
	struct keeper_nested nested;
	struct keeper_steps steps;
	struct keeper_patch patch;
	struct keeper_objects objects;
	struct keeper_rest rest;
	struct keeper_words words;
	struct keeper_closing closing;
	/* changes that were found, by the calls themselves or by the looks after them */
	uint64_t changes;
	uint64_t writers; /* calls that have ended and could have changed something */
};
