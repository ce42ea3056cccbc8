/* report: prints the changes of a layer for the front. */

#include "tools/review/report.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/diff.h"
#include "base/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RENAME_LEAST = 64, /* a shorter content says little about where it comes from */
	HEAD_BYTES = 16,   /* of a file, for the name of its type */
	NAME_ROOM = 4 * PATH_MAX,
};

static const char *const class_names[] = {
	[CHANGE_NONE] = "none",       [CHANGE_APPLY] = "apply",
	[CHANGE_MERGE] = "merge",     [CHANGE_CONFLICT] = "conflict",
	[CHANGE_NO_BASE] = "no_base", [CHANGE_REFUSED] = "refused",
	[CHANGE_MINE] = "mine",       [CHANGE_OUTSIDE] = "outside",
};

/* The work on one report. */
struct reporting {
	struct comparing *comparing;
	enum report_detail detail;
	int diff_fd;
	uint64_t diff_bytes;
	struct buf before, after, text; /* used again for each change */
	struct change **removed;        /* removed files, in order of their digests */
	size_t removed_count;
	bool *moved; /* by index of a change: it is the old name of a renamed file */
	size_t lands, conflicts; /* changes, with and without a row */
};

/* The order in which changes get the rows that there are. */
enum rank { RANK_CONFLICT, RANK_REFUSED, RANK_NOTED, RANK_PLAIN, RANKS };

static bool is_told(const struct change *change)
{
	return change->class != CHANGE_NONE && change->class != CHANGE_OUTSIDE;
}

/* Is nothing said of CHANGE after a landing? An empty file may be one that a crash has cut. */
static bool is_plain(const struct change *change)
{
	return (change->class == CHANGE_APPLY || change->class == CHANGE_MERGE) &&
	       !change->set_ids &&
	       (change->target.kind != UNDO_FILE || change->target.size > 0);
}

static enum rank rank_of(const struct change *change)
{
	if (change->class == CHANGE_CONFLICT || change->class == CHANGE_NO_BASE)
		return RANK_CONFLICT;
	if (change->class == CHANGE_REFUSED)
		return RANK_REFUSED;
	return is_plain(change) ? RANK_PLAIN : RANK_NOTED;
}

/* The hash. */

static void hash_state(struct hash *hash, const struct undo_state *state)
{
	struct undo_state bare = {.kind = state->kind, .mode = state->mode};
	struct buf bytes;

	/* A folder's size and a link's mode say nothing. */
	if (state->kind == UNDO_LINK)
		bare.mode = 0;
	if (state->hashed) {
		bare.size = state->size;
		bare.hashed = true;
		memcpy(bare.digest, state->digest, sizeof(bare.digest));
	}
	buf_init(&bytes, UNDO_STATE_BYTES);
	undo_state_print(&bare, &bytes);
	hash_add(hash, buf_str(&bytes));
	buf_fini(&bytes);
}

