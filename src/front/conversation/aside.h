/*
 * aside: a command that the person runs between prompts: `! make test`. It runs in the cell as
 * one of the agent's bash would, by the same policy, and its steps can be undone. The model is
 * told of it with the next prompt; of `!! make test` it is not.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>

struct talk;

/* Is TEXT such a command? */
bool aside_is_one(struct str text);

/* Run it. The caller shows what goes on (console_work), and forgets an interrupt. */
void aside_run(struct talk *talk, struct str text);
