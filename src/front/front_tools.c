/* front_tools: makes one list of tools out of two. */
#include "front/front_tools.h"

#include "agent/tools/orchestra.h"
#include "base/memory.h"
#include "tools/tools.h"

const struct tool **front_tools_new(void)
{
	const struct tool **tools;
	size_t count = 0, more = 0;

	while (builtin_tools[count] != NULL)
		count++;
	while (orchestra_rows[more] != NULL)
		more++;
	tools = memory_array(count + more + 1, sizeof(const struct tool *));
	for (size_t i = 0; i < count; i++)
		tools[i] = builtin_tools[i];
	for (size_t i = 0; i < more; i++)
		tools[count + i] = orchestra_rows[i];
	return tools;
}
