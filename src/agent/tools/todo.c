/* todo: checks the list, says how far it is, and prints it. */

#include "agent/tools/todo.h"

#include "base/text/text.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct row item_rows[] = {
	{"text", ROW_TEXT, true, "What is to be done, in a few words",
	 .aliases = "content task title", .min = 1, .max = TODO_TEXT_MAX},
	{"state", ROW_CHOICE, false, "How far it is; one task at most is active",
	 .aliases = "status", .choices = "pending active done", .initial = "\"pending\""},
	{0},
};

static const struct row todo_params[] = {
	{"items", ROW_LIST, true, "All tasks, in their order; an empty list clears it",
	 .aliases = "todos tasks", .rows = item_rows, .max = TODO_ITEMS_MAX},
	{0},
};

static bool is_in(const struct value *item, const char *state)
{
	return str_is(value_str(value_member(item, "state")), state);
}

static size_t count_in(const struct value *items, const char *state)
{
	size_t count = 0;

	for (size_t i = 0; i < value_count(items); i++)
		count += is_in(value_item(items, i), state);
	return count;
}

void todo_print(const struct value *items, struct buf *out)
{
	for (size_t i = 0; i < value_count(items); i++) {
		const struct value *item = value_item(items, i);

		(void)buf_adds(out, is_in(item, "done")     ? "[x] "
				    : is_in(item, "active") ? "[>] "
							    : "[ ] ");
		text_add_name(out, value_str(value_member(item, "text")));
		(void)buf_addc(out, '\n');
	}
}

/* The model has just written the list: it needs no copy, only the next step. */
static void tell(const struct value *items, struct buf *out)
{
	const size_t count = value_count(items), done = count_in(items, "done");

	if (count == 0) {
		(void)buf_adds(out, "The list is empty.\n");
		return;
	}
	(void)buf_addf(out, "%zu of %zu done", done, count);
	for (size_t i = 0; i < count; i++) {
		if (!is_in(value_item(items, i), "active"))
			continue;
		(void)buf_adds(out, "; now: ");
		text_add_name(out, value_str(value_member(value_item(items, i), "text")));
	}
	(void)buf_adds(out, ".\n");
}

static enum result_status todo_execute(struct call *call, struct tool_result *result)
{
	const struct value *items = value_member(call->arguments, "items");
	const size_t active = count_in(items, "active");

	if (active > 1)
		return tool_fail(result,
				 "%zu tasks are active, and you work on one at a time: mark "
				 "the one you do now as active, the others as pending or done.",
				 active);
	tell(items, &result->text);
	value_set(tool_details(result), "todo", value_copy(items));
	return tool_done(result);
}

const struct tool todo_tool = {
	.name = "todo",
	.description =
		"Keep the list of your tasks when the work has three steps or more: the whole "
		"list each time, when it begins and whenever a task is begun or done. The "
		"person sees it, and you are told it again when your conversation is shortened.",
	.example = "{\"items\": [{\"text\": \"write the failing test\", \"state\": \"active\"}, "
		   "{\"text\": \"mend the parser\"}]}",
	.params = todo_params,
	.where = IN_FRONT,
	.in_runs = true,
	.timeout_s = 10,
	.execute = todo_execute,
};
