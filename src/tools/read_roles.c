/*
 * read_roles: the front's own tool that reads the roles which a workspace brings along, so that
 * the front opens none of its files by name. What they say is judged by the front.
 */
#include "base/fd.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/tools.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROLES_FOLDER ".glovebox/agents"
#define ROLES_SUFFIX ".md"

enum {
	ROLES_MAX = 64,             /* people write these by hand */
	ROLES_ENTRIES_MAX = 4096,   /* names looked at: a folder may hold anything */
	ROLE_TEXT_MAX = 256 << 10,  /* far more than any prompt */
	ROLES_TEXT_MAX = 512 << 10, /* all of them */
	TIMEOUT_S = 10,
};

static const struct tool_param read_roles_params[] = {
	{"name", PARAM_TEXT, false, "Only the role of this name", .max = 64},
	{0},
};

static bool is_wanted(const char *file, const char *name)
{
	struct str text = str_of(file);

	if (file[0] == '.' || !str_ends(text, STR(ROLES_SUFFIX)))
		return false;
	text = str_part(text, 0, text.size - strlen(ROLES_SUFFIX));
	return name == NULL || str_is(text, name);
}

/* FILE of FOLDER joins LIST, with its text or with why there is none. */
static void add_role(int folder, const char *file, size_t *total, struct value *list)
{
	auto_close int fd = files_open_below(folder, file, FILES_READ);
	struct value *row = value_new_object();
	struct err err = {0};
	struct buf text;

	buf_init(&text, ROLE_TEXT_MAX);
	value_set_text(row, "file", file);
	if (fd < 0)
		value_set_text(row, "problem", "it is no file that can be read");
	else if (!fd_read_all(fd, &text, file, &err))
		value_set_text(row, "problem", "it is larger than 256 KiB");
	else if (*total + text.size > ROLES_TEXT_MAX)
		value_set_text(row, "problem", "all roles together are larger than 512 KiB");
	else if (!text_is_utf8(buf_str(&text)) || strlen(text.data) != text.size)
		value_set_text(row, "problem", "it is not UTF-8, or holds a NUL byte");
	else
		value_set_str(row, "text", buf_str(&text));
	*total += text.size;
	value_append(list, row);
	buf_fini(&text);
}

static enum result_status read_roles_execute(struct call *call, struct tool_result *result)
{
	const char *name = value_text(value_member(call->arguments, "name"));
	struct value *list = value_new_array();
	struct err err;
	size_t total = 0, seen = 0;
	struct dirent *entry;
	struct file folder;
	DIR *dir = NULL;

	file_init(&folder);
	value_set(tool_details(result), "roles", list);
	if (files_reach(call->files, ROLES_FOLDER, FILES_FOLDER, &folder, &err))
		dir = fdopendir(fcntl(folder.fd, F_DUPFD_CLOEXEC, 0));
	while (dir != NULL && seen++ < ROLES_ENTRIES_MAX &&
	       value_count(list) < ROLES_MAX && (entry = readdir(dir)) != NULL) {
		if (is_wanted(entry->d_name, name))
			add_role(folder.fd, entry->d_name, &total, list);
	}
	if (dir != NULL)
		(void)closedir(dir);
	file_fini(&folder);
	return tool_done(result);
}

const struct tool read_roles_tool = {
	.name = "read_roles",
	.description = "Read the roles of a workspace.",
	.example = "{}",
	.params = read_roles_params,
	.effects = EFFECT_READS,
	.timeout_s = TIMEOUT_S,
	.internal = true,
	.execute = read_roles_execute,
};
