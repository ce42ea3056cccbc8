/*
 * program: starts one program: finds its file, prepares the child process, and explains
 * a failed start. Also runs lists of programs, and makes processes ahead of their
 * start.
 */

#include "process/program.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROGRAM_PLACED_MAX = 2 };

enum {
	/*
	 * The child makes a dozen system calls on this stack. Every page of it costs a
	 * page fault at every start.
	 */
	PROGRAM_CHILD_STACK = 16 << 10,
	PROGRAM_MORE_FDS_MAX = 8,
};

/* How far a copy with a body is; a futex word. */
enum copy_turn { TURN_MAKING, TURN_GO };

enum child_step {
	STEP_DESCRIPTORS = 1,
	STEP_FOLDER,
	STEP_FILTER,
	STEP_SESSION,
	STEP_EXEC
};

struct program_child {
	const struct program_start *start;
	struct program_terms terms; /* those of START, or all zero */
	const char *folder;         /* that of START as the program sees it; or NULL */
	/* names to try, each ended by NUL; the last one is empty */
	const char *candidates;
	int keep[PROGRAM_MORE_FDS_MAX]; /* descriptors that stay, ascending */
	size_t keep_count;
	volatile enum child_step failed;
	volatile int code;
	/* in the descriptor table, which is shared until child_own_fds */
	volatile int listener;
	int turn; /* enum copy_turn */
	pid_t parent;
};

/*
 * The steps of the child process before its exec. Until the exec the child shares our
 * memory, as with vfork, so nothing is copied, however large we are. It runs on a stack
 * of its own, and leaves the reason of a failure in the shared memory.
 */

enum {
	CALL_LANDLOCK_RESTRICT = 446, /* the headers of the C library may not have this */
	CHILD_FAILED = 127,           /* never reported: `code` has the reason */
	COPY_LOOK_MS = 10,            /* then check whether the child is still alive */
};

/* The sanitizers do not know the stack of the child, so their code must not run in it. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

/*
 * Call the kernel directly. The C library's function leaves out two signals that it
 * uses itself, and a caller may have set them to be ignored. Zero is the default
 * action.
 */
IN_CHILD static void reset_signals(void)
{
	static const struct {
		unsigned long handler, flags, restorer, mask;
	} plain = {0};

	for (int number = 1; number < _NSIG; number++)
		(void)syscall(SYS_rt_sigaction, number, &plain, NULL, sizeof(plain.mask));
}

