/*
 * glovebox patch list and show: prints the patches that runs have handed over;
 * docs/patches.md.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "front/patches.h"
#include "front/setup.h"
#include "front/verb.h"
#include "session/session.h"
#include "tool/event.h"
#include "tui/paint.h"
#include "tui/screen.h"
#include "undo/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PATCHES_LISTED = 20,
	TITLE_SHOWN = 60,
	HEAD_MAX = 8 << 20, /* a thousand files with the longest possible names */
};

static const struct option_row list_options[] = {
	{"all", 0, OPTION_FLAG, NULL,
	 "also those that were decided, or replaced by a later one"},
	{"limit", 'n', OPTION_COUNT, "N", "at most N of them, newest first (default: 20)"},
	{"json", 0, OPTION_FLAG, NULL, "print one object per line"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row show_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it, patch and all, as one JSON object"},
	OPTION_ROW_HELP,
	{0},
};

struct listing {
	FILE *out;
	int code;
	bool all, json, elsewhere;
	size_t left;   /* the number of patches that may still be shown */
	size_t hidden; /* patches that only --all shows */
	size_t shown;
	struct value *later; /* "SESSION RUN" -> id of the newest patch of that run */
};

/*
 * The later patch of the same run, which contains RECORD's changes; NULL: there is none.
 */
static const char *replaced_by(struct listing *listing, const struct patch_record *record)
{
	struct buf key;
	const char *later;

	if (record->run == NULL)
		return NULL;
	buf_init(&key, JOURNAL_ID + 2 + strlen(record->run));
	(void)buf_addf(&key, "%s %s", record->session, record->run);
	later = value_text(value_member(listing->later, key.data));
	if (later == NULL)
		value_set_text(listing->later, key.data, record->id);
	buf_fini(&key);
	return later;
}

static void print_line(const struct listing *listing, const struct patch_record *record,
		       const char *later)
{
	struct str title = str_of(record->title);
	size_t size = text_character_border(title, TITLE_SHOWN);
	char when[CLOCK_TEXT];
	struct buf line;

	clock_text_local(record->wall_ms, when);
	buf_init(&line, HEAD_MAX);
	(void)buf_addf(&line, "%.*s  %s  %-8s  ", PATCH_ID_SHOWN, record->id, when,
		       later != NULL ? "replaced" : patch_state_name(record->state));
	text_add_exact(&line, str_part(title, 0, size));
	(void)buf_adds(&line, size < title.size ? " …  (" : "  (");
	(void)text_add_count(&line, record->count + record->left_out, "file");
	(void)buf_addf(&line, " +%zu -%zu, ", record->added, record->removed);
	text_add_name(&line, str_of(record->agent));
	if (listing->elsewhere) {
		(void)buf_adds(&line, ", ");
		text_add_name(&line, str_of(record->workspace));
	}
	(void)fprintf(listing->out, "%s)\n", line.data);
	buf_fini(&line);
}

static bool list_one(void *context, const struct patch_row *row)
{
	struct listing *listing = context;
	struct patch_record record;

	if (patch_record_read(row, &record)) {
		const char *later = replaced_by(listing, &record);

		if (record.state != PATCH_OPEN)
			later = NULL;
		if (!listing->all && (record.state != PATCH_OPEN || later != NULL)) {
			listing->hidden++;
		} else if (listing->json) {
			auto_value struct value *object =
				patch_record_value(&record, false);

			if (later != NULL)
				value_set_text(object, "replaced_by", later);
			listing->code = verb_print_json(object, 0, listing->out);
			listing->left--;
		} else {
			print_line(listing, &record, later);
			listing->left--;
			listing->shown++;
		}
	}
	patch_record_fini(&record);
	return listing->left > 0 && listing->code == CODE_DONE && !ferror(listing->out);
}

/* List the patches of FOLDER first, then those of other folders. */
static bool list_both(struct listing *listing, const char *folder, struct err *err)
{
	struct journal *journal = NULL;
	bool done = journal_open_default(&journal, err);

	for (int elsewhere = 0;
	     done && elsewhere < 2 && listing->left > 0 && listing->code == CODE_DONE;
	     elsewhere++) {
		listing->elsewhere = elsewhere == 1;
		done = patches_list(journal, folder, listing->elsewhere, SIZE_MAX,
				    list_one, listing, err);
	}
	journal_close(journal);
	return done;
}

static int list_run(const struct options *options, FILE *out)
{
	const char *given = options_text(options, "workspace");
	auto_free char *folder = realpath(given != NULL ? given : ".", NULL);
	struct listing listing = {
		.out = out,
		.all = options_given(options, "all"),
		.json = options_given(options, "json"),
		.left = options_count(options, "limit", PATCHES_LISTED),
		.later = value_new_object(),
	};
	struct err err = {0};
	if (folder == NULL)
		listing.code = verb_complain(
			CODE_FAILED,
			"workspace %s: there is no such folder; name one that exists with -C",
			given != NULL ? given : ".");
	else if (!list_both(&listing, folder, &err))
		listing.code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (!listing.json && listing.shown == 0)
		(void)fprintf(out, "There is no open patch%s.\n",
			      listing.hidden > 0 ? "; see: glovebox patch list --all" : "");
	value_free(listing.later);
	return listing.code;
}

static const char patch_list_help[] =
	"List the patches that runs have handed over and nobody has decided yet: those of\n"
	"this workspace first, then others with their folder; newest first. A later patch\n"
	"of the same run holds the earlier one, which is then shown by --all alone.";

const struct verb verb_patch_list = {
	.name = "patch list",
	.summary = "list the patches that runs have handed over",
	.arguments = "",
	.help = patch_list_help,
	.example = "  glovebox patch list\n  glovebox patch list --all --limit 100",
	.options = list_options,
	.folds = true,
	.run = list_run,
};

static int show_record(const struct patch_record *record, bool json, FILE *out)
{
	struct buf head, painted;

	if (json) {
		auto_value struct value *object = patch_record_value(record, true);

		return verb_print_json(object, 0, out);
	}
	buf_init(&head, HEAD_MAX);
	patch_record_head(record, &head);
	if (isatty(STDOUT_FILENO)) {
		buf_init(&painted, SCREEN_DIFF_MAX);
		screen_add_diff(buf_str(&head), record->text, &painted);
		(void)fwrite(painted.data, 1, painted.size, out);
		buf_fini(&painted);
	} else {
		(void)fwrite(head.data, 1, head.size, out);
		(void)fwrite(record->text.data, 1, record->text.size, out);
	}
	buf_fini(&head);
	return CODE_DONE;
}

static int show_run(const struct options *options, FILE *out)
{
	struct patch_record record = {0};
	struct err err = {0};
	struct buf path;
	int code;

	buf_init(&path, PATH_MAX);
	if (patch_record_find(options->words[0], &record, &path, &err))
		code = show_record(&record, options_given(options, "json"), out);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	patch_record_fini(&record);
	buf_fini(&path);
	return code;
}

static const char patch_show_help[] =
	"Show a patch: the agent that made it, its task, its files, the hash of its bytes,\n"
	"and the patch itself. Into a pipe it prints a text that `git apply` takes as it is.\n"
	"`last` is the newest patch of the folder where you are.";

const struct verb verb_patch_show = {
	.name = "patch show",
	.summary = "show one of them",
	.arguments = "ID|last",
	.help = patch_show_help,
	.example = "  glovebox patch show last\n"
		   "  glovebox patch show 3f9a61c2\n"
		   "  glovebox patch show 3f9a61c2 | git apply --check",
	.options = show_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_PATCHES,
	.run = show_run,
};

/*
 * `glovebox patch apply` and `reject` carry out the decision about a patch;
 * docs/patches.md.
 */

enum { REASON_MAX = 1000, MESSAGE_MAX = 64 << 10 };

static const struct option_row apply_options[] = {
	{"dry-run", 'n', OPTION_FLAG, NULL, "only say what would be done"},
	{"branch", 'b', OPTION_TEXT, "NAME", "make it a commit on a new branch NAME instead"},
	{"existing", 0, OPTION_FLAG, NULL, "with --branch: on top of NAME, which may exist"},
	{"from", 0, OPTION_TEXT, "COMMIT", "with --branch: the commit to start from"},
	{"into", 0, OPTION_TEXT, "DIR",
	 "apply it to this checkout of the project; as -C DIR"},
	{"hash", 0, OPTION_TEXT, "HASH", "only when its bytes have this hash (patch show)"},
	{"json", 0, OPTION_FLAG, NULL, "print the result as one JSON object"},
	{"workspace", 'C', OPTION_TEXT, "DIR",
	 "the checkout to work in (default: where the patch was made)"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row reject_options[] = {
	{"reason", 0, OPTION_WORDS, "TEXT", "why; shown by patch list and show"},
	{"undo", 0, OPTION_FLAG, NULL, "and undo the run, where nothing has changed since"},
	{"json", 0, OPTION_FLAG, NULL, "print the result as one JSON object"},
	{"workspace", 'C', OPTION_TEXT, "DIR",
	 "with --undo: the folder (default: where the patch was made)"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

/* The state of one decision that is being carried out. */
struct deciding {
	const struct options *options;
	struct patch_record record;
	struct buf journal; /* its path: the environment will be wiped before the write */
	struct setup setup;
	struct session *session;
	struct tool_result result;
};

static void deciding_init(struct deciding *deciding, const struct options *options)
{
	*deciding = (struct deciding){.options = options};
	buf_init(&deciding->journal, PATH_MAX);
	tool_result_init(&deciding->result);
}

static void deciding_fini(struct deciding *deciding)
{
	session_close(deciding->session);
	setup_fini(&deciding->setup);
	patch_record_fini(&deciding->record);
	buf_fini(&deciding->journal);
	tool_result_fini(&deciding->result);
}

/* The folder to work in. NULL: a complaint has been printed. */
static const char *choose_folder(const struct deciding *deciding, const char *into)
{
	const char *given = options_text(deciding->options, "workspace");
	const char *place = deciding->record.workspace;
	auto_free char *real = NULL;

	if (given != NULL && into != NULL) {
		(void)verb_complain(CODE_USAGE, "--into and -C say the same; give one");
		return NULL;
	}
	if (given != NULL || into != NULL)
		return given != NULL ? given : into;
	real = realpath(place, NULL);
	if (real == NULL)
		(void)verb_complain(CODE_FAILED,
				    "%.400s, where the patch was made: %s; say "
				    "with -C where the project is",
				    place, strerror(errno));
	else if (strcmp(real, place) != 0)
		(void)verb_complain(CODE_FAILED,
				    "%.400s, where the patch was made, leads to %.400s now; say "
				    "with -C where the project is",
				    place, real);
	return real != NULL && strcmp(real, place) == 0 ? place : NULL;
}

/* Open the cell in FOLDER. Returns an exit code; complaints have been printed. */
static int open_cell(struct deciding *deciding, const char *folder,
		     const struct undo_aim *undoes)
{
	const struct setup_flags flags = {.workspace = folder, .needs_no_base = true};
	int code = setup_open(&deciding->setup, deciding->options, &flags);
	if (code != CODE_DONE)
		return code;
	if (folder == deciding->record.workspace &&
	    strcmp(deciding->setup.workspace, folder) != 0)
		return verb_complain(CODE_FAILED, "%.400s is being replaced", folder);
	/* The changes must stay: do not write them into a layer that is thrown away. */
	deciding->setup.policy->scratch = false;
	deciding->setup.undoes = undoes;
	return setup_session_once(&deciding->setup, &deciding->session);
}

static int code_of(const struct deciding *deciding)
{
	const struct tool_result *result = &deciding->result;

	if (result->status == RESULT_DONE)
		return CODE_DONE;
	if (session_broken(deciding->session) != NULL)
		return verb_complain(CODE_NO_CELL, "%s", session_broken(deciding->session));
	if (result->status == RESULT_CANCELLED)
		return CODE_CANCELLED;
	if (result->status == RESULT_TIMED_OUT)
		return CODE_TIMED_OUT;
	return result->status == RESULT_DENIED ? CODE_DENIED : CODE_FAILED;
}

static bool is_dry(const struct deciding *deciding)
{
	return options_given(deciding->options, "dry-run");
}

static void call_tool(struct deciding *deciding, const char *tool, struct value *arguments)
{
	const struct request request = {.tool = tool,
					.arguments = arguments,
					.by_front = true};

	tool_result_fini(&deciding->result);
	session_call(deciding->session, &request, &deciding->result);
}

/* The arguments of take_patch. LOOK: only compare. */
static struct value *arguments_of(const struct deciding *deciding, bool look)
{
	const struct patch_record *record = &deciding->record;
	struct value *arguments = value_new_object();

	value_set_str(arguments, "patch", record->text);
	value_set_text(arguments, "title", record->title);
	value_set(arguments, "files", patch_record_files(record));
	if (look)
		value_set_boolean(arguments, "look", true);
	return arguments;
}

static int note(struct deciding *deciding, const struct patch_decision *decision)
{
	struct err err = {0};

	return patch_record_decide(&deciding->record, deciding->journal.data, decision, &err)
		       ? CODE_DONE
		       : verb_complain(CODE_FAILED,
				       "it is done, but could not be noted: %s", err.text);
}

static void print_result(struct deciding *deciding, int code, FILE *out)
{
	if (options_given(deciding->options, "json")) {
		auto_value struct value *value = tool_result_value(&deciding->result);
		struct buf text;

		value_set_text(value, "patch_id", deciding->record.id);
		buf_init(&text, VALUE_TEXT_MAX);
		(void)value_print(value, 0, &text);
		(void)fprintf(out, "%s\n", text.data);
		buf_fini(&text);
	} else {
		(void)buf_end_line(&deciding->result.text);
		(void)fputs(deciding->result.text.data, code == CODE_DONE ? out : stderr);
	}
}

static int apply_to_files(struct deciding *deciding)
{
	auto_value struct value *arguments = arguments_of(deciding, is_dry(deciding));
	const struct patch_decision decision = {.state = PATCH_APPLIED,
						.place = str_of(deciding->setup.workspace)};
	int code;

	call_tool(deciding, "take_patch", arguments);
	code = code_of(deciding);
	if (code == CODE_DONE && !is_dry(deciding))
		code = note(deciding, &decision);
	if (deciding->result.status == RESULT_DONE)
		patches_tell_files(&deciding->result, &deciding->record,
				   deciding->setup.workspace, is_dry(deciding));
	return code;
}

static int apply_to_branch(struct deciding *deciding, const char *branch)
{
	auto_value struct value *arguments = arguments_of(deciding, is_dry(deciding));
	const char *from = options_text(deciding->options, "from");
	const struct patch_decision decision = {.state = PATCH_APPLIED,
						.place = str_of(deciding->setup.workspace),
						.branch = str_of(branch)};
	int code;

	value_set_text(arguments, "summary", deciding->record.summary);
	value_set_text(arguments, "branch", branch);
	if (from != NULL)
		value_set_text(arguments, "from", from);
	value_set_boolean(arguments, "existing",
			  options_given(deciding->options, "existing"));
	call_tool(deciding, "commit_patch", arguments);
	code = code_of(deciding);
	if (code == CODE_DONE && !is_dry(deciding))
		code = note(deciding, &decision);
	if (deciding->result.status == RESULT_DONE)
		patches_tell_commit(&deciding->result, &deciding->record, is_dry(deciding));
	return code;
}

/*
 * Refuse TITLE, which holds control bytes: a git log would show them, and a terminal
 * would obey them.
 */
static int refuse_title(const struct deciding *deciding, struct str title)
{
	struct buf shown;
	int code;

	buf_init(&shown, 4 * title.size + 1);
	text_add_exact(&shown, title);
	code = verb_complain(CODE_FAILED,
			     "patch %.*s has a title that may not stand in a commit, with a "
			     "character that is not seen or a second line: %.400s; nothing was "
			     "applied. Apply it to the files (without --branch), and commit "
			     "them under a title of your own",
			     PATCH_ID_SHOWN, deciding->record.id, shown.data);
	buf_fini(&shown);
	return code;
}

/* Make the checks that need no cell. Returns an exit code. */
static int check_apply(const struct deciding *deciding)
{
	const struct options *options = deciding->options;
	const char *hash = options_text(options, "hash");
	const char *branch = options_text(options, "branch");
	const char *from = options_text(options, "from");
	const struct str title = str_of(deciding->record.title);

	if (branch == NULL && (from != NULL || options_given(options, "existing")))
		return verb_complain(CODE_USAGE, "--from and --existing go with --branch");
	if ((branch != NULL && (branch[0] == '-' || branch[0] == '\0')) ||
	    (from != NULL && (from[0] == '-' || from[0] == '\0')))
		return verb_complain(CODE_USAGE, "\"%.100s\" is no name of git's",
				     branch[0] == '-' || branch[0] == '\0' ? branch : from);
	if (hash != NULL && !hash_is_valid(hash))
		return verb_complain(CODE_USAGE,
				     "--hash takes 12 to 64 hexadecimal digits in lower case");
	if (hash != NULL && !hash_matches(hash, deciding->record.hash))
		return verb_complain(CODE_FAILED,
				     "patch %.*s has the hash %s, not %s; nothing was applied",
				     PATCH_ID_SHOWN, deciding->record.id,
				     deciding->record.hash, hash);
	if (branch != NULL && text_find_unseen(title) < title.size)
		return refuse_title(deciding, title);
	if (deciding->record.text.size == 0)
		return verb_complain(CODE_FAILED,
				     "patch %.*s holds nothing that could be applied: its "
				     "%zu files are not in it; see: glovebox patch show %.*s",
				     PATCH_ID_SHOWN, deciding->record.id,
				     deciding->record.left_out, PATCH_ID_SHOWN,
				     deciding->record.id);
	return CODE_DONE;
}

static int apply_it(struct deciding *deciding, FILE *out)
{
	const char *branch = options_text(deciding->options, "branch");
	const char *folder;
	int code = check_apply(deciding);

	if (code != CODE_DONE)
		return code;
	folder = choose_folder(deciding, options_text(deciding->options, "into"));
	if (folder == NULL)
		return options_text(deciding->options, "into") != NULL ? CODE_USAGE
								       : CODE_FAILED;
	code = open_cell(deciding, folder, NULL);
	if (code != CODE_DONE)
		return code;
	code = branch != NULL ? apply_to_branch(deciding, branch)
			      : apply_to_files(deciding);
	print_result(deciding, code, out);
	return code;
}

static int apply_run(const struct options *options, FILE *out)
{
	struct deciding deciding;
	struct err err = {0};
	int code;

	deciding_init(&deciding, options);
	if (patch_record_find(options->words[0], &deciding.record, &deciding.journal, &err))
		code = apply_it(&deciding, out);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	deciding_fini(&deciding);
	return code;
}

static const char patch_apply_help[] =
	"Apply a patch in a cell, with the agent's rights, where it was made or in another\n"
	"checkout of the project. Each file must be as it was before the run, or as the run\n"
	"left it: files that differ are named, and nothing is written. All files are\n"
	"changed or none; it is a step that `glovebox undo` takes back. After a run that\n"
	"worked in the folder itself the patch is there already, and apply says so. `last`\n"
	"is the newest patch of the folder where you are.\n\n"
	"With --branch it becomes a commit on a new branch, on top of the newest commit in\n"
	"which its files are as before the run; your files, index and branch stay as they\n"
	"are, and no hook runs.\n\n"
	"Exit codes: 0 done, 1 refused or failed, 4 denied, 5 the cell could not be built.";

const struct verb verb_patch_apply = {
	.name = "patch apply",
	.summary = "apply one of them to its files, another checkout or a branch",
	.arguments = "ID|last",
	.help = patch_apply_help,
	.example = "  glovebox patch apply 3f9a61c2 --dry-run\n"
		   "  glovebox patch apply 3f9a61c2 --branch fix-sum\n"
		   "  glovebox patch apply 3f9a61c2 --into ~/other-clone",
	.options = apply_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_PATCHES,
	.run = apply_run,
};

/*
 * The number of files that still have the content of the patch, although no step of the
 * run is left to undo.
 */
static int64_t count_applied_again(const struct deciding *deciding)
{
	auto_value struct value *arguments = arguments_of(deciding, true);
	const struct request request = {.tool = "take_patch",
					.arguments = arguments,
					.by_front = true};
	struct tool_result look;
	int64_t count = 0;

	if (deciding->record.text.size == 0)
		return 0;
	tool_result_init(&look);
	session_call(deciding->session, &request, &look);
	count = value_integer(value_member(look.details, "already"));
	tool_result_fini(&look);
	return count;
}

static bool undid_nothing(const struct deciding *deciding)
{
	const struct value *steps = value_member(deciding->result.details, "steps");

	return deciding->result.status == RESULT_DONE && value_integer(steps) == 0;
}

/* Restore the folder to its state before the run. */
static int undo_run_of(struct deciding *deciding)
{
	const struct undo_aim aim = {.run = deciding->record.run,
				     .step = deciding->record.last_step};
	const char *folder;
	int code;

	if (deciding->record.run == NULL || deciding->record.last_step == 0)
		return verb_complain(CODE_FAILED,
				     "patch %.*s names no steps to undo, because the old contents "
				     "of its files were not kept; nothing was rejected. Leave out "
				     "--undo to reject the patch alone",
				     PATCH_ID_SHOWN, deciding->record.id);
	folder = choose_folder(deciding, NULL);
	if (folder == NULL)
		return CODE_FAILED;
	code = open_cell(deciding, folder, &aim);
	if (code != CODE_DONE)
		return code;
	session_undo_run(deciding->session, &aim, &deciding->result);
	if (undid_nothing(deciding) && count_applied_again(deciding) > 0) {
		buf_clear(&deciding->result.text);
		(void)tool_fail(&deciding->result,
				"Nothing was undone: the run's steps are undone already, and its "
				"files hold the patch again. `glovebox undo --list` shows the "
				"step that applied it; undo that one");
	}
	return code_of(deciding);
}

static int reject_it(struct deciding *deciding, FILE *out)
{
	const char *reason = options_text(deciding->options, "reason");
	const char *before = deciding->record.reason;
	const struct patch_decision decision = {
		.state = PATCH_REJECTED,
		.reason = str_of(reason != NULL   ? reason
				 : before != NULL ? before
						  : ""),
	};
	int code = CODE_DONE;

	if (decision.reason.size > REASON_MAX || !text_is_utf8(decision.reason))
		return verb_complain(CODE_USAGE, "--reason takes %d bytes of UTF-8 at most",
				     REASON_MAX);
	if (options_given(deciding->options, "undo"))
		code = undo_run_of(deciding);
	else
		deciding->result.status = RESULT_DONE;
	if (code == CODE_DONE)
		code = note(deciding, &decision);
	if (code == CODE_DONE)
		(void)buf_addf(&deciding->result.text, "Rejected patch %.*s.\n",
			       PATCH_ID_SHOWN, deciding->record.id);
	if (deciding->result.text.size > 0)
		print_result(deciding, code, out);
	return code;
}

static int reject_run(const struct options *options, FILE *out)
{
	struct deciding deciding;
	struct err err = {0};
	int code;

	deciding_init(&deciding, options);
	if (patch_record_find(options->words[0], &deciding.record, &deciding.journal, &err))
		code = reject_it(&deciding, out);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	deciding_fini(&deciding);
	return code;
}

static const char patch_reject_help[] =
	"Mark a patch as rejected. With --undo all steps of its run are undone as well,\n"
	"when each of their files is still as the run left it; else nothing is undone or\n"
	"marked, and the files are named. `last` is the newest patch of the folder where\n"
	"you are.\n\n"
	"Exit codes: 0 done, 1 refused or failed, 5 the cell could not be built.";

const struct verb verb_patch_reject = {
	.name = "patch reject",
	.summary = "decide against one of them, and undo its run if asked to",
	.arguments = "ID|last",
	.help = patch_reject_help,
	.example = "  glovebox patch reject 3f9a61c2 --reason \"wrong layer\"\n"
		   "  glovebox patch reject last --undo",
	.options = reject_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_PATCHES,
	.run = reject_run,
};
