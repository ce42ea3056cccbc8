/*
 * glovebox undo: restores the files that a tool or a command has changed; docs/undo.md.
 */

#include "base/clock.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/setup.h"
#include "front/verb.h"
#include "session/review.h"
#include "session/session.h"
#include "tui/paint.h"
#include "undo/plan.h"
#include "undo/store.h"
#include "view/review.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TITLE_SHOWN = 60,
};

static const struct option_row undo_options[] = {
	{"list", 'l', OPTION_FLAG, NULL, "list the steps instead, newest first"},
	{"turn", 't', OPTION_FLAG, NULL, "all steps of the turn that the step belongs to"},
	{"to", 0, OPTION_TEXT, "POINT",
	 "all steps above step POINT, or since the mark POINT"},
	{"mark", 0, OPTION_TEXT, "NAME", "undo nothing, and call the present state NAME"},
	{"json", 0, OPTION_FLAG, NULL, "print the result, or one step per line, as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const char *const work_names[] = {"checkpoint", "tool", "command", "undo", "mark"};

static int step_as_json(const struct undo_step *step, FILE *out)
{
	auto_value struct value *row = value_new_object();

	value_set_integer(row, "step", step->number);
	value_set_text(row, "by", work_names[step->work]);
	value_set_text(row, "tool", step->tool);
	value_set_text(row, "title", step->title);
	value_set_text(row, "run", step->run);
	value_set_integer(row, "wall_ms", step->wall_ms);
	if (step->turn_ms != 0)
		value_set_integer(row, "turn_ms", step->turn_ms);
	if (step->agent[0] != '\0')
		value_set_text(row, "agent", step->agent);
	value_set_integer(row, "files", (int64_t)step->files);
	if (step->added > 0)
		value_set_integer(row, "added", (int64_t)step->added);
	if (step->removed > 0)
		value_set_integer(row, "removed", (int64_t)step->removed);
	if (step->folders > 0)
		value_set_integer(row, "folders", (int64_t)step->folders);
	value_set_boolean(row, "undone", step->undone);
	value_set_boolean(row, "whole", step->whole);
	if (step->undoes != 0)
		value_set_integer(row, "undoes", step->undoes);
	if (step->above)
		value_set_boolean(row, "above", true);
	return verb_print_json(row, 0, out);
}

/* Add the first line of a typed text, cleaned for a line of ours. */
static void add_title(struct buf *line, const char *title)
{
	struct str rest = str_of(title), first = STR("");

	(void)str_next_line(&rest, &first);
	size_t size = text_character_border(first, TITLE_SHOWN);
	text_add_exact(line, str_part(first, 0, size));
	if (size < first.size || rest.size > 0)
		(void)buf_adds(line, " …");
}

/* "3 files, +1 -2": of the files, one was made and two were removed. */
static void add_files(struct buf *line, const struct undo_step *step)
{
	if (step->files == 0 && step->folders > 0) {
		(void)text_add_count(line, step->folders, "folder");
		return;
	}
	(void)text_add_count(line, step->files, "file");
	if (step->added > 0)
		(void)buf_addf(line, ", +%zu", step->added);
	if (step->removed > 0)
		(void)buf_addf(line, "%s -%zu", step->added > 0 ? "" : ",", step->removed);
}

static void step_as_line(const struct undo_step *step, FILE *out)
{
	char when[CLOCK_TEXT];
	struct buf line;

	clock_text_local(step->wall_ms, when);
	buf_init(&line, 8 << 10);
	(void)buf_addf(&line, "%5" PRIu32 "  %s  ", step->number, when);
	if (step->tool[0] != '\0')
		(void)buf_addf(&line, "%s ", step->tool);
	if (step->work == UNDO_MARK)
		(void)buf_adds(&line, "mark ");
	add_title(&line, step->title);
	if (step->work != UNDO_MARK) {
		(void)buf_adds(&line, "  (");
		add_files(&line, step);
		(void)buf_adds(&line, step->undone  ? ", undone)"
				      : step->whole ? ")"
				      : step->work == UNDO_BY_UNDO
					      ? ", not finished: run it again)"
					      : ", cut short)");
	}
	(void)fprintf(out, "%s\n", line.data);
	buf_fini(&line);
}

static bool is_same_turn(const struct undo_step *a, const struct undo_step *b)
{
	return a->turn_ms == b->turn_ms && strcmp(a->run, b->run) == 0;
}

/* Print a line above the newest step AT of a turn, about all of its steps. */
static void turn_as_line(const struct undo_steps *steps, size_t at, FILE *out)
{
	const struct undo_step *step = &steps->steps[at];
	size_t count = 0, files = 0, added = 0, removed = 0;
	char when[CLOCK_TEXT];
	struct buf line;

	if (step->turn_ms == 0 ||
	    (at + 1 < steps->count && is_same_turn(step, &steps->steps[at + 1])))
		return;
	for (size_t i = at + 1; i-- > 0 && is_same_turn(step, &steps->steps[i]); count++) {
		files += steps->steps[i].files;
		added += steps->steps[i].added;
		removed += steps->steps[i].removed;
	}
	clock_text_local(step->turn_ms, when);
	buf_init(&line, 8 << 10);
	(void)buf_addf(&line, "turn of %s", when);
	if (step->agent[0] != '\0') {
		(void)buf_adds(&line, ", agent ");
		text_add_name(&line, str_of(step->agent));
	}
	(void)buf_adds(&line, ": ");
	(void)text_add_count(&line, count, "step");
	(void)buf_adds(&line, ", ");
	add_files(&line, &(const struct undo_step){.files = files,
						   .added = added,
						   .removed = removed});
	(void)fprintf(out, "%s\n", line.data);
	buf_fini(&line);
}

static int list_steps(const struct setup *setup, bool json, FILE *out)
{
	struct undo_store *store = NULL;
	struct undo_steps steps = {0};
	struct err err = {0};
	int code = CODE_DONE;
	char size[32];

	if (setup->undo_folder == NULL ||
	    !undo_store_open_old(setup->undo_folder, setup->workspace, &store, &err) ||
	    (store != NULL && !undo_store_steps(store, &steps, &err))) {
		undo_store_close(store);
		return verb_complain(CODE_FAILED, "%s",
				     err.text[0] != '\0' ? err.text
							 : "there is no home folder");
	}
	for (size_t i = steps.count; i-- > 0 && code == CODE_DONE;) {
		if (json) {
			code = step_as_json(&steps.steps[i], out);
			continue;
		}
		turn_as_line(&steps, i, out);
		step_as_line(&steps.steps[i], out);
	}
	if (!json && steps.count == 0)
		(void)fprintf(out, "There is nothing to undo here.\n");
	if (!json && store != NULL)
		(void)fprintf(out, "The store takes %s.\n", text_size(steps.bytes, size));
	undo_steps_fini(&steps);
	undo_store_close(store);
	return code;
}

/* The progress of a long undo, shown on the last line of a terminal. */
static bool show_progress(void *context, const struct event *event, struct err *err)
{
	struct verb_progress *progress = context;
	const struct value *done = value_member(event->data, "progress");
	const struct value *all = value_member(event->data, "total");

	(void)err;
	if (event->kind == EVENT_PROGRESS)
		verb_progress_show(progress, "%.*s: %.0f of %.0f files", TITLE_SHOWN,
				   event->text.data != NULL ? event->text.data : "undo",
				   value_number(done), value_number(all));
	return true;
}

/* Read the steps of the workspace. False: there is no store, or it cannot be read. */
static bool read_steps(const struct setup *setup, struct undo_steps *steps)
{
	struct undo_store *store = NULL;
	const bool found =
		setup->undo_folder != NULL &&
		undo_store_open_old(setup->undo_folder, setup->workspace, &store, NULL) &&
		store != NULL && undo_store_steps(store, steps, NULL);

	undo_store_close(store);
	return found;
}

/* Call the present state of the workspace NAME. */
static int mark_point(const struct setup *setup, const char *name, bool json, FILE *out)
{
	struct err err = {0};
	uint32_t number = 0;

	if (!undo_aim_mark(setup->undo_folder, setup->workspace, name, &number, &err))
		return verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED,
				     "--mark %s", err.text);
	if (json) {
		auto_value struct value *row = value_new_object();

		value_set_text(row, "mark", name);
		value_set_integer(row, "step", number);
		return verb_print_json(row, 0, out);
	}
	(void)fprintf(out, "Marked: %s. To come back here: glovebox undo --to %s\n", name,
		      name);
	return CODE_DONE;
}

/* The undo of a landing opens its review again (session/review.h): say so on OUT. */
static void reopen_reviews(const struct setup *setup, const char *folder, bool json,
			   FILE *out)
{
	struct buf told;

	buf_init(&told, 4 << 10);
	review_reopen(folder, setup->undo_folder, setup->workspace, &told);
	if (!json)
		(void)fputs(told.data, out);
	buf_fini(&told);
}

static int undo_one(struct setup *setup, const struct undo_aim *aim, bool json, FILE *out)
{
	struct verb_progress progress = {.began_ms = clock_now_ms()};
	struct session *session = NULL;
	struct tool_result result;
	struct buf reviews;
	int code;

	/* The session wipes the environment. */
	buf_init(&reviews, PATH_MAX);
	const bool has_reviews =
		review_place(getenv("XDG_STATE_HOME"), getenv("HOME"), &reviews);
	if (isatty(STDERR_FILENO))
		setup->sink = (struct event_sink){show_progress, &progress};
	code = setup_session_once(setup, &session);
	if (code == CODE_DONE) {
		tool_result_init(&result);
		if (aim->run != NULL)
			session_undo_run(session, aim, &result);
		else
			session_undo_aim(session, aim, &result);
		verb_progress_end(&progress);
		if (session_broken(session) != NULL && result.status != RESULT_DONE)
			code = verb_complain(CODE_NO_CELL, "%s", session_broken(session));
		else if (result.status != RESULT_DONE)
			code = result.status == RESULT_DENIED ? CODE_DENIED : CODE_FAILED;
		if (json) {
			auto_value struct value *value = tool_result_value(&result);
			const int printed = verb_print_json(value, 0, out);

			code = code == CODE_DONE ? printed : code;
		} else {
			(void)buf_end_line(&result.text);
			if (code == CODE_DONE)
				(void)fputs(result.text.data, out);
			else
				paint_fold_complain(buf_str(&result.text));
		}
		tool_result_fini(&result);
		session_close(session);
		if (code == CODE_DONE && has_reviews)
			reopen_reviews(setup, reviews.data, json, out);
	}
	buf_fini(&reviews);
	return code;
}

/* Do OPTIONS, of which NUMBER is the word, ask for one thing only? */
static int check_options(const struct options *options, uint64_t *number)
{
	static const char *const ways[] = {"list", "turn", "to", "mark"};
	const char *given = NULL;
	struct err err = {0};

	if (options->word_count > 0 &&
	    (!text_parse_count(options->words[0], UINT32_MAX, number, &err) || *number == 0))
		return verb_complain(CODE_USAGE,
				     "\"%.100s\" is no step; see: glovebox undo --list",
				     options->words[0]);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!options_given(options, ways[i]))
			continue;
		if (options->word_count > 0 && i != 1)
			return verb_complain(CODE_USAGE, "--%s takes no number", ways[i]);
		if (given != NULL && strcmp(given, "list") == 0 && i == 1)
			return verb_complain(CODE_USAGE,
					     "--list shows all steps: it takes no --turn");
		if (given != NULL)
			return verb_complain(CODE_USAGE, "--%s takes no --%s", given,
					     ways[i]);
		given = ways[i];
	}
	return CODE_DONE;
}

