/*
 * filter_make: a program of the build. It writes the system-call filters as C tables on
 * standard output, or with the word "names" the names of the explained calls.
 * Everything is allowed except calls that reach out of the cell, into other processes,
 * or into parts of the kernel that no build needs. Such a call gets ENOSYS where
 * programs then fall back, EPERM elsewhere, and FILTER_EXPLAIN (EPERM through the
 * worker, with a sentence) where the program cannot go on without it.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/*
 * The headers of the C library may not have these yet. Their numbers are the same on
 * all our architectures.
 */
enum {
	CALL_CLONE3 = 435,
	CALL_OPENAT2 = 437,
	CALL_PIDFD_GETFD = 438,
	CALL_PROCESS_MADVISE = 440,
	CALL_MOUNT_SETATTR = 442,
	CALL_QUOTACTL_FD = 443,
	CALL_MEMFD_SECRET = 447,
	CALL_FCHMODAT2 = 452,
	CALL_LSM_SET_SELF_ATTR = 460,
	CALL_SETXATTRAT = 463,
	CALL_REMOVEXATTRAT = 466,
	CALL_OPEN_TREE_ATTR = 467,
	CALL_FILE_SETATTR = 469,
};

/* Answers besides errors. An error is its errno. */
enum {
	FILTER_ALLOW = 0,
	FILTER_PRETEND = 0xddd, /* say that it is done, and do nothing */
	FILTER_EXPLAIN = 0xeee, /* ask the worker */
};

enum condition_kind {
	CONDITION_ALWAYS,
	CONDITION_ANY_BIT, /* one of the bits of the mask is set */
	CONDITION_EQUALS,  /* the bits under the mask equal the value */
	CONDITION_DIFFERS,
};

/*
 * A condition on the low half of an argument, which is all that the kernel reads of an
 * int and of all flags.
 */
struct condition {
	enum condition_kind kind;
	uint32_t argument, mask, value;
};

/* ANSWER is given when both conditions hold. */
struct filter_test {
	struct condition first, second;
	uint32_t answer;
};

enum {
	FILTER_CALLS_MAX = 512, /* call numbers; higher ones are allowed */
	FILTER_TESTS_MAX = 8,   /* for one call */
};

/* A filter that is all zero allows everything. */
struct filter {
	struct filter_rule {
		uint32_t answer; /* when no test has answered */
		uint32_t count;
		struct filter_test tests[FILTER_TESTS_MAX];
	} rules[FILTER_CALLS_MAX];
};

/*
 * The system calls that the filters name. Lists of names end with NULL, lists of
 * numbers with -1. A name that this architecture does not have is skipped.
 */

/*
 * Programs make these calls on purpose and have no other way. The worker is told of
 * each.
 */
static const char *const calls_explained[] = {
	/* mounts and roots */
	"mount",
	"umount2",
	"pivot_root",
	"chroot",
	"open_tree",
	"move_mount",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"open_by_handle_at",
	"swapon",
	"swapoff",
	"quotactl",
	/* namespaces */
	"setns",
	/* the kernel itself */
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"syslog",
	"acct",
	"iopl",
	"ioperm",
	"vhangup",
	"fanotify_init",
	/* clocks and names */
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"stime",
	"sethostname",
	"setdomainname",
	/* keyrings */
	"add_key",
	"request_key",
	"keyctl",
	NULL,
};

/* Programs may try these calls, and have another way when they are refused. */
static const char *const calls_refused[] = {
	"name_to_handle_at",
	"nfsservctl",
	"process_vm_writev",
	"kcmp",
	"migrate_pages",
	"move_pages",
	"create_module",
	"get_kernel_syms",
	"query_module",
	"lookup_dcookie",
	"uselib",
	"ustat",
	"sysfs",
	"_sysctl",
	"vm86",
	"vm86old",
	"modify_ldt",
	"afs_syscall",
	NULL,
};

static const int calls_refused_numbers[] = {
	CALL_PIDFD_GETFD,  CALL_PROCESS_MADVISE,   CALL_MOUNT_SETATTR,  CALL_QUOTACTL_FD,
	CALL_MEMFD_SECRET, CALL_LSM_SET_SELF_ATTR, CALL_OPEN_TREE_ATTR, -1,
};

/* Programs try these and fall back when they do not exist. */
static const char *const calls_absent[] = {
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	NULL,
};

