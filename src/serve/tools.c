/*
 * tools: tool/…, by the same calls as those of a model, and the changes of a cell: what
 * they are, as one patch, and undone. The caller may register tools of its own, which it
 * carries out itself: the call of such a tool becomes a request to the caller,
 * `tool/host_call`, whose answer is the result.
 */

#include "tools/tools.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "serve/caller.h"
#include "serve/engine.h"
#include "session/session.h"
#include "tool/schema.h"
#include "tool/tool.h"
#include "tool/validate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	HOST_TOOLS_MAX = 64,    /* of the caller, in one cell */
	HOST_SECONDS = 10 * 60, /* for an answer of the caller */
	DESCRIPTION_MAX = 16 << 10,
	ID_ROOM = 32,
};

/* A call of a tool of the caller, which has been asked. */
struct host_call {
	struct host_call *next;
	int64_t number; /* of our request */
	struct running *running;
};

/* A tool of the caller. */
struct engine_host_tool {
	struct engine_host_tool *next;
	struct engine_cell *cell;
	struct caller *caller; /* that carries it out */
	char *name, *description;
	struct value *schema;
	struct tool tool;
	struct host_call *calls;
};

/* The effects by their words, in listings and when a tool is registered. */
static const struct {
	const char *name;
	enum tool_effects effect;
} effects[] = {
	{"reads", EFFECT_READS},
	{"writes", EFFECT_WRITES},
	{"runs", EFFECT_RUNS},
};

/* Calls of tools. */

struct tool_task {
	struct engine_task task; /* first: they are one and the same */
	const char *name;        /* of the method */
	void (*answer)(struct engine_task *task, const struct tool_result *result);
};

static void call_free(struct engine_task *task)
{
	engine_task_fini(task);
	free(task);
}

static void call_turn(struct engine_task *task)
{
	const struct tool_task *call = (const struct tool_task *)task;
	const struct tool_result *result = running_result(task->running);

	if (!running_is_done(task->running) || !caller_reads(task->caller))
		return;
	task->over = true;
	if (task->cancelled)
		engine_refuse_result(task->caller, task->cell, task->id, true, result,
				     call->name);
	else
		call->answer(task, result);
}

static void begin_call(const struct engine_request *request, const char *name,
		       const struct request *wanted,
		       void (*answer)(struct engine_task *task,
				      const struct tool_result *result))
{
	struct tool_task *call;

	if (!engine_has_room(request, 0))
		return;
	call = memory_alloc(sizeof(*call));
	call->name = name;
	call->answer = answer;
	call->task.turn = call_turn;
	call->task.free = call_free;
	engine_add_task(&call->task, request, request->id);
	call->task.running =
		session_start(request->cell->place.session, wanted, NULL, NULL);
}

static const struct row call_params[] = {
	ENGINE_ROW_CELL,
	{"tool", ROW_BYTES, true, "its name", .min = 1, .max = ENGINE_NAME},
	{"arguments", ROW_VALUES, false, "its arguments"},
	{"timeout_s", ROW_SECONDS, false, "when it is ended, in place of the tool's own time",
	 .min = 0.001, .max = ENGINE_SECONDS},
	{0},
};

static void answer_call(struct engine_task *task, const struct tool_result *result)
{
	const char *broken = session_broken(task->cell->place.session);
	struct value *told;

	if (result->status == RESULT_FAILED && broken != NULL) {
		engine_refuse_result(task->caller, task->cell, task->id, false, result,
				     "tool/call");
		return;
	}
	told = tool_result_value(result);
	value_set(told, "accounts", engine_accounts(result));
	caller_answer(task->caller, task->id, told);
}

static void call_tool(const struct engine_request *request)
{
	auto_value struct value *none = value_new_object();
	const struct value *arguments = value_member(request->params, "arguments");
	const struct request wanted = {
		.tool = value_text(value_member(request->params, "tool")),
		.arguments = arguments != NULL ? arguments : none,
		.timeout_s = value_number(value_member(request->params, "timeout_s")),
	};

	begin_call(request, "tool/call", &wanted, answer_call);
}

static void list_tools(const struct engine_request *request)
{
	const struct tool *const *tools = session_tools(request->cell->place.session);
	struct value *told = value_new_object(), *list = value_new_array();

	for (; *tools != NULL; tools++) {
		struct value *row = value_new_object(), *names = value_new_array();

		value_set_text(row, "name", (*tools)->name);
		value_set_text(row, "description", (*tools)->description);
		value_set(row, "schema", schema_of_tool(*tools));
		for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
			if (((*tools)->effects & effects[i].effect) != 0)
				value_append(names, value_new_text(effects[i].name));
		}
		value_set(row, "effects", names);
		value_append(list, row);
	}
	value_set(told, "tools", list);
	caller_answer(request->caller, request->id, told);
}

