/*
 * glovebox wrap: runs somebody's own agent, as it is installed, in a cell. The profile
 * (front/wrap/profile.h) says what the agent needs; the cell is that of `exec`, with a home of
 * the agent's own at the path of the person's home.
 *
 * Keys stay outside: the broker puts them into requests (cell/vault.h). A key, or the files
 * of a login, come in only by an option that names them, since every command of the agent
 * can then read them.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/diff.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/config_file.h"
#include "front/embedded/embedded.h"
#include "front/hands/hands.h"
#include "front/hands/shells.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "front/verbs/exec.h"
#include "front/wrap/home.h"
#include "front/wrap/profile.h"
#include "front/wrap/settings.h"
#include "front/wrap/wrapping.h"
#include "policy/ceiling.h"
#include "policy/config.h"
#include "policy/credentials/credential.h"
#include "policy/policy.h"
#include "store/database.h"
#include "tui/paint.h"
#include "view/shape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NEEDS_MAX = 1 << 20,
	RELEASE_COLUMN = 10,
	LIST_MAX = 64 << 10,
	SHOWN_DIGITS = 16, /* of a hash; more than any two differ in by chance */
	VARIABLE_MAX = 2 * PATH_MAX,
};

/* Finds profiles. */

#define WRAP_FOLDER "wrap/"
#define WRAP_SYSTEM "/etc/glovebox/" WRAP_FOLDER

static bool add_own_folder(const char *name, struct buf *path)
{
	return config_file_beside(WRAP_FOLDER, path) && buf_addf(path, "/%s.json", name);
}

/* The places of profile NAME on disk, in their order; false when there is none. */
static bool find_on_disk(const char *name, struct buf *path)
{
	if (add_own_folder(name, path) && access(path->data, F_OK) == 0)
		return true;
	buf_clear(path);
	(void)buf_addf(path, WRAP_SYSTEM "%s.json", name);
	return access(path->data, F_OK) == 0;
}

static void add_names(const char *folder, struct value *names)
{
	DIR *entries = opendir(folder);

	for (const struct dirent *at = entries != NULL ? readdir(entries) : NULL;
	     at != NULL; at = readdir(entries)) {
		auto_free char *name = memory_copy(at->d_name);
		char *end = strrchr(name, '.');

		if (end == NULL || strcmp(end, ".json") != 0)
			continue;
		*end = '\0';
		if (wrap_profile_name_is_valid(name))
			value_set(names, name, value_new_boolean(true));
	}
	if (entries != NULL)
		(void)closedir(entries);
}

/* All names of profiles, as the members of an object. */
static struct value *profile_names(void)
{
	struct value *names = value_new_object();
	struct buf path;

	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		if (!str_starts(str_of(file->name), STR(WRAP_FOLDER)))
			continue;
		auto_free char *name = memory_copy(file->name + strlen(WRAP_FOLDER));
		*strrchr(name, '.') = '\0';
		value_set(names, name, value_new_boolean(true));
	}
	add_names(WRAP_SYSTEM, names);
	buf_init(&path, PATH_MAX);
	if (config_file_beside(WRAP_FOLDER, &path))
		add_names(path.data, names);
	buf_fini(&path);
	return names;
}

static bool refuse_name(const char *name, struct err *err)
{
	auto_value struct value *names = profile_names();
	auto_free const char **list = memory_array(value_count(names) + 1, sizeof(*list));
	const bool is_valid = wrap_profile_name_is_valid(name);
	const char *nearest;
	size_t count = 0;

	for (void *at = value_first(names); at != NULL; at = value_next(names, at))
		list[count++] = value_key(at);
	nearest = text_nearest(name, list);
	return err_set(err, ENOENT,
		       "wrap: no profile \"%.64s\"%s%s%s glovebox wrap --list names "
		       "them%s%s%s",
		       name, nearest != NULL ? "; did you mean \"" : ".",
		       nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "",
		       is_valid ? ", --new " : "", is_valid ? name : "",
		       is_valid ? " begins one" : "");
}

static bool find_profile(void *context, const char *name, struct buf *text,
			 struct buf *source, struct err *err)
{
	struct str shipped;

	(void)context;
	if (!wrap_profile_name_is_valid(name))
		return refuse_name(name, err);
	if (find_on_disk(name, source))
		return config_file_read(source->data, text, err);
	buf_clear(source);
	(void)buf_addf(source, WRAP_FOLDER "%s.json", name);
	shipped = embedded_text(source->data);
	return shipped.size > 0 ? buf_addstr(text, shipped) : refuse_name(name, err);
}

/* Keeps the needs that a person has accepted, as text in the user's state. */

enum trust { TRUST_NONE, TRUST_CHANGED, TRUST_GIVEN };

static bool trust_path(const char *name, struct buf *path, struct err *err)
{
	char below[WRAP_NAME_MAX + 32];

	(void)snprintf(below, sizeof(below), "wrap/%s.needs", name);
	return database_state_path(below, path, err);
}

static enum trust trust_of(const struct wrapping *wrapping, struct buf *accepted)
{
	enum trust trust = TRUST_NONE;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (wrapping->needs[0] == '\0')
		trust = TRUST_GIVEN;
	else if (trust_path(wrapping->name, &path, NULL) &&
		 fd_read_file(path.data, NEEDS_MAX, accepted, NULL))
		trust = str_is(buf_str(accepted), wrapping->needs) ? TRUST_GIVEN
								   : TRUST_CHANGED;
	buf_fini(&path);
	return trust;
}

static int record_trust(const struct wrapping *wrapping)
{
	struct err err = {0};
	struct buf path;
	bool fine;

	buf_init(&path, PATH_MAX);
	fine = trust_path(wrapping->name, &path, &err) &&
	       fd_replace_file(path.data, str_of(wrapping->needs), &err);
	buf_fini(&path);
	return fine ? CODE_DONE : verb_complain(CODE_FAILED, "%s", err.text);
}

/* Print TEXT, of a profile, exact: a person decides by it. */
static void print_exact(struct str text, FILE *out)
{
	struct buf clean;

	buf_init(&clean, 4 * NEEDS_MAX);
	paint_exact(text, &clean);
	(void)fputs(clean.data, out);
	buf_fini(&clean);
}

/* Append NAME, a path or another word of the profile, as it is shown for a decision. */
static void add_name(struct wrapping *wrapping, const char *name, struct buf *text)
{
	text_add_exact(text, str_of(wrapping_shortened(wrapping,
						       wrapping_expand(wrapping, name))));
}

