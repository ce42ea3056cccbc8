/* below: opens the layers below a cell, and finds names in them. */

#include "view/below.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOLD_MAX = 4 << 10 };

/*
 * Lock REVIEW for BY, unless somebody works in it, and build it again where it lay in memory and is
 * gone.
 */
static bool hold(struct review *review, const char *by, struct err *err)
{
	struct err why = {0};
	struct buf told;

	if (!review_lock(review, by, &why))
		return why.code == EBUSY || err_set(err, why.code, "%s", why.text);
	buf_init(&told, TOLD_MAX);
	const bool fine =
		review->meta.state != REVIEW_OPEN || review_restore(review, &told, err);
	buf_fini(&told);
	return fine;
}

bool below_open(const char *folder, const char *workspace, char *const *over,
		size_t count, const char *by, struct below *below, struct err *err)
{
	if (count > REVIEW_OVER_MAX)
		return err_set(err, E2BIG, "a layer over more than %d others",
			       REVIEW_OVER_MAX);
	for (size_t i = 0; i < count; i++) {
		struct review *review = NULL;
		struct err why = {0};

		if (!review_open(folder, workspace, over[i], &review, &why)) {
			/* A landed or dropped layer is forgotten after some days. */
			if (why.code == ENOENT)
				continue;
			return err_set(err, why.code, "%s", why.text);
		}
		const bool held =
			review->meta.state != REVIEW_OPEN || hold(review, by, err);
		if (held && review->meta.state == REVIEW_OPEN)
			below->reviews[below->count++] = review;
		else
			review_close(review);
		if (!held)
			return false;
	}
	return true;
}

void below_close(struct below *below)
{
	for (size_t i = 0; i < below->count; i++)
		review_close(below->reviews[i]);
	*below = (struct below){0};
}

/* The number of the deepest tree of REVIEW that holds PATH. False: none does. */
static bool find_tree(const struct review *review, const char *path, size_t *number)
{
	const struct review_meta *meta = &review->meta;
	size_t longest = 0;

	for (size_t i = 0; i < meta->tree_count; i++) {
		const size_t size = strlen(meta->trees[i].path);

		if (size > longest && path_within(path, meta->trees[i].path)) {
			longest = size;
			*number = i;
		}
	}
	return longest > 0;
}

static bool hides(int at, const char *name)
{
	auto_close int fd =
		openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && overlay_hides(fd);
}

/*
 * Look for NAME, a relative path, in the upper folder UPPER, step by step. *FD becomes the folder
 * or file, when it is one. HIDES becomes true when a folder on the way, or the last one, hides
 * what is below it.
 */
static enum below_kind look_in(int upper, const char *name, int *fd, bool *hidden)
{
	auto_free char *names = memory_copy(name);
	auto_close int at = fcntl(upper, F_DUPFD_CLOEXEC, 0);
	char *rest = names;
	struct stat st;

	for (char *step; (step = strsep(&rest, "/")) != NULL;) {
		auto_close int next = openat(at, step, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (next < 0)
			return errno == ENOENT ? BELOW_NOTHING : BELOW_REMOVED;
		if (fstat(next, &st) < 0 || (!S_ISDIR(st.st_mode) && rest != NULL))
			return BELOW_REMOVED;
		*hidden = *hidden || (S_ISDIR(st.st_mode) && hides(at, step));
		(void)close(at);
		at = fd_take(&next);
	}
	if (fstat(at, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return BELOW_REMOVED;
	*fd = fd_take(&at);
	return S_ISDIR(st.st_mode) ? BELOW_FOLDER : BELOW_FILE;
}

static bool add_place(struct below_found *found, int *take_fd, struct err *err)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	const bool fine = fd_real_path(*take_fd, &path);
	if (fine) {
		found->places[found->count].path = memory_copy(path.data);
		found->places[found->count++].fd = fd_take(take_fd);
	} else {
		(void)err_set(err, errno, "the files of a layer: %s", strerror(errno));
	}
	buf_fini(&path);
	return fine;
}

/* Add what REVIEW has at PATH to FOUND. */
static bool find_in(const struct review *review, const char *path,
		    struct below_found *found, struct err *err)
{
	size_t number;

	if (!find_tree(review, path, &number))
		return true;
	const char *tree = review->meta.trees[number].path;

	/* Nothing lies over a copy: where there is one, the kernel lays no layer. */
	if (review->meta.trees[number].copied)
		return err_set(err, ENOTSUP,
			       "review %s is a copy of %s, because no layer can lie there: do "
			       "the work in this agent instead of a delegate",
			       review->meta.id, tree);
	auto_close int upper = review_open_upper(review, number), fd = -1;
	bool hidden = false;

	if (upper < 0)
		return err_set(err, errno, "the files of review %s: %s", review->meta.id,
			       strerror(errno));
	const enum below_kind kind =
		look_in(upper, path_relative(path, tree), &fd, &hidden);
	/* A folder on the way may hide what is below, and hold nothing of that name. */
	found->hides = hidden || kind == BELOW_REMOVED || kind == BELOW_FILE;
	if (kind == BELOW_NOTHING)
		return true;
	/* A folder of a higher layer takes the place of any other thing below it. */
	if (found->kind == BELOW_FOLDER && kind != BELOW_FOLDER)
		return true;
	found->kind = kind;
	return kind == BELOW_REMOVED || add_place(found, &fd, err);
}

bool below_find(const struct below *below, const char *path, struct below_found *found,
		struct err *err)
{
	for (size_t i = 0; below != NULL && i < below->count && !found->hides; i++) {
		if (!find_in(below->reviews[i], path, found, err))
			return false;
	}
	if (found->hides && found->kind == BELOW_NOTHING)
		found->kind = BELOW_REMOVED;
	return true;
}

void below_found_fini(struct below_found *found)
{
	for (size_t i = 0; i < found->count; i++) {
		(void)close(found->places[i].fd);
		free(found->places[i].path);
	}
	*found = (struct below_found){0};
}
