/* layer: walks the layers of a cell and reports what does not last. */

#include "cell/layers/layer.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/overlay.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Groups the changes that do not last by folder, and puts them into words. */

enum {
	/* folders told separately; files in further ones are only counted */
	GROUPS_MAX = 1024,
	ITEMS_MAX = 64, /* groups in the details */
	NAMES_TOLD = 2, /* up to so many names are told; more are told by their folder */
	ITEMS_IN_TEXT = 4, /* a line or two */
	STAYS_IN_TEXT = 4,
	OWN_MAX = 8, /* paths in `cell_only` */
	OWN_IN_TEXT = 3,
};

#define KEY_LAYER "layer"
#define KEY_OWN   "cell_only"

struct group {
	enum layer_change change;
	char *key;    /* the first folder below the layer, as it is shown */
	char *common; /* the deepest folder that holds all of it: "build/", or "" */
	size_t count;
	char *names[NAMES_TOLD];
};

struct layer_found {
	struct group groups[GROUPS_MAX];
	size_t group_count;
	/* the group of the last addition: a walk adds the files of one folder together */
	struct group *last;
	size_t counts[LAYER_CHANGES];
};

struct layer_found *layer_found_new(void)
{
	return memory_alloc(sizeof(struct layer_found));
}

void layer_found_free(struct layer_found *found)
{
	if (found == NULL)
		return;
	for (size_t i = 0; i < found->group_count; i++) {
		struct group *group = &found->groups[i];

		free(group->key);
		free(group->common);
		for (size_t j = 0; j < NAMES_TOLD; j++)
			free(group->names[j]);
	}
	free(found);
}

size_t layer_found_count(const struct layer_found *found)
{
	size_t count = 0;

	for (int i = 0; i < LAYER_CHANGES; i++)
		count += found->counts[i];
	return count;
}

/* The folder of PATH with its slash; empty at the top of the workspace. */
static struct str folder_of(struct str path)
{
	size_t size = path.size;

	while (size > 0 && path.data[size - 1] != '/')
		size--;
	return str_part(path, 0, size);
}

/*
 * The key of the group of PATH: its first folder in the layer, or the folder of the
 * layer.
 */
static struct str key_of(struct str path, size_t top)
{
	const char *slash =
		path.size > top ? memchr(path.data + top, '/', path.size - top) : NULL;

	return str_part(path, 0, slash != NULL ? (size_t)(slash - path.data) + 1 : top);
}

static struct group *group_of(struct layer_found *found, enum layer_change change,
			      struct str path, size_t top)
{
	const struct str key = key_of(path, top);

	if (found->last != NULL && found->last->change == change &&
	    str_is(key, found->last->key))
		return found->last;
	for (size_t i = 0; i < found->group_count; i++) {
		struct group *group = &found->groups[i];

		if (group->change == change && str_is(key, group->key))
			return group;
	}
	if (found->group_count == GROUPS_MAX)
		return NULL;
	struct group *group = &found->groups[found->group_count++];
	group->change = change;
	group->key = memory_copy_str(key);
	group->common = memory_copy_str(folder_of(path));
	return group;
}

/* Shorten COMMON to the leading components that it shares with FOLDER. */
static void narrow(char *common, struct str folder)
{
	size_t same = 0, size = 0;

	while (same < folder.size && common[same] != '\0' &&
	       common[same] == folder.data[same]) {
		same++;
		if (common[same - 1] == '/')
			size = same;
	}
	common[size] = '\0';
}

void layer_found_add(struct layer_found *found, enum layer_change change, struct str path,
		     size_t top)
{
	struct group *group = group_of(found, change, path, top);

	found->last = group;
	found->counts[change]++;
	if (group == NULL)
		return;
	narrow(group->common, folder_of(path));
	if (group->count < NAMES_TOLD)
		group->names[group->count] = memory_copy_str(path);
	group->count++;
}

/* Prints the groups as data. */

