/*
 * apply_patch: a patch over several files, verified whole before the first write, and written
 * all or nothing. The grammars are patch.c, the places of hunks patch_apply.c, what must hold
 * of the files patching_verify.c, the set patching.c.
 */
#include "tools/patches/patching.h"
#include "tools/shown.h"
#include "tools/tools.h"

static const struct tool_param apply_patch_params[] = {
	{"patch", PARAM_TEXT, true,
	 "The whole patch: `*** Begin Patch` … `*** End Patch`, or a unified diff",
	 .aliases = "input diff patch_text content", .min = 1, .max = PATCH_BYTES_MAX},
	SHOWN_ENDS_PARAM,
	{0},
};

/* Bytes of the lines that PATCH adds. */
static size_t brought(const struct patch *patch)
{
	size_t bytes = 0;

	for (size_t i = 0; i < patch->file_count; i++) {
		for (size_t j = 0; j < patch->files[i].hunk_count; j++) {
			const struct patch_hunk *hunk = &patch->files[i].hunks[j];
			struct str left = hunk->new, line;

			/* All of a file that is made is new. */
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
