/*
 * secrets: the front's own tool that reads the secrets of the workspace (tool/secret.h), for
 * the marks that stand for them. It looks at the names in the folders of the workspace, the
 * upper ones first, up to FOLDERS_MAX folders and NAMES_MAX names, so its time is bounded in a tree of
 * any size. Folders that hold other people's code are left out, and ignore rules count
 * nothing: files of secrets are ignored as a rule.
 */
#include "tool/secret.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/tools.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FOLDERS_MAX = 1000, /* some 3 ms */
	NAMES_MAX = 20000,
	DEPTH_MAX = 6,
	FILES_MAX = 64,
	VALUES_MAX = 1024,
	CONTENT_MAX = 256 << 10, /* of one file; a longer one is no list of names */
	READ_MAX = 256,          /* files whose second name is known again */
	MISSED_MAX = 16, /* files that are told because not all of them is known */
};

static const struct row secrets_params[] = {
	{"first", ROW_TEXTS, false, "Files that are read before all others",
	 .max = PATH_MAX - 1},
	{"files", ROW_TEXTS, false, "More files of such lines", .max = PATH_MAX - 1},
	{"folders", ROW_TEXTS, false, "More folders that are looked in", .max = PATH_MAX - 1},
	{"show", ROW_TEXTS, false, "Folders that are left out", .max = PATH_MAX - 1},
	{0},
};

struct gathering {
	struct call *call;
	const struct value *show; /* paths */
	char **folders; /* relative to the workspace, or absolute, in the order of looking */
	size_t folder_count, name_count;
	char **files;
	size_t file_count;
	struct value *found, *missed;
	struct {
		dev_t device;
		ino_t inode;
	} read[READ_MAX]; /* the files that were read */
	size_t read_count;
	bool more; /* there are more files than FILES_MAX */
	bool full; /* a value of the file that is read had no room */
};

static bool is_shown(const struct gathering *gathering, const char *path)
{
	for (size_t i = 0; i < value_count(gathering->show); i++) {
		const char *folder = value_text(value_item(gathering->show, i));

		if (folder != NULL && path_within(path, folder))
			return true;
	}
	return false;
}

static struct value *pair_of(struct str first, struct str second)
{
	struct value *row = value_new_array();

	value_append(row, value_new_str(first));
	value_append(row, value_new_str(second));
	return row;
}

/* Note that not all secrets of PATH are found, because of WHY. */
static void miss(struct gathering *gathering, const char *path, const char *why)
{
	if (value_count(gathering->missed) < MISSED_MAX)
		value_append(gathering->missed, pair_of(str_of(path), str_of(why)));
}

static void take(void *context, struct str name, struct str value)
{
	struct gathering *gathering = context;

	if (value_count(gathering->found) >= VALUES_MAX)
		gathering->full = true;
	else
		value_append(gathering->found, pair_of(name, value));
}

/* Is FILE read for the first time? Another name of it would take the room of other values. */
static bool is_new(struct gathering *gathering, const struct file *file)
{
	for (size_t i = 0; i < gathering->read_count; i++) {
		if (gathering->read[i].device == file->st.st_dev &&
		    gathering->read[i].inode == file->st.st_ino)
			return false;
	}
	if (gathering->read_count < READ_MAX) {
		gathering->read[gathering->read_count].device = file->st.st_dev;
		gathering->read[gathering->read_count++].inode = file->st.st_ino;
	}
	return true;
}

/* A file that is not there, or that the call may not read, has no secrets to tell. */
static void read_file(struct gathering *gathering, const char *path, enum secret_file kind)
{
	struct file file;
	struct buf text;
	struct err err;

	file_init(&file);
	buf_init(&text, CONTENT_MAX);
	gathering->full = false;
	if (!files_reach(gathering->call->files, path, FILES_READ, &file, NULL) ||
	    is_shown(gathering, file.path.data) || !is_new(gathering, &file))
		;
	else if (file.st.st_size > CONTENT_MAX)
		miss(gathering, path, SECRET_MISSED_SIZE);
	else if (!fd_read_all(file.fd, &text, path, &err))
		miss(gathering, path, SECRET_MISSED_ERROR);
	else
		secret_file_read(kind, buf_str(&text), take, gathering);
	if (gathering->full)
		miss(gathering, path, SECRET_MISSED_VALUES);
	if (text.capacity > 0)
		explicit_bzero(text.data, text.capacity);
	buf_fini(&text);
	file_fini(&file);
}

/* Names of folders that hold what others have written, or git. */
static bool is_foreign(const char *name)
{
	static const char *const names[] = {".git",         "node_modules", "vendor",
					    ".venv",        "venv",         "target",
					    ".cache",       ".tox",         "__pycache__",
					    "site-packages"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* The path of NAME in FOLDER; NULL: too long. */
static char *path_below(const char *folder, const char *name)
{
	struct buf path;
	char *made = NULL;

	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name))
		made = buf_take(&path);
	buf_fini(&path);
	return made;
}

