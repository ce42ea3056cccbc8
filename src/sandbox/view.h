/*
 * view: what a cell sees, as a list of what lies at which path. The runtime fills it in,
 * sandbox_build builds it, and the commands that explain a cell read it.
 *
 * The sources are opened again by name inside the new mount namespace and compared
 * with the descriptors held since the start, because a descriptor of the old namespace
 * cannot be mounted.
 *
 * An overlay is named from inside its upper folder, which it covers. So no path of the
 * user stands in a mount option, and kernels that have no detached overlays take it as
 * well. A tool cache whose overlay the kernel refuses is not shown.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum view_kind {
	/* a directory or file of the host, with what is mounted below it */
	VIEW_TREE = 1,
	VIEW_FOLDER, /* an empty directory */
	VIEW_MEMORY, /* a private tmpfs */
	VIEW_LINK,   /* a symlink; `source` is its text */
	/*
	 * a read-only file with the content of the file `before`, and the text `source`, or
	 * with `late` what comes by the pipe of the view; a writable one is a bind mount,
	 * and nobody but the cell's user may read it
	 */
	VIEW_TEXT,
	VIEW_DEVICE,    /* a device file of the host */
	VIEW_TERMINALS, /* a private devpts */
	VIEW_PROCESSES, /* a private /proc */
	VIEW_MASK,      /* hides the file or folder at `path`, if there is one */
	/*
	 * A folder of the host between the overlay at `path` and that overlay's own `source`:
	 * what it holds hides what lies below it, as in an overlay. `number` is its place,
	 * from 0 at the top. At "/": a folder of the base (VIEW_BASE).
	 */
	VIEW_LOWER,
	/*
	 * A temporary or kept layer over the folder `source`, which stays unchanged.
	 * Writes go to the content that another entry put at `path` (memory, or a
	 * writable tree of ours). When optional, neither of the two entries is shown if
	 * the kernel refuses the layer.
	 */
	VIEW_OVERLAY,
	/*
	 * The file at `path` in the view, bind-mounted on itself: it cannot be renamed
	 * or removed, and is read-only unless `writable` is set.
	 */
	VIEW_PIN,
	/*
	 * A socket of the cell's own, to which every program of the cell may connect.
	 * view_build leaves its listener in `fd`.
	 */
	VIEW_SOCKET,
	/*
	 * The root of the view is not empty, but an overlay of the `number` entries VIEW_LOWER at
	 * "/", and all of it may be written, into memory of at most `size` bytes, which goes with
	 * the cell. The path is "/", and there is one at most.
	 *
	 * The highest folder of that overlay is ours: it has the folders above all other entries,
	 * and the texts and links. So a link or a file of the base at such a name leads nowhere,
	 * and because the kernel renames no folder of a lower layer, no program can move the
	 * places of mounts.
	 */
	VIEW_BASE,
	/*
	 * The folder `source` of the view a second time, with all that is mounted in it: layers,
	 * pins and masks hold here as they hold there. It comes behind all other entries, and nothing
	 * else is at its path or below.
	 */
	VIEW_ALSO,
};

/* How long the files last that an overlay takes. */
enum view_lasts {
	VIEW_LASTS_PROJECT, /* additions to a cache stay the project's */
	VIEW_LASTS_CELL,    /* they end with the cell */
	VIEW_LASTS_REVIEW,  /* until a person lands or drops them (view/review.h) */
	VIEW_LASTS_NOTHING, /* it takes none: several folders are shown as one, read-only */
};

/*
 * The folders of an overlay: the written files, and the files below, as one tree; behind them, by
 * their numbers, the folders of which that tree is made, where it is more than one.
 */
#define VIEW_LAYER_UPPER "upper"
#define VIEW_LAYER_LOWER "lower"
#define VIEW_LAYER_BELOW "below."
/*
 * Entries VIEW_LOWER of one overlay: as many as an image may have layers. Their names are short
 * enough for the page that mount(2) takes of options.
 */
enum { VIEW_LOWERS_MAX = 128 };

struct view_entry {
	enum view_kind kind;
	const char *path; /* absolute and normal, in the view */
	/* tree and device: the host's path; link and text: see above */
	const char *source;
	/* text: a regular file of the host; left out when it is not there; or NULL */
	const char *before;
	bool late; /* text: as above */
	bool runs; /* text: it is a script that programs may start */
	/*
	 * held descriptor that SOURCE must still lead to, a detached tree, or a listener;
	 * -1: none
	 */
	int fd;
	bool detached; /* fd is a detached tree */
	/*
	 * memory and terminals: view_build makes only the place, and view_finish mounts what
	 * belongs there
	 */
	bool waits;
	bool writable;
	bool optional; /* skipped when SOURCE is missing */
	/*
	 * of an overlay; unless it is a project's, sandbox_build leaves its folder held in
	 * `layer`
	 */
	enum view_lasts lasts;
	/*
	 * of an overlay: the kernel lays none here. VIEW_LAYER_UPPER is a copy of the folder
	 * below, and is shown in its place
	 */
	bool copied;
	/*
	 * holds VIEW_LAYER_UPPER and VIEW_LAYER_LOWER; of a base it is that upper folder itself;
	 * no path leads there
	 */
	int layer;
	bool apart; /* a masked file has a source of its own, so that a watch tells it apart */
	unsigned number; /* lower: its place; overlay and base: how many lowers it has */
	mode_t mode;     /* folder, memory */
	uint64_t size;   /* memory and base: bytes at most */
	/*
	 * the key or default that added the entry, for commands that explain the view;
	 * NULL: every view has it
	 */
	const char *why;
};

struct view {
	struct view_entry *entries;
	size_t count;
	/*
	 * The end of all late texts is read from there, after everything else is in place.
	 * Only the process that writes them holds the other end of the pipe. Of no meaning
	 * when none is late.
	 */
	int late;
};

/*
 * Build VIEW under a new root and pivot into it, with the umask 0. Called by
 * sandbox_build, which has the order of the entries.
 */
bool view_build(struct view *view, struct err *err);

/*
 * In an anchor: let the entries of VIEW wait that no process needs before the first worker, and
 * in or above which no other entry lies. Each file system costs memory of the kernel as long as it
 * is mounted, and time whenever a file system or a control group is made anywhere.
 */
void view_wait(struct view *view);
/* Mount the entries of VIEW that still wait. Called before the first worker and view_widen. */
bool view_finish(struct view *view, struct err *err);

/*
 * L3, in an anchor, or in a worker of it that has not entered yet: add the entries of
 * VIEW, whose trees are detached, to the view, of which WHOLE has all entries. False: only part of them may have been
 * added. Then a worker ends, and an anchor removes the mount at PATH with
 * view_narrow.
 */
bool view_widen(const struct view *whole, struct view *view, struct err *err);
void view_narrow(const struct view *whole, const char *path);
