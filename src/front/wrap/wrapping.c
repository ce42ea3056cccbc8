#include "front/wrap/wrapping.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "front/config_file.h"
#include "tool/denial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PACKAGE_MAX = 1 << 20,
	SHEBANG_MAX = 256,
	SCRIPTS_MAX = 4, /* one after the other, as in the kernel */
};

const char *wrapping_keep(struct wrapping *wrapping, struct buf *text)
{
	const char *kept = arena_copy(&wrapping->arena, buf_str(text));

	buf_fini(text);
	return kept;
}

bool wrapping_is_passed(const struct wrapping *wrapping, const char *name)
{
	const size_t size = strlen(name);

	for (const char *const *at = options_texts(wrapping->options, "env"); *at != NULL;
	     at++)
		if (strncmp(*at, name, size) == 0 &&
		    ((*at)[size] == '\0' || (*at)[size] == '='))
			return true;
	return false;
}

const char *wrapping_expand(struct wrapping *wrapping, const char *text)
{
	struct buf out;

	buf_init(&out, PATH_MAX);
	(void)wrap_places_expand(&wrapping->places, text, &out);
	return wrapping_keep(wrapping, &out);
}

static bool find_home(struct wrapping *wrapping, struct err *err)
{
	const char *home = getenv("HOME");
	struct buf normal;

	buf_init(&normal, PATH_MAX / 2);
	if (home == NULL || home[0] != '/' || !path_normal("/", home, &normal) ||
	    normal.size < 2 || access(normal.data, F_OK) < 0) {
		buf_fini(&normal);
		return err_set(err, ENOENT,
			       "wrap: HOME names no folder, and the agent's settings are found "
			       "from there");
	}
	wrapping->places.home = wrapping_keep(wrapping, &normal);
	return true;
}

static bool find_root(struct wrapping *wrapping, struct err *err)
{
	const struct wrap_profile *profile = &wrapping->profile;
	const char *variable = profile->root_variable;
	const char *given = config_file_variable(variable);
	struct buf normal;

	if (profile->root_folder == NULL)
		return true;
	if (given == NULL) {
		wrapping->places.root = wrapping_expand(wrapping, profile->root_folder);
		return true;
	}
	buf_init(&normal, PATH_MAX);
	if (given[0] != '/' || !path_normal("/", given, &normal) ||
	    !path_within(normal.data, wrapping->places.home) ||
	    strcmp(normal.data, wrapping->places.home) == 0) {
		buf_fini(&normal);
		return err_set(err, EINVAL,
			       "wrap: %s=%.200s is not below your home (%s): the cell has a "
			       "home of its own there, and nothing beside it. Move the folder, or "
			       "unset the variable",
			       variable, given, wrapping->places.home);
	}
	wrapping->places.root = wrapping_keep(wrapping, &normal);
	return true;
}

static bool find_workspace(struct wrapping *wrapping, struct err *err)
{
	const char *folder = options_text(wrapping->options, "workspace");

	wrapping->workspace = realpath(folder != NULL ? folder : ".", NULL);
	wrapping->places.workspace = wrapping->workspace;
	return wrapping->workspace != NULL ||
	       err_set(err, errno, "workspace %s: %s", folder != NULL ? folder : ".",
		       strerror(errno));
}

bool wrapping_find_places(struct wrapping *wrapping, struct err *err)
{
	return find_home(wrapping, err) && find_root(wrapping, err) &&
	       find_workspace(wrapping, err);
}

const char *wrapping_shortened(struct wrapping *wrapping, const char *path)
{
	const char *home = wrapping->places.home;
	struct buf text;

	if (!path_within(path, home) || strcmp(path, home) == 0)
		return path;
	buf_init(&text, PATH_MAX);
	(void)buf_addf(&text, "~/%s", path_relative(path, home));
	return wrapping_keep(wrapping, &text);
}

void wrapping_show(struct wrapping *wrapping, const char *source, const char *path,
		   const char *why)
{
	wrapping->shown = memory_grow(wrapping->shown, wrapping->shown_count + 2,
				      sizeof(wrapping->shown[0]));
	wrapping->shown[wrapping->shown_count++] = (struct shape_shown){
		arena_copy(&wrapping->arena, str_of(source)),
		arena_copy(&wrapping->arena, str_of(path)),
		why,
	};
	wrapping->shown[wrapping->shown_count] = (struct shape_shown){0};
}

/* Does the option NAME show PATH? */
static bool is_said(const struct wrapping *wrapping, const char *name, const char *path)
{
	for (const char *const *at = options_texts(wrapping->options, name); *at != NULL;
	     at++) {
		auto_free char *real = realpath(*at, NULL);

		if (real != NULL && path_within(path, real))
			return true;
	}
	return false;
}