/* The changes of a cell. */

static void answer_changes(struct engine_task *task, const struct tool_result *result)
{
	const struct value *files = value_member(result->details, "files");
	struct value *told = value_new_object();

	/* A patch of nothing is refused to a model; to a program it is an empty list. */
	value_set(told, "files", files != NULL ? value_ref(files) : value_new_array());
	caller_answer(task->caller, task->id, told);
}

static void answer_patch(struct engine_task *task, const struct tool_result *result)
{
	const struct value *patch = value_member(result->details, "patch");
	struct value *told = value_new_object();

	value_set(told, "patch", patch != NULL ? value_ref(patch) : value_new_text(""));
	if (result->status != RESULT_DONE)
		value_set_str(told, "because", str_trim(buf_str(&result->text)));
	caller_answer(task->caller, task->id, told);
}

static void ask_patch(const struct engine_request *request, const char *name,
		      void (*answer)(struct engine_task *task,
				     const struct tool_result *result))
{
	auto_value struct value *arguments = value_new_object();
	const struct request wanted = {
		.tool = generate_patch_tool.name,
		.arguments = arguments,
		.by_front = true,
	};

	value_set_text(arguments, "title", name);
	value_set_text(arguments, "summary", name);
	begin_call(request, name, &wanted, answer);
}

static void tell_changes(const struct engine_request *request)
{
	ask_patch(request, "cell/changes", answer_changes);
}

static void tell_patch(const struct engine_request *request)
{
	ask_patch(request, "cell/patch", answer_patch);
}

static const struct row undo_params[] = {
	ENGINE_ROW_CELL,
	{"step", ROW_ID, false, "its number; the newest unless told", .min = 1,
	 .max = INT32_MAX},
	{0},
};

static void undo(const struct engine_request *request)
{
	const int64_t step = value_integer(value_member(request->params, "step"));
	struct tool_result result;
	struct str text;

	if (request->cell->tasks > 0) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_BUSY},
			      "cell/undo: %zu calls are under way in cell %s; wait for them",
			      request->cell->tasks, request->cell->name);
		return;
	}
	tool_result_init(&result);
	session_undo(request->cell->place.session, (uint32_t)step, &result);
	text = str_trim(buf_str(&result.text));
	if (result.status == RESULT_DONE) {
		struct value *told = value_new_object();

		value_set_str(told, "text", text);
		value_set(told, "details",
			  result.details != NULL ? value_copy(result.details)
						 : value_new_object());
		caller_answer(request->caller, request->id, told);
	} else if (result.details == NULL && !str_starts(text, STR("Nothing was undone"))) {
		/* There is no such step, or none that can be undone: nothing was planned. */
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_NO_SUCH},
			      "cell/undo: %.*s", (int)text.size, text.data);
	} else {
		engine_refuse_result(request->caller, request->cell, request->id, false,
				     &result, "cell/undo");
	}
	tool_result_fini(&result);
}

/* Tools of the caller. */

static void host_begin(void *keeper, struct running *running)
{
	struct engine_host_tool *host = keeper;
	struct host_call *call = memory_alloc(sizeof(*call));
	struct value *params = value_new_object();

	value_set_text(params, "cell", host->cell->name);
	value_set_text(params, "tool", host->name);
	value_set(params, "arguments", value_copy(running_arguments(running)));
	call->running = running;
	call->number = caller_tell(host->caller, "tool/host_call", params, true);
	call->next = host->calls;
	host->calls = call;
}

/* RUNNING has its result already: the caller need not go on. */
static void host_stop(void *keeper, struct running *running)
{
	struct engine_host_tool *host = keeper;
	struct host_call **at = &host->calls;
	struct value *params;
	struct host_call *call;
	char id[ID_ROOM];

	while (*at != NULL && (*at)->running != running)
		at = &(*at)->next;
	if (*at == NULL)
		return;
	call = *at;
	*at = call->next;
	params = value_new_object();
	(void)snprintf(id, sizeof(id), CALLER_ASKS "%" PRId64, call->number);
	value_set_text(params, "id", id);
	(void)caller_tell(host->caller, "$/cancel", params, false);
	free(call);
}

