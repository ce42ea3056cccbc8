/* mentions: lists the names, completes them, and reads what a prompt names. */

#include "front/conversation/mentions.h"

#include "agent/agent.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/talk.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/tool.h"
#include "tui/choose/complete.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FRESH_MS = 2000, /* younger names are not asked for again */
	/* How far before the cursor a mention begins at most. */
	MENTION_MAX = 1024,
	NAME_MAX_BYTES = 4096 + 64,
	MENTIONS_UNSAVED_MAX = 8 << 20, /* the text of an editor, with its heading */
};

struct mentions {
	struct talk *talk;
	int wake; /* epoll over the interrupt of the talk and `done` */
	int news; /* epoll over `done`, which tells of it once */
	pthread_mutex_t lock;
	struct complete *names;
	int64_t listed_ms; /* when the names were asked for; 0: never */
	/* A list that is on its way. */
	struct running *running; /* NULL: none is */
	int paths;               /* it is written into this file … */
	int done[2];             /* … and this pipe is readable then */
	bool taken;
};

struct mentions *mentions_new(struct talk *talk)
{
	struct mentions *mentions = memory_alloc(sizeof(*mentions));
	struct epoll_event event = {.events = EPOLLIN};

	mentions->talk = talk;
	mentions->paths = mentions->done[0] = mentions->done[1] = -1;
	mentions->names = complete_new();
	(void)pthread_mutex_init(&mentions->lock, NULL);
	mentions->wake = epoll_create1(EPOLL_CLOEXEC);
	mentions->news = epoll_create1(EPOLL_CLOEXEC);
	if (mentions->wake >= 0)
		(void)epoll_ctl(mentions->wake, EPOLL_CTL_ADD, talk_interrupt_fd(talk),
				&event);
	return mentions;
}

/*
 * The list that was on its way is over. The lock is never held while the loop turns: a question
 * may come then, for which the thread of the keys has to let go of the terminal.
 */
static void forget_list(struct mentions *mentions)
{
	struct running *running;
	int paths, done[2];

	(void)pthread_mutex_lock(&mentions->lock);
	running = mentions->running;
	paths = mentions->paths;
	done[0] = mentions->done[0];
	done[1] = mentions->done[1];
	mentions->running = NULL;
	mentions->paths = mentions->done[0] = mentions->done[1] = -1;
	mentions->taken = false;
	(void)pthread_mutex_unlock(&mentions->lock);
	running_free(running);
	fd_close(&paths);
	fd_close(&done[0]);
	fd_close(&done[1]);
}

void mentions_stop(struct mentions *mentions)
{
	if (mentions == NULL)
		return;
	forget_list(mentions);
	mentions->listed_ms = 0;
	/* The next session may have another workspace. */
	(void)pthread_mutex_lock(&mentions->lock);
	complete_free(mentions->names);
	mentions->names = complete_new();
	(void)pthread_mutex_unlock(&mentions->lock);
}

void mentions_free(struct mentions *mentions)
{
	if (mentions == NULL)
		return;
	mentions_stop(mentions);
	complete_free(mentions->names);
	fd_close(&mentions->wake);
	fd_close(&mentions->news);
	(void)pthread_mutex_destroy(&mentions->lock);
	free(mentions);
}

int mentions_wake_fd(const struct mentions *mentions)
{
	return mentions->wake >= 0 ? mentions->wake : talk_interrupt_fd(mentions->talk);
}

int mentions_news_fd(const struct mentions *mentions)
{
	return mentions->news;
}

