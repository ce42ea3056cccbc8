/* acp: takes the client's messages, keeps its sessions, and answers. */

#include "acp/acp.h"

#include "acp/elicitation.h"
#include "acp/process.h"
#include "acp/prompt.h"
#include "acp/update.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/message.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "process/outbox.h"
#include "process/role.h"
#include "session/approval.h"
#include "store/journal.h"
#include "tool/event.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	PROTOCOL_VERSION = 1,
	SESSIONS_MAX = 16,
	/* Requests of one session that wait for their turn. */
	WAITING_MAX = 16,
	/* Open questions to the client, of all sessions. */
	QUESTIONS_MAX = 256,
	/* With more unread bytes, the sessions wait for the client … */
	UNREAD_MAX = 4 << 20,
	/* … and with so many the client is given up. */
	OUTPUT_MAX = 256 << 20,
	READ_BYTES = 64 << 10,
	/* How long sessions may take to end by themselves. Clients kill after 2 s. */
	END_MS = 1500,
	LISTED = 50, /* sessions on one page of session/list */
	LISTED_MAX = 10000,
	DATE_MAX = 32,
};

/* Codes of errors besides those of JSON-RPC (mcp/message.h). */
enum {
	CODE_KEYLESS = -32000, /* the protocol's "authentication required" */
	CODE_CANCELLED = -32800,
};

/*
 * The ways to "log in". A client without a terminal has one: set a key or start a server,
 * and ask again.
 */
static const char environment_method[] = "environment";
static const char terminal_method[] = "login";

enum request_kind {
	REQUEST_NEW = 1,
	REQUEST_LOAD,
	REQUEST_RESUME,
	REQUEST_PROMPT,
	REQUEST_SET_MODE,
	REQUEST_SET_OPTION,
	REQUEST_CLOSE, /* answered when the process has ended */
};

/* A request of the client that its session works on, or will. */
struct waiting {
	struct waiting *next;
	enum request_kind kind;
	struct value *id;
	bool cancelled;
};

enum life {
	LIFE_OPENS, /* its process is being set up, and its id is not known unless it is resumed */
	LIFE_OPEN,
	LIFE_ENDS, /* it was asked to end */
	LIFE_OVER, /* its process has ended; it is freed between two turns of the loop */
};

struct acp_session {
	struct acp_session *next;
	struct acp *acp;
	enum life life;
	char id[JOURNAL_ID + 1];
	char *workspace;
	struct acp_process *process;
	struct acp_update *update;
	struct waiting *waiting; /* in their order: the first one is worked on */
	bool keyless;            /* its process said that there is no model to ask */
	struct value *state;     /* the last "idle" of its process; or NULL */
	/* of the turn under way */
	struct value *reason; /* why it ended; or NULL */
	char *finish;         /* of the last answer of the model; or NULL */
	struct buf notice;    /* the last sentence of the program itself */
};

enum question_kind {
	QUESTION_PERMISSION = 1,
	QUESTION_PLAN,
	QUESTION_BUFFER,
	QUESTION_ELICITATION, /* of a tool (elicitation.h) */
};

/* A request of ours that the client has not answered. */
struct question {
	struct question *next;
	struct acp_session *session;
	enum question_kind kind;
	int64_t id;
	/* of a permission or plan: the call, the number and (or NULL) the hash of the question */
	char *call, *hash;
	int64_t number;                      /* or that of the buffer */
	struct acp_elicitation *elicitation; /* of that kind; else NULL */
};

struct acp {
	struct acp_options options;
	struct outbox out;
	struct buf line;
	struct watch reading, stopping, parent;
	struct acp_session *sessions;
	struct question *questions;
	size_t question_count;
	int64_t last_id;
	int64_t until_ms; /* when the end is not waited for any longer; CLOCK_NEVER: it serves */
	struct journal *journal;
	bool initialized;
	bool reads_buffers, notices, compactions, terminal_login; /* what the client can do */
	unsigned elicits; /* of enum acp_elicits */
};

/* Messages to the client. */

static void send(struct acp *acp, struct value *take_message)
{
	struct buf text;

	buf_init(&text, OUTPUT_MAX);
	value_set_text(take_message, "jsonrpc", "2.0");
	if (value_print(take_message, 0, &text))
		outbox_take_line(&acp->out, &text);
	buf_fini(&text);
	value_free(take_message);
}

/* ID NULL: the message that is answered has none. */
static void answer(struct acp *acp, const struct value *id, struct value *take_result)
{
	struct value *message = value_new_object();

	value_set(message, "id", id != NULL ? value_copy(id) : value_new_null());
	value_set(message, "result", take_result);
	send(acp, message);
}

static void refuse(struct acp *acp, const struct value *id, int code, const char *format,
		   ...) __attribute__((format(printf, 4, 5)));
static void refuse(struct acp *acp, const struct value *id, int code, const char *format, ...)
{
	struct value *message = value_new_object(), *error = value_new_object();
	struct buf text;
	va_list arguments;

	buf_init(&text, ERR_TEXT_MAX + PATH_MAX);
	va_start(arguments, format);
	(void)buf_addv(&text, format, arguments);
	va_end(arguments);
	value_set(message, "id", id != NULL ? value_copy(id) : value_new_null());
	value_set_integer(error, "code", code);
	value_set_str(error, "message", buf_str(&text));
	value_set(message, "error", error);
	buf_fini(&text);
	send(acp, message);
}

static void notify(struct acp *acp, const char *method, struct value *take_params)
{
	struct value *message = value_new_object();

	value_set_text(message, "method", method);
	value_set(message, "params", take_params);
	send(acp, message);
}

/* For the updates of a session. */
static void send_update(void *context, struct value *take_update)
{
	struct acp_session *session = context;
	struct value *params = value_new_object();

	value_set_text(params, "sessionId", session->id);
	value_set(params, "update", take_update);
	notify(session->acp, "session/update", params);
}

/* Questions to the client. */

static void question_free(struct acp *acp, struct question *question)
{
	struct question **at = &acp->questions;

	while (*at != question)
		at = &(*at)->next;
	*at = question->next;
	acp->question_count--;
	free(question->call);
	free(question->hash);
	acp_elicitation_free(question->elicitation);
	free(question);
}

/* Ask the client METHOD. NULL: too many questions are open. */
static struct question *ask(struct acp_session *session, enum question_kind kind,
			    const char *method, struct value *take_params)
{
	struct acp *acp = session->acp;
	struct value *message;
	struct question *question;

	if (acp->question_count == QUESTIONS_MAX) {
		value_free(take_params);
		return NULL;
	}
	message = value_new_object();
	question = memory_alloc(sizeof(*question));
	question->session = session;
	question->kind = kind;
	question->id = ++acp->last_id;
	question->next = acp->questions;
	acp->questions = question;
	acp->question_count++;
	value_set_text(take_params, "sessionId", session->id);
	value_set_integer(message, "id", question->id);
	value_set_text(message, "method", method);
	value_set(message, "params", take_params);
	send(acp, message);
	return question;
}

