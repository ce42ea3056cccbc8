/*
 * batch: which line comes next. Each task has a state of three bytes, so that a million of
 * them are no matter; each shard has a claim while it is worked on.
 */

#include "fleet/batch/batch.h"

#include "base/clock.h"
#include "base/memory.h"
#include "fleet/batch/claim.h"
#include "fleet/batch/slots.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* A task that is tried again waits 1, 4, 16, 60, 60, … seconds. */
	DELAYS = 4,
	DELAY_LOST = 0,     /* an engine that was lost is no fault of the task's */
	KEEP_MS = 1000,     /* between looks at the claims that we hold */
	LOOK_MS = 2000,     /* between looks at shards of others, and lists of results */
	WAIT_MS = 500,      /* `next` waits at most so long */
	CLAIM_FAILURES = 5, /* of one shard, before it is left alone */
	WORKER_ROOM = 128,
	HOST_ROOM = 65,
	SENTENCE_ROOM = 1200,
};

static const int delay_s[DELAYS] = {1, 4, 16, 60};

/* In the order of life; LEFT and OVER are ends. */
enum line_state {
	LINE_OPEN,
	LINE_RUNS,
	LINE_WAITS, /* to be tried again */
	LINE_LEFT,  /* without a result, and not in this process any more */
	LINE_OVER,  /* its result is in the store */
};

struct line {
	uint8_t state;
	uint8_t status; /* of OVER; FLEET_STATUSES: not read yet */
	uint8_t attempts;
};

enum shard_state {
	SHARD_UNKNOWN, /* nobody has looked yet, or it is not known whether its holder lives */
	SHARD_HELD,
	SHARD_OTHERS, /* somebody works on it, or its claim cannot be read: left alone */
	SHARD_OVER,   /* each of its tasks has ended here */
};

struct shard {
	enum shard_state state;
	struct fleet_claim *claim; /* of HELD, and while it is looked at */
	size_t cursor;             /* next line that may be open */
	int failures;
	bool counted; /* its tasks are among ours */
};

/* Tasks that wait for the same time, so that the first is the one that is due first. */
struct delayed {
	struct {
		uint32_t line;
		int64_t due_ms;
	} * items;
	size_t first, count;
};

struct fleet_batch {
	struct fleet_batch_options options;
	const struct fleet_tasks *tasks;
	size_t count; /* of lines */
	char worker[WORKER_ROOM];
	struct fleet_slots *slots;
	int64_t deadline_ms;

	pthread_mutex_t telling;
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t changed;
	struct line *lines;
	struct shard *shards;
	struct delayed delayed[DELAYS];
	struct fleet_batch_counts counts;
	uint64_t failed; /* results of this process that are not "done" */
	bool finished;
	/* Only the slot that asks for a task uses these. */
	int64_t listed_ms, looked_ms;

	pthread_t keeper; /* renews the claims */
	bool has_keeper;
};

static void tell(struct fleet_batch *batch, const struct fleet_batch_event *event)
{
	(void)pthread_mutex_lock(&batch->telling);
	batch->options.tell(batch->options.context, event);
	(void)pthread_mutex_unlock(&batch->telling);
}

static void lock(struct fleet_batch *batch)
{
	(void)pthread_mutex_lock(&batch->lock);
}

static void unlock(struct fleet_batch *batch)
{
	(void)pthread_mutex_unlock(&batch->lock);
}

static void wait_ms(struct fleet_batch *batch, int64_t ms)
{
	const struct timespec until = clock_after(ms);

	(void)pthread_cond_timedwait(&batch->changed, &batch->lock, &until);
}

/* Stop giving out, once, because of STOP. The lock is not held. */
static void stop(struct fleet_batch *batch, enum fleet_stop why, const char *sentence)
{
	bool first;

	lock(batch);
	first = batch->counts.stop == FLEET_STOP_NOT;
	if (first)
		batch->counts.stop = why;
	(void)pthread_cond_broadcast(&batch->changed);
	unlock(batch);
	if (first)
		tell(batch, &(struct fleet_batch_event){.news = FLEET_NEWS_STOPPED,
							.text = sentence});
}

/* Tasks that are tried again. */

