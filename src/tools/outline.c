/*
 * outline: finds the lines that begin a part of a file. A language is a row: words that
 * begin a definition, words that may stand before them, and the forms without such a
 * word. Each line is judged by itself: a call over several lines may look like a
 * definition, and a definition in an unusual form may be missed. Neither does harm in a
 * map of a file.
 */

#include "tools/outline.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "tools/search/grep.h"
#include "tools/shown.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* places that are kept; when there are more, some are dropped */
	PLACES_MAX = 1024,
	/* bytes shown of one place, whose name stands near its beginning */
	PLACE_TEXT_MAX = 96,
	LINE_LOOKED_AT = 400, /* bytes of a line; a longer line is data or generated */
	INDENT_MAX = 40,
	TAB_WIDTH = 8,
	/* words before the word that begins a definition: templates and modifiers */
	WORDS_MAX = 12,
};

/* Forms of definitions without a word of their own. */
enum form {
	FORM_C = 1,           /* "static int f(int a)" without indentation */
	FORM_METHOD = 2,      /* "public int f(int a) {", behind one of the modifiers */
	FORM_BODY = 4,        /* "name(a, b) {", indented */
	FORM_ARROW = 8,       /* "const f = (a) => …" without indentation */
	FORM_SHELL = 16,      /* "name() {" */
	FORM_BLOCK = 32,      /* anything that ends with "{", without indentation */
	FORM_LABEL = 64,      /* "name:" and "name: other", without indentation */
	FORM_SECTION = 128,   /* "[name]" */
	FORM_HASHES = 256,    /* "## heading" */
	FORM_RULE = 512,      /* a line above "====" or "----" */
	FORM_PAREN = 1024,    /* "(def…" without indentation */
	FORM_COMMAND = 2048,  /* "\section{…}", ".SH name" */
	FORM_TYPE = 4096,     /* "name :: type" without indentation */
	FORM_ASSIGNED = 8192, /* "name <- function(a)" */
};

struct language {
	const char *types; /* names of file_types, blank-separated */
	const char *words;
	const char *modifiers;
	unsigned forms; /* of enum form */
};

static const struct language languages[] = {
	{"c cpp objc",
	 "struct enum union class namespace template @interface @implementation",
	 "typedef static extern export inline", FORM_C},
	{"java cs kotlin scala swift dart gradle",
	 "class interface enum record struct namespace trait object protocol extension fun func "
	 "def actor",
	 "public private protected internal static final abstract sealed override open async "
	 "virtual partial data inline suspend case implicit lazy mutating fileprivate readonly "
	 "unsafe synchronized native default external @Override @objc",
	 FORM_METHOD},
	{"php", "class interface trait enum function namespace",
	 "public private protected static final abstract readonly", 0},
	{"js ts vue svelte", "class interface enum namespace module function type",
	 "export default async abstract declare public private protected static",
	 FORM_BODY | FORM_ARROW},
	{"go", "func type", "", 0},
	{"rust", "fn struct enum trait impl mod union type macro_rules!",
	 "pub unsafe async const extern default pub(crate) pub(super) \"C\"", 0},
	{"zig", "fn test", "pub export inline extern", 0},
	{"py", "def class", "async", 0},
	{"rb", "def class module", "private protected", 0},
	{"elixir", "def defp defmodule defmacro defprotocol defimpl", "", 0},
	{"lua", "function", "local", 0},
	{"perl", "sub package", "", 0},
	{"julia", "function struct macro module", "mutable", 0},
	{"r", "", "", FORM_ASSIGNED},
	{"sh fish", "function", "", FORM_SHELL},
	{"ps", "function class filter Function", "", 0},
	{"haskell", "data class instance module type newtype", "", FORM_TYPE},
	{"ocaml", "let module type class and", "", 0},
	{"erlang", "-module -record -export", "", FORM_C},
	{"clojure lisp", "", "", FORM_PAREN},
	{"sql", "create CREATE alter ALTER", "", 0},
	{"proto graphql", "message service enum rpc type interface input union scalar",
	 "extend", 0},
	{"tf css scss nix", "", "", FORM_BLOCK},
	{"make", "define", "", FORM_LABEL},
	{"asm", "", "", FORM_LABEL},
	{"cmake", "function macro function( macro(", "", 0},
	{"vim", "function function! def", "", 0},
	{"docker", "FROM from", "", 0},
	{"ini toml", "", "", FORM_SECTION},
	{"md", "", "", FORM_HASHES | FORM_RULE},
	{"rst", "", "", FORM_RULE},
	{"tex", "", "", FORM_COMMAND},
	{"html", "<h1 <h2 <h3 <h4 <section <article <main <script <style", "", 0},
	{"diff", "diff Index:", "", 0},
};

