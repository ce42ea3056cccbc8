/*
 * call: what a tool may use while it runs in a worker: progress, questions, output,
 * arguments, spill files.
 */

#include "tool/call.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "process/follow.h"
#include "process/frame.h"
#include "tool/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sends progress, logs, output and questions of a call to the front. */

static void tell(const struct call *call, const struct value *what)
{
	struct pollfd writable = {.fd = call->control_fd, .events = POLLOUT};
	struct buf text;

	/* As in call_output: drop the message when the front does not take it in time. */
	if (call->control_fd < 0 || poll(&writable, 1, 0) != 1 ||
	    (writable.revents & POLLOUT) == 0)
		return;
	buf_init(&text, TELL_MAX);
	if (value_print(what, 0, &text))
		(void)frame_send(call->control_fd, FRAME_TELL, buf_str(&text), NULL, 0,
				 CLOCK_NEVER, NULL);
	buf_fini(&text);
}

const struct field tell_progress_fields[] = {
	FIELD(struct tell_report, progress),
	FIELD(struct tell_report, total, .optional = true),
	FIELD(struct tell_report, text, .optional = true),
	{0},
};

const struct field tell_line_fields[] = {
	FIELD(struct tell_report, level),
	FIELD(struct tell_report, logger, .optional = true),
	FIELD(struct tell_report, text, .optional = true),
	{0},
};

void call_progress(struct call *call, double progress, double total, const char *message)
{
	const struct tell_report report = {progress, total > 0 ? total : 0,
					   .text = str_of(message)};
	auto_value struct value *what = fields_print(tell_progress_fields, &report);

	tell(call, what);
}

void call_log(struct call *call, const char *level, const char *logger, struct str text)
{
	const struct tell_report report = {.text = text,
					   .level = str_of(level),
					   .logger = str_of(logger)};
	auto_value struct value *what = fields_print(tell_line_fields, &report);

	tell(call, what);
}

bool call_ask(struct call *call, const char *kind, const struct value *request)
{
	const struct tell_question question = {.id = call->question + 1,
					       .kind = kind,
					       .request = value_copy(request)};
	struct buf text;
	bool ok = call->control_fd >= 0 && call->reader != NULL && !call->awaits_reply &&
		  !call->cancelled;

	buf_init(&text, TELL_QUESTION_MAX);
	ok = ok && call_tell_print_question(&question, &text) &&
	     frame_send(call->control_fd, FRAME_QUESTION, buf_str(&text), NULL, 0,
			call->deadline_ms, NULL);
	buf_fini(&text);
	value_free(question.request);
	if (ok) {
		call->question = question.id;
		call->awaits_reply = true;
	}
	return ok;
}

/*
 * Read the control socket of CALL, which waits for a reply. Anything but the reply
 * cancels CALL.
 */
static void call_read_control(struct call *call)
{
	struct value *answer;
	struct frame frame;
	int64_t id;

	if (call->reader == NULL || !frame_fill(call->reader, call->control_fd, NULL) ||
	    call->reader->ended) {
		call->cancelled = true;
		return;
	}
	while (!call->cancelled && frame_next(call->reader, &frame)) {
		if (frame.kind != FRAME_REPLY || frame.fd_count > 0 || !call->awaits_reply ||
		    !call_tell_parse_reply(frame.payload, &id, &answer, NULL)) {
			call->cancelled = true;
		} else {
			call->awaits_reply = false;
			value_free(call->reply);
			call->reply = answer;
		}
	}
}

struct value *call_take_reply(struct call *call)
{
	struct pollfd control = {.fd = call->control_fd, .events = POLLIN};
	struct value *reply;

	if (call->awaits_reply && !call->cancelled && poll(&control, 1, 0) > 0)
		call_read_control(call);
	reply = call->reply;
	call->reply = NULL;
	return reply;
}

/*
 * Ask the socket at most this often, so that call_stopped is cheap enough for every
 * file of a walk.
 */
enum { STOP_CHECK_MS = 5 };

