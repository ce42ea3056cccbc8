/* work: keeps the delegates and the tasks, and prints them. */

#include "tui/region/work.h"

#include "agent/tools/todo.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "tui/paint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	PART_COLUMNS = 24, /* of a task, and of what an agent does */
	PART_MAX = 1 << 10,
	THOUSAND = 1000,
};

static void agent_free(struct work_agent *agent)
{
	free(agent->session);
	free(agent->call);
	free(agent->name);
	free(agent->task);
	free(agent->does);
	free(agent);
}

static void end_all_agents(struct work *work)
{
	while (work->agents != NULL) {
		struct work_agent *agent = work->agents;

		work->agents = agent->next;
		agent_free(agent);
	}
}

void work_fini(struct work *work)
{
	end_all_agents(work);
	value_free(work->tasks);
	*work = (struct work){0};
}

/* The agents whose session, or else whose call, is ID have ended. */
static void end_agents(struct work *work, const char *session, const char *call)
{
	struct work_agent **at = &work->agents;

	while (*at != NULL) {
		struct work_agent *agent = *at;

		if ((session != NULL && strcmp(agent->session, session) == 0) ||
		    (call != NULL && strcmp(agent->call, call) == 0)) {
			*at = agent->next;
			agent_free(agent);
		} else {
			at = &agent->next;
		}
	}
}

/* The agent of SESSION, which works for CALL; it is made when it is new. */
static struct work_agent *agent_of(struct work *work, const char *session, const char *call,
				   const struct value *data, int64_t now_ms)
{
	struct work_agent **at = &work->agents;
	const char *name = value_text(value_member(data, "agent"));

	while (*at != NULL && strcmp((*at)->session, session) != 0)
		at = &(*at)->next;
	if (*at == NULL) {
		*at = memory_alloc(sizeof(**at));
		(*at)->session = memory_copy(session);
		(*at)->call = memory_copy(call);
		(*at)->name = memory_copy(name != NULL ? name : "agent");
		(*at)->began_ms = now_ms;
	}
	return *at;
}

static void set_text(char **place, struct str text)
{
	struct str line = {0};

	text = str_trim(text);
	(void)str_next_line(&text, &line);
	free(*place);
	*place = memory_copy_str(str_part(line, 0, text_character_border(line, PART_MAX)));
}

/* AGENT makes the call that EVENT begins. */
static void note_call(struct work_agent *agent, const struct value *event)
{
	const char *tool = value_text(value_member(event, "tool"));
	struct paint subject;

	paint_init(&subject);
	(void)buf_addf(&subject.out, "%s ", tool != NULL ? tool : "");
	paint_subject(&subject, value_member(event, "arguments"), PART_COLUMNS);
	set_text(&agent->does, buf_str(&subject.out));
	paint_fini(&subject);
}

/* An event of a delegate, DATA being that of EVENT_CHILD. */
static void take_child(struct work *work, const char *call, const struct value *data,
		       int64_t now_ms)
{
	const struct value *event = value_member(data, "event_of");
	const struct value *usage = value_member(event, "usage");
	const char *session = value_text(value_member(data, "session"));
	const char *name = value_text(value_member(event, "event"));
	struct work_agent *agent;
	enum event_kind kind;

	if (session == NULL || call == NULL || name == NULL ||
	    !event_kind_parse(name, &kind))
		return;
	if (kind == EVENT_TURN_ENDED) {
		end_agents(work, session, NULL);
		return;
	}
	/* An event behind the end of its turn begins no row again. */
	if (kind == EVENT_LANDED)
		return;
	agent = agent_of(work, session, call, data, now_ms);
	if (kind == EVENT_TURN_BEGAN)
		set_text(&agent->task, value_str(value_member(event, "text")));
	else if (kind == EVENT_TOOL_BEGAN)
		note_call(agent, event);
	else if (kind == EVENT_TOOL_ENDED)
		set_text(&agent->does, STR("asks its model"));
	else if (kind == EVENT_MESSAGE)
		agent->tokens += (uint64_t)value_integer(value_member(usage, "input")) +
				 (uint64_t)value_integer(value_member(usage, "output"));
}

void work_event(struct work *work, const struct event *event, int64_t now_ms)
{
	const struct value *tasks =
		value_member(value_member(event->data, "details"), "todo");

	if (event->kind == EVENT_CHILD)
		take_child(work, event->call, event->data, now_ms);
	else if (event->kind == EVENT_TOOL_ENDED && event->call != NULL)
		end_agents(work, NULL, event->call);
	else if (event->kind == EVENT_TURN_ENDED)
		end_all_agents(work);
	if (event->kind == EVENT_TOOL_ENDED && tasks != NULL) {
		value_free(work->tasks);
		work->tasks = value_copy(tasks);
	}
}

