/*
 * system: the system's part of a view: programs, libraries, settings without
 * secrets, devices.
 */

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "policy/commands.h"
#include "policy/deny.h"
#include "tool/denial.h"
#include "view/shape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TMP_MODE = 01777,
	LINK_MAX_BYTES = 256,
};

/*
 * Secrets, and files that lead to them. A name that does not exist costs one system call.
 */
static const char *const masked[] = {
	"/etc/shadow",      "/etc/shadow-",          "/etc/gshadow",
	"/etc/gshadow-",    "/etc/sudoers",          "/etc/sudoers.d",
	"/etc/ssl/private", "/etc/security/opasswd", "/etc/machine-id",
};

static void folder_or_link(struct cell_spec *spec, const char *path)
{
	char target[LINK_MAX_BYTES];
	struct stat st;

	if (lstat(path, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		spec_add_entry(spec, VIEW_TREE, path, path)->optional = true;
		return;
	}
	ssize_t n = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof(target) - 1) : -1;
	if (n > 0) {
		target[n] = '\0';
		(void)spec_add_entry(spec, VIEW_LINK, path, target);
	}
}

/* The names of host keys contain the algorithm. */
static bool is_host_key(const char *name)
{
	const size_t length = strlen(name);

	return strncmp(name, "ssh_host_", 9) == 0 && length >= 4 &&
	       strcmp(name + length - 4, ".pub") != 0;
}

/*
 * Keys, tokens and configurations of services. A glovebox that runs in the cell reads the
 * ceiling and the profiles of agents.
 */
static bool is_own_secret(const char *name)
{
	return name[0] != '.' && strcmp(name, "policy.json") != 0 &&
	       strcmp(name, "wrap") != 0;
}

/* Hide the names in PLACE that HIDES wants hidden: read the folder to find them. */
static void mask_names(struct cell_spec *spec, const char *place,
		       bool (*hides)(const char *))
{
	DIR *folder = opendir(place);
	char path[512];

	if (folder == NULL)
		return;
	for (const struct dirent *name = readdir(folder); name != NULL;
	     name = readdir(folder)) {
		if (!hides(name->d_name) || snprintf(path, sizeof(path), "%s/%s", place,
						     name->d_name) >= (int)sizeof(path))
			continue;
		(void)spec_add_entry(spec, VIEW_MASK, path, NULL);
	}
	(void)closedir(folder);
}

/* Some programs use getpwuid, not HOME, so the view has account files of its own. */
static void add_accounts(struct cell_spec *spec)
{
	unsigned uid = spec->identity.uid, gid = spec->identity.gid;
	char passwd[PATH_MAX + 512], group[256];

	(void)snprintf(passwd, sizeof(passwd),
		       "%sglovebox:x:%u:%u:Glovebox:%s:/bin/bash\n"
		       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		       uid != 0 ? "root:x:0:0:root:/root:/usr/sbin/nologin\n" : "", uid,
		       gid, spec->home);
	(void)snprintf(group, sizeof(group), "%sglovebox:x:%u:\nnogroup:x:65534:\n",
		       gid != 0 ? "root:x:0:\n" : "", gid);
	(void)spec_add_entry(spec, VIEW_TEXT, "/etc/passwd", passwd);
	(void)spec_add_entry(spec, VIEW_TEXT, "/etc/group", group);
}

void shape_add_devices(struct cell_spec *spec, uint64_t shared_memory)
{
	static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					      "/dev/random", "/dev/urandom", "/dev/tty"};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		(void)spec_add_entry(spec, VIEW_DEVICE, devices[i], devices[i]);
	if (!spec_is_sealed(spec))
		/* without a view, the other devices are the host's or lead to /proc */
		return;
	(void)spec_add_entry(spec, VIEW_TERMINALS, "/dev/pts", NULL);
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/ptmx", "pts/ptmx");
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/fd", "/proc/self/fd");
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/stdin", "/proc/self/fd/0");
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/stdout", "/proc/self/fd/1");
	(void)spec_add_entry(spec, VIEW_LINK, "/dev/stderr", "/proc/self/fd/2");
	struct view_entry *memory = spec_add_entry(spec, VIEW_MEMORY, "/dev/shm", NULL);
	memory->mode = TMP_MODE;
	memory->size = shared_memory;
	spec_add(spec, &spec->writable, "/dev/shm");
}