/* The client need not answer QUESTION any more: say so, and forget it. */
static void withdraw(struct acp *acp, struct question *question)
{
	struct value *params = value_new_object();

	value_set_integer(params, "requestId", question->id);
	notify(acp, "$/cancel_request", params);
	question_free(acp, question);
}

/*
 * Nobody waits for the answers to the questions of SESSION any more. A client that cancels a
 * prompt answers its permissions by itself; forms and addresses are withdrawn.
 */
static void drop_questions(struct acp_session *session)
{
	struct question *next;

	for (struct question *at = session->acp->questions; at != NULL; at = next) {
		next = at->next;
		if (at->session != session)
			continue;
		if (at->kind == QUESTION_ELICITATION)
			withdraw(session->acp, at);
		else
			question_free(session->acp, at);
	}
}

static void answer_approval(struct acp_session *session, const char *call, int64_t number,
			    enum approval_answer word, const char *hash)
{
	auto_value struct value *line = approval_reply(word, APPROVAL_BY_PERSON, hash);

	value_set_text(line, "call", call);
	value_set_integer(line, "id", number);
	acp_process_say(session->process, line);
}

/* MODE: the one in which the plan is carried out, or that of planning. */
static void answer_plan(struct acp_session *session, const char *call, int64_t number,
			const char *mode)
{
	auto_value struct value *line = value_new_object();
	struct value *content = value_new_object();

	value_set_text(content, "mode", mode);
	value_set_text(line, "call", call);
	value_set_integer(line, "id", number);
	value_set_text(line, "action", "accept");
	value_set(line, "content", content);
	acp_process_say(session->process, line);
}

static void refuse_question(struct acp_session *session, enum question_kind kind,
			    const char *call, int64_t number, const char *hash)
{
	if (kind == QUESTION_PLAN)
		answer_plan(session, call, number, policy_modes[MODE_PLAN].name);
	else
		answer_approval(session, call, number, APPROVAL_NO, hash);
}

static void ask_permission(struct acp_session *session, enum question_kind kind,
			   const struct value *event)
{
	const char *call = value_text(value_member(event, "call"));
	const char *hash = value_text(value_member(event, "hash"));
	const int64_t number = value_integer(value_member(event, "id"));
	struct question *question;

	if (call == NULL || session->life != LIFE_OPEN)
		return;
	question = ask(session, kind, "session/request_permission",
		       kind == QUESTION_PLAN
			       ? acp_update_plan(session->update, event)
			       : acp_update_permission(session->update, event));
	if (question == NULL) {
		refuse_question(session, kind, call, number, hash);
		return;
	}
	question->call = memory_copy(call);
	question->hash = memory_copy(hash);
	question->number = number;
}

/* A question was answered, by somebody else or by the end of its time. */
static void end_permission(struct acp_session *session, const struct value *event)
{
	const char *call = value_text(value_member(event, "call"));
	struct acp *acp = session->acp;

	for (struct question *at = acp->questions; at != NULL && call != NULL;
	     at = at->next) {
		if (at->session != session || at->kind != QUESTION_PERMISSION ||
		    at->number != value_integer(value_member(event, "id")) ||
		    strcmp(at->call, call) != 0)
			continue;
		withdraw(acp, at);
		return;
	}
}

/* Ask the next question of TAKE_ELICITATION, or answer it when all were asked. */
static void go_on_eliciting(struct acp_session *session,
			    struct acp_elicitation *take_elicitation)
{
	const char *method = NULL;
	struct value *params = acp_elicitation_next(take_elicitation, &method);
	struct question *question = NULL;

	if (params != NULL && session->life == LIFE_OPEN)
		question = ask(session, QUESTION_ELICITATION, method, params);
	else
		value_free(params);
	if (question != NULL) {
		question->elicitation = take_elicitation;
		return;
	}
	auto_value struct value *line = acp_elicitation_answer(take_elicitation);

	acp_process_say(session->process, line);
	acp_elicitation_free(take_elicitation);
}

static void take_elicited(struct question *question, const struct value *result)
{
	struct acp_session *session = question->session;
	struct acp_elicitation *elicitation = question->elicitation;
	struct err why = {0};

	question->elicitation = NULL;
	if (!acp_elicitation_take(elicitation, result, &why))
		acp_update_tell(session->update, why.text);
	go_on_eliciting(session, elicitation);
}

/* The call of EVENT has ended: the client need not answer what the call has asked. */
static void end_eliciting(struct acp_session *session, const struct value *event)
{
	const char *call = value_text(value_member(event, "call"));
	struct question *next;

	for (struct question *at = session->acp->questions; at != NULL && call != NULL;
	     at = next) {
		next = at->next;
		if (at->session == session && at->elicitation != NULL &&
		    strcmp(acp_elicitation_call(at->elicitation), call) == 0)
			withdraw(session->acp, at);
	}
}

static void answer_buffer(struct acp_session *session, int64_t number,
			  const struct value *text)
{
	auto_value struct value *line = value_new_object();

	value_set_integer(line, "buffer", number);
	if (value_text(text) != NULL)
		value_set(line, "text", value_copy(text));
	acp_process_say(session->process, line);
}

static void ask_buffer(struct acp_session *session, const struct value *wish)
{
	const int64_t number = value_integer(value_member(wish, "number"));
	const char *path = value_text(value_member(wish, "path"));
	struct question *question = NULL;

	if (path != NULL && session->acp->reads_buffers && session->life == LIFE_OPEN) {
		struct value *params = value_new_object();

		value_set_text(params, "path", path);
		question = ask(session, QUESTION_BUFFER, "fs/read_text_file", params);
	}
	if (question == NULL)
		answer_buffer(session, number, NULL);
	else
		question->number = number;
}

/* The person has chosen one of the options of QUESTION, or none. */
static void take_choice(const struct question *question, const struct value *result)
{
	const struct value *outcome = value_member(result, "outcome");
	const char *option = value_text(value_member(outcome, "optionId"));
	enum approval_answer word = APPROVAL_NO;
	enum policy_mode mode = MODE_PLAN;

	if (!str_is(value_str(value_member(outcome, "outcome")), "selected"))
		option = NULL;
	if (question->kind == QUESTION_PLAN) {
		if (!policy_mode_parse(option, &mode))
			mode = MODE_PLAN;
		answer_plan(question->session, question->call, question->number,
			    policy_modes[mode].name);
		return;
	}
	if (option != NULL && strcmp(option, "once") == 0)
		word = APPROVAL_ONCE;
	else if (option != NULL && strcmp(option, "session") == 0)
		word = APPROVAL_SESSION;
	answer_approval(question->session, question->call, question->number, word,
			question->hash);
}

