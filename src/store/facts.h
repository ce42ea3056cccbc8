/*
 * facts: texts by key that agents leave for each other and for later runs, apart for each
 * workspace, with their author and time. They are in one SQLite file of their own in the
 * user's state folder; several processes may write at the same time. The number and size
 * are bounded: a fact that does not fit is refused, and only expired facts are deleted
 * automatically.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct facts;

enum {
	FACTS_KEY_MAX = 128,
	FACTS_VALUE_MAX = 64 << 10,
	/*
	 * The limits of one workspace. A model can still read a list of so many facts,
	 * and a file of this size is small for a disk.
	 */
	FACTS_COUNT_MAX = 500,
	FACTS_BYTES_MAX = 4 << 20,
	FACTS_LIVES_MAX_S = 366 * 24 * 3600,
};

/* The file beside the journal (database_state_path). Folders are made 0700. */
bool facts_open(const char *path, struct facts **facts, struct err *err);
void facts_close(struct facts *facts); /* NULL is fine */

/* Is KEY allowed: 1 to FACTS_KEY_MAX letters, digits and . _ - / : ? */
bool facts_check_key(struct str key, struct err *err);

struct fact {
	struct str key, value, agent, session; /* valid until the callback returns */
	int64_t written_ms, expires_ms;        /* wall clock; 0: never */
};

/*
 * Store FACT in WORKSPACE, in place of the fact with the same key, and set its
 * written_ms. ERR: E2BIG, ENOSPC (too many facts, or too many bytes together), EINVAL
 * (the key).
 */
bool facts_set(struct facts *facts, const char *workspace, const struct fact *fact,
	       struct err *err);

/*
 * The facts whose key begins with PREFIX, or with EXACT only the one whose key is PREFIX,
 * sorted by key. The callback returns false to stop.
 */
bool facts_find(struct facts *facts, const char *workspace, struct str prefix, bool exact,
		bool (*fact)(void *context, const struct fact *fact), void *context,
		struct err *err);

/* REMOVED: the fact existed. */
bool facts_remove(struct facts *facts, const char *workspace, struct str key,
		  bool *removed, struct err *err);
