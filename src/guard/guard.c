/* guard: finds new dangers and moves them aside by a rename in their own folder. */

#include "guard/guard.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"
#include "guard/scan.h"
#include "policy/autoexec.h"
#include "tool/denial.h"
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* One of the guard's roots, with its status when it was opened. */
struct audit_root {
	char *path;
	bool is_folder; /* a single file has nothing below it */
	dev_t device;
	ino_t inode;
};

struct audit {
	const struct guard *guard;
	struct audit_root *roots;
	size_t count;
	struct git_scan_root *folders; /* the folders among the roots, open */
	enum guard_walk *walks;        /* of these */
	size_t folder_count;
};

/* The guard, as a struct and as JSON. */

static const char *const walk_names[] = {
	[GUARD_CALLS] = "calls",
	[GUARD_LAST] = "last",
	[GUARD_PART] = "part",
	[GUARD_UNDO] = "undo",
};

static const struct field root_fields[] = {
	FIELD_PATH(struct guard_root, path, "path"),
	FIELD_CHOICE(struct guard_root, walk, "walk", walk_names),
	FIELD(struct guard_root, layer, .optional = true),
	{0},
};

static const struct field guard_fields[] = {
	FIELD_PATH(struct guard, workspace, "workspace", .optional = true),
	FIELD_PATH(struct guard, home, "home", .optional = true),
	FIELD_LIST(struct guard, roots, root_count, "roots", root_fields),
	FIELD_NAMED(struct guard, began_ns, "began"),
	FIELD_NAMED(struct guard, ticked_ns, "ticked"),
	FIELD_PATH(struct guard, at, "at", .optional = true),
	FIELD(struct guard, earlier),
	{0},
};

void guard_free(struct guard *guard)
{
	if (guard == NULL)
		return;
	fields_free(guard_fields, guard);
	marks_fini(&guard->marks);
	free(guard);
}

void guard_add_root(struct guard *guard, const char *path, enum guard_walk walk)
{
	guard->roots =
		memory_grow(guard->roots, guard->root_count + 1, sizeof(*guard->roots));
	guard->roots[guard->root_count++] = (struct guard_root){memory_copy(path), walk};
}

bool guard_has(const struct guard *guard, enum guard_walk walk)
{
	for (size_t i = 0; guard != NULL && i < guard->root_count; i++) {
		if (guard->roots[i].walk == walk)
			return true;
	}
	return false;
}

struct value *guard_print(const struct guard *guard)
{
	struct value *object = fields_print(guard_fields, guard);

	marks_print(&guard->marks, object);
	return object;
}

struct guard *guard_parse(const struct value *object, struct err *err)
{
	struct guard *guard = memory_alloc(sizeof(*guard));

	if (!fields_read(object, guard_fields, guard, NULL, err)) {
		guard_free(guard);
		return NULL;
	}
	marks_parse(object, &guard->marks);
	return guard;
}

static void mark_copy(struct marks *marks, const struct mark *mark, enum mark_kind kind)
{
	marks_add(marks, kind, mark->path, (struct str){mark->text, mark->size})->deep =
		mark->deep;
}

void guard_join(struct guard *guard, const struct guard *cell)
{
	if (cell == NULL)
		return;
	for (size_t i = 0; i < cell->root_count; i++) {
		guard_add_root(guard, cell->roots[i].path, cell->roots[i].walk);
		guard->roots[guard->root_count - 1].layer = cell->roots[i].layer;
	}
	for (size_t i = 0; i < cell->marks.count; i++)
		mark_copy(&guard->marks, cell->marks.items[i], cell->marks.items[i]->kind);
	free(guard->home);
	guard->home = memory_copy(cell->home);
	free(guard->at);
	guard->at = memory_copy(cell->at);
	guard->began_ns = cell->began_ns;
	guard->ticked_ns = cell->ticked_ns;
	guard->earlier = cell->earlier;
}

bool guard_hold_root(struct guard_root *root, struct err *err)
{
	struct stat st;

	if (stat(root->path, &st) < 0)
		return err_set(err, errno, "%s: %s", root->path, strerror(errno));
	root->device = st.st_dev;
	root->inode = st.st_ino;
	return true;
}

/* Is ST, of what lies at the path of ROOT, that root itself, as far as anybody has looked? */
static bool root_is(const struct guard_root *root, const struct stat *st, struct err *err)
{
	return root->inode == 0 ||
	       (root->device == st->st_dev && root->inode == st->st_ino) ||
	       err_set(err, ESTALE, "%s: something else was put in its place", root->path);
}

bool guard_holds(const struct guard *guard, struct err *err)
{
	struct stat st;

	for (size_t i = 0; guard != NULL && i < guard->root_count; i++) {
		const struct guard_root *root = &guard->roots[i];

		if (root->inode == 0)
			continue;
		if (stat(root->path, &st) < 0)
			return err_set(err, errno, "%s: %s", root->path, strerror(errno));
		if (!root_is(root, &st, err))
			return false;
	}
	return true;
}

static bool is_same(const struct marks *marks, const struct mark *mark)
{
	const struct mark *known = marks_find(marks, mark->kind, mark->path);

	return known != NULL && known->size == mark->size &&
	       memcmp(known->text, mark->text, mark->size) == 0;
}

/*
 * Has GUARD not seen all folders around PATH when it began? Then it may not know what was
 * there. A place in no root is judged as the roots are.
 */
