/*
 * transcript: a recorded conversation as its screen shows it, but everything in full: whole
 * prompts, commands, results and changes, and the thinking of the model.
 */
#pragma once

#include "base/err.h"
#include "tui/screen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transcript {
	int fd; /* the text: an anonymous file; -1: none was made */
	int64_t call_from,
		call_end; /* where the last call stands in it; equal: there is none */
	size_t call_line; /* the line where it begins, of 1 */
};

/* Write the recorded session ID for a screen as LOOK. Call transcript_close in either case. */
bool transcript_open(const char *id, const struct screen_options *look,
		     struct transcript *transcript, struct err *err);
/* Keep only the last call. False: there is none. */
bool transcript_cut(struct transcript *transcript, struct err *err);
void transcript_close(struct transcript *transcript);
