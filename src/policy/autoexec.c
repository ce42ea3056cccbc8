/* autoexec: the tables, and the search in the sorted one. */
#include "policy/autoexec.h"

#include "base/path.h"
#include "base/str.h"

#include <string.h>

const char *const autoexec_git_names[AUTOEXEC_GIT_COUNT] = {
	[AUTOEXEC_GIT_HOOKS] = "hooks",
	[AUTOEXEC_GIT_CONFIG] = "config",
	[AUTOEXEC_GIT_CONFIG_WORKTREE] = "config.worktree",
	[AUTOEXEC_GIT_MODULES] = "modules",
	[AUTOEXEC_GIT_ATTRIBUTES] = "info/attributes",
	[AUTOEXEC_GIT_EXCLUDE] = "info/exclude",
	[AUTOEXEC_GIT_COMMONDIR] = "commondir",
};

const struct autoexec autoexec_names[] = {
	{".agents", "agents", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".aider.conf.yml", "aider", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".bash_profile", "bash", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".bashrc", "bash", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".cargo", "cargo", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".circleci", "circleci", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".claude", "claude", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".claude/CLAUDE.md", "claude", AUTOEXEC_FILE, AUTOEXEC_READ},
	{".claude/agents", "claude", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".claude/commands", "claude", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".claude/hooks", "claude", AUTOEXEC_TREE, AUTOEXEC_PROTECTED},
	{".claude/rules", "claude", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".claude/settings.json", "claude", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".claude/settings.local.json", "claude", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".claude/skills", "claude", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".codex", "codex", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".codex/config.toml", "codex", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".codex/hooks.json", "codex", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".codex/prompts", "codex", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".codex/skills", "codex", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".config/mise/config.toml", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".config/mise/tasks", "mise", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".config/mise.toml", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".crush.json", "crush", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".cursor", "cursor", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".cursor/commands", "cursor", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".cursor/hooks.json", "cursor", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".cursor/mcp.json", "cursor", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".cursor/rules", "cursor", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".cursorrules", "cursor", AUTOEXEC_FILE, AUTOEXEC_READ},
	{".devcontainer", "devcontainer", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".direnv", "direnv", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".drone.yml", "drone", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".env", "many programs", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".envrc", "direnv", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".exrc", "vim", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".fleet", "fleet", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".gdbinit", "gdb", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".gemini", "gemini", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".gemini/commands", "gemini", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".gemini/extensions", "gemini", AUTOEXEC_TREE, AUTOEXEC_PROTECTED},
	{".gemini/settings.json", "gemini", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".gemini/skills", "gemini", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".gitattributes", "git", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".githooks", "git", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".github", "github", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".github/workflows", "github", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".gitlab-ci.yml", "gitlab", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".gitmodules", "git", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".goosehints", "goose", AUTOEXEC_FILE, AUTOEXEC_READ},
	{".hg", "mercurial", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".husky", "husky", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".idea", "idea", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".inputrc", "readline", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".lefthook", "lefthook", AUTOEXEC_TREE, AUTOEXEC_REPORTED},
	{".lefthook-local", "lefthook", AUTOEXEC_TREE, AUTOEXEC_REPORTED},
	{".lefthook-local.yaml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".lefthook-local.yml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".lefthook.json", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".lefthook.toml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".lefthook.yaml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".lefthook.yml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".lldbinit", "lldb", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".mcp.json", "claude", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".mise/config.toml", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".mise/tasks", "mise", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".mise-tasks", "mise", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".mise.local.toml", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".mise.toml", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".npmrc", "npm", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".nvim.lua", "nvim", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".nvimrc", "nvim", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".opencode", "opencode", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".opencode/agent", "opencode", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".opencode/agents", "opencode", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".opencode/command", "opencode", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".opencode/commands", "opencode", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".opencode/opencode.json", "opencode", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".opencode/opencode.jsonc", "opencode", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".opencode/plugin", "opencode", AUTOEXEC_TREE, AUTOEXEC_PROTECTED},
	{".opencode/plugins", "opencode", AUTOEXEC_TREE, AUTOEXEC_PROTECTED},
	{".opencode/skill", "opencode", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".opencode/skills", "opencode", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".opencode/tool", "opencode", AUTOEXEC_TREE, AUTOEXEC_PROTECTED},
	{".opencode/tools", "opencode", AUTOEXEC_TREE, AUTOEXEC_PROTECTED},
	{".pi", "pi", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".pi/extensions", "pi", AUTOEXEC_TREE, AUTOEXEC_PROTECTED},
	{".pi/prompts", "pi", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".pi/settings.json", "pi", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".pi/skills", "pi", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".pnpmfile.cjs", "pnpm", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".pre-commit-config.yaml", "pre-commit", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".pre-commit-hooks.yaml", "pre-commit", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".profile", "bash", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".qwen", "qwen", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".qwen/agents", "qwen", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".qwen/commands", "qwen", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".qwen/extensions", "qwen", AUTOEXEC_TREE, AUTOEXEC_PROTECTED},
	{".qwen/settings.json", "qwen", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{".qwen/skills", "qwen", AUTOEXEC_TREE, AUTOEXEC_READ},
	{".ripgreprc", "ripgrep", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".tool-versions", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".travis.yml", "travis", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".venv/pip.conf", "pip", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".vimrc", "vim", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".vscode", "vscode", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".windsurfrules", "windsurf", AUTOEXEC_FILE, AUTOEXEC_READ},
	{".yarnrc", "yarn", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".yarnrc.yml", "yarn", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".zed", "zed", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{".zshenv", "zsh", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{".zshrc", "zsh", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"AGENTS.md", "agents", AUTOEXEC_FILE, AUTOEXEC_READ},
	{"AGENTS.override.md", "agents", AUTOEXEC_FILE, AUTOEXEC_READ},
	{"CLAUDE.local.md", "claude", AUTOEXEC_FILE, AUTOEXEC_READ},
	{"CLAUDE.md", "claude", AUTOEXEC_FILE, AUTOEXEC_READ},
	{"CMakeLists.txt", "cmake", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"CRUSH.md", "crush", AUTOEXEC_FILE, AUTOEXEC_READ},
	{"Cargo.toml", "cargo", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"Dockerfile", "docker", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"GEMINI.md", "gemini", AUTOEXEC_FILE, AUTOEXEC_READ},
	{"GNUmakefile", "make", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"Gemfile", "bundler", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"Jenkinsfile", "jenkins", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"Justfile", "just", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"Makefile", "make", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"QWEN.md", "qwen", AUTOEXEC_FILE, AUTOEXEC_READ},
	{"Rakefile", "rake", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"Taskfile.yml", "task", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"Vagrantfile", "vagrant", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"azure-pipelines.yml", "azure", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"build.gradle", "gradle", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"build.gradle.kts", "gradle", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"build.rs", "cargo", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"build.sbt", "sbt", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"compose.yaml", "docker", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"configure", "a shell", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"conftest.py", "pytest", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"crush.json", "crush", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{"docker-compose.yml", "docker", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"gradlew", "gradle", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"justfile", "just", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"lefthook-local.yaml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"lefthook-local.yml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"lefthook.json", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"lefthook.toml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"lefthook.yaml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"lefthook.yml", "lefthook", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"makefile", "make", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"manage.py", "django", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"meson.build", "meson", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"mise/config.toml", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"mise/tasks", "mise", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{"mise-tasks", "mise", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{"mise.local.toml", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"mise.toml", "mise", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"mix.exs", "mix", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"mvnw", "maven", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"node_modules/.bin", "npm", AUTOEXEC_FOLDER, AUTOEXEC_REPORTED},
	{"noxfile.py", "nox", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"opencode.json", "opencode", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{"opencode.jsonc", "opencode", AUTOEXEC_FILE, AUTOEXEC_PROTECTED},
	{"package.json", "npm", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"pip.conf", "pip", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"pom.xml", "maven", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"pyproject.toml", "pip", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"settings.gradle", "gradle", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"setup.cfg", "pip", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"setup.py", "pip", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"sitecustomize.py", "python", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"tox.ini", "tox", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"usercustomize.py", "python", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{"venv/pip.conf", "pip", AUTOEXEC_FILE, AUTOEXEC_REPORTED},
	{0},
};

enum { ROWS = sizeof(autoexec_names) / sizeof(autoexec_names[0]) - 1 };

/* Compare the first part of the row's name with NAME; the result is as of strcmp. */
static int compare_first(const struct autoexec *row, const char *name)
{
	const size_t size = strcspn(row->name, "/");
	const int order = strncmp(row->name, name, size);

	return order != 0 ? order : name[size] == '\0' ? 0 : -1;
}

const struct autoexec *autoexec_of(const char *name, size_t *count)
{
	size_t low = 0, high = ROWS;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_first(&autoexec_names[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*count = 0;
	while (low + *count < ROWS &&
	       compare_first(&autoexec_names[low + *count], name) == 0)
		++*count;
	return *count > 0 ? &autoexec_names[low] : NULL;
}

/*
 * The protected row whose name, without its first SKIP bytes, is PATH or a folder above
 * it.
 */
static const struct autoexec *protects(const struct autoexec *rows, size_t count,
				       const char *path, size_t skip)
{
	for (size_t i = 0; i < count; i++) {
		if (rows[i].care == AUTOEXEC_PROTECTED && strlen(rows[i].name) > skip &&
		    path_within(path, rows[i].name + skip))
			return &rows[i];
	}
	return NULL;
}

const struct autoexec *autoexec_protects(const char *root, const char *path)
{
	const char *last = path_base_name(root);
	const size_t size = strcspn(path, "/");
	const struct autoexec *rows, *found = NULL;
	char first[64]; /* longer than any first part of the table */
	size_t count;

	if (size < sizeof(first)) {
		memcpy(first, path, size);
		first[size] = '\0';
		rows = autoexec_of(first, &count);
		found = protects(rows, count, path, 0);
	}
	if (found != NULL)
		return found;
	rows = autoexec_of(last, &count);
	return protects(rows, count, path, strlen(last) + 1);
}

const struct autoexec *autoexec_ends(const char *path)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct str name = str_of(autoexec_names[i].name);
		const struct str whole = str_of(path);

		if (autoexec_names[i].care == AUTOEXEC_PROTECTED && str_ends(whole, name) &&
		    (whole.size == name.size ||
		     whole.data[whole.size - name.size - 1] == '/'))
			return &autoexec_names[i];
	}
	return NULL;
}

const struct autoexec *autoexec_find(const char *path)
{
	const struct autoexec *found = NULL;

	for (const char *at = path; at != NULL && found == NULL; at = strchr(at, '/')) {
		char first[64]; /* longer than any first part of the table */
		size_t size, count = 0;
		const struct autoexec *rows = NULL;

		at += *at == '/';
		size = strcspn(at, "/");
		if (size < sizeof(first)) {
			memcpy(first, at, size);
			first[size] = '\0';
			rows = autoexec_of(first, &count);
		}
		/* Of a folder and what is in it, the latter stands behind. */
		for (size_t i = 0; i < count; i++) {
			if (path_within(at, rows[i].name))
				found = &rows[i];
		}
	}
	return found;
}
