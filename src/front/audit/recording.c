/* recording: makes records and spans from events. */

#include "front/audit/recording.h"

#include "audit/ledger.h"
#include "audit/span.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "front/audit/exporter.h"
#include "front/setup.h"
#include "process/usage.h"
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDPOINT "http://127.0.0.1:4318"

enum {
	HEAD_S = 60,
	CELL_DIGITS = 12, /* of a cell that has no name of its own */
	/* calls of a session at the same time that have spans; the others have none */
	CALLS_MAX = 4096,
	DENIALS_LISTED = 20, /* of one call, in its last record */
};

/* The sessions of which lines and spans tell. */
struct about {
	const char *front;  /* the verb that serves them; NULL: "glovebox" */
	const char *token;  /* the name of the service's token; NULL: there is none */
	const char *cell;   /* its name; NULL: one is made */
	const char *client; /* the address for which it is made; NULL: not known */
	const char *folder; /* the workspace */
	const char *agent;
	const struct value *purpose; /* further members of the first record; or NULL */
};

/*
 * When a span begins. Its end is told by the time that has passed since then: a clock that is set
 * meanwhile would make it end before its begin.
 */
struct moment {
	int64_t wall_ns, steady_us;
};

/* A call that has a span and goes on. */
struct open_call {
	char *id;
	struct span_place place, server; /* server: of the request by MCP; or empty */
	char parent[SPAN_ID + 1];
	struct moment began;
	char *arguments; /* as JSON, when content is wanted; or NULL */
	/* of the request by MCP, as attributes; or NULL */
	struct value *origin;
	struct open_call *next;
};

/*
 * A call whose begin could not be recorded, or of a tool that does not exist. Its end, which follows
 * at once, frees it.
 */
struct odd_call {
	char *id, *tool; /* tool: the name that was asked for; NULL: not recorded */
	struct odd_call *next;
};

/* A session and its receiver. */
struct tap {
	struct recording *recording;
	struct event_sink next;
	char *front, *token, *cell;
	enum { TAP_OPEN, TAP_OVER } state;
	struct odd_call *odd;
	struct open_call *calls;
	size_t call_count;
	struct tap *after;
};

/* An agent: its turn, and the request to its model. */
struct turn {
	struct recording *recording;
	struct event_sink next;
	struct span_place place; /* empty: no turn is under way */
	struct moment began, asked;
	char *agent, *model, *session;
	struct turn *after;
};

struct recording {
	struct ledger *ledger;     /* NULL: no audit */
	struct exporter *exporter; /* NULL: no spans */
	char *folder;              /* of the audit, its real path */
	bool shows_arguments, shows_content;
	struct tap *taps;
	struct turn *turns;
	/* the turn in which calls are made; they have no other parent */
	struct span_place turn;
};

/* The audit. */

/* The words that name the session of TAP. */
static struct chain_record record_of(const struct tap *tap, enum chain_event event)
{
	struct chain_record record = chain_record_of(event);

	record.front = tap->front;
	record.token = tap->token;
	record.cell = tap->cell;
	return record;
}

static bool note_begin(struct tap *tap, const struct event *event, struct err *err)
{
	struct chain_record record = record_of(tap, CHAIN_BEGIN);
	const struct value *asked = value_member(event->data, "tool_asked");

	record.call = event->call;
	record.tool = event->tool != NULL ? event->tool : value_text(asked);
	record.arguments = value_member(event->data, "arguments");
	if (record.arguments == NULL)
		record.arguments = value_member(event->data, "arguments_text");
	record.shows_arguments = tap->recording->shows_arguments;
	record.verdict = event->verdict;
	if (event->result != NULL)
		record.rule = value_text(value_member(event->result->details, "rule"));
	const bool recorded = ledger_add(tap->recording->ledger, &record, true, err);

	if (recorded && (event->tool != NULL || record.tool == NULL))
		return true;
	struct odd_call *odd = memory_alloc(sizeof(*odd));

	odd->id = memory_copy(event->call);
	odd->tool = recorded ? memory_copy(record.tool) : NULL;
	odd->next = tap->odd;
	tap->odd = odd;
	return recorded;
}