void shape_grant(struct policy *policy, struct cell_spec *spec, const char *path,
		 bool writable)
{
	policy_show(policy, path, writable);
	spec_add_root(spec, path, writable, NULL);
	if (writable)
		spec_add(spec, &spec->writable, path);
}

/* Add the folders that every view has of its own, instead of the host's. */
static void add_private(struct policy *policy, struct cell_spec *spec)
{
	add_accounts(spec);
	(void)spec_add_entry(spec, VIEW_PROCESSES, "/proc", NULL);
	struct view_entry *tmp = spec_add_entry(spec, VIEW_MEMORY, "/tmp", NULL);
	tmp->mode = TMP_MODE;
	tmp->size = policy->limits.tmp;
	shape_grant(policy, spec, "/tmp", true);
}

void shape_add_system(struct policy *policy, struct cell_spec *spec)
{
	const char *folder;

	for (size_t at = 0;
	     (folder = denial_system_folder_next(&at, FOLDER_SYSTEM)) != NULL;) {
		folder_or_link(spec, folder);
		if (access(folder, F_OK) == 0)
			shape_grant(policy, spec, folder, false);
	}
	for (size_t i = 0; i < sizeof(masked) / sizeof(masked[0]); i++)
		(void)spec_add_entry(spec, VIEW_MASK, masked[i], NULL);
	mask_names(spec, "/etc/ssh", is_host_key);
	mask_names(spec, "/etc/glovebox", is_own_secret);
	shape_add_devices(spec, policy->limits.tmp);
	spec_add_entry(spec, VIEW_TREE, SHAPE_PROCESSORS, SHAPE_PROCESSORS)->optional =
		true;
	if (spec_is_sealed(spec))
		add_private(policy, spec);
}

void shape_add_var_tmp(const struct policy *policy, struct cell_spec *spec)
{
	static const char path[] = "/var/tmp";
	bool in_use = false;

	if (!spec_is_sealed(spec))
		return;
	for (size_t i = 0; i < spec->view.count; i++) {
		const char *shown = spec->view.entries[i].path;
		if (strcmp(shown, path) == 0)
			return;
		if (path_within(shown, path) || path_within(path, shown))
			in_use = true;
	}
	if (!in_use) {
		(void)spec_add_entry(spec, VIEW_LINK, path, "../tmp");
		return;
	}
	struct view_entry *memory = spec_add_entry(spec, VIEW_MEMORY, path, NULL);
	memory->mode = TMP_MODE;
	memory->size = policy->limits.tmp;
	spec_add(spec, &spec->writable, path);
}

/* The variables of the caller, and the environment of programs in the cell. */

/*
 * Without a network, package managers must fail immediately: npm would retry for more
 * than two minutes, longer than a command may take. npm also must not look for a newer
 * npm at the end of a run.
 */
static const char *const without_network[] = {"NPM_CONFIG_FETCH_RETRIES=0",
					      "NPM_CONFIG_UPDATE_NOTIFIER=false",
					      "PIP_RETRIES=0", "CARGO_NET_RETRY=0"};

/*
 * After some commands, git tidies the repository in the background. The end of the call
 * would kill that work when it is half done. The person's own git does it outside, or an
 * explicit `git gc` in the foreground.
 */
struct git_setting {
	const char *key, *value;
};
static const struct git_setting git_settings[] = {
	{"gc.auto", "0"},
	{"gc.autoDetach", "false"},
	{"maintenance.auto", "false"},
	{"maintenance.autoDetach", "false"},
};

/* The person's key signs outside; git takes the first one unless it is told which. */
static const struct git_setting git_signing[] = {
	{"gpg.ssh.program", SHAPE_GIT_SIGN},
	{"gpg.ssh.defaultKeyCommand", "ssh-add -L"},
};

