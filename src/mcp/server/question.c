/*
 * question: what a running call asks the client: of a person, a model, or about its roots. In
 * the legacy era as requests of ours on the call's way; in the modern one as the answer
 * "input_required", with which the call is parked until its client comes back.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "mcp/server/ask.h"
#include "mcp/server/call.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PARKED_MS = 600000, /* a person may be at lunch; a worker waits all the while */
	PARKED_MAX = 64,
	STATE_MAX = 64,
	PURPOSE_MAX = 2048,
};

static struct value *declined(void)
{
	struct value *answer = value_new_object();

	value_set_text(answer, "action", "decline");
	return answer;
}

/* Nobody is there who could be asked, which is another thing than a no (approval.h). */
static struct value *unasked(void)
{
	struct value *answer = declined(), *content = value_new_object();

	value_set_text(content, "by", "nobody");
	value_set(answer, "content", content);
	return answer;
}

static bool is_answered(const struct mcp_call *call)
{
	return value_count(call->answers) == value_count(call->requests);
}

static void forget(struct mcp_call *call)
{
	value_free(call->requests);
	value_free(call->answers);
	call->requests = NULL;
	call->answers = NULL;
	call->question = 0;
	free(call->hash);
	call->hash = NULL;
	call->parked.due_ms = CLOCK_NEVER;
	loop_remove_timer(&call->parked);
}

/* All answers are there: back to the worker with them. */
static void hand_back(struct mcp_call *call)
{
	const int64_t question = call->question;
	struct value *answers = value_ref(call->answers);
	auto_value struct value *reply = NULL;

	if (call->one) {
		reply = value_ref(value_at(value_first(answers)));
		value_free(answers);
	} else {
		reply = value_new_object();
		value_set_text(reply, "action", "accept");
		value_set(reply, "content", answers);
	}
	/* The client has shown what this is the hash of: it was in the question. */
	struct value *content = value_member(reply, "content");
	if (call->hash != NULL && value_kind(content) == VALUE_OBJECT)
		value_set_text(content, "hash", call->hash);
	forget(call);
	/* When it cannot be told its worker is gone, and the call's end follows. */
	if (call->running != NULL)
		(void)running_answer(call->running, question, reply, NULL);
}

/* The client lacks what the call cannot do without: it is not made. True when it is so. */
static bool refuse_missing(struct mcp_call *call)
{
	struct mcp_request *request = call->request;
	struct value *needed = value_new_object(), *data;

	for (void *at = value_first(call->requests); at != NULL;
	     at = value_next(call->requests, at)) {
		const struct value *one = value_at(at);

		if (ask_is_needed(one) && !ask_is_possible(one, &call->client))
			value_set(needed, ask_capability(one), value_new_object());
	}
	if (request == NULL || value_count(needed) == 0 ||
	    call->client.version < MCP_2026_07_28) {
		value_free(needed);
		return false;
	}
	data = value_new_object();
	value_set(data, "requiredCapabilities", needed);
	mcp_call_cancel(call);
	mcp_fail(request, MCP_CODE_CAPABILITY, data,
		 "This call needs a capability that the client did not declare.");
	return true;
}

/*
 * Answer the requests that need not be asked, because their answer was given before or
 * because the client cannot be asked. An earlier answer to an approval counts only when
 * the approval was SHOWN; the hash that we add proves that.
 */
static void answer_known(struct mcp_call *call, bool shown)
{
	for (void *at = value_first(call->requests); at != NULL;
	     at = value_next(call->requests, at)) {
		const char *key = value_key(at);
		const struct value *given =
			shown || call->hash == NULL ? value_member(call->given, key) : NULL;

		if (value_member(call->answers, key) != NULL)
			continue;
		struct value *answer =
			given != NULL ? ask_read_answer(value_at(at), given) : NULL;
		if (answer == NULL && !ask_is_possible(value_at(at), &call->client))
			answer = call->hash != NULL ? unasked() : declined();
		if (answer != NULL)
			value_set(call->answers, key, answer);
	}
}

static void parked_due(struct timer *timer)
{
	mcp_call_cancel(timer->context);
}

/* The sealed state is valid only for a call of the same TOOL with the same ARGUMENTS. */
static void add_purpose(const char *tool, const struct value *arguments, struct buf *purpose)
{
	char hex[HASH_HEX + 1];
	struct buf text;

	buf_init(&text, VALUE_TEXT_MAX);
	if (arguments == NULL)
		(void)buf_adds(&text, "{}");
	else
		(void)value_print(arguments, VALUE_SORTED, &text);
	hash_text(buf_str(&text), hex);
	buf_fini(&text);
	(void)buf_addf(purpose, "tools/call %s %s", tool, hex);
}

