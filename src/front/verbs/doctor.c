/*
 * glovebox doctor: prints how strong the cell is on this machine, why it is not stronger,
 * and the remedy.
 */

#include "front/verbs/doctor.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "build_config.h"
#include "front/agents.h"
#include "front/attack_call.h"
#include "front/config_file.h"
#include "front/interrupt.h"
#include "front/login/logins.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/run.h"
#include "image/base.h"
#include "image/snapshot.h"
#include "image/store.h"
#include "policy/ceiling.h"
#include "process/follow.h"
#include "sandbox/probe.h"
#include "sandbox/sandbox.h"
#include "tool/tool.h"
#include "tui/paint.h"
#include "view/carrier.h"
#include "view/review.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Plays each attack in a folder of its own, in a cell and without one, and judges it. */

enum {
	SCRIPT_MAX = 16 << 10,
	VARIABLES_MAX = 24,
	OPTIONS_OF_EXEC = 12, /* four of them for a base and a place */
	NAMES_MAX = 1024,     /* of the groups */
	/* An attack that hangs is ended, and proves nothing. */
	SCRIPT_SECONDS = 30,
	READY_MS = 15000,
	READY_PAUSE_MS = 5,
};

/* Used instead of the caller's PATH, so that an attack is the same on every machine. */
#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum outcome { HELD, THROUGH, UNSHOWN };

/* The cells in which attacks are played. */
struct ground {
	const char *root; /* the word of the base on which they stand; or NULL */
	const char *at;   /* where they show the workspace as well (--at); or NULL */
	/* the folders of the user, with images and snapshots: a stage has a home of its own */
	char *cache, *data;
};

/* The place where one attack is played. */
struct stage {
	const struct attack *attack;
	const struct ground *ground;
	char program[PATH_MAX]; /* this program */
	struct buf base, work, home, tmp;
	struct buf variables[VARIABLES_MAX];
	const char *environment[VARIABLES_MAX + 1];
	size_t variable_count;
};

/*
 * Append TEXT to OUT, with the names (%work%, …) replaced by their values on the host or
 * in the cell.
 */
static void fill(const struct stage *stage, const char *text, bool in_cell, struct buf *out)
{
	char uid[16], pid[16], call[PATH_MAX + sizeof(" " ATTACK_CALL)];
	const struct {
		const char *name, *value;
	} names[] = {
		{"%base%", stage->base.data},
		{"%work%", in_cell && stage->ground->at != NULL ? stage->ground->at
								: stage->work.data},
		{"%home%", stage->home.data},
		{"%call%", call},
		{"%glovebox%", stage->program},
		{"%uid%", uid},
		{"%pid%", pid},
	};

	(void)snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	(void)snprintf(call, sizeof(call), "%s " ATTACK_CALL,
		       in_cell ? SHAPE_PROGRAM : stage->program);
	while (*text != '\0') {
		size_t i = 0, count = sizeof(names) / sizeof(names[0]);
		while (i < count && strncmp(text, names[i].name, strlen(names[i].name)) != 0)
			i++;
		if (i < count) {
			(void)buf_adds(out, names[i].value);
			text += strlen(names[i].name);
		} else {
			(void)buf_addc(out, *text++);
		}
	}
}

static void variable_add(struct stage *stage, const char *format, const char *value)
{
	struct buf *text = &stage->variables[stage->variable_count];

	if (stage->variable_count == VARIABLES_MAX)
		return;
	buf_init(text, PATH_MAX);
	(void)buf_adds(text, format);
	fill(stage, value, true, text);
	stage->environment[stage->variable_count++] = text->data;
	stage->environment[stage->variable_count] = NULL;
}

/*
 * Run TEXT in a shell, on the host or in a cell. Returns its exit code; -1 when it hung
 * or died.
 */
static int script_run(const struct stage *stage, const char *text, bool in_cell)
{
	struct program_run run;
	struct err err;
	struct buf script;
	const char *argv[OPTIONS_OF_EXEC + 7] = {stage->program, "exec"};
	const char *const *option = in_cell ? stage->attack->options : NULL;
	size_t count = 2;
	int code = -1;

	buf_init(&script, SCRIPT_MAX);
	fill(stage, text, in_cell, &script);
	if (in_cell && stage->ground->root != NULL) {
		argv[count++] = "--base";
		argv[count++] = stage->ground->root;
	}
	if (in_cell && stage->ground->at != NULL) {
		argv[count++] = "--at";
		argv[count++] = stage->ground->at;
	}
	for (; option != NULL && *option != NULL && count < OPTIONS_OF_EXEC; option++)
		argv[count++] = *option;
	argv[count] = "--";
	argv[count + 1] = "bash";
	argv[count + 2] = "-c";
	argv[count + 3] = script.data;
	program_run_init(&run);
	run.start.argv = in_cell ? argv : argv + count + 1;
	run.start.environment = stage->environment;
	run.start.folder = stage->work.data;
	run.deadline_ms = clock_deadline(SCRIPT_SECONDS);
	if (!script.overflowed && follow_program(&run, &err) && run.ending == PROGRAM_ENDED)
		code = run.exit_code;
	program_run_fini(&run);
	buf_fini(&script);
	return code;
}

