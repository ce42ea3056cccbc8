/*
 * policy_decide: the verdict on one call, and the sentence that a model can act on.
 * Blocked first, then the roots; what is not plainly allowed is denied.
 */
#include "policy/verdict.h"

#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/pattern.h"
#include "base/text/text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	SHOWN_PATH_MAX = 200, /* bytes of a path quoted; a longer one helps nobody */
	LISTED_MAX = 12,      /* roots or tools listed in one sentence */
};

/*
 * PATH as the model should see it: relative inside the workspace, cut, without control
 * bytes.
 */
static void add_path(struct buf *out, const struct policy *policy, const char *path)
{
	const char *shown =
		policy->workspace ? path_relative(path, policy->workspace) : path;
	struct str text = str_of(strcmp(shown, ".") == 0 ? path : shown);
	size_t size = text.size;

	if (size > SHOWN_PATH_MAX)
		size = text_character_border(text, SHOWN_PATH_MAX);
	(void)text_clean(str_part(text, 0, size), out);
	if (size < text.size)
		(void)buf_adds(out, "…");
}

static void add_separator(struct buf *out, size_t index, size_t count)
{
	if (index)
		(void)buf_adds(out, index + 1 == count ? " and " : ", ");
}

static void add_root(struct buf *out, const struct policy *policy,
		     const struct policy_path *entry)
{
	size_t length = entry->text ? strlen(entry->text) : 0;

	if (entry->pattern)
		(void)buf_addf(out, "%s in ", entry->pattern);
	if (policy->workspace && entry->path && strcmp(entry->path, policy->workspace) == 0) {
		(void)buf_adds(out, "the workspace");
		return;
	}
	add_path(out, policy, entry->path ? entry->path : "");
	if (length > 1 && entry->text[length - 1] == '/' && !entry->pattern)
		(void)buf_addc(out, '/');
}

/* Is the root named already by one of the COUNT before it? */
static bool is_listed(const struct policy_path *const *roots, size_t count,
		      const struct policy_path *entry)
{
	for (size_t i = 0; i < count; i++) {
		if (roots[i]->path && entry->path && !roots[i]->pattern &&
		    path_within(entry->path, roots[i]->path))
			return true;
	}
	return false;
}

/* "tests/, docs and *.md in the workspace" of one or two lists of roots. */
static void add_roots(struct buf *out, const struct policy *policy,
		      const struct policy_paths *first, const struct policy_paths *second)
{
	const struct policy_path *roots[LISTED_MAX];
	size_t total = first->count + (second ? second->count : 0);
	size_t listed = 0;
	size_t more = 0;

	for (size_t i = 0; i < total; i++) {
		const struct policy_path *entry =
			i < first->count ? &first->items[i]
					 : &second->items[i - first->count];

		if (is_listed(roots, listed, entry))
			continue;
		if (listed < LISTED_MAX)
			roots[listed++] = entry;
		else
			more++;
	}
	for (size_t i = 0; i < listed; i++) {
		add_separator(out, i, listed + more);
		add_root(out, policy, roots[i]);
	}
	if (more)
		(void)buf_addf(out, " and %zu more", more);
}

/* The folder of POLICY's that PATH lies in and that is to be treated by ADVICE, or NULL. */
static const char *advised(const struct policy *policy, const char *path,
			   enum policy_advice advice)
{
	for (size_t i = 0; i < policy->advised_count; i++) {
		if (policy->advised[i].advice == advice &&
		    path_within(path, policy->advised[i].path))
			return policy->advised[i].path;
	}
	return NULL;
}

/* Would an entry PATH open more than anybody meant to, or be refused? */
static bool is_too_wide(const struct policy *policy, const char *path)
{
	if (strcmp(path, "/") == 0 || policy_is_home(path) ||
	    (policy->workspace && strcmp(path, policy->workspace) != 0 &&
	     path_within(policy->workspace, path)))
		return true;
	for (size_t i = 0; i < policy->advised_count; i++) {
		if (policy->advised[i].advice != ADVICE_WHOLE &&
		    path_within(policy->advised[i].path, path))
			return true;
	}
	return false;
}

/*
 * The narrowest entry of a list that lets PATH be used: its folder, since a program that
 * wants one file of it wants others, or PATH itself where that would be too wide; false
 * where both are.
 */
static bool narrowest(const struct policy *policy, const char *path, struct buf *entry)
{
	const char *whole = advised(policy, path, ADVICE_WHOLE);
	const char *name = path_base_name(path);
	const char *base = policy->base.path ? policy->base.path : policy->workspace;
	const size_t size = (size_t)(name - path);

	(void)buf_add(entry, path, size > 1 ? size - 1 : size);
	if (whole) {
		buf_clear(entry);
		(void)buf_adds(entry, whole);
	}
	/* The base of relative entries, and a folder at the top, hold much besides. */
	if ((base && strcmp(entry->data, base) == 0) ||
	    strchr(entry->data + 1, '/') == NULL || is_too_wide(policy, entry->data)) {
		buf_clear(entry);
		(void)buf_adds(entry, path);
	}
	return !is_too_wide(policy, entry->data);
}

