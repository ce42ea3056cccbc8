/* elicitation: translates questions of tools, and what a client answers to them. */

#include "acp/elicitation.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/call.h"
#include "tool/validate.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ID_MAX_BYTES = 256 };

struct acp_elicitation {
	unsigned kinds;
	char *call;
	int64_t number;
	bool several;
	struct value *questions; /* key -> question; a single one has SINGLE as its key */
	struct value *answers;   /* key -> answer, of those before AT */
	size_t at;               /* the question that is asked, or is to be asked next */
};

static const char SINGLE[] = "question";

struct acp_elicitation *acp_elicitation_new(const struct value *event, unsigned kinds)
{
	struct acp_elicitation *made = memory_alloc(sizeof(*made));
	const struct value *request = value_member(event, "request");
	const struct value *requests = value_member(request, "requests");
	const char *call = value_text(value_member(event, "call"));

	made->kinds = kinds;
	made->call = memory_copy(call != NULL ? call : "");
	made->number = value_integer(value_member(event, "id"));
	made->several = str_is(value_str(value_member(event, "kind")), "several");
	made->answers = value_new_object();
	if (made->several && value_kind(requests) == VALUE_OBJECT) {
		made->questions = value_copy(requests);
		return made;
	}
	made->questions = value_new_object();
	if (!made->several && value_kind(request) == VALUE_OBJECT) {
		struct value *question = value_copy(request);

		value_set(question, "kind", value_copy(value_member(event, "kind")));
		value_set(made->questions, SINGLE, question);
	}
	return made;
}

void acp_elicitation_free(struct acp_elicitation *elicitation)
{
	if (elicitation == NULL)
		return;
	free(elicitation->call);
	value_free(elicitation->questions);
	value_free(elicitation->answers);
	free(elicitation);
}

const char *acp_elicitation_call(const struct acp_elicitation *elicitation)
{
	return elicitation->call;
}

/* The question at AT and its KEY; NULL: there are no more. */
static const struct value *question_at(const struct acp_elicitation *elicitation,
				       const char **key)
{
	void *at = value_first(elicitation->questions);

	for (size_t i = 0; i < elicitation->at && at != NULL; i++)
		at = value_next(elicitation->questions, at);
	if (at == NULL)
		return NULL;
	*key = value_key(at);
	return value_at(at);
}

static void settle(struct acp_elicitation *elicitation, const char *key,
		   struct value *take_answer)
{
	value_set(elicitation->answers, key, take_answer);
	elicitation->at++;
}

static struct value *action(const char *word)
{
	struct value *made = value_new_object();

	value_set_text(made, "action", word);
	return made;
}

/* A form in the words of the protocol. */

enum member {
	MEMBER_TEXT,
	MEMBER_NUMBER,
	MEMBER_INTEGER,
	MEMBER_COUNT,
	MEMBER_FLAG,
	MEMBER_TEXTS
};

/* The members that a field of each type may have; others of the schema are not sent. */
static const struct {
	const char *type, *name;
	enum member kind;
} members[] = {
	{"string", "minLength", MEMBER_COUNT},  {"string", "maxLength", MEMBER_COUNT},
	{"string", "pattern", MEMBER_TEXT},     {"string", "default", MEMBER_TEXT},
	{"string", "enum", MEMBER_TEXTS},       {"number", "minimum", MEMBER_NUMBER},
	{"number", "maximum", MEMBER_NUMBER},   {"number", "default", MEMBER_NUMBER},
	{"integer", "minimum", MEMBER_INTEGER}, {"integer", "maximum", MEMBER_INTEGER},
	{"integer", "default", MEMBER_INTEGER}, {"boolean", "default", MEMBER_FLAG},
	{"array", "minItems", MEMBER_COUNT},    {"array", "maxItems", MEMBER_COUNT},
	{"array", "default", MEMBER_TEXTS},
};

