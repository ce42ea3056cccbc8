/*
 * nesting: reads the tags of a page in one pass, keeps those that are open in a stack of
 * at most NESTING_MAX, and copies the page without the tags of what would be above it.
 */
#include "tools/web/nesting.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TAG_NAME_MAX = 24 }; /* longer names are compared by their beginning */

enum {
	TRAIT_EMPTY = 1 << 0, /* it has no end tag */
	TRAIT_ENDED = 1 << 1, /* the next of its kind ends it */
	TRAIT_CELL = 1 << 2,  /* so does the next cell or row */
	TRAIT_RAW = 1 << 3,   /* its content is no markup */
	TRAIT_FORM = 1 << 4,  /* it can end without those in it: "<b><p></b></p>" */
	TRAIT_BLOCK = 1 << 5, /* the end tag of one that is no block does not look beyond it */
	TRAIT_WALL = 1 << 6 | TRAIT_BLOCK, /* nor does that of a block */
	TRAIT_OUT = 1 << 7,  /* it ends a picture or formula in which it stands */
	TRAIT_LEAF = 1 << 8, /* of pictures: "/>" ends it */
	TRAIT_HTML = 1 << 9, /* of pictures: it holds HTML again */
};

static const struct tag {
	char name[TAG_NAME_MAX];
	unsigned traits;
} tags[] = {
	{"a", TRAIT_FORM},
	{"address", TRAIT_BLOCK},
	{"animate", TRAIT_LEAF},
	{"animatetransform", TRAIT_LEAF},
	{"annotation-xml", TRAIT_HTML},
	{"applet", TRAIT_WALL},
	{"area", TRAIT_EMPTY},
	{"article", TRAIT_BLOCK},
	{"aside", TRAIT_BLOCK},
	{"b", TRAIT_FORM | TRAIT_OUT},
	{"base", TRAIT_EMPTY},
	{"basefont", TRAIT_EMPTY},
	{"bgsound", TRAIT_EMPTY},
	{"big", TRAIT_FORM | TRAIT_OUT},
	{"blockquote", TRAIT_BLOCK | TRAIT_OUT},
	{"body", TRAIT_ENDED | TRAIT_OUT},
	{"br", TRAIT_EMPTY | TRAIT_OUT},
	{"button", TRAIT_WALL},
	{"caption", TRAIT_BLOCK},
	{"center", TRAIT_BLOCK | TRAIT_OUT},
	{"circle", TRAIT_LEAF},
	{"code", TRAIT_FORM | TRAIT_OUT},
	{"col", TRAIT_EMPTY},
	{"colgroup", TRAIT_ENDED},
	{"dd", TRAIT_ENDED | TRAIT_OUT},
	{"defs", TRAIT_LEAF},
	{"desc", TRAIT_LEAF | TRAIT_HTML},
	{"details", TRAIT_BLOCK},
	{"dir", TRAIT_BLOCK},
	{"div", TRAIT_BLOCK | TRAIT_OUT},
	{"dl", TRAIT_BLOCK | TRAIT_OUT},
	{"dt", TRAIT_ENDED | TRAIT_OUT},
	{"ellipse", TRAIT_LEAF},
	{"em", TRAIT_FORM | TRAIT_OUT},
	{"embed", TRAIT_EMPTY | TRAIT_OUT},
	{"fieldset", TRAIT_BLOCK},
	{"figcaption", TRAIT_BLOCK},
	{"figure", TRAIT_BLOCK},
	{"font", TRAIT_FORM},
	{"footer", TRAIT_BLOCK},
	{"foreignobject", TRAIT_HTML},
	{"form", TRAIT_BLOCK},
	{"frame", TRAIT_EMPTY},
	{"frameset", TRAIT_BLOCK},
	{"g", TRAIT_LEAF},
	{"h1", TRAIT_BLOCK | TRAIT_OUT},
	{"h2", TRAIT_BLOCK | TRAIT_OUT},
	{"h3", TRAIT_BLOCK | TRAIT_OUT},
	{"h4", TRAIT_BLOCK | TRAIT_OUT},
	{"h5", TRAIT_BLOCK | TRAIT_OUT},
	{"h6", TRAIT_BLOCK | TRAIT_OUT},
	{"head", TRAIT_ENDED | TRAIT_OUT},
	{"header", TRAIT_BLOCK},
	{"hgroup", TRAIT_BLOCK},
	{"hr", TRAIT_EMPTY | TRAIT_OUT},
	{"html", TRAIT_ENDED},
	{"i", TRAIT_FORM | TRAIT_OUT},
	{"iframe", TRAIT_RAW | TRAIT_BLOCK},
	{"image", TRAIT_EMPTY | TRAIT_LEAF},
	{"img", TRAIT_EMPTY | TRAIT_OUT},
	{"input", TRAIT_EMPTY},
	{"keygen", TRAIT_EMPTY},
	{"li", TRAIT_ENDED | TRAIT_OUT},
	{"line", TRAIT_LEAF},
	{"link", TRAIT_EMPTY},
	{"listing", TRAIT_BLOCK | TRAIT_OUT},
	{"main", TRAIT_BLOCK},
	{"marquee", TRAIT_WALL},
	{"math", TRAIT_WALL},
	{"menu", TRAIT_BLOCK | TRAIT_OUT},
	{"meta", TRAIT_EMPTY | TRAIT_OUT},
	{"nav", TRAIT_BLOCK},
	{"nobr", TRAIT_FORM | TRAIT_OUT},
	{"noembed", TRAIT_RAW},
	{"noframes", TRAIT_RAW},
	{"object", TRAIT_WALL},
	{"ol", TRAIT_BLOCK | TRAIT_OUT},
	{"option", TRAIT_ENDED},
	{"p", TRAIT_ENDED | TRAIT_OUT},
	{"param", TRAIT_EMPTY},
	{"path", TRAIT_LEAF},
	{"plaintext", TRAIT_RAW},
	{"polygon", TRAIT_LEAF},
	{"polyline", TRAIT_LEAF},
	{"pre", TRAIT_BLOCK | TRAIT_OUT},
	{"rect", TRAIT_LEAF},
	{"ruby", TRAIT_OUT},
	{"s", TRAIT_FORM | TRAIT_OUT},
	{"script", TRAIT_RAW},
	{"section", TRAIT_BLOCK},
	{"select", TRAIT_WALL},
	{"set", TRAIT_LEAF},
	{"small", TRAIT_FORM | TRAIT_OUT},
	{"source", TRAIT_EMPTY},
	{"span", TRAIT_OUT},
	{"stop", TRAIT_LEAF},
	{"strike", TRAIT_FORM | TRAIT_OUT},
	{"strong", TRAIT_FORM | TRAIT_OUT},
	{"style", TRAIT_RAW},
	{"sub", TRAIT_OUT},
	{"summary", TRAIT_BLOCK},
	{"sup", TRAIT_OUT},
	{"svg", TRAIT_WALL},
	{"symbol", TRAIT_LEAF},
	{"table", TRAIT_WALL | TRAIT_OUT},
	{"tbody", TRAIT_CELL},
	{"td", TRAIT_CELL},
	{"template", TRAIT_WALL},
	{"textarea", TRAIT_RAW},
	{"tfoot", TRAIT_CELL},
	{"th", TRAIT_CELL},
	{"thead", TRAIT_CELL},
	{"title", TRAIT_RAW | TRAIT_LEAF | TRAIT_HTML},
	{"tr", TRAIT_CELL},
	{"track", TRAIT_EMPTY},
	{"tt", TRAIT_FORM | TRAIT_OUT},
	{"u", TRAIT_FORM | TRAIT_OUT},
	{"ul", TRAIT_BLOCK | TRAIT_OUT},
	{"use", TRAIT_LEAF},
	{"var", TRAIT_OUT},
	{"wbr", TRAIT_EMPTY},
	{"xmp", TRAIT_RAW},
};

