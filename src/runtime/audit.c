/* audit: what appeared is moved aside, by a rename in its own folder. */
#include "runtime/audit.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "git/git_scan.h"
#include "runtime/denial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NAME_KEPT = 200, /* bytes of a name that keep, with our mark, below NAME_MAX */
	QUARANTINED_LISTED = 256,
	FILES_LISTED = 64,    /* paths in `changed_autoexec` */
	FILES_IN_TEXT = 8,    /* and in the line that the model reads */
	QUARANTINE_TRIES = 8, /* random names, all taken: somebody makes them */
};

#define RULE_PROTECTED  "protected"
#define KEY_FAILED      "audit_failed"
#define KEY_QUARANTINED "quarantined"
#define KEY_FILES       "changed_autoexec"

/* ---- opening the roots ---- */

struct opened {
	struct git_scan_root *roots;
	size_t count;
	struct git_scan scan;
};

static void opened_fini(struct opened *opened)
{
	git_scan_fini(&opened->scan);
	for (size_t i = 0; i < opened->count; i++) {
		fd_close(&opened->roots[i].fd);
		free((char *)(uintptr_t)opened->roots[i].path);
	}
	free(opened->roots);
}

/* The folders among ROOTS; a single file has nothing below it. */
static bool opened_init(struct opened *opened, const struct value *roots, struct err *err)
{
	size_t count = value_count(roots);
	bool fine = true;

	*opened = (struct opened){.roots = memory_array(count + 1, sizeof(*opened->roots))};
	for (size_t i = 0; fine && i < count; i++) {
		auto_free char *path = git_scan_path(value_text(value_item(roots, i)));
		int fd = open(path != NULL ? path : "", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0 && errno != ENOTDIR)
			fine = err_set(err, errno, "%s: %s",
				       path != NULL ? path : "a root", strerror(errno));
		if (fd >= 0) {
			opened->roots[opened->count++] = (struct git_scan_root){path, fd};
			path = NULL;
		}
	}
	git_scan_init(&opened->scan, opened->roots, opened->count);
	return fine;
}

static bool scan(struct opened *opened, const struct value *guard, struct err *err)
{
	return git_scan_run(&opened->scan, value_member(guard, "watched"),
			    value_member(guard, "files"), err);
}

bool audit_begin(struct value *guard, struct err *err)
{
	struct opened opened;
	bool fine = opened_init(&opened, value_member(guard, "roots"), err) &&
		    scan(&opened, guard, err);

	value_set(guard, "dangers", value_ref(opened.scan.dangers));
	value_set(guard, "indexes", value_ref(opened.scan.indexes));
	value_set(guard, "repositories", value_ref(opened.scan.repositories));
	value_set(guard, "pointers", value_ref(opened.scan.pointers));
	opened_fini(&opened);
	return fine;
}

/* ---- putting away ---- */

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
	/* A folder that its owner may not write is no shelter: he may change that. */
	if (errno != EACCES || fstat(folder, &st) < 0 ||
	    fchmod(folder, (st.st_mode & 07777) | S_IRWXU) < 0)
		return false;
	bool moved = rename_away(folder, name, away, size);
	int code = errno;
	(void)fchmod(folder, st.st_mode & 07777);
	errno = code;
	return moved;
}

static void fail(struct tool_result *result, const char *why)
{
	value_set_boolean(tool_details(result), KEY_FAILED, true);
	(void)buf_addc(&result->text, '\n');
	(void)tool_fail(result,
			"[The audit after this call could not be made whole: %s. Before git, an "
			"editor or a shell is used here outside, look at what changed below "
			".git and in nested repositories.]\n",
			why);
}

static struct value *list_of(struct tool_result *result, const char *key)
{
	struct value *details = tool_details(result);

	if (value_kind(value_member(details, key)) != VALUE_ARRAY)
		value_set(details, key, value_new_array());
	return value_member(details, key);
}

/* A word that a shell takes as it is between single quotes, and that is shown as it is. */
static bool is_quotable(const char *name, const char *shown)
{
	return strcmp(name, shown) == 0 && strchr(name, '\'') == NULL;
}

static void tell(struct tool_result *result, const char *workspace, const char *path,
		 const char *away)
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

static char *workspace_of(const struct value *guard)
{
	char *path = git_scan_path(value_text(value_member(guard, "workspace")));

	return path != NULL ? path : memory_copy("/");
}

static void judge(const struct value *guard, const struct git_scan *scan,
		  struct tool_result *result)
{
	const struct value *known = value_member(guard, "dangers");
	auto_free char *workspace = workspace_of(guard);
	char away[NAME_MAX + 1];

	for (void *at = value_first(scan->dangers); at != NULL;
	     at = value_next(scan->dangers, at)) {
		if (value_equal(value_member(known, value_key(at)), value_at(at)))
			continue;
		auto_free char *path = git_scan_path(value_key(at));
		if (path == NULL)
			fail(result, strerror(EILSEQ));
		else if (put_away(scan, path, away, sizeof(away)))
			tell(result, workspace, path, away);
		else if (errno != EBUSY && errno != EROFS && errno != ENOENT)
			/* Busy or read-only: a mount of the view, which no command could pass. */
			fail(result, strerror(errno));
	}
}

void audit_print_files(const struct tool_result *result, struct buf *out)
{
	const struct value *list = value_member(result->details, KEY_FILES);
	size_t count = value_count(list);

	if (count == 0)
		return;
	(void)buf_adds(out, "changed, and run by other programs by themselves:");
	for (size_t i = 0; i < count && i < FILES_IN_TEXT; i++) {
		(void)buf_adds(out, i > 0 ? ", " : " ");
		text_add_name(out, value_str(value_item(list, i)));
	}
	if (count > FILES_IN_TEXT)
		(void)buf_addf(out, " and %zu more", count - FILES_IN_TEXT);
}

static void tell_files(const struct git_scan *scan, const char *workspace,
		       struct tool_result *result)
{
	size_t count = value_count(scan->files);
	struct buf *text = &result->text;

	if (count == 0)
		return;
	struct value *list = list_of(result, KEY_FILES);
	for (size_t i = 0; i < count && i < FILES_LISTED; i++) {
		const char *path =
			path_relative(value_text(value_item(scan->files, i)), workspace);
		value_append(list, value_new_text(path));
	}
	(void)buf_end_line(text);
	(void)buf_addc(text, '[');
	audit_print_files(result, text);
	(void)buf_adds(text, "]\n");
}

void audit_run(const struct value *guard, const struct timespec *since,
	       struct tool_result *result)
{
	struct opened opened;
	struct err err = {0};

	if (guard == NULL)
		return;
	bool fine = opened_init(&opened, value_member(guard, "roots"), &err);
	opened.scan.may_mend = true;
	opened.scan.known_indexes = value_member(guard, "indexes");
	opened.scan.wants_files = since != NULL;
	if (since != NULL)
		opened.scan.since = *since;
	fine = fine && scan(&opened, guard, &err);
	/* What was seen is put away even when not all was seen. */
	judge(guard, &opened.scan, result);
	if (!fine)
		fail(result, err.text);
	auto_free char *workspace = workspace_of(guard);
	tell_files(&opened.scan, workspace, result);
	opened_fini(&opened);
}

bool audit_failed(const struct tool_result *result)
{
	return value_is_true(value_member(result->details, KEY_FAILED));
}

bool audit_quarantined(const struct tool_result *result)
{
	return value_count(value_member(result->details, KEY_QUARANTINED)) > 0;
}

/* ---- the result of an audit made apart from its call ---- */

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
