/*
 * keys: the one table of configuration keys. From its rows come the check of
 * config.json, of the front matter of roles and of a person's flags, the place where
 * each value is stored, and the list of keys in docs/policy.md. A new key is one row
 * here and one member where it is stored.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

enum key_kind {
	KEY_TEXT = 1, /* char *; at most `max` bytes */
	KEY_NAMES, /* struct policy_names; each one of `choices`, unless that is NULL */
	KEY_HOSTS, /* struct policy_names: entries as policy/network.h has them */
	KEY_RESOLVER,  /* char *: an address with or without a port */
	KEY_PATH,      /* struct policy_path */
	KEY_PATHS,     /* struct policy_paths */
	KEY_VARIABLES, /* struct policy_names: NAME or NAME=value */
	KEY_FLAG,      /* bool */
	KEY_COUNT,     /* uint64_t */
	KEY_SIZE,      /* uint64_t: bytes, or text with K, M, G, T */
	KEY_SECONDS,   /* double */
	KEY_NUMBER,    /* double */
	KEY_CHOICE,    /* unsigned: index in `choices` */
	KEY_ROWS,      /* an object with the keys `rows`, stored from `offset` on */
	/*
	 * an object: name -> object with the keys `rows`; not stored by this table. Names are
	 * those of agents, or with `max` any text of at most so many bytes.
	 */
	KEY_ENTRIES,
	KEY_TEXTS, /* list of texts of at most `max` bytes; not stored by this table */
	KEY_LIST,  /* list of objects with the keys `rows`; likewise */
	/* list of texts, or objects with the keys `rows`; not stored by this table */
	KEY_SOURCES,
	KEY_VALUES, /* object of anything, its names somebody else's; likewise */
	/* struct value *: an object, name -> text of at most `max` bytes, or an object (`rows`) */
	KEY_CHECKS,
	/* struct commands *: one of `choices`, or an object with the keys `rows` */
	KEY_COMMANDS,
};

/* The struct that `offset` is in; KEY_KEPT: none, config_value gives what was written. */
enum key_home { KEY_IN_CONFIG, KEY_IN_POLICY, KEY_IN_ROLE, KEY_KEPT };

struct key {
	const char *name;
	enum key_kind kind;
	enum key_home home;
	size_t offset;
	double min, max;     /* numbers: bounds; texts: most bytes */
	const char *choices; /* blank-separated */
	/* what holds unless given, for the manual; NULL in `limits`: the number of policy_new */
	const char *initial;
	const char *description; /* one sentence for the manual */
	const struct key *rows;
};

/* Tables end with {0}. */
extern const struct key keys_config[]; /* top level of config.json */
extern const struct key keys_agent[];  /* an entry of `agents`; front matter of a role */

/* The row of NAME, or NULL. */
const struct key *keys_find(const struct key *rows, const char *name);

/*
 * Does OBJECT hold only keys of ROWS, each of the right kind and within its bounds? ERR
 * names the place as JSON pointer (below POINTER), the rule, and the nearest key for an
 * unknown one.
 */
bool keys_check(const struct key *rows, const struct value *object, const char *pointer,
		struct err *err);

/*
 * Store the members of OBJECT (checked before) whose row lives in HOME into the struct
 * at TARGET. Members that are absent leave their place alone; what a place owned before
 * is not freed.
 */
void keys_store(const struct key *rows, const struct value *object, enum key_home home,
		void *target);

/* Append BYTES as a policy has it, in the largest unit: "16M". */
void keys_print_size(double bytes, struct buf *out);

/*
 * Append the list of keys as Markdown tables: the generated part of docs/policy.md. False
 * at OUT's ceiling.
 */
bool keys_describe(struct buf *out);
