/*
 * http: heads and bodies of HTTP/1.1 (RFC 9112), read strictly. A head that two programs
 * could understand differently is refused, so that nothing can be hidden from its reader.
 * This one reader serves the proxy, and the broker for requests and answers.
 *
 * A request to the proxy is `CONNECT host:port`, or a plain request in absolute form
 * (`GET http://host/path`), which is passed on in origin form.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stdint.h>

/* The user name before a token: http://glovebox:TOKEN@127.0.0.1:PORT. */
#define PROXY_USER "glovebox"
enum { PROXY_TOKEN = 32 /* hexadecimal digits: 128 bits of chance */ };

enum {
	REQUEST_HEAD_MAX = 32 << 10, /* cookies are long; servers take 8 to 32 KiB */
	REQUEST_HEADERS_MAX = 128,
	REQUEST_PORT_PLAIN = 80,
};

enum request_answer { REQUEST_BAD, REQUEST_MORE, REQUEST_READY };

enum body_kind {
	BODY_NONE,
	BODY_COUNTED,
	BODY_CHUNKED,
	BODY_TO_END, /* of an answer: until the connection ends */
};

struct http_field {
	struct str name, value;
};

/* The two kinds of a head. They differ in the first line. */
enum http_side { HTTP_REQUEST, HTTP_ANSWER };

/* A head in parts, which are views of its bytes. */
struct http_head {
	struct str method, target; /* of a request; printable ASCII */
	unsigned status;           /* of an answer: 100 to 599 */
	struct str reason;         /* of an answer */
	bool old;                  /* HTTP/1.0 */
	struct http_field fields[REQUEST_HEADERS_MAX];
	size_t count;
	bool named; /* there is a Host field */
	struct str host;
	enum body_kind body; /* as its fields say; NONE without such a field */
	uint64_t body_bytes; /* of BODY_COUNTED */
	size_t size;         /* blank line included; 0: not complete yet */
};

/*
 * Read the head at the beginning of BYTES. BAD: ERR says which rule the head breaks. With
 * BAD and MORE, HEAD has the parts before the break.
 */
enum request_answer http_head_read(struct str bytes, enum http_side side,
				   struct http_head *head, struct err *err);

/* Is a header NAME only for the next program on the way (RFC 9110, section 7.6.1)? */
bool http_is_hop(struct str name);

/* The value of the last field NAME in HEAD; empty: there is none. */
struct str http_value(const struct http_head *head, const char *name);

/* Append "Name: value\r\n". */
void http_field_print(const struct http_field *field, struct buf *out);

/* Does LIST, separated by commas, have WORD in any case of letters? */
bool http_list_has(struct str list, const char *word);

struct http_request {
	bool connect;
	struct network_host host;
	uint16_t port;
	char token[PROXY_TOKEN + 1]; /* "" when no token of the right form was sent */
	enum body_kind body;
	uint64_t body_bytes; /* of BODY_COUNTED */
	size_t size;         /* of the head, blank line included */
	/*
	 * host and port as the client asked, printable, also of a refused request; else
	 * ""
	 */
	char shown[NETWORK_TEXT_MAX];
};

/*
 * Read BYTES, all that the client has sent so far. BAD: ERR says which rule the head
 * breaks.
 */
enum request_answer http_request_read(struct str bytes, struct http_request *request,
				      struct err *err);

/*
 * Like http_request_read, for the first request inside a tunnel to HOST and PORT, in
 * origin form (`GET /path`). Its Host header must name HOST.
 */
enum request_answer http_request_read_inside(struct str bytes,
					     const struct network_host *host,
					     uint16_t port, struct http_request *request,
					     struct err *err);

/*
 * Append to OUT the head in BYTES as the server gets it: with a path instead of the URL
 * and with the checked host, without the headers meant for the proxy, and with
 * `Connection: close`.
 */
bool http_request_print(struct str bytes, const struct http_request *request,
			struct buf *out);

/*
 * Finds the end of a body. Bytes behind the end are not passed on. They would be a second
 * request, which nobody has checked.
 */

struct body {
	enum body_kind kind;
	uint64_t left; /* bytes of the body, or of the chunk */
	int state;     /* of the chunks */
	int digits;
	/* bytes of extensions and trailers so far; of a request's body: none may be there */
	size_t aside;
	bool answer;
	bool done;
	bool broken; /* the chunks are malformed: the connection must end */
};

/* Chunks of an answer may have extensions and trailers, those of a request not. */
void body_begin(struct body *body, enum http_side side, enum body_kind kind, uint64_t bytes);

/* How many of BYTES belong to the body. */
size_t body_take(struct body *body, struct str bytes);

/*
 * Take the framing and then one piece of content off *BYTES, which must not be empty.
 * PIECE is that piece; it is empty when *BYTES has no more of the body. Extensions and
 * trailers are dropped.
 */
void body_next(struct body *body, struct str *bytes, struct str *piece);

/*
 * The first message of TLS (RFC 8446, section 4.1.2), as far as it names a host. The
 * name found is the one that the server sees, however the message is split into records
 * and reads.
 */

/*
 * Post-quantum key shares make the message 2 KiB long. A server would not accept more
 * than this limit either.
 */
enum { HELLO_MAX = 16 << 10 };

enum hello_answer { HELLO_BAD, HELLO_MORE, HELLO_GOOD };

/* Can BYTES (at least one) be the beginning of TLS? */
bool http_hello_begins(struct str bytes);

/*
 * Read the client's first bytes. GOOD: NAME is the host that the greeting names, in lower
 * case, or "" when it names none. MORE: the greeting is not complete yet. BAD: the bytes
 * are no greeting; ERR says what is wrong.
 */
enum hello_answer http_hello_read(struct str bytes, char name[NETWORK_NAME_MAX + 1],
				  struct err *err);