static int undo_run(const struct options *options, FILE *out)
{
	bool json = options_given(options, "json");
	struct setup setup = {0};
	struct undo_aim aim = {0};
	struct undo_steps steps = {0};
	struct err err = {0};
	uint64_t number = 0;
	int code = check_options(options, &number);

	if (code != CODE_DONE)
		return code;
	code = setup_open(&setup, options, &(struct setup_flags){.needs_no_base = true});
	if (code == CODE_DONE && options_given(options, "list")) {
		code = list_steps(&setup, json, out);
	} else if (code == CODE_DONE && options_given(options, "mark")) {
		code = mark_point(&setup, options_text(options, "mark"), json, out);
	} else if (code == CODE_DONE) {
		aim.step = (uint32_t)number;
		if (options_given(options, "to"))
			code = undo_aim_to(&aim, setup.undo_folder, setup.workspace,
					   options_text(options, "to"), &err)
				       ? CODE_DONE
				       : verb_complain(CODE_FAILED, "--to %s", err.text);
		/* When no step is found, the session complains. */
		else if (options_given(options, "turn") && read_steps(&setup, &steps))
			(void)undo_aim_widen(&aim, &steps);
		setup.undoes = &aim;
		code = code == CODE_DONE ? undo_one(&setup, &aim, json, out) : code;
	}
	undo_steps_fini(&steps);
	setup_fini(&setup);
	return code;
}

