/* trial: a child process with namespaces of its own mounts two small layers and looks. */

#include "image/trial.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { RANDOM_DIGITS = 12, LINE_ROOM = 64 };

/* The steps, in their order; the exit code of the child is the failed one. */
enum step {
	STEP_DONE,
	STEP_FILES,
	STEP_REMOVED,
	STEP_ATTRIBUTES,
	STEP_NAMESPACE,
	STEP_MOUNT,
	STEP_VIEW,
	STEP_COUNT,
};

static const char *const sentences[STEP_COUNT] = {
	[STEP_FILES] = "no file can be made there",
	[STEP_REMOVED] = "no removed name (a character device 0:0) can be made there; that "
			 "needs Linux 5.8 and a file system of this machine",
	[STEP_ATTRIBUTES] = "the file system keeps no attributes of users; set XDG_CACHE_HOME "
			    "to a folder on ext4, xfs or btrfs",
	[STEP_NAMESPACE] = "no user namespace can be made; glovebox doctor says what helps",
	[STEP_MOUNT] = "the kernel mounts no overlay with userxattr for a user; that needs "
		       "Linux 5.11 and the module overlay",
	[STEP_VIEW] = "the overlay shows a name that a layer has removed",
};

static bool make_file(int at, const char *name)
{
	auto_close int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd >= 0;
}

static enum step make_layers(int at)
{
	static const char *const folders[] = {"low",    "low/d", "high",
					      "high/d", "upper", "work"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (mkdirat(at, folders[i], S_IRWXU) < 0)
			return STEP_FILES;
	}
	if (!make_file(at, "low/gone") || !make_file(at, "low/stays") ||
	    !make_file(at, "low/d/hidden"))
		return STEP_FILES;
	if (mknodat(at, "high/gone", S_IFCHR, makedev(0, 0)) < 0)
		return STEP_REMOVED;
	auto_close int folder = openat(at, "high/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder >= 0 && fsetxattr(folder, "user.overlay.opaque", "y", 1, 0) == 0
		       ? STEP_DONE
		       : STEP_ATTRIBUTES;
}

static bool enter_namespaces(void)
{
	const uid_t user = geteuid();
	const gid_t group = getegid();
	char line[LINE_ROOM];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return false;
	(void)fd_write_file("/proc/self/setgroups", "deny", NULL);
	(void)snprintf(line, sizeof(line), "0 %u 1\n", group);
	if (!fd_write_file("/proc/self/gid_map", line, NULL))
		return false;
	(void)snprintf(line, sizeof(line), "0 %u 1\n", user);
	return fd_write_file("/proc/self/uid_map", line, NULL);
}

/* In the child, in the folder of the trial. */
static enum step try_inside(int at, const char *path)
{
	const enum step made = make_layers(at);

	if (made != STEP_DONE)
		return made;
	if (!enter_namespaces())
		return STEP_NAMESPACE;
	/* By name: AT belongs to the mounts of the caller, on which nothing can be mounted here. */
	if (mkdirat(at, "view", S_IRWXU) < 0 || chdir(path) < 0)
		return STEP_FILES;
	if (mount("overlay", "view", "overlay", 0,
		  "lowerdir=high:low,upperdir=upper,workdir=work,userxattr") < 0)
		return STEP_MOUNT;
	return access("view/stays", F_OK) == 0 && access("view/gone", F_OK) < 0 &&
			       access("view/d", F_OK) == 0 &&
			       access("view/d/hidden", F_OK) < 0 &&
			       make_file(AT_FDCWD, "view/d/new")
		       ? STEP_DONE
		       : STEP_VIEW;
}

static enum step try_in(int at, const char *path)
{
	const pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit((int)try_inside(at, path));
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) < STEP_COUNT
		       ? (enum step)WEXITSTATUS(status)
		       : STEP_NAMESPACE;
}

bool trial_overlay(const char *folder, struct err *err)
{
	char digits[RANDOM_DIGITS + 1];
	struct buf path;
	enum step step;

	buf_init(&path, PATH_MAX);
	(void)text_random_hex(digits, RANDOM_DIGITS);
	(void)buf_addf(&path, "%s/.trial-%s", folder, digits);
	auto_close int at = mkdir(path.data, S_IRWXU) == 0
				    ? open(path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
				    : -1;
	step = at >= 0 ? try_in(at, path.data) : STEP_FILES;
	fd_folder_remove(path.data);
	buf_fini(&path);
	return step == STEP_DONE ||
	       err_set(err, ENOTSUP, "%s: %s", folder, sentences[step]);
}
