/* validate_parts: what the files of validate share. */
#pragma once
#include "base/buf.h"
#include "base/value.h"
#include "validate/validate.h"

#include <stdbool.h>
#include <stddef.h>

/* Where in the value we are: a chain on the stack, innermost first. */
struct validate_place {
	const struct validate_place *above; /* NULL: the whole value */
	const char *key;                    /* NULL: an item */
	size_t index;
};

struct validate_check {
	const struct value *root;         /* the whole schema, for references */
	struct validate_problem *problem; /* NULL while only the answer counts */
	size_t work;                      /* steps done */
	unsigned depth;                   /* schemas applied inside each other */
	bool old;                         /* draft-07 and before: $ref stands alone */
	bool exhausted;                   /* a bound was met: every answer is false */
};

/* SCHEMA for VALUE at AT: the recursion of all parts. */
bool validate_apply(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at);

/* The same, with no problem written. */
bool validate_try(struct validate_check *check, const struct value *schema,
		  const struct value *value, const struct validate_place *at);

/* Count STEPS of work; false (and exhausted) over the bound. */
bool validate_spend(struct validate_check *check, size_t steps);

/* Fill in the problem, if one is wanted. Always false. */
bool validate_refuse(struct validate_check *check, const struct validate_place *at,
		     const char *keyword, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * NUMBER rounded, halves away from zero; what is not finite stays. round() of libm would load
 * that at every start, for 60 us.
 */
double validate_nearest_whole(double number);

/* Words for sentences. */
void validate_add_value(struct buf *out, const struct value *value); /* `the string "x"` */
void validate_add_quoted(struct buf *out, struct str text);          /* "x", cut */
void validate_add_keys(struct buf *out, const struct value *object); /* a, b, c */
const char *validate_nearest_key(const struct value *object, const char *word);

/* Does PATTERN (a schema's regular expression) match somewhere in TEXT? */
enum validate_match { MATCH_NO, MATCH_YES, MATCH_BROKEN /* refused, problem written */ };
enum validate_match validate_match(struct validate_check *check, struct str pattern,
				   struct str text, const struct validate_place *at);

bool validate_number(struct validate_check *check, const struct value *schema,
		     const struct value *value, const struct validate_place *at);
bool validate_string(struct validate_check *check, const struct value *schema,
		     const struct value *value, const struct validate_place *at);
bool validate_array(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at);
bool validate_object(struct validate_check *check, const struct value *schema,
		     const struct value *value, const struct validate_place *at);
