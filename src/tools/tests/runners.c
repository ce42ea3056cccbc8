/*
 * runners: the rows of all runners with their plans, and the readers of formats that no
 * other program prints: the events of Go, and the JSON of the runners of JavaScript. The
 * formats that several runners share are read in report.c.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "process/program.h"
#include "tool/call.h"
#include "tools/tests/report.h"
#include "tools/tests/run_tests.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	KNOWN_MAX = 4096, /* tests with parts, and packages, that are remembered */
	NAME_MAX_BYTES = 2048,
	REGEX_MAX = 1 << 20,
	ARGUMENTS_FIRST = 16, /* places for arguments; they double */
};

#define BUILD_FOLDERS \
	"build builddir _build out build/debug build/release cmake-build-debug"
#define MAKEFILES "GNUmakefile makefile Makefile"

/* Questions of several runners about a project, and the arguments of a plan. */

/*
 * The first folder, from FOLDER on ("." is the project), that holds NAME ("build" with
 * "x.txt").
 */
static const char *project_holder(const struct test_project *project, const char *folder,
				  const char *name)
{
	char inner[PATH_MAX];

	(void)snprintf(inner, sizeof(inner), "%s/%s", folder, name);
	return test_project_has(project, inner) ? folder : NULL;
}

/* May this process write to the project's folder? */
static bool project_is_writable(const struct test_project *project)
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

/*
 * A folder for the runner's build files below the private home. It is made when it is
 * missing.
 */
static const char *project_build(const struct test_project *project, const char *runner)
{
	const char *home = variable(project->call->environment, "HOME");
	const char *kept;
	char hex[HASH_HEX + 1];
	struct buf path;

	hash_text(str_of(project->folder), hex);
	buf_init(&path, PATH_MAX);
	/*
	 * Two projects of a workspace have two such folders; the home belongs to the
	 * workspace.
	 */
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
		size_t room = step->room == 0 ? ARGUMENTS_FIRST : 2 * step->room;
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

/* Begin a step, and add arguments to the last one. */
static void plan_step(const struct test_request *request, struct test_plan *plan,
		      const char *program)
{
	add_argument(request, &plan->steps[plan->count++], program);
}

__attribute__((format(printf, 3, 4))) static void plan_add(const struct test_request *request,
							   struct test_plan *plan,
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

/*
 * Append TEXT with an escape before every character that has a meaning in regular
 * expressions.
 */
static void add_escaped(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] != '\0' &&
		    strchr("\\^$.|?*+()[]{}/-#", text.data[i]) != NULL)
			(void)buf_addc(out, '\\');
		(void)buf_addc(out, text.data[i]);
	}
}

/* The failures to run again as one regular expression: "^(?:a|b)$" between the two texts. */
static const char *plan_names(const struct test_request *request, const char *before,
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
		add_escaped(str_of(select), &names);
		more = true;
	}
	(void)buf_adds(&names, after);
	kept = arena_copy(request->project->arena, buf_str(&names));
	buf_fini(&names);
	return kept;
}

/* Add every file with a failed test, once, as an absolute path. */
static void plan_files(const struct test_request *request, struct test_plan *plan)
{
	const struct test_report *again = request->again;
	const struct call *call = request->project->call;
	char room[PATH_MAX];

	for (size_t i = 0; i < again->count; i++) {
		const char *file = again->failures[i].file;
		bool known = file == NULL;

		for (size_t j = 0; j < i && !known; j++)
			known = again->failures[j].file != NULL &&
				strcmp(again->failures[j].file, file) == 0;
		if (!known && file[0] == '/')
			plan_add(request, plan, "%s", file);
		else if (!known)
			plan_add(request, plan, "%s/%s",
				 program_folder(call->terms, call->workspace, room), file);
	}
}

/* The runners. */

/*
 * The folder in which PROJECT is built already, known by SIGN, if it is writable. Else a
 * folder in the private home, because nobody asked for one in the workspace. *READY: it
 * is set up.
 */
static const char *find_build(const struct test_project *project, const char *sign,
			      const char *runner, bool *ready)
{
	struct str rest = str_of(BUILD_FOLDERS), word;
	const char *build;
	char path[PATH_MAX];

	while (str_next_word(&rest, &word)) {
		const char *folder = arena_copy(project->arena, word);

		(void)snprintf(path, sizeof(path), "%s/%s", project->folder, folder);
		if (project_holder(project, folder, sign) == NULL || access(path, W_OK) < 0)
			continue;
		*ready = true;
		return arena_copy(project->arena, str_of(path));
	}
	build = project_build(project, runner);
	(void)snprintf(path, sizeof(path), "%s/%s", build, sign);
	*ready = access(path, F_OK) == 0;
	return build;
}

static const char *meson_detect(const struct test_project *project)
{
	return test_project_first(project, "meson.build");
}

/* Add each test that must run again, once. */
static void add_selected(const struct test_request *request, struct test_plan *plan)
{
	const struct test_report *again = request->again;

	for (size_t i = 0; i < again->count; i++) {
		const char *select = again->failures[i].select;
		bool known = select == NULL || select[0] == '-';

		for (size_t j = 0; j < i && !known; j++)
			known = again->failures[j].select != NULL &&
				strcmp(again->failures[j].select, select) == 0;
		if (!known)
			plan_add(request, plan, "%s", select);
	}
}

