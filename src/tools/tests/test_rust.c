/* test_rust: cargo test, and the lines of its test programs. */
#include "base/path.h"
#include "tools/tests/report.h"
#include "tools/tests/run_tests.h"

#include <limits.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096 }; /* of a line that are looked at */

/* "---- NAME stdout ----" begins the words of NAME; they end where the next begin. */
static struct str words_of(struct str text, struct str name)
{
	const struct str mark = STR("---- "), tail = STR(" stdout ----");

	for (size_t at = 0; (at = str_find(text, mark, at)) != (size_t)-1; at++) {
		struct str rest = str_part(text, at + mark.size, SIZE_MAX);
		size_t end, next;

		if (!str_starts(rest, name) ||
		    !str_starts(str_part(rest, name.size, SIZE_MAX), tail))
			continue;
		rest = str_part(rest, name.size + tail.size, SIZE_MAX);
		end = str_find(rest, STR("\nfailures:\n"), 0);
		next = str_find(rest, STR("\n---- "), 0);
		if (next < end)
			end = next;
		return str_trim(str_part(rest, 0, end));
	}
	return STR("");
}

/* "test NAME ... ok": the name; empty when it is no such line. RESULT is what follows. */
static struct str test_of(struct str line, struct str *outcome)
{
	const struct str dots = STR(" ... ");
	size_t at = str_find(line, dots, 0);

	if (!str_starts(line, STR("test ")) || at == (size_t)-1)
		return STR("");
	*outcome = str_trim(str_part(line, at + dots.size, SIZE_MAX));
	line = str_part(line, 5, at - 5);
	/* "name - should panic" */
	at = str_find(line, STR(" - should panic"), 0);
	return str_part(line, 0, at);
}

void test_cargo_text(struct str text, struct str group, struct test_report *report)
{
	struct str rest = text, line;

	while (str_next_line(&rest, &line)) {
		struct str outcome = {0};
		struct str name = test_of(str_part(line, 0, LINE_MAX_BYTES), &outcome);
		struct test_seen seen = {.group = group, .name = name, .select = name};

		if (name.size == 0)
			continue;
		if (str_starts(outcome, STR("ok")))
			seen.state = TEST_PASSED;
		else if (str_starts(outcome, STR("ignored")))
			seen.state = TEST_SKIPPED;
		else if (str_starts(outcome, STR("FAILED")))
			seen.state = TEST_FAILED;
		else
			continue;
		if (seen.state == TEST_FAILED && report->count < TEST_TEXTS_MAX)
			seen.text = words_of(rest, name);
		test_report_add(report, &seen);
	}
}

static void cargo_parse(const struct test_output *output, struct test_report *report)
{
	test_cargo_text(output->out, STR(""), report);
}

static const char *cargo_detect(const struct test_project *project)
{
	return test_project_first(project, "Cargo.toml");
}

/* src/a/b.rs holds the tests a::b::…, tests/x.rs is a program of its own. */
static bool add_file(const struct test_request *request, struct test_plan *plan,
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
		test_plan_add(request, plan, "--test=%.*s", (int)rest.size, rest.data);
		return true;
	}
	if (!str_starts(file, STR("src/"))) {
		(void)buf_adds(sentence, "Only files below tests/ and src/ hold tests for "
					 "cargo; name another by `filter`.");
		return false;
	}
	rest = str_part(file, 4, SIZE_MAX);
	if (str_is(rest, "main")) {
		test_plan_add(request, plan, "--bins");
		return true;
	}
	test_plan_add(request, plan, "--lib");
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
	test_plan_step(request, plan, "cargo");
	test_plan_add(request, plan, "test");
	test_plan_add(request, plan, "--no-fail-fast");
	test_plan_add(request, plan, "--color=never");
	if (!test_project_writable(request->project))
		test_plan_add(request, plan, "--target-dir=%s",
			      test_project_build(request->project, "cargo"));
	if (request->suite != NULL)
		test_plan_add(request, plan, "--test=%s", request->suite);
	if (request->file != NULL)
		ok = add_file(request, plan, &module, sentence);
	if (ok && module.size > 0 && request->filter != NULL) {
		(void)buf_addf(sentence,
			       "cargo takes one filter, and the file makes it %s: "
			       "leave `file` out, or `filter`.",
			       module.data);
		ok = false;
	}
	if (again == NULL && (module.size > 0 || request->filter != NULL))
		test_plan_add(request, plan, "%s",
			      module.size > 0 ? module.data : request->filter);
	if (again != NULL) {
		test_plan_add(request, plan, "--");
		test_plan_add(request, plan, "--exact");
		for (size_t i = 0; i < again->count; i++) {
			if (again->failures[i].select != NULL)
				test_plan_add(request, plan, "%s",
					      again->failures[i].select);
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
