/*
 * guard: sees a model that goes round in circles. A call makes progress unless the same call
 * gave the same result before and no file changed since. Calls in a row that make none are a
 * circle: the model is told of it in the results, then by a sentence of its own, then the turn
 * ends. Timeouts in a row are treated alike. Pure: the caller tells it of written files.
 */
#pragma once
#include "base/err.h"
#include "base/hash.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* A circle has at most so many different calls; a longer one is honest work more often. */
	GUARD_CIRCLE = 3,
	/* A circle of several calls may be so much longer than the same call over and over. */
	GUARD_CIRCLE_MORE = 2,
	/* Timeouts in a row: a second try is honest work, and so is a third with another limit. */
	GUARD_TIMEOUTS_TOLD = 3,
	GUARD_TIMEOUTS_END = 5,
};

enum guard_verdict {
	GUARD_GO,
	GUARD_SAY,      /* the model is to read a sentence by itself */
	GUARD_REPEATS,  /* the turn is over, for this reason */
	GUARD_TIMEOUTS, /* or for this one */
};

/* One call, as the guard sees it. */
struct guard_call {
	const char *tool;
	char key[HASH_HEX + 1]; /* of its name and its arguments (guard_name) */
	bool only_reads;        /* it may be answered from before */
	bool waits;       /* it waits for a job, which is progress whatever it says */
	uint64_t writers; /* session_writes: when it began */
};

/* One of the last different calls, and its result. */
struct guard_seen {
	char key[HASH_HEX + 1], result[HASH_HEX + 1]; /* key "": none */
	uint64_t found, writers; /* session_writes: when its result was there */
	unsigned count;          /* of this call with this result, in this circle */
	bool circles;            /* it came without progress in this circle */
	uint64_t base;           /* of one that circles: the number of its call before */
	uint64_t last;           /* the number of its last call; 0: there is none */
	struct value *answer; /* its result, as events have it; of one that only reads */
};

/* Zero, with its two limits (0: none), is a fresh one. */
struct guard {
	uint64_t warn, stop;
	struct guard_seen seen[GUARD_CIRCLE];
	uint64_t calls;
	uint64_t idle; /* calls in a row without progress */
	uint64_t timeouts;
	bool said; /* the sentence by itself, of this circle */
	enum guard_verdict verdict;
	struct err why; /* the sentence of VERDICT */
};
void guard_fini(struct guard *guard);

/*
 * Name CALL. Arguments are equal when they are as JSON (order and blanks do not count), else by
 * their bytes.
 */
void guard_name(struct guard_call *call, const char *tool, const char *arguments);

/*
 * CALL is about to run. Returns the earlier answer, with a remark, when CALL would only
 * read the same again: CALL is counted and must not run. Returns NULL when CALL must run.
 * The caller frees the answer.
 */
struct value *guard_answer(struct guard *guard, const struct guard_call *call,
			   const struct session_writes *writes);

/* CALL ended with RESULT. Adds to RESULT any remark that the model must read. */
void guard_result(struct guard *guard, const struct guard_call *call,
		  const struct session_writes *writes, struct tool_result *result);

/* The verdict on all results so far; WHY receives its sentence. */
enum guard_verdict guard_verdict(const struct guard *guard, struct err *why);
/* The sentence of GUARD_SAY, once, when it is due. */
bool guard_take_sentence(struct guard *guard, struct err *sentence);
