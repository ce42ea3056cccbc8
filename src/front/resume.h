/*
 * resume: which of the recorded sessions the person means. What may not change between a
 * session and its continuation is held here: the folder that its conversation speaks of.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "store/journal.h"

#include <stdbool.h>

/*
 * The session NAME (journal_find; the last one: of FOLDER, or of where one is) of the user's
 * journal. FOLDER, as the person wrote it, or NULL, must be its workspace. ERR names what is
 * wrong and what to do. journal_found_fini in either case.
 */
bool resume_find(const char *name, const char *folder, struct journal_found *found,
		 struct err *err);

/*
 * Every event of the session NAME, in order; EVENT returns false to stop. An exit code;
 * complaints have been printed.
 */
int resume_read(const char *name,
		bool (*event)(void *context, int64_t number, const char *kind,
			      int64_t wall_ms, struct str json),
		void *context);