static bool is_unseen(const struct guard *guard, const char *path)
{
	bool is_in_root = false, some = false;

	for (size_t i = 0; i < guard->root_count; i++) {
		const struct guard_root *root = &guard->roots[i];
		const bool unseen = guard->earlier || root->walk >= GUARD_PART;
		const bool within = path_within(path, root->path);

		if (within && !unseen)
			return false;
		is_in_root = is_in_root || within;
		some = some || unseen;
	}
	return is_in_root || some;
}

/* The texts and details of an audit. */

enum {
	QUARANTINED_LISTED = 256,
	FILES_LISTED = 64, /* paths in `changed_autoexec` */
	FILES_IN_TEXT = 8, /* paths in the line that the model reads */
};

#define RULE_PROTECTED  "protected"
#define KEY_FAILED      "audit_failed"
#define KEY_PARTIAL     "audit_partial"
#define KEY_MISSED      "audit_missed"
#define KEY_QUARANTINED "quarantined"
#define KEY_DOUBTFUL    "doubtful"
#define KEY_LEFT        "git_left"
#define KEY_PUT_AWAY    "git_put_away"
#define KEY_LOCKS       "git_locks"
#define KEY_FILES       "changed_autoexec"

/* The part of a result's details that is an audit's. All of it is borrowed from there. */
struct said {
	bool failed;
	int64_t folders;    /* that a partial audit has seen; 0: it was whole */
	const char *missed; /* the first folder that it has not seen, as it is shown */
	const struct value *quarantined, *doubtful, *left, *put_away, *locks, *files;
};

static const struct field said_fields[] = {
	FIELD_NAMED(struct said, failed, KEY_FAILED, .optional = true),
	FIELD_NAMED(struct said, folders, KEY_PARTIAL, .optional = true),
	FIELD_NAMED(struct said, missed, KEY_MISSED, .optional = true),
	FIELD_NAMED(struct said, quarantined, KEY_QUARANTINED, .optional = true),
	FIELD_NAMED(struct said, doubtful, KEY_DOUBTFUL, .optional = true),
	FIELD_NAMED(struct said, left, KEY_LEFT, .optional = true),
	FIELD_NAMED(struct said, put_away, KEY_PUT_AWAY, .optional = true),
	FIELD_NAMED(struct said, locks, KEY_LOCKS, .optional = true),
	FIELD_NAMED(struct said, files, KEY_FILES, .optional = true),
	{0},
};

/* A worker that was taken over may send anything: a member of another kind is left out. */
static struct said said_of(const struct tool_result *result)
{
	struct said said = {0};

	(void)fields_read(result->details, said_fields, &said, NULL, NULL);
	return said;
}

/* Put SAID, which has some of the members, into RESULT's details. */
static void note(struct tool_result *result, const struct said *said)
{
	fields_set(tool_details(result), said_fields, said);
}

/* An item of `quarantined` and of `git_locks`. */
struct said_item {
	const char *path, *moved_to, *because;
};

static const struct field item_fields[] = {
	FIELD(struct said_item, path),
	FIELD(struct said_item, moved_to, .optional = true),
	FIELD(struct said_item, because, .optional = true),
	{0},
};

void audit_tell_failed(struct tool_result *result, const char *why)
{
	note(result, &(struct said){.failed = true});
	(void)buf_addf(&result->text,
		       "\n[The audit after this call could not be made whole: %s. Before git, an "
		       "editor or a shell is used here outside, look at what changed below "
		       ".git and in nested repositories.]\n",
		       why);
}

void audit_tell_lost(struct tool_result *result, const char *why)
{
	(void)buf_addf(&result->text,
		       "\n[What this call left behind could not be looked at: %s. The next call "
		       "does so first. Until then use no git, editor or shell here outside.]\n",
		       why);
	note(result, &(struct said){.failed = true});
}

void audit_add_partial(struct buf *out, size_t folders, const char *missed)
{
	(void)buf_addf(out,
		       "of the repositories deep in the workspace only those in the first %zu "
		       "folders are looked after",
		       folders);
	if (missed != NULL)
		(void)buf_addf(out, ", and not all behind %s", missed);
}

/*
 * Note for the front only that an audit has seen FOLDERS folders but not all. The model
 * is told when no whole look follows.
 */
static void audit_note_partial(struct tool_result *result, size_t folders)
{
	note(result, &(struct said){.folders = (int64_t)folders});
}

bool audit_take_partial(struct tool_result *result)
{
	if (!audit_is_partial(result))
		return false;
	value_remove(result->details, KEY_PARTIAL);
	return true;
}

static void partial_print(const struct said *said, struct buf *out)
{
	if (said->folders > 0)
		audit_add_partial(out, (size_t)said->folders, said->missed);
}

/* Append ITEM to the list KEY of RESULT's details, which has an end. */
static void item_add(struct tool_result *result, const char *key, struct value *take_item)
{
	struct value *list = tool_details_list(result, key);

	if (value_count(list) < QUARANTINED_LISTED)
		value_append(list, take_item);
	else
		value_free(take_item);
}

/* NAME as a result shows it; the caller frees it. */
static char *shown_of(const char *name)
{
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(name));
	return buf_take(&shown);
}

/* Is NAME safe between single quotes of a shell, and is it shown unchanged? */
static bool is_quotable(const char *name, const char *shown)
{
	return strcmp(name, shown) == 0 && strchr(name, '\'') == NULL;
}

/*
 * PATH, which was new or changed, now has the last name AWAY: a denial and an item of
 * `quarantined`.
 */
