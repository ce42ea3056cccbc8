/*
 * call: the way of one call (ARCHITECTURE.md), in its order: judged, recorded,
 * run. There is no other way.
 */

#include "tool/call.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "policy/ceiling.h"
#include "policy/commands.h"
#include "session/approval.h"
#include "session/masking.h"
#include "session/session.h"
#include "tool/deferred.h"
#include "tool/denial.h"
#include "tool/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Decides whether a call may run, in steps 2 to 4 of its way: the registry, the
 * arguments, the policy, in this order. A refusal becomes the call's result.
 */

/* Two names for each file of the largest patch, and some more. */
enum { PATHS_MAX = 2500, SENTENCE_MAX = 8 << 10 };

static bool tool_choose(struct running *running, const struct request *request)
{
	struct session *session = running->session;
	const struct tool *tool = request->by_front && request->made != NULL
					  ? request->made
					  : tool_find(session->all_tools, request->tool);
	struct deferred deferred;
	struct buf list;

	if (tool != NULL && (tool_is_served(tool) || (tool->internal && request->by_front))) {
		running->tool = tool;
		return true;
	}
	if (tool != NULL && tool->where == IN_FRONT &&
	    policy_has_tool(session->policy, tool->name)) {
		(void)tool_fail(&running->result,
				"%s works in the run of an agent only: glovebox run --agent %s "
				"\"…\".",
				tool->name, session->policy->name);
		return false;
	}
	deferred = deferred_of(session->offered);
	buf_init(&list, SENTENCE_MAX);
	for (size_t i = 0; session->offered[i] != NULL; i++) {
		if (!deferred_has(deferred, session->offered[i]))
			(void)buf_addf(&list, "%s%s", list.size > 0 ? ", " : "",
				       session->offered[i]->name);
	}
	const char *nearest = tool_nearest(session->offered, request->tool);
	(void)tool_fail(&running->result, "There is no tool \"%.100s\".%s%s%s %s%s.",
			request->tool, nearest != NULL ? " Did you mean " : "",
			nearest != NULL ? nearest : "", nearest != NULL ? "?" : "",
			list.size > 0 ? "The tools are: " : "This agent has none",
			list.data);
	buf_fini(&list);
	return false;
}

/* The earlier of two time limits; 0 and less mean none. */
static double earlier(double a, double b)
{
	return a <= 0 || (b > 0 && b < a) ? b : a;
}

/*
 * The time limit of the call. The caller's own goes first, then the call's argument, then
 * the policy's for commands, then the tool's.
 */
static double deadline_of(const struct running *running, const struct request *request)
{
	const struct tool *tool = running->tool;
	const struct value *asked = value_member(running->arguments, "timeout_s");
	double timeout_s = tool->timeout_s;

	/* A job outlives the turn in which it began, and not what the machine allows. */
	if (job_is_wanted(running))
		return earlier(value_is_number(asked) ? value_number(asked) : tool->job_max_s,
			       ceiling_wall_s(session_ceiling()));
	if (request->timeout_s != 0)
		timeout_s = request->timeout_s;
	else if (tool->timeout_max_s > 0 && value_is_number(asked))
		timeout_s = value_number(asked);
	else if (tool->where == IN_CELL && (tool->effects & EFFECT_RUNS) != 0)
		timeout_s = earlier(running->session->policy->limits.wall_s,
				    tool->carrier != NULL ? tool->timeout_s : 0);
	if (request->most_s > 0 && (timeout_s <= 0 || timeout_s > request->most_s))
		timeout_s = request->most_s;
	if ((tool->effects & EFFECT_RUNS) != 0)
		timeout_s = earlier(timeout_s, ceiling_wall_s(session_ceiling()));
	return timeout_s;
}