/* Append a clause: the entry for the list KEY that would allow PATH. */
static void add_remedy(struct buf *out, const struct policy *policy, const char *path,
		       const char *key)
{
	const char *base = policy->base.path ? policy->base.path : policy->workspace;
	const char *closed = advised(policy, path, ADVICE_NOTHING);
	const bool writes = strcmp(key, "write") == 0;
	struct buf entry;

	if (!closed && writes && advised(policy, path, ADVICE_NOT_WRITTEN)) {
		(void)buf_adds(out, "put it into the workspace or the cell's own home (~): "
				    "the system is read-only in every cell");
		return;
	}
	if (closed) {
		(void)buf_adds(out, "do without it: no entry opens ");
		add_path(out, policy, closed);
		return;
	}
	buf_init(&entry, strlen(path) + PATH_MAX);
	if (narrowest(policy, path, &entry)) {
		const char *named = base ? path_relative(entry.data, base) : entry.data;

		(void)buf_adds(out, "ask the user to add \"");
		(void)text_clean(strlen(named) > SHOWN_PATH_MAX ? STR("its folder")
								: str_of(named),
				 out);
		(void)buf_addf(out, "\" to agents.%.64s.%s in the configuration%s",
			       policy->name ? policy->name : "", key,
			       writes && strcmp(entry.data, path) == 0
				       ? ", and to make it first if it is missing"
				       : "");
	} else {
		(void)buf_addf(out,
			       "ask the user to add the file or folder below it that is wanted "
			       "to agents.%.64s.%s in the configuration",
			       policy->name ? policy->name : "", key);
	}
	buf_fini(&entry);
}

/* ".", ".." and empty components make a comparison of text lie. */
static bool is_normal(const char *path)
{
	if (!path || path[0] != '/')
		return false;
	if (path[1] == '\0')
		return true;
	for (const char *at = path; *at;) {
		size_t length = strcspn(++at, "/");

		if (length == 0 || (length == 1 && at[0] == '.') ||
		    (length == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		at += length;
	}
	return true;
}

static bool entry_holds(const struct policy_path *entry, const char *path)
{
	if (!entry->path || !path_within(path, entry->path))
		return false;
	return !entry->pattern ||
	       pattern_match(str_of(entry->pattern),
			     str_of(path_relative(path, entry->path)), PATTERN_BASENAME);
}

/* Reading is allowed in the whole folder of a pattern: the kernel knows no patterns. */
static bool entry_shows(const struct policy_path *entry, const char *path)
{
	return entry->path && path_within(path, entry->path);
}

/*
 * Is PATH in what the view shows to everybody? Not if the workspace or a root lies
 * there, over it: a workspace below /tmp is no part of the cell's own /tmp.
 */
static bool shown_holds(const struct policy *policy, const struct policy_shown *shown,
			const char *path)
{
	if (!path_within(path, shown->path))
		return false;
	if (policy->workspace && path_within(policy->workspace, shown->path) &&
	    path_within(path, policy->workspace))
		return false;
	for (size_t i = 0; i < policy->read.count; i++) {
		const struct policy_path *entry = &policy->read.items[i];

		if (entry->path && path_within(entry->path, shown->path) &&
		    entry_shows(entry, path))
			return false;
	}
	return true;
}

const struct policy_path *policy_only_read(const struct policy *policy,
					   const struct policy_path *entry, const char *path)
{
	for (size_t i = 0; i < policy->read.count; i++) {
		const struct policy_path *read = &policy->read.items[i];

		if (read->path && entry_shows(read, path) &&
		    strlen(read->path) > strlen(entry->path))
			return read;
	}
	return NULL;
}

/* LAYERED: by a program, which with `scratch` may write to a layer what is only to be read. */
static bool may_write(const struct policy *policy, const char *path, bool layered)
{
	for (size_t i = 0; i < policy->write.count; i++) {
		if (entry_holds(&policy->write.items[i], path) &&
		    !policy_only_read(policy, &policy->write.items[i], path))
			return true;
	}
	for (size_t i = 0; layered && policy->scratch && i < policy->read.count; i++) {
		if (entry_shows(&policy->read.items[i], path))
			return true;
	}
	for (size_t i = 0; i < policy->shown_count; i++) {
		if (policy->shown[i].writable &&
		    shown_holds(policy, &policy->shown[i], path))
			return true;
	}
	return false;
}

static bool may_read(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->read.count; i++) {
		if (entry_shows(&policy->read.items[i], path))
			return true;
	}
	for (size_t i = 0; i < policy->write.count; i++) {
		if (entry_shows(&policy->write.items[i], path))
			return true;
	}
	for (size_t i = 0; i < policy->shown_count; i++) {
		if (shown_holds(policy, &policy->shown[i], path))
			return true;
	}
	return false;
}

static void deny_tool(const struct policy *policy, const char *tool, struct verdict *verdict)
{
	size_t count = policy->tools.count;
	size_t listed = count < LISTED_MAX ? count : LISTED_MAX;
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because, "agent \"%s\" has no tool %.64s; it has ", policy->name,
		       tool);
	for (size_t i = 0; i < listed; i++) {
		add_separator(&because, i, count);
		(void)buf_adds(&because, policy->tools.items[i]);
	}
	if (listed < count)
		(void)buf_addf(&because, " and %zu more", count - listed);
	(void)buf_addf(&because,
		       "%s. %s ask the user to add \"%.64s\" to agents.%.64s.tools in the "
		       "configuration.",
		       count ? "" : "none",
		       count ? "Use one of these, or" : "Only the user can help:", tool,
		       policy->name);
	verdict_end(verdict, &because);
	buf_fini(&because);
	verdict_set_rule(verdict, policy, "tools");
}