/* Answer the request with the questions; the call waits for the next request. */
static void park(struct mcp_call *call)
{
	struct mcp_request *request = call->request;
	struct value *result = value_new_object(), *asked = value_new_object();
	char state[STATE_MAX];
	struct buf sealed, purpose;

	for (void *at = value_first(call->requests); at != NULL;
	     at = value_next(call->requests, at)) {
		if (value_member(call->answers, value_key(at)) == NULL)
			value_set(asked, value_key(at), ask_message(value_at(at), 0, NULL));
	}
	(void)snprintf(state, sizeof(state), "%s.%" PRIu64 ".%" PRIu64, call->mcp->run,
		       call->number, call->asked);
	buf_init(&purpose, PURPOSE_MAX);
	buf_init(&sealed, STATE_MAX + HASH_HEX + 2);
	add_purpose(call->tool, call->arguments, &purpose);
	seal_add(&call->mcp->key, buf_str(&purpose), str_of(state), &sealed);
	value_set_text(result, "resultType", "input_required");
	value_set(result, "inputRequests", asked);
	value_set_text(result, "requestState", sealed.data);
	buf_fini(&sealed);
	buf_fini(&purpose);
	call->request = NULL;
	request->call = NULL;
	mcp_progress_end(call);
	call->parked = (struct timer){.due_ms = clock_now_ms() + PARKED_MS,
				      .due = parked_due,
				      .context = call};
	loop_add_timer(call->mcp->options.loop, &call->parked);
	mcp_answer(request, result);
}

/* One request of ours for each that is not answered yet: "q7.0", "q7.1", … */
static void send_requests(struct mcp_call *call)
{
	size_t index = 0;

	for (void *at = value_first(call->requests); at != NULL;
	     at = value_next(call->requests, at), index++) {
		char id[STATE_MAX];

		if (value_member(call->answers, value_key(at)) != NULL)
			continue;
		(void)snprintf(id, sizeof(id), "q%" PRIu64 ".%zu", call->asked, index);
		auto_value struct value *message = ask_message(value_at(at), 1, id);
		struct value *params = value_member(message, "params");

		mcp_tell(call->mcp, call->request->way, id,
			 value_text(value_member(message, "method")),
			 params != NULL ? value_ref(params) : NULL);
	}
}

/*
 * Cancel the parked call that has waited longest for its client: each one holds a worker.
 */
static void make_room(struct mcp *mcp)
{
	struct mcp_call *oldest = NULL;
	size_t count = 0;

	for (struct mcp_call *at = mcp->last_call; at != NULL; at = at->previous) {
		if (at->request != NULL || at->unwanted)
			continue;
		oldest = at;
		count++;
	}
	if (count >= PARKED_MAX)
		mcp_call_cancel(oldest);
}

static void ask_client(struct mcp_call *call)
{
	assert(call->request != NULL);
	if (call->client.version < MCP_2026_07_28) {
		send_requests(call);
		return;
	}
	make_room(call->mcp);
	park(call);
}

void mcp_question(struct mcp_call *call, const struct value *data)
{
	const struct value *request = value_member(data, "request");
	const char *kind = value_text(value_member(data, "kind"));

	if (call->question != 0)
		return;
	call->question = value_integer(value_member(data, "id"));
	call->hash = memory_copy(value_text(value_member(data, "hash")));
	call->asked = ++call->mcp->next_question;
	call->answers = value_new_object();
	call->requests = ask_requests(kind, request, call->asked, &call->one);
	if (refuse_missing(call))
		return;
	answer_known(call, false);
	/* Nobody is there to be asked. */
	if (!is_answered(call) && call->request == NULL) {
		for (void *at = value_first(call->requests); at != NULL;
		     at = value_next(call->requests, at)) {
			if (value_member(call->answers, value_key(at)) == NULL)
				value_set(call->answers, value_key(at),
					  call->hash != NULL ? unasked() : declined());
		}
	}
	if (is_answered(call))
		hand_back(call);
	else
		ask_client(call);
}

void mcp_question_end(struct mcp_call *call)
{
	forget(call);
	value_free(call->given);
	call->given = NULL;
}

/* The call that asked the question of this ID ("q7.1") of PEER, and its key. */
static struct mcp_call *find_asking(const struct mcp_peer *peer, const char *id, void **key)
{
	char *end;

