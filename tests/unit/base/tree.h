/* tree: a folder of a test's with all that is in it, taken away. */
#pragma once
#include <ftw.h>
#include <stdio.h>

static inline int tree_remove_one(const char *path, const struct stat *st, int kind,
				  struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	(void)remove(path);
	return 0;
}

static inline void tree_remove(const char *path)
{
	enum { OPEN_FOLDERS = 16 };

	(void)nftw(path, tree_remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}
