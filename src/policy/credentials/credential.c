/* credential: the table of keys, their grammars, and the struct made from an entry. */

#include "policy/credentials/credential.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/credentials/forge.h"
#include "policy/network.h"
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The grammars of texts. Each function returns what is wrong, or NULL. */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

static bool is_made_of(const char *text, const char *characters)
{
	return text[0] != '\0' && text[strspn(text, characters)] == '\0';
}

/* Visible ASCII without blanks: what a header can hold everywhere. */
static bool is_visible(const char *text)
{
	for (; *text > 0x20 && *text < 0x7f; text++)
		;
	return *text == '\0';
}

static const char *name_is_wrong(const char *name)
{
	return is_made_of(name, "abcdefghijklmnopqrstuvwxyz" DIGITS "-_") &&
			       strlen(name) <= CREDENTIAL_NAME_MAX
		       ? NULL
		       : "the name of a credential has 1 to 32 of a-z, 0-9, - and _";
}

/* The parts of a text of `from`. */
struct source_text {
	enum credential_from from;
	const char *text;
	const char *end;  /* of `text` */
	const char *more; /* or NULL */
};

/* The end of the file's name in PATH: "#/", "#=" or "#["; NULL: PATH names no part. */
static const char *part_of_file(const char *path)
{
	const char *mark = strchr(path, '#');

	while (mark != NULL && (mark[1] == '\0' || strchr("/=[", mark[1]) == NULL))
		mark = strchr(mark + 1, '#');
	return mark;
}

/* Is there a name behind the section in MORE, "[SECTION]NAME"? */
static bool has_line_name(const char *more)
{
	const char *end = strchr(more, ']');

	return end != NULL && end > more + 1 && end[1] != '\0';
}

static const char *source_is_wrong(const char *text, struct source_text *parts)
{
	const char *at = strchr(text, ':');

	*parts = (struct source_text){0};
	if (at == NULL)
		return "begins with env:, file: or keyring:";
	parts->text = ++at;
	parts->end = at + strlen(at);
	if (strncmp(text, "env:", 4) == 0) {
		parts->from = FROM_ENV;
		return is_made_of(at, LETTERS DIGITS "_")
			       ? NULL
			       : "env: is followed by the name of a variable";
	}
	if (strncmp(text, "file:", 5) == 0) {
		parts->from = FROM_FILE;
		if (part_of_file(at) != NULL) {
			parts->end = part_of_file(at);
			parts->more = parts->end + 1;
		}
		if ((at[0] != '/' && strncmp(at, "~/", 2) != 0) || parts->end - at <= 2)
			return "the path of file: begins with / or ~/";
		return parts->more == NULL || parts->more[0] == '/' ||
				       (parts->more[0] == '=' && parts->more[1] != '\0') ||
				       (parts->more[0] == '[' && has_line_name(parts->more))
			       ? NULL
			       : "a line of a file is named as #=NAME or #[SECTION]NAME";
	}
	if (strncmp(text, "keyring:", 8) == 0) {
		const char *slash = strchr(at, '/');

		parts->from = FROM_KEYRING;
		parts->end = slash;
		parts->more = slash == NULL ? NULL : slash + 1;
		return slash != NULL && slash > at && slash[1] != '\0'
			       ? NULL
			       : "a keyring is named as keyring:SERVICE/USER";
	}
	return strncmp(text, "command:", 8) == 0
		       ? "a command is an object: {\"command\": [\"pass\", \"show\", \"key\"]}"
		       : "begins with env:, file: or keyring:";
}

/* Headers that say what a message is, or where it goes. */
static bool is_framing(const char *name)
{
	static const char *const names[] = {"Host",           "Connection",
					    "Content-Length", "Transfer-Encoding",
					    "Keep-Alive",     "TE",
					    "Trailer",        "Upgrade",
					    "Expect",         "Range",
					    "Accept-Encoding"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(names[i], name) == 0)
			return true;
	}
	return false;
}

