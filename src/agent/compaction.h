/*
 * compaction: when a conversation has grown too long for its model, which of its older
 * messages go, and the text of these for the model to summarise. Pure; compact.c asks and
 * records. Never between a call and its result: what stays begins with a whole message of the
 * model's, so that its thinking, with the signatures that its API wants back, stays as it was.
 */
#pragma once
#include "agent/history.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Room for an answer and the results of its calls: the larger of these stays free. */
	COMPACTION_FREE = 16000,
	COMPACTION_FREE_PERCENT = 15,
	/* Tokens at the end that stay word for word: the work of the last few steps. */
	COMPACTION_KEPT = 20000,
	/* Bytes of the person's prompts that stay word for word. */
	COMPACTION_PINNED_MAX = 64 << 10,
	/* Bytes of a summary; a longer one is cut. */
	COMPACTION_SUMMARY_MAX = 32 << 10,
};

/*
 * For a model of CONTEXT tokens. A small one could not keep both numbers above: then at most
 * half of it stays free, and a quarter word for word.
 */
struct compaction {
	uint64_t free, kept;
	size_t pinned_max;
	size_t text_max; /* bytes of compaction_print */
};
struct compaction compaction_for(uint64_t context);

/* Of a request of TOKENS: is less free than should be? CONTEXT 0, not known: never. */
bool compaction_due(uint64_t context, uint64_t tokens);

/*
 * The first message that stays; 0: what would go is less than LEAST tokens, or nothing. The
 * history is settled.
 */
size_t compaction_cut(const struct history *history, const struct compaction *compaction,
		      uint64_t least);

/*
 * Append the messages before CUT as text, long results and texts in part; the middle is left
 * out when it is more than compaction->text_max bytes.
 */
void compaction_print(const struct conversation *conversation, size_t cut,
		      const struct compaction *compaction, struct buf *out);
