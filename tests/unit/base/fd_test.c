/* Tests of base/fd. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void closing_keeps_errno_and_is_done_once(void **state)
{
	int ends[2], held;

	(void)state;
	assert_true(fd_pipe(ends, NULL));
	held = ends[0];
	errno = ENOTTY;
	fd_close(&ends[0]);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(ends[0], -1);
	assert_false(is_open(held));
	fd_close(&ends[0]);
	held = fd_take(&ends[1]);
	assert_int_equal(ends[1], -1);
	assert_true(is_open(held));
	fd_close(&held);
}

static void descriptors_close_at_the_end_of_their_scope(void **state)
{
	int seen;

	(void)state;
	{
		auto_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		auto_close int none = -1;

		assert_int_equal(none, -1);
		seen = fd;
		assert_true(is_open(seen));
	}
	assert_false(is_open(seen));
}

static void pipes_are_close_on_exec(void **state)
{
	int ends[2];

	(void)state;
	assert_true(fd_pipe(ends, NULL));
	assert_int_equal(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(ends[1], F_GETFD), FD_CLOEXEC);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void memory_files_are_read_back(void **state)
{
	struct buf buf;
	struct err err;
	int fd = -1;

	(void)state;
	buf_init(&buf, 100);
	assert_true(fd_memory_file("test", STR("con\0tent"), &fd, &err));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(fd_read_all(fd, &buf, "test", &err));
	assert_true(str_equal(buf_str(&buf), STR("con\0tent")));
	fd_close(&fd);
	assert_true(fd_memory_file("empty", (struct str){NULL, 0}, &fd, &err));
	buf_clear(&buf);
	assert_true(fd_read_all(fd, &buf, "empty", &err));
	assert_int_equal(buf.size, 0);
	fd_close(&fd);
	buf_fini(&buf);
}

static void reading_stops_at_the_ceiling_with_nothing_added(void **state)
{
	struct buf buf;
	struct err err;
	int fd = -1;

	(void)state;
	buf_init(&buf, 8);
	buf_adds(&buf, "xyz");
	assert_true(fd_memory_file("test", STR("12345"), &fd, &err));
	assert_true(fd_read_all(fd, &buf, "test", &err));
	assert_string_equal(buf.data, "xyz12345");
	fd_close(&fd);
	buf_truncate(&buf, 3);
	assert_true(fd_memory_file("test", STR("123456"), &fd, &err));
	assert_false(fd_read_all(fd, &buf, "test", &err));
	assert_int_equal(err.code, EFBIG);
	assert_non_null(strstr(err.text, "test: larger than the 5 bytes"));
	assert_string_equal(buf.data, "xyz");
	assert_true(buf.overflowed);
	fd_close(&fd);
	buf_fini(&buf);
}

static void errors_name_the_source(void **state)
{
	auto_close int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct buf buf;
	struct err err;

	(void)state;
	buf_init(&buf, 100);
	buf_adds(&buf, "old");
	assert_false(fd_read_all(fd, &buf, "the source", &err));
	assert_int_equal(err.code, EBADF);
	assert_non_null(strstr(err.text, "the source: "));
	assert_string_equal(buf.data, "old");
	assert_false(fd_write_all(-1, "x", 1, &err));
	assert_int_equal(err.code, EBADF);
	assert_true(fd_write_all(-1, NULL, 0, &err));
	assert_false(fd_set_blocking(-1, false, &err));
	assert_int_equal(err.code, EBADF);
	buf_fini(&buf);
}

enum { MUCH = 1 << 20 };

static void *write_much(void *argument)
{
	int *fd = argument;
	auto_free char *data = memory_alloc(MUCH);
	bool written;

	memset(data, 'm', MUCH);
	written = fd_write_all(*fd, data, MUCH, NULL);
	fd_close(fd);
	return written ? argument : NULL;
}

static void both_ends_wait_without_blocking_descriptors(void **state)
{
	struct buf buf;
	struct err err;
	pthread_t writer;
	void *written;
	int ends[2];

	(void)state;
	buf_init(&buf, 2 * MUCH);
	assert_true(fd_pipe(ends, &err));
	assert_true(fd_set_blocking(ends[0], false, &err));
	assert_true(fd_set_blocking(ends[1], false, &err));
	assert_true(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(pthread_create(&writer, NULL, write_much, &ends[1]), 0);
	assert_true(fd_read_all(ends[0], &buf, "pipe", &err));
	assert_int_equal(pthread_join(writer, &written), 0);
	assert_non_null(written);
	assert_int_equal(buf.size, MUCH);
	assert_true(fd_set_blocking(ends[0], true, &err));
	assert_false(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
	fd_close(&ends[0]);
	buf_fini(&buf);
}

struct folder {
	char path[64], file[96], fifo[96];
};

static void folder_make(struct folder *folder)
{
	int fd;

	(void)snprintf(folder->path, sizeof(folder->path), "/tmp/fd_test.XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	(void)snprintf(folder->file, sizeof(folder->file), "%s/file", folder->path);
	(void)snprintf(folder->fifo, sizeof(folder->fifo), "%s/fifo", folder->path);
	fd = open(folder->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd_write_all(fd, "12345", 5, NULL));
	fd_close(&fd);
	assert_int_equal(mkfifo(folder->fifo, 0600), 0);
}

static void remove_folder(const struct folder *folder)
{
	(void)unlink(folder->file);
	(void)unlink(folder->fifo);
	(void)rmdir(folder->path);
}

static void files_by_name_are_regular_and_small_enough(void **state)
{
	struct folder folder = {{0}, {0}, {0}};
	struct buf buf;
	struct err err;

	(void)state;
	folder_make(&folder);
	buf_init(&buf, 100);
	assert_true(fd_read_file(folder.file, 5, &buf, &err));
	assert_string_equal(buf.data, "12345");
	assert_false(fd_read_file(folder.file, 4, &buf, &err));
	assert_int_equal(err.code, EFBIG);
	assert_string_equal(buf.data, "12345");
	assert_false(fd_read_file(folder.fifo, 5, &buf, &err));
	assert_int_equal(err.code, EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_false(fd_read_file(folder.path, 5, &buf, &err));
	assert_int_equal(err.code, EISDIR);
	assert_false(fd_read_file("/nonexistent/x", 5, &buf, &err));
	assert_int_equal(err.code, ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x"));
	buf_clear(&buf);
	/* Its size is said to be 0, its content is not. */
	assert_true(fd_read_file("/proc/self/comm", 100, &buf, &err));
	assert_true(buf.size > 0);
	buf_fini(&buf);
	remove_folder(&folder);
}

