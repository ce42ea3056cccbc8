/*
 * worker: the process in the cell that runs calls, pid 1 of its own pid namespace. It
 * walls itself in, says "ready", and waits for a call. At the end of a call that started
 * programs it kills all that is left in its namespace, then answers, then ends; after any
 * other call it waits for the next.
 *
 * A worker that has answered ends only after the front has closed its socket.
 * Otherwise the teardown would stand in the way of the front, which the kernel wakes
 * on the same processor.
 *
 * The listener of explained system calls belongs to the worker and is under the same
 * filter. The worker may never make such a call itself, so file tools set no set-id
 * bits.
 */
#pragma once

#include "base/err.h"
#include "cell/layers/fresh.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <stdbool.h>

/*
 * The kind says what a worker prepares before it is ready. Its letter is also the byte
 * that requests the worker from the anchor.
 */
enum worker_kind {
	WORKER_PLAIN = 'w', /* its pages are warmed by a rehearsal */
	/* like WORKER_PLAIN, and the first tool with a `prepare` is prepared */
	WORKER_PREPARED = 'p',
	WORKER_AT_ONCE = 'n', /* nothing is prepared, because a call waits for it */
	/* like WORKER_AT_ONCE, for one call that may see more (anchor.h) */
	WORKER_WIDENED = 'x',
};

/* Report over SOCKET that there will be no worker, and why. */
void worker_refuse(int socket, const struct err *err);

/*
 * In the anchor: would a worker find the folders of SPEC? A worker finds out by itself; this is
 * for a cell that gets its first one later.
 */
bool worker_can_begin(const struct cell_spec *spec, struct err *err);

/*
 * Run a worker that serves SOCKET; never returns. RULES are those of sandbox_build, FRESH is
 * asked before each call.
 */
_Noreturn void worker_run(const struct cell_spec *spec, int socket, int rules,
			  enum worker_kind kind, const struct tool *const *tools,
			  const struct fresh *fresh);
