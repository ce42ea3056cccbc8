/* resume: finds a recorded session and checks that it may go on. */
#include "front/resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "front/verb.h"

/* Check that FOLDER is the workspace of FOUND. FOLDER NULL: any workspace is fine. */
static bool check_folder(const struct journal_found *found, const char *folder,
			 struct err *err)
{
	struct stat st;

	/*
	 * A delegate's rights were cut to those of its caller. By itself it would lose
	 * this bound.
	 */
	if (found->parent != NULL)
		return err_set(err, EPERM,
			       "session %s is of the agent %.64s at work for session %.64s, with "
			       "the rights of both; by itself it would have more. Go on with that "
			       "one, which can delegate again: glovebox run --resume %.64s",
			       found->id, found->agent, found->parent, found->parent);
	if (folder != NULL && strcmp(folder, found->workspace) != 0)
		return err_set(err, EINVAL,
			       "session %s worked in %s, not in %s: what was said there is about "
			       "its files. Leave out -C, or begin a new session",
			       found->id, found->workspace, folder);
	if (stat(found->workspace, &st) != 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ENOENT,
			       "session %s worked in %s, which is not there any more: put it back "
			       "there, or begin a new session",
			       found->id, found->workspace);
	return true;
}

bool resume_find(const char *name, const char *folder, struct journal_found *found,
		 struct err *err)
{
	const char *named = folder != NULL ? folder : ".";
	auto_free char *real = realpath(named, NULL);
	struct journal *journal = NULL;
	bool is_there;

	*found = (struct journal_found){0};
	if (real == NULL)
		return err_set(err, errno, "workspace %s: %s", named, strerror(errno));
	is_there = journal_open_default(&journal, err) &&
		   journal_find(journal, name, real, found, err) &&
		   check_folder(found, folder != NULL ? real : NULL, err);
	journal_close(journal);
	return is_there;
}

int resume_read(const char *name,
		bool (*event)(void *context, int64_t number, const char *kind,
			      int64_t wall_ms, struct str json),
		void *context)
{
	auto_free char *here = realpath(".", NULL);
	struct journal_found found = {0};
	struct journal *journal = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	if (!journal_open_default(&journal, &err) ||
	    !journal_find(journal, name, here != NULL ? here : "", &found, &err) ||
	    !journal_read(journal, found.id, event, context, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	journal_found_fini(&found);
	journal_close(journal);
	return code;
}
