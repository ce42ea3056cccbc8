/* commands: see commands.h. */
#include "tools/commands.h"

#include "base/memory.h"

#include <string.h>

/* These beat the cell's own. */
static const char *const quiet_environment[] = {
	"NO_COLOR=1",
	"TERM=dumb",
	"PAGER=cat",
	"GIT_PAGER=cat",
	"GH_PAGER=cat",
	"MANPAGER=cat",
	"SYSTEMD_PAGER=",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_EDITOR=true",
	"EDITOR=true",
	"VISUAL=true",
	"DEBIAN_FRONTEND=noninteractive",
	"PIP_PROGRESS_BAR=off",
	"PIP_NO_INPUT=1",
	"TQDM_DISABLE=1",
	"NPM_CONFIG_PROGRESS=false",
	"LC_ALL=C.UTF-8",
	"GLOVEBOX=1",
};

bool commands_same_variable(const char *a, const char *b)
{
	size_t size = strcspn(a, "=") + 1;

	return strncmp(a, b, size) == 0;
}

static bool is_named(const char *const *list, size_t count, const char *entry)
{
	for (size_t i = 0; i < count; i++) {
		if (commands_same_variable(list[i], entry))
			return true;
	}
	return false;
}

static size_t count_of(const char *const *list)
{
	size_t count = 0;

	while (list != NULL && list[count] != NULL)
		count++;
	return count;
}

const char **commands_environment(const char *const *cell, const char *const *more)
{
	const struct {
		const char *const *items;
		size_t count;
	} sources[] = {
		{cell, count_of(cell)},
		{quiet_environment,
		 sizeof(quiet_environment) / sizeof(quiet_environment[0])},
		{more, count_of(more)},
	};
	enum { SOURCES = sizeof(sources) / sizeof(sources[0]) };
	size_t used = 0, room = 1;
	const char **list;

	for (size_t i = 0; i < SOURCES; i++)
		room += sources[i].count;
	list = memory_array(room, sizeof(*list));
	for (size_t i = 0; i < SOURCES; i++) {
		for (size_t j = 0; j < sources[i].count; j++) {
			bool beaten = false;

			for (size_t k = i + 1; k < SOURCES && !beaten; k++)
				beaten = is_named(sources[k].items, sources[k].count,
						  sources[i].items[j]);
			if (!beaten)
				list[used++] = sources[i].items[j];
		}
	}
	return list;
}
