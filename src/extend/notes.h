/*
 * notes: what agents have written down about a workspace for later sessions. They are one file
 * in the person's state (memory/HASH.md), a line each, which no cell shows. There are none unless
 * the configuration says `memory`. A turn that has read a page of the web writes none: the page
 * may have asked for the note, and every later session would read it. A note is a write: in mode
 * `ask` the person decides on each one, and in mode `plan` there is no such tool.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "tool/tool.h"

#include <stdbool.h>

enum { NOTES_BYTES_MAX = 16 << 10 /* bytes of all notes on a workspace */ };

/* The use that a session makes of them. */
enum notes_use {
	NOTES_NONE,    /* the person wants none */
	NOTES_READ,    /* the model is told them … */
	NOTES_WRITTEN, /* … and may add to them */
};

/* Append the notes on WORKSPACE, a real path; none is no error. */
bool notes_read(const char *workspace, struct buf *out, struct err *err);

/* Add TEXT as a line, whole or not at all. False: also where the room is full (EFBIG). */
bool notes_add(const char *workspace, struct str text, struct err *err);

/*
 * Replace the notes, which the person has read as BEFORE, by AFTER. Lines that were added
 * meanwhile stay. False: others have changed them otherwise, or AFTER is too long.
 */
bool notes_replace(const char *workspace, struct str before, struct str after,
		   struct err *err);

/* Append what the model is told in its prompt of NOTES, which are not empty. */
void notes_prompt(struct str notes, struct buf *out);

/* The tool; its keeper is the real path of the workspace. */
extern const struct tool remember_tool;
