/*
 * Fuzz target of tui/term: answers of a terminal, one behind the other. A match is never longer
 * than the bytes, it is the same when it comes torn, and a name is printable.
 */
#include "tui/term.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* No beginning of an answer of SIZE bytes is another answer, or a key for sure. */
static void check_torn(struct str bytes, size_t size)
{
	size_t part;

	for (size_t cut = 2; cut + 1 < size; cut++) {
		const enum term_match match = term_match(str_part(bytes, 0, cut), &part);

		check(match == TERM_TORN || match == TERM_MAYBE ||
		      (match == TERM_KEY && cut == 2));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size};
	struct term term = {0};

	while (rest.size > 0) {
		size_t taken = 1;

		if (rest.data[0] == '\x1b' && term_match(rest, &taken) == TERM_ANSWER) {
			check(taken >= 3 && taken <= rest.size);
			check_torn(rest, taken);
			term_take(&term, str_part(rest, 0, taken));
		} else {
			taken = 1;
		}
		rest = str_part(rest, taken, rest.size);
	}
	check(memchr(term.name, '\0', sizeof(term.name)) != NULL);
	for (const char *at = term.name; *at != '\0'; at++)
		check(*at >= ' ' && *at < 0x7f);
	return 0;
}
