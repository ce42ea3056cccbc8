/* tool: makes, prints and reads results, and finds a tool by name. */
#include "tool/tool.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "process/frame.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

enum result_part {
	RESULT_TEXT,
	RESULT_DETAILS,
	RESULT_CONTENT,
	RESULT_SEEN,
	RESULT_PARTS
};

/* The numbers of struct accounts that come from a worker, in this order. */
enum {
	SPENT_CPU_US,
	SPENT_USER_US,
	SPENT_MEMORY,
	SPENT_WRITTEN,
	SPENT_READ,
	SPENT_PROCESSES,
	SPENT
};

struct result_head {
	uint64_t left_out_bytes, left_out_lines;
	uint64_t spent[SPENT];
	int32_t exit_code, signal;
	uint32_t status; /* enum result_status */
	uint32_t sizes[RESULT_PARTS];
	uint32_t zero;
};

/* The struct must have no padding, which would contain stray bytes of this process. */
_Static_assert(sizeof(struct result_head) == 32 + 8 * SPENT + 4 * RESULT_PARTS,
	       "a gap in the head");

static const char *const status_names[] = {
	[RESULT_FAILED] = "failed",       [RESULT_DONE] = "done",
	[RESULT_DENIED] = "denied",       [RESULT_TIMED_OUT] = "timed_out",
	[RESULT_CANCELLED] = "cancelled",
};

enum { STATUS_COUNT = sizeof(status_names) / sizeof(status_names[0]) };

const char *result_status_name(enum result_status status)
{
	if ((size_t)status >= STATUS_COUNT)
		return status_names[RESULT_FAILED];
	return status_names[status];
}

void tool_result_init(struct tool_result *result)
{
	memset(result, 0, sizeof(*result));
	buf_init(&result->text, RESULT_TEXT_MAX);
	result->exit_code = -1;
}

void tool_result_fini(struct tool_result *result)
{
	if (!result)
		return;
	buf_fini(&result->text);
	value_free(result->details);
	value_free(result->content);
	value_free(result->seen);
	result->details = NULL;
	result->content = NULL;
	result->seen = NULL;
}

enum result_status tool_fail(struct tool_result *result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	buf_addv(&result->text, format, arguments);
	va_end(arguments);
	result->status = RESULT_FAILED;
	return RESULT_FAILED;
}

enum result_status tool_done(struct tool_result *result)
{
	result->status = RESULT_DONE;
	return RESULT_DONE;
}

struct value *tool_details(struct tool_result *result)
{
	if (!result->details)
		result->details = value_new_object();
	return result->details;
}

struct value *tool_details_list(struct tool_result *result, const char *key)
{
	struct value *details = tool_details(result);
	struct value *list = value_member(details, key);

	if (value_kind(list) != VALUE_ARRAY) {
		list = value_new_array();
		value_set(details, key, list);
	}
	return list;
}

static bool is_item(const struct value *item)
{
	return value_kind(item) == VALUE_OBJECT &&
	       value_kind(value_member(item, "type")) == VALUE_STRING;
}

bool tool_content_fits(const struct value *content, size_t size)
{
	bool fits = value_kind(content) == VALUE_ARRAY && size <= RESULT_CONTENT_BYTES_MAX &&
		    value_count(content) <= RESULT_CONTENT_ITEMS_MAX;

	for (size_t i = 0; fits && i < value_count(content); i++)
		fits = is_item(value_item(content, i));
	return fits;
}

bool tool_add_content(struct tool_result *result, struct value *take_item)
{
	struct buf printed;
	bool fits = is_item(take_item) &&
		    value_count(result->content) < RESULT_CONTENT_ITEMS_MAX;

	buf_init(&printed, RESULT_CONTENT_BYTES_MAX);
	fits = fits &&
	       (result->content == NULL || value_print(result->content, 0, &printed)) &&
	       value_print(take_item, 0, &printed) && buf_adds(&printed, "[,]");
	buf_fini(&printed);
	if (!fits) {
		value_free(take_item);
		return false;
	}
	if (result->content == NULL)
		result->content = value_new_array();
	value_append(result->content, take_item);
	return true;
}

