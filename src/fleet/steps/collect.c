/*
 * collect: the patch of a layer comes from the engine, that of a repository from git in the
 * cell, which compares two trees: the one that is made before the run and the one after it. They
 * are made with an index of their own, so that the repository's stays as it is.
 */

#include "fleet/steps/collect.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/client.h"
#include "fleet/steps/site.h"
#include "fleet/steps/step.h"
#include "fleet/store.h"
#include "fleet/task.h"
#include "fleet/work.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	NOTES_MAX = 100,
	COLLECT_S = 300, /* for all of it, however little time the task has left */
	KILLED_CODE = 128 + SIGKILL,
};
/* Bytes of all that is kept of a task, and so of each thing. */
#define KEPT_MAX ((uint64_t)FLEET_BLOB_MAX)

#define PATCH    "patch"
#define JOURNAL  "journal"
#define PATCH_OF "patch:"

/*
 * Print the name of the tree that the files below $1 would be, all but the ignored ones. Without
 * a repository there, one in the cell's /tmp serves, named by $2.
 */
#define TREE_TEXT                                                                  \
	"set -eu\n"                                                                \
	"cd \"$1\"\n"                                                              \
	"folder=/tmp/.glovebox-patch-$2\n"                                         \
	"mkdir -p \"$folder\"\n"                                                   \
	"git() { command git -c safe.directory='*' -c core.fsmonitor= -c "         \
	"core.hooksPath=/dev/null \"$@\"; }\n"                                     \
	"if ! git rev-parse -q --git-dir >/dev/null 2>&1; then\n"                  \
	"  [ -d \"$folder/git\" ] || command git init -q --bare \"$folder/git\"\n" \
	"  export GIT_DIR=$folder/git GIT_WORK_TREE=$PWD\n"                        \
	"fi\n"                                                                     \
	"index=$(git rev-parse --git-path index)\n"                                \
	"[ ! -f \"$index\" ] || cp \"$index\" \"$folder/index\"\n"                 \
	"export GIT_INDEX_FILE=$folder/index\n"                                    \
	"git add -A .\n"                                                           \
	"tree=$(git write-tree)\n"

static const char tree_text[] = TREE_TEXT "echo \"$tree\"\n";
/* Write what differs from the tree $3 to the file $4. */
static const char patch_text[] =
	TREE_TEXT "git diff --binary --full-index --no-color --no-ext-diff --no-textconv "
		  "\"$3\" \"$tree\" >\"$4\"\n";

