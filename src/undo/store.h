/*
 * store: one project's undo folder in the user's state: numbered logs (record.h),
 * lists of the workspace, links to git's objects. The folder belongs to the
 * front. A worker gets single open files of it, never the folder, and the bytes that a
 * worker wrote into a file are not trusted.
 *
 * Therefore the description of a log and the rights of its session to read and write are
 * stored beside the log, in files that no worker gets. Undo changes nothing in the name
 * of a log that its session could not have changed itself. A log or list may refer to
 * contents of another log only when both have equal rights: each set of rights has a list
 * of its own.
 *
 * Several glovebox processes may use one store at the same time: a log has one writer,
 * and the list is replaced as a whole. undo_store_tidy removes steps over the ceilings,
 * the oldest first.
 *
 * The files of the next steps are made ahead. A worker never gets the folder for two
 * reasons: Landlock would refuse the worker every new name there, and a worker that an
 * attacker has taken over could reach other steps.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "files/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rights;
struct undo_store;

enum {
	UNDO_STEPS_MAX = 500,
	UNDO_AGE_MAX_S = 30 * 24 * 3600,
	UNDO_NAME_MAX = 64,
	UNDO_MARK_MAX = 64, /* bytes of the name of a mark */
};

/*
 * FOLDER holds the stores of all projects (session.h: undo_folder); it is created when
 * missing.
 */
bool undo_store_open(const char *folder, const char *workspace, struct undo_store **store,
		     struct err *err);
/*
 * Like undo_store_open, but only for an existing store: *STORE is NULL when there is
 * none.
 */
bool undo_store_open_old(const char *folder, const char *workspace,
			 struct undo_store **store, struct err *err);
/*
 * A store without a folder, with logs only, for the present process. undo_store_keep_log makes
 * the file FD (borrowed, in memory or without a name) the log *NUMBER of such a store, which
 * keeps it open.
 */
struct undo_store *undo_store_in_memory(void);
bool undo_store_keep_log(struct undo_store *store, int fd, uint32_t *number,
			 struct err *err);
void undo_store_close(struct undo_store *store);

/*
 * Set the RIGHTS (rights.h) of the session that writes the logs and list from now on. To
 * be called before the first log.
 */
void undo_store_set_rights(struct undo_store *store, const struct value *rights);
/* May the present session write PATH? */
bool undo_store_may_write(const struct undo_store *store, struct str path);
/* May the present session read PATH? */
bool undo_store_may_read(const struct undo_store *store, struct str path);
/* Was the log NUMBER written under the present rights? */
bool undo_store_is_ours(const struct undo_store *store, uint32_t number);

enum undo_work {
	UNDO_CHECKPOINT, /* only contents, which the list refers to */
	UNDO_BY_TOOL,
	UNDO_BY_COMMAND,
	UNDO_BY_UNDO,
	/*
	 * A point that a person named (undo --mark). It changes nothing and is kept like a
	 * step, so that as long as it is there all later steps are.
	 */
	UNDO_MARK,
};

/* The description that is stored beside a log. */
struct undo_meta {
	enum undo_work work;
	const char *run;  /* the session, in hexadecimal digits */
	const char *tool; /* or NULL */
	struct str title; /* a path or a command, to be shown */
	int64_t wall_ms;
	/* UNDO_BY_COMMAND: when the look began with which the step was compared; 0: unknown */
	int64_t since_ms;
	/*
	 * UNDO_BY_UNDO: the number of the step that it undoes. ABOVE: it undoes all steps with
	 * larger numbers than this one, and not this one.
	 */
	uint32_t undoes;
	bool above;
	/* the beginning of the turn that the step belongs to; 0: no turn */
	int64_t turn_ms;
	const char *agent; /* or NULL */
	/* UNDO_BY_COMMAND: there is no sign that others wrote meanwhile */
	bool alone;
};

/* A new log: its descriptor (read and write) and number. -1 with ERR. */
int undo_store_new_log(struct undo_store *store, const struct undo_meta *meta,
		       uint32_t *number, struct err *err);
/*
 * The same in two steps, for a caller that does not know yet whether anything will be
 * written. undo_store_blank_log makes a log without a name, which can be done long before
 * (-1 with errno where the file system has no nameless files). undo_store_next_number
 * gives its number. Once the log is written, undo_store_name_log gives it the name; false
 * with ERR.code EEXIST when another process has made a log of that number meanwhile.
 */
int undo_store_blank_log(const struct undo_store *store);
uint32_t undo_store_next_number(struct undo_store *store);
bool undo_store_name_log(struct undo_store *store, int fd, uint32_t number,
			 const struct undo_meta *meta, struct err *err);
/*
 * File tools may write while a command runs. The look after the command then finds their
 * changes as well, and the step of the command has a later number though it began before
 * theirs. undo_store_note_beside notes in the descriptions of all of them that the COUNT
 * steps TOOLS, ascending, lie within the step COMMAND of the same rights; plan.h says what
 * follows from that. WORK is that of COMMAND: UNDO_CHECKPOINT when all that it has changed
 * went to the steps of the tools. A step whose description cannot be written stays as it is.
 */
