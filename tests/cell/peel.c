/*
 * peel: takes one wall of a cell away, or lets one call of its set-up fail, from outside:
 * it traces the program until the command of the cell begins. The program has no switch
 * for it, so what is played with is the very program that users get.
 *
 *   peel walls                           the walls, one a line
 *   peel without WALL PROGRAM…           become PROGRAM, whose cells lack that wall
 *   peel calls FILE PROGRAM…             become PROGRAM, and write each call of a set-up
 *                                        into FILE: its role, number, first and
 *                                        third argument, and the path of an openat;
 *                                        a message that is a wish (for a group, or that
 *                                        a call comes) counts as number 1046
 *   peel fail ROLE NUMBER NTH ERRNO PROGRAM…
 *                                        become PROGRAM, whose NTH such call fails
 *   peel kill WHOM NTH PROGRAM…          become PROGRAM, and kill WHOM (front, worker, all) when
 *                                        a worker that serves a call begins the NTH step that
 *                                        changes a file, a folder or a journal
 */
#include "peel.h"

#include "process/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PROCESSES_MAX = 256,
	USAGE = 2,
	/*
	 * Added to a wish's number: whether one is sent is a matter of time. One that says that a
	 * call comes, a header alone, does not arrive, so that its reader reads as often each time.
	 */
	WISHES = 1000,
};

static const char *const role_names[] = {"front",  "front",  "mapping", "anchor",
					 "helper", "worker", "command"};

struct tracer {
	struct process processes[PROCESSES_MAX];
	const struct wall *wall; /* without */
	FILE *calls;             /* calls */
	const char *role;        /* fail */
	long number, nth, code;
	const char *whom; /* kill */
	pid_t front;
	dev_t device; /* of the program */
	ino_t inode;
	bool leaving; /* the command has begun */
};

static void die(const char *what)
{
	(void)fprintf(stderr, "peel: %s: %s\n", what, strerror(errno));
	exit(USAGE);
}

