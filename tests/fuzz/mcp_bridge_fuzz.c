/*
 * Fuzz target of mcp/bridge: what servers over HTTP and browsers send besides messages. First line a
 * query of a login, second the schema of a tool, then the head of an answer. A query that is taken has
 * our state, once. A challenge that is found stands in the head.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/bridge/headers.h"
#include "mcp/bridge/oauth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VALUE_MAX = 8 << 10 };

static void read_query(struct str query)
{
	const struct oauth_wanted wanted = {.state = "s", .issuer = "i"};
	struct err err = {0};
	struct buf code;

	buf_init(&code, VALUE_MAX);
	if (oauth_answer_read(query, &wanted, &code, &err)) {
		if (code.size == 0 || str_find(query, STR("state="), 0) == (size_t)-1)
			abort();
	} else if (err.text[0] == '\0') {
		abort();
	}
	buf_fini(&code);
}

static void read_schema(struct str text)
{
	auto_value struct value *schema = NULL;
	const char *why = NULL;

	if (value_parse(text, 0, &schema, NULL) && headers_marks_fit(schema, &why) != !why)
		abort();
}

static void read_head(struct str head)
{
	static const char *const names[] = {"scope", "error", "resource_metadata"};
	struct str value;
	struct buf found;

	buf_init(&found, VALUE_MAX);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (headers_challenge(head, names[i], &found) && found.size > head.size)
			abort();
	}
	if (headers_find(head, "Location", &value) &&
	    (value.data < head.data || value.data + value.size > head.data + head.size))
		abort();
	buf_fini(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size}, line;

	if (str_next_line(&rest, &line))
		read_query(line);
	if (str_next_line(&rest, &line))
		read_schema(line);
	read_head(rest);
	return 0;
}
