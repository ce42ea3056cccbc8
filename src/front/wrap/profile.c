/* wrap: the table of a profile's keys, how profiles extend each other, and their needs. */

#include "front/wrap/profile.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "broker/broker.h"
#include "policy/autoexec.h"
#include "policy/config.h"
#include "policy/network.h"
#include "tool/denial.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 4096, NEEDS_MAX = 1 << 20 };

/* An agent and all that it starts. */
enum { PROCESSES = 2048 };

/* The keys of a profile. */

/* Does PATH begin with one of BEGINNINGS, and name something below it by a normal path? */
static bool is_path(const char *path, const char *const *beginnings)
{
	const char *rest = NULL;

	for (; *beginnings != NULL && rest == NULL; beginnings++)
		if (strncmp(path, *beginnings, strlen(*beginnings)) == 0)
			rest = path + strlen(*beginnings);
	for (bool more = rest != NULL; more;) {
		const size_t size = strcspn(rest, "/");

		if (size == 0 || (size <= 2 && strncmp(rest, "..", size) == 0))
			return false;
		more = rest[size] == '/';
		rest += size + more;
	}
	return rest != NULL;
}

static bool refuse_path(struct rows_problem *problem, const struct rows_place *below,
			const char *others)
{
	return rows_refuse(problem, below,
			   "a path begins with ~/ or ${ROOT}/%s, and has no .., no . and no "
			   "empty name",
			   others);
}

static const char *const in_home[] = {"~/", "${ROOT}/", NULL};
static const char *const anywhere[] = {"~/", "${ROOT}/", "/", NULL};

static bool check_list(const struct value *value, const char *const *beginnings,
		       const char *others, struct rows_problem *problem)
{
	for (size_t i = 0; i < value_count(value); i++) {
		const struct rows_place below = {.index = i};
		const char *path = value_text(value_item(value, i));

		if (!is_path(path, beginnings))
			return refuse_path(problem, &below, others);
	}
	return true;
}

static bool check_shown(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	return check_list(value, anywhere, ", or /", problem);
}

static bool check_homes(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	return check_list(value, in_home, "", problem);
}

static bool check_folder(const struct row *row, const struct value *value,
			 struct rows_problem *problem)
{
	static const char *const home[] = {"~/", NULL};

	(void)row;
	return is_path(value_text(value), home) ||
	       rows_refuse(problem, NULL,
			   "the folder begins with ~/, and has no .., no . and no empty name");
}

/* Names in a project are relative to its top. */
static bool check_protect(const struct row *row, const struct value *value,
			  struct rows_problem *problem)
{
	static const char *const project[] = {"", NULL};

	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		const struct rows_place below = {.index = i};
		const char *path = value_text(value_item(value, i));

		if (path[0] == '/' || path[0] == '~' || !is_path(path, project))
			return rows_refuse(problem, &below,
					   "a name is relative to the workspace, and has no ..");
	}
	return true;
}

static bool check_hosts(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		const struct rows_place below = {.index = i};
		struct network_entry entry;
		struct err why = {0};

		if (!network_parse_entry(value_str(value_item(value, i)), &entry, &why))
			return rows_refuse(problem, &below, "%s", why.text);
		if (entry.carried)
			return rows_refuse(problem, &below,
					   "a browser opens no tcp:// entry: write host or "
					   "host:port");
	}
	return true;
}

static bool is_list_of_texts(const struct value *value)
{
	bool fine = value_kind(value) == VALUE_ARRAY && value_count(value) > 0;

	for (size_t i = 0; fine && i < value_count(value); i++)
		fine = value_text(value_item(value, i)) != NULL;
	return fine;
}

static bool is_seed(const struct value *value)
{
	return value_is_true(value) || is_list_of_texts(value);
}

static bool is_name(const struct value *value)
{
	return value_str(value).size > 0;
}

static bool is_content(const struct value *value)
{
	return value_text(value) != NULL || value_kind(value) == VALUE_OBJECT;
}

