/* nested: notes the repositories that checkpoints find, and has what is in them looked after. */

#include "session/nested.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "cell/cell.h"
#include "guard/guard.h"
#include "guard/scan.h"
#include "session/session.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <string.h>

enum {
	/* each is looked at after each command, with some 100 system calls */
	NESTED_MAX = 512,
	/* bytes of their paths, which go along with each command */
	NESTED_BYTES_MAX = 256 << 10,
};

static bool is_known(const struct keeper *keeper, const char *path)
{
	const struct guard *guard = cell_spec(keeper->session->cell)->guard;

	return marks_find(&keeper->nested.known, MARK_WATCHED, path) != NULL ||
	       marks_find(&guard->marks, MARK_WATCHED, path) != NULL;
}

static void note_full(struct keeper *keeper)
{
	if (keeper->nested.state >= NESTED_FULL)
		return;
	keeper->nested.state = NESTED_FULL;
	(void)buf_addf(&keeper->words.trouble,
		       "[over %zu repositories lie deep in the workspace: from now on each "
		       "command is followed by a look through all folders]\n",
		       keeper->nested.known.counts[MARK_WATCHED]);
}

/*
 * Note the repository KEY that a worker has found, if it lies in the workspace. False: it
 * is not noted as new.
 */
static bool take_one(struct keeper *keeper, const char *key)
{
	auto_free char *path = path_of_key(key);

	if (path == NULL || !path_within(path, session_workspace(keeper->session)) ||
	    is_known(keeper, path))
		return false;
	keeper->nested.bytes += strlen(key);
	if (keeper->nested.known.counts[MARK_WATCHED] >= NESTED_MAX ||
	    keeper->nested.bytes > NESTED_BYTES_MAX) {
		note_full(keeper);
		return false;
	}
	(void)marks_add(&keeper->nested.known, MARK_WATCHED, path, STR(""));
	return true;
}

/*
 * Repositories beyond the ceiling go along with no call. Instead one look after each
 * command finds all of them, even when the command has made many to fill the list. True:
 * that look is due, once.
 */
static bool sweep_due(struct keeper *keeper)
{
	if (keeper->nested.state < NESTED_FULL || !keeper->look.is_step)
		return false;
	keeper->nested.state =
		keeper->nested.state == NESTED_FULL ? NESTED_SWEEPING : NESTED_FULL;
	return keeper->nested.state == NESTED_SWEEPING;
}

/* No command has run yet, so everything in these repositories was there before. */
static void take_first(struct keeper *keeper)
{
	const struct guard *guard = cell_spec(keeper->session->cell)->guard;
	struct err err = {0};

	if (!audit_begin_more(guard, &keeper->nested.known, false, &err))
		(void)buf_addf(&keeper->words.trouble,
			       "[not all repositories deep in the workspace can be looked "
			       "after: %s]\n",
			       err.text);
}

/*
 * Note the repositories in DETAILS, the details of a checkpoint. True: some are new, and
 * an audit of them is due.
 */
bool nested_take(struct keeper *keeper, const struct value *details)
{
	const struct value *found = value_member(details, "nested");
	const bool is_first = keeper->nested.state == NESTED_UNSEEN;
	bool more = false;

	if (cell_spec(keeper->session->cell)->guard == NULL)
		return false;
	if (is_first)
		keeper->nested.state = NESTED_SEEN;
	for (size_t i = 0; i < value_count(found); i++) {
		const char *key = value_text(value_item(found, i));

		if (key != NULL && take_one(keeper, key))
			more = true;
	}
	if (more && is_first)
		take_first(keeper);
	const bool due = sweep_due(keeper) || (more && !is_first);
	if (due)
		cell_set_audit_due(keeper->session->cell, true);
	return due;
}

bool nested_misses(const struct keeper *keeper)
{
	return keeper != NULL &&
	       (keeper->nested.state >= NESTED_FULL || keeper->reach == KEEPS_TOOLS);
}

const struct marks *nested_known(const struct keeper *keeper)
{
	return keeper != NULL ? &keeper->nested.known : NULL;
}

/*
 * The text of RESULT begins with one line that says why the checkpoint failed. That line
 * stays; the audit's lines behind it move to SAID.
 */
static void split_failed(struct tool_result *result, struct tool_result *said)
{
	struct str rest = buf_str(&result->text), line = {0};

	(void)str_next_line(&rest, &line);
	auto_free char *why = memory_copy_str(line);
	auto_free char *others = memory_copy_str(rest);
	audit_split(result, said);
	(void)buf_adds(&result->text, why);
	if (audit_failed(said))
		return;
	buf_clear(&said->text);
	(void)buf_adds(&said->text, others);
}

/*
 * Pass on what an audit said in the RESULT of a checkpoint: to the command's result, or
 * as a notice.
 */
void nested_tell(struct keeper *keeper, struct tool_result *result)
{
	struct tool_result said;
	struct err err = {0};

	tool_result_init(&said);
	if (result->status == RESULT_DONE)
		audit_split(result, &said);
	else
		split_failed(result, &said);
	if (keeper->look.owner != NULL) {
		audit_take(&keeper->look.owner->result, &said);
	} else if (said.text.size > 0) {
		/* The command was answered long ago. */
		(void)session_emit(keeper->session, EVENT_NOTICE, NULL,
				   str_trim(buf_str(&said.text)), NULL, &err);
		(void)buf_addstr(&keeper->words.trouble, buf_str(&said.text));
	}
	tool_result_fini(&said);
}

void nested_begin(struct keeper *keeper)
{
	if (!guard_has(cell_spec(keeper->session->cell)->guard, GUARD_PART) ||
	    keeper->session->one_call)
		return;
	(void)buf_addc(&keeper->words.trouble, '[');
	audit_add_partial(&keeper->words.trouble, GIT_SCAN_FOLDERS, NULL);
	(void)buf_adds(&keeper->words.trouble, ", the others when the session ends]\n");
}
