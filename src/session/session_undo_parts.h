/*
 * session_undo_parts: the inside of a keeper, for session_undo*.c, session_ahead.c,
 * session_checkpoint.c, session_nested.c and session_patch.c only.
 */
#pragma once
#include "session/session_parts.h"
#include "undo/undo_plan.h"
#include "undo/undo_store.h"

enum {
	KEEPER_TITLE_MAX = 400, /* of a step, bytes */
	RUN_DIGITS = 12,
	UNDO_TIDY_EVERY = 32, /* logs; looking at all of them takes milliseconds */
};

/* A command whose changes nobody has looked at yet. */
struct keeper_owner {
	char *title;
	/* when it ran, by the wall clock: a file that changed at another time is somebody's */
	int64_t began_ms, ended_ms;
	bool with_jobs; /* which wrote beside it */
};

struct keeper {
	struct session *session;
	char *folder;
	uint64_t space;           /* of all stores together */
	struct undo_store *store; /* NULL: not opened yet, or it cannot be */
	char run[RUN_DIGITS + 1];
	bool fresh;         /* the list says what is there, as far as anybody knows */
	bool listed;        /* this session has looked before */
	bool owed;          /* a command has run since it was made */
	bool broken;        /* no store, or checkpoints fail: commands run without */
	struct buf trouble; /* to be told once, with the next result */
	struct buf why;     /* broken: the reason */
	bool tells_broken;  /* in full, with the next command's result */
	struct keeper_owner owes; /* the command that is owed one */
	bool owed_next; /* a job ended while one was under way: it is owed the next */
	struct keeper_owner owes_next;
	int64_t turn_ms; /* when the turn began; 0: there is none */
	bool lost_one;   /* the worker of the last look ended: another one looks again */
	/* the checkpoint under way */
	struct running *sync;
	struct running *owner; /* waits for it, or NULL */
	struct running *over;  /* done, to be freed */
	bool starting, is_step;
	int fds[3]; /* the list, the next one, the log; the last two stay when nothing is in them */
	uint32_t log;
	bool blank; /* the log has no name yet */
	/* When the session rests: files for the next checkpoint, and that itself (session_ahead.c) */
	struct timer ahead;
	bool settles, untidy;
	bool young; /* the last look found what it did not know */
	int objects; /* of the workspace's repository, O_PATH; -1: none, -2: not looked yet */
	bool may_link;
	int64_t look_us;
	bool told_left;
	/* repositories deep in the workspace (session_nested.c); NULL: none known */
	struct value *nested;      /* as audit.h has it */
	struct value *nested_keys; /* of their folders -> true */
	size_t nested_bytes;
	bool nested_looked, nested_full;
	bool sweeping; /* a look through all folders follows the last command's */
	bool again;    /* what the last look found is to be audited: one more */
	bool in_memory; /* the store: nothing can be undone, and commands are not looked at */
	/* the logs of this session that say something, in the order in which they were written */
	struct keeper_step {
		uint32_t number;
		bool foreign; /* written under other rights: a session that was adopted */
	} * steps;
	size_t step_count, step_room;
	size_t handed; /* so many of them were there when a patch was made last */
	uint64_t kept; /* bytes of them, in memory */
	int64_t lost;  /* calls that were not kept there any more */
	uint64_t changes; /* that were found, by the calls themselves or the looks after them */
	uint64_t writers; /* calls that have ended and could have changed something */
	/* what a call that wants the changes will get (session_patch.c) */
	struct {
		struct undo_plan plan;
		struct running *fetch; /* gets contents out of git, or NULL */
		struct running *over;  /* done, to be freed */
		int fds[3];            /* wanted, got, printed */
		bool looked;           /* at what a job does, once */
		bool begun, ready;
		struct err trouble;
	} patch;
};

/* Does a call that wants the changes wait, and has nobody begun to gather them? */
bool patch_is_wanted(const struct keeper *keeper);
/* Gather them: done at once, or when git has given what it holds. */
void patch_begin(struct keeper *keeper);
/* The plan for the call: a file with all of it. -1 with ERR. */
int patch_take(struct keeper *keeper, struct err *err);
void patch_forget(struct keeper *keeper);

/*
 * The repositories in DETAILS, of a checkpoint. True: there are new ones, and an audit of them is
 * due.
 */
bool keeper_nested_take(struct keeper *keeper, const struct value *details);
/* What an audit said in the RESULT of a checkpoint goes to whom it concerns. */
void keeper_nested_tell(struct keeper *keeper, struct tool_result *result);

/* Let go of what is over the ceilings, of this store and of all. */
void keeper_tidy(struct keeper *keeper);
/* The first call in the queue that runs a command; NULL: there is none. */
const struct running *keeper_waiting_command(const struct keeper *keeper);

/* Begin the checkpoint that is due. */
void keeper_sync_start(struct keeper *keeper);
/* Whose result waits for a checkpoint has it as it is. */
void keeper_release_owner(struct keeper *keeper);
/* Close the files of one. */
void keeper_sync_close(struct keeper *keeper);
/* Make those files of the next one that can wait for it. False with ERR. */
bool keeper_sync_files(struct keeper *keeper, struct err *err);

/* A call has come to its end: do ahead what the next one would wait for, once it is quiet. */
void keeper_look_ahead(struct keeper *keeper);

/*
 * Commands run without checkpoints from here on. Each of their results says so; of one that was
 * answered before a notice tells.
 */
void keeper_give_up(struct keeper *keeper, const char *why);
/* The command that is owed a look gets none: tell it where nobody waits for its result. */
void keeper_tell_unseen(struct keeper *keeper, const char *why);
/* In the result of a command: why its changes cannot be undone, and what a look has met. */
void keeper_tell_result(struct keeper *keeper, struct running *running);
/* A log in the store, and its NUMBER. -1 with ERR. */
int keeper_new_log(struct keeper *keeper, const struct undo_meta *meta, uint32_t *number,
		   struct err *err);
/* The log NUMBER of this session says something; FOREIGN as above. */
void keeper_add_step(struct keeper *keeper, uint32_t number, bool foreign);

/*
 * *PATH: the first path of PLAN that the step NUMBER has changed, the caller's to free; NULL:
 * none (folders and git's index are everybody's).
 */
bool undo_step_touches(const struct undo_store *store, uint32_t number,
		       const struct undo_plan *plan, char **path, struct err *err);
