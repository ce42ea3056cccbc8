/* writer: makes the layer of a delegate, and lands it when the caller says so. */

#include "front/review/writer.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "front/review/layered.h"
#include "front/review/print.h"
#include "policy/policy.h"
#include "session/approval.h"
#include "session/review.h"
#include "session/session.h"
#include "tool/event.h"
#include "view/review.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TASK_SHOWN = 200,
	CONFLICTS_MAX = 1000,
	CONFLICT_BYTES_MAX = 1 << 20, /* of their paths */
	NOTES_MAX = 20,
	TEXT_MAX = 1 << 20,  /* of all notes */
	TOLD_MAX = 16 << 20, /* paths and notes; JSON has six bytes for one at most */
};

/* The delegate is told one of these: its caller works in the folder, or in a layer. */
static const char in_folder[] =
	"Other agents write in this workspace at the same time, and you do not see their work: "
	"you write into a layer (review %s), which is put into the workspace when you have "
	"ended. Change only what your task needs.\n";
static const char in_layer[] =
	"You write into a layer (review %s), which is put into the layer of your caller when you "
	"have ended. Other agents may write at the same time, and you do not see their work. "
	"Change only what your task needs.\n";

bool writer_begin(struct setup *setup, const struct value *request, struct err *err)
{
	struct str task = value_str(value_member(request, "task"));
	struct buf agent;

	/* "coder: Fix the parser", for the list of layers. */
	buf_init(&agent, NAME_MAX);
	(void)buf_addf(&agent, "%s:", value_text(value_member(request, "agent")));
	task.size = text_character_border(task, TASK_SHOWN);
	auto_free char *shown = memory_copy_str(task);
	const char *const words[] = {agent.data, shown, NULL};
	const bool fine =
		layered_begin(setup,
			      &(struct layered_wish){
				      .name = value_text(value_member(request, "layer")),
				      .by = WRITER_VERB,
				      .words = words,
				      .prompt = setup->below.count > 0 ? in_layer : in_folder,
			      },
			      err);
	buf_fini(&agent);
	return fine;
}

struct review *writer_end(struct setup *setup)
{
	struct review *review = setup->review;

	setup->review = NULL;
	if (review == NULL || (review->life >= REVIEW_USED && !review_is_empty(review)))
		return review;
	if (review->life >= REVIEW_USED)
		review_remove(review);
	review_close(review);
	return NULL;
}

/* Landing. */

static void add_conflicts(const struct review_report *report, struct value *told)
{
	struct value *rows = value_new_array();
	size_t bytes = 0;

	for (size_t i = 0; i < report->count && value_count(rows) < CONFLICTS_MAX; i++) {
		const struct review_change *change = &report->changes[i];

		if (change->class != REVIEW_CONFLICTS && change->class != REVIEW_HAS_NO_BASE)
			continue;
		bytes += strlen(change->path);
		if (bytes > CONFLICT_BYTES_MAX)
			break;
		struct value *row = value_new_object();

		value_set_text(row, "path", change->path);
		if (change->overlap.items[0] > 0) {
			struct value *lines = value_new_array();

			value_append(lines, value_new_integer(change->overlap.items[0]));
			value_append(lines, value_new_integer(change->overlap.items[1]));
			value_set(row, "lines", lines);
		}
		value_append(rows, row);
	}
	value_set_integer(told, "conflict_count", report->conflicts);
	value_set(told, "conflicts", rows);
}

/* Add each line of TEXT to NOTES. */
static void add_lines(struct str text, struct value *notes)
{
	struct str line;

	while (str_next_line(&text, &line) && value_count(notes) < NOTES_MAX)
		value_append(notes, value_new_str(line));
}

/* Does the layer keep commits, because a conflict has kept them back or git has refused? */
static bool keeps_commits(const struct review_report *report)
{
	return report->branch_count > 0 && (report->conflict || report->trouble != NULL);
}

static struct value *tell(const struct review *review, const struct review_report *report)
{
	struct value *told = value_new_object(), *notes = value_new_array();
	struct buf text;

	buf_init(&text, TEXT_MAX);
	if (report->broken_off != NULL) {
		(void)buf_addf(&text, "%s. ", report->broken_off);
		review_say_unfinished(review->meta.id, report->step, &text);
		(void)buf_addc(&text, '\n');
	}
	print_review_commits(review->meta.id, report,
			     keeps_commits(report) ? PRINT_COMMITS_STAY
						   : PRINT_COMMITS_LANDED,
			     &text);
	/* There may be more refused names than notes: they come last. */
	print_review_refused(&review->meta, report, &text);
	add_lines(buf_str(&text), notes);
	buf_fini(&text);
	value_set_text(told, "review", review->meta.id);
	value_set_integer(told, "files", report->landed ? report->lands : 0);
	add_conflicts(report, told);
	value_set(told, "notes", notes);
	if (report->step != 0)
		value_set_integer(told, "step", report->step);
	return told;
}

/* Is nothing in the layer that may still be landed? */
static bool is_all(const struct review_report *report)
{
	return report->landed && !report->conflict && report->broken_off == NULL &&
	       report->outside == 0 && report->kept == 0 &&
	       !review_report_lacks_commits(report) && !keeps_commits(report);
}

