/*
 * walk_folder: one folder of a walk: opened from the start by its whole path, read, its
 * entries held against the rules and told to the visitor; see walk_parts.h.
 */
#include "tools/search/walk_parts.h"

#include "base/fd.h"
#include "base/memory.h"
#include "tools/search/rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* Largest directory entry: its header and NAME_MAX with NUL, rounded up. */
	ENTRY_BYTES_MAX = 280,
	/* Entries between two questions whether to stop: some 50 us of listing. */
	STOP_EVERY = 64,
};

static const struct dirent64 *entry_at(const char *entries, size_t at)
{
	return (const struct dirent64 *)(const void *)(entries + at);
}

/* A folder on its way to being visited. */
struct reading {
	const struct walk_item *item;
	struct rules *rules; /* inside it */
	int fd;
	uint64_t folders, files, ignored;
};

/*
 * Give work away when somebody has none: waiting folders, else the second half of the entries from
 * AT to SIZE, so that the files of one large folder are read by all. Returns the new SIZE.
 */
static size_t walker_share_entries(struct walker *walker, const struct reading *reading,
				   const char *entries, size_t at, size_t size)
{
	const struct walk_item *item = reading->item;
	struct walk *walk = walker->walk;
	size_t middle = at;
	struct walk_item *part;

	if (at == size || !walker_others_idle(walker))
		return size;
	if (walker->stack.count > 0) {
		walker_share_folders(walker, 0);
		return size;
	}
	/* A folder that is counted stays in one piece. */
	if (walk->options->with_folders)
		return size;
	while (middle < size && middle - at < (size - at) / 2)
		middle += entry_at(entries, middle)->d_reclen;
	if (middle == size)
		return size;
	part = walk_item_new(walk, reading->rules,
			     (struct str){item->path, item->path_size},
			     (struct str){entries + middle, size - middle});
	part->depth = item->depth;
	part->ignored = item->ignored;
	walk_share(walk, &part, 1);
	return middle;
}

static enum walk_kind entry_kind(int folder_fd, const struct dirent64 *entry)
{
	mode_t mode = (mode_t)DTTOIF(entry->d_type);
	struct stat st;