static int group_compare(const void *left, const void *right)
{
	const struct group *const *a = left, *const *b = right;

	if ((*a)->change != (*b)->change)
		return (*a)->change < (*b)->change ? -1 : 1;
	return strcmp((*a)->key, (*b)->key);
}

/* The part of a result about a layer, and an item of its `folders`, which has one count. */
struct told {
	uint64_t files, removed, empty;
	struct value *folders, *stays;
	bool partial;
};

static const struct field told_fields[] = {
	FIELD(struct told, files, .max = INT32_MAX),
	FIELD(struct told, removed, .max = INT32_MAX),
	FIELD(struct told, empty, .max = INT32_MAX, .optional = true),
	FIELD(struct told, folders),
	FIELD(struct told, stays),
	FIELD(struct told, partial, .optional = true),
	{0},
};

struct told_item {
	struct str path;
	uint64_t counts[LAYER_CHANGES];
};

#define COUNT(change, key)                                                   \
	FIELD_NAMED(struct told_item, counts[change], key, .max = INT32_MAX, \
		    .optional = true)
static const struct field item_fields[] = {
	FIELD(struct told_item, path),
	COUNT(LAYER_WRITTEN, "files"),
	COUNT(LAYER_EMPTY, "empty"),
	COUNT(LAYER_REMOVED, "removed"),
	{0},
};

static void add_item(struct value *folders, struct str path, enum layer_change change,
		     size_t count)
{
	struct told_item item = {0};
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, path);
	if (change == LAYER_EMPTY && count == 1)
		(void)buf_addc(&shown, '/');
	item.path = buf_str(&shown);
	item.counts[change] = count;
	value_append(folders, fields_print(item_fields, &item));
	buf_fini(&shown);
}

static void add_group(struct value *folders, const struct group *group)
{
	const char *names[NAMES_TOLD];

	if (group->count > NAMES_TOLD) {
		add_item(folders, str_of(group->common[0] != '\0' ? group->common : "./"),
			 group->change, group->count);
		return;
	}
	for (size_t i = 0; i < group->count; i++)
		names[i] = group->names[i];
	str_sort(names, group->count);
	for (size_t i = 0; i < group->count; i++)
		add_item(folders, str_of(names[i]), group->change, 1);
}

static struct value *folders_of(const struct layer_found *found)
{
	const struct group *sorted[GROUPS_MAX] = {0};
	struct value *folders = value_new_array();

	for (size_t i = 0; i < found->group_count; i++)
		sorted[i] = &found->groups[i];
	qsort(sorted, found->group_count, sizeof(sorted[0]), group_compare);
	for (size_t i = 0; i < found->group_count && value_count(folders) < ITEMS_MAX; i++)
		add_group(folders, sorted[i]);
	return folders;
}

void layer_tell(struct tool_result *result, const struct layer_found *found,
		struct value *stays, bool whole)
{
	const struct told told = {.files = found->counts[LAYER_WRITTEN],
				  .removed = found->counts[LAYER_REMOVED],
				  .empty = found->counts[LAYER_EMPTY],
				  .folders = folders_of(found),
				  .stays = stays,
				  .partial = !whole};
	struct buf line;

	value_set(tool_details(result), KEY_LAYER, fields_print(told_fields, &told));
	value_free(told.folders);
	value_free(stays);
	buf_init(&line, RESULT_TEXT_MAX);
	layer_tell_print(result, &line);
	(void)buf_end_line(&result->text);
	(void)buf_addf(&result->text, "[%s]\n", line.data);
	buf_fini(&line);
}

/*
 * Prints the groups as words. Details may come from anybody, so names are cleaned once
 * more.
 */

/*
 * Print ITEM: "3 files below build/", "removal of src/a.c". Returns how many names it
 * stands for.
 */
