/* extra: opens, grants and shows folders outside of the policy. */
#include "session/extra.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "cell/anchor.h"
#include "cell/pending.h"
#include "session/approval.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A granted folder that the anchor is adding to the view of all workers. */
struct widening {
	struct session *session;
	struct widening *next;
	/* of the call that waits for the folder; the call may have ended */
	uint64_t number;
	struct extra *extra; /* valid as long as that call exists */
	struct cell_spec addition;
	char *path, *grant;
	struct stat st;
	bool writable, failed;
	struct err why;
};

/* Cut the last name off PATH; false when nothing would be left. */
static bool cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash == NULL || slash[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

/*
 * Open the folder that AT is, that AT lies in, or, when WRITES, in which AT would be
 * made. AT becomes the folder's name. -1: there is none.
 */
static int folder_open(char *at, bool writes)
{
	struct stat st;

	for (;;) {
		auto_close int fd = open(at, O_PATH | O_CLOEXEC);

		if (fd >= 0 && (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)))
			return fd_take(&fd);
		if ((fd < 0 && (errno != ENOENT || !writes)) || !cut(at))
			return -1;
	}
}

static bool root_find(const char *path, bool writes, struct extra *extra, struct err *why)
{
	auto_free char *at = memory_copy(path);
	struct buf real;

	extra->root =
		(struct shape_extra){.fd = folder_open(at, writes), .writable = writes};
	*why = (struct err){0};
	if (extra->root.fd < 0)
		return false;
	buf_init(&real, PATH_MAX);
	bool same = fd_real_path(extra->root.fd, &real) && strcmp(real.data, at) == 0;
	buf_fini(&real);
	if (!same)
		return err_set(
			why, ELOOP,
			"it is reached by a link; name it by the path that it really has");
	extra->root.path = memory_copy(at);
	return true;
}

static void extra_free(struct extra *extra)
{
	fd_close(&extra->root.fd);
	free((char *)(uintptr_t)extra->root.path);
	free(extra->because);
	free(extra->rule);
	free(extra);
}

/* Does RUNNING already want a folder that covers EXTRA? Then one question is enough. */
static bool is_wanted(const struct running *running, const struct extra *extra, size_t *count)
{
	*count = 0;
	for (const struct extra *at = running->extras; at != NULL; at = at->next) {
		++*count;
		if (path_within(extra->root.path, at->root.path) &&
		    (at->root.writable || !extra->root.writable))
			return true;
	}
	return false;
}

bool extra_want(struct running *running, const struct verdict *verdict, struct err *why)
{
	const struct cell_spec *cell = cell_spec(running->session->cell);
	struct extra *extra = memory_alloc(sizeof(*extra));
	struct extra **last = &running->extras;
	bool wanted = false, ok;
	size_t count = 0;

	ok = root_find(verdict->outside->path, verdict->outside->writes, extra, why) &&
	     shape_judge_extra(cell, &extra->root, why);
	if (ok)
		wanted = is_wanted(running, extra, &count);
	if (ok && !wanted && count == ANCHOR_EXTRAS_MAX)
		ok = err_set(why, E2BIG, "one call may ask for %d folders",
			     ANCHOR_EXTRAS_MAX);
	if (!ok || wanted) {
		extra_free(extra);
		return ok;
	}
	extra->because = memory_copy(verdict->because);
	extra->rule = memory_copy(verdict->rule);
	while (*last != NULL)
		last = &(*last)->next;
	*last = extra;
	return true;
}

static void widening_free(struct widening *widening)
{
	struct widening **at = &widening->session->first_widening;

	while (*at != widening)
		at = &(*at)->next;
	*at = widening->next;
	spec_fini(&widening->addition);
	free(widening->path);
	free(widening->grant);
	free(widening);
}

static struct running *waiting_for(const struct widening *widening)
{
	struct running *at = widening->session->first;

	while (at != NULL && (at->number != widening->number || at->state != RUNNING_NEW))
		at = at->next;
	return at;
}

static void fail(struct running *running, const struct err *why)
{
	(void)tool_fail(&running->result,
			"The folder could not be shown: %s. Nothing ran.", why->text);
	running_finish(running);
}

/*
 * Folders are added one after the other: each builds on the guard that the one before has
 * left.
 */
static void first_begin(struct session *session)
{
	struct widening *first;
	struct err err;

	while ((first = session->first_widening) != NULL) {
		struct running *running = waiting_for(first);

		if (running != NULL &&
		    shape_extra(cell_spec(session->cell), &first->extra->root, 1,
				&first->addition, &err) &&
		    cell_widen(session->cell, &first->addition, &err))
			return;
		widening_free(first);
		if (running != NULL)
			fail(running, &err);
	}
}

/*
 * Handle the anchor's answer in a timer of its own, so that no other code is in the
 * middle of its work.
 */
static void answer_due(struct timer *timer)
{
	struct session *session = timer->context;
	struct widening *first = session->first_widening;
	struct running *running = waiting_for(first);
	struct extra *extra = first->extra;
	const struct err why = first->why;
	const bool failed = first->failed;

	loop_remove_timer(timer);
	*timer = (struct timer){0};
	if (!failed) {
		cell_set_widened(session->cell, &first->addition);
		policy_show(session->policy, first->path, first->writable);
		if (first->writable)
			pending_grant(cell_pending(session->cell), first->path, &first->st);
		/*
		 * Not earlier: the grant names the folder by its number, which is only
		 * safe while the folder is held open.
		 */
		if (value_count(session->granted) < APPROVAL_GRANTS_MAX)
			value_set_boolean(session->granted, first->grant, true);
	}
	widening_free(first);
	first_begin(session);
	if (running != NULL && failed) {
		fail(running, &why);
	} else if (running != NULL) {
		extra->shared = true;
		approval_ask(running);
	}
}

