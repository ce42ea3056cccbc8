/* event: names of the kinds, the JSON form of an event, and trace contexts. */

#include "tool/event.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kind_row {
	enum event_kind kind;
	const char *name;
	bool kept;
};

static const struct kind_row kinds[] = {
	{EVENT_SESSION_BEGAN, "session_began", true},
	{EVENT_SESSION_RESUMED, "session_resumed", true},
	{EVENT_INSTRUCTIONS, "instructions", true},
	{EVENT_TURN_BEGAN, "turn_began", true},
	{EVENT_STEERED, "steered", true},
	{EVENT_TEXT, "text", false},
	{EVENT_THINKING, "thinking", false},
	{EVENT_MESSAGE, "message", true},
	{EVENT_TOOL_BEGAN, "tool_began", true},
	{EVENT_TOOL_OUTPUT, "tool_output", false},
	{EVENT_PROGRESS, "progress", false},
	{EVENT_LOG, "log", false},
	{EVENT_QUESTION, "question", false},
	{EVENT_CHILD, "child", false},
	{EVENT_LANDED, "landed", false},
	{EVENT_TOOL_ENDED, "tool_ended", true},
	{EVENT_APPROVAL_WANTED, "approval_wanted", true},
	{EVENT_APPROVAL_GIVEN, "approval_given", true},
	{EVENT_HOOK, "hook", true},
	{EVENT_NOTICE, "notice", true},
	{EVENT_MODE_CHANGED, "mode_changed", true},
	{EVENT_CHECK_ENDED, "check_ended", true},
	{EVENT_SHORTENED, "shortened", true},
	{EVENT_COMPACTED, "compacted", true},
	{EVENT_SAMPLED, "sampled", true},
	{EVENT_REWOUND, "rewound", true},
	{EVENT_NAMED, "named", true},
	{EVENT_STYLED, "styled", true},
	{EVENT_TURN_ENDED, "turn_ended", true},
};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

static const struct kind_row *row_of(enum event_kind kind)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (kinds[i].kind == kind)
			return &kinds[i];
	}
	return NULL;
}

const char *event_kind_name(enum event_kind kind)
{
	const struct kind_row *row = row_of(kind);

	return row != NULL ? row->name : "unknown";
}

bool event_kind_parse(const char *name, enum event_kind *kind)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (strcmp(kinds[i].name, name) == 0) {
			*kind = kinds[i].kind;
			return true;
		}
	}
	return false;
}

bool event_is_kept(enum event_kind kind)
{
	const struct kind_row *row = row_of(kind);

	return row != NULL && row->kept;
}

bool event_print(const struct event *event, struct buf *out)
{
	size_t start = out->size;
	bool ok = buf_adds(out, "{\"event\":") &&
		  value_quote(str_of(event_kind_name(event->kind)), out);

	if (event->number > 0)
		ok = ok && buf_addf(out, ",\"n\":%lld", (long long)event->number);
	ok = ok && buf_addf(out, ",\"time_ms\":%lld", (long long)event->wall_ms);
	if (event->call != NULL)
		ok = ok && buf_adds(out, ",\"call\":") &&
		     value_quote(str_of(event->call), out);
	if (event->tool != NULL)
		ok = ok && buf_adds(out, ",\"tool\":") &&
		     value_quote(str_of(event->tool), out);
	if (event->text.data != NULL)
		ok = ok && buf_adds(out, ",\"text\":") && value_quote(event->text, out);
	for (void *at = event->data != NULL ? value_first(event->data) : NULL;
	     at != NULL && ok; at = value_next(event->data, at))
		ok = buf_addc(out, ',') && value_quote(str_of(value_key(at)), out) &&
		     buf_addc(out, ':') && value_print(value_at(at), 0, out);
	ok = ok && buf_addc(out, '}');
	if (!ok)
		buf_truncate(out, start);
	return ok;
}

bool event_parse(struct str json, struct value **line, struct event *event, struct err *err)
{
	auto_value struct value *read = NULL;
	const char *name;

	*event = (struct event){0};
	if (!value_parse(json, 0, &read, err))
		return err_while(err, "reading an event");
	name = value_text(value_member(read, "event"));
	if (name == NULL || !event_kind_parse(name, &event->kind))
		return err_set(err, EPROTO, "an event of a kind that is not known: %.100s",
			       name != NULL ? name : "none");
	event->number = value_integer(value_member(read, "n"));
	event->wall_ms = value_integer(value_member(read, "time_ms"));
	event->call = value_text(value_member(read, "call"));
	event->tool = value_text(value_member(read, "tool"));
	event->text = value_str(value_member(read, "text"));
	event->data = read;
	*line = value_ref(read);
	return true;
}

enum {
	/* the form: "00-", 32 digits, "-", 16, "-", 2 */
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

/* In the order of their standard. Without the first one there is no trace. */
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

/*
 * Is TEXT a valid traceparent? Digits are in lower case; ids of only zeros and version
 * ff are invalid.
 */
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

struct value *event_trace_of(const struct value *meta)
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

void event_trace_add_variables(const struct value *trace, struct value *list)
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
