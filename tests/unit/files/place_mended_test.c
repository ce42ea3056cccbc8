/*
 * A set of writes that was killed, and the mender that comes after it. The set replaces one
 * file, removes another and makes a third one in a new folder. The writer is killed before
 * each call by which the disk changes, on three kinds of file system. Then each call of the
 * mender fails in turn, or the mender is killed there, or somebody else has changed one of
 * the names or temporary files before it came. In the end the set is old or new, no byte of
 * the old files is lost, and nothing of ours is left once the log is worked off.
 */
#include "../base/tree.h"
#include "../base/unit.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "files/place.h"
#include "files/record.h"
#include "files/rights.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The file systems, by what they can do. */

enum disk {
	DISK_RICH,
	DISK_POOR,    /* no nameless files, no names that are exchanged or must be free */
	DISK_UNNAMED, /* a nameless file gets no name: there is no /proc */
	DISKS,
};
static enum disk disk;

/* One call fails, or all from then on, or the process ends before it. */

enum fault_kind { FAULT_NONE, FAULT_ONCE, FAULT_ALWAYS, FAULT_KILL };
static struct {
	enum fault_kind kind;
	unsigned at, seen;
	int code;
} fault;

static bool fails(bool changes)
{
	if (fault.kind == FAULT_NONE || (fault.kind == FAULT_KILL && !changes))
		return false;
	const unsigned now = fault.seen++;
	if (now < fault.at || (fault.kind != FAULT_ALWAYS && now > fault.at))
		return false;
	if (fault.kind == FAULT_KILL)
		_exit(9);
	errno = fault.code;
	return true;
}

static long to_kernel(long number, long a, long b, long c, long d, long e)
{
	static long (*kernel)(long, ...);

	if (kernel == NULL) {
		void *found = dlsym(RTLD_NEXT, "syscall");

		memcpy(&kernel, &found, sizeof(found));
	}
	return kernel(number, a, b, c, d, e);
}

static bool refuse(int code)
{
	errno = code;
	return true;
}

