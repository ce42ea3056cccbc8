/*
 * store_folder: a store in a folder, also on a file system that several machines share (NFS).
 * A file is written and synced in `.tmp`, which no name of a store reaches, then it gets its
 * name by link(2) or, where it replaces another one, by rename(2), then the folder is synced. A
 * process that is killed at any moment leaves the old or the new one; what it leaves in `.tmp`
 * is removed by the next one that opens the store, an hour after its last byte by the clock of
 * the file system. No link is followed, and no name leaves the folder.
 */
#pragma once

#include "base/err.h"
#include "fleet/store_kind.h"

#include <stdbool.h>

extern const struct store_kind store_folder_kind;

/*
 * WRITES as for fleet_store_open: a file is written for a trial, but not the mark of a store. SHOWN is
 * PATH as a person wrote it.
 */
bool store_folder_open(const char *path, const char *shown, bool writes, void **self,
		       struct err *err);