static const char *place_is_wrong(const char *text, struct credential_place *place)
{
	const char *name = text + strcspn(text, ":");

	*place = (struct credential_place){AT_BEARER, ""};
	if (strcmp(text, "bearer") == 0)
		return NULL;
	if (*name == ':')
		name += 1 + strspn(name + 1, " ");
	place->name = name;
	if (strncmp(text, "header:", 7) == 0) {
		place->at = AT_HEADER;
		return is_made_of(name, LETTERS DIGITS "-_") && !is_framing(name)
			       ? NULL
			       : "header: is followed by the name of a header for keys";
	}
	if (strncmp(text, "query:", 6) == 0) {
		place->at = AT_QUERY;
		return is_made_of(name, LETTERS DIGITS "-_.")
			       ? NULL
			       : "query: is followed by a name of letters and digits";
	}
	place->at = AT_BASIC;
	if (strncmp(text, "basic:", 6) == 0)
		return is_visible(name) && name[0] != '\0' && strchr(name, ':') == NULL
			       ? NULL
			       : "basic: is followed by the name of a user";
	return "is one of bearer, \"header: NAME\", \"basic:USER\" and \"query: NAME\"";
}

/* A path of a rule, or of a base URL: as a server sees it after decoding. */
static bool is_path(const char *path)
{
	if (path[0] != '/' || !is_visible(path) || strpbrk(path, "?#%\\") != NULL)
		return false;
	for (const char *at = path; at != NULL; at = strchr(at + 1, '/')) {
		size_t size = strcspn(at + 1, "/");

		if ((size == 0 && at[1] != '\0') || (size == 1 && at[1] == '.') ||
		    (size == 2 && strncmp(at + 1, "..", 2) == 0))
			return false;
	}
	return true;
}

static bool is_pattern(const char *path)
{
	const char *stars = strstr(path, "**");

	return is_path(path) && (stars == NULL || (stars[-1] == '/' && stars[2] == '\0'));
}

/* Is TEXT a rule of `allow` for git: fetching or pushing? */
static bool is_git_rule(const char *text)
{
	return strcmp(text, "fetch") == 0 || strcmp(text, "push") == 0;
}

/* "METHOD /path" of `allow`. METHOD ends at *PATH - 1. */
static const char *rule_is_wrong(const char *text, const char **path)
{
	size_t method = strcspn(text, " ");

	*path = text + method + (text[method] == ' ');
	if (strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != method &&
	    !(method == 1 && text[0] == '*'))
		return "is \"METHOD /path\"; the method * is any";
	return method > 0 && is_pattern(*path)
		       ? NULL
		       : "is \"METHOD /path\"; the path is as after decoding, * is any text without "
			 "/, ** at the end any path";
}

/* Calls of these grammars for rows. */

static bool refuse_item(struct rows_problem *problem, size_t index, const char *why)
{
	return rows_refuse(problem, &(struct rows_place){.index = index}, "%s", why);
}

static bool are_sources(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	struct source_text parts;

	(void)row;
	if (value_count(value) > CREDENTIAL_SOURCES_MAX)
		return rows_refuse(problem, NULL, "has %zu entries, at most %d are taken",
				   value_count(value), CREDENTIAL_SOURCES_MAX);
	for (size_t i = 0; i < value_count(value); i++) {
		const char *text = value_text(value_item(value, i));
		const char *why = text == NULL ? NULL : source_is_wrong(text, &parts);

		if (why != NULL)
			return refuse_item(problem, i, why);
	}
	return true;
}

static bool is_command(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	(void)row;
	return value_str(value_item(value, 0)).size > 0 ||
	       rows_refuse(problem, NULL, "begins with the name of a program");
}

static bool are_credential_hosts(const struct row *row, const struct value *value,
				 struct rows_problem *problem)
{
	struct network_entry entry;
	struct err why;

	(void)row;
	if (value_count(value) > CREDENTIAL_HOSTS_MAX)
		return rows_refuse(problem, NULL, "has %zu entries, at most %d are taken",
				   value_count(value), CREDENTIAL_HOSTS_MAX);
	for (size_t i = 0; i < value_count(value); i++) {
		if (!network_parse_entry(value_str(value_item(value, i)), &entry, &why))
			return refuse_item(problem, i, why.text);
		if (entry.suffix || entry.carried)
			return refuse_item(
				problem, i,
				"is `host` or `host:port`: a key goes to named hosts only");
	}
	return true;
}

/* The text at INDEX of VALUE, which is one text or a list of them; NULL: none. */
static const struct value *text_at(const struct value *value, size_t index)
{
	if (value_kind(value) == VALUE_STRING)
		return index == 0 ? value : NULL;
	return value_item(value, index);
}

