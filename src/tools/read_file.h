/* read_file: one file shown, for the tools that show files (read_file, batch_read). */
#pragma once
#include "tool/call.h"
#include "tool/tool.h"
#include "tools/shown.h"

/*
 * The size of one answer: as much as the best agents settled on. The numbers are macros,
 * because the descriptions are made from them.
 */
#define READ_LINES 2000
#define READ_KB    50
#define LINES_TEXT SHOWN_NUMBER(READ_LINES)
#define KB_TEXT    SHOWN_NUMBER(READ_KB)

/* A file without a range is shown whole up to these, … */
#define READ_WHOLE_LINES 1500
#define READ_WHOLE_KB    40
/* … else its beginning, with a map of the rest. */
#define READ_BEGINNING_KB 8
#define WHOLE_LINES_TEXT  SHOWN_NUMBER(READ_WHOLE_LINES)
#define WHOLE_KB_TEXT     SHOWN_NUMBER(READ_WHOLE_KB)

enum {
	READ_BYTES = READ_KB * 1000,
	READ_WHOLE_BYTES = READ_WHOLE_KB * 1000,
	READ_BEGINNING_BYTES = READ_BEGINNING_KB * 1000,
	READ_MAP_BYTES = 4000,
	READ_MAP_PLACES = 60,
};

/* The arguments that name a file and a part of it. */
extern const struct tool_param read_file_params[];

/* Which part of a file is wanted, from arguments of these names, and how much at most. */
struct read_wanted {
	const char *path;
	const struct value *arguments; /* start_line, end_line, limit */
	size_t max_lines, max_bytes;
};

/* Append to RESULT what read_file answers; its details and what was seen as well. */
enum result_status read_one(struct call *call, const struct read_wanted *wanted,
			    struct tool_result *result);
