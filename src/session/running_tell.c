/*
 * running_tell: turns the reports and questions of a worker about its call (tell.h) into
 * events, and sends back the answers. Both directions are built anew from what came,
 * because a worker may have been taken over.
 */
#include "base/clock.h"
#include "session/approval.h"
#include "session/session.h"
#include "tool/call.h"

#include <errno.h>
#include <string.h>

/* A worker accepts the largest answer in far less time. */
enum { ANSWER_MS = 10000, NAME_MAX_BYTES = 128 };

/* The levels of syslog (RFC 5424), as MCP has them. */
static const char *level_of(const struct value *value)
{
	static const char *const levels[] = {"debug", "info",     "notice", "warning",
					     "error", "critical", "alert",  "emergency"};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (str_is(value_str(value), levels[i]))
			return levels[i];
	}
	return "info";
}

static bool emit(const struct running *running, enum event_kind kind, struct str text,
		 const struct value *data)
{
	struct err err;

	/*
	 * The call of a job has ended for its caller when it became the job: the caller
	 * listens no more.
	 */
	if (running->job != NULL)
		return true;
	return session_emit(running->session, kind, running, text, data, &err);
}

void running_progress(struct running *running, double progress, double total,
		      const char *message)
{
	auto_value struct value *data = value_new_object();

	value_set_real(data, "progress", progress);
	if (total >= 0)
		value_set_real(data, "total", total);
	(void)emit(running, EVENT_PROGRESS, str_part(str_of(message), 0, TELL_MAX), data);
}

void running_log(struct running *running, const char *level, const char *logger,
		 struct str text)
{
	auto_value struct value *data = value_new_object();
	auto_value struct value *named = value_new_text(level);

	value_set_text(data, "level", level_of(named));
	if (logger != NULL && str_of(logger).size <= NAME_MAX_BYTES)
		value_set_text(data, "logger", logger);
	(void)emit(running, EVENT_LOG, str_part(text, 0, TELL_MAX), data);
}

void running_told(struct running *running, struct str payload)
{
	auto_value struct value *told = NULL;
	auto_value struct value *data = NULL;
	const struct value *progress, *total, *text;

	/*
	 * The call of a job has ended for its caller when it became the job: the caller
	 * listens no more.
	 */
	if (running->job != NULL || payload.size > TELL_MAX ||
	    !value_parse(payload, 0, &told, NULL))
		return;
	data = value_new_object();
	progress = value_member(told, "progress");
	total = value_member(told, "total");
	text = value_member(told, "text");
	if (value_is_number(progress)) {
		value_set_real(data, "progress", value_number(progress));
		if (value_is_number(total))
			value_set_real(data, "total", value_number(total));
		(void)emit(running, EVENT_PROGRESS, value_str(text), data);
		return;
	}
	value_set_text(data, "level", level_of(value_member(told, "level")));
	struct str logger = value_str(value_member(told, "logger"));
	if (logger.size > 0 && logger.size <= NAME_MAX_BYTES)
		value_set_str(data, "logger", logger);
	(void)emit(running, EVENT_LOG, value_str(text), data);
}

static bool reply_send(const struct running *running, int64_t id,
		       const struct value *answer, struct err *err)
{
	struct buf text;

	buf_init(&text, TELL_QUESTION_MAX);
	bool ok = tell_print_reply(id, answer, &text) ||
		  err_set(err, E2BIG, "the answer is over %d bytes", TELL_QUESTION_MAX);
	ok = ok && frame_send(running->worker->socket, FRAME_REPLY, buf_str(&text), NULL,
			      0, clock_now_ms() + ANSWER_MS, err);
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

	return session->answers_questions && session->sink.event != NULL &&
	       !running->quiet && !approval_is_open(running) && running->job == NULL &&
	       !running->cancelled;
}

/* False: nobody has received the question. */
static bool open_question(struct running *running, int64_t id, const char *kind,
			  const struct value *request)
{
	auto_value struct value *data = value_new_object();

	value_set_integer(data, "id", id);
	value_set_text(data, "kind", kind);
	value_set(data, "request", value_ref(request));
	running->question = id;
	/* The question may be answered before emit returns. */
	if (emit(running, EVENT_QUESTION, (struct str){0}, data) || running->question != id)
		return true;
	running->question = 0;
	return false;
}

void running_asked(struct running *running, struct str payload)
{
	auto_value struct value *object = NULL;
	struct tell_question question;

	/*
	 * Our code in a worker asks one question at a time; a worker that asks more is
	 * not heard.
	 */
	if (running->question != 0 ||
	    !tell_parse_question(payload, &question, &object, NULL))
		return;
	if (!may_ask(running) ||
	    !open_question(running, question.id, question.kind, question.request))
		decline(running, question.id);
}

bool running_ask(struct running *running, const char *kind, const struct value *request)
{
	if (running->question != 0 || running->tool->answered == NULL || !may_ask(running))
		return false;
	return open_question(running, (int64_t)++running->ask, kind, request);
}

bool running_answer(struct running *running, int64_t question, const struct value *answer,
		    struct err *err)
{
	if (question < 0)
		return approval_answer(running, question, answer, err);
	if (running->question == 0 || running->question != question ||
	    (running->worker == NULL && running->tool->answered == NULL))
		return err_set(err, ESRCH, "question %lld is not open", (long long)question);
	if (!tell_is_answer(answer))
		return err_set(
			err, EINVAL,
			"an answer is an object with an action: accept, decline or cancel");
	running->question = 0;
	approval_show(running);
	if (running->worker != NULL)
		return reply_send(running, question, answer, err);
	running->tool->answered(running->tool->keeper, running, answer);
	return true;
}

bool session_answer(struct session *session, const char *call, int64_t question,
		    const struct value *answer, struct err *err)
{
	for (struct running *at = session->first; at != NULL; at = at->next) {
		if (at->state != RUNNING_DONE && strcmp(at->id, call) == 0)
			return running_answer(at, question, answer, err);
	}
	return err_set(err, ESRCH, "no call \"%.64s\" is under way", call);
}