static int compare_tags(const void *name, const void *tag)
{
	return strcmp(name, ((const struct tag *)tag)->name);
}

static unsigned traits_of(const char *name)
{
	const struct tag *tag = bsearch(name, tags, sizeof(tags) / sizeof(tags[0]),
					sizeof(tags[0]), compare_tags);

	return tag != NULL ? tag->traits : 0;
}

struct nested {
	char name[TAG_NAME_MAX];
	unsigned traits;
	bool foreign; /* what it holds is of a picture or a formula */
};

struct nesting {
	struct nested open[NESTING_MAX];
	size_t depth;
	size_t omitted; /* elements whose tags were taken out, and that are still open */
};

static bool is_foreign(const struct nesting *nesting)
{
	return nesting->depth > 0 && nesting->open[nesting->depth - 1].foreign;
}

/* Close the innermost element NAME, if an end tag here would find it. */
static void close_nested(struct nesting *nesting, const char *name, unsigned traits)
{
	const bool is_form = (traits & TRAIT_FORM) != 0;
	const unsigned wall = is_form || (traits & TRAIT_BLOCK) != 0
				      ? TRAIT_WALL & ~(unsigned)TRAIT_BLOCK
				      : TRAIT_BLOCK;

	for (size_t i = nesting->depth; i > 0; i--) {
		if (strcmp(nesting->open[i - 1].name, name) == 0) {
			/* Blocks in <b> stay open behind </b>. */
			if (is_form)
				memmove(&nesting->open[i - 1], &nesting->open[i],
					(nesting->depth - i) * sizeof(nesting->open[0]));
			nesting->depth = is_form ? nesting->depth - 1 : i - 1;
			return;
		}
		if ((nesting->open[i - 1].traits & wall) != 0)
			return;
	}
}

