/*
 * worker: three kinds of threads. Those of the slots take tasks and end them; the keeper renews
 * leases, tells again what the server did not confirm, notices cancels and sends heartbeats;
 * the lead compares queue and store. What they share is one list of held tasks.
 */

#include "fleet/queue/worker.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "build_config.h"
#include "fleet/batch/slots.h"
#include "fleet/queue/dead.h"
#include "fleet/queue/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TICK_MS = 500,        /* of the keeper */
	RENEWALS = 3,         /* in the time of a lease */
	KEYS_MS = 2000,       /* how old what is known of cancels and pauses may be */
	SHARES_MS = 10000,    /* between two looks at the shares of lanes with a rate */
	HEARTBEAT_MS = 15000, /* three in the time that one is believed */
	HEARTBEAT_NEWS_MS = 2000, /* the same, when something has changed */
	RUNNING_TOLD_MAX = 1000,  /* tasks that a heartbeat names */
	LEAD_MS = 20000,
	RECONCILE_MOST_MS = 60000, /* in a fleet with a short lease each half lease */
	TAKE_S = 1,
	FAILED_MS = 500, /* after a failure to take */
	SAID_MS = 30000, /* the same sentence is not said again before */
	REFUSED_S = 30, /* a line that we cannot read may be read by another worker … */
	REFUSED_MOST = 10,       /* … within so many deliveries; then it is dead */
	DEAD_AGED_MS = 86400000, /* a day, for those of jobs that are not the fleet's */
	SET_UP_S = 5,            /* before the second attempt; doubled each time … */
	SET_UP_MOST_S = 300,     /* … up to this */
	STORE_AWAY_S = 30,
	BURST = 1,        /* tasks that a lane with a rate may begin at the same time */
	PACE_WAIT_S = 10, /* the longest wait until a task is asked for again */
	DEBT_S = 3600, /* requests above the rate are waited for, but no longer than this */
	HALVE_MS = 10000, /* refusals within this time are of one wave, and halve the rate once … */
	HALF_GROWS_S = 60,  /* … which grows from a half to the whole in so long */
	TELL_MS = 250,      /* between two lines of a task for those who look on … */
	TELLS = 4,          /* … of which so many may come together */
	JOBS_OPEN_MAX = 64, /* that the lead keeps in memory */
	JOBS_READ_MAX = 32, /* whose tasks a worker keeps in memory … */
	JOBS_READ_BYTES = 64 << 20, /* … of so many bytes, and those of one more */
	JOB_AGED_MS = 30000, /* a line that is not in a job is looked for once more after this */
	DROPS_SAID = 10, /* sentences about dropped lines, in DROPS_MS; more are counted */
	DROPS_MS = 60000,
};

/* The least part of its rate that a worker keeps while a model says that it is too much. */
static const double least_part = 1.0 / 64;

enum held_state {
	HELD_READY,  /* taken, and no slot has it yet */
	HELD_CHOSEN, /* a slot looks whether it has to run */
	HELD_RUNNING,
	HELD_LOST,      /* running, but the lease is lost: it is being ended */
	HELD_ANSWERING, /* its result is in the store; the queue does not know that yet */
};

/* A task that this worker has taken. */
struct held {
	struct held *next;
	struct fleet_lease *lease;
	enum held_state state;
	bool renewing; /* one thread works with its lease without the lock: nobody else does */
	char *lane;
	int64_t renewed_ms; /* when a renewal was last tried, or at first the time of taking */
	struct fleet_task task; /* of HELD_CHOSEN; moved to the slot */
	int attempt;
	size_t asked; /* requests to its model */
	/* Of a run of our own agent whose lane has a rate: its model takes a byte before each request. */
	int pace[2];          /* both ends of the pipe; -1: none */
	size_t leaves;        /* bytes that were written */
	int64_t told_ms;      /* the time that its lines have used up, TELL_MS each */
	char *untold;         /* the last line that came too early, owned; or NULL */
	struct value *result; /* of HELD_ANSWERING */
};

/*
 * How many tasks of a lane may begin: each is one request to a model, and those that it makes
 * beyond that are paid for before the next one begins.
 */
struct pace {
	char *lane;
	double room; /* requests that may be made; below 0: that were made too many */
	double part; /* of the rate: less than 1 after a model has said that it is too much */
	int per_minute; /* the rate over the whole fleet; 0: none any more */
	int permits;    /* tasks of it that run over the whole fleet; 0: no limit */
	int64_t at_ms, halved_ms;
};

/* The tasks of a job of this fleet, as the store has them. */
struct known_job {
	struct fleet_job *job;
	size_t bytes;
	int64_t read_ms, used_ms;
};

struct fleet_worker {
	struct fleet_worker_options options;
	struct fleet_slots *slots;
	pthread_t keeper, lead;
	bool has_keeper, has_lead;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct held *held;
	struct value *marks; /* "cancel.J", "cancel.J.ID", "pause.J": true; replaced as a whole */
	struct value *shares; /* lane -> the part of all its runs that are ours */
	struct pace *paces;
	size_t pace_count;
	bool draining, stopping, over; /* over: the threads are to end */
	bool news;                     /* for a heartbeat */
	char said[ERR_TEXT_MAX];
	int64_t said_ms;

	/* Without the lock: `next` alone has them, which one slot after the other calls. */
	struct known_job jobs[JOBS_READ_MAX];
	size_t job_count;
	size_t drops; /* since drops_ms */
	int64_t drops_ms;
};

static void say(struct fleet_worker *worker, const char *line)
{
	const int64_t now_ms = clock_now_ms();
	bool again;

	(void)pthread_mutex_lock(&worker->lock);
	again = strcmp(worker->said, line) == 0 && now_ms - worker->said_ms < SAID_MS;
	if (!again) {
		(void)snprintf(worker->said, sizeof(worker->said), "%s", line);
		worker->said_ms = now_ms;
	}
	(void)pthread_mutex_unlock(&worker->lock);
	if (!again && worker->options.say != NULL)
		worker->options.say(worker->options.context, line);
}

/* Wait MS, or until the worker is to end. */
static bool rest(struct fleet_worker *worker, int64_t ms)
{
	const struct timespec until = clock_after(ms);
	bool over;

	(void)pthread_mutex_lock(&worker->lock);
	while (!worker->over && pthread_cond_timedwait(&worker->changed, &worker->lock,
						       &until) != ETIMEDOUT)
		;
	over = worker->over;
	(void)pthread_mutex_unlock(&worker->lock);
	return !over;
}

/* The list of held tasks; the lock is held. */

/* The pace of LANE; NULL: none yet. */
static struct pace *find_pace(struct fleet_worker *worker, const char *lane)
{
	for (size_t i = 0; i < worker->pace_count; i++) {
		if (strcmp(worker->paces[i].lane, lane) == 0)
			return &worker->paces[i];
	}
	return NULL;
}

/* The bytes in the pipe of HELD, which has one. */
static size_t unused_leaves(const struct held *held)
{
	int count = 0;

	return ioctl(held->pace[0], FIONREAD, &count) == 0 && count > 0 ? (size_t)count : 0;
}

static void held_free(struct held *held)
{
	fleet_task_fini(&held->task);
	fleet_lease_free(held->lease);
	value_free(held->result);
	fd_close(&held->pace[0]);
	fd_close(&held->pace[1]);
	free(held->lane);
	free(held->untold);
	free(held);
}

static void remove_held(struct fleet_worker *worker, struct held *held)
{
	struct held **at = &worker->held;
	struct pace *pace = held->pace[1] >= 0 ? find_pace(worker, held->lane) : NULL;

	/* The part that it did not use is another one's. */
	if (pace != NULL)
		pace->room += (double)unused_leaves(held);

	while (*at != NULL && *at != held)
		at = &(*at)->next;
	if (*at != NULL)
		*at = held->next;
	worker->news = true;
}

