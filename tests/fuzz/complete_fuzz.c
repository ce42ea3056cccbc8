/*
 * Fuzz target of tui/complete: the first byte is the size of what is typed, the rest a list of names, and a
 * text with mentions. What is found is UTF-8 without control bytes, of the list, and is found again
 * as a mention; mentions lie in the text, in order.
 */
#include "tui/choose/complete.h"

#include "base/text/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look(void *context, struct str name)
{
	const struct complete *complete = context;
	struct mention mention;
	struct buf text;

	check(name.size > 0 && text_is_utf8(name) && complete_has(complete, name));
	for (size_t i = 0; i < name.size; i++)
		check((unsigned char)name.data[i] >= ' ' && name.data[i] != 0x7f);
	buf_init(&text, 4 * UINT16_MAX);
	mention_add(name, &text);
	check(mention_next(buf_str(&text), 0, &mention) && mention.begin == 0);
	check(mention.end == text.size && str_equal(mention.name, name));
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct complete *complete;
	struct mention mention;
	struct str list, wanted;
	size_t at = 0;

	if (size < 1)
		return 0;
	list = (struct str){(const char *)data + 1, size - 1};
	wanted = str_part(list, 0, data[0]);
	complete = complete_new();
	complete_set(complete, list);
	complete_find(complete, wanted, look, complete);
	complete_note(complete, wanted);
	complete_find(complete, STR(""), look, complete);
	while (mention_next(list, at, &mention)) {
		check(mention.begin >= at && mention.end > mention.begin &&
		      mention.end <= list.size && mention.first <= mention.last);
		at = mention.end;
	}
	complete_free(complete);
	return 0;
}
