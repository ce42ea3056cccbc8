/*
 * ceiling: reads the administrator's bound, and takes from a policy what is above it.
 */
#include "policy/ceiling.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "policy/commands.h"
#include "policy/config.h"
#include "policy/credentials/credential.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	PORTS_MAX = 64,
	CEILING_PATH_MAX = 4096,
	HASH_DIGITS_MIN = 16, /* more than any two differ in by chance */
};

struct ports {
	bool given;
	uint16_t items[PORTS_MAX];
	size_t count;
};

struct paths {
	char *items[ROWS_ITEMS_MAX];
	bool exists[ROWS_ITEMS_MAX];
	size_t count;
};

struct ceiling {
	struct value *said; /* the file as it was read */
	unsigned level;
	struct network_entry *hosts, *denied_hosts;
	size_t host_count, denied_host_count;
	bool hosts_given;
	struct paths denied_read, denied_write;
	struct ports published, loopback;
	bool asks_nobody;
	const struct value *limits;   /* in `said`; NULL: none */
	struct policy_limits at_most; /* the values of the keys that `limits` has */
};

static bool check_hosts(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	struct network_entry entry;
	struct err err = {0};

	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		const struct rows_place below = {.index = i};

		if (!network_parse_entry(value_str(value_item(value, i)), &entry, &err))
			return rows_refuse(problem, &below, "%s", err.text);
	}
	return true;
}

static bool is_normal(const char *path)
{
	struct buf normal;

	buf_init(&normal, CEILING_PATH_MAX);
	const bool same = path[0] == '/' && path_normal("/", path, &normal) &&
			  str_is(buf_str(&normal), path);
	buf_fini(&normal);
	return same;
}

static bool check_paths(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		const struct rows_place below = {.index = i};
		const char *path = value_text(value_item(value, i));

		if (!is_normal(path))
			return rows_refuse(problem, &below,
					   "a path is absolute, and has no . or .. or //");
	}
	return true;
}

static bool check_ports(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	if (value_kind(value) == VALUE_BOOLEAN && !value_is_true(value))
		return true;
	if (value_kind(value) != VALUE_ARRAY || value_count(value) > PORTS_MAX)
		return rows_refuse(problem, NULL, "false, or a list of at most %d ports",
				   PORTS_MAX);
	for (size_t i = 0; i < value_count(value); i++) {
		const struct rows_place below = {.index = i};
		const struct value *port = value_item(value, i);

		if (value_kind(port) != VALUE_INTEGER || value_integer(port) < 1 ||
		    value_integer(port) > UINT16_MAX)
			return rows_refuse(problem, &below, "a port is 1 to 65535");
	}
	return true;
}

static bool check_profiles(const struct row *row, const struct value *value,
			   struct rows_problem *problem)
{
	(void)row;
	if (value_kind(value) == VALUE_ARRAY) {
		for (size_t i = 0; i < value_count(value); i++) {
			const struct rows_place below = {.index = i};

			if (value_text(value_item(value, i)) == NULL)
				return rows_refuse(problem, &below, "a profile is a name");
		}
		return true;
	}
	if (value_kind(value) != VALUE_OBJECT)
		return rows_refuse(problem, NULL,
				   "a list of names, or an object: name -> hash");
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct rows_place below = {.key = value_key(at)};

		const char *hash = value_text(value_at(at));

		if (hash == NULL || strlen(hash) < HASH_DIGITS_MIN)
			return rows_refuse(problem, &below,
					   "the hash that glovebox wrap --show NAME prints, of "
					   "%d digits or more",
					   HASH_DIGITS_MIN);
	}
	return true;
}

/* The list of commands that RULES, those of `deny_commands`, deny. */
static struct value *denying(const struct value *rules)
{
	struct value *object = value_new_object();

	value_set_text(object, "profile", "box");
	value_set(object, "deny", value_copy(rules));
	value_set_boolean(object, COMMANDS_OF_MACHINE, true);
	return object;
}

static bool check_commands(const struct row *row, const struct value *value,
			   struct rows_problem *problem)
{
	auto_value struct value *object = denying(value);
	struct err why;

	(void)row;
	return commands_check(object, "", &why) ||
	       rows_refuse(problem, NULL, "%s", why.text);
}

