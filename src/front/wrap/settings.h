/*
 * settings: the person's files that a profile shows (`view`), where they are JSON. A key in
 * them stays outside, as keys in variables do: the cell gets a copy of the file without it.
 * A program in them that the cell lacks is told of.
 *
 * A member is a key when its value is a text, and it is
 *
 *	a variable of `keys` of the profile, wherever it stands
 *	a variable of an object `env` whose name sounds like a secret
 *	named apiKey, api_key, authToken or auth_token
 *
 * A text that only says where a key is stays: "$NAME", "${NAME}", "{env:NAME}", "!command",
 * or the name of a variable. So does what an option -e NAME passes in.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct wrapping;

/*
 * Show the file or folder SOURCE, of this machine, at PATH, or a copy without keys in its
 * place, of which a person is told. WHY is borrowed.
 */
bool wrap_settings_show(struct wrapping *wrapping, const char *source, const char *path,
			const char *why, struct err *err);
/* Tell of hooks and other commands in what is shown that the cell does not have. */
void wrap_settings_tell(struct wrapping *wrapping);
/* Does the variable NAME sound as if it held a secret? */
bool wrap_settings_are_secret(const char *name);
