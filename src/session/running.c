/*
 * running: the life of a call: queued, busy with a worker, done; its deadline, its
 * cancel, its end.
 */

#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "cell/cell.h"
#include "cell/outlet.h"
#include "cell/vault.h"
#include "cell/wire.h"
#include "files/record.h"
#include "guard/guard.h"
#include "policy/command.h"
#include "session/approval.h"
#include "session/keeper.h"
#include "session/masking.h"
#include "session/nested.h"
#include "session/session.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/event.h"
#include "tool/schema.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * Chooses the next call, by counts and not by walks through the list, because calls come
 * by the hundred.
 */

enum {
	/* more of them at the same time only queue on the disk */
	FILE_CALLS_PER_CORE = 2,
	/*
	 * A search takes all cores that it finds. The other workers serve calls that only
	 * want a file.
	 */
	SEARCHES_PER_CORE = 1,
};

/* RUNNING starts no program. */
static bool is_file_call(const struct running *running)
{
	return (running->tool->effects & EFFECT_RUNS) == 0;
}

bool running_is_ours(const struct tool *tool)
{
	return tool == NULL || (tool->internal && !tool->is_step);
}

bool running_is_command(const struct running *running)
{
	return !running_is_ours(running->tool) &&
	       (running->tool->effects & EFFECT_RUNS) != 0;
}

bool running_is_writer(const struct running *running)
{
	return !running_is_ours(running->tool) &&
	       (running->tool->effects & (EFFECT_WRITES | EFFECT_RUNS)) != 0;
}

/* Add MORE (1, or -1 as size_t) to the counts of calls like RUNNING in its state. */
static void count(const struct running *running, size_t more)
{
	struct session *session = running->session;

	const bool is_queued = running->state == RUNNING_QUEUED;

	if (!is_queued && running->state != RUNNING_BUSY &&
	    running->state != RUNNING_STANDING)
		return;
	const bool searches = running->tool->searches;
	if (is_queued && running_is_command(running))
		session->queued_commands += more;
	else if (!is_queued && running_is_writer(running))
		session->busy_writers += more;
	if (is_queued && searches)
		session->queued_searches += more;
	else if (searches)
		session->busy_searches += more;
	if (is_queued && is_file_call(running))
		session->queued_files += more;
	else if (is_queued)
		session->queued_others += more;
	else if (is_file_call(running))
		session->busy_files += more;
	else if (running->job == NULL) /* a job that waits holds up no other call */
		session->busy_others += more;
}

static struct running *queued_from(struct running *running)
{
	while (running != NULL && running->state != RUNNING_QUEUED)
		running = running->next;
	return running;
}

/* The states in which something may happen to a call, as a set of bits. */
#define IN(state) (1U << (state))

static const struct {
	unsigned in;
	enum running_state next;
} steps[] = {
	[HAPPENS_JUDGED] = {IN(RUNNING_NEW), RUNNING_ASKING},
	[HAPPENS_ELSEWHERE] = {IN(RUNNING_ASKING), RUNNING_ELSEWHERE},
	[HAPPENS_AWAITS] = {IN(RUNNING_ASKING) | IN(RUNNING_AWAITING), RUNNING_AWAITING},
	[HAPPENS_QUEUED] = {IN(RUNNING_NEW) | IN(RUNNING_ASKING) | IN(RUNNING_BUSY),
			    RUNNING_QUEUED},
	[HAPPENS_GATHERED] = {IN(RUNNING_QUEUED), RUNNING_AHEAD},
	[HAPPENS_RECALLED] = {IN(RUNNING_AHEAD), RUNNING_QUEUED},
	[HAPPENS_SENT] = {IN(RUNNING_QUEUED) | IN(RUNNING_AHEAD), RUNNING_BUSY},
	[HAPPENS_STANDS] = {IN(RUNNING_BUSY), RUNNING_STANDING},
	/* In whichever state a call is, it can end. */
	[HAPPENS_END] = {~0U, RUNNING_OVER},
};

void running_step(struct running *running, enum running_happening happening)
{
	struct session *session = running->session;
	const enum running_state state = steps[happening].next;

	assert((steps[happening].in & IN(running->state)) != 0);
	count(running, (size_t)-1);
	running->state = state;
	count(running, 1);
	/* The list is in the order of numbers. */
	if (state == RUNNING_QUEUED && (session->first_queued == NULL ||
					running->number < session->first_queued->number))
		session->first_queued = running;
	else if (running == session->first_queued)
		session->first_queued = queued_from(running);
}

/* RUNNING is the only call under way, and it and its worker have a processor each. */
static bool is_alone(const struct running *running)
{
	const struct session *session = running->session;
	size_t under_way = session->queued_files + session->queued_others +
			   session->busy_files + session->busy_others;

	return under_way == (running->state != RUNNING_NEW) && session->cores > 1;
}

static size_t room_beside(size_t busy, size_t most)
{
	return busy < most ? most - busy : 0;
}

static size_t smaller(size_t one, size_t other)
{
	return one < other ? one : other;
}

/* How many file calls may begin beside the busy ones; SEARCHES: how many searches. */
static size_t file_room(const struct session *session, bool searches)
{
	const size_t room =
		room_beside(session->busy_files, session->cores * FILE_CALLS_PER_CORE);

	return searches ? smaller(room, room_beside(session->busy_searches,
						    session->cores * SEARCHES_PER_CORE))
			: room;
}

/* How many file calls are queued: only searches when SEARCHES, else all others. */
static size_t files_queued(const struct session *session, bool searches)
{
	return searches ? session->queued_searches
			: session->queued_files - session->queued_searches;
}

void running_stay(struct session *session, int64_t us)
{
	if (session->cores > 2 || !cell_is_making(session->cell))
		loop_stay(session->loop, clock_now_us() + us);
}

/*
 * The queued call that may begin next; NULL: none. *WAITING: how many could begin, with a
 * worker each.
 */
static struct running *next_queued(const struct session *session, size_t *waiting)
{
	const size_t room = file_room(session, false);
	const size_t searching = file_room(session, true);
	const size_t others = room_beside(session->busy_others, session->commands_most);
	struct running *at = session->first_queued;

	*waiting = smaller(others, session->queued_others) +
		   smaller(room, files_queued(session, false) +
					 smaller(searching, files_queued(session, true)));
	/*
	 * Nothing is queued except calls for which there is no room; do not walk through
	 * hundreds of them.
	 */
	if (*waiting == 0)
		return NULL;
	for (; at != NULL; at = queued_from(at->next)) {
		const size_t its_room = !is_file_call(at)    ? others
					: at->tool->searches ? searching
							     : room;

		if (its_room > 0 && !keeper_holds(session->keeper, at) &&
		    (session->unmended == NULL || at->due != DUE_CALL))
			break;
	}
	return at;
}

/*
 * Calls that no worker of this session's cell carries out: their time, their end, and
 * what others are told about them meanwhile.
 */

static void stop(struct running *running)
{
	if (running->tool->stop != NULL)
		running->tool->stop(running->tool->keeper, running);
}

/*
 * The next audit sees what the call has left in the workspace. One that a call beside it
 * has begun already does not.
 */
static void look_later(const struct running *running)
{
	struct session *session = running->session;

	if ((running->tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) == 0 ||
	    session->cell == NULL || cell_spec(session->cell)->guard == NULL)
		return;
	session->audits_wanted++;
	cell_set_audit_due(session->cell, true);
}

/* The result of RUNNING stands. It may have written after a call beside it was audited. */
static void elsewhere_over(struct running *running)
{
	look_later(running);
	running_finish(running);
}

/* A person may be at lunch, but the call must not stay open for ever. */
enum { ASKED_MS = 600000 };

