/*
 * take_patch: the front's own tool behind `glovebox patch apply`. It applies a patch that
 * was handed over (take_patch.h), when the content of each of its files is the one before
 * the run or already the one after it. All files are changed, or none; a file with the
 * content after the run stays as it is.
 */

#include "tools/patches/take_patch.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/record.h"
#include "tool/tool.h"
#include "tools/patches/apply_patch.h"
#include "tools/patches/patch.h"
#include "tools/tools.h"
#include "undo/place.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct row handed_rows[] = {
	{"path", ROW_TEXT, true, "Its name, as the record has it"},
	{"from", ROW_TEXT, false, "Its name before"},
	{"state", ROW_TEXT, true, "What became of it"},
	{"base_hash", ROW_TEXT, false, "What it held before", .max = HASH_HEX},
	{"hash", ROW_TEXT, false, "What it holds afterwards", .max = HASH_HEX},
	{0},
};

static bool refuse_handed(struct buf *sentence, const char *words, const char *path)
{
	(void)buf_adds(sentence, "The patch and its record do not fit: ");
	text_add_name(sentence, str_part(str_of(path), 0, PATH_MAX));
	(void)buf_addf(sentence, " %s. Nothing was changed.", words);
	return false;
}

static bool is_left_out(const struct value *record)
{
	const char *state = value_text(value_member(record, "state"));

	return state != NULL && strcmp(state, "left_out") == 0;
}

/* Does the member KEY of RECORD name PATH? */
static bool names(const struct value *record, const char *key, const char *path)
{
	const char *given = value_text(value_member(record, key));
	struct buf text;
	bool same;

	buf_init(&text, 5 * PATH_MAX);
	(void)patch_add_path(path, &text);
	same = given != NULL && strcmp(given, text.data) == 0;
	buf_fini(&text);
	return same;
}

static const struct value *find_record(const struct value *files,
				       const struct patch_file *file)
{
	for (size_t i = 0; i < value_count(files); i++) {
		const struct value *record = value_item(files, i);

		if (is_left_out(record))
			continue;
		if (names(record, "path", file->to != NULL ? file->to : file->path) &&
		    (file->to == NULL ? value_member(record, "from") == NULL
				      : names(record, "from", file->path)))
			return record;
	}
	return NULL;
}

/* Take the hash under KEY. False: there is none, or it is incomplete. */
static bool take_hash(const struct value *record, const char *key, char hex[HASH_HEX + 1])
{
	const char *given = value_text(value_member(record, key));

	if (given == NULL || strlen(given) != HASH_HEX || !hash_is_valid(given))
		return false;
	memcpy(hex, given, HASH_HEX + 1);
	return true;
}

/* Is PATH one that generate_patch could hand over? */
static bool is_plain(const char *path)
{
	return path[0] != '/' && record_path_is_sound(str_of(path));
}

static bool take_file(struct handed_file *handed, const struct patch_file *file,
		      const struct value *files, struct buf *sentence)
{
	const struct value *record = find_record(files, file);

	*handed = (struct handed_file){
		.file = file,
		.to = file->to != NULL ? file->to : file->path,
		.existed = file->kind != PATCH_ADD,
		.exists = file->kind != PATCH_DELETE,
	};
	if (!is_plain(file->path) || !is_plain(handed->to))
		return refuse_handed(sentence, "is no path below the workspace", handed->to);
	if (record == NULL)
		return refuse_handed(sentence, "is in the patch alone", handed->to);
	if (file->other != NULL)
		return refuse_handed(sentence, "has two names in the patch", handed->to);
	if (handed->existed && !take_hash(record, "base_hash", handed->base))
		return refuse_handed(sentence, "has no hash of what it was", handed->to);
	handed->now_known = !handed->exists || take_hash(record, "hash", handed->now);
	if (file->kind == PATCH_ADD && !handed->now_known) {
		hash_text(file->hunk_count > 0 ? file->hunks[0].new : STR(""), handed->now);
		handed->now_known = true;
	}
	return true;
}

/* Does each name belong to one file only? */
static bool are_apart(const struct handed *handed, struct buf *sentence)
{
	for (size_t i = 0; i < handed->count; i++) {
		const struct handed_file *one = &handed->files[i];

		for (size_t j = 0; j < handed->count; j++) {
			const struct handed_file *other = &handed->files[j];

			if (i != j && (strcmp(one->to, other->to) == 0 ||
				       strcmp(one->to, other->file->path) == 0))
				return refuse_handed(sentence, "is there twice", one->to);
		}
	}
	return true;
}

bool handed_read(struct str text, const struct value *files, struct handed *handed,
		 struct buf *sentence)
{
	size_t recorded = 0;

