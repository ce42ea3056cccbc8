/*
 * refresh: the renewal of a login, as bytes. An access token lives for hours. The client
 * renews it by a POST to the address of `refresh` (OAuth 2.0, RFC 6749, section 6), and
 * the service then gives new tokens and, as a rule, takes the old ones no more. In a cell
 * the client has phantoms only:
 *
 *	request   a member of `send` holds its phantom, and the service gets the token in its
 *	          place. Another token, a code of a login, and a nested member are refused.
 *	          Beside grant_type and client_id all else is left out (a scope, a time, a
 *	          binding), so that the person's file gets a token for the same as before
 *	answer    the members of `store` become phantoms again, and their tokens go to the
 *	          front, which writes them into the file of the login (broker/login.h)
 *
 * A phantom stands for a place of the file, so it stays the same when the token changes.
 *
 * A body is JSON or a form. An answer of the service is JSON, and it is read whole. A
 * token-like member that no rule names never reaches the cell: refresh_check looks for
 * one, by its name or by the beginning of its value, in all answers of the hosts of such a
 * credential that are JSON. Fields of a head with such a name are left out.
 *
 * Everything here is pure: bytes in, bytes out. No sentence quotes a value.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/credentials/credential.h"
#include "proxy/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REFRESH_BODY_MAX = 64 << 10,  /* of a request: two tokens and some words */
	REFRESH_ANSWER_MAX = 1 << 20, /* of an answer that is searched for tokens */
	REFRESH_TOKEN_MAX = 4096,     /* the longest known ones are JWTs of 2 KiB */
};

/* A login as one cell has it. All is borrowed. */
struct refresh {
	const struct credential *credential;
	/* one for each member of its `refresh.answers`; NULL: the cell has no such login */
	const char *const *phantoms;
};

/* Tokens in the order of `refresh.answers`; NULL: there is none. */
struct refresh_tokens {
	char *items[CREDENTIAL_TOKENS_MAX];
	/* for so many seconds from the answer on; 0: the answer does not say */
	int64_t expires_s;
};

bool refresh_tokens_are_any(const struct refresh_tokens *tokens);
/* Wipes and frees them. */
void refresh_tokens_fini(struct refresh_tokens *tokens);
/* Append TOKENS as a JSON object. OUT holds them then. */
bool refresh_tokens_print(const struct credential *credential,
			  const struct refresh_tokens *tokens, struct buf *out);
/* Fill TOKENS, which is all zero, from such an object, or from an answer of a service. */
bool refresh_tokens_parse(const struct credential *credential, struct str text,
			  struct refresh_tokens *tokens, struct err *err);

/*
 * Judge BODY, of a request with the content type TYPE, and append to OUT what the service
 * gets: TOKENS in the places of the phantoms. TOKENS may be NULL: BODY is only judged.
 */
bool refresh_request(const struct refresh *refresh, struct str type, struct str body,
		     const struct refresh_tokens *tokens, struct buf *out, struct err *err);

enum refresh_outcome {
	/* The cell must not get it: ERR says why. FRESH may have tokens all the same. */
	REFRESH_BAD,
	REFRESH_RENEWED, /* FRESH has the new tokens */
	REFRESH_STALE,   /* the service takes the token that was sent no more */
	REFRESH_REFUSED, /* another answer without tokens */
};

/*
 * Read BODY, of an answer with STATUS to a renewal. FRESH, which is all zero, gets the
 * tokens, where the answer is no refusal; the caller frees them. OUT is the body that the
 * cell gets, unless it is bad.
 */
enum refresh_outcome refresh_answer(const struct refresh *refresh, unsigned status,
				    struct str body, struct refresh_tokens *fresh,
				    struct buf *out, struct err *err);

enum refresh_field {
	REFRESH_PLAIN,
	REFRESH_JSON,  /* the body is JSON, and is searched */
	REFRESH_TOKEN, /* holds a token, by its name, and is left out */
};

/* Returns the kind of FIELD, a header field of an answer of such a service. */
enum refresh_field refresh_field(const struct http_field *field);
/*
 * Has the JSON TEXT no token-like member besides phantoms, and no text that begins as the
 * keys of the credential do (`shape`)?
 */
bool refresh_check(const struct refresh *refresh, struct str text, struct err *err);
