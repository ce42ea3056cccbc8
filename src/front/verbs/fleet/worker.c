/* glovebox worker: the cells of this machine for a fleet, until a signal comes. */

#include "fleet/queue/worker.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "fleet/batch/slots.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/fleet/fleet_at.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_MS = 100,  /* between looks whether all is over */
	END_MS = 60000, /* for the end; less than supervisors wait before they kill */
	AWAY_MS = 2000, /* between two tries to at_fleet the server */
	SAME_SIGNAL_MS = 100,        /* timeout(1), npm and docker send a signal twice */
	WORDS_MAX = QUEUE_LANES_MAX, /* lanes, and labels */
};

static const struct option_row worker_options[] = {
	{"cells", 'j', OPTION_COUNT, "N",
	 "tasks at the same time (default: as many as processors)"},
	{"lanes", 0, OPTION_TEXT, "LANE,…", "only tasks of these lanes (default: all)"},
	{"labels", 0, OPTION_TEXT, "NAME=VALUE,…",
	 "what this machine has: it may do tasks that need these (docs/tasks.md)"},
	{"name", 0, OPTION_TEXT, "NAME",
	 "this worker among all (default: the machine and the process)"},
	{"drain-on", 0, OPTION_TEXT, "TERM",
	 "TERM takes no more tasks and waits for those that run"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

/*
 * A run of the verb. A thread of its own takes the signals, because the main thread may wait for a
 * server, a store or an engine that does not answer, and a signal must end the worker all the same.
 */
struct working {
	struct fleet_worker *worker;
	bool drains_on_term;
	pthread_t watch;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* The lock is held for these. */
	enum { OPENS, WORKS, DRAINS, ENDS } wanted;
	int signal; /* the first one that came */
	int64_t signal_ms;
	int64_t until_ms; /* the process ends then in any case; 0: no end has begun */
	bool over;        /* nothing is waited for any more */
};

static void say(void *context, const char *line)
{
	(void)context;
	(void)verb_complain(0, "worker: %s", line);
}

/*
 * The first INT: no new tasks. The second, TERM and HUP: end what runs. One more: end at once, as
 * before there is any task. The lock is held.
 */
static void take_signal(struct working *working, int number)
{
	const int64_t now_ms = clock_now_ms();

	if (working->signal == number && now_ms - working->signal_ms < SAME_SIGNAL_MS)
		return;
	working->signal = working->signal != 0 ? working->signal : number;
	working->signal_ms = now_ms;
	if (working->wanted == OPENS || working->wanted == ENDS)
		_exit(CODE_SIGNAL + number);
	if (working->wanted == WORKS &&
	    (number == SIGINT || (number == SIGTERM && working->drains_on_term))) {
		working->wanted = DRAINS;
	} else {
		working->wanted = ENDS;
		working->until_ms = now_ms + END_MS;
	}
	(void)pthread_cond_signal(&working->changed);
}

/* The worker's end takes too long: the process ends as if it were killed. */
static void end_late(const struct working *working)
{
	char line[160];

	(void)snprintf(line, sizeof(line),
		       "the server, the store or the engine does not let it end within %d s, and "
		       "it ends now; its tasks come again when their lease is over",
		       END_MS / 1000);
	say(NULL, line);
	_exit(working->signal != 0 ? CODE_SIGNAL + working->signal : CODE_FAILED);
}

static void *watch_main(void *context)
{
	const struct timespec tick = {0, TICK_MS * 1000000L};
	struct working *working = context;
	bool over = false;
	sigset_t set;

	fleet_at_signals(&set);
	while (!over) {
		const int number = sigtimedwait(&set, NULL, &tick);

		(void)pthread_mutex_lock(&working->lock);
		over = working->over;
		if (!over && number > 0)
			take_signal(working, number);
		if (!over && working->until_ms > 0 && clock_now_ms() >= working->until_ms)
			end_late(working);
		(void)pthread_mutex_unlock(&working->lock);
	}
	return NULL;
}

static bool watch_begin(struct working *working, struct err *err)
{
	(void)pthread_mutex_init(&working->lock, NULL);
	(void)pthread_cond_init(&working->changed, NULL);
	return pthread_create(&working->watch, NULL, watch_main, working) == 0 ||
	       err_set(err, EAGAIN, "a thread could not be started");
}

static void watch_end(struct working *working)
{
	(void)pthread_mutex_lock(&working->lock);
	working->over = true;
	(void)pthread_mutex_unlock(&working->lock);
	/* The thread waits for signals; behind one it sees that all is over. */
	(void)pthread_kill(working->watch, SIGINT);
	(void)pthread_join(working->watch, NULL);
	(void)pthread_cond_destroy(&working->changed);
	(void)pthread_mutex_destroy(&working->lock);
}

/* The name in a heartbeat's key: HOST-PROCESS, of letters, digits, "-" and "_". */
static void own_name(char name[FLEET_NAME_MAX + 1])
{
	char host[64] = "";

	(void)gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	for (char *at = host; *at != '\0'; at++) {
		const char c = *at;

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (c >= '0' && c <= '9') || c == '-'))
			*at = '-';
	}
	(void)snprintf(name, FLEET_NAME_MAX + 1, "%s-%d", host[0] != '\0' ? host : "host",
		       (int)getpid());
}

