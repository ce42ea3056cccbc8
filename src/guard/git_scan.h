/*
 * git_scan: what git would run or follow, as it lies below some folders right now: each
 * such thing with a fingerprint, so that two scans tell what came or changed in between.
 * Used by the front before anything ran, and by a worker after a command.
 *
 * How far it looks: `.git` of each root and of the folders directly in it, bare
 * repositories among these, every gitlink of the indexes found (and theirs), every linked
 * worktree that lies below a root, and what it is told to look at. Below the roots in `deep`
 * it looks into every folder, as far as `folders_max` of them go. At the top of each root and of
 * each worktree it looks for the protected names of autoexec.h, at the top of a root also for those
 * that are reported. Names are opened beneath held roots, symlinks not followed (but one that stands
 * for a protected name, to where it leads below a root), only regular files read, and nothing waits.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

enum {
	/* ceilings of one scan; beyond, it fails rather than look away */
	GIT_SCAN_REPOSITORIES = 1024,
	GIT_SCAN_LINKS = 16384,   /* gitlinks and folders left out of one index */
	GIT_SCAN_DEPTH = 8,       /* of repositories inside each other */
	GIT_SCAN_LOOKS = 200000,  /* names looked at: some 0.2 s */
	GIT_SCAN_NAMES = 1 << 20, /* and names read of folders */
	/*
	 * Folders gone through below a root in `deep`, some 3 us each: with each call, once for a
	 * session, and by a whole look. `partial` when there are more.
	 */
	GIT_SCAN_FOLDERS_CALL = 256,
	GIT_SCAN_FOLDERS = 4096,
	GIT_SCAN_FOLDERS_WHOLE = 65536,
	GIT_SCAN_PATHS = 16 << 20, /* bytes of the folders that wait to be read */
	GIT_SCAN_PLACES = 1024,    /* folders in `places`: those near the root */
	/* Bytes of protected names that are read, some 0.1 s; what lies beyond counts by its status. */
	GIT_SCAN_CONTENTS = 32 << 20,
};

struct git_scan_root {
	const char *path; /* absolute, real */
	int fd;           /* a folder; O_PATH will do */
};

struct git_scan {
	const struct git_scan_root *roots;
	size_t root_count;
	const char *home; /* of the user: what "~/" in a configuration stands for; or NULL */
	bool may_mend;    /* a folder that its owner may not enter is opened to him */
	bool wants_files;      /* collect `files`, those changed since SINCE */
	struct timespec since; /* wall clock */
	/* as `indexes`: unchanged ones are not read again. Either may be NULL */
	const struct value *known_indexes, *more_indexes;
	/* as `dangers`, of protected names: what is as it was is not read again. Either may be NULL */
	const struct value *known_dangers, *more_dangers;
	const struct value *opened; /* keys of places that were named to be written; or NULL */
	bool in_cell; /* commands have run: the mounts of a view hold what they cannot have changed */
	const struct value *deep; /* roots that are gone through whole: their keys; or NULL */
	size_t folders_max;       /* of each of these */
	int64_t deadline_ms;      /* no further into these after that; 0: none */
	/*
	 * A leaf of theirs that has neither changed since nor been moved with a folder above is not
	 * asked what it holds.
	 */
	struct git_scan_when {
		int64_t before_ns;          /* wall clock; 0: all may have changed */
		const struct value *places; /* as below, of then; NULL: none are known */
	} when;
	bool wants_places;
	/*
	 * Repositories inside of git folders are looked for where something has changed since, and
	 * those are new: git makes none. 0: not at all.
	 */
	int64_t inside_ns;
	/*
	 * Locks and temporary files of git that have come since are collected in `left`; 0: none.
	 */
	int64_t left_ns;
	/* what lies deep is given to this and forgotten, one repository at a time; or NULL */
	void (*each)(struct git_scan *scan, void *context);
	void *context;
	/* what was found; NULL: nothing of the kind, as in most folders */
	/* path -> true; false: one that only going through a root in `deep` has found */
	struct value *repositories; /* git folders */
	struct value *held; /* `.git` files, files that a configuration includes, protected names */
	/* those that hold and lead to no git folder that is called so: path -> the repository */
	struct value *leads;
	struct value *dangers; /* path -> fingerprint */
	/* gitlinks: path of an index -> its fingerprint, then the paths of its gitlinks */
	struct value *indexes;
	/*
	 * path -> an object: `file` (git_scan_print_file), and `shared`: true when a git that stands
	 * in a worktree elsewhere may have made it
	 */
	struct value *left;
	struct value *nested; /* keys of folders below roots in `deep`, two down and more */
	struct value *places; /* folders below roots in `deep` that have some in them: path -> inode */
	bool partial;   /* there are more folders than were gone through */
	size_t folders; /* so many were */
	char *missed;   /* the first that was not; NULL: none */
	struct value *files; /* that run by themselves: a list of paths as they are, to be shown */
	/* the scan's own */
	size_t looks, names, contents;
	bool goes_through;  /* one of the roots in `deep`, now */
	struct err trouble; /* the first; text empty: none */
};

