/* usage: what the processes of a namespace hold, counted by its pid 1. */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "base/buf.h"
#include "process/usage.h"

#include "init.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEBI = 1 << 20, BLOCK = 64 * MEBI };

/* A child that has prepared itself, and waits; -1 when that failed. */
static pid_t begin(void (*prepare)(void))
{
	int ends[2];
	char byte;
	pid_t pid;

	if (pipe(ends) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		prepare();
		if (write(ends[1], "x", 1) == 1)
			(void)pause();
		_exit(1);
	}
	if (pid < 0 || read(ends[0], &byte, 1) != 1)
		return -1;
	(void)close(ends[0]);
	(void)close(ends[1]);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void fill_memory(void)
{
	void *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		_exit(2);
	memset(block, 1, BLOCK);
}

static void fill_and_fork(void)
{
	fill_memory();
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)pause();
		}
	}
}

static int memory_file_make(void)
{
	int fd = memfd_create("x", 0);
	void *block;

	if (fd < 0 || ftruncate(fd, BLOCK) < 0)
		_exit(2);
	block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (block == MAP_FAILED)
		_exit(2);
	memset(block, 1, BLOCK);
	(void)munmap(block, BLOCK);
	return fd;
}

static void fill_memory_file(void)
{
	(void)memory_file_make();
}

static void fill_and_close_itself(void)
{
	fill_memory();
	(void)prctl(PR_SET_DUMPABLE, 0);
}

static void fill_memory_file_and_close_itself(void)
{
	fill_memory_file();
	(void)prctl(PR_SET_DUMPABLE, 0);
}

/* The file is on its way, and nobody has it open. */
static void send_memory_file(void)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	char byte = 'x';
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	const int fd = memory_file_make();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		_exit(2);
	control.align = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
					 .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	if (sendmsg(ends[0], &message, 0) != 1 || close(fd) < 0)
		_exit(2);
}

/*
 * In each of the spaces that a table is for lies the same page of the program's file. No
 * memory is read: some virtual machines have no shared page of zeros, and give a page of
 * its own to each read.
 */
static void fill_tables(void)
{
	enum { TABLE_SPACE = 2 * MEBI, TABLE = 4096 };
	const size_t size = (size_t)BLOCK / TABLE * TABLE_SPACE;
	char *block = mmap(NULL, size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	volatile char sum = 0;

	if (block == MAP_FAILED || fd < 0)
		_exit(2);
	for (size_t at = 0; at < size; at += TABLE_SPACE) {
		if (mmap(block + at, TABLE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			_exit(2);
		sum = (char)(sum + block[at]);
	}
}

/* Within 16 MiB: the sanitizers' own memory is in every child. */
static bool is_about(uint64_t bytes, uint64_t expected)
{
	return bytes + 16 * MEBI > expected && bytes < expected + 48 * MEBI;
}

/*
 * Memory out of sight is counted by the machine's growth. Others' memory may shrink or grow
 * meanwhile, so it may take several tries. MOST > 0: no more than about MOST is counted.
 */
static bool is_found(void (*hide)(void), uint64_t most)
{
	bool found = false;

	for (int i = 0; i < 5 && !found; i++) {
		struct usage_memory memory;
		struct usage usage;

		usage_begin(&memory);
		const pid_t pid = begin(hide);
		found = pid > 0 && usage_measure(&memory, BLOCK / 2, &usage) &&
			usage.memory + 16 * MEBI > BLOCK &&
			(most == 0 || usage.memory < most + 48 * MEBI);
		end(pid);
	}
	return found;
}

static int as_init(void)
{
	struct usage_memory memory;
	struct usage usage;
	pid_t pid;

	usage_begin(&memory);
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		return INIT_FORBIDDEN;
	if (!usage_measure(&memory, 1, &usage) || usage.tasks != 0 || usage.memory != 0)
		return 1;
	pid = begin(fill_memory);
	if (!usage_measure(&memory, BLOCK / 2, &usage) || usage.tasks != 1 ||
	    !is_about(usage.memory, BLOCK))
		return 2;
	if (!usage_measure(&memory, 0, &usage) || usage.tasks != 1)
		return 3;
	end(pid);
	/* Four processes that share their pages. */
	pid = begin(fill_and_fork);
	if (!usage_measure(&memory, BLOCK / 2, &usage) || !is_about(usage.memory, BLOCK))
		return 4;
	end(pid);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (!is_found(fill_memory_file, 0))
		return 5;
	if (!is_found(fill_and_close_itself, 0))
		return 6;
	/* In a guest without nested paging a table takes two pages. */
	if (!is_found(fill_tables, 2 * (uint64_t)BLOCK))
		return 7;
	if (!is_found(fill_memory_file_and_close_itself, 0))
		return 8;
	if (!is_found(send_memory_file, 0))
		return 9;
	return 0;
}

static void what_a_namespace_holds_is_added_up(void **state)
{
	(void)state;
	assert_int_equal(init_status(CLONE_NEWNS, as_init), 0);
}

/* Accounts name the source of each quantity, and their members are always the same. */
static void accounts_are_printed_with_their_sources(void **state)
{
	const struct accounts accounts = {
		.cpu_s = 1.5,
		.cpu_user_s = 1.25,
		.wall_s = 2,
		.memory_peak = UINT64_MAX,
		.written = 4096,
		.net_out = 7,
		.processes_peak = 3,
		.cpu = ACCOUNTS_CGROUP1,
		.memory = ACCOUNTS_SAMPLED,
		.io = ACCOUNTS_RUSAGE,
		.net = ACCOUNTS_PROXY,
		.limit = "cpu_s",
	};
	struct value *object = accounts_value(&accounts);
	struct buf text;

	(void)state;
	buf_init(&text, 4096);
	assert_true(value_print(object, 0, &text));
	assert_string_equal(
		text.data,
		"{\"cpu_s\":1.5,\"cpu_user_s\":1.25,\"wall_s\":2.0,"
		"\"memory_peak\":9223372036854775807,\"written\":4096,\"read\":0,\"net_in\":0,"
		"\"net_out\":7,\"processes_peak\":3,\"source\":{\"cpu\":\"cgroup1\","
		"\"memory\":\"sampled\",\"io\":\"rusage\",\"net\":\"proxy\"},\"limit\":\"cpu_s\"}");
	buf_fini(&text);
	value_free(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accounts_are_printed_with_their_sources),
		cmocka_unit_test(what_a_namespace_holds_is_added_up),
	};

	return cmocka_run_group_tests_name("process-usage", tests, NULL, NULL);
}
