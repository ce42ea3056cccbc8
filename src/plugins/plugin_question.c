/* plugin_question: see plugin_question.h. */
#include "plugins/plugin_question.h"

#include <errno.h>
#include <string.h>

static const char one_kinds[] = "question sampling roots";
static const char several_kind[] = "questions";

bool plugin_question_is(struct str type)
{
	return str_among(one_kinds, type) || str_is(type, several_kind);
}

static void copy_member(const struct value *from, const char *name, struct value *to)
{
	const struct value *member = value_member(from, name);

	if (member != NULL)
		value_set(to, name, value_copy(member));
}

static bool is_form(const struct value *line, const char **kind, struct value *request,
		    struct err *err)
{
	bool url = value_member(line, "url") != NULL;

	if (value_kind(value_member(line, "message")) != VALUE_STRING)
		return err_set(err, EINVAL, "needs \"message\"");
	copy_member(line, "message", request);
	copy_member(line, url ? "url" : "schema", request);
	*kind = url ? "url" : "form";
	return true;
}

static bool is_sampling(const struct value *line, const char **kind,
			struct value *request, struct err *err)
{
	const struct value *asked = value_member(line, "request");

	if (value_kind(asked) != VALUE_OBJECT)
		return err_set(err, EINVAL, "needs the object \"request\"");
	for (void *at = value_first(asked); at != NULL; at = value_next(asked, at))
		value_set(request, value_key(at), value_copy(value_at(at)));
	*kind = "sampling";
	return true;
}

static bool read_one(const struct value *line, const char **kind, struct value *request,
		     struct err *err)
{
	struct str type = value_str(value_member(line, "type"));

	if (str_is(type, "question"))
		return is_form(line, kind, request, err);
	if (str_is(type, "sampling"))
		return is_sampling(line, kind, request, err);
	*kind = "roots";
	return str_is(type, "roots") ||
	       err_set(err, EINVAL, "\"type\" must be question, sampling or roots");
}

/* One, with what is said of it: whether the call can do without. */
static struct value *request_of(const struct value *line, const char **kind, struct err *err)
{
	struct value *request = value_new_object();

	if (!read_one(line, kind, request, err)) {
		value_free(request);
		return NULL;
	}
	copy_member(line, "required", request);
	return request;
}

static bool read_several(const struct value *line, struct value *requests, struct err *err)
{
	const struct value *asked = value_member(line, "requests");

	if (value_kind(asked) != VALUE_OBJECT || value_count(asked) == 0 ||
	    value_count(asked) > PLUGIN_QUESTIONS_AT_ONCE)
		return err_set(err, EINVAL,
			       "needs the object \"requests\" with 1 to %d questions",
			       PLUGIN_QUESTIONS_AT_ONCE);
	for (void *at = value_first(asked); at != NULL; at = value_next(asked, at)) {
		const char *kind = NULL;
		struct value *one = request_of(value_at(at), &kind, err);

		if (one == NULL)
			return err_while(err, "\"%.64s\"", value_key(at));
		value_set_text(one, "kind", kind);
		value_set(requests, value_key(at), one);
	}
	return true;
}

bool plugin_question_read(const struct value *line, const char **kind,
			  struct value **request, struct err *err)
{
	const char *id = value_text(value_member(line, "id"));
	struct value *read;

	if (!str_is(value_str(value_member(line, "type")), several_kind)) {
		read = request_of(line, kind, err);
		if (read == NULL)
			return false;
		/* By this name a client tells its answers apart. */
		if (id != NULL)
			value_set_text(read, "key", id);
		*request = read;
		return true;
	}
	auto_value struct value *requests = value_new_object();
	if (!read_several(line, requests, err))
		return false;
	*kind = "several";
	*request = value_new_object();
	value_set(*request, "requests", value_ref(requests));
	return true;
}
