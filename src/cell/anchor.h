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
	/*
	 * with the anchor's pidfd; sent by its starter, with its pid as `code`, and by itself, as
	 * its first message
	 */
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
	ANCHOR_BUILT,   /* the cell can have workers: the answer to ANCHOR_GREET */
	ANCHOR_REFUSED, /* the cell, or one worker, cannot be made: `text` says why */
};

struct anchor_reply {
	int kind;
	int code;   /* errno, a port, or a pid */
	int worker; /* enum worker_kind, as it was asked for */
	char text[ERR_TEXT_MAX];
};

enum { ANCHOR_FDS = 2 };

/*
 * Requests beside the kinds of workers (worker.h): the folders of the first are for all later
 * workers; the second asks for an answer when the cell is built, and for no worker; the third
 * comes with CGROUP_FOLDERS doors of the cell's control group (cgroup_cell_enter), of which some may be
 * the same, and before any worker.
 */
enum { ANCHOR_WIDEN = '+', ANCHOR_GREET = '?', ANCHOR_ENTER = '>' };
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
 * CONTROL and FRONT (a pidfd of the front) are descriptors of this process.
 */
bool anchor_launch(struct cell_spec *spec, int control, int front,
		   const struct tool *const *tools, pid_t *pid, int *pidfd,
		   struct err *err);

/*
 * Be the anchor of SPEC, in a process that sandbox_clone has made with NETWORK; never
 * returns. With NETWORK NULL the network is made for the first worker: the specification wants
 * nothing that is in it before. CONTROL and FRONT as above; they are closed with everything else.
 */
_Noreturn void anchor_run(struct cell_spec *spec, struct sandbox_network *network,
			  int control, int front, const struct tool *const *tools);

/*
 * Take nothing of the signal handlers and masks of a front. anchor_run is called in a process that
 * has done this, or whose parent has.
 */
void anchor_plain_signals(void);

/* Say over CONTROL that there will be no cell, and why. */
void anchor_refuse(int control, const struct err *err);

/* Bytes of the name that an anchor's process has. */
#define ANCHOR_ROLE "glovebox-anchor"