/* In PATH, beside the folders: the name of the variable, and our own folders. */
enum { PATH_ROOM = sizeof("PATH=" SHAPE_OPENERS "::" SHAPE_BIN) };

/* The caller's entry "NAME=value", even with an empty value; NULL when NAME is unset. */
static const char *callers(const struct shape_options *options, const char *name)
{
	size_t length = strlen(name);

	for (const char *const *at = options->caller_environment; *at != NULL; at++) {
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at;
	}
	return NULL;
}

const char *shape_environment(const struct shape_options *options, const char *name)
{
	const char *entry = callers(options, name);
	const char *value = entry != NULL ? entry + strlen(name) + 1 : "";

	return value[0] != '\0' ? value : NULL;
}

/* May programs of the cell of SPEC ask a person? */
static bool asks(const struct shape_options *options, const struct cell_spec *spec)
{
	return options->asks && spec_is_sealed(spec);
}

/* Our own tools start these, in every cell. */
static const char never_hidden[] = "sh bash git";

/*
 * Hide the program PROGRAM of FOLDER. A link whose file has another name stays: other
 * programs use that file as well (alternatives, busybox).
 */
static void program_hide(struct cell_spec *spec, const char *folder, const char *program)
{
	char file[PATH_MAX], real[PATH_MAX];
	struct stat st;

	/* The programs of a base are not looked at; a mask leaves links and missing names alone. */
	if (spec_has_base(spec)) {
		if (snprintf(file, sizeof(file), "%s%s%s", folder, folder[0] ? "/" : "",
			     program) < (int)sizeof(file))
			spec_add_entry(spec, VIEW_MASK, file, NULL)->why = "commands.deny";
		return;
	}

	if (snprintf(file, sizeof(file), "%s%s%s", folder, folder[0] ? "/" : "",
		     program) >= (int)sizeof(file) ||
	    realpath(file, real) == NULL || stat(real, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !str_starts(str_of(path_base_name(real)), str_of(path_base_name(program))))
		return;
	for (const char *const *at = spec->writable.items; *at != NULL; at++) {
		if (path_within(real, *at))
			return;
	}
	for (size_t i = 0; i < spec->view.count; i++) {
		if (spec->view.entries[i].kind == VIEW_MASK &&
		    path_within(real, spec->view.entries[i].path))
			return;
	}
	spec_add_entry(spec, VIEW_MASK, real, NULL)->why = "commands.deny";
}

static void programs_hide(struct cell_spec *spec, struct str programs, const char *path)
{
	struct str program, folder;

	while (command_next_choice(&programs, &program)) {
		auto_free char *name = memory_copy_str(program);
		struct str rest = str_of(path);

		if (str_among(never_hidden, str_of(path_base_name(name))))
			continue;
		if (name[0] == '/')
			program_hide(spec, "", name);
		while (strchr(name, '/') == NULL && path_next_folder(&rest, &folder)) {
			auto_free char *copy = memory_copy_str(folder);

			program_hide(spec, copy, name);
		}
	}
}

void shape_hide_programs(const struct policy *policy, struct cell_spec *spec)
{
	const char *path = "";

	if (!spec_is_sealed(spec))
		return;
	for (const char *const *at = spec->environment.items; *at != NULL; at++) {
		if (strncmp(*at, "PATH=", 5) == 0)
			path = *at + 5;
	}
	for (const struct commands *at = policy->commands; at != NULL; at = at->within) {
		for (size_t i = 0; i < at->deny.count; i++) {
			if (deny_rule_whole_program(&at->deny.items[i]))
				programs_hide(spec, at->deny.items[i].programs, path);
		}
	}
}

void shape_set_path(const struct shape_options *options, struct cell_spec *spec,
		    const char *folders)
{
	struct buf path;

	buf_init(&path, strlen(folders) + PATH_ROOM);
	(void)buf_addf(&path, "PATH=%s%s:" SHAPE_BIN,
		       asks(options, spec) ? SHAPE_OPENERS ":" : "", folders);
	spec_set_environment(spec, path.data);
	buf_fini(&path);
}

static void add_policys(const struct shape_options *options,
			const struct policy_names *variables, struct cell_spec *spec)
{
	for (size_t i = 0; i < variables->count; i++) {
		const char *entry = variables->items[i];

		if (strchr(entry, '=') == NULL)
			entry = callers(options, entry);
		if (entry != NULL && strncmp(entry, "PATH=", 5) == 0)
			shape_set_path(options, spec, entry + 5);
		else if (entry != NULL)
			spec_set_environment(spec, entry);
	}
}

/* Is KEY one of the policy's COUNT settings for git? */
static bool sets_git(const struct cell_spec *spec, unsigned count, const char *key)
{
	char name[sizeof("GIT_CONFIG_KEY_") + 3 * sizeof(count)];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "GIT_CONFIG_KEY_%u", i);
		const char *there = spec_variable(spec, name);
		if (there != NULL && strcasecmp(there, key) == 0)
			return true;
	}
	return false;
}

