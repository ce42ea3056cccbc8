/* stopping: a wish is left under a lock, and a descriptor in the loop of the session tells of it. */

#include "front/conversation/stopping.h"

#include "base/fd.h"
#include "base/memory.h"
#include "process/loop.h"
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct stopping {
	struct session *session;
	struct watch watch;
	pthread_mutex_t lock;
	char *call, *why; /* the wish; or NULL */
};

static void obey(struct watch *watch, short events)
{
	struct stopping *stopping = watch->context;
	uint64_t count;
	char *call, *why;

	(void)events;
	(void)!read(watch->fd, &count, sizeof(count));
	(void)pthread_mutex_lock(&stopping->lock);
	call = stopping->call;
	why = stopping->why;
	stopping->call = stopping->why = NULL;
	(void)pthread_mutex_unlock(&stopping->lock);
	/* It may have ended by itself meanwhile. */
	if (call != NULL)
		(void)session_stop_call(stopping->session, call, why);
	free(call);
	free(why);
}

bool stopping_open(struct stopping **opened, struct err *err)
{
	struct stopping *stopping = memory_alloc(sizeof(*stopping));

	(void)pthread_mutex_init(&stopping->lock, NULL);
	stopping->watch = (struct watch){
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.events = POLLIN,
		.ready = obey,
		.context = stopping,
	};
	*opened = stopping;
	return stopping->watch.fd >= 0 ||
	       err_set(err, errno, "waiting for a word of the person: %s", strerror(errno));
}

void stopping_close(struct stopping *stopping)
{
	if (stopping == NULL)
		return;
	stopping_set_session(stopping, NULL);
	fd_close(&stopping->watch.fd);
	(void)pthread_mutex_destroy(&stopping->lock);
	free(stopping->call);
	free(stopping->why);
	free(stopping);
}

void stopping_set_session(struct stopping *stopping, struct session *session)
{
	if (stopping == NULL || stopping->session == session)
		return;
	if (stopping->session != NULL)
		loop_remove(&stopping->watch);
	stopping->session = session;
	if (session != NULL)
		loop_add(session_loop(session), &stopping->watch);
}

void stopping_ask(struct stopping *stopping, const char *call, const char *why)
{
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&stopping->lock);
	free(stopping->call);
	free(stopping->why);
	stopping->call = memory_copy(call);
	stopping->why = memory_copy(why);
	(void)pthread_mutex_unlock(&stopping->lock);
	(void)fd_write_all(stopping->watch.fd, &one, sizeof(one), NULL);
}
