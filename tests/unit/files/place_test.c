/* place: where may be written, and what a write keeps, and races against exchanged links. */
#include "ground.h"

#include "base/fd.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int try_place(struct ground *here, const char *path, bool make)
{
	struct place place;
	struct err err = {0};
	bool found;

	place_init(&place);
	found = files_place(here->files, path, make, &place, &err);
	place_fini(&place);
	return found ? 0 : err.code;
}

static void places_are_where_the_policy_lets_write(void **state)
{
	struct ground *here = *state;
	char path[256];

	ground_link(here, "../secret/new", "ws/out");
	ground_link(here, "src/new", "ws/in");
	ground_link(here, "../lib/new", "ws/to_lib");
	assert_int_equal(try_place(here, "src/a.c", false), 0);
	assert_int_equal(try_place(here, "src/new", false), 0);
	assert_int_equal(try_place(here, "in", false), 0);
	assert_int_equal(try_place(here, "src", false), EISDIR);
	assert_int_equal(try_place(here, ".", false), EISDIR);
	assert_int_equal(try_place(here, "out", false), ENOENT);
	assert_int_equal(try_place(here, "to_lib", false), EROFS);
	assert_int_equal(try_place(here, "../lib/lib.h", false), EROFS);
	assert_int_equal(try_place(here, "../docs/a.txt", false), EROFS);
	assert_int_equal(try_place(here, "../docs/a.md", false), 0);
	assert_int_equal(try_place(here, "blocked/x", false), ENOENT);
	assert_int_equal(try_place(here, "/etc/x", true), ENOENT);
	assert_int_equal(try_place(here, "deep/er/x", false), ENOENT);
	assert_int_equal(try_place(here, "deep/er/x", true), 0);
	ground_at(here, "ws/deep/er", path);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(try_place(here, "blocked/deep/x", true), ENOENT);
	assert_int_equal(try_place(here, "../lib/deep/x", true), EROFS);
	ground_at(here, "lib/deep", path);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(try_place(here, "src/a.c/x", true), ENOTDIR);
}

static void a_new_file_never_replaces(void **state)
{
	struct ground *here = *state;
	struct place place;
	struct err err = {0};

	place_init(&place);
	assert_true(files_place(here->files, "new", true, &place, &err));
	assert_false(place.exists);
	assert_true(place_write(&place, STR("first\n"), NULL, &err));
	assert_true(place.exists);
	ground_assert_holds(here, "ws/new", "first\n");
	assert_false(place_write(&place, STR("second\n"), NULL, &err));
	assert_int_equal(err.code, EEXIST);
	ground_assert_holds(here, "ws/new", "first\n");
	place_fini(&place);
}

static int count_names(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 2;
}

static bool replace_at(struct ground *here, const char *path, const char *content,
		       struct err *err)
{
	struct place place;
	struct buf old;
	struct stat st;
	char mark[FILES_MARK];
	bool ok;

	place_init(&place);
	buf_init(&old, 64 << 20);
	ok = files_place(here->files, path, false, &place, err) &&
	     place_read(&place, 64 << 20, &old, &st, err);
	if (ok) {
		files_mark(buf_str(&old), &st, mark);
		ok = place_write(&place, str_of(content), mark, err);
	}
	buf_fini(&old);
	place_fini(&place);
	return ok;
}

static void a_replaced_file_keeps_mode_owner_and_attributes(void **state)
{
	struct ground *here = *state;
	char path[256];
	char value[16] = {0};
	struct stat before, after;
	struct err err = {0};
	bool attributes;

	ground_at(here, "ws/src/a.c", path);
	assert_int_equal(chmod(path, 0751), 0);
	attributes = setxattr(path, "user.note", "kept", 4, 0) == 0;
	if (geteuid() == 0)
		assert_int_equal(chown(path, 12345, 54321), 0);
	assert_int_equal(stat(path, &before), 0);
	if (!replace_at(here, "src/a.c", "int b;\n", &err))
		fail_msg("%s", err.text);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_uid, before.st_uid);
	assert_int_equal(after.st_gid, before.st_gid);
	assert_true(after.st_ino != before.st_ino);
	if (attributes) {
		assert_int_equal(getxattr(path, "user.note", value, sizeof(value)), 4);
		assert_string_equal(value, "kept");
	}
	ground_assert_holds(here, "ws/src/a.c", "int b;\n");
	ground_at(here, "ws/src", path);
	assert_int_equal(count_names(path), 1);
}