/* The client has answered one of our requests. */
static void take_answer(struct acp *acp, const struct mcp_message *message)
{
	struct question *at = acp->questions;

	while (at != NULL && (value_kind(message->id) != VALUE_INTEGER ||
			      at->id != value_integer(message->id)))
		at = at->next;
	if (at == NULL)
		return; /* it came too late, or answers nothing */
	if (at->kind == QUESTION_BUFFER) {
		answer_buffer(at->session, at->number,
			      value_member(message->result, "content"));
	} else if (at->kind == QUESTION_ELICITATION) {
		take_elicited(at, message->result);
	} else {
		take_choice(at, message->result);
	}
	question_free(acp, at);
}

/* The state of a session, as a client sees it. */

static struct value *choice(const char *id, const char *name, const char *description)
{
	struct value *made = value_new_object();

	value_set_text(made, "value", id);
	value_set_text(made, "name", name);
	if (description != NULL)
		value_set_text(made, "description", description);
	return made;
}

static struct value *select_option(const char *id, const char *name, const char *category,
				   const char *current, struct value *take_options)
{
	struct value *made = value_new_object();

	value_set_text(made, "id", id);
	value_set_text(made, "name", name);
	value_set_text(made, "category", category);
	value_set_text(made, "type", "select");
	value_set_text(made, "currentValue", current);
	value_set(made, "options", take_options);
	return made;
}

/* NAMES as choices, with CURRENT, which they may lack. */
static struct value *choices_of(const struct value *names, const char *current)
{
	struct value *made = value_new_array();

	if (!value_has_text(names, current))
		value_append(made, choice(current, current, NULL));
	for (size_t i = 0; i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));

		if (name != NULL)
			value_append(made, choice(name, name, NULL));
	}
	return made;
}

static const char *state_text(const struct acp_session *session, const char *key)
{
	const char *text = value_text(value_member(session->state, key));

	return text != NULL ? text : "";
}

static struct value *options_of(const struct acp_session *session)
{
	struct value *made = value_new_array(), *modes = value_new_array();

	for (size_t i = 0; i < MODES; i++)
		value_append(modes, choice(policy_modes[i].name, policy_modes[i].title,
					   policy_modes[i].description));
	value_append(made, select_option("mode", "Mode", "mode",
					 state_text(session, "mode"), modes));
	value_append(made,
		     select_option("model", "Model", "model", state_text(session, "model"),
				   choices_of(value_member(session->state, "models"),
					      state_text(session, "model"))));
	if (value_member(session->state, "thought_level") != NULL)
		value_append(made,
			     select_option("thought_level", "Thinking", "thought_level",
					   state_text(session, "thought_level"),
					   value_copy(value_member(session->state,
								   "thought_levels"))));
	value_append(made, select_option("agent", "Agent", "_agent",
					 state_text(session, "agent"),
					 choices_of(value_member(session->state, "agents"),
						    state_text(session, "agent"))));
	return made;
}

static struct value *modes_of(const struct acp_session *session)
{
	struct value *made = value_new_object(), *modes = value_new_array();

	for (size_t i = 0; i < MODES; i++) {
		const struct policy_mode_row *mode = &policy_modes[i];
		struct value *row = value_new_object();

		value_set_text(row, "id", mode->name);
		value_set_text(row, "name", mode->title);
		value_set_text(row, "description", mode->description);
		value_append(modes, row);
	}
	value_set_text(made, "currentModeId", state_text(session, "mode"));
	value_set(made, "availableModes", modes);
	return made;
}

/* The program's own commands, and what the person can call (front/extend/invoke.h). */
static struct value *commands_now(const struct acp_session *session)
{
	const struct value *called = value_member(session->state, "commands");
	struct value *made = value_new_array();

	for (const struct acp_command *command = acp_commands; command->name != NULL;
	     command++) {
		struct value *row = value_new_object(), *input;

		value_set_text(row, "name", command->name);
		value_set_text(row, "description", command->description);
		if (command->hint != NULL) {
			input = value_new_object();
			value_set_text(input, "hint", command->hint);
			value_set(row, "input", input);
		}
		value_append(made, row);
	}
	for (size_t i = 0; i < value_count(called); i++)
		value_append(made, value_ref(value_item(called, i)));
	return made;
}

static void tell_state(struct acp_session *session, const char *kind, const char *key,
		       struct value *take_value)
{
	struct value *update = value_new_object();

	value_set_text(update, "sessionUpdate", kind);
	value_set(update, key, take_value);
	send_update(session, update);
}

/* Sessions. */

static struct acp_session *find_session(const struct acp *acp, const char *id)
{
	struct acp_session *session = acp->sessions;

	while (session != NULL &&
	       (id == NULL || session->life >= LIFE_ENDS || strcmp(session->id, id) != 0))
		session = session->next;
	return session;
}

/* The session that the params of MESSAGE name. NULL: MESSAGE was refused. */
static struct acp_session *session_of(struct acp *acp, const struct mcp_message *message)
{
	const char *id = value_text(value_member(message->params, "sessionId"));
	struct acp_session *session = find_session(acp, id);

	if (id == NULL)
		refuse(acp, message->id, MCP_CODE_PARAMS, "The params need a sessionId.");
	else if (session == NULL)
		refuse(acp, message->id, MCP_CODE_PARAMS,
		       "No session %.64s is open here; session/load and session/resume open "
		       "a stored one.",
		       id);
	return session;
}

static void waiting_free(struct waiting *waiting)
{
	value_free(waiting->id);
	free(waiting);
}

/* Put a request behind the others of SESSION. False: it was refused. */
static bool wait_for(struct acp_session *session, enum request_kind kind,
		     const struct value *id)
{
	struct waiting **at = &session->waiting;
	size_t count = 0;

	for (; *at != NULL; at = &(*at)->next) {
		count++;
		if (kind == REQUEST_PROMPT && (*at)->kind == kind) {
			refuse(session->acp, id, MCP_CODE_PARAMS,
			       "A prompt is under way in this session: wait for its end, or "
			       "cancel it.");
			return false;
		}
	}
	if (count == WAITING_MAX) {
		refuse(session->acp, id, MCP_CODE_INTERNAL,
		       "%d requests of this session wait already.", WAITING_MAX);
		return false;
	}
	*at = memory_alloc(sizeof(**at));
	(*at)->kind = kind;
	(*at)->id = value_copy(id);
	return true;
}

static bool is_prompted(const struct acp_session *session)
{
	return session->waiting != NULL && session->waiting->kind == REQUEST_PROMPT;
}

/* A process has begun, or its first request was done: look whether the next one is cancelled. */
static void begin_next(struct acp_session *session)
{
	if (is_prompted(session) && session->waiting->cancelled)
		acp_process_cancel(session->process);
}

static void forget_turn(struct acp_session *session)
{
	value_free(session->reason);
	session->reason = NULL;
	free(session->finish);
	session->finish = NULL;
	buf_clear(&session->notice);
}