static bool meson_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	bool ready;
	const char *build = find_build(request->project, "meson-private/coredata.dat",
				       "meson", &ready);
	struct buf report;

	(void)sentence;
	if (!ready) {
		plan_step(request, plan, "meson");
		plan_add(request, plan, "setup");
		plan_add(request, plan, "%s", build);
		plan_add(request, plan, "%s", request->project->folder);
	}
	plan_step(request, plan, "meson");
	plan_add(request, plan, "test");
	plan_add(request, plan, "-C");
	plan_add(request, plan, "%s", build);
	plan_add(request, plan, "--print-errorlogs");
	if (request->suite != NULL)
		plan_add(request, plan, "--suite=%s", request->suite);
	if (request->again != NULL)
		add_selected(request, plan);
	else if (request->filter != NULL)
		plan_add(request, plan, "%s", request->filter);
	buf_init(&report, PATH_MAX);
	(void)buf_addf(&report, "%s/meson-logs/testlog.junit.xml", build);
	plan->report = arena_copy(request->project->arena, buf_str(&report));
	buf_fini(&report);
	return true;
}

static const char *ctest_detect(const struct test_project *project)
{
	struct str rest = str_of(BUILD_FOLDERS), word;

	if (str_find(test_project_read(project, "CMakeLists.txt"), STR("enable_testing"),
		     0) != (size_t)-1 ||
	    str_find(test_project_read(project, "CMakeLists.txt"), STR("include(CTest)"),
		     0) != (size_t)-1)
		return "CMakeLists.txt";
	while (str_next_word(&rest, &word)) {
		if (project_holder(project, arena_copy(project->arena, word),
				   "CTestTestfile.cmake") != NULL)
			return "CTestTestfile.cmake";
	}
	return NULL;
}

static bool ctest_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	const struct test_project *project = request->project;
	bool ready;
	const char *build = find_build(project, "CMakeCache.txt", "ctest", &ready);

	(void)sentence;
	if (!ready) {
		plan_step(request, plan, "cmake");
		plan_add(request, plan, "-S%s", project->folder);
		plan_add(request, plan, "-B%s", build);
	}
	if (request->again == NULL) {
		plan_step(request, plan, "cmake");
		plan_add(request, plan, "--build");
		plan_add(request, plan, "%s", build);
		plan_add(request, plan, "--parallel");
		plan_add(request, plan, "%u", clock_cores_usable());
	}
	plan_step(request, plan, "ctest");
	plan_add(request, plan, "--test-dir");
	plan_add(request, plan, "%s", build);
	plan_add(request, plan, "--output-on-failure");
	plan_add(request, plan, "--test-output-size-passed");
	plan_add(request, plan, "%d", 64 << 10);
	plan_add(request, plan, "--output-junit");
	plan_add(request, plan, "%s", request->report);
	plan->report = request->report;
	if (request->suite != NULL) {
		plan_add(request, plan, "-L");
		plan_add(request, plan, "%s", request->suite);
	}
	if (request->again != NULL || request->filter != NULL) {
		plan_add(request, plan, "-R");
		plan_add(request, plan, "%s",
			 request->again != NULL ? plan_names(request, "^(", ")$")
						: request->filter);
	}
	return true;
}

/* May a target with this name be run? Only a target that tests: "deploy" is none. */
static bool is_test_target(struct str name)
{
	bool tests = false;

	for (size_t i = 0; i < name.size; i++) {
		struct str rest = str_part(name, i, SIZE_MAX);

		if (!isalnum((unsigned char)name.data[i]) &&
		    (name.data[i] == '\0' || strchr("_.-/", name.data[i]) == NULL))
			return false;
		tests |= str_starts(rest, STR("test")) ||
			 str_starts(rest, STR("check")) || str_starts(rest, STR("spec"));
	}
	return tests && name.data[0] != '-';
}

/*
 * Does the makefile TEXT have the target NAME? NAME NULL: its test targets are appended
 * to ALL.
 */
static bool has_target(struct str text, const char *name, struct buf *all)
{
	struct str line, word;

	while (str_next_line(&text, &line)) {
		size_t colon = str_find(line, STR(":"), 0);
		struct str names = str_part(line, 0, colon);

		if (colon == (size_t)-1 || line.data[0] == '\t' || line.data[0] == '.' ||
		    str_starts(str_part(line, colon, 2), STR(":=")))
			continue;
		while (str_next_word(&names, &word)) {
			if (name != NULL && str_is(word, name))
				return true;
			if (name == NULL && is_test_target(word))
				(void)buf_addf(all, "%s%.*s", all->size > 0 ? ", " : "",
					       (int)word.size, word.data);
		}
	}
	return false;
}

static const char *default_target(struct str text)
{
	static const char *const names[] = {"test", "check", "tests"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (has_target(text, names[i], NULL))
			return names[i];
	}
	return NULL;
}

static const char *make_detect(const struct test_project *project)
{
	const char *name = test_project_first(project, MAKEFILES);

	return name != NULL && default_target(test_project_read(project, name)) != NULL
		       ? name
		       : NULL;
}

static bool make_plan(const struct test_request *request, struct test_plan *plan,
		      struct buf *sentence)
{
	const char *name = test_project_first(request->project, MAKEFILES);
	struct str text =
		name != NULL ? test_project_read(request->project, name) : STR("");
	const char *target = request->suite != NULL ? request->suite : default_target(text);
	struct buf all;

	if (target == NULL || !is_test_target(str_of(target)) ||
	    !has_target(text, target, NULL)) {
		buf_init(&all, 4096);
		(void)has_target(text, NULL, &all);
		(void)buf_addf(sentence,
			       "make runs a target of the makefile that tests, by its name: "
			       "`suite` may be %s.",
			       all.size > 0 ? all.data
					    : "none, for there is no such target");
		buf_fini(&all);
		return false;
	}
	plan_step(request, plan, "make");
	plan_add(request, plan, "%s", target);
	return true;
}

const struct test_runner meson_runner = {
	.name = "meson",
	.needs = "meson.build",
	.missing = "Debian's packages meson and ninja-build have it",
	.no_file = "meson knows tests by name: use `filter` with one",
	.detect = meson_detect,
	.plan = meson_plan,
	.parse = report_parse_meson,
};

