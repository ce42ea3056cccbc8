/* probe: trying out what a cell is made of; see probe.h. */
#include "sandbox/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/cgroup.h"
#include "sandbox/identity.h"
#include "sandbox/probe_parts.h"
#include "sandbox/sandbox.h"

bool probe_read(const char *path, char text[SYSCTL_MAX])
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, SYSCTL_MAX - 1);

	if (n < 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

const char *probe_landlock_remedy(int code)
{
	if (code == EOPNOTSUPP)
		return "add landlock to lsm= on the kernel's command line (see "
		       "/sys/kernel/security/lsm)";
	if (code == EPERM || code == EACCES)
		return "a container around us forbids it: run it with a seccomp profile that "
		       "allows landlock_create_ruleset and its two sisters";
	return "a kernel of 5.13 or newer with CONFIG_SECURITY_LANDLOCK, or a seccomp profile "
	       "of the container that knows landlock_create_ruleset";
}

const char *probe_seccomp_remedy(int code)
{
	if (code == EPERM || code == EACCES)
		return "a container around us forbids it: run it with a seccomp profile that "
		       "allows seccomp";
	return "a kernel with CONFIG_SECCOMP_FILTER";
}

bool probe_seccomp(void)
{
	unsigned action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

struct facts {
	struct probe_fact *items;
	size_t count;
};

__attribute__((format(printf, 3, 4))) static struct probe_fact *add_fact(
	struct facts *facts, const char *name, const char *format, ...)
{
	struct probe_fact *fact = &facts->items[facts->count++];
	va_list arguments;

	fact->name = name;
	fact->missing = false;
	fact->remedy[0] = '\0';
	va_start(arguments, format);
	(void)vsnprintf(fact->value, sizeof(fact->value), format, arguments);
	va_end(arguments);
	return fact;
}

__attribute__((format(printf, 2, 3))) static void set_missing(struct probe_fact *fact,
							      const char *remedy, ...)
{
	va_list arguments;

	fact->missing = true;
	va_start(arguments, remedy);
	(void)vsnprintf(fact->remedy, sizeof(fact->remedy), remedy, arguments);
	va_end(arguments);
}

/* True: some are missing. */
static bool add_namespaces(struct facts *facts)
{
	struct probe_fact *user = add_fact(facts, "user namespaces", "yes");
	struct probe_fact *others;
	struct probe_spaces spaces;

	probe_namespaces(&spaces);
	if (spaces.lacking == SPACES_USER || spaces.lacking == SPACES_UNTRIED) {
		(void)snprintf(user->value, sizeof(user->value), "%s", spaces.because);
		set_missing(user, "%s", spaces.remedy);
		return true;
	}
	others = add_fact(facts, "other namespaces", "mount, pid, ipc, uts, net, cgroup");
	if (spaces.lacking == SPACES_OTHERS) {
		(void)snprintf(others->value, sizeof(others->value), "%s", spaces.because);
		set_missing(others, "%s", spaces.remedy);
		return true;
	}
	others = add_fact(facts, "a /proc of one's own", "yes");
	if (spaces.lacking == SPACES_PROC) {
		(void)snprintf(others->value, sizeof(others->value), "%s", spaces.because);
		set_missing(others, "%s", spaces.remedy);
		return true;
	}
	others = add_fact(facts, "a view of mounts", "yes");
	if (spaces.lacking == SPACES_VIEW) {
		(void)snprintf(others->value, sizeof(others->value), "%s", spaces.because);
		set_missing(others, "%s", spaces.remedy);
	}
	return spaces.lacking != SPACES_NOTHING;
}

static void add_switches(struct facts *facts, bool lacks_spaces)
{
	for (const struct probe_switch *row = probe_switches; row->path != NULL; row++) {
		char text[SYSCTL_MAX];
		struct probe_fact *fact;

		if (!probe_read(row->path, text))
			continue;
		fact = add_fact(facts, strrchr(row->path, '/') + 1, "%s", text);
		/* That all namespaces are there is another row; this is what keeps them away. */
		if (lacks_spaces && probe_switch_closes(row, text)) {
			(void)snprintf(fact->value, sizeof(fact->value),
				       "%.32s: no user namespaces may be made here", text);
			set_missing(fact, "%s", row->remedy);
		}
	}
}

static void add_landlock(struct facts *facts)
{
	int abi = sandbox_landlock_abi();
	int code = errno;

	if (abi >= LANDLOCK_ABI_SCOPES) {
		(void)add_fact(facts, "Landlock", "ABI %d", abi);
	} else if (abi > 0) {
		(void)add_fact(facts, "Landlock",
			       "ABI %d: at L2 programs cannot send signals by number, that "
			       "needs ABI %d (Linux 6.12)",
			       abi, LANDLOCK_ABI_SCOPES);
	} else {
		struct probe_fact *fact =
			add_fact(facts, "Landlock", "no: %s", strerror(code));
		set_missing(fact, "%s", probe_landlock_remedy(code));
	}
}

static void add_seccomp(struct facts *facts)
{
	bool found = probe_seccomp();
	int code = errno;

	if (found)
		(void)add_fact(facts, "seccomp filters", "yes");
	else
		set_missing(add_fact(facts, "seccomp filters", "no: %s", strerror(code)),
			    "%s", probe_seccomp_remedy(code));
}

static void add_openat2(struct facts *facts)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	auto_close int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how));

	if (fd >= 0)
		(void)add_fact(facts, "openat2", "yes");
	else
		set_missing(add_fact(facts, "openat2", "no: %s", strerror(errno)),
			    "a kernel of 5.12 or newer, and no seccomp profile that hides openat2");
}

/* Nothing is missing without them: workers then count for themselves. */
static void add_groups(struct facts *facts)
{
	struct cgroup_place place;

	cgroup_find("", &place);
	if (place.version == 0)
		(void)add_fact(facts, "control groups",
			       "none for this user: memory and "
			       "processes are counted every 100 ms");
	else
		(void)add_fact(facts, "control groups", "version %d:%s%s", place.version,
			       place.folders[CGROUP_MEMORY] >= 0 ? " memory" : "",
			       place.folders[CGROUP_PIDS] >= 0 ? " pids" : "");
	cgroup_leave(&place);
}

size_t probe_kernel(struct probe_fact items[PROBE_FACTS_MAX])
{
	struct facts facts = {items, 0};
	struct utsname name;

	if (uname(&name) == 0)
		(void)add_fact(&facts, "kernel", "%s %s, %s", name.sysname, name.release,
			       name.machine);
	add_switches(&facts, add_namespaces(&facts));
	add_landlock(&facts);
	add_seccomp(&facts);
	add_openat2(&facts);
	add_groups(&facts);
	return facts.count;
}