static const char undo_help[] =
	"Put back what the newest step, or the step N, has changed in this workspace. A\n"
	"step is one call of a file tool or one command. Exactly its files are restored,\n"
	"and only when they still hold what it left in them: whatever you have changed\n"
	"since stays, and undo says so. An undo is a step as well: its number undoes it.\n"
	"Nothing outside the files of the step is touched. With --turn all steps of the\n"
	"agent's turn go that the step belongs to, once each of their files was compared.\n"
	"A step of a single call, or of another agent's client, is of no turn and goes\n"
	"alone. With --to the files are put back as they were behind step POINT, or when\n"
	"--mark gave POINT its name: all of them, or none when one has changed since. That\n"
	"is one step, and when it was killed the same command goes on.\n\n"
	"Exit codes: 0 done, 1 refused or failed, 5 the cell could not be built.";

const struct verb verb_undo = {
	.name = "undo",
	.summary = "put back what a tool or a command has changed",
	.arguments = "[N]",
	.help = undo_help,
	.example = "  glovebox undo --list\n  glovebox undo\n  glovebox undo 12\n  glovebox undo --turn\n"
		   "  glovebox undo --mark start\n  glovebox undo --to start",
	.options = undo_options,
	.words_most = 1,
	.folds = true,
	.run = undo_run,
};
