/*
 * logins: what `glovebox login` keeps for a person: keys of model services, and the model
 * that is asked where nothing else names one. They lie in login.json of the XDG
 * configuration directory, which only its owner reads, and which is replaced whole or not
 * at all under a lock. No cell shows this folder.
 *
 * A key belongs to the origin of a service (http_url_origin), so that it is never sent to
 * another server, whatever GLOVEBOX_BASE_URL names. Keys of the environment come first;
 * callers look there before.
 *
 * login.json is {"keys": {ORIGIN: KEY}, "model": NAME}; both members may be absent. A file
 * that belongs to another user, or that others may read or write, counts as none, with a
 * complaint on standard error.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct provider;

/* Most keys, and the bytes of the file: more than a person has services. */
enum { LOGINS_MAX = 64, LOGINS_FILE_MAX = 1 << 20 };

/* Where they are kept. False: there is no home. */
bool logins_path(struct buf *path);

/* Does the service of PROVIDER, at its own address, want a key? A server on this machine does not. */
bool logins_wants(const struct provider *provider);
/* Is a key kept for the service at BASE_URL? NULL: for any service. */
bool logins_have(const char *base_url);
/* For model_options: append the key for ORIGIN, or nothing. The caller wipes KEY. */
void logins_find(const char *origin, struct buf *key);
/* The model to ask where nothing names one; malloc'ed, NULL: none. */
char *logins_model(void);

/*
 * Keep KEY for the service at BASE_URL, in place of another one, and MODEL (NULL: that of
 * before stays).
 */
bool logins_keep(const char *base_url, struct str key, const char *model, struct err *err);
/*
 * Forget the key for the service at BASE_URL; NULL: all keys, and the model. COUNT: so
 * many keys were there.
 */
bool logins_forget(const char *base_url, size_t *count, struct err *err);
