/* highlight: the table of languages, and a reader of their lines. */
#include "tui/commit/highlight.h"

#include "base/buf.h"
#include "base/str.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
	NAME_MAX_BYTES = 24,
	LINE_MAX_BYTES = 8 << 10, /* a longer line is no code that a person reads */
};

struct language {
	const char *names; /* with blanks between them, in small letters */
	const char *keywords;
	const char *comment;           /* to the end of the line, or NULL */
	const char *opening, *closing; /* of a comment over several lines, or NULL */
	const char *quotes; /* marks around strings; a backslash escapes them */
	const char *longs; /* marks around strings of several lines, with blanks between; or NULL */
	bool any_case; /* keywords may be written in capitals */
};

#define C_KEYWORDS                                                                       \
	"auto bool break case char const continue default do double else enum extern "   \
	"false float for goto if inline int long nullptr register return short signed "  \
	"sizeof static struct switch true typedef union unsigned void volatile while "   \
	"NULL class delete explicit friend mutable namespace new operator private "      \
	"protected public template this throw try catch typename using virtual "         \
	"constexpr override noexcept size_t uint8_t uint32_t uint64_t int64_t #include " \
	"#define #if #ifdef #ifndef #endif #else #pragma"

static const struct language languages[] = {
	{"c h cc cpp cxx hpp hh c++ objc m ino", C_KEYWORDS, "//", "/*", "*/", "\"'",
	 NULL, false},
	{"python py python3 pyi",
	 "and as assert async await break class continue def del elif else except False "
	 "finally for from global if import in is lambda None nonlocal not or pass raise "
	 "return self True try while with yield match case",
	 "#", NULL, NULL, "\"'", "\"\"\" '''", false},
	{"javascript js jsx mjs cjs typescript ts tsx",
	 "abstract any as async await boolean break case catch class const continue debugger "
	 "declare default delete do else enum export extends false finally for from function "
	 "get if implements import in instanceof interface let namespace new null number of "
	 "private protected public readonly return set static string super switch this throw "
	 "true try type typeof undefined var void while with yield",
	 "//", "/*", "*/", "\"'", "`", false},
	{"java",
	 "abstract assert boolean break byte case catch char class const continue default do "
	 "double else enum extends false final finally float for if implements import "
	 "instanceof int interface long native new null package private protected public "
	 "record return sealed short static super switch synchronized this throw throws true "
	 "try var void volatile while yield",
	 "//", "/*", "*/", "\"'", "\"\"\"", false},
	{"go golang",
	 "any bool break byte case chan const continue default defer else error fallthrough "
	 "false float64 for func go goto if import int int64 interface iota map nil package "
	 "range return rune select string struct switch true type uint64 var",
	 "//", "/*", "*/", "\"'", "`", false},
	{"rust rs",
	 "as async await bool break char const continue crate dyn else enum extern f64 false "
	 "fn for i32 i64 if impl in let loop match mod move mut pub ref return self Self "
	 "static str String struct super trait true type u8 u32 u64 unsafe use usize where "
	 "while Some None Ok Err",
	 "//", "/*", "*/", "\"", NULL, false},
	{"sh bash shell zsh console ksh",
	 "case do done elif else esac exit export fi for function if in local readonly return "
	 "select set shift source then trap unset until while",
	 "#", NULL, NULL, "\"'", NULL, false},
	{"ruby rb",
	 "alias and begin break case class def defined do else elsif end ensure false for if "
	 "in module next nil not or raise redo require rescue retry return self super then "
	 "true undef unless until when while yield",
	 "#", "=begin", "=end", "\"'`", NULL, false},
	{"php",
	 "abstract and array as break case catch class clone const continue declare default "
	 "do echo else elseif extends false final finally fn for foreach function global if "
	 "implements include instanceof interface match namespace new null or private "
	 "protected public readonly require return static switch throw trait true try use "
	 "var while yield",
	 "//", "/*", "*/", "\"'", NULL, false},
	{"csharp cs c#",
	 "abstract as async await base bool break byte case catch char class const continue "
	 "decimal default delegate do double else enum event false finally float for foreach "
	 "get if in int interface internal is lock long namespace new null object out "
	 "override params private protected public readonly record ref return sealed set "
	 "static string struct switch this throw true try typeof using var virtual void "
	 "while yield",
	 "//", "/*", "*/", "\"'", NULL, false},
	{"kotlin kt kts",
	 "abstract as break by class companion const constructor continue data do else enum "
	 "false final for fun if import in init interface internal is lateinit null object "
	 "open override package private protected public return sealed super suspend this "
	 "throw true try typealias val var when while",
	 "//", "/*", "*/", "\"'", "\"\"\"", false},
	{"swift",
	 "as async await break case catch class continue default defer do else enum extension "
	 "false fileprivate for func guard if import in init inout internal is let nil open "
	 "override private protocol public repeat return self Self static struct subscript "
	 "super switch throw throws true try typealias var where while",
	 "//", "/*", "*/", "\"", "\"\"\"", false},
	{"scala sc",
	 "abstract case catch class def do else extends false final finally for given if "
	 "implicit import lazy match new null object override package private protected "
	 "return sealed super this throw trait true try type val var while with yield",
	 "//", "/*", "*/", "\"", "\"\"\"", false},
	{"lua",
	 "and break do else elseif end false for function goto if in local nil not or repeat "
	 "return then true until while",
	 "--", "--[[", "]]", "\"'", NULL, false},
	{"perl pl pm",
	 "and cmp else elsif eq for foreach if last local my ne next no not or our package "
	 "print redo require return sub unless until use while",
	 "#", NULL, NULL, "\"'", NULL, false},
	{"sql postgres postgresql mysql sqlite",
	 "add all alter and as asc begin between by case check commit constraint create cross "
	 "default delete desc distinct drop else end exists foreign from full group having in "
	 "index inner insert into is join key left like limit not null offset on or order "
	 "outer primary references returning right rollback select set table then union "
	 "unique update using values view when where with",
	 "--", "/*", "*/", "\"'", NULL, true},
	{"html xml svg vue xhtml", "", NULL, "<!--", "-->", "\"'", NULL, false},
	{"css scss less",
	 "@import @media @keyframes @font-face @use @mixin @include !important", NULL,
	 "/*", "*/", "\"'", NULL, false},
	{"json jsonc json5 yaml yml toml ini conf", "true false null yes no on off", "#",
	 NULL, NULL, "\"'", NULL, false},
	{"make makefile mk dockerfile docker cmake",
	 "ifeq ifneq ifdef ifndef else endif include define endef export override FROM RUN CMD "
	 "COPY ADD ENV ARG WORKDIR ENTRYPOINT EXPOSE USER VOLUME LABEL AS if elseif "
	 "endforeach foreach function endfunction set add_executable target_link_libraries",
	 "#", NULL, NULL, "\"'", NULL, false},
};

