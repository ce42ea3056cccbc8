/*
 * queue_nats: the queue by NATS JetStream. F is the name of the fleet.
 *
 *   GB_F_TASKS    gb.F.task.LANE.PRIORITY.JOB.ID   a work queue, one message a subject: what may
 *                                                  be begun. Consumers LANE_PRIORITY
 *                                                  of tasks that need labels of their worker, LANE
 *                                                  is LANE@NAME=VALUE+…: they have consumers of
 *                                                  their own, and share the lane's permits
 *   GB_F_PERMITS  gb.F.permit.LANE.N               a work queue with as many messages as the lane
 *                                                  may run tasks. Consumers LANE
 *   GB_F_RESULTS  gb.F.result.JOB.ID               one message a subject: a result is in the store
 *   GB_F_EVENTS   gb.F.event.JOB.ID                begins, ends, last lines: of a day
 *   KV_GB_F_…     $KV.GB_F_….KEY                   buckets: STATE, WORKERS, LEAD
 *
 * A worker has one pull at each consumer. A pull that does not wait is answered at once; one
 * that waits may be answered at any time, so that all that wait together ask for no more than
 * there are free cells: nothing comes that would have to be given back. A lane with a limit
 * is asked without waiting, because its permit is taken before its task.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/queue/jetstream.h"
#include "fleet/queue/queue.h"
#include "fleet/task.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAME_MAX_BYTES = 64, /* of a fleet */
	SUBJECT_MAX = JETSTREAM_SUBJECT_MAX,
	ANSWER_MAX = 64 << 20, /* of the interface: 100,000 subjects take 7 MB */
	MADE_TRIES = 100,      /* looks for a stream that another client makes just now */
	MADE_PAUSE_MS = 20,
	LOOK_MS = 5000, /* how often lanes and their limits are read */
	POLL_MS = 250,  /* a lane with a limit is asked again, while nothing comes … */
	POLL_MOST_MS = 2000, /* … and at last this often */
	EMPTY_MS = 20,    /* a consumer that had nothing is not asked again before this */
	PULL_LEAST_S = 1, /* a pull waits so long, twice as long each time … */
	PULL_MOST_S = 8,  /* … up to this */
	PULL_GRACE_MS = 1000, /* for the answer of a pull behind its time */
	UNPERMITTED_S = 1,    /* until a task comes again that came without a permit */
	LEASE_MARGIN_S = 5, /* a run ends so long before its lease does; at most a tenth */
	PERMITS_MAX = 100000,
	EVENTS_BYTES_LEAST = 1 << 20,
	AWAY_MS = 500,           /* between two tries while the server is away */
	LEAST_VERSION = 2009000, /* 2.9.0 knows "one message a subject" of new ones */
	SOUND_VERSION = 2010023,
	WAITING_MAX = 16384, /* pulls of one consumer: workers */
	/* Consumers that were there are not asked for again before this. */
	LANE_SURE_MS = 30000,
};

/* One consumer of tasks: a lane, with what its tasks need, and a priority. */
struct consumer {
	char *lane; /* "LANE" or "LANE@NAME=VALUE+…" */
	int priority;
	size_t out;          /* tasks for which its pull waits */
	uint64_t pull;       /* the number of that pull */
	int64_t deadline_ms; /* when the pull is over at the latest */
	int64_t empty_ms;    /* when it was last asked in vain, or 0 */
	bool seen;           /* while the list is read again */
};

/* A lane with a limit. */
struct lane {
	char *name;
	int permits, per_minute;
	int64_t asked_ms; /* when it was last asked in vain, by the queue's poll_ms */
};

struct fleet_queue {
	struct jetstream *jetstream;
	char name[NAME_MAX_BYTES];
	int replicas;
	/* Any thread that looks for a consumer writes it, and the keepers of leases read it. */
	_Atomic double lease_s;
	/* Lane -> when its consumers were there, in ms; LANES_LOCK is held. */
	pthread_mutex_t lanes_lock;
	struct value *sure_lanes;

	/* Only a thread that takes tasks uses these; it holds TAKING. */
	pthread_mutex_t taking;
	struct jetstream_inbox *inbox; /* NULL: none yet */
	uint64_t pulls;
	struct consumer *consumers; /* highest priority first */
	size_t consumer_count;
	struct lane *lanes;
	size_t lane_count;
	int64_t looked_ms; /* 0: the lists are to be read */
	int64_t drained_ms;
	int pull_s;  /* how long the next pull that waits does so */
	int poll_ms; /* how often lanes with a limit are asked */
	size_t turn; /* lanes of one priority take turns */
};

struct fleet_lease {
	struct fleet_queue *queue;
	char *subject, *job, *id, *line, *ack,
		*permit; /* permit: NULL, the lane has no limit */
	size_t line_size;
	int version, delivered;
	int returned, refused; /* how often it came back without having been begun; unread */
	int64_t confirmed_ms; /* when the last renewal that was confirmed was sent */
};

/* All that a fleet has at the server. */

enum stream { TASKS, PERMITS, RESULTS, EVENTS, STATE, WORKERS, LEAD, STREAMS };

static const struct {
	const char *name;     /* with the fleet's for %s */
	const char *subjects; /* the same */
	const char *settings;
	int64_t max_bytes; /* -1: no limit */
} streams[STREAMS] = {
	/* The one message of a subject is the whole of "queued once". */
	[TASKS] = {"GB_%s_TASKS", "gb.%s.task.>",
		   "\"retention\":\"workqueue\",\"discard\":\"new\","
		   "\"discard_new_per_subject\":true,\"max_msgs_per_subject\":1",
		   -1},
	[PERMITS] = {"GB_%s_PERMITS", "gb.%s.permit.>",
		     "\"retention\":\"workqueue\",\"discard\":\"new\","
		     "\"discard_new_per_subject\":true,\"max_msgs_per_subject\":1",
		     -1},
	[RESULTS] = {"GB_%s_RESULTS", "gb.%s.result.>",
		     "\"retention\":\"limits\",\"discard\":\"old\",\"max_msgs_per_subject\":1,"
		     "\"max_age\":2592000000000000",
		     -1},
	[EVENTS] = {"GB_%s_EVENTS", "gb.%s.event.>",
		    "\"retention\":\"limits\",\"discard\":\"old\",\"max_age\":86400000000000",
		    INT64_C(10) << 30},
	[STATE] = {"KV_GB_%s_STATE", "$KV.GB_%s_STATE.>",
		   "\"retention\":\"limits\",\"discard\":\"new\",\"max_msgs_per_subject\":1,"
		   "\"allow_rollup_hdrs\":true,\"deny_delete\":true",
		   -1},
	[WORKERS] = {"KV_GB_%s_WORKERS", "$KV.GB_%s_WORKERS.>",
		     "\"retention\":\"limits\",\"discard\":\"new\",\"max_msgs_per_subject\":1,"
		     "\"allow_rollup_hdrs\":true,\"deny_delete\":true,\"max_age\":45000000000,"
		     "\"duplicate_window\":45000000000",
		     -1},
	[LEAD] = {"KV_GB_%s_LEAD", "$KV.GB_%s_LEAD.>",
		  "\"retention\":\"limits\",\"discard\":\"new\",\"max_msgs_per_subject\":1,"
		  "\"allow_rollup_hdrs\":true,\"deny_delete\":true,\"max_age\":60000000000,"
		  "\"duplicate_window\":60000000000",
		  -1},
};
_Static_assert(QUEUE_WORKER_S == 45 && QUEUE_LEAD_S == 60, "max_age above");

/* TEMPLATE, of a row of `streams`, with the name of the fleet. */
static const char *with_fleet(const struct fleet_queue *queue, const char *template,
			      char text[SUBJECT_MAX])
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(text, SUBJECT_MAX, template, queue->name);
#pragma GCC diagnostic pop
	return text;
}

static const char *stream_name(const struct fleet_queue *queue, enum stream stream,
			       char name[SUBJECT_MAX])
{
	return with_fleet(queue, streams[stream].name, name);
}

/* METHOD of STREAM, with its name behind a dot, and behind that NAME when it is given. */
static bool call_stream(struct fleet_queue *queue, const char *method, enum stream stream,
			const char *name, const char *body, struct value **answer,
			struct err *err)
{
	char full[SUBJECT_MAX], whole[3 * SUBJECT_MAX];

	(void)snprintf(whole, sizeof(whole), "%s.%s%s%s", method,
		       stream_name(queue, stream, full), name != NULL ? "." : "",
		       name != NULL ? name : "");
	return jetstream_call(queue->jetstream, whole, body,
			      strstr(body, "subjects_filter") != NULL ? QUEUE_LIST_S : 0,
			      answer, err);
}

static bool make_stream(struct fleet_queue *queue, enum stream stream, struct err *err)
{
	char name[SUBJECT_MAX], subjects[SUBJECT_MAX], body[4 * SUBJECT_MAX];
	int64_t max_bytes = streams[stream].max_bytes;

	for (;;) {
		auto_value struct value *answer = NULL;
		struct err why = {0};

		(void)snprintf(body, sizeof(body),
			       "{\"name\":\"%s\",\"subjects\":[\"%s\"],\"storage\":\"file\","
			       "\"num_replicas\":%d,\"max_bytes\":%" PRId64 ",%s}",
			       stream_name(queue, stream, name),
			       with_fleet(queue, streams[stream].subjects, subjects),
			       queue->replicas, max_bytes, streams[stream].settings);
		if (call_stream(queue, "STREAM.CREATE", stream, NULL, body, &answer, &why))
			return true;
		/* The server holds back as much as a stream may take: less will do. */
		if (why.code == ENOSPC && max_bytes > EVENTS_BYTES_LEAST) {
			max_bytes /= 8;
			continue;
		}
		return err_set(err, why.code, "%s", why.text);
	}
}

