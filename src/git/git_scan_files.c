/*
 * git_scan_files: files that other programs run by themselves: build tools, editors, package
 * managers, shells and agents, when they are started in the folder. They are anybody's to
 * change; who changed what is told.
 */
#include "base/fd.h"
#include "git/git_scan_parts.h"

#include <limits.h>
#include <string.h>

/* At the top of a root. */
static const char *const names[] = {"Makefile",
				    "makefile",
				    "GNUmakefile",
				    "Justfile",
				    "justfile",
				    "Taskfile.yml",
				    "Rakefile",
				    "Gemfile",
				    "CMakeLists.txt",
				    "meson.build",
				    "configure",
				    "package.json",
				    ".npmrc",
				    ".yarnrc",
				    ".yarnrc.yml",
				    ".pnpmfile.cjs",
				    "pyproject.toml",
				    "setup.py",
				    "setup.cfg",
				    "conftest.py",
				    "sitecustomize.py",
				    "usercustomize.py",
				    "noxfile.py",
				    "tox.ini",
				    "manage.py",
				    "build.rs",
				    "Cargo.toml",
				    "build.gradle",
				    "build.gradle.kts",
				    "settings.gradle",
				    "gradlew",
				    "mvnw",
				    "pom.xml",
				    "build.sbt",
				    "mix.exs",
				    "Vagrantfile",
				    "Dockerfile",
				    "docker-compose.yml",
				    "compose.yaml",
				    ".envrc",
				    ".env",
				    ".bashrc",
				    ".bash_profile",
				    ".profile",
				    ".zshrc",
				    ".zshenv",
				    ".inputrc",
				    ".vimrc",
				    ".exrc",
				    ".nvimrc",
				    ".nvim.lua",
				    ".gdbinit",
				    ".lldbinit",
				    ".gitattributes",
				    ".gitmodules",
				    ".pre-commit-config.yaml",
				    "lefthook.yml",
				    ".tool-versions",
				    "mise.toml",
				    ".mise.toml",
				    ".mcp.json",
				    "CLAUDE.md",
				    "AGENTS.md",
				    "GEMINI.md",
				    ".cursorrules",
				    ".windsurfrules",
				    ".aider.conf.yml",
				    ".gitlab-ci.yml",
				    ".travis.yml",
				    "Jenkinsfile",
				    ".drone.yml",
				    "azure-pipelines.yml"};

/* Folders there whose files are taken, each. */
static const char *const folders[] = {".vscode",       ".idea",     ".husky", ".githooks",
				      ".claude",       ".cursor",   ".codex", ".cargo",
				      ".devcontainer", ".circleci", ".hg",    ".direnv",
				      ".fleet",        ".zed",      ".github"};

/* And the one that has them a level further down. */
static const char workflows[] = "workflows";

/* Asked for every name at the top of a project. */
static bool is_among(const char *const *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i][0] == name[0] && list[i][1] == name[1] &&
		    strcmp(list[i], name) == 0)
			return true;
	}
	return false;
}

static void note(const struct look *look, const char *name, const struct stat *st)
{
	const struct timespec *since = &look->scan->since;
	struct buf path;

	if (st->st_ctim.tv_sec < since->tv_sec ||
	    (st->st_ctim.tv_sec == since->tv_sec && st->st_ctim.tv_nsec < since->tv_nsec))
		return;
	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s/%s", look->path, name)) {
		if (look->scan->files == NULL)
			look->scan->files = value_new_array();
		value_append(look->scan->files, value_new_text(path.data));
	}
	buf_fini(&path);
}

static void each_file(const struct look *look, const char *name, void *context)
{
	struct stat st;

	(void)context;
	if (look_stat(look, name, &st) && !S_ISDIR(st.st_mode))
		note(look, name, &st);
}

static void look_folder(const struct look *look, const char *name)
{
	char path[PATH_MAX];
	auto_close int fd = look_enter(look, name, path);

	if (fd < 0)
		return;
	const struct look below = {look->scan, fd, path};
	look_names(&below, each_file, NULL);
	if (strcmp(name, ".github") == 0)
		look_folder(&below, workflows);
}

void git_scan_file(const struct look *look, const char *name)
{
	struct stat st;

	if (is_among(names, sizeof(names) / sizeof(names[0]), name)) {
		if (look_stat(look, name, &st) && !S_ISDIR(st.st_mode))
			note(look, name, &st);
	} else if (is_among(folders, sizeof(folders) / sizeof(folders[0]), name)) {
		look_folder(look, name);
	}
}
