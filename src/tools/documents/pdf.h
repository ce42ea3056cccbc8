/*
 * pdf: the text of a PDF, by the programs pdftotext and pdfinfo (poppler-utils) in the
 * cell. A PDF is a program's worth of foreign bytes, so these two may do less than other
 * programs of the cell: they get the open file as their input, write no file, open no
 * socket, and see no other process.
 */
#pragma once

#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>

/* The most pages of one answer. */
enum { PDF_PAGES_MAX = 20 };

/* The pages from FIRST to LAST; 0: none were named. At most MAX_BYTES of their text. */
struct pdf_wanted {
	size_t first, last, max_bytes;
};

/* Does START begin as a PDF does? */
bool pdf_is(struct str start);

/*
 * Append the WANTED text of the PDF in FD to RESULT, behind one line of facts. PATH is for
 * sentences.
 */
enum result_status pdf_show(struct call *call, int fd, const char *path,
			    const struct pdf_wanted *wanted, struct tool_result *result);
