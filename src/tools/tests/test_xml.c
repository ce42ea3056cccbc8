/* test_xml: see test_xml.h. */
#include "tools/tests/test_xml.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { ENTITY_MAX = 12, CODE_MAX = 0x10ffff };

/* Pass over the start of the rest, up to and with END; false when END is not there. */
static bool skip_to(struct xml *xml, struct str end)
{
	size_t at = str_find(xml->rest, end, 0);

	if (at == (size_t)-1)
		return false;
	xml->rest = str_part(xml->rest, at + end.size, SIZE_MAX);
	return true;
}

/* The end of a tag that begins at the rest: ">" outside of quotes. */
static size_t tag_end(struct str text)
{
	char quote = '\0';

	for (size_t at = 0; at < text.size; at++) {
		char c = text.data[at];

		if (quote != '\0')
			quote = c == quote ? '\0' : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '>')
			return at;
	}
	return (size_t)-1;
}

static enum xml_event read_tag(struct xml *xml)
{
	size_t end = tag_end(xml->rest);
	struct str tag;
	size_t size = 0;
	bool closing;

	if (end == (size_t)-1)
		return XML_END;
	tag = str_part(xml->rest, 1, end - 1);
	xml->rest = str_part(xml->rest, end + 1, SIZE_MAX);
	closing = str_starts(tag, STR("/"));
	xml->closes = !closing && str_ends(tag, STR("/"));
	if (closing)
		tag = str_part(tag, 1, SIZE_MAX);
	if (xml->closes)
		tag.size--;
	while (size < tag.size && !isspace((unsigned char)tag.data[size]))
		size++;
	xml->name = str_part(tag, 0, size);
	xml->attributes = str_part(tag, size, SIZE_MAX);
	return closing ? XML_CLOSE : XML_OPEN;
}

static enum xml_event read_cdata(struct xml *xml)
{
	const struct str begin = STR("<![CDATA["), end = STR("]]>");
	size_t at = str_find(xml->rest, end, begin.size);

	if (at == (size_t)-1)
		return XML_END;
	xml->text = str_part(xml->rest, begin.size, at - begin.size);
	xml->literal = true;
	xml->rest = str_part(xml->rest, at + end.size, SIZE_MAX);
	return XML_TEXT;
}

enum xml_event xml_next(struct xml *xml)
{
	if (xml->closes) {
		xml->closes = false;
		return XML_CLOSE;
	}
	while (xml->rest.size > 0) {
		if (xml->rest.data[0] != '<') {
			size_t at = str_find(xml->rest, STR("<"), 0);

			if (at == (size_t)-1)
				return XML_END;
			xml->text = str_part(xml->rest, 0, at);
			xml->literal = false;
			xml->rest = str_part(xml->rest, at, SIZE_MAX);
			return XML_TEXT;
		}
		if (str_starts(xml->rest, STR("<![CDATA[")))
			return read_cdata(xml);
		if (str_starts(xml->rest, STR("<!--"))) {
			if (!skip_to(xml, STR("-->")))
				return XML_END;
		} else if (str_starts(xml->rest, STR("<?"))) {
			if (!skip_to(xml, STR("?>")))
				return XML_END;
		} else if (str_starts(xml->rest, STR("<!"))) {
			if (!skip_to(xml, STR(">")))
				return XML_END;
		} else {
			return read_tag(xml);
		}
	}
	return XML_END;
}

static void add_code(struct buf *out, uint32_t code)
{
	if (code < 0x80) {
		(void)buf_addc(out, (char)code);
	} else if (code < 0x800) {
		(void)buf_addc(out, (char)(0xc0 | code >> 6));
		(void)buf_addc(out, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		(void)buf_addc(out, (char)(0xe0 | code >> 12));
		(void)buf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		(void)buf_addc(out, (char)(0x80 | (code & 0x3f)));
	} else {
		(void)buf_addc(out, (char)(0xf0 | code >> 18));
		(void)buf_addc(out, (char)(0x80 | (code >> 12 & 0x3f)));
		(void)buf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		(void)buf_addc(out, (char)(0x80 | (code & 0x3f)));
	}
}

/* "#10", "#xa": the character's number, 0 when it is none. */
static uint32_t code_of(struct str entity)
{
	bool hex = entity.size > 2 && entity.data[1] == 'x';
	uint32_t code = 0;

	for (size_t i = hex ? 2 : 1; i < entity.size; i++) {
		char c = entity.data[i];
		uint32_t digit;

		if (isdigit((unsigned char)c))
			digit = (uint32_t)(c - '0');
		else if (hex && isxdigit((unsigned char)c))
			digit = (uint32_t)(tolower((unsigned char)c) - 'a') + 10;
		else
			return 0;
		code = code * (hex ? 16 : 10) + digit;
		if (code > CODE_MAX)
			return 0;
	}
	return code;
}

/* Append what the entity (without "&" and ";") stands for; false: nothing. */
static bool add_entity(struct str entity, struct buf *out)
{
	static const struct {
		const char *name;
		char c;
	} known[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
	uint32_t code;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_is(entity, known[i].name))
			return buf_addc(out, known[i].c);
	}
	code = entity.size > 1 && entity.data[0] == '#' ? code_of(entity) : 0;
	if (code == 0)
		return false;
	add_code(out, code);
	return true;
}

static void decode(struct str raw, struct buf *out)
{
	for (size_t at = 0; at < raw.size;) {
		const char *amp = memchr(raw.data + at, '&', raw.size - at);
		size_t to = amp != NULL ? (size_t)(amp - raw.data) : raw.size;
		size_t end;

		(void)buf_addstr(out, str_part(raw, at, to - at));
		at = to;
		if (at == raw.size)
			break;
		end = str_find(str_part(raw, at, ENTITY_MAX), STR(";"), 0);
		if (end != (size_t)-1 && add_entity(str_part(raw, at + 1, end - 1), out)) {
			at += end + 1;
		} else {
			(void)buf_addc(out, '&');
			at++;
		}
	}
}

void xml_add_text(const struct xml *xml, struct buf *out)
{
	if (xml->literal)
		(void)buf_addstr(out, xml->text);
	else
		decode(xml->text, out);
}

bool xml_attribute(const struct xml *xml, const char *name, struct buf *out)
{
	struct str rest = xml->attributes;

	for (;;) {
		size_t equal, end;
		struct str key;

		rest = str_trim(rest);
		equal = str_find(rest, STR("="), 0);
		if (equal == (size_t)-1)
			return false;
		key = str_trim(str_part(rest, 0, equal));
		rest = str_trim(str_part(rest, equal + 1, SIZE_MAX));
		if (rest.size == 0 || (rest.data[0] != '"' && rest.data[0] != '\''))
			return false;
		end = str_find(rest, (struct str){rest.data, 1}, 1);
		if (end == (size_t)-1)
			return false;
		if (str_is(key, name)) {
			buf_clear(out);
			decode(str_part(rest, 1, end - 1), out);
			return true;
		}
		rest = str_part(rest, end + 1, SIZE_MAX);
	}
}