/*
 * Each key of VALUE is a path that begins with one of BEGINNINGS, and its value FITS; OTHERS
 * and MUST are what is said otherwise.
 */
static bool check_paths(const struct value *value, const char *const *beginnings,
			const char *others, bool (*fits)(const struct value *value),
			const char *must, struct rows_problem *problem)
{
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct rows_place below = {.key = value_key(at)};

		if (!is_path(value_key(at), beginnings))
			return refuse_path(problem, &below, others);
		if (value_key(at)[0] == '/' &&
		    (denial_system_folder_around(value_key(at),
						 FOLDER_SYSTEM | FOLDER_KERNEL) != NULL ||
		     denial_system_folder_is(value_key(at), ~0U)))
			return rows_refuse(problem, &below,
					   "a cell has the system's folders as they are, and "
					   "nothing is put into them");
		if (!fits(value_at(at)))
			return rows_refuse(problem, &below, "%s", must);
	}
	return true;
}

/* VALUE is a list of paths, or an object of paths with the names of credentials. */
static bool check_logins(const struct row *row, const struct value *value,
			 struct rows_problem *problem)
{
	(void)row;
	if (value_kind(value) == VALUE_OBJECT)
		return check_paths(value, in_home, "", is_name,
				   "must be the name of a credential", problem);
	return is_list_of_texts(value)
		       ? check_list(value, in_home, "", problem)
		       : rows_refuse(problem, NULL,
				     "must be a list of paths, or an object of them with the "
				     "name of a credential");
}

static bool check_seed(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	(void)row;
	return check_paths(value, in_home, "", is_seed,
			   "must be true (the whole file), or a list of keys", problem);
}

static bool check_files(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	return check_paths(value, anywhere, ", or /", is_content,
			   "must be a text, or an object that becomes JSON", problem);
}

static bool check_env(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	struct buf entry;
	bool fine = true;

	(void)row;
	buf_init(&entry, TEXT_BYTES_MAX);
	for (void *at = value_first(value); fine && at != NULL; at = value_next(value, at)) {
		const struct rows_place below = {.key = value_key(at)};
		struct err why = {0};

		buf_clear(&entry);
		if (value_text(value_at(at)) == NULL)
			fine = rows_refuse(problem, &below, "must be text");
		else if (!buf_addf(&entry, "%s=%s", value_key(at), value_text(value_at(at))))
			fine = rows_refuse(problem, &below, "is too long");
		else if (!policy_check_variable(entry.data, &why))
			fine = rows_refuse(problem, &below, "%s", why.text);
	}
	buf_fini(&entry);
	return fine;
}

static bool check_variables(const struct row *row, const struct value *value,
			    struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		const struct rows_place below = {.index = i};
		const char *name = value_text(value_item(value, i));
		struct err why = {0};

		if (strchr(name, '=') != NULL || strcmp(name, "PATH") == 0 ||
		    !policy_check_variable(name, &why))
			return rows_refuse(problem, &below, "is no name of a variable");
	}
	return true;
}

/* Wildcards stand in the last name only: the folder is the one that is opened outside. */
static bool check_returns(const struct row *row, const struct value *value,
			  struct rows_problem *problem)
{
	static const char *const temporary[] = {"${TMPDIR}/", NULL};

	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		const struct rows_place below = {.index = i};
		const char *path = value_text(value_item(value, i));

		if (!is_path(path, temporary) ||
		    path + strcspn(path, "*?[") < path_base_name(path))
			return rows_refuse(problem, &below,
					   "a name begins with ${TMPDIR}/, has wildcards in its last "
					   "name only, and no ..");
	}
	return true;
}

static bool check_hands(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	return value_text(value) != NULL || value_count(value_member(value, "shell")) > 0 ||
	       value_count(value_member(value, "path")) > 0 ||
	       rows_refuse(problem, NULL, "needs a shell or a path");
}

#define LIST(member) \
	.max = TEXT_BYTES_MAX, .offset = offsetof(struct wrap_profile, member)

