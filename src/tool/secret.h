/*
 * secret: says which texts are secrets. There are two kinds. A named one is the value of a
 * key in a file that holds such values (`.env`, `*.tfvars`, `.npmrc`, `.pypirc`, `.netrc`).
 * One with a shape is known by itself: a key of a service (secret.def), a block of a
 * private key, the password in `scheme://user:password@`.
 *
 * A secret is one line of at least SECRET_MIN bytes without control characters. A shorter
 * one would be found in any text. Nothing is guessed by entropy, so a hash of git is none.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SECRET_MIN = 8,
	SECRET_MAX = 4 << 10, /* of a value; a longer one in a file is none */
};

/*
 * The tool by which a worker reads the secrets of the workspace. Its details have `secrets`, a
 * list of lists of a name and a value, and `missed`, a list of lists of a path and the reason
 * why not all of its secrets are among them.
 */
#define SECRET_TOOL          "secrets"
#define SECRET_MISSED_SIZE   "size"
#define SECRET_MISSED_ERROR  "error"
#define SECRET_MISSED_FILES  "files"
#define SECRET_MISSED_VALUES "values"

enum secret_file {
	SECRET_FILE_NONE,
	SECRET_FILE_LINES, /* KEY=value, key = "value", //host/:_authToken=value */
	SECRET_FILE_NETRC,
};

/* The kind of the file NAME, by its name without folders. */
enum secret_file secret_file_of(const char *name);

/*
 * Call EACH with the secrets in TEXT, the content of such a file, in their order. NAME is a
 * view of TEXT or of a constant.
 */
void secret_file_read(enum secret_file kind, struct str text,
		      void (*each)(void *context, struct str name, struct str value),
		      void *context);

/*
 * May VALUE be a secret: one line of text that stands for itself? A program replaces
 * `${NAME}`, `%NAME%`, `{{NAME}}` and `<NAME>` by something else.
 */
bool secret_is_value(struct str value);

/* A secret with a shape. */
struct secret_shape {
	const char *name;  /* "github" */
	size_t from, size; /* its place; SIZE 0: there is none */
	bool open;         /* the bytes end before it is decided */
};

/*
 * Does a key of a service stand at the beginning of TEXT? The caller has seen that no letter, digit
 * or "_" stands before it. LAST: nothing follows TEXT.
 */
struct secret_shape secret_key_at(struct str text, bool last);
/* The same of the password in a URL, whose "://" is the beginning of TEXT. */
struct secret_shape secret_password_at(struct str text, bool last);

/* Call EACH with the beginning of each kind of key: three characters or more. */
void secret_each_begin(void (*each)(void *context, const char *begin), void *context);