static bool make_consumer(struct fleet_queue *queue, enum stream stream, const char *name,
			  const char *filter, struct err *err)
{
	char full[SUBJECT_MAX], body[4 * SUBJECT_MAX];
	auto_value struct value *answer = NULL;

	/* Deliveries are unlimited: at its own maximum a work queue keeps the message for ever. */
	(void)snprintf(body, sizeof(body),
		       "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"%s\","
		       "\"deliver_policy\":\"all\",\"ack_policy\":\"explicit\",\"ack_wait\":%" PRId64
		       ",\"max_deliver\":-1,\"max_ack_pending\":-1,\"max_waiting\":%d,"
		       "\"filter_subject\":\"%s\",\"replay_policy\":\"instant\"}}",
		       stream_name(queue, stream, full), name,
		       (int64_t)(queue->lease_s * 1e9), WAITING_MAX, filter);
	return call_stream(queue, "CONSUMER.DURABLE.CREATE", stream, name, body, &answer,
			   err);
}

/* Is the consumer NAME there? Then its lease is the fleet's. */
static bool find_consumer(struct fleet_queue *queue, enum stream stream, const char *name,
			  bool *there, struct err *err)
{
	auto_value struct value *answer = NULL;
	struct err why = {0};
	int64_t ack_wait;

	if (!call_stream(queue, "CONSUMER.INFO", stream, name, "", &answer, &why)) {
		if (why.code != ENOENT)
			return err_set(err, why.code, "%s", why.text);
		*there = false;
		return true;
	}
	ack_wait = value_integer(value_member(value_member(answer, "config"), "ack_wait"));
	if (ack_wait > 0)
		queue->lease_s = (double)ack_wait / 1e9;
	*there = true;
	return true;
}

static bool need_consumer(struct fleet_queue *queue, enum stream stream, const char *name,
			  const char *filter, struct err *err)
{
	bool there = false;

	return find_consumer(queue, stream, name, &there, err) &&
	       (there || make_consumer(queue, stream, name, filter, err));
}

/* The three consumers of LANE. */
static bool need_lane(struct fleet_queue *queue, const char *lane, struct err *err)
{
	char name[SUBJECT_MAX], filter[SUBJECT_MAX];

	for (int i = 0; i < FLEET_PRIORITIES; i++) {
		(void)snprintf(name, sizeof(name), "%s_%d", lane, i);
		(void)snprintf(filter, sizeof(filter), "gb.%s.task.%s.%d.>", queue->name,
			       lane, i);
		if (!need_consumer(queue, TASKS, name, filter, err))
			return false;
	}
	return true;
}

/*
 * As need_lane, and asks the server only once in a while: each answer of 2.9.10 takes as long as
 * the queue is (100 ms with 80,000 tasks), and a file of tasks may change its lane with each line.
 */
static bool need_lane_again(struct fleet_queue *queue, const char *lane, struct err *err)
{
	const int64_t now_ms = clock_now_ms();
	int64_t at_ms;

	(void)pthread_mutex_lock(&queue->lanes_lock);
	at_ms = value_integer(value_member(queue->sure_lanes, lane));
	(void)pthread_mutex_unlock(&queue->lanes_lock);
	if (at_ms != 0 && now_ms - at_ms < LANE_SURE_MS)
		return true;
	if (!need_lane(queue, lane, err))
		return false;
	(void)pthread_mutex_lock(&queue->lanes_lock);
	if (value_count(queue->sure_lanes) >= QUEUE_LANES_MAX) {
		value_free(queue->sure_lanes);
		queue->sure_lanes = value_new_object();
	}
	value_set_integer(queue->sure_lanes, lane, now_ms);
	(void)pthread_mutex_unlock(&queue->lanes_lock);
	return true;
}

static bool name_is_sound(const char *name)
{
	return name[0] != '\0' && strlen(name) < NAME_MAX_BYTES &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789-_")] == '\0';
}

bool fleet_queue_open(const struct fleet_queue_options *options,
		      struct fleet_queue **queue, struct err *err)
{
	const char *name = options->name != NULL ? options->name : "main";
	const struct jetstream_options connection = {
		.url = options->url,
		.credentials = options->credentials,
		.ca_file = options->ca_file,
		.certificate = options->certificate,
		.key = options->key,
	};
	struct fleet_queue *opened;
	size_t made;

	if (!name_is_sound(name))
		return err_set(err, EINVAL,
			       "the fleet's name has 1 to %d letters, digits, \"-\" and \"_\"",
			       NAME_MAX_BYTES - 1);
	opened = memory_alloc(sizeof(*opened));
	(void)snprintf(opened->name, sizeof(opened->name), "%s", name);
	opened->replicas = options->replicas > 0 ? options->replicas : 1;
	opened->lease_s = options->lease_s > 0 ? options->lease_s : QUEUE_LEASE_S;
	opened->pull_s = PULL_LEAST_S;
	opened->poll_ms = POLL_MS;
	opened->sure_lanes = value_new_object();
	(void)pthread_mutex_init(&opened->taking, NULL);
	(void)pthread_mutex_init(&opened->lanes_lock, NULL);
	if (!jetstream_open(&connection, &opened->jetstream, err) ||
	    !fleet_queue_repair(opened, &made, err)) {
		fleet_queue_close(opened);
		return false;
	}
	*queue = opened;
	return true;
}

void fleet_queue_close(struct fleet_queue *queue)
{
	if (queue == NULL)
		return;
	if (queue->jetstream != NULL)
		fleet_queue_rest(queue);
	jetstream_close(queue->jetstream);
	for (size_t i = 0; i < queue->consumer_count; i++)
		free(queue->consumers[i].lane);
	for (size_t i = 0; i < queue->lane_count; i++)
		free(queue->lanes[i].name);
	free(queue->consumers);
	free(queue->lanes);
	value_free(queue->sure_lanes);
	(void)pthread_mutex_destroy(&queue->lanes_lock);
	(void)pthread_mutex_destroy(&queue->taking);
	free(queue);
}

bool fleet_queue_connected(struct fleet_queue *queue)
{
	return jetstream_connected(queue->jetstream);
}

double fleet_queue_lease_s(const struct fleet_queue *queue)
{
	return queue->lease_s;
}

/* Permits: the messages 1 to N of a lane. */

static bool need_permits(struct fleet_queue *queue, const char *lane, int permits,
			 struct err *err)
{
	char subject[SUBJECT_MAX];
	struct jetstream_posting posting;
	bool ok;

	(void)snprintf(subject, sizeof(subject), "gb.%s.permit.%s.>", queue->name, lane);
	if (!need_consumer(queue, PERMITS, lane, subject, err) ||
	    !jetstream_post_begin(&posting, queue->jetstream, err))
		return false;
	ok = true;
	for (int i = 1; ok && i <= permits; i++) {
		(void)snprintf(subject, sizeof(subject), "gb.%s.permit.%s.%d",
			       queue->name, lane, i);
		ok = jetstream_post_add(&posting, subject, STR(""), 0, err);
	}
	ok = ok && jetstream_post_end(&posting, err);
	jetstream_post_fini(&posting);
	return ok;
}

/* Tell TAKE the subjects of STREAM that FILTER names, without SKIP characters in front. */
static bool each_subject(struct fleet_queue *queue, enum stream stream, const char *filter,
			 bool (*take)(void *context, const char *subject), void *context,
			 struct err *err)
{
	char body[2 * SUBJECT_MAX];
	size_t offset = 0, total = 0;

	do {
		auto_value struct value *answer = NULL;
		const struct value *subjects;

		(void)snprintf(body, sizeof(body),
			       "{\"subjects_filter\":\"%s\",\"offset\":%zu}", filter,
			       offset);
		if (!call_stream(queue, "STREAM.INFO", stream, NULL, body, &answer, err))
			return false;
		subjects = value_member(value_member(answer, "state"), "subjects");
		total = (size_t)value_integer(value_member(answer, "total"));
		if (value_count(subjects) == 0)
			break;
		for (void *at = value_first(subjects); at != NULL;
		     at = value_next(subjects, at)) {
			if (!take(context, value_key(at)))
				return true;
		}
		offset += value_count(subjects);
	} while (offset < total);
	return true;
}

static bool purge(struct fleet_queue *queue, enum stream stream, const char *filter,
		  uint64_t *removed, struct err *err)
{
	char body[2 * SUBJECT_MAX];
	auto_value struct value *answer = NULL;

	(void)snprintf(body, sizeof(body), "{\"filter\":\"%s\"}", filter);
	if (!call_stream(queue, "STREAM.PURGE", stream, NULL, body, &answer, err))
		return false;
	if (removed != NULL)
		*removed += (uint64_t)value_integer(value_member(answer, "purged"));
	return true;
}

/*
 * Take the one message of SUBJECT out of STREAM. Servers before 2.10.23 forget deliveries of
 * other messages when one subject of a work queue is purged: they would never come again.
 */
