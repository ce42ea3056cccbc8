/*
 * forge: services that keep git repositories, and how they name them. The key of a forge
 * goes with requests for some repositories only (`repositories` of credential.h). This
 * module reads the name of a repository, "github.com/owner/name", from the address of a
 * remote and from the path of a request, so that both can be compared. Names are in lower
 * case and without ".git", because the forges take every spelling for the same. A name has
 * letters, digits, '.', '-' and '_' between its slashes; any other text names none.
 *
 * A new form is a row of `forms` in forge.c, with its rows in
 * tests/unit/policy/forge_test.c and its line in docs/policy.md.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum {
	/* GitLab's longest path of a project has 255 bytes; a host has at most 253. */
	FORGE_NAME_MAX = 768,
};

/* The forms in which services name repositories in paths. */
enum forge {
	FORGE_NONE,
	/*
	 * /OWNER/NAME for git, /repos/OWNER/NAME for the API, which is at api.HOST or below
	 * /api/v3 of HOST
	 */
	FORGE_GITHUB,
	/* /GROUP/…/NAME for git, /api/v4/projects/GROUP%2F…%2FNAME for the API */
	FORGE_GITLAB,
};

enum forge_kind {
	FORGE_PAGE,    /* neither git nor API: a page, a download */
	FORGE_API,     /* the API, but no single repository */
	FORGE_PROJECT, /* the API of one repository */
	FORGE_FETCH,   /* git reads one repository */
	FORGE_PUSH,    /* git writes to it */
	FORGE_OBJECTS, /* git-lfs reads or writes: only the body says which */
};

struct forge_request {
	enum forge_kind kind;
	/* from FORGE_PROJECT on: the repository, or "" when the path names it otherwise */
	char repository[FORGE_NAME_MAX];
};

/* "github" and "gitlab"; FORGE_NONE for every other text. */
enum forge forge_of_name(struct str name);

/*
 * The repository that ADDRESS names, which is a URL of https, http, ssh or git, or
 * "user@host:path" of ssh. The port and the user of ADDRESS do not count. False when
 * ADDRESS names none: a path of this machine, another scheme.
 */
bool forge_read_address(struct str address, char repository[FORGE_NAME_MAX]);

/* The part of PATH, still escaped, in which an escaped slash is a letter of a name. */
struct str forge_escaped_part(enum forge form, struct str path);

/*
 * Read the request METHOD PATH?QUERY to HOST. PATH is decoded, but has "%2F" for an escaped
 * slash in the part of forge_escaped_part.
 */
void forge_read_request(enum forge form, const char *host, struct str method,
			struct str path, struct str query, struct forge_request *request);
