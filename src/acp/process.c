/* process: starts the process of a session, carries its lines, and ends it. */

#include "acp/process.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "process/loop.h"
#include "process/outbox.h"
#include "process/role.h"
#include "tool/event.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How our complaints begin (verb_complain). */
#define OWN_NAME "glovebox: "

enum {
	REQUEST_MAX = 16 << 20,
	READ_BYTES = 64 << 10,
	COMPLAINTS_MAX = 16 << 10, /* the newest bytes are kept */
	SENTENCE_MAX = 2 << 10,
};

const struct acp_command acp_commands[] = {
	{"diff", "Show what this conversation has changed", NULL},
	{"undo", "Take the last step back, or the step with this number", "number"},
	{0},
};

struct acp_process {
	struct acp_process_options options;
	struct watch events, complaints, end;
	struct outbox out;
	int input; /* our end of its standard input */
	struct buf line;
	struct buf said; /* its standard error */
	bool paused;
	int pidfd;  /* -1: it has ended */
	bool asked; /* it was asked to end */
};

static void take_line(struct acp_process *process, struct str text)
{
	auto_value struct value *line = NULL;

	if (value_parse(text, 0, &line, NULL))
		process->options.line(process->options.context, line);
}

/* False: the end was reached. */
static bool read_lines(struct acp_process *process)
{
	char bytes[READ_BYTES];
	const ssize_t got = read(process->events.fd, bytes, sizeof(bytes));
	struct str rest;

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	rest = (struct str){bytes, (size_t)got};
	while (buf_take_line(&process->line, &rest)) {
		if (!process->line.overflowed)
			take_line(process, buf_str(&process->line));
		buf_clear(&process->line);
	}
	return true;
}

static void events_ready(struct watch *watch, short events)
{
	(void)events;
	if (!read_lines(watch->context))
		loop_remove(watch);
}

/* The complaints of the process are a log for people, too. */
static bool read_complaints(struct acp_process *process)
{
	char bytes[1024];
	const ssize_t got = read(process->complaints.fd, bytes, sizeof(bytes));

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	(void)fd_write_all(STDERR_FILENO, bytes, (size_t)got, NULL);
	if (process->said.size + (size_t)got > COMPLAINTS_MAX)
		buf_remove(&process->said, 0,
			   process->said.size + (size_t)got - COMPLAINTS_MAX);
	(void)buf_add(&process->said, bytes, (size_t)got);
	return true;
}

static void complaints_ready(struct watch *watch, short events)
{
	(void)events;
	if (!read_complaints(watch->context))
		loop_remove(watch);
}

/* Is anything to be read on FD now? */
static bool is_ready(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, 0) > 0;
}

static void process_ended(struct watch *watch, short events)
{
	struct acp_process *process = watch->context;

	(void)events;
	/* A process that it has left behind may hold the pipes open: do not wait for their ends. */
	while (is_ready(process->events.fd) && read_lines(process))
		;
	while (is_ready(process->complaints.fd) && read_complaints(process))
		;
	loop_remove(&process->events);
	loop_remove(&process->complaints);
	loop_remove(&process->end);
	role_end(&process->pidfd, true);
	process->options.ended(process->options.context);
}

static void begin_watch(struct acp_process *process, struct watch *watch, int fd,
			void (*ready)(struct watch *watch, short events))
{
	*watch = (struct watch){.fd = fd, .events = POLLIN, .ready = ready, .context = process};
	loop_add(process->options.loop, watch);
}

static bool start_role(struct acp_process *process, int request, int events,
		       int complaints, int input, struct err *err)
{
	auto_close int self = -1;
	char numbers[ACP_PROCESS_ARGUMENTS - 1][ROLE_ARGUMENT];
	char *argv[ACP_PROCESS_ARGUMENTS + 1] = {(char *)(uintptr_t)ACP_PROCESS_ROLE};

	if (!role_self(&self, err))
		return false;
	const int fds[] = {request, events, complaints, input, self};
	const struct role role = {.argv = argv,
				  .fds = fds,
				  .fd_count = ACP_PROCESS_ARGUMENTS - 1};

	for (size_t i = 0; i < role.fd_count; i++) {
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
		argv[i + 1] = numbers[i];
	}
	return role_start(&role, &process->pidfd, err);
}

