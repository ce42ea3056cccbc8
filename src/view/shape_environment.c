/*
 * shape_environment: the variables of the caller, and the environment of programs in the
 * cell.
 */
#include "base/buf.h"
#include "view/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Without a network, package managers must fail immediately: npm would retry for more
 * than two minutes, longer than a command may take. npm also must not look for a newer
 * npm at the end of a run.
 */
static const char *const without_network[] = {"NPM_CONFIG_FETCH_RETRIES=0",
					      "NPM_CONFIG_UPDATE_NOTIFIER=false",
					      "PIP_RETRIES=0", "CARGO_NET_RETRY=0"};

/*
 * After some commands, git tidies the repository in the background. The end of the call
 * would kill that work when it is half done. The person's own git does it outside, or an
 * explicit `git gc` in the foreground.
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
}; /* more than anybody sets; git itself accepts millions */

/* The caller's entry "NAME=value", even with an empty value; NULL when NAME is unset. */
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

/* Set PATH, with our own program behind all other folders. */
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

/* The value of NAME in the environment of SPEC; NULL: it is unset. */
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

/* Is KEY one of the policy's COUNT settings for git? */
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

/* Add our settings behind those of the policy. A setting of the policy wins over ours. */
static void add_git(struct cell_spec *spec)
{
	const char *given = in_cell(spec, "GIT_CONFIG_COUNT");
	char *end = NULL;
	const unsigned long said = given != NULL ? strtoul(given, &end, 10) : 0;
	unsigned count = (unsigned)said;
	char entry[sizeof("GIT_CONFIG_COUNT=") + 3 * sizeof(count)];

	/*
	 * With a wrong number, git refuses to run. That is left as the policy's mistake.
	 */
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
