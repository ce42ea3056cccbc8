/* validate_parts: what the files of validate share. */
#pragma once
#include "base/buf.h"
#include "base/value.h"
#include "tool/validate.h"
#include "tool/validate_index.h"

#include <stdbool.h>
#include <stddef.h>

/* Where in the value we are: a chain on the stack, innermost first. */
struct validate_place {
	const struct validate_place *above; /* NULL: the whole value */
	const char *key;                    /* NULL: an item */
	size_t index;
};

/* The resources that led here, innermost first: what $dynamicRef looks through. */
struct validate_scope {
	const struct validate_scope *outer;
	const struct validate_resource *resource;
};

/* Which members or items of the value at hand have been looked at. */
struct validate_marks {
	unsigned char *seen;
	size_t count;
};

/* Expressions made last; a schema in use has fewer. */
enum { VALIDATE_PATTERNS = 16 };
struct validate_patterns {
	struct validate_pattern *made;
	size_t next;
	int64_t spent_us;
};

struct validate_check {
	struct validate_index index;
	const struct validate_scope *scope;
	const struct value *documents; /* what the caller handed in, or NULL */
	struct validate_marks *marks;  /* NULL when nobody asks */
	struct validate_patterns patterns;
	struct validate_problem *problem; /* NULL while only the answer counts */
	size_t work;                      /* steps done */
	unsigned depth;                   /* schemas applied inside each other */
	bool old_unless_told; /* the dialect of a schema that names none: draft-07 */
	bool exhausted;       /* a bound was met: every answer is false */
	bool refused;         /* nothing can be said: every answer is false */
	struct validate_problem refusal; /* why */
};

/* SCHEMA for VALUE at AT: the recursion of all parts. */
bool validate_apply(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at);

/* The same of a part of the value, whose marks are its own. */
bool validate_below(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at);

/* The same of one form among several: its marks count when it fits. */
bool validate_branch(struct validate_check *check, const struct value *schema,
		     const struct value *value, const struct validate_place *at);

/* Writes no problem. */
bool validate_try_below(struct validate_check *check, const struct value *schema,
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

/*
 * Nothing can be said of this value, not even that it does not fit one form of several: the
 * sentence is kept wherever we are. Always false.
 */
bool validate_give_up(struct validate_check *check, const struct validate_place *at,
		      const char *keyword, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Words for sentences. */
void validate_add_value(struct buf *out, const struct value *value); /* `the string "x"` */
void validate_add_quoted(struct buf *out, struct str text);          /* "x", cut */
void validate_add_keys(struct buf *out, const struct value *object); /* a, b, c */
const char *validate_nearest_key(const struct value *object, const char *word);

/* Does PATTERN (a schema's regular expression) match somewhere in TEXT? */
enum validate_match { MATCH_NO, MATCH_YES, MATCH_BROKEN /* refused, problem written */ };
enum validate_match validate_match(struct validate_check *check, struct str pattern,
				   struct str text, const struct validate_place *at);

void validate_patterns_fini(struct validate_patterns *patterns);

bool validate_is_false(const struct value *schema);

void validate_marks_init(struct validate_marks *marks, const struct value *value);
void validate_marks_fini(struct validate_marks *marks);
void validate_mark(struct validate_check *check, size_t index);
void validate_mark_all(struct validate_check *check);

/* The keywords by family. */
bool validate_reference(struct validate_check *check, const struct value *schema,
			const struct value *value, const struct validate_place *at);
bool validate_type(struct validate_check *check, const struct value *schema,
		   const struct value *value, const struct validate_place *at);
bool validate_unevaluated(struct validate_check *check, const struct value *schema,
			  const struct value *value, const struct validate_place *at);
bool validate_number(struct validate_check *check, const struct value *schema,
		     const struct value *value, const struct validate_place *at);
bool validate_string(struct validate_check *check, const struct value *schema,
		     const struct value *value, const struct validate_place *at);
bool validate_array(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at);
bool validate_object(struct validate_check *check, const struct value *schema,
		     const struct value *value, const struct validate_place *at);
