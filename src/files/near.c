/*
 * near: suggests names for a missing path: the same base name elsewhere in the workspace,
 * the path without its leading slash, or the nearest names. The walk is short and
 * bounded; no link is followed, and only folders are opened.
 */
#include "files/files.h"
#include "files/files_inside.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
	NEAR_FOLDERS_MAX = 20000, /* waiting at once: bounds the memory of the walk */
	NEAR_CLOCK_EVERY = 64,    /* names between two looks at the clock */
	NEAR_DISTANCE_MAX = 3,    /* edits between two names that still count as a slip */
};

struct near_name {
	char *path;
	size_t distance; /* 0: the same base name */
	bool beside;     /* in the folder of the missing path */
};

struct near {
	struct files *files;
	struct str wanted;
	/* the missing path itself, which may be the name of a dangling link */
	const char *self;
	struct str folder; /* the folder of `self`; empty: the workspace */
	bool is_link;
	char **folders; /* relative to the workspace; a queue: near the top first */
	size_t folder_count, folder_at;
	struct near_name found[FILES_NEAR_MAX];
	size_t found_count;
	int64_t deadline_ms;
	unsigned seen;
};

/* Blocked names are not suggested, because they count as missing. */
static bool near_is_blocked(const struct near *near, const char *path)
{
	struct buf absolute;
	bool blocked = true;

	buf_init(&absolute, PATH_MAX);
	if (path_normal(near->files->workspace, path, &absolute))
		blocked = files_is_blocked(near->files, absolute.data);
	buf_fini(&absolute);
	return blocked;
}

static bool near_before(const struct near_name *a, const struct near_name *b)
{
	size_t a_depth = path_depth(a->path);
	size_t b_depth = path_depth(b->path);

	if (a->distance != b->distance)
		return a->distance < b->distance;
	if (a->beside != b->beside)
		return a->beside;
	if (a_depth != b_depth)
		return a_depth < b_depth;
	return strcmp(a->path, b->path) < 0;
}

/*
 * Keep the best few: ordered by distance, then those beside the missing path, then by
 * depth, then by name.
 */
static void near_keep(struct near *near, const char *folder, const char *name,
		      size_t distance)
{
	struct near_name made = {.distance = distance,
				 .beside = str_is(near->folder, folder)};
	size_t at = near->found_count;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (*folder)
		buf_addf(&path, "%s/", folder);
	buf_adds(&path, name);
	if (strcmp(path.data, near->self) == 0) {
		near->is_link = true;
		buf_fini(&path);
		return;
	}
	if (near_is_blocked(near, path.data)) {
		buf_fini(&path);
		return;
	}
	made.path = buf_take(&path);
	while (at > 0 && near_before(&made, &near->found[at - 1]))
		at--;
	if (at >= FILES_NEAR_MAX) {
		free(made.path);
		return;
	}
	if (near->found_count == FILES_NEAR_MAX)
		free(near->found[--near->found_count].path);
	memmove(&near->found[at + 1], &near->found[at],
		(near->found_count - at) * sizeof(near->found[0]));
	near->found[at] = made;
	near->found_count++;
}

/*
 * A name with control bytes is no suggestion: nobody mistypes them, and a terminal would
 * obey them.
 */
static bool near_has_control(const char *name)
{
	for (; *name; name++) {
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			return true;
	}
	return false;
}

/* NAME without its last ending: "main" of main.c. A dot at the front begins no ending. */
static struct str near_stem(struct str name)
{
	const char *dot = name.size > 1 ? memrchr(name.data + 1, '.', name.size - 1) : NULL;

	return dot ? str_part(name, 0, (size_t)(dot - name.data)) : name;
}

/*
 * The distance between HAVE and WANTED without their endings (main.c for main.cpp): one
 * more than the distance of their stems. LIMIT + 1 when it is larger than LIMIT.
 */
static size_t near_stem_distance(struct str wanted, struct str have, size_t limit)
{
	struct str stem = near_stem(have);
	size_t most = stem.size / 4 < limit ? stem.size / 4 : limit - 1;
	size_t distance = text_distance(near_stem(wanted), stem, most);

	return distance > most ? limit + 1 : distance + 1;
}

static void near_judge(struct near *near, const char *folder, const char *name,
		       bool is_folder)
{
	struct str have = str_of(name);
	size_t limit = have.size / 4 + 1;
	size_t distance, by_stem;

	if (limit > NEAR_DISTANCE_MAX)
		limit = NEAR_DISTANCE_MAX;
	if (near_has_control(name))
		return;
	if (str_equal(have, near->wanted)) {
		near_keep(near, folder, name, 0);
		return;
	}
	if (near->found_count == FILES_NEAR_MAX &&
	    near->found[FILES_NEAR_MAX - 1].distance <= 1)
		return;
	if (have.size == near->wanted.size && strcasecmp(name, near->wanted.data) == 0)
		distance = 1;
	else
		distance = text_distance(near->wanted, have, limit);
	by_stem = is_folder ? distance : near_stem_distance(near->wanted, have, limit);
	if (by_stem < distance)
		distance = by_stem;
	if (distance <= limit && distance < have.size)
		near_keep(near, folder, name, distance);
}