static bool remove_one(struct fleet_queue *queue, enum stream stream, const char *subject,
		       uint64_t *removed, struct err *err)
{
	char body[128];
	auto_value struct value *wanted = value_new_object();
	auto_value struct value *found = NULL;
	auto_value struct value *answer = NULL;
	struct err why = {0};
	struct buf text;
	bool gone, ok;

	/* The subject may be anybody's who publishes, with quotes in it. */
	buf_init(&text, 8 * SUBJECT_MAX);
	value_set_text(wanted, "last_by_subj", subject);
	ok = value_print(wanted, 0, &text) &&
	     call_stream(queue, "STREAM.MSG.GET", stream, NULL, text.data, &found, &why);
	buf_fini(&text);
	if (!ok)
		return why.code == ENOENT || err_set(err, why.code, "%s", why.text);
	(void)snprintf(body, sizeof(body), "{\"seq\":%" PRId64 ",\"no_erase\":true}",
		       value_integer(value_member(value_member(found, "message"), "seq")));
	gone = call_stream(queue, "STREAM.MSG.DELETE", stream, NULL, body, &answer, &why);
	/* Somebody else was faster. */
	if (!gone && why.code != ENOENT && why.code != EPROTO)
		return err_set(err, why.code, "%s", why.text);
	if (removed != NULL && gone)
		(*removed)++;
	return true;
}

bool fleet_queue_limit(struct fleet_queue *queue, const char *lane, int permits,
		       int per_minute, struct err *err)
{
	char key[SUBJECT_MAX], text[128];

	if (permits < 0 || permits > PERMITS_MAX)
		return err_set(err, EINVAL, "a lane has 0 (no limit) to %d permits",
			       PERMITS_MAX);
	(void)snprintf(key, sizeof(key), "lane.%s", lane);
	(void)snprintf(text, sizeof(text), "{\"permits\":%d,\"per_minute\":%d}", permits,
		       per_minute);
	if (!need_lane(queue, lane, err))
		return false;
	if (permits == 0 && per_minute == 0)
		return fleet_queue_unset(queue, FLEET_STATE, key, err);
	/*
	 * Workers ask for permits from now on; the permits are there before they know. Those
	 * above a lower limit stay, because a task may have them, and one that was made again
	 * beside it would count twice: who gets one takes it out.
	 */
	return need_permits(queue, lane, permits, err) &&
	       fleet_queue_set(queue, FLEET_STATE, key, str_of(text), err);
}

struct repair {
	struct fleet_queue *queue;
	struct err *err;
	bool ok;
};

static bool repair_lane(void *context, const char *key, struct str text)
{
	struct repair *repair = context;
	auto_value struct value *value = NULL;

	if (strlen(key) > strlen("lane.") && value_parse(text, 0, &value, NULL) &&
	    value_integer(value_member(value, "permits")) > 0)
		repair->ok =
			need_permits(repair->queue, key + strlen("lane."),
				     (int)value_integer(value_member(value, "permits")),
				     repair->err);
	return repair->ok;
}

/* Is STREAM there? A server that makes it for another client just now knows its subjects before. */
static bool is_made_beside(struct fleet_queue *queue, enum stream stream)
{
	for (int i = 0; i < MADE_TRIES; i++) {
		auto_value struct value *answer = NULL;
		struct err why = {0};

		if (call_stream(queue, "STREAM.INFO", stream, NULL, "", &answer, &why))
			return true;
		if (why.code != ENOENT)
			return false;
		(void)poll(NULL, 0, MADE_PAUSE_MS);
	}
	return false;
}

bool fleet_queue_repair(struct fleet_queue *queue, size_t *made, struct err *err)
{
	struct repair repair = {queue, err, true};
	auto_value struct value *account = NULL;

	*made = 0;
	if (!jetstream_call(queue->jetstream, "INFO", "", 0, &account, err))
		return false;
	for (enum stream i = 0; i < STREAMS; i++) {
		auto_value struct value *answer = NULL;
		struct err why = {0};

		if (call_stream(queue, "STREAM.INFO", i, NULL, "", &answer, &why))
			continue;
		if (why.code != ENOENT)
			return err_set(err, why.code, "%s", why.text);
		if (make_stream(queue, i, err))
			(*made)++;
		else if (err->code != EEXIST || !is_made_beside(queue, i))
			return false;
	}
	return need_lane(queue, "default", err) &&
	       fleet_queue_keys(queue, FLEET_STATE, "lane.", repair_lane, &repair, err) &&
	       repair.ok;
}

/* Publishing tasks. */

/* Append what TASK needs to LANE, sorted, so that the same needs are the same consumer. */
static void add_needs(const struct fleet_task *task, struct buf *lane)
{
	const char *names[FLEET_NEEDS_MAX];
	size_t count = 0;

	for (void *at = value_first(task->needs); at != NULL && count < FLEET_NEEDS_MAX;
	     at = value_next(task->needs, at)) {
		size_t place = count++;

		for (; place > 0 && strcmp(names[place - 1], value_key(at)) > 0; place--)
			names[place] = names[place - 1];
		names[place] = value_key(at);
	}
	for (size_t i = 0; i < count; i++)
		(void)buf_addf(lane, "%c%s=%s", i == 0 ? '@' : '+', names[i],
			       value_text(value_member(task->needs, names[i])));
}

/* The subject of TASK of JOB; LANE gets its lane with its needs. */
static void task_subject(const struct fleet_queue *queue, const char *job,
			 const struct fleet_task *task, struct buf *lane,
			 char subject[SUBJECT_MAX])
{
	buf_clear(lane);
	(void)buf_adds(lane, task->lane);
	add_needs(task, lane);
	(void)snprintf(subject, SUBJECT_MAX, "gb.%s.task.%s.%d.%s.%s", queue->name,
		       lane->data, task->priority, job, task->id);
}

char *fleet_queue_place(const struct fleet_queue *queue, const char *job,
			const struct fleet_task *task)
{
	char subject[SUBJECT_MAX];
	struct buf lane;

	buf_init(&lane, SUBJECT_MAX);
	task_subject(queue, job, task, &lane, subject);
	buf_fini(&lane);
	return memory_copy(subject);
}

bool fleet_queue_publish(struct fleet_queue *queue, const char *job,
			 const struct fleet_task *tasks, size_t count, size_t *there,
			 struct err *err)
{
	char subject[SUBJECT_MAX];
	struct jetstream_posting posting;
	struct buf line, lane;
	bool ok;

	if (!jetstream_post_begin(&posting, queue->jetstream, err))
		return false;
	buf_init(&line, 2 * FLEET_LINE_MAX);
	buf_init(&lane, SUBJECT_MAX);
	ok = true;
	for (size_t i = 0; ok && i < count; i++) {
		buf_clear(&line);
		task_subject(queue, job, &tasks[i], &lane, subject);
		ok = need_lane_again(queue, lane.data, err) &&
		     (value_print(tasks[i].line, 0, &line) ||
		      err_set(err, E2BIG, "%s: the line is too long", tasks[i].id)) &&
		     jetstream_post_add(&posting, subject, buf_str(&line),
					FLEET_LINE_FORMAT, err);
	}
	ok = ok && jetstream_post_end(&posting, err);
	if (there != NULL)
		*there += posting.there;
	jetstream_post_fini(&posting);
	buf_fini(&line);
	buf_fini(&lane);
	return ok;
}

/* The lanes and their consumers, as take knows them. */

/* The lane of LANE@NEEDS, which has the permits. */
static struct str plain_lane(struct str lane)
{
	const char *at = memchr(lane.data, '@', lane.size);

	return at != NULL ? str_part(lane, 0, (size_t)(at - lane.data)) : lane;
}

static bool is_among(const char *const *names, struct str name)
{
	for (; names != NULL && *names != NULL; names++) {
		if (str_is(name, *names))
			return true;
	}
	return false;
}

/* The tasks that a worker can do. */
struct choice {
	const char *const *lanes;  /* NULL: all */
	const char *const *labels; /* that it has; NULL: none */
};

/* Can a worker with CHOICE do the tasks of CONSUMER? */
static bool is_chosen(const struct choice *choice, const struct consumer *consumer)
{
	const struct str lane = str_of(consumer->lane), plain = plain_lane(lane);
	struct str needs = str_part(lane, plain.size, lane.size);

	if (choice->lanes != NULL && !is_among(choice->lanes, plain))
		return false;
	while (needs.size > 0) {
		const struct str rest = str_part(needs, 1, needs.size);
		const char *plus = memchr(rest.data, '+', rest.size);
		const size_t size = plus != NULL ? (size_t)(plus - rest.data) : rest.size;

		if (!is_among(choice->labels, str_part(rest, 0, size)))
			return false;
		needs = str_part(rest, size, rest.size);
	}
	return true;
}

static struct consumer *consumer_of(struct fleet_queue *queue, struct str lane, int priority)
{
	for (size_t i = 0; i < queue->consumer_count; i++) {
		if (queue->consumers[i].priority == priority &&
		    str_is(lane, queue->consumers[i].lane))
			return &queue->consumers[i];
	}
	return NULL;
}

/* The limit of LANE, which may be LANE@NEEDS. */
static struct lane *limit_of(struct fleet_queue *queue, const char *lane)
{
	for (size_t i = 0; i < queue->lane_count; i++) {
		if (str_is(plain_lane(str_of(lane)), queue->lanes[i].name))
			return &queue->lanes[i];
	}
	return NULL;
}