static bool check_lane(const char *part, struct err *err)
{
	return fleet_name_check(FLEET_LANE, part, err);
}

static bool check_label(const char *part, struct err *err)
{
	return fleet_task_check_label(str_of(part), err);
}

/* The words in the value of OPTION, which CHECK finds right, ended by NULL. COPY holds them. */
static bool read_words(const char *option, char *copy,
		       bool (*check)(const char *part, struct err *err),
		       const char *words[WORDS_MAX + 1], struct err *err)
{
	size_t count = 0;
	char *part;

	while ((part = strsep(&copy, ",")) != NULL) {
		if (part[0] == '\0')
			continue;
		if (!check(part, err))
			return err_while(err, "%s", option);
		if (count == WORDS_MAX)
			return err_set(err, EINVAL, "%s: at most %d", option, WORDS_MAX);
		words[count++] = part;
	}
	words[count] = NULL;
	return count > 0 || err_set(err, EINVAL, "%s: nothing is named", option);
}

/* Open the queue, waiting for a server that is away. Returns an exit code, -1: it is open. */
static int open_queue(struct fleet_at *at_fleet)
{
	struct err err = {0};
	bool told = false;

	while (!fleet_at_open_queue(at_fleet, &err)) {
		if (err.code != ECONNREFUSED && err.code != ETIMEDOUT &&
		    err.code != ENOTCONN && err.code != EIO)
			return verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED,
					     "worker: %s", err.text);
		if (!told)
			(void)verb_complain(0, "worker: %s. It is tried again each %d s",
					    err.text, AWAY_MS / 1000);
		told = true;
		(void)poll(NULL, 0, AWAY_MS);
	}
	return -1;
}

/* Do what the signals want, until no task runs any more. */
static void follow_signals(struct working *working)
{
	int done = WORKS;

	while (!fleet_worker_over(working->worker)) {
		const struct timespec until = clock_after(TICK_MS);
		int wanted;

		(void)pthread_mutex_lock(&working->lock);
		if ((int)working->wanted == done)
			(void)pthread_cond_clockwait(&working->changed, &working->lock,
						     CLOCK_MONOTONIC, &until);
		wanted = (int)working->wanted;
		(void)pthread_mutex_unlock(&working->lock);
		if (wanted == done)
			continue;
		done = wanted;
		if (wanted == DRAINS) {
			fleet_worker_drain(working->worker);
			say(NULL, "no more tasks begin; once more ends those that run");
		} else {
			fleet_worker_stop(working->worker);
		}
	}
}

static int work(struct fleet_at *at_fleet, const struct fleet_worker_options *options,
		struct working *working, FILE *out)
{
	struct err err = {0};
	int code;

	(void)pthread_mutex_lock(&working->lock);
	working->wanted = WORKS;
	(void)pthread_mutex_unlock(&working->lock);
	if (!fleet_worker_start(options, &working->worker, &err))
		return verb_complain(CODE_FAILED, "worker: %s", err.text);
	(void)fprintf(out, "%s: %zu cells for the fleet %s, store %s\n", options->name,
		      options->cells, at_fleet->name, fleet_store_where(at_fleet->store));
	(void)fflush(out);
	follow_signals(working);
	(void)pthread_mutex_lock(&working->lock);
	if (working->until_ms == 0)
		working->until_ms = clock_now_ms() + END_MS;
	(void)pthread_mutex_unlock(&working->lock);
	fleet_worker_finish(working->worker);
	(void)pthread_mutex_lock(&working->lock);
	/* A drain that was asked for has done what it should. */
	code = working->wanted == DRAINS && working->signal == SIGTERM ? CODE_DONE
	       /* Without a signal, it is the server that wants this worker no longer. */
	       : working->signal != 0 ? CODE_SIGNAL + working->signal
				      : CODE_FAILED;
	(void)pthread_mutex_unlock(&working->lock);
	return code;
}

