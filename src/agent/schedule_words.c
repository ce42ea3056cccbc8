/* schedule_words: one text for a terminal, a pipe and a model. */
#include "agent/schedule_words.h"

#include "agent/when.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "store/database.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { RUNS_SHOWN = 3 };

bool schedules_open_default(struct schedules **schedules, struct err *err)
{
	struct buf path;
	bool opened;

	buf_init(&path, PATH_MAX);
	opened = state_path("schedules.db", &path, err) &&
		 schedules_open(path.data, schedules, err);
	buf_fini(&path);
	return opened;
}

int64_t schedule_next(struct str times, struct str zone, int64_t began_s, int64_t now_s)
{
	auto_free char *name = zone.size > 0 ? memory_copy_str(zone) : NULL;
	struct when when;
	int64_t next_s = 0;

	if (!when_parse(times, &when, NULL) ||
	    !when_next(&when, name, began_s, now_s, &next_s))
		return 0;
	return next_s;
}

void schedule_add_runs(struct str times, struct str zone, int64_t began_s, int64_t now_s,
		       struct buf *out)
{
	auto_free char *name = zone.size > 0 ? memory_copy_str(zone) : NULL;

	(void)buf_adds(out, "runs: ");
	for (int i = 0; i < RUNS_SHOWN; i++) {
		now_s = schedule_next(times, zone, began_s, now_s);
		if (now_s == 0)
			break;
		(void)buf_adds(out, i > 0 ? ", " : "");
		when_add_moment(now_s, name, out);
	}
	(void)buf_addc(out, '\n');
}

/* Lines between bars; what is not seen, or turns a line around, as \xHH. */
static void add_task(struct str task, struct buf *out)
{
	struct str line;

	while (str_next_line(&task, &line)) {
		(void)buf_adds(out, "  | ");
		text_add_name(out, line);
		(void)buf_addc(out, '\n');
	}
}

void schedule_add(const struct schedule *schedule, int64_t now_s, struct buf *out)
{
	(void)buf_addf(out, "%" PRId64 "  %s  %.*s  agent ", schedule->id,
		       schedule->state == SCHEDULE_ACTIVE && !schedule->approved
			       ? "not approved"
			       : schedule_state_name(schedule->state),
		       HASH_SHOWN, schedule->hash);
	text_add_name(out, schedule->agent);
	(void)buf_adds(out, "  in ");
	text_add_name(out, schedule->workspace);
	(void)buf_adds(out, "\n  when: ");
	text_add_name(out, schedule->times);
	if (schedule->zone.size > 0) {
		(void)buf_adds(out, " in ");
		text_add_name(out, schedule->zone);
	}
	if (schedule->by.size > 0) {
		(void)buf_adds(out, "; asked for by agent ");
		text_add_name(out, schedule->by);
		if (schedule->session.size > 0)
			(void)buf_addf(out, " in session %.*s",
				       (int)schedule->session.size, schedule->session.data);
	}
	(void)buf_adds(out, "\n  ");
	schedule_add_runs(schedule->times, schedule->zone, schedule->made_s, now_s, out);
	if (schedule->busy_until_s > now_s)
		(void)buf_adds(out, "  a run is under way\n");
	if (schedule->last_s > 0) {
		(void)buf_adds(out, "  last run: ");
		when_add_moment(schedule->last_s, NULL, out);
		if (schedule->last_outcome.size > 0) {
			(void)buf_adds(out, ": ");
			text_add_name(out, schedule->last_outcome);
		}
		if (schedule->last_session.size > 0)
			(void)buf_addf(out, " (session %.*s)",
				       (int)schedule->last_session.size,
				       schedule->last_session.data);
		(void)buf_addc(out, '\n');
	}
	add_task(schedule->task, out);
}

bool schedule_settle(const char *when, const char *zone, int64_t now_s, struct buf *times,
		     int64_t *next_s, struct err *err)
{
	struct when parsed;

	if (!when_parse(str_of(when), &parsed, err) || (zone && !when_check_zone(zone, err)))
		return false;
	if (!when_next(&parsed, zone, now_s, now_s, next_s))
		return err_set(err, EINVAL, "\"%.100s\" never comes", when);
	buf_clear(times);
	when_print(&parsed, times);
	return true;
}
