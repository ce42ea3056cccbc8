/*
 * files_inside: what files*.c, place*.c and near.c share and nobody else includes: the
 * roots, and reaching a folder or whatever is there beneath them.
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
 * The kernel's own bound on links in one path (MAXSYMLINKS), and ours on how often an
 * absolute one starts again at a root.
 */
enum { FILES_LINKS_MAX = 40, FILES_RESTARTS_MAX = 8 };

/* PATH as absolute, lexically normal text: what the policy judges is what is opened. */
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

/* Is anything kept? */
bool files_keeps(const struct files *files);

/*
 * Before the name PATH (absolute, real) changes: keep what it held (OLD_FD with OLD, or -1: it
 * was absent) and say what it will hold. True where nothing is kept.
 */
struct undo_state;
bool files_keep_change(const struct files *files, const char *path, int old_fd,
		       const struct stat *old, const struct undo_state *after,
		       struct err *err);

/* FD, of a file that has lost its name, is closed by files_settle, or when another comes. */
void files_close_later(struct files *files, int fd);

/* FOLDER (real) was written in. */
void files_add_heads(const struct files *files, const char *folder);

/* NAME in FOLDER (real) was written. */
void files_add_written(const struct files *files, const char *folder, const char *name);

/* The one answer for what is missing, outside or blocked. */
bool files_say_missing(const char *shown, struct err *err);
/* The sentence for CODE at SHOWN. */
bool files_say(int code, const char *shown, struct err *err);
/* SHOWN, which names a folder by where it is used or by its last slash, is a file. False. */
bool files_say_no_folder(const char *shown, struct err *err);
/* Can PATH as it is written only be a folder's: "a/" and "a/."? */
bool files_asks_folder(const char *path);
