/*
 * chain: the lines of an audit, and the check of such lines. A line is one JSON object, in
 * this order:
 *
 *	seq      1, 2, … over all files of the chain
 *	at       when it happened, UTC: "2026-03-29T12:05:09.120Z"
 *	event    one of enum chain_event
 *	…        the members of struct chain_record that are set
 *	keeps    "head" in the first line of each file: the folder has a head (struct chain_head)
 *	prev     SHA-256 of the line before, without its line end; 64 zeros in the first line
 *	hmac     with a key: HMAC-SHA-256 of all bytes of this line before `,"hmac"`
 *	sum      SHA-256 of all bytes of this line before `,"sum"`
 *
 * `prev` ties each line to the one before, so that a line that was removed, doubled or moved
 * is found. `sum` says in which line a byte has changed. A program that may write to the file
 * can make both anew; only `hmac` needs a key for that. No line says that it is the last
 * one: lines that were cut off at the end are noticed only by a caller that knows the head
 * (chain_check.head_seq), which a ledger tells from time to time, and by the next writer, for
 * which a ledger keeps a head beside its files (struct chain_head).
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* of a whole line; the arguments of a call are the only long part of one */
	CHAIN_LINE_MAX = 1 << 20,
	/* of the arguments, where they are wanted in full; longer ones are left out */
	CHAIN_ARGUMENTS_MAX = 256 << 10,
	/* of a word in a line: a name, an id, a rule; the rest of a longer one is left out */
	CHAIN_WORD_MAX = 1024,
	CHAIN_HEAD_MAX = HASH_HEX + 32, /* of a head as a text, "SEQ:DIGITS" */
};

/* This member, as chain_seal takes it behind a body. */
#define CHAIN_KEEPS_HEAD ",\"keeps\":\"head\""

enum chain_event {
	CHAIN_OPEN = 1, /* a cell is about to be made */
	CHAIN_CLOSE,    /* it is over */
	CHAIN_BEGIN,    /* a call was judged, and is about to run unless it was denied */
	CHAIN_END,      /* the call is over */
	CHAIN_ASK,      /* somebody is asked for a right */
	CHAIN_GRANT,    /* the answer, before it takes effect */
	CHAIN_TOKEN,    /* a token of the service was added, changed or removed */
	CHAIN_DROP,     /* records were lost while nothing could be written */
	CHAIN_CUT,      /* lines that stood before this one are gone, or a torn one is */
	CHAIN_NEXT,     /* the first line of a further file */
	CHAIN_HEAD,     /* of a kept head only: no line of a chain has it */
};

/* All texts are borrowed; a member that is NULL, or negative, is not written. */
struct chain_record {
	enum chain_event event;
	int64_t at_ms; /* of clock_wall_ms */
	const char *front, *token, *cell, *call, *tool;
	const struct value *arguments; /* hashed: SHA-256 of them as JSON with sorted keys */
	bool shows_arguments;          /* written in full, too */
	const char *verdict, *rule;
	const char *status;           /* of the result */
	int exit, signal;             /* -1: none; signal 0: none */
	double seconds;               /* < 0: none */
	const struct value *accounts; /* or NULL */
	/* of an open, a grant, a drop, …: further members, an object; or NULL */
	const struct value *more;
};
/* A record of EVENT, which happens now, without any other member. */
struct chain_record chain_record_of(enum chain_event event);

/* Append the members of RECORD, from `at` on, without braces. False when OUT is full. */
bool chain_print(const struct chain_record *record, struct buf *out);
/*
 * Append the whole line with BODY (of chain_print), its line end included. PREV: the digits of
 * the line before. KEY: empty for a chain without one. False when OUT is full.
 */
bool chain_seal(struct str body, uint64_t seq, const char prev[HASH_HEX + 1],
		struct str key, struct buf *out);

/* The last line of a chain, and the place where it stands, for the next writer. */
struct chain_head {
	uint64_t seq; /* 0: there is no line yet; the digits are zeros, or empty */
	char digits[HASH_HEX + 1]; /* SHA-256 of the line without its line end */
	unsigned file;             /* the number of its file */
	int64_t end; /* the offset behind its line end; 0: there is no line yet */
};
/*
 * Append HEAD as one line: it is sealed as a line of the chain is, with the seq and, as `prev`, the
 * digits of the line that it is about. False when OUT is full.
 */
bool chain_seal_head(const struct chain_head *head, struct str key, struct buf *out);
/* Read such a line, without its line end, back. False: ERR says what is wrong with TEXT. */
bool chain_read_head(struct str text, struct str key, struct chain_head *head,
		     struct err *err);

/* A record CHAIN_CUT tells of lines that are gone. */
struct chain_cut {
	bool found;    /* the last line that was read is such a record */
	uint64_t lost; /* lines that are known to be gone; 0: nobody knows */
	/*
	 * The head that was kept, "SEQ:DIGITS"; or "none", when there was no file, "empty", or
	 * "changed", when the file had something else.
	 */
	char head[CHAIN_HEAD_MAX];
	/* An earlier line says that a head is kept. Without one the chain may be older than heads. */
	bool had_head;
};

/* The place in a chain up to which lines were read. */
struct chain_check {
	struct str key;          /* empty: hmac is not looked at */
	uint64_t seq;            /* of the last line; 0: none was read yet */
	uint64_t first;          /* seq of the first line that was read */
	char prev[HASH_HEX + 1]; /* the digits of the last line */
	bool has_hmac;           /* the last line has one */
	bool keeps_head;         /* a line says so */
	struct chain_cut cut;    /* lines that were gone when the last line was written */
	/* The head that somebody was told: 0: none. */
	uint64_t head_seq;
	char head[HASH_HEX + 1];
};

/*
 * Does LINE, without its line end, follow the lines that CHECK has seen? The first line may be
 * the first one of a chain or of a further file. False: ERR says what is wrong with LINE, and
 * CHECK is unchanged.
 */
bool chain_check_line(struct chain_check *check, struct str line, struct err *err);
/* All lines were read: is the told head among them? */
bool chain_check_end(const struct chain_check *check, struct err *err);
/* Read a told head, "SEQ:DIGITS". */
bool chain_check_head(struct chain_check *check, const char *head, struct err *err);
/*
 * Look at LINE alone, as the one that a writer goes on from. True: CHECK stands behind it.
 */
bool chain_check_last(struct chain_check *check, struct str line, struct err *err);
