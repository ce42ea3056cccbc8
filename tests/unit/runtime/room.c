/* room: see room.h. */
#include "room.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool room_make(struct room *room)
{
	(void)snprintf(room->folder, sizeof(room->folder), "/tmp/session-test-XXXXXX");
	room->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return room->cancel_fd >= 0 && mkdtemp(room->folder) != NULL;
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

bool room_open(struct room *room, struct session_options options)
{
	struct err err = {0};

	options.workspace = room->folder;
	options.cancel_fd = room->cancel_fd;
	if (session_open(&options, &room->session, &err))
		return true;
	(void)fprintf(stderr, "%s\n", err.text);
	return false;
}

void room_close(struct room *room)
{
	session_close(room->session);
	fd_close(&room->cancel_fd);
	(void)rmdir(room->folder);
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
