/*
 * glovebox wrap: runs somebody's own agent, as it is installed, in a cell. The profile
 * (front/wrap.h) says what the agent needs; the cell is that of `exec`, with a home of
 * the agent's own at the path of the person's home.
 *
 * Keys stay outside: the broker puts them into requests (cell/vault.h). A key, or the files
 * of a login, come in only by an option that names them, since every command of the agent
 * can then read them.
 */

#include "front/wrap.h"
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
#include "front/hands.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "front/verbs/exec.h"
#include "policy/ceiling.h"
#include "policy/config.h"
#include "policy/credential.h"
#include "policy/policy.h"
#include "store/database.h"
#include "tool/denial.h"
#include "view/shape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	NEEDS_MAX = 1 << 20,
	SEED_MAX = 16 << 20,
	SETTINGS_MAX = 1 << 20,
	PACKAGE_MAX = 1 << 20,
	RELEASE_COLUMN = 10,
	LIST_MAX = 64 << 10,
	STALE_S = 3600, /* a home is made in much less */
	SHEBANG_MAX = 256,
	SCRIPTS_MAX = 4,   /* one after the other, as in the kernel */
	LEAD_MAX = 64,     /* words of their lines */
	SHOWN_DIGITS = 16, /* of a hash; more than any two differ in by chance */
	HOME_DIGITS = 16,
	SHARE_DEPTH = 64,
	HOME_TRIES = 16, /* another start may remove it again and again */
	SHARE_TRIES = 16, /* another wrap may remove it again and again, when it was empty */
	VARIABLE_MAX = 2 * PATH_MAX,
};

/* A credential of the profile, and where its key is. */
struct wrap_key {
	const char *name;
	const char *source; /* "env:ANTHROPIC_API_KEY"; NULL: nowhere */
	const char *why;    /* then: "ANTHROPIC_API_KEY is not set" */
};

/* Everything that one run of the verb knows. */
struct wrapping {
	const struct options *options;
	const char *name; /* of the profile */
	struct wrap_profile profile;
	struct wrap_places places;
	struct arena arena;
	char *workspace;     /* real */
	const char *program; /* its real path; NULL: it is not installed */
	/* the interpreter with its arguments, where the program is run as its argument */
	const char *lead[LEAD_MAX + 1];
	size_t lead_count;
	struct value *policy, *entry; /* the profile's keys of a policy, and the options' */
	struct shape_shown *shown;    /* ends with {0} */
	size_t shown_count;
	struct shape_home home; /* its folder is NULL: there is no state folder */
	int *shares;            /* the open folders of `share`, locked; ends with -1 */
	struct wrap_key *keys;  /* of the profile's credentials */
	size_t key_count;
	bool keys_used;    /* those that are there */
	const char *needs; /* as text, in the arena */
	char hash[HASH_HEX + 1];
};

/* Finds profiles. */

#define WRAP_FOLDER "wrap/"
#define WRAP_SYSTEM "/etc/glovebox/" WRAP_FOLDER

static bool add_own_folder(const char *name, struct buf *path)
{
	return setup_config_beside(WRAP_FOLDER, path) && buf_addf(path, "/%s.json", name);
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
		if (wrap_name_is_valid(name))
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
	if (setup_config_beside(WRAP_FOLDER, &path))
		add_names(path.data, names);
	buf_fini(&path);
	return names;
}

static bool refuse_name(const char *name, struct err *err)
{
	auto_value struct value *names = profile_names();
	auto_free const char **list = memory_array(value_count(names) + 1, sizeof(*list));
	const bool is_valid = wrap_name_is_valid(name);
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
	if (!wrap_name_is_valid(name))
		return refuse_name(name, err);
	if (find_on_disk(name, source))
		return setup_config_read(source->data, text, err);
	buf_clear(source);
	(void)buf_addf(source, WRAP_FOLDER "%s.json", name);
	shipped = setup_embedded_text(source->data);
	return shipped.size > 0 ? buf_addstr(text, shipped) : refuse_name(name, err);
}

/* Finds the places of the person: home, the agent's own folder, the workspace. */

static const char *keep_buf(struct wrapping *wrapping, struct buf *text)
{
	const char *kept = arena_copy(&wrapping->arena, buf_str(text));

	buf_fini(text);
	return kept;
}

/* Is the variable NAME set here, to more than nothing? */
static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0';
}

static const char *expand(struct wrapping *wrapping, const char *text)
{
	struct buf out;

	buf_init(&out, PATH_MAX);
	(void)wrap_expand(&wrapping->places, text, &out);
	return keep_buf(wrapping, &out);
}

static bool find_home(struct wrapping *wrapping, struct err *err)
{
	const char *home = getenv("HOME");
	struct buf normal;

	buf_init(&normal, PATH_MAX / 2);
	if (home == NULL || home[0] != '/' || !path_normal("/", home, &normal) ||
	    normal.size < 2 || access(normal.data, F_OK) < 0) {
		buf_fini(&normal);
		return err_set(err, ENOENT,
			       "wrap: HOME names no folder, and the agent's settings are found "
			       "from there");
	}
	wrapping->places.home = keep_buf(wrapping, &normal);
	return true;
}

static bool find_root(struct wrapping *wrapping, struct err *err)
{
	const struct wrap_profile *profile = &wrapping->profile;
	const char *variable = profile->root_variable;
	const char *given = variable != NULL && is_set(variable) ? getenv(variable) : NULL;
	struct buf normal;

	if (profile->root_folder == NULL)
		return true;
	if (given == NULL) {
		wrapping->places.root = expand(wrapping, profile->root_folder);
		return true;
	}
	buf_init(&normal, PATH_MAX);
	if (given[0] != '/' || !path_normal("/", given, &normal) ||
	    !path_within(normal.data, wrapping->places.home) ||
	    strcmp(normal.data, wrapping->places.home) == 0) {
		buf_fini(&normal);
		return err_set(err, EINVAL,
			       "wrap: %s=%.200s is not below your home (%s): the cell has a "
			       "home of its own there, and nothing beside it. Move the folder, or "
			       "unset the variable",
			       variable, given, wrapping->places.home);
	}
	wrapping->places.root = keep_buf(wrapping, &normal);
	return true;
}

