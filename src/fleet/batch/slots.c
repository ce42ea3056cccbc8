/*
 * slots: threads that do tasks beside each other in one engine, and put their results into
 * the store. The engine is shared; a thread that finds it lost waits until all others have
 * noticed as well, and the first one begins another.
 */

#include "fleet/batch/slots.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "fleet/client.h"
#include "fleet/work.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum {
	STACK_BYTES = 1 << 20, /* of a slot: 4,096 of them take address space, no memory */
	CELLS_A_TASK = 3,      /* one for the task, one for git, one to spare */
	CELLS_MAX = 4096,      /* of an engine */
	CELLS_TEXT = 16,       /* for the number of cells as text */
	ROOM_MEMORY = 128 << 20, /* bytes that must be available before a task begins */
	ROOM_DISK = 64 << 20,    /* bytes that must be free where workspaces are made */
	ROOM_LOOK_MS = 500,      /* a look at both holds so long */
	ENGINE_SHORT_MS = 2000,  /* an engine that lived less counts as a failed start */
	ENGINE_WAIT_MS = 250,    /* before the next start; doubled each time */
	ENGINE_WAIT_MAX_MS = 5000,
	ENGINE_TRIES = 5, /* to begin one for a task; then the task is told of the failure */
	STORE_TRIES = 5,     /* of a result, which may have cost hours */
	STORE_WAIT_MS = 250, /* before the second try; tripled each time */
	STORE_WAIT_MAX_MS = 10000,
	IDLE_MS = 20, /* after `next` had nothing, so that it is never spun on */
};

enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_OVER };

/* A wish to end a task: the kept record says "cancelled", the other way leaves no record. */
enum slot_end { END_NOT, END_RECORDED, END_UNRECORDED };

struct slot {
	struct fleet_slots *slots;
	pthread_t thread;
	enum slot_state state;
	enum slot_end end;
	bool cancel; /* the engine's callers read it */
	struct fleet_slot_task task;
};

struct fleet_slots {
	struct fleet_slots_options options;
	struct slot *slot;
	size_t count, started;
	atomic_size_t busy, alive;

	pthread_mutex_t giving; /* held by the one slot that asks for a task */
	pthread_mutex_t lock;   /* of all that follows, and of the slots' states */
	pthread_cond_t changed;
	bool draining, ending;
	bool waits; /* somebody was told that nothing begins */
	int64_t looked_ms;
	bool has_room;

	struct fleet_client *client;
	size_t users; /* slots that work with CLIENT */
	bool starting;
	int64_t begun_ms;
	int short_lives; /* engines in a row that ended at once */
};

/* Waiting. */

/* Wait for a change, at most MS; the lock is held. */
static void wait_ms(struct fleet_slots *slots, int64_t ms)
{
	const struct timespec until = clock_after(ms);

	(void)pthread_cond_timedwait(&slots->changed, &slots->lock, &until);
}

/* Wait MS, or until all is to end; the lock is held. */
static void pause_ms(struct fleet_slots *slots, const struct slot *slot, int64_t ms)
{
	const int64_t until = clock_now_ms() + ms;
	int64_t left = ms;

	while (left > 0 && !slots->ending && (slot == NULL || slot->end == END_NOT)) {
		wait_ms(slots, left);
		left = until - clock_now_ms();
	}
}

static bool is_to_end(struct slot *slot)
{
	return __atomic_load_n(&slot->cancel, __ATOMIC_ACQUIRE);
}

static void tell_waits(struct fleet_slots *slots, const char *why)
{
	const bool waits = why != NULL;
	bool news;

	(void)pthread_mutex_lock(&slots->lock);
	news = waits || slots->waits;
	slots->waits = waits;
	(void)pthread_mutex_unlock(&slots->lock);
	if (news && slots->options.waits != NULL)
		slots->options.waits(slots->options.context, why);
}

/* Room for a fresh task. */

/* Bytes of memory that programs can have; UINT64_MAX when the kernel does not say. */
static uint64_t memory_available(void)
{
	static const char name[] = "MemAvailable:";
	uint64_t kib = UINT64_MAX >> 10;
	const char *at;
	struct buf text;

	buf_init(&text, 16 << 10);
	if (fd_read_at(AT_FDCWD, "/proc/meminfo", &text)) {
		at = strstr(text.data, name);
		if (at != NULL)
			kib = strtoull(at + sizeof(name) - 1, NULL, 10);
	}
	buf_fini(&text);
	return kib << 10;
}

static const char *workspaces_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder != NULL && folder[0] == '/' ? folder : "/tmp";
}

