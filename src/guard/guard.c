/* guard: finds new dangers and moves them aside by a rename in their own folder. */

#include "guard/guard.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
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
	const struct value *guard;
	char *home; /* the user's; NULL: unknown */
	struct audit_root *roots;
	size_t count;
	struct git_scan_root *folders; /* the folders among the roots, open */
	size_t folder_count;
};

/* Which files may stay because they are older than a moment. */
struct audit_when {
	/* for all files; a doubtful one stays and is reported. Time 0: none may stay */
	struct git_scan_when all;
	/* for protected names that are certainly older; 0: none may stay */
	int64_t names_before_ns;
};

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

void audit_tell_failed(struct tool_result *result, const char *why)
{
	value_set_boolean(tool_details(result), KEY_FAILED, true);
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
	value_set_boolean(tool_details(result), KEY_FAILED, true);
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
	value_set_integer(tool_details(result), KEY_PARTIAL, (int64_t)folders);
}

bool audit_take_partial(struct tool_result *result)
{
	if (!audit_is_partial(result))
		return false;
	value_remove(result->details, KEY_PARTIAL);
	return true;
}

/*
 * The audit looked into FOLDERS folders and left out others, such as MISSED and those
 * after it (NULL: unknown). RESULT does not become failed.
 */
static void audit_tell_partial(struct tool_result *result, size_t folders, const char *missed)
{
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	audit_note_partial(result, folders);
	if (missed != NULL) {
		text_add_name(&shown, str_of(missed));
		value_set_text(tool_details(result), KEY_MISSED, shown.data);
	}
	(void)buf_end_line(&result->text);
	(void)buf_addc(&result->text, '[');
	audit_add_partial(&result->text, folders, missed != NULL ? shown.data : NULL);
	(void)buf_adds(&result->text, "]\n");
	buf_fini(&shown);
}

void audit_print_partial(const struct tool_result *result, struct buf *out)
{
	const int64_t folders = value_integer(value_member(result->details, KEY_PARTIAL));

	if (folders > 0)
		audit_add_partial(out, (size_t)folders,
				  value_text(value_member(result->details, KEY_MISSED)));
}

static struct value *list_of(struct tool_result *result, const char *key)
{
	struct value *details = tool_details(result);

	if (value_kind(value_member(details, key)) != VALUE_ARRAY)
		value_set(details, key, value_new_array());
	return value_member(details, key);
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
	struct value *item = value_new_object();
	struct buf remedy, place, shown;

	buf_init(&remedy, 16 * PATH_MAX);
	buf_init(&place, 4 * PATH_MAX);
	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(name));
	text_add_name(&place, str_part(str_of(name), 0, folder));
	text_add_name(&place, str_of(away));
	(void)buf_addf(&remedy, "it is now %s, where nothing runs it", place.data);
	if (is_quotable(name, shown.data))
		(void)buf_addf(&remedy, "; a person who wants it back runs: mv -- '%s' '%s'",
			       place.data, name);
	if (autoexec_ends(path) != NULL)
		(void)buf_adds(&remedy, "; " AUTOEXEC_REMEDY);
	denial_add(result, &(struct denial){.kind = DENIAL_FS,
					    .target = shown.data,
					    .rule = RULE_PROTECTED,
					    .remedy = remedy.data});
	value_set_text(item, "path", shown.data);
	value_set_text(item, "moved_to", place.data);
	struct value *list = list_of(result, KEY_QUARANTINED);
	if (value_count(list) < QUARANTINED_LISTED)
		value_append(list, item);
	else
		value_free(item);
	buf_fini(&shown);
	buf_fini(&place);
	buf_fini(&remedy);
}

/* PATH, which is bound read-only, was changed through another hard link: a denial. */
static void audit_tell_linked(struct tool_result *result, const char *workspace,
			      const char *path)
{
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path_relative(path, workspace)));
	denial_add(result,
		   &(struct denial){.kind = DENIAL_FS,
				    .target = shown.data,
				    .rule = RULE_PROTECTED,
				    .remedy = "it was changed all the same, by another "
					      "name of the same file (a hard link); a "
					      "person looks at it before it runs"});
	buf_fini(&shown);
}

