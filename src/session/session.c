/* session: opens and closes a session, and holds what its calls share. */

#include "session/session.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/value.h"
#include "cell/cell.h"
#include "cell/groups.h"
#include "cell/layers/base_log.h"
#include "cell/layers/layer.h"
#include "cell/starter.h"
#include "cell/vault.h"
#include "files/files.h"
#include "guard/guard.h"
#include "policy/ceiling.h"
#include "policy/commands.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "sandbox/probe.h"
#include "session/approval.h"
#include "session/keeper.h"
#include "session/masking.h"
#include "session/nested.h"
#include "tool/call.h"
#include "tool/deferred.h"
#include "tool/denial.h"
#include "tool/event.h"
#include "tool/tool.h"
#include "undo/plan.h"
#include "view/carrier.h"
#include "view/review.h"
#include "view/shape.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

void session_role(int argc, char **argv, const struct tool *const *tools)
{
	if (argc == STARTER_ARGUMENTS && strcmp(argv[0], STARTER_ROLE) == 0)
		starter_role(argv, tools);
	if (argc == GROUPS_ARGUMENTS && strcmp(argv[0], GROUPS_ROLE) == 0)
		groups_role(argv);
}

static size_t tools_count(const struct tool *const *tools)
{
	size_t count = 0;

	while (tools[count] != NULL)
		count++;
	return count;
}

/* An agent some of whose tools are deferred has the tools that stand for them. */
static void add_stand_ins(struct policy *policy, const struct tool *const *tools,
			  size_t count)
{
	auto_free const struct tool **has = memory_array(count + 1, sizeof(has[0]));
	size_t has_count = 0;
	bool any;

	for (size_t i = 0; i < count; i++) {
		if (policy_has_tool(policy, tools[i]->name))
			has[has_count++] = tools[i];
	}
	any = deferred_of(has).any;
	for (size_t i = 0; i < count && any; i++) {
		if (tools[i]->stands_in)
			policy_add_tool(policy, tools[i]->name);
	}
}

bool session_check_tools(struct policy *policy, const struct tool *const *tools,
			 struct err *err)
{
	size_t count = tools_count(tools);
	auto_free struct policy_tool *known = memory_array(count + 1, sizeof(known[0]));
	const bool reaches = policy->network.count > 0 || policy->credentials.count > 0 ||
			     policy_asks(policy, "network");

	for (size_t i = 0; i < count; i++) {
		known[i] = (struct policy_tool){
			.name = tools[i]->name,
			.aliases = tools[i]->aliases,
			.effects = tools[i]->effects,
			.only_when_named = tools[i]->internal || tools[i]->when_named ||
					   (tools[i]->fetches && !reaches) ||
					   tools[i]->plans || tools[i]->stands_in,
			.unlisted = tools[i]->internal,
			.plans = tools[i]->plans,
		};
	}
	if (!policy_check_tools(policy, known, count, err))
		return false;
	add_stand_ins(policy, tools, count);
	return true;
}

bool session_set_tools(struct session *session, const struct tool *const *tools,
		       struct err *err)
{
	size_t count = 0, all = tools_count(tools);
	const struct tool **offered;

	if (!session_check_tools(session->policy, tools, err))
		return false;
	offered = memory_array(all + 1, sizeof(*offered));
	for (size_t i = 0; i < all; i++) {
		if (tool_is_served(tools[i]) &&
		    policy_has_tool(session->policy, tools[i]->name))
			offered[count++] = tools[i];
	}
	free(session->offered);
	session->all_tools = tools;
	session->offered = offered;
	return true;
}

static void cell_changed(void *context)
{
	struct session *session = context;
	const char *broken = session->cell != NULL ? cell_broken(session->cell) : NULL;

	/* A call that waits for a granted folder has no worker that would be lost. */
	if (broken != NULL && session->first_widening != NULL) {
		struct err err;

		(void)err_set(&err, ECHILD, "%s", broken);
		extra_widened(session, &err);
	}
	running_dispatch(session);
}

/* Cancel all calls under way except jobs and the session's own calls. */
static void cancel_all(struct session *session)
{
	for (struct running *at = session->first; at != NULL;) {
		struct running *next = at->next;
		if (!at->told.quiet)
			running_cancel(at);
		at = next;
	}
}

