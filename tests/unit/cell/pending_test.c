/*
 * pending: what a dead front leaves. A front's death is a child that ends without a word: its
 * locks go with it.
 */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "base/fd.h"
#include "base/memory.h"
#include "cell/pending.h"
#include "files/record.h"
#include "files/rights.h"
#include "guard/guard.h"
#include "view/spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct here {
	char folder[64];
	struct guard *guard;
};

static int set_up(void **state)
{
	struct here *here = memory_alloc(sizeof(*here));

	(void)snprintf(here->folder, sizeof(here->folder), "/tmp/glovebox-unit-XXXXXX");
	assert_non_null(mkdtemp(here->folder));
	here->guard = memory_alloc(sizeof(*here->guard));
	*state = here;
	return 0;
}

static int tear_down(void **state)
{
	struct here *here = *state;

	guard_free(here->guard);
	/* Each test leaves it empty. */
	assert_int_equal(rmdir(here->folder), 0);
	free(here);
	return 0;
}

/*
 * The file system of the state folder has no hard links and, with SYMLINKS false, no
 * symbolic links. DIES: a process that links a file ends before.
 */
static struct {
	bool refuses, symlinks, dies;
} links = {.symlinks = true};

int linkat(int from, const char *old, int to, const char *name, int flags)
{
	if (links.dies)
		_exit(9);
	if (!links.refuses)
		return (int)syscall(SYS_linkat, from, old, to, name, flags);
	errno = EPERM;
	return -1;
}

static struct pending *open_pending(const struct here *here, bool *due)
{
	*due = false;
	return pending_open(here->folder, "/ws", here->guard, due);
}

/* A session that may write docs, but neither drafts in it nor src. */
static void fill(struct cell_spec *spec)
{
	spec_init(spec);
	spec_add_root(spec, "/ws", false, NULL);
	spec_add_root(spec, "/ws/docs", true, NULL);
	spec_add_root(spec, "/ws/docs/drafts", false, NULL);
	spec_add_root(spec, "/ws/notes", true, "*.md");
	spec_add(spec, &spec->blocked, "/ws/docs/secret");
	spec_add_entry(spec, VIEW_PIN, "/ws/docs/.git/hooks", NULL);
}

/* What a worker writes into its log. */
enum writes { WRITES_NOTHING, WRITES_WHOLE, WRITES_HALF, WRITES_GARBAGE };

static bool write_log(int fd, enum writes writes)
{
	const struct undo_note temps = {.kind = UNDO_NOTE_TEMPS,
					.path = STR("/ws/docs/own")};
	const struct undo_note over = {.kind = UNDO_NOTE_OVER};
	struct undo_log log;

	undo_log_begin(&log, fd, 1);
	return writes == WRITES_NOTHING ||
	       (writes == WRITES_GARBAGE &&
		fd_write_all(fd, "no log at all, no", 17, NULL)) ||
	       (undo_log_note(&log, &temps, NULL) &&
		(writes == WRITES_HALF || undo_log_note(&log, &over, NULL)));
}

