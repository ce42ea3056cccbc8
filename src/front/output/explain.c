/*
 * explain: an object of what a cell would have is made first. The table for people is made of
 * the same object as the JSON, so both forms say the same.
 */

#include "front/output/explain.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "cell/directions.h"
#include "front/hands/based.h"
#include "front/verb.h"
#include "image/devcontainer/devcontainer.h"
#include "policy/config.h"
#include "policy/credentials/credential.h"
#include "policy/network.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "tool/tool.h"
#include "tui/screen.h"
#include "view/git_remotes.h"
#include "view/shape.h"
#include "view/spec.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CLEAN_MAX = 4 << 20, /* a path in which every byte is escaped */
	PATH_COLUMN = 44,
	EXPLAIN_TEXT_MAX = 4 << 20,
	WHY_MAX = 128,
};

bool explain_repository_above(const char *workspace, struct buf *above)
{
	char path[PATH_MAX];
	size_t size = strlen(workspace);
	struct stat st;

	for (;;) {
		int n = snprintf(path, sizeof(path), "%.*s/.git", (int)size, workspace);

		if (n < 0 || n >= (int)sizeof(path))
			return false;
		if (lstat(path, &st) == 0)
			break;
		while (size > 0 && workspace[size - 1] != '/')
			size--;
		if (size == 0)
			return false;
		size--;
	}
	return size < strlen(workspace) && buf_add(above, workspace, size);
}

/* The object. */

/*
 * The limits that apply to a program of `exec`; the other limits are for runs of agents.
 */
static const char limit_names[] = "memory pids cell_pids file_size tmp free_space grace_s "
				  "cpus cpu_s written io_write net";
/* Limits that most policies do not have: told where one has them. */
static const char rare_limits[] = "cpus cpu_s written io_write net";

static const char *origin_of(const struct setup *setup, const char *key)
{
	const char *who = value_text(value_member(setup->origins, key));

	return who != NULL ? who : "default";
}

static bool is_flags(const struct setup_flags *flags, const char *key, const char *path)
{
	const struct value *list = value_member(flags->entry, key);

	for (size_t i = 0; i < value_count(list); i++) {
		if (strcmp(value_text(value_item(list, i)), path) == 0)
			return true;
	}
	return false;
}

/* The reason for ENTRY: "write (configuration)", "--read", "every cell". */
static const char *why_of(const struct setup *setup, const struct setup_flags *flags,
			  const struct view_entry *entry, char text[WHY_MAX])
{
	const char *why = entry->why;

	if (why == NULL)
		return "every cell";
	if (strcmp(why, "read") != 0 && strcmp(why, "write") != 0 &&
	    strcmp(why, "blocked") != 0)
		return why;
	if (is_flags(flags, why, entry->path))
		(void)snprintf(text, WHY_MAX, "--%s", why);
	else if (strcmp(origin_of(setup, why), "option") == 0)
		(void)snprintf(text, WHY_MAX, "%s", why);
	else
		(void)snprintf(text, WHY_MAX, "%s (%s)", why, origin_of(setup, why));
	return text;
}

static bool has_layer(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		if (view->entries[i].kind == VIEW_OVERLAY &&
		    strcmp(view->entries[i].path, path) == 0)
			return true;
	}
	return false;
}

static const char *access_of(const struct view *view, const struct view_entry *entry);

/* The access to the folder PATH, which is shown at another place as well. */
static const char *access_at(const struct view *view, const char *path)
{
	const char *access = NULL;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];

		if ((entry->kind == VIEW_TREE || entry->kind == VIEW_OVERLAY) &&
		    strcmp(entry->path, path) == 0 && access_of(view, entry) != NULL)
			access = access_of(view, entry);
	}
	return access != NULL ? access : "read";
}