static void deny_blocked(const struct policy *policy, const char *tool,
			 const struct policy_request_path *path,
			 const struct policy_path *entry, struct verdict *verdict)
{
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because, "%.64s may not %s ", tool, path->writes ? "write" : "read");
	add_path(&because, policy, path->path);
	(void)buf_adds(&because, ": ");
	add_path(&because, policy, entry->path);
	(void)buf_addf(&because,
		       " is blocked by the policy of agent \"%s\". Do without it; only the user "
		       "can take it out of agents.%.64s.blocked in the configuration.",
		       policy->name, policy->name);
	verdict_end(verdict, &because);
	buf_fini(&because);
	verdict_set_rule(verdict, policy, "blocked");
}

/*
 * Whether PATH, which is denied, may have been meant below the workspace: "/src/main.c".
 * No file is looked at, so that no answer tells whether something outside exists.
 */
static bool has_stray_slash(const struct policy *policy, const char *path)
{
	static const char *const tops[] = {
		"bin",    "boot",  "dev", "etc", "home", "lib",  "lib32", "lib64",
		"libx32", "media", "mnt", "nix", "opt",  "proc", "root",  "run",
		"sbin",   "snap",  "srv", "sys", "tmp",  "usr",  "var",
	};
	size_t first = path[0] == '/' ? strcspn(path + 1, "/") : 0;

	if (policy->workspace && path_within(path, policy->workspace))
		return false;
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		if (strlen(tops[i]) == first && strncmp(path + 1, tops[i], first) == 0)
			return false;
	}
	return first > 0;
}

static void deny_path(const struct policy *policy, const char *tool,
		      const struct policy_request_path *path, struct verdict *verdict)
{
	const char *verb = path->writes ? "write" : "read";
	const struct policy_paths *first = path->writes ? &policy->write : &policy->read;
	const struct policy_paths *second = path->writes ? NULL : &policy->write;
	bool anywhere = first->count || (second && second->count);
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because, "%.64s may not %s ", tool, verb);
	add_path(&because, policy, path->path);
	(void)buf_addf(&because, ": agent \"%s\" ", policy->name);
	if (anywhere) {
		(void)buf_addf(&because, "%ss only below ", verb);
		add_roots(&because, policy, first, second);
		(void)buf_addf(&because, ". %s there", path->writes ? "Write" : "Read");
		if (has_stray_slash(policy, path->path)) {
			(void)buf_adds(&because, " (in the workspace it would be ");
			add_path(&because, policy, path->path + 1);
			(void)buf_addc(&because, ')');
		}
		(void)buf_adds(&because, ", ");
	} else {
		(void)buf_addf(&because, "%ss nothing here. Do without it, ", verb);
	}
	if (path->writes && may_write(policy, path->path, true))
		(void)buf_adds(&because, "try it with a command, in a layer that is thrown "
					 "away, ");
	(void)buf_adds(&because, "or ");
	add_remedy(&because, policy, path->path, verb);
	(void)buf_addc(&because, '.');
	verdict_end(verdict, &because);
	buf_fini(&because);
	verdict_set_rule(verdict, policy, verb);
}

static void deny_strange(const struct policy *policy, const char *tool, const char *path,
			 struct verdict *verdict)
{
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because, "%.64s: the path \"", tool);
	add_path(&because, policy, path ? path : "");
	(void)buf_adds(&because, "\" cannot be judged. Name it without \".\" and \"..\".");
	verdict_end(verdict, &because);
	buf_fini(&because);
	verdict_set_rule(verdict, policy, "base");
}