static bool are_places(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	const bool single = value_kind(value) == VALUE_STRING;
	const size_t count = single ? 1 : value_count(value);
	struct credential_place place;

	(void)row;
	if ((!single && value_kind(value) != VALUE_ARRAY) || count == 0 ||
	    count > CREDENTIAL_PLACES_MAX)
		return rows_refuse(problem, NULL, "must be text, or a list of 1 to %d texts",
				   CREDENTIAL_PLACES_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct rows_place below = {.index = i};
		struct str text = value_str(text_at(value, i));
		const char *why = "must be text";

		if (text.size > 0 && text.size <= CREDENTIAL_SHAPE_MAX &&
		    strlen(text.data) == text.size)
			why = place_is_wrong(text.data, &place);
		if (why != NULL)
			return rows_refuse(problem, single ? NULL : &below, "%s", why);
	}
	return true;
}

static const char *variable_is_wrong(const char *name, struct err *why)
{
	if (strchr(name, '=') != NULL)
		return "is the name of a variable, without a value";
	return policy_check_variable(name, why) ? NULL : why->text;
}

static bool are_names(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	struct err err;

	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		const char *why = variable_is_wrong(value_text(value_item(value, i)), &err);

		if (why != NULL)
			return refuse_item(problem, i, why);
	}
	return true;
}

static bool are_bases(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	struct err err;

	(void)row;
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct rows_place below = {.key = value_key(at)};
		const char *path = value_text(value_at(at));
		const char *why = variable_is_wrong(value_key(at), &err);

		if (why == NULL && (path == NULL || !is_path(path)))
			why = "must be a path, as \"/v1\"; \"/\" is the host alone";
		if (why != NULL)
			return rows_refuse(problem, &below, "%s", why);
	}
	return true;
}

static bool is_shape(const struct row *row, const struct value *value,
		     struct rows_problem *problem)
{
	const char *text = value_text(value), *star = strchr(text, '*');

	(void)row;
	return strcmp(text, "jwt") == 0 ||
	       (star != NULL && strchr(star + 1, '*') == NULL && is_visible(text) &&
		strpbrk(text, "\"\\:") == NULL) ||
	       rows_refuse(problem, NULL,
			   "is \"jwt\", or visible ASCII with one * for the random digits");
}

static bool are_rules(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	const char *path;

	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		const char *text = value_text(value_item(value, i));
		const char *why = is_git_rule(text) ? NULL : rule_is_wrong(text, &path);

		if (why != NULL)
			return refuse_item(problem, i, why);
	}
	return true;
}

static bool are_paths(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		if (!is_pattern(value_text(value_item(value, i))))
			return refuse_item(problem, i,
					   "is a path as after decoding; * is any text "
					   "without /, ** at the end any path");
	}
	return true;
}

static bool is_file(const struct row *row, const struct value *value,
		    struct rows_problem *problem)
{
	const char *path = value_text(value);

	(void)row;
	return path[0] == '/' || strncmp(path, "~/", 2) == 0 ||
	       rows_refuse(problem, NULL, "begins with / or ~/");
}

static bool is_url(const struct row *row, const struct value *value,
		   struct rows_problem *problem)
{
	const char *url = value_text(value);

	(void)row;
	return (strncmp(url, "https://", 8) == 0 && is_visible(url) &&
		strpbrk(url, "?#@") == NULL && strchr(url + 8, '/') != NULL) ||
	       rows_refuse(problem, NULL, "is https://HOST/path");
}

#define POINTER_WRONG "must be a JSON pointer, as \"/a/b\""

static bool is_pointer_text(const struct value *value)
{
	const struct str pointer = value_str(value);

	return pointer.size > 0 && pointer.data[0] == '/' &&
	       strlen(pointer.data) == pointer.size;
}

static bool is_pointer(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	(void)row;
	return is_pointer_text(value) || rows_refuse(problem, NULL, POINTER_WRONG);
}

static bool are_pointers(const struct row *row, const struct value *value,
			 struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i < value_count(value); i++)
		if (!is_pointer_text(value_item(value, i)))
			return refuse_item(problem, i, POINTER_WRONG);
	return true;
}

static bool is_store(const struct row *row, const struct value *value,
		     struct rows_problem *problem)
{
	(void)row;
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct rows_place below = {.key = value_key(at)};

