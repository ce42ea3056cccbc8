/* fill: see fill.h. */
#include "mcp/fill.h"

#include "base/memory.h"

#include <string.h>

/* The place at AT in TEXT: {{name}}; 0: there is none. */
static size_t place_at(struct str text, size_t at, struct str *name)
{
	size_t end;

	if (at + 2 > text.size || memcmp(text.data + at, "{{", 2) != 0)
		return 0;
	end = str_find(text, STR("}}"), at + 2);
	if (end == (size_t)-1)
		return 0;
	*name = str_trim(str_part(text, at + 2, end - at - 2));
	return end + 2 - at;
}

bool fill_has_place(struct str text)
{
	struct str name;

	for (size_t at = 0; at < text.size; at++) {
		if (place_at(text, at, &name) > 0)
			return true;
	}
	return false;
}

bool fill_add(struct str text, const struct value *values, struct buf *out)
{
	bool fits = true;

	for (size_t at = 0; fits && at < text.size;) {
		size_t next = str_find(text, STR("{{"), at);
		struct str name;

		if (next == (size_t)-1)
			return buf_addstr(out, str_part(text, at, text.size));
		fits = buf_addstr(out, str_part(text, at, next - at));
		at = next;
		const size_t size = place_at(text, at, &name);
		auto_free char *key = memory_copy_str(size > 0 ? name : STR(""));
		const struct value *value = value_member(values, key);

		if (size > 0 && value != NULL) {
			fits = fits && buf_addstr(out, value_str(value));
			at += size;
		} else {
			fits = fits && buf_adds(out, "{{");
			at += 2;
		}
	}
	return fits;
}

bool fill_match(struct str template, struct str uri, struct value *values)
{
	size_t at = 0, in = 0;

	while (at < template.size) {
		size_t end = template.data[at] == '{' ? str_find(template, STR("}"), at)
						      : (size_t)-1;

		if (end == (size_t)-1) {
			if (in >= uri.size || uri.data[in++] != template.data[at++])
				return false;
			continue;
		}
		auto_free char *name =
			memory_copy_str(str_part(template, at + 1, end - at - 1));
		const char stop = end + 1 < template.size ? template.data[end + 1] : '/';
		const size_t from = in;

		while (in < uri.size && uri.data[in] != stop && uri.data[in] != '/')
			in++;
		if (in == from)
			return false;
		value_set_str(values, name, str_part(uri, from, in - from));
		at = end + 1;
	}
	return in == uri.size;
}
