/* place_parts: shared by place.c (finding) and place_item.c (writing) only. */
#pragma once
#include "files/files.h"

/* Open the regular file at PLACE for reading and put its status into ST. -1 with ERR. */
int place_open_old(const struct place *place, struct stat *st, struct err *err);
