/* trace: see trace.h. */
#include "tool/trace.h"

#include "base/buf.h"
#include "base/str.h"

#include <string.h>

enum {
	/* "00-", 32 digits, "-", 16, "-", 2 */
	TRACE_AT = 3,
	TRACE_SIZE = 32,
	DIGITS = 16,
	SPAN_AT = 36,
	SPAN_SIZE = 16,
	PARENT_SIZE = 55,
	STATE_MAX = 512,
	BAGGAGE_MAX = 8192,
	VARIABLE_MAX = BAGGAGE_MAX + 32,
};

/* In the order of their standard; the first is what makes a trace. */
static const struct {
	const char *key, *variable;
	size_t max;
} parts[] = {
	{"traceparent", "TRACEPARENT", PARENT_SIZE},
	{"tracestate", "TRACESTATE", STATE_MAX},
	{"baggage", "BAGGAGE", BAGGAGE_MAX},
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static bool is_zero(struct str digits)
{
	for (size_t i = 0; i < digits.size; i++) {
		if (digits.data[i] != '0')
			return false;
	}
	return true;
}

/* Digits in lower case: capitals, ids of nothing but zeros and version ff are invalid. */
static bool is_parent(struct str text)
{
	static const char digits[] = "0123456789abcdef";
	static const char form[] =
		"xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
	bool fine = text.size == PARENT_SIZE && !str_starts(text, STR("ff"));

	for (size_t i = 0; fine && i < PARENT_SIZE; i++)
		fine = form[i] == 'x' ? memchr(digits, text.data[i], DIGITS) != NULL
				      : text.data[i] == form[i];
	return fine && !is_zero(str_part(text, TRACE_AT, TRACE_SIZE)) &&
	       !is_zero(str_part(text, SPAN_AT, SPAN_SIZE));
}

static bool is_printable(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < ' ' || text.data[i] > '~')
			return false;
	}
	return true;
}

struct value *trace_of(const struct value *meta)
{
	struct value *trace;

	if (!is_parent(value_str(value_member(meta, parts[0].key))))
		return NULL;
	trace = value_new_object();
	for (size_t i = 0; i < PARTS; i++) {
		const struct str text = value_str(value_member(meta, parts[i].key));

		if (text.size > 0 && text.size <= parts[i].max && is_printable(text))
			value_set_str(trace, parts[i].key, text);
	}
	return trace;
}

void trace_add_variables(const struct value *trace, struct value *list)
{
	for (size_t i = 0; i < PARTS; i++) {
		const char *text = value_text(value_member(trace, parts[i].key));
		struct buf variable;

		if (text == NULL)
			continue;
		buf_init(&variable, VARIABLE_MAX);
		(void)buf_addf(&variable, "%s=%s", parts[i].variable, text);
		value_append(list, value_new_str(buf_str(&variable)));
		buf_fini(&variable);
	}
}
