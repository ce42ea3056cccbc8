/*
 * question: what the code of a call asks its caller, and the answer: questions of a worker
 * (plugins), and of tools that are carried out ELSEWHERE. Approvals are approval.c's.
 */

#include "session/session.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "cell/cell.h"
#include "cell/wire.h"
#include "session/approval.h"
#include "session/masking.h"
#include "tool/call.h"
#include "tool/event.h"
#include "tool/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* How long a worker may take to read an answer. */
	ANSWER_MS = 10000,
	/* One call asks no more after so many noes: a server that goes on and on holds nobody fast. */
	REFUSALS_MAX = 3,
};

void running_question_end(struct running *running)
{
	running->asking.question = 0;
	free(running->asking.kind);
	value_free(running->asking.request);
	running->asking.kind = NULL;
	running->asking.request = NULL;
}

static bool reply_send(const struct running *running, int64_t id,
		       const struct value *answer, struct err *err)
{
	struct buf text;

	buf_init(&text, TELL_QUESTION_MAX);
	bool ok = call_tell_print_reply(id, answer, &text) ||
		  err_set(err, E2BIG, "the answer is over %d bytes", TELL_QUESTION_MAX);
	ok = ok && frame_send(running->busy.worker->socket, FRAME_REPLY, buf_str(&text),
			      NULL, 0, clock_now_ms() + ANSWER_MS, err);
	buf_fini(&text);
	return ok;
}

static void decline(const struct running *running, int64_t id)
{
	auto_value struct value *answer = value_new_object();

	value_set_text(answer, "action", "decline");
	/*
	 * When the reply cannot be sent the worker is gone, and its loss is reported
	 * separately.
	 */
	(void)reply_send(running, id, answer, NULL);
}

static bool may_ask(const struct running *running)
{
	const struct session *session = running->session;

	return (running->tool->plans ? session->answers_plans : session->answers_questions) &&
	       running->asking.refusals < REFUSALS_MAX && session->sink.event != NULL &&
	       !running->told.quiet && !approval_is_open(running) &&
	       running->job == NULL && !running->cancelled;
}

/* False: nobody has received the question. */
static bool open_question(struct running *running, int64_t id, const char *kind,
			  const struct value *request)
{
	auto_value struct value *data = value_new_object();
	struct value *masked = masking_value(running, request);
	struct err err;

	value_set_integer(data, "id", id);
	value_set_text(data, "kind", kind);
	running->asking.question = id;
	running->asking.kind = memory_copy(kind);
	running->asking.request = masked != NULL ? masked : value_ref(request);
	value_set(data, "request", value_ref(running->asking.request));
	/* The question may be answered before session_emit returns. */
	if (session_emit(running->session, EVENT_QUESTION, running, (struct str){0}, data,
			 &err) ||
	    running->asking.question != id)
		return true;
	running_question_end(running);
	return false;
}

void running_question_take(struct running *running, struct str payload)
{
	auto_value struct value *object = NULL;
	struct tell_question question;

	/*
	 * Our code in a worker asks one question at a time; a worker that asks more is
	 * not heard.
	 */
	if (running->asking.question != 0 ||
	    !call_tell_parse_question(payload, &question, &object, NULL))
		return;
	if (!may_ask(running) ||
	    !open_question(running, question.id, question.kind, question.request))
		decline(running, question.id);
}

bool running_ask(struct running *running, const char *kind, const struct value *request)
{
	if (running->asking.question != 0 || running->tool->answered == NULL ||
	    !may_ask(running))
		return false;
	return open_question(running, ++running->asking.questions, kind, request);
}

bool running_answer(struct running *running, int64_t question, const struct value *answer,
		    struct err *err)
{
	if (question < 0)
		return approval_answer(running, question, answer, err);
	if (running->asking.question == 0 || running->asking.question != question ||
	    (running->busy.worker == NULL && running->tool->answered == NULL))
		return err_set(err, ESRCH, "question %lld is not open", (long long)question);
	if (!call_tell_is_answer(answer))
		return err_set(
			err, EINVAL,
			"an answer is an object with an action: accept, decline or cancel");
	running_question_end(running);
	running->asking.refusals +=
		!str_is(value_str(value_member(answer, "action")), "accept");
	/* Neither the person nor a model that was asked has used up the time of the call. */
	if (running->state == RUNNING_ELSEWHERE && running->times.timeout_s > 0 &&
	    running->times.kill_timer.due_ms < clock_deadline(running->times.timeout_s))
		running->times.kill_timer.due_ms = clock_deadline(running->times.timeout_s);
	approval_show(running);
	if (running->busy.worker != NULL)
		return reply_send(running, question, answer, err);
	running->tool->answered(running->tool->keeper, running, answer);
	return true;
}

const char *session_question(const struct session *session, const char *call,
			     int64_t question, const struct value **request)
{
	for (const struct running *at = session->first; at != NULL; at = at->next) {
		if (at->state != RUNNING_ELSEWHERE || at->asking.question == 0 ||
		    at->asking.question != question || strcmp(at->id, call) != 0)
			continue;
		*request = at->asking.request;
		return at->asking.kind;
	}
	return NULL;
}
