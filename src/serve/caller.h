/*
 * caller: the one program that uses an engine (engine.h), at the other end of two
 * descriptors. JSON-RPC 2.0, one message a line, UTF-8. A line from the caller has at most
 * CALLER_LINE_MAX bytes; a longer one is skipped to its end and refused, like one that is
 * no message (mcp/message.h reads it). Both ends may ask: requests of ours have ids
 * that begin with "glovebox-".
 *
 * Nothing here waits. Answers are kept while the caller does not read; with more than
 * CALLER_UNREAD_MAX bytes unread caller_reads is false: the engine then takes no line
 * and reads no output of programs, until the caller has read.
 *
 * An error has a code, a sentence (what, where, what to do) and `data` with its kind and,
 * where there are any, the rule that decided, the remedy, and the name of the error of the
 * system ("ENOENT"):
 *
 *	{"jsonrpc": "2.0", "id": 7, "error": {"code": -32001, "message": "…",
 *	 "data": {"kind": "no_such", "error": "ENOENT"}}}
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "process/outbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CALLER_LINE_MAX = MCP_MESSAGE_MAX, /* bytes of a line from the caller */
	CALLER_UNREAD_MAX = 4 << 20,       /* bytes of answers that it has not read */
	/* Of answers that wait. The largest answer has two outputs of 64 MiB, as Base64. */
	CALLER_OUTPUT_MAX = 512 << 20,
};

/* The ids of our requests begin with it. */
#define CALLER_ASKS "glovebox-"

/* The kinds of errors, in words: `kinds` of caller.c, and docs/serve.md. */
enum caller_kind {
	CALLER_USAGE, /* the request is wrong: a member, its type, its bounds, its turn */
	CALLER_NO_SUCH,     /* no such cell, process, file, tool or method */
	CALLER_SET_UP,      /* the cell could not be built; nothing has run */
	CALLER_DENIED,      /* the policy or a wall refused */
	CALLER_LIMIT,       /* a limit was reached */
	CALLER_CLOSED,      /* the cell has been closed, or has broken, meanwhile */
	CALLER_BUSY,        /* too many calls or cells at the same time: try again */
	CALLER_UNAVAILABLE, /* everything else that failed here */
	CALLER_CANCELLED,   /* by $/cancel; has no `data` */
};

/* The kind of the error ERROR of errno.h; 0 is CALLER_UNAVAILABLE. */
enum caller_kind caller_kind_of(int error);

/* An error for the caller, besides its sentence. */
struct caller_fault {
	enum caller_kind kind;
	int code;                  /* of JSON-RPC; 0: the code of the kind */
	const char *rule;          /* that decided; or NULL */
	const char *remedy;        /* or NULL */
	int error;                 /* of errno.h; 0: none */
	const struct value *known; /* names that exist, for a name that does not; or NULL */
};

/* In the order of life. */
enum caller_life {
	CALLER_TALKS,
	CALLER_ENDED, /* its input has ended: no further line comes */
	CALLER_LOST,  /* it reads nothing any more */
};

struct caller {
	struct loop *loop;
	enum caller_life life;
	/* set by the owner: messages have no member `jsonrpc`, and errors no `data` */
	bool bare;
	bool greeted; /* set by the owner: it has said hello */
	int input;
	struct watch reading;
	struct buf in, line; /* bytes that were read; the line that they are part of */
	size_t in_from;      /* the bytes before are taken */
	bool skipping;       /* the rest of a line that is too long */
	struct outbox out;
	int64_t asked; /* the number of our last request */
};

/* INPUT and OUTPUT stay the owner's; they may be the same. */
void caller_open(struct caller *caller, struct loop *loop, int input, int output);
void caller_close(struct caller *caller);

/*
 * Take the next message of the caller; the owner calls mcp_message_fini. Lines that are no
 * message are answered here. An answer to a request of ours with neither result nor error, or
 * with both, is a response without either. An error whose id is null is a response without
 * id. A caller that reads nothing any more may have sent messages before. False: there is none
 * now.
 */
bool caller_next(struct caller *caller, struct mcp_message *message);

/* Answer the request ID with TAKE_RESULT, which is freed. */
void caller_answer(struct caller *caller, const struct value *id, struct value *take_result);
/* Answer the request ID (NULL: it has none) with an error. */
void caller_refuse(struct caller *caller, const struct value *id,
		   const struct caller_fault *fault, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Send a notice, or with ASKS a request, whose id is then "glovebox-N"; returns N. */
int64_t caller_tell(struct caller *caller, const char *method, struct value *take_params,
		    bool asks);
/* The number of our request that the response MESSAGE answers; 0: none. */
int64_t caller_answered(const struct mcp_message *message);

/* Does the caller read what it is sent? */
bool caller_reads(const struct caller *caller);
/* Write what waits, and go on or pause reading. Call this once in each turn of the loop. */
void caller_settle(struct caller *caller);