/* Add our settings behind those of the policy. A setting of the policy wins over ours. */
static void add_git(const struct shape_options *options, struct cell_spec *spec)
{
	enum { SETTINGS = sizeof(git_settings) / sizeof(git_settings[0]) };
	enum { SIGNING = sizeof(git_signing) / sizeof(git_signing[0]) };
	const char *given = spec_variable(spec, "GIT_CONFIG_COUNT");
	const unsigned long said = given != NULL ? strtoul(given, NULL, 10) : 0;
	const size_t count = SETTINGS + (options->ssh != NULL ? SIGNING : 0);

	for (size_t i = 0; i < count && said <= SPEC_GIT_MAX; i++) {
		const struct git_setting *setting =
			i < SETTINGS ? &git_settings[i] : &git_signing[i - SETTINGS];

		if (!sets_git(spec, (unsigned)said, setting->key))
			spec_add_git(spec, setting->key, setting->value);
	}
}

void shape_add_environment(const struct shape_options *options,
			   const struct policy *policy, struct cell_spec *spec)
{
	const char *term = shape_environment(options, "TERM");
	const char *lang = shape_environment(options, "LANG");
	const char *zone = shape_environment(options, "TZ");

	if (options->base != NULL) {
		shape_add_base_environment(options, spec);
	} else {
		spec_add_environment(spec, "HOME=%s", spec->home);
		spec_add_environment(spec, "USER=glovebox");
		spec_add_environment(spec, "LOGNAME=glovebox");
		spec_add_environment(spec, "SHELL=/bin/bash");
		spec_add_environment(spec, "TMPDIR=%s",
				     spec->temp != NULL ? spec->temp : "/tmp");
		spec_add_environment(spec, "TERM=%s", term != NULL ? term : "dumb");
		spec_add_environment(spec, "LANG=%s", lang != NULL ? lang : "C.UTF-8");
	}
	spec_set_writable(spec);
	if (zone != NULL && options->base == NULL)
		spec_add_environment(spec, "TZ=%s", zone);
	if (asks(options, spec))
		spec_add_environment(spec, "BROWSER=" SHAPE_OPENER);
	for (size_t i = 0; policy->network.count == 0 && !spec->asks_network &&
			   i < sizeof(without_network) / sizeof(without_network[0]);
	     i++)
		spec_add_environment(spec, "%s", without_network[i]);
	add_policys(options, &policy->environment, spec);
	add_git(options, spec);
}

/*
 * Our own program in the view, last in PATH, so that commands can use the verbs that
 * need no cell. If the view shows the program anyway, a link to it is enough.
 */

bool shape_program_path(const struct shape_options *options, char *path)
{
	const char *given = options->program != NULL ? options->program : "/proc/self/exe";
	struct stat held, named;
	auto_free char *real = realpath(given, NULL);

	if (real == NULL || strlen(real) >= PATH_MAX || stat(given, &held) < 0 ||
	    stat(real, &named) < 0 || held.st_ino != named.st_ino ||
	    held.st_dev != named.st_dev || !S_ISREG(named.st_mode))
		return false;
	memcpy(path, real, strlen(real) + 1);
	return true;
}

