/* commit_base: see commit_base.h. */
#include "tools/patches/commit_base.h"
#include "tools/patches/patch.h"
#include "tools/shown.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/diff.h"
#include "base/text/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TREE_BYTES_MAX = 8 << 20, /* of the entries of a thousand files and their folders */
	SENTENCE_MAX = 64 << 10,
};

/* Of all files together: the process that reads it has as much again. */
#define STREAM_MAX ((size_t)512 << 20)

/* The entry that a commit has at one path. */
struct commit_entry {
	struct str path, object;
	char type; /* of the object: 'b'lob, 't'ree, 'c'ommit */
	bool executable, is_link;
};

/* PATH and the folders above it. */
static void ask_for(struct commit_base *base, const char *path)
{
	base->paths[base->path_count++] = path;
	for (const char *at = strchr(path, '/'); at != NULL; at = strchr(at + 1, '/')) {
		struct buf *name = &base->names[base->name_count++];

		buf_init(name, PATH_MAX);
		(void)buf_addstr(name, str_part(str_of(path), 0, (size_t)(at - path)));
		base->paths[base->path_count++] = name->data;
	}
}

static size_t depth_of(const char *path)
{
	size_t depth = 1;

	for (; *path != '\0'; path++)
		depth += *path == '/';
	return depth;
}

static void gather_paths(struct commit_base *base)
{
	size_t room = 0;

	for (size_t i = 0; i < base->handed->count; i++)
		room += depth_of(base->handed->files[i].to) +
			depth_of(base->handed->files[i].file->path);
	base->paths = memory_array(room + 1, sizeof(*base->paths));
	base->names = memory_array(room + 1, sizeof(*base->names));
	for (size_t i = 0; i < base->handed->count; i++) {
		const struct handed_file *file = &base->handed->files[i];

		ask_for(base, file->to);
		if (file->file->to != NULL)
			ask_for(base, file->file->path);
	}
}

void commit_base_init(struct commit_base *base, struct call *call,
		      const struct handed *handed)
{
	*base = (struct commit_base){.call = call, .handed = handed};
	buf_init(&base->prefix, PATH_MAX);
	buf_init(&base->tree, TREE_BYTES_MAX);
	buf_init(&base->differing, SENTENCE_MAX);
	buf_init(&base->stream, STREAM_MAX);
	gather_paths(base);
}

void commit_base_fini(struct commit_base *base)
{
	for (size_t i = 0; i < base->name_count; i++)
		buf_fini(&base->names[i]);
	free(base->names);
	free(base->paths);
	free(base->entries);
	buf_fini(&base->prefix);
	buf_fini(&base->tree);
	buf_fini(&base->differing);
	buf_fini(&base->stream);
}

static int compare_entries(const void *a, const void *b)
{
	const struct str left = ((const struct commit_entry *)a)->path;
	const struct str right = ((const struct commit_entry *)b)->path;
	const size_t least = left.size < right.size ? left.size : right.size;
	const int order = memcmp(left.data, right.data, least);

	return order != 0 ? order : (left.size > right.size) - (left.size < right.size);
}

static const struct commit_entry *find_entry(const struct commit_base *base, struct str path)
{
	const struct commit_entry wanted = {.path = path};

	return base->entry_count > 0 ? bsearch(&wanted, base->entries, base->entry_count,
					       sizeof(wanted), compare_entries)
				     : NULL;
}

/* "100644 blob <name>\tpath" */
static bool take_entry(struct commit_base *base, struct str row)
{
	const size_t tab = str_find(row, STR("\t"), 0);
	const struct str head = str_part(row, 0, tab);
	const size_t type = str_find(head, STR(" "), 0);
	const size_t object =
		type == (size_t)-1 ? type : str_find(head, STR(" "), type + 1);
	struct commit_entry *entry = &base->entries[base->entry_count];

	if (tab == (size_t)-1 || object == (size_t)-1)
		return false;
	*entry = (struct commit_entry){
		.path = str_part(row, tab + 1, row.size),
		.object = str_part(head, object + 1, head.size),
		.type = head.data[type + 1],
		.executable = str_starts(head, STR("100755 ")),
		.is_link = str_starts(head, STR("120000 ")),
	};
	base->entry_count++;
	return commit_is_object(entry->object);
}