const struct test_runner ctest_runner = {
	.name = "ctest",
	.needs = "CMakeLists.txt with enable_testing",
	.missing = "Debian's package cmake has it",
	.no_file = "ctest knows tests by name: use `filter` with one",
	.detect = ctest_detect,
	.plan = ctest_plan,
	.parse = report_parse_ctest,
};

const struct test_runner make_runner = {
	.name = "make",
	.needs = "a makefile with the target test or check",
	.missing = "Debian's package make has it",
	.no_file = "make runs whole targets: use `suite` with the name of one",
	.no_filter = "make runs whole targets: use `suite` with the name of one",
	.yields = true,
	.no_again = true,
	.detect = make_detect,
	.plan = make_plan,
	.parse = report_parse_any,
};

/* Go test, and the events of its -json. */

struct go {
	struct test_report *report;
	const char *module;
	struct str text;  /* the whole output */
	struct str error; /* the messages of the build */
	/*
	 * In the report's arena: "package test" for a test that has parts, "package" for
	 * a package with a failed test. Events of packages that are tested at the same
	 * time come in any order.
	 */
	char *known[KNOWN_MAX];
	size_t known_count;
};

static bool is_known(const struct go *go, const char *key)
{
	for (size_t i = go->known_count; i > 0; i--) {
		if (strcmp(go->known[i - 1], key) == 0)
			return true;
	}
	return false;
}

static void add_known(struct go *go, const char *key)
{
	if (go->known_count < KNOWN_MAX && !is_known(go, key))
		go->known[go->known_count++] = arena_copy(&go->report->arena, str_of(key));
}

/* The tests above TEST of PACKAGE have parts: "A/b/c" makes "A" and "A/b" known. */
static void add_parents(struct go *go, const char *package, const char *test)
{
	struct buf key;

	buf_init(&key, NAME_MAX_BYTES);
	for (const char *at = strchr(test, '/'); at != NULL; at = strchr(at + 1, '/')) {
		buf_clear(&key);
		(void)buf_addf(&key, "%s %.*s", package, (int)(at - test), test);
		if (!key.overflowed)
			add_known(go, key.data);
	}
	buf_fini(&key);
}

/*
 * Is EVENT the output of TEST of PACKAGE, or, when there is no test, of the package or
 * its build?
 */
static bool is_of(const struct value *event, const char *package, const char *test)
{
	struct str of = value_str(value_member(event, "Package"));
	const char *name = value_text(value_member(event, "Test"));

	if (of.size == 0)
		of = value_str(value_member(event, "ImportPath"));
	/* "example.org/a [example.org/a.test]" */
	of = str_part(of, 0, str_find(of, STR(" "), 0));
	return str_is(of, package) && strcmp(name != NULL ? name : "", test) == 0;
}

/* Append the output of the test, without the lines that only frame it. */
static void add_words(const struct go *go, const char *package, const char *test,
		      struct buf *words)
{
	struct str rest = go->text, line;

	while (words->size < TEST_TEXT_MAX && str_next_line(&rest, &line)) {
		auto_value struct value *event = NULL;
		struct str printed, shown;

		/* This check is faster than parsing every line. */
		if (str_find(line, STR("\"Output\""), 0) == (size_t)-1 ||
		    str_find(line, str_of(package), 0) == (size_t)-1 ||
		    !value_parse(line, 0, &event, NULL))
			continue;
		if (!is_of(event, package, test))
			continue;
		printed = value_str(value_member(event, "Output"));
		shown = str_trim(printed);
		if (!str_starts(shown, STR("=== ")) && !str_starts(shown, STR("--- ")))
			(void)buf_addstr(words, printed);
	}
}

/*
 * The folder of PACKAGE in the module, "" for its root; NULL: the package is not in the
 * module.
 */
static const char *folder_of(const struct go *go, const char *package)
{
	size_t size = go->module != NULL ? strlen(go->module) : 0;

	if (size == 0 || strncmp(package, go->module, size) != 0)
		return NULL;
	if (package[size] == '\0')
		return "";
	return package[size] == '/' ? package + size + 1 : NULL;
}

static void add_failure(struct go *go, const char *package, const char *test)
{
	struct test_seen seen = {.state = TEST_FAILED};
	const char *folder = folder_of(go, package);
	struct buf words, name, select, file;
	struct str found;

	buf_init(&words, 2 * TEST_TEXT_MAX);
	buf_init(&name, NAME_MAX_BYTES);
	buf_init(&select, NAME_MAX_BYTES);
	buf_init(&file, PATH_MAX);
	if (go->report->count < TEST_TEXTS_MAX)
		add_words(go, package, test, &words);
	(void)buf_addf(&name, "%s%s%s", package, test[0] != '\0' ? "." : "", test);
	if (test[0] != '\0')
		(void)buf_addf(&select, "%s %s", package, test);
	else if (go->report->count < TEST_TEXTS_MAX)
		(void)buf_addstr(&words, str_part(go->error, 0, TEST_TEXT_MAX));
	if (report_place_find(buf_str(&words), go->report->folder, &found, &seen.line)) {
		/* The files' names are relative to the package's folder. */
		if (folder != NULL && folder[0] != '\0' &&
		    memchr(found.data, '/', found.size) == NULL)
			(void)buf_addf(&file, "%s/", folder);
		(void)buf_addstr(&file, found);
	}
	seen.name = buf_str(&name);
	seen.select = buf_str(&select);
	test_report_add(go->report, &seen);
	if (go->report->count > 0 && file.size > 0 &&
	    go->report->failures[go->report->count - 1].line == 0)
		test_report_place(go->report, &go->report->failures[go->report->count - 1],
				  buf_str(&file), seen.line);
	if (go->report->count > 0)
		test_report_add_text(go->report,
				     &go->report->failures[go->report->count - 1],
				     buf_str(&words));
	buf_fini(&words);
	buf_fini(&name);
	buf_fini(&select);
	buf_fini(&file);
}

