/*
 * openai_responses: what its files share. Every item that came goes back where it stood:
 * a part keeps its item in `extra` under RESPONSES_EXTRA. Of reasoning, and of items that
 * are nothing to us, that is the whole item, unchanged; of messages and function calls the
 * item without what the part itself holds (text, arguments, ids).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "model/answer.h"
#include "model/provider.h"

#include <stdbool.h>

#define RESPONSES_EXTRA "response_item"
/* Between the texts of a summary, which are its paragraphs. */
#define RESPONSES_PARAGRAPH "\n\n"

/* Provider's `request`. */
bool openai_responses_write(const struct provider_settings *settings,
			    const struct model_request *request, struct buf *body,
			    struct err *err);

/*
 * ITEM, which came as SIZE bytes, at INDEX of the output (< 0: not said): it begins, or it
 * is complete and the truth.
 */
void openai_responses_begin_item(struct answer *answer, int64_t index,
				 const struct value *item);
void openai_responses_take_item(struct answer *answer, int64_t index,
				const struct value *item, size_t size);
/* The kind of part that ITEM becomes. */
enum part_kind openai_responses_part_kind(const struct value *item);