long syscall(long number, ...)
{
	long a[5];
	va_list list;

	va_start(list, number);
	for (size_t i = 0; i < 5; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	return fails(false) ? -1 : to_kernel(number, a[0], a[1], a[2], a[3], a[4]);
}

int openat(int folder, const char *name, int flags, ...)
{
	const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
	va_list list;

	va_start(list, flags);
	const int mode = (flags & O_CREAT) != 0 || nameless ? va_arg(list, int) : 0;
	va_end(list);
	if (fails((flags & O_CREAT) != 0) ||
	    (nameless && disk == DISK_POOR && refuse(EOPNOTSUPP)))
		return -1;
	return (int)to_kernel(SYS_openat, folder, (long)name, flags, mode, 0);
}

int fstatat(int folder, const char *restrict name, struct stat *restrict st, int flags)
{
	return fails(false) ? -1
			    : (int)to_kernel(SYS_newfstatat, folder, (long)name, (long)st,
					     flags, 0);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	if (fails(true) || (flags != 0 && disk == DISK_POOR && refuse(EINVAL)))
		return -1;
	return (int)to_kernel(SYS_renameat2, from, (long)old, to, (long)new, flags);
}

int renameat(int from, const char *old, int to, const char *new)
{
	return fails(true)
		       ? -1
		       : (int)to_kernel(SYS_renameat2, from, (long)old, to, (long)new, 0);
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
	if (fails(true) ||
	    (disk == DISK_UNNAMED && strncmp(old, "/proc/", 6) == 0 && refuse(ENOENT)))
		return -1;
	return (int)to_kernel(SYS_linkat, from, (long)old, to, (long)new, flags);
}

int unlinkat(int folder, const char *name, int flags)
{
	return fails(true) ? -1
			   : (int)to_kernel(SYS_unlinkat, folder, (long)name, flags, 0, 0);
}

int mkdirat(int folder, const char *name, mode_t mode)
{
	return fails(true) ? -1
			   : (int)to_kernel(SYS_mkdirat, folder, (long)name, mode, 0, 0);
}

int fsync(int fd)
{
	return fails(false) ? -1 : (int)to_kernel(SYS_fsync, fd, 0, 0, 0, 0);
}

int fdatasync(int fd)
{
	return fails(false) ? -1 : (int)to_kernel(SYS_fdatasync, fd, 0, 0, 0, 0);
}

int fchmod(int fd, mode_t mode)
{
	return fails(true) ? -1 : (int)to_kernel(SYS_fchmod, fd, mode, 0, 0, 0);
}

int ftruncate(int fd, off_t size)
{
	return fails(true) ? -1 : (int)to_kernel(SYS_ftruncate, fd, size, 0, 0, 0);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	return fails(true) ? -1
			   : to_kernel(SYS_pwrite64, fd, (long)data, (long)size, at, 0);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	return fails(false) ? -1
			    : to_kernel(SYS_pread64, fd, (long)data, (long)size, at, 0);
}

/* The set, and what lies on disk of it. */

enum {
	SET = 3,
	STEPS_MAX = 100,  /* calls of a writer by which the disk changes; some 30 */
	CALLS_MAX = 1000, /* calls of a mender; some 80 */
	FOUND_MAX = 16,
	TEXT = 64,
	LOG_MAX = 16384,
};

static const char *const names[SET] = {"change", "gone", "made/fresh"};
static const char *const before[SET] = {"old\n", "bye\n", NULL};
static const char *const nothing[SET] = {NULL, NULL, NULL};
static const char *const after[SET] = {"new\n", NULL, "fresh\n"};

struct found {
	char name[TEXT]; /* below the base */
	char text[TEXT];
	ino_t inode;
};

struct tree {
	struct found files[FOUND_MAX];
	size_t count;
	bool made; /* the folder is there */
	char log[LOG_MAX];
	size_t log_size;
};

struct here {
	char base[64];
	struct files *files;
	struct value *rights;
	int log_fd;
	struct undo_log log;
	ino_t old[SET];
	struct buf told;
	char when[128];
};

static char *path_of(const struct here *here, const char *name, char path[128])
{
	(void)snprintf(path, 128, "%s/%s", here->base, name);
	return path;
}

static void look_below(const struct here *here, const char *folder, struct tree *tree)
{
	char path[128];
	DIR *list = opendir(path_of(here, folder, path));
	struct stat st;

	if (list == NULL)
		return;
	for (const struct dirent *at; (at = readdir(list)) != NULL;) {
		struct found *found = &tree->files[tree->count];
		auto_close int fd =
			openat(dirfd(list), at->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		assert_true(++tree->count < FOUND_MAX);
		*found = (struct found){.inode = st.st_ino};
		(void)snprintf(found->name, TEXT, "%s%s%.40s", folder,
			       folder[0] != '\0' ? "/" : "", at->d_name);
		assert_true(read(fd, found->text, TEXT - 1) >= 0);
	}
	(void)closedir(list);
}

static struct tree look(const struct here *here)
{
	struct tree tree = {0};
	char path[128];

	look_below(here, "", &tree);
	look_below(here, "made", &tree);
	tree.made = access(path_of(here, "made", path), F_OK) == 0;
	const ssize_t size = pread(here->log_fd, tree.log, sizeof(tree.log), 0);
	assert_true(size >= 0 && size < LOG_MAX);
	tree.log_size = (size_t)size;
	return tree;
}

static const struct found *named(const struct tree *tree, const char *name)
{
	for (size_t i = 0; i < tree->count; i++) {
		if (strcmp(tree->files[i].name, name) == 0)
			return &tree->files[i];
	}
	return NULL;
}

static bool is_temp(const struct found *found)
{
	return strstr(found->name, ".glovebox-") != NULL;
}

/* Is name I as in TEXTS? */
static bool holds(const struct tree *tree, size_t i, const char *const texts[SET])
{
	const struct found *found = named(tree, names[i]);

	return texts[i] == NULL ? found == NULL
				: found != NULL && strcmp(found->text, texts[i]) == 0;
}

/* Are all names as in TEXTS, but for the name ELSEWHERE (SET: none)? */
static bool is_all(const struct tree *tree, const char *const texts[SET], size_t elsewhere)
{
	for (size_t i = 0; i < SET; i++) {
		if (i != elsewhere && !holds(tree, i, texts))
			return false;
	}
	return true;
}

/* Do A and B hold the same under the names of the set? */
static bool is_same(const struct tree *a, const struct tree *b)
{
	for (size_t i = 0; i < SET; i++) {
		const struct found *one = named(a, names[i]), *other = named(b, names[i]);

		if ((one == NULL) != (other == NULL) ||
		    (one != NULL && strcmp(one->text, other->text) != 0))
			return false;
	}
	return true;
}

static bool has_text(const struct tree *tree, const char *text)
{
	for (size_t i = 0; i < tree->count; i++) {
		if (strstr(tree->files[i].text, text) != NULL)
			return true;
	}
	return false;
}

/* Are A and B the same in everything, the log as well? */
static bool is_untouched(const struct tree *a, const struct tree *b)
{
	bool same = a->count == b->count && a->made == b->made &&
		    a->log_size == b->log_size && memcmp(a->log, b->log, a->log_size) == 0;

	for (size_t i = 0; same && i < a->count; i++) {
		const struct found *other = named(b, a->files[i].name);

		same = other != NULL && other->inode == a->files[i].inode &&
		       strcmp(other->text, a->files[i].text) == 0;
	}
	return same;
}

static void open_files(struct here *here)
{
	const struct files_root root = {here->base, true, NULL};
	struct err err;

	files_close(here->files);
	assert_true(files_open(&root, 1, here->base, NULL, &here->files, &err));
}

static int set_up(void **state)
{
	struct here *here = memory_alloc(sizeof(*here));
	struct value *roots = value_new_array(), *root = value_new_object();

	/* In memory where that can be: a disk would be waited for many thousand times. */
	(void)snprintf(here->base, sizeof(here->base), "%s/glovebox-unit-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(here->base));
	here->log_fd = memfd_create("log", MFD_CLOEXEC);
	here->rights = value_new_object();
	value_set_text(root, "path", here->base);
	value_set_boolean(root, "writable", true);
	value_append(roots, root);
	value_set(here->rights, "roots", roots);
	value_set(here->rights, "hidden", value_new_array());
	value_set(here->rights, "closed", value_new_array());
	buf_init(&here->told, 1 << 16);
	disk = DISK_RICH;
	*state = here;
	return 0;
}

static int tear_down(void **state)
{
	struct here *here = *state;

	files_close(here->files);
	(void)close(here->log_fd);
	value_free(here->rights);
	buf_fini(&here->told);
	tree_remove(here->base);
	free(here);
	return 0;
}

static void put(const struct here *here, const char *name, const char *text, int flags)
{
	char path[128];
	auto_close int fd =
		open(path_of(here, name, path), O_CREAT | O_WRONLY | flags, 0640);

	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text, strlen(text), NULL));
}

/* The old files, and an empty log. */
static void prepare(struct here *here)
{
	struct tree tree = look(here);
	char path[128];

	for (size_t i = 0; i < tree.count; i++)
		(void)unlink(path_of(here, tree.files[i].name, path));
	(void)rmdir(path_of(here, "made", path));
	for (size_t i = 0; i < SET; i++) {
		if (before[i] != NULL)
			put(here, names[i], before[i], O_EXCL);
	}
	tree = look(here);
	for (size_t i = 0; i < SET; i++)
		here->old[i] = before[i] != NULL ? named(&tree, names[i])->inode : 0;
	open_files(here);
	assert_int_equal(ftruncate(here->log_fd, 0), 0);
	assert_int_equal(fchmod(here->log_fd, 0600), 0);
	undo_log_begin(&here->log, here->log_fd, 1);
	files_keep(here->files, &here->log);
	buf_clear(&here->told);
}

static bool write_set(const struct here *here, struct err *err)
{
	struct place places[SET];
	struct place_change changes[SET] = {0};
	char marks[SET][FILES_MARK];
	bool ok = true;

	for (size_t i = 0; i < SET; i++) {
		place_init(&places[i]);
		changes[i] = (struct place_change){.place = &places[i],
						   .removes = after[i] == NULL};
		if (after[i] != NULL)
			changes[i].content = str_of(after[i]);
		if (before[i] != NULL) {
			files_mark(str_of(before[i]), NULL, marks[i]);
			changes[i].expected_mark = marks[i];
		}
		ok = ok && files_place(here->files, names[i], true, &places[i], err);
	}
	ok = ok && place_write_set(changes, SET, err);
	for (size_t i = 0; i < SET; i++)
		place_fini(&places[i]);
	return ok;
}

static void arm(enum fault_kind kind, unsigned at, int code)
{
	fault.kind = kind;
	fault.at = at;
	fault.seen = 0;
	fault.code = code;
}

/* The leaks of a killed process stay in our memory, which it shares. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/*
 * WHAT is done by a process that is killed before its change AT. False: it came to its end.
 * A fork would copy the sanitizer's memory, which takes most of the time.
 */
static bool killed_in(struct here *here, unsigned at, void (*what)(struct here *here))
{
	int status;

	if (__lsan_disable != NULL)
		__lsan_disable();
	/* The parent waits, and needs nothing that the child may change. */
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (pid == 0) {
		arm(FAULT_KILL, at, 0); /* NOLINT(clang-analyzer-unix.Vfork) */
		what(here);
		_exit(0);
	}
	arm(FAULT_NONE, 0, 0);
	if (__lsan_enable != NULL)
		__lsan_enable();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) != 0)
		assert_int_equal(WEXITSTATUS(status), 9);
	return WEXITSTATUS(status) == 9;
}

