/*
 * policy: makes and intersects policies, normalises their entries, and gives the
 * verdict on a call.
 */

#include "policy/policy.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "policy/commands.h"
#include "policy/network.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
 * The verdict on one call, and a sentence that a model can act on. Blocked paths come
 * first, then the roots. Anything that is not plainly allowed is denied.
 */

enum {
	/* bytes of a path in a sentence; a longer one does not help */
	SHOWN_PATH_MAX = 200,
	LISTED_MAX = 12, /* roots or tools listed in one sentence */
};

/* Enough for a dozen roots or names with every byte escaped. */
enum { SENTENCE_MAX = 16 << 10 };

/* Set the rule of VERDICT: KEY of the agent's policy decided. */
static void set_rule(struct verdict *verdict, const struct policy *policy, const char *key)
{
	(void)snprintf(verdict->rule, sizeof(verdict->rule), "agents.%.64s.%s",
		       policy->name ? policy->name : "", key);
}

void verdict_begin(struct buf *because)
{
	buf_init(because, SENTENCE_MAX);
}

void verdict_end(struct verdict *verdict, struct buf *because,
		 const struct policy *policy, const char *key)
{
	size_t size = text_character_border(buf_str(because), sizeof(verdict->because) - 1);

	memcpy(verdict->because, because->data, size);
	verdict->because[size] = '\0';
	buf_fini(because);
	if (key != NULL)
		set_rule(verdict, policy, key);
}

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

/* Is the root inside one of the COUNT roots before it, and so already named? */
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

/*
 * Append the roots of one or two lists, such as "tests/, docs and *.md in the
 * workspace".
 */
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

/* The path of POLICY with ADVICE that holds PATH, or NULL. */
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

/* Would an entry PATH open more than a person meant, or be refused? */
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
 * Find the narrowest entry that makes PATH usable. This is the folder of PATH, since a
 * program that needs one of its files usually needs others, or PATH itself when the
 * folder would be too wide. False when both are too wide.
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
	/*
	 * The base of relative entries, and a folder directly below /, hold too many
	 * other files.
	 */
	if ((base && strcmp(entry->data, base) == 0) ||
	    strchr(entry->data + 1, '/') == NULL || is_too_wide(policy, entry->data)) {
		buf_clear(entry);
		(void)buf_adds(entry, path);
	}
	return !is_too_wide(policy, entry->data);
}

/* Append a clause with the entry of the list KEY that would allow PATH. */
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

/*
 * Is PATH absolute, without ".", ".." and empty components? Otherwise comparing it as
 * text is wrong.
 */
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

/*
 * Does ENTRY let PATH be read? It shows its whole folder even with a pattern, because
 * the kernel knows no patterns.
 */
static bool entry_shows(const struct policy_path *entry, const char *path)
{
	return entry->path && path_within(path, entry->path);
}

/*
 * Is PATH in a part of the view that everybody sees? Not when the workspace or a root
 * covers that place: a workspace below /tmp does not belong to the cell's own /tmp.
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

/*
 * The entry of `read` that lies deeper than ENTRY and holds PATH, or NULL. Such a PATH
 * is read-only; with `scratch`, programs write there to a layer.
 */
static const struct policy_path *policy_only_read(const struct policy *policy,
						  const struct policy_path *entry,
						  const char *path)
{
	for (size_t i = 0; i < policy->read.count; i++) {
		const struct policy_path *read = &policy->read.items[i];

		if (read->path && entry_shows(read, path) &&
		    strlen(read->path) > strlen(entry->path))
			return read;
	}
	return NULL;
}

/*
 * LAYERED: for a program, which with `scratch` may write to a layer over read-only
 * paths.
 */
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
	verdict_end(verdict, &because, policy, "tools");
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
	verdict_end(verdict, &because, policy, "blocked");
}

/*
 * Could PATH, which is denied, be meant below the workspace, as "/src/main.c"? No file
 * is looked at, so the answer does not reveal whether something outside exists.
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
	verdict_end(verdict, &because, policy, verb);
}

static void deny_strange(const struct policy *policy, const char *tool, const char *path,
			 struct verdict *verdict)
{
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because, "%.64s: the path \"", tool);
	add_path(&because, policy, path ? path : "");
	(void)buf_adds(&because, "\" cannot be judged. Name it without \".\" and \"..\".");
	verdict_end(verdict, &because, policy, "base");
}

/* The entry of `read` that makes PATH read-only inside an entry of `write`, or NULL. */
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
	verdict_end(verdict, &because, policy, "read");
}

