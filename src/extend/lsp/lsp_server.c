/* lsp_server: runs one language server and speaks with it. */

#include "extend/lsp/lsp_server.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "extend/lsp/lsp_message.h"
#include "mcp/message.h"
#include "tool/tool.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_SIZE = 64 << 10,
	QUEUE_MAX = 32 << 20,  /* that the server has not read yet */
	HEARD_MAX = 128 << 20, /* that it says without being told anything */
	WORDS_MAX = 1 << 10,   /* of its standard error, in a sentence */
	SENTENCE_MAX = 8 << 10,
	URI_MAX = 4 * PATH_MAX,
	LISTED_MAX = 64, /* settings of one request for some */
};

/* A question that has no answer yet. */
struct asked {
	int64_t id; /* 0: this place is free */
	void (*answered)(void *context, const struct value *result, const char *why);
	void *context;
};

struct lsp_server {
	struct lsp_server_options options;
	enum lsp_state state;
	unsigned crashes;
	char *trouble;
	struct session *session;
	struct loop *loop;
	struct running *running; /* the call that runs the program; NULL: none */
	struct tool exec;        /* `exec`, as a tool that is in no table */
	struct value *no_schema, *carried;
	int given[4]; /* the program's ends of the pipes, until it has got them */
	int pulse;    /* a byte in this pipe tells its worker that it is in use */
	struct watch input, output, error;
	struct timer late; /* the program does not answer `initialize` */
	struct lsp_reader reader;
	struct buf queue, words;
	size_t heard;        /* bytes since it was told something */
	unsigned generation; /* how often it was started */
	bool in_bytes;
	int64_t next_id;
	struct asked asked[LSP_ASKED_MAX];
};

/* The program and its pipes. */

static void give_up(struct lsp_server *server)
{
	for (size_t i = 0; i < sizeof(server->given) / sizeof(server->given[0]); i++)
		fd_close(&server->given[i]);
}

static void close_pipes(struct lsp_server *server)
{
	struct watch *const watches[] = {&server->input, &server->output, &server->error};

	for (size_t i = 0; i < 3; i++) {
		loop_remove(watches[i]);
		fd_close(&watches[i]->fd);
	}
	give_up(server);
	fd_close(&server->pulse);
	loop_remove_timer(&server->late);
	lsp_reader_clear(&server->reader);
	buf_clear(&server->queue);
	server->heard = 0;
}

/* Our copies would keep us from seeing the end of the program. */
static void give_away(struct lsp_server *server)
{
	if (server->running && running_is_sent(server->running))
		give_up(server);
}

/* Answer all questions, which nobody else will. */
static void refuse_all(struct lsp_server *server, const char *why)
{
	for (size_t i = 0; i < LSP_ASKED_MAX; i++) {
		struct asked asked = server->asked[i];

		server->asked[i].id = 0;
		if (asked.id != 0)
			asked.answered(asked.context, NULL, why);
	}
}

/* Append what the server said last, if it said something. */
static void add_words(const struct lsp_server *server, struct buf *text)
{
	const struct str words = str_trim(buf_str(&server->words));

	if (words.size == 0)
		return;
	(void)buf_adds(text, " Its last words were: ");
	(void)text_clean(words, text);
}

static void break_off(struct lsp_server *server, const char *why)
{
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	(void)buf_addf(&text, "The language server %.64s %s", server->options.name, why);
	if (server->crashes >= LSP_CRASHES_MAX)
		(void)buf_adds(&text, ", the third time");
	(void)buf_adds(&text, "; it is off until the next session.");
	add_words(server, &text);
	free(server->trouble);
	server->trouble = buf_take(&text);
	server->state = LSP_BROKEN;
}

/* The server is lost, WHY behind its name. FOR_GOOD: another start would be as vain. */
static void lost(struct lsp_server *server, const char *why, bool for_good)
{
	struct buf sentence;

	if (server->state != LSP_STARTING && server->state != LSP_READY)
		return;
	server->state = LSP_OFF;
	server->crashes++;
	close_pipes(server);
	if (server->running)
		running_cancel(server->running);
	if (for_good || server->crashes >= LSP_CRASHES_MAX)
		break_off(server, why);
	buf_init(&sentence, SENTENCE_MAX);
	(void)buf_addf(&sentence, "The language server %.64s %s.", server->options.name,
		       why);
	add_words(server, &sentence);
	refuse_all(server, sentence.data);
	server->options.ended(server->options.owner, sentence.data);
	buf_fini(&sentence);
}