enum { LANGUAGES = sizeof(languages) / sizeof(languages[0]) };

struct outline_place {
	size_t number;
	unsigned indent;
	char *text;
};

struct outline {
	const struct language *language;
	bool first[UCHAR_MAX + 1]; /* bytes with which a word or a modifier begins */
	struct outline_place *places;
	size_t count, room;
	size_t total;
	/* the line before, in a language with rules under headings; or NULL */
	char *before;
	bool fenced; /* in a code block */
};

/* Finds the language of a file. */

static const struct language *language_of_type(const char *name)
{
	for (size_t i = 0; i < LANGUAGES; i++) {
		if (str_among(languages[i].types, str_of(name)))
			return &languages[i];
	}
	return NULL;
}

static const struct language *language_of_name(struct str name)
{
	for (size_t i = 0; i < LANGUAGES; i++) {
		const char *at = languages[i].types;
		struct str rest = str_of(at), word;

		while (str_next_word(&rest, &word)) {
			char type[16];
			const struct file_type *found;

			(void)memcpy(type, word.data, word.size);
			type[word.size] = '\0';
			found = file_type_find(type);
			if (found != NULL && file_type_fits(found, name))
				return &languages[i];
		}
	}
	return NULL;
}

/* The language of a first line like "#!/usr/bin/env python3". */
static const struct language *language_of_start(struct str start)
{
	static const struct {
		const char *program, *type;
	} programs[] = {
		{"python", "py"}, {"bash", "sh"}, {"perl", "perl"}, {"ruby", "rb"},
		{"node", "js"},   {"/sh", "sh"},  {"php", "php"},   {"lua", "lua"},
	};
	struct str line;

	if (!str_starts(start, STR("#!")) || !str_next_line(&start, &line))
		return NULL;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (str_find(line, str_of(programs[i].program), 0) != (size_t)-1)
			return language_of_type(programs[i].type);
	}
	return NULL;
}

static void note_first(struct outline *outline, const char *words)
{
	struct str rest = str_of(words), word;

	while (str_next_word(&rest, &word))
		outline->first[(unsigned char)word.data[0]] = true;
}

struct outline *outline_new(const char *name, struct str start)
{
	const char *slash = strrchr(name, '/');
	const struct language *language =
		language_of_name(str_of(slash != NULL ? slash + 1 : name));
	struct outline *outline;

	if (language == NULL)
		language = language_of_start(start);
	if (language == NULL)
		return NULL;
	outline = memory_alloc(sizeof(*outline));
	outline->language = language;
	note_first(outline, language->words);
	note_first(outline, language->modifiers);
	return outline;
}

void outline_free(struct outline *outline)
{
	if (outline == NULL)
		return;
	for (size_t i = 0; i < outline->count; i++)
		free(outline->places[i].text);
	free(outline->places);
	free(outline->before);
	free(outline);
}

/* The functions below recognise a line that begins a part of the file. */

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' ||
	       (unsigned char)c >= 0x80;
}

static bool has(struct str line, const char *what)
{
	return str_find(line, str_of(what), 0) != (size_t)-1;
}

static bool ends_with(struct str line, char last)
{
	return line.size > 0 && line.data[line.size - 1] == last;
}

/* Does LINE begin with one of the language's words, behind any of its modifiers? */
static bool begins_with_word(const struct language *language, struct str line)
{
	struct str rest = line, word;

	for (int i = 0; i < WORDS_MAX && str_next_word(&rest, &word); i++) {
		size_t open = str_find(word, STR("("), 0);

		if (str_among(language->words, word))
			return rest.size > 0;
		/* As in "function(" of cmake or "impl<T>" of Rust. */
		if (open < word.size &&
		    str_among(language->words, str_part(word, 0, open + 1)))
			return true;
		open = str_find(word, STR("<"), 0);
		if (open > 0 && open < word.size &&
		    str_among(language->words, str_part(word, 0, open)))
			return true;
		if (!str_among(language->modifiers, word))
			return false;
	}
	return false;
}