/* Take CALL, which has ended, from the odd ones of TAP; NULL: it is none. */
static struct odd_call *take_odd(struct tap *tap, const char *call)
{
	struct odd_call **at = &tap->odd, *found;

	while (*at != NULL && strcmp((*at)->id, call) != 0)
		at = &(*at)->next;
	found = *at;
	if (found != NULL)
		*at = found->next;
	return found;
}

static void free_odd(struct odd_call *odd)
{
	if (odd == NULL)
		return;
	free(odd->id);
	free(odd->tool);
	free(odd);
}

/* The files and hosts that were refused to the call, as far as they are listed. */
static struct value *denials_of(const struct tool_result *result)
{
	const struct value *all = value_member(result->details, "denials");
	struct value *list = value_new_array();

	for (size_t i = 0; i < value_count(all) && i < DENIALS_LISTED; i++) {
		static const char *const names[] = {"kind", "target", "rule"};
		const struct value *denial = value_item(all, i);
		struct value *row = value_new_object();

		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			const struct value *word = value_member(denial, names[k]);

			if (word != NULL)
				value_set_str(row, names[k],
					      str_part(value_str(word), 0, CHAIN_WORD_MAX));
		}
		value_append(list, row);
	}
	return list;
}

/* TOOL: the name that was asked for. */
static void note_end(struct tap *tap, const struct event *event, const char *tool)
{
	struct chain_record record = record_of(tap, CHAIN_END);
	const struct tool_result *result = event->result;
	auto_value struct value *accounts = NULL, *more = value_new_object();
	struct value *denials = denials_of(result);

	record.call = event->call;
	record.tool = tool;
	record.verdict = result->status == RESULT_DENIED ? "deny" : NULL;
	record.rule = value_text(value_member(result->details, "rule"));
	record.status = result_status_name(result->status);
	record.exit = result->exit_code;
	record.signal = result->signal;
	record.seconds = result->seconds;
	if (result->accounts.cpu != ACCOUNTS_NONE)
		accounts = accounts_value(&result->accounts);
	record.accounts = accounts;
	if (value_count(denials) > 0)
		value_set(more, "denials", denials);
	else
		value_free(denials);
	record.more = more;
	(void)ledger_add(tap->recording->ledger, &record, false, NULL);
}

static bool note_ask(struct tap *tap, const struct event *event, struct err *err)
{
	struct chain_record record = record_of(tap, CHAIN_ASK);
	auto_value struct value *more = value_new_object();

	record.call = event->call;
	record.tool = event->tool;
	record.rule = value_text(value_member(event->data, "rule"));
	value_set_integer(more, "question", value_integer(value_member(event->data, "id")));
	value_set_str(more, "effect", value_str(value_member(event->data, "effect")));
	value_set_str(more, "subject",
		      str_part(value_str(value_member(event->data, "subject")), 0,
			       CHAIN_WORD_MAX));
	record.more = more;
	return ledger_add(tap->recording->ledger, &record, true, err);
}

static bool note_grant(struct tap *tap, const struct event *event, struct err *err)
{
	struct chain_record record = record_of(tap, CHAIN_GRANT);
	auto_value struct value *more = value_new_object();
	const struct str answer = value_str(value_member(event->data, "answer"));

	record.call = event->call;
	record.tool = event->tool;
	value_set_integer(more, "question", value_integer(value_member(event->data, "id")));
	value_set_str(more, "answer", answer);
	value_set_str(more, "by", value_str(value_member(event->data, "by")));
	record.more = more;
	return ledger_add(tap->recording->ledger, &record, !str_is(answer, "no"), err);
}

