/* approval: questions to a person, their answers, and the grants. */

#include "session/approval.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "cell/anchor.h"
#include "cell/outlet.h"
#include "cell/pending.h"
#include "policy/ceiling.h"
#include "policy/command.h"
#include "policy/commands.h"
#include "policy/network.h"
#include "policy/policy.h"
#include "policy/rules.h"
#include "session/masking.h"
#include "session/session.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	/*
	 * How many connections may wait for one answer; a program opens a handful at the
	 * same time.
	 */
	HELD_MAX = 64,
};

/* The thing that waits for the answer. */
enum approval_kind {
	APPROVAL_COMMAND, /* a call: its command */
	APPROVAL_LEAVE,   /* a call: all that a tool of the front would do */
	APPROVAL_FOLDER,  /* a call: the folder `extra` */
	APPROVAL_HOST,    /* connections to `target` */
	APPROVAL_RELAYED, /* another session: `relay` */
};

struct approval {
	struct approval *next;
	struct running *running;
	enum approval_kind kind;
	int64_t id;
	bool shown; /* the person is being asked this question now */
	struct value *data;
	char *grant;         /* the key of a session's grant */
	char *words;         /* what a person has said with a no; or NULL */
	struct extra *extra; /* of APPROVAL_FOLDER only */
	/* of APPROVAL_HOST only: host:port, and the connections that wait */
	char *target;
	uint64_t held[HELD_MAX];
	size_t held_count;
	struct approval_relay relay; /* of APPROVAL_RELAYED only; `call` is owned */
	/* until the question is shown, then until the time for an answer is over */
	struct timer timer;
};

enum {
	COMMAND_SHOWN_MAX = 16 << 10, /* a person reads all of what they judge */
	/* Every byte of a command may be shown as four. */
	SHOWN_MAX = 8 * COMMAND_SHOWN_MAX,
	/*
	 * A question, as a person sees it and as JSON: every byte of its texts may become
	 * six. One that is larger is not asked.
	 */
	QUESTION_MAX = 4 << 20,
	DELEGATE_NAME_MAX = 256,
	APPROVAL_FILE = 48,
	CHANGE_SHOWN_MAX = 256 << 10, /* a person looks through it, and may scroll */
};

/*
 * A question: all that its hash covers. The texts may hold any bytes, because those of
 * another session are not trusted.
 */
struct question {
	struct str effect, subject, because, rule, scope;
	/* what is wanted, where the effect does not say it by itself (wish_of); or empty */
	struct str wish;
	/* which folder it is, beside its name (approval_file); or empty */
	struct str file;
	struct str command, agent, folder, workspace;
	struct str after;     /* the host whose page was read in this turn; or empty */
	struct value *always; /* the rules that this answer would keep; or NULL */
	/* of a question of another session: through whom it came, and its own hash */
	struct value *delegates;
	struct str delegate_hash;
};

#define QUESTION(member, ...) \
	FIELD(struct question, member, .max = 2 * COMMAND_SHOWN_MAX, __VA_ARGS__)
static const struct field question_fields[] = {
	QUESTION(effect),
	FIELD(struct question, wish, .max = COMMAND_SHOWN_MAX, .optional = true),
	FIELD(struct question, subject, .max = CHANGE_SHOWN_MAX),
	QUESTION(command),
	QUESTION(because),
	QUESTION(rule),
	QUESTION(scope),
	QUESTION(file, .optional = true),
	QUESTION(agent, .optional = true),
	QUESTION(folder),
	QUESTION(workspace),
	QUESTION(after, .optional = true),
	FIELD(struct question, always, .optional = true),
	FIELD(struct question, delegates, .optional = true),
	FIELD(struct question, delegate_hash, .optional = true),
	{0},
};

/* The members of the event beside the question. */
struct asked {
	const char *hash, *kind;
	int wait_s;
	struct value *request;
};

static const struct field asked_fields[] = {
	FIELD(struct asked, hash),
	FIELD(struct asked, wait_s),
	FIELD(struct asked, kind),
	FIELD(struct asked, request),
	{0},
};

static const char *const answers[] = {
	[APPROVAL_NO] = "no",
	[APPROVAL_ONCE] = "once",
	[APPROVAL_SESSION] = "session",
	[APPROVAL_ALWAYS] = "always",
};
static const char *const givers[] = {
	[APPROVAL_BY_PERSON] = "person", [APPROVAL_BY_SESSION] = "session",
	[APPROVAL_BY_TIME] = "time",     [APPROVAL_BY_CANCEL] = "cancel",
	[APPROVAL_BY_NOBODY] = "nobody", [APPROVAL_BY_HOOK] = "hook",
};

/* An answer, as an event and as it comes from a person's program. */
struct given {
	int64_t id;
	enum approval_answer answer;
	enum approval_by by;
};

static const struct field given_fields[] = {
	FIELD(struct given, id),
	FIELD_CHOICE(struct given, answer, "answer", answers),
	FIELD_CHOICE(struct given, by, "by", givers),
	{0},
};

struct reply {
	struct str action, answer, by, hash;
	struct str words; /* what a person says with a no; or empty */
};

static const struct field content_fields[] = {
	FIELD(struct reply, answer, .optional = true),
	FIELD(struct reply, by, .optional = true),
	FIELD(struct reply, hash, .optional = true),
	FIELD(struct reply, words, .optional = true),
	{0},
};

static const struct field reply_fields[] = {
	FIELD(struct reply, action, .optional = true),
	FIELD_GROUP("content", content_fields, .optional = true),
	{0},
};

/* The decisions by name. There are few, so that a list is fast enough. */

static const struct grant *grant_find(const struct grants *grants, const char *name)
{
	for (size_t i = 0; i < grants->count; i++) {
		if (strcmp(grants->items[i].name, name) == 0)
			return &grants->items[i];
	}
	return NULL;
}

/* NAME, which is not there, was granted (YES) or refused. */
static void grant_add(struct grants *grants, const char *name, bool yes)
{
	grants->items =
		memory_grow(grants->items, grants->count + 1, sizeof(grants->items[0]));
	grants->items[grants->count++] = (struct grant){memory_copy(name), yes};
}

/* The session was granted NAME. */
static void grant_for_session(struct session *session, const char *name)
{
	if (session->granted.count < APPROVAL_GRANTS_MAX &&
	    grant_find(&session->granted, name) == NULL)
		grant_add(&session->granted, name, true);
}

static void grants_fini(struct grants *grants)
{
	for (size_t i = 0; i < grants->count; i++)
		free(grants->items[i].name);
	free(grants->items);
	*grants = (struct grants){0};
}

/* The words of a scope, made from the parts of a command. */

/*
 * Do the program and the first word of PART say what PART does? An option as the first
 * word is fine for a host, because the host is what is granted. It is never fine for a
 * command: `git -c …` can be any command.
 */
static bool is_told_by_words(const struct command_part *part, bool network)
{
	if (!command_is_plain_word(part->argv[0]) || command_is_runner(part->argv[0]))
		return false;
	if (part->argc == 1 || part->argv[1][0] == '-')
		return network;
	return command_is_plain_word(part->argv[1]);
}

