/* home: the project's private home, the layers of a view, and the caller's caches. */

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "view/below.h"
#include "view/carrier.h"
#include "view/review.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Shows the caller's package and build caches under a layer. The lower folder has the
 * caller's earlier downloads, read-only. Additions of the cell go to a folder of the
 * project, which one cell at a time locks; a second cell at the same time adds to
 * memory. A cell of one call without network has no downloads to keep, and using the
 * folder makes its start three times as expensive as memory does. So it uses the folder
 * only when the project already has one.
 */

/*
 * These folders contain no credentials, which are stored beside them (.npmrc,
 * .m2/settings.xml, .cargo/credentials).
 */
struct cache {
	const char *below_home;
	const char *name;     /* name of the folder that keeps additions */
	const char *programs; /* shown when PATH leads to one of these */
};

static const struct cache caches[] = {
	{".cache/pip", "pip", "pip pip3"},
	{".cache/uv", "uv", "uv"},
	{".npm/_cacache", "npm", "npm"},
	{".cache/yarn", "yarn", "yarn"},
	{".local/share/pnpm/store", "pnpm", "pnpm"},
	{".bun/install/cache", "bun", "bun"},
	{".cargo/registry", "cargo-registry", "cargo"},
	{".cargo/git", "cargo-git", "cargo"},
	{"go/pkg/mod", "go-mod", "go"},
	{".cache/go-build", "go-build", "go"},
	{".m2/repository", "maven", "mvn"},
	{".gradle/caches", "gradle", "gradle"},
	{".cache/ccache", "ccache", "ccache"},
	{".cache/composer", "composer", "composer"},
	{".nuget/packages", "nuget", "dotnet"},
};

enum { CACHE_COUNT = sizeof(caches) / sizeof(caches[0]) };

/*
 * The contents of a kept layer's folder when nothing was added; they are removed with the
 * cell. The kernel marks a volatile layer that was not unmounted properly, and does not
 * mount a marked layer again, so we remove the mark. A crash of the machine can then lose
 * the last writes, as with every file that was not synced.
 */
#define LAYER_WORK "/scratch/work"
#define LAYER_MARK LAYER_WORK "/incompat/volatile"
static const char *const leftovers[] = {
	LAYER_MARK, LAYER_WORK "/incompat", LAYER_WORK, "/upper", "/scratch", "/lower",
	"",
};

/*
 * The first three entries are the mark and the folders around it. The last two do not change
 * with what is in a layer.
 */
enum {
	LEFTOVER_COUNT = sizeof(leftovers) / sizeof(leftovers[0]),
	MARK_FOLDERS = 3,
	KEPT_FOLDERS = 2,
};

void shape_unmark_layer(const char *folder)
{
	char path[PATH_MAX];

	/*
	 * The kernel makes these folders without any rights. Change the outer one first.
	 */
	for (size_t i = MARK_FOLDERS; i > 0; i--) {
		if (snprintf(path, sizeof(path), "%s%s", folder, leftovers[i - 1]) <
		    (int)sizeof(path))
			(void)chmod(path, 0700);
	}
	if (snprintf(path, sizeof(path), "%s" LAYER_MARK "/dirty", folder) <
	    (int)sizeof(path))
		(void)unlink(path);
	for (size_t i = 0; i + 1 < MARK_FOLDERS; i++) {
		if (snprintf(path, sizeof(path), "%s%s", folder, leftovers[i]) <
		    (int)sizeof(path))
			(void)rmdir(path);
	}
}

bool shape_empty_layer(const char *folder)
{
	bool gone = true;
	char path[PATH_MAX];

	shape_unmark_layer(folder);
	for (size_t i = MARK_FOLDERS - 1; i + KEPT_FOLDERS < LEFTOVER_COUNT; i++)
		gone = snprintf(path, sizeof(path), "%s%s", folder, leftovers[i]) <
			       (int)sizeof(path) &&
		       (rmdir(path) == 0 || errno == ENOENT) && gone;
	for (unsigned i = 0; snprintf(path, sizeof(path), "%s/" VIEW_LAYER_BELOW "%u",
				      folder, i) < (int)sizeof(path) &&
			     rmdir(path) == 0;
	     i++)
		;
	return gone;
}

static const char *path_of_spec(const struct cell_spec *spec)
{
	for (const char *const *at = spec->environment.items; *at != NULL; at++) {
		if (strncmp(*at, "PATH=", 5) == 0)
			return *at + 5;
	}
	return "";
}

