/*
 * validate: checks one value against one JSON Schema (2020-12, or draft-07 when it says
 * so). All schemas are checked here, those made from a tool's rows and foreign ones.
 * Unknown keywords are ignored; a schema of an unknown dialect is refused; `format` and
 * `content…` have no effect. Nothing is ever fetched: a reference to something outside
 * the schema is a refusal. Work, depth and time are bounded: a schema that needs more
 * is refused, too.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

enum { VALIDATE_POINTER_MAX = 256, VALIDATE_RULE_MAX = 768 };

/* One broken rule and its place. All texts are cut between characters. */
struct validate_problem {
	/* JSON pointer in the value, "" for the whole */
	char pointer[VALIDATE_POINTER_MAX];
	const char *keyword; /* of the schema: "type", "required", … */
	/* continues a sentence after its subject: "must be a string, not 5" */
	char rule[VALIDATE_RULE_MAX];
};

struct validate_options {
	/* schemas that references may name, by address; own dialects, too. NULL: none */
	const struct value *documents;
	bool draft_07; /* the dialect of a schema that names none is draft-07 */
};

/* Does VALUE fit SCHEMA? When it does not, PROBLEM (may be NULL) gets the first error. */
bool validate_value(const struct value *schema, const struct value *value,
		    struct validate_problem *problem);
/* Like validate_value, with OPTIONS (or NULL). */
bool validate_with(const struct validate_options *options, const struct value *schema,
		   const struct value *value, struct validate_problem *problem);

/* Shared by validate.c and validate_index.c only. */

/*
 * The index (validate_index.c): the parts of a schema that have names of their own ($id, $anchor,
 * $dynamicAnchor), and their dialects. Parts are indexed only when a reference needs
 * it. Other documents come only from the caller.
 */

/*
 * A schema with an address of its own: the whole schema, a part with $id, or another
 * document.
 */
struct validate_resource {
	const struct value *root;
	char *uri;             /* without fragment; "" when it has no address */
	const char *retrieved; /* key among the caller's documents, or NULL */
	bool old;              /* draft-07: $ref hides its siblings, $id makes anchors */
	bool asserts;          /* its dialect has type, minimum and the like */
	bool walked;           /* its names and those of its parts are indexed */
};

struct validate_anchor {
	const struct validate_resource *resource;
	struct str name;
	const struct value *schema;
	bool dynamic;
};

struct validate_index {
	struct validate_resource **resources; /* the first is the whole schema */
	struct validate_anchor *anchors;
	size_t resource_count, anchor_count;
};

/* The current place in the value: a chain on the stack, innermost first. */
struct validate_place {
	const struct validate_place *above; /* NULL: the whole value */
	const char *key;                    /* NULL: an item */
	size_t index;
};

/*
 * The resources on the way to the current schema, innermost first. $dynamicRef searches
 * them.
 */
struct validate_scope {
	const struct validate_scope *outer;
	const struct validate_resource *resource;
};

/* The members or items of the current value that some keyword has evaluated. */
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
	const struct value *documents; /* the documents of the options, or NULL */
	struct validate_marks *marks;  /* NULL when no keyword needs them */
	struct validate_patterns patterns;
	struct validate_problem *problem; /* NULL while only the answer matters */
	size_t work;                      /* steps done */
	unsigned depth;                   /* schemas applied inside each other */
	bool old_unless_told; /* the dialect of a schema that names none is draft-07 */
	bool exhausted;       /* a bound was reached: every answer is false */
	bool refused;         /* the value cannot be checked: every answer is false */
	struct validate_problem refusal; /* the reason */
};

/* Check VALUE at AT against SCHEMA. All keywords recurse through this function. */
bool validate_apply(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at);

/* Count STEPS of work. False (and `exhausted`) when over the bound. */
bool validate_spend(struct validate_check *check, size_t steps);

/*
 * The value cannot be checked, not even whether it fits one of several forms. The
 * sentence is kept at any depth. Always returns false.
 */
bool validate_give_up(struct validate_check *check, const struct validate_place *at,
		      const char *keyword, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Append TEXT in quotes, cut. */
void validate_add_quoted(struct buf *out, struct str text);

/*
 * Make SCHEMA the first resource. False: its dialect is unknown, and the problem is
 * written. The caller calls validate_index_fini in both cases.
 */
bool validate_index_start(struct validate_check *check, const struct value *schema);
void validate_index_fini(struct validate_index *index);

/* The resource that begins at SCHEMA, inside RESOURCE, by its $id; else RESOURCE. */
const struct validate_resource *validate_index_of(struct validate_check *check,
						  const struct value *schema,
						  const struct validate_resource *resource);

/* Check the $ref and $dynamicRef of SCHEMA. */
bool validate_index_reference(struct validate_check *check, const struct value *schema,
			      const struct value *value, const struct validate_place *at);

/*
 * Resolving references between schemas (RFC 3986, section 5.2). Only names are handled;
 * nothing is ever fetched.
 */

/* Maximum length of a name; usual addresses are a tenth as long. */
enum { VALIDATE_URI_MAX = 2048 };

/*
 * Append the target of REFERENCE, without its fragment, relative to BASE. An empty BASE
 * appends REFERENCE unchanged. False when OUT is full.
 */
bool validate_index_uri_resolve(struct str base, struct str reference, struct buf *out);
