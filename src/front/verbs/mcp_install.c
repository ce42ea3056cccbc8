/* mcp_install: a table of clients, and the careful change of a client's file. */

#include "front/verbs/mcp_install.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/diff.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/talk.h"
#include "front/verb.h"
#include "front/verbs/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY_NAME "glovebox"

enum {
	SETTINGS_MAX = 16 << 20, /* a client keeps its history beside its settings */
	ENTRY_MAX = 64 << 10,
	NEW_FILE_MODE = 0600,
};

enum form {
	FORM_PLAIN,    /* command, args */
	FORM_STDIO,    /* type, command, args */
	FORM_OPENCODE, /* type, command with its arguments, enabled */
	FORM_TOML,
};

struct client {
	const char *name;
	const char *variable; /* may hold the folder of its settings; or NULL */
	const char *fallback; /* below the home */
	const char *file;
	const char *other; /* used instead of `file` when it exists; or NULL */
	const char *group; /* the object that holds the servers */
	enum form form;
	bool is_editor; /* names the workspace by ${workspaceFolder} */
};

static const struct client clients[] = {
	{"claude", "CLAUDE_CONFIG_DIR", ".", ".claude.json", NULL, "mcpServers",
	 FORM_STDIO, false},
	{"codex", "CODEX_HOME", ".codex", "config.toml", NULL, "mcp_servers", FORM_TOML,
	 false},
	{"gemini", NULL, ".gemini", "settings.json", NULL, "mcpServers", FORM_PLAIN, false},
	{"qwen", NULL, ".qwen", "settings.json", NULL, "mcpServers", FORM_PLAIN, false},
	{"opencode", "XDG_CONFIG_HOME", ".config", "opencode/opencode.json",
	 "opencode/opencode.jsonc", "mcp", FORM_OPENCODE, false},
	{"vscode", "XDG_CONFIG_HOME", ".config", "Code/User/mcp.json", NULL, "servers",
	 FORM_STDIO, true},
	{"cursor", NULL, ".cursor", "mcp.json", NULL, "mcpServers", FORM_STDIO, true},
};

enum { CLIENTS = sizeof(clients) / sizeof(clients[0]) };

/* The entry to be added, and its file. */
struct entry {
	const struct client *client;
	struct value *value;
	struct buf text; /* the text of a file that holds only the entry */
	struct buf path;
};

/* The file as it was read. */
struct settings {
	struct buf text;
	struct stat stat;
	bool exists;
};

static const struct client *find_client(const char *name)
{
	const char *names[CLIENTS + 1] = {NULL};
	const char *nearest;

	for (size_t i = 0; i < CLIENTS; i++) {
		if (strcmp(clients[i].name, name) == 0)
			return &clients[i];
		names[i] = clients[i].name;
	}
	nearest = text_nearest(name, names);
	(void)verb_complain(CODE_USAGE,
			    "mcp: no client \"%.100s\"%s%s; known are " MCP_INSTALL_CLIENTS,
			    name, nearest ? "; did you mean " : "", nearest ? nearest : "");
	return NULL;
}

/*
 * Find our own program. Prefer the path by which PATH finds it, which outlives an
 * upgrade; else take the real path. Never take a bare name: an editor started from a menu
 * has another PATH.
 */
static bool own_program(struct buf *path, struct err *err)
{
	struct stat own, found;
	ssize_t size;
	char *room;

	if (run_find_program(getenv("PATH"), "glovebox", path) && path->data[0] == '/' &&
	    stat("/proc/self/exe", &own) == 0 && stat(path->data, &found) == 0 &&
	    own.st_dev == found.st_dev && own.st_ino == found.st_ino)
		return true;
	buf_clear(path);
	room = buf_reserve(path, PATH_MAX - 1);
	size = room ? readlink("/proc/self/exe", room, PATH_MAX - 1) : -1;
	if (size < 0)
		return err_set(err, errno, "/proc/self/exe: %s", strerror(errno));
	buf_commit(path, (size_t)size);
	return true;
}