static bool note_event(struct tap *tap, const struct event *event, struct err *err)
{
	struct odd_call *odd;

	if (tap->recording->ledger == NULL)
		return true;
	switch (event->kind) {
	case EVENT_TOOL_BEGAN:
		return note_begin(tap, event, err);
	case EVENT_TOOL_ENDED:
		odd = take_odd(tap, event->call);
		if (odd == NULL || odd->tool != NULL)
			note_end(tap, event, odd != NULL ? odd->tool : event->tool);
		free_odd(odd);
		return true;
	case EVENT_APPROVAL_WANTED:
		return note_ask(tap, event, err);
	case EVENT_APPROVAL_GIVEN:
		return note_grant(tap, event, err);
	default:
		return true;
	}
}

/* Spans of calls. */

static void send_span(const struct recording *recording, const struct span *span)
{
	struct buf text;

	buf_init(&text, SPAN_JSON_MAX);
	/* One that is too long is dropped, and counted. */
	exporter_add(recording->exporter,
		     span_print(span, &text) ? buf_str(&text) : (struct str){0});
	buf_fini(&text);
}

static char *print_content(const struct value *value)
{
	struct buf text;

	buf_init(&text, SPAN_TEXT_MAX);
	if (!value_print(value, 0, &text)) {
		buf_clear(&text);
		(void)buf_adds(&text, "(too long)");
	}
	return buf_take(&text);
}

static void free_call(struct open_call *call)
{
	free(call->id);
	free(call->arguments);
	value_free(call->origin);
	free(call);
}

static struct moment moment_now(void)
{
	return (struct moment){clock_wall_ns(), clock_now_us()};
}

/* Now, for a span that BEGAN then. */
static int64_t end_of(const struct moment *began)
{
	return began->wall_ns + (clock_now_us() - began->steady_us) * 1000;
}

static void span_begin(struct tap *tap, const struct event *event)
{
	const struct recording *recording = tap->recording;
	const char *traceparent = value_text(value_member(event->trace, "traceparent"));
	struct span_place parent = recording->turn;
	struct open_call *call;
	bool sampled;

	/* The client does not want this trace recorded. */
	if ((!span_place_read(traceparent, &parent, &sampled) && !sampled) ||
	    tap->call_count == CALLS_MAX)
		return;
	call = memory_alloc(sizeof(*call));
	call->id = memory_copy(event->call);
	call->began = moment_now();
	if (strcmp(tap->front, "mcp") == 0) {
		call->server = span_place_new(&parent);
		call->place = span_place_new(&call->server);
		if (event->origin != NULL)
			call->origin = value_copy(event->origin);
	} else {
		call->place = span_place_new(&parent);
	}
	memcpy(call->parent, parent.id, sizeof(call->parent));
	if (recording->shows_content && value_member(event->data, "arguments") != NULL)
		call->arguments = print_content(value_member(event->data, "arguments"));
	call->next = tap->calls;
	tap->calls = call;
	tap->call_count++;
}

static void add_accounts(const struct accounts *accounts, struct value *attributes)
{
	if (accounts->cpu == ACCOUNTS_NONE)
		return;
	value_set_real(attributes, "glovebox.cpu_s", accounts->cpu_s);
	value_set_integer(attributes, "glovebox.memory_peak",
			  (int64_t)accounts->memory_peak);
	value_set_integer(attributes, "glovebox.written", (int64_t)accounts->written);
	value_set_integer(attributes, "glovebox.read", (int64_t)accounts->read);
	value_set_integer(attributes, "glovebox.net_in", (int64_t)accounts->net_in);
	value_set_integer(attributes, "glovebox.net_out", (int64_t)accounts->net_out);
}

