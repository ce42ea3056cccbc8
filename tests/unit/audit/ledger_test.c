/* Tests of audit/ledger: whatever happens to its writers, the files hold one sound chain. */
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../store/folder.h"
#include "audit/ledger.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

enum { FILES_MAX = 64, TEXT_MAX = 32 << 20, KILLS = 200, KILL_US = 1500 };

static const char key_text[] = "a key of more than sixteen bytes";

/* The files that the disk was made to take. */
static atomic_int synced_lines, synced_heads, synced_folders;
/* Heads that the disk took without the lines before them. */
static atomic_int heads_alone;

/* Does FD have a name that ends with END? */
static bool is_named(int fd, const char *end)
{
	char link[64], name[PATH_MAX];
	ssize_t size;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, name, sizeof(name));
	return size > 0 && str_ends((struct str){name, (size_t)size}, str_of(end));
}

/* In the place of the function of the C library. */
int fdatasync(int fd)
{
	if (is_named(fd, ".jsonl"))
		atomic_fetch_add(&synced_lines, 1);
	if (is_named(fd, "/head") || is_named(fd, "/head.new")) {
		atomic_fetch_add(&synced_heads, 1);
		if (atomic_load(&synced_lines) < atomic_load(&synced_heads))
			atomic_fetch_add(&heads_alone, 1);
	}
	return (int)syscall(SYS_fdatasync, fd);
}

/* The step of a writer before which it is killed; 0: none. */
static int killed_before;
/* errno of a disk that has no room for a head; 0: it has. */
static int no_room;

/* A program may be killed before each of its calls that change something. */
static void take_step(void)
{
	if (killed_before > 0 && --killed_before == 0)
		(void)raise(SIGKILL);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	take_step();
	if (no_room != 0) {
		errno = no_room;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, data, size, at);
}

