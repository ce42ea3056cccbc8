/*
 * shape_home: the part of a view that follows the caller: the project's private home, his
 * toolchains, and the environment of programs.
 */
#include "base/fd.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/path.h"
#include "runtime/shape_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STANDARD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum {
	HOME_DIGITS = 16, /* of the workspace's hash: projects of one user never meet */
	HOME_MEMORY = 256 << 20,
	/* sessions that end at the same moment; the folder is theirs for microseconds */
	HOME_TRIES = 16,
};

/* ---- home ---- */

bool shape_state_path(const struct shape_options *options, const char *kind,
		      const char *workspace, struct buf *path)
{
	char hex[HASH_HEX + 1], name[64];

	hash_text(str_of(workspace), hex);
	(void)snprintf(name, sizeof(name), "glovebox/%.16s/%.*s", kind, HOME_DIGITS, hex);
	return path_xdg(shape_environment(options, "XDG_STATE_HOME"),
			shape_environment(options, "HOME"), ".local/state", name, path);
}

static bool home_make(const char *path)
{
	return fd_make_folders(path, NULL) && (mkdir(path, 0700) == 0 || errno == EEXIST);
}

/*
 * Open the folder and hold it, so that a session of the same project that ends now does
 * not remove it; once more when one has just done so.
 */
static int home_hold(struct buf *path)
{
	for (int i = 0; i < HOME_TRIES && home_make(path->data); i++) {
		auto_close int fd =
			open(path->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd >= 0 && flock(fd, LOCK_SH) == 0 && fstat(fd, &st) == 0 &&
		    st.st_nlink > 0)
			return fd_take(&fd);
	}
	return -1;
}

/* The held folder, for the cell's user; -1 when there can be none. */
static int home_open(const struct shape_options *options, const struct cell_spec *spec,
		     struct buf *path)
{
	struct stat st;

	if (!shape_state_path(options, "homes", spec->workspace, path))
		return -1;
	auto_close int fd = home_hold(path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	/*
	 * Root in somebody's workspace becomes that owner, who must be able to use the
	 * home.
	 */
	if (spec->identity.change && !spec->identity.map_root &&
	    st.st_uid != spec->identity.uid &&
	    fchown(fd, spec->identity.uid, spec->identity.gid) < 0)
		return -1;
	return fd_take(&fd);
}

/*
 * Without a view: the folder at its own place; for root's cell of somebody else, who comes
 * past no folder of root's, one that goes with the session.
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
	if (!shape_show_tree(spec, SHAPE_HOME, take_fd, true, true, NULL)) {
		spec->view.count--;
		return false;
	}
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
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
	if (!shape_is_sealed(spec)) {
		home_grant(policy, spec, &path, &fd);
		buf_fini(&path);
		return;
	}
	spec->home = SHAPE_HOME;
	shape_grant(policy, spec, SHAPE_HOME, true);
	if (fd >= 0 && home_show(spec, path.data, &fd)) {
		spec->home_source = arena_copy(&spec->arena, buf_str(&path));
	} else {
		/* No state folder of the user's: a home for this session only. */
		struct view_entry *entry =
			spec_add_entry(spec, VIEW_MEMORY, SHAPE_HOME, NULL);
		entry->mode = 0700;
		entry->size = HOME_MEMORY;
		entry->why = "a home for this session";
	}
	buf_fini(&path);
}

void shape_tidy(const struct cell_spec *spec)
{
	/* only what is empty: that is the kernel's rule */
	bool ours = spec->home_source != NULL &&
		    flock(spec->home_lock, LOCK_EX | LOCK_NB) == 0;

	folder_remove(spec->temp);
	shape_tidy_caches(spec, ours);
	if (ours)
		(void)rmdir(spec->home_source);
	for (size_t i = 0; i < spec->made_count; i++)
		(void)rmdir(spec->made[i]);
}

/* ---- toolchains ---- */

struct toolchain {
	const char *below_home; /* the PATH entry is this or below it */
	const char *shown[3];   /* below the home; without credentials */
	const char *variable;   /* tells the toolchain where it is, or NULL */
	const char *value;      /* below the home */
};

static const struct toolchain toolchains[] = {
	{".cargo/bin", {".cargo/bin", ".rustup"}, "RUSTUP_HOME", ".rustup"},
	{".pyenv", {".pyenv"}, "PYENV_ROOT", ".pyenv"},
	{".nvm/versions", {".nvm/versions"}, NULL, NULL},
	{".volta/bin", {".volta/bin", ".volta/tools"}, "VOLTA_HOME", ".volta"},
	{"go/bin", {"go/bin"}, NULL, NULL},
	{".local/bin", {".local/bin"}, NULL, NULL},
};

enum { TOOLCHAIN_COUNT = sizeof(toolchains) / sizeof(toolchains[0]) };

static const struct toolchain *toolchain_of(const char *folder, const char *home)
{
	struct buf root;

	if (!path_within(folder, home))
		return NULL;
	for (size_t i = 0; i < TOOLCHAIN_COUNT; i++) {
		buf_init(&root, PATH_MAX);
		bool hit = buf_addf(&root, "%s/%s", home, toolchains[i].below_home) &&
			   path_within(folder, root.data);
		buf_fini(&root);
		if (hit)
			return &toolchains[i];
	}
	return NULL;
}

