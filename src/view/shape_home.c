/* shape_home: the project's private home, and removing empty folders when a cell ends. */
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* of the workspace's hash: projects of one user never share a home */
	HOME_DIGITS = 16,
	HOME_MEMORY = 256 << 20,
	/* other sessions may end at the same moment; each one needs only microseconds */
	HOME_TRIES = 16,
};

bool shape_state_path(const struct shape_options *options, const char *kind,
		      const char *workspace, struct buf *path)
{
	char hex[HASH_HEX + 1], name[64];

	hash_text(str_of(workspace), hex);
	(void)snprintf(name, sizeof(name), "glovebox/%.16s/%.*s", kind, HOME_DIGITS, hex);
	return path_xdg(shape_environment(options, "XDG_STATE_HOME"),
			shape_environment(options, "HOME"), ".local/state", name, path);
}

/*
 * Does PATH lead through a link in a place that the cell may write? Links cannot be
 * pinned, so a command could replace such a link by a folder of its own, which the next
 * session would use.
 */
static bool leads_through_link(const struct cell_spec *spec, const char *path)
{
	auto_free char *part = memory_copy(path);

	for (char *slash = strrchr(part, '/'); slash != NULL && slash != part;
	     *slash = '\0', slash = strrchr(part, '/')) {
		struct stat st;
		if (lstat(part, &st) < 0 || !S_ISLNK(st.st_mode))
			continue;
		*slash = '\0';
		auto_free char *folder = realpath(part, NULL);
		*slash = '/';
		for (size_t i = 0; folder != NULL && i < spec->view.count; i++) {
			const struct view_entry *entry = &spec->view.entries[i];
			if (entry->kind == VIEW_TREE && entry->writable &&
			    path_within(folder, entry->path))
				return true;
		}
	}
	return false;
}

bool shape_hide_state(const struct shape_options *options, struct cell_spec *spec,
		      struct err *err)
{
	bool shown = false, writable = false;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (!path_xdg(shape_environment(options, "XDG_STATE_HOME"),
		      shape_environment(options, "HOME"), ".local/state", "glovebox",
		      &path)) {
		buf_fini(&path);
		return true;
	}
	/*
	 * When the state folder does not exist, we could not make it, so no program in
	 * the cell can.
	 */
	auto_free char *state = realpath(path.data, NULL);
	if (state != NULL && leads_through_link(spec, path.data)) {
		(void)err_set(err, EPERM,
			      "glovebox's own state, %s, is reached through a link in a folder "
			      "that this agent may write to, and could be exchanged there; set "
			      "XDG_STATE_HOME to the folder that the link leads to",
			      path.data);
		buf_fini(&path);
		return false;
	}
	buf_fini(&path);
	for (size_t i = 0; state != NULL && i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind != VIEW_TREE && entry->kind != VIEW_OVERLAY)
			continue;
		if (path_within(entry->path, state))
			return err_set(err, EPERM,
				       "%s lies in glovebox's own state (%s), which no cell "
				       "gets; name another folder",
				       entry->path, state);
		if (path_within(state, entry->path)) {
			shown = true;
			writable = writable || entry->writable;
		}
	}
	if (writable && !spec_is_sealed(spec) && spec->built >= SANDBOX_RULES)
		return err_set(err, EINVAL,
			       "%s is glovebox's own and cannot be hidden inside a writable "
			       "folder at level L2, which this machine reaches: write to "
			       "narrower folders, set XDG_STATE_HOME to another place, or see "
			       "`glovebox doctor` for L3",
			       state);
	if (!shown || !spec_is_sealed(spec))
		return true;
	shape_pin_above(spec, state);
	spec_add_blocked(spec, state);
	spec_add_entry(spec, VIEW_MASK, state, NULL)->why = "glovebox's own";
	return true;
}

static bool home_make(const char *path)
{
	return fd_make_folders(path, NULL) && (mkdir(path, 0700) == 0 || errno == EEXIST);
}

/*
 * Make, open and lock the folder, so that an ending session of the same project does not
 * remove it. Try again when one has just done so.
 */
