/* fresh: remounts layers, so that their memory of the folders below is dropped. */

#include "cell/layers/fresh.h"

#include "base/fd.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	WAIT_MS = 500,  /* the anchor is busy with mounts of its own at most */
	PIECE_MS = 100, /* of one wait */
	MS_NS = 1000000,
};

/* A worker raises `wanted`; the anchor puts into `done` what it found there before. */
struct fresh_counts {
	uint32_t wanted, done;
	uint32_t failed; /* the last remount, of one layer at least, did */
};

static bool is_layer(const struct view_entry *entry)
{
	return entry->kind == VIEW_OVERLAY && entry->lasts != VIEW_LASTS_PROJECT &&
	       !entry->copied;
}

bool fresh_open(struct fresh *fresh, const struct view *view, struct err *err)
{
	int ends[2];
	size_t i = 0;

	*fresh = (struct fresh){.anchor = -1, .worker = -1};
	while (i < view->count && !is_layer(&view->entries[i]))
		i++;
	if (i == view->count)
		return true;
	void *page = mmap(NULL, sizeof(struct fresh_counts), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_set(err, errno, "the anchor's questions: %s", strerror(errno));
	fresh->counts = page;
	fresh->anchor = ends[0];
	fresh->worker = ends[1];
	return true;
}

bool fresh_ask(const struct fresh *fresh)
{
	const struct timespec piece = {.tv_nsec = PIECE_MS * MS_NS};
	struct fresh_counts *counts = fresh->counts;

	if (counts == NULL)
		return true;
	const uint32_t mine = __atomic_add_fetch(&counts->wanted, 1, __ATOMIC_SEQ_CST);
	/* A full socket is as good as a message: the anchor has not read it yet. */
	(void)!send(fresh->worker, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (int i = 0; i < WAIT_MS / PIECE_MS; i++) {
		const uint32_t done = __atomic_load_n(&counts->done, __ATOMIC_SEQ_CST);

		if ((int32_t)(done - mine) >= 0)
			return __atomic_load_n(&counts->failed, __ATOMIC_SEQ_CST) == 0;
		(void)syscall(SYS_futex, &counts->done, FUTEX_WAIT, done, &piece, NULL, 0);
	}
	return false;
}

/*
 * Remount the tree below the layer ENTRY, where it is made of several folders: a worker looks
 * there for the base of what it finds in the layer.
 */
static bool remount_lower(const struct view_entry *entry)
{
	const bool fine = fchdir(entry->layer) == 0 &&
			  mount(NULL, VIEW_LAYER_LOWER, NULL,
				MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) == 0;

	return chdir("/") == 0 && fine;
}

static bool remount(const struct view_entry *entry)
{
	const bool reads = entry->lasts == VIEW_LASTS_NOTHING;

	return mount(NULL, entry->path, NULL,
		     MS_REMOUNT | MS_NOSUID | MS_NODEV | (reads ? MS_RDONLY : 0),
		     NULL) == 0 &&
	       (entry->number == 0 || reads || remount_lower(entry));
}

void fresh_answer(const struct fresh *fresh, const struct view *view)
{
	struct fresh_counts *counts = fresh->counts;
	bool failed = false;
	char byte;

	while (recv(fresh->anchor, &byte, 1, MSG_DONTWAIT) > 0)
		;
	const uint32_t wanted = __atomic_load_n(&counts->wanted, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];

		if (is_layer(entry))
			failed |= !remount(entry);
	}
	__atomic_store_n(&counts->failed, failed, __ATOMIC_SEQ_CST);
	__atomic_store_n(&counts->done, wanted, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &counts->done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
