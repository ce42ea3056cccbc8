/*
 * manage_schedule: plans tasks for later, when no person is there. A schedule reaches
 * beyond this session, so it runs only after a person has approved its exact content:
 * immediately where a person can be asked (session/approval.h), else by `glovebox
 * schedule approve`.
 */

#include "agent/tools/orchestra.h"
#include "agent/when.h"
#include "base/clock.h"

#include <inttypes.h>
#include <string.h>

static const struct row manage_schedule_params[] = {
	{"action", ROW_CHOICE, true,
	 "list them; create one (add does the same); remove, disable or enable the one of `id`; "
	 "next: say when `when` would run, and write nothing down",
	 .choices = "list create add remove enable disable next"},
	{"agent", ROW_TEXT, false, "For create: who is to do it", .max = SCHEDULES_NAME_MAX},
	{"task", ROW_TEXT, false, "For create: what is to be done, as one would ask for it",
	 .aliases = "prompt", .max = SCHEDULES_TASK_MAX},
	{"when", ROW_TEXT, false,
	 "For create and next: the five fields of cron (\"0 9 * * 1-5\"), or systemd's "
	 "OnCalendar (\"Mon..Fri 09:00\")",
	 .max = WHEN_TEXT_MAX},
	{"zone", ROW_TEXT, false,
	 "Time zone of `when`, as Europe/Berlin; the machine's unless told",
	 .max = WHEN_ZONE_MAX},
	{"id", ROW_ID, false, "For remove, enable, disable: its number", .min = 1,
	 .max = INT32_MAX},
	{0},
};

static bool creates(const char *action)
{
	return strcmp(action, "create") == 0 || strcmp(action, "add") == 0;
}

struct listing {
	struct buf *text;
	struct value *schedules;
	int64_t now_s;
};

static bool add_one(void *context, const struct schedule *schedule)
{
	struct listing *listing = context;
	struct value *row = value_new_object();
	struct schedule shown;
	struct buf times;

	buf_init(&times, WHEN_TEXT_MAX);
	(void)when_schedule_renew(schedule, &times, &shown);
	value_set_integer(row, "id", schedule->id);
	value_set_text(row, "state", schedule_state_name(schedule->state));
	value_set_str(row, "agent", schedule->agent);
	value_set_str(row, "when", shown.times);
	value_set_integer(row, "next_s", schedule->next_s);
	value_set_text(row, "hash", schedule->hash);
	value_append(listing->schedules, row);
	when_schedule_add(schedule, listing->now_s, listing->text);
	buf_fini(&times);
	return true;
}

static enum result_status list(struct call *call, struct schedules *schedules,
			       struct tool_result *result)
{
	struct listing listing = {.text = &result->text,
				  .schedules = value_new_array(),
				  .now_s = clock_wall_ms() / 1000};
	struct err err;

	value_set(tool_details(result), "schedules", listing.schedules);
	if (!schedules_find(schedules, orchestra_of(call)->options.workspace, 0, add_one,
			    &listing, &err)) {
		buf_clear(&result->text);
		return tool_fail(result, "%s", err.text);
	}
	if (value_count(listing.schedules) == 0)
		(void)buf_adds(&result->text,
			       "There are no schedules for this workspace.\n");
	return tool_done(result);
}

/* Check `when`, put it into TIMES as it was written, and find the next run. */
static bool settle(struct call *call, struct buf *times, int64_t now_s, int64_t *next_s,
		   struct tool_result *result)
{
	const char *when = call_text(call, "when");
	struct err err;

	if (!when) {
		(void)tool_fail(result, "%s needs `when`, as \"0 9 * * 1-5\".",
				call_text(call, "action"));
		return false;
	}
	if (strlen(when) < call_str(call, "when").size) {
		(void)tool_fail(result, "`when` may not hold a NUL character.");
		return false;
	}
	if (when_schedule_settle(when, call_text(call, "zone"), now_s, times, next_s, &err))
		return true;
	(void)tool_fail(result, "%s.", err.text);
	return false;
}