/* Wait until no other thread uses the lease of HELD; end_held gives it up. The lock is held. */
static void need_lease(struct fleet_worker *worker, struct held *held)
{
	while (held->renewing)
		(void)pthread_cond_wait(&worker->changed, &worker->lock);
	held->renewing = true;
}

/* Take HELD, whose lease this thread has for itself, out of the list and free it. */
static void end_held(struct fleet_worker *worker, struct held *held)
{
	(void)pthread_mutex_lock(&worker->lock);
	remove_held(worker, held);
	(void)pthread_mutex_unlock(&worker->lock);
	held_free(held);
}

/* Take HELD out of the list and free it, as soon as the keeper does not work with it. */
static void drop_held(struct fleet_worker *worker, struct held *held)
{
	(void)pthread_mutex_lock(&worker->lock);
	need_lease(worker, held);
	(void)pthread_mutex_unlock(&worker->lock);
	end_held(worker, held);
}

static bool is_marked(struct fleet_worker *worker, const char *mark, const char *job,
		      const char *id)
{
	char key[FLEET_NAME_BYTES];
	bool marked;

	(void)snprintf(key, sizeof(key), "%s.%s%s%s", mark, job, id != NULL ? "." : "",
		       id != NULL ? id : "");
	(void)pthread_mutex_lock(&worker->lock);
	marked = value_member(worker->marks, key) != NULL;
	(void)pthread_mutex_unlock(&worker->lock);
	return marked;
}

/* As is_marked; a mark that was found is read again, because it may have been taken back since. */
static bool still_marked(struct fleet_worker *worker, const char *mark, const char *job,
			 const char *id, bool *marked, struct err *err)
{
	auto_value struct value *value = NULL;
	char key[FLEET_NAME_BYTES];

	*marked = false;
	if (!is_marked(worker, mark, job, id))
		return true;
	(void)snprintf(key, sizeof(key), "%s.%s%s%s", mark, job, id != NULL ? "." : "",
		       id != NULL ? id : "");
	if (!fleet_queue_get(worker->options.queue, FLEET_STATE, key, &value, err))
		return false;
	*marked = value != NULL;
	return true;
}

/* Telling the queue what became of a task. */

/* HELD has RESULT in the store: tell the queue, now or when it is there again. */
static void answer(struct fleet_worker *worker, struct held *held, struct value *take_result)
{
	struct err err = {0};
	bool done;

	(void)pthread_mutex_lock(&worker->lock);
	need_lease(worker, held);
	held->result = take_result;
	held->state = HELD_ANSWERING;
	worker->news = true;
	(void)pthread_mutex_unlock(&worker->lock);
	done = fleet_lease_done(held->lease, take_result, &err);
	if (done) {
		end_held(worker, held);
		return;
	}
	/* From here on HELD belongs to the keeper, which may free it immediately. */
	(void)pthread_mutex_lock(&worker->lock);
	held->renewing = false;
	(void)pthread_cond_broadcast(&worker->changed);
	(void)pthread_mutex_unlock(&worker->lock);
	say(worker, err.text);
}

static void give_back(struct fleet_worker *worker, struct held *held, double seconds,
		      enum fleet_return how)
{
	(void)pthread_mutex_lock(&worker->lock);
	need_lease(worker, held);
	(void)pthread_mutex_unlock(&worker->lock);
	fleet_lease_return(held->lease, seconds, how);
	end_held(worker, held);
}

/* HELD is not to run, because its job is paused or its line foreign: the queue is to have it no more. */
static void take_out(struct fleet_worker *worker, struct held *held)
{
	struct err err;

	(void)pthread_mutex_lock(&worker->lock);
	need_lease(worker, held);
	(void)pthread_mutex_unlock(&worker->lock);
	(void)fleet_lease_drop(held->lease, &err);
	end_held(worker, held);
}

/* HELD cannot be read here: another worker may have it after a while. */
static void refuse(struct fleet_worker *worker, struct held *held)
{
	const double part_s = fleet_queue_lease_s(worker->options.queue) / 4;

	give_back(worker, held, part_s < REFUSED_S ? part_s : REFUSED_S, FLEET_UNREAD);
}

static void tell_event(struct fleet_worker *worker, const char *job, const char *id,
		       const char *what, const char *text)
{
	auto_value struct value *event = value_new_object();
	struct buf line;

	buf_init(&line, FLEET_LINE_MAX);
	value_set_text(event, "event", what);
	value_set_text(event, "worker", worker->options.name);
	value_set_integer(event, "at_ms", clock_wall_ms());
	if (text != NULL)
		value_set_text(event, "text", text);
	if (value_print(event, 0, &line))
		fleet_queue_tell(worker->options.queue, job, id, buf_str(&line));
	buf_fini(&line);
}

/* Taking. */

/* Bring PACE up to now. Returns the requests that this worker may make in a second. The lock is held. */
static double update_pace(struct fleet_worker *worker, struct pace *pace)
{
	const struct value *share = value_member(worker->shares, pace->lane);
	const int64_t now_ms = clock_now_ms();
	const double passed_s = (double)(now_ms - pace->at_ms) / 1000;
	double rate;

	pace->part += 0.5 * passed_s / HALF_GROWS_S;
	pace->part = pace->part > 1 ? 1 : pace->part;
	rate = pace->per_minute / 60.0 * pace->part;
	if (value_is_number(share))
		rate *= value_number(share);
	pace->room += passed_s * rate;
	pace->room = pace->room > BURST ? BURST : pace->room;
	pace->at_ms = now_ms;
	return rate;
}

/*
 * Give each run that has used its leave another one, as far as the rate goes. So a run asks its model
 * only when that was paid for, and has paid for one request at most. The lock is held.
 */
static void give_leaves(struct fleet_worker *worker)
{
	for (struct held *held = worker->held; held != NULL; held = held->next) {
		struct pace *pace;

		if (held->state != HELD_RUNNING || held->pace[1] < 0 ||
		    unused_leaves(held) > 0)
			continue;
		pace = find_pace(worker, held->lane);
		if (pace != NULL && pace->per_minute > 0) {
			(void)update_pace(worker, pace);
			if (pace->room < 1)
				continue;
			pace->room -= 1;
		}
		(void)!write(held->pace[1], "", 1);
		held->leaves++;
	}
}

/* Does a run of LANE have no leave? It comes before a task that has not begun. The lock is held. */
static bool some_wait(const struct fleet_worker *worker, const char *lane)
{
	for (const struct held *held = worker->held; held != NULL; held = held->next) {
		if (held->state == HELD_RUNNING && held->pace[1] >= 0 &&
		    strcmp(held->lane, lane) == 0 && unused_leaves(held) == 0)
			return true;
	}
	return false;
}

/* HELD begins TASK, a run of our own agent in a lane with a rate: its first request is paid for. */
static void begin_pace(struct fleet_worker *worker, struct held *held,
		       struct fleet_slot_task *task)
{
	const struct pace *pace;

	(void)pthread_mutex_lock(&worker->lock);
	pace = find_pace(worker, held->lane);
	/* Without a pipe it is not held up, and what it asks is counted all the same. */
	if (pace != NULL && pace->per_minute > 0 &&
	    pipe2(held->pace, O_CLOEXEC | O_NONBLOCK) == 0) {
		(void)!write(held->pace[1], "", 1);
		held->leaves = 1;
		(void)snprintf(task->pace, sizeof(task->pace), "/proc/%d/fd/%d",
			       (int)getpid(), held->pace[0]);
	}
	(void)pthread_mutex_unlock(&worker->lock);
}

