/*
 * shape_toolchains: makes the PATH of a cell: the system's folders and the caller's
 * toolchains, which are added to the view.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "tool/denial.h"
#include "view/shape.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define STANDARD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct toolchain {
	const char *below_home; /* the PATH entry is this or below it */
	const char *shown[3];   /* below the home; without credentials */
	const char *variable;   /* tells the toolchain its folder, or NULL */
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

const char *shape_toolchain_next(size_t *at)
{
	enum { SHOWN = sizeof(toolchains[0].shown) / sizeof(toolchains[0].shown[0]) };

	for (; *at < TOOLCHAIN_COUNT * SHOWN; (*at)++) {
		const char *shown = toolchains[*at / SHOWN].shown[*at % SHOWN];

		if (shown != NULL) {
			(*at)++;
			return shown;
		}
	}
	return NULL;
}

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
	/* Without a view, the user of root's cell may be unable to reach this path. */
	spec->view.entries[spec->view.count - 1].optional = !spec_is_sealed(spec);
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

static bool path_holds(const struct buf *path, const char *folder)
{
	struct str rest = buf_str(path), part;

	while (path_next_folder(&rest, &part)) {
		if (str_is(part, folder))
			return true;
	}
	return false;
}

/* The caller's order is kept. Folders that the view does not show are left out. */
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
			taken = toolchain != NULL ||
				system_folder_around(normal.data, FOLDER_SYSTEM) != NULL;
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