/* The stop reason of the turn that ended; NULL: its model failed. */
static const char *stop_reason(const struct acp_session *session)
{
	static const char *const limits[] = {"iterations", "tokens",  "money",   "wall",
					     "shell",      "repeats", "timeouts"};
	const struct str reason = value_str(session->reason);

	if (session->waiting->cancelled || str_is(reason, "cancelled"))
		return "cancelled";
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (str_is(reason, limits[i]))
			return "max_turn_requests";
	}
	if (reason.size > 0 && !str_is(reason, "model_failed"))
		return "end_turn";
	if (session->finish != NULL && strcmp(session->finish, "refused") == 0)
		return "refusal";
	if (session->finish != NULL && strcmp(session->finish, "length") == 0)
		return "max_tokens";
	return NULL;
}

static void end_prompt(struct acp_session *session, const struct waiting *done,
		       const char *failed)
{
	const char *stop = stop_reason(session);
	struct value *result;

	drop_questions(session);
	acp_update_settle(session->update);
	if (stop != NULL) {
		result = value_new_object();
		value_set_text(result, "stopReason", stop);
		answer(session->acp, done->id, result);
	} else {
		refuse(session->acp, done->id, MCP_CODE_INTERNAL, "%s",
		       session->notice.size > 0 ? session->notice.data
		       : failed != NULL         ? failed
						: "The turn ended without a reason.");
	}
	forget_turn(session);
}

/* For journal_read: show an event of a session that is loaded. */
static bool show_kept(void *context, int64_t number, const char *kind, int64_t wall_ms,
		      struct str json)
{
	struct acp_session *session = context;
	auto_value struct value *event = NULL;

	(void)number;
	(void)kind;
	(void)wall_ms;
	if (value_parse(json, 0, &event, NULL))
		acp_update_event(session->update, event, true, clock_now_ms());
	return true;
}

static void end_opening(struct acp_session *session, const struct waiting *done)
{
	struct value *result = value_new_object();
	struct err err = {0};

	if (done->kind == REQUEST_LOAD) {
		if (!journal_read(session->acp->journal, session->id, NULL, show_kept,
				  session, &err))
			(void)fprintf(stderr, "glovebox: %s\n", err.text);
		acp_update_settle(session->update);
	}
	if (done->kind == REQUEST_NEW)
		value_set_text(result, "sessionId", session->id);
	value_set(result, "configOptions", options_of(session));
	value_set(result, "modes", modes_of(session));
	answer(session->acp, done->id, result);
	tell_state(session, "available_commands_update", "availableCommands",
		   commands_now(session));
}

static void end_setting(struct acp_session *session, const struct waiting *done,
			const char *failed)
{
	struct value *result;

	if (failed != NULL) {
		refuse(session->acp, done->id, MCP_CODE_PARAMS, "%s", failed);
		return;
	}
	result = value_new_object();
	if (done->kind == REQUEST_SET_OPTION)
		value_set(result, "configOptions", options_of(session));
	answer(session->acp, done->id, result);
	if (done->kind == REQUEST_SET_MODE)
		tell_state(session, "config_option_update", "configOptions",
			   options_of(session));
	else
		tell_state(session, "current_mode_update", "currentModeId",
			   value_new_text(state_text(session, "mode")));
}

/* The process of SESSION has done the first request, and is idle. */
static void take_idle(struct acp_session *session, const struct value *line)
{
	struct waiting *done = session->waiting;
	const char *failed = value_text(value_member(line, "failed"));
	const char *id = value_text(value_member(line, "session"));

	if (done == NULL || id == NULL || session->life == LIFE_OVER)
		return;
	value_free(session->state);
	session->state = value_copy(line);
	(void)snprintf(session->id, sizeof(session->id), "%s", id);
	acp_update_set_context(session->update,
			       (uint64_t)value_integer(value_member(line, "context")));
	if (session->life == LIFE_OPENS)
		session->life = LIFE_OPEN;
	switch (done->kind) {
	case REQUEST_NEW:
	case REQUEST_LOAD:
	case REQUEST_RESUME:
		end_opening(session, done);
		break;
	case REQUEST_PROMPT:
		end_prompt(session, done, failed);
		break;
	case REQUEST_SET_MODE:
	case REQUEST_SET_OPTION:
		end_setting(session, done, failed);
		break;
	case REQUEST_CLOSE:
		return;
	}
	session->waiting = done->next;
	waiting_free(done);
	begin_next(session);
}

/* The session has gone over to MODE by itself. */
static void change_mode(struct acp_session *session, const char *mode)
{
	if (session->state == NULL || mode == NULL)
		return;
	value_set_text(session->state, "mode", mode);
	tell_state(session, "current_mode_update", "currentModeId", value_new_text(mode));
	tell_state(session, "config_option_update", "configOptions", options_of(session));
}

static void note_event(struct acp_session *session, const struct value *event)
{
	const struct str name = value_str(value_member(event, "event"));

	if (str_is(name, event_kind_name(EVENT_TURN_ENDED))) {
		value_free(session->reason);
		session->reason = value_copy(value_member(event, "reason"));
	} else if (str_is(name, event_kind_name(EVENT_MESSAGE))) {
		free(session->finish);
		session->finish = memory_copy(value_text(value_member(event, "finish")));
	} else if (str_is(name, event_kind_name(EVENT_NOTICE))) {
		buf_clear(&session->notice);
		(void)buf_addstr(&session->notice, value_str(value_member(event, "text")));
	} else if (str_is(name, event_kind_name(EVENT_APPROVAL_WANTED)) &&
		   value_member(event, "decided") == NULL) {
		ask_permission(session, QUESTION_PERMISSION, event);
	} else if (str_is(name, event_kind_name(EVENT_QUESTION))) {
		if (acp_update_is_plan(event))
			ask_permission(session, QUESTION_PLAN, event);
		else if (session->life == LIFE_OPEN)
			go_on_eliciting(session,
					acp_elicitation_new(event, session->acp->elicits));
	} else if (str_is(name, event_kind_name(EVENT_TOOL_ENDED))) {
		end_eliciting(session, event);
	} else if (str_is(name, event_kind_name(EVENT_MODE_CHANGED))) {
		change_mode(session, value_text(value_member(event, "mode")));
	} else if (str_is(name, event_kind_name(EVENT_APPROVAL_GIVEN))) {
		end_permission(session, event);
	}
}

/* For the process: it has written LINE. */
static void process_line(void *context, const struct value *line)
{
	struct acp_session *session = context;
	const struct str word = value_str(value_member(line, "editor"));

	if (str_is(word, "idle")) {
		take_idle(session, line);
	} else if (str_is(word, "keyless")) {
		session->keyless = true;
	} else if (str_is(word, "buffer")) {
		ask_buffer(session, line);
	} else if (str_is(word, "says") && is_prompted(session)) {
		acp_update_say(session->update, value_str(value_member(line, "text")));
		value_free(session->reason);
		session->reason = value_new_text("stopped");
	} else if (is_prompted(session)) {
		acp_update_event(session->update, line, false, clock_now_ms());
		note_event(session, line);
	}
}

