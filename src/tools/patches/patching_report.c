/* patching_report: what became of a patch, file by file and hunk by hunk. */
#include "tools/edit.h"
#include "tools/patches/patching.h"
#include "tools/shown.h"

#include "base/text/text.h"
#include "base/value.h"

#include <stdio.h>

/* Tell where the file was not as the patch says, hunk by hunk, in TEXT and INTO. */
static void report_hunks(const struct patch_target *target, struct buf *text,
			 struct value *into)
{
	struct value *list = value_new_array();

	for (size_t i = 0; i < target->file->hunk_count; i++) {
		const struct patch_outcome *outcome = &target->outcomes[i];
		struct value *item = value_new_object();
		char name[32];

		value_set_text(item, "level",
			       outcome->already ? "already_made"
						: match_level_name(outcome->level));
		value_set_integer(item, "line", (int64_t)outcome->line);
		value_append(list, item);
		if (outcome->already)
			buf_addf(text,
				 " Hunk %zu was made before: its new lines stand at line "
				 "%zu.",
				 i + 1, outcome->line);
		else if (outcome->level != MATCH_EXACT)
			buf_addf(text, " Hunk %zu at line %zu was not exact: %s.", i + 1,
				 outcome->line, match_level_sentence(outcome->level));
		else if (outcome->said)
			buf_addf(text, " Hunk %zu stands at line %zu, not %zu.", i + 1,
				 outcome->line, outcome->said);
		(void)snprintf(name, sizeof(name), "Hunk %zu", i + 1);
		shown_add_ends_set(name, outcome->end_set, text);
		if (outcome->miscounted)
			buf_addf(text, " The line counts of hunk %zu were wrong.", i + 1);
	}
	value_set(into, "hunks", list);
}

static void remember(struct patching *patching, struct written *written,
		     struct str content, bool known)
{
	char mark[FILES_MARK];

	if (!known)
		return;
	written_new_mark(written, content, mark);
	call_saw(patching->result, written->real.data, mark);
}

static void report_one(struct patching *patching, struct patch_target *target,
		       struct value *list)
{
	struct buf *text = &patching->result->text;
	const struct patch_file *file = target->file;
	struct value *item = value_new_object();
	struct str content = buf_str(&target->content);
	bool seen = call_seen(patching->call, target->from.real.data) != NULL;

	value_append(list, item);
	buf_adds(text, "\n  ");
	written_add_path(&target->from, text);
	if (target->unchanged) {
		buf_adds(text, ": nothing to do, it is so already.");
		value_set_text(item, "path", target->from.real.data);
		value_set_text(item, "state", "unchanged");
	} else if (file->kind == PATCH_DELETE) {
		written_report_into(&target->from, STR(""), WRITTEN_REMOVED, item);
	} else if (file->kind == PATCH_ADD) {
		written_report_into(&target->from, content, WRITTEN_CREATED, item);
		remember(patching, &target->from, content, true);
	} else if (file->to) {
		buf_adds(text, " → ");
		written_add_path(&target->to, text);
		written_report_into(&target->from, content, WRITTEN_CHANGED, item);
		value_set_text(item, "moved_to", target->to.real.data);
		remember(patching, &target->to, content,
			 seen && !target->from.changed_since_read);
	} else {
		written_report_into(&target->from, content, WRITTEN_CHANGED, item);
		remember(patching, &target->from, content,
			 seen && !target->from.changed_since_read);
	}
	if (file->kind == PATCH_UPDATE)
		report_hunks(target, text, item);
	if (target->from.changed_since_read && !target->unchanged)
		buf_adds(text,
			 " It holds other changes, made since you read it: read it again "
			 "before you rely on the rest.");
}

enum result_status patching_report(struct patching *patching)
{
	struct buf *text = &patching->result->text;
	struct value *list = value_new_array();
	size_t changed = 0;

	for (size_t i = 0; i < patching->count; i++)
		changed += !patching->targets[i].unchanged;
	buf_clear(text);
	if (changed) {
		buf_adds(text, "Patched ");
		text_add_count(text, changed, "file");
		buf_addc(text, ':');
	} else {
		buf_adds(text, "Nothing to do: the patch was applied before.");
	}
	for (size_t i = 0; i < patching->count; i++)
		report_one(patching, &patching->targets[i], list);
	value_set(tool_details(patching->result), "files", list);
	return tool_done(patching->result);
}