/* Deny a tool that writes to unnamed places, when the agent may write nowhere. */
static void deny_writing(const struct policy *policy, const char *tool,
			 struct verdict *verdict)
{
	(void)snprintf(verdict->because, sizeof(verdict->because),
		       "%.64s changes files, and agent \"%.64s\" writes nothing. Say in words what "
		       "should change, or ask the user to name a folder in agents.%.64s.write in "
		       "the configuration.",
		       tool, policy->name, policy->name);
	set_rule(verdict, policy, "write");
}

/*
 * May a person be asked for PATH? Never for a protected path, which a person has
 * already refused.
 */
static bool may_be_asked(const struct policy *policy, const struct policy_request_path *path)
{
	if (path->writes && protecting(policy, path->path))
		return false;
	/* Never open a path under a layer: programs already see other files there. */
	if (path->writes && may_write(policy, path->path, true))
		return false;
	return policy_asks(policy, path->writes ? "write" : "read");
}

/* False with a filled VERDICT when PATH is not allowed. LAYERED as in may_write. */
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

bool policy_normal(const struct policy *policy, const char *base, const char *text,
		   struct buf *out)
{
	if (!path_normal(base, text, out))
		return false;
	if (policy->at != NULL && policy->workspace != NULL)
		(void)path_move(out, policy->at, policy->workspace);
	return true;
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
	verdict_end(verdict, &because, policy, NULL);
}

/* An allowed call is asked about all the same. */
static void ask_by_mode(const struct policy *policy, struct verdict *verdict)
{
	(void)snprintf(verdict->because, sizeof(verdict->because),
		       "In mode \"%s\" a person decides on each write and each command. Go on "
		       "without this one, or say in words what should be done.",
		       policy_modes[policy->mode].name);
	set_rule(verdict, policy, POLICY_MODE_KEY);
	verdict->answer = VERDICT_ASK;
}

/* The effects of tools whose calls change something. */
enum { CHANGES = POLICY_WRITES | POLICY_RUNS | POLICY_NOTES };

void policy_decide(const struct policy *policy, const struct policy_request *request,
		   struct verdict *verdict)
{
	const char *tool = request->tool ? request->tool : "";
	const unsigned kind = request->effects & CHANGES;

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
	commands_decide(policy, request, verdict);
	if (verdict->answer == VERDICT_ALLOW && policy->mode == MODE_ASK && kind != 0 &&
	    !request->by_front)
		ask_by_mode(policy, verdict);
}

enum {
	/* as in the shipped `default`; most tasks that end at all end earlier */
	ITERATIONS = 50,
	LOOP_WARN = 3,  /* a second try is legitimate */
	LOOP_STOP = 10, /* a model that ignored so many warnings will not listen */
	/* enough for a whole test suite, short enough to notice an endless loop */
	WALL_S = 120,
	SHELL_S = 1800, /* fifteen commands that use all their time */
	/* a day's work is several runs; a run that takes longer has lost its way */
	RUN_S = 4 * 60 * 60,
	/* enough to flush files; the end still comes within 500 ms */
	GRACE_MS = 200,
	/* enough for make -j on a large machine; stops a fork bomb immediately */
	PIDS = 512,
	CELL_PIDS = 4096, /* eight commands at their limits */
	WRITERS = 1,      /* agents that write side by side are wanted, or they are not */
	SUGGESTED_NAMES = 32 /* names listed in one sentence */
};

#define FILE_SIZE  (4ULL << 30) /* more than any build product, less than a disk */
#define LAYER_SIZE (8ULL << 30) /* a large build with its dependencies */
#define TMP_SIZE   (1ULL << 30) /* the kernel holds it in memory */

struct policy *policy_new(const char *name, const char *workspace)
{
	struct policy *policy = memory_alloc(sizeof(*policy));

	policy->name = memory_copy(name ? name : POLICY_NAME_DEFAULT);
	policy->workspace = memory_copy(workspace);
	policy->limits = (struct policy_limits){
		.iterations = ITERATIONS,
		.loop_warn = LOOP_WARN,
		.loop_stop = LOOP_STOP,
		.wall_s = WALL_S,
		.shell_s = SHELL_S,
		.run_s = RUN_S,
		.grace_s = GRACE_MS / 1000.0,
		.pids = PIDS,
		.cell_pids = CELL_PIDS,
		.memory = POLICY_BY_MACHINE,
		.file_size = FILE_SIZE,
		.tmp = TMP_SIZE,
		.free_space = POLICY_BY_MACHINE,
		.layer = LAYER_SIZE,
		.writers = WRITERS,
		.watches = POLICY_BY_MACHINE,
	};
	return policy;
}

static void policy_path_fini(struct policy_path *entry)
{
	free(entry->text);
	free(entry->path);
	free(entry->pattern);
}

