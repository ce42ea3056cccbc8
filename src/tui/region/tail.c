/* tail: keeps the output of calls, and prints the end of it. */

#include "tui/region/tail.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "tui/paint.h"

#include <stdlib.h>
#include <string.h>

static void free_call(struct tail_call *call)
{
	free(call->id);
	buf_fini(&call->text);
	free(call);
}

void tail_fini(struct tail *tail)
{
	while (tail->calls != NULL) {
		struct tail_call *call = tail->calls;

		tail->calls = call->next;
		free_call(call);
	}
}

/* Take the call ID out of TAIL; NULL: it has none. */
static struct tail_call *take(struct tail *tail, const char *id)
{
	for (struct tail_call **at = &tail->calls; *at != NULL; at = &(*at)->next) {
		struct tail_call *call = *at;

		if (strcmp(call->id, id) == 0) {
			*at = call->next;
			return call;
		}
	}
	return NULL;
}

/* Make room in TEXT for more: its newer half is enough. */
static void forget_older(struct buf *text)
{
	size_t from;

	if (text->size <= TAIL_BYTES_MAX)
		return;
	from = text->size - TAIL_BYTES_MAX / 2;
	const size_t end = str_find(buf_str(text), STR("\n"), from);

	buf_remove(text, 0, end != SIZE_MAX ? end + 1 : from);
}

static void add(struct tail *tail, const char *id, struct str text)
{
	struct tail_call *call = take(tail, id);

	if (call == NULL) {
		call = memory_alloc(sizeof(*call));
		call->id = memory_copy(id);
		buf_init(&call->text, 2 * TAIL_BYTES_MAX);
	}
	if (text.size > TAIL_BYTES_MAX)
		text = str_part(text, text.size - TAIL_BYTES_MAX, text.size);
	(void)buf_addstr(&call->text, text);
	forget_older(&call->text);
	call->next = tail->calls;
	tail->calls = call;
}

void tail_event(struct tail *tail, const struct event *event)
{
	struct tail_call *over;

	if (event->kind == EVENT_TURN_ENDED) {
		tail_fini(tail);
	} else if (event->kind == EVENT_TOOL_OUTPUT && event->call != NULL) {
		add(tail, event->call, event->text);
	} else if (event->kind == EVENT_TOOL_ENDED && event->call != NULL) {
		over = take(tail, event->call);
		if (over != NULL)
			free_call(over);
	}
}

const char *tail_call(const struct tail *tail)
{
	return tail->calls != NULL ? tail->calls->id : NULL;
}

/* Where the last ROWS lines of TEXT begin. */
static size_t last_lines(struct str text, size_t rows)
{
	size_t from = text.size;

	while (rows-- > 0 && from > 0) {
		const char *end = memrchr(text.data, '\n', from - 1);

		from = end != NULL ? (size_t)(end - text.data) + 1 : 0;
	}
	return from;
}

/* The part of LINE that stays on a terminal whose cursor goes back to the first column at each "\r". */
static struct str last_writing(struct str line)
{
	const char *back;

	while (line.size > 0 && line.data[line.size - 1] == '\r')
		line.size--;
	back = line.size > 0 ? memrchr(line.data, '\r', line.size) : NULL;
	return back != NULL ? str_part(line, (size_t)(back - line.data) + 1, line.size)
			    : line;
}

void tail_print(const struct tail *tail, size_t rows, struct buf *out)
{
	struct str rest, line;
	struct buf clean;

	if (tail->calls == NULL)
		return;
	rest = buf_str(&tail->calls->text);
	rest = str_part(rest, last_lines(rest, rows), rest.size);
	buf_init(&clean, 8 * TAIL_BYTES_MAX);
	while (str_next_line(&rest, &line)) {
		buf_clear(&clean);
		paint_clean(last_writing(line), &clean);
		for (size_t i = 0; i < clean.size; i++) {
			if (clean.data[i] == '\t')
				clean.data[i] = ' ';
		}
		(void)buf_adds(out, "  ");
		(void)buf_addstr(out, buf_str(&clean));
		(void)buf_addc(out, '\n');
	}
	buf_fini(&clean);
}
