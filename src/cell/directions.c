/* directions: variables, settings of git and certificates, put into a cell's specification. */

#include "cell/directions.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "broker/broker.h"
#include "broker/phantom.h"
#include "broker/tls.h"
#include "policy/credentials/credential.h"
#include "policy/credentials/forge.h"
#include "policy/network.h"
#include "view/shape.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { VARIABLE_MAX = PHANTOM_MAX + 4096 };

static void set_variable(struct cell_spec *spec, const char *name, const char *text)
{
	struct buf variable;

	buf_init(&variable, VARIABLE_MAX);
	(void)buf_addf(&variable, "%s=%s", name, text);
	spec_set_environment(spec, variable.data);
	buf_fini(&variable);
}

/*
 * The settings by which git uses a forge's key: a helper that answers with the phantom
 * (front/inside/git.h), in place of every other helper for that address; and
 * addresses of ssh that become those of HTTPS, unless the policy lists ssh.
 */

/* Git asks our helper for ADDRESS, which is the root of a server, maybe with a path. */
static void add_helper(const struct direction *row, const char *user, const char *address,
		       struct cell_spec *spec)
{
	const char *path = strstr(address, "://") + 3;
	auto_free char *server = memory_copy(address);
	struct buf key, command;

	server[path + strcspn(path, "/") - address] = '\0';
	buf_init(&key, VARIABLE_MAX);
	buf_init(&command, VARIABLE_MAX);
	(void)buf_addf(&key, "credential.%s.helper", address);
	(void)buf_adds(&command, SHAPE_GIT_CREDENTIAL " ");
	shell_token_add_word(server, &command);
	(void)buf_addc(&command, ' ');
	shell_token_add_word(user, &command);
	(void)buf_addc(&command, ' ');
	shell_token_add_word(row->phantom, &command);
	/* An empty one removes those that stand before it. */
	spec_add_git(spec, key.data, "");
	spec_add_git(spec, key.data, command.data);
	buf_fini(&command);
	buf_fini(&key);
}

/* Does the policy list HOST for ssh? */
static bool lists_ssh(const struct cell_spec *spec, const char *host)
{
	char entry[NETWORK_TEXT_MAX];

	(void)snprintf(entry, sizeof(entry), "tcp://%s:22", host);
	for (size_t i = 0; i < spec->network.count; i++) {
		if (strcmp(spec->network.items[i], entry) == 0)
			return true;
	}
	return false;
}

static void add_host(const struct direction *row, const char *user,
		     const struct network_entry *host, struct cell_spec *spec)
{
	/* The text around a host in an address of ssh. */
	static const char *const around[][2] = {{"git@", ":"}, {"ssh://git@", "/"}};
	char place[NETWORK_TEXT_MAX], address[NETWORK_TEXT_MAX + sizeof("https://")];
	char key[sizeof(address) + sizeof("url./.insteadOf")], from[NETWORK_TEXT_MAX + 16];

	(void)network_print(&host->host, host->port, place);
	if (host->port == NETWORK_PORT_TLS)
		*strrchr(place, ':') = '\0';
	(void)snprintf(address, sizeof(address), "https://%s", place);
	add_helper(row, user, address, spec);
	(void)snprintf(key, sizeof(key), "url.%s/.insteadOf", address);
	for (size_t i = 0; !lists_ssh(spec, host->host.text) && i < 2; i++) {
		(void)snprintf(from, sizeof(from), "%s%s%s", around[i][0],
			       host->host.text, around[i][1]);
		spec_add_git(spec, key, from);
	}
}

/* Is ENTRY where the API of a forge is, and no git? */
static bool is_api_only(const struct network_entry *entry)
{
	return strncmp(entry->host.text, "api.", 4) == 0;
}

static void set_git(const struct direction *row, struct cell_spec *spec)
{
	const struct credential *credential = row->credential;
	const char *user = NULL;
	char door[sizeof("http://127.0.0.1:65535/") + CREDENTIAL_NAME_MAX];

	for (size_t i = 0; i < credential->place_count && user == NULL; i++) {
		if (credential->places[i].at == AT_BASIC)
			user = credential->places[i].name;
	}
	if (credential->forge == FORGE_NONE || user == NULL)
		return;
	for (size_t i = 0; i < credential->host_count; i++) {
		if (!is_api_only(&credential->hosts[i]))
			add_host(row, user, &credential->hosts[i], spec);
	}
	if (is_api_only(&credential->hosts[0]))
		return;
	(void)snprintf(door, sizeof(door), "http://127.0.0.1:%d/%s", BROKER_PORT,
		       credential->name);
	add_helper(row, user, door, spec);
}

/* Show our program under the name of the helper, where the view has it. */
static void show_helper(struct cell_spec *spec)
{
	bool has_program = false;

	for (size_t i = 0; i < spec->view.count && !has_program; i++)
		has_program = strcmp(spec->view.entries[i].path, SHAPE_PROGRAM) == 0;
	if (has_program)
		(void)spec_add_entry(spec, VIEW_LINK, SHAPE_GIT_CREDENTIAL, "glovebox");
}