static void a_text_is_written_to_a_file_that_is_there(void **state)
{
	char path[] = "/tmp/fd-test-XXXXXX";
	auto_close int fd = mkstemp(path);
	struct err err = {0};
	struct buf text;

	(void)state;
	assert_true(fd >= 0);
	buf_init(&text, 16);
	assert_true(fd_write_file(path, "deny", &err));
	assert_true(fd_read_file(path, 16, &text, &err));
	assert_string_equal(text.data, "deny");
	buf_fini(&text);
	assert_int_equal(unlink(path), 0);
	assert_false(fd_write_file(path, "deny", &err));
	assert_int_equal(err.code, ENOENT);
}

/* errno is what an earlier call left, unless the write itself says why. */
static void a_text_that_is_written_in_part_has_a_reason(void **state)
{
	char path[] = "/tmp/fd-test-XXXXXX";
	auto_close int fd = mkstemp(path);
	struct rlimit before, small;
	struct err err = {0};

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 2;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	errno = 0;
	const bool written = fd_write_file(path, "deny", &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(unlink(path), 0);
	assert_false(written);
	assert_int_equal(err.code, EIO);
}

static void a_descriptor_tells_where_it_lies(void **state)
{
	char path[] = "/tmp/fd-test-XXXXXX", name[FD_NAME_ROOM];
	auto_close int fd = mkstemp(path);
	auto_close int again = -1;
	int ends[2];
	struct buf place, small;
	struct stat held, opened;

	(void)state;
	assert_true(fd >= 0);
	buf_init(&place, PATH_MAX);
	buf_init(&small, sizeof(path) - 2);
	assert_true(fd_real_path(fd, &place));
	assert_string_equal(place.data, path);
	again = open(fd_name(fd, name), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &held), 0);
	assert_int_equal(fstat(again, &opened), 0);
	assert_int_equal(held.st_ino, opened.st_ino);
	assert_true(buf_adds(&small, "kept"));
	assert_false(fd_real_path(fd, &small));
	assert_int_equal(errno, ENAMETOOLONG);
	assert_string_equal(small.data, "kept");
	assert_int_equal(unlink(path), 0);
	assert_true(fd_real_path(fd, &place));
	assert_non_null(strstr(place.data, " (deleted)"));
	assert_true(fd_pipe(ends, NULL));
	assert_false(fd_real_path(ends[0], &place));
	assert_int_equal(errno, ENOENT);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	assert_false(fd_real_path(-1, &place));
	assert_int_equal(errno, ENOENT);
	buf_fini(&small);
	buf_fini(&place);
}