static bool look_for_room(struct err *err)
{
	const char *folder = workspaces_folder();
	const uint64_t memory = memory_available();
	struct statvfs disk;
	uint64_t bytes;

	if (memory < ROOM_MEMORY)
		return err_set(err, ENOMEM,
			       "%" PRIu64
			       " MiB of memory are available, and a task begins with "
			       "%d: end other programs, or use fewer cells",
			       memory >> 20, ROOM_MEMORY >> 20);
	if (statvfs(folder, &disk) < 0)
		return true;
	bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	return bytes >= ROOM_DISK ||
	       err_set(err, ENOSPC,
		       "%" PRIu64
		       " MiB are free in %s, and a task begins with %d: remove files "
		       "there, or name another folder in TMPDIR",
		       bytes >> 20, folder, ROOM_DISK >> 20);
}

/*
 * Is there room for one more task? False: the reason was told, and half a second has
 * passed.
 */
static bool has_room(struct fleet_slots *slots)
{
	const int64_t now = clock_now_ms();
	struct err err = {0};

	if (slots->has_room && now - slots->looked_ms < ROOM_LOOK_MS)
		return true;
	slots->has_room = look_for_room(&err);
	slots->looked_ms = now;
	if (slots->has_room)
		return true;
	tell_waits(slots, err.text);
	(void)pthread_mutex_lock(&slots->lock);
	pause_ms(slots, NULL, ROOM_LOOK_MS);
	(void)pthread_mutex_unlock(&slots->lock);
	return false;
}

/* The engine. */

static bool start_engine(struct fleet_slots *slots, struct fleet_client **client,
			 struct err *err)
{
	const size_t wanted = slots->count * CELLS_A_TASK;
	const char *words[5] = {"--max-cells"};
	char cells[CELLS_TEXT];
	size_t count = 1;

	(void)snprintf(cells, sizeof(cells), "%zu", wanted < CELLS_MAX ? wanted : CELLS_MAX);
	words[count++] = cells;
	if (slots->options.config != NULL) {
		words[count++] = "--config";
		words[count++] = slots->options.config;
	}
	return fleet_client_start(slots->options.program, words, client, err);
}

/* Wait before another engine when the last ones have ended at once; the lock is held. */
static void wait_before_engine(struct fleet_slots *slots, const struct slot *slot)
{
	int64_t ms = ENGINE_WAIT_MS;

	if (slots->begun_ms != 0 && clock_now_ms() - slots->begun_ms < ENGINE_SHORT_MS)
		slots->short_lives++;
	else
		slots->short_lives = 0;
	if (slots->short_lives == 0)
		return;
	for (int i = 1; i < slots->short_lives && ms < ENGINE_WAIT_MAX_MS; i++)
		ms *= 2;
	pause_ms(slots, slot, ms < ENGINE_WAIT_MAX_MS ? ms : ENGINE_WAIT_MAX_MS);
}

/* Replace the engine, which is lost or was never there; the lock is held, but not all the time. */
static bool replace_engine(struct fleet_slots *slots, const struct slot *slot,
			   struct err *err)
{
	struct fleet_client *old = slots->client, *fresh = NULL;
	bool ok;

	slots->client = NULL;
	slots->starting = true;
	wait_before_engine(slots, slot);
	(void)pthread_mutex_unlock(&slots->lock);
	if (old != NULL)
		fleet_client_stop(old);
	ok = start_engine(slots, &fresh, err);
	(void)pthread_mutex_lock(&slots->lock);
	slots->starting = false;
	slots->begun_ms = clock_now_ms();
	slots->client = ok ? fresh : NULL;
	(void)pthread_cond_broadcast(&slots->changed);
	return ok;
}

/* The engine for SLOT, which leaves it by leave_engine. NULL: ERR says why there is none. */
static struct fleet_client *take_engine(struct fleet_slots *slots, struct slot *slot,
					struct err *err)
{
	struct fleet_client *client = NULL;

	(void)pthread_mutex_lock(&slots->lock);
	for (int tries = 0; client == NULL && tries < ENGINE_TRIES; tries++) {
		while (slots->starting || (slots->client != NULL && slots->users > 0 &&
					   fleet_client_gone(slots->client)))
			wait_ms(slots, ROOM_LOOK_MS);
		if (is_to_end(slot))
			break;
		if ((slots->client != NULL && !fleet_client_gone(slots->client)) ||
		    replace_engine(slots, slot, err))
			client = slots->client;
	}
	if (client != NULL)
		slots->users++;
	(void)pthread_mutex_unlock(&slots->lock);
	return client;
}