void shape_add_names(const struct shape_options *options, struct cell_spec *spec)
{
	struct str names = STR(SHAPE_OPENER_NAMES), name;
	char path[sizeof(SHAPE_OPENERS) + 32];

	(void)spec_add_entry(spec, VIEW_LINK, SHAPE_PATCH, "glovebox");
	if (options->ssh != NULL)
		(void)spec_add_entry(spec, VIEW_LINK, SHAPE_GIT_SIGN, "glovebox");
	while (asks(options, spec) && str_next_word(&names, &name)) {
		(void)snprintf(path, sizeof(path), SHAPE_OPENERS "/%.*s", (int)name.size,
			       name.data);
		(void)spec_add_entry(spec, VIEW_LINK, path, SHAPE_PROGRAM);
	}
}

bool shape_add_ssh(const struct shape_options *options, struct cell_spec *spec,
		   struct err *err)
{
	const struct shape_ssh *ssh = options->ssh;

	if (ssh == NULL)
		return true;
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		const bool shows = entry->kind == VIEW_TREE || entry->kind == VIEW_OVERLAY;
		auto_free char *real = shows ? realpath(entry->source, NULL) : NULL;

		if (real != NULL && path_within(ssh->agent, real))
			return err_set(err, EPERM,
				       "--ssh: the cell would show %s, and in it the socket of "
				       "your own ssh agent (%s): leave that folder out, or start "
				       "an agent whose socket is elsewhere",
				       entry->path, ssh->agent);
	}
	(void)spec_add_entry(spec, VIEW_SOCKET, SHAPE_SSH, "");
	(void)spec_add_entry(spec, VIEW_TEXT, SHAPE_KNOWN_HOSTS, ssh->known_hosts);
	if (ssh->config != NULL)
		(void)spec_add_entry(spec, VIEW_TEXT, "/etc/ssh/ssh_config", ssh->config);
	spec_set_environment(spec, "SSH_AUTH_SOCK=" SHAPE_SSH);
	return true;
}

void shape_add_program(const struct shape_options *options, struct cell_spec *spec)
{
	char path[PATH_MAX];
	struct view_entry *entry;

	if (asks(options, spec))
		(void)spec_add_entry(spec, VIEW_SOCKET, SHAPE_ASK, "");
	if (options->base != NULL) {
		shape_add_base_program(options, spec);
		return;
	}
	if (!shape_program_path(options, path))
		return;
	if (denial_system_folder_around(path, FOLDER_SYSTEM) != NULL) {
		(void)spec_add_entry(spec, VIEW_LINK, SHAPE_PROGRAM, path);
		shape_add_names(options, spec);
		return;
	}
	auto_close int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !shape_show_tree(spec, SHAPE_PROGRAM, &fd, false,
				       shape_closed_to_others(fd), NULL)) {
		spec->view.count -= fd >= 0;
		return;
	}
	entry = &spec->view.entries[spec->view.count - 1];
	entry->source = arena_copy(&spec->arena, str_of(path));
	entry->why = "for commands";
	/*
	 * Without a view the program stays at its own path, which the cell's user may be
	 * unable to reach.
	 */
	entry->optional = !spec_is_sealed(spec);
	if (spec_is_sealed(spec))
		shape_add_names(options, spec);
}

/*
 * Makes the PATH of a cell: the system's folders and the caller's toolchains, which are
 * added to the view.
 */

struct toolchain {
	const char *below_home; /* the PATH entry is this or below it */
	const char *shown[3];   /* below the home; without credentials */
	const char *variable;   /* tells the toolchain its folder, or NULL */
	const char *value;      /* below the home */
};

static const struct toolchain toolchains[] = {
	{".cargo/bin", {".cargo/bin", ".rustup"}, "RUSTUP_HOME", ".rustup"},
	{".pyenv", {".pyenv"}, "PYENV_ROOT", ".pyenv"},
	{".nvm/versions", {".nvm/versions"}, NULL, NULL},
	{".volta/bin", {".volta/bin", ".volta/tools"}, "VOLTA_HOME", ".volta"},
	{"go/bin", {"go/bin"}, NULL, NULL},
	{".local/bin", {".local/bin"}, NULL, NULL},
};

