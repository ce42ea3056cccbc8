/* wire: call and result as JSON. */
#include "runtime/wire.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* JSON has no infinity; no monotonic clock gets here. */
enum { NEVER_ON_WIRE = -1 };

/*
 * Both are printed member by member: to build an object first costs more than all the rest,
 * on the way of every call and of every answer.
 */
static void print_limits(const struct call_limits *limits, struct buf *out)
{
	(void)buf_addf(out,
		       ",\"limits\":{\"memory\":%" PRIu64 ",\"pids\":%" PRIu64
		       ",\"file_size\":%" PRIu64 ",\"tmp\":%" PRIu64
		       ",\"free_space\":%" PRIu64 ",\"quiet_ms\":%" PRId64 "}",
		       limits->memory, limits->pids, limits->file_size, limits->tmp,
		       limits->free_space, (int64_t)(limits->quiet_s * 1000));
}

static void limits_parse(const struct value *object, struct call_limits *limits)
{
	limits->memory = (uint64_t)value_integer(value_member(object, "memory"));
	limits->pids = (uint64_t)value_integer(value_member(object, "pids"));
	limits->file_size = (uint64_t)value_integer(value_member(object, "file_size"));
	limits->tmp = (uint64_t)value_integer(value_member(object, "tmp"));
	limits->free_space = (uint64_t)value_integer(value_member(object, "free_space"));
	limits->quiet_s = (double)value_integer(value_member(object, "quiet_ms")) / 1000;
}

static void print_text(const char *key, struct str text, struct buf *out)
{
	(void)buf_addf(out, ",\"%s\":", key);
	(void)value_quote(text, out);
}

static void print_value(const char *key, const struct value *value, struct buf *out)
{
	if (value == NULL)
		return;
	(void)buf_addf(out, ",\"%s\":", key);
	(void)value_print(value, 0, out);
}

bool wire_print_call(const struct wire_call *call, struct buf *out)
{
	(void)buf_addf(out, "{\"deadline_ms\":%" PRId64 ",\"is_last\":%s",
		       call->deadline_ms == CLOCK_NEVER ? NEVER_ON_WIRE : call->deadline_ms,
		       call->is_last ? "true" : "false");
	if (call->heralds)
		(void)buf_adds(out, ",\"heralds\":true");
	if (call->audits)
		(void)buf_adds(out, ",\"audits\":true");
	(void)buf_addf(out, ",\"grace_ms\":%" PRId64, (int64_t)(call->grace_s * 1000));
	print_text("tool", str_of(call->tool), out);
	print_text("folder", str_of(call->folder), out);
	print_text("agent", str_of(call->agent), out);
	print_limits(&call->limits, out);
	print_value("arguments", call->arguments, out);
	print_value("environment", call->environment, out);
	print_value("seen", call->seen, out);
	print_value("before", call->before, out);
	(void)buf_addc(out, '}');
	return !out->overflowed;
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
	call->grace_s = (double)value_integer(value_member(read, "grace_ms")) / 1000;
	call->agent = value_text(value_member(read, "agent"));
	limits_parse(value_member(read, "limits"), &call->limits);
	call->heralds = value_is_true(value_member(read, "heralds"));
	call->audits = value_is_true(value_member(read, "audits"));
	call->environment = value_member(read, "environment");
	call->seen = value_member(read, "seen");
	call->before = value_member(read, "before");
	if (call->tool == NULL || call->folder == NULL)
		return err_set(err, EPROTO, "a call without tool or folder");
	*object = value_ref(read);
	return true;
}

bool wire_print_result(const struct tool_result *result, struct buf *out)
{
	(void)buf_addf(out,
		       "{\"exit_code\":%d,\"signal\":%d,\"left_out\":{\"bytes\":%" PRIu64
		       ",\"lines\":%" PRIu64 "}",
		       result->exit_code, result->signal, result->left_out_bytes,
		       result->left_out_lines);
	print_text("status", str_of(result_status_name(result->status)), out);
	print_text("text", buf_str(&result->text), out);
	print_value("details", result->details, out);
	print_value("seen", result->seen, out);
	print_value("before", result->before, out);
	(void)buf_addc(out, '}');
	return !out->overflowed;
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
