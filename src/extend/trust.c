/* trust: reads and writes the records, and compares items with them. */

#include "extend/trust.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/diff.h"
#include "base/text/text.h"
#include "base/value.h"
#include "store/database.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RECORD_MAX = 16 << 20,
	KEPT_MAX = 64 << 10, /* of one text: a longer one is kept in part */
	CONTEXT = 3,
};

static const char *const state_names[] = {
	[TRUST_NONE] = "new",
	[TRUST_LATER] = "put off",
	[TRUST_CHANGED] = "changed since it was let in",
	[TRUST_GIVEN] = "let in",
};

const char *trust_state_name(enum trust_state state)
{
	return state_names[state];
}

static void entry_fini(struct trust_entry *entry)
{
	free(entry->name);
	free(entry->since);
	free(entry->text);
}

void trust_fini(struct trust *trust)
{
	for (size_t i = 0; i < trust->count; i++)
		entry_fini(&trust->entries[i]);
	free(trust->entries);
	*trust = (struct trust){0};
}

/* The file of a record. */

static bool record_place(const char *workspace, struct buf *path, struct err *err)
{
	return database_workspace_path("trust", workspace, ".json", path, err) ||
	       err_while(err, "what was let in");
}

/* Take the hash NAME of ROW; "" where there is none. False: it is no hash. */
static bool take_hash(const struct value *row, const char *name, char hex[HASH_HEX + 1])
{
	const char *text = value_text(value_member(row, name));

	hex[0] = '\0';
	if (text == NULL)
		return value_member(row, name) == NULL;
	if (strlen(text) != HASH_HEX || !hash_is_valid(text))
		return false;
	memcpy(hex, text, HASH_HEX + 1);
	return true;
}

static struct trust_entry *entry_add(struct trust *trust, enum brought_kind kind,
				     const char *name)
{
	struct trust_entry *entry;

	trust->entries =
		memory_grow(trust->entries, trust->count + 1, sizeof(trust->entries[0]));
	entry = &trust->entries[trust->count++];
	*entry = (struct trust_entry){.kind = kind, .name = memory_copy(name)};
	return entry;
}

static bool take_entry(struct trust *trust, const struct value *row)
{
	const char *name = value_text(value_member(row, "name"));
	struct trust_entry *entry;
	enum brought_kind kind;

	if (!brought_kind_read(value_text(value_member(row, "kind")), &kind) ||
	    name == NULL || trust_find(trust, kind, name) != NULL)
		return false;
	entry = entry_add(trust, kind, name);
	entry->since = memory_copy(value_text(value_member(row, "since")));
	entry->text = memory_copy(value_text(value_member(row, "text")));
	return take_hash(row, "hash", entry->hash) && take_hash(row, "later", entry->later);
}

bool trust_parse(struct str text, struct trust *trust, struct err *err)
{
	auto_value struct value *root = NULL;
	const struct value *rows;

	*trust = (struct trust){0};
	if (!value_parse(text, 0, &root, err))
		return false;
	rows = value_member(root, "entries");
	for (size_t i = 0; i < value_count(rows); i++) {
		if (!take_entry(trust, value_item(rows, i)))
			return err_set(err, EINVAL, "entry %zu is no entry of trust", i + 1);
	}
	return value_kind(rows) == VALUE_ARRAY ||
	       err_set(err, EINVAL, "the list of entries is missing");
}

bool trust_print(const struct trust *trust, const char *workspace, struct buf *out)
{
	auto_value struct value *root = value_new_object();
	struct value *rows = value_new_array();

	value_set_text(root, "workspace", workspace);
	value_set(root, "entries", rows);
	for (size_t i = 0; i < trust->count; i++) {
		const struct trust_entry *entry = &trust->entries[i];
		struct value *row = value_new_object();

		value_append(rows, row);
		value_set_text(row, "kind", brought_kind_name(entry->kind));
		value_set_text(row, "name", entry->name);
		if (entry->hash[0] != '\0')
			value_set_text(row, "hash", entry->hash);
		if (entry->later[0] != '\0')
			value_set_text(row, "later", entry->later);
		if (entry->since != NULL)
			value_set_text(row, "since", entry->since);
		if (entry->text != NULL)
			value_set_text(row, "text", entry->text);
	}
	return value_print(root, VALUE_PRETTY, out) && buf_addc(out, '\n');
}

static bool read_file(const char *path, struct trust *trust, struct err *err)
{
	struct err why = {0};
	struct buf text;
	bool fine;

	*trust = (struct trust){0};
	buf_init(&text, RECORD_MAX);
	fine = fd_read_file(path, RECORD_MAX, &text, &why);
	if (!fine)
		fine = why.code == ENOENT || why.code == ENOTDIR ||
		       err_set(err, why.code, "%s", why.text);
	else if (!trust_parse(buf_str(&text), trust, &why))
		fine = err_set(err, EINVAL,
			       "%s: %s; remove the file, and let in anew what you trust",
			       path, why.text);
	buf_fini(&text);
	return fine;
}

bool trust_read(const char *workspace, struct trust *trust, struct err *err)
{
	struct buf path;
	bool fine;

	*trust = (struct trust){0};
	buf_init(&path, PATH_MAX);
	fine = record_place(workspace, &path, err) && read_file(path.data, trust, err);
	buf_fini(&path);
	return fine;
}

