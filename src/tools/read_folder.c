/* read_folder: the answer of read_file for a folder; see read_folder.h. */
#include "tools/read_folder.h"

#include "base/memory.h"
#include "files/files.h"
#include "tools/shown.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { READ_LISTING = 200 /* names shown; list_files is made for more */ };

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum result_status read_folder(struct call *call, const char *path,
			       struct tool_result *result)
{
	struct file folder;
	struct err err;
	char **names = NULL;
	size_t count = 0;
	DIR *dir = NULL;

	file_init(&folder);
	if (!files_reach(call->files, path, FILES_FOLDER, &folder, &err)) {
		file_fini(&folder);
		return shown_fail(call, result, path, &err);
	}
	dir = fdopendir(folder.fd);
	if (!dir) {
		(void)tool_fail(result, "%s cannot be listed: %s.", path, strerror(errno));
		file_fini(&folder);
		return result->status;
	}
	folder.fd = -1;
	for (struct dirent *entry; (entry = readdir(dir)) && !call_stopped(call);) {
		struct buf name;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		buf_init(&name, NAME_MAX + 2);
		buf_addf(&name, "%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
		if ((count & (count - 1)) == 0) /* full: twice the room */
			names = memory_grow(names, count ? 2 * count : 1, sizeof(*names));
		names[count++] = buf_take(&name);
	}
	(void)closedir(dir);
	if (count)
		qsort(names, count, sizeof(*names), compare_names);
	buf_addc(&result->text, '[');
	shown_add(str_of(files_shown(call->files, folder.path.data)), &result->text);
	buf_addf(&result->text,
		 " is a folder with %s%zu entries; list_files shows more of it]\n",
		 call_stopped(call) ? "at least " : "", count);
	for (size_t i = 0; i < count; i++) {
		if (i < READ_LISTING) {
			shown_add(str_of(names[i]), &result->text);
			buf_addc(&result->text, '\n');
		}
		free(names[i]);
	}
	if (count > READ_LISTING)
		buf_addf(&result->text, "[… %zu more]\n", count - READ_LISTING);
	free(names);
	file_fini(&folder);
	value_set_boolean(tool_details(result), "folder", true);
	value_set_integer(tool_details(result), "entries", (int64_t)count);
	return tool_done(result);
}
