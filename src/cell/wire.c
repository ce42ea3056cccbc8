/* wire: prints and reads the heads and parts of calls. */
#include "cell/wire.h"

#include "process/frame.h"

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
	CALL_SECRETS,
	CALL_NESTED,
	CALL_PARTS
};

enum call_flag {
	CALL_IS_LAST = 1,
	CALL_HERALDS = 2,
	CALL_AUDITS = 4,
	CALL_KEEPS_MEMORY = 8,
	CALL_KEEPS_PIDS = 16,
	CALL_HAS_LOG = 32,
	CALL_TERSE = 64,
	CALL_ALONE = 128,
};

struct call_head {
	int64_t deadline_ms;
	double timeout_s;
	int64_t quiet_ns;
	uint32_t flags; /* enum call_flag */
	uint32_t sizes[CALL_PARTS];
	uint32_t log;   /* number of the log of the call; 0: it is no step */
	uint32_t reach; /* enum guard_walk */
	uint32_t zero;  /* the size of the head is a multiple of eight */
};

/* A gap between members would send uninitialized bytes of the sender. */
_Static_assert(sizeof(struct call_head) == 40 + 4 * CALL_PARTS, "a gap in the head");

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
			 (call->has_log ? CALL_HAS_LOG : 0U) |
			 (call->terse ? CALL_TERSE : 0U) | (call->alone ? CALL_ALONE : 0U),
		.reach = call->reach,
	};

	if (!buf_add(out, &head, sizeof(head)))
		return false;
	head.sizes[CALL_TOOL] = frame_add_text(call->tool, out);
	head.sizes[CALL_FOLDER] = frame_add_text(call->folder, out);
	head.sizes[CALL_ARGUMENTS] = frame_add_value(call->arguments, out);
	head.sizes[CALL_ENVIRONMENT] = frame_add_unless_empty(call->environment, out);
	head.sizes[CALL_CARRIED] = frame_add_unless_empty(call->carried, out);
	head.sizes[CALL_PLAN] = frame_add_unless_empty(call->plan, out);
	head.sizes[CALL_SEEN] = frame_add_unless_empty(call->seen, out);
	head.sizes[CALL_UNFINISHED] = frame_add_unless_empty(call->unfinished, out);
	head.sizes[CALL_SECRETS] = frame_add_unless_empty(call->secrets, out);
	if (call->nested.count > 0) {
		auto_value struct value *nested = value_new_object();
		marks_print(&call->nested, nested);
		head.sizes[CALL_NESTED] = frame_add_unless_empty(nested, out);
	}
	memcpy(out->data + at, &head, sizeof(head));
	return !out->overflowed;
}

static bool nested_take(struct str part, struct wire_call *call, struct err *err)
{
	auto_value struct value *value = NULL;

	if (!frame_take_value(part, VALUE_OBJECT, &value, err))
		return false;
	marks_parse(value, &call->nested);
	return true;
}

static bool call_values(const struct str *parts, struct wire_call *call, struct err *err)
{
	return frame_take_value(parts[CALL_ARGUMENTS], VALUE_OBJECT, &call->arguments, err) &&
	       frame_take_value(parts[CALL_ENVIRONMENT], VALUE_ARRAY, &call->environment,
				err) &&
	       frame_take_value(parts[CALL_CARRIED], VALUE_OBJECT, &call->carried, err) &&
	       frame_take_value(parts[CALL_PLAN], VALUE_ARRAY, &call->plan, err) &&
	       frame_take_value(parts[CALL_SEEN], VALUE_OBJECT, &call->seen, err) &&
	       frame_take_value(parts[CALL_UNFINISHED], VALUE_OBJECT, &call->unfinished,
				err) &&
	       frame_take_value(parts[CALL_SECRETS], VALUE_OBJECT, &call->secrets, err) &&
	       nested_take(parts[CALL_NESTED], call, err);
}

bool wire_parse_call(struct str payload, struct wire_call *call, struct err *err)
{
	struct str parts[CALL_PARTS];
	struct call_head head;

	if (payload.size < sizeof(head))
		return err_set(err, EPROTO, "a call without its numbers");
	memcpy(&head, payload.data, sizeof(head));
	if (head.reach > GUARD_UNDO || head.deadline_ms < 0 || head.quiet_ns < 0 ||
	    !(head.timeout_s >= 0) ||
	    !frame_split_parts(payload, sizeof(head), head.sizes, CALL_PARTS, parts))
		return err_set(err, EPROTO, "a call whose parts do not fit");
	*call = (struct wire_call){
		.tool = frame_text_of(parts[CALL_TOOL]),
		.folder = frame_text_of(parts[CALL_FOLDER]),
		.deadline_ms = head.deadline_ms,
		.timeout_s = head.timeout_s,
		.quiet_ns = head.quiet_ns,
		.log = head.log,
		.is_last = (head.flags & CALL_IS_LAST) != 0,
		.heralds = (head.flags & CALL_HERALDS) != 0,
		.audits = (head.flags & CALL_AUDITS) != 0,
		.keeps_memory = (head.flags & CALL_KEEPS_MEMORY) != 0,
		.keeps_pids = (head.flags & CALL_KEEPS_PIDS) != 0,
		.has_log = (head.flags & CALL_HAS_LOG) != 0,
		.terse = (head.flags & CALL_TERSE) != 0,
		.alone = (head.flags & CALL_ALONE) != 0,
		.reach = (enum guard_walk)head.reach,
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
	value_free(call->secrets);
	marks_fini(&call->nested);
	*call = (struct wire_call){0};
}
