/*
 * walk_start: the folder a walk begins in, with the rules that hold around it; see
 * walk.h.
 */
#include "base/fd.h"
#include "base/path.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/search/rules.h"
#include "tools/search/walk.h"
#include "tools/shown.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int walk_start_below(int folder_fd, const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, folder_fd, path, &how, sizeof(how));
}

/*
 * Collect the rules from the workspace down to the folder above BELOW, and ask them
 * about BELOW. There are none where only parts of the workspace may be read.
 */
static void walk_start_rules(struct walk_start *start, struct files *files, const char *below)
{
	struct str path = str_of(below);
	struct file workspace;
	struct err err;
	size_t at = 0;

	file_init(&workspace);
	if (!files_reach(files, files_workspace(files), FILES_FOLDER, &workspace, &err)) {
		file_fini(&workspace);
		return;
	}
	while (at < path.size && !start->ignored) {
		struct str folder = str_part(path, 0, at > 0 ? at - 1 : 0);
		size_t slash = str_find(path, STR("/"), at);
		size_t end = slash == (size_t)-1 ? path.size : slash;
		auto_close int fd = -1;
		char name[PATH_MAX];

		(void)snprintf(name, sizeof(name), "%.*s", (int)folder.size, folder.data);
		fd = walk_start_below(workspace.fd, name[0] ? name : ".",
				      O_PATH | O_DIRECTORY);
		if (fd >= 0) {
			struct rules *outer = start->rules;

			start->rules =
				rules_enter_unseen(outer, &start->rules_place, fd, folder);
			rules_unref(outer);
		}
		start->ignored = rules_ignore(start->rules, str_part(path, 0, end), true);
		at = end + 1;
	}
	file_fini(&workspace);
}

bool walk_start_open(struct walk_start *start, const struct call *call, const char *path,
		     struct err *err)
{
	struct files *files = call->files;
	const char *workspace = files_workspace(files);
	struct file folder;
	bool reached;

	*start = (struct walk_start){
		.fd = -1,
		.rules_place = {.files = files, .environment = call->environment},
	};
	buf_init(&start->rules_place.root, PATH_MAX);
	buf_init(&start->shown, PATH_MAX);
	buf_init(&start->rules_path, PATH_MAX);
	file_init(&folder);
	reached = files_reach(files, path, FILES_FOLDER, &folder, err);
	if (reached) {
		const char *real = folder.path.data;

		start->fd = fd_take(&folder.fd);
		(void)buf_adds(&start->shown, files_shown(files, real));
		(void)buf_adds(&start->rules_place.root,
			       path_within(real, workspace) ? workspace : real);
		if (path_within(real, workspace) && strcmp(real, workspace) != 0) {
			(void)buf_adds(&start->rules_path, path_relative(real, workspace));
			walk_start_rules(start, files, start->rules_path.data);
		}
	}
	file_fini(&folder);
	return reached;
}

void walk_start_fini(struct walk_start *start)
{
	fd_close(&start->fd);
	buf_fini(&start->shown);
	buf_fini(&start->rules_path);
	buf_fini(&start->rules_place.root);
	rules_unref(start->rules);
	start->rules = NULL;
}

void walk_start_name(const struct walk_start *start, struct str path, struct buf *out)
{
	if (!str_is(buf_str(&start->shown), ".")) {
		shown_add(buf_str(&start->shown), out);
		if (path.size > 0 && !str_ends(buf_str(&start->shown), STR("/")))
			(void)buf_addc(out, '/');
	} else if (path.size == 0) {
		(void)buf_addc(out, '.');
	}
	shown_add(path, out);
}

int walk_start_open_file(const struct walk_start *start, const char *path)
{
	return walk_start_below(start->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}
