/*
 * filter_make: a program of the build. It writes the system-call filter as a C table on
 * standard output: a hand-made head (architecture, x32, and the calls whose arguments are
 * judged together) before the list that libseccomp turns into a binary tree. With the word
 * "names" it writes the names of the calls that are explained instead.
 *
 * Everything is allowed but what reaches out of the cell, into other processes, or into
 * parts of the kernel that have no business in a build. ENOSYS where programs fall back
 * by themselves, EPERM elsewhere; EPERM by way of the worker (EXPLAINED) for what
 * deserves a sentence, since no program that needs it can do without.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system-call filter is not written for this architecture"
#endif

#define REFUSE(code) (SECCOMP_RET_ERRNO | ((code)&SECCOMP_RET_DATA))
/*
 * The C library's names end before these; numbers are the same on all our
 * architectures.
 */
enum {
	CALL_CLONE3 = 435,
	CALL_PIDFD_GETFD = 438,
	CALL_PROCESS_MADVISE = 440,
	CALL_MOUNT_SETATTR = 442,
	CALL_QUOTACTL_FD = 443,
	CALL_MEMFD_SECRET = 447,
	CALL_FCHMODAT2 = 452,
	CALL_LSM_SET_SELF_ATTR = 460,
	CALL_OPEN_TREE_ATTR = 467,
	X32_BIT = 0x40000000,
	NO_RANDOMISATION = 0x0040000,
	FILTER_MAX = 4096, /* BPF_MAXINSNS */
	/*
	 * Stands for "ask the worker" until the program is printed: the library takes the
	 * real answer only where the kernel of the build has it.
	 */
	EXPLAINED = 0xeee,
	NEW_TIME = 0x80,
};

/* Asked for on purpose, and nothing else would do: the worker is told of each. */
static const char *const explained[] = {
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
};

/* Tried in passing, by programs that have another way. */
static const char *const refused[] = {
	"name_to_handle_at",
	"nfsservctl",
	"process_vm_readv",
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
};

static const int refused_numbers[] = {
	CALL_PIDFD_GETFD,  CALL_PROCESS_MADVISE,   CALL_MOUNT_SETATTR,  CALL_QUOTACTL_FD,
	CALL_MEMFD_SECRET, CALL_LSM_SET_SELF_ATTR, CALL_OPEN_TREE_ATTR,
};

/* Programs try these and fall back when they do not exist. */
static const char *const absent[] = {"io_uring_setup", "io_uring_enter",
				     "io_uring_register"};

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

/* Refuse NUMBER unless its first argument is VALUE. */
static void refuse_unless(scmp_filter_ctx filter, int number, uint64_t value)
{
	const struct scmp_arg_cmp other = {.arg = 0,
					   .op = SCMP_CMP_NE,
					   .datum_a = value,
					   .datum_b = 0};

	check(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), number, 1, &other),
	      "a rule on a first argument");
}

static void refuse_request(scmp_filter_ctx filter, uint64_t request)
{
	/* The kernel looks at the low half only. */
	struct scmp_arg_cmp rule = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, 0xffffffffu, request);

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
	refuse_unless(filter, SCMP_SYS(socketpair), AF_UNIX);
	refuse_request(filter, TIOCSTI);
	refuse_request(filter, 0x541c /* TIOCLINUX */);
	refuse_unless(filter, SCMP_SYS(prlimit64), 0 /* oneself */);
}

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(n) \
	(offsetof(struct seccomp_data, args) + 8 * (n)) /* low half: little-endian */
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define JUMP_EQUAL(value, yes, no) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))

static void print_instruction(const struct sock_filter *instruction)
{
	unsigned value = instruction->k;

	if (instruction->code == (BPF_RET | BPF_K) && value == REFUSE(EXPLAINED))
		value = SECCOMP_RET_USER_NOTIF;
	(void)printf("\t{%u, %u, %u, 0x%xu},\n", instruction->code, instruction->jt,
		     instruction->jf, value);
}