/* The access that a program has there; NULL: the entry needs no line. */
static const char *access_of(const struct view *view, const struct view_entry *entry)
{
	struct stat st;

	switch (entry->kind) {
	case VIEW_ALSO:
		return access_at(view, entry->source);
	case VIEW_TREE:
		if (entry->optional && entry->fd < 0 && lstat(entry->source, &st) < 0)
			return NULL;
		return has_layer(view, entry->path) ? NULL
		       : entry->writable            ? "write"
						    : "read";
	case VIEW_OVERLAY:
		return entry->lasts == VIEW_LASTS_NOTHING ? "read" : "layer";
	case VIEW_MEMORY:
		return has_layer(view, entry->path) ? NULL : "memory";
	case VIEW_MASK:
		return lstat(entry->path, &st) == 0 ? "hidden" : NULL;
	case VIEW_PIN:
		return entry->writable ? NULL : "read";
	case VIEW_PROCESSES:
	case VIEW_TERMINALS:
	case VIEW_TEXT:
		return "own";
	case VIEW_DEVICE:
		return "device";
	case VIEW_FOLDER:
	case VIEW_LINK:
	case VIEW_SOCKET:
	case VIEW_LOWER:
		break;
	case VIEW_BASE:
		return "base";
	}
	return NULL;
}

static uint64_t size_of_layer(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		if ((view->entries[i].kind == VIEW_MEMORY ||
		     view->entries[i].kind == VIEW_BASE) &&
		    strcmp(view->entries[i].path, path) == 0)
			return view->entries[i].size;
	}
	return 0;
}

static struct value *view_value(const struct setup *setup,
				const struct setup_flags *flags, const struct view *view)
{
	struct value *list = value_new_array();
	char why[WHY_MAX];

	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];
		const char *access = access_of(view, entry);
		struct value *row;
		uint64_t size;

		if (access == NULL)
			continue;
		row = value_new_object();
		value_set_text(row, "access", access);
		value_set_text(row, "path", entry->path);
		size = size_of_layer(view, entry->path);
		if (size > 0)
			value_set_integer(row, "bytes", (int64_t)size);
		value_set_text(row, "why", why_of(setup, flags, entry, why));
		value_append(list, row);
	}
	return list;
}

static struct value *limit_value(const struct row *key, const struct policy *policy)
{
	const char *place = (const char *)&policy->limits + key->offset;

	if (key->kind == ROW_SECONDS || key->kind == ROW_NUMBER)
		return value_new_real(*(const double *)(const void *)place);
	return value_new_integer((int64_t) * (const uint64_t *)(const void *)place);
}

static bool limit_is_set(const struct row *key, const struct policy *policy)
{
	auto_value struct value *value = limit_value(key, policy);

	return value_kind(value) == VALUE_REAL ? value_number(value) > 0
					       : value_integer(value) > 0;
}

static struct value *limits_value(const struct setup *setup, double timeout_s,
				  const char *who)
{
	struct value *list = value_new_object();
	const struct row *key = keys_agent;
	struct value *row = value_new_object();

	value_set(row, "value", value_new_real(timeout_s));
	value_set_text(row, "why", who);
	value_set(list, "timeout_s", row);
	while (key->name != NULL && strcmp(key->name, "limits") != 0)
		key++;
	for (key = key->rows; key != NULL && key->name != NULL; key++) {
		char name[WHY_MAX];

		if (!str_among(limit_names, str_of(key->name)) ||
		    (str_among(rare_limits, str_of(key->name)) &&
		     !limit_is_set(key, setup->policy)))
			continue;
		(void)snprintf(name, sizeof(name), "limits.%s", key->name);
		row = value_new_object();
		value_set(row, "value", limit_value(key, setup->policy));
		value_set_text(row, "why", origin_of(setup, name));
		if (strcmp(origin_of(setup, name), "option") == 0) {
			(void)snprintf(name, sizeof(name), "--%s",
				       strcmp(key->name, "io_write") == 0 ? "io-write"
									  : key->name);
			value_set_text(row, "why", name);
		}
		value_set(list, key->name, row);
	}
	return list;
}

/* The names of variables; values are left out, since they may be secrets. */
static struct value *environment_value(const struct cell_spec *spec)
{
	struct value *list = value_new_array();

	for (const char *const *at = spec->environment.items; *at != NULL; at++)
		value_append(list, value_new_str((struct str){*at, strcspn(*at, "=")}));
	return list;
}

