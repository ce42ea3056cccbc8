/*
 * resume: finds the recorded session that the person means. It makes sure that a session
 * goes on in the same folder, because its conversation speaks of this folder.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "store/journal.h"

#include <stdbool.h>

/*
 * Find the session NAME (journal_find) in the user's journal. The last session is the
 * last one of FOLDER or, when FOLDER is NULL, of the working folder. FOLDER, as the
 * person wrote it, must be the workspace of the session. ERR names the fault and the
 * remedy. Call journal_found_fini in either case.
 */
bool resume_find(const char *name, const char *folder, struct journal_found *found,
		 struct err *err);

/*
 * Call EVENT with every event of the session NAME, in order; EVENT returns false to stop.
 * Returns an exit code; complaints have been printed.
 */
int resume_read(const char *name,
		bool (*event)(void *context, int64_t number, const char *kind,
			      int64_t wall_ms, struct str json),
		void *context);
