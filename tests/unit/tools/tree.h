/*
 * tree: what the tests of the searching tools need beside hand.h: files with known times, links, calls
 * completed by the schema as the runtime does it, and other programs run to compare with.
 */
#pragma once
#include "../base/made.h"
#include "hand.h"

#include "base/buf.h"
#include "base/str.h"
#include "tool/tool.h"

/* Write TEXT at PATH of the workspace, parents made, last changed at second TIME of 1970. */
void tree_write(struct hand *hand, const char *path, const char *text, int64_t time);
void tree_write_bytes(struct hand *hand, const char *path, struct str bytes, int64_t time);
void tree_link(struct hand *hand, const char *path, const char *target);
void tree_folder(struct hand *hand, const char *path);

/* hand_run with JSON checked and completed by TOOL's schema; the status must be STATUS. */
void tree_run(struct hand *hand, const struct tool *tool, const char *json,
	      enum result_status status);

/*
 * Run the program ARGUMENTS (NULL-ended) in the workspace; its output. The exit code;
 * TREE_MISSING: it is not installed.
 */
enum { TREE_MISSING = 127 };
int tree_program(struct hand *hand, const char *const *arguments, struct buf *out);

/* The lines of TEXT (ended by END), in order, ended by "\n". Malloc'ed. */
char *sorted_lines(struct str text, char end);
