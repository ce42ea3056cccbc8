/*
 * Fuzz target of tools/web/nesting: whatever the page, the tags that are taken out leave each byte
 * of it in its order.
 */
#include "tools/web/nesting.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Are the bytes of PART, but for "<br>" in place of tags, those of WHOLE in the same order? */
static bool is_within(struct str part, struct str whole)
{
	size_t at = 0;

	for (size_t i = 0; i < part.size; i++) {
		if (str_starts(str_part(part, i, part.size), STR("<br>"))) {
			i += strlen("<br>") - 1;
			continue;
		}
		while (at < whole.size && whole.data[at] != part.data[i])
			at++;
		if (at++ == whole.size)
			return false;
	}
	return true;
}

static void check_nesting(struct str page)
{
	struct buf deep, flat;

	buf_init(&deep, page.size + (16 << 10));
	buf_init(&flat, 2 * page.size + (32 << 10));
	for (int i = 0; i < NESTING_MAX; i++)
		(void)buf_adds(&deep, "<div>");
	(void)buf_addstr(&deep, page);
	if (nesting_limit(buf_str(&deep), &flat) &&
	    (flat.overflowed || !is_within(buf_str(&flat), buf_str(&deep))))
		abort();
	buf_fini(&flat);
	buf_fini(&deep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_nesting((struct str){(const char *)data, size});
	return 0;
}