/* Does the first word begin a statement? */
static bool is_statement(struct str line)
{
	static const char statements[] =
		"if else for while do switch case return goto sizeof catch try throw new delete "
		"assert await with until unless elif foreach using import from super";
	size_t size = 0;

	while (size < line.size && is_name(line.data[size]))
		size++;
	return str_among(statements, str_part(line, 0, size));
}

static bool is_c_function(struct str line)
{
	const size_t open = str_find(line, STR("("), 0);

	if (line.size == 0 || !is_name(line.data[0]) ||
	    isdigit((unsigned char)line.data[0]) || open == (size_t)-1 || open == 0 ||
	    ends_with(line, ';') || is_statement(line))
		return false;
	return is_name(line.data[open - 1]) && !has(str_part(line, 0, open), "=");
}

static bool is_method(const struct language *language, struct str line)
{
	struct str rest = line, word;

	return str_next_word(&rest, &word) && str_among(language->modifiers, word) &&
	       has(line, "(") && !ends_with(line, ';') && !has(line, " = ");
}

/* Is LINE like "name(a) {", "async name() {" or "get name() {"? */
static bool is_body(struct str line)
{
	const size_t open = str_find(line, STR("("), 0);

	return ends_with(line, '{') && open != (size_t)-1 && open > 0 &&
	       is_name(line.data[open - 1]) && has(line, ")") && !is_statement(line) &&
	       !has(str_part(line, 0, open), ".") && !has(str_part(line, 0, open), "=");
}

static bool is_arrow(struct str line)
{
	struct str rest = line, word;

	if (!str_next_word(&rest, &word))
		return false;
	if (str_is(word, "export") && !str_next_word(&rest, &word))
		return false;
	return str_among("const let var", word) && has(rest, "=") &&
	       (has(rest, "=>") || has(rest, "function"));
}

static bool is_shell_function(struct str line)
{
	const size_t open = str_find(line, STR("()"), 0);
	size_t at = 0;

	while (at < line.size && (is_name(line.data[at]) || line.data[at] == '-'))
		at++;
	return at > 0 && (open == at || open == at + 1);
}

static bool is_label(struct str line)
{
	const size_t colon = str_find(line, STR(":"), 0);

	return line.size > 0 && (is_name(line.data[0]) || line.data[0] == '%') &&
	       colon > 0 && colon < line.size &&
	       !str_starts(str_part(line, colon, 2), STR(":=")) &&
	       !has(str_part(line, 0, colon), "=");
}

static bool is_hashes(struct str line)
{
	size_t at = 0;

	while (at < line.size && line.data[at] == '#')
		at++;
	return at > 0 && at <= 6 && at < line.size && line.data[at] == ' ';
}

static bool is_command(struct str line)
{
	static const char *const commands[] = {"\\part", "\\chapter", "\\section",
					       "\\subsection", "\\subsubsection"};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct str command = str_of(commands[i]);

		if (str_starts(line, command) && line.size > command.size &&
		    strchr("{*[", line.data[command.size]) != NULL)
			return true;
	}
	return false;
}

static bool is_type(struct str line)
{
	return line.size > 0 && islower((unsigned char)line.data[0]) && has(line, " :: ");
}

