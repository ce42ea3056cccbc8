/*
 * walls_alone [-n COUNT | -w] PROGRAM [ARG…]: what a cell costs without Glovebox around it. The
 * same calls of the kernel in the same two processes, with a view written down here: no
 * configuration, no role, no policy, no call, no output carried. Run in the workspace. What a
 * cold start takes beyond this is ours; this is the walls' own price. With -n so many at once in
 * one cell; prints the microseconds from the first worker's making to the last one's end. With -w
 * one after the other, each in a worker that waits for it: a byte on standard input starts one,
 * its exit code is a byte on standard output, the end of the input ends all.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/kernel.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"

enum { ENTRIES_MAX = 64, TMP_MODE = 01777, PROCESSES = 512 };

struct walled {
	char workspace[4096];
	size_t count;      /* of workers at once; 0: one, and its exit code */
	int asks, answers; /* -w: who asks; -1: nobody */
	struct sandbox_identity identity;
	struct view_entry entries[ENTRIES_MAX];
	struct view view;
};

static struct view_entry *add(struct walled *walled, enum view_kind kind,
			      const char *path, const char *source)
{
	struct view_entry *entry = &walled->entries[walled->view.count++];

	*entry = (struct view_entry){
		.kind = kind,
		.path = path,
		.source = source,
		.fd = -1,
		.optional = kind == VIEW_TREE,
		.mode = 0755,
	};
	return entry;
}

static void describe(struct walled *walled)
{
	static const char *const links[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64"};
	static const char *const trees[] = {"/usr", "/opt", "/etc",
					    "/sys/devices/system/cpu"};
	static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					      "/dev/random", "/dev/urandom", "/dev/tty"};
	static const char *const masks[] = {"/etc/shadow", "/etc/shadow-", "/etc/gshadow",
					    "/etc/gshadow-", "/etc/machine-id"};
	static const char *const memories[] = {"/tmp", "/dev/shm", "/home/glovebox"};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		char *target = malloc(64);
		(void)snprintf(target, 64, "usr%s", links[i]);
		(void)add(walled, VIEW_LINK, links[i], target);
	}
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		(void)add(walled, VIEW_TREE, trees[i], trees[i]);
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		(void)add(walled, VIEW_DEVICE, devices[i], devices[i]);
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
		(void)add(walled, VIEW_MASK, masks[i], NULL);
	for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
		struct view_entry *memory = add(walled, VIEW_MEMORY, memories[i], NULL);
		memory->mode = TMP_MODE;
		memory->size = 1 << 30;
	}
	(void)add(walled, VIEW_TEXT, "/etc/passwd", "root:x:0:0::/:/bin/sh\n");
	(void)add(walled, VIEW_TEXT, "/etc/group", "root:x:0:\n");
	(void)add(walled, VIEW_TERMINALS, "/dev/pts", NULL);
	(void)add(walled, VIEW_PROCESSES, "/proc", NULL);
}

/* The workspace, as the cell's user sees it. */
static bool show_workspace(struct walled *walled, struct sandbox_mapping *mapping,
			   struct err *err)
{
	struct view_entry *entry =
		add(walled, VIEW_TREE, walled->workspace, walled->workspace);
	struct stat st;

	entry->writable = true;
	if (stat(".", &st) < 0)
		return err_set(err, errno, "the workspace: %s", strerror(errno));
	sandbox_identity(&st, &walled->identity);
	if (!walled->identity.map_root)
		return true;
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	entry->detached = true;
	return sandbox_open_mapping(&walled->identity, mapping, err) &&
	       sandbox_copy_tree(here, mapping->fd, &entry->fd, err);
}

static _Noreturn void complain(const struct err *err)
{
	(void)fprintf(stderr, "walls_alone: %s\n", err->text);
	_exit(125);
}

/* The child's part of a start, in memory that is its parent's. */
static _Noreturn void become(bool silent, char **argv)
{
	bool asks;
	const struct sock_fprog *filter =
		sandbox_program_filter(SANDBOX_SEALED, false, false, &asks);

	for (int fd = 0; silent && fd < 3; fd++) {
		(void)close(fd);
		(void)open("/dev/null", O_RDWR);
	}
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) == 0)
		(void)execvp(argv[0], argv);
	_exit(127);
}

