/*
 * files and places: what is reached, what is refused, what a write keeps, and races
 * against exchanged links.
 */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "runtime/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * base/ws (writable), base/ws/blocked (blocked), base/lib (readable), base/secret (in no
 * root).
 */
struct place_under_test {
	char base[64];
	char workspace[96];
	struct files *files;
};

static void at(struct place_under_test *here, const char *path, char out[256])
{
	(void)snprintf(out, 256, "%s/%s", here->base, path);
}

static void put(struct place_under_test *here, const char *path, const char *content)
{
	char absolute[256];

	at(here, path, absolute);
	auto_close int fd = open(absolute, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, content, strlen(content), NULL));
}

static void folder(struct place_under_test *here, const char *path)
{
	char absolute[256];

	at(here, path, absolute);
	assert_int_equal(mkdir(absolute, 0755), 0);
}

static void point(struct place_under_test *here, const char *target, const char *path)
{
	char absolute[256];

	at(here, path, absolute);
	assert_int_equal(symlink(target, absolute), 0);
}

static void assert_holds(struct place_under_test *here, const char *path, const char *content)
{
	char absolute[256];
	struct buf found;
	struct err err;

	at(here, path, absolute);
	buf_init(&found, 1 << 20);
	if (!fd_read_file(absolute, 1 << 20, &found, &err))
		fail_msg("%s", err.text);
	assert_string_equal(found.data, content);
	buf_fini(&found);
}

static int set_up(void **state)
{
	struct place_under_test *here = memory_alloc(sizeof(*here));
	char lib[96];
	char blocked[128];
	char pattern[96];
	struct err err;

	(void)snprintf(here->base, sizeof(here->base), "/tmp/glovebox-unit-XXXXXX");
	assert_non_null(mkdtemp(here->base));
	folder(here, "ws");
	folder(here, "ws/src");
	folder(here, "ws/blocked");
	folder(here, "lib");
	folder(here, "docs");
	folder(here, "secret");
	put(here, "ws/src/a.c", "int a;\n");
	put(here, "ws/blocked/key", "key\n");
	put(here, "lib/lib.h", "lib\n");
	put(here, "secret/data", "SECRET\n");
	put(here, "single", "one file\n");
	(void)snprintf(here->workspace, sizeof(here->workspace), "%s/ws", here->base);
	(void)snprintf(lib, sizeof(lib), "%s/lib", here->base);
	(void)snprintf(blocked, sizeof(blocked), "%s/blocked", here->workspace);
	(void)snprintf(pattern, sizeof(pattern), "%s/docs", here->base);
	char single[96];

	(void)snprintf(single, sizeof(single), "%s/single", here->base);
	const struct files_root roots[] = {{here->workspace, true, NULL},
					   {lib, false, NULL},
					   {pattern, true, "*.md"},
					   {single, false, NULL}};
	const char *const blocked_list[] = {blocked, NULL};

	assert_true(files_open(roots, COUNT(roots), here->workspace, blocked_list,
			       &here->files, &err));
	*state = here;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	(void)remove(path);
	return 0;
}

static int tear_down(void **state)
{
	struct place_under_test *here = *state;

	files_close(here->files);
	(void)nftw(here->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(here);
	return 0;
}

/* 0 when reached, else the code; the content's first bytes in FOUND when it is a file. */
static int reach(struct place_under_test *here, const char *path, enum files_want want,
		 char found[64])
{
	struct file file;
	struct err err = {0};
	int code = 0;

	file_init(&file);
	found[0] = '\0';
	if (!files_reach(here->files, path, want, &file, &err)) {
		code = err.code;
		assert_true(code != 0);
		assert_int_equal(file.fd, -1);
	} else if (want == FILES_READ) {
		ssize_t size = read(file.fd, found, 63);

		assert_true(size >= 0);
		found[size] = '\0';
	}
	file_fini(&file);
	return code;
}

static void assert_reach(struct place_under_test *here, const char *path,
			 enum files_want want, int code, const char *content)
{
	char found[64];
	int got = reach(here, path, want, found);

	if (got != code)
		fail_msg("%s: %d (%s) instead of %d", path, got, strerror(got), code);
	if (content)
		assert_string_equal(found, content);
}

static void reaches_what_lies_in_the_roots(void **state)
{
	struct place_under_test *here = *state;
	char path[256];

	assert_reach(here, "src/a.c", FILES_READ, 0, "int a;\n");
	assert_reach(here, "./src//../src/a.c", FILES_READ, 0, "int a;\n");
	at(here, "ws/src/a.c", path);
	assert_reach(here, path, FILES_READ, 0, "int a;\n");
	at(here, "lib/lib.h", path);
	assert_reach(here, path, FILES_READ, 0, "lib\n");
	assert_reach(here, "../lib/lib.h", FILES_READ, 0, "lib\n");
	at(here, "single", path);
	assert_reach(here, path, FILES_READ, 0, "one file\n");
	assert_reach(here, ".", FILES_FOLDER, 0, NULL);
	assert_reach(here, "src/", FILES_FOLDER, 0, NULL);
	assert_reach(here, "src", FILES_ANY, 0, NULL);
}

static void missing_outside_and_blocked_are_one_answer(void **state)
{
	struct place_under_test *here = *state;
	static const char *const paths[] = {"missing",     "../secret/data",
					    "/etc/passwd", "blocked/key",
					    "blocked",     "../../../../etc/shadow",
					    "/",           "../secret/missing"};
	struct buf expected;
	struct buf said;

	buf_init(&expected, 4096);
	buf_init(&said, 4096);
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct file file;
		struct err err = {0};

		file_init(&file);
		assert_false(files_reach(here->files, paths[i], FILES_ANY, &file, &err));
		assert_int_equal(err.code, ENOENT);
		buf_clear(&expected);
		buf_addf(&expected,
			 "%s does not exist, or lies outside of what this agent may reach.",
			 paths[i]);
		assert_string_equal(err.text, expected.data);
		file_fini(&file);
	}
	buf_fini(&expected);
	buf_fini(&said);
}