	if (entry->d_type == DT_UNKNOWN) {
		if (fstatat(folder_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return WALK_OTHER;
		mode = st.st_mode;
	}
	if (S_ISREG(mode))
		return WALK_FILE;
	if (S_ISDIR(mode))
		return WALK_FOLDER;
	return S_ISLNK(mode) ? WALK_LINK : WALK_OTHER;
}

/* Is PATH on the way to UNDER, or in it? */
static bool path_leads(struct str path, struct str under)
{
	size_t common = path.size < under.size ? path.size : under.size;

	if (memcmp(path.data, under.data, common) != 0)
		return false;
	if (path.size == under.size)
		return true;
	return path.size < under.size ? under.data[common] == '/'
				      : path.data[common] == '/';
}

static void walker_found_folder(struct walker *walker, struct reading *reading,
				struct str path, bool ignored)
{
	struct walk *walk = walker->walk;
	const struct walk_options *options = walk->options;
	size_t depth = reading->item->depth + 1;
	struct walk_item *item;

	if (ignored && !options->ignored_only) {
		walker->ignored++;
		reading->ignored++;
		return;
	}
	reading->folders++;
	if (reading->item->count_only)
		return;
	if (options->depth > 0 && depth >= options->depth && !options->with_folders)
		return;
	if (walk->under.size > 0 && !path_leads(path, walk->under))
		return;
	if (atomic_load_explicit(&walk->pending, memory_order_relaxed) > WALK_PENDING_MAX) {
		walk_end_with(walk, WALK_FULL);
		return;
	}
	item = walk_item_new(walk, reading->rules, path, STR(""));
	item->depth = depth;
	item->ignored = ignored;
	item->count_only = options->depth > 0 && depth >= options->depth;
	walk_stack_push(&walker->stack, item);
}

static void walker_found(struct walker *walker, struct reading *reading,
			 const struct dirent64 *entry)
{
	const struct walk_options *options = walker->walk->options;
	const struct walk_item *item = reading->item;
	size_t name_size = strlen(entry->d_name);
	size_t slash = item->path_size > 0 ? 1 : 0;
	struct str path = {walker->path + walker->path_at,
			   item->path_size + slash + name_size};
	struct str rules_path = {walker->path, walker->path_at + path.size};
	enum walk_kind kind;
	bool ignored;

	walker->entries++;
	if (path.size >= PATH_MAX) {
		walker->too_long++;
		return;
	}
	memcpy(walker->path + walker->path_at + item->path_size + slash, entry->d_name,
	       name_size + 1);
	kind = entry_kind(reading->fd, entry);
	ignored = item->ignored ||
		  rules_ignore(reading->rules, rules_path, kind == WALK_FOLDER);
	if (kind == WALK_FOLDER) {
		walker_found_folder(walker, reading, path, ignored);
	} else if (ignored != options->ignored_only) {
		walker->ignored += ignored;
		reading->ignored += ignored;
	} else {
		struct walk_entry found = {
			.kind = kind,
			.folder_fd = reading->fd,
			.folder = walker->folder,
			.name = walker->path + walker->path_at + item->path_size + slash,
			.path = path,
			.depth = item->depth + 1,
		};

		reading->files++;
		if (!item->count_only)
			options->visit(options->owner, walker, &found);
	}
}

static bool name_is_passed(const char *name)
{
	return name[0] == '.' &&
	       (name[1] == '\0' || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0);
}

static void walker_visit_entries(struct walker *walker, struct reading *reading,
				 const char *entries, size_t size)
{
	struct walk *walk = walker->walk;
	size_t passed = 0;

	for (size_t at = 0; at < size;) {
		const struct dirent64 *entry = entry_at(entries, at);

		at += entry->d_reclen;
		if (name_is_passed(entry->d_name))
			continue;
		walker_found(walker, reading, entry);
		size = walker_share_entries(walker, reading, entries, at, size);
		if (++passed % STOP_EVERY == 0) {
			if (atomic_fetch_add(&walk->entries, STOP_EVERY) > walk->entries_max)
				walk_end_with(walk, WALK_FULL);
			if (walker_stopped(walker))
				return;
		}
	}
	(void)atomic_fetch_add(&walk->entries, passed % STOP_EVERY);
}

/*
 * Is nothing behind the LAST entry? ext4, btrfs and others put the highest position there
 * is behind it: where they do, the call that would say "no more" is spared.
 */
static bool entry_is_last(const struct dirent64 *last)
{
	return last->d_off == INT64_MAX;
}

/* Fill the buffer as far as it goes; *END when that was all. */
static size_t walker_fill(struct walker *walker, int fd, bool *end)
{
	size_t used = 0;
	size_t last;

	*end = false;
	while (WALK_FOLDER_BUFFER - used >= ENTRY_BYTES_MAX) {
		ssize_t n =
			getdents64(fd, walker->buffer + used, WALK_FOLDER_BUFFER - used);

		if (n <= 0) {
			/*
			 * EINVAL: the next entry does not fit; else it was removed
			 * meanwhile.
			 */
			*end = n == 0 || errno != EINVAL || used == 0;
			break;
		}
		last = used;
		used += (size_t)n;
		while (last + entry_at(walker->buffer, last)->d_reclen < used)
			last += entry_at(walker->buffer, last)->d_reclen;
		*end = entry_is_last(entry_at(walker->buffer, last));
		if (*end)
			break;
	}
	return used;
}

static struct rules_signs entries_signs(const char *entries, size_t size, bool all)
{
	struct rules_signs signs = {.gitignore = !all};

	for (size_t at = 0; at < size; at += entry_at(entries, at)->d_reclen) {
		const char *name = entry_at(entries, at)->d_name;

		if (strncmp(name, ".git", 4) != 0)
			continue;
		signs.git = signs.git || name[4] == '\0';
		signs.gitignore = signs.gitignore || strcmp(name, ".gitignore") == 0;
	}
	return signs;
}

static struct rules *walker_enter(struct walker *walker, const struct walk_item *item,
				  int fd, size_t size, bool all)
{
	const struct walk_start *start = walker->walk->start;
	struct rules_signs signs = entries_signs(walker->buffer, size, all);
	struct str folder = {walker->path, walker->path_at + item->path_size};

	if (start->ignored)
		return NULL;
	if (item->path_size == 0)
		folder = buf_str(&start->rules_path);
	/* A folder too large for one buffer may have its .git in a later one. */
	if (!all)
		return rules_enter_unseen(item->rules, &start->rules_place, fd, folder);
	return rules_enter(item->rules, &start->rules_place, fd, folder, signs);
}

/* The whole path from the start: nothing but the start need be kept open. */
static int walker_open_path(const struct walker *walker, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, walker->walk->start->fd, path, &how, sizeof(how));
}

/* Give the owner of the folder PATH all permissions on it, if some are missing. */
static void walker_mend(const struct walker *walker, const char *path)
{
	char name[FD_NAME_ROOM];
	struct stat st;
	auto_close int fd = walker_open_path(walker, path, O_PATH);

	if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IRWXU) == S_IRWXU)
		return;
	(void)!chmod(fd_name(fd, name), (st.st_mode & 07777) | S_IRWXU);
}