static void policy_paths_fini(struct policy_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		policy_path_fini(&paths->items[i]);
	free(paths->items);
}

void policy_names_fini(struct policy_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
	*names = (struct policy_names){0};
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	free(policy->name);
	free(policy->workspace);
	free(policy->at);
	free(policy->cell_base);
	policy_names_fini(&policy->tools);
	policy_names_fini(&policy->environment);
	policy_names_fini(&policy->network);
	policy_names_fini(&policy->publish);
	policy_names_fini(&policy->credentials);
	policy_names_fini(&policy->asks);
	policy_names_fini(&policy->always);
	commands_free(policy->commands);
	policy_path_fini(&policy->base);
	policy_paths_fini(&policy->read);
	policy_paths_fini(&policy->write);
	policy_paths_fini(&policy->blocked);
	policy_paths_fini(&policy->secrets.show);
	policy_paths_fini(&policy->secrets.files);
	for (size_t i = 0; i < policy->shown_count; i++)
		free(policy->shown[i].path);
	free(policy->shown);
	for (size_t i = 0; i < policy->advised_count; i++)
		free(policy->advised[i].path);
	free(policy->advised);
	free(policy);
}

void policy_auto_free(struct policy **policy)
{
	policy_free(*policy);
}

void policy_show(struct policy *policy, const char *path, bool writable)
{
	size_t count = policy->shown_count;

	assert(path && path[0] == '/');
	policy->shown = memory_grow(policy->shown, count + 1, sizeof(*policy->shown));
	policy->shown[count].path = memory_copy(path);
	policy->shown[count].writable = writable;
	policy->shown_count = count + 1;
}

void policy_advise(struct policy *policy, const char *path, enum policy_advice advice)
{
	const size_t count = policy->advised_count;

	assert(path && path[0] == '/');
	policy->advised = memory_grow(policy->advised, count + 1, sizeof(*policy->advised));
	policy->advised[count].path = memory_copy(path);
	policy->advised[count].advice = advice;
	policy->advised_count = count + 1;
}

bool policy_is_home(const char *path)
{
	return strcmp(path, "/root") == 0 || strcmp(path, "/home") == 0 ||
	       (strncmp(path, "/home/", 6) == 0 && strchr(path + 6, '/') == NULL);
}

void policy_set_path(struct policy_path *entry, const char *real)
{
	assert(real && real[0] == '/');
	free(entry->path);
	entry->path = memory_copy(real);
}

static void add_name(struct policy_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->items[i], name) == 0)
			return;
	}
	names->items = memory_grow(names->items, names->count + 1, sizeof(*names->items));
	names->items[names->count++] = memory_copy(name);
}

void policy_add_folder(struct policy *policy, const char *path, bool writes)
{
	struct policy_paths *paths = writes ? &policy->write : &policy->read;

	assert(path && path[0] == '/' && policy->base.path);
	for (size_t i = 0; i < paths->count; i++) {
		if (!paths->items[i].pattern && strcmp(paths->items[i].path, path) == 0)
			return;
	}
	paths->items = memory_grow(paths->items, paths->count + 1, sizeof(*paths->items));
	paths->items[paths->count++] =
		(struct policy_path){.text = memory_copy(path), .path = memory_copy(path)};
}

void policy_add_tool(struct policy *policy, const char *name)
{
	add_name(&policy->tools, name);
}

void policy_add_always(struct policy *policy, const char *words)
{
	add_name(&policy->always, words);
}

bool policy_add_network(struct policy *policy, const char *entry, const char *where,
			struct err *err)
{
	struct policy_names *network = &policy->network;
	struct network_entry read;

	if (!network_parse_entry(str_of(entry), &read, err))
		return err_while(err, "%s: \"%.100s\"", where, entry);
	if (network->count >= NETWORK_ENTRIES_MAX)
		return err_set(err, E2BIG, "%s: at most %d hosts are listed", where,
			       NETWORK_ENTRIES_MAX);
	add_name(network, entry);
	network->given = true;
	return true;
}

bool policy_read_publish(const struct policy *policy, struct network_publish *entries,
			 struct err *err)
{
	const struct policy_names *names = &policy->publish;

	for (size_t i = 0; i < names->count; i++) {
		if (!network_parse_publish(str_of(names->items[i]), &entries[i], err))
			return err_while(err, "agents.%s.publish: \"%.100s\"",
					 policy->name, names->items[i]);
	}
	return network_check_publish(entries, names->count, err);
}