static struct value *arguments_of(const struct mcp_install *install,
				  const struct client *client)
{
	struct value *list = value_new_texts(install->arguments);

	if (client->is_editor && !install->has_workspace) {
		value_append(list, value_new_text("--workspace"));
		value_append(list, value_new_text("${workspaceFolder}"));
	}
	return list;
}

static struct value *make_value(const struct client *client, const char *program,
				struct value *take_arguments)
{
	struct value *entry = value_new_object();

	if (client->form == FORM_OPENCODE) {
		struct value *command = value_new_array();

		value_append(command, value_new_text(program));
		for (size_t i = 0; i < value_count(take_arguments); i++)
			value_append(command, value_ref(value_item(take_arguments, i)));
		value_free(take_arguments);
		value_set_text(entry, "type", "local");
		value_set(entry, "command", command);
		value_set_boolean(entry, "enabled", true);
		return entry;
	}
	if (client->form == FORM_STDIO)
		value_set_text(entry, "type", "stdio");
	value_set_text(entry, "command", program);
	value_set(entry, "args", take_arguments);
	return entry;
}

/* Print the entry as TOML. Strings and lists of strings have the same form as in JSON. */
static void print_toml(const struct entry *entry, struct buf *out)
{
	(void)buf_addf(out, "[%s." ENTRY_NAME "]\n", entry->client->group);
	for (void *at = value_first(entry->value); at; at = value_next(entry->value, at)) {
		(void)buf_addf(out, "%s = ", value_key(at));
		(void)value_print(value_at(at), 0, out);
		(void)buf_addc(out, '\n');
	}
}

static void print_json(const struct entry *entry, struct buf *out)
{
	struct err err = {0};

	(void)mcp_install_json_insert((struct str){"", 0}, entry->client->group,
				      ENTRY_NAME, entry->value, out, &err);
}

static bool find_path(const struct client *client, struct buf *path, struct err *err)
{
	const char *variable = client->variable ? getenv(client->variable) : NULL;
	const char *home = getenv("HOME");
	auto_free char *real = NULL;
	struct buf other;

	buf_init(&other, PATH_MAX);
	if (client->other &&
	    path_xdg(variable, home, client->fallback, client->other, &other) &&
	    access(other.data, F_OK) == 0)
		(void)buf_addstr(path, buf_str(&other));
	buf_fini(&other);
	if (path->size == 0 &&
	    !path_xdg(variable, home, client->fallback, client->file, path))
		return err_set(err, 0,
			       "HOME is not set: where its settings are is not known");
	/* A symbolic link stays: its target is changed. */
	real = realpath(path->data, NULL);
	if (real) {
		buf_clear(path);
		(void)buf_adds(path, real);
	}
	return true;
}

static bool entry_init(struct entry *entry, const struct mcp_install *install,
		       struct err *err)
{
	struct buf program;
	bool fits;

	buf_init(&entry->text, ENTRY_MAX);
	buf_init(&entry->path, PATH_MAX);
	buf_init(&program, PATH_MAX);
	fits = own_program(&program, err) && find_path(entry->client, &entry->path, err);
	if (fits) {
		entry->value = make_value(entry->client, program.data,
					  arguments_of(install, entry->client));
		if (entry->client->form == FORM_TOML)
			print_toml(entry, &entry->text);
		else
			print_json(entry, &entry->text);
	}
	buf_fini(&program);
	return fits;
}

static void entry_fini(struct entry *entry)
{
	value_free(entry->value);
	buf_fini(&entry->text);
	buf_fini(&entry->path);
}

/*
 * Print TEXT and flush it, so that later lines on standard error come below it. Returns
 * as verb_printed.
 */
static int put(FILE *out, struct str text)
{
	(void)fwrite(text.data, 1, text.size, out);
	return verb_printed(CODE_DONE, out);
}

