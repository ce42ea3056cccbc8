/*
 * test_choose: which runner, in which folder: that of the file when one is named, else the
 * workspace. See run_tests.h.
 */
#include "base/path.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tools/shown.h"
#include "tools/tests/run_tests.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { SENTENCE_MAX = 8192, RUNNERS_MAX = 16 };

/* By these names a folder holds tests in any language. */
#define TEST_FOLDERS "test tests t spec specs __tests__ testing Test Tests"

/* Does a folder on the way to FILE, or that itself, have such a name? */
static bool in_test_folder(const char *file, bool is_folder)
{
	for (const char *at = file; *at != '\0';) {
		size_t size = strcspn(at, "/");

		if ((at[size] == '/' || is_folder) &&
		    str_among(TEST_FOLDERS, (struct str){at, size}))
			return true;
		at += size;
		at += *at == '/';
	}
	return false;
}

static bool fits(const char *patterns, const char *file)
{
	struct str rest = str_of(patterns), pattern;

	while (str_next_word(&rest, &pattern)) {
		if (pattern_match(pattern, str_of(path_base_name(file)), PATTERN_BASENAME))
			return true;
	}
	return false;
}

static bool in_test_root(const struct test_choice *choice)
{
	const struct test_runner *runner = choice->runner;

	if (in_test_folder(choice->file, choice->file_is_folder) ||
	    (!choice->file_is_folder && runner->files != NULL &&
	     fits(runner->files, choice->file)))
		return true;
	/* The project itself, where its tests lie beside its sources. */
	if (choice->file_is_folder && runner->files != NULL &&
	    test_project_fits(&choice->project, choice->file, runner->files) != NULL)
		return true;
	return runner->is_root != NULL && runner->is_root(&choice->project, choice->file);
}

/* Add the runners that fit the project; those that yield only when no other does. */
static size_t find_runners(const struct test_project *project,
			   const struct test_runner **found, const char **because)
{
	size_t count = 0;

	for (int pass = 0; pass < 2 && count == 0; pass++) {
		for (size_t i = 0; test_runners[i] != NULL; i++) {
			const char *name;

			if (test_runners[i]->yields != (pass == 1))
				continue;
			name = test_runners[i]->detect(project);
			if (name == NULL)
				continue;
			found[count] = test_runners[i];
			because[count++] = name;
		}
	}
	return count;
}

/* Of several, those that take FILE for one of theirs by its name. */
static size_t keep_fitting(const char *file, const struct test_runner **found,
			   const char **because, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (found[i]->files == NULL || !fits(found[i]->files, file))
			continue;
		found[kept] = found[i];
		because[kept++] = because[i];
	}
	return kept;
}

static void add_all_needs(struct buf *out)
{
	for (size_t i = 0; test_runners[i] != NULL; i++)
		(void)buf_addf(out, "%s%s (%s)", i > 0 ? ", " : "", test_runners[i]->name,
			       test_runners[i]->needs);
}

/* No runner in the workspace: what was looked for, and where there is one. */
static void tell_none(struct call *call, struct arena *arena, struct tool_result *result)
{
	static const char *const markers =
		"phpunit.xml phpunit.xml.dist pytest.ini conftest.py go.mod Cargo.toml "
		"package.json meson.build CMakeLists.txt Makefile";
	struct test_project top = {call, arena, call->workspace};
	struct buf text, names;

	buf_init(&text, SENTENCE_MAX);
	buf_init(&names, SENTENCE_MAX);
	add_all_needs(&text);
	(void)tool_fail(result,
			"No test runner was found in the workspace. Looked for: %s. Name a test "
			"with `file` when the project is a folder of the workspace, or run the "
			"tests with bash.",
			text.data);
	test_project_each_folder(&top, markers, &names);
	if (names.size > 0)
		buf_addf(&result->text, " Projects are in: %s.", names.data);
	buf_fini(&text);
	buf_fini(&names);
}

static void tell_several(const struct test_runner *const *found,
			 const char *const *because, size_t count,
			 const struct test_choice *choice, struct tool_result *result)
{
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	for (size_t i = 0; i < count; i++)
		(void)buf_addf(&text, "%s%s (%s%s)", i > 0 ? ", " : "", found[i]->name,
			       choice->prefix, because[i]);
	(void)tool_fail(result,
			"Several test runners fit: %s. Call again with one of them, like "
			"{\"runner\": \"%s\"}, or name a test with `file`.",
			text.data, found[0]->name);
	buf_fini(&text);
}

/* Make FOLDER (below the workspace, or that) the project's. */
static void set_folder(struct test_choice *choice, const char *folder)
{
	const char *below = path_relative(folder, choice->project.call->workspace);
	struct buf prefix;

	buf_init(&prefix, PATH_MAX);
	if (strcmp(below, ".") != 0)
		(void)buf_addf(&prefix, "%s/", below);
	choice->project.folder = arena_copy(choice->project.arena, str_of(folder));
	choice->prefix = arena_copy(choice->project.arena, buf_str(&prefix));
	buf_fini(&prefix);
}

