/*
 * jetstream: one connection to a NATS server, and the interface of its JetStream: JSON over
 * the server's own subjects. Of libnats (>= 3.4, loaded at first use) only functions are used
 * that take pointers to what it allocates itself: its structures for JetStream grow with each
 * release, and the library that is loaded may be newer than the header.
 *
 * Sentences name the server without its password and say the remedy. Of an err that a
 * function here fills, `code` is ENOENT (no such stream, consumer or message, or nobody
 * answers), EEXIST (a message that must not be there is), ENOSPC, EACCES, ETIMEDOUT,
 * ENOTCONN, EKEYREJECTED (the server takes our credentials no longer: it is not tried again), or
 * EPROTO. All functions may be called by several threads, but one inbox is read
 * by one thread at a time.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JETSTREAM_WAIT_S = 5,        /* for one answer of the server */
	JETSTREAM_SUBJECT_MAX = 640, /* bytes of a subject, with its end */
};

struct jetstream;
struct jetstream_inbox;

struct jetstream_options {
	const char *url;         /* "nats://HOST:PORT", several with commas between */
	const char *credentials; /* a file, or NULL */
	const char *ca_file, *certificate, *key; /* files, or NULL */
};

bool jetstream_open(const struct jetstream_options *options, struct jetstream **jetstream,
		    struct err *err);
void jetstream_close(struct jetstream *jetstream); /* NULL is allowed */
/* The URL without passwords. */
const char *jetstream_shown(const struct jetstream *jetstream);
bool jetstream_connected(struct jetstream *jetstream);

/*
 * Call METHOD ("STREAM.INFO.NAME") with the JSON BODY, and wait SECONDS for the answer (0:
 * JETSTREAM_WAIT_S). *ANSWER is owned by the caller.
 */
bool jetstream_call(struct jetstream *jetstream, const char *method, const char *body,
		    int seconds, struct value **answer, struct err *err);
/*
 * A message to SUBJECT that a stream stores and confirms. EXPECTED: the sequence of the last
 * one of this subject ("0": there must be none), or NULL. DOING is for sentences.
 */
bool jetstream_store(struct jetstream *jetstream, const char *subject, struct str data,
		     const char *expected, const char *doing, struct err *err);
/* WORD to the subject ACK of a message that came, confirmed by the server. */
bool jetstream_confirm(struct jetstream *jetstream, const char *ack, const char *word,
		       struct err *err);
/*
 * The end of a task: the message DATA to SUBJECT, stored unless there is one, and behind it "+ACK"
 * to ACK, sent in this order and both confirmed. Threads that call it at the same time are served
 * together: one sends for all, and reads all answers. True: ACK is confirmed; *STORED then is why
 * DATA was not stored, with the code 0 when it was. False with ERR: one of both has no answer.
 */
bool jetstream_finish(struct jetstream *jetstream, const char *subject, struct str data,
		      const char *ack, struct err *stored, struct err *err);
/* Not confirmed; nothing is sent while there is no connection. */
void jetstream_publish(struct jetstream *jetstream, const char *subject, struct str data);

/* A message of an inbox; its texts hold until jetstream_message_fini. */
struct jetstream_message {
	const char *subject, *ack; /* ack: NULL, it ends a pull */
	struct str data;
	int version;     /* of the header Glovebox-Line; 1 without it */
	bool unanswered; /* there is no such stream or consumer */
	void *own;
};
enum jetstream_next { JETSTREAM_MESSAGE, JETSTREAM_NONE, JETSTREAM_FAILED };

/* Where answers come in that are sent to "NAME.NUMBER". */
bool jetstream_inbox_open(struct jetstream *jetstream, struct jetstream_inbox **inbox,
			  struct err *err);
void jetstream_inbox_close(struct jetstream_inbox *inbox); /* NULL is allowed */
/*
 * Nothing more comes in. Messages that the server had sent before it knew so can be read as
 * before.
 */
void jetstream_inbox_stop(struct jetstream_inbox *inbox);
/* The next message, waiting at most MS. */
enum jetstream_next jetstream_inbox_next(struct jetstream_inbox *inbox, int64_t ms,
					 struct jetstream_message *message,
					 struct err *err);
void jetstream_message_fini(struct jetstream_message *message);
/* The number of the pull that MESSAGE ends; 0: it is what was pulled. */
uint64_t jetstream_message_ends(const struct jetstream_inbox *inbox,
				const struct jetstream_message *message);
/*
 * Ask CONSUMER of STREAM for COUNT messages: for SECONDS, or with 0 for those that are there.
 * They come to INBOX, and at last a message that ends the pull NUMBER, unless all came.
 */
bool jetstream_pull(struct jetstream_inbox *inbox, const char *stream, const char *consumer,
		    size_t count, int seconds, uint64_t number, struct err *err);

/* Messages that are stored and confirmed together. */
struct jetstream_posting {
	struct jetstream *jetstream;
	struct jetstream_inbox *inbox;
	size_t sent;
	size_t there; /* were there already */
};
bool jetstream_post_begin(struct jetstream_posting *posting, struct jetstream *jetstream,
			  struct err *err);
/* VERSION: of the header Glovebox-Line; 0: no header. */
bool jetstream_post_add(struct jetstream_posting *posting, const char *subject,
			struct str data, int version, struct err *err);
/* Wait until all are confirmed. */
bool jetstream_post_end(struct jetstream_posting *posting, struct err *err);
void jetstream_post_fini(struct jetstream_posting *posting);

/* Reading STREAM from its begin, without taking anything out of it. */
struct jetstream_reader {
	struct jetstream *jetstream;
	const char *stream, *filter;
	bool last_only; /* of each subject */
	struct jetstream_inbox *inbox;
	char consumer[JETSTREAM_SUBJECT_MAX];
	int64_t next; /* the sequence from which a new consumer goes on; 0: the first */
	int64_t left; /* messages that were there at the begin and did not come yet */
};
enum jetstream_pulled {
	JETSTREAM_SOME,
	JETSTREAM_NOTHING,
	JETSTREAM_LOST,   /* begin once more: it goes on where it was */
	JETSTREAM_ENOUGH, /* TAKE said false */
};
/* The first four members are set. */
bool jetstream_reader_begin(struct jetstream_reader *reader, struct err *err);
/* One batch, waiting at most SECONDS for it; each message to TAKE. */
enum jetstream_pulled jetstream_reader_pull(struct jetstream_reader *reader, int seconds,
					    bool (*take)(void *context, const char *subject,
							 struct str data),
					    void *context);
void jetstream_reader_end(struct jetstream_reader *reader);

/*
 * The parts of the subject ACK: 0: the consumer, 1: how often the message was delivered,
 * 2: its sequence in the stream. "" when there is none.
 */
struct str jetstream_ack_part(const char *ack, size_t nth);
int64_t jetstream_number(struct str text);

/* The server's words of itself to everybody who connects: version, max_payload, … */
bool jetstream_greeting(struct jetstream *jetstream, struct value **greeting,
			struct err *err);
/* Ask SUBJECT, which may have no answer for us, for at most a second. NULL: none. */
struct value *jetstream_try(struct jetstream *jetstream, const char *subject);