static bool read_settings(const char *path, struct settings *settings, struct err *err)
{
	buf_init(&settings->text, SETTINGS_MAX);
	if (stat(path, &settings->stat) < 0) {
		settings->exists = false;
		return errno == ENOENT ||
		       err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	settings->exists = true;
	return fd_read_file(path, SETTINGS_MAX, &settings->text, err);
}

/* Put the new text into OUT. Returns an exit code when there is nothing to write. */
static int add_toml(const struct entry *entry, struct str old, struct buf *out,
		    struct err *err)
{
	switch (mcp_install_toml_look(old, entry->client->group, ENTRY_NAME, err)) {
	case TOML_REFUSED:
		return CODE_FAILED;
	case TOML_IS_THERE:
		if (str_find(old, buf_str(&entry->text), 0) != (size_t)-1)
			return CODE_DONE;
		(void)err_set(err, 0,
			      "it has an entry \"" ENTRY_NAME
			      "\" that says something else");
		return CODE_FAILED;
	case TOML_FREE:
		break;
	}
	(void)buf_addstr(out, old);
	(void)buf_end_line(out);
	if (out->size)
		(void)buf_addc(out, '\n');
	(void)buf_addstr(out, buf_str(&entry->text));
	return -1;
}

static int add_json(const struct entry *entry, struct str old, struct buf *out,
		    struct err *err)
{
	switch (mcp_install_json_insert(old, entry->client->group, ENTRY_NAME,
					entry->value, out, err)) {
	case JSON_INSERTED:
		return -1;
	case JSON_IS_THERE:
		return CODE_DONE;
	case JSON_DIFFERS:
		(void)err_set(err, 0,
			      "it has an entry \"" ENTRY_NAME
			      "\" that says something else");
		break;
	case JSON_REFUSED:
		break;
	}
	return CODE_FAILED;
}

static bool is_unchanged(const char *path, const struct settings *settings)
{
	struct stat now;

	if (stat(path, &now) < 0)
		return errno == ENOENT && !settings->exists;
	return settings->exists && now.st_ino == settings->stat.st_ino &&
	       now.st_size == settings->stat.st_size &&
	       now.st_mtim.tv_sec == settings->stat.st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == settings->stat.st_mtim.tv_nsec;
}

/*
 * Write TEXT into the temporary file FD, and give FD owner and mode of the file that it
 * will replace.
 */
static bool fill(int fd, const struct settings *settings, struct str text, struct err *err)
{
	mode_t mode = settings->exists ? settings->stat.st_mode & 0777 : NEW_FILE_MODE;

	/*
	 * Keep the owner: when root replaces a user's file by a file of root's, the user
	 * is locked out.
	 */
	if (settings->exists &&
	    fchown(fd, settings->stat.st_uid, settings->stat.st_gid) < 0 &&
	    settings->stat.st_uid != geteuid())
		return err_set(err, errno, "it belongs to somebody else");
	if (!fd_write_all(fd, text.data, text.size, err))
		return false;
	if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	return true;
}

/*
 * Open a temporary file without a name: a kill then leaves no file in another program's
 * folder.
 */
static int open_nameless(const char *path)
{
	auto_free char *folder = memory_copy(path);
	char *slash = strrchr(folder, '/');

	if (slash == NULL)
		return -1;
	slash[slash == folder] = '\0';
	return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

/*
 * Link FD to NAME. First remove a file of that name: a run that was killed before its
 * rename leaves one.
 */
static bool give_name(int fd, const char *name)
{
	(void)unlink(name);
	return fd_link(fd, AT_FDCWD, name);
}

/*
 * Open a temporary file for the new text. TEMP gets its name, or the name that it will
 * get (*NAMELESS).
 */
static int open_temp(const char *path, bool *nameless, struct buf *temp)
{
	int fd = open_nameless(path);

	*nameless = fd >= 0;
	(void)buf_addf(temp, "%s.%s", path, *nameless ? "glovebox-new" : "XXXXXX");
	return *nameless ? fd : mkostemp(temp->data, O_CLOEXEC);
}

/*
 * Replace the file PATH by TEXT in one step: a reader sees the old file or the new one.
 */
static bool replace(const char *path, const struct settings *settings, struct str text,
		    struct err *err)
{
	struct buf temp;
	bool fits, nameless;

	if (!fd_make_folders(path, err))
		return false;
	buf_init(&temp, PATH_MAX + 32);
	auto_close int fd = open_temp(path, &nameless, &temp);
	if (fd < 0) {
		fits = err_set(err, errno, "%s: %s", path, strerror(errno));
	} else {
		fits = fill(fd, settings, text, err);
		if (fits && !is_unchanged(path, settings))
			fits = err_set(err, 0,
				       "somebody has changed it meanwhile; try again");
		if (fits && nameless && !give_name(fd, temp.data))
			fits = err_set(err, errno, "%s: %s", temp.data, strerror(errno));
		/* Do not replace a file that another program has made since we looked. */
		if (fits && renameat2(AT_FDCWD, temp.data, AT_FDCWD, path,
				      settings->exists ? 0 : RENAME_NOREPLACE) < 0)
			fits = err_set(err, errno, "%s", strerror(errno));
		if (!fits)
			(void)unlink(temp.data);
	}
	buf_fini(&temp);
	return fits;
}

static int change(const char *path, const struct settings *settings, struct str text,
		  FILE *out)
{
	struct buf diff, clean;
	struct err err = {0};
	int code;

	buf_init(&diff, 2 * (size_t)SETTINGS_MAX + ENTRY_MAX);
	buf_init(&clean, 4 * ((size_t)SETTINGS_MAX + ENTRY_MAX));
	(void)diff_unified(buf_str(&settings->text), text, settings->exists ? path : NULL,
			   path, DIFF_CONTEXT, &diff, NULL);
	(void)text_clean(buf_str(&diff), &clean);
	code = put(out, buf_str(&clean));
	buf_fini(&diff);
	buf_fini(&clean);
	if (code != CODE_DONE)
		return code;
	if (!talk_confirm(stderr, "Write this to %s?", path))
		return verb_complain(CODE_FAILED, "mcp: nothing was written");
	if (!replace(path, settings, text, &err))
		return verb_complain(CODE_FAILED, "mcp: %s was not changed: %s", path,
				     err.text);
	(void)fprintf(stderr,
		      "glovebox: written; a client that runs reads it when it starts again\n");
	return CODE_DONE;
}

static int write_entry(const struct entry *entry, FILE *out)
{
	const char *path = entry->path.data;
	struct settings settings = {0};
	struct err err = {0};
	struct buf text;
	int code = CODE_FAILED;

	buf_init(&text, SETTINGS_MAX + ENTRY_MAX);
	if (read_settings(path, &settings, &err))
		code = entry->client->form == FORM_TOML
			       ? add_toml(entry, buf_str(&settings.text), &text, &err)
			       : add_json(entry, buf_str(&settings.text), &text, &err);
	if (code == CODE_DONE) {
		(void)fprintf(stderr, "glovebox: %s has this entry already\n", path);
	} else if (code == CODE_FAILED) {
		(void)put(out, buf_str(&entry->text));
		(void)verb_complain(code,
				    "mcp: %s was not changed: %s; above is what belongs there",
				    path, err.text);
	} else {
		code = change(path, &settings, buf_str(&text), out);
	}
	buf_fini(&text);
	buf_fini(&settings.text);
	return code;
}

int mcp_install(const struct mcp_install *install, FILE *out)
{
	struct entry entry = {.client = find_client(install->client)};
	struct err err = {0};
	int code;

	if (!entry.client)
		return CODE_USAGE;
	if (!entry_init(&entry, install, &err))
		code = verb_complain(CODE_FAILED, "mcp: %s", err.text);
	else if (install->write)
		code = write_entry(&entry, out);
	else
		code = put(out, buf_str(&entry.text));
	if (code == CODE_DONE && !install->write)
		(void)fprintf(stderr, "glovebox: for %s; --write adds it there\n",
			      entry.path.data);
	entry_fini(&entry);
	return code;
}

/* Finds the place of a new member by the tokens of the text. */

enum {
	INDENT_MAX = 64,       /* a deeper line counts as moved, not as indented */
	PRETTY_MAX = 64 << 10, /* an entry as it is printed */
};

/* The result of a walk over an object's tokens. */
struct spot {
	size_t open, close; /* its braces */
	size_t last;        /* the offset behind its last token (comments do not count) */
	bool empty, comma;  /* empty: it has no member; comma: its last token is one */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/*
 * The offset behind the comment at AT; AT when there is none. A comment of a line ends
 * before the line end.
 */
static size_t skip_comment(struct str text, size_t at)
{
	size_t end = at;

	if (str_starts(str_part(text, at, 2), STR("//")))
		end = str_find(text, STR("\n"), at);
	else if (str_starts(str_part(text, at, 2), STR("/*")))
		end = str_find(text, STR("*/"), at + 2);
	else
		return at;
	if (end == (size_t)-1)
		return text.size;
	return text.data[at + 1] == '*' ? end + 2 : end;
}

static size_t skip_space(struct str text, size_t at)
{
	while (at < text.size) {
		size_t next = is_blank(text.data[at]) ? at + 1 : skip_comment(text, at);

		if (next == at)
			break;
		at = next;
	}
	return at;
}

/* The offset behind the token at AT: a string, a mark, a word or a number. */
static size_t skip_token(struct str text, size_t at)
{
	size_t end = at + 1;

	if (text.data[at] == '"') {
		while (end < text.size && text.data[end] != '"')
			end += text.data[end] == '\\' ? 2 : 1;
		return end < text.size ? end + 1 : text.size;
	}
	if (strchr("{}[],:", text.data[at]))
		return end;
	while (end < text.size && !is_blank(text.data[end]) &&
	       !strchr("{}[],:\"/", text.data[end]))
		end++;
	return end;
}

static bool is_key(struct str token, const char *wanted)
{
	auto_value struct value *key = NULL;

	return token.size > 0 && token.data[0] == '"' &&
	       value_parse(token, 0, &key, NULL) && str_is(value_str(key), wanted);
}

/*
 * Walk over the object whose brace is at OPEN, and look for the key MEMBER (may be NULL).
 * *VALUE is the offset of the member's value; 0: there is no such member. TEXT is known
 * to be valid.
 */
static struct spot walk(struct str text, size_t open, const char *member, size_t *value)
{
	struct spot place = {.open = open, .last = open + 1, .empty = true};
	size_t at = skip_space(text, open + 1), depth = 1;
	bool wanted = false;

	while (at < text.size) {
		size_t end = skip_token(text, at);
		struct str token = str_part(text, at, end - at);
		bool opens = text.data[at] == '{' || text.data[at] == '[';
		bool closes = text.data[at] == '}' || text.data[at] == ']';

		depth -= closes;
		if (depth == 0) {
			place.close = at;
			return place;
		}
		if (member && depth == 1 && wanted && text.data[at] != ':') {
			*value = at;
			wanted = false;
		} else if (member && depth == 1 && text.data[skip_space(text, end)] == ':') {
			wanted = is_key(token, member);
		}
		depth += opens;
		place.empty = false;
		place.comma = depth == 1 && text.data[at] == ',';
		place.last = end;
		at = skip_space(text, end);
	}
	place.close = text.size;
	return place;
}

/* The blanks at the beginning of the line of AT. */
static struct str indent_of(struct str text, size_t at)
{
	size_t start = at, end;

	while (start > 0 && text.data[start - 1] != '\n')
		start--;
	for (end = start; end < at && (text.data[end] == ' ' || text.data[end] == '\t');)
		end++;
	return str_part(text, start, end - start < INDENT_MAX ? end - start : 0);
}

/* The indentation of one level: that of the first indented line. */
static struct str unit_of(struct str text)
{
	for (size_t at = str_find(text, STR("\n"), 0); at != (size_t)-1;
	     at = str_find(text, STR("\n"), at + 1)) {
		size_t end = at + 1;

		while (end < text.size && (text.data[end] == ' ' || text.data[end] == '\t'))
			end++;
		if (end > at + 1 && end < text.size && !is_blank(text.data[end]) &&
		    end - at <= INDENT_MAX)
			return str_part(text, at + 1, end - at - 1);
	}
	return STR("  ");
}

/*
 * Append `"NAME": ENTRY` on several lines. All of them except the first are indented by
 * INDENT.
 */
static void add_pretty(const char *name, const struct value *entry, struct str indent,
		       struct str unit, struct str line_end, struct buf *out)
{
	struct buf text;
	struct str rest, line;
	bool first = true;

	buf_init(&text, PRETTY_MAX);
	(void)value_quote(str_of(name), &text);
	(void)buf_adds(&text, ": ");
	(void)value_print(entry, VALUE_PRETTY, &text);
	rest = buf_str(&text);
	while (str_next_line(&rest, &line)) {
		if (!first) {
			(void)buf_addstr(out, line_end);
			(void)buf_addstr(out, indent);
		}
		first = false;
		/* The printer indents each level by two blanks. */
		while (str_starts(line, STR("  "))) {
			(void)buf_addstr(out, unit);
			line = str_part(line, 2, line.size);
		}
		(void)buf_addstr(out, line);
	}
	buf_fini(&text);
}

/*
 * The offset behind comments that follow AT on its line: such comments belong to the text
 * before them.
 */
static size_t behind_remarks(struct str text, size_t at)
{
	size_t end = at;

	while (end < text.size) {
		size_t next = text.data[end] == ' ' || text.data[end] == '\t'
				      ? end + 1
				      : skip_comment(text, end);

		if (next == end || memchr(text.data + end, '\n', next - end))
			break;
		if (text.data[end] == '/')
			at = next;
		end = next;
	}
	return at;
}

static void add_member(struct str text, const struct spot *place, const char *name,
		       const struct value *entry, struct buf *out)
{
	struct str line_end =
		str_find(text, STR("\r\n"), 0) != (size_t)-1 ? STR("\r\n") : STR("\n");
	struct str outer = indent_of(text, place->close);
	struct str unit = unit_of(text);
	size_t behind = behind_remarks(text, place->last);
	bool line_follows = memchr(text.data + behind, '\n', place->close - behind) != NULL;
	struct buf indent;

	if (place->empty)
		outer = indent_of(text, place->open);
	buf_init(&indent, 2 * INDENT_MAX);
	(void)buf_addstr(&indent, outer);
	(void)buf_addstr(&indent, unit);
	(void)buf_addstr(out, str_part(text, 0, place->last));
	if (!place->empty && !place->comma)
		(void)buf_addc(out, ',');
	(void)buf_addstr(out, str_part(text, place->last, behind - place->last));
	(void)buf_addstr(out, line_end);
	(void)buf_addstr(out, buf_str(&indent));
	add_pretty(name, entry, buf_str(&indent), unit, line_end, out);
	if (!line_follows) {
		(void)buf_addstr(out, line_end);
		(void)buf_addstr(out, outer);
	}
	(void)buf_addstr(out, str_part(text, behind, text.size));
	buf_fini(&indent);
}

/* OLD with the entry, as a value: the new text must be equal to it. */
static struct value *wanted_value(const struct value *old, const char *group,
				  const char *name, const struct value *entry)
{
	struct value *wanted = value_copy(old);

	if (!value_member(wanted, group))
		value_set(wanted, group, value_new_object());
	value_set(value_member(wanted, group), name, value_copy(entry));
	return wanted;
}

static bool check_result(struct str made, const struct value *wanted, struct err *err)
{
	auto_value struct value *read = NULL;

	if (!value_parse(made, VALUE_COMMENTS, &read, err))
		return false;
	return value_equal(read, wanted) ||
	       err_set(err, 0, "the entry could not be added without changing others");
}

static void insert(struct str text, const char *group, const char *name,
		   const struct value *entry, struct buf *out)
{
	auto_value struct value *whole = value_new_object();
	size_t open = skip_space(text, 0), value = 0;
	struct spot place = walk(text, open, group, &value);

	if (value) {
		place = walk(text, value, NULL, NULL);
		add_member(text, &place, name, entry, out);
		return;
	}
	value_set(whole, name, value_copy(entry));
	add_member(text, &place, group, whole, out);
}

enum json_insert_answer mcp_install_json_insert(struct str text, const char *group,
						const char *name, const struct value *entry,
						struct buf *out, struct err *err)
{
	auto_value struct value *old = NULL;
	auto_value struct value *wanted = NULL;
	const struct value *there;
	struct buf made;
	bool fits;

	if (str_trim(text).size == 0)
		text = STR("{}\n");
	if (!value_parse(text, VALUE_COMMENTS, &old, err))
		return JSON_REFUSED;
	if (value_kind(old) != VALUE_OBJECT) {
		(void)err_set(err, 0, "it holds no JSON object");
		return JSON_REFUSED;
	}
	there = value_member(old, group);
	if (there && value_kind(there) != VALUE_OBJECT) {
		(void)err_set(err, 0, "\"%s\" in it is no object", group);
		return JSON_REFUSED;
	}
	there = value_member(there, name);
	if (there)
		return value_equal(there, entry) ? JSON_IS_THERE : JSON_DIFFERS;
	wanted = wanted_value(old, group, name, entry);
	buf_init(&made, out->max);
	insert(text, group, name, entry, &made);
	fits = check_result(buf_str(&made), wanted, err) && buf_addstr(out, buf_str(&made));
	buf_fini(&made);
	return fits ? JSON_INSERTED : JSON_REFUSED;
}

/*
 * Reads statements of TOML (https://toml.io/en/v1.0.0). It reads headers and keys, and
 * only skips values, by their quotes and brackets.
 */

enum {
	PARTS_MAX = 16,   /* of a name: settings have three */
	NESTING_MAX = 64, /* of brackets in a value */
};

/* A dotted name as written, without its quotes; escapes are not decoded. */
struct name {
	struct str parts[PARTS_MAX];
	size_t count;
};

struct reader {
	struct str text;
	size_t at, line;
};

static char peek(const struct reader *reader)
{
	return reader->at < reader->text.size ? reader->text.data[reader->at] : '\0';
}

static bool at_end(const struct reader *reader)
{
	return reader->at >= reader->text.size;
}

static void step(struct reader *reader, size_t bytes)
{
	for (; bytes && !at_end(reader); bytes--)
		reader->line += reader->text.data[reader->at++] == '\n';
}

static bool wrong(const struct reader *reader, const char *what, struct err *err)
{
	return err_set(err, 0, "line %zu: %s", reader->line, what);
}

static void skip_blanks(struct reader *reader)
{
	while (peek(reader) == ' ' || peek(reader) == '\t')
		step(reader, 1);
}

/* Skip a comment and the blanks before it, up to the line end. */
static void skip_remark(struct reader *reader)
{
	skip_blanks(reader);
	if (peek(reader) != '#')
		return;
	while (!at_end(reader) && peek(reader) != '\n')
		step(reader, 1);
}

/*
 * Skip a string with its quotes: of one line or, between three quotes, of several lines.
 */
static bool skip_string(struct reader *reader, struct str *content, struct err *err)
{
	char quote = peek(reader);
	struct str three = {(const char[]){quote, quote, quote}, 3};
	bool several = str_starts(str_part(reader->text, reader->at, 3), three);
	size_t start;

	step(reader, several ? 3 : 1);
	start = reader->at;
	while (!at_end(reader)) {
		if (several ? str_starts(str_part(reader->text, reader->at, 3), three)
			    : peek(reader) == quote) {
			*content = str_part(reader->text, start, reader->at - start);
			step(reader, several ? 3 : 1);
			/* Up to two quotes may stand before the closing three. */
			while (several && peek(reader) == quote)
				step(reader, 1);
			return true;
		}
		if (!several && peek(reader) == '\n')
			break;
		step(reader, quote == '"' && peek(reader) == '\\' ? 2 : 1);
	}
	return wrong(reader, "a string has no end", err);
}

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool read_name(struct reader *reader, struct name *name, struct err *err)
{
	for (;;) {
		struct str part = {reader->text.data + reader->at, 0};

		skip_blanks(reader);
		if (name->count == PARTS_MAX)
			return wrong(reader, "a name has too many parts", err);
		if (peek(reader) == '"' || peek(reader) == '\'') {
			if (!skip_string(reader, &part, err))
				return false;
		} else {
			part.data = reader->text.data + reader->at;
			for (; is_bare(peek(reader)); step(reader, 1))
				part.size++;
			if (part.size == 0)
				return wrong(reader, "here should be a name", err);
		}
		name->parts[name->count++] = part;
		skip_blanks(reader);
		if (peek(reader) != '.')
			return true;
		step(reader, 1);
	}
}

/* Skip a value up to its line end. A list may have several lines. */
static bool skip_value(struct reader *reader, struct err *err)
{
	size_t depth = 0;
	struct str content;

	skip_blanks(reader);
	if (at_end(reader) || peek(reader) == '\n' || peek(reader) == '#')
		return wrong(reader, "here should be a value", err);
	while (!at_end(reader) && (depth || peek(reader) != '\n')) {
		char c = peek(reader);

		if (c == '"' || c == '\'') {
			if (!skip_string(reader, &content, err))
				return false;
			continue;
		}
		if (c == '#') {
			skip_remark(reader);
			continue;
		}
		if (c == '[' || c == '{')
			depth++;
		if ((c == ']' || c == '}') && depth-- == 0)
			return wrong(reader, "a bracket closes nothing", err);
		if (depth > NESTING_MAX)
			return wrong(reader, "too many brackets in each other", err);
		step(reader, 1);
	}
	return depth == 0 || wrong(reader, "a bracket is not closed", err);
}

static bool read_header(struct reader *reader, struct name *header, bool *list,
			struct err *err)
{
	*list = str_starts(str_part(reader->text, reader->at, 2), STR("[["));
	*header = (struct name){0};
	step(reader, *list ? 2 : 1);
	if (!read_name(reader, header, err))
		return false;
	if (!str_starts(str_part(reader->text, reader->at, 2), *list ? STR("]]") : STR("]")))
		return wrong(reader, "a header is not closed", err);
	step(reader, *list ? 2 : 1);
	return true;
}

/*
 * One statement: a header, or the key of a value. `whole` is its name with that of the
 * header before it.
 */
struct statement {
	struct name header, whole;
	bool is_list, is_header;
};

static bool read_statement(struct reader *reader, struct statement *statement,
			   struct err *err)
{
	statement->is_header = peek(reader) == '[';
	if (statement->is_header) {
		if (!read_header(reader, &statement->header, &statement->is_list, err))
			return false;
		statement->whole = statement->header;
	} else {
		statement->whole = statement->header;
		if (!read_name(reader, &statement->whole, err))
			return false;
		if (peek(reader) != '=')
			return wrong(reader, "behind a name should be =", err);
		step(reader, 1);
		if (!skip_value(reader, err))
			return false;
	}
	skip_remark(reader);
	if (peek(reader) == '\r')
		step(reader, 1);
	return at_end(reader) || peek(reader) == '\n' ||
	       wrong(reader, "something stands behind the end", err);
}

enum toml_answer mcp_install_toml_look(struct str text, const char *group,
				       const char *name, struct err *err)
{
	struct reader reader = {text, 0, 1};
	struct statement statement = {0};
	bool there = false;

	if (text.size && memchr(text.data, '\0', text.size)) {
		(void)err_set(err, 0, "it is no text");
		return TOML_REFUSED;
	}
	for (;; step(&reader, 1)) {
		const struct name *whole = &statement.whole;

		skip_remark(&reader);
		if (at_end(&reader))
			return there ? TOML_IS_THERE : TOML_FREE;
		if (peek(&reader) == '\n' || peek(&reader) == '\r')
			continue;
		if (!read_statement(&reader, &statement, err))
			return TOML_REFUSED;
		if (!str_is(whole->parts[0], group))
			continue;
		if (whole->count == 1 && (!statement.is_header || statement.is_list)) {
			(void)err_set(err, 0,
				      "line %zu: \"%s\" is a value, to which no table can be added",
				      reader.line, group);
			return TOML_REFUSED;
		}
		there = there || (whole->count > 1 && str_is(whole->parts[1], name));
	}
}