static void tree_show(struct policy *policy, struct cell_spec *spec, const char *path)
{
	auto_close int fd = -1;

	for (size_t i = 0; i < spec->view.count; i++) {
		if (strcmp(spec->view.entries[i].path, path) == 0)
			return;
	}
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!shape_show_tree(spec, path, &fd, false, false, NULL)) {
		spec->view.count--;
		return;
	}
	spec->view.entries[spec->view.count - 1].why = "your PATH leads there";
	/* At its own place root's cell of somebody else may not come there. */
	spec->view.entries[spec->view.count - 1].optional = !shape_is_sealed(spec);
	shape_grant(policy, spec, path, false);
}

static void toolchain_show(struct policy *policy, struct cell_spec *spec,
			   const struct toolchain *toolchain, const char *home)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < 3 && toolchain->shown[i] != NULL; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", home, toolchain->shown[i]);
		tree_show(policy, spec, path);
	}
	if (toolchain->variable != NULL)
		spec_add_environment(spec, "%s=%s/%s", toolchain->variable, home,
				     toolchain->value);
}

static bool is_system(const char *folder)
{
	static const char *const roots[] = {"/usr", "/bin", "/sbin", "/opt", NULL};

	for (size_t i = 0; roots[i] != NULL; i++) {
		if (path_within(folder, roots[i]))
			return true;
	}
	return false;
}

static bool path_holds(const struct buf *path, const char *folder)
{
	struct str rest = buf_str(path), part;

	while (path_next_folder(&rest, &part)) {
		if (str_is(part, folder))
			return true;
	}
	return false;
}

/* The caller's order is kept; what the view does not show is left out. */
static void path_add(struct policy *policy, struct cell_spec *spec, const char *home,
		     struct str folder, struct buf *path)
{
	struct buf normal;
	const struct toolchain *toolchain;
	bool taken = false;

	buf_init(&normal, PATH_MAX);
	if (folder.data[0] == '/') {
		auto_free char *text = memory_copy_str(folder);
		if (path_normal("/", text, &normal)) {
			toolchain = home != NULL ? toolchain_of(normal.data, home) : NULL;
			if (toolchain != NULL)
				toolchain_show(policy, spec, toolchain, home);
			taken = toolchain != NULL || is_system(normal.data);
		}
	}
	if (taken && !path_holds(path, normal.data))
		(void)buf_addf(path, "%s%s", path->size > 0 ? ":" : "", normal.data);
	buf_fini(&normal);
}

void shape_add_toolchains(const struct shape_options *options, struct policy *policy,
			  struct cell_spec *spec)
{
	const char *home = shape_environment(options, "HOME");
	const char *caller = shape_environment(options, "PATH");
	const struct str sources[] = {str_of(caller), STR(STANDARD_PATH)};
	struct buf path;

	if (home != NULL && (home[0] != '/' || home[1] == '\0'))
		home = NULL;
	buf_init(&path, 64 << 10);
	for (size_t i = 0; i < 2; i++) {
		struct str rest = sources[i], folder;
		while (path_next_folder(&rest, &folder))
			path_add(policy, spec, home, folder, &path);
	}
	spec_add_environment(spec, "PATH=%s:" SHAPE_BIN, path.data);
	buf_fini(&path);
}

/* ---- environment ---- */

/* The caller's own NAME, which may be empty; NULL when it is unset. */
static const char *callers(const struct shape_options *options, const char *name)
{
	size_t length = strlen(name);

	for (const char *const *at = options->caller_environment; *at != NULL; at++) {
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at;
	}
	return NULL;
}

/* Our own program stays the last to be found. */
static void path_set(struct cell_spec *spec, const char *entry)
{
	struct buf path;

	buf_init(&path, strlen(entry) + sizeof(SHAPE_BIN) + 1);
	(void)buf_addf(&path, "%s:" SHAPE_BIN, entry);
	spec_set_environment(spec, path.data);
	buf_fini(&path);
}

static void add_policys(const struct shape_options *options,
			const struct policy_names *variables, struct cell_spec *spec)
{
	for (size_t i = 0; i < variables->count; i++) {
		const char *entry = variables->items[i];

		if (strchr(entry, '=') == NULL)
			entry = callers(options, entry);
		if (entry != NULL && strncmp(entry, "PATH=", 5) == 0)
			path_set(spec, entry);
		else if (entry != NULL)
			spec_set_environment(spec, entry);
	}
}

void shape_add_environment(const struct shape_options *options,
			   const struct policy *policy, struct cell_spec *spec)
{
	const char *term = shape_environment(options, "TERM");
	const char *lang = shape_environment(options, "LANG");
	const char *zone = shape_environment(options, "TZ");

	spec_add_environment(spec, "HOME=%s", spec->home);
	spec_add_environment(spec, "USER=glovebox");
	spec_add_environment(spec, "LOGNAME=glovebox");
	spec_add_environment(spec, "SHELL=/bin/bash");
	spec_add_environment(spec, "TMPDIR=%s", spec->temp != NULL ? spec->temp : "/tmp");
	spec_add_environment(spec, "TERM=%s", term != NULL ? term : "dumb");
	spec_add_environment(spec, "LANG=%s", lang != NULL ? lang : "C.UTF-8");
	if (zone != NULL)
		spec_add_environment(spec, "TZ=%s", zone);
	add_policys(options, &policy->environment, spec);
}
