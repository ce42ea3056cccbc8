/*
 * Fuzz target of base/value: the first byte picks the flags, the rest is the text. What is
 * taken must print, read again and be equal; what is refused must have a sentence.
 */
#include "base/value.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No sentence repeats more than this of what was read, escapes included. */
enum { SENTENCE_MAX = 400 };

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void print_and_read_again(const struct value *value, unsigned flags)
{
	struct value *again = NULL;
	struct buf printed;

	buf_init(&printed, VALUE_TEXT_MAX);
	check(value_print(value, flags, &printed));
	check(text_is_utf8(buf_str(&printed)));
	check(value_parse(buf_str(&printed), 0, &again, NULL));
	check(value_equal(value, again));
	value_free(again);
	buf_fini(&printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct value *value = NULL;
	struct err err = {0};
	struct buf quoted;
	unsigned flags;

	if (size == 0)
		return 0;
	flags = data[0] & (VALUE_COMMENTS | VALUE_REPAIR);
	text = str_part(text, 1, size);
	if (value_parse(text, flags, &value, &err)) {
		print_and_read_again(value, 0);
		print_and_read_again(value, VALUE_PRETTY | VALUE_SORTED);
		value_free(value);
	} else {
		check(strncmp(err.text, "line ", 5) == 0);
		check(strlen(err.text) < SENTENCE_MAX && text_is_utf8(str_of(err.text)));
	}
	/*
	 * Any bytes can be quoted, and read again as what they were when they were
	 * UTF-8.
	 */
	buf_init(&quoted, VALUE_TEXT_MAX);
	check(value_quote(text, &quoted));
	check(value_parse(buf_str(&quoted), 0, &value, NULL));
	check(!text_is_utf8(text) || str_equal(value_str(value), text));
	value_free(value);
	buf_fini(&quoted);
	return 0;
}
