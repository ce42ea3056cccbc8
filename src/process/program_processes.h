/*
 * program_processes: the processes of one run, from its start to the last of them; and the state
 * of that run (program_follow.c).
 */
#pragma once
#include "process/program.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct follow {
	struct program_run *run;
	struct program_terms terms; /* the run's, or none */
	pid_t pid;
	bool is_init; /* all that kill(-1) reaches is the program's, every child too */
	bool was_subreaper;
	sigset_t mask_before;
	int pipes[2]; /* read ends for streams 1 and 2; -1: passed on or ended */
	bool widened[2];
	int end_fd;    /* readable when the program (init: any child) has ended */
	int listener;  /* of the program's filter, or -1 */
	pid_t *others; /* children of ours before the start, when not init; ends with 0 */
	bool ended;    /* the program itself; its status is in RUN */
	bool is_alone; /* init without a child: nothing is left, or comes any more */
	bool ending;   /* TERM was sent */
	int64_t term_at_ms, kill_at_ms, quiet_until_ms;
	int64_t watch_at_ms;     /* when the watch is asked next */
	int64_t silence_ends_ms; /* quiet_s is over then, unless output comes */
	bool heard;              /* some came in this round */
	int64_t score_at_ms; /* this process's score is its own again at the latest then */
};

/* Start the program, or take over the one that was started ahead. */
bool program_processes_begin(struct follow *follow, struct err *err);

/*
 * Take what has ended without waiting. As init also the orphans, which else stay as
 * zombies. True when this process is init and alone: who has no child has no descendant.
 */
bool program_processes_reap(struct follow *follow);

/* Is nothing of the program alive any more, as far as can be told without killing? */
bool program_processes_gone(const struct follow *follow);

/* Kill and reap what is left, and count it. */
void program_processes_end(struct follow *follow);

/* After it, and when nothing began: signals and descriptors as they were before. */
void program_processes_forget(struct follow *follow);
