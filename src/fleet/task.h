/*
 * task: one line of work, and its one record. A file of tasks has one JSON object a line
 * (at most FLEET_LINE_MAX bytes); all of it is read and checked before anything of it is
 * done or sent anywhere. A job is the name under which a file of tasks was begun; JOB and
 * the id of a task name its result for ever. Both are parts of file names and of subjects
 * of a queue.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FLEET_LINE_MAX = 200 << 10, /* bytes of a line */
	FLEET_LINE_FORMAT = 1,      /* of the lines that this program can read */
	FLEET_NAME_MAX = 128,       /* characters of an id, a job, a lane */
	FLEET_TASKS_MAX = 1 << 20,  /* tasks of one file */
	FLEET_ATTEMPTS = 3,         /* unless a task says otherwise; at most 100 */
	FLEET_COLLECT_MAX = 64,
	FLEET_NEEDS_MAX = 4,    /* labels that a task may ask of its worker */
	FLEET_NEEDS_BYTES = 96, /* of all of them as NAME=VALUE, with "+" between */
};

enum fleet_priority { FLEET_LOW, FLEET_NORMAL, FLEET_HIGH, FLEET_PRIORITIES };

enum fleet_source { FLEET_EMPTY, FLEET_GIT, FLEET_ARCHIVE, FLEET_COPY };

enum fleet_run { FLEET_PROMPT, FLEET_COMMAND, FLEET_WRAP };

/* The members of a line; texts are borrowed from LINE and NULL where there is none. */
struct fleet_task {
	struct value *line; /* the checked object, owned */
	const char *id;
	const char *base;
	struct {
		enum fleet_source kind;
		const char *from;   /* the URL, the archive or the folder */
		const char *ref;    /* of FLEET_GIT */
		const char *sha256; /* of FLEET_ARCHIVE */
	} workspace;
	struct {
		enum fleet_run kind;
		const char *prompt, *model, *agent;
		const char *command;      /* FLEET_COMMAND: for bash -c */
		const char *profile;      /* FLEET_WRAP; its prompt may be NULL */
		const struct value *args; /* words for the wrapped program, or NULL */
	} run;
	const struct value *setup;   /* an array of texts for bash -c, or NULL */
	const char *cwd;             /* where setup, command and check begin */
	const char *check;           /* for bash -c; its exit code decides, or NULL */
	const struct value *policy;  /* NULL: the default role's */
	const struct value *limits;  /* wall_s, money, tokens, cpu_s, …; or NULL */
	const struct value *collect; /* "patch", "patch:PATH", "journal", names of files */
	const char *lane;            /* "default" unless given */
	const struct value *needs;   /* labels that its worker has, or NULL */
	enum fleet_priority priority;
	int attempts;
};

/*
 * The names that are parts of file names and of subjects of a queue: 1 to FLEET_NAME_MAX
 * letters, digits, "-" and "_". An id may have dots as well, but none at an end and no two
 * together: it is the last part everywhere.
 */
enum fleet_name { FLEET_ID, FLEET_JOB, FLEET_LANE };
/* Can NAME (NULL: it cannot) be one? ERR says why not. */
bool fleet_name_check(enum fleet_name what, const char *name, struct err *err);

/* Is LABEL a worker's label, NAME=VALUE, each of letters, digits, "-" and "_"? */
bool fleet_task_check_label(struct str label, struct err *err);

/* Read and check one line without its end. ERR names the key, not the line. */
bool fleet_task_read(struct str line, struct fleet_task *task, struct err *err);
void fleet_task_fini(struct fleet_task *task);

/* A whole file of tasks, checked: only where its lines are is in memory. */
struct fleet_tasks;

/*
 * Open PATH ("-": standard input, which is copied, as all is that cannot be read twice), check
 * each line and that no id is there twice. ERR begins with PATH:NUMBER. At most
 * FLEET_TASKS_MAX tasks and 1 GiB; empty lines and those that begin with # are passed over.
 * A file without a task is refused.
 */
bool fleet_tasks_open(const char *path, struct fleet_tasks **tasks, struct err *err);
size_t fleet_tasks_count(const struct fleet_tasks *tasks);
/* The Nth task, from 0. False where its line was changed since (ESTALE). */
bool fleet_tasks_get(const struct fleet_tasks *tasks, size_t nth, struct fleet_task *task,
		     struct err *err);
/* Its id, borrowed from TASKS. */
const char *fleet_tasks_id(const struct fleet_tasks *tasks, size_t nth);
/*
 * Tasks of one kind have the same lane, needs and priority. The kind of the Nth task is a number
 * that is known without reading its line; FLEET_TASK_KINDS: a file has more kinds, and it is one
 * of those beyond.
 */
enum { FLEET_TASK_KINDS = 64 };
size_t fleet_tasks_kind(const struct fleet_tasks *tasks, size_t nth);
/* SHA-256 of the bytes, in hexadecimal: the same job is the same file. */
const char *fleet_tasks_hash(const struct fleet_tasks *tasks);
/* The bytes of the file, for a store. */
int fleet_tasks_fd(const struct fleet_tasks *tasks);
void fleet_tasks_free(struct fleet_tasks *tasks);
