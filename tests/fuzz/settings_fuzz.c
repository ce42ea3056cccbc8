/*
 * settings_fuzz: somebody's settings, to which an entry is added: JSON with comments, and TOML.
 * What mcp_install_json_insert wrote it must find again.
 */
#include "front/verbs/mcp_install.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	auto_value struct value *entry = value_new_object();
	struct buf out, again;
	struct err err;

	value_set_text(entry, "command", "x");
	buf_init(&out, 1 << 20);
	buf_init(&again, 1 << 20);
	if (mcp_install_json_insert(text, "mcp", "box", entry, &out, &err) == JSON_INSERTED)
		assert(mcp_install_json_insert(buf_str(&out), "mcp", "box", entry, &again,
					       &err) == JSON_IS_THERE);
	buf_fini(&out);
	buf_fini(&again);
	(void)mcp_install_toml_look(text, "mcp", "box", &err);
	return 0;
}
