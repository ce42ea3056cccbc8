/* git_scan_parts: shared by git_scan*.c, included by nobody else. */
#pragma once
#include "base/buf.h"
#include "guard/git_scan.h"

#include <limits.h>
#include <sys/stat.h>

/* A folder that the scan looks at. */
struct scan_look {
	struct git_scan *scan;
	int fd;
	const char *path;
	int type; /* in look_names: the type of the name by readdir; else DT_UNKNOWN */
};

/* The record of the index or folder KEY from an earlier scan; NULL: none. */
const struct value *git_scan_known(const struct git_scan *scan, const char *key);

/* Return the object *LIST of the scan, and make it first when it is NULL. */
struct value *git_scan_list(struct value **list);
/*
 * Add KEY to LIST, one of these objects, unless it is there: false when the search of a
 * root in `deep` has found it, else true.
 */
void git_scan_note(const struct git_scan *scan, struct value **list, const char *key);

/* Put the first error into `trouble`. Returns false. */
bool look_trouble(const struct scan_look *look, int code, const char *name);

/*
 * Open the folder NAME in LOOK without following a symlink, and put its path into PATH.
 * -1: it is missing, no folder, its path is too long, or the error is in `trouble`.
 */
int look_enter(const struct scan_look *look, const char *name, char path[PATH_MAX]);
/*
 * The same for a name where git has a folder: anything else of this name is marked as a
 * danger.
 */
int look_enter_or_mark(const struct scan_look *look, const char *name, char path[PATH_MAX]);
/*
 * As look_enter, for a normal absolute path beneath a root. -1 also when it is beneath no
 * root.
 */
int look_open_path(struct git_scan *scan, const char *path);

/* The same below ROOT, with one system call when possible. */
int look_open_whole(struct git_scan *scan, const struct git_scan_root *root,
		    const char *path);

enum look_found { LOOK_ABSENT, LOOK_READ, LOOK_ODD };
/*
 * Read the regular file NAME, at most MAX bytes. LOOK_ODD: it is larger or no regular
 * file. ST is filled unless it is absent.
 */
enum look_found look_read(const struct scan_look *look, const char *name, size_t max,
			  struct buf *content, struct stat *st);

/*
 * Does TEXT lead to the same place as its normal form, even with symlinks on the way? A
 * ".." behind a name is the parent of the folder that the kernel has reached, which a
 * symlink may have placed elsewhere.
 */
bool look_is_straight(const char *text);

/*
 * Put into PATH the path in the one-line file NAME (git_text.h), made normal relative to
 * FROM.
 */
bool look_line_path(const struct scan_look *look, const char *name, const char *from,
		    struct buf *path);

/* Call EACH for the names in the folder, "." and ".." aside. */
void look_names(const struct scan_look *look,
		void (*each)(const struct scan_look *look, const char *name, void *context),
		void *context);

/*
 * Does NAME have our mark of a file that was moved aside? Anybody can choose such a name,
 * so it may be used only where git runs no file of such a name.
 */
bool look_is_aside(const char *name);

/*
 * May FOLDER (one name) hold NAME? This is a cheap hint that saves opening most folders
 * of a project; the caller checks again after opening.
 */
bool look_may_hold(const struct scan_look *look, const char *folder, const char *name);

bool look_stat(const struct scan_look *look, const char *name, struct stat *st);

/* Is CHANGED at or after BEFORE_NS? */
bool look_is_since(const struct timespec *changed, int64_t before_ns);
/*
 * Does PLACES have the folder PATH with the inode of ST, so that it was not moved there
 * since?
 */
bool look_is_in_place(const struct value *places, const char *path, const struct stat *st);

/* Is the deadline of SCAN over? Then `partial` is set. */
bool look_is_late(struct git_scan *scan);

/* Mark NAME in LOOK as a danger, with a fingerprint of its content or of its status. */
void look_mark(const struct scan_look *look, const char *name, struct str content);
void look_mark_stat(const struct scan_look *look, const char *name, const struct stat *st);
void look_fingerprint(const struct stat *st, struct buf *out);

/* One git folder that the scan looks at. */
struct git_folder {
	struct scan_look look;
	const char *worktree; /* the worktree of the git folder; NULL: none */
	unsigned depth;       /* of repositories inside each other */
	/* its object names are long, according to its configuration */
	bool sha256;
};

/* Forget the results about repositories. */
void git_scan_forget(struct git_scan *scan);

/*
 * Look at a git folder and everything in it (git_scan_folder.c). WORKTREE: the worktree
 * that it belongs to.
 */
void git_scan_folder(struct git_scan *scan, int fd, const char *path,
		     const char *worktree, unsigned depth);
/* Look at the configuration NAME in FOLDER and what it includes (git_scan_config.c). */
void git_scan_config(struct git_folder *folder, const char *name);
/* Look at the repositories that the index of FOLDER names (git_scan_index.c). */
void git_scan_index(struct git_folder *folder);
/*
 * Check what an interrupted rebase or sequence will do in the git folder LOOK
 * (git_scan_works.c).
 */
void git_scan_works(const struct scan_look *look);
/*
 * Check the files whose resolution git will write down at the user's next commit
 * (git_scan_works.c).
 */
void git_scan_resolutions(const struct git_folder *folder);
/*
 * Find symlinks in the git folder LOOK, DEPTH repositories down, that git would write
 * through.
 */
void git_scan_links(const struct scan_look *look, unsigned depth);
/*
 * LOOK is the subfolder FOLDER of a git folder ("": its top; "objects/??": one of these
 * folders). Add NAME to `left` when it is a file that a killed git may have left since
 * `left_ns`.
 */
void git_scan_left(const struct scan_look *look, const char *folder, const char *name);
/*
 * Set `shared` for the items of `left` in the git folder LOOK when it has linked
 * worktrees. BEFORE is the number of items before this folder was looked at.
 */
void git_scan_share_left(const struct scan_look *look, size_t before);
/*
 * Find repositories that a command has put into the git folder LOOK (git_scan_inside.c).
 */
void git_scan_inside(const struct scan_look *look, unsigned depth);
/* Look at a folder that may hold a `.git` or be a bare repository (git_scan.c). */
void git_scan_worktree(struct git_scan *scan, int fd, const char *path, unsigned depth);
/*
 * Look at the `.git` in LOOK, which is a file with the status ST or a symlink, and at the
 * git folder that it leads to when that lies below a root (git_scan_pointer.c).
 */
void git_scan_pointer(const struct scan_look *look, const struct stat *st, unsigned depth);
void git_scan_pointer_link(const struct scan_look *look, unsigned depth);
/* Find repositories anywhere below ROOT, except those near ROOT (git_scan_deep.c). */
void git_scan_deep(struct git_scan *scan, const struct git_scan_root *root);
/*
 * Find the protected names of autoexec.h in LOOK, a root or a worktree
 * (git_scan_files.c).
 */
void git_scan_protected(const struct scan_look *look, bool is_root);
/*
 * List the changed files of autoexec.h below NAME at the top of a root
 * (git_scan_files.c).
 */
void git_scan_file(const struct scan_look *look, const char *name);
