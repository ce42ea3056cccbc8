/* docs/events.md says what the code does: its kinds, an example of each, the words of reasons. */
#include "agent/agent.h"
#include "front/embedded/embedded.h"
#include "tool/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char unknown[] = "unknown"; /* what event_kind_name says of no kind */

static struct str manual(void)
{
	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		if (strcmp(file->name, "docs/events.md") == 0)
			return (struct str){file->data, file->size};
	}
	fail_msg("docs/events.md is not there");
	return STR("");
}

/* From its heading to the next one. */
static struct str section_of(const char *name)
{
	struct str text = manual();
	char heading[64];
	size_t at, end;

	(void)snprintf(heading, sizeof(heading), "\n## `%s`\n", name);
	at = str_find(text, str_of(heading), 0);
	if (at == (size_t)-1)
		fail_msg("docs/events.md has no section of `%s`", name);
	end = str_find(text, STR("\n## "), at + 1);
	return str_part(text, at, end - at);
}

static void check_example(enum event_kind kind, const char *name, struct str section)
{
	size_t at = str_find(section, STR("```json\n"), 0), end;
	auto_value struct value *line = NULL;
	struct event event;
	struct err err = {0};

	if (at == (size_t)-1)
		fail_msg("docs/events.md: `%s` has no example", name);
	at += strlen("```json\n");
	end = str_find(section, STR("\n```"), at);
	if (!event_parse(str_part(section, at, end - at), &line, &event, &err))
		fail_msg("docs/events.md, example of `%s`: %s", name, err.text);
	assert_int_equal(event.kind, kind);
	assert_true(event.wall_ms > 0);
	if ((event.number > 0) != event_is_kept(kind))
		fail_msg("docs/events.md: is `%s` kept or not?", name);
}

static void each_kind_has_its_section_with_an_example(void **state)
{
	struct str text = manual();
	size_t sections = 0, kinds = 0;

	(void)state;
	for (int kind = 1;; kind++) {
		const char *name = event_kind_name((enum event_kind)kind);
		char row[64];

		if (strcmp(name, unknown) == 0)
			break;
		kinds++;
		check_example((enum event_kind)kind, name, section_of(name));
		(void)snprintf(row, sizeof(row), "`%s`", name);
		assert_true(str_find(text, str_of(row), 0) <
			    str_find(text, STR("\n## `"), 0));
	}
	for (size_t at = 0; (at = str_find(text, STR("\n## `"), at)) != (size_t)-1; at++)
		sections++;
	assert_true(kinds > 10);
	assert_int_equal(sections, kinds);
}

static void each_reason_is_named(void **state)
{
	struct str section = section_of("turn_ended");

	(void)state;
	for (int reason = 0; reason <= AGENT_CANCELLED; reason++) {
		char word[64];

		(void)snprintf(word, sizeof(word), "`%s`",
			       agent_reason_name((enum agent_reason)reason));
		if (str_find(section, str_of(word), 0) == (size_t)-1)
			fail_msg("docs/events.md does not name the reason %s", word);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_has_its_section_with_an_example),
		cmocka_unit_test(each_reason_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