void mentions_refresh(struct mentions *mentions)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct epoll_event once = {.events = EPOLLIN | EPOLLONESHOT};
	auto_value struct value *arguments = value_new_object();
	struct request request = {
		.tool = "list_paths",
		.arguments = arguments,
		.id = "paths",
		.fds = {-1, -1},
		.fd_count = 2,
		.by_front = true,
		.quiet = true,
		.terse = true,
	};
	struct running *running;
	int done[2];

	if (mentions->running != NULL ||
	    (mentions->listed_ms != 0 && clock_now_ms() - mentions->listed_ms < FRESH_MS))
		return;
	mentions->listed_ms = clock_now_ms();
	if (!fd_memory_file("paths", STR(""), &request.fds[0], NULL) ||
	    !fd_pipe(done, NULL)) {
		fd_close(&request.fds[0]);
		return;
	}
	request.fds[1] = done[1];
	(void)epoll_ctl(mentions->wake, EPOLL_CTL_ADD, done[0], &event);
	running = session_start(talk_session(mentions->talk), &request, NULL, NULL);
	(void)pthread_mutex_lock(&mentions->lock);
	mentions->running = running;
	mentions->paths = request.fds[0];
	mentions->done[0] = done[0];
	mentions->done[1] = done[1];
	(void)pthread_mutex_unlock(&mentions->lock);
	/* Not before: the other thread takes the names as soon as it is told of them. */
	(void)epoll_ctl(mentions->news, EPOLL_CTL_ADD, done[0], &once);
}

/* Take the names when they have come. The caller holds the lock. */
static void take_names(struct mentions *mentions)
{
	struct pollfd done = {.fd = mentions->done[0], .events = POLLIN};
	struct stat st;
	struct buf text;
	char *at;
	ssize_t got;

	if (mentions->running == NULL || mentions->taken || poll(&done, 1, 0) <= 0)
		return;
	mentions->taken = true;
	if (fstat(mentions->paths, &st) < 0 || st.st_size > COMPLETE_TEXT_MAX)
		return;
	buf_init(&text, COMPLETE_TEXT_MAX);
	at = buf_reserve(&text, (size_t)st.st_size);
	got = at != NULL ? pread(mentions->paths, at, (size_t)st.st_size, 0) : -1;
	if (got >= 0) {
		buf_commit(&text, (size_t)got);
		complete_set(mentions->names, buf_str(&text));
	}
	buf_fini(&text);
}

bool mentions_settle(struct mentions *mentions)
{
	struct loop *loop = session_loop(talk_session(mentions->talk));
	bool taken;

	if (mentions->running == NULL)
		return false;
	(void)pthread_mutex_lock(&mentions->lock);
	take_names(mentions);
	taken = mentions->taken;
	(void)pthread_mutex_unlock(&mentions->lock);
	if (!taken && !running_is_done(mentions->running))
		return false;
	/* The names are there; the word that the call has ended follows. */
	while (!running_is_done(mentions->running))
		loop_turn(loop, CLOCK_NEVER);
	forget_list(mentions);
	return taken;
}

/* Wait for names that are on their way. */
static void wait_for_names(struct mentions *mentions)
{
	struct loop *loop = session_loop(talk_session(mentions->talk));

	while (mentions->running != NULL && !running_is_done(mentions->running))
		loop_turn(loop, CLOCK_NEVER);
	(void)mentions_settle(mentions);
}

static void add_word(void *context, struct str name)
{
	struct buf *words = context;
	const size_t before = words->size;

	mention_add(name, words);
	if (!buf_addc(words, '\n'))
		buf_truncate(words, before);
}

bool mentions_complete(struct mentions *mentions, struct str before, size_t *from,
		       struct buf *words)
{
	size_t start = before.size > MENTION_MAX
			       ? text_character_border(before, before.size - MENTION_MAX)
			       : 0;
	struct mention mention;
	bool found = false;

	while (!found && mention_next(before, start, &mention)) {
		found = mention.end == before.size && mention.first == 0 &&
			(!mention.quoted || before.data[before.size - 1] != '"' ||
			 mention.name.size == 0);
		start = mention.end;
	}
	if (!found)
		return false;
	*from = mention.begin;
	(void)pthread_mutex_lock(&mentions->lock);
	take_names(mentions);
	complete_find(mentions->names, mention.name, add_word, words);
	(void)pthread_mutex_unlock(&mentions->lock);
	return true;
}

/* Reading what a prompt names. */

struct attaching {
	struct mentions *mentions;
	struct value *items;
	struct value *done; /* the mentions that were read, as members */
	size_t bytes;
};

static size_t room_left(const struct attaching *attaching)
{
	const size_t left = attaching->bytes < MENTIONS_ALL_MAX
				    ? MENTIONS_ALL_MAX - attaching->bytes
				    : 0;

	return left < MENTIONS_FILE_MAX ? left : MENTIONS_FILE_MAX;
}

