/*
 * wrapped: the run of a task by somebody's own agent. Our own program is started as a person
 * would start it. Its two outputs are kept in part, and are read until it has ended, so that it
 * never waits for us.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "fleet/client.h"
#include "fleet/steps/site.h"
#include "fleet/steps/step.h"
#include "fleet/task.h"
#include "fleet/work.h"
#include "process/program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WORDS_MAX = 4096, /* of its command line, as the engine takes for a program */
	OUTPUT_KEPT = 256 << 10, /* of each output, as of a command in the cell */
	READ_BYTES = 64 << 10,
	LOOK_MS = 250,        /* to hear that the task was cancelled */
	GRACE_MS = 10 * 1000, /* between TERM and KILL; its cell ends in the meantime */
	LAST_MAX = 1600,      /* bytes of the last line, a quarter before its marks */
	CODE_DENIED = 4,      /* exit codes of `wrap` itself */
	CODE_NO_CELL = 125,
	CODE_NOT_FOUND = 127,
};

struct words {
	const char *list[WORDS_MAX + 1];
	size_t count;
};

static void add(struct words *words, const char *word)
{
	if (words->count < WORDS_MAX)
		words->list[words->count++] = word;
}

/* Add an option for each entry of LIST. */
static void add_each(struct words *words, const char *option, const struct value *list)
{
	for (size_t i = 0; i < value_count(list); i++) {
		add(words, option);
		add(words, value_text(value_item(list, i)));
	}
}

/* All that the policy of the task gives to a program is given to this one. */
static void add_rights(struct words *words, const struct value *policy)
{
	add_each(words, "--allow-host", value_member(policy, "network"));
	add_each(words, "--read", value_member(policy, "read"));
	add_each(words, "--env", value_member(policy, "env"));
	add_each(words, "--credential", value_member(policy, "credentials"));
}

/* The limits that `wrap` has options for. A number is written to TEXTS. */
static void add_limits(struct words *words, const struct value *limits, char texts[][32])
{
	static const char *const names[][2] = {{"memory", "--memory"},
					       {"pids", "--pids"},
					       {"cpus", "--cpus"},
					       {"io_write", "--io-write"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct value *limit = value_member(limits, names[i][0]);

		if (limit == NULL)
			continue;
		if (value_is_number(limit))
			(void)snprintf(texts[i], sizeof(texts[i]), "%.15g",
				       value_number(limit));
		add(words, names[i][1]);
		add(words, value_is_number(limit) ? texts[i] : value_text(limit));
	}
}

/* A program that was started, and what it has written so far. */
struct wrapped {
	pid_t pid;
	int pidfd, ends[2];
	struct buf kept[2];
	uint64_t dropped;
};

static bool start(struct wrapped *wrapped, const struct words *words, struct err *err)
{
	auto_free const char **environment = fleet_client_environment();
	int output[2], errors[2];
	bool started;

	if (!fd_pipe(output, err))
		return false;
	wrapped->ends[0] = output[0];
	if (!fd_pipe(errors, err)) {
		(void)close(output[1]);
		return false;
	}
	wrapped->ends[1] = errors[0];
	const struct program_start program = {
		.argv = words->list,
		.environment = environment,
		.fds = {-1, output[1], errors[1]},
		.ends_with_us = true,
	};
	started = program_start(&program, &wrapped->pid, err);
	(void)close(output[1]);
	(void)close(errors[1]);
	if (!started)
		return false;
	wrapped->pidfd = fleet_client_pidfd(wrapped->pid, err);
	return wrapped->pidfd >= 0;
}

/* Read what is there of output I. */
static void read_output(struct wrapped *wrapped, size_t i, char room[READ_BYTES])
{
	const ssize_t n = read(wrapped->ends[i], room, READ_BYTES);
	struct buf *kept = &wrapped->kept[i];
	size_t fits;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		fd_close(&wrapped->ends[i]);
		return;
	}
	fits = kept->max - kept->size < (size_t)n ? kept->max - kept->size : (size_t)n;
	(void)buf_add(kept, room, fits);
	wrapped->dropped += (size_t)n - fits;
}

/* Read the outputs until the program has ended, or DUE_MS. False: that time has come. */
static bool follow(struct fleet_steps *steps, struct wrapped *wrapped, int64_t due_ms,
		   bool obeys)
{
	auto_free char *room = memory_alloc(READ_BYTES);

	for (;;) {
		struct pollfd ready[] = {{.fd = wrapped->ends[0], .events = POLLIN},
					 {.fd = wrapped->ends[1], .events = POLLIN},
					 {.fd = wrapped->pidfd, .events = POLLIN}};
		const int64_t now = clock_now_ms();

		if (now >= due_ms || (obeys && fleet_steps_cancelled(steps)))
			return false;
		if (poll(ready, 3,
			 (int)(due_ms - now < LOOK_MS ? due_ms - now : LOOK_MS)) <= 0)
			continue;
		for (size_t i = 0; i < 2; i++) {
			if (ready[i].revents != 0)
				read_output(wrapped, i, room);
		}
		/* Its outputs are read before its end is looked at. */
		if (ready[2].revents != 0 && ready[0].revents == 0 && ready[1].revents == 0)
			return true;
	}
}

