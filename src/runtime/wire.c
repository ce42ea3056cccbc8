/* wire: call and result as JSON. */
#include "runtime/wire.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* JSON has no infinity; no monotonic clock gets here. */
enum { NEVER_ON_WIRE = -1 };

static struct value *limits_value(const struct call_limits *limits)
{
	struct value *object = value_new_object();

	value_set_integer(object, "memory", (int64_t)limits->memory);
	value_set_integer(object, "pids", (int64_t)limits->pids);
	value_set_integer(object, "file_size", (int64_t)limits->file_size);
	value_set_integer(object, "tmp", (int64_t)limits->tmp);
	value_set_integer(object, "free_space", (int64_t)limits->free_space);
	value_set_real(object, "quiet_s", limits->quiet_s);
	return object;
}

static void limits_parse(const struct value *object, struct call_limits *limits)
{
	limits->memory = (uint64_t)value_integer(value_member(object, "memory"));
	limits->pids = (uint64_t)value_integer(value_member(object, "pids"));
	limits->file_size = (uint64_t)value_integer(value_member(object, "file_size"));
	limits->tmp = (uint64_t)value_integer(value_member(object, "tmp"));
	limits->free_space = (uint64_t)value_integer(value_member(object, "free_space"));
	limits->quiet_s = value_number(value_member(object, "quiet_s"));
}

bool wire_print_call(const struct wire_call *call, struct buf *out)
{
	auto_value struct value *object = value_new_object();

	value_set_text(object, "tool", call->tool);
	/* Borrowed: put in for the printing, counted by the container. */
	value_set(object, "arguments",
		  value_ref((struct value *)(uintptr_t)call->arguments));
	value_set_text(object, "folder", call->folder);
	value_set_integer(object, "deadline_ms",
			  call->deadline_ms == CLOCK_NEVER ? NEVER_ON_WIRE
							   : call->deadline_ms);
	value_set_boolean(object, "is_last", call->is_last);
	value_set_real(object, "grace_s", call->grace_s);
	value_set_text(object, "agent", call->agent);
	value_set(object, "limits", limits_value(&call->limits));
	if (call->seen != NULL)
		value_set(object, "seen", value_ref((struct value *)(uintptr_t)call->seen));
	if (call->before != NULL)
		value_set(object, "before",
			  value_ref((struct value *)(uintptr_t)call->before));
	return value_print(object, 0, out);
}

bool wire_parse_call(struct str text, struct wire_call *call, struct value **object,
		     struct err *err)
{
	auto_value struct value *read = NULL;

	if (!value_parse(text, 0, &read, err))
		return err_while(err, "a call");
	call->tool = value_text(value_member(read, "tool"));
	call->arguments = value_member(read, "arguments");
	call->folder = value_text(value_member(read, "folder"));
	call->deadline_ms = value_integer(value_member(read, "deadline_ms"));
	if (call->deadline_ms < 0)
		call->deadline_ms = CLOCK_NEVER;
	call->is_last = value_is_true(value_member(read, "is_last"));
	call->grace_s = value_number(value_member(read, "grace_s"));
	call->agent = value_text(value_member(read, "agent"));
	limits_parse(value_member(read, "limits"), &call->limits);
	call->seen = value_member(read, "seen");
	call->before = value_member(read, "before");
	if (call->tool == NULL || call->folder == NULL)
		return err_set(err, EPROTO, "a call without tool or folder");
	*object = value_ref(read);
	return true;
}

bool wire_print_result(const struct tool_result *result, struct buf *out)
{
	auto_value struct value *object = tool_result_value(result);

	if (result->seen != NULL)
		value_set(object, "seen", value_ref(result->seen));
	if (result->before != NULL)
		value_set(object, "before", value_ref(result->before));
	return value_print(object, 0, out);
}

static struct value *object_member(const struct value *object, const char *key)
{
	struct value *member = value_member(object, key);

	return value_kind(member) == VALUE_OBJECT ? value_ref(member) : NULL;
}

bool wire_parse_result(struct str text, struct tool_result *result, struct err *err)
{
	auto_value struct value *object = NULL;
	const char *status;

	if (!value_parse(text, 0, &object, err))
		return err_while(err, "a result");
	status = value_text(value_member(object, "status"));
	if (status == NULL || !result_status_parse(status, &result->status))
		return err_set(err, EPROTO, "a result without a status");
	if (!buf_addstr(&result->text, value_str(value_member(object, "text"))))
		return err_set(err, EPROTO, "a result over %d bytes", RESULT_TEXT_MAX);
	const struct value *exit_code = value_member(object, "exit_code");
	result->exit_code = value_is_number(exit_code) ? (int)value_integer(exit_code) : -1;
	result->signal = (int)value_integer(value_member(object, "signal"));
	const struct value *left_out = value_member(object, "left_out");
	result->left_out_bytes = (uint64_t)value_integer(value_member(left_out, "bytes"));
	result->left_out_lines = (uint64_t)value_integer(value_member(left_out, "lines"));
	result->details = object_member(object, "details");
	result->seen = object_member(object, "seen");
	result->before = object_member(object, "before");
	return true;
}
