/*
 * outline: any text gives an outline within its bounds; shown_failing_line: of any line it is told
 * whether it tells of a failure; shown_binary_kind: of any bytes what they look like.
 */
#include "tools/shown.h"

#include <stdint.h>
#include <stdlib.h>

enum { OUT_MAX = 64 << 10, PLACES = 60, BYTES = 4000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a.c",   "a.java",   "a.ts",  "a.py",
					    "a.rs",  "a.md",     "a.rst", "a.r",
					    "a.sh",  "Makefile", "a.tex", "a.hs",
					    "a.css", "a.el"};
	struct str text = {(const char *)data, size}, rest, line;

	(void)shown_binary_kind(text);
	rest = text;
	while (str_next_line(&rest, &line))
		(void)shown_failing_line(line);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct outline *outline = outline_new(names[i], text);
		size_t number = 0, count;
		struct buf out;

		if (outline == NULL)
			abort();
		rest = text;
		while (str_next_line(&rest, &line))
			outline_add(outline, ++number, line);
		buf_init(&out, OUT_MAX);
		count = outline_print(outline, PLACES, BYTES, &out);
		if (count > PLACES || out.size > BYTES || count > outline_count(outline))
			abort();
		buf_fini(&out);
		outline_free(outline);
	}
	return 0;
}
