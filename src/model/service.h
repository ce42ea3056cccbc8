/*
 * service: what the services of every API have in common: JSON that is nearly right, and
 * error objects in all the shapes that gateways make of them. Tolerant on purpose: what
 * it accepts is what servers really send.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * TEXT as JSON; invalid UTF-8 and halves of surrogate pairs become U+FFFD. False (EPROTO)
 * with COMPLAINT and where it fails. The caller frees *ROOT.
 */
bool service_parse(struct str text, const char *complaint, struct value **root,
		   struct err *err);

/*
 * The same of an event of a stream. *ROOT stays NULL where there is nothing in it, and where it
 * is the mark "[DONE]", which sets *END: not of every API, but gateways that speak several say
 * it in all.
 */
bool service_parse_event(struct str data, struct value **root, bool *end, struct err *err);
/* The same of an answer that came whole; one that is an error is ERR (service_refuse). */
bool service_parse_whole(struct str body, struct value **root, struct err *err);

/*
 * The first of OBJECT's members named by KEYS (NULL ends them) that is a text with
 * something in it.
 */
struct str service_first_text(const struct value *object, const char *const *keys);
/* The member KEY as a count of tokens; 0 when there is none. */
uint64_t service_count(const struct value *object, const char *key);

/* Is ROOT, which came as an answer or an event of one, an error? */
bool service_is_error(const struct value *root);
/* ERR from it (codes: failure.h). Always false. */
bool service_refuse(const struct value *root, struct err *err);
/*
 * Append the message in an error's BODY: "MESSAGE (TYPE), request ID" as far as they are
 * said. False when there is none. A provider's `error`.
 */
bool service_error(struct str body, struct buf *out);