static void delay(struct fleet_batch *batch, size_t line, int which)
{
	struct delayed *delayed = &batch->delayed[which];

	if (delayed->first > delayed->count / 2) {
		delayed->count -= delayed->first;
		memmove(delayed->items, delayed->items + delayed->first,
			delayed->count * sizeof(*delayed->items));
		delayed->first = 0;
	}
	delayed->items =
		memory_more(delayed->items, delayed->count, sizeof(*delayed->items));
	delayed->items[delayed->count].line = (uint32_t)line;
	delayed->items[delayed->count].due_ms = clock_now_ms() + delay_s[which] * 1000;
	delayed->count++;
	batch->lines[line].state = LINE_WAITS;
	batch->counts.waiting++;
}

/* Take the first task that is due. False: *NEXT_MS is when one will be, or CLOCK_NEVER. */
static bool take_due(struct fleet_batch *batch, size_t *line, int64_t *next_ms)
{
	const int64_t now = clock_now_ms();

	*next_ms = CLOCK_NEVER;
	for (size_t i = 0; i < DELAYS; i++) {
		struct delayed *delayed = &batch->delayed[i];

		if (delayed->first == delayed->count)
			continue;
		if (delayed->items[delayed->first].due_ms <= now) {
			*line = delayed->items[delayed->first++].line;
			batch->counts.waiting--;
			return true;
		}
		if (delayed->items[delayed->first].due_ms < *next_ms)
			*next_ms = delayed->items[delayed->first].due_ms;
	}
	return false;
}

/* Results that are there. */

static void set_over(struct fleet_batch *batch, size_t nth, enum fleet_status status)
{
	struct line *line = &batch->lines[nth];

	line->state = LINE_OVER;
	line->status = (uint8_t)status;
}

static void take_result(void *context, size_t nth)
{
	struct fleet_batch *batch = context;
	const struct line *line = &batch->lines[nth];

	lock(batch);
	/* A task that runs or waits tells of its own end. */
	if (line->state == LINE_OPEN || line->state == LINE_LEFT)
		set_over(batch, nth, FLEET_STATUSES);
	unlock(batch);
}

/* Look which tasks have results by now. The lock is not held. */
static bool list_results(struct fleet_batch *batch, struct err *err)
{
	bool ok;

	/*
	 * No other thread changes an open line meanwhile: only `next` does, and this code
	 * runs in it.
	 */
	ok = fleet_job_results(batch->options.job, take_result, batch, err);
	batch->listed_ms = clock_now_ms();
	return ok;
}

/* Read the status of the result of NTH, when it is not known. The lock is not held. */
static bool read_status(struct fleet_batch *batch, size_t nth, struct err *err)
{
	auto_value struct value *result = NULL;
	struct line *line = &batch->lines[nth];
	bool known;

	lock(batch);
	known = line->state != LINE_OVER || line->status != FLEET_STATUSES;
	unlock(batch);
	if (known)
		return true;
	if (!fleet_job_result(batch->options.job, nth, &result, err)) {
		/* Somebody has taken the result away, to have the task done again. */
		if (err->code != ENOENT)
			return false;
		lock(batch);
		line->state = LINE_LEFT;
		unlock(batch);
		return true;
	}
	lock(batch);
	line->status = (uint8_t)fleet_result_status(result);
	unlock(batch);
	return true;
}

/* Does SHARD have results that --retry may take away? A shard of others is retried by them. */
static bool may_retry(const struct fleet_batch *batch, size_t shard)
{
	return batch->options.retry != 0 && shard == batch->options.shard;
}

/* Take away the results of SHARD that are to be tried again. */
static bool retry_shard(struct fleet_batch *batch, size_t shard, struct err *err)
{
	if (!may_retry(batch, shard))
		return true;
	for (size_t nth = shard; nth < batch->count; nth += batch->options.shards) {
		struct line *line = &batch->lines[nth];
		bool again;

		if (!read_status(batch, nth, err))
			return false;
		lock(batch);
		again = line->state == LINE_OVER && line->status < FLEET_STATUSES &&
			(batch->options.retry & 1U << line->status) != 0;
		unlock(batch);
		if (!again)
			continue;
		if (!fleet_job_forget(batch->options.job, nth, err))
			return false;
		lock(batch);
		line->state = LINE_OPEN;
		unlock(batch);
	}
	return true;
}

/* Shards. */

static bool has_open(struct fleet_batch *batch, size_t shard)
{
	bool found = false;

	lock(batch);
	for (size_t nth = shard; nth < batch->count && !found; nth += batch->options.shards)
		found = batch->lines[nth].state == LINE_OPEN;
	unlock(batch);
	return found;
}

