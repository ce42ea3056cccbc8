/*
 * screen_child: the words, the calls and the end of a delegate, as blocks inside one
 * block of the delegate. When several delegates work at the same time, each block names
 * its delegate.
 */
#pragma once
#include "base/value.h"
#include "front/terminal/screen_paint.h"

struct screen_child {
	char *session;       /* the delegate's session, whose block is open; NULL: none */
	struct value *asked; /* session -> call -> arguments, until the call ends */
};

void screen_child_fini(struct screen_child *child);

/*
 * Is DATA, of an EVENT_CHILD, shown at all? Fragments are not: the whole message follows.
 */
bool screen_child_shows(const struct value *data);
/*
 * Compose DATA in PAINT. False: nothing was composed. Before a block begins, STAND_OFF is
 * called: it ends the line and leaves a blank one.
 */
void screen_child_paint(struct screen_child *child, struct paint *paint,
			const struct value *data, void (*stand_off)(void *context),
			void *context);
/* End the open block, because something else will be shown. */
void screen_child_close(struct screen_child *child, struct paint *paint);
