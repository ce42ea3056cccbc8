/* approval: questions to a person, their answers, and the grants. */
#include "session/approval.h"

#include "base/clock.h"
#include "base/text/text.h"
#include "cell/outlet.h"
#include "session/approval_parts.h"
#include "session/approval_scope.h"
#include "session/approval_text.h"
#include "session/extra.h"
#include "session/session.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* In SESSION only one question of other sessions is shown at a time. */
static bool relay_is_open(const struct session *session)
{
	for (const struct running *at = session->first; at != NULL; at = at->next) {
		const struct approval *first = at->first_approval;

		if (first != NULL && first->relay.answered != NULL &&
		    first->timer.due_ms != CLOCK_NEVER)
			return true;
	}
	return false;
}

static void relays_show(struct session *session)
{
	for (struct running *at = session->first; at != NULL; at = at->next) {
		if (at->first_approval != NULL && at->first_approval->relay.answered != NULL)
			approval_show(at);
	}
}

static void approval_free(struct approval *approval)
{
	struct approval **at = &approval->running->first_approval;
	struct session *session = approval->running->session;
	const bool relayed = approval->relay.answered != NULL;

	while (*at != approval)
		at = &(*at)->next;
	*at = approval->next;
	loop_remove_timer(&approval->timer);
	value_free(approval->data);
	free(approval->grant);
	free(approval->target);
	free(approval->relay.call);
	free(approval);
	if (relayed)
		relays_show(session);
}

static void tell_given(const struct running *running, int64_t id, const char *answer,
		       const char *by)
{
	auto_value struct value *data = value_new_object();
	struct err err;

	value_set_integer(data, "id", id);
	value_set_text(data, "answer", answer);
	value_set_text(data, "by", by);
	(void)session_emit(running->session, EVENT_APPROVAL_GIVEN, running,
			   (struct str){0}, data, &err);
}

/* Decide the connections that wait for APPROVAL. */
static void let_go(const struct approval *approval, bool yes)
{
	struct outlet *outlet = cell_outlet(approval->running->session->cell);

	for (size_t i = 0; outlet != NULL && i < approval->held_count; i++)
		outlet_decide(outlet, approval->held[i], yes);
}

static void refuse_call(struct running *running, const struct value *data, const char *by)
{
	const char *said = "(The person was asked and said no.)";
	struct buf because;

	if (strcmp(by, "time") == 0)
		said = "(The person was asked and did not answer in time.)";
	else if (strcmp(by, "nobody") == 0)
		said = "(Nobody could be asked.)";
	buf_init(&because, SHOWN_MAX);
	(void)buf_addf(&because, "%s %s", value_text(value_member(data, "because")), said);
	session_deny(running, because.data, value_text(value_member(data, "rule")));
	buf_fini(&because);
}

/* ANSWER is "once", "session" or "no". */
static void decide(struct approval *approval, const char *answer, const char *by)
{
	struct running *running = approval->running;
	struct session *session = running->session;
	const bool yes = strcmp(answer, "no") != 0;

	if (approval->shown)
		tell_given(running, approval->id, answer, by);
	if (strcmp(answer, "session") == 0 && approval->grant != NULL &&
	    approval->extra == NULL && value_count(session->granted) < APPROVAL_GRANTS_MAX)
		value_set_boolean(session->granted, approval->grant, true);
	if (approval->relay.answered != NULL) {
		approval->relay.answered(&approval->relay, answer, by);
		approval_free(approval);
		approval_show(running);
	} else if (approval->target != NULL) {
		/*
		 * A no is kept as well: otherwise a program that tries again would ask
		 * again.
		 */
		value_set_boolean(running->granted, approval->target, yes);
		let_go(approval, yes);
		approval_free(approval);
		approval_show(running);
	} else if (yes) {
		struct extra *extra = approval->extra;
		auto_free char *grant = approval->grant;

		approval->grant = NULL;
		approval_free(approval);
		if (extra != NULL)
			extra->granted = true;
		else if (running->wanted != NULL)
			running_unwant(running);
		else
			running->leave->given = true;
		if (extra != NULL && strcmp(answer, "session") == 0)
			extra_share(running, extra, memory_copy(grant));
		else
			approval_ask(running);
	} else if (strcmp(by, "nobody") == 0 && approval->extra == NULL &&
		   running->wanted != NULL && running->wanted->or_runs) {
		approval_free(approval);
		running_unwant(running);
		approval_ask(running);
	} else {
		refuse_call(running, approval->data, by);
		approval_free(approval);
		running_finish(running);
	}
}