ssize_t write(int fd, const void *data, size_t size)
{
	take_step();
	return syscall(SYS_write, fd, data, size);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	take_step();
	return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int posix_fallocate(int fd, off_t from, off_t size)
{
	take_step();
	if (no_room != 0)
		return no_room;
	return ftruncate(fd, from + size) == 0 ? 0 : errno;
}

int fsync(int fd)
{
	if (is_named(fd, "/audit"))
		atomic_fetch_add(&synced_folders, 1);
	return (int)syscall(SYS_fsync, fd);
}

static struct ledger *open_with(const struct folder *folder, struct str key,
				uint64_t file_max)
{
	const struct ledger_options options = {.folder = folder->file,
					       .key = key,
					       .file_max = file_max};
	struct ledger *ledger = NULL;
	struct err err = {0};

	if (!ledger_open(&options, &ledger, &err))
		fail_msg("%s", err.text);
	return ledger;
}

static bool add(struct ledger *ledger, const char *call, bool before, struct err *err)
{
	struct chain_record record = chain_record_of(before ? CHAIN_BEGIN : CHAIN_END);

	record.call = call;
	return ledger_add(ledger, &record, before, err);
}

static void path_of(const struct folder *folder, unsigned number, char path[PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "%s/audit-%06u.jsonl", folder->file, number);
}

/* Check all files of FOLDER; their lines go to TEXT, which is cleared. Returns their number. */
static size_t check_all(const struct folder *folder, struct str key, struct buf *text)
{
	struct chain_check check = {.key = key};
	char path[PATH_MAX];
	size_t lines = 0;

	buf_clear(text);
	for (unsigned number = 1; number < FILES_MAX; number++) {
		struct str rest, line;
		struct err err = {0};
		struct buf file;

		path_of(folder, number, path);
		if (access(path, F_OK) < 0)
			break;
		buf_init(&file, TEXT_MAX);
		assert_true(fd_read_file(path, TEXT_MAX, &file, NULL));
		assert_true(file.size == 0 || file.data[file.size - 1] == '\n');
		for (rest = buf_str(&file); str_next_line(&rest, &line); lines++)
			if (!chain_check_line(&check, line, &err))
				fail_msg("%s, line %zu: %s", path, lines + 1, err.text);
		assert_true(buf_addstr(text, buf_str(&file)));
		buf_fini(&file);
	}
	return lines;
}

static size_t count_of(const struct buf *text, const char *word)
{
	size_t count = 0, at = 0;

	while ((at = str_find(buf_str(text), str_of(word), at)) != (size_t)-1) {
		count++;
		at++;
	}
	return count;
}

static void head_path(const struct folder *folder, char path[PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "%s/head", folder->file);
}

static void read_head(const struct folder *folder, struct buf *head)
{
	char path[PATH_MAX];

	head_path(folder, path);
	buf_clear(head);
	assert_true(fd_read_file(path, TEXT_MAX, head, NULL));
}

static void keep_head(const struct folder *folder, const struct buf *head)
{
	char path[PATH_MAX];

	head_path(folder, path);
	assert_true(fd_replace_file(path, buf_str(head), NULL));
}

static void a_chain_goes_on_when_it_is_opened_again(void **state)
{
	struct folder folder;
	struct buf text;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	for (int i = 0; i < 3; i++) {
		struct ledger *ledger = open_with(&folder, STR(key_text), 0);

		assert_true(add(ledger, "a", true, NULL));
		assert_true(add(ledger, "a", false, NULL));
		ledger_close(ledger);
	}
	assert_int_equal(check_all(&folder, STR(key_text), &text), 6);
	buf_fini(&text);
	folder_end(&folder);
}

static void a_further_file_carries_the_chain_on(void **state)
{
	struct ledger *ledger;
	struct folder folder;
	struct buf text;
	char path[PATH_MAX];

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	ledger = open_with(&folder, (struct str){0}, 8 << 10);
	for (int i = 0; i < 100; i++)
		assert_true(add(ledger, "a", true, NULL));
	ledger_close(ledger);
	ledger = open_with(&folder, (struct str){0}, 8 << 10);
	assert_true(add(ledger, "b", true, NULL));
	ledger_close(ledger);
	const size_t lines = check_all(&folder, (struct str){0}, &text);
	const size_t files = count_of(&text, "\"event\":\"next\"") + 1;

	assert_true(files >= 3 && files < FILES_MAX);
	assert_int_equal(lines, 101 + files - 1);
	path_of(&folder, (unsigned)files, path);
	assert_int_equal(access(path, F_OK), 0);
	buf_fini(&text);
	folder_end(&folder);
}

static void a_file_without_a_line_goes_on_from_the_one_before(void **state)
{
	struct ledger *ledger;
	struct folder folder;
	struct buf text;
	char path[PATH_MAX];

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	ledger = open_with(&folder, (struct str){0}, 0);
	assert_true(add(ledger, "a", true, NULL));
	ledger_close(ledger);
	path_of(&folder, 2, path);
	assert_true(fd_replace_file(path, STR("{\"seq\":2,\"at"), NULL));
	ledger = open_with(&folder, (struct str){0}, 0);
	assert_true(add(ledger, "b", true, NULL));
	ledger_close(ledger);
	assert_int_equal(check_all(&folder, (struct str){0}, &text), 4);
	assert_int_equal(count_of(&text, "\"event\":\"next\",\"behind_file\":1"), 1);
	assert_int_equal(count_of(&text, "\"event\":\"cut\",\"bytes\":12"), 1);
	buf_fini(&text);
	folder_end(&folder);
}

static void a_torn_line_is_cut_off_and_told(void **state)
{
	struct folder folder;
	struct buf text, whole, head;
	char path[PATH_MAX];
	struct ledger *ledger;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	buf_init(&whole, TEXT_MAX);
	buf_init(&head, TEXT_MAX);
	ledger = open_with(&folder, (struct str){0}, 0);
	assert_true(add(ledger, "a", true, NULL));
	assert_true(add(ledger, "b", true, NULL));
	ledger_close(ledger);
	path_of(&folder, 1, path);
	assert_true(fd_read_file(path, TEXT_MAX, &whole, NULL));
	read_head(&folder, &head);
	const size_t first = str_find(buf_str(&whole), STR("\n"), 0) + 1;

	for (size_t size = 0; size < whole.size; size += 7) {
		const size_t torn = size < first ? size : size - first;
		char gone[64];

		assert_true(fd_replace_file(path, str_part(buf_str(&whole), 0, size), NULL));
		keep_head(&folder, &head);
		ledger = open_with(&folder, (struct str){0}, 0);
		assert_true(add(ledger, "c", true, NULL));
		ledger_close(ledger);
		assert_int_equal(check_all(&folder, (struct str){0}, &text),
				 (size < first ? 0 : 1) + 2);
		assert_int_equal(count_of(&text, "\"event\":\"cut\",\"bytes\":"), torn > 0);
		(void)snprintf(gone, sizeof(gone), "\",\"lost\":%d,", size < first ? 2 : 1);
		assert_int_equal(count_of(&text, gone), 1);
	}
	/* A line that was torn behind the head is no line that is gone. */
	assert_true(buf_addstr(&whole, STR("{\"seq\":3,")));
	assert_true(fd_replace_file(path, buf_str(&whole), NULL));
	keep_head(&folder, &head);
	ledger = open_with(&folder, (struct str){0}, 0);
	assert_true(add(ledger, "c", true, NULL));
	ledger_close(ledger);
	assert_int_equal(check_all(&folder, (struct str){0}, &text), 4);
	assert_int_equal(count_of(&text, "\"event\":\"cut\",\"bytes\":9,\"prev\""), 1);
	buf_fini(&head);
	buf_fini(&whole);
	buf_fini(&text);
	folder_end(&folder);
}

static void several_writers_make_one_chain(void **state)
{
	enum { WRITERS = 4, RECORDS = 100 };
	struct folder folder;
	struct buf text;
	pid_t writers[WRITERS];

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = fork();
		if (writers[i] == 0) {
			struct ledger *ledger =
				open_with(&folder, (struct str){0}, 32 << 10);
			bool ok = true;

			for (int k = 0; ok && k < RECORDS; k++)
				ok = add(ledger, "a", true, NULL);
			ledger_close(ledger);
			_exit(!ok);
		}
	}
	for (int i = 0; i < WRITERS; i++) {
		int status = 1;

		assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
		assert_int_equal(status, 0);
	}
	(void)check_all(&folder, (struct str){0}, &text);
	assert_int_equal(count_of(&text, "\"event\":\"begin\""), WRITERS * RECORDS);
	buf_fini(&text);
	folder_end(&folder);
}