/* Have WHOLE, or as many of its lines as there is room for, go with the prompt as NAME. */
static void keep(struct attaching *attaching, struct str whole, const char *name)
{
	const size_t most = room_left(attaching);
	struct value *item = value_new_object();
	struct str part = whole;
	struct buf text;

	buf_init(&text, 2 * MENTIONS_FILE_MAX);
	if (most == 0) {
		(void)buf_adds(&text, "(Not read: what the prompt names before has filled the "
				      "room. Read it if you need it.)");
	} else {
		if (part.size > most) {
			const char *end;

			part = str_part(part, 0, text_character_border(part, most));
			end = memrchr(part.data, '\n', part.size);
			if (end != NULL)
				part.size = (size_t)(end + 1 - part.data);
		}
		attaching->bytes += part.size;
		(void)buf_addstr(&text, part);
		if (part.size < whole.size)
			(void)buf_addf(&text,
				       "[… %zu bytes left out: read the rest if you need it]",
				       whole.size - part.size);
	}
	value_set_text(item, "name", name);
	value_set_str(item, "text", buf_str(&text));
	value_append(attaching->items, item);
	buf_fini(&text);
}

/* Carry out TOOL with ARGUMENTS (taken), and keep its text as NAME. */
static void attach(struct attaching *attaching, const char *tool, struct value *arguments,
		   const char *name)
{
	const struct request request = {.tool = tool,
					.arguments = arguments,
					.by_front = true,
					.terse = true};
	struct tool_result result;

	tool_result_init(&result);
	if (room_left(attaching) > 0)
		agent_call(talk_agent(attaching->mentions->talk), &request, false, &result);
	keep(attaching, buf_str(&result.text), name);
	tool_result_fini(&result);
	value_free(arguments);
}

/* The end of a sentence, which may stand behind a name. */
static const char mention_ends[] = ".,;:!?)]}'\"`";

/* The file or folder of MENTION in PATH; false: there is none of that name. */
static bool resolve(struct mentions *mentions, const struct mention *mention,
		    struct buf *path)
{
	struct str name = mention->name;
	bool known = false;

	for (;;) {
		buf_clear(path);
		if (!buf_addstr(path, name))
			return false;
		known = complete_has(mentions->names, buf_str(path));
		/* A folder is known with its slash. */
		if (!known && !str_ends(name, STR("/")) && buf_addc(path, '/'))
			known = complete_has(mentions->names, buf_str(path));
		/* The end of a sentence is no part of the name. */
		if (known || mention->quoted || name.size == 0 ||
		    strchr(mention_ends, name.data[name.size - 1]) == NULL)
			break;
		name.size--;
	}
	if (known)
		complete_note(mentions->names, buf_str(path));
	return known;
}

/*
 * Is MENTION "SERVER:uri", of a server with resources that the agent can read? Then it is read.
 * The end of a sentence is no part of an address.
 */
static bool attach_resource(struct attaching *attaching, const struct mention *mention)
{
	const struct talk *talk = attaching->mentions->talk;
	const struct front_servers *servers = &talk_setup(talk)->servers;
	/* A number at the end of an address names no lines. */
	const struct str whole = {mention->name.data,
				  mention->quoted ? mention->name.size
						  : mention->end - mention->begin - 1};
	const size_t size = str_find(whole, STR(":"), 0);
	const struct str server = str_part(whole, 0, size != SIZE_MAX ? size : 0);
	struct str uri = str_part(whole, server.size + 1, SIZE_MAX);
	auto_free char *key = memory_copy_str(server);
	struct value *arguments;

	while (!mention->quoted && uri.size > 0 &&
	       strchr(mention_ends, uri.data[uri.size - 1]) != NULL)
		uri.size--;
	auto_free char *name =
		memory_copy_str(str_part(whole, 0, server.size + 1 + uri.size));
	if (server.size == 0 || uri.size == 0 ||
	    value_member(servers->settings, key) == NULL ||
	    tool_find(session_tools(talk_session(talk)), "read_resource") == NULL ||
	    value_member(attaching->done, name) != NULL ||
	    value_count(attaching->done) == MENTIONS_MAX)
		return false;
	value_set_boolean(attaching->done, name, true);
	arguments = value_new_object();
	value_set_str(arguments, "server", server);
	value_set_str(arguments, "uri", uri);
	attach(attaching, "read_resource", arguments, name);
	return true;
}

