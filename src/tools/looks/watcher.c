/* watcher: inotify watches on the folders of a tree, and the names that they tell. */
#include "tools/looks/watcher.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	EVENTS_BYTES = 64 << 10,
	NUMBERS_MAX = 8 << 20, /* the kernel gives each watch a new number */
	SORT_FROM = 4096,      /* so many names are told before their doubles go */
	STACK_BYTES = 256 << 10,
};

/* Not in <linux/magic.h> of every release. */
#define MAGIC_ZFS      0x2fc12fc1
#define MAGIC_BCACHEFS 0xca451a4e

#define MASK_NAMES                                                              \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | \
	 IN_MOVE_SELF)
#define MASK_ROWS (MASK_NAMES | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB)

/* A watched folder, found by the number of its watch. */
struct watched_folder {
	char *path; /* NULL: there is no such watch */
	enum watched kind;
};

struct watcher {
	int inotify_fd, stop_fd;
	int pending_fd; /* -1: nobody polls it */
	dev_t device;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of all below */
	struct watched_folder *folders;
	size_t room;
	size_t count, count_max, files;
	struct told_names told;
	size_t sort_at;
	bool missed;
	bool is_pending; /* `pending_fd` can be read */
	struct err useless;
	alignas(struct inotify_event) char events[EVENTS_BYTES];
};

static void told_names_init(struct told_names *told)
{
	*told = (struct told_names){0};
	arena_init(&told->paths);
}

/* Add NAME; its path is copied. */
static void told_add(struct told_names *told, const struct told *name)
{
	told->names = memory_more(told->names, told->count, sizeof(*told->names));
	told->names[told->count] = *name;
	told->names[told->count++].path.data = arena_copy(&told->paths, name->path);
}

/* NAME has the path of the last one, and tells more of it. */
static void told_join(struct told_names *told, const struct told *name)
{
	struct told *last = &told->names[told->count - 1];

	last->how |= name->how;
	last->made += name->made;
	last->came += name->came;
	last->left += name->left;
}

static int compare_told(const void *a, const void *b)
{
	const struct told *left = a, *right = b;

	return strcmp(left->path.data, right->path.data);
}

/* Sort by path; of names with the same path one stays, with the bits and sums of all. */
static void told_sort(struct told_names *told)
{
	struct told_names sorted;

	if (told->count == 0)
		return;
	qsort(told->names, told->count, sizeof(*told->names), compare_told);
	told_names_init(&sorted);
	for (size_t i = 0; i < told->count; i++) {
		const struct told *name = &told->names[i];

		if (sorted.count > 0 &&
		    str_equal(sorted.names[sorted.count - 1].path, name->path))
			told_join(&sorted, name);
		else
			told_add(&sorted, name);
	}
	told_names_fini(told);
	*told = sorted;
}

/* The lock is held. */
static void give_up(struct watcher *watcher, int code, const char *why)
{
	if (watcher->useless.text[0] == '\0')
		(void)err_set(&watcher->useless, code, "%s", why);
}

static void note(struct watcher *watcher, const struct told *name)
{
	struct told_names *told = &watcher->told;

	/* A program that writes in small pieces is told again and again. */
	if (told->count > 0 && str_equal(told->names[told->count - 1].path, name->path)) {
		told_join(told, name);
		return;
	}
	told_add(told, name);
	if (told->count < watcher->sort_at)
		return;
	told_sort(told);
	watcher->sort_at = 2 * told->count > SORT_FROM ? 2 * told->count : SORT_FROM;
	watcher->missed = watcher->missed || told->count > WATCHER_NAMES_MAX;
}

static unsigned how_of(const struct inotify_event *event, enum watched kind)
{
	unsigned how = 0;

	if (event->mask & IN_CREATE)
		how |= TOLD_MADE;
	if (event->mask & (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB))
		how |= TOLD_WRITTEN;
	if (event->mask & IN_DELETE)
		how |= TOLD_GONE;
	if (event->mask & (IN_MOVED_FROM | IN_MOVED_TO))
		how |= TOLD_MOVED;
	if (kind == WATCHED_IGNORED)
		how |= TOLD_IN_IGNORED;
	if (kind == WATCHED_GIT)
		how |= TOLD_IN_GIT;
	if (event->mask & IN_ISDIR)
		how |= TOLD_FOLDER;
	return how;
}