static const struct row ceiling_rows[] = {
	{"minimum_level", ROW_CHOICE, .choices = "L0 L2 L3"},
	{"hosts", ROW_HOSTS, .max = NETWORK_TEXT_MAX, .check = check_hosts},
	{"deny_hosts", ROW_HOSTS, .max = NETWORK_TEXT_MAX, .check = check_hosts},
	{"deny_read", ROW_PATHS, .max = CEILING_PATH_MAX, .check = check_paths},
	{"deny_write", ROW_PATHS, .max = CEILING_PATH_MAX, .check = check_paths},
	{"deny_commands", ROW_SOURCES, .max = CONFIG_NAME_MAX, .rows = config_rule_rows,
	 .check = check_commands},
	{"credentials", ROW_NAMES, .max = CREDENTIAL_NAME_MAX},
	{"publish", ROW_ANY, .check = check_ports},
	{"host_loopback", ROW_ANY, .check = check_ports},
	{"ask", ROW_FLAG},
	{"secrets", ROW_CHOICE, .choices = "mask"},
	{"wrap", ROW_ANY, .check = check_profiles},
	{"limits", ROW_OBJECT, .rows = config_limit_rows},
	{0},
};

static struct network_entry *take_hosts(const struct value *list, size_t *count)
{
	struct network_entry *entries =
		memory_array(value_count(list) + 1, sizeof(*entries));

	*count = value_count(list);
	for (size_t i = 0; i < *count; i++)
		(void)network_parse_entry(value_str(value_item(list, i)), &entries[i], NULL);
	return entries;
}

static void take_paths(const struct value *list, bool (*resolve)(const char *, char *),
		       struct paths *paths)
{
	char real[PATH_MAX];

	for (size_t i = 0; i < value_count(list); i++) {
		const char *path = value_text(value_item(list, i));
		const bool exists = resolve(path, real);

		paths->exists[paths->count] = exists;
		paths->items[paths->count++] = memory_copy(exists ? real : path);
	}
}

static void take_ports(const struct value *value, struct ports *ports)
{
	ports->given = value != NULL;
	for (size_t i = 0; i < value_count(value); i++)
		ports->items[ports->count++] =
			(uint16_t)value_integer(value_item(value, i));
}

/* The limits are read as those of a policy are. */
static bool take_limits(struct ceiling *ceiling, struct err *err)
{
	auto_value struct value *entry = value_new_object();
	auto_policy struct policy *policy = NULL;

	ceiling->limits = value_member(ceiling->said, "limits");
	if (ceiling->limits == NULL)
		return true;
	value_set(entry, "limits", value_copy(ceiling->limits));
	if (!config_policy(NULL, entry, NULL, "/", &policy, err))
		return err_while(err, "%s", CEILING_FILE);
	ceiling->at_most = policy->limits;
	return true;
}

static unsigned level_of(const struct value *said)
{
	const char *level = value_text(value_member(said, "minimum_level"));

	return level != NULL ? (unsigned)(level[1] - '0') : 0;
}

bool ceiling_parse(struct str text, bool (*resolve)(const char *path, char *real),
		   struct ceiling **parsed, struct err *err)
{
	struct ceiling *ceiling = memory_alloc(sizeof(*ceiling));
	struct value *said = NULL;

	if (!value_parse(text, VALUE_COMMENTS, &said, err) ||
	    !config_check_rows(ceiling_rows, said, err)) {
		value_free(said);
		free(ceiling);
		return err_while(err, "%s", CEILING_FILE);
	}
	ceiling->said = said;
	ceiling->level = level_of(said);
	ceiling->hosts_given = value_member(said, "hosts") != NULL;
	ceiling->hosts = take_hosts(value_member(said, "hosts"), &ceiling->host_count);
	ceiling->denied_hosts =
		take_hosts(value_member(said, "deny_hosts"), &ceiling->denied_host_count);
	take_paths(value_member(said, "deny_read"), resolve, &ceiling->denied_read);
	take_paths(value_member(said, "deny_write"), resolve, &ceiling->denied_write);
	take_ports(value_member(said, "publish"), &ceiling->published);
	take_ports(value_member(said, "host_loopback"), &ceiling->loopback);
	ceiling->asks_nobody = value_member(said, "ask") != NULL &&
			       !value_is_true(value_member(said, "ask"));
	if (!take_limits(ceiling, err)) {
		ceiling_free(ceiling);
		return false;
	}
	*parsed = ceiling;
	return true;
}

static void paths_fini(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->items[i]);
}

void ceiling_free(struct ceiling *ceiling)
{
	if (ceiling == NULL)
		return;
	paths_fini(&ceiling->denied_read);
	paths_fini(&ceiling->denied_write);
	free(ceiling->hosts);
	free(ceiling->denied_hosts);
	value_free(ceiling->said);
	free(ceiling);
}

unsigned ceiling_level(const struct ceiling *ceiling)
{
	return ceiling != NULL ? ceiling->level : 0;
}

