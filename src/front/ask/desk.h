/*
 * desk: hears in the front what programs of a cell ask for, at a socket of the cell
 * (SHAPE_ASK of view/shape.h), and puts it to the person (front/ask/question.h). Everything
 * that comes from there is hostile.
 *
 * A connection sends one line and gets one line back:
 *
 *   open ADDRESS   -> "yes", "yes PORT TOKEN" or "no SENTENCE"
 *   back TOKEN     -> nothing: the connection is joined to one of the browser's
 *                     (front/ask/callback.h)
 *
 * An address (policy/address.h) is opened in the person's browser when its host is in
 * `opens` and the person agrees. Another one is shown, so that the person can copy it.
 */
#pragma once

#include "base/err.h"
#include "process/loop.h"

#include <stdbool.h>

struct ceiling;
struct desk;
struct question;

/* The longest line; an address is shorter. */
enum { DESK_LINE_MAX = 5 << 10 };

struct desk_options {
	struct loop *loop;
	struct question *question; /* NULL: there is no terminal, and everything is refused */
	/* hosts as in a policy's `network`, whose addresses may be opened; NULL-ended, or NULL */
	const char *const *opens;
	const char *profile;            /* of `wrap`; or NULL */
	const struct ceiling *ceiling;  /* or NULL */
	const char *const *environment; /* of the person, for the browser */
};

/* Hear what comes at *TAKE_LISTENER. The texts of OPTIONS outlive the desk. */
struct desk *desk_open(const struct desk_options *options, int *take_listener);
/*
 * Open ADDRESS, which was parsed, in the person's browser: by BROWSER of ENVIRONMENT, or
 * xdg-open. No shell reads it.
 */
bool desk_open_browser(const char *const *environment, const char *address, struct err *err);
/* Drops all connections and their questions. NULL is fine. */
void desk_close(struct desk *desk);
