/*
 * files_inside: shared by files*.c, place*.c, near.c, rights.c and undo_place.c only: the
 * roots, and reaching files of any kind beneath them.
 */
#pragma once
#include "files/files.h"

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
	char **blocked;        /* NULL-ended */
	struct undo_log *log;  /* files_keep */
	struct value *heads;   /* files_note_heads */
	struct value *written; /* files_note_written */
	int journal;           /* files_journal; -1: none */
	int replaced;          /* files_close_later; -1: none */
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

/* Is there a log that changes are kept in? */
bool files_keeps(const struct files *files);

/*
 * Before the file at PATH (absolute, real) changes, write to the log what PATH held
 * (OLD_FD with OLD; OLD_FD -1: nothing) and what it will hold (AFTER). True when there is
 * no log.
 */
struct undo_state;
bool files_keep_change(const struct files *files, const char *path, int old_fd,
		       const struct stat *old, const struct undo_state *after,
		       struct err *err);

/*
 * Keep FD, of a file that has lost its name, open until files_settle or the next call of
 * this function.
 */
void files_close_later(struct files *files, int fd);

/* Note for files_note_heads that a file in FOLDER (real) was written. */
void files_add_heads(const struct files *files, const char *folder);

/* Note for files_note_written that NAME in FOLDER (real) was written. */
void files_add_written(const struct files *files, const char *folder, const char *name);

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
bool files_asks_folder(const char *path);