		if (!is_pointer_text(value_at(at)))
			return rows_refuse(problem, &below, POINTER_WRONG);
	}
	return (value_count(value) > 0 && value_count(value) <= CREDENTIAL_TOKENS_MAX) ||
	       rows_refuse(problem, NULL, "has 1 to %d members", CREDENTIAL_TOKENS_MAX);
}

/* The table of keys. */

/* A day: a command that prints a lasting key is kept no longer. */
#define KEEP_MAX 86400.0

static const struct row command_rows[] = {
	{"command", ROW_ARGV, true, .min = 1, .max = CREDENTIAL_COMMAND_MAX,
	 .check = is_command, .initial = "required",
	 .description =
		 "Program and arguments, started without a shell; it prints one line."},
	{"keep_s", ROW_NUMBER, .min = 0, .max = KEEP_MAX, .initial = "900",
	 .description = "Seconds for which its output is used again; 0: not at all."},
	{0},
};

static const struct row refresh_rows[] = {
	{"url", ROW_BYTES, true, .max = CREDENTIAL_TEXT_MAX, .check = is_url,
	 .initial = "required", .description = "Where the client renews it."},
	{"send", ROW_WORDS, true, .max = CREDENTIAL_SHAPE_MAX, .initial = "required",
	 .description = "Members of that request which hold a token."},
	{"store", ROW_VALUES, true, .check = is_store, .initial = "required",
	 .description = "`{MEMBER: POINTER}`: members of the answer, and the place of each in the "
			"file."},
	{"expires", ROW_BYTES, .max = CREDENTIAL_TEXT_MAX, .check = is_pointer,
	 .initial = "none",
	 .description =
		 "Place of the time when it expires, which `expires_in` of an answer renews."},
	{"scope", ROW_BYTES, .max = CREDENTIAL_TEXT_MAX, .check = is_pointer,
	 .initial = "none",
	 .description = "Place of what it is for, for an answer that is made from the file."},
	{"keep", ROW_WORDS, .max = CREDENTIAL_TEXT_MAX, .check = are_pointers,
	 .initial = "none",
	 .description = "Places that a copy of the file has as they are. All others but those of "
			"`store` are left out."},
	{0},
};

const struct row credential_rows[] = {
	{"from", ROW_SOURCES, .max = CREDENTIAL_TEXT_MAX, .check = are_sources,
	 .rows = command_rows, .initial = "required",
	 .description =
		 "Where its value is; the first that is there: `env:NAME`, `file:PATH`, "
		 "`file:PATH#/json/pointer`, `file:PATH#[SECTION]NAME` and `file:PATH#=NAME` of a "
		 "file with lines, `keyring:SERVICE/USER`, or a command."},
	{"hosts", ROW_HOSTS, .max = NETWORK_TEXT_MAX, .check = are_credential_hosts,
	 .initial = "required",
	 .description = "`host` or `host:port`, no patterns. It is put into requests to these only; "
			"the first is the one of `base_url`."},
	{"place", ROW_ANY, .check = are_places, .initial = "required",
	 .description = "Where it stands in a request: `bearer`, `header: NAME`, `basic:USER`, "
			"`query: NAME`."},
	{"variables", ROW_WORDS, .max = CREDENTIAL_SHAPE_MAX, .check = are_names,
	 .initial = "none", .description = "Variables of the cell that get the phantom."},
	{"base_url", ROW_VALUES, .check = are_bases, .initial = "none",
	 .description = "`{VARIABLE: path}`: variables of the cell that get the broker's address, "
			"with this path of the first host behind it."},
	{"shape", ROW_BYTES, .max = CREDENTIAL_SHAPE_MAX, .check = is_shape,
	 .initial = "`glovebox-*`",
	 .description = "Form of the phantom: the `*` becomes 40 random digits. `jwt` for tokens that "
			"a client reads."},
	{"claims", ROW_NAMES, .max = CREDENTIAL_SHAPE_MAX, .initial = "none",
	 .description = "With `jwt`: what the phantom keeps beside `exp`."},
	{"allow", ROW_WORDS, .max = CREDENTIAL_TEXT_MAX, .check = are_rules,
	 .initial = "every request",
	 .description =
		 "`METHOD /path`: the only requests that pass. `*` is any text without `/`, a "
		 "last `**` any path. With `repositories` also `fetch` and `push`."},
	{"repositories", ROW_CHOICE, .choices = "github gitlab", .initial = "not bounded",
	 .description = "Only for the repositories that the remotes of the workspace name; others are "
			"read without it. The value is the form of the service's paths."},
	{"foreign", ROW_WORDS, .max = CREDENTIAL_TEXT_MAX, .check = are_paths,
	 .initial = "none",
	 .description = "Paths at which other keys than this one pass, because the service gives them "
			"to a session."},
	{"anonymous", ROW_FLAG, .initial = "false",
	 .description = "`true`: requests without any key pass too."},
	{"keyless", ROW_WORDS, .max = CREDENTIAL_TEXT_MAX, .check = are_rules,
	 .initial = "none",
	 .description = "`METHOD /path`: requests that pass without any key."},
	{"websocket", ROW_FLAG, .initial = "false",
	 .description = "`true`: a request may become a WebSocket."},
	{"scrub", ROW_FLAG, .initial = "true",
	 .description = "`false`: answers are not searched for the key."},
	{"errors", ROW_CHOICE, .choices = "message anthropic openai google",
	 .initial = "`message`",
	 .description = "Form of the error objects in which the broker refuses."},
	{"ca_file", ROW_BYTES, .max = CREDENTIAL_TEXT_MAX, .check = is_file,
	 .initial = "none",
	 .description =
		 "PEM file of authorities for these hosts, beside those of the system."},
	{"refresh", ROW_OBJECT, .rows = refresh_rows, .initial = "none",
	 .description =
		 "How a login in a file is renewed, and which parts of the file a cell may see."},
	{0},
};

