/* review: makes, finds, locks, describes and removes the layers of a workspace. */

#include "view/review.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "files/copied.h"
#include "sandbox/view.h"
#include "view/copy.h"
#include "view/removal.h"
#include "view/saving.h"
#include "view/shape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	VERSION = 1,
	PROJECT_DIGITS = 16,   /* of the workspace's hash, as for the undo store */
	META_BYTES = 16 << 20, /* rights hold a key for each path that is closed */
	TEXT_BYTES = 4 * PATH_MAX,
	COMMAND_BYTES = 1024,           /* of a command, to be shown */
	HOLDER_BYTES = 256,             /* what the file of the lock says of its holder */
	LOCK_TRIES = 5,                 /* of 2 ms */
	ID_TRIES = 16,                  /* another process may take the same id */
	KEPT_MS = 7 * 24 * 3600 * 1000, /* for landed and dropped layers */
	MAKING_MS = 60 * 1000,          /* a layer is made in a moment */
	MS_NS = 1000000,
	LOG_MODE = 0600,
};

#define META_NAME     "meta.json"
#define META_TEMP     "meta.json.tmp"
#define LOCK_NAME     "lock"
#define TREES_NAME    "trees"
#define UNDO_NAME     "undo"
#define LOG_NAME      "changes.log"
#define MAKING_ENDING ".tmp"
#define SAVED_NAME    "saved"
#define SAVED_TEMP    "saved.tmp"
#define BUILT_ENDING  ".new"
#define MEMORY_NAME   "glovebox-review-"
#define UNSYNCED      "unsynced."
#define SPARE_NAME    ".spare"
#define FIRST_TREE    "0"

enum { MEMORY_PLACES = 2, MEMORY_ROOM = 64 };
enum { MAKING_ROOM = REVIEW_ID + sizeof(MAKING_ENDING) };
enum { BUILT_ROOM = REVIEW_ID + sizeof(BUILT_ENDING) };

static const char *const state_names[REVIEW_STATES] = {"open", "landed", "dropped"};

const char *review_state_name(enum review_state state)
{
	return state_names[state];
}

/* Descriptions. */

/* A number that is not negative; one of files or of their bytes; a text or path. */
#define COUNT .max = INT64_MAX
#define FILES .max = (INT64_MAX / 8)
#define TEXT  .max = TEXT_BYTES

/* The members that stand first; META has the texts in itself. */
struct head {
	int64_t version;
	const char *id, *boot;
};
static const struct field version_fields[] = {
	FIELD(struct head, version),
	{0},
};
static const struct field head_fields[] = {
	FIELD(struct head, id, .min = REVIEW_ID - 1, .max = REVIEW_ID - 1),
	FIELD(struct head, boot, .max = REVIEW_BOOT - 1),
	{0},
};

static const struct field tree_fields[] = {
	FIELD_PATH(struct review_tree, path, "path", TEXT),
	FIELD(struct review_tree, copied, .optional = true),
	{0},
};
const struct field review_count_fields[] = {
	FIELD(struct review_counts, changed, FILES),
	FIELD(struct review_counts, added, FILES),
	FIELD(struct review_counts, removed, FILES),
	FIELD(struct review_counts, bytes, FILES),
	FIELD(struct review_counts, other, .optional = true),
	FIELD(struct review_counts, partial, .optional = true),
	{0},
};
static const struct field meta_fields[] = {
	FIELD_PATH(struct review_meta, workspace, "workspace", TEXT),
	/* any bits: an overlay that joins file systems sets the first one of an inode's number */
	FIELD(struct review_meta, device),
	FIELD(struct review_meta, inode),
	FIELD(struct review_meta, agent, TEXT),
	FIELD(struct review_meta, command, TEXT),
	FIELD_CHOICE(struct review_meta, state, "state", state_names),
	FIELD(struct review_meta, created_ms, COUNT),
	FIELD(struct review_meta, memory, .optional = true),
	FIELD(struct review_meta, most, COUNT, .optional = true),
	FIELD_PATHS(struct review_meta, over, over_count, "over", .optional = true,
		    .max = REVIEW_OVER_MAX),
	FIELD_LIST(struct review_meta, trees, tree_count, "trees", tree_fields,
		   .max = REVIEW_TREES_MAX),
	FIELD_AS(struct review_meta, counts, "counts", FIELD_IS_OBJECT,
		 .rows = review_count_fields),
	{0},
};
/* Owned by the description, though it is read as a part of the object. */
static const struct field rights_fields[] = {
	FIELD(struct review_meta, rights),
	{0},
};

void review_meta_fini(struct review_meta *meta)
{
	fields_free(meta_fields, meta);
	value_free(meta->rights);
	*meta = (struct review_meta){0};
}

bool review_meta_print(const struct review_meta *meta, struct buf *out)
{
	const struct head head = {VERSION, meta->id, meta->boot};
	auto_value struct value *object = fields_print(version_fields, &head);

	fields_set(object, head_fields, &head);
	fields_set(object, meta_fields, meta);
	fields_set(object, rights_fields, meta);
	return value_print(object, 0, out);
}

static bool is_id(const char *text, size_t least)
{
	const size_t digits = strspn(text, "0123456789abcdef");

	return text[digits] == '\0' && digits >= least && digits < REVIEW_ID;
}

static bool is_boot(const char *text)
{
	return text[strspn(text, "0123456789abcdef-")] == '\0';
}

/* Is PATH absolute and normal? */
static bool is_normal(const char *path)
{
	struct buf normal;

	buf_init(&normal, PATH_MAX);
	const bool fine = path[0] == '/' && path_normal("/", path, &normal) &&
			  strcmp(normal.data, path) == 0;
	buf_fini(&normal);
	return fine;
}

static bool meta_read(const struct value *object, struct review_meta *meta)
{
	struct head head = {0};

	if (!fields_read(object, head_fields, &head, NULL, NULL) ||
	    !fields_read(object, meta_fields, meta, NULL, NULL) ||
	    !is_id(head.id, REVIEW_ID - 1) || !is_boot(head.boot) ||
	    !is_normal(meta->workspace))
		return false;
	for (size_t i = 0; i < meta->tree_count; i++) {
		if (!is_normal(meta->trees[i].path))
			return false;
	}
	for (size_t i = 0; i < meta->over_count; i++) {
		if (!is_id(meta->over[i], REVIEW_ID - 1))
			return false;
	}
	(void)snprintf(meta->id, sizeof(meta->id), "%s", head.id);
	(void)snprintf(meta->boot, sizeof(meta->boot), "%s", head.boot);
	if (!fields_read(object, rights_fields, meta, NULL, NULL))
		return false;
	meta->rights = value_copy(meta->rights);
	return value_kind(meta->rights) == VALUE_OBJECT;
}

bool review_meta_parse(struct str text, struct review_meta *meta, struct err *err)
{
	auto_value struct value *object = NULL;
	struct head head = {0};

	if (text.size > META_BYTES || !value_parse(text, 0, &object, err) ||
	    !fields_read(object, version_fields, &head, NULL, NULL))
		return err_set(err, EINVAL, "its description is damaged");
	if (head.version > VERSION)
		return err_set(err, EINVAL, "it was made by a newer version of glovebox");
	if (head.version == VERSION && meta_read(object, meta))
		return true;
	review_meta_fini(meta);
	return err_set(err, EINVAL, "its description is damaged");
}

