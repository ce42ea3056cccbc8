/*
 * screen_child: what a delegate does, as blocks inside a block of its own: its words, its calls,
 * its end. Events of several at once stand in blocks that say whose they are.
 */
#pragma once
#include "base/value.h"
#include "front/terminal/screen_paint.h"

struct screen_child {
	char *session;       /* whose block is open; NULL: none */
	struct value *asked; /* session -> call -> arguments, until it ended */
};

void screen_child_fini(struct screen_child *child);

/* Would DATA of an EVENT_CHILD be shown at all? Fragments are not: the whole follows. */
bool screen_child_shows(const struct value *data);
/*
 * Compose it. False: nothing was. STAND_OFF, which ends a line and leaves one free, is called
 * before a block begins.
 */
void screen_child_paint(struct screen_child *child, struct paint *paint,
			const struct value *data, void (*stand_off)(void *context),
			void *context);
/* The open block ends: something else is to be shown. */
void screen_child_close(struct screen_child *child, struct paint *paint);