/* Append TEXT, which is foreign, in at most COLUMNS. */
static void add_part(const char *dot, const char *text, struct buf *rows)
{
	struct paint part;

	if (text == NULL || text[0] == '\0')
		return;
	paint_init(&part);
	paint_one_line(&part, PAINT_PLAIN, str_of(text), PART_COLUMNS);
	(void)buf_addf(rows, "%s%s", dot, part.out.data);
	paint_fini(&part);
}

static void print_agent(const struct work_agent *agent, int64_t now_ms, const char *dot,
			struct buf *rows)
{
	add_part("", agent->name, rows);
	add_part(": ", agent->task, rows);
	(void)buf_addf(rows, "%s%" PRId64 " s", dot, (now_ms - agent->began_ms) / THOUSAND);
	if (agent->tokens >= THOUSAND)
		(void)buf_addf(rows, "%s%.1fk tokens", dot,
			       (double)agent->tokens / THOUSAND);
	else if (agent->tokens > 0)
		(void)buf_addf(rows, "%s%" PRIu64 " tokens", dot, agent->tokens);
	add_part(dot, agent->does, rows);
	(void)buf_addc(rows, '\n');
}

static bool is_in(const struct value *task, const char *state)
{
	return str_is(value_str(value_member(task, "state")), state);
}

/* A row for each task; of many, for those around the first one that is not done. */
static void print_each_task(const struct value *tasks, struct buf *rows)
{
	const size_t count = value_count(tasks);
	size_t at = 0, first;
	struct str rest, row;
	struct buf all;

	while (at < count && is_in(value_item(tasks, at), "done"))
		at++;
	first = at > WORK_TASKS_MAX / 2 ? at - WORK_TASKS_MAX / 2 : 0;
	if (count > WORK_TASKS_MAX && first > count - WORK_TASKS_MAX)
		first = count - WORK_TASKS_MAX;
	if (count <= WORK_TASKS_MAX)
		first = 0;
	buf_init(&all, PAINT_MAX);
	todo_print(tasks, &all);
	rest = buf_str(&all);
	for (size_t i = 0; str_next_line(&rest, &row) && i < first + WORK_TASKS_MAX; i++) {
		if (i < first)
			continue;
		(void)buf_adds(rows, "  ");
		paint_clean(row, rows);
		(void)buf_addc(rows, '\n');
	}
	buf_fini(&all);
}

/* "tasks: 2 of 5 · now: write the test"; nothing when all are done. */
static void print_tasks(const struct value *tasks, bool all, const char *dot,
			struct buf *rows)
{
	const size_t count = value_count(tasks);
	const char *now = NULL;
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		const struct value *task = value_item(tasks, i);

		done += is_in(task, "done");
		if (is_in(task, "active"))
			now = value_text(value_member(task, "text"));
	}
	if (count == 0 || (done == count && !all))
		return;
	(void)buf_addf(rows, "tasks: %zu of %zu", done, count);
	if (now != NULL && !all) {
		(void)buf_adds(rows, dot);
		add_part("now: ", now, rows);
	}
	(void)buf_addc(rows, '\n');
	if (all)
		print_each_task(tasks, rows);
}

const struct work_agent *work_find(const struct work *work, struct str name)
{
	const struct work_agent *at = work->agents;

	while (at != NULL && !str_is(name, at->name))
		at = at->next;
	return at;
}

void work_print_agents(const struct work *work, int64_t now_ms, bool unicode,
		       struct buf *rows)
{
	const char *dot = unicode ? " · " : " - ";
	size_t count = 0;

	for (const struct work_agent *at = work->agents; at != NULL; at = at->next) {
		if (count++ < WORK_AGENTS_MAX)
			print_agent(at, now_ms, dot, rows);
	}
	if (count > WORK_AGENTS_MAX)
		(void)buf_addf(rows, "and %zu more agents\n", count - WORK_AGENTS_MAX);
}

void work_print(const struct work *work, int64_t now_ms, bool unicode, struct buf *rows)
{
	work_print_agents(work, now_ms, unicode, rows);
	print_tasks(work->tasks, work->all_tasks, unicode ? " · " : " - ", rows);
}
