/* read_folder: read_file was given a folder: its listing is the answer. */
#pragma once
#include "tool/call.h"
#include "tool/tool.h"

enum result_status read_folder(struct call *call, const char *path,
			       struct tool_result *result);
