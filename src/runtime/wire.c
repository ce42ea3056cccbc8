/* wire: heads and parts; see wire.h. */
#include "runtime/wire.h"

#include "base/text.h"
#include "base/value_syntax.h"

#include <errno.h>
#include <string.h>

enum call_part {
	CALL_TOOL,
	CALL_FOLDER,
	CALL_ARGUMENTS,
	CALL_ENVIRONMENT,
	CALL_CARRIED,
	CALL_PLAN,
	CALL_SEEN,
	CALL_UNFINISHED,
	CALL_NESTED,
	CALL_PARTS
};

enum call_flag {
	CALL_IS_LAST = 1,
	CALL_HERALDS = 2,
	CALL_AUDITS = 4,
	CALL_KEEPS_MEMORY = 8,
	CALL_KEEPS_PIDS = 16,
	CALL_HAS_JOURNAL = 32,
	CALL_TERSE = 64,
	CALL_ALONE = 128,
	CALL_WHOLE = 256, /* the audit's reach */
	CALL_ALL = 512,
};

struct call_head {
	int64_t deadline_ms;
	double timeout_s;
	int64_t quiet_ns;
	uint32_t flags; /* enum call_flag */
	uint32_t sizes[CALL_PARTS];
	uint32_t log; /* of what the call replaces; 0: none */
	uint32_t zero;
};

enum result_part {
	RESULT_TEXT,
	RESULT_DETAILS,
	RESULT_CONTENT,
	RESULT_SEEN,
	RESULT_PARTS
};

struct result_head {
	uint64_t left_out_bytes, left_out_lines;
	int32_t exit_code, signal;
	uint32_t status; /* enum result_status */
	uint32_t sizes[RESULT_PARTS];
	uint32_t zero;
};

/* Between members would lie bytes of whoever prints. */
_Static_assert(sizeof(struct call_head) == 36 + 4 * CALL_PARTS, "a gap in the head");
_Static_assert(sizeof(struct result_head) == 32 + 4 * RESULT_PARTS, "a gap in the head");

static uint32_t add_bytes(struct str bytes, struct buf *out)
{
	return buf_addstr(out, bytes) ? (uint32_t)bytes.size : 0;
}

static uint32_t add_text(const char *text, struct buf *out)
{
	return add_bytes((struct str){text, strlen(text) + 1}, out);
}

static uint32_t add_value(const struct value *value, struct buf *out)
{
	size_t before = out->size;

	if (value != NULL)
		(void)value_print(value, 0, out);
	return (uint32_t)(out->size - before);
}

static uint32_t add_unless_empty(const struct value *value, struct buf *out)
{
	return value_count(value) > 0 ? add_value(value, out) : 0;
}

static bool split(struct str payload, size_t head, const uint32_t *sizes, size_t count,
		  struct str *parts)
{
	struct str rest = str_part(payload, head, payload.size - head);

	for (size_t i = 0; i < count; i++) {
		if (sizes[i] > rest.size)
			return false;
		parts[i] = str_part(rest, 0, sizes[i]);
		rest = str_part(rest, sizes[i], rest.size - sizes[i]);
	}
	return rest.size == 0;
}

/* NULL when it does not end with its first NUL. */
static const char *text_of(struct str part)
{
	const char *end = part.size > 0 ? memchr(part.data, '\0', part.size) : NULL;

	return end != NULL && end == part.data + part.size - 1 ? part.data : NULL;
}

static bool value_take(struct str part, enum value_kind kind, struct value **value,
		       struct err *err)
{
	if (part.size == 0)
		return true;
	if (!value_parse(part, 0, value, err))
		return false;
	return value_kind(*value) == kind ||
	       err_set(err, EPROTO, "%s instead of %s",
		       value_kind_name(value_kind(*value)), value_kind_name(kind));
}

