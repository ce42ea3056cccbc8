/* store_xml: one pass over a document, with the path of the open elements beside it. */

#include "fleet/store_xml.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/text/text.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum {
	XML_PATH_MAX = 512,
	/* Digits of "&#x10ffff;" and a few zeros. */
	XML_DIGITS_MAX = 8,
	XML_CODE_MAX = 0x10ffff,
};

struct xml {
	struct str rest;
	struct buf path, text;
	size_t depth;
	bool has_children; /* the element that was closed last lies in the open one */
};

static bool wrong(struct err *err)
{
	return err_set(err, EBADMSG, "the answer is no XML that a service for S3 sends");
}

static bool is_name(struct str name)
{
	for (size_t i = 0; i < name.size; i++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			   "-_.:",
			   name.data[i]) == NULL ||
		    name.data[i] == '\0')
			return false;
	return name.size > 0;
}

/* The character that the entity NAME stands for, without '&' and ';'. */
static bool add_entity(struct str name, struct buf *text)
{
	static const struct {
		const char *name;
		char character;
	} named[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
	const bool is_hex = str_starts(name, STR("#x"));
	struct str digits = str_part(name, is_hex ? 2 : 1, name.size);
	uint32_t code = 0;

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (str_is(name, named[i].name))
			return buf_addc(text, named[i].character);
	if (!str_starts(name, STR("#")) || digits.size == 0 || digits.size > XML_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < digits.size; i++) {
		const int digit = text_hex_digit(digits.data[i]);

		if (digit < 0 || (!is_hex && digit > 9))
			return false;
		code = code * (is_hex ? 16 : 10) + (uint32_t)digit;
	}
	if (code == 0 || code > XML_CODE_MAX || (code >= 0xd800 && code <= 0xdfff))
		return false;
	text_add_code(code, text);
	return !text->overflowed;
}

/* Add PIECE, which has no '<', with its entities. */
static bool add_text(struct xml *xml, struct str piece)
{
	while (piece.size > 0) {
		const size_t amp = str_find(piece, STR("&"), 0);
		const size_t plain = amp == (size_t)-1 ? piece.size : amp;
		size_t end;

		if (memchr(piece.data, '\0', plain) != NULL ||
		    !buf_add(&xml->text, piece.data, plain))
			return false;
		piece = str_part(piece, plain, piece.size);
		if (piece.size == 0)
			return true;
		end = str_find(piece, STR(";"), 0);
		if (end == (size_t)-1 ||
		    !add_entity(str_part(piece, 1, end - 1), &xml->text))
			return false;
		piece = str_part(piece, end + 1, piece.size);
	}
	return true;
}

static bool open_element(struct xml *xml, struct str tag)
{
	/* Attributes (the name space of the first element) say nothing that is asked here. */
	struct str rest = tag, word = {0};

	if (!str_next_word(&rest, &word) || word.data != tag.data || !is_name(word) ||
	    xml->depth == STORE_XML_DEPTH_MAX)
		return false;
	xml->depth++;
	xml->has_children = false;
	buf_clear(&xml->text);
	return (xml->path.size == 0 || buf_addc(&xml->path, '/')) &&
	       buf_addstr(&xml->path, word);
}

/* Close the element NAME; *LEAF: it has no elements in it, and its path is still there. */
static bool close_element(struct xml *xml, struct str name, bool *leaf)
{
	const struct str path = buf_str(&xml->path);

	if (xml->depth == 0 || !is_name(name) || !str_ends(path, name) ||
	    (path.size > name.size && path.data[path.size - name.size - 1] != '/'))
		return false;
	*leaf = !xml->has_children;
	return true;
}

static void leave_element(struct xml *xml)
{
	const char *slash = memrchr(xml->path.data, '/', xml->path.size);

	buf_truncate(&xml->path, slash != NULL ? (size_t)(slash - xml->path.data) : 0);
	buf_clear(&xml->text);
	xml->depth--;
	xml->has_children = true;
}

/* Take the tag at the begin of the rest: what is between '<' and '>'. */
static bool take_tag(struct xml *xml, struct str *tag)
{
	const size_t end = str_find(xml->rest, STR(">"), 0);

	if (end == (size_t)-1)
		return false;
	*tag = str_part(xml->rest, 1, end - 1);
	xml->rest = str_part(xml->rest, end + 1, xml->rest.size);
	return true;
}

/* One tag and the text after it. *TELL: an element without others in it has ended. */
static bool step(struct xml *xml, bool *tell, bool *empty)
{
	struct str tag;
	size_t next;

	*tell = *empty = false;
	if (!take_tag(xml, &tag))
		return false;
	if (str_starts(tag, STR("/")))
		return close_element(xml, str_trim(str_part(tag, 1, tag.size)), tell);
	if (str_ends(tag, STR("/"))) {
		*tell = *empty = true;
		return open_element(xml, str_trim(str_part(tag, 0, tag.size - 1)));
	}
	if (!open_element(xml, str_trim(tag)))
		return false;
	next = str_find(xml->rest, STR("<"), 0);
	if (next == (size_t)-1 || !add_text(xml, str_part(xml->rest, 0, next)))
		return false;
	xml->rest = str_part(xml->rest, next, xml->rest.size);
	return true;
}

/* Skip blanks between elements; other text there is none of a leaf. */
static bool skip_blanks(struct xml *xml)
{
	const size_t next = str_find(xml->rest, STR("<"), 0);
	const struct str between =
		str_part(xml->rest, 0, next == (size_t)-1 ? xml->rest.size : next);

	xml->rest = str_part(xml->rest, between.size, xml->rest.size);
	return str_trim(between).size == 0;
}

static bool read_all(struct xml *xml,
		     bool (*leaf)(void *context, const char *path, const char *text,
				  struct err *err),
		     void *context, struct err *err)
{
	bool tell, empty, seen = false;

	while (xml->rest.size > 0) {
		const bool closes = str_starts(xml->rest, STR("</"));

		/* One element is the whole document. */
		if ((seen && xml->depth == 0) || !step(xml, &tell, &empty))
			return wrong(err);
		seen = true;
		if (tell && !leaf(context, xml->path.data, xml->text.data, err))
			return false;
		if (closes || empty) {
			leave_element(xml);
			if (!skip_blanks(xml))
				return wrong(err);
		}
	}
	return (seen && xml->depth == 0) || wrong(err);
}

bool store_xml_read(struct str text,
		    bool (*leaf)(void *context, const char *path, const char *text,
				 struct err *err),
		    void *context, struct err *err)
{
	struct xml xml = {.rest = str_trim(text)};
	struct str tag;
	bool read;

	buf_init(&xml.path, XML_PATH_MAX);
	buf_init(&xml.text, STORE_XML_TEXT_MAX);
	if (str_starts(xml.rest, STR("\xef\xbb\xbf")))
		xml.rest = str_part(xml.rest, 3, xml.rest.size);
	read = text.size <= STORE_XML_MAX || wrong(err);
	if (read && str_starts(xml.rest, STR("<?xml")))
		read = (take_tag(&xml, &tag) && skip_blanks(&xml)) || wrong(err);
	read = read && read_all(&xml, leaf, context, err);
	buf_fini(&xml.path);
	buf_fini(&xml.text);
	return read;
}