/* Folders. */

bool review_place(const char *state_home, const char *home, struct buf *folder)
{
	return path_xdg(state_home, home, ".local/state", "glovebox/review", folder);
}

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Is the folder FOLDER the one that NAME in AT leads to? */
static bool is_at(int at, const char *name, int folder)
{
	struct stat held, named;

	return fstat(folder, &held) == 0 &&
	       fstatat(at, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

static int make_folder(int at, const char *name)
{
	return mkdirat(at, name, 0700) < 0 && errno != EEXIST ? -1 : open_folder(at, name);
}

/* The folder of the layers of WORKSPACE in FOLDER; -1 with errno. */
static int open_project(const char *folder, const char *workspace, bool make)
{
	char project[HASH_HEX + 1];

	hash_text(str_of(workspace), project);
	project[PROJECT_DIGITS] = '\0';
	if (make && !fd_make_folders(folder, NULL))
		return -1;
	auto_close int all =
		make ? make_folder(AT_FDCWD, folder) : open_folder(AT_FDCWD, folder);
	return all < 0 ? -1
	       : make  ? make_folder(all, project)
		       : open_folder(all, project);
}

static char *path_make(const char *folder, const char *workspace, const char *id)
{
	char project[HASH_HEX + 1], path[PATH_MAX];

	hash_text(str_of(workspace), project);
	(void)snprintf(path, sizeof(path), "%s/%.*s/%s", folder, PROJECT_DIGITS, project,
		       id);
	return memory_copy(path);
}

/* The kernel's id of this boot; "" where it gives none. */
static void boot_read(char boot[REVIEW_BOOT])
{
	struct buf text;

	boot[0] = '\0';
	buf_init(&text, REVIEW_BOOT);
	if (fd_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text)) {
		text.data[strcspn(text.data, "\n")] = '\0';
		if (is_boot(text.data))
			(void)snprintf(boot, REVIEW_BOOT, "%s", text.data);
	}
	buf_fini(&text);
}

bool review_new_id(char id[REVIEW_ID])
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return false;
	(void)snprintf(id, REVIEW_ID, "%08" PRIx32, number);
	return true;
}

/* The places of trees. */

