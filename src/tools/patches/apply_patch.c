/*
 * apply_patch: applies a patch over several files as one set. All files are verified
 * before the first write, and all or none are written.
 */

#include "tools/patches/apply_patch.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"
#include "tools/edit.h"
#include "tools/patches/patch.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The answer about a patch, file by file and hunk by hunk. */

/* Append to TEXT and INTO, hunk by hunk, where the file was not as the patch says. */
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

/* The patch is applied: report the changes, in words and in details. */
static enum result_status patching_report(struct patching *patching)
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

/* The checks of all files of a patch before the first of them is written. */

static void say_nothing_changed(struct patching *patching)
{
	static const struct str words = STR("Nothing was changed.");

	if (str_find(buf_str(&patching->result->text), words, 0) == (size_t)-1)
		buf_addf(&patching->result->text, " %s", words.data);
}

/* Set the sentence of ERR about WRITTEN, and that nothing was changed. Always false. */
static bool patching_refuse(struct patching *patching, struct written *written,
			    const struct err *err)
{
	(void)written_fail(written, err);
	say_nothing_changed(patching);
	return false;
}

/* Find the file of an update or a removal. */
static bool find_old(struct patching *patching, struct patch_target *target)
{
	struct written *from = &target->from;
	struct err err = {0};
	bool found =
		files_place(patching->call->files, from->path, false, &from->place, &err);

	if ((!found || !from->place.exists) && target->file->other) {
		struct err second = {0};

		place_fini(&from->place);
		place_init(&from->place);
		if (files_place(patching->call->files, target->file->other, false,
				&from->place, &second) &&
		    from->place.exists) {
			from->path = target->file->other;
			found = true;
		}
	}
	if (found && !from->place.exists) {
		(void)err_set(&err, ENOENT,
			      "%s does not exist; a new file is `*** Add File: %s`.",
			      from->path, from->path);
		found = false;
	}
	return found ? written_read_old(from, &err) || patching_refuse(patching, from, &err)
		     : patching_refuse(patching, from, &err);
}

static bool check_kind(struct patching *patching, struct patch_target *target)
{
	struct shown_kind kind = shown_kind(buf_str(&target->from.old));

	if (!kind.utf16 && !kind.binary)
		return true;
	(void)tool_fail(patching->result,
			"%s is %s; a patch of its text would damage it. Nothing was changed.",
			target->from.path, kind.utf16 ? "UTF-16" : "a binary file");
	return false;
}

/*
 * Find the place of a file that does not exist yet. Its folders are made after the
 * verification.
 */
static bool find_new(struct patching *patching, struct written *written, bool *same,
		     struct str content)
{
	struct err err = {0};

	*same = false;
	if (!files_place(patching->call->files, written->path, false, &written->place, &err))
		return err.code == ENOENT ||
		       ((err.code == ENOTDIR || err.code == EISDIR) &&
			patch_makes_room(&patching->patch, written->path)) ||
		       patching_refuse(patching, written, &err);
	if (!written->place.exists) {
		shown_place_path(&written->place, &written->real);
		return true;
	}
	if (!written_read_old(written, &err))
		return patching_refuse(patching, written, &err);
	*same = str_equal(buf_str(&written->old), content);
	if (*same)
		return true;
	(void)tool_fail(patching->result,
			"%s exists already. Change it with `*** Update File: %s`, or replace it "
			"with write_file. Nothing was changed.",
			written->path, written->path);
	return false;
}

static bool verify_add(struct patching *patching, struct patch_target *target)
{
	const struct patch_file *file = target->file;

	if (file->hunk_count > 0)
		buf_addstr(&target->content, file->hunks[0].new);
	if (file->hunk_count > 1 || (file->hunk_count && file->hunks[0].old.size)) {
		(void)tool_fail(patching->result,
				"%s is a new file, but its hunk has old lines. Nothing was "
				"changed.",
				file->path);
		return false;
	}
	return find_new(patching, &target->from, &target->unchanged,
			buf_str(&target->content));
}

