/*
 * shape_network: adds the listed hosts, the ports of the cell's loopback that lead to
 * them, and the names by which programs find these hosts and the cell itself.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "policy/network.h"
#include "tool/denial.h"
#include "view/shape_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HOSTS  "/etc/hosts"
#define RESOLV "/etc/resolv.conf"

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

/* TEXT becomes a hosts file with the names of carried ENTRIES. Returns their number. */
static size_t hosts_carried(const struct network_entry *entries, size_t count,
			    struct buf *text)
{
	size_t names = 0;

	(void)buf_adds(text, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
	for (size_t i = 0; i < count; i++) {
		if (!entries[i].carried || entries[i].host.kind != NETWORK_NAME ||
		    strcmp(entries[i].host.text, "localhost") == 0)
			continue;
		(void)buf_addf(text, "127.0.0.1\t%s\n", entries[i].host.text);
		names++;
	}
	return names;
}

/*
 * TEXT becomes the host's own hosts file, which may have a developer's names for the
 * loopback. False when there is no file that can be covered, or when it is so long (a
 * list of blocked sites) that it would slow down each start.
 */
static bool hosts_of_host(struct buf *text)
{
	struct stat st;

	buf_clear(text);
	return lstat(HOSTS, &st) == 0 && S_ISREG(st.st_mode) &&
	       fd_read_file(HOSTS, HOSTS_MAX / 2, text, NULL) &&
	       (str_ends(buf_str(text), STR("\n")) || buf_adds(text, "\n"));
}

/*
 * In the cell, a tcp:// host is on the loopback under its own name, because certificates
 * are checked against that name. The cell's own name comes last, so that 127.0.0.1 is
 * still called localhost.
 */
static void hosts_add(struct cell_spec *spec, const struct network_entry *entries,
		      size_t count)
{
	struct buf text;

	if (!spec_is_sealed(spec))
		return; /* without a view, the files and the name are those of the host */
	buf_init(&text, HOSTS_MAX);
	if (hosts_carried(entries, count, &text) > 0 || hosts_of_host(&text)) {
		(void)buf_adds(&text, "127.0.0.1\t" SANDBOX_HOST_NAME "\n");
		(void)spec_add_entry(spec, VIEW_TEXT, HOSTS, text.data);
	}
	buf_fini(&text);
}

/*
 * Send DNS queries to the cell's loopback, where the kernel records and immediately
 * refuses them (sandbox_overhear). When the host's file is a link to a file that the cell
 * does not show, as with systemd-resolved, it is missing in the cell. Programs then use
 * the loopback anyway.
 */
static void questions_add(struct cell_spec *spec)
{
	static const char text[] =
		"# Nobody answers: a cell has no name server. Its proxy looks up the listed\n"
		"# hosts, and each question is told of in the result.\n"
		"nameserver 127.0.0.1\n"
		"options timeout:1 attempts:1\n";
	auto_free char *real = NULL;
	struct stat st;

	if (!spec_is_sealed(spec) || lstat(RESOLV, &st) < 0)
		return;
	if (S_ISLNK(st.st_mode))
		real = realpath(RESOLV, NULL);
	if (S_ISREG(st.st_mode))
		(void)spec_add_entry(spec, VIEW_TEXT, RESOLV, text);
	else if (real != NULL && system_folder_around(real, FOLDER_SYSTEM) != NULL)
		(void)spec_add_entry(spec, VIEW_TEXT, real, text);
}

bool shape_add_network(const struct shape_options *options, const struct policy *policy,
		       struct cell_spec *spec, struct err *err)
{
	const struct policy_names *network = &policy->network;
	char rule[256];

	(void)snprintf(rule, sizeof(rule), "agents.%s.network", policy->name);
	spec->network_rule = arena_copy(&spec->arena, str_of(rule));
	questions_add(spec);
	spec->asks_network = policy_asks(policy, "network");
	if (network->count == 0 && !spec->asks_network) {
		hosts_add(spec, NULL, 0);
		return true;
	}
	auto_free struct network_entry *entries =
		memory_array(network->count + 1, sizeof(entries[0]));
	if (!entries_read(policy, entries, err))
		return false;
	for (size_t i = 0; i < network->count; i++)
		spec_add_network(spec, network->items[i]);
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
