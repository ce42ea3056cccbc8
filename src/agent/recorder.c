/* recorder: number, journal, listener, front, in this order. */
#include "agent/recorder.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct recorder {
	struct journal *journal;
	struct event_sink front, listener;
	char session[JOURNAL_ID + 1];
	int64_t last_number;
	struct buf json;
	bool failed;
	struct err why;
};

struct recorder *recorder_new(struct journal *journal, struct event_sink front)
{
	struct recorder *recorder = memory_alloc(sizeof(*recorder));

	recorder->journal = journal;
	recorder->front = front;
	buf_init(&recorder->json, EVENT_JSON_MAX);
	return recorder;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	buf_fini(&recorder->json);
	free(recorder);
}

void recorder_set_journal(struct recorder *recorder, struct journal *journal)
{
	recorder->journal = journal;
}

struct journal *recorder_journal(const struct recorder *recorder)
{
	return recorder ? recorder->journal : NULL;
}

static bool recorder_take(void *context, const struct event *event, struct err *err)
{
	struct event numbered = *event;

	return recorder_event(context, &numbered, err);
}

struct event_sink recorder_sink(struct recorder *recorder)
{
	return (struct event_sink){.event = recorder_take, .context = recorder};
}

void recorder_set_listener(struct recorder *recorder, struct event_sink listener)
{
	recorder->listener = listener;
}

bool recorder_begin(struct recorder *recorder, const char *workspace, const char *agent,
		    const char *model, struct err *err)
{
	if (!recorder->journal)
		return true;
	return journal_new_session(recorder->journal, workspace, agent, model,
				   recorder->session, err);
}

struct retelling {
	bool (*line)(void *context, const char *kind, struct str json, struct err *err);
	void *context;
	int64_t last_number;
	bool refused;
	struct err *err;
};

static bool recorder_read(void *context, int64_t number, const char *kind,
			  int64_t wall_ms, struct str json)
{
	struct retelling *reading = context;

	(void)wall_ms;
	reading->last_number = number;
	reading->refused = !reading->line(reading->context, kind, json, reading->err);
	return !reading->refused;
}

bool recorder_resume(struct recorder *recorder, const char *session,
		     bool (*line)(void *context, const char *kind, struct str json,
				  struct err *err),
		     void *context, struct err *err)
{
	struct retelling reading = {.line = line, .context = context, .err = err};

	if (!recorder->journal)
		return err_set(err, ENOENT, "there is no journal to go on from");
	if (!journal_claim(recorder->journal, session, err) ||
	    !journal_read(recorder->journal, session, recorder_read, &reading, err) ||
	    reading.refused)
		return err_while(err, "resuming session %.40s", session);
	(void)snprintf(recorder->session, sizeof(recorder->session), "%s", session);
	recorder->last_number = reading.last_number;
	return true;
}

const char *recorder_session_id(const struct recorder *recorder)
{
	return recorder->session;
}

bool recorder_failed(const struct recorder *recorder, struct err *err)
{
	if (recorder->failed)
		(void)err_set(err, recorder->why.code, "%s", recorder->why.text);
	return recorder->failed;
}

static bool recorder_keep(struct recorder *recorder, const struct event *event,
			  struct err *err)
{
	if (!recorder->session[0])
		return true;
	buf_clear(&recorder->json);
	if (!event_print(event, &recorder->json))
		return err_set(err, 0, "event %lld (%s) is too large to be recorded",
			       (long long)event->number, event_kind_name(event->kind));
	return journal_append(recorder->journal, recorder->session, event->number,
			      event_kind_name(event->kind), event->wall_ms,
			      buf_str(&recorder->json), err);
}

static void recorder_pass(struct event_sink sink, const struct event *event)
{
	if (sink.event)
		(void)sink.event(sink.context, event, NULL);
}

bool recorder_event(struct recorder *recorder, struct event *event, struct err *err)
{
	bool kept = event_is_kept(event->kind);

	event->wall_ms = clock_wall_ms();
	event->number = 0;
	if (kept) {
		if (recorder_failed(recorder, err))
			return false;
		event->number = recorder->last_number + 1;
		if (!recorder_keep(recorder, event, &recorder->why)) {
			(void)err_while(&recorder->why, "recording the session");
			recorder->failed = true;
			(void)recorder_failed(recorder, err);
			return false;
		}
		recorder->last_number = event->number;
		recorder_pass(recorder->listener, event);
	}
	recorder_pass(recorder->front, event);
	return true;
}