/* Note the consumer NAME, "LANE_PRIORITY", behind those of its priority. */
static void note_consumer(struct fleet_queue *queue, struct str name)
{
	const char digit = name.size > 2 ? name.data[name.size - 1] : '\0';
	const struct str lane = str_part(name, 0, name.size > 2 ? name.size - 2 : 0);
	const int priority = digit - '0';
	struct consumer *consumer;
	size_t place;

	if (lane.size == 0 || name.data[lane.size] != '_' || priority < 0 ||
	    priority >= FLEET_PRIORITIES ||
	    queue->consumer_count >= (size_t)QUEUE_LANES_MAX * FLEET_PRIORITIES)
		return;
	consumer = consumer_of(queue, lane, priority);
	if (consumer == NULL) {
		queue->consumers = memory_grow(queue->consumers, queue->consumer_count + 1,
					       sizeof(*queue->consumers));
		for (place = queue->consumer_count;
		     place > 0 && queue->consumers[place - 1].priority < priority; place--)
			queue->consumers[place] = queue->consumers[place - 1];
		consumer = &queue->consumers[place];
		*consumer = (struct consumer){.lane = memory_copy_str(lane),
					      .priority = priority};
		queue->consumer_count++;
	}
	consumer->seen = true;
}

static bool read_consumers(struct fleet_queue *queue, struct err *err)
{
	size_t offset = 0, total, kept = 0;
	char body[64];

	for (size_t i = 0; i < queue->consumer_count; i++)
		queue->consumers[i].seen = false;
	do {
		auto_value struct value *answer = NULL;
		const struct value *names;

		(void)snprintf(body, sizeof(body), "{\"offset\":%zu}", offset);
		if (!call_stream(queue, "CONSUMER.NAMES", TASKS, NULL, body, &answer, err))
			return false;
		names = value_member(answer, "consumers");
		total = (size_t)value_integer(value_member(answer, "total"));
		for (size_t i = 0; i < value_count(names); i++)
			note_consumer(queue, value_str(value_item(names, i)));
		if (value_count(names) == 0)
			break;
		offset += value_count(names);
	} while (offset < total);
	for (size_t i = 0; i < queue->consumer_count; i++) {
		if (queue->consumers[i].seen)
			queue->consumers[kept++] = queue->consumers[i];
		else
			free(queue->consumers[i].lane);
	}
	queue->consumer_count = kept;
	return true;
}

static bool note_lane(void *context, const char *key, struct str text)
{
	struct fleet_queue *queue = context;
	const char *name = key + strlen("lane.");
	auto_value struct value *value = NULL;
	struct lane *lane;

	if (strlen(key) <= strlen("lane.") || !value_parse(text, 0, &value, NULL) ||
	    queue->lane_count >= QUEUE_LANES_MAX)
		return true;
	lane = limit_of(queue, name);
	if (lane == NULL) {
		queue->lanes = memory_grow(queue->lanes, queue->lane_count + 1,
					   sizeof(*queue->lanes));
		lane = &queue->lanes[queue->lane_count++];
		*lane = (struct lane){.name = memory_copy(name)};
	}
	lane->permits = (int)value_integer(value_member(value, "permits"));
	lane->per_minute = (int)value_integer(value_member(value, "per_minute"));
	return true;
}

/* Read what consumers and limits there are, when that is due. */
static bool look(struct fleet_queue *queue, struct err *err)
{
	const int64_t now_ms = clock_now_ms();
	bool there = false;

	if (queue->looked_ms != 0 && now_ms - queue->looked_ms < LOOK_MS)
		return true;
	for (size_t i = 0; i < queue->lane_count; i++)
		queue->lanes[i].permits = queue->lanes[i].per_minute = 0;
	if (!read_consumers(queue, err) ||
	    !fleet_queue_keys(queue, FLEET_STATE, "lane.", note_lane, queue, err))
		return false;
	if (queue->looked_ms == 0 && !find_consumer(queue, TASKS, "default_1", &there, err))
		return false;
	queue->looked_ms = now_ms;
	return true;
}

int fleet_queue_per_minute(struct fleet_queue *queue, const char *lane, int *permits)
{
	const struct lane *limit;
	int per_minute;

	(void)pthread_mutex_lock(&queue->taking);
	limit = limit_of(queue, lane);
	per_minute = limit != NULL ? limit->per_minute : 0;
	*permits = limit != NULL ? limit->permits : 0;
	(void)pthread_mutex_unlock(&queue->taking);
	return per_minute;
}

/* Taking: what a message says of itself. */

/* The part behind the first COUNT parts of SUBJECT; ITS: the part before it. */
static const char *behind(const char *subject, size_t count, struct str *its)
{
	for (; count > 0; count--) {
		const char *dot = strchr(subject, '.');

		if (dot == NULL)
			return NULL;
		*its = (struct str){subject, (size_t)(dot - subject)};
		subject = dot + 1;
	}
	return subject;
}

static void returned_key(const struct fleet_lease *lease, char key[SUBJECT_MAX])
{
	(void)snprintf(key, SUBJECT_MAX, "returned.%s.%s", lease->job, lease->id);
}

/* A lease of MSG, which came at NOW_MS at the earliest. NULL: it is no task. */
static struct fleet_lease *lease_of(struct fleet_queue *queue,
				    const struct jetstream_message *msg, int64_t now_ms)
{
	struct str job = STR("");
	const char *id;
	struct fleet_lease *lease;

	/* gb.F.task.LANE.PRIORITY.JOB.ID */
	id = behind(msg->subject, 6, &job);
	if (id == NULL || msg->ack == NULL)
		return NULL;
	lease = memory_alloc(sizeof(*lease));
	lease->queue = queue;
	lease->subject = memory_copy(msg->subject);
	lease->job = memory_copy_str(job);
	lease->id = memory_copy(id);
	lease->line = memory_copy_str(msg->data);
	lease->line_size = msg->data.size;
	lease->ack = memory_copy(msg->ack);
	lease->version = msg->version;
	lease->delivered = (int)jetstream_number(jetstream_ack_part(msg->ack, 1));
	lease->confirmed_ms = now_ms;
	return lease;
}

/* How often the task was given back unread or without having been begun. Asked only when it matters. */
static void count_returned(struct fleet_lease *lease)
{
	char key[SUBJECT_MAX];
	auto_value struct value *value = NULL;
	struct err err;

	if (lease->delivered <= 1)
		return;
	returned_key(lease, key);
	if (fleet_queue_get(lease->queue, FLEET_STATE, key, &value, &err)) {
		lease->returned = (int)value_integer(value_member(value, "returned"));
		lease->refused = (int)value_integer(value_member(value, "refused"));
	}
}

const char *fleet_lease_job(const struct fleet_lease *lease)
{
	return lease->job;
}

const char *fleet_lease_id(const struct fleet_lease *lease)
{
	return lease->id;
}

struct fleet_message fleet_lease_message(const struct fleet_lease *lease)
{
	return (struct fleet_message){.line = {lease->line, lease->line_size},
				      .version = lease->version,
				      .place = lease->subject};
}

int fleet_lease_deliveries(const struct fleet_lease *lease)
{
	const int count = lease->delivered - lease->returned;

	return count > 0 ? count : 1;
}

int fleet_lease_refusals(const struct fleet_lease *lease)
{
	return lease->refused;
}

void fleet_lease_free(struct fleet_lease *lease)
{
	if (lease == NULL)
		return;
	free(lease->subject);
	free(lease->job);
	free(lease->id);
	free(lease->line);
	free(lease->ack);
	free(lease->permit);
	free(lease);
}

/* Taking: pulls. */

struct taking {
	struct fleet_lease **leases;
	size_t count, taken;
	/* permits of LANE that have no task yet: subjects of their acknowledgements */
	const char *lane;
	char **permits;
	size_t permit_count;
};

static bool need_inbox(struct fleet_queue *queue, struct err *err)
{
	queue->drained_ms = queue->inbox != NULL ? queue->drained_ms : clock_now_ms();
	return queue->inbox != NULL ||
	       jetstream_inbox_open(queue->jetstream, &queue->inbox, err);
}

/* Ask STREAM's CONSUMER for COUNT messages, for SECONDS (0: those that are there). */
static bool pull(struct fleet_queue *queue, enum stream stream, const char *consumer,
		 size_t count, int seconds, uint64_t *number, struct err *err)
{
	char full[SUBJECT_MAX];

	*number = ++queue->pulls;
	return jetstream_pull(queue->inbox, stream_name(queue, stream, full), consumer,
			      count, seconds, *number, err);
}

static void release(struct fleet_queue *queue, char **ack)
{
	if (*ack != NULL)
		jetstream_publish(queue->jetstream, *ack, STR("-NAK"));
	free(*ack);
	*ack = NULL;
}

/*
 * Add the lease of a task MSG of LANE to TAKING, with a permit when the lane has a limit. One
 * without room or without a permit is given back: its pull waited when there was no limit yet.
 */
static void add_task(struct fleet_queue *queue, struct taking *taking, struct str lane,
		     const struct jetstream_message *msg, int64_t since_ms)
{
	struct fleet_lease *lease = lease_of(queue, msg, since_ms);
	bool limited = false, permitted;

	/* A subject with too few parts is nobody's task: else it would come again for ever. */
	if (lease == NULL) {
		if (msg->ack != NULL)
			jetstream_publish(queue->jetstream, msg->ack, STR("+TERM"));
		return;
	}
	lane = plain_lane(lane);
	for (size_t i = 0; i < queue->lane_count; i++)
		limited = limited || (queue->lanes[i].permits > 0 &&
				      str_is(lane, queue->lanes[i].name));
	permitted = taking != NULL && taking->permit_count > 0 && taking->lane != NULL &&
		    str_is(lane, taking->lane);
	if (taking == NULL || taking->taken >= taking->count || (limited && !permitted)) {
		fleet_lease_return(lease, limited ? UNPERMITTED_S : 0, FLEET_UNTRIED);
		fleet_lease_free(lease);
		return;
	}
	if (permitted)
		lease->permit = taking->permits[--taking->permit_count];
	taking->leases[taking->taken++] = lease;
}

