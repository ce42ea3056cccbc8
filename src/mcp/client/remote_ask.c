/*
 * remote_ask: questions of a server during a call. They go to the caller, as a plugin's
 * question does. Older servers ask with a request of their own, which names no call.
 * Newer servers send the answer "input_required", and then the call is sent again with
 * the answers.
 */
#include "mcp/client/remote_parts.h"

#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>

enum {
	QUESTIONS_MAX = 16,  /* of one call: a person is not to be worn down */
	AT_ONCE_MAX = 8,     /* in one answer */
	SAID_MAX = 4 << 10,  /* bytes of what a person reads */
	FORM_MAX = 64 << 10, /* bytes of the schema of a form */
	TOKEN_MAX = 1 << 20, /* of what it wants to have back */
};

#define ELICIT "elicitation/create"

void remote_ask_fini(struct remote_call *call)
{
	value_free(call->asked_id);
	value_free(call->asked);
	value_free(call->token);
	call->asked_id = call->asked = call->token = NULL;
}

/* The reader must know that the server asks, not we. */
static bool add_message(const struct remote *remote, const struct value *params,
			struct value *question)
{
	struct str said = value_str(value_member(params, "message"));
	struct buf text, clean;
	bool fits;

	buf_init(&text, 16 * SAID_MAX);
	buf_init(&clean, 8 * SAID_MAX);
	(void)buf_addf(&text, "The MCP server %s asks: ", remote->name);
	fits = said.size <= SAID_MAX && text_clean(said, &clean);
	/* Nor may a mark of direction put its words before ours. */
	text_add_paragraph(&text, buf_str(&clean));
	if (fits)
		value_set_str(question, "message", buf_str(&text));
	buf_fini(&clean);
	buf_fini(&text);
	return fits;
}

/* The parameters of elicitation/create as a plugin's question; NULL: it is none. */
static struct value *question_of(const struct remote *remote, const struct value *params)
{
	struct value *schema = value_member(params, "requestedSchema");
	const struct value *url = value_member(params, "url");
	const bool by_url = str_is(value_str(value_member(params, "mode")), "url");
	struct value *question = value_new_object();
	bool fits = add_message(remote, params, question);
	struct buf text;

	value_set_text(question, "kind", by_url ? "url" : "form");
	buf_init(&text, by_url ? SAID_MAX : FORM_MAX);
	if (by_url) {
		fits = fits && value_str(url).size && text_clean(value_str(url), &text) &&
		       str_equal(buf_str(&text), value_str(url));
		value_set_str(question, "url", buf_str(&text));
	} else {
		fits = fits && value_kind(schema) == VALUE_OBJECT &&
		       value_print(schema, 0, &text);
		if (fits)
			value_set(question, "schema", value_copy(schema));
	}
	buf_fini(&text);
	if (fits)
		return question;
	value_free(question);
	return NULL;
}

static const char *kind_of(const struct value *question)
{
	return value_text(value_member(question, "kind"));
}

/* An answer of ours as a result of elicitation/create. */
static struct value *result_of(const struct value *answer)
{
	const char *action = value_text(value_member(answer, "action"));
	struct value *content = value_member(answer, "content");
	struct value *result = value_new_object();

	value_set_text(result, "action", action ? action : "decline");
	if (action && strcmp(action, "accept") == 0 && value_kind(content) == VALUE_OBJECT)
		value_set(result, "content", value_copy(content));
	return result;
}

/* Which call asks is not said: that which waits for longest and asks nothing. */
static struct remote_call *find_asking(const struct remote *remote)
{
	struct remote_call *oldest = NULL;

	for (struct remote_call *at = remote->calls; at; at = at->next) {
		if (at->id && !at->asked_id && at->questions < QUESTIONS_MAX &&
		    (!oldest || at->id < oldest->id))
			oldest = at;
	}
	return oldest;
}