static const struct row root_rows[] = {
	{"env", ROW_BYTES, false, "variable that names the folder", .max = 256,
	 .offset = offsetof(struct wrap_profile, root_variable)},
	{"else", ROW_BYTES, true, "the folder where the variable is not set",
	 .max = TEXT_BYTES_MAX, .check = check_folder,
	 .offset = offsetof(struct wrap_profile, root_folder)},
	{0},
};

/* Where an agent takes the address of the broker from, when no variable of its own says it. */
static const struct row door_rows[] = {
	{"files", ROW_VALUES, false, "as `files` of the profile", .check = check_files},
	{"env", ROW_VALUES, false, "as `env`", .check = check_env},
	{"args", ROW_TEXTS, false, "as `args`", .max = TEXT_BYTES_MAX},
	{0},
};

static const struct row hands_rows[] = {
	{"shell", ROW_WORDS, false, "variables that name its shell", LIST(shell),
	 .check = check_variables},
	{"path", ROW_WORDS, false, "programs that it looks for in PATH as its shell",
	 LIST(shell_path), .choices = "bash"},
	{"temporary", ROW_WORDS, false, "variables of its folder for temporary files",
	 LIST(temporary), .check = check_variables},
	{"folders", ROW_WORDS, false, "folders in it that its commands need",
	 LIST(folders), .check = check_returns},
	{"returns", ROW_WORDS, false, "files that its commands write for it outside",
	 LIST(returns), .check = check_returns},
	{0},
};

static const struct row profile_rows[] = {
	{"extends", ROW_BYTES, false, "profile that this one changes", .max = WRAP_NAME_MAX},
	{"description", ROW_BYTES, false, "what it is, for lists", LIST(description)},
	{"program", ROW_BYTES, false,
	 "its name in PATH; absent: the first argument names it", LIST(program)},
	{"tested", ROW_BYTES, false, "the release that it was tried with", LIST(tested)},
	{"root", ROW_OBJECT, false, "the agent's folder, which becomes ${ROOT}",
	 .rows = root_rows},
	{"show", ROW_WORDS, false, "shown read-only beside the program", LIST(show),
	 .check = check_shown},
	{"hands", ROW_EITHER, false, "how it uses the cell when it stays outside",
	 .choices = "codex", .max = TEXT_BYTES_MAX, .rows = hands_rows,
	 .check = check_hands},
	{"view", ROW_WORDS, false, "the person's files that are shown read-only",
	 LIST(view), .check = check_homes},
	{"seed", ROW_VALUES, false, "copied into the home at the first start",
	 .check = check_seed},
	{"share", ROW_WORDS, false, "the person's folders that it may write", LIST(share),
	 .check = check_homes},
	{"login", ROW_ANY, false,
	 "the files of its login; and credentials for copies of them",
	 .check = check_logins},
	{"files", ROW_VALUES, false, "files that the cell shows read-only",
	 .check = check_files},
	{"protect", ROW_WORDS, false, "names in a project that it executes later",
	 LIST(protect), .check = check_protect},
	{"hosts", ROW_WORDS, false, "hosts that it reaches", LIST(hosts)},
	{"open", ROW_WORDS, false, "hosts whose addresses may be opened in the browser",
	 LIST(opens), .check = check_hosts},
	{"keys", ROW_WORDS, false, "variables that hold its key", LIST(keys)},
	{"credentials", ROW_WORDS, false,
	 "its keys that stay outside; used when they are there", LIST(credentials)},
	{"doors", ROW_ENTRIES, false, "credential -> what is added when it is used",
	 .rows = door_rows, .max = 16},
	{"env", ROW_VALUES, false, "variables that it gets", .check = check_env},
	{"args", ROW_TEXTS, false, "arguments before those of the person", LIST(args)},
	{"auto", ROW_TEXTS, false, "arguments of --auto", LIST(autos)},
	{"prompt", ROW_TEXTS, false, "arguments before the prompt of --prompt",
	 LIST(prompts)},
	{"limits", ROW_VALUES, false, "limits, as in a policy"},
	{0},
};

#undef LIST

/* Merges a profile with those that it extends. */