static void leave_engine(struct fleet_slots *slots)
{
	(void)pthread_mutex_lock(&slots->lock);
	slots->users--;
	(void)pthread_cond_broadcast(&slots->changed);
	(void)pthread_mutex_unlock(&slots->lock);
}

/* The way of a task. */

/* Is the object NAME, which is there, the TEXT of an attempt of ours whose answer was lost? */
static bool is_our_own(struct fleet_store *store, const char *name, struct str text)
{
	struct buf there;
	struct err err;
	bool same;

	buf_init(&there, FLEET_OBJECT_MAX);
	same = fleet_store_get(store, name, &there, &err) && there.size == text.size &&
	       memcmp(there.data, text.data, text.size) == 0;
	buf_fini(&there);
	return same;
}

/* Put RESULT where no other result of its task may be; a store that fails is tried again. */
static bool keep(struct slot *slot, const struct value *result, bool *there, struct err *err)
{
	struct fleet_slots *slots = slot->slots;
	enum fleet_put put = FLEET_PUT_FAILED;
	char name[FLEET_NAME_BYTES];
	int64_t ms = STORE_WAIT_MS;
	struct buf text;

	(void)snprintf(name, sizeof(name), "jobs/%s/results/%s.json", slot->task.job,
		       slot->task.task.id);
	buf_init(&text, FLEET_OBJECT_MAX);
	(void)value_print(result, 0, &text);
	(void)buf_addc(&text, '\n');
	for (int tries = 1; put == FLEET_PUT_FAILED && tries <= STORE_TRIES; tries++) {
		if (tries > 1) {
			(void)pthread_mutex_lock(&slots->lock);
			pause_ms(slots, NULL, ms);
			(void)pthread_mutex_unlock(&slots->lock);
			ms = ms * 3 < STORE_WAIT_MAX_MS ? ms * 3 : STORE_WAIT_MAX_MS;
		}
		put = text.overflowed ? FLEET_PUT_FAILED
				      : fleet_store_put(slots->options.store, name,
							buf_str(&text), FLEET_IF_NEW, err);
	}
	if (text.overflowed)
		(void)err_set(err, EFBIG, "the result of %s has more than %d MiB",
			      slot->task.task.id, FLEET_OBJECT_MAX >> 20);
	*there = put == FLEET_PUT_THERE &&
		 !is_our_own(slots->options.store, name, buf_str(&text));
	buf_fini(&text);
	return put != FLEET_PUT_FAILED;
}

/* Neither the task nor its engine is at fault: there is no engine, or no store. */
static void tell_failure(struct slot *slot, struct err *err)
{
	const struct fleet_slots_options *options = &slot->slots->options;

	/* An engine that was lost is told by this code. */
	if (err->code == ECONNRESET)
		err->code = EIO;
	options->ended(options->context, &slot->task, NULL, false, err);
}

static void keep_and_tell(struct slot *slot, const struct value *result)
{
	const struct fleet_slots_options *options = &slot->slots->options;
	struct err err = {0};
	bool there = false;

	if (keep(slot, result, &there, &err)) {
		options->ended(options->context, &slot->task, result, there, NULL);
		return;
	}
	tell_failure(slot, &err);
}

static bool has_attempts(const struct slot *slot)
{
	return slot->task.attempt > 0 && slot->task.attempt < slot->task.task.attempts;
}

static void give_up(struct slot *slot, struct value *result)
{
	value_set_text(result, "status", fleet_status_name(FLEET_GAVE_UP));
	keep_and_tell(slot, result);
}

/*
 * The engine has gone in the middle of the task, and nobody knows whether the task did
 * anything.
 */
static void settle_lost(struct slot *slot, struct err *err)
{
	const struct fleet_slots_options *options = &slot->slots->options;
	auto_value struct value *result = NULL;

	if (has_attempts(slot)) {
		err->code = ECONNRESET;
		options->ended(options->context, &slot->task, NULL, false, err);
		return;
	}
	result = fleet_result_new(slot->task.job, slot->task.task.id, slot->task.attempt,
				  FLEET_GAVE_UP);
	value_set_text(result, "worker", options->worker);
	value_set_text(result, "message", err->text);
	give_up(slot, result);
}

static void settle(struct slot *slot, struct value *result)
{
	const struct fleet_slots_options *options = &slot->slots->options;
	const enum fleet_status status = fleet_result_status(result);
	enum slot_end end;

	(void)pthread_mutex_lock(&slot->slots->lock);
	end = slot->end;
	(void)pthread_mutex_unlock(&slot->slots->lock);
	if (status == FLEET_CANCELLED ? end == END_UNRECORDED
				      : status == FLEET_SET_UP && has_attempts(slot))
		options->ended(options->context, &slot->task, result, false, NULL);
	else if (status == FLEET_SET_UP)
		give_up(slot, result);
	else
		keep_and_tell(slot, result);
}