/* The attributes of a call: those of the conventions for generative AI, and ours. */
static struct value *attributes_of(const struct tap *tap, const struct open_call *call,
				   const struct event *event)
{
	const struct tool_result *result = event->result;
	struct value *attributes = value_new_object();

	value_set_text(attributes, "gen_ai.operation.name", "execute_tool");
	value_set_text(attributes, "gen_ai.tool.name",
		       event->tool != NULL ? event->tool : "unknown");
	value_set_text(attributes, "gen_ai.tool.call.id", event->call);
	value_set_text(attributes, "gen_ai.tool.type", "function");
	value_set_text(attributes, "glovebox.cell", tap->cell);
	if (tap->token != NULL)
		value_set_text(attributes, "glovebox.token", tap->token);
	value_set_text(attributes, "glovebox.status", result_status_name(result->status));
	if (result->exit_code >= 0)
		value_set_integer(attributes, "glovebox.exit_code", result->exit_code);
	if (result->status != RESULT_DONE)
		value_set_text(attributes, "error.type", result_status_name(result->status));
	add_accounts(&result->accounts, attributes);
	if (call->arguments != NULL)
		value_set_text(attributes, "gen_ai.tool.call.arguments", call->arguments);
	if (tap->recording->shows_content)
		value_set_str(attributes, "gen_ai.tool.call.result",
			      str_part(buf_str(&result->text), 0, SPAN_TEXT_MAX));
	return attributes;
}

static void span_end(struct tap *tap, const struct event *event)
{
	const char *tool = event->tool != NULL ? event->tool : "unknown";
	auto_value struct value *attributes = NULL;
	struct open_call **at = &tap->calls, *call;
	char name[CHAIN_WORD_MAX];
	struct span span;

	while (*at != NULL && strcmp((*at)->id, event->call) != 0)
		at = &(*at)->next;
	call = *at;
	if (call == NULL)
		return;
	*at = call->next;
	tap->call_count--;
	attributes = attributes_of(tap, call, event);
	(void)snprintf(name, sizeof(name), "execute_tool %s", tool);
	span = (struct span){
		.place = call->place,
		.name = name,
		.kind = SPAN_INTERNAL,
		.began_ns = call->began.wall_ns,
		.ended_ns = end_of(&call->began),
		.attributes = attributes,
		.failure = event->result->status != RESULT_DONE
				   ? result_status_name(event->result->status)
				   : NULL,
	};
	memcpy(span.parent, call->server.id[0] != '\0' ? call->server.id : call->parent,
	       sizeof(span.parent));
	send_span(tap->recording, &span);
	if (call->server.id[0] != '\0') {
		auto_value struct value *served =
			call->origin != NULL ? value_ref(call->origin) : value_new_object();

		value_set_text(served, "mcp.method.name", "tools/call");
		value_set_text(served, "gen_ai.operation.name", "execute_tool");
		value_set_text(served, "gen_ai.tool.name", tool);
		if (value_member(attributes, "error.type") != NULL)
			value_set(served, "error.type",
				  value_ref(value_member(attributes, "error.type")));
		(void)snprintf(name, sizeof(name), "tools/call %s", tool);
		span.place = call->server;
		span.kind = SPAN_SERVER;
		span.attributes = served;
		memcpy(span.parent, call->parent, sizeof(span.parent));
		send_span(tap->recording, &span);
	}
	free_call(call);
}

/* The receiver of a session. */

static bool tap_event(void *context, const struct event *event, struct err *err)
{
	struct tap *tap = context;
	const bool spans = tap->recording->exporter != NULL;
	const bool recorded = note_event(tap, event, err);

	/*
	 * The receiver behind knows the call and the question whose end it will hear of; a
	 * question that cannot be recorded is not asked.
	 */
	if (!recorded && event->kind == EVENT_APPROVAL_WANTED)
		return false;
	if (spans && event->kind == EVENT_TOOL_BEGAN)
		span_begin(tap, event);
	else if (spans && event->kind == EVENT_TOOL_ENDED)
		span_end(tap, event);
	if (!recorded) {
		if (tap->next.event != NULL)
			(void)tap->next.event(tap->next.context, event, NULL);
		return false;
	}
	return tap->next.event == NULL || tap->next.event(tap->next.context, event, err);
}