/* Append a line about NAMES. */
static void add_line(struct wrapping *wrapping, const char *word,
		     const struct policy_names *names, const char *end, struct buf *text)
{
	if (names->count == 0)
		return;
	(void)buf_addf(text, "  %-8s", word);
	for (size_t i = 0; i < names->count; i++) {
		(void)buf_adds(text, i > 0 ? ", " : " ");
		add_name(wrapping, names->items[i], text);
	}
	(void)buf_addf(text, "%s\n", end);
}

/*
 * Print what a person decides about: all that can be read, written and reached, and what is
 * set. `--show` prints it with each file.
 */
static void print_brief(struct wrapping *wrapping, FILE *out)
{
	const struct wrap_profile *profile = &wrapping->profile;
	struct buf text;

	buf_init(&text, NEEDS_MAX);
	(void)buf_addf(&text, "%s would get the workspace, a home of its own, and:\n",
		       wrapping->name);
	add_line(wrapping, "reads", &profile->view, " of yours", &text);
	add_line(wrapping, "reads", &profile->show, "", &text);
	for (size_t i = 0; i < profile->seed_count; i++) {
		(void)buf_adds(&text, "  copies   ");
		add_name(wrapping, profile->seeds[i].path, &text);
		(void)buf_adds(&text, profile->seeds[i].keys.count > 0
					      ? ", a few settings of it\n"
					      : ", all of it\n");
	}
	add_line(wrapping, "writes", &profile->share, ", which is yours", &text);
	add_line(wrapping, "reaches", &profile->hosts, "", &text);
	add_line(wrapping, "opens", &profile->opens, " in your browser, when you agree",
		 &text);
	add_line(wrapping, "uses", &profile->credentials, ": keys, which stay outside",
		 &text);
	add_line(wrapping, "sets", &profile->environment, "", &text);
	add_line(wrapping, "gives", &profile->args, ": arguments", &text);
	(void)buf_addf(&text, "All of it, with each file: glovebox wrap --show %s\n",
		       wrapping->name);
	print_exact(buf_str(&text), out);
	buf_fini(&text);
}

/* Print the needs in short, or the difference to those that were ACCEPTED. */
static void print_needs(struct wrapping *wrapping, enum trust trust,
			const struct buf *accepted, FILE *out)
{
	struct buf diff;

	if (trust == TRUST_NONE) {
		print_brief(wrapping, out);
		return;
	}
	buf_init(&diff, 2 * NEEDS_MAX);
	(void)diff_unified(buf_str(accepted), str_of(wrapping->needs), "accepted", "now",
			   0, &diff, NULL);
	(void)fprintf(out, "What %s would get has changed:\n", wrapping->name);
	print_exact(buf_str(&diff), out);
	buf_fini(&diff);
}

/* Let a person accept the needs, unless that was done before. */
static int ask_for_trust(struct wrapping *wrapping)
{
	struct buf accepted;
	int code = CODE_DONE;
	enum trust trust;

	buf_init(&accepted, NEEDS_MAX);
	trust = trust_of(wrapping, &accepted);
	if (trust != TRUST_GIVEN) {
		print_needs(wrapping, trust, &accepted, stderr);
		if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
			code = verb_complain(CODE_DENIED,
					     "wrap: %s: glovebox wrap --trust %s --hash %.*s",
					     trust == TRUST_NONE ? "not trusted yet"
								 : "not trusted any more",
					     wrapping->name, SHOWN_DIGITS, wrapping->hash);
		else if (talk_confirm(stderr, "Let it have this?"))
			code = record_trust(wrapping);
		else
			code = verb_complain(CODE_DENIED, "wrap: not accepted");
	}
	buf_fini(&accepted);
	return code;
}

/* Keys and logins: kept out, unless an option names them. */

static const char *first_there(struct wrapping *wrapping, const char *home)
{
	const struct policy_names *login = &wrapping->profile.login;
	struct stat st;

	for (size_t i = 0; i < login->count; i++) {
		const char *path = wrapping_expand(wrapping, login->items[i]);
		char below[PATH_MAX];

		if (home != NULL && snprintf(below, sizeof(below), "%s/%s", home,
					     path_relative(path, wrapping->places.home)) >=
					    (int)sizeof(below))
			continue;
		/* An empty file in the home is the place of a copy (front/wrap/home.c). */
		if (lstat(home != NULL ? below : path, &st) == 0 &&
		    (home == NULL || st.st_size > 0))
			return path;
	}
	return NULL;
}

/* Has the person named the credential NAME, by an option or in the configuration? */
static bool is_named(const struct wrapping *wrapping, const struct config *config,
		     const char *name)
{
	for (const char *const *at = options_texts(wrapping->options, "credential");
	     *at != NULL; at++)
		if (strcmp(*at, name) == 0)
			return true;
	return value_member(config_value(config, "credentials"), name) != NULL;
}

/*
 * Find out where the keys of the profile's credentials are. A login is off unless it is
 * named: the person decides whether its tokens are rewritten on their way.
 */
static bool find_keys(struct wrapping *wrapping, struct err *err)
{
	const struct policy_names *names = &wrapping->profile.credentials;
	auto_config struct config *config = NULL;

	if (!config_file_load(options_text(wrapping->options, "config"), &config, err))
		return false;
	wrapping->keys = memory_array(names->count + 1, sizeof(wrapping->keys[0]));
	for (size_t i = 0; i < names->count; i++) {
		struct wrap_key *key = &wrapping->keys[i];
		struct credential credential = {0};
		struct err why = {0};
		struct buf shown;
		bool fine;

		buf_init(&shown, NEEDS_MAX);
		fine = credential_find(config_value(config, "credentials"),
				       names->items[i], &credential, err);
		key->name = arena_copy(&wrapping->arena, str_of(names->items[i]));
		if (fine && setup_credential_is_there(&credential, &shown, &why))
			key->source = arena_copy(&wrapping->arena, buf_str(&shown));
		else
			key->why = arena_copy(&wrapping->arena, str_of(why.text));
		key->wrong = fine && key->source == NULL && why.code != ENOENT;
		key->off = fine && credential.refresh.url != NULL &&
			   !is_named(wrapping, config, key->name);
		wrapping->key_count++;
		credential_fini(&credential);
		buf_fini(&shown);
		if (!fine)
			return err_while(err, "wrap: the credentials of %s", wrapping->name);
	}
	return true;
}

/* The first credential whose key is there, of those that are OFF or not; NULL: none. */
static const struct wrap_key *first_key(const struct wrapping *wrapping, bool off)
{
	for (size_t i = 0; i < wrapping->key_count; i++) {
		if (wrapping->keys[i].source != NULL && wrapping->keys[i].off == off)
			return &wrapping->keys[i];
	}
	return NULL;
}