static void end_test(struct go *go, const char *package, const char *test,
		     enum test_state state)
{
	struct buf key;
	bool parent;

	buf_init(&key, NAME_MAX_BYTES);
	(void)buf_addf(&key, "%s %s", package, test);
	/* The parts of the test were counted; it fails because one of them failed. */
	parent = is_known(go, key.data);
	if (state == TEST_FAILED)
		add_known(go, package);
	if (!parent && state == TEST_FAILED) {
		add_failure(go, package, test);
	} else if (!parent) {
		buf_clear(&key);
		(void)buf_addf(&key, "%s.%s", package, test);
		test_report_add(go->report, &(struct test_seen){.state = state,
								.name = buf_str(&key)});
	}
	buf_fini(&key);
}

static void take_event(struct go *go, const struct value *event)
{
	const char *action = value_text(value_member(event, "Action"));
	const char *package = value_text(value_member(event, "Package"));
	const char *test = value_text(value_member(event, "Test"));
	enum test_state state = TEST_PASSED;

	if (action == NULL || package == NULL)
		return;
	if (test != NULL)
		add_parents(go, package, test);
	if (strcmp(action, "fail") == 0)
		state = TEST_FAILED;
	else if (strcmp(action, "skip") == 0)
		state = TEST_SKIPPED;
	else if (strcmp(action, "pass") != 0)
		return;
	if (test != NULL) {
		end_test(go, package, test, state);
		return;
	}
	/* The package was not built, or ended before its tests did. */
	if (state == TEST_FAILED && !is_known(go, package))
		add_failure(go, package, "");
}

/* "FAIL\texample.org/a [build failed]" is no event when Go is older than 1.24. */
static void take_line(struct go *go, struct str line)
{
	const char *package;
	struct str word;

	if (!str_starts(line, STR("FAIL\t")) || !str_ends(line, STR(" failed]")))
		return;
	line = str_part(line, 5, SIZE_MAX);
	if (!str_next_word(&line, &word))
		return;
	package = arena_copy(&go->report->arena, word);
	add_failure(go, package, "");
}

static void go_parse(const struct test_output *output, struct test_report *report)
{
	struct go *go = memory_alloc(sizeof(*go));
	struct str rest = output->out, line;

	*go = (struct go){.report = report,
			  .module = output->module,
			  .text = output->out,
			  .error = output->error};
	while (str_next_line(&rest, &line)) {
		auto_value struct value *event = NULL;

		if (str_starts(line, STR("{")) && value_parse(line, 0, &event, NULL))
			take_event(go, event);
		else
			take_line(go, line);
	}
	free(go);
}

static const char *go_detect(const struct test_project *project)
{
	return test_project_first(project, "go.mod go.work");
}

static const char *read_module(const struct test_project *project)
{
	struct str text = test_project_read(project, "go.mod"), line, word;

	while (str_next_line(&text, &line)) {
		if (str_next_word(&line, &word) && str_is(word, "module") &&
		    str_next_word(&line, &word))
			return arena_copy(project->arena, word);
	}
	return NULL;
}

/* Add the failed tests, without their parts: first each package once, then the names. */
static void add_again(const struct test_request *request, struct test_plan *plan)
{
	const struct test_report *again = request->again;
	struct buf names;

	buf_init(&names, 1 << 20);
	for (size_t i = 0; i < again->count; i++) {
		const char *select = again->failures[i].select;
		const char *name = select != NULL ? strchr(select, ' ') : NULL;

		if (name == NULL)
			continue;
		(void)buf_addf(&names, "%s", names.size > 0 ? "|" : "^(?:");
		add_escaped(str_part(str_of(name + 1), 0, strcspn(name + 1, "/")), &names);
	}
	(void)buf_adds(&names, ")$");
	plan_add(request, plan, "-count=1");
	plan_add(request, plan, "-run=%s", names.data);
	for (size_t i = 0; i < again->count; i++) {
		const char *select = again->failures[i].select;
		size_t size = select != NULL ? strcspn(select, " ") : 0;
		bool known = size == 0;

		for (size_t j = 0; j < i && !known; j++)
			known = again->failures[j].select != NULL &&
				strncmp(again->failures[j].select, select, size + 1) == 0;
		if (!known)
			plan_add(request, plan, "%.*s", (int)size, select);
	}
	buf_fini(&names);
}

/* Add the package of FILE, which is its folder. */
static void add_package(const struct test_request *request, struct test_plan *plan)
{
	const char *file = request->file;
	size_t size = strlen(file);

	if (!request->file_is_folder)
		size = (size_t)(path_base_name(file) - file);
	while (size > 0 && file[size - 1] == '/')
		size--;
	if (size == 0)
		plan_add(request, plan, ".");
	else
		plan_add(request, plan, "./%.*s%s", (int)size, file,
			 request->file_is_folder ? "/..." : "");
}

static bool go_plan(const struct test_request *request, struct test_plan *plan,
		    struct buf *sentence)
{
	const char *suite = request->suite;

	if (suite != NULL && request->file != NULL) {
		(void)buf_adds(sentence, "go test takes either `file` or `suite` (a package "
					 "like ./text or ./...), not both.");
		return false;
	}
	plan->module = read_module(request->project);
	plan_step(request, plan, "go");
	plan_add(request, plan, "test");
	plan_add(request, plan, "-json");
	if (request->again != NULL) {
		add_again(request, plan);
		return true;
	}
	if (request->filter != NULL)
		plan_add(request, plan, "-run=%s", request->filter);
	if (request->file != NULL)
		add_package(request, plan);
	else if (suite != NULL)
		plan_add(request, plan, "%s", suite);
	else
		plan_add(request, plan, "./...");
	return true;
}

