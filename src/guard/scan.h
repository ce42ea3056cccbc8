/*
 * scan: finds the files below some folders that git would run or follow now, each
 * with a fingerprint, so that two scans show which of them came or changed in between.
 * The front scans before anything has run, and a worker after a command.
 *
 * A scan looks at `.git` of each root and of the folders directly in it, at bare
 * repositories among these, at every gitlink of the indexes found (and those of their
 * indexes), at every linked worktree that lies below a root, and at the folders it is
 * told to watch. Below the roots in `deep` it looks into every folder, up to
 * `folders_max` of them. At the top of each root and of each worktree it looks for the
 * protected names of autoexec.h, and at the top of a root also for those that are only
 * reported. Names are opened beneath held roots, only regular files are read, and nothing
 * waits. Symlinks are not followed, except one that stands for a protected name and leads
 * to a place below a root.
 *
 * A new name that git runs or follows is added in repository.c, which serves both
 * scans, and in view/protected.c when it is to be bound. It comes with a case in
 * tests/cell/protected.case and a line in docs/policy.md.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

enum {
	/* ceilings of one scan; a scan that reaches one fails rather than look away */
	GIT_SCAN_REPOSITORIES = 1024,
	GIT_SCAN_LINKS = 16384,   /* gitlinks and folders left out of one index */
	GIT_SCAN_DEPTH = 8,       /* of repositories inside each other */
	GIT_SCAN_LOOKS = 200000,  /* names looked at: some 0.2 s */
	GIT_SCAN_NAMES = 1 << 20, /* names read from folders */
	/*
	 * Folders read below a root in `deep`, some 3 us each: with each call, once for a
	 * session, and by a whole look. When there are more, `partial` is set.
	 */
	GIT_SCAN_FOLDERS_CALL = 256,
	GIT_SCAN_FOLDERS = 4096,
	GIT_SCAN_FOLDERS_WHOLE = 65536,
	GIT_SCAN_PATHS = 16 << 20, /* bytes of the folders that wait to be read */
	GIT_SCAN_PLACES = 1024,    /* folders in `places`: those near the root */
	/*
	 * Bytes of protected files that are read, some 0.1 s. Further files are compared
	 * by their status.
	 */
	GIT_SCAN_CONTENTS = 32 << 20,
};

struct git_scan_root {
	const char *path; /* absolute, real */
	int fd;           /* a folder; O_PATH will do */
};

struct git_scan {
	const struct git_scan_root *roots;
	size_t root_count;
	const char *home; /* of the user, for "~/" in a configuration; or NULL */
	/* make a folder that its owner may not enter accessible to the owner */
	bool may_mend;
	bool wants_files;      /* collect `files`, those changed since SINCE */
	struct timespec since; /* wall clock */
	/*
	 * like `indexes`, of earlier scans: unchanged indexes are not read again. May be
	 * NULL
	 */
	const struct value *known_indexes, *more_indexes;
	/*
	 * like `dangers`, of earlier scans: unchanged protected files are not read again.
	 * May be NULL
	 */
	const struct value *known_dangers, *more_dangers;
	/* keys of places that the policy names as writable; or NULL */
	const struct value *opened;
	/*
	 * commands have run; they cannot have changed files in read-only mounts of a view
	 */
	bool in_cell;
	/* keys of the roots that are searched at every depth; or NULL */
	const struct value *deep;
	size_t folders_max; /* for each of these roots */
	/*
	 * The search of these roots stops at the deadline (0: never), and before it when the
	 * thread has worked for its time, which is asked from `busy_ms` on.
	 */
	int64_t deadline_ms, busy_ms, work_end_ns;
	/*
	 * A folder without subfolders in these roots is not searched when it has not
	 * changed since, and was not moved together with a folder above it.
	 */
	struct git_scan_when {
		int64_t before_ns;          /* wall clock; 0: all may have changed */
		const struct value *places; /* the `places` of that time; NULL: unknown */
	} when;
	bool wants_places;
	/*
	 * Search git folders for repositories inside them, where something has changed
	 * since this time. All of these are new, because git makes none there. 0: do not
	 * search.
	 */
	int64_t inside_ns;
	/*
	 * Collect in `left` git's locks and temporary files that have come since this
	 * time; 0: none.
	 */
	int64_t left_ns;
	/*
	 * called after each repository found deep in a root; its results are forgotten
	 * then; or NULL
	 */
	void (*each)(struct git_scan *scan, void *context);
	void *context;
	/* the results; NULL: nothing of the kind was found, as in most folders */
	/* path -> true; false: only the search of a root in `deep` has found it */
	struct value *repositories; /* git folders */
	/* `.git` files, files that a configuration includes, protected names */
	struct value *held;
	/* valid pointers to a repository outside any `.git`: path -> the repository */
	struct value *leads;
	struct value *dangers; /* path -> fingerprint */
	/*
	 * gitlinks: path of an index -> its fingerprint, then the paths of its gitlinks
	 */
	struct value *indexes;
	/*
	 * path -> an object: `file` (git_scan_print_file), and `shared`: true when a git
	 * in a worktree elsewhere may have made the file
	 */
	struct value *left;
	/* keys of folders below roots in `deep`, two down and more */
	struct value *nested;
	/* folders with subfolders below roots in `deep`: path -> inode */
	struct value *places;
	bool partial;   /* there are more folders than were searched */
	size_t folders; /* number of folders searched */
	char *missed;   /* the first folder that was not searched; NULL: none */
	/*
	 * changed files that other programs run by themselves: a list of paths, unescaped
	 */
	struct value *files;
	/* used by the scan itself */
	size_t looks, names, contents;
	bool goes_through;  /* a root in `deep` is being searched */
	struct err trouble; /* the first error; empty text: none */
};

