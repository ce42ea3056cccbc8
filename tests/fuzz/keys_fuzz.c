/*
 * Fuzz target of keys.json. A file that is taken gives each key to one action, its table can be
 * printed, and the names of its keys are read again as the same keys. One that is refused says
 * why.
 */
#include "tui/keys.h"

#include "base/text/text.h"
#include "base/value.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* The table with the key CHORD for the viewer alone. */
static void is_read_again(struct keys_chord chord)
{
	struct keys keys;
	struct buf file, name;

	buf_init(&file, 256);
	buf_init(&name, 128);
	keys_init(&keys);
	keys_print_chord(chord, &name);
	(void)buf_adds(&file, "{\"viewer\": ");
	(void)value_quote(buf_str(&name), &file);
	(void)buf_addc(&file, '}');
	buf_fini(&name);
	check(keys_parse(&keys, buf_str(&file), NULL));
	check(keys_find(&keys, chord) == TYPING_VIEWER);
	buf_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = {0};
	struct keys keys;
	struct buf out;

	keys_init(&keys);
	if (!keys_parse(&keys, (struct str){(const char *)data, size}, &err)) {
		check(err.text[0] != '\0');
		return 0;
	}
	check(keys.count <= KEYS_BOUND_MAX);
	for (size_t i = 0; i < keys.count; i++) {
		const struct keys_bound *bound = &keys.bound[i];

		check(keys_find(&keys, bound->chord) == bound->key);
		if (bound->own)
			is_read_again(bound->chord);
	}
	buf_init(&out, 64 << 10);
	keys_print(&keys, &out);
	check(!out.overflowed && text_is_utf8(buf_str(&out)));
	buf_fini(&out);
	return 0;
}
