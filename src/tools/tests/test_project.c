/* test_project: what a folder holds, and argument vectors; see test_runner.h. */
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tools/tests/test_runner.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SETTINGS_MAX = 1 << 20, /* bytes of a project's own file that are looked at */
	NAMES_MAX = 10000,      /* names of one folder */
	FOLDERS_MAX = 300,      /* names of one whose folders are looked into, too */
	ROOM_FIRST = 16,
	REGEX_MAX = 1 << 20,
};

static const char *path_of(const struct test_project *project, const char *name)
{
	struct buf path;
	const char *kept;

	buf_init(&path, 2 * PATH_MAX);
	(void)buf_addf(&path, "%s/%s", project->folder, name);
	kept = arena_copy(project->arena, buf_str(&path));
	buf_fini(&path);
	return kept;
}

bool test_project_has(const struct test_project *project, const char *name)
{
	struct file file;
	struct err err;
	bool there;

	file_init(&file);
	there = files_reach(project->call->files, path_of(project, name), FILES_ANY,
			    &file, &err);
	file_fini(&file);
	return there;
}

const char *test_project_first(const struct test_project *project, const char *names)
{
	struct str rest = str_of(names), word;

	while (str_next_word(&rest, &word)) {
		const char *name = arena_copy(project->arena, word);

		if (test_project_has(project, name))
			return name;
	}
	return NULL;
}

struct str test_project_read(const struct test_project *project, const char *name)
{
	struct str text = {"", 0};
	struct file file;
	struct buf content;
	struct err err;

	file_init(&file);
	buf_init(&content, SETTINGS_MAX);
	if (files_reach(project->call->files, path_of(project, name), FILES_READ, &file,
			&err) &&
	    fd_read_all(file.fd, &content, name, &err))
		text = (struct str){arena_copy(project->arena, buf_str(&content)),
				    content.size};
	buf_fini(&content);
	file_fini(&file);
	return text;
}

static bool fits_one(const char *patterns, const char *name)
{
	struct str rest = str_of(patterns), pattern;

	while (str_next_word(&rest, &pattern)) {
		if (pattern_match(pattern, str_of(name), PATTERN_BASENAME))
			return true;
	}
	return false;
}

/* Open the folder NAME to list it; NULL: there is none. */
static DIR *open_folder(const struct test_project *project, const char *name)
{
	struct file file;
	struct err err;
	DIR *dir = NULL;

	file_init(&file);
	if (files_reach(project->call->files, path_of(project, name), FILES_FOLDER, &file,
			&err)) {
		dir = fdopendir(file.fd);
		if (dir != NULL)
			file.fd = -1;
	}
	file_fini(&file);
	return dir;
}

void test_project_each_folder(const struct test_project *project, const char *names,
			      struct buf *out)
{
	DIR *dir = open_folder(project, ".");

	for (int i = 0; dir != NULL && i < NAMES_MAX; i++) {
		struct dirent *entry = readdir(dir);
		struct test_project inner = *project;

		if (entry == NULL)
			break;
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		inner.folder = path_of(project, entry->d_name);
		if (test_project_first(&inner, names) == NULL)
			continue;
		(void)buf_adds(out, out->size > 0 ? ", " : "");
		text_add_name(out, str_of(entry->d_name));
	}
	if (dir != NULL)
		(void)closedir(dir);
}