/* Take the members that are null out of OBJECT, at any depth. */
static void drop_nulls(struct value *object)
{
	for (void *at = value_first(object), *next; at != NULL; at = next) {
		next = value_next(object, at);
		if (value_kind(value_at(at)) == VALUE_OBJECT)
			drop_nulls(value_at(at));
		else if (value_kind(value_at(at)) == VALUE_NULL)
			value_remove(object, value_key(at));
	}
}

/* Change BASE by MORE. */
static void merge(struct value *base, const struct value *more)
{
	for (void *at = value_first(more); at != NULL; at = value_next(more, at)) {
		struct value *had = value_member(base, value_key(at));
		const struct value *value = value_at(at);
		const enum value_kind kind = value_kind(value);

		if (kind == VALUE_NULL)
			value_remove(base, value_key(at));
		else if (kind == VALUE_OBJECT && value_kind(had) == VALUE_OBJECT)
			merge(had, value);
		else if (kind == VALUE_ARRAY && value_kind(had) == VALUE_ARRAY)
			for (size_t i = 0; i < value_count(value); i++)
				value_append(had, value_copy(value_item(value, i)));
		else
			value_set(base, value_key(at), value_copy(value));
	}
}

struct reading {
	wrap_find *find;
	void *context;
	const char *names[WRAP_EXTENDS_MAX + 1]; /* from the first one on */
	size_t count;
};

/* The names of READING and NAME, as "a extends b extends a". */
static bool refuse_chain(const struct reading *reading, const char *name, bool is_loop,
			 struct err *err)
{
	struct buf chain;

	buf_init(&chain, ERR_TEXT_MAX);
	for (size_t i = 0; i < reading->count; i++)
		(void)buf_addf(&chain, "%s extends ", reading->names[i]);
	(void)buf_adds(&chain, name);
	(void)err_set(err, ELOOP,
		      is_loop ? "wrap: %s: this goes round; take one `extends` out"
			      : "wrap: %s: profiles extend each other %d deep at most",
		      chain.data, WRAP_EXTENDS_MAX);
	buf_fini(&chain);
	return false;
}

static bool check_whole(const struct value *object, const char *source, struct err *err)
{
	auto_value struct value *checked = value_copy(object);
	auto_value struct value *entry = value_new_object();

	drop_nulls(checked);
	if (!config_check_rows(profile_rows, checked, err))
		return err_while(err, "%s", source);
	if (value_member(checked, "limits") != NULL)
		value_set(entry, "limits", value_copy(value_member(checked, "limits")));
	if (value_member(checked, "hosts") != NULL)
		value_set(entry, "network", value_copy(value_member(checked, "hosts")));
	return config_check_entry(entry, source, err);
}

static bool parse(const char *name, const struct reading *reading, struct value **object,
		  struct err *err)
{
	auto_value struct value *root = NULL;
	struct buf text, source;
	bool fine;

	buf_init(&text, WRAP_TEXT_MAX);
	buf_init(&source, TEXT_BYTES_MAX);
	fine = reading->find(reading->context, name, &text, &source, err);
	if (fine && !value_parse(buf_str(&text), VALUE_COMMENTS, &root, err))
		fine = err_while(err, "%s", source.data);
	fine = fine && check_whole(root, source.data, err);
	buf_fini(&source);
	buf_fini(&text);
	if (fine) {
		*object = root;
		root = NULL;
	}
	return fine;
}

/* Read the profile NAME and, at most WRAP_EXTENDS_MAX deep, those below it. */
static bool read_merged(const char *name, struct reading *reading, struct value **merged,
			struct err *err)
{
	auto_value struct value *own = NULL;
	struct value *base = NULL;