enum { UNDO_BESIDE_MAX = 64 }; /* the oldest of them; further ones are not noted */
struct undo_beside {
	uint32_t within; /* of a tool: the step of the command; 0: none */
	uint32_t tools[UNDO_BESIDE_MAX];
	size_t count; /* of a command: its `tools` */
};
void undo_store_note_beside(const struct undo_store *store, uint32_t command,
			    const uint32_t *tools, size_t count, enum undo_work work);
void undo_store_read_beside(const struct undo_store *store, uint32_t number,
			    struct undo_beside *beside);
/*
 * Read the log NUMBER as undo_log_read does, but only those changes that its session
 * could have made; the others go into REFUSED (may be NULL). In a log of the reader's OWN
 * session, a change is refused only when its session could not have read the old content.
 */
struct undo_refused {
	/* of the first refused paths, as they may be shown; or NULL */
	struct value *names;
	size_t count;
	/* nobody knows any more what the session of a step could write */
	bool unknown;
};
bool undo_store_read_log(const struct undo_store *store, uint32_t number, bool own,
			 struct undo_reader *reader, struct undo_refused *refused,
			 struct err *err);
int undo_store_open_log(const struct undo_store *store, uint32_t number, bool writes);
void undo_store_drop_log(const struct undo_store *store, uint32_t number);
/*
 * Keep other undos and undo_store_tidy away from the store until *HELD is closed. Waits
 * for them for some seconds. False with ERR: they are still at work.
 */
bool undo_store_hold(const struct undo_store *store, int *held, struct err *err);
/* Has anything been written to the log FD? */
bool undo_store_is_used(int fd);

/* An empty file without a name, in the store or, without a folder, in memory. -1 with ERR. */
int undo_store_scratch(const struct undo_store *store, struct err *err);

/*
 * Open the list under the present rights for reading; an empty file when there is none.
 * -1 with ERR. As long as the descriptor of this list, or of a list that was taken, is
 * open, undo_store_tidy keeps the contents to which the list refers, even when another
 * session has put its own list in that place; but not when the list could not be locked
 * within a second.
 */
int undo_store_open_list(struct undo_store *store, struct err *err);
/*
 * Make a file for the next list; undo_store_take_list puts the complete list in the place
 * of the last one. USED, the list that this session has used so far, is not protected by
 * the session any more.
 */
int undo_store_new_list(struct undo_store *store, struct err *err);
bool undo_store_take_list(struct undo_store *store, int used, struct err *err);

/*
 * Keep the file NAME of the objects folder OBJECTS ("ab/cdef…", "pack/pack-….pack") by a
 * link; names that git does not use are refused. False with errno.
 */
bool undo_store_link(const struct undo_store *store, int objects, const char *name);
/* Open the kept file for reading; -1: there is none. */
int undo_store_linked(const struct undo_store *store, const char *name);
/*
 * Can files in OBJECTS be linked into the store? Links between file systems are
 * impossible.
 */
bool undo_store_links_from(const struct undo_store *store, int objects);

/* A step as `undo --list` shows it. */
struct undo_step {
	uint32_t number;
	enum undo_work work;
	bool whole;      /* its writer completed it */
	bool undone;     /* by a later step that was not undone itself */
	uint32_t undoes; /* this and the next one as in undo_meta */
	bool above;
	int64_t wall_ms;
	int64_t since_ms; /* this and the next two as in undo_meta */
	int64_t turn_ms;
	bool alone;
	size_t files;
	size_t added, removed; /* of the files */
	size_t folders; /* made, removed, or with other permissions; not those of .git */
	uint64_t bytes; /* of its log */
	char *run, *tool, *title, *agent; /* owned; "" when unknown */
};

/* The first of the steps that STEP, an undo, undoes. */
static inline uint32_t undo_step_first(const struct undo_step *step)
{
	return step->undoes + step->above;
}

/* Is there something that undo would take back? */
static inline bool undo_step_changes(const struct undo_step *step)
{
	return step->files > 0 || step->folders > 0;
}

struct undo_steps {
	struct undo_step *steps; /* in order of number; without checkpoints */
	size_t count;
	uint64_t bytes; /* of all logs and lists */
};
/*
 * A log whose description cannot be read is a step as well when it holds changes: nobody can
 * undo it, but it may be the only place of a content.
 */
bool undo_store_steps(const struct undo_store *store, struct undo_steps *steps,
		      struct err *err);
void undo_steps_fini(struct undo_steps *steps);

/*
 * Remove steps that are too old or over the ceilings, and contents that nothing refers
 * to. False: the store is still over its ceiling, because sessions use what is in it.
 */
bool undo_store_tidy(struct undo_store *store);

/*
 * The name of the file that holds the path of the workspace. Each session holds a shared lock on it, so
 * that nobody prunes the store meanwhile.
 */
#define UNDO_STORE_USED "workspace"

/* Is NAME how a log is named? */
bool undo_store_is_log(const char *name);
/*
 * Remove the steps of the store in FOLDER that began before OLDEST_MS (INT64_MAX: all), and its
 * lists. The caller holds the lock of UNDO_STORE_USED, so no session uses the store. True: no log is
 * left.
 */
bool undo_store_forget(int folder, int64_t oldest_ms);
