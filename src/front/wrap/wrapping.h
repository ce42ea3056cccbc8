/*
 * wrapping: what one run of `glovebox wrap` knows of the agent and of this machine: the
 * profile, the places of the person, the agent's program with what it needs to run, and
 * all that the cell shows beside the system and the workspace. The verb fills it step by
 * step, and front/wrap/home.h makes the agent's home from it.
 *
 * Texts live in the arena, as long as the wrapping.
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "front/verb.h"
#include "front/wrap/profile.h"
#include "view/shape.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct value;

/* Files that only a cell is shown, in the person's state: named by their hash. */
#define WRAPPING_FILES "wrap/files/"

enum {
	WRAPPING_LEAD_MAX = 64, /* words of the lines "#!", one after the other */
};

/* A credential of the profile, and where its key is. */
struct wrap_key {
	const char *name;
	const char *source; /* "env:ANTHROPIC_API_KEY"; NULL: nowhere */
	const char *why;    /* then: "ANTHROPIC_API_KEY is not set" */
	bool wrong; /* something is there, which must not be used: `why` says what */
	/* a login, which the person has not named: its tokens stay out of the cell's way */
	bool off;
};

/* A folder of `share`. */
struct wrap_share {
	int fd; /* open and locked */
	/* the size of the beginning of its path that was there before this run */
	size_t there;
};

struct wrapping {
	const struct options *options;
	const char *name; /* of the profile */
	struct wrap_profile profile;
	struct wrap_places places;
	struct arena arena;
	char *workspace;     /* real */
	const char *program; /* its real path; NULL: it is not installed */
	/* the interpreter with its arguments, where the program is run as its argument */
	const char *lead[WRAPPING_LEAD_MAX + 1];
	size_t lead_count;
	struct value *policy, *entry; /* the profile's keys of a policy, and the options' */
	struct shape_shown *shown;    /* ends with {0} */
	size_t shown_count;
	struct shape_home home;    /* its folder is NULL: there is no state folder */
	struct wrap_share *shares; /* ends with fd -1 */
	struct spec_login *logins; /* of `home` */
	struct wrap_key *keys;     /* of the profile's credentials */
	size_t key_count;
	bool keys_used;    /* those that are there */
	const char *needs; /* as text, in the arena */
	char hash[HASH_HEX + 1];
};

/*
 * Find the person's home, the agent's own folder and the workspace. ERR says which of them
 * is not there or stands at a place that cannot be.
 */
bool wrapping_find_places(struct wrapping *wrapping, struct err *err);
/*
 * Find the program NAME, from PATH unless it has a slash, and show it with its package and
 * its interpreters. `program` stays NULL when it is not installed.
 */
void wrapping_find_program(struct wrapping *wrapping, const char *name);
/*
 * The release of the program that is installed, which is not started for it: that of its
 * package of npm, or a folder or file of its path that is named like a release. NULL:
 * unknown. A workspace is not asked.
 */
const char *wrapping_version(struct wrapping *wrapping);
void wrapping_fini(struct wrapping *wrapping);

/* From now on the cell shows SOURCE, of this machine, at PATH. WHY is borrowed. */
void wrapping_show(struct wrapping *wrapping, const char *source, const char *path,
		   const char *why);
/* Does the cell have PATH without our doing? */
bool wrapping_shows(const struct wrapping *wrapping, const char *path);

/* Move what TEXT holds into the arena, and end TEXT. */
const char *wrapping_keep(struct wrapping *wrapping, struct buf *text);
/* TEXT of the profile with its placeholders replaced. */
const char *wrapping_expand(struct wrapping *wrapping, const char *text);
/* PATH as the person writes it: "~/…" below the home. */
const char *wrapping_shortened(struct wrapping *wrapping, const char *path);
/* Does --env pass the variable NAME, or set it? */
bool wrapping_is_passed(const struct wrapping *wrapping, const char *name);