/* False: there is nothing of the name that MENTION has. */
static bool attach_mention(struct attaching *attaching, const struct mention *mention)
{
	struct value *arguments;
	struct buf path, name;
	bool known;

	buf_init(&path, NAME_MAX_BYTES);
	buf_init(&name, 2 * NAME_MAX_BYTES);
	(void)pthread_mutex_lock(&attaching->mentions->lock);
	known = resolve(attaching->mentions, mention, &path);
	(void)pthread_mutex_unlock(&attaching->mentions->lock);
	(void)buf_addstr(&name, buf_str(&path));
	if (mention->first != 0)
		(void)buf_addf(&name, ", lines %" PRIu32 " to %" PRIu32, mention->first,
			       mention->last);
	if (known && value_member(attaching->done, name.data) == NULL &&
	    value_count(attaching->done) < MENTIONS_MAX) {
		const bool is_folder = str_ends(buf_str(&path), STR("/"));

		value_set_boolean(attaching->done, name.data, true);
		arguments = value_new_object();
		value_set_text(arguments, "path", path.data);
		if (!is_folder && mention->first != 0) {
			value_set_integer(arguments, "start_line", mention->first);
			value_set_integer(arguments, "end_line", mention->last);
		}
		attach(attaching, is_folder ? "list_files" : "read_file", arguments,
		       name.data);
	}
	buf_fini(&name);
	buf_fini(&path);
	return known;
}

void mentions_attach(struct mentions *mentions, struct str prompt, struct buf *missing)
{
	struct attaching attaching = {.mentions = mentions};
	struct mention mention;

	if (!mention_next(prompt, 0, &mention))
		return;
	mentions_refresh(mentions);
	wait_for_names(mentions);
	attaching.items = value_new_array();
	attaching.done = value_new_object();
	for (size_t at = 0; mention_next(prompt, at, &mention); at = mention.end) {
		if (!attach_resource(&attaching, &mention) &&
		    !attach_mention(&attaching, &mention) && missing != NULL) {
			while (!mention.quoted && mention.name.size > 0 &&
			       strchr(mention_ends,
				      mention.name.data[mention.name.size - 1]) != NULL)
				mention.name.size--;
			(void)buf_adds(missing, missing->size > 0 ? ", " : "");
			text_add_name(missing, mention.name);
		}
	}
	value_free(attaching.done);
	agent_attach(talk_agent(mentions->talk), attaching.items);
}

void mentions_attach_once(struct talk *talk, struct str prompt)
{
	struct mentions *mentions = mentions_new(talk);

	mentions_attach(mentions, prompt, NULL);
	mentions_free(mentions);
}

void mentions_attach_files(struct talk *talk, const struct value *files,
			   void (*unsaved)(void *context, const char *path, struct buf *text),
			   void *context)
{
	struct mentions only = {.talk = talk};
	struct attaching attaching = {.mentions = &only};
	struct buf text;

	if (value_count(files) == 0)
		return;
	attaching.items = value_new_array();
	buf_init(&text, MENTIONS_UNSAVED_MAX);
	for (size_t i = 0; i < value_count(files) && i < MENTIONS_MAX; i++) {
		const char *path = value_text(value_item(files, i));
		struct value *arguments;
		struct stat st;

		if (path == NULL || stat(path, &st) < 0)
			continue;
		buf_clear(&text);
		if (unsaved != NULL && S_ISREG(st.st_mode))
			unsaved(context, path, &text);
		if (text.size > 0) {
			keep(&attaching, buf_str(&text), path);
			continue;
		}
		arguments = value_new_object();
		value_set_text(arguments, "path", path);
		attach(&attaching, S_ISDIR(st.st_mode) ? "list_files" : "read_file",
		       arguments, path);
	}
	buf_fini(&text);
	agent_attach(talk_agent(talk), attaching.items);
}
