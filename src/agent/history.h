/*
 * history: the conversation that a session's kept events add up to. The running agent and
 * every reader of a journal build it with the same function, so that resume is replay.
 * Results join in the order of the calls, not in the order of their arrival.
 *
 * The module numbers each event and has it in the journal before anything else learns
 * of it. The events also hold which files were read (`seen`); the steps of the earlier
 * process become those of the process that goes on (session_adopt). One process has a
 * session: it holds a lock of the kernel on the session's byte (store/journal.c). When
 * a conversation gets too long, its older results are told in short first; when that is not
 * enough, the module decides where it is cut, and agent.c has the model summarise the part
 * that goes. Both are events.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/conversation.h"
#include "store/journal.h"
#include "tool/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder;

struct history_result {
	char *call, *text;
	struct value *pictures; /* of struct part; or NULL */
	bool is_error;
};

/* A prompt of the person. Prompts stay when older messages are summarised. */
struct history_prompt {
	size_t message, part; /* the place of its text */
};

/*
 * The number of tokens is known exactly when an answer comes: its usage counts all that
 * was sent, and the answer itself. Later messages are estimated at
 * HISTORY_BYTES_PER_TOKEN. English and source text have between 3 and 5 bytes a token
 * with the vocabularies in use. Each answer corrects the estimate, so a tokenizer of our
 * own would gain nothing.
 */
enum { HISTORY_BYTES_PER_TOKEN = 4 };

/*
 * The newest pictures stay in the conversation; of older ones their texts. Anthropic's API
 * takes up to 20 of our largest sides in a request, and a request of at most 32 MB. Services
 * scale a picture down to about 1,600 tokens.
 */
enum {
	HISTORY_PICTURES = 20,
	HISTORY_PICTURE_BYTES = 16 << 20,
	HISTORY_PICTURE_TOKENS = 1600
};

struct history {
	struct conversation conversation;
	int64_t *numbers; /* for each message: the number of the event that began it */
	/* of the last message's calls, in the order of their arrival */
	struct history_result *results;
	size_t result_count;
	struct history_prompt *prompts; /* in their order */
	size_t prompt_count;
	struct value *calls; /* the ids of all calls so far, as members */
	/* call -> the file in the cell that has all of its output */
	struct value *handles;
	/* the files that were read or written, as members; the newest last */
	struct value *files;
	struct value *todo; /* the newest list of tasks (tools/todo.h), or NULL */
	bool shortened;     /* older results are told in short, since the last summary */
	char *instructions; /* of the project's files (EVENT_INSTRUCTIONS), or NULL */
	char *style_name, *style; /* of EVENT_STYLED, or NULL */
	char *remark; /* of EVENT_SESSION_RESUMED, until it has been said; or NULL */
	size_t bytes; /* of all messages, as they are sent */
	size_t counted_bytes; /* the part of `bytes` that counted_tokens counts */
	/* counted by the service at its last answer; 0: not known */
	uint64_t counted_tokens;
};

void history_init(struct history *history);
void history_fini(struct history *history);

/*
 * Add EVENT to the conversation: a turn's text, a message, a result, another mode, or a
 * notice whose data says `to_model`. EVENT_SHORTENED shortens older results, EVENT_COMPACTED
 * replaces older messages by its summary. EVENT_REWOUND adds nothing: a reader that meets one
 * has left out what it takes back (history_replay).
 * EVENT_INSTRUCTIONS and EVENT_STYLED only change what is kept beside the conversation.
 * EVENT_HOOK adds its text, and a turn that a hook refused adds nothing.
 * EVENT_SESSION_RESUMED adds its text after the text of the next turn. Other kinds add
 * nothing, nor does a result for a call that the last message did not make (the
 * hand-over's). The pictures in a result come with it, except those that no service takes
 * (tool/picture.h). ERR (EPROTO): the message in EVENT is malformed.
 */
bool history_event(struct history *history, const struct event *event, struct err *err);

/*
 * The events that a person has gone back before (EVENT_REWOUND): each of these events and all
 * since the one that it names are in the record and no longer in the conversation.
 */
struct rewound {
	struct rewound_range {
		int64_t from, to;
	} * ranges;
	size_t count;
};
void rewound_fini(struct rewound *rewound);
bool rewound_has(const struct rewound *rewound, int64_t number);

/* history_event for a reader of the record: an event that REWOUND has is not said. */
bool history_replay(struct history *history, const struct rewound *rewound,
		    const struct event *event, struct err *err);

/*
 * Add the results that came to the conversation. A call without a result (the program was
 * killed) gets a sentence that says so. Call it before each question to a model, and
 * after the last line.
 */
void history_settle(struct history *history);

/*
 * A message as data of EVENT_MESSAGE: {"parts": [{"kind", "text" …}]}. The caller frees
 * it.
 */
struct value *history_message_value(const struct message *message);

/* Is CALL the id of any call so far? */
bool history_has_call(const struct history *history, const char *call);
/* The call number AT (from 0) of the last message; NULL: the message has fewer calls. */
const struct part *history_call(const struct history *history, size_t at);
/* Does CALL, of the last message, have its result? */
bool history_is_answered(const struct history *history, const char *call);

/* The text of the model's last message; NULL: there is none. The caller frees it. */
char *history_last_words(const struct history *history);

/* The number of bytes that MESSAGE has in a request. */
size_t history_message_bytes(const struct message *message);
/*
 * Tokens of the next request, including FIXED_BYTES (the prompt of the role, the tools).
 */
uint64_t history_tokens(const struct history *history, size_t fixed_bytes);