void git_scan_init(struct git_scan *scan, const struct git_scan_root *roots, size_t count);
void git_scan_fini(struct git_scan *scan);

/*
 * Look at the roots, at the folders WATCHED below them, and at FILES there that count as they
 * are (lists of paths; NULL: none). False: not all of it was seen.
 */
bool git_scan_run(struct git_scan *scan, const struct value *watched,
		  const struct value *files, struct err *err);

/* Go through the roots in `deep`, and no more than that; what is not seen is in `trouble`. */
void git_scan_whole(struct git_scan *scan);

/* Look at some more folders, at any time of the scan; what is not seen is in `trouble`. */
void git_scan_watch(struct git_scan *scan, const struct value *watched);

/*
 * Was what lies at KEY there before WHEN? By times that no program can set: a file's own says when
 * it came or was renamed, but what lies in a folder comes along when that is moved. Then this one
 * has changed, and so has the folder it came into; both do also when something is made in them, so
 * that there may be a doubt. Likewise when a repository that SCAN has found has changed: it may
 * have become one. The system must keep the time of change of what it renames, as ext4, XFS, Btrfs,
 * tmpfs and overlays do.
 */
enum git_scan_age { GIT_SCAN_OLD, GIT_SCAN_DOUBTFUL, GIT_SCAN_NEW };
enum git_scan_age git_scan_age(const struct git_scan *scan, const char *key,
			       const struct git_scan_when *when);

/*
 * Append to LIST the gitlinks below FOLDER of the repository whose root is an ancestor of
 * it, if there is one: what that user's `git status` enters. The front's own.
 */
bool git_scan_above(const char *folder, struct value *list, struct err *err);

/* Is it the fingerprint of a protected name, among those of what git runs? NULL is none. */
bool git_scan_is_name(const char *fingerprint);
/* Is what lies at KEY now a regular file? */
bool git_scan_is_file(const struct git_scan *scan, const char *key);

/* What git takes a folder for a repository by, when it stands in it: names in it, NULL-ended. */
extern const char *const git_scan_repository[];

/* The folder that holds PATH, beneath its root, and the last name. -1 with errno. */
int git_scan_open_parent(const struct git_scan *scan, const char *path, const char **name);

/* Is NAME, in a git folder, a lock: a file that keeps other gits out while it is there? */
bool git_scan_is_lock(const char *name);
/* What a file is known by, until it is changed: device, inode, time of change. */
enum { GIT_SCAN_FILE = 80 };
void git_scan_print_file(const struct stat *st, char text[GIT_SCAN_FILE]);

/* Our mark in the name of what was put away: no branch can be called so, for git refuses "..". */
#define GIT_QUARANTINE "..quarantine-"
