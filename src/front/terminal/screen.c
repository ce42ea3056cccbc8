/*
 * screen: takes events and writes bytes. screen_paint and screen_call decide how each
 * part looks.
 */
#include "front/terminal/screen.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "front/terminal/screen_calls.h"
#include "front/terminal/screen_child.h"
#include "front/terminal/screen_flow.h"
#include "front/terminal/screen_paint.h"
#include "front/terminal/screen_spinner.h"
#include "front/terminal/screen_wrap.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SCREEN_SPINNER_AFTER_MS = 300, /* quicker calls need no spinner */
	SCREEN_LABEL_COLUMNS = 60,
};

struct screen {
	int fd;
	struct screen_options options;
	pthread_mutex_t lock; /* the spinner's thread uses the screen too */
	struct paint paint;
	struct screen_flow flow;
	struct screen_wrap wrap; /* of the streaming text, where lines have an end */
	enum event_kind flowing; /* EVENT_TEXT, EVENT_THINKING or 0: now streaming */
	bool line_open; /* a part of the line is shown, and the cursor stands behind it */
	size_t line_ends; /* line ends that came last; shown only when more text comes */
	bool anything;    /* was written: a blank line precedes the next item */
	bool text_shown;  /* text of the coming message is shown already */
	int gone;         /* errno of the failed write: nobody reads any more */
	struct screen_call *calls; /* in the order of beginning */
	struct value *asked; /* id -> arguments, as the model's last message had them */
	struct screen_child child; /* the open block of a delegate */
	struct screen_spinner *spinner;
	bool spinner_drawn;
	int64_t waiting_since_ms; /* begin of the wait for the model; 0: no wait */
};

static size_t screen_columns(const struct screen *screen)
{
	size_t columns = screen->options.columns;

	if (columns == 0)
		columns = screen_columns_of(screen->fd);
	if (columns == SIZE_MAX)
		columns = SCREEN_COLUMNS;
	return columns < SCREEN_COLUMNS_MIN ? SCREEN_COLUMNS_MIN : columns;
}

static void screen_write(struct screen *screen, const char *bytes, size_t size)
{
	struct err err;

	if (screen->gone == 0 && !fd_write_all(screen->fd, bytes, size, &err))
		screen->gone = err.code;
}

/* Write the composed bytes over the spinner's line. */
static void screen_flush(struct screen *screen)
{
	static const char clear[] = "\r\x1b[K";
	struct buf *out = &screen->paint.out;

	if (screen->gone == 0 && screen->spinner_drawn && out->size > 0) {
		screen_write(screen, clear, sizeof(clear) - 1);
		screen->spinner_drawn = false;
	}
	if (out->size > 0)
		screen_write(screen, out->data, out->size);
	buf_clear(out);
}

int screen_gone(const struct screen *screen)
{
	return screen->gone;
}

static void screen_stand_off(struct screen *screen)
{
	screen_child_close(&screen->child, &screen->paint);
	if (screen->anything)
		buf_addc(&screen->paint.out, '\n');
	screen->anything = true;
}

/* Add streamed, clean TEXT: broken into lines on a terminal, unchanged elsewhere. */
static void screen_flow_onto_lines(struct screen *screen, struct str text, bool ends)
{
	enum paint_style style =
		screen->flowing == EVENT_THINKING ? PAINT_DIM : PAINT_PLAIN;
	struct paint *paint = &screen->paint;
	struct buf lines;

	buf_init(&lines, PAINT_MAX);
	if (paint->wraps)
		screen_wrap_add(&screen->wrap, text, paint->columns, &lines);
	else
		buf_addstr(&lines, text);
	if (ends)
		screen_wrap_end(&screen->wrap, paint->columns, 0, &lines);
	if (lines.size > 0)
		paint_text(paint, style, buf_str(&lines));
	buf_fini(&lines);
}