bool wire_print_call(const struct wire_call *call, struct buf *out)
{
	size_t at = out->size;
	struct call_head head = {
		.deadline_ms = call->deadline_ms,
		.timeout_s = call->timeout_s,
		.quiet_ns = call->quiet_ns,
		.log = call->log,
		.flags = (call->is_last ? CALL_IS_LAST : 0U) |
			 (call->heralds ? CALL_HERALDS : 0U) |
			 (call->audits ? CALL_AUDITS : 0U) |
			 (call->keeps_memory ? CALL_KEEPS_MEMORY : 0U) |
			 (call->keeps_pids ? CALL_KEEPS_PIDS : 0U) |
			 (call->has_journal ? CALL_HAS_JOURNAL : 0U) |
			 (call->terse ? CALL_TERSE : 0U) | (call->alone ? CALL_ALONE : 0U) |
			 (call->reach == AUDIT_WHOLE ? CALL_WHOLE : 0U) |
			 (call->reach == AUDIT_ALL ? CALL_ALL : 0U),
	};

	if (!buf_add(out, &head, sizeof(head)))
		return false;
	head.sizes[CALL_TOOL] = add_text(call->tool, out);
	head.sizes[CALL_FOLDER] = add_text(call->folder, out);
	head.sizes[CALL_ARGUMENTS] = add_value(call->arguments, out);
	head.sizes[CALL_ENVIRONMENT] = add_unless_empty(call->environment, out);
	head.sizes[CALL_CARRIED] = add_unless_empty(call->carried, out);
	head.sizes[CALL_PLAN] = add_unless_empty(call->plan, out);
	head.sizes[CALL_SEEN] = add_unless_empty(call->seen, out);
	head.sizes[CALL_UNFINISHED] = add_unless_empty(call->unfinished, out);
	head.sizes[CALL_NESTED] = add_unless_empty(call->nested, out);
	memcpy(out->data + at, &head, sizeof(head));
	return !out->overflowed;
}

static bool call_values(const struct str *parts, struct wire_call *call, struct err *err)
{
	return value_take(parts[CALL_ARGUMENTS], VALUE_OBJECT, &call->arguments, err) &&
	       value_take(parts[CALL_ENVIRONMENT], VALUE_ARRAY, &call->environment, err) &&
	       value_take(parts[CALL_CARRIED], VALUE_OBJECT, &call->carried, err) &&
	       value_take(parts[CALL_PLAN], VALUE_ARRAY, &call->plan, err) &&
	       value_take(parts[CALL_SEEN], VALUE_OBJECT, &call->seen, err) &&
	       value_take(parts[CALL_UNFINISHED], VALUE_ARRAY, &call->unfinished, err) &&
	       value_take(parts[CALL_NESTED], VALUE_OBJECT, &call->nested, err);
}

bool wire_parse_call(struct str payload, struct wire_call *call, struct err *err)
{
	struct str parts[CALL_PARTS];
	struct call_head head;

	if (payload.size < sizeof(head))
		return err_set(err, EPROTO, "a call without its numbers");
	memcpy(&head, payload.data, sizeof(head));
	if (head.zero != 0 || head.deadline_ms < 0 || head.quiet_ns < 0 ||
	    !(head.timeout_s >= 0) ||
	    !split(payload, sizeof(head), head.sizes, CALL_PARTS, parts))
		return err_set(err, EPROTO, "a call whose parts do not fit");
	*call = (struct wire_call){
		.tool = text_of(parts[CALL_TOOL]),
		.folder = text_of(parts[CALL_FOLDER]),
		.deadline_ms = head.deadline_ms,
		.timeout_s = head.timeout_s,
		.quiet_ns = head.quiet_ns,
		.log = head.log,
		.is_last = (head.flags & CALL_IS_LAST) != 0,
		.heralds = (head.flags & CALL_HERALDS) != 0,
		.audits = (head.flags & CALL_AUDITS) != 0,
		.keeps_memory = (head.flags & CALL_KEEPS_MEMORY) != 0,
		.keeps_pids = (head.flags & CALL_KEEPS_PIDS) != 0,
		.has_journal = (head.flags & CALL_HAS_JOURNAL) != 0,
		.terse = (head.flags & CALL_TERSE) != 0,
		.alone = (head.flags & CALL_ALONE) != 0,
		.reach = (head.flags & CALL_ALL) != 0     ? AUDIT_ALL
			 : (head.flags & CALL_WHOLE) != 0 ? AUDIT_WHOLE
							  : AUDIT_NEAR,
	};
	if (call->tool == NULL || call->folder == NULL)
		return err_set(err, EPROTO, "a call without tool or folder");
	if (call_values(parts, call, err))
		return true;
	wire_call_fini(call);
	return err_while(err, "a call");
}

