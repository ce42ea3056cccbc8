/* undo_store_steps: what the logs of a store say they are, and which of them may go. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "runtime/undo_list.h"
#include "runtime/undo_store_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char *const work_names[] = {"checkpoint", "tool", "command", "undo"};

/* ---- the numbers there are ---- */

struct numbers {
	uint32_t *items;
	size_t count, room;
};

static int compare_numbers(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static bool numbers_read(const struct undo_store *store, struct numbers *numbers,
			 struct err *err)
{
	int fd = openat(store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	uint32_t number;

	*numbers = (struct numbers){0};
	if (names == NULL) {
		fd_close(&fd);
		return err_set(err, errno, "the undo store: %s", strerror(errno));
	}
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (!undo_log_number(at->d_name, &number))
			continue;
		if (numbers->count == numbers->room) {
			numbers->room = numbers->room > 0 ? 2 * numbers->room : 64;
			numbers->items =
				memory_grow(numbers->items, numbers->room, sizeof(number));
		}
		numbers->items[numbers->count++] = number;
	}
	(void)closedir(names);
	if (numbers->count > 0)
		qsort(numbers->items, numbers->count, sizeof(number), compare_numbers);
	return true;
}

/* Bytes on disk: a log may share blocks and have holes. */
static uint64_t bytes_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* ---- one step ---- */

static bool take_meta(void *context, struct str json)
{
	struct undo_step *step = context;
	auto_value struct value *object = NULL;

	if (!value_parse(json, 0, &object, NULL))
		return true;
	const char *work = value_text(value_member(object, "work"));
	for (size_t i = 0; work != NULL && i < sizeof(work_names) / sizeof(*work_names);
	     i++) {
		if (strcmp(work, work_names[i]) == 0)
			step->work = (enum undo_work)i;
	}
	int64_t undoes = value_integer(value_member(object, "undoes"));
	step->undoes = undoes > 0 && undoes <= UINT32_MAX ? (uint32_t)undoes : 0;
	step->wall_ms = value_integer(value_member(object, "wall_ms"));
	free(step->run);
	free(step->tool);
	free(step->title);
	step->run = memory_copy(value_text(value_member(object, "run")));
	step->tool = memory_copy(value_text(value_member(object, "tool")));
	step->title = memory_copy(value_text(value_member(object, "title")));
	return true;
}

static bool count_change(void *context, const struct undo_change *change)
{
	struct undo_step *step = context;

	step->files +=
		change->before.kind != UNDO_FOLDER && change->after.kind != UNDO_FOLDER;
	return true;
}

static void step_fini(struct undo_step *step)
{
	free(step->run);
	free(step->tool);
	free(step->title);
}

/* False: the log NUMBER is no step, or cannot be read. */
static bool step_read(const struct undo_store *store, uint32_t number, struct undo_step *step)
{
	auto_close int fd = undo_store_open_log(store, number, false);
	struct undo_reader reader = {
		.meta = take_meta,
		.change = count_change,
		.context = step,
	};

	*step = (struct undo_step){.number = number};
	if (fd < 0)
		return false;
	step->bytes = bytes_of(fd);
	/* One that does not hold together is shown with what could be read of it. */
	(void)undo_log_read(&reader, fd, NULL);
	step->whole = reader.ended;
	if (step->run == NULL)
		step->run = memory_copy("");
	if (step->tool == NULL)
		step->tool = memory_copy("");
	if (step->title == NULL)
		step->title = memory_copy("");
	return step->work != UNDO_CHECKPOINT && (reader.changes > 0 || !step->whole);
}

static struct undo_step *find_step(struct undo_steps *steps, uint32_t number)
{
	for (size_t i = 0; i < steps->count; i++) {
		if (steps->steps[i].number == number)
			return &steps->steps[i];
	}
	return NULL;
}

/* The newest decides first: an undo that was undone undoes nothing. */
static void mark_undone(struct undo_steps *steps)
{
	for (size_t i = steps->count; i-- > 0;) {
		const struct undo_step *step = &steps->steps[i];
		if (step->work != UNDO_BY_UNDO || !step->whole || step->undone)
			continue;
		struct undo_step *other = find_step(steps, step->undoes);
		if (other != NULL && other->number < step->number)
			other->undone = true;
	}
}

static uint64_t file_bytes(const struct undo_store *store, const char *name)
{
	struct stat st;

	return fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0
		       ? (uint64_t)st.st_size
		       : 0;
}

bool undo_store_steps(const struct undo_store *store, struct undo_steps *steps,
		      struct err *err)
{
	struct numbers numbers;

	*steps = (struct undo_steps){0};
	if (!numbers_read(store, &numbers, err))
		return false;
	steps->steps = memory_array(numbers.count + 1, sizeof(*steps->steps));
	steps->bytes = file_bytes(store, UNDO_LIST_NAME);
	for (size_t i = 0; i < numbers.count; i++) {
		struct undo_step *step = &steps->steps[steps->count];
		bool is_step = step_read(store, numbers.items[i], step);

		steps->bytes += step->bytes;
		if (is_step)
			steps->count++;
		else
			step_fini(step);
	}
	free(numbers.items);
	mark_undone(steps);
	return true;
}

void undo_steps_fini(struct undo_steps *steps)
{
	for (size_t i = 0; i < steps->count; i++)
		step_fini(&steps->steps[i]);
	free(steps->steps);
	*steps = (struct undo_steps){0};
}

/* ---- letting go ---- */

/* Which logs something that stays refers to. */
struct marks {
	const struct numbers *numbers;
	bool *kept;
};

static void mark(struct marks *marks, uint32_t number)
{
	const struct numbers *all = marks->numbers;
	const uint32_t *found = all->count > 0 ? bsearch(&number, all->items, all->count,
							 sizeof(number), compare_numbers)
					       : NULL;

	if (found != NULL)
		marks->kept[found - marks->numbers->items] = true;
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

static void mark_list(const struct undo_store *store, struct marks *marks)
{
	auto_close int fd = undo_store_open_list(store, NULL);
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

/* From the newest step back, as many as the ceilings allow. */
static uint64_t mark_steps(const struct undo_store *store, struct marks *marks)
{
	int64_t oldest_ms = clock_wall_ms() - (int64_t)UNDO_AGE_MAX_S * 1000;
	uint64_t bytes = 0;
	size_t count = 0;

	for (size_t i = marks->numbers->count; i-- > 0;) {
		struct undo_step step;
		bool is_step = step_read(store, marks->numbers->items[i], &step);

		bytes += step.bytes;
		if (is_step && count < UNDO_STEPS_MAX && bytes <= UNDO_STORE_MAX &&
		    step.wall_ms >= oldest_ms) {
			mark_step(store, marks, step.number);
			count++;
		}
		step_fini(&step);
	}
	return bytes;
}

/* Objects that the repository no longer has are ours alone, and old ones go. */
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
			left += fd >= 0 ? bytes_of(fd) : 0;
		else if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			undo_store_drop_log(store, number);
	}
	return left;
}

void undo_store_tidy(struct undo_store *store)
{
	struct numbers numbers;
	uint64_t bytes = 0, left;

	/* One at a time, and who holds it is at it. */
	if (flock(store->folder, LOCK_EX | LOCK_NB) < 0 ||
	    !numbers_read(store, &numbers, NULL))
		return;
	for (size_t i = 0; i < numbers.count; i++) {
		auto_close int fd = undo_store_open_log(store, numbers.items[i], false);
		bytes += fd >= 0 ? bytes_of(fd) : 0;
	}
	struct marks marks = {&numbers, memory_array(numbers.count + 1, sizeof(bool))};
	(void)mark_steps(store, &marks);
	mark_list(store, &marks);
	left = drop_unmarked(store, &marks);
	/*
	 * What the list still refers to lies in logs that were once large: without it the
	 * next checkpoint copies what there is now, and these go.
	 */
	if (bytes > UNDO_STORE_MAX && left > UNDO_STORE_MAX) {
		(void)unlinkat(store->folder, UNDO_LIST_NAME, 0);
		memset(marks.kept, 0, numbers.count * sizeof(bool));
		(void)mark_steps(store, &marks);
		(void)drop_unmarked(store, &marks);
	}
	tidy_objects(store);
	free(marks.kept);
	free(numbers.items);
	(void)flock(store->folder, LOCK_UN);
}
