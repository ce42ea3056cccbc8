/*
 * Fuzz target of base/ignore: a path up to a line end, then the text of an ignore file. The
 * answers for the file alone and as the child of a silent one must be the same.
 */
#include "base/text/pattern.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size}, path;
	struct ignore *alone, *silent, *child, *below;

	if (!str_next_line(&text, &path))
		return 0;
	alone = ignore_new(text, STR(""), NULL, 0);
	silent = ignore_new(STR("# nothing\n"), STR(""), NULL, 0);
	child = ignore_new(text, STR(""), silent, 0);
	below = ignore_new(text, STR("a"), alone, 0);
	for (int directory = 0; directory < 2; directory++) {
		enum ignore_answer answer = ignore_decide(alone, path, directory);

		if (answer != ignore_decide(child, path, directory))
			abort();
		/*
		 * Rules for files match folders too, so a folder is silent only if a
		 * file is.
		 */
		if (answer == IGNORE_SILENT && directory &&
		    ignore_decide(alone, path, false) != IGNORE_SILENT)
			abort();
		(void)ignore_decide(below, path, directory);
	}
	ignore_free(below);
	ignore_free(child);
	ignore_free(silent);
	ignore_free(alone);
	return 0;
}
