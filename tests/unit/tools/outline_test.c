/* outline: which lines of which files begin something. */
#include "tools/shown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_MAX = 1 << 20 };

/* The outline of TEXT in a file of this NAME; "" when it has none. */
static void outline_of(const char *name, const char *text, struct buf *out)
{
	struct outline *outline = outline_new(name, str_of(text));
	struct str rest = str_of(text), line;
	size_t number = 0;

	while (str_next_line(&rest, &line))
		outline_add(outline, ++number, line);
	(void)outline_print(outline, 60, TEXT_MAX, out);
	outline_free(outline);
}

static void each_language_has_its_words(void **state)
{
	static const struct {
		const char *name, *text, *outline;
	} rows[] = {
		{"a.c",
		 "#include <a.h>\nstruct a {\n\tstruct b *b;\n};\nint one(void);\nstatic int two(int "
		 "a,\n\t\tstruct b *b)\n{\n\tif (a)\n\t\tcall(a);\n\tthree(a);\n}\nint g = f(2);\n",
		 "2\tstruct a {\n6\tstatic int two(int a,\n"},
		{"dir/a.cpp", "class A : public B {\nvoid A::run(int a)\n{\n",
		 "1\tclass A : public B {\n2\tvoid A::run(int a)\n"},
		{"A.java",
		 "import a.b;\npublic class A {\n    private int x = f(3);\n    public void run(int a) "
		 "{\n        call(a);\n        return new B();\n",
		 "2\tpublic class A {\n4\t    public void run(int a) {\n"},
		{"a.py",
		 "import a\nclass A:\n    async def run(self):\n        return 1\n@x\ndef f():\n",
		 "2\tclass A:\n3\t    async def run(self):\n6\tdef f():\n"},
		{"a.ts",
		 "import {a} from 'a';\nexport default class A {\n  run(a: number) {\n    if (a) {\n  "
		 "  for (;;) {\n    }\n  }\nexport const f = async (a) => {\nconst x = 3;\nfunction "
		 "g() {\n",
		 "2\texport default class A {\n3\t  run(a: number) {\n8\texport const f = async (a) => "
		 "{\n10\tfunction g() {\n"},
		{"a.go", "package a\nfunc (s *T) Run() {\ntype T struct {\n\tx int\n",
		 "2\tfunc (s *T) Run() {\n3\ttype T struct {\n"},
		{"a.rs",
		 "use a;\npub(crate) async fn run(a: u8) {\nimpl<T> A for T {\nmacro_rules! m {\n    "
		 "let f = 1;\n",
		 "2\tpub(crate) async fn run(a: u8) {\n3\timpl<T> A for T {\n4\tmacro_rules! m {\n"},
		{"a.php",
		 "<?php\nfinal class A\n{\n    public static function run(int $a): int\n",
		 "2\tfinal class A\n4\t    public static function run(int $a): int\n"},
		{"a.sh", "x=1\nrun() {\n\techo a\n}\nfunction other {\n",
		 "2\trun() {\n5\tfunction other {\n"},
		{"Makefile", "CC := gcc\nall: a b\n\tcc -o a: b\n.PHONY: all\n%.o: %.c\n",
		 "2\tall: a b\n5\t%.o: %.c\n"},
		{"a.md",
		 "# One\ntext\n```\n# no heading\n```\n## Two\nThree\n-----\n| a | b |\n| --- | --- "
		 "|\n#tag\n",
		 "1\t# One\n6\t## Two\n7\tThree\n"},
		{"a.rst", "One\n===\n\ntext\n\nTwo\n~~~\n", "1\tOne\n6\tTwo\n"},
		{"a.tex", "\\section{One}\n\\sectionmark\n\\subsection*{Two}\n",
		 "1\t\\section{One}\n3\t\\subsection*{Two}\n"},
		{"a.toml", "a = 1\n[package]\nb = [1]\n[[bin]]\n",
		 "2\t[package]\n4\t[[bin]]\n"},
		{"a.sql", "select 1;\nCREATE TABLE a (\n", "2\tCREATE TABLE a (\n"},
		{"tool", "#!/usr/bin/env python3\nimport a\ndef f():\n", "3\tdef f():\n"},
		{"tool", "#!/bin/sh\nf() {\n", "2\tf() {\n"},
		/* Data has none. */
		{"a.json", "{\n\"function\": 1\n}\n", ""},
		{"a.csv", "class,def\n", ""},
		{"a.log", "error: class A\n", ""},
		{"a.txt", "class A\n", ""},
		{"tool", "class A\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf out;

		buf_init(&out, TEXT_MAX);
		outline_of(rows[i].name, rows[i].text, &out);
		if (strcmp(out.size ? out.data : "", rows[i].outline) != 0)
			print_error("%s:\n%s\n", rows[i].name, out.data);
		assert_string_equal(out.size ? out.data : "", rows[i].outline);
		buf_fini(&out);
	}
}

static size_t lines(const struct buf *text)
{
	size_t count = 0;

	for (size_t i = 0; i < text->size; i++)
		count += text->data[i] == '\n';
	return count;
}

static void of_too_many_the_outer_ones_stay_and_some_of_the_next(void **state)
{
	struct outline *outline = outline_new("a.py", STR(""));
	char line[64];
	struct buf out;

	(void)state;
	for (size_t i = 0; i < 5000; i++) {
		(void)snprintf(line, sizeof(line),
			       i % 500 == 0 ? "class C%zu:" : "    def f%zu():", i);
		outline_add(outline, i + 1, str_of(line));
	}
	assert_int_equal(outline_count(outline), 5000);
	buf_init(&out, TEXT_MAX);
	assert_int_equal(outline_print(outline, 60, TEXT_MAX, &out), 60);
	assert_int_equal(lines(&out), 60);
	for (size_t i = 0; i < 5000; i += 500) {
		(void)snprintf(line, sizeof(line), "%zu\tclass C%zu:\n", i + 1, i);
		assert_non_null(strstr(out.data, line));
	}
	/* From its last part, too. */
	assert_non_null(strstr(out.data, "\n49"));
	buf_fini(&out);
	outline_free(outline);
}

static void it_stays_below_its_bytes(void **state)
{
	struct outline *outline = outline_new("a.py", STR(""));
	char line[300];
	struct buf out;

	(void)state;
	memset(line, 'x', sizeof(line));
	(void)memcpy(line, "def ", 4);
	for (size_t i = 0; i < 60; i++)
		outline_add(outline, i + 1, (struct str){line, sizeof(line)});
	buf_init(&out, TEXT_MAX);
	assert_true(outline_print(outline, 60, 1000, &out) > 5);
	assert_true(out.size <= 1000);
	buf_clear(&out);
	assert_int_equal(outline_print(outline, 60, 3, &out), 0);
	assert_int_equal(out.size, 0);
	buf_fini(&out);
	outline_free(outline);
	assert_int_equal(outline_print(NULL, 1, 1, NULL) + outline_count(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_language_has_its_words),
		cmocka_unit_test(of_too_many_the_outer_ones_stay_and_some_of_the_next),
		cmocka_unit_test(it_stays_below_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
