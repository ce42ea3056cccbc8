/* credentials: the token in a Proxy-Authorization (RFC 7617). */
#pragma once
#include "base/str.h"
#include "proxy/proxy.h"

/*
 * Copy the token of Basic credentials of our form to TOKEN. Other credentials leave TOKEN
 * as it is.
 */
void credentials_read(struct str value, char token[PROXY_TOKEN + 1]);