static void time_is_over(struct timer *timer)
{
	decide(timer->context, "no", "time");
}

static struct approval *approval_find(const struct running *running, int64_t id)
{
	struct approval *at = running->first_approval;

	while (at != NULL && at->id != id)
		at = at->next;
	return at;
}

/*
 * Runs in a turn of the loop, so that the code that began the call has its handle by
 * then.
 */
static void show_due(struct timer *timer)
{
	struct approval *approval = timer->context;
	struct running *running = approval->running;
	const int64_t id = approval->id;
	struct err err;

	approval->shown = true;
	timer->due = time_is_over;
	/*
	 * A receiver that passes the question on to somebody keeps the time limit itself.
	 */
	timer->due_ms = running->session->relays_approvals
				? INT64_MAX - 1
				: clock_now_ms() + APPROVAL_WAIT_S * INT64_C(1000);
	/* The question may be answered before session_emit returns. */
	if (!session_emit(running->session, EVENT_APPROVAL_WANTED, running,
			  (struct str){0}, approval->data, &err) &&
	    approval_find(running, id) != NULL)
		decide(approval, "no", "cancel");
}

bool approval_is_open(const struct running *running)
{
	for (const struct approval *at = running->first_approval; at != NULL;
	     at = at->next) {
		if (at->shown)
			return true;
	}
	return false;
}

void approval_show(struct running *running)
{
	struct approval *first = running->first_approval;

	/* A call shows one question at a time. */
	if (first == NULL || running->question != 0 || approval_is_open(running))
		return;
	if (first->relay.answered == NULL || !relay_is_open(running->session))
		first->timer.due_ms = 0;
}

struct approval *approval_new(struct running *running, struct value *take_data,
			      const char *grant)
{
	struct approval *made = memory_alloc(sizeof(*made));
	struct approval **at = &running->first_approval;

	while (*at != NULL)
		at = &(*at)->next;
	*at = made;
	made->running = running;
	made->data = take_data;
	made->id = --running->session->last_approval;
	value_set_integer(made->data, "id", made->id);
	made->grant = memory_copy(grant);
	made->timer =
		(struct timer){.due_ms = CLOCK_NEVER, .due = show_due, .context = made};
	loop_add_timer(running->session->loop, &made->timer);
	return made;
}

bool approval_is_granted(struct running *running, const char *grant)
{
	if (value_member(running->session->granted, grant) == NULL)
		return false;
	tell_given(running, --running->session->last_approval, "session", "session");
	return true;
}

bool approval_can_ask(const struct running *running)
{
	struct buf command;
	bool fits;

	buf_init(&command, COMMAND_SHOWN_MAX);
	approval_command(running, &command);
	/* A person cannot read bytes as hexadecimal digits. */
	fits = !command.overflowed && !running->quiet &&
	       running->session->answers_approvals &&
	       !value_is_true(value_member(running->arguments, "hex"));
	buf_fini(&command);
	return fits;
}

static void ask_command(struct running *running)
{
	const struct verdict *wanted = running->wanted;
	struct buf command, scope, grant;

	buf_init(&command, COMMAND_SHOWN_MAX);
	buf_init(&scope, SHOWN_MAX);
	buf_init(&grant, SHOWN_MAX);
	approval_command(running, &command);
	approval_scope(buf_str(&command), false, &scope);
	(void)buf_addf(&grant, "command %s", scope.data);
	if (str_is(buf_str(&scope), "exactly this text"))
		(void)buf_addf(&grant, ": %s", command.data);
	if (approval_is_granted(running, grant.data)) {
		running_proceed(running);
	} else {
		const struct approval_subject subject = {.effect = "command",
							 .subject = buf_str(&command),
							 .because = wanted->because,
							 .rule = wanted->rule,
							 .scope = scope.data};

		(void)approval_new(running, approval_data(running, &subject), grant.data);
		approval_show(running);
	}
	buf_fini(&grant);
	buf_fini(&scope);
	buf_fini(&command);
}

static void ask_extra(struct running *running, struct extra *extra)
{
	const char *effect = extra->root.writable ? "write" : "read";
	struct approval *approval;
	struct buf scope, grant;
	char file[APPROVAL_FILE];

	buf_init(&scope, SHOWN_MAX);
	buf_init(&grant, SHOWN_MAX);
	approval_file(extra->root.fd, file);
	(void)buf_addf(&grant, "%s %s %s", effect, file, extra->root.path);
	(void)buf_adds(&scope, extra->root.writable ? "reading and writing " : "reading ");
	text_add_exact(&scope, str_of(extra->root.path));
	(void)buf_adds(&scope, " and all below it, by every tool and command");
	if (approval_is_granted(running, grant.data)) {
		extra->granted = true;
		approval_ask(running);
	} else {
		const struct approval_subject subject = {.effect = effect,
							 .subject = str_of(extra->root.path),
							 .because = extra->because,
							 .rule = extra->rule,
							 .scope = scope.data,
							 .file = file};

		approval = approval_new(running, approval_data(running, &subject),
					grant.data);
		approval->extra = extra;
		approval_show(running);
	}
	buf_fini(&grant);
	buf_fini(&scope);
}

