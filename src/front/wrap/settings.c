#include "front/wrap/settings.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "front/verb.h"
#include "front/wrap/profile.h"
#include "front/wrap/wrapping.h"
#include "policy/policy.h"
#include "store/database.h"
#include "view/shape.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	SETTINGS_MAX = 1 << 20,
	TOLD_MAX = 1 << 10, /* names of keys in a sentence */
};

/* The file SOURCE, which is shown at PATH, where it is JSON; NULL: it is none. */
static struct value *read_json(const char *source, const char *path)
{
	struct value *settings = NULL;
	struct buf text;

	if (!str_ends(str_of(path), STR(".json")))
		return NULL;
	buf_init(&text, SETTINGS_MAX);
	if (!fd_read_file(source, SETTINGS_MAX, &text, NULL) ||
	    !value_parse(buf_str(&text), VALUE_COMMENTS, &settings, NULL))
		settings = NULL;
	buf_fini(&text);
	return settings;
}

/* Keys stay outside. */

bool wrap_settings_are_secret(const char *name)
{
	static const char *const secrets[] = {"*KEY*",   "*SECRET*",     "*TOKEN*",
					      "*PASSW*", "*CREDENTIAL*", "*COOKIE*"};

	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if (fnmatch(secrets[i], name, FNM_CASEFOLD) == 0)
			return true;
	return false;
}

/* Does TEXT only say where a key is? */
static bool is_reference(struct str text)
{
	size_t i = 0;

	if (text.size == 0 || strchr("$!{", text.data[0]) != NULL)
		return true;
	while (i < text.size && (isupper((unsigned char)text.data[i]) || text.data[i] == '_' ||
				 (i > 0 && isdigit((unsigned char)text.data[i]))))
		i++;
	return i == text.size;
}

/* Is the member NAME with VALUE, of an object `env` or another one, a key? */
static bool is_key(const struct wrapping *wrapping, const char *name,
		   const struct value *value, bool in_env)
{
	static const char *const named[] = {"apiKey", "api_key", "authToken", "auth_token"};
	const struct policy_names *keys = &wrapping->profile.keys;
	bool is = in_env && wrap_settings_are_secret(name);

	for (size_t i = 0; i < keys->count; i++)
		is = is || strcmp(keys->items[i], name) == 0;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		is = is || strcmp(named[i], name) == 0;
	return is && value_kind(value) == VALUE_STRING &&
	       !is_reference(value_str(value)) && !wrapping_is_passed(wrapping, name);
}

/* Remove the keys below VALUE, and append their names to TOLD. */
static void remove_keys(const struct wrapping *wrapping, struct value *value, bool in_env,
			struct buf *told)
{
	for (size_t i = 0; value_kind(value) == VALUE_ARRAY && i < value_count(value); i++)
		remove_keys(wrapping, value_item(value, i), false, told);
	if (value_kind(value) != VALUE_OBJECT)
		return;
	for (void *next, *at = value_first(value); at != NULL; at = next) {
		const char *name = value_key(at);

		next = value_next(value, at);
		if (!is_key(wrapping, name, value_at(at), in_env)) {
			remove_keys(wrapping, value_at(at), strcmp(name, "env") == 0, told);
			continue;
		}
		(void)buf_addf(told, "%s%s", told->size > 0 ? ", " : "", name);
		value_remove(value, name);
	}
}

/* Keep SETTINGS as a file in the person's state; PATH becomes its name. */
static bool keep(const struct value *settings, struct buf *path, struct err *err)
{
	char hex[HASH_HEX + 1], name[HASH_HEX + 16];
	struct buf text;
	bool fine;

	buf_init(&text, 2 * SETTINGS_MAX);
	(void)value_print(settings, VALUE_PRETTY, &text);
	hash_text(buf_str(&text), hex);
	(void)snprintf(name, sizeof(name), WRAPPING_FILES "%s", hex);
	fine = database_state_path(name, path, err) &&
	       fd_replace_file(path->data, buf_str(&text), err);
	buf_fini(&text);
	return fine;
}

bool wrap_settings_show(struct wrapping *wrapping, const char *source, const char *path,
			const char *why, struct err *err)
{
	auto_value struct value *settings = read_json(source, path);
	struct buf told, copy;
	bool fine = true;

	buf_init(&told, TOLD_MAX);
	buf_init(&copy, PATH_MAX);
	remove_keys(wrapping, settings, false, &told);
	if (told.size == 0)
		wrapping_show(wrapping, source, path, why);
	else if ((fine = keep(settings, &copy, err)))
		wrapping_show(wrapping, copy.data, path, "view, without its keys");
	if (fine && told.size > 0 && !options_given(wrapping->options, "explain"))
		(void)verb_complain(CODE_DONE,
				    "wrap: %s: %s stays outside: the cell has a copy without it; "
				    "-e NAME passes a variable in",
				    wrapping_shortened(wrapping, path), told.data);
	buf_fini(&copy);
	buf_fini(&told);
	return fine;
}

/* Programs that the settings run. */

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
			return wrapping_keep(wrapping, &path);
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

		if (path != NULL && access(path, F_OK) == 0 &&
		    !wrapping_shows(wrapping, path))
			(void)verb_complain(CODE_DONE,
					    "wrap: %s %s is not in the cell: -r %s shows it, or "
					    "add it to view in a profile of your own",
					    what, wrapping_shortened(wrapping, path),
					    wrapping_shortened(wrapping, path));
		tell_commands(wrapping, inner,
			      what[0] != '\0'                       ? what
			      : strcmp(value_key(at), "hooks") == 0 ? "hook"
								    : value_key(at));
	}
}

void wrap_settings_tell(struct wrapping *wrapping)
{
	for (size_t i = 0; i < wrapping->shown_count; i++) {
		const struct shape_shown *shown = &wrapping->shown[i];
		auto_value struct value *settings = read_json(shown->source, shown->path);

		tell_commands(wrapping, settings, "");
	}
}
