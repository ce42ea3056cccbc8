/* rules_git: the settings, from the system's to the worktree's; see rules_git.h. */
#include "tools/search/rules_git.h"

#include "base/fd.h"
#include "base/path.h"
#include "files/files.h"
#include "guard/readers.h"

#include <limits.h>
#include <string.h>

/* A path beneath what the cell shows; a link that stays there is followed, as git does. */
static bool read_file(const struct rules_place *place, const char *path, size_t max,
		      struct buf *text)
{
	struct file file;
	struct err err;
	bool ok;

	file_init(&file);
	buf_init(text, max);
	ok = files_reach(place->files, path, FILES_READ, &file, &err) &&
	     fd_read_all(file.fd, text, path, &err);
	file_fini(&file);
	/* Half a file of rules would say other things than the whole. */
	if (!ok)
		buf_clear(text);
	return ok;
}

static const char *variable(const struct rules_place *place, const char *name)
{
	size_t size = strlen(name);

	for (const char *const *at = place->environment; at != NULL && *at != NULL; at++) {
		if (strncmp(*at, name, size) == 0 && (*at)[size] == '=')
			return *at + size + 1;
	}
	return NULL;
}

/* The path of NAME among the user's settings. */
static bool user_file(const struct rules_place *place, const char *name, struct buf *path)
{
	buf_init(path, PATH_MAX);
	return path_xdg(variable(place, "XDG_CONFIG_HOME"), variable(place, "HOME"),
			".config", name, path);
}

static void add_config(const struct rules_place *place, const char *path,
		       struct git_config *config)
{
	struct buf text;

	if (read_file(place, path, GIT_CONFIG_MAX, &text))
		git_config_read(buf_str(&text), config);
	buf_fini(&text);
}

/* FOLDER/NAME, or NAME when that is absolute. */
static void join(struct buf *path, const char *folder, struct str name)
{
	buf_clear(path);
	if (name.size == 0 || name.data[0] != '/')
		(void)buf_addf(path, "%s/", folder);
	(void)buf_addstr(path, name);
}

/*
 * The folder of the repository itself (GIT), and the one that its worktrees share (COMMON),
 * for the worktree TOP. A pointer in place of the folder is followed once.
 */
static void find_folders(const struct rules_place *place, const char *top,
			 struct buf *git, struct buf *common)
{
	struct buf text, file;
	struct str path;

	buf_init(&file, PATH_MAX);
	join(git, top, STR(".git"));
	if (read_file(place, git->data, GIT_POINTER_MAX, &text) &&
	    git_text_pointer(buf_str(&text), &path))
		join(git, top, path);
	buf_fini(&text);
	(void)buf_addstr(common, buf_str(git));
	join(&file, git->data, STR("commondir"));
	if (read_file(place, file.data, GIT_POINTER_MAX, &text) &&
	    git_text_line(buf_str(&text), &path))
		join(common, git->data, path);
	buf_fini(&text);
	buf_fini(&file);
}

/* The later one decides: system, user, repository, worktree. */
static void read_config(const struct rules_place *place, const char *git,
			const char *common, struct git_config *config)
{
	struct buf path;

	if (variable(place, "GIT_CONFIG_NOSYSTEM") == NULL)
		add_config(place, "/etc/gitconfig", config);
	if (user_file(place, "git/config", &path))
		add_config(place, path.data, config);
	buf_clear(&path);
	if (variable(place, "HOME") != NULL &&
	    buf_addf(&path, "%s/.gitconfig", variable(place, "HOME")))
		add_config(place, path.data, config);
	join(&path, common, STR("config"));
	add_config(place, path.data, config);
	join(&path, git, STR("config.worktree"));
	if (config->of_worktrees)
		add_config(place, path.data, config);
	buf_fini(&path);
}

/*
 * Read the file that core.excludesFile names; without that setting, git/ignore among the
 * user's settings.
 */
static void read_user(const struct rules_place *place, const char *top,
		      const struct git_config *config, struct buf *text)
{
	struct str name = buf_str(&config->excludes_file);
	struct buf path;

	if (!config->has_excludes_file) {
		if (!user_file(place, "git/ignore", &path))
			buf_clear(&path);
	} else {
		buf_init(&path, PATH_MAX);
		if (!str_starts(name, STR("~/")))
			join(&path, top, name);
		else if (variable(place, "HOME") != NULL)
			join(&path, variable(place, "HOME"), str_part(name, 2, SIZE_MAX));
	}
	if (path.size > 0 && (!config->has_excludes_file || name.size > 0))
		(void)read_file(place, path.data, RULES_FILE_MAX, text);
	buf_fini(&path);
}

void rules_git_read(const struct rules_place *place, struct str folder, struct rules_git *git)
{
	struct git_config config;
	struct buf top, own, common, path;

	*git = (struct rules_git){0};
	buf_init(&top, PATH_MAX);
	buf_init(&own, PATH_MAX);
	buf_init(&common, PATH_MAX);
	buf_init(&path, PATH_MAX);
	git_config_init(&config);
	(void)buf_addstr(&top, buf_str(&place->root));
	if (folder.size > 0) {
		(void)buf_addc(&top, '/');
		(void)buf_addstr(&top, folder);
	}
	find_folders(place, top.data, &own, &common);
	read_config(place, own.data, common.data, &config);
	git->ignores_case = config.ignore_case;
	read_user(place, top.data, &config, &git->user);
	join(&path, common.data, STR("info/exclude"));
	(void)read_file(place, path.data, RULES_FILE_MAX, &git->exclude);
	git_config_fini(&config);
	buf_fini(&top);
	buf_fini(&own);
	buf_fini(&common);
	buf_fini(&path);
}

void rules_git_fini(struct rules_git *git)
{
	buf_fini(&git->user);
	buf_fini(&git->exclude);
}