static void write_once(struct here *here)
{
	struct err err = {0};

	if (!write_set(here, &err))
		_exit(1);
}

/* Kill a writer at STEP on the disk AT. False: there are no more steps. */
static bool killed_at(struct here *here, enum disk at, unsigned step)
{
	assert_true(step < STEPS_MAX);
	(void)snprintf(here->when, sizeof(here->when), "disk %d, step %u", (int)at, step);
	disk = at;
	prepare(here);
	return killed_in(here, step, write_once);
}

static bool mend(struct here *here)
{
	return place_put_back(here->files, here->log_fd, here->rights, &here->told);
}

static void mend_once(struct here *here)
{
	(void)mend(here);
}

/* Has the writer noted that the set stands, or even that it is over? */
static bool take_note(void *context, const struct undo_note *note)
{
	bool *stands = context;

	*stands |= note->kind == UNDO_NOTE_STANDS;
	return true;
}

static bool stands(const struct here *here)
{
	bool stands = false;
	struct undo_reader reader = {.note = take_note, .context = &stands};

	assert_true(undo_log_read(&reader, here->log_fd, NULL));
	return stands;
}

static void check(const struct here *here, bool holds, const char *what)
{
	if (!holds)
		fail_msg("%s: not %s", here->when, what);
}
#define CHECK(condition) check(here, condition, #condition)

