/* usage: measures memory and counts tasks by a walk over /proc, and prints accounts. */
#include "process/usage.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	FILE_MAX = 64 << 10, /* status, smaps_rollup and their like are below 4 KiB */
	/* memory files that are told apart; further ones count as different */
	FILES_SEEN_MAX = 8192,
	STAT_BLOCK = 512,
	KIB = 1024,
};

/* The state of a walk, for exact shares or for cheap sums. */
struct walk {
	int proc_fd;
	struct buf text;
	struct usage *usage;
	bool exact;
	uint64_t shared; /* exact: mapped memory that belongs to no file of the host */
	uint64_t files;  /* exact: memory files that a process has open */
	bool hides;      /* exact: there may be others that we cannot see */
	ino_t *seen;
	size_t seen_count;
};

static bool read_at(struct walk *walk, const char *path)
{
	return fd_read_at(walk->proc_fd, path, &walk->text);
}

/* The number behind "\nNAME:" in bytes (the line has KiB); 0 when there is none. */
static uint64_t field(const struct buf *text, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = text->data; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, name, size) == 0 && at[size] == ':')
			return strtoull(at + size + 1, NULL, 10) * KIB;
		if (!*at)
			break;
	}
	return 0;
}

/* Add all memory of the process, each shared page in full. */
static void add_cheap(struct walk *walk, const char *pid)
{
	char path[NAME_MAX + sizeof("/status")];

	(void)snprintf(path, sizeof(path), "%s/status", pid);
	if (!read_at(walk, path))
		return; /* the process is gone */
	walk->usage->tasks += field(&walk->text, "Threads") / KIB;
	walk->usage->memory += field(&walk->text, "RssAnon") +
			       field(&walk->text, "RssShmem") +
			       field(&walk->text, "VmSwap") + field(&walk->text, "VmPTE");
}

/*
 * Add the process's exact share. False when we may not read it: then its memory counts
 * in full.
 */
static bool add_share(struct walk *walk, const char *pid)
{
	char path[NAME_MAX + sizeof("/smaps_rollup")];

	(void)snprintf(path, sizeof(path), "%s/smaps_rollup", pid);
	if (!read_at(walk, path))
		return false;
	walk->usage->memory +=
		field(&walk->text, "Pss_Anon") + field(&walk->text, "SwapPss");
	walk->shared += field(&walk->text, "Pss_Shmem");
	(void)snprintf(path, sizeof(path), "%s/status", pid);
	if (read_at(walk, path))
		walk->usage->memory += field(&walk->text, "VmPTE");
	return true;
}

static bool seen_before(struct walk *walk, ino_t inode)
{
	for (size_t i = 0; i < walk->seen_count; i++) {
		if (walk->seen[i] == inode)
			return true;
	}
	if (walk->seen_count < FILES_SEEN_MAX)
		walk->seen[walk->seen_count++] = inode;
	return false;
}

static void add_memory_file(struct walk *walk, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, 0) == 0 && !seen_before(walk, st.st_ino))
		walk->files += (uint64_t)st.st_blocks * STAT_BLOCK;
}

/* Are descriptors in transit through the socket NAME? Linux 5.4 and later report this. */
static void look_at_socket(struct walk *walk, const char *pid, const char *name)
{
	char path[2 * NAME_MAX + sizeof("/fdinfo/")];

	if (walk->hides)
		return;
	(void)snprintf(path, sizeof(path), "%s/fdinfo/%s", pid, name);
	walk->hides = read_at(walk, path) && field(&walk->text, "scm_fds") > 0;
}

/*
 * Add the memory files (memfd_create) that the process has open; they need not be
 * mapped.
 */
static void add_memory_files(struct walk *walk, const char *pid)
{
	char path[NAME_MAX + sizeof("/fd")];
	int fd;
	DIR *folder;

	(void)snprintf(path, sizeof(path), "%s/fd", pid);
	fd = openat(walk->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	walk->hides = walk->hides || (fd < 0 && errno == EACCES);
	folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		fd_close(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(folder));) {
		static const char file[] = "/memfd:", socket[] = "socket:";
		char target[sizeof(file)];
		ssize_t size = readlinkat(dirfd(folder), entry->d_name, target,
					  sizeof(target) - 1);

		/*
		 * A process may be allowed to list the folder but not to read its links.
		 */
		walk->hides = walk->hides || (size < 0 && errno == EACCES);
		if (size != (ssize_t)sizeof(target) - 1)
			continue;
		if (memcmp(target, file, sizeof(file) - 1) == 0)
			add_memory_file(walk, dirfd(folder), entry->d_name);
		else if (memcmp(target, socket, sizeof(socket) - 1) == 0)
			look_at_socket(walk, pid, entry->d_name);
	}
	(void)closedir(folder);
}

/*
 * Sum of System V segments, which stay when no process is attached: the columns rss and
 * swap.
 */
static uint64_t segments(struct walk *walk)
{
	enum { COLUMN_RSS = 14, COLUMN_SWAP };
	uint64_t sum = 0;
	struct str rest, line, word;

	if (!read_at(walk, "sysvipc/shm"))
		return 0;
	rest = buf_str(&walk->text);
	(void)str_next_line(&rest, &line); /* the head */
	while (str_next_line(&rest, &line)) {
		for (int column = 0; str_next_word(&line, &word); column++) {
			if (column == COLUMN_RSS || column == COLUMN_SWAP)
				sum += strtoull(word.data, NULL, 10);
		}
	}
	return sum;
}

