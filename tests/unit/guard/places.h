/* places: where the data of the tests is. */
#pragma once

extern const char *const place_of_git_index;
