/*
 * validate: one value against one JSON Schema (2020-12, and draft-07 when it says so). The only
 * check there is: of the schemas made from a tool's rows, and of foreign ones. Unknown
 * keywords are ignored, unknown dialects refused; `format` and `content…` are remarks. Nothing
 * is ever fetched: a reference to what is not in the schema is a refusal. Work, depth and time
 * are bounded: a schema that asks for more is a refusal too.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "tool/validate_index.h"

#include <stdbool.h>
#include <stddef.h>

enum { VALIDATE_POINTER_MAX = 256, VALIDATE_RULE_MAX = 768 };

/* One rule that does not hold, and its place. All texts are cut on character borders. */
struct validate_problem {
	/* JSON pointer in the value, "" for the whole */
	char pointer[VALIDATE_POINTER_MAX];
	const char *keyword; /* of the schema: "type", "required", … */
	/* goes on after a subject: "must be a string, not 5" */
	char rule[VALIDATE_RULE_MAX];
};

struct validate_options {
	/* schemas that references may name, by address; dialects of their own too. NULL: none */
	const struct value *documents;
	bool draft_07; /* what a schema speaks that does not say */
};

/* PROBLEM (may be NULL) is filled with the first thing wrong when the answer is false. */
bool validate_value(const struct value *schema, const struct value *value,
		    struct validate_problem *problem);
/* The same; OPTIONS may be NULL. */
bool validate_with(const struct validate_options *options, const struct value *schema,
		   const struct value *value, struct validate_problem *problem);

/* What the files of validate share. */

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

/* Count STEPS of work; false (and exhausted) over the bound. */
bool validate_spend(struct validate_check *check, size_t steps);

/*
 * Nothing can be said of this value, not even that it does not fit one form of several: the
 * sentence is kept wherever we are. Always false.
 */
bool validate_give_up(struct validate_check *check, const struct validate_place *at,
		      const char *keyword, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Words for sentences. */
void validate_add_quoted(struct buf *out, struct str text); /* "x", cut */

/* The keywords by family. */
bool validate_reference(struct validate_check *check, const struct value *schema,
			const struct value *value, const struct validate_place *at);
