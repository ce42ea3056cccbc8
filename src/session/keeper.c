/* keeper: decides when a checkpoint is due, makes it, and gives file tools their logs. */

#include "session/keeper.h"
#include "session/masking.h"
#include "session/nested.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "cell/cell.h"
#include "guard/guard.h"
#include "guard/scan.h"
#include "session/approval.h"
#include "session/session.h"
#include "tool/tool.h"
#include "undo/list.h"
#include "undo/plan.h"
#include "undo/projects.h"
#include "undo/store.h"
#include "view/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	KEEPER_WAIT_US = 20000,
	/* a look at what a watcher was told takes no longer, unless much was told */
	KEEPER_TOLD_US = 300,
	KEEPER_TITLE_MAX = 400, /* bytes of a step's title */
	/* tidy after so many logs; looking at all of them takes milliseconds */
	UNDO_TIDY_EVERY = 32,
};

/* Commands run without checkpoints. */
static bool is_broken(const struct keeper *keeper)
{
	return keeper->reach != KEEPS_ALL;
}

/* Something may have changed since the list was made. */
static void list_ages(struct keeper *keeper)
{
	if (keeper->list.state == LIST_FRESH)
		keeper->list.state = LIST_OLD;
}

static bool is_under_way(const struct keeper_call *call)
{
	return call->running != NULL || call->starts;
}

/* CALL begins. It may be done, and DONE called, before this returns. */
static void call_start(struct keeper *keeper, struct keeper_call *call,
		       const struct request *request,
		       void (*done)(void *context, struct running *running))
{
	call->starts = true;
	struct running *running = session_start(keeper->session, request, done, keeper);
	call->starts = false;
	if (!running_is_done(running))
		call->running = running;
}

/* RUNNING, of CALL, is done. It is freed later, because its own code calls this. */
static void call_over(struct keeper_call *call, struct running *running)
{
	call->running = NULL;
	call->over = running;
}

static void call_free(struct keeper_call *call)
{
	running_free(call->running);
	running_free(call->over);
	call->running = call->over = NULL;
}

static void descriptors_close(int fds[3])
{
	for (size_t i = 0; i < 3; i++)
		fd_close(&fds[i]);
}

/*
 * Gathers the changes of a session for the call that hands them over. The logs of the
 * session's steps become one plan (plan.h), and a call of the session's own fetches
 * the contents that git holds.
 */

/* Does a call wait for the session's changes? */
static bool patch_is_asked(const struct keeper *keeper)
{
	for (const struct running *at = keeper->session->first_queued; at != NULL;
	     at = at->next) {
		if (at->state == RUNNING_QUEUED && at->tool->wants_changes &&
		    at->due == DUE_CALL)
			return true;
	}
	return false;
}

static void patch_forget(struct keeper *keeper)
{
	call_free(&keeper->patch.fetch);
	if (keeper->patch.state != PATCH_NONE)
		undo_plan_fini(&keeper->patch.plan);
	descriptors_close(keeper->patch.fds);
	keeper->patch.state = PATCH_NONE;
	keeper->patch.looked = false;
	keeper->patch.trouble.text[0] = '\0';
}

/*
 * Fill PLAN with all steps of this session as one. Steps whose logs were removed are left
 * out. When a step was made under other rights, the plan keeps only the paths that this
 * session may read.
 */
static void plan_fill(const struct keeper *keeper, struct undo_plan *plan)
{
	bool foreign = false;
	size_t kept = 0;

	undo_plan_init(plan);
	for (size_t i = 0; i < keeper->steps.count; i++) {
		const struct keeper_step *step = &keeper->steps.items[i];

		if (step->undone)
			continue;
		plan->own = !step->foreign;
		foreign = foreign || !plan->own;
		(void)undo_plan_add(plan, keeper->store, step->number, NULL);
	}
	undo_plan_settle(plan);
	for (size_t i = 0; foreign && i < plan->count; i++) {
		if (undo_store_may_read(keeper->store, plan->items[i].path))
			plan->items[kept++] = plan->items[i];
	}
	plan->count = foreign ? kept : plan->count;
}

static void fetch_done(void *context, struct running *running)
{
	struct keeper *keeper = context;

	/* Contents that git cannot give are left out of the patch, which says so. */
	if (running->result.status == RESULT_DONE)
		(void)undo_plan_take_git(&keeper->patch.plan, keeper->patch.fds[1], NULL);
	keeper->patch.state = PATCH_READY;
	call_over(&keeper->patch.fetch, running);
}

static bool fetch_begin(struct keeper *keeper, struct err *err)
{
	auto_value struct value *arguments = value_new_object();
	int *fds = keeper->patch.fds;

	for (size_t i = 0; i < 3; i++) {
		fds[i] = undo_store_scratch(keeper->store, err);
		if (fds[i] < 0)
			return false;
	}
	if (!undo_plan_print_wanted(&keeper->patch.plan, fds[0], err))
		return false;
	value_set_integer(arguments, "log", 0);
	const struct request request = {
		.tool = "git_contents",
		.arguments = arguments,
		.fds = {fds[0], fds[1], fds[2]},
		.fd_count = 3,
		.by_front = true,
		.quiet = true,
	};
	call_start(keeper, &keeper->patch.fetch, &request, fetch_done);
	return true;
}

/*
 * Gather the changes: this ends immediately, or when git has given the contents that it
 * holds.
 */
static void patch_begin(struct keeper *keeper)
{
	struct err err = {0};

	keeper->patch.state = PATCH_BEGUN;
	plan_fill(keeper, &keeper->patch.plan);
	if (undo_plan_wants_git(&keeper->patch.plan) == 0)
		keeper->patch.state = PATCH_READY;
	else if (!fetch_begin(keeper, &err)) {
		keeper->patch.trouble = err;
		keeper->patch.state = PATCH_READY;
	}
}

static struct value *names_of(const struct value *object)
{
	enum { NAMES_MAX = 16 }; /* so many granted folders are named */
	struct value *names = object != NULL ? value_new_array() : NULL;

	for (void *at = value_first(object); at != NULL && value_count(names) < NAMES_MAX;
	     at = value_next(object, at))
		value_append(names, value_new_text(value_key(at)));
	return names;
}

/* Print to FD what the patch does not cover, for those who read it. */
static bool limits_print(const struct keeper *keeper, int fd, struct err *err)
{
	auto_value struct value *outside = names_of(keeper->session->outside);
	struct undo_patch_limits limits = {.lost = keeper->steps.lost, .outside = outside};
	struct undo_log log;
	struct buf text;
	bool fine;

	if (is_broken(keeper))
		limits.without_commands = keeper->words.why.size > 0
						  ? keeper->words.why.data
						  : "there is no state folder";
	auto_value struct value *object = fields_print(undo_patch_limits_fields, &limits);
	buf_init(&text, UNDO_META_MAX);
	undo_log_begin(&log, fd, 0);
	fine = (value_print(object, 0, &text) || err_set(err, E2BIG, "a sentence")) &&
	       undo_log_meta(&log, buf_str(&text), err);
	buf_fini(&text);
	return fine;
}

static bool plan_end(int fd, struct err *err)
{
	struct undo_log log;

	undo_log_begin(&log, fd, 0);
	return undo_log_end(&log, err);
}

/* The plan for the call, as a file that holds all of it. -1 with ERR. */
static int patch_take(struct keeper *keeper, struct err *err)
{
	auto_close int fd = -1;
	bool fine = false;

	if (keeper->patch.state != PATCH_READY)
		(void)err_set(err, EIO, "the cell is broken");
	else if (keeper->patch.trouble.text[0] != '\0')
		*err = keeper->patch.trouble;
	else if (keeper->store == NULL)
		fine = fd_memory_file("glovebox-plan", STR(""), &fd, err) &&
		       limits_print(keeper, fd, err) && plan_end(fd, err);
	else
		fine = (fd = undo_store_scratch(keeper->store, err)) >= 0 &&
		       limits_print(keeper, fd, err) &&
		       undo_plan_print(&keeper->patch.plan, keeper->store, UNDO_PART_REST,
				       true, keeper->patch.fds[1], fd, err);
	patch_forget(keeper);
	if (!fine) {
		(void)err_while(err, "gathering what was changed");
		return -1;
	}
	return fd_take(&fd);
}

char **keeper_changed(struct keeper *keeper)
{
	struct undo_plan plan;
	char **changed;
	size_t count = 0;

	plan_fill(keeper, &plan);
	changed = memory_array(plan.count + 1, sizeof(char *));
	for (size_t i = 0; i < plan.count; i++) {
		const struct undo_item *item = &plan.items[i];
		if (!undo_is_of_folders(item->target.kind, item->expected.kind) &&
		    !str_starts(item->path, STR(".git/")))
			changed[count++] = memory_copy_str(item->path);
	}
	undo_plan_fini(&plan);
	return changed;
}

/* Reports commands whose changes no look has seen. */

