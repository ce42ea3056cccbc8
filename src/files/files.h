/*
 * files: lets tools inside a worker reach files. A path is resolved beneath one of the
 * cell's roots, held as descriptors, with openat2 (RESOLVE_BENEATH, no magic links);
 * symlinks are followed only as long as they stay in some root. Read and write rights of
 * the policy are checked again for the real path that was reached. A path outside the
 * roots, a blocked one and a missing one give the same answer.
 *
 * Roots are held as descriptors since the start of the cell. files.c opens beneath
 * them and reads the links that lead from one root to another. place.h writes files.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct files;
struct files_held;
struct undo_log;

/* One root: PATH (absolute, normal, real) as it is in the view. */
struct files_root {
	const char *path;
	bool writable;
	/*
	 * only names below PATH that match PATTERN may be written (PATTERN_BASENAME);
	 * NULL: all names
	 */
	const char *pattern;
	/* files that commands write there vanish with the cell; none of them is kept */
	bool passing;
};

/*
 * Open the roots. Relative paths start at WORKSPACE. BLOCKED paths (NULL-ended, absolute)
 * are refused, whatever the other rights say. Strings are copied.
 */
bool files_open(const struct files_root *roots, size_t count, const char *workspace,
		const char *const *blocked, struct files **files, struct err *err);
/*
 * The workspace stands at the place AT as well (view/shape.h; copied; NULL: nowhere). A path there,
 * named or reached, is the path in the workspace: roots, blocked paths and protected names hold as
 * for that one.
 */
void files_stand_at(struct files *files, const char *at);
/* PATH (absolute, normal) becomes the path in the workspace when it lies at the other place. */
void files_own(const struct files *files, struct buf *path);
void files_close(struct files *files);
const char *files_workspace(const struct files *files);
/*
 * From now on, every change that place_… and files_place make is written to LOG before it
 * happens (record.h; borrowed; NULL: no log). A file whose content cannot be kept in
 * LOG is not replaced.
 */
void files_keep(struct files *files, struct undo_log *log);
/*
 * From now on, a write adds keys (scan.h) to LIST (borrowed, NULL: no list): one for
 * each folder above the written file, up to the root, that holds a HEAD. Git may take
 * such a folder for a repository.
 */
void files_note_heads(struct files *files, struct value *list);
/*
 * From now on, a write adds the real path of the written file to LIST (borrowed, NULL: no
 * list) if that path is UTF-8. LIST gets a bounded number of paths.
 */
void files_note_written(struct files *files, struct value *list);

/* Do files that commands write at PATH (absolute, real) vanish with the cell? */
bool files_is_passing(const struct files *files, const char *path);

/* Is PATH (absolute, real) one of the roots? */
bool files_is_root(const struct files *files, const char *path);

enum files_want {
	FILES_READ,   /* an existing regular file, opened for reading */
	FILES_FOLDER, /* an existing directory, opened for reading */
	FILES_ANY,    /* a file of any kind, as O_PATH (the last symlink followed) */
};

/* A file or folder that was reached. */
struct file {
	int fd; /* -1 when closed */
	struct stat st;
	struct buf path; /* the real path in the view, absolute */
};
void file_init(struct file *file);
void file_fini(struct file *file);

/*
 * Reach PATH (absolute, or relative to the workspace). On failure ERR.code is ENOENT
 * (missing, outside or blocked alike), EISDIR, ENOTDIR, ELOOP, EACCES, ENXIO (neither
 * file nor folder: FIFO, socket, device; never opened), ENAMETOOLONG; the sentence names
 * PATH as given. The function never blocks on a FIFO.
 */
bool files_reach(struct files *files, const char *path, enum files_want want,
		 struct file *file, struct err *err);

/*
 * Open NAME in the folder FOLDER_FD without following a symlink as last name (for walks).
 * WANT is checked as in files_reach. -1 with errno.
 */
int files_open_below(int folder_fd, const char *name, enum files_want want);
/*
 * Open the regular file NAME in FOLDER_FD for reading, and put its status into ST. -1
 * with errno.
 */