/* A front in whose session a worker wrote into its log, and which then died. */
static void die_with(const struct here *here, enum writes writes)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct pending_log log;
		struct cell_spec spec;
		bool due;
		struct pending *pending = open_pending(here, &due);

		fill(&spec);
		pending_hold(pending, &spec, -1, &log);
		_exit(log.fd >= 0 && log.number == 1 && write_log(log.fd, writes) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* How many logs are left; each of them has the rights of its session. */
static size_t left_in(const struct pending *pending)
{
	const struct pending_left_log *log;
	size_t count = 0;

	for (; (log = pending_left(pending, count)) != NULL; count++) {
		struct rights *rights = rights_read(log->rights);

		assert_int_equal(log->state, PENDING_OPEN);
		assert_string_equal(log->file, "/ws/docs/own");
		assert_int_equal(access(log->name, F_OK), 0);
		assert_true(undo_log_is_unfinished(log->fd));
		assert_true(rights_may_write(rights, "/ws/docs/own"));
		assert_true(rights_may_write(rights, "/ws/notes/a.md"));
		assert_false(rights_may_write(rights, "/ws/notes/a.c"));
		assert_false(rights_may_write(rights, "/ws/src/main.c"));
		assert_false(rights_may_write(rights, "/ws/docs"));
		assert_false(rights_may_write(rights, "/ws/docs/drafts/a"));
		assert_false(rights_may_write(rights, "/ws/docs/secret/a"));
		assert_false(rights_may_write(rights, "/ws/docs/secret"));
		assert_false(rights_may_write(rights, "/ws/docs/.git/hooks/pre-commit"));
		rights_free(rights);
	}
	return count;
}

/* Everything is worked off, and the front ends as it should. */
static void close_all(struct pending *pending)
{
	pending_mended(pending, true);
	assert_null(pending_left(pending, 0));
	pending_set_audit_due(pending, false);
	pending_close(pending);
}

static void the_log_of_a_dead_front_is_found_with_its_rights(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	bool due;

	die_with(here, WRITES_HALF);
	die_with(here, WRITES_HALF);
	pending = open_pending(here, &due);
	assert_non_null(pending);
	assert_true(due);
	assert_int_equal(left_in(pending), 2);
	close_all(pending);
}

static void what_was_not_worked_off_is_left_for_the_next(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	bool due;

	die_with(here, WRITES_HALF);
	pending = open_pending(here, &due);
	assert_int_equal(left_in(pending), 1);
	/* Meanwhile it is this one's. Another one may not begin, and knows the file. */
	struct pending *other = open_pending(here, &due);
	assert_false(due);
	const struct pending_left_log *left = pending_left(other, 0);
	assert_non_null(left);
	assert_int_equal(left->state, PENDING_BLOCKED);
	assert_int_equal(left->fd, -1);
	assert_string_equal(left->file, "/ws/docs/own");
	assert_string_equal(left->why, "another session is still at it");
	assert_null(pending_left(other, 1));
	pending_close(other);
	/* This one closes without a word about it; the next one cannot do all of it. */
	pending_set_audit_due(pending, false);
	pending_close(pending);
	pending = open_pending(here, &due);
	assert_int_equal(left_in(pending), 1);
	pending_mended(pending, false);
	assert_null(pending_left(pending, 0));
	pending_set_audit_due(pending, false);
	pending_close(pending);
	pending = open_pending(here, &due);
	assert_int_equal(left_in(pending), 1);
	close_all(pending);
}

/* The worker of a session that lives on could not put its write back. */
static void a_log_that_is_not_dropped_is_left_for_the_next(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	struct cell_spec spec;
	struct pending_log first, second;
	bool due;

	fill(&spec);
	pending = open_pending(here, &due);
	pending_hold(pending, &spec, -1, &first);
	pending_hold(pending, &spec, -1, &second);
	assert_true(write_log(first.fd, WRITES_HALF) && write_log(second.fd, WRITES_HALF));
	const int fds[] = {first.fd, second.fd};
	pending_drop(pending, &second);
	pending_close(pending);
	(void)close(fds[0]);
	(void)close(fds[1]);
	pending = open_pending(here, &due);
	assert_int_equal(left_in(pending), 1);
	close_all(pending);
	spec_fini(&spec);
}

/*
 * A front whose worker still writes is killed. The worker leaves a write without an end in
 * its log, closes TELLS[1] and ends once the other end of WAITS is closed.
 */
static void die_before_its_worker(const struct here *here, const int waits[2],
				  const int tells[2])
{
	int status;
	pid_t front = fork();

	if (front == 0) {
		struct pending_log log;
		struct cell_spec spec;
		bool due;
		struct pending *pending = open_pending(here, &due);
		int settled[2];
		char byte;

		fill(&spec);
		pending_hold(pending, &spec, -1, &log);
		if (pipe2(settled, O_CLOEXEC) < 0)
			_exit(1);
		const int worker = fork();
		if (worker == 0) {
			/* As in a cell: nothing of the front's but this. */
			(void)dup2(waits[0], 0);
			(void)dup2(tells[1], 1);
			(void)dup2(log.fd, 3);
			(void)close_range(4, ~0U, 0);
			const bool ok = read(0, &byte, 1) == 0 && write_log(3, WRITES_HALF);
			_exit(ok ? 0 : 1);
		}
		/* Until then the worker has the front's locks, and the front seems to live. */
		(void)close(settled[1]);
		_exit(worker > 0 && read(settled[0], &byte, 1) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(front, &status, 0), front);
	assert_int_equal(WEXITSTATUS(status), 0);
	(void)close(waits[0]);
	(void)close(tells[1]);
}

static void a_worker_that_outlives_its_front_ends_its_write_first(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	int waits[2], tells[2];
	char byte;
	bool due;

	assert_int_equal(pipe2(waits, O_CLOEXEC), 0);
	assert_int_equal(pipe2(tells, O_CLOEXEC), 0);
	die_before_its_worker(here, waits, tells);
	/* The worker does not end: a later session puts its write back, and this one waits. */
	pending = open_pending(here, &due);
	assert_non_null(pending);
	assert_false(due);
	assert_non_null(pending_left(pending, 0));
	assert_int_equal(pending_left(pending, 0)->fd, -1);
	assert_null(pending_left(pending, 1));
	pending_close(pending);
	(void)close(waits[1]);
	assert_int_equal(read(tells[0], &byte, 1), 0);
	(void)close(tells[0]);
	pending = open_pending(here, &due);
	assert_true(due);
	assert_int_equal(left_in(pending), 1);
	close_all(pending);
}

/* Two fronts were killed: one that wrote, and one that was to put its write back. */
static void a_front_that_is_just_ending_is_waited_for(void **state)
{
	enum { ENDING_MS = 50 };
	const struct here *here = *state;
	struct pending *pending;
	int tells[2], status;
	char byte;
	bool due;

	assert_int_equal(pipe2(tells, O_CLOEXEC), 0);
	die_with(here, WRITES_HALF);
	const pid_t mender = fork();
	if (mender == 0) {
		pending = open_pending(here, &due);
		const bool has = pending_left(pending, 0) != NULL;
		(void)close(tells[0]);
		(void)close(tells[1]);
		/* As long as the kernel takes for the end of a process. */
		(void)poll(NULL, 0, ENDING_MS);
		_exit(has ? 0 : 1);
	}
	(void)close(tells[1]);
	assert_int_equal(read(tells[0], &byte, 1), 0);
	(void)close(tells[0]);
	pending = open_pending(here, &due);
	assert_true(due);
	assert_int_equal(left_in(pending), 1);
	close_all(pending);
	assert_int_equal(waitpid(mender, &status, 0), mender);
	assert_int_equal(WEXITSTATUS(status), 0);
	/* The file of the mender itself may have been locked for longer. */
	pending = open_pending(here, &due);
	assert_int_equal(left_in(pending), 0);
	close_all(pending);
}

static void a_log_that_needs_nothing_is_forgotten(void **state)
{
	static const enum writes all[] = {WRITES_NOTHING, WRITES_WHOLE};
	const struct here *here = *state;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool due;

		die_with(here, all[i]);
		struct pending *pending = open_pending(here, &due);
		assert_true(due);
		assert_int_equal(left_in(pending), 0);
		pending_set_audit_due(pending, false);
		pending_close(pending);
	}
}

/* As the journal of 0.1.0, which that version can still work off. */
static void a_log_of_another_version_is_kept_and_told_once(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	bool due;

	die_with(here, WRITES_GARBAGE);
	/* A session that only looks at what is left takes nothing away. */
	for (int i = 0; i < 2; i++) {
		pending = open_pending(here, &due);
		assert_true(due);
		const struct pending_left_log *left = pending_left(pending, 0);
		assert_non_null(left);
		assert_int_equal(left->state, PENDING_FOREIGN);
		assert_int_equal(left->fd, -1);
		assert_null(pending_left(pending, 1));
		assert_int_equal(access(left->name, F_OK), -1);
		auto_free char *kept = memory_copy(left->name);
		pending_mended(pending, i == 1);
		pending_set_audit_due(pending, false);
		pending_close(pending);
		assert_int_equal(access(kept, F_OK), i == 1 ? 0 : -1);
		if (i == 1)
			assert_int_equal(unlink(kept), 0);
	}
	pending = open_pending(here, &due);
	assert_false(due);
	assert_null(pending_left(pending, 0));
	pending_close(pending);
}

/* A front that lives is none of ours, even if a call of it writes at this moment. */
static void a_write_of_a_living_front_is_not_waited_for_long(void **state)
{
	const struct here *here = *state;
	struct pending_log log;
	struct cell_spec spec;
	bool due;
	struct pending *living = open_pending(here, &due);

	fill(&spec);
	pending_hold(living, &spec, -1, &log);
	assert_true(write_log(log.fd, WRITES_HALF));
	struct pending *pending = open_pending(here, &due);
	assert_null(pending_left(pending, 0));
	pending_close(pending);
	const int fd = log.fd;
	pending_drop(living, &log);
	(void)close(fd);
	pending_close(living);
	spec_fini(&spec);
}

/* A session on a full disk has no file of its own, and still knows what is left. */
static void a_full_disk_hides_no_log(void **state)
{
	const struct here *here = *state;
	int status;
	bool due;

	die_with(here, WRITES_HALF);
	pid_t pid = fork();
	if (pid == 0) {
		const struct rlimit none = {0, RLIM_INFINITY};

		(void)signal(SIGXFSZ, SIG_IGN);
		(void)setrlimit(RLIMIT_FSIZE, &none);
		struct pending *pending = open_pending(here, &due);
		const bool found = pending != NULL && due && left_in(pending) == 1;
		pending_mended(pending, true);
		pending_close(pending);
		_exit(found ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	/* Without a file of its own it has taken nothing away. */
	struct pending *pending = open_pending(here, &due);
	assert_int_equal(left_in(pending), 1);
	close_all(pending);
}

/* A front that is killed before it has written its guard leaves nothing. */
static void a_front_has_no_file_before_it_holds_the_guard(void **state)
{
	const struct here *here = *state;
	int status;
	bool due;
	pid_t pid = fork();

	if (pid == 0) {
		links.dies = true;
		(void)open_pending(here, &due);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 9);
	struct pending *pending = open_pending(here, &due);
	assert_false(due);
	pending_close(pending);
}

/* The rights never came to the disk. */
static void without_the_rights_nothing_may_be_put_back(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	struct dirent *at;
	char path[512];
	bool due;

	die_with(here, WRITES_HALF);
	DIR *names = opendir(here->folder);
	assert_non_null(names);
	while ((at = readdir(names)) != NULL) {
		struct buf text;

		if (at->d_name[0] == '.' || strchr(at->d_name, '.') != NULL)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", here->folder, at->d_name);
		buf_init(&text, 1 << 16);
		assert_true(fd_read_file(path, 1 << 16, &text, NULL));
		assert_int_equal(truncate(path, strchr(text.data, '\n') + 1 - text.data), 0);
		buf_fini(&text);
	}
	(void)closedir(names);
	pending = open_pending(here, &due);
	assert_true(due);
	struct rights *rights = rights_read(pending_left(pending, 0)->rights);
	assert_false(rights_may_write(rights, "/ws/docs/own"));
	rights_free(rights);
	close_all(pending);
}

/* A step of the undo store keeps its own name; one on another file system gets a link. */
static void a_log_with_a_name_gets_one_more(void **state)
{
	const struct here *here = *state;
	char folder[] = "/dev/shm/glovebox-unit-XXXXXX", elsewhere[64], own[128];
	const bool has_other = mkdtemp(folder) != NULL;
	const char *const paths[] = {own, has_other ? elsewhere : NULL};

	(void)snprintf(own, sizeof(own), "%s/step", here->folder);
	(void)snprintf(elsewhere, sizeof(elsewhere), "%s/step", folder);
	for (size_t i = 0; i < 2 && paths[i] != NULL; i++) {
		int status;
		bool due;
		pid_t pid = fork();

		if (pid == 0) {
			struct pending_log log;
			struct cell_spec spec;
			struct pending *pending = open_pending(here, &due);
			const int fd = open(paths[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);

			fill(&spec);
			pending_hold(pending, &spec, fd, &log);
			_exit(fd >= 0 && log.fd == fd && log.number == 1 &&
					      write_log(fd, WRITES_HALF)
				      ? 0
				      : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), 0);
		struct pending *pending = open_pending(here, &due);
		assert_int_equal(left_in(pending), 1);
		close_all(pending);
		assert_int_equal(unlink(paths[i]), 0);
	}
	assert_true(!has_other || rmdir(folder) == 0);
}

int symlinkat(const char *target, int folder, const char *name)
{
	if (links.symlinks)
		return (int)syscall(SYS_symlinkat, target, folder, name);
	errno = EPERM;
	return -1;
}

static void without_links_no_write_begins_unseen(void **state)
{
	const struct here *here = *state;
	struct pending_log log;
	struct cell_spec spec;
	char own[128];
	bool due;

	(void)snprintf(own, sizeof(own), "%s/step", here->folder);
	fill(&spec);
	for (int i = 0; i < 2; i++) {
		links.refuses = true;
		links.symlinks = i == 0;
		struct pending *pending = open_pending(here, &due);
		const int fd = open(own, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		pending_hold(pending, &spec, fd, &log);
		assert_int_equal(log.fd, links.symlinks ? fd : -1);
		assert_int_equal(log.number, links.symlinks ? 1 : 0);
		assert_true(write_log(fd, WRITES_HALF));
		pending_close(pending);
		(void)close(fd);
		pending = open_pending(here, &due);
		assert_int_equal(left_in(pending), links.symlinks ? 1 : 0);
		close_all(pending);
		assert_int_equal(unlink(own), 0);
		links.refuses = false;
		links.symlinks = true;
	}
	spec_fini(&spec);
}

static void without_a_state_folder_it_lies_in_memory(void **state)
{
	struct pending_log log;
	struct cell_spec spec;

	(void)state;
	fill(&spec);
	pending_hold(NULL, &spec, -1, &log);
	assert_true(log.fd >= 0);
	assert_int_equal(log.number, 0);
	(void)close(log.fd);
	pending_drop(NULL, &log);
	assert_int_equal(log.fd, -1);
	spec_fini(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(the_log_of_a_dead_front_is_found_with_its_rights),
		TEST(what_was_not_worked_off_is_left_for_the_next),
		TEST(a_log_that_is_not_dropped_is_left_for_the_next),
		TEST(a_worker_that_outlives_its_front_ends_its_write_first),
		TEST(a_front_that_is_just_ending_is_waited_for),
		TEST(a_log_that_needs_nothing_is_forgotten),
		TEST(a_log_of_another_version_is_kept_and_told_once),
		TEST(a_write_of_a_living_front_is_not_waited_for_long),
		TEST(a_front_has_no_file_before_it_holds_the_guard),
		TEST(a_full_disk_hides_no_log),
		TEST(without_the_rights_nothing_may_be_put_back),
		TEST(a_log_with_a_name_gets_one_more),
		TEST(without_links_no_write_begins_unseen),
		TEST(without_a_state_folder_it_lies_in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