void extra_widened(void *context, const struct err *err)
{
	struct session *session = context;
	struct widening *first = session->first_widening;

	if (first == NULL || session->widened.due != NULL)
		return;
	first->failed = err != NULL;
	if (err != NULL)
		first->why = *err;
	session->widened = (struct timer){.due = answer_due, .context = session};
	loop_add_timer(session->loop, &session->widened);
}

void extra_share(struct running *running, struct extra *extra, char *take_grant)
{
	struct session *session = running->session;
	struct widening *made = memory_alloc(sizeof(*made));
	struct widening **last = &session->first_widening;

	made->session = session;
	made->number = running->number;
	made->extra = extra;
	made->path = memory_copy(extra->root.path);
	made->grant = take_grant;
	made->writable = extra->root.writable;
	(void)fstat(extra->root.fd, &made->st);
	spec_init(&made->addition);
	while (*last != NULL)
		last = &(*last)->next;
	*last = made;
	if (session->first_widening == made)
		first_begin(session);
}

bool extra_needs_worker(const struct running *running)
{
	for (const struct extra *at = running->extras; at != NULL; at = at->next) {
		if (!at->shared)
			return true;
	}
	return false;
}

static bool ask_worker(struct running *running, struct err *why)
{
	struct shape_extra roots[ANCHOR_EXTRAS_MAX];
	struct cell *cell = running->session->cell;
	struct cell_spec addition;
	size_t count = 0;

	for (const struct extra *at = running->extras; at != NULL; at = at->next) {
		if (!at->shared)
			roots[count++] = at->root;
	}
	spec_init(&addition);
	running->asked_worker = shape_extra(cell_spec(cell), roots, count, &addition, why) &&
				cell_ask_widened(cell, running->number, &addition, why);
	spec_fini(&addition);
	return running->asked_worker;
}

/* Note the granted folders on disk before any write in them begins. */
static void note_granted(const struct running *running)
{
	struct pending *record = cell_pending(running->session->cell);
	struct stat st;

	for (const struct extra *at = running->extras; at != NULL; at = at->next) {
		if (!at->shared && at->root.writable && fstat(at->root.fd, &st) == 0)
			pending_grant(record, at->root.path, &st);
	}
}

struct worker_end *extra_take_worker(struct running *running, struct err *why)
{
	struct cell *cell = running->session->cell;
	struct worker_end *worker = NULL;

	*why = (struct err){0};
	if (!running->asked_worker)
		(void)ask_worker(running, why);
	else
		worker = cell_take_widened(cell, running->number);
	running->asked_worker = running->asked_worker && worker == NULL;
	if (worker != NULL && !running->mending)
		note_granted(running);
	return worker;
}

static void add_shown(struct buf *out, const char *shown)
{
	if (out->size > 0)
		(void)buf_adds(out, ", ");
	(void)buf_adds(out, shown);
}

/* The path of EXTRA as it is shown to people, owned by the caller. */
static char *shown_path(const struct extra *extra)
{
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(extra->root.path));
	return buf_take(&shown);
}

static bool may_write(const struct running *running)
{
	return running->tool != NULL && !running->quiet &&
	       (running->tool->effects & (EFFECT_WRITES | EFFECT_RUNS)) != 0;
}

void extra_print_written(const struct running *running, struct buf *out)
{
	const struct value *outside = running->session->outside;

	for (const struct extra *at = running->extras; at != NULL; at = at->next) {
		auto_free char *shown = shown_path(at);
		if (at->granted && at->root.writable &&
		    !value_is_true(value_member(outside, shown)))
			add_shown(out, shown);
	}
	for (void *at = value_first(outside); at != NULL; at = value_next(outside, at)) {
		if (value_is_true(value_at(at)))
			add_shown(out, value_key(at));
	}
}

void extra_tell(struct running *running)
{
	struct session *session = running->session;
	struct buf told;

	if (!may_write(running))
		return;
	buf_init(&told, RESULT_TEXT_MAX);
	for (const struct extra *at = running->extras; at != NULL; at = at->next) {
		auto_free char *shown = shown_path(at);

		if (!at->granted || !at->root.writable)
			continue;
		add_shown(&told, shown);
		if (session->outside == NULL)
			session->outside = value_new_object();
		if (!value_is_true(value_member(session->outside, shown)))
			value_set_boolean(session->outside, shown, at->shared);
	}
	if (told.size > 0) {
		(void)buf_end_line(&running->result.text);
		(void)buf_addf(&running->result.text,
			       "[what is written in %s is in no patch, and glovebox undo does "
			       "not put it back]\n",
			       told.data);
	}
	buf_fini(&told);
}

void extra_drop_all(struct running *running)
{
	if (running->asked_worker)
		cell_forget_widened(running->session->cell, running->number);
	running->asked_worker = false;
	while (running->extras != NULL) {
		struct extra *extra = running->extras;

		running->extras = extra->next;
		extra_free(extra);
	}
}

void extra_session_end(struct session *session)
{
	for (struct widening *next, *at = session->first_widening; at != NULL; at = next) {
		next = at->next;
		widening_free(at);
	}
	loop_remove_timer(&session->widened);
}
