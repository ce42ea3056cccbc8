/*
 * session_undo_parts: the inside of a keeper, for session_undo*.c, session_ahead.c,
 * session_checkpoint.c, session_nested.c and session_patch.c only.
 */
#pragma once
#include "session/session.h"
#include "session/session_undo.h"
#include "undo/plan.h"
#include "undo/store.h"

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
	 * checkpoint (session_ahead.c)
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
	/* repositories deep in the workspace (session_nested.c); NULL: none known */
	struct value *nested;      /* as audit.h has it */
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
	/* the changes, for the call that asks for them (session_patch.c) */
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

/* Does a call wait for the session's changes, and has nobody begun to gather them? */
bool patch_is_wanted(const struct keeper *keeper);
/*
 * Gather the changes: this ends immediately, or when git has given the contents that it
 * holds.
 */
void patch_begin(struct keeper *keeper);
/* The plan for the call, as a file that holds all of it. -1 with ERR. */
int patch_take(struct keeper *keeper, struct err *err);
void patch_forget(struct keeper *keeper);

/*
 * Note the repositories in DETAILS, the details of a checkpoint. True: some are new, and
 * an audit of them is due.
 */
bool keeper_nested_take(struct keeper *keeper, const struct value *details);
/*
 * Pass on what an audit said in the RESULT of a checkpoint: to the command's result, or
 * as a notice.
 */
void keeper_nested_tell(struct keeper *keeper, struct tool_result *result);

/* Remove what is above the ceilings of this store and of all stores. */
void keeper_tidy(struct keeper *keeper);
/* The first call in the queue that runs a command; NULL: there is none. */
const struct running *keeper_waiting_command(const struct keeper *keeper);

/* Begin the checkpoint that is due. */
void keeper_sync_start(struct keeper *keeper);
/* The call that waits for a checkpoint ends now, with the result that it has. */
void keeper_release_owner(struct keeper *keeper);
/* Close the files of a checkpoint. */
void keeper_sync_close(struct keeper *keeper);
/* Make the files of the next checkpoint that can be made early. False with ERR. */
bool keeper_sync_files(struct keeper *keeper, struct err *err);

/*
 * A call has ended: once the session is quiet, make ahead what the next call would wait
 * for.
 */
void keeper_look_ahead(struct keeper *keeper);

/*
 * Commands run without checkpoints from here on. The result of each command says so; a
 * notice says it for a command that was already answered.
 */
void keeper_give_up(struct keeper *keeper, const char *why);
/*
 * The command that is owed a look gets none: report that as a notice when no call waits
 * for the look.
 */
void keeper_tell_unseen(struct keeper *keeper, const char *why);
/*
 * Add to the result of a command why its changes cannot be undone, and the trouble that a
 * look has met.
 */
void keeper_tell_result(struct keeper *keeper, struct running *running);
/* Make a log in the store; *NUMBER becomes its number. -1 with ERR. */
int keeper_new_log(struct keeper *keeper, const struct undo_meta *meta, uint32_t *number,
		   struct err *err);
/*
 * Count the log NUMBER, which holds changes, as a step of this session; FOREIGN as in
 * keeper_step.
 */
void keeper_add_step(struct keeper *keeper, uint32_t number, bool foreign);

/*
 * *PATH becomes the first path of PLAN that the step NUMBER has changed, owned by the
 * caller; NULL: none. Folders and git's index do not count: everybody changes them.
 */
bool undo_step_touches(const struct undo_store *store, uint32_t number,
		       const struct undo_plan *plan, char **path, struct err *err);