/* May one more task of LANE begin? *WAIT_S: how long until one may. */
static bool keeps_pace(struct fleet_worker *worker, const char *lane, double *wait_s)
{
	int permits = 0;
	const int per_minute =
		fleet_queue_per_minute(worker->options.queue, lane, &permits);
	struct pace *pace;
	bool may = true;
	double rate;

	(void)pthread_mutex_lock(&worker->lock);
	pace = find_pace(worker, lane);
	if (pace == NULL && per_minute > 0) {
		worker->paces = memory_grow(worker->paces, worker->pace_count + 1,
					    sizeof(*worker->paces));
		pace = &worker->paces[worker->pace_count++];
		*pace = (struct pace){.lane = memory_copy(lane),
				      .room = BURST,
				      .part = 1,
				      .at_ms = clock_now_ms()};
	}
	if (pace != NULL) {
		pace->per_minute = per_minute;
		pace->permits = permits;
	}
	if (per_minute > 0) {
		rate = update_pace(worker, pace);
		may = pace->room >= 1 && !some_wait(worker, lane);
		if (may)
			pace->room -= 1;
		else
			*wait_s = (pace->room < 1 ? 1 - pace->room : 1) / rate;
		*wait_s = *wait_s < PACE_WAIT_S ? *wait_s : PACE_WAIT_S;
	}
	(void)pthread_mutex_unlock(&worker->lock);
	return may;
}

/* The run of TASK has asked its model once more. Called by a reader, which must not wait. */
static void asked(void *context, const struct fleet_slot_task *task, bool limited)
{
	struct fleet_worker *worker = context;
	struct held *held = task->own;
	struct pace *pace;

	(void)pthread_mutex_lock(&worker->lock);
	held->asked++;
	pace = find_pace(worker, held->lane);
	if (pace != NULL && pace->per_minute > 0) {
		const double rate = update_pace(worker, pace);
		/* The first one was paid for when the task began, others where they took leave. */
		const size_t paid =
			held->pace[1] >= 0 ? held->leaves - unused_leaves(held) : 1;

		if (held->asked > paid && pace->room > -DEBT_S * rate)
			pace->room -= 1;
		if (limited &&
		    (pace->halved_ms == 0 || pace->at_ms - pace->halved_ms >= HALVE_MS)) {
			pace->part =
				pace->part > 2 * least_part ? pace->part / 2 : least_part;
			pace->halved_ms = pace->at_ms;
		}
	}
	give_leaves(worker);
	(void)pthread_mutex_unlock(&worker->lock);
}

/* Forget the tasks of the job AT. */
static void forget_job(struct fleet_worker *worker, struct known_job *at)
{
	fleet_job_free(at->job);
	*at = worker->jobs[--worker->job_count];
}

/* Forget jobs, those first that were not needed for the longest time, until there is room for one. */
static void make_room_for_job(struct fleet_worker *worker)
{
	size_t bytes = 0;

	for (size_t i = 0; i < worker->job_count; i++)
		bytes += worker->jobs[i].bytes;
	while (worker->job_count == JOBS_READ_MAX || bytes > JOBS_READ_BYTES) {
		struct known_job *oldest = &worker->jobs[0];

		for (size_t i = 1; i < worker->job_count; i++) {
			if (worker->jobs[i].used_ms < oldest->used_ms)
				oldest = &worker->jobs[i];
		}
		bytes -= oldest->bytes;
		forget_job(worker, oldest);
	}
}

/*
 * The tasks of the job NAME, which was submitted to this fleet: the store says so, which not
 * everybody may write who may publish. Read once, and once more when they are AGAIN wanted and old.
 * NULL with ERR: the store does not answer, or the job is not the fleet's.
 */
static struct known_job *know_job(struct fleet_worker *worker, const char *name,
				  bool again, struct err *err)
{
	const struct fleet_worker_options *options = &worker->options;
	const int64_t now_ms = clock_now_ms();
	struct known_job *at = worker->jobs, *end = at + worker->job_count;
	struct fleet_job *job = NULL;
	bool mine = false, paused;
	struct stat st;

	while (at < end && strcmp(fleet_job_name_of(at->job), name) != 0)
		at++;
	if (at < end && again && now_ms - at->read_ms >= JOB_AGED_MS) {
		forget_job(worker, at);
		at = end;
	}
	if (at < end) {
		at->used_ms = now_ms;
		return at;
	}
	if (!fleet_jobs_enlisted(options->store, options->fleet, name, &mine, &paused, err))
		return NULL;
	if (!mine) {
		(void)err_set(err, ENOENT,
			      "nobody has submitted this job to the fleet %s with the store %s: "
			      "is it the store of this worker that is wrong?",
			      options->fleet, fleet_store_where(options->store));
		return NULL;
	}
	make_room_for_job(worker);
	if (!fleet_job_open(options->store, name, &job, err))
		return NULL;
	at = &worker->jobs[worker->job_count++];
	*at = (struct known_job){.job = job, .read_ms = now_ms, .used_ms = now_ms};
	if (fstat(fleet_tasks_fd(fleet_job_tasks(job)), &st) == 0)
		at->bytes = (size_t)st.st_size;
	return at;
}

/* Kinds of messages that come. */
enum reading {
	READ_TASK,    /* that of a task, which is as the store has it */
	READ_FOREIGN, /* of no task of the fleet's job that it names */
	READ_REFUSED, /* this worker cannot say it; another one may */
	READ_LATER,   /* the store does not answer */
};

/* Is ERR, of opening a job, about the job? Else the store is away. */
static bool is_about_job(const struct err *err)
{
	return err->code == ENOENT || err->code == ENOTSUP || err->code == EINVAL ||
	       err->code == EEXIST || err->code == EFBIG;
}

/*
 * Is the message of HELD that of TASK, as the store has it? The queue is only a hint: its line, its
 * format and its lane, whose permit HELD has, are anybody's who may publish.
 */
static bool is_its_message(struct fleet_worker *worker, const struct held *held,
			   const struct fleet_task *task, struct err *err)
{
	auto_free char *place = fleet_queue_place(worker->options.queue,
						  fleet_lease_job(held->lease), task);
	auto_value struct value *came = NULL;
	const struct fleet_message message = fleet_lease_message(held->lease);

	if (message.version > FLEET_LINE_FORMAT)
		return err_set(err, 0,
			       "it says that its line has the format %d, and the job has %d",
			       message.version, FLEET_LINE_FORMAT);
	if (!value_parse(message.line, 0, &came, NULL) || !value_equal(came, task->line))
		return err_set(err, 0, "its line is not the one in the store %s",
			       fleet_store_where(worker->options.store));
	return strcmp(place, message.place) == 0 ||
	       err_set(err, 0,
		       "it came by another lane, needs or priority than its task has, whose "
		       "lane is %s",
		       task->lane);
}

/* Have the task of HELD as the store has it. Unless it is READ_TASK, ERR says why. */
static enum reading read_stored(struct fleet_worker *worker, struct held *held,
				struct err *err)
{
	const char *job = fleet_lease_job(held->lease), *id = fleet_lease_id(held->lease);

	if (!fleet_name_check(FLEET_JOB, job, err) || !fleet_name_check(FLEET_ID, id, err))
		return READ_FOREIGN;
	for (int attempt = 0; attempt < 2; attempt++) {
		const struct known_job *known = know_job(worker, job, attempt > 0, err);
		size_t nth;

		if (known == NULL)
			return is_about_job(err) ? READ_REFUSED : READ_LATER;
		nth = fleet_job_find(known->job, id);
		if (nth == FLEET_JOB_NONE) {
			(void)err_set(err, 0, "the job has no such task in the store %s",
				      fleet_store_where(worker->options.store));
			continue;
		}
		if (!fleet_tasks_get(fleet_job_tasks(known->job), nth, &held->task, err))
			return READ_LATER;
		if (is_its_message(worker, held, &held->task, err))
			return READ_TASK;
		fleet_task_fini(&held->task);
	}
	return READ_FOREIGN;
}