bool wrapping_shows(const struct wrapping *wrapping, const char *path)
{
	if (denial_system_folder_around(path, FOLDER_SYSTEM) != NULL ||
	    (wrapping->workspace != NULL && path_within(path, wrapping->workspace)))
		return true;
	for (size_t i = 0; i < wrapping->shown_count; i++)
		if (path_within(path, wrapping->shown[i].path))
			return true;
	return is_said(wrapping, "read", path) || is_said(wrapping, "write", path);
}

/* The real path of the program NAME, from PATH unless it has a slash; NULL: none. */
static const char *find_program(struct wrapping *wrapping, const char *name)
{
	struct str rest = str_of(getenv("PATH") != NULL ? getenv("PATH") : "/usr/bin:/bin");
	char file[PATH_MAX];
	struct str folder;
	struct stat st;

	if (strchr(name, '/') != NULL)
		rest = STR(".");
	while (path_next_folder(&rest, &folder)) {
		if (snprintf(file, sizeof(file), "%.*s/%s",
			     name[0] == '/' ? 0 : (int)folder.size, folder.data,
			     name) >= (int)sizeof(file))
			continue;
		auto_free char *real = realpath(file, NULL);
		if (real != NULL && stat(real, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(real, X_OK) == 0)
			return arena_copy(&wrapping->arena, str_of(real));
	}
	return NULL;
}

/*
 * Cut PATH, of a file, to the folder of the package it lies in: the outermost node_modules,
 * or a Python environment. False: the file stands by itself.
 */
static bool cut_to_package(char *path)
{
	static const char modules[] = "/node_modules/";
	char *found = strstr(path, modules);
	char mark[PATH_MAX];

	if (found != NULL) {
		found[sizeof(modules) - 2] = '\0';
		return true;
	}
	for (char *slash = strrchr(path, '/'); slash != NULL && slash != path;
	     slash = strrchr(path, '/')) {
		*slash = '\0';
		if (snprintf(mark, sizeof(mark), "%s/pyvenv.cfg", path) < (int)sizeof(mark) &&
		    access(mark, F_OK) == 0)
			return true;
	}
	return false;
}

static void show_package(struct wrapping *wrapping, const char *file, const char *why)
{
	auto_free char *package = memory_copy(file);

	if (wrapping_shows(wrapping, file))
		return;
	if (cut_to_package(package) && !path_within(wrapping->places.home, package))
		wrapping_show(wrapping, package, package, why);
	else
		wrapping_show(wrapping, file, file, why);
}

/*
 * An interpreter below a home brings its library along, beside the folder bin. A folder
 * that holds more than one program (~/.local) is not shown for it.
 */
static void show_interpreter(struct wrapping *wrapping, const char *real)
{
	static const char why[] = "the program's interpreter";
	auto_free char *prefix = memory_copy(real);
	char library[PATH_MAX];

	if (wrapping_shows(wrapping, real))
		return;
	for (int i = 0; i < 2 && strrchr(prefix, '/') != NULL; i++)
		*strrchr(prefix, '/') = '\0';
	if (path_depth(real) > 3 &&
	    snprintf(library, sizeof(library), "%s/lib", prefix) > 0 &&
	    access(library, F_OK) == 0 && !path_within(wrapping->places.home, prefix) &&
	    strcmp(path_base_name(prefix), ".local") != 0)
		wrapping_show(wrapping, prefix, prefix, why);
	else
		wrapping_show(wrapping, real, real, why);
}

/*
 * Put WORD in front of the command that runs the program. A chain of scripts that has more
 * words than the kernel follows is left to the kernel, which refuses it.
 */
static void lead_by(struct wrapping *wrapping, size_t at, const char *word)
{
	if (wrapping->lead_count == WRAPPING_LEAD_MAX)
		return;
	memmove(&wrapping->lead[at + 1], &wrapping->lead[at],
		(wrapping->lead_count - at) * sizeof(wrapping->lead[0]));
	wrapping->lead[at] = word;
	wrapping->lead_count++;
}

/*
 * Show the program that the line "#!" of FILE names, and put it in front of the command, with
 * its arguments. Returns its real path, or NULL when FILE is no script or its interpreter is
 * missing. *BY_PATH becomes true when the cell would not find it as the line names it: the
 * PATH of the cell lacks its folder, or the name is a link, and only the file is shown.
 */
static const char *follow_line(struct wrapping *wrapping, const char *file, bool *by_path)
{
	auto_close int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[SHEBANG_MAX];
	struct str line, word, words;
	ssize_t size = fd >= 0 ? read(fd, head, sizeof(head)) : -1;
	const char *real;
	bool splits = true;
	size_t at = 0;

	if (size < 3 || memcmp(head, "#!", 2) != 0)
		return NULL;
	words = (struct str){head + 2, (size_t)size - 2};
	if (!str_next_line(&words, &line) || !str_next_word(&line, &word))
		return NULL;
	auto_free char *named = memory_copy_str(word);
	const bool is_env = strcmp(path_base_name(named), "env") == 0;
	if (is_env) {
		splits = false;
		while (str_next_word(&line, &word) && word.data[0] == '-')
			splits = splits || str_starts(word, STR("-S"));
	}
	auto_free char *wanted = memory_copy_str(word);
	real = find_program(wrapping, wanted);
	if (real == NULL)
		return NULL;
	*by_path = *by_path || ((is_env || strcmp(named, real) != 0) &&
				denial_system_folder_around(real, FOLDER_SYSTEM) == NULL);
	show_interpreter(wrapping, real);
	lead_by(wrapping, at++, real);
	line = str_trim(line);
	/* The kernel gives the rest of the line as one argument, and env -S splits it. */
	if (!is_env && line.size > 0)
		lead_by(wrapping, at, arena_copy(&wrapping->arena, line));
	while (is_env && splits && str_next_word(&line, &word))
		lead_by(wrapping, at++, arena_copy(&wrapping->arena, word));
	return real;
}

/*
 * Find the interpreters of the script FILE, which may be scripts themselves. The kernel starts
 * them, unless one of them has to be named by its path.
 */
static void follow_script(struct wrapping *wrapping, const char *file)
{
	bool by_path = false;

	for (int i = 0; file != NULL && i < SCRIPTS_MAX; i++)
		file = follow_line(wrapping, file, &by_path);
	if (!by_path)
		wrapping->lead_count = 0;
}

void wrapping_find_program(struct wrapping *wrapping, const char *name)
{
	wrapping->program = find_program(wrapping, name);
	if (wrapping->program == NULL)
		return;
	show_package(wrapping, wrapping->program, "the program");
	follow_script(wrapping, wrapping->program);
}

/* The `version` in the file package.json of FOLDER, as JSON; NULL: there is none. */
static const char *package_version(struct wrapping *wrapping, const char *folder)
{
	auto_value struct value *package = NULL;
	const char *version = NULL;
	struct buf path, text;

	buf_init(&path, PATH_MAX);
	buf_init(&text, PACKAGE_MAX);
	(void)buf_addf(&path, "%s/package.json", folder);
	if (fd_read_file(path.data, PACKAGE_MAX, &text, NULL) &&
	    value_parse(buf_str(&text), 0, &package, NULL))
		version = value_text(value_member(package, "version"));
	if (version != NULL)
		version = arena_copy(&wrapping->arena, str_of(version));
	buf_fini(&text);
	buf_fini(&path);
	return version;
}

const char *wrapping_version(struct wrapping *wrapping)
{
	const char *program = wrapping->program;

	if (program == NULL || path_within(program, wrapping->workspace))
		return NULL;
	auto_free char *rest = memory_copy(program);
	for (char *slash; (slash = strrchr(rest, '/')) != NULL && slash != rest;) {
		const char *name = slash + 1;
		const char *version;

		if (strcmp(name, "node_modules") == 0)
			return NULL;
		if (name[strspn(name, "0123456789")] == '.' && name[0] != '.' &&
		    name[strspn(name, "0123456789.")] == '\0')
			return arena_copy(&wrapping->arena, str_of(name));
		*slash = '\0';
		version = strstr(rest, "/node_modules/") != NULL
				  ? package_version(wrapping, rest)
				  : NULL;
		if (version != NULL)
			return version;
	}
	return NULL;
}

void wrapping_fini(struct wrapping *wrapping)
{
	wrap_profile_fini(&wrapping->profile);
	value_free(wrapping->policy);
	value_free(wrapping->entry);
	if (wrapping->home.path != NULL) /* else nothing was held, and held is 0 */
		fd_close(&wrapping->home.held);
	for (struct wrap_share *at = wrapping->shares; at != NULL && at->fd >= 0; at++)
		fd_close(&at->fd);
	free(wrapping->shares);
	free(wrapping->shown);
	free(wrapping->keys);
	free(wrapping->logins);
	free(wrapping->workspace);
	arena_fini(&wrapping->arena);
}
