/*
 * patching: the files of a patch as one set: verified whole before the first write, and written
 * all or nothing; see patching.h.
 */
#include "tools/patches/patching.h"
#include "tools/shown.h"

#include "base/memory.h"
#include "base/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PATCH_TRIES = 64 /* writers of the files at once that may each be faster */ };

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

/* The folders of new files. Made when the whole patch is known to be right. */
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

/* The changes that TARGET is; how many. */
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
 * Must TARGET be removed before the other files are written? So it is when a folder takes
 * its place, or when a file takes the place of its folder.
 */
static bool goes_first(const struct patching *patching, const struct patch_target *target)
{
	return target->file->kind == PATCH_DELETE && !target->unchanged &&
	       patch_needs_room(&patching->patch, target->from.path);
}

/* Those that go first, or the others, as one set. */
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

/* The folders of TARGET, which is gone, that are in a new file's way and empty now. */
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

/* Put back the file of TARGET, which was removed first: the rest cannot be written. */
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

/* One try: verify all, write all. AGAIN: another writer came between. */
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
		return RESULT_FAILED; /* said already */
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
