/*
 * roles: agents as data. Each role is a Markdown file with front matter (the keys of an
 * agent's entry in the configuration, and its name). The caller hands in the texts, so
 * this layer opens no file.
 *
 * A shipped role is one file in agents/, which the build embeds in the program. It
 * comes with a row in tests/unit/agent/roles_test.c and in docs/agents.md.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

struct role_text {
	/* "agents/coder.md": its last part without ".md" must be the name */
	const char *file;
	struct str text;
};

struct role {
	char *name;
	struct value *entry; /* checked; without `name` */
};

struct roles {
	struct role *items; /* in the order of the texts */
	size_t count;
};

/* Read COUNT texts. ERR names the file, and the line or the key that is wrong. */
bool roles_init(struct roles *roles, const struct role_text *texts, size_t count,
		struct err *err);
void roles_fini(struct roles *roles);

/* NULL: there is none of that name. */
const struct role *roles_find(const struct roles *roles, const char *name);