/* The log is worked off: the set is whole, and nothing is left of it. */
static void check_whole(struct here *here, bool stood)
{
	const struct tree tree = look(here);

	CHECK(!undo_log_is_unfinished(here->log_fd));
	CHECK(is_all(&tree, stood ? after : before, SET));
	CHECK(tree.count == 2);
	CHECK(tree.made == stood);
	for (size_t i = 0; !stood && i < SET; i++)
		CHECK(before[i] == NULL || named(&tree, names[i])->inode == here->old[i]);
	CHECK(here->told.size == 0);
}

struct counts {
	unsigned runs, refused;
};

/* A mender has met a fault of KIND. DONE: it has said that nothing is left to do. */
static void check_after_fault(struct here *here, const struct tree *was,
			      const struct tree *tree, bool stood, enum fault_kind kind,
			      bool done)
{
	if (done) {
		check_whole(here, stood);
		return;
	}
	if (stood)
		CHECK(is_all(tree, after, SET));
	else
		CHECK(has_text(tree, before[0]) && has_text(tree, before[1]));
	/* Only where the way back fails as well it is between them: the log tells the next. */
	if (kind == FAULT_ONCE)
		CHECK(is_same(tree, was) || is_all(tree, stood ? after : before, SET));
	if (!is_all(tree, stood ? after : before, SET))
		CHECK(undo_log_is_unfinished(here->log_fd));
}

/*
 * Of a set that was killed at STEP, let each call of the mender fail in turn, with CODE.
 * A state that the mender has not touched serves for the next call as well.
 */
static void fail_each(struct here *here, enum disk at, unsigned step,
		      enum fault_kind kind, int code, struct counts *counts)
{
	bool met = true, again = false;

