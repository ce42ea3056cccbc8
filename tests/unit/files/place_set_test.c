/*
 * sets of files: all or none, whatever fails, and whenever the writer is killed. A killed
 * writer is stopped before each of its system calls in turn, with the file systems' gifts
 * (nameless files, names that are exchanged) and without them.
 */
#include "../base/tree.h"
#include "../base/unit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "files/files.h"
#include "files/place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	SET = 3,
	STOPS_MAX = 2000, /* a write of three files makes some 150 calls, each stops twice */
	KILLS = 200,
};

struct here {
	char base[64];
	struct files *files;
	int journal;
};

static char *path_of(const struct here *here, const char *name, char path[256])
{
	(void)snprintf(path, 256, "%s/%s", here->base, name);
	return path;
}

static void put(const struct here *here, const char *name, const char *content)
{
	char path[256];
	auto_close int fd = open(path_of(here, name, path),
				 O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0640);

	assert_true(fd >= 0);
	/* Whatever the umask of the person who tests. */
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_true(fd_write_all(fd, content, strlen(content), NULL));
}

/* Is NAME a file with this CONTENT (NULL: not there at all)? */
static bool holds(const struct here *here, const char *name, const char *content)
{
	char path[256];
	struct buf found;
	struct err err;
	bool same;

	buf_init(&found, 4096);
	if (!fd_read_file(path_of(here, name, path), 4096, &found, &err))
		same = content == NULL && access(path, F_OK) < 0;
	else
		same = content != NULL && strcmp(found.data, content) == 0;
	buf_fini(&found);
	return same;
}

static void open_files(struct here *here)
{
	const struct files_root root = {here->base, true, NULL};
	struct err err;

	assert_true(files_open(&root, 1, here->base, NULL, &here->files, &err));
	files_journal(here->files, here->journal);
}

