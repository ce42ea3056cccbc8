/*
 * failure: what it means that a service refused: which kind, and whether asking again may
 * help. The kinds are errno values, in struct err's code while a try is judged:
 *   EACCES the key; E2BIG more than the model's context; EBUSY too many requests;
 *   EAGAIN a passing fault of the service; EINVAL it will not take this request;
 *   EPROTO torn or empty; ENODATA whole, but of blanks alone (asked again as it is, a model
 *   says nothing again); EBADMSG no answer of a model at all, and would not become one
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
 * From an HTTP status (or the same number in an error object; 0: none) and the message.
 */
int failure_code(int64_t status, struct str message);

bool failure_may_pass(int code);

/*
 * Seconds before the next try after TRIES further ones, when the service did not say;
 * CHANCE (0 to 1) keeps clients from coming back together.
 */
double failure_wait_s(int tries, double chance);

/* The code that model_ask promises for it. */
int failure_public_code(int code);

/* Does MESSAGE say, in any service's wording, that the context is too small? */
bool failure_is_overflow(struct str message);

/* The service and the model that were asked, for the sentence about the refusal. */
struct failure_place {
	const char *host, *model, *key_name;
	bool has_key;
};

/*
 * ERR from an HTTP answer whose STATUS is no success: what the service said, and what to
 * do. MESSAGE is the sentence that was found in BODY, or empty. Always false.
 */
bool failure_refuse(const struct failure_place *place, int64_t status, struct str message,
		    struct str body, struct err *err);

/*
 * Append what a service said, fit for one line of ours: escaped, at most
 * FAILURE_QUOTE_MAX bytes.
 */
enum { FAILURE_QUOTE_MAX = 500 };
void failure_quote(struct str message, struct buf *out);

/*
 * What the services of every API have in common: JSON that is nearly right, and error
 * objects in all the shapes that gateways make of them. Tolerant on purpose: what it
 * accepts is what servers really send.
 */

/*
 * TEXT as JSON; invalid UTF-8 and halves of surrogate pairs become U+FFFD. False (EPROTO)
 * with COMPLAINT and where it fails. The caller frees *ROOT.
 */
bool failure_parse(struct str text, const char *complaint, struct value **root,
		   struct err *err);

/*
 * The same of an event of a stream. *ROOT stays NULL where there is nothing in it, and where it
 * is the mark "[DONE]", which sets *END: not of every API, but gateways that speak several say
 * it in all.
 */
bool failure_parse_event(struct str data, struct value **root, bool *end, struct err *err);
/* The same of an answer that came whole; one that is an error is ERR (failure_refuse_status). */
bool failure_parse_whole(struct str body, struct value **root, struct err *err);

/*
 * The first of OBJECT's members named by KEYS (NULL ends them) that is a text with
 * something in it.
 */
struct str failure_first_text(const struct value *object, const char *const *keys);
/* The member KEY as a count of tokens; 0 when there is none. */
uint64_t failure_count(const struct value *object, const char *key);

/* Is ROOT, which came as an answer or an event of one, an error? */
bool failure_is_error(const struct value *root);
/* ERR from it (codes: failure.h). Always false. */
bool failure_refuse_status(const struct value *root, struct err *err);
/*
 * Append the message in an error's BODY: "MESSAGE (TYPE), request ID" as far as they are
 * said. False when there is none. A provider's `error`.
 */
bool failure_error(struct str body, struct buf *out);