/* The entry of `read` that takes PATH out of what may be written, or NULL. */
static const struct policy_path *protecting(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->write.count; i++) {
		if (entry_holds(&policy->write.items[i], path))
			return policy_only_read(policy, &policy->write.items[i], path);
	}
	return NULL;
}

static void deny_read_only(const struct policy *policy, const char *tool, const char *path,
			   const struct policy_path *entry, struct verdict *verdict)
{
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because, "%.64s may not write ", tool);
	add_path(&because, policy, path);
	(void)buf_adds(&because, ": ");
	add_path(&because, policy, entry->path);
	(void)buf_addf(&because,
		       " is to be read only by agent \"%s\". Do without it, or ask the user to "
		       "take it out of agents.%.64s.read in the configuration.",
		       policy->name, policy->name);
	verdict_end(verdict, &because);
	buf_fini(&because);
	verdict_set_rule(verdict, policy, "read");
}

/* A tool that writes without saying where is of no use to who may write nowhere. */
static void deny_writing(const struct policy *policy, const char *tool,
			 struct verdict *verdict)
{
	(void)snprintf(verdict->because, sizeof(verdict->because),
		       "%.64s changes files, and agent \"%.64s\" writes nothing. Say in words what "
		       "should change, or ask the user to name a folder in agents.%.64s.write in "
		       "the configuration.",
		       tool, policy->name, policy->name);
	verdict_set_rule(verdict, policy, "write");
}

/* A protected file is never asked for: somebody has named and refused it. */
static bool may_be_asked(const struct policy *policy, const struct policy_request_path *path)
{
	if (path->writes && protecting(policy, path->path))
		return false;
	/* Nothing is ever opened under a layer, where programs have other files by now. */
	if (path->writes && may_write(policy, path->path, true))
		return false;
	return policy_asks(policy, path->writes ? "write" : "read");
}

/* False with a filled VERDICT when PATH is not allowed. LAYERED: as of may_write. */
static bool judge_path(const struct policy *policy, const char *tool,
		       const struct policy_request_path *path, bool layered,
		       struct verdict *verdict)
{
	const struct policy_path *read_only;

	if (!is_normal(path->path)) {
		deny_strange(policy, tool, path->path, verdict);
		return false;
	}
	for (size_t i = 0; i < policy->blocked.count; i++) {
		if (entry_shows(&policy->blocked.items[i], path->path)) {
			deny_blocked(policy, tool, path, &policy->blocked.items[i], verdict);
			return false;
		}
	}
	if (path->wanted || (path->writes ? may_write(policy, path->path, layered)
					  : may_read(policy, path->path)))
		return true;
	read_only = path->writes ? protecting(policy, path->path) : NULL;
	if (read_only)
		deny_read_only(policy, tool, path->path, read_only, verdict);
	else
		deny_path(policy, tool, path, verdict);
	verdict->outside = may_be_asked(policy, path) ? path : NULL;
	return false;
}

void policy_judge_path(const struct policy *policy, const char *path, bool writes,
		       bool layered, struct verdict *verdict)
{
	const struct policy_request_path judged = {.path = path, .writes = writes};
	struct buf because;

	*verdict = (struct verdict){.answer = VERDICT_ALLOW};
	if (!is_normal(path) || judge_path(policy, "", &judged, layered, verdict))
		return;
	verdict->answer = VERDICT_DENY;
	verdict_begin(&because);
	if (str_ends(str_of(verdict->rule), STR(".blocked")))
		(void)buf_addf(&because,
			       "only the user can take it out of %s in the "
			       "configuration",
			       verdict->rule);
	else
		add_remedy(&because, policy, path, writes ? "write" : "read");
	verdict_end(verdict, &because);
	buf_fini(&because);
}

void policy_decide(const struct policy *policy, const struct policy_request *request,
		   struct verdict *verdict)
{
	const char *tool = request->tool ? request->tool : "";
	unsigned kind = request->effects & (POLICY_WRITES | POLICY_RUNS);

	*verdict = (struct verdict){.answer = VERDICT_DENY};
	if (!policy_has_tool(policy, tool)) {
		deny_tool(policy, tool, verdict);
		return;
	}
	if (kind == POLICY_WRITES && request->path_count == 0 && policy->write.count == 0) {
		deny_writing(policy, tool, verdict);
		return;
	}
	for (size_t i = 0; i < request->path_count; i++) {
		if (judge_path(policy, tool, &request->paths[i],
			       (kind & POLICY_RUNS) != 0, verdict))
			continue;
		if (verdict->outside)
			verdict->answer = VERDICT_ASK;
		return;
	}
	policy_decide_command(policy, request, verdict);
}