void report_hash(const struct comparing *comparing, const struct commits *commits,
		 char hex[HASH_HEX + 1])
{
	struct hash *hash = hash_new();
	uint8_t digest[HASH_BYTES];

	for (size_t i = 0; i < comparing->upper->count; i++) {
		const struct change *change = &comparing->changes[i];
		const char class = (char)change->weighed;

		/* The choices of the user come after the reading, and do not count. */
		if (change->weighed == CHANGE_NONE || change->weighed == CHANGE_OUTSIDE)
			continue;
		hash_add(hash,
			 (struct str){change->row->path.data, change->row->path.size + 1});
		hash_add(hash, (struct str){&class, 1});
		hash_state(hash, &change->below);
		hash_state(hash, &change->row->state);
		if (change->extra_only)
			hash_add(hash, STR("extra"));
	}
	for (size_t i = 0; i < commits->count; i++) {
		const struct commits_ref *ref = &commits->refs[i];

		hash_add(hash, (struct str){ref->name, strlen(ref->name) + 1});
		hash_add(hash, (struct str){ref->layer, strlen(ref->layer) + 1});
	}
	hash_digest(hash, digest);
	hash_free(hash);
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* Renamed files. */

static int compare_digests(const void *a, const void *b)
{
	return memcmp((*(struct change *const *)a)->below.digest,
		      (*(struct change *const *)b)->below.digest, UNDO_DIGEST);
}

static void find_removed(struct reporting *reporting)
{
	const size_t count = reporting->comparing->upper->count;

	reporting->removed = memory_array(count + 1, sizeof(*reporting->removed));
	reporting->moved = memory_array(count + 1, sizeof(*reporting->moved));
	for (size_t i = 0; i < count; i++) {
		struct change *change = &reporting->comparing->changes[i];

		if (change->class == CHANGE_APPLY && change->below.kind == UNDO_FILE &&
		    change->target.kind == UNDO_ABSENT && change->below.size >= RENAME_LEAST)
			reporting->removed[reporting->removed_count++] = change;
	}
	if (reporting->removed_count > 0)
		qsort(reporting->removed, reporting->removed_count,
		      sizeof(*reporting->removed), compare_digests);
}

static size_t index_of(const struct reporting *reporting, const struct change *change)
{
	return (size_t)(change - reporting->comparing->changes);
}

/* The removed file of which the added CHANGE is the new name: there is just one; or NULL. */
static struct change *find_old_name(struct reporting *reporting, const struct change *change)
{
	struct change *found = NULL;
	size_t low = 0, high = reporting->removed_count;

	if (change->class != CHANGE_APPLY || change->target.kind != UNDO_FILE ||
	    change->below.kind != UNDO_ABSENT || change->target.size < RENAME_LEAST)
		return NULL;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (memcmp(reporting->removed[middle]->below.digest,
			   change->target.digest, UNDO_DIGEST) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < reporting->removed_count &&
	       memcmp(reporting->removed[low]->below.digest, change->target.digest,
		      UNDO_DIGEST) == 0;
	     low++) {
		if (reporting->moved[index_of(reporting, reporting->removed[low])])
			continue;
		if (found != NULL)
			return NULL;
		found = reporting->removed[low];
	}
	return found;
}

static void find_renamed(struct reporting *reporting, struct change **old_names)
{
	find_removed(reporting);
	for (size_t i = 0; i < reporting->comparing->upper->count; i++) {
		struct change *old =
			find_old_name(reporting, &reporting->comparing->changes[i]);

		old_names[i] = old;
		if (old != NULL)
			reporting->moved[index_of(reporting, old)] = true;
	}
}

/* One row. */

static const char *type_of(int fd)
{
	static const struct {
		const char *head;
		size_t size;
		const char *name;
	} types[] = {
		{"\x89PNG\r\n", 6, "PNG"},
		{"\xff\xd8\xff", 3, "JPEG"},
		{"GIF8", 4, "GIF"},
		{"%PDF-", 5, "PDF"},
		{"PK\x03\x04", 4, "ZIP"},
		{"\x1f\x8b", 2, "gzip"},
		{"\x7f"
		 "ELF",
		 4, "ELF"},
		{"SQLite format 3", 15, "SQLite"},
		{"\x28\xb5\x2f\xfd", 4, "zstd"},
		{"\xfd"
		 "7zXZ",
		 5, "xz"},
	};
	char head[HEAD_BYTES];
	const ssize_t size = fd >= 0 ? pread(fd, head, sizeof(head), 0) : -1;

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (size >= (ssize_t)types[i].size &&
		    memcmp(head, types[i].head, types[i].size) == 0)
			return types[i].name;
	}
	return "binary";
}

static struct value *state_value(const struct undo_state *state)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * UNDO_DIGEST + 1], mode[16];
	struct value *value;

	if (state->kind == UNDO_ABSENT)
		return value_new_null();
	value = value_new_object();
	if (state->kind == UNDO_FOLDER)
		value_set_boolean(value, "folder", true);
	if (state->kind == UNDO_LINK)
		value_set_boolean(value, "link", true);
	else {
		(void)snprintf(mode, sizeof(mode), "%04o", (unsigned)state->mode);
		value_set_text(value, "mode", mode);
	}
	if (state->hashed) {
		for (size_t i = 0; i < UNDO_DIGEST; i++) {
			hex[2 * i] = digits[state->digest[i] >> 4];
			hex[2 * i + 1] = digits[state->digest[i] & 15];
		}
		hex[2 * UNDO_DIGEST] = '\0';
		value_set_text(value, "hash", hex);
		value_set_integer(value, "size", (int64_t)state->size);
	}
	return value;
}

