/* peer: requests to the front behind a cell. */

#include "front/cells/peer.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/value.h"
#include "front/cells/place.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "serve/caller.h"
#include "serve/engine.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

bool cells_peer_open(struct cells_peer *peer, const char *name, int64_t until,
		     struct loop *loop, struct err *err)
{
	struct value *params;

	*peer = (struct cells_peer){.name = name, .loop = loop, .fd = -1, .interrupt_fd = -1};
	peer->found.folder = -1;
	if (!cells_place_fits(name, err) ||
	    !cells_place_find(name, until, &peer->found, err))
		return false;
	if (peer->found.life == CELLS_NONE)
		return err_set(err, ENOENT,
			       "there is no cell %s; glovebox ps lists those that there are, and "
			       "glovebox start --name %s makes one",
			       name, name);
	if (peer->found.life == CELLS_GONE)
		return err_set(err, ENOENT,
			       "cell %s is gone: its front was killed, and everything in it has "
			       "ended; glovebox start --name %s makes a new one",
			       name, name);
	if (peer->found.life == CELLS_KEPT)
		return cells_place_say_kept(name, &peer->found, err);
	peer->fd = cells_place_connect(&peer->found, name, err);
	if (peer->fd < 0)
		return false;
	caller_open(&peer->caller, loop, peer->fd, peer->fd);
	params = value_new_object();
	value_set_integer(params, "version", ENGINE_VERSION);
	(void)caller_tell(&peer->caller, "hello", params, true);
	return true;
}

void cells_peer_close(struct cells_peer *peer)
{
	if (peer->fd >= 0)
		caller_close(&peer->caller);
	fd_close(&peer->fd);
	value_free(peer->answer);
	peer->answer = NULL;
	cells_place_found_fini(&peer->found);
}

int64_t cells_peer_send(struct cells_peer *peer, const char *method,
			struct value *take_params)
{
	value_set_text(take_params, "cell", peer->name);
	return caller_tell(&peer->caller, method, take_params, true);
}

static void take_messages(struct cells_peer *peer)
{
	struct mcp_message message = {0};

	while (caller_next(&peer->caller, &message)) {
		if (peer->awaited != 0 && caller_answered(&message) == peer->awaited) {
			peer->answer = value_copy(message.whole);
			peer->awaited = 0;
		} else if (message.kind == MCP_RESPONSE && message.id == NULL) {
			peer->turned_away = true;
			(void)cells_peer_refused(message.error, &peer->turned);
		} else if (peer->take != NULL) {
			peer->take(peer->context, &message);
		}
		mcp_message_fini(&message);
	}
}

void cells_peer_settle(struct cells_peer *peer)
{
	take_messages(peer);
	caller_settle(&peer->caller);
	/* Nothing wakes the loop for what a front has said before it went. */
	if (peer->caller.life == CALLER_LOST)
		take_messages(peer);
}

bool cells_peer_is_lost(const struct cells_peer *peer)
{
	return peer->caller.life == CALLER_LOST ||
	       (peer->caller.life == CALLER_ENDED && peer->caller.in.size == 0);
}

bool cells_peer_refused(const struct value *error, struct err *err)
{
	const char *text = value_text(value_member(error, "message"));
	const char *remedy =
		value_text(value_member(value_member(error, "data"), "remedy"));
	const int64_t code = value_integer(value_member(error, "code"));

	return err_set(err, code < 0 && code > INT32_MIN ? (int)code : -1, "%s%s%s",
		       text != NULL ? text : "it was refused", remedy != NULL ? "; " : "",
		       remedy != NULL ? remedy : "");
}

/* For a watch that only ends a wait. */
static void came(struct watch *watch, short events)
{
	bool *is_there = watch->context;

	(void)events;
	*is_there = true;
}

bool cells_peer_ask(struct cells_peer *peer, const char *method, struct value *take_params,
		    int limit_ms, struct value **result, struct err *err)
{
	const int64_t until = clock_now_ms() + limit_ms;
	auto_value struct value *answer = NULL;
	const struct value *error;
	bool interrupted = false;
	struct watch stop = {.fd = peer->interrupt_fd,
			     .events = POLLIN,
			     .ready = came,
			     .context = &interrupted};

	peer->awaited = cells_peer_send(peer, method, take_params);
	if (stop.fd >= 0)
		loop_add(peer->loop, &stop);
	cells_peer_settle(peer);
	while (peer->answer == NULL && !interrupted && !cells_peer_is_lost(peer) &&
	       clock_now_ms() < until) {
		loop_turn(peer->loop, until);
		cells_peer_settle(peer);
	}
	loop_remove(&stop);
	peer->awaited = 0;
	answer = peer->answer;
	peer->answer = NULL;
	if (answer == NULL && peer->turned_away)
		return err_set(err, EAGAIN, "cell %s: %s", peer->name, peer->turned.text);
	if (answer == NULL)
		return cells_peer_is_lost(peer)
			       ? err_set(err, ECONNRESET, "cell %s has ended", peer->name)
		       : interrupted
			       ? err_set(err, EINTR, "a signal came")
			       : err_set(err, ETIMEDOUT,
					 "cell %s does not answer; glovebox stop %s ends it in any "
					 "case",
					 peer->name, peer->name);
	error = value_member(answer, "error");
	if (error != NULL)
		return cells_peer_refused(error, err);
	if (result != NULL)
		*result = value_ref(value_member(answer, "result"));
	return true;
}
