/*
 * generate_patch: the hand-over of a run: one unified diff, as `git apply` takes it, of every
 * file that the session's tools and commands changed, against what it was at the start. The
 * front hands in, open, what each of these files held (undo_plan.h). What is handed out has been
 * applied to that, with our own reader, and gave what lies there now.
 */
#include "tools/patch_file.h"
#include "tools/shown.h"
#include "tools/tools.h"
#include "tools/written.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/undo_log.h"
#include "runtime/undo_place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATCH_KB 256

enum {
	FD_PLAN,
	PATCH_MAX = PATCH_KB << 10,
	/* Renames are looked for by comparing each with each. */
	RENAMES_MAX = 1000,
};

static const struct tool_param generate_patch_params[] = {
	{"title", PARAM_TEXT, true, "One line: what the change does", .min = 1, .max = 200},
	{"summary", PARAM_TEXT, true, "What was changed and why, and how it was checked",
	 .min = 1, .max = 20000},
	{0},
};

/* A path that may be part of the patch. */
struct item {
	char *path;
	struct undo_state base, now;
	const char *left_out; /* why, or NULL */
	struct item *from;    /* a rename: what went, which is then said here */
	bool is_said;
};

struct patch {
	struct call *call;
	struct tool_result *result;
	struct item *items;
	size_t count, room;
	struct value *limits; /* what the front says of the plan, or NULL */
	struct buf diff;      /* all files */
	struct buf list;      /* lines for the text */
	struct value *files;
	size_t changed, left_out;
};

static const char *why_left_out(const struct patch *patch,
				const struct undo_change *change, struct item *item)
{
	struct err err = {0};

	if (item->path[0] == '/')
		return "outside the workspace";
	if (!undo_place_look(patch->call->files, item->path, &item->now, &err))
		return err.code == ENXIO ? "neither a file nor a folder now"
					 : "not readable now";
	if (item->base.kind == UNDO_LINK || item->now.kind == UNDO_LINK)
		return "a symbolic link";
	if (item->now.kind == UNDO_FOLDER)
		return "a folder now";
	if (change->after.kind == UNDO_FILE && change->after.source != UNDO_LOGGED)
		return "what it was could not be kept";
	return NULL;
}

static bool take_change(void *context, const struct undo_change *change)
{
	struct patch *patch = context;

	/* Git has no folders, only what is in them. */
	if (change->after.kind == UNDO_FOLDER ||
	    (change->after.kind == UNDO_ABSENT && change->before.kind == UNDO_FOLDER))
		return !call_stopped(patch->call);
	if (patch->count == patch->room) {
		patch->room = patch->room > 0 ? 2 * patch->room : 64;
		patch->items =
			memory_grow(patch->items, patch->room, sizeof(*patch->items));
	}
	struct item *item = &patch->items[patch->count];
	*item = (struct item){.path = memory_copy_str(change->path), .base = change->after};
	item->left_out = why_left_out(patch, change, item);
	if (undo_state_same(&item->base, &item->now))
		free(item->path); /* changed and changed back */
	else
		patch->count++;
	return !call_stopped(patch->call);
}

static bool take_limits(void *context, struct str json)
{
	struct patch *patch = context;

	if (patch->limits == NULL)
		(void)value_parse(json, 0, &patch->limits, NULL);
	return true;
}

static bool is_made(const struct item *item)
{
	return item->left_out == NULL && item->base.kind == UNDO_ABSENT;
}

static bool is_gone(const struct item *item)
{
	return item->left_out == NULL && item->now.kind == UNDO_ABSENT;
}

/* What went and stands elsewhere with the same content was renamed. */
static void find_renames(struct patch *patch)
{
	for (size_t i = 0; i < patch->count && patch->count <= RENAMES_MAX; i++) {
		struct item *made = &patch->items[i];

		for (size_t j = 0;
		     is_made(made) && made->now.size > 0 && j < patch->count; j++) {
			struct item *gone = &patch->items[j];
			if (!is_gone(gone) || gone->is_said || !gone->base.hashed ||
			    gone->base.size != made->now.size ||
			    memcmp(gone->base.digest, made->now.digest, UNDO_DIGEST) != 0)
				continue;
			made->from = gone;
			gone->is_said = true;
			break;
		}
	}
}

