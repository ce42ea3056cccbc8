/* carrier: tries the places of a layer, and remembers the outcome. */

#include "view/carrier.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "sandbox/probe.h"
#include "view/copy.h"
#include "view/shape.h"
#include "view/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* linux/stat.h since 6.8: an id of a mount that no other one gets until the next boot. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

#define NOTED                ".tried-"
#define TRIED_XATTR          "user.overlay.tried"

#define CARRIER_STORE_REMEDY "set XDG_STATE_HOME to a folder on a local disk"
#define CARRIER_TREE_REMEDY  "use a workspace on a local disk"

enum {
	DIGITS = 16, /* of the hash of a tree's path */
	NOTED_ROOM = sizeof(NOTED) + DIGITS,
	KEY_ROOM = 256,
	TYPE_MAX = 64,
	SENTENCE_MAX = 4 * PATH_MAX,
};

/* Notes of former tries. */

/* The file system and the mount of FD. */
static void add_mount(int fd, struct buf *key)
{
	struct statx mount = {0};

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID_UNIQUE, &mount) < 0 ||
	    (mount.stx_mask & STATX_MNT_ID_UNIQUE) == 0)
		(void)statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &mount);
	(void)buf_addf(key, " %x:%x:%llx", mount.stx_dev_major, mount.stx_dev_minor,
		       (unsigned long long)mount.stx_mnt_id);
}

/* All on which the outcome of a try depends: it ends in a blank. */
static void key_make(const struct review *review, const struct cell_spec *spec, int tree,
		     struct buf *key)
{
	(void)buf_adds(key, review->meta.boot);
	add_mount(review->folder, key);
	add_mount(tree, key);
	/* A filter of system calls around us may refuse what another one allows. */
	(void)buf_addf(key, " %d %d%d ", prctl(PR_GET_SECCOMP), spec->identity.change,
		       spec->identity.map_root);
}

static void note_name(const char *path, char name[NOTED_ROOM])
{
	char hash[HASH_HEX + 1];

	hash_text(str_of(path), hash);
	(void)snprintf(name, NOTED_ROOM, NOTED "%.*s", DIGITS, hash);
}

/* The place that was noted for the tree PATH with KEY; REVIEW_PLACES: none. */
static enum review_place note_read(const struct review *review, const char *path,
				   const struct buf *key)
{
	char name[NOTED_ROOM], text[KEY_ROOM + 1];

	note_name(path, name);
	const ssize_t size = readlinkat(review->project, name, text, sizeof(text));
	if (size != (ssize_t)key->size + 1 || memcmp(text, key->data, key->size) != 0)
		return REVIEW_PLACES;
	return text[size - 1] == 'd'   ? REVIEW_ON_DISK
	       : text[size - 1] == 'm' ? REVIEW_IN_MEMORY
				       : REVIEW_PLACES;
}

static void note_write(const struct review *review, const char *path, struct buf *key,
		       enum review_place place)
{
	char name[NOTED_ROOM];

	note_name(path, name);
	(void)unlinkat(review->project, name, 0);
	if (place != REVIEW_COPIED && buf_addc(key, place == REVIEW_ON_DISK ? 'd' : 'm'))
		(void)!symlinkat(key->data, review->project, name);
}

void carrier_forget(const struct review *review)
{
	char name[NOTED_ROOM];

	for (size_t i = 0; i < review->meta.tree_count; i++) {
		note_name(review->meta.trees[i].path, name);
		(void)unlinkat(review->project, name, 0);
	}
}

/* Trying. */

/* Take the COUNT last entries out of SPEC. */
static void drop_entries(struct cell_spec *spec, size_t count)
{
	for (; count > 0; count--)
		fd_close(&spec->view.entries[--spec->view.count].fd);
}

/*
 * Is a view built of the tree PATH, which is held by TREE, under a layer at the folder LAYER?
 * 0, or a number of errno.h.
 */