/* The result of a call, as the caller gives it in MESSAGE. */
static void read_result(const struct mcp_message *message, struct tool_result *result)
{
	const struct value *content = value_member(message->result, "content");
	const struct value *text =
		value_member(message->result != NULL ? message->result : message->error,
			     message->result != NULL ? "text" : "message");
	const struct value *failed = value_member(message->result, "failed");

	if (message->result == NULL && message->error == NULL) {
		(void)tool_fail(result, "The caller's answer must have a result or an error, "
					"and not both.");
		return;
	}
	if (message->result != NULL && text != NULL && value_kind(text) != VALUE_STRING) {
		(void)tool_fail(result, "The caller's answer has a `text` that is no text.");
		return;
	}
	if (!buf_addstr(&result->text, value_str(text))) {
		(void)tool_fail(result,
				"The caller's answer has %zu bytes of text, more than %d.",
				value_str(text).size, RESULT_TEXT_MAX);
		return;
	}
	result->status = message->result != NULL && !value_is_true(failed) ? RESULT_DONE
									   : RESULT_FAILED;
	if (value_kind(value_member(message->result, "details")) == VALUE_OBJECT)
		result->details = value_copy(value_member(message->result, "details"));
	for (size_t i = 0; i < value_count(content); i++)
		(void)tool_add_content(result, value_copy(value_item(content, i)));
}

/* The call NUMBER of one of the tools of CELL, taken out of its list; or NULL. */
static struct host_call *take_call(const struct engine_cell *cell, int64_t number)
{
	for (struct engine_host_tool *host = cell->tools; host != NULL; host = host->next) {
		for (struct host_call **at = &host->calls; *at != NULL; at = &(*at)->next) {
			struct host_call *call = *at;

			if (call->number != number)
				continue;
			*at = call->next;
			return call;
		}
	}
	return NULL;
}

void engine_tools_answer(struct engine *engine, int64_t number,
			 const struct mcp_message *message)
{
	struct host_call *call = NULL;
	struct tool_result result;

	for (struct engine_cell *at = engine->cells; at != NULL && call == NULL;
	     at = at->next)
		call = number > 0 ? take_call(at, number) : NULL;
	if (call == NULL)
		return; /* it was cancelled, or was never asked */
	tool_result_init(&result);
	read_result(message, &result);
	running_end(call->running, &result);
	free(call);
}

static void host_free(struct engine_host_tool *host)
{
	while (host->calls != NULL) {
		struct host_call *next = host->calls->next;

		free(host->calls);
		host->calls = next;
	}
	value_free(host->schema);
	free(host->name);
	free(host->description);
	free(host);
}

void engine_tools_free(struct engine_cell *cell)
{
	while (cell->tools != NULL) {
		struct engine_host_tool *next = cell->tools->next;

		host_free(cell->tools);
		cell->tools = next;
	}
}

static const struct row register_params[] = {
	ENGINE_ROW_CELL,
	{"name", ROW_BYTES, true, "letters, digits, _ and -", .min = 1, .max = ENGINE_NAME},
	{"description", ROW_BYTES, true, "one or two sentences for a model", .min = 1,
	 .max = DESCRIPTION_MAX},
	{"schema", ROW_VALUES, true, "the JSON Schema of its arguments"},
	{"effects", ROW_WORDS, false, "what it does; runs unless told",
	 .choices = "reads writes runs", .min = 1, .max = ENGINE_NAME},
	{0},
};

static struct engine_host_tool *host_new(const struct engine_request *request)
{
	const struct value *params = request->params;
	const struct value *list = value_member(params, "effects");
	struct engine_host_tool *host = memory_alloc(sizeof(*host));

	host->cell = request->cell;
	host->caller = request->caller;
	host->name = memory_copy(value_text(value_member(params, "name")));
	host->description = memory_copy(value_text(value_member(params, "description")));
	host->schema = value_copy(value_member(params, "schema"));
	host->tool = (struct tool){
		.name = host->name,
		.description = host->description,
		.schema = host->schema,
		.effects = list == NULL ? EFFECT_RUNS : 0,
		.timeout_s = HOST_SECONDS,
		.where = ELSEWHERE,
		.begin = host_begin,
		.stop = host_stop,
		.keeper = host,
	};
	for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
		if (value_has_text(list, effects[i].name))
			host->tool.effects |= effects[i].effect;
	}
	return host;
}

