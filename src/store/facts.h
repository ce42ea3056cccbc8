/*
 * facts: what agents leave for each other and for later runs: texts by key, apart for each
 * workspace, with who wrote them and when. One SQLite file of its own in the user's state
 * folder; several processes may write at once. Bounded: what does not fit is refused, nothing
 * is thrown away by itself but what has run out.
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
	/* Of one workspace: what a model can still list, and a size nobody notices on disk. */
	FACTS_COUNT_MAX = 500,
	FACTS_BYTES_MAX = 4 << 20,
	FACTS_LIVES_MAX_S = 366 * 24 * 3600,
};

/* The file beside the journal (database_state_path). Folders are made 0700. */
bool facts_open(const char *path, struct facts **facts, struct err *err);
void facts_close(struct facts *facts); /* NULL is fine */

/* Is KEY fit: 1 to FACTS_KEY_MAX letters, digits and . _ - / : ? */
bool facts_check_key(struct str key, struct err *err);

struct fact {
	struct str key, value, agent, session; /* valid until the callback returns */
	int64_t written_ms, expires_ms;        /* wall clock; 0: never */
};

/*
 * Keep FACT (its written_ms is filled in) in WORKSPACE, in the place of what had its key.
 * ERR: E2BIG, ENOSPC (too many, too much together), EINVAL (the key).
 */
bool facts_set(struct facts *facts, const char *workspace, const struct fact *fact,
	       struct err *err);

/*
 * Facts whose key begins with PREFIX, in the order of keys; the callback returns false to
 * stop. With EXACT the one whose key it is.
 */
bool facts_find(struct facts *facts, const char *workspace, struct str prefix, bool exact,
		bool (*fact)(void *context, const struct fact *fact), void *context,
		struct err *err);

/* *REMOVED: was there one? */
bool facts_remove(struct facts *facts, const char *workspace, struct str key,
		  bool *removed, struct err *err);
