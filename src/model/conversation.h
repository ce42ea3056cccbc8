/*
 * conversation: the messages of the user, the model and its tools, in the order in which
 * they were said, and a question to a model about them; independent of any provider. A
 * conversation owns everything in it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum part_kind {
	PART_TEXT,
	/* a model's reasoning; `extra` has the data that its API wants back */
	PART_THINKING,
	PART_CALL,   /* the model asks for a tool */
	PART_RESULT, /* the answer to one call */
};

enum speaker { SPEAKER_USER, SPEAKER_MODEL };

struct part {
	enum part_kind kind;
	char *text;      /* text, thinking, or a result's text */
	char *call_id;   /* call and result */
	char *tool;      /* call and result: the tool's name */
	char *arguments; /* of a call: as the model wrote it; may be no JSON at all */
	/*
	 * of a result, or of a text of the user: a list of objects with `mimeType` and
	 * `data`, which is Base64; or NULL
	 */
	struct value *pictures;
	bool is_object;      /* of a call: the arguments are one JSON object */
	bool is_error;       /* of a result */
	struct value *extra; /* data of the provider, kept unchanged; or NULL */
};

struct message {
	enum speaker speaker;
	struct part *parts;
	size_t part_count;
};

struct conversation {
	char *system_prompt; /* or NULL */
	struct message *messages;
	size_t message_count;
};

void conversation_init(struct conversation *conversation);
void conversation_fini(struct conversation *conversation);
void conversation_set_system(struct conversation *conversation, const char *text);

/* Append an empty message; the pointer is valid until the next append. */
struct message *conversation_add(struct conversation *conversation, enum speaker speaker);

/*
 * Replace the first COUNT messages (at least one, at most all) by TAKE_HEAD, which is
 * moved.
 */
void conversation_replace(struct conversation *conversation, size_t count,
			  struct message *take_head);

/*
 * Append a part to MESSAGE. TEXT and the other texts are copied. The part is valid until
 * the next append.
 */
struct part *message_add_text(struct message *message, const char *text);
struct part *message_add_thinking(struct message *message, const char *text,
				  struct value *take_extra);
struct part *message_add_call(struct message *message, const char *call_id,
			      const char *tool, const char *arguments);
struct part *message_add_result(struct message *message, const char *call_id,
				const char *tool, const char *text, bool is_error);

/* One question to a model. */

struct model_tool {
	const char *name, *description;
	const char *schema; /* as JSON text; NULL: the tool takes no arguments */
};

struct model_request {
	const struct conversation *conversation;
	const struct model_tool *tools;
	size_t tool_count;
	int stop_fd; /* readable: the person cancelled; -1: none */
	/*
	 * The most tokens of this answer, which then has no budget for thinking; 0: as the
	 * model was opened. A replay has no such limit.
	 */
	uint64_t answer_max;
	/* How often the service itself may search the web; 0: not at all (model_searches). */
	unsigned searches;
};

/* Functions that the requests of all APIs share. */

/* Says what the pictures are in a message of their own, where a result cannot hold them. */
#define CONVERSATION_PICTURES "The pictures of the results above:"

bool conversation_is_blank(const char *text);

/*
 * Append the arguments of CALL, which may be no JSON at all, as a JSON object, because
 * services read them again and fail on anything else. Wrong text of the model stays
 * readable in the object.
 */
void conversation_add_arguments(const struct part *call, struct buf *out);

/*
 * Append the calls of MESSAGE, if it has any, as the member "tool_calls" of a message of
 * Chat Completions. Each call is an object with its id, then FIELDS, then its function,
 * whose arguments the callback ARGUMENTS appends, then the value of KEPT in its `extra`,
 * under the same name (KEPT NULL: nothing).
 */
void conversation_add_calls(const struct message *message, const char *fields,
			    const char *kept,
			    void (*arguments)(const struct part *call, struct buf *out),
			    struct buf *out);

/* Append the schema of TOOL, or one for a tool without arguments. */
void conversation_add_schema(const struct model_tool *tool, struct buf *out);

/*
 * The text of a result. It is never blank, because some services refuse blank results and
 * most models are puzzled by them.
 */
const char *conversation_result_text(const struct part *part);

/*
 * Append each picture of PART: BEFORE, its type, BETWEEN, its Base64, AFTER.
 * Returns how many there are.
 */
size_t conversation_add_pictures(const struct part *part, const char *before,
				 const char *between, const char *after, struct buf *out);

/*
 * The effort ("low", "medium", "high") that corresponds to a BUDGET of tokens for
 * thinking, for APIs that take a word: "low" up to 2,048, "high" above 8,192. All models
 * that take an effort know these three words.
 */
const char *conversation_effort(uint64_t budget);

/* False (E2BIG) when BODY went over its limit. */
bool conversation_fits(const struct buf *body, struct err *err);
