/*
 * starter: the process that clones anchors, and the groups processes of their cells. It is
 * started by exec with an empty environment, so that nothing of the front's memory is in it,
 * and it is the program before its first cell: loaded and relocated, with an empty heap. Every
 * anchor is a copy of it and shares these pages with it, so a front with many cells keeps one
 * starter for all of them. A cell without a shared one has a starter of its own, which ends
 * when the anchor is made.
 *
 * A starter must keep nothing that the anchor of another cell may not have. It holds two
 * descriptors, its socket and the pidfd of the front, and has the standard streams closed. It
 * receives the descriptors of one cell at a time and closes them before it takes the next
 * request. Of the specification it reads nothing: the clone does, in its own memory. It is
 * told only the level, the user and how many descriptors come.
 *
 * A groups process (groups.h) is a child of its starter, and lives on when that has ended. The
 * anchor is a child of the front, not of its starter (CLONE_PARENT): it lives on when
 * the starter has ended, and it dies with the front. All anchors of one starter have the same
 * layout of their memory; a program that one of their workers starts has a layout of its own.
 */
#pragma once

#include "base/err.h"
#include "cell/groups.h"
#include "sandbox/sandbox.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stdint.h>

/* The front's end, and what else many cells share. Zero is not a starter: use starter_init. */
struct starter {
	const char *program; /* as in session.h */
	int socket, pidfd;   /* -1: the process is started with the next anchor */
	uint64_t started; /* how many processes there were: another one has another number */
	struct groups_front groups;
	/*
	 * A worker of one of its cells of `proven_level` has locked itself in: this machine can
	 * do that.
	 */
	bool proven;
	enum sandbox_level proven_level;
};

void starter_init(struct starter *starter, const char *program);
/* End the process, and wait for its end, which is soon. Its cells have been closed. */
void starter_fini(struct starter *starter);
/* End a process that does not answer. The next anchor has a new one. */
void starter_give_up(struct starter *starter);

/*
 * Have an anchor made that builds SPEC. CONTROL is its end of the control socket, over which
 * ANCHOR_STARTED or ANCHOR_REFUSED comes (anchor.h). JOINS_LATER: it makes its network for its
 * first worker. False: nothing was started.
 */
bool starter_launch(struct starter *starter, struct cell_spec *spec, bool joins_later,
		    int control, struct err *err);

/*
 * Have a groups process made for ORDER, with its end SOCKET of a socket pair. False: the starter
 * cannot be asked. A process that could not be made has closed its end.
 */
bool starter_launch_groups(struct starter *starter, const struct groups_order *order,
			   int socket);

/*
 * Run the starter's process; never returns. Arguments: the numbers of its socket and of a
 * pidfd of the front.
 */
#define STARTER_ROLE "glovebox-starter"
enum { STARTER_ARGUMENTS = 3 };
_Noreturn void starter_role(char **argv, const struct tool *const *tools);
