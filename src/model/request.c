/* request: arguments, results and the ceiling, for every provider the same. */
#include "model/request.h"

#include <errno.h>

enum { EFFORT_LOW_MAX = 2048, EFFORT_MEDIUM_MAX = 8192 };

#define EMPTY_RESULT "(The tool gave no text.)"

bool request_is_blank(const char *text)
{
	return str_trim(str_of(text)).size == 0;
}

void request_add_arguments(const struct part *call, struct buf *out)
{
	struct str text = str_trim(str_of(call->arguments));

	if (text.size == 0 || str_is(text, "null")) {
		(void)buf_adds(out, "{}");
		return;
	}
	if (call->is_object) {
		(void)buf_addstr(out, text);
		return;
	}
	(void)buf_adds(out, "{\"invalid_arguments\":");
	(void)value_quote(text, out);
	(void)buf_addc(out, '}');
}

void request_add_calls(const struct message *message, const char *fields, const char *kept,
		       void (*arguments)(const struct part *call, struct buf *out),
		       struct buf *out)
{
	const char *separator = ",\"tool_calls\":[";
	bool any = false;

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind != PART_CALL)
			continue;
		(void)buf_addf(out, "%s{\"id\":", separator);
		(void)value_quote(str_of(part->call_id), out);
		(void)buf_addf(out, ",%s\"function\":{\"name\":", fields);
		(void)value_quote(str_of(part->tool), out);
		(void)buf_adds(out, ",\"arguments\":");
		arguments(part, out);
		(void)buf_addc(out, '}');
		if (kept && value_member(part->extra, kept)) {
			(void)buf_addf(out, ",\"%s\":", kept);
			(void)value_print(value_member(part->extra, kept), 0, out);
		}
		(void)buf_addc(out, '}');
		separator = ",";
		any = true;
	}
	if (any)
		(void)buf_addc(out, ']');
}

void request_add_schema(const struct model_tool *tool, struct buf *out)
{
	(void)buf_adds(out, tool->schema != NULL
				    ? tool->schema
				    : "{\"type\":\"object\",\"properties\":{}}");
}

const char *request_result_text(const struct part *part)
{
	return request_is_blank(part->text) ? EMPTY_RESULT : part->text;
}

const char *request_effort(uint64_t budget)
{
	if (budget <= EFFORT_LOW_MAX)
		return "low";
	return budget <= EFFORT_MEDIUM_MAX ? "medium" : "high";
}

bool request_fits(const struct buf *body, struct err *err)
{
	if (body->overflowed)
		return err_set(err, E2BIG,
			       "the conversation is larger than a request may be (%zu MiB)",
			       body->max >> 20);
	return true;
}