/* Calls that reach processes outside by names of the host, which no path rule judges. */
static const char *const calls_refused_outside[] = {
	"bind",   "connect",    "listen", /* sockets of the host, named and abstract */
	"shmget", "shmat",      "shmctl",  "shmdt",     "semget",
	"semop",  "semtimedop", "semctl",  "msgget",    "msgsnd",
	"msgrcv", "msgctl",     "mq_open", "mq_unlink", NULL,
};

/*
 * Programs try these and go on without them. A watch would reveal the names in any
 * folder.
 */
static const char *const calls_absent_outside[] = {
	"inotify_init",
	"inotify_init1",
	NULL,
};

static const char *const calls_unsupported_outside[] = {
	"setxattr",     "lsetxattr",    "fsetxattr", "removexattr",
	"lremovexattr", "fremovexattr", NULL,
};

static const int calls_unsupported_outside_numbers[] = {
	CALL_SETXATTRAT,
	CALL_REMOVEXATTRAT,
	CALL_FILE_SETATTR,
	-1,
};

/* In the filter of programs, loaded between their start and exec. */
static const char *const calls_of_attributes[] = {
	"chmod",    "fchmod", "fchmodat", "chown",     "lchown",    "fchown",
	"fchownat", "utime",  "utimes",   "futimesat", "utimensat", NULL,
};

/*
 * In the filter of programs that take themselves for root (sandbox_program_filter): calls by
 * which root changes owners, users and capabilities. There is one user, so the kernel would
 * refuse them all; installers and package managers only want to hear that they worked.
 */
static const char *const calls_pretended[] = {
	"chown",    "lchown",    "fchown",    "fchownat",  "setuid",
	"setgid",   "setgroups", "setresuid", "setresgid", "setreuid",
	"setregid", "setfsuid",  "setfsgid",  "capset",    NULL,
};

/*
 * A filter cannot tell whose process a pid is. So all of these are refused where there
 * is no signal domain.
 */
static const char *const calls_of_signals[] = {
	"tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
	NULL,
};

/*
 * Turns the answers of a filter into instructions, and prints them as a C table. For
 * every worker the kernel translates a filter and runs it for every call number. So its
 * length counts first and its depth second: numbers with equal answers are one range,
 * and equal rules on arguments are written once.
 *
 * Jumps only go forward, so a program is written from its end: the target of a jump is
 * already written.
 */

#if defined(__x86_64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system-call filter is not written for this architecture"
#endif

enum {
	X32_BIT = 0x40000000,
	JUMP_MAX = 255,
	/* After this many comparisons in a row, one more branch pays. */
	ROW_MAX = 4,
	PROGRAM_MAX = 1024,
};

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(n) \
	(offsetof(struct seccomp_data, args) + 8 * (n)) /* low half: little-endian */

/*
 * The instructions in reverse order: the last one comes first. A place is an index into
 * `code`.
 */
struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned count;
};

/* Call numbers from FIRST up to the next range. All have RULE. */
struct range {
	unsigned first, place;
	const struct filter_rule *rule;
};

struct ranges {
	struct range items[FILTER_CALLS_MAX + 1];
	size_t count;
};

static void fail(const char *why)
{
	(void)fprintf(stderr, "filter_make: %s\n", why);
	exit(1);
}

static unsigned put(struct program *program, struct sock_filter instruction)
{
	if (program->count == PROGRAM_MAX)
		fail("a filter is too long");
	program->code[program->count] = instruction;
	return program->count++;
}

static unsigned put_load(struct program *program, size_t offset)
{
	return put(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							 (unsigned)offset));
}

static unsigned put_jump(struct program *program, unsigned kind, uint32_t value,
			 unsigned yes, unsigned no)
{
	unsigned to_yes = program->count - yes - 1, to_no = program->count - no - 1;

	if (to_yes > JUMP_MAX || to_no > JUMP_MAX)
		fail("a filter is too long for its jumps");
	return put(program,
		   (struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | kind | BPF_K),
						value, (unsigned char)to_yes,
						(unsigned char)to_no));
}

static uint32_t kernel_answer(uint32_t answer)
{
	if (answer == FILTER_ALLOW)
		return SECCOMP_RET_ALLOW;
	if (answer == FILTER_EXPLAIN)
		return SECCOMP_RET_USER_NOTIF;
	if (answer == FILTER_PRETEND)
		return SECCOMP_RET_ERRNO; /* error 0 is success */
	return SECCOMP_RET_ERRNO | (answer & SECCOMP_RET_DATA);
}