void approval_scope(struct str text, bool network, struct buf *words)
{
	struct command command;
	bool told = command_parse(&command, text);

	for (size_t i = 0; told && i < command.count; i++)
		told = is_told_by_words(&command.parts[i], network);
	for (size_t i = 0; told && i < command.count; i++) {
		const struct command_part *part = &command.parts[i];

		if (i > 0)
			(void)buf_addf(words, " %s ", command_joins[part->join]);
		(void)buf_adds(words, part->argv[0]);
		if (part->argc > 1 && part->argv[1][0] != '-')
			(void)buf_addf(words, " %s", part->argv[1]);
	}
	command_fini(&command);
	if (!told)
		(void)buf_adds(words, "exactly this text");
}

/* The text that a question shows, and the hash over it. */

/* A question passes through at most so many agents; there are fewer (orchestra.h). */
enum { RELAYED_DEPTH_MAX = 8 };

/* The command of the call, or its tool with all arguments. */
static void approval_command(const struct running *running, struct buf *text)
{
	const struct row *rows = running->tool->params;

	for (; rows != NULL && rows->name != NULL; rows++) {
		const struct value *value = value_member(running->arguments, rows->name);

		if (rows->kind == ROW_COMMAND && value != NULL) {
			(void)buf_addstr(text, value_str(value));
			return;
		}
	}
	(void)buf_addf(text, "%s ", running->tool->name);
	(void)value_print(running->arguments, VALUE_SORTED, text);
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

/* NULL: a tool names this effect and states the wish itself. */
static const char *wish_of(struct str effect)
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
		if (str_is(effect, wishes[i].effect))
			return wishes[i].wish;
	}
	return NULL;
}

/* In MODE_ASK: the tool itself changes files, and SUBJECT says how. */
static const char effect_change[] = "change";

struct form {
	struct str message;
	struct value *schema;
};

static const struct field form_fields[] = {
	FIELD(struct form, message),
	FIELD(struct form, schema),
	{0},
};

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

/* Say which rules the answer `always` would keep. */
static void add_always(const struct question *question, struct buf *text)
{
	if (question->always == NULL)
		return;
	(void)buf_adds(text, ". \"always\" keeps as a rule for ");
	text_add_exact(text, question->agent);
	(void)buf_adds(text, " in ");
	text_add_exact(text, question->workspace);
	for (size_t i = 0; i < value_count(question->always); i++) {
		(void)buf_adds(text, i == 0 ? ": " : ", ");
		text_add_exact(text, value_str(value_item(question->always, i)));
	}
}

/* QUESTION as a form; NULL: it is too large. */
static struct value *form_of(const struct question *question)
{
#define SCHEMA(answers)                                                         \
	"{\"type\":\"object\",\"properties\":{\"answer\":{\"type\":\"string\"," \
	"\"title\":\"Allow it?\",\"enum\":[" answers "]}},\"required\":[\"answer\"]}"
	static const char plain[] = SCHEMA("\"once\",\"session\",\"no\"");
	static const char kept[] = SCHEMA("\"once\",\"session\",\"always\",\"no\"");
#undef SCHEMA
	const char *schema = question->always != NULL ? kept : plain;
	const bool runs =
		str_is(question->effect, "command") || str_is(question->effect, "hook");
	const bool changes = str_is(question->effect, effect_change);
	const char *known = question->wish.size == 0 ? wish_of(question->effect) : NULL;
	struct form form = {0};
	struct buf text;

	buf_init(&text, QUESTION_MAX);
	(void)buf_adds(&text, "Agent ");
	text_add_exact(&text, question->agent);
	add_delegates(question->delegates, &text);
	(void)buf_adds(&text, " wants to ");
	text_add_exact(&text, known != NULL ? str_of(known) : question->wish);
	(void)buf_adds(&text, ":\n");
	if (known == NULL || runs) {
		add_shown(&text, question->subject);
	} else {
		/* A folder or a host is shown as one line, whatever its name is. */
		(void)buf_adds(&text, "    ");
		text_add_exact(&text, question->subject);
		(void)buf_addc(&text, '\n');
	}
	if (!runs && !changes) {
		(void)buf_adds(&text, "for:\n");
		add_shown(&text, question->command);
	}
	if (question->after.size > 0) {
		(void)buf_adds(&text, "after reading ");
		text_add_exact(&text, question->after);
		(void)buf_adds(&text, ", whose page may have asked for it\n");
	}
	(void)buf_adds(&text, "in ");
	text_add_exact(&text, question->folder);
	(void)buf_addf(&text, ". \"session\" allows until %s session ends: ",
		       question->delegates != NULL ? "the delegate's" : "the");
	text_add_exact(&text, question->scope);
	add_always(question, &text);
	form.message = buf_str(&text);
	(void)value_parse(str_of(schema), 0, &form.schema, NULL);
	struct value *request = text.overflowed ? NULL : fields_print(form_fields, &form);
	value_free(form.schema);
	buf_fini(&text);
	return request;
}