	for (size_t i = 0; i < reading->count; i++)
		if (strcmp(reading->names[i], name) == 0)
			return refuse_chain(reading, name, true, err);
	if (reading->count > WRAP_EXTENDS_MAX)
		return refuse_chain(reading, name, false, err);
	if (!parse(name, reading, &own, err))
		return false;
	reading->names[reading->count++] = name;
	if (value_text(value_member(own, "extends")) == NULL) {
		drop_nulls(own);
		*merged = own;
		own = NULL;
		return true;
	}
	if (!read_merged(value_text(value_member(own, "extends")), reading, &base, err))
		return false;
	value_remove(base, "extends");
	merge(base, own);
	value_remove(base, "extends");
	drop_nulls(base);
	*merged = base;
	return true;
}

/* Fills the struct from the checked object. */

static void take_list(const struct value *list, struct policy_names *names)
{
	names->count = value_count(list);
	names->given = list != NULL;
	names->items = memory_array(names->count + 1, sizeof(names->items[0]));
	for (size_t i = 0; i < names->count; i++)
		names->items[i] = memory_copy(value_text(value_item(list, i)));
}

static void take_rows(const struct row *rows, const struct value *object,
		      struct wrap_profile *profile)
{
	for (const struct row *row = rows; row->name != NULL; row++) {
		const struct value *value = value_member(object, row->name);
		void *place = (char *)profile + row->offset;

		if (row->kind == ROW_OBJECT || row->kind == ROW_EITHER)
			take_rows(row->rows, value, profile);
		else if (row->kind == ROW_BYTES && row->offset > 0)
			*(const char **)place = value_text(value);
		else if (row->kind == ROW_WORDS || row->kind == ROW_TEXTS)
			take_list(value, place);
	}
}

static void take_logins(const struct value *logins, struct wrap_profile *profile)
{
	const bool are_copied = value_kind(logins) == VALUE_OBJECT;
	auto_value struct value *paths = value_new_array();
	auto_value struct value *names = value_new_array();

	for (void *at = value_first(logins); at != NULL; at = value_next(logins, at)) {
		value_append(paths, value_new_text(value_key(at)));
		value_append(names, value_copy(value_at(at)));
	}
	for (size_t i = 0; !are_copied && i < value_count(logins); i++) {
		value_append(paths, value_copy(value_item(logins, i)));
		value_append(names, value_new_text(""));
	}
	take_list(paths, &profile->login);
	take_list(names, &profile->login_credentials);
}

static void take_seeds(const struct value *seeds, struct wrap_profile *profile)
{
	profile->seeds = memory_array(value_count(seeds) + 1, sizeof(profile->seeds[0]));
	for (void *at = value_first(seeds); at != NULL; at = value_next(seeds, at)) {
		struct wrap_seed *seed = &profile->seeds[profile->seed_count++];

		seed->path = value_key(at);
		if (value_kind(value_at(at)) == VALUE_ARRAY)
			take_list(value_at(at), &seed->keys);
	}
}

static void take_files(const struct value *files, struct wrap_profile *profile)
{
	profile->files = memory_array(value_count(files) + 1, sizeof(profile->files[0]));
	for (void *at = value_first(files); at != NULL; at = value_next(files, at)) {
		struct wrap_file *file = &profile->files[profile->file_count++];
		struct buf text;

		buf_init(&text, WRAP_TEXT_MAX);
		if (value_text(value_at(at)) != NULL)
			(void)buf_addstr(&text, value_str(value_at(at)));
		else if (value_print(value_at(at), VALUE_PRETTY, &text))
			(void)buf_addc(&text, '\n');
		file->path = value_key(at);
		file->text = buf_take(&text);
	}
}

static void take_environment(const struct value *env, struct wrap_profile *profile)
{
	struct policy_names *names = &profile->environment;

	names->items = memory_array(value_count(env) + 1, sizeof(names->items[0]));
	for (void *at = value_first(env); at != NULL; at = value_next(env, at)) {
		struct buf entry;

		buf_init(&entry, TEXT_BYTES_MAX);
		(void)buf_addf(&entry, "%s=%s", value_key(at), value_text(value_at(at)));
		names->items[names->count++] = buf_take(&entry);
	}
}

bool wrap_profile_name_is_valid(const char *name)
{
	const size_t size =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			     "0123456789-_");

	return size > 0 && size <= WRAP_NAME_MAX && name[size] == '\0';
}

