/*
 * base: what a cell shows whose root is a base (docs/bases.md): the folders of the base, what
 * every cell has of its own, and the environment that the base wants. Nothing of this
 * machine's programs, caches and toolchains is shown.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "policy/ceiling.h"
#include "policy/policy.h"
#include "tool/denial.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The folders of the base. */

/*
 * Refuse a FOLDER that would show more than a system: a home, or what holds one. One that a
 * person has named shows no more than a granted folder would, because SPEC's own roots and
 * masks are about this machine's paths, and the base has others.
 */
static bool folder_check(const struct shape_options *options, const struct cell_spec *spec,
			 const char *folder, bool named, struct err *err)
{
	const struct shape_base *base = options->base;
	const char *home = shape_environment(options, "HOME");
	auto_free char *real = home != NULL ? realpath(home, NULL) : NULL;
	const char *holds = NULL;

	if (strcmp(folder, "/") == 0)
		holds = "this machine";
	else if (policy_is_home(folder) || (real != NULL && path_within(real, folder)))
		holds = "a home";
	else if (denial_system_folder_around(folder, FOLDER_KERNEL) != NULL ||
		 denial_system_folder_is(folder, FOLDER_FIXED | FOLDER_CROWD | FOLDER_OWN))
		holds = "a part of this system";
	if (holds != NULL)
		return err_set(err, EPERM,
			       "base %s: %s is %s, which no cell gets as its root; name a folder "
			       "that holds a root file system and nothing else",
			       base->word, folder, holds);
	if (!named)
		return true;
	const char *key = ceiling_of_tree(options->ceiling, folder, false);
	if (key != NULL)
		return ceiling_refuse(base->word, key, err);
	return shape_judge_base(options, spec, folder, err) ||
	       err_while(err, "base %s", base->word);
}

/*
 * FOLDER is read-only wherever the cell shows it in a folder that it may write. The folders on the
 * way to it are pinned, so no program moves it out of its mount.
 */
static bool folder_keep(struct cell_spec *spec, const char *folder, struct err *err)
{
	bool writable = false;

	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (entry->kind != VIEW_TREE || !entry->writable)
			continue;
		if (path_within(entry->source, folder))
			return err_set(err, EPERM,
				       "%s, which the cell may write to, lies in the base, "
				       "which no cell changes; name a folder outside of it",
				       entry->source);
		writable = writable || path_within(folder, entry->source);
	}
	if (!writable || spec_is_blocked(spec, folder))
		return true;
	shape_pin_above(spec, folder);
	spec_add_entry(spec, VIEW_PIN, folder, NULL)->why = "the base";
	return true;
}

/* Show the layer NUMBER of the base, counted from the top. */
static bool folder_show(const struct shape_options *options, struct cell_spec *spec,
			unsigned number, struct err *err)
{
	const struct shape_base *base = options->base;
	const size_t at = base->folder_count - 1 - number;
	const char *folder = base->folders[at];
	auto_close int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno, "base %s: %s: %s", base->word, folder,
			       strerror(errno));
	if (!folder_check(options, spec, folder, at < base->named, err))
		return false;
	if (!folder_keep(spec, folder, err))
		return err_while(err, "base %s", base->word);
	if (!shape_show_tree(spec, folder, &fd, false, true, err))
		return err_while(err, "base %s: %s", base->word, folder);
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
	entry->kind = VIEW_LOWER;
	entry->path = "/";
	entry->number = number;
	entry->why = "base";
	return true;
}

/*
 * NAME, relative, in the folder FOLDER of a base, without following a link on the way: -1 with
 * ENOENT where nothing is there.
 */
static int open_in(const char *folder, const char *name, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_PATH | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	auto_close int top = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return top < 0 ? -1 : (int)syscall(SYS_openat2, top, name, &how, sizeof(how));
}

/* Is NAME, relative and without links, a folder in some folder of BASE? */
static bool has_folder(const struct shape_base *base, const char *name)
{
	for (size_t i = 0; i < base->folder_count; i++) {
		auto_close int found = open_in(base->folders[i], name, O_DIRECTORY);

		if (found >= 0)
			return true;
	}
	return false;
}

/*
 * A name that a higher folder of the base has removed counts as there, too: nothing is lost by
 * another place.
 */
