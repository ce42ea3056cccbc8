/*
 * service_fuzz: the first line as the key `service`, the others as lines of a tokens file. What
 * passes the rows is read; a filled template is a path below the root, and no part of it begins
 * with a dot.
 */
#include "policy/service/service.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/config.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct service_names names = {"ann", "main", "0a1b2c", "2026-11-30"};

static void check_settings(const struct value *value)
{
	const struct row whole = {.kind = ROW_OBJECT,
				  .rows = service_rows,
				  .check = service_check};
	struct service service;
	struct buf path;

	if (!rows_check(&whole, value, NULL))
		return;
	service_read(value, &service);
	buf_init(&path, PATH_MAX * 16);
	if (service.workspace != NULL && service_fill(service.workspace, &names, &path)) {
		assert(path.size > 0 && path.data[0] != '/' && path.data[0] != '.');
		assert(strstr(path.data, "/.") == NULL && strstr(path.data, "//") == NULL);
		assert(path.data[path.size - 1] != '/' && strlen(path.data) == path.size);
	}
	assert(service.on_close == SERVICE_KEEPS || service.workspace != NULL);
	(void)service_trusts_text(&service, STR("127.0.0.1"));
	(void)service_trusts_text(&service, STR("::ffff:10.0.0.1"));
	buf_fini(&path);
	service_fini(&service);
}

static void check_token(const struct value *value)
{
	struct service_token token;
	struct err err;

	if (!config_check_rows(service_token_rows, value, &err)) {
		assert(err.text[0] != '\0');
		return;
	}
	service_token_read(value, &token);
	assert(service_is_name(str_of(token.name)) && strlen(token.sha256) == HASH_HEX);
	assert(token.expires != NULL || token.expires_ms == INT64_MAX);
	assert(service_token_has_rights(&token, &token));
	service_token_fini(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size}, line;
	bool first = true;

	while (str_next_line(&rest, &line)) {
		auto_value struct value *value = NULL;

		if (value_parse(line, 0, &value, NULL)) {
			if (first)
				check_settings(value);
			else
				check_token(value);
		}
		first = false;
	}
	return 0;
}