/*
 * Replace all messages before FROM, a message of the model, by the person's prompts,
 * SUMMARY and BEHIND (may be empty). Prompts of at most PINNED_MAX bytes in total stay: the
 * newest and the very first.
 */
void history_compact(struct history *history, size_t from, struct str summary,
		     struct str behind, size_t pinned_max);

/*
 * Shorten each result before FROM, a message of the model, that has more than OVER bytes:
 * its first line stays, and the line that says how it ended, and where all of it is.
 * Returns how many. *BYTES: of what goes. ONLY_COUNT: nothing is changed.
 */
size_t history_shorten(struct history *history, size_t from, size_t over, bool only_count,
		       size_t *bytes);

/*
 * Append what a summary must not lose: the list of tasks, and the files of this session
 * below WORKSPACE and elsewhere, the newest of them. Nothing when there is none of these.
 */
void history_add_behind(const struct history *history, const char *workspace,
			struct buf *out);

/*
 * Gives the events of one session their numbers, keeps them in the journal and then hands
 * them on. The session's own events (a call began, its output, its end) come through
 * recorder_sink, the agent's events through recorder_event. Both get their numbers from
 * one sequence.
 */

/*
 * JOURNAL NULL: no event is kept. FRONT shows the events and cannot refuse them (its
 * `event` may be NULL).
 */
struct recorder *recorder_new(struct journal *journal, struct event_sink front);
void recorder_free(struct recorder *recorder); /* NULL is fine */
/*
 * Use JOURNAL, which was opened after recorder_new. Call it only before the session
 * begins or is resumed.
 */
void recorder_set_journal(struct recorder *recorder, struct journal *journal);
struct journal *recorder_journal(const struct recorder *recorder); /* NULL: of no recorder */

/* For session_options.sink. */
struct event_sink recorder_sink(struct recorder *recorder);

/* LISTENER (the agent's history) gets each kept event before the front does. */
void recorder_set_listener(struct recorder *recorder, struct event_sink listener);
/* Answers to questions that no front is asked. */
struct recorder_permits {
	/*
	 * The word for the one who decides about EVENT, an EVENT_APPROVAL_WANTED; it becomes the
	 * member `decided` of the event. NULL: the front asks a person.
	 */
	const char *(*decides)(void *context, const struct event *event);
	/* EVENT, about which `decides` gave a word, has been shown: answer it. */
	void (*answers)(void *context, const struct event *event);
	void *context;
};
/* PERMITS is asked before a question is recorded. Both members NULL: the front is asked. */
void recorder_set_permits(struct recorder *recorder, struct recorder_permits permits);

/*
 * A new session in the journal. Without this, events are numbered and shown but not
 * kept.
 */
bool recorder_begin(struct recorder *recorder, const char *workspace, const char *agent,
		    const char *model, struct err *err);
/*
 * Claim SESSION of the journal for this process and go on with it: each of its events is
 * first handed to LINE, then new events continue its numbers. ERR: there is no such
 * session, another process has it (EBUSY), or the error of LINE.
 */
bool recorder_resume(struct recorder *recorder, const char *session,
		     bool (*line)(void *context, const char *kind, struct str json,
				  struct err *err),
		     void *context, struct err *err);
/* The session's id in the journal; "" without one. */
const char *recorder_session_id(const struct recorder *recorder);
/* Hand each event that is recorded so far to LINE, as recorder_resume does. */
bool recorder_retell(const struct recorder *recorder,
		     bool (*line)(void *context, const char *kind, struct str json,
				  struct err *err),
		     void *context, struct err *err);
/* Fill REWOUND (zeroed) from the events of SESSION in the journal; rewound_fini in either case. */
bool recorder_rewound(const struct recorder *recorder, const char *session,
		      struct rewound *rewound, struct err *err);

/*
 * Number EVENT, keep it and show it. EVENT gets its number and time. False: EVENT could
 * not be kept. From then on every event of a kept kind is refused with the same sentence,
 * so that the record has no hole.
 */
bool recorder_event(struct recorder *recorder, struct event *event, struct err *err);

/* Has an event been refused? ERR (may be NULL) then has the sentence. */
bool recorder_failed(const struct recorder *recorder, struct err *err);

/*
 * Chooses which older messages to remove when a conversation has grown too long for its
 * model, and makes the text from which the model writes their summary. Pure; agent.c
 * asks and records. The cut is never between a call and its result: the rest begins with
 * a whole message of the model, so that the thinking in this message, with the signatures
 * that its API wants back, stays as it was.
 */

/*
 * Sizes for a model of CONTEXT tokens. In a small context there is no room for both of
 * the constants: then at most half of it stays free, and at most a quarter stays word for
 * word.
 */
struct compaction {
	uint64_t free, kept;
	size_t pinned_max;
	size_t text_max; /* bytes of compaction_print */
};
struct compaction compaction_for(uint64_t context);

/*
 * Does a request of TOKENS leave less of CONTEXT free than it should? False when CONTEXT
 * is 0 (not known).
 */
bool compaction_due(uint64_t context, uint64_t tokens);
/* Is so much of CONTEXT used that older results are told in short? Earlier than that. */
bool compaction_shortens(uint64_t context, uint64_t tokens);
/* A longer result is shortened. */
enum { COMPACTION_RESULT = 2 << 10 };

/*
 * The first message that stays; 0: the messages before it would have less than LEAST
 * tokens, or there are none. The history must be settled.
 */
size_t compaction_cut(const struct history *history, const struct compaction *compaction,
		      uint64_t least);

/*
 * Append the messages before CUT as text, long results and texts in part; the middle is left
 * out when it is more than compaction->text_max bytes.
 */
void compaction_print(const struct conversation *conversation, size_t cut,
		      const struct compaction *compaction, struct buf *out);
