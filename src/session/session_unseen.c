/* session_unseen: reports commands whose changes no look has seen. */
#include "base/text/text.h"
#include "cell/cell.h"
#include "session/session_undo_parts.h"

void keeper_give_up(struct keeper *keeper, const char *why)
{
	if (!keeper->broken) {
		(void)buf_addstr(&keeper->why, str_trim(str_of(why)));
		keeper->tells_broken = true;
	}
	keeper->broken = true;
	keeper_tell_unseen(keeper, why);
}

void keeper_tell_unseen(struct keeper *keeper, const char *why)
{
	const bool is_told = keeper->owner != NULL;
	const bool owed = keeper->owed || keeper->owed_next;
	struct buf text;
	struct err err = {0};

	keeper->owed = keeper->owed_next = false;
	if (!owed || is_told)
		return;
	buf_init(&text, ERR_TEXT_MAX + 8 * KEEPER_TITLE_MAX);
	(void)buf_adds(&text, "Undo cannot take back what a command has changed (");
	text_add_name(&text, str_of(keeper->owes.title));
	(void)buf_adds(&text, "): ");
	(void)buf_addstr(&text, str_trim(str_of(why)));
	(void)session_emit(keeper->session, EVENT_NOTICE, NULL, buf_str(&text), NULL, &err);
	buf_fini(&text);
}

static void trouble_tell(struct keeper *keeper, struct tool_result *result)
{
	if (keeper->trouble.size == 0)
		return;
	(void)buf_end_line(&result->text);
	(void)buf_addstr(&result->text, buf_str(&keeper->trouble));
	buf_clear(&keeper->trouble);
}

/*
 * The reason why no look will see what the command RUNNING has changed. NULL: a look has
 * seen it or will, or there are no looks by choice.
 */
static const char *unseen_why(const struct keeper *keeper, const struct running *running)
{
	if (!running->begun || running->looked || keeper->folder == NULL)
		return NULL;
	if (keeper->broken)
		return keeper->why.data;
	return cell_broken(keeper->session->cell);
}

/* Explain at length once, then in one sentence with each result. */
static void unseen_tell(struct keeper *keeper, struct running *running)
{
	const char *why = unseen_why(keeper, running);
	struct buf *text = &running->result.text;

	if (why != NULL)
		value_set_text(tool_details(&running->result), "no_undo", why);
	if (why == NULL && !keeper->tells_broken)
		return;
	(void)buf_end_line(text);
	if (keeper->tells_broken)
		(void)buf_addf(text,
			       "[what commands change cannot be undone, and repositories that "
			       "they make deep in the workspace are not looked after: %s]\n",
			       keeper->why.data);
	else
		(void)buf_addf(text,
			       "[what this command has changed cannot be undone: %s]\n",
			       why);
	keeper->tells_broken = false;
}

void keeper_tell_result(struct keeper *keeper, struct running *running)
{
	unseen_tell(keeper, running);
	trouble_tell(keeper, &running->result);
}
