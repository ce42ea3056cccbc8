/*
 * queue_driver: a queue and a store without cells, for tests of kills and for the bench.
 *
 *   queue_driver publish URL STORE JOB COUNT LANE     as `fleet submit` does, without a file of tasks
 *   queue_driver work URL STORE SLOTS MS [COUNTER [GATE]]
 *                                                     takes tasks, each for MS, until it is killed;
 *                                                     COUNTER: a file with the running and the most;
 *                                                     none ends before the file GATE is there
 *   queue_driver bench URL STORE JOB COUNT SLOTS      publishes COUNT, does them, prints tasks a second
 *   queue_driver waiting URL JOB                      how many are queued
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/queue/queue.h"
#include "fleet/store.h"
#include "fleet/task.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS_MAX = 256, AWAY_MS = 200, GATE_MS = 20, LEASE_S = 4 };

struct counter {
	_Atomic int running, most;
};

struct driver {
	struct fleet_queue *queue;
	struct fleet_store *store;
	int ms;
	size_t slots;
	atomic_size_t busy, done;
	size_t enough; /* tasks; 0: for ever */
	struct counter *counter;
	const char *gate; /* or NULL */
	pthread_mutex_t lock;
	pthread_cond_t came, left;
	struct fleet_lease *ready[SLOTS_MAX], *held[SLOTS_MAX];
	size_t ready_count;
};

static int die(const struct err *err)
{
	(void)fprintf(stderr, "queue_driver: %s\n", err->text);
	return 1;
}

static bool publish(struct fleet_queue *queue, const char *job, int count,
		    const char *lane, struct err *err)
{
	static struct fleet_task tasks[QUEUE_BATCH];
	size_t there = 0;

	for (int from = 0; from < count; from += QUEUE_BATCH) {
		size_t filled = 0;
		bool ok;

		for (int i = from; i < count && i < from + QUEUE_BATCH; i++) {
			char line[256];

			(void)snprintf(line, sizeof(line),
				       "{\"id\":\"t%d\",\"run\":{\"command\":\"true\"},\"lane\":\"%s\"}",
				       i, lane);
			if (!fleet_task_read(str_of(line), &tasks[filled++], err))
				return false;
		}
		ok = fleet_queue_publish(queue, job, tasks, filled, &there, err);
		while (filled > 0)
			fleet_task_fini(&tasks[--filled]);
		if (!ok)
			return false;
	}
	return true;
}

static void count_begin(struct counter *counter)
{
	if (counter == NULL)
		return;
	const int now = atomic_fetch_add(&counter->running, 1) + 1;
	int most = atomic_load(&counter->most);

	while (now > most && !atomic_compare_exchange_weak(&counter->most, &most, now))
		;
}

static void do_one(struct driver *driver, struct fleet_lease *lease)
{
	struct value *result =
		fleet_result_new(fleet_lease_job(lease), fleet_lease_id(lease),
				 fleet_lease_deliveries(lease), FLEET_DONE);
	char name[FLEET_NAME_BYTES];
	struct buf text;
	struct err err = {0};

	count_begin(driver->counter);
	if (driver->ms > 0)
		(void)poll(NULL, 0, driver->ms);
	while (driver->gate != NULL && access(driver->gate, F_OK) != 0)
		(void)poll(NULL, 0, GATE_MS);
	if (driver->counter != NULL)
		(void)atomic_fetch_sub(&driver->counter->running, 1);
	(void)snprintf(name, sizeof(name), "jobs/%s/results/%s.json",
		       fleet_lease_job(lease), fleet_lease_id(lease));
	buf_init(&text, FLEET_LINE_MAX);
	(void)value_print(result, 0, &text);
	if (fleet_store_put(driver->store, name, buf_str(&text), FLEET_IF_NEW, &err) ==
	    FLEET_PUT_FAILED)
		(void)die(&err);
	else if (!fleet_lease_done(lease, result, &err))
		(void)die(&err);
	buf_fini(&text);
	value_free(result);
}

static void *slot_main(void *context)
{
	struct driver *driver = context;

	for (;;) {
		struct fleet_lease *lease;

		(void)pthread_mutex_lock(&driver->lock);
		while (driver->ready_count == 0)
			(void)pthread_cond_wait(&driver->came, &driver->lock);
		lease = driver->ready[--driver->ready_count];
		(void)pthread_mutex_unlock(&driver->lock);
		do_one(driver, lease);
		fleet_lease_free(lease);
		(void)atomic_fetch_add(&driver->done, 1);
		(void)pthread_mutex_lock(&driver->lock);
		(void)atomic_fetch_sub(&driver->busy, 1);
		(void)pthread_cond_signal(&driver->left);
		(void)pthread_mutex_unlock(&driver->lock);
	}
	return NULL;
}