/*
 * PATH stays, and it is unknown whether it was there before or was moved there: an item
 * of `doubtful`. audit_end_doubtful adds one line for all of them at the end.
 */
static void audit_tell_doubtful(struct tool_result *result, const char *workspace,
				const char *path)
{
	struct value *list = list_of(result, KEY_DOUBTFUL);

	if (value_count(list) < QUARANTINED_LISTED)
		value_append(list, value_new_text(path_relative(path, workspace)));
}

/* Put LEFT (scan.h; NULL: nothing) into RESULT's details for the front. */
static void audit_note_left(struct tool_result *result, struct value *left)
{
	if (value_count(left) > 0)
		value_set(tool_details(result), KEY_LEFT, value_ref(left));
}

struct value *audit_take_left(struct tool_result *from)
{
	struct value *left = value_member(from->details, KEY_LEFT);

	if (left == NULL)
		return NULL;
	left = value_ref(left);
	value_remove(from->details, KEY_LEFT);
	if (value_kind(left) == VALUE_OBJECT)
		return left;
	value_free(left);
	return NULL;
}

/* PATH, which a killed git had left, was removed: `git_put_away`. */
static void audit_tell_put_away(struct tool_result *result, const char *workspace,
				const char *path)
{
	struct value *list = list_of(result, KEY_PUT_AWAY);
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path_relative(path, workspace)));
	if (value_count(list) < QUARANTINED_LISTED)
		value_append(list, value_new_text(shown.data));
	buf_fini(&shown);
}

/* The lock PATH appeared during the call and stays because of WHY: `git_locks`. */
static void audit_tell_held(struct tool_result *result, const char *workspace,
			    const char *path, const char *why)
{
	struct value *list = list_of(result, KEY_LOCKS);
	struct value *item = value_new_object();
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path_relative(path, workspace)));
	value_set_text(item, "path", shown.data);
	value_set_text(item, "because", why);
	buf_fini(&shown);
	if (value_count(list) < QUARANTINED_LISTED)
		value_append(list, item);
	else
		value_free(item);
}

static void names_print(const struct value *list, struct buf *out)
{
	const size_t count = value_count(list);

	for (size_t i = 0; i < count && i < FILES_IN_TEXT; i++) {
		(void)buf_adds(out, i > 0 ? ", " : " ");
		text_add_name(out, value_str(value_item(list, i)));
	}
	if (count > FILES_IN_TEXT)
		(void)buf_addf(out, " and %zu more", count - FILES_IN_TEXT);
}

void audit_print_doubtful(const struct tool_result *result, struct buf *out)
{
	const struct value *list = value_member(result->details, KEY_DOUBTFUL);

	if (value_count(list) == 0)
		return;
	(void)buf_adds(out, "older than the command, and may have been moved to where git runs "
			    "it; look before git is used there:");
	names_print(list, out);
}

static void audit_end_doubtful(struct tool_result *result)
{
	struct buf *text = &result->text;

	if (value_count(value_member(result->details, KEY_DOUBTFUL)) == 0)
		return;
	(void)buf_end_line(text);
	(void)buf_addc(text, '[');
	audit_print_doubtful(result, text);
	(void)buf_adds(text, "]\n");
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
		const char *name = value_text(value_member(value_item(list, i), "path"));

		buf_clear(&shown);
		text_add_name(&shown, str_of(name != NULL ? name : ""));
		if (name != NULL && is_quotable(name, shown.data))
			(void)buf_addf(out, " '%s'", name);
	}
	buf_fini(&shown);
}

void audit_print_left(const struct tool_result *result, struct buf *out)
{
	const struct value *list = value_member(result->details, KEY_PUT_AWAY);
	const struct value *locks = value_member(result->details, KEY_LOCKS);
	const char *why = value_text(value_member(value_item(locks, 0), "because"));

	if (value_count(list) > 0) {
		(void)buf_adds(out, "removed, left by a git that was ended:");
		names_print(list, out);
	}
	if (value_count(locks) == 0)
		return;
	(void)buf_addf(out, "%sa lock of git's stays (%s)",
		       value_count(list) > 0 ? "; " : "", why != NULL ? why : "?");
	removal_print(locks, out);
}

