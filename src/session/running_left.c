/*
 * running_left: files that a killed git may have left (audit.h). One worker finds them,
 * and another worker removes them. In between the front, which sees the machine's
 * processes, decides which may go.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "guard/guard.h"
#include "session/holders.h"
#include "session/session.h"

enum {
	MEND_MS = 10000, /* enough to start two workers on a busy machine */
	/* The kernel ends the processes of a killed session one after the other. */
	DYING_MS = 2000,
	/*
	 * Most gits outside of the cell, which may hold a file, have ended before that.
	 */
	SHORT_MS = 300,
};

void running_take_left(struct running *running, struct tool_result *result)
{
	struct value *left = audit_take_left(result);

	/*
	 * A file that is found while the others are removed was left by no process that
	 * this call ended.
	 */
	if (running->left_state != LEFT_UNSEEN) {
		value_free(left);
		return;
	}
	running->left_state = LEFT_SEEN;
	running->left = left;
}

/*
 * Were processes of the call ended by force, by its worker or together with its worker?
 */
static bool ended_some(const struct running *running)
{
	const struct tool_result *result = &running->result;

	return running->auditing || result->status == RESULT_TIMED_OUT ||
	       result->status == RESULT_CANCELLED ||
	       value_integer(value_member(result->details, "left_processes")) > 0;
}

/* Keep only the objects in LEFT: a worker that was taken over may note anything. */
static void items_keep(struct value *left)
{
	auto_value struct value *all = value_copy(left);

	for (void *at = value_first(all); at != NULL; at = value_next(all, at)) {
		if (value_kind(value_at(at)) != VALUE_OBJECT)
			value_remove(left, value_key(at));
	}
}

/* Files of LEFT that some process may hold are looked at again after the next call. */
static void held_keep(struct session *session, const struct value *left)
{
	for (void *at = value_first(left); at != NULL; at = value_next(left, at)) {
		struct value *item;

		if (value_member(value_at(at), "held") == NULL)
			continue;
		if (session->held == NULL)
			session->held = value_new_object();
		item = value_copy(value_at(at));
		value_set_boolean(item, "told", true);
		value_set(session->held, value_key(at), item);
	}
}

static void held_join(struct session *session, struct running *running)
{
	auto_value struct value *held = session->held;

	session->held = NULL;
	for (void *at = value_first(held); at != NULL; at = value_next(held, at)) {
		if (running->left == NULL)
			running->left = value_new_object();
		if (value_member(running->left, value_key(at)) == NULL)
			value_set(running->left, value_key(at), value_copy(value_at(at)));
	}
}

bool running_left_waits(struct running *running)
{
	const struct value *guard = cell_spec(running->session->cell)->guard;

	if (running->left_state != LEFT_SEEN)
		return false;
	running->left_state = LEFT_JUDGED;
	held_join(running->session, running);
	if (running->left == NULL || guard == NULL)
		return false;
	items_keep(running->left);
	holders_find(running->left, value_member(guard, "roots"), ended_some(running),
		     clock_now_ms() + (running->mending ? DYING_MS : SHORT_MS));
	held_keep(running->session, running->left);
	return value_count(running->left) > 0;
}

struct value *running_left_carried(const struct running *running)
{
	struct value *carried;

	if (running->left_state != LEFT_JUDGED && running->sent_ns == 0)
		return NULL;
	carried = value_new_object();
	if (running->left_state == LEFT_UNSEEN)
		value_set_integer(carried, LEFT_SINCE, running->sent_ns);
	else if (running->left != NULL)
		value_set(carried, LEFT_FOUND, value_ref(running->left));
	return carried;
}

/* This tool is in no table: a worker knows it by its name. */
static const struct tool left_tool = {
	.name = AUDIT_CALL,
	.description = "Look for what the gits of a killed session left.",
	.effects = EFFECT_READS,
	.internal = true,
};

void session_put_left_away(struct session *session)
{
	const int64_t deadline = clock_now_ms() + MEND_MS;
	const struct value *guard = cell_spec(session->cell)->guard;
	struct running *running;

	if (!session->taken_over || guard == NULL)
		return;
	running = running_of_session(session, &left_tool);
	/* The session's first call makes the audit. */
	running->auditing = running->mending = true;
	running->sent_ns = value_integer(value_member(guard, "ticked"));
	running_set_state(running, RUNNING_QUEUED);
	running_dispatch(session);
	while (!running_is_done(running) && clock_now_ms() < deadline)
		loop_turn(session->loop, deadline);
	if (running_is_done(running) && running->result.text.size > 0) {
		session->said = memory_alloc(sizeof(*session->said));
		tool_result_init(session->said);
		audit_take(session->said, &running->result);
	}
	running_free(running);
}