static void folder_forget(struct watcher *watcher, size_t number)
{
	watcher->files -= watcher->folders[number].kind == WATCHED_FILE;
	free(watcher->folders[number].path);
	watcher->folders[number].path = NULL;
	watcher->count--;
}

/* One event of the kernel. */
static void take_event(struct watcher *watcher, const struct inotify_event *event)
{
	const size_t number = event->wd < 0 ? SIZE_MAX : (size_t)event->wd;
	struct watched_folder *folder;
	char path[PATH_MAX];

	if (event->mask & (IN_Q_OVERFLOW | IN_UNMOUNT)) {
		watcher->missed = true;
		return;
	}
	if (number >= watcher->room || watcher->folders[number].path == NULL)
		return; /* of a watch that was dropped */
	folder = &watcher->folders[number];
	if (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) {
		const bool is_root = folder->path[0] == '\0';

		/* The tree itself was moved or removed. */
		watcher->missed = watcher->missed || is_root;
		if (!(event->mask & IN_MOVE_SELF))
			note(watcher,
			     &(struct told){
				     .path = str_of(folder->path),
				     .how = TOLD_UNWATCHED | how_of(event, folder->kind),
			     });
		if (event->mask & IN_IGNORED)
			folder_forget(watcher, number);
		return;
	}
	if (folder->kind == WATCHED_FILE) {
		note(watcher,
		     &(struct told){.path = str_of(folder->path), .how = TOLD_WRITTEN});
		return;
	}
	/* An event without a name is of the folder itself; its own folder tells of that. */
	if (event->len == 0 || event->name[0] == '\0')
		return;
	const int size = snprintf(path, sizeof(path), "%s%s%s", folder->path,
				  folder->path[0] != '\0' ? "/" : "", event->name);
	if (size >= (int)sizeof(path))
		watcher->missed = true;
	else
		note(watcher, &(struct told){
				      .path = {path, (size_t)size},
				      .how = how_of(event, folder->kind),
				      .made = (event->mask & IN_CREATE) != 0,
				      .came = (event->mask & IN_MOVED_TO) != 0,
				      .left = (event->mask & IN_MOVED_FROM) != 0,
			      });
}

/* From here on `pending_fd` can be read, or cannot. The lock is held. */
static void set_pending(struct watcher *watcher, bool pending)
{
	eventfd_t count;

	if (watcher->pending_fd < 0 || pending == watcher->is_pending)
		return;
	watcher->is_pending = pending;
	if (pending)
		(void)eventfd_write(watcher->pending_fd, 1);
	else
		(void)eventfd_read(watcher->pending_fd, &count);
}

/* Take all events that the kernel has. The lock is held. */
static void drain(struct watcher *watcher)
{
	ssize_t size;

	/* Before the kernel has nothing any more: somebody may poll meanwhile. */
	set_pending(watcher, true);
	while (!watcher->missed && (size = read(watcher->inotify_fd, watcher->events,
						sizeof(watcher->events))) > 0) {
		for (const char *at = watcher->events; at < watcher->events + size;) {
			const struct inotify_event *event = (const void *)at;

			take_event(watcher, event);
			at += sizeof(*event) + event->len;
		}
	}
	set_pending(watcher, watcher->missed || watcher->told.count > 0);
}

/*
 * Wait for an event, then leave the kernel time to join it with others, and take all:
 * to be woken for each costs ten times as much.
 */
