/*
 * failure: the meaning of a service's refusal: of which kind it is, and whether asking
 * again may help. The kinds are errno values, in struct err's code while a try is judged:
 *   EACCES   the key
 *   E2BIG    the request is larger than the model's context
 *   EBUSY    too many requests
 *   EAGAIN   a passing fault of the service
 *   EINVAL   the service will not take this request
 *   EPROTO   the answer is torn or empty
 *   ENODATA  the answer is complete, but has only blanks; the same request would get the
 *            same
 *   EBADMSG  the answer is not that of a model, and would not be one the next time
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

/*
 * The code for an HTTP STATUS (or the same number in an error object; 0: none) and the
 * MESSAGE.
 */
int failure_code(int64_t status, struct str message);

bool failure_may_pass(int code);

/*
 * Seconds before the next try after TRIES repetitions, when the service named no time.
 * CHANCE (0 to 1) keeps clients from coming back at the same time.
 */
double failure_wait_s(int tries, double chance);

/* The code that model_ask returns for CODE. */
int failure_public_code(int code);

/* Does MESSAGE say, in any service's wording, that the context is too small? */
bool failure_is_overflow(struct str message);

/* The service and the model that were asked, for the sentence about the refusal. */
struct failure_place {
	const char *host, *model, *key_name;
	bool has_key;
};

/*
 * Set ERR from an HTTP answer whose STATUS is no success: the service's words, and
 * advice. MESSAGE is the sentence that was found in BODY, or empty. Always false.
 */
bool failure_refuse(const struct failure_place *place, int64_t status, struct str message,
		    struct str body, struct err *err);

/*
 * Append MESSAGE of a service, made safe for one line of ours: escaped, at most
 * FAILURE_QUOTE_MAX bytes.
 */
enum { FAILURE_QUOTE_MAX = 500 };
void failure_quote(struct str message, struct buf *out);

/*
 * Shared by the services of every API: JSON that is nearly right, and error objects in
 * all the forms that gateways make of them. These functions are tolerant on purpose:
 * everything that they accept beyond the APIs is sent by real servers.
 */

/*
 * Parse TEXT as JSON. Invalid UTF-8 and halves of surrogate pairs become U+FFFD. False
 * (EPROTO): ERR has COMPLAINT and the place of the error. The caller frees *ROOT.
 */
bool failure_parse(struct str text, const char *complaint, struct value **root,
		   struct err *err);

/*
 * The same for an event of a stream. *ROOT stays NULL for an empty event and for the mark
 * "[DONE]", which sets *END. Not every API has this mark, but gateways that speak several
 * APIs send it in all of them.
 */
bool failure_parse_event(struct str data, struct value **root, bool *end, struct err *err);
/*
 * The same for an answer that came as a whole. An error in it becomes ERR
 * (failure_refuse_status).
 */
bool failure_parse_whole(struct str body, struct value **root, struct err *err);

/* The first non-empty text among OBJECT's members with the names KEYS (NULL-ended). */
struct str failure_first_text(const struct value *object, const char *const *keys);
/* The member KEY as a count of tokens; 0 when there is none. */
uint64_t failure_count(const struct value *object, const char *key);

/* Is ROOT, an answer or an event of an answer, an error? */
bool failure_is_error(const struct value *root);
/* Set ERR from the error in ROOT. Always false. */
bool failure_refuse_status(const struct value *root, struct err *err);
/*
 * Append the message in an error's BODY: "MESSAGE (TYPE), request ID", as far as BODY has
 * these. False when there is no message. It is a provider's `error`.
 */
bool failure_error(struct str body, struct buf *out);