/* May one more sentence be said about messages that nobody has submitted? */
static bool may_say_drop(struct fleet_worker *worker)
{
	const int64_t now_ms = clock_now_ms();
	char line[128];

	if (worker->drops_ms == 0 || now_ms - worker->drops_ms >= DROPS_MS) {
		if (worker->drops > DROPS_SAID) {
			(void)snprintf(line, sizeof(line),
				       "%zu more messages were dropped or given back that the "
				       "store does not have",
				       worker->drops - DROPS_SAID);
			say(worker, line);
		}
		worker->drops = 0;
		worker->drops_ms = now_ms;
	}
	return ++worker->drops <= DROPS_SAID;
}

/* The message of HELD is no task's: take it out of the queue, so that it does not come again. */
static void drop_foreign(struct fleet_worker *worker, struct held *held, const char *why)
{
	const char *job = fleet_lease_job(held->lease), *id = fleet_lease_id(held->lease);
	const bool has_job = fleet_name_check(FLEET_JOB, job, NULL),
		   has_id = fleet_name_check(FLEET_ID, id, NULL);
	char line[ERR_TEXT_MAX + 512];

	if (may_say_drop(worker)) {
		(void)snprintf(
			line, sizeof(line),
			"%s/%s is dropped, and does not run: %s. Somebody published it past "
			"`glovebox fleet submit`: look who has credentials of this fleet",
			has_job ? job : "?", has_id ? id : "?", why);
		say(worker, line);
		if (has_job && has_id)
			tell_event(worker, job, id, "refused", why);
	}
	take_out(worker, held);
}

/* *OURS: JOB is one of the fleet. One that the store has, and that is unreadable, is. */
static bool ask_whose(const struct fleet_worker *worker, const char *job, bool *ours,
		      struct err *err)
{
	const struct fleet_worker_options *options = &worker->options;
	bool paused;

	*ours = false;
	if (fleet_jobs_enlisted(options->store, options->fleet, job, ours, &paused, err))
		return true;
	*ours = is_about_job(err);
	return *ours;
}

/*
 * This worker cannot read the message of HELD, and another one may: give it back. When nobody
 * could for REFUSED_MOST deliveries it is dead, and in nobody's way any more.
 */
static void refuse_or_bury(struct fleet_worker *worker, struct held *held, const char *why)
{
	const char *job = fleet_lease_job(held->lease), *id = fleet_lease_id(held->lease);
	enum fleet_dead noting = FLEET_DEAD_AWAY;
	char line[ERR_TEXT_MAX + 1024];
	struct err err;
	bool dead, ours;

	if (fleet_lease_refusals(held->lease) + 1 >= REFUSED_MOST &&
	    ask_whose(worker, job, &ours, &err))
		noting = fleet_dead_note(worker->options.queue, job, ours, id,
					 worker->options.name, why);
	dead = noting != FLEET_DEAD_AWAY;
	if (dead)
		(void)snprintf(
			line, sizeof(line),
			"%s/%s is dead after %d deliveries: %s. %s. `glovebox fleet "
			"retry --dead %s%s` queues the task that the store has",
			job, id, REFUSED_MOST, why,
			noting == FLEET_DEAD_NOTED
				? "`glovebox fleet doctor` lists it"
				: "It is not listed, because the list of dead messages "
				  "is full: look who has credentials of this fleet, and "
				  "forget those of the jobs that `glovebox fleet doctor` "
				  "lists",
			job[0] == '-' ? "-- " : "", job);
	else
		(void)snprintf(line, sizeof(line), "%s/%s is given back: %s", job, id, why);
	if (dead || may_say_drop(worker)) {
		say(worker, line);
		tell_event(worker, job, id, dead ? "dead" : "refused", why);
	}
	if (dead)
		take_out(worker, held);
	else
		refuse(worker, held);
}

/*
 * Have the task of HELD, which runs as the store has it: the queue says only which one it is.
 * False: it was given back or dropped, and is gone.
 */
static bool read_line(struct fleet_worker *worker, struct held *held)
{
	char line[ERR_TEXT_MAX + 512];
	struct err err = {0};

	switch (read_stored(worker, held, &err)) {
	case READ_TASK:
		return true;
	case READ_FOREIGN:
		drop_foreign(worker, held, err.text);
		return false;
	case READ_REFUSED:
		refuse_or_bury(worker, held, err.text);
		return false;
	case READ_LATER:
		break;
	}
	(void)snprintf(line, sizeof(line), "%s/%s is given back: %s",
		       fleet_lease_job(held->lease), fleet_lease_id(held->lease), err.text);
	say(worker, line);
	give_back(worker, held, STORE_AWAY_S, FLEET_UNTRIED);
	return false;
}

/* Look whether HELD has to run at all. False: it was answered, and is gone. */
static bool is_wanted(struct fleet_worker *worker, struct held *held)
{
	const char *job = fleet_lease_job(held->lease), *id = fleet_lease_id(held->lease);
	auto_value struct value *result = NULL;
	bool cancelled = false, its_own = false, paused = false;
	struct err err = {0};
	double wait_s = 0;

	if (!fleet_jobs_result(worker->options.store, job, id, &result, &err)) {
		say(worker, err.text);
		give_back(worker, held, STORE_AWAY_S, FLEET_UNTRIED);
		return false;
	}
	if (result != NULL) {
		/* Owners are counted without a lock: the keeper may free its own at any time. */
		answer(worker, held, value_copy(result));
		return false;
	}
	if (!still_marked(worker, "cancel", job, NULL, &cancelled, &err) ||
	    !still_marked(worker, "cancel", job, id, &its_own, &err) ||
	    !still_marked(worker, "pause", job, NULL, &paused, &err)) {
		say(worker, err.text);
		give_back(worker, held, STORE_AWAY_S, FLEET_UNTRIED);
		return false;
	}
	if (cancelled || its_own) {
		if (fleet_jobs_cancel_one(worker->options.store, job, id,
					  worker->options.name, &err)) {
			answer(worker, held, fleet_result_new(job, id, 0, FLEET_CANCELLED));
		} else {
			say(worker, err.text);
			give_back(worker, held, STORE_AWAY_S, FLEET_UNTRIED);
		}
		return false;
	}
	/* The store knows that it is paused: `fleet resume` publishes it again. */
	if (paused) {
		take_out(worker, held);
		return false;
	}
	if (!keeps_pace(worker, held->task.lane, &wait_s)) {
		give_back(worker, held, wait_s, FLEET_UNTRIED);
		return false;
	}
	return true;
}

/* Choose the first task that was taken and that no slot has yet: from now on it is the caller's. */
static struct held *choose_one(struct fleet_worker *worker)
{
	struct held *held;

	(void)pthread_mutex_lock(&worker->lock);
	for (held = worker->held; held != NULL && held->state != HELD_READY;
	     held = held->next)
		;
	if (held != NULL)
		held->state = HELD_CHOSEN;
	(void)pthread_mutex_unlock(&worker->lock);
	return held;
}

/* Give the tasks back that no slot has: another worker may begin them now. */
static void give_ready_back(struct fleet_worker *worker)
{
	struct held *held;

	while ((held = choose_one(worker)) != NULL)
		give_back(worker, held, 0, FLEET_UNTRIED);
}

/* Begin no more tasks. */
static void drain(struct fleet_worker *worker)
{
	(void)pthread_mutex_lock(&worker->lock);
	worker->draining = worker->news = true;
	(void)pthread_mutex_unlock(&worker->lock);
}

static bool is_draining(struct fleet_worker *worker)
{
	bool draining;

	(void)pthread_mutex_lock(&worker->lock);
	draining = worker->draining;
	(void)pthread_mutex_unlock(&worker->lock);
	return draining;
}