static void too_late(struct timer *timer)
{
	struct running *running = timer->context;

	if (running->asking.question != 0 &&
	    clock_now_ms() < running->times.deadline_ms + ASKED_MS) {
		timer->due_ms = clock_deadline(running->times.timeout_s);
		return;
	}
	if (running->times.progressed && clock_now_ms() < running->times.latest_ms &&
	    running->times.prolonged++ < SESSION_PROLONGED_MAX) {
		const int64_t due_ms = clock_deadline(running->times.timeout_s);

		running->times.progressed = false;
		timer->due_ms = due_ms < running->times.latest_ms
					? due_ms
					: running->times.latest_ms;
		running->times.deadline_ms = timer->due_ms;
		return;
	}
	(void)tool_fail(&running->result,
			"%s has not answered in %g s, and was told to stop.",
			running->tool->name, running->times.timeout_s);
	running->result.status = RESULT_TIMED_OUT;
	stop(running);
	elsewhere_over(running);
}

void session_elsewhere_call(struct running *running)
{
	const struct session *session = running->session;

	running_step(running, HAPPENS_ELSEWHERE);
	if (running->times.timeout_s > 0) {
		running->times.deadline_ms = clock_deadline(running->times.timeout_s);
		running->times.kill_timer = (struct timer){
			.due_ms = running->times.deadline_ms,
			.due = too_late,
			.context = running,
		};
		loop_add_timer(session->loop, &running->times.kill_timer);
	}
	look_later(running);
	if (running->tool->where == ELSEWHERE && running->tool->goes_on)
		job_begin_patience(running);
	running->tool->begin(running->tool->keeper, running);
}

/* RUNNING ends because of a cancel of which its worker was not told, or that has no worker. */
static void cancel_take(struct running *running)
{
	tool_result_fini(&running->result);
	tool_result_init(&running->result);
	(void)tool_fail(&running->result, "Cancelled after %.1f s.",
			(double)(clock_now_us() - running->times.began_us) / 1e6);
	running->result.status = RESULT_CANCELLED;
}

static void elsewhere_cancel(struct running *running)
{
	cancel_take(running);
	stop(running);
	elsewhere_over(running);
}

const struct value *running_arguments(const struct running *running)
{
	return running->arguments;
}

const struct value *running_trace(const struct running *running)
{
	return running->trace;
}

const char *running_id(const struct running *running)
{
	return running->id;
}

void running_end(struct running *running, struct tool_result *take_result)
{
	if (running->state == RUNNING_OVER) {
		tool_result_fini(take_result);
		return;
	}
	tool_result_fini(&running->result);
	running->result = *take_result;
	elsewhere_over(running);
}

/* A call's access to the network (outlet.h): granted, refused, taken back. */

enum {
	/* The result itself counts further ones. */
	REFUSED_MAX = 2 * DENIALS_MAX,
	/* bytes of a call's arguments and its result in which the port is searched */
	WORDS_MAX = 256 << 10,
};

/*
 * Does RUNNING run programs now? ENDING ran them until now, although it may not be busy
 * any more.
 */
static bool runs_programs(const struct running *running, const struct running *ending)
{
	return (running->state == RUNNING_BUSY || (ending != NULL && running == ending)) &&
	       running->tool != NULL && tool_gets_network(running->tool);
}

/*
 * REMEDY NULL: the host was looked up, and the remedy is chosen when the call's words are
 * there.
 */
static void refused_add(struct running *running, const char *target, const char *rule,
			const char *remedy, bool guessed)
{
	struct running_refused **at = &running->network.refused;
	struct running_refused *made;
	size_t count = 0;

	for (; *at != NULL; at = &(*at)->next) {
		if (strcmp((*at)->target, target) == 0 && strcmp((*at)->rule, rule) == 0)
			return;
		count++;
	}
	if (count >= REFUSED_MAX)
		return;
	made = memory_alloc(sizeof(*made));
	made->target = memory_copy(target);
	made->remedy = memory_copy(remedy);
	made->rule = memory_copy(rule);
	made->guessed = guessed;
	*at = made;
}

static void refused_free(struct running *running)
{
	for (struct running_refused *next, *at = running->network.refused; at != NULL;
	     at = next) {
		next = at->next;
		free(at->target);
		free(at->remedy);
		free(at->rule);
		free(at);
	}
}

void running_refused(void *context, uint64_t number, const char *target, const char *rule,
		     const char *remedy)
{
	struct session *session = context;

	for (struct running *at = session->first; at != NULL; at = at->next) {
		if (number != 0 ? at->number == number : runs_programs(at, NULL))
			refused_add(at, target, rule, remedy, false);
	}
}

struct hearing {
	struct session *session;
	const struct running *ending; /* or NULL */
};

/*
 * A datagram does not say which call sent it: when several calls run, the refusal is
 * marked as a guess.
 */
static void host_looked_up(void *context, const struct network_host *host)
{
	const struct hearing *hearing = context;
	size_t count = 0;

	for (const struct running *at = hearing->session->first; at != NULL; at = at->next)
		count += runs_programs(at, hearing->ending);
	for (struct running *at = hearing->session->first; at != NULL; at = at->next) {
		if (runs_programs(at, hearing->ending))
			refused_add(at, host->text,
				    cell_spec(at->session->cell)->network_rule, NULL,
				    count > 1);
	}
}

/*
 * Read the hosts that were looked up until now. They belong to the calls that run now,
 * and to ENDING (or NULL).
 */
static void hear_lookups(struct session *session, const struct running *ending)
{
	struct hearing hearing = {session, ending};
	const int fd = session->cell != NULL ? cell_questions(session->cell) : -1;

	if (fd >= 0)
		outlet_read_lookups(fd, host_looked_up, &hearing);
}

/* The port of the entry of SPEC that lists HOST; 0: none does. */
static uint16_t port_listed(const struct cell_spec *spec, const struct network_host *host)
{
	struct network_entry entry;

	for (size_t i = 0; i < spec->network.count; i++) {
		if (network_parse_entry(str_of(spec->network.items[i]), &entry, NULL) &&
		    network_find(&entry, 1, host, entry.port) != NULL)
			return entry.port;
	}
	return 0;
}

static struct network_said said_of(const struct running *running, const char *host)
{
	struct network_said said;
	struct buf words;

	buf_init(&words, WORDS_MAX);
	(void)value_print(running->arguments, 0, &words);
	(void)buf_addc(&words, '\n');
	(void)buf_addstr(&words, str_part(buf_str(&running->result.text), 0, WORDS_MAX / 2));
	said = network_find_url(buf_str(&words), host);
	buf_fini(&words);
	return said;
}

/*
 * Append to OUT the policy entry that lets programs of RUNNING reach TARGET. In a cell
 * with a proxy, programs ask the proxy to look names up. A program that looks a name up
 * itself does not use the proxy, and only a tcp:// entry helps. The same holds for plain
 * HTTP on a port on which the proxy passes none.
 */
