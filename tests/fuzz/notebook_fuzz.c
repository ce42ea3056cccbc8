/*
 * Fuzz target of tools/documents/notebook: any notebook can be shown, and after each change it
 * is a notebook with the right number of cells, whose other cells have the same bytes.
 */
#include "tools/documents/notebook.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str cell(const struct notebook *notebook, size_t at)
{
	const struct notebook_span span = notebook->spans[at];

	if (span.start >= span.end || span.end > notebook->text.size ||
	    notebook->text.data[span.start] != '{' ||
	    notebook->text.data[span.end - 1] != '}')
		abort();
	return (struct str){notebook->text.data + span.start, span.end - span.start};
}

/* The cells of BEFORE from AT on are those of AFTER from TO on. */
static void check_same(const struct notebook *before, size_t at,
		       const struct notebook *after, size_t to, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!str_equal(cell(before, at + i), cell(after, to + i)))
			abort();
	}
}

static void change(const struct notebook *notebook, const struct notebook_edit *edit)
{
	const bool adds = edit->action == NOTEBOOK_INSERT;
	const bool takes = edit->action == NOTEBOOK_DELETE;
	struct notebook after;
	struct buf made;
	struct err err = {0};

	buf_init(&made, 1 << 20);
	if (!notebook_apply(notebook, edit, &made, &err)) {
		if (err.text[0] == '\0')
			abort();
		buf_fini(&made);
		return;
	}
	if (!notebook_open(&after, buf_str(&made), &err) ||
	    after.count != notebook->count + adds - takes)
		abort();
	check_same(notebook, 0, &after, 0, edit->cell - 1);
	check_same(notebook, edit->cell - adds, &after, edit->cell - takes,
		   notebook->count - (edit->cell - adds));
	if (!takes) {
		const struct value *source =
			value_member(value_item(after.cells, edit->cell - 1), "source");
		struct buf text;

		buf_init(&text, 1 << 20);
		(void)buf_addstr(&text, value_str(source));
		for (size_t i = 0;
		     value_kind(source) == VALUE_ARRAY && i < value_count(source); i++)
			(void)buf_addstr(&text, value_str(value_item(source, i)));
		if (!str_equal(buf_str(&text), edit->source))
			abort();
		buf_fini(&text);
	}
	notebook_close(&after);
	buf_fini(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const kinds[] = {NULL, "code", "markdown", "raw"};
	struct tool_result result;
	struct notebook notebook;
	struct err err = {0};

	if (size > 1 << 16)
		return 0;
	if (notebook_open(&notebook, (struct str){(const char *)data, size}, &err)) {
		tool_result_init(&result);
		notebook_show(&notebook, 1, notebook.count, 4000, NOTEBOOK_PICTURES_MAX,
			      &result);
		if (value_count(result.content) > NOTEBOOK_PICTURES_MAX)
			abort();
		tool_result_fini(&result);
		for (size_t i = 0; i <= notebook.count + 1 && i < 8; i++) {
			for (unsigned n = 0; n < 3 * 4; n++)
				change(&notebook,
				       &(struct notebook_edit){
					       .action = (enum notebook_action)(n % 3),
					       .cell = i,
					       .kind = kinds[n / 3],
					       .source = STR("a \"b\"\n\tc"),
				       });
		}
	} else if (err.text[0] == '\0') {
		abort();
	}
	notebook_close(&notebook);
	return 0;
}
