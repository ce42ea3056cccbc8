/*
 * wire_fuzz: any bytes as a call, some calls, a question, a result, and a cell's specification; what is
 * taken can be written again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "cell/wire.h"
#include "tool/call.h"
#include "tool/tool.h"
#include "view/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void result(struct str text)
{
	struct tool_result read;
	struct buf again;

	tool_result_init(&read);
	buf_init(&again, 64 << 20);
	if (tool_result_parse(text, &read, NULL) && !tool_result_print(&read, &again))
		abort();
	buf_fini(&again);
	tool_result_fini(&read);
}

static void call(struct str payload)
{
	struct wire_call read;
	struct buf again;

	if (!wire_parse_call(payload, &read, NULL))
		return;
	if (read.tool == NULL || read.folder == NULL || read.deadline_ms < 0 ||
	    !(read.timeout_s >= 0))
		abort();
	buf_init(&again, 64 << 20);
	if (!wire_print_call(&read, &again))
		abort();
	buf_fini(&again);
	wire_call_fini(&read);
}

static void batch(struct str payload)
{
	struct str rest = payload, one;

	while (wire_next_of_batch(&rest, &one)) {
		if (one.data + one.size != rest.data ||
		    rest.data + rest.size != payload.data + payload.size)
			abort();
		call(one);
	}
}

static void question(struct str text)
{
	struct ask read;
	struct buf again;

	if (!ask_parse(text, &read, NULL))
		return;
	buf_init(&again, 64 << 20);
	if (!ask_print(&read, &again))
		abort();
	buf_fini(&again);
	ask_fini(&read);
}

static void specification(struct str text)
{
	struct cell_spec spec;

	spec_init(&spec);
	if (spec_parse(text, NULL, 0, &spec, NULL) && spec.workspace == NULL)
		abort();
	/* No descriptor came with it. */
	for (size_t i = 0; i < spec.view.count; i++) {
		if (spec.view.entries[i].fd >= 0)
			abort();
	}
	spec_fini(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};

	result(text);
	call(text);
	batch(text);
	question(text);
	specification(text);
	return 0;
}