static void tap_over(void *context, const struct accounts *accounts)
{
	struct tap *tap = context;
	auto_value struct value *used = NULL;

	if (tap->recording->ledger != NULL) {
		struct chain_record record = record_of(tap, CHAIN_CLOSE);

		record.seconds = accounts->wall_s;
		if (accounts->cpu != ACCOUNTS_NONE)
			used = accounts_value(accounts);
		record.accounts = used;
		(void)ledger_add(tap->recording->ledger, &record, false, NULL);
	}
	tap->state = TAP_OVER;
	if (tap->next.over != NULL)
		tap->next.over(tap->next.context, accounts);
}

static void free_tap(struct tap *tap)
{
	while (tap->calls != NULL) {
		struct open_call *call = tap->calls;

		tap->calls = call->next;
		free_call(call);
	}
	while (tap->odd != NULL)
		free_odd(take_odd(tap, tap->odd->id));
	free(tap->front);
	free(tap->token);
	free(tap->cell);
	free(tap);
}

/* Free the receivers of sessions that are over: these call them no more. */
static void sweep_taps(struct recording *recording, bool all)
{
	struct tap **at = &recording->taps;

	while (*at != NULL) {
		struct tap *tap = *at;

		if (tap->state != TAP_OVER && !all) {
			at = &tap->after;
			continue;
		}
		*at = tap->after;
		free_tap(tap);
	}
}

static char *make_cell_name(void)
{
	uint64_t number = 0;
	char name[2 * sizeof(number) + 1];

	while (getrandom(&number, sizeof(number), 0) < 0 && errno == EINTR)
		;
	(void)snprintf(name, sizeof(name), "%016llx", (unsigned long long)number);
	name[CELL_DIGITS] = '\0';
	return memory_copy(name);
}

static bool note_open(const struct tap *tap, const struct about *about, struct err *err)
{
	struct chain_record record = record_of(tap, CHAIN_OPEN);
	auto_value struct value *more = value_new_object();

	value_set_text(more, "workspace", about->folder);
	value_set_text(more, "agent", about->agent);
	value_set_integer(more, "pid", getpid());
	if (about->client != NULL)
		value_set_text(more, "client", about->client);
	for (void *at = value_first(about->purpose); at != NULL;
	     at = value_next(about->purpose, at))
		value_set(more, value_key(at), value_ref(value_at(at)));
	record.more = more;
	return ledger_add(tap->recording->ledger, &record, true, err);
}

/* Does the audit lie where the cell of POLICY may write? */
static bool lies_outside(const struct recording *recording, const struct policy *policy,
			 struct err *err)
{
	for (size_t i = 0; policy != NULL && i < policy->write.count; i++) {
		const char *path = policy->write.items[i].path;
		auto_free char *tree = path != NULL ? realpath(path, NULL) : NULL;
		const size_t size = tree != NULL ? strlen(tree) : 0;

		if (size > 0 && strncmp(recording->folder, tree, size) == 0 &&
		    (size == 1 || recording->folder[size] == '/' ||
		     recording->folder[size] == '\0'))
			return err_set(err, EPERM,
				       "service.audit.folder: %s lies in %s, where commands may "
				       "write: name a folder outside",
				       recording->folder, tree);
	}
	return true;
}

/*
 * A session for ABOUT with POLICY is about to be opened: *SINK becomes a receiver that records its
 * events and hands them to the former *SINK. False: nothing may be opened.
 */
