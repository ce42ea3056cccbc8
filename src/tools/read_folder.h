/* read_folder: read_file was given a folder: its listing is the answer. */
#pragma once
#include "runtime/call.h"
#include "runtime/tool.h"

enum result_status read_folder(struct call *call, const char *path,
			       struct tool_result *result);
