/*
 * junit: the JUnit XML of phpunit, pytest, ctest and meson, and of programs that print
 * it. The output of a test of ctest or meson is read once more, because such a test
 * usually is a program of many tests.
 */

#include "tools/tests/junit.h"

#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "tools/tests/report.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	VALUE_MAX = 4096,
	TEXT_MAX = 256 << 10, /* the output of one test */
};

enum style { PHPUNIT, PYTEST, CTEST, MESON, PRINTED };

enum part { PART_NONE, PART_FAILURE, PART_OUT, PART_ERROR };

struct junit {
	enum style style;
	struct str group;
	struct test_report *report;
	struct xml xml;
	bool in_case;
	enum part part;
	enum test_state state;
	struct buf suite, name, class, file, message, value;
	struct buf failure, out, error;
	uint64_t line;
	size_t suite_first;   /* the number of failures when the suite began */
	struct buf suite_out; /* the output of the suite itself (meson's TAP) */
};

static void junit_init(struct junit *junit, enum style style, struct str text,
		       struct test_report *report)
{
	*junit = (struct junit){.style = style, .report = report, .xml.rest = text};
	buf_init(&junit->suite, VALUE_MAX);
	buf_init(&junit->name, VALUE_MAX);
	buf_init(&junit->class, VALUE_MAX);
	buf_init(&junit->file, VALUE_MAX);
	buf_init(&junit->message, TEXT_MAX);
	buf_init(&junit->value, VALUE_MAX);
	buf_init(&junit->failure, TEXT_MAX);
	buf_init(&junit->out, TEXT_MAX);
	buf_init(&junit->error, TEXT_MAX);
	buf_init(&junit->suite_out, TEXT_MAX);
}