/* "127.0.0.1:3000->3000" for each published port; port 0 stands for any free one. */
static struct value *publish_value(const struct cell_spec *spec)
{
	struct value *list = value_new_array();

	for (size_t i = 0; i < spec->publish_count; i++) {
		const struct network_publish *entry = &spec->publish[i];
		struct network_host address = entry->address;
		char place[NETWORK_TEXT_MAX], text[NETWORK_TEXT_MAX + 16];

		if (entry->at == LISTENS_OWN)
			network_own_address(spec->workspace, &address);
		(void)snprintf(text, sizeof(text), "%s->%u",
			       network_print(&address, entry->host_port, place),
			       entry->port);
		value_append(list, value_new_text(text));
	}
	return list;
}

/* The ports that the devcontainer below the cell names, and that the cell does not publish. */
static struct value *forward_value(const struct setup *setup, const struct cell_spec *spec)
{
	const struct devcontainer *read =
		setup->based != NULL ? setup->based->base.devcontainer : NULL;
	struct value *list = value_new_array();

	for (size_t i = 0; read != NULL && i < read->port_count; i++) {
		size_t at = 0;

		while (at < spec->publish_count && spec->publish[at].port != read->ports[i])
			at++;
		if (at == spec->publish_count)
			value_append(list, value_new_integer(read->ports[i]));
	}
	return list;
}

/* Say for which repositories of the workspace the key of a forge holds. */
static void add_repositories(const struct credential *credential, const char *workspace,
			     struct buf *shown)
{
	struct arena arena;

	arena_init(&arena);
	const char **names =
		credential_repositories(credential, git_remotes_read(workspace, &arena),
					&arena);
	if (names != NULL)
		(void)buf_adds(shown, names[0] != NULL ? " for" : " for no repository");
	for (size_t i = 0; names != NULL && names[i] != NULL; i++)
		(void)buf_addf(shown, "%s %s", i > 0 ? "," : "", names[i]);
	arena_fini(&arena);
}

void explain_repositories(const struct setup *setup)
{
	struct buf shown;

	buf_init(&shown, EXPLAIN_TEXT_MAX);
	for (size_t i = 0; i < setup->credential_count && isatty(STDERR_FILENO); i++) {
		if (setup->credentials[i].forge == FORGE_NONE)
			continue;
		buf_clear(&shown);
		add_repositories(&setup->credentials[i], setup->workspace, &shown);
		(void)verb_complain(CODE_DONE, "the key of %s holds%s",
				    setup->credentials[i].name, shown.data);
	}
	buf_fini(&shown);
}

static void add_hosts(const struct credential *credential, struct buf *shown)
{
	char target[NETWORK_TEXT_MAX];

	for (size_t i = 0; i < credential->host_count; i++)
		(void)buf_addf(shown, "%s %s", i > 0 ? "," : " to",
			       network_print(&credential->hosts[i].host,
					     credential->hosts[i].port, target));
}

/*
 * "github: env:GITHUB_TOKEN to github.com:443 for github.com/owner/name" for each credential
 * that is used; never a key.
 */
static struct value *credentials_value(const struct setup *setup, const char *workspace)
{
	struct value *list = value_new_array();
	struct buf shown;

	buf_init(&shown, EXPLAIN_TEXT_MAX);
	for (size_t i = 0; i < setup->credential_count; i++) {
		buf_clear(&shown);
		(void)buf_addf(&shown, "%s: ", setup->credentials[i].name);
		if (!setup_credential_is_there(&setup->credentials[i], &shown, NULL))
			continue;
		add_hosts(&setup->credentials[i], &shown);
		add_repositories(&setup->credentials[i], workspace, &shown);
		value_append(list, value_new_text(shown.data));
	}
	buf_fini(&shown);
	return list;
}