static int try_view(struct cell_spec *spec, int layer, const char *path, int tree)
{
	/* The copy of the workspace is for the cell itself. */
	const int workspace = spec->workspace_tree;
	auto_close int held = fcntl(tree, F_DUPFD_CLOEXEC, 3);
	auto_close int upper = fcntl(layer, F_DUPFD_CLOEXEC, 3);
	size_t count = spec->view.count;
	struct buf folder;
	struct err err = {0};

	spec->workspace_tree = -1;
	buf_init(&folder, PATH_MAX);
	bool fine = held >= 0 && upper >= 0 && fd_real_path(upper, &folder) &&
		    shape_show_tree(spec, folder.data, &upper, true, true, &err);
	if (fine)
		spec->view.entries[spec->view.count - 1].path =
			arena_copy(&spec->arena, str_of(path));
	fine = fine && shape_show_tree(spec, path, &held, false, true, &err);
	count = spec->view.count - count;
	int code = fine                    ? 0
		   : err.code != 0         ? err.code
		   : held < 0 || upper < 0 ? EMFILE
					   : EIO;
	if (fine) {
		struct view view = {&spec->view.entries[spec->view.count - count], count,
				    -1};

		view.entries[1].kind = VIEW_OVERLAY;
		view.entries[1].lasts = VIEW_LASTS_REVIEW;
		code = probe_view(&view, &spec->identity, path);
		shape_unmark_layer(folder.data);
	}
	drop_entries(spec, count);
	spec->workspace_tree = workspace;
	buf_fini(&folder);
	return code;
}

/*
 * Can the folder FD keep the marks of a layer? Without attributes the kernel cannot note which
 * folders hide what is below; a tmpfs has them since Linux 6.6.
 */
static bool has_attributes(int fd)
{
	char own[FD_NAME_ROOM];

	if (setxattr(fd_name(fd, own), TRIED_XATTR, "", 0, 0) < 0)
		return false;
	(void)removexattr(fd_name(fd, own), TRIED_XATTR);
	return true;
}

/*
 * Make the folder of the tree N of REVIEW at PLACE and open it: it belongs to the user of the
 * cell. -1: it cannot be there.
 */
static int open_place(const struct cell_spec *spec, struct review *review, size_t n,
		      enum review_place place, struct err *err)
{
	const struct sandbox_identity *identity = &spec->identity;

	if (!review_move_tree(review, n, place, err))
		return -1;
	auto_close int layer = review_open_tree(review, n);
	if (layer >= 0 && identity->change && !identity->map_root &&
	    fchownat(layer, "", identity->uid, identity->gid, AT_EMPTY_PATH) < 0)
		fd_close(&layer);
	if (layer < 0)
		(void)err_set(err, errno, REVIEW_KEY ": the folder of a layer: %s",
			      strerror(errno));
	return fd_take(&layer);
}

/*
 * Can the layer of the tree N of REVIEW lie at PLACE? Its folder is there then. 0: it can; or a
 * number of errno.h.
 */
static int try_place(struct cell_spec *spec, struct review *review, size_t n, int tree,
		     enum review_place place)
{
	struct err err = {.code = EIO};
	auto_close int layer = open_place(spec, review, n, place, &err);
	char own[FD_NAME_ROOM];
	int code;

	if (layer < 0)
		return err.code;
	code = has_attributes(layer)
		       ? try_view(spec, layer, review->meta.trees[n].path, tree)
		       : EOPNOTSUPP;
	if (code != 0)
		(void)shape_empty_layer(fd_name(layer, own));
	return code;
}

/* Does the error CODE tell of this moment, and nothing of the place that was tried? */
static bool is_momentary(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOMEM;
}

/*
 * Find *PLACE of the tree N of REVIEW by trying. The first tree decides for those after it. False:
 * it cannot be known now.
 */
static bool find_place(struct cell_spec *spec, struct review *review, size_t n, int tree,
		       enum review_place *place, struct err *err)
{
	static const enum review_place places[] = {REVIEW_ON_DISK, REVIEW_IN_MEMORY};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const bool in_memory = places[i] == REVIEW_IN_MEMORY;
		int code;

		if (n > 0 && in_memory != review->meta.memory)
			continue;
		*place = places[i];
		code = try_place(spec, review, n, tree, places[i]);
		if (code == 0)
			return true;
		/* A copy of the tree would be no answer to that. */
		if (is_momentary(code))
			return err_set(err, ECHILD, REVIEW_KEY ": a layer over %s: %s",
				       review->meta.trees[n].path, strerror(code));
	}
	*place = REVIEW_COPIED;
	return true;
}

/* Sentences. */

/* The type of the file system at PATH, as the list of mounts names it. */
static void type_of(const char *path, char type[TYPE_MAX])
{
	struct buf text, point;
	struct mount mount;
	size_t longest = 0;

	(void)snprintf(type, TYPE_MAX, "an unknown file system");
	buf_init(&text, MOUNTS_BYTES_MAX);
	buf_init(&point, PATH_MAX);
	if (fd_read_at(AT_FDCWD, "/proc/self/mountinfo", &text)) {
		struct str rest = buf_str(&text);

		while (fd_mounts_next(&rest, &mount)) {
			buf_clear(&point);
			(void)fd_mounts_add_path(mount.point, &point);
			/* Of two mounts at one point the later one is seen. */
			if (point.size < longest || !path_within(path, point.data))
				continue;
			longest = point.size;
			(void)snprintf(type, TYPE_MAX, "%.*s", (int)mount.type.size,
				       mount.type.data);
		}
	}
	buf_fini(&point);
	buf_fini(&text);
}