bool shape_base_has(const struct shape_base *base, const char *path)
{
	for (size_t i = 0; i < base->folder_count; i++) {
		auto_close int found = open_in(base->folders[i], path + 1, O_NOFOLLOW);

		if (found < 0 && errno == ENOENT)
			continue;
		if (found < 0 || !fd_folder_is_empty(found))
			return true;
	}
	return false;
}

bool shape_check_base(const struct shape_options *options, const struct cell_spec *spec,
		      struct err *err)
{
	const struct shape_base *base = options->base;

	if (base == NULL)
		return true;
	if (!spec_is_sealed(spec))
		return err_set(err, ECHILD,
			       "base %s: only a cell of level L3 has a root of its own: see "
			       "`glovebox doctor`",
			       base->word);
	if (base->folder_count == 0 || base->folder_count > VIEW_LOWERS_MAX)
		return err_set(err, E2BIG,
			       "base %s: it has %zu layers; 1 to %d are laid over each other",
			       base->word, base->folder_count, VIEW_LOWERS_MAX);
	return true;
}

/*
 * Can the folder HOME, of programs, be the cell's own? In a place that is shown, building the view would
 * make it on this machine, or could not make it.
 */
static bool home_is_own(const struct shape_options *options, const struct cell_spec *spec,
			const char *home)
{
	static const char *const own[] = {"/etc/hosts", "/etc/resolv.conf", SHAPE_PROGRAMS};
	struct buf normal;
	bool fine;

	buf_init(&normal, PATH_MAX - 1);
	fine = path_normal("/", home, &normal) && strcmp(normal.data, home) == 0 &&
	       home[1] != '\0' && text_find_unseen(str_of(home)) == strlen(home);
	buf_fini(&normal);
	for (const char *at = home; fine && *at != '\0'; at += strcspn(at, "/"))
		fine = strcspn(++at, "/") <= NAME_MAX;
	fine = fine && !path_within(home, spec->workspace) &&
	       !(options->at != NULL && path_within(home, options->at)) &&
	       !spec_is_blocked(spec, home) &&
	       denial_system_folder_around(home, FOLDER_KERNEL) == NULL;
	for (size_t i = 0; fine && i < sizeof(own) / sizeof(own[0]); i++)
		fine = !path_within(home, own[i]);
	for (size_t i = 0; fine && i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		fine = entry->kind == VIEW_BASE || entry->kind == VIEW_LOWER ||
		       (entry->kind == VIEW_MEMORY && strcmp(entry->path, "/tmp") == 0) ||
		       !path_within(home, entry->path);
	}
	for (const struct shape_shown *at = options->shown;
	     fine && at != NULL && at->source != NULL; at++)
		fine = !path_within(home, at->path);
	return fine;
}

/*
 * The home of programs: as the base sets it, where it can be there, else root's, or one of the
 * user's own. To be called after the entries of the policy and those of each cell on a base.
 */
static const char *home_of(const struct shape_options *options, const struct cell_spec *spec)
{
	const char *fallback = spec->identity.root ? "/root" : SHAPE_HOME;

	for (const char *const *at = options->base->environment; *at != NULL; at++) {
		if (strncmp(*at, "HOME=/", 6) == 0 &&
		    home_is_own(options, spec, *at + strlen("HOME=")))
			return *at + strlen("HOME=");
	}
	return fallback;
}

/* Is nothing at PATH in any folder of BASE, and no link or file on the way to it? */
static bool is_free(const struct shape_base *base, const char *path)
{
	for (size_t i = 0; i < base->folder_count; i++) {
		auto_close int found = open_in(base->folders[i], path + 1, O_NOFOLLOW);

		if (found >= 0 || errno != ENOENT)
			return false;
	}
	return true;
}

/*
 * Make the folder where programs of the base begin, which an image may name without bringing it, as
 * container runtimes do. To be called after home_of.
 */
static void workdir_add(const struct shape_options *options, struct cell_spec *spec)
{
	const char *workdir = options->base->workdir;

	if (is_free(options->base, workdir) && home_is_own(options, spec, workdir))
		(void)spec_add_entry(spec, VIEW_FOLDER,
				     arena_copy(&spec->arena, str_of(workdir)), NULL);
}

/* Add the memory PATH of at most SIZE bytes. */
static void memory_add(struct cell_spec *spec, const char *path, mode_t mode, uint64_t size)
{
	struct view_entry *entry = spec_add_entry(spec, VIEW_MEMORY, path, NULL);

	entry->mode = mode;
	entry->size = size;
}

