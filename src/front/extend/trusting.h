/*
 * trusting: shows a person what a workspace brings along (extend/brought.h), so that they can let
 * it in or not (extend/trust.h).
 */
#pragma once

#include "extend/brought.h"
#include "extend/trust.h"

#include <stdbool.h>
#include <stdio.h>

struct console;
struct policy;
struct setup;

/*
 * Print ITEM with each byte visible, because the person must see all that they let in, even bytes
 * that a terminal would swallow or overwrite. Of an item that was let in before (TRUST, or NULL)
 * the difference comes first.
 */
void trusting_show(const struct trust *trust, const struct brought *item, FILE *out);

/*
 * Read what the workspace of SETUP brings along, and open SETUP's extension (extend/extension.h)
 * with what was let in. What the person has not decided on is asked about on CONSOLE; without one
 * it does not count, and unless QUIET one line on standard error says so, as it does of each thing
 * whose name one of the person has. WAKE_FD: as for console_choose. A SETUP that has an extension keeps it. Call it before the session is opened.
 */
bool trusting_open(struct setup *setup, struct console *console, int wake_fd, bool quiet,
		   struct err *err);

/*
 * Add to SERVERS, an object, the servers of the workspace of SETUP that were let in, under names
 * that it does not have. Their texts are used as they are: no variable of the person is put into
 * them. One whose entry is wrong is left out, and named on standard error. SETUP has its policy.
 */
bool trusting_servers(const struct setup *setup, struct value *servers, struct err *err);

/*
 * Ask the person about all that is not let in, also about what was put off before. POLICY: the
 * rights to read. *LET_IN: something was; it counts for setups that are opened from now on.
 */
bool trusting_decide(const struct setup *setup, const struct policy *policy,
		     struct console *console, int wake_fd, bool *let_in, struct err *err);