/*
 * A person approves exactly what a tool of the front would do, or not: there is no wider
 * scope.
 */
static void ask_leave(struct running *running)
{
	const struct tool_leave *leave = running->tool->leave;
	const struct approval_subject subject = {
		.effect = leave->effect,
		.wish = leave->wish,
		.subject = str_of(running->leave->subject),
		.because = leave->because,
		.rule = leave->rule,
		.scope = leave->scope,
	};

	(void)approval_new(running, approval_data(running, &subject), NULL);
	approval_show(running);
}

void approval_ask(struct running *running)
{
	struct extra *extra = running->extras;

	while (extra != NULL && extra->granted)
		extra = extra->next;
	if (extra != NULL)
		ask_extra(running, extra);
	else if (running->wanted != NULL)
		ask_command(running);
	else if (running->leave != NULL && !running->leave->given)
		ask_leave(running);
	else
		running_proceed(running);
}

void session_hear_nobody(struct session *session)
{
	session->answers_approvals = false;
	policy_ask_nobody(session->policy);
	for (struct running *at = session->first; at != NULL; at = at->next) {
		for (struct approval *open = at->first_approval; open != NULL;
		     open = open->next) {
			open->timer.due = time_is_over;
			open->timer.due_ms = 0;
		}
	}
}

const char *approval_relay(struct running *running, const struct approval_relay *relay,
			   struct value *take_data)
{
	struct approval *approval;
	size_t count = 0;

	for (const struct approval *at = running->first_approval; at != NULL; at = at->next)
		count++;
	if (!running->session->answers_approvals || running->state == RUNNING_DONE ||
	    running->cancelled || count >= APPROVALS_MAX) {
		value_free(take_data);
		return running->session->answers_approvals ? "time" : "nobody";
	}
	approval = approval_new(running, take_data, NULL);
	approval->relay = *relay;
	approval->relay.call = memory_copy(relay->call);
	approval_show(running);
	return NULL;
}

void approval_relay_over(struct running *running, const char *call, int64_t id)
{
	struct approval *at = running->first_approval;

	while (at != NULL && (at->relay.answered == NULL || at->relay.id != id ||
			      strcmp(at->relay.call, call) != 0))
		at = at->next;
	if (at == NULL)
		return;
	if (at->shown)
		tell_given(running, at->id, "no", "cancel");
	approval_free(at);
	approval_show(running);
}

void approval_drop_all(struct running *running)
{
	while (running->first_approval != NULL) {
		struct approval *approval = running->first_approval;

		if (approval->shown)
			tell_given(running, approval->id, "no", "cancel");
		let_go(approval, false);
		approval_free(approval);
	}
	value_free(running->granted);
	running->granted = NULL;
}

bool approval_answer(struct running *running, int64_t id, const struct value *answer,
		     struct err *err)
{
	struct approval *approval = approval_find(running, id);
	const struct value *content = value_member(answer, "content");
	struct str said = value_str(value_member(content, "answer"));
	const struct str by = value_str(value_member(content, "by"));
	const char *hash;

	if (approval == NULL || !approval->shown)
		return err_set(err, ESRCH, "question %lld is not open", (long long)id);
	hash = value_text(value_member(approval->data, "hash"));
	if (!str_is(value_str(value_member(answer, "action")), "accept") ||
	    str_is(said, "no")) {
		/*
		 * A question that was passed on may end without an answer there, or with
		 * nobody to ask there.
		 */
		decide(approval, "no",
		       str_is(by, "time")     ? "time"
		       : str_is(by, "nobody") ? "nobody"
					      : "person");
		return true;
	}
	if (!str_is(said, "once") && !str_is(said, "session"))
		return err_set(err, EINVAL,
			       "content.answer is \"once\", \"session\" or \"no\"");
	if (!str_is(value_str(value_member(content, "hash")), hash))
		return err_set(err, EINVAL,
			       "content.hash is not that of what was asked (%s)", hash);
	decide(approval, str_is(said, "once") ? "once" : "session", "person");
	return true;
}
