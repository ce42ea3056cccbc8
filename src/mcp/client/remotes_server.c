/*
 * remotes_server: one server as a program: pipes to it, its lines, the end of what it said on
 * standard error, and its restart.
 */
#include "mcp/client/remotes_parts.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_SIZE = 64 << 10,
	MESSAGE_LINE_MAX = 16 << 20, /* of its messages */
	QUEUE_MAX = 32 << 20,        /* that it has not read yet */
	WORDS_MAX = 2 << 10,         /* of its standard error, in a sentence */
	SENTENCE_MAX = 8 << 10,
	RESTARTS = 1,
	/* From the end of its output to its own, which says more. */
	GOODBYE_MS = 500,
};

static void close_pipes(struct remotes_server *server)
{
	struct watch *const watches[] = {&server->input, &server->output, &server->error};

	for (size_t i = 0; i < 3; i++) {
		loop_remove(watches[i]);
		fd_close(&watches[i]->fd);
		fd_close(&server->given[i]);
	}
	buf_clear(&server->line);
	buf_clear(&server->queue);
}

/* Its ends are its own now: else we would never see them close. */
static void give_away(struct remotes_server *server)
{
	if (server->running && running_is_sent(server->running))
		for (size_t i = 0; i < 3; i++)
			fd_close(&server->given[i]);
}

/* Why it is gone, with the last that it said to people. */
static void lost(struct remotes_server *server, const char *why)
{
	struct str words = str_trim(buf_str(&server->words));
	struct buf text;

	if (server->down)
		return;
	server->down = true;
	if (remote_has_served(server->remote))
		server->restarts_left = RESTARTS;
	buf_init(&text, SENTENCE_MAX);
	(void)buf_addf(&text, "The MCP server %s %s.", server->name, why);
	if (words.size) {
		(void)buf_adds(&text, " Its last words were:\n");
		(void)text_clean(words, &text);
	}
	if (server->restarts_left)
		(void)buf_addf(&text, "%sThe next call starts it again.",
			       words.size ? "\n" : " ");
	close_pipes(server);
	loop_remove_timer(&server->goodbye);
	if (server->running)
		running_cancel(server->running);
	remote_lost(server->remote, text.data);
	buf_fini(&text);
}

static void write_queue(struct remotes_server *server)
{
	while (server->queue.size) {
		ssize_t size =
			write(server->input.fd, server->queue.data, server->queue.size);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == EAGAIN)
			break;
		/* Its end is told by the call that is the program. */
		if (size < 0) {
			loop_remove(&server->input);
			buf_clear(&server->queue);
			return;
		}
		buf_remove(&server->queue, 0, (size_t)size);
	}
	if (server->queue.size)
		loop_add(server->remotes->loop, &server->input);
	else
		loop_remove(&server->input);
}

static void input_ready(struct watch *watch, short events)
{
	(void)events;
	write_queue(watch->context);
}

static void send_line(void *context, struct str line)
{
	struct remotes_server *server = context;

	if (server->input.fd < 0)
		return;
	if (!buf_addstr(&server->queue, line))
		lost(server, "does not read what it is sent");
	else
		write_queue(server);
}

/* Whole lines of BYTES; the rest is kept. */
static void take_bytes(struct remotes_server *server, struct str bytes)
{
	unsigned generation = server->generation;

	while (bytes.size && !server->down && server->generation == generation) {
		size_t end = str_find(bytes, STR("\n"), 0);
		bool whole = end != (size_t)-1;
		struct str part = str_part(bytes, 0, whole ? end : bytes.size);

		bytes = str_part(bytes, part.size + whole, bytes.size);
		if (!buf_addstr(&server->line, part)) {
			lost(server, "sends a message over 16 MiB");
			return;
		}
		if (whole) {
			struct buf line = server->line;

			/* Handling the line may end this server or start it anew. */
			buf_init(&server->line, MESSAGE_LINE_MAX);
			remote_line(server->remote, buf_str(&line));
			buf_fini(&line);
		}
	}
}

static void output_ready(struct watch *watch, short events)
{
	struct remotes_server *server = watch->context;
	char bytes[READ_SIZE];
	ssize_t size = read(watch->fd, bytes, sizeof(bytes));

	(void)events;
	give_away(server);
	if (size > 0)
		take_bytes(server, (struct str){bytes, (size_t)size});
	else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
		loop_remove(watch);
		server->goodbye.due_ms = clock_now_ms() + GOODBYE_MS;
		loop_add_timer(server->remotes->loop, &server->goodbye);
	}
}

static void goodbye_due(struct timer *timer)
{
	loop_remove_timer(timer);
	lost(timer->context, "has closed its output");
}