	for (unsigned call = 0; met; call++) {
		assert_true(call < CALLS_MAX);
		if (!again)
			(void)killed_at(here, at, step);
		(void)snprintf(here->when, sizeof(here->when),
			       "disk %d, step %u, fault %d of code %d at call %u",
			       (int)at, step, (int)kind, code, call);
		const bool stood = stands(here);
		const struct tree was = look(here);
		open_files(here);
		arm(kind, call, code);
		const bool done = mend(here);
		met = fault.seen > call;
		arm(FAULT_NONE, 0, 0);
		const struct tree tree = look(here);
		check_after_fault(here, &was, &tree, stood, kind, done);
		counts->runs += met;
		counts->refused += !done;
		again = is_untouched(&was, &tree);
		if (again)
			continue;
		open_files(here);
		CHECK(mend(here));
		check_whole(here, stood);
	}
}

static void each_call_of_the_mender_fails(void **state)
{
	static const int codes[] = {EACCES, EIO, ENOSPC};
	struct here *here = *state;
	struct counts counts = {0};

	for (int at = 0; at < DISKS; at++) {
		for (unsigned step = 0; killed_at(here, (enum disk)at, step); step++) {
			for (size_t i = 0; i < UNIT_COUNT(codes); i++) {
				fail_each(here, (enum disk)at, step, FAULT_ONCE, codes[i],
					  &counts);
				fail_each(here, (enum disk)at, step, FAULT_ALWAYS,
					  codes[i], &counts);
			}
		}
	}
	print_message("%u faults, %u of them told\n", counts.runs, counts.refused);
	assert_true(counts.runs > 5000 && counts.refused > 2000);
}

static void a_mender_is_killed_at_each_change(void **state)
{
	struct here *here = *state;
	unsigned runs = 0;

	for (int at = 0; at < DISKS; at++) {
		for (unsigned step = 0; killed_at(here, (enum disk)at, step); step++) {
			const bool stood = stands(here);
			bool killed = true;

			for (unsigned change = 0; killed; change++) {
				if (change > 0)
					(void)killed_at(here, (enum disk)at, step);
				(void)snprintf(here->when + strlen(here->when), 64,
					       ", mender killed at %u", change);
				killed = killed_in(here, change, mend_once);
				const struct tree tree = look(here);
				CHECK(stood || (has_text(&tree, before[0]) &&
						has_text(&tree, before[1])));
				open_files(here);
				CHECK(mend(here));
				check_whole(here, stood);
				runs += killed;
			}
		}
	}
	print_message("%u menders killed\n", runs);
	assert_true(runs > 200);
}

/* Somebody else's hand on the file NAME, which may be absent. */
enum hand { HAND_WRITES, HAND_TOUCHES, HAND_REPLACES, HAND_REMOVES, HAND_MOVES, HANDS };

static void lay_hand(const struct here *here, const char *name, enum hand hand)
{
	const struct timespec times[2] = {{.tv_sec = 7}, {.tv_sec = 7}};
	char path[128], other[128];

	path_of(here, name, path);
	path_of(here, "elsewhere", other);
	switch (hand) {
	case HAND_WRITES:
		put(here, name, "theirs\n", O_APPEND);
		break;
	case HAND_TOUCHES:
		(void)utimensat(AT_FDCWD, path, times, 0);
		break;
	case HAND_REPLACES:
		put(here, "elsewhere", "theirs\n", O_EXCL);
		assert_int_equal(rename(other, path), 0);
		break;
	case HAND_REMOVES:
		(void)unlink(path);
		break;
	case HAND_MOVES:
		(void)rename(path, other);
		break;
	case HANDS:
		break;
	}
}

/* What somebody else has done to FOUND, before the mender came. */
struct done {
	enum hand hand;
	bool temp;   /* to a temporary file, not to a name of the set */
	size_t row;  /* of the name, or of its file; SET: of none */
	bool of_old; /* it was the old file */
};

static struct done hand_of(const struct here *here, const struct tree *was,
			   const char *name, enum hand hand)
{
	const struct found *found = named(was, name);
	struct done done = {.hand = hand, .temp = true, .row = SET};

	for (size_t i = 0; i < SET; i++) {
		const struct found *linked = named(was, names[i]);

		if (strcmp(name, names[i]) == 0)
			done.temp = false;
		/* On a poor disk a new file has both names for a while. */
		if (strcmp(name, names[i]) == 0 ||
		    (found != NULL && (found->inode == here->old[i] ||
				       (linked != NULL && found->inode == linked->inode))))
			done.row = i;
	}
	done.of_old =
		found != NULL && done.row < SET && found->inode == here->old[done.row];
	return done;
}