static void cancel_ready(struct watch *watch, short events)
{
	(void)events;
	/*
	 * The owner of the descriptor reads it empty. Watching it until then would only
	 * make the loop spin.
	 */
	loop_remove(watch);
	cancel_all(watch->context);
}

/*
 * A cell of L3 is built without looking at the machine first. Only when the user allows
 * less than L3 is the machine probed before: a cell is never rebuilt weaker because
 * something failed.
 */
static struct sandbox_strength strength_choose(int minimum)
{
	struct probe_reach reach = {.strength.level = SANDBOX_SEALED};

	if (minimum < SANDBOX_SEALED)
		probe_reach(&reach);
	return reach.strength;
}

/*
 * The cell could not be built, or its level is too low: does this machine reach less than
 * was asked for, and why?
 */
static bool level_explain(int minimum, struct err *err)
{
	struct probe_reach reach;

	/*
	 * No child can get ID maps from a process that hides its memory, so a probe here
	 * would find nothing.
	 */
	if (err->code != ECHILD || prctl(PR_GET_DUMPABLE) != 1)
		return false;
	probe_reach(&reach);
	const int level = (int)reach.strength.level;
	if (level >= SANDBOX_SEALED || level >= minimum)
		return false; /* the machine's level is not the reason: ERR stays as it is */
	return err_set(err, ECHILD,
		       "this machine reaches level L%d only: %s. To mend it: %s" SHAPE_OFFERS_LEVEL
		       "L%d. "
		       "What that means: glovebox doctor",
		       level, reach.because, reach.remedy, level);
}

/*
 * The same for a session of one call, which begins before its cell is ready, and whose
 * process holds no key.
 */
static bool level_explain_once(int minimum, struct err *err)
{
	const int shown = prctl(PR_GET_DUMPABLE);

	(void)prctl(PR_SET_DUMPABLE, 1);
	bool explained = level_explain(minimum, err);
	(void)prctl(PR_SET_DUMPABLE, shown == 1);
	return explained;
}

static const struct ceiling *bound;

void session_bound(const struct ceiling *ceiling)
{
	bound = ceiling;
}

const struct ceiling *session_ceiling(void)
{
	return bound;
}

enum { HIDDEN_MAX = 16 };
static char *hidden[HIDDEN_MAX + 1]; /* NULL-ended */

bool session_hide(const char *path, struct err *err)
{
	size_t count = 0;

	if (path == NULL)
		return true;
	for (; hidden[count] != NULL; count++) {
		if (strcmp(hidden[count], path) == 0)
			return true;
	}
	if (count == HIDDEN_MAX)
		return err_set(err, E2BIG,
			       "%s: one program keeps %d files and folders from all its cells; "
			       "start another one",
			       path, HIDDEN_MAX);
	hidden[count] = memory_copy(path);
	return true;
}

static int level_least(const struct session_options *options)
{
	const int wanted =
		options->minimum_level != 0 ? options->minimum_level : SANDBOX_SEALED;
	const int least = (int)ceiling_level(bound);

	return wanted < least ? least : wanted;
}

static bool shape_make(const struct session_options *options,
		       const struct undo_plan *undoes, struct policy *policy,
		       struct cell_record *record, struct cell_spec *spec, struct err *err)
{
	const int minimum = level_least(options);
	const struct shape_options shape = {
		.workspace = options->workspace,
		.workspace_name = options->workspace_name,
		.program = options->program,
		.publishes = options->publishes,
		.asks = options->asks,
		.ssh = options->ssh,
		.ceiling = bound,
		.told = options->told,
		.one_call = options->direct,
		.unguarded = options->unguarded,
		.no_checkpoints = options->undo_folder == NULL,
		.caller_environment = options->caller_environment != NULL
					      ? options->caller_environment
					      : (const char *const *)(uintptr_t)environ,
		.protected_files = options->protected_files,
		.hidden = (const char *const *)hidden,
		.undoes = undoes,
		.review = options->review,
		.below = options->below,
		.fresh = options->fresh,
		.hold_guard = options->fresh ? NULL : cell_hold_guard,
		.has_granted = cell_has_granted,
		.context = record,
		.resolver = options->resolver,
		.shown = options->shown,
		.home = options->home,
		.base = options->base,
		.at = options->at,
		.strength = strength_choose(minimum),
		.minimum_level = minimum,
	};