static void hold(struct fleet_worker *worker, struct fleet_lease *lease)
{
	struct held *held = memory_alloc(sizeof(*held)), **at = &worker->held;

	held->lease = lease;
	held->renewed_ms = clock_now_ms();
	held->pace[0] = held->pace[1] = -1;
	(void)pthread_mutex_lock(&worker->lock);
	while (*at != NULL)
		at = &(*at)->next;
	*at = held;
	(void)pthread_mutex_unlock(&worker->lock);
}

/* Take as many tasks as there are free cells. */
static bool take_some(struct fleet_worker *worker, struct err *err)
{
	const size_t count = fleet_slots_count(worker->slots),
		     busy = fleet_slots_busy(worker->slots);
	const size_t room = count > busy ? count - busy : 1;
	auto_free struct fleet_lease **leases = memory_array(room, sizeof(*leases));
	size_t taken = 0;
	const bool ok = fleet_queue_take(worker->options.queue, worker->options.lanes,
					 worker->options.labels, room, TAKE_S, leases,
					 &taken, err);

	for (size_t i = 0; i < taken; i++)
		hold(worker, leases[i]);
	return ok;
}

/* Has a drain begun since HELD was taken? Then HELD is given back. */
static bool drains(struct fleet_worker *worker, struct held *held)
{
	if (!is_draining(worker))
		return false;
	give_back(worker, held, 0, FLEET_UNTRIED);
	return true;
}

static enum fleet_next next(void *context, struct fleet_slot_task *task, bool *over,
			    struct err *err)
{
	struct fleet_worker *worker = context;
	struct held *held;

	/* The slots are made before this worker has them. */
	*over = is_draining(worker);
	if (*over || worker->slots == NULL)
		return FLEET_NEXT_NONE;
	held = choose_one(worker);
	if (held == NULL) {
		if (!take_some(worker, err)) {
			say(worker, err->text);
			/* No task comes any more, and none can be renewed: its end is this worker's. */
			if (err->code == EKEYREJECTED)
				drain(worker);
			(void)rest(worker, FAILED_MS);
			return FLEET_NEXT_FAILED;
		}
		held = choose_one(worker);
	}
	for (; held != NULL; held = choose_one(worker)) {
		if (drains(worker, held) || !read_line(worker, held) ||
		    !is_wanted(worker, held) || drains(worker, held))
			continue;
		held->lane = memory_copy(held->task.lane);
		held->attempt = fleet_lease_deliveries(held->lease);
		task->task = held->task;
		held->task = (struct fleet_task){0};
		(void)snprintf(task->job, sizeof(task->job), "%s",
			       fleet_lease_job(held->lease));
		task->attempt = held->attempt <= task->task.attempts ? held->attempt : 0;
		task->own = held;
		if (task->task.run.kind == FLEET_PROMPT)
			begin_pace(worker, held, task);
		tell_event(worker, task->job, task->task.id, "began", NULL);
		(void)pthread_mutex_lock(&worker->lock);
		held->state = HELD_RUNNING;
		worker->news = true;
		(void)pthread_mutex_unlock(&worker->lock);
		return FLEET_NEXT_TASK;
	}
	*over = is_draining(worker);
	return FLEET_NEXT_NONE;
}

static double set_up_wait(int attempt)
{
	double seconds = SET_UP_S;

	while (--attempt > 0 && seconds < SET_UP_MOST_S)
		seconds *= 2;
	return seconds < SET_UP_MOST_S ? seconds : SET_UP_MOST_S;
}

/* May a line of HELD be told now? Then it is counted. The lock is held. */
static bool may_tell(struct held *held, int64_t now_ms)
{
	if (held->told_ms - now_ms > (TELLS - 1) * TELL_MS)
		return false;
	held->told_ms = (held->told_ms > now_ms ? held->told_ms : now_ms) + TELL_MS;
	return true;
}

/* TELLS lines a second of each task; of those that come faster the last one is told later. */
static void tell(void *context, const struct fleet_slot_task *task, const char *line)
{
	struct fleet_worker *worker = context;
	struct held *held = task->own;
	bool now;

	(void)pthread_mutex_lock(&worker->lock);
	now = may_tell(held, clock_now_ms());
	free(held->untold);
	held->untold = now ? NULL : memory_copy(line);
	(void)pthread_mutex_unlock(&worker->lock);
	if (now)
		tell_event(worker, task->job, task->task.id, "line", line);
}

/* Tell the lines that came too early, when it is time; those of ONLY (NULL: all) in any case. */
static void tell_late(struct fleet_worker *worker, const struct held *only)
{
	char job[FLEET_NAME_MAX + 1], id[FLEET_NAME_MAX + 1];
	char *line;

	do {
		const int64_t now_ms = clock_now_ms();

		line = NULL;
		(void)pthread_mutex_lock(&worker->lock);
		for (struct held *held = worker->held; held != NULL && line == NULL;
		     held = held->next) {
			if (held->untold == NULL ||
			    (only != NULL ? held != only : !may_tell(held, now_ms)))
				continue;
			line = held->untold;
			held->untold = NULL;
			(void)snprintf(job, sizeof(job), "%s", fleet_lease_job(held->lease));
			(void)snprintf(id, sizeof(id), "%s", fleet_lease_id(held->lease));
		}
		(void)pthread_mutex_unlock(&worker->lock);
		if (line != NULL)
			tell_event(worker, job, id, "line", line);
		free(line);
	} while (line != NULL);
}

static void ended(void *context, struct fleet_slot_task *task, const struct value *result,
		  bool there, const struct err *err)
{
	struct fleet_worker *worker = context;
	const enum fleet_status status = fleet_result_status(result);
	struct held *held = task->own;
	enum held_state state;
	bool stopping;

	(void)there;
	(void)pthread_mutex_lock(&worker->lock);
	state = held->state;
	stopping = worker->stopping;
	(void)pthread_mutex_unlock(&worker->lock);
	tell_late(worker, held);
	tell_event(worker, task->job, task->task.id, "ended",
		   result != NULL ? fleet_status_name(status) : "lost");
	if (result == NULL && err != NULL)
		say(worker, err->text);
	/* Somebody else has it; only a result that is in the store is told. */
	if (state == HELD_LOST &&
	    (result == NULL || status == FLEET_CANCELLED || status == FLEET_SET_UP))
		drop_held(worker, held);
	else if (result == NULL && err != NULL && err->code == ECONNRESET)
		give_back(worker, held, 1, FLEET_TRIED);
	else if (result == NULL)
		give_back(worker, held, STORE_AWAY_S, FLEET_UNTRIED);
	else if (status == FLEET_CANCELLED && stopping)
		give_back(worker, held, 0, FLEET_UNTRIED);
	else if (status == FLEET_SET_UP)
		give_back(worker, held, set_up_wait(task->attempt), FLEET_TRIED);
	else
		answer(worker, held, value_copy(result));
}

static void waits(void *context, const char *why)
{
	if (why != NULL)
		say(context, why);
}

/* The keeper. */

static bool renewal_is_due(const struct fleet_worker *worker, const struct held *held,
			   int64_t now_ms)
{
	const int64_t each_ms =
		(int64_t)(fleet_queue_lease_s(worker->options.queue) * 1000 / RENEWALS);

	return !held->renewing && held->state != HELD_LOST &&
	       now_ms - held->renewed_ms >=
		       (held->state == HELD_ANSWERING ? TICK_MS : each_ms);
}

/* The next task whose lease is to be renewed, or whose end is to be told. OVER: of those that are over. */
static struct held *due_one(struct fleet_worker *worker, int64_t now_ms, bool over)
{
	struct held *held;