int program_ends_open(sigset_t *before)
{
	struct sigaction plain;
	sigset_t child;

	/* An inherited SIG_IGN would throw the exit status away. */
	memset(&plain, 0, sizeof(plain));
	plain.sa_handler = SIG_DFL;
	(void)sigaction(SIGCHLD, &plain, NULL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, before);
	return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

void program_plain_signals(void)
{
	sigset_t none;

	reset_signals();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Put the descriptors in their places; *COUNT is the number of places. A descriptor
 * that lies in the place of another one is first duplicated to a number above the
 * places.
 */
IN_CHILD static bool child_place_fds(const struct program_start *start, int *count)
{
	int from[3 + PROGRAM_PLACED_MAX];
	int all = 3;

	while (start->placed_fds != NULL && all < 3 + PROGRAM_PLACED_MAX &&
	       start->placed_fds[all - 3] >= 0)
		all++;
	*count = all;
	for (int i = 0; i < all; i++) {
		from[i] = i < 3 ? start->fds[i] : start->placed_fds[i - 3];
		if (from[i] < 0)
			from[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (from[i] >= 0 && from[i] < all && from[i] != i)
			from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, all);
		if (from[i] < 0)
			return false;
	}
	for (int i = 0; i < all; i++) {
		if (from[i] == i ? fcntl(i, F_SETFD, 0) < 0 : dup2(from[i], i) < 0)
			return false;
	}
	return true;
}

IN_CHILD static bool child_close_others(const struct program_child *child, int placed)
{
	unsigned from = (unsigned)placed;

	for (size_t i = 0; i < child->keep_count; i++) {
		unsigned kept = (unsigned)child->keep[i];

		if (kept > from && close_range(from, kept - 1, 0) < 0)
			return false;
		if (fcntl(child->keep[i], F_SETFD, 0) < 0)
			return false;
		from = kept + 1;
	}
	return close_range(from, UINT_MAX, 0) == 0;
}

/* Try each candidate as the shell does: go on when a file is missing or not permitted. */
IN_CHILD static int child_exec(const struct program_child *child)
{
	/* execve takes them without const and changes nothing. */
	union {
		const char *const *given;
		char *const *taken;
	} argv = {child->start->argv}, environment = {child->start->environment};
	int code = ENOENT;

	for (const char *at = child->candidates; *at; at += strlen(at) + 1) {
		(void)execve(at, argv.taken, environment.taken);
		if (errno == EACCES)
			code = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			return errno;
	}
	return code;
}

/*
 * Stop sharing the descriptor table. unshare would do the same, but many containers
 * forbid it.
 */
IN_CHILD static bool child_own_fds(void)
{
	return close_range(UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0;
}

/*
 * Install the filter. Its listener appears in the process that installs it; because the
 * child still shares our descriptor table, we get the listener as well. Then stop
 * sharing the table.
 */
IN_CHILD static bool child_listen(struct program_child *child)
{
	long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, child->terms.filter);

	if (listener < 0)
		return false;
	child->listener = (int)listener;
	return child_own_fds();
}

/* Do the steps that need descriptors which are closed later. */
IN_CHILD static bool child_enter_domain(struct program_child *child)
{
	if (child->terms.ruleset > 0 &&
	    syscall(CALL_LANDLOCK_RESTRICT, child->terms.ruleset, 0) < 0)
		return false;
	return child->terms.answer == NULL || child_listen(child);
}

IN_CHILD static bool child_wall_in(const struct program_child *child)
{
	const struct program_terms *terms = &child->terms;

	return terms->filter == NULL || terms->answer != NULL ||
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, terms->filter) == 0;
}

/*
 * Used on both sides: sleep while WORD is VALUE, for at most MOST (NULL: without
 * limit).
 */
static IN_CHILD void program_child_rest(int *word, int value, const struct timespec *most)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, most, NULL, 0);
}