/*
 * apt drops its rights before it fetches, and looks whether it has lost them: it has to be told
 * that there is one user.
 */
#define APT_FOLDER "etc/apt"
#define APT_FILE   "/etc/apt/apt.conf.d/99glovebox"
#define APT_TEXT   "APT::Sandbox::User \"root\";\n"

enum {
	TMP_MODE = 01777,
	FOLDER_MODE = 0755,
	DEVICES_SIZE = 64 << 10, /* mount points and links only */
};

bool shape_add_base(const struct shape_options *options, struct policy *policy,
		    struct cell_spec *spec, struct err *err)
{
	const struct shape_base *base = options->base;
	struct view_entry *root = spec_add_entry(spec, VIEW_BASE, "/", NULL);
	root->size = policy->limits.tmp;
	root->mode = FOLDER_MODE;
	root->number = (unsigned)base->folder_count;
	root->why = arena_copy(&spec->arena, str_of(base->word));
	for (size_t i = 0; i < base->folder_count; i++) {
		if (!folder_show(options, spec, (unsigned)i, err))
			return false;
	}
	shape_grant(policy, spec, "/", true);
	memory_add(spec, "/dev", FOLDER_MODE, DEVICES_SIZE);
	shape_add_devices(spec, policy->limits.tmp);
	spec_add_entry(spec, VIEW_TREE, SHAPE_PROCESSORS, SHAPE_PROCESSORS)->optional =
		true;
	(void)spec_add_entry(spec, VIEW_PROCESSES, "/proc", NULL);
	/* To the worker, in which file tools run, /proc/self is the worker itself. */
	spec_add(spec, &spec->blocked, "/proc");
	memory_add(spec, "/tmp", TMP_MODE, policy->limits.tmp);
	shape_grant(policy, spec, "/tmp", true);
	if (spec->identity.root && has_folder(base, APT_FOLDER))
		(void)spec_add_entry(spec, VIEW_TEXT, APT_FILE, APT_TEXT);
	spec->home = arena_copy(&spec->arena, str_of(home_of(options, spec)));
	if (!has_folder(base, spec->home + 1) && !shape_is_shown(spec, spec->home, false))
		(void)spec_add_entry(spec, VIEW_FOLDER, spec->home, NULL);
	workdir_add(options, spec);
	return true;
}

/*
 * Our own program. It needs a loader and a C library that a base may not have, or has in another
 * version, so those of this process are shown beside it, and a script starts it by them. A base
 * without a shell has nothing that would call our program. No program of the base gets to see
 * these libraries unasked: they are in no folder where it looks.
 */

#define LAUNCHER                                                                        \
	"#!/bin/sh\n"                                                                   \
	"exec " SHAPE_LIBRARIES "/ld.so --argv0 \"$0\" --library-path " SHAPE_LIBRARIES \
	" " SHAPE_LIBRARIES "/glovebox \"$@\"\n"

/* Ends a shim: another user than the one that there is. */
#define NO_OTHER_USER                                                                      \
	"\techo \"${0##*/}: this cell has one user; \\\"$1\\\" needs another base\" >&2\n" \
	"\texit 1\n"

static const char sudo_text[] =
	"#!/bin/sh\n"
	"# sudo in a cell on a base: there is one user, so the command is run as it is.\n"
	"other() {\n"
	"\tcase $1 in root | '#0' | 0 | '') return ;; esac\n" NO_OTHER_USER "}\n"
	"login=\n"
	"while :; do\n"
	"\tcase $1 in\n"
	"\t-u | --user) other \"$2\"; shift 2 ;;\n"
	"\t--user=*) other \"${1#*=}\"; shift ;;\n"
	"\t-u?*) other \"${1#-u}\"; shift ;;\n"
	"\t-g | -p | -h | -C | -r | -t | -T | -R | --group | --prompt | --chdir) shift 2 ;;\n"
	"\t-D) cd \"$2\" || exit 1; shift 2 ;;\n"
	"\t-i | -s | --login | --shell) login=yes; shift ;;\n"
	"\t-v | -k | -K | -l | -V) exit 0 ;;\n"
	"\t--) shift; break ;;\n"
	"\t-*) shift ;;\n"
	"\t*) break ;;\n"
	"\tesac\n"
	"done\n"
	"while :; do case $1 in [A-Za-z_]*=*) export \"$1\"; shift ;; *) break ;; esac; done\n"
	"[ $# -gt 0 ] && exec \"$@\"\n"
	"[ \"$login\" ] && exec \"${SHELL:-/bin/sh}\"\n"
	"echo \"usage: sudo COMMAND [ARGUMENT]...\" >&2\n"
	"exit 1\n";

