/*
 * request: judges one request of a cell to a service, and carries the answer back. The
 * rules, each refused with 403 in the form of the service's errors, and with a sentence
 * for the result of the call:
 *
 *	names     Host and the door name one host. HTTP/1.1 only, read strictly
 *	          (proxy/http.h); each request on a connection is judged for itself
 *	allow     where the credential has `allow`, method and decoded path fit a rule. A
 *	          path is refused that two programs could decode differently: "..", "//",
 *	          "%2f", a control character, an escape that is escaped
 *	forge     where the credential has `repositories`, its key goes with git's requests and
 *	          with those of the API for one of them, and with those of the API that `allow`
 *	          lists and that are for no single repository. Any other request that reads
 *	          goes without the key, and one that writes is refused
 *	place     the phantom stands once in one of the credential's places, where the secret
 *	          replaces it. Elsewhere it is text. Without it `anonymous` lets a request go,
 *	          and `keyless` those that it lists
 *	foreign   no other key travels: not in the places of the credential, and not in a header
 *	          or a part of the query from which services take keys (key_headers and
 *	          key_queries of request.c). A path of `foreign` lets such keys pass
 *	upgrade   to a WebSocket only, with `websocket`, and without its extensions
 *	renewal   a POST to the URL of `refresh` renews a login. It needs no rule of `allow`,
 *	          and its head holds no key at all
 *	encoding  the answer is asked for as it is: Accept-Encoding is identity, and there is
 *	          no Range, because two answers could split the secret
 *
 * Headers between two neighbours (RFC 9110, section 7.6.1) end here, and those by which
 * some services take another method or path. Expect is answered here. Redirects pass and
 * are not followed: the client goes where it is sent, and is judged again. Cookies that a
 * service sets are left out, as those of a request would be refused.
 *
 * There are two doors. The plain one listens on the loopback of the cell and takes
 * `/NAME/path`, where NAME is the credential; its host is the first of `hosts`. The other
 * one is the end of a TLS connection to one host (broker/tls.h).
 *
 * One exchange, as the broker does it:
 *
 *	request_read        READY: refused, or it wants a secret, or goes as it is
 *	request_print       the head that the service gets; its body follows by body_take
 *	reply_read          an interim one is dropped, and the next head is read
 *	reply_print         the head that the cell gets, scrubbed
 *	reply_carry_…       the body: taken apart, scrubbed, put together
 *
 * Everything here is pure: bytes in, bytes out.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "broker/scrub.h"
#include "policy/credentials/credential.h"
#include "policy/credentials/forge.h"
#include "policy/network.h"
#include "proxy/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A credential of this cell, and its phantom. */
struct request_key {
	const struct credential *credential;
	const char *phantom;
	/* of a forge: the names of the repositories for which it holds, NULL-ended */
	const char *const *repositories;
	bool renews; /* the cell may renew this login: requests to the URL of `refresh` */
};

/* Where a request came in. */
struct request_door {
	const struct request_key *keys;
	size_t count;
	/* The host that a TLS connection was made to. NULL: the plain door. */
	const struct network_host *host;
	uint16_t port; /* of HOST; of the plain door */
};

enum request_verdict {
	REQUEST_REFUSED, /* `status` and the sentence say why */
	REQUEST_BARE,    /* it goes as it is: request_print with an empty secret */
	REQUEST_KEYED,   /* it goes with the secret of `key` */
	/* it renews a login: broker/refresh.h judges its body and the answer */
	REQUEST_RENEWS,
};

/* Views of the bytes that were read. */
struct request {
	struct http_head head;
	enum request_verdict verdict;
	unsigned status;                  /* of a refusal: 400, 403, 404 */
	const struct request_key *key;    /* NULL: the request names none */
	const struct network_entry *host; /* where it goes; NULL like `key` */
	struct str path; /* the target without the door's prefix, query included */
	bool upgrades;   /* to a WebSocket */
	bool expects; /* the client waits for REQUEST_CONTINUE before it sends a body */
	bool closes;  /* the client wants no further request on this connection */
	/* of REQUEST_KEYED: where the phantom stands, a field or a part of the query */
	const struct credential_place *place;
	struct str stands;
	/* of a forge: what the request is for, and whether the key may go with it */
	struct forge_request forge;
	enum request_key_right {
		KEY_NEEDED,   /* unless the credential is `anonymous` */
		KEY_OPTIONAL, /* of `keyless`; and git asks without a key first */
		KEY_WITHHELD, /* a phantom is left out, and the request goes without a key */
	} right;
};

#define REQUEST_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

/*
 * Read and judge the request at the beginning of BYTES, all that the client has sent so
 * far. BAD: ERR says which rule of HTTP the head breaks; the connection must end. READY:
 * REQUEST is filled; where its verdict is REFUSED, ERR says which rule it breaks and how
 * the person opens it. No sentence quotes a value.
 */
enum request_answer request_read(struct str bytes, const struct request_door *door,
				 struct request *request, struct err *err);

/*
 * Append the head as the service gets it, with SECRET in the place of the phantom. OUT
 * holds the secret then. False when OUT is full. With REQUEST_RENEWS, SECRET is the whole
 * body, which follows the head.
 */
bool request_print(const struct request *request, struct str secret, struct buf *out);

/*
 * Append a whole answer of the broker's own: STATUS (400, 403, 404, 502, 504) with an
 * object in the form ERRORS that says SENTENCE. It ends the connection.
 */
bool request_print_error(enum credential_errors errors, unsigned status,
			 const char *sentence, struct buf *out);

/* The head of a service's answer. */
struct reply {
	struct http_head head;
	enum body_kind body; /* for this request: none after HEAD, and for 204 and 304 */
	bool interim;        /* 100 to 199, but 101: drop it and read the next head */
	bool upgraded;       /* 101: from here on bytes pass in both directions */
	bool reusable;       /* the connection to the service takes another request */
};

/*
 * Read the head of an answer to REQUEST. BAD: the service breaks a rule, or has encoded or
 * split what must be scrubbed; ERR says so, for a 502. The connection must end.
 */
enum request_answer reply_read(struct str bytes, const struct request *request,
			       struct reply *reply, struct err *err);

/*
 * Append the head as the cell gets it. SCRUB (or NULL) takes the secret out. False when
 * OUT is full.
 */
bool reply_print(const struct reply *reply, const struct scrub *scrub, struct buf *out);

/* The body of an answer on its way, or the bytes after an upgrade. */
struct reply_carry {
	struct body body;
	struct scrub_stream stream;
};

/* SCRUB (or NULL) is borrowed until reply_carry_fini. */
void reply_carry_init(struct reply_carry *carry, const struct reply *reply,
		      const struct scrub *scrub);

/*
 * Append to OUT what the cell gets of BYTES. Returns how many of them belong to the body.
 * Afterwards `body.done` says that the body is whole, and `body.broken` that it is
 * malformed or OUT is full: both connections must end. A piece of a body goes on at once.
 */
size_t reply_carry_take(struct reply_carry *carry, struct str bytes, struct buf *out);

/*
 * The service has closed. Append what was held back. False: the body is not whole, and
 * the connection to the cell must end without a further byte.
 */
bool reply_carry_close(struct reply_carry *carry, struct buf *out);
void reply_carry_fini(struct reply_carry *carry);
