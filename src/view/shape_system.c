/*
 * shape_system: the system's part of a view: programs, libraries, settings without
 * secrets, devices.
 */
#include "base/path.h"
#include "tool/denial.h"
#include "view/shape.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TMP_MODE = 01777,
	LINK_MAX_BYTES = 256,
};

/*
 * Secrets, and files that lead to them. A name that does not exist costs one system call.
 */
static const char *const masked[] = {
	"/etc/shadow",      "/etc/shadow-",          "/etc/gshadow",
	"/etc/gshadow-",    "/etc/sudoers",          "/etc/sudoers.d",
	"/etc/ssl/private", "/etc/security/opasswd", "/etc/machine-id",
};

static void folder_or_link(struct cell_spec *spec, const char *path)
{
	char target[LINK_MAX_BYTES];
	struct stat st;

	if (lstat(path, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		spec_add_entry(spec, VIEW_TREE, path, path)->optional = true;
		return;
	}
	ssize_t n = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof(target) - 1) : -1;
	if (n > 0) {
		target[n] = '\0';
		(void)spec_add_entry(spec, VIEW_LINK, path, target);
	}
}

/* The names of host keys contain the algorithm, so read the folder to find them. */
static void mask_host_keys(struct cell_spec *spec)
{
	DIR *folder = opendir("/etc/ssh");
	char path[512];

	if (folder == NULL)
		return;
	for (const struct dirent *name = readdir(folder); name != NULL;
	     name = readdir(folder)) {
		size_t length = strlen(name->d_name);
		if (strncmp(name->d_name, "ssh_host_", 9) != 0 || length < 4 ||
		    strcmp(name->d_name + length - 4, ".pub") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "/etc/ssh/%s", name->d_name);
		(void)spec_add_entry(spec, VIEW_MASK, path, NULL);
	}
	(void)closedir(folder);
}

/* Some programs use getpwuid, not HOME, so the view has account files of its own. */
static void add_accounts(struct cell_spec *spec)
{
	unsigned uid = spec->identity.uid, gid = spec->identity.gid;
	char passwd[512], group[256];

	(void)snprintf(passwd, sizeof(passwd),
		       "%sglovebox:x:%u:%u:Glovebox:" SHAPE_HOME ":/bin/bash\n"
		       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		       uid != 0 ? "root:x:0:0:root:/root:/usr/sbin/nologin\n" : "", uid,
		       gid);
	(void)snprintf(group, sizeof(group), "%sglovebox:x:%u:\nnogroup:x:65534:\n",
		       gid != 0 ? "root:x:0:\n" : "", gid);
	(void)spec_add_entry(spec, VIEW_TEXT, "/etc/passwd", passwd);
	(void)spec_add_entry(spec, VIEW_TEXT, "/etc/group", group);
}

static void add_devices(struct cell_spec *spec, uint64_t shared_memory)
{
	static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					      "/dev/random", "/dev/urandom", "/dev/tty"};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		(void)spec_add_entry(spec, VIEW_DEVICE, devices[i], devices[i]);
	if (!spec_is_sealed(spec))
		/* without a view, the other devices are the host's or lead to /proc */
		return;
	(void)spec_add_entry(spec, VIEW_TERMINALS, "/dev/pts", NULL);
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/ptmx", "pts/ptmx");
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/fd", "/proc/self/fd");
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/stdin", "/proc/self/fd/0");
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/stdout", "/proc/self/fd/1");
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/stderr", "/proc/self/fd/2");
	struct view_entry *memory = spec_add_entry(spec, VIEW_MEMORY, "/dev/shm", NULL);
	memory->mode = TMP_MODE;
	memory->size = shared_memory;
	spec_add_writable(spec, "/dev/shm");
}

void shape_grant(struct policy *policy, struct cell_spec *spec, const char *path,
		 bool writable)
{
	policy_show(policy, path, writable);
	spec_add_root(spec, path, writable, NULL);
	if (writable)
		spec_add_writable(spec, path);
}

/* Add the folders that every view has of its own, instead of the host's. */
static void add_private(struct policy *policy, struct cell_spec *spec)
{
	add_accounts(spec);
	(void)spec_add_entry(spec, VIEW_PROCESSES, "/proc", NULL);
	struct view_entry *tmp = spec_add_entry(spec, VIEW_MEMORY, "/tmp", NULL);
	tmp->mode = TMP_MODE;
	tmp->size = policy->limits.tmp;
	shape_grant(policy, spec, "/tmp", true);
}

void shape_add_system(struct policy *policy, struct cell_spec *spec)
{
	const char *folder;

	for (size_t at = 0; (folder = system_folder_next(&at, FOLDER_SYSTEM)) != NULL;) {
		folder_or_link(spec, folder);
		if (access(folder, F_OK) == 0)
			shape_grant(policy, spec, folder, false);
	}
	for (size_t i = 0; i < sizeof(masked) / sizeof(masked[0]); i++)
		(void)spec_add_entry(spec, VIEW_MASK, masked[i], NULL);
	mask_host_keys(spec);
	add_devices(spec, policy->limits.tmp);
	/* nproc and thread pools read this folder. Nothing else of /sys is shown. */
	spec_add_entry(spec, VIEW_TREE, "/sys/devices/system/cpu", "/sys/devices/system/cpu")
		->optional = true;
	if (spec_is_sealed(spec))
		add_private(policy, spec);
}

void shape_add_var_tmp(const struct policy *policy, struct cell_spec *spec)
{
	static const char path[] = "/var/tmp";
	bool in_use = false;

	if (!spec_is_sealed(spec))
		return;
	for (size_t i = 0; i < spec->view.count; i++) {
		const char *shown = spec->view.entries[i].path;
		if (strcmp(shown, path) == 0)
			return;
		if (path_within(shown, path) || path_within(path, shown))
			in_use = true;
	}
	if (!in_use) {
		(void)spec_add_entry(spec, VIEW_LINK, path, "../tmp");
		return;
	}
	struct view_entry *memory = spec_add_entry(spec, VIEW_MEMORY, path, NULL);
	memory->mode = TMP_MODE;
	memory->size = policy->limits.tmp;
	spec_add_writable(spec, path);
}
