/* asking: turns an event into a choice at the console, and the choice into an answer. */
#include "front/asking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "front/terminal/screen_calls.h"

/* The console stops asking SOONER_S before the session stops waiting for the answer. */
enum { SOONER_S = 1, PREVIEW_MAX = 4 << 10 };

struct asking {
	struct console *console;
	struct screen *screen;
	struct event_sink view; /* the screen's */
	struct session *session;
	asking_preview *preview; /* or NULL */
	void *preview_context;
	struct screen_call *calls; /* under way */
	int timer, woken;          /* WOKEN is readable when the timer or a signal is */
};

/* The last choice is also the answer when no choice is made (console_choose). */
static const char *const choices[] = {"once", "session", "no", NULL};

static bool watch(int set, int fd, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	return fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0 ||
	       err_set(err, errno, "waiting for an answer: %s", strerror(errno));
}

struct asking *asking_open(struct console *console, struct screen *screen,
			   int interrupt_fd, struct err *err)
{
	struct asking *asking = memory_alloc(sizeof(*asking));

	asking->console = console;
	asking->screen = screen;
	asking->view = screen_sink(screen);
	asking->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	asking->woken = epoll_create1(EPOLL_CLOEXEC);
	if (asking->timer < 0 || asking->woken < 0) {
		(void)err_set(err, errno, "waiting for an answer: %s", strerror(errno));
	} else if (watch(asking->woken, asking->timer, err) &&
		   watch(asking->woken, interrupt_fd, err)) {
		return asking;
	}
	asking_close(asking);
	return NULL;
}

void asking_close(struct asking *asking)
{
	if (asking == NULL)
		return;
	while (asking->calls != NULL)
		screen_call_free(screen_calls_take(&asking->calls, asking->calls->id));
	fd_close(&asking->timer);
	fd_close(&asking->woken);
	free(asking);
}

void asking_set_preview(struct asking *asking, asking_preview *preview, void *context)
{
	if (asking == NULL)
		return;
	asking->preview = preview;
	asking->preview_context = context;
}

void asking_set_session(struct asking *asking, struct session *session)
{
	if (asking != NULL)
		asking->session = session;
}

static void set_timer(const struct asking *asking, int64_t seconds)
{
	const struct itimerspec at = {.it_value = {.tv_sec = seconds}};

	(void)timerfd_settime(asking->timer, 0, &at, NULL);
}

static void ask(const struct asking *asking, const struct event *event)
{
	const int64_t wait_s = value_integer(value_member(event->data, "wait_s"));
	auto_value struct value *answer = value_new_object();
	struct value *content = value_new_object();
	size_t choice;

	screen_rest(asking->screen);
	set_timer(asking, wait_s > SOONER_S ? wait_s - SOONER_S : SOONER_S);
	choice = console_choose(asking->console, "Allow it?", choices, asking->woken);
	set_timer(asking, 0);
	value_set_text(content, "answer", choices[choice]);
	value_set(content, "hash", value_copy(value_member(event->data, "hash")));
	value_set_text(answer, "action", "accept");
	value_set(answer, "content", content);
	/* This fails when the call has ended meanwhile: it needs no answer then. */
	(void)session_answer(asking->session, event->call,
			     value_integer(value_member(event->data, "id")), answer, NULL);
}

/*
 * Show what the script of a plugin says about this call of it. The screen has shown the
 * call's arguments before.
 */
static bool show_preview(struct asking *asking, const struct event *event, struct err *err)
{
	struct screen_call *call = screen_calls_take(&asking->calls, event->call);
	struct event notice = {.kind = EVENT_NOTICE};
	struct buf line;
	bool ok = true;

	if (call == NULL)
		return true;
	buf_init(&line, PREVIEW_MAX);
	(void)buf_addf(&line, "%s says of this call: ", call->tool);
	if (asking->preview != NULL &&
	    asking->preview(asking->preview_context, call->tool, call->arguments, &line)) {
		notice.text = buf_str(&line);
		ok = asking->view.event(asking->view.context, &notice, err);
	}
	buf_fini(&line);
	call->next = asking->calls;
	asking->calls = call;
	return ok;
}

static bool take(void *context, const struct event *event, struct err *err)
{
	struct asking *asking = context;

	if (!asking->view.event(asking->view.context, event, err))
		return false;
	if (event->call == NULL)
		return true;
	if (event->kind == EVENT_TOOL_BEGAN) {
		screen_calls_add(&asking->calls, event, NULL);
	} else if (event->kind == EVENT_TOOL_ENDED) {
		struct screen_call *call = screen_calls_take(&asking->calls, event->call);

		if (call != NULL)
			screen_call_free(call);
	} else if (event->kind == EVENT_APPROVAL_WANTED && asking->session != NULL) {
		if (!show_preview(asking, event, err))
			return false;
		ask(asking, event);
	}
	return true;
}

struct event_sink asking_sink(struct asking *asking)
{
	return (struct event_sink){.event = take, .context = asking};
}