/*
 * Show streamed, clean TEXT. Models send any number of line ends before and behind their
 * text, so the screen decides how many of these are shown.
 */
static void screen_show_flow(struct screen *screen, struct str text)
{
	size_t size;

	while (!screen->line_open && text.size > 0 && strchr(" \t\n", text.data[0]))
		text = str_part(text, 1, text.size - 1);
	for (size = text.size; size > 0 && text.data[size - 1] == '\n';)
		size--;
	if (size > 0) {
		if (!screen->line_open)
			screen_stand_off(screen);
		for (; screen->line_ends > 0; screen->line_ends--)
			screen_flow_onto_lines(screen, STR("\n"), false);
		screen_flow_onto_lines(screen, str_part(text, 0, size), false);
		screen->line_open = true;
		screen->text_shown = screen->text_shown || screen->flowing == EVENT_TEXT;
	}
	screen->line_ends += text.size - size;
}

static void screen_end_flow(struct screen *screen)
{
	struct buf rest;

	if (!screen->flowing)
		return;
	buf_init(&rest, PAINT_MAX);
	screen_flow_end(&screen->flow, &rest);
	screen_show_flow(screen, buf_str(&rest));
	buf_fini(&rest);
	screen_flow_onto_lines(screen, STR(""), true);
	if (screen->line_open)
		buf_addc(&screen->paint.out, '\n');
	screen->flowing = 0;
	screen->line_open = false;
	screen->line_ends = 0;
}

/* Begin the next item of the screen: on its own line, with a blank line before it. */
static void screen_begin_item(struct screen *screen)
{
	screen_end_flow(screen);
	screen_stand_off(screen);
}

/*
 * Show a fragment of the model's text. Reasoning is dim on a terminal with colours.
 * Without colours nobody could tell it from the answer, so it is left out.
 */
static void screen_fragment(struct screen *screen, enum event_kind kind, struct str text)
{
	struct buf shown;

	if (kind == EVENT_THINKING && !screen->options.colour)
		return;
	if (screen->flowing != kind)
		screen_end_flow(screen);
	screen->flowing = kind;
	buf_init(&shown, PAINT_MAX);
	screen_flow_add(&screen->flow, text, &shown);
	screen_show_flow(screen, buf_str(&shown));
	buf_fini(&shown);
}

/*
 * Remember the arguments as the model wrote them: the call is shown without the defaults.
 */
static void screen_note_asked(struct screen *screen, const struct value *part)
{
	const char *call = value_text(value_member(part, "call"));
	struct value *arguments = NULL;

	if (!call || !value_parse(value_str(value_member(part, "arguments")),
				  VALUE_REPAIR, &arguments, NULL))
		return;
	if (value_kind(arguments) == VALUE_OBJECT)
		value_set(screen->asked, call, value_ref(arguments));
	value_free(arguments);
}

static void screen_message(struct screen *screen, const struct value *data)
{
	const struct value *parts = value_member(data, "parts");
	bool streamed;

	screen_end_flow(screen);
	streamed = screen->text_shown;
	value_free(screen->asked);
	screen->asked = value_new_object();
	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);
		const char *kind = value_text(value_member(part, "kind"));

		screen_note_asked(screen, part);
		/* The words of a model that does not stream are only in the message. */
		if (kind && strcmp(kind, "text") == 0 && !streamed)
			screen_fragment(screen, EVENT_TEXT,
					value_str(value_member(part, "text")));
		screen_end_flow(screen);
	}
	screen->text_shown = false;
	screen->waiting_since_ms = 0;
}

static void screen_check_ended(struct screen *screen, const struct value *data)
{
	screen_begin_item(screen);
	paint_check(&screen->paint, data);
}

static void screen_notice(struct screen *screen, const struct event *event)
{
	screen_begin_item(screen);
	paint_notice(&screen->paint, event->text,
		     value_is_true(value_member(event->data, "to_model")));
}