/* Add the line of audit_print_left to RESULT's text, at the end of an audit. */
static void audit_end_left(struct tool_result *result)
{
	struct buf line;

	buf_init(&line, RESULT_TEXT_MAX);
	audit_print_left(result, &line);
	if (line.size > 0) {
		(void)buf_end_line(&result->text);
		(void)buf_addf(&result->text, "[%s]\n", line.data);
	}
	buf_fini(&line);
}

void audit_print_files(const struct tool_result *result, struct buf *out)
{
	const struct value *list = value_member(result->details, KEY_FILES);

	if (value_count(list) == 0)
		return;
	(void)buf_adds(out, "changed, and run by other programs by themselves:");
	names_print(list, out);
}

/* FILES, which other programs run by themselves, were written: `changed_autoexec`. */
static void audit_tell_files(const struct value *files, const char *workspace,
			     struct tool_result *result)
{
	size_t count = value_count(files);
	struct buf *text = &result->text;

	if (count == 0)
		return;
	struct value *list = list_of(result, KEY_FILES);
	for (size_t i = 0; i < count && i < FILES_LISTED; i++) {
		const char *path =
			path_relative(value_text(value_item(files, i)), workspace);
		value_append(list, value_new_text(path));
	}
	(void)buf_end_line(text);
	(void)buf_addc(text, '[');
	audit_print_files(result, text);
	(void)buf_adds(text, "]\n");
}

bool audit_is_partial(const struct tool_result *result)
{
	return value_member(result->details, KEY_PARTIAL) != NULL;
}

bool audit_failed(const struct tool_result *result)
{
	return value_is_true(value_member(result->details, KEY_FAILED));
}

bool audit_quarantined(const struct tool_result *result)
{
	return value_count(value_member(result->details, KEY_QUARANTINED)) > 0;
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
	free(audit->roots);
	free(audit->home);
	*audit = (struct audit){.guard = audit->guard};
}

static bool root_open(struct audit *audit, const char *path, struct err *err)
{
	struct audit_root *root = &audit->roots[audit->count];
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	*root = (struct audit_root){.path = memory_copy(path),
				    .is_folder = S_ISDIR(st.st_mode),
				    .device = st.st_dev,
				    .inode = st.st_ino};
	audit->count++;
	if (root->is_folder)
		audit->folders[audit->folder_count++] =
			(struct git_scan_root){root->path, fd_take(&fd)};
	return true;
}

static bool roots_open(struct audit *audit, struct err *err)
{
	const struct value *roots = value_member(audit->guard, "roots");
	size_t count = value_count(roots);
	bool fine = true;

	audit->home = path_of_key(value_text(value_member(audit->guard, "home")));
	audit->roots = memory_array(count, sizeof(*audit->roots));
	audit->folders = memory_array(count, sizeof(*audit->folders));
	for (size_t i = 0; fine && i < count; i++) {
		auto_free char *path = path_of_key(value_text(value_item(roots, i)));

		fine = path != NULL ? root_open(audit, path, err)
				    : err_set(err, EILSEQ, "a root: %s", strerror(EILSEQ));
	}
	return fine;
}

/*
 * Is every root still the file or folder that was opened? Without a view, a command may
 * exchange a root.
 */
static bool roots_hold(const struct audit *audit)
{
	struct stat st;

	if (audit->count != value_count(value_member(audit->guard, "roots")))
		return false;
	for (size_t i = 0; i < audit->count; i++) {
		const struct audit_root *root = &audit->roots[i];

		if (stat(root->path, &st) < 0 || st.st_dev != root->device ||
		    st.st_ino != root->inode || S_ISDIR(st.st_mode) != root->is_folder)
			return false;
	}
	return true;
}