static int walker_open(struct walker *walker, const struct walk_item *item)
{
	const char *path = item->path_size > 0 ? item->path : ".";
	int fd = walker_open_path(walker, path, O_RDONLY | O_NONBLOCK);

	if (fd >= 0 || errno != EACCES || !walker->walk->options->opens)
		return fd;
	auto_free char *above = memory_copy(path);
	for (char *slash = strchr(above, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		walker_mend(walker, above);
		*slash = '/';
	}
	walker_mend(walker, path);
	return walker_open_path(walker, path, O_RDONLY | O_NONBLOCK);
}

/* Is it still there, and unreadable? Then count it. */
static bool walker_cannot_open(struct walker *walker, const struct walk_item *item)
{
	struct walk *walk = walker->walk;

	/* Removed, or exchanged for something else, since its name was read. */
	if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
		return false;
	walker->unreadable++;
	(void)pthread_mutex_lock(&walk->lock);
	if (walk->example->size == 0)
		(void)buf_addstr(walk->example,
				 item->path_size > 0 ? str_of(item->path) : STR("."));
	(void)pthread_mutex_unlock(&walk->lock);
	return true;
}

static void walker_visit_folder(struct walker *walker, const struct reading *reading)
{
	const struct walk_options *options = walker->walk->options;
	const struct walk_item *item = reading->item;
	const char *slash = strrchr(item->path, '/');
	struct walk_entry found = {
		.kind = WALK_FOLDER,
		.folder_fd = reading->fd,
		.name = slash ? slash + 1 : item->path,
		.path = {item->path, item->path_size},
		.depth = item->depth,
		.folders = reading->folders,
		.files = reading->files,
		.ignored = reading->ignored,
	};

	if (options->with_folders)
		options->visit(options->owner, walker, &found);
}

void walker_read(struct walker *walker, const struct walk_item *item)
{
	auto_close int fd = walker_open(walker, item);
	struct reading reading = {.item = item, .fd = fd};
	bool first = true;
	bool end = false;

	if (fd < 0) {
		if (walker_cannot_open(walker, item))
			walker_visit_folder(walker, &reading);
		return;
	}
	memcpy(walker->path + walker->path_at, item->path, item->path_size);
	if (item->path_size > 0)
		walker->path[walker->path_at + item->path_size] = '/';
	walker->folder++;
	if (item->part) {
		reading.rules = rules_ref(item->rules);
		walker_visit_entries(walker, &reading, item->part, item->part_size);
		rules_unref(reading.rules);
		return;
	}
	walker->folders++;
	while (!end && !walker_stopped(walker)) {
		size_t size = walker_fill(walker, fd, &end);

		if (first)
			reading.rules = walker_enter(walker, item, fd, size, end);
		first = false;
		walker_visit_entries(walker, &reading, walker->buffer, size);
	}
	walker_visit_folder(walker, &reading);
	rules_unref(reading.rules);
}