	(void)pthread_mutex_lock(&worker->lock);
	for (held = worker->held;
	     held != NULL && (!renewal_is_due(worker, held, now_ms) ||
			      (over && !fleet_lease_over(held->lease)));
	     held = held->next)
		;
	if (held != NULL) {
		held->renewing = true;
		held->renewed_ms = now_ms;
	}
	(void)pthread_mutex_unlock(&worker->lock);
	return held;
}

/* AWAY: do not ask the server, only look whether the lease is over. False: the server is away. */
static bool renew_one(struct fleet_worker *worker, struct held *held, bool away)
{
	enum fleet_renewal renewal = FLEET_RENEWED;
	char job[FLEET_NAME_MAX + 1], id[FLEET_NAME_MAX + 1];
	struct err err = {0};
	bool answering, answered = false, lost = false;

	(void)pthread_mutex_lock(&worker->lock);
	answering = held->state == HELD_ANSWERING;
	(void)pthread_mutex_unlock(&worker->lock);
	if (away && !fleet_lease_over(held->lease)) {
		renewal = FLEET_UNSURE;
	} else if (answering) {
		answered = !away && fleet_lease_done(held->lease, held->result, &err);
		/* Not confirmed for a whole lease: it comes again, and is answered then. */
		if (!answered)
			renewal = fleet_lease_renew(held->lease, &err);
		answered = answered || renewal == FLEET_LOST;
	} else {
		renewal = fleet_lease_renew(held->lease, &err);
	}
	if (answered) {
		end_held(worker, held);
		return renewal != FLEET_UNSURE;
	}
	(void)pthread_mutex_lock(&worker->lock);
	held->renewing = false;
	if (renewal == FLEET_UNSURE && !answering)
		held->renewed_ms -= (int64_t)(fleet_queue_lease_s(worker->options.queue) *
					      1000 / RENEWALS) -
				    TICK_MS;
	lost = renewal == FLEET_LOST && held->state == HELD_RUNNING;
	if (lost) {
		held->state = HELD_LOST;
		(void)snprintf(job, sizeof(job), "%s", fleet_lease_job(held->lease));
		(void)snprintf(id, sizeof(id), "%s", fleet_lease_id(held->lease));
	}
	(void)pthread_cond_broadcast(&worker->changed);
	(void)pthread_mutex_unlock(&worker->lock);
	if (lost) {
		say(worker, err.text);
		fleet_slots_lose(worker->slots, job, id);
	}
	return renewal != FLEET_UNSURE;
}

static void renew_all(struct fleet_worker *worker)
{
	const int64_t now_ms = clock_now_ms();
	struct held *held;
	bool away = false;

	/* A server that does not answer costs seconds: what it cannot change comes first. */
	while ((held = due_one(worker, now_ms, true)) != NULL)
		(void)renew_one(worker, held, true);
	while ((held = due_one(worker, now_ms, false)) != NULL)
		away = !renew_one(worker, held, away) || away;
}

static bool note_mark(void *context, const char *key, struct str value)
{
	(void)value;
	value_set_boolean(context, key, true);
	return true;
}

/* Read what was cancelled and paused, and end what runs of it. */
static void read_marks(struct fleet_worker *worker)
{
	struct value *marks = value_new_object(), *old;
	struct err err;

	if (!fleet_queue_keys(worker->options.queue, FLEET_STATE, "cancel.", note_mark,
			      marks, &err) ||
	    !fleet_queue_keys(worker->options.queue, FLEET_STATE, "pause.", note_mark,
			      marks, &err)) {
		value_free(marks);
		return;
	}
	(void)pthread_mutex_lock(&worker->lock);
	old = worker->marks;
	worker->marks = marks;
	(void)pthread_mutex_unlock(&worker->lock);
	for (void *at = value_first(marks); at != NULL; at = value_next(marks, at)) {
		const char *job = value_key(at) + strlen("cancel.");
		char name[FLEET_NAME_MAX + 1];
		const char *dot = strchr(job, '.');

		if (strncmp(value_key(at), "cancel.", strlen("cancel.")) != 0 ||
		    value_member(old, value_key(at)) != NULL)
			continue;
		if (worker->slots == NULL)
			continue;
		(void)snprintf(name, sizeof(name), "%.*s",
			       dot != NULL ? (int)(dot - job) : (int)strlen(job), job);
		fleet_slots_cancel(worker->slots, name, dot != NULL ? dot + 1 : NULL);
	}
	value_free(old);
}

static struct value *heartbeat(struct fleet_worker *worker)
{
	struct value *beat = value_new_object(), *running = value_new_object(),
		     *lanes = value_new_object();
	double load[1] = {0};
	char host[256] = "";
	size_t told = 0;

	(void)gethostname(host, sizeof(host) - 1);
	(void)getloadavg(load, 1);
	value_set_text(beat, "name", worker->options.name);
	value_set_text(beat, "host", host);
	value_set_text(beat, "program", GLOVEBOX_VERSION);
	value_set_integer(beat, "at_ms", clock_wall_ms());
	value_set_integer(beat, "cells", (int64_t)fleet_slots_count(worker->slots));
	value_set_integer(beat, "busy", (int64_t)fleet_slots_busy(worker->slots));
	value_set_real(beat, "load", load[0]);
	if (worker->options.labels != NULL)
		value_set(beat, "labels", value_new_texts(worker->options.labels));
	(void)pthread_mutex_lock(&worker->lock);
	value_set_boolean(beat, "draining", worker->draining);
	for (const struct held *held = worker->held; held != NULL; held = held->next) {
		const char *job = fleet_lease_job(held->lease);

		if (held->state != HELD_RUNNING)
			continue;
		value_set_integer(lanes, held->lane,
				  1 + value_integer(value_member(lanes, held->lane)));
		if (++told > RUNNING_TOLD_MAX)
			continue;
		if (value_member(running, job) == NULL)
			value_set(running, job, value_new_array());
		value_append(value_member(running, job),
			     value_new_text(fleet_lease_id(held->lease)));
	}
	worker->news = false;
	(void)pthread_mutex_unlock(&worker->lock);
	value_set(beat, "running", running);
	value_set(beat, "lanes", lanes);
	return beat;
}

static void send_heartbeat(struct fleet_worker *worker)
{
	auto_value struct value *beat = heartbeat(worker);
	struct err err = {0};
	struct buf text;

	buf_init(&text, FLEET_LINE_MAX);
	if (value_print(beat, 0, &text))
		(void)fleet_queue_set(worker->options.queue, FLEET_WORKERS,
				      worker->options.name, buf_str(&text), &err);
	buf_fini(&text);
}

struct lanes {
	const char *name; /* ours */
	struct value *all, *ours;
};

static bool add_lanes(void *context, const char *key, struct str text)
{
	struct lanes *lanes = context;
	auto_value struct value *beat = NULL;
	const struct value *member;

	if (!value_parse(text, 0, &beat, NULL))
		return true;
	member = value_member(beat, "lanes");
	for (void *at = value_first(member); at != NULL; at = value_next(member, at)) {
		const int runs = fleet_running_number(member, value_key(at));

		value_set_integer(lanes->all, value_key(at),
				  runs + value_integer(value_member(lanes->all,
								    value_key(at))));
		if (strcmp(key, lanes->name) == 0)
			value_set_integer(lanes->ours, value_key(at), runs);
	}
	return true;
}

/*
 * Our part of OURS of ALL runs of LANE: at most 1 and, since no number of a heartbeat is larger than
 * FLEET_BEAT_MOST, at least 1 / (workers * FLEET_BEAT_MOST). No more run than the lane has permits,
 * whatever heartbeats say. The lock is held.
 */
static double share_of(struct fleet_worker *worker, const char *lane, double ours, double all)
{
	const struct pace *pace = find_pace(worker, lane);

	if (pace != NULL && pace->permits > 0 && all > pace->permits)
		all = pace->permits;
	/* A worker without a run may begin one: it would never get a share. */
	ours = ours > 0 ? ours : 1;
	return ours < all ? ours / all : 1;
}