/*
 * Start the attack's script `beside` in its own process group and wait until it is ready.
 * Returns its process id; 0 when it did not become ready.
 */
static pid_t beside_start(const struct stage *stage)
{
	struct program_start start = {.fds = {-1, -1, -1},
				      .environment = stage->environment,
				      .folder = stage->work.data};
	int64_t deadline_ms = clock_now_ms() + READY_MS;
	struct buf script, ready;
	struct err err;
	pid_t pid = 0;

	buf_init(&script, SCRIPT_MAX);
	buf_init(&ready, PATH_MAX);
	fill(stage, stage->attack->beside, false, &script);
	fill(stage, "%base%/ready", false, &ready);
	const char *argv[] = {"bash", "-c", script.data, NULL};
	start.argv = argv;
	if (!program_start(&start, &pid, &err))
		pid = 0;
	while (pid > 0 && access(ready.data, F_OK) < 0 && clock_now_ms() < deadline_ms)
		(void)poll(NULL, 0, READY_PAUSE_MS);
	buf_fini(&script);
	buf_fini(&ready);
	return pid;
}

static void beside_end(pid_t pid)
{
	if (pid <= 0)
		return;
	(void)kill(-pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool file_make(const struct stage *stage, int work, const struct attack_file *file,
		      struct err *err)
{
	struct buf text;
	bool ok;

	buf_init(&text, SCRIPT_MAX);
	fill(stage, file->text, true, &text);
	ok = run_write_tree(work, file->name, buf_str(&text), file->mode, err);
	buf_fini(&text);
	return ok;
}

static bool stage_make(struct stage *stage, const char *folder, size_t number,
		       struct err *err)
{
	static const char *const below[] = {"work", "home", "outside", "tmp"};
	const struct attack *attack = stage->attack;
	auto_close int work = -1;

	buf_init(&stage->base, PATH_MAX);
	buf_init(&stage->work, PATH_MAX);
	buf_init(&stage->home, PATH_MAX);
	buf_init(&stage->tmp, PATH_MAX);
	(void)buf_addf(&stage->base, "%s/%zu", folder, number);
	(void)buf_addf(&stage->work, "%s/work", stage->base.data);
	(void)buf_addf(&stage->home, "%s/home", stage->base.data);
	(void)buf_addf(&stage->tmp, "%s/tmp", stage->base.data);
	if (mkdir(stage->base.data, 0755) < 0)
		return err_set(err, errno, "%s: %s", stage->base.data, strerror(errno));
	auto_close int base = open(stage->base.data, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		if (mkdirat(base, below[i], 0755) < 0)
			return err_set(err, errno, "%s: %s", below[i], strerror(errno));
	}
	work = openat(base, "work", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (const struct attack_file *file = attack->files;
	     file != NULL && file->name != NULL; file++) {
		if (!file_make(stage, work, file, err))
			return false;
	}
	variable_add(stage, "PATH=", SYSTEM_PATH);
	variable_add(stage, "LANG=", "C.UTF-8");
	variable_add(stage, "HOME=", stage->home.data);
	variable_add(stage, "TMPDIR=", stage->tmp.data);
	if (stage->ground->cache != NULL)
		variable_add(stage, "XDG_CACHE_HOME=", stage->ground->cache);
	if (stage->ground->data != NULL)
		variable_add(stage, "XDG_DATA_HOME=", stage->ground->data);
	for (size_t i = 0; attack->variables != NULL && attack->variables[i] != NULL; i++)
		variable_add(stage, "", attack->variables[i]);
	return true;
}

static void stage_fini(struct stage *stage)
{
	for (size_t i = 0; i < stage->variable_count; i++)
		buf_fini(&stage->variables[i]);
	buf_fini(&stage->base);
	buf_fini(&stage->work);
	buf_fini(&stage->home);
	buf_fini(&stage->tmp);
}

/* Does the attack succeed without a cell? */
static bool bare_succeeds(const struct stage *stage)
{
	const struct attack *attack = stage->attack;

	if (attack->bare_by == ATTACK_BY_NOBODY)
		return true; /* only a cell has the parts that it attacks */
	return script_run(stage, attack->bare != NULL ? attack->bare : attack->attack,
			  false) == 0;
}

static bool no_cell(struct err *err)
{
	struct probe_reach reach;

	probe_reach(&reach);
	if (reach.because[0] == '\0')
		return err_set(err, ECHILD,
			       "the cell could not be built; see `glovebox doctor`");
	return err_set(err, ECHILD,
		       "the attacks are those of a cell of level L3, and this machine reaches L%d: "
		       "%s. To mend it: %s. The levels are explained by: glovebox doctor",
		       (int)reach.strength.level, reach.because, reach.remedy);
}

/*
 * Judge an attack that ended with CODE in its cell. When the attack has a `code` of its
 * own, CODE only says whether it was played to its end; then only the script `after`, on
 * the host, tells its effect.
 */
static enum outcome judge(const struct stage *stage, int code)
{
	const struct attack *attack = stage->attack;
	bool played = attack->code == 0 ? code >= 0 : code == attack->code;
	bool through = attack->code == 0 && code == 0;

	if (attack->after != NULL && script_run(stage, attack->after, false) != 0)
		through = true;
	return through ? THROUGH : played && bare_succeeds(stage) ? HELD : UNSHOWN;
}

static bool stage_play(const struct stage *stage, enum outcome *verdict, struct err *err)
{
	const struct attack *attack = stage->attack;
	bool ready = attack->host == NULL || script_run(stage, attack->host, false) == 0;
	pid_t beside = ready && attack->beside != NULL ? beside_start(stage) : 0;

	ready = ready && (attack->beside == NULL || beside > 0);
	int code = ready ? script_run(stage, attack->attack, true) : -1;
	*verdict = ready ? judge(stage, code) : UNSHOWN;
	beside_end(beside);
	return code != CODE_EXEC_NO_CELL || no_cell(err);
}

struct score {
	int64_t held, shown;
};

static void group_end(FILE *progress, struct value *groups, const char *name,
		      const struct score *score)
{
	struct value *group = value_new_object();

	value_set_text(group, "name", name);
	value_set_integer(group, "held", score->held);
	value_set_integer(group, "shown", score->shown);
	value_append(groups, group);
	if (progress == NULL)
		return;
	if (score->shown == 0)
		(void)fprintf(progress, "  --   %-10s none could be played\n", name);
	else
		(void)fprintf(progress, "  %-4s %-10s %3d of %d held\n",
			      score->held == score->shown ? "ok" : "NO", name,
			      (int)score->held, (int)score->shown);
	(void)fflush(progress);
}

static bool play_one(const struct attack *attack, const struct ground *ground,
		     const char *folder, size_t number, enum outcome *verdict,
		     struct err *err)
{
	struct stage stage = {.attack = attack, .ground = ground};
	ssize_t n = readlink("/proc/self/exe", stage.program, sizeof(stage.program) - 1);
	bool ok;

	if (n <= 0)
		return err_set(err, errno, "the path of this program: %s", strerror(errno));
	ok = stage_make(&stage, folder, number, err) && stage_play(&stage, verdict, err);
	stage_fini(&stage);
	return ok;
}

static bool is_installed(const char *program)
{
	struct buf found;

	buf_init(&found, PATH_MAX);
	bool there = run_find_program(SYSTEM_PATH, program, &found);
	buf_fini(&found);
	return there;
}

/*
 * The first program that ATTACK needs and this machine lacks; NULL: it has all of them.
 */
static const char *missing_program(const struct attack *attack)
{
	const char *const *need = attack->needs;

	while (need != NULL && *need != NULL && is_installed(*need))
		need++;
	return need != NULL ? *need : NULL;
}

static void count_missing(struct value *missing, const char *program)
{
	value_set_integer(missing, program,
			  value_integer(value_member(missing, program)) + 1);
}

/* The results of all attacks, and those of the group that is being played. */
struct tally {
	const struct ground *ground;
	struct value *through, *unshown, *groups, *missing;
	struct score all, group;
	int64_t root_only;
};

static void tally_init(struct tally *tally, const struct ground *ground, struct value *report)
{
	*tally = (struct tally){
		.ground = ground,
		.through = value_new_array(),
		.unshown = value_new_array(),
		.groups = value_new_array(),
		.missing = value_new_object(),
	};
	value_set(report, "through", tally->through);
	value_set(report, "unshown", tally->unshown);
	value_set(report, "groups", tally->groups);
	value_set(report, "missing", tally->missing);
}

static bool tally_one(struct tally *tally, const struct attack *attack,
		      const char *folder, struct err *err)
{
	const size_t number = (size_t)(attack - attacks);
	const char *program = missing_program(attack);
	enum outcome verdict = UNSHOWN;

	if (attack->bare_by == ATTACK_BY_ROOT && geteuid() != 0) {
		tally->root_only++;
		return true;
	}
	if (program != NULL) {
		count_missing(tally->missing, program);
		return true;
	}
	if (!play_one(attack, tally->ground, folder, number, &verdict, err))
		return false;
	tally->group.held += verdict == HELD;
	tally->group.shown += verdict != UNSHOWN;
	if (verdict != HELD)
		value_append(verdict == THROUGH ? tally->through : tally->unshown,
			     value_new_text(attack->name));
	return true;
}

static void tally_group(struct tally *tally, const char *name, FILE *progress)
{
	group_end(progress, tally->groups, name, &tally->group);
	tally->all.held += tally->group.held;
	tally->all.shown += tally->group.shown;
	tally->group = (struct score){0};
}

static bool in_group(const struct attack *attack, const char *only)
{
	return attack->name != NULL && (only == NULL || strcmp(attack->group, only) == 0);
}

static bool play_table(const char *only, struct tally *tally, const char *folder,
		       FILE *progress, const struct interrupt *interrupt, struct err *err)
{
	for (const struct attack *at = attacks; at->name != NULL; at++) {
		if (!in_group(at, only))
			continue;
		if (interrupt_signal(interrupt) != 0)
			return err_set(err, ECANCELED, "ended before the last attack");
		if (!tally_one(tally, at, folder, err))
			return false;
		if (!in_group(at + 1, at->group))
			tally_group(tally, at->group, progress);
	}
	return true;
}

/* Does the group exist? ERR names the groups that exist. */
static bool attack_check_group(const char *group, struct err *err)
{
	struct buf names;
	bool found = false;

	buf_init(&names, NAMES_MAX);
	for (const struct attack *at = attacks; at->name != NULL; at++) {
		found = found || in_group(at, group);
		if (!in_group(at + 1, at->group))
			(void)buf_addf(&names, "%s%s", names.size > 0 ? ", " : "",
				       at->group);
	}
	if (!found)
		(void)err_set(err, EINVAL, "there is no group of attacks '%s': there are %s",
			      group, names.data);
	buf_fini(&names);
	return found;
}

/*
 * Play the attacks in folders of their own, which are removed afterwards. Without root's
 * rights, attacks that only root could do without a cell are left out. A line for each
 * group goes to PROGRESS unless it is NULL. ONLY: play only the attacks of this group;
 * NULL: all. The report has the numbers "held", "shown" and "root_only", the names in
 * "through" and "unshown", "groups" ({"name", "held", "shown"}), and "missing", from the
 * name of a program that is not installed to the number of attacks that need it and were
 * left out. ROOT: play them in cells on this base; NULL: of this machine. False with ECHILD when no cell can be built, with ENOENT where there is no
 * bash, with ECANCELED when INTERRUPT came, else when the folders cannot be made.
 */
static bool attack_play_all(const char *only, const struct ground *ground, FILE *progress,
			    const struct interrupt *interrupt, struct value *report,
			    struct err *err)
{
	struct tally tally;
	struct buf folder;
	bool ok;

	if (!is_installed("bash"))
		return err_set(err, ENOENT,
			       "the attacks are scripts of bash, which is not installed: install "
			       "it, for instance with: apt-get install bash");
	tally_init(&tally, ground, report);
	buf_init(&folder, PATH_MAX);
	ok = verb_temp_folder("attack", &folder, err);
	/* Root's cell runs as another user, who must be able to enter the folder. */
	if (ok && chmod(folder.data, 0755) < 0)
		ok = err_set(err, errno, "%s: %s", folder.data, strerror(errno));
	ok = ok && play_table(only, &tally, folder.data, progress, interrupt, err);
	if (folder.size > 0)
		fd_folder_remove(folder.data);
	buf_fini(&folder);
	value_set_integer(report, "held", tally.all.held);
	value_set_integer(report, "shown", tally.all.shown);
	value_set_integer(report, "root_only", tally.root_only);
	return ok;
}

/*
 * `glovebox doctor --attack` prints the score of the shipped attacks, for people and
 * programs.
 */

static void print_names(const char *title, const struct value *names, FILE *out)
{
	if (value_count(names) == 0)
		return;
	(void)fprintf(out, "\n%s\n", title);
	for (size_t i = 0; i < value_count(names); i++)
		(void)fprintf(out, "  %s\n", value_text(value_item(names, i)));
}

static void print_missing(const struct value *missing, FILE *out)
{
	for (void *at = value_first(missing); at != NULL; at = value_next(missing, at))
		(void)fprintf(out,
			      "\nNot played, since they need %s, which is not installed: %d\n",
			      value_key(at), (int)value_integer(value_at(at)));
}

static void print_score(const struct value *report, FILE *out)
{
	print_names("Got through:", value_member(report, "through"), out);
	print_names("Not counted, since they do not succeed here without a cell either:",
		    value_member(report, "unshown"), out);
	if (value_integer(value_member(report, "root_only")) > 0)
		(void)fprintf(out,
			      "\nNot played, since only root could do them without a cell: %d\n",
			      (int)value_integer(value_member(report, "root_only")));
	print_missing(value_member(report, "missing"), out);
	(void)fprintf(out, "\n%d of %d attacks held\n",
		      (int)value_integer(value_member(report, "held")),
		      (int)value_integer(value_member(report, "shown")));
}

static int play(const char *only, const struct ground *ground, bool json,
		const struct interrupt *interrupt, FILE *out)
{
	auto_value struct value *report = value_new_object();
	struct err err = {0};
	int printed = CODE_DONE;

	if (!json)
		(void)fprintf(out, "Attacks, each tried in a cell and without one\n");
	if (!attack_play_all(only, ground, json ? NULL : out, interrupt, report, &err))
		return verb_complain(err.code == ECHILD ? CODE_NO_CELL
				     : err.code == ECANCELED
					     ? CODE_SIGNAL + interrupt_signal(interrupt)
					     : CODE_FAILED,
				     "%s", err.text);
	if (json)
		printed = verb_print_json(report, VALUE_PRETTY, out);
	else
		print_score(report, out);
	return value_count(value_member(report, "through")) == 0 &&
			       value_integer(value_member(report, "shown")) > 0
		       ? printed
		       : CODE_FAILED;
}

/* The folder that the variable NAME, or FALLBACK in the home, is; NULL: there is no home. */
static char *folder_of(const char *name, const char *fallback)
{
	struct buf path;
	char *folder = NULL;

	buf_init(&path, PATH_MAX);
	if (path_xdg(config_file_variable(name), config_file_variable("HOME"), fallback,
		     ".", &path))
		folder = memory_copy(path.data);
	buf_fini(&path);
	return folder;
}

/* Without a bash no attack begins, and each would count as held. */
static bool has_bash(const struct base *base)
{
	static const char *const places[] = {"bin/bash", "usr/bin/bash"};
	struct buf path;
	struct stat st;
	bool found = base->folder_count == 0; /* this machine */

	buf_init(&path, PATH_MAX);
	for (size_t i = 0; i < base->folder_count; i++) {
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			buf_clear(&path);
			found |= buf_addf(&path, "%s/%s", base->folders[i], places[k]) &&
				 lstat(path.data, &st) == 0;
		}
	}
	buf_fini(&path);
	return found;
}

/*
 * Find the base that GROUND names: each stage has a home and a workspace of its own, where a relative
 * word and the user's images are not found. BASE is closed by the caller in any case.
 */
static bool find_ground(struct ground *ground, struct base *base, struct err *err)
{
	struct buf images, snapshots;
	bool found;

	buf_init(&images, PATH_MAX);
	buf_init(&snapshots, PATH_MAX);
	ground->cache = folder_of("XDG_CACHE_HOME", ".cache");
	ground->data = folder_of("XDG_DATA_HOME", ".local/share");
	const struct base_places places = {
		.images = image_store_path(ground->cache, NULL, &images) ? images.data : NULL,
		.snapshots = snapshot_place(ground->data, NULL, &snapshots) ? snapshots.data
									    : NULL,
	};

	found = base_open(ground->root, &places, base, err) &&
		(has_bash(base) ||
		 err_set(err, ENOENT,
			 "base %s has no bash, and the attacks are scripts of bash",
			 ground->root));
	if (found && base->lasting != NULL)
		ground->root = base->lasting;
	buf_fini(&images);
	buf_fini(&snapshots);
	return found;
}

/*
 * Play the attacks (ONLY: of this group; NULL: all) in cells on GROUND, print the score (JSON: as one
 * object), and return an exit code.
 */
static int doctor_attack(const char *only, struct ground *ground, bool json, FILE *out)
{
	struct base base = {0};
	struct interrupt *interrupt = NULL;
	struct err err = {0};
	int code;

	/*
	 * Set the umask, so that the files of a case get the modes that the case names.
	 */
	(void)umask(S_IWGRP | S_IWOTH);
	if (only != NULL && !attack_check_group(only, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (ground->root != NULL && !find_ground(ground, &base, &err))
		code = verb_complain(CODE_NO_CELL, "%s", err.text);
	else if (!interrupt_open(&interrupt, &err) || !interrupt_start(interrupt, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = play(only, ground, json, interrupt, out);
	interrupt_close(interrupt);
	base_close(&base);
	free(ground->cache);
	free(ground->data);
	return code;
}

enum {
	PATH_BYTES_MAX = 4096,
	SENTENCE_MAX = 4096,
	SENTENCE_INDENT = 7,
	SENTENCE_COLUMNS = 79, /* a line of a terminal with 80 columns */
};

static const struct option_row doctor_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print the report as one JSON object"},
	{"attack", 0, OPTION_FLAG, NULL, "play the shipped attacks and print the score"},
	{"group", 0, OPTION_TEXT, "NAME", "of the attacks only those of this group"},
	{"base", 0, OPTION_TEXT, "WORD", "play them in a cell on this base, which has bash"},
	{"at", 0, OPTION_TEXT, "PATH",
	 "play them where a cell shows its workspace at PATH as well"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_HELP,
	{0},
};

#define NOT_FOUND "not found"

struct program_row {
	const char *name, *package, *used_for;
	bool needed;
};

static const struct program_row program_rows[] = {
	{"bash", "bash", "the bash tool", true},
	{"git", "git", "work in repositories", false},
	{"cc", "build-essential", "the demo, C projects", false},
	{"make", "build-essential", "the demo, C projects", false},
	{"rg", "ripgrep", "searches in commands of the model", false},
	{"patch", "patch", "patches in commands of the model", false},
	{"python3", "python3", "scripts of the model", false},
	{"pdftotext", "poppler-utils", "PDF files in read_file", false},
};

/* The variables that set a model; only their names are printed, never a value. */
static const char *const model_variables[] = {
	"GLOVEBOX_MODEL",
	"GLOVEBOX_BASE_URL",
	"OPENAI_API_KEY",
	"ANTHROPIC_API_KEY",
};

static struct value *row_new(const char *name, bool good, const char *text,
			     const char *remedy)
{
	struct value *row = value_new_object();

	value_set_text(row, "name", name);
	value_set_boolean(row, "ok", good);
	value_set_text(row, "value", text);
	if (remedy != NULL && remedy[0] != '\0')
		value_set_text(row, "remedy", remedy);
	return row;
}

/* Really open a session in a folder of its own. */
static bool try_cell(struct sandbox_strength *strength, struct err *err)
{
	struct buf folder;
	struct session_options options = {.ready_workers = 1, .cancel_fd = -1};
	struct session *session = NULL;
	struct setup setup;
	bool opened;

	buf_init(&folder, PATH_MAX);
	if (!verb_temp_folder("doctor", &folder, err)) {
		buf_fini(&folder);
		return false;
	}
	opened = setup_init_shipped(&setup, folder.data, err) &&
		 setup_open_session(&setup, &options, &session, err);
	if (opened)
		*strength = session_strength(session);
	session_close(session);
	setup_fini(&setup);
	(void)rmdir(folder.data);
	buf_fini(&folder);
	return opened;
}

/* The machine reaches a higher level than a folder of root's own allows. */
static const char roots_own[] =
	"a workspace of root's own cannot be ID-mapped here: the file system of the temporary "
	"folder takes none, or root lacks CAP_SYS_ADMIN";
static const char roots_remedy[] =
	"run glovebox as an ordinary user, or in a workspace that belongs to one";

static struct value *report_cell(void)
{
	struct value *cell = value_new_object();
	struct probe_reach reach;
	struct sandbox_strength strength;
	struct err err = {0};

	/*
	 * Probe before the session: a session hides our memory, and so our own
	 * /proc/self/uid_map too.
	 */
	probe_reach(&reach);
	if (try_cell(&strength, &err)) {
		tool_set_strength(cell, strength);
		if (strength.level < SANDBOX_SEALED) {
			bool reached = reach.because[0] == '\0';
			value_set_text(cell, "because", reached ? roots_own : reach.because);
			value_set_text(cell, "remedy",
				       reached ? roots_remedy : reach.remedy);
		}
		return cell;
	}
	value_set(cell, "level", value_new_null());
	value_set_text(cell, "because", err.text);
	return cell;
}

/* The meaning of each level. */
static struct value *report_levels(void)
{
	struct value *rows = value_new_array();

	for (const struct level_row *row = probe_levels; row->name != NULL; row++) {
		struct value *object = value_new_object();

		value_set_text(object, "name", row->name);
		value_set_text(object, "walls", row->walls);
		value_set_text(object, "holds", row->holds);
		value_append(rows, object);
	}
	return rows;
}

static struct value *report_kernel(void)
{
	struct probe_fact facts[PROBE_FACTS_MAX];
	size_t count = probe_kernel(facts);
	struct value *rows = value_new_array();

	for (size_t i = 0; i < count; i++)
		value_append(rows, row_new(facts[i].name, !facts[i].missing,
					   facts[i].value, facts[i].remedy));
	return rows;
}

static struct value *report_programs(void)
{
	struct value *rows = value_new_array();
	struct buf path, remedy;

	buf_init(&path, PATH_BYTES_MAX);
	buf_init(&remedy, PATH_BYTES_MAX);
	for (size_t i = 0; i < sizeof(program_rows) / sizeof(program_rows[0]); i++) {
		const struct program_row *row = &program_rows[i];
		bool found = run_find_program(getenv("PATH"), row->name, &path);

		buf_clear(&remedy);
		if (!found)
			(void)buf_addf(&remedy,
				       "for %s, on Debian and Ubuntu: sudo apt install %s",
				       row->used_for, row->package);
		value_append(rows, row_new(row->name, found || !row->needed,
					   found ? path.data : NOT_FOUND, remedy.data));
	}
	buf_fini(&path);
	buf_fini(&remedy);
	return rows;
}

/* Sessions have layers over their workspaces, and watches on them for undo. */
static struct value *report_workspaces(void)
{
	enum { WATCHES_MANY = 49152 };
	const uint64_t watches = shape_watches();
	struct value *rows = value_new_array();
	struct buf folder, text;
	char number[96];

	buf_init(&folder, PATH_MAX);
	buf_init(&text, SENTENCE_MAX);
	auto_free char *workspace = realpath(".", NULL);
	const char *remedy = "set HOME or XDG_STATE_HOME";
	bool good = review_place(getenv("XDG_STATE_HOME"), getenv("HOME"), &folder);
	if (good)
		good = carrier_tell(folder.data, workspace != NULL ? workspace : "/",
				    &remedy, &text);
	else
		(void)buf_adds(&text, "none: there is no home folder");
	(void)snprintf(number, sizeof(number), "for --review: %s",
		       remedy != NULL ? remedy : "");
	value_append(rows,
		     row_new("layers", good, text.data, remedy != NULL ? number : NULL));
	(void)snprintf(number, sizeof(number),
		       "%" PRIu64
		       " folders of a workspace, three quarters of what you may watch",
		       watches);
	value_append(rows, row_new("watches", true, number,
				   watches < WATCHES_MANY
					   ? "for undo in large workspaces: sudo sysctl -w "
					     "fs.inotify.max_user_watches=524288"
					   : NULL));
	buf_fini(&folder);
	buf_fini(&text);
	return rows;
}

static struct value *report_model(void)
{
	struct value *rows = value_new_array();
	const char *url = config_file_variable("GLOVEBOX_BASE_URL");
	const char *name = config_file_variable("GLOVEBOX_MODEL");
	bool any = false;

	for (size_t i = 0; i < sizeof(model_variables) / sizeof(model_variables[0]); i++) {
		const bool set = config_file_variable(model_variables[i]) != NULL;

		any = any || (set && str_ends(str_of(model_variables[i]), STR("_KEY")));
		value_append(rows, row_new(model_variables[i], true,
					   set ? "set" : "not set", NULL));
	}
	if (logins_have(NULL)) {
		any = true;
		value_append(rows, row_new("glovebox login", true, "keeps a key", NULL));
	}
	if (name != NULL)
		return rows;
	if (url != NULL)
		value_append(rows, row_new("model", false, "not named",
					   "export GLOVEBOX_MODEL=NAME"));
	else if (any)
		value_append(rows,
			     row_new("model", true, "not named: --model NAME says which",
				     "export GLOVEBOX_MODEL=NAME"));
	else
		value_append(rows,
			     row_new("model", true, "none: a recorded answer is played",
				     "export GLOVEBOX_BASE_URL=http://127.0.0.1:11434/v1 "
				     "GLOVEBOX_MODEL=NAME"));
	return rows;
}

static struct value *report_configuration(const struct options *options)
{
	const char *given = options_text(options, "config");
	auto_config struct config *config = NULL;
	struct front_servers servers = {0};
	struct err err = {0};
	struct buf path;
	struct value *row;

	buf_init(&path, PATH_BYTES_MAX);
	if (given != NULL)
		(void)buf_adds(&path, given);
	else if (!config_file_beside("config.json", &path))
		(void)buf_adds(&path, "(no home)");
	if (!config_file_load(given, &config, &err))
		row = row_new(path.data, false, "refused", err.text);
	else if (!agents_files_check(config, ".", &err))
		row = row_new(path.data, false, "an agent is refused", err.text);
	else if (!front_servers_read(&servers, config, path.data, ".", NULL, &err))
		row = row_new(path.data, false, "a server is refused", err.text);
	else
		row = row_new(path.data, true,
			      access(path.data, F_OK) == 0 ? "read" : "none, which is fine",
			      NULL);
	if (config != NULL)
		value_set_integer(row, "minimum_level", config_minimum_level(config));
	front_servers_fini(&servers);
	buf_fini(&path);
	return row;
}

/* The bound of this machine, as text; NULL: there is none. */
static struct value *report_ceiling(void)
{
	struct value *text;
	struct buf said;

	if (session_ceiling() == NULL)
		return NULL;
	buf_init(&said, CONFIG_TEXT_MAX);
	ceiling_print(session_ceiling(), &said);
	text = value_new_str(buf_str(&said));
	buf_fini(&said);
	return text;
}

static void print_ceiling(const struct value *ceiling, FILE *out)
{
	struct str rest = value_str(ceiling), line;

	if (ceiling == NULL)
		return;
	(void)fprintf(out, "  ok   %-20s  binds every cell of this machine\n", CEILING_FILE);
	while (str_next_line(&rest, &line))
		(void)fprintf(out, "       %.*s\n", (int)line.size, line.data);
}

static void print_row(const struct value *row, FILE *out)
{
	const char *remedy = value_text(value_member(row, "remedy"));
	const char *value = value_text(value_member(row, "value"));

	/* A program that is missing and not needed is no fault, and not there either. */
	(void)fprintf(out, "  %-4s %-20s  %s\n",
		      !value_is_true(value_member(row, "ok")) ? "NO"
		      : strcmp(value, NOT_FOUND) == 0         ? "--"
							      : "ok",
		      value_text(value_member(row, "name")), value);
	if (remedy != NULL)
		(void)fprintf(out, "       %s\n", remedy);
}

static void print_rows(const char *title, const struct value *rows, FILE *out)
{
	(void)fprintf(out, "\n%s\n", title);
	for (size_t i = 0; i < value_count(rows); i++)
		print_row(value_item(rows, i), out);
}

/* Print a sentence, indented and broken between words, even where no terminal is. */
static void print_sentence(const char *text, FILE *out)
{
	const size_t screen = paint_columns_of(STDOUT_FILENO);
	struct buf line, lines;

	buf_init(&line, SENTENCE_MAX);
	buf_init(&lines, 2 * SENTENCE_MAX);
	(void)buf_addf(&line, "%*s%s", SENTENCE_INDENT, "", text);
	paint_fold_line(buf_str(&line),
			screen < SENTENCE_COLUMNS ? screen : SENTENCE_COLUMNS, &lines);
	(void)fprintf(out, "%s\n", lines.data);
	buf_fini(&line);
	buf_fini(&lines);
}

static void print_levels(const struct value *levels, FILE *out)
{
	(void)fprintf(out, "\nLevels\n");
	for (size_t i = 0; i < value_count(levels); i++) {
		const struct value *row = value_item(levels, i);

		(void)fprintf(out, "  %s   %s\n", value_text(value_member(row, "name")),
			      value_text(value_member(row, "walls")));
		print_sentence(value_text(value_member(row, "holds")), out);
	}
}

static void print_report(const struct value *report, FILE *out)
{
	const struct value *cell = value_member(report, "cell");
	const struct value *level = value_member(cell, "level");

	(void)fprintf(out, "glovebox " GLOVEBOX_VERSION "\n\nCell\n");
	if (!value_is_number(level))
		(void)fprintf(out, "  NO   no session could be opened: %s\n",
			      value_text(value_member(cell, "because")));
	else if (value_integer(level) == SANDBOX_SEALED)
		(void)fprintf(out, "  ok   a session was opened at level L3: namespaces, Landlock "
				   "and seccomp hold\n");
	else
		(void)fprintf(out,
			      "  NO   no session could be opened at level L3; L%d%s is reached "
			      "here, if minimum_level allows it\n",
			      (int)value_integer(level),
			      tool_lack(value_is_true(value_member(cell, "unfiltered"))));
	if (value_member(cell, "remedy") != NULL)
		(void)fprintf(out, "       for more: %s\n       %s\n",
			      value_text(value_member(cell, "because")),
			      value_text(value_member(cell, "remedy")));
	print_levels(value_member(report, "levels"), out);
	print_rows("Kernel", value_member(report, "kernel"), out);
	print_rows("Programs", value_member(report, "programs"), out);
	print_rows("Workspaces", value_member(report, "workspaces"), out);
	print_rows("Model", value_member(report, "model"), out);
	(void)fprintf(out, "\nConfiguration\n");
	print_row(value_member(report, "configuration"), out);
	print_ceiling(value_member(report, "ceiling"), out);
}

static bool all_well(const struct value *rows)
{
	for (size_t i = 0; i < value_count(rows); i++) {
		if (!value_is_true(value_member(value_item(rows, i), "ok")))
			return false;
	}
	return true;
}

static int doctor_run(const struct options *options, FILE *out)
{
	static const char *const of_attacks[] = {"group", "base", "at"};
	struct ground ground = {.root = options_text(options, "base"),
				.at = options_text(options, "at")};

	if (options_given(options, "attack") && options_given(options, "config"))
		return verb_complain(CODE_USAGE, "doctor: --attack heeds no configuration: "
						 "take --config out");
	if (options_given(options, "attack"))
		return doctor_attack(options_text(options, "group"), &ground,
				     options_given(options, "json"), out);
	for (size_t i = 0; i < sizeof(of_attacks) / sizeof(of_attacks[0]); i++) {
		if (options_given(options, of_attacks[i]))
			return verb_complain(CODE_USAGE, "--%s is for --attack",
					     of_attacks[i]);
	}
	auto_value struct value *report = value_new_object();
	struct value *kernel = report_kernel(); /* also before the session */
	const struct value *level;
	struct value *ceiling;
	int64_t minimum;
	int printed = CODE_DONE;

	value_set_text(report, "version", GLOVEBOX_VERSION);
	value_set(report, "cell", report_cell());
	value_set(report, "levels", report_levels());
	value_set(report, "kernel", kernel);
	value_set(report, "programs", report_programs());
	value_set(report, "workspaces", report_workspaces());
	value_set(report, "model", report_model());
	value_set(report, "configuration", report_configuration(options));
	ceiling = report_ceiling();
	if (ceiling != NULL)
		value_set(report, "ceiling", ceiling);
	if (options_given(options, "json"))
		printed = verb_print_json(report, VALUE_PRETTY, out);
	else
		print_report(report, out);
	level = value_member(value_member(report, "cell"), "level");
	minimum = value_integer(
		value_member(value_member(report, "configuration"), "minimum_level"));
	if (!value_is_number(level) || value_integer(level) < minimum)
		return CODE_NO_CELL;
	if (!all_well(value_member(report, "programs")) ||
	    !all_well(value_member(report, "model")))
		return CODE_FAILED;
	return value_is_true(value_member(value_member(report, "configuration"), "ok"))
		       ? printed
		       : CODE_FAILED;
}

static const char doctor_help[] =
	"Open a session in a temporary folder and say which level its cell reached, which\n"
	"features of the kernel it is made of, which programs and which settings of a\n"
	"model were found (names of variables, never their values), where layers over the\n"
	"present folder lie, how many folders can be watched for undo, and how to mend the\n"
	"missing parts.\n\n"
	"With --attack: try each attack that this program brings along in a cell, where it\n"
	"must fail, and without one, where it must succeed, in a temporary folder; print\n"
	"how many held and which got through. The scripts run with your own rights and\n"
	"touch nothing but that folder; it takes half a minute, or some minutes on a slow\n"
	"machine. Those that need a program that is not there (git, python3) are counted\n"
	"apart. --group NAME plays one of the groups that the score lists.\n\n"
	"Exit codes: 0 all is well, 1 a needed program or a model's name is missing or\n"
	"the configuration or an agent is refused, 5 the cell cannot be built or is weaker\n"
	"than the configuration's minimum_level. With --attack: 0 all attacks held, 1 one\n"
	"got through.";

const struct verb verb_doctor = {
	.name = "doctor",
	.summary = "say how strong the cell is here, and how to mend missing parts",
	.arguments = "",
	.help = doctor_help,
	.example = "  glovebox doctor --json\n"
		   "  glovebox doctor --attack\n"
		   "  glovebox doctor --attack --group protected",
	.options = doctor_options,
	.folds = true,
	.run = doctor_run,
};