static int work(struct driver *driver)
{
	struct fleet_lease *leases[SLOTS_MAX];
	struct err err = {0};

	(void)pthread_mutex_init(&driver->lock, NULL);
	(void)pthread_cond_init(&driver->came, NULL);
	(void)pthread_cond_init(&driver->left, NULL);
	for (size_t i = 0; i < driver->slots; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, slot_main, driver) != 0)
			return 1;
	}
	while (driver->enough == 0 || atomic_load(&driver->done) < driver->enough) {
		size_t taken = 0;

		(void)pthread_mutex_lock(&driver->lock);
		while (atomic_load(&driver->busy) >= driver->slots)
			(void)pthread_cond_wait(&driver->left, &driver->lock);
		(void)pthread_mutex_unlock(&driver->lock);
		if (!fleet_queue_take(driver->queue, NULL, NULL,
				      driver->slots - atomic_load(&driver->busy), 1,
				      leases, &taken, &err)) {
			struct err why = {0};
			size_t made;

			(void)die(&err);
			(void)poll(NULL, 0, AWAY_MS);
			(void)fleet_queue_repair(driver->queue, &made, &why);
			continue;
		}
		(void)pthread_mutex_lock(&driver->lock);
		for (size_t i = 0; i < taken; i++) {
			driver->ready[driver->ready_count++] = leases[i];
			(void)pthread_cond_signal(&driver->came);
		}
		(void)atomic_fetch_add(&driver->busy, taken);
		(void)pthread_mutex_unlock(&driver->lock);
	}
	return 0;
}

static struct counter *open_counter(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *at;

	if (fd < 0 || ftruncate(fd, sizeof(struct counter)) < 0)
		return NULL;
	at = mmap(NULL, sizeof(struct counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static bool count_one(void *context, const char *id, const char *place)
{
	size_t *count = context;

	(void)id;
	(void)place;
	(*count)++;
	return true;
}

static int number(const char *text)
{
	return (int)strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
	struct driver driver = {0};
	struct err err = {0};
	const char *verb = argc > 2 ? argv[1] : "";
	struct fleet_queue_options options = {.url = argc > 2 ? argv[2] : NULL,
					      .lease_s = LEASE_S};

	if (options.url == NULL)
		return 2;
	while (!fleet_queue_open(&options, &driver.queue, &err)) {
		(void)die(&err);
		if (strcmp(verb, "work") != 0)
			return 1;
		(void)poll(NULL, 0, AWAY_MS);
	}
	if (strcmp(verb, "waiting") == 0 && argc == 4) {
		size_t count = 0;

		if (!fleet_queue_waiting(driver.queue, argv[3], count_one, &count, &err))
			return die(&err);
		(void)printf("%zu\n", count);
		fleet_queue_close(driver.queue);
		return 0;
	}
	if (argc < 6 || !fleet_store_open(argv[3], true, &driver.store, &err))
		return die(&err);
	if (strcmp(verb, "publish") == 0 && argc == 7) {
		if (!publish(driver.queue, argv[4], number(argv[5]), argv[6], &err))
			return die(&err);
	} else if (strcmp(verb, "work") == 0) {
		driver.slots = (size_t)number(argv[4]);
		driver.ms = number(argv[5]);
		driver.counter = argc > 6 ? open_counter(argv[6]) : NULL;
		driver.gate = argc > 7 ? argv[7] : NULL;
		return work(&driver);
	} else if (strcmp(verb, "bench") == 0 && argc == 7) {
		const int64_t begin_ms = clock_now_ms();
		int64_t published_ms;

		driver.enough = (size_t)number(argv[5]);
		driver.slots = (size_t)number(argv[6]);
		if (!publish(driver.queue, argv[4], number(argv[5]), "default", &err))
			return die(&err);
		published_ms = clock_now_ms();
		if (work(&driver) != 0)
			return 1;
		(void)printf("{\"submitted_s\":%.0f,\"done_s\":%.0f}\n",
			     1000.0 * (double)driver.enough /
				     (double)(published_ms - begin_ms + 1),
			     1000.0 * (double)driver.enough /
				     (double)(clock_now_ms() - published_ms + 1));
		(void)fflush(stdout);
		_exit(0);
	}
	fleet_queue_close(driver.queue);
	fleet_store_close(driver.store);
	return 0;
}