/* Our part of all runs of each lane: by the heartbeats of all workers. */
static void read_shares(struct fleet_worker *worker)
{
	struct value *shares = value_new_object(), *old;
	auto_value struct value *all = value_new_object();
	auto_value struct value *ours = value_new_object();
	struct lanes lanes = {worker->options.name, all, ours};
	struct err err;

	if (!fleet_queue_keys(worker->options.queue, FLEET_WORKERS, "", add_lanes, &lanes,
			      &err)) {
		value_free(shares);
		return;
	}
	(void)pthread_mutex_lock(&worker->lock);
	for (void *at = value_first(all); at != NULL; at = value_next(all, at)) {
		const char *lane = value_key(at);

		value_set_real(shares, lane,
			       share_of(worker, lane, value_number(value_member(ours, lane)),
					value_number(value_at(at))));
	}
	old = worker->shares;
	worker->shares = shares;
	(void)pthread_mutex_unlock(&worker->lock);
	value_free(old);
}

static void *keeper_main(void *context)
{
	struct fleet_worker *worker = context;
	int64_t marks_ms = 0, beat_ms = 0, shares_ms = 0;

	/* Not behind the first rest: the worker takes tasks already, and is to be seen. */
	if (fleet_queue_connected(worker->options.queue)) {
		send_heartbeat(worker);
		beat_ms = clock_now_ms();
	}
	while (rest(worker, TICK_MS)) {
		const int64_t now_ms = clock_now_ms();
		bool news;

		renew_all(worker);
		tell_late(worker, NULL);
		(void)pthread_mutex_lock(&worker->lock);
		give_leaves(worker);
		(void)pthread_mutex_unlock(&worker->lock);
		if (!fleet_queue_connected(worker->options.queue))
			continue;
		if (now_ms - marks_ms >= KEYS_MS) {
			read_marks(worker);
			marks_ms = now_ms;
		}
		(void)pthread_mutex_lock(&worker->lock);
		news = worker->news;
		(void)pthread_mutex_unlock(&worker->lock);
		if (beat_ms == 0 ||
		    now_ms - beat_ms >= (news ? HEARTBEAT_NEWS_MS : HEARTBEAT_MS)) {
			send_heartbeat(worker);
			beat_ms = now_ms;
		}
		if (now_ms - shares_ms >= SHARES_MS) {
			read_shares(worker);
			shares_ms = now_ms;
		}
	}
	return NULL;
}

/* The lead: it compares queue and store. */

/* A job that the lead looks at each minute. */
struct watched_job {
	char *name;
	struct fleet_job *job; /* NULL: it is complete, or not the fleet's */
};

struct leading {
	struct fleet_worker *worker;
	struct value *dead; /* of all jobs, as they were at the begin of a look */
	bool more_dead;     /* there may be others */
	struct watched_job *jobs;
	size_t count, open;
};

static void leading_fini(struct leading *leading)
{
	for (size_t i = 0; i < leading->count; i++) {
		fleet_job_free(leading->jobs[i].job);
		free(leading->jobs[i].name);
	}
	free(leading->jobs);
	value_free(leading->dead);
	leading->jobs = NULL;
	leading->dead = NULL;
	leading->count = leading->open = 0;
}

static struct watched_job *watched(struct leading *leading, const char *name)
{
	for (size_t i = 0; i < leading->count; i++) {
		if (strcmp(leading->jobs[i].name, name) == 0)
			return &leading->jobs[i];
	}
	leading->jobs =
		memory_grow(leading->jobs, leading->count + 1, sizeof(*leading->jobs));
	leading->jobs[leading->count] = (struct watched_job){.name = memory_copy(name)};
	return &leading->jobs[leading->count++];
}

/*
 * `fleet cancel` of all of JOB may have been interrupted: its tasks that neither run nor have a
 * result get theirs. Those that run are the workers' who run them.
 */
static bool finish_cancel(struct fleet_worker *worker, const struct fleet_job *job,
			  struct err *err)
{
	const char *const all[] = {NULL};
	size_t written = 0, left;
	char line[FLEET_NAME_BYTES + 64];

	if (!fleet_queue_purge(worker->options.queue, fleet_job_name_of(job), NULL, NULL,
			       err) ||
	    !fleet_jobs_cancel(worker->options.queue, worker->options.store, job, all,
			       false, &written, &left, err))
		return false;
	if (written > 0) {
		(void)snprintf(line, sizeof(line), "%s: %zu tasks cancelled",
			       fleet_job_name_of(job), written);
		say(worker, line);
	}
	return true;
}

/* This worker can read the job NAME, whose tasks are queued: its dead messages are of the past. */
static bool forget_dead(struct leading *leading, const char *name, struct err *err)
{
	size_t forgotten;
	bool there = leading->more_dead;

	for (size_t i = 0; !there && i < value_count(leading->dead); i++) {
		const struct value *dead = value_item(leading->dead, i);

		there = str_is(value_str(value_member(dead, "job")), name);
	}
	return !there || fleet_dead_forget(leading->worker->options.queue, name, NULL,
					   &forgotten, err);
}

/*
 * Forget the aged dead messages of jobs that are not the fleet's: nobody else ever will, and
 * anybody who may publish fills the list with them. Their times are anybody's as well.
 */
static bool forget_aged(struct leading *leading, struct err *err)
{
	const struct fleet_worker_options *options = &leading->worker->options;
	const int64_t now_ms = clock_wall_ms();
	auto_value struct value *ours = value_new_object();

	for (size_t i = 0; i < value_count(leading->dead); i++) {
		const struct value *dead = value_item(leading->dead, i);
		const char *job = value_text(value_member(dead, "job"));
		const int64_t at_ms = value_integer(value_member(dead, "at_ms"));
		bool mine;
		size_t forgotten;

		if (at_ms > now_ms - DEAD_AGED_MS && at_ms < now_ms + DEAD_AGED_MS)
			continue;
		if (value_member(ours, job) == NULL) {
			if (!ask_whose(leading->worker, job, &mine, err))
				return false;
			value_set_boolean(ours, job, mine);
		}
		if (!value_is_true(value_member(ours, job)) &&
		    !fleet_dead_forget(options->queue, job,
				       value_text(value_member(dead, "id")), &forgotten,
				       err))
			return false;
	}
	return true;
}

static bool look_at_job(struct leading *leading, const char *name, struct err *err)
{
	struct fleet_worker *worker = leading->worker;
	const struct fleet_worker_options *options = &worker->options;
	struct watched_job *at = watched(leading, name);
	auto_value struct value *complete = NULL;
	struct fleet_reconciled found;
	char key[FLEET_NAME_BYTES], line[FLEET_NAME_BYTES + 128];
	bool mine = false, paused = false, cancelled = false;

	if (!fleet_jobs_enlisted(options->store, options->fleet, name, &mine, &paused, err))
		return false;
	(void)snprintf(key, sizeof(key), "complete.%s", name);
	if (!mine)
		return true;
	if (!still_marked(worker, "cancel", name, NULL, &cancelled, err) ||
	    !fleet_queue_get(options->queue, FLEET_STATE, key, &complete, err))
		return false;
	if (complete != NULL) {
		if (at->job != NULL) {
			fleet_job_free(at->job);
			at->job = NULL;
			leading->open--;
		}
		return true;
	}
	if (at->job == NULL) {
		if (!fleet_job_open(options->store, name, &at->job, err))
			return false;
		leading->open++;
	}
	if ((cancelled && !finish_cancel(worker, at->job, err)) ||
	    !fleet_jobs_reconcile(options->queue, at->job, paused || cancelled, &found, err) ||
	    !forget_dead(leading, name, err))
		return false;
	if (found.strays > 0) {
		(void)snprintf(line, sizeof(line),
			       "%s: %zu messages that are of none of its tasks are taken out of "
			       "the queue",
			       name, found.strays);
		say(worker, line);
	}
	if (found.published + found.removed > 0) {
		(void)snprintf(line, sizeof(line),
			       "%s: %zu tasks published again, %zu done ones taken out",
			       name, found.published, found.removed);
		say(worker, line);
	}
	if (found.results >= found.tasks && found.queued <= found.removed)
		(void)fleet_queue_set(options->queue, FLEET_STATE, key, STR("true"), err);
	if (leading->open > JOBS_OPEN_MAX) {
		fleet_job_free(at->job);
		at->job = NULL;
		leading->open--;
	}
	return true;
}