static bool verify_delete(struct patching *patching, struct patch_target *target)
{
	const struct patch_file *file = target->file;
	struct str old;

	if (!find_old(patching, target))
		return false;
	old = buf_str(&target->from.old);
	if (target->from.changed_since_read) {
		(void)tool_fail(patching->result,
				"%s was changed since you read it. Read it again before you delete "
				"it. Nothing was changed.",
				file->path);
		return false;
	}
	if (file->hunk_count == 0 || str_equal(old, file->hunks[0].old))
		return true;
	(void)tool_fail(patching->result,
			"%s holds something else than the patch deletes. Read it again; `*** Delete "
			"File: %s` deletes it whatever it holds. Nothing was changed.",
			file->path, file->path);
	return false;
}

static bool verify_update(struct patching *patching, struct patch_target *target)
{
	const struct patch_file *file = target->file;
	struct str old;
	bool same;

	if (!find_old(patching, target) ||
	    (file->hunk_count && !check_kind(patching, target)))
		return false;
	old = buf_str(&target->from.old);
	patching->result->status = RESULT_FAILED;
	if (!patch_apply(files_shown(patching->call->files, target->from.real.data), file,
			 old,
			 (target->from.changed_since_read ? EDIT_EXACT_ONLY : 0U) |
				 (patching->given_ends ? EDIT_GIVEN_ENDS : 0U),
			 &target->content, target->outcomes, &patching->result->text))
		return false;
	if (file->to)
		return find_new(patching, &target->to, &same, STR("")) &&
		       (!target->to.place.exists ||
			patching_refuse(patching, &target->to,
					&(struct err){.code = EEXIST,
						      .text = "The new name is taken."}));
	target->unchanged = str_equal(old, buf_str(&target->content)) &&
			    (!file->mode || ((target->from.st.st_mode & 0100) != 0) ==
						    (file->mode == 0755));
	return true;
}

/*
 * Find the files of TARGET, and make its new content. False: the patch does not fit, and
 * the result has the sentence.
 */
static bool patching_verify(struct patching *patching, struct patch_target *target)
{
	switch (target->file->kind) {
	case PATCH_ADD:
		return verify_add(patching, target);
	case PATCH_DELETE:
		return verify_delete(patching, target);
	case PATCH_UPDATE:
		return verify_update(patching, target);
	}
	return false;
}

/* Each file may be in the patch only once, by whatever names. False as above. */
static bool patching_verify_once(struct patching *patching)
{
	for (size_t i = 0; i < patching->count; i++) {
		const struct patch_target *one = &patching->targets[i];

		for (size_t j = 0; j < i; j++) {
			const struct patch_target *other = &patching->targets[j];

			if (strcmp(one->from.real.data, other->from.real.data) != 0 ||
			    one->from.real.size == 0)
				continue;
			(void)tool_fail(patching->result,
					"The patch has %s twice (lines %zu and %zu). Put all of it "
					"in one section; to replace a whole file use write_file. "
					"Nothing was changed.",
					one->from.path, other->file->at, one->file->at);
			return false;
		}
	}
	return true;
}

/* How often the patch is tried again when another program changes a file meanwhile. */
enum { PATCH_TRIES = 64 };

static void target_init(struct patch_target *target, struct patching *patching,
			const struct patch_file *file)
{
	target->file = file;
	written_init(&target->from, patching->call, patching->result);
	written_init(&target->to, patching->call, patching->result);
	target->from.path = file->path;
	target->to.path = file->to;
	target->outcomes = memory_array(file->hunk_count + 1, sizeof(*target->outcomes));
	buf_init(&target->content, WRITTEN_FILE_MAX);
}

static void target_fini(struct patch_target *target)
{
	written_fini(&target->from);
	written_fini(&target->to);
	free(target->outcomes);
	buf_fini(&target->content);
}

/* Make the folders of new files, after the whole patch was verified. */
static bool make_folders(struct patching *patching, struct written *written)
{
	struct err err = {0};

	place_fini(&written->place);
	place_init(&written->place);
	if (!files_place(patching->call->files, written->path, true, &written->place, &err))
		return patching_refuse(patching, written, &err);
	buf_clear(&written->real);
	shown_place_path(&written->place, &written->real);
	return true;
}