	if ((int)shape.strength.level < minimum)
		(void)err_set(err, ECHILD, "the level is too low");
	else if (shape_cell(&shape, policy, spec, err))
		return true;
	return level_explain(minimum, err);
}

static bool shape_with_undo(const struct session_options *options, struct policy *policy,
			    struct cell_record *record, struct cell_spec *spec,
			    struct err *err)
{
	struct undo_plan undoes;
	bool fine;

	if (options->undoes == NULL)
		return shape_make(options, NULL, policy, record, spec, err);
	auto_free char *workspace = realpath(options->workspace, NULL);
	undo_plan_init(&undoes);
	if (workspace != NULL)
		undo_aim_plan(options->undoes, options->undo_folder, workspace, &undoes);
	fine = shape_make(options, &undoes, policy, record, spec, err);
	undo_plan_fini(&undoes);
	return fine;
}

bool session_shape(const struct session_options *options, struct policy *policy,
		   struct cell_spec *spec, struct err *err)
{
	struct cell_record record = {0};
	const bool fine = shape_with_undo(options, policy, &record, spec, err);

	cell_record_close(&record);
	return fine;
}

/*
 * Should workers be made with a waiting shell? Where the policy lists commands, commands
 * run without a shell.
 */
static bool prepares(const struct session *session, const struct session_options *options)
{
	return !options->direct && !options->dormant && options->ready_workers > 0 &&
	       !commands_listed(session->policy->commands) &&
	       tool_prepared((const struct tool *const *)session->offered) != NULL;
}

/*
 * The layer of the session, whose trees SPEC has: write its description, give it its name,
 * and let the workers of the cell write its log.
 */
static bool review_settle(struct session *session, struct review *review,
			  struct cell_spec *spec, struct err *err)
{
	if (review == NULL)
		return true;
	/* The kernel does not keep two cells from one upper folder. */
	if (review->life == REVIEW_USED)
		return review_say_used(review, err);
	if (review->life == REVIEW_MADE) {
		free(review->meta.agent);
		review->meta.agent = memory_copy(session->policy->name);
		value_free(review->meta.rights);
		review->meta.rights = spec_rights(spec);
	}
	if (review->meta.memory)
		review->meta.most = (int64_t)session->policy->limits.tmp;
	if (!review_begin(review, err) || !review_publish(review, err))
		return false;
	session->review = review;
	session->layered = review->meta.counts;
	spec->review_ms = review->meta.created_ms;
	spec->review_log = review_open_log(review, true);
	return spec->review_log >= 0 ||
	       err_set(err, errno, REVIEW_KEY ": %s: %s", review->path, strerror(errno));
}

/*
 * A program has met the one thing that a layer cannot do. Where a denial explains the error, a
 * protected name has caused it.
 */
static void note_rename(const struct session *session, const struct tool *tool,
			struct tool_result *result)
{
	const struct str text = buf_str(&result->text);

	if ((session->review == NULL && !session->policy->scratch) || tool == NULL ||
	    (tool->effects & EFFECT_RUNS) == 0 || value_count(denial_list(result)) > 0 ||
	    (str_find(text, STR("nvalid cross-device link"), 0) == (size_t)-1 &&
	     str_find(text, STR("EXDEV"), 0) == (size_t)-1))
		return;
	(void)buf_end_line(&result->text);
	(void)buf_adds(&result->text,
		       "[A folder that was there before this session's layer is not renamed in one "
		       "step (EXDEV): mv copies it and removes the old one; a program has to do the "
		       "same.]\n");
}

bool session_has_room(const struct session *session, struct err *err)
{
	const struct policy_limits *limits = &session->policy->limits;

	return session->review == NULL ||
	       review_has_room(session->review, session->layered.bytes, limits->layer,
			       limits->tmp, err);
}

void session_note_layer(struct session *session, const struct tool *tool,
			struct tool_result *result)
{
	const struct value *counts = value_member(result->details, BASE_LOG_KEY);
	struct review_counts told = {0};