static bool leads_to(const char *path, const char *programs)
{
	struct str names = str_of(programs), name, folder;
	char file[PATH_MAX];

	while (str_next_word(&names, &name)) {
		struct str rest = str_of(path);

		while (path_next_folder(&rest, &folder)) {
			int n = snprintf(file, sizeof(file), "%.*s/%.*s", (int)folder.size,
					 folder.data, (int)name.size, name.data);
			if (n > 0 && n < (int)sizeof(file) && access(file, X_OK) == 0)
				return true;
		}
	}
	return false;
}

/* Digits of the workspace's hash: projects of one user never share a home. */
enum { HOME_DIGITS = 16 };

/*
 * Append the folder of the workspace's project below the user's state ("homes",
 * "caches"). State that goes with the cell has one project only. False when there is no state
 * folder.
 */
static bool state_path(const struct shape_options *options, const char *kind,
		       const char *workspace, struct buf *path)
{
	char hex[HASH_HEX + 1], name[64];

	hash_text(str_of(workspace), hex);
	if (options->fresh)
		(void)snprintf(name, sizeof(name), "glovebox/%.16s", kind);
	else
		(void)snprintf(name, sizeof(name), "glovebox/%.16s/%.*s", kind,
			       HOME_DIGITS, hex);
	return path_xdg(shape_environment(options, "XDG_STATE_HOME"),
			shape_environment(options, "HOME"), ".local/state", name, path);
}

struct caching {
	const struct shape_options *options;
	const struct policy *policy;
	struct cell_spec *spec;
	/* the folder that keeps additions; "" when this cell may not use it */
	struct buf kept;
	bool asked;
};

/*
 * Make and lock the project's folder for additions. `kept` is empty when this cell may
 * not use it, e.g. because another cell has the lock.
 */
static void folder_take(struct caching *caching)
{
	struct buf *kept = &caching->kept;

	caching->asked = true;
	if (state_path(caching->options, "caches", caching->spec->workspace, kept) &&
	    (!caching->options->one_call || caching->policy->network.count > 0 ||
	     access(kept->data, F_OK) == 0) &&
	    fd_make_folders(kept->data, NULL))
		caching->spec->cache_lock =
			fd_hold(AT_FDCWD, kept->data, LOCK_EX | LOCK_NB, 0700);
	if (caching->spec->cache_lock < 0)
		buf_clear(kept);
}

static void leftovers_note(struct cell_spec *spec, const char *folder)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	for (size_t i = 0; i < LEFTOVER_COUNT; i++) {
		buf_clear(&path);
		if (buf_addf(&path, "%s%s", folder, leftovers[i]))
			spec_add(spec, &spec->leftovers, path.data);
	}
	buf_fini(&path);
}

/* Show the folder or memory that takes the additions of CACHE, at PLACE in the view. */
static bool upper_show(struct caching *caching, const struct cache *cache, const char *place)
{
	struct cell_spec *spec = caching->spec;
	struct view_entry *entry;
	char folder[PATH_MAX];

	if (!caching->asked)
		folder_take(caching);
	if (caching->kept.size == 0) {
		entry = spec_add_entry(spec, VIEW_MEMORY, place, NULL);
		entry->mode = 0700;
		entry->size = caching->policy->limits.tmp;
		return true;
	}
	int n = snprintf(folder, sizeof(folder), "%s/%s", caching->kept.data, cache->name);
	if (n < 0 || n >= (int)sizeof(folder) ||
	    (mkdir(folder, 0700) < 0 && errno != EEXIST))
		return false;
	auto_close int fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	shape_unmark_layer(folder);
	leftovers_note(spec, folder);
	if (!shape_show_tree(spec, place, &fd, true, true, NULL)) {
		spec->view.count--;
		return false;
	}
	entry = &spec->view.entries[spec->view.count - 1];
	entry->source = arena_copy(&spec->arena, str_of(folder));
	return true;
}

static bool is_blocked(const struct cell_spec *spec, const char *path)
{
	for (const char *const *at = spec->blocked.items; *at != NULL; at++) {
		if (path_within(path, *at) || path_within(*at, path))
			return true;
	}
	return false;
}

/*
 * Can the cache be mounted at BELOW_HOME? The cell may write to the private home, so the
 * place of a cache or a folder above it may be a link or inaccessible. Then the cache is
 * not shown.
 */