static bool are_texts(const struct value *list)
{
	bool fine = value_kind(list) == VALUE_ARRAY;

	for (size_t i = 0; fine && i < value_count(list); i++)
		fine = value_kind(value_item(list, i)) == VALUE_STRING;
	return fine;
}

static bool is_member(enum member kind, const struct value *value)
{
	switch (kind) {
	case MEMBER_TEXT:
		return value_kind(value) == VALUE_STRING;
	case MEMBER_NUMBER:
		return value_is_number(value);
	case MEMBER_INTEGER:
		return value_kind(value) == VALUE_INTEGER;
	case MEMBER_COUNT:
		return value_kind(value) == VALUE_INTEGER && value_integer(value) >= 0 &&
		       value_integer(value) <= UINT32_MAX;
	case MEMBER_FLAG:
		return value_kind(value) == VALUE_BOOLEAN;
	case MEMBER_TEXTS:
		return are_texts(value);
	}
	return false;
}

/* Titled choices: a list of {const, title}; NULL: LIST is none. */
static struct value *choices_of(const struct value *list)
{
	struct value *made;

	if (value_kind(list) != VALUE_ARRAY)
		return NULL;
	made = value_new_array();
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *text = value_member(value_item(list, i), "const");
		const struct value *title = value_member(value_item(list, i), "title");
		struct value *choice;

		if (value_kind(text) != VALUE_STRING) {
			value_free(made);
			return NULL;
		}
		choice = value_new_object();
		value_set(choice, "const", value_copy(text));
		value_set(choice, "title",
			  value_copy(value_kind(title) == VALUE_STRING ? title : text));
		value_append(made, choice);
	}
	return made;
}

/* The items of a list of which several may be chosen; NULL: the protocol has no such list. */
static struct value *items_of(const struct value *items)
{
	struct value *made = value_new_object();
	struct value *choices = choices_of(value_member(items, "anyOf"));

	if (choices != NULL) {
		value_set(made, "anyOf", choices);
	} else if (are_texts(value_member(items, "enum"))) {
		value_set_text(made, "type", "string");
		value_set(made, "enum", value_copy(value_member(items, "enum")));
	} else {
		value_free(made);
		return NULL;
	}
	return made;
}

static void copy_words(const struct value *from, struct value *to)
{
	static const char *const words[] = {"title", "description"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct value *text = value_member(from, words[i]);

		if (value_kind(text) == VALUE_STRING)
			value_set(to, words[i], value_copy(text));
	}
}

/* FIELD of a schema; NULL: it has a type that the protocol cannot ask for. */
static struct value *field_of(const struct value *field)
{
	static const char types[] = "string number integer boolean array";
	const struct str type = value_str(value_member(field, "type"));
	const struct str format = value_str(value_member(field, "format"));
	struct value *made, *more = NULL;

	if (!str_among(types, type))
		return NULL;
	if (str_is(type, "array")) {
		more = items_of(value_member(field, "items"));
		if (more == NULL)
			return NULL;
	} else if (str_is(type, "string")) {
		more = choices_of(value_member(field, "oneOf"));
	}
	made = value_new_object();
	value_set_str(made, "type", type);
	copy_words(field, made);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const struct value *member = value_member(field, members[i].name);

		if (str_is(type, members[i].type) && is_member(members[i].kind, member))
			value_set(made, members[i].name, value_copy(member));
	}
	if (str_is(type, "string") && str_among("email uri date date-time", format))
		value_set_str(made, "format", format);
	if (more != NULL)
		value_set(made, str_is(type, "array") ? "items" : "oneOf", more);
	return made;
}

/* SCHEMA of a form; NULL: the protocol cannot say it. */
static struct value *schema_of(const struct value *schema)
{
	const struct value *fields = value_member(schema, "properties");
	const struct value *required = value_member(schema, "required");
	struct value *made, *properties;