/* Shipped entries under those of the configuration. */

/* The shipped entry NAME; NULL: none. The caller frees it. */
static struct value *shipped_entry(const char *name)
{
	char path[sizeof("credentials/.json") + CREDENTIAL_NAME_MAX];
	struct value *entry = NULL;

	(void)snprintf(path, sizeof(path), "credentials/%s.json", name);
	for (const struct embedded_file *file = credential_files; file->name != NULL;
	     file++) {
		if (strcmp(file->name, path) == 0)
			(void)value_parse((struct str){file->data, file->size},
					  VALUE_COMMENTS, &entry, NULL);
	}
	return entry;
}

/* The entry NAME, OWN over the shipped one; NULL: there is neither. The caller frees it. */
static struct value *merged_entry(const char *name, const struct value *own)
{
	struct value *entry = shipped_entry(name);

	if (own != NULL && entry == NULL)
		entry = value_new_object();
	for (void *at = value_first(own); at != NULL; at = value_next(own, at))
		value_set(entry, value_key(at), value_copy(value_at(at)));
	return entry;
}

/* The key that the merged ENTRY lacks; NULL: none. */
static const char *missing_key(const struct value *entry)
{
	static const char *const keys[] = {"from", "hosts", "place"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct value *value = value_member(entry, keys[i]);

		if (value == NULL ||
		    (value_kind(value) == VALUE_ARRAY && value_count(value) == 0))
			return keys[i];
	}
	return NULL;
}

/* Read HOST, PORT and PATH of URL, which is https. */
static bool read_url(const char *url, struct network_host *host, uint16_t *port,
		     const char **path)
{
	const char *authority = url + sizeof("https://") - 1;

	*path = authority + strcspn(authority, "/");
	return network_parse_authority((struct str){authority, (size_t)(*path - authority)},
				       NETWORK_PORT_TLS, host, port, NULL);
}

/* The mistake in `refresh` of the merged ENTRY, in words; NULL: there is none. */
static const char *refresh_is_wrong(const struct value *entry)
{
	const struct value *hosts = value_member(entry, "hosts");
	const char *url = value_text(value_member(value_member(entry, "refresh"), "url"));
	struct network_host host;
	struct network_entry one;
	uint16_t port;
	const char *path;
	bool found = false;

	if (url == NULL)
		return NULL;
	/* Its phantom would have to change with each token. */
	if (str_is(value_str(value_member(entry, "shape")), "jwt"))
		return "a login with `refresh` has no shape \"jwt\"";
	if (!read_url(url, &host, &port, &path))
		return "the url of `refresh` names no host";
	for (size_t i = 0; i < value_count(hosts) && !found; i++)
		found = network_parse_entry(value_str(value_item(hosts, i)), &one, NULL) &&
			network_find(&one, 1, &host, port) != NULL;
	return found ? NULL : "the url of `refresh` is at none of its hosts";
}