static bool ports_have(const struct ports *ports, uint16_t port)
{
	for (size_t i = 0; i < ports->count; i++) {
		if (ports->items[i] == port)
			return true;
	}
	return false;
}

/*
 * The same host by the way to it: a `tcp://` entry reaches a port without a proxy, and is
 * not covered by one that passes through it.
 */
static bool is_in(const struct network_entry *wide, const struct network_entry *entry)
{
	struct network_entry plain = *entry;

	if (network_covers(wide, entry))
		return true;
	plain.carried = wide->carried;
	return network_covers(wide, &plain);
}

const char *ceiling_of_host(const struct ceiling *ceiling, const struct network_entry *entry)
{
	if (ceiling == NULL)
		return NULL;
	for (size_t i = 0; i < ceiling->denied_host_count; i++) {
		const struct network_entry *denied = &ceiling->denied_hosts[i];

		if (is_in(denied, entry) || is_in(entry, denied))
			return "deny_hosts";
	}
	if (!entry->suffix && network_is_loopback(&entry->host) && ceiling->loopback.given)
		return ports_have(&ceiling->loopback, entry->port) ? NULL : "host_loopback";
	for (size_t i = 0; i < ceiling->host_count; i++) {
		if (network_covers(&ceiling->hosts[i], entry))
			return NULL;
	}
	return ceiling->hosts_given ? "hosts" : NULL;
}

static bool paths_hold(const struct paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (path_within(path, paths->items[i]))
			return true;
	}
	return false;
}

const char *ceiling_of_path(const struct ceiling *ceiling, const char *path, bool writes)
{
	if (ceiling == NULL)
		return NULL;
	if (paths_hold(&ceiling->denied_read, path))
		return "deny_read";
	return writes && paths_hold(&ceiling->denied_write, path) ? "deny_write" : NULL;
}

static bool paths_meet(const struct paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (path_within(paths->items[i], path))
			return true;
	}
	return paths_hold(paths, path);
}

const char *ceiling_of_tree(const struct ceiling *ceiling, const char *path, bool writes)
{
	if (ceiling == NULL)
		return NULL;
	if (paths_meet(&ceiling->denied_read, path))
		return "deny_read";
	return writes && paths_meet(&ceiling->denied_write, path) ? "deny_write" : NULL;
}

const char *ceiling_of_port(const struct ceiling *ceiling, uint16_t port)
{
	return ceiling != NULL && ceiling->published.given &&
			       !ports_have(&ceiling->published, port)
		       ? "publish"
		       : NULL;
}

const char *ceiling_of_profile(const struct ceiling *ceiling, const char *name,
			       const char *hash)
{
	const struct value *wrap =
		ceiling != NULL ? value_member(ceiling->said, "wrap") : NULL;
	const char *wanted;

	if (wrap == NULL)
		return NULL;
	for (size_t i = 0; value_kind(wrap) == VALUE_ARRAY && i < value_count(wrap); i++) {
		if (strcmp(value_text(value_item(wrap, i)), name) == 0)
			return NULL;
	}
	wanted = value_kind(wrap) == VALUE_OBJECT ? value_text(value_member(wrap, name))
						  : NULL;
	return wanted != NULL && strncmp(wanted, hash, strlen(wanted)) == 0 ? NULL : "wrap";
}

const char *ceiling_of_credential(const struct ceiling *ceiling, const char *name)
{
	const struct value *names =
		ceiling != NULL ? value_member(ceiling->said, "credentials") : NULL;

	return names == NULL || value_has_text(names, name) ? NULL : "credentials";
}

const char *ceiling_of_asking(const struct ceiling *ceiling)
{
	return ceiling != NULL && ceiling->asks_nobody ? "ask" : NULL;
}

bool ceiling_refuse(const char *what, const char *key, struct err *err)
{
	return err_set(err, CEILING_REFUSED, "%s: not allowed on this machine (%s, %s)",
		       what, CEILING_FILE, key);
}

static void tell(struct buf *told, const char *list, const char *entry, const char *key)
{
	if (told != NULL)
		(void)buf_addf(told, "%s %s: not allowed on this machine (%s, %s)\n",
			       list, entry, CEILING_FILE, key);
}

/*
 * Keep of ENTRY, which is above the ceiling as a whole, the hosts of the ceiling that it
 * holds.
 */
static void keep_parts(const struct ceiling *ceiling, const struct network_entry *entry,
		       struct policy *policy)
{
	const struct value *hosts = value_member(ceiling->said, "hosts");

