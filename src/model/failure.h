/*
 * failure: what it means that a service refused: which kind, and whether asking again may
 * help. The kinds are errno values, in struct err's code while a try is judged:
 *   EACCES the key; E2BIG more than the model's context; EBUSY too many requests;
 *   EAGAIN a passing fault of the service; EINVAL it will not take this request;
 *   EPROTO torn or empty; ENODATA whole, but of blanks alone (asked again as it is, a model
 *   says nothing again); EBADMSG no answer of a model at all, and would not become one
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

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
struct buf;
void failure_quote(struct str message, struct buf *out);
