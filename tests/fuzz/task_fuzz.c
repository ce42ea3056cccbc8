/*
 * Fuzz target of fleet/task: each line of the input as one task. A task that is taken has a sound
 * name, one thing to run and one source; printed and read again it is the same task.
 */
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/task.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Escapes make a text longer, at most sixfold. */
enum { PRINTED_MAX = 8 * FLEET_LINE_MAX };

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look_at(const struct fleet_task *task)
{
	struct err err;

	check(fleet_name_check(FLEET_ID, task->id, &err));
	check(fleet_name_check(FLEET_LANE, task->lane, &err));
	check(task->attempts >= 1 && task->priority < FLEET_PRIORITIES);
	check((task->workspace.kind == FLEET_EMPTY) == (task->workspace.from == NULL));
	check(task->run.kind != FLEET_WRAP || task->run.profile != NULL);
	check((task->run.kind == FLEET_COMMAND) == (task->run.command != NULL));
	check(task->run.kind != FLEET_PROMPT || task->run.prompt != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size}, line;

	while (str_next_line(&rest, &line)) {
		struct fleet_task task, again;
		struct err err = {0};
		struct buf printed;

		if (!fleet_task_read(line, &task, &err)) {
			check(err.text[0] != '\0');
			continue;
		}
		look_at(&task);
		buf_init(&printed, PRINTED_MAX);
		check(value_print(task.line, 0, &printed));
		if (fleet_task_read(buf_str(&printed), &again, &err)) {
			check(value_equal(task.line, again.line));
			check(strcmp(task.id, again.id) == 0);
			fleet_task_fini(&again);
		} else {
			check(printed.size > FLEET_LINE_MAX);
		}
		buf_fini(&printed);
		fleet_task_fini(&task);
	}
	return 0;
}