static const char *kind_of(const struct change *change, const struct undo_state *after)
{
	const struct undo_state *before = &change->below;

	if (change->extra_only)
		return "attributes";
	if (after->kind == UNDO_ABSENT)
		return "removed";
	if (before->kind == UNDO_ABSENT)
		return "added";
	if (before->kind == UNDO_LINK && after->kind == UNDO_LINK)
		return "link";
	if (before->kind == after->kind &&
	    (before->kind == UNDO_FOLDER ||
	     (before->hashed && after->hashed && before->size == after->size &&
	      memcmp(before->digest, after->digest, UNDO_DIGEST) == 0)))
		return "mode";
	return "changed";
}

static void set_name(struct value *row, const char *key, struct str path)
{
	struct buf name;

	buf_init(&name, NAME_ROOM);
	text_add_exact(&name, path);
	value_set_str(row, key, buf_str(&name));
	buf_fini(&name);
}

static void set_pair(struct value *row, const char *key, size_t a, size_t b)
{
	struct value *pair = value_new_array();

	value_append(pair, value_new_integer((int64_t)a));
	value_append(pair, value_new_integer((int64_t)b));
	value_set(row, key, pair);
}

/* Append the diff of a change to the file of diffs. */
static bool write_diff(struct reporting *reporting, const struct change *change,
		       const struct undo_state *after, struct diff_counts *counts,
		       struct err *err)
{
	struct buf old, new;

	if (reporting->detail < REPORT_DIFFS || reporting->diff_bytes >= REPORT_DIFF_MAX) {
		diff_count(buf_str(&reporting->before), buf_str(&reporting->after), counts);
		return true;
	}
	buf_init(&old, NAME_ROOM);
	buf_init(&new, NAME_ROOM);
	(void)buf_addf(&old, "a/%s", change->row->path.data);
	(void)buf_addf(&new, "b/%s", change->row->path.data);
	buf_clear(&reporting->text);
	bool fine = diff_unified(buf_str(&reporting->before), buf_str(&reporting->after),
				 change->below.kind == UNDO_FILE ? old.data : NULL,
				 after->kind == UNDO_FILE ? new.data : NULL, DIFF_CONTEXT,
				 &reporting->text, counts);
	buf_fini(&old);
	buf_fini(&new);
	reporting->diff_bytes += reporting->text.size;
	return !fine || fd_write_all(reporting->diff_fd, reporting->text.data,
				     reporting->text.size, err);
}

/* Add the counts of lines, or the type of a file that is no text. */
static bool add_content(struct reporting *reporting, const struct change *change,
			const struct undo_state *after, struct value *row, struct err *err)
{
	struct diff_counts counts = {0};
	const bool is_merged = change->class == CHANGE_MERGE;
	auto_close int fd = -1;

	if ((change->below.kind != UNDO_FILE && change->below.kind != UNDO_ABSENT) ||
	    (after->kind != UNDO_FILE && after->kind != UNDO_ABSENT))
		return true;
	buf_clear(&reporting->before);
	buf_clear(&reporting->after);
	const bool is_text = change->below.size <= REPORT_TEXT_MAX &&
			     after->size <= REPORT_TEXT_MAX &&
			     (change->below.kind == UNDO_ABSENT ||
			      compare_read(change, SIDE_BELOW, &reporting->before)) &&
			     (after->kind == UNDO_ABSENT || is_merged ||
			      compare_read(change, SIDE_LAYER, &reporting->after));
	if (!is_text) {
		fd = after->kind == UNDO_FILE
			     ? upper_open(change->row)
			     : fd_open_beneath(change->row->tree->below,
					       change->row->relative, O_RDONLY);
		value_set_text(row, "type", type_of(fd));
		return true;
	}
	if (is_merged)
		(void)buf_addstr(&reporting->after, buf_str(&change->text));
	if (!write_diff(reporting, change, after, &counts, err))
		return false;
	set_pair(row, "lines", counts.added, counts.removed);
	return true;
}