static int worker_verb(const struct options *options, FILE *out)
{
	const uint64_t cells = options_count(options, "cells", clock_cores_usable());
	const char *drain = options_text(options, "drain-on"),
		   *lanes_text = options_text(options, "lanes"),
		   *labels_text = options_text(options, "labels"),
		   *name = options_text(options, "name");
	auto_free char *lanes_copy = memory_copy(lanes_text);
	auto_free char *labels_copy = memory_copy(labels_text);
	const char *lanes[WORDS_MAX + 1], *labels[WORDS_MAX + 1];
	struct working working = {.drains_on_term = drain != NULL};
	char own[FLEET_NAME_MAX + 1], program[PATH_MAX];
	const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct fleet_at at_fleet;
	struct err err = {0};
	sigset_t set;
	int code;

	if (cells > FLEET_SLOTS_MAX)
		return verb_complain(CODE_USAGE, "worker: --cells: at most %d",
				     FLEET_SLOTS_MAX);
	if (drain != NULL && strcmp(drain, "TERM") != 0)
		return verb_complain(CODE_USAGE, "worker: --drain-on: only TERM is known");
	if (name != NULL && !fleet_name_check(FLEET_ID, name, &err))
		return verb_complain(CODE_USAGE, "worker: --name: %s", err.text);
	if ((lanes_text != NULL &&
	     !read_words("--lanes", lanes_copy, check_lane, lanes, &err)) ||
	    (labels_text != NULL &&
	     !read_words("--labels", labels_copy, check_label, labels, &err)))
		return verb_complain(CODE_USAGE, "worker: %s", err.text);
	if (size < 0)
		return verb_complain(CODE_FAILED, "/proc/self/exe: %s", strerror(errno));
	program[size] = '\0';
	if (!fleet_at_read(&at_fleet, options, NULL, &err))
		return verb_complain(setup_code(&err), "worker: %s", err.text);
	/* Before any thread is there, so that all of them block these signals. */
	fleet_at_signals(&set);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	own_name(own);
	if (!watch_begin(&working, &err)) {
		fleet_at_fini(&at_fleet);
		return verb_complain(CODE_FAILED, "worker: %s", err.text);
	}
	if (!fleet_at_open_store(&at_fleet, true, &err)) {
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED,
				     "worker: %s", err.text);
	} else {
		code = open_queue(&at_fleet);
	}
	if (code < 0) {
		const struct fleet_worker_options wanted = {
			.queue = at_fleet.queue,
			.store = at_fleet.store,
			.program = program,
			.config = options_text(options, "config"),
			.name = name != NULL ? name : own,
			.fleet = at_fleet.name,
			.cells = (size_t)cells,
			.lanes = lanes_text != NULL ? lanes : NULL,
			.labels = labels_text != NULL ? labels : NULL,
			.say = say,
		};

		code = work(&at_fleet, &wanted, &working, out);
	}
	fleet_at_fini(&at_fleet);
	watch_end(&working);
	return code;
}

static const char worker_help[] =
	"Take tasks of a fleet, as many as there are free cells, and put their results into\n"
	"the store (docs/fleet.md). A worker that is killed loses nothing: its tasks come\n"
	"again elsewhere when their lease is over, after two minutes.\n\n"
	"INT takes no more tasks and waits for those that run; a second INT, or TERM, ends\n"
	"them in order and gives them back. --drain-on TERM: TERM is as INT. Tasks that were\n"
	"taken, but not begun, go back at once in either case. Nothing holds up the end for\n"
	"more than a minute, whether the server, the store or the engine answers or not.";

const struct verb verb_worker = {
	.name = "worker",
	.summary = "the cells of this machine for a fleet",
	.arguments = "",
	.help = worker_help,
	.example = "  glovebox worker --fleet nats://queue:4222 --store s3://runs/may\n"
		   "  glovebox worker --cells 32 --lanes sonnet,haiku --drain-on TERM",
	.options = worker_options,
	.run = worker_verb,
};