static void decline(struct remote *remote, const struct value *id)
{
	struct value *result = value_new_object();

	value_set_text(result, "action", "decline");
	remote_reply(remote, id, result, NULL);
}

bool remote_asked(struct remote *remote, const struct mcp_message *message)
{
	auto_value struct value *question = NULL;
	struct remote_call *call;
	struct running *running;

	if (remote->modern || !remote->options.asks || strcmp(message->method, ELICIT) != 0)
		return false;
	question = question_of(remote, message->params);
	call = question ? find_asking(remote) : NULL;
	if (!call) {
		decline(remote, message->id);
		remote_fault(remote);
		return true;
	}
	call->questions++;
	call->asked_id = value_ref(message->id);
	/* It may be answered, and the call be over, before this returns. */
	running = call->running;
	if (!running_ask(running, kind_of(question), question)) {
		auto_value struct value *nothing = value_new_object();

		remote_answer(remote, running, nothing);
	}
	return true;
}

/* Send CALL again with RESPONSES to what it has asked, and its own state. */
static void send_again(struct remote *remote, struct remote_call *call,
		       struct value *take_responses)
{
	struct value *more = value_new_object();

	value_set(more, "inputResponses", take_responses);
	if (call->token)
		value_set(more, "requestState", value_ref(call->token));
	remote_ask_fini(call);
	remote_call_send(remote, call, more);
}

void remote_answer(struct remote *remote, const struct running *running,
		   const struct value *answer)
{
	struct remote_call *call = remote_call_find(remote, running);
	struct value *content = value_member(answer, "content");

	if (call && call->asked_id) {
		auto_value struct value *id = call->asked_id;

		call->asked_id = NULL;
		remote_reply(remote, id, result_of(answer), NULL);
	} else if (call && call->asked) {
		struct value *responses = value_new_object();

		for (void *at = value_first(call->asked); at;
		     at = value_next(call->asked, at))
			value_set(responses, value_key(at),
				  result_of(value_member(content, value_key(at))));
		send_again(remote, call, responses);
	}
}

/* The questions of ASKED as one of several; NULL: there is one that was not offered. */
static struct value *several_of(const struct remote *remote, const struct value *asked)
{
	struct value *several = value_new_object();
	size_t count = 0;

	for (void *at = value_first(asked); at; at = value_next(asked, at)) {
		const struct value *one = value_at(at);
		struct value *question =
			str_is(value_str(value_member(one, "method")), ELICIT) &&
					++count <= AT_ONCE_MAX
				? question_of(remote, value_member(one, "params"))
				: NULL;

		if (!question) {
			value_free(several);
			return NULL;
		}
		value_set(several, value_key(at), question);
	}
	return several;
}

static bool token_fits(const struct value *token)
{
	return !token ||
	       (value_kind(token) == VALUE_STRING && value_str(token).size <= TOKEN_MAX);
}

bool remote_call_asks(struct remote *remote, struct remote_call *call,
		      const struct value *result)
{
	const struct value *asked = value_member(result, "inputRequests");
	struct value *token = value_member(result, "requestState");
	auto_value struct value *several = NULL;
	auto_value struct value *question = NULL;
	struct running *running = call->running;

	if (!str_is(value_str(value_member(result, "resultType")), "input_required") ||
	    !remote->options.asks || !token_fits(token) || ++call->questions > QUESTIONS_MAX)
		return false;
	several = several_of(remote, asked);
	if (!several)
		return false;
	remote_ask_fini(call);
	call->token = token ? value_ref(token) : NULL;
	call->asked = value_ref(several);
	if (value_count(several) == 0) {
		/* It wants to be called again, and nothing else. */
		send_again(remote, call, value_new_object());
		return true;
	}
	question = value_new_object();
	value_set(question, "requests", value_ref(several));
	if (!running_ask(running, "several", question)) {
		auto_value struct value *nothing = value_new_object();

		remote_answer(remote, running, nothing);
	}
	return true;
}
