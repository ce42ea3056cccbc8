/* review: layers are made, found, locked, described, dropped and tidied. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "view/review.h"

struct place {
	char folder[64], work[80], store[80];
};

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.folder, sizeof(place.folder), "/tmp/review-XXXXXX");
	if (mkdtemp(place.folder) == NULL)
		return -1;
	(void)snprintf(place.work, sizeof(place.work), "%s/project", place.folder);
	(void)snprintf(place.store, sizeof(place.store), "%s/state/review", place.folder);
	*state = &place;
	return mkdir(place.work, 0700);
}

/* The folder of the test's layer in memory; "": none. */
static char in_memory[96];

static int teardown(void **state)
{
	char built[sizeof(in_memory) + 8];

	tree_remove(((struct place *)*state)->folder);
	if (in_memory[0] == '\0')
		return 0;
	(void)snprintf(built, sizeof(built), "%s.new", in_memory);
	fd_folder_remove(in_memory);
	fd_folder_remove(built);
	in_memory[0] = '\0';
	return 0;
}

static struct review *make(const struct place *place)
{
	struct review *review = NULL;
	struct err err;
	size_t number = 1;

	if (!review_make(place->store, place->work, NULL, "glovebox exec", &review, &err) ||
	    !review_add_tree(review, place->work, &number, &err))
		fail_msg("%s", err.text);
	assert_int_equal(number, 0);
	free(review->meta.command);
	review->meta.command = memory_copy("make");
	if (!review_publish(review, &err))
		fail_msg("%s", err.text);
	return review;
}

static struct review *reopen(const struct place *place, const char *id)
{
	struct review *review = NULL;
	struct err err;

	if (!review_open(place->store, place->work, id, &review, &err))
		fail_msg("%s", err.text);
	return review;
}

static void refused(const struct place *place, const char *id, int code)
{
	struct review *review = NULL;
	struct err err;

	assert_false(review_open(place->store, place->work, id, &review, &err));
	assert_int_equal(err.code, code);
	assert_null(review);
}

static void a_layer_is_found_by_its_digits(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);
	char six[7], five[6];

	(void)snprintf(six, sizeof(six), "%.6s", made->meta.id);
	(void)snprintf(five, sizeof(five), "%.5s", made->meta.id);
	struct review *found = reopen(place, six);
	assert_string_equal(found->meta.id, made->meta.id);
	assert_string_equal(found->meta.trees[0].path, place->work);
	assert_string_equal(found->meta.command, "make");
	review_close(found);
	refused(place, five, ENOENT);
	refused(place, "../x", ENOENT);
	review_close(made);
}

static void one_that_was_not_published_goes(void **state)
{
	const struct place *place = *state;
	struct review *review = NULL;
	struct err err;
	char name[REVIEW_ID + 4];
	size_t number = 1;

	assert_true(review_make(place->store, place->work, NULL, "glovebox exec", &review,
				&err));
	assert_true(review_add_tree(review, place->work, &number, &err));
	(void)snprintf(name, sizeof(name), "%s.tmp", review->meta.id);
	const int project = dup(review->project);
	assert_int_equal(faccessat(project, name, F_OK, 0), 0);
	refused(place, review->meta.id, ENOENT);
	review_close(review);
	assert_int_equal(faccessat(project, name, F_OK, 0), -1);
	(void)close(project);
}

static void a_layer_is_not_widened_later(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);
	struct err err;
	size_t number = 1;

	assert_true(review_add_tree(made, place->work, &number, &err));
	assert_false(review_add_tree(made, "/srv", &number, &err));
	review_close(made);
}

static void the_newest_open_one_is_meant_without_an_id(void **state)
{
	const struct place *place = *state;
	struct review *first = make(place), *second;
	struct err err;

	first->meta.created_ms -= 1000;
	assert_true(review_set_state(first, REVIEW_OPEN, &err));
	second = make(place);
	struct review *found = reopen(place, NULL);
	assert_string_equal(found->meta.id, second->meta.id);
	review_close(found);
	assert_true(review_set_state(second, REVIEW_LANDED, &err));
	found = reopen(place, NULL);
	assert_string_equal(found->meta.id, first->meta.id);
	review_close(found);
	review_close(first);
	review_close(second);
}

