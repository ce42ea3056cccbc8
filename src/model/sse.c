/* sse: lines out of pieces, fields out of lines, events out of fields. */
#include "model/sse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/value.h"

/* Longest event name kept; ours are all shorter than 40. */
enum { NAME_MAX_BYTES = 256 };

struct sse {
	bool (*event)(void *context, struct str name, struct str data, struct err *err);
	void *context;
	struct buf line; /* the start of a line whose end has not come */
	struct buf data, name;
	bool has_data;
	bool after_cr;   /* an LF now belongs to the line end before it */
	bool in_comment; /* the rest of this line is not kept */
	bool past_first_line;
};

struct sse *sse_new(bool (*event)(void *context, struct str name, struct str data,
				  struct err *err),
		    void *context)
{
	struct sse *sse = memory_alloc(sizeof(*sse));

	sse->event = event;
	sse->context = context;
	buf_init(&sse->line, SSE_EVENT_MAX);
	buf_init(&sse->data, SSE_EVENT_MAX);
	buf_init(&sse->name, NAME_MAX_BYTES);
	return sse;
}

void sse_free(struct sse *sse)
{
	if (!sse)
		return;
	buf_fini(&sse->line);
	buf_fini(&sse->data);
	buf_fini(&sse->name);
	free(sse);
}

static bool sse_too_long(struct err *err)
{
	return err_set(err, EIO, "an event of the stream is longer than %d MiB",
		       SSE_EVENT_MAX >> 20);
}

static bool sse_dispatch(struct sse *sse, struct err *err)
{
	bool ok = true;

	if (sse->has_data)
		ok = sse->event(sse->context, buf_str(&sse->name), buf_str(&sse->data), err);
	buf_clear(&sse->data);
	buf_clear(&sse->name);
	sse->has_data = false;
	return ok;
}

static bool sse_add_data(struct sse *sse, struct str value, struct err *err)
{
	if (sse->has_data && !buf_addc(&sse->data, '\n'))
		return sse_too_long(err);
	if (!buf_addstr(&sse->data, value))
		return sse_too_long(err);
	sse->has_data = true;
	return true;
}

static bool sse_take_line(struct sse *sse, struct str line, struct err *err)
{
	const char *colon;
	struct str field = line, value = {"", 0};

	if (!sse->past_first_line && str_starts(line, STR("\xef\xbb\xbf")))
		line = field = str_part(line, 3, line.size);
	sse->past_first_line = true;
	if (line.size == 0)
		return sse_dispatch(sse, err);

	colon = memchr(line.data, ':', line.size);
	if (colon) {
		size_t at = (size_t)(colon - line.data);

		field = str_part(line, 0, at);
		value = str_part(line, at + 1, line.size);
		if (str_starts(value, STR(" ")))
			value = str_part(value, 1, value.size);
	}
	if (str_is(field, "data"))
		return sse_add_data(sse, value, err);
	if (str_is(field, "event")) {
		buf_clear(&sse->name);
		(void)buf_addstr(&sse->name, value);
	}
	return true;
}

static bool sse_end_line(struct sse *sse, struct str rest, struct err *err)
{
	bool ok = true;

	if (sse->in_comment) {
		sse->in_comment = false;
	} else if (sse->line.size == 0) {
		ok = sse_take_line(sse, rest, err);
	} else {
		ok = buf_addstr(&sse->line, rest)
			     ? sse_take_line(sse, buf_str(&sse->line), err)
			     : sse_too_long(err);
	}
	buf_clear(&sse->line);
	return ok;
}

/* Keep the start of a line; of a comment nothing, however long it is. */
static bool sse_keep(struct sse *sse, struct str rest, struct err *err)
{
	if (rest.size == 0 || sse->in_comment)
		return true;
	if (sse->line.size == 0 && rest.data[0] == ':') {
		sse->in_comment = true;
		sse->past_first_line = true;
		return true;
	}
	if (!buf_addstr(&sse->line, rest))
		return sse_too_long(err);
	return true;
}

bool sse_feed(struct sse *sse, struct str bytes, struct err *err)
{
	size_t from = 0;

	for (size_t at = 0; at < bytes.size; at++) {
		char c = bytes.data[at];

		if (c != '\n' && c != '\r') {
			sse->after_cr = false;
			continue;
		}
		if (c == '\n' && sse->after_cr) {
			sse->after_cr = false;
			from = at + 1;
			continue;
		}
		sse->after_cr = c == '\r';
		if (!sse_end_line(sse, str_part(bytes, from, at - from), err))
			return false;
		from = at + 1;
	}
	return sse_keep(sse, str_part(bytes, from, bytes.size), err);
}

bool sse_end(struct sse *sse, struct err *err)
{
	auto_value struct value *whole = NULL;
	struct str data;

	if (sse->line.size > 0 && !sse_end_line(sse, STR(""), err))
		return false;
	data = buf_str(&sse->data);
	if (!sse->has_data)
		return true;
	if (str_is(str_trim(data), "[DONE]") || value_parse(data, 0, &whole, NULL))
		return sse_dispatch(sse, err);
	return true;
}
