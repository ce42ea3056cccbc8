/*
 * session_nested: repositories deep in the workspace, which checkpoints find on their
 * way. Those that the first checkpoint of a session finds were there before any command.
 * A command may have made all later ones; the audit that is due from then on puts away
 * what would run in these.
 */
#include "base/memory.h"
#include "base/path.h"
#include "cell/cell.h"
#include "guard/guard.h"
#include "guard/scan.h"
#include "session/session_undo_parts.h"

#include <string.h>

enum {
	/* each is looked at after each command, with some 100 system calls */
	NESTED_MAX = 512,
	/* bytes of their paths, which go along with each command */
	NESTED_BYTES_MAX = 256 << 10,
};

static bool is_known(const struct keeper *keeper, const char *key)
{
	const struct value *guard = cell_spec(keeper->session->cell)->guard;

	return value_member(keeper->nested_keys, key) != NULL ||
	       value_has_text(value_member(guard, "watched"), key);
}

static void note_full(struct keeper *keeper)
{
	if (!keeper->nested_full)
		(void)buf_addf(&keeper->trouble,
			       "[over %zu repositories lie deep in the workspace: from now on each "
			       "command is followed by a look through all folders]\n",
			       value_count(keeper->nested_keys));
	keeper->nested_full = true;
}

/*
 * Note the repository KEY that a worker has found, if it lies in the workspace. False: it
 * is not noted as new.
 */
static bool take_one(struct keeper *keeper, struct value *list, const char *key)
{
	auto_free char *path = path_of_key(key);

	if (path == NULL || !path_within(path, session_workspace(keeper->session)) ||
	    is_known(keeper, key))
		return false;
	keeper->nested_bytes += strlen(key);
	if (value_count(keeper->nested_keys) >= NESTED_MAX ||
	    keeper->nested_bytes > NESTED_BYTES_MAX) {
		note_full(keeper);
		return false;
	}
	value_set_boolean(keeper->nested_keys, key, true);
	value_append(list, value_new_text(key));
	return true;
}

/*
 * Repositories beyond the ceiling go along with no call. Instead one look after each
 * command finds all of them, even when the command has made many to fill the list. True:
 * that look is due, once.
 */
static bool sweep_due(struct keeper *keeper)
{
	if (!keeper->nested_full || !keeper->is_step)
		return false;
	keeper->sweeping = !keeper->sweeping;
	return keeper->sweeping;
}

static struct value *nested_new(void)
{
	struct value *nested = value_new_object();

	value_set(nested, "watched", value_new_array());
	return nested;
}

/* No command has run yet, so everything in these repositories was there before. */
static void take_first(struct keeper *keeper)
{
	const struct value *guard = cell_spec(keeper->session->cell)->guard;
	struct err err = {0};

	if (!audit_begin_more(guard, keeper->nested, false, &err))
		(void)buf_addf(&keeper->trouble,
			       "[not all repositories deep in the workspace can be looked "
			       "after: %s]\n",
			       err.text);
}

bool keeper_nested_take(struct keeper *keeper, const struct value *details)
{
	const struct value *found = value_member(details, "nested");
	const bool is_first = !keeper->nested_looked;
	bool more = false;

	if (cell_spec(keeper->session->cell)->guard == NULL)
		return false;
	keeper->nested_looked = true;
	if (value_count(found) > 0 && keeper->nested == NULL) {
		keeper->nested = nested_new();
		keeper->nested_keys = value_new_object();
	}
	for (size_t i = 0; i < value_count(found); i++) {
		const char *key = value_text(value_item(found, i));

		if (key != NULL &&
		    take_one(keeper, value_member(keeper->nested, "watched"), key))
			more = true;
	}
	if (more && is_first)
		take_first(keeper);
	const bool due = sweep_due(keeper) || (more && !is_first);
	if (due)
		cell_set_audit_due(keeper->session->cell, true);
	return due;
}

bool keeper_misses_nested(const struct keeper *keeper)
{
	return keeper != NULL &&
	       (keeper->nested_full || (keeper->broken && !keeper->in_memory));
}

const struct value *keeper_nested(const struct keeper *keeper)
{
	return keeper != NULL ? keeper->nested : NULL;
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

void keeper_nested_tell(struct keeper *keeper, struct tool_result *result)
{
	struct tool_result said;
	struct err err = {0};

	tool_result_init(&said);
	if (result->status == RESULT_DONE)
		audit_split(result, &said);
	else
		split_failed(result, &said);
	if (keeper->owner != NULL) {
		audit_take(&keeper->owner->result, &said);
	} else if (said.text.size > 0) {
		/* The command was answered long ago. */
		(void)session_emit(keeper->session, EVENT_NOTICE, NULL,
				   str_trim(buf_str(&said.text)), NULL, &err);
		(void)buf_addstr(&keeper->trouble, buf_str(&said.text));
	}
	tool_result_fini(&said);
}

void keeper_nested_begin(struct keeper *keeper)
{
	const struct value *guard = cell_spec(keeper->session->cell)->guard;

	if (!value_is_true(value_member(guard, "partial")))
		return;
	(void)buf_addc(&keeper->trouble, '[');
	audit_add_partial(&keeper->trouble, GIT_SCAN_FOLDERS, NULL);
	(void)buf_adds(&keeper->trouble, ", the others when the session ends]\n");
}