/* Add the changes of TARGET to CHANGES. Returns how many. */
static size_t add_changes(struct patch_target *target, struct place_change *changes)
{
	const struct patch_file *file = target->file;

	if (file->kind == PATCH_ADD) {
		changes[0] = (struct place_change){.place = &target->from.place,
						   .content = buf_str(&target->content),
						   .mode = file->mode == 0755 ? 0755 : 0};
		return 1;
	}
	changes[0] =
		(struct place_change){.place = &target->from.place,
				      .content = buf_str(&target->content),
				      .expected_mark = target->from.mark,
				      .expected = buf_str(&target->from.old),
				      .removes = file->kind == PATCH_DELETE || file->to};
	if (file->mode)
		changes[0].mode = file->mode == 0755 ? target->from.st.st_mode | 0111
						     : target->from.st.st_mode & 0666;
	if (!file->to)
		return 1;
	changes[1] = (struct place_change){.place = &target->to.place,
					   .content = buf_str(&target->content),
					   .like = &target->from.place,
					   .mode = changes[0].mode};
	return 2;
}

/*
 * Must TARGET be removed before the other files are written? It must when a folder takes
 * its place, or when a file takes the place of its folder.
 */
static bool goes_first(const struct patching *patching, const struct patch_target *target)
{
	return target->file->kind == PATCH_DELETE && !target->unchanged &&
	       patch_needs_room(&patching->patch, target->from.path);
}

/* Write as one set the targets that must go first, or the others. */
static bool write_set(struct patching *patching, bool first, struct err *err)
{
	struct place_change *changes = memory_array(2 * patching->count, sizeof(*changes));
	size_t count = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < patching->count; i++) {
		struct patch_target *target = &patching->targets[i];

		if (target->unchanged || goes_first(patching, target) != first)
			continue;
		if (target->file->kind == PATCH_ADD)
			ok = make_folders(patching, &target->from);
		else if (target->file->to)
			ok = make_folders(patching, &target->to);
		if (ok)
			count += add_changes(target, &changes[count]);
	}
	for (size_t i = 0; !ok && i < count; i++)
		place_unmake_folders(changes[i].place);
	ok = ok && (count == 0 || place_write_set(changes, count, err));
	free(changes);
	return ok;
}

/*
 * Remove the folders of TARGET, which was removed, when they are empty and in the way of
 * a new file.
 */
static void remove_folders(const struct patching *patching, struct patch_target *target)
{
	struct place *place = &target->from.place;

	for (size_t i = 0; i < patching->count; i++) {
		const struct patch_file *file = patching->targets[i].file;
		const char *made = file->kind == PATCH_ADD ? file->path : file->to;
		const char *below;

		if (made == NULL || strcmp(made, target->from.path) == 0 ||
		    !path_within(target->from.path, made))
			continue;
		below = target->from.path + strlen(made);
		for (place->made_folders = 0; *below != '\0'; below++)
			place->made_folders += *below == '/';
		place_unmake_folders(place);
	}
}

/* The rest cannot be written: restore the file of TARGET, which was removed first. */
static void put_back(struct patching *patching, struct patch_target *target)
{
	struct place_change change = {.place = &target->from.place,
				      .content = buf_str(&target->from.old),
				      .mode = target->from.st.st_mode & 0777};
	struct err err = {0};

	if (!make_folders(patching, &target->from) || !place_write_set(&change, 1, &err))
		(void)buf_addf(&patching->result->text,
			       "%s went and could not be put back; `glovebox undo` does it. ",
			       target->from.path);
}

static bool write_changes(struct patching *patching, struct err *err)
{
	if (!write_set(patching, true, err))
		return false;
	for (size_t i = 0; i < patching->count; i++) {
		if (goes_first(patching, &patching->targets[i]))
			remove_folders(patching, &patching->targets[i]);
	}
	if (write_set(patching, false, err))
		return true;
	for (size_t i = 0; i < patching->count; i++) {
		if (goes_first(patching, &patching->targets[i]))
			put_back(patching, &patching->targets[i]);
	}
	return false;
}

/*
 * One try: verify all, write all. AGAIN: another program has written a file in between.
 */
static enum result_status try_patch(struct patching *patching, bool *again)
{
	struct err err = {0};
	bool ok = true;

