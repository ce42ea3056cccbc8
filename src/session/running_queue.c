/*
 * running_queue: chooses the next call, by counts and not by walks through the list,
 * because calls come by the hundred.
 */
#include "base/clock.h"
#include "session/session.h"
#include "session/session_undo.h"

#include <sys/resource.h>

enum {
	/* more of them at the same time only queue on the disk */
	FILE_CALLS_PER_CORE = 2,
	/*
	 * A search takes all cores that it finds. The other workers serve calls that only
	 * want a file.
	 */
	SEARCHES_PER_CORE = 1,
	/*
	 * The worker of a command holds two; two more are left for everything else that
	 * is open.
	 */
	DESCRIPTORS_PER_COMMAND = 4,
};

size_t running_commands_most(void)
{
	struct rlimit files;
	size_t most = 1;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > DESCRIPTORS_PER_COMMAND)
		most = (size_t)files.rlim_cur / DESCRIPTORS_PER_COMMAND;
	return most;
}

bool running_is_file_call(const struct running *running)
{
	return (running->tool->effects & EFFECT_RUNS) == 0;
}

bool running_is_ours(const struct tool *tool)
{
	return tool == NULL || (tool->internal && !tool->is_step);
}

bool running_is_command(const struct running *running)
{
	return !running_is_ours(running->tool) &&
	       (running->tool->effects & EFFECT_RUNS) != 0;
}

bool running_is_writer(const struct running *running)
{
	return !running_is_ours(running->tool) &&
	       (running->tool->effects & (EFFECT_WRITES | EFFECT_RUNS)) != 0;
}

/* Add MORE (1, or -1 as size_t) to the counts of calls like RUNNING in its state. */
static void count(const struct running *running, size_t more)
{
	struct session *session = running->session;

	if (running->state == RUNNING_NEW || running->state == RUNNING_AHEAD ||
	    running->state == RUNNING_DONE)
		return;
	const bool searches = running->tool->searches;
	if (running->state == RUNNING_QUEUED && running_is_command(running))
		session->queued_commands += more;
	else if (running->state == RUNNING_BUSY && running_is_writer(running))
		session->busy_writers += more;
	if (running->state == RUNNING_QUEUED && searches)
		session->queued_searches += more;
	else if (running->state == RUNNING_BUSY && searches)
		session->busy_searches += more;
	if (running->state == RUNNING_QUEUED && running_is_file_call(running))
		session->queued_files += more;
	else if (running->state == RUNNING_QUEUED)
		session->queued_others += more;
	else if (running_is_file_call(running))
		session->busy_files += more;
	else if (running->job == NULL) /* a job that waits holds up no other call */
		session->busy_others += more;
}

static struct running *queued_from(struct running *running)
{
	while (running != NULL && running->state != RUNNING_QUEUED)
		running = running->next;
	return running;
}

void running_set_state(struct running *running, enum running_state state)
{
	struct session *session = running->session;

	count(running, (size_t)-1);
	running->state = state;
	count(running, 1);
	/* The list is in the order of numbers. */
	if (state == RUNNING_QUEUED && (session->first_queued == NULL ||
					running->number < session->first_queued->number))
		session->first_queued = running;
	else if (running == session->first_queued)
		session->first_queued = queued_from(running);
}

bool running_is_alone(const struct running *running)
{
	const struct session *session = running->session;
	size_t under_way = session->queued_files + session->queued_others +
			   session->busy_files + session->busy_others;

	return under_way == (running->state != RUNNING_NEW) && session->cores > 1;
}

static size_t room_beside(size_t busy, size_t most)
{
	return busy < most ? most - busy : 0;
}

static size_t smaller(size_t one, size_t other)
{
	return one < other ? one : other;
}

size_t running_room(const struct session *session, bool searches)
{
	const size_t room =
		room_beside(session->busy_files, session->cores * FILE_CALLS_PER_CORE);

	return searches ? smaller(room, room_beside(session->busy_searches,
						    session->cores * SEARCHES_PER_CORE))
			: room;
}

size_t running_queued(const struct session *session, bool searches)
{
	return searches ? session->queued_searches
			: session->queued_files - session->queued_searches;
}

void running_stay(struct session *session, int64_t us)
{
	if (session->cores > 2 || !cell_is_making(session->cell))
		loop_stay(session->loop, clock_now_us() + us);
}

struct running *running_next_queued(const struct session *session, size_t *waiting)
{
	const size_t room = running_room(session, false);
	const size_t searching = running_room(session, true);
	const size_t others = room_beside(session->busy_others, session->commands_most);
	struct running *at = session->first_queued;

	*waiting = smaller(others, session->queued_others) +
		   smaller(room, running_queued(session, false) +
					 smaller(searching, running_queued(session, true)));
	/*
	 * Nothing is queued except calls for which there is no room; do not walk through
	 * hundreds of them.
	 */
	if (*waiting == 0)
		return NULL;
	for (; at != NULL; at = queued_from(at->next)) {
		const size_t its_room = !running_is_file_call(at) ? others
					: at->tool->searches      ? searching
								  : room;

		if (its_room > 0 && !keeper_holds(session->keeper, at))
			break;
	}
	return at;
}