static void error_ready(struct watch *watch, short events)
{
	struct remotes_server *server = watch->context;
	char bytes[READ_SIZE];
	ssize_t size = read(watch->fd, bytes, sizeof(bytes));
	size_t kept = size > WORDS_MAX ? WORDS_MAX : size > 0 ? (size_t)size : 0;

	(void)events;
	give_away(server);
	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
		loop_remove(watch);
		return;
	}
	if (server->words.size + kept > WORDS_MAX)
		buf_remove(&server->words, 0, server->words.size + kept - WORDS_MAX);
	(void)buf_add(&server->words, bytes + (size > 0 ? (size_t)size - kept : 0), kept);
}

/* Read the bytes that the server wrote before its end. */
static void drain(struct remotes_server *server)
{
	struct watch *const watches[] = {&server->output, &server->error};
	unsigned generation = server->generation;

	for (size_t i = 0; i < 2; i++) {
		struct pollfd news = {.fd = watches[i]->fd, .events = POLLIN};

		while (!server->down && server->generation == generation && news.fd >= 0 &&
		       watches[i]->loop && poll(&news, 1, 0) > 0 && (news.revents & POLLIN))
			watches[i]->ready(watches[i], POLLIN);
	}
}

static void program_ended(void *context, struct running *running)
{
	struct remotes_server *server = context;
	const struct tool_result *result = running_result(running);
	struct str said = str_trim(buf_str(&result->text));
	struct buf why;

	if (server->down)
		return;
	for (size_t i = 0; i < 3; i++)
		fd_close(&server->given[i]);
	drain(server);
	/* It is put into a sentence. */
	if (str_ends(said, STR(".")))
		said.size--;
	buf_init(&why, SENTENCE_MAX / 2);
	if (result->signal)
		(void)buf_addf(&why, "was ended by signal %d", result->signal);
	else if (result->status == RESULT_DONE)
		(void)buf_addf(&why, "ended with exit code %d", result->exit_code);
	else
		(void)buf_addf(&why, "could not be run: %.*s",
			       (int)(said.size < WORDS_MAX ? said.size : WORDS_MAX),
			       said.data);
	lost(server, why.data);
	buf_fini(&why);
}

static bool open_pipes(struct remotes_server *server, struct err *err)
{
	int in[2], out[2], error[2];

	if (!fd_pipe(in, err))
		return false;
	server->given[0] = in[0];
	server->input.fd = in[1];
	if (!fd_pipe(out, err))
		return false;
	server->output.fd = out[0];
	server->given[1] = out[1];
	if (!fd_pipe(error, err))
		return false;
	server->error.fd = error[0];
	server->given[2] = error[1];
	return fd_set_blocking(server->input.fd, false, err) &&
	       fd_set_blocking(server->output.fd, false, err) &&
	       fd_set_blocking(server->error.fd, false, err);
}

static struct value *argv_of(const struct remotes_server *server)
{
	const struct value *args = value_member(server->settings, "args");
	struct value *arguments = value_new_object();
	struct value *argv = value_new_array();

	value_append(argv, value_ref(value_member(server->settings, "command")));
	for (size_t i = 0; i < value_count(args); i++)
		value_append(argv, value_ref(value_item(args, i)));
	value_set(arguments, "argv", argv);
	return arguments;
}

void remotes_server_start(struct remotes_server *server)
{
	auto_value struct value *arguments = argv_of(server);
	struct request request = {.tool = server->exec.name,
				  .made = &server->exec,
				  .arguments = arguments,
				  .fd_count = 3,
				  .by_front = true,
				  .quiet = true,
				  .timeout_s = -1};
	struct running *running;
	struct err err = {0};

	server->generation++;
	server->down = false;
	buf_clear(&server->words);
	if (!open_pipes(server, &err)) {
		lost(server, err.text);
		return;
	}
	loop_add(server->remotes->loop, &server->output);
	loop_add(server->remotes->loop, &server->error);
	memcpy(request.fds, server->given, sizeof(request.fds));
	remote_begin(server->remote);
	running = session_start(server->remotes->session, &request, program_ended, server);
	server->running = running;
	/* It may have ended already: then it could not be begun. */
	if (running_is_done(running) && !server->down)
		program_ended(server, running);
}

static void restart_due(struct timer *timer)
{
	struct remotes_server *server = timer->context;

	loop_remove_timer(timer);
	running_free(server->running);
	server->running = NULL;
	remotes_server_start(server);
}

