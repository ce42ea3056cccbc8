/*
 * store_s3: a store in a bucket of a service that speaks S3, by libcurl (model/http.h). Objects
 * are created with `If-None-Match: *`, which the service has to honour (fleet_store_open tries it).
 * An answer that was lost, and the statuses by which a service asks for patience, are tried
 * again for about a minute.
 *
 * Requests are signed here (Signature Version 4, "Authenticating Requests: Using the
 * Authorization Header" of the S3 documentation), not by libcurl: 7.88.1 was seen to sign no
 * x-amz-content-sha256 and no session token, without which S3 refuses. The hash of the body is
 * always signed: that of a blob is its name. A key is in no message and in no argument.
 */
#pragma once

#include "base/err.h"
#include "fleet/store_kind.h"

#include <stdbool.h>

extern const struct store_kind store_s3_kind;

/* WHERE begins with s3://. The environment is that of fleet_store_open. */
bool store_s3_open(const char *where, void **self, struct err *err);