bool policy_add_publish(struct policy *policy, const char *entry, struct err *err)
{
	struct network_publish entries[NETWORK_PUBLISHED_MAX];
	struct policy_names *publish = &policy->publish;
	struct network_publish read;

	if (!network_parse_publish(str_of(entry), &read, err))
		return err_while(err, "--publish \"%.100s\"", entry);
	if (read.at == LISTENS_ADDRESS)
		return err_set(err, EPERM,
			       "--publish %.100s: only the configuration opens a port on another "
			       "address than 127.0.0.1: list it in agents.%s.publish",
			       entry, policy->name);
	if (publish->count >= NETWORK_PUBLISHED_MAX)
		return err_set(err, E2BIG, "--publish: at most %d ports are published",
			       NETWORK_PUBLISHED_MAX);
	const size_t before = publish->count;
	add_name(publish, entry);
	publish->given = true;
	policy->publish_said += publish->count - before;
	return policy_read_publish(policy, entries, err) ||
	       err_while(err, "--publish %.100s", entry);
}

bool policy_add_ask(struct policy *policy, const char *what, const char *where,
		    struct err *err)
{
	struct policy_names *asks = &policy->asks;

	if (!str_among(POLICY_ASKABLE, str_of(what)))
		return err_set(err, EINVAL, "%s \"%.64s\": must be one of: %s", where,
			       what, POLICY_ASKABLE);
	if (policy_asks(policy, what))
		return true;
	asks->items = memory_grow(asks->items, asks->count + 1, sizeof(*asks->items));
	asks->items[asks->count++] = memory_copy(what);
	return true;
}

bool policy_asks(const struct policy *policy, const char *what)
{
	for (size_t i = 0; i < policy->asks.count; i++) {
		if (strcmp(policy->asks.items[i], what) == 0)
			return true;
	}
	return false;
}

void policy_ask_nobody(struct policy *policy)
{
	policy_names_fini(&policy->asks);
}

/* Take NAME, which may not be there, out of NAMES. */
static void remove_name(struct policy_names *names, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->items[i], name) == 0)
			free(names->items[i]);
		else
			names->items[kept++] = names->items[i];
	}
	names->count = kept;
}

const struct policy_mode_row policy_modes[MODES] = {
	[MODE_AUTO] = {"auto", "Work", "Works in its cell, with the rights of the agent.",
		       "The person lets you work: from here on the tools and rights of the "
		       "agent hold."},
	[MODE_ASK] = {"ask", "Ask", "Asks a person before each write and each command.",
		      "The person is asked before each write and each command from here on, "
		      "and may refuse it."},
	[MODE_PLAN] = {"plan", "Plan",
		       "Reads, searches and runs commands; the kernel keeps every file as it "
		       "is.",
		       "The person wants a plan: look, search and try, in a cell in which "
		       "nothing that you write stays. Then call present_plan with the plan."},
};

bool policy_mode_parse(const char *text, enum policy_mode *mode)
{
	for (unsigned i = 0; text && i < MODES; i++) {
		if (strcmp(policy_modes[i].name, text) == 0) {
			*mode = (enum policy_mode)i;
			return true;
		}
	}
	return false;
}

enum policy_mode policy_mode_stricter(enum policy_mode a, enum policy_mode b)
{
	return a > b ? a : b;
}

void policy_set_mode(struct policy *policy, enum policy_mode mode)
{
	policy->mode = mode;
	if (mode != MODE_PLAN)
		return;
	/* A folder of a shipped role may be missing, and would be made to be written. */
	for (size_t i = 0; i < policy->write.count; i++) {
		if (!policy->write.items[i].shipped)
			policy_add_folder(policy, policy->write.items[i].path, false);
	}
	policy_paths_fini(&policy->write);
	policy->write = (struct policy_paths){.given = true};
	policy->scratch = true;
	policy->review = false;
	remove_name(&policy->asks, "write");
}

bool policy_has_tool(const struct policy *policy, const char *name)
{
	for (size_t i = 0; name && i < policy->tools.count; i++) {
		if (strcmp(policy->tools.items[i], name) == 0)
			return true;
	}
	return false;
}

static const struct policy_tool *find_tool(const struct policy_tool *tools, size_t count,
					   const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(tools[i].name, name) == 0 ||
		    str_among(tools[i].aliases, str_of(name)))
			return &tools[i];
	}
	return NULL;
}

static bool refuse_unknown_tool(const struct policy *policy, const char *name,
				const struct policy_tool *tools, size_t count,
				struct err *err)
{
	auto_free const char **names = memory_array(count + 1, sizeof(*names));
	size_t listed = 0;
	struct buf list;
	const char *nearest;

