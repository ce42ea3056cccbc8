#include "tools/web/html.h"

#include "base/library.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tools/web/nesting.h"
#include "tools/web/style.h"

#include <errno.h>
#include <gumbo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct gumbo_functions {
	GumboOutput *(*parse)(const GumboOptions *options, const char *text, size_t size);
	void (*destroy)(const GumboOptions *options, GumboOutput *output);
	const GumboOptions *defaults;
};

static bool load_gumbo(struct gumbo_functions *gumbo, struct err *err)
{
	static const struct library library = {"libgumbo.so.1", "0.10", "libgumbo1",
					       "reading a page of the web"};
	const struct library_function wanted[] = {
		{"gumbo_parse_with_options", &gumbo->parse},
		{"gumbo_destroy_output", &gumbo->destroy},
		{"kGumboDefaultOptions", &gumbo->defaults},
	};

	return library_load(&library, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

/* The meaning of an element for a reader. */

enum kind {
	KIND_INLINE,
	KIND_SKIPPED,
	KIND_BLOCK,
	KIND_HEADING,
	KIND_LIST,
	KIND_ITEM,
	KIND_TERM,
	KIND_MEANING,
	KIND_QUOTE,
	KIND_PRE,
	KIND_CODE,
	KIND_STRONG,
	KIND_EMPHASIS,
	KIND_DELETED,
	KIND_QUOTED,
	KIND_LINK,
	KIND_PICTURE,
	KIND_BREAK,
	KIND_RULE,
	KIND_TABLE,
	KIND_ROW,
	KIND_CELL,
	KIND_FRAME,
	KIND_NAVIGATION,
	KIND_BESIDE, /* a footer, an aside: not the content, unless within the main part */
};

static const uint8_t kinds[GUMBO_TAG_LAST] = {
	[GUMBO_TAG_SCRIPT] = KIND_SKIPPED,   [GUMBO_TAG_STYLE] = KIND_SKIPPED,
	[GUMBO_TAG_TEMPLATE] = KIND_SKIPPED, [GUMBO_TAG_HEAD] = KIND_SKIPPED,
	[GUMBO_TAG_TITLE] = KIND_SKIPPED,    [GUMBO_TAG_BUTTON] = KIND_SKIPPED,
	[GUMBO_TAG_INPUT] = KIND_SKIPPED,    [GUMBO_TAG_SELECT] = KIND_SKIPPED,
	[GUMBO_TAG_DATALIST] = KIND_SKIPPED, [GUMBO_TAG_TEXTAREA] = KIND_SKIPPED,
	[GUMBO_TAG_SVG] = KIND_SKIPPED,      [GUMBO_TAG_MATH] = KIND_SKIPPED,
	[GUMBO_TAG_CANVAS] = KIND_SKIPPED,   [GUMBO_TAG_OBJECT] = KIND_SKIPPED,
	[GUMBO_TAG_APPLET] = KIND_SKIPPED,   [GUMBO_TAG_EMBED] = KIND_SKIPPED,
	[GUMBO_TAG_AUDIO] = KIND_SKIPPED,    [GUMBO_TAG_VIDEO] = KIND_SKIPPED,
	[GUMBO_TAG_MAP] = KIND_SKIPPED,      [GUMBO_TAG_NOFRAMES] = KIND_SKIPPED,
	[GUMBO_TAG_NOEMBED] = KIND_SKIPPED,  [GUMBO_TAG_RP] = KIND_SKIPPED,
	[GUMBO_TAG_NAV] = KIND_NAVIGATION,   [GUMBO_TAG_FOOTER] = KIND_BESIDE,
	[GUMBO_TAG_ASIDE] = KIND_BESIDE,     [GUMBO_TAG_H1] = KIND_HEADING,
	[GUMBO_TAG_H2] = KIND_HEADING,       [GUMBO_TAG_H3] = KIND_HEADING,
	[GUMBO_TAG_H4] = KIND_HEADING,       [GUMBO_TAG_H5] = KIND_HEADING,
	[GUMBO_TAG_H6] = KIND_HEADING,       [GUMBO_TAG_UL] = KIND_LIST,
	[GUMBO_TAG_OL] = KIND_LIST,          [GUMBO_TAG_MENU] = KIND_LIST,
	[GUMBO_TAG_DIR] = KIND_LIST,         [GUMBO_TAG_LI] = KIND_ITEM,
	[GUMBO_TAG_DT] = KIND_TERM,          [GUMBO_TAG_DD] = KIND_MEANING,
	[GUMBO_TAG_BLOCKQUOTE] = KIND_QUOTE, [GUMBO_TAG_PRE] = KIND_PRE,
	[GUMBO_TAG_LISTING] = KIND_PRE,      [GUMBO_TAG_XMP] = KIND_PRE,
	[GUMBO_TAG_PLAINTEXT] = KIND_PRE,    [GUMBO_TAG_CODE] = KIND_CODE,
	[GUMBO_TAG_KBD] = KIND_CODE,         [GUMBO_TAG_SAMP] = KIND_CODE,
	[GUMBO_TAG_TT] = KIND_CODE,          [GUMBO_TAG_STRONG] = KIND_STRONG,
	[GUMBO_TAG_B] = KIND_STRONG,         [GUMBO_TAG_EM] = KIND_EMPHASIS,
	[GUMBO_TAG_I] = KIND_EMPHASIS,       [GUMBO_TAG_DEL] = KIND_DELETED,
	[GUMBO_TAG_S] = KIND_DELETED,        [GUMBO_TAG_STRIKE] = KIND_DELETED,
	[GUMBO_TAG_Q] = KIND_QUOTED,         [GUMBO_TAG_A] = KIND_LINK,
	[GUMBO_TAG_IMG] = KIND_PICTURE,      [GUMBO_TAG_BR] = KIND_BREAK,
	[GUMBO_TAG_HR] = KIND_RULE,          [GUMBO_TAG_TABLE] = KIND_TABLE,
	[GUMBO_TAG_TR] = KIND_ROW,           [GUMBO_TAG_TD] = KIND_CELL,
	[GUMBO_TAG_TH] = KIND_CELL,          [GUMBO_TAG_IFRAME] = KIND_FRAME,
	[GUMBO_TAG_FRAME] = KIND_FRAME,      [GUMBO_TAG_P] = KIND_BLOCK,
	[GUMBO_TAG_DIV] = KIND_BLOCK,        [GUMBO_TAG_SECTION] = KIND_BLOCK,
	[GUMBO_TAG_ARTICLE] = KIND_BLOCK,    [GUMBO_TAG_MAIN] = KIND_BLOCK,
	[GUMBO_TAG_HEADER] = KIND_BLOCK,     [GUMBO_TAG_HGROUP] = KIND_BLOCK,
	[GUMBO_TAG_ADDRESS] = KIND_BLOCK,    [GUMBO_TAG_FIGURE] = KIND_BLOCK,
	[GUMBO_TAG_FIGCAPTION] = KIND_BLOCK, [GUMBO_TAG_DETAILS] = KIND_BLOCK,
	[GUMBO_TAG_SUMMARY] = KIND_BLOCK,    [GUMBO_TAG_DL] = KIND_BLOCK,
	[GUMBO_TAG_FORM] = KIND_BLOCK,       [GUMBO_TAG_FIELDSET] = KIND_BLOCK,
	[GUMBO_TAG_LEGEND] = KIND_BLOCK,     [GUMBO_TAG_CENTER] = KIND_BLOCK,
	[GUMBO_TAG_CAPTION] = KIND_BLOCK,    [GUMBO_TAG_THEAD] = KIND_BLOCK,
	[GUMBO_TAG_TBODY] = KIND_BLOCK,      [GUMBO_TAG_TFOOT] = KIND_BLOCK,
	[GUMBO_TAG_BODY] = KIND_BLOCK,       [GUMBO_TAG_HTML] = KIND_BLOCK,
};

/* Attributes. */

static const char *attribute(const GumboElement *element, const char *name)
{
	for (unsigned i = 0; i < element->attributes.length; i++) {
		const GumboAttribute *at = element->attributes.data[i];

		if (strcasecmp(at->name, name) == 0)
			return at->value;
	}
	return NULL;
}

static bool attribute_is(const GumboElement *element, const char *name, const char *value)
{
	const char *is = attribute(element, name);

	return is != NULL && strcasecmp(is, value) == 0;
}

/* Was ELEMENT hidden by hide_unseen? */
static bool is_hidden(const GumboElement *element)
{
	return element->tag == GUMBO_TAG_TEMPLATE;
}

static enum kind kind_of(const GumboNode *node)
{
	const GumboElement *element = &node->v.element;
	const enum kind kind =
		element->tag < GUMBO_TAG_LAST ? kinds[element->tag] : KIND_INLINE;

	/* The tag of an element of a picture or a formula has another meaning there. */
	if (element->tag_namespace != GUMBO_NAMESPACE_HTML)
		return KIND_SKIPPED;
	if (kind == KIND_BLOCK || kind == KIND_INLINE || kind == KIND_LIST) {
		const char *role = attribute(element, "role");

		if (role != NULL && str_among("navigation search menu menubar toolbar dialog "
					      "alertdialog",
					      str_of(role)))
			return KIND_NAVIGATION;
		if (role != NULL &&
		    str_among("banner contentinfo complementary", str_of(role)))
			return KIND_BESIDE;
	}
	return kind;
}

static const GumboVector *children_of(const GumboNode *node)
{
	if (node->type == GUMBO_NODE_ELEMENT)
		return &node->v.element.children;
	return node->type == GUMBO_NODE_DOCUMENT ? &node->v.document.children : NULL;
}

/* The node behind NODE and all that is in it, within ROOT; NULL: none. */
static const GumboNode *next_beside(const GumboNode *root, const GumboNode *node)
{
	while (node != root) {
		const GumboVector *beside = children_of(node->parent);

		if (node->index_within_parent + 1 < beside->length)
			return beside->data[node->index_within_parent + 1];
		node = node->parent;
	}
	return NULL;
}

/* The node behind NODE in the order of the text, within ROOT; NULL: none. */
static const GumboNode *next_node(const GumboNode *root, const GumboNode *node)
{
	const GumboVector *children = children_of(node);

	if (children != NULL && children->length > 0)
		return children->data[0];
	return next_beside(root, node);
}

static bool is_element(const GumboNode *node)
{
	return node->type == GUMBO_NODE_ELEMENT;
}

static bool is_text(const GumboNode *node)
{
	return node->type == GUMBO_NODE_TEXT || node->type == GUMBO_NODE_CDATA ||
	       node->type == GUMBO_NODE_WHITESPACE;
}

/* Characters. */

enum sight { SIGHT_SEEN, SIGHT_BLANK, SIGHT_NONE };

/*
 * Is CHARACTER seen? Not seen are control characters, the soft hyphen, characters of zero width
 * (U+200B to U+200F, U+2060 to U+206F, U+FEFF, U+180E, U+034F), of direction (U+202A to U+202E,
 * U+061C), the tags (U+E0000 to U+E0FFF), fillers (U+115F, U+1160, U+3164, U+FFA0) and selectors
 * of variants (U+FE00 to U+FE0E).
 */
static enum sight sight_of(struct str character)
{
	const unsigned char *b = (const unsigned char *)character.data;
	uint32_t code = b[0];

	if (character.size == 1)
		return text_is_web_blank(character.data[0]) ? SIGHT_BLANK
		       : code < ' ' || code == 0x7f         ? SIGHT_NONE
							    : SIGHT_SEEN;
	if (character.size == 2)
		code = (b[0] & 0x1fU) << 6 | (b[1] & 0x3fU);
	else if (character.size == 3)
		code = (b[0] & 0x0fU) << 12 | (b[1] & 0x3fU) << 6 | (b[2] & 0x3fU);
	else
		code = (b[0] & 0x07U) << 18 | (b[1] & 0x3fU) << 12 | (b[2] & 0x3fU) << 6 |
		       (b[3] & 0x3fU);
	if (code == 0xa0 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
	    code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000)
		return SIGHT_BLANK;
	if (code < 0xa0 || code == 0xad || code == 0x34f || code == 0x61c || code == 0x180e ||
	    (code >= 0x200b && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
	    (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	    (code >= 0xe0000 && code <= 0xe0fff) || code == 0x115f || code == 0x1160 ||
	    code == 0x3164 || code == 0xffa0 || (code >= 0xfe00 && code <= 0xfe0e))
		return SIGHT_NONE;
	return SIGHT_SEEN;
}

/* Take the next character of *TEXT, which is UTF-8. */
static struct str take_character(struct str *text)
{
	const size_t size = text_utf8_length(*text);
	const struct str character = str_part(*text, 0, size > 0 ? size : 1);

	*text = str_part(*text, character.size, text->size);
	return character;
}

/* The writer. */

struct open {
	const GumboNode *node;
	enum kind kind;
	const char *ending; /* behind what it holds; NULL: nothing */
	size_t waits_at;    /* in `waiting`: where its beginning stands … */
	uint64_t began;     /* … while no text has come since */
	size_t prefix;      /* bytes of the prefix before it */
	size_t start;       /* in the output */
	size_t number;      /* of a list: of its next item; 0: it has none */
};

struct writer {
	const struct html_options *options;
	struct buf *out;
	size_t begin;       /* where our own output begins in OUT */
	struct buf prefix;  /* of each line: of quotes and lists */
	struct buf marker;  /* of an item whose first line has not come */
	size_t marker_room; /* bytes of the prefix that the marker stands for */
	struct buf waiting; /* beginnings ("**", "[") whose text has not come */
	uint64_t texts;     /* how many texts were written */
	unsigned ends;      /* line ends that are wanted before the next text */
	bool blank;         /* a blank is wanted before the next text */
	bool flat;          /* a cell of a table: one line */
	bool within; /* the main part of a page is written: what stands beside it there too */
	unsigned lists; /* that are open */
	struct open open[HTML_DEPTH_MAX];
	size_t depth;
};

static void writer_init(struct writer *writer, const struct html_options *options,
			struct buf *out)
{
	*writer = (struct writer){.options = options, .out = out, .begin = out->size};
	buf_init(&writer->prefix, 4 * HTML_DEPTH_MAX);
	buf_init(&writer->marker, 64);
	buf_init(&writer->waiting, 8 * HTML_DEPTH_MAX);
}

static void writer_fini(struct writer *writer)
{
	buf_fini(&writer->prefix);
	buf_fini(&writer->marker);
	buf_fini(&writer->waiting);
}

static void want_ends(struct writer *writer, unsigned ends)
{
	writer->ends = writer->ends > ends ? writer->ends : ends;
	writer->blank = false;
}

/* Blocks stand apart; within a list they follow each other. */
static void want_block(struct writer *writer)
{
	want_ends(writer, writer->lists > 0 ? 1 : 2);
}

static void begin_line(struct writer *writer)
{
	struct str prefix = buf_str(&writer->prefix);

	if (writer->marker.size > 0) {
		(void)buf_addstr(writer->out,
				 str_part(prefix, 0, prefix.size - writer->marker_room));
		(void)buf_addstr(writer->out, buf_str(&writer->marker));
		buf_clear(&writer->marker);
		return;
	}
	(void)buf_addstr(writer->out, prefix);
}

static void end_line(struct writer *writer)
{
	while (writer->out->size > writer->begin &&
	       writer->out->data[writer->out->size - 1] == ' ')
		buf_truncate(writer->out, writer->out->size - 1);
	(void)buf_addc(writer->out, '\n');
}

/* Write the line ends, blanks and beginnings that the next text wants before it. */
static void begin_text(struct writer *writer)
{
	const bool is_first = writer->out->size == writer->begin;

	if (writer->flat && writer->ends > 0) {
		writer->blank = true;
		writer->ends = 0;
	}
	if (is_first || writer->ends > 0) {
		for (unsigned i = 0; !is_first && i < writer->ends; i++) {
			end_line(writer);
			if (i + 1 < writer->ends)
				(void)buf_addstr(writer->out, buf_str(&writer->prefix));
		}
		begin_line(writer);
	} else if (writer->blank) {
		(void)buf_addc(writer->out, ' ');
	}
	writer->ends = 0;
	writer->blank = false;
	if (writer->waiting.size > 0) {
		(void)buf_addstr(writer->out, buf_str(&writer->waiting));
		buf_clear(&writer->waiting);
	}
	writer->texts++;
}

static void put(struct writer *writer, struct str text)
{
	begin_text(writer);
	(void)buf_addstr(writer->out, text);
}

static void put_character(struct writer *writer, struct str character)
{
	if (writer->ends > 0 || writer->blank || writer->waiting.size > 0 ||
	    writer->out->size == writer->begin)
		begin_text(writer);
	(void)buf_addstr(writer->out, character);
	writer->texts++;
}

static void put_text(struct writer *writer, const char *text)
{
	struct str rest = str_of(text);

	while (rest.size > 0) {
		const struct str character = take_character(&rest);
		const enum sight sight = sight_of(character);

		if (sight == SIGHT_SEEN)
			put_character(writer, character);
		else if (sight == SIGHT_BLANK && writer->ends == 0 &&
			 writer->out->size > writer->begin)
			writer->blank = true;
	}
}

/* Append the text below NODE as it is, with each <br> as a line end. */
static void gather(const GumboNode *node, struct buf *text)
{
	for (const GumboNode *at = node; at != NULL;) {
		const bool skips =
			is_element(at) && at != node && kind_of(at) == KIND_SKIPPED;

		if (is_element(at) && at->v.element.tag == GUMBO_TAG_BR)
			(void)buf_addc(text, '\n');
		if (is_text(at)) {
			struct str rest = str_of(at->v.text.text);

			while (rest.size > 0) {
				const struct str character = take_character(&rest);
				const enum sight sight = sight_of(character);

				const char c = character.data[0];

				/* A line end and a tab are what code is laid out with; a form
				 * feed or a "&#13;" would move the cursor of a terminal. */
				if (sight == SIGHT_SEEN || c == '\n' || c == '\t')
					(void)buf_addstr(text, character);
				else if (sight == SIGHT_BLANK)
					(void)buf_addc(text, ' ');
			}
		}
		at = skips ? next_beside(node, at) : next_node(node, at);
	}
}

/* The longest run of "`" in TEXT. */
static size_t longest_run(struct str text)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < text.size; i++) {
		run = text.data[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void add_fence(size_t count, struct buf *out)
{
	while (count-- > 0)
		(void)buf_addc(out, '`');
}

enum { CODE_MAX = 4 << 20, FENCE_LEAST = 3, LANGUAGE_MAX = 20 };

/* The language that a class of NODE, or of what is in it, names: "language-c", "lang-c". */
static void add_language(const GumboNode *node, struct buf *out)
{
	for (unsigned depth = 0; depth < 2 && node != NULL; depth++) {
		const char *names = attribute(&node->v.element, "class");
		struct str rest = str_of(names != NULL ? names : ""), word;

		while (str_next_word(&rest, &word)) {
			const size_t skip =
				str_starts(word, STR("language-")) ? strlen("language-")
				: str_starts(word, STR("lang-"))   ? strlen("lang-")
								   : 0;
			const struct str name = str_part(word, skip, word.size);

			if (skip > 0 && name.size <= LANGUAGE_MAX && longest_run(name) == 0) {
				text_add_name(out, name);
				return;
			}
		}
		node = node->v.element.children.length > 0 &&
				       is_element(node->v.element.children.data[0])
			       ? node->v.element.children.data[0]
			       : NULL;
	}
}

static void write_pre(struct writer *writer, const GumboNode *node)
{
	struct buf code, fence;
	struct str rest, line;

	buf_init(&code, CODE_MAX);
	buf_init(&fence, CODE_MAX);
	gather(node, &code);
	rest = buf_str(&code);
	while (rest.size > 0 && text_is_web_blank(rest.data[rest.size - 1]))
		rest.size--;
	if (str_trim(rest).size > 0) {
		const size_t run = longest_run(rest);

		want_block(writer);
		add_fence(run < FENCE_LEAST ? FENCE_LEAST : run + 1, &fence);
		if (!writer->options->plain) {
			put(writer, buf_str(&fence));
			add_language(node, writer->out);
			want_ends(writer, 1);
		}
		while (str_next_line(&rest, &line)) {
			put(writer, line);
			want_ends(writer, 1);
		}
		if (!writer->options->plain)
			put(writer, buf_str(&fence));
		want_block(writer);
	}
	buf_fini(&fence);
	buf_fini(&code);
}

static void write_code(struct writer *writer, const GumboNode *node)
{
	struct buf code, words;
	struct str rest, word;

	buf_init(&code, CODE_MAX);
	buf_init(&words, CODE_MAX);
	gather(node, &code);
	for (size_t i = 0; i < code.size; i++)
		code.data[i] = text_is_web_blank(code.data[i]) ? ' ' : code.data[i];
	rest = buf_str(&code);
	while (str_next_word(&rest, &word)) {
		(void)buf_adds(&words, words.size > 0 ? " " : "");
		(void)buf_addstr(&words, word);
	}
	if (words.size > 0) {
		const size_t run = longest_run(buf_str(&words));
		const bool edges =
			words.data[0] == '`' || words.data[words.size - 1] == '`';
		const size_t fence = writer->options->plain ? 0 : run + 1;

		if (code.size > 0 && text_is_web_blank(code.data[0]) && writer->ends == 0)
			writer->blank = true;
		begin_text(writer);
		add_fence(fence, writer->out);
		(void)buf_addf(writer->out, "%s%s%s", edges && fence > 0 ? " " : "",
			       words.data, edges && fence > 0 ? " " : "");
		add_fence(fence, writer->out);
		writer->blank = text_is_web_blank(code.data[code.size - 1]);
	}
	buf_fini(&words);
	buf_fini(&code);
}

static bool resolve(struct writer *writer, const char *href, struct buf *out)
{
	return href != NULL && href[0] != '\0' && href[0] != '#' &&
	       writer->options->resolve != NULL &&
	       writer->options->resolve(writer->options->context, href, out);
}

enum { ADDRESS_MAX = 8 << 10, WORDS_MAX = 2000 };

static void write_picture(struct writer *writer, const GumboNode *node)
{
	const char *words = attribute(&node->v.element, "alt");
	struct buf address;

	if (words == NULL || str_trim(str_of(words)).size == 0 || strlen(words) > WORDS_MAX)
		return;
	buf_init(&address, ADDRESS_MAX);
	if (writer->options->plain ||
	    !resolve(writer, attribute(&node->v.element, "src"), &address)) {
		put(writer, STR("["));
		put_text(writer, words);
		(void)buf_addc(writer->out, ']');
	} else {
		put(writer, STR("!["));
		put_text(writer, words);
		(void)buf_addf(writer->out, "](%s)", address.data);
	}
	buf_fini(&address);
}

static void write_frame(struct writer *writer, const GumboNode *node)
{
	struct buf address;

	buf_init(&address, ADDRESS_MAX);
	if (!writer->options->plain &&
	    resolve(writer, attribute(&node->v.element, "src"), &address)) {
		want_block(writer);
		put(writer, STR("[frame: "));
		(void)buf_addf(writer->out, "%s]", address.data);
		want_block(writer);
	}
	buf_fini(&address);
}

/* Tables of data. */

struct table {
	size_t rows, columns;
};

static void write_below(struct writer *writer, const GumboNode *root);

static const GumboNode *next_cell(const GumboNode *row, const GumboNode *cell)
{
	const GumboVector *cells = children_of(row);
	unsigned at = cell != NULL ? (unsigned)cell->index_within_parent + 1 : 0;

	for (; at < cells->length; at++) {
		const GumboNode *node = cells->data[at];

		if (is_element(node) && kind_of(node) == KIND_CELL)
			return node;
	}
	return NULL;
}

static size_t span_of(const GumboNode *cell)
{
	const char *text = attribute(&cell->v.element, "colspan");
	const long span = text != NULL ? strtol(text, NULL, 10) : 1;

	return span > 1 && span <= HTML_COLUMNS_MAX ? (size_t)span : 1;
}

/* Is TABLE one of data, and not a way to lay a page out? */
static bool is_of_data(const GumboNode *table, struct table *size)
{
	*size = (struct table){0};
	if (attribute_is(&table->v.element, "role", "presentation") ||
	    attribute_is(&table->v.element, "role", "none"))
		return false;
	for (const GumboNode *at = next_node(table, table); at != NULL;
	     at = next_node(table, at)) {
		const enum kind kind = is_element(at) ? kind_of(at) : KIND_INLINE;
		size_t columns = 0;

		if (kind == KIND_TABLE || kind == KIND_PRE || kind == KIND_HEADING ||
		    kind == KIND_FRAME)
			return false;
		if (kind != KIND_ROW)
			continue;
		for (const GumboNode *cell = next_cell(at, NULL); cell != NULL;
		     cell = next_cell(at, cell))
			columns += span_of(cell);
		size->rows += columns > 0;
		size->columns = columns > size->columns ? columns : size->columns;
	}
	return size->rows > 1 && size->columns > 1 && size->columns <= HTML_COLUMNS_MAX;
}

static void write_cell(struct writer *writer, const GumboNode *cell)
{
	struct buf text;
	struct str rest;
	struct writer *inner = memory_alloc(sizeof(*inner));

	buf_init(&text, CODE_MAX);
	writer_init(inner, writer->options, &text);
	inner->flat = true;
	inner->within = writer->within;
	write_below(inner, cell);
	rest = str_trim(buf_str(&text));
	for (size_t i = 0; i < rest.size; i++) {
		if (rest.data[i] == '|' && !writer->options->plain)
			(void)buf_addc(writer->out, '\\');
		(void)buf_addc(writer->out, rest.data[i]);
	}
	writer_fini(inner);
	free(inner);
	buf_fini(&text);
}

static void write_row(struct writer *writer, const GumboNode *row, size_t columns)
{
	const bool plain = writer->options->plain;
	size_t column = 0;

	put(writer, plain ? STR("") : STR("|"));
	for (const GumboNode *cell = row != NULL ? next_cell(row, NULL) : NULL;
	     cell != NULL; cell = next_cell(row, cell)) {
		(void)buf_adds(writer->out, plain ? column > 0 ? "\t" : "" : " ");
		write_cell(writer, cell);
		for (size_t span = span_of(cell); span > 0 && column < columns;
		     span--, column++)
			(void)buf_adds(writer->out, plain      ? span > 1 ? "\t" : ""
						    : span > 1 ? " | "
							       : " |");
	}
	for (; !plain && column < columns; column++)
		(void)buf_adds(writer->out, " |");
	want_ends(writer, 1);
}

static bool is_head(const GumboNode *row)
{
	for (const GumboNode *cell = next_cell(row, NULL); cell != NULL;
	     cell = next_cell(row, cell)) {
		if (cell->v.element.tag != GUMBO_TAG_TH)
			return row->parent->v.element.tag == GUMBO_TAG_THEAD;
	}
	return true;
}

static void write_table(struct writer *writer, const GumboNode *table,
			const struct table *size)
{
	bool began = false;

	want_block(writer);
	for (const GumboNode *at = next_node(table, table); at != NULL;
	     at = next_node(table, at)) {
		const enum kind kind = is_element(at) ? kind_of(at) : KIND_INLINE;

		if (is_element(at) && at->v.element.tag == GUMBO_TAG_CAPTION &&
		    kind != KIND_SKIPPED) {
			write_below(writer, at);
			want_block(writer);
		}
		if (kind != KIND_ROW || next_cell(at, NULL) == NULL)
			continue;
		if (!began && !writer->options->plain) {
			const bool head = is_head(at);

			write_row(writer, head ? at : NULL, size->columns);
			put(writer, STR("|"));
			for (size_t i = 0; i < size->columns; i++)
				(void)buf_adds(writer->out, " --- |");
			want_ends(writer, 1);
			began = true;
			if (head)
				continue;
		}
		began = true;
		write_row(writer, at, size->columns);
	}
	want_block(writer);
}

/* Elements that hold others. */

static const char strong[] = "**", emphasis[] = "*", deleted[] = "~~", linked[] = "[";

static void wait_for_text(struct writer *writer, const char *beginning)
{
	(void)buf_adds(&writer->waiting, beginning);
}

/* MARK is written once, however often elements that want it stand in each other. */
static void open_mark(struct writer *writer, struct open *open, const char *mark)
{
	for (size_t i = 0; i + 1 < writer->depth; i++) {
		if (writer->open[i].ending == mark)
			return;
	}
	if (writer->options->plain)
		return;
	wait_for_text(writer, mark);
	open->ending = mark;
}

enum { LISTS_MOVED = 12 };

static void open_item(struct writer *writer, struct open *open)
{
	struct open *list = NULL;

	for (size_t i = writer->depth - 1; i > 0 && list == NULL; i--) {
		if (writer->open[i - 1].kind == KIND_LIST)
			list = &writer->open[i - 1];
	}
	want_ends(writer, 1);
	buf_clear(&writer->marker);
	if (list != NULL && list->number > 0)
		(void)buf_addf(&writer->marker, "%zu. ", list->number++);
	else
		(void)buf_adds(&writer->marker, "- ");
	open->prefix = writer->prefix.size;
	/* Deeper ones are not moved to the right any more. */
	writer->marker_room = writer->lists <= LISTS_MOVED ? writer->marker.size : 0;
	(void)buf_addf(&writer->prefix, "%*s", (int)writer->marker_room, "");
}

static size_t first_number(const GumboElement *list)
{
	const char *start = attribute(list, "start");
	const long number = start != NULL ? strtol(start, NULL, 10) : 1;

	if (list->tag != GUMBO_TAG_OL)
		return 0;
	return number >= 1 && number < 1000000 ? (size_t)number : 1;
}

/* Write what stands before the text of NODE; OPEN is its entry. */
static void open_element(struct writer *writer, struct open *open)
{
	static const char *const marks[] = {"# ",    "## ",    "### ",
					    "#### ", "##### ", "###### "};
	const GumboElement *element = &open->node->v.element;

	switch (open->kind) {
	case KIND_HEADING:
		want_block(writer);
		if (!writer->options->plain && !writer->flat)
			wait_for_text(writer, marks[element->tag - GUMBO_TAG_H1]);
		break;
	case KIND_LIST:
		want_block(writer);
		open->number = first_number(element);
		writer->lists++;
		break;
	case KIND_ITEM:
		open_item(writer, open);
		break;
	case KIND_TERM:
		want_block(writer);
		open_mark(writer, open, strong);
		break;
	case KIND_MEANING:
		want_ends(writer, 1);
		if (!writer->options->plain)
			wait_for_text(writer, ": ");
		break;
	case KIND_QUOTE:
		want_block(writer);
		(void)buf_adds(&writer->prefix, writer->options->plain ? "" : "> ");
		break;
	case KIND_STRONG:
		open_mark(writer, open, strong);
		break;
	case KIND_EMPHASIS:
		open_mark(writer, open, emphasis);
		break;
	case KIND_DELETED:
		open_mark(writer, open, deleted);
		break;
	case KIND_QUOTED:
		wait_for_text(writer, "\"");
		open->ending = "\"";
		break;
	case KIND_LINK:
		open_mark(writer, open, linked);
		break;
	case KIND_CELL:
		want_ends(writer, 1);
		break;
	case KIND_BLOCK:
	case KIND_BESIDE:
	case KIND_ROW:
	case KIND_TABLE:
		want_block(writer);
		if (element->tag == GUMBO_TAG_DETAILS && attribute(element, "open") == NULL)
			wait_for_text(writer, "[folded] ");
		break;
	default:
		break;
	}
}

/* Behind the text of a link: its address, or nothing where it has none. */
static void close_link(struct writer *writer, const struct open *open)
{
	struct buf address;
	const char *begin = NULL;
	bool resolved;

	buf_init(&address, ADDRESS_MAX);
	resolved = resolve(writer, attribute(&open->node->v.element, "href"), &address);
	for (size_t i = open->start; i < writer->out->size && begin == NULL; i++) {
		if (writer->out->data[i] == '[')
			begin = &writer->out->data[i];
	}
	if (begin != NULL && resolved &&
	    memchr(begin, '\n', writer->out->size - (size_t)(begin - writer->out->data)) ==
		    NULL)
		(void)buf_addf(writer->out, "](%s)", address.data);
	else if (begin != NULL) {
		buf_remove(writer->out, (size_t)(begin - writer->out->data), 1);
		if (resolved)
			(void)buf_addf(writer->out, " (%s)", address.data);
	}
	buf_fini(&address);
}

static void close_element(struct writer *writer, const struct open *open)
{
	if (open->ending != NULL && open->began == writer->texts)
		buf_truncate(&writer->waiting, open->waits_at);
	else if (open->ending != NULL && open->kind == KIND_LINK)
		close_link(writer, open);
	else if (open->ending != NULL)
		(void)buf_adds(writer->out, open->ending);
	switch (open->kind) {
	case KIND_LIST:
		writer->lists--;
		want_block(writer);
		break;
	case KIND_ITEM:
		buf_clear(&writer->marker);
		want_ends(writer, 1);
		break;
	case KIND_MEANING:
	case KIND_TERM:
	case KIND_CELL:
		if (open->began == writer->texts)
			buf_truncate(&writer->waiting, open->waits_at);
		want_ends(writer, 1);
		break;
	case KIND_HEADING:
	case KIND_BLOCK:
		if (open->began == writer->texts)
			buf_truncate(&writer->waiting, open->waits_at);
		want_block(writer);
		break;
	case KIND_QUOTE:
	case KIND_BESIDE:
	case KIND_ROW:
	case KIND_TABLE:
		want_block(writer);
		break;
	default:
		break;
	}
	buf_truncate(&writer->prefix, open->prefix);
}

/* Write NODE where it is a whole by itself. False: what is in it is walked. */
static bool write_whole(struct writer *writer, const GumboNode *node, enum kind kind)
{
	struct table size;

	switch (kind) {
	case KIND_SKIPPED:
		return true;
	case KIND_PRE:
		write_pre(writer, node);
		return true;
	case KIND_CODE:
		write_code(writer, node);
		return true;
	case KIND_PICTURE:
		write_picture(writer, node);
		return true;
	case KIND_FRAME:
		write_frame(writer, node);
		return true;
	case KIND_BREAK:
		want_ends(writer, writer->ends > 0 ? 2 : 1);
		return true;
	case KIND_RULE:
		want_block(writer);
		if (!writer->options->plain && !writer->flat)
			put(writer, STR("---"));
		want_block(writer);
		return true;
	case KIND_TABLE:
		if (writer->flat || !is_of_data(node, &size))
			return false;
		write_table(writer, node, &size);
		return true;
	default:
		return false;
	}
}

static void enter(struct writer *writer, const GumboNode *node, enum kind kind)
{
	struct open *open;

	if (writer->depth == HTML_DEPTH_MAX)
		return;
	open = &writer->open[writer->depth++];
	*open = (struct open){
		.node = node,
		.kind = kind,
		.waits_at = writer->waiting.size,
		.began = writer->texts,
		.prefix = writer->prefix.size,
		.start = writer->out->size,
	};
	open_element(writer, open);
}

static void leave(struct writer *writer, const GumboNode *node)
{
	if (writer->depth > 0 && writer->open[writer->depth - 1].node == node)
		close_element(writer, &writer->open[--writer->depth]);
}

/* Write what is below ROOT, without recursion but for the cells of a table. */
static void write_below(struct writer *writer, const GumboNode *root)
{
	const GumboNode *at = root;

	while (!writer->out->overflowed) {
		const GumboVector *children = children_of(at);
		const enum kind kind =
			at != root && is_element(at) ? kind_of(at) : KIND_INLINE;
		bool whole = false;

		if (is_text(at))
			put_text(writer, at->v.text.text);
		else if (at != root && is_element(at)) {
			whole = kind == KIND_NAVIGATION ||
				(kind == KIND_BESIDE && !writer->within) ||
				write_whole(writer, at, kind);
			if (!whole && kind != KIND_INLINE)
				enter(writer, at, kind);
		}
		if (!whole && children != NULL && children->length > 0) {
			at = children->data[0];
			continue;
		}
		if (!whole)
			leave(writer, at);
		while (at != root) {
			const GumboVector *beside = children_of(at->parent);

			if (at->index_within_parent + 1 < beside->length) {
				at = beside->data[at->index_within_parent + 1];
				break;
			}
			at = at->parent;
			if (at != root)
				leave(writer, at);
		}
		if (at == root)
			return;
	}
}

/*
 * Text that is not seen. A hidden element becomes a <template>, which nobody shows, and a
 * hidden text a comment, so that everything behind this asks only once.
 */

struct hiding {
	struct styles *styles;
	size_t parts; /* that a style sheet hides, and that have text */
	bool is_full;
};

/* An element on the way to the one that is looked at. */
struct around {
	struct style_element element;
	bool visibility, size, colour; /* texts are not seen because of it */
};

static bool has_text(const GumboNode *root)
{
	for (const GumboNode *at = root; at != NULL; at = next_node(root, at)) {
		if (is_text(at) && str_trim(str_of(at->v.text.text)).size > 0)
			return true;
	}
	return false;
}

/* The name of ELEMENT as the page has it; empty where gumbo has made the element. */
static struct str name_of(const GumboElement *element)
{
	const struct str text = {element->original_tag.data, element->original_tag.length};
	size_t end = 1;

	while (end < text.size && !text_is_web_blank(text.data[end]) &&
	       text.data[end] != '/' && text.data[end] != '>')
		end++;
	return str_part(text, 1, text.size > 0 ? end - 1 : 0);
}

static bool hides_itself(const GumboElement *element)
{
	if (attribute(element, "hidden") != NULL ||
	    attribute_is(element, "aria-hidden", "true"))
		return true;
	/* An element that gumbo does not know is known by its text. */
	return element->tag == GUMBO_TAG_UNKNOWN && attribute(element, "open") == NULL &&
	       str_is(name_of(element), "dialog");
}

static bool is_unseen(enum style_sight sight, bool around)
{
	return sight == STYLE_INHERITED ? around : sight == STYLE_UNSEEN;
}

/*
 * Hide NODE, an element within AROUND, if it is not seen; HERE becomes what is around its
 * own.
 */
static void hide_element(struct hiding *hiding, GumboNode *node,
			 const struct around *around, struct around *here)
{
	GumboElement *element = &node->v.element;
	/* Scripts of honest pages show the whole page once they run; here none runs. */
	const bool is_page =
		element->tag == GUMBO_TAG_HTML || element->tag == GUMBO_TAG_BODY;
	struct style_look look = {0};

	style_name(&here->element, name_of(element), str_of(attribute(element, "id")),
		   str_of(attribute(element, "class")),
		   around != NULL ? &around->element : NULL);
	here->visibility = here->size = here->colour = false;
	if (is_page)
		return;
	look = style_look(hiding->styles, &here->element,
			  str_of(attribute(element, "style")));
	if (around != NULL) {
		here->visibility = is_unseen(look.visibility, around->visibility);
		here->size = is_unseen(look.size, around->size);
		here->colour = is_unseen(look.colour, around->colour);
	}
	if (look.by_rule && has_text(node))
		hiding->parts++;
	if (look.hidden || hides_itself(element) ||
	    ((here->visibility || here->size) &&
	     (kind_of(node) == KIND_PICTURE || kind_of(node) == KIND_FRAME)))
		element->tag = GUMBO_TAG_TEMPLATE;
}

static void read_sheets(const GumboNode *root, struct styles *styles)
{
	for (const GumboNode *at = root; at != NULL; at = next_node(root, at)) {
		const char *media;
		struct buf text;

		if (!is_element(at) || at->v.element.tag != GUMBO_TAG_STYLE)
			continue;
		media = attribute(&at->v.element, "media");
		if (media != NULL && media[0] != '\0' &&
		    !str_among("all screen", str_trim(str_of(media))))
			continue;
		buf_init(&text, STYLE_BYTES);
		for (size_t i = 0; i < at->v.element.children.length; i++) {
			const GumboNode *child = at->v.element.children.data[i];

			if (is_text(child))
				(void)buf_adds(&text, child->v.text.text);
		}
		style_add(styles, buf_str(&text));
		buf_fini(&text);
	}
}

/* Hide in the tree below ROOT everything that a reader of the page would not see. */
static void hide_unseen(GumboNode *root, struct hiding *hiding)
{
	struct around *way = memory_array(NESTING_MAX, sizeof(*way));
	GumboNode *at = root;
	size_t depth = 0; /* elements around AT */

	hiding->styles = style_new();
	read_sheets(root, hiding->styles);
	for (;;) {
		const size_t last = depth < NESTING_MAX ? depth : NESTING_MAX - 1;
		const struct around *around =
			depth > 0 ? &way[depth - 1 < last ? depth - 1 : last] : NULL;
		bool below = false;

		if (is_element(at)) {
			struct around here;

			hide_element(hiding, at, around, &here);
			if (depth < NESTING_MAX)
				way[depth] = here;
			below = !is_hidden(&at->v.element) &&
				at->v.element.children.length > 0;
		} else if (is_text(at) && around != NULL &&
			   (around->visibility || around->size || around->colour)) {
			at->type = GUMBO_NODE_COMMENT;
		}
		if (below) {
			at = at->v.element.children.data[0];
			depth++;
			continue;
		}
		while (at != root && at->index_within_parent + 1 >=
					     at->parent->v.element.children.length) {
			at = at->parent;
			depth--;
		}
		if (at == root)
			break;
		at = at->parent->v.element.children.data[at->index_within_parent + 1];
	}
	hiding->is_full = style_is_full(hiding->styles);
	style_free(hiding->styles);
	free(way);
}

/* The main content. */

static bool is_main(const GumboNode *node)
{
	return is_element(node) && !is_hidden(&node->v.element) &&
	       (node->v.element.tag == GUMBO_TAG_MAIN ||
		attribute_is(&node->v.element, "role", "main"));
}

static bool is_article(const GumboNode *node)
{
	return is_element(node) && !is_hidden(&node->v.element) &&
	       (node->v.element.tag == GUMBO_TAG_ARTICLE ||
		attribute_is(&node->v.element, "role", "article"));
}

/* The only node that IS says yes to; NULL: there is none, or there are several. */
static const GumboNode *find_only(const GumboNode *root, bool (*is)(const GumboNode *))
{
	const GumboNode *found = NULL;

	for (const GumboNode *at = root; at != NULL;) {
		if (!is(at)) {
			at = next_node(root, at);
			continue;
		}
		if (found != NULL)
			return NULL;
		found = at;
		at = next_beside(root, at);
	}
	return found;
}

static bool is_title(const GumboNode *node)
{
	return is_element(node) && node->v.element.tag == GUMBO_TAG_TITLE &&
	       node->v.element.tag_namespace == GUMBO_NAMESPACE_HTML;
}

static void find_title(const GumboNode *root, struct buf *title)
{
	const GumboNode *at = root;
	struct buf text;
	struct str rest, word;

	while (at != NULL && !is_title(at))
		at = next_node(root, at);
	if (at == NULL)
		return;
	buf_init(&text, CODE_MAX);
	gather(at, &text);
	for (size_t i = 0; i < text.size; i++)
		text.data[i] = text_is_web_blank(text.data[i]) ? ' ' : text.data[i];
	rest = buf_str(&text);
	while (str_next_word(&rest, &word) && title->size + word.size < HTML_TITLE_MAX) {
		if (title->size > 0)
			(void)buf_addc(title, ' ');
		text_add_name(title, word);
	}
	buf_fini(&text);
}

/* A page whose main part says less than this, and less than a tenth of the page, is read whole. */
enum { MAIN_LEAST = 200, MAIN_SHARE = 10 };

static void write_page(const GumboNode *root, const struct html_options *options,
		       struct buf *out)
{
	const GumboNode *part = find_only(root, is_main);
	struct writer *writer = memory_alloc(sizeof(*writer));
	const size_t begin = out->size;
	struct buf whole;

	part = part != NULL ? part : find_only(root, is_article);
	buf_init(&whole, out->max > begin ? out->max - begin : 0);
	if (part != NULL) {
		writer_init(writer, options, out);
		writer->within = true;
		write_below(writer, part);
		writer_fini(writer);
	}
	if (part == NULL || out->size - begin < MAIN_LEAST) {
		writer_init(writer, options, &whole);
		write_below(writer, root);
		writer_fini(writer);
		if (whole.size > MAIN_SHARE * (out->size - begin)) {
			buf_truncate(out, begin);
			(void)buf_addstr(out, buf_str(&whole));
		}
	}
	if (out->size > begin)
		end_line(&(struct writer){.out = out, .begin = begin});
	buf_fini(&whole);
	free(writer);
}

static void find_base(const GumboNode *root, const struct html_options *options)
{
	for (const GumboNode *at = root; at != NULL; at = next_node(root, at)) {
		if (is_element(at) && at->v.element.tag == GUMBO_TAG_BASE &&
		    attribute(&at->v.element, "href") != NULL) {
			options->rebase(options->context, attribute(&at->v.element, "href"));
			return;
		}
	}
}

/* The notes at the end of a page. */
static void add_notes(const struct hiding *hiding, bool flattened, struct buf *out)
{
	if (hiding->parts > 0 || hiding->is_full || flattened)
		(void)buf_adds(out, out->size > 0 ? "\n" : "");
	if (hiding->parts > 0) {
		(void)buf_addc(out, '[');
		(void)text_add_count(out, hiding->parts, "part");
		(void)buf_addf(out,
			       " of the page that its style sheets hide %s left out; format "
			       "\"raw\" shows the source.]\n",
			       hiding->parts == 1 ? "is" : "are");
	}
	if (hiding->is_full)
		(void)buf_adds(out, "[The page has more rules of style than are read: text that "
				    "it hides may be shown here.]\n");
	if (flattened)
		(void)buf_addf(out,
			       "[Elements that are nested more than %d deep are shown without "
			       "their structure.]\n",
			       NESTING_MAX);
}

bool html_read(struct str page, const struct html_options *options, struct buf *out,
	       struct buf *title, struct err *err)
{
	struct gumbo_functions gumbo;
	struct hiding hiding = {0};
	GumboOutput *parsed;
	struct buf flat;
	bool flattened;

	if (!load_gumbo(&gumbo, err))
		return false;
	/* A "<br>" may stand for "<p>", which is shorter. */
	buf_init(&flat, 2 * page.size);
	flattened = nesting_limit(page, &flat);
	if (flattened)
		page = buf_str(&flat);
	parsed = gumbo.parse(gumbo.defaults, page.data, page.size);
	if (parsed == NULL) {
		buf_fini(&flat);
		return err_set(err, EINVAL, "gumbo cannot read the page");
	}
	find_title(parsed->document, title);
	if (options->rebase != NULL)
		find_base(parsed->document, options);
	hide_unseen(parsed->root, &hiding);
	write_page(parsed->root, options, out);
	add_notes(&hiding, flattened, out);
	gumbo.destroy(gumbo.defaults, parsed);
	buf_fini(&flat);
	return !out->overflowed || err_set(err, EFBIG, "the page says more than fits");
}

enum { CHARSET_WITHIN = 2048, CHARSET_MAX = 40 };

bool html_find_charset(struct str page, struct buf *charset)
{
	const struct str head = str_part(page, 0, CHARSET_WITHIN);

	for (size_t at = 0; at + sizeof("charset=") < head.size; at++) {
		size_t end = at + strlen("charset=");

		if (strncasecmp(head.data + at, "charset=", strlen("charset=")) != 0)
			continue;
		if (head.data[end] == '"' || head.data[end] == '\'')
			end++;
		while (end < head.size && charset->size < CHARSET_MAX &&
		       (head.data[end] == '-' || head.data[end] == '_' ||
			head.data[end] == ':' ||
			(head.data[end] >= '0' && head.data[end] <= '9') ||
			((head.data[end] | ' ') >= 'a' && (head.data[end] | ' ') <= 'z'))) {
			const char c = head.data[end++];

			(void)buf_addc(charset, c >= 'A' && c <= 'Z' ? (char)(c | ' ') : c);
		}
		return charset->size > 0;
	}
	return false;
}
