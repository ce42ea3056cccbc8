/* validate_uri: references beside their base; see validate_uri.h. */
#include "tool/validate_uri.h"

#include "base/text/text.h"

#include <string.h>

struct parts {
	struct str scheme;    /* with its ':' */
	struct str authority; /* with its "//" */
	struct str path;
	struct str query; /* with its '?' */
};

static size_t position(struct str text, char wanted)
{
	const char *found = text.size ? memchr(text.data, wanted, text.size) : NULL;

	return found ? (size_t)(found - text.data) : text.size;
}

static struct str take(struct str *rest, size_t size)
{
	struct str part = str_part(*rest, 0, size);

	*rest = str_part(*rest, size, rest->size);
	return part;
}

static bool is_scheme(struct str text)
{
	static const char more[] = {'0', '1', '2', '3', '4', '5', '6',
				    '7', '8', '9', '+', '-', '.'};

	if (text.size == 0)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && (i == 0 || !memchr(more, c, sizeof(more))))
			return false;
	}
	return true;
}

static struct parts split(struct str text)
{
	struct parts parts = {0};
	size_t colon = position(text, ':');

	if (colon < text.size && is_scheme(str_part(text, 0, colon)))
		parts.scheme = take(&text, colon + 1);
	if (str_starts(text, STR("//"))) {
		struct str rest = str_part(text, 2, text.size);
		size_t slash = position(rest, '/');
		size_t query = position(rest, '?');

		parts.authority = take(&text, 2 + (slash < query ? slash : query));
	}
	parts.path = take(&text, position(text, '?'));
	parts.query = text;
	return parts;
}

/* Append PATH without its "." and ".." parts (RFC 3986, 5.2.4), which never climb over FROM. */
static bool add_path(struct str path, struct buf *out)
{
	size_t from = out->size;
	bool fits = true;

	while (path.size && fits) {
		size_t end = path.data[0] == '/' ? 1 : 0;
		struct str part;

		end += position(str_part(path, end, path.size), '/');
		part = take(&path, end);
		if (str_is(part, "/.") || str_is(part, "/..")) {
			while (str_is(part, "/..") && out->size > from) {
				char last = out->data[out->size - 1];

				buf_truncate(out, out->size - 1);
				if (last == '/')
					break;
			}
			if (path.size == 0)
				fits = buf_addc(out, '/');
		} else {
			fits = buf_addstr(out, part);
		}
	}
	return fits;
}

static bool add_merged(const struct parts *base, struct str path, struct buf *out)
{
	struct buf merged;
	size_t folder = 0;
	bool fits = true;

	for (size_t i = 0; i < base->path.size; i++)
		folder = base->path.data[i] == '/' ? i + 1 : folder;
	buf_init(&merged, VALIDATE_URI_MAX);
	if (base->authority.size && base->path.size == 0)
		fits = buf_addc(&merged, '/');
	fits = fits && buf_addstr(&merged, str_part(base->path, 0, folder)) &&
	       buf_addstr(&merged, path) && add_path(buf_str(&merged), out);
	buf_fini(&merged);
	return fits;
}

struct str validate_uri_fragment(struct str reference, struct str *before)
{
	size_t mark = position(reference, '#');

	if (before)
		*before = str_part(reference, 0, mark);
	return str_part(reference, mark + 1, reference.size);
}

bool validate_uri_resolve(struct str base, struct str reference, struct buf *out)
{
	struct parts own, outer;
	bool fits;

	(void)validate_uri_fragment(reference, &reference);
	(void)validate_uri_fragment(base, &base);
	if (base.size == 0)
		return buf_addstr(out, reference);
	own = split(reference);
	outer = split(base);
	if (own.scheme.size)
		return buf_addstr(out, own.scheme) && buf_addstr(out, own.authority) &&
		       add_path(own.path, out) && buf_addstr(out, own.query);
	fits = buf_addstr(out, outer.scheme);
	if (own.authority.size)
		return fits && buf_addstr(out, own.authority) &&
		       add_path(own.path, out) && buf_addstr(out, own.query);
	fits = fits && buf_addstr(out, outer.authority);
	if (own.path.size == 0)
		return fits && buf_addstr(out, outer.path) &&
		       buf_addstr(out, own.query.size ? own.query : outer.query);
	fits = fits && (own.path.data[0] == '/' ? add_path(own.path, out)
						: add_merged(&outer, own.path, out));
	return fits && buf_addstr(out, own.query);
}

bool validate_uri_decode(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		int high = text.data[i] == '%' && i + 2 < text.size
				   ? text_hex_digit(text.data[i + 1])
				   : -1;
		int low = high >= 0 ? text_hex_digit(text.data[i + 2]) : -1;
		char byte = low >= 0 ? (char)(high * 16 + low) : text.data[i];

		if (byte == '\0' || !buf_addc(out, byte))
			return false;
		i += low >= 0 ? 2 : 0;
	}
	return true;
}
