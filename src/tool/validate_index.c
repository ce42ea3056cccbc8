/*
 * validate_index: finds the named parts of a schema by a walk, and resolves references
 * to them.
 */

#include "tool/validate.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* For the error about an unknown dialect, or a dialect with unknown rules. */
#define VALIDATE_DIALECTS "2020-12 and draft-07"

/* The target of a reference. */
struct validate_target {
	const struct value *schema; /* NULL: no part has this name */
	const struct validate_resource *resource;
	/* the name, when it comes from a $dynamicAnchor; else empty */
	struct str dynamic;
};

/* Resolves a reference against its base. */

struct parts {
	struct str scheme;    /* including its ':' */
	struct str authority; /* including its "//" */
	struct str path;
	struct str query; /* including its '?' */
};

static size_t position(struct str text, char wanted)
{
	const char *found = text.size ? memchr(text.data, wanted, text.size) : NULL;

	return found ? (size_t)(found - text.data) : text.size;
}

static struct str take(struct str *rest, size_t size)
{
	struct str part = str_part(*rest, 0, size);

	*rest = str_part(*rest, size, rest->size);
	return part;
}

static bool is_scheme(struct str text)
{
	static const char more[] = {'0', '1', '2', '3', '4', '5', '6',
				    '7', '8', '9', '+', '-', '.'};

	if (text.size == 0)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && (i == 0 || !memchr(more, c, sizeof(more))))
			return false;
	}
	return true;
}

static struct parts split(struct str text)
{
	struct parts parts = {0};
	size_t colon = position(text, ':');

	if (colon < text.size && is_scheme(str_part(text, 0, colon)))
		parts.scheme = take(&text, colon + 1);
	if (str_starts(text, STR("//"))) {
		struct str rest = str_part(text, 2, text.size);
		size_t slash = position(rest, '/');
		size_t query = position(rest, '?');

		parts.authority = take(&text, 2 + (slash < query ? slash : query));
	}
	parts.path = take(&text, position(text, '?'));
	parts.query = text;
	return parts;
}

/*
 * Append PATH without its "." and ".." parts (RFC 3986, 5.2.4). ".." never removes
 * bytes that OUT had before.
 */
static bool add_path(struct str path, struct buf *out)
{
	size_t from = out->size;
	bool fits = true;

	while (path.size && fits) {
		size_t end = path.data[0] == '/' ? 1 : 0;
		struct str part;

		end += position(str_part(path, end, path.size), '/');
		part = take(&path, end);
		if (str_is(part, "/.") || str_is(part, "/..")) {
			while (str_is(part, "/..") && out->size > from) {
				char last = out->data[out->size - 1];

				buf_truncate(out, out->size - 1);
				if (last == '/')
					break;
			}
			if (path.size == 0)
				fits = buf_addc(out, '/');
		} else {
			fits = buf_addstr(out, part);
		}
	}
	return fits;
}

static bool add_merged(const struct parts *base, struct str path, struct buf *out)
{
	struct buf merged;
	size_t folder = 0;
	bool fits = true;

	for (size_t i = 0; i < base->path.size; i++)
		folder = base->path.data[i] == '/' ? i + 1 : folder;
	buf_init(&merged, VALIDATE_URI_MAX);
	if (base->authority.size && base->path.size == 0)
		fits = buf_addc(&merged, '/');
	fits = fits && buf_addstr(&merged, str_part(base->path, 0, folder)) &&
	       buf_addstr(&merged, path) && add_path(buf_str(&merged), out);
	buf_fini(&merged);
	return fits;
}

/* The part of REFERENCE behind '#'. *BEFORE (may be NULL) gets the part before it. */
static struct str validate_uri_fragment(struct str reference, struct str *before)
{
	size_t mark = position(reference, '#');

	if (before)
		*before = str_part(reference, 0, mark);
	return str_part(reference, mark + 1, reference.size);
}