static bool scan(const struct audit *audit, struct git_scan *scan, struct err *err)
{
	return git_scan_run(scan, value_member(audit->guard, "watched"),
			    value_member(audit->guard, "files"), err);
}

static void deep_begin(const struct value *guard, struct git_scan *scan)
{
	const int64_t folders = value_integer(value_member(guard, "folders"));

	scan->folders_max = folders > 0 && folders <= GIT_SCAN_FOLDERS ? (size_t)folders
								       : GIT_SCAN_FOLDERS;
	scan->deep = value_member(guard, "deep");
}

bool audit_begin(struct value *guard, struct err *err)
{
	struct audit audit = {.guard = guard};
	struct git_scan found;
	bool fine = roots_open(&audit, err);

	git_scan_init(&found, audit.folders, audit.folder_count);
	found.home = audit.home;
	found.opened = value_member(guard, "opened");
	deep_begin(guard, &found);
	found.wants_places = true;
	fine = fine && scan(&audit, &found, err);
	if (found.partial)
		value_set(guard, "places", value_ref(found.places));
	value_set(guard, "dangers", value_ref(found.dangers));
	value_set(guard, "indexes", value_ref(found.indexes));
	value_set(guard, "leads", value_ref(found.leads));
	value_set(guard, "repositories", value_ref(found.repositories));
	value_set(guard, "held", value_ref(found.held));
	value_set(guard, "nested", value_ref(found.nested));
	value_set_boolean(guard, "partial", found.partial);
	value_set_integer(guard, "seen", (int64_t)found.folders);
	git_scan_fini(&found);
	roots_close(&audit);
	return fine;
}

/*
 * Was the file at KEY last changed before BEFORE_NS? No program can set the time of
 * change.
 */
static bool was_before(const struct git_scan *scan, const char *key, int64_t before_ns)
{
	auto_free char *path = path_of_key(key);
	struct stat st;
	const char *name;

	if (path == NULL)
		return false;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	return folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       clock_ns(&st.st_ctim) < before_ns;
}

bool audit_begin_more(const struct value *guard, struct value *more, bool ran,
		      struct err *err)
{
	const struct value *known = value_member(guard, "dangers");
	const int64_t before_ns = ran ? value_integer(value_member(guard, "ticked"))
				      : value_integer(value_member(guard, "began")) + 1;
	const struct value *indexes = value_member(guard, "indexes");
	struct value *dangers = value_new_object(), *read = value_new_object();
	struct value *leads = value_new_object();
	struct audit audit = {.guard = guard};
	struct git_scan found;
	bool fine = roots_open(&audit, err);

	git_scan_init(&found, audit.folders, audit.folder_count);
	found.home = audit.home;
	found.known_indexes = indexes;
	found.opened = value_member(guard, "opened");
	if (fine)
		git_scan_watch(&found, value_member(more, "watched"));
	fine = fine && (found.trouble.text[0] == '\0' ||
			err_set(err, found.trouble.code, "%s", found.trouble.text));
	for (void *at = value_first(found.dangers); at != NULL;
	     at = value_next(found.dangers, at)) {
		if (value_member(known, value_key(at)) == NULL &&
		    was_before(&found, value_key(at), before_ns))
			value_set(dangers, value_key(at), value_ref(value_at(at)));
	}
	for (void *at = value_first(found.indexes); at != NULL;
	     at = value_next(found.indexes, at)) {
		if (value_member(indexes, value_key(at)) == NULL)
			value_set(read, value_key(at), value_ref(value_at(at)));
	}
	for (void *at = value_first(found.leads); at != NULL;
	     at = value_next(found.leads, at)) {
		if (was_before(&found, value_key(at), before_ns))
			value_set(leads, value_key(at), value_ref(value_at(at)));
	}
	value_set(more, "leads", leads);
	value_set(more, "dangers", dangers);
	value_set(more, "indexes", read);
	git_scan_fini(&found);
	roots_close(&audit);
	return fine;
}

struct audit *audit_open(const struct value *guard)
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

static char *workspace_of(const struct value *guard)
{
	char *path = path_of_key(value_text(value_member(guard, "workspace")));

	return path != NULL ? path : memory_copy("/");
}