bool wire_add_to_batch(struct str call, struct buf *batch)
{
	const uint32_t size = (uint32_t)call.size;

	return buf_add(batch, &size, sizeof(size)) && buf_addstr(batch, call);
}

bool wire_next_of_batch(struct str *rest, struct str *call)
{
	uint32_t size;

	if (rest->size < sizeof(size))
		return false;
	memcpy(&size, rest->data, sizeof(size));
	if (size > rest->size - sizeof(size))
		return false;
	*call = str_part(*rest, sizeof(size), size);
	*rest = str_part(*rest, sizeof(size) + size, SIZE_MAX);
	return true;
}

void wire_call_fini(struct wire_call *call)
{
	value_free(call->arguments);
	value_free(call->environment);
	value_free(call->carried);
	value_free(call->plan);
	value_free(call->seen);
	value_free(call->unfinished);
	value_free(call->nested);
	*call = (struct wire_call){0};
}

bool wire_print_result(const struct tool_result *result, struct buf *out)
{
	size_t at = out->size;
	struct result_head head = {
		.left_out_bytes = result->left_out_bytes,
		.left_out_lines = result->left_out_lines,
		.exit_code = result->exit_code,
		.signal = result->signal,
		.status = result->status,
	};

	if (!buf_add(out, &head, sizeof(head)))
		return false;
	head.sizes[RESULT_TEXT] = add_bytes(buf_str(&result->text), out);
	head.sizes[RESULT_DETAILS] = add_unless_empty(result->details, out);
	head.sizes[RESULT_CONTENT] = add_unless_empty(result->content, out);
	head.sizes[RESULT_SEEN] = add_unless_empty(result->seen, out);
	memcpy(out->data + at, &head, sizeof(head));
	return !out->overflowed;
}

/* A tool may hand on what it has read: what is no UTF-8 becomes U+FFFD. */
static bool text_take(struct str part, struct buf *text)
{
	return text_is_utf8(part) ? buf_addstr(text, part) : value_syntax_mend(part, text);
}

static bool content_take(struct str part, struct value **content, struct err *err)
{
	if (part.size > RESULT_CONTENT_BYTES_MAX)
		return err_set(err, EPROTO, "content over %d bytes",
			       RESULT_CONTENT_BYTES_MAX);
	return value_take(part, VALUE_ARRAY, content, err) &&
	       (*content == NULL || tool_content_fits(*content, part.size) ||
		err_set(err, EPROTO, "content that is no list of items"));
}

bool wire_parse_result(struct str payload, struct tool_result *result, struct err *err)
{
	struct str parts[RESULT_PARTS];
	struct result_head head;

	if (payload.size < sizeof(head))
		return err_set(err, EPROTO, "a result without its numbers");
	memcpy(&head, payload.data, sizeof(head));
	if (head.zero != 0 || !split(payload, sizeof(head), head.sizes, RESULT_PARTS, parts))
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
	return (value_take(parts[RESULT_DETAILS], VALUE_OBJECT, &result->details, err) &&
		content_take(parts[RESULT_CONTENT], &result->content, err) &&
		value_take(parts[RESULT_SEEN], VALUE_OBJECT, &result->seen, err)) ||
	       err_while(err, "a result");
}