static void say_times(struct call *call, const struct buf *times, int64_t now_s,
		      struct tool_result *result)
{
	const struct str zone = call_str(call, "zone");

	(void)buf_addf(&result->text, "when: %s%s%.*s\n", times->data,
		       zone.size > 0 ? " in " : "", (int)zone.size, zone.data);
	when_schedule_add_runs(buf_str(times), zone, now_s, now_s, &result->text);
	value_set_text(tool_details(result), "when", times->data);
}

static bool knows_agent(struct call *call, struct tool_result *result)
{
	const struct orchestra *orchestra = orchestra_of(call);
	const char *agent = call_text(call, "agent");
	struct buf names;

	if (agent && (strcmp(orchestra_role(orchestra, agent),
			     orchestra_role(orchestra, orchestra->options.agent)) == 0 ||
		      orchestra_find(orchestra, agent)))
		return true;
	buf_init(&names, 4096);
	orchestra_add_names(orchestra, &names);
	(void)tool_fail(result,
			"%s needs an `agent` that you may have work: %s, or %s itself.",
			call_text(call, "action"), names.data, orchestra->options.agent);
	buf_fini(&names);
	return false;
}

/* The schedule that CALL wants to add, without its times. */
static struct schedule wanted_of(struct call *call)
{
	const struct orchestra *orchestra = orchestra_of(call);

	return (struct schedule){
		.workspace = str_of(orchestra->options.workspace),
		.agent = call_str(call, "agent"),
		.task = call_str(call, "task"),
		.zone = call_str(call, "zone"),
		.by = str_of(orchestra->options.agent),
		.session = str_of(orchestra_session(orchestra)),
	};
}

/*
 * Is HASH the content that a person approved before this call? Then enable the schedule
 * ID, with NEXT_S as its next run.
 */
static bool approve(const struct call *call, struct schedules *schedules, int64_t id,
		    const char hash[HASH_HEX + 1], int64_t next_s,
		    struct tool_result *result)
{
	if (!call->approved || strcmp(call->approved, hash) != 0 ||
	    !schedules_approve(schedules, id, hash, next_s, NULL))
		return false;
	(void)buf_addf(&result->text,
		       "The person has approved schedule %" PRId64
		       " (content %.*s): it runs by itself from now on.\n",
		       id, HASH_SHOWN, hash);
	return true;
}

static enum result_status add(struct call *call, struct schedules *schedules,
			      struct tool_result *result)
{
	const int64_t now_s = clock_wall_ms() / 1000;
	struct schedule wanted = wanted_of(call);
	char hash[HASH_HEX + 1];
	struct buf times;
	struct err err;
	int64_t id;

	if (!knows_agent(call, result))
		return result->status;
	buf_init(&times, WHEN_TEXT_MAX * 4);
	if (!settle(call, &times, now_s, &wanted.next_s, result)) {
		buf_fini(&times);
		return result->status;
	}
	wanted.times = buf_str(&times);
	if (!schedules_add(schedules, &wanted, &id, hash, &err)) {
		buf_fini(&times);
		return tool_fail(result, "Not added: %s.", err.text);
	}
	const bool active = approve(call, schedules, id, hash, wanted.next_s, result);
	if (!active)
		(void)buf_addf(&result->text,
			       "Schedule %" PRId64
			       " is written down, and waits: nothing runs before the "
			       "person has approved it by `glovebox schedule approve %" PRId64
			       "` (content "
			       "%.*s). Tell them so.\n",
			       id, id, HASH_SHOWN, hash);
	say_times(call, &times, now_s, result);
	buf_fini(&times);
	value_set_integer(tool_details(result), "id", id);
	value_set_text(tool_details(result), "hash", hash);
	value_set_text(tool_details(result), "state",
		       schedule_state_name(active ? SCHEDULE_ACTIVE : SCHEDULE_PENDING));
	return tool_done(result);
}

