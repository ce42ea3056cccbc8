/*
 * shape_worktree: the `.git` of a worktree or submodule is a file that names a folder of
 * the main repository elsewhere. The repository is shown read-only if it names this
 * workspace in turn. Without that check, a file in a workspace could widen the rights of
 * its cell.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "guard/scan.h"
#include "view/shape.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The content of the small regular file NAME; false when NAME is anything else. */
static bool file_read(const char *name, struct buf *content)
{
	auto_close int fd =
		open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       fd_read_all(fd, content, name, NULL);
}

/*
 * The real path that the file NAME in FOLDER names, as READ (git_text.h) finds it; or
 * NULL.
 */
static char *pointer_follow(const char *folder, const char *name,
			    bool (*read)(struct str text, struct str *path))
{
	struct buf file, content, target;
	struct str path;
	char *real = NULL;

	buf_init(&file, PATH_MAX);
	buf_init(&content, GIT_POINTER_MAX);
	buf_init(&target, PATH_MAX + GIT_POINTER_MAX);
	if (buf_addf(&file, "%s/%s", folder, name) && file_read(file.data, &content) &&
	    read(buf_str(&content), &path) && path.size > 0) {
		if (path.data[0] != '/')
			(void)buf_addf(&target, "%s/", folder);
		if (buf_addstr(&target, path))
			real = realpath(target.data, NULL);
	}
	buf_fini(&target);
	buf_fini(&content);
	buf_fini(&file);
	return real;
}

/*
 * Cut ENTRY, of the form COMMON/worktrees/NAME, down to COMMON. False for any other form.
 */
static bool common_cut(char *entry)
{
	char *name = strrchr(entry, '/');

	if (name == NULL || name == entry)
		return false;
	*name = '\0';
	if (strcmp(path_base_name(entry), "worktrees") != 0)
		return false;
	*strrchr(entry, '/') = '\0';
	return entry[0] == '/' && entry[1] != '\0';
}

static char *common_of(const char *workspace)
{
	char *entry = pointer_follow(workspace, ".git", git_text_pointer);
	struct buf own;

	if (entry == NULL)
		return NULL;
	auto_free char *back = pointer_follow(entry, "gitdir", git_text_line);
	buf_init(&own, PATH_MAX);
	bool ours = back != NULL && buf_addf(&own, "%s/.git", workspace) &&
		    strcmp(own.data, back) == 0 && common_cut(entry);
	buf_fini(&own);
	if (ours)
		return entry;
	free(entry);
	return NULL;
}

bool shape_is_repository(const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (const char *const *name = git_scan_repository; *name != NULL; name++) {
		if (snprintf(part, sizeof(part), "%s/%s", path, *name) >= (int)sizeof(part) ||
		    lstat(part, &st) < 0)
			return false;
	}
	return true;
}

/* Does the configuration of the repository at PATH name WORKSPACE as its worktree? */
static bool names_worktree(const char *path, const char *workspace)
{
	static const struct str key = {"core.worktree=", 14};
	struct git_config config;
	struct buf text, named;
	struct str rest, line;
	char file[PATH_MAX];
	bool names_it = false;

	if (snprintf(file, sizeof(file), "%s/config", path) >= (int)sizeof(file))
		return false;
	buf_init(&text, GIT_CONFIG_MAX);
	git_config_init(&config);
	if (fd_read_file(file, GIT_CONFIG_MAX, &text, NULL))
		git_config_read(buf_str(&text), &config);
	rest = buf_str(&config.active);
	while (str_next_line(&rest, &line)) {
		if (!str_starts(line, key))
			continue;
		auto_free char *value =
			memory_copy_str(str_part(line, key.size, line.size));
		buf_init(&named, PATH_MAX);
		names_it = path_normal(path, value, &named) &&
			   strcmp(named.data, workspace) == 0;
		buf_fini(&named);
	}
	git_config_fini(&config);
	buf_fini(&text);
	return names_it;
}

/*
 * The repository of a submodule, which is in the git folder of the surrounding project;
 * or NULL.
 */
static char *module_of(const char *workspace)
{
	char *module = pointer_follow(workspace, ".git", git_text_pointer);

	if (module != NULL && shape_is_repository(module) &&
	    names_worktree(module, workspace))
		return module;
	free(module);
	return NULL;
}

static bool is_shown(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->root_count; i++) {
		if (path_within(path, spec->roots[i].path))
			return true;
	}
	for (const char *const *at = spec->blocked; *at != NULL; at++) {
		if (path_within(path, *at))
			return true;
	}
	return false;
}

/*
 * Is PATH still the real path of FD? A folder above may have become a link since the path
 * was checked.
 */
static bool lies_at(int fd, const char *path)
{
	struct buf real;

	buf_init(&real, PATH_MAX);
	bool same = shape_real_path(fd, &real, NULL) && strcmp(real.data, path) == 0;
	buf_fini(&real);
	return same;
}

void shape_add_worktree(struct policy *policy, struct cell_spec *spec)
{
	auto_free char *common = common_of(spec->workspace);

	if (common == NULL)
		common = module_of(spec->workspace);
	if (common == NULL || is_shown(spec, common))
		return;
	auto_close int fd = open(common, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !lies_at(fd, common))
		return;
	size_t count = spec->view.count;
	bool ok = policy->scratch
			  ? shape_show_layer(spec, common, &fd, policy->limits.tmp, NULL)
			  : shape_show_tree(spec, common, &fd, false, true, NULL);
	if (!ok) {
		spec->view.count = count;
		return;
	}
	spec->view.entries[spec->view.count - 1].why = "the repository of this worktree";
	/*
	 * With `scratch`, commands may write here, but file tools may not, because their
	 * writes would not last.
	 */
	policy_show(policy, common, policy->scratch);
	spec_add_root(spec, common, false, NULL);
	if (policy->scratch)
		spec_add_writable(spec, common);
}
