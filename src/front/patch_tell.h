/*
 * patch_tell: the text for a person about an applied patch, in place of the text for a
 * model.
 */
#pragma once
#include "front/patch_record.h"
#include "tool/tool.h"

#include <stdbool.h>

/*
 * Replace RESULT's text by sentences from the details of take_patch: the outcome for the
 * files in WORKSPACE. DRY: nothing was changed, and the sentences say what would happen.
 */
void patch_tell_files(struct tool_result *result, const struct patch_record *record,
		      const char *workspace, bool dry);
/* The same from the details of commit_patch: the commit and its branch. */
void patch_tell_commit(struct tool_result *result, const struct patch_record *record,
		       bool dry);