bool credential_check_all(const struct row *row, const struct value *value,
			  struct rows_problem *problem)
{
	(void)row;
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct rows_place below = {.key = value_key(at)};
		const char *wrong = name_is_wrong(value_key(at));

		if (wrong != NULL)
			return rows_refuse(problem, NULL, "%s", wrong);
		auto_value struct value *entry = merged_entry(value_key(at), value_at(at));
		if (missing_key(entry) != NULL)
			return rows_refuse(problem, &below, "needs \"%s\"",
					   missing_key(entry));
		if (refresh_is_wrong(entry) != NULL)
			return rows_refuse(problem, &below, "%s", refresh_is_wrong(entry));
	}
	return true;
}

/* The struct of a checked entry. */

static struct credential_texts read_texts(struct credential *credential,
					  const struct value *list)
{
	const size_t count = value_count(list);
	const char **items = arena_alloc(&credential->arena, (count + 1) * sizeof(*items));

	for (size_t i = 0; i < count; i++)
		items[i] = value_text(value_item(list, i));
	return (struct credential_texts){items, count};
}

static void read_command(struct credential *credential, const struct value *entry,
			 struct credential_source *source)
{
	const struct value *argv = value_member(entry, "command");
	const struct value *keep = value_member(entry, "keep_s");
	struct buf shown;

	source->from = FROM_COMMAND;
	source->argv = read_texts(credential, argv).items;
	source->keep_s = keep == NULL ? CREDENTIAL_KEEP_S : value_number(keep);
	buf_init(&shown, CREDENTIAL_TEXT_MAX + sizeof("command: "));
	(void)buf_addf(&shown, "command: %s", source->argv[0]);
	source->shown = arena_copy(&credential->arena, buf_str(&shown));
	buf_fini(&shown);
}

static void read_sources(struct credential *credential, const struct value *list)
{
	credential->source_count = value_count(list);
	credential->sources =
		arena_alloc(&credential->arena,
			    (credential->source_count + 1) * sizeof(*credential->sources));
	for (size_t i = 0; i < credential->source_count; i++) {
		struct credential_source *source = &credential->sources[i];
		struct source_text parts;

		source->shown = value_text(value_item(list, i));
		if (source->shown == NULL) {
			read_command(credential, value_item(list, i), source);
			continue;
		}
		(void)source_is_wrong(source->shown, &parts);
		source->from = parts.from;
		source->more = parts.more;
		source->text = arena_copy(&credential->arena,
					  (struct str){parts.text,
						       (size_t)(parts.end - parts.text)});
	}
}

static void read_hosts(struct credential *credential, const struct value *list)
{
	credential->host_count = value_count(list);
	credential->hosts =
		arena_alloc(&credential->arena,
			    (credential->host_count + 1) * sizeof(*credential->hosts));
	for (size_t i = 0; i < credential->host_count; i++)
		(void)network_parse_entry(value_str(value_item(list, i)),
					  &credential->hosts[i], NULL);
}

static void read_bases(struct credential *credential, const struct value *object)
{
	credential->bases =
		arena_alloc(&credential->arena,
			    (value_count(object) + 1) * sizeof(*credential->bases));
	for (void *at = value_first(object); at != NULL; at = value_next(object, at))
		credential->bases[credential->base_count++] =
			(struct credential_base){value_key(at), value_text(value_at(at))};
}

/* LIST has texts "METHOD /path" and words of git, or with METHODS false paths. */
static void read_rules(struct credential *credential, const struct value *list,
		       bool methods, struct credential_rules *rules)
{
	rules->given = list != NULL;
	rules->items = arena_alloc(&credential->arena,
				   (value_count(list) + 1) * sizeof(*rules->items));
	for (size_t i = 0; i < value_count(list); i++) {
		struct credential_rule *rule = &rules->items[rules->count];
		const char *text = value_text(value_item(list, i));

		rules->fetch = rules->fetch || (methods && strcmp(text, "fetch") == 0);
		rules->push = rules->push || (methods && strcmp(text, "push") == 0);
		if (methods && is_git_rule(text))
			continue;
		rules->count++;
		rule->path = text;
		if (!methods)
			continue;
		struct str method = {rule->path, strcspn(rule->path, " ")};
		rule->method = arena_copy(&credential->arena, method);
		rule->path += method.size + 1;
	}
}