/* For the process: it has ended. */
static void process_ended(void *context)
{
	struct acp_session *session = context;
	struct acp *acp = session->acp;
	struct buf why;

	session->life = LIFE_OVER;
	drop_questions(session);
	acp_update_settle(session->update);
	buf_init(&why, ERR_TEXT_MAX);
	acp_process_why(session->process, &why);
	while (session->waiting != NULL) {
		struct waiting *at = session->waiting;
		struct value *result;

		session->waiting = at->next;
		if (at->kind == REQUEST_CLOSE) {
			answer(acp, at->id, value_new_object());
		} else if (at->kind == REQUEST_PROMPT && at->cancelled) {
			result = value_new_object();
			value_set_text(result, "stopReason", "cancelled");
			answer(acp, at->id, result);
		} else if (at->cancelled) {
			refuse(acp, at->id, CODE_CANCELLED, "The request was cancelled.");
		} else {
			refuse(acp, at->id,
			       session->keyless ? CODE_KEYLESS : MCP_CODE_INTERNAL, "%s",
			       why.data);
		}
		waiting_free(at);
	}
	buf_fini(&why);
}

static void session_free(struct acp_session *session)
{
	struct acp_session **at = &session->acp->sessions;

	while (*at != NULL && *at != session)
		at = &(*at)->next;
	if (*at != NULL)
		*at = session->next;
	drop_questions(session);
	while (session->waiting != NULL) {
		struct waiting *next = session->waiting->next;

		waiting_free(session->waiting);
		session->waiting = next;
	}
	acp_process_free(session->process);
	acp_update_free(session->update);
	value_free(session->state);
	forget_turn(session);
	buf_fini(&session->notice);
	free(session->workspace);
	free(session);
}

/* The methods that a client needs before it may open a session. */

static bool has_marker(const struct value *capabilities, const char *part, const char *name)
{
	const struct value *marker = value_member(value_member(capabilities, part), name);

	return value_kind(marker) == VALUE_OBJECT || value_is_true(marker);
}

static struct value *capabilities_now(void)
{
	static const char *const of_sessions[] = {"list", "resume", "close", "delete",
						  "additionalDirectories"};
	struct value *made = value_new_object(), *prompts = value_new_object();
	struct value *servers = value_new_object(), *sessions = value_new_object();
	struct value *logins = value_new_object();

	value_set_boolean(prompts, "image", true);
	value_set_boolean(prompts, "audio", false);
	value_set_boolean(prompts, "embeddedContext", true);
	value_set_boolean(servers, "http", true);
	value_set_boolean(servers, "sse", false);
	for (size_t i = 0; i < sizeof(of_sessions) / sizeof(of_sessions[0]); i++)
		value_set(sessions, of_sessions[i], value_new_object());
	value_set_boolean(made, "loadSession", true);
	value_set(made, "promptCapabilities", prompts);
	value_set(made, "mcpCapabilities", servers);
	value_set(made, "sessionCapabilities", sessions);
	value_set(logins, "logout", value_new_object());
	value_set(made, "auth", logins);
	return made;
}

/* A method with `terminal` may only be offered to a client that said so. */
static struct value *login_methods(const struct acp *acp)
{
	struct value *made = value_new_array(), *method = value_new_object();
	struct value *words = value_new_array();

	value_append(made, method);
	value_append(words, value_new_text("login"));
	if (acp->terminal_login) {
		value_set_text(method, "id", terminal_method);
		value_set_text(method, "type", "terminal");
		value_set_text(method, "name", "Set up a model");
		value_set_text(method, "description",
			       "Asks for a service, its key and a model, and keeps them.");
		value_set(method, "args", words);
		return made;
	}
	value_free(words);
	value_set_text(method, "id", environment_method);
	value_set_text(method, "name", "A model of the environment");
	value_set_text(
		method, "description",
		"Run glovebox login in a terminal, or set GLOVEBOX_MODEL, and the key of "
		"its service or GLOVEBOX_BASE_URL, where the editor starts glovebox acp, "
		"or name the model in the configuration; glovebox models lists what can "
		"be asked.");
	return made;
}

static void take_initialize(struct acp *acp, const struct mcp_message *message)
{
	const struct value *can = value_member(message->params, "clientCapabilities");
	struct value *result, *info;

	if (!value_is_number(value_member(message->params, "protocolVersion"))) {
		refuse(acp, message->id, MCP_CODE_PARAMS,
		       "The params need a protocolVersion, a number.");
		return;
	}
	acp->initialized = true;
	acp->reads_buffers =
		value_is_true(value_member(value_member(can, "fs"), "readTextFile"));
	acp->terminal_login =
		value_is_true(value_member(value_member(can, "auth"), "terminal"));
	acp->notices = has_marker(can, "session", "notices");
	acp->compactions = has_marker(can, "session", "compaction");
	acp->elicits = (has_marker(can, "elicitation", "form") ? ACP_ELICITS_FORMS : 0) |
		       (has_marker(can, "elicitation", "url") ? ACP_ELICITS_ADDRESSES : 0);
	result = value_new_object();
	info = value_new_object();
	value_set_text(info, "name", "glovebox");
	value_set_text(info, "title", "Glovebox");
	value_set_text(info, "version", acp->options.version);
	value_set_integer(result, "protocolVersion", PROTOCOL_VERSION);
	value_set(result, "agentInfo", info);
	value_set(result, "agentCapabilities", capabilities_now());
	value_set(result, "authMethods", login_methods(acp));
	answer(acp, message->id, result);
}

/* Each session looks for keys when it is opened: only say whether it would find one. */
static void take_authenticate(struct acp *acp, const struct mcp_message *message)
{
	const char *offered = acp->terminal_login ? terminal_method : environment_method;
	const struct str method = value_str(value_member(message->params, "methodId"));
	struct err err = {0};

	if (!str_is(method, offered))
		refuse(acp, message->id, MCP_CODE_PARAMS,
		       "There is no method \"%.64s\" here; there is \"%s\".",
		       method.data != NULL ? method.data : "", offered);
	else if (!acp->options.ready(acp->options.context, &err))
		refuse(acp, message->id, CODE_KEYLESS, "%s", err.text);
	else
		answer(acp, message->id, value_new_object());
}

static void take_logout(struct acp *acp, const struct mcp_message *message)
{
	struct err err = {0};

	if (acp->options.logout(acp->options.context, &err))
		answer(acp, message->id, value_new_object());
	else
		refuse(acp, message->id, MCP_CODE_INTERNAL, "%s", err.text);
}

/* Opening sessions. */

