/*
 * shape_cache: the caller's package and build caches under a layer. Below is what he has
 * downloaded already, read-only; what the cell adds goes to a folder of the project's that
 * one cell at a time holds, and for a second one at the same time to memory. A cell of one
 * call that reaches no network has no downloads to keep: the folder costs its start three
 * times what memory does, so it takes the folder only when the project has one already.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "view/shape_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without credentials: those lie beside (.npmrc, .m2/settings.xml, .cargo/credentials). */
struct cache {
	const char *below_home;
	const char *name;     /* of the folder that keeps what is added */
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
 * What a kept layer's folder holds when nothing was added: it goes with the cell then. The
 * kernel marks a volatile layer that was not unmounted in order, and takes it no second time
 * with the mark; without it, what a crash of the machine can cost is what was written last,
 * as with every file that nobody has synced.
 */
#define LAYER_WORK "/scratch/work"
#define LAYER_MARK LAYER_WORK "/incompat/volatile"
static const char *const leftovers[] = {
	LAYER_MARK, LAYER_WORK "/incompat", LAYER_WORK, "/upper", "/scratch", "/lower",
	"",
};

/* The first three are around the mark. */
enum { LEFTOVER_COUNT = sizeof(leftovers) / sizeof(leftovers[0]), MARK_FOLDERS = 3 };

static void mark_remove(const char *folder)
{
	char path[PATH_MAX];

	/* The kernel makes them with no rights at all; the outer one first. */
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

static const char *path_of_spec(const struct cell_spec *spec)
{
	for (const char *const *at = spec->environment; *at != NULL; at++) {
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

struct caching {
	const struct shape_options *options;
	const struct policy *policy;
	struct cell_spec *spec;
	struct buf kept; /* the folder that keeps what is added; "" when it is not ours */
	bool asked;
};

/* Take the project's folder for additions; it stays empty when another cell has it. */
static void folder_take(struct caching *caching)
{
	struct buf *kept = &caching->kept;
	struct stat st;

	caching->asked = true;
	if (!shape_state_path(caching->options, "caches", caching->spec->workspace, kept) ||
	    (caching->options->one_call && caching->policy->network.count == 0 &&
	     access(kept->data, F_OK) < 0) ||
	    !fd_make_folders(kept->data, NULL) ||
	    (mkdir(kept->data, 0700) < 0 && errno != EEXIST)) {
		buf_clear(kept);
		return;
	}
	auto_close int fd =
		open(kept->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
	    st.st_nlink > 0)
		caching->spec->cache_lock = fd_take(&fd);
	else
		buf_clear(kept);
}

static void leftovers_note(struct cell_spec *spec, const char *folder)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	for (size_t i = 0; i < LEFTOVER_COUNT; i++) {
		buf_clear(&path);
		if (buf_addf(&path, "%s%s", folder, leftovers[i]))
			spec_add_leftover(spec, path.data);
	}
	buf_fini(&path);
}

/* What takes the additions of CACHE, at PLACE in the view. */
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
	mark_remove(folder);
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
	for (const char *const *at = spec->blocked; *at != NULL; at++) {
		if (path_within(path, *at) || path_within(*at, path))
			return true;
	}
	return false;
}

/*
 * The private home is the cell's to write: what stands in the place of a cache, or of a folder
 * above it, may be a link or be closed. The cache is not shown then.
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
	(void)snprintf(place, sizeof(place), SHAPE_HOME "/%s", cache->below_home);
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
	 * Layers need a view. Root's caches are closed to who becomes the owner of somebody
	 * else's workspace.
	 */
	if (!spec_is_sealed(spec) || home == NULL || home[0] != '/' || home[1] == '\0' ||
	    strlen(home) >= PATH_MAX / 2 ||
	    (spec->identity.change && !spec->identity.map_root))
		return;
	buf_init(&caching.kept, PATH_MAX / 2);
	for (size_t i = 0; i < CACHE_COUNT; i++)
		cache_show(&caching, &caches[i], home);
	if (caching.kept.size > 0)
		spec_add_leftover(spec, caching.kept.data);
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

/* The mount points that the cell has made in the private home, and the folders above them. */
static void points_remove(const struct cell_spec *spec)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		char *slash;

		if (entry->kind != VIEW_OVERLAY || !path_within(entry->path, SHAPE_HOME) ||
		    strcmp(entry->path, SHAPE_HOME) == 0)
			continue;
		auto_free char *path = memory_copy(path_relative(entry->path, SHAPE_HOME));
		while (point_remove(spec->home_lock, path)) {
			slash = strrchr(path, '/');
			if (slash == NULL)
				break;
			*slash = '\0';
		}
	}
}

void shape_tidy_caches(const struct cell_spec *spec, bool home_is_ours)
{
	for (size_t i = 0; i < spec->leftover_count; i++) {
		const char *path = spec->leftovers[i];

		/* The first of each layer's; the last of all is the folder of them. */
		if (i % LEFTOVER_COUNT == 0 && i + 1 < spec->leftover_count)
			mark_remove(spec->leftovers[i + LEFTOVER_COUNT - 1]);
		(void)rmdir(path);
	}
	if (home_is_ours)
		points_remove(spec);
}