static bool begins(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

static void note(struct value *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void note(struct value *result, const char *format, ...)
{
	struct value *notes = value_member(result, "notes");
	char sentence[ERR_TEXT_MAX];
	va_list arguments;

	if (notes == NULL) {
		notes = value_new_array();
		value_set(result, "notes", notes);
	}
	va_start(arguments, format);
	(void)vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	if (value_count(notes) < NOTES_MAX)
		value_append(notes, value_new_text(sentence));
}

bool fleet_collect_wants_journal(const struct fleet_task *task)
{
	return value_has_text(task->collect, JOURNAL);
}

/* The repository of which ENTRY wants a patch; NULL: the engine knows it, or it is none. */
static const char *repository_of(const struct fleet_site *site, const char *entry)
{
	if (begins(entry, PATCH_OF))
		return entry + strlen(PATCH_OF);
	if (strcmp(entry, PATCH) == 0 && (site->repository || site->apart))
		return site->workspace;
	return NULL;
}

/* A program of the cell that is not there is no mistake of the task. */
static bool can_do_without(const char *entry)
{
	return strcmp(entry, PATCH) == 0;
}

bool fleet_collect_begin(struct fleet_steps *steps, const struct fleet_site *site,
			 struct fleet_collect *collect)
{
	const struct value *wanted = steps->work->task->collect;
	bool ok = true;

	*collect = (struct fleet_collect){0};
	for (size_t i = 0; i < value_count(wanted) && i < FLEET_COLLECT_MAX && ok; i++) {
		const char *entry = value_text(value_item(wanted, i));
		const char *repository = repository_of(site, entry);
		struct fleet_ran ran;
		char number[16];

		if (repository == NULL)
			continue;
		(void)snprintf(number, sizeof(number), "%zu", i);
		const char *const argv[] = {"sh",       "-c",   tree_text, "tree",
					    repository, number, NULL};

		ok = fleet_steps_run(steps, site->cell, "patch", argv, NULL, &ran);
		if (ok && ran.code == 0)
			collect->trees[i] = memory_copy_str(str_trim(buf_str(&ran.output)));
		else if (ok && !can_do_without(entry))
			ok = fleet_steps_end(steps, FLEET_SET_UP, "collect: %s: %s",
					     entry, ran.said.data);
		fleet_ran_fini(&ran);
	}
	return ok;
}

void fleet_collect_fini(struct fleet_collect *collect)
{
	for (size_t i = 0; i < FLEET_COLLECT_MAX; i++)
		free(collect->trees[i]);
	*collect = (struct fleet_collect){0};
}

/* Put FD into the store; *NAME, which the caller owns, is the name of the blob. */
static bool keep(struct fleet_steps *steps, int fd, struct value **name)
{
	char hash[FLEET_HASH_BYTES];
	uint64_t bytes;
	struct err err;

	if (!fleet_store_blob(steps->work->store, fd, hash, &bytes, &err)) {
		return fleet_steps_end(steps, FLEET_SET_UP,
				       "the task has run, but the store took nothing of it: %s",
				       err.text);
	}
	*name = value_new_text(hash);
	return true;
}

/* All that the keeping of a task which has ended needs. */
struct keeping {
	/* A copy: what fails in it decides about the task only where a function says so. */
	struct fleet_steps steps;
	const struct fleet_site *site;
	const struct fleet_collect *collect;
	struct value *result;
	bool was_done; /* nothing had ended the task before */
};

/*
 * ENTRY is not kept for the reason SAID, which the result notes. False: the reason is that the cell
 * was LOST, and the task would be told as done without what it was to make.
 */
static bool go_without(struct keeping *keeping, const char *entry, bool lost,
		       const char *said)
{
	if (lost && keeping->was_done) {
		auto_free char *why = memory_copy(said); /* of these steps, perhaps */

		keeping->steps.ended = false;
		return fleet_steps_end(&keeping->steps, FLEET_SET_UP,
				       "the task has run, but its cell was lost: %s", why);
	}
	note(keeping->result, "%s: %s", entry, said);
	return true;
}

/* Keep the file PATH of the cell. *NAME stays NULL when it cannot be read. */
static bool keep_file(struct keeping *keeping, const char *path, const char *entry,
		      struct value **name)
{
	struct fleet_refusal refusal = {0};
	struct err err;
	auto_close int fd = fleet_steps_file(&err);

	if (fd < 0)
		return go_without(keeping, entry, false, err.text);
	if (fleet_steps_fetch(&keeping->steps, keeping->site->cell, path, KEPT_MAX, fd,
			      &refusal))
		return keep(&keeping->steps, fd, name);
	return go_without(keeping, entry, fleet_steps_is_loss(&refusal), refusal.err.text);
}

/* Keep what git says has changed in the repository of ENTRY since its tree was made. */
static bool keep_diff(struct keeping *keeping, size_t nth, const char *entry,
		      struct value **name)
{
	struct fleet_steps *steps = &keeping->steps;
	const char *tree = keeping->collect->trees[nth];
	struct fleet_ran ran;
	char number[16], path[64];
	bool kept;

	(void)snprintf(number, sizeof(number), "%zu", nth);
	(void)snprintf(path, sizeof(path), "/tmp/.glovebox-patch-%zu/patch", nth);
	const char *const argv[] = {
		"sh",   "-c", patch_text, "patch", repository_of(keeping->site, entry),
		number, tree, path,       NULL};
	if (!fleet_steps_run(steps, keeping->site->cell, "patch", argv, NULL, &ran))
		kept = go_without(keeping, entry, steps->cell_lost, steps->said);
	else if (ran.code != 0)
		kept = go_without(keeping, entry, ran.code == KILLED_CODE, ran.said.data);
	else
		kept = keep_file(keeping, path, entry, name);
	fleet_ran_fini(&ran);
	return kept;
}

/* Keep what the engine says has changed in the workspace of the cell. */
static bool keep_patch(struct keeping *keeping, struct value **name)
{
	struct fleet_steps *steps = &keeping->steps;
	struct value *params = value_new_object();
	auto_value struct value *answer = NULL;
	struct str patch;
	const char *because;
	struct err err;
	auto_close int fd = fleet_steps_file(&err);

	value_set_text(params, "cell", keeping->site->cell);
	if (!fleet_steps_call(steps, "cell/patch", params, &answer))
		return go_without(keeping, PATCH, steps->cell_lost, steps->said);
	patch = value_str(value_member(answer, "patch"));
	because = value_text(value_member(answer, "because"));
	if (because != NULL)
		note(keeping->result, PATCH ": %s", because);
	if (fd < 0 || !fd_write_all(fd, patch.data, patch.size, &err))
		return go_without(keeping, PATCH, false, err.text);
	return keep(steps, fd, name);
}

static bool keep_named(struct keeping *keeping, const char *entry, struct value **name)
{
	const char *cwd = keeping->steps.work->task->cwd;
	char path[2 * PATH_MAX];

	if (cwd == NULL || entry[0] == '/')
		return keep_file(keeping, entry, entry, name);
	(void)snprintf(path, sizeof(path), "%s/%s", cwd, entry);
	return keep_file(keeping, path, entry, name);
}

/* Keep the entry NTH. False: the store has failed, or the cell was lost. */
static bool keep_entry(struct keeping *keeping, size_t nth, struct value *files)
{
	const char *entry = value_text(value_item(keeping->steps.work->task->collect, nth));
	const bool is_whole = strcmp(entry, PATCH) == 0, is_part = begins(entry, PATCH_OF);
	struct value *result = keeping->result, *name = NULL;
	bool ok = true;

	if (keeping->collect->trees[nth] != NULL)
		ok = keep_diff(keeping, nth, entry, &name);
	else if (is_whole && !keeping->site->apart)
		ok = keep_patch(keeping, &name);
	else if (is_whole)
		note(result, PATCH ": git is needed in the cell for that");
	else if (is_part)
		note(result, "%s: the task ended before its run", entry);
	else
		ok = keep_named(keeping, entry, &name);
	if (name == NULL)
		name = value_new_null();
	if (is_whole || (is_part && value_member(result, PATCH) == NULL))
		value_set(result, PATCH, value_ref(name));
	if (!is_whole)
		value_set(files, entry, value_ref(name));
	value_free(name);
	return ok;
}

bool fleet_collect_all(struct fleet_steps *steps, const struct fleet_site *site,
		       const struct fleet_collect *collect, struct value *result)
{
	const struct value *wanted = steps->work->task->collect;
	struct value *files = value_new_object(), *name = NULL;
	struct keeping keeping = {.steps = *steps,
				  .site = site,
				  .collect = collect,
				  .result = result,
				  .was_done = !steps->ended};
	struct fleet_steps *own = &keeping.steps;
	bool ok = true;

	own->due_ms = clock_deadline(COLLECT_S);
	for (size_t i = 0; i < value_count(wanted) && i < FLEET_COLLECT_MAX && ok; i++) {
		own->ended = false;
		/* The journal ends with what is done here. */
		if (!str_is(value_str(value_item(wanted, i)), JOURNAL))
			ok = keep_entry(&keeping, i, files);
	}
	own->ended = own->ended && !ok;
	if (ok && own->journal >= 0)
		ok = keep(own, own->journal, &name);
	if (name != NULL)
		value_set(result, JOURNAL, name);
	value_set(result, "files", files);
	if (ok)
		return true;
	steps->ended = false; /* whatever became of it: the task is to be done again */
	return fleet_steps_end(steps, own->status, "%s", own->said);
}
