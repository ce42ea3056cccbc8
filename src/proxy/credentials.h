/* credentials: the token in a Proxy-Authorization (RFC 7617). */
#pragma once
#include "base/str.h"
#include "proxy/proxy.h"

/* The token of Basic credentials that have our form; of any others TOKEN stays as it is. */
void credentials_read(struct str value, char token[PROXY_TOKEN + 1]);