bool peel_read(const struct process *process, unsigned long address, void *bytes, size_t size)
{
	struct iovec here = {bytes, size}, there = {(void *)address, size};

	return process_vm_readv(process->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* As much of the text at ADDRESS as fits, without blanks. */
static void peel_text(const struct process *process, unsigned long address, char *text,
		      size_t size)
{
	size_t at = 0;

	while (at + 1 < size && peel_read(process, address + at, &text[at], 1) &&
	       text[at] > ' ')
		at++;
	text[at] = '\0';
}

bool peel_text_is(const struct process *process, unsigned long address, const char *text)
{
	char found[128];
	size_t size = strlen(text) + 1;

	return size <= sizeof(found) && peel_read(process, address, found, size) &&
	       memcmp(found, text, size) == 0;
}

/* By ptrace, which also writes where the program itself only reads. */
void peel_write_word(const struct process *process, unsigned long address, unsigned long word)
{
	(void)ptrace(PTRACE_POKEDATA, process->pid, address, word);
}

void peel_write(const struct process *process, unsigned long address, const void *bytes,
		size_t size)
{
	for (size_t at = 0; at < size; at += sizeof(long)) {
		unsigned long word;
		memcpy(&word, (const char *)bytes + at, sizeof(word));
		peel_write_word(process, address + at, word);
	}
}

unsigned long peel_stack(const struct process *process)
{
	return (unsigned long)ptrace(PTRACE_PEEKUSER, process->pid,
				     offsetof(struct user_regs_struct, rsp), 0);
}

void peel_argument(struct process *process, int index, unsigned long value)
{
	static const size_t places[] = {
		offsetof(struct user_regs_struct, rdi),
		offsetof(struct user_regs_struct, rsi),
		offsetof(struct user_regs_struct, rdx),
		offsetof(struct user_regs_struct, r10),
		offsetof(struct user_regs_struct, r8),
		offsetof(struct user_regs_struct, r9),
	};

	process->arguments[index] = value;
	(void)ptrace(PTRACE_POKEUSER, process->pid, places[index], value);
}

void peel_answer(struct process *process, long answer)
{
	process->answered = true;
	process->answer = answer;
	(void)ptrace(PTRACE_POKEUSER, process->pid,
		     offsetof(struct user_regs_struct, orig_rax), -1L);
}

static struct process *process_find(struct tracer *tracer, pid_t pid)
{
	struct process *empty = NULL;

	for (size_t i = 0; i < PROCESSES_MAX; i++) {
		if (tracer->processes[i].pid == pid)
			return &tracer->processes[i];
		if (tracer->processes[i].pid == 0 && empty == NULL)
			empty = &tracer->processes[i];
	}
	if (empty == NULL) {
		errno = EMFILE;
		die("processes");
	}
	*empty = (struct process){.pid = pid, .fd = -1};
	return empty;
}

/* What a new process is, by who made it and how. */
static enum role role_of(const struct process *parent)
{
	unsigned long flags = parent->number == SYS_clone ? parent->arguments[0] : 0;

	switch (parent->role) {
	case ROLE_FRONT:
	case ROLE_STARTER:
		if ((parent->spaces & CLONE_NEWUSER) != 0)
			return (parent->spaces & CLONE_NEWNS) != 0 ? ROLE_ANCHOR
								   : ROLE_MAPPING;
		return (flags & CLONE_VM) != 0 && (flags & CLONE_THREAD) == 0
			       ? ROLE_STARTER
			       : ROLE_FRONT;
	case ROLE_ANCHOR:
		return (parent->spaces & CLONE_NEWNS) != 0 ? ROLE_WORKER : ROLE_HELPER;
	default:
		return ROLE_COMMAND;
	}
}

static void resume(struct process *process, int number)
{
	(void)ptrace(PTRACE_SYSCALL, process->pid, 0, number);
}

static void leave(struct tracer *tracer)
{
	tracer->leaving = true;
	for (size_t i = 0; i < PROCESSES_MAX; i++) {
		if (tracer->processes[i].pid != 0)
			(void)ptrace(PTRACE_INTERRUPT, tracer->processes[i].pid, 0, 0);
	}
}

/* What the front's message of one part holds, a wish; 0: it is none. */
static size_t wish_size(const struct process *process)
{
	struct msghdr message;
	struct iovec part;

	if (process->role != ROLE_FRONT || process->number != SYS_sendmsg ||
	    !peel_read(process, process->arguments[1], &message, sizeof(message)) ||
	    message.msg_iovlen != 1 ||
	    !peel_read(process, (unsigned long)message.msg_iov, &part, sizeof(part)))
		return 0;
	return part.iov_len;
}

/* Does it change what lies on a disk? */
static bool is_step(const struct process *process)
{
	switch (process->number) {
	case SYS_openat:
		return (process->arguments[2] & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0;
	case SYS_write:
	case SYS_pwrite64:
	case SYS_writev:
	case SYS_ftruncate:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_fchmod:
	case SYS_fchown:
	case SYS_fsetxattr:
	case SYS_linkat:
	case SYS_symlinkat:
	case SYS_mkdirat:
	case SYS_renameat:
	case SYS_renameat2:
	case SYS_unlinkat:
		return true;
	default:
		return false;
	}
}

static void kill_them(const struct tracer *tracer, const struct process *worker)
{
	if (strcmp(tracer->whom, "worker") == 0)
		(void)kill(worker->pid, SIGKILL);
	else if (strcmp(tracer->whom, "front") == 0)
		(void)kill(tracer->front, SIGKILL);
	else
		for (size_t i = 0; i < PROCESSES_MAX; i++) {
			if (tracer->processes[i].pid != 0)
				(void)kill(tracer->processes[i].pid, SIGKILL);
		}
}

static void call_begins(struct tracer *tracer, struct process *process)
{
	const unsigned long *a = process->arguments;
	size_t wish = wish_size(process);
	long number = process->number + (wish ? WISHES : 0);

	process->spaces = process->number == SYS_clone ? a[0] : 0;
	if (tracer->calls != NULL && !tracer->leaving) {
		char path[128] = "";
		if (process->number == SYS_openat)
			peel_text(process, a[1], path, sizeof(path));
		(void)fprintf(tracer->calls, "%s %ld %lu %lu %s\n",
			      role_names[process->role], number, a[0], a[2], path);
	}
	if (tracer->role != NULL && number == tracer->number &&
	    strcmp(role_names[process->role], tracer->role) == 0 && --tracer->nth == 0)
		peel_answer(process, -tracer->code);
	else if (wish == FRAME_HEADER && tracer->wall == NULL && tracer->whom == NULL)
		peel_answer(process, FRAME_HEADER);
	else if (tracer->wall != NULL)
		tracer->wall->remove(process);
	if (tracer->whom != NULL && process->serves && is_step(process) &&
	    --tracer->nth == 0)
		kill_them(tracer, process);
	/* An ordinary user's tracer reads no memory of who hides it. */
	if (!process->answered && geteuid() != 0)
		peel_keep_dumpable(process);
}

static void call_stop(struct tracer *tracer, struct process *process)
{
	struct user_regs_struct r;
	unsigned char info[128] = {0};

	(void)ptrace((enum __ptrace_request)PTRACE_GET_SYSCALL_INFO, process->pid,
		     sizeof(info), info);
	if (info[0] == PTRACE_SYSCALL_INFO_ENTRY) {
		(void)ptrace(PTRACE_GETREGS, process->pid, 0, &r);
		const unsigned long arguments[] = {r.rdi, r.rsi, r.rdx,
						   r.r10, r.r8,  r.r9};
		process->number = (long)r.orig_rax;
		memcpy(process->arguments, arguments, sizeof(arguments));
		call_begins(tracer, process);
	} else if (info[0] == PTRACE_SYSCALL_INFO_EXIT) {
		if (process->answered)
			(void)ptrace(PTRACE_POKEUSER, process->pid,
				     offsetof(struct user_regs_struct, rax),
				     process->answer);
		else if (process->number == SYS_openat && process->wants_fd)
			process->fd =
				(int)ptrace(PTRACE_PEEKUSER, process->pid,
					    offsetof(struct user_regs_struct, rax), 0);
		/*
		 * A worker is sent nothing but calls. One whose view has more than the cell's is
		 * made by a process of its own.
		 */
		if (process->role > ROLE_ANCHOR && process->number == SYS_recvmsg &&
		    (long)ptrace(PTRACE_PEEKUSER, process->pid,
				 offsetof(struct user_regs_struct, rax), 0) > 0)
			process->serves = true;
		process->answered = process->wants_fd = false;
	}
}

static void new_process(struct tracer *tracer, struct process *parent)
{
	unsigned long pid = 0;

	(void)ptrace(PTRACE_GETEVENTMSG, parent->pid, 0, &pid);
	struct process *child = process_find(tracer, (pid_t)pid);
	child->role = role_of(parent);
	child->known = true;
	if (child->stopped)
		resume(child, 0);
}

/*
 * The first exec is the program's; one of another program is the command's. A whole run has
 * commands before the call that is to be killed.
 */
static void program_changes(struct tracer *tracer, const struct process *process)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->pid);
	if (stat(path, &st) < 0)
		die(path);
	if (tracer->inode == 0) {
		tracer->device = st.st_dev;
		tracer->inode = st.st_ino;
	} else if (tracer->whom == NULL &&
		   (tracer->device != st.st_dev || tracer->inode != st.st_ino)) {
		leave(tracer);
	}
}

static void stop(struct tracer *tracer, struct process *process, int status)
{
	int number = WSTOPSIG(status), event = status >> 16, deliver = 0;

	if (number == (SIGTRAP | 0x80)) {
		call_stop(tracer, process);
	} else if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
		   event == PTRACE_EVENT_VFORK) {
		new_process(tracer, process);
	} else if (event == PTRACE_EVENT_EXEC) {
		program_changes(tracer, process);
	} else if (event == PTRACE_EVENT_STOP) {
		if (!process->known) {
			process->stopped = true;
			return;
		}
		if (number != SIGTRAP && !tracer->leaving) {
			(void)ptrace(PTRACE_LISTEN, process->pid, 0, 0);
			return;
		}
	} else {
		deliver = number;
	}
	if (tracer->leaving && !process->answered) {
		(void)ptrace(PTRACE_DETACH, process->pid, 0, deliver);
		process->pid = 0;
		return;
	}
	resume(process, deliver);
}