	note_rename(session, tool, result);
	if (session->review == NULL || tool == NULL ||
	    (tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) == 0)
		return;
	/* A worker that was killed has not counted, and one that lies is not believed. */
	if (!fields_read(counts, review_count_fields, &told, NULL, NULL)) {
		session->layered.partial = true;
		return;
	}
	session->layered = told;
	if (session->told_layer || session->one_call || tool->internal ||
	    (told.changed + told.added + told.removed == 0 && !told.other))
		return;
	session->told_layer = true;
	(void)buf_end_line(&result->text);
	(void)buf_addf(&result->text,
		       "[What this session writes is in a layer, review %s: the files in the "
		       "folder stay as they are until a person lands it.]\n",
		       session->review->meta.id);
}

void session_note_web(struct session *session, const struct tool *tool,
		      const struct value *arguments, const struct tool_result *result)
{
	const char *last =
		value_text(value_member(value_member(result->details, "web"), "url"));
	/* Where nobody reads details there are none. */
	const char *url = last != NULL ? last : value_text(value_member(arguments, "url"));
	const char *host = url != NULL ? strstr(url, "://") : NULL;

	/* A tool of the front is the program itself: a delegate may have read the page. */
	if (tool == NULL || (!tool->fetches && (tool->where != IN_FRONT || url == NULL)))
		return;
	/* The answer of a search is from no one page. */
	if (url == NULL)
		url = tool->name;
	host = host != NULL ? host + strlen("://") : url;
	free(session->web_host);
	session->web_host = memory_copy_str((struct str){host, strcspn(host, "/?")});
}

const char *session_has_read(const struct session *session)
{
	return session->web_host != NULL ? session->web_host : "";
}

void session_note_host(struct session *session, const char *host)
{
	if (host[0] == '\0')
		return;
	free(session->web_host);
	session->web_host = memory_copy(host);
}

void session_speak(struct session *session)
{
	free(session->web_host);
	session->web_host = NULL;
}

/* Note the base of OPTIONS, which goes when the session is open. */
static void take_base(struct session *session, const struct shape_base *base)
{
	if (base == NULL)
		return;
	session->base = (struct session_base){
		.word = memory_copy(base->word),
		.digest = memory_copy(base->digest != NULL ? base->digest : ""),
		.user = memory_copy(base->user != NULL ? base->user : ""),
		.lasting = memory_copy(base->lasting != NULL ? base->lasting : base->word),
		.mark = memory_copy(base->mark != NULL ? base->mark : ""),
	};
}

static bool cell_make(struct session *session, const struct session_options *options,
		      struct err *err)
{
	const int minimum = level_least(options);
	struct cell_record record = {0};
	struct cell_spec spec;

	spec_init(&spec);
	if (!shape_with_undo(options, session->policy, &record, &spec, err) ||
	    !review_settle(session, options->review, &spec, err)) {
		shape_tidy(&spec);
		spec_fini(&spec);
		cell_record_close(&record);
		return false;
	}
	session->folder = memory_copy(options->start_folder != NULL ? options->start_folder
								    : spec.workspace);
	const struct cell_options cell = {
		.take_spec = &spec,
		.take_record = &record,
		.loop = session->loop,
		.tools = session->all_tools,
		.program = options->program,
		.starter = options->starter,
		.direct = options->direct,
		.credentials = options->credentials,
		.credential_count = options->credential_count,
		.person_home = getenv("HOME"),
		.person_environment = (const char *const *)(uintptr_t)environ,
		.limits = &session->policy->limits,
		.exact = options->counting != COUNTING_COMMANDS,
		.one = options->counting == COUNTING_ONE,
		.ready = options->direct ? 0 : options->ready_workers,
		.prepared = prepares(session, options),
		.changed = cell_changed,
		.rests = options->rests,
		.dormant = options->dormant,
		.meanwhile = options->meanwhile,
		.meanwhile_context = options->meanwhile_context,
		.refused = running_refused,
		.asked = approval_ask_host,
		.widened = extra_widened,
		.context = session,
		.explain = options->direct ? level_explain_once : level_explain,
		.minimum_level = minimum,
	};
	if (cell_open(&cell, &session->cell, err))
		return true;
	/* The kernel may have refused the layer, which was tried at another time. */
	if (session->review != NULL)
		carrier_forget(session->review);
	return level_explain(minimum, err);
}

/*
 * The worker of a command holds two descriptors; two more are left for everything else
 * that is open.
 */
enum { DESCRIPTORS_PER_COMMAND = 4 };