static bool arguments_fit(struct running *running, const struct request *request)
{
	struct buf sentence;
	bool ok = true;

	buf_init(&sentence, SENTENCE_MAX);
	if (request->arguments != NULL)
		running->arguments = value_copy(request->arguments);
	else
		ok = schema_parse_arguments(running->tool, request->arguments_text,
					    &running->arguments, &sentence);
	ok = ok &&
	     schema_fit(running->tool, running->arguments, &running->capped, &sentence);
	if (!ok)
		(void)tool_fail(&running->result, "%s", sentence.data);
	buf_fini(&sentence);
	if (!ok)
		return false;
	running->times.timeout_s = deadline_of(running, request);
	running->times.patience_s = request->patience_s;
	return true;
}

struct path_list {
	struct policy_request_path *items;
	struct buf *texts;
	size_t count, room;
	const char *folder; /* of the first argument that names one; NULL: none does */
};

static void path_list_free(struct path_list *list)
{
	if (list == NULL)
		return;
	for (size_t i = 0; i < list->count; i++)
		buf_fini(&list->texts[i]);
	free(list->texts);
	free(list->items);
	free(list);
}

static bool path_collect(struct running *running, const char *text, bool writes,
			 struct path_list **made)
{
	const char *base = session_workspace(running->session);

	if (*made == NULL)
		*made = memory_alloc(sizeof(**made));
	struct path_list *list = *made;
	if (list->count == PATHS_MAX) {
		(void)tool_fail(&running->result,
				"One call may name %d paths; make several calls.",
				PATHS_MAX);
		return false;
	}
	list->items = memory_more(list->items, list->count, sizeof(*list->items));
	list->texts = memory_more(list->texts, list->count, sizeof(*list->texts));
	struct policy_request_path *item = &list->items[list->count];
	struct buf *path = &list->texts[list->count++];
	buf_init(path, PATH_MAX);
	if (!policy_normal(running->session->policy, base, text, path)) {
		(void)tool_fail(&running->result,
				"The path %.200s leads above / or is too long; paths are "
				"relative to the workspace %s.",
				text, session_shown(running->session));
		return false;
	}
	*item = (struct policy_request_path){.path = path->data, .writes = writes};
	return true;
}

static bool paths_collect(struct running *running, const struct row *rows,
			  const struct value *arguments, struct path_list **list)
{
	bool writes = (running->tool->effects & EFFECT_WRITES) != 0;

	for (; rows != NULL && rows->name != NULL; rows++) {
		const struct value *value = value_member(arguments, rows->name);
		const char *text = value_text(value);
		if (text != NULL && rows->kind == ROW_PATH &&
		    !path_collect(running, text, writes, list))
			return false;
		if (text != NULL && rows->kind == ROW_FOLDER &&
		    !path_collect(running, text, false, list))
			return false;
		if (text != NULL && rows->kind == ROW_FOLDER && (*list)->folder == NULL)
			(*list)->folder = (*list)->items[(*list)->count - 1].path;
		for (size_t i = 0; rows->kind == ROW_LIST && i < value_count(value); i++) {
			if (!paths_collect(running, rows->rows, value_item(value, i), list))
				return false;
		}
	}
	return true;
}

/* Paths that a tool finds in its arguments by itself. */
struct path_visit {
	struct running *running;
	struct path_list **list;
	bool ok;
};

static void path_visit(void *context, const char *path)
{
	struct path_visit *visit = context;
	bool writes = (visit->running->tool->effects & EFFECT_WRITES) != 0;

	visit->ok = visit->ok && path_collect(visit->running, path, writes, visit->list);
}

static bool more_paths_collect(struct running *running, struct path_list **list)
{
	struct path_visit visit = {running, list, true};

	if (running->tool->visit_paths != NULL)
		running->tool->visit_paths(running->arguments, path_visit, &visit);
	return visit.ok;
}

/*
 * The texts of LIST in one piece of memory, NULL-ended. HEX: the texts are hexadecimal
 * digits, and the result holds their bytes.
 */
