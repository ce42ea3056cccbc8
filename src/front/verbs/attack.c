/*
 * attack: plays each attack in a folder of its own, in a cell and without one, and judges
 * it.
 */
#include "front/verbs/attack.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/attack_call.h"
#include "front/verbs/run.h"
#include "process/program.h"
#include "sandbox/probe.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SCRIPT_MAX = 16 << 10,
	VARIABLES_MAX = 24,
	NAMES_MAX = 1024, /* of the groups */
	/* An attack that hangs is ended, and proves nothing. */
	SCRIPT_SECONDS = 10,
	READY_MS = 5000,
	READY_PAUSE_MS = 5,
};

/* Used instead of the caller's PATH, so that an attack is the same on every machine. */
#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum outcome { HELD, THROUGH, UNSHOWN };

/* The place where one attack is played. */
struct stage {
	const struct attack *attack;
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
		{"%work%", stage->work.data},
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
	const char *argv[] = {stage->program, "exec", "--", "bash", "-c", NULL, NULL};
	int code = -1;

	buf_init(&script, SCRIPT_MAX);
	fill(stage, text, in_cell, &script);
	argv[5] = script.data;
	program_run_init(&run);
	run.start.argv = in_cell ? argv : argv + 3;
	run.start.environment = stage->environment;
	run.start.folder = stage->work.data;
	run.deadline_ms = clock_deadline(SCRIPT_SECONDS);
	if (!script.overflowed && program_follow(&run, &err) && run.ending == PROGRAM_ENDED)
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
	ok = temp_tree_write(work, file->name, buf_str(&text), file->mode, err);
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
		return true; /* the attack is on the cell's own parts */
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
		       "%s. To mend it: %s. What L%d means: glovebox doctor",
		       (int)reach.level, reach.because, reach.remedy, (int)reach.level);
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

static bool play_one(const struct attack *attack, const char *folder, size_t number,
		     enum outcome *verdict, struct err *err)
{
	struct stage stage = {.attack = attack};
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
	bool there = find_program_on(SYSTEM_PATH, program, &found);
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
	struct value *through, *unshown, *groups, *missing;
	struct score all, group;
	int64_t root_only;
};

static void tally_init(struct tally *tally, struct value *report)
{
	*tally = (struct tally){
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
	if (!play_one(attack, folder, number, &verdict, err))
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

bool attack_check_group(const char *group, struct err *err)
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
		err_set(err, EINVAL, "there is no group of attacks '%s': there are %s",
			group, names.data);
	buf_fini(&names);
	return found;
}

bool attack_play_all(const char *only, FILE *progress, const struct interrupt *interrupt,
		     struct value *report, struct err *err)
{
	struct tally tally;
	struct buf folder;
	bool ok;

	if (!is_installed("bash"))
		return err_set(err, ENOENT,
			       "the attacks are scripts of bash, which is not installed: apt-get "
			       "install bash, or what your system says");
	tally_init(&tally, report);
	buf_init(&folder, PATH_MAX);
	ok = setup_temp_folder("attack", &folder, err);
	/* Root's cell runs as another user, who must be able to enter the folder. */
	if (ok && chmod(folder.data, 0755) < 0)
		ok = err_set(err, errno, "%s: %s", folder.data, strerror(errno));
	ok = ok && play_table(only, &tally, folder.data, progress, interrupt, err);
	if (folder.size > 0)
		folder_remove(folder.data);
	buf_fini(&folder);
	value_set_integer(report, "held", tally.all.held);
	value_set_integer(report, "shown", tally.all.shown);
	value_set_integer(report, "root_only", tally.root_only);
	return ok;
}