static void write_queue(struct lsp_server *server)
{
	while (server->queue.size > 0) {
		const ssize_t size =
			write(server->input.fd, server->queue.data, server->queue.size);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == EAGAIN)
			break;
		/* The call that runs the program tells of its end. */
		if (size < 0) {
			buf_clear(&server->queue);
			break;
		}
		buf_remove(&server->queue, 0, (size_t)size);
	}
	if (server->queue.size > 0)
		loop_add(server->loop, &server->input);
	else
		loop_remove(&server->input);
}

static void input_ready(struct watch *watch, short events)
{
	(void)events;
	write_queue(watch->context);
}

/* Send MESSAGE. */
static void send_message(struct lsp_server *server, struct value *take_message)
{
	auto_value struct value *message = take_message;
	struct buf text;

	if (server->input.fd < 0)
		return;
	value_set_text(message, "jsonrpc", "2.0");
	buf_init(&text, LSP_BODY_MAX);
	if (value_print(message, 0, &text) &&
	    lsp_message_add(buf_str(&text), &server->queue))
		write_queue(server);
	else
		lost(server, "does not read what it is sent", false);
	buf_fini(&text);
}

static void tell(struct lsp_server *server, const char *method, struct value *take_params)
{
	struct value *message = value_new_object();

	value_set_text(message, "method", method);
	value_set(message, "params", take_params);
	server->heard = 0;
	send_message(server, message);
}

/* The words of the server. */

static struct value *folder_of(const struct lsp_server *server)
{
	struct value *folder = value_new_object();
	struct buf uri;

	buf_init(&uri, URI_MAX);
	(void)path_add_uri(server->options.workspace, &uri);
	value_set_str(folder, "uri", buf_str(&uri));
	value_set_text(folder, "name", path_base_name(server->options.workspace));
	buf_fini(&uri);
	return folder;
}

/* The settings that the server asks for: it has none of us. */
static struct value *no_settings(const struct value *params)
{
	struct value *list = value_new_array();
	size_t count = value_count(value_member(params, "items"));

	for (size_t i = 0; i < count && i < LISTED_MAX; i++)
		value_append(list, value_new_null());
	return list;
}

/* Answer a request of the server. */
static void answer(struct lsp_server *server, const struct mcp_message *asked)
{
	struct value *message = value_new_object(), *result = NULL;

	value_set(message, "id", value_ref(asked->id));
	if (strcmp(asked->method, "workspace/configuration") == 0) {
		result = no_settings(asked->params);
	} else if (strcmp(asked->method, "workspace/workspaceFolders") == 0) {
		result = value_new_array();
		value_append(result, folder_of(server));
	} else if (strcmp(asked->method, "workspace/applyEdit") == 0) {
		result = value_new_object();
		value_set_boolean(result, "applied", false);
	} else if (strcmp(asked->method, "window/workDoneProgress/create") == 0 ||
		   strcmp(asked->method, "client/registerCapability") == 0 ||
		   strcmp(asked->method, "client/unregisterCapability") == 0 ||
		   strcmp(asked->method, "window/showMessageRequest") == 0) {
		result = value_new_null();
	}
	if (result) {
		value_set(message, "result", result);
	} else {
		struct value *error = value_new_object();

		value_set_integer(error, "code", MCP_CODE_METHOD);
		value_set_text(error, "message", "This client does not do that.");
		value_set(message, "error", error);
	}
	send_message(server, message);
}

/* The server answers `initialize` with ERROR: its reason stands in the sentence. */
static void refuse_start(struct lsp_server *server, const struct value *error)
{
	struct str reason = str_trim(value_str(value_member(error, "message")));
	struct buf why, clean;

	while (str_ends(reason, STR(".")))
		reason.size--;
	buf_init(&why, SENTENCE_MAX);
	buf_init(&clean, SENTENCE_MAX);
	(void)text_clean(str_part(reason, 0, WORDS_MAX), &clean);
	(void)buf_adds(&why, "refuses to begin");
	if (clean.size > 0)
		(void)buf_adds(&why, ": ");
	text_add_paragraph(&why, buf_str(&clean));
	lost(server, why.data, false);
	buf_fini(&clean);
	buf_fini(&why);
}