static void a_layer_in_use_names_its_user(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);
	struct review *found = reopen(place, made->meta.id);
	struct err err;

	assert_false(review_lock(found, "glovebox land", &err));
	assert_int_equal(err.code, EBUSY);
	assert_non_null(strstr(err.text, "is in use by \"glovebox exec\" since "));
	review_close(made);
	assert_true(review_lock(found, "glovebox land", &err));
	review_close(found);
}

static void overwrite(const struct place *place, const struct review *review,
		      const char *text)
{
	const int fd = openat(review->folder, "meta.json", O_WRONLY | O_TRUNC);

	(void)place;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static void a_damaged_description_is_a_sentence(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);
	struct review_list list;
	struct err err;

	overwrite(place, made, "{\"version\":1,");
	refused(place, made->meta.id, EINVAL);
	overwrite(place, made, "{\"version\":7}");
	refused(place, made->meta.id, EINVAL);
	assert_true(review_list_read(place->store, place->work, &list, &err));
	assert_int_equal(list.count, 1);
	assert_true(list.items[0].damaged);
	assert_true(list.items[0].used);
	assert_string_equal(list.items[0].meta.id, made->meta.id);
	review_list_fini(&list);
	assert_false(review_remove_damaged(place->store, place->work, made->meta.id, &err));
	assert_int_equal(err.code, EBUSY);
	fd_close(&made->lock);
	assert_true(review_remove_damaged(place->store, place->work, made->meta.id, &err));
	refused(place, made->meta.id, ENOENT);
	review_close(made);
}

static void another_folder_at_the_place_is_not_meant(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);
	char other[96];

	(void)snprintf(other, sizeof(other), "%s-2", place->work);
	assert_int_equal(rename(place->work, other), 0);
	assert_int_equal(mkdir(place->work, 0700), 0);
	refused(place, made->meta.id, ESTALE);
	review_close(made);
}

static void a_dropped_layer_holds_nothing_and_is_listed(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);
	struct review_list list;
	struct err err;

	assert_int_equal(review_open_upper(made, 0), -1);
	assert_int_equal(mkdirat(made->folder, "trees/0/upper", 0), 0);
	const int upper = review_open_upper(made, 0);
	assert_true(upper >= 0);
	(void)close(upper);
	assert_true(review_drop(made, &err));
	assert_int_equal(faccessat(made->folder, "trees", F_OK, 0), -1);
	assert_int_equal(faccessat(made->folder, "changes.log", F_OK, 0), -1);
	review_close(made);
	assert_true(review_list_read(place->store, place->work, &list, &err));
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].meta.state, REVIEW_DROPPED);
	assert_int_equal(list.open, 0);
	assert_false(list.items[0].used);
	review_list_fini(&list);
}

