/* journal_parts: what the files of store share of the journal's database; not for others. */
#pragma once
#include "store/database.h"
#include "store/journal.h"

struct journal {
	struct database *database;
	char *lock_path;
	int lock_fd; /* -1: nothing was claimed yet */
};

/*
 * Which events are results of the tool that hands over, as a condition of SQL. Structure of
 * JSON is told from text in it: there the quotes have backslashes.
 */
#define JOURNAL_IS_PATCH \
	"kind = 'tool_ended' AND instr(json, '\"tool\":\"generate_patch\"') > 0"