bool validate_index_uri_resolve(struct str base, struct str reference, struct buf *out)
{
	struct parts own, outer;
	bool fits;

	(void)validate_uri_fragment(reference, &reference);
	(void)validate_uri_fragment(base, &base);
	if (base.size == 0)
		return buf_addstr(out, reference);
	own = split(reference);
	outer = split(base);
	if (own.scheme.size)
		return buf_addstr(out, own.scheme) && buf_addstr(out, own.authority) &&
		       add_path(own.path, out) && buf_addstr(out, own.query);
	fits = buf_addstr(out, outer.scheme);
	if (own.authority.size)
		return fits && buf_addstr(out, own.authority) &&
		       add_path(own.path, out) && buf_addstr(out, own.query);
	fits = fits && buf_addstr(out, outer.authority);
	if (own.path.size == 0)
		return fits && buf_addstr(out, outer.path) &&
		       buf_addstr(out, own.query.size ? own.query : outer.query);
	fits = fits && (own.path.data[0] == '/' ? add_path(own.path, out)
						: add_merged(&outer, own.path, out));
	return fits && buf_addstr(out, own.query);
}

enum {
	LOOK_STEPS = 8,       /* names compared in the time of one step */
	COUNTED_TEXT_MAX = 9, /* digits of an index in a pointer */
	VOCABULARY_TEXT_MAX = 128,
};

/*
 * Keywords whose values hold schemas. Keywords of old dialects are included, because a
 * new schema may still have them.
 */
enum holds { HOLDS_SCHEMA = 1, HOLDS_LIST, HOLDS_MAP, HOLDS_EITHER };
static const struct holder {
	const char *keyword;
	enum holds holds;
} holders[] = {
	{"$defs", HOLDS_MAP},
	{"additionalItems", HOLDS_SCHEMA},
	{"additionalProperties", HOLDS_SCHEMA},
	{"allOf", HOLDS_LIST},
	{"anyOf", HOLDS_LIST},
	{"contains", HOLDS_SCHEMA},
	{"contentSchema", HOLDS_SCHEMA},
	{"definitions", HOLDS_MAP},
	{"dependencies", HOLDS_MAP},
	{"dependentSchemas", HOLDS_MAP},
	{"else", HOLDS_SCHEMA},
	{"if", HOLDS_SCHEMA},
	{"items", HOLDS_EITHER},
	{"not", HOLDS_SCHEMA},
	{"oneOf", HOLDS_LIST},
	{"patternProperties", HOLDS_MAP},
	{"prefixItems", HOLDS_LIST},
	{"properties", HOLDS_MAP},
	{"propertyNames", HOLDS_SCHEMA},
	{"then", HOLDS_SCHEMA},
	{"unevaluatedItems", HOLDS_SCHEMA},
	{"unevaluatedProperties", HOLDS_SCHEMA},
};

static int compare_holder(const void *key, const void *row)
{
	return strcmp(key, ((const struct holder *)row)->keyword);
}

static enum holds holds_of(const char *keyword)
{
	const struct holder *row =
		bsearch(keyword, holders, sizeof(holders) / sizeof(holders[0]),
			sizeof(holders[0]), compare_holder);

	return row ? row->holds : 0;
}

static bool refuse_dialect(struct validate_check *check, struct str dialect,
			   const char *because)
{
	const struct validate_place whole = {0};
	struct buf text;

	buf_init(&text, VALIDATE_URI_MAX);
	(void)buf_adds(&text, "cannot be checked: the schema's dialect ");
	validate_add_quoted(&text, dialect);
	(void)validate_give_up(check, &whole, "$schema",
			       "%s %s; known are " VALIDATE_DIALECTS, text.data, because);
	buf_fini(&text);
	return false;
}