/* Offer the tools of CELL: those of its front, and HOST behind those of the caller. */
static bool offer(struct engine_cell *cell, struct engine_host_tool *host, struct err *err)
{
	const struct tool *const *first = cell->place.tools;
	size_t count = 0, own = 1;
	const struct tool **offered;

	while (first[count] != NULL)
		count++;
	for (const struct engine_host_tool *at = cell->tools; at != NULL; at = at->next)
		own++;
	if (own > HOST_TOOLS_MAX)
		return err_set(err, EAGAIN, "%d tools are registered, which is the most",
			       HOST_TOOLS_MAX);
	offered = memory_array(count + own + 1, sizeof(*offered));
	memcpy(offered, first, count * sizeof(*offered));
	offered[count++] = &host->tool;
	for (const struct engine_host_tool *at = cell->tools; at != NULL; at = at->next)
		offered[count++] = &at->tool;
	if (!session_set_tools(cell->place.session, offered, err)) {
		free(offered);
		return false;
	}
	if (tool_find(session_tools(cell->place.session), host->name) == NULL) {
		(void)session_set_tools(cell->place.session,
					cell->offered != NULL ? cell->offered : first,
					NULL);
		free(offered);
		return err_set(err, EACCES,
			       "the policy of cell %s names its tools, and %s is not one of them",
			       cell->name, host->name);
	}
	host->next = cell->tools;
	cell->tools = host;
	free(cell->offered);
	cell->offered = offered;
	return true;
}

/* Is PART, a part of a schema that holds schemas by name, an object of schemas? */
static bool are_schemas(const struct value *part, const char *name, struct err *err)
{
	if (part == NULL)
		return true;
	if (value_kind(part) != VALUE_OBJECT)
		return err_set(err, EINVAL, "schema/%s must be an object, not %s", name,
			       value_kind_name(value_kind(part)));
	for (void *at = value_first(part); at != NULL; at = value_next(part, at)) {
		const enum value_kind kind = value_kind(value_at(at));

		if (kind != VALUE_OBJECT && kind != VALUE_BOOLEAN)
			return err_set(err, EINVAL,
				       "schema/%s/%.100s must be a JSON Schema, not %s",
				       name, value_key(at), value_kind_name(kind));
	}
	return true;
}

/* Is SCHEMA a JSON Schema of arguments, which have names, and can it be used for a check? */
static bool is_schema(const struct value *schema, struct err *err)
{
	auto_value struct value *none = value_new_object();
	const struct value *type = value_member(schema, "type");
	const struct value *required = value_member(schema, "required");
	struct validate_problem problem;

	if (type != NULL && !str_is(value_str(type), "object"))
		return err_set(err, EINVAL,
			       "schema/type must be \"object\": arguments have names");
	if (!are_schemas(value_member(schema, "properties"), "properties", err) ||
	    !are_schemas(value_member(schema, "$defs"), "$defs", err))
		return false;
	for (size_t i = 0; i < value_count(required); i++) {
		if (value_kind(value_item(required, i)) != VALUE_STRING)
			return err_set(err, EINVAL,
				       "schema/required must be a list of texts");
	}
	if (required != NULL && value_kind(required) != VALUE_ARRAY)
		return err_set(err, EINVAL, "schema/required must be a list of texts");
	/* Arguments that miss something are no fault of the schema. */
	return validate_value(schema, none, &problem) || problem.keyword[0] != '$' ||
	       err_set(err, EINVAL, "schema: %s", problem.rule);
}

/* May a tool have NAME? No tool may take the place of another one. */
static bool name_is_free(const struct engine_cell *cell, const char *name, struct err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-";

	if (name[0] == '\0' || name[strspn(name, letters)] != '\0')
		return err_set(err, EINVAL,
			       "a name has letters, digits, _ and - only, and one of them at "
			       "least");
	if (tool_find(cell->offered != NULL ? cell->offered : cell->place.tools, name) !=
	    NULL)
		return err_set(err, EEXIST,
			       "there is a tool %s already; choose another name", name);
	return true;
}

static void register_tool(const struct engine_request *request)
{
	struct caller *caller = request->caller;
	const char *name = value_text(value_member(request->params, "name"));
	struct engine_cell *cell = request->cell;
	struct engine_host_tool *host;
	struct err err = {0};

	if (request->engine->options.standing != NULL) {
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "tool/register: this cell outlives its callers, and a tool of one of "
			      "them would not; open a cell of `glovebox serve --stdio`");
		return;
	}
	if (!name_is_free(cell, name, &err) ||
	    !is_schema(value_member(request->params, "schema"), &err)) {
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE, .error = err.code},
			      "tool/register: %s", err.text);
		return;
	}
	host = host_new(request);
	if (!offer(cell, host, &err)) {
		host_free(host);
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = caller_kind_of(err.code)},
			      "tool/register: %s", err.text);
		return;
	}
	caller_answer(caller, request->id, value_new_object());
}

const struct engine_method engine_tools[] = {
	{"tool/list", engine_cell_params, list_tools},
	{"tool/call", call_params, call_tool},
	{"tool/register", register_params, register_tool},
	{"cell/changes", engine_cell_params, tell_changes},
	{"cell/patch", engine_cell_params, tell_patch},
	{"cell/undo", undo_params, undo},
	{0},
};