/* The only instruction that gives ANSWER; added when there is none yet. */
static unsigned put_answer(struct program *program, uint32_t answer)
{
	const struct sock_filter wanted = BPF_STMT(BPF_RET | BPF_K, kernel_answer(answer));

	for (unsigned i = 0; i < program->count; i++) {
		if (memcmp(&program->code[i], &wanted, sizeof(wanted)) == 0)
			return i;
	}
	return put(program, wanted);
}

/* Test CONDITION on the loaded value. */
static unsigned put_comparison(struct program *program, const struct condition *condition,
			       unsigned yes, unsigned no)
{
	unsigned place;

	if (condition->kind == CONDITION_ANY_BIT)
		return put_jump(program, BPF_JSET, condition->mask, yes, no);
	if (condition->kind == CONDITION_EQUALS)
		place = put_jump(program, BPF_JEQ, condition->value, yes, no);
	else
		place = put_jump(program, BPF_JEQ, condition->value, no, yes);
	if (condition->mask == UINT32_MAX)
		return place;
	return put(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
							 condition->mask));
}

/* Is all of ARGUMENT still loaded after TEST did not hold? */
static bool leaves_loaded(const struct filter_test *test, uint32_t argument)
{
	return test->second.kind == CONDITION_ALWAYS && test->first.argument == argument &&
	       (test->first.kind == CONDITION_ANY_BIT || test->first.mask == UINT32_MAX);
}

static unsigned put_rule(struct program *program, const struct filter_rule *rule)
{
	unsigned next = put_answer(program, rule->answer);

	for (unsigned i = rule->count; i-- > 0;) {
		const struct filter_test *test = &rule->tests[i];
		unsigned yes = put_answer(program, test->answer);
		if (test->second.kind != CONDITION_ALWAYS) {
			(void)put_comparison(program, &test->second, yes, next);
			yes = put_load(program, ARGUMENT(test->second.argument));
		}
		next = put_comparison(program, &test->first, yes, next);
		if (i == 0 || !leaves_loaded(test - 1, test->first.argument))
			next = put_load(program, ARGUMENT(test->first.argument));
	}
	return next;
}

/* Put all answers at the very end of the program, where every jump can reach them. */
static void put_answers(struct program *program, const struct filter *filter)
{
	(void)put_answer(program, FILTER_ALLOW);
	for (size_t i = 0; i < FILTER_CALLS_MAX; i++) {
		const struct filter_rule *rule = &filter->rules[i];

		(void)put_answer(program, rule->answer);
		for (unsigned at = 0; at < rule->count; at++)
			(void)put_answer(program, rule->tests[at].answer);
	}
}

static bool rules_equal(const struct filter_rule *a, const struct filter_rule *b)
{
	return a->answer == b->answer && a->count == b->count &&
	       memcmp(a->tests, b->tests, a->count * sizeof(a->tests[0])) == 0;
}

/* Several ranges with an equal RULE share one copy of its instructions. */
static unsigned rule_place(struct program *program, const struct ranges *ranges,
			   const struct filter_rule *rule)
{
	for (size_t i = 0; i < ranges->count; i++) {
		if (rules_equal(ranges->items[i].rule, rule))
			return ranges->items[i].place;
	}
	return put_rule(program, rule);
}

static void ranges_find(struct program *program, const struct filter *filter,
			struct ranges *ranges)
{
	static const struct filter_rule allowed;

	for (unsigned i = 0; i <= FILTER_CALLS_MAX; i++) {
		const struct filter_rule *rule =
			i < FILTER_CALLS_MAX ? &filter->rules[i] : &allowed;
		if (ranges->count > 0 &&
		    rules_equal(ranges->items[ranges->count - 1].rule, rule))
			continue;
		unsigned place = rule_place(program, ranges, rule);
		ranges->items[ranges->count++] =
			(struct range){.first = i, .place = place, .rule = rule};
	}
}

/* The number of ranges FROM up to TO whose place is not OTHERS. */
static size_t count_odd(const struct ranges *ranges, size_t from, size_t to, unsigned others)
{
	size_t count = 0;

	for (size_t i = from; i < to; i++)
		count += ranges->items[i].place != others;
	return count;
}

