/*
 * policy_intersect: two policies into the one that grants what both do. A right that
 * cannot be expressed exactly is left out: the result may grant less, never more.
 */
#include "policy/policy.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text/pattern.h"
#include "policy/commands.h"
#include "policy/network.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The deeper of two entries, one of which holds the other; NULL: neither does. */
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
 * ENTRY with PATTERN joins PATHS. The targets of links below the entry that holds it
 * were not judged here, so these links are not followed.
 */
static void add_path(struct policy_paths *paths, const struct policy_path *entry,
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

/* The INDEXth of what POLICY shows: `read`, then `write`. */
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
				add_path(&both->read, deeper,
					 deeper == of_a ? of_b : of_a, NULL);
		}
	}
	both->read.given = true;
}

/*
 * The pattern that says what those of DEEPER and HOLDER say together; false: none does.
 * One without a slash means the same wherever it starts.
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
				add_path(&both->write, deeper,
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
		/* All of it may be a link: whatever that leads to is hidden. */
		add_path(to, entry, entry, NULL);
	}
	to->given = true;
}

/* May all below PATH, which POLICY shows, be written, be it in a layer? */
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
 * A layer to write in takes the place of whatever is only to be read. A policy without
 * one may write there only where the file itself may be written.
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

static void add_name(struct policy_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->items[i], name) == 0)
			return;
	}
	names->items = memory_grow(names->items, names->count + 1, sizeof(*names->items));
	names->items[names->count++] = memory_copy(name);
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

/* Both name the variable: one that is passed on may as well be set. */
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

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static double shorter(double a, double b)
{
	return a < b ? a : b;
}

/* 0 says that there is no such limit. */
static uint64_t smaller_if_any(uint64_t a, uint64_t b)
{
	return a && b ? smaller(a, b) : a + b;
}

static double shorter_if_any(double a, double b)
{
	return a > 0 && b > 0 ? shorter(a, b) : a + b;
}

/*
 * The space that must stay free: the larger number is the narrower limit. A number that a
 * policy states beats the default of the machine.
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
	};
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
	both->scratch = both_scratch(policy, bounds, both);
	intersect_environment(policy, bounds, both);
	intersect_network(policy, bounds, both);
	both->commands = commands_both(policy->commands, bounds->commands);
	both->limits = smaller_limits(&policy->limits, &bounds->limits);
	return both;
}