static void remedy_add(const struct running *running, const char *target, struct buf *out)
{
	const struct cell_spec *spec = cell_spec(running->session->cell);
	const bool has_proxy = cell_outlet(running->session->cell) != NULL;
	const struct network_said said = said_of(running, target);
	char entry[NETWORK_TEXT_MAX], carried[NETWORK_TEXT_MAX + sizeof("tcp://")];
	char remedy[NETWORK_REMEDY_MAX];
	struct network_host host;
	uint16_t port = said.port;

	if (!network_parse_host(str_of(target), &host, NULL))
		return;
	if (port == 0 && has_proxy)
		port = port_listed(spec, &host);
	if (!has_proxy && !(said.plain && port != NETWORK_PORT_HTTP)) {
		network_print_entry(&host, port != 0 ? port : NETWORK_PORT_TLS, entry);
		(void)buf_adds(out, network_print_remedy(entry, remedy));
		return;
	}
	(void)snprintf(carried, sizeof(carried), "tcp://%s",
		       network_print(&host, port != 0 ? port : NETWORK_PORT_TLS, entry));
	(void)buf_addf(out, "%s%s%s",
		       has_proxy ? "this program does not ask the proxy (HTTP_PROXY): " : "",
		       network_print_remedy(carried, remedy),
		       port != 0 ? "" : " (or with the port that it wants)");
}

static void tell_refused(struct running *running)
{
	struct buf remedy;

	buf_init(&remedy, 2 * NETWORK_REMEDY_MAX);
	for (const struct running_refused *at = running->network.refused; at != NULL;
	     at = at->next) {
		buf_clear(&remedy);
		if (at->remedy == NULL)
			remedy_add(running, at->target, &remedy);
		denial_add(&running->result,
			   &(struct denial){
				   .kind = DENIAL_NET,
				   .target = at->target,
				   .rule = at->rule,
				   .remedy = at->remedy != NULL ? at->remedy : remedy.data,
				   .guessed = at->guessed,
			   });
	}
	buf_fini(&remedy);
}

enum claims_hosts session_weighs_hosts(const struct session *session,
				       const struct tool_result *result)
{
	if (session->cell == NULL || !denial_claims_name_host(result))
		return CLAIMS_HOSTS_WRONG;
	if (spec_is_sealed(cell_spec(session->cell)))
		return cell_lost_route(session->cell) ? CLAIMS_HOSTS_LISTABLE
						      : CLAIMS_HOSTS_WRONG;
	return cell_spec(session->cell)->strength.unfiltered ? CLAIMS_HOSTS_WRONG
							     : CLAIMS_HOSTS_CLOSED;
}

/* End the network grant of RUNNING and add the refused hosts to its result. */
static void network_end(struct running *running)
{
	struct cell *cell = running->session->cell;
	struct outlet *outlet = cell != NULL ? cell_outlet(cell) : NULL;
	struct vault *vault = cell != NULL ? cell_vault(cell) : NULL;

	if (cell == NULL || !running->network.asks)
		return;
	running->network.asks = false;
	if (outlet != NULL) {
		outlet_revoke(outlet, running->number);
		outlet_hear(outlet);
	}
	if (vault != NULL)
		vault_hear(vault);
	hear_lookups(running->session, running);
	tell_refused(running);
	if (outlet != NULL && outlet_broken(outlet) != NULL)
		denial_add(&running->result,
			   &(struct denial){.kind = DENIAL_NET,
					    .target = "every host",
					    .rule = outlet_broken(outlet),
					    .remedy = "begin a new session"});
	if (vault != NULL && vault_broken(vault) != NULL)
		denial_add(&running->result,
			   &(struct denial){.kind = DENIAL_NET,
					    .target = "every credential",
					    .rule = vault_broken(vault),
					    .remedy = "begin a new session"});
}

/*
 * Grant RUNNING the network. Returns the variables by which its programs reach it, owned
 * by the caller; NULL: there are none.
 */
static struct value *network_begin(struct running *running)
{
	struct outlet *outlet = cell_outlet(running->session->cell);
	struct value *list;

	if (!tool_gets_network(running->tool))
		return NULL;
	/* The look-ups that are waiting come from others: a job, a server. */
	hear_lookups(running->session, NULL);
	running->network.asks = true;
	if (outlet == NULL)
		return NULL;
	list = value_new_array();
	outlet_grant(outlet, running->number, list);
	return list;
}

enum {
	/*
	 * The worker is killed when it has not answered this long after the deadline.
	 * Until then it ends what the call has started, which are hundreds of processes
	 * after a fork bomb, and what it gathered is lost if it is killed. On a machine
	 * with other work 64 dying interpreters have taken more than 1.5 s.
	 */
	KILL_AFTER_MS = 5000,
	/*
	 * The same after a cancel, for which a person waits, beside the time that the
	 * policy gives a program to clean up (grace_s).
	 */
	CANCEL_KILL_AFTER_MS = 400,
	SEND_MS = 10000, /* a worker accepts the largest call in far less time */
	/* an audit looks at some hundred names; a loaded machine is slow */
	AUDIT_MS = 5000,
	/* A file tool that takes longer is waiting for something, such as a disk. */
	FILE_CALL_US = 150,
};

bool running_is_sent(const struct running *running)
{
	return running->state > RUNNING_QUEUED;
}

bool running_is_done(const struct running *running)
{
	return running->caller.state != CALLER_WAITS ||
	       (running->job == NULL && running->state == RUNNING_OVER);
}

const struct tool_result *running_result(const struct running *running)
{
	return running_told((struct running *)(uintptr_t)running);
}

/* How the details of a result tell of a command that destroys much. */
static const struct field harm_fields[] = {
	FIELD_NAMED(struct command_harm, name, "command"),
	FIELD(struct command_harm, does),
	FIELD(struct command_harm, next),
	{0},
};

/*
 * After a command that destroys much, say what to do next. A job says so in the answer in
 * which it began. The output of the front's own commands is a program's output, so only
 * the details say it.
 */
static void harm_tell(struct running *running, struct tool_result *result)
{
	const struct command_harm *harm = running->harm;

	if (harm == NULL || running->changes == CHANGES_NONE)
		return;
	value_set(tool_details(result), "destroys", fields_print(harm_fields, harm));
	if (running->kind != RUNNING_FOR_CALLER)
		return;
	(void)buf_end_line(&result->text);
	(void)buf_addf(&result->text, "[%s %s. %s]\n", harm->name, harm->does, harm->next);
}

/* Add to RESULT, of RUNNING, the time that it took, and the walls. */
static void result_complete(const struct running *running, struct tool_result *result)
{
	const struct sandbox_strength strength = session_strength(running->session);

	result->seconds = (double)(clock_now_us() - running->times.began_us) / 1e6;
	result->accounts.wall_s = result->seconds;
	result->strength = strength;
	denial_set_level(result, (int)strength.level);
}

/* The keeper notes RESULT, of RUNNING, and adds to it; so does the session's beginning. */
static void result_note(struct running *running, struct tool_result *result)
{
	struct session *session = running->session;

	keeper_finish(session->keeper, running, result);
	if (session->said == NULL || running->told.quiet)
		return;
	audit_take(result, session->said);
	tool_result_fini(session->said);
	free(session->said);
	session->said = NULL;
}

/* The caller of RUNNING and the sink get RESULT. */
static void caller_answer(struct running *running, struct tool_result *result)
{
	struct session *session = running->session;
	struct err err;

	result_note(running, result);
	masking_result(running, result);
	if (running->caller.ending != NULL)
		running->caller.ending(running->caller.context, result);
	auto_value struct value *data = session->sink.event != NULL && !running->told.quiet
						? tool_result_value(result)
						: NULL;
	if (value_count(result->seen) > 0 && data != NULL)
		value_set(data, "seen", value_copy(result->seen));
	if (!session_emit_end(running, data, &err))
		(void)buf_addf(&result->text, "\nThis result could not be recorded: %s",
			       err.text);
	if (running->caller.done != NULL)
		running->caller.done(running->caller.context, running);
}

void running_tell(struct running *running)
{
	struct tool_result *answer = &running->caller.answer;

	loop_remove_timer(&running->awaits.timer);
	running->awaits.job = NULL;
	harm_tell(running, answer);
	schema_cap_tell(running->tool, running->capped, answer);
	running->caller.state = CALLER_ANSWERED;
	result_complete(running, answer);
	caller_answer(running, answer);
}

