/*
 * store: where tasks and results are true: a folder (`file:DIR`, also on a shared file
 * system) or a bucket (`s3://BUCKET/PREFIX`). A queue is only a hint what to do next.
 *
 *   store.json                 the mark of a store, and what its trial creates
 *   jobs/J/job.json            the job: begun, its file's hash, its program
 *   jobs/J/tasks.jsonl         its tasks, as they were given
 *   jobs/J/results/ID.json     one result for each, never replaced
 *   jobs/J/claims/N            a shard that somebody works on
 *   blobs/SHA256               patches, journals and files; named by results
 *
 * Order: blobs, then the result, created only if it is not there. A kill between any two
 * gives the task again, and the second result is refused: that is the whole of idempotence.
 * All functions may be called by several threads at the same time. Names are checked by the
 * callers' parts (fleet_name_check), and again here: nothing outside of the store is reached.
 * A name is made of parts with a slash between them; a part is made of letters, digits, "-",
 * "_" and dots, and begins with none.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FLEET_NAME_BYTES = 512,      /* a name in the store, with its end */
	FLEET_HASH_BYTES = 65,       /* SHA-256 in hexadecimal, with its end */
	FLEET_OBJECT_MAX = 64 << 20, /* of what fleet_store_get gives */
	FLEET_BLOB_MAX = 1 << 30,    /* bytes of one blob */
};

struct fleet_store;

enum fleet_put {
	FLEET_PUT_DONE,
	FLEET_PUT_THERE, /* FLEET_IF_NEW: there was one already, which stays */
	FLEET_PUT_FAILED,
};

enum fleet_put_how { FLEET_IF_NEW, FLEET_REPLACE };

/*
 * WHERE is file:DIR, a path, or s3://BUCKET/PREFIX. The endpoint of S3 and its keys come from
 * AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. With WRITES a folder is made when it is missing
 * (a bucket is not), and the store is tried: that it can be written, and that it refuses a
 * second creation, is known before anything runs. Else the store is only read, and a folder
 * must be there (ENOENT).
 */
bool fleet_store_open(const char *where, bool writes, struct fleet_store **store,
		      struct err *err);
void fleet_store_close(struct fleet_store *store);
/* Can NAME be in a store? ERR says why not. */
bool fleet_store_name_check(const char *name, struct err *err);
/* As a person wrote it, without keys. */
const char *fleet_store_where(const struct fleet_store *store);

/*
 * Write the whole of BYTES or nothing; on disk (file, then folder) when it returns. Of several
 * that create one name at the same time, exactly one is told DONE, also when the answer of a
 * service was lost and it was asked again.
 */
enum fleet_put fleet_store_put(struct fleet_store *store, const char *name,
			       struct str bytes, enum fleet_put_how how, struct err *err);

/*
 * The bytes of FD, a regular file, from its begin; HASH gets the blob's name. One that is
 * there is not sent. EFBIG: more than FLEET_BLOB_MAX.
 */
bool fleet_store_blob(struct fleet_store *store, int fd, char hash[FLEET_HASH_BYTES],
		      uint64_t *bytes, struct err *err);
/*
 * Write the blob HASH to FD; its hash is checked. ENOENT: it is not there. When it fails, FD
 * may hold a part, which the caller throws away.
 */
bool fleet_store_fetch(struct fleet_store *store, const char *hash, int fd, struct err *err);

/* Append the bytes of NAME, at most FLEET_OBJECT_MAX. ENOENT in ERR when there is none. */
bool fleet_store_get(struct fleet_store *store, const char *name, struct buf *bytes,
		     struct err *err);

/*
 * Tell TAKE the names directly in FOLDER ("jobs/J/results/") without it, in any order; a name
 * that is a folder itself ends with a slash. False of TAKE ends the list, and is no error. A
 * folder that is not there is empty. Bounded by what there is: a page of 1,000 at a time.
 */
bool fleet_store_list(struct fleet_store *store, const char *folder,
		      bool (*take)(void *context, const char *name), void *context,
		      struct err *err);

/* True as well when it was not there. */
bool fleet_store_remove(struct fleet_store *store, const char *name, struct err *err);
