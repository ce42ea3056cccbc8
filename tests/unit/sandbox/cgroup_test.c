/*
 * cgroup: where groups can be made, from trees of files that look like those of the kernel;
 * and a real group where this user may make one (root with version 1, here).
 */
#include "../base/tree.h"
#include "../base/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/cgroup.h"

enum { PATH_ROOM = 512, MEBI = 1 << 20 };

static void put(const char *root, const char *path, const char *text)
{
	char whole[PATH_ROOM];
	struct err err;
	int fd;

	(void)snprintf(whole, sizeof(whole), "%s%s", root, path);
	assert_true(fd_make_folders(whole, &err));
	fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text, strlen(text), &err));
	(void)close(fd);
}

static void expect(const char *root, const char *path, const char *text)
{
	char whole[PATH_ROOM];
	struct buf found;
	struct err err;

	(void)snprintf(whole, sizeof(whole), "%s%s", root, path);
	buf_init(&found, PATH_ROOM);
	if (!fd_read_file(whole, PATH_ROOM, &found, &err))
		fail_msg("%s", err.text);
	assert_string_equal(found.data, text);
	buf_fini(&found);
}

static int tree_make(void **state)
{
	char *root = strdup("/tmp/glovebox-cgroup-XXXXXX");

	*state = root;
	return root && mkdtemp(root) ? 0 : -1;
}

static int tree_end(void **state)
{
	tree_remove(*state);
	free(*state);
	return 0;
}