/* "84,210" */
static void add_number(uint64_t number, struct buf *out)
{
	char digits[32];
	const int size =
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);

	for (int i = 0; i < size; i++) {
		if (i > 0 && (size - i) % 3 == 0)
			(void)buf_addc(out, ',');
		(void)buf_addc(out, digits[i]);
	}
}

static void add_copy_size(const struct copy_size *size, struct buf *out)
{
	char bytes[32];

	if (size->files > COPY_FILES_MAX || size->bytes <= COPY_BYTES_MAX) {
		add_number(size->files, out);
		(void)buf_addf(out, " file%s", size->files == 1 ? "" : "s");
	} else {
		(void)buf_adds(out, text_size(size->bytes, bytes));
	}
}

/*
 * Is the tree PATH what the kernel lays no layer over? It is tried in memory of the view itself,
 * which takes every layer.
 */
static bool is_trees_fault(struct cell_spec *spec, const char *path, int tree)
{
	const int workspace = spec->workspace_tree;
	auto_close int held = fcntl(tree, F_DUPFD_CLOEXEC, 3);
	const size_t count = spec->view.count;
	struct err err = {0};
	bool fault = true;

	spec->workspace_tree = -1;
	struct view_entry *memory = spec_add_entry(spec, VIEW_MEMORY, path, NULL);
	memory->mode = S_IRWXU;
	memory->size = 1 << 20;
	if (held >= 0 && shape_show_tree(spec, path, &held, false, true, &err)) {
		struct view view = {&spec->view.entries[count], 2, -1};

		view.entries[1].kind = VIEW_OVERLAY;
		view.entries[1].lasts = VIEW_LASTS_CELL;
		fault = probe_view(&view, &spec->identity, path) != 0;
	}
	drop_entries(spec, spec->view.count - count);
	spec->workspace_tree = workspace;
	return fault;
}

/*
 * Say why no layer is over the tree PATH with its files in STORE. True: the tree is at fault, and
 * no other STORE would help.
 */
static bool add_reason(struct cell_spec *spec, const char *store, const char *path,
		       int tree, struct buf *out)
{
	const bool fault = is_trees_fault(spec, path, tree);
	char type[TYPE_MAX];

	type_of(fault ? path : store, type);
	(void)buf_addf(out,
		       fault ? "%s lies on %s, where the kernel lays no layer"
			     : "%s lies on %s, where the kernel keeps no layer, and neither "
			       "/run/user nor /dev/shm can take it",
		       fault ? path : store, type);
	return fault;
}

/* Copy the tree N of REVIEW. */
static bool make_copy(struct cell_spec *spec, struct review *review, size_t n, int tree,
		      struct err *err)
{
	const char *path = review->meta.trees[n].path;
	auto_close int layer = open_place(spec, review, n, REVIEW_COPIED, err);
	auto_close int from = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err why = {0};
	struct copy_size size;
	struct stat state;
	struct buf text;
	const struct copy_except except = {
		.top = path,
		.closed = spec->blocked.items,
		.folder = review_state_folder(review, &state) ? &state : NULL,
	};

	if (layer < 0 || from < 0)
		return layer < 0 ? false
				 : err_set(err, errno, REVIEW_KEY ": %s: %s", path,
					   strerror(errno));
	if (copy_make(from, layer, &except, &size, &why))
		return true;
	if (why.code != E2BIG)
		return err_set(err, ECHILD, REVIEW_KEY ": a copy of %s: %s", path, why.text);
	buf_init(&text, SENTENCE_MAX);
	const bool fault = add_reason(spec, review->path, path, tree, &text);
	(void)buf_adds(&text, ", and a copy would be ");
	add_copy_size(&size, &text);
	(void)err_set(err, ECHILD, REVIEW_KEY ": %s. %s", text.data,
		      fault ? "Use a workspace on a local disk."
			    : "Set XDG_STATE_HOME to a folder on a local disk.");
	buf_fini(&text);
	return false;
}

bool carrier_find(struct cell_spec *spec, struct review *review, size_t n, int tree,
		  struct err *err)
{
	const char *path = review->meta.trees[n].path;
	struct buf key;

	buf_init(&key, KEY_ROOM);
	key_make(review, spec, tree, &key);
	enum review_place place = note_read(review, path, &key);
	bool known = true;