static void audit_tell_moved(struct tool_result *result, const char *workspace,
			     const char *path, const char *away)
{
	const char *name = path_relative(path, workspace);
	size_t folder = (size_t)(path_base_name(name) - name);
	auto_free char *shown = shown_of(name);
	struct buf remedy, place;

	buf_init(&remedy, 16 * PATH_MAX);
	buf_init(&place, 4 * PATH_MAX);
	text_add_name(&place, str_part(str_of(name), 0, folder));
	text_add_name(&place, str_of(away));
	(void)buf_addf(&remedy, "it is now %s, where nothing runs it", place.data);
	if (is_quotable(name, shown))
		(void)buf_addf(&remedy, "; a person who wants it back runs: mv -- '%s' '%s'",
			       place.data, name);
	if (autoexec_ends(path) != NULL)
		(void)buf_adds(&remedy, "; " AUTOEXEC_REMEDY);
	denial_add(result, &(struct denial){.kind = DENIAL_FS,
					    .target = shown,
					    .rule = RULE_PROTECTED,
					    .remedy = remedy.data});
	item_add(result, KEY_QUARANTINED,
		 fields_print(item_fields,
			      &(struct said_item){.path = shown, .moved_to = place.data}));
	buf_fini(&place);
	buf_fini(&remedy);
}

/* PATH, which is bound read-only, was changed through another hard link: a denial. */
static void audit_tell_linked(struct tool_result *result, const char *workspace,
			      const char *path)
{
	auto_free char *shown = shown_of(path_relative(path, workspace));

	denial_add(result,
		   &(struct denial){.kind = DENIAL_FS,
				    .target = shown,
				    .rule = RULE_PROTECTED,
				    .remedy = "it was changed all the same, by another "
					      "name of the same file (a hard link); a "
					      "person looks at it before it runs"});
}

/*
 * PATH stays, and it is unknown whether it was there before or was moved there: an item
 * of `doubtful`. One line for all of them follows at the end.
 */
static void audit_tell_doubtful(struct tool_result *result, const char *workspace,
				const char *path)
{
	item_add(result, KEY_DOUBTFUL, value_new_text(path_relative(path, workspace)));
}

/* The files of killed gits as JSON: path -> what is known of the file; and back. */

struct left_file {
	const char *file, *held;
	bool shared, told;
};

static const struct field left_fields[] = {
	FIELD(struct left_file, file),
	FIELD(struct left_file, shared),
	FIELD(struct left_file, told),
	FIELD(struct left_file, held, .optional = true),
	{0},
};

/* The part of a call about them (audit_carry_left). */
struct carried {
	int64_t since;
	struct value *left;
};

static const struct field carried_fields[] = {
	FIELD(struct carried, since, .optional = true),
	FIELD(struct carried, left, .optional = true),
	{0},
};

/* NULL: there are none. */
static struct value *left_print(const struct git_left *left)
{
	struct value *object = left->count > 0 ? value_new_object() : NULL;

	for (size_t i = 0; i < left->count; i++) {
		const struct git_left_file *item = &left->items[i];
		const struct left_file file = {item->file, item->held, item->shared,
					       item->told};
		auto_free char *key = path_key(item->path);

		value_set(object, key, fields_print(left_fields, &file));
	}
	return object;
}

/* A worker that was taken over may send anything, and only files of this form are taken. */
static void left_parse(const struct value *object, struct git_left *left)
{
	for (void *at = value_first(object); at != NULL && left->count < GIT_LEFT_MAX;
	     at = value_next(object, at)) {
		auto_free char *path = path_of_key(value_key(at));
		struct left_file file = {0};
		struct git_left_file *item = NULL;

		if (path != NULL && path[0] == '/' &&
		    fields_read(value_at(at), left_fields, &file, NULL, NULL))
			item = git_left_add(left, path, file.file);
		if (item == NULL || item->held != NULL)
			continue;
		item->held = memory_copy(file.held);
		item->shared = file.shared;
		item->told = file.told;
	}
}

/* Put LEFT into RESULT's details for the front. */
static void audit_note_left(struct tool_result *result, const struct git_left *left)
{
	auto_value struct value *files = left_print(left);

	if (files != NULL)
		note(result, &(struct said){.left = files});
}

void audit_take_left(struct tool_result *from, struct git_left *left)
{
	const struct value *files = said_of(from).left;

	left_parse(files, left);
	if (files != NULL)
		value_remove(from->details, KEY_LEFT);
}

struct value *audit_carry_left(int64_t since_ns, const struct git_left *left)
{
	auto_value struct value *files = left_print(left);
	const struct carried carried = {since_ns > 0 ? since_ns : 0, files};

	return fields_print(carried_fields, &carried);
}

/* PATH, which a killed git had left, was removed: `git_put_away`. */
static void audit_tell_put_away(struct tool_result *result, const char *workspace,
				const char *path)
{
	auto_free char *shown = shown_of(path_relative(path, workspace));

	item_add(result, KEY_PUT_AWAY, value_new_text(shown));
}

/* The lock PATH appeared during the call and stays because of WHY: `git_locks`. */
static void audit_tell_held(struct tool_result *result, const char *workspace,
			    const char *path, const char *why)
{
	auto_free char *shown = shown_of(path_relative(path, workspace));

	item_add(result, KEY_LOCKS,
		 fields_print(item_fields,
			      &(struct said_item){.path = shown, .because = why}));
}

