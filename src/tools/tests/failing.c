/* failing: the words of failures, and the search for them. */
#include "tools/tests/failing.h"

#include "base/text/text.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECE = 64 << 10,    /* of the file at a time */
	LOOKED_AT = 4 << 10, /* bytes of a line; no place before the word is longer */
	ESCAPE = 0x1b,
};

/*
 * Words with which such a line begins. The whole word must fit: "errors" is none of them.
 */
static const char *const words[] = {
	"error",
	"Error",
	"ERROR",
	"fatal",
	"Fatal",
	"FATAL",
	"fail",
	"Fail",
	"FAIL",
	"failed",
	"Failed",
	"FAILED",
	"FAILURE",
	"FAILURES",
	"failure",
	"Failure",
	"not ok",
	"panic",
	"Traceback",
	"Assertion",
	"assertion",
	"Exception",
	"Caused by",
	"Uncaught",
	"Unhandled",
	"Segmentation fault",
	"internal compiler error",
	"syntax error",
	"fatal error",
	"parse error",
	"PHP Fatal error",
	"PHP Parse error",
	"Parse error",
	"CMake Error",
	"BUILD FAILED",
	"undefined reference",
	"--- FAIL",
	"[ERROR]",
	"[FAIL]",
	"[FAILED]",
	"npm ERR!",
	"npm error",
	"ninja: build stopped",
};

/* Marks with which such a line begins, with any text behind them. */
static const char *const marks[] = {
	"[  FAILED  ]", "[  ERROR   ]", "E   ", "✗", "✘", "✕", "✖", "×", "❌", "● "};

/* Skip blanks and colours before the first word. */
static struct str skip_colours(struct str line)
{
	size_t at = 0;

	while (at < line.size) {
		if (line.data[at] == ' ' || line.data[at] == '\t' || line.data[at] == '\r') {
			at++;
		} else if (line.data[at] == ESCAPE && at + 1 < line.size &&
			   line.data[at + 1] == '[') {
			at += 2;
			while (at < line.size && !isalpha((unsigned char)line.data[at]))
				at++;
			at += at < line.size;
		} else {
			break;
		}
	}
	return str_part(line, at, line.size);
}

static bool begins_with_word(struct str line)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct str word = str_of(words[i]);

		if (str_starts(line, word) &&
		    (line.size == word.size ||
		     !(isalnum((unsigned char)line.data[word.size]) ||
		       line.data[word.size] == '_' || line.data[word.size] == '-')))
			return true;
	}
	return false;
}

static bool begins_with_mark(struct str line)
{
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (str_starts(line, str_of(marks[i])))
			return true;
	}
	return false;
}

/*
 * Is WORD the name of an exception: "ValueError: …", "java.lang.IllegalStateException"?
 */
static bool is_exception(struct str word)
{
	if (str_ends(word, STR(":")))
		word.size--;
	for (size_t i = 0; i < word.size; i++) {
		if (!isalnum((unsigned char)word.data[i]) &&
		    strchr("._$", word.data[i]) == NULL)
			return false;
	}
	return str_ends(word, STR("Error")) || str_ends(word, STR("Exception"));
}

/* Is WORD a place: "a.c:12:5:", "a.ts(3,5):", "a.o:(.text+0x5):", "collect2:"? */
static bool is_place(struct str word)
{
	return word.size > 1 && str_ends(word, STR(":"));
}

/*
 * The part of LINE behind a place, or behind the number of a process ("==12==ERROR");
 * empty when LINE has neither.
 */
static struct str behind_place(struct str line)
{
	struct str rest = line, word;

	if (str_starts(line, STR("=="))) {
		size_t end = str_find(line, STR("=="), 2);

		return end == (size_t)-1 ? STR("") : str_part(line, end + 2, line.size);
	}
	if (!str_next_word(&rest, &word) || !is_place(word))
		return STR("");
	return skip_colours(rest);
}

static bool tells_of_failure(struct str line)
{
	struct str rest = line, word;

	if (line.size == 0)
		return false;
	return begins_with_word(line) || begins_with_mark(line) ||
	       (str_next_word(&rest, &word) && is_exception(word));
}

bool failing_line(struct str line)
{
	struct str rest = skip_colours(str_part(line, 0, LOOKED_AT));

	if (rest.size == 0)
		return false;
	if (tells_of_failure(rest))
		return true;
	/* In the lines of make and Rust the word is in the middle. */
	if (str_starts(rest, STR("make")) && str_find(rest, STR(": *** "), 0) != (size_t)-1)
		return true;
	if (str_starts(rest, STR("thread '")) &&
	    str_find(rest, STR("' panicked at "), 0) != (size_t)-1)
		return true;
	return tells_of_failure(behind_place(rest));
}

struct gather {
	struct str shown;
	struct buf *out;
	size_t number; /* of the next line */
	size_t told, count;
};

/* Does LINE, in the form in which it would be shown, begin a line of SHOWN? */
static bool is_shown(struct str shown, struct str line)
{
	for (size_t at = 0; (at = str_find(shown, line, at)) != (size_t)-1; at++) {
		if (at == 0 || shown.data[at - 1] == '\n')
			return true;
	}
	return false;
}

static void take_line(struct gather *gather, struct str line)
{
	const size_t number = gather->number++;
	struct buf clean;
	struct str told;

	if (!failing_line(line))
		return;
	buf_init(&clean, 4 * LOOKED_AT + 1);
	(void)text_clean(str_part(line, 0, LOOKED_AT), &clean);
	told = buf_str(&clean);
	if (told.size > FAILING_LINE_BYTES)
		told.size = text_character_border(told, FAILING_LINE_BYTES);
	if (!is_shown(gather->shown, told)) {
		gather->count++;
		if (gather->told < FAILING_SHOWN) {
			gather->told++;
			(void)buf_addf(gather->out, "%zu\t", number);
			(void)buf_addstr(gather->out, told);
			(void)buf_addc(gather->out, '\n');
		}
	}
	buf_fini(&clean);
}

size_t failing_gather(int fd, uint64_t from, size_t number, struct str shown, struct buf *out)
{
	struct gather gather = {.shown = shown, .out = out, .number = number};
	struct buf held;     /* from the beginning of the current line on */
	bool passes = false; /* the rest of a line that was too long is skipped */

	buf_init(&held, 2 * PIECE);
	for (;;) {
		char *at = buf_reserve(&held, PIECE);
		ssize_t got = at != NULL ? pread(fd, at, PIECE, (off_t)from) : 0;
		struct str rest, line;
		const char *end;

		if (got <= 0)
			break;
		from += (uint64_t)got;
		buf_commit(&held, (size_t)got);
		rest = buf_str(&held);
		while ((end = memchr(rest.data, '\n', rest.size)) != NULL) {
			line = str_part(rest, 0, (size_t)(end - rest.data));
			rest = str_part(rest, line.size + 1, rest.size);
			if (passes)
				gather.number++;
			else
				take_line(&gather, line);
			passes = false;
		}
		if (!passes && rest.size >= PIECE) {
			/*
			 * take_line counts the line, and so does its end: correct the
			 * number.
			 */
			take_line(&gather, rest);
			gather.number--;
			passes = true;
		}
		buf_remove(&held, 0, passes ? held.size : held.size - rest.size);
	}
	if (held.size > 0 && !passes)
		take_line(&gather, buf_str(&held));
	buf_fini(&held);
	return gather.count;
}