	if (value_kind(schema) != VALUE_OBJECT ||
	    value_count(fields) > ACP_ELICITATION_FIELDS)
		return NULL;
	made = value_new_object();
	properties = value_new_object();
	value_set_text(made, "type", "object");
	copy_words(schema, made);
	value_set(made, "properties", properties);
	for (void *at = value_first(fields); at != NULL; at = value_next(fields, at)) {
		struct value *field = field_of(value_at(at));

		if (field == NULL) {
			value_free(made);
			return NULL;
		}
		value_set(properties, value_key(at), field);
	}
	if (are_texts(required))
		value_set(made, "required", value_copy(required));
	return made;
}

static bool is_form(const struct value *question)
{
	return str_is(value_str(value_member(question, "kind")), "form");
}

/* The params for QUESTION; NULL: it cannot be asked. */
static struct value *params_of(const struct acp_elicitation *elicitation,
			       const struct value *question)
{
	const struct str kind = value_str(value_member(question, "kind"));
	const struct value *message = value_member(question, "message");
	const struct value *url = value_member(question, "url");
	struct value *schema = NULL, *params;
	struct buf id;

	if (value_kind(message) != VALUE_STRING)
		return NULL;
	if (is_form(question) && (elicitation->kinds & ACP_ELICITS_FORMS) != 0)
		schema = schema_of(value_member(question, "schema"));
	if (schema == NULL && (!str_is(kind, "url") || value_str(url).size == 0 ||
			       (elicitation->kinds & ACP_ELICITS_ADDRESSES) == 0))
		return NULL;
	params = value_new_object();
	value_set_text(params, "mode", schema != NULL ? "form" : "url");
	value_set_text(params, "toolCallId", elicitation->call);
	value_set(params, "message", value_copy(message));
	if (schema != NULL) {
		value_set(params, "requestedSchema", schema);
		return params;
	}
	buf_init(&id, ID_MAX_BYTES);
	(void)buf_addf(&id, "%.128s-%lld-%zu", elicitation->call,
		       (long long)elicitation->number, elicitation->at);
	value_set_str(params, "elicitationId", buf_str(&id));
	value_set(params, "url", value_copy(url));
	buf_fini(&id);
	return params;
}

static bool is_sampling(const struct value *question)
{
	return str_is(value_str(value_member(question, "kind")), CALL_ASK_SAMPLING);
}

static void add_option(struct value *options, const char *id, const char *kind,
		       const char *name)
{
	struct value *option = value_new_object();

	value_set_text(option, "optionId", id);
	value_set_text(option, "kind", kind);
	value_set_text(option, "name", name);
	value_append(options, option);
}

/* The option that is a yes. */
static const char yes[] = "once";

/* The params of a permission to ask the model QUESTION; NULL: it does not say what. */
static struct value *permission_of(const struct acp_elicitation *elicitation,
				   const struct value *question)
{
	const struct value *message = value_member(question, "message");
	const struct value *text = value_member(question, "text");
	struct value *params, *about, *content, *block, *inner, *options;

	if (value_str(message).size == 0 || value_str(text).size == 0)
		return NULL;
	params = value_new_object();
	about = value_new_object();
	content = value_new_array();
	block = value_new_object();
	inner = value_new_object();
	options = value_new_array();
	value_set_text(inner, "type", "text");
	value_set(inner, "text", value_copy(text));
	value_set_text(block, "type", "content");
	value_set(block, "content", inner);
	value_append(content, block);
	value_set_text(about, "toolCallId", elicitation->call);
	value_set(about, "title", value_copy(message));
	value_set_text(about, "kind", "other");
	value_set(about, "rawInput", value_new_object());
	value_set(about, "content", content);
	add_option(options, yes, "allow_once", "Ask the model this, once");
	add_option(options, "no", "reject_once", "Refuse");
	value_set(params, "toolCall", about);
	value_set(params, "options", options);
	return params;
}