static bool find_workspace(struct wrapping *wrapping, struct err *err)
{
	const char *folder = options_text(wrapping->options, "workspace");

	wrapping->workspace = realpath(folder != NULL ? folder : ".", NULL);
	wrapping->places.workspace = wrapping->workspace;
	return wrapping->workspace != NULL ||
	       err_set(err, errno, "workspace %s: %s", folder != NULL ? folder : ".",
		       strerror(errno));
}

/* PATH as the person writes it: "~/…" below the home. */
static const char *shortened(struct wrapping *wrapping, const char *path)
{
	const char *home = wrapping->places.home;
	struct buf text;

	if (!path_within(path, home) || strcmp(path, home) == 0)
		return path;
	buf_init(&text, PATH_MAX);
	(void)buf_addf(&text, "~/%s", path_relative(path, home));
	return keep_buf(wrapping, &text);
}

/* Finds the program, and what it needs to run. */

static void show(struct wrapping *wrapping, const char *source, const char *path,
		 const char *why)
{
	wrapping->shown = memory_grow(wrapping->shown, wrapping->shown_count + 2,
				      sizeof(wrapping->shown[0]));
	wrapping->shown[wrapping->shown_count++] = (struct shape_shown){
		arena_copy(&wrapping->arena, str_of(source)),
		arena_copy(&wrapping->arena, str_of(path)),
		why,
	};
	wrapping->shown[wrapping->shown_count] = (struct shape_shown){0};
}

/* Does the cell have PATH without our doing? */
static bool is_shown(const struct wrapping *wrapping, const char *path)
{
	if (denial_system_folder_around(path, FOLDER_SYSTEM) != NULL ||
	    (wrapping->workspace != NULL && path_within(path, wrapping->workspace)))
		return true;
	for (size_t i = 0; i < wrapping->shown_count; i++)
		if (path_within(path, wrapping->shown[i].path))
			return true;
	return false;
}