static bool read_tree(struct commit_base *base, const char *commit, struct err *err)
{
	const char *const words[] = {"ls-tree", "-z", commit, NULL};
	auto_close int printed = -1;
	struct str rest;
	size_t rows = 0;

	buf_clear(&base->tree);
	base->entry_count = 0;
	if (!commit_git(base->call, words, base->paths, -1, &printed, err) ||
	    lseek(printed, 0, SEEK_SET) < 0 ||
	    !fd_read_all(printed, &base->tree, "what git listed", err))
		return false;
	rest = buf_str(&base->tree);
	for (size_t i = 0; i < rest.size; i++)
		rows += rest.data[i] == '\0';
	base->entries = memory_grow(base->entries, rows + 1, sizeof(*base->entries));
	while (rest.size > 0) {
		const char *end = memchr(rest.data, '\0', rest.size);
		const size_t size = end != NULL ? (size_t)(end - rest.data) : rest.size;

		if (end == NULL || !take_entry(base, str_part(rest, 0, size)))
			return err_set(err, EIO, "git ls-tree printed something else");
		rest = str_part(rest, size + 1, rest.size);
	}
	if (base->entry_count > 0)
		qsort(base->entries, base->entry_count, sizeof(*base->entries),
		      compare_entries);
	return true;
}

static void note_difference(struct commit_base *base, const char *path, const char *why)
{
	struct buf *names = &base->differing;

	/* Of the newest commit alone: the others are older still. */
	if (base->told)
		return;
	(void)buf_adds(names, "  ");
	text_add_name(names, str_of(path));
	(void)buf_addf(names, " (%s)\n", why);
}

/* Is what stands above PATH a folder, or not there at all? */
static bool folders_are_folders(const struct commit_base *base, const char *path)
{
	for (const char *at = strchr(path, '/'); at != NULL; at = strchr(at + 1, '/')) {
		const struct commit_entry *entry =
			find_entry(base, str_part(str_of(path), 0, (size_t)(at - path)));

		if (entry != NULL && entry->type != 't' &&
		    !patch_makes_room(&base->handed->patch, path))
			return false;
	}
	return true;
}

/* The entry that FILE was, or NULL with *FITS when it was none and there is none. */
static const struct commit_entry *base_of(struct commit_base *base,
					  const struct handed_file *file, bool *fits)
{
	const char *path = file->file->path;
	const struct commit_entry *entry = find_entry(base, str_of(path));

	*fits = false;
	if (!folders_are_folders(base, path) || !folders_are_folders(base, file->to))
		note_difference(base, path, "a folder above it is something else there");
	else if (!file->existed && entry != NULL)
		note_difference(base, path, "is there already");
	else if (file->existed && entry == NULL)
		note_difference(base, path, "is not there");
	else if (entry != NULL && (entry->type != 'b' || entry->is_link))
		note_difference(base, path, "is no plain file there");
	else if (file->file->to != NULL && find_entry(base, str_of(file->to)) != NULL)
		note_difference(base, file->to, "is there already");
	else
		*fits = true;
	return *fits ? entry : NULL;
}

/* PATH as fast-import takes it: in the repository, in quotes where it needs them. */
static void add_path(struct commit_base *base, const char *path)
{
	struct buf whole;

	buf_init(&whole, 2 * PATH_MAX);
	(void)buf_addf(&whole, "%s%s", base->prefix.data, path);
	(void)diff_add_quoted("", whole.data, &base->stream);
	buf_fini(&whole);
	(void)buf_addc(&base->stream, '\n');
}