static void batch_recall(struct running *running);
static void output_end(struct running *running);

void running_finish(struct running *running)
{
	const bool is_job = running->job != NULL;

	batch_recall(running);
	output_end(running);
	loop_remove_timer(&running->batch.recall);
	loop_remove_timer(&running->times.kill_timer);
	loop_remove_timer(&running->times.patience);
	running_question_end(running);
	approval_drop_all(running);
	extra_tell(running);
	if (!is_job) {
		loop_remove_timer(&running->awaits.timer);
		running->awaits.job = NULL;
		harm_tell(running, &running->result);
	}
	running_drop_log(running);
	extra_drop_all(running);
	if (!is_job)
		schema_cap_tell(running->tool, running->capped, &running->result);
	if (running_is_sent(running))
		session_note_layer(running->session, running->tool, &running->result);
	session_note_web(running->session, running->tool, running->arguments,
			 &running->result);
	session_quota_tell(running);
	running_step(running, HAPPENS_END);
	network_end(running);
	result_complete(running, &running->result);
	session_memory_take(running->session, running);
	if (!is_job) {
		caller_answer(running, &running->result);
		return;
	}
	result_note(running, &running->result);
	session_jobs_over(running->job);
}

void running_set_job(struct running *running, struct job *job)
{
	batch_recall(running);
	loop_remove_timer(&running->times.patience);
	running->times.patience_s = 0;
	if (running->busy.company == COMPANY_HERALD)
		running->busy.company = COMPANY_NOBODY;
	count(running, (size_t)-1);
	running->job = job;
	count(running, 1);
}

/*
 * The cell of root runs as another user. A program there could not open a pipe of root's
 * by /dev/stdout, so the pipe is given to the cell's user.
 */
static void pipes_give(const struct running *running)
{
	const struct sandbox_identity *cell = &cell_spec(running->session->cell)->identity;
	struct stat st;

	for (size_t i = 0; cell->change && i < running->files.fd_count; i++) {
		int fd = running->files.fds[i];
		if (fd != running->files.log_fd && fd_is_pipe(fd) &&
		    fstat(fd, &st) == 0 && st.st_uid == geteuid())
			(void)!fchown(fd, cell->uid, cell->gid);
	}
}

/*
 * File tools do not write inside repositories, and a checkpoint reports the repositories
 * that they create.
 */
static struct marks nested_of(const struct running *running)
{
	const struct marks *nested = nested_known(running->session->keeper);
	const bool looks = running->busy.audits || running->due != DUE_CALL ||
			   (running->tool->effects & EFFECT_RUNS) != 0;

	return looks && nested != NULL ? *nested : (struct marks){0};
}

/*
 * Variables of this call only, beside those that the cell gives every program. NULL:
 * none.
 */
static struct value *environment_of(struct running *running)
{
	struct value *list = network_begin(running);

	if (running->trace == NULL || (running->tool->effects & EFFECT_RUNS) == 0)
		return list;
	list = list != NULL ? list : value_new_array();
	event_trace_add_variables(running->trace, list);
	return list;
}

/* Append to TEXT the message that tells WORKER of RUNNING; false when it does not fit. */
static bool call_print(struct running *running, const struct worker_end *worker,
		       struct buf *text)
{
	struct session *session = running->session;
	const bool is_behind = running->batch.before != NULL;
	auto_value struct value *seen = session_memory_for(session, running);
	auto_value struct value *environment = environment_of(running);
	auto_value struct value *secrets = masking_asks(running);
	auto_value struct value *left =
		running->due != DUE_CALL ? running_left_carried(running) : NULL;
	const struct wire_call wire = {
		.has_log = running->due == DUE_CALL && running->files.log_fd >= 0,
		.log = running->files.log,
		.tool = running->due != DUE_CALL         ? AUDIT_CALL
			: running->tool->carrier != NULL ? running->tool->carrier
							 : running->tool->name,
		.arguments = running->masked.arguments != NULL ? running->masked.arguments
							       : running->arguments,
		.secrets = secrets,
		.carried = running->due != DUE_CALL ? left : running->tool->carried,
		.plan = running->due != DUE_CALL ? NULL : running->plan,
		.audits = running->busy.audits,
		.quiet_ns = session->quiet_ns,
		.reach = running->busy.reach,
		.heralds = running->busy.company == COMPANY_HERALD,
		.alone = running->busy.company != COMPANY_OTHERS,
		.terse = running->told.terse,
		.folder = session->folder,
		.deadline_ms = is_behind ? CLOCK_NEVER : running->times.deadline_ms,
		.timeout_s = is_behind && running->times.timeout_s > 0
				     ? running->times.timeout_s
				     : 0,
		.is_last = session->one_call,
		.keeps_memory = !groups_rely(&worker->group, CGROUP_MEMORY),
		.keeps_pids = !groups_rely(&worker->group, CGROUP_PIDS),
		.environment = environment,
		.seen = seen,
		.unfinished = running->due != DUE_CALL ? running->files.unfinished : NULL,
		.nested = nested_of(running),
	};

	return wire_print_call(&wire, text);
}

static bool batch_print(struct running *running, const struct worker_end *worker,
			struct buf *text);

static bool call_send(struct running *running, struct worker_end *worker, struct err *err)
{
	struct buf text;
	int fds[FRAME_FDS_MAX];
	size_t fd_count = running->due != DUE_CALL ? 0 : running->files.fd_count;

	memcpy(fds, running->files.fds, sizeof(running->files.fds));
	if (running->due != DUE_CALL && running->files.unfinished != NULL)
		fds[fd_count++] = running->files.held.fd;
	pipes_give(running);
	buf_init(&text, FRAME_MAX);
	const enum frame_kind kind =
		batch_print(running, worker, &text) ? FRAME_BATCH : FRAME_CALL;
	bool ok = kind == FRAME_BATCH || call_print(running, worker, &text) ||
		  err_set(err, 0, "The arguments are over %d bytes; send less at once.",
			  FRAME_MAX);
	ok = ok && frame_send(worker->socket, kind, buf_str(&text), fds, fd_count,
			      clock_now_ms() + SEND_MS, err);
	buf_fini(&text);
	return ok;
}

static bool frame_arrived(void *context, const struct frame *frame);
static void kill_due(struct timer *timer);

/* RUNNING is busy from now on, with WORKER. */
static void call_begin(struct running *running, struct worker_end *worker)
{
	struct session *session = running->session;

	running_step(running, HAPPENS_SENT);
	running->busy.worker = worker;
	running->busy.audits_of = session->audits_wanted;
	if (running->due == DUE_CALL && running->tool != NULL &&
	    (running->tool->effects & EFFECT_RUNS) != 0)
		running->busy.sent_ns = clock_file_ns();
	running->times.deadline_ms = running->due != DUE_CALL ? clock_now_ms() + AUDIT_MS
				     : running->times.timeout_s > 0
					     ? clock_deadline(running->times.timeout_s)
					     : CLOCK_NEVER;
	worker->frame = frame_arrived;
	worker->context = running;
	running->times.kill_timer.due = kill_due;
	running->times.kill_timer.context = running;
	if (running->times.deadline_ms != CLOCK_NEVER)
		running->times.kill_timer.due_ms =
			running->times.deadline_ms + KILL_AFTER_MS;
	loop_add_timer(session->loop, &running->times.kill_timer);
}

/* How far RUNNING's worker audits before it makes the call. */
static enum guard_walk reach_of(const struct running *running)
{
	const struct session *session = running->session;