/* Say that no key is there, and where it was looked for. */
static int tell_no_key(struct wrapping *wrapping)
{
	const struct policy_names *keys = &wrapping->profile.keys;
	const struct policy_names *logins = &wrapping->profile.login;
	const char *login =
		logins->count > 0
			? wrapping_shortened(wrapping,
					     wrapping_expand(wrapping, logins->items[0]))
			: NULL;
	struct buf places;
	int code;

	buf_init(&places, NEEDS_MAX);
	for (size_t i = 0; i < wrapping->key_count; i++)
		if (wrapping->keys[i].why != NULL)
			(void)buf_addf(&places, "%s%s", places.size > 0 ? ", " : "",
				       wrapping->keys[i].why);
	if (places.size == 0)
		(void)buf_addf(&places, "%s is not set%s%s%s",
			       keys->count > 0 ? keys->items[0] : "its variable",
			       login != NULL ? " and " : "", login != NULL ? login : "",
			       login != NULL ? " is not there" : "");
	code = verb_complain(CODE_DENIED,
			     "wrap: no key for %s: %s. Log in outside, or set it there; "
			     "--no-credential starts without one",
			     wrapping->name, places.data);
	buf_fini(&places);
	return code;
}

/* Is there a key that the agent gets, or none that it needs? Else say which and how. */
static int check_key(struct wrapping *wrapping)
{
	const struct policy_names *keys = &wrapping->profile.keys;
	const struct wrap_key *off = first_key(wrapping, true);
	const char *set = NULL, *login;

	for (size_t i = 0; i < keys->count; i++) {
		if (wrapping_is_passed(wrapping, keys->items[i]))
			return CODE_DONE;
		if (set == NULL && config_file_variable(keys->items[i]) != NULL)
			set = keys->items[i];
	}
	if (options_given(wrapping->options, "no-credential") ||
	    (keys->count == 0 && wrapping->profile.login.count == 0 &&
	     wrapping->key_count == 0))
		return CODE_DONE;
	login = first_there(wrapping, NULL);
	if (options_given(wrapping->options, "login"))
		return login != NULL
			       ? CODE_DONE
			       : verb_complain(CODE_DENIED,
					       "wrap: --login: %s has no login here; log in outside",
					       wrapping->name);
	wrapping->keys_used = first_key(wrapping, false) != NULL;
	if (wrapping->keys_used || *options_texts(wrapping->options, "credential") != NULL ||
	    first_there(wrapping, wrapping->home.folder) != NULL)
		return CODE_DONE;
	for (size_t i = 0; i < wrapping->key_count; i++) {
		if (wrapping->keys[i].wrong && !wrapping->keys[i].off)
			return verb_complain(CODE_DENIED, "wrap: no key for %s: %s: %s",
					     wrapping->name, wrapping->keys[i].name,
					     wrapping->keys[i].why);
	}
	if (off != NULL)
		return verb_complain(
			CODE_DENIED,
			"wrap: %s is a login of %s, and logins are kept out until they are "
			"named. --credential %s keeps its tokens outside and puts them into "
			"requests; --login shows it as it is: the agent and its commands can "
			"then read and change it; --no-credential starts without it",
			off->source, wrapping->name, off->name);
	if (set != NULL)
		return verb_complain(CODE_DENIED,
				     "wrap: %s is set, and keys are kept out. -e %s passes it in "
				     "as it is: the agent and its commands can then read it; "
				     "--no-credential starts without it",
				     set, set);
	if (login != NULL)
		return verb_complain(
			CODE_DENIED,
			"wrap: %s is the login of %s, and logins are kept out. --login "
			"shows it as it is: the agent and its commands can then read and "
			"change it; --no-credential starts without it",
			wrapping_shortened(wrapping, login), wrapping->name);
	return tell_no_key(wrapping);
}

/* Makes the policy of the cell from the profile and the options. */

/* Does a file of the profile's own take the place of PATH? */
static bool is_text(struct wrapping *wrapping, const char *path)
{
	for (size_t i = 0; i < wrapping->profile.file_count; i++) {
		if (strcmp(wrapping_expand(wrapping, wrapping->profile.files[i].path),
			   path) == 0)
			return true;
	}
	return false;
}

/* Show the person's files that the profile views, where they are. */
static bool show_files(struct wrapping *wrapping, const struct policy_names *paths,
		       const char *why, struct err *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = wrapping_expand(wrapping, paths->items[i]);
		auto_free char *real = realpath(path, NULL);

		if (real != NULL && !wrapping_shows(wrapping, path) &&
		    !is_text(wrapping, path) &&
		    !wrap_settings_show(wrapping, real, path, why, err))
			return false;
	}
	return true;
}

static void add_logins(struct wrapping *wrapping, struct value *list)
{
	const struct policy_names *login = &wrapping->profile.login;

	for (size_t i = 0; options_given(wrapping->options, "login") && i < login->count;
	     i++) {
		const char *path = wrapping_expand(wrapping, login->items[i]);

		if (access(path, F_OK) == 0)
			value_append(list, value_new_text(path));
	}
}

/* Is the credential NAME used: one of the profile, or one that the person has named? */
static bool is_used(const struct wrapping *wrapping, const char *name)
{
	for (size_t i = 0; wrapping->keys_used && i < wrapping->key_count; i++) {
		const struct wrap_key *key = &wrapping->keys[i];

		if (strcmp(key->name, name) == 0 && key->source != NULL && !key->off)
			return true;
	}
	return is_named(wrapping, NULL, name);
}

/* The cell gets copies of the files of logins whose tokens stay outside. */
static void copy_logins(struct wrapping *wrapping)
{
	const struct wrap_profile *profile = &wrapping->profile;
	struct shape_home *home = &wrapping->home;

	wrapping->logins =
		memory_array(profile->login.count + 1, sizeof(wrapping->logins[0]));
	for (size_t i = 0; i < profile->login.count; i++) {
		const char *name = profile->login_credentials.items[i];

		if (options_given(wrapping->options, "login") || !is_used(wrapping, name))
			continue;
		wrapping->logins[home->login_count++] = (struct spec_login){
			.path = wrapping_expand(wrapping, profile->login.items[i]),
			.credential = name,
		};
	}
	home->logins = wrapping->logins;
}

/* The names of the profile's credentials that are used when their keys are there. */
static struct value *used_names(const struct wrapping *wrapping)
{
	struct value *names = value_new_array();

	for (size_t i = 0; i < wrapping->key_count; i++)
		if (!wrapping->keys[i].off)
			value_append(names, value_new_text(wrapping->keys[i].name));
	return names;
}