/* A writer that writes for ever, and says by a pipe when it has begun. */
static pid_t start_writer(const struct folder *folder, int told)
{
	const pid_t writer = fork();

	if (writer == 0) {
		struct ledger *ledger = open_with(folder, STR(key_text), 64 << 10);

		(void)!write(told, "!", 1);
		for (;;)
			(void)add(ledger, "a", true, NULL);
	}
	return writer;
}

static void a_killed_writer_leaves_a_sound_chain(void **state)
{
	struct folder folder;
	struct buf text;
	int ends[2];
	char byte;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	assert_true(fd_pipe(ends, NULL));
	for (int i = 0; i < KILLS; i++) {
		const struct timespec moment = {.tv_nsec = 1000L * (i * KILL_US / KILLS)};
		const pid_t writer = start_writer(&folder, ends[1]);
		struct ledger *ledger;

		assert_int_equal(read(ends[0], &byte, 1), 1);
		(void)nanosleep(&moment, NULL);
		(void)kill(writer, SIGKILL);
		assert_int_equal(waitpid(writer, NULL, 0), writer);
		ledger = open_with(&folder, STR(key_text), 64 << 10);
		assert_true(add(ledger, "after", true, NULL));
		ledger_close(ledger);
		if (i % 20 == 19) {
			(void)check_all(&folder, STR(key_text), &text);
			assert_int_equal(count_of(&text, "\"call\":\"after\""), 20);
			tree_remove(folder.file);
		}
	}
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	buf_fini(&text);
	folder_end(&folder);
}

/* In a child, because the limit of files is one of the process. */
static int write_into_a_full_disk(const struct folder *folder)
{
	struct ledger *ledger = open_with(folder, (struct str){0}, 0);
	struct rlimit limit = {.rlim_max = RLIM_INFINITY};
	struct err err = {0};
	char path[PATH_MAX];
	struct stat st;
	bool ok = add(ledger, "one", true, &err);

	(void)signal(SIGXFSZ, SIG_IGN);
	(void)getrlimit(RLIMIT_FSIZE, &limit);
	path_of(folder, 1, path);
	ok = ok && stat(path, &st) == 0;
	/* The next line does not fit, but for a part of it. */
	limit.rlim_cur = (rlim_t)st.st_size + 40;
	ok = ok && setrlimit(RLIMIT_FSIZE, &limit) == 0;
	ok = ok && !add(ledger, "two", true, &err) &&
	     strstr(err.text, "audit: cannot write (") != NULL &&
	     strstr(err.text, "; calls are refused until it can") != NULL;
	/* The end of a call waits. */
	ok = ok && add(ledger, "one", false, &err);
	ok = ok && !add(ledger, "three", true, &err);
	limit.rlim_cur = limit.rlim_max;
	ok = ok && setrlimit(RLIMIT_FSIZE, &limit) == 0;
	ok = ok && add(ledger, "four", true, &err);
	ledger_close(ledger);
	return !ok;
}

static void a_full_disk_refuses_what_has_not_happened(void **state)
{
	struct folder folder;
	struct buf text;
	int status = 1;
	pid_t child;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	child = fork();
	if (child == 0)
		_exit(write_into_a_full_disk(&folder));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(check_all(&folder, (struct str){0}, &text), 3);
	assert_non_null(strstr(text.data, "\"event\":\"end\",\"call\":\"one\""));
	assert_non_null(strstr(text.data, "\"event\":\"begin\",\"call\":\"four\""));
	assert_null(strstr(text.data, "\"two\""));
	assert_null(strstr(text.data, "\"three\""));
	buf_fini(&text);
	folder_end(&folder);
}

static int lose_records(const struct folder *folder)
{
	enum { MANY = 6 };
	struct ledger *ledger = open_with(folder, (struct str){0}, 0);
	struct rlimit limit = {.rlim_max = RLIM_INFINITY};
	auto_value struct value *arguments = value_new_object();
	auto_free char *word = memory_alloc(CHAIN_ARGUMENTS_MAX);
	struct chain_record record = chain_record_of(CHAIN_END);
	bool ok = true;

	/* Each record takes nearly a mebibyte, and four wait at most. */
	memset(word, 'x', CHAIN_ARGUMENTS_MAX - 64);
	for (int i = 0; i < 3; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "w%d", i);
		value_set_text(arguments, name, word);
	}
	record.more = arguments;
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 0;
	ok = ok && setrlimit(RLIMIT_FSIZE, &limit) == 0;
	for (int i = 0; i < MANY; i++)
		ok = ok && ledger_add(ledger, &record, false, NULL);
	limit.rlim_cur = limit.rlim_max;
	ok = ok && setrlimit(RLIMIT_FSIZE, &limit) == 0;
	ledger_close(ledger);
	return !ok;
}

