/*
 * step: what a task may wait for is its engine, for the time that it has left. Bytes pass in
 * pieces of PIECE_BYTES, so that a line of the wire has room for them as Base64.
 */

#include "fleet/steps/step.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "fleet/client.h"
#include "fleet/work.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PIECE_BYTES = 4 << 20,   /* as Base64 a third of a line of the wire */
	JOURNAL_MAX = 256 << 20, /* bytes; what comes later is left out */
	TOLD_MAX = 4 << 10,      /* bytes of a line that somebody who looks on gets */
	OUTPUT_KEPT = 256 << 10, /* bytes of each output of a command that are kept */
	SAID_MAX = 232, /* bytes of its last line in a sentence; escaped, four times that */
	ANSWER_S = 15, /* for the answer, when a command has used all its time */
};

bool fleet_steps_init(struct fleet_steps *steps, const struct fleet_work *work,
		      double seconds, bool journal, struct err *err)
{
	*steps = (struct fleet_steps){.work = work,
				      .due_ms = clock_deadline(seconds),
				      .journal = -1};
	if (journal)
		steps->journal = fleet_steps_file(err);
	return !journal || steps->journal >= 0;
}

void fleet_steps_fini(struct fleet_steps *steps)
{
	fd_close(&steps->journal);
}

void fleet_steps_begin(struct fleet_steps *steps, double seconds)
{
	steps->due_ms = clock_deadline(seconds);
	steps->time = "the time of the task (limits.wall_s)";
}

bool fleet_steps_end(struct fleet_steps *steps, enum fleet_status status,
		     const char *format, ...)
{
	va_list arguments;

	if (steps->ended)
		return false;
	steps->ended = true;
	steps->status = status;
	va_start(arguments, format);
	(void)vsnprintf(steps->said, sizeof(steps->said), format, arguments);
	va_end(arguments);
	return false;
}

bool fleet_steps_refused(struct fleet_steps *steps, const struct fleet_refusal *refusal)
{
	static const struct {
		const char *kind;
		enum fleet_status status;
	} kinds[] = {
		{"cancelled", FLEET_CANCELLED}, {"timed_out", FLEET_TIMED_OUT},
		{"denied", FLEET_DENIED},       {"closed", FLEET_SET_UP},
		{"set_up", FLEET_SET_UP},       {"busy", FLEET_SET_UP},
	};
	enum fleet_status status = steps->runs ? FLEET_FAILED : FLEET_SET_UP;

	if (steps->runs && strcmp(refusal->kind, "limit") == 0)
		status = FLEET_LIMIT;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(refusal->kind, kinds[i].kind) == 0)
			status = kinds[i].status;
	}
	if (!steps->ended)
		steps->cell_lost = fleet_steps_is_loss(refusal);
	return fleet_steps_end(steps, status, "%s", refusal->err.text);
}

bool fleet_steps_is_loss(const struct fleet_refusal *refusal)
{
	static const char *const kinds[] = {"closed", "set_up", "busy", "unavailable"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(refusal->kind, kinds[i]) == 0)
			return true;
	}
	return false;
}

bool fleet_steps_cancelled(const struct fleet_steps *steps)
{
	const bool *cancel = steps->work->cancel;

	return cancel != NULL && __atomic_load_n(cancel, __ATOMIC_ACQUIRE);
}

double fleet_steps_left(const struct fleet_steps *steps)
{
	const int64_t left = steps->due_ms - clock_now_ms();

	return left > 0 ? (double)left / 1000 : 0;
}

/* Make a call that the task's end does not forbid, and that has MORE seconds than the task. */
static bool call(struct fleet_steps *steps, const char *method, struct value *params,
		 double more, struct value **answer, struct fleet_refusal *refusal)
{
	const double left = fleet_steps_left(steps) + more;
	bool ok = false;

	*refusal = (struct fleet_refusal){.kind = "timed_out"};
	if (left > 0)
		ok = fleet_client_call(steps->work->client, method, params, left,
				       steps->work->cancel, answer, refusal);
	else
		value_free(params);
	if (ok || strcmp(refusal->kind, "timed_out") != 0)
		return ok;
	return err_set(&refusal->err, ETIMEDOUT, "%s: %s is over", method, steps->time);
}

bool fleet_steps_call(struct fleet_steps *steps, const char *method, struct value *params,
		      struct value **answer)
{
	struct fleet_refusal refusal;

	if (!steps->ended)
		return call(steps, method, params, 0, answer, &refusal) ||
		       fleet_steps_refused(steps, &refusal);
	value_free(params);
	return false;
}

/* The journal. */