static bool is_dialect(struct str dialect, const char *known)
{
	struct str rest;

	if (str_starts(dialect, STR("http://")))
		rest = str_part(dialect, 7, dialect.size);
	else if (str_starts(dialect, STR("https://")))
		rest = str_part(dialect, 8, dialect.size);
	else
		return false;
	if (str_ends(rest, STR("#")))
		rest.size--;
	return str_is(rest, known);
}

/* Is DIALECT a known one of json-schema.org? Then *OLD is set. */
static bool know_dialect(struct str dialect, bool *old)
{
	if (is_dialect(dialect, "json-schema.org/draft/2020-12/schema")) {
		*old = false;
		return true;
	}
	/* Draft-07 only added new keywords to draft-06. */
	if (!is_dialect(dialect, "json-schema.org/draft-07/schema") &&
	    !is_dialect(dialect, "json-schema.org/draft-06/schema"))
		return false;
	*old = true;
	return true;
}

/*
 * Read a dialect that a document of the caller defines: it names the parts of a known
 * dialect that it uses.
 */
static bool read_dialect(struct validate_check *check, struct str dialect,
			 struct validate_resource *resource)
{
	static const char known[] = "https://json-schema.org/draft/2020-12/vocab/";
	static const char parts[] = "core applicator unevaluated validation meta-data "
				    "format-annotation content";
	const struct value *document =
		memchr(dialect.data, '\0', dialect.size)
			? NULL
			: value_member(check->documents, dialect.data);
	const struct value *vocabulary = value_member(document, "$vocabulary");

	if (!document ||
	    !know_dialect(value_str(value_member(document, "$schema")), &resource->old))
		return refuse_dialect(check, dialect, "is not known");
	if (value_kind(vocabulary) != VALUE_OBJECT)
		return true;
	resource->asserts = false;
	for (void *at = value_first(vocabulary); at; at = value_next(vocabulary, at)) {
		struct str name = str_of(value_key(at));
		bool ours = str_starts(name, str_of(known));

		if (!validate_spend(check, 1))
			return false;
		if (ours)
			name = str_part(name, sizeof(known) - 1, VOCABULARY_TEXT_MAX);
		ours = ours && str_among(parts, name);
		if (ours && str_is(name, "validation"))
			resource->asserts = true;
		if (!ours && value_is_true(value_at(at)))
			return refuse_dialect(check, dialect,
					      "needs rules that are not known here");
	}
	return true;
}

/* Set the dialect by `$schema`, else to that of the resource around it. */
static bool set_dialect(struct validate_check *check, struct validate_resource *resource,
			const struct validate_resource *around)
{
	const struct value *dialect = value_member(resource->root, "$schema");

	resource->old = around ? around->old : check->old_unless_told;
	resource->asserts = around ? around->asserts : true;
	if (value_kind(dialect) != VALUE_STRING)
		return true;
	if (know_dialect(value_str(dialect), &resource->old)) {
		resource->asserts = true;
		return true;
	}
	return read_dialect(check, value_str(dialect), resource);
}

static struct validate_resource *add_resource(struct validate_check *check,
					      const struct value *root,
					      const struct validate_resource *around,
					      struct str base)
{
	struct validate_index *index = &check->index;
	struct validate_resource *resource = memory_alloc(sizeof(*resource));
	struct str id = value_str(value_member(root, "$id"));
	struct buf uri;

	buf_init(&uri, VALIDATE_URI_MAX);
	resource->root = root;
	index->resources = memory_grow(index->resources, index->resource_count + 1,
				       sizeof(struct validate_resource *));
	index->resources[index->resource_count++] = resource;
	if (set_dialect(check, resource, around) && resource->old &&
	    value_member(root, "$ref"))
		id = (struct str){0};
	/* A name too long for any reference stays empty. */
	if (!validate_index_uri_resolve(base, id, &uri))
		buf_clear(&uri);
	resource->uri = buf_take(&uri);
	return resource;
}