	/* The place of the first tree decides for all of them. */
	if (place == REVIEW_PLACES ||
	    (n > 0 && (place == REVIEW_IN_MEMORY) != review->meta.memory) ||
	    place == REVIEW_COPIED || !review_move_tree(review, n, place, NULL)) {
		known = find_place(spec, review, n, tree, &place, err);
		if (known)
			note_write(review, path, &key, place);
	}
	buf_fini(&key);
	return known && (place != REVIEW_COPIED || make_copy(spec, review, n, tree, err));
}

/* Telling. */

/* A cell's specification with the identity and the mapping of a cell in WORKSPACE. */
static void spec_begin(struct cell_spec *spec, const char *workspace)
{
	struct stat st;
	struct err err;

	spec_init(spec);
	spec->workspace = arena_copy(&spec->arena, str_of(workspace));
	spec->built = spec->strength.level = SANDBOX_SEALED;
	if (stat(workspace, &st) == 0)
		sandbox_identity(&st, &spec->identity);
	if (spec->identity.map_root)
		(void)sandbox_open_mapping(&spec->identity, &spec->mapping, &err);
}

static bool tell_copy(struct cell_spec *spec, struct review *review, const char *folder,
		      int tree, const char **remedy, struct buf *text)
{
	const char *path = review->meta.trees[0].path;
	auto_close int layer = review_open_tree(review, 0);
	auto_close int from = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct copy_size size = {0};
	struct stat state;
	struct err why = {0};
	const struct copy_except except = {
		.top = path,
		.closed = spec->blocked.items,
		.folder = review_state_folder(review, &state) ? &state : NULL,
	};
	const bool fits =
		from >= 0 && layer >= 0 && copy_try(from, layer, &except, &size, &why);

	(void)buf_adds(text, fits ? "in a copy of " : "none: ");
	if (fits) {
		add_copy_size(&size, text);
		(void)buf_adds(text, " for each session: ");
	}
	if (add_reason(spec, folder, path, tree, text))
		*remedy = CARRIER_TREE_REMEDY;
	if (!fits && why.code == E2BIG) {
		(void)buf_adds(text, ", and a copy would be ");
		add_copy_size(&size, text);
	} else if (!fits) {
		(void)buf_addf(text, ", and it cannot be copied: %s", why.text);
	}
	return fits;
}

/* Correct the note of a former try, if there is one: a cell makes the first one. */
static void note_correct(const struct review *review, const char *path, struct buf *key,
			 enum review_place place)
{
	char name[NOTED_ROOM];

	note_name(path, name);
	if (faccessat(review->project, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		note_write(review, path, key, place);
}

/* Remove the folder of the layers of a workspace that has none. */
static void remove_project(int take_project)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (take_project >= 0 && fd_real_path(take_project, &path))
		(void)rmdir(path.data);
	buf_fini(&path);
	fd_close(&take_project);
}

bool carrier_tell(const char *folder, const char *workspace, const char **remedy,
		  struct buf *text)
{
	auto_close int tree = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct review *review = NULL;
	struct cell_spec spec;
	struct err err = {0};
	char type[TYPE_MAX];
	enum review_place place = REVIEW_COPIED;
	struct buf key;
	size_t n;

	*remedy = CARRIER_STORE_REMEDY;
	if (tree < 0 ||
	    !review_make(folder, workspace, NULL, "glovebox doctor", &review, &err) ||
	    !review_add_tree(review, workspace, &n, &err)) {
		(void)buf_addf(text, "none: %s",
			       err.text[0] != '\0' ? err.text : strerror(errno));
		review_close(review);
		return false;
	}
	spec_begin(&spec, workspace);
	buf_init(&key, KEY_ROOM);
	key_make(review, &spec, tree, &key);
	const bool known = find_place(&spec, review, n, tree, &place, &err);
	if (known)
		note_correct(review, workspace, &key, place);
	if (!known || place == REVIEW_ON_DISK)
		*remedy = NULL;
	buf_fini(&key);
	type_of(folder, type);
	bool good = known;
	if (!known)
		(void)buf_addf(text, "not known: %s", err.text);
	else if (place == REVIEW_ON_DISK)
		(void)buf_addf(text, "on disk, in %s", folder);
	else if (place == REVIEW_IN_MEMORY)
		(void)buf_addf(text,
			       "in memory, saved when their sessions end: %s lies on %s",
			       folder, type);
	else
		good = review_move_tree(review, n, REVIEW_COPIED, &err) &&
		       tell_copy(&spec, review, folder, tree, remedy, text);
	const int project = fcntl(review->project, F_DUPFD_CLOEXEC, 3);
	spec_fini(&spec);
	review_close(review);
	remove_project(project);
	return good;
}