static uint64_t item_print(const struct value *value, struct buf *out)
{
	static const char *const many[LAYER_CHANGES] = {"file", "empty folder", "name"};
	struct told_item item = {0};
	int change = LAYER_WRITTEN;

	(void)fields_read(value, item_fields, &item, NULL, NULL);
	while (change < LAYER_CHANGES - 1 && item.counts[change] == 0)
		change++;
	const uint64_t count = item.counts[change];
	if (change == LAYER_REMOVED)
		(void)buf_adds(out, "removal of ");
	if (count > 1) {
		text_add_count(out, (size_t)count, many[change]);
		(void)buf_adds(out, str_is(item.path, "./") ? " in " : " below ");
	} else if (change == LAYER_EMPTY) {
		(void)buf_adds(out, "the empty folder ");
	}
	text_add_name(out, item.path);
	return count;
}

static void stays_print(const struct value *stays, struct buf *out)
{
	const size_t count = value_count(stays);

	(void)buf_adds(out, " (a layer that goes with this cell; ");
	if (count == 0)
		(void)buf_adds(out, "nothing written here stays)");
	for (size_t i = 0; i < count && i < STAYS_IN_TEXT; i++) {
		(void)buf_adds(out, i == 0 ? "only " : i + 1 == count ? " and " : ", ");
		text_add_name(out, value_str(value_item(stays, i)));
	}
	if (count > STAYS_IN_TEXT)
		(void)buf_addf(out, " and %zu more", count - STAYS_IN_TEXT);
	if (count > 0)
		(void)buf_adds(out, count == 1 ? " stays)" : " stay)");
}

void layer_tell_print(const struct tool_result *result, struct buf *out)
{
	const struct value *layer = value_member(result->details, KEY_LAYER);
	struct told told = {0};
	uint64_t shown = 0;

	if (layer == NULL)
		return;
	(void)fields_read(layer, told_fields, &told, NULL, NULL);
	const size_t count = value_count(told.folders);
	(void)buf_adds(out, "not kept: ");
	for (size_t i = 0; i < count && i < ITEMS_IN_TEXT; i++) {
		(void)buf_adds(out, i > 0 ? ", " : "");
		shown += item_print(value_item(told.folders, i), out);
	}
	const uint64_t all = told.files + told.removed + told.empty;
	if (all > shown)
		(void)buf_addf(out, ", and %" PRIu64 " more", all - shown);
	if (told.partial)
		(void)buf_adds(out, count > 0 ? " at least"
					      : "what it wrote here, if anything; there was too "
						"much to look at");
	stays_print(told.stays, out);
}

/* Reports files that exist in the cell only. */

void layer_tell_note_own(struct tool_result *result, const char *path)
{
	struct value *list = tool_details_list(result, KEY_OWN);
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path));
	if (value_count(list) < OWN_MAX && !value_has_text(list, shown.data))
		value_append(list, value_new_text(shown.data));
	buf_fini(&shown);
}

/*
 * Print the paths of LIST that lie in HOME or, without IN_HOME, the others. Returns their
 * number.
 */
static size_t own_print(const struct value *list, const char *home, bool in_home,
			struct buf *out)
{
	size_t count = 0;

	for (size_t i = 0; i < value_count(list) && i < OWN_MAX; i++) {
		const char *path = value_text(value_item(list, i));

		if (path == NULL || (home != NULL && path_within(path, home)) != in_home)
			continue;
		if (++count > OWN_IN_TEXT)
			continue;
		(void)buf_adds(out, count > 1 ? ", " : out->size > 0 ? "; " : "");
		text_add_name(out, str_of(path));
	}
	if (count > OWN_IN_TEXT)
		(void)buf_addf(out, " and %zu more", count - OWN_IN_TEXT);
	return count;
}

void layer_tell_print_own(const struct tool_result *result, const struct layer_own *own,
			  struct buf *out)
{
	const struct value *list = value_member(result->details, KEY_OWN);
	size_t count = own_print(list, own->home, false, out);