bool call_stopped(struct call *call)
{
	int64_t now = clock_now_ms();
	struct pollfd control = {.fd = call->control_fd, .events = POLLIN};

	if (call->cancelled || now >= call->deadline_ms)
		return true;
	if (now < call->next_check_ms)
		return false;
	call->next_check_ms = now + STOP_CHECK_MS;
	/*
	 * The data may be a question, which the run of the program will read
	 * (ask_next).
	 */
	if (call->reader != NULL && call->tool->answers)
		return false;
	/*
	 * While a call runs, the front sends only a cancel, or the reply that the call
	 * waits for, or closes the socket.
	 */
	if (call->control_fd >= 0 && poll(&control, 1, 0) > 0) {
		if (call->awaits_reply)
			call_read_control(call);
		else
			call->cancelled = true;
	}
	return call->cancelled;
}

enum result_status call_stop_result(struct call *call, struct tool_result *result)
{
	if (call->cancelled) {
		(void)tool_fail(result, "Cancelled before it was finished.");
		result->status = RESULT_CANCELLED;
	} else {
		(void)tool_fail(result,
				"Not finished in time. Narrow it down (a smaller path or range), "
				"or ask for a longer timeout where the tool has one.");
		result->status = RESULT_TIMED_OUT;
	}
	return result->status;
}

void call_ending(struct call *call)
{
	if (call->heralds && call->control_fd >= 0)
		(void)frame_send(call->control_fd, FRAME_ENDING, (struct str){"", 0},
				 NULL, 0, CLOCK_NEVER, NULL);
	call->heralds = false;
}

void call_output(struct call *call, enum call_stream stream, struct str bytes)
{
	/*
	 * Output events are only for display: drop one that the front does not take in
	 * time, and never wait.
	 */
	enum frame_kind kind = stream == CALL_STDERR ? FRAME_STDERR : FRAME_STDOUT;
	struct pollfd writable = {.fd = call->control_fd, .events = POLLOUT};

	if (call->control_fd < 0 || bytes.size == 0)
		return;
	if (bytes.size > CALL_FRAGMENT_MAX)
		bytes = str_part(bytes, bytes.size - CALL_FRAGMENT_MAX, CALL_FRAGMENT_MAX);
	if (poll(&writable, 1, 0) == 1 && (writable.revents & POLLOUT) != 0)
		(void)frame_send(call->control_fd, kind, bytes, NULL, 0, CLOCK_NEVER, NULL);
}

const char *call_seen(const struct call *call, const char *path)
{
	return value_text(value_member(call->seen, path));
}

void call_saw(struct tool_result *result, const char *path, const char *mark)
{
	if (result->seen == NULL)
		result->seen = value_new_object();
	value_set_text(result->seen, path, mark);
}

void call_set_folder(struct call *call, struct tool_result *result, const char *folder)
{
	(void)call;
	if (result->seen == NULL)
		result->seen = value_new_object();
	value_set_text(result->seen, CALL_FOLDER_KEY, folder);
}

const char *call_text(const struct call *call, const char *name)
{
	return value_text(value_member(call->arguments, name));
}

struct str call_str(const struct call *call, const char *name)
{
	return value_str(value_member(call->arguments, name));
}

int64_t call_count(const struct call *call, const char *name, int64_t absent)
{
	const struct value *value = value_member(call->arguments, name);

	return value_is_number(value) ? value_integer(value) : absent;
}

bool call_flag(const struct call *call, const char *name)
{
	return value_is_true(value_member(call->arguments, name));
}

static bool same_name(const char *a, const char *b)
{
	size_t length = strcspn(a, "=");

	return strncmp(a, b, length + 1) == 0;
}

const char **call_environment(const char *const *cell, const struct value *more)
{
	size_t count = 0, own = 0;

	while (cell[own] != NULL)
		own++;
	const char **list = memory_array(own + value_count(more) + 1, sizeof(list[0]));
	for (size_t i = 0; i < own; i++) {
		bool replaced = false;
		for (size_t j = 0; j < value_count(more) && !replaced; j++) {
			const char *text = value_text(value_item(more, j));
			replaced = text != NULL && same_name(cell[i], text);
		}
		if (!replaced)
			list[count++] = cell[i];
	}
	for (size_t j = 0; j < value_count(more); j++) {
		const char *text = value_text(value_item(more, j));
		if (text != NULL)
			list[count++] = text;
	}
	return list;
}

/* Makes, numbers and removes spill files. */

enum {
	/* so many other processes may take the same number at the same moment */
	SPILL_TRIES = 64,
	SPILL_NAME = 32,
};

