/*
 * files: how tools inside a worker reach files. A path is resolved beneath one of the
 * cell's roots, held as descriptors, with openat2 (RESOLVE_BENEATH, no magic links);
 * symlinks are followed only as long as they stay in some root. Read and write rights of
 * the policy are checked again on the path that was really reached. A path outside the
 * roots, a blocked one and a missing one give the same answer.
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

/* One root: PATH (absolute, normal, real) as it is in the view. */
struct files_root {
	const char *path;
	bool writable;
	/* only names below that match may be written (PATTERN_BASENAME), or NULL: all */
	const char *pattern;
	/* what commands write there goes with the cell: nothing of it is kept */
	bool passing;
};

/*
 * Open the roots. WORKSPACE is where relative paths start. BLOCKED paths (NULL-ended,
 * absolute) are refused whatever else holds. Strings are copied.
 */
bool files_open(const struct files_root *roots, size_t count, const char *workspace,
		const char *const *blocked, struct files **files, struct err *err);
void files_close(struct files *files);
const char *files_workspace(const struct files *files);

struct undo_log;
/*
 * From now on what place_… replaces, and what it and files_place make, is in LOG before it
 * happens (undo_log.h; borrowed, NULL: nowhere). What cannot be kept is not replaced.
 */
void files_keep(struct files *files, struct undo_log *log);

struct value;
/*
 * From now on a write adds to LIST (borrowed, NULL: none) the keys (git_scan.h) of the folders
 * above it, up to the root, that hold a HEAD: git may take them for repositories.
 */
void files_note_heads(struct files *files, struct value *list);

/*
 * From now on a write adds to LIST (borrowed, NULL: none) the real path of what it wrote, as far as
 * that is text, and FILES_NOTED of them at most.
 */
enum { FILES_NOTED = 64 };
void files_note_written(struct files *files, struct value *list);

/* Does what commands write at PATH (absolute, real) go with the cell? */
bool files_is_passing(const struct files *files, const char *path);

/* Is PATH (absolute, real) one of the roots? */
bool files_is_root(const struct files *files, const char *path);

enum files_want {
	FILES_READ,   /* an existing regular file, opened for reading */
	FILES_FOLDER, /* an existing directory, opened for reading */
	FILES_ANY,    /* whatever is there, as O_PATH (the last symlink followed) */
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
 * file nor folder: FIFO, socket, device; never opened, nothing waits), ENAMETOOLONG; the
 * sentence names PATH as given. Never blocks on a FIFO.
 */
bool files_reach(struct files *files, const char *path, enum files_want want,
		 struct file *file, struct err *err);

/*
 * Open NAME in the folder FOLDER_FD without following a last symlink (for walks); same
 * checks. -1 with errno.
 */
int files_open_below(int folder_fd, const char *name, enum files_want want);
/* The regular file NAME there, to be read, and what was seen of it: the same check, asked once. */
int files_open_regular(int folder_fd, const char *name, struct stat *st);

/* ERR.code of what only git writes, and of what other agents run; no system call of ours says so. */
#define FILES_PROTECTED EKEYREJECTED
#define FILES_AUTOEXEC  EKEYREVOKED

/*
 * The place where PATH would be written: its folder (made with its parents when MAKE) as
 * O_PATH descriptor and the final name. A symlink as last name is followed inside the
 * roots. ERR.code EROFS or EPERM: the policy or the view forbids writing there,
 * FILES_PROTECTED: it is a `.git` or below one, FILES_AUTOEXEC: it is a protected name of
 * autoexec.h at the top of a root or of a worktree (both unless the policy names a path in there as
 * writable), ENOENT, EISDIR, ENXIO as above.
 */
struct place {
	int folder_fd;
	struct buf folder; /* real, absolute */
	char *name;
	bool exists;
	struct stat st;      /* when it exists; a regular file */
	size_t made_folders; /* parents made for it, from the folder upwards */
	struct files *files;
	const struct files_held *root; /* that it lies in */
};
void place_init(struct place *place);
void place_fini(struct place *place);
bool files_place(struct files *files, const char *path, bool make, struct place *place,
		 struct err *err);