/* Append INTRO and the names in LIST, when there are some. */
static void list_print(const struct value *list, const char *intro, struct buf *out)
{
	const size_t count = value_count(list);

	if (count > 0)
		(void)buf_adds(out, intro);
	for (size_t i = 0; i < count && i < FILES_IN_TEXT; i++) {
		(void)buf_adds(out, i > 0 ? ", " : " ");
		text_add_name(out, value_str(value_item(list, i)));
	}
	if (count > FILES_IN_TEXT)
		(void)buf_addf(out, " and %zu more", count - FILES_IN_TEXT);
}

/* Append the changed files that are run, then those that are read. */
static void files_print(const struct value *list, struct buf *out)
{
	auto_value struct value *run = value_new_array();
	auto_value struct value *read = value_new_array();

	for (size_t i = 0; i < value_count(list); i++) {
		struct value *name = value_item(list, i);

		const struct autoexec *row = autoexec_find(value_text(name));

		value_append(row != NULL && row->care == AUTOEXEC_READ ? read : run,
			     value_ref(name));
	}
	list_print(run, "changed, and run by other programs by themselves:", out);
	if (value_count(run) > 0 && value_count(read) > 0)
		(void)buf_adds(out, "; ");
	list_print(read, "changed, and read by agents as instructions:", out);
}

/* Append the command with which a person may remove the locks in LIST. */
static void removal_print(const struct value *list, struct buf *out)
{
	struct buf shown;

	(void)buf_adds(out, "; when no git runs there: rm --");
	/*
	 * A name that is shown changed is left out, because the command would remove
	 * another file.
	 */
	buf_init(&shown, 16 * PATH_MAX);
	for (size_t i = 0; i < value_count(list); i++) {
		struct said_item item = {.path = ""};

		(void)fields_read(value_item(list, i), item_fields, &item, NULL, NULL);
		buf_clear(&shown);
		text_add_name(&shown, str_of(item.path));
		if (item.path[0] != '\0' && is_quotable(item.path, shown.data))
			(void)buf_addf(out, " '%s'", item.path);
	}
	buf_fini(&shown);
}

static void locks_print(const struct said *said, struct buf *out)
{
	struct said_item first = {.because = "?"};

	list_print(said->put_away, "removed, left by a git that was ended:", out);
	if (value_count(said->locks) == 0)
		return;
	(void)fields_read(value_item(said->locks, 0), item_fields, &first, NULL, NULL);
	(void)buf_addf(out, "%sa lock of git's stays (%s)",
		       said->put_away != NULL ? "; " : "", first.because);
	removal_print(said->locks, out);
}

void audit_print_line(const struct tool_result *result, enum audit_line line, struct buf *out)
{
	const struct said said = said_of(result);

	switch (line) {
	case AUDIT_FILES:
		files_print(said.files, out);
		break;
	case AUDIT_DOUBTFUL:
		list_print(said.doubtful,
			   "older than the command, and may have been moved to where git "
			   "runs it; look before git is used there:",
			   out);
		break;
	case AUDIT_LEFT:
		locks_print(&said, out);
		break;
	case AUDIT_PARTIAL:
		partial_print(&said, out);
		break;
	case AUDIT_LINES:
		break;
	}
}

/* Append LINE, when there is something to say, to RESULT's text. */
static void line_add(struct tool_result *result, enum audit_line line)
{
	struct buf said;

	buf_init(&said, RESULT_TEXT_MAX);
	audit_print_line(result, line, &said);
	if (said.size > 0) {
		(void)buf_end_line(&result->text);
		(void)buf_addf(&result->text, "[%s]\n", said.data);
	}
	buf_fini(&said);
}

/*
 * The audit looked into FOLDERS folders and left out others, such as MISSED and those
 * after it (NULL: unknown). RESULT does not become failed.
 */
static void audit_tell_partial(struct tool_result *result, size_t folders, const char *missed)
{
	auto_free char *shown = missed != NULL ? shown_of(missed) : NULL;

	note(result, &(struct said){.folders = (int64_t)folders, .missed = shown});
	line_add(result, AUDIT_PARTIAL);
}

/* Files in FOUND, which other programs run by themselves, were written. */
static void audit_tell_files(const struct marks *found, const char *workspace,
			     struct tool_result *result)
{
	size_t count = 0;

	for (const struct mark *mark = marks_next(found, MARK_CHANGED, NULL);
	     mark != NULL && count < FILES_LISTED;
	     mark = marks_next(found, MARK_CHANGED, mark), count++)
		item_add(result, KEY_FILES,
			 value_new_text(path_relative(mark->path, workspace)));
	if (count > 0)
		line_add(result, AUDIT_FILES);
}

bool audit_is_partial(const struct tool_result *result)
{
	return said_of(result).folders > 0;
}

bool audit_failed(const struct tool_result *result)
{
	return said_of(result).failed;
}

bool audit_quarantined(const struct tool_result *result)
{
	return value_count(said_of(result).quarantined) > 0;
}

void audit_split(struct tool_result *from, struct tool_result *said)
{
	static const char *const keys[] = {DENIALS_KEY, KEY_FAILED, KEY_QUARANTINED,
					   KEY_PARTIAL, KEY_MISSED, KEY_DOUBTFUL};

	(void)buf_addstr(&said->text, buf_str(&from->text));
	buf_clear(&from->text);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct value *value = value_member(from->details, keys[i]);

		if (value == NULL)
			continue;
		value_set(tool_details(said), keys[i], value_ref(value));
		value_remove(from->details, keys[i]);
	}
}