static bool begin(struct recording *recording, const struct about *about,
		  const struct policy *policy, struct event_sink *sink, struct err *err)
{
	struct tap *tap;

	if (recording->ledger != NULL && !lies_outside(recording, policy, err))
		return false;
	sweep_taps(recording, false);
	tap = memory_alloc(sizeof(*tap));
	tap->recording = recording;
	tap->next = *sink;
	tap->front = memory_copy(about->front != NULL ? about->front : "glovebox");
	tap->token = memory_copy(about->token);
	tap->cell = about->cell != NULL ? memory_copy(about->cell) : make_cell_name();
	if (recording->ledger != NULL && !note_open(tap, about, err)) {
		free_tap(tap);
		return false;
	}
	tap->after = recording->taps;
	recording->taps = tap;
	*sink = (struct event_sink){.event = tap_event,
				    .context = tap,
				    .hears_all = true,
				    .over = tap_over};
	return true;
}

/* Spans of an agent: its turns, and the answers of its model. */

static void add_usage(const struct value *usage, struct value *attributes)
{
	static const struct {
		const char *from, *to;
	} names[] = {
		{"input", "gen_ai.usage.input_tokens"},
		{"output", "gen_ai.usage.output_tokens"},
		{"cached", "gen_ai.usage.cache_read.input_tokens"},
		{"cache_writes", "gen_ai.usage.cache_creation.input_tokens"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct value *number = value_member(usage, names[i].from);

		if (number != NULL)
			value_set_integer(attributes, names[i].to, value_integer(number));
	}
	if (value_is_true(value_member(usage, "money_known")))
		value_set_real(attributes, "glovebox.money",
			       value_number(value_member(usage, "money")));
}

/* The model's name, and its service where the name begins with one. */
static void add_model(const char *model, struct value *attributes)
{
	const char *colon = model != NULL ? strchr(model, ':') : NULL;

	if (model == NULL)
		return;
	value_set_text(attributes, "gen_ai.request.model", model);
	if (colon != NULL)
		value_set_str(attributes, "gen_ai.provider.name",
			      (struct str){model, (size_t)(colon - model)});
}

static void set_text(char **place, const struct value *value)
{
	free(*place);
	*place = memory_copy(value_text(value));
}

static void turn_begin(struct turn *turn, const struct event *event)
{
	turn->place = span_place_new(NULL);
	turn->began = turn->asked = moment_now();
	set_text(&turn->agent, value_member(event->data, "agent"));
	set_text(&turn->model, value_member(event->data, "model"));
	turn->recording->turn = turn->place;
}

static void turn_end(struct turn *turn, const struct event *event)
{
	const char *reason = value_text(value_member(event->data, "reason"));
	auto_value struct value *attributes = value_new_object();
	char name[CHAIN_WORD_MAX];

	value_set_text(attributes, "gen_ai.operation.name", "invoke_agent");
	value_set_text(attributes, "gen_ai.agent.name", turn->agent);
	add_model(turn->model, attributes);
	if (turn->session != NULL)
		value_set_text(attributes, "gen_ai.conversation.id", turn->session);
	if (reason != NULL)
		value_set_text(attributes, "glovebox.reason", reason);
	add_usage(value_member(event->data, "usage"), attributes);
	(void)snprintf(name, sizeof(name), "invoke_agent %s",
		       turn->agent != NULL ? turn->agent : "");
	send_span(turn->recording,
		  &(struct span){.place = turn->place,
				 .name = name,
				 .kind = SPAN_INTERNAL,
				 .began_ns = turn->began.wall_ns,
				 .ended_ns = end_of(&turn->began),
				 .attributes = attributes,
				 .failure = reason != NULL && strcmp(reason,
								     "model_failed") == 0
						    ? reason
						    : NULL});
	turn->place = turn->recording->turn = (struct span_place){0};
}

/* The model has answered. */
static void turn_message(struct turn *turn, const struct event *event)
{
	auto_value struct value *attributes = value_new_object();
	char name[CHAIN_WORD_MAX];
	struct span span = {
		.place = span_place_new(&turn->place),
		.name = name,
		.kind = SPAN_CLIENT,
		.began_ns = turn->asked.wall_ns,
		.ended_ns = end_of(&turn->asked),
		.attributes = attributes,
	};

	value_set_text(attributes, "gen_ai.operation.name", "chat");
	add_model(turn->model, attributes);
	value_set_str(attributes, "gen_ai.response.finish_reasons",
		      value_str(value_member(event->data, "finish")));
	add_usage(value_member(event->data, "usage"), attributes);
	if (turn->recording->shows_content) {
		auto_free char *parts = print_content(value_member(event->data, "parts"));

		value_set_text(attributes, "gen_ai.output.messages", parts);
	}
	(void)snprintf(name, sizeof(name), "chat %s",
		       turn->model != NULL ? turn->model : "");
	memcpy(span.parent, turn->place.id, sizeof(span.parent));
	send_span(turn->recording, &span);
}

static bool turn_event(void *context, const struct event *event, struct err *err)
{
	struct turn *turn = context;
	const bool runs = turn->place.id[0] != '\0';

	if (event->kind == EVENT_SESSION_BEGAN || event->kind == EVENT_SESSION_RESUMED)
		set_text(&turn->session, value_member(event->data, "session"));
	else if (event->kind == EVENT_TURN_BEGAN)
		turn_begin(turn, event);
	else if (event->kind == EVENT_MESSAGE && runs)
		turn_message(turn, event);
	else if (event->kind == EVENT_TURN_ENDED && runs)
		turn_end(turn, event);
	/* The model is asked again after the last call has ended. */
	if (event->kind == EVENT_TOOL_ENDED || event->kind == EVENT_CHECK_ENDED ||
	    event->kind == EVENT_COMPACTED)
		turn->asked = moment_now();
	return turn->next.event == NULL || turn->next.event(turn->next.context, event, err);
}

struct event_sink recording_agent(struct recording *recording, struct event_sink sink)
{
	struct turn *turn;

	if (recording == NULL || recording->exporter == NULL)
		return sink;
	turn = memory_alloc(sizeof(*turn));
	turn->recording = recording;
	turn->next = sink;
	turn->after = recording->turns;
	recording->turns = turn;
	return (struct event_sink){.event = turn_event, .context = turn};
}

/* Opening and closing. */

/* Read the key of the audit from PATH, which nobody else may read. */
static bool read_key(const char *path, struct buf *key, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "service.audit.key_file: %s: %s", path,
			       strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IRWXG | S_IRWXO)) != 0 ||
	    (st.st_uid != geteuid() && st.st_uid != 0))
		return err_set(err, EPERM,
			       "service.audit.key_file: others may read or write %s: it must be "
			       "yours, and chmod 600",
			       path);
	if (!fd_read_all(fd, key, path, err))
		return false;
	ledger_trim_key(key);
	return key->size >= LEDGER_KEY_MIN ||
	       err_set(err, EINVAL,
		       "service.audit.key_file: %s has %zu bytes; a key has %d or more: head -c 32 "
		       "/dev/urandom | base64",
		       path, key->size, LEDGER_KEY_MIN);
}