static bool place_is_free(const struct cell_spec *spec, const char *below_home)
{
	auto_free char *copy = memory_copy(below_home);
	auto_close int at = fcntl(spec->home_lock, F_DUPFD_CLOEXEC, 0);
	char *rest = copy;
	struct stat st;

	while (at >= 0 && rest != NULL) {
		int next = openat(at, strsep(&rest, "/"),
				  O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);

		if (next < 0)
			return errno == ENOENT;
		fd_close(&at);
		at = next;
		if (fstat(at, &st) < 0 || (st.st_mode & S_IRWXU) != S_IRWXU)
			return false;
	}
	return true;
}

static void cache_show(struct caching *caching, const struct cache *cache, const char *home)
{
	struct cell_spec *spec = caching->spec;
	char source[PATH_MAX], place[PATH_MAX];
	struct view_entry *entry;

	(void)snprintf(source, sizeof(source), "%s/%s", home, cache->below_home);
	if (snprintf(place, sizeof(place), "%s/%s", spec->home, cache->below_home) >=
	    (int)sizeof(place))
		return;
	auto_close int fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(AT_FDCWD, source, R_OK | X_OK, AT_EACCESS) < 0 ||
	    is_blocked(spec, source) || !leads_to(path_of_spec(spec), cache->programs) ||
	    !place_is_free(spec, cache->below_home))
		return;
	if (!upper_show(caching, cache, place))
		return;
	if (!shape_show_tree(spec, place, &fd, false, true, NULL)) {
		spec->view.count -= 2;
		return;
	}
	entry = &spec->view.entries[spec->view.count - 1];
	entry->kind = VIEW_OVERLAY;
	entry->optional = true;
	entry->source = arena_copy(&spec->arena, str_of(source));
	entry->why = caching->kept.size > 0
			     ? "your cache; what is added stays the project's"
			     : "your cache; what is added goes with the cell";
}

void shape_add_caches(const struct shape_options *options, const struct policy *policy,
		      struct cell_spec *spec)
{
	const char *home = shape_environment(options, "HOME");
	struct caching caching = {.options = options, .policy = policy, .spec = spec};

	/*
	 * Layers need a view. When root's cell becomes the owner of somebody else's
	 * workspace, root's caches are inaccessible to it.
	 */
	if (!spec_is_sealed(spec) || home == NULL || home[0] != '/' || home[1] == '\0' ||
	    strlen(home) >= PATH_MAX / 2 ||
	    (spec->identity.change && !spec->identity.map_root))
		return;
	buf_init(&caching.kept, PATH_MAX / 2);
	for (size_t i = 0; i < CACHE_COUNT; i++)
		cache_show(&caching, &caches[i], home);
	if (caching.kept.size > 0)
		spec_add(spec, &spec->leftovers, caching.kept.data);
	buf_fini(&caching.kept);
}

/* Remove the empty folder PATH below HOME, in which the cell may have put links. */
static bool point_remove(int home, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	const char *name = path_base_name(path);
	auto_free char *above = memory_copy(name == path ? "." : path);

	if (name != path)
		above[name - path - 1] = '\0';
	auto_close int folder = (int)syscall(SYS_openat2, home, above, &how, sizeof(how));
	return folder >= 0 && unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

/*
 * Remove the mount points that the cell has made in the private home, and the folders
 * above them.
 */
static void points_remove(const struct cell_spec *spec)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		char *slash;

		if (entry->kind != VIEW_OVERLAY || !path_within(entry->path, spec->home) ||
		    strcmp(entry->path, spec->home) == 0)
			continue;
		auto_free char *path = memory_copy(path_relative(entry->path, spec->home));
		while (point_remove(spec->home_lock, path)) {
			slash = strrchr(path, '/');
			if (slash == NULL)
				break;
			*slash = '\0';
		}
	}
}

/* Remove the folders that an empty layer has left; HOME_IS_OURS: in the home, too. */
static void caches_tidy(const struct cell_spec *spec, bool home_is_ours)
{
	for (size_t i = 0; i < spec->leftovers.count; i++) {
		const char *path = spec->leftovers.items[i];

		/*
		 * At the first entry of each layer, remove its mark. The very last entry
		 * is the folder of all layers.
		 */
		if (i % LEFTOVER_COUNT == 0 && i + 1 < spec->leftovers.count)
			shape_unmark_layer(spec->leftovers.items[i + LEFTOVER_COUNT - 1]);
		(void)rmdir(path);
	}
	if (home_is_ours)
		points_remove(spec);
}

/*
 * Adds layers, which take writes over a tree of a view, and pins, which keep folders in
 * their places.
 */

enum { POINTS_MEMORY = 64 << 10 }; /* for the mount points of a view of several folders */

static bool is_tree(const struct view_entry *entry)
{
	return entry->kind == VIEW_TREE || entry->kind == VIEW_OVERLAY;
}

