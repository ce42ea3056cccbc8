/* git_scan_parts: what git_scan*.c share and nobody else includes. */
#pragma once
#include "base/buf.h"
#include "guard/git_scan.h"

#include <limits.h>
#include <sys/stat.h>

/* A folder under the scan's eyes. */
struct look {
	struct git_scan *scan;
	int fd;
	const char *path;
	int type; /* in look_names: what readdir says of the name, DT_UNKNOWN else */
};

/* What is known of the index or folder KEY from an earlier scan; NULL: nothing. */
const struct value *git_scan_known(const struct git_scan *scan, const char *key);

/* One of the scan's objects, made when something is found. */
struct value *git_scan_list(struct value **list);
/* KEY is found: into LIST, one of these, as what it was found by first. */
void git_scan_note(const struct git_scan *scan, struct value **list, const char *key);

/* Remember the first trouble; false always. */
bool look_trouble(const struct look *look, int code, const char *name);

/*
 * A folder below LOOK, no symlink on the way, and its path in PATH; -1: not there, no folder,
 * its path too long, or trouble told.
 */
int look_enter(const struct look *look, const char *name, char path[PATH_MAX]);
/* The same where git has a folder: anything else called NAME counts itself. */
int look_enter_or_mark(const struct look *look, const char *name, char path[PATH_MAX]);
/* As look_enter for a normal absolute path beneath some root; -1 also when beneath none. */
int look_open_path(struct git_scan *scan, const char *path);

/* The same below ROOT, in one step where nothing is in the way. */
int look_open_whole(struct git_scan *scan, const struct git_scan_root *root,
		    const char *path);

enum look_found { LOOK_ABSENT, LOOK_READ, LOOK_ODD };
/*
 * The content of the regular file NAME, at most MAX bytes. ODD: something else is there, or
 * more. ST is filled unless absent.
 */
enum look_found look_read(const struct look *look, const char *name, size_t max,
			  struct buf *content, struct stat *st);

/*
 * Does TEXT lead where its normal form does, whatever on the way is a symlink? Behind a name ".."
 * is where the kernel has got to, not where the text says.
 */
bool look_is_straight(const char *text);

/* The normal path that the one-line file NAME holds (git_text.h), from the folder FROM on. */
bool look_line_path(const struct look *look, const char *name, const char *from,
		    struct buf *path);

/* Call EACH for the names in the folder, "." and ".." aside. */
void look_names(const struct look *look,
		void (*each)(const struct look *look, const char *name, void *context),
		void *context);

/*
 * Does NAME say that we put it away? Anybody can name a thing so: it counts only where such a
 * name runs nothing.
 */
bool look_is_aside(const char *name);

/*
 * Is it worth opening FOLDER (one name) for its NAME? No promise: whoever opens it looks
 * properly. Most folders of a project are none, and opening costs more than asking.
 */
bool look_may_hold(const struct look *look, const char *folder, const char *name);

bool look_stat(const struct look *look, const char *name, struct stat *st);

/* Is CHANGED not before BEFORE_NS? */
bool look_is_since(const struct timespec *changed, int64_t before_ns);
/* Does PLACES say that the folder PATH, with the status ST, lay there? */
bool look_is_in_place(const struct value *places, const char *path, const struct stat *st);

/* Its deadline is over, and it is `partial` for that. */
bool look_is_late(struct git_scan *scan);

/* NAME in LOOK runs or leads something: FINGERPRINT by its content, or by what it is. */
void look_mark(const struct look *look, const char *name, struct str content);
void look_mark_stat(const struct look *look, const char *name, const struct stat *st);
void look_fingerprint(const struct stat *st, struct buf *out);

/* One git folder under the scan's eyes. */
struct git_folder {
	struct look look;
	const char *worktree; /* where it belongs; NULL: nowhere */
	unsigned depth;       /* of repositories inside each other */
	bool sha256;          /* its object names are long: read of its configuration */
};

/* What was found of repositories is let go of. */
void git_scan_forget(struct git_scan *scan);

/* A git folder and everything in it (git_scan_folder.c). WORKTREE: where it belongs. */
void git_scan_folder(struct git_scan *scan, int fd, const char *path,
		     const char *worktree, unsigned depth);
/* The configuration NAME in FOLDER and what it includes (git_scan_config.c). */
void git_scan_config(struct git_folder *folder, const char *name);
/* The repositories that its index names (git_scan_index.c). */
void git_scan_index(struct git_folder *folder);
/* What an interrupted rebase or sequence will do in the git folder LOOK (git_scan_works.c). */
void git_scan_works(const struct look *look);
/* The files whose resolution git will write down at the user's next commit (git_scan_works.c). */
void git_scan_resolutions(const struct git_folder *folder);
/* Symlinks in the git folder LOOK, DEPTH repositories down, that git would write through. */
void git_scan_links(const struct look *look, unsigned depth);
/*
 * Is NAME in LOOK, which is FOLDER of a git folder ("": the top, "objects/??" one of those), a file
 * that a killed git may have left since `left_ns`? Then it is in `left`.
 */
void git_scan_left(const struct look *look, const char *folder, const char *name);
/* LOOK is the top of a git folder: `left` had BEFORE items before its names came. */
void git_scan_share_left(const struct look *look, size_t before);
/* Repositories that a command has put into the git folder LOOK (git_scan_inside.c). */
void git_scan_inside(const struct look *look, unsigned depth);
/* A folder that may hold a `.git`, or be a bare repository itself (git_scan.c). */
void git_scan_worktree(struct git_scan *scan, int fd, const char *path, unsigned depth);
/*
 * The `.git` in LOOK that is a file with the status ST, or a symlink: what it leads to is
 * looked at when it lies below a root (git_scan_pointer.c).
 */
void git_scan_pointer(const struct look *look, const struct stat *st, unsigned depth);
void git_scan_pointer_link(const struct look *look, unsigned depth);
/* Repositories anywhere below ROOT, as far as they are not near it (git_scan_deep.c). */
void git_scan_deep(struct git_scan *scan, const struct git_scan_root *root);
/* The protected names of autoexec.h in LOOK, a root or a worktree (git_scan_files.c). */
void git_scan_protected(const struct look *look, bool is_root);
/* The rows of autoexec.h below NAME, at the top of a root, that have changed (git_scan_files.c). */
void git_scan_file(const struct look *look, const char *name);
