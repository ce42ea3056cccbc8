/*
 * glovebox patch list and show: prints the patches that runs have handed over;
 * docs/patches.md.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "front/patches.h"
#include "front/terminal/paint.h"
#include "front/terminal/screen.h"
#include "front/verb.h"
#include "tool/event.h"

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
	text_add_name(&line, str_part(title, 0, size));
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
		listing.code = verb_complain(CODE_FAILED,
					     "workspace %s: there is no such folder",
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

/*
 * Print the patch on a terminal as the screen shows a change: cleaned, and with colours
 * where possible.
 */
static void show_on_screen(const struct patch_record *record, struct str head, FILE *out)
{
	const struct screen_options screen = screen_options_of(STDOUT_FILENO);
	const struct paint_excerpt all = {.head = SIZE_MAX, .is_diff = true};
	struct paint paint;

	paint_init(&paint);
	paint.colour = screen.colour;
	paint.unicode = screen.unicode;
	paint.columns = screen_columns_of(STDOUT_FILENO);
	paint_text(&paint, PAINT_PLAIN, head);
	paint_lines(&paint, record->text, &all);
	(void)fwrite(paint.out.data, 1, paint.out.size, out);
	paint_fini(&paint);
}

static int show_record(const struct patch_record *record, bool json, FILE *out)
{
	struct buf head;
	if (json) {
		auto_value struct value *object = patch_record_value(record, true);

		return verb_print_json(object, 0, out);
	}
	buf_init(&head, HEAD_MAX);
	patch_record_head(record, &head);
	if (isatty(STDOUT_FILENO)) {
		show_on_screen(record, buf_str(&head), out);
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
	"Show a patch: who made it, for what, its files, the hash of its bytes, and the\n"
	"patch itself. What is printed into a pipe is taken by `git apply` as it is.\n"
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
