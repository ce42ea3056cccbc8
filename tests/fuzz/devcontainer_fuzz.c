/*
 * devcontainer_fuzz: the bytes as a devcontainer.json. What is let in has an image, stays below its
 * ceilings, and no variable or command of it asks for one of the person's.
 */
#include "base/str.h"
#include "image/devcontainer/devcontainer.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_variables(const struct devcontainer *read, struct devcontainer_cell *cell)
{
	static const char *const own[] = {"PATH=/bin", "ONE=1", NULL};
	const char *const *environment = NULL;
	struct arena arena;
	struct err err = {0};

	arena_init(&arena);
	cell->environment = own;
	if (devcontainer_environment(read, cell, &arena, &environment, &err)) {
		for (size_t i = 0; i < read->variable_count; i++) {
			assert(strchr(environment[i], '=') != NULL);
			assert(strncmp(environment[i], read->environment[i],
				       strcspn(read->environment[i], "=") + 1) == 0);
			assert(strstr(read->environment[i], "${localEnv:") == NULL);
		}
	} else {
		assert(err.text[0] != '\0');
	}
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	struct devcontainer_cell cell = {.workspace = "/project/one", .shown = "/testbed"};
	struct devcontainer read;
	struct err err = {0};

	if (devcontainer_parse(text, &cell, &read, &err)) {
		assert(read.image != NULL && read.image[0] != '\0');
		assert(read.command_count <= DEVCONTAINER_COMMANDS_MAX);
		assert(read.port_count <= DEVCONTAINER_PORTS_MAX);
		assert(read.variable_count <= 2 * (size_t)DEVCONTAINER_VARIABLES_MAX);
		assert(read.environment[read.variable_count] == NULL);
		for (size_t i = 0; i < read.command_count; i++)
			assert(read.commands[i].argv[0] != NULL);
		check_variables(&read, &cell);
	} else {
		assert(err.text[0] != '\0');
	}
	devcontainer_fini(&read);
	return 0;
}