	if (count > 0 && own->one_call)
		(void)buf_adds(out,
			       count > 1
				       ? " existed in the cell only, and are gone with it"
				       : " existed in the cell only, and is gone with it");
	else if (count > 0 && own->sealed)
		(void)buf_addf(out, " exist%s in this cell only, until the session ends",
			       count > 1 ? "" : "s");
	else if (count > 0)
		(void)buf_addf(out, " %s removed when the session ends",
			       count > 1 ? "are" : "is");
	count = own_print(list, own->home, true, out);
	if (count > 0)
		(void)buf_addf(out,
			       " exist%s in cells of this workspace only, not in the user's home",
			       count > 1 ? "" : "s");
}

enum {
	/*
	 * A large build has some ten thousand objects; a name that is kept takes 8
	 * bytes.
	 */
	NAMES_MAX = 1 << 17,
	/* Each level holds a descriptor and the C library's 32 KiB. */
	DEPTH_MAX = 64,
	/*
	 * Limits of a walk before a program starts, and before its answer. A cancelled
	 * command is killed 400 ms after the cancel.
	 */
	BEGIN_MS = 50,
	END_MS = 150,
	/* Names between two readings of the clock. */
	CLOCK_EVERY = 1024,
	/* at the top of /tmp or the home: a temporary folder run wild */
	OWN_NAMES_MAX = 4096,
	OWN_FOLDERS_MAX = 4,
	STAYS_MAX = 64,
	/* Used beside the types of readdir: a folder in the place of a removed one. */
	REPLACED = DT_UNKNOWN,
	/*
	 * The clock that stamps files advances in steps of at most 10 ms (CONFIG_HZ=100).
	 */
	TICK_NS = 1000000,
	TICKS_MAX = 12,
};

/* 64-bit FNV-1a: the names of one cell, where a collision hides one of 100,000. */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

struct layer {
	const char *path;
	int fd; /* of the folder that holds its upper and lower */
};

struct names {
	uint64_t *items; /* sorted once all are there */
	size_t count;
};

struct layers {
	const struct cell_spec *spec;
	struct layer *items;
	size_t count;
	struct names before; /* the names that were there before the running call */
	bool before_whole;
	const char *own[OWN_FOLDERS_MAX + 1]; /* NULL-ended; texts of `spec`, constants, `beside` */
	char *beside; /* the folder above a workspace that lies in one of the cell's, or NULL */
};

/* A walk through one layer. */
struct look {
	const struct layers *layers;
	/* names are stored here; NULL: names are compared with `before` */
	struct names *collects;
	struct layer_found *found;
	struct buf path; /* as it is shown */
	size_t top;      /* of PATH's bytes: what names the layer itself */
	size_t seed;     /* of the layer, for the hashes of its names */
	int lower;
	int64_t since_ns, newest_ns, deadline_ms;
	size_t seen;
	bool partial;
};

/* Remembers the names that a folder had before the call. */

static uint64_t name_hash(const struct look *look, unsigned type)
{
	uint64_t hash = HASH_BEGIN ^ look->seed ^ ((uint64_t)type << 32);

	for (size_t i = look->top; i < look->path.size; i++)
		hash = (hash ^ (unsigned char)look->path.data[i]) * HASH_PRIME;
	return hash;
}

static int hash_compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static bool was_there(const struct look *look, unsigned type)
{
	const struct names *before = &look->layers->before;
	const uint64_t hash = name_hash(look, type);

	return before->count > 0 && bsearch(&hash, before->items, before->count,
					    sizeof(hash), hash_compare) != NULL;
}

static void name_keep(struct look *look, unsigned type)
{
	struct names *names = look->collects;

	names->items = memory_more(names->items, names->count, sizeof(*names->items));
	names->items[names->count++] = name_hash(look, type);
}

/* Walks the layers and reports what is new. */

static bool look_is_over(struct look *look)
{
	look->seen++;
	if (look->seen > NAMES_MAX ||
	    (look->seen % CLOCK_EVERY == 0 && clock_now_ms() > look->deadline_ms))
		look->partial = true;
	return look->partial;
}