/*
 * The command that is owed a look gets none: report that as a notice when no call waits
 * for the look.
 */
static void keeper_tell_unseen(struct keeper *keeper, const char *why)
{
	const bool is_told = keeper->look.owner != NULL;
	const bool owed = keeper->owes.owed || keeper->owes_next.owed;
	struct buf text;
	struct err err = {0};

	keeper->owes.owed = keeper->owes_next.owed = false;
	if (!owed || is_told)
		return;
	buf_init(&text, ERR_TEXT_MAX + 8 * KEEPER_TITLE_MAX);
	(void)buf_adds(&text, "Undo cannot take back what a command has changed (");
	text_add_name(&text, str_of(keeper->owes.title));
	(void)buf_adds(&text, "): ");
	(void)buf_addstr(&text, str_trim(str_of(why)));
	(void)session_emit(keeper->session, EVENT_NOTICE, NULL, buf_str(&text), NULL, &err);
	buf_fini(&text);
}

/*
 * Commands run without checkpoints from here on. The result of each command says so; a
 * notice says it for a command that was already answered.
 */
static void keeper_give_up(struct keeper *keeper, const char *why)
{
	if (!is_broken(keeper)) {
		(void)buf_addstr(&keeper->words.why, str_trim(str_of(why)));
		keeper->words.tells_why = true;
		keeper->reach = KEEPS_TOOLS;
	}
	keeper_tell_unseen(keeper, why);
}

static void trouble_tell(struct keeper *keeper, struct tool_result *result)
{
	if (keeper->words.trouble.size == 0)
		return;
	(void)buf_end_line(&result->text);
	(void)buf_addstr(&result->text, buf_str(&keeper->words.trouble));
	buf_clear(&keeper->words.trouble);
}

/*
 * The reason why no look will see what the command RUNNING has changed. NULL: a look has
 * seen it or will, or there are no looks by choice.
 */
static const char *unseen_why(const struct keeper *keeper, const struct running *running)
{
	if (running->changes != CHANGES_POSSIBLE || keeper->folder == NULL)
		return NULL;
	if (is_broken(keeper))
		return keeper->words.why.data;
	return cell_broken(keeper->session->cell);
}

/* Explain at length once, then in one sentence with each result. */
static void unseen_tell(struct keeper *keeper, const struct running *running,
			struct tool_result *result)
{
	const char *why = unseen_why(keeper, running);
	struct buf *text = &result->text;

	if (why != NULL)
		value_set_text(tool_details(result), "no_undo", why);
	if (why == NULL && !keeper->words.tells_why)
		return;
	(void)buf_end_line(text);
	if (keeper->words.tells_why)
		(void)buf_addf(text,
			       "[what commands change cannot be undone, and repositories that "
			       "they make deep in the workspace are not looked after: %s]\n",
			       keeper->words.why.data);
	else
		(void)buf_addf(text,
			       "[what this command has changed cannot be undone: %s]\n",
			       why);
	keeper->words.tells_why = false;
}

enum {
	/* enough for a checkpoint of a large tree on a busy machine */
	KEEPER_CLOSE_MS = 10000,
	KEEPER_CLOSE_TOLD_MS = 120000, /* a person is told how far it is, and may end it */
	TELL_MS = 100,                 /* how often */
	SPARE_MS = 300,                /* nobody minds such a pause at the end */
	SPARE_LIST_MS = 2000,          /* without the list the next session copies anew */
	/*
	 * bytes of replaced files without a store: of files that are only open, which a
	 * user does not see, or of memory where there is no state folder
	 */
	MEMORY_MAX = 64 << 20,
	MEMORY_LOGS_MAX = 256, /* each is an open file */
};

/* This session still keeps replaced files, for its patch. */
static void stay_in_memory(struct keeper *keeper)
{
	keeper->store = undo_store_in_memory();
	keeper->reach = KEEPS_MEMORY;
}

struct keeper *keeper_new(struct session *session, const char *folder, uint64_t space)
{
	struct keeper *keeper;
	uint64_t number = 0;

	keeper = memory_alloc(sizeof(*keeper));
	keeper->session = session;
	keeper->folder = memory_copy(folder);
	keeper->space = space > 0 ? space : UNDO_ALL_MAX;
	keeper->patch.fds[0] = keeper->patch.fds[1] = keeper->patch.fds[2] = -1;
	if (folder == NULL)
		stay_in_memory(keeper);
	keeper->objects.fd = -2;
	keeper->list.own = keeper->list.events = keeper->list.pending = -1;
	keeper->look.fds[0] = keeper->look.fds[1] = keeper->look.fds[2] = -1;
	buf_init(&keeper->words.trouble, ERR_TEXT_MAX + 256);
	buf_init(&keeper->words.why, ERR_TEXT_MAX);
	(void)!getrandom(&number, sizeof(number), 0);
	(void)snprintf(keeper->run, sizeof(keeper->run), "%0*" PRIx64, RUN_DIGITS,
		       number >> (64 - 4 * RUN_DIGITS));
	return keeper;
}

const char *keeper_run(const struct keeper *keeper)
{
	return keeper->run;
}

/* Count the log NUMBER, which holds changes, as a step; FOREIGN as in keeper_step. */
static void keeper_add_step(struct keeper *keeper, uint32_t number, bool foreign)
{
	if (keeper->steps.count == keeper->steps.room) {
		keeper->steps.room = keeper->steps.room > 0 ? 2 * keeper->steps.room : 16;
		keeper->steps.items = memory_grow(keeper->steps.items, keeper->steps.room,
						  sizeof(*keeper->steps.items));
	}
	keeper->steps.items[keeper->steps.count++] =
		(struct keeper_step){.number = number, .foreign = foreign};
}

static bool knows_step(const struct keeper *keeper, uint32_t number)
{
	size_t at = 0;

	while (at < keeper->steps.count && keeper->steps.items[at].number != number)
		at++;
	return at < keeper->steps.count;
}

/*
 * Count the steps of the keeper's run that hold and are not known yet; an undo is known by the
 * steps that it has undone. LANDED: those that a file tool has landed for it, as its own.
 */
static void count_steps(struct keeper *keeper, bool landed)
{
	struct undo_store *store = keeper_store(keeper);
	struct undo_steps steps;

	if (keeper->reach == KEEPS_MEMORY || !undo_store_steps(store, &steps, NULL))
		return;
	for (size_t i = 0; i < steps.count; i++) {
		const struct undo_step *step = &steps.steps[i];

		if (strcmp(step->run, keeper->run) == 0 && step->whole && !step->undone &&
		    (landed ? step->work == UNDO_BY_TOOL : step->work != UNDO_BY_UNDO) &&
		    !knows_step(keeper, step->number))
			keeper_add_step(keeper, step->number,
					!landed && !undo_store_is_ours(store, step->number));
	}
	undo_steps_fini(&steps);
}

void keeper_adopt(struct keeper *keeper, const char *run, bool handed)
{
	if (strlen(run) != RUN_DIGITS || strspn(run, "0123456789abcdef") != RUN_DIGITS)
		return;
	memcpy(keeper->run, run, sizeof(keeper->run));
	count_steps(keeper, false);
	keeper->steps.looked = keeper->steps.count;
	if (handed)
		keeper->steps.handed = keeper->steps.count;
}

void keeper_take_landed(struct keeper *keeper)
{
	if (keeper != NULL && keeper->reach != KEEPS_MEMORY)
		count_steps(keeper, true);
}

void keeper_note_undone(struct keeper *keeper, const struct undo_steps *steps)
{
	for (size_t i = 0; i < keeper->steps.count; i++) {
		struct keeper_step *own = &keeper->steps.items[i];
		const struct undo_step *step = undo_aim_step(steps, own->number);

		own->undone = step != NULL && step->undone;
	}
}

bool keeper_has_news(const struct keeper *keeper)
{
	return keeper->owes.owed || keeper->steps.count > keeper->steps.handed;
}

void keeper_writes(const struct keeper *keeper, struct session_writes *writes)
{
	if (keeper == NULL)
		return;
	writes->found = keeper->changes + (uint64_t)keeper->steps.lost;
	writes->writers = keeper->writers;
	writes->looks = !is_broken(keeper);
}

bool keeper_keeps(const struct keeper *keeper)
{
	return keeper->reach != KEEPS_MEMORY;
}

struct undo_store *keeper_store(struct keeper *keeper)
{
	const bool opens = keeper->store == NULL;
	struct err err = {0};

	if (opens && !undo_store_open(keeper->folder, session_workspace(keeper->session),
				      &keeper->store, &err)) {
		keeper_give_up(keeper, err.text);
		stay_in_memory(keeper);
	} else if (opens) {
		auto_value struct value *rights =
			spec_rights(cell_spec(keeper->session->cell));
		undo_store_set_rights(keeper->store, rights);
	}
	return keeper->store;
}