/* The runners of one folder: WANTED, or all that fit. */
static size_t look(struct test_choice *choice, const char *folder,
		   const struct test_runner *wanted, const struct test_runner **found,
		   const char **because)
{
	set_folder(choice, folder);
	if (wanted == NULL)
		return find_runners(&choice->project, found, because);
	found[0] = wanted;
	because[0] = wanted->detect(&choice->project);
	return because[0] != NULL;
}

/*
 * Upwards from PATH to the workspace: the first folder that uses WANTED, or any. Folders of
 * tests count only when nothing above them does.
 */
static size_t climb(struct test_choice *choice, const char *path,
		    const struct test_runner *wanted, const struct test_runner **found,
		    const char **because)
{
	const char *workspace = choice->project.call->workspace;
	struct buf folder;
	size_t count = 0;

	buf_init(&folder, PATH_MAX);
	for (int pass = 0; pass < 2 && count == 0; pass++) {
		buf_clear(&folder);
		(void)buf_adds(&folder, path);
		while (count == 0 && path_within(folder.data, workspace)) {
			bool last = strcmp(folder.data, workspace) == 0;

			if (last || pass == 1 ||
			    !in_test_folder(path_relative(folder.data, workspace), true))
				count = look(choice, folder.data, wanted, found, because);
			if (last)
				break;
			buf_truncate(&folder,
				     (size_t)(path_base_name(folder.data) - folder.data) -
					     1);
		}
	}
	buf_fini(&folder);
	return count;
}

/* The file of the call, real and inside the workspace; *FOLDER is where it lies. */
static bool reach_file(struct call *call, const char *name, struct file *file,
		       struct buf *folder, struct tool_result *result)
{
	struct err err;

	if (!files_reach(call->files, name, FILES_ANY, file, &err)) {
		(void)shown_fail(call, result, name, &err);
		if (name[0] == '-')
			buf_adds(&result->text,
				 " `file` is the path of a test file or folder, no option, and not "
				 "standard input: leave it out to run all tests.");
		return false;
	}
	if (!path_within(file->path.data, call->workspace)) {
		(void)tool_fail(result,
				"%s lies outside the workspace; tests of it cannot be run.",
				name);
		return false;
	}
	(void)buf_addstr(folder, buf_str(&file->path));
	if (!S_ISDIR(file->st.st_mode) && strcmp(folder->data, call->workspace) != 0)
		buf_truncate(folder,
			     (size_t)(path_base_name(folder->data) - folder->data) - 1);
	return true;
}

static bool check_file(struct test_choice *choice, const struct file *file,
		       struct tool_result *result)
{
	const struct test_runner *runner = choice->runner;

	choice->file =
		arena_copy(choice->project.arena,
			   str_of(path_relative(file->path.data, choice->project.folder)));
	choice->file_is_folder = S_ISDIR(file->st.st_mode);
	if (runner->no_file != NULL)
		(void)tool_fail(result, "`file` does not go with %s: %s.", runner->name,
				runner->no_file);
	else if (choice->file_is_folder && runner->no_folder != NULL)
		(void)tool_fail(result, "%s.", runner->no_folder);
	else if (!in_test_root(choice))
		(void)tool_fail(result,
				"%s%s is in no folder of tests, and by its name %s does not take "
				"it for a test (%s). Name a file below tests/ or the like.",
				choice->prefix, choice->file, runner->name,
				runner->files != NULL ? runner->files : "no names");
	else if (choice->file[0] == '-')
		(void)tool_fail(result,
				"`file` begins with a dash, which %s would take for an "
				"option: rename it.",
				runner->name);
	else
		return true;
	return false;
}

static bool choose(struct test_choice *choice, const struct file *file, const char *folder,
		   const struct test_runner *wanted, struct tool_result *result)
{
	struct call *call = choice->project.call;
	const struct test_runner *found[RUNNERS_MAX];
	const char *because[RUNNERS_MAX];
	size_t count = climb(choice, folder, wanted, found, because);

	if (count > 1 && file != NULL) {
		size_t kept = keep_fitting(file->path.data, found, because, count);

		count = kept > 0 ? kept : count;
	}
	if (count > 1) {
		tell_several(found, because, count, choice, result);
		return false;
	}
	if (count == 1) {
		choice->runner = found[0];
		choice->because = because[0];
	} else if (wanted != NULL) {
		/* Asked for by name: in the workspace, whatever shows it or not. */
		choice->runner = wanted;
		set_folder(choice, call->workspace);
	} else {
		tell_none(call, choice->project.arena, result);
		return false;
	}
	return file == NULL || check_file(choice, file, result);
}

bool test_choose(struct call *call, struct arena *arena, struct test_choice *choice,
		 struct tool_result *result)
{
	const char *name = call_text(call, "file"), *runner = call_text(call, "runner");
	const struct test_runner *wanted = runner != NULL ? test_runner_find(runner) : NULL;
	struct file file;
	struct buf folder;
	bool ok;

	*choice = (struct test_choice){.project = {.call = call, .arena = arena}};
	file_init(&file);
	buf_init(&folder, PATH_MAX);
	if (name == NULL)
		(void)buf_adds(&folder, call->workspace);
	ok = (name == NULL || reach_file(call, name, &file, &folder, result)) &&
	     choose(choice, name != NULL ? &file : NULL, folder.data, wanted, result);
	buf_fini(&folder);
	file_fini(&file);
	return ok;
}
