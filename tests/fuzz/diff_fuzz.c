/*
 * Fuzz target of base/diff: context, then the old text, a byte 0xff, the new text. The diff
 * applied to the old text must give the new one, and count what it changes.
 */
#include "base/text/diff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/base/diff_apply.h"
#include "base/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* More than any diff of what libFuzzer makes. */
enum { DIFF_MAX = 64 << 20 };

static void check(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size}, old_text, new_text;
	struct diff_counts counts;
	struct buf diff, rebuilt;
	size_t border;

	if (size == 0)
		return 0;
	text = str_part(text, 1, size);
	border = str_find(text, STR("\xff"), 0);
	old_text = str_part(text, 0, border);
	new_text = border == (size_t)-1 ? STR("") : str_part(text, border + 1, size);
	buf_init(&diff, DIFF_MAX);
	buf_init(&rebuilt, DIFF_MAX);
	check(diff_unified(old_text, new_text, NULL, NULL, data[0] % 8, &diff, &counts));
	check(diff_apply(old_text, buf_str(&diff), &rebuilt));
	check(str_equal(buf_str(&rebuilt), new_text));
	check(text_count_lines(old_text) - counts.removed ==
	      text_count_lines(new_text) - counts.added);
	check((diff.size == 0) == (counts.removed + counts.added == 0));
	buf_fini(&diff);
	buf_fini(&rebuilt);
	return 0;
}