void remotes_begin(void *keeper, struct running *running)
{
	struct remotes_tool *tool = keeper;
	struct remotes_server *server = tool->server;
	struct tool_result result;

	if (!tool->listed) {
		tool_result_init(&result);
		(void)tool_fail(&result, "The MCP server %s has withdrawn its tool %s.",
				server->name, tool->remote_name);
		running_end(running, &result);
		return;
	}
	if (!server->down) {
		remote_call(server->remote, tool->remote_name, running);
		return;
	}
	if (server->restarts_left == 0 && !server->restart.loop) {
		tool_result_init(&result);
		(void)tool_fail(&result,
				"The MCP server %s has ended again before it answered a call; it is "
				"not started any more.",
				server->name);
		running_end(running, &result);
		return;
	}
	/* Not at once: this may be the end of the call that was its program. */
	if (!server->restart.loop) {
		server->restarts_left--;
		remote_reset(server->remote);
		server->restart.due_ms = clock_now_ms();
		loop_add_timer(server->remotes->loop, &server->restart);
	}
	remote_call(server->remote, tool->remote_name, running);
}

void remotes_stop(void *keeper, struct running *running)
{
	const struct remotes_tool *tool = keeper;

	remote_stop(tool->server->remote, running);
}

void remotes_moved(void *keeper, struct running *running, struct running *work)
{
	const struct remotes_tool *tool = keeper;

	remote_move(tool->server->remote, running, work);
}

void remotes_answered(void *keeper, struct running *running, const struct value *answer)
{
	const struct remotes_tool *tool = keeper;

	remote_answer(tool->server->remote, running, answer);
}

static bool may_call(void *context, const char *name)
{
	const struct remotes_server *server = context;
	const struct remotes_tool *tool = server->remotes->tools;

	while (tool && (tool->server != server || strcmp(tool->remote_name, name) != 0))
		tool = tool->next;
	return tool && tool->listed;
}

static void settled(void *context, const char *why)
{
	struct remotes_server *server = context;

	bool first = !server->settled;

	server->settled = true;
	if (!why) {
		remotes_take_tools(server);
		return;
	}
	if (first)
		remotes_note(server->remotes, why);
	lost(server, "cannot be used");
	if (first)
		(void)remotes_tell(server->remotes);
}

static struct value *environment_of(const struct value *settings)
{
	const struct value *env = value_member(settings, "env");
	struct value *list = value_new_array();

	for (void *at = value_first(env); at; at = value_next(env, at)) {
		struct str value = value_str(value_at(at));
		struct buf text;

		buf_init(&text, MESSAGE_LINE_MAX);
		(void)buf_addf(&text, "%s=%.*s", value_key(at), (int)value.size, value.data);
		value_append(list, value_new_str(buf_str(&text)));
		buf_fini(&text);
	}
	return list;
}

struct remotes_server *remotes_server_new(struct remotes *remotes, const char *name,
					  const struct value *settings)
{
	struct remotes_server *server = memory_alloc(sizeof(*server));
	const struct value *start = value_member(settings, "start_s");
	const struct remote_options options = {.loop = remotes->loop,
					       .version = remotes->version,
					       .send = send_line,
					       .settled = settled,
					       .may_call = may_call,
					       .context = server,
					       .start_s = start ? value_number(start) : 0,
					       .asks = remotes->asks};

	server->remotes = remotes;
	server->name = memory_copy(name);
	server->settings = settings;
	server->remote = remote_new(&options, name);
	server->carried = value_new_object();
	value_set(server->carried, "env", environment_of(settings));
	server->no_schema = value_new_object();
	server->exec = (struct tool){.name = "mcp server",
				     .schema = server->no_schema,
				     .carrier = "exec",
				     .carried = server->carried,
				     .effects = EFFECT_RUNS,
				     .internal = true};
	server->restarts_left = RESTARTS;
	for (size_t i = 0; i < 3; i++)
		server->given[i] = -1;
	server->input = (struct watch){.fd = -1,
				       .events = POLLOUT,
				       .ready = input_ready,
				       .context = server};
	server->output = (struct watch){.fd = -1,
					.events = POLLIN,
					.ready = output_ready,
					.context = server};
	server->error = (struct watch){.fd = -1,
				       .events = POLLIN,
				       .ready = error_ready,
				       .context = server};
	server->restart =
		(struct timer){.due_ms = CLOCK_NEVER, .due = restart_due, .context = server};
	server->goodbye =
		(struct timer){.due_ms = CLOCK_NEVER, .due = goodbye_due, .context = server};
	buf_init(&server->line, MESSAGE_LINE_MAX);
	buf_init(&server->queue, QUEUE_MAX);
	buf_init(&server->words, WORDS_MAX);
	return server;
}

void remotes_server_free(struct remotes_server *server)
{
	loop_remove_timer(&server->restart);
	loop_remove_timer(&server->goodbye);
	close_pipes(server);
	server->down = true;
	running_free(server->running);
	remote_free(server->remote);
	value_free(server->carried);
	value_free(server->no_schema);
	buf_fini(&server->line);
	buf_fini(&server->queue);
	buf_fini(&server->words);
	free(server->name);
	free(server);
}