void highlight_begin(struct highlight *highlight, struct str name)
{
	char small[NAME_MAX_BYTES];
	size_t size = 0;

	*highlight = (struct highlight){0};
	/* Behind a fence more may follow: "c title=…", "python{.line}". */
	while (size < name.size && size < sizeof(small) &&
	       strchr(" \t{,:", name.data[size]) == NULL) {
		small[size] = (char)tolower((unsigned char)name.data[size]);
		size++;
	}
	for (size_t i = 0; size > 0 && i < sizeof(languages) / sizeof(languages[0]); i++) {
		if (str_among(languages[i].names, (struct str){small, size}))
			highlight->language = &languages[i];
	}
}

void highlight_begin_file(struct highlight *highlight, struct str path)
{
	const char *slash = memrchr(path.data, '/', path.size);
	const char *dot;

	if (slash != NULL)
		path = str_part(path, (size_t)(slash - path.data) + 1, path.size);
	dot = memrchr(path.data, '.', path.size);
	if (dot != NULL)
		path = str_part(path, (size_t)(dot - path.data) + 1, path.size);
	highlight_begin(highlight, path);
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* The size of the string with the mark QUOTE that TEXT begins with; to its end when it is open. */
static size_t string_size(struct str text, char quote)
{
	size_t at = 1;

	while (at < text.size && text.data[at] != quote)
		at += text.data[at] == '\\' ? 2 : 1;
	return at < text.size ? at + 1 : text.size;
}

/* The long mark among MARKS that TEXT begins with; NULL: none. *SIZE: its bytes. */
static const char *long_mark(const char *marks, struct str text, size_t *size)
{
	struct str rest = str_of(marks != NULL ? marks : ""), mark;

	while (str_next_word(&rest, &mark)) {
		if (!str_starts(text, mark))
			continue;
		*size = mark.size;
		return mark.data;
	}
	return NULL;
}

/* Append TEXT up to the end of the comment or string that goes on, or all of it. */
static size_t go_on(struct highlight *highlight, struct paint *paint, struct str text,
		    size_t from)
{
	const size_t mark = strcspn(highlight->until, " ");
	const size_t end = str_find(text, (struct str){highlight->until, mark}, from);
	const size_t size = end == SIZE_MAX ? text.size : end + mark;

	paint_text(paint, highlight->style, str_part(text, 0, size));
	if (end != SIZE_MAX)
		highlight->until = NULL;
	return size;
}

/* Does a comment up to the end of the line begin at AT of LINE? */
static bool begins_comment(const struct language *language, struct str line, size_t at)
{
	if (language->comment == NULL ||
	    !str_starts(str_part(line, at, line.size), str_of(language->comment)))
		return false;
	/* "$#" and "a#b" are none in a shell and in YAML. */
	return language->comment[0] != '#' || at == 0 ||
	       strchr(" \t;", line.data[at - 1]) != NULL;
}

/* Does something begin at AT of LINE that goes on until a mark of its own? */
static bool begins_long(struct highlight *highlight, struct str line, size_t at, size_t *size)
{
	const struct language *language = highlight->language;
	const struct str rest = str_part(line, at, line.size);

	if (language->opening != NULL && str_starts(rest, str_of(language->opening))) {
		*size = strlen(language->opening);
		highlight->until = language->closing;
		highlight->style = PAINT_COMMENT;
		return true;
	}
	highlight->until = long_mark(language->longs, rest, size);
	highlight->style = PAINT_STRING;
	return highlight->until != NULL;
}

/* The size of the word or number at the begin of TEXT, and its STYLE. */
static size_t word_size(const struct language *language, struct str text,
			enum paint_style *style)
{
	const bool number = isdigit((unsigned char)text.data[0]);
	char small[NAME_MAX_BYTES];
	size_t size = 1;

	while (size < text.size &&
	       (is_of_word(text.data[size]) || (number && text.data[size] == '.')))
		size++;
	*style = number ? PAINT_NUMBER : PAINT_PLAIN;
	if (number || size > sizeof(small))
		return size;
	for (size_t i = 0; i < size; i++)
		small[i] = language->any_case ? (char)tolower((unsigned char)text.data[i])
					      : text.data[i];
	if (str_among(language->keywords, (struct str){small, size}))
		*style = PAINT_KEYWORD;
	return size;
}

void highlight_line(struct highlight *highlight, struct paint *paint, struct str line)
{
	const struct language *language = highlight->language;
	size_t at = 0, plain = 0;

	if (language == NULL || !paint->colour || line.size > LINE_MAX_BYTES) {
		(void)buf_addstr(&paint->out, line);
		return;
	}
	if (highlight->until != NULL)
		at = plain = go_on(highlight, paint, line, 0);
	while (at < line.size) {
		const struct str rest = str_part(line, at, line.size);
		const char c = line.data[at];
		enum paint_style style = PAINT_PLAIN;
		size_t size = 1;

		if (begins_long(highlight, line, at, &size)) {
			(void)buf_addstr(&paint->out, str_part(line, plain, at - plain));
			at += go_on(highlight, paint, rest, size);
			plain = at;
			continue;
		}
		if (begins_comment(language, line, at)) {
			style = PAINT_COMMENT;
			size = rest.size;
		} else if (strchr(language->quotes, c) != NULL) {
			style = PAINT_STRING;
			size = string_size(rest, c);
		} else if (is_of_word(c) || (strchr("#@!", c) != NULL && rest.size > 1 &&
					     is_of_word(rest.data[1]))) {
			size = word_size(language, rest, &style);
		}
		if (style != PAINT_PLAIN) {
			(void)buf_addstr(&paint->out, str_part(line, plain, at - plain));
			paint_text(paint, style, str_part(rest, 0, size));
			plain = at + size;
		}
		at += size;
	}
	(void)buf_addstr(&paint->out, str_part(line, plain, line.size));
}
