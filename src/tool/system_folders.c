/* system_folders: the system's folders, each once with all that is known of it. */
#include "tool/system_folders.h"
#include "base/path.h"

#include <string.h>

enum {
	FIXED = FOLDER_SYSTEM | FOLDER_FIXED,
	KERNEL = FOLDER_KERNEL | FOLDER_OWN,
};

/* In the order in which a view shows them. */
static const struct {
	const char *path;
	unsigned kinds;
} folders[] = {
	{"/usr", FIXED | FOLDER_NEEDED},
	{"/bin", FIXED},
	{"/sbin", FIXED},
	{"/lib", FIXED},
	{"/lib32", FIXED},
	{"/lib64", FIXED},
	{"/libx32", FIXED},
	{"/opt", FOLDER_SYSTEM},
	{"/etc", FIXED | FOLDER_NEEDED},
	{"/proc", KERNEL | FOLDER_NEEDED},
	{"/sys", KERNEL},
	{"/dev", KERNEL | FOLDER_NEEDED},
	{"/dev/shm", FOLDER_OWN},
	{"/run", FOLDER_OWN | FOLDER_RUNNING | FOLDER_CROWD},
	{"/var/run", FOLDER_RUNNING},
	{"/tmp", FOLDER_OWN | FOLDER_NEEDED | FOLDER_CROWD},
	{"/var/tmp", FOLDER_OWN},
	{"/home", FOLDER_OWN},
	{"/", FOLDER_OWN | FOLDER_CROWD},
	{"/var", FOLDER_CROWD},
	{"/boot", FOLDER_START | FOLDER_CROWD},
	{"/var/spool/cron", FOLDER_START},
};

static const size_t folder_count = sizeof(folders) / sizeof(folders[0]);

const char *system_folder_next(size_t *at, unsigned kinds)
{
	while (*at < folder_count) {
		const size_t i = (*at)++;

		if ((folders[i].kinds & kinds) != 0)
			return folders[i].path;
	}
	return NULL;
}

bool system_folder_is(const char *path, unsigned kinds)
{
	const char *folder;

	for (size_t at = 0; (folder = system_folder_next(&at, kinds)) != NULL;) {
		if (strcmp(path, folder) == 0)
			return true;
	}
	return false;
}

const char *system_folder_around(const char *path, unsigned kinds)
{
	const char *folder;

	for (size_t at = 0; (folder = system_folder_next(&at, kinds)) != NULL;) {
		if (path_within(path, folder))
			break;
	}
	return folder;
}

const char *system_folder_within(const char *path, unsigned kinds)
{
	const char *folder;

	for (size_t at = 0; (folder = system_folder_next(&at, kinds)) != NULL;) {
		if (path_within(folder, path))
			break;
	}
	return folder;
}