enum { TOOLCHAIN_COUNT = sizeof(toolchains) / sizeof(toolchains[0]) };

const char *shape_toolchain_next(size_t *at)
{
	enum { SHOWN = sizeof(toolchains[0].shown) / sizeof(toolchains[0].shown[0]) };

	for (; *at < TOOLCHAIN_COUNT * SHOWN; (*at)++) {
		const char *shown = toolchains[*at / SHOWN].shown[*at % SHOWN];

		if (shown != NULL) {
			(*at)++;
			return shown;
		}
	}
	return NULL;
}

static const struct toolchain *toolchain_of(const char *folder, const char *home)
{
	struct buf root;

	if (!path_within(folder, home))
		return NULL;
	for (size_t i = 0; i < TOOLCHAIN_COUNT; i++) {
		buf_init(&root, PATH_MAX);
		bool hit = buf_addf(&root, "%s/%s", home, toolchains[i].below_home) &&
			   path_within(folder, root.data);
		buf_fini(&root);
		if (hit)
			return &toolchains[i];
	}
	return NULL;
}

static void tree_show(struct policy *policy, struct cell_spec *spec, const char *path)
{
	auto_close int fd = -1;

	for (size_t i = 0; i < spec->view.count; i++) {
		if (strcmp(spec->view.entries[i].path, path) == 0)
			return;
	}
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!shape_show_tree(spec, path, &fd, false, false, NULL)) {
		spec->view.count--;
		return;
	}
	spec->view.entries[spec->view.count - 1].why = "your PATH leads there";
	/* Without a view, the user of root's cell may be unable to reach this path. */
	spec->view.entries[spec->view.count - 1].optional = !spec_is_sealed(spec);
	shape_grant(policy, spec, path, false);
}

static void toolchain_show(struct policy *policy, struct cell_spec *spec,
			   const struct toolchain *toolchain, const char *home)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < 3 && toolchain->shown[i] != NULL; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", home, toolchain->shown[i]);
		tree_show(policy, spec, path);
	}
	if (toolchain->variable != NULL)
		spec_add_environment(spec, "%s=%s/%s", toolchain->variable, home,
				     toolchain->value);
}

static bool path_holds(const struct buf *path, const char *folder)
{
	struct str rest = buf_str(path), part;

	while (path_next_folder(&rest, &part)) {
		if (str_is(part, folder))
			return true;
	}
	return false;
}

/* The caller's order is kept. Folders that the view does not show are left out. */
static void path_add(struct policy *policy, struct cell_spec *spec, const char *home,
		     struct str folder, struct buf *path)
{
	struct buf normal;
	const struct toolchain *toolchain;
	bool taken = false;

	buf_init(&normal, PATH_MAX);
	if (folder.data[0] == '/') {
		auto_free char *text = memory_copy_str(folder);
		if (path_normal("/", text, &normal)) {
			toolchain = home != NULL ? toolchain_of(normal.data, home) : NULL;
			if (toolchain != NULL)
				toolchain_show(policy, spec, toolchain, home);
			taken = toolchain != NULL ||
				denial_system_folder_around(normal.data, FOLDER_SYSTEM) !=
					NULL;
		}
	}
	if (taken && !path_holds(path, normal.data))
		(void)buf_addf(path, "%s%s", path->size > 0 ? ":" : "", normal.data);
	buf_fini(&normal);
}

void shape_add_toolchains(const struct shape_options *options, struct policy *policy,
			  struct cell_spec *spec)
{
	const char *home = shape_environment(options, "HOME");
	const char *caller = shape_environment(options, "PATH");
	const struct str sources[] = {str_of(caller), STR(STANDARD_PATH)};
	struct buf path;

	if (home != NULL && (home[0] != '/' || home[1] == '\0'))
		home = NULL;
	buf_init(&path, 64 << 10);
	for (size_t i = 0; i < 2; i++) {
		struct str rest = sources[i], folder;
		while (path_next_folder(&rest, &folder))
			path_add(policy, spec, home, folder, &path);
	}
	shape_set_path(options, spec, path.data);
	buf_fini(&path);
}