/* The value of KEY in the object NAME of GUARD or MORE; NULL: neither has it. */
static const struct value *known_as(const struct value *guard, const struct value *more,
				    const char *name, const char *key)
{
	const struct value *known = value_member(value_member(guard, name), key);

	return known != NULL ? known : value_member(value_member(more, name), key);
}

/* Was KEY there before WHEN? A doubtful one counts as older and is reported. */
static bool stays(const struct git_scan *scan, const char *key,
		  const struct git_scan_when *when, const char *workspace,
		  struct tool_result *result)
{
	enum git_scan_age age;

	if (when->before_ns == 0)
		return false;
	age = git_scan_age(scan, key, when);
	if (age == GIT_SCAN_DOUBTFUL) {
		auto_free char *path = path_of_key(key);
		audit_tell_doubtful(result, workspace, path);
	}
	return age != GIT_SCAN_NEW;
}

/*
 * Is PATH a file with several hard links? Through an older link a command can change it.
 */
static bool has_other_names(const struct git_scan *scan, const char *path)
{
	const char *name;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	struct stat st;

	return folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && st.st_nlink > 1;
}

static void judge_one(const struct git_scan *scan, const char *key, const char *workspace,
		      struct tool_result *result)
{
	char away[NAME_MAX + 1];
	auto_free char *path = path_of_key(key);

	if (path == NULL)
		audit_tell_failed(result, strerror(EILSEQ));
	else if (put_away(scan, path, away, sizeof(away)))
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
	for (void *at = value_first(scan->dangers); folder != NULL && at != NULL;
	     at = value_next(scan->dangers, at)) {
		if (path_within(value_key(at), folder))
			return true;
	}
	return false;
}

/* Is there a regular file at KEY now? */
static bool is_file(const struct git_scan *scan, const char *key)
{
	auto_free char *path = path_of_key(key);
	const char *name;
	struct stat st;

	if (path == NULL)
		return false;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	return folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
}

/*
 * Did somebody outside make or change the protected file KEY while no command was
 * running? Other agents keep their settings there. Only files count, because the time of
 * a folder may stay the same when a file below it changes.
 */
static bool is_persons(const struct git_scan *scan, const char *key,
		       const struct value *print, int64_t before_ns)
{
	const struct git_scan_when when = {.before_ns = before_ns};

	return before_ns > 0 && git_scan_is_name(value_text(print)) &&
	       is_file(scan, key) && git_scan_age(scan, key, &when) == GIT_SCAN_OLD;
}

/*
 * Move aside every danger that SCAN has found and that neither GUARD nor MORE knows,
 * except those that WHEN lets stay. Report this in RESULT.
 */
static void audit_judge(const struct value *guard, const struct value *more,
			const struct git_scan *scan, const struct audit_when *when,
			struct tool_result *result)
{
	if (value_count(scan->dangers) == 0)
		return;
	auto_free char *workspace = workspace_of(guard);
	for (void *at = value_first(scan->dangers); at != NULL;
	     at = value_next(scan->dangers, at)) {
		const char *key = value_key(at);

		if (!value_equal(known_as(guard, more, "dangers", key), value_at(at)) &&
		    !is_persons(scan, key, value_at(at), when->names_before_ns) &&
		    !stays(scan, key, &when->all, workspace, result))
			judge_one(scan, key, workspace, result);
	}
	/*
	 * A new pointer makes git run programs of an old repository that was harmless
	 * until then.
	 */
	for (void *at = value_first(scan->leads); at != NULL;
	     at = value_next(scan->leads, at)) {
		const char *key = value_key(at);

		if (!value_equal(known_as(guard, more, "leads", key), value_at(at)) &&
		    has_danger(scan, value_text(value_at(at))) &&
		    !stays(scan, key, &when->all, workspace, result))
			judge_one(scan, key, workspace, result);
	}
}

/*
 * When the scan did not see all folders, report that, or only note it when a whole look
 * follows.
 */
