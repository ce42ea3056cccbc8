/*
 * glovebox review, land and drop: looks at a layer that `--review` has made, puts it into the
 * workspace, or throws it away; docs/review.md.
 */

#include "session/review.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "cell/pending.h"
#include "front/review/print.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "session/session.h"
#include "tui/paint.h"
#include "tui/screen.h"
#include "view/below.h"
#include "view/review.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 16 << 20 };

#define PAGER_DEFAULT "less -R"

#define OPTION_ROW_ID                                                                        \
	{                                                                                    \
		"id", 0, OPTION_TEXT, "ID", "this review (default: the newest that is open)" \
	}

static const struct option_row review_options[] = {
	{"list", 'l', OPTION_FLAG, NULL, "list the reviews of this workspace, newest first"},
	{"diff", 'd', OPTION_FLAG, NULL, "print what would change as a diff"},
	{"stat", 's', OPTION_FLAG, NULL, "print only paths, with their lines"},
	{"json", 0, OPTION_FLAG, NULL, "print one JSON object, or one per review"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row land_options[] = {
	OPTION_ROW_ID,
	{"dry-run", 'n', OPTION_FLAG, NULL, "write nothing, and say what would be done"},
	{"hash", 0, OPTION_TEXT, "HASH", "only what the review with this hash has shown"},
	{"mine", 0, OPTION_TEXTS, "PATH", "leave PATH as it is (may be repeated)"},
	{"theirs", 0, OPTION_TEXTS, "PATH",
	 "take the review's PATH, whatever is there (may be repeated)"},
	{"markers", 0, OPTION_FLAG, NULL, "write texts in conflict with marks, as git does"},
	{"no-commits", 0, OPTION_FLAG, NULL, "leave the review's commits in the review"},
	{"yes", 'y', OPTION_FLAG, NULL, "do not ask"},
	{"json", 0, OPTION_FLAG, NULL, "print the result as one JSON object"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row drop_options[] = {
	OPTION_ROW_ID,
	{"yes", 'y', OPTION_FLAG, NULL, "do not ask"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_HELP,
	{0},
};

/* The work of one of the three verbs. */
struct reviewing {
	const struct options *options;
	FILE *out;
	struct setup setup;
	struct buf folder; /* of all layers */
	struct review *review;
	struct review_shown shown;
	bool used;   /* another process works in the layer */
	bool mended; /* a session has put back what a killed one had begun */
	bool colour; /* asked for while all variables are there: a session wipes them */
	struct session *session;
	struct verb_progress progress;
	const char **only, **mine, **theirs; /* owned, with their texts */
};

/* Paths. */

/* WORDS as absolute paths; relative ones begin at the workspace. Links stay. */
static const char **absolute_all(const char *workspace, const char *const *words)
{
	const char **paths;
	struct buf path;
	size_t count = 0;

	while (words != NULL && words[count] != NULL)
		count++;
	paths = memory_array(count + 1, sizeof(*paths));
	for (size_t i = 0; i < count; i++) {
		buf_init(&path, 2 * PATH_MAX);
		/* A path that is too long names nothing. */
		if (!path_normal(workspace, words[i], &path))
			buf_clear(&path);
		paths[i] = memory_copy(path.size > 0 ? path.data : "");
		buf_fini(&path);
	}
	return paths;
}

static void free_all(const char **paths)
{
	for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
		free((void *)(uintptr_t)paths[i]);
	free(paths);
}

/* Opening and closing. */

static bool find_folder(struct buf *folder)
{
	return review_place(getenv("XDG_STATE_HOME"), getenv("HOME"), folder);
}

static int complain_about_layer(const struct err *err)
{
	return verb_complain(err->code == EPERM ? CODE_DENIED : CODE_FAILED, "%s",
			     err->text);
}

/* There is no open layer of WORKSPACE: name the next folder above that has one. */
static int complain_about_none(const struct reviewing *work, const char *workspace)
{
	auto_free char *above = memory_copy(workspace);
	struct review_list list = {0};
	struct buf text;
	struct err err;
	char *slash;

	buf_init(&text, 3 * PATH_MAX);
	while (text.size == 0 && (slash = strrchr(above, '/')) != NULL && slash > above) {
		*slash = '\0';
		if (review_list_read(work->folder.data, above, &list, &err) &&
		    list.open > 0) {
			(void)buf_adds(&text,
				       "There is no review of this folder, but one of ");
			text_add_name(&text, str_of(above));
			(void)buf_adds(&text, " is open: say -C ");
			shell_token_add_word(above, &text);
		}
		review_list_fini(&list);
	}
	if (text.size == 0)
		(void)buf_adds(&text,
			       "There is nothing to review here: no command has run with "
			       "--review, or all of it was landed or dropped.");
	(void)verb_complain(CODE_FAILED, "%s", text.data);
	buf_fini(&text);
	return CODE_FAILED;
}

/* Build the layer again where it lay in memory and is gone, and say so. */
static int restore(struct reviewing *work)
{
	struct err err = {0};
	struct buf told;

	buf_init(&told, TEXT_MAX);
	const bool fine = review_restore(work->review, &told, &err);
	if (told.size > 0)
		paint_fold_complain(buf_str(&told));
	buf_fini(&told);
	return fine ? CODE_DONE : complain_about_layer(&err);
}

/*
 * Open the layer ID of the workspace (NULL: the newest open one). LOCKS: this verb will change
 * it, and nobody may work in it.
 */
static int open_layer(struct reviewing *work, const char *workspace, const char *id,
		      const char *by, bool locks)
{
	struct err err = {0};

	if (!review_open(work->folder.data, workspace, id, &work->review, &err))
		return err.code == ENOENT && id == NULL
			       ? complain_about_none(work, workspace)
			       : complain_about_layer(&err);
	if (!review_lock(work->review, by, &err)) {
		if (err.code != EBUSY || locks)
			return complain_about_layer(&err);
		work->used = true;
	}
	return CODE_DONE;
}

/* Has a session that was killed in REVIEW, which is locked, begun a write without an end? */
static bool has_pending(const struct review *review)
{
	auto_close int folder = fd_open_beneath(review->folder, REVIEW_PENDING, O_PATH);

	return folder >= 0 && pending_waits(folder);
}

/* Let a session of POLICY write the trees of META, and nothing else. */
static void write_trees(struct policy *policy, const struct review_meta *meta)
{
	struct policy_paths *write = &policy->write;

	for (size_t i = 0; i < write->count; i++) {
		free(write->items[i].text);
		free(write->items[i].path);
		free(write->items[i].pattern);
	}
	write->items =
		memory_grow(write->items, meta->tree_count + 1, sizeof(*write->items));
	for (write->count = 0; write->count < meta->tree_count; write->count++) {
		const char *path = meta->trees[write->count].path;

		write->items[write->count] =
			(struct policy_path){.text = memory_copy(path),
					     .path = memory_copy(path)};
	}
}

/*
 * Put back what a session that was killed in the layer had begun to write: a session in the
 * layer does it when it begins, and this one does nothing else. It has the layer's own trees,
 * and no more is put back than the killed one could write.
 */
static int put_back(struct reviewing *work)
{
	const struct review_meta *meta = &work->review->meta;
	struct session_options options = {.rests = true, .cancel_fd = -1};
	struct session *session = NULL;
	struct setup setup = {0};
	struct err err = {0};
	int code = setup_open(&setup, work->options,
			      &(struct setup_flags){.needs_no_base = true});

	if (code == CODE_DONE) {
		write_trees(setup.policy, meta);
		setup.review = work->review;
		if (!below_open(work->folder.data, setup.workspace, meta->over,
				meta->over_count, "glovebox land", &setup.below, &err) ||
		    !setup_session_err(&setup, &options, &session, &err))
			code = verb_complain(
				CODE_FAILED,
				"A process was killed while it wrote in review %s. What it had "
				"begun could not be put back, so nothing is done here: %s. To "
				"take the review as it is, remove the folder %s/" REVIEW_PENDING
				".",
				meta->id, err.text, work->review->path);
		session_close(session);
		setup.review = NULL;
	}
	setup_fini(&setup);
	work->mended = true;
	return code;
}

static int open_work(struct reviewing *work, const char *id, const char *by, bool locks)
{
	struct err err = {0};
	int code = setup_open(&work->setup, work->options,
			      &(struct setup_flags){.needs_no_base = true});

	if (code != CODE_DONE)
		return code;
	if (!find_folder(&work->folder))
		return verb_complain(CODE_FAILED, "There is no home folder.");
	review_reopen(work->folder.data, work->setup.undo_folder, work->setup.workspace,
		      NULL);
	review_tidy(work->folder.data, work->setup.workspace);
	code = open_layer(work, work->setup.workspace, id, by, locks);
	if (code == CODE_DONE)
		code = restore(work);
	if (code == CODE_DONE && !work->used && work->review->meta.state == REVIEW_OPEN &&
	    has_pending(work->review))
		code = put_back(work);
	if (code != CODE_DONE)
		return code;
	/* A layer over an open one is compared with that one. */
	const struct review_meta *meta = &work->review->meta;
	if (!below_open(work->folder.data, work->setup.workspace, meta->over,
			meta->over_count, by, &work->setup.below, &err) ||
	    !review_shown_fill(&work->shown, work->review, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	work->setup.shown = work->shown.entries;
	return CODE_DONE;
}

static void close_work(struct reviewing *work)
{
	session_close(work->session);
	review_close(work->review);
	review_shown_fini(&work->shown);
	setup_fini(&work->setup);
	buf_fini(&work->folder);
	free_all(work->only);
	free_all(work->mine);
	free_all(work->theirs);
}

static void work_init(struct reviewing *work, const struct options *options, FILE *out)
{
	*work = (struct reviewing){.options = options, .out = out};
	buf_init(&work->folder, PATH_MAX);
}

/* Show how far the worker is. */
static bool take_event(void *context, const struct event *event, struct err *err)
{
	struct reviewing *work = context;
	const struct value *done = value_member(event->data, "progress");
	const struct value *all = value_member(event->data, "total");

	(void)err;
	if (event->kind == EVENT_PROGRESS && value_number(all) > 0)
		verb_progress_show(&work->progress, "%.*s: %.0f of %.0f paths",
				   (int)event->text.size, event->text.data,
				   value_number(done), value_number(all));
	else if (event->kind == EVENT_PROGRESS)
		verb_progress_show(&work->progress, "%.*s: %.0f paths",
				   (int)event->text.size, event->text.data,
				   value_number(done));
	return true;
}

/*
 * The session that asks the worker. A process that has had a session before makes no copy of
 * itself for the cell of another. KEPT: it goes on after the first call.
 */
static int begin_session(struct reviewing *work, bool kept)
{
	work->setup.sink = (struct event_sink){.event = take_event, .context = work};
	work->progress.began_ms = clock_now_ms();
	return kept || work->mended ? setup_session_kept(&work->setup, &work->session)
				    : setup_session_once(&work->setup, &work->session);
}

/* One call of the worker. Its complaint has been printed when it returns another code. */
static int ask_worker(struct reviewing *work, const struct review_wish *wish,
		      struct review_report *report)
{
	struct tool_result result;
	int code = CODE_DONE;

	tool_result_init(&result);
	*report = (struct review_report){.diff = -1};
	const bool fine =
		session_review(work->session, work->review, wish, report, &result);

	verb_progress_end(&work->progress);
	if (!fine) {
		if (session_broken(work->session) != NULL)
			code = verb_complain(CODE_NO_CELL, "%s",
					     session_broken(work->session));
		else {
			code = result.status == RESULT_DENIED ? CODE_DENIED : CODE_FAILED;
			(void)buf_end_line(&result.text);
			paint_fold_complain(buf_str(&result.text));
		}
	}
	report->cut = review_cut(work->review);
	tool_result_fini(&result);
	return code;
}

/* glovebox review. */

static struct value *over_value(const struct review_meta *meta)
{
	struct value *over = value_new_array();

	for (size_t i = 0; i < meta->over_count; i++)
		value_append(over, value_new_text(meta->over[i]));
	return over;
}

static int list_reviews(const char *workspace, const char *folder, bool json, FILE *out)
{
	struct review_list list = {0};
	struct err err = {0};
	int code = CODE_DONE;

	if (!review_list_read(folder, workspace, &list, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	for (size_t i = 0; i < list.count && code == CODE_DONE; i++) {
		const struct review_item *item = &list.items[i];

		if (!json) {
			print_review_line(item, out);
			continue;
		}
		auto_value struct value *row = value_new_object();
		value_set_text(row, "id", item->meta.id);
		value_set_boolean(row, "damaged", item->damaged);
		value_set_boolean(row, "used", item->used);
		if (!item->damaged) {
			value_set_text(row, "state", review_state_name(item->meta.state));
			value_set_text(row, "command", item->meta.command);
			value_set_text(row, "agent", item->meta.agent);
			value_set_integer(row, "created_ms", item->meta.created_ms);
			value_set_integer(row, "changed", item->meta.counts.changed);
			value_set_integer(row, "added", item->meta.counts.added);
			value_set_integer(row, "removed", item->meta.counts.removed);
			value_set_integer(row, "bytes", item->meta.counts.bytes);
			value_set_boolean(row, "partial", item->meta.counts.partial);
			if (item->meta.memory)
				value_set_boolean(row, "saved", item->saved);
			if (item->meta.over_count > 0)
				value_set(row, "over", over_value(&item->meta));
		}
		code = verb_print_json(row, 0, out);
	}
	if (code == CODE_DONE && !json && list.count == 0)
		(void)fprintf(out, "There is nothing to review here.\n");
	review_list_fini(&list);
	return code;
}

static int show_report(struct reviewing *work, const struct review_report *report,
		       const char *pager)
{
	const struct review_meta *meta = &work->review->meta;
	struct buf text;

	if (options_given(work->options, "json")) {
		auto_value struct value *value = review_report_value(report, meta->id);
		struct value *trees = value_new_array();

		for (size_t i = 0; i < meta->tree_count; i++)
			value_append(trees, value_new_text(meta->trees[i].path));
		value_set_text(value, "state", review_state_name(meta->state));
		value_set(value, "trees", trees);
		if (meta->memory)
			value_set_boolean(value, "saved", review_is_saved(work->review));
		return verb_print_json(value, 0, work->out);
	}
	if (options_given(work->options, "diff"))
		return print_review_diff(report, pager, work->out)
			       ? CODE_DONE
			       : verb_complain(CODE_FAILED, "The diff cannot be read.");
	if (work->used)
		(void)fprintf(work->out,
			      "Somebody works in review %s: this is what it holds "
			      "now.\n",
			      meta->id);
	if (work->setup.below.count > 0)
		(void)fprintf(work->out,
			      "Review %s is over review %s: this is what it changes "
			      "there.\n",
			      meta->id, work->setup.below.reviews[0]->meta.id);
	buf_init(&text, TEXT_MAX);
	print_review_cut(meta->id, report, &text);
	if (meta->memory && !work->used && !review_is_saved(work->review) &&
	    report->cut == REVIEW_WHOLE)
		(void)buf_addf(&text,
			       "Review %s lies in memory and is not saved: a restart of the machine "
			       "loses it. glovebox exec --review=%s -- true saves it.\n",
			       meta->id, meta->id);
	(void)fwrite(text.data, 1, text.size, work->out);
	buf_fini(&text);
	if (!review_report_has_news(report)) {
		(void)fprintf(work->out,
			      "Review %s holds nothing that your folder does not hold.\n",
			      meta->id);
		return CODE_DONE;
	}
	print_review(meta, report, options_given(work->options, "stat"), work->colour,
		     work->out);
	return CODE_DONE;
}

/* Is WORD an id, or the beginning of one, and not the name of a file here? */
static bool is_id(const char *word)
{
	const size_t size = strlen(word);
	struct stat st;

	return size >= REVIEW_ID_LEAST && size < REVIEW_ID &&
	       strspn(word, "0123456789abcdef") == size && lstat(word, &st) < 0;
}

static int review_run(const struct options *options, FILE *out)
{
	const bool has_id = options->word_count > 0 && is_id(options->words[0]);
	const bool pages = options_given(options, "diff") && isatty(STDOUT_FILENO) != 0 &&
			   !options_given(options, "json");
	auto_free char *pager =
		memory_copy(getenv("PAGER") != NULL ? getenv("PAGER") : PAGER_DEFAULT);
	struct review_wish wish = {.diff = options_given(options, "diff")};
	struct review_report report = {.diff = -1};
	struct reviewing work;
	int code;

	work_init(&work, options, out);
	work.colour = screen_options_of(STDOUT_FILENO).colour && isatty(STDOUT_FILENO) != 0;
	if (options_given(options, "list")) {
		code = setup_open(&work.setup, options, NULL);
		if (code == CODE_DONE && find_folder(&work.folder)) {
			review_reopen(work.folder.data, work.setup.undo_folder,
				      work.setup.workspace, NULL);
			code = list_reviews(work.setup.workspace, work.folder.data,
					    options_given(options, "json"), out);
		}
		close_work(&work);
		return code;
	}
	code = open_work(&work, has_id ? options->words[0] : NULL, "glovebox review", false);
	if (code == CODE_DONE)
		work.only = absolute_all(work.setup.workspace,
					 options->words + (has_id ? 1 : 0));
	wish.only = work.only;
	if (code == CODE_DONE)
		code = begin_session(&work, pages);
	if (code == CODE_DONE)
		code = ask_worker(&work, &wish, &report);
	if (code == CODE_DONE) {
		session_close(work.session);
		work.session = NULL;
		code = show_report(&work, &report, pager);
	}
	review_report_fini(&report);
	close_work(&work);
	return code;
}

static const char review_help[] =
	"Show what a review would change in this workspace: a command that ran with\n"
	"--review has written everything into a layer, and nothing of it is in your folder\n"
	"yet. Without an ID it is the newest review that is open. Six digits of an ID are\n"
	"enough; a first word of such digits is an ID where no file has this name. With\n"
	"paths, only what lies there is shown; each has to be in the review. Nothing is\n"
	"written.\n\n"
	"Exit codes: 0 shown, also when nothing differs, 1 there is no review, or it holds\n"
	"nothing at a path, 5 the cell could not be built.";

const struct verb verb_review = {
	.name = "review",
	.summary = "show what a command with --review has changed",
	.arguments = "[ID] [PATH ...]",
	.help = review_help,
	.example = "  glovebox exec --review -- npm install\n  glovebox review\n"
		   "  glovebox review --diff src\n  glovebox review --list",
	.options = review_options,
	.words_most = VERB_WORDS_ANY,
	.run = review_run,
};

/* glovebox land. */

/* Does this landing bring commits? With paths it brings what lies there, and nothing else. */
static bool takes_commits(const struct reviewing *work)
{
	return !options_given(work->options, "no-commits") && work->options->word_count == 0;
}

/* Does the review hold commits that no landing has brought? */
static bool leaves_commits(const struct reviewing *work, const struct review_report *report)
{
	return report->unread != NULL ||
	       (report->branch_count > 0 &&
		(!takes_commits(work) || review_report_lacks_commits(report)));
}

/*
 * Has the landing changed nothing, because the person keeps their own files? No undo could open
 * the review again, so it stays open.
 */
static bool stays_undone(const struct review_report *report)
{
	for (size_t i = 0; report->step == 0 && i < report->count; i++) {
		if (report->changes[i].class == REVIEW_STAYS)
			return true;
	}
	return false;
}

/* Has this landing left commits behind that it was to bring? */
static bool lacks_commits(const struct reviewing *work, const struct review_report *report)
{
	return takes_commits(work) && review_report_lacks_commits(report);
}

/* Does the review hold something that a later landing may bring? */
static bool leaves_rest(const struct reviewing *work, const struct review_report *report)
{
	return report->outside > 0 || report->kept > 0 || leaves_commits(work, report) ||
	       stays_undone(report);
}

/* Is there something that would be put into the workspace? */
static bool has_work(const struct reviewing *work, const struct review_report *report)
{
	return report->lands > 0 || (report->branch_count > 0 && takes_commits(work));
}

static bool has_refused(const struct review_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct review_change *change = &report->changes[i];

		if (change->class == REVIEW_REFUSED && change->refused != REFUSED_KIND)
			return true;
	}
	return false;
}

/* Everything that the person should know beside the outcome, on standard error. */
static void tell_rest(const struct reviewing *work, const struct review_report *report,
		      bool landed)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	print_review_cut(work->review->meta.id, report, &text);
	print_review_refused(&work->review->meta, report, &text);
	print_review_commits(work->review->meta.id, report,
			     !takes_commits(work) ? PRINT_COMMITS_STAY
			     : landed             ? PRINT_COMMITS_LANDED
						  : PRINT_COMMITS_COME,
			     &text);
	for (size_t i = 0; i < report->left_count; i++) {
		text_add_name(&text, str_of(report->left[i]));
		(void)buf_adds(&text, "/ stays: it holds something that is not of the "
				      "review.\n");
	}
	if (text.size > 0)
		paint_fold_complain(buf_str(&text));
	buf_fini(&text);
}

static int say_conflicts(const struct review_report *report)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	(void)buf_adds(&text, "Nothing was landed. ");
	print_review_conflicts(report, &text);
	paint_fold_complain(buf_str(&text));
	buf_fini(&text);
	return CODE_FAILED;
}

/* The sentence of a landing, or of a dry run. */
static void say_landed(struct reviewing *work, const struct review_report *report, bool dry)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	(void)buf_addf(&text, dry ? "Would land review %s: " : "Landed review %s: ",
		       work->review->meta.id);
	print_review_counts(report, &text);
	(void)buf_adds(&text, ".");
	if (!dry && report->step != 0)
		(void)buf_addf(&text, " To take that back: glovebox undo %" PRIu32,
			       report->step);
	else if (!dry)
		(void)buf_adds(&text,
			       " Your folder is as it was: there is nothing to undo.");
	if (!dry && leaves_rest(work, report))
		(void)buf_addf(&text, "\nThe rest stays in the review: glovebox review %s",
			       work->review->meta.id);
	(void)fprintf(work->out, "%s\n", text.data);
	buf_fini(&text);
}

/* The landing has ended: what became of the layer, and the exit code. */
static int finish_landing(struct reviewing *work, const struct review_report *report)
{
	struct err err = {0};
	int code = CODE_DONE;

	if (report->broken_off != NULL) {
		struct buf text;

		buf_init(&text, TEXT_MAX);
		review_say_unfinished(work->review->meta.id, report->step, &text);
		(void)verb_complain(CODE_FAILED, "%s. %s", report->broken_off, text.data);
		buf_fini(&text);
		return CODE_FAILED;
	}
	const bool all = !leaves_rest(work, report);
	const bool marked = !all || review_set_state(work->review, REVIEW_LANDED, &err);
	if (options_given(work->options, "json")) {
		auto_value struct value *value =
			review_report_value(report, work->review->meta.id);

		value_set_boolean(value, "landed", true);
		value_set_text(value, "state", review_state_name(work->review->meta.state));
		code = verb_print_json(value, 0, work->out);
	} else {
		say_landed(work, report, false);
	}
	tell_rest(work, report, true);
	if (!marked)
		return verb_complain(CODE_FAILED,
				     "%s. All of review %s was landed, and it is still open: "
				     "`glovebox land` closes it, and has nothing else to do.",
				     err.text, work->review->meta.id);
	return code == CODE_DONE && (has_refused(report) || lacks_commits(work, report))
		       ? CODE_DENIED
		       : code;
}

/* A reading without landing: an exit code when the verb ends with it, or -1. */
static int judge_reading(struct reviewing *work, const struct review_report *report)
{
	if (report->stale)
		return verb_complain(CODE_FAILED,
				     "Nothing was landed: review %s, or your folder, has "
				     "changed since the reading with that hash. Look again: "
				     "glovebox review %s",
				     work->review->meta.id, work->review->meta.id);
	if (report->conflict)
		return say_conflicts(report);
	return -1;
}

static bool asks(const struct reviewing *work)
{
	return !options_given(work->options, "yes") &&
	       options_text(work->options, "hash") == NULL &&
	       !options_given(work->options, "json") && isatty(STDIN_FILENO) != 0 &&
	       isatty(STDERR_FILENO) != 0;
}

static bool person_agrees(const struct reviewing *work, const struct review_report *report)
{
	struct buf counts;

	buf_init(&counts, 1024);
	print_review_cut(work->review->meta.id, report, &counts);
	(void)fwrite(counts.data, 1, counts.size, stderr);
	buf_clear(&counts);
	print_review_counts(report, &counts);
	if (report->branch_count > 0 && takes_commits(work)) {
		(void)buf_addf(&counts, ", commits on %zu branch%s", report->branch_count,
			       report->branch_count == 1 ? "" : "es");
	}
	const bool agrees = talk_confirm(stderr, "Land review %s: %s?",
					 work->review->meta.id, counts.data);
	buf_fini(&counts);
	return agrees;
}

/* Look first: for --dry-run, and before a question. HASH binds the landing to it. */
static int look_first(struct reviewing *work, struct review_wish *wish,
		      char hash[HASH_HEX + 1])
{
	struct review_report report = {.diff = -1};
	const bool dry = options_given(work->options, "dry-run");
	int code;

	wish->lands = false;
	code = ask_worker(work, wish, &report);
	if (code == CODE_DONE)
		code = judge_reading(work, &report);
	if (code == -1 && dry && options_given(work->options, "json")) {
		auto_value struct value *value =
			review_report_value(&report, work->review->meta.id);

		value_set_boolean(value, "landed", false);
		code = verb_print_json(value, 0, work->out);
	} else if (code == -1 && dry) {
		say_landed(work, &report, true);
		tell_rest(work, &report, false);
		code = has_refused(&report) || lacks_commits(work, &report) ? CODE_DENIED
									    : CODE_DONE;
	} else if (code == -1 && has_work(work, &report) && !person_agrees(work, &report)) {
		code = verb_complain(CODE_FAILED, "Nothing was landed.");
	}
	(void)snprintf(hash, HASH_HEX + 1, "%s", report.hash != NULL ? report.hash : "");
	review_report_fini(&report);
	return code;
}

static int land_layer(struct reviewing *work, const struct review_wish *wish)
{
	struct review_report report = {.diff = -1};
	struct review_wish bound = *wish;
	char hash[HASH_HEX + 1];
	int code = -1;

	if (options_given(work->options, "dry-run") || asks(work)) {
		code = look_first(work, &bound, hash);
		if (code == -1 && bound.hash == NULL)
			bound.hash = hash;
	}
	if (code != -1)
		return code;
	bound.lands = true;
	bound.brief = !options_given(work->options, "json");
	code = ask_worker(work, &bound, &report);
	if (code == CODE_DONE && !report.landed && report.broken_off == NULL)
		code = judge_reading(work, &report);
	if (code == -1)
		code = verb_complain(CODE_FAILED, "Nothing was landed.");
	else if (code == CODE_DONE)
		code = finish_landing(work, &report);
	review_report_fini(&report);
	return code;
}

/*
 * Refuse to land a layer over one that is open: its files are changes of that one's, which the
 * folder does not hold.
 */
static int refuse_above(struct reviewing *work)
{
	struct below *below = &work->setup.below;

	for (size_t i = 0; i < below->count; i++) {
		const char *id = below->reviews[i]->meta.id;

		/* Nobody works in it, and nobody has. */
		if (below->reviews[i]->lock >= 0 && review_is_bare(below->reviews[i]))
			continue;
		return verb_complain(CODE_FAILED,
				     "Review %s is over review %s, which is open: what it "
				     "holds are changes of that one. Land or drop %s first.",
				     work->review->meta.id, id, id);
	}
	/* They hold nothing: it lies over the folder itself. */
	below_close(below);
	return CODE_DONE;
}

/* No path can stay and be replaced. Returns an exit code; a complaint has been printed. */
static int refuse_both(const char *const *mine, const char *const *theirs)
{
	for (; mine != NULL && *mine != NULL; mine++) {
		for (const char *const *at = theirs; at != NULL && *at != NULL; at++) {
			if (strcmp(*mine, *at) == 0)
				return verb_complain(CODE_USAGE,
						     "%s is named by --mine and by --theirs: "
						     "choose one",
						     *mine);
		}
	}
	return CODE_DONE;
}

static int land_run(const struct options *options, FILE *out)
{
	struct reviewing work;
	struct review_wish wish = {
		.markers = options_given(options, "markers"),
		.no_commits = options_given(options, "no-commits"),
		.hash = options_text(options, "hash"),
	};
	int code;

	if (wish.hash != NULL && !hash_is_valid(wish.hash))
		return verb_complain(CODE_USAGE,
				     "--hash takes 12 to 64 digits of a hash that `glovebox "
				     "review` has printed");
	code = refuse_both(options_texts(options, "mine"), options_texts(options, "theirs"));
	if (code != CODE_DONE)
		return code;
	work_init(&work, options, out);
	code = open_work(&work, options_text(options, "id"), "glovebox land", true);
	if (code == CODE_DONE && work.review->meta.state != REVIEW_OPEN)
		code = verb_complain(CODE_FAILED, "Review %s is %s already.",
				     work.review->meta.id,
				     review_state_name(work.review->meta.state));
	if (code == CODE_DONE)
		code = refuse_above(&work);
	if (code == CODE_DONE)
		code = begin_session(&work, false);
	if (code == CODE_DONE) {
		const char *workspace = work.setup.workspace;

		work.only = absolute_all(workspace, options->words);
		work.mine = absolute_all(workspace, options_texts(options, "mine"));
		work.theirs = absolute_all(workspace, options_texts(options, "theirs"));
		wish.only = work.only;
		wish.mine = work.mine;
		wish.theirs = work.theirs;
		code = land_layer(&work, &wish);
	}
	close_work(&work);
	return code;
}

static const char land_help[] =
	"Put what a review holds into this workspace. Everything is compared first. A file\n"
	"that only the review has changed is replaced; a text that you have changed as well\n"
	"is merged; where both have changed the same lines, or the file is no text, nothing\n"
	"at all is written, until you choose with --mine, --theirs or --markers. Names that\n"
	"git or another agent would run without a question are never landed; of files that\n"
	"another program reads by itself the review says so. New commits come as\n"
	"refs/glovebox/ID/BRANCH, and a branch that is where it was moves on. With paths,\n"
	"only what lies there is landed, and no commits. The review stays open until they\n"
	"have come. A path of which the review holds nothing stops all of it, also in --mine\n"
	"and --theirs. A landing is a step: `glovebox undo` takes it back, and the review is\n"
	"open again.\n\n"
	"Exit codes: 0 done, 1 a conflict or nothing to land, 2 usage, 4 something of it may\n"
	"not be landed, 5 the cell could not be built.";

const struct verb verb_land = {
	.name = "land",
	.summary = "put what a review holds into the workspace",
	.arguments = "[PATH ...]",
	.help = land_help,
	.example = "  glovebox land --dry-run\n  glovebox land\n"
		   "  glovebox land src --id 3f9a61c2\n"
		   "  glovebox land --theirs src/a.c --mine docs",
	.options = land_options,
	.words_most = VERB_WORDS_ANY,
	.folds = true,
	.run = land_run,
};

/* glovebox drop. */

/* Throw away PATH in the layer. */
static int drop_path(struct reviewing *work, const char *path)
{
	struct err err = {0};

	if (!review_drop_path(work->review, path, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	(void)fprintf(work->out, "Dropped %s of review %s.\n",
		      path_relative(path, work->review->meta.workspace),
		      work->review->meta.id);
	return CODE_DONE;
}

/* A disk in use takes some seconds to remove more files than this. */
enum { DROP_TOLD_FROM = 1000 };

static int drop_all(struct reviewing *work)
{
	const struct review_counts *counts = &work->review->meta.counts;
	struct verb_progress progress = {.began_ms = 1}; /* it is shown at once */
	char id[REVIEW_ID];
	struct err err = {0};

	memcpy(id, work->review->meta.id, sizeof(id));
	if (counts->changed + counts->added > DROP_TOLD_FROM)
		verb_progress_show(&progress,
				   "removing %" PRId64
				   " files; Ctrl+C leaves the rest to the next session",
				   counts->changed + counts->added);
	const bool fine = review_drop(work->review, &err);
	verb_progress_end(&progress);
	if (!fine)
		return verb_complain(CODE_FAILED, "%s", err.text);
	(void)fprintf(work->out, "Dropped review %s.\n", id);
	return CODE_DONE;
}

/* Ask whether all of review ID, or a part of it, may go. The exit code; CODE_DONE: it may. */
static int ask_drop(const struct options *options, const char *id)
{
	if (options_given(options, "yes"))
		return CODE_DONE;
	if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0)
		return verb_complain(CODE_USAGE,
				     "There is no terminal to ask on: say --yes");
	return talk_confirm(stderr, "Throw away %s review %s? Nothing can bring it back.",
			    options->word_count > 0 ? "this part of" : "all of", id)
		       ? CODE_DONE
		       : verb_complain(CODE_FAILED, "Nothing was dropped.");
}

/* Open the layer that is to be dropped. One that is damaged can only go as a whole. */
static int open_dropped(struct reviewing *work, const char *workspace)
{
	const char *id = options_text(work->options, "id");
	struct err err = {0};

	review_tidy(work->folder.data, workspace);
	if (id != NULL && work->options->word_count == 0 &&
	    !review_open(work->folder.data, workspace, id, &work->review, &err) &&
	    err.code == EINVAL) {
		const int code = ask_drop(work->options, id);

		if (code != CODE_DONE)
			return code;
		if (!review_remove_damaged(work->folder.data, workspace, id, &err))
			return complain_about_layer(&err);
		(void)fprintf(work->out, "Removed what is left of review %s.\n", id);
		return CODE_DONE;
	}
	review_close(work->review);
	work->review = NULL;
	return open_layer(work, workspace, id, "glovebox drop", true);
}

static int drop_run(const struct options *options, FILE *out)
{
	const char *given = options_text(options, "workspace");
	auto_free char *workspace = realpath(given != NULL ? given : ".", NULL);
	struct reviewing work;
	int code = CODE_DONE;

	work_init(&work, options, out);
	if (workspace == NULL)
		code = verb_complain(CODE_FAILED,
				     "workspace %s: there is no such folder; name one that "
				     "exists with -C",
				     given != NULL ? given : ".");
	else if (!find_folder(&work.folder))
		code = verb_complain(CODE_FAILED, "There is no home folder.");
	else
		code = open_dropped(&work, workspace);
	/* Without a layer it was damaged, and is gone. */
	const bool open = code == CODE_DONE && work.review != NULL;
	if (open)
		code = ask_drop(options, work.review->meta.id);
	if (open && code == CODE_DONE && options->word_count > 0)
		code = restore(&work);
	if (open && code == CODE_DONE && options->word_count > 0) {
		work.only = absolute_all(workspace, options->words);
		for (size_t i = 0; work.only[i] != NULL && code == CODE_DONE; i++)
			code = drop_path(&work, work.only[i]);
	} else if (open && code == CODE_DONE) {
		code = drop_all(&work);
	}
	close_work(&work);
	return code;
}

static const char drop_help[] =
	"Throw away what a review holds. Your folder stays as it is: nothing of the review\n"
	"was ever in it. With paths, only what lies there is thrown away, and the review\n"
	"stays open. It is gone at once, and no undo brings it back. It asks first, and\n"
	"without a terminal it needs --yes.\n\n"
	"Exit codes: 0 done, 1 there is nothing to drop, or somebody works in it, 2 usage.";

const struct verb verb_drop = {
	.name = "drop",
	.summary = "throw away what a review holds",
	.arguments = "[PATH ...]",
	.help = drop_help,
	.example = "  glovebox drop\n  glovebox drop --id 3f9a61c2 --yes\n"
		   "  glovebox drop node_modules",
	.options = drop_options,
	.words_most = VERB_WORDS_ANY,
	.folds = true,
	.run = drop_run,
};
