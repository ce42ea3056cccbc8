/*
 * protected: the protected files of a view (guard.h). Files in writable trees that git or
 * other agents would run or follow are bound read-only over themselves and pinned, so
 * that they cannot be renamed. Only existing files cost anything.
 */

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/guard.h"
#include "guard/readers.h"
#include "guard/scan.h"
#include "policy/autoexec.h"
#include "undo/plan.h"
#include "view/below.h"
#include "view/review.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Finds the user's own git configuration and the files that it includes. An included
 * file for all repositories below a folder (`includeIf "gitdir:~/ours/"`) is often kept
 * in that folder, which may be writable for the cell.
 */

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

/*
 * Call EACH for the files of the user's own git configuration and the files that it
 * includes (absolute, not resolved), whether they exist or not.
 */
static void user_config(const struct shape_options *options,
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

struct protecting {
	struct cell_spec *spec;
	/* the plan that the cell is made to undo, or NULL */
	const struct undo_plan *undoes;
};

static bool is_root(const struct guard *guard, const char *path)
{
	for (size_t i = 0; i < guard->root_count; i++) {
		if (strcmp(guard->roots[i].path, path) == 0)
			return true;
	}
	return false;
}

static bool is_below(const struct guard *guard, const char *path)
{
	for (size_t i = 0; i < guard->root_count; i++) {
		if (path_within(path, guard->roots[i].path))
			return true;
	}
	return false;
}

/*
 * Did a danger at or below PATH appear while no audit was made? It must stay movable, so
 * that an audit can move it aside.
 */
static bool holds_late(const struct protecting *protecting, const char *path)
{
	const struct marks *marks = &protecting->spec->guard->marks;

	for (const struct mark *mark = marks_next(marks, MARK_LATE, NULL); mark != NULL;
	     mark = marks_next(marks, MARK_LATE, mark)) {
		if (path_within(mark->path, path))
			return true;
	}
	return false;
}

/* Must the cell write PATH, because the undo restores it? */
static bool is_undone(const struct protecting *protecting, const char *path)
{
	const char *workspace = protecting->spec->workspace;

	return protecting->undoes != NULL && path_within(path, workspace) &&
	       undo_plan_touches(protecting->undoes, str_of(path_relative(path, workspace)));
}

/*
 * Bind PATH read-only in its place. A symlink cannot be bound (the audit sees when it
 * changes), and a path that the policy itself names in `write` stays writable.
 */
static void hold(const struct protecting *protecting, const char *path)
{
	struct cell_spec *spec = protecting->spec;
	struct stat st;

	if (lstat(path, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) ||
	    is_root(spec->guard, path) || spec_is_blocked(spec, path) ||
	    is_undone(protecting, path))
		return;
	shape_pin_above(spec, path);
	spec_add_entry(spec, VIEW_PIN, path, NULL)->why = "protected";
}

static void hold_repository(const struct protecting *protecting, const char *path)
{
	char below[PATH_MAX];

	for (size_t i = 0; i < AUTOEXEC_GIT_COUNT; i++) {
		if (snprintf(below, sizeof(below), "%s/%s", path, autoexec_git_names[i]) <
			    (int)sizeof(below) &&
		    !holds_late(protecting, below))
			hold(protecting, below);
	}
}

/*
 * Is PATH in a folder that is bound as a whole (`modules`)? Then it needs no bind of its
 * own.
 */
static bool is_held(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind == VIEW_PIN && !entry->writable &&
		    path_within(path, entry->path))
			return true;
	}
	return false;
}

/*
 * Bind the files near a root. Those deep below it are only audited, because builds move
 * and remove their checkouts there.
 */
static void hold_all(const struct protecting *protecting)
{
	static const enum mark_kind held[] = {MARK_REPOSITORY, MARK_HELD, MARK_FILE};
	const struct marks *marks = &protecting->spec->guard->marks;

	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		for (const struct mark *mark = marks_next(marks, held[i], NULL);
		     mark != NULL; mark = marks_next(marks, held[i], mark)) {
			if (mark->deep)
				continue;
			if (mark->kind != MARK_REPOSITORY) {
				if (!holds_late(protecting, mark->path))
					hold(protecting, mark->path);
			} else if (!is_held(protecting->spec, mark->path)) {
				hold_repository(protecting, mark->path);
			}
		}
	}
}

