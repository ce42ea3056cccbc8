/* call: what a tool may ask and tell while it runs in a worker. */
#include "tool/call.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "process/frame.h"
#include "tool/tell.h"

#include <poll.h>
#include <string.h>

/*
 * How long an answer of call_stopped is good for: cheap enough for every file of a
 * walk.
 */
enum { STOP_CHECK_MS = 5 };

bool call_stopped(struct call *call)
{
	int64_t now = clock_now_ms();
	struct pollfd control = {.fd = call->control_fd, .events = POLLIN};

	if (call->cancelled || now >= call->deadline_ms)
		return true;
	if (now < call->next_check_ms)
		return false;
	call->next_check_ms = now + STOP_CHECK_MS;
	/* The data may be a question, which the run of the program reads (ask_next). */
	if (call->reader != NULL && call->tool->answers)
		return false;
	/*
	 * While a call runs the front sends nothing but a cancel, or what it was asked for, or goes
	 * away.
	 */
	if (call->control_fd >= 0 && poll(&control, 1, 0) > 0) {
		if (call->awaits_reply)
			call_read_control(call);
		else
			call->cancelled = true;
	}
	return call->cancelled;
}

enum result_status call_stop_result(struct call *call, struct tool_result *result)
{
	if (call->cancelled) {
		(void)tool_fail(result, "Cancelled before it was finished.");
		result->status = RESULT_CANCELLED;
	} else {
		(void)tool_fail(result,
				"Not finished in time. Narrow it down (a smaller path or range), "
				"or ask for a longer timeout where the tool has one.");
		result->status = RESULT_TIMED_OUT;
	}
	return result->status;
}

void call_ending(struct call *call)
{
	if (call->heralds && call->control_fd >= 0)
		(void)frame_send(call->control_fd, FRAME_ENDING, (struct str){"", 0},
				 NULL, 0, CLOCK_NEVER, NULL);
	call->heralds = false;
}

void call_output(struct call *call, enum call_stream stream, struct str bytes)
{
	/*
	 * An event is a glimpse: what a front does not take in time is dropped, never
	 * waited for.
	 */
	enum frame_kind kind = stream == CALL_STDERR ? FRAME_STDERR : FRAME_STDOUT;
	struct pollfd writable = {.fd = call->control_fd, .events = POLLOUT};

	if (call->control_fd < 0 || bytes.size == 0)
		return;
	if (bytes.size > CALL_FRAGMENT_MAX)
		bytes = str_part(bytes, bytes.size - CALL_FRAGMENT_MAX, CALL_FRAGMENT_MAX);
	if (poll(&writable, 1, 0) == 1 && (writable.revents & POLLOUT) != 0)
		(void)frame_send(call->control_fd, kind, bytes, NULL, 0, CLOCK_NEVER, NULL);
}

const char *call_seen(const struct call *call, const char *path)
{
	return value_text(value_member(call->seen, path));
}

void call_saw(struct tool_result *result, const char *path, const char *mark)
{
	if (result->seen == NULL)
		result->seen = value_new_object();
	value_set_text(result->seen, path, mark);
}

void call_set_folder(struct call *call, struct tool_result *result, const char *folder)
{
	(void)call;
	if (result->seen == NULL)
		result->seen = value_new_object();
	value_set_text(result->seen, CALL_FOLDER_KEY, folder);
}

const char *call_text(const struct call *call, const char *name)
{
	return value_text(value_member(call->arguments, name));
}

struct str call_str(const struct call *call, const char *name)
{
	return value_str(value_member(call->arguments, name));
}

int64_t call_count(const struct call *call, const char *name, int64_t absent)
{
	const struct value *value = value_member(call->arguments, name);

	return value_is_number(value) ? value_integer(value) : absent;
}

bool call_flag(const struct call *call, const char *name)
{
	return value_is_true(value_member(call->arguments, name));
}

static bool same_name(const char *a, const char *b)
{
	size_t length = strcspn(a, "=");

	return strncmp(a, b, length + 1) == 0;
}

const char **call_environment(const char *const *cell, const struct value *more)
{
	size_t count = 0, own = 0;

	while (cell[own] != NULL)
		own++;
	const char **list = memory_array(own + value_count(more) + 1, sizeof(list[0]));
	for (size_t i = 0; i < own; i++) {
		bool replaced = false;
		for (size_t j = 0; j < value_count(more) && !replaced; j++) {
			const char *text = value_text(value_item(more, j));
			replaced = text != NULL && same_name(cell[i], text);
		}
		if (!replaced)
			list[count++] = cell[i];
	}
	for (size_t j = 0; j < value_count(more); j++) {
		const char *text = value_text(value_item(more, j));
		if (text != NULL)
			list[count++] = text;
	}
	return list;
}