/* How many commands may run at the same time, by the limit of descriptors. */
static size_t commands_most(void)
{
	struct rlimit files;
	size_t most = 1;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > DESCRIPTORS_PER_COMMAND)
		most = (size_t)files.rlim_cur / DESCRIPTORS_PER_COMMAND;
	return most;
}

bool session_open(const struct session_options *options, struct session **session,
		  struct err *err)
{
	struct session *made = memory_alloc(sizeof(*made));

	made->policy = options->take_policy;
	made->sink = options->sink;
	made->own_loop = options->loop == NULL;
	made->loop = made->own_loop ? loop_new() : options->loop;
	made->one_call = options->direct;
	made->counting = options->counting;
	made->answers_questions = options->answers_questions;
	made->answers_plans = options->answers_plans;
	made->answers_approvals = options->answers_approvals;
	made->relays_approvals = options->relays_approvals;
	made->keep_rule = options->keep_rule;
	made->keep_rule_context = options->keep_rule_context;
	if (!options->answers_approvals)
		policy_ask_nobody(made->policy);
	made->waits = options->waits;
	made->waits_context = options->waits_context;
	made->cancel_fd = options->cancel_fd;
	made->cores = clock_cores_usable();
	made->commands_most = commands_most();
	made->seen = value_new_object();
	made->aliases = value_new_object();
	take_base(made, options->base);
	made->keeper = keeper_new(made, options->undo_folder, options->undo_space);
	made->cancel_watch = (struct watch){.fd = options->cancel_fd,
					    .events = POLLIN,
					    .ready = cancel_ready,
					    .context = made};
	if (!session_set_tools(made, options->tools, err) || !cell_make(made, options, err)) {
		session_close(made);
		return false;
	}
	session_quota_begin(made);
	made->masking = masking_new(made->policy, options->marks_key);
	made->taken_over = cell_audit_due(made->cell);
	nested_begin(made->keeper);
	if (!session_mend(made, err)) {
		session_close(made);
		return false;
	}
	*session = made;
	return true;
}

static void forget_changed(struct session *session)
{
	for (char **at = session->changed; at != NULL && *at != NULL; at++)
		free(*at);
	free(session->changed);
}

bool session_stop_call(struct session *session, const char *call, const char *why)
{
	struct running *running = session->first;
	struct tool_result result;

	while (running != NULL &&
	       (running->state != RUNNING_ELSEWHERE || strcmp(running->id, call) != 0))
		running = running->next;
	if (running == NULL)
		return false;
	if (running->tool->stop != NULL)
		running->tool->stop(running->tool->keeper, running);
	tool_result_init(&result);
	/* A cancelled call would end the turn. */
	(void)tool_fail(&result, "%s", why);
	running_end(running, &result);
	return true;
}

bool session_answer(struct session *session, const char *call, int64_t question,
		    const struct value *answer, struct err *err)
{
	for (struct running *at = session->first; at != NULL; at = at->next) {
		if (at->state != RUNNING_OVER && strcmp(at->id, call) == 0)
			return running_answer(at, question, answer, err);
	}
	return err_set(err, ESRCH, "no call \"%.64s\" is under way", call);
}

void session_close(struct session *session)
{
	struct accounts used = {0};

	if (session == NULL)
		return;
	/* Cancel all at the same time: each may take its grace time. */
	for (struct job *job = session->first_job; job != NULL; job = job->next)
		running_cancel_work(job->work);
	cancel_all(session);
	const bool misses = nested_misses(session->keeper);
	keeper_close(session->keeper);
	session->keeper = NULL;
	job_free_all(session);
	while (session->first != NULL)
		running_free(session->first);
	session_mend_again(session, true);
	session_look_whole(session, misses);
	extra_session_end(session);
	loop_remove(&session->cancel_watch);
	loop_remove_timer(&session->quota);
	session_accounts(session, &used, NULL);
	cell_close(session->cell);
	if (session->review != NULL)
		(void)review_end(session->review, &session->layered, NULL);
	if (session->sink.over != NULL)
		session->sink.over(session->sink.context, &used);
	if (session->own_loop)
		loop_free(session->loop);
	masking_free(session->masking);
	policy_free(session->policy);
	value_free(session->seen);
	value_free(session->aliases);
	if (session->said != NULL)
		tool_result_fini(session->said);
	free(session->said);
	git_left_fini(&session->held);
	value_free(session->outside);
	free(session->folder);
	free(session->base.word);
	free(session->base.digest);
	free(session->base.user);
	free(session->base.lasting);
	free(session->base.mark);
	free(session->offered);
	free(session->web_host);
	forget_changed(session);
	free(session);
}