/* Its end may take the file system a while: it is nobody's who waits for an answer. */
static void a_replaced_file_is_let_go_when_the_call_is_answered(void **state)
{
	struct ground *here = *state;
	struct err err = {0};
	struct stat st;
	char path[256];

	ground_at(here, "ws/src/a.c", path);
	auto_close int old = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(replace_at(here, "src/a.c", "one\n", &err));
	assert_int_equal(fstat(old, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	/* Its lock is the writer's still, and is not in the way of the next one. */
	assert_int_equal(flock(old, LOCK_EX | LOCK_NB), -1);
	assert_true(replace_at(here, "src/a.c", "two\n", &err));
	assert_int_equal(flock(old, LOCK_EX | LOCK_NB), 0);
	fd_close(&old);
	old = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(replace_at(here, "src/a.c", "three\n", &err));
	assert_int_equal(flock(old, LOCK_EX | LOCK_NB), -1);
	files_settle(here->files);
	assert_int_equal(flock(old, LOCK_EX | LOCK_NB), 0);
	ground_assert_holds(here, "ws/src/a.c", "three\n");
}

static void a_link_stays_and_its_target_is_written(void **state)
{
	struct ground *here = *state;
	char path[256];
	struct stat st;
	struct err err = {0};

	ground_link(here, "src/a.c", "ws/link");
	assert_true(replace_at(here, "link", "through\n", &err));
	ground_at(here, "ws/link", path);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	ground_assert_holds(here, "ws/src/a.c", "through\n");
}

static void a_file_that_changed_is_not_replaced(void **state)
{
	struct ground *here = *state;
	struct place place;
	struct err err = {0};

	place_init(&place);
	assert_true(files_place(here->files, "src/a.c", false, &place, &err));
	assert_false(place_write(&place, STR("x"), "0123456789abcdef", &err));
	assert_int_equal(err.code, EAGAIN);
	ground_assert_holds(here, "ws/src/a.c", "int a;\n");
	place_fini(&place);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
	struct ground *here = *state;
	pid_t pid = fork();
	int status;
	char path[256];

	/*
	 * A size limit stands for the full disk: writing fails in the middle of the
	 * content.
	 */
	if (pid == 0) {
		const struct rlimit limit = {1000, 1000};
		auto_free char *large = memory_alloc(5001);
		struct err err = {0};

		memset(large, 'x', 5000);
		(void)signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(1);
		if (replace_at(here, "src/a.c", large, &err))
			_exit(2);
		_exit(err.code == EFBIG && strstr(err.text, "unchanged") ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	ground_assert_holds(here, "ws/src/a.c", "int a;\n");
	ground_at(here, "ws/src", path);
	assert_int_equal(count_names(path), 1);
}

/* The rights of a session that could write everything below the base. */
static struct value *rights_of_all(const struct ground *here)
{
	struct value *rights = value_new_object(), *roots = value_new_array();
	struct value *root = value_new_object();

	value_set_text(root, "path", here->base);
	value_set_boolean(root, "writable", true);
	value_append(roots, root);
	value_set(rights, "roots", roots);
	value_set(rights, "hidden", value_new_array());
	value_set(rights, "closed", value_new_array());
	return rights;
}

static void a_killed_writer_leaves_old_or_new_and_nothing_else(void **state)
{
	struct ground *here = *state;
	auto_free char *large = memory_alloc((1 << 20) + 1);
	auto_close int fd = memfd_create("log", MFD_CLOEXEC);
	auto_value struct value *rights = rights_of_all(here);
	struct undo_log log;
	char path[256];

	memset(large, 'n', 1 << 20);
	assert_true(fd >= 0);
	files_keep(here->files, &log);
	ground_at(here, "ws/src", path);
	for (int i = 0; i < 30; i++) {
		undo_log_begin(&log, fd, 1);
		pid_t pid = fork();
		struct timespec wait = {.tv_nsec = (i % 30) * 100000L};
		struct buf found;
		struct err err = {0};

		if (pid == 0) {
			(void)replace_at(here, "src/a.c", large, &err);
			_exit(0);
		}
		(void)nanosleep(&wait, NULL);
		(void)kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		buf_init(&found, 2 << 20);
		ground_at(here, "ws/src/a.c", path);
		assert_true(fd_read_file(path, 2 << 20, &found, &err));
		assert_true(found.size == 7 || found.size == 1 << 20);
		buf_fini(&found);
		assert_true(place_put_back(here->files, fd, rights, NULL));
		assert_int_equal(ftruncate(fd, 0), 0);
	}
	files_keep(here->files, NULL);
	ground_at(here, "ws/src", path);
	assert_int_equal(count_names(path), 1);
}

static void note_opened(struct undo_log *log, const char *absolute, mode_t mode)
{
	const struct undo_note note = {.kind = UNDO_NOTE_OPENED,
				       .mode = mode,
				       .path = str_of(absolute)};
	struct err err = {0};

	assert_true(undo_log_note(log, &note, &err));
}

/* Make the folder PATH with the permissions OPEN, and note that it gets MODE in the end. */
static void put_opened(struct ground *here, struct undo_log *log, const char *path,
		       mode_t open, mode_t mode)
{
	char absolute[256];

	ground_folder(here, path);
	ground_at(here, path, absolute);
	note_opened(log, absolute, mode);
	assert_int_equal(chmod(absolute, open), 0);
}

static mode_t mode_at(struct ground *here, const char *path)
{
	char absolute[256];
	struct stat st;

	ground_at(here, path, absolute);
	assert_int_equal(stat(absolute, &st), 0);
	return st.st_mode & 07777;
}

static void folders_that_a_killed_writer_had_opened_are_closed(void **state)
{
	struct ground *here = *state;
	auto_close int fd = memfd_create("log", MFD_CLOEXEC);
	auto_value struct value *rights = rights_of_all(here);
	const struct undo_note closed = {.kind = UNDO_NOTE_CLOSED};
	struct undo_log log;
	struct err err = {0};
	char path[256];

	assert_true(fd >= 0);
	undo_log_begin(&log, fd, 1);
	files_keep(here->files, &log);
	put_opened(here, &log, "ws/m", 0755, 0555);
	put_opened(here, &log, "ws/m/x", 0700, 0);
	/* Somebody has given other permissions to this one meanwhile. */
	put_opened(here, &log, "ws/k", 0711, 0555);
	/* Of several permissions for one folder the last ones count. */
	put_opened(here, &log, "ws/n", 0755, 0555);
	ground_at(here, "ws/n", path);
	note_opened(&log, path, 0755);
	/* Other writes use the log as well, and leave these notes in it. */
	assert_true(replace_at(here, "src/a.c", "new", &err));
	assert_true(undo_log_is_unfinished(fd));
	assert_true(place_put_back(here->files, fd, rights, NULL));
	assert_int_equal(mode_at(here, "ws/m"), 0555);
	assert_int_equal(mode_at(here, "ws/m/x"), 0);
	assert_int_equal(mode_at(here, "ws/n"), 0755);
	assert_int_equal(mode_at(here, "ws/k"), 0711);
	assert_false(undo_log_is_unfinished(fd));
	/* A session that may not write there leaves it to another one. */
	undo_log_begin(&log, fd, 1);
	put_opened(here, &log, "secret/s", 0755, 0555);
	assert_false(place_put_back(here->files, fd, rights, NULL));
	assert_int_equal(mode_at(here, "secret/s"), 0755);
	assert_true(undo_log_is_unfinished(fd));
	assert_true(undo_log_note(&log, &closed, &err));
	assert_false(undo_log_is_unfinished(fd));
	files_keep(here->files, NULL);
	/* An ordinary user must be able to remove them. */
	ground_at(here, "ws/m", path);
	assert_int_equal(chmod(path, 0755), 0);
	ground_at(here, "ws/m/x", path);
	assert_int_equal(chmod(path, 0755), 0);
}

static void none_of_eight_writers_at_once_is_lost(void **state)
{
	struct ground *here = *state;
	pid_t pids[8];
	struct buf found;
	struct err err = {0};
	char path[256];

	ground_put(here, "ws/count", "");
	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] != 0)
			continue;
		for (int round = 0; round < 10;) {
			struct place place;
			struct buf old;
			struct stat st;
			char mark[FILES_MARK];

			place_init(&place);
			buf_init(&old, 4096);
			if (!files_place(here->files, "count", false, &place, &err) ||
			    !place_read(&place, 4096, &old, &st, &err))
				_exit(1);
			files_mark(buf_str(&old), &st, mark);
			buf_addc(&old, (char)('a' + i));
			if (place_write(&place, buf_str(&old), mark, &err))
				round++;
			else if (err.code != EAGAIN)
				_exit(2);
			buf_fini(&old);
			place_fini(&place);
		}
		_exit(0);
	}
	for (int i = 0; i < 8; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	buf_init(&found, 4096);
	ground_at(here, "ws/count", path);
	assert_true(fd_read_file(path, 4096, &found, &err));
	assert_int_equal(found.size, 80);
	buf_fini(&found);
}

static void large_files_are_marked_by_their_times(void **state)
{
	struct stat st = {.st_ino = 5, .st_size = FILES_HASHED_MAX + 1};
	char mark[FILES_MARK];
	char other[FILES_MARK];

	(void)state;
	files_mark(STR(""), &st, mark);
	assert_int_equal(strncmp(mark, "stat:", 5), 0);
	st.st_mtim.tv_nsec = 1;
	files_mark(STR(""), &st, other);
	assert_string_not_equal(mark, other);
	st.st_size = 3;
	files_mark(STR("abc"), &st, mark);
	assert_string_equal(mark, "06b05ab6733a618578af5f94892f3950");
}

struct exchange {
	char inside[256], link[256];
	atomic_bool stop;
	atomic_ulong turns;
};

static void *exchange_run(void *context)
{
	struct exchange *exchange = context;

	while (!exchange->stop) {
		if (renameat2(AT_FDCWD, exchange->inside, AT_FDCWD, exchange->link,
			      RENAME_EXCHANGE) == 0)
			exchange->turns++;
	}
	return NULL;
}

enum { RACES = 30000 };

static void raced_paths_never_lead_out(void **state)
{
	struct ground *here = *state;
	struct exchange exchange = {.stop = false};
	pthread_t thread;
	int reached = 0;
	char path[256];

	ground_folder(here, "ws/dir");
	ground_put(here, "ws/dir/data", "inside\n");
	ground_link(here, "../secret", "ws/link");
	ground_at(here, "ws/dir", exchange.inside);
	ground_at(here, "ws/link", exchange.link);
	assert_int_equal(pthread_create(&thread, NULL, exchange_run, &exchange), 0);
	for (int i = 0; i < RACES; i++) {
		char found[64];
		int code = ground_reach(here, "dir/data", FILES_READ, found);

		if (strstr(found, "SECRET"))
			fail_msg("try %d read the file outside", i);
		if (code == 0)
			reached++;
		if (i % 100 == 0) {
			struct place place;
			struct err err = {0};

			place_init(&place);
			(void)snprintf(path, sizeof(path), "dir/new%d", i);
			if (files_place(here->files, path, false, &place, &err))
				(void)place_write(&place, STR("x"), NULL, &err);
			place_fini(&place);
		}
	}
	exchange.stop = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	ground_at(here, "secret", path);
	assert_int_equal(count_names(path), 1);
	assert_true(exchange.turns > 1000);
	assert_true(reached > 100);
}

static void a_raced_last_name_never_leads_out(void **state)
{
	struct ground *here = *state;
	struct exchange exchange = {.stop = false};
	pthread_t thread;

	ground_put(here, "ws/file", "inside\n");
	ground_link(here, "../secret/data", "ws/filelink");
	ground_at(here, "ws/file", exchange.inside);
	ground_at(here, "ws/filelink", exchange.link);
	assert_int_equal(pthread_create(&thread, NULL, exchange_run, &exchange), 0);
	for (int i = 0; i < RACES; i++) {
		char found[64];

		(void)ground_reach(here, "file", FILES_READ, found);
		if (strstr(found, "SECRET"))
			fail_msg("try %d read the file outside", i);
		if (i % 500 == 0) {
			struct err err = {0};

			(void)replace_at(here, "file", "inside\n", &err);
		}
	}
	exchange.stop = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	ground_assert_holds(here, "secret/data", "SECRET\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_set_up, ground_tear_down)
		TEST(places_are_where_the_policy_lets_write),
		TEST(a_new_file_never_replaces),
		TEST(a_replaced_file_keeps_mode_owner_and_attributes),
		TEST(a_replaced_file_is_let_go_when_the_call_is_answered),
		TEST(a_link_stays_and_its_target_is_written),
		TEST(a_file_that_changed_is_not_replaced),
		TEST(a_full_disk_leaves_the_old_file),
		TEST(a_killed_writer_leaves_old_or_new_and_nothing_else),
		TEST(folders_that_a_killed_writer_had_opened_are_closed),
		TEST(none_of_eight_writers_at_once_is_lost),
		TEST(large_files_are_marked_by_their_times),
		TEST(raced_paths_never_lead_out),
		TEST(a_raced_last_name_never_leads_out),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	return failed +
	       (ground_refuse_openat2()
			? cmocka_run_group_tests_name("without openat2", tests, NULL, NULL)
			: 1);
}