/* Append all texts of SCHEDULE, unchanged. The code that shows them escapes them. */
static void add_content(const struct schedule *schedule, const char *hash, struct buf *out)
{
	const int64_t now_s = clock_wall_ms() / 1000;

	(void)buf_adds(out, "agent: ");
	(void)buf_addstr(out, schedule->agent);
	(void)buf_adds(out, "\nworkspace: ");
	(void)buf_addstr(out, schedule->workspace);
	(void)buf_adds(out, "\nwhen: ");
	(void)buf_addstr(out, schedule->times);
	if (schedule->zone.size > 0) {
		(void)buf_adds(out, " in ");
		(void)buf_addstr(out, schedule->zone);
	}
	(void)buf_addc(out, '\n');
	when_schedule_add_runs(schedule->times, schedule->zone, now_s, now_s, out);
	(void)buf_addf(out, "content: %s\ntask:\n", hash);
	(void)buf_addstr(out, schedule->task);
}

/* Is `id` a schedule of this workspace that an agent asked for? */
struct ownership {
	const char *workspace;
	struct buf *subject; /* gets the schedule's content; or NULL */
	bool is_there, is_agents, waits;
	int64_t next_s;
	char hash[HASH_HEX + 1];
};

static bool look(void *context, const struct schedule *schedule)
{
	struct ownership *ownership = context;

	ownership->is_there = str_is(schedule->workspace, ownership->workspace);
	ownership->is_agents = schedule->by.size > 0;
	ownership->waits = schedule->state != SCHEDULE_ACTIVE;
	ownership->next_s = when_schedule_next(schedule->times, schedule->zone,
					       schedule->made_s, clock_wall_ms() / 1000);
	memcpy(ownership->hash, schedule->hash, sizeof(ownership->hash));
	if (ownership->subject)
		add_content(schedule, schedule->hash, ownership->subject);
	return false;
}

static bool enable_asks(struct call *call, struct buf *subject, char hash[HASH_HEX + 1])
{
	struct ownership owned = {.workspace = orchestra_of(call)->options.workspace,
				  .subject = subject};
	const int64_t id = call_count(call, "id", 0);
	struct schedules *schedules = NULL;
	struct err err;
	bool asks;

	asks = id > 0 && when_open_default(&schedules, &err) &&
	       schedules_find(schedules, NULL, id, look, &owned, &err) &&
	       owned.is_there && owned.is_agents && owned.waits;
	schedules_close(schedules);
	memcpy(hash, owned.hash, sizeof(owned.hash));
	return asks;
}

static bool add_asks(struct call *call, struct buf *subject, char hash[HASH_HEX + 1])
{
	const char *when = call_text(call, "when"), *zone = call_text(call, "zone");
	struct schedule wanted = wanted_of(call);
	struct schedules *schedules = NULL;
	struct tool_result unused;
	struct buf times;
	struct err err;
	bool asks;

	tool_result_init(&unused);
	buf_init(&times, WHEN_TEXT_MAX * 4);
	asks = when && wanted.task.size > 0 && knows_agent(call, &unused) &&
	       when_schedule_settle(when, zone, clock_wall_ms() / 1000, &times,
				    &wanted.next_s, &err);
	wanted.times = buf_str(&times);
	/* Do not ask the person for a schedule that would be refused afterwards. */
	asks = asks && when_open_default(&schedules, &err) &&
	       schedules_may_add(schedules, &wanted, hash, &err);
	if (asks)
		add_content(&wanted, hash, subject);
	schedules_close(schedules);
	buf_fini(&times);
	tool_result_fini(&unused);
	return asks;
}

/*
 * When a person can be asked, ask immediately for the approval. Otherwise the schedule
 * stays pending.
 */
static bool manage_schedule_asks(struct call *call, struct buf *subject,
				 char hash[HASH_HEX + 1])
{
	const char *action = call_text(call, "action");

	if (creates(action))
		return add_asks(call, subject, hash);
	return strcmp(action, "enable") == 0 && enable_asks(call, subject, hash);
}

