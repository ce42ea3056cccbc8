/*
 * worker: the process in the cell that runs calls, pid 1 of its own pid namespace. It
 * walls itself in, says "ready", and waits for a call. At the end of a call that started
 * programs it kills all that is left in its namespace, then answers, then ends; after any
 * other call it waits for the next.
 */
#pragma once
#include "runtime/spec.h"
#include "runtime/tool.h"

/*
 * Be a worker that is talked to over SOCKET, and never return. PREPARED: before it is
 * ready it makes what the first tool with a `prepare` wants, and so serves one call.
 */
_Noreturn void worker_run(const struct cell_spec *spec, int socket, bool prepared,
			  const struct tool *const *tools);