/* Write the device and inode of the file that FD holds, in digits. */
static void approval_file(int fd, char file[APPROVAL_FILE])
{
	struct stat st = {0};

	(void)fstat(fd, &st);
	(void)snprintf(file, APPROVAL_FILE, "%" PRIuMAX ":%" PRIuMAX,
		       (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

/* The data of EVENT_APPROVAL_WANTED, but for the id; NULL: QUESTION is too large. */
static struct value *question_print(const struct question *question)
{
	struct value *data = fields_print(question_fields, question);
	auto_value struct value *request = form_of(question);
	char hash[HASH_HEX + 1];
	struct buf text;

	buf_init(&text, QUESTION_MAX);
	const bool fits = value_print(data, VALUE_SORTED, &text) && request != NULL;
	hash_text(buf_str(&text), hash);
	buf_fini(&text);
	if (!fits) {
		value_free(data);
		return NULL;
	}
	fields_set(data, asked_fields,
		   &(struct asked){hash, "form", APPROVAL_WAIT_S, request});
	return data;
}

/* The data for QUESTION, to which RUNNING adds where it asks, and from where. */
static struct value *approval_data(const struct running *running, struct question question)
{
	struct buf command, folder;

	buf_init(&command, 2 * COMMAND_SHOWN_MAX);
	buf_init(&folder, PATH_MAX);
	approval_command(running, &command);
	session_call_folder(running, &folder);
	if (question.command.size == 0)
		question.command = buf_str(&command);
	question.agent = str_of(running->session->policy->name);
	question.folder = buf_str(&folder);
	question.workspace = str_of(session_workspace(running->session));
	/* A wish of a page of the web is kept for no later session. */
	question.after = str_of(session_has_read(running->session));
	if (question.after.size > 0)
		question.always = NULL;
	struct value *data = question_print(&question);
	buf_fini(&folder);
	buf_fini(&command);
	return data;
}

struct value *approval_relay_data(const struct running *running, const char *agent,
				  const struct value *asked)
{
	auto_value struct value *delegates = value_new_array();
	struct question question = {0};
	const struct str hash = value_str(value_member(asked, "hash"));

	if (!fields_read(asked, question_fields, &question, NULL, NULL) || hash.size == 0 ||
	    hash.size > HASH_HEX || value_count(question.delegates) >= RELAYED_DEPTH_MAX ||
	    (question.wish.size == 0 && wish_of(question.effect) == NULL))
		return NULL;
	/* Only an agent's own session keeps rules for it. */
	question.always = NULL;
	/*
	 * When the question has passed through other agents, ASKED names the agent that
	 * began it.
	 */
	if (value_count(question.delegates) == 0)
		question.agent = str_of(agent);
	if (question.agent.size == 0)
		return NULL;
	value_append(delegates, value_new_text(running->session->policy->name));
	for (size_t i = 0; i < value_count(question.delegates); i++) {
		const struct str name = value_str(value_item(question.delegates, i));

		if (name.size == 0 || name.size > DELEGATE_NAME_MAX)
			return NULL;
		value_append(delegates, value_new_str(name));
	}
	question.delegates = delegates;
	/*
	 * The other session binds its answer to its own hash, so that hash is part of
	 * what ours covers.
	 */
	question.delegate_hash = hash;
	return question_print(&question);
}

/* Opens, grants and shows folders outside of the policy. */

/* A granted folder that the anchor is adding to the view of all workers. */
struct widening {
	struct session *session;
	struct widening *next;
	/* of the call that waits for the folder; the call may have ended */
	uint64_t number;
	struct extra *extra; /* valid as long as that call exists */
	/* a folder that the front shows, which nobody was asked for; fd -1: EXTRA is meant */
	struct shape_extra shown;
	struct cell_spec addition;
	char *path, *grant;
	struct stat st;
	bool writable, failed;
	struct err why;
};

/* Cut the last name off PATH; false when nothing would be left. */
static bool cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash == NULL || slash[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

/*
 * Open the folder that AT is, that AT lies in, or, when WRITES, in which AT would be
 * made. AT becomes the folder's name. -1: there is none.
 */
static int folder_open(char *at, bool writes)
{
	struct stat st;

	for (;;) {
		auto_close int fd = open(at, O_PATH | O_CLOEXEC);

		if (fd >= 0 && (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)))
			return fd_take(&fd);
		if ((fd < 0 && (errno != ENOENT || !writes)) || !cut(at))
			return -1;
	}
}

static bool root_find(const char *path, bool writes, struct extra *extra, struct err *why)
{
	auto_free char *at = memory_copy(path);
	struct buf real;

	extra->root =
		(struct shape_extra){.fd = folder_open(at, writes), .writable = writes};
	*why = (struct err){0};
	if (extra->root.fd < 0)
		return false;
	buf_init(&real, PATH_MAX);
	bool same = fd_real_path(extra->root.fd, &real) && strcmp(real.data, at) == 0;
	buf_fini(&real);
	if (!same)
		return err_set(
			why, ELOOP,
			"it is reached by a link; name it by the path that it really has");
	extra->root.path = memory_copy(at);
	return true;
}

static void extra_free(struct extra *extra)
{
	fd_close(&extra->root.fd);
	free((char *)(uintptr_t)extra->root.path);
	free((char *)(uintptr_t)extra->root.source);
	free(extra->because);
	free(extra->rule);
	free(extra);
}

/* Does RUNNING already want a folder that covers EXTRA? Then one question is enough. */
static bool is_wanted(const struct running *running, const struct extra *extra, size_t *count)
{
	*count = 0;
	for (const struct extra *at = running->asking.extras; at != NULL; at = at->next) {
		++*count;
		if (path_within(extra->root.path, at->root.path) &&
		    (at->root.writable || !extra->root.writable))
			return true;
	}
	return false;
}

static bool is_below_ceiling(const struct shape_extra *root, struct err *why)
{
	const char *key = ceiling_of_tree(session_ceiling(), root->path, root->writable);

	return key == NULL || ceiling_refuse(root->path, key, why);
}

bool extra_want(struct running *running, const struct verdict *verdict, struct err *why)
{
	const struct cell_spec *cell = cell_spec(running->session->cell);
	struct extra *extra = memory_alloc(sizeof(*extra));
	struct extra **last = &running->asking.extras;
	bool wanted = false, ok;
	size_t count = 0;

	ok = root_find(verdict->outside->path, verdict->outside->writes, extra, why) &&
	     is_below_ceiling(&extra->root, why) &&
	     shape_judge_extra(cell, &extra->root, why);
	if (ok)
		wanted = is_wanted(running, extra, &count);
	if (ok && !wanted && count == ANCHOR_EXTRAS_MAX)
		ok = err_set(why, E2BIG, "one call may ask for %d folders",
			     ANCHOR_EXTRAS_MAX);
	if (!ok || wanted) {
		extra_free(extra);
		return ok;
	}
	extra->because = memory_copy(verdict->because);
	extra->rule = memory_copy(verdict->rule);
	while (*last != NULL)
		last = &(*last)->next;
	*last = extra;
	return true;
}

static void widening_free(struct widening *widening)
{
	struct widening **at = &widening->session->first_widening;

	while (*at != widening)
		at = &(*at)->next;
	*at = widening->next;
	spec_fini(&widening->addition);
	widening->session->showing -= widening->shown.fd >= 0;
	fd_close(&widening->shown.fd);
	free((char *)(uintptr_t)widening->shown.source);
	free(widening->path);
	free(widening->grant);
	free(widening);
}

static struct running *waiting_for(const struct widening *widening)
{
	struct running *at = widening->session->first;

	while (at != NULL && (at->number != widening->number || at->state != RUNNING_ASKING))
		at = at->next;
	return at;
}

static void fail(struct running *running, const struct err *why)
{
	(void)tool_fail(&running->result,
			"The folder could not be shown: %s. Nothing ran.", why->text);
	running_finish(running);
}

/*
 * Folders are added one after the other: each builds on the guard that the one before has
 * left.
 */
static void first_begin(struct session *session)
{
	struct widening *first;
	struct err err;

	while ((first = session->first_widening) != NULL) {
		/* The analyser does not see that a freed widening has left the list. */
		struct running *running =
			waiting_for(first); /* NOLINT(clang-analyzer-unix.Malloc) */
		const struct shape_extra *root = first->shown.fd >= 0 ? &first->shown
						 : running != NULL ? &first->extra->root
								   : NULL;

		if (root != NULL &&
		    shape_extra(cell_spec(session->cell), root, 1, &first->addition, &err) &&
		    cell_widen(session->cell, &first->addition, &err))
			return;
		widening_free(first);
		if (running != NULL)
			fail(running, &err);
	}
}

/*
 * Handle the anchor's answer in a timer of its own, so that no other code is in the
 * middle of its work.
 */
static void answer_due(struct timer *timer)
{
	struct session *session = timer->context;
	struct widening *first = session->first_widening;

	loop_remove_timer(timer);
	*timer = (struct timer){0};
	/* A cell that broke meanwhile has failed all of them. */
	if (first == NULL)
		return;
	struct running *running = waiting_for(first);
	const bool asked = first->shown.fd < 0;
	struct extra *extra = first->extra;
	const struct err why = first->why;
	const bool failed = first->failed;

	if (!failed) {
		cell_set_widened(session->cell, &first->addition);
		policy_show(session->policy, first->path, first->writable);
		if (first->writable)
			pending_grant(cell_pending(session->cell), first->path, &first->st);
		/*
		 * Not earlier: the grant names the folder by its number, which is only
		 * safe while the folder is held open.
		 */
		if (asked)
			grant_for_session(session, first->grant);
	}
	widening_free(first);
	first_begin(session);
	if (running != NULL && failed) {
		fail(running, &why);
	} else if (running != NULL) {
		extra->shared = true;
		approval_ask(running);
	}
	if (!asked)
		running_dispatch(session);
}

void extra_widened(void *context, const struct err *err)
{
	struct session *session = context;
	struct widening *first = session->first_widening;

	if (first == NULL || session->widened.due != NULL)
		return;
	first->failed = err != NULL;
	if (err != NULL)
		first->why = *err;
	session->widened = (struct timer){.due = answer_due, .context = session};
	loop_add_timer(session->loop, &session->widened);
}

static struct widening *widening_new(struct session *session, const char *path)
{
	struct widening *made = memory_alloc(sizeof(*made));

	made->session = session;
	made->shown.fd = -1;
	made->path = memory_copy(path);
	spec_init(&made->addition);
	return made;
}

/* Begin with WIDENING when no other one is under way. */
static void widening_add(struct widening *widening)
{
	struct session *session = widening->session;
	struct widening **last = &session->first_widening;

	while (*last != NULL)
		last = &(*last)->next;
	*last = widening;
	if (session->first_widening == widening)
		first_begin(session);
}

/*
 * EXTRA was granted for the session. The session knows the grant by TAKE_GRANT as soon as
 * all new workers have the folder. Then approval_ask follows, or the end of RUNNING.
 */
static void extra_share(struct running *running, struct extra *extra, char *take_grant)
{
	struct widening *made = widening_new(running->session, extra->root.path);

	made->number = running->number;
	made->extra = extra;
	made->grant = take_grant;
	made->writable = extra->root.writable;
	(void)fstat(extra->root.fd, &made->st);
	widening_add(made);
}

void extra_show(struct session *session, const char *path, const char *source, int *take_fd)
{
	struct widening *made = widening_new(session, path);

	made->shown = (struct shape_extra){.path = made->path,
					   .source = memory_copy(source),
					   .fd = fd_take(take_fd)};
	session->showing++;
	masking_looks_in(session, path);
	widening_add(made);
}

bool extra_lend(struct running *running, const char *path, const char *source, int *take_fd)
{
	struct extra *extra, **last = &running->asking.extras;
	size_t count = 0;

	for (; *last != NULL; count++)
		last = &(*last)->next;
	if (count == ANCHOR_EXTRAS_MAX)
		return false;
	extra = memory_alloc(sizeof(*extra));
	extra->root = (struct shape_extra){.path = memory_copy(path),
					   .source = memory_copy(source),
					   .fd = fd_take(take_fd)};
	extra->granted = true;
	*last = extra;
	return true;
}

bool extra_needs_worker(const struct running *running)
{
	for (const struct extra *at = running->asking.extras; at != NULL; at = at->next) {
		if (!at->shared)
			return true;
	}
	return false;
}

static bool ask_worker(struct running *running, struct err *why)
{
	struct shape_extra roots[ANCHOR_EXTRAS_MAX];
	struct cell *cell = running->session->cell;
	struct cell_spec addition;
	size_t count = 0;

	for (const struct extra *at = running->asking.extras; at != NULL; at = at->next) {
		if (!at->shared)
			roots[count++] = at->root;
	}
	spec_init(&addition);
	running->asking.worker_asked =
		shape_extra(cell_spec(cell), roots, count, &addition, why) &&
		cell_ask_widened(cell, running->number, &addition, why);
	spec_fini(&addition);
	return running->asking.worker_asked;
}

/* Note the granted folders on disk before any write in them begins. */
static void note_granted(const struct running *running)
{
	struct pending *record = cell_pending(running->session->cell);
	struct stat st;

	for (const struct extra *at = running->asking.extras; at != NULL; at = at->next) {
		if (!at->shared && at->root.writable && fstat(at->root.fd, &st) == 0)
			pending_grant(record, at->root.path, &st);
	}
}

struct worker_end *extra_take_worker(struct running *running, struct err *why)
{
	struct cell *cell = running->session->cell;
	struct worker_end *worker = NULL;

	*why = (struct err){0};
	if (!running->asking.worker_asked)
		(void)ask_worker(running, why);
	else
		worker = cell_take_widened(cell, running->number);
	running->asking.worker_asked = running->asking.worker_asked && worker == NULL;
	if (worker != NULL && running->due != DUE_MEND)
		note_granted(running);
	return worker;
}

static void add_entry_shown(struct buf *out, const char *shown)
{
	if (out->size > 0)
		(void)buf_adds(out, ", ");
	(void)buf_adds(out, shown);
}

/* The path of EXTRA as it is shown to people, owned by the caller. */
static char *shown_path(const struct extra *extra)
{
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(extra->root.path));
	return buf_take(&shown);
}

static bool may_write(const struct running *running)
{
	return running->tool != NULL && !running->told.quiet &&
	       (running->tool->effects & (EFFECT_WRITES | EFFECT_RUNS)) != 0;
}

void extra_print_written(const struct running *running, struct buf *out)
{
	const struct value *outside = running->session->outside;

	for (const struct extra *at = running->asking.extras; at != NULL; at = at->next) {
		auto_free char *shown = shown_path(at);
		if (at->granted && at->root.writable &&
		    !value_is_true(value_member(outside, shown)))
			add_entry_shown(out, shown);
	}
	for (void *at = value_first(outside); at != NULL; at = value_next(outside, at)) {
		if (value_is_true(value_at(at)))
			add_entry_shown(out, value_key(at));
	}
}

void extra_tell(struct running *running)
{
	struct session *session = running->session;
	struct buf told;

	if (!may_write(running))
		return;
	buf_init(&told, RESULT_TEXT_MAX);
	for (const struct extra *at = running->asking.extras; at != NULL; at = at->next) {
		auto_free char *shown = shown_path(at);

		if (!at->granted || !at->root.writable)
			continue;
		add_entry_shown(&told, shown);
		if (session->outside == NULL)
			session->outside = value_new_object();
		if (!value_is_true(value_member(session->outside, shown)))
			value_set_boolean(session->outside, shown, at->shared);
	}
	if (told.size > 0) {
		(void)buf_end_line(&running->result.text);
		(void)buf_addf(&running->result.text,
			       "[what is written in %s is in no patch, and glovebox undo does "
			       "not put it back]\n",
			       told.data);
	}
	buf_fini(&told);
}

void extra_drop_all(struct running *running)
{
	if (running->asking.worker_asked)
		cell_forget_widened(running->session->cell, running->number);
	running->asking.worker_asked = false;
	while (running->asking.extras != NULL) {
		struct extra *extra = running->asking.extras;

		running->asking.extras = extra->next;
		extra_free(extra);
	}
}

void extra_session_end(struct session *session)
{
	for (struct widening *next, *at = session->first_widening; at != NULL; at = next) {
		next = at->next;
		widening_free(at);
	}
	loop_remove_timer(&session->widened);
	grants_fini(&session->granted);
}

/* In SESSION only one question of other sessions is shown at a time. */
static bool relay_is_open(const struct session *session)
{
	for (const struct running *at = session->first; at != NULL; at = at->next) {
		const struct approval *first = at->asking.first;

		if (first != NULL && first->kind == APPROVAL_RELAYED &&
		    first->timer.due_ms != CLOCK_NEVER)
			return true;
	}
	return false;
}

static void relays_show(struct session *session)
{
	for (struct running *at = session->first; at != NULL; at = at->next) {
		if (at->asking.first != NULL && at->asking.first->kind == APPROVAL_RELAYED)
			approval_show(at);
	}
}

static void approval_free(struct approval *approval)
{
	struct approval **at = &approval->running->asking.first;
	struct session *session = approval->running->session;
	const bool relayed = approval->kind == APPROVAL_RELAYED;

	while (*at != approval)
		at = &(*at)->next;
	*at = approval->next;
	loop_remove_timer(&approval->timer);
	value_free(approval->data);
	free(approval->grant);
	free(approval->words);
	free(approval->target);
	free(approval->relay.call);
	free(approval);
	if (relayed)
		relays_show(session);
}

/* False: the answer could not be recorded. */
static bool tell_given(const struct running *running, int64_t id,
		       enum approval_answer answer, enum approval_by by)
{
	auto_value struct value *data =
		fields_print(given_fields, &(struct given){id, answer, by});
	struct err err;

	return session_emit(running->session, EVENT_APPROVAL_GIVEN, running,
			    (struct str){0}, data, &err);
}

/* Decide the connections that wait for APPROVAL. */
static void let_go(const struct approval *approval, bool yes)
{
	struct outlet *outlet = cell_outlet(approval->running->session->cell);

	for (size_t i = 0; outlet != NULL && i < approval->held_count; i++)
		outlet_decide(outlet, approval->held[i], yes);
}

static void refuse_call(struct running *running, const struct approval *approval,
			enum approval_by by)
{
	const struct value *data = approval->data;
	const char *said = by == APPROVAL_BY_TIME
				   ? "(The person was asked and did not answer in time.)"
			   : by == APPROVAL_BY_NOBODY ? "(Nobody could be asked.)"
			   : by == APPROVAL_BY_HOOK   ? "(A hook said no.)"
			   : by == APPROVAL_BY_CANCEL
				   ? "(The question or its answer could not be recorded.)"
				   : "(The person was asked and said no.)";
	struct buf because;

	buf_init(&because, SHOWN_MAX);
	(void)buf_addf(&because, "%s %s", value_text(value_member(data, "because")), said);
	if (approval->words != NULL)
		(void)buf_addf(&because, " The person says: %s", approval->words);
	session_deny(running, because.data, value_text(value_member(data, "rule")));
	buf_fini(&because);
}

/* All of the change that RUNNING wants would be more than a person sees. */
static void refuse_unseen(struct running *running)
{
	struct verdict *wanted = running->asking.wanted;

	(void)snprintf(wanted->because, sizeof(wanted->because),
		       "A person is asked about each change in this mode, and this one is too "
		       "large to be shown: make it in parts of less than %d KiB.",
		       CHANGE_SHOWN_MAX >> 10);
	session_deny(running, wanted->because, wanted->rule);
	running_finish(running);
}

/* The command of RUNNING may run: drop the question about it. */
static void unwant(struct running *running)
{
	free(running->asking.wanted);
	running->asking.wanted = NULL;
}

/* The call of APPROVAL goes on, or is over. */
static void decide_call(struct approval *approval, enum approval_answer answer,
			enum approval_by by)
{
	struct running *running = approval->running;
	const enum approval_kind kind = approval->kind;
	struct extra *extra = approval->extra;
	auto_free char *grant = NULL;

	/* A rule may let a command run when nobody can be asked about it. */
	if (answer == APPROVAL_NO && !(by == APPROVAL_BY_NOBODY && kind == APPROVAL_COMMAND &&
				       running->asking.wanted->or_runs)) {
		refuse_call(running, approval, by);
		approval_free(approval);
		running_finish(running);
		return;
	}
	grant = approval->grant;
	approval->grant = NULL;
	approval_free(approval);
	if (kind == APPROVAL_COMMAND)
		unwant(running);
	else if (kind == APPROVAL_LEAVE)
		running->asking.leave->given = true;
	else
		extra->granted = true;
	if (kind == APPROVAL_FOLDER && answer == APPROVAL_SESSION)
		extra_share(running, extra, memory_copy(grant));
	else
		approval_ask(running);
}

/*
 * Have the front keep the rules of APPROVAL. When it cannot, the person is told that the answer
 * holds for the session.
 */
static void keep_rules(const struct approval *approval)
{
	const struct value *always = value_member(approval->data, "always");
	struct session *session = approval->running->session;
	struct err err = {0}, unsent;
	enum rule_kind kind = RULE_COMMAND;
	bool kept = rules_kind_of(value_str(value_member(approval->data, "effect")), &kind);
	struct buf text;

	for (size_t i = 0; kept && i < value_count(always); i++)
		kept = session->keep_rule(session->keep_rule_context, kind,
					  value_text(value_item(always, i)), &err);
	if (kept)
		return;
	buf_init(&text, 2 * ERR_TEXT_MAX);
	(void)buf_addf(&text, "The rule could not be kept, so it holds for this session: %s",
		       err.text);
	(void)session_emit(session, EVENT_NOTICE, NULL, buf_str(&text), NULL, &unsent);
	buf_fini(&text);
}

static void decide(struct approval *approval, enum approval_answer answer,
		   enum approval_by by)
{
	struct running *running = approval->running;
	struct session *session = running->session;

	/* A right that nobody could record is not given, and no rule is kept for it. */
	if (approval->shown && !tell_given(running, approval->id, answer, by) &&
	    answer != APPROVAL_NO) {
		answer = APPROVAL_NO;
		by = APPROVAL_BY_CANCEL;
	}
	if (answer == APPROVAL_ALWAYS) {
		keep_rules(approval);
		answer = APPROVAL_SESSION;
	}
	if (answer == APPROVAL_SESSION && approval->grant != NULL &&
	    approval->kind != APPROVAL_FOLDER)
		grant_for_session(session, approval->grant);
	if (approval->kind == APPROVAL_RELAYED) {
		approval->relay.answered(&approval->relay, answer, by);
	} else if (approval->kind == APPROVAL_HOST) {
		/*
		 * A no is kept as well: otherwise a program that tries again would ask
		 * again.
		 */
		grant_add(&running->network.granted, approval->target,
			  answer != APPROVAL_NO);
		let_go(approval, answer != APPROVAL_NO);
	} else {
		decide_call(approval, answer, by);
		return;
	}
	approval_free(approval);
	approval_show(running);
}

static void time_is_over(struct timer *timer)
{
	decide(timer->context, APPROVAL_NO, APPROVAL_BY_TIME);
}

static struct approval *approval_find(const struct running *running, int64_t id)
{
	struct approval *at = running->asking.first;

	while (at != NULL && at->id != id)
		at = at->next;
	return at;
}

/*
 * Runs in a turn of the loop, so that the code that began the call has its handle by
 * then.
 */
static void show_due(struct timer *timer)
{
	struct approval *approval = timer->context;
	struct running *running = approval->running;
	const int64_t id = approval->id;
	struct err err;

	approval->shown = true;
	timer->due = time_is_over;
	/*
	 * A receiver that passes the question on to somebody keeps the time limit itself.
	 */
	timer->due_ms = running->session->relays_approvals
				? INT64_MAX - 1
				: clock_now_ms() + APPROVAL_WAIT_S * INT64_C(1000);
	/* The question may be answered before session_emit returns. */
	if (!session_emit(running->session, EVENT_APPROVAL_WANTED, running,
			  (struct str){0}, approval->data, &err) &&
	    approval_find(running, id) != NULL)
		decide(approval, APPROVAL_NO, APPROVAL_BY_CANCEL);
}

bool approval_is_open(const struct running *running)
{
	for (const struct approval *at = running->asking.first; at != NULL; at = at->next) {
		if (at->shown)
			return true;
	}
	return false;
}

size_t approval_count(const struct session *session)
{
	size_t count = 0;

	for (const struct running *at = session->first; at != NULL; at = at->next)
		for (const struct approval *open = at->asking.first; open != NULL;
		     open = open->next)
			count++;
	return count;
}

void approval_show(struct running *running)
{
	struct approval *first = running->asking.first;

	/* A call shows one question at a time. */
	if (first == NULL || running->asking.question != 0 || approval_is_open(running))
		return;
	if (first->kind != APPROVAL_RELAYED || !relay_is_open(running->session))
		first->timer.due_ms = 0;
}

/* Add a question of KIND, with TAKE_DATA, behind the other questions of RUNNING. */
static struct approval *approval_new(struct running *running, enum approval_kind kind,
				     struct value *take_data)
{
	struct approval *made = memory_alloc(sizeof(*made));
	struct approval **at = &running->asking.first;

	while (*at != NULL)
		at = &(*at)->next;
	*at = made;
	made->running = running;
	made->kind = kind;
	made->data = take_data;
	made->id = --running->session->last_approval;
	value_set_integer(made->data, "id", made->id);
	made->timer =
		(struct timer){.due_ms = CLOCK_NEVER, .due = show_due, .context = made};
	loop_add_timer(running->session->loop, &made->timer);
	return made;
}

/*
 * Ask QUESTION, in a later turn of the loop. NULL: the session was given GRANT
 * before, and an event reports that as the answer.
 */
static struct approval *approval_put(struct running *running, enum approval_kind kind,
				     const struct question *question, const char *grant)
{
	struct approval *made;

	/* A grant that cannot be recorded is asked for, which is refused as long as nothing can be recorded. */
	if (grant_find(&running->session->granted, grant) != NULL &&
	    tell_given(running, --running->session->last_approval, APPROVAL_SESSION,
		       APPROVAL_BY_SESSION))
		return NULL;
	made = approval_new(running, kind, approval_data(running, *question));
	made->grant = memory_copy(grant);
	approval_show(running);
	return made;
}

/*
 * Add to SCOPE the scope of COMMAND, which goes on after that of the host, and set GRANT to
 * the key of the grant for EFFECT.
 */
static void scope_command(struct str command, const char *effect, struct buf *scope,
			  struct buf *grant)
{
	approval_scope(command, strcmp(effect, "network") == 0, scope);
	(void)buf_addf(grant, "%s %s", effect, scope->data);
	if (str_ends(buf_str(scope), STR("exactly this text")))
		(void)buf_addf(grant, ": %.*s", (int)command.size, command.data);
}

/* Is WANTED asked about because of MODE_ASK only? */
static bool is_by_mode(const struct verdict *wanted)
{
	return str_ends(str_of(wanted->rule), STR("." POLICY_MODE_KEY));
}

/* Does RUNNING write a note for later sessions? */
static bool is_note(const struct running *running)
{
	return (running->tool->effects & EFFECT_NOTES) != 0;
}

/* Is RUNNING a call of a tool that itself changes files or notes, which MODE_ASK asks about? */
static bool is_change(const struct running *running)
{
	const unsigned effects = running->tool->effects;

	return (effects & (EFFECT_WRITES | EFFECT_NOTES)) != 0 &&
	       (effects & EFFECT_RUNS) == 0;
}

static struct str wish_by_mode(const struct running *running)
{
	for (const struct row *row = running->tool->params;
	     row != NULL && row->name != NULL; row++) {
		if (row->kind == ROW_COMMAND)
			return STR("run a command");
	}
	return STR("call a tool that runs programs");
}

bool approval_can_ask(const struct running *running)
{
	/* Its question has room for more (ask_change). */
	const bool shows_change =
		is_change(running) && running->session->policy->mode == MODE_ASK;
	struct buf command;
	bool fits;

	buf_init(&command, COMMAND_SHOWN_MAX);
	approval_command(running, &command);
	/* A person cannot read bytes as hexadecimal digits. */
	fits = (!command.overflowed || shows_change) && !running->told.quiet &&
	       !running->told.unheard && running->session->answers_approvals &&
	       !value_is_true(value_member(running->arguments, "hex"));
	buf_fini(&command);
	return fits;
}

/* One rule RULE, when somebody keeps rules. The caller frees the list. */
static struct value *always_of(const struct running *running, const char *rule)
{
	struct value *list;

	if (running->session->keep_rule == NULL)
		return NULL;
	list = value_new_array();
	value_append(list, value_new_text(rule));
	return list;
}

/*
 * The rules that would let the wanted COMMAND run; NULL: it is asked about for another reason
 * than that no list has it, or words do not say what it runs.
 */
static struct value *always_of_command(const struct running *running, struct str command)
{
	const struct verdict *wanted = running->asking.wanted;

	if (running->session->keep_rule == NULL || wanted->by[0] != '\0' ||
	    wanted->harm != NULL || wanted->or_runs ||
	    !commands_listed(running->session->policy->commands) ||
	    !str_ends(str_of(wanted->rule), STR(".commands")))
		return NULL;
	return rules_of_text(command);
}

static void ask_command(struct running *running)
{
	const struct verdict *wanted = running->asking.wanted;
	const char *effect = running->asking.by_caller ? "hook" : "command";
	struct buf command, scope, grant, wish;

	buf_init(&wish, COMMAND_SHOWN_MAX);
	if (running->asking.by_caller)
		(void)buf_addf(&wish, "make a call. %s", wanted->because);
	else if (is_by_mode(wanted))
		(void)buf_addstr(&wish, wish_by_mode(running));
	buf_init(&command, COMMAND_SHOWN_MAX);
	buf_init(&scope, SHOWN_MAX);
	buf_init(&grant, SHOWN_MAX);
	approval_command(running, &command);
	scope_command(buf_str(&command), effect, &scope, &grant);
	auto_value struct value *always = always_of_command(running, buf_str(&command));
	const struct question subject = {.effect = str_of(effect),
					 .wish = buf_str(&wish),
					 .always = always,
					 .subject = buf_str(&command),
					 .because = str_of(wanted->because),
					 .rule = str_of(wanted->rule),
					 .scope = buf_str(&scope)};
	if (approval_put(running, APPROVAL_COMMAND, &subject, grant.data) == NULL)
		running_proceed(running);
	buf_fini(&wish);
	buf_fini(&grant);
	buf_fini(&scope);
	buf_fini(&command);
}

/* Add the lines of TEXT, each behind SIGN. */
static void add_signed(struct buf *out, const char *sign, struct str text)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		(void)buf_adds(out, sign);
		(void)buf_addstr(out, line);
		(void)buf_addc(out, '\n');
	}
}