static void walk_processes(struct walk *walk)
{
	int fd = openat(walk->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	char self[32];

	(void)snprintf(self, sizeof(self), "%d", (int)getpid());
	if (!folder) {
		fd_close(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    strcmp(entry->d_name, self) == 0)
			continue;
		if (!walk->exact || !add_share(walk, entry->d_name))
			add_cheap(walk, entry->d_name);
		if (walk->exact)
			add_memory_files(walk, entry->d_name);
	}
	(void)closedir(folder);
}

/* Bytes of all files in memory file systems, open or not. */
static uint64_t kept_in_files(void)
{
	static const char *const folders[] = {"/tmp", "/dev/shm"};
	uint64_t sum = 0;
	struct statfs fs;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (statfs(folders[i], &fs) == 0 && fs.f_type == TMPFS_MAGIC)
			sum += (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	}
	return sum;
}

static uint64_t shared_of_machine(void)
{
	struct sysinfo machine;

	return sysinfo(&machine) == 0 ? (uint64_t)machine.sharedram * machine.mem_unit : 0;
}

void usage_begin(struct usage_memory *memory)
{
	memory->shared_at_first = shared_of_machine();
	memory->kept_at_first = kept_in_files();
}

/* The growth from *THEN to NOW. When NOW is lower, *THEN is set to NOW. */
static uint64_t growth(uint64_t *then, uint64_t now)
{
	if (now < *then)
		*then = now;
	return now - *then;
}

static void measure_exactly(struct walk *walk, uint64_t grown, uint64_t kept)
{
	uint64_t tasks = walk->usage->tasks;
	uint64_t other;

	walk->exact = true;
	walk->usage->memory = 0;
	walk->seen = memory_array(FILES_SEEN_MAX, sizeof(*walk->seen));
	walk_processes(walk);
	free(walk->seen);
	walk->usage->tasks = tasks;
	/* Most of this memory is both mapped and kept in files: take the larger sum. */
	other = walk->files + segments(walk) + kept;
	if (other < walk->shared)
		other = walk->shared;
	if (walk->hides && other < grown)
		other = grown;
	walk->usage->memory += other;
}

bool usage_measure(struct usage_memory *memory, uint64_t limit, struct usage *usage)
{
	auto_close int proc_fd =
		getpid() == 1 ? open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct walk walk = {.proc_fd = proc_fd, .usage = usage};

	*usage = (struct usage){0};
	if (proc_fd < 0)
		return false;
	buf_init(&walk.text, FILE_MAX);
	walk_processes(&walk);
	if (limit) {
		const uint64_t grown =
			growth(&memory->shared_at_first, shared_of_machine());

		if (usage->memory + grown > limit)
			measure_exactly(&walk, grown,
					growth(&memory->kept_at_first, kept_in_files()));
	}
	buf_fini(&walk.text);
	return true;
}

/* The accounts. */

enum { MICROSECONDS = 1000000 };

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / MICROSECONDS;
}

void accounts_of_children(struct accounts *accounts)
{
	struct rusage used;
	uint64_t largest;

	if (getrusage(RUSAGE_CHILDREN, &used) < 0)
		return;
	accounts->cpu_user_s = seconds_of(used.ru_utime);
	accounts->cpu_s = accounts->cpu_user_s + seconds_of(used.ru_stime);
	/* The kernel counts in blocks of this size, whatever those of the disk are. */
	accounts->written = (uint64_t)used.ru_oublock * STAT_BLOCK;
	accounts->read = (uint64_t)used.ru_inblock * STAT_BLOCK;
	accounts->cpu = accounts->io = ACCOUNTS_RUSAGE;
	largest = (uint64_t)used.ru_maxrss * KIB;
	if (accounts->memory_peak < largest)
		accounts->memory_peak = largest;
	if (accounts->processes_peak == 0)
		accounts->processes_peak = 1;
	accounts->memory = ACCOUNTS_SAMPLED;
}

static void set_bytes(struct value *object, const char *name, uint64_t bytes)
{
	value_set_integer(object, name, bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX);
}

struct value *accounts_value(const struct accounts *accounts)
{
	static const char *const names[] = {
		[ACCOUNTS_NONE] = "none",       [ACCOUNTS_CGROUP2] = "cgroup2",
		[ACCOUNTS_CGROUP1] = "cgroup1", [ACCOUNTS_RUSAGE] = "rusage",
		[ACCOUNTS_SAMPLED] = "sampled", [ACCOUNTS_PROXY] = "proxy",
	};
	struct value *object = value_new_object(), *source = value_new_object();

	value_set_real(object, "cpu_s", accounts->cpu_s);
	value_set_real(object, "cpu_user_s", accounts->cpu_user_s);
	value_set_real(object, "wall_s", accounts->wall_s);
	set_bytes(object, "memory_peak", accounts->memory_peak);
	set_bytes(object, "written", accounts->written);
	set_bytes(object, "read", accounts->read);
	set_bytes(object, "net_in", accounts->net_in);
	set_bytes(object, "net_out", accounts->net_out);
	set_bytes(object, "processes_peak", accounts->processes_peak);
	value_set_text(source, "cpu", names[accounts->cpu]);
	value_set_text(source, "memory", names[accounts->memory]);
	value_set_text(source, "io", names[accounts->io]);
	value_set_text(source, "net", names[accounts->net]);
	value_set(object, "source", source);
	value_set(object, "limit",
		  accounts->limit != NULL ? value_new_text(accounts->limit)
					  : value_new_null());
	return object;
}
