/* lsp_server: runs one language server and speaks with it. */

#include "extend/lsp/lsp_server.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "extend/lsp/lsp_message.h"
#include "mcp/message.h"
#include "session/hosted.h"
#include "session/session.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	HEARD_MAX = 128 << 20, /* that it says without being told anything */
	REFUSAL_MAX = 1 << 10, /* of the reason why it refuses, in a sentence */
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
	struct value *carried;
	struct hosted program;
	struct timer late; /* the program does not answer `initialize` */
	struct lsp_reader reader;
	size_t heard; /* bytes since it was told something */
	bool in_bytes;
	int64_t next_id;
	struct asked asked[LSP_ASKED_MAX];
};

/* The end of the program, and the sentences about it. */

/* Forget the conversation with the program, which ends. */
static void end_conversation(struct lsp_server *server)
{
	loop_remove_timer(&server->late);
	lsp_reader_clear(&server->reader);
	server->heard = 0;
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
	const struct str words = hosted_words(&server->program);

	if (words.size == 0)
		return;
	(void)buf_adds(text, " Its last words were: ");
	(void)text_clean(words, text);
}

static void break_off(struct lsp_server *server, const char *why)
{
	struct buf text;

	buf_init(&text, HOSTED_SENTENCE_MAX);
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
	end_conversation(server);
	hosted_cancel(&server->program);
	if (for_good || server->crashes >= LSP_CRASHES_MAX)
		break_off(server, why);
	buf_init(&sentence, HOSTED_SENTENCE_MAX);
	(void)buf_addf(&sentence, "The language server %.64s %s.", server->options.name,
		       why);
	add_words(server, &sentence);
	refuse_all(server, sentence.data);
	server->options.ended(server->options.owner, sentence.data);
	buf_fini(&sentence);
}

/* Send MESSAGE. */
static void send_message(struct lsp_server *server, struct value *take_message)
{
	auto_value struct value *message = take_message;
	struct buf text;

	if (!hosted_is_open(&server->program))
		return;
	value_set_text(message, "jsonrpc", "2.0");
	buf_init(&text, LSP_BODY_MAX);
	if (value_print(message, 0, &text) &&
	    lsp_message_add(buf_str(&text), hosted_waiting(&server->program)))
		hosted_write(&server->program);
	else
		lost(server, "does not read what it is sent", false);
	buf_fini(&text);
}

void lsp_server_tell(struct lsp_server *server, const char *method, struct value *take_params)
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
	buf_init(&why, HOSTED_SENTENCE_MAX);
	buf_init(&clean, HOSTED_SENTENCE_MAX);
	(void)text_clean(str_part(reason, 0, REFUSAL_MAX), &clean);
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
		buf_init(&why, HOSTED_SENTENCE_MAX);
		(void)buf_addf(&why,
			       "The language server %.64s refuses: ", server->options.name);
		(void)text_clean(str_part(value_str(value_member(message->error, "message")),
					  0, REFUSAL_MAX),
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

static void take_bytes(void *owner, struct str bytes)
{
	struct lsp_server *server = owner;
	const unsigned generation = hosted_generation(&server->program);
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
		if (hosted_generation(&server->program) != generation ||
		    !hosted_is_open(&server->program))
			return;
	}
	if (read == LSP_READ_WRONG)
		lost(server, err.text, false);
}

/* Start and end. */

static void program_ended(void *owner, const struct tool_result *result)
{
	struct lsp_server *server = owner;
	struct buf why;

	if (value_is_true(value_member(result->details, "idle"))) {
		end_conversation(server);
		hosted_cancel(&server->program);
		server->state = LSP_OFF;
		refuse_all(server, "The language server was ended.");
		server->options.ended(server->options.owner,
				      "The language server was ended.");
		return;
	}
	if (!hosted_drain(&server->program))
		return;
	buf_init(&why, HOSTED_SENTENCE_MAX / 2);
	hosted_add_end(result, "could not be started", &why);
	lost(server, why.data, result->status == RESULT_FAILED);
	buf_fini(&why);
}

static void late_due(struct timer *timer)
{
	struct lsp_server *server = timer->context;

	loop_remove_timer(timer);
	/* Nobody may have looked at its output for long. */
	if (hosted_drain(&server->program) && server->state == LSP_STARTING)
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
	lsp_server_tell(server, "initialized", value_new_object());
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
	struct loop *loop = session_loop(session);
	struct err err = {0};

	hosted_use(&server->program);
	if (server->state != LSP_OFF)
		return;
	server->state = LSP_STARTING;
	if (!hosted_open(&server->program, loop, -1, &err)) {
		lost(server, err.text, false);
		return;
	}
	value_set(arguments, "argv", value_ref(server->options.command));
	server->late.due_ms = clock_now_ms() + LSP_START_MS;
	loop_add_timer(loop, &server->late);
	initialize(server);
	hosted_start(&server->program, session, arguments);
}

void lsp_server_stop(struct lsp_server *server)
{
	if (server->state == LSP_STARTING || server->state == LSP_READY)
		server->state = LSP_OFF;
	end_conversation(server);
	hosted_stop(&server->program);
	refuse_all(server, "The language server was ended.");
}

struct lsp_server *lsp_server_new(const struct lsp_server_options *options)
{
	struct lsp_server *server = memory_alloc(sizeof(*server));
	struct hosted_options program = {.name = "language server",
					 .has_idle_time = true,
					 .said = take_bytes,
					 .ended = program_ended,
					 .owner = server};

	server->options = *options;
	server->carried = value_new_object();
	value_set_real(server->carried, "idle_s", options->idle_s);
	program.carried = server->carried;
	hosted_init(&server->program, &program);
	server->late =
		(struct timer){.due_ms = CLOCK_NEVER, .due = late_due, .context = server};
	lsp_reader_init(&server->reader);
	return server;
}

void lsp_server_free(struct lsp_server *server)
{
	lsp_server_stop(server);
	hosted_fini(&server->program);
	value_free(server->carried);
	lsp_reader_fini(&server->reader);
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
