/*
 * commit_patch: the front's own tool behind `glovebox patch apply --branch`. It makes a
 * commit on a branch from a patch that was handed over (take_patch.h), on top of the
 * newest commit in which the patch's files are what they were before the run. Only git's
 * objects and that one reference are written, by one run of git fast-import, which sets
 * the branch at its very end.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/diff.h"
#include "base/text/text.h"
#include "files/record.h"
#include "process/follow.h"
#include "tool/call.h"
#include "tools/patches/patch.h"
#include "tools/patches/take_patch.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
	COMMIT_OBJECT_HEX = 64, /* digits of an object's name, at most */
};

/* Counted back from HEAD; a run makes only a few commits itself. */
enum { COMMITS_LOOKED_AT = 100 };

struct commit_base {
	struct call *call;
	const struct handed *handed;
	/* of the workspace in its repository: "" or ending with a slash */
	struct buf prefix;
	/* results: */
	char commit[COMMIT_OBJECT_HEX + 1]; /* the one that was found */
	struct buf stream;                  /* its changes, in the form of fast-import */
	struct buf differing; /* lines: the files that differ in the newest commit */
	/* internal: */
	/* all paths that a commit is asked for: files, and the folders above them */
	const char **paths;
	struct buf *names; /* which hold the names of the folders */
	size_t path_count, name_count;
	struct buf tree; /* of the commit under examination, in the form of ls-tree */
	struct commit_entry *entries;
	size_t entry_count;
	bool told; /* the differences from the newest commit were noted */
};

/*
 * Runs git for commit_patch: programs of the cell, without hooks, without the network,
 * and without any configuration that would start another program. Each answer is a file
 * in memory, and is not trusted.
 */

enum {
	SAID_MAX = 4 << 10,
	SAID_SHOWN = 400,
	LINE_BYTES_MAX = 8 << 10,
	HEAD_MAX = 256, /* "<name> blob <size>" */
};

/* The words before all of our commands. */
static const char *const always[] = {
	"git",
	"--no-replace-objects",
	"--literal-pathspecs",
	"-c",
	"core.hooksPath=/dev/null",
	"-c",
	"core.fsmonitor=false",
	"-c",
	"core.quotePath=false",
	"-c",
	"gc.auto=0",
};
enum { ALWAYS = sizeof(always) / sizeof(always[0]) };

static const char **make_words(const char *const *words, const char *const *paths)
{
	size_t count = 0, named = 0, at = ALWAYS;
	const char **argv;

	while (words[count] != NULL)
		count++;
	while (paths != NULL && paths[named] != NULL)
		named++;
	argv = memory_array(ALWAYS + count + named + 2, sizeof(*argv));
	memcpy(argv, always, sizeof(always));
	for (size_t i = 0; i < count; i++)
		argv[at++] = words[i];
	if (paths != NULL)
		argv[at++] = "--";
	for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
		argv[at++] = paths[i];
	return argv;
}

/* Set ERR to git's own message. Always false. */
static bool fail(const struct program_run *run, const char *word, struct err *err)
{
	struct buf text;
	struct str said;

	buf_init(&text, SAID_MAX);
	program_output_text(&run->error, &text);
	said = str_trim(buf_str(&text));
	if (run->ending != PROGRAM_ENDED)
		(void)err_set(err, EIO, "git %s did not end in time", word);
	else
		(void)err_set(err, EIO, "git %s: %.*s", word,
			      (int)str_part(said, 0, SAID_SHOWN).size,
			      said.size > 0 ? said.data : "it failed and said nothing");
	buf_fini(&text);
	return false;
}

static bool stopped(void *context)
{
	return call_stopped(context);
}

/*
 * Run git with WORDS (NULL-ended) and, behind "--", PATHS (NULL-ended, or NULL), in the
 * folder of the workspace. INPUT is its standard input, -1: none. Its output goes to the
 * file *PRINTED (the caller's), or nowhere when PRINTED is NULL. False: git could not be
 * started, or failed, and ERR has git's own words; ERR.code is ENOENT when there is no
 * git, EIO else.
 */
