/*
 * plugin_channel_fuzz: lines of a script's descriptor 3. What is kept are items with a type,
 * within the bounds, whatever else stands there.
 */
#include "plugins/run.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Nobody listens: what it tells and asks goes nowhere. */
	struct call call = {.control_fd = -1};
	struct plugin_channel channel;
	struct tool_result result;
	struct str rest = {(const char *)data, size}, line;
	struct buf printed;

	tool_result_init(&result);
	assert(plugin_channel_open(&channel, &call, &result, NULL, NULL, NULL));
	while (str_next_line(&rest, &line)) {
		struct err err = {0};

		assert(plugin_channel_line(&channel, line, &err) || err.text[0] != '\0');
	}
	buf_init(&printed, 1 << 26);
	if (result.content != NULL) {
		assert(value_print(result.content, 0, &printed));
		assert(tool_content_fits(result.content, printed.size));
	}
	buf_fini(&printed);
	plugin_channel_close(&channel);
	tool_result_fini(&result);
	return 0;
}