void tool_add_content_text(const struct value *content, struct buf *text)
{
	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *item = value_item(content, i);
		const struct value *resource = value_member(item, "resource");
		const struct value *place = resource != NULL ? resource : item;
		const struct value *words = value_member(place, "text");
		struct str type = value_str(value_member(item, "type"));
		struct str uri = value_str(value_member(place, "uri"));
		struct str mime = value_str(value_member(place, "mimeType"));

		(void)buf_end_line(text);
		if (!str_is(type, "text"))
			(void)buf_addf(text, "[%.*s%s%.*s%s%.*s]\n", (int)type.size,
				       type.data, uri.size > 0 ? " " : "", (int)uri.size,
				       uri.data, mime.size > 0 ? ", " : "",
				       (int)mime.size, mime.data);
		(void)buf_addstr(text, value_str(words));
	}
}

void tool_set_strength(struct value *object, struct sandbox_strength strength)
{
	value_set_integer(object, "level", strength.level);
	if (strength.level == SANDBOX_OPEN)
		value_set_boolean(object, "unfiltered", strength.unfiltered);
}

struct value *tool_result_value(const struct tool_result *result)
{
	struct value *object = value_new_object();
	struct value *left_out;

	value_set_text(object, "status", result_status_name(result->status));
	value_set_str(object, "text", buf_str(&result->text));
	if (value_count(result->content) > 0)
		value_set(object, "content", value_ref(result->content));
	if (result->exit_code >= 0)
		value_set_integer(object, "exit_code", result->exit_code);
	else
		value_set(object, "exit_code", value_new_null());
	if (result->signal > 0)
		value_set_integer(object, "signal", result->signal);
	value_set_real(object, "seconds", result->seconds);
	tool_set_strength(object, result->strength);
	left_out = value_new_object();
	value_set_integer(left_out, "bytes", (int64_t)result->left_out_bytes);
	value_set_integer(left_out, "lines", (int64_t)result->left_out_lines);
	value_set(object, "left_out", left_out);
	value_set(object, "details",
		  result->details ? value_copy(result->details) : value_new_object());
	return object;
}

static void visit_rows(const struct row *rows, const struct value *arguments,
		       void (*visit)(void *context, const char *path), void *context)
{
	for (; rows != NULL && rows->name != NULL; rows++) {
		const struct value *value = value_member(arguments, rows->name);

		if (rows->kind == ROW_PATH && value_text(value) != NULL)
			visit(context, value_text(value));
		for (size_t i = 0; rows->kind == ROW_LIST && i < value_count(value); i++)
			visit_rows(rows->rows, value_item(value, i), visit, context);
	}
}

void tool_visit_paths(const struct tool *tool, const struct value *arguments,
		      void (*visit)(void *context, const char *path), void *context)
{
	visit_rows(tool->params, arguments, visit, context);
	if (tool->visit_paths != NULL)
		tool->visit_paths(arguments, visit, context);
}

bool tool_is_served(const struct tool *tool)
{
	return !tool->internal && (tool->where != IN_FRONT || tool->keeper != NULL);
}

const struct tool *tool_find(const struct tool *const *tools, const char *name)
{
	for (const struct tool *const *at = tools; *at; at++) {
		if (strcmp((*at)->name, name) == 0)
			return *at;
	}
	for (const struct tool *const *at = tools; *at; at++) {
		if (str_among((*at)->aliases, str_of(name)))
			return *at;
	}
	return NULL;
}

const struct tool *tool_prepared(const struct tool *const *tools)
{
	while (*tools != NULL && (*tools)->prepare == NULL)
		tools++;
	return *tools;
}

const char *tool_nearest(const struct tool *const *tools, const char *name)
{
	auto_free const char **names = NULL;
	size_t count = 0, named = 0;

	while (tools[count] != NULL)
		count++;
	names = memory_array(count + 1, sizeof(names[0]));
	for (size_t i = 0; i < count; i++) {
		if (!tools[i]->internal)
			names[named++] = tools[i]->name;
	}
	return text_nearest(name, names);
}

enum { MICROSECONDS = 1000000 };