static bool commit_git(struct call *call, const char *const *words,
		       const char *const *paths, int input, int *printed, struct err *err)
{
	static const char *const texts[] = {"GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0",
					    "GIT_TERMINAL_PROMPT=0", "LC_ALL=C.UTF-8",
					    NULL};
	auto_value struct value *more = value_new_texts(texts);
	auto_free const char **environment = call_environment(call->environment, more);
	auto_free const char **argv = make_words(words, paths);
	auto_close int out = -1;
	struct program_run run;
	bool fine;

	if (!fd_memory_file("git", STR(""), &out, err))
		return false;
	program_run_init(&run);
	run.start.argv = argv;
	run.start.environment = environment;
	run.start.folder = call->workspace;
	run.start.terms = call->terms;
	run.start.fds[0] = input;
	run.start.fds[1] = out;
	run.deadline_ms = call->deadline_ms;
	run.stop_fd = call->control_fd;
	run.stopped = stopped;
	run.context = call;
	fine = follow_program(&run, err) &&
	       ((run.ending == PROGRAM_ENDED && run.exit_code == 0) ||
		fail(&run, words[0], err));
	program_run_fini(&run);
	if (fine && printed != NULL)
		*printed = fd_take(&out);
	return fine;
}

/* The same for an answer of one line, which LINE (initialised) becomes. */
static bool commit_git_line(struct call *call, const char *const *words, struct buf *line,
			    struct err *err)
{
	auto_close int printed = -1;
	struct buf text;
	bool fine;

	buf_init(&text, LINE_BYTES_MAX);
	fine = commit_git(call, words, NULL, -1, &printed, err) &&
	       (lseek(printed, 0, SEEK_SET) == 0 || err_set(err, errno, "its answer")) &&
	       fd_read_all(printed, &text, "the answer of git", err);
	buf_clear(line);
	/* One line end is git's own, all others are part of a name. */
	if (fine && str_ends(buf_str(&text), STR("\n")))
		buf_truncate(&text, text.size - 1);
	fine = fine &&
	       (buf_addstr(line, buf_str(&text)) || err_set(err, E2BIG, "its answer"));
	buf_fini(&text);
	return fine;
}

/* Is TEXT the name of an object: 40 or 64 lower-case hexadecimal digits? */
static bool commit_is_object(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		const char digit = text.data[i];

		if (text_hex_digit(digit) < 0 || (digit >= 'A' && digit <= 'F'))
			return false;
	}
	return text.size == 40 || text.size == COMMIT_OBJECT_HEX;
}

/*
 * Take one object of the output of `cat-file --batch` in the file PRINTED, at *AT, which
 * moves behind it. *CONTENT (initialised with its limit) becomes its content. *FOUND: it
 * exists and is a blob. False: the output has another form, or is too large.
 */
static bool commit_next_blob(int printed, uint64_t *at, struct buf *content, bool *found,
			     struct err *err)
{
	char head[HEAD_MAX + 1];
	ssize_t n = pread(printed, head, HEAD_MAX, (off_t)*at);
	char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;
	const char *blob;
	uint64_t size;

	buf_clear(content);
	if (end == NULL)
		return err_set(err, EIO, "git cat-file ended early");
	*end = '\0';
	*at += (uint64_t)(end - head) + 1;
	blob = strstr(head, " blob ");
	*found = blob != NULL;
	if (blob == NULL) {
		if (strstr(head, " missing") != NULL)
			return true;
		return err_set(err, EIO, "git cat-file gave something that is no file");
	}
	size = strtoull(blob + strlen(" blob "), NULL, 10);
	if (!undo_log_content(printed, *at, size, content, err))
		return false;
	*at += size + 1;
	return true;
}

/*
 * Finds where a patch that was handed over can be committed: the newest commit in which
 * each of its files has the hash that it had before the run, and is a plain file in plain
 * folders. Then writes the changes against that commit for git fast-import.
 */

