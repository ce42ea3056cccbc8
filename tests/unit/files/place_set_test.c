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
#include "files/record.h"
#include "files/rights.h"

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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	SET = 3,
	STOPS_MAX = 2000, /* a write of three files makes some 150 calls, each stops twice */
	/*
	 * From the stop before a call to the stop before the next one: at the stop behind a call
	 * everything is as before the next.
	 */
	STOPS_APART = 2,
	KILLS = 200,
};

struct here {
	char base[64];
	struct files *files;
	int log_fd;
	struct undo_log log;
	struct value *rights; /* of the writer: everything below the base */
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
}

/* A call begins, with an empty log. */
static void begin_log(struct here *here)
{
	assert_int_equal(ftruncate(here->log_fd, 0), 0);
	assert_int_equal(fchmod(here->log_fd, 0600), 0);
	undo_log_begin(&here->log, here->log_fd, 1);
	files_keep(here->files, &here->log);
}

/* Rights to write below PATH of the base ("": the base itself). */
static struct value *rights_below(const struct here *here, const char *path)
{
	struct value *rights = value_new_object(), *roots = value_new_array();
	struct value *root = value_new_object();
	char full[256];

	(void)snprintf(full, sizeof(full), "%s%s%s", here->base,
		       path[0] != '\0' ? "/" : "", path);
	value_set_text(root, "path", full);
	value_set_boolean(root, "writable", true);
	value_append(roots, root);
	value_set(rights, "roots", roots);
	value_set(rights, "hidden", value_new_array());
	value_set(rights, "closed", value_new_array());
	return rights;
}

