/* reading: a walk over /proc; see reading.h. */
#include "process/reading.h"

#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

enum {
	FILE_MAX = 16 << 10, /* stat, status, syscall and fdinfo are below 4 KiB */
	POLLED_MAX = 16,     /* descriptors of one poll that are looked at */
	SELECTED_MAX = 256,  /* and of one select */
	FIELD_STATE = 1,     /* of /proc/PID/stat, from the end of the name on */
	FIELD_GROUP = 3,
	PTS_MAJOR = 136, /* the first of /dev/pts, 256 of them to each (devices.txt of Linux) */
	TTY_MAJOR = 5, /* /dev/tty: whatever terminal it has, here this one */
};

struct look {
	int proc_fd;
	const char *pid;
	dev_t tty;
	struct buf text;
};

static bool read_file(struct look *look, const char *name)
{
	char path[NAME_MAX + sizeof("/fdinfo/") + 16];

	(void)snprintf(path, sizeof(path), "%s/%s", look->pid, name);
	return fd_read_at(look->proc_fd, path, &look->text);
}

/* Does it sleep, and belong to GROUP? */
static bool sleeps_in(struct look *look, pid_t group)
{
	bool sleeps = false;
	struct str rest, word;
	const char *at;

	if (!read_file(look, "stat"))
		return false;
	at = strrchr(look->text.data, ')');
	rest = str_of(at);
	for (int i = 0; at != NULL && i <= FIELD_GROUP && str_next_word(&rest, &word); i++) {
		if (i == FIELD_STATE)
			sleeps = *word.data == 'S';
		else if (i == FIELD_GROUP)
			return sleeps && strtol(word.data, NULL, 10) == group;
	}
	return false;
}

static bool is_terminal(const struct look *look, uint64_t fd)
{
	char path[NAME_MAX + sizeof("/fd/") + 24];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/fd/%d", look->pid, (int)fd);
	return fstatat(look->proc_fd, path, &st, 0) == 0 && S_ISCHR(st.st_mode) &&
	       (st.st_rdev == look->tty || st.st_rdev == makedev(TTY_MAJOR, 0));
}

static size_t read_memory(const struct look *look, uint64_t address, void *to, size_t size)
{
	char path[NAME_MAX + sizeof("/mem")];
	ssize_t got;

	(void)snprintf(path, sizeof(path), "%s/mem", look->pid);
	auto_close int fd = openat(look->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || address == 0 || address > INT64_MAX)
		return 0;
	got = pread(fd, to, size, (off_t)address);
	return got > 0 ? (size_t)got : 0;
}

static bool polls_terminal(const struct look *look, uint64_t list, uint64_t count)
{
	struct pollfd fds[POLLED_MAX];
	size_t size = read_memory(look, list, fds, sizeof(fds)) / sizeof(fds[0]);

	for (size_t i = 0; i < size && i < count; i++) {
		if (fds[i].fd >= 0 && (fds[i].events & POLLIN) != 0 &&
		    is_terminal(look, (uint64_t)fds[i].fd))
			return true;
	}
	return false;
}

static bool selects_terminal(const struct look *look, uint64_t count, uint64_t set)
{
	unsigned char bits[SELECTED_MAX / CHAR_BIT];
	size_t size = read_memory(look, set, bits, sizeof(bits)) * CHAR_BIT;

	for (size_t i = 0; i < size && i < count; i++) {
		if ((bits[i / CHAR_BIT] >> (i % CHAR_BIT) & 1) != 0 && is_terminal(look, i))
			return true;
	}
	return false;
}

/* Lines of fdinfo: "tfd:        0 events:       19 data: …". */
static bool epoll_has_terminal(struct look *look, uint64_t fd)
{
	char name[sizeof("fdinfo/") + 16];

	(void)snprintf(name, sizeof(name), "fdinfo/%d", (int)fd);
	if (!read_file(look, name))
		return false;
	for (const char *at = look->text.data; (at = strstr(at, "tfd:")) != NULL;) {
		char *end;
		const uint64_t target = strtoull(at + 4, &end, 10);
		const char *events = strstr(end, "events:");
		if (events != NULL && (strtoull(events + 7, NULL, 16) & POLLIN) != 0 &&
		    is_terminal(look, target))
			return true;
		at = end;
	}
	return false;
}

/* "0 0x3 0x7ffd… …": the call's number and what it was given; "running" for none. */
static bool waits_to_read(struct look *look, struct reading *found)
{
	uint64_t words[4] = {0};
	char *at;

	if (!read_file(look, "syscall") || look->text.data[0] < '0' ||
	    look->text.data[0] > '9')
		return false;
	at = look->text.data;
	words[0] = strtoull(at, &at, 10);
	for (size_t i = 1; i < 4; i++)
		words[i] = strtoull(at, &at, 16);
	found->at = words[0];
	found->arg = words[1];
	switch (words[0]) {
	case SYS_read:
	case SYS_readv:
		return is_terminal(look, words[1]);
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_ppoll:
		return polls_terminal(look, words[1], words[2]);
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_pselect6:
		return selects_terminal(look, words[1], words[2]);
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return epoll_has_terminal(look, words[1]);
	default:
		return false;
	}
}

static bool count_rests(struct look *look, uint64_t *rests)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	const char *at;

	if (!read_file(look, "status"))
		return false;
	at = strstr(look->text.data, name);
	*rests = at != NULL ? strtoull(at + sizeof(name) - 1, NULL, 10) : 0;
	return at != NULL;
}

struct reading reading_find(int master)
{
	struct reading found = {0};
	struct look look = {0};
	pid_t group = 0;
	unsigned slave = 0;
	DIR *folder;

	if (ioctl(master, TIOCGPGRP, &group) < 0 || group <= 0 ||
	    ioctl(master, TIOCGPTN, &slave) < 0)
		return found;
	folder = opendir("/proc");
	if (folder == NULL)
		return found;
	look.proc_fd = dirfd(folder);
	look.tty = makedev(PTS_MAJOR + (slave >> 8), slave & 0xff);
	buf_init(&look.text, FILE_MAX);
	for (struct dirent *entry; found.pid == 0 && (entry = readdir(folder)) != NULL;) {
		struct reading here = {0};

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		look.pid = entry->d_name;
		if (!sleeps_in(&look, group) || !waits_to_read(&look, &here) ||
		    !count_rests(&look, &here.rested))
			continue;
		here.pid = (int)strtol(entry->d_name, NULL, 10);
		found = here;
	}
	buf_fini(&look.text);
	(void)closedir(folder);
	return found;
}

bool reading_is_same(const struct reading *a, const struct reading *b)
{
	return a->pid == b->pid && a->rested == b->rested && a->at == b->at &&
	       a->arg == b->arg;
}
