/*
 * answer: the model's next message while it arrives in fragments. The message is put
 * together here for every provider; each fragment goes on to the sink as soon as it has
 * come.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/conversation.h"

#include <stdbool.h>
#include <stdint.h>

struct answer;
struct answer_part;

/*
 * Tokens; 0 where the service does not say. Services count in different ways, and
 * providers translate: `input` is all that was sent and `output` all that came. The other
 * counts are parts of these two.
 */
struct model_usage {
	uint64_t input, output;
	uint64_t cached; /* of input: read from the service's cache */
	/* of input: written to the cache, for which some services charge extra */
	uint64_t cache_writes;
	uint64_t reasoning; /* of output: thinking */
	double money;       /* US dollars; below 0: not known; a replay costs nothing */
};

enum model_finish {
	MODEL_FINISH_STOP,
	MODEL_FINISH_CALLS,
	MODEL_FINISH_LENGTH,  /* cut at the token limit */
	MODEL_FINISH_REFUSED, /* content filter or refusal */
	/*
	 * The service stopped in the middle of its own work: ask again with the answer
	 * unchanged and nothing after it. The answer may have no text.
	 */
	MODEL_FINISH_PAUSED,
};

/* The callbacks of an answer while it streams. Every callback may be NULL. */
struct model_sink {
	void *context;
	void (*text)(void *context, struct str fragment);
	void (*thinking)(void *context, struct str fragment);
	void (*call)(void *context, const char *tool); /* a call's name is known */
	/*
	 * The request is out, and the server works on its answer. Called again for each
	 * repetition.
	 */
	void (*waiting)(void *context);
	/*
	 * The text that has streamed so far is invalid: the answer begins again after
	 * WAIT_S. The code of WHY is that of failure.h: EBUSY, when there were too many requests.
	 */
	void (*retry)(void *context, const struct err *why, double wait_s);
};

/* The most bytes of one answer. A longer answer is refused. No model writes so much. */
enum { MODEL_ANSWER_MAX = 16 << 20 };
/*
 * The most calls in one answer. Models ask for a handful, and ids are compared one by
 * one.
 */
enum { ANSWER_CALLS_MAX = 1000 };
/* The most parts in one answer, because even empty parts need memory. */
enum { ANSWER_PARTS_MAX = 4 * ANSWER_CALLS_MAX };

/* SINK may be NULL and is borrowed. */
struct answer *answer_new(const struct model_sink *sink);
void answer_free(struct answer *answer);

/* A fragment joins the part of its kind since the last call, or begins a new one. */
void answer_add_text(struct answer *answer, struct str fragment);
void answer_add_thinking(struct answer *answer, struct str fragment);

/*
 * An object for data that the API wants back with the newest thinking. It is made on
 * first use, with an empty thinking when there is none yet. The answer owns it; it
 * becomes the part's `extra`.
 */
struct value *answer_thinking_extra(struct answer *answer);
/* Call EACH with the `extra` of every part that has one. */
void answer_each_extra(struct answer *answer, void (*each)(struct value *extra));

/*
 * One fragment of a tool call. INDEX < 0 when the API gave none; ID, NAME and ARGUMENTS
 * may be empty. The fragment's call is found by the rule of the dialects. A new call
 * begins when ID differs from the slot's non-empty id, or when a name comes after
 * arguments have begun. A missing index means the last slot. Fragments are never merged
 * by their index only. A name that repeats the slot's name goes on with the slot while
 * the slot's arguments are not whole JSON. Returns the call, valid until the next call of
 * this function; NULL when a limit is reached, or when the fragment is empty and there is
 * no call.
 */
struct answer_part *answer_add_call(struct answer *answer, int64_t index, struct str id,
				    struct str name, struct str arguments);

/*
 * For APIs that name the parts they stream, by INDEX (< 0: not known), KEY (may be empty)
 * or both. Returns the named part of KIND, or a new one at the end; without INDEX and KEY
 * the newest that is not settled. NULL when a limit is reached (every function below
 * accepts NULL). Valid until the next call of this function.
 */