	for (size_t i = 0; i < ceiling->host_count; i++) {
		if (network_covers(entry, &ceiling->hosts[i]) &&
		    ceiling_of_host(ceiling, &ceiling->hosts[i]) == NULL)
			(void)policy_add_network(policy, value_text(value_item(hosts, i)),
						 CEILING_FILE, NULL);
	}
}

static void cut_hosts(const struct ceiling *ceiling, struct policy *policy, struct buf *told)
{
	struct policy_names wanted = policy->network;

	policy->network = (struct policy_names){0};
	for (size_t i = 0; i < wanted.count; i++) {
		struct network_entry entry;
		const char *key;

		/* Each was read before. */
		if (!network_parse_entry(str_of(wanted.items[i]), &entry, NULL))
			continue;
		key = ceiling_of_host(ceiling, &entry);
		if (key == NULL) {
			(void)policy_add_network(policy, wanted.items[i], CEILING_FILE,
						 NULL);
			continue;
		}
		tell(told, "network", wanted.items[i], key);
		if (strcmp(key, "hosts") == 0)
			keep_parts(ceiling, &entry, policy);
	}
	policy->network.given = wanted.given;
	policy_names_fini(&wanted);
}

static void cut_credentials(const struct ceiling *ceiling, struct policy_names *list,
			    struct buf *told)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		const char *key = ceiling_of_credential(ceiling, list->items[i]);

		if (key == NULL) {
			list->items[kept++] = list->items[i];
			continue;
		}
		tell(told, "credentials", list->items[i], key);
		free(list->items[i]);
	}
	list->count = kept;
}

static void cut_ports(const struct ceiling *ceiling, struct policy *policy, struct buf *told)
{
	struct policy_names *list = &policy->publish;
	const size_t said_from = list->count - policy->publish_said;
	size_t kept = 0, said = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct network_publish entry;
		const char *key = "publish";

		if (network_parse_publish(str_of(list->items[i]), &entry, NULL))
			key = ceiling_of_port(ceiling, entry.port);
		if (key != NULL) {
			tell(told, "publish", list->items[i], key);
			free(list->items[i]);
			continue;
		}
		said += i >= said_from;
		list->items[kept++] = list->items[i];
	}
	list->count = kept;
	policy->publish_said = said;
}

static void add_path(struct policy_paths *paths, const char *path)
{
	struct policy_path *entry;

	paths->items = memory_grow(paths->items, paths->count + 1, sizeof(*paths->items));
	entry = &paths->items[paths->count++];
	*entry = (struct policy_path){.text = memory_copy(path), .path = memory_copy(path)};
	paths->given = true;
}

static bool lists_path(const struct policy_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (strcmp(paths->items[i].path, path) == 0)
			return true;
	}
	return false;
}

/* Take from PATHS the entries that lie in a place that is denied. */
static void cut_paths(const struct ceiling *ceiling, struct policy_paths *paths,
		      bool writes, struct policy_paths *read, struct buf *told)
{
	size_t kept = 0;

	for (size_t i = 0; i < paths->count; i++) {
		struct policy_path *entry = &paths->items[i];
		const char *key = ceiling_of_path(ceiling, entry->path, writes);

		if (key == NULL) {
			paths->items[kept++] = *entry;
			continue;
		}
		tell(told, writes ? "write" : "read",
		     entry->text != NULL ? entry->text : entry->path, key);
		if (strcmp(key, "deny_write") == 0 && !lists_path(read, entry->path))
			add_path(read, entry->path);
		free(entry->text);
		free(entry->path);
		free(entry->pattern);
	}
	paths->count = kept;
}

/* Does PATH lie in an entry of PATHS? */
static bool is_inside(const struct policy_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (path_within(path, paths->items[i].path))
			return true;
	}
	return false;
}

/* Hide what must not be read, and bind read-only what must not be written. */
static void cover(const struct ceiling *ceiling, struct policy *policy)
{
	for (size_t i = 0; i < ceiling->denied_read.count; i++) {
		const char *path = ceiling->denied_read.items[i];

		if (ceiling->denied_read.exists[i] && !lists_path(&policy->blocked, path))
			add_path(&policy->blocked, path);
	}
	for (size_t i = 0; i < ceiling->denied_write.count; i++) {
		const char *path = ceiling->denied_write.items[i];

		if (ceiling->denied_write.exists[i] && is_inside(&policy->write, path) &&
		    !lists_path(&policy->read, path))
			add_path(&policy->read, path);
	}
}

