/* caller: reads the lines of the caller, and writes answers, notices and requests. */

#include "serve/caller.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "process/outbox.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_BYTES = 64 << 10,
	SENTENCE_MAX = 4 << 10,
	ID_MAX = 32,
};

/* The names of enum caller_kind on the wire, and their codes. */
static const struct {
	const char *name;
	int code;
} kinds[] = {
	[CALLER_USAGE] = {"usage", MCP_CODE_PARAMS},
	[CALLER_NO_SUCH] = {"no_such", -32001},
	[CALLER_SET_UP] = {"set_up", -32002},
	[CALLER_DENIED] = {"denied", -32003},
	[CALLER_LIMIT] = {"limit", -32004},
	[CALLER_CLOSED] = {"closed", -32005},
	[CALLER_BUSY] = {"busy", -32011},
	[CALLER_UNAVAILABLE] = {"unavailable", MCP_CODE_INTERNAL},
	[CALLER_CANCELLED] = {NULL, -32800},
};

enum caller_kind caller_kind_of(int error)
{
	switch (error) {
	case 0:
		return CALLER_UNAVAILABLE;
	case ENOENT:
		return CALLER_NO_SUCH;
	case ECHILD:
		return CALLER_SET_UP;
	case EACCES:
	case EPERM:
	case EROFS:
	/* A name that only git writes, and one that other agents run (files/files.h). */
	case EKEYREJECTED:
	case EKEYREVOKED:
		return CALLER_DENIED;
	case EFBIG:
	case ENOSPC:
	case EDQUOT:
	case EMFILE:
	case ENFILE:
		return CALLER_LIMIT;
	case EAGAIN:
		return CALLER_BUSY;
	default:
		return CALLER_USAGE;
	}
}

/* Messages to the caller. */

static void send_message(struct caller *caller, struct value *take_message)
{
	struct buf line;

	buf_init(&line, CALLER_OUTPUT_MAX);
	if (!caller->bare)
		value_set_text(take_message, "jsonrpc", "2.0");
	if (value_print(take_message, 0, &line))
		outbox_take_line(&caller->out, &line);
	else
		caller->out.gone = ENOBUFS;
	buf_fini(&line);
	value_free(take_message);
}

void caller_answer(struct caller *caller, const struct value *id, struct value *take_result)
{
	struct value *message = value_new_object();

	value_set(message, "id", value_copy(id));
	value_set(message, "result", take_result);
	send_message(caller, message);
}

/* The remedy of ERROR, of the kernel, where nobody has named one; NULL: none is known. */
static const char *remedy_of(int error)
{
	switch (error) {
	case EMFILE:
		return "close cells, or begin the engine with a higher limit of open files "
		       "(ulimit -n); a used cell has about 12, and 7 for a program";
	case ENFILE:
		return "close cells, or raise the machine's limit of open files (sysctl "
		       "fs.file-max)";
	default:
		return NULL;
	}
}

static struct value *data_of(const struct caller_fault *fault)
{
	const char *remedy =
		fault->remedy != NULL ? fault->remedy : remedy_of(fault->error);
	struct value *data = value_new_object();
	const char *error = fault->error > 0 ? strerrorname_np(fault->error) : NULL;

	value_set_text(data, "kind", kinds[fault->kind].name);
	if (fault->rule != NULL)
		value_set_text(data, "rule", fault->rule);
	if (remedy != NULL)
		value_set_text(data, "remedy", remedy);
	if (error != NULL)
		value_set_text(data, "error", error);
	if (fault->known != NULL)
		value_set(data, "known", value_ref(fault->known));
	return data;
}

void caller_refuse(struct caller *caller, const struct value *id,
		   const struct caller_fault *fault, const char *format, ...)
{
	struct value *message = value_new_object(), *error = value_new_object();
	char sentence[SENTENCE_MAX];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	value_set_integer(error, "code",
			  fault->code != 0 ? fault->code : kinds[fault->kind].code);
	value_set_text(error, "message", sentence);
	if (!caller->bare && kinds[fault->kind].name != NULL)
		value_set(error, "data", data_of(fault));
	value_set(message, "id", id != NULL ? value_copy(id) : value_new_null());
	value_set(message, "error", error);
	send_message(caller, message);
}

int64_t caller_tell(struct caller *caller, const char *method, struct value *take_params,
		    bool asks)
{
	struct value *message = value_new_object();
	char id[ID_MAX];

	if (asks) {
		(void)snprintf(id, sizeof(id), CALLER_ASKS "%" PRId64, ++caller->asked);
		value_set_text(message, "id", id);
	}
	value_set_text(message, "method", method);
	value_set(message, "params", take_params);
	send_message(caller, message);
	return asks ? caller->asked : 0;
}

int64_t caller_answered(const struct mcp_message *message)
{
	const char *id = value_text(message->id);

	if (message->kind != MCP_RESPONSE || id == NULL ||
	    strncmp(id, CALLER_ASKS, sizeof(CALLER_ASKS) - 1) != 0)
		return 0;
	return (int64_t)strtoll(id + sizeof(CALLER_ASKS) - 1, NULL, 10);
}

bool caller_reads(const struct caller *caller)
{
	return outbox_size(&caller->out) < CALLER_UNREAD_MAX;
}

/* Messages from the caller. */

/*
 * Only read here. The lines are taken between two turns of the loop, because a session
 * turns the loop itself while it is opened.
 */