const struct test_runner go_runner = {
	.name = "go",
	.needs = "go.mod",
	.missing = "install Go, or Debian's package golang-go",
	.files = "*_test.go",
	.detect = go_detect,
	.plan = go_plan,
	.parse = go_parse,
};

/* The test runners of JavaScript: node --test, jest, vitest and mocha. */

#define JS_TEST_FILES                                                                \
	"*.test.js *.test.mjs *.test.cjs *.test.ts *.test.tsx *.test.jsx *.spec.js " \
	"*.spec.mjs *.spec.ts *.spec.tsx *_test.js *_test.mjs *-test.js *-test.mjs test-*.js"

enum {
	/* As a tree in memory the JSON needs many times this size. */
	JSON_MAX = 6 << 20,
};

/* Append the reason why the test or file ONE failed. */
static void add_messages(const struct value *one, struct buf *words)
{
	const struct value *messages = value_member(one, "failureMessages");

	for (size_t i = 0; i < value_count(messages); i++) {
		(void)buf_addstr(words, value_str(value_item(messages, i)));
		(void)buf_end_line(words);
	}
}

static void add_assertion(const struct value *one, struct str file,
			  struct test_report *report)
{
	struct str status = value_str(value_member(one, "status"));
	struct str name = value_str(value_member(one, "fullName"));
	struct test_seen seen = {
		.state = TEST_SKIPPED,
		.name = name.size > 0 ? name : value_str(value_member(one, "title")),
	};
	struct buf words;

	buf_init(&words, TEST_TEXT_MAX);
	seen.state = str_is(status, "passed")   ? TEST_PASSED
		     : str_is(status, "failed") ? TEST_FAILED
						: TEST_SKIPPED;
	if (seen.state == TEST_FAILED) {
		add_messages(one, &words);
		seen.text = buf_str(&words);
		seen.file = file;
		seen.line = (uint64_t)value_integer(
			value_member(value_member(one, "location"), "line"));
	}
	test_report_add(report, &seen);
	buf_fini(&words);
}

static void add_unloaded(const struct value *file, struct str name,
			 struct test_report *report)
{
	const char *shown = value_text(value_member(file, "name"));

	if (shown != NULL && report->folder != NULL)
		shown = path_relative(shown, report->folder);
	test_report_add(report, &(struct test_seen){
					.state = TEST_FAILED,
					.name = str_of(shown),
					.file = name,
					.text = value_str(value_member(file, "message")),
				});
}

/* Add one file and its tests. */
static void add_file(const struct value *file, struct test_report *report)
{
	const struct value *list = value_member(file, "assertionResults");
	struct str name = value_str(value_member(file, "name"));
	bool failed = str_is(value_str(value_member(file, "status")), "failed");

	for (size_t i = 0; i < value_count(list); i++)
		add_assertion(value_item(list, i), name, report);
	/* The file could not be loaded. */
	if (failed && value_count(list) == 0)
		add_unloaded(file, name, report);
}

/* The JSON of jest; vitest writes the same form. */
static void parse_jest(const struct test_output *output, struct test_report *report)
{
	auto_value struct value *whole = NULL;
	const struct value *files;

	if (output->report.size > JSON_MAX || !value_parse(output->report, 0, &whole, NULL))
		return;
	files = value_member(whole, "testResults");
	for (size_t i = 0; i < value_count(files); i++)
		add_file(value_item(files, i), report);
}

/* One list of mocha's JSON, of tests that all ended in STATE. */
static void add_mocha(const struct value *list, enum test_state state,
		      struct test_report *report)
{
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *one = value_item(list, i);
		const struct value *error = value_member(one, "err");
		struct str name = value_str(value_member(one, "fullTitle"));
		struct str stack = value_str(value_member(error, "stack"));
		struct test_seen seen = {.state = state, .name = name};

		if (state == TEST_FAILED) {
			/* The stack begins with the message, and names the line. */
			seen.text = stack.size > 0
					    ? stack
					    : value_str(value_member(error, "message"));
			/* A hook is no test. It runs with the tests of its file. */
			if (str_find(name, STR("\" hook"), 0) == (size_t)-1)
				seen.select = name;
			if (!report_place_find(seen.text, report->folder, &seen.file,
					       &seen.line))
				seen.file = value_str(value_member(one, "file"));
		}
		test_report_add(report, &seen);
	}
}

/* The JSON of mocha. Versions before 9.2 print it behind the output of the tests. */
static void parse_mocha(const struct test_output *output, struct test_report *report)
{
	auto_value struct value *whole = NULL;
	struct str text = output->report.size > 0 ? output->report : output->out;
	const size_t at = str_find(text, STR("{\n  \"stats\": {"), 0);

	if (at == (size_t)-1)
		return;
	text = str_part(text, at, text.size);
	if (text.size > JSON_MAX || !value_parse(text, 0, &whole, NULL))
		return;
	add_mocha(value_member(whole, "passes"), TEST_PASSED, report);
	add_mocha(value_member(whole, "failures"), TEST_FAILED, report);
	add_mocha(value_member(whole, "pending"), TEST_SKIPPED, report);
}

/* Does package.json name WORD, as a dependency or as the program of a script? */
static bool package_names(const struct test_project *project, const char *word)
{
	static const char *const kinds[] = {"dependencies", "devDependencies",
					    "optionalDependencies"};
	struct str text = test_project_read(project, "package.json");
	auto_value struct value *package = NULL;
	struct str script;

	if (text.size == 0 || !value_parse(text, 0, &package, NULL))
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (value_member(value_member(package, kinds[i]), word) != NULL)
			return true;
	}
	script = value_str(value_member(value_member(package, "scripts"), "test"));
	return str_find(script, str_of(word), 0) != (size_t)-1;
}