	if (id == NULL || id[0] != 'q')
		return NULL;
	const uint64_t asked = strtoull(id + 1, &end, 10);
	if (*end != '.')
		return NULL;
	size_t index = strtoul(end + 1, &end, 10);
	if (*end != '\0')
		return NULL;
	for (struct mcp_call *at = peer->mcp->first_call; at != NULL; at = at->next) {
		if (at->question == 0 || at->asked != asked || at->request == NULL ||
		    at->request->peer != peer)
			continue;
		*key = value_first(at->requests);
		while (*key != NULL && index-- > 0)
			*key = value_next(at->requests, *key);
		return *key != NULL ? at : NULL;
	}
	return NULL;
}

void mcp_calls_answered(struct mcp_peer *peer, const struct mcp_message *message)
{
	void *key = NULL;
	struct mcp_call *call = find_asking(peer, value_text(message->id), &key);
	struct value *answer = NULL;

	if (call == NULL || value_member(call->answers, value_key(key)) != NULL)
		return;
	if (message->result != NULL)
		answer = ask_read_answer(value_at(key), message->result);
	/* An error, or an answer that is none: as if nobody wanted to say anything. */
	value_set(call->answers, value_key(key), answer != NULL ? answer : declined());
	if (is_answered(call))
		hand_back(call);
}

static struct mcp_call *find_parked(struct mcp *mcp, struct str state)
{
	auto_free char *text = memory_copy_str(str_part(state, MCP_RUN + 1, state.size));
	char *end;
	const uint64_t number = strtoull(text, &end, 10);
	const uint64_t asked = *end == '.' ? strtoull(end + 1, NULL, 10) : 0;

	struct mcp_call *call = mcp_call_find(mcp, number);
	return call != NULL && call->asked == asked && call->request == NULL && !call->unwanted
		       ? call
		       : NULL;
}

static void resume(struct mcp_request *request, struct mcp_call *call,
		   const struct value *answers)
{
	struct value *token =
		value_member(value_member(request->params, "_meta"), "progressToken");

	call->request = request;
	call->client = request->client;
	request->call = call;
	loop_remove_timer(&call->parked);
	value_free(call->token);
	call->token = token != NULL ? value_ref(token) : NULL;
	mcp_progress_begin(call);
	if (call->question == 0)
		return; /* it ended meanwhile: its result is due */
	value_free(call->given);
	call->given = answers != NULL ? value_ref(answers) : NULL;
	answer_known(call, true);
	if (is_answered(call))
		hand_back(call);
	else
		park(call);
}

/* It looks like one of a server that was there before this one. It may be made up as well. */
static bool is_of_another_run(const struct mcp *mcp, struct str state)
{
	bool looks = state.size > MCP_RUN && state.data[MCP_RUN] == '.';

	for (size_t i = 0; looks && i < MCP_RUN; i++)
		looks = strchr("0123456789abcdef", state.data[i]) != NULL &&
			state.data[i] != '\0';
	return looks && memcmp(state.data, mcp->run, MCP_RUN) != 0;
}

static void refuse_state(struct mcp_request *request, struct str state, bool sound)
{
	const char *why = "This requestState was not made here, for this tool with these "
			  "arguments: repeat the call as it was.";

	if (sound)
		why = "This requestState has been used, or the call it belongs to waits no "
		      "longer; make the call anew, without it.";
	else if (is_of_another_run(request->mcp, state))
		why = "This requestState is of a server that has ended since, and its call "
		      "with it. Look at what the call may have done before it asked, then "
		      "make it anew, without requestState.";
	mcp_fail(request, MCP_CODE_PARAMS, NULL, "%s", why);
}

bool mcp_question_resume(struct mcp_request *request, struct mcp_call **call,
			 struct value **given)
{
	const struct value *state = value_member(request->params, "requestState");
	struct value *answers = value_member(request->params, "inputResponses");
	struct buf purpose;
	struct str inner;

	*call = NULL;
	*given = NULL;
	if (request->client.version < MCP_2026_07_28)
		return true;
	if (answers != NULL && value_kind(answers) != VALUE_OBJECT) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "inputResponses must be an object.");
		return false;
	}
	if (state == NULL) {
		*given = answers != NULL ? value_ref(answers) : NULL;
		return true;
	}
	buf_init(&purpose, PURPOSE_MAX);
	add_purpose(value_text(value_member(request->params, "name")),
		    value_member(request->params, "arguments"), &purpose);
	bool sound = seal_check(&request->mcp->key, buf_str(&purpose), value_str(state),
				&inner);
	buf_fini(&purpose);
	*call = sound ? find_parked(request->mcp, inner) : NULL;
	if (*call == NULL) {
		refuse_state(request, value_str(state), sound);
		return false;
	}
	resume(request, *call, answers);
	return true;
}