/* The text of an argument NAME, as a person reads a change: what goes, and what comes. */
static void add_argument(struct buf *out, const char *name, struct str text)
{
	if (strcmp(name, "old") == 0) {
		add_signed(out, "-", text);
	} else if (str_among("new content", str_of(name))) {
		add_signed(out, "+", text);
	} else if (str_find(text, STR("\n"), 0) == SIZE_MAX) {
		(void)buf_addf(out, "%s: ", name);
		add_signed(out, "", text);
	} else {
		(void)buf_addf(out, "%s:\n", name);
		add_signed(out, "", text);
	}
}

/* All ARGUMENTS of a call that changes files, in the order of ROWS. */
static void add_arguments(struct buf *out, const struct row *rows,
			  const struct value *arguments)
{
	for (const struct row *row = rows; row != NULL && row->name != NULL; row++) {
		const struct value *value = value_member(arguments, row->name);
		struct buf printed;

		for (size_t i = 0; row->kind == ROW_LIST && i < value_count(value); i++)
			add_arguments(out, row->rows, value_item(value, i));
		if (value == NULL || row->kind == ROW_LIST)
			continue;
		buf_init(&printed, 8 * CHANGE_SHOWN_MAX);
		(void)value_print(value, 0, &printed);
		/* A default needs no look. */
		if (row->initial == NULL || !str_is(buf_str(&printed), row->initial))
			add_argument(out, row->name,
				     value_text(value) != NULL ? value_str(value)
							       : buf_str(&printed));
		buf_fini(&printed);
	}
}