/* A cell or row ends all that is open in the one before it. */
static void close_cell(struct nesting *nesting)
{
	for (size_t i = nesting->depth; i > 0; i--) {
		if (strcmp(nesting->open[i - 1].name, "template") == 0)
			return;
		if (strcmp(nesting->open[i - 1].name, "table") == 0) {
			nesting->depth = i;
			return;
		}
	}
}

enum {
	TRAITS_UNCOUNTED = TRAIT_EMPTY | TRAIT_ENDED | TRAIT_CELL | TRAIT_RAW,
	/* Where elements were omitted, only a line break is left of such a tag. */
	TRAITS_LINE = TRAIT_ENDED | TRAIT_CELL,
};

/* Does the tag that opens NAME stay in the page? EMPTY: it ends with "/>". */
static bool open_nested(struct nesting *nesting, const char *name, unsigned traits,
			bool empty)
{
	bool foreign = is_foreign(nesting);

	while (is_foreign(nesting) && (traits & TRAIT_OUT) != 0) {
		nesting->depth--;
		foreign = false;
	}
	if (!foreign && (traits & TRAIT_CELL) != 0)
		close_cell(nesting);
	if (foreign ? empty && (traits & TRAIT_LEAF) != 0 : (traits & TRAITS_UNCOUNTED) != 0)
		return nesting->omitted == 0 || (traits & TRAITS_LINE) == 0;
	if (!foreign && (strcmp(name, "a") == 0 || strcmp(name, "nobr") == 0))
		close_nested(nesting, name, traits);
	if (nesting->depth == NESTING_MAX) {
		nesting->omitted++;
		return false;
	}
	nesting->open[nesting->depth] = (struct nested){
		.traits = traits,
		.foreign = strcmp(name, "svg") == 0 || strcmp(name, "math") == 0 ||
			   (foreign && (traits & TRAIT_HTML) == 0),
	};
	memcpy(nesting->open[nesting->depth++].name, name, TAG_NAME_MAX);
	return true;
}

/* Does the tag that closes NAME stay in the page? */
static bool shut_nested(struct nesting *nesting, const char *name, unsigned traits)
{
	if (!is_foreign(nesting) && (traits & TRAIT_CELL) != 0)
		close_cell(nesting);
	if (!is_foreign(nesting) && (traits & TRAITS_UNCOUNTED) != 0)
		return nesting->omitted == 0 || (traits & TRAITS_LINE) == 0;
	if (nesting->omitted > 0) {
		nesting->omitted--;
		return false;
	}
	close_nested(nesting, name, traits);
	return true;
}

