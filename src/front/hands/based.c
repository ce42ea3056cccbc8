/* based: finds the base of a session. */

#include "front/hands/based.h"

#include "base/memory.h"
#include "base/str.h"
#include "policy/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool rootfs_open(const char *folder, struct based *based, struct err *err)
{
	static const char *const nothing[] = {NULL};
	auto_free char *real = realpath(folder, NULL);
	const char **folders;
	struct stat st;

	if (real == NULL || stat(real, &st) < 0)
		return err_set(err, errno, "base rootfs:%s: %s", folder, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "base rootfs:%s: it is no folder", folder);
	folders = arena_alloc(&based->arena, 2 * sizeof(*folders));
	folders[0] = arena_copy(&based->arena, str_of(real));
	folders[1] = NULL;
	based->shape.folders = folders;
	based->shape.folder_count = 1;
	based->shape.environment = nothing;
	based->start_folder = "/";
	based->user = "";
	return true;
}

bool based_open(const char *word, struct based **based, struct err *err)
{
	static const char rootfs[] = "rootfs:";
	struct based *made;

	*based = NULL;
	if (word == NULL || strcmp(word, POLICY_BASE_HOST) == 0)
		return true;
	made = memory_alloc(sizeof(*made));
	arena_init(&made->arena);
	made->shape.word = arena_copy(&made->arena, str_of(word));
	if (strncmp(word, rootfs, strlen(rootfs)) != 0
		    ? err_set(err, EINVAL,
			      "base \"%.200s\": it must be one of: host, rootfs:DIR", word)
		    : rootfs_open(word + strlen(rootfs), made, err)) {
		*based = made;
		return true;
	}
	based_close(made);
	return false;
}

void based_close(struct based *based)
{
	if (based == NULL)
		return;
	arena_fini(&based->arena);
	free(based);
}
