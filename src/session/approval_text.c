/* approval_text: the text that a question shows, and the hash over it. */
#include "session/approval_text.h"

#include "base/hash.h"
#include "base/path.h"
#include "base/text/text.h"
#include "session/approval.h"
#include "session/approval_relay.h"
#include "session/session.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A question passes through at most so many agents; there are fewer (orchestra.h). */
enum { RELAYED_DEPTH_MAX = 8 };

/* The command of the call, or its tool with all arguments. */
void approval_command(const struct running *running, struct buf *text)
{
	const struct tool_param *rows = running->tool->params;

	for (; rows != NULL && rows->name != NULL; rows++) {
		const struct value *value = value_member(running->arguments, rows->name);

		if (rows->kind == PARAM_COMMAND && value != NULL) {
			(void)buf_addstr(text, value_str(value));
			return;
		}
	}
	(void)buf_addf(text, "%s ", running->tool->name);
	(void)value_print(running->arguments, VALUE_SORTED, text);
}

/*
 * The folder in which the call would run: the one that the call names, or the session's.
 */
static void folder_of(const struct running *running, struct buf *folder)
{
	const struct session *session = running->session;
	const struct tool_param *rows = running->tool->params;

	for (; rows != NULL && rows->name != NULL; rows++) {
		const char *given =
			value_text(value_member(running->arguments, rows->name));

		if (rows->kind == PARAM_FOLDER && given != NULL &&
		    path_normal(session_workspace(session), given, folder))
			return;
	}
	buf_clear(folder);
	(void)buf_adds(folder, session->folder);
}

/*
 * Add TEXT line by line. Characters that nobody would see, or that would move the cursor,
 * become visible.
 */
static void add_shown(struct buf *out, struct str text)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		(void)buf_adds(out, "    ");
		text_add_exact(out, line);
		(void)buf_addc(out, '\n');
	}
}

static struct value *schema_of_answer(void)
{
	static const char *const choices[] = {"once", "session", "no", NULL};
	static const char *const required[] = {"answer", NULL};
	struct value *schema = value_new_object(), *properties = value_new_object();
	struct value *answer = value_new_object();

	value_set_text(answer, "type", "string");
	value_set_text(answer, "title", "Allow it?");
	value_set(answer, "enum", value_new_texts(choices));
	value_set(properties, "answer", answer);
	value_set_text(schema, "type", "object");
	value_set(schema, "properties", properties);
	value_set(schema, "required", value_new_texts(required));
	return schema;
}

/* NULL: a tool names this effect and states the wish itself. */
static const char *wish_of(const char *effect)
{
	static const struct {
		const char *effect, *wish;
	} wishes[] = {
		{"command", "run a command that is not listed"},
		{"network", "reach a host that is not listed"},
		{"read", "read a folder that it was not given, and all below it"},
		{"write", "write to a folder that it was not given, and to all below it"},
	};

	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		if (strcmp(wishes[i].effect, effect) == 0)
			return wishes[i].wish;
	}
	return NULL;
}

/* For a delegate: who delegated to it, and how deep. */
static void add_delegates(const struct value *delegates, struct buf *text)
{
	const size_t count = value_count(delegates);

	if (count == 0)
		return;
	(void)buf_adds(text, " (a delegate of ");
	for (size_t i = count; i-- > 0;) {
		text_add_exact(text, value_str(value_item(delegates, i)));
		(void)buf_adds(text, i > 0 ? ", which is one of " : "");
	}
	(void)buf_addf(text, "; depth %zu)", count);
}

/* The question as a form, made of the members of DATA. */
static struct value *form_of(const struct value *data)
{
	const char *effect = value_text(value_member(data, "effect"));
	const char *wish = wish_of(effect);
	struct value *request = value_new_object();
	struct buf text;

	buf_init(&text, SHOWN_MAX);
	(void)buf_adds(&text, "Agent ");
	text_add_exact(&text, value_str(value_member(data, "agent")));
	add_delegates(value_member(data, "delegates"), &text);
	(void)buf_adds(&text, " wants to ");
	text_add_exact(&text, wish != NULL ? str_of(wish)
					   : value_str(value_member(data, "wish")));
	(void)buf_adds(&text, ":\n");
	if (wish == NULL || strcmp(effect, "command") == 0) {
		add_shown(&text, value_str(value_member(data, "subject")));
	} else {
		/* A folder or a host is shown as one line, whatever its name is. */
		(void)buf_adds(&text, "    ");
		text_add_exact(&text, value_str(value_member(data, "subject")));
		(void)buf_addc(&text, '\n');
	}
	if (strcmp(effect, "command") != 0) {
		(void)buf_adds(&text, "for:\n");
		add_shown(&text, value_str(value_member(data, "command")));
	}
	(void)buf_adds(&text, "in ");
	text_add_exact(&text, value_str(value_member(data, "folder")));
	(void)buf_addf(&text, ". \"session\" allows until %s session ends: ",
		       value_member(data, "delegates") != NULL ? "the delegate's" : "the");
	text_add_exact(&text, value_str(value_member(data, "scope")));
	value_set_str(request, "message", buf_str(&text));
	value_set(request, "schema", schema_of_answer());
	buf_fini(&text);
	return request;
}

