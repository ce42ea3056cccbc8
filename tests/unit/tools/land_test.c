/*
 * The tool `land` on a layer that was made by hand: killed before each call by which the
 * disk changes, and with each of these calls failing because the disk is full. In between
 * every file is old or new, the next landing goes on with the same log, and the log tells
 * what each path held at first.
 */
#include "../base/tree.h"
#include "../base/unit.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "files/files.h"
#include "files/place.h"
#include "files/record.h"
#include "tool/call.h"
#include "tools/tools.h"

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
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STEPS_MAX = 1000,
	KILLED = 9,
	DEADLINE_MS = 60000,
	MANY = 600, /* more files than are put on the disk by one sync (undo/place.c) */
	MANY_APART = 701, /* changes of the disk between two faults in a landing of so many */
};

/* One call fails, or the process ends before it. */
static struct {
	enum { FAULT_NONE, FAULT_KILL, FAULT_FULL, FAULT_SYNC } kind;
	unsigned at, seen;
} fault;

static bool fails(void)
{
	if (fault.kind == FAULT_NONE || fault.kind == FAULT_SYNC || fault.seen++ != fault.at)
		return false;
	if (fault.kind == FAULT_KILL)
		_exit(KILLED);
	errno = ENOSPC;
	return true;
}

#define REAL(name)                                     \
	static __typeof__(&(name)) real;               \
	if (real == NULL) {                            \
		void *found = dlsym(RTLD_NEXT, #name); \
		memcpy(&real, &found, sizeof(found));  \
	}

int openat(int folder, const char *name, int flags, ...)
{
	const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
	va_list list;

	va_start(list, flags);
	const int mode = makes ? va_arg(list, int) : 0;
	va_end(list);
	return makes && fails() ? -1 : (int)syscall(SYS_openat, folder, name, flags, mode);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	return fails() ? -1 : (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

int renameat(int from, const char *old, int to, const char *new)
{
	return fails() ? -1 : (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
	return fails() ? -1 : (int)syscall(SYS_linkat, from, old, to, new, flags);
}

int symlinkat(const char *target, int folder, const char *name)
{
	return fails() ? -1 : (int)syscall(SYS_symlinkat, target, folder, name);
}

int unlinkat(int folder, const char *name, int flags)
{
	return fails() ? -1 : (int)syscall(SYS_unlinkat, folder, name, flags);
}

int mkdirat(int folder, const char *name, mode_t mode)
{
	return fails() ? -1 : (int)syscall(SYS_mkdirat, folder, name, mode);
}

ssize_t copy_file_range(int from, off_t *in, int to, off_t *out, size_t size, unsigned flags)
{
	return fails() ? -1
		       : (ssize_t)syscall(SYS_copy_file_range, from, in, to, out, size,
					  flags);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	return fails() ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, data, size, at);
}

/* A thread syncs, so these calls are not counted. */
int syncfs(int fd)
{
	if (fault.kind == FAULT_SYNC) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_syncfs, fd);
}

int chmod(const char *path, mode_t mode)
{
	REAL(chmod)
	return fails() ? -1 : real(path, mode);
}

int fchmod(int fd, mode_t mode)
{
	REAL(fchmod)
	return fails() ? -1 : real(fd, mode);
}

/* The workspace before and after, as one text of names and contents. */

static const char old_state[] =
	"change=old;folder/;folder/in=in;gone/;gone/deep/;gone/deep/x=x;gone/y=y;"
	"kind=file;mode=m644;to>old;";
static const char new_state[] =
	"added=new;change=new;folder=file;kind/;kind/in=new;linked=new;made/;made/one=1;"
	"mode=m755;to>new;";

struct here {
	char base[64];
	struct files *files;
	int log;
	int64_t created_ms;
};

static void path_of(const struct here *here, const char *name, char path[256])
{
	(void)snprintf(path, 256, "%s/%s", here->base, name);
}

static void put(const struct here *here, const char *name, const char *text, mode_t mode)
{
	char path[256];

	path_of(here, name, path);
	const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static void make(const struct here *here, const char *name)
{
	char path[256];

	path_of(here, name, path);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void whiteout(const struct here *here, const char *name)
{
	char path[256];

	path_of(here, name, path);
	assert_int_equal(mknod(path, S_IFCHR, makedev(0, 0)), 0);
}

static void make_trees(struct here *here)
{
	char path[256], other[256];
	static const char *const folders[] = {"ws",           "ws/folder", "ws/gone",
					      "ws/gone/deep", "layer",     "layer/kind",
					      "layer/made"};

	for (size_t i = 0; i < UNIT_COUNT(folders); i++)
		make(here, folders[i]);
	put(here, "ws/change", "old", 0644);
	put(here, "ws/folder/in", "in", 0644);
	put(here, "ws/gone/deep/x", "x", 0644);
	put(here, "ws/gone/y", "y", 0644);
	put(here, "ws/kind", "file", 0644);
	put(here, "ws/mode", "m", 0644);
	path_of(here, "ws/to", path);
	assert_int_equal(symlink("old", path), 0);
	put(here, "layer/added", "new", 0644);
	path_of(here, "layer/added", path);
	path_of(here, "layer/linked", other);
	assert_int_equal(link(path, other), 0);
	put(here, "layer/change", "new", 0644);
	put(here, "layer/folder", "file", 0644);
	put(here, "layer/kind/in", "new", 0644);
	put(here, "layer/made/one", "1", 0644);
	put(here, "layer/mode", "m", 0755);
	path_of(here, "layer/to", path);
	assert_int_equal(symlink("new", path), 0);
	whiteout(here, "layer/gone");
	/* Everything below is older than the layer, so it is its own base. */
	here->created_ms = clock_wall_ms() + DEADLINE_MS;
}

static void open_files(struct here *here)
{
	char workspace[256], layer[256];
	struct err err;

	path_of(here, "ws", workspace);
	path_of(here, "layer", layer);
	const struct files_root roots[] = {{.path = workspace, .writable = true},
					   {.path = layer}};
	files_close(here->files);
	assert_true(files_open(roots, 2, workspace, NULL, &here->files, &err));
}

static void prepare(struct here *here)
{
	char path[256];

	path_of(here, "ws", path);
	tree_remove(path);
	path_of(here, "layer", path);
	tree_remove(path);
	make_trees(here);
	open_files(here);
	assert_int_equal(ftruncate(here->log, 0), 0);
}

static void add_entry(const struct here *here, const char *name, struct buf *out);

static void add_folder(const struct here *here, const char *name, struct buf *out)
{
	struct dirent **names = NULL;
	char path[256], below[512];

	path_of(here, name, path);
	const int count = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		if (strcmp(names[i]->d_name, ".") != 0 &&
		    strcmp(names[i]->d_name, "..") != 0) {
			(void)snprintf(below, sizeof(below), "%s/%s", name,
				       names[i]->d_name);
			add_entry(here, below, out);
		}
		free(names[i]);
	}
	free(names);
}

static void add_entry(const struct here *here, const char *name, struct buf *out)
{
	const char *shown = name + strlen("ws/");
	char path[256], text[64] = "";
	struct stat st;

	path_of(here, name, path);
	assert_int_equal(lstat(path, &st), 0);
	if (S_ISDIR(st.st_mode)) {
		(void)buf_addf(out, "%s/;", shown);
		add_folder(here, name, out);
	} else if (S_ISLNK(st.st_mode)) {
		assert_true(readlink(path, text, sizeof(text) - 1) > 0);
		(void)buf_addf(out, "%s>%s;", shown, text);
	} else {
		const int fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(read(fd, text, sizeof(text) - 1) >= 0);
		assert_int_equal(close(fd), 0);
		if (strcmp(text, "m") == 0)
			(void)snprintf(text, sizeof(text), "m%03o", st.st_mode & 0777);
		(void)buf_addf(out, "%s=%s;", shown, text);
	}
}

static void look(const struct here *here, struct buf *out)
{
	buf_clear(out);
	add_folder(here, "ws", out);
}

/* Run the tool, in the way of a worker. Returns whether all was landed. */
static bool land(struct here *here)
{
	char workspace[256], layer[256];
	struct value *arguments = value_new_object(), *trees = value_new_array();
	struct value *tree = value_new_object(), *rights = value_new_object();
	struct value *roots = value_new_array(), *root = value_new_object();
	const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
	struct call call = {.tool = &land_tool, .files = here->files, .control_fd = -1};
	struct value *report = NULL;
	struct tool_result result;
	struct buf text;
	struct err err;

	path_of(here, "ws", workspace);
	path_of(here, "layer", layer);
	value_set_text(tree, "path", workspace);
	value_set_text(tree, "layer", layer);
	value_append(trees, tree);
	value_set_text(root, "path", workspace);
	value_set_boolean(root, "writable", true);
	value_append(roots, root);
	value_set(rights, "roots", roots);
	value_set(rights, "hidden", value_new_array());
	value_set(rights, "closed", value_new_array());
	value_set_integer(arguments, "log", 1);
	value_set_text(arguments, "id", "12345678");
	value_set_integer(arguments, "created_ms", here->created_ms);
	value_set(arguments, "trees", trees);
	value_set(arguments, "rights", rights);
	call.arguments = arguments;
	call.workspace = call.folder = workspace;
	call.environment = environment;
	call.deadline_ms = clock_now_ms() + DEADLINE_MS;
	for (int i = 0; i < 4; i++)
		assert_true(fd_memory_file("file", STR(""), &call.fds[i], &err));
	call.fds[4] = here->log;
	tool_result_init(&result);
	(void)land_tool.execute(&call, &result);
	buf_init(&text, 1 << 20);
	const bool landed = result.status == RESULT_DONE &&
			    lseek(call.fds[1], 0, SEEK_SET) == 0 &&
			    fd_read_all(call.fds[1], &text, "report", &err) &&
			    value_parse(buf_str(&text), 0, &report, &err) &&
			    value_is_true(value_member(report, "landed"));
	buf_fini(&text);
	value_free(report);
	tool_result_fini(&result);
	value_free(arguments);
	for (int i = 0; i < 4; i++)
		(void)close(call.fds[i]);
	return landed;
}

static int set_up(void **state)
{
	struct here *here = memory_alloc(sizeof(*here));

	(void)umask(022);
	(void)snprintf(here->base, sizeof(here->base), "%s/glovebox-unit-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(here->base));
	here->log = memfd_create("log", MFD_CLOEXEC);
	*state = here;
	return 0;
}

static int tear_down(void **state)
{
	struct here *here = *state;

	files_close(here->files);
	(void)close(here->log);
	tree_remove(here->base);
	free(here);
	return 0;
}

/* The successor of a killed writer: puts back what its log names. */
static void mend(struct here *here)
{
	struct value *rights = value_new_object(), *roots = value_new_array();
	struct value *root = value_new_object();
	struct undo_reader reader = {0};
	char workspace[256];
	struct buf told;
	struct err err;

	path_of(here, "ws", workspace);
	value_set_text(root, "path", workspace);
	value_set_boolean(root, "writable", true);
	value_append(roots, root);
	value_set(rights, "roots", roots);
	value_set(rights, "hidden", value_new_array());
	value_set(rights, "closed", value_new_array());
	open_files(here);
	buf_init(&told, 1 << 16);
	assert_true(place_put_back(here->files, here->log, rights, &told));
	assert_true(undo_log_read(&reader, here->log, &err));
	assert_int_equal(ftruncate(here->log, (off_t)reader.sound), 0);
	buf_fini(&told);
	value_free(rights);
}

/* No file holds anything but its old or its new content, and none has another name. */
static void assert_old_or_new(const struct here *here)
{
	struct buf now;
	struct str rest, part;

	buf_init(&now, 1 << 16);
	look(here, &now);
	for (size_t i = 0; i < now.size; i++) {
		if (now.data[i] == ';')
			now.data[i] = '\n';
	}
	rest = buf_str(&now);
	while (str_next_line(&rest, &part)) {
		char item[256];

		/* A folder may be there before its content, or after it. */
		(void)snprintf(item, sizeof(item), "%.*s;", (int)part.size, part.data);
		assert_true(strstr(old_state, item) != NULL ||
			    strstr(new_state, item) != NULL);
	}
	/* A file that both states have is never away. */
	assert_non_null(strstr(now.data, "change="));
	assert_non_null(strstr(now.data, "mode=m"));
	assert_non_null(strstr(now.data, "to>"));
	buf_fini(&now);
}

static void assert_landed(const struct here *here)
{
	char one[256], other[256];
	struct stat a, b;
	struct buf now;

	buf_init(&now, 1 << 16);
	look(here, &now);
	assert_string_equal(now.data, new_state);
	buf_fini(&now);
	path_of(here, "ws/added", one);
	path_of(here, "ws/linked", other);
	assert_int_equal(stat(one, &a), 0);
	assert_int_equal(stat(other, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
}

struct firsts {
	const struct here *here;
	bool change, gone, mode;
};

static bool take_first(void *context, const struct undo_change *change)
{
	struct firsts *firsts = context;
	struct buf text;
	struct err err;

	buf_init(&text, 64);
	if (str_is(change->path, "change") && !firsts->change) {
		firsts->change = true;
		assert_true(undo_log_content(firsts->here->log, change->before.offset,
					     change->before.size, &text, &err));
		assert_string_equal(text.data, "old");
	} else if (str_is(change->path, "gone/deep/x") && !firsts->gone) {
		firsts->gone = true;
		assert_int_equal(change->before.kind, UNDO_FILE);
	} else if (str_is(change->path, "mode") && !firsts->mode) {
		firsts->mode = true;
		assert_int_equal(change->before.mode, 0644);
		assert_int_equal(change->after.mode, 0755);
	}
	buf_fini(&text);
	return true;
}

/* The first row of each path has what was there before the first landing. */
static void assert_log_knows(const struct here *here)
{
	struct firsts firsts = {.here = here};
	struct undo_reader reader = {.change = take_first, .context = &firsts};
	struct err err;

	assert_true(undo_log_read(&reader, here->log, &err));
	assert_true(reader.ended);
	assert_false(reader.unfinished);
	assert_true(firsts.change && firsts.gone && firsts.mode);
}

static void all_of_it_is_landed(void **state)
{
	struct here *here = *state;
	struct buf now;

	prepare(here);
	buf_init(&now, 1 << 16);
	look(here, &now);
	assert_string_equal(now.data, old_state);
	buf_fini(&now);
	assert_true(land(here));
	assert_landed(here);
	assert_log_knows(here);
	/* A second landing finds all of it there. */
	assert_true(land(here));
	assert_landed(here);
}

static bool killed_at(struct here *here, unsigned at)
{
	int status;
	const pid_t pid = fork();

	if (pid == 0) {
		fault.kind = FAULT_KILL;
		fault.at = at;
		fault.seen = 0;
		(void)land(here);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == KILLED;
}

static void killed_before_each_change_it_goes_on(void **state)
{
	struct here *here = *state;
	unsigned at = 0;

	for (bool killed = true; killed; at++) {
		assert_true(at < STEPS_MAX);
		prepare(here);
		killed = killed_at(here, at);
		mend(here);
		assert_old_or_new(here);
		assert_true(land(here));
		assert_landed(here);
		assert_log_knows(here);
	}
	print_message("killed at %u points\n", at - 1);
	assert_true(at > 20);
}

static void a_full_disk_at_each_change_leaves_old_or_new(void **state)
{
	struct here *here = *state;
	unsigned at = 0;

	for (bool failed = true; failed; at++) {
		assert_true(at < STEPS_MAX);
		prepare(here);
		fault.kind = FAULT_FULL;
		fault.at = at;
		fault.seen = 0;
		const bool landed = land(here);
		failed = fault.seen > at;
		fault.kind = FAULT_NONE;
		if (!failed)
			assert_true(landed);
		mend(here);
		assert_old_or_new(here);
		assert_true(land(here));
		assert_landed(here);
	}
	assert_true(at > 20);
}

/* Batches of files, of which one is synced while the next one is written. */

static void prepare_many(struct here *here)
{
	prepare(here);
	make(here, "layer/many");
	for (int i = 0; i < MANY; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "layer/many/%03d", i);
		put(here, name, name, 0644);
	}
}

/* How many of the files are there? Each of them has all of its content. */
static int count_many(const struct here *here)
{
	int count = 0;

	for (int i = 0; i < MANY; i++) {
		char name[64], path[256], text[64] = "";

		(void)snprintf(name, sizeof(name), "ws/many/%03d", i);
		path_of(here, name, path);
		const int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		(void)snprintf(name, sizeof(name), "layer/many/%03d", i);
		assert_true(read(fd, text, sizeof(text) - 1) >= 0);
		assert_string_equal(text, name);
		assert_int_equal(close(fd), 0);
		count++;
	}
	return count;
}

static void killed_among_many_files_it_goes_on(void **state)
{
	struct here *here = *state;
	bool killed = true;
	int partly = 0;

	for (unsigned at = 0; killed; at += MANY_APART) {
		prepare_many(here);
		killed = killed_at(here, at);
		mend(here);
		const int count = count_many(here);
		partly += count > 0 && count < MANY;
		assert_true(land(here));
		assert_int_equal(count_many(here), MANY);
		assert_log_knows(here);
	}
	assert_true(partly > 0);
}

static void a_full_disk_among_many_files_leaves_whole_ones(void **state)
{
	struct here *here = *state;
	bool failed = true;

	for (unsigned at = 0; failed; at += MANY_APART) {
		prepare_many(here);
		fault.kind = FAULT_FULL;
		fault.at = at;
		fault.seen = 0;
		const bool landed = land(here);
		failed = fault.seen > at;
		fault.kind = FAULT_NONE;
		assert_true(failed || landed);
		mend(here);
		(void)count_many(here);
		assert_true(land(here));
		assert_int_equal(count_many(here), MANY);
	}
}

static void no_file_gets_its_name_when_a_sync_fails(void **state)
{
	struct here *here = *state;

	prepare_many(here);
	fault.kind = FAULT_SYNC;
	assert_false(land(here));
	fault.kind = FAULT_NONE;
	assert_int_equal(count_many(here), 0);
	assert_true(land(here));
	assert_int_equal(count_many(here), MANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_of_it_is_landed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(killed_before_each_change_it_goes_on,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_disk_at_each_change_leaves_old_or_new,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(killed_among_many_files_it_goes_on,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_disk_among_many_files_leaves_whole_ones,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_file_gets_its_name_when_a_sync_fails,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