/* Is FD a folder of ours in memory, which nobody else may enter? */
static bool is_own_memory(int fd)
{
	struct statfs fs;
	struct stat st;

	return fstatfs(fd, &fs) == 0 && (uint32_t)fs.f_type == TMPFS_MAGIC &&
	       fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       (st.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

/* Put the place number I of the trees of the layer ID in memory into PATH. */
static bool memory_path(size_t i, const char *id, char path[MEMORY_ROOM])
{
	if (i == 0)
		(void)snprintf(path, MEMORY_ROOM, "/run/user/%u/" MEMORY_NAME "%s",
			       (unsigned)geteuid(), id);
	else
		(void)snprintf(path, MEMORY_ROOM, "/dev/shm/" MEMORY_NAME "%s", id);
	return i < MEMORY_PLACES;
}

/* Open the trees of the layer ID in memory and put their path into PATH. -1 with errno. */
static int memory_open(const char *id, char path[MEMORY_ROOM])
{
	for (size_t i = 0; memory_path(i, id, path); i++) {
		auto_close int fd = open_folder(AT_FDCWD, path);

		if (fd >= 0 && is_own_memory(fd))
			return fd_take(&fd);
	}
	errno = ENOENT;
	return -1;
}

static bool memory_make(const char *id)
{
	char path[MEMORY_ROOM];

	for (size_t i = 0; memory_path(i, id, path); i++) {
		if (mkdir(path, 0700) < 0)
			continue;
		auto_close int fd = open_folder(AT_FDCWD, path);
		if (fd >= 0 && is_own_memory(fd))
			return true;
		(void)rmdir(path);
	}
	return false;
}

/* Remove the folder of ID in memory. Returns 0, or a number of errno.h. */
static int memory_remove_one(const char *id)
{
	char path[MEMORY_ROOM];
	auto_close int fd = memory_open(id, path);
	const int code = fd < 0 ? 0 : removal_empty(fd);

	return fd < 0 || rmdir(path) == 0 ? 0 : code != 0 ? code : errno;
}

/* The name of the trees of the layer ID in memory while they are built again. */
static void built_name(const char *id, char name[BUILT_ROOM])
{
	(void)snprintf(name, BUILT_ROOM, "%s" BUILT_ENDING, id);
}

/* Remove the trees of the layer ID in memory. Returns 0, or a number of errno.h. */
static int memory_remove(const char *id)
{
	char name[BUILT_ROOM];

	built_name(id, name);
	(void)memory_remove_one(name);
	return memory_remove_one(id);
}

/* Open the folder of the trees of REVIEW that are no copies; -1 with errno. */
static int trees_open(const struct review *review)
{
	char path[MEMORY_ROOM];

	return review->meta.memory ? memory_open(review->meta.id, path)
				   : open_folder(review->folder, TREES_NAME);
}

/* Does the tree N of REVIEW lie in memory? A copy never does. */
static bool is_in_memory(const struct review *review, size_t n)
{
	return review->meta.memory && !review->meta.trees[n].copied;
}

static struct review *review_new(void)
{
	struct review *review = memory_alloc(sizeof(*review));

	review->project = review->folder = review->lock = -1;
	return review;
}

/* Remove the folder NAME in AT with all that it holds. Returns 0, or a number of errno.h. */
static int remove_name(int at, const char *name)
{
	auto_close int folder = open_folder(at, name);

	if (folder < 0)
		return errno == ENOENT ? 0 : errno;
	const int code = removal_empty(folder);
	return unlinkat(at, name, AT_REMOVEDIR) == 0 ? 0 : code != 0 ? code : errno;
}

static void making_name(const char *id, char name[MAKING_ROOM])
{
	(void)snprintf(name, MAKING_ROOM, "%s" MAKING_ENDING, id);
}

void review_close(struct review *review)
{
	char name[MAKING_ROOM];

	if (review == NULL)
		return;
	if (review->life == REVIEW_MADE && review->folder >= 0) {
		(void)memory_remove(review->meta.id);
		making_name(review->meta.id, name);
		(void)remove_name(review->project, name);
	}
	free(review->path);
	free(review->unsaved);
	/* The process of sync_apart may not have closed its copy of the descriptor yet. */
	if (review->lock >= 0)
		(void)flock(review->lock, LOCK_UN);
	fd_close(&review->lock);
	fd_close(&review->folder);
	fd_close(&review->project);
	review_meta_fini(&review->meta);
	free(review);
}

/* Locks. */

/* Let FD, a file of SIZE bytes or more, end there. Costs a journal nothing where it does. */
static bool cut_at(int fd, size_t size)
{
	struct stat st;

	return fstat(fd, &st) == 0 &&
	       (st.st_size == (off_t)size || ftruncate(fd, (off_t)size) == 0);
}

/* Say in the file of the lock which process has it. */
static void holder_write(int lock, const char *by)
{
	char text[HOLDER_BYTES];
	const int size =
		snprintf(text, sizeof(text), "%" PRId64 " %.100s\n", clock_wall_ms(), by);

	/* A file that keeps its block costs a tenth of one that is emptied first. */
	if (pwrite(lock, text, (size_t)size, 0) == size)
		(void)cut_at(lock, (size_t)size);
}

/* Set ERR to the sentence about the process that has the lock of the layer ID. */
static bool holder_tell(int lock, const char *id, struct err *err)
{
	char text[HOLDER_BYTES + 1] = "", at[CLOCK_TEXT], now[CLOCK_TEXT], *by = NULL;
	const ssize_t size = pread(lock, text, HOLDER_BYTES, 0);
	enum { DAY = 10, MINUTES = 16 }; /* bytes of "2026-03-29 14:05:09" */
	struct buf name;

	text[size > 0 ? size : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	const long long ms = strtoll(text, &by, 10);
	if (size <= 0 || by == text || *by != ' ' || ms <= 0)
		return err_set(err, EBUSY, "Review %s is in use. End that first.", id);
	clock_text_local(ms, at);
	clock_text_local(clock_wall_ms(), now);
	at[strlen(at) > MINUTES ? MINUTES : 0] = '\0';
	buf_init(&name, 8 * HOLDER_BYTES);
	text_add_name(&name, str_of(by + 1));
	(void)err_set(err, EBUSY, "Review %s is in use by \"%s\" since %s. End that first.",
		      id, name.data,
		      at[0] != '\0' && strncmp(at, now, DAY) == 0 ? at + DAY + 1 : at);
	buf_fini(&name);
	return false;
}

static int lock_open(int folder)
{
	return openat(folder, LOCK_NAME,
		      O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, LOG_MODE);
}

static bool is_locked(int folder)
{
	auto_close int lock =
		openat(folder, LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0;
}

/* Reading and replacing descriptions. */

/* Is there a session whose writes the disk has not confirmed? */
static bool is_unsynced(int folder)
{
	DIR *names = fd_open_names(folder);
	bool found = false;

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && !found; at = readdir(names))
		found = str_starts(str_of(at->d_name), STR(UNSYNCED));
	if (names != NULL)
		(void)closedir(names);
	return found;
}

/* Was the layer in FOLDER saved at any time? */
static bool has_saved(int folder)
{
	return faccessat(folder, SAVED_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Is all that the layer in FOLDER holds in memory also in a file? */
static bool is_saved(int folder)
{
	return has_saved(folder) && !is_unsynced(folder);
}

/* Read the description of the layer ID in FOLDER; META is zero. */
static bool meta_load(int folder, const char *id, struct review_meta *meta, struct err *err)
{
	auto_close int fd =
		openat(folder, META_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct err cause = {0};
	struct stat st;
	struct buf text;

	if (fstat(folder, &st) == 0 && st.st_uid != geteuid())
		return err_set(err, EPERM, "Review %s belongs to another user (%u).", id,
			       (unsigned)st.st_uid);
	buf_init(&text, META_BYTES);
	bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		  fd_read_all(fd, &text, META_NAME, NULL);
	if (!ok)
		(void)err_set(&cause, EINVAL, "its description is missing");
	ok = ok && review_meta_parse(buf_str(&text), meta, &cause);
	buf_fini(&text);
	if (ok && strcmp(meta->id, id) != 0) {
		review_meta_fini(meta);
		ok = err_set(&cause, EINVAL, "its description is that of another one");
	}
	return ok ||
	       err_set(err, EINVAL,
		       "Review %s cannot be read: %s. glovebox drop --id %s removes it.",
		       id, cause.text, id);
}

/*
 * Replace the description. The disk confirms it before it takes the place of an older one: a
 * crash of the machine must not leave a layer with work in it without a description. A new
 * layer holds nothing yet, and need not wait for the disk (some 10 ms).
 */
static bool meta_store(const struct review *review, struct err *err)
{
	/* Nobody can find a new layer yet, so its description is written in its place. */
	const bool found = review->life != REVIEW_MADE;
	const char *name = found ? META_TEMP : META_NAME;
	struct buf text;
	int code = 0;

	buf_init(&text, META_BYTES);
	if (found)
		(void)unlinkat(review->folder, META_TEMP, 0);
	auto_close int fd = openat(review->folder, name,
				   O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
					   O_CLOEXEC | (found ? O_EXCL : 0),
				   LOG_MODE);
	if (!review_meta_print(&review->meta, &text))
		code = E2BIG;
	else if (fd < 0 || !fd_write_all(fd, text.data, text.size, NULL) ||
		 !cut_at(fd, text.size) || (found && fsync(fd) < 0) ||
		 (found &&
		  renameat(review->folder, META_TEMP, review->folder, META_NAME) < 0))
		code = errno;
	else if (found)
		(void)fsync(review->folder);
	buf_fini(&text);
	if (code == 0)
		return true;
	(void)unlinkat(review->folder, name, 0);
	return err_set(err, code, "the description of review %s: %s", review->meta.id,
		       strerror(code));
}

bool review_set_state(struct review *review, enum review_state state, struct err *err)
{
	const enum review_state before = review->meta.state;

	review->meta.state = state;
	if (meta_store(review, err))
		return true;
	review->meta.state = before;
	return false;
}

/* Making. */

/* Make what is in every layer. */
static bool contents_make(struct review *review, const char *by, struct err *err)
{
	auto_close int log = openat(review->folder, LOG_NAME,
				    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
					    O_CLOEXEC | (review->spare ? O_TRUNC : O_EXCL),
				    LOG_MODE);

	if (review->lock < 0)
		review->lock = lock_open(review->folder);
	if (review->lock < 0 || flock(review->lock, LOCK_EX | LOCK_NB) < 0 || log < 0 ||
	    !cut_at(log, 0) ||
	    (mkdirat(review->folder, TREES_NAME, 0700) < 0 &&
	     !(review->spare && errno == EEXIST)))
		return err_set(err, errno, "a layer: %s", strerror(errno));
	holder_write(review->lock, by);
	return true;
}

/*
 * Take the folders that an unchanged layer has left, as NAME. They are locked before they have
 * that name: review_tidy removes what has it and is not locked. False: there are none.
 */
static bool spare_take(struct review *review, const char *name)
{
	auto_close int folder = open_folder(review->project, SPARE_NAME);
	auto_close int lock = folder >= 0 ? lock_open(folder) : -1;
	struct stat held;

	/* Those of another user are not ours to write in, as after `sudo` with that one's HOME. */
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 || fstat(folder, &held) < 0 ||
	    held.st_uid != geteuid() ||
	    renameat(review->project, SPARE_NAME, review->project, name) < 0)
		return false;
	/* Another session can have taken these, used them and left other ones. */
	if (!is_at(review->project, name, folder)) {
		(void)renameat(review->project, name, review->project, SPARE_NAME);
		return false;
	}
	review->folder = fd_take(&folder);
	review->lock = fd_take(&lock);
	return review->spare = true;
}

/* Make `ID.tmp` with ID (NULL: a new one) and open it. False with errno. */
static bool folder_make(struct review *review, const char *id)
{
	char name[MAKING_ROOM];

	if (id != NULL && !is_id(id, REVIEW_ID - 1)) {
		errno = EINVAL;
		return false;
	}
	for (int i = 0; i < (id != NULL ? 1 : ID_TRIES); i++) {
		if (id != NULL)
			memcpy(review->meta.id, id, REVIEW_ID);
		else if (!review_new_id(review->meta.id))
			break;
		making_name(review->meta.id, name);
		if (faccessat(review->project, review->meta.id, F_OK,
			      AT_SYMLINK_NOFOLLOW) == 0)
			errno = EEXIST;
		else if (spare_take(review, name))
			return true;
		else if (mkdirat(review->project, name, 0700) == 0)
			return (review->folder = open_folder(review->project, name)) >= 0;
		if (errno != EEXIST)
			break;
	}
	return false;
}

bool review_make(const char *folder, const char *workspace, const char *id,
		 const char *by, struct review **made, struct err *err)
{
	struct review *review = review_new();
	struct review_meta *meta = &review->meta;
	struct stat st;

	review->life = REVIEW_MADE;
	review->fresh = true;
	meta->workspace = memory_copy(workspace);
	meta->agent = memory_copy("");
	meta->command = memory_copy("");
	meta->rights = value_new_object();
	meta->trees = memory_array(REVIEW_TREES_MAX, sizeof(*meta->trees));
	boot_read(meta->boot);
	/*
	 * No file that is there bears a later time: some kernels stamp files more finely than
	 * clock_file_ns tells.
	 */
	meta->created_ms = (clock_wall_ns() + MS_NS - 1) / MS_NS;
	review->project = open_project(folder, workspace, true);
	bool ok = stat(workspace, &st) == 0 && review->project >= 0 &&
		  folder_make(review, id);
	if (!ok)
		(void)err_set(err, errno, REVIEW_KEY ": %s: %s", folder, strerror(errno));
	meta->device = ok ? st.st_dev : 0;
	meta->inode = ok ? st.st_ino : 0;
	review->path = path_make(folder, workspace, meta->id);
	if (ok && contents_make(review, by, err)) {
		*made = review;
		return true;
	}
	review_close(review);
	return false;
}

/* Set ERR from errno. Returns false. */
static bool trees_are_gone(const struct review *review, struct err *err)
{
	const int code = errno;

	if (!review->meta.memory)
		return err_set(err, code, REVIEW_KEY ": %s/" TREES_NAME ": %s",
			       review->path, strerror(code));
	return err_set(err, code,
		       "Review %s lay in memory, and went with a restart of the machine before it "
		       "was saved. glovebox drop --id %s removes the rest.",
		       review->meta.id, review->meta.id);
}

bool review_state_folder(const struct review *review, struct stat *st)
{
	/* FOLDER/PROJECT is below "…/glovebox/review". */
	return fstatat(review->project, "../..", st, 0) == 0;
}

bool review_add_tree(struct review *review, const char *path, size_t *number, struct err *err)
{
	struct review_meta *meta = &review->meta;
	auto_close int trees = trees_open(review);
	char name[16];

	if (trees < 0)
		return trees_are_gone(review, err);
	for (size_t i = 0; i < meta->tree_count; i++) {
		if (strcmp(meta->trees[i].path, path) == 0) {
			*number = i;
			return true;
		}
	}
	if (review->life != REVIEW_MADE)
		return err_set(err, EINVAL,
			       "Review %s has no layer over %s: its agent \"%s\" did not write "
			       "there. Go on with that agent, or begin another review.",
			       meta->id, path, meta->agent);
	if (meta->tree_count == REVIEW_TREES_MAX)
		return err_set(err, E2BIG, REVIEW_KEY ": more than %d folders in `write`",
			       REVIEW_TREES_MAX);
	(void)snprintf(name, sizeof(name), "%zu", meta->tree_count);
	if (mkdirat(trees, name, 0700) < 0 && !(review->spare && errno == EEXIST))
		return err_set(err, errno, REVIEW_KEY ": %s: tree %s: %s", review->path,
			       name, strerror(errno));
	*number = meta->tree_count;
	meta->trees[meta->tree_count++] = (struct review_tree){.path = memory_copy(path)};
	return true;
}

char *review_tree_path(const struct review *review, size_t number)
{
	char path[PATH_MAX];

	char memory[MEMORY_ROOM] = "";
	auto_close int fd =
		is_in_memory(review, number) ? memory_open(review->meta.id, memory) : -1;

	if (fd >= 0)
		(void)snprintf(path, sizeof(path), "%s/%zu", memory, number);
	else
		(void)snprintf(path, sizeof(path), "%s/" TREES_NAME "/%zu", review->path,
			       number);
	return memory_copy(path);
}

bool review_move_tree(struct review *review, size_t number, enum review_place place,
		      struct err *err)
{
	struct review_meta *meta = &review->meta;
	char name[16];

	meta->trees[number].copied = place == REVIEW_COPIED;
	if (place == REVIEW_IN_MEMORY && !meta->memory)
		meta->memory = number == 0 && memory_make(meta->id);
	else if (place != REVIEW_IN_MEMORY && number == 0 && meta->memory) {
		(void)memory_remove(meta->id);
		meta->memory = false;
	}
	if (place == REVIEW_IN_MEMORY && !meta->memory)
		return err_set(err, EOPNOTSUPP,
			       REVIEW_KEY ": neither /run/user nor /dev/shm can take it");
	auto_close int trees = is_in_memory(review, number)
				       ? trees_open(review)
				       : open_folder(review->folder, TREES_NAME);
	(void)snprintf(name, sizeof(name), "%zu", number);
	return (trees >= 0 && (mkdirat(trees, name, 0700) == 0 || errno == EEXIST)) ||
	       err_set(err, errno, REVIEW_KEY ": %s: tree %s: %s", review->path, name,
		       strerror(errno));
}

int review_open_tree(const struct review *review, size_t number)
{
	auto_close int trees = is_in_memory(review, number)
				       ? trees_open(review)
				       : open_folder(review->folder, TREES_NAME);
	char name[32];

	(void)snprintf(name, sizeof(name), "%zu", number);
	return trees < 0 ? -1 : fd_open_beneath(trees, name, O_PATH | O_DIRECTORY);
}

bool review_publish(struct review *review, struct err *err)
{
	char name[MAKING_ROOM];

	if (review->life == REVIEW_MADE) {
		making_name(review->meta.id, name);
		if (strlen(review->meta.command) > COMMAND_BYTES)
			review->meta.command[COMMAND_BYTES] = '\0';
		if (!meta_store(review, err))
			return false;
		if (renameat(review->project, name, review->project, review->meta.id) < 0)
			return err_set(err, errno, REVIEW_KEY ": %s: %s", review->path,
				       strerror(errno));
	}
	review->life = REVIEW_USED;
	return true;
}

/* Finding. */

/* Is WORKSPACE still the folder for which META was made? */
static bool workspace_fits(const struct review_meta *meta, const char *workspace,
			   struct err *err)
{
	struct stat st;

	if (strcmp(meta->workspace, workspace) == 0 && stat(workspace, &st) == 0 &&
	    st.st_dev == meta->device && st.st_ino == meta->inode)
		return true;
	return err_set(err, ESTALE,
		       "Review %s was made for a folder that is no longer at %s: another one is "
		       "there now. Move it back, or glovebox drop --id %s.",
		       meta->id, meta->workspace, meta->id);
}

static void item_read(int project, const char *id, struct review_item *item)
{
	auto_close int folder = open_folder(project, id);
	struct err err;

	item->damaged = folder < 0 || !meta_load(folder, id, &item->meta, &err);
	item->used = folder >= 0 && is_locked(folder);
	item->saved = folder >= 0 && is_saved(folder);
	memcpy(item->meta.id, id, REVIEW_ID);
}

static int item_compare(const void *left, const void *right)
{
	const struct review_item *a = left, *b = right;

	if (a->meta.created_ms != b->meta.created_ms)
		return a->meta.created_ms > b->meta.created_ms ? -1 : 1;
	return strcmp(a->meta.id, b->meta.id);
}

static void list_read(int project, struct review_list *list)
{
	DIR *names = fd_open_names(project);

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && list->count < REVIEW_LIST_MAX; at = readdir(names)) {
		if (!is_id(at->d_name, REVIEW_ID - 1))
			continue;
		list->items = memory_more(list->items, list->count, sizeof(*list->items));
		struct review_item *item = &list->items[list->count++];
		*item = (struct review_item){0};
		item_read(project, at->d_name, item);
		if (!item->damaged && item->meta.state == REVIEW_OPEN) {
			list->open++;
			list->open_bytes += (uint64_t)item->meta.counts.bytes;
		}
	}
	if (names != NULL)
		(void)closedir(names);
	if (list->count > 1)
		qsort(list->items, list->count, sizeof(*list->items), item_compare);
}

bool review_list_read(const char *folder, const char *workspace, struct review_list *list,
		      struct err *err)
{
	auto_close int project = open_project(folder, workspace, false);

	*list = (struct review_list){0};
	if (project < 0)
		return errno == ENOENT ||
		       err_set(err, errno, "%s: %s", folder, strerror(errno));
	list_read(project, list);
	return true;
}

void review_list_fini(struct review_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		review_meta_fini(&list->items[i].meta);
	free(list->items);
	*list = (struct review_list){0};
}

/* Is the folder FD, O_PATH, there, and without names? */
static bool has_no_names(int fd)
{
	DIR *names = fd >= 0 ? fd_open_names(fd) : NULL;
	const struct dirent *at = names != NULL ? readdir(names) : NULL;

	while (at != NULL && (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0))
		at = readdir(names);
	const bool empty = names != NULL && at == NULL;
	if (names != NULL)
		(void)closedir(names);
	return empty;
}

bool review_is_bare(const struct review *review)
{
	bool bare = true;

	for (size_t i = 0; bare && i < review->meta.tree_count; i++) {
		auto_close int upper = review_open_upper(review, i);

		/* In a copy nothing stands for a removed name. */
		bare = !review->meta.trees[i].copied && has_no_names(upper);
	}
	return bare;
}

/*
 * Has nobody made a name in the layer ITEM, and does nobody use it? A session that was killed
 * leaves such a layer.
 */
static bool is_bare(int project, const struct review_item *item)
{
	const struct review_counts *counts = &item->meta.counts;
	bool bare = !item->used && !item->meta.memory && !counts->other && !counts->partial;
	char path[PATH_MAX];

	for (size_t i = 0; i < item->meta.tree_count && bare; i++) {
		(void)snprintf(path, sizeof(path),
			       "%s/" TREES_NAME "/%zu/" VIEW_LAYER_UPPER, item->meta.id, i);
		auto_close int upper =
			fd_open_beneath(project, path, O_RDONLY | O_DIRECTORY);
		bare = !item->meta.trees[i].copied && has_no_names(upper);
	}
	return bare;
}

/* Does ITEM lie over an open layer that holds something? */
static bool is_above(int project, const struct review_list *list,
		     const struct review_item *item)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct review_item *other = &list->items[i];

		if (other->damaged || other->meta.state != REVIEW_OPEN ||
		    is_bare(project, other))
			continue;
		for (size_t j = 0; j < item->meta.over_count; j++) {
			if (strcmp(item->meta.over[j], other->meta.id) == 0)
				return true;
		}
	}
	return false;
}

/*
 * The open layer that is meant without an id: the newest one, but not one over another open one,
 * which comes first. A bare one is meant only when there is no other. NULL: none is open.
 */
static const struct review_item *newest_open(int project, const struct review_list *list)
{
	const struct review_item *bare = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct review_item *item = &list->items[i];

		if (item->damaged || item->meta.state != REVIEW_OPEN ||
		    is_above(project, list, item))
			continue;
		if (!is_bare(project, item))
			return item;
		bare = bare != NULL ? bare : item;
	}
	return bare;
}

/* Put the id of the layer that ID (or NULL) means into FOUND. */
static bool id_find(int project, const char *id, char found[REVIEW_ID], struct err *err)
{
	struct review_list list = {0};
	size_t fits = 0;

	if (id != NULL && !is_id(id, REVIEW_ID_LEAST))
		return err_set(err, ENOENT,
			       "\"%s\" names no review: an id has eight digits of 0-9 and a-f, of "
			       "which six are enough",
			       id);
	list_read(project, &list);
	const struct review_item *newest = id == NULL ? newest_open(project, &list) : NULL;
	for (size_t i = 0; i < list.count; i++) {
		const struct review_item *item = &list.items[i];

		if (id != NULL ? !str_starts(str_of(item->meta.id), str_of(id))
			       : item != newest)
			continue;
		memcpy(found, item->meta.id, REVIEW_ID);
		fits++;
	}
	review_list_fini(&list);
	return fits == 1 ||
	       (fits > 1 ? err_set(err, EEXIST, "%s fits %zu reviews: give more digits",
				   id, fits)
			 : err_set(err, ENOENT,
				   id != NULL ? "There is no review %s here: glovebox "
						"review --list"
					      : "There is no open review here%s",
				   id != NULL ? id : "."));
}

bool review_open(const char *folder, const char *workspace, const char *id,
		 struct review **opened, struct err *err)
{
	struct review *review = review_new();
	char found[REVIEW_ID] = "";
	bool ok = true;

	review->project = open_project(folder, workspace, false);
	if (review->project < 0)
		ok = err_set(err, ENOENT, "There is no review of %s.", workspace);
	ok = ok && id_find(review->project, id, found, err);
	if (ok) {
		review->folder = open_folder(review->project, found);
		ok = review->folder >= 0 ||
		     err_set(err, errno, "Review %s: %s", found, strerror(errno));
	}
	ok = ok && meta_load(review->folder, found, &review->meta, err) &&
	     workspace_fits(&review->meta, workspace, err);
	review->path = path_make(folder, workspace, found);
	if (ok)
		*opened = review;
	else
		review_close(review);
	return ok;
}

bool review_say_used(const struct review *review, struct err *err)
{
	return holder_tell(review->lock, review->meta.id, err);
}

bool review_lock(struct review *review, const char *by, struct err *err)
{
	const struct timespec moment = {.tv_nsec = 2000000};
	auto_close int lock = lock_open(review->folder);
	struct review_meta meta = {0};

	if (lock < 0)
		return err_set(err, errno, "Review %s: %s", review->meta.id,
			       strerror(errno));
	/* A process that lists the layers has each lock for a moment. */
	for (int i = 0; flock(lock, LOCK_EX | LOCK_NB) < 0; i++) {
		if (i == LOCK_TRIES)
			return holder_tell(lock, review->meta.id, err);
		(void)nanosleep(&moment, NULL);
	}
	/*
	 * Another process may have removed the layer before this one had the lock, or left its
	 * folders to the next one, with the description still in them.
	 */
	if (!is_at(review->project, review->meta.id, review->folder))
		return err_set(err, ENOENT, "Review %s was just removed.", review->meta.id);
	if (!meta_load(review->folder, review->meta.id, &meta, err))
		return false;
	review_meta_fini(&review->meta);
	review->meta = meta;
	review->lock = fd_take(&lock);
	holder_write(review->lock, by);
	return true;
}

/* Sessions in a layer. */

/* Put the mark of this session into the folder of REVIEW. */
static bool mark_make(struct review *review, struct err *err)
{
	char name[sizeof(UNSYNCED) + REVIEW_ID];
	int fd = -1;

	if (review_new_id(review->mark)) {
		(void)snprintf(name, sizeof(name), UNSYNCED "%s", review->mark);
		fd = openat(review->folder, name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, LOG_MODE);
	}
	if (fd < 0)
		return err_set(err, errno, "Review %s: %s", review->meta.id,
			       strerror(errno));
	(void)close(fd);
	return true;
}

static void mark_remove(const struct review *review)
{
	char name[sizeof(UNSYNCED) + REVIEW_ID];

	(void)snprintf(name, sizeof(name), UNSYNCED "%s", review->mark);
	(void)unlinkat(review->folder, name, 0);
}

bool review_begin(struct review *review, struct err *err)
{
	auto_close int trees = trees_open(review);
	char own[FD_NAME_ROOM], path[PATH_MAX];

	if (trees < 0)
		return trees_are_gone(review, err);
	if (!mark_make(review, err))
		return false;
	for (size_t i = 0; !review->fresh && i < review->meta.tree_count; i++) {
		(void)snprintf(path, sizeof(path), "%s/%zu", fd_name(trees, own), i);
		shape_unmark_layer(path);
	}
	if (review->life == REVIEW_MADE)
		return true; /* review_make has read it, and review_publish writes it */
	boot_read(review->meta.boot);
	return meta_store(review, err);
}

/*
 * Let a process of its own write out the disk of the layer and take the mark of this session
 * away. That process holds nothing else: no lock, and no descriptor of the caller.
 */
static void sync_apart(const struct review *review)
{
	char name[sizeof(UNSYNCED) + REVIEW_ID];

	(void)snprintf(name, sizeof(name), UNSYNCED "%s", review->mark);
	const pid_t pid = fork();
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (pid != 0)
		return;
	/* The caller waits until the lock of the layer is its own only. */
	const int folder = dup2(review->folder, 0);
	(void)syscall(SYS_close_range, 1U, ~0U, 0U);
	/* The front has no child that it would have to wait for later. */
	if (fork() != 0)
		_exit(0);
	(void)setsid();
	if (folder == 0 && syncfs(folder) == 0)
		(void)unlinkat(folder, name, 0);
	_exit(0);
}

/* Layers in memory, saved. */

/* Take away the marks of all sessions: the layer is saved as they have left it. */
static void unsynced_remove(int folder)
{
	DIR *names = fd_open_names(folder);

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		if (str_starts(str_of(at->d_name), STR(UNSYNCED)))
			(void)unlinkat(folder, at->d_name, 0);
	}
	if (names != NULL)
		(void)closedir(names);
}