/* The folders from the one at which looking began down to PATH. */
static size_t depth_of(const struct gathering *gathering, const char *path)
{
	const struct value *tops = value_member(gathering->call->arguments, "folders");
	size_t depth = path[0] != '\0';

	for (size_t i = 0; i < value_count(tops); i++) {
		const char *top = value_text(value_item(tops, i));

		if (top != NULL && path_within(path, top))
			path += strlen(top);
	}
	for (; *path != '\0'; path++)
		depth += *path == '/';
	return depth;
}

/* PATH is moved; NULL: it is too long. */
static void take_file(struct gathering *gathering, char *path)
{
	if (path != NULL && gathering->file_count < FILES_MAX) {
		gathering->files[gathering->file_count++] = path;
		return;
	}
	if (path != NULL && !gathering->more)
		miss(gathering, path, SECRET_MISSED_FILES);
	gathering->more |= path != NULL;
	free(path);
}

static void take_name(struct gathering *gathering, const char *folder, DIR *dir,
		      const struct dirent *entry)
{
	unsigned char type = entry->d_type;
	struct stat st;

	if (type == DT_UNKNOWN &&
	    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		type = (unsigned char)(S_ISDIR(st.st_mode) ? DT_DIR : DT_REG);
	if (type == DT_DIR && gathering->folder_count < FOLDERS_MAX &&
	    depth_of(gathering, folder) < DEPTH_MAX && !is_foreign(entry->d_name))
		gathering->folders[gathering->folder_count++] =
			path_below(folder, entry->d_name);
	else if ((type == DT_REG || type == DT_LNK) &&
		 secret_file_of(entry->d_name) != SECRET_FILE_NONE)
		take_file(gathering, path_below(folder, entry->d_name));
}

static void look_in(struct gathering *gathering, const char *folder)
{
	struct file file;
	DIR *dir = NULL;

	file_init(&file);
	if (files_reach(gathering->call->files, folder[0] != '\0' ? folder : ".",
			FILES_FOLDER, &file, NULL) &&
	    !is_shown(gathering, file.path.data))
		dir = fdopendir(file.fd);
	if (dir != NULL)
		file.fd = -1;
	for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (++gathering->name_count > NAMES_MAX)
			break;
		take_name(gathering, folder, dir, entry);
	}
	if (dir != NULL)
		(void)closedir(dir);
	file_fini(&file);
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* Read the files that are named in PATHS. */
static void read_named(struct gathering *gathering, const struct value *paths)
{
	for (size_t i = 0; i < value_count(paths) && !call_stopped(gathering->call); i++) {
		const char *path = value_text(value_item(paths, i));
		const enum secret_file kind =
			path != NULL ? secret_file_of(last_name(path)) : SECRET_FILE_NONE;

		if (path != NULL)
			read_file(gathering, path,
				  kind != SECRET_FILE_NONE ? kind : SECRET_FILE_LINES);
	}
}

/* False: the call was stopped. */
static bool gather(struct gathering *gathering)
{
	const struct value *arguments = gathering->call->arguments;

	read_named(gathering, value_member(arguments, "first"));
	read_named(gathering, value_member(arguments, "files"));
	gathering->folders[gathering->folder_count++] = memory_copy("");
	const struct value *tops = value_member(arguments, "folders");
	for (size_t i = 0; i < value_count(tops) && gathering->folder_count < FOLDERS_MAX;
	     i++)
		gathering->folders[gathering->folder_count++] =
			memory_copy(value_text(value_item(tops, i)));
	for (size_t i = 0; i < gathering->folder_count; i++) {
		if (call_stopped(gathering->call))
			return false;
		if (gathering->folders[i] != NULL && gathering->name_count <= NAMES_MAX)
			look_in(gathering, gathering->folders[i]);
	}
	/* In one order, so that a value has the same name in each session. */
	str_sort(gathering->files, gathering->file_count);
	for (size_t i = 0; i < gathering->file_count; i++) {
		if (call_stopped(gathering->call))
			return false;
		read_file(gathering, gathering->files[i],
			  secret_file_of(last_name(gathering->files[i])));
	}
	return true;
}

static enum result_status secrets_execute(struct call *call, struct tool_result *result)
{
	struct gathering gathering = {
		.call = call,
		.show = value_member(call->arguments, "show"),
		.folders = memory_array(FOLDERS_MAX, sizeof(char *)),
		.files = memory_array(FILES_MAX, sizeof(char *)),
		.found = value_new_array(),
		.missed = value_new_array(),
	};
	const bool whole = gather(&gathering);

	for (size_t i = 0; i < gathering.file_count; i++)
		free(gathering.files[i]);
	for (size_t i = 0; i < gathering.folder_count; i++)
		free(gathering.folders[i]);
	free(gathering.folders);
	free(gathering.files);
	/* The values so far are told in any case: marks for some are better than for none. */
	value_set(tool_details(result), "secrets", gathering.found);
	value_set(tool_details(result), "missed", gathering.missed);
	return whole ? tool_done(result) : call_stop_result(call, result);
}

const struct tool secrets_tool = {
	.name = SECRET_TOOL,
	.description = "Read the secrets of the workspace.",
	.params = secrets_params,
	.effects = EFFECT_READS,
	.timeout_s = 10,
	.internal = true,
	.plain = true,
	.execute = secrets_execute,
};
