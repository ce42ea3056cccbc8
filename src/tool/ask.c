/* ask: as JSON, and the worker's end of it; see ask.h. */
#include "tool/ask.h"

#include "base/clock.h"
#include "process/frame.h"
#include "tool/tool.h"

#include <errno.h>
#include <inttypes.h>

bool ask_print(const struct ask *ask, struct buf *out)
{
	(void)buf_addf(out,
		       "{\"job\":%" PRId64 ",\"reads\":%s,\"since\":%" PRId64
		       ",\"signal\":%d",
		       ask->job, ask->reads ? "true" : "false", ask->since, ask->signal);
	if (ask->input.data != NULL) {
		(void)buf_adds(out, ",\"input\":");
		(void)value_quote(ask->input, out);
	}
	(void)buf_addc(out, '}');
	return !out->overflowed;
}

bool ask_parse(struct str text, struct ask *ask, struct err *err)
{
	struct value *object;
	const struct value *input;

	if (!value_parse(text, 0, &object, err))
		return err_while(err, "a question to a call");
	input = value_member(object, "input");
	*ask = (struct ask){
		.job = value_integer(value_member(object, "job")),
		.reads = value_is_true(value_member(object, "reads")),
		.since = value_integer(value_member(object, "since")),
		.input = input != NULL ? value_str(input) : (struct str){0},
		.signal = (int)value_integer(value_member(object, "signal")),
		.object = object,
	};
	if (ask->job > 0)
		return true;
	ask_fini(ask);
	return err_set(err, EPROTO, "a question to a call that is no job");
}

void ask_fini(struct ask *ask)
{
	value_free(ask->object);
	*ask = (struct ask){0};
}

bool ask_next(struct call *call, struct ask *ask)
{
	struct frame frame;

	if (call->reader == NULL) {
		(void)call_stopped(call);
		return false;
	}
	if (call->cancelled)
		return false;
	if (!frame_fill(call->reader, call->control_fd, NULL) || call->reader->ended) {
		call->cancelled = true;
		return false;
	}
	if (!frame_next(call->reader, &frame))
		return false;
	if (frame.kind == FRAME_ASK && frame.fd_count == 0 &&
	    ask_parse(frame.payload, ask, NULL))
		return true;
	call->cancelled = true;
	return false;
}

void ask_answer(const struct call *call, const struct tool_result *result)
{
	struct buf text;

	buf_init(&text, FRAME_MAX);
	if (tool_result_print(result, &text))
		(void)frame_send(call->control_fd, FRAME_ANSWER, buf_str(&text), NULL, 0,
				 CLOCK_NEVER, NULL);
	buf_fini(&text);
}

void ask_tell_waiting(const struct call *call)
{
	if (call->control_fd >= 0)
		(void)frame_send(call->control_fd, FRAME_WAITS, (struct str){"", 0}, NULL,
				 0, CLOCK_NEVER, NULL);
}