static void add_change(struct commit_base *base, const struct handed_file *file,
		       const struct commit_entry *entry, struct str content)
{
	const bool executable = file->file->mode != 0 ? file->file->mode == 0755
						      : entry != NULL && entry->executable;

	if (!file->exists || file->file->to != NULL) {
		(void)buf_adds(&base->stream, "D ");
		add_path(base, file->file->path);
	}
	if (!file->exists)
		return;
	(void)buf_addf(&base->stream, "M %s inline ", executable ? "100755" : "100644");
	add_path(base, file->to);
	(void)buf_addf(&base->stream, "data %zu\n", content.size);
	(void)buf_addstr(&base->stream, content);
	(void)buf_addc(&base->stream, '\n');
}

/*
 * Append the change of FILE to the stream of BASE; CONTENT is what the commit has of FILE.
 * False with ERR: the change does not fit.
 */
static bool make_change(struct commit_base *base, const struct handed_file *file,
			const struct commit_entry *entry, struct str content,
			struct err *err)
{
	const struct patch_file *part = file->file;
	struct patch_outcome *outcomes =
		memory_array(part->hunk_count + 1, sizeof(*outcomes));
	char hex[HASH_HEX + 1];
	struct buf now, sentence;
	bool fine = true;

	buf_init(&now, WRITTEN_FILE_MAX);
	buf_init(&sentence, SENTENCE_MAX);
	if (part->kind == PATCH_ADD && part->hunk_count > 0)
		(void)buf_addstr(&now, part->hunks[0].new);
	else if (part->kind == PATCH_UPDATE && part->hunk_count > 0)
		fine = patch_apply(part->path, part, content, EDIT_GIVEN_ENDS, &now,
				   outcomes, &sentence) ||
		       err_set(err, EINVAL, "%.400s", sentence.data);
	else if (part->kind == PATCH_UPDATE)
		(void)buf_addstr(&now, content);
	hash_text(buf_str(&now), hex);
	if (fine && file->exists && file->now_known && strcmp(hex, file->now) != 0)
		fine = err_set(err, EINVAL,
			       "%.300s would not become what its record says", file->to);
	if (fine)
		add_change(base, file, entry, buf_str(&now));
	fine = fine && (!base->stream.overflowed ||
			err_set(err, E2BIG, "the files are larger than 512 MiB together"));
	free(outcomes);
	buf_fini(&now);
	buf_fini(&sentence);
	return fine;
}

/* The contents that the commit has of the files that existed, one behind the other. */
static bool read_contents(struct commit_base *base, int *printed, struct err *err)
{
	static const char *const words[] = {"cat-file", "--batch", "--buffer", NULL};
	auto_close int input = -1;
	struct buf objects;
	bool fine;

	buf_init(&objects, PATCH_FILES_MAX * (COMMIT_OBJECT_HEX + 1));
	for (size_t i = 0; i < base->handed->count; i++) {
		const struct handed_file *file = &base->handed->files[i];
		const struct commit_entry *entry =
			find_entry(base, str_of(file->file->path));

		if (file->existed && entry != NULL)
			(void)buf_addf(&objects, "%.*s\n", (int)entry->object.size,
				       entry->object.data);
	}
	fine = fd_memory_file("objects", buf_str(&objects), &input, err) &&
	       commit_git(base->call, words, NULL, input, printed, err);
	buf_fini(&objects);
	return fine;
}

/* The files' changes against the contents PRINTED. *FITS: each was what it was before the run. */
static bool make_changes(struct commit_base *base, int printed, bool *fits, struct err *err)
{
	uint64_t at = 0;
	bool fine = true;
	struct buf content;

	buf_init(&content, WRITTEN_FILE_MAX);
	for (size_t i = 0; fine && i < base->handed->count; i++) {
		const struct handed_file *file = &base->handed->files[i];
		const struct commit_entry *entry =
			find_entry(base, str_of(file->file->path));
		char hex[HASH_HEX + 1];
		bool found = false;

		buf_clear(&content);
		if (file->existed) {
			fine = commit_next_blob(printed, &at, &content, &found, err);
			hash_text(buf_str(&content), hex);
		}
		if (fine && file->existed && (!found || strcmp(hex, file->base) != 0)) {
			note_difference(base, file->file->path, "differs");
			*fits = false;
		}
		if (fine && *fits)
			fine = make_change(base, file, entry, buf_str(&content), err);
	}
	buf_fini(&content);
	return fine;
}

