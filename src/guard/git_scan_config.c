/*
 * git_scan_config: looks at the configuration of a git folder and at the files that it
 * includes.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "guard/scan.h"

#include <limits.h>
#include <string.h>

enum { CONFIG_DEPTH = 10 }; /* of files that include each other: git's own limit */

static void config_read(const struct scan_look *look, const char *name,
			struct git_config *config)
{
	struct buf text;
	struct stat st;

	buf_init(&text, GIT_CONFIG_MAX);
	git_config_init(config);
	enum look_found found = look_read(look, name, GIT_CONFIG_MAX, &text, &st);
	if (found == LOOK_ODD)
		look_mark_stat(look, name, &st);
	if (found == LOOK_READ)
		git_config_read(buf_str(&text), config);
	if (config->active.size > 0)
		look_mark(look, name, buf_str(&config->active));
	buf_fini(&text);
}

/*
 * Look at the files that a configuration in FOLDER includes, if they are in a place that
 * commands may write.
 */
static void look_included(struct git_scan *scan, const char *folder,
			  const struct git_config *config, unsigned depth)
{
	struct str rest = buf_str(&config->active), line;

	while (depth < CONFIG_DEPTH && str_next_line(&rest, &line)) {
		struct git_config included;
		struct buf path;

		buf_init(&path, PATH_MAX);
		if (git_config_included(line, folder, scan->home, &path)) {
			const char *name;
			auto_close int fd = git_scan_open_parent(scan, path.data, &name);
			auto_free char *key = path_key(path.data);
			auto_free char *parent = memory_copy(path.data);
			parent[name - path.data - 1] = '\0';
			const struct scan_look look = {scan, fd, parent, 0};
			if (fd >= 0 && value_member(scan->held, key) == NULL) {
				git_scan_note(scan, &scan->held, key);
				config_read(&look, name, &included);
				look_included(scan, parent, &included, depth + 1);
				git_config_fini(&included);
			}
		}
		buf_fini(&path);
	}
}

void git_scan_config(struct git_folder *folder, const char *name)
{
	struct git_config config;

	config_read(&folder->look, name, &config);
	look_included(folder->look.scan, folder->look.path, &config, 0);
	folder->sha256 = folder->sha256 || config.sha256;
	git_config_fini(&config);
}