/* Put one comparison after the other. Numbers that match none go to OTHERS. */
static unsigned put_row(struct program *program, const struct ranges *ranges, size_t from,
			size_t to, unsigned others)
{
	unsigned next = others;

	for (size_t i = to; i-- > from;) {
		const struct range *range = &ranges->items[i];
		if (range->place == others)
			continue;
		/*
		 * There is a next range, because the last range of all allows
		 * everything.
		 */
		unsigned end = ranges->items[i + 1].first;
		if (end - range->first == 1) {
			next = put_jump(program, BPF_JEQ, range->first, range->place, next);
			continue;
		}
		unsigned above = put_jump(program, BPF_JGE, end, next, range->place);
		next = put_jump(program, BPF_JGE, range->first, above, next);
	}
	return next;
}

/* Put the decision among the ranges FROM up to TO. */
static unsigned put_tree(struct program *program, const struct ranges *ranges,
			 size_t from, size_t to, unsigned allowed)
{
	size_t odd = count_odd(ranges, from, to, allowed);

	if (to - from == 1)
		return ranges->items[from].place;
	if (odd <= ROW_MAX)
		return put_row(program, ranges, from, to, allowed);
	/* Split so that both halves have equally many odd ranges. */
	size_t middle = from + 1;
	while (middle < to - 1 && count_odd(ranges, from, middle, allowed) < odd / 2)
		middle++;
	unsigned above = put_tree(program, ranges, middle, to, allowed);
	unsigned below = put_tree(program, ranges, from, middle, allowed);
	return put_jump(program, BPF_JGE, ranges->items[middle].first, above, below);
}

/*
 * Kill a process that calls with the numbers of another architecture, because they mean
 * other calls. Calls of x32 get ENOSYS.
 */
static void put_head(struct program *program, unsigned tree)
{
	(void)put_jump(program, BPF_JGE, X32_BIT, put_answer(program, ENOSYS), tree);
	unsigned number = put_load(program, NUMBER);
	unsigned other =
		put(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							  SECCOMP_RET_KILL_PROCESS));
	(void)put_jump(program, BPF_JEQ, OUR_ARCHITECTURE, number, other);
	(void)put_load(program, offsetof(struct seccomp_data, arch));
}

/* Give NUMBER an answer for any arguments. Tests of the call decide before it. */
static void filter_answer(struct filter *filter, int number, uint32_t answer)
{
	if (number < 0 || number >= FILTER_CALLS_MAX)
		fail("a call has too high a number");
	filter->rules[number].answer = answer;
}

/* Add one more test to NUMBER, after its earlier tests. */
static void filter_add_test(struct filter *filter, int number, const struct filter_test *test)
{
	if (number < 0 || number >= FILTER_CALLS_MAX)
		fail("a call has too high a number");
	struct filter_rule *rule = &filter->rules[number];
	if (rule->count == FILTER_TESTS_MAX)
		fail("a call has too many tests");
	rule->tests[rule->count++] = *test;
}

/*
 * ALL: the filter is for every process, so it also handles other architectures and x32.
 */
static void filter_print(const struct filter *filter, const char *name, bool all)
{
	static struct program program;
	static struct ranges ranges;

	program.count = 0;
	ranges.count = 0;
	if (all)
		(void)put_answer(&program, ENOSYS);
	put_answers(&program, filter);
	ranges_find(&program, filter, &ranges);
	unsigned tree = put_tree(&program, &ranges, 0, ranges.count,
				 put_answer(&program, FILTER_ALLOW));
	if (all)
		put_head(&program, tree);
	else
		(void)put_load(&program, NUMBER);
	(void)printf("\nstatic const struct sock_filter %s[] = {\n", name);
	for (unsigned i = program.count; i-- > 0;) {
		const struct sock_filter *at = &program.code[i];
		(void)printf("\t{%u, %u, %u, 0x%xu},\n", at->code, at->jt, at->jf, at->k);
	}
	(void)printf("};\n");
}

enum {
	NEW_TIME = 0x80, /* CLONE_NEWTIME */
	WORKER = 1,      /* pid of the worker in its pid namespace */
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

		if (number >= 0) /* the architecture has this call */
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

/* Explain an open with a set-id mode when the flags make it create a file. */
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
	refuse_unless(filter, SCMP_SYS(prlimit64), 0, 0 /* the calling process */);
}

/*
 * Allow the usual personality, the one without randomisation (gdb), and reading the
 * current one.
 */
static void allow_personalities(struct filter *filter)
{
	static const uint32_t allowed[] = {0, NO_RANDOMISATION, UINT32_MAX};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		answer_when(filter, SCMP_SYS(personality), 0, ALL_BITS, allowed[i],
			    FILTER_ALLOW);
	filter_answer(filter, SCMP_SYS(personality), EPERM);
}