void audit_take(struct tool_result *result, struct tool_result *from)
{
	struct value *details;

	if (from->details == NULL && from->status == RESULT_DONE)
		return;
	details = tool_details(result);
	(void)buf_end_line(&result->text);
	(void)buf_addstr(&result->text, buf_str(&from->text));
	for (void *at = value_first(from->details); at != NULL;
	     at = value_next(from->details, at)) {
		const struct value *more = value_at(at);
		struct value *list = value_member(details, value_key(at));

		if (value_kind(list) != VALUE_ARRAY) {
			value_set(details, value_key(at), value_ref(value_at(at)));
			continue;
		}
		for (size_t i = 0; i < value_count(more); i++)
			value_append(list, value_ref(value_item(more, i)));
	}
}

enum {
	NAME_KEPT = 200,      /* with our mark, a name cut to this many bytes fits */
	QUARANTINE_TRIES = 8, /* names that all exist were made on purpose */
};

static void roots_close(struct audit *audit)
{
	for (size_t i = 0; i < audit->folder_count; i++)
		fd_close(&audit->folders[i].fd);
	for (size_t i = 0; i < audit->count; i++)
		free(audit->roots[i].path);
	free(audit->folders);
	free(audit->walks);
	free(audit->roots);
	*audit = (struct audit){.guard = audit->guard};
}

static bool root_open(struct audit *audit, const struct guard_root *of, struct err *err)
{
	const char *path = of->path;
	struct audit_root *root = &audit->roots[audit->count];
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!root_is(of, &st, err))
		return false;
	*root = (struct audit_root){.path = memory_copy(path),
				    .is_folder = S_ISDIR(st.st_mode),
				    .device = st.st_dev,
				    .inode = st.st_ino};
	audit->count++;
	if (root->is_folder) {
		audit->walks[audit->folder_count] = of->walk;
		audit->folders[audit->folder_count++] =
			(struct git_scan_root){.path = root->path,
					       .fd = fd_take(&fd),
					       .layer = of->layer};
	}
	return true;
}

static bool roots_open(struct audit *audit, struct err *err)
{
	const struct guard *guard = audit->guard;
	bool fine = true;

	audit->roots = memory_array(guard->root_count, sizeof(*audit->roots));
	audit->folders = memory_array(guard->root_count, sizeof(*audit->folders));
	audit->walks = memory_array(guard->root_count, sizeof(*audit->walks));
	for (size_t i = 0; fine && i < guard->root_count; i++)
		fine = root_open(audit, &guard->roots[i], err);
	return fine;
}

/*
 * Is every root still the file or folder that was opened? Without a view, a command may
 * exchange a root.
 */
static bool roots_hold(const struct audit *audit)
{
	struct stat st;

	if (audit->count != audit->guard->root_count)
		return false;
	for (size_t i = 0; i < audit->count; i++) {
		const struct audit_root *root = &audit->roots[i];

		if (stat(root->path, &st) < 0 || st.st_dev != root->device ||
		    st.st_ino != root->inode || S_ISDIR(st.st_mode) != root->is_folder)
			return false;
	}
	return true;
}

/* A scan of AUDIT's roots that walks through those up to WALK. */
static struct git_scan scan_of(const struct audit *audit, const struct marks *more,
			       enum guard_walk walk, size_t folders_max)
{
	for (size_t i = 0; i < audit->folder_count; i++) {
		struct git_scan_root *root = &audit->folders[i];

		root->walk = folders_max > 0 && audit->walks[i] <= walk;
		root->aged = is_unseen(audit->guard, root->path);
	}
	return (struct git_scan){
		.roots = audit->folders,
		.root_count = audit->folder_count,
		.home = audit->guard->home,
		.own = audit->guard->workspace,
		.at = audit->guard->at,
		.known = &audit->guard->marks,
		.more = more,
		.folders_max = folders_max,
	};
}

/*
 * Settle the walk of the roots that AUDIT has walked through. Together, those that each
 * call walks through again have as many folders as one call may read.
 */
static void walks_settle(struct guard *guard, const struct audit *audit)
{
	size_t folders = 0;

	for (size_t i = 0; i < guard->root_count; i++) {
		struct guard_root *root = &guard->roots[i];
		const struct git_scan_root *walked = NULL;

		for (size_t j = 0; walked == NULL && j < audit->folder_count; j++) {
			if (strcmp(audit->folders[j].path, root->path) == 0)
				walked = &audit->folders[j];
		}
		if (root->walk == GUARD_UNDO || walked == NULL)
			continue;
		root->walk = walked->partial ? GUARD_PART
			     : folders + walked->folders > GIT_SCAN_FOLDERS_CALL
				     ? GUARD_LAST
				     : GUARD_CALLS;
		if (root->walk == GUARD_CALLS)
			folders += walked->folders;
	}
}

bool audit_begin(struct guard *guard, size_t folders, struct err *err)
{
	struct audit audit = {.guard = guard};
	bool fine = roots_open(&audit, err);
	struct git_scan found = scan_of(&audit, NULL, GUARD_PART, folders);

	fine = fine && git_scan_run(&found, err);
	walks_settle(guard, &audit);
	for (size_t i = 0; i < found.found.count; i++) {
		const struct mark *mark = found.found.items[i];

		/* Places are asked only about what was not seen. */
		if (mark->kind != MARK_PLACE || found.partial)
			mark_copy(&guard->marks, mark, mark->kind);
	}
	git_scan_fini(&found);
	roots_close(&audit);
	return fine;
}