/* The real path of a file that may not be there yet; its folder must be. */
static bool real_place(const char *path, struct buf *out)
{
	auto_free char *whole = realpath(path, NULL);
	auto_free char *folder = NULL;
	const char *name = path_base_name(path);

	if (whole != NULL)
		return buf_adds(out, whole);
	auto_free char *above = memory_copy(path);
	above[name - path] = '\0';
	folder = realpath(above[0] != '\0' ? above : ".", NULL);
	return folder != NULL && buf_addf(out, "%s/%s", folder, name);
}

/* Protect PATH when it is in a writable root of the guard CONTEXT. */
static void files_add(const char *path, void *context)
{
	struct guard *guard = context;
	struct buf real;

	buf_init(&real, PATH_MAX);
	if (!real_place(path, &real)) {
		buf_clear(&real);
		(void)path_normal("/", path, &real);
	}
	if (is_below(guard, real.data))
		(void)marks_add(&guard->marks, MARK_FILE, real.data, STR(""));
	buf_fini(&real);
}

/*
 * The protected files of OPTIONS, and the configuration that git reads for all
 * repositories of the user.
 */
static void files_protect(const struct shape_options *options, struct guard *guard)
{
	const char *const *at = options->protected_files;

	for (; at != NULL && *at != NULL; at++)
		files_add(*at, guard);
	user_config(options, files_add, guard);
}

/*
 * The folder for what a session leaves when its front dies. What is written into a layer is
 * found by a session in that layer only: it is kept there, and goes with the layer.
 */
static bool pending_place(const struct shape_options *options, struct buf *folder)
{
	char own[FD_NAME_ROOM];

	if (options->review != NULL)
		return buf_addf(folder, "%s/" REVIEW_PENDING,
				fd_name(options->review->folder, own));
	return path_xdg(shape_environment(options, "XDG_STATE_HOME"),
			shape_environment(options, "HOME"), ".local/state",
			"glovebox/pending", folder);
}

/* Keep the guard on the disk, for the work that this session leaves when its front dies. */
static void guard_hold(const struct shape_options *options, const struct cell_spec *spec)
{
	struct buf folder;

	buf_init(&folder, PATH_MAX);
	if (options->hold_guard != NULL && pending_place(options, &folder))
		options->hold_guard(options->context, folder.data, spec->workspace,
				    spec->guard);
	buf_fini(&folder);
}

/* Does only a layer below have the folder that SPEC shows at PATH? */
static bool is_of_layers(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (entry->kind == VIEW_OVERLAY && strcmp(entry->path, path) == 0)
			return strcmp(entry->source, path) != 0;
	}
	return false;
}

/*
 * Does SPEC show at PATH a layer that is new, over the folder itself and not over a copy, and
 * nothing else below it that can be written?
 */
static bool is_new_layer(const struct shape_options *options,
			 const struct cell_spec *spec, const char *path)
{
	bool layer = false;

	if (options == NULL || options->review == NULL ||
	    options->review->life != REVIEW_MADE)
		return false;
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (strcmp(entry->path, path) == 0)
			layer = layer ||
				(entry->kind == VIEW_OVERLAY &&
				 entry->lasts == VIEW_LASTS_REVIEW && !entry->copied);
		else if (path_within(entry->path, path) && entry->writable &&
			 entry->kind != VIEW_PIN)
			return false;
	}
	return layer;
}

/*
 * The writable trees of the host. Layers are not among them, because files in a layer
 * vanish with the cell, or are landed, which brings nothing that is protected. In the workspace
 * the looks of undo find the repositories.
 */
static void roots_add(const struct shape_options *options, const struct cell_spec *spec,
		      struct guard *guard)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		const bool looked = options != NULL && !options->no_checkpoints &&
				    path_within(entry->path, spec->workspace);

		if (entry->kind != VIEW_TREE || !entry->writable ||
		    is_of_layers(spec, entry->path))
			continue;
		guard_add_root(guard, entry->path, looked ? GUARD_UNDO : GUARD_CALLS);
		guard->roots[guard->root_count - 1].layer =
			is_new_layer(options, spec, entry->path);
	}
}

/*
 * Mark protected names that may be written: those that are a root or have a root in
 * them, and those that the cell's undo restores. The undo plan has no names that its
 * steps could not have written.
 */
static void open_names(const struct shape_options *options, const struct cell_spec *spec,
		       struct guard *guard)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < guard->root_count; i++)
		(void)marks_add(&guard->marks, MARK_OPENED, guard->roots[i].path, STR(""));
	if (options == NULL || options->undoes == NULL)
		return;
	for (const struct autoexec *row = autoexec_names; row->name != NULL; row++) {
		if (row->care != AUTOEXEC_PROTECTED ||
		    !undo_plan_touches(options->undoes, str_of(row->name)) ||
		    snprintf(path, sizeof(path), "%s/%s", spec->workspace, row->name) >=
			    (int)sizeof(path))
			continue;
		(void)marks_add(&guard->marks, MARK_OPENED, path, STR(""));
	}
}

