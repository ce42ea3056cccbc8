/*
 * anchor: the cell's first process. It builds the view once, keeps the namespaces, and
 * then makes workers: a request of one byte on the control socket is answered by one
 * struct anchor_reply with the worker's socket and pidfd. Before the first worker, the
 * anchor sends the listeners for the proxy in the same way, and the socket that receives
 * the questions for names. A folder that a person additionally allows arrives with such a
 * request: its specification by the front, in a memory file, and its detached trees. The
 * anchor reads no byte that comes from a model, a file or a command.
 *
 * Where ports are published, the proxy asks by another such socket for sockets of the
 * cell's network, one for each connection: a message of fixed size, of which the anchor
 * reads only whether IPv6 is wanted.
 *
 * The control socket is a SOCK_SEQPACKET pair, so that a reply is always whole.
 */
#pragma once

#include "base/err.h"
#include "cell/worker.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <stdbool.h>
#include <sys/types.h>

enum anchor_kind {
	/* with the anchor's pidfd; sent by the process that cloned it */
	ANCHOR_STARTED = 1,
	ANCHOR_WORKER, /* with the socket and the pidfd of a new worker */
	/*
	 * with listeners on 127.0.0.1 and ::1 of the cell; `code` is the port asked for
	 */
	ANCHOR_LISTENER,
	/* with a listener on 127.0.0.1 of the cell, for the broker */
	ANCHOR_PLAIN_DOOR,
	/* with the proxy's end of a socket pair, where ports are published (proxy.h) */
	ANCHOR_INLET,
	/* with the socket of sandbox_overhear; left out where there is none */
	ANCHOR_QUESTIONS,
	ANCHOR_SOCKET, /* with the listener of the socket in the view at the path `text` */
	ANCHOR_WIDENED, /* all later workers have the addition; with `text`, none has */
	ANCHOR_REFUSED, /* the cell, or one worker, cannot be made: `text` says why */
};

struct anchor_reply {
	int kind;
	int code;   /* errno */
	int worker; /* enum worker_kind, as it was asked for */
	char text[ERR_TEXT_MAX];
};

enum { ANCHOR_FDS = 2 };

/*
 * A request beside the kinds of workers (worker.h): its folders are for all later
 * workers.
 */
enum { ANCHOR_WIDEN = '+' };
/*
 * The descriptors of a request for more: the file of the specification, then the trees.
 */
enum { ANCHOR_EXTRAS_MAX = 16, ANCHOR_REQUEST_FDS = 1 + ANCHOR_EXTRAS_MAX };

/*
 * Receive one reply without waiting. FDS are -1 where no descriptor came. False with
 * EAGAIN in ERR when there is no reply yet, with ECONNRESET when the anchor has ended.
 */
bool anchor_receive(int control, struct anchor_reply *reply, int fds[ANCHOR_FDS],
		    struct err *err);

/*
 * Clone the anchor out of this process and let it run; returns in the parent only.
 * CONTROL and FRONT (a pidfd of the front) are descriptors of this process. FLAGS as
 * sandbox_clone.
 */
bool anchor_launch(struct cell_spec *spec, int control, int front, unsigned long flags,
		   const struct tool *const *tools, pid_t *pid, int *pidfd,
		   struct err *err);

/*
 * argv[0] of the role, and its arguments: the numbers of the specification's, the
 * control and the front's descriptor.
 */
#define ANCHOR_ROLE "glovebox-anchor"
enum { ANCHOR_ARGUMENTS = 4 };
_Noreturn void anchor_role(char **argv, const struct tool *const *tools);