/* Is the permit of SUBJECT none, or above the limit of LANE? Then ACK takes it out, and it is gone. */
static bool is_surplus(struct fleet_queue *queue, const char *lane, const char *subject,
		       char **ack)
{
	struct lane *limit = limit_of(queue, lane);
	const char *number = strrchr(subject, '.');
	const long nth = number != NULL ? strtol(number + 1, NULL, 10) : 0;
	auto_value struct value *value = NULL;
	char key[SUBJECT_MAX];
	struct err err;

	/* Permits are 1 to N: another name for one, as "01", would be one more. */
	(void)snprintf(key, sizeof(key), "gb.%s.permit.%s.%ld", queue->name, lane, nth);
	if (nth < 1 || strcmp(key, subject) != 0) {
		jetstream_publish(queue->jetstream, *ack, STR("+TERM"));
		free(*ack);
		*ack = NULL;
		return true;
	}
	if (limit == NULL || nth <= limit->permits)
		return false;
	/* The limit that we know may be some seconds old. */
	(void)snprintf(key, sizeof(key), "lane.%s", lane);
	if (!fleet_queue_get(queue, FLEET_STATE, key, &value, &err)) {
		release(queue, ack);
		return true;
	}
	limit->permits = (int)value_integer(value_member(value, "permits"));
	if (nth <= limit->permits)
		return false;
	if (limit->permits > 0)
		jetstream_publish(queue->jetstream, *ack, STR("+ACK"));
	else
		jetstream_publish(queue->jetstream, *ack, STR("-NAK"));
	free(*ack);
	*ack = NULL;
	return true;
}

/*
 * Handle MSG of the inbox: a task, a permit, or the end of a pull. WANTED: the number of the
 * pull that is waited for. *ENDED: it is over.
 */
static void handle(struct fleet_queue *queue, struct taking *taking,
		   const struct jetstream_message *msg, int64_t since_ms, uint64_t wanted,
		   bool *ended)
{
	const uint64_t number = jetstream_message_ends(queue->inbox, msg);
	const char *ack = msg->ack;
	char permits[SUBJECT_MAX];

	if (number != 0) {
		/* Nobody answers where a stream or a consumer is gone. */
		if (msg->unanswered)
			queue->looked_ms = 0;
		*ended = *ended || number == wanted;
		for (size_t i = 0; i < queue->consumer_count; i++) {
			if (queue->consumers[i].pull == number)
				queue->consumers[i].out = 0;
		}
		return;
	}
	(void)snprintf(permits, sizeof(permits), "gb.%s.permit.", queue->name);
	if (ack != NULL && strncmp(msg->subject, permits, strlen(permits)) == 0) {
		char *copy = memory_copy(ack);
		struct str lane = STR("");

		/* gb.F.permit.LANE.N; one of another lane comes late, when its pull had failed. */
		(void)behind(msg->subject, 4, &lane);
		if (taking == NULL || taking->lane == NULL ||
		    !str_is(lane, taking->lane) || taking->permit_count >= taking->count)
			release(queue, &copy);
		else if (!is_surplus(queue, taking->lane, msg->subject, &copy))
			taking->permits[taking->permit_count++] = copy;
		return;
	}
	if (ack != NULL) {
		const struct str name = jetstream_ack_part(ack, 0);
		struct str lane = STR("");
		struct consumer *consumer =
			name.size > 2
				? consumer_of(queue, str_part(name, 0, name.size - 2),
					      name.data[name.size - 1] - '0')
				: NULL;

		if (consumer != NULL && consumer->out > 0)
			consumer->out--;
		/* gb.F.task.LANE.PRIORITY.JOB.ID */
		(void)behind(msg->subject, 4, &lane);
		add_task(queue, taking, lane, msg, since_ms);
	}
}

/* Handle what is there already, and pulls whose time is over. */
static void drain(struct fleet_queue *queue, struct taking *taking)
{
	const int64_t since_ms = queue->drained_ms;
	int64_t now_ms;
	bool ended = false;

	for (;;) {
		struct jetstream_message msg;
		struct err err;

		if (jetstream_inbox_next(queue->inbox, 0, &msg, &err) != JETSTREAM_MESSAGE)
			break;
		handle(queue, taking, &msg, since_ms, 0, &ended);
		jetstream_message_fini(&msg);
	}
	now_ms = clock_now_ms();
	queue->drained_ms = now_ms;
	for (size_t i = 0; i < queue->consumer_count; i++) {
		if (queue->consumers[i].out > 0 && now_ms > queue->consumers[i].deadline_ms)
			queue->consumers[i].out = 0;
	}
}

static size_t waited_for(const struct fleet_queue *queue)
{
	size_t sum = 0;

	for (size_t i = 0; i < queue->consumer_count; i++)
		sum += queue->consumers[i].out;
	return sum;
}

/* Pull COUNT messages that are there, and handle all of them. */
static bool pull_now(struct fleet_queue *queue, struct taking *taking, enum stream stream,
		     const char *consumer, size_t count, struct err *err)
{
	const int64_t deadline_ms = clock_now_ms() + QUEUE_WAIT_S * INT64_C(1000);
	bool ended = false;
	uint64_t number;

	if (!pull(queue, stream, consumer, count, 0, &number, err))
		return false;
	while (!ended && count > 0) {
		struct jetstream_message msg;
		const int64_t since_ms = clock_now_ms();
		const int64_t left_ms = deadline_ms > since_ms ? deadline_ms - since_ms : 0;

		switch (jetstream_inbox_next(queue->inbox, left_ms, &msg, err)) {
		case JETSTREAM_MESSAGE:
			break;
		case JETSTREAM_NONE:
			return err_set(err, ETIMEDOUT,
				       "%s: no answer to taking within %d s; is the server "
				       "overloaded, or stopped?",
				       jetstream_shown(queue->jetstream), QUEUE_WAIT_S);
		default:
			return false;
		}
		if (jetstream_message_ends(queue->inbox, &msg) == 0)
			count--;
		handle(queue, taking, &msg, since_ms, number, &ended);
		jetstream_message_fini(&msg);
	}
	return true;
}

/* Take tasks of CONSUMER, whose LANE has a limit: first permits, then as many tasks. */
static bool take_limited(struct fleet_queue *queue, struct taking *taking,
			 const struct consumer *consumer, struct lane *lane, size_t room,
			 struct err *err)
{
	const size_t before = taking->taken;
	char name[SUBJECT_MAX];
	size_t permits;
	bool ok;

	(void)snprintf(name, sizeof(name), "%s_%d", consumer->lane, consumer->priority);
	taking->lane = lane->name;
	ok = pull_now(queue, taking, PERMITS, lane->name, room, err);
	permits = taking->permit_count;
	if (ok && permits > 0)
		ok = pull_now(queue, taking, TASKS, name, permits, err);
	while (taking->permit_count > 0)
		release(queue, &taking->permits[--taking->permit_count]);
	taking->lane = NULL;
	if (ok && taking->taken == before)
		lane->asked_ms = clock_now_ms();
	return ok;
}

/* Take what is there, highest priority first. */
static bool take_now(struct fleet_queue *queue, const struct choice *choice,
		     struct taking *taking, struct err *err)
{
	const size_t turn = queue->consumer_count > 0 ? queue->turn++ : 0;

	for (int priority = FLEET_PRIORITIES - 1; priority >= 0; priority--) {
		for (size_t n = 0; n < queue->consumer_count; n++) {
			struct consumer *consumer =
				&queue->consumers[(n + turn) % queue->consumer_count];
			struct lane *lane = limit_of(queue, consumer->lane);
			const size_t before = taking->taken,
				     busy = before + waited_for(queue);
			char name[SUBJECT_MAX];
			bool ok;

			if (consumer->priority != priority || consumer->out > 0 ||
			    busy >= taking->count || !is_chosen(choice, consumer) ||
			    clock_now_ms() - consumer->empty_ms < EMPTY_MS)
				continue;
			(void)snprintf(name, sizeof(name), "%s_%d", consumer->lane,
				       priority);
			if (lane == NULL || lane->permits == 0)
				ok = pull_now(queue, taking, TASKS, name,
					      taking->count - busy, err);
			else if (clock_now_ms() - lane->asked_ms < queue->poll_ms &&
				 priority == FLEET_PRIORITIES - 1)
				continue;
			else
				ok = take_limited(queue, taking, consumer, lane,
						  taking->count - busy, err);
			if (!ok)
				return false;
			consumer->empty_ms = taking->taken == before ? clock_now_ms() : 0;
		}
	}
	return true;
}

/* Let pulls wait at consumers without a limit; the one that gave last gets the most. */
static bool wait_at(struct fleet_queue *queue, const struct choice *choice, size_t room,
		    struct err *err)
{
	size_t open = 0, most = 0;

	for (size_t i = 0; i < queue->consumer_count; i++) {
		const struct lane *lane = limit_of(queue, queue->consumers[i].lane);

		if (queue->consumers[i].out == 0 && (lane == NULL || lane->permits == 0) &&
		    is_chosen(choice, &queue->consumers[i]))
			open++;
	}
	most = room > open ? room - open : 0;
	for (size_t i = 0; i < queue->consumer_count && room > 0; i++) {
		struct consumer *consumer =
			&queue->consumers[(i + queue->turn) % queue->consumer_count];
		const struct lane *lane = limit_of(queue, consumer->lane);
		/* Most tasks have no priority of their own. */
		const size_t extra = consumer->priority == FLEET_NORMAL ? most : 0;
		char name[SUBJECT_MAX];

		if (consumer->out > 0 || (lane != NULL && lane->permits > 0) ||
		    !is_chosen(choice, consumer))
			continue;
		(void)snprintf(name, sizeof(name), "%s_%d", consumer->lane,
			       consumer->priority);
		if (!pull(queue, TASKS, name, 1 + extra, queue->pull_s, &consumer->pull, err))
			return false;
		consumer->out = 1 + extra;
		consumer->deadline_ms =
			clock_now_ms() + queue->pull_s * INT64_C(1000) + PULL_GRACE_MS;
		most -= extra;
		room -= consumer->out;
	}
	return true;
}