/* The offset behind the tag whose name ends at AT; *EMPTY: it ends with "/>". */
static size_t tag_end(struct str page, size_t at, bool *empty)
{
	*empty = false;
	while (at < page.size && page.data[at] != '>') {
		*empty = page.data[at] == '/';
		if (page.data[at++] != '=')
			continue;
		while (at < page.size && text_is_web_blank(page.data[at]))
			at++;
		if (at < page.size && (page.data[at] == '"' || page.data[at] == '\'')) {
			const char *end = memchr(&page.data[at + 1], page.data[at],
						 page.size - at - 1);

			at = end != NULL ? (size_t)(end - page.data) + 1 : page.size;
			continue;
		}
		while (at < page.size && page.data[at] != '>' &&
		       !text_is_web_blank(page.data[at]))
			at++;
	}
	return at < page.size ? at + 1 : at;
}

/* The offset of the tag that closes NAME, whose content is no markup. */
static size_t raw_end(struct str page, size_t at, const char *name)
{
	const size_t size = strlen(name);

	for (; at < page.size; at++) {
		const char *next = memchr(&page.data[at], '<', page.size - at);

		if (next == NULL)
			break;
		at = (size_t)(next - page.data);
		if (at + 2 + size < page.size && page.data[at + 1] == '/' &&
		    strncasecmp(&page.data[at + 2], name, size) == 0 &&
		    (text_is_web_blank(page.data[at + 2 + size]) ||
		     page.data[at + 2 + size] == '/' || page.data[at + 2 + size] == '>'))
			return at;
	}
	return page.size;
}

/* The offset behind the comment, or the like, at AT ("<!--", "<!", "<?", "</ "). */
static size_t comment_end(struct str page, size_t at)
{
	const bool is_comment = str_starts(str_part(page, at, 4), STR("<!--"));
	const size_t end = str_find(page, is_comment ? STR("-->") : STR(">"), at + 2);

	return end == (size_t)-1 ? page.size : end + (is_comment ? 3 : 1);
}

bool nesting_limit(struct str page, struct buf *flat)
{
	struct nesting *nesting = memory_alloc(sizeof(*nesting));
	size_t copied = 0;

	for (size_t at = 0; at < page.size;) {
		const char *next = memchr(&page.data[at], '<', page.size - at);
		char name[TAG_NAME_MAX] = "";
		size_t begin, size = 0;
		unsigned traits;
		bool closes, stays, empty;

		if (next == NULL)
			break;
		begin = (size_t)(next - page.data);
		closes = begin + 1 < page.size && page.data[begin + 1] == '/';
		at = begin + 1 + closes;
		if (at >= page.size)
			break;
		if ((page.data[at] | ' ') < 'a' || (page.data[at] | ' ') > 'z') {
			if (closes || page.data[at] == '!' || page.data[at] == '?')
				at = comment_end(page, begin);
			continue;
		}
		for (; at < page.size && !text_is_web_blank(page.data[at]) &&
		       page.data[at] != '/' && page.data[at] != '>';
		     at++) {
			const char c = page.data[at];

			if (size + 1 < sizeof(name))
				name[size++] = c >= 'A' && c <= 'Z' ? (char)(c | ' ') : c;
		}
		at = tag_end(page, at, &empty);
		traits = traits_of(name);
		stays = closes ? shut_nested(nesting, name, traits)
			       : open_nested(nesting, name, traits, empty);
		if (!stays) {
			(void)buf_addstr(flat, str_part(page, copied, begin - copied));
			if (!closes && (traits & TRAITS_LINE) != 0)
				(void)buf_adds(flat, "<br>");
			copied = at;
		} else if (!closes && !is_foreign(nesting) && (traits & TRAIT_RAW) != 0) {
			at = raw_end(page, at, name);
		}
	}
	free(nesting);
	return copied > 0 && buf_addstr(flat, str_part(page, copied, page.size));
}