/* Show the question to the person. After that another module writes to the terminal. */
static void screen_approval(struct screen *screen, const struct event *event)
{
	const struct value *request = value_member(event->data, "request");
	struct event notice = {
		.kind = EVENT_NOTICE,
		.text = value_str(value_member(request, "message")),
	};

	screen_notice(screen, &notice);
}

static void screen_tool_began(struct screen *screen, const struct event *event)
{
	screen_calls_add(&screen->calls, event,
			 value_member(screen->asked, event->call ? event->call : ""));
	screen_end_flow(screen);
}

static void screen_tool_ended(struct screen *screen, const struct event *event)
{
	struct screen_call *call =
		screen_calls_take(&screen->calls, event->call ? event->call : "");

	screen_begin_item(screen);
	paint_call(&screen->paint,
		   call          ? call->tool
		   : event->tool ? event->tool
				 : "",
		   call ? call->arguments : NULL, event->data);
	if (call)
		screen_call_free(call);
}

static void screen_begin_child(void *context)
{
	screen_begin_item(context);
}

static void screen_child(struct screen *screen, const struct value *data)
{
	if (screen_child_shows(data))
		screen_child_paint(&screen->child, &screen->paint, data,
				   screen_begin_child, screen);
}

static void screen_turn_ended(struct screen *screen, const struct event *event)
{
	screen_begin_item(screen);
	paint_turn_end(&screen->paint, event->data);
	screen->waiting_since_ms = 0;
}

static void screen_show(struct screen *screen, const struct event *event)
{
	switch (event->kind) {
	case EVENT_SESSION_BEGAN:
	case EVENT_SESSION_RESUMED:
		screen_begin_item(screen);
		paint_session(&screen->paint, event->data);
		break;
	case EVENT_TURN_BEGAN:
		screen_begin_item(screen);
		paint_prompt(&screen->paint, event->text);
		break;
	case EVENT_TEXT:
	case EVENT_THINKING:
		screen_fragment(screen, event->kind, event->text);
		break;
	case EVENT_MESSAGE:
		screen_message(screen, event->data);
		break;
	case EVENT_TOOL_BEGAN:
		screen_tool_began(screen, event);
		break;
	case EVENT_TOOL_ENDED:
		screen_tool_ended(screen, event);
		break;
	case EVENT_NOTICE:
		screen_notice(screen, event);
		break;
	case EVENT_CHILD:
		screen_child(screen, event->data);
		break;
	case EVENT_CHECK_ENDED:
		screen_check_ended(screen, event->data);
		break;
	case EVENT_TURN_ENDED:
		screen_turn_ended(screen, event);
		break;
	case EVENT_APPROVAL_WANTED:
		screen_approval(screen, event);
		break;
	case EVENT_INSTRUCTIONS:
	case EVENT_COMPACTED:
	case EVENT_TOOL_OUTPUT:
	case EVENT_PROGRESS:
	case EVENT_LOG:
	case EVENT_QUESTION:
	case EVENT_APPROVAL_GIVEN:
		break;
	}
}

/*
 * Describe in LABEL the activity that is under way, and set *SINCE_MS to its begin.
 * False: nothing is under way.
 */
static bool screen_activity(struct screen *screen, struct buf *label, int64_t *since_ms)
{
	const struct screen_call *call = screen->calls;
	struct paint subject;

	if (!call) {
		*since_ms = screen->waiting_since_ms;
		return *since_ms != 0 && buf_adds(label, "model");
	}
	*since_ms = call->began_ms;
	buf_adds(label, call->tool);
	if (call->next)
		return buf_adds(label, paint_more(&screen->paint));
	paint_init(&subject);
	subject.unicode = screen->options.unicode;
	paint_subject(&subject, call->arguments, SCREEN_LABEL_COLUMNS);
	buf_addc(label, ' ');
	buf_addstr(label, buf_str(&subject.out));
	paint_fini(&subject);
	return true;
}