/* The answer to our question has come. */
static void take_answer(struct lsp_server *server, const struct mcp_message *message)
{
	const int64_t id = value_integer(message->id);

	for (size_t i = 0; i < LSP_ASKED_MAX && id > 0; i++) {
		const struct asked asked = server->asked[i];
		struct buf why;

		if (asked.id != id)
			continue;
		if (!message->result && server->state == LSP_STARTING) {
			refuse_start(server, message->error);
			return;
		}
		server->asked[i].id = 0;
		buf_init(&why, SENTENCE_MAX);
		(void)buf_addf(&why,
			       "The language server %.64s refuses: ", server->options.name);
		(void)text_clean(str_part(value_str(value_member(message->error, "message")),
					  0, WORDS_MAX),
				 &why);
		asked.answered(asked.context, message->result,
			       message->result ? NULL : why.data);
		buf_fini(&why);
		return;
	}
}

static void take_message(struct lsp_server *server, struct str text)
{
	struct mcp_message message;

	if (!mcp_message_read(text, &message, NULL)) {
		mcp_message_fini(&message);
		return;
	}
	if (message.kind == MCP_RESPONSE)
		take_answer(server, &message);
	else if (message.kind == MCP_REQUEST)
		answer(server, &message);
	else if (strcmp(message.method, "textDocument/publishDiagnostics") == 0 &&
		 server->state == LSP_READY)
		server->options.published(server->options.owner, message.params);
	mcp_message_fini(&message);
}

static void take_bytes(struct lsp_server *server, struct str bytes)
{
	const unsigned generation = server->generation;
	struct err err;
	enum lsp_read read;

	server->heard += bytes.size;
	if (server->heard > HEARD_MAX) {
		lost(server, "says more than 128 MiB unasked", false);
		return;
	}
	while ((read = lsp_reader_take(&server->reader, &bytes, &err)) == LSP_READ_WHOLE) {
		struct buf body = server->reader.body;

		/* A message may end the server, so its text is taken out before. */
		buf_init(&server->reader.body, LSP_BODY_MAX);
		take_message(server, buf_str(&body));
		buf_fini(&body);
		if (server->generation != generation || server->output.fd < 0)
			return;
	}
	if (read == LSP_READ_WRONG)
		lost(server, err.text, false);
}

static void output_ready(struct watch *watch, short events)
{
	struct lsp_server *server = watch->context;
	char bytes[READ_SIZE];
	const ssize_t size = read(watch->fd, bytes, sizeof(bytes));

	(void)events;
	give_away(server);
	if (size > 0)
		take_bytes(server, (struct str){bytes, (size_t)size});
	else if (size == 0 || (errno != EAGAIN && errno != EINTR))
		loop_remove(watch); /* the call that runs the program ends soon */
}

