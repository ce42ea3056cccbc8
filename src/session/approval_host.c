/*
 * approval_host: questions about hosts that a command connects to and that the policy
 * does not list.
 */
#include "base/text/text.h"
#include "cell/outlet.h"
#include "session/approval.h"
#include "session/approval_parts.h"
#include "session/approval_scope.h"
#include "session/approval_text.h"

#include <string.h>

static struct running *running_of(const struct session *session, uint64_t number)
{
	struct running *at = session->first;

	while (at != NULL && (at->number != number || at->state != RUNNING_BUSY))
		at = at->next;
	return at;
}

/*
 * The open question of RUNNING about TARGET, or NULL. *COUNT: how many open questions
 * RUNNING has.
 */
static struct approval *asked_already(const struct running *running, const char *target,
				      size_t *count)
{
	struct approval *found = NULL;

	*count = 0;
	for (struct approval *at = running->first_approval; at != NULL; at = at->next) {
		++*count;
		if (at->target != NULL && strcmp(at->target, target) == 0)
			found = at;
	}
	return found;
}

static void ask_host(struct running *running, uint64_t connection, const char *target,
		     const char *because)
{
	struct session *session = running->session;
	struct outlet *outlet = cell_outlet(session->cell);
	struct buf command, scope, grant;
	struct approval *approval;
	const struct value *decided;
	size_t count;

	if (running->granted == NULL)
		running->granted = value_new_object();
	approval = asked_already(running, target, &count);
	decided = value_member(running->granted, target);
	if (decided != NULL) {
		outlet_decide(outlet, connection, value_is_true(decided));
		return;
	}
	if (approval != NULL
		    ? approval->held_count == HELD_MAX
		    : count == APPROVALS_MAX || value_count(running->granted) + count >=
							APPROVAL_HOSTS_MAX) {
		outlet_decide(outlet, connection, false);
		return;
	}
	if (approval != NULL) {
		approval->held[approval->held_count++] = connection;
		return;
	}
	buf_init(&command, 2 * COMMAND_SHOWN_MAX);
	buf_init(&scope, SHOWN_MAX);
	buf_init(&grant, SHOWN_MAX);
	approval_command(running, &command);
	(void)buf_addf(&scope, "%s for ", target);
	approval_scope(buf_str(&command), true, &scope);
	(void)buf_addf(&grant, "network %s", scope.data);
	if (str_ends(buf_str(&scope), STR("exactly this text")))
		(void)buf_addf(&grant, ": %s", command.data);
	if (command.overflowed || grant.overflowed) {
		outlet_decide(outlet, connection, false);
	} else if (approval_is_granted(running, grant.data)) {
		value_set_boolean(running->granted, target, true);
		outlet_decide(outlet, connection, true);
	} else {
		const struct approval_subject subject = {
			.effect = "network",
			.subject = str_of(target),
			.because = because,
			.rule = cell_spec(session->cell)->network_rule,
			.scope = scope.data};

		approval = approval_new(running, approval_data(running, &subject),
					grant.data);
		approval->target = memory_copy(target);
		approval->held[approval->held_count++] = connection;
		approval_show(running);
	}
	buf_fini(&grant);
	buf_fini(&scope);
	buf_fini(&command);
}

void approval_ask_host(void *context, uint64_t number, uint64_t connection,
		       const char *target, const char *because)
{
	struct session *session = context;
	struct running *running = running_of(session, number);

	/* The caller of a job does not listen any more. */
	if (running == NULL || running->quiet || running->job != NULL ||
	    running->cancelled || !session->answers_approvals)
		outlet_decide(cell_outlet(session->cell), connection, false);
	else
		ask_host(running, connection, target, because);
}