static int home_hold(struct buf *path)
{
	for (int i = 0; i < HOME_TRIES && home_make(path->data); i++) {
		auto_close int fd =
			open(path->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd >= 0 && flock(fd, LOCK_SH) == 0 && fstat(fd, &st) == 0 &&
		    st.st_nlink > 0)
			return fd_take(&fd);
	}
	return -1;
}

/* Open and lock the home folder for the cell's user; -1 when that is impossible. */
static int home_open(const struct shape_options *options, const struct cell_spec *spec,
		     struct buf *path)
{
	struct stat st;

	if (!shape_state_path(options, "homes", spec->workspace, path))
		return -1;
	auto_close int fd = home_hold(path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	/*
	 * In somebody else's workspace, root's cell becomes its owner, who must be able
	 * to use the home.
	 */
	if (spec->identity.change && !spec->identity.map_root &&
	    st.st_uid != spec->identity.uid &&
	    fchown(fd, spec->identity.uid, spec->identity.gid) < 0)
		return -1;
	return fd_take(&fd);
}

/*
 * Without a view, the home is the folder at its own path. When root's cell becomes
 * another user, that user cannot reach a folder of root's, so the home is one that is
 * removed with the session.
 */
static void home_grant(struct policy *policy, struct cell_spec *spec, struct buf *path,
		       int *take_fd)
{
	if (*take_fd < 0 || spec->identity.change) {
		buf_clear(path);
		(void)buf_addf(path, "%s/home", spec->temp);
		fd_close(take_fd);
		(void)mkdir(path->data, 0700);
		*take_fd = open(path->data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*take_fd >= 0 && spec->identity.change)
			(void)!chown(path->data, spec->identity.uid, spec->identity.gid);
	} else {
		spec->home_source = arena_copy(&spec->arena, buf_str(path));
	}
	spec->home = arena_copy(&spec->arena, buf_str(path));
	shape_grant(policy, spec, spec->home, true);
	(void)shape_show_tree(spec, spec->home, take_fd, true, false, NULL);
}

static bool home_show(struct cell_spec *spec, const char *source, int *take_fd)
{
	if (!shape_show_tree(spec, SHAPE_HOME, take_fd, true, true, NULL)) {
		spec->view.count--;
		return false;
	}
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
	/* The user of root's cell cannot reach root's folder by its path. */
	if (spec->identity.change && !entry->detached) {
		fd_close(&entry->fd);
		spec->view.count--;
		return false;
	}
	entry->source = arena_copy(&spec->arena, str_of(source));
	entry->why = "the project's private home";
	return true;
}

void shape_add_home(const struct shape_options *options, struct policy *policy,
		    struct cell_spec *spec)
{
	struct buf path;
	auto_close int fd = -1;

	buf_init(&path, PATH_MAX);
	fd = home_open(options, spec, &path);
	spec->home_lock = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (!spec_is_sealed(spec)) {
		home_grant(policy, spec, &path, &fd);
		buf_fini(&path);
		return;
	}
	spec->home = SHAPE_HOME;
	shape_grant(policy, spec, SHAPE_HOME, true);
	if (fd >= 0 && home_show(spec, path.data, &fd)) {
		spec->home_source = arena_copy(&spec->arena, buf_str(&path));
	} else {
		/* The user has no state folder, so make a home for this session only. */
		struct view_entry *entry =
			spec_add_entry(spec, VIEW_MEMORY, SHAPE_HOME, NULL);
		entry->mode = 0700;
		entry->size = HOME_MEMORY;
		entry->why = "a home for this session";
	}
	buf_fini(&path);
}

void shape_tidy(const struct cell_spec *spec)
{
	/* rmdir removes only empty folders */
	bool ours = spec->home_source != NULL &&
		    flock(spec->home_lock, LOCK_EX | LOCK_NB) == 0;

	folder_remove(spec->temp);
	shape_tidy_caches(spec, ours);
	if (ours)
		(void)rmdir(spec->home_source);
	for (size_t i = 0; i < spec->made_count; i++)
		(void)rmdir(spec->made[i]);
}