static void records_beyond_the_ceiling_are_counted(void **state)
{
	struct folder folder;
	struct buf text;
	int status = 1;
	pid_t child;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	child = fork();
	if (child == 0)
		_exit(lose_records(&folder));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(check_all(&folder, (struct str){0}, &text), 6);
	assert_non_null(strstr(text.data, "\"event\":\"drop\",\"records\":1"));
	buf_fini(&text);
	folder_end(&folder);
}

/* ledger_open fails for the folder, and says WHY. */
static void assert_refused(const struct folder *folder, struct str key, const char *why)
{
	const struct ledger_options options = {.folder = folder->file, .key = key};
	struct ledger *ledger = NULL;
	struct err err = {0};

	assert_false(ledger_open(&options, &ledger, &err));
	if (strstr(err.text, why) == NULL)
		fail_msg("\"%s\" does not say: %s", err.text, why);
}

static void an_unsafe_folder_and_a_broken_end_are_refused(void **state)
{
	struct folder folder;
	struct ledger *ledger;
	char path[PATH_MAX];
	struct buf text;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	ledger = open_with(&folder, STR(key_text), 0);
	assert_true(add(ledger, "a", true, NULL));
	ledger_close(ledger);
	assert_refused(&folder, (struct str){0}, "written with a key");
	assert_refused(&folder, STR("another key of enough bytes"), "does not fit the key");
	assert_int_equal(chmod(folder.file, 0777), 0);
	assert_refused(&folder, STR(key_text), "others may write to it");
	assert_int_equal(chmod(folder.file, 0700), 0);
	path_of(&folder, 1, path);
	assert_true(fd_read_file(path, TEXT_MAX, &text, NULL));
	text.data[20] ^= 1;
	assert_true(fd_replace_file(path, buf_str(&text), NULL));
	assert_refused(&folder, STR(key_text),
		       "audit-000001.jsonl: its last line: was changed");
	assert_true(fd_replace_file(path, STR("no line\n"), NULL));
	assert_refused(&folder, STR(key_text), "its last line");
	buf_fini(&text);
	folder_end(&folder);
}

/* Two writers, and somebody else who cuts their chain. */
static void no_writer_goes_on_with_a_chain_that_was_cut(void **state)
{
	struct ledger *one, *other;
	struct folder folder;
	char path[PATH_MAX];
	struct err err = {0};
	struct buf text;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	one = open_with(&folder, STR(key_text), 4 << 10);
	other = open_with(&folder, STR(key_text), 4 << 10);
	/* Into further files, and one of the writers has not seen the last ones. */
	assert_true(add(one, "a", true, NULL));
	for (int i = 0; i < 30; i++)
		assert_true(add(other, "b", true, NULL));
	assert_true(add(one, "c", true, NULL));
	assert_true(add(other, "d", true, NULL));
	const size_t lines = check_all(&folder, STR(key_text), &text);
	const unsigned last = (unsigned)count_of(&text, "\"event\":\"next\"") + 1;

	assert_true(last > 2 && lines > 32);
	path_of(&folder, last, path);
	buf_clear(&text);
	assert_true(fd_read_file(path, TEXT_MAX, &text, NULL));
	size_t size = text.size - 1;

	while (size > 0 && text.data[size - 1] != '\n')
		size--;
	assert_true(fd_replace_file(path, str_part(buf_str(&text), 0, size), NULL));
	assert_false(add(other, "e", true, &err));
	assert_non_null(strstr(err.text, "was cut or changed by another program"));
	/* Records of what has happened wait for the line. */
	assert_true(add(other, "f", false, NULL));
	assert_true(fd_replace_file(path, buf_str(&text), NULL));
	assert_true(add(other, "g", true, NULL));
	assert_int_equal(ledger_lost(other), 0);
	assert_true(add(one, "h", true, NULL));
	assert_int_equal(unlink(path), 0);
	assert_false(add(one, "i", true, NULL));
	assert_false(add(other, "i", true, NULL));
	ledger_close(one);
	ledger_close(other);
	buf_fini(&text);
	folder_end(&folder);
}

static void note_warning(void *context, const char *sentence)
{
	(void)snprintf(context, ERR_TEXT_MAX, "%s", sentence);
}

/*
 * Open the ledger of FOLDER, whose files are as their case has left them, and write one line. SAYS: the
 * sentence has these words; NULL: there is none. The chain is sound afterwards, and TEXT has it.
 */
static void begin_again(const struct folder *folder, const char *says, struct buf *text)
{
	char said[ERR_TEXT_MAX] = "";
	struct ledger_options options = {.folder = folder->file,
					 .key = STR(key_text),
					 .warn = note_warning,
					 .refuses_cut = true,
					 .context = said};
	struct ledger *ledger = NULL;
	struct err err = {0};

	if (says != NULL) {
		assert_false(ledger_open(&options, &ledger, &err));
		if (strstr(err.text, says) == NULL ||
		    strstr(err.text, "put them back") == NULL)
			fail_msg("\"%s\" does not say: %s", err.text, says);
		options.refuses_cut = false;
	}
	if (!ledger_open(&options, &ledger, &err))
		fail_msg("%s", err.text);
	if (strstr(said, says != NULL ? says : "") == NULL ||
	    (says == NULL && said[0] != '\0'))
		fail_msg("\"%s\" does not say: %s", said, says);
	assert_true(add(ledger, "again", true, NULL));
	ledger_close(ledger);
	(void)check_all(folder, STR(key_text), text);
}