static void read_refresh(struct credential *credential, const struct value *object)
{
	struct credential_refresh *refresh = &credential->refresh;
	const struct value *store = value_member(object, "store");
	const size_t room = (value_count(store) + 1) * sizeof(*refresh->answers.items);

	refresh->url = value_text(value_member(object, "url"));
	if (refresh->url != NULL)
		(void)read_url(refresh->url, &refresh->host, &refresh->port, &refresh->path);
	refresh->expires = value_text(value_member(object, "expires"));
	refresh->scope = value_text(value_member(object, "scope"));
	refresh->keep = read_texts(credential, value_member(object, "keep"));
	refresh->send = read_texts(credential, value_member(object, "send"));
	refresh->answers.items = arena_alloc(&credential->arena, room);
	refresh->pointers.items = arena_alloc(&credential->arena, room);
	for (void *at = value_first(store); at != NULL; at = value_next(store, at)) {
		refresh->answers.items[refresh->answers.count++] = value_key(at);
		refresh->pointers.items[refresh->pointers.count++] =
			value_text(value_at(at));
	}
}

static enum credential_errors read_errors(const struct value *value)
{
	struct str text = value_str(value);

	return str_is(text, "anthropic") ? ERRORS_ANTHROPIC
	       : str_is(text, "openai")  ? ERRORS_OPENAI
	       : str_is(text, "google")  ? ERRORS_GOOGLE
					 : ERRORS_MESSAGE;
}

/* Fill CREDENTIAL from its `root`, which is checked. */
static void read_entry(struct credential *credential)
{
	const struct value *entry = credential->root;
	const struct value *place = value_member(entry, "place");
	const char *shape = value_text(value_member(entry, "shape"));
	const struct value *scrub = value_member(entry, "scrub");

	read_sources(credential, value_member(entry, "from"));
	read_hosts(credential, value_member(entry, "hosts"));
	for (; text_at(place, credential->place_count) != NULL; credential->place_count++)
		(void)place_is_wrong(value_text(text_at(place, credential->place_count)),
				     &credential->places[credential->place_count]);
	credential->variables = read_texts(credential, value_member(entry, "variables"));
	read_bases(credential, value_member(entry, "base_url"));
	credential->shape = shape == NULL ? "glovebox-*" : shape;
	credential->claims = read_texts(credential, value_member(entry, "claims"));
	read_rules(credential, value_member(entry, "allow"), true, &credential->allow);
	read_rules(credential, value_member(entry, "foreign"), false, &credential->foreign);
	read_rules(credential, value_member(entry, "keyless"), true, &credential->keyless);
	credential->forge = forge_of_name(value_str(value_member(entry, "repositories")));
	credential->anonymous = value_is_true(value_member(entry, "anonymous"));
	credential->websocket = value_is_true(value_member(entry, "websocket"));
	credential->scrub = scrub == NULL || value_is_true(scrub);
	credential->errors = read_errors(value_member(entry, "errors"));
	credential->ca_file = value_text(value_member(entry, "ca_file"));
	read_refresh(credential, value_member(entry, "refresh"));
}

bool credential_read(const char *name, const struct value *entry,
		     struct credential *credential, struct err *err)
{
	static const struct row whole = {.kind = ROW_OBJECT, .rows = credential_rows};
	struct rows_problem problem = {0};
	const char *wrong = name_is_wrong(name);

	*credential = (struct credential){0};
	arena_init(&credential->arena);
	if (wrong != NULL)
		return err_set(err, EINVAL, "%s", wrong);
	if (!rows_check(&whole, entry, &problem))
		return err_set(err, EINVAL, "credentials.%s: %s does not fit: %s", name,
			       problem.pointer[0] == '\0' ? "/" : problem.pointer,
			       problem.fault == ROWS_OTHER ? problem.why.text
							   : "see docs/policy.md");
	if (missing_key(entry) != NULL)
		return err_set(err, EINVAL, "credentials.%s: needs \"%s\"", name,
			       missing_key(entry));
	if (refresh_is_wrong(entry) != NULL)
		return err_set(err, EINVAL, "credentials.%s: %s", name,
			       refresh_is_wrong(entry));
	(void)snprintf(credential->name, sizeof(credential->name), "%s", name);
	credential->root = value_copy(entry);
	read_entry(credential);
	return true;
}

