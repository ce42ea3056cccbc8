/*
 * policy_env: what `env` may name. The walls hold whatever a program's environment says,
 * so LD_PRELOAD and its like are the user's to set; what is refused would only break
 * what the cell itself sets.
 */
#include "policy/policy.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { NAME_MAX_BYTES = 128 }; /* no program looks for longer ones */

/* Made by the cell from other keys, or true of its account alone. */
static const char account_names[] = "HOME USER LOGNAME";
static const char proxy_names[] =
	"HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy";

static bool is_name(struct str name)
{
	if (name.size == 0 || name.size > NAME_MAX_BYTES ||
	    isdigit((unsigned char)name.data[0]))
		return false;
	for (size_t i = 0; i < name.size; i++) {
		if (!isalnum((unsigned char)name.data[i]) && name.data[i] != '_')
			return false;
	}
	return true;
}

bool policy_check_variable(const char *entry, struct err *err)
{
	const struct str name = {entry, strcspn(entry, "=")};
	bool has_value = entry[name.size] == '=';

	if (!is_name(name))
		return err_set(err, EINVAL,
			       "is neither NAME nor NAME=value; a name has letters, digits and "
			       "_, no digit first, and at most %d of them",
			       NAME_MAX_BYTES);
	if (str_among(account_names, name))
		return err_set(err, EINVAL,
			       "%.*s is set by the cell, to its private home and account",
			       (int)name.size, name.data);
	if (str_among(proxy_names, name))
		return err_set(err, EINVAL,
			       "%.*s is set by the cell; list hosts in `network`",
			       (int)name.size, name.data);
	if (str_starts(name, STR("GLOVEBOX_")))
		return err_set(err, EINVAL, "%.*s: names that begin so are Glovebox's own",
			       (int)name.size, name.data);
	if (str_is(name, "PATH") && !has_value)
		return err_set(err, EINVAL,
			       "PATH is always made from yours; PATH=value sets another");
	return true;
}