static bool is_writable(const struct view_entry *entry)
{
	return entry->writable ||
	       (entry->kind == VIEW_OVERLAY && entry->lasts != VIEW_LASTS_NOTHING);
}

bool shape_is_shown(const struct cell_spec *spec, const char *path, bool writable)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (is_tree(entry) && strcmp(entry->path, path) == 0 &&
		    (is_writable(entry) || !writable))
			return true;
	}
	return false;
}

/* Find a mount point below PATH and put it into POINT. */
static bool find_mount_below(struct str mounts, const char *path, struct buf *point)
{
	struct mount mount;

	while (fd_mounts_next(&mounts, &mount)) {
		buf_clear(point);
		(void)fd_mounts_add_path(mount.point, point);
		if (strcmp(point->data, path) != 0 && path_within(point->data, path))
			return true;
	}
	return false;
}

/*
 * A layer shows only one file system. A mount point below it would silently be empty, or
 * the kernel would refuse the layer.
 */
static bool refuse_mounts_below(const char *path, const char *key, struct err *err)
{
	auto_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	struct buf text, point;

	if (fd < 0)
		return err_set(err, errno, "the list of mounts: %s", strerror(errno));
	buf_init(&text, MOUNTS_BYTES_MAX);
	buf_init(&point, PATH_MAX);
	bool ok = fd_read_all(fd, &text, "the list of mounts", err);
	if (ok && find_mount_below(buf_str(&text), path, &point))
		ok = err_set(err, EINVAL,
			     "%s: %s is a file system of its own, which a layer over %s "
			     "cannot show; name the folders beside it in `%s`, or leave "
			     "`%s` out",
			     key, point.data, path,
			     strcmp(key, REVIEW_KEY) == 0 ? "write" : "read", key);
	buf_fini(&point);
	buf_fini(&text);
	return ok;
}

/* Is FD a folder that is seen under FOUND? */
static bool is_seen(int fd, const struct below_found *found)
{
	struct stat st;

	return fd >= 0 && !found->hides && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Show at PATH the file or folder number I of FOUND. Returns its entry; NULL: ERR says why. */
static struct view_entry *place_show(struct cell_spec *spec, const char *path,
				     const struct below_found *found, size_t i,
				     struct err *err)
{
	auto_close int fd = fcntl(found->places[i].fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0) {
		(void)err_set(err, errno, "%s: %s", found->places[i].path, strerror(errno));
		return NULL;
	}
	if (!shape_show_tree(spec, found->places[i].path, &fd, false, true, err))
		return NULL;
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
	entry->path = arena_copy(&spec->arena, str_of(path));
	return entry;
}

/*
 * Show at PATH, where the view has the content of an overlay, that overlay over the folders of
 * FOUND and over the folder *TAKE_FD, where one is.
 */
static bool overlay_show(struct cell_spec *spec, const char *path, int *take_fd,
			 const struct below_found *found, enum view_lasts lasts,
			 struct err *err)
{
	const bool seen = is_seen(*take_fd, found);
	struct view_entry *entry = NULL;
	unsigned number = 0;

	for (; number < found->count; number++) {
		entry = place_show(spec, path, found, number, err);
		if (entry == NULL)
			return false;
		entry->kind = VIEW_LOWER;
		entry->number = number;
	}
	if (seen && !shape_show_tree(spec, path, take_fd, false, true, err))
		return false;
	entry = &spec->view.entries[spec->view.count - 1];
	entry->kind = VIEW_OVERLAY;
	entry->number = seen ? number : number - 1;
	entry->lasts = lasts;
	return true;
}

static void memory_show(struct cell_spec *spec, const char *path, uint64_t size)
{
	struct view_entry *entry = spec_add_entry(spec, VIEW_MEMORY, path, NULL);

	entry->mode = 0700;
	entry->size = size;
}

bool shape_show_layer(struct cell_spec *spec, const char *path, int *take_fd,
		      const struct below_found *found, uint64_t size, struct err *err)
{
	if (!refuse_mounts_below(path, "scratch", err))
		return false;
	memory_show(spec, path, size);
	return overlay_show(spec, path, take_fd, found, VIEW_LASTS_CELL, err);
}

bool shape_show_below(struct cell_spec *spec, const char *path, int *take_fd,
		      const struct below_found *found, struct err *err)
{
	/* A single folder, or a file, needs no overlay. */
	if (found->count == 0)
		return shape_show_tree(spec, path, take_fd, false, true, err);
	if (found->count == 1 && !is_seen(*take_fd, found))
		return place_show(spec, path, found, 0, err) != NULL;
	memory_show(spec, path, POINTS_MEMORY);
	return overlay_show(spec, path, take_fd, found, VIEW_LASTS_NOTHING, err);
}

bool shape_show_review(struct cell_spec *spec, const char *path, int *take_fd,
		       const struct below_found *found, struct review *review,
		       struct err *err)
{
	const struct sandbox_identity *identity = &spec->identity;
	size_t number;

	if (found->kind != BELOW_FOLDER && !is_seen(*take_fd, found))
		return err_set(err, ENOTDIR,
			       REVIEW_KEY
			       ": %s is a file, over which no layer can be; name its "
			       "folder in `write`",
			       path);
	if (!refuse_mounts_below(path, REVIEW_KEY, err) ||
	    !review_add_tree(review, path, &number, err) ||
	    (review->life == REVIEW_MADE &&
	     !carrier_find(spec, review, number,
			   is_seen(*take_fd, found) ? *take_fd : found->places[0].fd, err)))
		return false;
	if (review->life == REVIEW_MADE && review->meta.over_count > 0 &&
	    review->meta.trees[number].copied)
		return err_set(err, ECHILD,
			       REVIEW_KEY ": a copy of %s cannot lie over a layer", path);
	auto_free char *folder = review_tree_path(review, number);
	auto_close int fd = review_open_tree(review, number);
	if (fd < 0 || (identity->change && !identity->map_root &&
		       fchownat(fd, "", identity->uid, identity->gid, AT_EMPTY_PATH) < 0))
		return err_set(err, errno, REVIEW_KEY ": %s: %s", folder, strerror(errno));
	/* By the folder's own path: the copy of the workspace is for what lies below. */
	if (!shape_show_tree(spec, folder, &fd, true, true, err))
		return false;
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
	entry->path = arena_copy(&spec->arena, str_of(path));
	if (!overlay_show(spec, path, take_fd, found, VIEW_LASTS_REVIEW, err))
		return false;
	entry = &spec->view.entries[spec->view.count - 1];
	entry->copied = review->meta.trees[number].copied;
	return true;
}

static bool is_pinned(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (spec->view.entries[i].kind == VIEW_PIN &&
		    strcmp(spec->view.entries[i].path, path) == 0)
			return true;
	}
	return false;
}