/* Say where the link of a change leads, in ROW and among the diffs. */
static bool add_target(struct reporting *reporting, const struct change *change,
		       struct value *row, struct err *err)
{
	struct buf target;
	bool fine;

	buf_init(&target, NAME_ROOM);
	fine = upper_read_link(change->row, &target, err);
	if (fine) {
		set_name(row, "target", buf_str(&target));
		buf_clear(&reporting->text);
		(void)buf_adds(&reporting->text, "Link ");
		text_add_exact(&reporting->text, change->row->path);
		(void)buf_adds(&reporting->text, " -> ");
		text_add_exact(&reporting->text, buf_str(&target));
		(void)buf_adds(&reporting->text, "\n");
		reporting->diff_bytes += reporting->text.size;
		fine = reporting->detail < REPORT_DIFFS ||
		       reporting->diff_bytes >= REPORT_DIFF_MAX ||
		       fd_write_all(reporting->diff_fd, reporting->text.data,
				    reporting->text.size, err);
	}
	buf_fini(&target);
	return fine;
}

static bool add_row(struct reporting *reporting, struct change *change,
		    const struct change *old_name, struct value *rows, struct err *err)
{
	struct value *row = value_new_object();
	const struct undo_state *after =
		change->class == CHANGE_APPLY || change->class == CHANGE_MERGE
			? &change->target
			: &change->row->state;

	set_name(row, "path", change->row->path);
	/* A name that is shown with escapes is still one that a person may have to type. */
	if (!str_equal(value_str(value_member(row, "path")), change->row->path)) {
		auto_free char *key = path_key(change->row->path.data);

		value_set_text(row, "key", key);
	}
	value_set_text(row, "kind", old_name != NULL ? "renamed" : kind_of(change, after));
	value_set_text(row, "class", class_names[change->class]);
	value_set(row, "before",
		  state_value(old_name != NULL ? &old_name->below : &change->below));
	value_set(row, "after", state_value(after));
	if (old_name != NULL)
		set_name(row, "from", old_name->row->path);
	if (change->class == CHANGE_REFUSED)
		value_set_text(row, "refused", overlay_refusal_names[change->refused]);
	if (change->why != NULL)
		value_set_text(row, "why", change->why);
	if (change->set_ids)
		value_set_boolean(row, "set_ids", true);
	if (change->weighed == CHANGE_CONFLICT || change->weighed == CHANGE_NO_BASE) {
		value_set_boolean(row, "text", change->has_text);
		if (change->first > 0)
			set_pair(row, "overlap", change->first, change->last);
		if (change->has_text) {
			set_pair(row, "ours", change->ours.added, change->ours.removed);
			set_pair(row, "theirs", change->theirs.added,
				 change->theirs.removed);
		}
		if (change->below.kind != UNDO_ABSENT)
			value_set_integer(row, "since_ms", change->below.mtime_ns / 1000000);
	}
	value_append(rows, row);
	if (after->kind == UNDO_LINK && change->row->shape == UPPER_PLAIN &&
	    !add_target(reporting, change, row, err))
		return false;
	return reporting->detail == REPORT_BRIEF || change->class == CHANGE_REFUSED ||
	       old_name != NULL || add_content(reporting, change, after, row, err);
}

/* May the change at INDEX have a row? The old name of a renamed file is in that of its new one. */
static bool is_counted(const struct reporting *reporting, size_t index)
{
	return is_told(&reporting->comparing->changes[index]) &&
	       (reporting->moved == NULL || !reporting->moved[index]);
}

/*
 * Count the changes, and share the rows out: ROOM says how many each rank has. A conflict
 * behind many plain changes has a row. Returns how many changes have none.
 */
