/*
 * wrap_fuzz: any text as a profile, which may extend itself and one sound profile. One
 * that is taken has needs, and becomes a sound entry of a policy.
 */
#include "front/wrap/profile.h"

#include "policy/config.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find(void *context, const char *name, struct buf *text, struct buf *source,
		 struct err *err)
{
	const struct str *input = context;

	if (strcmp(name, "base") != 0)
		return buf_addstr(text, *input) || err_set(err, 1, "%s: too large", name);
	return buf_adds(source, "base") &&
	       buf_adds(text, "{\"hosts\": [\"a.org\"], \"env\": {\"A\": \"1\"}, \"seed\": "
			      "{\"~/x\": true}}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct wrap_places places = {"/home/me", NULL, "/ws/p.x"};
	struct str input = {(const char *)data, size};
	struct wrap_profile profile;
	struct err err = {0};

	if (wrap_profile_read("input", find, &input, &profile, &err)) {
		auto_value struct value *entry = wrap_profile_policy(&profile);
		char hex[HASH_HEX + 1];
		struct buf text;

		buf_init(&text, 1 << 20);
		(void)wrap_profile_needs(&profile, &text, hex);
		assert(strlen(hex) == HASH_HEX);
		/* A list that was appended to may have become too long. */
		(void)config_check_entry(entry, NULL, &err);
		for (size_t i = 0; i < profile.share.count; i++) {
			buf_clear(&text);
			if (wrap_places_expand(&places, profile.share.items[i], &text))
				assert(text.data[0] == '/' || text.data[0] == '$');
		}
		buf_fini(&text);
	} else {
		assert(err.text[0] != '\0');
	}
	wrap_profile_fini(&profile);
	return 0;
}
