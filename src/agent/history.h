/*
 * history: the conversation that a session's kept events add up to. The running agent
 * and whoever reads a journal build it by the same function, so that resume is replay.
 * Results join in the order of the calls, whatever order they came in.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/conversation.h"
#include "runtime/event.h"

#include <stdbool.h>
#include <stddef.h>

struct history_result {
	char *call, *text;
	bool is_error;
};

struct history {
	struct conversation conversation;
	/* of the last message's calls, in order of coming */
	struct history_result *results;
	size_t result_count;
};

void history_init(struct history *history);
void history_fini(struct history *history);

/*
 * What EVENT adds: a turn's text, a message, a result, or a notice whose data says
 * `to_model`; other kinds add nothing. A result for a call that the last message did
 * not make (the hand-over's) adds nothing either. ERR (EPROTO): a message that is none.
 */
bool history_event(struct history *history, const struct event *event, struct err *err);

/* The same from one line of the journal (event_print's form). */
bool history_line(struct history *history, struct str json, struct err *err);

/*
 * Let the results that came join the conversation; a call without one (the program was
 * killed) gets a sentence that says so. Before each question to a model, and after the
 * last line.
 */
void history_settle(struct history *history);

/*
 * A message as data of EVENT_MESSAGE: {"parts": [{"kind", "text" …}]}. The caller frees
 * it.
 */
struct value *history_message_value(const struct message *message);

/* Is CALL the id of any call in it? */
bool history_has_call(const struct conversation *conversation, const char *call);
