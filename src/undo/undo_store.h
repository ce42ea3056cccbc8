/*
 * undo_store: one project's undo folder in the user's state: numbered logs (undo_log.h), lists
 * of the workspace (undo_list.h), links to git's objects. The front's own; a worker gets
 * single files of it, open, never the folder. What workers wrote into these is foreign.
 *
 * So what a log is of, and what its session could read and write, stands beside it in files
 * that no worker gets. Nothing is done in the name of a log that its session could not have
 * done, and what one log or list says of another's contents counts among equal rights alone:
 * each set of rights has a list of its own.
 *
 * Several glovebox processes may use one store at once: a log has one writer, the list is
 * replaced whole. What is over the ceilings goes, oldest first (undo_store_tidy).
 */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "files/undo_log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct undo_store;

enum {
	UNDO_STEPS_MAX = 500,
	UNDO_AGE_MAX_S = 30 * 24 * 3600,
	UNDO_NAME_MAX = 64,
	UNDO_AHEAD_MAX = 2, /* steps; more are made beside the calls that follow at once */
};
/* Of all logs of a project: twice what one checkpoint copies at most. */
#define UNDO_STORE_MAX ((uint64_t)2 << 30)

/* FOLDER is the undo folder of all projects (undo_store_folder); it is made. */
bool undo_store_open(const char *folder, const char *workspace, struct undo_store **store,
		     struct err *err);
/* The same only when it is there already: *STORE is NULL else. */
bool undo_store_open_old(const char *folder, const char *workspace,
			 struct undo_store **store, struct err *err);
/* One that lives in memory: logs alone, for the process that has it. */
struct undo_store *undo_store_in_memory(void);
void undo_store_close(struct undo_store *store);

/* What those who write its logs and list from now on may do (rights.h); before the first. */
void undo_store_set_rights(struct undo_store *store, const struct value *rights);
/* May they write PATH? */
bool undo_store_may_write(const struct undo_store *store, struct str path);
/* May they read it? */
bool undo_store_may_read(const struct undo_store *store, struct str path);
/* Was the log NUMBER written under these rights? */
bool undo_store_is_ours(const struct undo_store *store, uint32_t number);

enum undo_work {
	UNDO_CHECKPOINT, /* only contents, which the list refers to */
	UNDO_BY_TOOL,
	UNDO_BY_COMMAND,
	UNDO_BY_UNDO,
};

/* What stands beside a log. */
struct undo_meta {
	enum undo_work work;
	const char *run;  /* hexadecimal digits: whose session */
	const char *tool; /* or NULL */
	struct str title; /* a path or a command, to be shown */
	int64_t wall_ms;
	uint32_t undoes; /* UNDO_BY_UNDO: the number of that step */
	int64_t turn_ms; /* when the turn began that it belongs to; 0: to none */
	bool alone;      /* UNDO_BY_COMMAND: nothing says that others wrote meanwhile */
};

/* A new log: its descriptor (read and write) and number. -1 with ERR. */
int undo_store_new_log(struct undo_store *store, const struct undo_meta *meta,
		       uint32_t *number, struct err *err);
/*
 * The same in two steps, for who does not know yet whether anything will be written: a log
 * without a name, which can be made long before (-1 with errno where the file system has no
 * such files), and the number it will have. Once it is written undo_store_name_log gives it that
 * name; false with ERR.code EEXIST when somebody else's log has got it meanwhile.
 */
int undo_store_blank_log(const struct undo_store *store);
uint32_t undo_store_next_number(struct undo_store *store);
bool undo_store_name_log(struct undo_store *store, int fd, uint32_t number,
			 const struct undo_meta *meta, struct err *err);
/*
 * Where a log was begun before: have the files of COUNT more of them, at most UNDO_AHEAD_MAX, so
 * that nothing is created when undo_store_new_log is called. They have no names: nobody else
 * sees them, and they go with whoever made them. Where the file system has no such files the
 * next log is made when it begins.
 */
void undo_store_make_ahead(struct undo_store *store, size_t count);
/*
 * Read the log NUMBER as undo_log_read does, but only those changes that its session could have
 * made, and that outlast it; the others are REFUSED (or NULL). Of a log that is the reader's
 * OWN all changes are read whose contents it could have had.
 */
struct undo_refused {
	struct value *names; /* of the first ones, as they may be shown; or NULL */
	size_t count;
};
bool undo_store_read_log(const struct undo_store *store, uint32_t number, bool own,
			 struct undo_reader *reader, struct undo_refused *refused,
			 struct err *err);
int undo_store_open_log(const struct undo_store *store, uint32_t number, bool writes);
void undo_store_drop_log(const struct undo_store *store, uint32_t number);
/* Has anything been written to the log FD? */
bool undo_store_is_used(int fd);

/* An empty file of the store's that has no name. -1 with ERR. */
int undo_store_scratch(const struct undo_store *store, struct err *err);

/* The list under these rights, to be read; an empty file when there is none. */
int undo_store_open_list(const struct undo_store *store, struct err *err);
/* A file for the next one, and, when it is whole, in its place. */
int undo_store_new_list(struct undo_store *store, struct err *err);
bool undo_store_take_list(struct undo_store *store, struct err *err);

/*
 * Keep the file NAME of the objects folder OBJECTS ("ab/cdef…", "pack/pack-….pack") by a link;
 * names that git does not give are refused. False with errno.
 */
bool undo_store_link(const struct undo_store *store, int objects, const char *name);
/* The kept file for reading, -1: there is none. */
int undo_store_linked(const struct undo_store *store, const char *name);
/* Can links be made from OBJECTS at all? They cannot between file systems. */
bool undo_store_links_from(const struct undo_store *store, int objects);

/* A step as `undo --list` shows it. */
struct undo_step {
	uint32_t number;
	enum undo_work work;
	bool whole;      /* its writer came to its end */
	bool undone;     /* by a later step that was not undone itself */
	uint32_t undoes; /* UNDO_BY_UNDO */
	int64_t wall_ms;
	int64_t turn_ms; /* of its meta, as the next */
	bool alone;
	size_t files;
	uint64_t bytes;           /* of its log */
	char *run, *tool, *title; /* owned; "" when unknown */
};
struct undo_steps {
	struct undo_step *steps; /* in order of number; checkpoints are not among them */
	size_t count;
	uint64_t bytes; /* of everything in the store */
};
bool undo_store_steps(const struct undo_store *store, struct undo_steps *steps,
		      struct err *err);
void undo_steps_fini(struct undo_steps *steps);

/* Let go of what is too old or over the ceilings. Cheap unless there is something to do. */
void undo_store_tidy(struct undo_store *store);
