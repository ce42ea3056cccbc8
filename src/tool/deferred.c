/* deferred: counts the tools of servers and the bytes of their definitions. */

#include "tool/deferred.h"

#include "base/buf.h"
#include "base/value.h"
#include "tool/schema.h"

#include <stddef.h>
#include <string.h>

/* The bytes of the definition of TOOL. One that is too long to print counts as too many. */
static size_t definition_bytes(const struct tool *tool)
{
	auto_value struct value *schema = schema_of_tool(tool);
	struct buf printed;
	size_t bytes = strlen(tool->name) + strlen(tool->description);

	buf_init(&printed, DEFERRED_BYTES_MAX);
	bytes += value_print(schema, 0, &printed) ? printed.size : DEFERRED_BYTES_MAX + 1;
	buf_fini(&printed);
	return bytes;
}

struct deferred deferred_of(const struct tool *const *tools)
{
	struct deferred deferred = {0};
	size_t count = 0, bytes = 0;

	for (size_t i = 0; tools[i] != NULL && !deferred.automatic; i++) {
		if (tools[i]->server == NULL || tools[i]->defer != DEFER_AUTO)
			continue;
		count++;
		bytes += definition_bytes(tools[i]);
		deferred.automatic =
			count > DEFERRED_TOOLS_MAX || bytes > DEFERRED_BYTES_MAX;
	}
	for (size_t i = 0; tools[i] != NULL && !deferred.any; i++)
		deferred.any = deferred_has(deferred, tools[i]);
	return deferred;
}

bool deferred_has(struct deferred deferred, const struct tool *tool)
{
	return tool->server != NULL && (tool->defer == DEFER_ALWAYS ||
					(tool->defer == DEFER_AUTO && deferred.automatic));
}
