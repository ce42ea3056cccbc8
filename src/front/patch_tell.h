/* patch_tell: what a person is told of a patch that was applied, in place of what a model is told. */
#pragma once
#include "front/patch_record.h"
#include "tool/tool.h"

#include <stdbool.h>

/*
 * RESULT's text anew, from the details of take_patch: what became of the files in WORKSPACE; DRY: would
 * become.
 */
void patch_tell_files(struct tool_result *result, const struct patch_record *record,
		      const char *workspace, bool dry);
/* The same from those of commit_patch: which commit on which branch. */
void patch_tell_commit(struct tool_result *result, const struct patch_record *record,
		       bool dry);
