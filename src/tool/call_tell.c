/* call_tell: what a call says and asks while it runs; see call.h. */
#include "base/clock.h"
#include "process/frame.h"
#include "tool/call.h"
#include "tool/tell.h"

#include <poll.h>

static void tell(const struct call *call, const struct value *what)
{
	struct pollfd writable = {.fd = call->control_fd, .events = POLLOUT};
	struct buf text;

	/* As call_output: what is not taken in time is dropped. */
	if (call->control_fd < 0 || poll(&writable, 1, 0) != 1 ||
	    (writable.revents & POLLOUT) == 0)
		return;
	buf_init(&text, TELL_MAX);
	if (value_print(what, 0, &text))
		(void)frame_send(call->control_fd, FRAME_TELL, buf_str(&text), NULL, 0,
				 CLOCK_NEVER, NULL);
	buf_fini(&text);
}

void call_progress(struct call *call, double progress, double total, const char *message)
{
	auto_value struct value *what = value_new_object();

	value_set_real(what, "progress", progress);
	if (total >= 0)
		value_set_real(what, "total", total);
	if (message != NULL)
		value_set_text(what, "text", message);
	tell(call, what);
}

void call_log(struct call *call, const char *level, const char *logger, struct str text)
{
	auto_value struct value *what = value_new_object();

	value_set_text(what, "level", level);
	if (logger != NULL)
		value_set_text(what, "logger", logger);
	value_set_str(what, "text", text);
	tell(call, what);
}

bool call_ask(struct call *call, const char *kind, const struct value *request)
{
	const struct tell_question question = {.id = call->question + 1,
					       .kind = kind,
					       .request = value_copy(request)};
	struct buf text;
	bool ok = call->control_fd >= 0 && call->reader != NULL && !call->awaits_reply &&
		  !call->cancelled;

	buf_init(&text, TELL_QUESTION_MAX);
	ok = ok && tell_print_question(&question, &text) &&
	     frame_send(call->control_fd, FRAME_QUESTION, buf_str(&text), NULL, 0,
			call->deadline_ms, NULL);
	buf_fini(&text);
	value_free(question.request);
	if (ok) {
		call->question = question.id;
		call->awaits_reply = true;
	}
	return ok;
}

void call_read_control(struct call *call)
{
	struct value *answer;
	struct frame frame;
	int64_t id;

	if (!frame_fill(call->reader, call->control_fd, NULL) || call->reader->ended) {
		call->cancelled = true;
		return;
	}
	while (!call->cancelled && frame_next(call->reader, &frame)) {
		if (frame.kind != FRAME_REPLY || frame.fd_count > 0 || !call->awaits_reply ||
		    !tell_parse_reply(frame.payload, &id, &answer, NULL)) {
			call->cancelled = true;
		} else {
			call->awaits_reply = false;
			value_free(call->reply);
			call->reply = answer;
		}
	}
}

struct value *call_take_reply(struct call *call)
{
	struct pollfd control = {.fd = call->control_fd, .events = POLLIN};
	struct value *reply;

	if (call->awaits_reply && !call->cancelled && poll(&control, 1, 0) > 0)
		call_read_control(call);
	reply = call->reply;
	call->reply = NULL;
	return reply;
}