	buf_init(&list, ERR_TEXT_MAX);
	for (size_t i = 0; i < count; i++) {
		if (tools[i].unlisted || tools[i].plans)
			continue;
		if (listed < SUGGESTED_NAMES)
			(void)buf_addf(&list, "%s%s", listed ? ", " : "", tools[i].name);
		names[listed++] = tools[i].name;
	}
	nearest = text_nearest(name, names);
	(void)err_set(err, EINVAL,
		      "agents.%s.tools: there is no tool \"%s\"%s%s%s; there are %s",
		      policy->name, name, nearest ? " (did you mean \"" : "",
		      nearest ? nearest : "", nearest ? "\"?)" : "", list.data);
	buf_fini(&list);
	return false;
}

static void take_every_tool(struct policy_names *names, const struct policy_tool *tools,
			    size_t count)
{
	names->items = memory_array(count + 1, sizeof(*names->items));
	names->given = true;
	for (size_t i = 0; i < count; i++) {
		if (!tools[i].only_when_named)
			names->items[names->count++] = memory_copy(tools[i].name);
	}
}

/* Leave out of `tools`, whose names are those of TOOLS, what the mode does not have. */
static void take_tools_of_mode(struct policy *policy, const struct policy_tool *tools,
			       size_t count)
{
	const bool plans = policy->mode == MODE_PLAN;

	for (size_t i = 0; i < count; i++) {
		const unsigned kind = tools[i].effects & CHANGES;

		if (plans && tools[i].plans && policy->tools.count > 0)
			add_name(&policy->tools, tools[i].name);
		else if (plans ? kind == POLICY_WRITES || kind == POLICY_NOTES
			       : tools[i].plans)
			remove_name(&policy->tools, tools[i].name);
	}
}

bool policy_check_tools(struct policy *policy, const struct policy_tool *tools,
			size_t count, struct err *err)
{
	const struct policy_path *pattern = NULL;

	/* Take every tool that exists now; there may be more than at an earlier call. */
	if (!policy->tools.given || policy->every_tool) {
		policy_names_fini(&policy->tools);
		take_every_tool(&policy->tools, tools, count);
		policy->every_tool = true;
	}
	for (size_t i = 0; i < policy->write.count && !pattern; i++) {
		if (policy->write.items[i].pattern)
			pattern = &policy->write.items[i];
	}
	for (size_t i = 0; i < policy->tools.count; i++) {
		char **name = &policy->tools.items[i];
		const struct policy_tool *tool = find_tool(tools, count, *name);

		if (!tool)
			return refuse_unknown_tool(policy, *name, tools, count, err);
		if (pattern && (tool->effects & POLICY_RUNS))
			return err_set(
				err, EINVAL,
				"agents.%s.write: the pattern \"%s\" cannot hold for an agent "
				"with the tool %s, whose commands the kernel keeps to folders "
				"only; name a folder, or leave %s out of agents.%s.tools",
				policy->name, pattern->text, tool->name, tool->name,
				policy->name);
		if (strcmp(*name, tool->name) != 0) {
			free(*name);
			*name = memory_copy(tool->name);
		}
	}
	take_tools_of_mode(policy, tools, count);
	return true;
}

/*
 * Checks the entries of `env`. The walls hold with any environment of a program, so a
 * user may set LD_PRELOAD and the like. Only variables that the cell sets itself are
 * refused.
 */

enum { NAME_MAX_BYTES = 128 }; /* no program uses longer names */

/* The cell sets these from other keys, or to values of its own account. */
static const char account_names[] = "HOME USER LOGNAME";
static const char proxy_names[] =
	"HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy";

static bool is_name(struct str name)
{
	if (name.size == 0 || name.size > NAME_MAX_BYTES ||
	    isdigit((unsigned char)name.data[0]))
		return false;
	for (size_t i = 0; i < name.size; i++) {
		if (!isalnum((unsigned char)name.data[i]) && name.data[i] != '_')
			return false;
	}
	return true;
}

bool policy_check_variable(const char *entry, struct err *err)
{
	const struct str name = {entry, strcspn(entry, "=")};
	bool has_value = entry[name.size] == '=';

	if (!is_name(name))
		return err_set(err, EINVAL,
			       "is neither NAME nor NAME=value; a name has letters, digits and "
			       "_, no digit first, and at most %d of them",
			       NAME_MAX_BYTES);
	if (str_among(account_names, name))
		return err_set(err, EINVAL,
			       "%.*s is set by the cell, to its private home and account",
			       (int)name.size, name.data);
	if (str_among(proxy_names, name))
		return err_set(err, EINVAL,
			       "%.*s is set by the cell; list hosts in `network`",
			       (int)name.size, name.data);
	if (str_starts(name, STR("GLOVEBOX_")))
		return err_set(err, EINVAL, "%.*s: names that begin so are Glovebox's own",
			       (int)name.size, name.data);
	if (str_is(name, "PATH") && !has_value)
		return err_set(err, EINVAL,
			       "PATH is always made from yours; PATH=value sets another");
	return true;
}

