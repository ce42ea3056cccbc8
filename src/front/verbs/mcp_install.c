/* mcp_install: a table of clients, and the careful change of a client's file. */
#include "front/verbs/mcp_install.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/diff.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/talk.h"
#include "front/verb.h"
#include "front/verbs/json_insert.h"
#include "front/verbs/run.h"
#include "front/verbs/toml_append.h"

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
	const char *variable; /* the folder of its settings, when set */
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

	if (find_program("glovebox", path) && path->data[0] == '/' &&
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

	(void)json_insert((struct str){"", 0}, entry->client->group, ENTRY_NAME,
			  entry->value, out, &err);
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
	switch (toml_look(old, entry->client->group, ENTRY_NAME, err)) {
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
	switch (json_insert(old, entry->client->group, ENTRY_NAME, entry->value, out, err)) {
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
	if (!confirm_ask(stderr, "Write this to %s?", path))
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
