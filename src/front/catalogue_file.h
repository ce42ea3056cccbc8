/*
 * catalogue_file: the program's built-in catalogue of models, with the person's
 * additions.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "model/catalogue.h"

#include <stdbool.h>

/* ADDITIONS: the value of the configuration's key `models` (setup.h), or NULL. */
bool catalogue_file_open(const struct value *additions, struct catalogue **catalogue,
			 struct err *err);
