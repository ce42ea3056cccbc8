/*
 * trial: tries whether the unpacked layers of images can be mounted in a folder of this machine, by an
 * ordinary user: an overlay in a user namespace, with `userxattr`, a removed name and a folder that hides
 * the one below. Nothing of the trial is left.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* FOLDER exists, and its user may write there. False: ERR says which step failed, and what helps. */
bool trial_overlay(const char *folder, struct err *err);