static void near_queue(struct near *near, const char *folder, const char *name)
{
	struct buf path;

	if (near->folder_count >= NEAR_FOLDERS_MAX || strcmp(name, ".git") == 0)
		return;
	buf_init(&path, PATH_MAX);
	if (*folder)
		buf_addf(&path, "%s/", folder);
	buf_adds(&path, name);
	near->folders = memory_grow(near->folders, near->folder_count + 1, sizeof(char *));
	near->folders[near->folder_count++] = buf_take(&path);
	buf_fini(&path);
}

static bool near_late(struct near *near)
{
	return ++near->seen % NEAR_CLOCK_EVERY == 0 && clock_now_ms() >= near->deadline_ms;
}

/* Look at the names in one folder. False when the time is over. */
static bool near_folder(struct near *near, const char *folder)
{
	struct file file;
	struct err err;
	DIR *dir = NULL;
	bool more = true;

	file_init(&file);
	if (files_reach(near->files, *folder ? folder : ".", FILES_FOLDER, &file, &err))
		dir = fdopendir(file.fd);
	if (dir) {
		file.fd = -1;
		for (struct dirent *entry; more && (entry = readdir(dir));) {
			const char *name = entry->d_name;

			if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
				continue;
			near_judge(near, folder, name, entry->d_type == DT_DIR);
			if (entry->d_type == DT_DIR)
				near_queue(near, folder, name);
			more = !near_late(near);
		}
		(void)closedir(dir);
	}
	file_fini(&file);
	return more;
}

static void near_walk(struct near *near)
{
	bool more = near_folder(near, "");

	while (more && near->folder_at < near->folder_count) {
		char *folder = near->folders[near->folder_at];

		near->folders[near->folder_at++] = NULL;
		more = near_folder(near, folder);
		free(folder);
	}
}

/* "/src/a.c" for "src/a.c" is a common slip: does PATH without its slash exist? */
static bool near_without_slash(struct near *near, const char *path)
{
	struct file file;
	struct err err;
	const char *rest = path + strspn(path, "/");
	bool reached;

	if (rest == path || !*rest)
		return false;
	file_init(&file);
	reached = files_reach(near->files, rest, FILES_ANY, &file, &err);
	file_fini(&file);
	if (reached)
		near_keep(near, "", rest, 0);
	return reached;
}

/*
 * Remove quotes around the path in COPY and a line number behind it. COPY is cut; the
 * return value points to the first byte of the rest.
 */
static char *near_unwrap(char *copy)
{
	size_t size = strlen(copy);
	size_t digits;

	while (size > 2 && strchr("\"'`", copy[0]) && copy[size - 1] == copy[0]) {
		copy[size - 1] = '\0';
		copy++;
		size -= 2;
	}
	/* ":12", ":12:5", ":12-30", "#L12-L30" */
	digits = strspn(copy, "0123456789") == size ? 0 : size;
	while (digits > 0 && strchr("0123456789:-L#", copy[digits - 1]))
		digits--;
	if (digits > 0 && (copy[digits] == ':' || copy[digits] == '#'))
		copy[digits] = '\0';
	return copy;
}

void files_add_near(struct files *files, const char *path, struct buf *out)
{
	struct near near = {.files = files};
	auto_free char *copy = memory_copy(path);
	auto_free char *self = NULL;
	size_t size = strlen(copy);

	while (size > 1 && copy[size - 1] == '/')
		copy[--size] = '\0';
	self = memory_copy(copy);
	near.self = path_relative(self, files->workspace);
	near.folder = str_part(str_of(near.self), 0,
			       (size_t)(path_base_name(near.self) - near.self));
	if (near.folder.size > 0)
		near.folder.size--;
	near.wanted = str_of(path_base_name(near_unwrap(copy)));
	near.deadline_ms = clock_now_ms() + FILES_NEAR_MS;
	if (near.wanted.size == 0 || near.wanted.size > NAME_MAX)
		return;
	if (!near_without_slash(&near, copy))
		near_walk(&near);
	if (near.is_link)
		buf_adds(out, " It is a symbolic link; what it leads to is missing or lies "
			      "outside.");
	for (size_t i = 0; i < near.found_count; i++) {
		/*
		 * When files of exactly this name exist, omit names that are only near.
		 */
		if (near.found[i].distance == near.found[0].distance ||
		    near.found[0].distance > 0) {
			buf_adds(out, i == 0 ? " Did you mean: " : ", ");
			buf_adds(out, near.found[i].path);
		}
		free(near.found[i].path);
	}
	if (near.found_count)
		buf_addc(out, '?');
	while (near.folder_at < near.folder_count)
		free(near.folders[near.folder_at++]);
	free(near.folders);
}