/* The real path of the program NAME, from PATH unless it has a slash; NULL: none. */
static const char *find_program(struct wrapping *wrapping, const char *name)
{
	struct str rest = str_of(getenv("PATH") != NULL ? getenv("PATH") : "/usr/bin:/bin");
	char file[PATH_MAX];
	struct str folder;
	struct stat st;

	if (strchr(name, '/') != NULL)
		rest = STR(".");
	while (path_next_folder(&rest, &folder)) {
		if (snprintf(file, sizeof(file), "%.*s/%s",
			     name[0] == '/' ? 0 : (int)folder.size, folder.data,
			     name) >= (int)sizeof(file))
			continue;
		auto_free char *real = realpath(file, NULL);
		if (real != NULL && stat(real, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(real, X_OK) == 0)
			return arena_copy(&wrapping->arena, str_of(real));
	}
	return NULL;
}

/*
 * Cut PATH, of a file, to the folder of the package it lies in: the outermost node_modules,
 * or a Python environment. False: the file stands by itself.
 */
static bool cut_to_package(char *path)
{
	static const char modules[] = "/node_modules/";
	char *found = strstr(path, modules);
	char mark[PATH_MAX];

	if (found != NULL) {
		found[sizeof(modules) - 2] = '\0';
		return true;
	}
	for (char *slash = strrchr(path, '/'); slash != NULL && slash != path;
	     slash = strrchr(path, '/')) {
		*slash = '\0';
		if (snprintf(mark, sizeof(mark), "%s/pyvenv.cfg", path) < (int)sizeof(mark) &&
		    access(mark, F_OK) == 0)
			return true;
	}
	return false;
}

static void show_package(struct wrapping *wrapping, const char *file, const char *why)
{
	auto_free char *package = memory_copy(file);

	if (is_shown(wrapping, file))
		return;
	if (cut_to_package(package) && !path_within(wrapping->places.home, package))
		show(wrapping, package, package, why);
	else
		show(wrapping, file, file, why);
}

/*
 * An interpreter below a home brings its library along, beside the folder bin. A folder
 * that holds more than one program (~/.local) is not shown for it.
 */
static void show_interpreter(struct wrapping *wrapping, const char *real)
{
	static const char why[] = "the program's interpreter";
	auto_free char *prefix = memory_copy(real);
	char library[PATH_MAX];

	if (is_shown(wrapping, real))
		return;
	for (int i = 0; i < 2 && strrchr(prefix, '/') != NULL; i++)
		*strrchr(prefix, '/') = '\0';
	if (path_depth(real) > 3 &&
	    snprintf(library, sizeof(library), "%s/lib", prefix) > 0 &&
	    access(library, F_OK) == 0 && !path_within(wrapping->places.home, prefix) &&
	    strcmp(path_base_name(prefix), ".local") != 0)
		show(wrapping, prefix, prefix, why);
	else
		show(wrapping, real, real, why);
}

/*
 * Put WORD in front of the command that runs the program. A chain of scripts that has more
 * words than the kernel follows is left to the kernel, which refuses it.
 */
static void lead_by(struct wrapping *wrapping, size_t at, const char *word)
{
	if (wrapping->lead_count == LEAD_MAX)
		return;
	memmove(&wrapping->lead[at + 1], &wrapping->lead[at],
		(wrapping->lead_count - at) * sizeof(wrapping->lead[0]));
	wrapping->lead[at] = word;
	wrapping->lead_count++;
}

/*
 * Show the program that the line "#!" of FILE names, and put it in front of the command, with
 * its arguments. Returns its real path, or NULL when FILE is no script or its interpreter is
 * missing. *BY_PATH becomes true when the cell would not find it as the line names it: the
 * PATH of the cell lacks its folder, or the name is a link, and only the file is shown.
 */
static const char *follow_line(struct wrapping *wrapping, const char *file, bool *by_path)
{
	auto_close int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[SHEBANG_MAX];
	struct str line, word, words;
	ssize_t size = fd >= 0 ? read(fd, head, sizeof(head)) : -1;
	const char *real;
	bool splits = true;
	size_t at = 0;

	if (size < 3 || memcmp(head, "#!", 2) != 0)
		return NULL;
	words = (struct str){head + 2, (size_t)size - 2};
	if (!str_next_line(&words, &line) || !str_next_word(&line, &word))
		return NULL;
	auto_free char *named = memory_copy_str(word);
	const bool is_env = strcmp(path_base_name(named), "env") == 0;
	if (is_env) {
		splits = false;
		while (str_next_word(&line, &word) && word.data[0] == '-')
			splits = splits || str_starts(word, STR("-S"));
	}
	auto_free char *wanted = memory_copy_str(word);
	real = find_program(wrapping, wanted);
	if (real == NULL)
		return NULL;
	*by_path = *by_path || ((is_env || strcmp(named, real) != 0) &&
				denial_system_folder_around(real, FOLDER_SYSTEM) == NULL);
	show_interpreter(wrapping, real);
	lead_by(wrapping, at++, real);
	line = str_trim(line);
	/* The kernel gives the rest of the line as one argument, and env -S splits it. */
	if (!is_env && line.size > 0)
		lead_by(wrapping, at, arena_copy(&wrapping->arena, line));
	while (is_env && splits && str_next_word(&line, &word))
		lead_by(wrapping, at++, arena_copy(&wrapping->arena, word));
	return real;
}

/*
 * Find the interpreters of the script FILE, which may be scripts themselves. The kernel starts
 * them, unless one of them has to be named by its path.
 */
static void follow_script(struct wrapping *wrapping, const char *file)
{
	bool by_path = false;

	for (int i = 0; file != NULL && i < SCRIPTS_MAX; i++)
		file = follow_line(wrapping, file, &by_path);
	if (!by_path)
		wrapping->lead_count = 0;
}

static void find_agent(struct wrapping *wrapping, const char *name)
{
	wrapping->program = find_program(wrapping, name);
	if (wrapping->program == NULL)
		return;
	show_package(wrapping, wrapping->program, "the program");
	follow_script(wrapping, wrapping->program);
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

/* Write TEXT to the new file PATH, whole or not at all. */
static bool write_whole(const char *path, struct str text, struct err *err)
{
	struct buf aside;
	bool fine;

	buf_init(&aside, PATH_MAX);
	(void)buf_addf(&aside, "%s.%d", path, (int)getpid());
	auto_close int fd =
		fd_make_folders(path, err)
			? open(aside.data,
			       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)
			: -1;
	fine = fd >= 0 && fd_write_all(fd, text.data, text.size, err) &&
	       rename(aside.data, path) == 0;
	if (!fine) {
		(void)err_set(err, errno, "%s: %s", path, strerror(errno));
		(void)unlink(aside.data);
	}
	buf_fini(&aside);
	return fine;
}

static int record_trust(const struct wrapping *wrapping)
{
	struct err err = {0};
	struct buf path;
	bool fine;

	buf_init(&path, PATH_MAX);
	fine = trust_path(wrapping->name, &path, &err) &&
	       write_whole(path.data, str_of(wrapping->needs), &err);
	buf_fini(&path);
	return fine ? CODE_DONE : verb_complain(CODE_FAILED, "%s", err.text);
}

/* Print TEXT, of a profile, made safe for a terminal. */
static void print_clean(struct str text, FILE *out)
{
	struct buf clean;

	buf_init(&clean, 4 * NEEDS_MAX);
	(void)text_clean(text, &clean);
	(void)fputs(clean.data, out);
	buf_fini(&clean);
}

/* Print the needs, or the difference to those that were ACCEPTED. */
static void print_needs(const struct wrapping *wrapping, enum trust trust,
			const struct buf *accepted, FILE *out)
{
	struct buf diff;

	if (trust == TRUST_NONE) {
		(void)fprintf(out, "%s would get:\n", wrapping->name);
		print_clean(str_of(wrapping->needs), out);
		return;
	}
	buf_init(&diff, 2 * NEEDS_MAX);
	(void)diff_unified(buf_str(accepted), str_of(wrapping->needs), "accepted", "now",
			   0, &diff, NULL);
	(void)fprintf(out, "What %s would get has changed:\n", wrapping->name);
	print_clean(buf_str(&diff), out);
	buf_fini(&diff);
}

/* Let a person accept the needs, unless that was done before. */
static int ask_for_trust(const struct wrapping *wrapping)
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

/* Does --env pass NAME, or set it? */
static bool is_passed(const struct options *options, const char *name)
{
	const size_t size = strlen(name);

	for (const char *const *at = options_texts(options, "env"); *at != NULL; at++)
		if (strncmp(*at, name, size) == 0 &&
		    ((*at)[size] == '\0' || (*at)[size] == '='))
			return true;
	return false;
}

static const char *first_there(struct wrapping *wrapping, const char *home)
{
	const struct policy_names *login = &wrapping->profile.login;
	struct stat st;

	for (size_t i = 0; i < login->count; i++) {
		const char *path = expand(wrapping, login->items[i]);
		char below[PATH_MAX];

		if (home != NULL && snprintf(below, sizeof(below), "%s/%s", home,
					     path_relative(path, wrapping->places.home)) >=
					    (int)sizeof(below))
			continue;
		if (lstat(home != NULL ? below : path, &st) == 0)
			return path;
	}
	return NULL;
}

/* Find out where the keys of the profile's credentials are. */
static bool find_keys(struct wrapping *wrapping, struct err *err)
{
	const struct policy_names *names = &wrapping->profile.credentials;
	auto_config struct config *config = NULL;

	if (!setup_config_load(options_text(wrapping->options, "config"), &config, err))
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
		wrapping->key_count++;
		credential_fini(&credential);
		buf_fini(&shown);
		if (!fine)
			return err_while(err, "wrap: the credentials of %s", wrapping->name);
	}
	return true;
}

/* The first credential whose key is there; NULL: none. */
static const struct wrap_key *first_key(const struct wrapping *wrapping)
{
	for (size_t i = 0; i < wrapping->key_count; i++) {
		if (wrapping->keys[i].source != NULL)
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
		logins->count > 0 ? shortened(wrapping, expand(wrapping, logins->items[0]))
				  : NULL;
	struct buf places;
	int code;

	buf_init(&places, NEEDS_MAX);
	for (size_t i = 0; i < wrapping->key_count; i++)
		(void)buf_addf(&places, "%s%s", i > 0 ? ", " : "", wrapping->keys[i].why);
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
	const char *set = NULL, *login;

	for (size_t i = 0; i < keys->count; i++) {
		if (is_passed(wrapping->options, keys->items[i]))
			return CODE_DONE;
		if (set == NULL && is_set(keys->items[i]))
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
	wrapping->keys_used = first_key(wrapping) != NULL;
	if (wrapping->keys_used || *options_texts(wrapping->options, "credential") != NULL ||
	    first_there(wrapping, wrapping->home.folder) != NULL)
		return CODE_DONE;
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
			shortened(wrapping, login), wrapping->name);
	return tell_no_key(wrapping);
}

/* The home of the agent in this project, in the user's state. */

static bool find_home_folder(struct wrapping *wrapping, struct err *err)
{
	struct buf key, path;
	char hex[HASH_HEX + 1], name[HASH_HEX + 16];
	bool fine;

	buf_init(&key, PATH_MAX + WRAP_NAME_MAX + 8);
	(void)buf_addf(&key, WRAP_HOME_OF, wrapping->workspace, wrapping->name);
	hash_text(buf_str(&key), hex);
	buf_fini(&key);
	(void)snprintf(name, sizeof(name), "homes/%.*s", HOME_DIGITS, hex);
	buf_init(&path, PATH_MAX / 2);
	fine = database_state_path(name, &path, err);
	wrapping->home.path = wrapping->places.home;
	wrapping->home.held = -1;
	wrapping->home.folder = keep_buf(wrapping, &path);
	return fine;
}

/* Remove the home, for --fresh; a cell that uses it keeps a lock on it. */
static bool remove_home(const struct wrapping *wrapping, struct err *err)
{
	auto_close int fd = open(wrapping->home.folder,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return true;
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, EBUSY,
			       "wrap: --fresh: %s is at work in this project; end it first",
			       wrapping->name);
	fd_folder_remove(wrapping->home.folder);
	return access(wrapping->home.folder, F_OK) < 0 ||
	       err_set(err, EBUSY, "wrap: --fresh: %s could not be removed",
		       wrapping->home.folder);
}

/* Root's cell in somebody else's workspace is of that user, whose home it then is. */
static void give_away(const struct wrapping *wrapping, int fd)
{
	struct stat st;

	if (geteuid() == 0 && stat(wrapping->workspace, &st) == 0 && st.st_uid != 0)
		(void)!fchownat(fd, "", st.st_uid, st.st_gid, AT_EMPTY_PATH);
}

/*
 * Open the folder that holds PATH, of the view, in the home at ROOT, and with MAKE make it.
 * A link is not followed: commands of former runs may have put it there. *LAST becomes the
 * last name of PATH.
 */
static int open_above(const struct wrapping *wrapping, int root, const char *path,
		      bool make, const char **last)
{
	auto_free char *rest = memory_copy(path_relative(path, wrapping->places.home));
	auto_close int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char *next = rest, *name;

	*last = path_base_name(path);
	while (at >= 0 && (name = strsep(&next, "/")) != NULL && next != NULL) {
		const bool made = make && mkdirat(at, name, 0700) == 0;

		if (make && !made && errno != EEXIST)
			return -1;
		int below = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (made && below >= 0)
			give_away(wrapping, below);
		fd_close(&at);
		at = below;
	}
	return fd_take(&at);
}

static bool seed_one(struct wrapping *wrapping, int root, const struct wrap_seed *seed,
		     struct err *err)
{
	const char *path = expand(wrapping, seed->path), *name;
	struct err why = {0};
	struct buf text;
	bool fine = true;

	buf_init(&text, SEED_MAX);
	if (!fd_read_file(path, SEED_MAX, &text, &why)) {
		buf_fini(&text);
		if (why.code != ENOENT)
			(void)verb_complain(CODE_DONE, "wrap: not copied: %s", why.text);
		return true; /* the person may have no such file */
	}
	if (!wrap_seed_pick(seed, &text)) {
		(void)verb_complain(CODE_DONE, "wrap: %s is no JSON and was not copied",
				    shortened(wrapping, path));
	} else {
		auto_close int folder = open_above(wrapping, root, path, true, &name);
		auto_close int fd =
			folder < 0 ? -1
				   : openat(folder, name,
					    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			fine = err_set(err, errno, "wrap: its home: %s: %s", path,
				       strerror(errno));
		else
			fine = fd_write_all(fd, text.data, text.size, err);
		if (fd >= 0)
			give_away(wrapping, fd);
	}
	buf_fini(&text);
	return fine;
}

/* Remove the homes beside PATH that starts were killed over while they made them. */
static void remove_stale(const char *path)
{
	const char *name = path_base_name(path);
	const size_t size = strlen(name);
	char folder[PATH_MAX];
	struct stat st;
	DIR *names;

	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
	names = opendir(folder);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		char stale[PATH_MAX + NAME_MAX];

		if (strncmp(at->d_name, name, size) != 0 || at->d_name[size] != '-' ||
		    fstatat(dirfd(names), at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    time(NULL) - st.st_mtime < STALE_S)
			continue;
		(void)snprintf(stale, sizeof(stale), "%s%s", folder, at->d_name);
		fd_folder_remove(stale);
	}
	if (names != NULL)
		(void)closedir(names);
}

/* Make the home with the person's settings in it, whole or not at all. */
static bool make_home(struct wrapping *wrapping, struct err *err)
{
	const char *path = wrapping->home.folder;
	struct buf aside;
	bool fine = true;

	remove_stale(path);
	if (access(path, F_OK) == 0)
		return true;
	if (!fd_make_folders(path, err))
		return false;
	buf_init(&aside, PATH_MAX);
	(void)buf_addf(&aside, "%s-XXXXXX", path);
	if (mkdtemp(aside.data) == NULL) {
		fine = err_set(err, errno, "wrap: %s: %s", aside.data, strerror(errno));
		buf_fini(&aside);
		return fine;
	}
	auto_close int root = open(aside.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; fine && root >= 0 && i < wrapping->profile.seed_count; i++)
		fine = seed_one(wrapping, root, &wrapping->profile.seeds[i], err);
	/*
	 * Another start may have been faster; then its home is the one, also when it is empty:
	 * a cell may use it.
	 */
	if (!fine || (renameat2(AT_FDCWD, aside.data, AT_FDCWD, path, RENAME_NOREPLACE) < 0 &&
		      (errno != EINVAL || rename(aside.data, path) < 0)))
		fd_folder_remove(aside.data);
	buf_fini(&aside);
	return fine;
}

/*
 * Is there a place in the home at ROOT for SOURCE, which is shown at PATH, or with MAKE a
 * folder for it?
 */
static bool check_place(const struct wrapping *wrapping, int root, const char *source,
			const char *path, bool make, struct err *err)
{
	const char *name;
	struct stat st, shown;

	if (!path_within(path, wrapping->places.home) ||
	    (path_within(path, wrapping->workspace) &&
	     strcmp(path, wrapping->workspace) != 0))
		return true;
	auto_close int folder = open_above(wrapping, root, path, make, &name);
	if (folder < 0 && !make && errno == ENOENT)
		return true;
	if (folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	if (folder >= 0 && !S_ISLNK(st.st_mode) &&
	    (stat(source, &shown) < 0 || S_ISDIR(shown.st_mode) == S_ISDIR(st.st_mode)))
		return true;
	return err_set(err, ELOOP,
		       "wrap: %s has made something else of %s in its home: --fresh gives it a "
		       "new one",
		       wrapping->name, path);
}

/* Make the home, and hold it, so that no other start removes it from now on. */
static bool hold_home(struct wrapping *wrapping, struct err *err)
{
	struct stat st;

	for (int i = 0; i < HOME_TRIES; i++) {
		if (!make_home(wrapping, err))
			return false;
		auto_close int fd = open(wrapping->home.folder,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			break;
		if (fd >= 0 && flock(fd, LOCK_SH) == 0 && fstat(fd, &st) == 0 &&
		    st.st_nlink > 0) {
			wrapping->home.held = fd_take(&fd);
			return true;
		}
		errno = EBUSY;
	}
	return err_set(err, errno, "wrap: its home: %s: %s", wrapping->home.folder,
		       strerror(errno));
}

static bool prepare_home(struct wrapping *wrapping, struct err *err)
{
	const struct value *write = value_member(wrapping->policy, "write");
	char toolchain[PATH_MAX];
	const char *below;

	if ((options_given(wrapping->options, "fresh") && !remove_home(wrapping, err)) ||
	    !hold_home(wrapping, err))
		return false;
	const int root = wrapping->home.held;
	if (!check_place(wrapping, root, wrapping->workspace, wrapping->workspace, true, err))
		return false;
	for (size_t i = 0; i < wrapping->shown_count; i++)
		if (!check_place(wrapping, root, wrapping->shown[i].source,
				 wrapping->shown[i].path, true, err))
			return false;
	for (size_t i = 0; i < value_count(write); i++) {
		const char *path = value_text(value_item(write, i));

		if (path[0] == '/' && !check_place(wrapping, root, path, path, true, err))
			return false;
	}
	/* The cell itself shows these, when they are there. */
	for (size_t at = 0; (below = shape_toolchain_next(&at)) != NULL;) {
		(void)snprintf(toolchain, sizeof(toolchain), "%s/%s",
			       wrapping->places.home, below);
		if (access(toolchain, F_OK) == 0 &&
		    !check_place(wrapping, root, toolchain, toolchain, false, err))
			return false;
	}
	return true;
}

/* Tells of programs that the person's settings run, and which the cell lacks. */

/*
 * The first word of REST, a command, that is a path in the home: "~/…", "$HOME/…" or the path
 * itself. NULL: there is none.
 */
static const char *path_in_home(struct wrapping *wrapping, struct str rest)
{
	static const char *const beginnings[] = {"~/", "$HOME/", "${HOME}/", NULL};
	const char *const home = wrapping->places.home;
	struct str word;

	while (str_next_word(&rest, &word)) {
		while (word.size > 0 && strchr("\"'", word.data[0]) != NULL)
			word = str_part(word, 1, word.size);
		while (word.size > 0 && strchr("\"';", word.data[word.size - 1]) != NULL)
			word.size--;
		for (size_t i = 0; beginnings[i] != NULL; i++) {
			const struct str beginning = str_of(beginnings[i]);
			struct buf path;

			if (!str_starts(word, beginning))
				continue;
			word = str_part(word, beginning.size, word.size);
			buf_init(&path, PATH_MAX);
			(void)buf_addf(&path, "%s/%.*s", home, (int)word.size, word.data);
			return keep_buf(wrapping, &path);
		}
		if (str_starts(word, str_of(home)) && word.size > strlen(home) &&
		    word.data[strlen(home)] == '/')
			return arena_copy(&wrapping->arena, word);
	}
	return NULL;
}

/*
 * Tell of each "command" below VALUE that is outside of the view. WHAT is the key of the
 * settings that it stands below.
 */
static void tell_commands(struct wrapping *wrapping, const struct value *value,
			  const char *what)
{
	for (size_t i = 0; value_kind(value) == VALUE_ARRAY && i < value_count(value); i++)
		tell_commands(wrapping, value_item(value, i), what);
	if (value_kind(value) != VALUE_OBJECT)
		return;
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct value *inner = value_at(at);
		const char *path = strcmp(value_key(at), "command") == 0
					   ? path_in_home(wrapping, value_str(inner))
					   : NULL;

		if (path != NULL && access(path, F_OK) == 0 && !is_shown(wrapping, path))
			(void)verb_complain(CODE_DONE,
					    "wrap: %s %s is not in the cell: add it to view",
					    what, shortened(wrapping, path));
		tell_commands(wrapping, inner,
			      what[0] != '\0'                       ? what
			      : strcmp(value_key(at), "hooks") == 0 ? "hook"
								    : value_key(at));
	}
}

/* Look into the settings that are shown, where they are JSON. */
static void tell_hooks(struct wrapping *wrapping)
{
	for (size_t i = 0; i < wrapping->shown_count; i++) {
		const struct shape_shown *shown = &wrapping->shown[i];
		auto_value struct value *settings = NULL;
		struct buf text;

		if (!str_ends(str_of(shown->path), STR(".json")))
			continue;
		buf_init(&text, SETTINGS_MAX);
		if (fd_read_file(shown->source, SETTINGS_MAX, &text, NULL) &&
		    value_parse(buf_str(&text), VALUE_COMMENTS, &settings, NULL))
			tell_commands(wrapping, settings, "");
		buf_fini(&text);
	}
}

/* Makes the policy of the cell from the profile and the options. */

/* Does a file of the profile's own take the place of PATH? */
static bool is_text(struct wrapping *wrapping, const char *path)
{
	for (size_t i = 0; i < wrapping->profile.file_count; i++) {
		if (strcmp(expand(wrapping, wrapping->profile.files[i].path), path) == 0)
			return true;
	}
	return false;
}

/* Show the person's files that the profile views, where they are. */
static void show_files(struct wrapping *wrapping, const struct policy_names *paths,
		       const char *why)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = expand(wrapping, paths->items[i]);
		auto_free char *real = realpath(path, NULL);

		if (real != NULL && !is_shown(wrapping, path) && !is_text(wrapping, path))
			show(wrapping, real, path, why);
	}
}

/* Keep the texts of `files` in the user's state, and show them from there. */
static bool show_texts(struct wrapping *wrapping, struct err *err)
{
	for (size_t i = 0; i < wrapping->profile.file_count; i++) {
		const struct wrap_file *file = &wrapping->profile.files[i];
		char hex[HASH_HEX + 1], name[HASH_HEX + 16];
		struct buf path, text;
		bool fine;

		buf_init(&text, 2 * WRAP_TEXT_MAX);
		(void)wrap_expand(&wrapping->places, file->text, &text);
		hash_text(buf_str(&text), hex);
		(void)snprintf(name, sizeof(name), "wrap/files/%s", hex);
		buf_init(&path, PATH_MAX);
		fine = database_state_path(name, &path, err) &&
		       write_whole(path.data, buf_str(&text), err);
		buf_fini(&text);
		if (fine)
			show(wrapping, path.data, expand(wrapping, file->path), "files");
		buf_fini(&path);
		if (!fine)
			return false;
	}
	return true;
}

/*
 * Remove all that is no file and no folder below the open folder AT: the agent outside
 * would follow a link that a command has put there. Returns the number.
 */
static size_t remove_links(int at, int depth)
{
	DIR *names = fd_open_names(at);
	char path[NAME_MAX + 32];
	size_t count = 0;
	struct stat st;

	for (const struct dirent *name = names != NULL ? readdir(names) : NULL;
	     name != NULL; name = readdir(names)) {
		if (strcmp(name->d_name, ".") == 0 || strcmp(name->d_name, "..") == 0 ||
		    fstatat(at, name->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    S_ISREG(st.st_mode))
			continue;
		if (!S_ISDIR(st.st_mode)) {
			count += unlinkat(at, name->d_name, 0) == 0;
			continue;
		}
		auto_close int below =
			openat(at, name->d_name,
			       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0 && depth < SHARE_DEPTH) {
			count += remove_links(below, depth + 1);
		} else {
			/* No agent keeps sessions so deep, nor in a folder that is closed. */
			(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", at,
				       name->d_name);
			fd_folder_remove(path);
			count++;
		}
	}
	if (names != NULL)
		(void)closedir(names);
	return count;
}

/* Remove links below the open folder FD, of `share` at PATH, and tell of them. */
static void clear_links(struct wrapping *wrapping, int fd, const char *path)
{
	const size_t links = remove_links(fd, 0);

	if (links > 0)
		(void)verb_complain(CODE_DONE,
				    "wrap: %zu links were removed from %s: the agent outside "
				    "would have followed them",
				    links, shortened(wrapping, path));
}

/*
 * Make and open the folder PATH of `share`. It is locked, so that no other wrap of the
 * project removes it while it is empty.
 */
static int open_share(const struct wrapping *wrapping, const char *path, struct err *err)
{
	struct stat held, named;

	for (int i = 0; i < SHARE_TRIES; i++) {
		if (!fd_make_folders(path, err))
			return -1;
		const bool made = mkdir(path, 0700) == 0;
		if (!made && errno != EEXIST)
			break;
		auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_SH) < 0)
			break;
		if (made)
			give_away(wrapping, fd);
		if (fstat(fd, &held) == 0 && stat(path, &named) == 0 &&
		    held.st_ino == named.st_ino && held.st_dev == named.st_dev)
			return fd_take(&fd);
		errno = EBUSY;
	}
	(void)err_set(err, errno, "wrap: share: %s: %s", path, strerror(errno));
	return -1;
}

/* Add the folders of `share` to LIST. They are made outside when they are not there. */
static bool add_shared(struct wrapping *wrapping, struct value *list, struct err *err)
{
	const struct policy_names *share = &wrapping->profile.share;

	wrapping->shares = memory_array(share->count + 1, sizeof(wrapping->shares[0]));
	wrapping->shares[0] = -1;
	for (size_t i = 0; i < share->count; i++) {
		const char *path = expand(wrapping, share->items[i]);

		if (options_given(wrapping->options, "explain")) {
			if (access(path, F_OK) == 0)
				value_append(list, value_new_text(path));
			continue;
		}
		wrapping->shares[i] = open_share(wrapping, path, err);
		wrapping->shares[i + 1] = -1;
		if (wrapping->shares[i] < 0)
			return false;
		/* A run that was killed has left them. */
		clear_links(wrapping, wrapping->shares[i], path);
		value_append(list, value_new_text(path));
	}
	return true;
}

static void add_logins(struct wrapping *wrapping, struct value *list)
{
	const struct policy_names *login = &wrapping->profile.login;

	for (size_t i = 0; options_given(wrapping->options, "login") && i < login->count;
	     i++) {
		const char *path = expand(wrapping, login->items[i]);

		if (access(path, F_OK) == 0)
			value_append(list, value_new_text(path));
	}
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
			       names->items[i], expand(wrapping, value));
		value_append(list, value_new_text(entry.data));
	}
	if (variable != NULL && is_set(variable)) {
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
		if (wrapping->keys[i].source != NULL)
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
	if (!add_shared(wrapping, write, err))
		return false;
	add_logins(wrapping, write);
	if (wrapping->keys_used)
		value_set(wrapping->policy, "credentials",
			  value_new_texts(
				  (const char *const *)wrapping->profile.credentials.items));
	add_variables(wrapping);
	show_files(wrapping, &wrapping->profile.show, "show");
	show_files(wrapping, &wrapping->profile.view, "view");
	return show_texts(wrapping, err);
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
	const char *const *words;
	const char **argv;
	size_t own;

	words = own_words(wrapping->options, &own);
	argv = memory_array(own + profile->args.count + profile->autos.count + LEAD_MAX + 2,
			    sizeof(*argv));
	*count = 0;
	for (size_t i = 0; i < wrapping->lead_count; i++)
		argv[(*count)++] = wrapping->lead[i];
	argv[(*count)++] = wrapping->program;
	for (size_t i = 0; i < profile->args.count; i++)
		argv[(*count)++] = expand(wrapping, profile->args.items[i]);
	if (options_given(wrapping->options, "auto"))
		add_words(argv, count, &profile->autos);
	/* The first word has named the program. */
	for (size_t i = profile->program == NULL; i < own; i++)
		argv[(*count)++] = words[i];
	return argv;
}