static void the_delegated_folder_beside_us_is_found(void **state)
{
	const char *root = *state;
	const struct cgroup_limits limits = {.memory = 256 * MEBI, .pids = 65};
	struct cgroup_place place;
	struct cgroup group = CGROUP_BLANK;
	struct err err;

	put(root, "/proc/self/cgroup", "0::/user.slice/app.slice/term.scope\n");
	put(root, "/proc/self/mountinfo",
	    "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
	    "31 22 0:26 / /cg rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
	put(root, "/cg/user.slice/app.slice/term.scope/cgroup.procs", "");
	/* Refused by the kernel where processes live: nothing changes. */
	put(root, "/cg/user.slice/app.slice/term.scope/cgroup.subtree_control", "");
	put(root, "/cg/user.slice/app.slice/cgroup.procs", "");
	put(root, "/cg/user.slice/app.slice/cgroup.subtree_control", "cpu memory pids\n");
	cgroup_find(root, &place);
	assert_int_equal(place.version, 2);
	assert_true(place.folders[CGROUP_MEMORY] >= 0 && place.folders[CGROUP_PIDS] >= 0);
	/* The kernel fills a new group with files; here there are none, and so no group. */
	assert_false(cgroup_make(&place, 1, &limits, &group, &err));
	assert_true(strlen(err.text) > 0);
	cgroup_leave(&place);
	assert_int_equal(place.version, 0);
}

/* A group of a tree that only looks like the kernel's: nothing is to be removed. */
static void let_go(struct cgroup *group)
{
	const struct cgroup_place nowhere = {.folders = {-1, -1}};

	assert_true(cgroup_remove(&nowhere, group));
}

static void the_files_of_a_group_are_written_as_the_kernel_wants_them(void **state)
{
	const char *root = *state;
	struct cgroup group = CGROUP_BLANK;
	char folder[PATH_ROOM];
	struct err err;
	int count;

	put(root, "/g/cgroup.procs", "");
	put(root, "/g/memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n");
	put(root, "/g/pids.events", "max 7\n");
	(void)snprintf(folder, sizeof(folder), "%s/g", root);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		group.folders[i] = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(cgroup_is_empty(&group));
	assert_true(cgroup_enter(&group, 4711, &err));
	expect(root, "/g/cgroup.procs", "4711");
	assert_false(cgroup_is_empty(&group));
	count = cgroup_count_file(&group, CGROUP_MEMORY);
	assert_int_equal(cgroup_count(count, CGROUP_MEMORY), 2);
	assert_int_equal(cgroup_count_file(&group, CGROUP_MEMORY), count);
	count = cgroup_count_file(&group, CGROUP_PIDS);
	assert_int_equal(cgroup_count(count, CGROUP_PIDS), 7);
	assert_int_equal(cgroup_count(-1, CGROUP_PIDS), 0);
	let_go(&group);
}

static int open_folder(const char *root, const char *path)
{
	char whole[PATH_ROOM];

	(void)snprintf(whole, sizeof(whole), "%s%s", root, path);
	return open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void a_worker_of_version_2_lives_beside_its_programs(void **state)
{
	const char *root = *state;
	struct cgroup group = CGROUP_BLANK;
	struct err err;

	put(root, "/g/cgroup.procs", "");
	put(root, "/g/worker/cgroup.procs", "");
	put(root, "/g/programs/cgroup.procs", "");
	put(root, "/g/memory.stat", "anon 1\nfile 7340032\nshmem 5242880\nshmem_thp 1\n");
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		group.folders[i] = open_folder(root, "/g");
	group.worker = open_folder(root, "/g/worker");
	group.programs = open_folder(root, "/g/programs");
	assert_true(cgroup_enter(&group, 4711, &err));
	expect(root, "/g/worker/cgroup.procs", "4711");
	assert_false(cgroup_is_empty(&group));
	put(root, "/g/worker/cgroup.procs", "");
	assert_true(cgroup_is_empty(&group));
	assert_true(cgroup_enter_program(&group, 4712, &err));
	expect(root, "/g/programs/cgroup.procs", "4712");
	expect(root, "/g/worker/cgroup.procs", "");
	expect(root, "/g/cgroup.procs", "");
	assert_false(cgroup_is_empty(&group));
	assert_int_equal(cgroup_left_memory(&group), 5 * MEBI);
	let_go(&group);
}

/* Whoever is in the group for memory is in that for pids: one number says that both are empty. */
static void the_number_of_tasks_says_whether_anybody_is_there(void **state)
{
	const char *root = *state;
	struct cgroup group = CGROUP_BLANK;
	struct err err;

	put(root, "/m/memory.usage_in_bytes", "4096\n");
	put(root, "/m/cgroup.procs", "");
	put(root, "/none/file", "");
	put(root, "/p/pids.current", "1\n");
	put(root, "/p/cgroup.procs", "");
	group.folders[CGROUP_MEMORY] = open_folder(root, "/m");
	group.folders[CGROUP_PIDS] = open_folder(root, "/p");
	assert_false(cgroup_is_empty(&group));
	put(root, "/p/pids.current", "0\n");
	assert_true(cgroup_is_empty(&group));
	assert_int_equal(cgroup_usage(&group), 4096);
	/* Who may not enter the first stays out of both. */
	fd_close(&group.folders[CGROUP_PIDS]);
	group.folders[CGROUP_PIDS] = open_folder(root, "/none");
	fd_close(&group.procs[CGROUP_PIDS]);
	assert_false(cgroup_enter(&group, 4711, &err));
	expect(root, "/m/cgroup.procs", "");
	let_go(&group);
}

static void controllers_of_version_1_are_found_one_by_one(void **state)
{
	const char *root = *state;
	struct cgroup_place place;

	put(root, "/proc/self/cgroup", "8:pids:/\n4:cpu,memory:/box/a\n0::/\n");
	put(root, "/proc/self/mountinfo",
	    "32 31 0:29 /box /cg/memory rw - cgroup cgroup rw,cpu,memory\n"
	    "33 31 0:30 /other /cg/pids rw - cgroup cgroup rw,pids\n"
	    "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n");
	put(root, "/cg/memory/a/cgroup.procs", "");
	put(root, "/cg/unified/cgroup.procs", "");
	put(root, "/cg/unified/cgroup.subtree_control", "");
	cgroup_find(root, &place);
	assert_int_equal(place.version, 1);
	assert_true(place.folders[CGROUP_MEMORY] >= 0);
	/* What is mounted does not hold our group. */
	assert_int_equal(place.folders[CGROUP_PIDS], -1);
	cgroup_leave(&place);
}

static void nothing_and_nonsense_are_no_place(void **state)
{
	static const char *const texts[] = {"",  "\n\n",  ":::\n",
					    "0", "0::\n", "4:memory\n:memory:/\n"};
	const char *root = *state;
	struct cgroup_place place;

	cgroup_find(root, &place);
	assert_int_equal(place.version, 0);
	for (size_t i = 0; i < UNIT_COUNT(texts); i++) {
		put(root, "/proc/self/cgroup", texts[i]);
		put(root, "/proc/self/mountinfo", "1 2 3\n - \n1 2 3 / /cg rw - cgroup\n");
		cgroup_find(root, &place);
		assert_int_equal(place.version, 0);
	}
}

/* A child that takes MEBIBYTES when a byte comes from FD, and ends with 3 at the next one. */
static pid_t taker_start(int fd, size_t mebibytes)
{
	pid_t pid = fork();

	if (pid == 0) {
		char byte;
		char *block;

		if (read(fd, &byte, 1) != 1)
			_exit(1);
		block = malloc(mebibytes * MEBI);
		for (size_t at = 0; block && at < mebibytes * MEBI; at += 4096)
			((volatile char *)block)[at] = 1;
		_exit(read(fd, &byte, 1) == 1 ? 3 : 2);
	}
	return pid;
}

static bool may_make_groups(void)
{
	struct cgroup_place place;

	cgroup_find("", &place);
	const bool may = place.version != 0 && place.folders[CGROUP_MEMORY] >= 0;
	cgroup_leave(&place);
	return may;
}

/* The larger of both, with the same score: who is full pays. */
static void a_worker_outlives_programs_that_take_too_much(void **state)
{
	const struct cgroup_limits limits = {.memory = 256 * MEBI,
					     .programs = 32 * MEBI,
					     .pids = 8};
	struct cgroup_place place;
	struct cgroup group;
	struct err err;
	int worker_ends[2], program_ends[2], status;
	pid_t worker, program;

	(void)state;
	cgroup_find("", &place);
	if (place.version == 0 || place.folders[CGROUP_MEMORY] < 0) {
		cgroup_leave(&place);
		unit_skip("this user may make no control group with a memory limit");
	}
	assert_true(cgroup_make(&place, 2, &limits, &group, &err));
	assert_int_equal(pipe(worker_ends), 0);
	assert_int_equal(pipe(program_ends), 0);
	worker = taker_start(worker_ends[0], 64);
	program = taker_start(program_ends[0], 48);
	assert_true(cgroup_enter(&group, worker, &err));
	assert_true(cgroup_enter_program(&group, program, &err));
	assert_int_equal(write(worker_ends[1], "xy", 2), 2);
	assert_int_equal(write(program_ends[1], "x", 1), 1);
	assert_int_equal(waitpid(program, &status, 0), program);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(waitpid(worker, &status, 0), worker);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	assert_int_equal(cgroup_count(cgroup_count_file(&group, CGROUP_MEMORY),
				      CGROUP_MEMORY) +
				 cgroup_count(cgroup_count_file(&group, CGROUP_PROGRAMS),
					      CGROUP_PROGRAMS),
			 1);
	assert_int_equal(cgroup_left_memory(&group), 0);
	for (int i = 0; i < 2; i++) {
		(void)close(worker_ends[i]);
		(void)close(program_ends[i]);
	}
	assert_true(cgroup_is_empty(&group));
	assert_true(cgroup_remove(&place, &group));
	cgroup_leave(&place);
}

static void a_real_group_holds_and_counts(void **state)
{
	const struct cgroup_limits limits = {.memory = 64 * MEBI,
					     .programs = 1024 * MEBI,
					     .pids = 8};
	struct cgroup_place place;
	struct cgroup group;
	struct err err;
	int ends[2], status, count;
	pid_t pid;

	(void)state;
	cgroup_find("", &place);
	if (place.version == 0 || place.folders[CGROUP_MEMORY] < 0) {
		cgroup_leave(&place);
		unit_skip("this user may make no control group with a memory limit");
	}
	assert_true(cgroup_make(&place, 1, &limits, &group, &err));
	assert_int_equal(pipe(ends), 0);
	pid = taker_start(ends[0], 512);
	assert_true(cgroup_enter(&group, pid, &err));
	assert_false(cgroup_is_empty(&group));
	count = cgroup_count_file(&group, CGROUP_MEMORY);
	assert_int_equal(cgroup_count(count, CGROUP_MEMORY), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(cgroup_count(count, CGROUP_MEMORY), 1);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_true(cgroup_is_empty(&group));
	assert_true(cgroup_remove(&place, &group));
	cgroup_leave(&place);
}

/* The group of this process as a front, or a skip. */
static void place_of_front(struct cgroup_place *place)
{
	struct err err;

	cgroup_find("", place);
	if (place->folders[CGROUP_MEMORY] < 0) {
		cgroup_leave(place);
		unit_skip("this user may make no control group");
	}
	if (!cgroup_front(place, getpid(), &err))
		fail_msg("%s", err.text);
}

/* Start a child that makes a group as a front of its own, and ends when ENDS[0] is closed. */
static pid_t front_start(const int ends[2], const int told[2], char name[CGROUP_NAME_MAX])
{
	const struct cgroup_limits limits = {.memory = 64 * MEBI,
					     .programs = 32 * MEBI,
					     .pids = 8};
	const pid_t pid = fork();

	if (pid == 0) {
		struct cgroup_place place;
		struct cgroup group;
		char byte;

		(void)close(ends[1]);
		cgroup_find("", &place);
		if (!cgroup_front(&place, getpid(), NULL) ||
		    !cgroup_make(&place, 7, &limits, &group, NULL))
			_exit(1);
		(void)!write(told[1], "x", 1);
		(void)!read(ends[0], &byte, 1);
		_exit(0);
	}
	assert_true(read(told[0], name, 1) == 1);
	return pid;
}

/* How many groups of the front PID lie beside the group of PLACE? */
static int front_count(const struct cgroup_place *place, pid_t pid)
{
	char start[64];
	int count = 0;
	int above = openat(place->folders[CGROUP_MEMORY], "..",
			   O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fdopendir(above);

	assert_non_null(folder);
	(void)snprintf(start, sizeof(start), "glovebox-%d-", (int)pid);
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
		count += strncmp(entry->d_name, start, strlen(start)) == 0;
	(void)closedir(folder);
	return count;
}

/* The groups of a front that was killed go with the next front, those of a living one stay. */
static void what_a_dead_front_left_is_swept(void **state)
{
	struct cgroup_place place;
	char name[CGROUP_NAME_MAX] = {0};
	int dead_ends[2], ends[2], told[2];
	pid_t dead, living;

	(void)state;
	place_of_front(&place);
	cgroup_front_leave(&place);
	assert_int_equal(pipe(dead_ends), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(told), 0);
	living = front_start(ends, told, name);
	dead = front_start(dead_ends, told, name);
	assert_int_equal(kill(dead, SIGKILL), 0);
	assert_int_equal(waitpid(dead, NULL, 0), dead);
	place_of_front(&place);
	assert_int_equal(front_count(&place, dead), 0);
	assert_int_equal(front_count(&place, living), 1);
	assert_int_equal(front_count(&place, getpid()), 1);
	(void)close(ends[1]);
	assert_int_equal(waitpid(living, NULL, 0), living);
	cgroup_front_leave(&place);
	place_of_front(&place);
	assert_int_equal(front_count(&place, living), 0);
	cgroup_front_leave(&place);
	(void)close(ends[0]);
	(void)close(dead_ends[0]);
	(void)close(dead_ends[1]);
	(void)close(told[0]);
	(void)close(told[1]);
}

/* Use a processor for some time: in a child, which its parent does not wait for. */
static void burn(void)
{
	const clock_t until = clock() + CLOCKS_PER_SEC / 5;

	(void)signal(SIGCHLD, SIG_IGN);
	if (fork() == 0) {
		while (clock() < until)
			;
		_exit(0);
	}
	(void)wait(NULL);
	_exit(0);
}

static void a_cell_is_counted_whatever_its_processes_do(void **state)
{
	const struct cgroup_cell_limits limits = {.cpus = 0.5};
	struct cgroup_place place;
	struct cgroup_cell cell;
	struct cgroup_usage usage;
	struct err err;
	pid_t pid;

	(void)state;
	place_of_front(&place);
	if (place.version != 1 || place.folders[CGROUP_CPU] < 0) {
		cgroup_front_leave(&place);
		unit_skip("groups of version 1 are not here; the cases of exec try version 2");
	}
	if (!cgroup_cell_make(&place, 1, &limits, &cell, &err))
		fail_msg("%s", err.text);
	pid = fork();
	if (pid == 0) {
		if (!cgroup_cell_enter(cell.doors, NULL))
			_exit(1);
		burn();
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	cgroup_cell_read(&place, &cell, &usage);
	assert_in_range(usage.cpu_us, 190000, 2000000);
	assert_true(usage.user_us <= usage.cpu_us);
	assert_in_range(usage.memory_peak, 1, 64 * MEBI);
	assert_true(usage.written == UINT64_MAX);
	cgroup_cell_remove(&place, &cell, 1000);
	assert_int_equal(front_count(&place, getpid()), 1);
	cgroup_front_leave(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_delegated_folder_beside_us_is_found,
						tree_make, tree_end),
		cmocka_unit_test_setup_teardown(
			the_files_of_a_group_are_written_as_the_kernel_wants_them,
			tree_make, tree_end),
		cmocka_unit_test_setup_teardown(controllers_of_version_1_are_found_one_by_one,
						tree_make, tree_end),
		cmocka_unit_test_setup_teardown(nothing_and_nonsense_are_no_place,
						tree_make, tree_end),
		cmocka_unit_test_setup_teardown(a_worker_of_version_2_lives_beside_its_programs,
						tree_make, tree_end),
		cmocka_unit_test_setup_teardown(the_number_of_tasks_says_whether_anybody_is_there,
						tree_make, tree_end),
	};
	const struct CMUnitTest real[] = {
		cmocka_unit_test(a_worker_outlives_programs_that_take_too_much),
		cmocka_unit_test(a_real_group_holds_and_counts),
		cmocka_unit_test(what_a_dead_front_left_is_swept),
		cmocka_unit_test(a_cell_is_counted_whatever_its_processes_do),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	/* An ordinary user to whom nobody has given a group lacks nothing: root plays these. */
	if (geteuid() != 0 && !may_make_groups())
		return failed;
	return failed + cmocka_run_group_tests(real, NULL, NULL);
}