/* The one path that the call changes; NULL: it names several, or none. */
static const char *path_of_change(const struct running *running)
{
	const struct row *row = running->tool->params;

	while (row != NULL && row->name != NULL && row->kind != ROW_PATH)
		row++;
	return row != NULL && row->name != NULL && running->tool->visit_paths == NULL
		       ? value_text(value_member(running->arguments, row->name))
		       : NULL;
}

static void ask_change(struct running *running)
{
	const struct verdict *wanted = running->asking.wanted;
	const char *path = path_of_change(running);
	struct buf text, scope, grant;

	buf_init(&text, CHANGE_SHOWN_MAX);
	buf_init(&scope, SHOWN_MAX);
	buf_init(&grant, SHOWN_MAX + CHANGE_SHOWN_MAX);
	add_arguments(&text, running->tool->params, running->arguments);
	if (path != NULL) {
		(void)buf_adds(&scope, "every change of ");
		text_add_exact(&scope, str_of(path));
		(void)buf_adds(&scope, " by a file tool");
		(void)buf_addf(&grant, "%s %s", effect_change, path);
	} else {
		(void)buf_adds(&scope, "exactly this change");
		(void)buf_addf(&grant, "%s: %s", effect_change, text.data);
	}
	const struct question subject = {.effect = str_of(effect_change),
					 .wish = is_note(running)
							 ? STR("write a note for later sessions")
							 : STR("change files"),
					 .subject = buf_str(&text),
					 .command = str_of(running->tool->name),
					 .because = str_of(wanted->because),
					 .rule = str_of(wanted->rule),
					 .scope = buf_str(&scope)};
	if (text.overflowed || scope.overflowed || grant.overflowed)
		refuse_unseen(running);
	else if (approval_put(running, APPROVAL_COMMAND, &subject, grant.data) == NULL)
		running_proceed(running);
	buf_fini(&grant);
	buf_fini(&scope);
	buf_fini(&text);
}