bool review_is_saved(const struct review *review)
{
	return is_saved(review->folder);
}

/* The trees of REVIEW, which lies in memory, as saving.h names them. */
static uint64_t trees_in_memory(const struct review *review)
{
	uint64_t which = 0;

	for (size_t i = 0; i < review->meta.tree_count; i++)
		which |= is_in_memory(review, i) ? UINT64_C(1) << i : 0;
	return which;
}

/* Write the trees of REVIEW to a new file. Returns 0, or a number of errno.h. */
static int saved_make(const struct review *review)
{
	auto_close int trees = trees_open(review);

	if (trees < 0)
		return errno;
	(void)unlinkat(review->folder, SAVED_TEMP, 0);
	auto_close int file =
		openat(review->folder, SAVED_TEMP,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, LOG_MODE);
	if (file < 0)
		return errno;
	const int code = saving_store(trees, trees_in_memory(review), file,
				      (uint64_t)review->meta.most);
	if (code != 0)
		return code;
	return fsync(file) < 0 || renameat(review->folder, SAVED_TEMP, review->folder,
					   SAVED_NAME) < 0
		       ? errno
		       : 0;
}

/* Save REVIEW. The one before is there until the new one is whole and on the disk. */
static bool memory_save(const struct review *review, struct err *err)
{
	char most[32];
	const int code = saved_make(review);

	/* Copies lie on the disk. */
	if (code == 0 && review_has_copy(review) && syncfs(review->folder) < 0)
		return err_set(err, errno, "%s: %s", review->path, strerror(errno));
	if (code == 0) {
		(void)fsync(review->folder);
		unsynced_remove(review->folder);
		return true;
	}
	(void)unlinkat(review->folder, SAVED_TEMP, 0);
	if (code == SAVED_OVER)
		return err_set(err, code,
			       "it holds more than %s (limits.tmp): land or drop some of it",
			       text_size((uint64_t)review->meta.most, most));
	if (code == E2BIG)
		return err_set(err, code,
			       "it has more than %d folders in each other, or %d names",
			       SAVED_DEPTH_MAX, SAVED_ENTRIES_MAX);
	return err_set(err, code, "%s: %s", review->path,
		       code == EINTR ? "the process that wrote it was killed"
				     : strerror(code));
}