const char *test_project_fits(const struct test_project *project, const char *name,
			      const char *patterns)
{
	DIR *dir = open_folder(project, name);
	const char *found = NULL;

	for (int i = 0; dir != NULL && found == NULL && i < NAMES_MAX; i++) {
		struct dirent *entry = readdir(dir);

		if (entry == NULL)
			break;
		if (fits_one(patterns, entry->d_name))
			found = arena_copy(project->arena, str_of(entry->d_name));
	}
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

/* Folders that hold what others have made. */
#define OTHERS "node_modules venv env vendor site-packages target build dist third_party"

/* The folder FOLDER (relative) and, DEPTH times, those below it. */
static const char *fits_below(const struct test_project *project, const char *folder,
			      const char *name, const char *patterns, const char *own,
			      int depth)
{
	DIR *dir = open_folder(project, folder);
	const char *found = NULL;

	for (int i = 0; dir != NULL && found == NULL && i < FOLDERS_MAX; i++) {
		struct dirent *entry = readdir(dir);
		struct test_project inner = *project;
		char path[PATH_MAX], tests[PATH_MAX];

		if (entry == NULL)
			break;
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    str_among(OTHERS, str_of(entry->d_name)) ||
		    snprintf(path, sizeof(path), "%s%s%s", folder[0] != '.' ? folder : "",
			     folder[0] != '.' ? "/" : "",
			     entry->d_name) >= (int)sizeof(path) ||
		    snprintf(tests, sizeof(tests), "%s/%s", path, name) >=
			    (int)sizeof(tests))
			continue;
		inner.folder = path_of(project, path);
		if (test_project_first(&inner, own) != NULL)
			continue;
		if (test_project_fits(project, tests, patterns) != NULL)
			found = arena_copy(project->arena, str_of(tests));
		else if (depth > 0)
			found = fits_below(project, path, name, patterns, own, depth - 1);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

const char *test_project_fits_below(const struct test_project *project, const char *name,
				    const char *patterns, const char *own)
{
	return fits_below(project, ".", name, patterns, own, 1);
}

const char *test_project_holder(const struct test_project *project, const char *folder,
				const char *name)
{
	char inner[PATH_MAX];

	(void)snprintf(inner, sizeof(inner), "%s/%s", folder, name);
	return test_project_has(project, inner) ? folder : NULL;
}

bool test_project_writable(const struct test_project *project)
{
	return access(project->folder, W_OK) == 0;
}

static const char *variable(const char *const *environment, const char *name)
{
	size_t size = strlen(name);

	for (; environment != NULL && *environment != NULL; environment++) {
		if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
			return *environment + size + 1;
	}
	return NULL;
}

const char *test_project_build(const struct test_project *project, const char *runner)
{
	const char *home = variable(project->call->environment, "HOME");
	const char *kept;
	char hex[HASH_HEX + 1];
	struct buf path;

	hash_text(str_of(project->folder), hex);
	buf_init(&path, PATH_MAX);
	/* Two projects of a workspace have two; the home is the workspace's own. */
	(void)buf_addf(&path, "%s/.cache/glovebox-tests/%s-%.12s/",
		       home != NULL ? home : "/tmp", runner, hex);
	(void)fd_make_folders(path.data, NULL);
	if (path.size > 0)
		buf_truncate(&path, path.size - 1);
	kept = arena_copy(project->arena, buf_str(&path));
	buf_fini(&path);
	return kept;
}

static void add_argument(const struct test_request *request, struct test_step *step,
			 const char *text)
{
	if (step->count + 1 >= step->room) {
		size_t room = step->room == 0 ? ROOM_FIRST : 2 * step->room;
		const char **grown =
			arena_alloc(request->project->arena, room * sizeof(*grown));

		if (step->count > 0)
			memcpy(grown, step->argv, step->count * sizeof(*grown));
		step->argv = grown;
		step->room = room;
	}
	step->argv[step->count++] = text;
	step->argv[step->count] = NULL;
}

void test_plan_step(const struct test_request *request, struct test_plan *plan,
		    const char *program)
{
	add_argument(request, &plan->steps[plan->count++], program);
}

void test_plan_add(const struct test_request *request, struct test_plan *plan,
		   const char *format, ...)
{
	struct buf text;
	va_list arguments;

	buf_init(&text, REGEX_MAX);
	va_start(arguments, format);
	(void)buf_addv(&text, format, arguments);
	va_end(arguments);
	add_argument(request, &plan->steps[plan->count - 1],
		     arena_copy(request->project->arena, buf_str(&text)));
	buf_fini(&text);
}

void test_escape(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] != '\0' &&
		    strchr("\\^$.|?*+()[]{}/-#", text.data[i]) != NULL)
			(void)buf_addc(out, '\\');
		(void)buf_addc(out, text.data[i]);
	}
}

const char *test_plan_names(const struct test_request *request, const char *before,
			    const char *after)
{
	struct buf names;
	const char *kept;
	bool more = false;

	buf_init(&names, REGEX_MAX);
	(void)buf_adds(&names, before);
	for (size_t i = 0; i < request->again->count; i++) {
		const char *select = request->again->failures[i].select;

		if (select == NULL)
			continue;
		if (more)
			(void)buf_addc(&names, '|');
		test_escape(str_of(select), &names);
		more = true;
	}
	(void)buf_adds(&names, after);
	kept = arena_copy(request->project->arena, buf_str(&names));
	buf_fini(&names);
	return kept;
}

void test_plan_files(const struct test_request *request, struct test_plan *plan)
{
	const struct test_report *again = request->again;

	for (size_t i = 0; i < again->count; i++) {
		const char *file = again->failures[i].file;
		bool known = file == NULL;

		for (size_t j = 0; j < i && !known; j++)
			known = again->failures[j].file != NULL &&
				strcmp(again->failures[j].file, file) == 0;
		if (!known && file[0] == '/')
			test_plan_add(request, plan, "%s", file);
		else if (!known)
			test_plan_add(request, plan, "%s/%s",
				      request->project->call->workspace, file);
	}
}