void git_scan_init(struct git_scan *scan, const struct git_scan_root *roots, size_t count);
void git_scan_fini(struct git_scan *scan);

/*
 * Look at the roots, at the folders WATCHED below them, and at FILES there, which are
 * dangers by themselves (lists of paths; NULL: none). False: something could not be
 * looked at.
 */
bool git_scan_run(struct git_scan *scan, const struct value *watched,
		  const struct value *files, struct err *err);

/*
 * Only search the roots in `deep`, for WORK_MS of the processor and, on a busy machine,
 * at most three times as long. An error is in `trouble`.
 */
void git_scan_whole(struct git_scan *scan, int64_t work_ms);

/* Look at more folders, at any time of the scan. An error is in `trouble`. */
void git_scan_watch(struct git_scan *scan, const struct value *watched);

/*
 * Was the file at KEY there before WHEN? This is decided by times of change (ctime),
 * which no program can set. The file's own time says when it came or was renamed. But
 * when a folder is moved, the files in it keep their times; only the moved folder and the
 * folder that it came into change. Both also change when a name is made in them, so there
 * may be a doubt. There is also a doubt when a folder that SCAN has found to be a
 * repository has changed, because it may have become one since. The file system must
 * update the time of change of a renamed file, as ext4, XFS, Btrfs, tmpfs and overlays
 * do.
 */
enum git_scan_age { GIT_SCAN_OLD, GIT_SCAN_DOUBTFUL, GIT_SCAN_NEW };
enum git_scan_age git_scan_age(const struct git_scan *scan, const char *key,
			       const struct git_scan_when *when);

/*
 * Append to LIST the gitlinks below FOLDER of the repository whose root is an ancestor of
 * FOLDER, if there is one. The user's `git status` enters these gitlinks. For the front
 * only.
 */
bool git_scan_above(const char *folder, struct value *list, struct err *err);

/* Is FINGERPRINT (or NULL) that of a protected name, not of something that git runs? */
bool git_scan_is_name(const char *fingerprint);

/* The names by which git takes its current folder for a repository, NULL-ended. */
extern const char *const git_scan_repository[];

/*
 * Open the folder that holds PATH, beneath its root, and set *NAME to the last name. -1
 * with errno.
 */
int git_scan_open_parent(const struct git_scan *scan, const char *path, const char **name);

/* Is NAME, in a git folder, a lock, which stops every other git as long as it exists? */
bool git_scan_is_lock(const char *name);
/* The identity of an unchanged file as text: device, inode, time of change. */
enum { GIT_SCAN_FILE = 80 };
void git_scan_print_file(const struct stat *st, char text[GIT_SCAN_FILE]);

/*
 * Our mark in the name of a file that was moved aside. No branch can have it in its name,
 * because git refuses "..".
 */