static void say_head(void *context, const char *sentence)
{
	(void)context;
	(void)fprintf(stderr, "glovebox: %s\n", sentence);
}

static void say_cut(void *context, const char *sentence)
{
	(void)context;
	(void)fprintf(stderr,
		      "glovebox: audit: %s; the chain goes on behind a record of it (glovebox "
		      "audit verify)\n",
		      sentence);
}

static bool open_audit(struct recording *recording, const struct recorded *wanted,
		       bool heads, struct err *err)
{
	struct ledger_options options = {
		.folder = wanted->folder,
		.each = wanted->each,
		.head = heads ? say_head : NULL,
		.head_s = HEAD_S,
		.warn = say_cut,
		.refuses_cut = wanted->refuses_cut,
	};
	struct buf key;
	bool ok;

	buf_init(&key, LEDGER_KEY_MAX);
	ok = wanted->key_file == NULL || read_key(wanted->key_file, &key, err);
	options.key = buf_str(&key);
	ok = ok && ledger_open(&options, &recording->ledger, err);
	explicit_bzero(key.data, key.size);
	buf_fini(&key);
	if (!ok)
		return false;
	recording->folder = realpath(wanted->folder, NULL);
	recording->shows_arguments = wanted->arguments;
	return recording->folder != NULL ||
	       err_set(err, errno, "audit: %s: %s", wanted->folder, strerror(errno));
}

