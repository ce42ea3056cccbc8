/*
 * bash_alone: is a text one program and nothing else? Then the shell that runs it can become it,
 * as `bash -c` does, instead of starting a copy of itself that does and waiting for that. What is
 * not sure is not alone: the answer changes how long it takes and who dies of a signal, not what
 * is run.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/*
 * The words of TEXT are those of one program that is there and can be executed, found from FOLDER
 * by the PATH of ENVIRONMENT as bash would. *PATH is what bash would call it in $_.
 */
bool bash_alone(struct str text, const char *folder, const char *const *environment,
		struct buf *path);