static const char *jest_detect(const struct test_project *project)
{
	const char *name =
		test_project_first(project,
				   "jest.config.js jest.config.mjs jest.config.cjs jest.config.ts "
				   "jest.config.json");

	if (name == NULL && package_names(project, "jest"))
		name = "package.json";
	return name;
}

static const char *vitest_detect(const struct test_project *project)
{
	const char *name =
		test_project_first(project,
				   "vitest.config.js vitest.config.mjs vitest.config.ts "
				   "vitest.config.mts vitest.workspace.ts");

	if (name == NULL && package_names(project, "vitest"))
		name = "package.json";
	return name;
}

static const char *mocha_detect(const struct test_project *project)
{
	const char *name =
		test_project_first(project, ".mocharc.js .mocharc.cjs .mocharc.mjs "
					    ".mocharc.yaml .mocharc.yml .mocharc.json "
					    ".mocharc.jsonc");

	if (name == NULL && package_names(project, "mocha"))
		name = "package.json";
	return name;
}

static const char *node_detect(const struct test_project *project)
{
	const char *name;

	if (jest_detect(project) != NULL || vitest_detect(project) != NULL ||
	    mocha_detect(project) != NULL)
		return NULL;
	if (package_names(project, "node --test"))
		return "package.json";
	name = test_project_fits(project, "test", JS_TEST_FILES);
	return name != NULL ? name : test_project_fits(project, ".", JS_TEST_FILES);
}

static bool node_plan(const struct test_request *request, struct test_plan *plan,
		      struct buf *sentence)
{
	(void)sentence;
	plan_step(request, plan, "node");
	plan_add(request, plan, "--test");
	plan_add(request, plan, "--test-reporter=tap");
	if (request->again != NULL) {
		plan_files(request, plan);
		return true;
	}
	if (request->filter != NULL)
		plan_add(request, plan, "--test-name-pattern=%s", request->filter);
	if (request->file != NULL)
		plan_add(request, plan, "%s", request->file);
	return true;
}

static bool jest_plan(const struct test_request *request, struct test_plan *plan,
		      struct buf *sentence)
{
	(void)sentence;
	plan_step(request, plan, "node_modules/.bin/jest");
	plan_add(request, plan, "--ci");
	plan_add(request, plan, "--json");
	plan_add(request, plan, "--outputFile=%s", request->report);
	plan->report = request->report;
	if (request->suite != NULL) {
		plan_add(request, plan, "--selectProjects");
		plan_add(request, plan, "%s", request->suite);
	}
	if (request->again == NULL && request->filter != NULL)
		plan_add(request, plan, "--testNamePattern=%s", request->filter);
	/* Jest takes all words behind this option for files. */
	if (request->again != NULL || (request->file != NULL && !request->file_is_folder))
		plan_add(request, plan, "--runTestsByPath");
	if (request->again != NULL)
		plan_files(request, plan);
	else if (request->file != NULL)
		plan_add(request, plan, "%s", request->file);
	return true;
}

static bool vitest_plan(const struct test_request *request, struct test_plan *plan,
			struct buf *sentence)
{
	(void)sentence;
	plan_step(request, plan, "node_modules/.bin/vitest");
	plan_add(request, plan, "run");
	plan_add(request, plan, "--reporter=default");
	plan_add(request, plan, "--reporter=json");
	plan_add(request, plan, "--outputFile.json=%s", request->report);
	plan->report = request->report;
	if (request->suite != NULL)
		plan_add(request, plan, "--project=%s", request->suite);
	if (request->again != NULL) {
		plan_files(request, plan);
		return true;
	}
	if (request->filter != NULL)
		plan_add(request, plan, "--testNamePattern=%s", request->filter);
	if (request->file != NULL)
		plan_add(request, plan, "%s", request->file);
	return true;
}

static bool mocha_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	(void)sentence;
	plan_step(request, plan, "node_modules/.bin/mocha");
	plan_add(request, plan, "--reporter=json");
	plan_add(request, plan, "--reporter-option=output=%s", request->report);
	plan->report = request->report;
	/*
	 * mocha would add files to those of the project's settings, but names are exact.
	 */
	if (request->again != NULL) {
		plan_add(request, plan, "--grep=%s", plan_names(request, "^(?:", ")$"));
		return true;
	}
	if (request->filter != NULL)
		plan_add(request, plan, "--grep=%s", request->filter);
	if (request->file != NULL)
		plan_add(request, plan, "%s", request->file);
	return true;
}

const struct test_runner node_runner = {
	.name = "node",
	.needs = "package.json whose test script is node --test, or files like test/a.test.js",
	.missing = "install Node.js 18 or newer, or Debian's package nodejs",
	.files = JS_TEST_FILES,
	.no_folder = "node --test takes one file here; without `file` it finds all",
	.no_suite = "node --test has no suites: use `filter` with the suite's name",
	.detect = node_detect,
	.plan = node_plan,
	.parse = report_parse_tap,
};

const struct test_runner jest_runner = {
	.name = "jest",
	.needs = "package.json that needs jest",
	.missing = "npm ci in the project's folder brings it",
	.files = JS_TEST_FILES,
	.detect = jest_detect,
	.plan = jest_plan,
	.parse = parse_jest,
};

const struct test_runner vitest_runner = {
	.name = "vitest",
	.needs = "package.json that needs vitest",
	.missing = "npm ci in the project's folder brings it",
	.files = JS_TEST_FILES,
	.detect = vitest_detect,
	.plan = vitest_plan,
	.parse = parse_jest,
};

const struct test_runner mocha_runner = {
	.name = "mocha",
	.needs = ".mocharc.* or package.json that needs mocha",
	.missing = "npm ci in the project's folder brings it",
	.files = JS_TEST_FILES,
	.no_suite = "mocha has no suites: use `filter` with the suite's name",
	.detect = mocha_detect,
	.plan = mocha_plan,
	.parse = parse_mocha,
};

/* prove, for files in any language that print TAP. */