/*
 * Say where sessions went, and take links out of there; a shared folder that stayed empty
 * is removed.
 */
static void end_sessions(struct wrapping *wrapping)
{
	const struct policy_names *share = &wrapping->profile.share;

	for (size_t i = 0; i < share->count; i++) {
		const char *path = expand(wrapping, share->items[i]);

		clear_links(wrapping, wrapping->shares[i], path);
		const bool is_last = flock(wrapping->shares[i], LOCK_EX | LOCK_NB) == 0;
		if (!is_last || (rmdir(path) < 0 && errno == ENOTEMPTY))
			(void)verb_complain(CODE_DONE, "sessions are kept in %s",
					    shortened(wrapping, path));
	}
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
	return wrapping->profile.hands != NULL &&
	       !options_given(wrapping->options, "whole");
}

/* Add --NAME=TEXT. */
static void add_option(struct wrapping *wrapping, struct value *words, const char *name,
		       const char *text)
{
	struct buf word;

	buf_init(&word, LIST_MAX);
	(void)buf_addf(&word, "--%s=%s", name, text);
	value_append(words, value_new_text(keep_buf(wrapping, &word)));
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
	static const char *const inside[] = {"fresh", "login", "no-credential", "tty",
					     "clipboard"};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		if (options_given(wrapping->options, inside[i]))
			return verb_complain(CODE_USAGE,
					     "wrap: --%s goes with --whole: %s stays outside, and only "
					     "its commands and files are in the cell",
					     inside[i], wrapping->name);
	}
	wrapping->entry = value_new_object();
	return exec_read_flags("wrap", wrapping->options, wrapping->entry, &err)
		       ? CODE_DONE
		       : verb_complain(CODE_USAGE, "%s", err.text);
}

