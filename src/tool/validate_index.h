/*
 * validate_index: which parts of a schema have names of their own ($id, $anchor,
 * $dynamicAnchor) and in which dialect they speak. Looked at as far as references ask for it;
 * other documents are those the caller handed in.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

struct validate_check;

/* A schema with an address of its own: the whole one, a part with $id, another document. */
struct validate_resource {
	const struct value *root;
	char *uri;             /* without fragment; "" when nobody gave it one */
	const char *retrieved; /* a document's key among those handed in, or NULL */
	bool old;              /* draft-07: $ref stands alone, $id makes anchors */
	bool asserts;          /* its dialect knows type, minimum and their like */
	bool walked;           /* its names and those of its parts are in the index */
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

/*
 * The whole SCHEMA as the first resource. False: its dialect is unknown, and the problem is
 * written. The index is the caller's to end either way.
 */
bool validate_index_start(struct validate_check *check, const struct value *schema);
void validate_index_fini(struct validate_index *index);

/* The resource that SCHEMA, met inside RESOURCE, begins by its $id; else RESOURCE. */
const struct validate_resource *validate_index_of(struct validate_check *check,
						  const struct value *schema,
						  const struct validate_resource *resource);

/*
 * What one name of a schema means beside another (RFC 3986, section 5.2). Names only:
 * nothing is ever fetched.
 */

/* Longest name kept: addresses of schemas have a tenth of it. */
enum { VALIDATE_URI_MAX = 2048 };

/*
 * Append what REFERENCE (its fragment is left out) means where BASE holds; an empty BASE leaves
 * it as it stands. False at OUT's ceiling.
 */
bool validate_index_uri_resolve(struct str base, struct str reference, struct buf *out);