/* Build the trees of REVIEW from SAVED in memory. Returns 0, or a number of errno.h. */
static int memory_build(struct review *review, int saved, uint64_t most)
{
	char name[BUILT_ROOM], path[MEMORY_ROOM], last[MEMORY_ROOM];

	built_name(review->meta.id, name);
	(void)memory_remove_one(name);
	auto_close int trees = memory_make(name) ? memory_open(name, path) : -1;
	if (trees < 0)
		return EOPNOTSUPP;
	int code = saving_build(trees, trees_in_memory(review), saved, most);
	/* Without the boot of the last session the layer counts as cut (review_cut). */
	if (code == 0 && is_unsynced(review->folder)) {
		review->meta.boot[0] = '\0';
		code = meta_store(review, NULL) ? 0 : EIO;
	}
	if (code == 0)
		code = memory_remove_one(review->meta.id);
	(void)snprintf(last, sizeof(last), "%.*s",
		       (int)(strlen(path) - strlen(BUILT_ENDING)), path);
	if (code == 0 && rename(path, last) < 0)
		code = errno;
	if (code != 0)
		(void)memory_remove_one(name);
	return code;
}

/* Does each tree have its upper folder? A killed removal leaves some of a layer in memory. */
static bool trees_are_there(const struct review *review)
{
	bool all = true;

	for (size_t i = 0; i < review->meta.tree_count && all; i++) {
		/* A copy lies on the disk, which no restart empties. */
		if (review->meta.trees[i].copied)
			continue;
		auto_close int upper = review_open_upper(review, i);

		all = upper >= 0;
	}
	return all;
}