static void set_variables(const struct direction *rows, size_t count, struct cell_spec *spec)
{
	struct buf url;
	bool has_forge = false;

	buf_init(&url, CREDENTIAL_TEXT_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct credential *credential = rows[i].credential;

		/* An agent does not renew a token that it gets in a variable. */
		for (size_t j = 0; !rows[i].copied && j < credential->variables.count; j++)
			set_variable(spec, credential->variables.items[j], rows[i].phantom);
		/* The same key under another name, which the policy passes. */
		for (size_t j = 0; j < credential->source_count; j++) {
			const struct credential_source *source = &credential->sources[j];

			if (source->from == FROM_ENV &&
			    spec_variable(spec, source->text) != NULL)
				set_variable(spec, source->text, rows[i].phantom);
		}
		for (size_t j = 0; j < credential->base_count; j++) {
			buf_clear(&url);
			if (credential_base_url(credential, &credential->bases[j],
						BROKER_PORT, &url))
				set_variable(spec, credential->bases[j].variable, url.data);
		}
		set_git(&rows[i], spec);
		has_forge = has_forge || credential->forge != FORGE_NONE;
	}
	if (has_forge)
		show_helper(spec);
	buf_fini(&url);
}

/* The authority. */

/* By these variables programs find certificates, in place of the system's or beside them. */
static const struct {
	const char *name, *path;
} certificate_variables[] = {
	{"SSL_CERT_FILE", SHAPE_CERTIFICATES},
	{"CURL_CA_BUNDLE", SHAPE_CERTIFICATES},
	{"REQUESTS_CA_BUNDLE", SHAPE_CERTIFICATES},
	{"PIP_CERT", SHAPE_CERTIFICATES},
	{"NPM_CONFIG_CAFILE", SHAPE_CERTIFICATES},
	{"GIT_SSL_CAINFO", SHAPE_CERTIFICATES},
	{"CARGO_HTTP_CAINFO", SHAPE_CERTIFICATES},
	{"AWS_CA_BUNDLE", SHAPE_CERTIFICATES},
	{"CODEX_CA_CERTIFICATE", SHAPE_CERTIFICATES},
	{"NODE_EXTRA_CA_CERTS", SHAPE_CERTIFICATE},
	{"DENO_CERT", SHAPE_CERTIFICATE},
};

/* Has the view a text at PATH already, or hides it the file? */
static bool is_taken(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if ((entry->kind == VIEW_TEXT && strcmp(entry->path, path) == 0) ||
		    (entry->kind == VIEW_MASK && path_within(path, entry->path)))
			return true;
	}
	return false;
}

/* Show the authority at PATH, behind the certificates in the file BEFORE of the host. */
static void show_authority(struct cell_spec *spec, const char *path, const char *before)
{
	struct view_entry *entry = spec_add_entry(spec, VIEW_TEXT, path, "");

	entry->late = true;
	entry->before = before != NULL ? arena_copy(&spec->arena, str_of(before)) : NULL;
	entry->why = "the broker";
}

/* The bundle in /run/glovebox is made of the first one of the system. */
static void show_bundles(struct cell_spec *spec)
{
	auto_free char *first = NULL;

	for (size_t i = 0; tls_bundles[i] != NULL; i++) {
		auto_free char *real = realpath(tls_bundles[i], NULL);
		struct stat st;

		if (real == NULL || stat(real, &st) < 0 || !S_ISREG(st.st_mode) ||
		    is_taken(spec, real))
			continue;
		show_authority(spec, real, real);
		if (first == NULL)
			first = memory_copy(real);
	}
	show_authority(spec, SHAPE_CERTIFICATES, first);
}

static void add_authority(const struct direction *rows, size_t row_count,
			  struct cell_spec *spec)
{
	const size_t count =
		sizeof(certificate_variables) / sizeof(certificate_variables[0]);
	char target[NETWORK_TEXT_MAX];

	show_authority(spec, SHAPE_CERTIFICATE, NULL);
	show_bundles(spec);
	for (size_t i = 0; i < count; i++) {
		if (spec_variable(spec, certificate_variables[i].name) == NULL)
			set_variable(spec, certificate_variables[i].name,
				     certificate_variables[i].path);
	}
	for (size_t i = 0; i < row_count; i++) {
		const struct credential *credential = rows[i].credential;

		for (size_t j = 0; j < credential->host_count; j++)
			spec_add(spec, &spec->brokered,
				 network_print(&credential->hosts[j].host,
					       credential->hosts[j].port, target));
	}
	/* The last listener is the one for requests to the proxy (view/shape.c). */
	if (spec->listen_count == 0)
		spec->listen[spec->listen_count++] = 0;
}

void directions_set(const struct direction *rows, size_t count, struct cell_spec *spec)
{
	set_variables(rows, count, spec);
	add_authority(rows, count, spec);
}
