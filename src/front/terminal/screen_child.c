/*
 * screen_child: paints the events of a delegate like those of its caller, behind a bar.
 */
#include "front/terminal/screen_child.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "tool/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORDS_HEAD = 30, /* lines of its words; its caller gets the whole report */
	WORDS_TAIL = 10,
	TASK_HEAD = 5,
	NAME_COLUMNS = 40,
	/*
	 * Most calls that are remembered; no sensible run begins more at the same time.
	 */
	ASKED_MAX = 200,
	CALL_NAME = 256,
	BAR_COLUMNS = 2,
	COLUMNS_LEAST = 16,
};

void screen_child_fini(struct screen_child *child)
{
	free(child->session);
	value_free(child->asked);
	*child = (struct screen_child){0};
}

static enum event_kind kind_of(const struct value *event)
{
	const char *name = value_text(value_member(event, "event"));
	enum event_kind kind;

	return name && event_kind_parse(name, &kind) ? kind : 0;
}

bool screen_child_shows(const struct value *data)
{
	const struct value *event = value_member(data, "event_of");

	switch (kind_of(event)) {
	case EVENT_TURN_BEGAN:
	case EVENT_MESSAGE:
	case EVENT_TOOL_ENDED:
	case EVENT_NOTICE:
	case EVENT_TURN_ENDED:
		return true;
	default:
		return false;
	}
}

/* Name a call by its session and its id: calls of two sessions may have the same id. */
static void name_call(const char *session, const struct value *call, char name[CALL_NAME])
{
	const char *id = value_text(value_member(call, "call"));

	(void)snprintf(name, CALL_NAME, "%s %s", session, id ? id : "");
}

/*
 * Remember the arguments as the model wrote them: the call is shown without the defaults.
 */
static void note_asked(struct screen_child *child, const char *session,
		       const struct value *part)
{
	auto_value struct value *arguments = NULL;
	char name[CALL_NAME];

	if (!child->asked || value_count(child->asked) >= ASKED_MAX) {
		value_free(child->asked);
		child->asked = value_new_object();
	}
	name_call(session, part, name);
	if (value_parse(value_str(value_member(part, "arguments")), VALUE_REPAIR,
			&arguments, NULL))
		value_set(child->asked, name, value_ref(arguments));
}

static void paint_words(struct paint *paint, struct str text, size_t head)
{
	const struct paint_excerpt excerpt = {.head = head, .tail = WORDS_TAIL};

	text = str_trim(text);
	if (text.size > 0)
		paint_lines(paint, text, &excerpt);
}

static void paint_message(struct screen_child *child, struct paint *paint,
			  const char *session, const struct value *event)
{
	const struct value *parts = value_member(event, "parts");

	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);

		if (str_is(value_str(value_member(part, "kind")), "text"))
			paint_words(paint, value_str(value_member(part, "text")),
				    WORDS_HEAD);
		if (str_is(value_str(value_member(part, "kind")), "call"))
			note_asked(child, session, part);
	}
}

static void paint_end(struct paint *paint, const struct value *event)
{
	auto_value struct value *short_end = value_copy(event);

	/*
	 * The block of the delegate's hand-over shows the change; do not show it a second
	 * time.
	 */
	value_remove(short_end, "patch");
	paint_turn_end(paint, short_end);
}

static void paint_event(struct screen_child *child, struct paint *paint,
			const char *session, const struct value *event)
{
	const char *tool = value_text(value_member(event, "tool"));
	const enum event_kind kind = kind_of(event);
	char call[CALL_NAME];

	if (kind == EVENT_TURN_BEGAN) {
		paint_words(paint, value_str(value_member(event, "text")), TASK_HEAD);
	} else if (kind == EVENT_MESSAGE) {
		paint_message(child, paint, session, event);
	} else if (kind == EVENT_TOOL_ENDED) {
		name_call(session, event, call);
		paint_call(paint, tool ? tool : "", value_member(child->asked, call), event);
		if (child->asked)
			value_remove(child->asked, call);
	} else if (kind == EVENT_NOTICE) {
		paint_notice(paint, value_str(value_member(event, "text")), false);
	} else if (kind == EVENT_TURN_ENDED) {
		paint_end(paint, event);
	}
}

void screen_child_close(struct screen_child *child, struct paint *paint)
{
	if (!child->session)
		return;
	paint_rule(paint, NULL);
	free(child->session);
	child->session = NULL;
}

static void open_block(struct screen_child *child, struct paint *paint,
		       const struct value *data, const char *session)
{
	struct paint title;

	paint_init(&title);
	title.unicode = paint->unicode;
	(void)buf_adds(&title.out, "delegate ");
	paint_one_line(&title, PAINT_PLAIN, value_str(value_member(data, "agent")),
		       NAME_COLUMNS);
	(void)buf_adds(&title.out, paint_dot(&title));
	paint_one_line(&title, PAINT_PLAIN, str_of(session), NAME_COLUMNS);
	paint_rule(paint, title.out.data);
	paint_fini(&title);
	child->session = memory_copy(session);
}

void screen_child_paint(struct screen_child *child, struct paint *paint,
			const struct value *data, void (*stand_off)(void *context),
			void *context)
{
	const struct value *event = value_member(data, "event_of");
	const char *session = value_text(value_member(data, "session"));
	struct paint inner;
	struct str rest, line;

	paint_init(&inner);
	inner.colour = paint->colour;
	inner.unicode = paint->unicode;
	inner.wraps = paint->wraps;
	inner.columns = paint->columns > COLUMNS_LEAST + BAR_COLUMNS
				? paint->columns - BAR_COLUMNS
				: COLUMNS_LEAST;
	inner.indent = paint->indent + BAR_COLUMNS;
	paint_event(child, &inner, session ? session : "", event);
	rest = buf_str(&inner.out);
	if (rest.size > 0 &&
	    (!child->session || !session || strcmp(child->session, session) != 0)) {
		screen_child_close(child, paint);
		stand_off(context);
		open_block(child, paint, data, session ? session : "");
	}
	while (str_next_line(&rest, &line)) {
		paint_bar(paint);
		(void)buf_addstr(&paint->out, line);
		buf_addc(&paint->out, '\n');
	}
	if (kind_of(event) == EVENT_TURN_ENDED)
		screen_child_close(child, paint);
	paint_fini(&inner);
}
