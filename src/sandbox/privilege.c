/*
 * privilege: capabilities and securebits. An exec can never give back what is dropped
 * here.
 */
#include "sandbox/privilege.h"

#include "sandbox/kernel.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>

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
