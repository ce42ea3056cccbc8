/* mcp_install: a table of clients, and the run of a client's own command. */

#include "front/wrap/mcp_install.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/interrupt.h"
#include "front/verb.h"
#include "front/verbs/run.h"
#include "process/follow.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY_NAME "glovebox"

/* Words of a command that stand for others. */
#define PROGRAM   "{program}"   /* our own program */
#define ARGUMENTS "{arguments}" /* its arguments */
#define SERVER    "{server}"    /* the entry and its name, as JSON */

enum {
	ENTRY_MAX = 256 << 10,
	LINE_MAX_BYTES = 4 * ENTRY_MAX, /* a command in quotes */
	COMMAND_WORDS = 10,
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
	/* its documented commands that add a server and remove it again; empty: none */
	const char *add[COMMAND_WORDS], *remove[COMMAND_WORDS];
};

static const struct client clients[] = {
	{"claude",
	 "CLAUDE_CONFIG_DIR",
	 ".",
	 ".claude.json",
	 NULL,
	 "mcpServers",
	 FORM_STDIO,
	 false,
	 {"claude", "mcp", "add", "--scope", "user", ENTRY_NAME, "--", PROGRAM, ARGUMENTS},
	 {"claude", "mcp", "remove", "--scope", "user", ENTRY_NAME}},
	{"codex",
	 "CODEX_HOME",
	 ".codex",
	 "config.toml",
	 NULL,
	 "mcp_servers",
	 FORM_TOML,
	 false,
	 {"codex", "mcp", "add", ENTRY_NAME, "--", PROGRAM, ARGUMENTS},
	 {"codex", "mcp", "remove", ENTRY_NAME}},
	{"gemini",
	 NULL,
	 ".gemini",
	 "settings.json",
	 NULL,
	 "mcpServers",
	 FORM_PLAIN,
	 false,
	 {"gemini", "mcp", "add", "--scope", "user", ENTRY_NAME, PROGRAM, "--", ARGUMENTS},
	 {"gemini", "mcp", "remove", "--scope", "user", ENTRY_NAME}},
	{"qwen",
	 NULL,
	 ".qwen",
	 "settings.json",
	 NULL,
	 "mcpServers",
	 FORM_PLAIN,
	 false,
	 {"qwen", "mcp", "add", "--scope", "user", ENTRY_NAME, PROGRAM, "--", ARGUMENTS},
	 {"qwen", "mcp", "remove", "--scope", "user", ENTRY_NAME}},
	{"opencode",
	 "XDG_CONFIG_HOME",
	 ".config",
	 "opencode/opencode.json",
	 "opencode/opencode.jsonc",
	 "mcp",
	 FORM_OPENCODE,
	 false,
	 {"opencode", "mcp", "add", ENTRY_NAME, "--", PROGRAM, ARGUMENTS},
	 {NULL}},
	{"vscode",
	 "XDG_CONFIG_HOME",
	 ".config",
	 "Code/User/mcp.json",
	 NULL,
	 "servers",
	 FORM_STDIO,
	 true,
	 {"code", "--add-mcp", SERVER},
	 {NULL}},
	{"cursor", NULL, ".cursor", "mcp.json", NULL, "mcpServers", FORM_STDIO, true, {NULL}, {NULL}},
};

enum { CLIENTS = sizeof(clients) / sizeof(clients[0]) };

/* The entry, its file, and the client's command that adds it. */
struct entry {
	const struct client *client;
	struct value *value;
	struct value *command; /* an array of texts, empty when the client has none */
	struct buf text;       /* the text of a file that holds only the entry */
	struct buf path;
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
				const struct value *arguments)
{
	struct value *entry = value_new_object();

	if (client->form == FORM_OPENCODE) {
		struct value *command = value_new_array();

		value_append(command, value_new_text(program));
		for (size_t i = 0; i < value_count(arguments); i++)
			value_append(command, value_ref(value_item(arguments, i)));
		value_set_text(entry, "type", "local");
		value_set(entry, "command", command);
		value_set_boolean(entry, "enabled", true);
		return entry;
	}
	if (client->form == FORM_STDIO)
		value_set_text(entry, "type", "stdio");
	value_set_text(entry, "command", program);
	value_set(entry, "args", value_copy(arguments));
	return entry;
}

/* The entry in the form of `code --add-mcp`. The caller frees it. */
static struct value *make_server(const struct value *entry)
{
	struct value *server = value_new_object();

	value_set_text(server, "name", ENTRY_NAME);
	for (void *at = value_first(entry); at; at = value_next(entry, at))
		value_set(server, value_key(at), value_ref(value_at(at)));
	return server;
}

static void add_server(struct value *words, const struct value *entry)
{
	auto_value struct value *server = make_server(entry);
	struct buf text;

	buf_init(&text, ENTRY_MAX);
	(void)value_print(server, 0, &text);
	value_append(words, value_new_str(buf_str(&text)));
	buf_fini(&text);
}