/*
 * The mender has worked the log off, in spite of what was DONE in between. Returns whether
 * it told of an old file that is not there any more.
 */
static bool check_after_hand(struct here *here, const struct done *done, bool stood)
{
	const struct tree tree = look(here);
	const bool gone = done->hand == HAND_REMOVES || done->hand == HAND_REPLACES;

	CHECK(!undo_log_is_unfinished(here->log_fd));
	/* What was not touched is all old or all new. */
	CHECK(is_all(&tree, stood ? after : before, done->row));
	/* The old bytes are somewhere, unless somebody else has removed them. */
	for (size_t i = 0; !stood && i < SET; i++) {
		if (before[i] != NULL && !(gone && done->of_old && done->row == i))
			CHECK(has_text(&tree, before[i]));
	}
	/* So are theirs: in a name of the set, or in an old file that is put back. */
	if ((done->hand == HAND_WRITES || done->hand == HAND_REPLACES) &&
	    (!done->temp || (done->of_old && !stood)))
		CHECK(has_text(&tree, "theirs\n"));
	/* A temporary file is left only as the one place of an old file, or as theirs. */
	bool keeps_old = false;
	for (size_t i = 0; i < tree.count; i++) {
		const struct found *found = &tree.files[i];
		bool old = false;

		if (!is_temp(found))
			continue;
		for (size_t j = 0; j < SET; j++)
			old |= found->inode == here->old[j] && !holds(&tree, j, before);
		CHECK(old || strstr(found->text, "theirs\n") != NULL);
		keeps_old |= old;
	}
	/* It tells of the old files that it leaves, and of one that somebody took away. */
	const bool away = here->told.size > 0 && !keeps_old;
	CHECK(!keeps_old || here->told.size > 0);
	CHECK(!away || (done->of_old && holds(&tree, done->row, nothing)));
	return away;
}

static void somebody_else_is_faster_than_the_mender(void **state)
{
	struct here *here = *state;
	unsigned runs = 0, told = 0, away = 0;

	for (enum disk at = 0; at < DISKS; at++) {
		for (unsigned step = 0; killed_at(here, at, step); step++) {
			const bool stood = stands(here);
			struct tree was = look(here);
			size_t count = SET;

			/* The names of the set, then the temporary ones, then the hands. */
			for (size_t i = 0; i < was.count; i++)
				count += is_temp(&was.files[i]);
			for (size_t i = 0; i < count * HANDS; i++) {
				const size_t target = i / HANDS;
				const char *name = target < SET ? names[target] : NULL;

				(void)killed_at(here, at, step);
				was = look(here);
				for (size_t j = 0, left = target - SET;
				     name == NULL && j < was.count; j++) {
					if (is_temp(&was.files[j]) && left-- == 0)
						name = was.files[j].name;
				}
				assert_non_null(name);
				if (strchr(name, '/') != NULL && !was.made)
					continue;
				const struct done done =
					hand_of(here, &was, name, (enum hand)(i % HANDS));
				(void)snprintf(here->when + strlen(here->when), 96,
					       ", hand %zu on %s", i % HANDS, name);
				lay_hand(here, name, done.hand);
				open_files(here);
				CHECK(mend(here));
				away += check_after_hand(here, &done, stood);
				runs++;
				told += here->told.size > 0;
			}
		}
	}
	print_message("%u hands, %u old files told\n", runs, told);
	assert_true(runs > 1000 && told > 5 && away > 5);
}

/* A session that may write one half of the set leaves all of it to a later one. */
static void a_narrower_session_moves_nothing(void **state)
{
	struct here *here = *state;
	char below[128];
	unsigned left = 0;

	path_of(here, "made", below);
	const struct files_root roots[] = {{here->base, false, NULL}, {below, true, NULL}};
	for (int at = 0; at < DISKS; at++) {
		for (unsigned step = 0; killed_at(here, (enum disk)at, step); step++) {
			const bool stood = stands(here);
			const struct tree was = look(here);
			struct files *narrow = NULL;
			struct err err;

			if (was.made) {
				assert_true(files_open(roots, 2, here->base, NULL,
						       &narrow, &err));
				const bool done = place_put_back(narrow, here->log_fd,
								 here->rights, NULL);
				const struct tree tree = look(here);
				files_close(narrow);
				CHECK(is_same(&tree, &was));
				CHECK(done || tree.count == was.count);
				left += !done;
			}
			open_files(here);
			CHECK(mend(here));
			/* Only an empty folder was made: the narrow one may remove it. */
			check_whole(here, stood);
		}
	}
	assert_true(left > 30);
}