static void spent_put(const struct accounts *accounts, uint64_t spent[SPENT])
{
	spent[SPENT_CPU_US] = (uint64_t)(accounts->cpu_s * MICROSECONDS);
	spent[SPENT_USER_US] = (uint64_t)(accounts->cpu_user_s * MICROSECONDS);
	spent[SPENT_MEMORY] = accounts->memory_peak;
	spent[SPENT_WRITTEN] = accounts->written;
	spent[SPENT_READ] = accounts->read;
	spent[SPENT_PROCESSES] = accounts->processes_peak;
}

/* A worker that started no program counts nothing. */
static void spent_take(const uint64_t spent[SPENT], struct accounts *accounts)
{
	if (spent[SPENT_PROCESSES] == 0)
		return;
	*accounts = (struct accounts){
		.cpu_s = (double)spent[SPENT_CPU_US] / MICROSECONDS,
		.cpu_user_s = (double)spent[SPENT_USER_US] / MICROSECONDS,
		.memory_peak = spent[SPENT_MEMORY],
		.written = spent[SPENT_WRITTEN],
		.read = spent[SPENT_READ],
		.processes_peak = spent[SPENT_PROCESSES],
		.cpu = ACCOUNTS_RUSAGE,
		.memory = ACCOUNTS_SAMPLED,
		.io = ACCOUNTS_RUSAGE,
	};
}

bool tool_result_print(const struct tool_result *result, struct buf *out)
{
	size_t at = out->size;
	struct result_head head = {
		.left_out_bytes = result->left_out_bytes,
		.left_out_lines = result->left_out_lines,
		.exit_code = result->exit_code,
		.signal = result->signal,
		.status = result->status,
	};

	spent_put(&result->accounts, head.spent);
	if (!buf_add(out, &head, sizeof(head)))
		return false;
	if (buf_addstr(out, buf_str(&result->text)))
		head.sizes[RESULT_TEXT] = (uint32_t)result->text.size;
	head.sizes[RESULT_DETAILS] = frame_add_unless_empty(result->details, out);
	head.sizes[RESULT_CONTENT] = frame_add_unless_empty(result->content, out);
	head.sizes[RESULT_SEEN] = frame_add_unless_empty(result->seen, out);
	memcpy(out->data + at, &head, sizeof(head));
	return !out->overflowed;
}

/* A tool may pass on text that it has read, so bytes that are no UTF-8 become U+FFFD. */
static bool text_take(struct str part, struct buf *text)
{
	return text_is_utf8(part) ? buf_addstr(text, part) : value_syntax_mend(part, text);
}

static bool content_take(struct str part, struct value **content, struct err *err)
{
	if (part.size > RESULT_CONTENT_BYTES_MAX)
		return err_set(err, EPROTO, "content over %d bytes",
			       RESULT_CONTENT_BYTES_MAX);
	return frame_take_value(part, VALUE_ARRAY, content, err) &&
	       (*content == NULL || tool_content_fits(*content, part.size) ||
		err_set(err, EPROTO, "content that is no list of items"));
}

bool tool_result_parse(struct str payload, struct tool_result *result, struct err *err)
{
	struct str parts[RESULT_PARTS];
	struct result_head head;

	if (payload.size < sizeof(head))
		return err_set(err, EPROTO, "a result without its numbers");
	memcpy(&head, payload.data, sizeof(head));
	if (head.zero != 0 ||
	    !frame_split_parts(payload, sizeof(head), head.sizes, RESULT_PARTS, parts))
		return err_set(err, EPROTO, "a result whose parts do not fit");
	if (head.status > RESULT_CANCELLED)
		return err_set(err, EPROTO, "a result without a status");
	if (!text_take(parts[RESULT_TEXT], &result->text))
		return err_set(err, EPROTO, "a result over %d bytes", RESULT_TEXT_MAX);
	result->status = (enum result_status)head.status;
	result->exit_code = head.exit_code;
	result->signal = head.signal;
	result->left_out_bytes = head.left_out_bytes;
	result->left_out_lines = head.left_out_lines;
	spent_take(head.spent, &result->accounts);
	return (frame_take_value(parts[RESULT_DETAILS], VALUE_OBJECT, &result->details, err) &&
		content_take(parts[RESULT_CONTENT], &result->content, err) &&
		frame_take_value(parts[RESULT_SEEN], VALUE_OBJECT, &result->seen, err)) ||
	       err_while(err, "a result");
}
