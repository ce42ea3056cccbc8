/*
 * phantom: the text that a cell gets in place of a key. A phantom is random, made for one
 * cell and one credential, and is no key of anything. It has the form of the real one
 * (`shape`), because clients look at it:
 *
 *	"sk-ant-api03-*"  this text with PHANTOM_DIGITS random hexadecimal digits for the *
 *	"jwt"             header.payload. with an empty signature (RFC 7519, section 6). The
 *	                  payload has `exp` and the names in `claims` of the real token, and
 *	                  a random `jti`. Clients read when a token expires, and whose it is
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/credentials/credential.h"

#include <stdbool.h>

enum {
	PHANTOM_DIGITS = 40,    /* 160 bits: nobody guesses one */
	PHANTOM_MAX = 16 << 10, /* bytes of a phantom: a token of the same claims */
};

/* Must phantom_make know the value? Only "jwt" does. */
bool phantom_needs_value(const struct credential *credential);

/*
 * Append a new phantom of CREDENTIAL to OUT. VALUE is the real one, or empty when it is
 * not needed. A "jwt" that is none fails; ERR does not quote it.
 */
bool phantom_make(const struct credential *credential, struct str value, struct buf *out,
		  struct err *err);
