/*
 * trust: the record of what a person has let in of what workspaces bring along
 * (extend/brought.h). There is one file for each workspace, by its real path, in the folder
 * "trust" of the person's state, which no cell shows. Each entry has a kind and a name, the
 * SHA-256 of all bytes that were let in, and these bytes as a person read them, so that a change
 * can be shown as a diff.
 *
 * An item counts while its bytes are those of the record: a byte that was changed between the
 * look and the yes, or by a rename behind our back, gives another hash and is not let in. A file
 * is written whole or not at all, under a lock. A record that cannot be read lets nothing in.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "extend/brought.h"

#include <stdbool.h>
#include <stddef.h>

enum trust_state {
	TRUST_NONE,    /* the person has not decided on it */
	TRUST_LATER,   /* the person was asked about these bytes, and has put them off */
	TRUST_CHANGED, /* other bytes of this name were let in */
	TRUST_GIVEN,
};

/* "new", "put off", "changed since it was let in", "let in". */
const char *trust_state_name(enum trust_state state);

struct trust_entry {
	enum brought_kind kind;
	char *name;
	char hash[HASH_HEX + 1];  /* of the bytes that were let in; "": none were */
	char later[HASH_HEX + 1]; /* of the bytes that were put off; "": none were */
	char *since; /* the day on which they were let in; NULL: they were not */
	char *text;  /* what was let in, or its beginning; NULL: nothing */
};

struct trust {
	struct trust_entry *entries;
	size_t count;
};

/* Read the record of WORKSPACE (real, absolute). Call trust_fini in either case. */
bool trust_read(const char *workspace, struct trust *trust, struct err *err);
void trust_fini(struct trust *trust);

/* Parse and print the file of a record. trust_fini TRUST in either case. */
bool trust_parse(struct str text, struct trust *trust, struct err *err);
bool trust_print(const struct trust *trust, const char *workspace, struct buf *out);

/* The entry of KIND and NAME; NULL: there is none. */
const struct trust_entry *trust_find(const struct trust *trust, enum brought_kind kind,
				     const char *name);

/* An item with a problem is TRUST_NONE. */
enum trust_state trust_of(const struct trust *trust, const struct brought *item);

/* Append the difference between what was let in and ITEM. False: nothing was, or OUT is full. */
bool trust_diff(const struct trust *trust, const struct brought *item, struct buf *out);

/*
 * Record that the person lets in ITEMS, exactly as they were read, or (LATER) does not want to be
 * asked about them again.
 */
bool trust_record(const char *workspace, const struct brought *const *items, size_t count,
		  bool later, struct err *err);

/* Remove the entry of KIND and NAME. *WAS: there was one. */
bool trust_remove(const char *workspace, enum brought_kind kind, const char *name,
		  bool *was, struct err *err);
