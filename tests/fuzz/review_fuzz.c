/*
 * review_fuzz: any bytes as the description of a layer. One that is taken is whole and bounded, and prints as
 * text that reads as the same description; a refused one leaves nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "view/review.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_whole(const struct review_meta *meta)
{
	if (strlen(meta->id) != REVIEW_ID - 1 || meta->workspace[0] != '/' ||
	    meta->rights == NULL || meta->state >= REVIEW_STATES ||
	    meta->tree_count > REVIEW_TREES_MAX || meta->over_count > REVIEW_OVER_MAX ||
	    meta->counts.bytes < 0)
		abort();
	for (size_t i = 0; i < meta->over_count; i++) {
		if (strspn(meta->over[i], "0123456789abcdef") != REVIEW_ID - 1)
			abort();
	}
	for (size_t i = 0; i < meta->tree_count; i++) {
		if (meta->trees[i].path[0] != '/' ||
		    strstr(meta->trees[i].path, "/../") != NULL)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct review_meta meta = {0}, again = {0};
	struct buf text, printed;
	struct err err;

	buf_init(&text, 64 << 20);
	buf_init(&printed, 64 << 20);
	if (review_meta_parse((struct str){(const char *)data, size}, &meta, &err)) {
		is_whole(&meta);
		if (!review_meta_print(&meta, &text) ||
		    !review_meta_parse(buf_str(&text), &again, &err) ||
		    !review_meta_print(&again, &printed) ||
		    !str_equal(buf_str(&text), buf_str(&printed)))
			abort();
	} else if (meta.workspace != NULL || meta.trees != NULL || err.text[0] == '\0') {
		abort();
	}
	review_meta_fini(&meta);
	review_meta_fini(&again);
	buf_fini(&text);
	buf_fini(&printed);
	return 0;
}