/* The copy is made and goes on by itself: wake the other side. */
static IN_CHILD void program_child_go(struct program_child *child)
{
	__atomic_store_n(&child->turn, TURN_GO, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &child->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Do all steps that are possible before the program is known. */
IN_CHILD static bool child_prepare(struct program_child *child)
{
	const struct program_start *start = child->start;

	if (!start->signals_are_plain)
		reset_signals();
	/*
	 * A session, and so a group, of its own: the kernel divides the processor by
	 * sessions.
	 */
	child->failed = STEP_SESSION;
	if (start->is_job ? setpgid(0, 0) < 0
			  : (start->terminal || !start->joins_group) && setsid() < 0)
		return false;
	/* Our end before this call is seen by the parent, which is another one then. */
	if (start->ends_with_us &&
	    (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	     syscall(SYS_getppid) != child->parent))
		return false;
	/* Do this before any change to descriptors, which are still shared. */
	child->failed = STEP_FILTER;
	return child_enter_domain(child) && child_wall_in(child);
}

IN_CHILD static bool child_become(struct program_child *child)
{
	const struct program_start *start = child->start;
	sigset_t none;
	int placed;

	child->failed = STEP_DESCRIPTORS;
	if (!child_place_fds(start, &placed) || !child_close_others(child, placed))
		return false;
	if (start->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		return false;
	child->failed = STEP_FOLDER;
	if (child->folder && chdir(child->folder) < 0)
		return false;
	child->failed = STEP_EXEC;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (start->body != NULL) {
		program_child_go(child);
		_exit(start->body(start->context));
	}
	errno = child_exec(child);
	return false;
}

/*
 * The main function of the child, on a stack of its own in our memory. CONTEXT is its
 * struct program_child. When the function returns, the child has not become the
 * program, and `code` and `failed` are set.
 */
static IN_CHILD int program_child_main(void *context)
{
	struct program_child *child = context;

	if (child_prepare(child))
		(void)child_become(child);
	child->code = errno;
	return CHILD_FAILED;
}

/*
 * Start the child and wait until it has become the program or failed. Returns its pid,
 * or -1.
 */
static pid_t program_child_begin(struct program_child *child)
{
	__attribute__((aligned(16))) char stack[PROGRAM_CHILD_STACK];
	sigset_t all, before;
	int saved;
	pid_t pid;

	/* No handler of ours may run in the child while it shares our memory. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(program_child_main, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD |
			    (child->terms.answer != NULL ? CLONE_FILES : 0),
		    child);
	saved = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

/*
 * Like fork, but the descriptor table is shared when the filter has a listener, so that
 * we get it.
 */
static pid_t program_child_copy(struct program_child *child)
{
	static const struct timespec look = {.tv_nsec = COPY_LOOK_MS * 1000000L};
	long flags = SIGCHLD | (child->terms.answer != NULL ? CLONE_FILES : 0);
	pid_t pid;

	child->turn = TURN_MAKING;
	pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		if (child_prepare(child))
			(void)child_become(child);
		child->code = errno;
		_exit(CHILD_FAILED);
	}
	/* A child that fails before its turn sets `code`, or dies without one. */
	while (pid > 0 && __atomic_load_n(&child->turn, __ATOMIC_ACQUIRE) == TURN_MAKING) {
		siginfo_t ended = {0};

		if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    ended.si_pid == pid) {
			/* A short body may have had its turn and its end since we looked. */
			if (child->code == 0 &&
			    __atomic_load_n(&child->turn, __ATOMIC_ACQUIRE) == TURN_MAKING)
				child->code = ECHILD;
			break;
		}
		program_child_rest(&child->turn, TURN_MAKING, &look);
	}
	return pid;
}

/* The body of the process that runs a list of programs. */

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, SIGNALLED = 128 }; /* as in shells */

struct list {
	const struct program_item *items;
	size_t count;
	const char *const *environment;
};

/* Start program AT. Returns its exit code when the start fails, else 0. */
static int start_one(const struct list *list, size_t at, int in, int out, pid_t *pid)
{
	const struct program_start start = {
		.argv = list->items[at].argv,
		.environment = list->environment,
		.fds = {in, out, STDERR_FILENO},
		.signals_are_plain = true,
		.joins_group = true,
	};
	struct err err;

	if (program_start(&start, pid, &err))
		return 0;
	(void)dprintf(STDERR_FILENO, "%s\n", err.text);
	return err.code == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

static int code_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return NOT_FOUND;
	}
	return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * Run the programs from FIRST up to END (exclusive). Each reads the output of the
 * program before it. Returns the exit code of the last one.
 */
static int run_pipeline(const struct list *list, size_t first, size_t end)
{
	auto_free pid_t *pids = memory_array(end - first, sizeof(*pids));
	int in = STDIN_FILENO;
	int code = 0;

	for (size_t i = first; i < end; i++) {
		int ends[2] = {-1, -1};
		struct err err;
		bool is_last = i + 1 == end;

		if (!is_last && !fd_pipe(ends, &err)) {
			(void)dprintf(STDERR_FILENO, "%s\n", err.text);
			code = NOT_EXECUTABLE;
			break;
		}
		code = start_one(list, i, in, is_last ? STDOUT_FILENO : ends[1],
				 &pids[i - first]);
		/*
		 * Close our copy of the write end; otherwise the reader would never see
		 * the end of the stream.
		 */
		fd_close(&ends[1]);
		if (in != STDIN_FILENO)
			fd_close(&in);
		in = ends[0];
	}
	if (in > STDIN_FILENO)
		fd_close(&in);
	for (size_t i = first; i < end; i++) {
		bool is_last = i + 1 == end;
		int ended = pids[i - first] > 0 ? code_of(pids[i - first]) : code;

		if (is_last)
			code = ended;
	}
	return code;
}

static int run_list(void *context)
{
	const struct list *list = context;
	int code = 0;

	for (size_t at = 0; at < list->count;) {
		enum program_join join = list->items[at].join;
		size_t end = at + 1;

		while (end < list->count && list->items[end].join == PROGRAM_PIPE)
			end++;
		if (join == PROGRAM_AND  ? code == 0
		    : join == PROGRAM_OR ? code != 0
					 : true)
			code = run_pipeline(list, at, end);
		at = end;
	}
	return code;
}

bool program_list_start_ahead(const struct program_start *start,
			      const struct program_item *items, size_t count,
			      struct program_ahead *ahead, struct err *err)
{
	static const char *const name[] = {"the list of programs", NULL};
	struct list list = {items, count, start->environment};
	struct program_start copy = *start;

	assert(count > 0);
	copy.argv = name;
	copy.body = run_list;
	copy.context = &list;
	return program_start_ahead(&copy, ahead, err);
}

/* Lists the children of this process. */

enum { CHILDREN_TEXT = 1 << 20 };

struct child_list {
	pid_t *pids;
	size_t count;
	struct buf text;
};

static void list_read(struct child_list *list, int fd, const char *name)
{
	char *at;

	buf_clear(&list->text);
	if (!fd_read_all(fd, &list->text, name, NULL))
		return;
	at = list->text.data;
	for (long pid; (pid = strtol(at, &at, 10)) > 0;) {
		list->pids = memory_grow(list->pids, list->count + 2, sizeof(*list->pids));
		list->pids[list->count++] = (pid_t)pid;
		list->pids[list->count] = 0;
	}
}

static void list_threads(struct child_list *list)
{
	DIR *dir = opendir("/proc/self/task");

	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		char name[sizeof("/proc/self/task//children") + NAME_MAX];
		auto_close int fd = -1;

		(void)snprintf(name, sizeof(name), "/proc/self/task/%s/children",
			       entry->d_name);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			list_read(list, fd, name);
	}
	(void)closedir(dir);
}

