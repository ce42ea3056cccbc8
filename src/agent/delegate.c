/* delegate: a process, its two pipes, and its end. */
#include "agent/delegate.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "process/role.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	READ_AT_ONCE = 64 << 10,
	/* Turns of the loop belong to others, too. */
	READS_A_TURN = 16,
	COMPLAINTS_MAX = 4 << 10,
	REQUEST_MAX = 16 << 20,
	/* Less than a pipe takes at once (PIPE_BUF). */
	ANSWER_MAX = 4 << 10,
};

struct delegate {
	struct delegate_options options;
	struct delegate_report report;
	struct watch events, complaints, end;
	int answers; /* our end */
	int pidfd;
	bool asked;      /* a second time it would end without its record */
	struct buf said; /* on standard error */
	struct err fault;
	bool faulty;
	int status; /* si_status: an exit code or a signal */
	bool killed;
};

const struct delegate_report *delegate_report_of(const struct delegate *delegate)
{
	return &delegate->report;
}

const char *delegate_fault(const struct delegate *delegate)
{
	return delegate->faulty ? delegate->fault.text : NULL;
}

static void signal_it(const struct delegate *delegate, int number)
{
	(void)syscall(SYS_pidfd_send_signal, delegate->pidfd, number, NULL, 0);
}

void delegate_answer(struct delegate *delegate, const char *call, int64_t id,
		     const struct value *answer)
{
	auto_value struct value *line = value_copy(answer);
	struct buf text;

	value_set_text(line, "call", call);
	value_set_integer(line, "id", id);
	buf_init(&text, ANSWER_MAX);
	/* It reads all the time; one whose pipe is full has stopped to. */
	if (value_print(line, 0, &text) && buf_addc(&text, '\n') && delegate->answers >= 0)
		(void)!write(delegate->answers, text.data, text.size);
	buf_fini(&text);
}

void delegate_ask_to_end(struct delegate *delegate)
{
	if (delegate->pidfd >= 0 && !delegate->asked)
		signal_it(delegate, SIGTERM);
	delegate->asked = true;
}

/*
 * DELEGATE printed lines that our program does not print: kill it and read no more of it.
 */
static void be_faulty(struct delegate *delegate)
{
	delegate->faulty = true;
	loop_remove(&delegate->events);
	signal_it(delegate, SIGKILL);
}

/* Up to READS_A_TURN reads; false when nothing more will come. */
static bool read_events(struct delegate *delegate)
{
	auto_free char *bytes = memory_alloc(READ_AT_ONCE);

	for (int i = 0; i < READS_A_TURN && !delegate->faulty; i++) {
		ssize_t got = read(delegate->events.fd, bytes, READ_AT_ONCE);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN;
		if (got == 0)
			return false;
		if (!delegate_report_take(&delegate->report,
					  (struct str){bytes, (size_t)got},
					  &delegate->fault))
			be_faulty(delegate);
		if (got < READ_AT_ONCE)
			return true;
	}
	return true;
}

static void events_ready(struct watch *watch, short events)
{
	struct delegate *delegate = watch->context;

	(void)events;
	if (!read_events(delegate))
		loop_remove(watch);
}

/* Keep the beginning of the delegate's standard error; read and drop the rest. */
static void complaints_ready(struct watch *watch, short events)
{
	struct delegate *delegate = watch->context;
	char bytes[1024];
	ssize_t got = read(watch->fd, bytes, sizeof(bytes));

	(void)events;
	if (got > 0) {
		const size_t room = COMPLAINTS_MAX - delegate->said.size;

		(void)buf_add(&delegate->said, bytes,
			      (size_t)got < room ? (size_t)got : room);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		loop_remove(watch);
	}
}

/* Its last complaint, on one line, as it may stand in a sentence. */
static void add_complaint(const struct delegate *delegate, struct buf *out)
{
	struct str rest = str_trim(buf_str(&delegate->said)), line, last = {0};

	while (str_next_line(&rest, &line)) {
		if (str_trim(line).size > 0)
			last = str_trim(line);
	}
	if (str_starts(last, STR("glovebox: ")))
		last = str_part(last, strlen("glovebox: "), last.size);
	if (last.size == 0)
		return;
	last.size = text_character_border(last, 400);
	(void)buf_adds(out, ": ");
	text_add_name(out, last);
}

static void judge_end(struct delegate *delegate)
{
	struct buf why;

	if (delegate->faulty || (delegate->report.ended && !delegate->killed))
		return;
	buf_init(&why, ERR_TEXT_MAX);
	add_complaint(delegate, &why);
	delegate->faulty = true;
	if (delegate->killed)
		(void)err_set(&delegate->fault, ECHILD,
			      "it was ended by signal %d before it had reported",
			      delegate->status);
	else
		(void)err_set(&delegate->fault, ECHILD,
			      "it ended with exit code %d before it had reported%s",
			      delegate->status, why.data);
	buf_fini(&why);
}