/* The variable NAME of the environment; NULL: it is not set, or empty. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool open_spans(struct recording *recording, const struct recorded *wanted,
		       struct err *err)
{
	const char *said = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
	const struct exporter_options options = {
		.endpoint = wanted->endpoint != NULL ? wanted->endpoint
			    : said != NULL           ? said
						     : ENDPOINT,
		.headers = variable("OTEL_EXPORTER_OTLP_HEADERS"),
		.service = variable("OTEL_SERVICE_NAME"),
		.attributes = variable("OTEL_RESOURCE_ATTRIBUTES"),
	};

	recording->shows_content = wanted->content;
	return exporter_open(&options, &recording->exporter, err);
}

bool recording_open(const struct recorded *wanted, bool heads, struct recording **made,
		    struct err *err)
{
	struct recording *recording = memory_alloc(sizeof(*recording));

	if ((wanted->folder != NULL && !open_audit(recording, wanted, heads, err)) ||
	    (wanted->spans && !open_spans(recording, wanted, err))) {
		recording_close(recording);
		return false;
	}
	*made = recording;
	return true;
}

void recording_close(struct recording *recording)
{
	if (recording == NULL)
		return;
	sweep_taps(recording, true);
	while (recording->turns != NULL) {
		struct turn *turn = recording->turns;

		recording->turns = turn->after;
		free(turn->agent);
		free(turn->model);
		free(turn->session);
		free(turn);
	}
	ledger_close(recording->ledger);
	exporter_close(recording->exporter);
	free(recording->folder);
	free(recording);
}

uint64_t recording_dropped(const struct recording *recording)
{
	if (recording == NULL)
		return 0;
	return (recording->ledger != NULL ? ledger_lost(recording->ledger) : 0) +
	       (recording->exporter != NULL ? exporter_dropped(recording->exporter) : 0);
}

bool recording_is_stuck(const struct recording *recording)
{
	return recording != NULL && recording->ledger != NULL &&
	       ledger_is_stuck(recording->ledger);
}

/* The recording of a setup. */

void recording_lend(struct setup *setup, const char *verb, struct recording *recording)
{
	setup->verb = verb;
	setup->recording = recording;
	setup->recording_is_lent = recording != NULL;
}

void recording_forget(struct setup *setup)
{
	recorded_fini(&setup->recorded);
	if (!setup->recording_is_lent)
		recording_close(setup->recording);
	setup->recording = NULL;
}

bool recording_settle(struct setup *setup, struct err *err)
{
	return setup->recording != NULL || !recorded_is_wanted(&setup->recorded) ||
	       recording_open(&setup->recorded, setup->tells_heads, &setup->recording, err);
}

bool recording_join(struct setup *setup, const struct value *purpose,
		    struct event_sink *sink, struct err *err)
{
	const struct about about = {.front = setup->verb,
				    .token = setup->token,
				    .cell = setup->cell,
				    .client = setup->client,
				    .folder = setup->workspace,
				    .agent = setup->agent,
				    .purpose = purpose};

	return recording_settle(setup, err) &&
	       (setup->recording == NULL ||
		begin(setup->recording, &about, setup->policy, sink, err));
}

bool recording_add(struct recording *recording, const struct chain_record *record,
		   bool before, struct err *err)
{
	return recording == NULL || recording->ledger == NULL ||
	       ledger_add(recording->ledger, record, before, err);
}