/* Allow in a cell with its own network: UNIX, INET, INET6, and NETLINK for routes. */
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
 * For a cell that shares the host's network: allow only UNIX sockets, and of these no
 * datagram sockets, because a datagram can be sent to any name.
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

/* Refuse ways to open a file for which Landlock asks no right. */
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
	/* Refuse changing attributes through a descriptor that need not be writable. */
	refuse_request(filter, FS_IOC_SETFLAGS);
	refuse_request(filter, FS_IOC32_SETFLAGS);
	refuse_request(filter, FS_IOC_FSSETXATTR);
	refuse_request(filter, FS_IOC_SETVERSION);
	refuse_names(filter, calls_refused_outside, EPERM);
	refuse_names(filter, calls_absent_outside, ENOSYS);
	refuse_names(filter, calls_unsupported_outside, EOPNOTSUPP);
	refuse_numbers(filter, calls_unsupported_outside_numbers, EOPNOTSUPP);
}

/*
 * Refuse NUMBER when it is about one process (argument 0 is KIND), and this is the
 * worker (argument 1).
 */
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
 * Protect the scheduling of the worker. It runs as the same user as its commands, so
 * the kernel would let a command take the processor from the worker. Then nobody would
 * watch the limits and the deadline.
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
	/*
	 * kill(0) reaches only the own process group. Signal 0 only asks whether a
	 * process exists.
	 */
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

/* Print the names of calls by number, for the sentences. */
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

/*
 * Print the filter of every process of a cell. OUTSIDE: the cell has no namespaces of
 * its own.
 */
static void make_filter(const char *name, bool outside)
{
	struct filter filter = {0};

	refuse_names(&filter, calls_refused, EPERM);
	refuse_names(&filter, calls_explained, FILTER_EXPLAIN);
	refuse_numbers(&filter, calls_refused_numbers, EPERM);
	refuse_names(&filter, calls_absent, ENOSYS);
	/*
	 * The flags of clone3 lie in memory, where no filter can look. The C library
	 * falls back.
	 */
	filter_answer(&filter, CALL_CLONE3, ENOSYS);
	refuse_arguments(&filter);
	allow_personalities(&filter);
	if (outside) {
		refuse_outside(&filter);
	} else {
		allow_families(&filter);
		refuse_worker(&filter);
		/*
		 * Refused at L3 only: at L2 the worker needs it to read paths, and
		 * Landlock limits it to processes of the cell.
		 */
		filter_answer(&filter, SCMP_SYS(process_vm_readv), EPERM);
	}
	filter_print(&filter, name, true);
}

/*
 * Print the second filter of programs (sandbox_program_filter). The first filter has
 * already handled other architectures.
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

/* Answer calls that make a device as if they did; the kernel refuses them to every cell. */
static void pretend_devices(struct filter *filter, int number, unsigned mode_index)
{
	answer_when(filter, number, mode_index, S_IFMT, S_IFCHR, FILTER_PRETEND);
	answer_when(filter, number, mode_index, S_IFMT, S_IFBLK, FILTER_PRETEND);
}

/* Print the second filter of programs that take themselves for root, in a sealed cell. */
static void make_root_filter(const char *name)
{
	/* Things that a process does with its capabilities before it becomes another user. */
	static const uint32_t rights[] = {PR_SET_KEEPCAPS, PR_CAPBSET_DROP,
					  PR_SET_SECUREBITS};
	struct filter filter = {0};

	filter_answer(&filter, CALL_OPENAT2, ENOSYS);
	refuse_names(&filter, calls_pretended, FILTER_PRETEND);
	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		answer_when(&filter, SCMP_SYS(prctl), 0, ALL_BITS, rights[i],
			    FILTER_PRETEND);
	/* useradd and login go on only without an audit in the kernel. */
	filter_add_test(&filter, SCMP_SYS(socket),
			&(struct filter_test){
				.first = {CONDITION_EQUALS, 0, ALL_BITS, AF_NETLINK},
				.second = {CONDITION_EQUALS, 2, ALL_BITS, NETLINK_AUDIT},
				.answer = EPROTONOSUPPORT,
			});
	pretend_devices(&filter, SCMP_SYS(mknodat), 2);
#if defined(__x86_64__)
	pretend_devices(&filter, SCMP_SYS(mknod), 1);
#endif
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
	make_root_filter("program_root_table");
	return 0;
}
