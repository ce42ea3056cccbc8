#include "wrap.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void show(const char *title, const char *text)
{
	printf("%s [", title);
	for (; *text != '\0'; text++)
		putchar(*text == '\n' ? '|' : *text);
	printf("]");
}

static void check(const char *name, const char *text, size_t width, const char *expected)
{
	char out[256];

	wrap(text, width, out, sizeof(out));
	if (strcmp(out, expected) == 0) {
		printf("ok    %s\n", name);
		return;
	}
	printf("FAIL  %s (width %zu):", name, width);
	show(" expected", expected);
	show(", got", out);
	putchar('\n');
	failures++;
}

int main(void)
{
	check("one word", "hello", 10, "hello");
	check("two short words stay together", "to be", 10, "to be");
	check("a line that is exactly full", "hello world", 11, "hello world");
	check("a word that is too much by one", "hello world", 10, "hello\nworld");
	check("a long word has a line of its own", "an extraordinary day", 6,
	      "an\nextraordinary\nday");
	check("several lines", "the quick brown fox jumps", 9,
	      "the quick\nbrown fox\njumps");
	printf("%d failed\n", failures);
	return failures != 0;
}
