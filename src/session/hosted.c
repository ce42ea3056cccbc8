/* hosted: the call that runs a program, and the pipes to the program. */

#include "session/hosted.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/value.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/tool.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_SIZE = 64 << 10,
	WAITING_MAX = 32 << 20,
	GIVEN_ERROR = 2, /* in `given`, where an index is the program's descriptor */
	GIVEN_PULSE = 3,
};

static void close_given(struct hosted *hosted)
{
	for (size_t i = 0; i < sizeof(hosted->given) / sizeof(hosted->given[0]); i++)
		fd_close(&hosted->given[i]);
}

static void close_pipes(struct hosted *hosted)
{
	struct watch *const watches[] = {&hosted->input, &hosted->output, &hosted->error};

	for (size_t i = 0; i < 3; i++) {
		loop_remove(watches[i]);
		fd_close(&watches[i]->fd);
	}
	close_given(hosted);
	fd_close(&hosted->pulse);
	buf_clear(&hosted->waiting);
}

/*
 * Close our copies of the program's ends of the pipes. Else we would never see the
 * program close them.
 */
static void give_away(struct hosted *hosted)
{
	if (hosted->running && running_is_sent(hosted->running))
		close_given(hosted);
}

/* The bytes that go and come. */

void hosted_write(struct hosted *hosted)
{
	struct buf *waiting = &hosted->waiting;

	while (waiting->size > 0) {
		const ssize_t size = write(hosted->input.fd, waiting->data, waiting->size);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == EAGAIN)
			break;
		/* The call that runs the program tells of its end. */
		if (size < 0)
			buf_clear(waiting);
		else
			buf_remove(waiting, 0, (size_t)size);
	}
	if (waiting->size > 0)
		loop_add(hosted->loop, &hosted->input);
	else
		loop_remove(&hosted->input);
}

static void input_ready(struct watch *watch, short events)
{
	(void)events;
	hosted_write(watch->context);
}

/* Read SIZE bytes at most. Returns how many came, 0 when none come any more, else -1. */
static ssize_t read_some(struct watch *watch, char *bytes, size_t size)
{
	const ssize_t got = read(watch->fd, bytes, size);

	give_away(watch->context);
	if (got >= 0)
		return got;
	return errno == EAGAIN || errno == EINTR ? -1 : 0;
}

static void output_ready(struct watch *watch, short events)
{
	const struct hosted *hosted = watch->context;
	char bytes[READ_SIZE];
	const ssize_t size = read_some(watch, bytes, sizeof(bytes));

	(void)events;
	if (size > 0) {
		hosted->options.said(hosted->options.owner,
				     (struct str){bytes, (size_t)size});
	} else if (size == 0) {
		loop_remove(watch);
		if (hosted->options.fell_silent)
			hosted->options.fell_silent(hosted->options.owner);
	}
}

static void error_ready(struct watch *watch, short events)
{
	struct buf *words = &((struct hosted *)watch->context)->words;
	char bytes[READ_SIZE];
	const ssize_t size = read_some(watch, bytes, sizeof(bytes));
	const size_t kept = size > HOSTED_WORDS_MAX ? HOSTED_WORDS_MAX
			    : size > 0              ? (size_t)size
						    : 0;

	(void)events;
	if (size == 0)
		loop_remove(watch);
	if (words->size + kept > HOSTED_WORDS_MAX)
		buf_remove(words, 0, words->size + kept - HOSTED_WORDS_MAX);
	(void)buf_add(words, bytes + (size > 0 ? (size_t)size - kept : 0), kept);
}

bool hosted_drain(struct hosted *hosted)
{
	struct watch *const watches[] = {&hosted->error, &hosted->output};
	const unsigned generation = hosted->generation;

	for (size_t i = 0; i < 2; i++) {
		struct pollfd news = {.fd = watches[i]->fd, .events = POLLIN};

		while (hosted->generation == generation && watches[i]->loop &&
		       poll(&news, 1, 0) > 0 && (news.revents & POLLIN) != 0)
			watches[i]->ready(watches[i], POLLIN);
	}
	return hosted->generation == generation && hosted_is_open(hosted);
}

/* Start and end. */

static void call_ended(void *context, struct running *running)
{
	struct hosted *hosted = context;

	/* A call that ends within its start is told of by hosted_start. */
	if (running != hosted->running || !hosted_is_open(hosted))
		return;
	close_given(hosted);
	hosted->options.ended(hosted->options.owner, running_result(running));
}