pid_t *program_children_list(int fd)
{
	struct child_list list = {.pids = memory_alloc(sizeof(pid_t))};

	buf_init(&list.text, CHILDREN_TEXT);
	if (fd <= 0)
		list_threads(&list);
	else if (lseek(fd, 0, SEEK_SET) == 0)
		list_read(&list, fd, "children");
	buf_fini(&list.text);
	return list.pids;
}

/* Decides which processes the kernel kills first when memory runs out. */

#define FIRST "1000" /* the highest value of the kernel */

static void score_write(struct program_score *score, const char *text, bool is_own)
{
	/*
	 * If the kernel refuses, all processes keep equal values, as without this
	 * function.
	 */
	if (score != NULL && score->is_own != is_own &&
	    pwrite(score->fd, text, strlen(text), 0) > 0)
		score->is_own = is_own;
}

/*
 * Make the processes started from now on the first that the kernel kills. SCORE may be
 * NULL.
 */
static void program_score_raise(struct program_score *score)
{
	score_write(score, FIRST, false);
}

void program_score_lower(struct program_score *score)
{
	if (score != NULL)
		score_write(score, score->own, true);
}

enum { PATH_TEXT_MAX = 64 << 10 }; /* all candidates for one name */

static const char *environment_value(const char *const *environment, const char *name)
{
	size_t size = strlen(name);

	for (; environment && *environment; environment++) {
		if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
			return *environment + size + 1;
	}
	return NULL;
}

/*
 * List the files that argv[0] may mean, in order. False when they do not fit into LIST.
 */
static bool list_candidates(const struct program_start *start, struct buf *list)
{
	const char *name = start->argv[0];
	const char *path = environment_value(start->environment, "PATH");
	struct str rest, folder;

	if (!*name)
		return buf_addc(list, '\0');
	if (strchr(name, '/'))
		return buf_add(list, name, strlen(name) + 1) && buf_addc(list, '\0');
	/* as a shell without PATH does */
	rest = str_of(path ? path : "/usr/local/bin:/usr/bin:/bin");
	while (path_next_folder(&rest, &folder)) {
		if (!buf_addstr(list, folder) || !buf_addc(list, '/') ||
		    !buf_add(list, name, strlen(name) + 1))
			return false;
	}
	return buf_addc(list, '\0');
}

