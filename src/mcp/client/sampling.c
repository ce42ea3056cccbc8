/* sampling: reads what a server wants a model to be asked. */

#include "mcp/client/sampling.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "tool/call.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that a person cannot see are shown as four each. */
enum { SHOWN_MAX = 4 * SAMPLING_TEXT_MAX + (4 << 10) };

/* The parts of one request that are read. */
struct sampling {
	size_t bytes;           /* of all texts */
	struct buf shown;       /* for the person */
	struct value *messages; /* for the model */
};

static bool take_text(struct sampling *sampling, const char *speaker, struct str text,
		      struct err *why)
{
	sampling->bytes += text.size;
	if (sampling->bytes > SAMPLING_TEXT_MAX)
		return err_set(why, E2BIG,
			       "All texts together may have %d bytes here, because a person reads "
			       "them.",
			       SAMPLING_TEXT_MAX);
	(void)buf_addf(&sampling->shown, "%s%s:\n", sampling->shown.size > 0 ? "\n" : "",
		       speaker);
	text_add_paragraph(&sampling->shown, text);
	(void)buf_end_line(&sampling->shown);
	return true;
}

/* Append the text of BLOCK, one block of content, to TEXT. */
static bool add_block(const struct value *block, struct buf *text, struct err *why)
{
	if (!str_is(value_str(value_member(block, "type")), "text") ||
	    value_kind(value_member(block, "text")) != VALUE_STRING)
		return err_set(
			why, EINVAL,
			"Only texts are passed on here, no pictures, sounds and results.");
	(void)buf_end_line(text);
	return buf_addstr(text, value_str(value_member(block, "text"))) ||
	       err_set(why, E2BIG,
		       "A message may have %d bytes here, because a person reads it.",
		       SAMPLING_TEXT_MAX);
}

static bool take_message(struct sampling *sampling, const struct value *message,
			 struct err *why)
{
	const struct value *content = value_member(message, "content");
	const struct str role = value_str(value_member(message, "role"));
	const bool by_model = str_is(role, "assistant");
	struct value *made;
	struct buf text;
	bool fine = true;

	if (!by_model && !str_is(role, "user"))
		return err_set(why, EINVAL, "The role of a message is user or assistant.");
	buf_init(&text, SAMPLING_TEXT_MAX);
	if (value_kind(content) != VALUE_ARRAY)
		fine = add_block(content, &text, why);
	else
		for (size_t i = 0; fine && i < value_count(content); i++)
			fine = add_block(value_item(content, i), &text, why);
	fine = fine && take_text(sampling, by_model ? "The model said" : "Asked",
				 buf_str(&text), why);
	if (fine) {
		made = value_new_object();
		value_set_boolean(made, "model", by_model);
		value_set_str(made, "text", buf_str(&text));
		value_append(sampling->messages, made);
	}
	buf_fini(&text);
	return fine;
}

static bool take_all(struct sampling *sampling, const struct value *params, struct err *why)
{
	const struct value *messages = value_member(params, "messages");
	const struct value *prompt = value_member(params, "systemPrompt");
	const size_t count = value_count(messages);
	bool fine = true;

	if (value_count(value_member(params, "tools")) > 0)
		return err_set(why, EINVAL, "No tools are offered here.");
	if (value_kind(messages) != VALUE_ARRAY || count == 0 ||
	    count > SAMPLING_MESSAGES_MAX)
		return err_set(why, EINVAL, "There must be 1 to %d messages.",
			       SAMPLING_MESSAGES_MAX);
	if (value_str(prompt).size > 0)
		fine = take_text(sampling, "The system prompt", value_str(prompt), why);
	for (size_t i = 0; fine && i < count; i++)
		fine = take_message(sampling, value_item(messages, i), why);
	return fine;
}

struct value *sampling_question(const char *name, const struct value *params, struct err *why)
{
	struct sampling sampling = {.messages = value_new_array()};
	const struct value *prompt = value_member(params, "systemPrompt");
	const int64_t wanted = value_integer(value_member(params, "maxTokens"));
	const int64_t tokens = wanted > 0 && wanted < CALL_SAMPLING_TOKENS_MAX
				       ? wanted
				       : CALL_SAMPLING_TOKENS_MAX;
	struct value *question = NULL;
	struct buf message;

	buf_init(&sampling.shown, SHOWN_MAX);
	if (take_all(&sampling, params, why)) {
		question = value_new_object();
		buf_init(&message, ERR_TEXT_MAX);
		(void)buf_addf(&message,
			       "The MCP server %.100s wants your model to be asked what stands "
			       "below, for up to %lld tokens; the server reads the answer.",
			       name, (long long)tokens);
		value_set_text(question, "kind", CALL_ASK_SAMPLING);
		value_set_str(question, "message", buf_str(&message));
		value_set_str(question, "text", buf_str(&sampling.shown));
		if (value_str(prompt).size > 0)
			value_set(question, "system", value_copy(prompt));
		value_set(question, "messages", value_ref(sampling.messages));
		value_set_integer(question, "tokens", tokens);
		buf_fini(&message);
	}
	value_free(sampling.messages);
	buf_fini(&sampling.shown);
	return question;
}

struct value *sampling_result(const struct value *answer, struct err *why)
{
	struct value *content = value_member(answer, "content");
	const struct str said = value_str(value_member(content, "why"));

	if (str_is(value_str(value_member(answer, "action")), "accept") &&
	    value_kind(value_member(content, "role")) == VALUE_STRING)
		return content;
	if (said.size == 0)
		(void)err_set(why, ECANCELED, "The person did not agree to ask a model.");
	else
		(void)err_set(why, ECANCELED, "%.400s", said.data);
	return NULL;
}
