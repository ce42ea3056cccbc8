/*
 * suite: the official cases of JSON Schema. Standard input tells what to play, a line each:
 *   document ADDRESS FILE    a schema that references may name
 *   cases NAME FILE          groups of a schema and tests, which must all hold
 *   report NAME FILE         the same, only counted
 * The arguments are the dialect ("draft7", "draft2020-12") and how many cases there must be.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 4 << 20, LINES_MAX = 1 << 20 };

struct suite {
	struct value *documents;
	bool draft_07;
	size_t played, failed; /* of the cases that must hold */
	size_t reported, reported_failed;
};

static struct value *read_value(const char *path)
{
	struct value *value = NULL;
	struct err err = {0};
	struct buf text;

	buf_init(&text, FILE_MAX);
	if (!fd_read_file(path, FILE_MAX, &text, &err) ||
	    !value_parse(buf_str(&text), 0, &value, &err))
		printf("# %s: %s\n", path, err.text);
	buf_fini(&text);
	return value;
}

static const char *text_of(const struct value *object, const char *key)
{
	const char *text = value_text(value_member(object, key));

	return text ? text : "?";
}

static void play_test(struct suite *suite, const char *name, const struct value *group,
		      const struct value *test, bool counts)
{
	const struct validate_options options = {suite->documents, suite->draft_07};
	const struct value *schema = value_member(group, "schema");
	auto_value struct value *before = value_copy(schema);
	struct validate_problem problem = {0};
	bool fits = validate_with(&options, schema, value_member(test, "data"), &problem);
	bool right = fits == value_is_true(value_member(test, "valid")) &&
		     value_equal(before, schema);

	if (!counts) {
		suite->reported++;
		suite->reported_failed += !right;
		return;
	}
	suite->played++;
	suite->failed += !right;
	printf("%sok %zu - %s: %s: %s\n", right ? "" : "not ", suite->played, name,
	       text_of(group, "description"), text_of(test, "description"));
	if (!right && !fits)
		printf("# %s %s\n", problem.pointer, problem.rule);
}

static void play_file(struct suite *suite, const char *name, const char *path, bool counts)
{
	auto_value struct value *groups = read_value(path);

	/* A file that cannot be read is missing from the count. */
	for (size_t i = 0; i < value_count(groups); i++) {
		const struct value *group = value_item(groups, i);
		const struct value *tests = value_member(group, "tests");

		for (size_t j = 0; j < value_count(tests); j++)
			play_test(suite, name, group, value_item(tests, j), counts);
	}
}

static void play_line(struct suite *suite, struct str line)
{
	struct str verb, name;
	auto_free char *key = NULL;
	auto_free char *path = NULL;

	if (!str_next_word(&line, &verb) || !str_next_word(&line, &name))
		return;
	key = memory_copy_str(name);
	path = memory_copy_str(str_trim(line));
	if (str_is(verb, "document")) {
		struct value *document = read_value(path);

		if (document)
			value_set(suite->documents, key, document);
		return;
	}
	play_file(suite, key, path, str_is(verb, "cases"));
}

int main(int argc, char **argv)
{
	struct suite suite = {.documents = value_new_object()};
	size_t wanted = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	struct str rest, line;
	struct err err = {0};
	struct buf lines;

	if (argc != 3)
		return 2;
	suite.draft_07 = strcmp(argv[1], "draft7") == 0;
	buf_init(&lines, LINES_MAX);
	if (!fd_read_all(STDIN_FILENO, &lines, "standard input", &err)) {
		(void)fprintf(stderr, "suite: %s\n", err.text);
		return 1;
	}
	rest = buf_str(&lines);
	while (str_next_line(&rest, &line))
		play_line(&suite, line);
	buf_fini(&lines);
	value_free(suite.documents);
	printf("# optional cases: %zu of %zu hold\n",
	       suite.reported - suite.reported_failed, suite.reported);
	printf("%sok %zu - all %zu cases of %s were played (%zu)\n",
	       suite.played == wanted ? "" : "not ", suite.played + 1, wanted, argv[1],
	       suite.played);
	printf("1..%zu\n", suite.played + 1);
	return suite.failed || suite.played != wanted;
}