static int compare_ints(const void *a, const void *b)
{
	int left = *(const int *)a;
	int right = *(const int *)b;

	return (left > right) - (left < right);
}

static void keep_more(struct program_child *child, const int *more)
{
	for (; more && *more >= 0; more++) {
		assert(child->keep_count < PROGRAM_MORE_FDS_MAX);
		assert(*more > STDERR_FILENO);
		child->keep[child->keep_count++] = *more;
	}
	qsort(child->keep, child->keep_count, sizeof(int), compare_ints);
}

static bool say_failure(const struct program_child *child, struct err *err)
{
	const struct program_start *start = child->start;
	int code = child->code;

	if (child->failed == STEP_FOLDER)
		return err_set(err, ENOTDIR, "The folder %s cannot be entered: %s.",
			       start->folder, strerror(code));
	if (child->failed == STEP_SESSION)
		return err_set(err, ECHILD,
			       "%s: it could not have a session of its own: %s.",
			       start->argv[0], strerror(code));
	if (child->failed == STEP_FILTER)
		return err_set(err, ECHILD, "%s: its walls could not be set: %s.",
			       start->argv[0], strerror(code));
	if (child->failed != STEP_EXEC)
		return err_set(err, ECHILD, "%s: its descriptors could not be set up: %s.",
			       start->argv[0], strerror(code));
	switch (code) {
	case ENOENT:
	case ENOTDIR:
		if (strchr(start->argv[0], '/') && access(start->argv[0], F_OK) == 0)
			return err_set(err, ENOENT,
				       "%s exists, but the interpreter its first "
				       "line names does not.",
				       start->argv[0]);
		return err_set(err, ENOENT, "%s: command not found.", start->argv[0]);
	case EACCES:
		return err_set(err, code, "%s: not executable (permission denied).",
			       start->argv[0]);
	case ENOEXEC:
		return err_set(err, code, "%s: not a program this machine can run.",
			       start->argv[0]);
	case E2BIG:
		return err_set(err, code, "%s: its arguments and environment are too long.",
			       start->argv[0]);
	default:
		return err_set(err, code, "%s: %s.", start->argv[0], strerror(code));
	}
}

/*
 * Start the copy for a start with a body. Unlike other children it shares no memory
 * with us except this struct.
 */
static pid_t begin_copy(struct program_child *child)
{
	struct program_child *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (shared == MAP_FAILED)
		return -1;
	*shared = *child;
	pid = program_child_copy(shared);
	*child = *shared;
	(void)munmap(shared, sizeof(*shared));
	return pid;
}

static pid_t begin(struct program_child *child)
{
	program_score_raise(child->terms.score);
	return child->start->body != NULL ? begin_copy(child) : program_child_begin(child);
}

const char *program_folder(const struct program_terms *terms, const char *folder,
			   char room[PATH_MAX])
{
	const char *shown = folder;
	struct buf path;

	if (terms == NULL || terms->own == NULL || !path_within(folder, terms->own))
		return folder;
	buf_init(&path, PATH_MAX);
	if (buf_adds(&path, folder) && path_move(&path, terms->own, terms->shown)) {
		memcpy(room, path.data, path.size + 1);
		shown = room;
	}
	buf_fini(&path);
	return shown;
}

/*
 * Like program_start, but the filter of the terms may have a listener; *LISTENER is -1
 * when there is none.
 */
static bool program_start_listening(const struct program_start *start, pid_t *pid,
				    int *listener, struct err *err)
{
	struct program_child child = {.start = start, .listener = -1, .parent = getpid()};
	struct buf candidates;
	bool started = false;
	char room[PATH_MAX];
	pid_t made;

	if (start->terms != NULL)
		child.terms = *start->terms;
	if (start->folder != NULL)
		child.folder = program_folder(&child.terms, start->folder, room);
	buf_init(&candidates, PATH_TEXT_MAX);
	keep_more(&child, start->more_fds);
	if (!list_candidates(start, &candidates)) {
		buf_fini(&candidates);
		return err_set(err, ENAMETOOLONG, "%.200s: the name or PATH is too long.",
			       start->argv[0]);
	}
	child.candidates = candidates.data;
	made = begin(&child);
	if (made < 0) {
		(void)err_set(err, ECHILD, "%s: no process could be made: %s.",
			      start->argv[0], strerror(errno));
	} else if (child.code) {
		while (waitpid(made, NULL, 0) < 0 && errno == EINTR)
			;
		say_failure(&child, err);
	} else {
		*pid = made;
		started = true;
	}
	buf_fini(&candidates);
	if (started)
		*listener = child.listener;
	else if (child.listener >= 0)
		(void)close(child.listener);
	return started;
}

