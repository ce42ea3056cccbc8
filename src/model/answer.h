/*
 * answer: the model's next message while it arrives in fragments. Put together here for
 * every provider; each fragment goes on to the sink as soon as it is in.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/model.h"

#include <stdbool.h>
#include <stdint.h>

struct answer;
struct answer_part;

/* Most calls in one answer; models ask for a handful, and ids are compared one by one. */
enum { ANSWER_CALLS_MAX = 1000 };
/* Most parts in one answer: the empty ones cost memory too. */
enum { ANSWER_PARTS_MAX = 4 * ANSWER_CALLS_MAX };

/* SINK may be NULL and is borrowed. */
struct answer *answer_new(const struct model_sink *sink);
void answer_free(struct answer *answer);

/* Text and thinking join what came of their kind since the last call. */
void answer_add_text(struct answer *answer, struct str fragment);
void answer_add_thinking(struct answer *answer, struct str fragment);

/*
 * An object for what the API wants back with the newest thinking (made on first use, with
 * an empty thinking when there is none yet). The answer's; becomes the part's `extra`.
 */
struct value *answer_thinking_extra(struct answer *answer);
/* Call EACH with the `extra` of every part that has one. */
void answer_each_extra(struct answer *answer, void (*each)(struct value *extra));

/*
 * One fragment of a tool call. INDEX < 0 when the API gave none; ID, NAME and ARGUMENTS
 * may be empty. Which call it belongs to follows the rule of the dialects: a new call
 * when the id differs from the slot's non-empty one, or a name comes after arguments
 * started; a missing index means the last slot; never merged by index alone. A name that
 * only repeats the slot's goes on with the slot while its arguments are not whole JSON.
 * The call, valid until the next; NULL over a ceiling, or when nothing came and there is none.
 */
struct answer_part *answer_add_call(struct answer *answer, int64_t index, struct str id,
				    struct str name, struct str arguments);

/*
 * For APIs that name the parts they stream, by INDEX (< 0: not said), KEY (may be empty) or
 * both: the part of KIND, or a new one at the end; with neither, the newest that is not
 * settled. NULL over a ceiling (every function below takes it). Valid until the next.
 */
struct answer_part *answer_part(struct answer *answer, enum part_kind kind, int64_t index,
				struct str key);
/*
 * For APIs that say where a part begins. answer_part_begin makes a new part at INDEX in
 * any case. answer_part_open gives the newest part of any kind that is not settled and
 * has INDEX (< 0: any), or NULL.
 */
struct answer_part *answer_part_begin(struct answer *answer, enum part_kind kind,
				      int64_t index);
struct answer_part *answer_part_open(struct answer *answer, int64_t index);
enum part_kind answer_part_kind(const struct answer_part *part); /* of no NULL */
/* More of its text, or of a call's arguments. */
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
 * Collect bytes that mean nothing before all have come: they are not part of the answer,
 * and not shown.
 */
void answer_part_collect(struct answer *answer, struct answer_part *part,
			 struct str fragment);
struct str answer_part_collected(const struct answer_part *part);

void answer_set_finish(struct answer *answer, enum model_finish finish);
void answer_set_usage(struct answer *answer, const struct model_usage *usage);

const struct model_usage *answer_usage(const struct answer *answer); /* what was set last */

/* Text, thinking or a call; of a pause, any part. */
bool answer_has_content(const struct answer *answer);
size_t answer_size(const struct answer *answer); /* bytes of all its parts so far, and their number */
/* The newest text of an answer that asks for no tool; else nothing. */
struct str answer_last_words(const struct answer *answer);
bool answer_is_finished(const struct answer *answer); /* answer_set_finish was called … */
bool answer_is_stopped(const struct answer *answer); /* … with MODEL_FINISH_STOP */
bool answer_is_refused(const struct answer *answer); /* … with MODEL_FINISH_REFUSED */
/* There are calls, and the arguments of each are a whole JSON object or nothing. */
bool answer_calls_are_whole(const struct answer *answer);
/* False (EIO) once it went over MODEL_ANSWER_MAX or ANSWER_CALLS_MAX: stop reading. */
bool answer_fits(const struct answer *answer, struct err *err);

/*
 * Append it as the model's message; fails on a call without a name (EPROTO) or over the
 * ceilings (EIO), with nothing appended. Arguments that are nothing become "{}"; an id that is
 * missing or stands twice is replaced. FINISH is MODEL_FINISH_CALLS whenever there are
 * calls, except that LENGTH stays when the limit cut a call's arguments: its calls are in
 * the message all the same and want results. FINISH and USAGE may be NULL.
 */
bool answer_finish(struct answer *answer, struct conversation *into,
		   enum model_finish *finish, struct model_usage *usage, struct err *err);