/* The status of the name at PATH, beneath a root. */
static bool path_stat(const struct git_scan *scan, const char *path, struct stat *st)
{
	const char *name;
	auto_close int folder = git_scan_open_parent(scan, path, &name);

	return folder >= 0 && fstatat(folder, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * Was the file at PATH last changed before BEFORE_NS? No program can set the time of
 * change.
 */
static bool was_before(const struct git_scan *scan, const char *path, int64_t before_ns)
{
	struct stat st;

	return path_stat(scan, path, &st) && clock_ns(&st.st_ctim) < before_ns;
}

bool audit_begin_more(const struct guard *guard, struct marks *more, bool ran,
		      struct err *err)
{
	const int64_t before_ns = ran ? guard->ticked_ns : guard->began_ns + 1;
	struct audit audit = {.guard = guard};
	bool fine = roots_open(&audit, err);
	struct git_scan found = scan_of(&audit, more, GUARD_CALLS, 0);

	found.part = GIT_SCAN_WATCHED;
	fine = fine && git_scan_run(&found, err);
	for (size_t i = 0; i < found.found.count; i++) {
		const struct mark *mark = found.found.items[i];
		const bool is_known =
			marks_find(&guard->marks, mark->kind, mark->path) != NULL;

		/* An index that is newer is read again, because its dangers are new. */
		if ((mark->kind == MARK_LEAD ||
		     ((mark->kind == MARK_DANGER || mark->kind == MARK_NAMES) && !is_known)) &&
		    was_before(&found, mark->path, before_ns))
			mark_copy(more, mark, mark->kind);
	}
	git_scan_fini(&found);
	roots_close(&audit);
	return fine;
}

/*
 * Must the danger or lead MARK of GUARD have come after EARLIER began? One without roots
 * knows nothing but its time.
 */
static bool is_late(const struct guard *guard, const struct guard *earlier,
		    const struct git_scan *scan, const struct mark *mark)
{
	const struct git_scan_when when = {.before_ns = earlier->ticked_ns,
					   .places = &earlier->marks};
	if (earlier->root_count == 0)
		return git_scan_age(scan, mark, &when) != GIT_SCAN_OLD;
	if (is_same(&earlier->marks, mark))
		return false;
	/* Leads are few, and near. */
	return mark->kind == MARK_LEAD ||
	       marks_find(&earlier->marks, MARK_DANGER, mark->path) != NULL ||
	       !is_unseen(earlier, mark->path) ||
	       marks_find_above(&guard->marks, MARK_WATCHED, mark->path) == NULL ||
	       git_scan_age(scan, mark, &when) == GIT_SCAN_NEW;
}

void guard_take_earlier(struct guard *guard, const struct guard *earlier, int64_t made_ns)
{
	const struct guard damaged = {.began_ns = made_ns, .ticked_ns = made_ns};
	const bool is_whole = earlier != NULL && earlier->root_count > 0 &&
			      earlier->began_ns > 0 && earlier->ticked_ns > 0;
	const struct guard *before = is_whole ? earlier : &damaged;
	struct audit audit = {.guard = guard};
	struct marks marks = {0};
	struct err err;

	/* A file in a root that cannot be opened counts as new. */
	(void)roots_open(&audit, &err);
	struct git_scan scan = scan_of(&audit, NULL, GUARD_CALLS, 0);
	for (size_t i = 0; i < guard->marks.count; i++) {
		const struct mark *mark = guard->marks.items[i];
		const bool runs = mark->kind == MARK_DANGER || mark->kind == MARK_LEAD;

		if (mark->kind != MARK_PLACE)
			mark_copy(&marks, mark,
				  runs && is_late(guard, before, &scan, mark) ? MARK_LATE
									      : mark->kind);
	}
	for (const struct mark *mark = marks_next(&before->marks, MARK_PLACE, NULL);
	     mark != NULL; mark = marks_next(&before->marks, MARK_PLACE, mark))
		mark_copy(&marks, mark, MARK_PLACE);
	git_scan_fini(&scan);
	roots_close(&audit);
	marks_fini(&guard->marks);
	guard->marks = marks;
	if (before->began_ns < guard->began_ns)
		guard->began_ns = before->began_ns;
	if (before->ticked_ns < guard->ticked_ns)
		guard->ticked_ns = before->ticked_ns;
	guard->earlier = true;
}

struct audit *audit_open(const struct guard *guard)
{
	struct audit *audit;

	if (guard == NULL)
		return NULL;
	audit = memory_alloc(sizeof(*audit));
	audit->guard = guard;
	/* A root that cannot be opened now is tried again at the first audit. */
	(void)roots_open(audit, NULL);
	return audit;
}

void audit_close(struct audit *audit)
{
	if (audit != NULL)
		roots_close(audit);
	free(audit);
}

static bool rename_away(int folder, const char *name, char *away, size_t size)
{
	uint32_t number;

	errno = EEXIST;
	for (int i = 0; i < QUARANTINE_TRIES && errno == EEXIST; i++) {
		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			return false;
		(void)snprintf(away, size, "%.*s" GIT_QUARANTINE "%08" PRIx32, NAME_KEPT,
			       name, number);
		if (renameat2(folder, name, folder, away, RENAME_NOREPLACE) == 0)
			return true;
	}
	return false;
}

/* Move PATH aside in its own folder. AWAY is the new last name. */
static bool put_away(const struct git_scan *scan, const char *path, char *away, size_t size)
{
	const char *name;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	struct stat st;

	if (folder < 0)
		return false;
	if (rename_away(folder, name, away, size))
		return true;
	/*
	 * The owner of a folder may make it writable again, so a read-only folder does
	 * not protect a danger in it.
	 */
	if (errno != EACCES || fstat(folder, &st) < 0 ||
	    fchmod(folder, folder_mode_opened(st.st_mode, S_IRWXU)) < 0)
		return false;
	bool moved = rename_away(folder, name, away, size);
	int code = errno;
	(void)fchmod(folder, folder_mode_opened(st.st_mode, 0));
	errno = code;
	return moved;
}

/* The folder to which the paths in a result are relative. */
static const char *workspace_of(const struct guard *guard)
{
	return guard->workspace != NULL ? guard->workspace : "/";
}

/* One comparison of what a scan has found with the guard. */
struct judging {
	const struct guard *guard;
	const struct marks *more;
	/* Which files may stay because they are older than a moment (time 0: none): */
	struct git_scan_when when; /* all; a doubtful one stays and is reported */
	int64_t names_before_ns;   /* protected names that are certainly older */
	struct tool_result *result;
};

/* Is MARK, as it is, in the guard or in what was found since? */
static bool is_known(const struct judging *judging, const struct mark *mark)
{
	const struct marks *guards = &judging->guard->marks;

	return is_same(marks_find(guards, mark->kind, mark->path) != NULL ? guards
									  : judging->more,
		       mark);
}

/*
 * Was the file of MARK there before the guard began? A doubtful one counts as older and
 * is told.
 */
static bool stays(const struct judging *judging, const struct git_scan *scan,
		  const struct mark *mark)
{
	enum git_scan_age age;

	if (judging->when.before_ns == 0 || !is_unseen(judging->guard, mark->path))
		return false;
	age = git_scan_age(scan, mark, &judging->when);
	if (age == GIT_SCAN_DOUBTFUL)
		audit_tell_doubtful(judging->result, workspace_of(judging->guard),
				    mark->path);
	return age != GIT_SCAN_NEW;
}

/*
 * Is PATH a file with several hard links? Through an older link a command can change it.
 */
static bool has_other_names(const struct git_scan *scan, const char *path)
{
	struct stat st;

	return path_stat(scan, path, &st) && S_ISREG(st.st_mode) && st.st_nlink > 1;
}

static void judge_one(const struct git_scan *scan, const char *path,
		      const char *workspace, struct tool_result *result)
{
	char away[NAME_MAX + 1];

	if (put_away(scan, path, away, sizeof(away)))
		audit_tell_moved(result, workspace, path, away);
	else if (errno != EBUSY && errno != EROFS && errno != ENOENT)
		audit_tell_failed(result, strerror(errno));
	else if (errno != ENOENT && has_other_names(scan, path))
		/*
		 * EBUSY or EROFS: PATH is a mount of the view. A command could change it
		 * only through another hard link.
		 */
		audit_tell_linked(result, workspace, path);
}

/* Is there any danger in the repository FOLDER, old or new? */
static bool has_danger(const struct git_scan *scan, const char *folder)
{
	for (const struct mark *mark = marks_next(&scan->found, MARK_DANGER, NULL);
	     mark != NULL; mark = marks_next(&scan->found, MARK_DANGER, mark)) {
		if (path_within(mark->path, folder))
			return true;
	}
	return false;
}

/*
 * Did somebody outside make or change the protected file of MARK while no command was
 * running? Other agents keep their settings there. Only files count, because the time of
 * a folder may stay the same when a file below it changes.
 */
static bool is_persons(const struct git_scan *scan, const struct mark *mark,
		       int64_t before_ns)
{
	const struct git_scan_when when = {.before_ns = before_ns};
	struct stat st;

	return before_ns > 0 && str_starts(str_of(mark->text), STR(GIT_SCAN_NAME)) &&
	       path_stat(scan, mark->path, &st) && S_ISREG(st.st_mode) &&
	       git_scan_age(scan, mark, &when) == GIT_SCAN_OLD;
}

/*
 * Move aside every danger and lead that SCAN has found and that the guard does not know,
 * except those that may stay because of their age. Report this in the result.
 */
static void audit_judge(const struct judging *judging, const struct git_scan *scan)
{
	static const enum mark_kind judged[] = {MARK_DANGER, MARK_LEAD};

	for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
		for (const struct mark *mark = marks_next(&scan->found, judged[i], NULL);
		     mark != NULL; mark = marks_next(&scan->found, judged[i], mark)) {
			/*
			 * A new lead makes git run programs of an old repository that was
			 * harmless until then.
			 */
			if (is_known(judging, mark) ||
			    (mark->kind == MARK_LEAD && !has_danger(scan, mark->text)) ||
			    (mark->kind == MARK_DANGER &&
			     is_persons(scan, mark, judging->names_before_ns)) ||
			    stays(judging, scan, mark))
				continue;
			judge_one(scan, mark->path, workspace_of(judging->guard),
				  judging->result);
		}
	}
}

/*
 * When the scan did not see all folders, report that, or only note it when a whole look
 * follows.
 */
static void partial_tell(const struct git_scan *scan, const struct audit_call *call,
			 struct tool_result *result)
{
	if (!scan->partial)
		return;
	if (call->since != NULL && call->is_last)
		audit_note_partial(result, scan->folders_max);
	else
		audit_tell_partial(result, scan->folders_max, scan->missed);
}

/* Open the roots again when one of them was exchanged. */
static bool roots_renew(struct audit *audit, struct err *err)
{
	if (roots_hold(audit))
		return true;
	roots_close(audit);
	return roots_open(audit, err);
}

/* A scan after commands have run. */
static struct git_scan after_of(const struct audit *audit, const struct marks *more,
				enum guard_walk walk, size_t folders_max)
{
	struct git_scan scan = scan_of(audit, more, walk, folders_max);

	scan.in_cell = true;
	scan.inside_ns = audit->guard->ticked_ns;
	return scan;
}

/*
 * Is the regular file at PATH, beneath a root, still FILE (git_scan_print_file)? With
 * REMOVE it is removed, and false means that it was not.
 */
static bool left_is(const struct git_scan *scan, const char *path, const char *file,
		    bool remove)
{
	char now[GIT_SCAN_FILE];
	const char *name;
	struct stat st;

	if (path[0] != '/')
		return false;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	if (folder < 0 || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return false;
	git_scan_print_file(&st, now);
	return strcmp(now, file) == 0 && (!remove || unlinkat(folder, name, 0) == 0);
}

/*
 * Note in RESULT's details the files of this kind that have come since SINCE_NS, in the
 * folders that the audit of a call looks at.
 */
static void left_find(const struct audit *audit, const struct marks *more,
		      int64_t since_ns, struct tool_result *result)
{
	struct git_scan found = after_of(audit, more, GUARD_CALLS, GIT_SCAN_FOLDERS_CALL);
	struct err err;

	found.left_ns = since_ns;
	(void)git_scan_run(&found, &err);
	audit_note_left(result, &found.left);
	git_scan_fini(&found);
}

/* Remove the files in LEFT, if they are still the same files. */
static void left_put_away(const struct audit *audit, const struct git_left *left,
			  struct tool_result *result)
{
	const char *workspace = workspace_of(audit->guard);
	struct git_scan scan = after_of(audit, NULL, GUARD_CALLS, 0);

	for (size_t i = 0; i < left->count; i++) {
		const struct git_left_file *item = &left->items[i];

		if (item->held == NULL && left_is(&scan, item->path, item->file, true))
			audit_tell_put_away(result, workspace, item->path);
		else if (git_scan_is_lock(path_base_name(item->path)) && !item->told &&
			 left_is(&scan, item->path, item->file, false))
			audit_tell_held(result, workspace, item->path,
					item->held != NULL ? item->held : strerror(errno));
	}
	line_add(result, AUDIT_LEFT);
	git_scan_fini(&scan);
}

void audit_look_left(struct audit *audit, const struct marks *more,
		     const struct value *carried, struct tool_result *result)
{
	struct carried asked = {0};
	struct git_left left = {0};
	struct err err;

	if (audit == NULL || !roots_renew(audit, &err))
		return;
	(void)fields_read(carried, carried_fields, &asked, NULL, NULL);
	left_parse(asked.left, &left);
	if (left.count > 0)
		left_put_away(audit, &left, result);
	else if (asked.since > 0)
		left_find(audit, more, asked.since, result);
	git_left_fini(&left);
}

/*
 * The look that walks through trees of any size, for one second of work at most.
 * The guard may not have seen all of these trees, so the age of a file may decide whether
 * it is new.
 * Repositories are judged one after the other, so that a tree with thousands of them
 * takes no more memory than one.
 */

/* A person waits for this look at the end of a program or session. */
enum { WHOLE_MS = 1000 };

static void each_repository(struct git_scan *scan, void *context)
{
	audit_judge(context, scan);
}

/*
 * The whole look with AUDIT's roots, which are open. False: a part could not be looked
 * at.
 */
static bool audit_look_whole(const struct audit *audit, const struct audit_call *call,
			     struct tool_result *result, struct err *err)
{
	struct git_scan scan =
		after_of(audit, call->more, call->reach, GIT_SCAN_FOLDERS_WHOLE);
	struct judging judging = {
		.guard = audit->guard,
		.more = call->more,
		.when = {.before_ns = audit->guard->ticked_ns,
			 .places = &audit->guard->marks},
		.result = result,
	};

	scan.part = GIT_SCAN_WALKS;
	scan.work_ms = WHOLE_MS;
	scan.when = judging.when;
	scan.each = each_repository;
	scan.context = &judging;
	const bool fine = git_scan_run(&scan, err);
	line_add(result, AUDIT_DOUBTFUL);
	if (scan.partial)
		audit_tell_partial(result, scan.folders, scan.missed);
	git_scan_fini(&scan);
	return fine;
}

void audit_run(struct audit *audit, const struct audit_call *call, struct tool_result *result)
{
	struct git_scan found;
	struct err err = {0};
	bool fine = true;

	if (audit == NULL)
		return;
	fine = roots_renew(audit, &err);
	/* A whole look walks through the small roots too. */
	found = after_of(audit, call->more, GUARD_CALLS,
			 call->reach == GUARD_CALLS ? GIT_SCAN_FOLDERS_CALL : 0);
	if (call->since != NULL)
		found.since_ns = found.left_ns = clock_ns(call->since);
	fine = fine && git_scan_run(&found, &err);
	/* Dangers that were found are moved aside even when not all folders were seen. */
	const struct judging judging = {.guard = audit->guard,
					.more = call->more,
					.names_before_ns = call->quiet_ns,
					.result = result};
	audit_judge(&judging, &found);
	if (call->reach != GUARD_CALLS)
		fine = audit_look_whole(audit, call, result, &err) && fine;
	if (!fine)
		audit_tell_failed(result, err.text);
	partial_tell(&found, call, result);
	audit_tell_files(&found.found, workspace_of(audit->guard), result);
	audit_note_left(result, &found.left);
	git_scan_fini(&found);
}
