/*
 * filter_make: a program of the build. It writes the system-call filter as a C table on
 * standard output: a hand-made head (filter_print.c) before the lists (filter_calls.c) that
 * libseccomp turns into a binary tree. With the word "names" it writes the names of the calls
 * that are explained instead.
 *
 * Everything is allowed but what reaches out of the cell, into other processes, or into
 * parts of the kernel that have no business in a build. ENOSYS where programs fall back
 * by themselves, EPERM elsewhere; EPERM by way of the worker (EXPLAINED) for what
 * deserves a sentence, since no program that needs it can do without.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
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
#include "sandbox/filter_print.h"

enum {
	NEW_TIME = 0x80,   /* CLONE_NEWTIME */
	FILTER_MAX = 4096, /* BPF_MAXINSNS */
	SOCKET_TYPE_MASK = 0xf,
	PRIORITY_OF_USER = 3, /* IOPRIO_WHO_USER */
	SET_OWNER_EX = 15,    /* F_SETOWN_EX */
};
/* What the kernel looks at of an int. */
#define LOW_HALF 0xffffffffu

static void check(int answer, const char *what)
{
	if (answer >= 0)
		return;
	(void)fprintf(stderr, "filter_make: %s: error %d\n", what, -answer);
	exit(1);
}

static void refuse(scmp_filter_ctx filter, const char *name, int code)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number == __NR_SCMP_ERROR || number < 0)
		return; /* not on this architecture */
	check(seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)code), number, 0), name);
}

static void refuse_names(scmp_filter_ctx filter, const char *const *names, int code)
{
	for (; *names != NULL; names++)
		refuse(filter, *names, code);
}

static void refuse_number(scmp_filter_ctx filter, int number, int code)
{
	check(seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)code), number, 0),
	      "a call by number");
}

static void refuse_numbers(scmp_filter_ctx filter, const int *numbers, int code)
{
	for (; *numbers >= 0; numbers++)
		refuse_number(filter, *numbers, code);
}

/* Refuse NUMBER when argument INDEX has one of the bits. */
static void refuse_bits(scmp_filter_ctx filter, int number, unsigned index, uint64_t bits)
{
	for (uint64_t bit = 1; bit != 0; bit <<= 1) {
		if ((bits & bit) == 0)
			continue;
		struct scmp_arg_cmp rule = SCMP_CMP64(index, SCMP_CMP_MASKED_EQ, bit, bit);
		check(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EXPLAINED), number, 1,
					     &rule),
		      "a rule on bits");
	}
}

/* A file made by open with a set-id mode: only when the flags make a file at all. */
static void refuse_open_mode(scmp_filter_ctx filter, int number, unsigned flags_index)
{
	const uint64_t making[] = {O_CREAT, O_TMPFILE & ~(uint64_t)O_DIRECTORY};
	const uint64_t set_id[] = {S_ISUID, S_ISGID};

	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < 2; j++) {
			struct scmp_arg_cmp rules[] = {
				SCMP_CMP64(flags_index, SCMP_CMP_MASKED_EQ, making[i],
					   making[i]),
				SCMP_CMP64(flags_index + 1, SCMP_CMP_MASKED_EQ, set_id[j],
					   set_id[j]),
			};
			check(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EXPLAINED),
						     number, 2, rules),
			      "a rule on open");
		}
	}
}

/* Refuse NUMBER unless argument INDEX is VALUE. */
static void refuse_unless(scmp_filter_ctx filter, int number, unsigned index, uint64_t value)
{
	const struct scmp_arg_cmp other = {.arg = index,
					   .op = SCMP_CMP_NE,
					   .datum_a = value,
					   .datum_b = 0};

	check(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), number, 1, &other),
	      "a rule on an argument");
}

static void refuse_request(scmp_filter_ctx filter, uint64_t request)
{
	/* The kernel looks at the low half only. */
	struct scmp_arg_cmp rule = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW_HALF, request);

	check(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EXPLAINED), SCMP_SYS(ioctl),
				     1, &rule),
	      "a rule on ioctl");
}

static void refuse_arguments(scmp_filter_ctx filter)
{
	const uint64_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
				CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
	const uint64_t set_id = S_ISUID | S_ISGID;

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

/* Refuse NUMBER when the bits MASK of argument INDEX are VALUE. */
static void refuse_when(scmp_filter_ctx filter, int number, unsigned index, uint64_t mask,
			uint64_t value)
{
	struct scmp_arg_cmp rule = SCMP_CMP64(index, SCMP_CMP_MASKED_EQ, mask, value);

	check(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), number, 1, &rule),
	      "a rule on masked bits");
}

/*
 * Sockets: UNIX, and of these only what has no addressee but its other end: a datagram
 * can be sent to any name.
 */
static void refuse_sockets(scmp_filter_ctx filter)
{
	static const uint64_t addressed[] = {SOCK_DGRAM, SOCK_RAW};

	refuse_unless(filter, SCMP_SYS(socket), 0, AF_UNIX);
	for (size_t i = 0; i < 2; i++) {
		refuse_when(filter, SCMP_SYS(socket), 1, SOCKET_TYPE_MASK, addressed[i]);
		refuse_when(filter, SCMP_SYS(socketpair), 1, SOCKET_TYPE_MASK, addressed[i]);
	}
}

/* Open files in ways of which Landlock asks no right. */
static void refuse_open_ways(scmp_filter_ctx filter, int number, unsigned index)
{
	refuse_when(filter, number, index, O_ACCMODE, O_ACCMODE);
	refuse_when(filter, number, index, O_ACCMODE | O_TRUNC, O_RDONLY | O_TRUNC);
}