/* Comparing an item with its entry. */

const struct trust_entry *trust_find(const struct trust *trust, enum brought_kind kind,
				     const char *name)
{
	for (size_t i = 0; i < trust->count; i++) {
		if (trust->entries[i].kind == kind &&
		    strcmp(trust->entries[i].name, name) == 0)
			return &trust->entries[i];
	}
	return NULL;
}

enum trust_state trust_of(const struct trust *trust, const struct brought *item)
{
	const struct trust_entry *entry = trust_find(trust, item->kind, item->name);

	if (entry == NULL || item->problem != NULL || item->hash[0] == '\0')
		return TRUST_NONE;
	if (strcmp(entry->hash, item->hash) == 0)
		return TRUST_GIVEN;
	if (strcmp(entry->later, item->hash) == 0)
		return TRUST_LATER;
	return entry->hash[0] != '\0' ? TRUST_CHANGED : TRUST_NONE;
}

bool trust_diff(const struct trust *trust, const struct brought *item, struct buf *out)
{
	const struct trust_entry *entry = trust_find(trust, item->kind, item->name);
	struct buf old_name, new_name;
	bool fine;

	if (entry == NULL || entry->text == NULL || item->text == NULL)
		return false;
	buf_init(&old_name, PATH_MAX);
	buf_init(&new_name, PATH_MAX);
	text_add_exact(&old_name, str_of(item->file));
	(void)buf_addf(&old_name, " (let in %s)",
		       entry->since != NULL ? entry->since : "before");
	text_add_exact(&new_name, str_of(item->file));
	(void)buf_adds(&new_name, " (now)");
	fine = diff_unified(str_of(entry->text), str_of(item->text), old_name.data,
			    new_name.data, CONTEXT, out, NULL);
	buf_fini(&new_name);
	buf_fini(&old_name);
	return fine;
}

/* Changing a record. */

/* Change the record of WORKSPACE by CHANGE, while no other process writes it. */
static bool change(const char *workspace, void (*make)(void *context, struct trust *trust),
		   void *context, struct err *err)
{
	struct trust trust = {0};
	struct buf path, text;
	bool fine;

	buf_init(&path, PATH_MAX);
	buf_init(&text, RECORD_MAX);
	fine = record_place(workspace, &path, err);
	auto_close int lock = fine ? fd_lock_beside(path.data, err) : -1;
	fine = lock >= 0 && read_file(path.data, &trust, err);
	if (fine) {
		make(context, &trust);
		fine = trust_print(&trust, workspace, &text)
			       ? fd_replace_file(path.data, buf_str(&text), err)
			       : err_set(err, EFBIG, "%s: the record is too large",
					 path.data);
	}
	trust_fini(&trust);
	buf_fini(&text);
	buf_fini(&path);
	return fine;
}

struct recording {
	const struct brought *const *items;
	size_t count;
	bool later;
};

static char *kept_text(const char *text)
{
	const struct str all = str_of(text);

	return memory_copy_str(str_part(all, 0, text_character_border(all, KEPT_MAX)));
}

static void let_in(struct trust_entry *entry, const struct brought *item)
{
	char day[CLOCK_DAY];

	clock_text_day(clock_wall_ms(), day);
	free(entry->since);
	free(entry->text);
	entry->since = memory_copy(day);
	entry->text = kept_text(item->text);
	memcpy(entry->hash, item->hash, sizeof(entry->hash));
	entry->later[0] = '\0';
}

static void record_items(void *context, struct trust *trust)
{
	const struct recording *recording = context;

	for (size_t i = 0; i < recording->count; i++) {
		const struct brought *item = recording->items[i];
		size_t at = 0;

		while (at < trust->count &&
		       (trust->entries[at].kind != item->kind ||
			strcmp(trust->entries[at].name, item->name) != 0))
			at++;
		if (at == trust->count)
			(void)entry_add(trust, item->kind, item->name);
		if (recording->later)
			memcpy(trust->entries[at].later, item->hash,
			       sizeof(trust->entries[at].later));
		else
			let_in(&trust->entries[at], item);
	}
}

bool trust_record(const char *workspace, const struct brought *const *items, size_t count,
		  bool later, struct err *err)
{
	struct recording recording = {.items = items, .count = count, .later = later};

	for (size_t i = 0; i < count; i++) {
		if (items[i]->problem != NULL)
			return err_set(err, EINVAL, "%s: %s", items[i]->file,
				       items[i]->problem);
	}
	return change(workspace, record_items, &recording, err);
}

struct removal {
	enum brought_kind kind;
	const char *name;
	bool was;
};

static void remove_entry(void *context, struct trust *trust)
{
	struct removal *removal = context;
	size_t kept = 0;

	for (size_t i = 0; i < trust->count; i++) {
		struct trust_entry *entry = &trust->entries[i];

		if (entry->kind == removal->kind && strcmp(entry->name, removal->name) == 0) {
			entry_fini(entry);
			removal->was = true;
		} else {
			trust->entries[kept++] = *entry;
		}
	}
	trust->count = kept;
}

bool trust_remove(const char *workspace, enum brought_kind kind, const char *name,
		  bool *was, struct err *err)
{
	struct removal removal = {.kind = kind, .name = name};
	const bool fine = change(workspace, remove_entry, &removal, err);

	*was = removal.was;
	return fine;
}