static void add_anchor(struct validate_check *check,
		       const struct validate_resource *resource, struct str name,
		       const struct value *schema, bool dynamic)
{
	struct validate_index *index = &check->index;

	index->anchors = memory_grow(index->anchors, index->anchor_count + 1,
				     sizeof(*index->anchors));
	index->anchors[index->anchor_count++] =
		(struct validate_anchor){resource, name, schema, dynamic};
}

/*
 * Does SCHEMA's $id give it an address? In the old dialect $id may also be only an
 * anchor.
 */
static bool has_address(const struct value *schema, bool old)
{
	struct str before;

	if (value_kind(value_member(schema, "$id")) != VALUE_STRING ||
	    (old && value_member(schema, "$ref")))
		return false;
	(void)validate_uri_fragment(value_str(value_member(schema, "$id")), &before);
	return before.size > 0;
}

static void name_parts(struct validate_check *check, const struct value *schema,
		       const struct validate_resource *resource)
{
	struct str id = value_str(value_member(schema, "$id"));
	struct str anchor = value_str(value_member(schema, "$anchor"));
	struct str dynamic = value_str(value_member(schema, "$dynamicAnchor"));

	if (resource->old) {
		id = validate_uri_fragment(id, NULL);
		if (id.size && !value_member(schema, "$ref"))
			add_anchor(check, resource, id, schema, false);
		return;
	}
	if (anchor.size)
		add_anchor(check, resource, anchor, schema, false);
	if (dynamic.size)
		add_anchor(check, resource, dynamic, schema, true);
}

static void walk(struct validate_check *check, const struct value *schema,
		 struct validate_resource *resource)
{
	if (value_kind(schema) != VALUE_OBJECT || check->refused ||
	    !validate_spend(check, 1))
		return;
	if (schema != resource->root && has_address(schema, resource->old))
		resource = add_resource(check, schema, resource, str_of(resource->uri));
	resource->walked = true;
	name_parts(check, schema, resource);
	for (void *at = value_first(schema); at; at = value_next(schema, at)) {
		enum holds holds = holds_of(value_key(at));
		const struct value *held = value_at(at);

		if (!validate_spend(check, 1))
			return;
		if (holds == HOLDS_SCHEMA ||
		    (holds == HOLDS_EITHER && value_kind(held) == VALUE_OBJECT))
			walk(check, held, resource);
		else if (holds == HOLDS_MAP)
			for (void *row = value_first(held); row; row = value_next(held, row))
				walk(check, value_at(row), resource);
		else if (holds)
			for (size_t i = 0; i < value_count(held); i++)
				walk(check, value_item(held, i), resource);
	}
}

/* Index the names of all parts of the schema itself, once. */
static void look(struct validate_check *check)
{
	struct validate_resource *whole = check->index.resources[0];

	if (!whole->walked)
		walk(check, whole->root, whole);
}

bool validate_index_start(struct validate_check *check, const struct value *schema)
{
	(void)add_resource(check, schema, NULL, (struct str){"", 0});
	return !check->refused;
}

void validate_index_fini(struct validate_index *index)
{
	for (size_t i = 0; i < index->resource_count; i++) {
		free(index->resources[i]->uri);
		free(index->resources[i]);
	}
	free(index->resources);
	free(index->anchors);
}

const struct validate_resource *validate_index_of(struct validate_check *check,
						  const struct value *schema,
						  const struct validate_resource *resource)
{
	if (schema == resource->root || !has_address(schema, resource->old))
		return resource;
	look(check);
	(void)validate_spend(check, check->index.resource_count / LOOK_STEPS);
	for (size_t i = 0; i < check->index.resource_count; i++) {
		if (check->index.resources[i]->root == schema)
			return check->index.resources[i];
	}
	return resource;
}

static const struct validate_resource *find_known(struct validate_check *check,
						  const char *uri)
{
	(void)validate_spend(check, check->index.resource_count / LOOK_STEPS);
	for (size_t i = 0; i < check->index.resource_count; i++) {
		const struct validate_resource *resource = check->index.resources[i];

		if (strcmp(resource->uri, uri) == 0 ||
		    (resource->retrieved && strcmp(resource->retrieved, uri) == 0))
			return resource;
	}
	return NULL;
}