void shape_pin_above(struct cell_spec *spec, const char *path)
{
	const struct view_entry *holder = NULL;
	char above[PATH_MAX];
	size_t size = strlen(path);

	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (is_tree(entry) && strcmp(entry->path, path) != 0 &&
		    path_within(path, entry->path) &&
		    (holder == NULL || strlen(entry->path) > strlen(holder->path)))
			holder = entry;
	}
	if (holder == NULL || !is_writable(holder) || size >= sizeof(above))
		return;
	memcpy(above, path, size + 1);
	for (size_t at = strlen(holder->path) + 1; at < size; at++) {
		if (path[at] != '/')
			continue;
		above[at] = '\0';
		if (!is_pinned(spec, above)) {
			struct view_entry *pin =
				spec_add_entry(spec, VIEW_PIN, above, NULL);

			pin->writable = true;
			pin->why = "what lies below keeps its place";
		}
		above[at] = '/';
	}
}

enum {
	HOME_MEMORY = 256 << 20,
};

/*
 * Does PATH lead through a link in a place that the cell may write? Links cannot be
 * pinned, so a command could replace such a link by a folder of its own, which the next
 * session would use.
 */
static bool leads_through_link(const struct cell_spec *spec, const char *path)
{
	auto_free char *part = memory_copy(path);

	for (char *slash = strrchr(part, '/'); slash != NULL && slash != part;
	     *slash = '\0', slash = strrchr(part, '/')) {
		struct stat st;
		if (lstat(part, &st) < 0 || !S_ISLNK(st.st_mode))
			continue;
		*slash = '\0';
		auto_free char *folder = realpath(part, NULL);
		*slash = '/';
		for (size_t i = 0; folder != NULL && i < spec->view.count; i++) {
			const struct view_entry *entry = &spec->view.entries[i];
			if (entry->kind == VIEW_TREE && entry->writable &&
			    path_within(folder, entry->path))
				return true;
		}
	}
	return false;
}

/*
 * Hide OWN, a real path of glovebox's own below the folder of VARIABLE, in whatever the
 * cell shows.
 */