static int set_up(void **state)
{
	struct here *here = memory_alloc(sizeof(*here));

	/* In memory where that can be: a disk would be waited for some thousand times. */
	(void)snprintf(here->base, sizeof(here->base), "%s/glovebox-unit-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(here->base));
	here->journal = memfd_create("journal", MFD_CLOEXEC);
	assert_true(here->journal >= 0);
	open_files(here);
	*state = here;
	return 0;
}

static int tear_down(void **state)
{
	struct here *here = *state;

	files_close(here->files);
	(void)close(here->journal);
	tree_remove(here->base);
	free(here);
	return 0;
}

static unsigned left_behind;

static int count_ours(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind;
	left_behind += strncmp(path + where->base, ".glovebox-", 10) == 0;
	return 0;
}

static unsigned temps_below(const struct here *here)
{
	left_behind = 0;
	(void)nftw(here->base, count_ours, 16, FTW_PHYS);
	return left_behind;
}

/* change: "old" becomes "new"; made/fresh is made; gone is removed. */
static void prepare(const struct here *here)
{
	char path[256];

	put(here, "change", "old\n");
	put(here, "gone", "bye\n");
	(void)unlink(path_of(here, "made/fresh", path));
	(void)rmdir(path_of(here, "made", path));
}

static bool is_old(const struct here *here)
{
	return holds(here, "change", "old\n") && holds(here, "gone", "bye\n") &&
	       holds(here, "made/fresh", NULL);
}

static bool is_new(const struct here *here)
{
	return holds(here, "change", "new\n") && holds(here, "gone", NULL) &&
	       holds(here, "made/fresh", "fresh\n");
}

static bool write_set(const struct here *here, struct err *err)
{
	static const char *const names[SET] = {"change", "made/fresh", "gone"};
	struct place places[SET];
	struct place_change changes[SET] = {{.content = STR("new\n")},
					    {.content = STR("fresh\n")},
					    {.removes = true}};
	char marks[SET][FILES_MARK];
	bool ok = true;

	files_mark(STR("old\n"), NULL, marks[0]);
	files_mark(STR("bye\n"), NULL, marks[2]);
	for (size_t i = 0; i < SET; i++) {
		place_init(&places[i]);
		changes[i].place = &places[i];
		changes[i].expected_mark = i == 1 ? NULL : marks[i];
		ok = ok && files_place(here->files, names[i], true, &places[i], err);
	}
	ok = ok && place_write_set(changes, SET, err);
	for (size_t i = 0; i < SET; i++)
		place_fini(&places[i]);
	return ok;
}

static void a_set_is_written_whole(void **state)
{
	struct here *here = *state;
	struct err err = {0};
	struct stat st;
	char path[256];

	prepare(here);
	assert_true(write_set(here, &err));
	assert_true(is_new(here));
	assert_int_equal(temps_below(here), 0);
	assert_int_equal(stat(path_of(here, "change", path), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void a_set_that_cannot_be_whole_leaves_everything(void **state)
{
	struct here *here = *state;
	struct err err = {0};
	char path[256];

	prepare(here);
	put(here, "gone", "changed since\n");
	assert_false(write_set(here, &err));
	assert_int_equal(err.code, EAGAIN);
	assert_true(holds(here, "change", "old\n"));
	assert_true(holds(here, "gone", "changed since\n"));
	assert_int_equal(access(path_of(here, "made", path), F_OK), -1);
	assert_int_equal(temps_below(here), 0);
}

/* What cannot be had everywhere is refused in this process. */
static void refuse_gifts(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(9);
}

static void works_without_nameless_files_and_exchanges(void **state)
{
	struct here *here = *state;
	struct err err = {0};
	int status;
	pid_t pid;

	prepare(here);
	pid = fork();
	if (pid == 0) {
		refuse_gifts();
		_exit(write_set(here, &err) && is_new(here) && temps_below(here) == 0 ? 0
										      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Let a writer live for so many stops at its system calls. True when it came to its end. */
static bool write_and_kill(const struct here *here, unsigned stops, bool poor)
{
	struct err err = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (poor)
			refuse_gifts();
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		(void)write_set(here, &err);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; i < stops && WIFSTOPPED(status); i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	if (!WIFSTOPPED(status))
		return true;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return false;
}

/* What the next start does. */
static void finish(const struct here *here)
{
	struct value *rows = place_unfinished(here->journal);

	place_finish(here->files, rows);
	value_free(rows);
	assert_int_equal(ftruncate(here->journal, 0), 0);
}

static void assert_old_or_new_after_the_next_start(struct here *here, const char *when,
						   unsigned number)
{
	files_close(here->files);
	open_files(here);
	finish(here);
	if (!is_old(here) && !is_new(here))
		fail_msg("killed %s %u: neither old nor new", when, number);
	if (temps_below(here) != 0)
		fail_msg("killed %s %u: %u files left behind", when, number,
			 temps_below(here));
}

static void killed_before_any_system_call_it_is_old_or_new(void **state)
{
	struct here *here = *state;
	unsigned both[2] = {0, 0};

	for (int poor = 0; poor < 2; poor++) {
		bool ended = false;

		for (unsigned stops = 1; !ended && stops < STOPS_MAX; stops++) {
			prepare(here);
			ended = write_and_kill(here, stops, poor == 1);
			assert_old_or_new_after_the_next_start(here, "at stop", stops);
			both[is_new(here)]++;
		}
		assert_true(ended);
	}
	assert_true(both[0] > 20 && both[1] > 20);
}

static void killed_at_a_random_moment_it_is_old_or_new(void **state)
{
	struct here *here = *state;
	struct err err = {0};
	int64_t began = clock_now_us();
	uint32_t took;

	prepare(here);
	assert_true(write_set(here, &err));
	took = (uint32_t)(clock_now_us() - began) + 1000;
	for (unsigned i = 0; i < KILLS; i++) {
		struct timespec wait = {0};
		uint32_t random;
		pid_t pid;

		prepare(here);
		assert_int_equal(getrandom(&random, sizeof(random), 0), sizeof(random));
		wait.tv_nsec = (long)(random % (2 * took)) * 1000L % 1000000000L;
		pid = fork();
		if (pid == 0) {
			(void)write_set(here, &err);
			_exit(0);
		}
		(void)nanosleep(&wait, NULL);
		(void)kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_old_or_new_after_the_next_start(here, "at random, run", i);
	}
}

/* Has the writer noted that all of its files are prepared? */
static bool is_prepared(const struct here *here)
{
	char text[4096];
	ssize_t size = pread(here->journal, text, sizeof(text), 0);
	unsigned lines = 0;

	for (ssize_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	return lines == 2;
}

/*
 * A writer whose set meets another's file when it is in place but for that one, and which takes
 * it back: it is killed so many stops after the other came. True when it came to its end.
 */
static bool write_meet_and_kill(const struct here *here, unsigned stops, bool poor)
{
	struct err err = {0};
	bool met = false;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (poor)
			refuse_gifts();
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		(void)write_set(here, &err);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; (!met || i < stops) && WIFSTOPPED(status); i += met) {
		if (!met && is_prepared(here)) {
			put(here, "made/fresh", "theirs\n");
			met = true;
		}
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(met);
	if (!WIFSTOPPED(status))
		return true;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return false;
}

static void killed_while_it_takes_back_all_is_old_again(void **state)
{
	struct here *here = *state;
	char path[256];

	for (int poor = 0; poor < 2; poor++) {
		bool ended = false;

		for (unsigned stops = 0; !ended && stops < STOPS_MAX; stops++) {
			prepare(here);
			ended = write_meet_and_kill(here, stops, poor == 1);
			files_close(here->files);
			open_files(here);
			finish(here);
			if (!holds(here, "change", "old\n") ||
			    !holds(here, "gone", "bye\n") ||
			    !holds(here, "made/fresh", "theirs\n"))
				fail_msg("killed %u stops after the other came: not old",
					 stops);
			assert_int_equal(temps_below(here), 0);
			assert_int_equal(unlink(path_of(here, "made/fresh", path)), 0);
		}
		assert_true(ended);
	}
}

/* What somebody has made of a new file since the kill is not taken back. */
static void what_was_edited_since_the_kill_stays(void **state)
{
	struct here *here = *state;
	unsigned kept = 0;

	for (unsigned stops = 1; stops < STOPS_MAX; stops++) {
		prepare(here);
		if (write_and_kill(here, stops, false))
			break;
		if (!is_prepared(here) || !holds(here, "change", "new\n") ||
		    !holds(here, "gone", "bye\n")) {
			finish(here);
			continue;
		}
		/* One of them is new and edited, another is in the way. */
		put(here, "change", "mine and longer\n");
		put(here, "gone", "also mine\n");
		finish(here);
		assert_true(holds(here, "change", "mine and longer\n"));
		assert_true(holds(here, "gone", "also mine\n"));
		assert_true(holds(here, "made/fresh", NULL));
		assert_int_equal(temps_below(here), 0);
		kept++;
	}
	assert_true(kept > 0);
}

/* A journal that a worker has written who was taken over. */
static void forge(const struct here *here, const char *rows, const char *known)
{
	char text[1024];
	int size = snprintf(text, sizeof(text), "%s\n%s\n", rows, known);

	assert_int_equal(pwrite(here->journal, text, (size_t)size, 0), size);
	finish(here);
}

static void a_forged_journal_moves_nothing_it_may_not(void **state)
{
	struct here *here = *state;
	static const char temp[] = ".glovebox-0123456789abcdef.tmp";
	char rows[512];

	put(here, "victim", "safe\n");
	put(here, "mine", "forged\n");
	forge(here, "not JSON", "at all");
	forge(here, "{}", "[]");
	forge(here, "[1, null, {}]", "[1, null, {}]");
	/* Not a temp file of ours. */
	(void)snprintf(rows, sizeof(rows),
		       "[{\"folder\": \"%s\", \"name\": \"victim\", \"temp\": \"mine\", "
		       "\"keep\": \"mine\"}]",
		       here->base);
	forge(here, rows, "[{\"new\": \"1\", \"existed\": false}]");
	assert_true(holds(here, "victim", "safe\n") && holds(here, "mine", "forged\n"));
	/* A path instead of a name, and a folder outside. */
	(void)snprintf(rows, sizeof(rows),
		       "[{\"folder\": \"%s\", \"name\": \"../victim\", \"temp\": \"%s\", "
		       "\"keep\": \"%s\", \"removes\": true}]",
		       here->base, temp, temp);
	forge(here, rows, "[{\"existed\": true}]");
	(void)snprintf(rows, sizeof(rows),
		       "[{\"folder\": \"/tmp\", \"name\": \"victim\", \"temp\": \"%s\", "
		       "\"keep\": \"%s\", \"removes\": true}]",
		       temp, temp);
	forge(here, rows, "[{\"existed\": true}]");
	/* The file is not the one that the writer had seen. */
	put(here, temp, "forged\n");
	(void)snprintf(rows, sizeof(rows),
		       "[{\"folder\": \"%s\", \"name\": \"victim\", \"temp\": \"%s\", "
		       "\"keep\": \"%s\"}]",
		       here->base, temp, temp);
	forge(here, rows,
	      "[{\"new\": \"1\", \"existed\": true, \"old\": \"1\", \"size\": \"5\", "
	      "\"s\": \"1\", \"ns\": 1}]");
	assert_true(holds(here, "victim", "safe\n"));
	assert_true(holds(here, temp, NULL));
}

static void a_forged_journal_follows_no_link(void **state)
{
	struct here *here = *state;
	static const char temp[] = ".glovebox-0123456789abcdef.tmp";
	char rows[512], path[256], target[256];

	assert_int_equal(mkdir(path_of(here, "real", path), 0755), 0);
	assert_int_equal(symlink("real", path_of(here, "link", target)), 0);
	(void)snprintf(target, sizeof(target), "real/%s", temp);
	put(here, target, "kept\n");
	(void)snprintf(rows, sizeof(rows),
		       "[{\"folder\": \"%s/link\", \"name\": \"victim\", \"temp\": \"%s\", "
		       "\"keep\": \"%s\"}]",
		       here->base, temp, temp);
	forge(here, rows, "[]");
	assert_true(holds(here, target, "kept\n"));
}

static void names_that_are_no_utf_8_are_finished_too(void **state)
{
	struct here *here = *state;
	static const char name[] = "\xff\xfe";
	char mark[FILES_MARK];
	struct place place;
	struct err err = {0};
	unsigned most = 0;
	bool ended = false;

	for (unsigned stops = 1; !ended && stops < STOPS_MAX; stops++) {
		int status;
		pid_t pid;

		put(here, name, "old\n");
		pid = fork();
		if (pid == 0) {
			const struct place_change change = {.place = &place,
							    .content = STR("new\n"),
							    .expected_mark = mark};
			struct place_change changes[] = {change};
			files_mark(STR("old\n"), NULL, mark);
			place_init(&place);
			(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			(void)raise(SIGSTOP);
			(void)(files_place(here->files, name, true, &place, &err) &&
			       place_write_set(changes, 1, &err));
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		for (unsigned i = 0; i < stops && WIFSTOPPED(status); i++) {
			assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
			assert_int_equal(waitpid(pid, &status, 0), pid);
		}
		ended = !WIFSTOPPED(status);
		if (!ended) {
			assert_int_equal(kill(pid, SIGKILL), 0);
			assert_int_equal(waitpid(pid, &status, 0), pid);
		}
		most = temps_below(here) > most ? temps_below(here) : most;
		finish(here);
		assert_true(holds(here, name, "old\n") || holds(here, name, "new\n"));
		assert_int_equal(temps_below(here), 0);
	}
	assert_true(ended);
	/* It lay there for a moment, or this has shown nothing. */
	assert_int_equal(most, 1);
}

static void a_full_journal_leaves_everything(void **state)
{
	struct here *here = *state;
	struct err err = {0};
	auto_close int full = open("/dev/full", O_RDWR | O_CLOEXEC);

	assert_true(full >= 0);
	prepare(here);
	files_journal(here->files, full);
	assert_false(write_set(here, &err));
	assert_non_null(strstr(err.text, "the journal of this write"));
	assert_true(is_old(here));
	assert_int_equal(temps_below(here), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(a_set_is_written_whole),
		TEST(a_set_that_cannot_be_whole_leaves_everything),
		TEST(works_without_nameless_files_and_exchanges),
		TEST(killed_before_any_system_call_it_is_old_or_new),
		TEST(killed_at_a_random_moment_it_is_old_or_new),
		TEST(killed_while_it_takes_back_all_is_old_again),
		TEST(what_was_edited_since_the_kill_stays),
		TEST(a_forged_journal_moves_nothing_it_may_not),
		TEST(a_forged_journal_follows_no_link),
		TEST(names_that_are_no_utf_8_are_finished_too),
		TEST(a_full_journal_leaves_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
