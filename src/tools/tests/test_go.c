/* test_go: go test, and the events of its -json. */
#include "base/path.h"
#include "base/value.h"
#include "tools/tests/run_tests.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

enum {
	KNOWN_MAX = 4096, /* tests with parts, and packages, that are known to be such */
	WORDS_MAX = 16 << 10,
	NAME_MAX_BYTES = 2048,
};

struct go {
	struct test_report *report;
	const char *module;
	struct str text;  /* all of it */
	struct str error; /* what the build says */
	/*
	 * In the report's arena: "package test" of a test that has parts, "package" of which a test
	 * has failed. Events of packages that are tested side by side come in any order.
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

/* Everything above PACKAGE's TEST has parts: "A/b/c" makes "A" and "A/b" known. */
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

/* Was it printed by PACKAGE's TEST, or with none by the package or the making of it? */
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

/* Append what the test printed, without the lines that only frame it. */
static void add_words(const struct go *go, const char *package, const char *test,
		      struct buf *words)
{
	struct str rest = go->text, line;

	while (words->size < WORDS_MAX && str_next_line(&rest, &line)) {
		auto_value struct value *event = NULL;
		struct str printed, shown;

		/* Cheaper than to take every line apart. */
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

/* The folder of PACKAGE in the module, "" for its root; NULL when it is none of its. */
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

	buf_init(&words, 2 * WORDS_MAX);
	buf_init(&name, NAME_MAX_BYTES);
	buf_init(&select, NAME_MAX_BYTES);
	buf_init(&file, PATH_MAX);
	if (go->report->count < TEST_TEXTS_MAX)
		add_words(go, package, test, &words);
	(void)buf_addf(&name, "%s%s%s", package, test[0] != '\0' ? "." : "", test);
	if (test[0] != '\0')
		(void)buf_addf(&select, "%s %s", package, test);
	else if (go->report->count < TEST_TEXTS_MAX)
		(void)buf_addstr(&words, str_part(go->error, 0, WORDS_MAX));
	if (test_place_find(buf_str(&words), go->report->folder, &found, &seen.line)) {
		/* Names of files are those in the package's folder. */
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
	/* Its parts have been counted; it fails because one of them did. */
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
	/* It did not build, or ended before its tests did. */
	if (state == TEST_FAILED && !is_known(go, package))
		add_failure(go, package, "");
}

/* "FAIL\texample.org/a [build failed]": no event, where Go is older than 1.24. */
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

/* The tests that failed, without their parts: the packages once, then the names. */
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
		test_escape(str_part(str_of(name + 1), 0, strcspn(name + 1, "/")), &names);
	}
	(void)buf_adds(&names, ")$");
	test_plan_add(request, plan, "-count=1");
	test_plan_add(request, plan, "-run=%s", names.data);
	for (size_t i = 0; i < again->count; i++) {
		const char *select = again->failures[i].select;
		size_t size = select != NULL ? strcspn(select, " ") : 0;
		bool known = size == 0;

		for (size_t j = 0; j < i && !known; j++)
			known = again->failures[j].select != NULL &&
				strncmp(again->failures[j].select, select, size + 1) == 0;
		if (!known)
			test_plan_add(request, plan, "%.*s", (int)size, select);
	}
	buf_fini(&names);
}

/* The package of FILE: its folder. */
static void add_package(const struct test_request *request, struct test_plan *plan)
{
	const char *file = request->file;
	size_t size = strlen(file);

	if (!request->file_is_folder)
		size = (size_t)(path_base_name(file) - file);
	while (size > 0 && file[size - 1] == '/')
		size--;
	if (size == 0)
		test_plan_add(request, plan, ".");
	else
		test_plan_add(request, plan, "./%.*s%s", (int)size, file,
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
	test_plan_step(request, plan, "go");
	test_plan_add(request, plan, "test");
	test_plan_add(request, plan, "-json");
	if (request->again != NULL) {
		add_again(request, plan);
		return true;
	}
	if (request->filter != NULL)
		test_plan_add(request, plan, "-run=%s", request->filter);
	if (request->file != NULL)
		add_package(request, plan);
	else if (suite != NULL)
		test_plan_add(request, plan, "%s", suite);
	else
		test_plan_add(request, plan, "./...");
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
