/* writer: makes the layer of a delegate, and lands it when the caller says so. */

#include "front/review/writer.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "front/review/print.h"
#include "policy/policy.h"
#include "session/approval.h"
#include "session/review.h"
#include "session/session.h"
#include "tool/event.h"
#include "view/review.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERB "glovebox run (a delegate)"

enum {
	TASK_SHOWN = 200,
	CONFLICTS_MAX = 1000,
	CONFLICT_BYTES_MAX = 1 << 20, /* of their paths */
	NOTES_MAX = 20,
	TEXT_MAX = 1 << 20,  /* of all notes */
	TOLD_MAX = 16 << 20, /* paths and notes; JSON has six bytes for one at most */
};

/* "coder: Fix the parser", for the list of layers. */
static char *command_of(const struct value *request)
{
	struct str task = value_str(value_member(request, "task"));
	struct buf text;

	buf_init(&text, 16 * TASK_SHOWN);
	text_add_name(&text, value_str(value_member(request, "agent")));
	(void)buf_adds(&text, ": ");
	task.size = text_character_border(task, TASK_SHOWN);
	text_add_name(&text, task);
	return buf_take(&text);
}

static void prompt_add(struct setup *setup)
{
	struct buf text;

	buf_init(&text, VALUE_TEXT_MAX);
	(void)buf_addf(&text,
		       "%s\n\nOther agents write in this workspace at the same time, and you do not "
		       "see their work: you write into a layer (review %s), which is put into the "
		       "workspace when you have ended. Change only what your task needs.\n",
		       setup->role.prompt != NULL ? setup->role.prompt : "",
		       setup->review->meta.id);
	free(setup->role.prompt);
	setup->role.prompt = buf_take(&text);
}

bool writer_begin(struct setup *setup, const struct value *request, struct err *err)
{
	const char *id = value_text(value_member(request, "layer"));
	struct review *review = NULL;
	struct buf folder, undo;
	bool ok;

	buf_init(&folder, PATH_MAX);
	ok = review_place(getenv("XDG_STATE_HOME"), getenv("HOME"), &folder)
		     ? review_make(folder.data, setup->workspace, id, VERB, &review, err)
		     : err_set(err, ENOENT, "a layer: set HOME or XDG_STATE_HOME");
	buf_fini(&folder);
	if (!ok)
		return false;
	free(review->meta.command);
	review->meta.command = command_of(request);
	setup->review = review;
	buf_init(&undo, PATH_MAX);
	(void)buf_addf(&undo, "%s/undo", review->path);
	free(setup->undo_folder);
	setup->undo_folder = buf_take(&undo);
	prompt_add(setup);
	return true;
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

static bool land(struct setup *setup, struct review *review, struct value **told,
		 struct err *err)
{
	const struct review_wish wish = {.lands = true, .rest = true};
	struct session_options options = {.rests = true};
	struct review_report report = {.diff = -1};
	struct review_shown shown = {0};
	struct session *session = NULL;
	struct tool_result result;
	bool ok;

	tool_result_init(&result);
	ok = review_shown_fill(&shown, review, err);
	if (ok) {
		setup->shown = shown.entries;
		ok = setup_session_err(setup, &options, &session, err);
	}
	if (ok && !session_review(session, review, &wish, &report, &result))
		ok = err_set(err, EIO, "%s", result.text.data);
	session_close(session);
	if (ok) {
		*told = tell(review, &report);
		if (is_all(&report))
			(void)review_set_state(review, REVIEW_LANDED, NULL);
	}
	review_report_fini(&report);
	review_shown_fini(&shown);
	tool_result_fini(&result);
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

static bool wait_for_word(int word)
{
	char byte;
	ssize_t got;

	do {
		got = read(word, &byte, 1);
	} while (got < 0 && errno == EINTR);
	return got == 1;
}

void writer_land(struct setup *landing, struct review *review, int word)
{
	auto_value struct value *told = NULL;
	struct event event = {.kind = EVENT_LANDED};
	struct err err = {0};
	struct buf line;

	if (!wait_for_word(word))
		return;
	if (!land(landing, review, &told, &err))
		told = tell_trouble(review->meta.id, &err);
	event.wall_ms = clock_wall_ms();
	event.data = told;
	buf_init(&line, TOLD_MAX);
	if (event_print(&event, &line) && buf_addc(&line, '\n'))
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

/* Has a program made nothing at all in REVIEW, whose session was killed? */
static bool is_bare(const struct review *review)
{
	for (size_t i = 0; i < review->meta.tree_count; i++) {
		auto_close int upper = review_open_upper(review, i);
		auto_close int own =
			upper < 0 ? -1
				  : openat(upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool bare = true;
		DIR *folder = own < 0 ? NULL : fdopendir(own);

		if (folder == NULL)
			return false;
		(void)fd_take(&own);
		for (const struct dirent *entry; bare && (entry = readdir(folder)) != NULL;)
			bare = strcmp(entry->d_name, ".") == 0 ||
			       strcmp(entry->d_name, "..") == 0;
		(void)closedir(folder);
		if (!bare)
			return false;
	}
	return true;
}

bool writer_is_left(const char *workspace, const char *id)
{
	struct review *review = NULL;
	bool is_left = false;

	if (open_layer(workspace, id, &review, NULL)) {
		is_left = review->meta.state == REVIEW_OPEN;
		if (is_left && is_bare(review) && review_lock(review, VERB, NULL)) {
			review_remove(review);
			is_left = false;
		}
	}
	review_close(review);
	return is_left;
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