/* The client's command that adds the entry; empty when the client has none. */
static struct value *make_command(const struct client *client, const char *program,
				  const struct value *arguments, const struct value *entry)
{
	struct value *words = value_new_array();

	for (const char *const *word = client->add; *word != NULL; word++) {
		if (strcmp(*word, SERVER) == 0)
			add_server(words, entry);
		else if (strcmp(*word, ARGUMENTS) != 0)
			value_append(words,
				     value_new_text(strcmp(*word, PROGRAM) == 0 ? program
										: *word));
		else
			for (size_t i = 0; i < value_count(arguments); i++)
				value_append(words, value_ref(value_item(arguments, i)));
	}
	return words;
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
	auto_value struct value *file = value_new_object();
	struct value *group = value_new_object();

	value_set(group, ENTRY_NAME, value_ref(entry->value));
	value_set(file, entry->client->group, group);
	(void)value_print(file, VALUE_PRETTY, out);
	(void)buf_addc(out, '\n');
}

static bool find_path(const struct client *client, struct buf *path, struct err *err)
{
	const char *variable = client->variable ? getenv(client->variable) : NULL;
	const char *home = getenv("HOME");

	if (client->other &&
	    path_xdg(variable, home, client->fallback, client->other, path) &&
	    access(path->data, F_OK) == 0)
		return true;
	buf_clear(path);
	return path_xdg(variable, home, client->fallback, client->file, path) ||
	       err_set(err, 0, "HOME is not set: where its settings are is not known");
}

/*
 * Settings are UTF-8: another path would be written as one that does not exist. In an
 * option such bytes have become U+FFFD.
 */
static bool is_text(const char *word)
{
	return text_is_utf8(str_of(word)) && strstr(word, "\xef\xbf\xbd") == NULL;
}

static bool are_texts(const char *program, const struct mcp_install *install, struct err *err)
{
	const char *wrong = is_text(program) ? NULL : program;

	for (size_t i = 0; wrong == NULL && install->arguments[i] != NULL; i++)
		wrong = is_text(install->arguments[i]) ? NULL : install->arguments[i];
	return wrong == NULL ||
	       err_set(err, EILSEQ,
		       "\"%.300s\" is not UTF-8, so it cannot stand in the settings of a "
		       "client: give it a name of plain text",
		       wrong);
}

static bool entry_init(struct entry *entry, const struct mcp_install *install,
		       struct err *err)
{
	const struct client *client = entry->client;
	struct value *arguments = NULL;
	struct buf program;
	bool fits;

	buf_init(&entry->text, ENTRY_MAX);
	buf_init(&entry->path, PATH_MAX);
	buf_init(&program, PATH_MAX);
	fits = own_program(&program, err) && find_path(client, &entry->path, err);
	if (fits) {
		arguments = arguments_of(install, client);
		fits = are_texts(program.data, install, err);
	}
	if (fits) {
		entry->value = make_value(client, program.data, arguments);
		entry->command =
			make_command(client, program.data, arguments, entry->value);
		if (client->form == FORM_TOML)
			print_toml(entry, &entry->text);
		else
			print_json(entry, &entry->text);
		if (entry->text.overflowed)
			fits = err_set(err, 0, "the options are too long for an entry");
	}
	value_free(arguments);
	buf_fini(&program);
	return fits;
}

static void entry_fini(struct entry *entry)
{
	value_free(entry->value);
	value_free(entry->command);
	buf_fini(&entry->text);
	buf_fini(&entry->path);
}

/*
 * Say BEFORE and the entry's command as a person would type it: on one line even on a
 * narrow terminal, so that it can be copied.
 */
static void say_command(const struct entry *entry, const char *before)
{
	struct buf line, clean;

	buf_init(&line, LINE_MAX_BYTES);
	buf_init(&clean, 4 * LINE_MAX_BYTES); /* \xHH for every byte */
	for (size_t i = 0; i < value_count(entry->command); i++) {
		(void)buf_addc(&line, ' ');
		shell_token_add_word(value_text(value_item(entry->command, i)), &line);
	}
	text_add_exact(&clean, buf_str(&line));
	(void)fprintf(stderr, "glovebox: %s:%s\n", before, clean.data);
	buf_fini(&clean);
	buf_fini(&line);
}

/*
 * Append how a person removes the entry from its client again. The file is looked for
 * anew, since the client may just have made one under its other name.
 */
static void add_way_back(const struct client *client, struct buf *line)
{
	struct buf path;

	for (size_t i = 0; client->remove[i] != NULL; i++)
		(void)buf_addf(line, "%s%s", i > 0 ? " " : "", client->remove[i]);
	if (client->remove[0] != NULL)
		return;
	buf_init(&path, PATH_MAX);
	(void)find_path(client, &path, NULL);
	(void)buf_addf(line, "remove \"" ENTRY_NAME "\" from \"%s\" in %s", client->group,
		       path.data);
	buf_fini(&path);
}

