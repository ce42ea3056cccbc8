/*
 * Fuzz target of mcp/http_repeat: headers that repeat a request. First line the body, second the
 * tool's schema, then a header a line ("Mcp-Param-Region: eu"). What is refused is refused by its
 * code and a sentence; what is taken says what the body says, or is hidden in base64.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/str.h"
#include "mcp/server/http.h"
#include "mcp/server/mcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADERS_MAX = 32 };

struct headers {
	char *names[HEADERS_MAX], *values[HEADERS_MAX];
	size_t count;
};

static const char *find(void *context, const char *name, size_t *count)
{
	const struct headers *headers = context;
	const char *found = NULL;

	*count = 0;
	for (size_t i = 0; i < headers->count; i++) {
		if (strcasecmp(headers->names[i], name) != 0)
			continue;
		found = headers->values[i];
		++*count;
	}
	return found;
}

static const char *find_any(struct headers *headers, const char *name)
{
	size_t count;

	return find(headers, name, &count);
}

static void headers_read(struct str rest, struct headers *headers)
{
	struct str line;

	while (headers->count < HEADERS_MAX && str_next_line(&rest, &line)) {
		const size_t colon = str_find(line, STR(":"), 0);

		if (colon == (size_t)-1)
			continue;
		headers->names[headers->count] = memory_copy_str(str_part(line, 0, colon));
		headers->values[headers->count++] =
			memory_copy_str(str_part(line, colon + 1, line.size));
	}
}

static void check_refusal(const struct err *err)
{
	if (err->code != MCP_CODE_HEADER || err->text[0] == '\0')
		abort();
}

/* No other text stands for TEXT but one in base64. */
static void check_taken(const char *header, const char *text)
{
	const struct str said = str_trim(str_of(header));

	if (!str_is(said, text) && !str_starts(said, STR("=?base64?")))
		abort();
}

static void check_request(struct headers *headers, const struct mcp_message *message)
{
	const struct http_repeated repeated = {find_any(headers, "MCP-Protocol-Version"),
					       find_any(headers, "Mcp-Method"),
					       find_any(headers, "Mcp-Name")};
	const char *version = mcp_modern_version(message);
	struct err err = {0};

	if (!http_repeats(&repeated, message, &err))
		check_refusal(&err);
	else if (version != NULL)
		check_taken(repeated.version, version);
}

/* A schema that has no properties marks none. */
static void check_unmarked(const struct value *schema, bool taken)
{
	if (value_kind(value_member(schema, "properties")) != VALUE_OBJECT && !taken)
		abort();
}

static void check_arguments(struct headers *headers, const struct value *schema,
			    const struct value *arguments)
{
	struct err err = {0};
	const bool taken = http_repeats_arguments(schema, arguments, find, headers, &err);

	if (!taken)
		check_refusal(&err);
	check_unmarked(schema, taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size}, body = STR(""), text = STR("");
	struct headers headers = {.count = 0};
	struct mcp_message message;
	struct value *schema = NULL;

	(void)(str_next_line(&rest, &body) && str_next_line(&rest, &text));
	headers_read(rest, &headers);
	(void)value_parse(text, 0, &schema, NULL);
	if (mcp_message_read(body, &message, NULL) && message.method != NULL) {
		check_request(&headers, &message);
		check_arguments(&headers, schema, value_member(message.params, "arguments"));
	}
	mcp_message_fini(&message);
	value_free(schema);
	for (size_t i = 0; i < headers.count; i++) {
		free(headers.names[i]);
		free(headers.values[i]);
	}
	return 0;
}