/*
 * Make the guard of SPEC, record it, and bind the protected files. With OPTIONS, the
 * record of an earlier front may change the guard. OPTIONS NULL: no additional file is
 * protected, and nothing is kept on disk.
 */
static bool guard_make(const struct shape_options *options, struct cell_spec *spec,
		       struct err *err)
{
	const char *home = options != NULL ? shape_environment(options, "HOME") : NULL;
	struct guard *guard = memory_alloc(sizeof(*guard));
	const struct protecting protecting = {
		.spec = spec,
		.undoes = options != NULL ? options->undoes : NULL,
	};

	spec->guard = guard; /* freed together with SPEC, also after a failure */
	guard->workspace = memory_copy(spec->workspace);
	guard->home = home != NULL ? realpath(home, NULL) : NULL;
	guard->began_ns = clock_wall_ns();
	/*
	 * The clock that the kernel uses for the times of files. It advances only at the
	 * kernel's ticks.
	 */
	guard->ticked_ns = clock_file_ns();
	roots_add(options, spec, guard);
	open_names(options, spec, guard);
	if (options != NULL)
		files_protect(options, guard);
	for (size_t i = 0; i < guard->root_count; i++) {
		if (!git_scan_above(guard->roots[i].path, &guard->marks, err))
			return false;
	}
	if (!audit_begin(guard,
			 options != NULL && options->one_call ? GIT_SCAN_FOLDERS_CALL
							      : GIT_SCAN_FOLDERS,
			 err))
		return err_while(err, "looking at the repositories of the workspace");
	/* In a layer nothing has to be looked at, but its writes have to be put back. */
	if (options != NULL && (guard->root_count > 0 || options->review != NULL))
		guard_hold(options, spec);
	if (guard->root_count > 0) {
		hold_all(&protecting);
	} else {
		guard_free(spec->guard);
		spec->guard = NULL;
	}
	return true;
}

bool shape_add_protected(const struct shape_options *options, struct cell_spec *spec,
			 struct err *err)
{
	return options->unguarded || guard_make(options, spec, err);
}

bool shape_protect_extra(const struct cell_spec *cell, struct cell_spec *addition,
			 struct err *err)
{
	if (!guard_make(NULL, addition, err))
		return false;
	if (addition->guard != NULL)
		guard_join(addition->guard, cell->guard);
	return true;
}

/*
 * The `.git` of a worktree or submodule is a file that names a folder of the main
 * repository elsewhere. The repository is shown read-only if it names this workspace in
 * turn. Without that check, a file in a workspace could widen the rights of its cell.
 */

/* The content of the small regular file NAME; false when NAME is anything else. */
static bool file_read(const char *name, struct buf *content)
{
	auto_close int fd =
		open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       fd_read_all(fd, content, name, NULL);
}

/*
 * The real path that the file NAME in FOLDER names, as READ (readers.h) finds it; or
 * NULL.
 */
static char *pointer_follow(const char *folder, const char *name,
			    bool (*read)(struct str text, struct str *path))
{
	struct buf file, content, target;
	struct str path;
	char *real = NULL;

	buf_init(&file, PATH_MAX);
	buf_init(&content, GIT_POINTER_MAX);
	buf_init(&target, PATH_MAX + GIT_POINTER_MAX);
	if (buf_addf(&file, "%s/%s", folder, name) && file_read(file.data, &content) &&
	    read(buf_str(&content), &path) && path.size > 0) {
		if (path.data[0] != '/')
			(void)buf_addf(&target, "%s/", folder);
		if (buf_addstr(&target, path))
			real = realpath(target.data, NULL);
	}
	buf_fini(&target);
	buf_fini(&content);
	buf_fini(&file);
	return real;
}

/*
 * Cut ENTRY, of the form COMMON/worktrees/NAME, down to COMMON. False for any other form.
 */
static bool common_cut(char *entry)
{
	char *name = strrchr(entry, '/');

	if (name == NULL || name == entry)
		return false;
	*name = '\0';
	if (strcmp(path_base_name(entry), "worktrees") != 0)
		return false;
	*strrchr(entry, '/') = '\0';
	return entry[0] == '/' && entry[1] != '\0';
}