#define GIT_QUARANTINE "..quarantine-"

/* Shared by scan.c and repository.c only. */

/* A folder that the scan looks at. */
struct scan_look {
	struct git_scan *scan;
	int fd;
	const char *path;
	/* in scan_look_names: the type of the name by readdir; else DT_UNKNOWN */
	int type;
};

/* Return the object *LIST of the scan, and make it first when it is NULL. */
struct value *git_scan_list(struct value **list);

/* Put the first error into `trouble`. Returns false. */
bool scan_look_trouble(const struct scan_look *look, int code, const char *name);

/*
 * Open the folder NAME in LOOK without following a symlink, and put its path into PATH.
 * -1: it is missing, no folder, its path is too long, or the error is in `trouble`.
 */
int scan_look_enter(const struct scan_look *look, const char *name, char path[PATH_MAX]);
/*
 * As scan_look_enter, for a normal absolute path beneath a root. -1 also when it is
 * beneath no root.
 */
int scan_look_open_path(struct git_scan *scan, const char *path);

enum look_found { LOOK_ABSENT, LOOK_READ, LOOK_ODD };
/*
 * Read the regular file NAME, at most MAX bytes. LOOK_ODD: it is larger or no regular
 * file. ST is filled unless it is absent.
 */
enum look_found scan_look_read(const struct scan_look *look, const char *name, size_t max,
			       struct buf *content, struct stat *st);

/*
 * Does TEXT lead to the same place as its normal form, even with symlinks on the way? A
 * ".." behind a name is the parent of the folder that the kernel has reached, which a
 * symlink may have placed elsewhere.
 */
bool scan_look_is_straight(const char *text);

/*
 * Put into PATH the path in the one-line file NAME (readers.h), made normal relative to
 * FROM.
 */
bool scan_look_line_path(const struct scan_look *look, const char *name, const char *from,
			 struct buf *path);

/* Call EACH for the names in the folder, "." and ".." aside. */
void scan_look_names(const struct scan_look *look,
		     void (*each)(const struct scan_look *look, const char *name,
				  void *context),
		     void *context);

/*
 * Does NAME have our mark of a file that was moved aside? Anybody can choose such a name,
 * so it may be used only where git runs no file of such a name.
 */
bool scan_look_is_aside(const char *name);

/*
 * May FOLDER (one name) hold NAME? This is a cheap hint that saves opening most folders
 * of a project; the caller checks again after opening.
 */
bool scan_look_may_hold(const struct scan_look *look, const char *folder, const char *name);

bool scan_look_stat(const struct scan_look *look, const char *name, struct stat *st);

/* Mark NAME in LOOK as a danger, with a fingerprint of its status. */
void scan_look_mark_stat(const struct scan_look *look, const char *name,
			 const struct stat *st);

/*
 * Look at a git folder and everything in it (repository.c). WORKTREE: the worktree
 * that it belongs to.
 */
void git_scan_folder(struct git_scan *scan, int fd, const char *path,
		     const char *worktree, unsigned depth);
/*
 * LOOK is the subfolder FOLDER of a git folder ("": its top; "objects/??": one of these
 * folders). Add NAME to `left` when it is a file that a killed git may have left since
 * `left_ns`.
 */
void git_scan_left(const struct scan_look *look, const char *folder, const char *name);
/* Find repositories that a command has put into the git folder LOOK. */
void git_scan_inside(const struct scan_look *look, unsigned depth);
/* Look at a folder that may hold a `.git` or be a bare repository. */
void git_scan_worktree(struct git_scan *scan, int fd, const char *path, unsigned depth);
/*
 * Look at the `.git` in LOOK, which is a file with the status ST or a symlink, and at the
 * git folder that it leads to when that lies below a root (repository.c).
 */
void git_scan_pointer(const struct scan_look *look, const struct stat *st, unsigned depth);
void git_scan_pointer_link(const struct scan_look *look, unsigned depth);
/*
 * Find the protected names of autoexec.h in LOOK, a root or a worktree
 * (repository.c).
 */
void git_scan_protected(const struct scan_look *look, bool is_root);
/*
 * List the changed files of autoexec.h below NAME at the top of a root
 * (repository.c).
 */
void git_scan_file(const struct scan_look *look, const char *name);