static void print_head(void)
{
	const struct sock_filter head[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		JUMP_EQUAL(OUR_ARCHITECTURE, 1, 0), ANSWER(SECCOMP_RET_KILL_PROCESS),
		LOAD(NUMBER),
		/*
		 * x32 calls and clone3 do not exist: its flags lie in memory, where no
		 * filter looks.
		 */
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 1, 0),
		JUMP_EQUAL(CALL_CLONE3, 0, 1), ANSWER(REFUSE(ENOSYS)),
		JUMP_EQUAL(SYS_socket, 4, 0), JUMP_EQUAL(SYS_personality, 0, 16),
		/* personality: the usual one, no randomisation (gdb), and the question */
		LOAD(ARGUMENT(0)), JUMP_EQUAL(0, 8, 0), JUMP_EQUAL(NO_RANDOMISATION, 7, 5),
		/* socket: UNIX, INET, INET6, and NETLINK for routes */
		LOAD(ARGUMENT(0)), JUMP_EQUAL(AF_UNIX, 5, 0), JUMP_EQUAL(AF_INET, 4, 0),
		JUMP_EQUAL(AF_INET6, 3, 0), JUMP_EQUAL(AF_NETLINK, 3, 7),
		JUMP_EQUAL(0xffffffffu, 1, 0), /* personality's question */
		ANSWER(REFUSE(EPERM)), ANSWER(SECCOMP_RET_ALLOW), LOAD(ARGUMENT(2)),
		JUMP_EQUAL(0 /* NETLINK_ROUTE */, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(REFUSE(EPERM)),
		ANSWER(REFUSE(EXPLAINED)), /* a socket of another family */
	};

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		print_instruction(&head[i]);
}

static void print_name(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number != __NR_SCMP_ERROR && number >= 0)
		(void)printf("\t{%d, \"%s\"},\n", number, name);
}

/* The names behind the numbers, for the sentences. */
static void print_names(void)
{
	static const char *const by_argument[] = {
		"clone",   "unshare", "chmod", "fchmod", "fchmodat", "mknod",
		"mknodat", "creat",   "open",  "openat", "ioctl",    "socket",
	};

	(void)printf("/* Made by filter_make. */\n"
		     "#pragma once\n\n"
		     "static const struct explained_call {\n"
		     "\tint number;\n"
		     "\tconst char *name;\n"
		     "} explained_calls[] = {\n");
	for (size_t i = 0; i < sizeof(explained) / sizeof(explained[0]); i++)
		print_name(explained[i]);
	for (size_t i = 0; i < sizeof(by_argument) / sizeof(by_argument[0]); i++)
		print_name(by_argument[i]);
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
	for (size_t i = 0; i < count; i++)
		print_instruction(&program[i]);
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter;

	if (argc == 2 && strcmp(argv[1], "names") == 0) {
		print_names();
		return 0;
	}
	filter = seccomp_init(SCMP_ACT_ALLOW);
	if (filter == NULL) {
		(void)fprintf(stderr, "filter_make: libseccomp does not start\n");
		return 1;
	}
	/* 2: a binary tree by number, so that a call costs a handful of comparisons. */
	check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		refuse(filter, refused[i], EPERM);
	for (size_t i = 0; i < sizeof(explained) / sizeof(explained[0]); i++)
		refuse(filter, explained[i], EXPLAINED);
	for (size_t i = 0; i < sizeof(refused_numbers) / sizeof(refused_numbers[0]); i++)
		check(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused_numbers[i], 0),
		      "a call by number");
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		refuse(filter, absent[i], ENOSYS);
	refuse_arguments(filter);
	(void)printf("/* Made by filter_make. */\n"
		     "#pragma once\n\n"
		     "static const struct sock_filter filter_table[] = {\n");
	print_head();
	print_list(filter);
	(void)printf("};\n");
	seccomp_release(filter);
	return 0;
}
