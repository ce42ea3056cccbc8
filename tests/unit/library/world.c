/* world: see world.h. */
#include "world.h"
#include "../base/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_output(void *context, const char *tool, int stream, const char *bytes,
		      size_t size)
{
	struct world *world = context;
	size_t used = strlen(world->output);

	(void)!write(world->begun[1], "", 1);
	(void)snprintf(world->output + used, sizeof(world->output) - used, "%s%d:%.*s",
		       tool, stream, (int)size, bytes);
}

struct glovebox_options world_options(struct world *world)
{
	struct glovebox_options options = GLOVEBOX_OPTIONS;

	options.workspace = world->folder;
	options.program = getenv("GLOVEBOX");
	options.output = on_output;
	options.context = world;
	return options;
}

int world_make(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	if (world == NULL)
		return -1;
	(void)snprintf(world->folder, sizeof(world->folder), "/tmp/glovebox-library-XXXXXX");
	*state = world;
	return mkdtemp(world->folder) == NULL || pipe(world->begun) < 0 ? -1 : 0;
}

int world_end(void **state)
{
	struct world *world = *state;

	glovebox_close(world->session);
	tree_remove(world->folder);
	(void)close(world->begun[0]);
	(void)close(world->begun[1]);
	free(world);
	return 0;
}

void world_open(struct world *world, const char *policy)
{
	struct glovebox_options options = world_options(world);

	options.policy = policy;
	world->session = glovebox_open(&options, world->error, sizeof(world->error));
	if (world->session == NULL)
		fail_msg("%s", world->error);
}
