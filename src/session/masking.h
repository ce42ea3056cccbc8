/*
 * masking: secrets in the calls of a session (for session/ only). Results, output, messages and
 * questions leave the session with marks (tool/mask.h) in the place of secrets, so events, the
 * journal, a model and a client never get the values. Arguments come with marks, are
 * judged, approved and recorded with marks, and only the worker gets the bytes. A value that
 * a model writes itself is recorded as it is: a file that a command has made must not be able
 * to hide the words of a later call.
 *
 * A worker reads the named secrets (tools/search/secrets.c) before the first call that it carries out,
 * and again when a file of them may have changed: when a look was told so, when a call
 * names such a file, and before a command or a search where nothing is watched. A file that
 * the call names is read first.
 *
 * All functions accept a session that masks nothing.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/mask.h"

#include <stdbool.h>

struct masking;
struct policy;
struct running;
struct session;
struct tool_result;

/* KEY_FILE as in session_options. NULL: POLICY shows secrets. */
struct masking *masking_new(const struct policy *policy, const char *key_file);
void masking_free(struct masking *masking);
/* Look in FOLDER as well, an absolute path: it is shown in the cell from now on. */
void masking_looks_in(struct session *session, const char *folder);
/* The files of secrets may have changed. */
void masking_ages(struct session *session);

/*
 * Make the arguments for the worker of RUNNING, which are sound. False: a mark in them
 * cannot be turned back, and the result of RUNNING says so.
 */
bool masking_arguments(struct running *running);
/*
 * The worker of RUNNING, which is about to be sent, shall read this before; a reference,
 * or NULL: nothing.
 */
struct value *masking_asks(struct running *running);
/* The worker's answer, which is not trusted. */
void masking_take(struct running *running, struct str payload);

/* Mask RESULT, of RUNNING, before anybody gets it. */
void masking_result(struct running *running, struct tool_result *result);
/*
 * The text or value that an event of RUNNING may have in the place of TEXT or VALUE. MADE is
 * initialised, and holds the text when it differs. The caller owns the value; NULL: VALUE
 * is fine.
 */
struct str masking_text(struct running *running, struct str text, struct buf *made);
struct value *masking_value(struct running *running, const struct value *value);
/* A fragment of output; LAST: nothing follows. STREAM is 0 or 1. */
struct str masking_output(struct running *running, int stream, struct str bytes,
			  bool last, struct buf *made);
/* RUNNING goes. */
void masking_end(struct running *running);
