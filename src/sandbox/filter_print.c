/* filter_print: instructions of the kernel's packet filter; see filter_print.h. */
#include "sandbox/filter_print.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "sandbox/filter_calls.h"

#if defined(__x86_64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system-call filter is not written for this architecture"
#endif

enum {
	X32_BIT = 0x40000000,
	NO_RANDOMISATION = 0x0040000, /* ADDR_NO_RANDOMIZE */
};

#define COUNT(list)  (sizeof(list) / sizeof((list)[0]))
#define REFUSE(code) (SECCOMP_RET_ERRNO | ((code)&SECCOMP_RET_DATA))
#define NUMBER       offsetof(struct seccomp_data, nr)
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

void print_instructions(const struct sock_filter *instructions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		print_instruction(&instructions[i]);
}

/* Another architecture's numbers mean other calls. */
static const struct sock_filter head_architecture[] = {
	LOAD(offsetof(struct seccomp_data, arch)),
	JUMP_EQUAL(OUR_ARCHITECTURE, 1, 0),
	ANSWER(SECCOMP_RET_KILL_PROCESS),
	LOAD(NUMBER),
	/* x32 and clone3 do not exist: its flags lie in memory, where no filter looks. */
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 1, 0),
	JUMP_EQUAL(CALL_CLONE3, 0, 1),
	ANSWER(REFUSE(ENOSYS)),
};

static const struct sock_filter head_network[] = {
	JUMP_EQUAL(SYS_socket, 4, 0), JUMP_EQUAL(SYS_personality, 0, 16),
	/* personality: the usual one, no randomisation (gdb), and the question */
	LOAD(ARGUMENT(0)), JUMP_EQUAL(0, 8, 0), JUMP_EQUAL(NO_RANDOMISATION, 7, 5),
	/* socket: UNIX, INET, INET6, and NETLINK for routes */
	LOAD(ARGUMENT(0)), JUMP_EQUAL(AF_UNIX, 5, 0), JUMP_EQUAL(AF_INET, 4, 0),
	JUMP_EQUAL(AF_INET6, 3, 0), JUMP_EQUAL(AF_NETLINK, 3, 7),
	JUMP_EQUAL(0xffffffffu, 1, 0), /* personality's question */
	ANSWER(REFUSE(EPERM)), ANSWER(SECCOMP_RET_ALLOW), LOAD(ARGUMENT(2)),
	JUMP_EQUAL(0 /* NETLINK_ROUTE */, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
	ANSWER(REFUSE(EPERM)), ANSWER(REFUSE(EXPLAINED)), /* a socket of another family */
};

/* Without a network of its own: sockets are the list's. */
static const struct sock_filter head_outside[] = {
	JUMP_EQUAL(SYS_personality, 0, 6),
	LOAD(ARGUMENT(0)),
	JUMP_EQUAL(0, 3, 0),
	JUMP_EQUAL(NO_RANDOMISATION, 2, 0),
	JUMP_EQUAL(0xffffffffu, 1, 0),
	ANSWER(REFUSE(EPERM)),
	ANSWER(SECCOMP_RET_ALLOW),
};

void print_head(bool outside)
{
	print_instructions(head_architecture, COUNT(head_architecture));
	if (outside)
		print_instructions(head_outside, COUNT(head_outside));
	else
		print_instructions(head_network, COUNT(head_network));
}