	if (!running->busy.audits)
		return GUARD_CALLS;
	if (session->taken_over || nested_misses(session->keeper))
		return GUARD_UNDO;
	return running->busy.reach;
}

/* RUNNING begins: note the time when nothing else could write until now. */
static void quiet_note(const struct running *running)
{
	struct session *session = running->session;
	struct timespec now = {0};

	if (cell_audit_due(session->cell) ||
	    session->busy_writers > running_is_writer(running))
		return;
	/* The kernel stamps files by this clock. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	session->quiet_ns = clock_ns(&now);
}

/*
 * RUNNING fails without an answer of a worker, for the reason WHY. The caller then calls
 * running_finish.
 */
static void fail(struct running *running, const char *why)
{
	buf_clear(&running->result.text);
	(void)tool_fail(&running->result, "%s", why);
}

/* RUNNING ends because there is no cell any more. */
static void fail_without_cell(struct running *running)
{
	const char *why = cell_broken(running->session->cell);

	if (running->due != DUE_CALL)
		audit_tell_lost(&running->result, why);
	else
		fail(running, why);
	value_set_boolean(tool_details(&running->result), "cell_broken", true);
	running_finish(running);
}

static const char not_taken[] = "The worker ended before it took this call (killed, or out "
				"of memory). Nothing was done; try again.";

static void hand_over(struct running *running, struct worker_end *worker)
{
	struct session *session = running->session;
	struct err err;

	call_begin(running, worker);
	/* The findings of an audit are told in a call whose result somebody reads. */
	running->busy.audits = cell_audit_due(session->cell) && running->due != DUE_MEND;
	quiet_note(running);
	running->busy.reach = reach_of(running);
	running->busy.company = !is_alone(running)      ? COMPANY_OTHERS
				: is_file_call(running) ? COMPANY_NOBODY
							: COMPANY_HERALD;
	running->batch.recalled = false;
	if (job_is_wanted(running))
		job_begin_patience(running);
	if (keeper_before(session->keeper, running, &err) &&
	    running_hold_log(running, &err) && call_send(running, worker, &err)) {
		running->changes = CHANGES_POSSIBLE;
		if (running->told.quiet)
			cell_hold(session->cell);
		else
			cell_call_sent(session->cell);
		if (running->busy.company == COMPANY_NOBODY)
			running_stay(session, FILE_CALL_US);
		return;
	}
	const bool gone = err.code == EPIPE || err.code == ECONNRESET;
	if (gone && !worker->made)
		return; /* the worker's reason is in the socket, and is read next */
	running->busy.worker = NULL;
	cell_let_go(worker);
	if (running->due != DUE_CALL) {
		audit_tell_lost(&running->result, err.text);
		running_finish(running);
		return;
	}
	fail(running, gone ? not_taken : err.text);
	running_finish(running);
}

static enum worker_want wanted_worker(const struct running *running)
{
	if (running->due == DUE_CALL && running->tool->resident)
		return WANT_RESIDENT;
	if (running->due == DUE_CALL && running->tool->by_resident && !running->busy.walks)
		return WANT_BY_RESIDENT;
	if (is_file_call(running) || running->due != DUE_CALL)
		return WANT_KEPT;
	return running->tool->prepare != NULL ? WANT_PREPARED : WANT_ANY;
}

void running_dispatch(struct session *session)
{
	size_t waiting;

	if (session->cell == NULL || session->showing > 0)
		return; /* the session is still being opened, or its view is added to */
	keeper_begin(session->keeper);
	for (;;) {
		session_mend_again(session, false);
		struct running *running = next_queued(session, &waiting);
		if (running == NULL)
			return;
		struct err why = {0};
		struct worker_end *worker =
			extra_needs_worker(running)
				? extra_take_worker(running, &why)
				: cell_take_worker(session->cell, wanted_worker(running),
						   waiting);
		if (worker != NULL) {
			hand_over(running, worker);
			continue;
		}
		if (cell_broken(session->cell) != NULL) {
			fail_without_cell(running);
			continue;
		}
		if (why.code == 0)
			return;
		/* The folder that was granted does not exist any more. */
		if (running->due != DUE_CALL)
			audit_tell_lost(&running->result, why.text);
		else
			fail(running, why.text);
		running_finish(running);
	}
}

/*
 * Does RUNNING ask the resident worker for what it keeps? That takes a moment, and nothing
 * ends the worker meanwhile, because the list would be lost.
 */
static bool asks_resident(const struct running *running)
{
	return running->tool != NULL && running->tool->by_resident &&
	       running->due == DUE_CALL && running->busy.worker != NULL &&
	       running->busy.worker->resident;
}

/* When the worker is killed that has not answered a cancel of now. */
static int64_t cancel_due_ms(const struct running *running)
{
	const double grace_s = cell_spec(running->session->cell)->grace_s;

	return clock_now_ms() + CANCEL_KILL_AFTER_MS + (int64_t)(grace_s * 1000);
}

void running_cancel_work(struct running *running)
{
	int64_t due;

	/* An audit goes on to its end: it is short, and its findings are told. */
	if (running->state == RUNNING_OVER || running->due != DUE_CALL)
		return;
	/* A call that was cancelled while it worked may wait for a look now. */
	if (running->cancelled && running->state != RUNNING_STANDING)
		return;
	running->cancelled = true;
	if (running->state == RUNNING_AWAITING) {
		session_jobs_cancel(running);
		return;
	}
	if (running->state == RUNNING_ELSEWHERE) {
		elsewhere_cancel(running);
		return;
	}
	if (running->state == RUNNING_STANDING) {
		keeper_cancel(running->session->keeper);
		return;
	}
	batch_recall(running);
	if (asks_resident(running))
		return;
	if (running->state <= RUNNING_QUEUED) {
		(void)tool_fail(&running->result, "Cancelled before it began.");
		running->result.status = RESULT_CANCELLED;
		running_finish(running);
		return;
	}
	(void)frame_send(running->busy.worker->socket, FRAME_CANCEL, (struct str){"", 0},
			 NULL, 0, clock_now_ms() + CANCEL_KILL_AFTER_MS, NULL);
	due = cancel_due_ms(running);
	if (due < running->times.kill_timer.due_ms)
		running->times.kill_timer.due_ms = due;
}

void running_cancel(struct running *running)
{
	if (running_is_done(running))
		return;
	/*
	 * The call has just become a job, and its caller was not told the job's number yet:
	 * nobody would end the job. The job's end is the end of the call.
	 */
	if (running->job != NULL) {
		loop_remove_timer(&running->awaits.timer);
		running->awaits.wish = WISH_END;
	}
	running_cancel_work(running);
}

void running_free(struct running *running)
{
	struct session *session;

	if (running == NULL)
		return;
	session = running->session;
	running->caller.ending = NULL;
	running->caller.done = NULL;
	running_cancel(running);
	while (!running_is_done(running))
		loop_turn(session->loop, CLOCK_NEVER);
	if (running->job != NULL) {
		running->caller.state = CALLER_GONE;
		return;
	}
	if (running->previous != NULL)
		running->previous->next = running->next;
	else
		session->first = running->next;
	if (running->next != NULL)
		running->next->previous = running->previous;
	else
		session->last = running->previous;
	if (session->first == NULL)
		loop_remove(&session->cancel_watch);
	value_free(running->arguments);
	masking_end(running);
	value_free(running->capped);
	value_free(running->plan);
	value_free(running->trace);
	value_free(running->origin);
	refused_free(running);
	git_left_fini(&running->left.files);
	/* Those of a call that ends while the session closes are still open. */
	fd_close(&running->files.log_fd);
	fd_close(&running->files.plan_fd);
	free(running->asking.wanted);
	if (running->asking.leave != NULL)
		free(running->asking.leave->subject);
	free(running->asking.leave);
	running_question_end(running);
	tool_result_fini(&running->result);
	tool_result_fini(&running->caller.answer);
	free(running->id);
	free(running);
}

/*
 * Calls that only read, sent together to one worker. The worker answers each call before
 * it begins the next, so only the first is ever busy. The others wait like queued calls,
 * but behind the first one at its worker. Whatever happens to one of the calls, the
 * others are queued again, and another worker makes them: reading twice does no harm. A
 * worker that still has calls which others make now ends.
 */

enum {
	/*
	 * So many calls need only one wake-up. More would gain little, and wait longer
	 * for a slow one.
	 */
	BATCH_MAX = 4,
	/* How much longer a call waits because it stands behind a slow one. */
	RECALL_MS = 20,
};

/*
 * The call leaves nothing, needs no files or folders of its own, and reads nothing from
 * its socket.
 */
static bool may_share(const struct running *running)
{
	const struct tool *tool = running->tool;

	return tool->effects == EFFECT_READS && tool->carrier == NULL && !tool->answers &&
	       !tool->wants_changes && running->files.fd_count == 0 &&
	       running->due == DUE_CALL && running->asking.extras == NULL;
}

/* Searches may take only some workers, so that no other call stands behind a search. */
static struct running *next_to_share(struct running *at, bool searches)
{
	while (at != NULL && (at->state != RUNNING_QUEUED ||
			      at->tool->searches != searches || !may_share(at)))
		at = at->next;
	return at;
}

/*
 * How many calls one worker gets: the busy call and the queued ones, divided by the
 * workers that may take them.
 */
static size_t share_of(const struct running *running)
{
	const bool searches = running->tool->searches;
	const size_t workers = file_room(running->session, searches) + 1;

	return (1 + files_queued(running->session, searches) + workers - 1) / workers;
}

static void gather(struct running *running)
{
	const size_t share = share_of(running);
	struct running *last = running, *next = running->session->first_queued;

	for (size_t count = 1; count < BATCH_MAX && count < share; count++) {
		next = next_to_share(next, running->tool->searches);
		if (next == NULL)
			return;
		running_step(next, HAPPENS_GATHERED);
		last->batch.after = next;
		next->batch.before = last;
		last = next;
	}
}

static void recall_due(struct timer *timer)
{
	struct running *running = timer->context;

	/* No other worker could begin the calls behind RUNNING now. */
	if (running->batch.after != NULL &&
	    file_room(running->session, running->tool->searches) == 0) {
		timer->due_ms = clock_now_ms() + RECALL_MS;
		return;
	}
	batch_recall(running);
	running_dispatch(running->session);
}

static void watch_over(struct running *running)
{
	running->batch.recall = (struct timer){.due_ms = clock_now_ms() + RECALL_MS,
					       .due = recall_due,
					       .context = running};
	loop_add_timer(running->session->loop, &running->batch.recall);
}

static bool print_all(struct running *running, const struct worker_end *worker,
		      struct buf *text)
{
	struct buf call;
	bool ok = true;

	buf_init(&call, FRAME_MAX);
	for (struct running *at = running; at != NULL && ok; at = at->batch.after) {
		buf_clear(&call);
		ok = call_print(at, worker, &call) &&
		     wire_add_to_batch(buf_str(&call), text);
	}
	buf_fini(&call);
	return ok;
}

/*
 * WORKER is about to get RUNNING: put queued calls behind RUNNING and append all of them
 * to TEXT. False: RUNNING goes without others.
 */
static bool batch_print(struct running *running, const struct worker_end *worker,
			struct buf *text)
{
	const struct session *session = running->session;

	if (!worker->made || worker->of_call != 0 || worker->resident ||
	    session->one_call || !may_share(running) || cell_audit_due(session->cell))
		return false;
	gather(running);
	if (running->batch.after == NULL)
		return false;
	watch_over(running);
	if (print_all(running, worker, text))
		return true;
	batch_recall(running);
	running->batch.recalled = false; /* nothing was sent */
	buf_clear(text);
	return false;
}

static void batch_recall(struct running *running)
{
	struct running *first = running;

	while (first->batch.before != NULL)
		first = first->batch.before;
	if (first->batch.after == NULL)
		return;
	first->batch.recalled = true;
	first->batch.recall.due_ms = 0; /* at the loop's next turn they go to other workers */
	for (struct running *at = first; at != NULL;) {
		struct running *next = at->batch.after;

		at->batch.after = at->batch.before = NULL;
		if (at->state == RUNNING_AHEAD)
			running_step(at, HAPPENS_RECALLED);
		at = next;
	}
}

/* RUNNING has its result; true when WORKER is busy with the next call. */
static bool batch_go_on(struct running *running, struct worker_end *worker)
{
	struct running *next = running->batch.after;

	if (next == NULL)
		return false;
	running->batch.after = NULL;
	next->batch.before = NULL;
	call_begin(next, worker);
	if (next->batch.after != NULL)
		watch_over(next);
	return true;
}

/*
 * Turns the reports and questions of a worker about its call (call.h) into events, and
 * sends back the answers. Both directions are built anew from what came, because a
 * worker may have been taken over.
 */

enum { NAME_MAX_BYTES = 128 };

/* The levels of syslog (RFC 5424), as MCP has them. */
static const char *level_of(struct str text)
{
	static const char *const levels[] = {"debug", "info",     "notice", "warning",
					     "error", "critical", "alert",  "emergency"};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (str_is(text, levels[i]))
			return levels[i];
	}
	return "info";
}

