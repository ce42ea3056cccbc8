/*
 * ceiling_fuzz: the bytes as the administrator's file. Of a policy that wants everything,
 * what is left after the cut is not above the ceiling, and a second cut takes nothing.
 */
#include "policy/ceiling.h"

#include "base/value.h"
#include "policy/commands.h"
#include "policy/config.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool exists(const char *path, char *real)
{
	(void)snprintf(real, PATH_MAX, "%s", path);
	return path[1] != 'n';
}

static struct policy *wants_all(void)
{
	static const char text[] =
		"{\"write\": [\".\", \"/srv\"], \"read\": [\"/data\", \"/srv/a\"], \"ask\": "
		"[\"network\"], \"network\": [\"*.example\", \"a.example:80\", \"10.0.0.1\", "
		"\"tcp://localhost:5432\"], \"publish\": [\"3000\", \"0:8080\"], "
		"\"credentials\": [\"openai\", \"google\"]}";
	struct value *entry = NULL;
	struct policy *policy = NULL;
	struct err err = {0};

	assert(value_parse(STR(text), 0, &entry, &err));
	assert(config_policy(NULL, entry, NULL, "/project", &policy, &err));
	value_free(entry);
	return policy;
}

static void check(const struct ceiling *ceiling, const struct policy *policy)
{
	struct err err = {0};

	for (size_t i = 0; i < policy->network.count; i++) {
		struct network_entry entry;

		assert(network_parse_entry(str_of(policy->network.items[i]), &entry, NULL));
		assert(ceiling_of_host(ceiling, &entry) == NULL);
	}
	for (size_t i = 0; i < policy->publish.count; i++) {
		struct network_publish entry;

		assert(network_parse_publish(str_of(policy->publish.items[i]), &entry,
					     NULL));
		assert(ceiling_of_port(ceiling, entry.port) == NULL);
	}
	for (size_t i = 0; i < policy->credentials.count; i++)
		assert(ceiling_of_credential(ceiling, policy->credentials.items[i]) == NULL);
	assert(ceiling_check(ceiling, policy, &err));
	assert(ceiling_of_asking(ceiling) == NULL || !policy_asks(policy, "network"));
}

/* The number of lists of commands that POLICY keeps to. */
static size_t lists_of(const struct policy *policy)
{
	size_t count = 0;

	for (const struct commands *at = policy->commands; at != NULL; at = at->within)
		count++;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ceiling *ceiling = NULL;
	struct err err = {0};
	struct buf told;

	if (!ceiling_parse((struct str){(const char *)data, size}, exists, &ceiling, &err)) {
		assert(err.text[0] != '\0');
		return 0;
	}
	struct policy *policy = wants_all();
	buf_init(&told, 1 << 20);
	if (ceiling_cut(ceiling, "/project", policy, &told, &err)) {
		const size_t lists = lists_of(policy);

		check(ceiling, policy);
		buf_clear(&told);
		assert(ceiling_cut(ceiling, "/project", policy, &told, &err) &&
		       told.size == 0 && lists_of(policy) == lists);
		check(ceiling, policy);
	} else {
		assert(err.code == CEILING_REFUSED);
	}
	ceiling_print(ceiling, &told);
	buf_fini(&told);
	policy_free(policy);
	ceiling_free(ceiling);
	return 0;
}
