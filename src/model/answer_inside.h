/* answer_inside: what the files of answer share, and nobody else. */
#pragma once
#include "base/buf.h"
#include "model/answer.h"

/*
 * Where a reader of JSON stands in a call's arguments, so that "whole?" costs no parsing.
 */
struct scan {
	size_t depth;
	bool in_string, escaped, begun, whole;
};

struct answer_part {
	enum part_kind kind;
	struct buf text;      /* a call: its arguments */
	char *id, *tool;      /* a call; id NULL while unknown, tool "" while unknown */
	int64_t index;        /* a call, or a part that its API names; < 0: not said */
	char *key;            /* a part that its API names; or NULL */
	bool settled;         /* likewise: nothing more is added */
	struct buf collected; /* likewise */
	struct scan scan;
	struct value *extra;
};

struct answer {
	const struct model_sink *sink;
	struct answer_part *parts;
	size_t count, capacity, calls;
	size_t bytes; /* of all parts, held against MODEL_ANSWER_MAX */
	bool overflowed, finished;
	enum model_finish finish;
	struct model_usage usage;
};

/* A new part at the end; NULL over a ceiling. */
struct answer_part *answer_new_part(struct answer *answer, enum part_kind kind);
/* May SIZE bytes more come in? Counts them. */
bool answer_takes(struct answer *answer, size_t size);
/* Append FRAGMENT, which was counted, to PART; answer_put gives it to the sink too. */
void answer_fill(struct answer_part *part, struct str fragment);
void answer_put(struct answer *answer, struct answer_part *part, struct str fragment);
bool answer_is_blank(struct str text);