static void note(struct patch *patch, const struct item *item, const char *state,
		 const struct diff_counts *counts)
{
	struct value *file = value_new_object();
	const struct undo_state *base =
		item->from != NULL ? &item->from->base : &item->base;
	char hex[2 * UNDO_DIGEST + 1];

	value_set_text(file, "path", item->path);
	value_set_text(file, "state", state);
	value_set_integer(file, "added", (int64_t)counts->added);
	value_set_integer(file, "removed", (int64_t)counts->removed);
	if (item->from != NULL)
		value_set_text(file, "from", item->from->path);
	for (size_t i = 0; base->hashed && i < UNDO_DIGEST; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", base->digest[i]);
	if (base->kind == UNDO_FILE && base->hashed)
		value_set_text(file, "base_hash", hex);
	value_append(patch->files, file);
	(void)buf_adds(&patch->list, "  ");
	text_add_name(&patch->list, str_of(item->path));
	if (item->left_out != NULL) {
		patch->left_out++;
		(void)buf_addf(&patch->list, ": left out of the patch (%s)\n",
			       item->left_out);
		return;
	}
	patch->changed++;
	(void)buf_addf(&patch->list, ": %s", state);
	if (item->from != NULL) {
		(void)buf_adds(&patch->list, " from ");
		text_add_name(&patch->list, str_of(item->from->path));
	}
	(void)buf_addf(&patch->list, ", +%zu -%zu\n", counts->added, counts->removed);
}

static const char *read_now(struct patch *patch, const struct item *item, struct buf *content)
{
	struct err err = {0};
	struct file file;
	bool fine;

	if (item->now.kind == UNDO_ABSENT)
		return NULL;
	file_init(&file);
	fine = files_reach(patch->call->files, item->path, FILES_READ, &file, &err) &&
	       fd_read_all(file.fd, content, item->path, &err);
	file_fini(&file);
	return fine                ? NULL
	       : err.code == EFBIG ? "larger than 64 MiB"
				   : "not readable now";
}

static const char *read_base(const struct patch *patch, const struct item *item,
			     struct buf *content)
{
	if (item->base.kind == UNDO_ABSENT)
		return NULL;
	if (item->base.size > WRITTEN_FILE_MAX)
		return "it was larger than 64 MiB";
	return undo_log_content(patch->call->fds[FD_PLAN], item->base.offset,
				item->base.size, content, NULL)
		       ? NULL
		       : "what it was could not be read";
}

static const char *why_not_text(struct str base, struct str now)
{
	if (text_is_binary(base) || text_is_binary(now))
		return "binary";
	/* The patch travels as JSON, which holds UTF-8 alone. */
	return !text_is_utf8(base) || !text_is_utf8(now) ? "not UTF-8" : NULL;
}

static const char *add_section(struct patch *patch, const struct patch_file_change *change,
			       struct diff_counts *counts)
{
	struct buf section;
	const char *why = NULL;

	buf_init(&section, PATCH_MAX - patch->diff.size);
	if (!patch_file_print(change, &section, counts))
		why = "no room in a patch of " SHOWN_NUMBER(PATCH_KB) " KiB";
	else if (!patch_file_applies(change, buf_str(&section)))
		why = "a patch of it would not apply cleanly";
	else
		(void)buf_addstr(&patch->diff, buf_str(&section));
	buf_fini(&section);
	return why;
}

static void add_item(struct patch *patch, struct item *item)
{
	struct diff_counts counts = {0};
	struct buf base, now;
	struct patch_file_change change = {
		.path = item->path,
		.from = item->from != NULL ? item->from->path : NULL,
		.existed = item->base.kind == UNDO_FILE || item->from != NULL,
		.exists = item->now.kind == UNDO_FILE,
		.was_executable =
			((item->from != NULL ? &item->from->base : &item->base)->mode &
			 0100) != 0,
		.is_executable = (item->now.mode & 0100) != 0,
	};

	buf_init(&base, WRITTEN_FILE_MAX);
	buf_init(&now, WRITTEN_FILE_MAX);
	/* What only got another name or mode may hold what it likes. */
	const bool is_same =
		item->from != NULL ||
		(item->base.hashed && item->base.size == item->now.size &&
		 memcmp(item->base.digest, item->now.digest, UNDO_DIGEST) == 0 &&
		 change.existed && change.exists);
	if (item->left_out == NULL && !is_same) {
		item->left_out = read_now(patch, item, &now);
		if (item->left_out == NULL)
			item->left_out = read_base(patch, item, &base);
		if (item->left_out == NULL)
			item->left_out = why_not_text(buf_str(&base), buf_str(&now));
	}
	change.base = buf_str(&base);
	change.now = buf_str(&now);
	if (item->left_out != NULL || !is_same || item->from != NULL ||
	    change.was_executable != change.is_executable) {
		if (item->left_out == NULL)
			item->left_out = add_section(patch, &change, &counts);
		if (item->left_out != NULL)
			counts = (struct diff_counts){0};
		note(patch, item,
		     item->left_out != NULL ? "left_out"
		     : item->from != NULL   ? "renamed"
		     : !change.existed      ? "created"
		     : !change.exists       ? "deleted"
					    : "modified",
		     &counts);
	}
	buf_fini(&base);
	buf_fini(&now);
}

static void answer(struct patch *patch, const char *title, const char *summary)
{
	struct buf *text = &patch->result->text;
	struct value *details = tool_details(patch->result);
	const char *without = value_text(value_member(patch->limits, "without_commands"));
	const int64_t lost = value_integer(value_member(patch->limits, "lost"));

	(void)buf_addf(text, "%s\n\n%s\n\n", title, summary);
	if (patch->changed == 0 && patch->left_out == 0)
		(void)buf_adds(text, "No file differs from what it was.\n");
	else
		text_add_count(text, patch->changed, "file");
	if (patch->changed > 0 || patch->left_out > 0)
		(void)buf_addf(text, " in the patch:\n%s", patch->list.data);
	if (without != NULL)
		(void)buf_addf(text,
			       "It covers what file tools changed in this session; files changed by "
			       "commands are not in it: %s\n",
			       without);
	if (lost > 0)
		(void)buf_addf(text,
			       "%" PRId64 " calls of file tools changed more than could be "
			       "remembered; what they changed is not in it.\n",
			       lost);
	if (patch->diff.size > 0)
		(void)buf_addf(text, "\n%s", patch->diff.data);
	value_set_text(details, "title", title);
	value_set_text(details, "summary", summary);
	value_set_str(details, "patch", buf_str(&patch->diff));
	value_set(details, "files", value_ref(patch->files));
}

static bool patch_make(struct patch *patch, struct err *err)
{
	struct undo_reader reader = {.meta = take_limits,
				     .change = take_change,
				     .context = patch};

	if (patch->call->fds[FD_PLAN] >= 0 &&
	    !undo_log_read(&reader, patch->call->fds[FD_PLAN], err))
		return false;
	if (patch->call->fds[FD_PLAN] >= 0 && !reader.ended)
		return err_set(err, EINVAL, "it is cut short");
	find_renames(patch);
	for (size_t i = 0; i < patch->count && !call_stopped(patch->call); i++) {
		if (!patch->items[i].is_said)
			add_item(patch, &patch->items[i]);
	}
	return true;
}

static enum result_status generate_patch_execute(struct call *call,
						 struct tool_result *result)
{
	struct patch patch = {.call = call, .result = result, .files = value_new_array()};
	struct err err = {0};

	buf_init(&patch.diff, PATCH_MAX);
	buf_init(&patch.list, RESULT_TEXT_MAX / 2);
	/* More lines could look like a patch of their own. */
	if (strpbrk(call_text(call, "title"), "\r\n") != NULL) {
		(void)tool_fail(
			result,
			"title must be one line; what else is to be said is for summary.");
	} else if (!patch_make(&patch, &err)) {
		(void)tool_fail(result, "What was changed could not be read: %s", err.text);
	} else if (call_stopped(call)) {
		(void)call_stop_result(call, result);
	} else {
		answer(&patch, call_text(call, "title"), call_text(call, "summary"));
		(void)tool_done(result);
	}
	for (size_t i = 0; i < patch.count; i++)
		free(patch.items[i].path);
	free(patch.items);
	value_free(patch.limits);
	value_free(patch.files);
	buf_fini(&patch.diff);
	buf_fini(&patch.list);
	return result->status;
}

const struct tool generate_patch_tool = {
	.name = "generate_patch",
	.description =
		"Hand over the work: title, summary and one patch of all files changed in "
		"this session, by tools and commands. Call it last.",
	.example = "{\"title\": \"Fix the sum of empty lists\", \"summary\": \"...\"}",
	.params = generate_patch_params,
	.effects = EFFECT_READS,
	.wants_changes = true,
	.timeout_s = 30, /* reads every changed file once */
	.execute = generate_patch_execute,
};