static void links_are_followed_inside_the_roots_only(void **state)
{
	struct place_under_test *here = *state;
	char path[256];

	point(here, "src/a.c", "ws/relative");
	point(here, "../lib/lib.h", "ws/to_other_root");
	point(here, "../secret/data", "ws/out");
	point(here, "/etc/passwd", "ws/out_absolute");
	at(here, "ws/src", path);
	point(here, path, "ws/absolute");
	at(here, "lib", path);
	point(here, path, "ws/absolute_other");
	point(here, "blocked/key", "ws/to_blocked");
	point(here, "loop", "ws/loop");
	point(here, "nowhere", "ws/dangling");
	point(here, "absolute/../absolute/a.c", "ws/climbing");
	assert_reach(here, "relative", FILES_READ, 0, "int a;\n");
	assert_reach(here, "to_other_root", FILES_READ, 0, "lib\n");
	assert_reach(here, "absolute/a.c", FILES_READ, 0, "int a;\n");
	assert_reach(here, "absolute_other/lib.h", FILES_READ, 0, "lib\n");
	assert_reach(here, "climbing", FILES_READ, 0, "int a;\n");
	assert_reach(here, "out", FILES_READ, ENOENT, NULL);
	assert_reach(here, "out_absolute", FILES_READ, ENOENT, NULL);
	assert_reach(here, "to_blocked", FILES_READ, ENOENT, NULL);
	assert_reach(here, "dangling", FILES_READ, ENOENT, NULL);
	assert_reach(here, "loop", FILES_READ, ELOOP, NULL);
	assert_reach(here, "/proc/self/root/etc/passwd", FILES_READ, ENOENT, NULL);
}

static void a_chain_of_absolute_links_ends(void **state)
{
	struct place_under_test *here = *state;
	char target[256];
	char name[32];

	for (int i = 0; i < 12; i++) {
		(void)snprintf(name, sizeof(name), "ws/l%d", i + 1);
		at(here, name, target);
		(void)snprintf(name, sizeof(name), "ws/l%d", i);
		point(here, target, name);
	}
	put(here, "ws/l12", "end\n");
	assert_reach(here, "l4", FILES_READ, 0, "end\n");
	assert_reach(here, "l0", FILES_READ, ELOOP, NULL);
}

static void special_files_are_never_opened(void **state)
{
	struct place_under_test *here = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char path[256];
	int64_t began = clock_now_ms();

	at(here, "ws/fifo", path);
	assert_int_equal(mkfifo(path, 0644), 0);
	at(here, "ws/sock", path);
	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_reach(here, "fifo", FILES_READ, ENXIO, NULL);
	assert_reach(here, "sock", FILES_READ, ENXIO, NULL);
	assert_reach(here, "fifo", FILES_ANY, 0, NULL);
	assert_reach(here, "src", FILES_READ, EISDIR, NULL);
	assert_reach(here, "src/a.c", FILES_FOLDER, ENOTDIR, NULL);
	assert_reach(here, "fifo", FILES_FOLDER, ENOTDIR, NULL);
	assert_reach(here, "src/a.c/x", FILES_READ, ENOTDIR, NULL);
	assert_true(clock_now_ms() - began < 1000);
}