static const char **argv_of(const struct value *list, bool hex)
{
	const size_t count = value_count(list), room = (count + 1) * sizeof(char *);
	size_t size = 0;

	for (size_t i = 0; hex && i < count; i++)
		size += value_str(value_item(list, i)).size / 2 + 1;
	const char **argv = memory_alloc(room + size);
	char *bytes = (char *)argv + room;
	for (size_t i = 0; i < count; i++) {
		struct str text = value_str(value_item(list, i));

		argv[i] = hex ? bytes : value_text(value_item(list, i));
		if (!hex)
			continue;
		text_from_hex(text, bytes);
		bytes += text.size / 2 + 1;
	}
	return argv;
}

/*
 * Note in REQUEST the command or argv that the call runs, and its folder. Returns the
 * list of argv, which the caller frees.
 */
static const char **command_find(const struct running *running, const struct path_list *list,
				 struct policy_request *request)
{
	static const char *const no_text[] = {"(bytes that are no UTF-8)", NULL};
	const struct row *rows = running->tool->params;
	const bool hex = value_is_true(value_member(running->arguments, "hex"));
	const char **argv = NULL;

	request->folder = list != NULL && list->folder != NULL ? list->folder
							       : running->session->folder;
	for (; rows != NULL && rows->name != NULL; rows++) {
		const struct value *value = value_member(running->arguments, rows->name);

		if (value == NULL)
			continue;
		if (rows->kind == ROW_COMMAND && request->command.data == NULL)
			request->command = value_str(value);
		if (rows->kind == ROW_ARGV && argv == NULL)
			request->argv = argv = argv_of(value, hex);
	}
	/* A plan could not carry such bytes as they are. */
	if (hex && commands_listed(running->session->policy->commands))
		request->argv = no_text;
	return argv;
}

void session_call_folder(const struct running *running, struct buf *folder)
{
	const struct session *session = running->session;
	const struct row *rows = running->tool->params;

	for (; rows != NULL && rows->name != NULL; rows++) {
		const char *given =
			rows->kind == ROW_FOLDER
				? value_text(value_member(running->arguments, rows->name))
				: NULL;

		if (given != NULL &&
		    policy_normal(session->policy, session_workspace(session), given, folder))
			return;
	}
	buf_clear(folder);
	(void)buf_adds(folder, session->folder);
}

void session_deny(struct running *running, const char *because, const char *rule)
{
	(void)tool_fail(&running->result, "%s", because);
	running->result.status = RESULT_DENIED;
	value_set_text(tool_details(&running->result), "rule", rule);
	denial_note(&running->result, &(struct denial){.kind = DENIAL_POLICY,
						       .target = running->tool->name,
						       .rule = rule,
						       .remedy = because});
}

/*
 * Can a person be asked for VERDICT.outside? When something prevents that, the reason
 * joins the verdict's sentence: otherwise the model could only try again.
 */
static bool want_outside(struct running *running, struct verdict *verdict)
{
	const size_t size = strlen(verdict->because);
	struct err why = {0};

	if (running->tool->where == IN_CELL && running->tool->begin == NULL &&
	    approval_can_ask(running) && extra_want(running, verdict, &why))
		return true;
	if (why.text[0] != '\0')
		(void)snprintf(verdict->because + size, sizeof(verdict->because) - size,
			       " It cannot be asked for: %s.", why.text);
	return false;
}

/*
 * Tools that the front has for itself stand in no policy's list of tools, so only their
 * commands are judged.
 */
static void decide(const struct running *running, const struct policy_request *request,
		   struct verdict *verdict)
{
	const struct policy *policy = running->session->policy;

	if ((running->tool->internal && running->tool->judged_as == NULL) ||
	    (running->kind != RUNNING_FOR_CALLER && running->tool->effects == EFFECT_READS))
		commands_decide(policy, request, verdict);
	else
		policy_decide(policy, request, verdict);
}

/* The policy allows RUNNING, but its caller wants a person to agree. */
static void want_person(const struct running *running, const char *asks_for,
			struct verdict *verdict)
{
	const bool can = approval_can_ask(running);

