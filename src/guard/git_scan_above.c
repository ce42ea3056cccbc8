/* git_scan_above: finds the gitlinks of the repository that holds a root. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/git_scan.h"
#include "guard/readers.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct above {
	const char *worktree, *folder;
	struct value *list;
};

static bool above_link(void *context, struct str path)
{
	const struct above *above = context;
	struct buf text;

	if (str_ends(path, STR("/")))
		return true;
	if (value_count(above->list) >= GIT_SCAN_LINKS)
		return false;
	buf_init(&text, PATH_MAX);
	if (buf_addf(&text, "%s/%.*s", above->worktree, (int)path.size, path.data) &&
	    path_within(text.data, above->folder)) {
		auto_free char *key = path_key(text.data);
		value_append(above->list, value_new_text(key));
	}
	buf_fini(&text);
	return true;
}

static bool above_read(const struct above *above, const char *index, struct err *err)
{
	struct git_index_reader reader = {.link = above_link,
					  .context = (void *)(uintptr_t)above};
	struct buf text;
	struct stat st;
	bool fine = true;

	if (lstat(index, &st) < 0 || !S_ISREG(st.st_mode))
		return true;
	buf_init(&text, GIT_INDEX_MAX);
	/*
	 * The size of the hashes is unknown. An index can be read with only one of the
	 * two sizes.
	 */
	if (fd_read_file(index, GIT_INDEX_MAX, &text, NULL)) {
		fine = git_index_read(&reader, buf_str(&text), err);
		reader.sha256 = !fine;
		fine = fine || git_index_read(&reader, buf_str(&text), err);
	}
	buf_fini(&text);
	return fine;
}

bool git_scan_above(const char *folder, struct value *list, struct err *err)
{
	auto_free char *at = memory_copy(folder);
	char index[PATH_MAX];
	struct stat st;

	for (char *slash = strrchr(at, '/'); slash != NULL && slash != at;
	     slash = strrchr(at, '/')) {
		*slash = '\0';
		const struct above above = {at, folder, list};

		if (snprintf(index, sizeof(index), "%s/.git", at) >= (int)sizeof(index))
			return true;
		if (lstat(index, &st) < 0)
			continue;
		if (snprintf(index, sizeof(index), "%s/.git/index", at) >=
		    (int)sizeof(index))
			return true;
		return above_read(&above, index, err);
	}
	return true;
}