/* A writer that begins knows the lines that were there when the last one ended. */
static void a_writer_that_begins_notices_what_was_cut(void **state)
{
	struct buf text, whole, head, older;
	struct ledger *ledger;
	struct folder folder;
	char path[PATH_MAX];
	size_t size;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	buf_init(&whole, TEXT_MAX);
	buf_init(&head, TEXT_MAX);
	buf_init(&older, TEXT_MAX);
	path_of(&folder, 1, path);
	ledger = open_with(&folder, STR(key_text), 0);
	for (int i = 0; i < 5; i++) {
		assert_true(add(ledger, "a", true, NULL));
		if (i == 2)
			read_head(&folder, &older);
	}
	ledger_close(ledger);
	read_head(&folder, &head);
	assert_true(fd_read_file(path, TEXT_MAX, &whole, NULL));
	assert_int_equal(head.size, older.size);
	begin_again(&folder, NULL, &text);
	assert_int_equal(count_of(&text, "\"event\":\"cut\""), 0);
	/* Two lines are cut off. */
	size = 0;
	for (int i = 0; i < 3; i++)
		size = str_find(buf_str(&whole), STR("\n"), size) + 1;
	assert_true(fd_replace_file(path, str_part(buf_str(&whole), 0, size), NULL));
	keep_head(&folder, &head);
	begin_again(&folder, " are gone (2, up to number 5): ", &text);
	assert_int_equal(count_of(&text, "\"event\":\"cut\",\"head\":\"5:"), 1);
	assert_int_equal(count_of(&text, "\"lost\":2,"), 1);
	/* That was told once. */
	begin_again(&folder, NULL, &text);
	assert_int_equal(count_of(&text, "\"event\":\"cut\""), 1);
	/* The cut chain with the head of then is a chain that was never longer. */
	assert_true(fd_replace_file(path, str_part(buf_str(&whole), 0, size), NULL));
	keep_head(&folder, &older);
	begin_again(&folder, NULL, &text);
	/* Other lines came in the place of those that were cut off. */
	keep_head(&folder, &head);
	begin_again(&folder, " are gone (1, up to number 5)", &text);
	keep_head(&folder, &head);
	begin_again(&folder, " were cut off or changed: number 5 is not the one", &text);
	assert_int_equal(unlink(path), 0);
	keep_head(&folder, &head);
	begin_again(&folder, " are gone (5, up to number 5): ", &text);
	assert_int_equal(count_of(&text, "{\"seq\":1,"), 1);
	assert_int_equal(count_of(&text, "\"lost\":5,"), 1);
	buf_fini(&older);
	buf_fini(&head);
	buf_fini(&whole);
	buf_fini(&text);
	folder_end(&folder);
}

/* Without a head nobody knows what is gone, not even in a chain of one line. */
static void a_head_that_cannot_be_read_is_told_apart(void **state)
{
	struct buf text, whole, head, other;
	struct ledger *ledger;
	struct folder folder;
	char path[PATH_MAX], name[PATH_MAX];
	size_t size;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	buf_init(&whole, TEXT_MAX);
	buf_init(&head, TEXT_MAX);
	buf_init(&other, TEXT_MAX);
	path_of(&folder, 1, path);
	head_path(&folder, name);
	ledger = open_with(&folder, STR(key_text), 0);
	for (int i = 0; i < 5; i++)
		assert_true(add(ledger, "a", true, NULL));
	ledger_close(ledger);
	read_head(&folder, &head);
	assert_true(fd_read_file(path, TEXT_MAX, &whole, NULL));
	size = str_find(buf_str(&whole), STR("\n"), 0) + 1;
	/* No head, an empty one, ones that were changed, and one that was made without the key. */
	for (int i = 0; i < 5; i++) {
		static const char *const says[] = {"/head is missing", "/head is empty",
						   "/head was changed"};
		static const char *const words[] = {"none", "empty", "changed"};
		const int word = i < 2 ? i : 2;
		struct chain_head forged = {.seq = 1, .file = 1, .end = (int64_t)size};
		char record[64];

		assert_true(fd_replace_file(path, buf_str(&whole), NULL));
		buf_clear(&other);
		if (i == 2)
			assert_true(buf_addstr(&other, STR(" ")));
		if (i == 3) {
			assert_true(buf_addstr(&other, buf_str(&head)));
			other.data[8] ^= 1;
		}
		memset(forged.digits, 'a', HASH_HEX);
		if (i == 4)
			assert_true(chain_seal_head(&forged, (struct str){0}, &other));
		keep_head(&folder, &other);
		if (i == 0)
			assert_int_equal(unlink(name), 0);
		begin_again(&folder, says[word], &text);
		(void)snprintf(record, sizeof(record),
			       "\"event\":\"cut\",\"head\":\"%s\"", words[word]);
		assert_int_equal(count_of(&text, record), 1);
		begin_again(&folder, NULL, &text);
	}
	/* A writer that was killed behind the first line of all leaves the head from before it. */
	for (int i = 0; i < 2; i++) {
		assert_true(fd_replace_file(path, str_part(buf_str(&whole), 0, size), NULL));
		buf_clear(&other);
		keep_head(&folder, &other);
		if (i == 0)
			assert_int_equal(unlink(name), 0);
		begin_again(&folder, i == 0 ? "/head is missing" : "/head is empty", &text);
		begin_again(&folder, NULL, &text);
	}
	buf_fini(&other);
	buf_fini(&head);
	buf_fini(&whole);
	buf_fini(&text);
	folder_end(&folder);
}