static void ask_extra(struct running *running, struct extra *extra)
{
	const char *effect = extra->root.writable ? "write" : "read";
	struct approval *approval;
	struct buf scope, grant;
	char file[APPROVAL_FILE];

	buf_init(&scope, SHOWN_MAX);
	buf_init(&grant, SHOWN_MAX);
	approval_file(extra->root.fd, file);
	(void)buf_addf(&grant, "%s %s %s", effect, file, extra->root.path);
	(void)buf_adds(&scope, extra->root.writable ? "reading and writing " : "reading ");
	text_add_exact(&scope, str_of(extra->root.path));
	(void)buf_adds(&scope, " and all below it, by every tool and command");
	auto_value struct value *always = always_of(running, extra->root.path);
	const struct question subject = {.effect = str_of(effect),
					 .always = always,
					 .subject = str_of(extra->root.path),
					 .because = str_of(extra->because),
					 .rule = str_of(extra->rule),
					 .scope = buf_str(&scope),
					 .file = str_of(file)};
	approval = approval_put(running, APPROVAL_FOLDER, &subject, grant.data);
	if (approval != NULL) {
		approval->extra = extra;
	} else {
		extra->granted = true;
		approval_ask(running);
	}
	buf_fini(&grant);
	buf_fini(&scope);
}

