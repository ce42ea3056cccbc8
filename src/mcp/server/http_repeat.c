/* http_repeat: headers that say what the body of a modern request says; see http_check.h. */
#include "mcp/server/http_check.h"

#include "base/buf.h"
#include "base/text/text.h"
#include "mcp/server/mcp.h"

#include <stdio.h>
#include <string.h>

enum {
	NAME_MAX_BYTES = 8 << 10,
	DEPTH_MAX = 16,       /* of properties in properties */
	MARKED_NAME_MAX = 64, /* of a header's own part */
};

/* Does HEADER say VALUE: as it is, or between =?base64? and ?= ? */
static bool header_says(const char *header, struct str value)
{
	const struct str begin = STR("=?base64?"), end = STR("?=");
	const struct str said = str_trim(str_of(header));
	struct buf bytes;
	bool same;

	if (!str_starts(said, begin) || !str_ends(said, end) ||
	    said.size < begin.size + end.size)
		return str_equal(said, value);
	buf_init(&bytes, NAME_MAX_BYTES);
	same = base64_read(str_part(said, begin.size, said.size - begin.size - end.size),
			   &bytes) &&
	       str_equal(buf_str(&bytes), value);
	buf_fini(&bytes);
	return same;
}

/* The value that the header Mcp-Name must repeat; empty: the method has none. */
static struct str name_of(const struct mcp_message *message)
{
	if (strcmp(message->method, "tools/call") == 0 ||
	    strcmp(message->method, "prompts/get") == 0)
		return value_str(value_member(message->params, "name"));
	if (strcmp(message->method, "resources/read") == 0)
		return value_str(value_member(message->params, "uri"));
	return STR("");
}

static bool fail_header(const char *name, const char *said, struct err *err)
{
	if (said == NULL)
		return err_set(err, MCP_CODE_HEADER, "The header %s is missing.", name);
	return err_set(err, MCP_CODE_HEADER,
		       "The header %s (%.100s) does not say what the "
		       "body says.",
		       name, said);
}

bool http_repeats(const struct http_repeated *headers, const struct mcp_message *message,
		  struct err *err)
{
	const char *version = mcp_modern_version(message);
	struct str name;

	if (headers->version == NULL)
		return fail_header("MCP-Protocol-Version", NULL, err);
	/* A body without a version passes here: the reader of the message refuses it. */
	if (version != NULL && !header_says(headers->version, str_of(version)))
		return fail_header("MCP-Protocol-Version", headers->version, err);
	if (version == NULL || message->kind != MCP_REQUEST)
		return true;
	name = name_of(message);
	if (headers->method == NULL ||
	    !header_says(headers->method, str_of(message->method)))
		return fail_header("Mcp-Method", headers->method, err);
	if (name.size > 0 && (headers->name == NULL || !header_says(headers->name, name)))
		return fail_header("Mcp-Name", headers->name, err);
	return true;
}

/* One argument that is to be repeated, and where it is looked for. */
struct looking {
	http_find_header *find;
	void *context;
	struct err *err;
};

/* VALUE as a header says it; integers are told apart by their number, not by their digits. */
static bool says_argument(const char *header, const struct value *value)
{
	const struct str said = str_trim(str_of(header));
	auto_value struct value *number = NULL;

	switch (value_kind(value)) {
	case VALUE_STRING:
		return header_says(header, value_str(value));
	case VALUE_BOOLEAN:
		return header_says(header,
				   value_is_true(value) ? STR("true") : STR("false"));
	case VALUE_INTEGER:
		return value_parse(said, 0, &number, NULL) && value_equal(number, value);
	default:
		return false;
	}
}

/* A mark that is no part of a header's name is none. */
static bool is_mark(const char *mark)
{
	return mark != NULL && mark[0] != '\0' && strlen(mark) <= MARKED_NAME_MAX &&
	       strspn(mark, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "!#$%&'*+-.^_`|~") == strlen(mark);
}

static bool fits_mark(const struct looking *looking, const char *mark,
		      const struct value *value)
{
	char name[sizeof("Mcp-Param-") + MARKED_NAME_MAX];
	size_t count = 0;
	const char *header;
	const bool there = value != NULL && value_kind(value) != VALUE_NULL;

	(void)snprintf(name, sizeof(name), "Mcp-Param-%s", mark);
	header = looking->find(looking->context, name, &count);
	if (there ? header != NULL && count == 1 && says_argument(header, value)
		  : header == NULL)
		return true;
	return fail_header(name, header, looking->err);
}

/* Only marks reached through `properties` are checked: other keywords may not apply. */
static bool fits_properties(const struct looking *looking, const struct value *schema,
			    const struct value *arguments, unsigned depth)
{
	const struct value *properties = value_member(schema, "properties");

	if (value_kind(properties) != VALUE_OBJECT || depth == DEPTH_MAX)
		return true;
	for (void *at = value_first(properties); at != NULL;
	     at = value_next(properties, at)) {
		const struct value *property = value_at(at);
		const struct value *value = value_member(arguments, value_key(at));
		const char *mark = value_text(value_member(property, "x-mcp-header"));

		if (is_mark(mark) && !fits_mark(looking, mark, value))
			return false;
		if (!fits_properties(looking, property, value, depth + 1))
			return false;
	}
	return true;
}

bool http_repeats_arguments(const struct value *schema, const struct value *arguments,
			    http_find_header *find, void *context, struct err *err)
{
	return fits_properties(&(struct looking){find, context, err}, schema, arguments, 0);
}
