/*
 * scan: finds the names below some folders that git would run or follow now, as a set of
 * marks: kind, path and text, the fingerprint. The set of the beginning is the guard
 * (guard.h), and a later set shows which names came or changed. The front scans before
 * anything has run, and a worker after a command.
 *
 * A scan looks at `.git` of each root and of the folders directly in it, at bare
 * repositories among these, at every gitlink of the indexes found (and those of their
 * indexes), at every linked worktree that lies below a root, and at the folders that a
 * set tells it to watch. It then walks through the roots that ask for it, into every
 * folder, up to `folders_max` of them. At the top of each root and of each worktree it
 * looks for the protected names of autoexec.h, and at the top of a root also for those
 * that are only reported. Names are opened beneath held roots, only regular files are
 * read, and nothing waits. Symlinks are not followed, except one that stands for a
 * protected name and leads to a place below a root.
 *
 * A new name that git runs or follows is added in repository.c, which serves both
 * scans, and in view/protected.c when it is to be bound. It comes with a case in
 * tests/cell/protected.case and a line in docs/policy.md.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct value;

enum mark_kind {
	MARK_WATCHED, /* a folder to look at, wherever it lies */
	MARK_FILE,    /* a file that is a danger by itself, whatever it says */
	MARK_OPENED,  /* a place that the policy names as writable */
	/* a name that git or another program would run or follow; its fingerprint */
	MARK_DANGER,
	/* a valid pointer to a repository outside any `.git`; the path of the repository */
	MARK_LEAD,
	/*
	 * an index, or a folder that git writes to: its stamp, then the gitlinks or names
	 * in it that matter, each with a NUL at its end. While the stamp is the same, the
	 * index or folder is not read again
	 */
	MARK_NAMES,
	MARK_PLACE, /* a folder near its root; its inode */
	/* The kinds from here on are not printed: nobody outside the process needs them. */
	MARK_REPOSITORY, /* a git folder; its worktree when that was found with it */
	/* a `.git` file, a file that a configuration includes, a protected name */
	MARK_HELD,
	MARK_LATE,    /* a danger or lead that came while no guard was there (guard.h) */
	MARK_CHANGED, /* a changed file that other programs run by themselves */
	MARK_KINDS,
};

struct mark {
	enum mark_kind kind;
	/* only the walk through the folders of a root has found it */
	bool deep;
	size_t index; /* in its set */
	char *path;
	char *text; /* with a NUL behind its SIZE bytes; "" unless its kind has one */
	size_t size;
};

/* A set of marks, in which each kind has a path once. An empty set is all zero. */
struct marks {
	struct mark **items; /* in the order in which they came */
	size_t count;
	size_t counts[MARK_KINDS];
	void *tree; /* the same by kind and path */
};

void marks_fini(struct marks *marks);
/* Add a mark, or give the mark that is there TEXT. */
struct mark *marks_add(struct marks *marks, enum mark_kind kind, const char *path,
		       struct str text);
/* MARKS NULL: an empty set. NULL: there is no such mark. */
const struct mark *marks_find(const struct marks *marks, enum mark_kind kind,
			      const char *path);
/* The mark of KIND at PATH or at the nearest folder above it; NULL: there is none. */
const struct mark *marks_find_above(const struct marks *marks, enum mark_kind kind,
				    const char *path);
/* The first mark of KIND behind MARK; MARK NULL: the first of all. NULL at the end. */
const struct mark *marks_next(const struct marks *marks, enum mark_kind kind,
			      const struct mark *mark);
/*
 * A set as members of a JSON object, one for each kind that has marks. marks_parse adds
 * what it understands, and leaves out the rest: the bytes are not trusted.
 */
void marks_print(const struct marks *marks, struct value *object);
void marks_parse(const struct value *object, struct marks *marks);

enum {
	/* ceilings of one scan; a scan that reaches one fails rather than look away */
	GIT_SCAN_REPOSITORIES = 1024,
	GIT_SCAN_LINKS = 16384,   /* gitlinks and folders left out of one index */
	GIT_SCAN_DEPTH = 8,       /* of repositories inside each other */
	GIT_SCAN_TREE = 32,       /* depth of a folder that is a danger as a whole */
	GIT_SCAN_LOOKS = 200000,  /* names looked at: some 0.2 s */
	GIT_SCAN_NAMES = 1 << 20, /* names read from folders */
	/*
	 * Folders that a walk reads below a root, some 3 us each: with each call, once for
	 * a session, and by a whole look. When there are more, `partial` is set.
	 */
	GIT_SCAN_FOLDERS_CALL = 256,
	GIT_SCAN_FOLDERS = 4096,
	GIT_SCAN_FOLDERS_WHOLE = 65536,
	GIT_SCAN_PATHS = 16 << 20, /* bytes of the folders that wait to be read */
	GIT_SCAN_PLACES = 1024,    /* marks of places: those near the root */
	/*
	 * Bytes of protected files that are read, some 0.1 s. Further files are compared
	 * by their status.
	 */
	GIT_SCAN_CONTENTS = 32 << 20,
	/* Files of killed gits, of one scan and of one set; a later scan finds the rest. */
	GIT_SCAN_LEFT = 256,
	GIT_LEFT_MAX = 1024,
	GIT_SCAN_FILE = 80, /* bytes of the identity of a file */
};