static void follow(struct tracer *tracer)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		struct process *process = process_find(tracer, pid);
		if (WIFSTOPPED(status))
			stop(tracer, process, status);
		else
			process->pid = 0;
	}
	if (tracer->calls != NULL)
		(void)fclose(tracer->calls);
}

/*
 * The caller stays who it is for its own caller; the tracer is a stranger, whom it never
 * waits for.
 */
static void trace_me(struct tracer *tracer)
{
	const unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |
				      PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
				      PTRACE_O_TRACEEXEC;
	int ready[2];
	char byte;
	pid_t traced = getpid(), child;

	if (pipe2(ready, O_CLOEXEC) < 0)
		die("pipe");
	/* Where Yama lets parents alone trace. */
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	child = fork();
	if (child < 0)
		die("fork");
	if (child > 0) {
		(void)close(ready[1]);
		(void)waitpid(child, NULL, 0);
		if (read(ready[0], &byte, 1) != 1)
			exit(USAGE);
		(void)close(ready[0]);
		return;
	}
	if (fork() != 0)
		_exit(0);
	(void)setsid();
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(open("/dev/null", O_RDWR | O_CLOEXEC), fd);
	struct process *first = process_find(tracer, traced);
	tracer->front = traced;
	*first = (struct process){.pid = traced, .fd = -1, .known = true};
	if (ptrace(PTRACE_SEIZE, traced, 0, options) < 0 ||
	    ptrace(PTRACE_INTERRUPT, traced, 0, 0) < 0 || write(ready[1], "r", 1) != 1)
		_exit(USAGE);
	follow(tracer);
	_exit(0);
}