static _Noreturn void worker(const struct walled *walled, int answer, char **argv)
{
	const char *const writable[] = {walled->workspace, "/tmp", "/dev/shm",
					"/home/glovebox", NULL};
	const struct walls walls = {.level = SANDBOX_SEALED,
				    .rules = -1,
				    .writable = writable,
				    .processes = PROCESSES};
	struct reach reach;
	struct err err;
	unsigned char code = 0;
	int status = 0;

	(void)signal(SIGCHLD, SIG_DFL);
	if (!sandbox_enter(&walls, &reach, &err))
		complain(&err);
	if (chdir(walled->workspace) < 0)
		_exit(1);
	/* Nobody asks any more: the front is told, and ends all. */
	if (walled->asks >= 0 && read(walled->asks, &code, 1) != 1) {
		(void)!write(answer, &code, 1);
		_exit(0);
	}
	/* What a start is. NOLINTNEXTLINE(clang-analyzer-security.*) */
	pid_t pid = vfork();
	if (pid == 0)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Vfork): it stays in the kernel */
		become(walled->asks >= 0, argv);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	code = WIFEXITED(status) ? (unsigned char)WEXITSTATUS(status) : 1;
	(void)!write(walled->asks >= 0 ? walled->answers : answer, &code, 1);
	_exit(0);
}

static void clone_worker(const struct walled *walled, int answer, char **argv)
{
	struct pollfd ended = {.fd = -1, .events = POLLIN};
	struct err err;
	pid_t pid;

	if (!sandbox_clone_worker(SANDBOX_SEALED, &pid, &ended.fd, &err))
		complain(&err);
	if (pid == 0)
		worker(walled, answer, argv);
	if (walled->asks >= 0)
		(void)poll(&ended, 1, -1);
	(void)close(ended.fd);
}

static _Noreturn void anchor(struct walled *walled, struct sandbox_network *network,
			     int front, int answer, char **argv)
{
	const struct sandbox_limits limits = {.processes = 4096,
					      .file_size = 4ULL << 30,
					      .open_files = 4096};
	struct err err;
	struct reach reach;
	const int keep[] = {walled->asks, walled->answers, answer};
	const bool asked = walled->asks >= 0;
	int rules;

	/* Workers are reaped by the kernel. */
	(void)signal(SIGCHLD, SIG_IGN);
	if (!sandbox_become(SANDBOX_SEALED, &walled->identity, front, &err) ||
	    !sandbox_build(SANDBOX_SEALED, &walled->view, &rules, &err) ||
	    !sandbox_join(network, &err) ||
	    !sandbox_settle(SANDBOX_SEALED, &limits, asked ? keep : keep + 2,
			    asked ? 3 : 1, false, &reach, &err))
		complain(&err);
	if (walled->count > 0)
		(void)!write(answer, "", 1);
	for (size_t i = 0; i == 0 || walled->asks >= 0 || i < walled->count; i++)
		clone_worker(walled, answer, argv);
	for (;;)
		(void)pause();
}

/* The codes of all but the first byte, which says that it begins; 0 when all are. */
static unsigned char time_all(int answers, size_t count)
{
	unsigned char code, worst = 0;

	if (read(answers, &code, 1) != 1)
		return 125;
	int64_t began = clock_now_us();
	for (size_t i = 0; i < count; i++) {
		if (read(answers, &code, 1) != 1)
			return 125;
		worst = code > worst ? code : worst;
	}
	(void)printf("%" PRId64 "\n", clock_now_us() - began);
	return worst;
}

int main(int argc, char **argv)
{
	static struct walled walled = {.asks = -1, .answers = -1};
	struct sandbox_mapping mapping = {.fd = -1};
	struct sandbox_network network;
	struct err err;
	unsigned char code = 125;
	int pidfd = -1, ends[2];
	pid_t pid;

	walled.view.entries = walled.entries;
	if (argc > 3 && strcmp(argv[1], "-n") == 0) {
		walled.count = strtoul(argv[2], NULL, 10);
		argc -= 2;
		argv += 2;
	} else if (argc > 2 && strcmp(argv[1], "-w") == 0) {
		walled.asks = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		walled.answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		argc--;
		argv++;
	}
	if (argc < 2 || getcwd(walled.workspace, sizeof(walled.workspace)) == NULL)
		return 2;
	describe(&walled);
	if (!show_workspace(&walled, &mapping, &err))
		complain(&err);
	int front = kernel_pidfd_open(getpid());
	if (pipe2(ends, O_CLOEXEC) < 0 || !sandbox_clone(SANDBOX_SEALED, &walled.identity, 0,
							 -1, &network, &pid, &pidfd, &err))
		complain(&err);
	if (pid == 0)
		anchor(&walled, &network, front, ends[1], argv + 1);
	(void)close(ends[1]);
	/* The answer, before the teardown. */
	if (walled.count > 0)
		code = time_all(ends[0], walled.count);
	else if (read(ends[0], &code, 1) != 1)
		code = 125;
	(void)kill(pid, SIGKILL);
	return code;
}
