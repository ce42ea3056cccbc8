/* audit_tell: the texts and details of an audit; see audit_tell.h. */
#include "guard/audit_tell.h"

#include "base/path.h"
#include "base/text/text.h"
#include "policy/autoexec.h"
#include "tool/denial.h"

#include <limits.h>
#include <string.h>

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

void audit_note_partial(struct tool_result *result, size_t folders)
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

void audit_tell_partial(struct tool_result *result, size_t folders, const char *missed)
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

void audit_tell_moved(struct tool_result *result, const char *workspace, const char *path,
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

void audit_tell_linked(struct tool_result *result, const char *workspace, const char *path)
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

void audit_tell_doubtful(struct tool_result *result, const char *workspace, const char *path)
{
	struct value *list = list_of(result, KEY_DOUBTFUL);

	if (value_count(list) < QUARANTINED_LISTED)
		value_append(list, value_new_text(path_relative(path, workspace)));
}

void audit_note_left(struct tool_result *result, struct value *left)
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

void audit_tell_put_away(struct tool_result *result, const char *workspace, const char *path)
{
	struct value *list = list_of(result, KEY_PUT_AWAY);
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path_relative(path, workspace)));
	if (value_count(list) < QUARANTINED_LISTED)
		value_append(list, value_new_text(shown.data));
	buf_fini(&shown);
}

void audit_tell_held(struct tool_result *result, const char *workspace, const char *path,
		     const char *why)
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

void audit_end_doubtful(struct tool_result *result)
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

void audit_end_left(struct tool_result *result)
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

void audit_tell_files(const struct value *files, const char *workspace,
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
