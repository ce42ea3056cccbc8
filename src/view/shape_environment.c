/* shape_environment: the caller's variables, and those of programs in the cell. */
#include "base/buf.h"
#include "view/shape_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Without a network a package manager fails at once: npm would try again for more than two
 * minutes, longer than a command may take. Nor does it look for a newer npm at the end of a run.
 */
static const char *const without_network[] = {"NPM_CONFIG_FETCH_RETRIES=0",
					      "NPM_CONFIG_UPDATE_NOTIFIER=false",
					      "PIP_RETRIES=0", "CARGO_NET_RETRY=0"};

/*
 * Git tidies a repository up after many a command, in the background: that would be ended with the
 * call, half done. The person's own git does it, or who asks for it (`git gc`), in the foreground.
 */
static const struct {
	const char *key, *value;
} git_settings[] = {
	{"gc.auto", "0"},
	{"gc.autoDetach", "false"},
	{"maintenance.auto", "false"},
	{"maintenance.autoDetach", "false"},
};

enum {
	GIT_SETTINGS_MAX = 1000
}; /* more than anybody writes; git itself takes millions */

/* The caller's own NAME, which may be empty; NULL when it is unset. */
static const char *callers(const struct shape_options *options, const char *name)
{
	size_t length = strlen(name);

	for (const char *const *at = options->caller_environment; *at != NULL; at++) {
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at;
	}
	return NULL;
}

const char *shape_environment(const struct shape_options *options, const char *name)
{
	const char *entry = callers(options, name);
	const char *value = entry != NULL ? entry + strlen(name) + 1 : "";

	return value[0] != '\0' ? value : NULL;
}

/* Our own program stays the last to be found. */
static void path_set(struct cell_spec *spec, const char *entry)
{
	struct buf path;

	buf_init(&path, strlen(entry) + sizeof(SHAPE_BIN) + 1);
	(void)buf_addf(&path, "%s:" SHAPE_BIN, entry);
	spec_set_environment(spec, path.data);
	buf_fini(&path);
}

static void add_policys(const struct shape_options *options,
			const struct policy_names *variables, struct cell_spec *spec)
{
	for (size_t i = 0; i < variables->count; i++) {
		const char *entry = variables->items[i];

		if (strchr(entry, '=') == NULL)
			entry = callers(options, entry);
		if (entry != NULL && strncmp(entry, "PATH=", 5) == 0)
			path_set(spec, entry);
		else if (entry != NULL)
			spec_set_environment(spec, entry);
	}
}

/* What NAME is in the environment of SPEC; NULL: it has none. */
static const char *in_cell(const struct cell_spec *spec, const char *name)
{
	const size_t length = strlen(name);

	for (size_t i = 0; i < spec->environment_count; i++) {
		if (strncmp(spec->environment[i], name, length) == 0 &&
		    spec->environment[i][length] == '=')
			return spec->environment[i] + length + 1;
	}
	return NULL;
}

/* Has the policy set KEY, among COUNT settings for git? */
static bool sets_git(const struct cell_spec *spec, unsigned count, const char *key)
{
	char name[sizeof("GIT_CONFIG_KEY_") + 3 * sizeof(count)];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "GIT_CONFIG_KEY_%u", i);
		const char *there = in_cell(spec, name);
		if (there != NULL && strcasecmp(there, key) == 0)
			return true;
	}
	return false;
}

/* Ours stand behind the policy's own, which hold where both say something. */
static void add_git(struct cell_spec *spec)
{
	const char *given = in_cell(spec, "GIT_CONFIG_COUNT");
	char *end = NULL;
	const unsigned long said = given != NULL ? strtoul(given, &end, 10) : 0;
	unsigned count = (unsigned)said;
	char entry[sizeof("GIT_CONFIG_COUNT=") + 3 * sizeof(count)];

	/* Git refuses to run with a number that is none: that is the policy's. */
	if (said > GIT_SETTINGS_MAX || (end != NULL && (end == given || *end != '\0')))
		return;
	for (size_t i = 0; i < sizeof(git_settings) / sizeof(git_settings[0]); i++) {
		if (sets_git(spec, (unsigned)said, git_settings[i].key))
			continue;
		spec_add_environment(spec, "GIT_CONFIG_KEY_%u=%s", count,
				     git_settings[i].key);
		spec_add_environment(spec, "GIT_CONFIG_VALUE_%u=%s", count,
				     git_settings[i].value);
		count++;
	}
	(void)snprintf(entry, sizeof(entry), "GIT_CONFIG_COUNT=%u", count);
	spec_set_environment(spec, entry);
}

void shape_add_environment(const struct shape_options *options,
			   const struct policy *policy, struct cell_spec *spec)
{
	const char *term = shape_environment(options, "TERM");
	const char *lang = shape_environment(options, "LANG");
	const char *zone = shape_environment(options, "TZ");

	spec_add_environment(spec, "HOME=%s", spec->home);
	spec_add_environment(spec, "USER=glovebox");
	spec_add_environment(spec, "LOGNAME=glovebox");
	spec_add_environment(spec, "SHELL=/bin/bash");
	spec_add_environment(spec, "TMPDIR=%s", spec->temp != NULL ? spec->temp : "/tmp");
	spec_add_environment(spec, "TERM=%s", term != NULL ? term : "dumb");
	spec_add_environment(spec, "LANG=%s", lang != NULL ? lang : "C.UTF-8");
	spec_set_writable(spec);
	if (zone != NULL)
		spec_add_environment(spec, "TZ=%s", zone);
	for (size_t i = 0; policy->network.count == 0 && !spec->asks_network &&
			   i < sizeof(without_network) / sizeof(without_network[0]);
	     i++)
		spec_add_environment(spec, "%s", without_network[i]);
	add_policys(options, &policy->environment, spec);
	add_git(spec);
}