static void cut_limit(const struct row *row, const struct policy_limits *most,
		      struct policy_limits *limits)
{
	const void *bound = (const char *)most + row->offset;
	void *limit = (char *)limits + row->offset;
	uint64_t count, count_bound;
	double number, number_bound;

	if (row->kind == ROW_NUMBER || row->kind == ROW_SECONDS) {
		memcpy(&number, limit, sizeof(number));
		memcpy(&number_bound, bound, sizeof(number_bound));
		if (number <= 0 || number > number_bound)
			memcpy(limit, &number_bound, sizeof(number_bound));
		return;
	}
	memcpy(&count, limit, sizeof(count));
	memcpy(&count_bound, bound, sizeof(count_bound));
	const bool is_space = row->offset == offsetof(struct policy_limits, free_space);
	if (is_space ? count < count_bound : count == 0 || count > count_bound)
		memcpy(limit, &count_bound, sizeof(count_bound));
}

/* Add the rules of `deny_commands` to those of POLICY. */
static void cut_commands(const struct ceiling *ceiling, struct policy *policy)
{
	const struct value *rules = value_member(ceiling->said, "deny_commands");
	struct commands *own = policy->commands, *ours;

	if (rules == NULL)
		return;
	auto_value struct value *object = denying(rules);
	ours = commands_new(object);
	policy->commands = commands_both(own, ours);
	commands_free(own);
	commands_free(ours);
}

/* Nothing is shown that is masked unless a policy says otherwise. */
static void cut_secrets(struct policy_secrets *secrets, struct buf *told)
{
	if (secrets->shown)
		tell(told, "secrets", "show", "secrets");
	secrets->shown = false;
	for (; secrets->show.count > 0; secrets->show.count--) {
		struct policy_path *entry = &secrets->show.items[secrets->show.count - 1];

		tell(told, "secrets", entry->text, "secrets");
		free(entry->text);
		free(entry->path);
		free(entry->pattern);
	}
}

bool ceiling_cut(const struct ceiling *ceiling, const char *workspace,
		 struct policy *policy, struct buf *told, struct err *err)
{
	const char *key;

	if (ceiling == NULL)
		return true;
	key = ceiling_of_path(ceiling, workspace, false);
	if (key != NULL)
		return ceiling_refuse(workspace, key, err);
	cut_hosts(ceiling, policy, told);
	cut_credentials(ceiling, &policy->credentials, told);
	cut_ports(ceiling, policy, told);
	cut_commands(ceiling, policy);
	cut_paths(ceiling, &policy->write, true, &policy->read, told);
	cut_paths(ceiling, &policy->read, false, &policy->read, told);
	cover(ceiling, policy);
	if (ceiling->asks_nobody)
		policy_ask_nobody(policy);
	if (value_member(ceiling->said, "secrets") != NULL)
		cut_secrets(&policy->secrets, told);
	for (const struct row *row = config_limit_rows; row->name != NULL; row++) {
		if (value_member(ceiling->limits, row->name) != NULL)
			cut_limit(row, &ceiling->at_most, &policy->limits);
	}
	return true;
}

static bool check_paths_of(const struct ceiling *ceiling,
			   const struct policy_paths *paths, bool writes, struct err *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *key = ceiling_of_path(ceiling, paths->items[i].path, writes);

		if (key != NULL)
			return ceiling_refuse(paths->items[i].path, key, err);
	}
	return true;
}

bool ceiling_check(const struct ceiling *ceiling, const struct policy *policy,
		   struct err *err)
{
	if (ceiling == NULL)
		return true;
	if (!check_paths_of(ceiling, &policy->write, true, err) ||
	    !check_paths_of(ceiling, &policy->read, false, err))
		return false;
	for (size_t i = 0; i < ceiling->denied_write.count; i++) {
		const char *path = ceiling->denied_write.items[i];

		if (ceiling->denied_write.exists[i] && is_inside(&policy->write, path) &&
		    !lists_path(&policy->read, path) && !lists_path(&policy->blocked, path))
			return ceiling_refuse(path, "deny_write", err);
	}
	return true;
}

double ceiling_wall_s(const struct ceiling *ceiling)
{
	return ceiling != NULL && value_member(ceiling->limits, "wall_s") != NULL
		       ? ceiling->at_most.wall_s
		       : 0;
}

void ceiling_print(const struct ceiling *ceiling, struct buf *out)
{
	if (ceiling == NULL)
		return;
	for (void *at = value_first(ceiling->said); at != NULL;
	     at = value_next(ceiling->said, at)) {
		(void)buf_addf(out, "%s: ", value_key(at));
		(void)value_print(value_at(at), 0, out);
		(void)buf_addc(out, '\n');
	}
}
