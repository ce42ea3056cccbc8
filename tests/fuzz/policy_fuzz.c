/*
 * policy_fuzz: lines that make a policy and ask it: "b", "r", "w", "x" and a path are
 * its base and entries, "?" and "!" a path read or written. What is allowed lies in a
 * root and in nothing blocked, by a comparison of components written apart from the
 * product's.
 */
#include "policy/policy.h"

#include "base/memory.h"
#include "base/str.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUESTIONS_MAX = 64 };

static void add_entry(struct policy_paths *paths, struct str text)
{
	paths->items = memory_grow(paths->items, paths->count + 1, sizeof(*paths->items));
	paths->items[paths->count++] = (struct policy_path){.text = memory_copy_str(text)};
	paths->given = true;
}

/* Is each component of ROOT the same one of PATH, none of them "." or ".."? */
static bool lies_below(const char *path, const char *root)
{
	for (;;) {
		size_t one, other;

		path += strspn(path, "/");
		root += strspn(root, "/");
		one = strcspn(path, "/");
		other = strcspn(root, "/");
		if (other == 0)
			return true;
		if (one != other || memcmp(path, root, one) != 0)
			return false;
		path += one;
		root += other;
	}
}

static bool lies_in(const struct policy_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (lies_below(path, paths->items[i].path))
			return true;
	}
	return false;
}

static void ask(const struct policy *policy, const char *path, bool writes)
{
	const struct policy_request_path paths[] = {{path, writes}};
	const struct policy_request request = {"tool", POLICY_READS | POLICY_WRITES,
					       paths, 1};
	struct verdict verdict;

	policy_decide(policy, &request, &verdict);
	assert((verdict.answer == VERDICT_ALLOW) == (verdict.because[0] == '\0'));
	if (verdict.answer != VERDICT_ALLOW)
		return;
	assert(path[0] == '/' && !strstr(path, "/../") && !strstr(path, "//"));
	assert(!lies_in(&policy->blocked, path));
	/* The cell's own /tmp is everybody's, but not a workspace that lies there. */
	assert(!writes || lies_in(&policy->write, path) ||
	       !lies_below(path, policy->workspace));
	assert(lies_in(&policy->write, path) || lies_below(path, "/tmp") ||
	       (!writes && (lies_in(&policy->read, path) || lies_below(path, "/usr"))));
}

static void try_lines(struct str rest, const char *workspace)
{
	const struct policy_tool tool = {"tool", NULL, POLICY_READS | POLICY_WRITES, false};
	auto_policy struct policy *policy = policy_new("fuzz", workspace);
	struct str questions[QUESTIONS_MAX];
	struct str line;
	size_t count = 0;
	struct err err;

	while (str_next_line(&rest, &line)) {
		struct str text = str_part(line, 1, line.size);

		if (line.size == 0 || memchr(line.data, '\0', line.size))
			continue;
		if (line.data[0] == 'r')
			add_entry(&policy->read, text);
		else if (line.data[0] == 'w')
			add_entry(&policy->write, text);
		else if (line.data[0] == 'x')
			add_entry(&policy->blocked, text);
		else if (line.data[0] == 'b' && !policy->base.text)
			policy->base.text = memory_copy_str(text);
		else if (count < QUESTIONS_MAX)
			questions[count++] = line;
	}
	policy_show(policy, "/usr", false);
	policy_show(policy, "/tmp", true);
	if (!policy_paths_normal(policy, workspace, &err) ||
	    !policy_check_tools(policy, &tool, 1, &err))
		return;
	for (size_t i = 0; i < count; i++) {
		auto_free char *path =
			memory_copy_str(str_part(questions[i], 1, questions[i].size));

		ask(policy, path, questions[i].data[0] == '!');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str lines = {(const char *)data, size};

	try_lines(lines, "/ws/project");
	try_lines(lines, "/tmp/project");
	return 0;
}