/* The last line of what was written, for a sentence. */
static void add_last(const struct buf *kept, struct buf *said)
{
	const struct str text = str_trim(buf_str(kept));
	size_t from = text.size;

	while (from > 0 && text.data[from - 1] != '\n')
		from--;
	text_add_name(said, str_part(text, from, LAST_MAX / 4));
}

static void take_end(struct fleet_steps *steps, struct wrapped *wrapped, int status,
		     double seconds, struct fleet_ran *ran)
{
	static const char *const names[] = {"stdout", "stderr"};
	struct value *note = value_new_object();

	ran->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	value_set_text(note, "step", "run");
	value_set_text(note, "wrap", steps->work->task->run.profile);
	value_set_integer(note, "exit", ran->code);
	value_set_boolean(note, "timed_out", ran->timed_out);
	value_set_real(note, "seconds", seconds);
	for (size_t i = 0; i < 2; i++)
		value_set_str(note, names[i], buf_str(&wrapped->kept[i]));
	value_set_integer(note, "dropped", (int64_t)wrapped->dropped);
	fleet_steps_note(steps, note);
	add_last(&wrapped->kept[wrapped->kept[1].size > 0], &ran->said);
	(void)buf_addstr(&ran->output, buf_str(&wrapped->kept[0]));
}

/* Wait for the end of the program, which has the task's time. */
static void wait_for(struct fleet_steps *steps, struct wrapped *wrapped,
		     struct fleet_ran *ran)
{
	const int64_t began = clock_now_ms();
	int status = 0;

	if (!follow(steps, wrapped, steps->due_ms, true)) {
		ran->timed_out = !fleet_steps_cancelled(steps);
		(void)kill(wrapped->pid, SIGTERM);
		if (!follow(steps, wrapped, clock_now_ms() + GRACE_MS, false))
			(void)kill(-wrapped->pid, SIGKILL);
	}
	while (waitpid(wrapped->pid, &status, 0) < 0 && errno == EINTR)
		;
	take_end(steps, wrapped, status, (double)(clock_now_ms() - began) / 1000, ran);
}

bool fleet_site_wrap(struct fleet_steps *steps, const struct fleet_site *site,
		     struct fleet_ran *ran)
{
	const struct fleet_task *task = steps->work->task;
	auto_free struct words *words = memory_alloc(sizeof(*words));
	struct wrapped wrapped = {.pidfd = -1, .ends = {-1, -1}};
	char texts[8][32];
	struct err err;
	bool ok;

	*ran = (struct fleet_ran){0};
	buf_init(&ran->said, LAST_MAX);
	buf_init(&ran->output, OUTPUT_KEPT);
	for (size_t i = 0; i < 2; i++)
		buf_init(&wrapped.kept[i], OUTPUT_KEPT);
	add(words, steps->work->program);
	add(words, "wrap");
	/* An agent that stays outside of its cell would not be sealed. */
	add(words, "--whole");
	add(words, "--within");
	add(words, FLEET_BOUND);
	if (steps->work->config != NULL) {
		add(words, "--config");
		add(words, steps->work->config);
	}
	if (task->run.prompt != NULL) {
		add(words, "--prompt");
		add(words, task->run.prompt);
	}
	add(words, "--workspace");
	add(words, site->workspace);
	add_rights(words, task->policy);
	add_limits(words, task->limits, texts);
	add(words, task->run.profile);
	add(words, "--");
	for (size_t i = 0; i < value_count(task->run.args); i++)
		add(words, value_text(value_item(task->run.args, i)));
	ok = start(&wrapped, words, &err);
	if (ok)
		wait_for(steps, &wrapped, ran);
	fd_close(&wrapped.pidfd);
	for (size_t i = 0; i < 2; i++) {
		fd_close(&wrapped.ends[i]);
		buf_fini(&wrapped.kept[i]);
	}
	if (!ok)
		return fleet_steps_end(steps, FLEET_SET_UP, "wrap: %s", err.text);
	if (fleet_steps_cancelled(steps))
		return fleet_steps_end(steps, FLEET_CANCELLED, "the task was cancelled");
	/* A program that is not installed here may be on another machine. */
	if (ran->code == CODE_NO_CELL ||
	    (ran->code == CODE_NOT_FOUND &&
	     strncmp(ran->said.data, "glovebox: wrap", 14) == 0))
		return fleet_steps_end(steps, FLEET_SET_UP, "wrap: %s", ran->said.data);
	if (ran->code == CODE_DENIED && strncmp(ran->said.data, "glovebox", 8) == 0)
		return fleet_steps_end(steps, FLEET_DENIED, "wrap: %s", ran->said.data);
	return true;
}