/*
 * Eight writers of a thousand lines each, which are killed and begin again until all lines are
 * there. A writer counts on a pipe what it has written.
 */
static void writers_that_are_killed_make_one_chain(void **state)
{
	enum { WRITERS = 8, RECORDS = 1000, PAUSES = 150 };
	struct folder folder;
	struct buf text;
	int counts[WRITERS][2];
	pid_t writers[WRITERS];
	int written[WRITERS] = {0}, kills = 0;
	size_t begun = 0;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	for (int i = 0; i < WRITERS; i++) {
		assert_true(fd_pipe(counts[i], NULL));
		assert_true(fd_set_blocking(counts[i][0], false, NULL));
		writers[i] = 0;
	}
	for (bool all = false; !all;) {
		const struct timespec moment = {.tv_nsec = 1000000L * (1 + kills % 7)};

		all = true;
		for (int i = 0; i < WRITERS; i++) {
			char bytes[RECORDS];
			ssize_t got;

			if (writers[i] > 0 && kills < PAUSES && kills % WRITERS == i)
				(void)kill(writers[i], SIGKILL);
			if (writers[i] > 0 && (kills % WRITERS == i || kills >= PAUSES)) {
				assert_int_equal(waitpid(writers[i], NULL, 0), writers[i]);
				writers[i] = 0;
			}
			while ((got = read(counts[i][0], bytes, sizeof(bytes))) > 0)
				written[i] += (int)got;
			if (writers[i] == 0 && written[i] < RECORDS) {
				writers[i] = fork();
				if (writers[i] == 0) {
					struct ledger *ledger =
						open_with(&folder, STR(key_text), 256 << 10);

					for (int k = written[i]; k < RECORDS; k++)
						if (!add(ledger, "a", true, NULL) ||
						    write(counts[i][1], "!", 1) != 1)
							_exit(1);
					ledger_close(ledger);
					_exit(0);
				}
			}
			all = all && writers[i] == 0 && written[i] == RECORDS;
		}
		if (kills++ < PAUSES)
			(void)nanosleep(&moment, NULL);
	}
	(void)check_all(&folder, STR(key_text), &text);
	begun = count_of(&text, "\"event\":\"begin\"");
	/* A writer may be killed between its line and its count. */
	assert_true(begun >= (size_t)WRITERS * RECORDS &&
		    begun <= (size_t)WRITERS * RECORDS + PAUSES);
	assert_int_equal(count_of(&text, "\"head\":"), 0);
	for (int i = 0; i < WRITERS; i++) {
		fd_close(&counts[i][0]);
		fd_close(&counts[i][1]);
	}
	buf_fini(&text);
	folder_end(&folder);
}

/* Each second, and at the end; a line that its caller waits for does not wait for its head. */
static void the_disk_takes_the_head_behind_the_lines(void **state)
{
	enum { ADDED = 200 };
	struct folder folder;
	char path[PATH_MAX];

	(void)state;
	for (int each = 0; each < 2; each++) {
		struct ledger_options options = {.key = STR(key_text), .each = each};
		struct ledger *ledger = NULL;
		struct stat st;
		int heads, lines;

		folder_begin(&folder, "audit");
		options.folder = folder.file;
		atomic_store(&synced_lines, 0);
		atomic_store(&synced_heads, 0);
		atomic_store(&synced_folders, 0);
		assert_true(ledger_open(&options, &ledger, NULL));
		assert_true(add(ledger, "a", true, NULL));
		/* The folder has the name of the file, then that of the head, and never again. */
		heads = atomic_load(&synced_heads);
		assert_true(heads >= 1 && atomic_load(&synced_folders) == 2);
		lines = atomic_load(&synced_lines);
		for (int i = 0; i < ADDED; i++)
			assert_true(add(ledger, "a", true, NULL));
		if (each) {
			assert_true(atomic_load(&synced_lines) >= lines + ADDED);
			assert_true(atomic_load(&synced_heads) < heads + ADDED);
		}
		for (int i = 0; atomic_load(&synced_heads) == heads; i++) {
			const struct timespec moment = {.tv_nsec = 10000000L};

			assert_true(i < 6000);
			(void)nanosleep(&moment, NULL);
		}
		heads = atomic_load(&synced_heads);
		assert_true(add(ledger, "a", true, NULL));
		ledger_close(ledger);
		assert_true(atomic_load(&synced_heads) > heads);
		assert_int_equal(atomic_load(&synced_folders), 2);
		head_path(&folder, path);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, 512);
		folder_end(&folder);
	}
	assert_int_equal(atomic_load(&heads_alone), 0);
}