static const struct wall *wall_find(const char *name)
{
	for (const struct wall *wall = peel_walls; wall->name != NULL; wall++) {
		if (strcmp(wall->name, name) == 0)
			return wall;
	}
	errno = ENOENT;
	die(name);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct tracer tracer;
	char **program = NULL;

	if (argc == 2 && strcmp(argv[1], "walls") == 0) {
		for (const struct wall *wall = peel_walls; wall->name != NULL; wall++)
			(void)printf("%s\t%s\t%s\n", wall->name, wall->what,
				     wall->closed != NULL ? wall->closed : "open");
		return 0;
	}
	if (argc > 3 && strcmp(argv[1], "without") == 0) {
		tracer.wall = wall_find(argv[2]);
		program = argv + 3;
	} else if (argc > 3 && strcmp(argv[1], "calls") == 0) {
		tracer.calls = fopen(argv[2], "we");
		if (tracer.calls == NULL)
			die(argv[2]);
		program = argv + 3;
	} else if (argc > 6 && strcmp(argv[1], "fail") == 0) {
		tracer.role = argv[2];
		tracer.number = strtol(argv[3], NULL, 0);
		tracer.nth = strtol(argv[4], NULL, 0);
		tracer.code = strtol(argv[5], NULL, 0);
		program = argv + 6;
	} else if (argc > 4 && strcmp(argv[1], "kill") == 0) {
		tracer.whom = argv[2];
		tracer.nth = strtol(argv[3], NULL, 0);
		program = argv + 4;
	} else {
		(void)fprintf(stderr, "peel: see the head of peel.c\n");
		return USAGE;
	}
	/* A sanitizer's look for leaks would itself be a tracer. */
	(void)setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
	(void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	trace_me(&tracer);
	(void)execvp(program[0], program);
	die(program[0]);
	return USAGE;
}
