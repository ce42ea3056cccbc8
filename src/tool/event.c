/* event: names of the kinds, and the one JSON form of an event. */
#include "tool/event.h"

#include <errno.h>
#include <stddef.h>
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
	{EVENT_TEXT, "text", false},
	{EVENT_THINKING, "thinking", false},
	{EVENT_MESSAGE, "message", true},
	{EVENT_TOOL_BEGAN, "tool_began", true},
	{EVENT_TOOL_OUTPUT, "tool_output", false},
	{EVENT_PROGRESS, "progress", false},
	{EVENT_LOG, "log", false},
	{EVENT_QUESTION, "question", false},
	{EVENT_CHILD, "child", false},
	{EVENT_TOOL_ENDED, "tool_ended", true},
	{EVENT_APPROVAL_WANTED, "approval_wanted", true},
	{EVENT_APPROVAL_GIVEN, "approval_given", true},
	{EVENT_NOTICE, "notice", true},
	{EVENT_CHECK_ENDED, "check_ended", true},
	{EVENT_COMPACTED, "compacted", true},
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
