/*
 * call: system calls by number, for the cases of the cell. It says what the kernel
 * answered: "= 3" and exit code 0, or "EPERM" and exit code 1.
 *
 *   call NUMBER ARGUMENTS…        one call; the arguments are those of front/attack_call.h
 *   call int80 NUMBER ARGUMENTS…  the same through the 32-bit gate
 *   call spaceless PROGRAM…       become PROGRAM where no namespace can be made
 *   call without NUMBER[=ERRNO],… PROGRAM…
 *                                 become PROGRAM with these calls refused (EPERM unless told)
 *   call listened PROGRAM…        become PROGRAM under a filter that has a listener already,
 *                                 as some containers have: the kernel takes no second one
 */
#include "front/attack_call.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REFUSED_MAX = 32, USAGE = 2 };

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "call: %s: %s\n", what, strerror(errno));
	exit(USAGE);
}

static long call_int80(long number, const uintptr_t *a)
{
#if defined(__x86_64__)
	long answer;

	__asm__ volatile("int $0x80"
			 : "=a"(answer)
			 : "a"(number), "b"(a[0]), "c"(a[1]), "d"(a[2])
			 : "memory", "r8", "r9", "r10", "r11");
	if (answer >= 0)
		return answer;
	errno = (int)-answer;
	return -1;
#else
	(void)number;
	(void)a;
	errno = ENOSYS;
	return -1;
#endif
}

static void refuse(const char *list)
{
	struct sock_filter program[2 * REFUSED_MAX + 2];
	unsigned short count = 0;
	char *at = (char *)(uintptr_t)list;

	program[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							offsetof(struct seccomp_data, nr));
	while (*at != '\0' && count < 2 * REFUSED_MAX) {
		unsigned number = (unsigned)strtoul(at, &at, 0);
		unsigned code = EPERM;
		if (*at == '=')
			code = (unsigned)strtoul(at + 1, &at, 0);
		at += *at == ',';
		program[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								number, 0, 1);
		program[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
								SECCOMP_RET_ERRNO | code);
	}
	program[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog filter = {count, program};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
		die("filter");
}

static void listen_first(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog filter = {1, &allow};
	long listener;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("no new privileges");
	listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			   SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
	if (listener < 0 || fcntl((int)listener, F_SETFD, 0) < 0)
		die("listener");
}

/* As the seccomp profile of a container does: clone with any flag of a namespace. */
static void refuse_spaces(void)
{
	const unsigned spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
				CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
	const struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, spaces, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	const struct sock_fprog filter = {sizeof(program) / sizeof(program[0]),
					  (struct sock_filter *)(uintptr_t)program};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
		die("filter");
}

static _Noreturn void become(char **argv)
{
	/* The leak finder of a sanitized program would want some of them for itself. */
	(void)setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
	(void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	(void)execvp(argv[0], argv);
	die(argv[0]);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "int80") == 0)
		return attack_call_make(argv + 2, call_int80);
	if (argc > 2 && strcmp(argv[1], "listened") == 0) {
		listen_first();
		(void)execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	if (argc > 3 && strcmp(argv[1], "without") == 0) {
		refuse(argv[2]);
		become(argv + 3);
	}
	if (argc > 2 && strcmp(argv[1], "spaceless") == 0) {
		refuse_spaces();
		become(argv + 2);
	}
	if (argc > 1)
		return attack_call_make(argv + 1, NULL);
	(void)fprintf(stderr, "call: see the head of call.c\n");
	return USAGE;
}
