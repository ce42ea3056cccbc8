/* made: see made.h. */
#include "made.h"

#include "unit.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

static const char *const names[] = {
	"a",   "b",     "ab",    "abc",   "a b", "b ",     "!a",  "#b",    "[a]",
	"a\\", "foo",   "A",     "x.c",   "é",   "foobar", "-",   "a.o",   "b.c",
	"x y", "doc",   "tmp",   "build", "!n",  "#h",     "a.b", "foo.o", "]",
	"A.O", "a\tb",  "b\t",   " a",    "a*",  "?",      "...", "c]d",   "{a,b}",
	"^a",  "\xc3x", "bar.c", "ab.o",  "n",   "h",      "x",
};

/* Rules as people write them … */
static const char *const lines[] = {
	"*.o",
	"a",
	"/a",
	"b/",
	"!a",
	"!*.c",
	"foo/",
	"/build/",
	"a/b",
	"**/ab",
	"a/**",
	"a/**/b",
	"*",
	"!*/",
	"x\\ y",
	"\\!n",
	"\\#h",
	"[ab]",
	"[!a]*",
	"doc/*",
	"!doc/a",
	"?.c",
	"*.b\\",
	"/*/a",
	"# note",
	"",
	"!/foo",
	"tmp/**/",
	"**",
	"é",
	"b.c ",
	"/doc/foo",
	"  ",
	"\t",
	"!",
	"!!a",
	"!#h",
	"/",
	"//a",
	"a//b",
	"./a",
	"../a",
	"a/.",
	"/**",
	"**/",
	"**/**",
	"/**/a",
	"a/**/**/b",
	"**a",
	"a**b",
	"**/a/**",
	"*/b",
	"*/*",
	"/*",
	"!/*/",
	"a\\ ",
	"b\\ \\",
	"b \\ ",
	"\\ a",
	"b\\\t",
	"b\t",
	"b  ",
	"\xef\xbb\xbf/a",
	"*.[oO]",
	"[A-Z]",
	"[a-",
	"[]",
	"[]]",
	"[!]]",
	"[]-a]",
	"[a-a-z]",
	"[[:upper:]]*",
	"[[:space:]]*",
	"[^[:alnum:]]",
	"[[:alpha:]-]",
	"a[/]b",
	"a?b",
	"\\a",
	"\\*",
	"a\\*",
	"\\?",
	"\\[a]",
	"c]d",
	"{a,b}",
	"*.{c,o}",
	"^a",
};

/* … and pieces that make others. */
static const char *const pieces[] = {
	"a",     "b",    "ab",      "c",     "foo",         "x.c",   "é",
	"*",     "*",    "**",      "?",     "/",           "/",     "/",
	"[ab]",  "[!a]", "[^b]",    "[a-c]", " ",           "\\ ",   "\\",
	"!",     "#",    "\\!",     "\\#",   "[[:alpha:]]", "[",     "]",
	"**/",   "/**",  "*.c",     "\\a",   "[]]",         "\t",    "[a-\\c]",
	"***",   "-",    "[[:x:]]", "foo**", "\\/",         "bar",   "[/]",
	"[\\]]", "a**",  "[--b]",   ".",     "..",          "\r",    "[[:upper:]]",
	"A",     "\xc3", "{",       "}",     ",",           "[z-a]",
};

uint64_t made_seed(uint64_t usual)
{
	const char *text = getenv("GLOVEBOX_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10) : usual;

	if (seed == 0)
		seed = usual;
	print_message("# GLOVEBOX_TEST_SEED=%" PRIu64 " plays this again\n", seed);
	return seed;
}

unsigned made_random(uint64_t *seed, unsigned limit)
{
	/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003). */
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (unsigned)((*seed >> 20) % limit);
}

const char *made_name(uint64_t *seed)
{
	return names[made_random(seed, UNIT_COUNT(names))];
}

void made_rules(uint64_t *seed, struct buf *rules)
{
	for (unsigned count = 1 + made_random(seed, 5); count > 0; count--) {
		if (made_random(seed, 4) == 0)
			(void)buf_addc(rules, '!');
		if (made_random(seed, 2) == 0)
			(void)buf_adds(rules, lines[made_random(seed, UNIT_COUNT(lines))]);
		else
			for (unsigned n = 1 + made_random(seed, 4); n > 0; n--)
				(void)buf_adds(rules,
					       pieces[made_random(seed, UNIT_COUNT(pieces))]);
		(void)buf_adds(rules, made_random(seed, 8) ? "\n" : "\r\n");
	}
	if (made_random(seed, 4) == 0)
		buf_truncate(rules, rules->size - 1);
}

void made_case(uint64_t *seed, char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		const unsigned char c = (unsigned char)text[i];
		if (c < 0x80 && isalpha(c) && made_random(seed, 3) == 0)
			text[i] = (char)(c ^ 0x20);
	}
}
