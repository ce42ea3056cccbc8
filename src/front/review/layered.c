/* layered: the layer of a session, from --review to the line at the end. */

#include "front/review/layered.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "front/agents.h"
#include "policy/policy.h"
#include "tui/paint.h"
#include "view/review.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_SHOWN = 1000, LINE_BYTES = 4096 };

static bool is_given(const struct options *options, const char *name)
{
	char word[32];
	bool apart;

	(void)snprintf(word, sizeof(word), "--%s", name);
	return options_find(options->rows, word, &apart) != NULL &&
	       options_given(options, name);
}

bool layered_wanted(const struct setup *setup, const struct options *options,
		    const char **id)
{
	const bool given = is_given(options, REVIEW_OPTION);

	*id = given ? options_text(options, REVIEW_OPTION) : NULL;
	return given || (setup->policy->review && !is_given(options, NO_REVIEW_OPTION));
}

/* The words of the command, to be shown. */
static char *command_of(const char *const *words)
{
	struct buf text;

	buf_init(&text, COMMAND_SHOWN);
	for (size_t i = 0; words != NULL && words[i] != NULL && !text.overflowed; i++) {
		if (i > 0)
			(void)buf_addc(&text, ' ');
		text_add_name(&text, str_of(words[i]));
	}
	return buf_take(&text);
}

/* Print TEXT, folded where OUT is a terminal. */
static void print_folded(const struct buf *text, FILE *out)
{
	struct buf lines;

	buf_init(&lines, 2 * LINE_BYTES);
	(void)fflush(out);
	/* A console takes the place of standard error, and has no number. */
	paint_fold_for(out == stderr ? STDERR_FILENO : fileno(out), buf_str(text), &lines);
	(void)fwrite(lines.data, 1, lines.size, out);
	buf_fini(&lines);
}

static bool is_open(const struct review *review, struct err *err)
{
	return review->meta.state == REVIEW_OPEN ||
	       err_set(err, EINVAL, "Review %s was %s: begin another one.",
		       review->meta.id, review_state_name(review->meta.state));
}

/* Lock the layer REVIEW for BY; build it again where it lay in memory and is gone. */
static bool take(struct review *review, const char *by, struct err *err)
{
	struct buf told;

	buf_init(&told, LINE_BYTES);
	const bool ok = review_lock(review, by, err) && is_open(review, err) &&
			review_restore(review, &told, err);
	if (told.size > 0)
		print_folded(&told, stderr);
	buf_fini(&told);
	return ok;
}

/* The folder of all layers. */
static bool find_folder(struct buf *folder, struct err *err)
{
	return review_place(getenv("XDG_STATE_HOME"), getenv("HOME"), folder) ||
	       err_set(err, ENOENT, REVIEW_KEY ": set HOME or XDG_STATE_HOME");
}

/* Make the layer of WISH, over those that SETUP has. */
static bool make(const struct setup *setup, const char *folder,
		 const struct layered_wish *wish, struct review **review, struct err *err)
{
	const struct below *below = &setup->below;

	if (!review_make(folder, setup->workspace, wish->name, wish->by, review, err))
		return false;
	struct review_meta *meta = &(*review)->meta;
	free(meta->command);
	meta->command = command_of(wish->words);
	meta->over = memory_array(below->count + 1, sizeof(*meta->over));
	for (; meta->over_count < below->count; meta->over_count++)
		meta->over[meta->over_count] =
			memory_copy(below->reviews[meta->over_count]->meta.id);
	return true;
}

/* Open and lock the layer of WISH, and open those below it. */
static bool go_on(struct setup *setup, const char *folder,
		  const struct layered_wish *wish, struct review **review, struct err *err)
{
	const struct policy_limits *limits = &setup->policy->limits;

	if (!review_open(folder, setup->workspace, wish->id, review, err) ||
	    !take(*review, wish->by, err))
		return false;
	const struct review_meta *meta = &(*review)->meta;
	return (wish->full || review_has_room(*review, meta->counts.bytes, limits->layer,
					      limits->tmp, err)) &&
	       below_open(folder, setup->workspace, meta->over, meta->over_count,
			  wish->by, &setup->below, err);
}