static void partial_tell(const struct audit *audit, const struct git_scan *scan,
			 bool is_command, struct tool_result *result)
{
	if (!scan->partial &&
	    !(is_command && value_is_true(value_member(audit->guard, "tells"))))
		return;
	if (is_command && value_is_true(value_member(audit->guard, "one_call")))
		audit_note_partial(result, scan->folders_max);
	else
		audit_tell_partial(result, scan->folders_max, scan->missed);
}

/* Give SCAN, of an audit, the knowledge in GUARD and MORE. */
static void audit_scan_begin(const struct value *guard, const struct value *more,
			     struct git_scan *scan)
{
	scan->may_mend = true;
	scan->in_cell = true;
	scan->inside_ns = value_integer(value_member(guard, "ticked"));
	scan->known_indexes = value_member(guard, "indexes");
	scan->more_indexes = value_member(more, "indexes");
	scan->known_dangers = value_member(guard, "dangers");
	scan->more_dangers = value_member(more, "dangers");
	scan->opened = value_member(guard, "opened");
}

/* Open the roots again when one of them was exchanged. */
static bool roots_renew(struct audit *audit, struct err *err)
{
	if (roots_hold(audit))
		return true;
	roots_close(audit);
	return roots_open(audit, err);
}

/* Initialise SCAN for the audit of a call. */
static void near_begin(const struct audit *audit, const struct value *more,
		       struct git_scan *scan)
{
	git_scan_init(scan, audit->folders, audit->folder_count);
	scan->home = audit->home;
	audit_scan_begin(audit->guard, more, scan);
}

/*
 * Remove the file at KEY, beneath a root, if it is still FILE. False: the file was not
 * removed.
 */