/* Fill the members of PROFILE from its root. */
static void take_all(struct wrap_profile *profile)
{
	const struct value *hands = value_member(profile->root, "hands");

	profile->hands = hands == NULL               ? HANDS_NONE
			 : value_text(hands) != NULL ? HANDS_SERVER
						     : HANDS_SHELL;
	take_rows(profile_rows, profile->root, profile);
	take_seeds(value_member(profile->root, "seed"), profile);
	take_files(value_member(profile->root, "files"), profile);
	take_logins(value_member(profile->root, "login"), profile);
	take_environment(value_member(profile->root, "env"), profile);
}

static void free_lists(const struct row *rows, struct wrap_profile *profile)
{
	for (const struct row *row = rows; row->name != NULL; row++) {
		if (row->kind == ROW_WORDS || row->kind == ROW_TEXTS)
			policy_names_fini((void *)((char *)profile + row->offset));
		if (row->kind == ROW_EITHER)
			free_lists(row->rows, profile);
	}
}

/* Empty the members that take_all has filled. */
static void free_all(struct wrap_profile *profile)
{
	for (size_t i = 0; i < profile->seed_count; i++)
		policy_names_fini(&profile->seeds[i].keys);
	for (size_t i = 0; i < profile->file_count; i++)
		free(profile->files[i].text);
	free_lists(profile_rows, profile);
	policy_names_fini(&profile->environment);
	policy_names_fini(&profile->login);
	policy_names_fini(&profile->login_credentials);
	free(profile->seeds);
	free(profile->files);
}

bool wrap_profile_read(const char *name, wrap_find *find, void *context,
		       struct wrap_profile *profile, struct err *err)
{
	struct reading reading = {.find = find, .context = context};

	*profile = (struct wrap_profile){0};
	if (!read_merged(name, &reading, &profile->root, err))
		return false;
	profile->name = memory_copy(name);
	take_all(profile);
	if (profile->hands != HANDS_SERVER || profile->root_variable != NULL)
		return true;
	wrap_profile_fini(profile);
	return err_set(err, EINVAL,
		       "wrap: the profile %s has hands, so its root needs an env: the variable "
		       "by which the agent is given its folder",
		       name);
}

void wrap_profile_use(struct wrap_profile *profile, const char *credential)
{
	const struct value *door =
		value_member(value_member(profile->root, "doors"), credential);
	struct wrap_profile all = {.name = profile->name, .root = profile->root};

	if (door == NULL)
		return;
	free_all(profile);
	merge(all.root, door);
	take_all(&all);
	*profile = all;
}

void wrap_profile_fini(struct wrap_profile *profile)
{
	free_all(profile);
	value_free(profile->root);
	free(profile->name);
	*profile = (struct wrap_profile){0};
}

/* Prints a profile's needs, and makes a policy of it. */

/* These say nothing of what an agent may do. */
static const char not_needed[] = "extends description tested protect hands prompt";

static void add_need(const char *key, const char *name, const struct value *value,
		     struct buf *text)
{
	(void)buf_addf(text, "%s%s%s ", key, name != NULL ? " " : "",
		       name != NULL ? name : "");
	(void)value_print(value, VALUE_SORTED, text);
	(void)buf_addc(text, '\n');
}

bool wrap_profile_needs(const struct wrap_profile *profile, struct buf *text,
			char hex[HASH_HEX + 1])
{
	for (const struct row *row = profile_rows; row->name != NULL; row++) {
		const struct value *value = value_member(profile->root, row->name);

		if (value == NULL || str_among(not_needed, str_of(row->name)))
			continue;
		for (size_t i = 0; i < value_count(value); i++)
			if (value_kind(value) == VALUE_ARRAY)
				add_need(row->name, NULL, value_item(value, i), text);
		if (value_kind(value) == VALUE_OBJECT)
			for (void *at = value_first(value); at != NULL;
			     at = value_next(value, at))
				add_need(row->name, value_key(at), value_at(at), text);
		else if (value_kind(value) != VALUE_ARRAY)
			add_need(row->name, NULL, value, text);
	}
	hash_text(buf_str(text), hex);
	return !text->overflowed;
}