	verdict->answer = can ? VERDICT_ASK : VERDICT_DENY;
	(void)snprintf(verdict->rule, sizeof(verdict->rule), "hooks");
	(void)snprintf(verdict->because, sizeof(verdict->because),
		       "A hook asks a person: %s%s", asks_for,
		       can ? "" : " (Nobody could be asked.)");
}

static bool policy_allows(struct running *running, const char *asks_for)
{
	struct path_list *list = NULL;
	struct verdict verdict;
	bool ok = paths_collect(running, running->tool->params, running->arguments, &list) &&
		  more_paths_collect(running, &list);

	if (ok) {
		struct policy_request request = {
			.tool = running->tool->judged_as != NULL ? running->tool->judged_as
								 : running->tool->name,
			.effects = running->tool->effects,
			.paths = list != NULL ? list->items : NULL,
			.path_count = list != NULL ? list->count : 0,
			.by_front = running->kind != RUNNING_FOR_CALLER,
		};
		const char **argv = NULL;

		if ((request.effects & EFFECT_RUNS) != 0)
			argv = command_find(running, list, &request);
		decide(running, &request, &verdict);
		while (verdict.answer == VERDICT_ASK && list != NULL &&
		       verdict.outside != NULL && want_outside(running, &verdict)) {
			list->items[verdict.outside - list->items].wanted = true;
			decide(running, &request, &verdict);
		}
		free(argv);
		running->asking.by_caller =
			asks_for != NULL && verdict.answer == VERDICT_ALLOW;
		if (running->asking.by_caller)
			want_person(running, asks_for, &verdict);
		running->plan = verdict.plan;
		running->harm = verdict.harm;
		ok = verdict.answer == VERDICT_ALLOW || verdict.or_runs;
		if (verdict.answer == VERDICT_ASK && verdict.outside == NULL &&
		    approval_can_ask(running)) {
			running->asking.wanted = memory_alloc(sizeof(verdict));
			*running->asking.wanted = verdict;
			ok = true;
		}
		if (!ok)
			session_deny(running, verdict.because, verdict.rule);
	}
	path_list_free(list);
	return ok;
}

/* May the call work in the layer of the session, if there is one? */
static bool layer_allows(struct running *running)
{
	const bool writes = (running->tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) != 0;
	struct session *session = running->session;
	struct err err = {0};

	if (!writes || running->tool->internal || session_has_room(session, &err)) {
		if (session->review != NULL)
			session->review->written |= writes;
		return true;
	}
	(void)tool_fail(&running->result, "%s", err.text);
	running->result.status = RESULT_DENIED;
	return false;
}

/* Let RUNNING see the folders LENT. */
static bool lend(struct running *running, const struct shape_shown *lent)
{
	for (; lent != NULL && lent->source != NULL; lent++) {
		auto_close int fd = open(lent->source, O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0 || !extra_lend(running, lent->path, lent->source, &fd)) {
			(void)tool_fail(&running->result, "%s cannot be shown: %s.",
					lent->why,
					fd < 0 ? strerror(errno)
					       : "it has too many folders");
			return false;
		}
	}
	return true;
}

/*
 * May RUNNING run, or may a person be asked for it (`wanted`)? False: its result says why
 * not.
 */
static bool judge(struct running *running, const struct request *request)
{
	return tool_choose(running, request) && lend(running, request->lent) &&
	       arguments_fit(running, request) && masking_arguments(running) &&
	       policy_allows(running, request->asks_for) && layer_allows(running) &&
	       session_quota_allows(running) && job_may_begin(running);
}