/* The log NUMBER is new. */
static void untidy_note(struct keeper *keeper, uint32_t number)
{
	if (number % UNDO_TIDY_EVERY == 0)
		keeper->rest.store = STORE_UNTIDY;
}

/* Make a log in the store; *NUMBER becomes its number. -1 with ERR. */
static int keeper_new_log(struct keeper *keeper, const struct undo_meta *meta,
			  uint32_t *number, struct err *err)
{
	int fd = undo_store_new_log(keeper->store, meta, number, err);

	if (fd >= 0)
		untidy_note(keeper, *number);
	return fd;
}

/* There are no workers any more, and so there are no more looks. */
static bool is_lost(const struct keeper *keeper)
{
	return cell_broken(keeper->session->cell) != NULL;
}

/* A job goes on beside other calls, and its changes count as theirs. */
static bool writes_now(const struct running *running)
{
	return running->state == RUNNING_BUSY && running->job == NULL &&
	       running_is_writer(running);
}

/* The first call other than EXCEPT (or NULL) that writes right now; NULL: none. */
static const struct running *first_writer(const struct keeper *keeper,
					  const struct running *except, bool beside)
{
	const struct session *session = keeper->session;

	for (const struct running *at = session->busy_writers > 0 ? session->first : NULL;
	     at != NULL; at = at->next) {
		if (at != except && writes_now(at) && (!at->beside || beside))
			return at;
	}
	return NULL;
}

/*
 * Does a call other than EXCEPT (or NULL) write right now? Then nobody can say which call
 * made a change.
 */
static bool somebody_writes(const struct keeper *keeper, const struct running *except)
{
	return first_writer(keeper, except, true) != NULL;
}

/*
 * Has a patch to wait for a call that writes right now? What a program has written so far that
 * may run for as long as the session belongs to the patch, as what a job has written does.
 */
static bool holds_patch(const struct keeper *keeper)
{
	return first_writer(keeper, NULL, false) != NULL;
}

/* The first call in the queue that runs a command; NULL: there is none. */
static struct running *keeper_waiting_command(const struct keeper *keeper)
{
	const struct session *session = keeper->session;

	for (struct running *at = session->queued_commands > 0 ? session->first_queued : NULL;
	     at != NULL; at = at->next) {
		if (at->state == RUNNING_QUEUED && running_is_command(at) &&
		    at->due == DUE_CALL)
			return at;
	}
	return NULL;
}

/* The call that waits for a checkpoint ends now, with the result that it has. */
static void keeper_release_owner(struct keeper *keeper)
{
	struct running *owner = keeper->look.owner;

	keeper->look.owner = NULL;
	if (owner != NULL)
		running_finish(owner);
}

static void owe_job(struct keeper *keeper);
static void keeper_sync_start(struct keeper *keeper);
static bool keeper_tend(struct keeper *keeper);
static void rest_tend(struct timer *timer);

/*
 * Does a file tool wait to write? It may overwrite what only the look that is owed finds:
 * then the content before the command would be in no step.
 */
static bool tool_waits(const struct keeper *keeper)
{
	for (const struct running *at = keeper->session->first_queued; at != NULL;
	     at = at->next) {
		if (at->state == RUNNING_QUEUED && at->due == DUE_CALL &&
		    !running_is_ours(at->tool) && !running_is_command(at) &&
		    (at->tool->effects & EFFECT_WRITES) != 0)
			return true;
	}
	return false;
}

bool keeper_is_quiet(const struct keeper *keeper)
{
	struct pollfd fds[2];

	if (keeper == NULL || !keeper->list.watched)
		return false;
	fds[0] = (struct pollfd){.fd = keeper->list.events, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = keeper->list.pending, .events = POLLIN};
	return poll(fds, 2, 0) == 0;
}

/*
 * Has anybody changed the workspace since the last look, before a command that waits? A
 * person whose programs write without end holds a command up for one look only.
 */
static bool others_wrote(const struct keeper *keeper)
{
	return keeper->list.watched && keeper->list.state == LIST_FRESH &&
	       !keeper->list.caught_up && keeper_waiting_command(keeper) != NULL &&
	       job_writer(keeper->session, NULL) == NULL && !keeper_is_quiet(keeper);
}

/*
 * A workspace without anything in it needs no worker that looks at it. Before a command there is
 * nothing to list, and when there is nothing afterwards either, the command has changed nothing
 * that stays. So it is in a cell that only computes. The front looks at the names of that one
 * folder and opens none of them. When something lies there, the first look is taken.
 */

/* Does the cell show the workspace itself, and no layer or memory in its place? */
static bool shows_itself(const struct cell_spec *spec)
{
	bool itself = false;

	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (strcmp(entry->path, spec->workspace) != 0 || entry->kind == VIEW_PIN)
			continue;
		itself = entry->kind == VIEW_TREE &&
			 strcmp(entry->source, spec->workspace) == 0;
		if (!itself)
			return false;
	}
	return itself;
}

/* No look was taken yet, and the workspace is empty: the same folder as before, if there was one. */
static bool has_nothing(struct keeper *keeper)
{
	struct keeper_list *list = &keeper->list;
	const struct session *session = keeper->session;
	struct stat st;

	if (list->own >= 0 || list->rows > 0 || session->one_call ||
	    session->review != NULL || !shows_itself(cell_spec(session->cell)))
		return false;
	auto_close int fd = open(session_workspace(session),
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !fd_folder_is_empty(fd))
		return false;
	if (list->inode == 0) {
		list->device = st.st_dev;
		list->inode = st.st_ino;
	}
	return list->device == st.st_dev && list->inode == st.st_ino;
}

/* A command waits, and no look was taken yet: see whether there is nothing to look at. */
static void nothing_begin(struct keeper *keeper)
{
	if (is_broken(keeper) || keeper->owes.owed || keeper->list.own >= 0 ||
	    keeper_waiting_command(keeper) == NULL)
		return;
	if (!has_nothing(keeper)) {
		list_ages(keeper);
		return;
	}
	keeper->list.state = LIST_FRESH;
	keeper->list.looked_ms = clock_wall_ms();
	keeper->steps.looked = keeper->steps.count;
	keeper->look.lost_one = false; /* this was the second try of a look that was lost */
	(void)nested_take(keeper, NULL);
}

void keeper_begin(struct keeper *keeper)
{
	if (keeper != NULL && !is_under_way(&keeper->look.call) &&
	    (is_broken(keeper) || is_lost(keeper)))
		keeper_release_owner(keeper);
	if (keeper == NULL || is_under_way(&keeper->look.call) ||
	    is_under_way(&keeper->patch.fetch) || is_lost(keeper))
		return;
	const bool asked = patch_is_asked(keeper);
	if (asked ? holds_patch(keeper) : somebody_writes(keeper, NULL))
		return;
	/* The call that asked was cancelled: the next one wants what has changed since, too. */
	if (keeper->patch.state == PATCH_READY && !asked)
		patch_forget(keeper);
	const bool wanted = asked && keeper->patch.state == PATCH_NONE;
	/* The changes that a job has made so far belong to the patch, too. */
	if (wanted && !keeper->patch.looked)
		owe_job(keeper);
	/* It holds what only a look at the whole workspace finds, too. */
	if (wanted && !keeper->patch.looked && !is_broken(keeper) && !keeper->owes.owed &&
	    keeper->list.owes_whole)
		(void)keeper_tend(keeper);
	keeper->patch.looked = wanted;
	if (keeper->list.owes_whole && !keeper->owes.owed && tool_waits(keeper))
		(void)keeper_tend(keeper);
	nothing_begin(keeper);
	if (others_wrote(keeper)) {
		keeper->list.caught_up = true;
		list_ages(keeper);
	}
	if (!is_broken(keeper) && keeper->look.call.running == NULL &&
	    (keeper->owes.owed ||
	     (keeper->list.state != LIST_FRESH && keeper_waiting_command(keeper) != NULL)))
		keeper_sync_start(keeper);
	if (wanted && keeper->look.call.running == NULL)
		patch_begin(keeper);
}

bool keeper_holds(const struct keeper *keeper, const struct running *running)
{
	const bool wants = running->tool != NULL && running->tool->wants_changes;

	if (keeper == NULL || running->due != DUE_CALL || is_lost(keeper) ||
	    (!running_is_writer(running) && !wants))
		return false;
	if (is_under_way(&keeper->look.call) || is_under_way(&keeper->patch.fetch))
		return true;
	if (wants)
		return keeper->patch.state != PATCH_READY;
	if (is_broken(keeper) || somebody_writes(keeper, NULL))
		return false;
	return keeper->owes.owed ||
	       (keeper->list.state != LIST_FRESH && running_is_command(running));
}

