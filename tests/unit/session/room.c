/* room: see room.h. */
#include "room.h"
#include "../base/tree.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool room_make(struct room *room)
{
	(void)snprintf(room->folder, sizeof(room->folder), "/tmp/session-test-XXXXXX");
	room->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	buf_init(&room->events, 1 << 16);
	return room->cancel_fd >= 0 && mkdtemp(room->folder) != NULL;
}

struct room *room_new(void)
{
	struct room *room = memory_alloc(sizeof(*room));

	if (room_make(room))
		return room;
	free(room);
	return NULL;
}

int room_end(void **state)
{
	room_close(*state);
	free(*state);
	return 0;
}

struct policy *room_policy(const char *folder)
{
	struct policy *policy = policy_new("test", folder);

	policy->write.items = memory_array(1, sizeof(struct policy_path));
	policy->write.items[0].text = memory_copy(".");
	policy->write.count = 1;
	policy->write.given = true;
	return policy;
}

static bool note_event(void *context, const struct event *event, struct err *err)
{
	struct room *room = context;

	(void)buf_addf(&room->events, "%s ", event_kind_name(event->kind));
	if (room->refuses && event->kind == EVENT_TOOL_BEGAN)
		return err_set(err, ENOSPC, "no room");
	return true;
}

bool room_open(struct room *room, struct session_options options)
{
	struct err err = {0};

	options.workspace = room->folder;
	options.cancel_fd = room->cancel_fd;
	if (options.sink.event == NULL)
		options.sink = (struct event_sink){note_event, room};
	if (session_open(&options, &room->session, &err))
		return true;
	(void)fprintf(stderr, "%s\n", err.text);
	return false;
}

void room_close(struct room *room)
{
	session_close(room->session);
	fd_close(&room->cancel_fd);
	buf_fini(&room->events);
	tree_remove(room->folder);
}

void room_call(const struct room *room, const char *tool, const char *arguments,
	       struct tool_result *result)
{
	const struct request request = {.tool = tool, .arguments_text = str_of(arguments)};

	session_call(room->session, &request, result);
}

void room_cancel(const struct room *room)
{
	const uint64_t one = 1;

	assert(write(room->cancel_fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

const struct tool_result *room_finish(const struct room *room, struct running *running)
{
	while (!running_is_done(running))
		loop_turn(session_loop(room->session), CLOCK_NEVER);
	return running_result(running);
}