/* Wait for the first task, at most MS, then take all that came with it. */
static bool wait_for_task(struct fleet_queue *queue, struct taking *taking, int64_t ms,
			  struct err *err)
{
	const int64_t end_ms = clock_now_ms() + ms;
	bool ended = false;

	while (taking->taken == 0) {
		const int64_t now_ms = clock_now_ms();
		struct jetstream_message msg;
		enum jetstream_next next;

		if (now_ms >= end_ms)
			break;
		next = jetstream_inbox_next(queue->inbox, end_ms - now_ms, &msg, err);
		if (next == JETSTREAM_FAILED)
			return false;
		if (next == JETSTREAM_NONE)
			break;
		handle(queue, taking, &msg, now_ms, 0, &ended);
		jetstream_message_fini(&msg);
	}
	drain(queue, taking);
	return true;
}

static bool has_limits(const struct fleet_queue *queue)
{
	for (size_t i = 0; i < queue->lane_count; i++) {
		if (queue->lanes[i].permits > 0)
			return true;
	}
	return false;
}

static bool take_some(struct fleet_queue *queue, const struct choice *choice,
		      double seconds, struct taking *taking, struct err *err)
{
	int64_t ms = (int64_t)(seconds * 1000);
	size_t busy;

	if (!need_inbox(queue, err) || !look(queue, err))
		return false;
	drain(queue, taking);
	if (!take_now(queue, choice, taking, err))
		return false;
	if (taking->taken > 0) {
		queue->pull_s = PULL_LEAST_S;
		queue->poll_ms = POLL_MS;
		return true;
	}
	busy = waited_for(queue);
	if (busy < taking->count && !wait_at(queue, choice, taking->count - busy, err))
		return false;
	if (has_limits(queue) && ms > queue->poll_ms)
		ms = queue->poll_ms;
	if (!wait_for_task(queue, taking, ms, err))
		return false;
	if (taking->taken > 0) {
		queue->pull_s = PULL_LEAST_S;
		queue->poll_ms = POLL_MS;
	} else if (waited_for(queue) == 0) {
		/* The pulls are over: nothing has come for as long as they waited. */
		queue->pull_s =
			2 * queue->pull_s < PULL_MOST_S ? 2 * queue->pull_s : PULL_MOST_S;
		queue->poll_ms = 2 * queue->poll_ms < POLL_MOST_MS ? 2 * queue->poll_ms
								   : POLL_MOST_MS;
	}
	return true;
}

bool fleet_queue_take(struct fleet_queue *queue, const char *const *lanes,
		      const char *const *labels, size_t count, double seconds,
		      struct fleet_lease **leases, size_t *taken, struct err *err)
{
	const struct choice choice = {lanes, labels};
	auto_free char **permits = memory_array(count + 1, sizeof(*permits));
	struct taking taking = {.leases = leases, .count = count, .permits = permits};
	bool ok;

	(void)pthread_mutex_lock(&queue->taking);
	ok = take_some(queue, &choice, seconds, &taking, err);
	while (taking.permit_count > 0)
		release(queue, &permits[--taking.permit_count]);
	(void)pthread_mutex_unlock(&queue->taking);
	for (size_t i = 0; i < taking.taken; i++)
		count_returned(leases[i]);
	*taken = taking.taken;
	/* Tasks that came before a failure are the caller's. */
	return ok || taking.taken > 0;
}

void fleet_queue_rest(struct fleet_queue *queue)
{
	(void)pthread_mutex_lock(&queue->taking);
	if (queue->inbox != NULL) {
		for (size_t i = 0; i < queue->consumer_count; i++)
			queue->consumers[i].out = 0;
		jetstream_inbox_stop(queue->inbox);
		drain(queue, NULL);
		jetstream_inbox_close(queue->inbox);
		queue->inbox = NULL;
	}
	(void)pthread_mutex_unlock(&queue->taking);
}

/* The life of a lease. */

static double margin_s(const struct fleet_queue *queue)
{
	const double tenth = queue->lease_s / 10;

	return tenth < LEASE_MARGIN_S ? tenth : LEASE_MARGIN_S;
}

bool fleet_lease_over(const struct fleet_lease *lease)
{
	const int64_t most_ms =
		(int64_t)((lease->queue->lease_s - margin_s(lease->queue)) * 1000);

	return clock_now_ms() - lease->confirmed_ms >= most_ms;
}

/* Give the permit of LEASE back, unless somebody else may have it by now. */
static void release_permit(struct fleet_lease *lease)
{
	if (!fleet_lease_over(lease))
		release(lease->queue, &lease->permit);
}

enum fleet_renewal fleet_lease_renew(struct fleet_lease *lease, struct err *err)
{
	struct fleet_queue *queue = lease->queue;
	const int64_t now_ms = clock_now_ms();

	if (fleet_lease_over(lease)) {
		(void)err_set(err, ETIMEDOUT,
			      "%s/%s: the lease of %.0f s was not renewed in time; somebody "
			      "else may have the task",
			      lease->job, lease->id, queue->lease_s);
		return FLEET_LOST;
	}
	if (!jetstream_confirm(queue->jetstream, lease->ack, "+WPI", err) ||
	    (lease->permit != NULL &&
	     !jetstream_confirm(queue->jetstream, lease->permit, "+WPI", err)))
		return FLEET_UNSURE;
	lease->confirmed_ms = now_ms;
	return FLEET_RENEWED;
}

/* The result as those who look on get it: without what only the store needs. */
static bool print_notice(const struct value *result, struct buf *text)
{
	static const char *const members[] = {"job",   "id",     "attempt",  "status",
					      "exit",  "check",  "accounts", "tokens",
					      "money", "worker", "host",     "began",
					      "ended", "error",  "reason",   NULL};
	auto_value struct value *notice = value_new_object();

	value_set_members(notice, result, members);
	return value_print(notice, 0, text);
}

/* The task of LEASE is out of the queue. */
static void forget_lease(struct fleet_lease *lease)
{
	char key[SUBJECT_MAX];
	struct err why;

	if (lease->returned > 0) {
		returned_key(lease, key);
		(void)fleet_queue_unset(lease->queue, FLEET_STATE, key, &why);
	}
	release_permit(lease);
}

/* ACK, which takes the task out of the queue. A queue that is gone has it no more. */
bool fleet_lease_drop(struct fleet_lease *lease, struct err *err)
{
	struct err why = {0};

	if (!jetstream_confirm(lease->queue->jetstream, lease->ack, "+ACK", &why) &&
	    why.code != ENOENT)
		return err_set(err, why.code, "%s", why.text);
	forget_lease(lease);
	return true;
}

bool fleet_lease_done(struct fleet_lease *lease, const struct value *result, struct err *err)
{
	struct fleet_queue *queue = lease->queue;
	struct err why = {0}, untold = {0};
	char subject[SUBJECT_MAX];
	struct buf text;
	bool printed, ok;

	(void)snprintf(subject, sizeof(subject), "gb.%s.result.%s.%s", queue->name,
		       lease->job, lease->id);
	buf_init(&text, FLEET_LINE_MAX);
	printed = print_notice(result, &text);
	ok = printed && (jetstream_finish(queue->jetstream, subject, buf_str(&text),
					  lease->ack, &untold, &why) ||
			 why.code == ENOENT);
	buf_fini(&text);
	if (!printed)
		return fleet_lease_drop(lease, err);
	if (!ok)
		return err_set(err, why.code, "%s", why.text);
	/* Another notice, or no room for one: the store has the result all the same. */
	if (untold.code == ENOTCONN || untold.code == ETIMEDOUT)
		return err_set(err, untold.code, "%s", untold.text);
	forget_lease(lease);
	return true;
}

void fleet_lease_return(struct fleet_lease *lease, double seconds, enum fleet_return how)
{
	struct fleet_queue *queue = lease->queue;
	char key[SUBJECT_MAX], text[64];
	struct err err;

	/* Somebody else may have it by now, and would lose it to a third. */
	if (fleet_lease_over(lease))
		return;
	if (how != FLEET_TRIED) {
		returned_key(lease, key);
		(void)snprintf(text, sizeof(text), "{\"returned\":%d,\"refused\":%d}",
			       lease->returned + 1, lease->refused + (how == FLEET_UNREAD));
		(void)fleet_queue_set(queue, FLEET_STATE, key, str_of(text), &err);
	}
	if (seconds > 0)
		(void)snprintf(text, sizeof(text), "-NAK {\"delay\":%" PRId64 "}",
			       (int64_t)(seconds * 1e9));
	else
		(void)snprintf(text, sizeof(text), "-NAK");
	/* To keep the number may have taken as long as the server may. */
	if (!fleet_lease_over(lease))
		jetstream_publish(queue->jetstream, lease->ack, str_of(text));
	release_permit(lease);
}

/* Keys and values. */

static enum stream stream_of(enum fleet_bucket bucket)
{
	return bucket == FLEET_STATE ? STATE : bucket == FLEET_WORKERS ? WORKERS : LEAD;
}