/* Files that a killed git may have left: locks and temporary files. Empty: all zero. */
struct git_left {
	struct git_left_file {
		char *path;
		char file[GIT_SCAN_FILE]; /* as git_scan_print_file prints it */
		char *held;               /* who may hold the file, for people; or NULL */
		bool shared; /* a git in a worktree elsewhere may have made it */
		bool told;   /* a result has told that it stays */
	} * items;
	size_t count;
};
void git_left_fini(struct git_left *left);
/* Add PATH unless it is there. NULL: there are GIT_LEFT_MAX files, or FILE is too long. */
struct git_left_file *git_left_add(struct git_left *left, const char *path,
				   const char *file);

struct git_scan_root {
	const char *path; /* absolute, real */
	int fd;           /* a folder; O_PATH will do */
	/* walk through it, into every folder */
	bool walk;
	/*
	 * the walk leaves out a folder without subfolders that has not changed since
	 * `when`, and was not moved together with a folder above it
	 */
	bool aged;
	/*
	 * The root was an empty layer at `when`. The walk leaves out a folder that has not
	 * changed since, with all that it holds: the layer has a folder for each name that it
	 * has, and the kernel makes that folder, with a new ctime, or changes it. So this one
	 * lies below the layer, and so does all in it.
	 */
	bool layer;
	/* the results of the walk */
	size_t folders; /* number of folders read */
	bool partial;   /* there are more */
};

enum git_scan_part {
	GIT_SCAN_ALL,     /* the tops of the roots, all that is watched, then the walks */
	GIT_SCAN_WATCHED, /* only the folders that `more` watches */
	GIT_SCAN_WALKS,   /* only the walks, for `work_ms` */
};

/* A new scan is all zero, except what its caller sets. */
struct git_scan {
	struct git_scan_root *roots;
	size_t root_count;
	enum git_scan_part part;
	const char *home; /* of the user, for "~/" in a configuration; or NULL */
	/*
	 * The workspace, and where its cell shows it as well: git wrote that place into the pointers of
	 * worktrees and modules that were made inside, and they mean the workspace. AT may be NULL
	 */
	const char *own, *at;
	/*
	 * Commands have run. They cannot have changed files in read-only mounts of a
	 * view. A folder that its owner may not enter is made accessible to the owner. No
	 * later scan asks for the marks of names and places, so none are made.
	 */
	bool in_cell;
	/*
	 * The sets of earlier scans, or NULL. They tell what is watched, and what has not
	 * changed is not read again. KNOWN is the guard's.
	 */
	const struct marks *known, *more;
	size_t folders_max; /* of the walk through each root */
	/*
	 * GIT_SCAN_WALKS: the walks end when the thread has worked so long and, on a busy
	 * machine, after three times as long.
	 */
	int64_t work_ms;
	struct git_scan_when {
		int64_t before_ns;          /* wall clock; 0: all may have changed */
		const struct marks *places; /* the places of that time; NULL: unknown */
	} when;
	/*
	 * Search git folders for repositories inside them, where something has changed
	 * since this time. All of these are new, because git makes none there. 0: do not
	 * search.
	 */
	int64_t inside_ns;
	/* Mark files changed since this time (MARK_CHANGED, wall clock); 0: none. */
	int64_t since_ns;
	/*
	 * Collect in `left` git's locks and temporary files that have come since this
	 * time; 0: none.
	 */
	int64_t left_ns;
	/*
	 * called after each repository that a walk has found; what was found is forgotten
	 * then; or NULL
	 */
	void (*each)(struct git_scan *scan, void *context);
	void *context;
	/* the results */
	struct marks found; /* MARK_WATCHED: the repositories that a walk has found */
	struct git_left left;
	bool partial;   /* there are more folders than were walked through */
	size_t folders; /* number of folders that were */
	char *missed;   /* the first folder that was not; NULL: none */
	/* used by the scan itself */
	int64_t deadline_ms, busy_ms, work_end_ns;
	size_t looks, names, contents;
	bool goes_through;  /* a walk goes on */
	struct err trouble; /* the first error; empty text: none */
};

void git_scan_fini(struct git_scan *scan);

/* False: something could not be looked at. */
bool git_scan_run(struct git_scan *scan, struct err *err);

/*
 * Was the file of MARK there before WHEN? This is decided by times of change (ctime),
 * which no program can set. The file's own time says when it came or was renamed. But
 * when a folder is moved, the files in it keep their times; only the moved folder and the
 * folder that it came into change. Both also change when a name is made in them, so there
 * may be a doubt. There is also a doubt when a folder that SCAN has found to be a
 * repository has changed, because it may have become one since. A folder whose
 * fingerprint tells its content is as new as the newest name in it. The file system must
 * update the time of change of a renamed file, as ext4, XFS, Btrfs, tmpfs and overlays
 * do.
 */
enum git_scan_age { GIT_SCAN_OLD, GIT_SCAN_DOUBTFUL, GIT_SCAN_NEW };
enum git_scan_age git_scan_age(const struct git_scan *scan, const struct mark *mark,
			       const struct git_scan_when *when);

/*
 * Mark as watched the gitlinks below FOLDER of the repository whose root is an ancestor
 * of FOLDER, if there is one. The user's `git status` enters these gitlinks. For the
 * front only.
 */
bool git_scan_above(const char *folder, struct marks *marks, struct err *err);

/* The fingerprint of a protected name, not of something that git runs, begins so. */
#define GIT_SCAN_NAME "name "
/* That of a folder whose content does not matter begins so. */
#define GIT_SCAN_FOLDER "folder "

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

/* Look at a folder that may hold a `.git` or be a bare repository. */
void git_scan_worktree(struct git_scan *scan, int fd, const char *path, unsigned depth);

/*
 * List the changed files of autoexec.h below NAME at the top of a root
 * (repository.c).
 */
void git_scan_file(const struct scan_look *look, const char *name);