static const struct validate_resource *find_resource(struct validate_check *check,
						     const char *uri)
{
	const struct validate_resource *known;
	const struct value *document;
	struct validate_resource *made;

	look(check);
	known = find_known(check, uri);
	document = known ? NULL : value_member(check->documents, uri);
	if (!document || check->refused || check->exhausted)
		return known;
	made = add_resource(check, document, check->index.resources[0], str_of(uri));
	for (void *at = value_first(check->documents); at && !made->retrieved;
	     at = value_next(check->documents, at)) {
		if (value_at(at) == document)
			made->retrieved = value_key(at);
	}
	walk(check, document, made);
	return made;
}

static const struct value *step_into(const struct value *schema, struct str key)
{
	if (value_kind(schema) != VALUE_ARRAY)
		return value_member(schema, key.data);
	if (key.size == 0 || key.size > COUNTED_TEXT_MAX ||
	    strspn(key.data, "0123456789") != key.size)
		return NULL;
	return value_item(schema, strtoul(key.data, NULL, 10));
}

/* Replace ~1 and ~0 of a pointer (RFC 6901) in place. */
static void unescape(struct buf *key)
{
	size_t kept = 0;

	for (size_t i = 0; i < key->size; i++, kept++) {
		char next = key->data[i] == '~' && i + 1 < key->size ? key->data[i + 1]
								     : '\0';

		key->data[kept] = next == '0' ? '~' : next == '1' ? '/' : key->data[i];
		i += next == '0' || next == '1';
	}
	buf_truncate(key, kept);
}

/* Follow POINTER ("/$defs/x", %XX not yet replaced) from the root of RESOURCE. */
static struct validate_target follow(struct validate_check *check,
				     const struct validate_resource *resource,
				     struct str pointer)
{
	struct validate_target target = {resource->root, resource, {0}};
	size_t from = 1;

	while (target.schema && from <= pointer.size) {
		size_t end = str_find(pointer, STR("/"), from);
		struct buf key;

		if (end == (size_t)-1)
			end = pointer.size;
		buf_init(&key, VALIDATE_URI_MAX);
		if (text_percent_read(str_part(pointer, from, end - from), &key)) {
			unescape(&key);
			target.schema = step_into(target.schema, buf_str(&key));
		} else {
			target.schema = NULL;
		}
		buf_fini(&key);
		if (target.schema)
			target.resource =
				validate_index_of(check, target.schema, target.resource);
		from = end + 1;
	}
	return target;
}

static const struct validate_anchor *find_anchor(struct validate_check *check,
						 const struct validate_resource *resource,
						 struct str name, bool dynamic)
{
	look(check);
	(void)validate_spend(check, check->index.anchor_count / LOOK_STEPS);
	for (size_t i = 0; i < check->index.anchor_count; i++) {
		const struct validate_anchor *anchor = &check->index.anchors[i];

		if (anchor->resource == resource && str_equal(anchor->name, name) &&
		    (anchor->dynamic || !dynamic))
			return anchor;
	}
	return NULL;
}

static struct validate_target follow_anchor(struct validate_check *check,
					    const struct validate_resource *resource,
					    struct str fragment)
{
	struct validate_target target = {NULL, resource, {0}};
	const struct validate_anchor *anchor = NULL;
	struct buf name;

	buf_init(&name, VALIDATE_URI_MAX);
	if (text_percent_read(fragment, &name))
		anchor = find_anchor(check, resource, buf_str(&name), false);
	buf_fini(&name);
	if (anchor) {
		target.schema = anchor->schema;
		if (anchor->dynamic)
			target.dynamic = anchor->name;
	}
	return target;
}