static void odd_paths_have_an_answer(void **state)
{
	struct place_under_test *here = *state;
	auto_free char *longest = memory_alloc(8192);
	auto_free char *name = memory_alloc(512);

	memset(longest, 'a', 8191);
	memset(name, 'b', 300);
	assert_reach(here, longest, FILES_READ, ENAMETOOLONG, NULL);
	assert_reach(here, name, FILES_READ, ENAMETOOLONG, NULL);
	assert_reach(here, "", FILES_READ, ENOENT, NULL);
	assert_reach(here, "src/\xff\xfe", FILES_READ, ENOENT, NULL);
}

static void a_workspace_that_is_gone_is_told(void **state)
{
	struct place_under_test *here = *state;
	char path[256];
	struct file file;
	struct err err = {0};

	(void)nftw(here->workspace, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	file_init(&file);
	assert_false(files_reach(here->files, "src/a.c", FILES_READ, &file, &err));
	assert_non_null(strstr(err.text, "is gone"));
	file_fini(&file);
	at(here, "ws", path);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int try_place(struct place_under_test *here, const char *path, bool make)
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
	struct place_under_test *here = *state;
	char path[256];

	point(here, "../secret/new", "ws/out");
	point(here, "src/new", "ws/in");
	point(here, "../lib/new", "ws/to_lib");
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
	at(here, "ws/deep/er", path);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(try_place(here, "blocked/deep/x", true), ENOENT);
	assert_int_equal(try_place(here, "../lib/deep/x", true), EROFS);
	at(here, "lib/deep", path);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(try_place(here, "src/a.c/x", true), ENOTDIR);
}

static void a_new_file_never_replaces(void **state)
{
	struct place_under_test *here = *state;
	struct place place;
	struct err err = {0};

	place_init(&place);
	assert_true(files_place(here->files, "new", true, &place, &err));
	assert_false(place.exists);
	assert_true(place_write(&place, STR("first\n"), NULL, &err));
	assert_true(place.exists);
	assert_holds(here, "ws/new", "first\n");
	assert_false(place_write(&place, STR("second\n"), NULL, &err));
	assert_int_equal(err.code, EEXIST);
	assert_holds(here, "ws/new", "first\n");
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

static bool replace_at(struct place_under_test *here, const char *path,
		       const char *content, struct err *err)
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
	struct place_under_test *here = *state;
	char path[256];
	char value[16] = {0};
	struct stat before, after;
	struct err err = {0};
	bool attributes;

	at(here, "ws/src/a.c", path);
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
	assert_holds(here, "ws/src/a.c", "int b;\n");
	at(here, "ws/src", path);
	assert_int_equal(count_names(path), 1);
}

static void a_link_stays_and_its_target_is_written(void **state)
{
	struct place_under_test *here = *state;
	char path[256];
	struct stat st;
	struct err err = {0};

	point(here, "src/a.c", "ws/link");
	assert_true(replace_at(here, "link", "through\n", &err));
	at(here, "ws/link", path);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_holds(here, "ws/src/a.c", "through\n");
}

static void a_file_that_changed_is_not_replaced(void **state)
{
	struct place_under_test *here = *state;
	struct place place;
	struct err err = {0};

	place_init(&place);
	assert_true(files_place(here->files, "src/a.c", false, &place, &err));
	assert_false(place_write(&place, STR("x"), "0123456789abcdef", &err));
	assert_int_equal(err.code, EAGAIN);
	assert_holds(here, "ws/src/a.c", "int a;\n");
	place_fini(&place);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
	struct place_under_test *here = *state;
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
	assert_holds(here, "ws/src/a.c", "int a;\n");
	at(here, "ws/src", path);
	assert_int_equal(count_names(path), 1);
}

static void a_killed_writer_leaves_old_or_new_and_nothing_else(void **state)
{
	struct place_under_test *here = *state;
	auto_free char *large = memory_alloc((1 << 20) + 1);
	auto_close int journal = memfd_create("journal", MFD_CLOEXEC);
	char path[256];

	memset(large, 'n', 1 << 20);
	assert_true(journal >= 0);
	files_journal(here->files, journal);
	at(here, "ws/src", path);
	for (int i = 0; i < 30; i++) {
		pid_t pid = fork();
		struct timespec wait = {.tv_nsec = (i % 30) * 100000L};
		struct value *rows;
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
		at(here, "ws/src/a.c", path);
		assert_true(fd_read_file(path, 2 << 20, &found, &err));
		assert_true(found.size == 7 || found.size == 1 << 20);
		buf_fini(&found);
		rows = files_unfinished(journal);
		files_finish_writes(here->files, rows);
		value_free(rows);
		assert_int_equal(ftruncate(journal, 0), 0);
	}
	files_journal(here->files, -1);
	at(here, "ws/src", path);
	assert_int_equal(count_names(path), 1);
}

static void none_of_eight_writers_at_once_is_lost(void **state)
{
	struct place_under_test *here = *state;
	pid_t pids[8];
	struct buf found;
	struct err err = {0};
	char path[256];

	put(here, "ws/count", "");
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
	at(here, "ws/count", path);
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
	assert_string_equal(
		mark, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void assert_near(struct place_under_test *here, const char *path, const char *said)
{
	struct buf out;

	buf_init(&out, 4096);
	files_add_near(here->files, path, &out);
	if (strcmp(out.data, said) != 0)
		fail_msg("%s: \"%s\" instead of \"%s\"", path, out.data, said);
	buf_fini(&out);
}

static void near_names_are_suggested(void **state)
{
	struct place_under_test *here = *state;

	folder(here, "ws/lib");
	put(here, "ws/lib/a.c", "");
	put(here, "ws/lib/parser.c", "");
	assert_near(here, "b/a.c", " Did you mean: lib/a.c, src/a.c?");
	assert_near(here, "lib/praser.c", " Did you mean: lib/parser.c?");
	assert_near(here, "/src/a.c", " Did you mean: src/a.c?");
	assert_near(here, "lib/Parser.c", " Did you mean: lib/parser.c?");
	assert_near(here, "blocked/keys", "");
	assert_near(here, "key", "");
	assert_near(here, "nothing_like_it.zzz", "");
}

/* A folder and a link out, exchanged as fast as possible. */

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
	struct place_under_test *here = *state;
	struct exchange exchange = {.stop = false};
	pthread_t thread;
	int reached = 0;
	char path[256];

	folder(here, "ws/dir");
	put(here, "ws/dir/data", "inside\n");
	point(here, "../secret", "ws/link");
	at(here, "ws/dir", exchange.inside);
	at(here, "ws/link", exchange.link);
	assert_int_equal(pthread_create(&thread, NULL, exchange_run, &exchange), 0);
	for (int i = 0; i < RACES; i++) {
		char found[64];
		int code = reach(here, "dir/data", FILES_READ, found);

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
	at(here, "secret", path);
	assert_int_equal(count_names(path), 1);
	assert_true(exchange.turns > 1000);
	assert_true(reached > 100);
}

static void a_raced_last_name_never_leads_out(void **state)
{
	struct place_under_test *here = *state;
	struct exchange exchange = {.stop = false};
	pthread_t thread;

	put(here, "ws/file", "inside\n");
	point(here, "../secret/data", "ws/filelink");
	at(here, "ws/file", exchange.inside);
	at(here, "ws/filelink", exchange.link);
	assert_int_equal(pthread_create(&thread, NULL, exchange_run, &exchange), 0);
	for (int i = 0; i < RACES; i++) {
		char found[64];

		(void)reach(here, "file", FILES_READ, found);
		if (strstr(found, "SECRET"))
			fail_msg("try %d read the file outside", i);
		if (i % 500 == 0) {
			struct err err = {0};

			(void)replace_at(here, "file", "inside\n", &err);
		}
	}
	exchange.stop = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_holds(here, "secret/data", "SECRET\n");
}

/* From here on this process is like a program in a cell: it has no openat2. */
static bool refuse_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {COUNT(filter), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(reaches_what_lies_in_the_roots),
		TEST(missing_outside_and_blocked_are_one_answer),
		TEST(links_are_followed_inside_the_roots_only),
		TEST(a_chain_of_absolute_links_ends),
		TEST(special_files_are_never_opened),
		TEST(odd_paths_have_an_answer),
		TEST(a_workspace_that_is_gone_is_told),
		TEST(places_are_where_the_policy_lets_write),
		TEST(a_new_file_never_replaces),
		TEST(a_replaced_file_keeps_mode_owner_and_attributes),
		TEST(a_link_stays_and_its_target_is_written),
		TEST(a_file_that_changed_is_not_replaced),
		TEST(a_full_disk_leaves_the_old_file),
		TEST(a_killed_writer_leaves_old_or_new_and_nothing_else),
		TEST(none_of_eight_writers_at_once_is_lost),
		TEST(large_files_are_marked_by_their_times),
		TEST(near_names_are_suggested),
		TEST(raced_paths_never_lead_out),
		TEST(a_raced_last_name_never_leads_out),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	return failed + (refuse_openat2() ? cmocka_run_group_tests_name("without openat2",
									tests, NULL, NULL)
					  : 1);
}
