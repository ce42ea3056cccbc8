/* ask: see ask.h. */
#include "mcp/server/ask.h"

#include "mcp/server/mcp.h"
#include "tool/validate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ELICIT   "elicitation/create"
#define SAMPLING "sampling/createMessage"
#define ROOTS    "roots/list"

enum { KEY_MAX = 64 };

static bool has_method(const struct value *request, const char *method)
{
	return str_is(value_str(value_member(request, "method")), method);
}

static bool is_url(const struct value *request)
{
	return value_member(value_member(request, "params"), "url") != NULL;
}

static void copy_member(const struct value *from, const char *key, struct value *to,
			const char *name)
{
	struct value *member = value_member(from, key);

	if (member != NULL)
		value_set(to, name, value_ref(member));
}

/* A form without a schema asks for a yes or a no alone. */
static struct value *empty_form(void)
{
	struct value *schema = value_new_object();

	value_set_text(schema, "type", "object");
	value_set(schema, "properties", value_new_object());
	return schema;
}

static struct value *request_of(const char *kind, const struct value *request)
{
	struct value *made = value_new_object(), *params;

	if (value_is_true(value_member(request, "required")))
		value_set_boolean(made, "needed", true);
	if (strcmp(kind, "sampling") == 0) {
		params = value_copy(request);
		value_remove(params, "required");
		value_remove(params, "key");
		value_set_text(made, "method", SAMPLING);
	} else if (strcmp(kind, "roots") == 0) {
		params = value_new_object();
		value_set_text(made, "method", ROOTS);
	} else {
		params = value_new_object();
		value_set_text(made, "method", ELICIT);
		copy_member(request, "message", params, "message");
		copy_member(request, "url", params, "url");
		copy_member(request, "schema", params, "requestedSchema");
		if (strcmp(kind, "url") != 0 &&
		    value_member(params, "requestedSchema") == NULL)
			value_set(params, "requestedSchema", empty_form());
	}
	value_set(made, "params", params);
	return made;
}

struct value *ask_requests(const char *kind, const struct value *request, uint64_t number,
			   bool *one)
{
	struct value *requests = value_new_object();
	const struct value *several = value_member(request, "requests");
	const char *key = value_text(value_member(request, "key"));
	char made[KEY_MAX];

	*one = several == NULL;
	if (*one) {
		(void)snprintf(made, sizeof(made), "question_%" PRIu64, number);
		value_set(requests, key != NULL ? key : made, request_of(kind, request));
		return requests;
	}
	for (void *at = value_first(several); at != NULL; at = value_next(several, at)) {
		const char *each = value_text(value_member(value_at(at), "kind"));

		value_set(requests, value_key(at),
			  request_of(each != NULL ? each : "form", value_at(at)));
	}
	return requests;
}

bool ask_is_possible(const struct value *request, const struct mcp_client *client)
{
	if (has_method(request, SAMPLING))
		return client->sampling;
	if (has_method(request, ROOTS))
		return client->roots;
	return is_url(request) ? client->url : client->form;
}

bool ask_is_needed(const struct value *request)
{
	return value_is_true(value_member(request, "needed"));
}

const char *ask_capability(const struct value *request)
{
	if (has_method(request, SAMPLING))
		return "sampling";
	return has_method(request, ROOTS) ? "roots" : "elicitation";
}

struct value *ask_message(const struct value *request, bool legacy, const char *id)
{
	struct value *message = value_new_object();
	struct value *params = value_copy(value_member(request, "params"));

	if (has_method(request, ELICIT) && is_url(request)) {
		value_set_text(params, "mode", "url");
		if (legacy)
			value_set_text(params, "elicitationId", id);
	}
	value_set(message, "method", value_ref(value_member(request, "method")));
	value_set(message, "params", params);
	return message;
}

static struct value *read_elicitation(const struct value *request, const struct value *said)
{
	const char *action = value_text(value_member(said, "action"));
	const struct value *content = value_member(said, "content");
	const struct value *schema =
		value_member(value_member(request, "params"), "requestedSchema");
	struct value *answer;

	if (action == NULL ||
	    (strcmp(action, "accept") != 0 && strcmp(action, "decline") != 0 &&
	     strcmp(action, "cancel") != 0))
		return NULL;
	answer = value_new_object();
	value_set_text(answer, "action", action);
	if (strcmp(action, "accept") != 0 || is_url(request))
		return answer;
	if (content == NULL)
		value_set(answer, "content", value_new_object());
	else
		value_set(answer, "content", value_copy(content));
	if (validate_value(schema, value_member(answer, "content"), NULL))
		return answer;
	value_free(answer);
	return NULL;
}

struct value *ask_read_answer(const struct value *request, const struct value *said)
{
	struct value *answer;

	if (value_kind(said) != VALUE_OBJECT)
		return NULL;
	if (has_method(request, ELICIT))
		return read_elicitation(request, said);
	if (has_method(request, ROOTS) &&
	    value_kind(value_member(said, "roots")) != VALUE_ARRAY)
		return NULL;
	if (has_method(request, SAMPLING) && value_member(said, "content") == NULL)
		return NULL;
	answer = value_new_object();
	value_set_text(answer, "action", "accept");
	value_set(answer, "content", value_copy(said));
	return answer;
}
