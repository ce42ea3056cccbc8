/*
 * privilege: capabilities, securebits, limits and descriptors. An exec can never give back
 * what is dropped here.
 */
#include "sandbox/privilege.h"

#include "base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

bool privilege_reduce(uint64_t mask, struct err *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)mask, .permitted = (uint32_t)mask},
		{.effective = (uint32_t)(mask >> 32), .permitted = (uint32_t)(mask >> 32)},
	};

	if (syscall(SYS_capset, &header, data) < 0)
		return err_set(err, errno, "dropping capabilities: %s", strerror(errno));
	return true;
}

bool privilege_lock(struct err *err)
{
	const unsigned long bits =
		SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
		SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return err_set(err, errno, "locking the secure bits: %s", strerror(errno));
	/*
	 * Until EINVAL: the kernel may know more capabilities than this file's headers.
	 */
	for (unsigned long i = 0; i < 64; i++) {
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && i > 0)
			break;
		return err_set(err, errno, "dropping capability %lu: %s", i,
			       strerror(errno));
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_set(err, errno, "clearing ambient capabilities: %s",
			       strerror(errno));
	return true;
}

bool privilege_limit(int which, uint64_t most, const char *name, struct err *err)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)which, &limit) < 0)
		return err_set(err, errno, "limit of %s: %s", name, strerror(errno));
	/* Never raise the user's own hard limit. */
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most)
		limit.rlim_max = most;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit((__rlimit_resource_t)which, &limit) < 0)
		return err_set(err, errno, "limit of %s: %s", name, strerror(errno));
	return true;
}

static bool descriptors_close(const int *keep, size_t count, struct err *err)
{
	unsigned from = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned kept = (unsigned)keep[i];
		if (kept > from && close_range(from, kept - 1, 0) < 0)
			return err_set(err, errno, "closing descriptors: %s",
				       strerror(errno));
		from = kept + 1;
	}
	if (close_range(from, UINT_MAX, 0) < 0)
		return err_set(err, errno, "closing descriptors: %s", strerror(errno));
	return true;
}

/*
 * 0, 1 and 2 lead nowhere, so that no stray message of a library reaches a frame or a
 * file.
 */
static bool standard_streams_null(struct err *err)
{
	int fd = open("/dev/null", O_RDWR); /* becomes 0 */

	if (fd != 0 || dup2(fd, 1) != 1 || dup2(fd, 2) != 2)
		return err_set(err, errno, "/dev/null: %s", strerror(errno));
	return true;
}

bool privilege_close(const int *keep, size_t count, struct err *err)
{
	return descriptors_close(keep, count, err) && standard_streams_null(err);
}
