/*
 * Fuzz target of guard/git_text: pointers, one-line files and work lists. A list with a line
 * that executes is never inert, wherever the line stands.
 */
#include "base/buf.h"
#include "guard/readers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_line(struct str text, const char *line)
{
	struct buf list;

	buf_init(&list, GIT_TODO_MAX);
	if (buf_addstr(&list, text) && buf_adds(&list, line) &&
	    readers_text_todo_is_inert(buf_str(&list)))
		abort();
	buf_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size}, path;

	if (readers_text_pointer(text, &path) &&
	    (path.size == 0 || memchr(path.data, '\n', path.size) != NULL))
		abort();
	if (readers_text_line(text, &path) && memchr(path.data, '\0', path.size) != NULL)
		abort();
	add_line(text, "\nexec true\n");
	add_line(text, "\n \tx true");
	(void)readers_text_strategy_is_own(text);
	(void)readers_text_is_empty(text);
	return 0;
}
