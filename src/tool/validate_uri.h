/*
 * validate_uri: what one name of a schema means beside another (RFC 3986, section 5.2). Names
 * only: nothing is ever fetched.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* Longest name kept: addresses of schemas have a tenth of it. */
enum { VALIDATE_URI_MAX = 2048 };

/*
 * Append what REFERENCE (its fragment is left out) means where BASE holds; an empty BASE leaves
 * it as it stands. False at OUT's ceiling.
 */
bool validate_uri_resolve(struct str base, struct str reference, struct buf *out);

/* The part behind '#', and in *BEFORE (may be NULL) what stands before. */
struct str validate_uri_fragment(struct str reference, struct str *before);

/* Append TEXT with its %XX taken as bytes. False when a NUL comes out, or at OUT's ceiling. */
bool validate_uri_decode(struct str text, struct buf *out);