void layered_tell(struct setup *setup)
{
	struct buf text;

	if (!setup->tells_review || setup->review == NULL)
		return;
	setup->tells_review = false;
	if (!setup->review->meta.memory)
		return;
	buf_init(&text, LINE_BYTES);
	(void)buf_adds(&text,
		       "glovebox: the layer lies in memory, because the file system of the state "
		       "folder keeps none. It is saved when the session ends; a crash of the "
		       "machine before that loses what came since\n");
	print_folded(&text, stderr);
	buf_fini(&text);
}

void layered_write_base(struct policy *policy)
{
	struct policy_paths *write = &policy->write;

	if (!agents_only_delegate(policy))
		return;
	write->items = memory_grow(write->items, write->count + 1, sizeof(*write->items));
	write->items[write->count++] =
		(struct policy_path){.text = memory_copy("."),
				     .path = memory_copy(policy->base.path)};
}

/* Tell the model of SETUP's agent PROMPT, where its writes are. */
static void prompt_add(struct setup *setup, const char *prompt)
{
	const struct str whole = str_of(prompt), mark = STR("%s");
	const size_t at = (size_t)(strstr(prompt, mark.data) - prompt);
	struct buf text;

	buf_init(&text, VALUE_TEXT_MAX);
	if (setup->role.prompt != NULL)
		(void)buf_addf(&text, "%s\n\n", setup->role.prompt);
	(void)buf_addstr(&text, str_part(whole, 0, at));
	(void)buf_adds(&text, setup->review->meta.id);
	(void)buf_addstr(&text, str_part(whole, at + mark.size, whole.size));
	free(setup->role.prompt);
	setup->role.prompt = buf_take(&text);
}

static void keep_steps(struct setup *setup)
{
	struct buf undo;

	buf_init(&undo, PATH_MAX);
	(void)buf_addf(&undo, "%s/undo", setup->review->path);
	free(setup->undo_folder);
	setup->undo_folder = buf_take(&undo);
}

bool layered_begin(struct setup *setup, const struct layered_wish *wish, struct err *err)
{
	struct review *review = NULL;
	struct buf folder;

	buf_init(&folder, PATH_MAX);
	const bool ok = find_folder(&folder, err) &&
			(wish->id == NULL ? make(setup, folder.data, wish, &review, err)
					  : go_on(setup, folder.data, wish, &review, err));
	buf_fini(&folder);
	if (!ok) {
		review_close(review);
		return false;
	}
	setup->review = review;
	if (wish->prompt == NULL) {
		setup->tells_review = true;
	} else {
		keep_steps(setup);
		prompt_add(setup, wish->prompt);
	}
	return true;
}

bool layered_go_on(struct setup *setup, const char *id, bool full, const char *by,
		   struct err *err)
{
	const struct layered_wish wish = {
		.id = id,
		.by = by,
		.full = full,
		.prompt = "You work in a layer (review %s): what you write is seen by your tools, "
			  "and the files in the person's folder stay as they are until the person "
			  "lands it. Landing is not your task.\n",
	};

	layered_write_base(setup->policy);
	return layered_begin(setup, &wish, err);
}

bool layered_below(struct setup *setup, const struct value *over, const char *by,
		   struct err *err)
{
	const size_t count = value_count(over);
	char *names[REVIEW_OVER_MAX + 1];
	struct buf folder;

	for (size_t i = 0; i < count && i < REVIEW_OVER_MAX; i++)
		names[i] = (char *)(uintptr_t)value_str(value_item(over, i)).data;
	buf_init(&folder, PATH_MAX);
	const bool ok = find_folder(&folder, err) &&
			below_open(folder.data, setup->workspace, names, count, by,
				   &setup->below, err);
	buf_fini(&folder);
	return ok && (setup->below.count == count ||
		      err_set(err, ESTALE, "a layer below this work is not open any more"));
}

struct value *layered_over(const struct setup *setup)
{
	struct value *over = value_new_array();

	value_append(over, value_new_text(setup->review->meta.id));
	for (size_t i = 0; i < setup->below.count; i++)
		value_append(over, value_new_text(setup->below.reviews[i]->meta.id));
	return over;
}

int layered_take(struct setup *setup, const struct options *options, const char *by)
{
	const char *id;
	struct err err;

	if (!layered_wanted(setup, options, &id))
		return CODE_DONE;
	if (setup->mode == MODE_PLAN)
		return verb_complain(CODE_USAGE,
				     "--review: in mode plan nothing is written that could be "
				     "reviewed; leave out one of the two");
	if (!layered_go_on(setup, id, false, by, &err))
		return verb_complain(err.code == EOPNOTSUPP ? CODE_NO_CELL : CODE_FAILED,
				     "%s", err.text);
	setup->tells_review = true;
	return CODE_DONE;
}

