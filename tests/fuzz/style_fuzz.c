/*
 * Fuzz target of tools/web/style: whatever the sheet, its reader ends, and an own style of
 * "display: none !important" hides its element.
 */
#include "tools/web/style.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_style(struct str sheet)
{
	struct styles *styles = style_new();
	struct style_element outer, inner;

	style_add(styles, sheet);
	style_add(styles, STR("p b{display:none}"));
	style_name(&outer, STR("p"), STR("a"), STR("b c"), NULL);
	style_name(&inner, STR("b"), (struct str){0}, sheet, &outer);
	(void)style_look(styles, &outer, sheet);
	(void)style_look(styles, &inner, (struct str){0});
	if (!style_look(styles, &inner, STR("display: none !important")).hidden)
		abort();
	style_free(styles);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_style((struct str){(const char *)data, size});
	return 0;
}