	*again = false;
	patching->count = 0;
	for (size_t i = 0; ok && i < patching->patch.file_count; i++) {
		struct patch_target *target = &patching->targets[patching->count++];

		memset(target, 0, sizeof(*target));
		target_init(target, patching, &patching->patch.files[i]);
		ok = patching_verify(patching, target) &&
		     (patching->fits == NULL || patching->fits(patching, target));
		if (ok && call_stopped(patching->call))
			return call_stop_result(patching->call, patching->result);
	}
	if (!ok || !patching_verify_once(patching))
		return RESULT_FAILED;
	if (write_changes(patching, &err))
		return patching_report(patching);
	if (err.code == 0)
		return RESULT_FAILED; /* the sentence is set already */
	*again = err.code == EAGAIN;
	if (!*again)
		(void)patching_refuse(patching, &patching->targets[0].from, &err);
	return RESULT_FAILED;
}

enum result_status patching_files(struct patching *patching)
{
	enum result_status status = RESULT_FAILED;
	bool again = true;

	patching->targets =
		memory_array(patching->patch.file_count + 1, sizeof(*patching->targets));
	for (int i = 0; again && i < PATCH_TRIES; i++) {
		buf_clear(&patching->result->text);
		status = try_patch(patching, &again);
		for (size_t j = 0; j < patching->count; j++)
			target_fini(&patching->targets[j]);
		patching->count = 0;
	}
	free(patching->targets);
	patching->targets = NULL;
	if (again)
		return tool_fail(patching->result,
				 "The files are being changed by others all the time; nothing was "
				 "written. Try again.");
	return status;
}

void patching_paths(const struct value *arguments,
		    void (*visit)(void *context, const char *path), void *context)
{
	struct patch patch;
	struct buf sentence;

	buf_init(&sentence, RESULT_TEXT_MAX);
	if (patch_parse(value_str(value_member(arguments, "patch")), &patch, &sentence)) {
		for (size_t i = 0; i < patch.file_count; i++) {
			visit(context, patch.files[i].path);
			if (patch.files[i].to)
				visit(context, patch.files[i].to);
			if (patch.files[i].other)
				visit(context, patch.files[i].other);
		}
	}
	patch_fini(&patch);
	buf_fini(&sentence);
}

/* The tool itself. */

static const struct row apply_patch_params[] = {
	{"patch", ROW_TEXT, true,
	 "The whole patch: `*** Begin Patch` … `*** End Patch`, or a unified diff",
	 .aliases = "input diff patch_text content", .min = 1, .max = PATCH_BYTES_MAX,
	 .unmasks = UNMASKS},
	SHOWN_ENDS_PARAM,
	{0},
};

/* The bytes of the lines that PATCH adds. */
static size_t brought(const struct patch *patch)
{
	size_t bytes = 0;

	for (size_t i = 0; i < patch->file_count; i++) {
		for (size_t j = 0; j < patch->files[i].hunk_count; j++) {
			const struct patch_hunk *hunk = &patch->files[i].hunks[j];
			struct str left = hunk->new, line;

			/* All bytes of a new file count. */
			if (patch->files[i].kind == PATCH_ADD)
				bytes += left.size;
			for (size_t k = 0; k < hunk->kinds.size; k++) {
				if (hunk->kinds.data[k] != '-' &&
				    str_next_line(&left, &line) &&
				    hunk->kinds.data[k] == '+')
					bytes += line.size + 1;
			}
		}
	}
	return bytes;
}

static enum result_status apply_patch_execute(struct call *call, struct tool_result *result)
{
	struct patching patching = {.call = call,
				    .result = result,
				    .given_ends = shown_ends_are_given(call)};
	enum result_status status = RESULT_FAILED;

	result->status = RESULT_FAILED;
	if (patch_parse(call_str(call, "patch"), &patching.patch, &result->text)) {
		patch_merge(&patching.patch);
		if (written_fits(call, brought(&patching.patch), result))
			status = patching_files(&patching);
	}
	patch_fini(&patching.patch);
	return status;
}

const struct tool apply_patch_tool = {
	.name = "apply_patch",
	.description =
		"Change several files by one patch. It is checked whole before anything "
		"is written; all files are changed or none.",
	.example = "{\"patch\": \"*** Begin Patch\\n*** Update File: src/main.c\\n@@\\n-\\treturn "
		   "1;\\n+\\treturn 0;\\n*** End Patch\\n\"}",
	.aliases = "patch",
	.params = apply_patch_params,
	.effects = EFFECT_WRITES,
	.timeout_s = 60, /* fsync of many files on a busy disk */
	.visit_paths = patching_paths,
	.execute = apply_patch_execute,
};
