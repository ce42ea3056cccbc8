/* http_daemon_parts: the inside of http_daemon*.c, and the only place that knows libmicrohttpd. */
#pragma once
#include "base/buf.h"
#include "mcp/server/http_daemon.h"

#include <microhttpd.h>
#include <stdint.h>

struct functions {
	struct MHD_Daemon *(*start_daemon)(unsigned flags, uint16_t port,
					   MHD_AcceptPolicyCallback accept,
					   void *accept_context,
					   MHD_AccessHandlerCallback handler,
					   void *context, ...);
	void (*stop_daemon)(struct MHD_Daemon *daemon);
	const union MHD_DaemonInfo *(*get_daemon_info)(struct MHD_Daemon *daemon,
						       enum MHD_DaemonInfoType type, ...);
	const union MHD_ConnectionInfo *(*get_connection_info)(
		struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...);
	enum MHD_Result (*run)(struct MHD_Daemon *daemon);
	enum MHD_Result (*get_timeout)(struct MHD_Daemon *daemon,
				       MHD_UNSIGNED_LONG_LONG *ms);
	void (*suspend_connection)(struct MHD_Connection *connection);
	void (*resume_connection)(struct MHD_Connection *connection);
	const char *(*lookup)(struct MHD_Connection *connection, enum MHD_ValueKind kind,
			      const char *key);
	int (*get_values)(struct MHD_Connection *connection, enum MHD_ValueKind kind,
			  MHD_KeyValueIterator iterator, void *context);
	struct MHD_Response *(*from_buffer)(size_t size, void *buffer,
					    enum MHD_ResponseMemoryMode mode);
	struct MHD_Response *(*from_callback)(uint64_t size, size_t block,
					      MHD_ContentReaderCallback reader,
					      void *context,
					      MHD_ContentReaderFreeCallback free_context);
	enum MHD_Result (*add_header)(struct MHD_Response *response, const char *header,
				      const char *content);
	enum MHD_Result (*queue)(struct MHD_Connection *connection, unsigned status,
				 struct MHD_Response *response);
	void (*destroy)(struct MHD_Response *response);
};

/* Of a stream or an answer, whose client does not read. */
enum { HTTP_UNREAD_MAX = 64 << 20 };

struct http_connection;

struct http_daemon {
	struct http_daemon_options options;
	struct functions mhd;
	struct MHD_Daemon *daemon;
	struct watch watch;
	struct timer timer;
	struct http_exchange *first;
	struct http_connection *first_connection,
		*last_connection; /* in the order of coming */
	size_t connections;
	size_t busy;   /* requests that have no whole answer yet */
	size_t bodies; /* bytes of those that are held */
	size_t unread; /* bytes of answers that no client has read yet */
	bool closing;
};

/* From its begin to its end; the library's memory of it. */
struct http_connection {
	struct http_daemon *daemon;
	struct http_connection *next, *previous;
	struct http_exchange *exchange; /* NULL: it says nothing */
	int fd;
	int64_t since_ms; /* it says nothing, or is answered, since then */
	struct watch end; /* of what its client says */
	bool gone;        /* that has come */
	struct timer late;
};

enum progress { READING, WAITING, ANSWERED, STREAMING };

/*
 * A body is held, or dropped because other bodies need the room, or because it is too
 * large.
 */
enum taken { BODY_HELD, BODY_CROWDED_OUT, BODY_TOO_LARGE };

struct http_exchange {
	struct http_daemon *daemon;
	struct http_exchange *next, *previous;
	struct MHD_Connection *connection;
	struct http_connection *carrier;
	char *method, *path;
	void *owner;
	struct buf body;
	enum taken taken;
	enum progress progress;
	bool crowded;     /* there is room only for what is answered at once */
	bool turned_away; /* there was no room: nobody has heard of it */
	bool whole;       /* the request has been handed over */
	bool queued;      /* the library has the answer */
	bool suspended;
	bool broken; /* to be closed without a word */
	bool ended;  /* the stream */
	int status;
	char *type, *beat;
	char *names[HTTP_HEADERS], *values[HTTP_HEADERS];
	size_t headers;
	struct buf out;
	size_t out_from;
	struct watch end;  /* of the connection, while it is suspended */
	struct timer late; /* then a beat is due */
};

/* http_daemon.c: the library has something to do. */
void http_run_soon(struct http_daemon *daemon);

/* http_daemon_connection.c: for the library, as a connection begins and ends. */
void http_connection_changed(void *context, struct MHD_Connection *connection, void **own,
			     enum MHD_ConnectionNotificationCode what);
struct http_connection *http_connection_of(const struct http_daemon *daemon,
					   struct MHD_Connection *connection);
/* A request's head is there; all of it is; it is answered; it is over. */
void http_connection_asks(struct http_connection *connection,
			  struct http_exchange *exchange);
void http_connection_asked(struct http_connection *connection);
void http_connection_answered(struct http_connection *connection);
void http_connection_rests(struct http_connection *connection);

/*
 * http_daemon_exchange.c: a request of which the head is there, from CONNECTION; METHOD and PATH
 * are copied. It is the daemon's until http_exchange_free, which tells the owner that it is over.
 */
struct http_exchange *http_exchange_new(struct http_daemon *daemon,
					struct MHD_Connection *connection,
					const char *method, const char *path);
void http_exchange_free(struct http_exchange *exchange);
/* Append PIECE to the body. Without room the body is dropped, and `taken` says why. */
void http_exchange_take_body(struct http_exchange *exchange, struct str piece);
/* The body is not wanted any more: its room is for others. */
void http_exchange_forget_body(struct http_exchange *exchange);
/*
 * The library does not serve a suspended exchange until it is woken. When the client
 * leaves meanwhile, the owner is told immediately. Both functions may be called twice.
 */
void http_exchange_suspend(struct http_exchange *exchange);
void http_exchange_wake(struct http_exchange *exchange);
/* http_daemon_answer.c: its answer, or the begin of its stream, goes to the library. */
enum MHD_Result http_exchange_queue(struct http_exchange *exchange);