static void refuse_outside(scmp_filter_ctx filter)
{
	refuse_sockets(filter);
	refuse_open_ways(filter, SCMP_SYS(openat), 2);
#if defined(__x86_64__)
	refuse_open_ways(filter, SCMP_SYS(open), 1);
#endif
	/* Only oneself is moved about. */
	refuse_unless(filter, SCMP_SYS(sched_setaffinity), 0, 0);
	refuse_unless(filter, SCMP_SYS(sched_setscheduler), 0, 0);
	refuse_unless(filter, SCMP_SYS(sched_setparam), 0, 0);
	refuse_unless(filter, SCMP_SYS(sched_setattr), 0, 0);
	refuse_unless(filter, SCMP_SYS(setpriority), 1, 0);
	refuse_when(filter, SCMP_SYS(setpriority), 0, LOW_HALF, PRIO_USER);
	refuse_unless(filter, SCMP_SYS(ioprio_set), 1, 0);
	refuse_when(filter, SCMP_SYS(ioprio_set), 0, LOW_HALF, PRIORITY_OF_USER);
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

static void ask_attributes(scmp_filter_ctx filter)
{
	refuse_names(filter, calls_of_attributes, EXPLAINED);
	refuse_number(filter, CALL_FCHMODAT2, EXPLAINED);
}

static void refuse_signals(scmp_filter_ctx filter)
{
	/* kill(0): one's own group. Signal 0 asks only whether there is somebody. */
	const struct scmp_arg_cmp rules[] = {
		{.arg = 0, .op = SCMP_CMP_NE, .datum_a = 0, .datum_b = 0},
		{.arg = 1, .op = SCMP_CMP_NE, .datum_a = 0, .datum_b = 0},
	};

	check(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kill), 2, rules),
	      "kill");
	refuse_names(filter, calls_of_signals, EPERM);
	refuse_when(filter, SCMP_SYS(fcntl), 1, LOW_HALF, F_SETOWN);
	refuse_when(filter, SCMP_SYS(fcntl), 1, LOW_HALF, SET_OWNER_EX);
	refuse_request(filter, FIOSETOWN);
	refuse_request(filter, SIOCSPGRP);
}

static void print_names(const char *const *names)
{
	for (; *names != NULL; names++) {
		int number = seccomp_syscall_resolve_name(*names);

		if (number != __NR_SCMP_ERROR && number >= 0)
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

static void print_list(scmp_filter_ctx filter)
{
	static struct sock_filter program[FILTER_MAX];
	FILE *file = tmpfile();

	if (file == NULL) {
		perror("filter_make: tmpfile");
		exit(1);
	}
	check(seccomp_export_bpf(filter, fileno(file)), "export");
	rewind(file);
	size_t count = fread(program, sizeof(program[0]), FILTER_MAX, file);
	if (ferror(file) || count == 0 || count == FILTER_MAX) {
		(void)fprintf(stderr, "filter_make: the filter cannot be read back\n");
		exit(1);
	}
	(void)fclose(file);
	print_instructions(program, count);
}

static scmp_filter_ctx filter_begin(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (filter == NULL) {
		(void)fprintf(stderr, "filter_make: libseccomp does not start\n");
		exit(1);
	}
	/* 2: a binary tree by number, so that a call costs a handful of comparisons. */
	check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
	return filter;
}

static void refuse_everywhere(scmp_filter_ctx filter)
{
	refuse_names(filter, calls_refused, EPERM);
	refuse_names(filter, calls_explained, EXPLAINED);
	refuse_numbers(filter, calls_refused_numbers, EPERM);
	refuse_names(filter, calls_absent, ENOSYS);
	refuse_arguments(filter);
}

static void table_begin(const char *name)
{
	(void)printf("\nstatic const struct sock_filter %s[] = {\n", name);
}

static void table_end(scmp_filter_ctx filter)
{
	print_list(filter);
	(void)printf("};\n");
	seccomp_release(filter);
}

/* Of every process of a cell; OUTSIDE: it has no namespaces of its own. */
static void make_filter(const char *name, bool outside)
{
	scmp_filter_ctx filter = filter_begin();

	refuse_everywhere(filter);
	/* At L2 the worker reads with it; Landlock keeps it to what is below. */
	if (outside)
		refuse_outside(filter);
	else
		refuse(filter, "process_vm_readv", EPERM);
	table_begin(name);
	print_head(outside);
	table_end(filter);
}

/* Of programs alone, beside the other; see sandbox_program_filter. */
static void make_program_filter(const char *name, bool rules, bool domain)
{
	scmp_filter_ctx filter = filter_begin();

	/* Another architecture is the first filter's to answer. */
	check(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW),
	      "other architectures");
	refuse(filter, "openat2", ENOSYS);
	if (rules)
		ask_attributes(filter);
	if (!domain)
		refuse_signals(filter);
	if (!domain && rules)
		refuse(filter, "truncate", EPERM);
	if (!rules) {
		refuse(filter, "ptrace", EPERM);
		refuse(filter, "process_vm_readv", EPERM);
	}
	table_begin(name);
	table_end(filter);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "names") == 0) {
		make_names();
		return 0;
	}
	(void)printf("/* Made by filter_make. */\n"
		     "#pragma once\n");
	make_filter("filter_table", false);
	make_filter("filter_rules_table", true);
	make_program_filter("program_rules_table", true, true);
	make_program_filter("program_old_rules_table", true, false);
	make_program_filter("program_filter_table", false, false);
	return 0;
}