/* "14 files changed, 3 added, 1 removed (2.1 MiB)" */
static void counts_print(const struct review_counts *counts, struct buf *line)
{
	const int64_t numbers[] = {counts->changed, counts->added, counts->removed};
	static const char *const words[] = {"changed", "added", "removed"};
	bool first = true;
	char size[32];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i] == 0)
			continue;
		if (first)
			text_add_count(line, (size_t)numbers[i], "file");
		else
			(void)buf_addf(line, ", %lld", (long long)numbers[i]);
		(void)buf_addf(line, " %s", words[i]);
		first = false;
	}
	if (first)
		(void)buf_adds(line, counts->partial ? "the changes are not counted"
				     : counts->other ? "folders, attributes or commits changed"
						     : "the layer holds no change");
	else if (counts->partial)
		(void)buf_adds(line, " at least");
	if (counts->bytes > 0)
		(void)buf_addf(line, " (%s)", text_size((uint64_t)counts->bytes, size));
}

static void print_json(const struct review *review, FILE *out)
{
	const struct review_counts *counts = &review->meta.counts;
	auto_value struct value *object = value_new_object();
	struct buf line;

	value_set_text(object, "review", review->meta.id);
	value_set_integer(object, "changed", counts->changed);
	value_set_integer(object, "added", counts->added);
	value_set_integer(object, "removed", counts->removed);
	value_set_integer(object, "bytes", counts->bytes);
	if (counts->other)
		value_set_boolean(object, "other", true);
	if (review->meta.memory)
		value_set_boolean(object, "saved", review_is_saved(review));
	buf_init(&line, LINE_BYTES);
	(void)value_print(object, 0, &line);
	(void)fprintf(out, "%s\n", line.data);
	buf_fini(&line);
}

static void print_words(const struct review *review, FILE *out)
{
	struct buf text;

	buf_init(&text, LINE_BYTES);
	(void)buf_adds(&text, "Nothing of it is in your folder yet: ");
	counts_print(&review->meta.counts, &text);
	(void)buf_addf(&text, ". glovebox review %s\n", review->meta.id);
	if (review->unsaved != NULL)
		(void)buf_addf(&text,
			       "glovebox: this layer lies in memory and could not be saved: %s. "
			       "It is there until the machine is restarted\n",
			       review->unsaved);
	if (review_has_copy(review))
		(void)buf_adds(&text,
			       "glovebox: the command worked in a copy of the folder, because no "
			       "layer can be kept over it here: see glovebox doctor\n");
	print_folded(&text, out);
	buf_fini(&text);
}

/* Say when there are many open layers, or large ones. */
static void print_many(const char *folder, const char *workspace, FILE *out)
{
	struct review_list list = {0};
	char size[32];
	struct buf text;
	struct err err;

	buf_init(&text, LINE_BYTES);
	if (review_list_read(folder, workspace, &list, &err) &&
	    (list.open > REVIEW_OPEN_MANY || list.open_bytes > REVIEW_OPEN_LARGE))
		(void)buf_addf(&text,
			       "glovebox: %zu reviews of this folder are open (%s): glovebox "
			       "review --list\n",
			       list.open, text_size(list.open_bytes, size));
	if (text.size > 0)
		print_folded(&text, out);
	buf_fini(&text);
	review_list_fini(&list);
}

bool layered_end(struct setup *setup, bool json, FILE *out)
{
	struct review *review = setup->review;
	struct buf folder;

	if (review == NULL)
		return false;
	const bool begun = review->life >= REVIEW_USED;
	const bool kept = begun && !review_is_empty(review);
	setup->review = NULL;
	buf_init(&folder, PATH_MAX);
	if (begun && !kept) {
		review_remove(review);
		if (out != NULL && !json)
			(void)fprintf(out, "Nothing of your folder was changed, and no layer is "
					   "kept.\n");
	} else if (kept && out != NULL) {
		if (json)
			print_json(review, out);
		else
			print_words(review, out);
	}
	if (review_place(getenv("XDG_STATE_HOME"), getenv("HOME"), &folder)) {
		review_tidy(folder.data, review->meta.workspace);
		if (begun && out != NULL && !json)
			print_many(folder.data, review->meta.workspace, out);
	}
	buf_fini(&folder);
	review_close(review);
	return kept;
}