/* The claim of SHARD is ours. */
static bool begin_shard(struct fleet_batch *batch, size_t nth, struct err *err)
{
	struct shard *shard = &batch->shards[nth];

	/* Its last holder may have done more since the last look. */
	if (!list_results(batch, err) || !retry_shard(batch, nth, err)) {
		fleet_claim_release(shard->claim);
		return false;
	}
	lock(batch);
	shard->state = SHARD_HELD;
	shard->cursor = nth;
	unlock(batch);
	tell(batch, &(struct fleet_batch_event){.news = FLEET_NEWS_SHARD, .shard = nth});
	return true;
}

static void leave_shard(struct fleet_batch *batch, size_t nth, const char *why)
{
	struct shard *shard = &batch->shards[nth];

	lock(batch);
	shard->state = SHARD_OTHERS;
	unlock(batch);
	tell(batch, &(struct fleet_batch_event){.news = FLEET_NEWS_TAKEN,
						.shard = nth,
						.text = why});
}

/* Try to have the shard NTH. True: it is held now. */
static bool try_shard(struct fleet_batch *batch, size_t nth, struct err *err)
{
	struct shard *shard = &batch->shards[nth];

	err->text[0] = '\0';
	if (shard->claim == NULL)
		shard->claim = fleet_claim_new(batch->options.store,
					       fleet_job_name_of(batch->options.job), nth,
					       batch->options.shards);
	switch (fleet_claim_take(shard->claim, clock_now_ms(), err)) {
	case FLEET_CLAIM_MINE:
		if (begin_shard(batch, nth, err))
			return true;
		break;
	case FLEET_CLAIM_LIVES:
		leave_shard(batch, nth, fleet_claim_holder(shard->claim));
		return false;
	case FLEET_CLAIM_UNSURE:
		(void)err_set(err, 0,
			      "shard %zu of %zu is claimed by %s; whether that still works is "
			      "known after %d s",
			      nth, batch->options.shards,
			      fleet_claim_holder(shard->claim), FLEET_CLAIM_STALE_S);
		return false;
	default:
		break;
	}
	if (++shard->failures == CLAIM_FAILURES)
		leave_shard(batch, nth, err->text);
	return false;
}

/*
 * Take one more shard: ours first, then the ones behind it. *MORE: some are not decided yet,
 * and ERR may say why. The lock is not held.
 */
static bool take_shard(struct fleet_batch *batch, bool *more, struct err *err)
{
	const size_t shards = batch->options.shards;
	const size_t reach = batch->options.steals ? shards : 1;

	*more = false;
	for (size_t i = 0; i < reach; i++) {
		const size_t nth = (batch->options.shard + i) % shards;
		struct shard *shard = &batch->shards[nth];

		if (shard->state != SHARD_UNKNOWN)
			continue;
		if (!has_open(batch, nth) && !may_retry(batch, nth)) {
			lock(batch);
			shard->state = SHARD_OVER;
			unlock(batch);
			continue;
		}
		if (try_shard(batch, nth, err))
			return true;
		*more = *more || shard->state == SHARD_UNKNOWN;
	}
	return false;
}

/* The next open line of a shard that is held; the lock is held. */
static bool take_open(struct fleet_batch *batch, size_t *line)
{
	for (size_t i = 0; i < batch->options.shards; i++) {
		struct shard *shard =
			&batch->shards[(batch->options.shard + i) % batch->options.shards];

		if (shard->state != SHARD_HELD)
			continue;
		while (shard->cursor < batch->count) {
			*line = shard->cursor;
			shard->cursor += batch->options.shards;
			if (batch->lines[*line].state == LINE_OPEN)
				return true;
		}
	}
	return false;
}

/* Renew the claims that are held. A shard that somebody else has by now is left to them. */
static void *keep_claims(void *context)
{
	struct fleet_batch *batch = context;
	struct err err;

	lock(batch);
	while (!batch->finished) {
		for (size_t i = 0; i < batch->options.shards; i++) {
			struct shard *shard = &batch->shards[i];
			bool lost;

			if (shard->state != SHARD_HELD)
				continue;
			unlock(batch);
			lost = !fleet_claim_renew(shard->claim, clock_now_ms(), &err) &&
			       err.code == EEXIST;
			if (lost)
				leave_shard(batch, i, err.text);
			lock(batch);
		}
		wait_ms(batch, KEEP_MS);
	}
	unlock(batch);
	return NULL;
}

/* Questions and messages of the slots. */

