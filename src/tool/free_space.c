/* free_space: see free_space.h. */
#include "tool/free_space.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#define KIBI 1024ULL
#define MEBI (1024 * KIBI)

enum {
	LOOK_MS = 100, /* far from the floor; a look is one question for free space */
	/* With the whole reserve the kernel keeps the floor; a look finds out that it did. */
	RESERVED_MS = 10,
	/* A look reserves for so long at most: the command's deadline is looked at between. */
	RESERVING_MS = 20,
	/* Writers in memory are as fast as the reserve grows, so six of them take six times it. */
	MEMORY_NEAR_FLOORS = 8,
};

/* More than processes write to the page cache between two looks, even when one comes late. */
static const uint64_t disk_near = 512 * MEBI;
/* A disk notes a reserve without writing it; memory is filled with zeros. */
static const uint64_t disk_piece = 256 * MEBI, memory_piece = 4 * MEBI;
/* Faster than any file system takes bytes: the way to the floor is at least so long. */
static const uint64_t bytes_per_ms = 4 * MEBI;
/* Less than a large write: a writer that was refused may have given back a part. */
static const uint64_t full_bytes = 64 * KIBI;

static struct free_room room_of(const struct statvfs *fs)
{
	return (struct free_room){.bytes = (uint64_t)fs->f_bavail * fs->f_frsize,
				  .files = fs->f_files > 0 ? fs->f_favail : UINT64_MAX};
}

struct free_room free_space_at(const char *path)
{
	struct statvfs fs;

	if (!path || statvfs(path, &fs) < 0)
		return (struct free_room){UINT64_MAX, UINT64_MAX};
	return room_of(&fs);
}

bool free_space_is_below(const struct free_room *left, const struct free_room *floor)
{
	return left->bytes < floor->bytes || left->files < floor->files;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t floor_of(uint64_t limit, uint64_t left)
{
	return left < limit ? left / 2 : limit;
}

/* A larger file would end this process by SIGXFSZ. */
static uint64_t file_size_most(void)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_FSIZE, &most) < 0 || most.rlim_cur == RLIM_INFINITY)
		return INT64_MAX;
	return smaller(most.rlim_cur, INT64_MAX);
}

void free_space_begin(struct free_space *space, const char *path, uint64_t limit)
{
	struct statfs kind;
	struct statvfs fs;

	*space = (struct free_space){.fd = -1};
	/* Before the command runs: on a busy machine it may be done before the first look. */
	if (!limit || !path || statvfs(path, &fs) < 0 || statfs(path, &kind) < 0)
		return;
	const bool memory = kind.f_type == TMPFS_MAGIC;
	const double whole = (double)fs.f_blocks * (double)fs.f_frsize;
	const double part = (double)limit < whole ? (double)limit / whole : 1;

	space->path = path;
	space->left = room_of(&fs);
	space->floor.bytes = floor_of(limit, space->left.bytes);
	if (fs.f_files > 0)
		space->floor.files =
			floor_of((uint64_t)((double)fs.f_files * part), space->left.files);
	space->near = memory ? MEMORY_NEAR_FLOORS * space->floor.bytes : disk_near;
	space->piece = memory ? memory_piece : disk_piece;
	space->reserve_most = smaller(space->floor.bytes, file_size_most());
}

static uint64_t above_floor(const struct free_space *space)
{
	return space->left.bytes > space->floor.bytes
		       ? space->left.bytes - space->floor.bytes
		       : 0;
}

static bool is_reserved(const struct free_space *space)
{
	return space->reserve_most > 0 && space->reserved == space->reserve_most;
}

int64_t free_space_next_ms(const struct free_space *space)
{
	/* Half of the way: a look may come late, and the reserve takes its time. */
	const uint64_t ms = above_floor(space) / 2 / bytes_per_ms;

	if (!space->path)
		return LOOK_MS;
	if (is_reserved(space))
		return RESERVED_MS;
	if (space->reserved > 0)
		return 0;
	return ms > LOOK_MS ? LOOK_MS : ms > 0 ? (int64_t)ms : 1;
}

/* How much is left, and whether that is all the command may have. */
static bool is_reached(struct free_space *space)
{
	const struct free_room room = free_space_at(space->path);

	space->left = room;
	if (room.bytes <= UINT64_MAX - space->reserved)
		space->left.bytes += space->reserved;
	space->reached = free_space_is_below(&space->left, &space->floor) ||
			 (is_reserved(space) && room.bytes < full_bytes);
	return space->reached;
}

/* One piece more. A file system that cannot reserve is only looked at. */
static void reserve_piece(struct free_space *space)
{
	const uint64_t rest = space->reserve_most - space->reserved;
	const uint64_t size = smaller(space->piece, rest);

	if (space->fd < 0)
		space->fd = open(space->path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (space->fd < 0 ||
	    fallocate(space->fd, 0, (off_t)space->reserved, (off_t)size) < 0)
		space->reserve_most = space->reserved;
	else
		space->reserved += size;
	space->refuses = space->reserved > 0;
}

bool free_space_look(struct free_space *space)
{
	const int64_t began = clock_now_ms();

	if (!space->path)
		return false;
	while (!is_reached(space)) {
		if (above_floor(space) >= space->near ||
		    space->reserved >= space->reserve_most ||
		    clock_now_ms() - began >= RESERVING_MS)
			return false;
		reserve_piece(space);
	}
	return true;
}

void free_space_end(struct free_space *space)
{
	if (!space->path)
		return;
	/* A command that was ended at the floor, and removed its files then, still reached it. */
	if (!space->reached)
		(void)is_reached(space);
	fd_close(&space->fd);
	space->reserved = 0;
}
