/* undo_store: the folder of logs; see undo_store.h. */
#include "undo/undo_store.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "files/rights.h"
#include "undo/undo_store_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PROJECT_DIGITS = 16, /* of the workspace's hash, as for the name of its home */
	NUMBER_TRIES = 64,   /* other processes may make logs at the same time */
};

static int open_folder(int at, const char *name, bool make)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && make &&
	    (mkdirat(at, name, 0700) == 0 || errno == EEXIST))
		fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd;
}

bool undo_log_number(const char *name, uint32_t *number)
{
	char *end;

	if (strlen(name) != 12 || strspn(name, "0123456789") != 8 ||
	    strcmp(name + 8, ".log") != 0)
		return false;
	*number = (uint32_t)strtoul(name, &end, 10);
	return *number > 0;
}

static void log_name(uint32_t number, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%08" PRIu32 ".log", number % 100000000);
}

static uint32_t last_number(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	uint32_t last = 0, number;

	if (names == NULL) {
		fd_close(&fd);
		return 0;
	}
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (undo_log_number(at->d_name, &number) && number > last)
			last = number;
	}
	(void)closedir(names);
	return last;
}

/*
 * Lock the store OWN for WORKSPACE, so that nobody prunes it. -1: it is just being
 * removed, or cannot be locked; the second case leaves the store usable but unprotected.
 */