/* Put what the programs of the cell find the broker by into SPEC, without phantoms. */
static void add_directions(const struct setup *setup, struct cell_spec *spec)
{
	auto_free struct direction *rows =
		memory_array(setup->credential_count + 1, sizeof(rows[0]));
	size_t count = 0;

	for (size_t i = 0; i < setup->credential_count; i++) {
		const struct credential *credential = &setup->credentials[i];
		bool copied = false;

		for (size_t j = 0; j < spec->login_count; j++)
			copied = copied ||
				 strcmp(spec->logins[j].credential, credential->name) == 0;
		rows[count++] = (struct direction){credential, "", copied};
	}
	if (count > 0 && spec_is_sealed(spec))
		directions_set(rows, count, spec);
}

static struct value *explain_value(const struct setup *setup,
				   const struct setup_flags *flags,
				   const struct cell_spec *spec, double timeout_s,
				   const char *who)
{
	struct value *report = value_new_object();
	struct buf above;

	tool_set_strength(report, spec->strength);
	value_set_text(report, "workspace", spec->workspace);
	value_set_text(report, "policy",
		       flags->policy_file != NULL ? flags->policy_file : setup->agent);
	value_set_integer(report, "uid", spec->identity.uid);
	value_set(report, "view", view_value(setup, flags, &spec->view));
	value_set(report, "limits", limits_value(setup, timeout_s, who));
	value_set(report, "network", value_new_texts(spec->network.items));
	value_set(report, "publish", publish_value(spec));
	value_set(report, "forward_ports", forward_value(setup, spec));
	value_set(report, "credentials", credentials_value(setup, spec->workspace));
	value_set(report, "env", environment_value(spec));
	buf_init(&above, EXPLAIN_TEXT_MAX);
	if (explain_repository_above(spec->workspace, &above))
		value_set_text(report, "repository_above", above.data);
	buf_fini(&above);
	return report;
}

/* The table. */

static void print_head(const char *text, bool colour, FILE *out)
{
	(void)fprintf(out, "%s%s%s\n", colour ? "\033[1m" : "", text,
		      colour ? "\033[0m" : "");
}

/* Print TEXT, made safe for a terminal and padded to WIDTH. */
static void print_cell(const char *text, size_t width, FILE *out)
{
	struct buf clean;

	buf_init(&clean, CLEAN_MAX);
	text_add_exact(&clean, str_of(text));
	(void)fprintf(out, "%-*s", (int)width, clean.data);
	buf_fini(&clean);
}

static void print_view(const struct value *list, FILE *out)
{
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *row = value_item(list, i);
		const struct value *bytes = value_member(row, "bytes");
		char size[32];

		(void)fprintf(out, "  %-8s", value_text(value_member(row, "access")));
		print_cell(value_text(value_member(row, "path")), PATH_COLUMN, out);
		(void)fprintf(out, "  %s", value_text(value_member(row, "why")));
		if (bytes != NULL)
			(void)fprintf(out, ", at most %s",
				      text_size((uint64_t)value_integer(bytes), size));
		(void)fputc('\n', out);
	}
}

static void print_limits(const struct value *limits, FILE *out)
{
	for (void *at = value_first(limits); at != NULL; at = value_next(limits, at)) {
		const struct value *row = value_at(at);
		const struct value *value = value_member(row, "value");
		const char *name = value_key(at);
		char text[32];

		if (value_kind(value) == VALUE_REAL && value_number(value) <= 0)
			(void)snprintf(text, sizeof(text), "none");
		else if (value_kind(value) == VALUE_REAL)
			(void)snprintf(text, sizeof(text), "%g%s", value_number(value),
				       strcmp(name, "cpus") == 0 ? "" : " s");
		else if (strstr(name, "pids") != NULL)
			(void)snprintf(text, sizeof(text), "%lld",
				       (long long)value_integer(value));
		else
			(void)text_size((uint64_t)value_integer(value), text);
		(void)fprintf(out, "  %-12s%-12s%s\n", name, text,
			      value_text(value_member(row, "why")));
	}
}

static void print_words(const struct value *list, FILE *out)
{
	(void)fprintf(out, " ");
	for (size_t i = 0; i < value_count(list); i++)
		(void)fprintf(out, " %s", value_text(value_item(list, i)));
	(void)fprintf(out, "%s\n", value_count(list) == 0 ? " nothing" : "");
}

