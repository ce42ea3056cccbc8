/*
 * validate_index: the parts of a schema that have names of their own ($id, $anchor,
 * $dynamicAnchor), and their dialects. Parts are indexed only when a reference needs
 * it. Other documents come only from the caller.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

struct validate_check;
struct validate_place;

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
