/*
 * glovebox doctor: prints how strong the cell is on this machine, why it is not stronger,
 * and the remedy.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "build_config.h"
#include "front/agents.h"
#include "front/setup.h"
#include "front/terminal/paint.h"
#include "front/terminal/screen.h"
#include "front/verb.h"
#include "front/verbs/run.h"
#include "front/verbs/verb_doctor_attack.h"
#include "sandbox/probe.h"
#include "sandbox/sandbox.h"

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
	OPTION_ROW_CONFIG,
	OPTION_ROW_HELP,
	{0},
};

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

/*
 * Really open a session in a folder of its own. Returns the level, or -1 with the reason
 * in ERR.
 */
static int try_cell(struct err *err)
{
	struct buf folder;
	struct session_options options = {.ready_workers = 1, .cancel_fd = -1};
	struct session *session = NULL;
	struct setup setup;
	int level = -1;

	buf_init(&folder, PATH_MAX);
	if (!setup_temp_folder("doctor", &folder, err)) {
		buf_fini(&folder);
		return -1;
	}
	if (setup_init_shipped(&setup, folder.data, err) &&
	    setup_open_session(&setup, &options, &session, err))
		level = session_level(session);
	session_close(session);
	setup_fini(&setup);
	(void)rmdir(folder.data);
	buf_fini(&folder);
	return level;
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
	struct err err = {0};
	int level;

	/*
	 * Probe before the session: a session hides our memory, and so our own
	 * /proc/self/uid_map too.
	 */
	probe_reach(&reach);
	level = try_cell(&err);
	if (level >= 0) {
		value_set_integer(cell, "level", level);
		if (level < SANDBOX_SEALED) {
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

/* The meaning of each level, the strongest first. */
static struct value *report_levels(void)
{
	struct value *rows = value_new_array();

	for (int level = SANDBOX_SEALED; level >= SANDBOX_NONE; level--) {
		const struct level_row *row = probe_level_row((enum sandbox_level)level);
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
		bool found = find_program(row->name, &path);

		buf_clear(&remedy);
		if (!found)
			(void)buf_addf(&remedy,
				       "for %s, on Debian and Ubuntu: sudo apt install %s",
				       row->used_for, row->package);
		value_append(rows, row_new(row->name, found || !row->needed,
					   found ? path.data : "not found", remedy.data));
	}
	buf_fini(&path);
	buf_fini(&remedy);
	return rows;
}

static struct value *report_model(void)
{
	struct value *rows = value_new_array();
	const char *url = getenv("GLOVEBOX_BASE_URL");
	const char *name = getenv("GLOVEBOX_MODEL");
	bool any = false;

	for (size_t i = 0; i < sizeof(model_variables) / sizeof(model_variables[0]); i++) {
		const char *value = getenv(model_variables[i]);

		const bool set = value != NULL && value[0] != '\0';

		any = any || (set && str_ends(str_of(model_variables[i]), STR("_KEY")));
		value_append(rows, row_new(model_variables[i], true,
					   set ? "set" : "not set", NULL));
	}
	if (name != NULL && name[0] != '\0')
		return rows;
	if (url != NULL && url[0] != '\0')
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
	struct err err = {0};
	struct buf path;
	struct value *row;

	buf_init(&path, PATH_BYTES_MAX);
	if (given != NULL)
		(void)buf_adds(&path, given);
	else if (!config_file_place(&path))
		(void)buf_adds(&path, "(no home)");
	if (!config_file_load(given, &config, &err))
		row = row_new(path.data, false, "refused", err.text);
	else if (!agent_files_check(config, ".", &err))
		row = row_new(path.data, false, "an agent is refused", err.text);
	else
		row = row_new(path.data, true,
			      access(path.data, F_OK) == 0 ? "read" : "none, which is fine",
			      NULL);
	if (config != NULL)
		value_set_integer(row, "minimum_level", config_minimum_level(config));
	buf_fini(&path);
	return row;
}

static void print_row(const struct value *row, FILE *out)
{
	const char *remedy = value_text(value_member(row, "remedy"));

	(void)fprintf(out, "  %-4s %-20s  %s\n",
		      value_is_true(value_member(row, "ok")) ? "ok" : "NO",
		      value_text(value_member(row, "name")),
		      value_text(value_member(row, "value")));
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
	const size_t screen = screen_columns_of(STDOUT_FILENO);
	struct buf line, lines;

	buf_init(&line, SENTENCE_MAX);
	buf_init(&lines, 2 * SENTENCE_MAX);
	(void)buf_addf(&line, "%*s%s", SENTENCE_INDENT, "", text);
	fold_line(buf_str(&line), screen < SENTENCE_COLUMNS ? screen : SENTENCE_COLUMNS,
		  &lines);
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
			      "  NO   no session could be opened at level L3; L%d is reached here, "
			      "for who allows it\n",
			      (int)value_integer(level));
	if (value_member(cell, "remedy") != NULL)
		(void)fprintf(out, "       for more: %s\n       %s\n",
			      value_text(value_member(cell, "because")),
			      value_text(value_member(cell, "remedy")));
	print_levels(value_member(report, "levels"), out);
	print_rows("Kernel", value_member(report, "kernel"), out);
	print_rows("Programs", value_member(report, "programs"), out);
	print_rows("Model", value_member(report, "model"), out);
	(void)fprintf(out, "\nConfiguration\n");
	print_row(value_member(report, "configuration"), out);
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
	if (options_given(options, "attack") && options_given(options, "config"))
		return verb_complain(CODE_USAGE, "doctor: --attack heeds no configuration: "
						 "take --config out");
	if (options_given(options, "attack"))
		return doctor_attack(options_text(options, "group"),
				     options_given(options, "json"), out);
	if (options_given(options, "group"))
		return verb_complain(CODE_USAGE, "--group is for --attack");
	auto_value struct value *report = value_new_object();
	struct value *kernel = report_kernel(); /* also before the session */
	const struct value *level;
	int64_t minimum;
	int printed = CODE_DONE;

	value_set_text(report, "version", GLOVEBOX_VERSION);
	value_set(report, "cell", report_cell());
	value_set(report, "levels", report_levels());
	value_set(report, "kernel", kernel);
	value_set(report, "programs", report_programs());
	value_set(report, "model", report_model());
	value_set(report, "configuration", report_configuration(options));
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
	"model were found (names of variables, never their values), and what to do about\n"
	"what is missing.\n\n"
	"With --attack: try each attack that this program brings along in a cell, where it\n"
	"must fail, and without one, where it must succeed, in a temporary folder; print\n"
	"how many held and which got through. The scripts run with your own rights and\n"
	"touch nothing but that folder; it takes half a minute. Those that need a program\n"
	"that is not there (git, python3) are counted apart. --group NAME plays one of the\n"
	"groups that the score lists.\n\n"
	"Exit codes: 0 all is well, 1 a needed program or a model's name is missing or\n"
	"the configuration or an agent is refused, 5 the cell cannot be built or is weaker\n"
	"than the configuration's minimum_level. With --attack: 0 all attacks held, 1 one\n"
	"got through.";

const struct verb verb_doctor = {
	.name = "doctor",
	.summary = "say how strong the cell is here, and how to mend what is missing",
	.arguments = "",
	.help = doctor_help,
	.example = "  glovebox doctor --json\n"
		   "  glovebox doctor --attack\n"
		   "  glovebox doctor --attack --group protected",
	.options = doctor_options,
	.folds = true,
	.run = doctor_run,
};