/* May a session work in the folder PATH? REAL becomes its real path. */
static bool check_folder(const char *path, char real[PATH_MAX], struct err *err)
{
	const char *home = getenv("HOME");
	char real_home[PATH_MAX];
	struct stat st;

	if (path == NULL || path[0] != '/')
		return err_set(err, EINVAL, "A folder is named by its absolute path.");
	if (realpath(path, real) == NULL || stat(real, &st) < 0)
		return err_set(err, errno, "%.500s: %s.", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "%.500s is no folder.", path);
	if (strcmp(real, "/") == 0 || (home != NULL && realpath(home, real_home) != NULL &&
				       strcmp(real, real_home) == 0))
		return err_set(err, EINVAL,
			       "%.500s holds everything of a person: name the folder of a "
			       "project.",
			       path);
	return true;
}

/* Put the real paths of LIST, more folders of a session, into REQUEST. */
static bool add_folders(const struct value *list, struct value *request, struct err *err)
{
	struct value *folders;
	char real[PATH_MAX];

	if (value_count(list) == 0)
		return true;
	folders = value_new_array();
	value_set(request, "directories", folders);
	for (size_t i = 0; i < value_count(list); i++) {
		if (!check_folder(value_text(value_item(list, i)), real, err))
			return err_while(err, "additionalDirectories");
		value_append(folders, value_new_text(real));
	}
	return true;
}

static bool open_journal(struct acp *acp, struct err *err)
{
	return acp->journal != NULL || journal_open_default(&acp->journal, err);
}

/* Put what is known of the stored session ID, which goes on in REAL, into REQUEST. */
static bool find_stored(struct acp *acp, const char *id, const char *real,
			struct value *request, struct err *err)
{
	struct journal_found found = {0};
	bool fine = false;

	if (id == NULL)
		return err_set(err, EINVAL, "The params need a sessionId.");
	if (strlen(id) != JOURNAL_ID || !open_journal(acp, err) ||
	    !journal_find(acp->journal, id, real, &found, err)) {
		(void)err_set(err, ENOENT, "There is no stored session %.64s.", id);
	} else if (strcmp(found.workspace, real) != 0) {
		(void)err_set(err, EINVAL, "The session %s works in %.500s, not in %.500s.",
			      id, found.workspace, real);
	} else {
		value_set_text(request, "resume", found.id);
		value_set_text(request, "agent", found.agent);
		/* A session that began without a model goes on with the one that there is now. */
		if (found.model != NULL && strcmp(found.model, "replay") != 0)
			value_set_text(request, "model", found.model);
		if (found.mode != NULL)
			value_set_text(request, "mode", found.mode);
		fine = true;
	}
	journal_found_fini(&found);
	return fine;
}

static struct acp_session *session_new(struct acp *acp, const struct value *request)
{
	struct acp_session *session = memory_alloc(sizeof(*session));
	const char *id = value_text(value_member(request, "resume"));

	session->acp = acp;
	session->workspace = memory_copy(value_text(value_member(request, "workspace")));
	(void)snprintf(session->id, sizeof(session->id), "%s", id != NULL ? id : "");
	buf_init(&session->notice, ERR_TEXT_MAX);
	session->next = acp->sessions;
	acp->sessions = session;
	return session;
}

/* Start the process of a session that REQUEST describes, for MESSAGE. */
static void start_session(struct acp *acp, const struct mcp_message *message,
			  enum request_kind kind, const struct value *request)
{
	struct acp_session *session = session_new(acp, request);
	const struct acp_process_options options = {
		.loop = acp->options.loop,
		.request = request,
		.line = process_line,
		.ended = process_ended,
		.context = session,
	};
	struct err err = {0};

	session->update = acp_update_new(&(struct acp_update_options){
		.workspace = session->workspace,
		.notices = acp->notices,
		.compactions = acp->compactions,
		.titled = kind == REQUEST_RESUME,
		.send = send_update,
		.context = session,
	});
	if (!acp_process_start(&options, &session->process, &err)) {
		refuse(acp, message->id, MCP_CODE_INTERNAL, "%s.", err.text);
		session_free(session);
		return;
	}
	(void)wait_for(session, kind, message->id);
}

static size_t count_sessions(const struct acp *acp)
{
	size_t count = 0;

	for (const struct acp_session *at = acp->sessions; at != NULL; at = at->next)
		count++;
	return count;
}

static void open_session(struct acp *acp, const struct mcp_message *message,
			 enum request_kind kind)
{
	const struct value *params = message->params;
	const char *id = value_text(value_member(params, "sessionId"));
	auto_value struct value *request = value_copy(acp->options.request);
	struct value *servers = NULL;
	char real[PATH_MAX];
	struct err err = {0};

	if (count_sessions(acp) == SESSIONS_MAX) {
		refuse(acp, message->id, MCP_CODE_INTERNAL,
		       "%d sessions are open: close one first.", SESSIONS_MAX);
		return;
	}
	if (!check_folder(value_text(value_member(params, "cwd")), real, &err) ||
	    !add_folders(value_member(params, "additionalDirectories"), request, &err) ||
	    (kind != REQUEST_NEW && !find_stored(acp, id, real, request, &err)) ||
	    !acp_prompt_servers(value_member(params, "mcpServers"), &servers, &err)) {
		refuse(acp, message->id, MCP_CODE_PARAMS, "%s", err.text);
		return;
	}
	if (servers != NULL)
		value_set(request, "servers", servers);
	if (kind != REQUEST_NEW && find_session(acp, id) != NULL) {
		refuse(acp, message->id, MCP_CODE_PARAMS,
		       "The session %s is open already.", id);
		return;
	}
	value_set_text(request, "workspace", real);
	value_set_boolean(request, "buffers", acp->reads_buffers);
	value_set_boolean(request, "forms", (acp->elicits & ACP_ELICITS_FORMS) != 0);
	value_set_boolean(request, "addresses", (acp->elicits & ACP_ELICITS_ADDRESSES) != 0);
	start_session(acp, message, kind, request);
}

static void take_new(struct acp *acp, const struct mcp_message *message)
{
	open_session(acp, message, REQUEST_NEW);
}

static void take_load(struct acp *acp, const struct mcp_message *message)
{
	open_session(acp, message, REQUEST_LOAD);
}

static void take_resume(struct acp *acp, const struct mcp_message *message)
{
	open_session(acp, message, REQUEST_RESUME);
}

/* session/list */

struct listing {
	struct value *list;
	const char *cwd;   /* only sessions of this folder; or NULL */
	const char *after; /* begin behind this session; NULL: it has come */
	char last[JOURNAL_ID + 1];
	bool more;
};

static void add_date(struct value *row, int64_t wall_ms)
{
	const time_t seconds = (time_t)(wall_ms / 1000);
	char date[DATE_MAX];
	struct tm parts;

	if (gmtime_r(&seconds, &parts) != NULL &&
	    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0)
		value_set_text(row, "updatedAt", date);
}

