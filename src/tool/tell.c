/* tell: questions and replies as JSON; see tell.h. */
#include "tool/tell.h"

#include <errno.h>

static bool is_kind(const char *kind)
{
	struct str name = str_of(kind);

	return str_among("form url sampling roots several", name);
}

bool tell_print_question(const struct tell_question *question, struct buf *out)
{
	return buf_addf(out, "{\"id\":%lld,\"kind\":", (long long)question->id) &&
	       value_quote(str_of(question->kind), out) && buf_adds(out, ",\"request\":") &&
	       value_print(question->request, 0, out) && buf_addc(out, '}');
}

bool tell_parse_question(struct str text, struct tell_question *question,
			 struct value **object, struct err *err)
{
	struct value *parsed = NULL;

	if (text.size > TELL_QUESTION_MAX)
		return err_set(err, EPROTO, "a question over %d bytes", TELL_QUESTION_MAX);
	if (!value_parse(text, 0, &parsed, err))
		return err_while(err, "a question");
	*question = (struct tell_question){
		.id = value_integer(value_member(parsed, "id")),
		.kind = value_text(value_member(parsed, "kind")),
		.request = value_member(parsed, "request"),
	};
	if (question->id > 0 && is_kind(question->kind) &&
	    value_kind(question->request) == VALUE_OBJECT) {
		*object = parsed;
		return true;
	}
	value_free(parsed);
	return err_set(err, EPROTO, "a question without id, kind or request");
}

bool tell_is_answer(const struct value *answer)
{
	struct str action = value_str(value_member(answer, "action"));

	return value_kind(answer) == VALUE_OBJECT &&
	       (str_is(action, "accept") || str_is(action, "decline") ||
		str_is(action, "cancel"));
}

bool tell_print_reply(int64_t id, const struct value *answer, struct buf *out)
{
	return buf_addf(out, "{\"id\":%lld,\"answer\":", (long long)id) &&
	       value_print(answer, 0, out) && buf_addc(out, '}');
}

bool tell_parse_reply(struct str text, int64_t *id, struct value **answer, struct err *err)
{
	auto_value struct value *parsed = NULL;

	if (!value_parse(text, 0, &parsed, err))
		return err_while(err, "a reply");
	if (!tell_is_answer(value_member(parsed, "answer")))
		return err_set(err, EPROTO, "a reply without an answer");
	*id = value_integer(value_member(parsed, "id"));
	*answer = value_ref(value_member(parsed, "answer"));
	return true;
}
