/*
 * ceiling: the most that any cell of this machine may have, as its administrator says in
 * /etc/glovebox/policy.json. It is laid on a policy after everything else, when a session
 * is made, and on what a person would grant later. It only takes away: a key that is
 * absent takes nothing.
 *
 *   minimum_level   "L0", "L2" or "L3": no cell is made below it
 *   hosts           entries as in network.h: nothing outside of them is reached
 *   deny_hosts      entries: nothing in them is reached. An entry of a policy that holds
 *                   one of them goes as a whole
 *   deny_read       absolute paths: nothing in them is shown
 *   deny_write      absolute paths: nothing in them is written. One inside a folder that
 *                   may be written is read-only
 *   deny_commands   rules as in `commands.deny`, which hold beside those of a policy
 *   credentials     names of those that a cell may use
 *   publish         ports of the cell that may be published; false: none
 *   host_loopback   ports of this machine's loopback that may be reached; false: none
 *   secrets         "mask": no policy shows keys and passwords to a model
 *   ask             false: a person grants nothing that a policy does not
 *   wrap            profiles that `glovebox wrap` may run: names, or name -> hash of what
 *                   the profile needs
 *   limits          as in a policy: at most so much (`free_space`: at least)
 *
 * The ceiling binds this program, and not a person who runs another one. It is no wall of
 * a cell: it decides what the cell is made of.
 *
 * Pure: the front reads the file and checks its owner (setup.c), and resolves the paths.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/network.h"
#include "policy/policy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct ceiling;

/* The file, which is root's. */
#define CEILING_FILE "/etc/glovebox/policy.json"

/*
 * Read TEXT, JSON with comments. RESOLVE puts the real path of an existing PATH into REAL
 * (PATH_MAX bytes) and returns false for one that does not exist. ERR names the place.
 */
bool ceiling_parse(struct str text, bool (*resolve)(const char *path, char *real),
		   struct ceiling **ceiling, struct err *err);
void ceiling_free(struct ceiling *ceiling);

/* All functions below take NULL for a machine without a ceiling. */

/* The level that each cell must reach: 0, 2 or 3. 0: any. */
unsigned ceiling_level(const struct ceiling *ceiling);

/*
 * May ENTRY be reached, PATH be read or written, PORT be published, the credential NAME be
 * used, the profile NAME, whose needs have HASH, be wrapped, a person be asked? NULL: yes;
 * else the key that forbids it.
 */
const char *ceiling_of_host(const struct ceiling *ceiling,
			    const struct network_entry *entry);
const char *ceiling_of_path(const struct ceiling *ceiling, const char *path, bool writes);
const char *ceiling_of_port(const struct ceiling *ceiling, uint16_t port);
const char *ceiling_of_credential(const struct ceiling *ceiling, const char *name);
const char *ceiling_of_profile(const struct ceiling *ceiling, const char *name,
			       const char *hash);
const char *ceiling_of_asking(const struct ceiling *ceiling);

/* The same of PATH and all that lies in it. */
const char *ceiling_of_tree(const struct ceiling *ceiling, const char *path, bool writes);

/* ERR.code of such a refusal; no system call of ours returns it. */
#define CEILING_REFUSED EKEYEXPIRED

/*
 * "WHAT: not allowed on this machine (/etc/glovebox/policy.json, KEY)".
 * Returns false.
 */
bool ceiling_refuse(const char *what, const char *key, struct err *err);

/*
 * Take from POLICY, whose paths are normal and whose limits are settled, what is above
 * CEILING. TOLD (or NULL) gets a line for each entry that is taken. False: WORKSPACE itself
 * is above it; ERR says so.
 */
bool ceiling_cut(const struct ceiling *ceiling, const char *workspace,
		 struct policy *policy, struct buf *told, struct err *err);

/*
 * Does POLICY, whose paths are real by now, keep to the paths of CEILING? An entry of it may
 * have been a link. ERR names the entry that does not.
 */
bool ceiling_check(const struct ceiling *ceiling, const struct policy *policy,
		   struct err *err);

/* The seconds that one command may take at most; 0: no limit. */
double ceiling_wall_s(const struct ceiling *ceiling);

/* Append what CEILING says to OUT, a line for each key, for people. */
void ceiling_print(const struct ceiling *ceiling, struct buf *out);