/* Print the entry on OUT, and on standard error where it belongs. */
static int show(const struct entry *entry, FILE *out)
{
	int code;

	(void)fwrite(entry->text.data, 1, entry->text.size, out);
	/* Flush, so that the lines on standard error come below the entry. */
	code = verb_printed(CODE_DONE, out);
	if (code != CODE_DONE)
		return code;
	if (entry->client->form == FORM_TOML)
		return verb_complain(code, "for the end of %s", entry->path.data);
	return verb_complain(code,
			     "for %s; if it has \"%s\" already, add \"" ENTRY_NAME
			     "\" to that",
			     entry->path.data, entry->client->group);
}

static int print(const struct entry *entry, FILE *out)
{
	const int code = show(entry, out);

	if (code == CODE_DONE && entry->client->add[0] != NULL)
		say_command(entry, "the client's own command for it is");
	return code;
}

/* There is no command to run: say what a person can do instead. */
static int leave_to_person(const struct entry *entry, FILE *out)
{
	const int code = show(entry, out);

	if (code != CODE_DONE)
		return code;
	if (entry->client->add[0] == NULL)
		return verb_complain(CODE_FAILED,
				     "mcp: nothing was written: %s has no command that adds a "
				     "server; above is what to add",
				     entry->client->name);
	return verb_complain(CODE_FAILED,
			     "mcp: nothing was written: the program \"%s\" is not in PATH; "
			     "above is what to add",
			     entry->client->add[0]);
}

/* Say what a command has done that ended as RUN tells. Returns the exit code. */
static int judge(const struct entry *entry, const struct program_run *run, double limit_s,
		 int signal)
{
	const char *name = entry->client->add[0];
	struct buf back;
	int code;

	buf_init(&back, LINE_MAX_BYTES);
	add_way_back(entry->client, &back);
	if (run->ending == PROGRAM_CANCELLED)
		code = verb_complain(CODE_SIGNAL + signal,
				     "mcp: %s was stopped; whether it has added \"" ENTRY_NAME
				     "\" is not known",
				     name);
	else if (run->ending != PROGRAM_ENDED)
		code = verb_complain(CODE_TIMED_OUT,
				     "mcp: %s did not end within %g s and was stopped; "
				     "whether it has added \"" ENTRY_NAME
				     "\" is not known. --print shows the command and the entry",
				     name, limit_s);
	else if (run->exit_code != 0)
		code = verb_complain(CODE_FAILED,
				     "mcp: %s failed (%s %d). If it has a server "
				     "\"" ENTRY_NAME "\" already, take that back first: %s",
				     name, run->exit_code < 0 ? "signal" : "exit code",
				     run->exit_code < 0 ? run->signal : run->exit_code,
				     back.data);
	else
		code = verb_complain(CODE_DONE,
				     "%s has added \"" ENTRY_NAME
				     "\" and uses it after its next start; to take it back: %s",
				     name, back.data);
	buf_fini(&back);
	return code;
}

static bool stop_is_asked(void *context)
{
	(void)context;
	return true;
}

/*
 * Run WORDS, the client's command, as the person would: in this folder, with this
 * environment, its output among ours. It has no input, so that it cannot wait for any.
 */
static int run_command(const struct entry *entry, const char *const *words, double limit_s)
{
	struct interrupt *interrupt = NULL;
	struct program_run run;
	struct err err;
	int code;

	program_run_init(&run);
	run.start.argv = words;
	run.start.environment = (const char *const *)environ;
	run.start.fds[1] = STDOUT_FILENO;
	run.start.fds[2] = STDERR_FILENO;
	run.deadline_ms = clock_deadline(limit_s);
	run.stopped = stop_is_asked;
	if (interrupt_open(&interrupt, &err) && interrupt_start(interrupt, &err)) {
		run.stop_fd = interrupt_fd(interrupt);
		code = follow_program(&run, &err)
			       ? judge(entry, &run, limit_s, interrupt_signal(interrupt))
			       : -1;
	} else {
		code = -1;
	}
	if (code < 0)
		code = verb_complain(CODE_FAILED,
				     "mcp: nothing was written: %s cannot be run: %s",
				     words[0], err.text);
	interrupt_close(interrupt);
	program_run_fini(&run);
	return code;
}

static int add(const struct entry *entry, double limit_s)
{
	const size_t count = value_count(entry->command);
	auto_free const char **words = memory_array(count + 1, sizeof(*words));

	for (size_t i = 0; i < count; i++)
		words[i] = value_text(value_item(entry->command, i));
	say_command(entry, "running");
	return run_command(entry, words, limit_s);
}

static bool has_program(const struct client *client)
{
	struct buf found;
	bool has;

	buf_init(&found, PATH_MAX);
	has = client->add[0] != NULL &&
	      run_find_program(getenv("PATH"), client->add[0], &found);
	buf_fini(&found);
	return has;
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
	else if (install->prints)
		code = print(&entry, out);
	else if (has_program(entry.client))
		code = add(&entry, install->limit_s);
	else
		code = leave_to_person(&entry, out);
	entry_fini(&entry);
	return code;
}
