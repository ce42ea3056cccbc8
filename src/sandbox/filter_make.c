/*
 * filter_make: a program of the build. It writes the system-call filter as a C table on
 * standard output: the lists (filter_calls.c), whose names libseccomp turns into numbers, and
 * what is judged by arguments (here), as instructions (filter_tree.c). With the word "names"
 * it writes the names of the calls that are explained instead.
 *
 * Everything is allowed but what reaches out of the cell, into other processes, or into
 * parts of the kernel that have no business in a build. ENOSYS where programs fall back
 * by themselves, EPERM elsewhere; EPERM by way of the worker (FILTER_EXPLAIN) for what
 * deserves a sentence, since no program that needs it can do without.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "sandbox/filter_calls.h"
#include "sandbox/filter_tree.h"

enum {
	NEW_TIME = 0x80, /* CLONE_NEWTIME */
	WORKER = 1,      /* its number where it has a pid namespace */
	SOCKET_TYPE_MASK = 0xf,
	PRIORITY_OF_PROCESS = 1,      /* IOPRIO_WHO_PROCESS */
	PRIORITY_OF_USER = 3,         /* IOPRIO_WHO_USER */
	SET_OWNER_EX = 15,            /* F_SETOWN_EX */
	NO_RANDOMISATION = 0x0040000, /* ADDR_NO_RANDOMIZE */
};
#define ALL_BITS UINT32_MAX

static void refuse_names(struct filter *filter, const char *const *names, uint32_t answer)
{
	for (; *names != NULL; names++) {
		int number = seccomp_syscall_resolve_name(*names);

		if (number >= 0) /* on this architecture */
			filter_answer(filter, number, answer);
	}
}

static void refuse_numbers(struct filter *filter, const int *numbers, uint32_t answer)
{
	for (; *numbers >= 0; numbers++)
		filter_answer(filter, *numbers, answer);
}

/* Explain NUMBER when argument INDEX has one of the bits. */
static void refuse_bits(struct filter *filter, int number, unsigned index, uint32_t bits)
{
	filter_add_test(filter, number,
			&(struct filter_test){
				.first = {CONDITION_ANY_BIT, index, bits, 0},
				.answer = FILTER_EXPLAIN,
			});
}

/* A file made by open with a set-id mode: only when the flags make a file at all. */
static void refuse_open_mode(struct filter *filter, int number, unsigned flags_index)
{
	const uint32_t making = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);

	filter_add_test(filter, number,
			&(struct filter_test){
				.first = {CONDITION_ANY_BIT, flags_index, making, 0},
				.second = {CONDITION_ANY_BIT, flags_index + 1,
					   S_ISUID | S_ISGID, 0},
				.answer = FILTER_EXPLAIN,
			});
}

/* NUMBER gets ANSWER when the bits MASK of argument INDEX are VALUE. */
static void answer_when(struct filter *filter, int number, unsigned index, uint32_t mask,
			uint32_t value, uint32_t answer)
{
	filter_add_test(filter, number,
			&(struct filter_test){
				.first = {CONDITION_EQUALS, index, mask, value},
				.answer = answer,
			});
}

/* Refuse NUMBER unless argument INDEX is VALUE. */
static void refuse_unless(struct filter *filter, int number, unsigned index, uint32_t value)
{
	filter_add_test(filter, number,
			&(struct filter_test){
				.first = {CONDITION_DIFFERS, index, ALL_BITS, value},
				.answer = EPERM,
			});
}

static void refuse_when(struct filter *filter, int number, unsigned index, uint32_t mask,
			uint32_t value)
{
	answer_when(filter, number, index, mask, value, EPERM);
}

static void refuse_request(struct filter *filter, uint32_t request)
{
	answer_when(filter, SCMP_SYS(ioctl), 1, ALL_BITS, request, FILTER_EXPLAIN);
}

static void refuse_arguments(struct filter *filter)
{
	const uint32_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
				CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
	const uint32_t set_id = S_ISUID | S_ISGID;

	refuse_bits(filter, SCMP_SYS(clone), 0, spaces);
	refuse_bits(filter, SCMP_SYS(unshare), 0, spaces | NEW_TIME);
	refuse_bits(filter, SCMP_SYS(fchmod), 1, set_id);
	refuse_bits(filter, SCMP_SYS(fchmodat), 2, set_id);
	refuse_bits(filter, CALL_FCHMODAT2, 2, set_id);
	refuse_bits(filter, SCMP_SYS(mknodat), 2, set_id);
	refuse_open_mode(filter, SCMP_SYS(openat), 2);
#if defined(__x86_64__)
	refuse_bits(filter, SCMP_SYS(chmod), 1, set_id);
	refuse_bits(filter, SCMP_SYS(mknod), 1, set_id);
	refuse_bits(filter, SCMP_SYS(creat), 1, set_id);
	refuse_open_mode(filter, SCMP_SYS(open), 1);
#endif
	refuse_unless(filter, SCMP_SYS(socketpair), 0, AF_UNIX);
	refuse_request(filter, TIOCSTI);
	refuse_request(filter, 0x541c /* TIOCLINUX */);
	refuse_unless(filter, SCMP_SYS(prlimit64), 0, 0 /* oneself */);
}