static bool hide_own(struct cell_spec *spec, const char *own, const char *variable,
		     struct err *err)
{
	bool shown = false, writable = false;

	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind != VIEW_TREE && entry->kind != VIEW_OVERLAY)
			continue;
		if (path_within(entry->path, own))
			return err_set(err, EPERM,
				       "%s lies in glovebox's own state (%s), which no cell "
				       "gets; name another folder",
				       entry->path, own);
		if (path_within(own, entry->path)) {
			shown = true;
			writable = writable || entry->writable;
		}
	}
	if (writable && !spec_is_sealed(spec) && spec->built >= SANDBOX_RULES)
		return err_set(err, EINVAL,
			       "%s is glovebox's own and cannot be hidden inside a writable "
			       "folder at level L2, which this machine reaches: write to "
			       "narrower folders, set %s to another place, or see "
			       "`glovebox doctor` for L3",
			       own, variable);
	if (!shown || !spec_is_sealed(spec))
		return true;
	shape_pin_above(spec, own);
	spec_add(spec, &spec->blocked, own);
	spec_add_entry(spec, VIEW_MASK, own, NULL)->why = "glovebox's own";
	return true;
}

static bool hide_state(const struct shape_options *options, struct cell_spec *spec,
		       struct err *err)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (!path_xdg(shape_environment(options, "XDG_STATE_HOME"),
		      shape_environment(options, "HOME"), ".local/state", "glovebox",
		      &path)) {
		buf_fini(&path);
		return true;
	}
	/*
	 * When the state folder does not exist, we could not make it, so no program in
	 * the cell can.
	 */
	auto_free char *state = realpath(path.data, NULL);
	if (state != NULL && leads_through_link(spec, path.data)) {
		(void)err_set(err, EPERM,
			      "glovebox's own state, %s, is reached through a link in a folder "
			      "that this agent may write to, and could be exchanged there; set "
			      "XDG_STATE_HOME to the folder that the link leads to",
			      path.data);
		buf_fini(&path);
		return false;
	}
	buf_fini(&path);
	return state == NULL || hide_own(spec, state, "XDG_STATE_HOME", err);
}

/* The keys that `glovebox login` keeps. Beside them lie skills, which a cell may be shown. */
static bool hide_logins(const struct shape_options *options, struct cell_spec *spec,
			struct err *err)
{
	auto_free char *logins = NULL;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (path_xdg(shape_environment(options, "XDG_CONFIG_HOME"),
		     shape_environment(options, "HOME"), ".config", "glovebox/login.json",
		     &path))
		logins = realpath(path.data, NULL);
	buf_fini(&path);
	return logins == NULL || hide_own(spec, logins, "XDG_CONFIG_HOME", err);
}

/* Does SPEC show the real path PATH? */
static bool is_shown(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (is_tree(&spec->view.entries[i]) &&
		    path_within(path, spec->view.entries[i].path))
			return true;
	}
	return false;
}

/*
 * Hide the folder of cells in the runtime directory RUNTIME. It is made when it is missing: what
 * is made later would be in the view.
 */
static bool hide_cells_in(const char *runtime, struct cell_spec *spec, struct err *err)
{
	auto_free char *real = realpath(runtime, NULL);
	auto_free char *cells = NULL;
	struct stat st;
	struct buf path;

	if (real == NULL)
		return true;
	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s/glovebox", real))
		cells = memory_copy(path.data);
	buf_fini(&path);
	if (cells == NULL)
		return true;
	if (is_shown(spec, real))
		(void)mkdir(cells, 0700);
	/* One that we could not make can be made by nobody whose cells stand there. */
	if (lstat(cells, &st) < 0)
		return true;
	if (!S_ISDIR(st.st_mode) && !is_shown(spec, real))
		return true;
	if (!S_ISDIR(st.st_mode))
		return err_set(err, EPERM,
			       "%s is no folder, and stands where glovebox keeps the sockets of "
			       "cells; remove it",
			       cells);
	return hide_own(spec, cells, "XDG_RUNTIME_DIR", err);
}

/*
 * The sockets of the cells of `glovebox start`: a program that reaches one works in another cell.
 * The front of a cell refuses programs of other cells as well (serve/engine.c), which holds for
 * runtime directories that this process does not know.
 */
static bool hide_cells(const struct shape_options *options, struct cell_spec *spec,
		       struct err *err)
{
	const char *runtime = shape_environment(options, "XDG_RUNTIME_DIR");
	char usual[sizeof("/run/user/") + 16];

	(void)snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned)geteuid());
	if (runtime != NULL && runtime[0] == '/' && strcmp(runtime, usual) != 0 &&
	    !hide_cells_in(runtime, spec, err))
		return false;
	return hide_cells_in(usual, spec, err);
}

