/*
 * step: the steps of one task in its engine: calls within the task's time, commands in its cell,
 * files and trees that pass into and out of it, and the journal that tells of them. The first
 * step that fails says what becomes of the task, and none is begun after it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/client.h"
#include "fleet/result.h"

#include <stdbool.h>
#include <stdint.h>

struct fleet_work;

/* The agent whose entry of the configuration, if there is one, bounds all cells of tasks. */
#define FLEET_BOUND "task"

struct fleet_steps {
	const struct fleet_work *work;
	int64_t due_ms;   /* by the monotonic clock: the end of the time for its steps */
	const char *time; /* whose time that is, for sentences */
	bool runs;        /* the run has begun: a step that fails now fails the task */
	bool ended;       /* the next two say how */
	enum fleet_status status;
	char said[ERR_TEXT_MAX]; /* "" where there is nothing to say */
	bool cell_lost;          /* and by a refusal that fleet_steps_is_loss knows */
	int journal;             /* a file without a name; -1: nobody wants one */
	uint64_t journal_size;
};

/* Begin the steps of WORK; SECONDS are for its workspace. JOURNAL: with one. */
bool fleet_steps_init(struct fleet_steps *steps, const struct fleet_work *work,
		      double seconds, bool journal, struct err *err);
void fleet_steps_fini(struct fleet_steps *steps);
/* The workspace is there: the task itself has SECONDS from now on (limits.wall_s). */
void fleet_steps_begin(struct fleet_steps *steps, double seconds);

/* The task ends with STATUS and a sentence, unless an earlier step has ended it. Always false. */
bool fleet_steps_end(struct fleet_steps *steps, enum fleet_status status,
		     const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for a call that the engine has refused. */
bool fleet_steps_refused(struct fleet_steps *steps, const struct fleet_refusal *refusal);
/*
 * Has the cell, or the worker in it that was asked, gone, so that REFUSAL tells nothing of what was
 * asked for?
 */
bool fleet_steps_is_loss(const struct fleet_refusal *refusal);
/* The seconds that are left; 0: none. */
double fleet_steps_left(const struct fleet_steps *steps);
/* Has somebody cancelled the task? */
bool fleet_steps_cancelled(const struct fleet_steps *steps);

/* Call METHOD with PARAMS (taken over). False: the task has ended. The caller owns *ANSWER. */
bool fleet_steps_call(struct fleet_steps *steps, const char *method, struct value *params,
		      struct value **answer);

/* How a command has ended. */
struct fleet_ran {
	int code; /* 128 and the number of the signal that ended it */
	bool timed_out;
	char limit[32];    /* the key of the limit that ended it, or "" */
	struct buf said;   /* its last line, for a sentence; fleet_ran_fini */
	struct buf output; /* the first of its standard output */
};

/*
 * Run ARGV, NULL-ended, in CELL, in the folder CWD (NULL: where the cell begins). STEP names it
 * in the journal. True: it ran, and RAN says how it ended; fleet_ran_fini in either case.
 */
bool fleet_steps_run(struct fleet_steps *steps, const char *cell, const char *step,
		     const char *const *argv, const char *cwd, struct fleet_ran *ran);
void fleet_ran_fini(struct fleet_ran *ran);

/* Write LINE, an object, to the journal, with the time, and tell it. Takes it over. */
void fleet_steps_note(struct fleet_steps *steps, struct value *take_line);

/* A file without a name in the folder for temporary files. -1: ERR says why there is none. */
int fleet_steps_file(struct err *err);
/*
 * Append the file PATH of CELL, of at most MAX bytes, to FD. False: REFUSAL says why, and the
 * task goes on.
 */
bool fleet_steps_fetch(struct fleet_steps *steps, const char *cell, const char *path,
		       uint64_t max, int fd, struct fleet_refusal *refusal);
/* Unpack the tar FD in the workspace of CELL. */
bool fleet_steps_put_tree(struct fleet_steps *steps, const char *cell, int fd);
/* Append the workspace of CELL to FD, as a tar. */
bool fleet_steps_get_tree(struct fleet_steps *steps, const char *cell, int fd);