/* Send EVENT, whose members of RUNNING (or NULL) are filled in, to the sink. */
static bool emit(struct session *session, struct event event,
		 const struct running *running, struct err *err)
{
	/*
	 * Somebody may be waiting for a long call of the session's own, so its progress
	 * is reported.
	 */
	const bool is_silent = running != NULL &&
			       (running->told.quiet || running->told.unheard) &&
			       event.kind != EVENT_PROGRESS;

	event.wall_ms = clock_wall_ms();
	event.call = running != NULL ? running->id : NULL;
	event.tool = running != NULL && running->tool != NULL ? running->tool->name : NULL;
	return session->sink.event == NULL || is_silent ||
	       session->sink.event(session->sink.context, &event, err);
}

bool session_emit(struct session *session, enum event_kind kind,
		  const struct running *running, struct str text,
		  const struct value *data, struct err *err)
{
	return emit(session, (struct event){.kind = kind, .text = text, .data = data},
		    running, err);
}

bool session_emit_end(const struct running *running, const struct value *data,
		      struct err *err)
{
	const bool answered = running->job != NULL || running->caller.state != CALLER_WAITS;
	const struct event event = {.kind = EVENT_TOOL_ENDED,
				    .data = data,
				    .result = answered ? &running->caller.answer
						       : &running->result};

	return emit(running->session, event, running, err);
}

bool session_hears_all(const struct session *session)
{
	return session->sink.hears_all;
}

/* The decision about RUNNING, in a word of struct event. FITS: it may run. */
static const char *verdict_of(const struct running *running, bool fits)
{
	if (!fits)
		return running->result.status == RESULT_DENIED ? "deny" : "unfit";
	return running->asking.wanted != NULL || running->asking.extras != NULL ? "ask"
										: "allow";
}

/* FITS: RUNNING was judged, and may run. */
static bool announce(struct running *running, const struct request *request, bool fits)
{
	struct event event = {.kind = EVENT_TOOL_BEGAN,
			      .verdict = verdict_of(running, fits),
			      .trace = running->trace,
			      .origin = running->origin,
			      .result = fits ? NULL : &running->result};
	auto_value struct value *data = NULL;
	struct err err;

	if (running->session->sink.event == NULL || running->told.quiet ||
	    running->told.unheard)
		return true;
	data = value_new_object();
	if (running->arguments != NULL)
		value_set(data, "arguments", value_ref(running->arguments));
	else if (request->arguments != NULL) /* of a tool that does not exist */
		value_set(data, "arguments", value_ref(request->arguments));
	else
		value_set_str(data, "arguments_text", request->arguments_text);
	if (running->tool == NULL)
		value_set_text(data, "tool_asked", request->tool);
	if (running->tool != NULL && (running->tool->effects & EFFECT_RUNS) != 0)
		value_set_text(data, "folder", running->session->folder);
	event.data = data;
	if (emit(running->session, event, running, &err))
		return true;
	buf_clear(&running->result.text);
	(void)tool_fail(&running->result, "Not run, because it could not be recorded: %s",
			err.text);
	return false;
}

static struct running *running_new(struct session *session, const struct request *request)
{
	struct running *running = memory_alloc(sizeof(*running));
	char id[32];

	running->session = session;
	running->number = ++session->next_id;
	if (request->id == NULL)
		(void)snprintf(id, sizeof(id), "c%zu", session->next_id);
	running->kind = request->by_front ? RUNNING_FOR_FRONT : RUNNING_FOR_CALLER;
	running->beside = request->beside;
	running->told.quiet = request->quiet;
	running->told.unheard = request->unheard;
	running->told.terse = request->terse;
	running->trace = value_ref(request->trace);
	running->origin = value_ref(request->origin);
	running->files.log_fd = running->files.plan_fd = -1;
	running->files.held.fd = -1;
	running->id = memory_copy(request->id != NULL ? request->id : id);
	running->times.began_us = clock_now_us();
	running->times.deadline_ms = CLOCK_NEVER;
	running->times.latest_ms =
		clock_deadline(earlier(request->most_s, ceiling_wall_s(session_ceiling())));
	running->times.kill_timer.due_ms = CLOCK_NEVER;
	tool_result_init(&running->result);
	tool_result_init(&running->caller.answer);
	running->previous = session->last;
	if (session->last != NULL)
		session->last->next = running;
	else
		session->first = running;
	session->last = running;
	for (size_t i = 0; i < CALL_FDS_MAX; i++)
		running->files.fds[i] = -1;
	for (size_t i = 0; i < request->fd_count && i < CALL_FDS_MAX; i++)
		running->files.fds[running->files.fd_count++] = request->fds[i];
	return running;
}

