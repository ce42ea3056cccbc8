/*
 * shape_network: the listed hosts, the ports of the cell's loopback that lead to them, and
 * the names under which programs find those.
 */
#include "policy/network.h"
#include "runtime/shape_parts.h"

#include <stdio.h>
#include <string.h>

enum { HOSTS_MAX = 64 << 10 };

static bool entries_read(const struct policy *policy, struct network_entry *entries,
			 struct err *err)
{
	const struct policy_names *network = &policy->network;

	for (size_t i = 0; i < network->count; i++) {
		if (!network_parse_entry(str_of(network->items[i]), &entries[i], err))
			return err_while(err, "agents.%s.network: \"%.100s\"",
					 policy->name, network->items[i]);
	}
	return network_check_ports(entries, network->count, err) ||
	       err_while(err, "agents.%s.network", policy->name);
}

static bool listens_at(const struct cell_spec *spec, uint16_t port)
{
	for (size_t i = 0; i < spec->listen_count; i++) {
		if (spec->listen[i] == port)
			return true;
	}
	return false;
}

/*
 * A tcp:// host is on the loopback in there, and found under its own name: certificates are
 * checked against that.
 */
static void hosts_add(struct cell_spec *spec, const struct network_entry *entries,
		      size_t count)
{
	struct buf text;
	size_t names = 0;

	buf_init(&text, HOSTS_MAX);
	(void)buf_adds(&text, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
	for (size_t i = 0; i < count; i++) {
		if (!entries[i].carried || entries[i].host.kind != NETWORK_NAME ||
		    strcmp(entries[i].host.text, "localhost") == 0)
			continue;
		(void)buf_addf(&text, "127.0.0.1\t%s\n", entries[i].host.text);
		names++;
	}
	if (names > 0)
		(void)spec_add_entry(spec, VIEW_TEXT, "/etc/hosts", text.data);
	buf_fini(&text);
}

bool shape_add_network(const struct shape_options *options, const struct policy *policy,
		       struct cell_spec *spec, struct err *err)
{
	const struct policy_names *network = &policy->network;
	char rule[256];

	spec->asks_network = policy_asks(policy, "network");
	if (network->count == 0 && !spec->asks_network)
		return true;
	auto_free struct network_entry *entries =
		memory_array(network->count + 1, sizeof(entries[0]));
	if (!entries_read(policy, entries, err))
		return false;
	for (size_t i = 0; i < network->count; i++)
		spec_add_network(spec, network->items[i]);
	(void)snprintf(rule, sizeof(rule), "agents.%s.network", policy->name);
	spec->network_rule = arena_copy(&spec->arena, str_of(rule));
	if (options->resolver != NULL)
		spec->resolver = arena_copy(&spec->arena, str_of(options->resolver));
	spec->listen[spec->listen_count++] = 0;
	for (size_t i = 0; i < network->count; i++) {
		if (entries[i].carried && !listens_at(spec, entries[i].port))
			spec->listen[spec->listen_count++] = entries[i].port;
	}
	hosts_add(spec, entries, network->count);
	return true;
}