void approval_file(int fd, char file[APPROVAL_FILE])
{
	struct stat st = {0};

	(void)fstat(fd, &st);
	(void)snprintf(file, APPROVAL_FILE, "%" PRIuMAX ":%" PRIuMAX,
		       (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

/* Add the hash over DATA, and the members that are not part of the hash. */
static void data_finish(struct value *data)
{
	char hash[HASH_HEX + 1];
	struct buf text;

	buf_init(&text, 2 * SHOWN_MAX);
	(void)value_print(data, VALUE_SORTED, &text);
	hash_text(buf_str(&text), hash);
	buf_fini(&text);
	value_set_text(data, "hash", hash);
	value_set_integer(data, "wait_s", APPROVAL_WAIT_S);
	value_set_text(data, "kind", "form");
	value_set(data, "request", form_of(data));
}

struct value *approval_data(const struct running *running,
			    const struct approval_subject *subject)
{
	const struct session *session = running->session;
	struct value *data = value_new_object();
	struct buf command, folder;

	buf_init(&command, 2 * COMMAND_SHOWN_MAX);
	buf_init(&folder, PATH_MAX);
	approval_command(running, &command);
	folder_of(running, &folder);
	value_set_text(data, "effect", subject->effect);
	if (subject->wish != NULL)
		value_set_text(data, "wish", subject->wish);
	value_set_str(data, "subject", subject->subject);
	value_set_str(data, "command", buf_str(&command));
	value_set_text(data, "because", subject->because);
	value_set_text(data, "rule", subject->rule);
	value_set_text(data, "scope", subject->scope);
	if (subject->file != NULL)
		value_set_text(data, "file", subject->file);
	value_set_text(data, "agent", session->policy->name);
	value_set_str(data, "folder", buf_str(&folder));
	value_set_text(data, "workspace", session_workspace(session));
	data_finish(data);
	buf_fini(&folder);
	buf_fini(&command);
	return data;
}

struct value *approval_relay_data(const struct running *running, const char *agent,
				  const struct value *asked)
{
	static const char *const needed[] = {"effect", "subject", "command", "because",
					     "rule",   "scope",   "folder",  "workspace"};
	const struct value *above = value_member(asked, "delegates");
	const char *file = value_text(value_member(asked, "file"));
	const char *wish = value_text(value_member(asked, "wish"));
	const char *hash = value_text(value_member(asked, "hash"));
	struct value *data = value_new_object(), *delegates = value_new_array();
	bool sound = hash != NULL && value_count(above) < RELAYED_DEPTH_MAX;

	/*
	 * When the question has passed through other agents, ASKED names the agent that
	 * began it.
	 */
	if (value_count(above) > 0)
		agent = value_text(value_member(asked, "agent"));
	sound = sound && agent != NULL;
	value_set_text(data, "agent", agent != NULL ? agent : "");
	value_set(data, "delegates", delegates);
	value_append(delegates, value_new_text(running->session->policy->name));
	for (size_t i = 0; sound && i < value_count(above); i++)
		value_append(delegates, value_new_text(value_text(value_item(above, i))));
	for (size_t i = 0; sound && i < sizeof(needed) / sizeof(needed[0]); i++) {
		const struct value *member = value_member(asked, needed[i]);

		sound = value_text(member) != NULL &&
			value_str(member).size <= 2 * COMMAND_SHOWN_MAX;
		if (sound)
			value_set(data, needed[i], value_copy(member));
	}
	if (!sound ||
	    (wish == NULL && wish_of(value_text(value_member(data, "effect"))) == NULL) ||
	    (wish != NULL && strlen(wish) > COMMAND_SHOWN_MAX)) {
		value_free(data);
		return NULL;
	}
	if (wish != NULL)
		value_set_text(data, "wish", wish);
	if (file != NULL)
		value_set_text(data, "file", file);
	/*
	 * The other session binds its answer to its own hash, so that hash is part of
	 * what ours covers.
	 */
	value_set_text(data, "delegate_hash", hash);
	data_finish(data);
	return data;
}