static struct str title_of(const struct running *running)
{
	static const char *const keys[] = {"path", "command", "title"};
	const char *at = running->session->policy->at;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct str text = value_str(value_member(running->arguments, keys[i]));
		/* A person reads of files of the workspace, wherever the cell shows them. */
		if (i == 0 && at != NULL && text.size > 0)
			text = str_of(path_relative(text.data, at));
		if (text.size > 0)
			return str_part(text, 0,
					text_character_border(text, KEEPER_TITLE_MAX));
	}
	return STR("");
}

/*
 * The name by which a person knows TOOL: the front's own tools have names that nobody
 * types.
 */
static const char *name_of(const struct tool *tool)
{
	return tool->internal && tool->title != NULL ? tool->title : tool->name;
}

/*
 * The log of RUNNING has a name in the folder `pending` as long as RUNNING goes on, so that a
 * later session finds it after a kill. Then the store keeps the file open without a name.
 * Past the ceilings the call gets another log, which is no step.
 */
static bool give_memory_log(struct keeper *keeper, struct running *running, struct err *err)
{
	if (keeper->steps.kept > MEMORY_MAX || keeper->steps.count >= MEMORY_LOGS_MAX) {
		keeper->steps.lost++;
		return true;
	}
	(void)cell_hold_log(keeper->session->cell, -1, &running->files.held);
	running_set_log(running, running->files.held.fd);
	return undo_store_keep_log(keeper->store, running->files.log_fd,
				   &running->files.log, err);
}

static bool give_log(struct keeper *keeper, struct running *running, struct err *err)
{
	const struct undo_meta meta = {
		.work = UNDO_BY_TOOL,
		.run = keeper->run,
		.tool = name_of(running->tool),
		.title = title_of(running),
		.wall_ms = clock_wall_ms(),
		.turn_ms = keeper->turn_ms,
		.agent = keeper->session->policy->name,
	};

	if (keeper_store(keeper) == NULL)
		return err_set(err, EIO, "there is no place to keep it");
	if (keeper->reach == KEEPS_MEMORY)
		return give_memory_log(keeper, running, err);
	const int log = keeper_new_log(keeper, &meta, &running->files.log, err);

	if (log >= 0)
		running_set_log(running, log);
	return log >= 0;
}

bool keeper_before(struct keeper *keeper, struct running *running, struct err *err)
{
	if (keeper == NULL || running->due != DUE_CALL || running_is_ours(running->tool))
		return true;
	if (running_is_command(running))
		keeper->list.caught_up = false;
	if (running->tool->wants_changes && running->files.fd_count == 0) {
		running->files.fds[0] = running->files.plan_fd = patch_take(keeper, err);
		running->files.fd_count = 1;
		return running->files.plan_fd >= 0;
	}
	if ((running->tool->effects & EFFECT_WRITES) != 0 && running->files.log_fd < 0)
		return give_log(keeper, running, err) ||
		       err_while(err, "what it replaces could not be kept for `glovebox "
				      "undo`, so nothing was written");
	return true;
}

static char *title_of_command(const struct running *running, bool has_jobs, bool has_commands)
{
	struct buf title, outside;

	buf_init(&outside, KEEPER_TITLE_MAX);
	buf_init(&title, 3 * KEEPER_TITLE_MAX);
	/* These notes stand before the title, because a list shows only the beginning. */
	if (has_jobs)
		(void)buf_adds(&title, "(with jobs beside it) ");
	if (has_commands)
		(void)buf_adds(&title, "(with other commands beside it) ");
	extra_print_written(running, &outside);
	if (outside.size > 0)
		(void)buf_addf(&title, "(not what it wrote in %s) ", outside.data);
	buf_fini(&outside);
	(void)buf_addstr(&title, title_of(running));
	return buf_take(&title);
}

/*
 * RUNNING has ended: note it in OWNER as the command to which the next look belongs. The
 * look does not see files in folders that a person granted, and it cannot tell changes of
 * a job, or of a command that is owed the same look, from changes of this command.
 */
static void owner_take(struct keeper_owner *owner, const struct running *running)
{
	const int64_t ran_ms = (clock_now_us() - running->times.began_us) / 1000;
	const bool has_jobs = job_writes(running->session, running->job);
	const int64_t ended_ms = clock_wall_ms() + 1, began_ms = ended_ms - ran_ms - 2;

	free(owner->title);
	owner->title = title_of_command(running, has_jobs, owner->owed);
	owner->with_others = has_jobs || owner->owed;
	owner->began_ms =
		owner->owed && owner->began_ms < began_ms ? owner->began_ms : began_ms;
	owner->ended_ms = ended_ms;
	owner->owed = true;
}

/*
 * The changes that a job, or a program beside the calls, has made so far belong to the command
 * that is owed a look, or they are a step of its own.
 */
static void owe_job(struct keeper *keeper)
{
	const struct running *work = job_writer(keeper->session, NULL);

	if (work == NULL)
		work = first_writer(keeper, NULL, true);
	if (work == NULL || keeper->owes.owed)
		return;
	owner_take(&keeper->owes, work);
	/* Nobody can say whether the job made what is found. */
	keeper->owes.with_others = true;
}

/*
 * A session of one call would not end sooner without waiting: it looks before it is
 * closed.
 */
static bool result_waits(const struct keeper *keeper)
{
	return keeper->session->one_call || keeper->look.us <= KEEPER_WAIT_US;
}

bool keeper_after(struct keeper *keeper, struct running *running)
{
	if (keeper == NULL || !running_is_command(running) || is_broken(keeper))
		return false;
	/* The look that is under way may have passed the changed places already. */
	if (is_under_way(&keeper->look.call)) {
		owner_take(&keeper->owes_next, running);
		keeper->owes.with_others = true;
		return false;
	}
	if (keeper->list.state == LIST_FRESH && has_nothing(keeper)) {
		if (running->changes == CHANGES_POSSIBLE)
			running->changes = CHANGES_SEEN;
		return false;
	}
	list_ages(keeper);
	owner_take(&keeper->owes, running);
	if (running->job != NULL || !result_waits(keeper) ||
	    somebody_writes(keeper, running))
		return false;
	running_step(running, HAPPENS_STANDS);
	/* Its worker has answered: its time is not over any more, and it becomes no job. */
	loop_remove_timer(&running->times.kill_timer);
	loop_remove_timer(&running->times.patience);
	keeper->look.owner = running;
	return true;
}

/*
 * The details of the patch name the run and the last step of which the patch is made, so
 * that these steps can be undone.
 */
static void hand_over(struct keeper *keeper, struct tool_result *result)
{
	struct value *details = tool_details(result);

	keeper->steps.handed = keeper->steps.count;
	value_remove(details, "run");
	value_remove(details, "last_step");
	if (!keeper_keeps(keeper) || keeper->steps.count == 0)
		return;
	value_set_text(details, "run", keeper->run);
	value_set_integer(details, "last_step",
			  keeper->steps.items[keeper->steps.count - 1].number);
}

static void keeper_look_ahead(struct keeper *keeper);

/* RESULT, of RUNNING, is about to be told. */
static void result_note(struct keeper *keeper, const struct running *running,
			struct tool_result *result)
{
	/* Even a tool that writes nothing itself may let others write: a delegate. */
	keeper->writers += running->tool != NULL && running->tool->effects != EFFECT_READS;
	if (running->tool != NULL && running->tool->wants_changes &&
	    result->status == RESULT_DONE)
		hand_over(keeper, result);
}

/*
 * RUNNING, a file tool, has written without a store: explain once in the session, and say
 * it with each result.
 */
static void unkept_tell(struct keeper *keeper, struct tool_result *result)
{
	const char *why = keeper->words.why.data;

	if (keeper->reach != KEEPS_MEMORY || keeper->folder == NULL)
		return;
	value_set_text(tool_details(result), "no_undo", why);
	if (keeper->words.told_unkept)
		return;
	keeper->words.told_unkept = true;
	(void)buf_end_line(&result->text);
	(void)buf_addf(&result->text, "[what this session writes cannot be undone: %s]\n",
		       why);
}

/* The log of RUNNING is a step when it holds something. RESULT is its own. */
static void log_end(struct keeper *keeper, struct running *running,
		    struct tool_result *result)
{
	struct stat st;
	/* A log that cannot be looked at may hold something. */
	const bool known = fstat(running->files.log_fd, &st) == 0;

	if (running->files.log == 0) {
		/* It was there for a killed process only. */
	} else if (known && st.st_size == 0) {
		undo_store_drop_log(keeper->store, running->files.log);
	} else {
		list_ages(keeper);
		keeper_add_step(keeper, running->files.log, false);
		keeper->changes++;
		keeper->steps.kept += known ? (uint64_t)st.st_size : 0;
	}
	if (!known || st.st_size > 0)
		unkept_tell(keeper, result);
	fd_close(&running->files.log_fd);
}