int files_open_regular(int folder_fd, const char *name, struct stat *st);

/*
 * ERR.code for a name that only git writes, and for a name that other agents run. No
 * system call of ours returns these two codes.
 */
#define FILES_PROTECTED EKEYREJECTED
#define FILES_AUTOEXEC  EKEYREVOKED

/*
 * Close the file that the call has replaced; to be used after the call was answered. The
 * last close frees the file, which takes the file system some time.
 */
void files_settle(struct files *files);

/*
 * The mark of a content: its hash (hash_mark); over FILES_HASHED_MAX bytes, "stat:" with inode, size
 * and nanosecond times.
 */
enum { FILES_HASHED_MAX = 16 << 20, FILES_MARK = 96 };
void files_mark(struct str content, const struct stat *st, char mark[FILES_MARK]);
/*
 * For a missing PATH, append `Did you mean: a, b, c?` or nothing. The suggestions are
 * real paths (relative to the workspace) with the same base name, then those with the
 * nearest names, whatever their ending; also PATH without its leading slash when such a
 * path exists. The time is bounded.
 */
void files_add_near(struct files *files, const char *path, struct buf *out);

/*
 * Append the roots in the workspace that may be written, up to FILES_LISTED, such as
 * "tests and *.md in docs", or "nothing in the workspace" when there is none.
 */
enum { FILES_LISTED = 12 };
void files_add_writable(const struct files *files, struct buf *out);

/* PATH as shown to the model: relative inside the workspace, else absolute. */
const char *files_shown(const struct files *files, const char *path);

/*
 * Shared inside files/ and with undo/place.c: the roots, and reaching files of any kind
 * beneath them.
 */

struct files_held {
	int fd; /* O_PATH */
	char *path;
	char *pattern;
	bool writable;
	bool passing;
};

struct files {
	struct files_held *roots;
	size_t root_count;
	char *workspace;
	char *at;              /* files_stand_at; or NULL */
	char **blocked;        /* NULL-ended */
	struct undo_log *log;  /* files_keep */
	struct value *heads;   /* files_note_heads */
	struct value *written; /* files_note_written */
	int replaced;          /* the file that files_settle closes; -1: none */
};

/*
 * The kernel's limit on links in one path (MAXSYMLINKS), and our limit on how often an
 * absolute link starts again at a root.
 */
enum { FILES_LINKS_MAX = 40, FILES_RESTARTS_MAX = 8 };

/*
 * PATH as absolute, lexically normal text: the policy judges the same path that is
 * opened.
 */
bool files_normal(const struct files *files, const char *path, struct buf *out,
		  struct err *err);

/*
 * Open the normal path ABSOLUTE with open flags FLAGS beneath the root that holds it,
 * links followed inside the roots. REAL receives the path that was reached. -1 with
 * ERR.code; SHOWN is the path as given.
 */
int files_open_real(const struct files *files, const char *absolute, int flags,
		    struct buf *real, const char *shown, struct err *err);

/* The deepest root that holds the normal path ABSOLUTE, or NULL. */
const struct files_held *files_root_of(const struct files *files, const char *absolute);

bool files_is_blocked(const struct files *files, const char *real);
bool files_is_writable(const struct files *files, const char *real);

/* The one answer for a path that is missing, outside or blocked. Returns false. */
bool files_say_missing(const char *shown, struct err *err);
/* Set ERR to the sentence for CODE at SHOWN. Returns false. */
bool files_say(int code, const char *shown, struct err *err);
/*
 * The error for a SHOWN that is a file, but is used as a folder or ends in a slash.
 * Returns false.
 */
bool files_say_no_folder(const char *shown, struct err *err);
/* Does PATH end as only the path of a folder does ("a/" and "a/.")? */
static inline bool files_asks_folder(const char *path)
{
	struct str text = str_of(path);

	return text.size > 1 && (str_ends(text, STR("/")) || str_ends(text, STR("/.")));
}