static struct validate_target validate_index_find(struct validate_check *check,
						  const struct validate_resource *from,
						  struct str reference)
{
	const struct validate_resource *resource = from;
	struct str before, fragment;

	if (reference.size > VALIDATE_URI_MAX)
		return (struct validate_target){0};
	fragment = validate_uri_fragment(reference, &before);
	if (before.size) {
		struct buf uri;

		buf_init(&uri, VALIDATE_URI_MAX);
		resource = validate_index_uri_resolve(str_of(from->uri), before, &uri)
				   ? find_resource(check, uri.data)
				   : NULL;
		buf_fini(&uri);
	}
	if (!resource)
		return (struct validate_target){0};
	if (fragment.size == 0 || fragment.data[0] == '/')
		return follow(check, resource, fragment);
	return follow_anchor(check, resource, fragment);
}

/* The schema with the $dynamicAnchor NAME in RESOURCE, or NULL. */
static const struct value *validate_index_dynamic(struct validate_check *check,
						  const struct validate_resource *resource,
						  struct str name)
{
	const struct validate_anchor *anchor = find_anchor(check, resource, name, true);

	return anchor ? anchor->schema : NULL;
}

/* Checks $ref and $dynamicRef. */

enum {
	REFERENCE_STEPS = 4, /* for splitting a name and looking it up */
	SENTENCE_MAX = 2048,
};

static bool refuse_unknown(struct validate_check *check, struct str reference,
			   const char *keyword, const struct validate_place *at)
{
	bool own = reference.size == 0 || reference.data[0] == '#';
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, own ? "cannot be checked: the schema has no definition "
				  : "cannot be checked: the schema refers to ");
	validate_add_quoted(&text, reference);
	if (!own)
		(void)buf_adds(&text, ", which is no part of it, and nothing is fetched");
	(void)validate_give_up(check, at, keyword, "%s", text.data);
	buf_fini(&text);
	return false;
}

/*
 * The outermost schema on the way here with the same dynamic name as TARGET; else
 * TARGET.
 */
static struct validate_target outermost(struct validate_check *check,
					struct validate_target target)
{
	const struct validate_scope *scope = check->scope;

	do {
		const struct value *schema =
			validate_index_dynamic(check, scope->resource, target.dynamic);

		if (schema) {
			target.schema = schema;
			target.resource = scope->resource;
		}
		scope = scope->outer;
	} while (scope);
	return target;
}

static bool apply_target(struct validate_check *check, const struct validate_target *target,
			 const struct value *value, const struct validate_place *at)
{
	struct validate_scope scope = {check->scope, target->resource};
	bool fits;

	/*
	 * A dynamic scope is a chain of resources. A reference within one resource adds
	 * nothing to the chain.
	 */
	if (scope.resource != scope.outer->resource)
		check->scope = &scope;
	fits = validate_apply(check, target->schema, value, at);
	check->scope = scope.outer;
	return fits;
}

static bool check_reference(struct validate_check *check, const struct value *schema,
			    const char *keyword, bool dynamic, const struct value *value,
			    const struct validate_place *at)
{
	const struct value *reference = value_member(schema, keyword);
	struct validate_target target;

	if (value_kind(reference) != VALUE_STRING)
		return true;
	if (!validate_spend(check, REFERENCE_STEPS))
		return false;
	target = validate_index_find(check, check->scope->resource, value_str(reference));
	if (check->refused)
		return false;
	if (!target.schema)
		return refuse_unknown(check, value_str(reference), keyword, at);
	if (dynamic && target.dynamic.size)
		target = outermost(check, target);
	return apply_target(check, &target, value, at);
}

bool validate_index_reference(struct validate_check *check, const struct value *schema,
			      const struct value *value, const struct validate_place *at)
{
	return check_reference(check, schema, "$ref", false, value, at) &&
	       (check->scope->resource->old ||
		check_reference(check, schema, "$dynamicRef", true, value, at));
}
