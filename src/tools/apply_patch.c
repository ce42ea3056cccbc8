/*
 * apply_patch: a patch over several files, verified whole before the first write, and written
 * all or nothing. The grammars are patch.c, the places of hunks patch_apply.c, what must hold
 * of the files patching_verify.c; here is the set.
 */
#include "tools/patching.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PATCH_TRIES = 64 /* writers of the files at once that may each be faster */ };

static const struct tool_param apply_patch_params[] = {
	{"patch", PARAM_TEXT, true,
	 "The whole patch: `*** Begin Patch` … `*** End Patch`, or a unified diff",
	 .aliases = "input diff patch_text content", .min = 1, .max = PATCH_BYTES_MAX},
	{0},
};

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

static bool write_changes(struct patching *patching, struct err *err)
{
	struct place_change *changes = memory_array(2 * patching->count, sizeof(*changes));
	size_t count = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < patching->count; i++) {
		struct patch_target *target = &patching->targets[i];

		if (target->unchanged)
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
		ok = patching_verify(patching, target);
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

static enum result_status patch_files(struct patching *patching)
{
	enum result_status status = RESULT_FAILED;
	bool again = true;

	for (int i = 0; again && i < PATCH_TRIES; i++) {
		buf_clear(&patching->result->text);
		status = try_patch(patching, &again);
		for (size_t j = 0; j < patching->count; j++)
			target_fini(&patching->targets[j]);
		patching->count = 0;
	}
	if (again)
		return tool_fail(patching->result,
				 "The files are being changed by others all the time; nothing was "
				 "written. Try again.");
	return status;
}

static enum result_status apply_patch_execute(struct call *call, struct tool_result *result)
{
	struct patching patching = {.call = call, .result = result};
	enum result_status status = RESULT_FAILED;

	result->status = RESULT_FAILED;
	if (patch_parse(call_str(call, "patch"), &patching.patch, &result->text)) {
		patch_merge(&patching.patch);
		patching.targets = memory_array(patching.patch.file_count + 1,
						sizeof(*patching.targets));
		status = patch_files(&patching);
		free(patching.targets);
	}
	patch_fini(&patching.patch);
	return status;
}

static void apply_patch_paths(const struct value *arguments,
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
	.visit_paths = apply_patch_paths,
	.execute = apply_patch_execute,
};
