/*
 * auth: the tokens of a bridge: how it gets them, shows them to the server, and renews
 * them. It works in the cell of the bridge; the front keeps the tokens (client/tokens.h)
 * and talks to the person.
 *
 * Settings, besides those of bridge.h:
 *
 *   "oauth"    {"client_id", "client_secret", "client_metadata_url", "scope", "grant"}
 *   "tokens"   as they were kept, or null
 *   "hosts"    host:port that the cell reaches
 *   "task"     "serve"; "login", "device", "logout"
 *   "redirect" the address to which a login comes back
 *
 * Lines to the front, and its answers:
 *
 *   {"hosts": [HOST:PORT]}        these are needed too; the bridge ends, and may be started
 *                                 again in a cell that reaches them
 *   {"renew": ACCESS_TOKEN}       lock the tokens: {"tokens": those that are kept, or null}
 *   {"keep": TOKENS or null}      keep them, and unlock: {"kept": true or a sentence}
 *   {"open": URL, "issuer"}       the person logs in there: {"query": of the address to
 *                                 which the login came back} or {"error": SENTENCE}
 *   {"code": CODE, "open": URL}   the person enters the code there; no answer
 *   {"done": SENTENCE}            the end of a task
 *
 * A service that rotates refresh tokens revokes the login when one is used twice. So a
 * token is renewed under the lock only, and never with a token that another process has
 * used up meanwhile.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/bridge/steer.h"
#include "mcp/bridge/web.h"

#include <stdbool.h>

struct auth;

/* All is borrowed. */
struct auth *auth_new(struct web *web, struct steer *steer, const struct value *settings);
void auth_free(struct auth *auth);

/* Add the header with the token, where there is one. */
void auth_add_header(const struct auth *auth, struct value *list);
/* Does the token end within a minute, and can it be renewed? */
bool auth_is_due(const struct auth *auth);
/*
 * Get another token. HEAD is that of the answer with 401 that did not take the last one, or
 * empty. False: ERR has a phrase for the person, behind the name of the server.
 */
bool auth_again(struct auth *auth, struct str head, struct err *err);

/* Carry out the task of the settings, unless it is to serve. */
void auth_run(struct auth *auth);