void session_drop_layer(struct session *session)
{
	if (session->review != NULL)
		session->review->unwanted = true;
}

/*
 * Close the files of KEEPER, which is only closed afterwards. The kernel takes milliseconds for
 * the last close of a watch, and of a file that has no name any more.
 */
static void let_go(struct keeper *keeper)
{
	for (size_t i = 0; i < sizeof(keeper->look.fds) / sizeof(keeper->look.fds[0]); i++)
		fd_close(&keeper->look.fds[i]);
	fd_close(&keeper->list.own);
	fd_close(&keeper->list.events);
	fd_close(&keeper->list.pending);
}

void session_abandon(struct session *session, bool waits)
{
	cell_abandon(session->cell, waits);
	if (waits && session->keeper != NULL)
		let_go(session->keeper);
}

struct loop *session_loop(struct session *session)
{
	return session->loop;
}

struct sandbox_strength session_strength(const struct session *session)
{
	return cell_spec(session->cell)->strength;
}

const struct session_base *session_base(const struct session *session)
{
	return &session->base;
}

void session_tell_base(const struct session *session, struct value *object)
{
	const struct session_base *base = &session->base;
	struct value *told;

	if (base->word == NULL)
		return;
	told = value_new_object();
	value_set_text(told, "word", base->word);
	if (base->digest[0] != '\0')
		value_set_text(told, "digest", base->digest);
	if (base->user[0] != '\0')
		value_set_text(told, "user", base->user);
	value_set(object, "base", told);
}

int session_take_socket(struct session *session, const char *path)
{
	return cell_take_socket(session->cell, path);
}

const struct publish *session_publish(const struct session *session)
{
	return cell_publish(session->cell);
}

void session_print_own(const struct session *session, const struct tool_result *result,
		       struct buf *out)
{
	const struct cell_spec *spec = cell_spec(session->cell);
	const struct layer_own own = {
		.sealed = spec_is_sealed(spec),
		.one_call = session->one_call,
		.home = spec->home_source != NULL ? spec->home : NULL,
	};

	layer_tell_print_own(result, &own, out);
}

bool session_is_renewing(const struct session *session)
{
	return vault_is_renewing(cell_vault(session->cell));
}

const char *session_broken(const struct session *session)
{
	return cell_broken(session->cell);
}

bool session_is_built(const struct session *session)
{
	return cell_is_built(session->cell);
}

const char *session_workspace(const struct session *session)
{
	return cell_spec(session->cell)->workspace;
}

const char *session_shown(const struct session *session)
{
	return spec_shown(cell_spec(session->cell));
}

void session_judge_messages(const struct session *session, struct str messages,
			    struct tool_result *result)
{
	denial_claims_protected(messages, result);
	denial_claims_gather_hosts(messages, result);
	denial_claims_judge(session->policy, session_weighs_hosts(session, result), result);
}

const struct policy *session_policy(const struct session *session)
{
	return session->policy;
}

void session_set_mode(struct session *session, enum policy_mode mode)
{
	assert(mode != MODE_PLAN && session->policy->mode != MODE_PLAN);
	policy_set_mode(session->policy, mode);
}

const struct tool *const *session_tools(const struct session *session)
{
	return session->offered;
}

/* The steps of a session, which its keeper knows. */

const char *session_run(const struct session *session)
{
	return keeper_run(session->keeper);
}

void session_adopt(struct session *session, const char *run, bool handed)
{
	keeper_adopt(session->keeper, run, handed);
}

void session_take_landed(struct session *session)
{
	keeper_take_landed(session->keeper);
}

void session_checkpoint(struct session *session, bool begins_turn)
{
	keeper_checkpoint(session->keeper, begins_turn);
}

void session_rest(struct session *session)
{
	cell_rest(session->cell);
}

const char *const *session_changed(struct session *session)
{
	forget_changed(session);
	session->changed = keeper_changed(session->keeper);
	return (const char *const *)session->changed;
}

bool session_has_news(const struct session *session)
{
	return keeper_has_news(session->keeper);
}