static bool holds(const struct review *review, const char *name)
{
	return faccessat(review->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void a_path_is_dropped_in_the_tree_that_covers_it(void **state)
{
	const struct place *place = *state;
	struct review *made = NULL;
	char inner[96], path[112];
	struct err err;
	size_t number;

	(void)snprintf(inner, sizeof(inner), "%s/inner", place->work);
	assert_true(review_make(place->store, place->work, NULL, "glovebox exec", &made,
				&err));
	assert_true(review_add_tree(made, place->work, &number, &err));
	assert_true(review_add_tree(made, inner, &number, &err));
	assert_int_equal(number, 1);
	assert_true(review_publish(made, &err));
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "trees/%d/upper", i);
		assert_int_equal(mkdirat(made->folder, path, 0700), 0);
	}
	assert_int_equal(mkdirat(made->folder, "trees/0/upper/inner", 0700), 0);
	assert_int_equal(mkdirat(made->folder, "trees/0/upper/inner/f", 0700), 0);
	assert_int_equal(mkdirat(made->folder, "trees/1/upper/f", 0), 0);
	assert_int_equal(mkdirat(made->folder, "trees/1/upper/g", 0700), 0);
	made->meta.counts.bytes = 1 << 20;
	(void)snprintf(path, sizeof(path), "%s/f", inner);
	assert_true(review_drop_path(made, path, &err));
	assert_false(holds(made, "trees/1/upper/f"));
	assert_true(holds(made, "trees/1/upper/g"));
	assert_true(holds(made, "trees/0/upper/inner/f"));
	/* The room that it took is free again. */
	assert_int_equal(made->meta.counts.bytes, 0);
	assert_false(review_drop_path(made, path, &err));
	assert_int_equal(err.code, ENOENT);
	/* The tree itself: all that it holds, and nothing of the other one. */
	assert_true(review_drop_path(made, inner, &err));
	assert_true(holds(made, "trees/1/upper"));
	assert_false(holds(made, "trees/1/upper/g"));
	assert_true(holds(made, "trees/0/upper/inner/f"));
	assert_int_equal(mkdirat(made->folder, "trees/1/upper/g", 0700), 0);
	assert_true(review_drop_path(made, place->work, &err));
	assert_false(holds(made, "trees/0/upper/inner"));
	assert_false(holds(made, "trees/1/upper/g"));
	assert_int_equal(made->meta.state, REVIEW_OPEN);
	assert_true(review_drop(made, &err));
	assert_false(holds(made, "trees"));
	review_close(made);
}

/* Make the description of REVIEW ten days old. */
static void age(const struct review *review)
{
	struct timespec times[2];

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
	times[0].tv_sec -= 10 * 24 * 3600;
	times[1] = times[0];
	assert_int_equal(utimensat(review->folder, "meta.json", times, 0), 0);
}

static void old_ones_go_but_open_ones_stay(void **state)
{
	const struct place *place = *state;
	struct review *open = make(place), *landed = make(place), *held = make(place);
	struct review *young = make(place);
	struct review_list list;
	struct err err;

	assert_true(review_set_state(landed, REVIEW_LANDED, &err));
	assert_true(review_set_state(held, REVIEW_LANDED, &err));
	assert_true(review_set_state(young, REVIEW_LANDED, &err));
	age(open);
	age(landed);
	age(held);
	fd_close(&open->lock);
	fd_close(&landed->lock);
	fd_close(&young->lock);
	review_tidy(place->store, place->work);
	refused(place, landed->meta.id, ENOENT);
	assert_true(review_list_read(place->store, place->work, &list, &err));
	assert_int_equal(list.count, 3);
	review_list_fini(&list);
	review_close(open);
	review_close(landed);
	review_close(held);
	review_close(young);
}

static void what_a_killed_process_left_goes(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place), *dropped = make(place);
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct err err;

	assert_int_equal(mkdirat(made->project, "0123abcd.tmp", 0700), 0);
	assert_int_equal(mkdirat(made->project, "0123abce.tmp", 0700), 0);
	assert_int_equal(utimensat(made->project, "0123abcd.tmp", old, 0), 0);
	/* A process that has taken old folders, and has not given them their name yet. */
	assert_int_equal(mkdirat(made->project, "0123abcf.tmp", 0700), 0);
	auto_close int taken = openat(made->project, "0123abcf.tmp/lock",
				      O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(taken, LOCK_EX), 0);
	assert_int_equal(utimensat(made->project, "0123abcf.tmp", old, 0), 0);
	/* The state is written, and the process was killed before it removed anything. */
	assert_true(review_set_state(dropped, REVIEW_DROPPED, &err));
	fd_close(&dropped->lock);
	review_tidy(place->store, place->work);
	assert_int_equal(faccessat(made->project, "0123abcd.tmp", F_OK, 0), -1);
	assert_int_equal(faccessat(made->project, "0123abce.tmp", F_OK, 0), 0);
	assert_int_equal(faccessat(made->project, "0123abcf.tmp", F_OK, 0), 0);
	assert_int_equal(faccessat(dropped->folder, "trees", F_OK, 0), -1);
	assert_int_equal(faccessat(made->folder, "trees", F_OK, 0), 0);
	review_close(dropped);
	review_close(made);
}