void fleet_steps_note(struct fleet_steps *steps, struct value *take_line)
{
	const struct fleet_work *work = steps->work;
	struct buf line;
	struct err err;

	if (steps->journal < 0 && work->tell == NULL) {
		value_free(take_line);
		return;
	}
	if (value_member(take_line, "time_ms") == NULL)
		value_set_integer(take_line, "time_ms", clock_wall_ms());
	buf_init(&line, JOURNAL_MAX);
	if (value_print(take_line, 0, &line)) {
		if (work->tell != NULL && line.size <= TOLD_MAX)
			work->tell(work->context, line.data);
		(void)buf_addc(&line, '\n');
		if (steps->journal >= 0 && steps->journal_size + line.size <= JOURNAL_MAX &&
		    fd_write_all(steps->journal, line.data, line.size, &err))
			steps->journal_size += line.size;
	}
	buf_fini(&line);
	value_free(take_line);
}

/* Commands. */

void fleet_ran_fini(struct fleet_ran *ran)
{
	buf_fini(&ran->said);
	buf_fini(&ran->output);
}

/*
 * Append the last line of TEXT that is not blank. Of a long one the beginning and the end are
 * said: a program names a path first, and what is wrong with it last.
 */
static void add_last_line(struct str text, struct buf *said)
{
	size_t from;

	text = str_trim(text);
	from = text.size;
	while (from > 0 && text.data[from - 1] != '\n')
		from--;
	text = str_part(text, from, text.size);
	if (text.size > SAID_MAX) {
		text_add_name(said, str_part(text, 0,
					     text_character_border(text, SAID_MAX / 2)));
		(void)buf_adds(said, " … ");
		from = text_character_border(text, text.size - SAID_MAX / 2);
		text = str_part(text, from, text.size);
	}
	text_add_name(said, text);
}

/* Move the member NAME of ANSWER, Base64, to OUT as bytes, and to NOTE as text. */
static void take_output(const struct value *answer, const char *name, struct value *note,
			struct buf *out)
{
	if (!buf_base64_read(value_str(value_member(answer, name)), out))
		return;
	value_set_str(note, name, buf_str(out));
}

/* Say in RAN how the command has ended by ANSWER, and note it as STEP. */
static void take_end(struct fleet_steps *steps, const char *step, const char *command,
		     const struct value *answer, struct fleet_ran *ran)
{
	static const char *const members[] = {"exit",    "signal",  "timed_out",
					      "seconds", "limit",   "denials",
					      "message", "dropped", "accounts",
					      NULL};
	const struct value *signal = value_member(answer, "signal");
	const struct value *code = value_member(answer, "exit");
	const char *limit = value_text(value_member(answer, "limit"));
	const char *message = value_text(value_member(answer, "message"));
	struct value *note = value_new_object();
	struct buf errors;

	value_set_text(note, "step", step);
	if (command != NULL)
		value_set_text(note, "command", command);
	value_set_members(note, answer, members);
	buf_init(&errors, OUTPUT_KEPT);
	take_output(answer, "stdout", note, &ran->output);
	take_output(answer, "stderr", note, &errors);
	fleet_steps_note(steps, note);
	ran->code = value_kind(signal) == VALUE_INTEGER ? 128 + (int)value_integer(signal)
		    : value_kind(code) == VALUE_INTEGER ? (int)value_integer(code)
							: 126;
	ran->timed_out = value_is_true(value_member(answer, "timed_out"));
	(void)snprintf(ran->limit, sizeof(ran->limit), "%s", limit != NULL ? limit : "");
	if (message != NULL)
		add_last_line(str_of(message), &ran->said);
	else if (str_trim(buf_str(&errors)).size > 0)
		add_last_line(buf_str(&errors), &ran->said);
	else
		add_last_line(buf_str(&ran->output), &ran->said);
	buf_fini(&errors);
}

bool fleet_steps_run(struct fleet_steps *steps, const char *cell, const char *step,
		     const char *const *argv, const char *cwd, struct fleet_ran *ran)
{
	struct value *params = value_new_object();
	auto_value struct value *answer = NULL;
	struct fleet_refusal refusal;
	const char *command = NULL;
	double left = fleet_steps_left(steps);

	*ran = (struct fleet_ran){0};
	buf_init(&ran->said, 4 * (SAID_MAX + 8));
	buf_init(&ran->output, OUTPUT_KEPT);
	/* Of the task's own `bash -c TEXT`; our texts tell nobody anything. */
	if (argv[1] != NULL && argv[2] != NULL && argv[3] == NULL)
		command = argv[2];
	value_set_text(params, "cell", cell);
	value_set(params, "argv", value_new_texts(argv));
	if (cwd != NULL)
		value_set_text(params, "cwd", cwd);
	value_set_real(params, "timeout_s", left > 0 ? left : 1);
	value_set_integer(params, "keep", OUTPUT_KEPT);
	if (steps->ended || left <= 0) {
		value_free(params);
		return fleet_steps_end(steps, FLEET_TIMED_OUT,
				       "the time of the task is over");
	}
	if (!call(steps, "exec/run", params, ANSWER_S, &answer, &refusal))
		return fleet_steps_refused(steps, &refusal);
	take_end(steps, step, command, answer, ran);
	return true;
}