static void print_lines(const struct value *list, FILE *out)
{
	for (size_t i = 0; i < value_count(list); i++)
		(void)fprintf(out, "  %s\n", value_text(value_item(list, i)));
}

/*
 * The heading of the list of files: it says how a cell of this LEVEL treats files that
 * are not listed.
 */
static const char *files_head(int64_t level)
{
	if (level >= SANDBOX_SEALED)
		return "Files (what is not listed does not exist in the cell)";
	if (level == SANDBOX_RULES)
		return "Files (what is not listed cannot be opened in the cell)";
	return "Files (at this level none of yours is closed, listed or not)";
}

/* Print REPORT on OUT, with colours when standard output is a terminal with colours. */
static void print_numbers(const struct value *list, FILE *out)
{
	(void)fprintf(out, " ");
	for (size_t i = 0; i < value_count(list); i++)
		(void)fprintf(out, " %lld", (long long)value_integer(value_item(list, i)));
	(void)fputc('\n', out);
}

static void print_table(const struct value *report, FILE *out)
{
	bool colour = screen_options_of(STDOUT_FILENO).colour;
	const char *above = value_text(value_member(report, "repository_above"));
	const bool unfiltered = value_is_true(value_member(report, "unfiltered"));

	(void)fprintf(out, "Workspace ");
	print_cell(value_text(value_member(report, "workspace")), 0, out);
	(void)fprintf(out, ", policy ");
	print_cell(value_text(value_member(report, "policy")), 0, out);
	(void)fprintf(out, ", uid %lld, level L%lld%s\n",
		      (long long)value_integer(value_member(report, "uid")),
		      (long long)value_integer(value_member(report, "level")),
		      tool_lack(unfiltered));
	if (above != NULL) {
		(void)fprintf(out, "It lies in the repository ");
		print_cell(above, 0, out);
		(void)fprintf(out,
			      ", which git does not find in the cell; -C names another folder\n");
	}
	(void)fputc('\n', out);
	print_head(files_head(value_integer(value_member(report, "level"))), colour, out);
	print_view(value_member(report, "view"), out);
	(void)fputc('\n', out);
	print_head("Limits", colour, out);
	print_limits(value_member(report, "limits"), out);
	(void)fputc('\n', out);
	print_head("Network", colour, out);
	if (unfiltered)
		(void)fprintf(out, "  all that the machine reaches\n");
	else
		print_words(value_member(report, "network"), out);
	if (value_count(value_member(report, "publish")) > 0) {
		(void)fputc('\n', out);
		print_head("Published ports", colour, out);
		print_words(value_member(report, "publish"), out);
	}
	if (value_count(value_member(report, "forward_ports")) > 0) {
		(void)fputc('\n', out);
		print_head("Ports that the devcontainer names (--publish PORT opens one)",
			   colour, out);
		print_numbers(value_member(report, "forward_ports"), out);
	}
	if (value_count(value_member(report, "credentials")) > 0) {
		(void)fputc('\n', out);
		print_head("Keys that stay outside", colour, out);
		print_lines(value_member(report, "credentials"), out);
	}
	(void)fputc('\n', out);
	print_head("Variables", colour, out);
	print_words(value_member(report, "env"), out);
}

int explain_print(struct setup *setup, const struct setup_flags *flags, double timeout_s,
		  const char *timeout_why, bool as_json, const struct value *more, FILE *out)
{
	struct cell_spec spec;
	struct err err = {0};
	int code = CODE_DONE;

	spec_init(&spec);
	if (setup_shape(setup, &spec, &err)) {
		add_directions(setup, &spec);
		auto_value struct value *report =
			explain_value(setup, flags, &spec, timeout_s, timeout_why);

		for (void *at = value_first(more); at != NULL; at = value_next(more, at))
			value_set(report, value_key(at), value_copy(value_at(at)));
		if (as_json)
			code = verb_print_json(report, VALUE_PRETTY, out);
		else
			print_table(report, out);
	} else {
		code = verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	}
	shape_tidy(&spec);
	spec_fini(&spec);
	return code;
}