/*
 * Makes one policy that grants the rights of two policies. A right that cannot be
 * expressed exactly is left out: the result may grant less, never more.
 */

/* The deeper of two entries when one holds the other; else NULL. */
static const struct policy_path *deeper_of(const struct policy_path *a,
					   const struct policy_path *b)
{
	if (path_within(a->path, b->path))
		return a;
	return path_within(b->path, a->path) ? b : NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_there(const struct policy_paths *paths, const struct policy_path *entry,
		     const char *pattern)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (strcmp(paths->items[i].path, entry->path) == 0 &&
		    same_text(paths->items[i].pattern, pattern))
			return true;
	}
	return false;
}

/*
 * Add ENTRY with PATTERN to PATHS. Links below HOLDER, the wider entry, are not
 * followed, because their targets were not checked here.
 */
static void add_entry(struct policy_paths *paths, const struct policy_path *entry,
		      const struct policy_path *holder, const char *pattern)
{
	struct policy_path *made;

	if (is_there(paths, entry, pattern))
		return;
	paths->items = memory_grow(paths->items, paths->count + 1, sizeof(*paths->items));
	made = &paths->items[paths->count++];
	*made = (struct policy_path){
		.text = memory_copy(entry->text ? entry->text : entry->path),
		.path = memory_copy(entry->path),
		.pattern = memory_copy(pattern),
		.shipped = entry->shipped,
		.trunk = strlen(holder->path),
	};
}

/* Entry INDEX of those that POLICY shows: first `read`, then `write`. */
static const struct policy_path *readable(const struct policy *policy, size_t index)
{
	return index < policy->read.count
		       ? &policy->read.items[index]
		       : &policy->write.items[index - policy->read.count];
}

static void intersect_read(const struct policy *a, const struct policy *b,
			   struct policy *both)
{
	for (size_t i = 0; i < a->read.count + a->write.count; i++) {
		for (size_t j = 0; j < b->read.count + b->write.count; j++) {
			const struct policy_path *of_a = readable(a, i);
			const struct policy_path *of_b = readable(b, j);
			const struct policy_path *deeper = deeper_of(of_a, of_b);

			if (deeper)
				add_entry(&both->read, deeper,
					  deeper == of_a ? of_b : of_a, NULL);
		}
	}
	both->read.given = true;
}

/*
 * Set *PATTERN to the pattern that matches what the patterns of DEEPER and HOLDER both
 * match. False when there is none. A pattern without a slash means the same wherever it
 * starts.
 */
static bool common_pattern(const struct policy_path *deeper,
			   const struct policy_path *holder, const char **pattern)
{
	bool moved = strcmp(deeper->path, holder->path) != 0;

	*pattern = deeper->pattern;
	if (!holder->pattern)
		return true;
	if (deeper->pattern && strcmp(deeper->pattern, holder->pattern) != 0)
		return false;
	*pattern = holder->pattern;
	return !moved || !strchr(holder->pattern, '/');
}

static void intersect_write(const struct policy *a, const struct policy *b,
			    struct policy *both)
{
	for (size_t i = 0; i < a->write.count; i++) {
		for (size_t j = 0; j < b->write.count; j++) {
			const struct policy_path *of_a = &a->write.items[i];
			const struct policy_path *of_b = &b->write.items[j];
			const struct policy_path *deeper = deeper_of(of_a, of_b);
			const char *pattern;

			if (deeper && !policy_only_read(a, of_a, deeper->path) &&
			    !policy_only_read(b, of_b, deeper->path) &&
			    common_pattern(deeper, deeper == of_a ? of_b : of_a, &pattern))
				add_entry(&both->write, deeper,
					  deeper == of_a ? of_b : of_a, pattern);
		}
	}
	both->write.given = true;
}

static void add_blocked(const struct policy_paths *from, struct policy_paths *to)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct policy_path *entry = &from->items[i];

		if (is_there(to, entry, NULL))
			continue;
		/*
		 * Links are followed in the whole path, so the target of a link is
		 * hidden as well.
		 */
		add_entry(to, entry, entry, NULL);
	}
	to->given = true;
}

/* May everything below PATH, which POLICY shows, be written, possibly in a layer? */
static bool writes_all(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->write.count; i++) {
		const struct policy_path *entry = &policy->write.items[i];

		if (!entry->pattern && path_within(path, entry->path) &&
		    !policy_only_read(policy, entry, path))
			return true;
	}
	for (size_t i = 0; policy->scratch && i < policy->read.count; i++) {
		if (path_within(path, policy->read.items[i].path))
			return true;
	}
	return false;
}