static void reading_ready(struct watch *watch, short events)
{
	struct caller *caller = watch->context;
	char *room = buf_reserve(&caller->in, READ_BYTES);
	ssize_t n;

	(void)events;
	n = room != NULL ? read(caller->input, room, READ_BYTES) : 0;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	loop_remove(watch); /* until these bytes are taken */
	if (n > 0)
		buf_commit(&caller->in, (size_t)n);
	else
		caller->life = CALLER_ENDED;
}

/*
 * MESSAGE could not be read. Is it meant to answer a request of ours? Then the one who waits
 * for the answer is told, and not the caller, who waits for none.
 */
static bool is_broken_answer(struct mcp_message *message)
{
	const char *id = value_text(message->id);

	if (id == NULL || strncmp(id, CALLER_ASKS, sizeof(CALLER_ASKS) - 1) != 0 ||
	    value_member(message->whole, "method") != NULL)
		return false;
	message->kind = MCP_RESPONSE;
	message->method = NULL;
	message->params = message->result = message->error = NULL;
	return true;
}

/* MESSAGE could not be read. Is it an error about no request of ours in particular? */
static bool is_refusal(struct mcp_message *message)
{
	const struct value *error = value_member(message->whole, "error");

	if (value_kind(error) != VALUE_OBJECT ||
	    value_kind(value_member(message->whole, "id")) != VALUE_NULL ||
	    value_member(message->whole, "method") != NULL)
		return false;
	message->kind = MCP_RESPONSE;
	message->id = NULL;
	message->method = NULL;
	message->params = message->result = NULL;
	message->error = error;
	return true;
}

static bool read_message(const struct caller *caller, struct str line,
			 struct mcp_message *message, struct err *err)
{
	auto_value struct value *whole = NULL;

	if (!caller->bare)
		return mcp_message_read(line, message, err) ||
		       is_broken_answer(message) || is_refusal(message);
	memset(message, 0, sizeof(*message));
	if (!value_parse(line, VALUE_HALVES | VALUE_WIDE, &whole, err)) {
		err->code = MCP_CODE_PARSE;
		return false;
	}
	if (value_kind(whole) == VALUE_OBJECT) {
		value_set_text(whole, "jsonrpc", "2.0");
		if (value_kind(value_member(whole, "id")) == VALUE_NULL)
			value_remove(whole, "id");
	}
	return mcp_message_of(whole, message, err);
}

/* Read LINE, which is whole. False: it is no message, and was answered. */
static bool read_line(struct caller *caller, struct str line, struct mcp_message *message)
{
	struct err err = {0};

	if (str_trim(line).size == 0)
		return false;
	if (read_message(caller, line, message, &err))
		return true;
	caller_refuse(caller, message->id,
		      &(struct caller_fault){.kind = CALLER_USAGE, .code = err.code},
		      "%s", err.text);
	mcp_message_fini(message);
	return false;
}

static void refuse_long_line(struct caller *caller)
{
	caller->skipping = true;
	caller_refuse(caller, NULL,
		      &(struct caller_fault){.kind = CALLER_USAGE,
					     .code = caller->bare ? MCP_CODE_INVALID
								  : MCP_CODE_PARSE},
		      "A message may have %d bytes: send the content in pieces.",
		      CALLER_LINE_MAX);
}

bool caller_next(struct caller *caller, struct mcp_message *message)
{
	struct str rest = str_part(buf_str(&caller->in), caller->in_from, SIZE_MAX);
	bool found = false;

	while (!found && rest.size > 0 && caller_reads(caller)) {
		/* A line that was too long has left its mark until the buffer is cleared. */
		const bool whole = buf_take_line(&caller->line, &rest);

		if (caller->line.overflowed && !caller->skipping)
			refuse_long_line(caller);
		if (!whole)
			break;
		found = !caller->skipping &&
			read_line(caller, buf_str(&caller->line), message);
		caller->skipping = false;
		if (caller->line.capacity > READ_BYTES)
			buf_fini(&caller->line);
		buf_clear(&caller->line);
	}
	caller->in_from = caller->in.size - rest.size;
	if (rest.size == 0) {
		buf_clear(&caller->in);
		caller->in_from = 0;
	}
	return found;
}

void caller_settle(struct caller *caller)
{
	outbox_write(&caller->out);
	/* The words that the peer has sent before it went may say why. */
	if (caller->out.gone != 0 && caller->life == CALLER_TALKS && caller->in.size == 0)
		reading_ready(&caller->reading, POLLIN);
	if (caller->out.gone != 0)
		caller->life = CALLER_LOST;
	if (caller->life == CALLER_TALKS && caller->in.size == 0 && caller_reads(caller))
		loop_add(caller->loop, &caller->reading);
	else
		loop_remove(&caller->reading);
}

void caller_open(struct caller *caller, struct loop *loop, int input, int output)
{
	memset(caller, 0, sizeof(*caller));
	caller->loop = loop;
	caller->input = input;
	/* One read fits while no earlier byte is left. */
	buf_init(&caller->in, READ_BYTES);
	buf_init(&caller->line, CALLER_LINE_MAX);
	outbox_open(&caller->out, loop, output, CALLER_OUTPUT_MAX);
	caller->reading = (struct watch){.fd = input,
					 .events = POLLIN,
					 .ready = reading_ready,
					 .context = caller};
	loop_add(loop, &caller->reading);
}

void caller_close(struct caller *caller)
{
	loop_remove(&caller->reading);
	outbox_close(&caller->out);
	buf_fini(&caller->in);
	buf_fini(&caller->line);
}
