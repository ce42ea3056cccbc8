/* undo_store_steps: reading the steps of a store from its logs and their descriptions. */
#include "base/fd.h"
#include "base/memory.h"
#include "undo/undo_store_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int compare_numbers(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

bool undo_numbers_read(const struct undo_store *store, struct undo_numbers *numbers,
		       struct err *err)
{
	int fd = openat(store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	uint32_t number;

	*numbers = (struct undo_numbers){0};
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

size_t undo_numbers_find(const struct undo_numbers *numbers, uint32_t number)
{
	const uint32_t *found = numbers->count > 0
					? bsearch(&number, numbers->items, numbers->count,
						  sizeof(number), compare_numbers)
					: NULL;

	return found != NULL ? (size_t)(found - numbers->items) : numbers->count;
}

uint64_t undo_store_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool count_change(void *context, const struct undo_change *change)
{
	struct undo_step *step = context;

	step->files +=
		change->before.kind != UNDO_FOLDER && change->after.kind != UNDO_FOLDER;
	return true;
}

void undo_step_fini(struct undo_step *step)
{
	free(step->run);
	free(step->tool);
	free(step->title);
}

bool undo_step_read(const struct undo_store *store, uint32_t number, struct undo_step *step)
{
	auto_close int fd = undo_store_open_log(store, number, false);
	struct undo_reader reader = {.change = count_change, .context = step};

	*step = (struct undo_step){.number = number};
	if (fd < 0)
		return false;
	step->bytes = undo_store_bytes(fd);
	if (!undo_store_read_step(store, number, step))
		return false;
	/* A damaged log is shown with the part that could be read. */
	(void)undo_log_read(&reader, fd, NULL);
	step->whole = reader.ended;
	/* An undo is listed as a step even when it changed nothing. */
	return step->work == UNDO_BY_UNDO ||
	       (step->work != UNDO_CHECKPOINT && (reader.changes > 0 || !step->whole));
}

static struct undo_step *find_step(struct undo_steps *steps, uint32_t number)
{
	for (size_t i = 0; i < steps->count; i++) {
		if (steps->steps[i].number == number)
			return &steps->steps[i];
	}
	return NULL;
}

/*
 * Go from the newest step to the oldest, because an undo that was undone has no effect.
 */
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

void undo_store_names(const struct undo_store *store, const char *ending,
		      void (*take)(void *context, const char *name), void *context)
{
	int fd = openat(store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;

	if (names == NULL) {
		fd_close(&fd);
		return;
	}
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (str_ends(str_of(at->d_name), str_of(ending)))
			take(context, at->d_name);
	}
	(void)closedir(names);
}

struct adding {
	const struct undo_store *store;
	uint64_t *bytes;
};

static void add_bytes(void *context, const char *name)
{
	const struct adding *adding = context;
	struct stat st;

	if (fstatat(adding->store->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*adding->bytes += (uint64_t)st.st_size;
}

bool undo_store_steps(const struct undo_store *store, struct undo_steps *steps,
		      struct err *err)
{
	struct undo_numbers numbers;

	*steps = (struct undo_steps){0};
	if (!undo_numbers_read(store, &numbers, err))
		return false;
	steps->steps = memory_array(numbers.count + 1, sizeof(*steps->steps));
	undo_store_names(store, UNDO_LIST_ENDING, add_bytes,
			 &(struct adding){store, &steps->bytes});
	for (size_t i = 0; i < numbers.count; i++) {
		struct undo_step *step = &steps->steps[steps->count];
		bool is_step = undo_step_read(store, numbers.items[i], step);

		steps->bytes += step->bytes;
		if (is_step)
			steps->count++;
		else
			undo_step_fini(step);
	}
	free(numbers.items);
	mark_undone(steps);
	return true;
}

void undo_steps_fini(struct undo_steps *steps)
{
	for (size_t i = 0; i < steps->count; i++)
		undo_step_fini(&steps->steps[i]);
	free(steps->steps);
	*steps = (struct undo_steps){0};
}
