/* probe_reach: the level of this machine, and why not a higher one; see probe.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sandbox/probe_parts.h"

static const struct level_row rows[] = {
	[SANDBOX_NONE] = {"L0", "no wall",
			  "an environment of its own, closed descriptors, limits and an end; "
			  "files, network and processes of yours are all in reach"},
	[SANDBOX_FILTER] = {"L1", "seccomp",
			    "no network, no sockets of the host, no tracing, a small kernel; "
			    "every file of yours can be read and changed"},
	[SANDBOX_RULES] = {"L2", "Landlock and seccomp",
			   "files outside are closed (their names and sizes can be seen), no "
			   "network, not even a loopback, no signals out; nothing can be "
			   "hidden in a writable folder, /tmp and memory have no limit"},
	[SANDBOX_SEALED] = {"L3", "namespaces, Landlock and seccomp",
			    "what is outside does not exist; all promises hold"},
};

const struct level_row *probe_level_row(enum sandbox_level level)
{
	return &rows[level <= SANDBOX_SEALED ? level : SANDBOX_NONE];
}

static void say(struct probe_reach *reach, enum sandbox_level level, const char *what,
		const char *why, const char *remedy)
{
	reach->level = level;
	(void)snprintf(reach->because, sizeof(reach->because), "%s: %.*s", what,
		       PROBE_VALUE_MAX / 2, why);
	(void)snprintf(reach->remedy, sizeof(reach->remedy), "%s", remedy);
}

void probe_reach(struct probe_reach *reach)
{
	struct probe_spaces spaces;

	memset(reach, 0, sizeof(*reach));
	reach->level = SANDBOX_SEALED;
	if (!probe_seccomp()) {
		int code = errno;
		say(reach, SANDBOX_NONE, "no seccomp filters", strerror(code),
		    probe_seccomp_remedy(code));
		return;
	}
	if (sandbox_landlock_abi() == 0) {
		int code = errno;
		say(reach, SANDBOX_FILTER, "no Landlock", strerror(code),
		    probe_landlock_remedy(code));
		return;
	}
	probe_namespaces(&spaces);
	/* A cell of L3 then says itself what it had no room for: it is never built weaker. */
	if (spaces.lacking != SPACES_NOTHING && spaces.lacking != SPACES_UNTRIED)
		say(reach, SANDBOX_RULES,
		    spaces.lacking == SPACES_USER     ? "user namespaces"
		    : spaces.lacking == SPACES_OTHERS ? "namespaces"
		    : spaces.lacking == SPACES_PROC   ? "a /proc of one's own"
						      : "a view of mounts",
		    spaces.because, spaces.remedy);
}