/* A queue that was lost has no limits of lanes either. */
static bool restore_limits(struct fleet_worker *worker, struct err *err)
{
	auto_value struct value *limits = NULL;

	if (!fleet_jobs_limits(worker->options.store, worker->options.fleet, &limits, err))
		return false;
	for (void *at = value_first(limits); at != NULL; at = value_next(limits, at)) {
		if (!fleet_queue_limit(
			    worker->options.queue, value_key(at),
			    (int)value_integer(value_member(value_at(at), "permits")),
			    (int)value_integer(value_member(value_at(at), "per_minute")),
			    err))
			return false;
	}
	return true;
}

static bool reconcile_all(struct leading *leading, struct err *err)
{
	struct fleet_worker *worker = leading->worker;
	auto_value struct value *names = NULL;
	char line[ERR_TEXT_MAX + FLEET_NAME_BYTES];
	size_t made = 0;

	value_free(leading->dead);
	leading->dead = NULL;
	if (!fleet_queue_repair(worker->options.queue, &made, err) ||
	    (made > 0 && !restore_limits(worker, err)) ||
	    !fleet_dead_list(worker->options.queue, NULL, &leading->dead,
			     &leading->more_dead, err) ||
	    !fleet_job_names(worker->options.store, &names, err))
		return false;
	if (made > 0)
		say(worker,
		    "the queue had lost its streams; they are made again, and the tasks "
		    "without a result are published");
	for (size_t i = 0; i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));

		if (look_at_job(leading, name, err))
			continue;
		/* A job that this release cannot read is no reason to leave out the others. */
		if (err->code == ENOENT || !is_about_job(err))
			return false;
		(void)snprintf(line, sizeof(line), "%s: %s", name, err->text);
		say(worker, line);
	}
	return forget_aged(leading, err);
}

static void *lead_main(void *context)
{
	struct fleet_worker *worker = context;
	struct leading leading = {.worker = worker};
	const double half_s = fleet_queue_lease_s(worker->options.queue) / 2;
	const int64_t each_ms = half_s * 1000 < RECONCILE_MOST_MS
					? (int64_t)(half_s * 1000)
					: RECONCILE_MOST_MS;
	const int64_t claim_ms = each_ms < LEAD_MS ? each_ms : LEAD_MS;
	int64_t reconciled_ms = 0;
	char value[FLEET_NAME_MAX + 8];

	(void)snprintf(value, sizeof(value), "\"%s\"", worker->options.name);
	while (rest(worker, claim_ms)) {
		const int64_t now_ms = clock_now_ms();
		struct err err = {0};
		bool mine = false;

		if (!fleet_queue_connected(worker->options.queue) ||
		    (!fleet_queue_claim(worker->options.queue, FLEET_LEAD, "reconciler",
					str_of(value), &mine, &err) &&
		     err.code != ENOENT))
			continue;
		/* A lost queue has no lead; the first worker that sees that makes it again. */
		mine = mine || err.code == ENOENT;
		if (!mine)
			leading_fini(&leading);
		if (!mine || (reconciled_ms != 0 && now_ms - reconciled_ms < each_ms))
			continue;
		if (!reconcile_all(&leading, &err))
			say(worker, err.text);
		reconciled_ms = now_ms;
	}
	leading_fini(&leading);
	return NULL;
}

/* The life of a worker. */

bool fleet_worker_start(const struct fleet_worker_options *options,
			struct fleet_worker **worker, struct err *err)
{
	struct fleet_worker *made = memory_alloc(sizeof(*made));
	const struct fleet_slots_options slots = {
		.count = options->cells,
		.program = options->program,
		.worker = options->name,
		.config = options->config,
		.store = options->store,
		.next = next,
		.ended = ended,
		.tell = tell,
		.asked = asked,
		.waits = waits,
		.context = made,
	};
	pthread_condattr_t attributes;

	made->options = *options;
	(void)pthread_mutex_init(&made->lock, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&made->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	read_marks(made);
	/* A task that ends because the start fails is given back, not answered as cancelled. */
	made->stopping = true;
	if (!fleet_slots_start(&slots, &made->slots, err)) {
		fleet_worker_finish(made);
		return false;
	}
	made->has_keeper = pthread_create(&made->keeper, NULL, keeper_main, made) == 0;
	made->has_lead = pthread_create(&made->lead, NULL, lead_main, made) == 0;
	if (!made->has_keeper || !made->has_lead) {
		fleet_worker_stop(made);
		fleet_worker_finish(made);
		return err_set(err, EAGAIN, "the worker's threads could not be started");
	}
	(void)pthread_mutex_lock(&made->lock);
	made->stopping = false;
	(void)pthread_mutex_unlock(&made->lock);
	*worker = made;
	return true;
}

void fleet_worker_drain(struct fleet_worker *worker)
{
	drain(worker);
	fleet_slots_drain(worker->slots);
	fleet_queue_rest(worker->options.queue);
	give_ready_back(worker);
}

void fleet_worker_stop(struct fleet_worker *worker)
{
	(void)pthread_mutex_lock(&worker->lock);
	worker->draining = worker->stopping = true;
	(void)pthread_mutex_unlock(&worker->lock);
	if (worker->slots != NULL)
		fleet_slots_cancel(worker->slots, NULL, NULL);
	give_ready_back(worker);
}

bool fleet_worker_over(const struct fleet_worker *worker)
{
	return fleet_slots_over(worker->slots);
}

void fleet_worker_finish(struct fleet_worker *worker)
{
	struct err err;

	if (worker == NULL)
		return;
	/* The keeper renews leases until the last task has ended, and asks the slots until then. */
	if (worker->slots != NULL)
		fleet_slots_join(worker->slots);
	(void)pthread_mutex_lock(&worker->lock);
	worker->over = true;
	(void)pthread_cond_broadcast(&worker->changed);
	(void)pthread_mutex_unlock(&worker->lock);
	if (worker->has_keeper)
		(void)pthread_join(worker->keeper, NULL);
	if (worker->has_lead)
		(void)pthread_join(worker->lead, NULL);
	fleet_slots_finish(worker->slots);
	/* Results of which the queue was not told. */
	give_ready_back(worker);
	while (worker->held != NULL) {
		struct held *held = worker->held;

		if (held->result != NULL)
			(void)fleet_lease_done(held->lease, held->result, &err);
		remove_held(worker, held);
		held_free(held);
	}
	if (fleet_queue_connected(worker->options.queue))
		(void)fleet_queue_unset(worker->options.queue, FLEET_WORKERS,
					worker->options.name, &err);
	for (size_t i = 0; i < worker->pace_count; i++)
		free(worker->paces[i].lane);
	free(worker->paces);
	value_free(worker->marks);
	value_free(worker->shares);
	while (worker->job_count > 0)
		forget_job(worker, &worker->jobs[0]);
	(void)pthread_cond_destroy(&worker->changed);
	(void)pthread_mutex_destroy(&worker->lock);
	free(worker);
}