/* A head that was exchanged under its writer for an older one is right again with the next line. */
static void a_head_is_kept_where_it_is_found(void **state)
{
	char path[PATH_MAX], moved[PATH_MAX + 8];
	struct buf text, older, newer;
	struct ledger *ledger;
	struct folder folder;

	(void)state;
	buf_init(&text, TEXT_MAX);
	buf_init(&older, TEXT_MAX);
	buf_init(&newer, TEXT_MAX);
	folder_begin(&folder, "audit");
	head_path(&folder, path);
	(void)snprintf(moved, sizeof(moved), "%s.moved", path);
	ledger = open_with(&folder, STR(key_text), 0);
	assert_true(add(ledger, "a", true, NULL));
	read_head(&folder, &older);
	for (int i = 0; i < 2; i++) {
		assert_true(add(ledger, "a", true, NULL));
		assert_int_equal(rename(path, moved), 0);
		if (i == 0)
			keep_head(&folder, &older);
		assert_true(add(ledger, "a", true, NULL));
		read_head(&folder, &newer);
		assert_string_not_equal(older.data, newer.data);
	}
	ledger_close(ledger);
	/* The last line of all is cut off: the head that is found knows of it. */
	assert_int_equal(check_all(&folder, STR(key_text), &text), 5);
	path_of(&folder, 1, path);
	while (text.size > 0 && text.data[text.size - 2] != '\n')
		buf_truncate(&text, text.size - 1);
	buf_truncate(&text, text.size - 1);
	assert_int_equal(truncate(path, (off_t)text.size), 0);
	begin_again(&folder, "lines of", &text);
	buf_fini(&text);
	buf_fini(&older);
	buf_fini(&newer);
	folder_end(&folder);
}

/* A kill at any step of the first lines, and of those of the writers behind, looks like no cut. */
static void a_kill_at_any_step_is_no_cut(void **state)
{
	enum { STEPS = 16, WRITERS = 3 };
	struct folder folder;
	struct buf text;

	(void)state;
	buf_init(&text, TEXT_MAX);
	for (int step = 1; step < STEPS; step++) {
		folder_begin(&folder, "audit");
		for (int i = 0; i < WRITERS; i++) {
			const pid_t writer = fork();
			int status = 0;

			if (writer == 0) {
				struct ledger *ledger;

				killed_before = i == 0 ? step : 1 + step % 4;
				ledger = open_with(&folder, STR(key_text), 0);
				for (int k = 0; k < STEPS; k++)
					(void)add(ledger, "a", true, NULL);
				_exit(1);
			}
			assert_int_equal(waitpid(writer, &status, 0), writer);
			assert_true(WIFSIGNALED(status));
		}
		begin_again(&folder, NULL, &text);
		assert_int_equal(count_of(&text, "\"event\":\"cut\""), 0);
		folder_end(&folder);
	}
	buf_fini(&text);
}

/* No line passes without its head. */
static void a_disk_without_room_for_a_head_takes_no_line(void **state)
{
	struct ledger *ledger;
	struct folder folder;
	struct err err = {0};
	struct buf text;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	for (int i = 0; i < 2; i++) {
		no_room = i == 0 ? ENOSPC : 0;
		ledger = open_with(&folder, STR(key_text), 0);
		no_room = ENOSPC;
		for (int k = 0; k < 2; k++) {
			assert_false(add(ledger, "a", true, &err));
			if (strstr(err.text, "audit: cannot write (") == NULL ||
			    strstr(err.text, "/head: No space left on device)") == NULL)
				fail_msg("%s", err.text);
			err = (struct err){0};
		}
		assert_int_equal(check_all(&folder, STR(key_text), &text), 3 * i);
		/* What has happened waits. */
		assert_true(add(ledger, "b", false, NULL));
		no_room = 0;
		assert_true(add(ledger, "c", true, NULL));
		ledger_close(ledger);
		begin_again(&folder, NULL, &text);
		assert_int_equal(count_of(&text, "\"event\":\"cut\""), 0);
		assert_int_equal(count_of(&text, "\"call\":\"b\""), i + 1);
	}
	buf_fini(&text);
	folder_end(&folder);
}

/* Make a head of another KIND in the place of the one in FOLDER. */
static void exchange_head(const struct folder *folder, int kind, const char *victim)
{
	char path[PATH_MAX], inner[PATH_MAX + 8];

	head_path(folder, path);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(inner, sizeof(inner), "%s/file", path);
	switch (kind) {
	case 0:
		assert_int_equal(link(victim, path), 0);
		break;
	case 1:
		assert_int_equal(symlink(victim, path), 0);
		break;
	case 2:
		assert_int_equal(mkfifo(path, 0600), 0);
		break;
	default:
		assert_int_equal(mkdir(path, 0700), 0);
		if (kind == 4)
			assert_true(fd_replace_file(inner, STR("x"), NULL));
	}
}

