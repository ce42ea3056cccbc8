/* head: strict, line by line. */
#include "proxy/head.h"

#include <string.h>
#include <strings.h>

enum { METHOD_MAX = 32 };

static bool is_token(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool all_token(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (!is_token(text.data[i]))
			return false;
	}
	return text.size > 0;
}

bool head_next_line(struct str *rest, struct str *line, bool *broken)
{
	size_t end = str_find(*rest, STR("\n"), 0);

	*broken = end != (size_t)-1 && (end == 0 || rest->data[end - 1] != '\r');
	if (end == (size_t)-1 || *broken)
		return false;
	*line = str_part(*rest, 0, end - 1);
	*rest = str_part(*rest, end + 1, rest->size);
	for (size_t i = 0; i < line->size; i++) {
		unsigned char c = (unsigned char)line->data[i];
		*broken = *broken || (c < 0x20 && c != '\t') || c == 0x7f;
	}
	return !*broken;
}

bool head_split_first(struct str line, struct str *method, struct str *target)
{
	size_t one = str_find(line, STR(" "), 0);
	size_t two = one == (size_t)-1 ? one : str_find(line, STR(" "), one + 1);
	struct str version;

	if (two == (size_t)-1)
		return false;
	*method = str_part(line, 0, one);
	*target = str_part(line, one + 1, two - one - 1);
	version = str_part(line, two + 1, line.size);
	return all_token(*method) && method->size <= METHOD_MAX && target->size > 0 &&
	       (str_is(version, "HTTP/1.1") || str_is(version, "HTTP/1.0"));
}

bool head_split_url(struct str target, struct str *authority, struct str *path)
{
	static const struct str scheme = STR("http://");
	size_t end = scheme.size;

	if (target.size < scheme.size ||
	    strncasecmp(target.data, scheme.data, scheme.size) != 0)
		return false;
	while (end < target.size && target.data[end] != '/' && target.data[end] != '?' &&
	       target.data[end] != '#')
		end++;
	*authority = str_part(target, scheme.size, end - scheme.size);
	*path = str_part(target, end, target.size);
	return true;
}

bool head_split_field(struct str line, struct head_field *field)
{
	size_t colon = str_find(line, STR(":"), 0);

	if (colon == (size_t)-1)
		return false;
	field->name = str_part(line, 0, colon);
	field->value = str_trim(str_part(line, colon + 1, line.size));
	return all_token(field->name); /* no blank before the colon, none at the start */
}

bool head_is_named(struct str text, const char *name)
{
	return text.size == strlen(name) && strncasecmp(text.data, name, text.size) == 0;
}
