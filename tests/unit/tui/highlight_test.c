/* highlight: lines of code in, their colours out. */
#include "tui/commit/highlight.h"

#include "base/text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Replace the sequences of COLOURED by marks: k, s, c, n between braces. */
static void add_marks(struct str coloured, struct buf *out)
{
	static const struct {
		const char *sequence, *mark;
	} marks[] = {{"\x1b[35m", "{k:"},
		     {"\x1b[32m", "{s:"},
		     {"\x1b[2m", "{c:"},
		     {"\x1b[36m", "{n:"},
		     {"\x1b[0m", "}"}};

	while (coloured.size > 0) {
		size_t size = 0;

		for (size_t i = 0; size == 0 && i < sizeof(marks) / sizeof(marks[0]); i++) {
			if (!str_starts(coloured, str_of(marks[i].sequence)))
				continue;
			(void)buf_adds(out, marks[i].mark);
			size = strlen(marks[i].sequence);
		}
		if (size == 0) {
			(void)buf_addc(out, coloured.data[0]);
			size = 1;
		}
		coloured = str_part(coloured, size, coloured.size);
	}
}

static void shows(const char *language, const char *source, const char *expected)
{
	struct paint paint = {.colour = true};
	struct highlight highlight;
	struct str rest = str_of(source), line;
	struct buf shown;

	buf_init(&paint.out, PAINT_MAX);
	buf_init(&shown, PAINT_MAX);
	highlight_begin(&highlight, str_of(language));
	while (str_next_line(&rest, &line)) {
		highlight_line(&highlight, &paint, line);
		(void)buf_addc(&paint.out, '\n');
	}
	add_marks(buf_str(&paint.out), &shown);
	if (strcmp(shown.data, expected) != 0)
		fail_msg("expected:\n%s\nshown:\n%s", expected, shown.data);
	buf_fini(&paint.out);
	buf_fini(&shown);
}

static void each_language_has_its_words(void **state)
{
	static const struct {
		const char *name, *source, *expected;
	} rows[] = {
		{"c", "int a = 0x1f; // b\n", "{k:int} a = {n:0x1f}; {c:// b}\n"},
		{"h", "#include \"a.h\"\n", "{k:#include} {s:\"a.h\"}\n"},
		{"python", "def f(): return 'a' # b\n",
		 "{k:def} f(): {k:return} {s:'a'} {c:# b}\n"},
		{"ts", "const a = `b\nc` + 1.5;\n",
		 "{k:const} a = {s:`b}\n{s:c`} + {n:1.5};\n"},
		{"java", "public class A {}\n", "{k:public} {k:class} A {}\n"},
		{"go", "func main() {}\n", "{k:func} main() {}\n"},
		{"rust", "fn a<'b>(c: &'b str) {}\n", "{k:fn} a<'b>(c: &'b {k:str}) {}\n"},
		{"sh", "if [ $# = 1 ]; then # a\n",
		 "{k:if} [ $# = {n:1} ]; {k:then} {c:# a}\n"},
		{"ruby", "def a; nil; end\n", "{k:def} a; {k:nil}; {k:end}\n"},
		{"php", "echo $a; // b\n", "{k:echo} $a; {c:// b}\n"},
		{"c#", "using A;\n", "{k:using} A;\n"},
		{"kotlin", "val a = null\n", "{k:val} a = {k:null}\n"},
		{"swift", "let a = nil\n", "{k:let} a = {k:nil}\n"},
		{"scala", "object A\n", "{k:object} A\n"},
		{"lua", "local a --[[ b\nc ]] 1\n",
		 "{k:local} a {c:--[[ b}\n{c:c ]]} {n:1}\n"},
		{"perl", "my $a = 1;\n", "{k:my} $a = {n:1};\n"},
		{"sql", "SELECT a FROM b -- c\n", "{k:SELECT} a {k:FROM} b {c:-- c}\n"},
		{"html", "<a b=\"c\"><!-- d\ne -->\n",
		 "<a b={s:\"c\"}>{c:<!-- d}\n{c:e -->}\n"},
		{"css", "a { b: 1px } /* c */\n", "a { b: {n:1px} } {c:/* c */}\n"},
		{"yaml", "a: true # b\n", "a: {k:true} {c:# b}\n"},
		{"dockerfile", "RUN make # a\n", "{k:RUN} make {c:# a}\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		shows(rows[i].name, rows[i].source, rows[i].expected);
}

static void strings_end_and_comments_go_on(void **state)
{
	(void)state;
	shows("c", "\"a\\\"b\" 'c' \"open\n1 /* 2\n3\n*/ 4\n",
	      "{s:\"a\\\"b\"} {s:'c'} {s:\"open}\n{n:1} {c:/* 2}\n{c:3}\n{c:*/} {n:4}\n");
	shows("python", "a = \"\"\"b\n'c\nd\"\"\" + 'e'\n",
	      "a = {s:\"\"\"b}\n{s:'c}\n{s:d\"\"\"} + {s:'e'}\n");
}

static void names_are_the_first_word_and_an_unknown_one_has_no_colours(void **state)
{
	(void)state;
	shows("C title=a", "int\n", "{k:int}\n");
	shows("python{.x}", "None\n", "{k:None}\n");
	shows("text", "int a; // b\n", "int a; // b\n");
	shows("", "int\n", "int\n");
	shows("a-name-that-is-longer-than-any-language", "int\n", "int\n");
}

static void files_are_known_by_their_names(void **state)
{
	struct highlight highlight, other;

	(void)state;
	highlight_begin_file(&highlight, STR("src/a.b/x.c"));
	highlight_begin(&other, STR("c"));
	assert_true(highlight.language == other.language);
	highlight_begin_file(&highlight, STR("a.c/Makefile"));
	highlight_begin(&other, STR("make"));
	assert_true(highlight.language == other.language);
	highlight_begin_file(&highlight, STR("a.c/"));
	assert_null(highlight.language);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_language_has_its_words),
		cmocka_unit_test(strings_end_and_comments_go_on),
		cmocka_unit_test(names_are_the_first_word_and_an_unknown_one_has_no_colours),
		cmocka_unit_test(files_are_known_by_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