static bool begins(const struct outline *outline, struct str line, unsigned indent)
{
	const struct language *language = outline->language;
	const unsigned forms = language->forms;
	const bool ends_body = ends_with(line, '{');

	/* In C an indented type belongs to a parameter or a variable. */
	if ((forms & FORM_C) != 0 && indent > 0 && (!ends_body || has(line, "=")))
		return false;
	/* A declaration is not a definition. */
	if (outline->first[(unsigned char)line.data[0]] &&
	    !((forms & (FORM_C | FORM_METHOD)) != 0 && ends_with(line, ';')) &&
	    begins_with_word(language, line))
		return true;
	if (indent > 0)
		return ((forms & FORM_METHOD) != 0 && is_method(language, line)) ||
		       ((forms & FORM_BODY) != 0 && is_body(line));
	return ((forms & FORM_C) != 0 && is_c_function(line)) ||
	       ((forms & FORM_METHOD) != 0 && is_method(language, line)) ||
	       ((forms & FORM_ARROW) != 0 && is_arrow(line)) ||
	       ((forms & FORM_SHELL) != 0 && is_shell_function(line)) ||
	       ((forms & FORM_BLOCK) != 0 && ends_body) ||
	       ((forms & FORM_LABEL) != 0 && is_label(line)) ||
	       ((forms & FORM_SECTION) != 0 && str_starts(line, STR("[")) &&
		ends_with(line, ']')) ||
	       ((forms & FORM_HASHES) != 0 && is_hashes(line)) ||
	       ((forms & FORM_PAREN) != 0 && str_starts(line, STR("(def"))) ||
	       ((forms & FORM_PAREN) != 0 && str_starts(line, STR("(ns "))) ||
	       ((forms & FORM_COMMAND) != 0 && is_command(line)) ||
	       ((forms & FORM_TYPE) != 0 && is_type(line)) ||
	       ((forms & FORM_ASSIGNED) != 0 && has(line, "function(") &&
		(has(line, "<-") || has(line, "=")));
}

/* Finds the places that an outline shows. */

/*
 * Keep at most MOST places: all of the outer levels, and, of the first level that has too
 * many, some from every part of the file.
 */
static void thin(struct outline *outline, size_t most)
{
	size_t levels[INDENT_MAX + 1] = {0};
	size_t level = 0, left = most, kept = 0, met = 0;

	if (outline->count <= most)
		return;
	for (size_t i = 0; i < outline->count; i++)
		levels[outline->places[i].indent]++;
	for (; level < INDENT_MAX && levels[level] <= left; level++)
		left -= levels[level];
	for (size_t i = 0; i < outline->count; i++) {
		struct outline_place *place = &outline->places[i];
		bool stays = place->indent < level;

		if (place->indent == level) {
			stays = met * left / levels[level] !=
				(met + 1) * left / levels[level];
			met++;
		}
		if (stays) {
			struct outline_place first = outline->places[kept];

			outline->places[kept++] = *place;
			*place = first;
		}
	}
	while (outline->count > kept)
		free(outline->places[--outline->count].text);
}

static void add_place(struct outline *outline, size_t number, unsigned indent,
		      struct str line)
{
	struct outline_place *place;
	size_t size = line.size < PLACE_TEXT_MAX
			      ? line.size
			      : text_character_border(line, PLACE_TEXT_MAX);

	outline->total++;
	if (outline->count == PLACES_MAX)
		thin(outline, PLACES_MAX / 2);
	if (outline->count == outline->room) {
		outline->room = outline->room > 0 ? 2 * outline->room : 64;
		outline->places = memory_grow(outline->places, outline->room,
					      sizeof(*outline->places));
	}
	place = &outline->places[outline->count++];
	*place = (struct outline_place){.number = number,
					.indent = indent < INDENT_MAX ? indent : INDENT_MAX,
					.text = memory_copy_str(str_part(line, 0, size))};
}

/* Is LINE "====" or "----", as long as the heading above it? */
static bool is_rule(struct str line, const char *before)
{
	if (before == NULL || line.size < 3 || strchr("=-~^\"*+#", line.data[0]) == NULL)
		return false;
	for (size_t i = 1; i < line.size; i++) {
		if (line.data[i] != line.data[0])
			return false;
	}
	return line.size + 2 >= strlen(before) && before[0] != '\0' && is_name(before[0]);
}

static void keep_before(struct outline *outline, struct str line)
{
	free(outline->before);
	outline->before = line.size < PLACE_TEXT_MAX ? memory_copy_str(line) : NULL;
}