static void add(struct look *look, enum layer_change change)
{
	layer_found_add(look->found, change, buf_str(&look->path), look->top);
}

/*
 * Note a file, link, socket or FIFO in the upper folder that this call has written,
 * changed, or moved there.
 */
static void look_at_file(struct look *look, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	const int64_t changed_ns = clock_ns(&st.st_ctim);

	if (changed_ns < look->since_ns &&
	    (!look->layers->before_whole || was_there(look, DT_REG)))
		return;
	if (changed_ns > look->newest_ns)
		look->newest_ns = changed_ns;
	add(look, LAYER_WRITTEN);
}

/*
 * Note a removed name. Its times say nothing, since the kernel makes one such device
 * and links it wherever it needs another. When the names from before the call are
 * unknown, a change of the folder decides.
 */
static void look_at_removed(struct look *look, bool folder_changed)
{
	if (look->layers->before_whole ? !was_there(look, DT_CHR) : folder_changed)
		add(look, LAYER_REMOVED);
}

static bool lies_below(const struct look *look)
{
	const char *below = look->path.data + look->top;
	struct stat st;

	return fstatat(look->lower, below, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       errno != ENOENT;
}

/* Did this call make the folder, in which nothing was found? */
static bool is_new_folder(const struct look *look)
{
	return look->layers->before_whole && !was_there(look, DT_DIR) && !lies_below(look);
}

/*
 * Note the folder FD when it is new in the place of a removed one: the old content counts
 * as removed.
 */
static void look_at_replaced(struct look *look, int fd)
{
	if (!overlay_hides(fd))
		return;
	if (look->collects != NULL)
		name_keep(look, REPLACED);
	else if (look->layers->before_whole && !was_there(look, REPLACED) &&
		 lies_below(look))
		add(look, LAYER_REMOVED);
}

static void look_at_entry(struct look *look, int folder, const struct dirent *entry,
			  bool changed, size_t depth);

static void look_at_folder(struct look *look, int take_fd, size_t depth)
{
	DIR *folder = depth < DEPTH_MAX ? fdopendir(take_fd) : NULL;
	struct stat st;

	if (folder == NULL) {
		(void)close(take_fd);
		look->partial = true;
		return;
	}
	const bool changed = look->collects == NULL && fstat(take_fd, &st) == 0 &&
			     clock_ns(&st.st_mtim) >= look->since_ns;
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (look_is_over(look))
			break;
		look_at_entry(look, take_fd, entry, changed, depth);
	}
	(void)closedir(folder);
}

static void look_into(struct look *look, int folder, const char *name, size_t depth)
{
	const size_t found = look->found != NULL ? layer_found_count(look->found) : 0;
	const int fd =
		openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (look->collects != NULL)
		name_keep(look, DT_DIR);
	if (fd < 0)
		return; /* the call has closed the folder to its owner as well */
	look_at_replaced(look, fd);
	const size_t size = look->path.size;
	if (buf_addc(&look->path, '/'))
		look_at_folder(look, fd, depth + 1);
	else
		(void)close(fd);
	buf_truncate(&look->path, size);
	if (look->found != NULL && layer_found_count(look->found) == found &&
	    is_new_folder(look))
		add(look, LAYER_EMPTY);
}

static void look_at_entry(struct look *look, int folder, const struct dirent *entry,
			  bool changed, size_t depth)
{
	const size_t size = look->path.size;

	if (!buf_adds(&look->path, entry->d_name)) {
		look->partial = true;
		buf_truncate(&look->path, size);
		return;
	}
	if (entry->d_type == DT_DIR)
		look_into(look, folder, entry->d_name, depth);
	else if (look->collects != NULL)
		name_keep(look, entry->d_type == DT_CHR ? DT_CHR : DT_REG);
	else if (entry->d_type == DT_CHR)
		look_at_removed(look, changed);
	else
		look_at_file(look, folder, entry->d_name);
	buf_truncate(&look->path, size);
}

