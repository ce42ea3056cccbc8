/* hands: the folder of one run, and the agent's process. */

#include "front/hands/hands.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "front/interrupt.h"
#include "front/verb.h"
#include "store/database.h"
#include "tui/lent/terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRONMENTS "environments.toml"

enum {
	ROOT_DIGITS = 12, /* of the hash of the person's folder, which begins a name */
	ENVIRONMENTS_MAX = 1 << 20,
};

static bool is_name(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/*
 * Move what the agent has made in FOLDER, which is open as AT, to ROOT, and remove FOLDER. A
 * name that cannot be moved stays, and the person is told.
 */
static void take_back(const char *root, const char *folder, int at)
{
	DIR *names = fd_open_names(at);
	auto_close int own = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	for (const struct dirent *name = names != NULL ? readdir(names) : NULL;
	     name != NULL; name = readdir(names)) {
		if (!is_name(name->d_name) ||
		    fstatat(at, name->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISLNK(st.st_mode) || strcmp(name->d_name, ENVIRONMENTS) == 0) {
			(void)unlinkat(at, name->d_name, 0);
			continue;
		}
		if (own < 0 && mkdir(root, 0700) == 0)
			own = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (renameat(at, name->d_name, own, name->d_name) < 0)
			(void)verb_complain(CODE_DONE,
					    "wrap: %s/%s could not be moved to %s: %s",
					    folder, name->d_name, root, strerror(errno));
	}
	if (names != NULL)
		(void)closedir(names);
	(void)rmdir(folder);
}

/* Link every name of ROOT into the folder open as AT, but for the file of our own. */
static bool link_all(const char *root, int at, struct err *err)
{
	DIR *names = opendir(root);
	bool ok = true;

	for (const struct dirent *name = names != NULL ? readdir(names) : NULL;
	     ok && name != NULL; name = readdir(names)) {
		struct buf path;

		if (!is_name(name->d_name) || strcmp(name->d_name, ENVIRONMENTS) == 0)
			continue;
		buf_init(&path, PATH_MAX);
		(void)buf_addf(&path, "%s/%s", root, name->d_name);
		ok = symlinkat(path.data, at, name->d_name) == 0 ||
		     err_set(err, errno, "a link to %s: %s", path.data, strerror(errno));
		buf_fini(&path);
	}
	if (names != NULL)
		(void)closedir(names);
	return ok;
}

/* Quoted texts of JSON are quoted texts of TOML. */
static bool write_environments(const struct hands *hands, int at, struct err *err)
{
	char program[PATH_MAX];
	const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct buf text;
	bool ok;

	if (size < 0)
		return err_set(err, errno, "/proc/self/exe: %s", strerror(errno));
	program[size] = '\0';
	auto_close int fd =
		openat(at, ENVIRONMENTS,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, ENVIRONMENTS ": %s", strerror(errno));
	buf_init(&text, ENVIRONMENTS_MAX);
	(void)buf_adds(&text, "default = \"cell\"\ninclude_local = false\n\n"
			      "[[environments]]\nid = \"cell\"\nprogram = ");
	(void)value_quote(str_of(program), &text);
	(void)buf_adds(&text, "\nargs = [");
	for (const char *const *word = hands->server; *word != NULL; word++) {
		(void)buf_adds(&text, word == hands->server ? "" : ", ");
		(void)value_quote(str_of(*word), &text);
	}
	(void)buf_adds(&text, "]\n");
	ok = text.overflowed ? err_set(err, E2BIG, ENVIRONMENTS ": too many options")
			     : fd_write_all(fd, text.data, text.size, err);
	buf_fini(&text);
	return ok;
}

static void find_left(const char *above, const char *beginning, hands_folder_left *left,
		      void *context)
{
	DIR *names = opendir(above);

	for (const struct dirent *name = names != NULL ? readdir(names) : NULL;
	     name != NULL; name = readdir(names)) {
		struct buf path;

		if (name->d_name[0] == '.' ||
		    strncmp(name->d_name, beginning, strlen(beginning)) != 0)
			continue;
		buf_init(&path, PATH_MAX);
		(void)buf_addf(&path, "%s/%s", above, name->d_name);
		auto_close int at = fd_hold(AT_FDCWD, path.data, LOCK_EX | LOCK_NB, 0);
		if (at >= 0)
			left(context, path.data, at);
		buf_fini(&path);
	}
	if (names != NULL)
		(void)closedir(names);
}

static bool make_locked(const char *above, const char *beginning, struct buf *folder,
			int *held, struct err *err)
{
	buf_clear(folder);
	(void)buf_addf(folder, "%s/%s-XXXXXX", above, beginning);
	*held = fd_hold_new(AT_FDCWD, folder->data, LOCK_EX, 0700);
	return *held >= 0 || err_set(err, errno, "%s: %s", folder->data, strerror(errno));
}

bool hands_folder_open(const char *below, const char *beginning, hands_folder_left *left,
		       void *context, struct buf *folder, int *held, struct err *err)
{
	struct buf above;
	bool ok;

	buf_init(&above, PATH_MAX / 2);
	ok = database_state_path(below, &above, err) && fd_make_folders(above.data, err) &&
	     (mkdir(above.data, 0700) == 0 || errno == EEXIST ||
	      err_set(err, errno, "%s: %s", above.data, strerror(errno)));
	if (ok)
		find_left(above.data, beginning, left, context);
	ok = ok && make_locked(above.data, beginning, folder, held, err);
	buf_fini(&above);
	return ok;
}

static void take_left_back(void *context, const char *path, int at)
{
	take_back(context, path, at);
}

/* Make the folder of this run; *AT is locked as long as it is open. */
static bool make_folder(const struct hands *hands, struct buf *folder, int *at,
			struct err *err)
{
	char beginning[HASH_HEX + 1];

	hash_text(str_of(hands->root), beginning);
	beginning[ROOT_DIGITS] = '\0';
	return hands_folder_open("wrap/hands", beginning, take_left_back,
				 (void *)(uintptr_t)hands->root, folder, at, err) &&
	       link_all(hands->root, *at, err) && write_environments(hands, *at, err);
}

/* The process of the agent. */
_Noreturn static void become_agent(const char *const *argv, const struct value *set,
				   pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(CODE_FAILED);
	for (size_t i = 0; i < value_count(set); i++)
		(void)putenv((char *)(uintptr_t)value_text(value_item(set, i)));
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	const int code = errno == ENOENT ? CODE_EXEC_NOT_FOUND : CODE_EXEC_NOT_EXECUTABLE;
	(void)verb_complain(code, "wrap: %s: %s", argv[0], strerror(errno));
	_exit(code);
}

pid_t hands_start(const char *const *argv, const struct value *set, struct err *err)
{
	const pid_t parent = getpid();
	const pid_t pid = fork();

	if (pid == 0)
		become_agent(argv, set, parent);
	if (pid < 0)
		(void)err_set(err, errno, "fork: %s", strerror(errno));
	return pid;
}

int hands_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? CODE_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Wait for the agent PID, and hand on the signals that end this program. */
static int wait_for(pid_t pid, struct interrupt *interrupt)
{
	auto_close int ended = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd slots[] = {{.fd = ended, .events = POLLIN},
				 {.fd = interrupt_fd(interrupt), .events = POLLIN}};

	while (ended >= 0 && slots[0].revents == 0) {
		if (poll(slots, 2, -1) < 0 && errno != EINTR)
			break;
		if (slots[1].revents == 0)
			continue;
		/* The terminal has sent SIGINT to the agent as well. */
		if (interrupt_signal(interrupt) == SIGINT) {
			interrupt_settle(interrupt);
		} else {
			(void)kill(pid, interrupt_signal(interrupt));
			slots[1].fd = -1;
		}
		slots[1].revents = 0;
	}
	return hands_wait(pid);
}

static int run_agent(const struct hands *hands, const char *folder, struct err *err)
{
	auto_value struct value *set = value_new_array();
	struct interrupt *interrupt = NULL;
	struct terminal *terminal = NULL;
	struct buf entry;
	int code = CODE_FAILED;

	if (!interrupt_open(&interrupt, err))
		return CODE_FAILED;
	if (!terminal_lend(&terminal, err)) {
		interrupt_close(interrupt);
		return CODE_FAILED;
	}
	buf_init(&entry, 2 * PATH_MAX);
	(void)buf_addf(&entry, "%s=%s", hands->variable, folder);
	value_append(set, value_new_text(entry.data));
	buf_fini(&entry);
	const pid_t pid = hands_start(hands->argv, set, err);
	if (pid > 0 && interrupt_start(interrupt, err))
		code = wait_for(pid, interrupt);
	else if (pid > 0)
		(void)kill(pid, SIGKILL);
	terminal_close(terminal);
	interrupt_close(interrupt);
	return code;
}

int hands_run(const struct hands *hands)
{
	struct err err = {0};
	struct buf folder;
	int at = -1, code = CODE_FAILED;

	buf_init(&folder, PATH_MAX);
	if (make_folder(hands, &folder, &at, &err))
		code = run_agent(hands, folder.data, &err);
	if (err.text[0] != '\0')
		code = verb_complain(CODE_FAILED, "wrap: %s", err.text);
	if (at >= 0)
		take_back(hands->root, folder.data, at);
	fd_close(&at);
	buf_fini(&folder);
	return code;
}
