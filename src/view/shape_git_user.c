/*
 * shape_git_user: finds the user's own git configuration and the files that it includes.
 * An included file for all repositories below a folder (`includeIf "gitdir:~/ours/"`) is
 * often kept in that folder, which may be writable for the cell.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "guard/scan.h"
#include "view/shape.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	INCLUDE_DEPTH = 10, /* git's own limit */
	INCLUDED_MAX = 256, /* files */
};

struct visit {
	const char *home;
	/* paths: a file that includes itself twice is not read 2^10 times */
	struct value *seen;
	void (*each)(const char *path, void *context);
	void *context;
};

/*
 * Commands may be able to write PATH, so opening it must not wait when it is a FIFO or
 * device.
 */
static bool config_read(const char *path, struct git_config *config)
{
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct buf text;
	struct stat st;
	struct err err;
	bool fine = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

	buf_init(&text, GIT_CONFIG_MAX);
	fine = fine && fd_read_all(fd, &text, path, &err);
	if (fine)
		git_config_read(buf_str(&text), config);
	buf_fini(&text);
	return fine;
}

static void config_visit(const struct visit *visit, const char *path, unsigned depth)
{
	struct git_config config;
	struct str rest, line;
	struct buf included;

	auto_free char *key = path_key(path);
	if (value_member(visit->seen, key) != NULL ||
	    value_count(visit->seen) >= INCLUDED_MAX)
		return;
	value_set_boolean(visit->seen, key, true);
	visit->each(path, visit->context);
	auto_free char *folder = memory_copy(path);
	folder[path_base_name(path) - path] = '\0';
	git_config_init(&config);
	if (depth < INCLUDE_DEPTH && config_read(path, &config)) {
		rest = buf_str(&config.active);
		while (str_next_line(&rest, &line)) {
			buf_init(&included, PATH_MAX);
			if (git_config_included(line, folder, visit->home, &included))
				config_visit(visit, included.data, depth + 1);
			buf_fini(&included);
		}
	}
	git_config_fini(&config);
}

static void visit_global(const struct shape_options *options, const struct visit *visit)
{
	const char *named = shape_environment(options, "GIT_CONFIG_GLOBAL");
	char path[PATH_MAX];
	struct buf place;

	if (named != NULL && named[0] == '/') {
		config_visit(visit, named, 0);
		return;
	}
	buf_init(&place, PATH_MAX);
	if (path_xdg(shape_environment(options, "XDG_CONFIG_HOME"), visit->home,
		     ".config", "git/config", &place))
		config_visit(visit, place.data, 0);
	buf_fini(&place);
	if (visit->home != NULL &&
	    snprintf(path, sizeof(path), "%s/.gitconfig", visit->home) < (int)sizeof(path))
		config_visit(visit, path, 0);
}

void shape_git_user(const struct shape_options *options,
		    void (*each)(const char *path, void *context), void *context)
{
	const char *home = shape_environment(options, "HOME");
	auto_value struct value *seen = value_new_object();
	const struct visit visit = {
		.seen = seen,
		.home = home != NULL && home[0] == '/' ? home : NULL,
		.each = each,
		.context = context,
	};

	config_visit(&visit, "/etc/gitconfig", 0);
	visit_global(options, &visit);
}