/* A head that is no file of a ledger is told once, is exchanged, and is never written through. */
static void a_foreign_head_is_exchanged(void **state)
{
	static const char *const says[] = {"/head was changed",
					   "/head is a symbolic link, and",
					   "/head is a pipe, and", "/head is a folder, and",
					   "/head is a folder, and"};
	struct buf text, victim, after, head;
	char path[PATH_MAX], name[PATH_MAX];
	struct ledger *ledger;
	struct folder folder;
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	buf_init(&victim, TEXT_MAX);
	buf_init(&after, TEXT_MAX);
	buf_init(&head, TEXT_MAX);
	ledger = open_with(&folder, STR(key_text), 0);
	assert_true(add(ledger, "a", true, NULL));
	ledger_close(ledger);
	(void)snprintf(path, sizeof(path), "%s/victim", folder.file);
	head_path(&folder, name);
	for (int kind = 0; kind < 4; kind++) {
		/* A file of the size of a head is no other one. */
		buf_clear(&victim);
		for (int i = 0; i < (kind == 0 ? 512 : 600); i++)
			assert_true(buf_addc(&victim, 'v'));
		assert_true(fd_replace_file(path, buf_str(&victim), NULL));
		exchange_head(&folder, kind, path);
		begin_again(&folder, says[kind], &text);
		begin_again(&folder, NULL, &text);
		assert_int_equal(count_of(&text, "\"event\":\"cut\",\"head\":\"changed\""),
				 kind + 1);
		buf_clear(&after);
		assert_true(fd_read_file(path, TEXT_MAX, &after, NULL));
		assert_true(str_equal(buf_str(&after), buf_str(&victim)));
	}
	/* The head of then, under a second name, as a copy by links has it. */
	read_head(&folder, &head);
	assert_true(fd_replace_file(path, buf_str(&head), NULL));
	exchange_head(&folder, 0, path);
	begin_again(&folder, NULL, &text);
	buf_clear(&after);
	assert_true(fd_read_file(path, TEXT_MAX, &after, NULL));
	assert_true(str_equal(buf_str(&after), buf_str(&head)));
	/* What cannot be exchanged holds the calls up. */
	exchange_head(&folder, 4, path);
	ledger = open_with(&folder, STR(key_text), 0);
	assert_false(add(ledger, "a", true, &err));
	if (strstr(err.text, "/head is no file of an audit") == NULL ||
	    strstr(err.text, "remove it") == NULL)
		fail_msg("%s", err.text);
	tree_remove(name);
	assert_true(add(ledger, "a", true, NULL));
	ledger_close(ledger);
	begin_again(&folder, NULL, &text);
	buf_fini(&head);
	buf_fini(&after);
	buf_fini(&victim);
	buf_fini(&text);
	folder_end(&folder);
}

static void note_head(void *context, const char *sentence)
{
	(void)snprintf(context, 128, "%s", sentence);
}

static void the_head_is_told_at_the_end(void **state)
{
	char said[128] = "";
	struct ledger_options options = {.head = note_head, .head_s = 3600, .context = said};
	struct chain_check check = {0};
	struct ledger *ledger = NULL;
	struct folder folder;
	struct buf text;

	(void)state;
	folder_begin(&folder, "audit");
	buf_init(&text, TEXT_MAX);
	options.folder = folder.file;
	assert_true(ledger_open(&options, &ledger, NULL));
	assert_true(add(ledger, "a", true, NULL));
	assert_true(add(ledger, "b", true, NULL));
	ledger_close(ledger);
	assert_true(check_all(&folder, (struct str){0}, &text) == 2);
	assert_true(str_starts(str_of(said), STR("audit head 2:")));
	assert_true(chain_check_head(&check, said + strlen("audit head "), NULL));
	for (struct str rest = buf_str(&text), line; str_next_line(&rest, &line);)
		assert_true(chain_check_line(&check, line, NULL));
	assert_true(chain_check_end(&check, NULL));
	buf_fini(&text);
	folder_end(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_goes_on_when_it_is_opened_again),
		cmocka_unit_test(a_further_file_carries_the_chain_on),
		cmocka_unit_test(a_file_without_a_line_goes_on_from_the_one_before),
		cmocka_unit_test(a_torn_line_is_cut_off_and_told),
		cmocka_unit_test(several_writers_make_one_chain),
		cmocka_unit_test(a_killed_writer_leaves_a_sound_chain),
		cmocka_unit_test(a_full_disk_refuses_what_has_not_happened),
		cmocka_unit_test(records_beyond_the_ceiling_are_counted),
		cmocka_unit_test(an_unsafe_folder_and_a_broken_end_are_refused),
		cmocka_unit_test(no_writer_goes_on_with_a_chain_that_was_cut),
		cmocka_unit_test(a_writer_that_begins_notices_what_was_cut),
		cmocka_unit_test(a_head_that_cannot_be_read_is_told_apart),
		cmocka_unit_test(writers_that_are_killed_make_one_chain),
		cmocka_unit_test(the_disk_takes_the_head_behind_the_lines),
		cmocka_unit_test(a_head_is_kept_where_it_is_found),
		cmocka_unit_test(a_kill_at_any_step_is_no_cut),
		cmocka_unit_test(a_disk_without_room_for_a_head_takes_no_line),
		cmocka_unit_test(a_foreign_head_is_exchanged),
		cmocka_unit_test(the_head_is_told_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