/* Remove the folders that files_place made for PLACE, as far as they are empty. */
void place_unmake_folders(struct place *place);

/* The whole content of what is at PLACE (must exist), at most MAX bytes (EFBIG). */
bool place_read(const struct place *place, size_t max, struct buf *content,
		struct stat *st, struct err *err);

/*
 * Put CONTENT at PLACE, old or new at every moment: a nameless or random temp file in the
 * same folder, mode, owner, xattrs and ACL of the old file copied, fsync, rename, fsync
 * of the folder. With EXPECTED_MARK, writers of one file are taken one after the other (a
 * lock on the opened old file, which must still be the named one) and the old content
 * must have this mark (EAGAIN else). NULL: the file must not exist yet (EEXIST). ENOSPC
 * and EDQUOT leave the old file and say so. A failure takes folders that were made for it
 * away again.
 */
bool place_write(struct place *place, struct str content, const char *expected_mark,
		 struct err *err);

/* One file of a set. */
struct place_change {
	struct place *place;
	struct str content;
	const char *expected_mark; /* as above */
	struct str expected; /* the content behind the mark: compared faster; data may be NULL */
	bool removes;        /* the file goes; it needs a mark then */
	/* 0: of the old file, or as any new one; else the permissions (no set-id bits) */
	mode_t mode;
	const struct place *like; /* a new file gets owner, xattrs and ACL of this, or NULL */
};

/*
 * Make all COUNT changes or none. Everything is prepared first (temp files written and on
 * disk, all old files locked and compared); then the names are exchanged one by one. What
 * fails among these is taken back. A process killed in between leaves in its journal what
 * files_finish_writes needs: it finishes the set if all was prepared and nobody has changed a
 * file of it since, and puts everything back otherwise. So whoever reads at that very moment may see a part of the set new, and
 * nobody afterwards. ERR as above, with the file's name.
 */
bool place_write_set(struct place_change *changes, size_t count, struct err *err);

/*
 * From now on writes note in FD (a file that no command can reach; borrowed, -1: none) what is
 * to be done should this process be killed.
 */
void files_journal(struct files *files, int fd);

/*
 * The call is answered: let go of the file that it replaced. That is the file's end, for which
 * the file system takes its time.
 */
void files_settle(struct files *files);
/* What the journal FD of a killed writer says, a list; NULL: its write was over. */
struct value *files_unfinished(int fd);
/*
 * Rows of several writes in one list have in this member which of them they belong to, a
 * number; those of one write stand together.
 */
#define JOURNAL_SET "set"
/* Finish or undo that, each write as a whole, as far as it lies where FILES may be written. */
void files_finish_writes(struct files *files, const struct value *rows);

/*
 * The mark of a content: its hash; over FILES_HASHED_MAX, "stat:" with inode, size and
 * nanosecond times.
 */
enum { FILES_HASHED_MAX = 16 << 20, FILES_MARK = 96 };
void files_mark(struct str content, const struct stat *st, char mark[FILES_MARK]);

/*
 * For a missing PATH: up to FILES_NEAR_MAX real paths (relative to the workspace) of that base
 * name in the workspace, then the nearest names, whatever their ending; also what the path
 * would be without its leading slash when that exists. Bounded in time (FILES_NEAR_MS). Appends
 * `Did you mean: a, b, c?` or nothing.
 */
enum { FILES_NEAR_MS = 200, FILES_NEAR_MAX = 3 };
void files_add_near(struct files *files, const char *path, struct buf *out);

/*
 * Append the roots in the workspace that may be written, up to FILES_LISTED: "tests and *.md in
 * docs"; "nothing in the workspace" where there is none.
 */
enum { FILES_LISTED = 12 };
void files_add_writable(const struct files *files, struct buf *out);

/* PATH as shown to the model: relative inside the workspace, else absolute. */
const char *files_shown(const struct files *files, const char *path);
