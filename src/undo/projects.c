/* projects: measures the folders of stores by the names and sizes of their files. */

#include "undo/projects.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "undo/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum {
	DEPTH_MAX = 4, /* levels: the store, its objects, their first digits or packs */
	BLOCK = 512,   /* the unit of st_blocks */
};

bool undo_projects_is_name(const char *name)
{
	return strlen(name) == UNDO_PROJECT_NAME - 1 &&
	       strspn(name, "0123456789abcdef") == UNDO_PROJECT_NAME - 1;
}

static int open_project(const char *folder, const char *name)
{
	auto_close int all = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (all < 0 || !undo_projects_is_name(name))
		return -1;
	return openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Lock the store when no session uses it. The lock lasts until *HELD is closed. */
static bool hold_alone(int folder, int *held)
{
	*held = openat(folder, UNDO_STORE_USED, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		       0600);
	return *held >= 0 && flock(*held, LOCK_EX | LOCK_NB) == 0;
}

static void add_log(struct undo_project *project, const struct stat *st)
{
	const int64_t changed_ms = clock_ns(&st->st_mtim) / 1000000;

	if (project->oldest_ms == 0 || changed_ms < project->oldest_ms)
		project->oldest_ms = changed_ms;
	if (changed_ms > project->newest_ms)
		project->newest_ms = changed_ms;
}

/*
 * Add the files in FOLDER to PROJECT, and close FOLDER. A file with more than one name is
 * not counted, because git holds it as well.
 */
static void measure(int folder, int depth, struct undo_project *project)
{
	DIR *names = fdopendir(folder);
	struct stat st;

	if (names == NULL) {
		fd_close(&folder);
		return;
	}
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (fstatat(dirfd(names), at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode) && st.st_nlink == 1)
			project->bytes += (uint64_t)st.st_blocks * BLOCK;
		if (depth == 0 && S_ISREG(st.st_mode) && undo_store_is_log(at->d_name))
			add_log(project, &st);
		if (S_ISDIR(st.st_mode) && at->d_name[0] != '.' && depth < DEPTH_MAX) {
			const int below =
				openat(dirfd(names), at->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (below >= 0)
				measure(below, depth + 1, project);
		}
	}
	(void)closedir(names);
}

static void look_at(int folder, struct undo_project *project)
{
	auto_close int used =
		openat(folder, UNDO_STORE_USED, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct buf text;

	if (copy >= 0)
		measure(copy, 0, project);
	if (used < 0)
		return;
	buf_init(&text, PATH_MAX);
	if (fd_read_all(used, &text, UNDO_STORE_USED, NULL) && text.size > 0 &&
	    text.data[0] == '/' && strlen(text.data) == text.size)
		project->workspace = memory_copy(text.data);
	buf_fini(&text);
	project->used = flock(used, LOCK_EX | LOCK_NB) < 0;
}

bool undo_projects_list(const char *folder, struct undo_projects *projects, struct err *err)
{
	DIR *names = opendir(folder);

	*projects = (struct undo_projects){0};
	if (names == NULL)
		return errno == ENOENT ||
		       err_set(err, errno, "%s: %s", folder, strerror(errno));
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		auto_close int own = undo_projects_is_name(at->d_name)
					     ? open_project(folder, at->d_name)
					     : -1;
		struct undo_project *project;

		if (own < 0)
			continue;
		projects->items = memory_more(projects->items, projects->count,
					      sizeof(*projects->items));
		project = &projects->items[projects->count++];
		*project = (struct undo_project){0};
		memcpy(project->name, at->d_name, UNDO_PROJECT_NAME);
		look_at(own, project);
	}
	(void)closedir(names);
	return true;
}

void undo_projects_fini(struct undo_projects *projects)
{
	for (size_t i = 0; i < projects->count; i++)
		free(projects->items[i].workspace);
	free(projects->items);
	*projects = (struct undo_projects){0};
}

bool undo_projects_prune(const char *folder, const char *name, int64_t oldest_ms)
{
	char path[PATH_MAX];

	auto_close int own = open_project(folder, name);
	auto_close int held = -1;
	if (own < 0 || !hold_alone(own, &held))
		return false;
	/* A log that a program still writes to stays, and so does the folder. */
	if (undo_store_forget(own, oldest_ms) &&
	    snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path))
		fd_folder_remove(path);
	return true;
}