static int set_up(void **state)
{
	struct here *here = memory_alloc(sizeof(*here));

	/* In memory where that can be: a disk would be waited for some thousand times. */
	(void)snprintf(here->base, sizeof(here->base), "%s/glovebox-unit-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(here->base));
	here->log_fd = memfd_create("log", MFD_CLOEXEC);
	assert_true(here->log_fd >= 0);
	here->rights = rights_below(here, "");
	open_files(here);
	begin_log(here);
	*state = here;
	return 0;
}

static int tear_down(void **state)
{
	struct here *here = *state;

	files_close(here->files);
	(void)close(here->log_fd);
	value_free(here->rights);
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
static void prepare(struct here *here)
{
	char path[256];

	begin_log(here);

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
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	assert_false(undo_log_is_unfinished(here->log_fd));
}

struct noted {
	bool stands;
	size_t changes;
};

static bool take_note(void *context, const struct undo_note *note)
{
	struct noted *noted = context;

	noted->stands |= note->kind == UNDO_NOTE_STANDS;
	return true;
}

static bool take_file(void *context, const struct undo_change *change)
{
	struct noted *noted = context;

	noted->changes += !undo_is_of_folders(change->before.kind, change->after.kind);
	return true;
}

static struct noted noted_in(const struct here *here)
{
	struct noted noted = {0};
	struct undo_reader reader = {.note = take_note,
				     .change = take_file,
				     .context = &noted};
	struct err err = {0};

	assert_true(undo_log_read(&reader, here->log_fd, &err));
	return noted;
}

/* Has the writer noted that all of its files are in place? */
static bool stands(const struct here *here)
{
	return noted_in(here).stands;
}

static size_t changes_in(const struct here *here)
{
	return noted_in(here).changes;
}

/* Has the writer noted all of its files, of which none may be in place yet? */
static bool is_prepared(const struct here *here)
{
	return changes_in(here) == SET && !stands(here);
}

static void assert_old_or_new_after_the_next_start(struct here *here, const char *when,
						   unsigned number)
{
	char path[256];

	files_close(here->files);
	open_files(here);
	finish(here);
	if (!is_old(here) && !is_new(here))
		fail_msg("killed %s %u: neither old nor new", when, number);
	if (is_old(here) && access(path_of(here, "made", path), F_OK) == 0)
		fail_msg("killed %s %u: the folder that it had made is left", when, number);
	if (temps_below(here) != 0)
		fail_msg("killed %s %u: %u files left behind", when, number,
			 temps_below(here));
}

static void killed_before_any_system_call_it_is_old_or_new(void **state)
{
	struct here *here = *state;
	unsigned both[2] = {0, 0}, stood = 0;

	for (int poor = 0; poor < 2; poor++) {
		bool ended = false;

		for (unsigned stops = 1; !ended && stops < STOPS_MAX; stops += STOPS_APART) {
			prepare(here);
			ended = write_and_kill(here, stops, poor == 1);
			stood += ended ? 0 : stands(here);
			assert_old_or_new_after_the_next_start(here, "at stop", stops);
			both[is_new(here)]++;
			assert_int_equal(changes_in(here) == 0, is_old(here));
		}
		assert_true(ended);
	}
	/* Both of them are old and new, before the set stands and after it. */
	assert_true(both[0] > 20 && both[1] > 5 && stood > 5);
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

/*
 * A writer whose set meets another's file when it is in place but for that one, and which takes
 * it back: it is killed so many stops after the other came. True when it came to its end.
 */
static bool write_meet_and_kill(const struct here *here, unsigned stops, bool poor)
{
	struct err err = {0};
	struct stat log = {.st_size = -1};
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
		const off_t before = log.st_size;

		assert_int_equal(fstat(here->log_fd, &log), 0);
		/* The log is read when there is more of it. */
		if (!met && log.st_size != before && is_prepared(here)) {
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
		/* The old file of the first one, whose place is taken, each time. */
		assert_int_equal(temps_below(here), ++kept);
	}
	assert_true(kept > 0);
}

static const char temp[] = ".glovebox-0123456789abcdef.tmp";

static struct undo_state state_of(const struct here *here, const char *name)
{
	struct undo_state state = undo_absent;
	char path[256];
	struct stat st;

	if (lstat(path_of(here, name, path), &st) == 0)
		undo_state_of(&st, &state);
	return state;
}

/*
 * The log of a worker that was taken over: a set of one file at PATH (below the base unless
 * it is absolute), whose states are those of BEFORE and AFTER.
 */
static void forge(struct here *here, const char *path, const char *temp_name,
		  const char *keep_name, const char *before, const char *after)
{
	struct undo_note note = {.kind = UNDO_NOTE_SET};
	const struct undo_state then = state_of(here, before), now = state_of(here, after);
	struct err err = {0};
	char full[256];

	begin_log(here);
	assert_true(undo_log_note(&here->log, &note, &err));
	note.kind = UNDO_NOTE_TEMPS;
	note.path = str_of(path[0] == '/' ? path : path_of(here, path, full));
	(void)snprintf(note.temp, sizeof(note.temp), "%s", temp_name);
	(void)snprintf(note.keep, sizeof(note.keep), "%s", keep_name);
	assert_true(undo_log_note(&here->log, &note, &err));
	assert_true(undo_log_change(&here->log, note.path, &then, &now, &err));
	assert_true(undo_log_say(&here->log, UNDO_NOTE_PUTS, &err));
}

static void a_forged_log_moves_nothing_it_may_not(void **state)
{
	struct here *here = *state;
	struct err err = {0};
	char path[256];

	put(here, "victim", "safe\n");
	put(here, "forged", "forged\n");
	/* No log at all, and one that is broken behind its beginning. */
	assert_true(fd_write_all(here->log_fd, "not a log, not at all", 21, &err));
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	forge(here, "victim", temp, temp, "forged", "victim");
	assert_int_equal(pwrite(here->log_fd, "x", 1, 0), 1);
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	/* Not a temporary file of ours. */
	const char *const theirs[][2] = {{"forged", ""},
					 {"../forged", ""},
					 {temp, "forged"},
					 {"", ""}};
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
		forge(here, "victim", theirs[i][0], theirs[i][1], "forged", "victim");
		assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
		assert_true(holds(here, "victim", "safe\n"));
		assert_true(holds(here, "forged", "forged\n"));
	}
	/* A file to which the session of the log had no right. */
	forge(here, "/tmp/victim", temp, temp, "forged", "victim");
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	/* The file is not the one that the log names. */
	put(here, temp, "forged\n");
	forge(here, "victim", temp, temp, temp, "forged");
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	assert_true(holds(here, "victim", "safe\n"));
	/* It may be the only old file, so it stays. */
	assert_true(holds(here, temp, "forged\n"));
	/* Nor is one of the same size and time, nor the same one that was written since. */
	const struct timespec times[2] = {{.tv_sec = 7}, {.tv_sec = 7}};
	const struct timespec later[2] = {{.tv_sec = 8}, {.tv_sec = 8}};
	put(here, "twin", "Safe\n");
	assert_int_equal(utimensat(AT_FDCWD, path_of(here, "twin", path), times, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, path_of(here, "victim", path), times, 0), 0);
	put(here, temp, "forged\n");
	forge(here, "victim", temp, temp, temp, "twin");
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	assert_true(holds(here, "victim", "safe\n"));
	put(here, temp, "forged\n");
	forge(here, "victim", temp, temp, temp, "victim");
	assert_int_equal(utimensat(AT_FDCWD, path_of(here, "victim", path), later, 0), 0);
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	assert_true(holds(here, "victim", "safe\n"));
	/* What stands in place of the temporary file is no file that the log names. */
	assert_int_equal(unlink(path_of(here, temp, path)), 0);
	assert_int_equal(mkdir(path_of(here, temp, path), 0755), 0);
	forge(here, "victim", temp, temp, temp, "victim");
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	assert_true(holds(here, "victim", "safe\n"));
	assert_int_equal(rmdir(path), 0);
}

/* Nothing is done that the session of the log, or this one, has no right to. */
static void only_what_both_sessions_may_write_is_put_back(void **state)
{
	struct here *here = *state;
	auto_value struct value *docs = rights_below(here, "docs");
	auto_value struct value *nobody = value_new_object();
	auto_value struct value *granted = value_new_object();
	struct value *list = value_new_array();
	const struct files_root readable = {here->base, false, NULL};
	struct files *reads;
	struct err err = {0};
	char path[256];

	put(here, "victim", "new\n");
	put(here, temp, "old\n");
	auto_value struct value *unlimited = value_copy(here->rights);
	value_remove(unlimited, "hidden");
	const struct value *const without[] = {docs, nobody, unlimited, NULL};
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		forge(here, "victim", temp, temp, temp, "victim");
		assert_true(place_put_back(here->files, here->log_fd, without[i], NULL));
		assert_true(holds(here, "victim", "new\n") && holds(here, temp, "old\n"));
		/* Nobody has to look at it once more. */
		assert_false(undo_log_is_unfinished(here->log_fd));
	}
	/* This session may only read: a later one does it. */
	forge(here, "victim", temp, temp, temp, "victim");
	assert_true(files_open(&readable, 1, here->base, NULL, &reads, &err));
	assert_false(place_put_back(reads, here->log_fd, here->rights, NULL));
	files_close(reads);
	assert_true(undo_log_is_unfinished(here->log_fd));
	assert_true(holds(here, "victim", "new\n") && holds(here, temp, "old\n"));
	/* A person had granted the folder to the session. */
	value_append(list, value_new_text(here->base));
	value_set(granted, RIGHTS_GRANTED, list);
	assert_true(place_put_back(here->files, here->log_fd, granted, NULL));
	assert_true(holds(here, "victim", "old\n") && holds(here, temp, NULL));
	/* That holds for no file of git in it. */
	assert_int_equal(mkdir(path_of(here, ".git", path), 0755), 0);
	put(here, ".git/config", "new\n");
	(void)snprintf(path, sizeof(path), ".git/%s", temp);
	put(here, path, "old\n");
	forge(here, ".git/config", temp, temp, path, ".git/config");
	assert_true(place_put_back(here->files, here->log_fd, granted, NULL));
	assert_true(holds(here, ".git/config", "new\n"));
}

static void a_forged_log_follows_no_link(void **state)
{
	struct here *here = *state;
	char path[256], target[256];

	assert_int_equal(mkdir(path_of(here, "real", path), 0755), 0);
	assert_int_equal(symlink("real", path_of(here, "link", target)), 0);
	(void)snprintf(target, sizeof(target), "real/%s", temp);
	put(here, target, "kept\n");
	forge(here, "link/victim", temp, temp, target, "real/victim");
	assert_true(place_put_back(here->files, here->log_fd, here->rights, NULL));
	assert_true(holds(here, target, "kept\n"));
	assert_true(holds(here, "real/victim", NULL));
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
		begin_log(here);
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

static void a_full_log_leaves_everything(void **state)
{
	struct here *here = *state;
	struct err err = {0};
	auto_close int full = open("/dev/full", O_RDWR | O_CLOEXEC);
	char path[256];

	assert_true(full >= 0);
	prepare(here);
	assert_int_equal(mkdir(path_of(here, "made", path), 0755), 0);
	undo_log_begin(&here->log, full, 1);
	assert_false(write_set(here, &err));
	assert_non_null(strstr(err.text, "the log of this write"));
	assert_true(is_old(here));
	assert_int_equal(temps_below(here), 0);
}

/* Wherever the space ends: what is told as failed is old, and the log says nothing else. */
static void a_log_that_fills_up_leaves_everything(void **state)
{
	struct here *here = *state;
	struct err err = {0};
	unsigned failed = 0;
	struct stat st;

	prepare(here);
	assert_true(write_set(here, &err));
	assert_int_equal(fstat(here->log_fd, &st), 0);
	for (rlim_t room = 64; room <= (rlim_t)st.st_size; room += 8) {
		const struct rlimit limit = {room, RLIM_INFINITY};
		int status;

		prepare(here);
		pid_t pid = fork();
		if (pid == 0) {
			(void)signal(SIGXFSZ, SIG_IGN);
			(void)setrlimit(RLIMIT_FSIZE, &limit);
			_exit(write_set(here, &err) ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		const bool told_new = WEXITSTATUS(status) == 0;
		assert_true(told_new ? is_new(here) : is_old(here));
		assert_int_equal(temps_below(here), 0);
		/* A process that is killed now changes nothing about that. */
		finish(here);
		assert_true(told_new ? is_new(here) : is_old(here));
		failed += !told_new;
	}
	assert_true(failed > 50);
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
		TEST(a_forged_log_moves_nothing_it_may_not),
		TEST(only_what_both_sessions_may_write_is_put_back),
		TEST(a_forged_log_follows_no_link),
		TEST(names_that_are_no_utf_8_are_finished_too),
		TEST(a_full_log_leaves_everything),
		TEST(a_log_that_fills_up_leaves_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
