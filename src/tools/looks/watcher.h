/*
 * watcher: which names of a tree have changed since it was last asked, by inotify(7). A
 * look (checkpoint.h) adds each folder before it lists it, so that no change falls
 * between the two. A thread takes the kernel's events every WATCHER_EVERY_MS, because the
 * kernel keeps no more than some 16,000 of them, and a build makes more.
 *
 * The path of a name is that under which its folder was added. After a folder was moved,
 * names in it are told under its old path until it is added under the new one; the move
 * itself is told as two names, so a look that lists the new folder misses nothing.
 *
 * A write to a file by way of another name of it (link) is told under that name, unless
 * the file itself is watched. A file that a running process has mapped is told when the
 * last mapping goes.
 *
 * Ceilings: WATCHER_NAMES_MAX names between two questions, WATCHER_FILES_MAX files, the number
 * of watches that it is given, and file systems whose changes this kernel makes itself. Beyond
 * each of them the watcher is of no use and says why.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watcher;

enum { WATCHER_EVERY_MS = 10, WATCHER_NAMES_MAX = 1000000, WATCHER_FILES_MAX = 10000 };

enum watched {
	WATCHED_ROWS,    /* all that happens to what the folder holds */
	WATCHED_IGNORED, /* only names that come and go */
	WATCHED_GIT,     /* as WATCHED_ROWS, in a git folder */
	WATCHED_FILE,    /* a file that may be written by way of another name of it */
};

/* The changes of a name; several bits when it was told more than once. */
enum {
	TOLD_MADE = 1 << 0,
	TOLD_WRITTEN = 1 << 1, /* content or attributes */
	TOLD_GONE = 1 << 2,
	TOLD_MOVED = 1 << 3, /* away or to here */
	/* the folder with this path went, or its watch did: its path is the name */
	TOLD_UNWATCHED = 1 << 4,
	TOLD_IN_IGNORED = 1 << 5, /* in a folder of WATCHED_IGNORED */
	TOLD_IN_GIT = 1 << 6,
	TOLD_FOLDER = 1 << 7, /* the name was, at least once, that of a folder */
};

struct told {
	struct str path; /* relative to the tree, ends in NUL */
	unsigned how;
	/* how often something was made here, was moved to here, and was moved away */
	unsigned made, came, left;
};

/* In order of path, each path once. */
struct told_names {
	struct told *names;
	size_t count;
	struct arena paths;
};

static inline void told_names_fini(struct told_names *told)
{
	free(told->names);
	arena_fini(&told->paths);
	*told = (struct told_names){0};
}

/*
 * A process that only polls can ask whether there is something to take: it makes EVENTS,
 * an inotify instance, and PENDING, an eventfd, both non-blocking, and gives them to the
 * process that watches. One of them can be read while there is something, if both are
 * polled in this order. They serve one watcher behind the other.
 */
struct watcher_fds {
	int events, pending; /* -1: nobody polls */
};

/*
 * Begin to watch the tree whose root is the open folder ROOT, with MOST watches at most. The
 * descriptors of FDS stay the caller's. NULL with ERR.
 */
struct watcher *watcher_new(int root, size_t most, struct watcher_fds fds, struct err *err);
void watcher_free(struct watcher *watcher);

/*
 * Watch the open folder FD (or file, O_PATH is enough), whose path is PATH. True: it was
 * watched under this path already. May be called by several threads. A failure makes the
 * watcher useless.
 */
bool watcher_add(struct watcher *watcher, int fd, struct str path, enum watched kind);
/* Watch the folder PATH and those below it no more. */
void watcher_drop(struct watcher *watcher, struct str path);

/*
 * TOLD becomes what has happened since the last call. False: changes
 * were missed, and the tree must be looked at as a whole with a new watcher.
 */
bool watcher_take(struct watcher *watcher, struct told_names *told);
/* Has nothing happened since the last call of watcher_take, and was nothing missed? */
bool watcher_is_quiet(struct watcher *watcher);
/* The reason why the watcher is of no use; NULL while it is. */
const char *watcher_useless(struct watcher *watcher);