static int run_hands(struct wrapping *wrapping)
{
	auto_free const char **argv = NULL;
	auto_free const char **server = NULL;
	auto_value struct value *words = NULL;
	size_t count;
	int code = read_hands(wrapping);

	if (code != CODE_DONE)
		return code;
	words = server_words(wrapping);
	server = memory_array(value_count(words) + 1, sizeof(*server));
	for (size_t i = 0; i < value_count(words); i++)
		server[i] = value_text(value_item(words, i));
	argv = make_argv(wrapping, &count);
	return hands_run(&(struct hands){.root = wrapping->places.root,
					 .variable = wrapping->profile.root_variable,
					 .argv = argv,
					 .server = server});
}

/* Print what the cell of the server would show. */
static int show_hands(struct wrapping *wrapping, const struct value *more, FILE *out)
{
	struct setup setup = {0};
	int code = read_hands(wrapping);

	if (code != CODE_DONE)
		return code;
	const struct setup_flags flags = {
		.quiet_plugins = true,
		.entry = wrapping->entry,
		.credentials = options_texts(wrapping->options, "credential"),
		.explain = true,
	};
	code = exec_in_cell(&setup, wrapping->options, &flags, more, out, NULL);
	setup_fini(&setup);
	return code;
}

/* Fill in everything about the profile NAME but what the state holds. */
static int open_profile(struct wrapping *wrapping, const char *name)
{
	struct err err = {0};
	struct buf needs;

	wrapping->name = name;
	if (!wrap_profile_read(name, find_profile, NULL, &wrapping->profile, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!find_home(wrapping, &err) || !find_root(wrapping, &err) ||
	    !find_workspace(wrapping, &err))
		return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	buf_init(&needs, NEEDS_MAX);
	(void)wrap_profile_needs(&wrapping->profile, &needs, wrapping->hash);
	wrapping->needs = keep_buf(wrapping, &needs);
	return find_home_folder(wrapping, &err)
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
	find_agent(wrapping, program);
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
		return run_hands(wrapping);
	if (!find_keys(wrapping, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	code = ask_for_trust(wrapping);
	if (code == CODE_DONE)
		code = check_key(wrapping);
	if (code != CODE_DONE)
		return code;
	if (!make_policy(wrapping, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!prepare_home(wrapping, &err))
		return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	tell_hooks(wrapping);
	code = run_agent(wrapping, NULL, out);
	end_sessions(wrapping);
	return code;
}

/* The forms of the verb that run nothing: --show, --trust, --list, --new. */

/* The `version` in the file package.json of FOLDER, as JSON; NULL: there is none. */
static const char *package_version(struct wrapping *wrapping, const char *folder)
{
	auto_value struct value *package = NULL;
	const char *version = NULL;
	struct buf path, text;

	buf_init(&path, PATH_MAX);
	buf_init(&text, PACKAGE_MAX);
	(void)buf_addf(&path, "%s/package.json", folder);
	if (fd_read_file(path.data, PACKAGE_MAX, &text, NULL) &&
	    value_parse(buf_str(&text), 0, &package, NULL))
		version = value_text(value_member(package, "version"));
	if (version != NULL)
		version = arena_copy(&wrapping->arena, str_of(version));
	buf_fini(&text);
	buf_fini(&path);
	return version;
}

/*
 * The release of the program that is installed, which is not started for it: that of its
 * package of npm, or a folder or file of its path that is named like a release. NULL:
 * unknown. A workspace is not asked.
 */
static const char *find_version(struct wrapping *wrapping)
{
	const char *program = wrapping->program;

	if (program == NULL || path_within(program, wrapping->workspace))
		return NULL;
	auto_free char *rest = memory_copy(program);
	for (char *slash; (slash = strrchr(rest, '/')) != NULL && slash != rest;) {
		const char *name = slash + 1;
		const char *version;

		if (strcmp(name, "node_modules") == 0)
			return NULL;
		if (name[strspn(name, "0123456789")] == '.' && name[0] != '.' &&
		    name[strspn(name, "0123456789.")] == '\0')
			return arena_copy(&wrapping->arena, str_of(name));
		*slash = '\0';
		version = strstr(rest, "/node_modules/") != NULL
				  ? package_version(wrapping, rest)
				  : NULL;
		if (version != NULL)
			return version;
	}
	return NULL;
}

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
	value_set_text(told, "version", find_version(wrapping));
	value_set_text(told, "tested", wrapping->profile.tested);
	value_set_text(told, "trusted", word_of(look_at_trust(wrapping)));
	value_set_text(told, "hash", wrapping->hash);
	value_set_text(told, "home", wrapping->home.folder);
	value_set(told, "keys", value_new_texts((const char *const *)keys->items));
	for (size_t i = 0; i < wrapping->key_count; i++) {
		struct value *key = value_new_object();

		value_set_text(key, "name", wrapping->keys[i].name);
		value_set_text(key, "source", wrapping->keys[i].source);
		value_append(outside, key);
	}
	value_set(told, "credentials", outside);
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
	print_clean(buf_str(&head), out);
	buf_fini(&head);
	if (has_hands(wrapping)) {
		(void)fprintf(out, "Form      hands: it runs outside with its login; its "
				   "commands and files are in the cell\n\n");
		return;
	}
	(void)fprintf(out, "Trusted   %s (%.*s)\n", word_of(look_at_trust(wrapping)),
		      SHOWN_DIGITS, wrapping->hash);
	(void)fprintf(out, "Home      %s\n", wrapping->home.folder);
	(void)fprintf(out, "Keys     ");
	for (size_t i = 0; i < profile->keys.count; i++)
		(void)fprintf(out, " %s", profile->keys.items[i]);
	(void)fprintf(out, "%s\n", profile->keys.count > 0 ? ": kept out" : " none");
	for (size_t i = 0; i < wrapping->key_count; i++) {
		const struct wrap_key *key = &wrapping->keys[i];

		(void)fprintf(out, "%-9s %s: %s\n", i == 0 ? "Outside" : "", key->name,
			      key->source != NULL ? key->source : key->why);
	}
	(void)fputc('\n', out);
}

static int show_profile(struct wrapping *wrapping, FILE *out)
{
	auto_value struct value *more = NULL;
	struct err err = {0};

	if (wrapping->profile.program != NULL)
		find_agent(wrapping, wrapping->profile.program);
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

static int trust_profile(const struct wrapping *wrapping)
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

static void wrapping_fini(struct wrapping *wrapping)
{
	wrap_profile_fini(&wrapping->profile);
	value_free(wrapping->policy);
	value_free(wrapping->entry);
	if (wrapping->home.path != NULL) /* else nothing was held, and held is 0 */
		fd_close(&wrapping->home.held);
	for (int *at = wrapping->shares; at != NULL && *at >= 0; at++)
		fd_close(at);
	free(wrapping->shares);
	free(wrapping->shown);
	free(wrapping->keys);
	free(wrapping->workspace);
	arena_fini(&wrapping->arena);
}

/* Where the key of a profile is, in a word. */
static const char *key_place(struct wrapping *wrapping)
{
	const struct wrap_key *outside = first_key(wrapping);

	if (outside != NULL)
		return outside->source;
	for (char *const *key = wrapping->profile.keys.items; key != NULL && *key != NULL;
	     key++)
		if (is_set(*key))
			return *key;
	return first_there(wrapping, NULL) != NULL ? "login" : "none";
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
			code = verb_complain(CODE_FAILED, "%s", err.text);
		} else {
			if (wrapping.profile.program != NULL)
				find_agent(&wrapping, wrapping.profile.program);
			row = describe(&wrapping);
			value_set_text(row, "key", key_place(&wrapping));
			value_append(list, row);
		}
		wrapping_fini(&wrapping);
	}
	if (options_given(options, "json"))
		return verb_print_json(list, VALUE_PRETTY, out) == CODE_DONE ? code
									     : CODE_FAILED;
	(void)fprintf(out, "%-12s %-8s %-24s %-10s %s\n", "profile", "trusted", "key",
		      "release", "program");
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *row = value_item(list, i);
		const char *program = value_text(value_member(row, "program"));
		const char *version = value_text(value_member(row, "version"));

		(void)fprintf(out, "%-12s %-8s %-24s ",
			      value_text(value_member(row, "profile")),
			      value_text(value_member(row, "trusted")),
			      value_text(value_member(row, "key")));
		verb_print_name(version != NULL ? version : "-", RELEASE_COLUMN, out);
		(void)fputc(' ', out);
		verb_print_name(program != NULL ? program : "not installed", 0, out);
		(void)fputc('\n', out);
	}
	return code;
}

static int new_profile(const char *name, FILE *out)
{
	static const char begun[] =
		"// What `glovebox wrap %s` runs and shows; see docs/wrap.md for all keys.\n"
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

	if (!wrap_name_is_valid(name))
		return verb_complain(CODE_USAGE,
				     "wrap: a name has 1 to %d letters, digits, - and _",
				     WRAP_NAME_MAX);
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
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (!options_given(options, named[i]))
			continue;
		if (name != NULL)
			return verb_complain(CODE_USAGE,
					     "wrap: --%s takes one name: options stand "
					     "before it",
					     named[i]);
		name = options_text(options, named[i]);
	}
	if (options_given(options, "list"))
		return list_profiles(options, out);
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
	{"whole", 0, OPTION_FLAG, NULL,
	 "run it inside, also where its profile leaves it outside"},
	{"fresh", 0, OPTION_FLAG, NULL, "with its home as at the first start"},
	{"login", 0, OPTION_FLAG, NULL,
	 "show the files of its login as they are: its commands can read and change them"},
	EXEC_OPTION_ROWS,
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
	"cell (see exec-server). --whole runs it inside, as all others.\n\n"
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