/*
 * `scratch` puts a layer over everything that is only readable. So both policies must
 * allow writing there: a policy without `scratch` must let the file itself be written.
 */
static bool both_scratch(const struct policy *a, const struct policy *b,
			 const struct policy *both)
{
	bool scratch = a->scratch || b->scratch;

	for (size_t i = 0; scratch && i < both->read.count; i++)
		scratch = writes_all(a, both->read.items[i].path) &&
			  writes_all(b, both->read.items[i].path);
	return scratch;
}

static void intersect_tools(const struct policy *a, const struct policy *b,
			    struct policy *both)
{
	assert(a->tools.given && b->tools.given);
	for (size_t i = 0; i < a->tools.count; i++) {
		if (policy_has_tool(b, a->tools.items[i]))
			add_name(&both->tools, a->tools.items[i]);
	}
	both->tools.given = true;
}

/*
 * The entry that both A and B grant, or NULL. A variable that is passed on may also be
 * set to a value.
 */
static const char *common_variable(const char *a, const char *b)
{
	size_t length = strcspn(a, "=");

	if (length != strcspn(b, "=") || strncmp(a, b, length) != 0)
		return NULL;
	if (strcmp(a, b) == 0 || !b[length])
		return a;
	return a[length] ? NULL : b;
}

static void intersect_environment(const struct policy *a, const struct policy *b,
				  struct policy *both)
{
	for (size_t i = 0; i < a->environment.count; i++) {
		for (size_t j = 0; j < b->environment.count; j++) {
			const char *entry = common_variable(a->environment.items[i],
							    b->environment.items[j]);

			if (entry)
				add_name(&both->environment, entry);
		}
	}
	both->environment.given = true;
}

static bool reads_host(const struct policy_names *names, size_t index,
		       struct network_entry *entry)
{
	struct err err;

	return network_parse_entry(str_of(names->items[index]), entry, &err);
}

static void intersect_network(const struct policy *a, const struct policy *b,
			      struct policy *both)
{
	struct network_entry of_a, of_b;

	for (size_t i = 0; i < a->network.count; i++) {
		for (size_t j = 0; j < b->network.count; j++) {
			const char *entry = NULL;

			if (!reads_host(&a->network, i, &of_a) ||
			    !reads_host(&b->network, j, &of_b))
				continue;
			if (network_covers(&of_b, &of_a))
				entry = a->network.items[i];
			else if (network_covers(&of_a, &of_b))
				entry = b->network.items[j];
			if (entry && both->network.count < NETWORK_ENTRIES_MAX)
				add_name(&both->network, entry);
		}
	}
	both->network.given = true;
}

/* Both were checked, so their entries can be read. */
static void intersect_publish(const struct policy *a, const struct policy *b,
			      struct policy *both)
{
	struct network_publish of_a[NETWORK_PUBLISHED_MAX], of_b[NETWORK_PUBLISHED_MAX];

	both->publish.given = true;
	if (!policy_read_publish(a, of_a, NULL) || !policy_read_publish(b, of_b, NULL))
		return;
	for (size_t i = 0; i < a->publish.count; i++) {
		bool found = false;

		for (size_t j = 0; j < b->publish.count && !found; j++)
			found = network_same_publish(&of_a[i], &of_b[j]);
		if (found)
			add_name(&both->publish, a->publish.items[i]);
	}
}