static void tell_line(void *context, const char *line)
{
	const struct slot *slot = context;
	const struct fleet_slots_options *options = &slot->slots->options;

	if (options->tell != NULL)
		options->tell(options->context, &slot->task, line);
}

static void tell_asked(void *context, bool limited)
{
	const struct slot *slot = context;
	const struct fleet_slots_options *options = &slot->slots->options;

	if (options->asked != NULL)
		options->asked(options->context, &slot->task, limited);
}

static struct value *cancelled_result(const struct slot *slot)
{
	struct value *result = fleet_result_new(slot->task.job, slot->task.task.id,
						slot->task.attempt, FLEET_CANCELLED);

	value_set_text(result, "worker", slot->slots->options.worker);
	return result;
}

static void do_task(struct slot *slot)
{
	struct fleet_slots *slots = slot->slots;
	auto_value struct value *result = NULL;
	struct fleet_work work = {
		.store = slots->options.store,
		.program = slots->options.program,
		.config = slots->options.config,
		.job = slot->task.job,
		.worker = slots->options.worker,
		.task = &slot->task.task,
		.attempt = slot->task.attempt,
		.pace = slot->task.pace[0] != '\0' ? slot->task.pace : NULL,
		.cancel = &slot->cancel,
		.tell = tell_line,
		.asked = tell_asked,
		.context = slot,
	};
	struct err err = {0};
	bool lost = false;

	if (slot->task.attempt < 1) {
		(void)err_set(&err, 0, "all its attempts have ended without a result");
		settle_lost(slot, &err);
		return;
	}
	work.client = take_engine(slots, slot, &err);
	if (work.client != NULL) {
		result = fleet_work_do(&work);
		lost = fleet_client_gone(work.client);
		leave_engine(slots);
	}
	if (is_to_end(slot) && (work.client == NULL || lost)) {
		value_free(result);
		result = cancelled_result(slot);
	} else if (work.client == NULL) {
		tell_failure(slot, &err);
		return;
	} else if (lost) {
		(void)err_set(&err, ECONNRESET, "its engine has ended");
		settle_lost(slot, &err);
		return;
	}
	settle(slot, result);
}

/* The threads. */

/* Ask for a task. *OVER: there will be none. False: none now. */
static bool take_task(struct slot *slot, bool *over)
{
	struct fleet_slots *slots = slot->slots;
	enum fleet_next next = FLEET_NEXT_NONE;
	struct err err = {0};

	(void)pthread_mutex_lock(&slots->giving);
	(void)pthread_mutex_lock(&slots->lock);
	*over = slots->draining;
	(void)pthread_mutex_unlock(&slots->lock);
	if (!*over && has_room(slots))
		next = slots->options.next(slots->options.context, &slot->task, over, &err);
	if (next == FLEET_NEXT_TASK) {
		/*
		 * No other thread may see nothing over and nothing busy between these two
		 * steps.
		 */
		(void)pthread_mutex_lock(&slots->lock);
		slot->state = SLOT_BUSY;
		slot->end = slots->ending ? END_UNRECORDED : END_NOT;
		__atomic_store_n(&slot->cancel, slots->ending, __ATOMIC_RELEASE);
		(void)pthread_mutex_unlock(&slots->lock);
		(void)atomic_fetch_add(&slots->busy, 1);
		tell_waits(slots, NULL);
	} else if (next == FLEET_NEXT_FAILED) {
		tell_waits(slots, err.text);
	}
	(void)pthread_mutex_unlock(&slots->giving);
	return next == FLEET_NEXT_TASK;
}

static void *work_on(void *context)
{
	struct slot *slot = context;
	struct fleet_slots *slots = slot->slots;
	bool over = false;

	while (!over) {
		if (take_task(slot, &over)) {
			over = false;
			do_task(slot);
			(void)pthread_mutex_lock(&slots->lock);
			slot->state = SLOT_FREE;
			(void)pthread_mutex_unlock(&slots->lock);
			fleet_task_fini(&slot->task.task);
			slot->task = (struct fleet_slot_task){0};
			(void)atomic_fetch_sub(&slots->busy, 1);
		} else if (!over) {
			(void)pthread_mutex_lock(&slots->lock);
			pause_ms(slots, NULL, IDLE_MS);
			(void)pthread_mutex_unlock(&slots->lock);
		}
	}
	(void)pthread_mutex_lock(&slots->lock);
	slot->state = SLOT_OVER;
	(void)pthread_mutex_unlock(&slots->lock);
	(void)atomic_fetch_sub(&slots->alive, 1);
	return NULL;
}