/* Files that this program was told to keep from every cell, wherever they lie and by whom they are granted. */
static bool hide_named(const struct shape_options *options, struct cell_spec *spec,
		       struct err *err)
{
	for (const char *const *at = options->hidden; at != NULL && *at != NULL; at++) {
		auto_free char *own = realpath(*at, NULL);

		if (own == NULL || spec_is_blocked(spec, own))
			continue;
		if (!hide_own(spec, own, "`service`", err))
			return false;
		if (spec_is_blocked(spec, own))
			continue;
		/* The system's folders are shown later, and others may be granted. */
		spec_add(spec, &spec->blocked, own);
		spec_add_entry(spec, VIEW_MASK, own, NULL)->why = "glovebox's own";
	}
	return true;
}

/*
 * Keeps the stores from which cells begin as they are: the caches of images and of snapshots. A
 * cell that could write there would choose what later cells find. A cell over a snapshot has
 * its files in that store, and may be shown it to be read.
 */

static const struct own_store {
	const char *variable, *fallback, *name;
} own_stores[] = {
	{"XDG_CACHE_HOME", ".cache", "glovebox/images"},
	{"XDG_DATA_HOME", ".local/share", "glovebox/snapshots"},
};

/* The part of the folder of a store that SPEC shows. */
struct store_shown {
	bool writable; /* in a folder that may be written, or in the layer over one */
	bool apart;    /* it, or a folder in it, is shown by an entry of its own */
};

/* Look at the real path STORE. False: an entry of SPEC writes into the store. */
static bool store_look(const struct cell_spec *spec, const char *store,
		       struct store_shown *shown, struct err *err)
{
	*shown = (struct store_shown){0};
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		const bool writes = entry->kind == VIEW_TREE && entry->writable;

		if (!is_tree(entry))
			continue;
		if (writes && path_within(entry->source, store))
			return err_set(err, EPERM,
				       "%s lies in %s, which is glovebox's own and which no "
				       "cell writes to; name another folder",
				       entry->source, store);
		shown->apart = shown->apart || path_within(entry->path, store);
		shown->writable = shown->writable ||
				  (is_writable(entry) && path_within(store, entry->path));
	}
	return true;
}

/*
 * Make the folder STORE, which is missing, where the cell could make it: then it is not the
 * cell's. The folder that is there above it, a real path, decides.
 */
static void store_make(const struct cell_spec *spec, const char *store)
{
	auto_free char *above = memory_copy(store);
	auto_free char *real = NULL;
	bool may_make = false;
	struct buf path;

	for (char *slash = strrchr(above, '/');
	     real == NULL && slash != NULL && slash != above; slash = strrchr(above, '/')) {
		*slash = '\0';
		real = realpath(above, NULL);
	}
	for (size_t i = 0; real != NULL && i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		may_make = may_make || (entry->kind == VIEW_TREE && entry->writable &&
					path_within(real, entry->source));
	}
	if (!may_make)
		return;
	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s/", store))
		(void)fd_make_folders(path.data, NULL);
	buf_fini(&path);
}

/* Keep the store at PATH, below the folder of VARIABLE. */
static bool keep_store(struct cell_spec *spec, const char *path, const char *variable,
		       struct err *err)
{
	struct store_shown shown;

	store_make(spec, path);
	auto_free char *store = realpath(path, NULL);
	if (leads_through_link(spec, path))
		return err_set(err, EPERM,
			       "glovebox's own folder, %s, is reached through a link in a folder "
			       "that this agent may write to, and could be exchanged there; set "
			       "%s to the folder that the link leads to",
			       path, variable);
	/* A store that could not be made can be made by no program in the cell either. */
	if (store == NULL)
		return true;
	if (!store_look(spec, store, &shown, err))
		return false;
	if (!shown.writable)
		return true;
	if (!shown.apart || !spec_is_sealed(spec))
		return hide_own(spec, store, variable, err);
	shape_pin_above(spec, store);
	spec_add_entry(spec, VIEW_PIN, store, NULL)->why = "glovebox's own";
	return true;
}

static bool keep_stores(const struct shape_options *options, struct cell_spec *spec,
			struct err *err)
{
	bool kept = true;
	struct buf path;

	for (size_t i = 0; kept && i < sizeof(own_stores) / sizeof(own_stores[0]); i++) {
		const struct own_store *store = &own_stores[i];

		buf_init(&path, PATH_MAX);
		if (path_xdg(shape_environment(options, store->variable),
			     shape_environment(options, "HOME"), store->fallback,
			     store->name, &path))
			kept = keep_store(spec, path.data, store->variable, err);
		buf_fini(&path);
	}
	return kept;
}

