/* patch_tell: makes sentences from the details of two tools. */
#include "front/patch_tell.h"

#include "base/text/text.h"

static int64_t number_in(const struct tool_result *result, const char *key)
{
	return value_integer(value_member(result->details, key));
}

static const char *text_in(const struct tool_result *result, const char *key)
{
	const char *text = value_text(value_member(result->details, key));

	return text != NULL ? text : "";
}

static void add_left_out(const struct patch_record *record, struct buf *text)
{
	if (record->left_out == 0)
		return;
	(void)buf_adds(text, "Not in the patch, and not applied: ");
	(void)text_add_count(text, record->left_out, "file");
	(void)buf_addf(text, "; see: glovebox patch show %.*s\n", PATCH_ID_SHOWN,
		       record->id);
}

void patch_tell_files(struct tool_result *result, const struct patch_record *record,
		      const char *workspace, bool dry)
{
	struct buf *text = &result->text;
	const size_t already = (size_t)number_in(result, "already");
	const size_t done = (size_t)number_in(result, "to_do");

	buf_clear(text);
	if (done == 0) {
		(void)buf_addf(text, "Nothing to do: patch %.*s is in %.400s already.\n",
			       PATCH_ID_SHOWN, record->id, workspace);
	} else {
		(void)buf_addf(text, "%s patch %.*s to ", dry ? "Would apply" : "Applied",
			       PATCH_ID_SHOWN, record->id);
		(void)text_add_count(text, done, "file");
		(void)buf_addf(text, " in %.400s", workspace);
		if (already > 0)
			(void)buf_addf(text, "; %zu already as it leaves them", already);
		(void)buf_adds(text, dry ? ".\n" : ". glovebox undo takes it back.\n");
	}
	add_left_out(record, text);
}

void patch_tell_commit(struct tool_result *result, const struct patch_record *record,
		       bool dry)
{
	struct buf *text = &result->text;
	const bool known = value_is_true(value_member(result->details, "author_known"));

	buf_clear(text);
	if (dry) {
		(void)buf_addf(text,
			       "Would commit patch %.*s on branch %s, on top of %.12s.\n",
			       PATCH_ID_SHOWN, record->id, text_in(result, "branch"),
			       text_in(result, "base"));
	} else {
		(void)buf_addf(text,
			       "Committed patch %.*s as %.12s on branch %s, on top of %.12s.\n",
			       PATCH_ID_SHOWN, record->id, text_in(result, "commit"),
			       text_in(result, "branch"), text_in(result, "base"));
		if (!known)
			(void)buf_addf(text,
				       "Its author is Glovebox: the repository does not say who "
				       "you are. To change that: git config user.name and "
				       "user.email, then, on branch %s, git commit --amend "
				       "--reset-author.\n",
				       text_in(result, "branch"));
	}
	add_left_out(record, text);
}