void outline_add(struct outline *outline, size_t number, struct str line)
{
	unsigned indent = 0;
	size_t at = 0;
	struct str words;

	if (outline == NULL || line.size > LINE_LOOKED_AT)
		return;
	for (; at < line.size && (line.data[at] == ' ' || line.data[at] == '\t'); at++)
		indent += line.data[at] == '\t' ? TAB_WIDTH : 1;
	words = str_trim(line);
	if ((outline->language->forms & FORM_HASHES) != 0 && str_starts(words, STR("```"))) {
		outline->fenced = !outline->fenced;
		return;
	}
	if (outline->fenced)
		return;
	if ((outline->language->forms & FORM_RULE) != 0) {
		if (number > 1 && is_rule(words, outline->before))
			add_place(outline, number - 1, 0, str_of(outline->before));
		keep_before(outline, str_trim(line));
	}
	if (words.size > 0 && begins(outline, words, indent))
		add_place(outline, number, indent, str_part(line, 0, at + words.size));
}

size_t outline_count(const struct outline *outline)
{
	return outline != NULL ? outline->total : 0;
}

size_t outline_print(struct outline *outline, size_t most, size_t bytes, struct buf *out)
{
	size_t before;

	if (outline == NULL)
		return 0;
	before = out->size;
	for (;; most = outline->count * 3 / 4) {
		thin(outline, most);
		for (size_t i = 0; i < outline->count; i++) {
			buf_addf(out, "%zu\t", outline->places[i].number);
			shown_add(str_of(outline->places[i].text), out);
			buf_addc(out, '\n');
		}
		if (out->size - before <= bytes || outline->count == 0)
			return outline->count;
		buf_truncate(out, before);
	}
}

/* Recognises bytes that are no text by their beginning. */

enum { LOOKED_AT = 8192 };

static const struct {
	size_t at;
	struct str bytes;
	const char *name;
} kinds[] = {
	{0, {"\x89PNG\r\n\x1a\n", 8}, "PNG"},
	{0, {"\xff\xd8\xff", 3}, "JPEG"},
	{0, {"GIF8", 4}, "GIF"},
	{8, {"WEBP", 4}, "WebP"},
	{0, {"%PDF-", 5}, "PDF"},
	{0,
	 {"\x7f"
	  "ELF",
	  4},
	 "ELF"},
	{0, {"PK\x03\x04", 4}, "ZIP"},
	{0, {"\x1f\x8b", 2}, "gzip"},
	{0, {"BZh", 3}, "bzip2"},
	{0,
	 {"\xfd"
	  "7zXZ",
	  5},
	 "xz"},
	{0, {"\x28\xb5\x2f\xfd", 4}, "Zstandard"},
	{0, {"7z\xbc\xaf", 4}, "7z"},
	{0, {"SQLite format 3", 15}, "SQLite"},
	{0, {"\0asm", 4}, "WebAssembly"},
	{0, {"\xca\xfe\xba\xbe", 4}, "a Java class"},
	{0, {"!<arch>\n", 8}, "an archive of ar"},
	{257, {"ustar", 5}, "tar"},
	{0, {"OggS", 4}, "Ogg"},
	{0, {"ID3", 3}, "MP3"},
	{0, {"RIFF", 4}, "RIFF"},
	{4, {"ftyp", 4}, "MP4"},
	{0, {"PACK", 4}, "a pack of git"},
	{0, {"DIRC", 4}, "an index of git"},
	{0, {"\xff\xfe", 2}, "UTF-16"},
	{0, {"\xfe\xff", 2}, "UTF-16"},
};

static bool is_plain(struct str part)
{
	for (size_t i = 0; i < part.size; i++) {
		unsigned char byte = (unsigned char)part.data[i];

		if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') ||
		    byte == 0x7f)
			return false;
	}
	return text_is_utf8(part);
}

/*
 * Is START text, except for NUL bytes between its parts, as `find -print0` writes them?
 */
static bool is_parts(struct str start)
{
	struct str rest = str_part(start, 0, LOOKED_AT);
	size_t parts = 0, end;

	/* The last part may be cut in the middle of a character. */
	while ((end = str_find(rest, STR("\0"), 0)) != (size_t)-1) {
		if (end == 0 || !is_plain(str_part(rest, 0, end)))
			return false;
		rest = str_part(rest, end + 1, rest.size);
		parts++;
	}
	return parts > 0;
}

const char *outline_binary_kind(struct str start)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (str_starts(str_part(start, kinds[i].at, start.size), kinds[i].bytes))
			return kinds[i].name;
	}
	return is_parts(start) ? "text in parts that end with NUL" : NULL;
}
