/*
 * policy_paths: the entries of a policy from what the user wrote to absolute, lexically
 * normal paths. Text only: the code that opens the roots cares for links.
 */
#include "policy/policy.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/pattern.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* Where an entry stands, for its sentences. */
struct place {
	const char *agent;
	const char *key;
	const char *start; /* absolute: where relative entries begin */
	const char *what;  /* what that is: "base" or "workspace" */
};

static bool check_text(const struct place *at, const char *text, struct err *err)
{
	if (text[0] == '\0')
		return err_set(err, EINVAL, "agents.%s.%s: an entry is empty; name a path",
			       at->agent, at->key);
	if (text[0] == '~' && (text[1] == '/' || text[1] == '\0'))
		return err_set(err, EINVAL,
			       "agents.%s.%s: \"%s\": ~ is not expanded here; write the whole path",
			       at->agent, at->key, text);
	if (strlen(text) >= PATH_MAX)
		return err_set(err, ENAMETOOLONG,
			       "agents.%s.%s: \"%.64s…\" is longer than %d bytes",
			       at->agent, at->key, text, PATH_MAX - 1);
	return true;
}

/* Fill in ENTRY->path from TEXT (its text, or the part before its pattern). */
static bool make_normal(const struct place *at, struct policy_path *entry,
			const char *text, struct err *err)
{
	struct buf normal;
	bool fits;

	buf_init(&normal, PATH_MAX - 1);
	fits = path_normal(at->start, text, &normal);
	if (!fits)
		(void)err_set(err, EINVAL,
			      "agents.%s.%s: \"%s\" climbs above / or becomes longer than %d bytes",
			      at->agent, at->key, entry->text, PATH_MAX - 1);
	else if (text[0] != '/' && !path_within(normal.data, at->start))
		fits = err_set(
			err, EINVAL,
			"agents.%s.%s: \"%s\" leads out of the %s (%s); a relative entry stays "
			"beneath it, write the absolute path %s if that is what you want",
			at->agent, at->key, entry->text, at->what, at->start, normal.data);
	else
		entry->path = buf_take(&normal);
	buf_fini(&normal);
	return fits;
}

/*
 * Length of the folder before the first component of TEXT that is a pattern, slash
 * included.
 */
static size_t literal_length(const char *text)
{
	size_t start = 0;

	for (;;) {
		size_t length = strcspn(text + start, "/");

		if (text[start + length] == '\0' ||
		    pattern_is_one((struct str){text + start, length}))
			return start;
		start += length + 1;
	}
}

/* Such a pattern could never match a normal path. */
static bool has_dots(const char *pattern)
{
	for (const char *at = pattern; *at;) {
		size_t length = strcspn(at, "/");

		if ((length == 1 && at[0] == '.') ||
		    (length == 2 && memcmp(at, "..", 2) == 0))
			return true;
		at += length + (at[length] == '/');
	}
	return pattern[strlen(pattern) - 1] == '/';
}

static bool split_pattern(const struct place *at, struct policy_path *entry, struct err *err)
{
	size_t length = literal_length(entry->text);
	auto_free char *folder = memory_copy_str((struct str){entry->text, length});
	const char *pattern = entry->text + length;
	struct err why;

	if (!pattern_check(str_of(pattern), PATTERN_BASENAME, &why))
		return err_set(err, EINVAL, "agents.%s.%s: \"%s\": %s", at->agent,
			       at->key, entry->text, why.text);
	if (has_dots(pattern))
		return err_set(err, EINVAL,
			       "agents.%s.%s: the pattern \"%s\" matches no file; leave \".\", \"..\" "
			       "and a last slash away",
			       at->agent, at->key, entry->text);
	if (!make_normal(at, entry, length ? folder : ".", err))
		return false;
	entry->pattern = memory_copy(pattern);
	return true;
}

/*
 * Stars and question marks are refused where no pattern holds; brackets are names
 * there.
 */
static bool refuse_pattern(const struct place *at, const struct policy_path *entry,
			   struct err *err)
{
	if (!strpbrk(entry->text, "*?"))
		return true;
	return err_set(err, EINVAL,
		       "agents.%s.%s: \"%s\" is a pattern, and only \"write\" takes patterns; name the "
		       "file or folder itself",
		       at->agent, at->key, entry->text);
}

static bool normal_entries(const struct place *at, struct policy_paths *paths,
			   bool patterns, struct err *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		struct policy_path *entry = &paths->items[i];

		if (entry->path)
			continue;
		if (!check_text(at, entry->text, err))
			return false;
		if (patterns && pattern_is_one(str_of(entry->text))) {
			if (!split_pattern(at, entry, err))
				return false;
			continue;
		}
		if (!refuse_pattern(at, entry, err) ||
		    !make_normal(at, entry, entry->text, err))
			return false;
	}
	return true;
}

static bool normal_base(struct policy *policy, const char *workspace, struct err *err)
{
	const struct place at = {policy->name, "base", workspace, "workspace"};

	if (policy->base.path)
		return true;
	if (!policy->base.text)
		policy->base.text = memory_copy(".");
	return check_text(&at, policy->base.text, err) &&
	       refuse_pattern(&at, &policy->base, err) &&
	       make_normal(&at, &policy->base, policy->base.text, err);
}

bool policy_paths_normal(struct policy *policy, const char *workspace, struct err *err)
{
	struct place at = {policy->name, "read", NULL, "base"};

	if (!policy->workspace)
		policy->workspace = memory_copy(workspace);
	if (!normal_base(policy, workspace, err))
		return false;
	if (!policy->read.given && policy->read.count == 0) {
		policy->read.items = memory_array(1, sizeof(*policy->read.items));
		policy->read.items[0].text = memory_copy(".");
		policy->read.count = 1;
	}
	at.start = policy->base.path;
	if (!normal_entries(&at, &policy->read, false, err))
		return false;
	at.key = "write";
	if (!normal_entries(&at, &policy->write, true, err))
		return false;
	at.key = "blocked";
	return normal_entries(&at, &policy->blocked, false, err);
}
