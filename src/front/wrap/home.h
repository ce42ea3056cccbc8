/*
 * home: what a wrapped agent has at the path of the person's home. It is a private folder
 * in the user's state, one for each project and profile, which begins with copies of the
 * settings that the profile seeds. On top of it lie the person's own folders of sessions
 * (`share`), writable, and texts of the profile (`files`), read-only.
 *
 * Commands of former runs may have put anything into the home. No link in there is
 * followed, and none stays in a shared folder, where the agent outside would follow it.
 * A home is made whole or not at all, and is held by a lock while a cell uses it.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct value;
struct wrapping;

/* Find out where the home is; it need not be there. */
bool wrap_home_find(struct wrapping *wrapping, struct err *err);
/* Make the home and hold it, with a place for all that the cell shows below it. */
bool wrap_home_prepare(struct wrapping *wrapping, struct err *err);
/* Keep the texts of `files` in the user's state, and show them from there. */
bool wrap_home_show_texts(struct wrapping *wrapping, struct err *err);
/*
 * Add the folders of `share` to LIST, of paths that the cell may write. They are made outside
 * when they are not there, and locked.
 */
bool wrap_home_share(struct wrapping *wrapping, struct value *list, struct err *err);
/*
 * Say where sessions went, and take links out of there; a shared folder that stayed empty
 * is removed.
 */
void wrap_home_end(struct wrapping *wrapping);
