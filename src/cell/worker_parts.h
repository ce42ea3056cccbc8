/* worker_parts: the inside of a worker. For worker*.c only. */
#pragma once
#include "cell/layer.h"
#include "cell/worker.h"
#include "files/files.h"
#include "guard/guard.h"
#include "process/frame.h"
#include "process/program.h"
#include "sandbox/sandbox.h"
#include "tool/call.h"

#include <stdbool.h>

struct worker {
	const struct cell_spec *spec;
	const struct tool *const *tools;
	struct files *files;
	struct audit *audit; /* or NULL */
	struct layers *layers;
	struct value *written; /* what a file tool wrote in this call, or NULL */
	struct value *nested;  /* of the call that is served (audit.h), or NULL */
	struct value *heads;   /* folders above what it wrote that may be repositories */
	enum worker_kind kind;
	int socket;
	int rules; /* of the anchor; -1 where there are none */
	struct reach reach;
	struct program_terms terms;
	struct program_score score;
	const char *space; /* call.h */
	int listener;      /* call.h */
	const char *layer;
	struct frame_reader reader;
	/*
	 * the tool this worker was prepared for, and the result of its `prepare`; or NULL
	 */
	const struct tool *prepared_for;
	void *prepared;
	int64_t quiet_ns; /* for the audits of this call (audit.h) */
	bool alone; /* the last call was the only one: nobody else wants the processor */
	struct program_launcher *launcher; /* where nothing is prepared, or NULL */
};

/* worker_call.c: the struct call of this worker, before a frame is read. */
struct call worker_call(struct worker *worker);

/*
 * Was a cancel read together with its call? The socket will not become readable for it
 * again. A closed socket counts as a cancel.
 */
bool worker_cancel_waits(const struct worker *worker);

/*
 * Execute the call in FRAME. *TOOL is the called tool, NULL when there is none. True: the
 * worker may serve another call.
 */
bool worker_execute(struct worker *worker, const struct frame *frame,
		    const struct tool **tool, struct tool_result *result);

/* The same, and then the audit and the answer. */
bool worker_serve_call(struct worker *worker, const struct frame *frame);
/*
 * Serve the calls of a batch; each is answered before the next begins. False, without the
 * rest, after a call that the worker cannot outlive, like a cancelled one.
 */
bool worker_serve_batch(struct worker *worker, const struct frame *frame);