static bool key_subject(const struct fleet_queue *queue, enum fleet_bucket bucket,
			const char *key, char subject[SUBJECT_MAX], struct err *err)
{
	char all[SUBJECT_MAX];
	const char *subjects = with_fleet(queue, streams[stream_of(bucket)].subjects, all);
	const int size = snprintf(subject, SUBJECT_MAX, "%.*s%s",
				  (int)(strlen(subjects) - 1), subjects, key);

	return (size > 0 && size < SUBJECT_MAX &&
		key[strcspn(key, " \t\r\n*>\"\\")] == '\0') ||
	       err_set(err, EINVAL, "\"%.64s\" cannot be a key", key);
}

bool fleet_queue_set(struct fleet_queue *queue, enum fleet_bucket bucket, const char *key,
		     struct str value, struct err *err)
{
	char subject[SUBJECT_MAX];

	return key_subject(queue, bucket, key, subject, err) &&
	       jetstream_store(queue->jetstream, subject, value, NULL, "a key", err);
}

/* The last message of KEY: its bytes, and its sequence. ENOENT: there is none. */
static bool last_of(struct fleet_queue *queue, enum fleet_bucket bucket, const char *key,
		    struct buf *bytes, int64_t *sequence, struct err *err)
{
	char subject[SUBJECT_MAX], body[2 * SUBJECT_MAX];
	auto_value struct value *answer = NULL;
	const struct value *message;

	if (!key_subject(queue, bucket, key, subject, err))
		return false;
	(void)snprintf(body, sizeof(body), "{\"last_by_subj\":\"%s\"}", subject);
	if (!call_stream(queue, "STREAM.MSG.GET", stream_of(bucket), NULL, body, &answer,
			 err))
		return false;
	message = value_member(answer, "message");
	*sequence = value_integer(value_member(message, "seq"));
	return buf_base64_read(value_str(value_member(message, "data")), bytes) ||
	       err_set(err, EPROTO, "%s: a key that is not base64",
		       jetstream_shown(queue->jetstream));
}

bool fleet_queue_get(struct fleet_queue *queue, enum fleet_bucket bucket, const char *key,
		     struct value **value, struct err *err)
{
	struct err why = {0};
	int64_t sequence;
	struct buf bytes;
	bool ok;

	*value = NULL;
	buf_init(&bytes, ANSWER_MAX);
	ok = last_of(queue, bucket, key, &bytes, &sequence, &why);
	if (ok && bytes.size > 0)
		ok = value_parse(buf_str(&bytes), 0, value, &why);
	buf_fini(&bytes);
	return ok || why.code == ENOENT || err_set(err, why.code, "%s", why.text);
}

bool fleet_queue_unset(struct fleet_queue *queue, enum fleet_bucket bucket,
		       const char *key, struct err *err)
{
	char subject[SUBJECT_MAX];

	return key_subject(queue, bucket, key, subject, err) &&
	       purge(queue, stream_of(bucket), subject, NULL, err);
}

bool fleet_queue_claim(struct fleet_queue *queue, enum fleet_bucket bucket,
		       const char *key, struct str value, bool *mine, struct err *err)
{
	char subject[SUBJECT_MAX], expected[32];
	struct err why = {0};
	int64_t sequence = 0;
	struct buf bytes;
	bool ok = true;

	*mine = false;
	if (!key_subject(queue, bucket, key, subject, err))
		return false;
	buf_init(&bytes, ANSWER_MAX);
	*mine = jetstream_store(queue->jetstream, subject, value, "0", "a key", &why);
	if (!*mine && why.code == EEXIST) {
		ok = last_of(queue, bucket, key, &bytes, &sequence, &why) ||
		     why.code == ENOENT;
		(void)snprintf(expected, sizeof(expected), "%" PRId64, sequence);
		if (ok && str_equal(buf_str(&bytes), value))
			*mine = jetstream_store(queue->jetstream, subject, value,
						expected, "a key", &why);
		ok = ok && (*mine || why.code == EEXIST || why.code == ENOENT);
	} else {
		ok = *mine;
	}
	buf_fini(&bytes);
	return ok || err_set(err, why.code, "%s", why.text);
}

struct keys {
	size_t skip; /* bytes of the subject before the key */
	bool (*take)(void *context, const char *key, struct str value);
	void *context;
};

static bool take_key(void *context, const char *subject, struct str data)
{
	const struct keys *keys = context;

	/* A key that another program deleted has no bytes. */
	return data.size == 0 || keys->take(keys->context, subject + keys->skip, data);
}

bool fleet_queue_keys(struct fleet_queue *queue, enum fleet_bucket bucket,
		      const char *prefix,
		      bool (*take)(void *context, const char *key, struct str value),
		      void *context, struct err *err)
{
	char filter[SUBJECT_MAX], stream[SUBJECT_MAX];
	struct jetstream_reader reader = {
		.jetstream = queue->jetstream,
		.stream = stream_name(queue, stream_of(bucket), stream),
		.filter = filter,
		.last_only = true,
	};
	struct keys keys = {.take = take, .context = context};
	enum jetstream_pulled pulled = JETSTREAM_SOME;
	bool begun;
	size_t size;

	if (!key_subject(queue, bucket, prefix, filter, err))
		return false;
	size = strlen(filter);
	keys.skip = size - strlen(prefix);
	if (size + 2 > sizeof(filter))
		return err_set(err, EINVAL, "the key is too long");
	(void)snprintf(filter + size, sizeof(filter) - size, ">");
	begun = jetstream_reader_begin(&reader, err);
	while (begun && pulled == JETSTREAM_SOME && reader.left > 0)
		pulled = jetstream_reader_pull(&reader, 0, take_key, &keys);
	jetstream_reader_end(&reader);
	return begun && (pulled != JETSTREAM_LOST ||
			 err_set(err, ETIMEDOUT, "%s: the server did not tell its keys",
				 jetstream_shown(queue->jetstream)));
}

/* Those who look on. */

void fleet_queue_tell(struct fleet_queue *queue, const char *job, const char *id,
		      struct str event)
{
	char subject[SUBJECT_MAX];

	(void)snprintf(subject, sizeof(subject), "gb.%s.event.%s.%s", queue->name, job, id);
	jetstream_publish(queue->jetstream, subject, event);
}

struct watching {
	bool (*take)(void *context, const char *id, struct str text);
	void *context;
};

static bool take_watched(void *context, const char *subject, struct str data)
{
	const struct watching *watching = context;
	struct str its;
	/* gb.F.event.JOB.ID */
	const char *id = behind(subject, 4, &its);

	return id == NULL || watching->take(watching->context, id, data);
}

bool fleet_queue_watch(struct fleet_queue *queue, enum fleet_watch what, const char *job,
		       const char *id, bool follow,
		       bool (*take)(void *context, const char *id, struct str text),
		       void *context, struct err *err)
{
	char filter[SUBJECT_MAX], stream[SUBJECT_MAX];
	struct jetstream_reader reader = {
		.jetstream = queue->jetstream,
		.stream = stream_name(queue, what == FLEET_WATCH_EVENTS ? EVENTS : RESULTS,
				      stream),
		.filter = filter,
	};
	struct watching watching = {take, context};
	enum jetstream_pulled pulled = JETSTREAM_SOME;
	struct err why;
	bool ok;

	(void)snprintf(filter, sizeof(filter), "gb.%s.%s.%s.%s", queue->name,
		       what == FLEET_WATCH_EVENTS ? "event" : "result", job,
		       id != NULL ? id : ">");
	ok = jetstream_reader_begin(&reader, err);
	while (ok && pulled != JETSTREAM_ENOUGH && (follow || reader.left > 0)) {
		pulled = jetstream_reader_pull(&reader, follow ? 1 : 0, take_watched,
					       &watching);
		if (pulled == JETSTREAM_SOME || pulled == JETSTREAM_ENOUGH)
			continue;
		if (!follow)
			ok = pulled == JETSTREAM_NOTHING ||
			     err_set(err, ETIMEDOUT, "%s: the server did not go on",
				     jetstream_shown(queue->jetstream));
		if (!follow || !take(context, NULL, STR("")))
			break;
		/* A server that was away has forgotten this reader. */
		if (pulled == JETSTREAM_LOST) {
			(void)poll(NULL, 0, AWAY_MS);
			if (!jetstream_reader_begin(&reader, &why) &&
			    why.code == EKEYREJECTED)
				ok = err_set(err, why.code, "%s", why.text);
		}
	}
	jetstream_reader_end(&reader);
	return ok;
}

struct waiting {
	bool (*take)(void *context, const char *id, const char *place);
	void *context;
};

static bool take_waiting(void *context, const char *subject)
{
	const struct waiting *waiting = context;
	struct str its;
	const char *id = behind(subject, 6, &its);

	return id == NULL || waiting->take(waiting->context, id, subject);
}

bool fleet_queue_waiting(struct fleet_queue *queue, const char *job,
			 bool (*take)(void *context, const char *id, const char *place),
			 void *context, struct err *err)
{
	struct waiting waiting = {take, context};
	char filter[SUBJECT_MAX];

	(void)snprintf(filter, sizeof(filter), "gb.%s.task.*.*.%s.>", queue->name, job);
	return each_subject(queue, TASKS, filter, take_waiting, &waiting, err);
}

/* The first three numbers of VERSION as one. */
static int version_of(const char *version)
{
	int parts[3] = {0};

	for (size_t i = 0; version != NULL && i < 3; i++) {
		char *end;

		parts[i] = (int)strtol(version, &end, 10);
		version = *end == '.' ? end + 1 : NULL;
	}
	return (parts[0] * 1000 + parts[1]) * 1000 + parts[2];
}