bool shape_hide_state(const struct shape_options *options, struct cell_spec *spec,
		      struct err *err)
{
	return hide_state(options, spec, err) && hide_logins(options, spec, err) &&
	       hide_cells(options, spec, err) && hide_named(options, spec, err) &&
	       (options->unguarded || keep_stores(options, spec, err));
}

/* Make, open and lock the folder, so that an ending session of the same project does not remove it. */
static int home_hold(const char *path)
{
	return fd_make_folders(path, NULL) ? fd_hold(AT_FDCWD, path, LOCK_SH, 0700) : -1;
}

/* Open and lock the home folder for the cell's user; -1 when that is impossible. */
static int home_open(const struct shape_options *options, const struct cell_spec *spec,
		     struct buf *path)
{
	struct stat st;

	if (options->home != NULL ? !buf_adds(path, options->home->folder)
				  : !state_path(options, "homes", spec->workspace, path))
		return -1;
	auto_close int fd = options->home != NULL && options->home->held >= 0
				    ? fcntl(options->home->held, F_DUPFD_CLOEXEC, 0)
				    : home_hold(path->data);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	/*
	 * In somebody else's workspace, root's cell becomes its owner, who must be able
	 * to use the home.
	 */
	if (spec->identity.change && !spec->identity.map_root &&
	    st.st_uid != spec->identity.uid &&
	    fchown(fd, spec->identity.uid, spec->identity.gid) < 0)
		return -1;
	return fd_take(&fd);
}

/*
 * Without a view, the home is the folder at its own path. When root's cell becomes
 * another user, that user cannot reach a folder of root's, so the home is one that is
 * removed with the session.
 */
static void home_grant(struct policy *policy, struct cell_spec *spec, struct buf *path,
		       int *take_fd)
{
	if (*take_fd < 0 || spec->identity.change) {
		buf_clear(path);
		(void)buf_addf(path, "%s/home", spec->temp);
		fd_close(take_fd);
		(void)mkdir(path->data, 0700);
		*take_fd = open(path->data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*take_fd >= 0 && spec->identity.change)
			(void)!chown(path->data, spec->identity.uid, spec->identity.gid);
	} else {
		spec->home_source = arena_copy(&spec->arena, buf_str(path));
	}
	spec->home = arena_copy(&spec->arena, buf_str(path));
	shape_grant(policy, spec, spec->home, true);
	(void)shape_show_tree(spec, spec->home, take_fd, true, false, NULL);
}

static bool home_show(struct cell_spec *spec, const char *source, int *take_fd)
{
	if (!shape_show_tree(spec, spec->home, take_fd, true, true, NULL)) {
		spec->view.count--;
		return false;
	}
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
	/* The user of root's cell cannot reach root's folder by its path. */
	if (spec->identity.change && !entry->detached) {
		fd_close(&entry->fd);
		spec->view.count--;
		return false;
	}
	entry->source = arena_copy(&spec->arena, str_of(source));
	entry->why = "the project's private home";
	return true;
}

void shape_add_home(const struct shape_options *options, struct policy *policy,
		    struct cell_spec *spec)
{
	struct buf path;
	auto_close int fd = -1;

	buf_init(&path, PATH_MAX);
	fd = home_open(options, spec, &path);
	spec->home_lock = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (!spec_is_sealed(spec)) {
		home_grant(policy, spec, &path, &fd);
		buf_fini(&path);
		return;
	}
	shape_grant(policy, spec, spec->home, true);
	if (fd >= 0 && home_show(spec, path.data, &fd)) {
		spec->home_source = arena_copy(&spec->arena, buf_str(&path));
	} else {
		/* The user has no state folder, so make a home for this session only. */
		struct view_entry *entry =
			spec_add_entry(spec, VIEW_MEMORY, spec->home, NULL);
		entry->mode = 0700;
		entry->size = HOME_MEMORY;
		entry->why = "a home for this session";
	}
	buf_fini(&path);
}

void shape_tidy(const struct cell_spec *spec)
{
	/* rmdir removes only empty folders */
	bool ours = spec->home_source != NULL &&
		    flock(spec->home_lock, LOCK_EX | LOCK_NB) == 0;

	fd_folder_remove(spec->temp);
	caches_tidy(spec, ours);
	if (ours)
		(void)rmdir(spec->home_source);
	for (size_t i = 0; i < spec->made.count; i++)
		(void)rmdir(spec->made.items[i]);
}