static bool list_one(void *context, const struct journal_session *found)
{
	struct listing *listing = context;
	struct value *row;

	if (found->parent.size > 0 ||
	    (listing->cwd != NULL && !str_is(found->workspace, listing->cwd)))
		return true;
	if (listing->after != NULL) {
		if (strcmp(found->id, listing->after) == 0)
			listing->after = NULL;
		return true;
	}
	if (value_count(listing->list) == LISTED) {
		listing->more = true;
		return false;
	}
	row = value_new_object();
	value_set_text(row, "sessionId", found->id);
	value_set_str(row, "cwd", found->workspace);
	if (found->title.size > 0 || found->prompt.size > 0)
		value_set_str(row, "title",
			      found->title.size > 0 ? found->title : found->prompt);
	add_date(row, found->last_wall_ms);
	value_append(listing->list, row);
	(void)snprintf(listing->last, sizeof(listing->last), "%s", found->id);
	return true;
}

static void take_list(struct acp *acp, const struct mcp_message *message)
{
	const char *cwd = value_text(value_member(message->params, "cwd"));
	struct listing listing = {
		.list = value_new_array(),
		.after = value_text(value_member(message->params, "cursor")),
	};
	char real[PATH_MAX];
	struct value *result;
	struct err err = {0};

	if (cwd != NULL)
		listing.cwd = realpath(cwd, real) != NULL ? real : cwd;
	if (!open_journal(acp, &err) ||
	    !journal_list(acp->journal, LISTED_MAX, list_one, &listing, &err)) {
		refuse(acp, message->id, MCP_CODE_INTERNAL, "%s", err.text);
		value_free(listing.list);
		return;
	}
	if (listing.after != NULL) {
		refuse(acp, message->id, MCP_CODE_PARAMS,
		       "There is no such cursor: begin again without one.");
		value_free(listing.list);
		return;
	}
	result = value_new_object();
	value_set(result, "sessions", listing.list);
	if (listing.more)
		value_set_text(result, "nextCursor", listing.last);
	answer(acp, message->id, result);
}

/* A stored session is forgotten. One that is open here is closed first. */
static void take_delete(struct acp *acp, const struct mcp_message *message)
{
	const char *id = value_text(value_member(message->params, "sessionId"));
	struct err err = {0};

	if (id == NULL)
		refuse(acp, message->id, MCP_CODE_PARAMS, "The params need a sessionId.");
	else if (find_session(acp, id) != NULL)
		refuse(acp, message->id, MCP_CODE_PARAMS,
		       "The session %.64s is open: close it first.", id);
	else if (open_journal(acp, &err) && journal_forget(acp->journal, id, &err))
		answer(acp, message->id, value_new_object());
	else
		refuse(acp, message->id, MCP_CODE_PARAMS, "%s.", err.text);
}

/* The methods of a session. */

static void take_prompt(struct acp *acp, const struct mcp_message *message)
{
	struct acp_session *session = session_of(acp, message);
	auto_value struct value *line = NULL, *pictures = value_new_array();
	auto_value struct value *links = value_new_array();
	struct buf text;
	struct err err = {0};

	if (session == NULL)
		return;
	buf_init(&text, ACP_PROMPT_MAX);
	if (!acp_prompt_read(value_member(message->params, "prompt"), &text, pictures,
			     links, &err)) {
		refuse(acp, message->id, MCP_CODE_PARAMS, "%s", err.text);
	} else if (wait_for(session, REQUEST_PROMPT, message->id)) {
		line = value_new_object();
		value_set_text(line, "do", "prompt");
		value_set_str(line, "text", buf_str(&text));
		if (value_count(pictures) > 0)
			value_set(line, "pictures", value_ref(pictures));
		if (value_count(links) > 0)
			value_set(line, "links", value_ref(links));
		acp_process_say(session->process, line);
	}
	buf_fini(&text);
}

static void set(struct acp *acp, const struct mcp_message *message,
		enum request_kind kind, const char *key, const char *to)
{
	struct acp_session *session = session_of(acp, message);
	auto_value struct value *line = NULL;

	if (session == NULL)
		return;
	if (to == NULL) {
		refuse(acp, message->id, MCP_CODE_PARAMS,
		       "The params need the new value, a text.");
		return;
	}
	if (!wait_for(session, kind, message->id))
		return;
	line = value_new_object();
	value_set_text(line, "do", "set");
	value_set_text(line, "key", key);
	value_set_text(line, "to", to);
	acp_process_say(session->process, line);
}

static void take_set_mode(struct acp *acp, const struct mcp_message *message)
{
	set(acp, message, REQUEST_SET_MODE, "mode",
	    value_text(value_member(message->params, "modeId")));
}

static void take_set_option(struct acp *acp, const struct mcp_message *message)
{
	const char *key = value_text(value_member(message->params, "configId"));

	if (key == NULL || !str_among("mode model thought_level agent", str_of(key)))
		refuse(acp, message->id, MCP_CODE_PARAMS,
		       "The options are mode, model, thought_level and agent, and not \"%.64s\".",
		       key != NULL ? key : "");
	else
		set(acp, message, REQUEST_SET_OPTION, key,
		    value_text(value_member(message->params, "value")));
}

static void cancel_prompt(struct acp_session *session)
{
	for (struct waiting *at = session->waiting; at != NULL; at = at->next) {
		if (at->kind != REQUEST_PROMPT || at->cancelled)
			continue;
		at->cancelled = true;
		drop_questions(session);
		if (at == session->waiting)
			acp_process_cancel(session->process);
	}
}

/* A notification: without a prompt under way nothing happens. */
static void take_cancel(struct acp *acp, const struct mcp_message *message)
{
	struct acp_session *session =
		find_session(acp, value_text(value_member(message->params, "sessionId")));

	if (session != NULL)
		cancel_prompt(session);
}

/* A request is not wanted any more. An opening ends its session; a setting is done. */
static void take_cancel_request(struct acp *acp, const struct mcp_message *message)
{
	const struct value *id = value_member(message->params, "requestId");

	for (struct acp_session *session = acp->sessions; session != NULL;
	     session = session->next) {
		for (struct waiting *at = session->waiting; at != NULL; at = at->next) {
			if (!value_equal(at->id, id))
				continue;
			if (at->kind == REQUEST_PROMPT) {
				cancel_prompt(session);
			} else if (session->life == LIFE_OPENS) {
				at->cancelled = true;
				session->life = LIFE_ENDS;
				acp_process_ask_to_end(session->process);
			}
		}
	}
}

static void take_close(struct acp *acp, const struct mcp_message *message)
{
	struct acp_session *session = session_of(acp, message);

	if (session == NULL)
		return;
	cancel_prompt(session);
	if (!wait_for(session, REQUEST_CLOSE, message->id))
		return;
	session->life = LIFE_ENDS;
	acp_process_ask_to_end(session->process);
}

