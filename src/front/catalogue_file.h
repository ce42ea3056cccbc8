/* catalogue_file: the catalogue that the program brings along, with the person's part. */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "model/catalogue.h"

#include <stdbool.h>

/* ADDITIONS: what the configuration's key `models` holds (setup.h), or NULL. */
bool catalogue_file_open(const struct value *additions, struct catalogue **catalogue,
			 struct err *err);