/* The usual one, no randomisation (gdb), and the question. */
static void allow_personalities(struct filter *filter)
{
	static const uint32_t allowed[] = {0, NO_RANDOMISATION, UINT32_MAX};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		answer_when(filter, SCMP_SYS(personality), 0, ALL_BITS, allowed[i],
			    FILTER_ALLOW);
	filter_answer(filter, SCMP_SYS(personality), EPERM);
}

/* In a network of its own: UNIX, INET, INET6, and NETLINK for routes. */
static void allow_families(struct filter *filter)
{
	static const uint32_t allowed[] = {AF_UNIX, AF_INET, AF_INET6};
	const int number = SCMP_SYS(socket);

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		answer_when(filter, number, 0, ALL_BITS, allowed[i], FILTER_ALLOW);
	filter_add_test(filter, number,
			&(struct filter_test){
				.first = {CONDITION_EQUALS, 0, ALL_BITS, AF_NETLINK},
				.second = {CONDITION_EQUALS, 2, ALL_BITS, NETLINK_ROUTE},
				.answer = FILTER_ALLOW,
			});
	refuse_when(filter, number, 0, ALL_BITS, AF_NETLINK);
	filter_answer(filter, number, FILTER_EXPLAIN);
}

/*
 * Sockets of a cell that shares the host's network: UNIX, and of these only what has no
 * addressee but its other end: a datagram can be sent to any name.
 */
static void refuse_sockets(struct filter *filter)
{
	static const uint32_t addressed[] = {SOCK_DGRAM, SOCK_RAW};

	refuse_unless(filter, SCMP_SYS(socket), 0, AF_UNIX);
	for (size_t i = 0; i < 2; i++) {
		refuse_when(filter, SCMP_SYS(socket), 1, SOCKET_TYPE_MASK, addressed[i]);
		refuse_when(filter, SCMP_SYS(socketpair), 1, SOCKET_TYPE_MASK, addressed[i]);
	}
}

/* Open files in ways of which Landlock asks no right. */
static void refuse_open_ways(struct filter *filter, int number, unsigned index)
{
	refuse_when(filter, number, index, O_ACCMODE, O_ACCMODE);
	refuse_when(filter, number, index, O_ACCMODE | O_TRUNC, O_RDONLY | O_TRUNC);
}

static void refuse_outside(struct filter *filter)
{
	refuse_sockets(filter);
	refuse_open_ways(filter, SCMP_SYS(openat), 2);
#if defined(__x86_64__)
	refuse_open_ways(filter, SCMP_SYS(open), 1);
#endif
	/* A program may change the scheduling of itself only. */
	refuse_unless(filter, SCMP_SYS(sched_setaffinity), 0, 0);
	refuse_unless(filter, SCMP_SYS(sched_setscheduler), 0, 0);
	refuse_unless(filter, SCMP_SYS(sched_setparam), 0, 0);
	refuse_unless(filter, SCMP_SYS(sched_setattr), 0, 0);
	refuse_unless(filter, SCMP_SYS(setpriority), 1, 0);
	refuse_when(filter, SCMP_SYS(setpriority), 0, ALL_BITS, PRIO_USER);
	refuse_unless(filter, SCMP_SYS(ioprio_set), 1, 0);
	refuse_when(filter, SCMP_SYS(ioprio_set), 0, ALL_BITS, PRIORITY_OF_USER);
	/* Attributes by a descriptor that need not be writable. */
	refuse_request(filter, FS_IOC_SETFLAGS);
	refuse_request(filter, FS_IOC32_SETFLAGS);
	refuse_request(filter, FS_IOC_FSSETXATTR);
	refuse_request(filter, FS_IOC_SETVERSION);
	refuse_names(filter, calls_refused_outside, EPERM);
	refuse_names(filter, calls_absent_outside, ENOSYS);
	refuse_names(filter, calls_unsupported_outside, EOPNOTSUPP);
	refuse_numbers(filter, calls_unsupported_outside_numbers, EOPNOTSUPP);
}

/* NUMBER moves a KIND of processes about (argument 0), the worker by its number (argument 1). */
static void refuse_kind_of_worker(struct filter *filter, int number, uint32_t kind)
{
	filter_add_test(filter, number,
			&(struct filter_test){
				.first = {CONDITION_EQUALS, 0, ALL_BITS, kind},
				.second = {CONDITION_EQUALS, 1, ALL_BITS, WORKER},
				.answer = EPERM,
			});
}

/*
 * The worker has the user of what it started, so that the kernel would let a command take the
 * processor from it: limits and the deadline would be looked at by nobody.
 */
