/* Fuzz target of undo/undo_list: what is taken is in order and prints as it was. */
#include "undo/list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct undo_list list, again;
	struct err err = {0};
	struct buf text;

	undo_list_init(&list);
	undo_list_init(&again);
	buf_init(&text, UNDO_LIST_MAX);
	if (undo_list_parse((struct str){(const char *)data, size}, &list, &err)) {
		undo_list_print(&list, &text);
		if (!undo_list_parse(buf_str(&text), &again, &err) ||
		    again.count != list.count)
			abort();
		for (size_t i = 0; i < list.count; i++) {
			if (undo_list_find(&list, list.rows[i].path) != &list.rows[i])
				abort();
		}
	} else if (err.text[0] == '\0') {
		abort();
	}
	buf_fini(&text);
	undo_list_fini(&list);
	undo_list_fini(&again);
	return 0;
}