static bool left_remove(const struct git_scan *scan, const char *key, const char *file)
{
	auto_free char *path = path_of_key(key);
	char now[GIT_SCAN_FILE];
	const char *name;
	struct stat st;

	if (path == NULL || path[0] != '/')
		return false;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	if (folder < 0 || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	git_scan_print_file(&st, now);
	return S_ISREG(st.st_mode) && strcmp(now, file) == 0 &&
	       unlinkat(folder, name, 0) == 0;
}

/* Is the file at KEY still FILE? */
static bool left_stays(const struct git_scan *scan, const char *key, const char *file)
{
	auto_free char *path = path_of_key(key);
	char now[GIT_SCAN_FILE] = "";
	const char *name;
	struct stat st;

	if (path == NULL || path[0] != '/')
		return false;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	if (folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		git_scan_print_file(&st, now);
	return strcmp(now, file) == 0;
}

void audit_find_left(struct audit *audit, const struct value *more, int64_t since_ns,
		     struct tool_result *result)
{
	struct git_scan found;
	struct err err;

	if (audit == NULL || !roots_renew(audit, &err))
		return;
	near_begin(audit, more, &found);
	deep_begin(audit->guard, &found);
	found.left_ns = since_ns;
	git_scan_watch(&found, value_member(more, "watched"));
	(void)scan(audit, &found, &err);
	audit_note_left(result, found.left);
	git_scan_fini(&found);
}

void audit_put_left_away(struct audit *audit, const struct value *left,
			 struct tool_result *result)
{
	struct git_scan scan;
	struct err err;

	if (audit == NULL || !roots_renew(audit, &err))
		return;
	auto_free char *workspace = workspace_of(audit->guard);
	git_scan_init(&scan, audit->folders, audit->folder_count);
	scan.may_mend = true;
	for (void *at = value_first(left); at != NULL; at = value_next(left, at)) {
		auto_free char *path = path_of_key(value_key(at));
		const char *file = value_text(value_member(value_at(at), "file"));
		const char *holder = value_text(value_member(value_at(at), "held"));

		if (path == NULL || file == NULL)
			continue;
		const bool is_lock = git_scan_is_lock(path_base_name(path));
		if (holder == NULL && left_remove(&scan, value_key(at), file))
			audit_tell_put_away(result, workspace, path);
		else if (is_lock && !value_is_true(value_member(value_at(at), "told")) &&
			 left_stays(&scan, value_key(at), file))
			audit_tell_held(result, workspace, path,
					holder != NULL ? holder : strerror(errno));
	}
	audit_end_left(result);
	git_scan_fini(&scan);
}

static bool audit_look_whole(const struct audit *audit, const struct value *more,
			     enum audit_reach reach, struct tool_result *result,
			     struct err *err);

void audit_run(struct audit *audit, const struct value *more, enum audit_reach reach,
	       const struct timespec *since, int64_t quiet_ns, struct tool_result *result)
{
	const struct audit_when when = {.names_before_ns = quiet_ns};
	struct git_scan found;
	struct err err = {0};
	bool fine = true;

	if (audit == NULL)
		return;
	fine = roots_renew(audit, &err);
	near_begin(audit, more, &found);
	if (reach == AUDIT_NEAR)
		deep_begin(audit->guard, &found);
	found.wants_files = since != NULL;
	if (since != NULL) {
		found.since = *since;
		found.left_ns = clock_ns(since);
	}
	if (fine)
		git_scan_watch(&found, value_member(more, "watched"));
	fine = fine && scan(audit, &found, &err);
	/* Dangers that were found are moved aside even when not all folders were seen. */
	audit_judge(audit->guard, more, &found, &when, result);
	if (reach != AUDIT_NEAR)
		fine = audit_look_whole(audit, more, reach, result, &err) && fine;
	if (!fine)
		audit_tell_failed(result, err.text);
	partial_tell(audit, &found, since != NULL, result);
	if (value_count(found.files) > 0) {
		auto_free char *workspace = workspace_of(audit->guard);
		audit_tell_files(found.files, workspace, result);
	}
	audit_note_left(result, found.left);
	git_scan_fini(&found);
}

/*
 * The look that walks through trees of any size, for one second of work at most.
 * audit_begin may not have seen all of these trees, so the age of a file decides whether
 * it is new.
 * Repositories are judged one after the other, so that a tree with thousands of them
 * takes no more memory than one.
 */

/* A person waits for this look at the end of a program or session. */
enum { WHOLE_MS = 1000 };

struct whole {
	const struct audit *audit;
	const struct value *more;
	struct audit_when when;
	struct tool_result *result;
};

static void each_repository(struct git_scan *scan, void *context)
{
	const struct whole *whole = context;

	audit_judge(whole->audit->guard, whole->more, scan, &whole->when, whole->result);
}

/*
 * The whole look (REACH is not AUDIT_NEAR) with AUDIT's roots, which are open. False: a
 * part could not be looked at.
 */
static bool audit_look_whole(const struct audit *audit, const struct value *more,
			     enum audit_reach reach, struct tool_result *result,
			     struct err *err)
{
	const struct value *guard = audit->guard;
	struct whole whole = {.audit = audit, .more = more, .result = result};
	struct git_scan scan;

	/*
	 * When audit_begin has seen all, every danger that the guard does not know is
	 * new.
	 */
	if (reach == AUDIT_ALL || !value_is_true(value_member(guard, "complete")))
		whole.when.all = (struct git_scan_when){
			.before_ns = value_integer(value_member(guard, "ticked")),
			.places = value_member(guard, "places"),
		};
	git_scan_init(&scan, audit->folders, audit->folder_count);
	scan.home = audit->home;
	audit_scan_begin(guard, more, &scan);
	scan.deep = value_member(guard, reach == AUDIT_ALL ? "roots" : "whole");
	scan.folders_max = GIT_SCAN_FOLDERS_WHOLE;
	scan.when = whole.when.all;
	scan.each = each_repository;
	scan.context = &whole;
	git_scan_whole(&scan, WHOLE_MS);
	audit_end_doubtful(result);
	if (scan.partial)
		audit_tell_partial(result, scan.folders, scan.missed);
	const bool fine = scan.trouble.text[0] == '\0' ||
			  err_set(err, scan.trouble.code, "%s", scan.trouble.text);
	git_scan_fini(&scan);
	return fine;
}
