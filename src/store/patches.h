/*
 * patches: the patches that runs have handed over, and what was decided of each. A patch
 * is the recorded result of the tool generate_patch and stays in the journal. This module
 * only finds that event and keeps the decision. The caller checks the content of the
 * event.
 *
 * tools/patches/take_patch.h checks that the text of such a patch and the record of its
 * files agree.
 */
#pragma once
#include "store/journal.h"

enum {
	/*
	 * Hexadecimal digits of a patch's name, which comes from its session and number.
	 * Eight are shown and enough among thousands; any six that fit only one patch are
	 * taken.
	 */
	PATCH_ID = 16,
	PATCH_ID_SHOWN = 8,
	PATCH_ID_LEAST = 6,
};

enum patch_state { PATCH_OPEN, PATCH_APPLIED, PATCH_REJECTED };
const char *patch_state_name(enum patch_state state); /* "open", "applied", "rejected" */

/* The decision of a person, and its time. Texts may be empty. */
struct patch_decision {
	enum patch_state state;
	int64_t wall_ms;
	struct str place;  /* PATCH_APPLIED: the folder */
	struct str branch; /* PATCH_APPLIED: on this branch of its repository */
	struct str reason; /* PATCH_REJECTED */
};

/* Valid during the callback. */
struct patch_row {
	char id[PATCH_ID + 1];
	char session[JOURNAL_ID + 1];
	int64_t number; /* of the event */
	int64_t wall_ms;
	struct str workspace, agent, model;
	struct str json; /* the event */
	struct patch_decision decision;
};

/*
 * Newest first, at most LIMIT: those of WORKSPACE, or, with ELSEWHERE, those of all others.
 * The callback returns false to stop.
 */
bool patches_list(struct journal *journal, const char *workspace, bool elsewhere,
		  size_t limit, bool (*patch)(void *context, const struct patch_row *row),
		  void *context, struct err *err);

/*
 * Hands PATCH the patch whose name begins with ID, in lower case. ENOENT: there is none.
 * EINVAL: ID is not a name, or several names begin with it; the sentence names them.
 */
bool patches_find(struct journal *journal, const char *id,
		  void (*patch)(void *context, const struct patch_row *row),
		  void *context, struct err *err);

/* The name of the newest patch of SESSION. False: there is none, or ERR says what is wrong. */
bool patches_newest(struct journal *journal, const char *session, char id[PATCH_ID + 1],
		    struct err *err);

/*
 * Keep DECISION for the patch that is event NUMBER of SESSION; the last decision counts.
 */
bool patches_decide(struct journal *journal, const char *session, int64_t number,
		    const struct patch_decision *decision, struct err *err);
