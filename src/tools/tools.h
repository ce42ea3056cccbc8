/*
 * tools: the table of built-in tools. A tool is one file and one row here.
 *
 * The session does not know this table; a front hands it in. The C library
 * (src/library/) is therefore a layer of its own above the tools.
 */
#pragma once
#include "tool/tool.h"

extern const struct tool bash_tool;
extern const struct tool job_tool;
extern const struct tool read_file_tool;
extern const struct tool batch_read_tool;
extern const struct tool write_file_tool;
extern const struct tool edit_file_tool;
extern const struct tool apply_patch_tool;
extern const struct tool list_files_tool;
extern const struct tool glob_tool;
extern const struct tool grep_tool;
extern const struct tool run_tests_tool;
extern const struct tool database_schema_tool;
extern const struct tool generate_patch_tool;
extern const struct tool exec_tool;
extern const struct tool checkpoint_tool;
extern const struct tool restore_tool;
extern const struct tool take_patch_tool;
extern const struct tool commit_patch_tool;
extern const struct tool git_contents_tool;
extern const struct tool read_instructions_tool;
extern const struct tool read_output_tool;
extern const struct tool read_roles_tool;

extern const struct tool *const builtin_tools[]; /* NULL-ended */