/* Let LOOK walk through each layer. */
static void look_run(struct look *look)
{
	const struct layers *layers = look->layers;

	buf_init(&look->path, PATH_MAX);
	for (size_t i = 0; i < layers->count; i++) {
		const struct layer *layer = &layers->items[i];
		const char *shown = path_relative(layer->path, layers->spec->workspace);
		auto_close int lower = openat(layer->fd, VIEW_LAYER_LOWER,
					      O_PATH | O_DIRECTORY | O_CLOEXEC);
		const int upper = openat(layer->fd, VIEW_LAYER_UPPER,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		buf_clear(&look->path);
		if (strcmp(shown, ".") != 0)
			(void)buf_addf(&look->path, "%s/", shown);
		look->top = look->path.size;
		look->seed = i;
		look->lower = lower;
		if (upper < 0)
			look->partial = true;
		else
			look_at_folder(look, upper, 0);
	}
	buf_fini(&look->path);
}

/* Looks into the cell's own folders. */

static bool is_memory(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (entry->kind == VIEW_MEMORY && strcmp(entry->path, path) == 0)
			return true;
	}
	return false;
}

static void own_find(struct layers *layers)
{
	static const char *const folders[] = {"/tmp", "/var/tmp"};
	const struct cell_spec *spec = layers->spec;
	const struct str above = {spec->workspace, (size_t)(path_base_name(spec->workspace) -
							    spec->workspace - 1)};
	size_t count = 0;

	/*
	 * Below L3 these folders are the host's. Only the session's folder for temporary
	 * files is removed at the end.
	 */
	if (!spec_is_sealed(spec)) {
		layers->own[0] = spec->temp;
		return;
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (!is_memory(spec, folders[i]))
			continue;
		layers->own[count++] = folders[i];
		/* Work that is put beside a workspace below /tmp ends with the cell as well. */
		if (above.size > strlen(folders[i]) &&
		    path_within(spec->workspace, folders[i])) {
			layers->beside = memory_copy_str(above);
			layers->own[count++] = layers->beside;
		}
	}
	layers->own[count] = spec->home;
}

/*
 * Is NAME something that programs put at the top of such a folder for themselves? Hidden
 * files, our own logs of commands, and mount points.
 */
static bool is_theirs(const char *name, const struct stat *st, const struct stat *folder)
{
	return name[0] == '.' || strcmp(name, "glovebox") == 0 ||
	       st->st_dev != folder->st_dev;
}

/*
 * Does PATH lead to an entry of the view? Then PATH was made with the cell, possibly just
 * now.
 */
static bool leads_on(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (path_within(spec->view.entries[i].path, path))
			return true;
	}
	return false;
}

/*
 * Note what is new at the top of PATH since SINCE_NS. Deeper files are noted by their
 * folder when that is new.
 */
static void own_look(const struct cell_spec *spec, const char *path, int64_t since_ns,
		     struct tool_result *result)
{
	struct stat top, st;
	size_t seen = 0;
	struct buf name;

	/* Most calls need only this look at the time of the folder. */
	if (stat(path, &top) < 0 || clock_ns(&top.st_mtim) < since_ns)
		return;
	DIR *folder = opendir(path);
	if (folder == NULL)
		return;
	buf_init(&name, PATH_MAX);
	for (const struct dirent *entry;
	     seen < OWN_NAMES_MAX && (entry = readdir(folder)) != NULL; seen++) {
		if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    clock_ns(&st.st_ctim) < since_ns || is_theirs(entry->d_name, &st, &top))
			continue;
		buf_clear(&name);
		if (buf_addf(&name, "%s/%s", path, entry->d_name) &&
		    !leads_on(spec, name.data))
			layer_tell_note_own(result, name.data);
	}
	(void)closedir(folder);
	buf_fini(&name);
}