bool review_restore(struct review *review, struct buf *told, struct err *err)
{
	const char *id = review->meta.id;
	char at[CLOCK_TEXT];
	struct stat st;

	if (!review->meta.memory || review->lock < 0 || review->meta.state == REVIEW_DROPPED)
		return true;
	if (trees_are_there(review))
		return true;
	auto_close int saved = openat(review->folder, SAVED_NAME,
				      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (saved < 0)
		return trees_are_gone(review, err);
	const int code =
		fstat(saved, &st) < 0 || !S_ISREG(st.st_mode)
			? SAVED_UNSOUND
			/* It holds no more than its file, whatever the limit is now. */
			: memory_build(review, saved, (uint64_t)st.st_size);
	if (code == 0) {
		clock_text_local(clock_ns(&st.st_mtim) / MS_NS, at);
		(void)buf_addf(told,
			       "Review %s lay in memory, which a restart of the machine or the "
			       "end of a login has emptied. It is there again, as it was saved "
			       "at %s.%s\n",
			       id, at,
			       review_cut(review) == REVIEW_OLDER
				       ? " A session in it wrote after that, which is lost."
				       : "");
		return true;
	}
	if (code == SAVED_UNSOUND)
		return err_set(err, code,
			       "Review %s lay in memory, which is gone, and what was saved of it "
			       "is damaged. glovebox drop --id %s removes the rest.",
			       id, id);
	return err_set(err, code,
		       "Review %s lay in memory, which is gone, and cannot be built again from "
		       "%s/" SAVED_NAME ": %s.",
		       id, review->path,
		       code == EOPNOTSUPP   ? "neither /run/user nor /dev/shm can take it"
		       : code == SAVED_OVER ? "it holds more than limits.tmp was"
					    : strerror(code));
}

bool review_has_room(const struct review *review, int64_t bytes, uint64_t layer,
		     uint64_t tmp, struct err *err)
{
	const uint64_t most = review->meta.memory && tmp < layer ? tmp : layer;
	const char *key = most == layer ? "limits.layer" : "limits.tmp";
	char holds[32], limit[32];

	return (uint64_t)bytes <= most ||
	       err_set(err, EDQUOT,
		       "The layer holds %s, %s is %s: land or drop it, or raise %s.",
		       text_size((uint64_t)bytes, holds), key, text_size(most, limit), key);
}

bool review_is_empty(const struct review *review)
{
	const struct review_counts *counts = &review->meta.counts;

	return review->fresh && !counts->partial && !counts->other &&
	       counts->changed == 0 && counts->added == 0 && counts->removed == 0;
}

/* Save REVIEW, in which this session or one before it may have written. */
static bool end_in_memory(struct review *review, struct err *err)
{
	struct err cause = {0};

	if (!review->written)
		mark_remove(review);
	if (is_saved(review->folder) || memory_save(review, &cause))
		return true;
	free(review->unsaved);
	review->unsaved = memory_copy(cause.text);
	return err_set(err, cause.code, "%s", cause.text);
}

bool review_end(struct review *review, const struct review_counts *counts, struct err *err)
{
	review->life = REVIEW_LEFT;
	if (counts != NULL)
		review->meta.counts = *counts;
	if (review->unwanted || review_is_empty(review))
		return true; /* the caller removes it */
	const bool ok = meta_store(review, err);
	if (!review->meta.memory) {
		sync_apart(review);
		return ok;
	}
	return end_in_memory(review, err) && ok;
}

enum review_cut review_cut(const struct review *review)
{
	char boot[REVIEW_BOOT];

	boot_read(boot);
	if (!is_unsynced(review->folder) || strcmp(boot, review->meta.boot) == 0)
		return REVIEW_WHOLE;
	return review->meta.memory ? REVIEW_OLDER : REVIEW_SHORT;
}

bool review_has_copy(const struct review *review)
{
	bool found = false;

	for (size_t i = 0; i < review->meta.tree_count && !found; i++)
		found = review->meta.trees[i].copied;
	return found;
}

int review_open_upper(const struct review *review, size_t n)
{
	auto_close int tree = review_open_tree(review, n);

	return tree < 0 ? -1
			: fd_open_beneath(tree, VIEW_LAYER_UPPER, O_PATH | O_DIRECTORY);
}

int review_open_list(const struct review *review, size_t n)
{
	auto_close int tree = review_open_tree(review, n);

	return tree < 0 ? -1 : fd_open_beneath(tree, COPIED_LIST, O_RDONLY);
}

int review_open_log(const struct review *review, bool writes)
{
	return openat(review->folder, LOG_NAME,
		      (writes ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Removing. */

/*
 * Remove what a dropped layer holds; its description stays for a while. Returns 0, or a number
 * of errno.h: some of it is still there.
 */
static int contents_remove(int folder, const char *id)
{
	const int codes[] = {memory_remove(id), remove_name(folder, TREES_NAME),
			     remove_name(folder, UNDO_NAME)};

	/* Only killed sessions leave something in it. */
	if (unlinkat(folder, REVIEW_PENDING, AT_REMOVEDIR) < 0 && errno != ENOENT)
		(void)remove_name(folder, REVIEW_PENDING);
	(void)unlinkat(folder, LOG_NAME, 0);
	(void)unlinkat(folder, SAVED_NAME, 0);
	(void)unlinkat(folder, SAVED_TEMP, 0);
	return codes[0] != 0 ? codes[0] : codes[1] != 0 ? codes[1] : codes[2];
}

bool review_drop(struct review *review, struct err *err)
{
	if (!review_set_state(review, REVIEW_DROPPED, err))
		return false;
	const int code = contents_remove(review->folder, review->meta.id);
	return code == 0 ||
	       err_set(err, code,
		       "Review %s is dropped, but some of it could not be removed: %s. The next "
		       "verb tries again.",
		       review->meta.id, strerror(code));
}

/*
 * The changes of the tree N in PATH, which is a copy, make room for what is in the folder now.
 * The list goes before a whole copy: what the list has and the copy has not is removed by the
 * session.
 */
static int drop_in_copy(const struct review *review, size_t n, int tree, const char *path)
{
	const char *top = review->meta.trees[n].path;
	const struct value *hidden = value_member(review->meta.rights, "hidden");
	auto_close int from = open(top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct copy_size size;
	struct arena arena;
	struct err err = {0};
	struct stat state;
	int code;

	if (from < 0)
		return errno;
	arena_init(&arena);
	const char **closed =
		arena_alloc(&arena, (value_count(hidden) + 1) * sizeof(*closed));
	for (size_t i = 0, count = 0; i < value_count(hidden); i++) {
		auto_free char *one = path_of_key(value_text(value_item(hidden, i)));

		if (one != NULL)
			closed[count++] = arena_copy(&arena, str_of(one));
	}
	const struct copy_except except = {
		.top = top,
		.closed = closed,
		.folder = review_state_folder(review, &state) ? &state : NULL,
	};
	if (path_within(top, path) && !copy_try(from, tree, &except, &size, &err)) {
		/* The old copy stays when there can be no new one. */
		code = err.code;
	} else if (path_within(top, path)) {
		(void)unlinkat(tree, COPIED_LIST, 0);
		code = removal_run(tree, VIEW_LAYER_UPPER);
		if (code == 0 || code == ENOENT)
			code = copy_make(from, tree, &except, &size, &err) ? 0 : err.code;
	} else {
		code = copy_renew(from, tree, path_relative(path, top), &except);
	}
	arena_fini(&arena);
	return code;
}

/* Nothing of a tree is kept: a new upper folder takes the place of the old one. */
static int drop_tree(int tree)
{
	struct stat st;
	int code = removal_run(tree, VIEW_LAYER_UPPER);

	if (code == 0 && mkdirat(tree, VIEW_LAYER_UPPER, S_IRWXU) < 0)
		code = errno;
	if (code == 0 && fstat(tree, &st) == 0 && st.st_uid != geteuid() &&
	    fchownat(tree, VIEW_LAYER_UPPER, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		code = errno;
	return code;
}

/* Throw away PATH in the tree N, or all of that tree. Returns 0 or a number of errno.h. */
static int drop_in(const struct review *review, size_t n, const char *path)
{
	auto_close int tree = review_open_tree(review, n);
	const char *top = review->meta.trees[n].path;
	char name[PATH_MAX];

	if (tree < 0)
		return errno;
	if (review->meta.trees[n].copied)
		return drop_in_copy(review, n, tree, path);
	if (path_within(top, path))
		return drop_tree(tree);
	if (snprintf(name, sizeof(name), VIEW_LAYER_UPPER "/%s",
		     path_relative(path, top)) >= (int)sizeof(name))
		return ENOENT;
	return removal_run(tree, name);
}

bool review_drop_path(struct review *review, const char *path, struct err *err)
{
	struct review_meta *meta = &review->meta;
	const bool saves = meta->memory && has_saved(review->folder);
	size_t tree = meta->tree_count;
	struct err cause = {0};
	int code = ENOENT;

	if (saves && !mark_make(review, err))
		return false;
	/* The tree that covers PATH is the longest one: its layer lies over those above it. */
	for (size_t i = 0; i < meta->tree_count; i++) {
		if (path_within(path, meta->trees[i].path) &&
		    (tree == meta->tree_count ||
		     strlen(meta->trees[i].path) > strlen(meta->trees[tree].path)))
			tree = i;
	}
	if (tree < meta->tree_count)
		code = drop_in(review, tree, path);
	/* Trees below PATH go as a whole. */
	for (size_t i = 0; i < meta->tree_count && (code == 0 || code == ENOENT); i++) {
		if (i != tree && path_within(meta->trees[i].path, path))
			code = drop_in(review, i, path);
	}
	/* Nothing was changed: it is as it was saved. */
	if (saves && (code == ENOENT || code == ENOTSUP))
		mark_remove(review);
	if (code == ENOTSUP)
		return err_set(err, code,
			       "%s: the review has made its folder anew. Land what you want to "
			       "keep, and drop the folder.",
			       path_relative(path, meta->workspace));
	if (code != 0)
		return err_set(err, code,
			       code == ENOENT ? "%s: review %s holds nothing there."
					      : "%s: some of it in review %s could not be "
						"removed: %s.",
			       path_relative(path, meta->workspace), meta->id,
			       strerror(code));
	/* The next session counts anew what is left. */
	meta->counts = (struct review_counts){.partial = true};
	if (!meta_store(review, err))
		return false;
	return !saves || memory_save(review, &cause) ||
	       err_set(err, cause.code,
		       "%s is dropped from review %s, which lies in memory and could not be "
		       "saved without it: %s. A restart of the machine would bring it back.",
		       path_relative(path, meta->workspace), meta->id, cause.text);
}

/* Remove the layer ID. Under its new name it is a rest, should this process be killed. */
static void layer_remove(int project, const char *id)
{
	char name[MAKING_ROOM];

	(void)memory_remove(id);
	making_name(id, name);
	if (renameat(project, id, project, name) == 0)
		(void)remove_name(project, name);
}

/*
 * Leave the folders of REVIEW, which is called NAME and to which nothing was added, to the next
 * layer. It holds the names that every layer has, which need no process with walls to be removed.
 * False: there is more, or another one was left already.
 */
static bool spare_leave(const struct review *review, const char *name)
{
	char own[FD_NAME_ROOM], path[PATH_MAX];
	auto_close int trees = open_folder(review->folder, TREES_NAME);

	if (trees < 0 || review->meta.tree_count != 1 ||
	    faccessat(review->folder, UNDO_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    (unlinkat(review->folder, REVIEW_PENDING, AT_REMOVEDIR) < 0 && errno != ENOENT))
		return false;
	(void)snprintf(path, sizeof(path), "%s/" FIRST_TREE, fd_name(trees, own));
	if (!shape_empty_layer(path))
		return false;
	mark_remove(review);
	/* The next session can have it before this one has closed the lock. */
	(void)flock(review->lock, LOCK_UN);
	return renameat(review->project, name, review->project, SPARE_NAME) == 0;
}

void review_remove(struct review *review)
{
	const bool spare = review_is_empty(review) && !review->meta.memory &&
			   !review_has_copy(review);
	char name[MAKING_ROOM];

	making_name(review->meta.id, name);
	if (!spare)
		layer_remove(review->project, review->meta.id);
	else if (renameat(review->project, review->meta.id, review->project, name) == 0 &&
		 !spare_leave(review, name))
		(void)remove_name(review->project, name);
}

bool review_remove_damaged(const char *folder, const char *workspace, const char *id,
			   struct err *err)
{
	auto_close int project = open_project(folder, workspace, false);
	char found[REVIEW_ID] = "";

	if (project < 0)
		return err_set(err, ENOENT, "There is no review of %s.", workspace);
	if (!id_find(project, id, found, err))
		return false;
	auto_close int layer = open_folder(project, found);
	auto_close int lock = layer >= 0 ? lock_open(layer) : -1;
	if (lock < 0)
		return err_set(err, errno, "Review %s: %s", found, strerror(errno));
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return holder_tell(lock, found, err);
	layer_remove(project, found);
	return true;
}

/* Remove the half-made or half-removed layer NAME, unless a process is at work in it. */
static void tidy_rest(int project, const char *name)
{
	auto_close int folder = open_folder(project, name);
	char id[REVIEW_ID];
	struct stat st;

	/* A process may just have made the folder, and not have locked it yet. */
	if (folder < 0 || fstat(folder, &st) < 0 ||
	    clock_wall_ms() - clock_ns(&st.st_mtim) / MS_NS <= MAKING_MS)
		return;
	/* With the lock nobody takes it for the next layer (spare_take) while it is removed. */
	auto_close int lock =
		openat(folder, LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if ((lock < 0 ? errno != ENOENT : flock(lock, LOCK_EX | LOCK_NB) < 0) ||
	    !is_at(project, name, folder))
		return;
	(void)snprintf(id, sizeof(id), "%.*s", REVIEW_ID - 1, name);
	(void)memory_remove(id);
	(void)remove_name(project, name);
}

static void tidy_layer(int project, const char *id)
{
	auto_close int folder = open_folder(project, id);
	auto_close int lock = folder >= 0 ? lock_open(folder) : -1;
	struct review_meta meta = {0};
	struct stat st;

	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 ||
	    !meta_load(folder, id, &meta, NULL))
		return;
	const enum review_state state = meta.state;
	review_meta_fini(&meta);
	if (state == REVIEW_DROPPED)
		(void)contents_remove(folder, id);
	/* The description was replaced with the last change of its state. */
	if (state != REVIEW_OPEN &&
	    fstatat(folder, META_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    clock_wall_ms() - clock_ns(&st.st_mtim) / MS_NS > KEPT_MS)
		layer_remove(project, id);
}

void review_tidy(const char *folder, const char *workspace)
{
	auto_close int project = open_project(folder, workspace, false);
	DIR *names = project >= 0 ? fd_open_names(project) : NULL;

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		const struct str name = str_of(at->d_name);

		if (is_id(at->d_name, REVIEW_ID - 1))
			tidy_layer(project, at->d_name);
		else if (name.size == REVIEW_ID - 1 + strlen(MAKING_ENDING) &&
			 str_ends(name, STR(MAKING_ENDING)))
			tidy_rest(project, at->d_name);
	}
	if (names != NULL)
		(void)closedir(names);
}
