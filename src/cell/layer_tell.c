/* layer_tell: gathers by folder what does not last, and puts it into words. */
#include "cell/layer_tell.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	GROUPS_MAX = 1024, /* folders told separately; files in further ones are only counted */
	ITEMS_MAX = 64, /* of these in details */
	NAMES_MAX = 2,  /* up to so many names are told; more are told by their folder */
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
	char *names[NAMES_MAX];
};

struct layer_found {
	struct group groups[GROUPS_MAX];
	size_t group_count;
	struct group *last; /* the group of the last addition: a walk adds the files of one folder together */
	size_t counts[LAYER_CHANGES];
};

/* Gathering. */

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
		for (size_t j = 0; j < NAMES_MAX; j++)
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
	if (group->count < NAMES_MAX)
		group->names[group->count] = memory_copy_str(path);
	group->count++;
}

/* As data. */

static const char *const change_keys[LAYER_CHANGES] = {"files", "empty", "removed"};

static int group_compare(const void *left, const void *right)
{
	const struct group *const *a = left, *const *b = right;

	if ((*a)->change != (*b)->change)
		return (*a)->change < (*b)->change ? -1 : 1;
	return strcmp((*a)->key, (*b)->key);
}

static int name_compare(const void *left, const void *right)
{
	const char *const *a = left, *const *b = right;

	return strcmp(*a, *b);
}

static void add_item(struct value *folders, struct str path, enum layer_change change,
		     size_t count)
{
	struct value *item = value_new_object();
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, path);
	if (change == LAYER_EMPTY && count == 1)
		(void)buf_addc(&shown, '/');
	value_set_text(item, "path", shown.data);
	value_set_integer(item, change_keys[change], (int64_t)count);
	value_append(folders, item);
	buf_fini(&shown);
}

static void add_group(struct value *folders, const struct group *group)
{
	const char *names[NAMES_MAX];

	if (group->count > NAMES_MAX) {
		add_item(folders, str_of(group->common[0] != '\0' ? group->common : "./"),
			 group->change, group->count);
		return;
	}
	for (size_t i = 0; i < group->count; i++)
		names[i] = group->names[i];
	qsort(names, group->count, sizeof(names[0]), name_compare);
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
	struct value *layer = value_new_object();
	struct buf line;

	value_set_integer(layer, "files", (int64_t)found->counts[LAYER_WRITTEN]);
	value_set_integer(layer, "removed", (int64_t)found->counts[LAYER_REMOVED]);
	if (found->counts[LAYER_EMPTY] > 0)
		value_set_integer(layer, "empty", (int64_t)found->counts[LAYER_EMPTY]);
	value_set(layer, "folders", folders_of(found));
	value_set(layer, "stays", stays);
	if (!whole)
		value_set_boolean(layer, "partial", true);
	value_set(tool_details(result), KEY_LAYER, layer);
	buf_init(&line, RESULT_TEXT_MAX);
	layer_tell_print(result, &line);
	(void)buf_end_line(&result->text);
	(void)buf_addf(&result->text, "[%s]\n", line.data);
	buf_fini(&line);
}

/* As words. Details may come from anybody, so names are cleaned once more. */

static void add_shown(struct buf *out, const struct value *path)
{
	text_add_name(out, value_str(path));
}

/*
 * Print ITEM: "3 files below build/", "removal of src/a.c". Returns how many names it
 * stands for.
 */
static int64_t item_print(const struct value *item, struct buf *out)
{
	static const char *const many[LAYER_CHANGES] = {"file", "empty folder", "name"};
	const struct value *path = value_member(item, "path");
	int64_t count = 0;
	int change = LAYER_WRITTEN;

	while (change < LAYER_CHANGES - 1 && value_member(item, change_keys[change]) == NULL)
		change++;
	count = value_integer(value_member(item, change_keys[change]));
	if (change == LAYER_REMOVED)
		(void)buf_adds(out, "removal of ");
	if (count > 1) {
		text_add_count(out, (size_t)count, many[change]);
		(void)buf_adds(out, str_is(value_str(path), "./") ? " in " : " below ");
	} else if (change == LAYER_EMPTY) {
		(void)buf_adds(out, "the empty folder ");
	}
	add_shown(out, path);
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
		add_shown(out, value_item(stays, i));
	}
	if (count > STAYS_IN_TEXT)
		(void)buf_addf(out, " and %zu more", count - STAYS_IN_TEXT);
	if (count > 0)
		(void)buf_adds(out, count == 1 ? " stays)" : " stay)");
}

void layer_tell_print(const struct tool_result *result, struct buf *out)
{
	const struct value *layer = value_member(result->details, KEY_LAYER);
	const struct value *folders = value_member(layer, "folders");
	const size_t count = value_count(folders);
	int64_t told = 0;

	if (layer == NULL)
		return;
	(void)buf_adds(out, "not kept: ");
	for (size_t i = 0; i < count && i < ITEMS_IN_TEXT; i++) {
		(void)buf_adds(out, i > 0 ? ", " : "");
		told += item_print(value_item(folders, i), out);
	}
	const int64_t all = value_integer(value_member(layer, "files")) +
			    value_integer(value_member(layer, "removed")) +
			    value_integer(value_member(layer, "empty"));
	if (all > told)
		(void)buf_addf(out, ", and %lld more", (long long)(all - told));
	if (value_is_true(value_member(layer, "partial")))
		(void)buf_adds(out, count > 0 ? " at least"
					      : "what it wrote here, if anything; there was too "
						"much to look at");
	stays_print(value_member(layer, "stays"), out);
}

/* Files that exist in the cell only. */

void layer_tell_note_own(struct tool_result *result, const char *path)
{
	struct value *details = tool_details(result);
	struct value *list = value_member(details, KEY_OWN);
	struct buf shown;

	if (list == NULL) {
		value_set(details, KEY_OWN, value_new_array());
		list = value_member(details, KEY_OWN);
	}
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