/* A log of some store. */
struct dated {
	int64_t changed_ms;
	uint64_t bytes;
};

struct dating {
	struct dated *items;
	size_t count;
};

static void date_logs(const char *folder, const struct undo_project *project,
		      struct dating *dating)
{
	int own = open_project(folder, project->name);
	DIR *names = own >= 0 ? fdopendir(own) : NULL;
	struct stat st;

	if (names == NULL) {
		fd_close(&own);
		return;
	}
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (!undo_store_is_log(at->d_name) ||
		    fstatat(dirfd(names), at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		dating->items =
			memory_more(dating->items, dating->count, sizeof(*dating->items));
		dating->items[dating->count++] =
			(struct dated){clock_ns(&st.st_mtim) / 1000000,
				       (uint64_t)st.st_blocks * BLOCK};
	}
	(void)closedir(names);
}

static int compare_dates(const void *a, const void *b)
{
	const struct dated *left = a, *right = b;

	return (left->changed_ms > right->changed_ms) -
	       (left->changed_ms < right->changed_ms);
}

static uint64_t bytes_of(const struct undo_projects *projects)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < projects->count; i++)
		bytes += projects->items[i].bytes;
	return bytes;
}

/* The moment before which logs must be removed to free TOO_MUCH bytes. */
static int64_t cut_of(const char *folder, const struct undo_projects *projects,
		      uint64_t too_much)
{
	struct dating dating = {0};
	uint64_t bytes = 0;
	int64_t cut = 0;

	for (size_t i = 0; i < projects->count; i++) {
		if (!projects->items[i].used)
			date_logs(folder, &projects->items[i], &dating);
	}
	if (dating.count > 0)
		qsort(dating.items, dating.count, sizeof(*dating.items), compare_dates);
	for (size_t i = 0; i < dating.count && bytes < too_much; i++) {
		bytes += dating.items[i].bytes;
		cut = dating.items[i].changed_ms + 1;
	}
	free(dating.items);
	return cut;
}

/*
 * The store that has not been used for the longest time; NULL: all are in use or empty.
 */
static const struct undo_project *stalest(const struct undo_projects *projects)
{
	const struct undo_project *found = NULL;

	for (size_t i = 0; i < projects->count; i++) {
		const struct undo_project *at = &projects->items[i];

		if (!at->used && at->bytes > 0 &&
		    (found == NULL || at->newest_ms < found->newest_ms))
			found = at;
	}
	return found;
}

uint64_t undo_projects_tidy(const char *folder, uint64_t max)
{
	struct undo_projects projects;
	uint64_t bytes =
		undo_projects_list(folder, &projects, NULL) ? bytes_of(&projects) : 0;

	if (bytes > max) {
		const int64_t cut = cut_of(folder, &projects, bytes - max);

		for (size_t i = 0; i < projects.count; i++) {
			if (!projects.items[i].used && projects.items[i].oldest_ms < cut)
				(void)undo_projects_prune(folder, projects.items[i].name,
							  cut);
		}
	}
	/*
	 * Logs that younger steps refer to are still there. If that is too much, remove
	 * whole stores.
	 */
	for (size_t i = projects.count; bytes > max && i > 0; i--) {
		const struct undo_project *next;

		undo_projects_fini(&projects);
		if (!undo_projects_list(folder, &projects, NULL))
			break;
		bytes = bytes_of(&projects);
		next = bytes > max ? stalest(&projects) : NULL;
		if (next == NULL || !undo_projects_prune(folder, next->name, INT64_MAX))
			break;
	}
	undo_projects_fini(&projects);
	return bytes;
}