struct answer_part *answer_part(struct answer *answer, enum part_kind kind, int64_t index,
				struct str key);
/*
 * For APIs that say where a part begins. answer_part_begin makes a new part at INDEX in
 * any case. answer_part_open returns the newest part of any kind that is not settled and
 * has INDEX (< 0: any index), or NULL.
 */
struct answer_part *answer_part_begin(struct answer *answer, enum part_kind kind,
				      int64_t index);
struct answer_part *answer_part_open(struct answer *answer, int64_t index);
enum part_kind answer_part_kind(const struct answer_part *part); /* PART is not NULL */
/* Append FRAGMENT to the text of PART, or to the arguments of a call. */
void answer_part_add(struct answer *answer, struct answer_part *part, struct str fragment);
/*
 * PART is complete, and its text is WHOLE. When WHOLE continues the text that has come,
 * the sink gets the rest. An empty WHOLE changes nothing in the text.
 */
void answer_part_settle(struct answer *answer, struct answer_part *part, struct str whole);
bool answer_part_is_settled(const struct answer_part *part);
/* Is any settled part of KIND? */
bool answer_has_settled(const struct answer *answer, enum part_kind kind);
/* Set the ID and the TOOL of a call; an empty text changes nothing. */
void answer_part_call(struct answer *answer, struct answer_part *part, struct str id,
		      struct str tool);
/*
 * Store TAKE_VALUE, which came in as SIZE bytes, under KEY in the `extra` of PART, for the
 * next request.
 */
void answer_part_keep(struct answer *answer, struct answer_part *part, const char *key,
		      struct value *take_value, size_t size);
/* The value that answer_part_keep stored under KEY, or NULL. Borrowed. */
struct value *answer_part_kept(const struct answer_part *part, const char *key);
/*
 * Collect bytes that have no meaning before all of them have come. They are not part of
 * the answer, and not shown.
 */
void answer_part_collect(struct answer *answer, struct answer_part *part,
			 struct str fragment);
struct str answer_part_collected(const struct answer_part *part);

void answer_set_finish(struct answer *answer, enum model_finish finish);
void answer_set_usage(struct answer *answer, const struct model_usage *usage);

/* the one that was set last */
const struct model_usage *answer_usage(const struct answer *answer);

/* Does the answer have text, thinking or a call? A paused answer may have any part. */
bool answer_has_content(const struct answer *answer);
/* the bytes of all its parts so far, and the number of parts */
size_t answer_size(const struct answer *answer);
/* The newest text of an answer without calls; empty when the answer has calls. */
struct str answer_last_words(const struct answer *answer);
bool answer_is_finished(const struct answer *answer); /* answer_set_finish was called … */
bool answer_is_stopped(const struct answer *answer); /* … with MODEL_FINISH_STOP */
bool answer_is_refused(const struct answer *answer); /* … with MODEL_FINISH_REFUSED */
/* True: there are calls, and the arguments of each are a whole JSON object or empty. */
bool answer_calls_are_whole(const struct answer *answer);
/*
 * False (EIO) when the answer is over MODEL_ANSWER_MAX or ANSWER_CALLS_MAX: stop reading.
 */
bool answer_fits(const struct answer *answer, struct err *err);

/*
 * Append the answer as the model's message. Fails, with nothing appended, for a call
 * without a name (EPROTO) or over the limits (EIO). Empty arguments become "{}". An id
 * that is missing or is used twice is replaced. FINISH is MODEL_FINISH_CALLS whenever
 * there are calls, except that LENGTH stays when the limit cut a call's arguments: its
 * calls are in the message all the same and want results. FINISH and USAGE may be NULL.
 */
bool answer_finish(struct answer *answer, struct conversation *into,
		   enum model_finish *finish, struct model_usage *usage, struct err *err);
