/* remotes_check: is a configuration's `mcpServers` what it should be? See remotes.h. */
#include "mcp/client/remotes_parts.h"

#include "base/text/text.h"

#include <string.h>

enum { SERVERS_MAX = 16, ARGUMENTS_MAX = 1000 };

#define TIMEOUT_MAX_S 3600.0
#define START_MAX_S   120.0

bool remotes_is_name(const char *name, size_t most)
{
	size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_-");

	return size > 0 && size <= most && name[size] == '\0';
}

static bool is_text(const struct value *value)
{
	struct str text = value_str(value);

	return value_kind(value) == VALUE_STRING && !memchr(text.data, '\0', text.size);
}

static bool check_texts(const struct value *value, const char *name, const char *key,
			struct err *err)
{
	enum value_kind kind = value_kind(value);
	const bool object = strcmp(key, "env") == 0;
	bool fits = kind == (object ? VALUE_OBJECT : VALUE_ARRAY) &&
		    value_count(value) <= ARGUMENTS_MAX;

	for (size_t i = 0; fits && !object && i < value_count(value); i++)
		fits = is_text(value_item(value, i));
	for (void *at = object ? value_first(value) : NULL; at && fits;
	     at = value_next(value, at))
		fits = is_text(value_at(at)) && value_key(at)[0] &&
		       !strchr(value_key(at), '=');
	return fits || err_set(err, 0, "mcpServers.%s.%s: must be %s", name, key,
			       object ? "an object of texts by the names of variables"
				      : "a list of texts");
}

static bool check_seconds(const char *name, const char *key, const struct value *value,
			  double most, struct err *err)
{
	return (value_is_number(value) && value_number(value) > 0 &&
		value_number(value) <= most) ||
	       err_set(err, 0, "mcpServers.%s.%s: must be seconds up to %.0f", name, key,
		       most);
}

static bool check_key(const char *name, const char *key, const struct value *value,
		      struct err *err)
{
	static const char *const keys[] = {"command", "args",      "env",      "type",
					   "start_s", "timeout_s", "disabled", NULL};
	const char *nearest;

	if (strcmp(key, "args") == 0 || strcmp(key, "env") == 0)
		return check_texts(value, name, key, err);
	if (strcmp(key, "command") == 0)
		return (is_text(value) && value_str(value).size) ||
		       err_set(err, 0, "mcpServers.%s.command: must be a program", name);
	if (strcmp(key, "type") == 0)
		return str_is(value_str(value), "stdio") ||
		       err_set(err, 0,
			       "mcpServers.%s.type: only \"stdio\" is served here", name);
	if (strcmp(key, "disabled") == 0)
		return value_kind(value) == VALUE_BOOLEAN ||
		       err_set(err, 0, "mcpServers.%s.disabled: must be true or false",
			       name);
	if (strcmp(key, "timeout_s") == 0)
		return check_seconds(name, key, value, TIMEOUT_MAX_S, err);
	if (strcmp(key, "start_s") == 0)
		return check_seconds(name, key, value, START_MAX_S, err);
	if (strcmp(key, "url") == 0)
		return err_set(err, 0,
			       "mcpServers.%s.url: servers are programs here, started in a cell: give "
			       "a command",
			       name);
	nearest = text_nearest(key, keys);
	return err_set(err, 0, "mcpServers.%s: no key \"%.100s\"%s%s", name, key,
		       nearest ? "; did you mean " : "", nearest ? nearest : "");
}

bool remotes_check(const struct value *value, struct err *err)
{
	if (value_kind(value) != VALUE_OBJECT)
		return err_set(err, 0,
			       "mcpServers: must be an object of servers by their names");
	if (value_count(value) > SERVERS_MAX)
		return err_set(err, 0, "mcpServers: there may be %d", SERVERS_MAX);
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		const char *name = value_key(at);
		const struct value *settings = value_at(at);

		if (!remotes_is_name(name, REMOTES_NAME_MAX))
			return err_set(err, 0,
				       "mcpServers: \"%.100s\" is no name: 1 to %d of letters, "
				       "digits, _ and -",
				       name, REMOTES_NAME_MAX);
		if (value_kind(settings) != VALUE_OBJECT ||
		    !value_member(settings, "command"))
			if (!value_member(settings, "url"))
				return err_set(err, 0,
					       "mcpServers.%s: a \"command\" is needed",
					       name);
		for (void *key = value_first(settings); key;
		     key = value_next(settings, key)) {
			if (!check_key(name, value_key(key), value_at(key), err))
				return false;
		}
	}
	return true;
}