/* Does the server purge some subjects of a work queue without harm to the others? */
static bool purges_soundly(struct fleet_queue *queue)
{
	auto_value struct value *greeting = NULL;
	struct err err;

	return jetstream_greeting(queue->jetstream, &greeting, &err) &&
	       version_of(value_text(value_member(greeting, "version"))) >= SOUND_VERSION;
}

struct removal {
	struct fleet_queue *queue;
	uint64_t *removed;
	struct err *err;
	bool ok;
};

static bool remove_task(void *context, const char *subject)
{
	struct removal *removal = context;

	removal->ok =
		remove_one(removal->queue, TASKS, subject, removal->removed, removal->err);
	return removal->ok;
}

bool fleet_queue_purge(struct fleet_queue *queue, const char *job, const char *id,
		       uint64_t *removed, struct err *err)
{
	struct removal removal = {queue, removed, err, true};
	char filter[SUBJECT_MAX];

	(void)snprintf(filter, sizeof(filter), "gb.%s.task.*.*.%s.%s", queue->name, job,
		       id != NULL ? id : ">");
	if (id == NULL && purges_soundly(queue))
		return purge(queue, TASKS, filter, removed, err);
	return each_subject(queue, TASKS, filter, remove_task, &removal, err) && removal.ok;
}

bool fleet_queue_remove(struct fleet_queue *queue, const char *place, struct err *err)
{
	return remove_one(queue, TASKS, place, NULL, err);
}

bool fleet_queue_forget(struct fleet_queue *queue, const char *job, const char *id,
			struct err *err)
{
	char filter[SUBJECT_MAX], key[SUBJECT_MAX];

	(void)snprintf(filter, sizeof(filter), "gb.%s.result.%s.%s", queue->name, job, id);
	(void)snprintf(key, sizeof(key), "returned.%s.%s", job, id);
	return purge(queue, RESULTS, filter, NULL, err) &&
	       fleet_queue_unset(queue, FLEET_STATE, key, err);
}

/* How sound the server is. */

static void add_finding(struct value *report, const char *name, const char *state,
			const char *format, ...) __attribute__((format(printf, 4, 5)));

static void add_finding(struct value *report, const char *name, const char *state,
			const char *format, ...)
{
	struct value *finding = value_new_object();
	va_list arguments;
	struct buf text;

	buf_init(&text, ERR_TEXT_MAX);
	va_start(arguments, format);
	(void)buf_addv(&text, format, arguments);
	va_end(arguments);
	value_set_text(finding, "name", name);
	value_set_text(finding, "state", state);
	value_set_str(finding, "text", buf_str(&text));
	value_append(report, finding);
	buf_fini(&text);
}

static void examine_version(const struct value *greeting, struct value *report)
{
	const char *version = value_text(value_member(greeting, "version"));
	const int number = version_of(version);

	if (number >= SOUND_VERSION)
		add_finding(report, "version", "ok", "nats-server %.40s", version);
	else
		add_finding(
			report, "version", number >= LEAST_VERSION ? "warning" : "wrong",
			"nats-server %.40s: before 2.10.23 a kill of the server may leave "
			"done tasks in the queue (a worker takes them out each minute), and "
			"`sync_interval: always` is not known; install 2.10.23 or newer%s",
			version != NULL ? version : "of an unknown version",
			number >= LEAST_VERSION ? "" : "; before 2.9 a fleet does not work");
	if (value_integer(value_member(greeting, "max_payload")) < 2 * FLEET_LINE_MAX)
		add_finding(report, "max_payload", "wrong",
			    "the server takes messages of %" PRId64
			    " bytes, and the longest line has %d: set max_payload to 1MB",
			    value_integer(value_member(greeting, "max_payload")),
			    2 * FLEET_LINE_MAX);
	else
		add_finding(report, "max_payload", "ok", "%" PRId64 " bytes",
			    value_integer(value_member(greeting, "max_payload")));
}

/* Only the system account may ask for this. */
static void examine_sync(struct fleet_queue *queue, struct value *report)
{
	auto_value struct value *answer =
		jetstream_try(queue->jetstream, "$SYS.REQ.SERVER.PING.JSZ");
	const struct value *config = value_member(value_member(answer, "data"), "config");

	if (config == NULL)
		add_finding(report, "sync_interval", "warning",
			    "the server does not tell us; unless its configuration has "
			    "`jetstream { sync_interval: always }` (2.10 and newer), a power cut "
			    "loses what came in the two minutes before. No result is lost: the "
			    "store has them, and what is missing is published again");
	else if (value_is_true(value_member(config, "sync_always")))
		add_finding(report, "sync_interval", "ok", "always");
	else
		add_finding(report, "sync_interval", "warning",
			    "not `always`: a power cut loses what came in the two minutes before; "
			    "no result is lost. Set it in `jetstream {…}` of its configuration");
}

static void examine_stream(struct fleet_queue *queue, enum stream stream,
			   struct value *report)
{
	auto_value struct value *answer = NULL;
	const struct value *config, *state;
	char name[SUBJECT_MAX];
	struct err err;

	(void)stream_name(queue, stream, name);
	if (!call_stream(queue, "STREAM.INFO", stream, NULL, "", &answer, &err)) {
		add_finding(report, name, "wrong", "%s", err.text);
		return;
	}
	config = value_member(answer, "config");
	state = value_member(answer, "state");
	if ((stream == TASKS || stream == PERMITS) &&
	    (!value_is_true(value_member(config, "discard_new_per_subject")) ||
	     value_integer(value_member(config, "max_msgs_per_subject")) != 1 ||
	     !str_is(value_str(value_member(config, "retention")), "workqueue")))
		add_finding(report, name, "wrong",
			    "somebody made this stream in another way, and a task may be queued "
			    "twice: `nats stream rm %s`, then `glovebox fleet doctor` once more",
			    name);
	else
		add_finding(report, name, "ok",
			    "%" PRId64 " messages, %" PRId64 " bytes, %" PRId64 " replicas",
			    value_integer(value_member(state, "messages")),
			    value_integer(value_member(state, "bytes")),
			    value_integer(value_member(config, "num_replicas")));
}

bool fleet_queue_examine(struct fleet_queue *queue, struct value **report, struct err *err)
{
	auto_value struct value *greeting = NULL;
	struct value *findings;
	struct err why;

	if (!fleet_queue_connected(queue))
		return err_set(err, ENOTCONN, "%s: there is no connection",
			       jetstream_shown(queue->jetstream));
	findings = value_new_array();
	if (jetstream_greeting(queue->jetstream, &greeting, &why)) {
		examine_version(greeting, findings);
		if (value_text(value_member(greeting, "cluster")) == NULL)
			add_finding(findings, "replicas", "warning",
				    "one server: when it is away nothing new begins, and when its "
				    "disk is lost the queue is made again from the store. For more "
				    "than one machine: a cluster of three, and `replicas: 3`");
	} else {
		add_finding(findings, "version", "warning", "%s", why.text);
	}
	examine_sync(queue, findings);
	for (enum stream i = 0; i < STREAMS; i++)
		examine_stream(queue, i, findings);
	*report = findings;
	return true;
}

/* The subjects of the interface that STREAM needs, as items of a list. */
static void add_interface(const struct fleet_queue *queue, struct buf *buf)
{
	char name[SUBJECT_MAX];

	for (enum stream i = 0; i < STREAMS; i++) {
		(void)stream_name(queue, i, name);
		(void)buf_addf(buf,
			       "      \"$JS.API.STREAM.*.%s\", \"$JS.API.STREAM.MSG.*.%s\",\n"
			       "      \"$JS.API.CONSUMER.*.%s\", \"$JS.API.CONSUMER.*.%s.>\",\n"
			       "      \"$JS.API.CONSUMER.*.*.%s.>\",\n",
			       name, name, name, name, name);
	}
}

bool fleet_queue_permissions(const char *name, struct buf *buf)
{
	struct fleet_queue queue = {0};

	if (!name_is_sound(name))
		return false;
	(void)snprintf(queue.name, sizeof(queue.name), "%s", name);
	(void)buf_addf(
		buf,
		"# nats-server: the two users of the fleet \"%s\". Put a public nkey (nk -gen user\n"
		"# -pubout) in place of each U…\n"
		"jetstream { store_dir: \"/var/lib/nats\", sync_interval: always }\n"
		"authorization {\n"
		"  SUBMITTER = {\n"
		"    publish = [\"gb.%s.>\", \"$KV.GB_%s_STATE.>\", \"$JS.API.INFO\",\n",
		name, name, name);
	add_interface(&queue, buf);
	(void)buf_addf(buf,
		       "    ]\n"
		       "    subscribe = [\"_INBOX.>\"]\n"
		       "  }\n"
		       "  WORKER = {\n"
		       "    publish = [\"gb.%s.>\", \"$JS.API.INFO\", \"$JS.ACK.>\", \"$KV.GB_%s_STATE.>\",\n"
		       "      \"$KV.GB_%s_WORKERS.>\", \"$KV.GB_%s_LEAD.>\",\n",
		       name, name, name, name);
	add_interface(&queue, buf);
	return buf_addf(buf, "    ]\n"
			     "    subscribe = [\"_INBOX.>\"]\n"
			     "  }\n"
			     "  users = [\n"
			     "    { nkey: U…, permissions: $SUBMITTER }\n"
			     "    { nkey: U…, permissions: $WORKER }\n"
			     "  ]\n"
			     "}\n");
}
