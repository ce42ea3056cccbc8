/*
 * undo_store_tidy: finds the logs and objects of a store that are no longer needed, and
 * removes them.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "undo/undo_list.h"
#include "undo/undo_store_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The logs that must stay, because a step or list that stays refers to them. */
struct marks {
	int folder;
	const struct undo_numbers *numbers;
	bool *kept;
};

static void mark(struct marks *marks, uint32_t number)
{
	size_t at = undo_numbers_find(marks->numbers, number);

	if (at < marks->numbers->count)
		marks->kept[at] = true;
}

static bool mark_change(void *context, const struct undo_change *change)
{
	if (change->before.source == UNDO_LOGGED)
		mark(context, change->before.log);
	return true;
}

static void mark_step(const struct undo_store *store, struct marks *marks, uint32_t number)
{
	auto_close int fd = undo_store_open_log(store, number, false);
	struct undo_reader reader = {.change = mark_change, .context = marks};

	if (fd >= 0)
		(void)undo_log_read(&reader, fd, NULL);
	mark(marks, number);
}

static void mark_list(void *context, const char *name)
{
	struct marks *marks = context;
	auto_close int fd = openat(marks->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct undo_list list;

	undo_list_init(&list);
	if (fd >= 0 && undo_list_read(fd, &list, NULL)) {
		for (size_t i = 0; i < list.count; i++) {
			if (list.rows[i].state.source == UNDO_LOGGED)
				mark(marks, list.rows[i].state.log);
		}
	}
	undo_list_fini(&list);
}

/* Mark steps from the newest back, as many as the ceilings allow. */
static uint64_t mark_steps(const struct undo_store *store, struct marks *marks,
			   int64_t oldest_ms)
{
	uint64_t bytes = 0;
	size_t count = 0;

	for (size_t i = marks->numbers->count; i-- > 0;) {
		struct undo_step step;
		bool is_step = undo_step_read(store, marks->numbers->items[i], &step);

		bytes += step.bytes;
		if (is_step && count < UNDO_STEPS_MAX && bytes <= UNDO_STORE_MAX &&
		    step.wall_ms >= oldest_ms) {
			mark_step(store, marks, step.number);
			count++;
		}
		undo_step_fini(&step);
	}
	return bytes;
}

/*
 * Remove old objects that only the store still has, because the repository has deleted
 * them.
 */
static void tidy_objects_below(int folder)
{
	int64_t oldest_s = clock_wall_ms() / 1000 - UNDO_AGE_MAX_S;
	int fd = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	struct stat st;

	if (names == NULL) {
		fd_close(&fd);
		return;
	}
	rewinddir(names);
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (fstatat(folder, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_ctim.tv_sec < oldest_s)
			(void)unlinkat(folder, at->d_name, 0);
		if (S_ISDIR(st.st_mode) && at->d_name[0] != '.') {
			auto_close int below =
				openat(folder, at->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (below >= 0)
				tidy_objects_below(below);
		}
	}
	(void)closedir(names);
}

static void tidy_objects(const struct undo_store *store)
{
	auto_close int fd = openat(store->folder, UNDO_OBJECTS_NAME,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		tidy_objects_below(fd);
}

static uint64_t drop_unmarked(const struct undo_store *store, const struct marks *marks)
{
	uint64_t left = 0;

	for (size_t i = 0; i < marks->numbers->count; i++) {
		uint32_t number = marks->numbers->items[i];
		auto_close int fd = undo_store_open_log(store, number, false);

		if (marks->kept[i])
			left += fd >= 0 ? undo_store_bytes(fd) : 0;
		else if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			undo_store_drop_log(store, number);
	}
	return left;
}

static void drop_name(void *context, const char *name)
{
	const struct undo_store *store = context;

	(void)unlinkat(store->folder, name, 0);
}

/*
 * Every log renews the time of its rights, and every checkpoint that of its list. So a
 * file with an old time belongs to nothing that stays.
 */
static void drop_old_name(void *context, const char *name)
{
	const struct undo_store *store = context;
	struct stat st;

	if (fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_mtim.tv_sec < clock_wall_ms() / 1000 - UNDO_AGE_MAX_S)
		(void)unlinkat(store->folder, name, 0);
}

void undo_store_tidy(struct undo_store *store)
{
	undo_store_tidy_since(store, clock_wall_ms() - (int64_t)UNDO_AGE_MAX_S * 1000,
			      false);
}

void undo_store_tidy_since(struct undo_store *store, int64_t oldest_ms, bool forgets)
{
	struct undo_numbers numbers;
	uint64_t bytes = 0, left;

	/*
	 * Only one process tidies a store at a time. When the lock is taken, another one
	 * is doing it.
	 */
	if (flock(store->folder, LOCK_EX | LOCK_NB) < 0 ||
	    !undo_numbers_read(store, &numbers, NULL))
		return;
	for (size_t i = 0; i < numbers.count; i++) {
		auto_close int fd = undo_store_open_log(store, numbers.items[i], false);
		bytes += fd >= 0 ? undo_store_bytes(fd) : 0;
	}
	undo_store_names(store, UNDO_LIST_ENDING, drop_old_name, store);
	undo_store_names(store, UNDO_RIGHTS_ENDING, drop_old_name, store);
	struct marks marks = {store->folder, &numbers,
			      memory_array(numbers.count + 1, sizeof(bool))};
	(void)mark_steps(store, &marks, oldest_ms);
	if (forgets)
		undo_store_names(store, UNDO_LIST_ENDING, drop_name, store);
	undo_store_names(store, UNDO_LIST_ENDING, mark_list, &marks);
	left = drop_unmarked(store, &marks);
	/*
	 * The lists still refer to contents in large old logs. Without the lists these
	 * logs can be removed, and the next checkpoint copies the present contents.
	 */
	if (bytes > UNDO_STORE_MAX && left > UNDO_STORE_MAX) {
		undo_store_names(store, UNDO_LIST_ENDING, drop_name, store);
		memset(marks.kept, 0, numbers.count * sizeof(bool));
		(void)mark_steps(store, &marks, oldest_ms);
		(void)drop_unmarked(store, &marks);
	}
	tidy_objects(store);
	free(marks.kept);
	free(numbers.items);
	(void)flock(store->folder, LOCK_UN);
}