static void intersect_credentials(const struct policy *a, const struct policy *b,
				  struct policy *both)
{
	both->credentials.given = true;
	for (size_t i = 0; i < a->credentials.count; i++) {
		bool found = false;

		for (size_t j = 0; j < b->credentials.count && !found; j++)
			found = strcmp(a->credentials.items[i], b->credentials.items[j]) ==
				0;
		if (found)
			add_name(&both->credentials, a->credentials.items[i]);
	}
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static double shorter(double a, double b)
{
	return a < b ? a : b;
}

/* 0 means no limit. */
static uint64_t smaller_if_any(uint64_t a, uint64_t b)
{
	return a && b ? smaller(a, b) : a + b;
}

static double shorter_if_any(double a, double b)
{
	return a > 0 && b > 0 ? shorter(a, b) : a + b;
}

/*
 * The space that must stay free: the larger number is the stricter limit. A number in a
 * policy wins over the default of the machine.
 */
static uint64_t larger_space(uint64_t a, uint64_t b)
{
	if (a == POLICY_BY_MACHINE || b == POLICY_BY_MACHINE)
		return smaller(a, b);
	return a > b ? a : b;
}

static struct policy_limits smaller_limits(const struct policy_limits *a,
					   const struct policy_limits *b)
{
	return (struct policy_limits){
		.iterations = smaller(a->iterations, b->iterations),
		.tokens = smaller_if_any(a->tokens, b->tokens),
		.money = shorter_if_any(a->money, b->money),
		.loop_warn = smaller_if_any(a->loop_warn, b->loop_warn),
		.loop_stop = smaller_if_any(a->loop_stop, b->loop_stop),
		.wall_s = shorter(a->wall_s, b->wall_s),
		.shell_s = shorter(a->shell_s, b->shell_s),
		.run_s = shorter(a->run_s, b->run_s),
		.grace_s = shorter(a->grace_s, b->grace_s),
		.quiet_s = shorter_if_any(a->quiet_s, b->quiet_s),
		.pids = smaller(a->pids, b->pids),
		.cell_pids = smaller(a->cell_pids, b->cell_pids),
		.memory = smaller(a->memory, b->memory),
		.file_size = smaller(a->file_size, b->file_size),
		.read_bytes = smaller_if_any(a->read_bytes, b->read_bytes),
		.write_bytes = smaller_if_any(a->write_bytes, b->write_bytes),
		.tmp = smaller(a->tmp, b->tmp),
		.free_space = larger_space(a->free_space, b->free_space),
		.layer = smaller(a->layer, b->layer),
		.writers = smaller(a->writers, b->writers),
		.watches = smaller(a->watches, b->watches),
		.cpus = shorter_if_any(a->cpus, b->cpus),
		.cpu_s = shorter_if_any(a->cpu_s, b->cpu_s),
		.written = smaller_if_any(a->written, b->written),
		.io_write = smaller_if_any(a->io_write, b->io_write),
		.net = smaller_if_any(a->net, b->net),
	};
}

/* Secrets are shown where both policies show them. */
static void intersect_secrets(const struct policy_secrets *a,
			      const struct policy_secrets *b, struct policy_secrets *both)
{
	both->shown = a->shown && b->shown;
	for (size_t i = 0; !both->shown && i < a->show.count; i++) {
		const struct policy_path *entry = &a->show.items[i];

		if (b->shown || is_there(&b->show, entry, NULL))
			add_entry(&both->show, entry, entry, NULL);
	}
	if (a->shown)
		add_blocked(&b->show, &both->show);
	add_blocked(&a->files, &both->files);
	add_blocked(&b->files, &both->files);
}

struct policy *policy_intersect(const struct policy *policy, const struct policy *bounds)
{
	struct policy *both = policy_new(policy->name, policy->workspace);

	assert(policy->base.path && bounds->base.path);
	both->base.text = memory_copy(policy->base.text);
	both->base.path = memory_copy(policy->base.path);
	intersect_tools(policy, bounds, both);
	intersect_read(policy, bounds, both);
	intersect_write(policy, bounds, both);
	add_blocked(&policy->blocked, &both->blocked);
	add_blocked(&bounds->blocked, &both->blocked);
	intersect_secrets(&policy->secrets, &bounds->secrets, &both->secrets);
	both->scratch = both_scratch(policy, bounds, both);
	both->review = policy->review || bounds->review;
	both->cell_base = memory_copy(bounds->cell_base);
	both->cell_user = policy->cell_user > bounds->cell_user ? policy->cell_user
								: bounds->cell_user;
	both->mode = policy_mode_stricter(policy->mode, bounds->mode);
	intersect_environment(policy, bounds, both);
	intersect_network(policy, bounds, both);
	intersect_publish(policy, bounds, both);
	intersect_credentials(policy, bounds, both);
	both->commands = commands_both(policy->commands, bounds->commands);
	both->limits = smaller_limits(&policy->limits, &bounds->limits);
	return both;
}

struct policy *policy_copy(const struct policy *policy)
{
	return policy_intersect(policy, policy);
}

/*
 * Turns the entries of a policy, as the user wrote them, into absolute, lexically
 * normal paths. Only text is handled; the code that opens the roots resolves links.
 */

/* The origin of an entry, for sentences. */
struct place {
	const char *agent;
	const char *key;
	const char *start; /* absolute: relative entries start here */
	const char *what;  /* the name of `start`: "base" or "workspace" */
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

/* Does PATTERN have "." or ".." or a final slash? It would never match a normal path. */
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
 * Refuse stars and question marks where no pattern is allowed. Brackets may be part of
 * a name.
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
	if (!normal_entries(&at, &policy->blocked, false, err))
		return false;
	at.key = "secrets";
	return normal_entries(&at, &policy->secrets.show, false, err) &&
	       normal_entries(&at, &policy->secrets.files, false, err);
}