static void add_variables(struct wrapping *wrapping)
{
	static const char *const passed[] = {"COLORTERM", "TERM_PROGRAM",
					     "TERM_PROGRAM_VERSION", "NO_COLOR",
					     "FORCE_COLOR"};
	const struct policy_names *names = &wrapping->profile.environment;
	const char *variable = wrapping->profile.root_variable;
	struct value *list = value_new_array();
	struct buf entry;

	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		value_append(list, value_new_text(passed[i]));
	buf_init(&entry, VARIABLE_MAX);
	for (size_t i = 0; i < names->count; i++) {
		const char *value = strchr(names->items[i], '=') + 1;

		buf_clear(&entry);
		(void)buf_addf(&entry, "%.*s%s", (int)(value - names->items[i]),
			       names->items[i], wrapping_expand(wrapping, value));
		value_append(list, value_new_text(entry.data));
	}
	if (config_file_variable(variable) != NULL) {
		buf_clear(&entry);
		(void)buf_addf(&entry, "%s=%s", variable, wrapping->places.root);
		value_append(list, value_new_text(entry.data));
	}
	buf_fini(&entry);
	value_set(wrapping->policy, "env", list);
}

static bool make_policy(struct wrapping *wrapping, struct err *err)
{
	struct value *write, *said;

	for (size_t i = 0; wrapping->keys_used && i < wrapping->key_count; i++) {
		if (wrapping->keys[i].source != NULL && !wrapping->keys[i].off)
			wrap_profile_use(&wrapping->profile, wrapping->keys[i].name);
	}
	wrapping->policy = wrap_profile_policy(&wrapping->profile);
	wrapping->entry = value_new_object();
	if (!exec_read_flags("wrap", wrapping->options, wrapping->entry, err))
		return false;
	write = value_new_array();
	value_set(wrapping->policy, "write", write);
	said = value_member(wrapping->entry, "write");
	for (size_t i = 0; i < value_count(said); i++)
		value_append(write, value_copy(value_item(said, i)));
	if (said == NULL)
		value_append(write, value_new_text("."));
	value_remove(wrapping->entry, "write");
	if (!wrap_home_share(wrapping, write, err))
		return false;
	add_logins(wrapping, write);
	copy_logins(wrapping);
	if (wrapping->keys_used)
		value_set(wrapping->policy, "credentials", used_names(wrapping));
	add_variables(wrapping);
	return show_files(wrapping, &wrapping->profile.show, "show", err) &&
	       show_files(wrapping, &wrapping->profile.view, "view", err) &&
	       wrap_home_show_texts(wrapping, err);
}

/* Runs the agent. */

/* The words behind the profile's name, without "--". */
static const char *const *own_words(const struct options *options, size_t *count)
{
	const bool is_named = options->word_count > 0; /* not by --show */
	const char *const *words = options->words + is_named;

	*count = options->word_count - is_named;
	if (*count > 0 && strcmp(words[0], "--") == 0) {
		words++;
		(*count)--;
	}
	return words;
}

static void add_words(const char **argv, size_t *count, const struct policy_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		argv[(*count)++] = names->items[i];
}

/* The command of the cell. The caller frees the list. */
static const char **make_argv(struct wrapping *wrapping, size_t *count)
{
	const struct wrap_profile *profile = &wrapping->profile;
	const char *prompt = options_text(wrapping->options, "prompt");
	const char *const *words;
	const char **argv;
	size_t own;

	words = own_words(wrapping->options, &own);
	argv = memory_array(own + profile->args.count + profile->autos.count +
				    profile->prompts.count + WRAPPING_LEAD_MAX + 3,
			    sizeof(*argv));
	*count = 0;
	for (size_t i = 0; i < wrapping->lead_count; i++)
		argv[(*count)++] = wrapping->lead[i];
	argv[(*count)++] = wrapping->program;
	for (size_t i = 0; i < profile->args.count; i++)
		argv[(*count)++] = wrapping_expand(wrapping, profile->args.items[i]);
	/* Nobody answers the questions of an agent that has one prompt. */
	if (options_given(wrapping->options, "auto") || prompt != NULL)
		add_words(argv, count, &profile->autos);
	/* The first word has named the program. */
	for (size_t i = profile->program == NULL; i < own; i++)
		argv[(*count)++] = words[i];
	if (prompt != NULL) {
		add_words(argv, count, &profile->prompts);
		argv[(*count)++] = prompt;
	}
	return argv;
}

static int run_agent(struct wrapping *wrapping, const struct value *more, FILE *out)
{
	auto_free const char **argv = NULL;
	struct policy_names protect = {0};
	struct options options = *wrapping->options;
	struct setup setup = {0};
	struct buf words;
	int code;

	wrap_profile_protected(&wrapping->profile, wrapping->workspace, &protect);
	buf_init(&words, 128);
	(void)buf_addf(&words, "the profile %s", wrapping->name);
	const struct setup_flags flags = {
		.quiet_plugins = true,
		.policy_file = words.data,
		.policy = wrapping->policy,
		.entry = wrapping->entry,
		.credentials = options_texts(&options, "credential"),
		.no_credentials = options_given(&options, "no-credential"),
		.explain = options_given(&options, "explain"),
		.home = &wrapping->home,
		.shown = wrapping->shown,
		.protected_files = (const char *const *)protect.items,
		.wrapped = wrapping->name,
		.opens = (const char *const *)wrapping->profile.opens.items,
		.within = options_text(&options, "within"),
	};
	argv = make_argv(wrapping, &options.word_count);
	options.words = argv;
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		options_fill(&options, "tty", "");
	code = exec_in_cell(&setup, &options, &flags, more, out, NULL);
	setup_fini(&setup);
	policy_names_fini(&protect);
	buf_fini(&words);
	return code;
}

/* Runs an agent that stays outside, with the cell as its hands. */

static bool has_hands(const struct wrapping *wrapping)
{
	return options_given(wrapping->options, "hands") ||
	       (wrapping->profile.hands == HANDS_SERVER &&
		!options_given(wrapping->options, "whole"));
}

/* Add --NAME=TEXT. */
static void add_option(struct wrapping *wrapping, struct value *words, const char *name,
		       const char *text)
{
	struct buf word;

	buf_init(&word, LIST_MAX);
	(void)buf_addf(&word, "--%s=%s", name, text);
	value_append(words, value_new_text(wrapping_keep(wrapping, &word)));
}