/* A new file takes the place of a folder: does the patch remove all that COMMIT has in it? */
static bool look_into(struct commit_base *base, const char *commit, const char *path,
		      bool *fits, struct err *err)
{
	const char *const words[] = {"ls-tree", "-r", "-z", "--name-only", commit, NULL};
	const char *const paths[] = {path, NULL};
	const struct patch *patch = &base->handed->patch;
	auto_close int printed = -1;
	size_t there = 0, gone = 0;
	struct buf names;
	bool fine;

	buf_init(&names, TREE_BYTES_MAX);
	fine = commit_git(base->call, words, paths, -1, &printed, err) &&
	       lseek(printed, 0, SEEK_SET) == 0 &&
	       fd_read_all(printed, &names, "what git listed", err);
	for (size_t i = 0; i < names.size; i++)
		there += names.data[i] == '\0';
	for (size_t i = 0; i < patch->file_count; i++)
		gone += patch->files[i].kind == PATCH_DELETE &&
			path_within(patch->files[i].path, path);
	if (fine && there > gone) {
		note_difference(base, path, "is a folder with other files there");
		*fits = false;
	}
	buf_fini(&names);
	return fine;
}

static bool look_into_folders(struct commit_base *base, const char *commit, bool *fits,
			      struct err *err)
{
	for (size_t i = 0; *fits && i < base->handed->count; i++) {
		const struct handed_file *file = &base->handed->files[i];

		if (!file->existed && patch_makes_room(&base->handed->patch, file->to) &&
		    !look_into(base, commit, file->to, fits, err))
			return false;
	}
	return true;
}

/* Do the files of COMMIT hold what they held before the run? Then the stream has the changes. */
static bool look_at(struct commit_base *base, const char *commit, bool *fits, struct err *err)
{
	auto_close int printed = -1;

	buf_clear(&base->stream);
	if (!read_tree(base, commit, err))
		return false;
	*fits = true;
	for (size_t i = 0; i < base->handed->count; i++) {
		bool one;

		(void)base_of(base, &base->handed->files[i], &one);
		*fits = *fits && one;
	}
	if (!look_into_folders(base, commit, fits, err))
		return false;
	if (*fits && (!read_contents(base, &printed, err) ||
		      !make_changes(base, printed, fits, err)))
		return false;
	base->told = true;
	if (*fits)
		(void)snprintf(base->commit, sizeof(base->commit), "%s", commit);
	return true;
}

bool commit_base_find(struct commit_base *base, const char *start, unsigned most,
		      bool *found, struct err *err)
{
	char limit[16];
	const char *const words[] = {"rev-list", "--first-parent",
				     "-n",       limit,
				     start,      "--",
				     NULL};
	auto_close int printed = -1;
	struct str rest, line;
	struct buf list;
	bool fits = false, fine;

	(void)snprintf(limit, sizeof(limit), "%u", most);
	buf_init(&list, COMMITS_LOOKED_AT * (COMMIT_OBJECT_HEX + 1));
	fine = commit_git(base->call, words, NULL, -1, &printed, err) &&
	       lseek(printed, 0, SEEK_SET) == 0 &&
	       fd_read_all(printed, &list, "the list of commits", err);
	rest = buf_str(&list);
	while (fine && !fits && str_next_line(&rest, &line)) {
		auto_free char *commit = memory_copy_str(line);

		fine = commit_is_object(line) ||
		       err_set(err, EIO, "git rev-list printed something else");
		fine = fine && look_at(base, commit, &fits, err);
	}
	buf_fini(&list);
	*found = fits;
	return fine;
}