static const char *prove_detect(const struct test_project *project)
{
	const char *name = test_project_fits(project, "t", "*.t");

	return name != NULL ? name : test_project_first(project, ".proverc");
}

static bool prove_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	const struct test_report *again = request->again;

	(void)sentence;
	plan_step(request, plan, "prove");
	plan_add(request, plan, "--merge");
	plan_add(request, plan, "--nocolor");
	plan_add(request, plan, "-l");
	plan_add(request, plan, "-r");
	plan_add(request, plan, "-v");
	for (size_t i = 0; again != NULL && i < again->count; i++) {
		const char *file = again->failures[i].select;
		bool known = file == NULL;

		for (size_t j = 0; j < i && !known; j++)
			known = again->failures[j].select != NULL &&
				strcmp(again->failures[j].select, file) == 0;
		if (!known)
			plan_add(request, plan, "%s", file);
	}
	if (again == NULL && request->file != NULL)
		plan_add(request, plan, "%s", request->file);
	return true;
}

const struct test_runner prove_runner = {
	.name = "prove",
	.needs = "t/*.t",
	.missing = "Debian's package perl has it",
	.files = "*.t",
	.no_filter = "prove runs whole files: name one with `file`",
	.no_suite = "prove has no suites: name a folder with `file`",
	.detect = prove_detect,
	.plan = prove_plan,
	.parse = report_parse_prove,
};

/* phpunit. */

#define SETTINGS "phpunit.xml phpunit.dist.xml phpunit.xml.dist"

static const char *phpunit_detect(const struct test_project *project)
{
	return test_project_first(project, SETTINGS " vendor/bin/phpunit");
}

/* The folders and files of the suites in its settings. */
static bool phpunit_is_root(const struct test_project *project, const char *file)
{
	const char *name = test_project_first(project, SETTINGS);
	struct xml xml = {.rest = name != NULL ? test_project_read(project, name) : STR("")};
	bool inside = false, found = false;
	struct buf text, normal, own;
	enum xml_event event;

	buf_init(&text, PATH_MAX);
	buf_init(&normal, PATH_MAX);
	buf_init(&own, PATH_MAX);
	(void)path_normal("/", file, &own);
	while (!found && (event = xml_next(&xml)) != XML_END) {
		if (event == XML_TEXT && inside) {
			buf_clear(&text);
			buf_clear(&normal);
			xml_add_text(&xml, &text);
			const char *entry =
				arena_copy(project->arena, str_trim(buf_str(&text)));
			found = path_normal("/", entry, &normal) && normal.size > 1 &&
				path_within(own.data, normal.data);
		} else if (event != XML_TEXT) {
			inside = event == XML_OPEN && (str_is(xml.name, "directory") ||
						       str_is(xml.name, "file"));
		}
		/* The elements after the suites name sources, not tests. */
		if (event == XML_CLOSE && str_is(xml.name, "testsuites"))
			break;
	}
	buf_fini(&text);
	buf_fini(&normal);
	buf_fini(&own);
	return found;
}

static bool phpunit_plan(const struct test_request *request, struct test_plan *plan,
			 struct buf *sentence)
{
	(void)sentence;
	if (test_project_has(request->project, "vendor/bin/phpunit")) {
		plan_step(request, plan, "php");
		plan_add(request, plan, "vendor/bin/phpunit");
	} else {
		plan_step(request, plan, "phpunit");
	}
	plan_add(request, plan, "--colors=never");
	plan_add(request, plan, "--do-not-cache-result");
	plan_add(request, plan, "--log-junit=%s", request->report);
	/*
	 * The report is written only after all tests; this file is written during the
	 * run.
	 */
	plan_add(request, plan, "--log-teamcity=%s", request->progress);
	if (request->again != NULL)
		plan_add(request, plan, "--filter=%s", plan_names(request, "/^(?:", ")$/"));
	else if (request->filter != NULL)
		plan_add(request, plan, "--filter=%s", request->filter);
	if (request->suite != NULL)
		plan_add(request, plan, "--testsuite=%s", request->suite);
	if (request->file != NULL)
		plan_add(request, plan, "%s", request->file);
	plan->report = request->report;
	plan->progress = request->progress;
	return true;
}

const struct test_runner phpunit_runner = {
	.name = "phpunit",
	.needs = "phpunit.xml or vendor/bin/phpunit",
	.missing = "composer install brings the project's own, Debian's package phpunit the system's",
	.files = "*Test.php *.phpt",
	.detect = phpunit_detect,
	.is_root = phpunit_is_root,
	.plan = phpunit_plan,
	.parse = report_parse_phpunit,
};

/* pytest. */

/* The files with settings for tests, and the section that shows such settings. */
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

#define PYTHON_TEST_FILES "test_*.py *_test.py"

/* A folder with one of these files is a project with tests of its own. */
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

/* The file by which a project says that its tests are pytest's. */
static const char *find_pytest(const struct test_project *project)
{
	const char *name = NULL;

	(void)find_settings(project, &name);
	return name != NULL ? name
			    : test_project_first(project, "conftest.py tests/conftest.py "
							  "test/conftest.py");
}

/* Projects in other languages have scripts in Python beside their tests. */
static bool pytest_is_guess(const struct test_project *project)
{
	return find_pytest(project) == NULL &&
	       test_project_first(project, "pyproject.toml setup.py setup.cfg tox.ini "
					   "requirements.txt Pipfile") == NULL;
}