static size_t share_rows(struct reporting *reporting, size_t room[RANKS])
{
	size_t wanted[RANKS] = {0}, left = REPORT_ROWS_MAX, more = 0;

	for (size_t i = 0; i < reporting->comparing->upper->count; i++) {
		const struct change *change = &reporting->comparing->changes[i];

		if (!is_counted(reporting, i))
			continue;
		reporting->lands +=
			change->class == CHANGE_APPLY || change->class == CHANGE_MERGE;
		wanted[rank_of(change)]++;
	}
	reporting->conflicts = wanted[RANK_CONFLICT];
	if (reporting->detail == REPORT_BRIEF)
		wanted[RANK_PLAIN] = 0;
	for (size_t rank = 0; rank < RANKS; rank++) {
		room[rank] = wanted[rank] < left ? wanted[rank] : left;
		left -= room[rank];
		more += wanted[rank] - room[rank];
	}
	return more;
}

static bool add_rows(struct reporting *reporting, struct value *report, struct err *err)
{
	const size_t count = reporting->comparing->upper->count;
	auto_free struct change **old_names = memory_array(count + 1, sizeof(*old_names));
	struct value *rows = value_new_array();
	size_t room[RANKS], more;
	bool fine = true;

	if (reporting->detail > REPORT_BRIEF)
		find_renamed(reporting, old_names);
	more = share_rows(reporting, room);
	for (size_t i = 0; i < count && fine; i++) {
		struct change *change = &reporting->comparing->changes[i];

		if (!is_counted(reporting, i) || room[rank_of(change)] == 0)
			continue;
		room[rank_of(change)]--;
		fine = add_row(reporting, change, old_names[i], rows, err);
		if (fine && call_stopped(reporting->comparing->call))
			fine = err_set(err, ECANCELED, "stopped");
	}
	value_set(report, "changes", rows);
	value_set_integer(report, "more", (int64_t)more);
	return fine;
}

static void add_totals(const struct reporting *reporting, struct value *report)
{
	const struct comparing *comparing = reporting->comparing;
	int64_t changed = 0, added = 0, removed = 0, bytes = 0, outside = 0, kept = 0;
	struct value *totals = value_new_object();

	for (size_t i = 0; i < comparing->upper->count; i++) {
		const struct change *change = &comparing->changes[i];
		const struct undo_state *layer = &change->row->state;

		outside += change->class == CHANGE_OUTSIDE;
		/* Its owner may let it be read, and another agent may write there. */
		kept += change->class == CHANGE_REFUSED &&
			(change->refused == REFUSED_READ ||
			 change->refused == REFUSED_AGENT);
		if (!is_told(change) || change->class == CHANGE_REFUSED ||
		    change->class == CHANGE_MINE || layer->kind == UNDO_FOLDER ||
		    (layer->kind == UNDO_ABSENT && change->below.kind == UNDO_FOLDER))
			continue;
		added += change->below.kind == UNDO_ABSENT;
		removed += layer->kind == UNDO_ABSENT;
		changed += change->below.kind != UNDO_ABSENT && layer->kind != UNDO_ABSENT;
		bytes += layer->kind == UNDO_FILE ? (int64_t)layer->size : 0;
	}
	value_set_integer(totals, "changed", changed);
	value_set_integer(totals, "added", added);
	value_set_integer(totals, "removed", removed);
	value_set_integer(totals, "bytes", bytes);
	value_set_integer(totals, "outside", outside);
	value_set_integer(totals, "kept", kept);
	value_set_integer(totals, "lands", (int64_t)reporting->lands);
	value_set_integer(totals, "conflicts", (int64_t)reporting->conflicts);
	value_set(report, "totals", totals);
}

bool report_add(struct value *report, struct comparing *comparing,
		const struct commits *commits, enum report_detail detail, int diff_fd,
		struct err *err)
{
	struct reporting reporting = {.comparing = comparing,
				      .detail = detail,
				      .diff_fd = diff_fd};
	char hex[HASH_HEX + 1];

	buf_init(&reporting.before, OVERLAY_TEXT_MAX + 1);
	buf_init(&reporting.after, 4 * (size_t)OVERLAY_TEXT_MAX);
	buf_init(&reporting.text, REPORT_DIFF_MAX);
	const bool fine = add_rows(&reporting, report, err);
	add_totals(&reporting, report);
	report_hash(comparing, commits, hex);
	value_set_text(report, "hash", hex);
	buf_fini(&reporting.before);
	buf_fini(&reporting.after);
	buf_fini(&reporting.text);
	free(reporting.removed);
	free(reporting.moved);
	return fine;
}