static void screen_tick(void *context)
{
	struct screen *screen = context;
	int64_t since_ms, elapsed_ms;
	struct buf label;

	buf_init(&label, PAINT_MAX);
	(void)pthread_mutex_lock(&screen->lock);
	if (!screen->gone && !screen->line_open &&
	    screen_activity(screen, &label, &since_ms)) {
		elapsed_ms = clock_now_ms() - since_ms;
		if (elapsed_ms >= SCREEN_SPINNER_AFTER_MS) {
			screen->paint.columns = screen_columns(screen);
			buf_addc(&screen->paint.out, '\r');
			paint_spinner(&screen->paint, label.data, elapsed_ms);
			buf_adds(&screen->paint.out, "\x1b[K");
			screen->spinner_drawn = false;
			screen_flush(screen);
			screen->spinner_drawn = true;
		}
	}
	(void)pthread_mutex_unlock(&screen->lock);
	buf_fini(&label);
}

/* After events of these kinds the front waits for the model. */
static void screen_note_waiting(struct screen *screen, enum event_kind kind)
{
	if (kind == EVENT_TURN_BEGAN || kind == EVENT_TOOL_ENDED || kind == EVENT_NOTICE)
		screen->waiting_since_ms = clock_now_ms();
	if (kind == EVENT_TURN_BEGAN && screen->options.terminal && !screen->spinner)
		screen->spinner = screen_spinner_start(screen_tick, screen);
}

static bool screen_take(void *context, const struct event *event, struct err *err)
{
	struct screen *screen = context;

	(void)err;
	(void)pthread_mutex_lock(&screen->lock);
	screen->paint.columns = screen_columns(screen);
	screen_show(screen, event);
	screen_flush(screen);
	screen_note_waiting(screen, event->kind);
	(void)pthread_mutex_unlock(&screen->lock);
	if (event->kind == EVENT_TURN_ENDED)
		screen_rest(screen);
	return true;
}

void screen_break(struct screen *screen)
{
	screen_end_flow(screen);
	(void)buf_addc(&screen->paint.out, '\n');
	screen_flush(screen);
	screen->anything = false;
}

void screen_rest(struct screen *screen)
{
	/* Stop the spinner without holding the lock: its last tick takes the lock. */
	screen_spinner_stop(screen->spinner);
	screen->spinner = NULL;
	screen->waiting_since_ms = 0;
	screen_end_flow(screen);
	screen_child_close(&screen->child, &screen->paint);
	if (screen->spinner_drawn)
		buf_adds(&screen->paint.out, "\r\x1b[K");
	screen->spinner_drawn = false;
	screen_flush(screen);
}

struct event_sink screen_sink(struct screen *screen)
{
	return (struct event_sink){.event = screen_take, .context = screen};
}

struct screen *screen_new(int fd, const struct screen_options *options)
{
	struct screen *screen = memory_alloc(sizeof(*screen));

	screen->fd = fd;
	screen->asked = value_new_object();
	screen->options = options ? *options : screen_options_of(fd);
	(void)pthread_mutex_init(&screen->lock, NULL);
	paint_init(&screen->paint);
	screen->paint.colour = screen->options.colour;
	screen->paint.unicode = screen->options.unicode;
	screen->paint.wraps = screen->options.terminal;
	screen->paint.columns = screen_columns(screen);
	screen_wrap_init(&screen->wrap);
	screen_flow_init(&screen->flow);
	return screen;
}

void screen_free(struct screen *screen)
{
	if (!screen)
		return;
	screen_rest(screen);
	while (screen->calls) {
		struct screen_call *call = screen->calls;

		screen->calls = call->next;
		screen_call_free(call);
	}
	(void)pthread_mutex_destroy(&screen->lock);
	screen_flow_fini(&screen->flow);
	screen_wrap_fini(&screen->wrap);
	paint_fini(&screen->paint);
	screen_child_fini(&screen->child);
	value_free(screen->asked);
	free(screen);
}
