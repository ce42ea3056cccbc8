/* test_python: pytest. */
#include "base/path.h"
#include "tools/tests/run_tests.h"

#include <string.h>

/* The settings that hold for tests, and the words by which they are known to. */
static const struct {
	const char *file, *section;
} settings[] = {
	{"pytest.ini", ""},
	{".pytest.ini", ""},
	{"pyproject.toml", "[tool.pytest"},
	{"tox.ini", "[pytest]"},
	{"setup.cfg", "[tool:pytest]"},
};
enum { SETTINGS_COUNT = sizeof(settings) / sizeof(settings[0]) };

#define TEST_FILES "test_*.py *_test.py"

/* A folder with one of these is a project, which has tests of its own. */
#define OWN_PROJECT                                                                             \
	"pyproject.toml setup.py setup.cfg tox.ini pytest.ini .pytest.ini package.json go.mod " \
	"Cargo.toml meson.build CMakeLists.txt"

/* The text of the settings; empty: there are none. */
static struct str find_settings(const struct test_project *project, const char **name)
{
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		struct str text;

		if (!test_project_has(project, settings[i].file))
			continue;
		text = test_project_read(project, settings[i].file);
		if (str_find(text, str_of(settings[i].section), 0) == (size_t)-1)
			continue;
		*name = settings[i].file;
		return text;
	}
	return STR("");
}

static const char *pytest_detect(const struct test_project *project)
{
	const char *name = NULL;

	(void)find_settings(project, &name);
	if (name == NULL)
		name = test_project_first(project, "conftest.py tests/conftest.py "
						   "test/conftest.py");
	if (name == NULL)
		name = test_project_fits(project, "tests", TEST_FILES);
	if (name == NULL)
		name = test_project_fits(project, "test", TEST_FILES);
	if (name == NULL)
		name = test_project_fits(project, ".", TEST_FILES);
	/* A package that has its tests in it. pytest finds them by itself. */
	if (name == NULL)
		name = test_project_fits_below(project, "tests", TEST_FILES, OWN_PROJECT);
	return name != NULL
		       ? name
		       : test_project_fits_below(project, "test", TEST_FILES, OWN_PROJECT);
}

/* "testpaths = a b" or, in TOML, "testpaths = ["a", "b"]"; both may go on in more lines. */
static bool pytest_is_root(const struct test_project *project, const char *file)
{
	const char *name = NULL;
	struct str text = find_settings(project, &name);
	size_t at = str_find(text, STR("testpaths"), 0);
	struct str line;

	if (at == (size_t)-1)
		return false;
	text = str_part(text, at + strlen("testpaths"), SIZE_MAX);
	for (bool first = true; str_next_line(&text, &line); first = false) {
		const char *words = arena_copy(project->arena, line);
		char *copy = arena_copy(project->arena, line);
		struct str rest, word;

		/* A line that is not indented begins something else. */
		if (!first && line.size > 0 && strchr(" \t]", words[0]) == NULL)
			break;
		for (char *c = copy; *c != '\0'; c++) {
			if (strchr("=[]\"',", *c) != NULL)
				*c = ' ';
		}
		rest = str_of(copy);
		while (str_next_word(&rest, &word)) {
			char *root = arena_copy(project->arena, word);

			while (word.size > 1 && root[word.size - 1] == '/')
				root[--word.size] = '\0';
			if (path_within(file, root))
				return true;
		}
	}
	return false;
}

static void add_program(const struct test_request *request, struct test_plan *plan)
{
	const char *own =
		test_project_first(request->project, ".venv/bin/pytest venv/bin/pytest");

	test_plan_step(request, plan, own != NULL ? own : "pytest");
}

static bool pytest_plan(const struct test_request *request, struct test_plan *plan,
			struct buf *sentence)
{
	(void)sentence;
	add_program(request, plan);
	test_plan_add(request, plan, "--color=no");
	test_plan_add(request, plan, "--junitxml=%s", request->report);
	/* The newer form has no files. */
	test_plan_add(request, plan, "-o");
	test_plan_add(request, plan, "junit_family=xunit1");
	if (!test_project_writable(request->project)) {
		test_plan_add(request, plan, "-p");
		test_plan_add(request, plan, "no:cacheprovider");
		plan->environment = "PYTHONDONTWRITEBYTECODE=1";
	}
	plan->report = request->report;
	if (request->again != NULL) {
		for (size_t i = 0; i < request->again->count; i++) {
			const char *node = request->again->failures[i].select;

			if (node != NULL)
				test_plan_add(request, plan, "%s", node);
		}
		return true;
	}
	if (request->filter != NULL) {
		test_plan_add(request, plan, "-k");
		test_plan_add(request, plan, "%s", request->filter);
	}
	if (request->suite != NULL) {
		test_plan_add(request, plan, "-m");
		test_plan_add(request, plan, "%s", request->suite);
	}
	if (request->file != NULL)
		test_plan_add(request, plan, "%s", request->file);
	return true;
}

const struct test_runner pytest_runner = {
	.name = "pytest",
	.needs = "pytest.ini, conftest.py or files like tests/test_a.py or pkg/tests/test_a.py",
	.missing = "install it in the project's .venv, or Debian's package python3-pytest",
	.files = TEST_FILES,
	.detect = pytest_detect,
	.is_root = pytest_is_root,
	.plan = pytest_plan,
	.parse = test_parse_pytest,
};