static bool emit(struct running *running, enum event_kind kind, struct str text,
		 const struct value *data)
{
	struct err err;

	/*
	 * The call of a job has ended for its caller when it became the job: the caller
	 * listens no more.
	 */
	if (running->job != NULL)
		return true;
	struct buf made;
	buf_init(&made, EVENT_JSON_MAX);
	auto_value struct value *masked = masking_value(running, data);
	const bool sent = session_emit(running->session, kind, running,
				       masking_text(running, text, &made),
				       masked != NULL ? masked : data, &err);
	buf_fini(&made);
	return sent;
}

/* Tell BYTES of the output of RUNNING; LAST: none follow. */
static void output_emit(struct running *running, int stream, struct str bytes, bool last)
{
	auto_value struct value *data = NULL;
	struct buf made;
	struct err err;

	buf_init(&made, EVENT_JSON_MAX);
	bytes = masking_output(running, stream, bytes, last, &made);
	if (bytes.size > 0) {
		data = value_new_object();
		value_set_integer(data, "stream", stream + 1);
		(void)session_emit(running->session, EVENT_TOOL_OUTPUT, running, bytes,
				   data, &err);
	}
	buf_fini(&made);
}

/* No output of RUNNING follows. */
static void output_end(struct running *running)
{
	for (int stream = 0; stream < 2 && running->job == NULL; stream++)
		output_emit(running, stream, STR(""), true);
}

static void report_emit(struct running *running, struct tell_report report)
{
	const bool is_line = isnan(report.progress);
	const struct str text = str_part(report.text, 0, TELL_MAX);

	report.text.size = 0;
	report.level = str_of(level_of(report.level));
	if (report.logger.size > NAME_MAX_BYTES)
		report.logger.size = 0;
	auto_value struct value *data =
		fields_print(is_line ? tell_line_fields : tell_progress_fields, &report);
	(void)emit(running, is_line ? EVENT_LOG : EVENT_PROGRESS, text, data);
}

