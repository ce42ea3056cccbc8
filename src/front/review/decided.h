/*
 * decided: what a person decides on the layer of a session: by a question when the session has
 * ended, and by /review in a conversation. The verbs review, land and drop carry it out, each
 * in a process of its own, so that there is one way for all of it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "front/setup.h"
#include "front/verb.h"

/*
 * layered_end for a verb whose person may be there. Where a layer is kept and standard input,
 * output and error are a terminal, asks "land, diff, drop or later?", until one of the others
 * than diff is done. The end of the input means later; so does Ctrl+C, which ends this process
 * as it ends any other. CODE is the exit code: after a signal that ends the program nobody is
 * asked.
 */
void decided_end(struct setup *setup, const struct options *options, int code);

/*
 * Run the verb VERB ("review", "land" or "drop") on the layer ID of a session of SETUP with
 * the NULL-ended WORDS, without a terminal; what it prints is added to OUT. It ends early when
 * INTERRUPT becomes readable. Returns its exit code, or -1 with ERR.
 */
int decided_run(const struct setup *setup, const struct options *options,
		const char *verb, const char *id, const char *const *words, int interrupt,
		struct buf *out, struct err *err);