struct value *acp_elicitation_next(struct acp_elicitation *elicitation, const char **method)
{
	const struct value *question;
	const char *key = NULL;

	while ((question = question_at(elicitation, &key)) != NULL) {
		struct value *params = is_sampling(question)
					       ? permission_of(elicitation, question)
					       : params_of(elicitation, question);

		*method = is_sampling(question) ? "session/request_permission"
						: "elicitation/create";

		if (params != NULL)
			return params;
		settle(elicitation, key, action("decline"));
	}
	return NULL;
}

/* The members of CONTENT that the form SCHEMA asks for. */
static struct value *content_of(const struct value *schema, const struct value *content)
{
	const struct value *fields = value_member(schema, "properties");
	struct value *made = value_new_object();

	for (void *at = value_first(fields); at != NULL; at = value_next(fields, at)) {
		const struct value *said = value_member(content, value_key(at));

		if (said != NULL)
			value_set(made, value_key(at), value_copy(said));
	}
	return made;
}

/* Does CONTENT, of an accepted form, fit SCHEMA? */
static bool check_content(const struct value *schema, const struct value *content,
			  struct err *why)
{
	struct validate_problem problem = {0};
	struct buf text;
	bool fits;

	buf_init(&text, ACP_ELICITATION_CONTENT);
	fits = value_print(content, 0, &text);
	buf_fini(&text);
	if (!fits)
		return err_set(why, E2BIG,
			       "The answer to a question of a tool has more than %d bytes, so it "
			       "was declined.",
			       ACP_ELICITATION_CONTENT);
	return validate_value(schema, content, &problem) ||
	       err_set(why, EINVAL,
		       "The answer to a question of a tool does not fit its form, so it was "
		       "declined: %.200s %.300s.",
		       problem.pointer[0] != '\0' ? problem.pointer : "it", problem.rule);
}

/* RESULT as an answer to QUESTION; NULL: WHY says why it is none. */
static struct value *answer_of(const struct value *question, const struct value *result,
			       struct err *why)
{
	const struct value *schema = value_member(question, "schema");
	const struct str word = value_str(value_member(result, "action"));
	const struct value *outcome = value_member(result, "outcome");
	struct value *content, *answer;

	if (is_sampling(question))
		return action(str_is(value_str(value_member(outcome, "optionId")), yes)
				      ? "accept"
				      : "decline");
	if (result == NULL || !str_among("accept decline cancel", word)) {
		(void)err_set(why, EPROTO,
			      "The editor could not put a question of a tool to you, or "
			      "answers it in a form that is not known; it was declined.");
		return NULL;
	}
	if (!str_is(word, "accept") || !is_form(question))
		return action(str_is(word, "accept")   ? "accept"
			      : str_is(word, "cancel") ? "cancel"
						       : "decline");
	content = content_of(schema, value_member(result, "content"));
	if (!check_content(schema, content, why)) {
		value_free(content);
		return NULL;
	}
	answer = action("accept");
	value_set(answer, "content", content);
	return answer;
}

bool acp_elicitation_take(struct acp_elicitation *elicitation, const struct value *result,
			  struct err *why)
{
	const char *key = NULL;
	const struct value *question = question_at(elicitation, &key);
	struct value *answer;

	if (question == NULL)
		return true;
	answer = answer_of(question, result, why);
	settle(elicitation, key, answer != NULL ? answer : action("decline"));
	return answer != NULL;
}

struct value *acp_elicitation_answer(const struct acp_elicitation *elicitation)
{
	const struct value *answer = value_member(elicitation->answers, SINGLE);
	struct value *line;

	if (elicitation->several) {
		line = action("accept");
		value_set(line, "content", value_copy(elicitation->answers));
	} else {
		line = answer != NULL ? value_copy(answer) : action("decline");
	}
	value_set_text(line, "call", elicitation->call);
	value_set_integer(line, "id", elicitation->number);
	return line;
}