void running_progress(struct running *running, double progress, double total,
		      const char *message)
{
	running->times.progressed = true;
	report_emit(running, (struct tell_report){progress, total > 0 ? total : 0,
						  .text = str_of(message)});
}

void running_log(struct running *running, const char *level, const char *logger,
		 struct str text)
{
	report_emit(running,
		    (struct tell_report){NAN, 0, text, str_of(level), str_of(logger)});
}

/* RUNNING's worker reports something (call.h). PAYLOAD is not trusted. */
static void worker_told(struct running *running, struct str payload)
{
	struct tell_report report = {.progress = NAN};
	auto_value struct value *told = NULL;

	if (payload.size > TELL_MAX || !value_parse(payload, 0, &told, NULL))
		return;
	(void)fields_read(told, tell_progress_fields, &report, NULL, NULL);
	(void)fields_read(told, tell_line_fields, &report, NULL, NULL);
	/* The numbers of a worker are not trusted, and a double may be too large for an integer. */
	const bool counts = report.progress >= 0 && report.progress < INT32_MAX &&
			    report.total >= 0 && report.total < INT32_MAX;

	if (!running->told.quiet || !counts ||
	    !keeper_told(running->session->keeper, running, (int64_t)report.progress,
			 (int64_t)report.total))
		report_emit(running, report);
}

/* The end of a call that had a worker, and the audit of the files that the call left. */

/* A whole look takes a second of work, on a busy machine three on the clock. */
enum { LOOK_MS = 6000 };

/* RUNNING, which had a worker, ends, now or after its checkpoint. */
static void finish_next(struct running *running)
{
	struct session *session = running->session;

	if (keeper_after(session->keeper, running)) {
		running_dispatch(session);
		return;
	}

	running_finish(running);
	running_dispatch(session);
	cell_refill(session->cell);
}

/* A fresh worker audits before RUNNING is answered. */
static void audit_first(struct running *running)
{
	struct session *session = running->session;

	cell_set_audit_due(session->cell, true);
	session->audits_wanted++;
	running->due = DUE_LOOK;
	running_step(running, HAPPENS_QUEUED);
	loop_remove_timer(&running->times.kill_timer);
	running_dispatch(session);
}

/* May the call have left something where its own audit has not looked? */
static bool has_unseen(struct running *running)
{
	const struct guard *guard = cell_spec(running->session->cell)->guard;
	const bool large = guard_has(guard, GUARD_LAST) || guard_has(guard, GUARD_PART);

	if ((running->tool->effects & EFFECT_RUNS) == 0)
		return false;
	if (running->session->one_call)
		return audit_take_partial(&running->result) || large;
	return audit_is_partial(&running->result) || large ||
	       nested_misses(running->session->keeper);
}

/*
 * The result of RUNNING has come. True: the call is answered only after a fresh worker
 * has looked where the call's own audit did not reach, or has removed files that a killed
 * git left. The first happens in a cell of one call only; in other cells the session's
 * end looks there.
 */
static bool looks_again(struct running *running)
{
	bool again = running_left_waits(running);

	if (running->due == DUE_CALL && has_unseen(running)) {
		running->session->unseen = true;
		if (running->session->one_call)
			running->busy.reach = GUARD_PART;
		again |= running->session->one_call;
	}
	if (again)
		audit_first(running);
	return again;
}

/* No table lists this tool. A worker knows it by its name. */
static const struct tool look_tool = {
	.name = AUDIT_CALL,
	.description = "Look at what the session's commands have left.",
	.effects = EFFECT_READS,
	.internal = true,
};

static void look_tell(struct session *session, struct running *running)
{
	const struct str said = str_trim(buf_str(&running->result.text));
	struct err err;

	if (said.size > 0)
		(void)session_emit(session, EVENT_NOTICE, NULL, said, NULL, &err);
}

void session_look_whole(struct session *session, bool all)
{
	const int64_t deadline = clock_now_ms() + LOOK_MS;
	struct running *running;

	if (session->cell == NULL || cell_spec(session->cell)->guard == NULL)
		return;
	const bool due = cell_audit_due(session->cell);
	if (!due && (!session->unseen || session->one_call))
		return;
	/* When the look fails here, the next session makes it. */
	cell_set_audit_due(session->cell, true);
	if (cell_broken(session->cell) != NULL)
		return;
	running = running_of_session(session, &look_tool);
	running->busy.reach = all || due ? GUARD_UNDO : GUARD_PART;
	if (due)
		running->busy.sent_ns = cell_spec(session->cell)->guard->ticked_ns;
	audit_first(running);
	while (!running_is_done(running) && clock_now_ms() < deadline)
		loop_turn(session->loop, deadline);
	if (running_is_done(running))
		look_tell(session, running);
	running_free(running);
}

/*
 * The worker of RUNNING died before any audit. When it could write, a fresh worker audits
 * before the call is answered. The result of the call stands already.
 */
static void finish_audited(struct running *running)
{
	struct session *session = running->session;

	if (running->due != DUE_CALL)
		audit_tell_lost(&running->result, "the worker ended");
	else
		running->files.unfinished = running_unfinished(running);
	if (running->due == DUE_CALL &&
	    (running->files.unfinished != NULL ||
	     (cell_spec(session->cell)->guard != NULL &&
	      (running->tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) != 0))) {
		if (session->one_call)
			running->busy.reach = GUARD_PART;
		else
			session->unseen = true;
		audit_first(running);
		return;
	}
	finish_next(running);
}

/*
 * The audit in RESULT is done. No audit is due any more, unless this one failed, a job
 * may write, or another audit was asked for after RUNNING was sent.
 */
static void audit_done(const struct running *running, const struct tool_result *result)
{
	struct session *session = running->session;

	if (!audit_failed(result) && running->busy.audits_of == session->audits_wanted &&
	    !job_writes(session, running->job)) {
		cell_set_audit_due(session->cell, false);
		session->taken_over = false;
	}
}

static void audit_arrived(struct running *running, const struct frame *frame)
{
	struct tool_result audit;
	struct err err;

	tool_result_init(&audit);
	if (!tool_result_parse(frame->payload, &audit, &err)) {
		audit_tell_lost(&running->result, err.text);
	} else {
		running_take_left(running, &audit);
		audit_take(&running->result, &audit);
		if (!undo_log_is_unfinished(running->files.held.fd)) {
			value_free(running->files.unfinished);
			running->files.unfinished = NULL;
		}
		if (running->due != DUE_MEND)
			audit_done(running, &audit);
	}
	tool_result_fini(&audit);
}

/*
 * A call that is with a worker: the worker's frames, the result, the loss of the worker.
 */

enum {
	KILL_WAIT_MS = 1000, /* how long the end of a killed worker is waited for */
	/*
	 * The time from the end of a program to its result, unless there is much to look
	 * at.
	 */
	ENDING_US = 150,
};

/*
 * The worker did not answer in time: kill it from outside, for the deadline or the
 * cancel.
 */
static void kill_due(struct timer *timer)
{
	struct running *running = timer->context;
	struct worker_end *worker = running->busy.worker;
	bool ended = cell_kill_worker(worker, KILL_WAIT_MS);

	running->busy.worker = NULL;
	if (running->due != DUE_CALL) {
		finish_audited(running);
		return;
	}
	fail(running, ended ? "It gave no answer in time and was ended by force, "
			      "with all that it had started."
			    : "It could not be ended even by force: the kernel is "
			      "holding it (a broken disk or mount, or very much "
			      "memory to give back).");
	running->result.status = running->cancelled ? RESULT_CANCELLED : RESULT_TIMED_OUT;
	if (!ended)
		value_set_boolean(tool_details(&running->result), "unkillable", true);
	finish_audited(running);
}