static void beneath_a_folder_no_link_is_followed(void **state)
{
	auto_close int folder = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int inside = fd_open_beneath(folder, "status", O_RDONLY);
	auto_close int named = fd_open_beneath(folder, "status", O_PATH);

	(void)state;
	assert_true(inside >= 0);
	assert_true(named >= 0);
	assert_int_equal(fd_open_beneath(folder, "cwd/.", O_RDONLY), -1);
	assert_int_equal(fd_open_beneath(folder, "../version", O_RDONLY), -1);
	assert_int_equal(fd_open_beneath(folder, "exe", O_RDONLY), -1);
}

/* Folders that are held. */

enum { NESTED = 12, HELD_ROUNDS = 400, HELD_PATIENCE_S = 60 };

/* A folder of the test's. */
static int test_folder(char path[])
{
	assert_non_null(mkdtemp(path));
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* In a process of its own: remove each folder in FOLDER that nobody holds, until it is killed. */
static pid_t begin_sweeper(int folder)
{
	pid_t child = fork();

	if (child != 0)
		return child;
	(void)alarm(HELD_PATIENCE_S);
	for (;;) {
		struct fd_names names;

		fd_names_read(&names, folder, HELD_ROUNDS, true);
		for (size_t i = 0; i < names.count; i++) {
			auto_close int fd =
				fd_hold(folder, names.items[i], LOCK_EX | LOCK_NB, 0);

			if (fd >= 0)
				fd_folder_remove_at(folder, names.items[i]);
		}
		fd_names_fini(&names);
	}
}

static void end_sweeper(pid_t child)
{
	int status;

	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void assert_is_named(int folder, const char *name, int fd)
{
	struct stat held, named;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &held), 0);
	assert_int_equal(fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(held.st_ino, named.st_ino);
	assert_int_equal(held.st_mode & ALLPERMS, 0700);
}

static void a_folder_that_is_held_is_not_swept(void **state)
{
	char path[] = "/tmp/fd-test-XXXXXX";
	auto_close int folder = test_folder(path);
	pid_t child = begin_sweeper(folder);

	(void)state;
	for (int i = 0; i < HELD_ROUNDS; i++) {
		char name[] = "new-XXXXXX";
		int fresh = fd_hold_new(folder, name, LOCK_EX, 0700);
		int known = fd_hold(folder, "known", LOCK_SH, 0700);

		assert_is_named(folder, name, fresh);
		assert_is_named(folder, "known", known);
		fd_close(&fresh);
		fd_close(&known);
	}
	end_sweeper(child);
	fd_folder_remove(path);
}

/* In a process of its own: lock each new folder in FOLDER for ever, until it is killed. */
static pid_t begin_taker(int folder, const char *path)
{
	const int watch = inotify_init1(IN_CLOEXEC);
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	pid_t child;

	assert_true(inotify_add_watch(watch, path, IN_CREATE) >= 0);
	child = fork();
	while (child == 0) {
		ssize_t size;

		(void)alarm(HELD_PATIENCE_S);
		size = read(watch, events, sizeof(events));
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const void *)(events + at);
			const int fd = openat(folder, event->name, O_RDONLY | O_CLOEXEC);

			(void)flock(fd, LOCK_EX | LOCK_NB);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	(void)close(watch);
	return child;
}

static void nobody_waits_for_a_folder_that_another_took(void **state)
{
	char path[] = "/tmp/fd-test-XXXXXX";
	auto_close int folder = test_folder(path);
	pid_t child = begin_taker(folder, path);

	(void)state;
	(void)alarm(HELD_PATIENCE_S);
	for (int i = 0; i < HELD_ROUNDS; i++) {
		char name[] = "new-XXXXXX";
		int fresh = fd_hold_new(folder, name, LOCK_EX, 0700);

		assert_true(fresh >= 0 || errno == EBUSY);
		fd_close(&fresh);
	}
	(void)alarm(0);
	end_sweeper(child);
	fd_folder_remove(path);
}

static void a_folder_is_held_by_its_name_and_not_by_what_it_was(void **state)
{
	char path[] = "/tmp/fd-test-XXXXXX", name[] = "aXXXXXX";
	auto_close int folder = test_folder(path);
	int held = fd_hold_new(folder, name, LOCK_EX, 0700), status, ends[2];
	char word;
	pid_t child;

	(void)state;
	assert_true(held >= 0);
	assert_int_equal(fd_hold(folder, name, LOCK_SH | LOCK_NB, 0), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	assert_int_equal(fd_hold(folder, "missing", LOCK_SH, 0), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(symlinkat(name, folder, "link"), 0);
	assert_int_equal(fd_hold(folder, "link", LOCK_SH, 0700), -1);
	assert_int_equal(errno, ENOTDIR);
	assert_true(fd_pipe(ends, NULL));
	child = fork();
	if (child == 0) {
		struct stat st;

		(void)alarm(HELD_PATIENCE_S);
		(void)close(held);
		(void)!write(ends[1], "x", 1);
		/* This waits for the lock of a folder that has another name when it comes. */
		const int fd = fd_hold(folder, name, LOCK_EX, 0);
		_exit(fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & ALLPERMS) == 0711
			      ? 0
			      : 1);
	}
	assert_int_equal(read(ends[0], &word, 1), 1);
	/* The name is never missing: a child that came later would be told so. */
	assert_int_equal(mkdirat(folder, "next", 0711), 0);
	assert_int_equal(renameat2(folder, "next", folder, name, RENAME_EXCHANGE), 0);
	fd_close(&held);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	fd_folder_remove(path);
}

static void a_folder_is_removed_by_two_descriptors(void **state)
{
	char path[] = "/tmp/fd-test-XXXXXX";
	int folder = test_folder(path);
	struct rlimit before, few;

	(void)state;
	for (int i = 0; i < NESTED; i++) {
		int next;

		assert_int_equal(mkdirat(folder, "beside", 0500), 0);
		assert_int_equal(symlinkat(path, folder, "link"), 0);
		assert_int_equal(mkdirat(folder, "next", 0700), 0);
		next = openat(folder, "next", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		fd_close(&folder);
		folder = next;
	}
	fd_close(&folder);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	folder = dup(STDOUT_FILENO); /* the lowest number that is free */
	assert_true(folder >= 0);
	few.rlim_cur = (rlim_t)folder + 2;
	fd_close(&folder);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	fd_folder_remove(path);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_keeps_errno_and_is_done_once),
		cmocka_unit_test(descriptors_close_at_the_end_of_their_scope),
		cmocka_unit_test(pipes_are_close_on_exec),
		cmocka_unit_test(memory_files_are_read_back),
		cmocka_unit_test(reading_stops_at_the_ceiling_with_nothing_added),
		cmocka_unit_test(errors_name_the_source),
		cmocka_unit_test(both_ends_wait_without_blocking_descriptors),
		cmocka_unit_test(files_by_name_are_regular_and_small_enough),
		cmocka_unit_test(a_text_is_written_to_a_file_that_is_there),
		cmocka_unit_test(a_text_that_is_written_in_part_has_a_reason),
		cmocka_unit_test(beneath_a_folder_no_link_is_followed),
		cmocka_unit_test(a_descriptor_tells_where_it_lies),
		cmocka_unit_test(a_folder_that_is_held_is_not_swept),
		cmocka_unit_test(nobody_waits_for_a_folder_that_another_took),
		cmocka_unit_test(a_folder_is_held_by_its_name_and_not_by_what_it_was),
		cmocka_unit_test(a_folder_is_removed_by_two_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