struct running *running_of_session(struct session *session, const struct tool *tool)
{
	const struct request request = {.quiet = true};
	struct running *running = running_new(session, &request);

	running->tool = tool;
	return running;
}

static struct call call_in_front(const struct running *running)
{
	return (struct call){
		.tool = running->tool,
		.arguments = running->arguments,
		.workspace = session_workspace(running->session),
		.folder = running->session->folder,
		.deadline_ms = clock_deadline(running->times.timeout_s),
		.approved = running->asking.leave != NULL && running->asking.leave->given
				    ? running->asking.leave->hash
				    : NULL,
		.control_fd = -1,
		.fds = {[0 ... CALL_FDS_MAX - 1] = -1},
	};
}

static bool runs_in_front(const struct running *running)
{
	return running->tool->where == IN_FRONT && running->tool->begin == NULL;
}

/* Does RUNNING contain something to approve, and is there somebody who can approve it? */
static bool wants_leave(struct running *running)
{
	struct call call = call_in_front(running);
	struct leave leave = {.given = false};
	struct buf subject;
	bool wants;

	if (running->tool->leave == NULL || running->told.quiet ||
	    !running->session->answers_approvals)
		return false;
	buf_init(&subject, APPROVAL_SUBJECT_MAX);
	wants = running->tool->leave->asks(&call, &subject, leave.hash) &&
		!subject.overflowed;
	if (wants) {
		leave.subject = memory_copy(subject.data);
		running->asking.leave = memory_alloc(sizeof(leave));
		*running->asking.leave = leave;
	}
	buf_fini(&subject);
	return wants;
}

static void run_in_front(struct running *running)
{
	struct call call = call_in_front(running);

	(void)running->tool->execute(&call, &running->result);
	running_finish(running);
}

void running_proceed(struct running *running)
{
	if (runs_in_front(running)) {
		run_in_front(running);
		return;
	}
	if (running->tool->where == IN_JOBS) {
		session_jobs_call(running);
		return;
	}
	if (running->tool->begin != NULL) {
		session_elsewhere_call(running);
		return;
	}
	running_step(running, HAPPENS_QUEUED);
	if (!job_is_wanted(running))
		job_begin_patience(running);
	running_dispatch(running->session);
}

struct running *session_start(struct session *session, const struct request *request,
			      void (*done)(void *context, struct running *running),
			      void *context)
{
	struct running *running = running_new(session, request);

	running->caller.done = done;
	running->caller.ending = request->ending;
	running->caller.context = context;
	const bool fits = judge(running, request);
	const bool told = announce(running, request, fits);
	/* A receiver of the event may have cancelled the call already. */
	if (running->state != RUNNING_NEW)
		return running;
	if (!told || !fits) {
		running_finish(running);
		return running;
	}
	if (runs_in_front(running) && !wants_leave(running) &&
	    running->asking.wanted == NULL) {
		run_in_front(running);
		return running;
	}
	if (session->cancel_fd >= 0 && !running->told.quiet)
		loop_add(session->loop, &session->cancel_watch);
	running_step(running, HAPPENS_JUDGED);
	approval_ask(running);
	return running;
}

void session_call(struct session *session, const struct request *request,
		  struct tool_result *result)
{
	struct running *running = session_start(session, request, NULL, NULL);

	while (!running_is_done(running))
		loop_turn(session->loop, CLOCK_NEVER);
	*result = *running_told(running);
	tool_result_init(running_told(running));
	running_free(running);
}