static void junit_fini(struct junit *junit)
{
	struct buf *all[] = {
		&junit->suite,   &junit->name,      &junit->class,   &junit->file,
		&junit->message, &junit->value,     &junit->failure, &junit->out,
		&junit->error,   &junit->suite_out,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		buf_fini(all[i]);
}

static void attribute(struct junit *junit, const char *name, struct buf *out)
{
	if (!xml_attribute(&junit->xml, name, out))
		buf_clear(out);
}

static void begin_case(struct junit *junit)
{
	junit->in_case = true;
	junit->part = PART_NONE;
	junit->state = TEST_PASSED;
	buf_clear(&junit->message);
	buf_clear(&junit->failure);
	buf_clear(&junit->out);
	buf_clear(&junit->error);
	attribute(junit, "name", &junit->name);
	attribute(junit, junit->style == PHPUNIT ? "class" : "classname", &junit->class);
	attribute(junit, "file", &junit->file);
	attribute(junit, "line", &junit->value);
	junit->line = strtoul(junit->value.data, NULL, 10);
	/* pytest counts lines from 0. */
	junit->line += junit->style == PYTEST && junit->value.size > 0;
}

static void open_element(struct junit *junit)
{
	struct str name = junit->xml.name;

	if (str_is(name, "testsuite")) {
		attribute(junit, "name", &junit->suite);
		junit->suite_first = junit->report->count;
		buf_clear(&junit->suite_out);
	} else if (str_is(name, "testcase")) {
		begin_case(junit);
	} else if (str_is(name, "failure") || str_is(name, "error")) {
		junit->state = TEST_FAILED;
		junit->part = PART_FAILURE;
		attribute(junit, "message", &junit->message);
	} else if (str_is(name, "skipped")) {
		junit->state = TEST_SKIPPED;
		junit->part = PART_NONE;
	} else if (str_is(name, "system-out")) {
		junit->part = PART_OUT;
	} else if (str_is(name, "system-err")) {
		junit->part = PART_ERROR;
	}
}

/*
 * Make pytest's own name, "tests/test_a.py::TestC::test_x", of "tests.test_a.TestC" and
 * the file.
 */
static void pytest_node(struct junit *junit, struct buf *node)
{
	struct str class = buf_str(&junit->class);
	struct str module = buf_str(&junit->file);

	(void)buf_addstr(node, module);
	if (str_ends(module, STR(".py")))
		module.size -= 3;
	if (class.size > module.size) {
		struct str rest = str_part(class, module.size + 1, SIZE_MAX);

		(void)buf_adds(node, "::");
		for (size_t i = 0; i < rest.size; i++) {
			if (rest.data[i] == '.')
				(void)buf_adds(node, "::");
			else
				(void)buf_addc(node, rest.data[i]);
		}
	}
	(void)buf_addf(node, "::%s", junit->name.data);
}

static struct str after_slash(struct str text)
{
	for (size_t at; (at = str_find(text, STR(" / "), 0)) != (size_t)-1;)
		text = str_part(text, at + 3, SIZE_MAX);
	return text;
}

/* The names of this test: for people, and for its runner. */
static void name_case(struct junit *junit, struct buf *name, struct buf *select)
{
	struct str suite = buf_str(&junit->suite);

	switch (junit->style) {
	case PHPUNIT:
		(void)buf_addf(name, "%s::%s", junit->class.data, junit->name.data);
		(void)buf_addstr(select, buf_str(name));
		break;
	case PYTEST:
		pytest_node(junit, name);
		if (junit->file.size > 0)
			(void)buf_addstr(select, buf_str(name));
		break;
	case CTEST:
		(void)buf_addstr(name, buf_str(&junit->name));
		(void)buf_addstr(select, buf_str(name));
		break;
	case MESON:
		/* When a test has several parts, the suite has its name. */
		if (str_find(suite, STR(" / "), 0) == (size_t)-1)
			suite = buf_str(&junit->name);
		else
			(void)buf_addf(name, "%.*s / ", (int)after_slash(suite).size,
				       after_slash(suite).data);
		(void)buf_addstr(name, after_slash(buf_str(&junit->name)));
		(void)buf_addstr(select, after_slash(suite));
		break;
	case PRINTED:
		if (junit->class.size > 0)
			(void)buf_addf(name, "%s.", junit->class.data);
		(void)buf_addstr(name, buf_str(&junit->name));
		break;
	}
}

/* Was the test a program of several tests, by its output? Then add them. */
static bool add_inner(struct junit *junit, struct str name, struct str select,
		      struct str printed)
{
	struct test_report inner;
	bool fits;

	if (junit->style != CTEST && junit->style != MESON)
		return false;
	test_report_init(&inner, NULL, NULL);
	report_any_text(printed, name, select, &inner);
	fits = test_report_total(&inner) > 0 &&
	       (inner.failed > 0) == (junit->state == TEST_FAILED);
	test_report_fini(&inner);
	if (fits)
		report_any_text(printed, name, select, junit->report);
	return fits;
}

static void end_case(struct junit *junit)
{
	struct buf name, select, text;

	junit->in_case = false;
	buf_init(&name, 4 * VALUE_MAX);
	buf_init(&select, 4 * VALUE_MAX);
	buf_init(&text, 3 * TEXT_MAX);
	name_case(junit, &name, &select);
	if (junit->failure.size == 0)
		(void)buf_addstr(&junit->failure, buf_str(&junit->message));
	(void)buf_addstr(&text, buf_str(&junit->failure));
	if (junit->style == CTEST || junit->style == MESON) {
		(void)buf_end_line(&text);
		(void)buf_addstr(&text, buf_str(&junit->out));
		(void)buf_end_line(&text);
		(void)buf_addstr(&text, buf_str(&junit->error));
	}
	if (junit->state == TEST_SKIPPED ||
	    !add_inner(junit, buf_str(&name), buf_str(&select), buf_str(&text))) {
		const struct test_seen seen = {
			.state = junit->state,
			.group = junit->group,
			.name = buf_str(&name),
			.select = buf_str(&select),
			.file = buf_str(&junit->file),
			.line = junit->line,
			.text = str_trim(buf_str(&text)),
		};

		test_report_add(junit->report, &seen);
	}
	buf_fini(&name);
	buf_fini(&select);
	buf_fini(&text);
}

/* Add the words of a suite's failures from its output, which has them in their order. */
static void end_suite(struct junit *junit)
{
	struct test_report *report = junit->report;
	struct test_report inner;

	if (junit->suite_out.size == 0)
		return;
	test_report_init(&inner, NULL, NULL);
	report_tap_text(buf_str(&junit->suite_out), STR(""), &inner);
	for (size_t i = 0; i < inner.count && junit->suite_first + i < report->count &&
			   inner.count == report->count - junit->suite_first;
	     i++)
		test_report_add_text(report, &report->failures[junit->suite_first + i],
				     str_of(inner.failures[i].text));
	test_report_fini(&inner);
	buf_clear(&junit->suite_out);
}

static void add_text(struct junit *junit)
{
	if (junit->part == PART_FAILURE)
		xml_add_text(&junit->xml, &junit->failure);
	else if (junit->part == PART_OUT)
		xml_add_text(&junit->xml, junit->in_case ? &junit->out : &junit->suite_out);
	else if (junit->part == PART_ERROR && junit->in_case)
		xml_add_text(&junit->xml, &junit->error);
}

static void read_elements(struct junit *junit)
{
	enum xml_event event;

	while ((event = xml_next(&junit->xml)) != XML_END) {
		if (event == XML_OPEN)
			open_element(junit);
		else if (event == XML_TEXT)
			add_text(junit);
		else if (str_is(junit->xml.name, "testcase") && junit->in_case)
			end_case(junit);
		else if (str_is(junit->xml.name, "testsuite"))
			end_suite(junit);
		if (event == XML_CLOSE)
			junit->part = PART_NONE;
	}
}

static void parse(enum style style, struct str text, struct str group,
		  struct test_report *report)
{
	struct junit junit;

	junit_init(&junit, style, text, report);
	junit.group = group;
	read_elements(&junit);
	junit_fini(&junit);
}

void report_parse_phpunit(const struct test_output *output, struct test_report *report)
{
	parse(PHPUNIT, output->report, STR(""), report);
	if (test_report_total(report) == 0)
		report_teamcity_text(output->progress, report);
}

void report_parse_pytest(const struct test_output *output, struct test_report *report)
{
	parse(PYTEST, output->report, STR(""), report);
	if (test_report_total(report) == 0)
		report_pytest_text(output->out, report);
}

void report_parse_ctest(const struct test_output *output, struct test_report *report)
{
	parse(CTEST, output->report, STR(""), report);
	if (test_report_total(report) == 0)
		report_lines_text(output->out, STR(""), STR(""), report);
}

void report_parse_meson(const struct test_output *output, struct test_report *report)
{
	parse(MESON, output->report, STR(""), report);
	if (test_report_total(report) == 0)
		report_lines_text(output->out, STR(""), STR(""), report);
}

void report_junit_text(struct str text, struct str group, struct test_report *report)
{
	size_t at = str_find(text, STR("<testsuite"), 0);

	if (at != (size_t)-1)
		parse(PRINTED, str_part(text, at, SIZE_MAX), group, report);
}

enum { ENTITY_MAX = 12, CODE_MAX = 0x10ffff };

/* Skip the rest up to END, and END itself. False: END is missing. */
static bool skip_to(struct xml *xml, struct str end)
{
	size_t at = str_find(xml->rest, end, 0);

	if (at == (size_t)-1)
		return false;
	xml->rest = str_part(xml->rest, at + end.size, SIZE_MAX);
	return true;
}

/* The end of a tag that begins at the rest: ">" outside of quotes. */
static size_t tag_end(struct str text)
{
	char quote = '\0';

	for (size_t at = 0; at < text.size; at++) {
		char c = text.data[at];

		if (quote != '\0')
			quote = c == quote ? '\0' : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '>')
			return at;
	}
	return (size_t)-1;
}

