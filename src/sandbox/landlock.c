/*
 * landlock: the second wall for writes and signals. TRUNCATE is not handled at this
 * level: it would tax every open (0.45-1.45 us instead of 0.15), and read-only mounts
 * stop truncation. Reading is the view's business; TCP and abstract sockets are the
 * network namespace's, so that commands of one cell may talk.
 *
 * All of it is one ruleset, loaded by the worker. A ruleset of scopes alone in the anchor
 * would refuse every move and link between folders: each one that does not grant REFER
 * denies it, and one that names a file right forbids the mounts workers need.
 */
#include "base/fd.h"
#include "base/kernel.h"
#include "sandbox/identity.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define ACCESS_MAKE                                                       \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |     \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |     \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |   \
	 LANDLOCK_ACCESS_FS_MAKE_SYM | KERNEL_ACCESS_REFER)

int sandbox_landlock_abi(void)
{
	long abi = syscall(KERNEL_LANDLOCK_CREATE, NULL, 0, KERNEL_LANDLOCK_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

bool landlock_refused(struct err *err)
{
	if (errno == EOPNOTSUPP)
		return err_set(err, errno,
			       "Landlock is switched off in this kernel; add landlock to lsm= on "
			       "its command line");
	return err_set(err, errno, "Landlock: %s", strerror(errno));
}

bool landlock_enter(int ruleset, struct err *err)
{
	if (syscall(KERNEL_LANDLOCK_RESTRICT, ruleset, 0) < 0)
		return err_set(err, errno, "Landlock: %s", strerror(errno));
	return true;
}

static bool rule_add(int ruleset, const char *path, uint64_t access, struct err *err)
{
	struct stat st;
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "Landlock rule for %s: %s", path,
			       strerror(errno));
	struct kernel_landlock_beneath rule = {
		.allowed_access = S_ISDIR(st.st_mode)
					  ? access
					  : access & LANDLOCK_ACCESS_FS_WRITE_FILE,
		.parent_fd = fd,
	};
	if (syscall(KERNEL_LANDLOCK_ADD, ruleset, KERNEL_LANDLOCK_BENEATH, &rule, 0) < 0)
		return err_set(err, errno, "Landlock rule for %s: %s", path,
			       strerror(errno));
	return true;
}

bool landlock_no_files(struct err *err)
{
	const int abi = sandbox_landlock_abi();
	/* Up to MAKE_SYM, then REFER, TRUNCATE and IOCTL_DEV with the ABIs 2, 3 and 5. */
	const unsigned rights = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;
	const struct kernel_landlock_ruleset wanted = {
		.handled_access_fs = (1ULL << rights) - 1,
		.scoped = abi >= LANDLOCK_ABI_SCOPES ? KERNEL_LANDLOCK_SCOPE_SIGNAL |
							       KERNEL_LANDLOCK_SCOPE_ABSTRACT
						     : 0,
	};

	if (abi == 0)
		return true; /* the filter refuses every open in any case */
	auto_close int ruleset = (int)syscall(KERNEL_LANDLOCK_CREATE, &wanted,
					      abi >= LANDLOCK_ABI_SCOPES
						      ? sizeof(wanted)
						      : sizeof(wanted.handled_access_fs),
					      0);
	if (ruleset < 0)
		return err_set(err, errno, "Landlock: %s", strerror(errno));
	return landlock_enter(ruleset, err);
}

bool landlock_write_below(const char *const *writable, struct err *err)
{
	/*
	 * ABI 1 does not know REFER; it then refuses every move between folders by
	 * itself.
	 */
	const int abi = sandbox_landlock_abi();
	const uint64_t known = abi >= 2 ? UINT64_MAX : ~KERNEL_ACCESS_REFER;
	const uint64_t all = (LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_MAKE) & known;
	const bool scopes = abi >= LANDLOCK_ABI_SCOPES;
	const struct kernel_landlock_ruleset wanted = {
		.handled_access_fs = all,
		.scoped = scopes ? KERNEL_LANDLOCK_SCOPE_SIGNAL : 0,
	};
	/* Without scopes the size of ABI 1, which every kernel takes. */
	auto_close int ruleset =
		(int)syscall(KERNEL_LANDLOCK_CREATE, &wanted,
			     scopes ? sizeof(wanted) : sizeof(wanted.handled_access_fs), 0);

	if (ruleset < 0)
		return landlock_refused(err);
	for (size_t i = 0; writable[i] != NULL; i++) {
		if (!rule_add(ruleset, writable[i], all, err))
			return false;
	}
	/*
	 * Devices and one's own /proc files (thread names, a debugger's memory) are
	 * written, never made.
	 */
	if (!rule_add(ruleset, "/dev", LANDLOCK_ACCESS_FS_WRITE_FILE, err) ||
	    !rule_add(ruleset, "/proc", LANDLOCK_ACCESS_FS_WRITE_FILE, err))
		return false;
	return landlock_enter(ruleset, err);
}
