/*
 * git_scan_links: finds symlinks in a git folder. Git writes messages, logs and lists
 * through symlinks, and objects and references into folders behind them. So with a
 * symlink that a command left there, the user's next `git commit` would write to a place
 * where the command itself may not write.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/scan.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	/* folders in the name of a branch; usual names have up to four */
	LINKS_DEPTH = 64,
	STAMP_BYTES = 128,
};

/*
 * The places where git writes to names that may exist already; "/" is the git folder
 * itself.
 */
static const struct place {
	const char *name;
	/* kept: the names are remembered as long as the folder does not change */
	bool deep, kept;
	bool holds_references;
} places[] = {
	{"/", false, true, false},
	{"logs", true, true, false},
	{"refs", true, true, true},
	{"info", false, true, false},
	{"objects", false, true, false},
	{"objects/info", false, true, false},
	{"objects/info/commit-graphs", false, true, false},
	{"objects/pack", false, true, false},
	{"rebase-merge", false, true, false},
	{"rebase-apply", false, true, false},
	{"sequencer", false, true, false},
	{"lost-found", true, false, false},
	{"rr-cache", true, false, false}, /* has a folder for each earlier conflict */
};

struct reading {
	const struct place *place;
	struct value *list;
	bool top;
};

/*
 * Is the symlink NAME a symbolic reference in the old form? Git replaces such a symlink.
 */
static bool is_reference(const struct scan_look *look, const char *name)
{
	char target[PATH_MAX];
	const ssize_t size = readlinkat(look->fd, name, target, sizeof(target));
	const struct str text = {target, size > 0 ? (size_t)size : 0};

	return str_starts(text, STR("refs/")) && str_find(text, STR(".."), 0) == (size_t)-1;
}

/*
 * Does git write through the symlink NAME? A HEAD that is a symlink is only read and
 * replaced.
 */
static bool is_way(const struct scan_look *look, const char *name,
		   const struct reading *reading)
{
	if (look_is_aside(name))
		return false;
	if (reading->place->holds_references)
		return !is_reference(look, name);
	return !reading->top || strcmp(name, "HEAD") != 0;
}

/* Does NAME show that its folder may be a repository, where no other function looks? */
static bool is_repositorys(const char *name)
{
	return strcmp(name, ".git") == 0 || strcmp(name, "HEAD") == 0;
}

/*
 * Add NAME to the list when it must be looked at; a folder to be searched gets a "/" at
 * its end.
 */
static void each_entry(const struct scan_look *look, const char *name, void *context)
{
	const struct reading *reading = context;
	int type = look->type;
	struct stat st;
	struct buf text;

	git_scan_left(look, reading->top ? "" : reading->place->name, name);
	if (type == DT_UNKNOWN && look_stat(look, name, &st))
		type = (int)IFTODT(st.st_mode);
	const bool repositorys = reading->place->deep && is_repositorys(name);
	if (!repositorys && (type == DT_LNK ? !is_way(look, name, reading)
					    : type != DT_DIR || !reading->place->deep))
		return;
	buf_init(&text, 2 * NAME_MAX);
	(void)buf_addf(&text, "%s%s", name, type == DT_DIR && !repositorys ? "/" : "");
	auto_free char *key = path_key(text.data);
	value_append(reading->list, value_new_text(key));
	buf_fini(&text);
}

/*
 * Print a stamp of the folder that changes with every name that comes or goes, even when
 * somebody sets the clock.
 */
static bool print_stamp(const struct scan_look *look, char stamp[STAMP_BYTES])
{
	struct stat st;

	if (fstat(look->fd, &st) < 0)
		return look_trouble(look, errno, ".");
	(void)snprintf(stamp, STAMP_BYTES, "%jx %jd.%09ld %jd.%09ld", (uintmax_t)st.st_ino,
		       (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		       (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	return true;
}

/*
 * Has the folder changed since `left_ns`, so that a killed git may have left files in it?
 */
static bool was_changed(const struct scan_look *look)
{
	struct stat st;

	return look->scan->left_ns > 0 && fstat(look->fd, &st) == 0 &&
	       clock_ns(&st.st_ctim) >= look->scan->left_ns;
}

/*
 * The names of a folder, remembered like the gitlinks of an index. The caller frees the
 * value.
 */
static struct value *entries(const struct scan_look *look, const struct place *place,
			     bool top)
{
	char stamp[STAMP_BYTES];

	if (!print_stamp(look, stamp))
		return NULL;
	auto_free char *key = path_key(look->path);
	const struct value *known = git_scan_known(look->scan, key);
	struct value *list;
	if (!was_changed(look) && str_equal(value_str(value_item(known, 0)), str_of(stamp))) {
		list = value_copy(known);
	} else {
		list = value_new_array();
		struct reading reading = {place, list, top};
		value_append(list, value_new_text(stamp));
		look_names(look, each_entry, &reading);
	}
	if (place->kept)
		value_set(git_scan_list(&look->scan->indexes), key, value_ref(list));
	return list;
}

static void look_name(const struct scan_look *look, const struct place *place,
		      const char *name, unsigned repository)
{
	struct stat st;

	if (place->deep && is_repositorys(name))
		git_scan_worktree(look->scan, look->fd, look->path, repository);
	if (look_stat(look, name, &st) && S_ISLNK(st.st_mode) &&
	    (!place->holds_references || !is_reference(look, name)))
		look_mark_stat(look, name, &st);
}

/*
 * Look at the folder LOOK of PLACE, DEPTH levels down. REPOSITORY: the depth of
 * repositories that are found in it.
 */
static void look_below(const struct scan_look *look, const struct place *place,
		       unsigned depth, unsigned repository)
{
	auto_value struct value *list = entries(look, place, depth == 0);
	char path[PATH_MAX];

	if (depth > LINKS_DEPTH) {
		(void)look_trouble(look, E2BIG, ".");
		return;
	}
	for (size_t i = 1; i < value_count(list); i++) {
		auto_free char *name = path_of_key(value_text(value_item(list, i)));
		size_t size = name != NULL ? strlen(name) : 0;

		if (size == 0 || name[size - 1] != '/') {
			if (size > 0)
				look_name(look, place, name, repository);
			continue;
		}
		name[size - 1] = '\0';
		auto_close int fd = look_enter(look, name, path);
		if (fd < 0)
			continue;
		const struct scan_look below = {look->scan, fd, path, DT_DIR};
		look_below(&below, place, depth + 1, repository);
	}
}

void git_scan_links(const struct scan_look *look, unsigned depth)
{
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct place *place = &places[i];

		if (strcmp(place->name, "/") == 0) {
			look_below(look, place, 0, depth + 1);
			continue;
		}
		if (!look_stat(look, place->name, &st) || !S_ISDIR(st.st_mode))
			continue;
		auto_close int fd = look_enter(look, place->name, path);
		const struct scan_look below = {look->scan, fd, path, DT_DIR};
		if (fd >= 0)
			look_below(&below, place, 1, depth + 1);
	}
}
