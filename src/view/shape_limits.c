/* shape_limits: the limits that depend on this machine; see shape_limits.h. */
#include "view/shape_limits.h"

#include <sys/statvfs.h>
#include <sys/sysinfo.h>

/* enough for linking a large program, or tests with a database */
#define MEMORY_MOST ((uint64_t)4 << 30)
#define SPACE_MOST  ((uint64_t)1 << 30) /* leaves room for the logs and mails of others */

enum {
	MEMORY_SHARE = 2, /* half of the machine is left to others */
	SPACE_SHARE = 20, /* five per cent, as ext4 reserves for root */
	MEMORY_LEAST = 16 << 20,
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t machine_memory(void)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return MEMORY_MOST;
	uint64_t share = (uint64_t)info.totalram * info.mem_unit / MEMORY_SHARE;
	return share < MEMORY_LEAST ? MEMORY_LEAST : smaller(share, MEMORY_MOST);
}

static uint64_t machine_space(int workspace_fd)
{
	struct statvfs fs;

	if (fstatvfs(workspace_fd, &fs) < 0)
		return SPACE_MOST;
	return smaller((uint64_t)fs.f_blocks * fs.f_frsize / SPACE_SHARE, SPACE_MOST);
}

void shape_limits(struct policy_limits *limits, int workspace_fd)
{
	if (limits->memory == POLICY_BY_MACHINE)
		limits->memory = machine_memory();
	if (limits->free_space == POLICY_BY_MACHINE)
		limits->free_space = machine_space(workspace_fd);
}