static enum xml_event read_tag(struct xml *xml)
{
	size_t end = tag_end(xml->rest);
	struct str tag;
	size_t size = 0;
	bool closing;

	if (end == (size_t)-1)
		return XML_END;
	tag = str_part(xml->rest, 1, end - 1);
	xml->rest = str_part(xml->rest, end + 1, SIZE_MAX);
	closing = str_starts(tag, STR("/"));
	xml->closes = !closing && str_ends(tag, STR("/"));
	if (closing)
		tag = str_part(tag, 1, SIZE_MAX);
	if (xml->closes)
		tag.size--;
	while (size < tag.size && !isspace((unsigned char)tag.data[size]))
		size++;
	xml->name = str_part(tag, 0, size);
	xml->attributes = str_part(tag, size, SIZE_MAX);
	return closing ? XML_CLOSE : XML_OPEN;
}

static enum xml_event read_cdata(struct xml *xml)
{
	const struct str begin = STR("<![CDATA["), end = STR("]]>");
	size_t at = str_find(xml->rest, end, begin.size);

	if (at == (size_t)-1)
		return XML_END;
	xml->text = str_part(xml->rest, begin.size, at - begin.size);
	xml->literal = true;
	xml->rest = str_part(xml->rest, at + end.size, SIZE_MAX);
	return XML_TEXT;
}