static enum result_status change(struct call *call, struct schedules *schedules,
				 struct tool_result *result)
{
	struct ownership owned = {.workspace = orchestra_of(call)->options.workspace};
	const char *action = call_text(call, "action");
	const int64_t id = call_count(call, "id", 0);
	struct err err = {0};
	bool ok;

	if (id == 0)
		return tool_fail(result, "%s needs the `id`, as list shows it.", action);
	if (!schedules_find(schedules, NULL, id, look, &owned, &err))
		return tool_fail(result, "%s", err.text);
	if (!owned.is_there)
		return tool_fail(result,
				 "There is no schedule %" PRId64 " for this workspace.",
				 id);
	if (!owned.is_agents)
		return tool_fail(result,
				 "Schedule %" PRId64 " is the person's own: they change it by "
				 "`glovebox schedule`.",
				 id);
	if (strcmp(action, "remove") == 0)
		ok = schedules_remove(schedules, id, &err);
	else
		ok = schedules_set_state(schedules, id,
					 strcmp(action, "enable") == 0 ? SCHEDULE_PENDING
								       : SCHEDULE_DISABLED,
					 0, &err);
	if (!ok)
		return tool_fail(result, "%s", err.text);
	if (strcmp(action, "enable") == 0 &&
	    approve(call, schedules, id, owned.hash, owned.next_s, result))
		return tool_done(result);
	if (strcmp(action, "enable") == 0)
		(void)buf_addf(&result->text,
			       "Schedule %" PRId64 " waits for the person: `glovebox schedule "
			       "approve %" PRId64 "`.\n",
			       id, id);
	else
		(void)buf_addf(&result->text, "Schedule %" PRId64 " is %sd.\n", id, action);
	return tool_done(result);
}

static enum result_status next(struct call *call, struct tool_result *result)
{
	const int64_t now_s = clock_wall_ms() / 1000;
	struct buf times;
	int64_t next_s;

	buf_init(&times, WHEN_TEXT_MAX * 4);
	if (settle(call, &times, now_s, &next_s, result)) {
		say_times(call, &times, now_s, result);
		(void)tool_done(result);
	}
	buf_fini(&times);
	return result->status;
}

static enum result_status manage_schedule_execute(struct call *call,
						  struct tool_result *result)
{
	const char *action = call_text(call, "action");
	struct schedules *schedules = NULL;
	enum result_status status;
	struct err err;

	if (strcmp(action, "next") == 0)
		return next(call, result);
	if (!when_open_default(&schedules, &err))
		return tool_fail(result, "%s", err.text);
	if (strcmp(action, "list") == 0)
		status = list(call, schedules, result);
	else if (creates(action))
		status = add(call, schedules, result);
	else
		status = change(call, schedules, result);
	schedules_close(schedules);
	return status;
}

static const struct tool_leave schedule_leave = {
	.effect = "schedule",
	.wish = "have this done by itself, without anybody there",
	.because = "Not written down: nothing runs by itself before the person has approved "
		   "exactly that.",
	.rule = "glovebox schedule approve",
	.scope = "exactly this schedule, as long as it is there",
	.asks = manage_schedule_asks,
};

const struct tool manage_schedule_tool = {
	.name = "manage_schedule",
	.description =
		"Schedules: which agent is to do what, and when, in this workspace. What is "
		"added waits until the person approves it.",
	.example = "{\"action\": \"create\", \"agent\": \"reviewer\", \"task\": \"Review what was "
		   "changed since yesterday.\", \"when\": \"Mon..Fri 09:00\"}",
	.params = manage_schedule_params,
	.where = IN_FRONT,
	.when_named = true,
	.keeps = true,
	.timeout_s = 10,
	.leave = &schedule_leave,
	.execute = manage_schedule_execute,
};