bool credential_find(const struct value *entries, const char *name,
		     struct credential *credential, struct err *err)
{
	*credential = (struct credential){0};
	auto_value struct value *entry =
		name_is_wrong(name) != NULL
			? NULL
			: merged_entry(name, value_member(entries, name));
	if (entry != NULL)
		return credential_read(name, entry, credential, err);

	struct arena arena;

	arena_init(&arena);
	const char **names = credential_names(entries, &arena);
	const char *nearest = text_nearest(name, names);
	struct buf list;

	buf_init(&list, ERR_TEXT_MAX);
	for (size_t i = 0; names[i] != NULL; i++)
		(void)buf_addf(&list, "%s%s", i == 0 ? "" : ", ", names[i]);
	(void)err_set(err, ENOENT,
		      "there is no credential \"%.*s\"%s%s%s; there are %s. Another one is an "
		      "entry of `credentials` in the configuration",
		      CREDENTIAL_NAME_MAX, name, nearest ? " (did you mean \"" : "",
		      nearest ? nearest : "", nearest ? "\"?)" : "", list.data);
	buf_fini(&list);
	arena_fini(&arena);
	return false;
}

void credential_fini(struct credential *credential)
{
	arena_fini(&credential->arena);
	value_free(credential->root);
	*credential = (struct credential){0};
}

const char **credential_names(const struct value *entries, struct arena *arena)
{
	static const size_t folder = sizeof("credentials/") - 1;
	static const size_t ending = sizeof(".json") - 1;
	size_t count = value_count(entries);

	for (const struct embedded_file *file = credential_files; file->name; file++)
		count++;
	const char **names = arena_alloc(arena, (count + 1) * sizeof(*names));
	count = 0;
	for (const struct embedded_file *file = credential_files; file->name; file++) {
		struct str name = str_part(str_of(file->name), folder,
					   strlen(file->name) - folder - ending);

		names[count++] = arena_copy(arena, name);
	}
	for (void *at = value_first(entries); at != NULL; at = value_next(entries, at)) {
		auto_value struct value *shipped = shipped_entry(value_key(at));

		if (shipped == NULL)
			names[count++] = value_key(at);
	}
	return names;
}

/* Is the repository NAME at a host of CREDENTIAL? */
static bool is_at_host(const struct credential *credential, const char *name)
{
	const size_t size = strcspn(name, "/");

	for (size_t i = 0; i < credential->host_count; i++) {
		const char *host = credential->hosts[i].host.text;

		if (strlen(host) == size && strncmp(host, name, size) == 0)
			return true;
	}
	return false;
}

const char **credential_repositories(const struct credential *credential,
				     const char *const *addresses, struct arena *arena)
{
	char name[FORGE_NAME_MAX];
	const char **names;
	size_t count = 0;

	if (credential->forge == FORGE_NONE)
		return NULL;
	names = arena_alloc(arena, (CREDENTIAL_REPOSITORIES_MAX + 1) * sizeof(*names));
	for (; *addresses != NULL && count < CREDENTIAL_REPOSITORIES_MAX; addresses++) {
		bool known = false;

		if (!forge_read_address(str_of(*addresses), name) ||
		    !is_at_host(credential, name))
			continue;
		for (size_t i = 0; i < count && !known; i++)
			known = strcmp(names[i], name) == 0;
		if (!known)
			names[count++] = arena_copy(arena, str_of(name));
	}
	names[count] = NULL;
	return names;
}

bool credential_base_url(const struct credential *credential,
			 const struct credential_base *base, uint16_t port, struct buf *out)
{
	return buf_addf(out, "http://127.0.0.1:%u/%s%s", port, credential->name,
			strcmp(base->path, "/") == 0 ? "" : base->path);
}

bool credential_path_matches(const char *pattern, struct str path)
{
	const char *star = NULL;
	size_t at = 0, star_at = 0;

	for (;;) {
		if (strcmp(pattern, "/**") == 0 && (at == path.size || path.data[at] == '/'))
			return true;
		if (*pattern == '*') {
			star = ++pattern;
			star_at = at;
		} else if (at == path.size && *pattern == '\0') {
			return true;
		} else if (at < path.size && *pattern != '\0' && *pattern == path.data[at]) {
			pattern++;
			at++;
		} else if (star != NULL && star_at < path.size && path.data[star_at] != '/') {
			/* The last star takes one more byte. */
			pattern = star;
			at = ++star_at;
		} else {
			return false;
		}
	}
}