enum {
	TREE_BYTES_MAX = 8 << 20, /* of the entries of a thousand files and their folders */
	SENTENCE_MAX = 64 << 10,
};

/* Of all files together. The process that reads this needs as much memory again. */
#define STREAM_MAX ((size_t)512 << 20)

/* The entry that a commit has at one path. */
struct commit_entry {
	struct str path, object;
	char type; /* of the object: 'b'lob, 't'ree, 'c'ommit */
	bool executable, is_link;
};

/* Add PATH and the folders above it to the paths that are asked for. */
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

/* CALL and HANDED are borrowed. */
static void commit_base_init(struct commit_base *base, struct call *call,
			     const struct handed *handed)
{
	*base = (struct commit_base){.call = call, .handed = handed};
	buf_init(&base->prefix, PATH_MAX);
	buf_init(&base->tree, TREE_BYTES_MAX);
	buf_init(&base->differing, SENTENCE_MAX);
	buf_init(&base->stream, STREAM_MAX);
	gather_paths(base);
}

static void commit_base_fini(struct commit_base *base)
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

	/*
	 * Only the differences from the newest commit are noted, since the other commits
	 * are older.
	 */
	if (base->told)
		return;
	(void)buf_adds(names, "  ");
	text_add_name(names, str_of(path));
	(void)buf_addf(names, " (%s)\n", why);
}

/* Is every part of PATH above its last name a folder or missing? */
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

/*
 * The entry of FILE before the run. NULL: there is no entry; *FITS when FILE did not
 * exist before either.
 */
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

/*
 * Append PATH in the form of fast-import: relative to the repository, in quotes where it
 * needs them.
 */
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

/* Get the commit's contents of the files that existed, one behind the other. */
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

/*
 * Make the files' changes against the contents PRINTED. *FITS: each content is that from
 * before the run.
 */
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

/*
 * Do the files of COMMIT have the contents from before the run? Then the stream gets the
 * changes.
 */
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

/*
 * Look at START (a name of git's) and MOST - 1 first parents behind it. *FOUND: one of them
 * fits. False: git failed, or the patch does not make what its record says.
 */