static bool start_threads(struct fleet_slots *slots, struct err *err)
{
	pthread_attr_t attributes;
	int failed = 0;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (size_t i = 0; i < slots->count && failed == 0; i++) {
		slots->slot[i].slots = slots;
		(void)atomic_fetch_add(&slots->alive, 1);
		failed = pthread_create(&slots->slot[i].thread, &attributes, work_on,
					&slots->slot[i]);
		if (failed == 0)
			slots->started++;
		else
			(void)atomic_fetch_sub(&slots->alive, 1);
	}
	(void)pthread_attr_destroy(&attributes);
	return failed == 0 ||
	       err_set(err, failed, "a thread for a cell: %s; use fewer cells (-j)",
		       strerror(failed));
}

bool fleet_slots_start(const struct fleet_slots_options *options,
		       struct fleet_slots **slots, struct err *err)
{
	const size_t count = options->count > 0 ? options->count : clock_cores_usable();
	pthread_condattr_t attributes;
	struct fleet_slots *made;

	if (count > FLEET_SLOTS_MAX)
		return err_set(err, EINVAL, "at most %d cells at the same time",
			       FLEET_SLOTS_MAX);
	made = memory_alloc(sizeof(*made));
	made->options = *options;
	made->count = count;
	made->slot = memory_array(count, sizeof(*made->slot));
	(void)pthread_mutex_init(&made->giving, NULL);
	(void)pthread_mutex_init(&made->lock, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&made->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	*slots = made;
	if (start_threads(made, err))
		return true;
	fleet_slots_cancel(made, NULL, NULL);
	fleet_slots_finish(made);
	*slots = NULL;
	return false;
}

void fleet_slots_drain(struct fleet_slots *slots)
{
	(void)pthread_mutex_lock(&slots->lock);
	slots->draining = true;
	(void)pthread_cond_broadcast(&slots->changed);
	(void)pthread_mutex_unlock(&slots->lock);
}

/* End what runs of JOB and ID (NULL: all) as END says; the lock is held. */
static void end_some(struct fleet_slots *slots, const char *job, const char *id,
		     enum slot_end end)
{
	for (size_t i = 0; i < slots->count; i++) {
		struct slot *slot = &slots->slot[i];

		if (slot->state != SLOT_BUSY ||
		    (job != NULL && strcmp(job, slot->task.job) != 0) ||
		    (id != NULL && strcmp(id, slot->task.task.id) != 0))
			continue;
		if (slot->end == END_NOT)
			slot->end = end;
		__atomic_store_n(&slot->cancel, true, __ATOMIC_RELEASE);
	}
	if (slots->client != NULL)
		fleet_client_wake(slots->client);
	(void)pthread_cond_broadcast(&slots->changed);
}

void fleet_slots_cancel(struct fleet_slots *slots, const char *job, const char *id)
{
	(void)pthread_mutex_lock(&slots->lock);
	if (job == NULL)
		slots->draining = slots->ending = true;
	end_some(slots, job, id, job != NULL ? END_RECORDED : END_UNRECORDED);
	(void)pthread_mutex_unlock(&slots->lock);
}

void fleet_slots_lose(struct fleet_slots *slots, const char *job, const char *id)
{
	(void)pthread_mutex_lock(&slots->lock);
	end_some(slots, job, id, END_UNRECORDED);
	(void)pthread_mutex_unlock(&slots->lock);
}

size_t fleet_slots_busy(const struct fleet_slots *slots)
{
	return atomic_load(&slots->busy);
}

size_t fleet_slots_count(const struct fleet_slots *slots)
{
	return slots->count;
}

bool fleet_slots_over(const struct fleet_slots *slots)
{
	return atomic_load(&slots->alive) == 0;
}

void fleet_slots_join(struct fleet_slots *slots)
{
	for (; slots->started > 0; slots->started--)
		(void)pthread_join(slots->slot[slots->started - 1].thread, NULL);
}

void fleet_slots_finish(struct fleet_slots *slots)
{
	struct fleet_client *client;

	if (slots == NULL)
		return;
	fleet_slots_join(slots);
	/* Nobody may wake an engine that is being ended. */
	(void)pthread_mutex_lock(&slots->lock);
	client = slots->client;
	slots->client = NULL;
	(void)pthread_mutex_unlock(&slots->lock);
	if (client != NULL)
		fleet_client_stop(client);
	(void)pthread_cond_destroy(&slots->changed);
	(void)pthread_mutex_destroy(&slots->lock);
	(void)pthread_mutex_destroy(&slots->giving);
	free(slots->slot);
	free(slots);
}