bool program_start(const struct program_start *start, pid_t *pid, struct err *err)
{
	int listener = -1;

	assert(start->terms == NULL || start->terms->answer == NULL);
	return program_start_listening(start, pid, &listener, err);
}

/* Starts a program with the pipes it writes to, before anybody follows it. */

static bool make_pipe(int given, int *read_end, int *child_end, struct err *err)
{
	int ends[2];

	*child_end = given;
	if (given >= 0)
		return true;
	if (!fd_pipe(ends, err))
		return false;
	*read_end = ends[0];
	*child_end = ends[1];
	return fd_set_blocking(ends[0], false, err);
}

/* Runs in a copy of this process, which ends when the program is there. */
static int start_apart(void *context)
{
	const struct program_start *start = context;
	struct err err;
	pid_t pid;

	(void)setsid();
	return program_start(start, &pid, &err) ? 0 : 1;
}

bool program_start_apart(const struct program_start *start, struct err *err)
{
	const struct program_start copy = {.argv = start->argv,
					   .environment = start->environment,
					   .folder = start->folder,
					   .fds = {-1, -1, -1},
					   .body = start_apart,
					   .context = (void *)(uintptr_t)start};
	int status = 0;
	pid_t pid;

	if (!program_start(&copy, &pid, err))
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
	       err_set(err, ENOENT, "%s cannot be started", start->argv[0]);
}

bool program_start_ahead(const struct program_start *start, struct program_ahead *ahead,
			 struct err *err)
{
	struct program_ahead made = {.pipes = {-1, -1}};
	struct program_start child = *start;

	/* Pid 1 is a worker, which reset its signals before it was ready. */
	child.signals_are_plain |= getpid() == 1;
	/*
	 * Adopt orphans, and note our other children, before the program starts. So no
	 * child of the program escapes or is taken for one of ours before the program
	 * is followed.
	 */
	if (getpid() != 1)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (getpid() != 1 && !(start->terms && start->terms->alone))
		made.others =
			program_children_list(start->terms ? start->terms->children_fd : 0);
	bool ok = make_pipe(start->fds[1], &made.pipes[0], &child.fds[1], err) &&
		  make_pipe(start->fds[2], &made.pipes[1], &child.fds[2], err);
	if (!ok)
		err->code = ECHILD; /* not a failure of the program */
	ok = ok && program_start_listening(&child, &made.pid, &made.listener, err);
	/*
	 * Close our copies of the write ends; otherwise we would never see the end of
	 * the output.
	 */
	for (int i = 1; i < 3; i++) {
		if (start->fds[i] < 0)
			fd_close(&child.fds[i]);
	}
	if (ok) {
		*ahead = made;
		return true;
	}
	fd_close(&made.pipes[0]);
	fd_close(&made.pipes[1]);
	free(made.others);
	return false;
}

bool program_ahead_lives(struct program_ahead *ahead)
{
	if (ahead->pid > 0 && waitpid(ahead->pid, NULL, WNOHANG) == 0)
		return true;
	ahead->pid = 0;
	return false;
}

void program_ahead_end(struct program_ahead *ahead)
{
	if (program_ahead_lives(ahead)) {
		(void)kill(ahead->pid, SIGKILL);
		while (waitpid(ahead->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	ahead->pid = 0;
	fd_close(&ahead->pipes[0]);
	fd_close(&ahead->pipes[1]);
	if (ahead->listener > 0)
		fd_close(&ahead->listener);
	ahead->listener = 0;
	free(ahead->others);
	ahead->others = NULL;
}