static int hold(int own, const char *workspace)
{
	auto_close int fd = openat(own, UNDO_USED_NAME,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
		return -1;
	if (st.st_size == 0)
		(void)fd_write_all(fd, workspace, strlen(workspace), NULL);
	return fd_take(&fd);
}

static bool open_store(const char *folder, const char *workspace, bool make,
		       struct undo_store **store, struct err *err)
{
	char project[HASH_HEX + 1];

	*store = NULL;
	hash_text(str_of(workspace), project);
	project[PROJECT_DIGITS] = '\0';
	if (make && !fd_make_folders(folder, err))
		return false;
	auto_close int all = open_folder(AT_FDCWD, folder, make);
	auto_close int own = all >= 0 ? open_folder(all, project, make) : -1;
	if (own < 0)
		return (!make && errno == ENOENT) ||
		       err_set(err, errno, "%s/%s: %s", folder, project, strerror(errno));
	auto_close int used = make ? hold(own, workspace) : -1;
	/*
	 * Another process pruned the store between opening and locking it: make a new
	 * one.
	 */
	for (int i = 0; make && used < 0 && i < NUMBER_TRIES; i++) {
		fd_close(&own);
		own = open_folder(all, project, true);
		used = own >= 0 ? hold(own, workspace) : -1;
	}
	if (own < 0)
		return err_set(err, errno, "%s/%s: %s", folder, project, strerror(errno));
	*store = memory_alloc(sizeof(**store));
	(*store)->folder = fd_take(&own);
	(*store)->used = fd_take(&used);
	(*store)->last = last_number((*store)->folder);
	(*store)->workspace = memory_copy(workspace);
	return true;
}

bool undo_store_open(const char *folder, const char *workspace, struct undo_store **store,
		     struct err *err)
{
	return open_store(folder, workspace, true, store, err);
}

bool undo_store_open_old(const char *folder, const char *workspace,
			 struct undo_store **store, struct err *err)
{
	return open_store(folder, workspace, false, store, err);
}

struct undo_store *undo_store_in_memory(void)
{
	struct undo_store *store = memory_alloc(sizeof(*store));

	store->folder = -1;
	store->used = -1;
	return store;
}

static int memory_log(struct undo_store *store, uint32_t *number, struct err *err)
{
	int fd = memfd_create("glovebox-undo", MFD_CLOEXEC);

	if (fd < 0) {
		(void)err_set(err, errno, "memory for undo: %s", strerror(errno));
		return -1;
	}
	*number = ++store->last;
	store->memory = memory_grow(store->memory, store->last, sizeof(*store->memory));
	store->memory[store->last - 1] = fd;
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

void undo_store_close(struct undo_store *store)
{
	if (store == NULL)
		return;
	for (uint32_t i = 0; store->memory != NULL && i < store->last; i++)
		fd_close(&store->memory[i]);
	if (store->list_name[0] != '\0')
		(void)unlinkat(store->folder, store->list_name, 0);
	undo_blanks_fini(&store->blank_logs);
	undo_blanks_fini(&store->blank_steps);
	fd_close(&store->used);
	fd_close(&store->folder);
	free(store->workspace);
	free(store->rights_text);
	rights_free(store->rights);
	free(store->memory);
	free(store);
}

/*
 * Make a log called NAME unless the name exists: link BLANK (and take it), or create a
 * file.
 */
static int named_log(const struct undo_store *store, int *blank, const char *name)
{
	if (*blank >= 0) {
		if (fd_link(*blank, store->folder, name))
			return fd_take(blank);
		if (errno == EEXIST)
			return -1;
		/* The link needs /proc, which is missing here. */
		fd_close(blank);
	}
	int fd = openat(store->folder, name,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* While a process holds this lock, undo_store_tidy does not remove the log. */
	if (fd >= 0)
		(void)flock(fd, LOCK_SH | LOCK_NB);
	return fd;
}

static int next_log(struct undo_store *store, uint32_t *number, struct err *err)
{
	auto_close int blank = undo_blanks_take(&store->blank_logs);
	char name[UNDO_NAME_MAX];
	int fd = -1;

	for (int i = 0; fd < 0 && i < NUMBER_TRIES; i++) {
		if (i > 0 && errno != EEXIST)
			break;
		/* Another process has used this number: look up the last one. */
		if (i == 1)
			store->last = last_number(store->folder);
		*number = ++store->last;
		log_name(*number, name);
		fd = named_log(store, &blank, name);
	}
	if (fd < 0)
		(void)err_set(err, errno, "the undo store: %s", strerror(errno));
	return fd;
}

int undo_store_new_log(struct undo_store *store, const struct undo_meta *meta,
		       uint32_t *number, struct err *err)
{
	if (store->folder < 0)
		return memory_log(store, number, err);
	auto_close int fd = next_log(store, number, err);
	if (fd < 0)
		return -1;
	if (!undo_store_write_step(store, *number, meta, err)) {
		undo_store_drop_log(store, *number);
		return -1;
	}
	store->writes = true;
	return fd_take(&fd);
}

int undo_store_blank_log(const struct undo_store *store)
{
	int fd = openat(store->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)flock(fd, LOCK_SH | LOCK_NB);
	return fd;
}

uint32_t undo_store_next_number(struct undo_store *store)
{
	return ++store->last;
}

bool undo_store_name_log(struct undo_store *store, int fd, uint32_t number,
			 const struct undo_meta *meta, struct err *err)
{
	char name[UNDO_NAME_MAX];

	log_name(number, name);
	/*
	 * The log gets its name first. With the name, the description beside it is ours
	 * to write.
	 */
	if (!fd_link(fd, store->folder, name)) {
		const int code = errno;
		if (code == EEXIST)
			store->last = last_number(store->folder);
		return err_set(err, code, "the undo store: %s", strerror(code));
	}
	if (undo_store_write_step(store, number, meta, err))
		return true;
	undo_store_drop_log(store, number);
	return false;
}

int undo_store_open_log(const struct undo_store *store, uint32_t number, bool writes)
{
	char name[UNDO_NAME_MAX];

	if (store->folder < 0) {
		errno = ENOENT;
		return number > 0 && number <= store->last
			       ? fcntl(store->memory[number - 1], F_DUPFD_CLOEXEC, 3)
			       : -1;
	}
	log_name(number, name);
	return openat(store->folder, name,
		      (writes ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
}

void undo_store_drop_log(const struct undo_store *store, uint32_t number)
{
	char name[UNDO_NAME_MAX];

	if (store->folder < 0 && number > 0 && number <= store->last)
		fd_close(&store->memory[number - 1]);
	if (store->folder < 0)
		return;
	undo_store_drop_step(store, number);
	log_name(number, name);
	(void)unlinkat(store->folder, name, 0);
}

bool undo_store_is_used(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_size > 0;
}

int undo_store_scratch(const struct undo_store *store, struct err *err)
{
	int fd = openat(store->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	/* When the file system has no nameless files, use memory. */
	if (fd < 0) {
		fd = memfd_create("glovebox-undo", MFD_CLOEXEC);
		if (fd < 0)
			(void)err_set(err, errno, "the undo store: %s", strerror(errno));
	}
	return fd;
}

static void list_name(const struct undo_store *store, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%s%s", store->rights_hash, UNDO_LIST_ENDING);
}

int undo_store_open_list(const struct undo_store *store, struct err *err)
{
	char name[UNDO_NAME_MAX];

	list_name(store, name);
	int fd = openat(store->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		(void)err_set(err, errno, "the list of the workspace: %s", strerror(errno));
	else if (fd < 0)
		(void)fd_memory_file("glovebox-list", STR(""), &fd, err);
	return fd;
}

int undo_store_new_list(struct undo_store *store, struct err *err)
{
	(void)snprintf(store->list_name, sizeof(store->list_name), "%s%s.%d",
		       store->rights_hash, UNDO_LIST_ENDING, (int)getpid());
	(void)unlinkat(store->folder, store->list_name, 0);
	int fd = openat(store->folder, store->list_name,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		(void)err_set(err, errno, "the list of the workspace: %s", strerror(errno));
	return fd;
}

bool undo_store_take_list(struct undo_store *store, struct err *err)
{
	char name[UNDO_NAME_MAX];

	list_name(store, name);
	if (renameat(store->folder, store->list_name, store->folder, name) < 0)
		return err_set(err, errno, "the list of the workspace: %s", strerror(errno));
	store->list_name[0] = '\0';
	return true;
}

static bool is_hex(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (strchr("0123456789abcdef", text.data[i]) == NULL || text.data[i] == '\0')
			return false;
	}
	return text.size > 0;
}

/*
 * Is NAME "ab/" with 38 or 62 digits, or "pack/pack-" with digits and an ending of
 * letters?
 */
static bool is_object_name(const char *name)
{
	struct str text = str_of(name);
	struct str pack = STR("pack/pack-");

	if (str_starts(text, pack)) {
		size_t dot = str_find(text, STR("."), pack.size);
		struct str ending =
			str_part(text, dot == (size_t)-1 ? text.size : dot + 1, text.size);
		if (dot == (size_t)-1 || ending.size == 0 || ending.size > 8)
			return false;
		for (size_t i = 0; i < ending.size; i++) {
			if (ending.data[i] < 'a' || ending.data[i] > 'z')
				return false;
		}
		return dot - pack.size <= 64 &&
		       is_hex(str_part(text, pack.size, dot - pack.size));
	}
	return (text.size == 41 || text.size == 65) && text.data[2] == '/' &&
	       is_hex(str_part(text, 0, 2)) && is_hex(str_part(text, 3, text.size));
}

/*
 * Open the folder of NAME in the store, making it when missing, and set *LAST to the last
 * name.
 */
static int open_kept(const struct undo_store *store, const char *name, const char **last)
{
	char first[8];
	auto_close int all = open_folder(store->folder, UNDO_OBJECTS_NAME, true);
	const char *slash = strchr(name, '/');

	*last = slash + 1;
	(void)snprintf(first, sizeof(first), "%.*s", (int)(slash - name), name);
	return all >= 0 ? open_folder(all, first, true) : -1;
}

bool undo_store_link(const struct undo_store *store, int objects, const char *name)
{
	const char *last;
	struct stat st;

	if (!is_object_name(name)) {
		errno = EINVAL;
		return false;
	}
	auto_close int folder = open_kept(store, name, &last);
	auto_close int file = fd_open_beneath(objects, name, O_PATH);
	if (folder < 0 || file < 0 || fstat(file, &st) < 0)
		return false;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return false;
	}
	return fd_link(file, folder, last) || errno == EEXIST;
}

int undo_store_linked(const struct undo_store *store, const char *name)
{
	const char *last;

	if (!is_object_name(name)) {
		errno = EINVAL;
		return -1;
	}
	auto_close int folder = open_kept(store, name, &last);
	return folder >= 0 ? openat(folder, last, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

bool undo_store_links_from(const struct undo_store *store, int objects)
{
	struct statx here, there;

	return statx(store->folder, "", AT_EMPTY_PATH, STATX_MNT_ID, &here) == 0 &&
	       statx(objects, "", AT_EMPTY_PATH, STATX_MNT_ID, &there) == 0 &&
	       here.stx_dev_major == there.stx_dev_major &&
	       here.stx_dev_minor == there.stx_dev_minor &&
	       (here.stx_mask & there.stx_mask & STATX_MNT_ID) != 0 &&
	       here.stx_mnt_id == there.stx_mnt_id;
}
