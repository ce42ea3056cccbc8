/* result: the words of what became of a task, and the beginning of its record. */

#include "fleet/result.h"

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "build_config.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

enum { HOST_MAX = 256 };

static const char *const status_names[] = {
	[FLEET_DONE] = "done",           [FLEET_FAILED] = "failed",
	[FLEET_DENIED] = "denied",       [FLEET_LIMIT] = "limit",
	[FLEET_TIMED_OUT] = "timed_out", [FLEET_SET_UP] = "set_up",
	[FLEET_GAVE_UP] = "gave_up",     [FLEET_CANCELLED] = "cancelled",
};

const char *fleet_status_name(enum fleet_status status)
{
	return (size_t)status < FLEET_STATUSES ? status_names[status] : "unknown";
}

enum fleet_status fleet_status_of(struct str name)
{
	enum fleet_status status = 0;

	while (status < FLEET_STATUSES && !str_is(name, status_names[status]))
		status++;
	return status;
}

bool fleet_status_read_set(const char *option, const char *text, unsigned *statuses,
			   struct err *err)
{
	struct str rest = str_of(text);

	*statuses = 0;
	while (rest.size > 0) {
		size_t size = str_find(rest, STR(","), 0);
		struct str word;
		enum fleet_status status;

		size = size == (size_t)-1 ? rest.size : size;
		word = str_trim(str_part(rest, 0, size));
		rest = str_part(rest, size + 1, rest.size);
		status = fleet_status_of(word);
		if (status == FLEET_STATUSES || status == FLEET_DONE)
			return err_set(err, EINVAL,
				       "%s: \"%.*s\" is no status to try again; failed, denied, "
				       "limit, timed_out, set_up, gave_up or cancelled",
				       option, (int)(word.size < 40 ? word.size : 40),
				       word.data);
		*statuses |= 1U << status;
	}
	return true;
}

struct value *fleet_result_new(const char *job, const char *id, int attempt,
			       enum fleet_status status)
{
	struct value *result = value_new_object();
	char host[HOST_MAX] = "";

	(void)gethostname(host, sizeof(host) - 1);
	value_set_text(result, "job", job);
	value_set_text(result, "id", id);
	value_set_integer(result, "attempt", attempt);
	value_set_text(result, "status", fleet_status_name(status));
	value_set(result, "worker", value_new_null());
	value_set_text(result, "host", host);
	value_set_text(result, "program", "glovebox " GLOVEBOX_VERSION);
	return result;
}

enum fleet_status fleet_result_status(const struct value *result)
{
	return fleet_status_of(value_str(value_member(result, "status")));
}