/* Make in LAYER what a session makes in it. */
static void fill(struct review *layer)
{
	struct err err;
	auto_close int log = -1;

	assert_true(review_begin(layer, &err));
	assert_int_equal(mkdirat(layer->folder, "trees/0/upper", 0700), 0);
	assert_int_equal(mkdirat(layer->folder, "trees/0/scratch", 0700), 0);
	assert_int_equal(mkdirat(layer->folder, "trees/0/scratch/work", 0), 0);
	assert_true(mkdirat(layer->folder, "trees/0/lower", 0700) == 0 || errno == EEXIST);
	log = review_open_log(layer, true);
	assert_int_equal(write(log, "x", 1), 1);
}

static bool has(const struct review *layer, const char *name)
{
	return faccessat(layer->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void an_unchanged_layer_leaves_its_folders_and_nothing_else(void **state)
{
	const struct place *place = *state;
	struct review *first = make(place), *second, *third;
	struct stat then, now;
	char mark[32];

	fill(first);
	(void)snprintf(mark, sizeof(mark), "unsynced.%s", first->mark);
	assert_true(has(first, mark));
	assert_int_equal(fstat(first->folder, &then), 0);
	review_remove(first);
	refused(place, first->meta.id, ENOENT);
	/* The next one has them before the first one is closed, and a third one has its own. */
	second = make(place);
	third = make(place);
	assert_int_equal(fstat(second->folder, &now), 0);
	assert_int_equal(now.st_ino, then.st_ino);
	assert_false(third->spare);
	review_close(first);
	assert_false(has(second, mark));
	assert_false(has(second, "trees/0/upper"));
	assert_false(has(second, "trees/0/scratch"));
	assert_int_equal(fstatat(second->folder, "changes.log", &now, 0), 0);
	assert_int_equal(now.st_size, 0);
	first = reopen(place, second->meta.id);
	assert_string_equal(first->meta.command, "make");
	review_close(first);
	/* What a crash of the machine took from the folders is made again. */
	review_remove(second);
	assert_int_equal(unlinkat(second->folder, "trees/0/lower", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(second->folder, "trees/0", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(second->folder, "trees", AT_REMOVEDIR), 0);
	first = make(place);
	assert_true(first->spare);
	assert_true(has(first, "trees/0"));
	review_close(first);
	review_close(second);
	review_close(third);
}

static void a_layer_that_holds_something_leaves_no_folders(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);

	fill(made);
	assert_int_equal(mkdirat(made->folder, "trees/0/upper/x", 0700), 0);
	review_remove(made);
	review_close(made);
	made = make(place);
	assert_false(made->spare);
	fill(made);
	assert_int_equal(mkdirat(made->folder, "undo", 0700), 0);
	review_remove(made);
	review_close(made);
	made = make(place);
	assert_false(made->spare);
	review_close(made);
}

static void a_workspace_may_have_any_number(void **state)
{
	struct review *made = make(*state);
	struct review_meta read = {0};
	struct buf text;
	struct err err;

	buf_init(&text, 1 << 20);
	made->meta.inode |= (uint64_t)1 << 63;
	made->meta.device |= (uint64_t)1 << 63;
	assert_true(review_meta_print(&made->meta, &text));
	assert_true(review_meta_parse(buf_str(&text), &read, &err));
	assert_int_equal(read.inode, made->meta.inode);
	assert_int_equal(read.device, made->meta.device);
	review_meta_fini(&read);
	buf_fini(&text);
	review_close(made);
}

static void one_that_left_its_folders_is_not_locked_under_its_name(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place), *found = reopen(place, made->meta.id);
	struct err err;

	fill(made);
	review_remove(made);
	review_close(made);
	/* Its description is still in the folders, which are nobody's now. */
	assert_false(review_lock(found, "glovebox exec", &err));
	assert_int_equal(err.code, ENOENT);
	made = make(place);
	assert_true(made->spare);
	review_close(found);
	review_close(made);
}

static void the_folders_of_another_user_are_not_taken(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);

	if (geteuid() != 0) {
		review_close(made);
		unit_skip("only root can give a folder to another user");
	}
	fill(made);
	review_remove(made);
	assert_int_equal(fchown(made->folder, 1, 1), 0);
	review_close(made);
	made = make(place);
	assert_false(made->spare);
	review_close(made);
}

static void a_session_of_another_boot_was_cut(void **state)
{
	const struct place *place = *state;
	struct review *made = make(place);
	const struct review_counts counts = {.added = 3, .bytes = 12};
	struct err err;

	assert_true(review_begin(made, &err));
	assert_int_equal(review_cut(made), REVIEW_WHOLE);
	(void)snprintf(made->meta.boot, REVIEW_BOOT, "0b9a4c3e-0");
	assert_int_equal(review_cut(made), REVIEW_SHORT);
	assert_true(review_end(made, &counts, &err));
	/* The process that lets the disk confirm it takes the mark away. */
	for (int i = 0; i < 5000 && review_cut(made) != REVIEW_WHOLE; i++)
		(void)usleep(1000);
	assert_int_equal(review_cut(made), REVIEW_WHOLE);
	review_close(made);
	made = reopen(place, NULL);
	assert_int_equal(made->meta.counts.added, 3);
	review_close(made);
}

static void a_session_that_has_ended_holds_no_lock(void **state)
{
	const struct place *place = *state;
	const struct review_counts counts = {.added = 1};
	enum { SESSIONS = 50 }; /* a process that closed it too late did so in 3 of 60 */
	struct err err;

	for (int i = 0; i < SESSIONS; i++) {
		struct review *made = make(place), *found = reopen(place, made->meta.id);

		assert_true(review_begin(made, &err));
		assert_true(review_end(made, &counts, &err));
		review_close(made);
		auto_close int lock = openat(found->folder, "lock", O_RDONLY | O_CLOEXEC);
		assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
		review_close(found);
	}
}

/* Layers in memory. */

enum { STOPS_MAX = 4000 };

static void memory_name(const struct review *review, const char *rest, char path[96])
{
	(void)snprintf(path, 96, "/dev/shm/glovebox-review-%s%s", review->meta.id, rest);
}

static void memory_write(const struct review *review, const char *rest, const char *text)
{
	char path[96];

	memory_name(review, rest, path);
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static bool memory_holds(const struct review *review, const char *rest, const char *text)
{
	char path[96], data[64] = "";

	memory_name(review, rest, path);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	assert_true(read(fd, data, sizeof(data) - 1) >= 0);
	(void)close(fd);
	return strcmp(data, text) == 0;
}

/* As a restart of the machine does. */
static void memory_goes(const struct review *review)
{
	char path[96];

	memory_name(review, "", path);
	fd_folder_remove(path);
	assert_int_equal(access(path, F_OK), -1);
}

/* A layer whose trees lie in memory, with the file `f`. */
static struct review *make_in_memory(const struct place *place)
{
	static const char *const folders[] = {"", "/0", "/0/upper"};
	struct review *review = make(place);
	char path[96];

	review->meta.memory = true;
	review->meta.most = 1 << 20;
	memory_name(review, "", in_memory);
	for (size_t i = 0; i < UNIT_COUNT(folders); i++) {
		memory_name(review, folders[i], path);
		if (mkdir(path, 0700) < 0) {
			review_close(review);
			unit_skip("nothing can be written to /dev/shm");
		}
	}
	memory_write(review, "/0/upper/f", "one");
	return review;
}

static void session(struct review *review, bool writes)
{
	const struct review_counts counts = {.added = 1};
	struct err err;

	review->written = writes;
	assert_true(review_begin(review, &err));
	if (!review_end(review, &counts, &err))
		fail_msg("%s", err.text);
}

/* Close REVIEW and open it again, locked. */
static struct review *again(const struct place *place, struct review *review)
{
	char id[REVIEW_ID];
	struct err err;

	(void)snprintf(id, sizeof(id), "%s", review->meta.id);
	review_close(review);
	struct review *found = reopen(place, id);
	if (!review_lock(found, "glovebox review", &err))
		fail_msg("%s", err.text);
	return found;
}

static void restored(struct review *review, const char *says)
{
	struct buf told;
	struct err err;

	buf_init(&told, 4096);
	if (!review_restore(review, &told, &err))
		fail_msg("%s", err.text);
	if (says != NULL ? strstr(told.data, says) == NULL : told.size > 0)
		fail_msg("it says: %s", told.data);
	buf_fini(&told);
}

static void not_restored(struct review *review, const char *why)
{
	struct buf told;
	struct err err;

	buf_init(&told, 4096);
	assert_false(review_restore(review, &told, &err));
	assert_non_null(strstr(err.text, why));
	assert_int_equal(told.size, 0);
	buf_fini(&told);
}

static void a_saved_layer_outlives_its_memory(void **state)
{
	const struct place *place = *state;
	struct review *review = make_in_memory(place);
	char rest[96];
	struct err err;

	assert_false(review_is_saved(review));
	session(review, true);
	assert_true(review_is_saved(review));
	restored(review, NULL);
	memory_goes(review);
	review = again(place, review);
	restored(review, "is there again, as it was saved");
	assert_true(memory_holds(review, "/0/upper/f", "one"));
	assert_int_equal(review_cut(review), REVIEW_WHOLE);
	assert_true(review_is_saved(review));
	/* A killed process has left some of both. */
	memory_name(review, "/0/upper/f", rest);
	assert_int_equal(unlink(rest), 0);
	memory_name(review, "/0/upper", rest);
	assert_int_equal(rmdir(rest), 0);
	memory_name(review, ".new", rest);
	assert_int_equal(mkdir(rest, 0700), 0);
	restored(review, "is there again, as it was saved");
	assert_true(memory_holds(review, "/0/upper/f", "one"));
	assert_int_equal(access(rest, F_OK), -1);
	assert_int_equal(mkdir(rest, 0700), 0);
	assert_true(review_drop(review, &err));
	assert_int_equal(access(rest, F_OK), -1);
	assert_int_equal(faccessat(review->folder, "saved", F_OK, 0), -1);
	restored(review, NULL); /* there is nothing to build */
	review_close(review);
}

static void what_came_after_it_was_saved_is_told(void **state)
{
	const struct place *place = *state;
	struct review *review = make_in_memory(place);
	struct err err;

	session(review, true);
	assert_true(review_begin(review, &err));
	memory_write(review, "/0/upper/f", "two");
	review = again(place, review); /* the session was killed */
	assert_false(review_is_saved(review));
	assert_int_equal(review_cut(review), REVIEW_WHOLE);
	restored(review, NULL);
	assert_true(memory_holds(review, "/0/upper/f", "two"));
	memory_goes(review);
	restored(review, "A session in it wrote after that, which is lost.");
	assert_true(memory_holds(review, "/0/upper/f", "one"));
	assert_int_equal(review_cut(review), REVIEW_OLDER);
	review = again(place, review);
	assert_int_equal(review_cut(review), REVIEW_OLDER);
	/* A session that writes nothing saves it all the same: it was not as it was saved. */
	session(review, false);
	assert_true(review_is_saved(review));
	assert_int_equal(review_cut(review), REVIEW_WHOLE);
	assert_true(review_drop(review, &err));
	review_close(review);
}

static void a_session_that_writes_nothing_saves_nothing(void **state)
{
	const struct place *place = *state;
	struct review *review = make_in_memory(place);
	struct stat before, after;
	struct err err;

	session(review, true);
	assert_int_equal(fstatat(review->folder, "saved", &before, 0), 0);
	session(review, false);
	assert_int_equal(fstatat(review->folder, "saved", &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	assert_true(review_is_saved(review));
	assert_true(review_drop(review, &err));
	review_close(review);
}

static void a_dropped_path_does_not_come_back(void **state)
{
	const struct place *place = *state;
	struct review *review = make_in_memory(place);
	char path[96];
	struct err err;

	memory_write(review, "/0/upper/g", "g");
	session(review, true);
	(void)snprintf(path, sizeof(path), "%s/f", place->work);
	if (!review_drop_path(review, path, &err))
		fail_msg("%s", err.text);
	memory_goes(review);
	restored(review, "is there again, as it was saved");
	assert_true(memory_holds(review, "/0/upper/g", "g"));
	assert_false(memory_holds(review, "/0/upper/f", "one"));
	assert_int_equal(review_cut(review), REVIEW_WHOLE);
	/* Over the limit it cannot be saved: that is said, and it is dropped in memory. */
	review->meta.most = 0;
	memory_write(review, "/0/upper/h", "h");
	(void)snprintf(path, sizeof(path), "%s/g", place->work);
	assert_false(review_drop_path(review, path, &err));
	assert_non_null(strstr(err.text, "would bring it back"));
	assert_false(review_is_saved(review));
	assert_false(memory_holds(review, "/0/upper/g", "g"));
	assert_true(review_drop(review, &err));
	review_close(review);
}

static void a_layer_over_the_limit_stays_in_memory(void **state)
{
	const struct place *place = *state;
	struct review *review = make_in_memory(place);
	const struct review_counts counts = {.added = 1};
	struct err err;

	review->meta.most = 2;
	review->written = true;
	assert_true(review_begin(review, &err));
	assert_false(review_end(review, &counts, &err));
	assert_non_null(strstr(review->unsaved, "limits.tmp"));
	assert_false(review_is_saved(review));
	assert_int_equal(faccessat(review->folder, "saved.tmp", F_OK, 0), -1);
	assert_true(memory_holds(review, "/0/upper/f", "one"));
	memory_goes(review);
	review = again(place, review);
	not_restored(review, "before it was saved");
	assert_true(review_drop(review, &err));
	review_close(review);
}

static void damage_is_a_sentence_and_builds_nothing(void **state)
{
	const struct place *place = *state;
	struct review *review = make_in_memory(place);
	char path[96];
	struct err err;

	session(review, true);
	memory_goes(review);
	auto_close int saved = openat(review->folder, "saved", O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(saved, "?", 1, 80), 1);
	not_restored(review, "is damaged");
	assert_int_equal(unlinkat(review->folder, "saved", 0), 0);
	assert_int_equal(mkfifoat(review->folder, "saved", 0600), 0);
	not_restored(review, "is damaged");
	assert_int_equal(unlinkat(review->folder, "saved", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", review->folder, "saved"), 0);
	not_restored(review, "glovebox drop");
	memory_name(review, "", path);
	assert_int_equal(access(path, F_OK), -1);
	memory_name(review, ".new", path);
	assert_int_equal(access(path, F_OK), -1);
	assert_true(review_drop(review, &err));
	review_close(review);
}

static bool end_now(struct review *review)
{
	const struct review_counts counts = {.added = 1};
	struct err err;

	return review_end(review, &counts, &err);
}

static bool restore_now(struct review *review)
{
	struct buf told;
	struct err err;

	buf_init(&told, 4096);
	const bool fine = review_restore(review, &told, &err);
	buf_fini(&told);
	return fine;
}

/* Run ACT in a process that is killed after that many stops. True: it has ended before. */
static bool killed(bool (*act)(struct review *review), struct review *review, unsigned stops)
{
	int status;

	const pid_t pid = fork();
	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		_exit(!act(review));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; i < stops && WIFSTOPPED(status);) {
		/* The end of the process with walls is no stop of its own. */
		const int sent = WSTOPSIG(status) == SIGCHLD ? SIGCHLD : 0;

		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, sent), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		i += sent == 0;
	}
	if (!WIFSTOPPED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return true;
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return false;
}

static void killed_while_it_is_built_it_is_built_again(void **state)
{
	const struct place *place = *state;
	struct review *review = make_in_memory(place);
	char path[96];
	struct err err;
	bool ended = false;

	session(review, true);
	for (unsigned stops = 0; !ended && stops < STOPS_MAX; stops++) {
		memory_goes(review);
		ended = killed(restore_now, review, stops);
		assert_true(restore_now(review));
		if (!memory_holds(review, "/0/upper/f", "one"))
			fail_msg("after %u stops it is not there", stops);
	}
	assert_true(ended);
	assert_true(review_drop(review, &err));
	memory_name(review, ".new", path);
	assert_int_equal(access(path, F_OK), -1);
	review_close(review);
}

static void killed_at_any_moment_the_old_or_the_new_is_saved(void **state)
{
	const struct place *place = *state;
	struct review *review = make_in_memory(place);
	char before[16] = "one", now[16];
	struct err err;
	bool ended = false, old = false, new = false;

	session(review, true);
	for (unsigned stops = 0; !ended && stops < STOPS_MAX; stops++) {
		assert_true(review_begin(review, &err));
		(void)snprintf(now, sizeof(now), "%u", stops);
		memory_write(review, "/0/upper/f", now);
		review->written = true;
		ended = killed(end_now, review, stops);
		const bool is_saved = review_is_saved(review);
		memory_goes(review);
		restored(review, "is there again, as it was saved");
		if (memory_holds(review, "/0/upper/f", now)) {
			(void)snprintf(before, sizeof(before), "%s", now);
			new = true;
		} else if (!memory_holds(review, "/0/upper/f", before)) {
			fail_msg("after %u stops it is neither", stops);
		} else if (is_saved) {
			fail_msg("after %u stops the old one counts as the new", stops);
		} else {
			old = true;
		}
		assert_int_equal(review_cut(review), is_saved ? REVIEW_WHOLE : REVIEW_OLDER);
	}
	assert_true(ended && old && new);
	assert_true(review_drop(review, &err));
	review_close(review);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_layer_is_found_by_its_digits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_that_was_not_published_goes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_layer_is_not_widened_later, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_newest_open_one_is_meant_without_an_id,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_layer_in_use_names_its_user, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_damaged_description_is_a_sentence,
						setup, teardown),
		cmocka_unit_test_setup_teardown(another_folder_at_the_place_is_not_meant,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_dropped_layer_holds_nothing_and_is_listed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_path_is_dropped_in_the_tree_that_covers_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(old_ones_go_but_open_ones_stay, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_a_killed_process_left_goes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			an_unchanged_layer_leaves_its_folders_and_nothing_else, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_layer_that_holds_something_leaves_no_folders,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_workspace_may_have_any_number, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			one_that_left_its_folders_is_not_locked_under_its_name, setup,
			teardown),
		cmocka_unit_test_setup_teardown(the_folders_of_another_user_are_not_taken,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_session_of_another_boot_was_cut, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_session_that_has_ended_holds_no_lock,
						setup, teardown),
		CASE(a_saved_layer_outlives_its_memory),
		CASE(what_came_after_it_was_saved_is_told),
		CASE(a_session_that_writes_nothing_saves_nothing),
		CASE(a_dropped_path_does_not_come_back),
		CASE(a_layer_over_the_limit_stays_in_memory),
		CASE(damage_is_a_sentence_and_builds_nothing),
		CASE(killed_at_any_moment_the_old_or_the_new_is_saved),
		CASE(killed_while_it_is_built_it_is_built_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