/* Its exit is taken, and what still lies in its pipes read. */
static void gather(struct delegate *delegate)
{
	siginfo_t info = {0};

	while (waitid(P_PIDFD, (id_t)delegate->pidfd, &info, WEXITED | __WALL) < 0 &&
	       errno == EINTR)
		;
	fd_close(&delegate->pidfd);
	loop_remove(&delegate->end);
	loop_remove(&delegate->complaints);
	delegate->status = info.si_status;
	delegate->killed = info.si_code != CLD_EXITED;
	while (!delegate->faulty && delegate->events.fd >= 0) {
		struct pollfd left = {.fd = delegate->events.fd, .events = POLLIN};

		/*
		 * The delegate has ended, so nothing more can arrive: read until empty.
		 */
		if (poll(&left, 1, 0) <= 0 || !(left.revents & POLLIN) ||
		    !read_events(delegate))
			break;
	}
	loop_remove(&delegate->events);
	complaints_ready(&delegate->complaints, POLLIN);
	delegate_report_end(&delegate->report);
	judge_end(delegate);
}

static void process_ended(struct watch *watch, short events)
{
	struct delegate *delegate = watch->context;

	(void)events;
	gather(delegate);
	delegate->options.ended(delegate->options.context, delegate);
}

void delegate_end(struct delegate *delegate, int64_t until_ms)
{
	if (delegate->pidfd < 0)
		return;
	delegate_ask_to_end(delegate);
	while (delegate->pidfd >= 0) {
		struct pollfd watched[] = {
			{.fd = delegate->pidfd, .events = POLLIN},
			{.fd = delegate->faulty ? -1 : delegate->events.fd, .events = POLLIN},
		};
		const int64_t now_ms = clock_now_ms();

		if (now_ms >= until_ms ||
		    poll(watched, 2, clock_poll_timeout(until_ms)) == 0) {
			signal_it(delegate, SIGKILL);
			gather(delegate);
			return;
		}
		if (watched[0].revents != 0)
			gather(delegate);
		else if (watched[1].revents != 0 && !read_events(delegate))
			fd_close(&delegate->events.fd);
	}
}

static void begin_watch(struct delegate *delegate, struct watch *watch, int *take_fd,
			void (*ready)(struct watch *watch, short events))
{
	*watch = (struct watch){.fd = fd_take(take_fd),
				.events = POLLIN,
				.ready = ready,
				.context = delegate};
	loop_add(delegate->options.loop, watch);
}

static bool start_role(struct delegate *delegate, int request, int events, int complaints,
		       int answers, struct err *err)
{
	auto_close int self = -1;
	char numbers[DELEGATE_ARGUMENTS - 1][ROLE_ARGUMENT];
	char *argv[DELEGATE_ARGUMENTS + 1] = {(char *)(uintptr_t)DELEGATE_ROLE};

	if (!role_self(&self, err))
		return false;
	const int fds[] = {request, events, complaints, answers, self};
	const struct role role = {.argv = argv,
				  .fds = fds,
				  .fd_count = DELEGATE_ARGUMENTS - 1};

	for (size_t i = 0; i < role.fd_count; i++) {
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
		argv[i + 1] = numbers[i];
	}
	return role_start(&role, &delegate->pidfd, err);
}

bool delegate_start(const struct delegate_options *options, struct delegate **delegate,
		    struct err *err)
{
	int events[2] = {-1, -1}, complaints[2] = {-1, -1}, answers[2] = {-1, -1};
	int request = -1;
	struct delegate *made = memory_alloc(sizeof(*made));
	struct buf text;
	bool ok;

	made->options = *options;
	made->pidfd = made->events.fd = made->complaints.fd = made->end.fd = -1;
	made->answers = -1;
	delegate_report_init(&made->report);
	made->report.show = options->show;
	made->report.used = options->used;
	made->report.context = options->context;
	buf_init(&made->said, COMPLAINTS_MAX);
	buf_init(&text, REQUEST_MAX);
	ok = (value_print(options->request, 0, &text) ||
	      err_set(err, E2BIG, "a request of more than %d MiB", REQUEST_MAX >> 20)) &&
	     fd_memory_file("request", buf_str(&text), &request, err) &&
	     fd_pipe(events, err) && fd_pipe(complaints, err) && fd_pipe(answers, err) &&
	     fd_set_blocking(answers[1], false, err) &&
	     fd_set_blocking(events[0], false, err) &&
	     fd_set_blocking(complaints[0], false, err) &&
	     start_role(made, request, events[1], complaints[1], answers[0], err);
	explicit_bzero(text.data, text.size);
	buf_fini(&text);
	fd_close(&request);
	fd_close(&events[1]);
	fd_close(&complaints[1]);
	fd_close(&answers[0]);
	made->answers = fd_take(&answers[1]);
	if (!ok) {
		fd_close(&events[0]);
		fd_close(&complaints[0]);
		delegate_free(made);
		return err_while(err, "starting a delegate");
	}
	begin_watch(made, &made->events, &events[0], events_ready);
	begin_watch(made, &made->complaints, &complaints[0], complaints_ready);
	made->end = (struct watch){.fd = made->pidfd,
				   .events = POLLIN,
				   .ready = process_ended,
				   .context = made};
	loop_add(options->loop, &made->end);
	*delegate = made;
	return true;
}

void delegate_free(struct delegate *delegate)
{
	if (!delegate)
		return;
	delegate_end(delegate, 0);
	loop_remove(&delegate->events);
	loop_remove(&delegate->complaints);
	loop_remove(&delegate->end);
	fd_close(&delegate->events.fd);
	fd_close(&delegate->complaints.fd);
	fd_close(&delegate->answers);
	delegate_report_fini(&delegate->report);
	buf_fini(&delegate->said);
	free(delegate);
}