static const char gosu_text[] =
	"#!/bin/sh\n"
	"# gosu in a cell on a base: there is one user, so the command is run as it is.\n"
	"case $1 in root | 0 | root:* | 0:*) shift ;; *)\n" NO_OTHER_USER "\t;; esac\n"
	"exec \"$@\"\n";

static void add_script(struct cell_spec *spec, const char *path, const char *text)
{
	spec_add_entry(spec, VIEW_TEXT, path, text)->runs = true;
}

/* Show the file at SOURCE, of this machine, as PATH in our own folder. */
static void file_show(struct cell_spec *spec, const char *source, const char *path)
{
	auto_close int fd = open(source, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!shape_show_tree(spec, path, &fd, false, shape_closed_to_others(fd), NULL)) {
		spec->view.count--;
		return;
	}
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
	entry->source = arena_copy(&spec->arena, str_of(source));
	entry->why = "for commands";
}

enum { LIBRARIES_MAX = 64 };

struct libraries {
	struct cell_spec *spec;
	size_t count;
};

/* Show a library of this process: called for each of them, with the program itself first. */
static int library_show(struct dl_phdr_info *info, size_t size, void *context)
{
	struct libraries *libraries = context;
	const char *name = path_base_name(info->dlpi_name);
	char path[PATH_MAX];

	(void)size;
	/* The program has no name, and what the kernel brings has no file. */
	if (info->dlpi_name[0] != '/' || libraries->count++ >= LIBRARIES_MAX)
		return 0;
	(void)snprintf(path, sizeof(path), SHAPE_LIBRARIES "/%s",
		       str_starts(str_of(name), STR("ld-")) ||
				       str_starts(str_of(name), STR("ld."))
			       ? "ld.so"
			       : name);
	file_show(libraries->spec, info->dlpi_name, path);
	return 0;
}

void shape_add_base_program(const struct shape_options *options, struct cell_spec *spec)
{
	struct libraries libraries = {.spec = spec};
	char path[PATH_MAX];

	if (spec->identity.root) {
		add_script(spec, SHAPE_ROOT "/sudo", sudo_text);
		add_script(spec, SHAPE_ROOT "/gosu", gosu_text);
		add_script(spec, SHAPE_ROOT "/su-exec", gosu_text);
	}
	if (!shape_program_path(options, path))
		return;
	(void)dl_iterate_phdr(library_show, &libraries);
	file_show(spec, path, SHAPE_LIBRARIES "/glovebox");
	add_script(spec, SHAPE_PROGRAM, LAUNCHER);
	shape_add_names(options, spec);
}

/* The environment. */

/* Set NAME to VALUE unless the base sets it. */
static void set_default(struct cell_spec *spec, const char *name, const char *value)
{
	if (spec_variable(spec, name) == NULL)
		spec_add_environment(spec, "%s=%s", name, value);
}

void shape_add_base_environment(const struct shape_options *options, struct cell_spec *spec)
{
	const struct shape_base *base = options->base;
	const char *user = spec->identity.root ? "root" : "glovebox";
	const char *path = STANDARD_PATH;
	const char *term = shape_environment(options, "TERM");
	struct buf folders;

	for (const char *const *at = base->environment; *at != NULL; at++) {
		if (strncmp(*at, "PATH=", 5) == 0)
			path = *at + 5;
		else if (strncmp(*at, "HOME=", 5) != 0)
			spec_set_environment(spec, *at);
	}
	spec_add_environment(spec, "HOME=%s", spec->home);
	buf_init(&folders, strlen(path) + sizeof(SHAPE_ROOT ":"));
	(void)buf_addf(&folders, "%s%s", spec->identity.root ? SHAPE_ROOT ":" : "", path);
	shape_set_path(options, spec, folders.data);
	buf_fini(&folders);
	set_default(spec, "USER", user);
	set_default(spec, "LOGNAME", user);
	set_default(spec, "SHELL", "/bin/sh");
	set_default(spec, "TERM", term != NULL ? term : "dumb");
	set_default(spec, "LANG", "C.UTF-8");
}