static void refuse_worker(struct filter *filter)
{
	static const int numbers[] = {SCMP_SYS(sched_setaffinity),
				      SCMP_SYS(sched_setscheduler),
				      SCMP_SYS(sched_setparam), SCMP_SYS(sched_setattr)};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		refuse_when(filter, numbers[i], 0, ALL_BITS, WORKER);
	refuse_kind_of_worker(filter, SCMP_SYS(setpriority), PRIO_PROCESS);
	refuse_when(filter, SCMP_SYS(setpriority), 0, ALL_BITS, PRIO_USER);
	refuse_kind_of_worker(filter, SCMP_SYS(ioprio_set), PRIORITY_OF_PROCESS);
	refuse_when(filter, SCMP_SYS(ioprio_set), 0, ALL_BITS, PRIORITY_OF_USER);
}

static void ask_attributes(struct filter *filter)
{
	refuse_names(filter, calls_of_attributes, FILTER_EXPLAIN);
	filter_answer(filter, CALL_FCHMODAT2, FILTER_EXPLAIN);
}

static void refuse_signals(struct filter *filter)
{
	/* kill(0): one's own group. Signal 0 asks only whether there is somebody. */
	filter_add_test(filter, SCMP_SYS(kill),
			&(struct filter_test){
				.first = {CONDITION_DIFFERS, 0, ALL_BITS, 0},
				.second = {CONDITION_DIFFERS, 1, ALL_BITS, 0},
				.answer = EPERM,
			});
	refuse_names(filter, calls_of_signals, EPERM);
	refuse_when(filter, SCMP_SYS(fcntl), 1, ALL_BITS, F_SETOWN);
	refuse_when(filter, SCMP_SYS(fcntl), 1, ALL_BITS, SET_OWNER_EX);
	refuse_request(filter, FIOSETOWN);
	refuse_request(filter, SIOCSPGRP);
}

static void print_names(const char *const *names)
{
	for (; *names != NULL; names++) {
		int number = seccomp_syscall_resolve_name(*names);

		if (number >= 0)
			(void)printf("\t{%d, \"%s\"},\n", number, *names);
	}
}

/* The names behind the numbers, for the sentences. */
static void make_names(void)
{
	static const char *const by_argument[] = {
		"clone", "unshare", "chmod",  "fchmod", "fchmodat", "mknod", "mknodat",
		"creat", "open",    "openat", "ioctl",  "socket",   NULL,
	};

	(void)printf("/* Made by filter_make. */\n"
		     "#pragma once\n\n"
		     "static const struct explained_call {\n"
		     "\tint number;\n"
		     "\tconst char *name;\n"
		     "} explained_calls[] = {\n");
	print_names(calls_explained);
	print_names(by_argument);
	(void)printf("\t{%d, \"fchmodat2\"},\n};\n", CALL_FCHMODAT2);
}

/* Of every process of a cell; OUTSIDE: it has no namespaces of its own. */
static void make_filter(const char *name, bool outside)
{
	struct filter filter = {0};

	refuse_names(&filter, calls_refused, EPERM);
	refuse_names(&filter, calls_explained, FILTER_EXPLAIN);
	refuse_numbers(&filter, calls_refused_numbers, EPERM);
	refuse_names(&filter, calls_absent, ENOSYS);
	/* Its flags lie in memory, where no filter looks; the C library falls back. */
	filter_answer(&filter, CALL_CLONE3, ENOSYS);
	refuse_arguments(&filter);
	allow_personalities(&filter);
	if (outside) {
		refuse_outside(&filter);
	} else {
		allow_families(&filter);
		refuse_worker(&filter);
		/* At L2 the worker reads with it; Landlock keeps it to what is below. */
		filter_answer(&filter, SCMP_SYS(process_vm_readv), EPERM);
	}
	filter_print(&filter, name, true);
}

/*
 * Of programs alone, beside the other, which has answered other architectures; see
 * sandbox_program_filter.
 */
static void make_program_filter(const char *name, bool rules, bool domain)
{
	struct filter filter = {0};

	filter_answer(&filter, CALL_OPENAT2, ENOSYS);
	if (rules)
		ask_attributes(&filter);
	if (!domain)
		refuse_signals(&filter);
	if (!domain && rules)
		filter_answer(&filter, SCMP_SYS(truncate), EPERM);
	if (!rules) {
		filter_answer(&filter, SCMP_SYS(ptrace), EPERM);
		filter_answer(&filter, SCMP_SYS(process_vm_readv), EPERM);
	}
	filter_print(&filter, name, false);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "names") == 0) {
		make_names();
		return 0;
	}
	(void)printf("/* Made by filter_make. */\n"
		     "#pragma once\n\n#include <linux/filter.h>\n");
	make_filter("filter_table", false);
	make_filter("filter_rules_table", true);
	make_program_filter("program_rules_table", true, true);
	make_program_filter("program_old_rules_table", true, false);
	make_program_filter("program_filter_table", false, false);
	return 0;
}