/* The options of exec-server: those of this run, with absolute paths. */
static struct value *server_words(struct wrapping *wrapping)
{
	static const char *const once[] = {"timeout", "memory", "pids"};
	static const char *const folders[] = {"write", "read"};
	static const char *const many[] = {"env", "credential", "allow-host",
					   "host-loopback", "publish"};
	const struct options *options = wrapping->options;
	const char *config = options_text(options, "config");
	auto_free char *real = config != NULL ? realpath(config, NULL) : NULL;
	struct value *words = value_new_array();

	value_append(words, value_new_text("exec-server"));
	add_option(wrapping, words, "listen", "stdio");
	add_option(wrapping, words, "workspace", wrapping->workspace);
	if (config != NULL)
		add_option(wrapping, words, "config", real != NULL ? real : config);
	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++)
		if (options_given(options, once[i]))
			add_option(wrapping, words, once[i], options_text(options, once[i]));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const struct value *list = value_member(wrapping->entry, folders[i]);

		for (size_t j = 0; j < value_count(list); j++)
			add_option(wrapping, words, folders[i],
				   value_text(value_item(list, j)));
	}
	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
		for (const char *const *at = options_texts(options, many[i]); *at != NULL;
		     at++)
			add_option(wrapping, words, many[i], *at);
	return words;
}

/* Read the options that the cell of the server gets. */
static int read_hands(struct wrapping *wrapping)
{
	/* Without the cell around all of it, an agent that never asks is not held by anything. */
	static const char *const inside[] = {"fresh", "login", "no-credential",
					     "tty",   "ssh",   "clipboard",
					     "auto",  "prompt"};
	const bool serves = wrapping->profile.hands == HANDS_SERVER;
	struct err err = {0};

	if (wrapping->profile.hands == HANDS_NONE)
		return verb_complain(CODE_USAGE,
				     "wrap: --hands: the profile %s does not say how its commands "
				     "get into the cell; without --hands it runs inside",
				     wrapping->name);
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		if (options_given(wrapping->options, inside[i]))
			return verb_complain(
				CODE_USAGE,
				"wrap: --%s %s: %s stays outside, and only its commands%s are in "
				"the cell",
				inside[i],
				serves ? "goes with --whole" : "goes without --hands",
				wrapping->name, serves ? " and files" : "");
	}
	wrapping->entry = value_new_object();
	return exec_read_flags("wrap", wrapping->options, wrapping->entry, &err)
		       ? CODE_DONE
		       : verb_complain(CODE_USAGE, "%s", err.text);
}

/* Start an agent that gets the cell as its server. */
static int run_with_server(struct wrapping *wrapping, const char *const *argv)
{
	auto_value struct value *words = server_words(wrapping);
	auto_free const char **server =
		memory_array(value_count(words) + 1, sizeof(*server));

	for (size_t i = 0; i < value_count(words); i++)
		server[i] = value_text(value_item(words, i));
	return hands_run(&(struct hands){.root = wrapping->places.root,
					 .variable = wrapping->profile.root_variable,
					 .argv = argv,
					 .server = server});
}

/* Make the cell of commands for USE; NULL: print what it would show. */
static int with_cell(const struct wrapping *wrapping, const struct value *more,
		     const struct exec_use *use, FILE *out)
{
	const struct setup_flags flags = {
		.quiet_plugins = true,
		.entry = wrapping->entry,
		.credentials = options_texts(wrapping->options, "credential"),
		.explain = use == NULL,
	};
	struct setup setup = {0};
	const int code = exec_in_cell(&setup, wrapping->options, &flags, more, out, use);

	setup_fini(&setup);
	return code;
}

/* NAMES with their placeholders replaced, NULL-ended; the caller frees the list. */
static const char **expand_all(struct wrapping *wrapping, const struct policy_names *names)
{
	const char **list = memory_array(names->count + 1, sizeof(*list));

	for (size_t i = 0; i < names->count; i++)
		list[i] = wrapping_expand(wrapping, names->items[i]);
	return list;
}

/* Start an agent that gets a shell whose commands are in the cell. */
static int run_with_shell(struct wrapping *wrapping, const char *const *argv, FILE *out)
{
	const struct wrap_profile *profile = &wrapping->profile;
	auto_free const char **folders = expand_all(wrapping, &profile->folders);
	auto_free const char **returns = expand_all(wrapping, &profile->returns);
	const struct shells shells = {
		.argv = argv,
		.variables = &profile->shell,
		.by_path = profile->shell_path.count > 0,
		.temporary = &profile->temporary,
		.keys = &profile->keys,
		.folders = folders,
		.returns = returns,
	};
	const struct exec_use use = {shells_run, &shells};

	return with_cell(wrapping, NULL, &use, out);
}

static int run_hands(struct wrapping *wrapping, FILE *out)
{
	auto_free const char **argv = NULL;
	size_t count;
	const int code = read_hands(wrapping);

	if (code != CODE_DONE)
		return code;
	argv = make_argv(wrapping, &count);
	return wrapping->profile.hands == HANDS_SERVER
		       ? run_with_server(wrapping, argv)
		       : run_with_shell(wrapping, argv, out);
}

/* Print what the cell of an agent outside would show. */
static int show_hands(struct wrapping *wrapping, const struct value *more, FILE *out)
{
	const int code = read_hands(wrapping);

	return code == CODE_DONE ? with_cell(wrapping, more, NULL, out) : code;
}

