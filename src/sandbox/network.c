/*
 * network: the cell's private network. Making one takes the kernel longer than all the
 * rest of the set-up, so a helper makes it while the anchor builds the view. The helper
 * shares the anchor's memory and descriptors, lives on a stack of its own, and is gone
 * before the anchor goes on.
 */
#include "sandbox/network.h"

#include "base/kernel.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* The kernel sets `lives` to 0 when the helper ends, and wakes us. */
enum { HELPER_LIVES = 1 };

/*
 * Only calls of the kernel by kernel_raw: the C library's would write the anchor's errno.
 * No code of the sanitizers may run here: it is on a stack they do not know.
 */
__attribute__((no_sanitize("address", "undefined"), noinline)) static int helper_main(
	void *context)
{
	struct sandbox_network *network = context;
	struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	long answer;

	network->step = "new network namespace";
	answer = kernel_raw(SYS_unshare, CLONE_NEWNET, 0, 0);
	if (answer == 0) {
		network->step = "loopback";
		answer = kernel_raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	if (answer >= 0) {
		long fd = answer;
		answer = kernel_raw(SYS_ioctl, fd, SIOCSIFFLAGS, (long)&loopback);
		if (answer == 0) {
			network->step = "holding the network namespace";
			answer = kernel_raw(SYS_ioctl, fd, SIOCGSKNS, 0);
		}
		(void)kernel_raw(SYS_close, fd, 0, 0);
	}
	network->fd = answer < 0 ? -1 : (int)answer;
	network->code = answer < 0 ? (int)-answer : 0;
	return 0;
}

void network_begin(struct sandbox_network *network)
{
	network->fd = -1;
	network->step = "starting the network's helper";
	network->code = ECHILD; /* until the helper says otherwise */
	network->lives = HELPER_LIVES;
	if (clone(helper_main, network->stack + sizeof(network->stack),
		  CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | SIGCHLD, network, NULL,
		  NULL, &network->lives) >= 0)
		return;
	network->code = errno;
	network->lives = 0;
}

bool sandbox_join(struct sandbox_network *network, struct err *err)
{
	while (__atomic_load_n(&network->lives, __ATOMIC_ACQUIRE) == HELPER_LIVES)
		(void)syscall(SYS_futex, &network->lives, FUTEX_WAIT, HELPER_LIVES, NULL);
	if (network->code != 0)
		return err_set(err, network->code, "%s: %s", network->step,
			       strerror(network->code));
	if (setns(network->fd, CLONE_NEWNET) < 0)
		return err_set(err, errno, "entering the network namespace: %s",
			       strerror(errno));
	return true;
}
