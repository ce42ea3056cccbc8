/* place_parts: what place.c (finding) and place_item.c (writing) share and nobody else. */
#pragma once
#include "files/files_inside.h"

/* Open what is at PLACE for reading and look at it. -1 with the sentence. */
int place_open_old(const struct place *place, struct stat *st, struct err *err);