struct value *wrap_profile_policy(const struct wrap_profile *profile)
{
	struct value *entry = value_new_object();
	const struct value *limits = value_member(profile->root, "limits");
	struct value *all = limits != NULL ? value_copy(limits) : value_new_object();

	if (value_member(all, "pids") == NULL)
		value_set_integer(all, "pids", PROCESSES);
	value_set(entry, "limits", all);
	if (profile->hosts.count > 0)
		value_set(entry, "network",
			  value_copy(value_member(profile->root, "hosts")));
	value_set_text(entry, "commands", "box");
	return entry;
}

/* Fills in the placeholders. */

/*
 * Agents written in JavaScript replace each unit of UTF-16 that is no letter or digit of
 * ASCII: a character of four bytes in UTF-8 is two units.
 */
static bool add_slug(const char *workspace, struct buf *out)
{
	bool fine = true;

	for (; fine && *workspace != '\0'; workspace++) {
		const unsigned char c = (unsigned char)*workspace;
		const bool is_kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				     (c >= '0' && c <= '9');

		if ((c & 0xc0) == 0x80)
			continue; /* not the first byte of its character */
		fine = is_kept ? buf_addc(out, *workspace)
			       : buf_adds(out, c >= 0xf0 ? "--" : "-");
	}
	return fine;
}

bool wrap_places_expand(const struct wrap_places *places, const char *text, struct buf *out)
{
	const struct str root = STR("${ROOT}"), slug = STR("${SLUG}"),
			 door = STR("${DOOR}"), temporary = STR("${TMPDIR}");
	struct str rest = str_of(text);
	bool fine = true;

	if (str_starts(rest, STR("~/"))) {
		fine = buf_adds(out, places->home);
		rest = str_part(rest, 1, rest.size);
	}
	while (fine && rest.size > 0) {
		if (places->root != NULL && str_starts(rest, root)) {
			fine = buf_adds(out, places->root);
			rest = str_part(rest, root.size, rest.size);
		} else if (str_starts(rest, slug)) {
			fine = add_slug(places->workspace, out);
			rest = str_part(rest, slug.size, rest.size);
		} else if (str_starts(rest, door)) {
			fine = buf_addf(out, "http://127.0.0.1:%d", BROKER_PORT);
			rest = str_part(rest, door.size, rest.size);
		} else if (str_starts(rest, temporary)) {
			fine = buf_adds(out, WRAP_TEMPORARY);
			rest = str_part(rest, temporary.size, rest.size);
		} else {
			fine = buf_addc(out, rest.data[0]);
			rest = str_part(rest, 1, rest.size);
		}
	}
	return fine;
}

bool wrap_seed_pick(const struct wrap_seed *seed, struct buf *text)
{
	auto_value struct value *all = NULL;
	auto_value struct value *picked = value_new_object();

	if (!seed->keys.given)
		return true;
	if (!value_parse(buf_str(text), VALUE_COMMENTS, &all, NULL))
		return false;
	for (size_t i = 0; i < seed->keys.count; i++) {
		const struct value *value = value_member(all, seed->keys.items[i]);

		if (value != NULL)
			value_set(picked, seed->keys.items[i], value_copy(value));
	}
	buf_clear(text);
	return value_print(picked, VALUE_PRETTY, text);
}

void wrap_profile_protected(const struct wrap_profile *profile, const char *workspace,
			    struct policy_names *paths)
{
	const struct policy_names *names = &profile->protect;

	paths->items = memory_array(names->count + 1, sizeof(*paths->items));
	for (size_t i = 0; i < names->count; i++) {
		struct buf path;

		if (autoexec_protects(workspace, names->items[i]) != NULL)
			continue;
		buf_init(&path, PATH_MAX);
		(void)buf_addf(&path, "%s/%s", workspace, names->items[i]);
		paths->items[paths->count++] = buf_take(&path);
	}
}