static bool is_used_up(struct fleet_batch *batch)
{
	char sentence[SENTENCE_ROOM];
	double money;

	lock(batch);
	money = batch->counts.money;
	unlock(batch);
	if (batch->options.money > 0 && money >= batch->options.money) {
		(void)snprintf(sentence, sizeof(sentence),
			       "the results have cost $%.2f of $%.2f", money,
			       batch->options.money);
		stop(batch, FLEET_STOP_MONEY, sentence);
		return true;
	}
	if (clock_now_ms() >= batch->deadline_ms) {
		(void)snprintf(sentence, sizeof(sentence), "its %g s are over",
			       batch->options.time_s);
		stop(batch, FLEET_STOP_TIME, sentence);
		return true;
	}
	return false;
}

/* Read LINE for TASK, and count it as running. */
static enum fleet_next give(struct fleet_batch *batch, size_t nth,
			    struct fleet_slot_task *task, struct err *err)
{
	struct line *line = &batch->lines[nth];

	if (!fleet_tasks_get(batch->tasks, nth, &task->task, err)) {
		lock(batch);
		line->state = LINE_LEFT;
		unlock(batch);
		stop(batch, FLEET_STOP_STORE, err->text);
		return FLEET_NEXT_FAILED;
	}
	(void)snprintf(task->job, sizeof(task->job), "%s",
		       fleet_job_name_of(batch->options.job));
	lock(batch);
	line->state = LINE_RUNS;
	line->attempts++;
	task->attempt = line->attempts;
	task->own = line;
	batch->counts.running++;
	unlock(batch);
	tell(batch, &(struct fleet_batch_event){.news = FLEET_NEWS_BEGAN,
						.id = task->task.id,
						.attempt = task->attempt});
	return FLEET_NEXT_TASK;
}

/* Take one more shard, when it is time for a look. */
static bool look_for_shard(struct fleet_batch *batch, bool *more, struct err *err)
{
	const int64_t now = clock_now_ms();
	bool undecided = false;

	for (size_t i = 0; i < batch->options.shards && !undecided; i++)
		undecided = batch->shards[i].state == SHARD_UNKNOWN &&
			    (batch->options.steals || i == batch->options.shard);
	*more = undecided;
	if (!undecided || (batch->looked_ms != 0 && now - batch->looked_ms < LOOK_MS))
		return false;
	/* Work that others have done since is not looked for. */
	if (now - batch->listed_ms >= LOOK_MS && !list_results(batch, err))
		return false;
	if (take_shard(batch, more, err))
		return true;
	batch->looked_ms = clock_now_ms();
	return false;
}

/* The next task that may begin now. *MORE: there may be one later, from a shard. */
static bool find_line(struct fleet_batch *batch, size_t *line, int64_t *due_ms,
		      bool *more, struct err *err)
{
	bool found;

	do {
		lock(batch);
		found = take_due(batch, line, due_ms) || take_open(batch, line);
		unlock(batch);
	} while (!found && look_for_shard(batch, more, err));
	return found;
}

static enum fleet_next next(void *context, struct fleet_slot_task *task, bool *over,
			    struct err *err)
{
	struct fleet_batch *batch = context;
	int64_t due_ms = CLOCK_NEVER, wait = WAIT_MS;
	bool found, more = false;
	size_t line = 0;

	lock(batch);
	*over = batch->counts.stop != FLEET_STOP_NOT;
	unlock(batch);
	if (*over)
		return FLEET_NEXT_NONE;
	found = find_line(batch, &line, &due_ms, &more, err);
	if (found) {
		*over = is_used_up(batch);
		if (!*over)
			return give(batch, line, task, err);
		lock(batch);
		batch->lines[line].state = LINE_LEFT;
		unlock(batch);
		return FLEET_NEXT_NONE;
	}
	lock(batch);
	if (batch->counts.running == 0 && batch->counts.waiting == 0 && !more)
		*over = true;
	if (!*over) {
		if (due_ms != CLOCK_NEVER && due_ms - clock_now_ms() < wait)
			wait = due_ms - clock_now_ms();
		if (wait > 0)
			wait_ms(batch, wait);
	}
	unlock(batch);
	return more && err->text[0] != '\0' ? FLEET_NEXT_FAILED : FLEET_NEXT_NONE;
}

/* Bring TASK again after a while. */
static void try_again(struct fleet_batch *batch, struct fleet_slot_task *task, int which,
		      const char *why)
{
	const size_t line = (size_t)((struct line *)task->own - batch->lines);

	lock(batch);
	batch->counts.running--;
	delay(batch, line, which);
	(void)pthread_cond_broadcast(&batch->changed);
	unlock(batch);
	tell(batch, &(struct fleet_batch_event){.news = FLEET_NEWS_AGAIN,
						.id = task->task.id,
						.attempt = task->attempt,
						.text = why,
						.seconds = delay_s[which]});
}

