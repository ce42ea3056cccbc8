/*
 * worker: the process in the cell that runs calls, pid 1 of its own pid namespace. It
 * walls itself in, says "ready", and waits for a call. At the end of a call that started
 * programs it kills all that is left in its namespace, then answers, then ends; after any
 * other call it waits for the next.
 */
#pragma once
#include "tool/tool.h"
#include "view/spec.h"

/* What it makes before it is ready; also the one byte that asks the anchor for it. */
enum worker_kind {
	WORKER_PLAIN = 'w',    /* touched by a rehearsal */
	WORKER_PREPARED = 'p', /* and with what the first tool with a `prepare` wants */
	WORKER_AT_ONCE = 'n',  /* nothing: a call waits for it */
	WORKER_WIDENED = 'x',  /* the same, for one call that may see more (anchor.h) */
};

/* Say over SOCKET that there will be no worker, and why. */
void worker_refuse(int socket, const struct err *err);

/* Be a worker that is talked to over SOCKET, and never return. RULES: sandbox_build's. */
_Noreturn void worker_run(const struct cell_spec *spec, int socket, int rules,
			  enum worker_kind kind, const struct tool *const *tools);