/* Does PATH lie in the base itself, and in no folder that the cell shows besides? */
static bool in_base(const struct cell_spec *spec, const char *path)
{
	bool within = spec_has_base(spec);

	for (size_t i = 0; within && i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		within = (entry->kind != VIEW_TREE && entry->kind != VIEW_MEMORY) ||
			 !path_within(path, entry->path);
	}
	return within;
}

void layers_note_written(const struct layers *layers, const struct value *written,
			 struct tool_result *result)
{
	for (size_t i = 0; i < value_count(written); i++) {
		const char *path = value_text(value_item(written, i));

		if (in_base(layers->spec, path))
			layer_tell_note_own(result, path);
		for (const char *const *own = layers->own; *own != NULL; own++) {
			if (path_within(path, *own) &&
			    !path_within(path, layers->spec->workspace))
				layer_tell_note_own(result, path);
		}
	}
}

/* Looks before and after one call. */

struct layers *layers_open(const struct cell_spec *spec)
{
	struct layers *layers = memory_alloc(sizeof(*layers));

	layers->spec = spec;
	layers->items = memory_array(spec->view.count + 1, sizeof(*layers->items));
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (entry->kind == VIEW_OVERLAY && entry->lasts == VIEW_LASTS_CELL)
			layers->items[layers->count++] =
				(struct layer){entry->path, entry->layer};
	}
	own_find(layers);
	return layers;
}

void layers_begin(struct layers *layers)
{
	struct look look = {.layers = layers, .collects = &layers->before};

	layers->before.count = 0;
	if (layers->count == 0)
		return;
	look.deadline_ms = clock_now_ms() + BEGIN_MS;
	look_run(&look);
	layers->before_whole = !look.partial;
	if (layers->before.count > 1)
		qsort(layers->before.items, layers->before.count,
		      sizeof(*layers->before.items), hash_compare);
}

/* List the folders that are kept beside the layers: those of `write` in the policy. */
static struct value *stays_of(const struct layers *layers)
{
	const struct cell_spec *spec = layers->spec;
	struct value *stays = value_new_array();

	for (size_t i = 0; i < spec->root_count && i < STAYS_MAX; i++) {
		const struct files_root *root = &spec->roots[i];
		const char *shown = path_relative(root->path, spec->workspace);
		struct stat st;
		struct buf name;

		if (!root->writable || is_memory(spec, root->path) ||
		    strcmp(root->path, spec->home) == 0)
			continue;
		buf_init(&name, 2 * PATH_MAX);
		if (root->pattern != NULL)
			(void)buf_addf(&name, "%s in ", root->pattern);
		(void)buf_adds(&name, strcmp(shown, ".") == 0 ? root->path : shown);
		if (stat(root->path, &st) == 0 && S_ISDIR(st.st_mode))
			(void)buf_addc(&name, '/');
		if (!value_has_text(stays, name.data))
			value_append(stays, value_new_text(name.data));
		buf_fini(&name);
	}
	return stays;
}

/*
 * Wait until the clock of files has passed NEWEST_NS. The next call counts files with the
 * time of its beginning as its own, so it must not begin in the same step as the last
 * file of this call.
 */
static void pass_tick(int64_t newest_ns)
{
	const struct timespec little = {.tv_nsec = TICK_NS};

	for (int i = 0; i < TICKS_MAX && clock_file_ns() <= newest_ns; i++)
		(void)nanosleep(&little, NULL);
}

void layers_end(struct layers *layers, const struct timespec *since,
		struct tool_result *result)
{
	struct look look = {.layers = layers, .since_ns = clock_ns(since)};

	for (const char *const *own = layers->own; *own != NULL; own++)
		own_look(layers->spec, *own, look.since_ns, result);
	if (layers->count == 0)
		return;
	look.found = layer_found_new();
	look.deadline_ms = clock_now_ms() + END_MS;
	look_run(&look);
	if (layer_found_count(look.found) > 0 || look.partial)
		layer_tell(result, look.found, stays_of(layers), !look.partial);
	layer_found_free(look.found);
	pass_tick(look.newest_ns);
}