/* The log was whole, and lost its end from AT on, or has a wrong bit in the byte AT. */
static void damage(const struct here *here, const struct tree *was, size_t at, bool cut)
{
	const char wrong = (char)(was->log[at] ^ (1 << at % 8));

	assert_int_equal(ftruncate(here->log_fd, 0), 0);
	assert_int_equal(pwrite(here->log_fd, was->log, was->log_size, 0), was->log_size);
	if (cut)
		assert_int_equal(ftruncate(here->log_fd, (off_t)at), 0);
	else
		assert_int_equal(pwrite(here->log_fd, &wrong, 1, (off_t)at), 1);
}

/* Where the last of the temporary names in the log of WAS ends. */
static size_t end_of_names(const struct tree *was)
{
	static const char begin[] = ".glovebox-";
	const char *at = was->log, *next;
	size_t end = 0;

	while ((next = memmem(at, was->log_size - (size_t)(at - was->log), begin,
			      strlen(begin))) != NULL) {
		at = next + 1;
		end = (size_t)(next - was->log) + UNDO_TEMP_NAME + TEXT;
	}
	return end;
}

/* A mender has worked with the damaged log of a set that STOOD or not. NAMED: it could read
 * all temporary names. Returns whether it has noticed the damage. */
static bool check_damaged(struct here *here, bool stood, bool named)
{
	const struct tree tree = look(here);
	const bool noticed = undo_log_is_unfinished(here->log_fd);

	/* A set that has just stood may be put back, as long as all old files are there. */
	if (stood && !is_all(&tree, before, SET))
		CHECK(has_text(&tree, after[0]) && has_text(&tree, after[2]));
	else
		CHECK(has_text(&tree, before[0]) && has_text(&tree, before[1]));
	/* Between old and new it is left only when a person hears of it, with all names. */
	CHECK(noticed || is_all(&tree, before, SET) || is_all(&tree, after, SET));
	for (size_t i = 0; noticed && named && i < tree.count; i++) {
		if (is_temp(&tree.files[i]))
			CHECK(strstr(here->told.data,
				     path_base_name(tree.files[i].name)) != NULL);
	}
	CHECK(noticed || here->told.size == 0);
	return noticed;
}

/* Each end that the log can lose, and a wrong bit in each of its bytes; on some disks samples. */
static void a_damaged_log_loses_no_content(void **state)
{
	enum { SAMPLE = 13 };
	struct here *here = *state;
	unsigned runs = 0, noticed = 0, told = 0;

	for (enum disk at = 0; at < DISKS; at++) {
		for (unsigned step = 0; killed_at(here, at, step); step++) {
			const bool stood = stands(here);
			struct tree was = look(here);
			const size_t stride = at == DISK_RICH && step % 4 == 0 ? 1 : SAMPLE;
			const size_t names_end = end_of_names(&was);
			bool again = true;

			for (size_t i = step % stride; i < 2 * was.log_size; i += stride) {
				if (!again) {
					(void)killed_at(here, at, step);
					was = look(here);
				}
				(void)snprintf(here->when, sizeof(here->when),
					       "disk %d, step %u, %s %zu of %zu", (int)at,
					       step, i % 2 == 0 ? "cut to" : "wrong byte",
					       i / 2, was.log_size);
				damage(here, &was, i / 2, i % 2 == 0);
				buf_clear(&here->told);
				open_files(here);
				CHECK(mend(here));
				noticed += check_damaged(here, stood, i / 2 >= names_end);
				told += here->told.size > 0;
				runs++;
				const struct tree tree = look(here);
				again = is_same(&was, &tree) && was.count == tree.count &&
					was.made == tree.made;
			}
		}
	}
	print_message("%u damages, %u noticed, %u told with names\n", runs, noticed, told);
	assert_true(runs > 5000 && noticed > 2000 && told > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(each_call_of_the_mender_fails),
		TEST(a_mender_is_killed_at_each_change),
		TEST(somebody_else_is_faster_than_the_mender),
		TEST(a_narrower_session_moves_nothing),
		TEST(a_damaged_log_loses_no_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