/* The methods of the protocol that are served. */
static const struct method {
	const char *name;
	enum mcp_kind kind;
	void (*take)(struct acp *acp, const struct mcp_message *message);
} methods[] = {
	{"initialize", MCP_REQUEST, take_initialize},
	{"authenticate", MCP_REQUEST, take_authenticate},
	{"logout", MCP_REQUEST, take_logout},
	{"session/new", MCP_REQUEST, take_new},
	{"session/load", MCP_REQUEST, take_load},
	{"session/resume", MCP_REQUEST, take_resume},
	{"session/list", MCP_REQUEST, take_list},
	{"session/close", MCP_REQUEST, take_close},
	{"session/delete", MCP_REQUEST, take_delete},
	{"session/prompt", MCP_REQUEST, take_prompt},
	{"session/set_mode", MCP_REQUEST, take_set_mode},
	{"session/set_config_option", MCP_REQUEST, take_set_option},
	{"session/cancel", MCP_NOTIFICATION, take_cancel},
	{"$/cancel_request", MCP_NOTIFICATION, take_cancel_request},
};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

static void take_message(struct acp *acp, const struct mcp_message *message)
{
	size_t at = 0;

	if (message->kind == MCP_RESPONSE) {
		take_answer(acp, message);
		return;
	}
	while (at < METHODS && strcmp(methods[at].name, message->method) != 0)
		at++;
	if (at < METHODS && methods[at].kind == message->kind) {
		if (at == 0 || acp->initialized)
			methods[at].take(acp, message);
		else if (message->kind == MCP_REQUEST)
			refuse(acp, message->id, MCP_CODE_INVALID,
			       "The first request of a client is initialize.");
	} else if (message->kind == MCP_REQUEST) {
		refuse(acp, message->id, MCP_CODE_METHOD,
		       "There is no method \"%.100s\".", message->method);
	}
}

/* Reading, and the end. */

static void take_line(struct acp *acp, struct str line)
{
	struct mcp_message message;
	struct err err = {0};

	if (str_trim(line).size == 0)
		return;
	if (mcp_message_read(line, &message, &err))
		take_message(acp, &message);
	else if (message.kind != MCP_RESPONSE)
		refuse(acp, message.id, err.code, "%s", err.text);
	mcp_message_fini(&message);
}

/* No message will be taken any more: all sessions end. */
static void begin_end(struct acp *acp)
{
	if (acp->until_ms != CLOCK_NEVER)
		return;
	acp->until_ms = clock_now_ms() + END_MS;
	loop_remove(&acp->reading);
	for (struct acp_session *at = acp->sessions; at != NULL; at = at->next) {
		at->life = at->life == LIFE_OVER ? LIFE_OVER : LIFE_ENDS;
		acp_process_pause(at->process, false);
		acp_process_ask_to_end(at->process);
	}
}

static void input_ready(struct watch *watch, short events)
{
	struct acp *acp = watch->context;
	char bytes[READ_BYTES];
	const ssize_t got = read(watch->fd, bytes, sizeof(bytes));
	struct str rest = {bytes, got > 0 ? (size_t)got : 0};

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	while (buf_take_line(&acp->line, &rest)) {
		if (acp->line.overflowed)
			refuse(acp, NULL, MCP_CODE_PARSE, "A message may have %d bytes.",
			       MCP_MESSAGE_MAX);
		else
			take_line(acp, buf_str(&acp->line));
		buf_clear(&acp->line);
	}
	if (got <= 0)
		begin_end(acp);
}

static void stop_ready(struct watch *watch, short events)
{
	(void)events;
	loop_remove(watch);
	begin_end(watch->context);
}

static void begin(struct acp *acp)
{
	struct loop *loop = acp->options.loop;

	acp->until_ms = CLOCK_NEVER;
	buf_init(&acp->line, MCP_MESSAGE_MAX);
	outbox_open(&acp->out, loop, acp->options.output, OUTPUT_MAX);
	acp->reading = (struct watch){.fd = acp->options.input,
				      .events = POLLIN,
				      .ready = input_ready,
				      .context = acp};
	acp->stopping = (struct watch){.fd = acp->options.stop_fd,
				       .events = POLLIN,
				       .ready = stop_ready,
				       .context = acp};
	/* Other processes may keep our input open when our parent dies. */
	acp->parent = (struct watch){.fd = -1,
				     .events = POLLIN,
				     .ready = stop_ready,
				     .context = acp};
	loop_add(loop, &acp->reading);
	if (acp->options.stop_fd >= 0)
		loop_add(loop, &acp->stopping);
	if (!role_parent(&acp->parent.fd))
		begin_end(acp);
	if (acp->parent.fd >= 0)
		loop_add(loop, &acp->parent);
}

static void end(struct acp *acp)
{
	for (struct acp_session *at = acp->sessions, *next; at != NULL; at = next) {
		next = at->next;
		session_free(at);
	}
	outbox_write(&acp->out);
	loop_remove(&acp->reading);
	loop_remove(&acp->stopping);
	loop_remove(&acp->parent);
	fd_close(&acp->parent.fd);
	journal_close(acp->journal);
	outbox_close(&acp->out);
	buf_fini(&acp->line);
}

/* Free what has ended, send what is due, and let sessions wait for a slow client. */
static int64_t settle(struct acp *acp)
{
	const bool is_read = outbox_size(&acp->out) < UNREAD_MAX;
	int64_t due_ms = acp->until_ms;
	struct acp_session *next;

	for (struct acp_session *at = acp->sessions; at != NULL; at = next) {
		next = at->next;
		if (at->life == LIFE_OVER) {
			session_free(at);
			continue;
		}
		if (acp->until_ms == CLOCK_NEVER)
			acp_process_pause(at->process, !is_read);
		if (clock_now_ms() >= acp_update_due(at->update))
			acp_update_flush(at->update, clock_now_ms());
		if (acp_update_due(at->update) < due_ms)
			due_ms = acp_update_due(at->update);
	}
	if (acp->until_ms == CLOCK_NEVER) {
		if (is_read)
			loop_add(acp->options.loop, &acp->reading);
		else
			loop_remove(&acp->reading);
	}
	outbox_write(&acp->out);
	if (acp->out.gone != 0)
		begin_end(acp);
	return due_ms;
}

static bool is_over(const struct acp *acp)
{
	return acp->until_ms != CLOCK_NEVER &&
	       (clock_now_ms() >= acp->until_ms || acp->sessions == NULL);
}

bool acp_run(const struct acp_options *options, struct err *err)
{
	struct acp acp = {.options = *options};
	int64_t due_ms = CLOCK_NEVER;
	int gone;

	begin(&acp);
	while (!is_over(&acp)) {
		loop_turn(options->loop, due_ms);
		due_ms = settle(&acp);
	}
	gone = acp.out.gone;
	end(&acp);
	if (gone == ENOBUFS)
		return err_set(err, gone,
			       "standard output: the client reads nothing, and %d MiB wait for it",
			       OUTPUT_MAX >> 20);
	return gone == 0 || gone == EPIPE ||
	       err_set(err, gone, "standard output: %s", strerror(gone));
}