	*handed = (struct handed){0};
	if (!patch_parse(text, &handed->patch, sentence))
		return false;
	if (handed->patch.codex) {
		(void)buf_adds(sentence, "A patch that was handed over is a unified diff.");
		return false;
	}
	patch_merge(&handed->patch);
	handed->files = memory_array(handed->patch.file_count + 1, sizeof(*handed->files));
	for (; handed->count < handed->patch.file_count; handed->count++) {
		if (!take_file(&handed->files[handed->count],
			       &handed->patch.files[handed->count], files, sentence))
			return false;
	}
	if (!are_apart(handed, sentence))
		return false;
	for (size_t i = 0; i < value_count(files); i++)
		recorded += !is_left_out(value_item(files, i));
	if (recorded != handed->count) {
		(void)buf_addf(sentence,
			       "The patch and its record do not fit: it has %zu files, the "
			       "record %zu. Nothing was changed.",
			       handed->count, recorded);
		return false;
	}
	return true;
}

void handed_fini(struct handed *handed)
{
	patch_fini(&handed->patch);
	free(handed->files);
	*handed = (struct handed){0};
}

enum {
	NAMES_MAX = 20, /* files named in one answer */
	SENTENCE_MAX = 8 << 10,
};

static const struct row take_patch_params[] = {
	{"patch", ROW_TEXT, true, "The patch", .max = PATCH_BYTES_MAX, .unmasks = UNMASKS},
	{"title", ROW_TEXT, false, "What it does"},
	{"files", ROW_LIST, true, "The record of its files", .rows = handed_rows,
	 .max = PATCH_FILES_MAX},
	{"look", ROW_FLAG, false, "Only compare", .initial = "false"},
	{0},
};

struct taking {
	struct call *call;
	struct tool_result *result;
	struct handed handed;
	struct value *files; /* what must be done with each file */
	size_t to_do, already, differing;
	struct buf names; /* of the files that differ, with the expected state */
};