/*
 * A person approves exactly what a tool of the front would do, or not: there is no wider
 * scope.
 */
static void ask_leave(struct running *running)
{
	const struct tool_leave *leave = running->tool->leave;
	const struct question subject = {
		.effect = str_of(leave->effect),
		.wish = str_of(leave->wish),
		.subject = str_of(running->asking.leave->subject),
		.because = str_of(leave->because),
		.rule = str_of(leave->rule),
		.scope = str_of(leave->scope),
	};

	(void)approval_new(running, APPROVAL_LEAVE, approval_data(running, subject));
	approval_show(running);
}

void approval_ask(struct running *running)
{
	struct extra *extra = running->asking.extras;

	while (extra != NULL && extra->granted)
		extra = extra->next;
	if (extra != NULL)
		ask_extra(running, extra);
	else if (running->asking.wanted != NULL && is_change(running) &&
		 is_by_mode(running->asking.wanted))
		ask_change(running);
	else if (running->asking.wanted != NULL)
		ask_command(running);
	else if (running->asking.leave != NULL && !running->asking.leave->given)
		ask_leave(running);
	else
		running_proceed(running);
}

void approval_hear_nobody(struct session *session)
{
	session->answers_approvals = false;
	policy_ask_nobody(session->policy);
	for (struct running *at = session->first; at != NULL; at = at->next) {
		for (struct approval *open = at->asking.first; open != NULL;
		     open = open->next) {
			open->timer.due = time_is_over;
			open->timer.due_ms = 0;
		}
	}
}

bool approval_relay(struct running *running, const struct approval_relay *relay,
		    struct value *take_data, enum approval_by *by)
{
	struct approval *approval;
	size_t count = 0;

	for (const struct approval *at = running->asking.first; at != NULL; at = at->next)
		count++;
	if (!running->session->answers_approvals || running->state == RUNNING_OVER ||
	    running->cancelled || count >= APPROVALS_MAX) {
		value_free(take_data);
		*by = running->session->answers_approvals ? APPROVAL_BY_TIME
							  : APPROVAL_BY_NOBODY;
		return false;
	}
	approval = approval_new(running, APPROVAL_RELAYED, take_data);
	approval->relay = *relay;
	approval->relay.call = memory_copy(relay->call);
	approval_show(running);
	return true;
}