const char *spill_folder(const char *const *environment, struct buf *path)
{
	const char *base = "/tmp";

	for (; environment != NULL && *environment != NULL; environment++) {
		if (strncmp(*environment, "TMPDIR=/", 8) == 0)
			base = *environment + 7;
	}
	(void)buf_addf(path, "%s/glovebox", base);
	return path->data;
}

static int spill_open_folder(const char *folder)
{
	/*
	 * Do not follow a link that a command has put there. The commands write only
	 * with their own rights.
	 */
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(folder, flags);

	if (fd < 0 && errno == ENOENT && (mkdir(folder, 0777) == 0 || errno == EEXIST))
		fd = open(folder, flags);
	return fd;
}

int spill_open(const char *folder)
{
	auto_close int folder_fd = spill_open_folder(folder);

	if (folder_fd < 0)
		return -1;
	return openat(folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

/* The number of "N.log", 0 for any other name. */
static long spill_number(const char *name)
{
	char *end;
	long number = strtol(name, &end, 10);

	if (name[0] < '1' || name[0] > '9' || number > INT32_MAX || end[0] != '.' ||
	    end[1] != 'l' || end[2] != 'o' || end[3] != 'g' || end[4] != '\0')
		return 0;
	return number;
}

/* Returns the highest number that exists, and removes files up to the number DROP. */
static long spill_scan(int folder_fd, long drop)
{
	DIR *dir = fd_open_names(folder_fd);
	long highest = 0;

	if (!dir)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		long number = spill_number(entry->d_name);

		if (number > highest)
			highest = number;
		if (number > 0 && number <= drop)
			(void)unlinkat(folder_fd, entry->d_name, 0);
	}
	(void)closedir(dir);
	return highest;
}

bool spill_keep(int fd, const char *folder, struct buf *path)
{
	auto_close int folder_fd = spill_open_folder(folder);
	long number;

	if (folder_fd < 0)
		return false;
	number = spill_scan(folder_fd, 0) + 1;
	for (int i = 0; i < SPILL_TRIES; i++, number++) {
		char name[SPILL_NAME];

		(void)snprintf(name, sizeof(name), "%ld.log", number);
		if (fd_link(fd, folder_fd, name)) {
			if (number > SPILL_KEPT)
				(void)spill_scan(folder_fd, number - SPILL_KEPT);
			return buf_addf(path, "%s/%s", folder, name);
		}
		if (errno != EEXIST)
			return false;
	}
	return false;
}

void spill_add(struct spill *spill, struct str bytes)
{
	size_t fits = bytes.size;
	struct buf folder;

	if (!spill->tried && bytes.size > 0) {
		buf_init(&folder, PATH_MAX);
		spill->fd = spill_open(spill_folder(spill->environment, &folder));
		buf_fini(&folder);
		spill->tried = true;
	}
	if (spill->fd < 0 || spill->dropped > 0 || spill->kept >= PROGRAM_SPILL)
		fits = 0;
	else if (fits > PROGRAM_SPILL - spill->kept)
		fits = (size_t)(PROGRAM_SPILL - spill->kept);
	if (fits > 0 && !fd_write_all(spill->fd, bytes.data, fits, NULL))
		fits = 0;
	spill->kept += fits;
	spill->dropped += bytes.size - fits;
}

bool spill_name(const struct spill *spill, struct buf *path)
{
	struct buf folder;
	bool named;

	buf_init(&folder, PATH_MAX);
	named = spill->kept > 0 &&
		spill_keep(spill->fd, spill_folder(spill->environment, &folder), path);
	buf_fini(&folder);
	return named;
}

/* Prints and reads questions and replies as JSON. */

static bool is_kind(const char *kind)
{
	struct str name = str_of(kind);

	return str_among("form url " CALL_ASK_SAMPLING " roots several", name);
}

bool call_tell_print_question(const struct tell_question *question, struct buf *out)
{
	return buf_addf(out, "{\"id\":%lld,\"kind\":", (long long)question->id) &&
	       value_quote(str_of(question->kind), out) && buf_adds(out, ",\"request\":") &&
	       value_print(question->request, 0, out) && buf_addc(out, '}');
}

bool call_tell_parse_question(struct str text, struct tell_question *question,
			      struct value **object, struct err *err)
{
	struct value *parsed = NULL;

	if (text.size > TELL_QUESTION_MAX)
		return err_set(err, EPROTO, "a question over %d bytes", TELL_QUESTION_MAX);
	if (!value_parse(text, 0, &parsed, err))
		return err_while(err, "a question");
	*question = (struct tell_question){
		.id = value_integer(value_member(parsed, "id")),
		.kind = value_text(value_member(parsed, "kind")),
		.request = value_member(parsed, "request"),
	};
	if (question->id > 0 && is_kind(question->kind) &&
	    value_kind(question->request) == VALUE_OBJECT) {
		*object = parsed;
		return true;
	}
	value_free(parsed);
	return err_set(err, EPROTO, "a question without id, kind or request");
}

bool call_tell_is_answer(const struct value *answer)
{
	struct str action = value_str(value_member(answer, "action"));

	return value_kind(answer) == VALUE_OBJECT &&
	       (str_is(action, "accept") || str_is(action, "decline") ||
		str_is(action, "cancel"));
}

bool call_tell_print_reply(int64_t id, const struct value *answer, struct buf *out)
{
	return buf_addf(out, "{\"id\":%lld,\"answer\":", (long long)id) &&
	       value_print(answer, 0, out) && buf_addc(out, '}');
}

bool call_tell_parse_reply(struct str text, int64_t *id, struct value **answer,
			   struct err *err)
{
	auto_value struct value *parsed = NULL;

	if (!value_parse(text, 0, &parsed, err))
		return err_while(err, "a reply");
	if (!call_tell_is_answer(value_member(parsed, "answer")))
		return err_set(err, EPROTO, "a reply without an answer");
	*id = value_integer(value_member(parsed, "id"));
	*answer = value_ref(value_member(parsed, "answer"));
	return true;
}

/* Prints and reads questions to a job, and answers them in the worker. */

bool ask_print(const struct ask *ask, struct buf *out)
{
	(void)buf_addf(out,
		       "{\"job\":%" PRId64 ",\"reads\":%s,\"since\":%" PRId64
		       ",\"signal\":%d",
		       ask->job, ask->reads ? "true" : "false", ask->since, ask->signal);
	if (ask->input.data != NULL) {
		(void)buf_adds(out, ",\"input\":");
		(void)value_quote(ask->input, out);
	}
	(void)buf_addc(out, '}');
	return !out->overflowed;
}

bool ask_parse(struct str text, struct ask *ask, struct err *err)
{
	struct value *object;
	const struct value *input;

	if (!value_parse(text, 0, &object, err))
		return err_while(err, "a question to a call");
	input = value_member(object, "input");
	*ask = (struct ask){
		.job = value_integer(value_member(object, "job")),
		.reads = value_is_true(value_member(object, "reads")),
		.since = value_integer(value_member(object, "since")),
		.input = input != NULL ? value_str(input) : (struct str){0},
		.signal = (int)value_integer(value_member(object, "signal")),
		.object = object,
	};
	if (ask->job > 0)
		return true;
	ask_fini(ask);
	return err_set(err, EPROTO, "a question to a call that is no job");
}

void ask_fini(struct ask *ask)
{
	value_free(ask->object);
	*ask = (struct ask){0};
}

bool ask_next(struct call *call, struct ask *ask)
{
	struct frame frame;

	if (call->reader == NULL) {
		(void)call_stopped(call);
		return false;
	}
	if (call->cancelled)
		return false;
	if (!frame_fill(call->reader, call->control_fd, NULL) || call->reader->ended) {
		call->cancelled = true;
		return false;
	}
	if (!frame_next(call->reader, &frame))
		return false;
	if (frame.kind == FRAME_ASK && frame.fd_count == 0 &&
	    ask_parse(frame.payload, ask, NULL))
		return true;
	call->cancelled = true;
	return false;
}

void ask_answer(const struct call *call, const struct tool_result *result)
{
	struct buf text;

	buf_init(&text, FRAME_MAX);
	if (tool_result_print(result, &text))
		(void)frame_send(call->control_fd, FRAME_ANSWER, buf_str(&text), NULL, 0,
				 CLOCK_NEVER, NULL);
	buf_fini(&text);
}

void ask_tell_waiting(const struct call *call)
{
	if (call->control_fd >= 0)
		(void)frame_send(call->control_fd, FRAME_WAITS, (struct str){"", 0}, NULL,
				 0, CLOCK_NEVER, NULL);
}