static bool open_pipe(int *ours, int *given, bool we_write, struct err *err)
{
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	*ours = ends[we_write];
	*given = ends[!we_write];
	return fd_set_blocking(*ours, false, err);
}

bool hosted_open(struct hosted *hosted, struct loop *loop, int take_error, struct err *err)
{
	hosted_stop(hosted);
	hosted->loop = loop;
	hosted->generation++;
	buf_clear(&hosted->words);
	hosted->given[GIVEN_ERROR] = take_error;
	if ((take_error < 0 &&
	     !open_pipe(&hosted->error.fd, &hosted->given[GIVEN_ERROR], false, err)) ||
	    !open_pipe(&hosted->input.fd, &hosted->given[0], true, err) ||
	    !open_pipe(&hosted->output.fd, &hosted->given[1], false, err) ||
	    (hosted->options.has_idle_time &&
	     !open_pipe(&hosted->pulse, &hosted->given[GIVEN_PULSE], true, err)))
		return false;
	loop_add(loop, &hosted->output);
	if (hosted->error.fd >= 0)
		loop_add(loop, &hosted->error);
	return true;
}

void hosted_start(struct hosted *hosted, struct session *session, struct value *arguments)
{
	struct request request = {.tool = hosted->exec.name,
				  .made = &hosted->exec,
				  .arguments = arguments,
				  .fd_count = GIVEN_PULSE + hosted->options.has_idle_time,
				  .by_front = true,
				  .quiet = true,
				  .timeout_s = -1};
	struct running *running;

	memcpy(request.fds, hosted->given, sizeof(request.fds));
	running = session_start(session, &request, call_ended, hosted);
	hosted->running = running;
	/* A call that has ended already could not be started. */
	if (running_is_done(running))
		call_ended(hosted, running);
}

bool hosted_is_open(const struct hosted *hosted)
{
	return hosted->output.fd >= 0;
}

void hosted_cancel(struct hosted *hosted)
{
	close_pipes(hosted);
	if (hosted->running)
		running_cancel(hosted->running);
}

void hosted_stop(struct hosted *hosted)
{
	close_pipes(hosted);
	running_free(hosted->running);
	hosted->running = NULL;
}

void hosted_end_input(struct hosted *hosted)
{
	loop_remove(&hosted->input);
	fd_close(&hosted->input.fd);
}

void hosted_use(struct hosted *hosted)
{
	/* A full pipe has told its worker already. */
	if (hosted->pulse >= 0)
		(void)!write(hosted->pulse, "", 1);
}

void hosted_init(struct hosted *hosted, const struct hosted_options *options)
{
	*hosted = (struct hosted){
		.options = *options,
		.no_schema = value_new_object(),
		.given = {[0 ... CALL_FDS_MAX - 1] = -1},
		.pulse = -1,
		.input = {.fd = -1, .events = POLLOUT, .ready = input_ready},
		.output = {.fd = -1, .events = POLLIN, .ready = output_ready},
		.error = {.fd = -1, .events = POLLIN, .ready = error_ready},
	};
	hosted->input.context = hosted->output.context = hosted->error.context = hosted;
	hosted->exec = (struct tool){.name = options->name,
				     .schema = hosted->no_schema,
				     .carrier = "exec",
				     .carried = options->carried,
				     .effects = EFFECT_RUNS,
				     .internal = true};
	buf_init(&hosted->waiting, WAITING_MAX);
	buf_init(&hosted->words, HOSTED_WORDS_MAX);
}

void hosted_fini(struct hosted *hosted)
{
	hosted_stop(hosted);
	value_free(hosted->no_schema);
	buf_fini(&hosted->waiting);
	buf_fini(&hosted->words);
}

/* Its last words. */

struct str hosted_words(const struct hosted *hosted)
{
	return str_trim(buf_str(&hosted->words));
}

void hosted_add_end(const struct tool_result *result, const char *failed, struct buf *why)
{
	struct str said = str_trim(buf_str(&result->text));

	/* The text goes into the middle of a sentence. */
	if (str_ends(said, STR(".")))
		said.size--;
	if (result->signal != 0)
		(void)buf_addf(why, "was ended by signal %d", result->signal);
	else if (result->status == RESULT_DONE)
		(void)buf_addf(why, "ended with exit code %d", result->exit_code);
	else
		(void)buf_addf(why, "%s: %.*s", failed,
			       (int)(said.size < HOSTED_WORDS_MAX ? said.size
								  : HOSTED_WORDS_MAX),
			       said.data);
}
