/*
 * patching_verify: what must hold of the files of a patch before the first of them is written.
 */
#include "tools/patches/patching.h"
#include "tools/shown.h"

#include <errno.h>
#include <string.h>

static void say_nothing_changed(struct patching *patching)
{
	static const struct str words = STR("Nothing was changed.");

	if (str_find(buf_str(&patching->result->text), words, 0) == (size_t)-1)
		buf_addf(&patching->result->text, " %s", words.data);
}

bool patching_refuse(struct patching *patching, struct written *written,
		     const struct err *err)
{
	(void)written_fail(written, err);
	say_nothing_changed(patching);
	return false;
}

/* Where the file of an update or a removal is. */
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
		err_set(&err, ENOENT, "%s does not exist; a new file is `*** Add File: %s`.",
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

/* Where a file that is not there yet will be. Its folders are made when all is verified. */
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

bool patching_verify(struct patching *patching, struct patch_target *target)
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

bool patching_verify_once(struct patching *patching)
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