static void digest_hex(const struct undo_state *state, char hex[HASH_HEX + 1])
{
	for (size_t i = 0; i < UNDO_DIGEST; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", state->digest[i]);
}

/* Is STATE a file with this content or, when HEX is empty, no file? */
static bool is_as(const struct undo_state *state, const char *hex)
{
	char found[HASH_HEX + 1];

	if (hex[0] == '\0')
		return state->kind == UNDO_ABSENT;
	if (state->kind != UNDO_FILE || !state->hashed)
		return false;
	digest_hex(state, found);
	return strcmp(found, hex) == 0;
}

static bool mode_is(const struct undo_state *state, unsigned mode)
{
	return mode == 0 || ((state->mode & 0100) != 0) == (mode == 0755);
}

static void add_expected(struct buf *out, const char *hex)
{
	if (hex[0] == '\0')
		(void)buf_adds(out, "nothing there");
	else
		(void)buf_addf(out, "%.*s", HASH_SHOWN, hex);
}

/* Note a file that is neither as before the run nor as after it. */
static void note_difference(struct taking *taking, const struct handed_file *file,
			    const char *path, const struct undo_state *now, const char *why)
{
	static const char *const kinds[] = {"is not there", "", "is a symbolic link",
					    "is a folder"};
	char hex[HASH_HEX + 1];

	if (taking->differing++ >= NAMES_MAX)
		return;
	(void)buf_adds(&taking->names, "  ");
	text_add_name(&taking->names, str_of(path));
	if (why == NULL && now->kind == UNDO_FILE && now->hashed) {
		digest_hex(now, hex);
		(void)buf_addf(&taking->names, " is %.*s", HASH_SHOWN, hex);
	} else {
		(void)buf_addf(&taking->names, " %s",
			       why != NULL              ? why
			       : now->kind == UNDO_FILE ? "is too large to be compared"
							: kinds[now->kind]);
	}
	(void)buf_adds(&taking->names, "; expected ");
	add_expected(&taking->names,
		     path == file->to && file->file->to != NULL ? "" : file->base);
	(void)buf_adds(&taking->names, " as before the run");
	if (file->now_known && path == file->to) {
		(void)buf_adds(&taking->names, ", or ");
		add_expected(&taking->names, file->now);
		(void)buf_adds(&taking->names, " as after it");
	}
	(void)buf_addc(&taking->names, '\n');
}

static void look_at(struct taking *taking, const struct handed_file *file)
{
	const bool moves = file->file->to != NULL;
	struct undo_state now, from = undo_absent;
	struct value *row = value_new_object();
	struct err err = {0};
	struct buf name;
	bool already, fits;

	if (!undo_place_look(taking->call->files, file->to, &now, &err) ||
	    (moves && !undo_place_look(taking->call->files, file->file->path, &from, &err))) {
		note_difference(taking, file, file->to, &undo_absent, err.text);
		value_free(row);
		return;
	}
	/* When a file and a folder swap places, such a folder counts as no file. */
	if (now.kind == UNDO_FOLDER && (patch_makes_room(&taking->handed.patch, file->to) ||
					patch_needs_room(&taking->handed.patch, file->to)))
		now = undo_absent;
	already = file->now_known && is_as(&now, file->now) &&
		  mode_is(&now, file->file->mode) && from.kind == UNDO_ABSENT;
	fits = moves ? now.kind == UNDO_ABSENT && is_as(&from, file->base)
		     : is_as(&now, file->base);
	buf_init(&name, SENTENCE_MAX);
	text_add_name(&name, str_of(file->to));
	value_set_str(row, "path", buf_str(&name));
	value_set_text(row, "state", already ? "already" : fits ? "to_do" : "differs");
	value_append(taking->files, row);
	buf_fini(&name);
	if (already)
		taking->already++;
	else if (fits)
		taking->to_do++;
	else if (moves && now.kind == UNDO_ABSENT)
		note_difference(taking, file, file->file->path, &from, NULL);
	else
		note_difference(taking, file, file->to, &now, NULL);
}

static enum result_status refuse(struct taking *taking)
{
	struct buf *text = &taking->result->text;

	(void)buf_adds(text, "Nothing was applied, because of ");
	(void)text_add_count(text, taking->differing, "file");
	(void)buf_addf(text, ":\n%s", taking->names.data);
	if (taking->differing > NAMES_MAX)
		(void)buf_addf(text, "  and %zu more\n", taking->differing - NAMES_MAX);
	return tool_fail(taking->result,
			 "A file of the patch must hold what it held before the "
			 "run (hashes are SHA-256), or what the run left in it.");
}

/* Do the contents before and after the patch have the hashes of the record? */
static bool fits_the_record(struct patching *patching, struct patch_target *target)
{
	const struct taking *taking = patching->context;
	const struct handed_file *file = NULL;
	char old[HASH_HEX + 1] = "", new[HASH_HEX + 1] = "";

	for (size_t i = 0; i < taking->handed.count && file == NULL; i++) {
		/*
		 * The set has copies of the patch's files, but their names are the same
		 * texts.
		 */
		if (taking->handed.files[i].file->path == target->file->path)
			file = &taking->handed.files[i];
	}
	if (file != NULL && file->existed)
		hash_text(buf_str(&target->from.old), old);
	/* A file with only another name or mode has no hunks, and its content stays. */
	if (file != NULL && file->exists)
		hash_text(buf_str(&target->content), new);
	if (file != NULL && strcmp(old, file->base) == 0 &&
	    (!file->now_known || strcmp(new, file->now) == 0))
		return true;
	(void)tool_fail(patching->result,
			"%s was changed by somebody else in the meantime. Nothing was applied.",
			target->file->path);
	return false;
}

/* Apply the changes that are still to be made, as one set. */
static enum result_status apply(struct taking *taking)
{
	struct patching patching = {.call = taking->call,
				    .result = taking->result,
				    .patch = taking->handed.patch,
				    .given_ends = true,
				    .fits = fits_the_record,
				    .context = taking};
	struct patch_file *files = memory_array(taking->handed.count + 1, sizeof(*files));
	enum result_status status;

	patching.patch.files = files;
	patching.patch.file_count = 0;
	for (size_t i = 0; i < taking->handed.count; i++) {
		const char *state =
			value_text(value_member(value_item(taking->files, i), "state"));

		if (strcmp(state, "to_do") == 0)
			files[patching.patch.file_count++] = *taking->handed.files[i].file;
	}
	status = patching_files(&patching);
	free(files);
	return status;
}

static enum result_status answer(struct taking *taking)
{
	struct value *details;
	enum result_status status = RESULT_DONE;

	if (taking->differing > 0)
		status = refuse(taking);
	else if (taking->to_do > 0 && !call_flag(taking->call, "look"))
		status = apply(taking);
	if (status == RESULT_DONE)
		(void)tool_done(taking->result);
	details = tool_details(taking->result);
	value_set_integer(details, "to_do", (int64_t)taking->to_do);
	value_set_integer(details, "already", (int64_t)taking->already);
	value_set_integer(details, "differing", (int64_t)taking->differing);
	value_set(details, "compared", value_ref(taking->files));
	return status;
}

static enum result_status take_patch_execute(struct call *call, struct tool_result *result)
{
	struct taking taking = {.call = call, .result = result, .files = value_new_array()};
	enum result_status status = RESULT_FAILED;

	result->status = RESULT_FAILED;
	buf_init(&taking.names, RESULT_TEXT_MAX / 2);
	if (handed_read(call_str(call, "patch"), value_member(call->arguments, "files"),
			&taking.handed, &result->text)) {
		for (size_t i = 0; i < taking.handed.count && !call_stopped(call); i++)
			look_at(&taking, &taking.handed.files[i]);
		status = call_stopped(call) ? call_stop_result(call, result)
					    : answer(&taking);
	}
	handed_fini(&taking.handed);
	buf_fini(&taking.names);
	value_free(taking.files);
	return status;
}

const struct tool take_patch_tool = {
	.name = "take_patch",
	.title = "patch apply",
	.description =
		"Apply a patch that was handed over, where its files are what they were.",
	.example = "{\"patch\": \"...\", \"files\": []}",
	.params = take_patch_params,
	.effects = EFFECT_WRITES,
	.timeout_s = 600, /* a thousand files, each synced */
	.internal = true,
	.plain = true,
	.judged_as = "apply_patch",
	.is_step = true,
	.visit_paths = patching_paths,
	.execute = take_patch_execute,
};
