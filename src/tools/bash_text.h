/*
 * bash_text: what a model is told of a command that ran: its output in bounds, and one
 * line with everything that must not be missed.
 */
#pragma once
#include "files/files.h"
#include "process/program.h"
#include "tool/tool.h"
#include "tools/bash_job.h"

/*
 * Of both streams together: the beginning, which says what ran, and more of the end, where logs say
 * what went wrong. A call may ask for more.
 */
#define BASH_SHOWN_BYTES     8000
#define BASH_BEGINNING_BYTES 2500 /* of these */
#define BASH_SHOWN_LEAST     1000
#define BASH_SHOWN_MOST      30000
#define BASH_SHOWN_LINES     2000

struct bash_answer {
	const struct program_run *run;
	double seconds;         /* that it took, or takes already */
	bool running;           /* it has not ended: an answer of a job */
	bool waits;             /* for input, on its terminal */
	int64_t job;            /* 0: it is none */
	struct bash_mark since; /* only what came afterwards is shown */
	struct str command;
	const struct files *files;
	const char *folder;      /* where it ran */
	const char *next_folder; /* where the next one starts, when it changed */
	bool folder_was_gone;    /* the remembered one; it ran in the workspace */
	size_t max_bytes;        /* that are shown */
	bool is_last;            /* the cell ends with this call, and with it the spill */
	const char *spill_folder;
	struct buf *spill_path; /* where the spill is kept; empty: nowhere yet */
	int timeout_max_s;
	const char *description; /* or NULL */
};

/*
 * Fill RESULT: status, text, exit code, signal, what was left out, details; keeps the
 * spill when needed.
 */
void bash_tell(const struct bash_answer *answer, struct tool_result *result);
