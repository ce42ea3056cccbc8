/* policy: life of a policy, its default limits, and the tools it names. */
#include "policy/policy.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "policy/commands.h"
#include "policy/network.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
	/* the shipped `default`; most tasks that end at all end earlier */
	ITERATIONS = 50,
	LOOP_WARN = 3,  /* a second try is honest work */
	LOOP_STOP = 10, /* a model that has been told so often does not hear it */
	WALL_S = 120,   /* a whole suite of tests runs, an endless loop is noticed */
	SHELL_S = 1800, /* fifteen commands that use their whole time */
	/* a day's work is several; one that takes longer has lost its way */
	RUN_S = 4 * 60 * 60,
	GRACE_MS = 200,      /* enough to flush files; the overshoot stays under 500 ms */
	PIDS = 512,          /* make -j on a large machine; a fork bomb ends at once */
	CELL_PIDS = 4096,    /* eight commands at their limit */
	SUGGESTED_NAMES = 32 /* names listed in one sentence */
};

#define FILE_SIZE (4ULL << 30) /* larger than any build product, smaller than a disk */
#define TMP_SIZE  (1ULL << 30) /* held in memory */

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
	policy_names_fini(&policy->tools);
	policy_names_fini(&policy->environment);
	policy_names_fini(&policy->network);
	policy_names_fini(&policy->asks);
	commands_free(policy->commands);
	policy_path_fini(&policy->base);
	policy_paths_fini(&policy->read);
	policy_paths_fini(&policy->write);
	policy_paths_fini(&policy->blocked);
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
	network->items =
		memory_grow(network->items, network->count + 1, sizeof(*network->items));
	network->items[network->count++] = memory_copy(entry);
	network->given = true;
	return true;
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
		if (tools[i].unlisted)
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

bool policy_check_tools(struct policy *policy, const struct policy_tool *tools,
			size_t count, struct err *err)
{
	const struct policy_path *pattern = NULL;

	/* Every one that there is: now more than when it was asked last. */
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
	return true;
}