static void error_ready(struct watch *watch, short events)
{
	struct lsp_server *server = watch->context;
	char bytes[READ_SIZE];
	const ssize_t size = read(watch->fd, bytes, sizeof(bytes));
	const size_t kept = size > WORDS_MAX ? WORDS_MAX : size > 0 ? (size_t)size : 0;

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

/* Read what the server wrote before its end. */
static void drain(struct lsp_server *server)
{
	struct watch *const watches[] = {&server->error, &server->output};

	for (size_t i = 0; i < 2; i++) {
		struct pollfd news = {.fd = watches[i]->fd, .events = POLLIN};

		while (news.fd >= 0 && watches[i]->fd == news.fd && watches[i]->loop &&
		       poll(&news, 1, 0) > 0 && (news.revents & POLLIN) != 0)
			watches[i]->ready(watches[i], POLLIN);
	}
}

/* Start and end. */

static void program_ended(void *context, struct running *running)
{
	struct lsp_server *server = context;
	const struct tool_result *result = running_result(running);
	const struct str said = str_trim(buf_str(&result->text));
	struct buf why;

	if (running != server->running || server->input.fd < 0)
		return;
	if (value_is_true(value_member(result->details, "idle"))) {
		close_pipes(server);
		server->state = LSP_OFF;
		refuse_all(server, "The language server was ended.");
		server->options.ended(server->options.owner,
				      "The language server was ended.");
		return;
	}
	drain(server);
	buf_init(&why, SENTENCE_MAX / 2);
	if (result->signal != 0)
		(void)buf_addf(&why, "was ended by signal %d", result->signal);
	else if (result->status == RESULT_DONE)
		(void)buf_addf(&why, "ended with exit code %d", result->exit_code);
	else
		(void)buf_addf(&why, "could not be started: %.*s",
			       (int)(said.size < WORDS_MAX ? said.size : WORDS_MAX),
			       said.data);
	lost(server, why.data, result->status == RESULT_FAILED);
	buf_fini(&why);
}

static bool open_pipes(struct lsp_server *server, struct err *err)
{
	int in[2], out[2], error[2], pulse[2];

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
	if (!fd_pipe(pulse, err))
		return false;
	server->given[3] = pulse[0];
	server->pulse = pulse[1];
	return fd_set_blocking(server->pulse, false, err) &&
	       fd_set_blocking(server->input.fd, false, err) &&
	       fd_set_blocking(server->output.fd, false, err) &&
	       fd_set_blocking(server->error.fd, false, err);
}

static void late_due(struct timer *timer)
{
	struct lsp_server *server = timer->context;

	loop_remove_timer(timer);
	/* Nobody may have looked at its output for long. */
	drain(server);
	if (server->state == LSP_STARTING)
		lost(server, "has not answered in 20 s after its start", false);
}

/* Our abilities, as the protocol names them. */
static const char capabilities[] =
	"{\"general\": {\"positionEncodings\": [\"utf-8\", \"utf-16\"]},"
	" \"workspace\": {\"workspaceFolders\": true, \"configuration\": true},"
	" \"window\": {\"workDoneProgress\": false},"
	" \"textDocument\": {"
	"  \"synchronization\": {\"didSave\": true},"
	"  \"publishDiagnostics\": {\"versionSupport\": true},"
	"  \"definition\": {\"linkSupport\": true}, \"references\": {},"
	"  \"documentSymbol\": {\"hierarchicalDocumentSymbolSupport\": true}}}";

static void initialized(void *context, const struct value *result, const char *why)
{
	struct lsp_server *server = context;
	const struct value *able = value_member(result, "capabilities");

	/* Without a result the server is lost already (refuse_start). */
	(void)why;
	if (server->state != LSP_STARTING)
		return;
	loop_remove_timer(&server->late);
	server->in_bytes =
		str_is(value_str(value_member(able, "positionEncoding")), "utf-8");
	server->state = LSP_READY;
	tell(server, "initialized", value_new_object());
	if (server->state == LSP_READY)
		server->options.ready(server->options.owner);
}

static void send_request(struct lsp_server *server, struct asked *place,
			 const char *method, struct value *take_params)
{
	struct value *message = value_new_object();

	place->id = ++server->next_id;
	value_set_integer(message, "id", place->id);
	value_set_text(message, "method", method);
	value_set(message, "params", take_params);
	server->heard = 0;
	send_message(server, message);
}

static void initialize(struct lsp_server *server)
{
	struct value *params = value_new_object(), *able = NULL,
		     *client = value_new_object();
	struct value *folders = value_new_array(), *folder = folder_of(server);

	/* The process that it would watch is in another namespace. */
	value_set(params, "processId", value_new_null());
	value_set_text(client, "name", "glovebox");
	value_set(params, "clientInfo", client);
	value_set(params, "rootUri", value_ref(value_member(folder, "uri")));
	value_append(folders, folder);
	value_set(params, "workspaceFolders", folders);
	(void)value_parse(STR(capabilities), 0, &able, NULL);
	value_set(params, "capabilities", able);
	server->asked[0] = (struct asked){.answered = initialized, .context = server};
	send_request(server, &server->asked[0], "initialize", params);
}

void lsp_server_start(struct lsp_server *server, struct session *session)
{
	auto_value struct value *arguments = value_new_object();
	struct request request = {.tool = server->exec.name,
				  .made = &server->exec,
				  .arguments = arguments,
				  .fd_count = 4,
				  .by_front = true,
				  .quiet = true,
				  .timeout_s = -1};
	struct err err = {0};

	/* A full pipe has told its worker already. */
	if (server->pulse >= 0)
		(void)!write(server->pulse, "", 1);
	if (server->state != LSP_OFF)
		return;
	server->session = session;
	server->loop = session_loop(session);
	server->generation++;
	server->state = LSP_STARTING;
	running_free(server->running);
	server->running = NULL;
	buf_clear(&server->words);
	if (!open_pipes(server, &err)) {
		lost(server, err.text, false);
		return;
	}
	value_set(arguments, "argv", value_ref(server->options.command));
	memcpy(request.fds, server->given, sizeof(server->given));
	loop_add(server->loop, &server->output);
	loop_add(server->loop, &server->error);
	server->late.due_ms = clock_now_ms() + LSP_START_MS;
	loop_add_timer(server->loop, &server->late);
	initialize(server);
	server->running = session_start(session, &request, program_ended, server);
	/* A call that has ended already could not be started. */
	if (running_is_done(server->running))
		program_ended(server, server->running);
}

void lsp_server_stop(struct lsp_server *server)
{
	if (server->state == LSP_STARTING || server->state == LSP_READY)
		server->state = LSP_OFF;
	close_pipes(server);
	refuse_all(server, "The language server was ended.");
	running_free(server->running);
	server->running = NULL;
	server->session = NULL;
}

struct lsp_server *lsp_server_new(const struct lsp_server_options *options)
{
	struct lsp_server *server = memory_alloc(sizeof(*server));
	const struct watch watches[] = {
		{.fd = -1, .events = POLLOUT, .ready = input_ready, .context = server},
		{.fd = -1, .events = POLLIN, .ready = output_ready, .context = server},
		{.fd = -1, .events = POLLIN, .ready = error_ready, .context = server},
	};

	server->options = *options;
	server->no_schema = value_new_object();
	server->carried = value_new_object();
	value_set_real(server->carried, "idle_s", options->idle_s);
	server->exec = (struct tool){.name = "language server",
				     .schema = server->no_schema,
				     .carrier = "exec",
				     .carried = server->carried,
				     .effects = EFFECT_RUNS,
				     .internal = true};
	for (size_t i = 0; i < sizeof(server->given) / sizeof(server->given[0]); i++)
		server->given[i] = -1;
	server->pulse = -1;
	server->input = watches[0];
	server->output = watches[1];
	server->error = watches[2];
	server->late =
		(struct timer){.due_ms = CLOCK_NEVER, .due = late_due, .context = server};
	lsp_reader_init(&server->reader);
	buf_init(&server->queue, QUEUE_MAX);
	buf_init(&server->words, WORDS_MAX);
	return server;
}

void lsp_server_free(struct lsp_server *server)
{
	lsp_server_stop(server);
	value_free(server->no_schema);
	value_free(server->carried);
	lsp_reader_fini(&server->reader);
	buf_fini(&server->queue);
	buf_fini(&server->words);
	free(server->trouble);
	free(server);
}

enum lsp_state lsp_server_state(const struct lsp_server *server)
{
	return server->state;
}

const char *lsp_server_trouble(const struct lsp_server *server)
{
	return server->trouble;
}

bool lsp_server_in_bytes(const struct lsp_server *server)
{
	return server->in_bytes;
}

void lsp_server_tell(struct lsp_server *server, const char *method, struct value *take_params)
{
	tell(server, method, take_params);
}

bool lsp_server_ask(struct lsp_server *server, const char *method, struct value *take_params,
		    void (*answered)(void *context, const struct value *result,
				     const char *why),
		    void *context)
{
	for (size_t i = 0; i < LSP_ASKED_MAX; i++) {
		struct asked *place = &server->asked[i];

		if (place->id != 0)
			continue;
		*place = (struct asked){.answered = answered, .context = context};
		send_request(server, place, method, take_params);
		return true;
	}
	value_free(take_params);
	return false;
}

void lsp_server_forget(struct lsp_server *server, const void *context)
{
	for (size_t i = 0; i < LSP_ASKED_MAX; i++) {
		if (server->asked[i].context == context)
			server->asked[i].id = 0;
	}
}