static void *thread_main(void *argument)
{
	struct watcher *watcher = argument;
	struct pollfd fds[] = {{.fd = watcher->stop_fd, .events = POLLIN},
			       {.fd = watcher->inotify_fd, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (poll(fds, 1, WATCHER_EVERY_MS) > 0)
			return NULL;
		(void)pthread_mutex_lock(&watcher->lock);
		drain(watcher);
		const bool missed = watcher->missed;
		(void)pthread_mutex_unlock(&watcher->lock);
		/* Nobody asks for the rest any more. */
		if (missed)
			return NULL;
	}
}

static bool thread_start(struct watcher *watcher, struct err *err)
{
	pthread_attr_t attributes;
	sigset_t all, before;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* Signals are for the thread that serves calls. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	const int code =
		pthread_create(&watcher->thread, &attributes, thread_main, watcher);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	watcher->has_thread = code == 0;
	return code == 0 || err_set(err, code, "a thread: %s", strerror(code));
}

/*
 * Does this kernel itself make all changes of the file system of FOLDER? Others change a
 * network's or a host's file system unseen.
 */
static bool is_told_of(int folder)
{
	struct statfs fs;

	if (fstatfs(folder, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case MAGIC_ZFS:
	case MAGIC_BCACHEFS:
		return true;
	default:
		return false;
	}
}

/*
 * The last watcher may have left events, which are older than all that the tree will be
 * asked for, and has perhaps said that something is pending. Its watches tell of folders
 * that have no path here, until these are added again.
 */
static void forget_last(struct watcher *watcher)
{
	while (watcher->inotify_fd >= 0 &&
	       read(watcher->inotify_fd, watcher->events, sizeof(watcher->events)) > 0)
		continue;
	watcher->is_pending = true;
	set_pending(watcher, false);
}

struct watcher *watcher_new(int root, size_t most, struct watcher_fds fds, struct err *err)
{
	struct watcher *watcher = memory_alloc(sizeof(*watcher));
	struct stat st;

	(void)pthread_mutex_init(&watcher->lock, NULL);
	told_names_init(&watcher->told);
	watcher->sort_at = SORT_FROM;
	watcher->count_max = most;
	watcher->stop_fd = eventfd(0, EFD_CLOEXEC);
	watcher->pending_fd =
		fds.pending >= 0 ? fcntl(fds.pending, F_DUPFD_CLOEXEC, 3) : -1;
	watcher->inotify_fd = fds.events >= 0 ? fcntl(fds.events, F_DUPFD_CLOEXEC, 3)
					      : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	forget_last(watcher);
	if (watcher->inotify_fd < 0 || watcher->stop_fd < 0 || fstat(root, &st) < 0)
		(void)err_set(err, errno, "inotify: %s", strerror(errno));
	else if (!is_told_of(root))
		(void)err_set(err, EOPNOTSUPP, "others may change its file system unseen");
	else if (thread_start(watcher, err)) {
		watcher->device = st.st_dev;
		return watcher;
	}
	watcher_free(watcher);
	return NULL;
}

void watcher_free(struct watcher *watcher)
{
	if (watcher == NULL)
		return;
	if (watcher->has_thread) {
		(void)eventfd_write(watcher->stop_fd, 1);
		(void)pthread_join(watcher->thread, NULL);
	}
	fd_close(&watcher->inotify_fd);
	fd_close(&watcher->stop_fd);
	fd_close(&watcher->pending_fd);
	for (size_t i = 0; i < watcher->room; i++)
		free(watcher->folders[i].path);
	free(watcher->folders);
	told_names_fini(&watcher->told);
	(void)pthread_mutex_destroy(&watcher->lock);
	free(watcher);
}

/* The folder with the watch NUMBER has the path PATH. True: it had it before. */
static bool folder_set(struct watcher *watcher, size_t number, struct str path,
		       enum watched kind)
{
	if (number >= watcher->room) {
		const size_t before = watcher->room;

		watcher->room = 2 * number > 1024 ? 2 * number : 1024;
		watcher->folders = memory_grow(watcher->folders, watcher->room,
					       sizeof(*watcher->folders));
		memset(watcher->folders + before, 0,
		       (watcher->room - before) * sizeof(*watcher->folders));
	}
	struct watched_folder *folder = &watcher->folders[number];
	const bool known = folder->path != NULL && str_is(path, folder->path);

	watcher->count += folder->path == NULL;
	watcher->files += folder->path == NULL && kind == WATCHED_FILE;
	if (!known) {
		free(folder->path);
		folder->path = memory_copy_str(path);
	}
	folder->kind = kind;
	return known;
}

static uint32_t mask_of(enum watched kind)
{
	switch (kind) {
	case WATCHED_IGNORED:
		return MASK_NAMES | IN_ONLYDIR;
	case WATCHED_FILE:
		return IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB;
	default:
		return MASK_ROWS | IN_ONLYDIR;
	}
}

static bool is_watched(const struct watcher *watcher, int number)
{
	return (size_t)number < watcher->room && watcher->folders[number].path != NULL;
}

/* CODE is that of inotify_add_watch(2); 0: the watches of `limits.watches` are used up. */
static void give_up_for_room(struct watcher *watcher, int code)
{
	char why[sizeof(watcher->useless.text)];

	if (code == 0)
		(void)snprintf(why, sizeof(why),
			       "more folders than the %zu of limits.watches",
			       watcher->count);
	else if (code == ENOSPC)
		(void)snprintf(why, sizeof(why),
			       "this user may watch no more than %zu folders now; `sysctl -w "
			       "fs.inotify.max_user_watches=524288` as root allows more",
			       watcher->count);
	else
		(void)snprintf(why, sizeof(why), "%s", strerror(code));
	give_up(watcher, code == 0 ? ENOSPC : code, why);
}

static bool add_locked(struct watcher *watcher, int fd, struct str path, enum watched kind)
{
	char name[FD_NAME_ROOM];
	struct stat st;

	if (watcher->useless.text[0] != '\0')
		return false;
	if (fstat(fd, &st) < 0) {
		give_up(watcher, errno, strerror(errno));
		return false;
	}
	/* Another mask would take the place of a folder's own. */
	if (kind == WATCHED_FILE && !S_ISREG(st.st_mode))
		return false;
	if (st.st_dev != watcher->device && !is_told_of(fd)) {
		give_up(watcher, EOPNOTSUPP, "others may change its file system unseen");
		return false;
	}
	const int number =
		inotify_add_watch(watcher->inotify_fd, fd_name(fd, name), mask_of(kind));
	if (number < 0) {
		/* A folder that we may not read is looked at by nobody else either. */
		if (errno != EACCES && errno != ENOENT)
			give_up_for_room(watcher, errno);
		return false;
	}
	if (kind == WATCHED_FILE && watcher->files >= WATCHER_FILES_MAX)
		give_up(watcher, ENOSPC, "too many files have several names (hard links)");
	else if (number > NUMBERS_MAX ||
		 (watcher->count >= watcher->count_max && !is_watched(watcher, number)))
		give_up_for_room(watcher, 0);
	else
		return folder_set(watcher, (size_t)number, path, kind);
	return false;
}

bool watcher_add(struct watcher *watcher, int fd, struct str path, enum watched kind)
{
	(void)pthread_mutex_lock(&watcher->lock);
	const bool known = add_locked(watcher, fd, path, kind);
	(void)pthread_mutex_unlock(&watcher->lock);
	return known;
}

void watcher_drop(struct watcher *watcher, struct str path)
{
	(void)pthread_mutex_lock(&watcher->lock);
	for (size_t i = 0; i < watcher->room; i++) {
		const char *own = watcher->folders[i].path;

		if (own == NULL || strncmp(own, path.data, path.size) != 0 ||
		    (own[path.size] != '\0' && own[path.size] != '/'))
			continue;
		(void)inotify_rm_watch(watcher->inotify_fd, (int)i);
		folder_forget(watcher, i);
	}
	(void)pthread_mutex_unlock(&watcher->lock);
}

bool watcher_take(struct watcher *watcher, struct told_names *told)
{
	(void)pthread_mutex_lock(&watcher->lock);
	drain(watcher);
	const bool fine = !watcher->missed && watcher->useless.text[0] == '\0';
	told_sort(&watcher->told);
	*told = watcher->told;
	told_names_init(&watcher->told);
	watcher->sort_at = SORT_FROM;
	set_pending(watcher, false);
	(void)pthread_mutex_unlock(&watcher->lock);
	return fine;
}

bool watcher_is_quiet(struct watcher *watcher)
{
	(void)pthread_mutex_lock(&watcher->lock);
	drain(watcher);
	const bool quiet = watcher->told.count == 0 && !watcher->missed &&
			   watcher->useless.text[0] == '\0';
	(void)pthread_mutex_unlock(&watcher->lock);
	return quiet;
}

const char *watcher_useless(struct watcher *watcher)
{
	return watcher->useless.text[0] != '\0' ? watcher->useless.text : NULL;
}
