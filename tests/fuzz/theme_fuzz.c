/*
 * Fuzz target of tui/theme: the codes of a theme that is taken hold numbers and semicolons
 * alone, so that nothing in the file can be a command for the terminal.
 */
#include "tui/theme.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = {0};
	struct theme theme;

	for (int rgb = 0; rgb < 2; rgb++) {
		if (!theme_parse((struct str){(const char *)data, size}, rgb != 0, &theme,
				 &err)) {
			if (err.text[0] == '\0')
				abort();
			continue;
		}
		for (size_t role = 0; role < PAINT_STYLES; role++) {
			const char *code = theme.codes[role];

			if (strspn(code, "0123456789;") != strlen(code) ||
			    (role == PAINT_PLAIN && *code != '\0'))
				abort();
		}
	}
	return 0;
}