/* Files and trees. */

int fleet_steps_file(struct err *err)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder != NULL && folder[0] == '/' ? folder : "/tmp",
		      O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	/* Some file systems have no such files. */
	if (fd < 0)
		fd = memfd_create("fleet", MFD_CLOEXEC);
	if (fd < 0)
		(void)err_set(err, errno, "a temporary file: %s", strerror(errno));
	return fd;
}

/* Append the member `bytes` of ANSWER to FD; COUNT is how many there were. */
static bool keep_bytes(const struct value *answer, int fd, size_t *count, struct err *err)
{
	struct buf bytes;
	bool ok;

	buf_init(&bytes, (size_t)PIECE_BYTES + 3);
	ok = buf_base64_read(value_str(value_member(answer, "bytes")), &bytes) ||
	     err_set(err, EPROTO, "the engine has sent no bytes");
	ok = ok && fd_write_all(fd, bytes.data, bytes.size, err);
	*count = bytes.size;
	buf_fini(&bytes);
	return ok;
}

bool fleet_steps_fetch(struct fleet_steps *steps, const char *cell, const char *path,
		       uint64_t max, int fd, struct fleet_refusal *refusal)
{
	uint64_t offset = 0;
	bool ended = false;

	while (!ended) {
		struct value *params = value_new_object();
		auto_value struct value *answer = NULL;
		size_t count = 0;

		value_set_text(params, "cell", cell);
		value_set_text(params, "path", path);
		value_set_integer(params, "offset", (int64_t)offset);
		value_set_integer(params, "size", PIECE_BYTES);
		if (!call(steps, "file/read", params, 0, &answer, refusal))
			return false;
		*refusal = (struct fleet_refusal){.kind = "limit"};
		if ((uint64_t)value_integer(value_member(answer, "size")) > max)
			return err_set(&refusal->err, EFBIG,
				       "%s has more than %" PRIu64 " MiB", path, max >> 20);
		if (!keep_bytes(answer, fd, &count, &refusal->err))
			return false;
		offset += count;
		ended = count == 0 || value_is_true(value_member(answer, "end"));
		if (offset > max)
			return err_set(&refusal->err, EFBIG,
				       "%s has more than %" PRIu64 " MiB", path, max >> 20);
	}
	return true;
}

bool fleet_steps_put_tree(struct fleet_steps *steps, const char *cell, int fd)
{
	auto_free char *room = memory_alloc(PIECE_BYTES);
	int64_t offset = 0, tree = -1;
	struct stat st;
	bool ok = fstat(fd, &st) == 0, last = false;

	while (ok && !last) {
		const ssize_t n = pread(fd, room, PIECE_BYTES, (off_t)offset);
		struct value *params = value_new_object();
		auto_value struct value *answer = NULL;
		struct buf bytes;

		buf_init(&bytes, 2 * (size_t)PIECE_BYTES);
		(void)buf_base64_add((struct str){room, n > 0 ? (size_t)n : 0}, &bytes);
		last = n <= 0 || offset + n >= st.st_size;
		value_set_text(params, "cell", cell);
		value_set_str(params, "bytes", buf_str(&bytes));
		value_set_boolean(params, "last", last);
		if (tree >= 0) {
			value_set_integer(params, "tree", tree);
			value_set_integer(params, "offset", offset);
		}
		buf_fini(&bytes);
		ok = fleet_steps_call(steps, "tree/put", params, &answer);
		if (tree < 0)
			tree = value_integer(value_member(answer, "tree"));
		offset += n > 0 ? n : 0;
	}
	return ok || fleet_steps_end(steps, FLEET_SET_UP,
				     "the archive cannot be read: %s", strerror(errno));
}

bool fleet_steps_get_tree(struct fleet_steps *steps, const char *cell, int fd)
{
	int64_t offset = 0, tree = -1;
	bool ok = true, ended = false;
	struct err err;

	while (ok && !ended) {
		struct value *params = value_new_object();
		auto_value struct value *answer = NULL;
		size_t count = 0;

		value_set_text(params, "cell", cell);
		value_set_integer(params, "size", PIECE_BYTES);
		if (tree >= 0) {
			value_set_integer(params, "tree", tree);
			value_set_integer(params, "offset", offset);
		}
		ok = fleet_steps_call(steps, "tree/get", params, &answer);
		if (ok && !keep_bytes(answer, fd, &count, &err))
			ok = fleet_steps_end(steps, FLEET_SET_UP, "%s", err.text);
		if (tree < 0)
			tree = value_integer(value_member(answer, "tree"));
		offset += (int64_t)count;
		ended = count == 0 || value_is_true(value_member(answer, "end"));
	}
	return ok;
}
