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
};

static const struct row secrets_params[] = {
	{"files", ROW_TEXTS, false, "More files of such lines", .max = PATH_MAX - 1},
	{"show", ROW_TEXTS, false, "Folders that are left out", .max = PATH_MAX - 1},
	{0},
};

struct gathering {
	struct call *call;
	const struct value *show; /* paths */
	char **folders;           /* relative to the workspace, in the order of looking */
	size_t folder_count, name_count;
	char **files;
	size_t file_count;
	struct value *found;
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

static void take(void *context, struct str name, struct str value)
{
	struct gathering *gathering = context;
	struct value *row;

	if (value_count(gathering->found) >= VALUES_MAX)
		return;
	row = value_new_array();
	value_append(row, value_new_str(name));
	value_append(row, value_new_str(value));
	value_append(gathering->found, row);
}

static void read_file(struct gathering *gathering, const char *path, enum secret_file kind)
{
	struct file file;
	struct buf text;

	file_init(&file);
	buf_init(&text, CONTENT_MAX);
	if (files_reach(gathering->call->files, path, FILES_READ, &file, NULL) &&
	    !is_shown(gathering, file.path.data) && file.st.st_size <= CONTENT_MAX &&
	    fd_read_all(file.fd, &text, path, NULL))
		secret_file_read(kind, buf_str(&text), take, gathering);
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

static size_t depth_of(const char *path)
{
	size_t depth = path[0] != '\0';

	for (; *path != '\0'; path++)
		depth += *path == '/';
	return depth;
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
	    depth_of(folder) < DEPTH_MAX && !is_foreign(entry->d_name))
		gathering->folders[gathering->folder_count++] =
			path_below(folder, entry->d_name);
	else if ((type == DT_REG || type == DT_LNK) && gathering->file_count < FILES_MAX &&
		 secret_file_of(entry->d_name) != SECRET_FILE_NONE)
		gathering->files[gathering->file_count++] =
			path_below(folder, entry->d_name);
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

static int by_path(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static enum result_status secrets_execute(struct call *call, struct tool_result *result)
{
	const struct value *files = value_member(call->arguments, "files");
	struct gathering gathering = {
		.call = call,
		.show = value_member(call->arguments, "show"),
		.folders = memory_array(FOLDERS_MAX, sizeof(char *)),
		.files = memory_array(FILES_MAX, sizeof(char *)),
		.found = value_new_array(),
	};
	size_t count = 0;

	gathering.folders[gathering.folder_count++] = memory_copy("");
	for (size_t i = 0; i < gathering.folder_count && !call_stopped(call); i++) {
		if (gathering.folders[i] != NULL && gathering.name_count <= NAMES_MAX)
			look_in(&gathering, gathering.folders[i]);
	}
	for (size_t i = 0; i < gathering.file_count; i++) {
		if (gathering.files[i] != NULL)
			gathering.files[count++] = gathering.files[i];
	}
	/* In one order, so that a resumed session gives the same marks. */
	qsort(gathering.files, count, sizeof(char *), by_path);
	for (size_t i = 0; i < count; i++) {
		read_file(&gathering, gathering.files[i],
			  secret_file_of(last_name(gathering.files[i])));
		free(gathering.files[i]);
	}
	for (size_t i = 0; i < value_count(files); i++) {
		const char *path = value_text(value_item(files, i));

		if (path != NULL)
			read_file(&gathering, path, SECRET_FILE_LINES);
	}
	for (size_t i = 0; i < gathering.folder_count; i++)
		free(gathering.folders[i]);
	free(gathering.folders);
	free(gathering.files);
	value_set(tool_details(result), "secrets", gathering.found);
	return tool_done(result);
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