/* Fill in everything about the profile NAME but what the state holds. */
static int open_profile(struct wrapping *wrapping, const char *name)
{
	struct err err = {0};
	struct buf needs;

	wrapping->name = name;
	if (!wrap_profile_read(name, find_profile, NULL, &wrapping->profile, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!wrapping_find_places(wrapping, &err))
		return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	buf_init(&needs, NEEDS_MAX);
	(void)wrap_profile_needs(&wrapping->profile, &needs, wrapping->hash);
	wrapping->needs = wrapping_keep(wrapping, &needs);
	return wrap_home_find(wrapping, &err)
		       ? CODE_DONE
		       : verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
}

static int seal(struct wrapping *wrapping, FILE *out)
{
	const struct wrap_profile *profile = &wrapping->profile;
	const char *program = profile->program, *key;
	struct err err = {0};
	size_t count;
	int code;

	if (program == NULL) {
		const char *const *words = own_words(wrapping->options, &count);

		if (count == 0)
			return verb_complain(CODE_USAGE,
					     "wrap: %s names no program; usage: glovebox wrap %s -- "
					     "PROGRAM [ARGS…]",
					     wrapping->name, wrapping->name);
		program = words[0];
	}
	if (options_given(wrapping->options, "auto") && profile->autos.count == 0)
		return verb_complain(CODE_USAGE,
				     "wrap: --auto: the profile %s has no such arguments; give the "
				     "agent's own behind --",
				     wrapping->name);
	if (options_given(wrapping->options, "prompt") && profile->prompts.count == 0)
		return verb_complain(CODE_USAGE,
				     "wrap: --prompt: the profile %s does not say how it is given "
				     "one; add the key \"prompt\", or give the agent's own "
				     "arguments behind --",
				     wrapping->name);
	wrapping_find_program(wrapping, program);
	if (wrapping->program == NULL)
		return verb_complain(CODE_EXEC_NOT_FOUND,
				     "wrap: %s is not installed here: no \"%s\" in PATH. Install it "
				     "outside; nothing is installed from in the cell",
				     wrapping->name, program);
	key = ceiling_of_profile(session_ceiling(), wrapping->name, wrapping->hash);
	if (key != NULL) {
		(void)ceiling_refuse(wrapping->name, key, &err);
		return verb_complain(CODE_DENIED, "wrap: %s", err.text);
	}
	if (has_hands(wrapping))
		return run_hands(wrapping, out);
	if (!find_keys(wrapping, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	code = ask_for_trust(wrapping);
	if (code == CODE_DONE)
		code = check_key(wrapping);
	if (code != CODE_DONE)
		return code;
	if (!make_policy(wrapping, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!wrap_home_prepare(wrapping, &err))
		return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	wrap_settings_tell(wrapping);
	code = run_agent(wrapping, NULL, out);
	wrap_home_end(wrapping);
	return code;
}

/* The forms of the verb that run nothing: --show, --trust, --list, --new. */

static const char *word_of(enum trust trust)
{
	return trust == TRUST_GIVEN     ? "yes"
	       : trust == TRUST_CHANGED ? "changed"
					: "not yet";
}

static enum trust look_at_trust(const struct wrapping *wrapping)
{
	struct buf accepted;
	enum trust trust;

	buf_init(&accepted, NEEDS_MAX);
	trust = trust_of(wrapping, &accepted);
	buf_fini(&accepted);
	return trust;
}

static struct value *describe(struct wrapping *wrapping)
{
	const struct policy_names *keys = &wrapping->profile.keys;
	struct value *told = value_new_object();
	struct value *outside = value_new_array();

	value_set_text(told, "profile", wrapping->name);
	value_set_text(told, "description", wrapping->profile.description);
	value_set_text(told, "form", has_hands(wrapping) ? "hands" : "whole");
	value_set_text(told, "program", wrapping->program);
	value_set_text(told, "version", wrapping_version(wrapping));
	value_set_text(told, "tested", wrapping->profile.tested);
	value_set_text(told, "trusted", word_of(look_at_trust(wrapping)));
	value_set_text(told, "hash", wrapping->hash);
	value_set_text(told, "home", wrapping->home.folder);
	value_set(told, "keys", value_new_texts((const char *const *)keys->items));
	for (size_t i = 0; i < wrapping->key_count; i++) {
		struct value *key = value_new_object();

		value_set_text(key, "name", wrapping->keys[i].name);
		value_set_text(key, "source", wrapping->keys[i].source);
		value_set_boolean(key, "off", wrapping->keys[i].off);
		value_append(outside, key);
	}
	value_set(told, "outside", outside);
	value_set(told, "open",
		  value_new_texts((const char *const *)wrapping->profile.opens.items));
	return told;
}

/* Print what stands above the view of the cell. VERSION: of the program, or NULL. */
static void print_profile(const struct wrapping *wrapping, const char *version, FILE *out)
{
	const struct wrap_profile *profile = &wrapping->profile;
	struct buf head;

	buf_init(&head, NEEDS_MAX);
	(void)buf_addf(&head, "%s: %s\n", wrapping->name,
		       profile->description != NULL ? profile->description
						    : "a profile of yours");
	(void)buf_addf(&head, "Program   %s%s%s (tried with %s)\n",
		       wrapping->program != NULL ? wrapping->program : "not installed",
		       version != NULL ? ", release " : "", version != NULL ? version : "",
		       profile->tested != NULL ? profile->tested : "no release");
	print_exact(buf_str(&head), out);
	buf_fini(&head);
	if (has_hands(wrapping)) {
		(void)fprintf(out, "Form      %s\n\n",
			      profile->hands == HANDS_SERVER
				      ? "hands: it runs outside with its login; its commands and "
					"files are in the cell"
				      : "commands only: this agent's file tools run outside");
		return;
	}
	(void)fprintf(out, "Trusted   %s (%.*s)\n", word_of(look_at_trust(wrapping)),
		      SHOWN_DIGITS, wrapping->hash);
	(void)fprintf(out, "Home      %s\n", wrapping->home.folder);
	(void)fprintf(out, "Keys     ");
	for (size_t i = 0; i < profile->keys.count; i++)
		(void)fprintf(out, " %s", profile->keys.items[i]);
	(void)fprintf(out, "%s\n", profile->keys.count > 0 ? ": kept out" : " none");
	for (size_t i = 0; i < profile->opens.count; i++)
		(void)fprintf(out, "%-9s %s\n", i == 0 ? "Opens" : "",
			      profile->opens.items[i]);
	for (size_t i = 0; i < wrapping->key_count; i++) {
		const struct wrap_key *key = &wrapping->keys[i];

		(void)fprintf(out, "%-9s %s: %s%s%s\n", i == 0 ? "Outside" : "",
			      key->name, key->source != NULL ? key->source : key->why,
			      key->off ? "; a login, off until it is named: --credential "
				       : "",
			      key->off ? key->name : "");
	}
	for (size_t i = 0; i < wrapping->home.login_count; i++)
		(void)fprintf(out, "%-9s %s: a copy, with phantoms for the tokens of %s\n",
			      i == 0 ? "Login" : "", wrapping->home.logins[i].path,
			      wrapping->home.logins[i].credential);
	(void)fputc('\n', out);
}

static int show_profile(struct wrapping *wrapping, FILE *out)
{
	auto_value struct value *more = NULL;
	struct err err = {0};

	if (wrapping->profile.program != NULL)
		wrapping_find_program(wrapping, wrapping->profile.program);
	if (!has_hands(wrapping) && !find_keys(wrapping, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	wrapping->keys_used = wrapping->key_count > 0;
	if (!has_hands(wrapping) && !make_policy(wrapping, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	more = describe(wrapping);
	if (!options_given(wrapping->options, "json"))
		print_profile(wrapping, value_text(value_member(more, "version")), out);
	return has_hands(wrapping) ? show_hands(wrapping, more, out)
				   : run_agent(wrapping, more, out);
}

static int trust_profile(struct wrapping *wrapping)
{
	const char *hash = options_text(wrapping->options, "hash");

	if (hash == NULL)
		return ask_for_trust(wrapping);
	if (!hash_is_valid(hash))
		return verb_complain(CODE_USAGE, "wrap: --hash takes 12 to 64 digits");
	if (!hash_matches(hash, wrapping->hash))
		return verb_complain(CODE_DENIED,
				     "wrap: what %s needs has the hash %.*s now; see glovebox wrap "
				     "--show %s",
				     wrapping->name, SHOWN_DIGITS, wrapping->hash,
				     wrapping->name);
	return record_trust(wrapping);
}

/* Where the key of a profile is, in a word. */
static const char *key_place(struct wrapping *wrapping)
{
	const struct wrap_key *outside = first_key(wrapping, false);

	if (outside != NULL)
		return outside->source;
	for (char *const *key = wrapping->profile.keys.items; key != NULL && *key != NULL;
	     key++)
		if (config_file_variable(*key) != NULL)
			return *key;
	return first_there(wrapping, NULL) != NULL ? "login" : "none";
}

/* The program of ROW, in words; NULL: it is not installed. */
static const char *program_of(const struct value *row)
{
	return value_is_true(value_member(row, "any_program"))
		       ? "that of the command line"
		       : value_text(value_member(row, "program"));
}

/* Print the rows of LIST: the profiles whose program is here, then the names of others. */
static void print_list(const struct value *list, FILE *out)
{
	size_t others = 0;

	(void)fprintf(out, "%-12s %-10s %-24s %-10s %s\n", "profile", "accepted",
		      "key outside", "release", "program");
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *row = value_item(list, i);
		const char *program = program_of(row);
		const char *version = value_text(value_member(row, "version"));
		const bool asks =
			strcmp(value_text(value_member(row, "form")), "hands") != 0;

		others += program == NULL;
		if (program == NULL)
			continue;
		(void)fprintf(out, "%-12s %-10s %-24s ",
			      value_text(value_member(row, "profile")),
			      asks ? value_text(value_member(row, "trusted")) : "needless",
			      value_text(value_member(row, "key")));
		verb_print_name(version != NULL ? version : "-", RELEASE_COLUMN, out);
		(void)fputc(' ', out);
		verb_print_name(program, 0, out);
		(void)fputc('\n', out);
	}
	if (others > 0)
		(void)fprintf(out, "not installed here:");
	for (size_t i = 0; others > 0 && i < value_count(list); i++) {
		const struct value *row = value_item(list, i);

		if (program_of(row) == NULL)
			(void)fprintf(out, " %s", value_text(value_member(row, "profile")));
	}
	(void)fprintf(out,
		      "%sglovebox wrap NAME starts one, and asks first when it was not "
		      "accepted; glovebox wrap --show NAME\n"
		      "prints what it gets. The key stays outside; \"none\": no key was "
		      "found, \"login\": only files of a login.\n",
		      others > 0 ? "\n" : "");
}

static int list_profiles(const struct options *options, FILE *out)
{
	auto_value struct value *names = profile_names();
	auto_value struct value *list = value_new_array();
	struct err err = {0};
	int code = CODE_DONE;

	for (void *at = value_first(names); at != NULL; at = value_next(names, at)) {
		struct wrapping wrapping = {.options = options};
		struct value *row;

		arena_init(&wrapping.arena);
		if (open_profile(&wrapping, value_key(at)) != CODE_DONE) {
			code = CODE_FAILED;
		} else if (!find_keys(&wrapping, &err)) {
			code = verb_complain(setup_code(&err), "%s", err.text);
		} else {
			if (wrapping.profile.program != NULL)
				wrapping_find_program(&wrapping, wrapping.profile.program);
			row = describe(&wrapping);
			value_set_text(row, "key", key_place(&wrapping));
			if (wrapping.profile.program == NULL)
				value_set_boolean(row, "any_program", true);
			value_append(list, row);
		}
		wrapping_fini(&wrapping);
		if (code == CODE_USAGE) /* the configuration, which each profile would meet */
			return code;
	}
	if (options_given(options, "json"))
		return verb_print_json(list, VALUE_PRETTY, out) == CODE_DONE ? code
									     : CODE_FAILED;
	print_list(list, out);
	return code;
}

static bool is_shipped(const char *name)
{
	char file[WRAP_NAME_MAX + 16];

	(void)snprintf(file, sizeof(file), WRAP_FOLDER "%s.json", name);
	return embedded_text(file).size > 0;
}

static int new_profile(const char *name, FILE *out)
{
	static const char begun[] =
		"// All that `glovebox wrap %s` runs and shows; see docs/wrap.md for all keys.\n"
		"{\n"
		"\t\"description\": \"%s\",\n"
		"\t\"program\": \"%s\",\n"
		"\t// its settings: shown, not writable\n"
		"\t\"view\": [\"~/.config/%s\"],\n"
		"\t// the model service that it asks\n"
		"\t\"hosts\": [],\n"
		"\t// the variables that hold its key\n"
		"\t\"keys\": []\n"
		"}\n";
	struct err err = {0};
	struct buf path, text;
	int code = CODE_DONE;

	if (!wrap_profile_name_is_valid(name))
		return verb_complain(CODE_USAGE,
				     "wrap: a name has 1 to %d letters, digits, - and _",
				     WRAP_NAME_MAX);
	if (is_shipped(name))
		return verb_complain(CODE_USAGE,
				     "wrap: %s is shipped, and a profile of that name would take "
				     "its place. One that changes it: glovebox wrap --new my-%s, "
				     "with \"extends\": \"%s\" in it",
				     name, name, name);
	buf_init(&path, PATH_MAX);
	buf_init(&text, LIST_MAX);
	(void)buf_addf(&text, begun, name, name, name, name);
	if (!add_own_folder(name, &path) || !fd_make_folders(path.data, &err)) {
		code = verb_complain(CODE_FAILED, "wrap: there is no folder for it: %s",
				     err.text);
	} else {
		auto_close int fd =
			open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (fd < 0 || !fd_write_all(fd, text.data, text.size, &err))
			code = verb_complain(CODE_FAILED, "wrap: %s: %s", path.data,
					     strerror(errno));
		else
			(void)fprintf(out, "%s\n", path.data);
	}
	buf_fini(&text);
	buf_fini(&path);
	return code;
}

/*
 * Is an option of ours the first word behind the name, with a "--" to come? It would go to
 * the agent, and the "--" with it.
 */
static bool is_behind(const struct options *options)
{
	const char *word = options->word_count > 1 ? options->words[1] : "";
	bool apart;

	for (size_t i = 2; i < options->word_count; i++)
		if (word[0] == '-' && word[1] == '-' && strcmp(word, "--") != 0 &&
		    strcmp(options->words[i], "--") == 0)
			return options_find(options->rows, word, &apart) != NULL;
	return false;
}

static int with_profile(const struct options *options, const char *name, FILE *out)
{
	struct options filled = *options;
	struct wrapping wrapping = {.options = &filled};
	int code;

	if (options_given(options, "show"))
		options_fill(&filled, "explain", "");
	arena_init(&wrapping.arena);
	code = open_profile(&wrapping, name);
	if (code == CODE_DONE && options_given(options, "trust"))
		code = trust_profile(&wrapping);
	else if (code == CODE_DONE && options_given(&filled, "explain"))
		code = show_profile(&wrapping, out);
	else if (code == CODE_DONE)
		code = seal(&wrapping, out);
	wrapping_fini(&wrapping);
	return code;
}

static int wrap_run(const struct options *options, FILE *out)
{
	static const char *const named[] = {"show", "trust", "new"};
	const char *name = options->word_count > 0 ? options->words[0] : NULL;
	const bool runs_nothing = options_given(options, "list") ||
				  options_given(options, "show") ||
				  options_given(options, "explain");

	if (options_given(options, "json") && !runs_nothing)
		return verb_complain(CODE_USAGE, "wrap: --json goes with --show and --list");
	if (options_given(options, "hash") && !options_given(options, "trust"))
		return verb_complain(CODE_USAGE, "wrap: --hash goes with --trust");
	if (options_given(options, "login") && *options_texts(options, "credential") != NULL)
		return verb_complain(CODE_USAGE,
				     "wrap: --login shows a login as it is, and --credential keeps "
				     "keys outside: give one");
	/* The hands of an agent are its own process, which no policy of ours bounds. */
	if (options_given(options, "within") && !options_given(options, "whole"))
		return verb_complain(CODE_USAGE, "wrap: --within goes with --whole");
	if (options_given(options, "hands") && options_given(options, "whole"))
		return verb_complain(CODE_USAGE,
				     "wrap: --hands leaves the agent outside, and --whole runs it "
				     "inside: give one");
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (!options_given(options, named[i]))
			continue;
		if (name != NULL)
			return verb_complain(CODE_USAGE,
					     "wrap: --%s takes one name, and options stand "
					     "before it: glovebox wrap [OPTIONS] --%s NAME",
					     named[i], named[i]);
		name = options_text(options, named[i]);
	}
	if (options_given(options, "list"))
		return list_profiles(options, out);
	if (is_behind(options))
		return verb_complain(
			CODE_USAGE,
			"wrap: %s stands behind %s, where words go to the agent: "
			"options of wrap stand before it (glovebox wrap %s … %s -- …), "
			"and those of the agent behind -- (glovebox wrap %s -- %s …)",
			options->words[1], name, options->words[1], name, name,
			options->words[1]);
	if (name == NULL)
		return verb_complain(CODE_USAGE,
				     "wrap: no profile; usage: glovebox wrap NAME [-- "
				     "ARGS…]; --list names them");
	return options_given(options, "new") ? new_profile(name, out)
					     : with_profile(options, name, out);
}

static const struct option_row wrap_options[] = {
	{"list", 0, OPTION_FLAG, NULL, "print the profiles, and what is here of them"},
	{"show", 0, OPTION_TEXT, "NAME", "print what NAME would get; run nothing",
	 NAMES_PROFILES},
	{"new", 0, OPTION_TEXT, "NAME", "begin a profile NAME in your configuration"},
	{"trust", 0, OPTION_TEXT, "NAME", "accept what NAME needs", NAMES_PROFILES},
	{"hash", 0, OPTION_TEXT, "H", "with --trust: only if its needs have this hash"},
	{"auto", 0, OPTION_FLAG, NULL, "with the arguments by which it stops asking"},
	{"prompt", 0, OPTION_TEXT, "TEXT",
	 "let it work on TEXT alone and end; includes --auto"},
	{"whole", 0, OPTION_FLAG, NULL,
	 "run it inside, also where its profile leaves it outside"},
	{"hands", 0, OPTION_FLAG, NULL,
	 "leave it outside, and run only its commands in the cell (Codex: files as well)"},
	{"fresh", 0, OPTION_FLAG, NULL, "with its home as at the first start"},
	{"within", 0, OPTION_TEXT, "AGENT",
	 "inside, with no right that this agent of the configuration lacks, if it has an entry"},
	{"login", 0, OPTION_FLAG, NULL,
	 "show the files of its login as they are: its commands can read and change them"},
	EXEC_OPTION_ROWS,
	EXEC_ROW_JSON,
	OPTION_ROW_HELP,
	{0},
};

static const char wrap_help[] =
	"Run your own agent, as it is installed, in a cell. Its profile NAME says which\n"
	"program it is, which of your settings it sees (read-only), and which hosts it\n"
	"reaches. It may write in the workspace, and in a home of its own at the path of\n"
	"yours, one for each project; nothing else of your home is there. ARGS go to it.\n\n"
	"The first time you are asked whether it may have what the profile says, and again\n"
	"when that changes. Keys stay outside, and a broker puts them into its requests. -e NAME\n"
	"passes one in as it is, --login shows a login: the agent and each of its commands can\n"
	"then read it.\n\n"
	"Codex stays outside with its login: its commands, patches and files go through the\n"
	"cell (see exec-server). --whole runs it inside, as all others. --hands leaves claude,\n"
	"opencode, goose, qwen and gemini outside: only the commands of their shell are in the\n"
	"cell then, and their own tools for files and the network run outside.\n\n"
	"Files that agents execute themselves (.claude/settings.json, .mcp.json, …) cannot\n"
	"be changed; a new one is put aside and told. There is no time limit. The exit code\n"
	"is the agent's own, or as of `exec`: 125 no cell, 126 not executable, 127 not\n"
	"installed; 2 no such profile, 4 not accepted, or no key.";

const struct verb verb_wrap = {
	.name = "wrap",
	.summary = "run your own agent in a cell",
	.arguments = "NAME [-- ARGS…]",
	.help = wrap_help,
	.example = "  glovebox wrap claude\n"
		   "  glovebox wrap claude -- -p 'What does main.c do?'\n"
		   "  glovebox wrap --show codex\n"
		   "  glovebox wrap --list",
	.options = wrap_options,
	.words_most = VERB_WORDS_ANY,
	.names = NAMES_PROFILES,
	.words_end_options = true,
	.run = wrap_run,
};