static void leave_line(struct fleet_batch *batch, struct fleet_slot_task *task)
{
	lock(batch);
	((struct line *)task->own)->state = LINE_LEFT;
	batch->counts.running--;
	(void)pthread_cond_broadcast(&batch->changed);
	unlock(batch);
}

static const char *message_of(const struct value *result)
{
	const char *text = value_text(value_member(result, "message"));

	return text != NULL ? text : "nothing of it could be set up";
}

static void take_money(struct fleet_batch *batch, const struct value *result)
{
	lock(batch);
	batch->counts.money += value_number(value_member(result, "money"));
	unlock(batch);
}

/* TASK has a result in the store: RESULT, or another one that was THERE. */
static void take_end(struct fleet_batch *batch, struct fleet_slot_task *task,
		     const struct value *result, bool there)
{
	const enum fleet_status status =
		there ? FLEET_STATUSES : fleet_result_status(result);
	char sentence[SENTENCE_ROOM];
	bool too_many;

	lock(batch);
	set_over(batch, (size_t)((struct line *)task->own - batch->lines), status);
	batch->counts.running--;
	batch->counts.ended++;
	if (!there && status != FLEET_DONE)
		batch->failed++;
	too_many =
		batch->options.fail_fast > 0 && batch->failed >= batch->options.fail_fast;
	(void)snprintf(sentence, sizeof(sentence),
		       "%" PRIu64 " of its results are not done", batch->failed);
	(void)pthread_cond_broadcast(&batch->changed);
	unlock(batch);
	tell(batch, &(struct fleet_batch_event){.news = FLEET_NEWS_ENDED,
						.id = task->task.id,
						.attempt = task->attempt,
						.result = result,
						.text = there ? "it had a result" : NULL});
	if (too_many)
		stop(batch, FLEET_STOP_FAILED, sentence);
}

static void ended(void *context, struct fleet_slot_task *task, const struct value *result,
		  bool there, const struct err *err)
{
	struct fleet_batch *batch = context;
	const int attempt = task->attempt <= DELAYS ? task->attempt - 1 : DELAYS - 1;

	if (result == NULL && err->code == ECONNRESET) {
		try_again(batch, task, DELAY_LOST, err->text);
		return;
	}
	if (result == NULL) {
		leave_line(batch, task);
		stop(batch, FLEET_STOP_STORE, err->text);
		return;
	}
	take_money(batch, result);
	switch (fleet_result_status(result)) {
	case FLEET_SET_UP:
		try_again(batch, task, attempt, message_of(result));
		break;
	case FLEET_CANCELLED:
		/* Only the end of this process cancels, and that is not recorded. */
		leave_line(batch, task);
		break;
	default:
		take_end(batch, task, result, there);
		break;
	}
}

static void tell_line(void *context, const struct fleet_slot_task *task, const char *line)
{
	tell(context, &(struct fleet_batch_event){.news = FLEET_NEWS_LINE,
						  .id = task->task.id,
						  .attempt = task->attempt,
						  .text = line});
}

static void waits(void *context, const char *why)
{
	tell(context, &(struct fleet_batch_event){.news = why != NULL ? FLEET_NEWS_WAITS
								      : FLEET_NEWS_GOES_ON,
						  .text = why});
}

/* The life of a batch. */

static void free_batch(struct fleet_batch *batch)
{
	for (size_t i = 0; i < batch->options.shards; i++)
		fleet_claim_free(batch->shards[i].claim);
	for (size_t i = 0; i < DELAYS; i++)
		free(batch->delayed[i].items);
	(void)pthread_cond_destroy(&batch->changed);
	(void)pthread_mutex_destroy(&batch->lock);
	(void)pthread_mutex_destroy(&batch->telling);
	free(batch->shards);
	free(batch->lines);
	free(batch);
}

static struct fleet_batch *make_batch(const struct fleet_batch_options *options)
{
	struct fleet_batch *batch = memory_alloc(sizeof(*batch));
	pthread_condattr_t attributes;
	char host[HOST_ROOM] = "";