void session_writes(const struct session *session, struct session_writes *writes)
{
	*writes = (struct session_writes){0};
	keeper_writes(session->keeper, writes);
	for (const struct job *at = session->first_job; at != NULL; at = at->next) {
		if (at->ended_us == 0 && at->work != NULL &&
		    at->work->tool->effects != EFFECT_READS)
			writes->writing = true;
	}
}

/*
 * The files that a session has read. Workers forget them. A call brings along the marks
 * that may matter to it, and the marks that it learnt come back with the result.
 */

enum {
	SEEN_SENT_ALL = 64, /* up to this many marks go along with every call */
	/*
	 * files known to one session; when there are more, all are forgotten, and the
	 * guard asks to read again
	 */
	SEEN_MAX = 100000,
};

struct path_visit {
	struct session *session;
	struct value *marks;
};

static void mark_copy(struct path_visit *visit, const char *path)
{
	const char *mark = value_text(value_member(visit->session->seen, path));

	if (mark != NULL)
		value_set_text(visit->marks, path, mark);
}

/*
 * Add the mark of one path argument: under its own name, and under the real name to which
 * it led before.
 */
static void path_visit(void *context, const char *text)
{
	struct path_visit *visit = context;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (policy_normal(visit->session->policy, session_workspace(visit->session), text,
			  &path)) {
		const char *real =
			value_text(value_member(visit->session->aliases, path.data));
		mark_copy(visit, path.data);
		if (real != NULL)
			mark_copy(visit, real);
	}
	buf_fini(&path);
}

struct value *session_memory_for(struct session *session, const struct running *running)
{
	struct path_visit visit = {session, NULL};

	/* A tool that only reads learns marks and does not look at any. */
	if (running->tool->effects == EFFECT_READS)
		return NULL;
	if (value_count(session->seen) <= SEEN_SENT_ALL)
		return value_ref(session->seen);
	visit.marks = value_new_object();
	tool_visit_paths(running->tool, running->arguments, path_visit, &visit);
	return visit.marks;
}

/*
 * When one path argument led to one file of another name, the session remembers both
 * names.
 */
static void alias_learn(struct session *session, const struct running *running,
			const struct value *seen)
{
	const char *text = value_text(value_member(running->arguments, "path"));
	void *at = value_first(seen);
	struct buf path;

	if (text == NULL || value_count(seen) != 1 || strlen(value_key(at)) >= PATH_MAX ||
	    value_count(session->aliases) >= SEEN_MAX)
		return;
	buf_init(&path, PATH_MAX);
	if (policy_normal(session->policy, session_workspace(session), text, &path) &&
	    strcmp(path.data, value_key(at)) != 0)
		value_set_text(session->aliases, path.data, value_key(at));
	buf_fini(&path);
}

static void folder_take(struct session *session, const char *folder)
{
	/*
	 * The folder counts only inside the roots: the tool has checked that, and the
	 * next worker checks it again.
	 */
	if (folder[0] != '/')
		return;
	free(session->folder);
	session->folder = memory_copy(folder);
}

static void seen_take(struct session *session, const struct value *seen, bool moves)
{
	for (void *at = value_first(seen); at != NULL; at = value_next(seen, at)) {
		const char *mark = value_text(value_at(at));
		/* A worker that was taken over may name anything. */
		if (mark == NULL || strlen(mark) >= PATH_MAX ||
		    strlen(value_key(at)) >= PATH_MAX)
			continue;
		if (strcmp(value_key(at), CALL_FOLDER_KEY) == 0) {
			/*
			 * The folder in which a job ends does not matter to the commands
			 * that ran beside it.
			 */
			if (moves)
				folder_take(session, mark);
			continue;
		}
		if (value_count(session->seen) >= SEEN_MAX) {
			value_free(session->seen);
			session->seen = value_new_object();
		}
		if (strlen(mark) < FILES_MARK)
			value_set_text(session->seen, value_key(at), mark);
	}
}

void session_memory_take(struct session *session, struct running *running)
{
	if (running->result.seen != NULL) {
		alias_learn(session, running, running->result.seen);
		seen_take(session, running->result.seen, running->job == NULL);
	}
}

void session_recall(struct session *session, const struct value *seen)
{
	seen_take(session, seen, true);
}