/*
 * Land REVIEW in SESSION, which shows it; LENDS: it does not. *TOLD becomes the data of
 * EVENT_LANDED.
 */
static bool land(struct session *session, struct review *review, bool lends,
		 struct value **told, struct err *err)
{
	const struct review_wish wish = {
		.lands = true,
		.rest = true,
		.unheard = true,
		.lends = lends,
	};
	struct review_report report = {.diff = -1};
	struct tool_result result;

	tool_result_init(&result);
	const bool ok = session_review(session, review, &wish, &report, &result) ||
			err_set(err, EIO, "%s", result.text.data);
	if (ok) {
		*told = tell(review, &report);
		if (is_all(&report))
			(void)review_set_state(review, REVIEW_LANDED, NULL);
	}
	review_report_fini(&report);
	tool_result_fini(&result);
	return ok;
}

/* Land REVIEW in a session of SETUP. */
static bool land_alone(struct setup *setup, struct review *review, struct value **told,
		       struct err *err)
{
	struct session_options options = {.rests = true, .cancel_fd = -1};
	struct review_shown shown = {0};
	struct session *session = NULL;
	bool ok = review_shown_fill(&shown, review, err);

	if (ok) {
		setup->shown = shown.entries;
		ok = setup_session_err(setup, &options, &session, err) &&
		     land(session, review, false, told, err);
	}
	session_close(session);
	review_shown_fini(&shown);
	return ok;
}

/* Tell the caller that nothing was landed, and why. */
static struct value *tell_trouble(const char *id, const struct err *err)
{
	struct value *told = value_new_object(), *notes = value_new_array();

	value_append(notes, value_new_text(err->text));
	value_set_text(told, "review", id);
	value_set_integer(told, "files", 0);
	value_set_integer(told, "conflict_count", 0);
	value_set(told, "conflicts", value_new_array());
	value_set(told, "notes", notes);
	return told;
}

static bool print_landed(const struct value *told, struct buf *line)
{
	const struct event event = {
		.kind = EVENT_LANDED,
		.wall_ms = clock_wall_ms(),
		.data = told,
	};

	return event_print(&event, line) && buf_addc(line, '\n');
}

void writer_land(struct setup *landing, struct review *review)
{
	auto_value struct value *told = NULL;
	struct err err = {0};
	struct buf line;

	if (!land_alone(landing, review, &told, &err))
		told = tell_trouble(review->meta.id, &err);
	buf_init(&line, TOLD_MAX);
	if (print_landed(told, &line))
		(void)fd_write_all(STDOUT_FILENO, line.data, line.size, NULL);
	buf_fini(&line);
}

/* For the caller. */

static bool open_layer(const char *workspace, const char *id, struct review **review,
		       struct err *err)
{
	struct buf folder;

	buf_init(&folder, PATH_MAX);
	const bool ok = (review_place(getenv("XDG_STATE_HOME"), getenv("HOME"), &folder) ||
			 err_set(err, ENOENT, "there is no home folder")) &&
			review_open(folder.data, workspace, id, review, err);
	buf_fini(&folder);
	return ok;
}

bool writer_is_left(const char *workspace, const char *id)
{
	struct review *review = NULL;
	bool is_left = false;

	if (open_layer(workspace, id, &review, NULL)) {
		is_left = review->meta.state == REVIEW_OPEN;
		if (is_left && review_is_bare(review) &&
		    review_lock(review, WRITER_VERB, NULL)) {
			review_remove(review);
			is_left = false;
		}
	}
	review_close(review);
	return is_left;
}

bool writer_land_in(struct session *session, const char *workspace, const char *id,
		    struct buf *line)
{
	auto_value struct value *told = NULL;
	struct review *review = NULL;
	struct err err = {0};

	if (!open_layer(workspace, id, &review, &err) ||
	    !review_lock(review, WRITER_VERB, &err) || !session_has_room(session, &err) ||
	    !land(session, review, true, &told, &err))
		told = tell_trouble(id, &err);
	review_close(review);
	return print_landed(told, line);
}

bool writer_show(struct session *session, const char *workspace, const char *id)
{
	struct review *review = NULL;
	bool shows = false;

	if (!open_layer(workspace, id, &review, NULL))
		return false;
	for (size_t i = 0; i < review->meta.tree_count; i++) {
		const char *tree = review->meta.trees[i].path;
		auto_close int upper = review_open_upper(review, i);
		struct buf source, path;

		buf_init(&source, PATH_MAX);
		buf_init(&path, PATH_MAX);
		(void)buf_addf(&path, REVIEW_SHOWN "/%s", id);
		if (strcmp(tree, workspace) != 0 && path_within(tree, workspace))
			(void)buf_addf(&path, "/%s", path_relative(tree, workspace));
		if (path_within(tree, workspace) && upper >= 0 &&
		    fd_real_path(upper, &source) && !path.overflowed) {
			extra_show(session, path.data, source.data, &upper);
			shows = true;
		}
		buf_fini(&source);
		buf_fini(&path);
	}
	review_close(review);
	return shows;
}