	batch->options = *options;
	batch->tasks = fleet_job_tasks(options->job);
	batch->count = fleet_tasks_count(batch->tasks);
	batch->lines = memory_array(batch->count + 1, sizeof(*batch->lines));
	batch->shards = memory_array(options->shards, sizeof(*batch->shards));
	batch->deadline_ms = clock_deadline(options->time_s);
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(batch->worker, sizeof(batch->worker), "%s-%d", host, (int)getpid());
	(void)pthread_mutex_init(&batch->telling, NULL);
	(void)pthread_mutex_init(&batch->lock, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&batch->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return batch;
}

static bool start_keeper(struct fleet_batch *batch, struct err *err)
{
	const int failed = pthread_create(&batch->keeper, NULL, keep_claims, batch);

	batch->has_keeper = failed == 0;
	return failed == 0 || err_set(err, failed, "a thread: %s", strerror(failed));
}

static void stop_keeper(struct fleet_batch *batch)
{
	lock(batch);
	batch->finished = true;
	(void)pthread_cond_broadcast(&batch->changed);
	unlock(batch);
	if (batch->has_keeper)
		(void)pthread_join(batch->keeper, NULL);
	for (size_t i = 0; i < batch->options.shards; i++)
		if (batch->shards[i].claim != NULL)
			fleet_claim_release(batch->shards[i].claim);
}

bool fleet_batch_start(const struct fleet_batch_options *options,
		       struct fleet_batch **started, struct err *err)
{
	struct fleet_batch *batch = make_batch(options);
	const struct fleet_slots_options slots = {
		.count = options->cells,
		.program = options->program,
		.worker = batch->worker,
		.config = options->config,
		.store = options->store,
		.next = next,
		.ended = ended,
		.tell = tell_line,
		.waits = waits,
		.context = batch,
	};

	/* A store that cannot be read is told before anything runs. */
	if (list_results(batch, err) && start_keeper(batch, err) &&
	    fleet_slots_start(&slots, &batch->slots, err)) {
		*started = batch;
		return true;
	}
	stop_keeper(batch);
	free_batch(batch);
	return false;
}

void fleet_batch_drain(struct fleet_batch *batch)
{
	lock(batch);
	if (batch->counts.stop == FLEET_STOP_NOT)
		batch->counts.stop = FLEET_STOP_DRAINED;
	(void)pthread_cond_broadcast(&batch->changed);
	unlock(batch);
	fleet_slots_drain(batch->slots);
}

void fleet_batch_cancel(struct fleet_batch *batch)
{
	fleet_batch_drain(batch);
	fleet_slots_cancel(batch->slots, NULL, NULL);
}

bool fleet_batch_over(const struct fleet_batch *batch)
{
	return fleet_slots_over(batch->slots);
}

/* Is SHARD one of ours? The one that we were given is, even when another process works on it. */
static bool is_ours(const struct fleet_batch *batch, size_t shard)
{
	return shard == batch->options.shard || batch->shards[shard].counted ||
	       batch->shards[shard].state == SHARD_HELD;
}

void fleet_batch_count(struct fleet_batch *batch, struct fleet_batch_counts *counts)
{
	lock(batch);
	batch->counts.tasks = batch->counts.results = 0;
	memset(batch->counts.by_status, 0, sizeof(batch->counts.by_status));
	for (size_t i = 0; i < batch->options.shards; i++) {
		batch->shards[i].counted = is_ours(batch, i);
		if (!batch->shards[i].counted)
			continue;
		for (size_t nth = i; nth < batch->count; nth += batch->options.shards) {
			const struct line *line = &batch->lines[nth];

			batch->counts.tasks++;
			batch->counts.results += line->state == LINE_OVER;
			if (line->state == LINE_OVER && line->status < FLEET_STATUSES)
				batch->counts.by_status[line->status]++;
		}
	}
	*counts = batch->counts;
	unlock(batch);
}

/* Read the statuses of results that others have written. */
static bool read_statuses(struct fleet_batch *batch, struct err *err)
{
	for (size_t i = 0; i < batch->options.shards; i++) {
		if (!is_ours(batch, i))
			continue;
		for (size_t nth = i; nth < batch->count; nth += batch->options.shards)
			if (!read_status(batch, nth, err))
				return false;
	}
	return true;
}

bool fleet_batch_finish(struct fleet_batch *batch, struct fleet_batch_counts *counts,
			struct err *err)
{
	bool ok;

	fleet_slots_finish(batch->slots);
	stop_keeper(batch);
	ok = list_results(batch, err) && read_statuses(batch, err);
	fleet_batch_count(batch, counts);
	free_batch(batch);
	return ok;
}