/*
 * A worker that sends a result that cannot be read was taken over: its word about what it
 * did does not count.
 */
static void result_garbled(struct running *running, const struct err *why)
{
	fail(running, why->text);
	(void)cell_kill_worker(running->busy.worker, KILL_WAIT_MS);
	running->busy.worker = NULL;
	finish_audited(running);
}

/*
 * Say which files exist in the cell only. A file tool was asked for that file, so its
 * result says so each time. Programs leave something in /tmp with every second call, so
 * their results say so once in a session.
 */
static void own_tell(struct running *running)
{
	struct session *session = running->session;
	const bool is_program = (running->tool->effects & EFFECT_RUNS) != 0;
	struct buf line;

	/* `exec` has no text of its own; its verb prints this. */
	if ((is_program && session->told_own) || running->tool->internal)
		return;
	buf_init(&line, RESULT_TEXT_MAX);
	session_print_own(session, &running->result, &line);
	if (line.size > 0) {
		session->told_own = true;
		(void)buf_end_line(&running->result.text);
		(void)buf_addf(&running->result.text, "[%s]\n", line.data);
	}
	buf_fini(&line);
}

/* False: the result could not be read, and RUNNING has ended. */
static bool result_take(struct running *running, const struct frame *frame)
{
	struct session *session = running->session;
	struct err err;

	/*
	 * The seconds and the level in the worker's result are not used: this side sets
	 * them itself.
	 */
	tool_result_fini(&running->result);
	tool_result_init(&running->result);
	if (!tool_result_parse(frame->payload, &running->result, &err)) {
		result_garbled(running, &err);
		return false;
	}
	/*
	 * The result is about to be printed anew, as an answer, so the frame's memory is
	 * not needed.
	 */
	frame_done(&running->busy.worker->reader);
	if (running->busy.audits || (running->job != NULL && running_is_writer(running)))
		audit_done(running, &running->result);
	/*
	 * A file tool that did what was asked met no limit. Looking would cost two system
	 * calls.
	 */
	if (!is_file_call(running) || running->result.status != RESULT_DONE)
		groups_tell(&running->busy.worker->group, session->policy, &running->result);
	/* Take the proxy's refusals before what programs say about hosts. */
	network_end(running);
	denial_claims_judge(session->policy,
			    session_weighs_hosts(session, &running->result),
			    &running->result);
	running_take_left(running, &running->result);
	own_tell(running);
	return true;
}

/*
 * The result stands: RUNNING ends, now or after its checkpoint. WORKER serves the next
 * call or ends.
 */
static void result_stands(struct running *running, struct worker_end *worker)
{
	struct session *session = running->session;
	/*
	 * A worker that has received a cancel ends as well, even when its call was just
	 * done.
	 */
	const bool ends = (running->tool->effects & EFFECT_RUNS) != 0 ||
			  (running->cancelled && !asks_resident(running)) ||
			  running->batch.recalled || worker->of_call != 0;

	if (!ends)
		cell_give_back(worker);
	const bool waits = keeper_after(session->keeper, running);
	if (!waits)
		running_finish(running);
	if (ends)
		cell_let_go(worker);
	running_dispatch(session);
	if (!waits)
		cell_refill(session->cell);
}

/*
 * The resident worker WORKER has answered RUNNING. True: its list does not serve the call,
 * which is queued again for another worker.
 */
static bool walks_instead(struct running *running, struct worker_end *worker)
{
	if (running->cancelled || running->busy.walks ||
	    !value_is_true(value_member(running->result.details, TOOL_NOT_LISTED)))
		return false;
	tool_result_fini(&running->result);
	tool_result_init(&running->result);
	running->busy.walks = true;
	running->busy.worker = NULL;
	running_step(running, HAPPENS_QUEUED);
	loop_remove_timer(&running->times.kill_timer);
	cell_give_back(worker);
	running_dispatch(running->session);
	return true;
}

/* True: the worker goes on with the next call of its batch. */
static bool result_arrived(struct running *running, const struct frame *frame)
{
	struct worker_end *worker = running->busy.worker;

	if (running->due != DUE_CALL) {
		audit_arrived(running, frame);
		cell_let_go(worker);
		running->busy.worker = NULL;
		if (!looks_again(running))
			finish_next(running);
		return false;
	}
	if (!result_take(running, frame))
		return false;
	if (asks_resident(running)) {
		if (walks_instead(running, worker))
			return false;
		if (running->cancelled)
			cancel_take(running);
		result_stands(running, worker);
		return false;
	}
	running->busy.worker = NULL;
	if (batch_go_on(running, worker)) {
		running_finish(running);
		return true;
	}
	if (looks_again(running))
		cell_let_go(worker);
	else
		result_stands(running, worker);
	return false;
}

static void worker_lost(struct running *running)
{
	struct session *session = running->session;
	bool was_made = running->busy.worker->made;

	if (!was_made)
		running->changes = CHANGES_NONE;
	running->busy.lost = true;
	if (running->busy.worker->refused != NULL && running->due == DUE_CALL) {
		fail(running, running->busy.worker->refused);
		(void)cell_kill_worker(running->busy.worker, KILL_WAIT_MS);
		running->busy.worker = NULL;
		running_finish(running);
		running_dispatch(session);
		return;
	}
	if (running->due == DUE_CALL) {
		fail(running,
		     !was_made ? not_taken
		     : (running->tool->effects & EFFECT_RUNS) != 0
			     ? "The worker that ran this call ended before it answered "
			       "(killed, or out of memory), and with it all that the call "
			       "had started; what it printed is lost, what it wrote is not. "
			       "Look at that, and try again, with less at once."
			     : "The worker that ran this call ended before it answered "
			       "(killed, or out of memory). Files are whole: old or new. "
			       "Try again, with less at once.");
		groups_tell(&running->busy.worker->group, session->policy, &running->result);
	}
	/* The worker may have sent something that is not a frame, and still live. */
	(void)cell_kill_worker(running->busy.worker, KILL_WAIT_MS);
	running->busy.worker = NULL;
	if (was_made || cell_broken(session->cell) == NULL) {
		finish_audited(running);
		return;
	}
	fail_without_cell(running);
	running_dispatch(session);
}

/*
 * A frame of the call's worker has come; NULL: the worker is lost. As worker_end.frame.
 */
static bool frame_arrived(void *context, const struct frame *frame)
{
	struct running *running = context;

	if (frame == NULL || frame->kind == FRAME_REFUSED) {
		worker_lost(running);
	} else if (frame->kind == FRAME_SECRETS) {
		masking_take(running, frame->payload);
	} else if (frame->kind == FRAME_RESULT) {
		return result_arrived(running, frame);
	} else if (frame->kind == FRAME_ENDING && running->busy.company == COMPANY_HERALD) {
		/* A worker that says it again and again is not believed. */
		running->busy.company = COMPANY_NOBODY;
		running_stay(running->session, ENDING_US);
	} else if (frame->kind == FRAME_ANSWER && running->job != NULL) {
		session_jobs_answered(running->job, frame);
	} else if (frame->kind == FRAME_TELL) {
		worker_told(running, frame->payload);
	} else if (frame->kind == FRAME_QUESTION) {
		running_question_take(running, frame->payload);
	} else if (frame->kind == FRAME_WAITS) {
		if (running->job != NULL)
			session_jobs_waits(running->job);
		else if (running->tool->answers)
			(void)running_become_job(running);
	} else if (running->job == NULL &&
		   (frame->kind == FRAME_STDOUT || frame->kind == FRAME_STDERR)) {
		output_emit(running, frame->kind == FRAME_STDOUT ? 0 : 1, frame->payload,
			    false);
	}
	return false;
}