enum xml_event xml_next(struct xml *xml)
{
	if (xml->closes) {
		xml->closes = false;
		return XML_CLOSE;
	}
	while (xml->rest.size > 0) {
		if (xml->rest.data[0] != '<') {
			size_t at = str_find(xml->rest, STR("<"), 0);

			if (at == (size_t)-1)
				return XML_END;
			xml->text = str_part(xml->rest, 0, at);
			xml->literal = false;
			xml->rest = str_part(xml->rest, at, SIZE_MAX);
			return XML_TEXT;
		}
		if (str_starts(xml->rest, STR("<![CDATA[")))
			return read_cdata(xml);
		if (str_starts(xml->rest, STR("<!--"))) {
			if (!skip_to(xml, STR("-->")))
				return XML_END;
		} else if (str_starts(xml->rest, STR("<?"))) {
			if (!skip_to(xml, STR("?>")))
				return XML_END;
		} else if (str_starts(xml->rest, STR("<!"))) {
			if (!skip_to(xml, STR(">")))
				return XML_END;
		} else {
			return read_tag(xml);
		}
	}
	return XML_END;
}

static void add_code(struct buf *out, uint32_t code)
{
	if (code < 0x80) {
		(void)buf_addc(out, (char)code);
	} else if (code < 0x800) {
		(void)buf_addc(out, (char)(0xc0 | code >> 6));
		(void)buf_addc(out, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		(void)buf_addc(out, (char)(0xe0 | code >> 12));
		(void)buf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		(void)buf_addc(out, (char)(0x80 | (code & 0x3f)));
	} else {
		(void)buf_addc(out, (char)(0xf0 | code >> 18));
		(void)buf_addc(out, (char)(0x80 | (code >> 12 & 0x3f)));
		(void)buf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		(void)buf_addc(out, (char)(0x80 | (code & 0x3f)));
	}
}

/* The character's number for "#10" or "#xa"; 0: there is none. */
static uint32_t code_of(struct str entity)
{
	bool hex = entity.size > 2 && entity.data[1] == 'x';
	uint32_t code = 0;

	for (size_t i = hex ? 2 : 1; i < entity.size; i++) {
		char c = entity.data[i];
		uint32_t digit;

		if (isdigit((unsigned char)c))
			digit = (uint32_t)(c - '0');
		else if (hex && isxdigit((unsigned char)c))
			digit = (uint32_t)(tolower((unsigned char)c) - 'a') + 10;
		else
			return 0;
		code = code * (hex ? 16 : 10) + digit;
		if (code > CODE_MAX)
			return 0;
	}
	return code;
}

/* Append the character that ENTITY (without "&" and ";") means. False: it means none. */
static bool add_entity(struct str entity, struct buf *out)
{
	static const struct {
		const char *name;
		char c;
	} known[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
	uint32_t code;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_is(entity, known[i].name))
			return buf_addc(out, known[i].c);
	}
	code = entity.size > 1 && entity.data[0] == '#' ? code_of(entity) : 0;
	if (code == 0)
		return false;
	add_code(out, code);
	return true;
}

static void decode(struct str raw, struct buf *out)
{
	for (size_t at = 0; at < raw.size;) {
		const char *amp = memchr(raw.data + at, '&', raw.size - at);
		size_t to = amp != NULL ? (size_t)(amp - raw.data) : raw.size;
		size_t end;

		(void)buf_addstr(out, str_part(raw, at, to - at));
		at = to;
		if (at == raw.size)
			break;
		end = str_find(str_part(raw, at, ENTITY_MAX), STR(";"), 0);
		if (end != (size_t)-1 && add_entity(str_part(raw, at + 1, end - 1), out)) {
			at += end + 1;
		} else {
			(void)buf_addc(out, '&');
			at++;
		}
	}
}

void xml_add_text(const struct xml *xml, struct buf *out)
{
	if (xml->literal)
		(void)buf_addstr(out, xml->text);
	else
		decode(xml->text, out);
}

bool xml_attribute(const struct xml *xml, const char *name, struct buf *out)
{
	struct str rest = xml->attributes;

	for (;;) {
		size_t equal, end;
		struct str key;

		rest = str_trim(rest);
		equal = str_find(rest, STR("="), 0);
		if (equal == (size_t)-1)
			return false;
		key = str_trim(str_part(rest, 0, equal));
		rest = str_trim(str_part(rest, equal + 1, SIZE_MAX));
		if (rest.size == 0 || (rest.data[0] != '"' && rest.data[0] != '\''))
			return false;
		end = str_find(rest, (struct str){rest.data, 1}, 1);
		if (end == (size_t)-1)
			return false;
		if (str_is(key, name)) {
			buf_clear(out);
			decode(str_part(rest, 1, end - 1), out);
			return true;
		}
		rest = str_part(rest, end + 1, SIZE_MAX);
	}
}