static bool commit_base_find(struct commit_base *base, const char *start, unsigned most,
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

enum {
	BRANCH_MAX = 200,
	IDENT_MAX = 512,
	WORDS_MAX = 64 << 10, /* bytes of a commit in addition to its files */
};

static const struct row commit_patch_params[] = {
	{"patch", ROW_TEXT, true, "The patch", .max = PATCH_BYTES_MAX, .unmasks = UNMASKS},
	{"title", ROW_TEXT, true, "First line of the message"},
	{"summary", ROW_TEXT, false, "The rest of it"},
	{"files", ROW_LIST, true, "The record of its files", .rows = handed_rows,
	 .max = PATCH_FILES_MAX},
	{"branch", ROW_TEXT, true, "Name of the branch", .min = 1, .max = BRANCH_MAX},
	{"from", ROW_TEXT, false, "The commit it starts at"},
	{"existing", ROW_FLAG, false, "The branch may be there", .initial = "false"},
	{"look", ROW_FLAG, false, "Only look", .initial = "false"},
	{0},
};

struct committing {
	struct call *call;
	struct tool_result *result;
	struct handed handed;
	struct commit_base base;
};

/*
 * A .git folder in a tree would be written into the repository by a checkout, so refuse
 * it.
 */
static bool has_git_folder(const char *path)
{
	for (const char *at = path; *at != '\0';) {
		size_t size = strcspn(at, "/");

		if ((size == 4 && strncasecmp(at, ".git", 4) == 0) ||
		    (size == 5 && strncasecmp(at, "git~1", 5) == 0))
			return true;
		at += size + (at[size] == '/');
	}
	return false;
}

static bool paths_are_allowed(struct committing *committing)
{
	for (size_t i = 0; i < committing->handed.count; i++) {
		const struct handed_file *file = &committing->handed.files[i];

		if (!has_git_folder(file->to) && !has_git_folder(file->file->path))
			continue;
		(void)tool_fail(committing->result,
				"%.300s lies in a git folder and is nothing to be committed. "
				"Nothing was changed.",
				file->to);
		return false;
	}
	return true;
}

/* Append "NAME <ADDRESS>" of the person as the cell knows them, else of this program. */
static void make_identity(struct committing *committing, struct buf *identity)
{
	static const char *const keys[] = {"user.name", "user.email"};
	struct buf found[2];
	bool known = true;

	for (size_t i = 0; i < 2; i++) {
		const char *const words[] = {"config", "--get", keys[i], NULL};

		buf_init(&found[i], IDENT_MAX);
		known = commit_git_line(committing->call, words, &found[i], NULL) &&
			found[i].size > 0 && strpbrk(found[i].data, "<>\n") == NULL &&
			known;
	}
	(void)buf_addf(identity, "%s <%s>", known ? found[0].data : "Glovebox",
		       known ? found[1].data : "glovebox@localhost");
	value_set_boolean(tool_details(committing->result), "author_known", known);
	buf_fini(&found[0]);
	buf_fini(&found[1]);
}

static bool import(struct committing *committing, const char *branch, struct err *err)
{
	static const char *const words[] = {"fast-import", "--quiet", "--done",
					    "--date-format=raw", NULL};
	struct str title = call_str(committing->call, "title");
	struct str summary = str_trim(call_str(committing->call, "summary"));
	auto_close int input = -1;
	struct buf text, message, identity, clean;
	bool fine;

	buf_init(&text, committing->base.stream.size + WORDS_MAX);
	buf_init(&clean, 4 * summary.size + 1);
	buf_init(&message, title.size + 16 * summary.size + 8); /* \xHH of what is not seen */
	buf_init(&identity, 2 * IDENT_MAX + 8);
	make_identity(committing, &identity);
	(void)buf_addf(&message, "%.*s\n", (int)title.size, title.data);
	(void)text_clean(summary, &clean);
	if (summary.size > 0) {
		(void)buf_addc(&message, '\n');
		text_add_paragraph(&message, buf_str(&clean));
		(void)buf_addc(&message, '\n');
	}
	(void)buf_addf(&text, "commit refs/heads/%s\nauthor %s %lld +0000\n", branch,
		       identity.data, (long long)time(NULL));
	(void)buf_addf(&text, "committer %s %lld +0000\ndata %zu\n", identity.data,
		       (long long)time(NULL), message.size);
	(void)buf_addstr(&text, buf_str(&message));
	(void)buf_addf(&text, "from %s\n", committing->base.commit);
	(void)buf_addstr(&text, buf_str(&committing->base.stream));
	(void)buf_adds(&text, "\ndone\n");
	fine = !text.overflowed || err_set(err, E2BIG, "the files are too large together");
	fine = fine && fd_memory_file("import", buf_str(&text), &input, err) &&
	       commit_git(committing->call, words, NULL, input, NULL, err);
	buf_fini(&text);
	buf_fini(&message);
	buf_fini(&clean);
	buf_fini(&identity);
	return fine;
}

/*
 * May BRANCH be made or, with `existing`, continued? START: the commit at which the
 * search begins.
 */
static bool check_branch(struct committing *committing, const char *branch,
			 struct buf *start, bool *exists, struct err *err)
{
	const char *const sound[] = {"check-ref-format", "--branch", branch, NULL};
	const char *const known[] = {"rev-parse", "--verify", "-q", start->data, NULL};
	const char *from = call_text(committing->call, "from");
	struct buf line, format;
	bool fine;

	buf_init(&line, PATH_MAX);
	buf_init(&format, BRANCH_MAX + 64);
	fine = commit_git_line(committing->call, sound, &line, err) &&
	       (strcmp(line.data, branch) == 0 ||
		err_set(err, EINVAL, "%s is short for the branch %s", branch, line.data));
	*exists = fine && commit_git_line(committing->call, known, &line, NULL);
	if (fine && *exists) {
		(void)buf_addf(&format, "refs/heads/%s", branch);
		const char *const where[] = {"for-each-ref", "--format=%(worktreepath)",
					     format.data, NULL};

		if (!call_flag(committing->call, "existing"))
			fine = err_set(err, EEXIST,
				       "the branch %s exists already; --existing commits on "
				       "top of it",
				       branch);
		else
			fine = commit_git_line(committing->call, where, &line, err) &&
			       (line.size == 0 ||
				err_set(err, EBUSY,
					"the branch %s is checked out in %s, whose files would "
					"stay behind; apply it there without --branch",
					branch, line.data));
	} else if (fine) {
		buf_clear(start);
		(void)buf_addf(start, "%s^{commit}", from != NULL ? from : "HEAD");
	}
	buf_fini(&line);
	buf_fini(&format);
	return fine;
}

/* False with an empty ERR: no commit fits, and the result says so. */
static bool find_base(struct committing *committing, const char *start, unsigned most,
		      struct err *err)
{
	bool found = false;

	if (!commit_base_find(&committing->base, start, most, &found, err))
		return false;
	if (!found)
		(void)buf_addf(&committing->result->text,
			       "Nothing was committed: no commit at or before %s has the files "
			       "as they were before the run. In the newest:\n%s",
			       start, committing->base.differing.data);
	return found;
}

static bool commit_all(struct committing *committing, const char *branch, struct err *err)
{
	static const char *const where[] = {"rev-parse", "--show-prefix", NULL};
	struct value *details = tool_details(committing->result);
	struct buf start, made;
	bool exists = false, fine;

	buf_init(&start, BRANCH_MAX + PATH_MAX);
	buf_init(&made, PATH_MAX);
	(void)buf_addf(&start, "refs/heads/%s^{commit}", branch);
	fine = commit_git_line(committing->call, where, &committing->base.prefix, err) &&
	       check_branch(committing, branch, &start, &exists, err) &&
	       find_base(committing, start.data, exists ? 1 : COMMITS_LOOKED_AT, err);
	if (fine && !call_flag(committing->call, "look")) {
		buf_clear(&start);
		(void)buf_addf(&start, "refs/heads/%s", branch);
		const char *const tip[] = {"rev-parse", "--verify", "-q", start.data, NULL};

		fine = import(committing, branch, err) &&
		       commit_git_line(committing->call, tip, &made, err);
		value_set_text(details, "commit", made.data);
	}
	if (fine) {
		value_set_text(details, "base", committing->base.commit);
		value_set_text(details, "branch", branch);
		value_set_boolean(details, "existed", exists);
	}
	buf_fini(&start);
	buf_fini(&made);
	return fine;
}

static enum result_status commit_patch_execute(struct call *call, struct tool_result *result)
{
	struct committing committing = {.call = call, .result = result};
	struct err err = {0};

	result->status = RESULT_FAILED;
	if (handed_read(call_str(call, "patch"), value_member(call->arguments, "files"),
			&committing.handed, &result->text) &&
	    paths_are_allowed(&committing)) {
		commit_base_init(&committing.base, call, &committing.handed);
		if (commit_all(&committing, call_text(call, "branch"), &err))
			(void)tool_done(result);
		else if (call_stopped(call))
			(void)call_stop_result(call, result);
		else if (err.text[0] != '\0')
			(void)tool_fail(result, "Nothing was committed: %s", err.text);
		commit_base_fini(&committing.base);
	}
	handed_fini(&committing.handed);
	return result->status;
}

const struct tool commit_patch_tool = {
	.name = "commit_patch",
	.description = "Make a commit of a patch that was handed over, on a branch.",
	.example = "{\"patch\": \"...\", \"title\": \"...\", \"files\": [], \"branch\": \"fix\"}",
	.params = commit_patch_params,
	.effects = EFFECT_READS | EFFECT_RUNS,
	.timeout_s = 300,
	.internal = true,
	.plain = true,
	.execute = commit_patch_execute,
};
