/*
 * tokens: the file of one server's tokens, outside of every cell: HASH.json in a folder of
 * mode 700, itself of mode 600. The name is the hash of the server's address and of the
 * client that the configuration names; the file says what its tokens are bound to, and
 * tokens for another address are not taken.
 *
 * A service that rotates refresh tokens revokes the login when one token is used twice. So
 * each renewal holds a lock (flock) on HASH.lock, from the look at the file to its new
 * content. A new file replaces the old one by rename, after fsync.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>

struct tokens;

/*
 * FOLDER need not exist; CLIENT_ID: of the configuration, or NULL. Nothing is read or made.
 */
struct tokens *tokens_new(const char *folder, const char *url, const char *client_id);
void tokens_free(struct tokens *tokens); /* unlocks; NULL is fine */

/* The tokens that are kept, an object that the caller frees; NULL: there are none. */
struct value *tokens_read(const struct tokens *tokens);
/* Lock without waiting. False: EAGAIN when another process holds the lock. */
bool tokens_lock(struct tokens *tokens, struct err *err);
void tokens_unlock(struct tokens *tokens);
/* Replace the file. Call it with the lock. */
bool tokens_write(const struct tokens *tokens, const struct value *content, struct err *err);
/* Remove the file. *WAS_THERE: it existed. */
bool tokens_remove(const struct tokens *tokens, bool *was_there, struct err *err);
