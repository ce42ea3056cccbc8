/*
 * task_driver: plays tasks, or many calls of an engine, for the tests.
 *
 *   task_driver work PROGRAM STORE   each line of standard input is a task; all of them are done beside
 *                               each other, and each result is a line. INT cancels them
 *   task_driver look PROGRAM STORE   the same, with what somebody who looks on hears, on standard error
 *   task_driver storm PROGRAM N      N threads call the engine until it is gone; prints how many calls
 *                               were answered, and why the last one was not
 *   task_driver large PROGRAM        answers and lines that are too long, and what comes after them
 *   task_driver fds PROGRAM          the numbers of the descriptors that a child of ours has
 *   task_driver get STORE HASH       the bytes of a blob
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/client.h"
#include "fleet/store.h"
#include "fleet/task.h"
#include "fleet/work.h"
#include "process/program.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 512, RESULT_MAX = 16 << 20, CALL_S = 60 };

static const char *program;
static struct fleet_client *client;
static struct fleet_store *store;
static bool cancel;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static int complain(const struct err *err)
{
	(void)fprintf(stderr, "driver: %s\n", err->text);
	return 1;
}

static void print(const struct value *value)
{
	struct buf line;

	buf_init(&line, RESULT_MAX);
	(void)value_print(value, 0, &line);
	(void)pthread_mutex_lock(&printing);
	(void)printf("%s\n", line.data);
	(void)fflush(stdout);
	(void)pthread_mutex_unlock(&printing);
	buf_fini(&line);
}

/* Tasks. */

static void tell(void *context, const char *line)
{
	(void)fprintf(stderr, "%s %s\n", (const char *)context, line);
}

static bool tells;

static void *do_task(void *context)
{
	struct fleet_task task;
	struct err err = {0};
	auto_free char *line = context;

	if (!fleet_task_read(str_of(line), &task, &err)) {
		(void)complain(&err);
		return NULL;
	}
	const struct fleet_work work = {
		.client = client,
		.store = store,
		.program = program,
		.job = "job",
		.worker = "driver",
		.task = &task,
		.attempt = 1,
		.cancel = &cancel,
		.tell = tells ? tell : NULL,
		.context = (void *)(uintptr_t)task.id,
	};
	struct value *result = fleet_work_do(&work);

	print(result);
	value_free(result);
	fleet_task_fini(&task);
	return NULL;
}

static void *hear_signal(void *context)
{
	sigset_t *set = context;
	int number;

	while (sigwait(set, &number) == 0) {
		__atomic_store_n(&cancel, true, __ATOMIC_RELEASE);
		fleet_client_wake(client);
	}
	return NULL;
}

static int work(void)
{
	pthread_t threads[THREADS_MAX], hearing;
	size_t count = 0, room = 0;
	char *line = NULL;
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	(void)pthread_create(&hearing, NULL, hear_signal, &set);
	while (count < THREADS_MAX && getline(&line, &room, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		(void)pthread_create(&threads[count++], NULL, do_task, memory_copy(line));
	}
	for (size_t i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_cancel(hearing);
	(void)pthread_join(hearing, NULL);
	free(line);
	return 0;
}

/* Calls. */

static uint64_t answered;
static char why[ERR_TEXT_MAX];

static void *storm(void *context)
{
	struct fleet_refusal refusal = {0};
	struct value *answer = NULL;

	(void)context;
	while (fleet_client_call(client, "cell/list", value_new_object(), CALL_S, NULL,
				 &answer, &refusal)) {
		value_free(answer);
		(void)__atomic_add_fetch(&answered, 1, __ATOMIC_RELAXED);
	}
	(void)pthread_mutex_lock(&printing);
	(void)snprintf(why, sizeof(why), "%s: %.900s", refusal.kind, refusal.err.text);
	(void)pthread_mutex_unlock(&printing);
	return NULL;
}

static int storms(int count)
{
	pthread_t threads[THREADS_MAX];

	(void)printf("begins\n");
	(void)fflush(stdout);
	for (int i = 0; i < count && i < THREADS_MAX; i++)
		(void)pthread_create(&threads[i], NULL, storm, NULL);
	for (int i = 0; i < count && i < THREADS_MAX; i++)
		(void)pthread_join(threads[i], NULL);
	(void)printf("%" PRIu64 " answered, %s, gone %d\n", answered, why,
		     fleet_client_gone(client));
	return 0;
}

/* Call METHOD and print its answer in short, or its refusal. */
static struct value *say(const char *method, struct value *params, double seconds)
{
	struct fleet_refusal refusal = {0};
	struct value *answer = NULL;

	if (fleet_client_call(client, method, params, seconds, NULL, &answer, &refusal))
		(void)printf("%s: answered\n", method);
	else
		(void)printf("%s: %s: %s\n", method, refusal.kind, refusal.err.text);
	return answer;
}

static struct value *new_params(const char *cell)
{
	struct value *params = value_new_object();

	if (cell != NULL)
		value_set_text(params, "cell", cell);
	return params;
}

static int large(void)
{
	auto_value struct value *opened = say("cell/open", new_params(NULL), CALL_S);
	const char *cell = value_text(value_member(opened, "cell"));
	struct value *params = new_params(cell);
	auto_free char *text = memory_alloc(17 << 20);

	memset(text, 'x', (17 << 20) - 1);
	value_set_text(params, "command", text);
	value_free(say("exec/run", params, CALL_S));
	params = new_params(cell);
	value_set_text(params, "command", "head -c 60000000 /dev/zero");
	value_set_integer(params, "keep", 64 << 20);
	value_free(say("exec/run", params, CALL_S));
	params = new_params(cell);
	value_set_text(params, "command", "sleep 60");
	value_free(say("exec/run", params, 0.2));
	value_free(say("cell/list", new_params(NULL), CALL_S));
	return 0;
}

/* A child of ours lists its descriptors: none of the client's is among them. */
static int fds(void)
{
	static const char *const argv[] = {"ls", "/proc/self/fd", NULL};
	const struct program_start start = {
		.argv = argv,
		.environment = (const char *const *)environ,
		.fds = {-1, 1, 2},
		.joins_group = true,
	};
	struct err err;
	pid_t pid;

	if (!program_start(&start, &pid, &err))
		return complain(&err);
	(void)waitpid(pid, NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"--minimum-level", "L0", NULL};
	const char *what = argc > 1 ? argv[1] : "";
	struct err err = {0};
	int code = 2;

	value_own_memory();
	if (argc == 4 && strcmp(what, "get") == 0) {
		code = fleet_store_open(argv[2], false, &store, &err) &&
				       fleet_store_fetch(store, argv[3], STDOUT_FILENO, &err)
			       ? 0
			       : complain(&err);
		fleet_store_close(store);
		return code;
	}
	program = argc > 2 ? argv[2] : NULL;
	if (program == NULL || !fleet_client_start(program, options, &client, &err))
		return complain(&err);
	tells = strcmp(what, "look") == 0;
	if (argc == 4 && (tells || strcmp(what, "work") == 0))
		code = fleet_store_open(argv[3], true, &store, &err) ? work()
								     : complain(&err);
	else if (argc == 4 && strcmp(what, "storm") == 0)
		code = storms((int)strtol(argv[3], NULL, 10));
	else if (strcmp(what, "large") == 0)
		code = large();
	else if (strcmp(what, "fds") == 0)
		code = fds();
	fleet_client_stop(client);
	fleet_store_close(store);
	return code;
}