void keeper_finish(struct keeper *keeper, struct running *running, struct tool_result *result)
{
	if (keeper == NULL || running->told.quiet)
		return;
	const bool is_over = result == &running->result;
	if (is_over)
		fd_close(&running->files.plan_fd);
	result_note(keeper, running, result);
	if (is_over && running->files.log_fd >= 0)
		log_end(keeper, running, result);
	if (running_is_command(running)) {
		unseen_tell(keeper, running, result);
		trouble_tell(keeper, result);
	}
	keeper_look_ahead(keeper);
}

void keeper_cancel(struct keeper *keeper)
{
	if (keeper == NULL)
		return;
	/*
	 * The command waits no more, and the look makes its changes a step all the same.
	 * In a session of one call the look itself is cancelled.
	 */
	if (!keeper->session->one_call)
		keeper_release_owner(keeper);
	else if (keeper->look.call.running != NULL)
		running_cancel(keeper->look.call.running);
}

void keeper_checkpoint(struct keeper *keeper, bool begins_turn)
{
	if (keeper == NULL || is_broken(keeper))
		return;
	const struct session *session = keeper->session;
	if (begins_turn)
		keeper->turn_ms = clock_wall_ms();
	if (is_under_way(&keeper->look.call) || somebody_writes(keeper, NULL))
		return;
	for (size_t i = 0; session->offered[i] != NULL; i++) {
		if ((session->offered[i]->effects & EFFECT_RUNS) == 0)
			continue;
		/*
		 * When a command is owed a look, that look is made now, and it serves as
		 * the checkpoint.
		 */
		list_ages(keeper);
		keeper_sync_start(keeper);
		return;
	}
}

static void wait_end(const struct session *session)
{
	if (session->waits != NULL)
		session->waits(session->waits_context, NULL);
}

bool keeper_told(struct keeper *keeper, const struct running *look, int64_t done, int64_t all)
{
	if (keeper == NULL || look != keeper->look.call.running)
		return false;
	keeper->closing.wait = (struct session_wait){done, all};
	if (keeper->session->waits != NULL &&
	    (keeper->closing.begun || keeper->session->one_call))
		keeper->session->waits(keeper->session->waits_context,
				       &keeper->closing.wait);
	return true;
}

/* Turn the loop until UNTIL at most. False: that time is over, or the person waits no more. */
static bool close_wait(struct keeper *keeper, int64_t until)
{
	struct keeper_closing *closing = &keeper->closing;
	struct pollfd cancel = {.fd = closing->cancel_fd, .events = POLLIN};
	const int64_t now = clock_now_ms();

	closing->ended = closing->ended || poll(&cancel, 1, 0) > 0;
	if (closing->ended || now >= until)
		return false;
	(void)keeper_told(keeper, keeper->look.call.running, closing->wait.done,
			  closing->wait.all);
	loop_turn(keeper->session->loop, until - now < TELL_MS ? until : now + TELL_MS);
	return true;
}

static void sync_wait(struct keeper *keeper, int64_t until)
{
	while (keeper->look.call.running != NULL && close_wait(keeper, until))
		;
}

static bool may_look(const struct keeper *keeper)
{
	return keeper->session->cell != NULL && !is_lost(keeper) && !keeper->closing.ended;
}

/* Make the looks that are owed to commands; each may ask for one more. */
static void close_look(struct keeper *keeper, int64_t deadline)
{
	while (keeper->owes.owed || keeper->owes_next.owed) {
		if (may_look(keeper))
			keeper_begin(keeper);
		if (keeper->look.call.running == NULL || !close_wait(keeper, deadline))
			return;
	}
}

/*
 * Without a look at all that is due undo would miss a change. Other looks, and the list, save
 * time in the next session only: they get a moment, and more after commands, most where nobody
 * sits and waits.
 */
static void close_tend(struct keeper *keeper, int64_t deadline)
{
	const bool whole = keeper->list.owes_whole;
	int64_t until = whole ? deadline : clock_now_ms() + SPARE_MS;

	sync_wait(keeper, until);
	if (!may_look(keeper) || !keeper_tend(keeper))
		return;
	if (!whole && keeper->owes.title != NULL)
		until = keeper->session->waits == NULL ? deadline
						       : clock_now_ms() + SPARE_LIST_MS;
	sync_wait(keeper, until);
}

/*
 * The keeper makes no look from now on: report the command whose changes nobody has seen.
 */
static void keeper_end(struct keeper *keeper)
{
	const struct cell *cell = keeper->session->cell;
	const char *why = cell != NULL ? cell_broken(cell) : NULL;

	if (why == NULL)
		why = keeper->closing.ended
			      ? "nobody waited for the look at it (Ctrl+C)"
			      : "the session has ended before anybody had looked at it";
	if (!is_broken(keeper)) {
		(void)buf_adds(&keeper->words.why, why);
		keeper->reach = KEEPS_TOOLS;
	}
	keeper_tell_unseen(keeper, why);
}

/* Remove what is above the ceilings of this store and of all stores. */
static void keeper_tidy(struct keeper *keeper)
{
	/* Contents to which only a list refers that is not written yet would go. */
	if (keeper->rest.store != STORE_UNTIDY || keeper->reach == KEEPS_MEMORY ||
	    keeper->list.unsaved)
		return;
	keeper->rest.store = undo_store_tidy(keeper->store) ? STORE_TIDY : STORE_OVERFULL;
	(void)undo_projects_tidy(keeper->folder, keeper->space);
}

void keeper_close(struct keeper *keeper)
{
	if (keeper == NULL)
		return;
	const struct session *session = keeper->session;
	struct pollfd cancel = {.fd = session->cancel_fd, .events = POLLIN};
	int64_t deadline = clock_now_ms() + (session->waits != NULL ? KEEPER_CLOSE_TOLD_MS
								    : KEEPER_CLOSE_MS);

	keeper->closing.begun = true;
	keeper->closing.cancel_fd = poll(&cancel, 1, 0) == 0 ? session->cancel_fd : -1;
	loop_remove_timer(&keeper->rest.timer);
	/* The changes that the jobs have made until now are owed a look, too. */
	while ((somebody_writes(keeper, NULL) || job_writes(keeper->session, NULL)) &&
	       clock_now_ms() < deadline)
		loop_turn(keeper->session->loop, deadline);
	close_look(keeper, deadline);
	close_tend(keeper, deadline);
	wait_end(session);
	keeper_end(keeper);
	call_free(&keeper->look.call);
	/* The owner's look did not end in time, or never began. */
	keeper_release_owner(keeper);
	loop_remove_timer(&keeper->rest.timer);
	patch_forget(keeper);
	descriptors_close(keeper->look.fds);
	/* From here on this session does not need the contents to which its list refers. */
	fd_close(&keeper->list.own);
	fd_close(&keeper->list.events);
	fd_close(&keeper->list.pending);
	if (keeper->rest.store == STORE_OVERFULL)
		keeper->rest.store = STORE_UNTIDY;
	keeper_tidy(keeper);
	undo_store_close(keeper->store);
	free(keeper->steps.items);
	fd_close(&keeper->objects.fd);
	buf_fini(&keeper->words.trouble);
	buf_fini(&keeper->words.why);
	marks_fini(&keeper->nested.known);
	free(keeper->owes.title);
	free(keeper->owes_next.title);
	free(keeper->folder);
	free(keeper);
}

/* One checkpoint, from opening its files to reporting its findings. */

enum {
	LOOK_TOLD_FROM = 10000, /* files; a person does not notice the time for fewer */
	STAY_MOST_US = 500,
	STAY_MORE_US = 150, /* the time of a frame to the worker and back */
};

/*
 * A file in which nothing was written serves the next checkpoint. The list that was read
 * is closed later: when another list has its place, closing removes it from the disk, and
 * that takes the file system some time.
 */
static void files_put_back(struct keeper *keeper)
{
	if (keeper->look.fds[1] >= 0 && undo_store_is_used(keeper->look.fds[1]))
		fd_close(&keeper->look.fds[1]);
	if (keeper->look.fds[2] >= 0 &&
	    (!keeper->look.blank || undo_store_is_used(keeper->look.fds[2])))
		fd_close(&keeper->look.fds[2]);
}

/*
 * The front makes the links to git's objects: a worker has another mount, and the kernel
 * makes no links across mounts.
 */