void approval_relay_over(struct running *running, const char *call, int64_t id)
{
	struct approval *at = running->asking.first;

	while (at != NULL && (at->kind != APPROVAL_RELAYED || at->relay.id != id ||
			      strcmp(at->relay.call, call) != 0))
		at = at->next;
	if (at == NULL)
		return;
	if (at->shown)
		(void)tell_given(running, at->id, APPROVAL_NO, APPROVAL_BY_CANCEL);
	approval_free(at);
	approval_show(running);
}

void approval_drop_all(struct running *running)
{
	while (running->asking.first != NULL) {
		struct approval *approval = running->asking.first;

		if (approval->shown)
			(void)tell_given(running, approval->id, APPROVAL_NO,
					 APPROVAL_BY_CANCEL);
		let_go(approval, false);
		approval_free(approval);
	}
	grants_fini(&running->network.granted);
}

struct value *approval_reply(enum approval_answer answer, enum approval_by by,
			     const char *hash)
{
	return fields_print(reply_fields,
			    &(struct reply){STR("accept"), str_of(answers[answer]),
					    str_of(givers[by]),
					    hash != NULL ? str_of(hash) : STR("")});
}

bool approval_answer(struct running *running, int64_t id, const struct value *answer,
		     struct err *err)
{
	struct approval *approval = approval_find(running, id);
	struct reply reply = {0};
	const char *hash;

	if (approval == NULL || !approval->shown)
		return err_set(err, ESRCH, "question %lld is not open", (long long)id);
	hash = value_text(value_member(approval->data, "hash"));
	(void)fields_read(answer, reply_fields, &reply, NULL, NULL);
	if (!str_is(reply.action, "accept") || str_is(reply.answer, answers[APPROVAL_NO])) {
		if (str_trim(reply.words).size > 0)
			approval->words = memory_copy_str(
				str_part(reply.words, 0,
					 text_character_border(reply.words,
							       APPROVAL_WORDS_MAX)));
		/*
		 * A question that was passed on may end without an answer there, or with
		 * nobody to ask there.
		 */
		decide(approval, APPROVAL_NO,
		       str_is(reply.by, givers[APPROVAL_BY_TIME])     ? APPROVAL_BY_TIME
		       : str_is(reply.by, givers[APPROVAL_BY_NOBODY]) ? APPROVAL_BY_NOBODY
		       : str_is(reply.by, givers[APPROVAL_BY_HOOK])   ? APPROVAL_BY_HOOK
								    : APPROVAL_BY_PERSON);
		return true;
	}
	enum approval_answer given = APPROVAL_ONCE;
	const bool offered = value_member(approval->data, "always") != NULL;
	while (given <= APPROVAL_ALWAYS && !str_is(reply.answer, answers[given]))
		given++;
	if (given > (offered ? APPROVAL_ALWAYS : APPROVAL_SESSION))
		return err_set(err, EINVAL,
			       "content.answer is \"once\", \"session\"%s or \"no\"",
			       offered ? ", \"always\"" : "");
	if (!str_is(reply.hash, hash))
		return err_set(err, EINVAL,
			       "content.hash is not that of what was asked (%s)", hash);
	decide(approval, given,
	       str_is(reply.by, givers[APPROVAL_BY_HOOK]) ? APPROVAL_BY_HOOK
							  : APPROVAL_BY_PERSON);
	return true;
}

/* Questions about hosts that a command connects to and that the policy does not list. */

static struct running *running_of(const struct session *session, uint64_t number)
{
	struct running *at = session->first;

	while (at != NULL && (at->number != number || at->state != RUNNING_BUSY))
		at = at->next;
	return at;
}

/*
 * The open question of RUNNING about TARGET, or NULL. *COUNT: how many open questions
 * RUNNING has.
 */
static struct approval *asked_already(const struct running *running, const char *target,
				      size_t *count)
{
	struct approval *found = NULL;

	*count = 0;
	for (struct approval *at = running->asking.first; at != NULL; at = at->next) {
		++*count;
		if (at->target != NULL && strcmp(at->target, target) == 0)
			found = at;
	}
	return found;
}

static void ask_host(struct running *running, uint64_t connection, const char *target,
		     const char *because)
{
	struct session *session = running->session;
	struct outlet *outlet = cell_outlet(session->cell);
	struct buf command, scope, grant;
	struct approval *approval;
	const struct grant *decided;
	size_t count;

	approval = asked_already(running, target, &count);
	decided = grant_find(&running->network.granted, target);
	if (decided != NULL) {
		outlet_decide(outlet, connection, decided->yes);
		return;
	}
	if (approval != NULL
		    ? approval->held_count == HELD_MAX
		    : count == APPROVALS_MAX || running->network.granted.count + count >=
							APPROVAL_HOSTS_MAX) {
		outlet_decide(outlet, connection, false);
		return;
	}
	if (approval != NULL) {
		approval->held[approval->held_count++] = connection;
		return;
	}
	buf_init(&command, 2 * COMMAND_SHOWN_MAX);
	buf_init(&scope, SHOWN_MAX);
	buf_init(&grant, SHOWN_MAX);
	approval_command(running, &command);
	(void)buf_addf(&scope, "%s for ", target);
	scope_command(buf_str(&command), "network", &scope, &grant);
	auto_value struct value *always = always_of(running, target);
	const struct question subject = {.effect = STR("network"),
					 .always = always,
					 .subject = str_of(target),
					 .because = str_of(because),
					 .rule = str_of(
						 cell_spec(session->cell)->network_rule),
					 .scope = buf_str(&scope)};
	const bool fits = !command.overflowed && !grant.overflowed;
	approval = fits ? approval_put(running, APPROVAL_HOST, &subject, grant.data) : NULL;
	if (approval != NULL) {
		approval->target = memory_copy(target);
		approval->held[approval->held_count++] = connection;
	} else {
		if (fits)
			grant_add(&running->network.granted, target, true);
		outlet_decide(outlet, connection, fits);
	}
	buf_fini(&grant);
	buf_fini(&scope);
	buf_fini(&command);
}

/* Nobody can grant the host TARGET (host:port). */
static bool is_above_ceiling(const char *target)
{
	struct network_entry entry = {0};

	return session_ceiling() != NULL &&
	       (!network_parse_authority(str_of(target), NETWORK_PORT_TLS, &entry.host,
					 &entry.port, NULL) ||
		ceiling_of_host(session_ceiling(), &entry) != NULL);
}

void approval_ask_host(void *context, uint64_t number, uint64_t connection,
		       const char *target, const char *because)
{
	struct session *session = context;
	struct running *running = running_of(session, number);

	/* The caller of a job does not listen any more. */
	if (running == NULL || running->told.quiet || running->told.unheard ||
	    running->job != NULL || running->cancelled || !session->answers_approvals ||
	    is_above_ceiling(target))
		outlet_decide(cell_outlet(session->cell), connection, false);
	else
		ask_host(running, connection, target, because);
}
