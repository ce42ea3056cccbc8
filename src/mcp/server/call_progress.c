/* call_progress: progress notices of a call, for a client that gave a progress token. */
#include "base/clock.h"
#include "base/text/text.h"
#include "mcp/server/call.h"

enum {
	/* A person reads no faster, and each notice wakes a client. */
	TELL_EVERY_MS = 250,
	/* Clients wait between 30 and 60 s for a word. */
	TICK_MS = 10000,
	PROGRESS_LINE_MAX = 200,
	FRAGMENT_MAX = 4096, /* of which the last line is looked for */
};

/* Of a number that is counted, for a second: less than one for as long as a call may take. */
#define LITTLE 1e-6

static void tell(struct mcp_call *call, double progress, const struct value *total,
		 struct str message)
{
	struct value *params;

	if (call->token == NULL || call->request == NULL)
		return;
	/* It must grow, whatever a script counts. */
	if (progress <= call->told)
		return;
	call->told = progress;
	call->told_ms = clock_now_ms();
	call->tick.due_ms = call->told_ms + TICK_MS;
	params = value_new_object();
	value_set(params, "progressToken", value_ref(call->token));
	if (progress == (double)(int64_t)progress)
		value_set_integer(params, "progress", (int64_t)progress);
	else
		value_set_real(params, "progress", progress);
	if (total != NULL)
		value_set_real(params, "total", value_number(total));
	if (message.size > 0 && call->client.version >= MCP_2025_03_26)
		value_set_str(params, "message", message);
	mcp_tell(call->mcp, call->request->way, NULL, "notifications/progress", params);
}

/*
 * The progress number of a call without news: its seconds, when the tool does not count
 * itself. Otherwise a number so little above the tool's last one that the tool's next one
 * is higher.
 */
static double beat(const struct mcp_call *call)
{
	const double seconds = (double)(clock_now_ms() - call->began_ms) / 1000;

	return call->counts ? call->counted + seconds * LITTLE : seconds;
}

static void tick_due(struct timer *timer)
{
	struct mcp_call *call = timer->context;

	timer->due_ms = clock_now_ms() + TICK_MS;
	tell(call, beat(call), NULL, buf_str(&call->last_line));
}

void mcp_progress_begin(struct mcp_call *call)
{
	buf_init(&call->last_line, PROGRESS_LINE_MAX);
	if (call->token == NULL)
		return;
	call->began_ms = clock_now_ms();
	/* A call that ends at once is not told of. */
	call->told_ms = call->began_ms;
	call->told = -1;
	call->tick = (struct timer){.due_ms = call->began_ms + TICK_MS,
				    .due = tick_due,
				    .context = call};
	loop_add_timer(call->mcp->options.loop, &call->tick);
}

void mcp_progress_end(struct mcp_call *call)
{
	loop_remove_timer(&call->tick);
	buf_fini(&call->last_line);
}

void mcp_progress_output(struct mcp_call *call, struct str fragment)
{
	struct str line, last = STR("");
	struct buf clean;

	if (call->token == NULL)
		return;
	if (fragment.size > FRAGMENT_MAX)
		fragment = str_part(fragment, fragment.size - FRAGMENT_MAX, FRAGMENT_MAX);
	while (str_next_line(&fragment, &line)) {
		if (str_trim(line).size > 0)
			last = str_trim(line);
	}
	if (last.size == 0)
		return;
	buf_init(&clean, FRAGMENT_MAX * 4);
	(void)text_clean(last, &clean);
	buf_clear(&call->last_line);
	(void)buf_addstr(&call->last_line,
			 str_part(buf_str(&clean), 0,
				  text_character_border(buf_str(&clean), PROGRESS_LINE_MAX)));
	buf_fini(&clean);
	if (clock_now_ms() - call->told_ms >= TELL_EVERY_MS)
		tell(call, beat(call), NULL, buf_str(&call->last_line));
}

void mcp_progress_event(struct mcp_call *call, const struct event *event)
{
	call->counted = value_number(value_member(event->data, "progress"));
	tell(call, call->counted, value_member(event->data, "total"), event->text);
}