static void objects_open(struct keeper *keeper)
{
	struct buf path;

	if (keeper->objects.fd != -2)
		return;
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/.git", session_workspace(keeper->session));
	auto_close int git = open(path.data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	buf_fini(&path);
	keeper->objects.fd =
		git >= 0 ? openat(git, "objects",
				  O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			 : -1;
	keeper->objects.may_link = keeper->objects.fd >= 0 &&
				   undo_store_links_from(keeper->store, keeper->objects.fd);
}

static struct undo_meta meta_of(const struct keeper *keeper, bool alone)
{
	return (struct undo_meta){
		.work = keeper->look.is_step ? UNDO_BY_COMMAND : UNDO_CHECKPOINT,
		.run = keeper->run,
		.tool = keeper->look.is_step ? "bash" : NULL,
		.title = str_of(keeper->look.is_step ? keeper->owes.title : NULL),
		.wall_ms = clock_wall_ms(),
		.since_ms = keeper->look.is_step ? keeper->list.looked_ms : 0,
		.turn_ms = keeper->turn_ms,
		.agent = keeper->session->policy->name,
		.alone = alone,
	};
}

/* Make the files of the next checkpoint that can be made early. False with ERR. */
static bool keeper_sync_files(struct keeper *keeper, struct err *err)
{
	if (keeper->look.fds[1] < 0)
		keeper->look.fds[1] = undo_store_new_list(keeper->store, err);
	if (keeper->look.fds[2] < 0)
		keeper->look.fds[2] = undo_store_blank_log(keeper->store);
	keeper->look.blank = keeper->look.fds[2] >= 0;
	return keeper->look.fds[1] >= 0;
}

/*
 * Open the list with which the next look compares: that of the session's own last look.
 * Before its first look a session takes the list that any session has left, unless it has
 * seen that the workspace was empty.
 */
static int list_open(const struct keeper *keeper, struct err *err)
{
	int fd = -1;

	if (keeper->list.own < 0 && keeper->list.state == LIST_UNKNOWN)
		return undo_store_open_list(keeper->store, err);
	if (keeper->list.own < 0) {
		(void)fd_memory_file("glovebox-list", STR(""), &fd, err);
		return fd;
	}
	/* The worker of the last look has left the common position at the end. */
	fd = lseek(keeper->list.own, 0, SEEK_SET) == 0
		     ? fcntl(keeper->list.own, F_DUPFD_CLOEXEC, 3)
		     : -1;
	if (fd < 0)
		(void)err_set(err, errno, "the list of the workspace: %s", strerror(errno));
	return fd;
}

/*
 * The look has ended. WRITTEN: its new list is the session's own from now on. Otherwise the
 * own list stays; a session that has none takes the list that the look has read.
 */
static void list_take(struct keeper *keeper, bool written)
{
	if (!written && keeper->list.own >= 0)
		return;
	fd_close(&keeper->list.own);
	keeper->list.own = fd_take(&keeper->look.fds[written ? 1 : 0]);
}

/* Without both descriptors the worker watches all the same, and nobody polls. */
static void watch_open(struct keeper *keeper)
{
	if (keeper->list.events < 0)
		keeper->list.events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (keeper->list.pending < 0)
		keeper->list.pending = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static bool files_open_all(struct keeper *keeper, struct err *err)
{
	const struct undo_meta meta = meta_of(keeper, false);

	(void)keeper_store(keeper);
	if (keeper->reach == KEEPS_MEMORY)
		return err_set(err, EIO, "there is no place to keep it");
	objects_open(keeper);
	if (!keeper->session->one_call)
		watch_open(keeper);
	fd_close(&keeper->look.fds[0]);
	keeper->look.fds[0] = list_open(keeper, err);
	if (keeper->look.fds[0] < 0 || !keeper_sync_files(keeper, err))
		return false;
	if (keeper->look.blank)
		keeper->look.log = undo_store_next_number(keeper->store);
	else
		keeper->look.fds[2] = keeper_new_log(keeper, &meta, &keeper->look.log, err);
	return keeper->look.fds[2] >= 0;
}

static void links_make(struct keeper *keeper, const struct value *names)
{
	for (size_t i = 0; i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));
		if (name != NULL && keeper->objects.fd >= 0)
			(void)undo_store_link(keeper->store, keeper->objects.fd, name);
	}
}

/* Only the first count says of what it is one. */
static void count_add(struct buf *text, const char *what, int64_t count)
{
	const bool is_first = text->size == 0;

	if (count <= 0)
		return;
	(void)buf_addf(text, "%s%s: ", is_first ? "" : ", ", what);
	if (is_first)
		(void)text_add_count(text, (size_t)count, "file");
	else
		(void)buf_addf(text, "%" PRId64, count);
}

/* The members of a report that go into the result of a command. */
#define CHANGE(member, ...) FIELD(struct undo_look_report, member, __VA_ARGS__)
static const struct field change_fields[] = {
	CHANGE(changed),
	CHANGE(added),
	CHANGE(removed),
	CHANGE(below, .optional = true),
	{0},
};
#define LOST(member, as) FIELD_NAMED(struct undo_look_report, member, as)
static const struct field lost_fields[] = {
	LOST(lost, "count"),
	LOST(lost_name, "first"),
	LOST(lost_below, "below"),
	{0},
};

static bool has_changes(const struct undo_look_report *report)
{
	return report->changed > 0 || report->added > 0 || report->removed > 0;
}

/* Say in RESULT how many files are not ignored any more: they are no part of the step. */
static void unignored_tell(const struct undo_look_report *report, struct tool_result *result)
{
	if (report->unignored <= 0)
		return;
	(void)buf_end_line(&result->text);
	(void)buf_adds(&result->text, "[not ignored any more, and left by glovebox undo: ");
	(void)text_add_count(&result->text, (size_t)report->unignored, "file");
	(void)buf_adds(&result->text, "]\n");
	value_set_integer(tool_details(result), "unignored", report->unignored);
}

/*
 * Append a line on the ignored files that are gone, which nothing keeps. Where nobody
 * watches, the names are told and not what was in them.
 */
static void lost_print(const struct undo_look_report *report, struct buf *out)
{
	const bool watched = (report->findings & UNDO_FOUND_WATCHED) != 0;

	(void)buf_adds(out, "[removed ");
	if (watched && report->lost > 1) {
		(void)text_add_count(out, (size_t)report->lost, "ignored file");
		if (report->lost_below != NULL && report->lost_below[0] != '\0') {
			(void)buf_adds(out, " under ");
			text_add_name(out, str_of(report->lost_below));
			(void)buf_addc(out, '/');
		}
	} else {
		(void)buf_adds(out, "the ignored ");
		text_add_name(out, str_of(report->lost_name));
		if (report->lost > 1)
			(void)buf_addf(out, " and %" PRId64 " more", report->lost - 1);
	}
	(void)buf_adds(out, ", which undo does not keep]\n");
}

/*
 * Say in the result of the command, or in a notice and the next result when the command was
 * answered before, which ignored files are gone.
 */
static void lost_tell(struct keeper *keeper, const struct undo_look_report *report)
{
	struct running *owner = keeper->look.owner;
	struct err err = {0};
	struct buf line;

	if (report->lost <= 0 || report->lost_name == NULL)
		return;
	buf_init(&line, 8 << 10);
	lost_print(report, &line);
	if (owner != NULL) {
		struct undo_look_report told = *report;

		if (told.lost_below == NULL)
			told.lost_below = "";
		(void)buf_end_line(&owner->result.text);
		(void)buf_addstr(&owner->result.text, buf_str(&line));
		value_set(tool_details(&owner->result), "lost",
			  fields_print(lost_fields, &told));
	} else {
		(void)session_emit(keeper->session, EVENT_NOTICE, NULL,
				   str_trim(buf_str(&line)), NULL, &err);
		(void)buf_addstr(&keeper->words.trouble, buf_str(&line));
	}
	buf_fini(&line);
}

/*
 * Say in RESULT: "while it ran, changed: 2 files, removed: 214 under src/; glovebox undo
 * takes it back". Two looks show that something has changed, and not who changed it.
 */
static void changes_tell(const struct keeper *keeper,
			 const struct undo_look_report *report, struct tool_result *result)
{
	struct buf line;

	if (!has_changes(report))
		return;
	buf_init(&line, 8 << 10);
	count_add(&line, "changed", report->changed);
	count_add(&line, "added", report->added);
	count_add(&line, "removed", report->removed);
	if (report->below != NULL && report->below[0] != '\0') {
		(void)buf_adds(&line, " under ");
		text_add_name(&line, str_of(report->below));
		(void)buf_addc(&line, '/');
	}
	(void)buf_end_line(&result->text);
	/* The steps of a session in a layer are in the layer, where no verb finds them. */
	if (keeper->session->review != NULL)
		(void)buf_addf(&result->text,
			       "[while it ran, %s, in the layer of review %s]\n",
			       line.data, keeper->session->review->meta.id);
	else
		(void)buf_addf(&result->text,
			       "[while it ran, %s; glovebox undo takes it back]\n",
			       line.data);
	value_set(tool_details(result), "changes", fields_print(change_fields, report));
	buf_fini(&line);
}

static void left_note(struct keeper *keeper, const struct undo_look_report *report)
{
	char size[32];

	if (report->left_files <= 0 || keeper->words.told_left)
		return;
	keeper->words.told_left = true;
	(void)buf_addf(&keeper->words.trouble,
		       "[%" PRId64 " files (%s) that git does not hold are more than undo "
		       "keeps: what commands do to these stays]\n",
		       report->left_files, text_size((uint64_t)report->left_bytes, size));
}

/*
 * A call has waited for the session's first look at a large tree: the log of its caller
 * says so, once. An agent's first look is made while its model works, and no call waits
 * for it.
 */
static void first_look_tell(const struct keeper *keeper, int64_t files, double seconds)
{
	struct running *waiting = keeper_waiting_command(keeper);
	char text[ERR_TEXT_MAX];

	if (keeper->list.state != LIST_UNKNOWN || keeper->turn_ms != 0 ||
	    waiting == NULL || files < LOOK_TOLD_FROM)
		return;
	(void)snprintf(text, sizeof(text),
		       "looked at %" PRId64 " files, %.1f s: for `glovebox undo`, before the "
		       "first command",
		       files, seconds);
	running_log(waiting, "info", EVENT_LOG_UNDO, str_of(text));
}

/* More has changed at once than the kernel keeps notices of: say so once. */
static void missed_tell(struct keeper *keeper, const struct undo_look_report *report)
{
	if (keeper->words.told_missed || (report->findings & UNDO_FOUND_MISSED) == 0)
		return;
	keeper->words.told_missed = true;
	(void)buf_adds(&keeper->words.trouble,
		       "[more changed at once than could be followed, so for undo the whole "
		       "workspace was looked at]\n");
}

/* In a large workspace that cannot be watched each command waits for a look: say so once. */
static void unwatched_tell(struct keeper *keeper, const struct undo_look_report *report)
{
	if (report->unwatched == NULL || report->files < LOOK_TOLD_FROM ||
	    keeper->words.told_unwatched)
		return;
	keeper->words.told_unwatched = true;
	(void)buf_addf(&keeper->words.trouble,
		       "[changes in this workspace cannot be watched (%s): for undo, "
		       "%" PRId64 " files are looked at with each command, %.2f s]\n",
		       report->unwatched, report->files, (double)report->us / 1e6);
}

/* Note what the look says of the list, and of the looks that follow. */
static void look_note(struct keeper *keeper, const struct undo_look_report *report)
{
	const bool differs = (report->findings & UNDO_FOUND_DIFFERS) != 0;
	const bool all = (report->findings & UNDO_FOUND_ALL) != 0;
	const bool watched = (report->findings & UNDO_FOUND_WATCHED) != 0;

	if ((report->findings & UNDO_FOUND_WRITTEN) != 0)
		keeper->list.unsaved = false;
	else if (differs)
		keeper->list.unsaved = true;
	keeper->list.owes_whole = (keeper->list.owes_whole && !all) ||
				  (report->findings & UNDO_FOUND_OWES) != 0;
	keeper->list.young = differs && !watched;
	/* Descriptors that were given to a later look are not those of its watcher. */
	keeper->list.watched = (report->findings & UNDO_FOUND_POLLED) != 0 &&
			       keeper->list.events >= 0 && keeper->list.pending >= 0;
	/* Watches of no use would go on as long as the instance does. */
	if (!watched)
		fd_close(&keeper->list.events);
	keeper->list.rows = report->rows;
	keeper->look.us = all && watched ? KEEPER_TOLD_US : report->us;
	unwatched_tell(keeper, report);
	missed_tell(keeper, report);
	if ((report->findings & UNDO_FOUND_SECRETS) != 0)
		masking_ages(keeper->session);
	if ((report->findings & UNDO_FOUND_UNKNOWN) != 0)
		(void)buf_adds(&keeper->words.trouble,
			       "[what this command has changed cannot be undone: the list "
			       "with which to compare was lost]\n");
}

static void sync_take(struct keeper *keeper, const struct tool_result *result,
		      const struct undo_look_report *report)
{
	const struct value *details = result->details;
	const bool written = (report->findings & UNDO_FOUND_WRITTEN) != 0;
	struct err err = {0};

	if (result->status != RESULT_DONE) {
		keeper_give_up(keeper, str_trim(buf_str(&result->text)).size > 0
					       ? result->text.data
					       : "the checkpoint failed");
		return;
	}
	if (keeper->look.owner != NULL && keeper->look.owner->changes == CHANGES_POSSIBLE)
		keeper->look.owner->changes = CHANGES_SEEN;
	keeper->list.looks++;
	links_make(keeper, value_member(details, "link"));
	if (written && !undo_store_take_list(keeper->store,
					     keeper->list.own >= 0 ? keeper->list.own
								   : keeper->look.fds[0],
					     &err)) {
		keeper_give_up(keeper, err.text);
		return;
	}
	list_take(keeper, written);
	keeper->steps.looked = keeper->steps.count;
	keeper->list.looked_ms = keeper->list.looking_ms;
	look_note(keeper, report);
	first_look_tell(keeper, report->files, result->seconds);
	keeper->list.state = LIST_FRESH;
	left_note(keeper, report);
	keeper->look.again = nested_take(keeper, details) && keeper->look.is_step;
	if (keeper->look.owner != NULL) {
		changes_tell(keeper, report, &keeper->look.owner->result);
		unignored_tell(report, &keeper->look.owner->result);
	}
	lost_tell(keeper, report);
}

/* Give the log its name; UNIGNORED files that have come into view are no part of the step. */
static bool log_name(struct keeper *keeper, bool alone, int64_t unignored, struct err *err)
{
	struct undo_meta meta = meta_of(keeper, alone);
	struct buf title;

	buf_init(&title, 4 * KEEPER_TITLE_MAX);
	if (keeper->look.is_step && unignored > 0) {
		(void)buf_adds(&title, "(not ");
		(void)text_add_count(&title, (size_t)unignored, "file");
		(void)buf_adds(&title, " that had been ignored) ");
		(void)buf_addstr(&title, meta.title);
		meta.title = buf_str(&title);
	}
	const bool fine = undo_store_name_log(keeper->store, keeper->look.fds[2],
					      keeper->look.log, &meta, err);
	buf_fini(&title);
	return fine;
}

/* Holds the log of the look anything but what went to the steps of file tools? */
static bool log_has_more(const struct keeper *keeper)
{
	struct undo_plan plan;

	undo_plan_init(&plan);
	plan.own = true;
	const bool fine = undo_plan_add(&plan, keeper->store, keeper->look.log, NULL);
	undo_plan_settle(&plan);
	const bool more = !fine || plan.count > 0 || plan.refused.count > 0;
	undo_plan_fini(&plan);
	return more;
}

/*
 * Count the log of the look as a step, unless all that it holds went to the steps of file
 * tools: those since the last look wrote beside the command.
 */
static void command_add_step(struct keeper *keeper)
{
	uint32_t tools[UNDO_BESIDE_MAX];
	size_t count = 0;

	for (size_t i = keeper->steps.looked;
	     i < keeper->steps.count && count < UNDO_BESIDE_MAX; i++) {
		size_t at = count++;

		/* The tools are in the order in which they ended. */
		for (; at > 0 && tools[at - 1] > keeper->steps.items[i].number; at--)
			tools[at] = tools[at - 1];
		tools[at] = keeper->steps.items[i].number;
	}
	if (count > 0)
		undo_store_note_beside(keeper->store, keeper->look.log, tools, count,
				       UNDO_BY_COMMAND);
	if (count == 0 || log_has_more(keeper))
		keeper_add_step(keeper, keeper->look.log, false);
	else
		undo_store_note_beside(keeper->store, keeper->look.log, tools, count,
				       UNDO_CHECKPOINT);
}

/*
 * Give the log its name in the store, or none when it holds nothing. False: the name is
 * taken, and with it the number that the log and the list contain.
 */
static bool log_settle(struct keeper *keeper, const struct undo_look_report *report)
{
	const bool used =
		keeper->look.fds[2] >= 0 && undo_store_is_used(keeper->look.fds[2]);
	const bool alone =
		keeper->look.is_step && !keeper->owes.with_others && report->strange == 0;
	struct err err = {0};

	if (used && keeper->look.blank && !log_name(keeper, alone, report->unignored, &err)) {
		if (err.code == EEXIST)
			return false;
		keeper_give_up(keeper, err.text);
		return true;
	}
	if (!used && !keeper->look.blank && keeper->look.fds[2] >= 0)
		undo_store_drop_log(keeper->store, keeper->look.log);
	else if (used && keeper->look.is_step)
		command_add_step(keeper);
	/* A log without changes has contents of files too young to be known by their times. */
	keeper->changes += keeper->look.is_step && has_changes(report);
	if (used)
		untidy_note(keeper, keeper->look.log);
	return true;
}

/*
 * Has the worker of the look been killed, or run out of memory, for the first time? Then
 * another worker looks again, once. The part of the log that the first worker had written
 * is no step.
 */
static bool is_lost_once(struct keeper *keeper, const struct running *running)
{
	const bool again = running->busy.lost && !keeper->look.lost_one &&
			   !is_broken(keeper) && cell_broken(keeper->session->cell) == NULL;

	keeper->look.lost_one = running->busy.lost;
	if (again && !keeper->look.blank && keeper->look.fds[2] >= 0)
		undo_store_drop_log(keeper->store, keeper->look.log);
	return again;
}

/* A command that has ended during the look is owed a look of its own. */
static void owe_next(struct keeper *keeper)
{
	if (!keeper->owes_next.owed || is_broken(keeper))
		return;
	list_ages(keeper);
	free(keeper->owes.title);
	keeper->owes = keeper->owes_next;
	keeper->owes_next = (struct keeper_owner){0};
}

static void sync_done(void *context, struct running *running)
{
	struct keeper *keeper = context;
	struct undo_look_report report = {.strange = -1};
	struct err err;

	(void)fields_read(running->result.details, undo_look_report_fields, &report, NULL,
			  NULL);
	call_over(&keeper->look.call, running);
	wait_end(keeper->session);
	keeper->look.tends = false;
	if (is_lost_once(keeper, running) || !log_settle(keeper, &report)) {
		/*
		 * The look is still owed, and begins anew when the queue is next looked
		 * at.
		 */
		descriptors_close(keeper->look.fds);
		return;
	}
	keeper->look.again = false;
	nested_tell(keeper, &running->result);
	if (!is_broken(keeper))
		sync_take(keeper, &running->result, &report);
	files_put_back(keeper);
	keeper->owes.owed = keeper->look.again;
	/*
	 * The worker of the next look audits first. A call that waits for this look waits
	 * for the next one, too.
	 */
	if (keeper->look.again)
		return;
	owe_next(keeper);
	if (keeper->look.owner != NULL) {
		keeper_release_owner(keeper);
	} else if (!is_broken(keeper)) {
		/*
		 * No call waits now, but one may wait for the next checkpoint: make its
		 * files already.
		 */
		fd_close(&keeper->look.fds[0]);
		(void)keeper_sync_files(keeper, &err);
		/* The session may have come to rest during this look. */
		if (keeper->rest.timer.due_ms == CLOCK_NEVER &&
		    (keeper->list.unsaved || keeper->list.owes_whole))
			rest_tend(&keeper->rest.timer);
	}
}

static enum undo_look_wish look_wishes(const struct keeper *keeper)
{
	const struct keeper_look *look = &keeper->look;
	const struct keeper_list *list = &keeper->list;

	/* An empty list counts only when this session has seen an empty workspace. */
	return (look->is_step ? UNDO_LOOK_STEP : 0U) |
	       (list->state != LIST_UNKNOWN && list->rows == 0 ? UNDO_LOOK_KNOWN : 0U) |
	       (keeper->session->one_call ? UNDO_LOOK_ONCE : UNDO_LOOK_KEEP) |
	       (list->unsaved ? UNDO_LOOK_STALE : 0U) |
	       (look->tends && list->owes_whole ? UNDO_LOOK_WHOLE : 0U) |
	       (look->tends ? UNDO_LOOK_WRITE : 0U) |
	       (keeper->objects.may_link ? UNDO_LOOK_LINKS : 0U);
}

/* Begin the checkpoint that is due. */
static void keeper_sync_start(struct keeper *keeper)
{
	auto_value struct value *arguments = NULL;
	struct undo_look_order order;
	struct err err = {0};

	running_free(keeper->look.call.over);
	keeper->look.call.over = NULL;
	/* Without an owner the look would count the changes of a job as nobody's. */
	if (keeper->list.state != LIST_UNKNOWN)
		owe_job(keeper);
	keeper->look.is_step = keeper->owes.owed;
	if (!files_open_all(keeper, &err)) {
		descriptors_close(keeper->look.fds);
		keeper_give_up(keeper, err.text);
		keeper_release_owner(keeper);
		return;
	}
	order = (struct undo_look_order){
		.log = keeper->look.log,
		.began_ms = keeper->look.is_step ? keeper->owes.began_ms : 0,
		.ended_ms = keeper->look.is_step ? keeper->owes.ended_ms : 0,
		.looks = (int64_t)keeper->list.looks,
		.wishes = look_wishes(keeper),
	};
	arguments = fields_print(undo_look_order_fields, &order);
	const struct request request = {
		.tool = "checkpoint",
		.arguments = arguments,
		.fds = {keeper->look.fds[0], keeper->look.fds[1], keeper->look.fds[2],
			keeper->list.events, keeper->list.pending},
		.fd_count = keeper->list.events >= 0 && keeper->list.pending >= 0 ? 5 : 3,
		.by_front = true,
		.quiet = true,
	};
	/*
	 * The look will take as long as the last one. A loop that sleeps meanwhile would
	 * wake up later than the look ends.
	 */
	if (keeper->look.owner != NULL && keeper->session->cores > 1 &&
	    keeper->look.us < STAY_MOST_US)
		running_stay(keeper->session, keeper->look.us + STAY_MORE_US);
	keeper->list.looking_ms = clock_wall_ms();
	keeper->closing.wait = (struct session_wait){0};
	call_start(keeper, &keeper->look.call, &request, sync_done);
}

/*
 * Begin the look that no call waits for, if one is due: at the whole workspace, or only
 * to have the list written. What it finds that the looks before have missed belongs to
 * the last command.
 */
static bool keeper_tend(struct keeper *keeper)
{
	const struct str mark = STR("(found later) "), of = str_of(keeper->owes.title);
	struct buf title;

	if (is_broken(keeper) || is_under_way(&keeper->look.call) ||
	    (!keeper->list.unsaved && !keeper->list.owes_whole))
		return false;
	keeper->look.tends = true;
	if (keeper->list.owes_whole && !keeper->owes.owed &&
	    keeper->list.state == LIST_FRESH) {
		buf_init(&title, 4 * KEEPER_TITLE_MAX);
		if (!str_starts(of, mark))
			(void)buf_addstr(&title, mark);
		(void)buf_addstr(&title, of);
		free(keeper->owes.title);
		keeper->owes.title = buf_take(&title);
		keeper->owes.owed = true;
	}
	keeper_sync_start(keeper);
	return true;
}

/*
 * Work that undo does while a session rests, so that no call waits for it. It makes the
 * files for the next steps and the next checkpoint, it takes the look with which the
 * next command would begin, and it tidies the store.
 */

enum {
	/* Calls of one answer follow each other faster than this. */
	REST_MS = 5,
	/*
	 * A file that changed just before a look is compared by its content in the next
	 * look, once. That is better done now, when the change is older than the kernel's
	 * ticks (checkpoint.c).
	 */
	SETTLE_MS = 25,
	/* Looking at everything waits until nobody is at work. */
	TEND_MS = 2000,
};

static bool is_quiet(const struct session *session)
{
	return session->queued_files + session->queued_others + session->busy_files +
		       session->busy_others ==
	       0;
}

/* Does nobody call, and may work be done that nobody waits for? */
static bool is_resting(const struct keeper *keeper)
{
	return !is_broken(keeper) && !is_under_way(&keeper->look.call) &&
	       keeper->store != NULL && is_quiet(keeper->session) && !is_lost(keeper);
}

static void tend_due(struct timer *timer)
{
	struct keeper *keeper = timer->context;

	if (is_resting(keeper))
		(void)keeper_tend(keeper);
}

static void rest_tend(struct timer *timer)
{
	timer->due = tend_due;
	timer->due_ms = clock_now_ms() + TEND_MS;
}

static void rest_due(struct timer *timer)
{
	struct keeper *keeper = timer->context;
	const bool settles = keeper->rest.settles;
	struct err err;

	if (!is_resting(keeper))
		return;
	keeper_tidy(keeper);
	fd_close(&keeper->look.fds[0]);
	/* Files that cannot be made now are made when needed; a failure is reported then. */
	if (keeper->list.state != LIST_UNKNOWN)
		(void)keeper_sync_files(keeper, &err);
	/* A look that takes long would delay the next call. */
	if (keeper->list.state == LIST_UNKNOWN || keeper->look.us > KEEPER_WAIT_US) {
		if (keeper->list.unsaved || keeper->list.owes_whole)
			rest_tend(timer);
		return;
	}
	if (keeper->list.state != LIST_FRESH || (keeper->list.young && settles))
		keeper_checkpoint(keeper, false);
	/* Do not look more often: somebody else may write here without end. */
	keeper->rest.settles = true;
	if (!settles)
		timer->due_ms = clock_now_ms() + SETTLE_MS;
	else if (keeper->list.unsaved || keeper->list.owes_whole)
		rest_tend(timer);
}

/*
 * A call has ended: once the session is quiet, make ahead what the next call would wait
 * for.
 */
static void keeper_look_ahead(struct keeper *keeper)
{
	struct timer *timer = &keeper->rest.timer;

	if (is_broken(keeper) || keeper->session->one_call)
		return;
	keeper->rest.settles = false;
	timer->due = rest_due;
	timer->context = keeper;
	timer->due_ms = clock_now_ms() + REST_MS;
	loop_add_timer(keeper->session->loop, timer);
}