static const char *pytest_detect(const struct test_project *project)
{
	const char *name = find_pytest(project);

	if (name == NULL)
		name = test_project_fits(project, "tests", PYTHON_TEST_FILES);
	if (name == NULL)
		name = test_project_fits(project, "test", PYTHON_TEST_FILES);
	if (name == NULL)
		name = test_project_fits(project, ".", PYTHON_TEST_FILES);
	/* A package with its tests inside, which pytest finds by itself. */
	if (name == NULL)
		name = test_project_fits_below(project, "tests", PYTHON_TEST_FILES,
					       OWN_PROJECT);
	return name != NULL ? name
			    : test_project_fits_below(project, "test", PYTHON_TEST_FILES,
						      OWN_PROJECT);
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

		/* A line without indentation begins another setting. */
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

	plan_step(request, plan, own != NULL ? own : "pytest");
}

static bool pytest_plan(const struct test_request *request, struct test_plan *plan,
			struct buf *sentence)
{
	(void)sentence;
	add_program(request, plan);
	plan_add(request, plan, "--color=no");
	plan_add(request, plan, "--junitxml=%s", request->report);
	/* The newer form of JUnit XML has no file names. */
	plan_add(request, plan, "-o");
	plan_add(request, plan, "junit_family=xunit1");
	if (!project_is_writable(request->project)) {
		plan_add(request, plan, "-p");
		plan_add(request, plan, "no:cacheprovider");
		plan->environment = "PYTHONDONTWRITEBYTECODE=1";
	}
	plan->report = request->report;
	if (request->again != NULL) {
		for (size_t i = 0; i < request->again->count; i++) {
			const char *node = request->again->failures[i].select;

			if (node != NULL)
				plan_add(request, plan, "%s", node);
		}
		return true;
	}
	if (request->filter != NULL) {
		plan_add(request, plan, "-k");
		plan_add(request, plan, "%s", request->filter);
	}
	if (request->suite != NULL) {
		plan_add(request, plan, "-m");
		plan_add(request, plan, "%s", request->suite);
	}
	if (request->file != NULL)
		plan_add(request, plan, "%s", request->file);
	return true;
}

const struct test_runner pytest_runner = {
	.name = "pytest",
	.needs = "pytest.ini, conftest.py or files like tests/test_a.py or pkg/tests/test_a.py",
	.missing = "install it in the project's .venv, or Debian's package python3-pytest",
	.files = PYTHON_TEST_FILES,
	.detect = pytest_detect,
	.is_guess = pytest_is_guess,
	.called_by = "pytest unittest",
	.is_root = pytest_is_root,
	.plan = pytest_plan,
	.parse = report_parse_pytest,
};

/* cargo test. */

static void cargo_parse(const struct test_output *output, struct test_report *report)
{
	report_cargo_text(output->out, STR(""), report);
}

static const char *cargo_detect(const struct test_project *project)
{
	return test_project_first(project, "Cargo.toml");
}

/* src/a/b.rs has the tests a::b::…, and tests/x.rs is a program of its own. */
static bool add_module(const struct test_request *request, struct test_plan *plan,
		       struct buf *module, struct buf *sentence)
{
	struct str file = str_of(request->file), rest;

	if (!str_ends(file, STR(".rs"))) {
		(void)buf_adds(sentence, "cargo test takes one source file, like "
					 "tests/NAME.rs or src/NAME.rs.");
		return false;
	}
	file.size -= 3;
	if (str_starts(file, STR("tests/"))) {
		rest = str_part(file, 6, SIZE_MAX);
		rest = str_part(rest, 0, str_find(rest, STR("/"), 0));
		plan_add(request, plan, "--test=%.*s", (int)rest.size, rest.data);
		return true;
	}
	if (!str_starts(file, STR("src/"))) {
		(void)buf_adds(sentence, "Only files below tests/ and src/ hold tests for "
					 "cargo; name another by `filter`.");
		return false;
	}
	rest = str_part(file, 4, SIZE_MAX);
	if (str_is(rest, "main")) {
		plan_add(request, plan, "--bins");
		return true;
	}
	plan_add(request, plan, "--lib");
	if (str_ends(rest, STR("/mod")))
		rest.size -= 4;
	if (!str_is(rest, "lib")) {
		for (size_t i = 0; i < rest.size; i++)
			(void)buf_adds(module, rest.data[i] == '/'
						       ? "::"
						       : (char[]){rest.data[i], 0});
		(void)buf_adds(module, "::");
	}
	return true;
}

static bool cargo_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	const struct test_report *again = request->again;
	struct buf module;
	bool ok = true;

	buf_init(&module, PATH_MAX);
	plan_step(request, plan, "cargo");
	plan_add(request, plan, "test");
	plan_add(request, plan, "--no-fail-fast");
	plan_add(request, plan, "--color=never");
	if (!project_is_writable(request->project))
		plan_add(request, plan, "--target-dir=%s",
			 project_build(request->project, "cargo"));
	if (request->suite != NULL)
		plan_add(request, plan, "--test=%s", request->suite);
	if (request->file != NULL)
		ok = add_module(request, plan, &module, sentence);
	if (ok && module.size > 0 && request->filter != NULL) {
		(void)buf_addf(sentence,
			       "cargo takes one filter, and the file makes it %s: "
			       "leave `file` out, or `filter`.",
			       module.data);
		ok = false;
	}
	if (again == NULL && (module.size > 0 || request->filter != NULL))
		plan_add(request, plan, "%s",
			 module.size > 0 ? module.data : request->filter);
	if (again != NULL) {
		plan_add(request, plan, "--");
		plan_add(request, plan, "--exact");
		for (size_t i = 0; i < again->count; i++) {
			if (again->failures[i].select != NULL)
				plan_add(request, plan, "%s", again->failures[i].select);
		}
	}
	buf_fini(&module);
	return ok;
}

const struct test_runner cargo_runner = {
	.name = "cargo",
	.needs = "Cargo.toml",
	.missing = "install Rust with rustup, or Debian's package cargo",
	.files = "*.rs",
	.no_folder = "cargo test takes one file, or `filter` with a module like text::",
	.detect = cargo_detect,
	.plan = cargo_plan,
	.parse = cargo_parse,
};