static char *common_of(const char *workspace)
{
	char *entry = pointer_follow(workspace, ".git", readers_text_pointer);
	struct buf own;

	if (entry == NULL)
		return NULL;
	auto_free char *back = pointer_follow(entry, "gitdir", readers_text_line);
	buf_init(&own, PATH_MAX);
	bool ours = back != NULL && buf_addf(&own, "%s/.git", workspace) &&
		    strcmp(own.data, back) == 0 && common_cut(entry);
	buf_fini(&own);
	if (ours)
		return entry;
	free(entry);
	return NULL;
}

bool shape_is_repository(const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (const char *const *name = git_scan_repository; *name != NULL; name++) {
		if (snprintf(part, sizeof(part), "%s/%s", path, *name) >= (int)sizeof(part) ||
		    lstat(part, &st) < 0)
			return false;
	}
	return true;
}

/* Does the configuration of the repository at PATH name WORKSPACE as its worktree? */
static bool names_worktree(const char *path, const char *workspace)
{
	static const struct str key = {"core.worktree=", 14};
	struct git_config config;
	struct buf text, named;
	struct str rest, line;
	char file[PATH_MAX];
	bool names_it = false;

	if (snprintf(file, sizeof(file), "%s/config", path) >= (int)sizeof(file))
		return false;
	buf_init(&text, GIT_CONFIG_MAX);
	git_config_init(&config);
	if (fd_read_file(file, GIT_CONFIG_MAX, &text, NULL))
		git_config_read(buf_str(&text), &config);
	rest = buf_str(&config.active);
	while (str_next_line(&rest, &line)) {
		if (!str_starts(line, key))
			continue;
		auto_free char *value =
			memory_copy_str(str_part(line, key.size, line.size));
		buf_init(&named, PATH_MAX);
		names_it = path_normal(path, value, &named) &&
			   strcmp(named.data, workspace) == 0;
		buf_fini(&named);
	}
	git_config_fini(&config);
	buf_fini(&text);
	return names_it;
}

/*
 * The repository of a submodule, which is in the git folder of the surrounding project;
 * or NULL.
 */
static char *module_of(const char *workspace)
{
	char *module = pointer_follow(workspace, ".git", readers_text_pointer);

	if (module != NULL && shape_is_repository(module) &&
	    names_worktree(module, workspace))
		return module;
	free(module);
	return NULL;
}

char *shape_repository_of(const char *workspace)
{
	struct buf own;
	struct stat st;
	char *found = NULL;

	buf_init(&own, PATH_MAX);
	if (buf_addf(&own, "%s/.git", workspace) && lstat(own.data, &st) == 0 &&
	    S_ISDIR(st.st_mode))
		found = memory_copy(own.data);
	buf_fini(&own);
	if (found == NULL)
		found = common_of(workspace);
	return found != NULL ? found : module_of(workspace);
}

static bool is_shown(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->root_count; i++) {
		if (path_within(path, spec->roots[i].path))
			return true;
	}
	for (const char *const *at = spec->blocked.items; *at != NULL; at++) {
		if (path_within(path, *at))
			return true;
	}
	return false;
}

/*
 * Is PATH still the real path of FD? A folder above may have become a link since the path
 * was checked.
 */
static bool lies_at(int fd, const char *path)
{
	struct buf real;

	buf_init(&real, PATH_MAX);
	bool same = shape_real_path(fd, &real, NULL) && strcmp(real.data, path) == 0;
	buf_fini(&real);
	return same;
}

void shape_add_worktree(struct policy *policy, struct cell_spec *spec)
{
	auto_free char *common = common_of(spec->workspace);

	if (common == NULL)
		common = module_of(spec->workspace);
	if (common == NULL || is_shown(spec, common))
		return;
	auto_close int fd = open(common, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !lies_at(fd, common))
		return;
	/* It lies outside of the workspace, and in no layer below. */
	const struct below_found nothing = {0};
	size_t count = spec->view.count;
	bool ok = policy->scratch ? shape_show_layer(spec, common, &fd, &nothing,
						     policy->limits.tmp, NULL)
				  : shape_show_tree(spec, common, &fd, false, true, NULL);
	if (!ok) {
		spec->view.count = count;
		return;
	}
	spec->view.entries[spec->view.count - 1].why = "the repository of this worktree";
	/*
	 * With `scratch`, commands may write here, but file tools may not, because their
	 * writes would not last.
	 */
	policy_show(policy, common, policy->scratch);
	spec_add_root(spec, common, false, NULL);
	if (policy->scratch)
		spec_add(spec, &spec->writable, common);
}