bool acp_process_start(const struct acp_process_options *options,
		       struct acp_process **process, struct err *err)
{
	struct acp_process *made = memory_alloc(sizeof(*made));
	int events[2] = {-1, -1}, complaints[2] = {-1, -1}, input[2] = {-1, -1};
	int request = -1;
	struct buf text;

	made->options = *options;
	made->pidfd = made->input = made->events.fd = made->complaints.fd = -1;
	buf_init(&made->line, EVENT_JSON_MAX);
	buf_init(&made->said, COMPLAINTS_MAX);
	buf_init(&text, REQUEST_MAX);
	const bool ok =
		(value_print(options->request, 0, &text) ||
		 err_set(err, E2BIG, "a request of more than %d MiB", REQUEST_MAX >> 20)) &&
		fd_memory_file("request", buf_str(&text), &request, err) &&
		fd_pipe(events, err) && fd_pipe(complaints, err) && fd_pipe(input, err) &&
		fd_set_blocking(events[0], false, err) &&
		fd_set_blocking(complaints[0], false, err) &&
		start_role(made, request, events[1], complaints[1], input[0], err);
	explicit_bzero(text.data, text.size);
	buf_fini(&text);
	fd_close(&request);
	fd_close(&events[1]);
	fd_close(&complaints[1]);
	fd_close(&input[0]);
	made->events.fd = events[0];
	made->complaints.fd = complaints[0];
	made->input = input[1];
	if (!ok) {
		acp_process_free(made);
		return err_while(err, "starting a session");
	}
	outbox_open(&made->out, options->loop, made->input, ACP_PROCESS_LINE_MAX);
	begin_watch(made, &made->events, made->events.fd, events_ready);
	begin_watch(made, &made->complaints, made->complaints.fd, complaints_ready);
	begin_watch(made, &made->end, made->pidfd, process_ended);
	*process = made;
	return true;
}

void acp_process_say(struct acp_process *process, const struct value *line)
{
	struct buf text;

	buf_init(&text, ACP_PROCESS_LINE_MAX);
	if (value_print(line, 0, &text))
		outbox_take_line(&process->out, &text);
	outbox_write(&process->out);
	buf_fini(&text);
}

static void signal_it(const struct acp_process *process, int number)
{
	if (process->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, process->pidfd, number, NULL, 0);
}

void acp_process_cancel(struct acp_process *process)
{
	if (!process->asked)
		signal_it(process, SIGINT);
}

void acp_process_ask_to_end(struct acp_process *process)
{
	if (!process->asked)
		signal_it(process, SIGTERM);
	process->asked = true;
}

void acp_process_pause(struct acp_process *process, bool paused)
{
	if (paused == process->paused || process->pidfd < 0)
		return;
	process->paused = paused;
	if (paused)
		loop_remove(&process->events);
	else
		loop_add(process->options.loop, &process->events);
}

void acp_process_why(const struct acp_process *process, struct buf *out)
{
	struct str said = str_trim(buf_str(&process->said));
	size_t at = said.size;

	while (at > 0 && said.data[at - 1] != '\n')
		at--;
	said = str_part(said, at, SENTENCE_MAX);
	if (str_starts(said, STR(OWN_NAME)))
		said = str_part(said, sizeof(OWN_NAME) - 1, SIZE_MAX);
	if (said.size > 0)
		(void)buf_addstr(out, said);
	else
		(void)buf_adds(out, "the process of the session ended without a word");
}

void acp_process_free(struct acp_process *process)
{
	if (process == NULL)
		return;
	loop_remove(&process->events);
	loop_remove(&process->complaints);
	loop_remove(&process->end);
	role_end(&process->pidfd, true);
	outbox_close(&process->out);
	fd_close(&process->input);
	fd_close(&process->events.fd);
	fd_close(&process->complaints.fd);
	buf_fini(&process->line);
	buf_fini(&process->said);
	free(process);
}
