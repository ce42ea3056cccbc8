/* room: see room.h. */
#include "room.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool room_make(struct room *room)
{
	(void)snprintf(room->folder, sizeof(room->folder), "/tmp/session-test-XXXXXX");
	return mkdtemp(room->folder) != NULL;
}

bool room_open(struct room *room, struct session_options options)
{
	struct err err = {0};

	options.workspace = room->folder;
	if (session_open(&options, &room->session, &err))
		return true;
	(void)fprintf(stderr, "%s\n", err.text);
	return false;
}

void room_close(struct room *room)
{
	session_close(room->session);
	(void)rmdir(room->folder);
}

void room_call(const struct room *room, const char *tool, const char *arguments,
	       struct tool_result *result)
{
	const struct request request = {.tool = tool, .arguments_text = str_of(arguments)};

	session_call(room->session, &request, result);
}

const struct tool_result *room_finish(const struct room *room, struct running *running)
{
	while (!running_is_done(running))
		loop_turn(session_loop(room->session), CLOCK_NEVER);
	return running_result(running);
}
