/* environment: keeps the variables that a cell may know and overwrites the others. */
#include "front/environment.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

/* The variables that view/shape.h looks at. */
static const char *const kept[] = {"PATH", "HOME",           "PWD",   "TERM", "LANG",
				   "TZ",   "XDG_STATE_HOME", "TMPDIR"};

static bool is_kept(const char *entry, const struct policy_names *passed)
{
	size_t length = strcspn(entry, "=");

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (strlen(kept[i]) == length && memcmp(entry, kept[i], length) == 0)
			return true;
	}
	for (size_t i = 0; i < passed->count; i++) {
		const char *name = passed->items[i];

		if (strlen(name) == length && memcmp(entry, name, length) == 0)
			return true;
	}
	return false;
}

const char *const *environment_wipe(const struct policy_names *passed)
{
	size_t count = 0, left = 0;
	char **copy;

	while (environ != NULL && environ[count] != NULL)
		count++;
	copy = memory_array(count + 1, sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		if (is_kept(environ[i], passed))
			copy[left++] = memory_copy(environ[i]);
	for (size_t i = 0; i < count; i++)
		explicit_bzero(environ[i], strlen(environ[i]));
	environ = copy;
	return (const char *const *)copy;
}
