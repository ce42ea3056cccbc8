/*
 * git_scan_left: finds the files that a killed git leaves in a git folder: locks, which
 * stop every later git, and temporary files. A git that ends normally removes them.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/git_scan_parts.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The most items of one scan; a later scan finds the rest. */
enum { LEFT_MAX = 256 };

/*
 * Temporary files that are no locks, by the beginning of their name. They stop no other
 * git.
 */
static const struct {
	const char *folder, *begins;
} temporary[] = {
	{"", "packed-refs.new"},
	{"", "index.stash."},
	{"info", "refs_"},
	{"objects", "tmp_"},
	{"objects/??", "tmp_obj_"},
	{"objects/info", "packs_"},
	{"objects/info/commit-graphs", "tmp_graph_"},
	{"objects/pack", "tmp_"},
	{"objects/pack", ".tmp-"},
};

bool git_scan_is_lock(const char *name)
{
	/* No reference can have such a name, because git refuses the ending. */
	return str_ends(str_of(name), STR(".lock")) || strcmp(name, "gc.pid") == 0;
}

static bool is_left(const char *folder, const char *name)
{
	/* In `objects` there are locks only near the top. */
	if (git_scan_is_lock(name))
		return strcmp(folder, "objects/??") != 0;
	for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++) {
		if (strcmp(temporary[i].folder, folder) == 0 &&
		    strncmp(temporary[i].begins, name, strlen(temporary[i].begins)) == 0)
			return true;
	}
	return false;
}

void git_scan_left(const struct scan_look *look, const char *folder, const char *name)
{
	struct git_scan *scan = look->scan;
	char path[PATH_MAX], file[GIT_SCAN_FILE];
	struct stat st;

	if (scan->left_ns == 0 || !is_left(folder, name) ||
	    value_count(scan->left) >= LEFT_MAX || !look_stat(look, name, &st) ||
	    !S_ISREG(st.st_mode) || clock_ns(&st.st_ctim) < scan->left_ns ||
	    snprintf(path, sizeof(path), "%s/%s", look->path, name) >= (int)sizeof(path))
		return;
	auto_free char *key = path_key(path);
	struct value *left = value_new_object();
	git_scan_print_file(&st, file);
	value_set_text(left, "file", file);
	value_set_boolean(left, "shared", strstr(path, "/worktrees/") != NULL);
	value_set(git_scan_list(&scan->left), key, left);
}

void git_scan_print_file(const struct stat *st, char text[GIT_SCAN_FILE])
{
	(void)snprintf(text, GIT_SCAN_FILE, "%jx:%jx:%jd.%09ld", (uintmax_t)st->st_dev,
		       (uintmax_t)st->st_ino, (intmax_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}

void git_scan_share_left(const struct scan_look *look, size_t before)
{
	struct stat st;

	if (value_count(look->scan->left) == before || !look_stat(look, "worktrees", &st))
		return;
	for (void *at = value_first(look->scan->left); at != NULL;
	     at = value_next(look->scan->left, at)) {
		auto_free char *path = path_of_key(value_key(at));
		if (path != NULL && path_within(path, look->path))
			value_set_boolean(value_at(at), "shared", true);
	}
}
