/*
 * checks: a turn checks its own work. After each answer whose calls changed files, a
 * program that knows the syntax of a file's language is run, if it answers in a moment,
 * and the model reads its answer with the results. Before the turn may finish, every
 * check that the role names is run until all are green or CHECKS_ROUNDS_MAX rounds of
 * repair were used. All of it goes the way of a call (session_call), with the policy's
 * verdict, its limits and its events. EVENT_CHECK_ENDED holds the text that the model was
 * told, so that resume is replay.
 *
 * A language whose syntax is checked is one row of `languages`; it comes with
 * docs/agents.md and tests/agent/syntax_of_many_languages.json.
 */

#include "agent/agent.h"

#include "base/clock.h"
#include "base/path.h"
#include "base/text/text.h"
#include "policy/commands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A model that could not repair the checks in so many rounds goes round in circles. */
enum { CHECKS_ROUNDS_MAX = 3 };

static const char bash_tool_name[] = "bash";
static const char tests_tool_name[] = "run_tests";

/* The model reads the end of a check's output, where the failures are. */
enum { OUTPUT_MAX = 8 << 10, TEXT_MAX = 64 << 10 };

static const double shortest_s = 0.001;

/* Would the policy let TOOL run, with COMMAND (data NULL: none)? */
static bool checks_may_run(const struct agent *agent, const char *name,
			   struct str command, struct verdict *verdict)
{
	struct session *session = agent->options.session;
	const struct tool *tool = tool_find(session_tools(session), name);
	const struct policy_request request = {
		.tool = name,
		.effects = tool ? tool->effects : POLICY_RUNS,
		.command = command,
	};

	policy_decide(session_policy(session), &request, verdict);
	value_free(verdict->plan);
	verdict->plan = NULL;
	return verdict->answer == VERDICT_ALLOW || verdict->or_runs;
}

static const char *command_of(const struct value *check)
{
	return value_kind(check) == VALUE_STRING
		       ? value_text(check)
		       : value_text(value_member(check, "command"));
}

bool agent_checks_judge(const struct agent *agent, struct err *err)
{
	const struct value *checks = agent->options.checks;

	for (void *at = value_first(checks); at; at = value_next(checks, at)) {
		const char *command = command_of(value_at(at));
		struct verdict verdict;

		(void)checks_may_run(agent, command ? bash_tool_name : tests_tool_name,
				     command ? str_of(command) : (struct str){0}, &verdict);
		/*
		 * When the policy wants a person's approval for a check, the person is
		 * asked when it runs.
		 */
		if (verdict.answer == VERDICT_DENY)
			return err_set(err, EPERM, "agents.%s.checks.%.64s: %s",
				       agent->options.name, value_key(at), verdict.because);
	}
	return true;
}

/*
 * For checks of both kinds: run TOOL with ARGUMENTS as the front's own wish, for at most
 * TIMEOUT_S (0: the tool's own limit). The caller has initialised RESULT. False: an event
 * could not be recorded.
 */
static bool checks_run(struct agent *agent, struct turn *turn, const char *tool,
		       const struct value *arguments, double timeout_s,
		       struct tool_result *result, char id[AGENT_ID], struct err *err)
{
	double left = limits_left_s(&turn->limits, clock_now_ms(), true);
	struct request request = {
		.tool = tool,
		.arguments = arguments,
		.id = id,
		.timeout_s = timeout_s,
		.most_s = isinf(left)         ? 0
			  : left > shortest_s ? left
					      : shortest_s,
	};

	agent_new_id(agent, id);
	session_call(agent->options.session, &request, result);
	if (result->status != RESULT_FAILED && result->status != RESULT_DENIED)
		turn->limits.shell_seconds += result->seconds;
	return !recorder_failed(agent->options.recorder, err);
}

/*
 * Record the end of a check. DATA has the members of the event; TEXT, when not empty, is
 * for the model.
 */
static bool checks_record(struct agent *agent, const char *id, struct value *data,
			  struct str text, struct err *err)
{
	struct event event = {
		.kind = EVENT_CHECK_ENDED,
		.call = id,
		.text = text,
		.data = data,
	};

	value_set_boolean(data, "to_model", text.size > 0);
	return recorder_event(agent->options.recorder, &event, err);
}

/* Append the end of OUTPUT for the model. */
static void checks_add_output(struct str output, struct buf *text)
{
	struct str shown = str_trim(output);
	struct buf clean;

	if (shown.size > OUTPUT_MAX) {
		size_t from = shown.size - OUTPUT_MAX;

		/* Begin with a whole line, if there is one. */
		while (from < shown.size && shown.data[from - 1] != '\n')
			from++;
		shown = str_part(shown, from < shown.size ? from : shown.size - OUTPUT_MAX,
				 shown.size);
		(void)buf_adds(text, "…\n");
	}
	buf_init(&clean, 4 * OUTPUT_MAX + 1);
	(void)text_clean(shown, &clean);
	(void)buf_addstr(text, buf_str(&clean));
	(void)buf_end_line(text);
	buf_fini(&clean);
}

/* A check is green when it ran to its end and found nothing wrong. */
static const char *state_of(const struct tool_result *result, bool tests)
{
	const struct value *details = result->details;

	if (result->status == RESULT_TIMED_OUT)
		return "timed_out";
	if (result->status != RESULT_DONE || result->signal != 0)
		return "red";
	if (!tests)
		return result->exit_code == 0 ? "green" : "red";
	return value_integer(value_member(details, "passed")) > 0 &&
			       value_integer(value_member(details, "failed")) == 0 &&
			       !value_is_true(value_member(details, "timed_out"))
		       ? "green"
		       : "red";
}

static bool is_green(const struct value *row)
{
	const char *state = value_text(value_member(row, "state"));

	return state && strcmp(state, "green") == 0;
}

/* Append "tests (exit code 2)" or "build (timed out)". */
static void add_row(const char *name, const struct value *row, struct buf *text)
{
	const char *state = value_text(value_member(row, "state"));
	const struct value *code = value_member(row, "exit_code");

	(void)buf_addf(text, "%s%.64s", text->size > 0 ? ", " : "", name);
	if (strcmp(state, "timed_out") == 0)
		(void)buf_adds(text, " (timed out)");
	else if (value_kind(code) == VALUE_INTEGER)
		(void)buf_addf(text, " (exit code %lld)", (long long)value_integer(code));
}

/* Run the check NAME, and store its state in the turn. */
static bool check_one(struct agent *agent, struct turn *turn, const char *name,
		      const struct value *check, struct err *err)
{
	const char *command = command_of(check);
	bool tests = command == NULL;
	auto_value struct value *arguments = NULL;
	auto_value struct value *data = value_new_object();
	struct tool_result result;
	char id[AGENT_ID];
	struct buf text;
	bool fine;

	if (tests) {
		arguments = value_copy(value_member(check, "run_tests"));
	} else {
		arguments = value_new_object();
		value_set_text(arguments, "command", command);
	}
	tool_result_init(&result);
	fine = checks_run(agent, turn, tests ? tests_tool_name : bash_tool_name, arguments,
			  value_number(value_member(check, "timeout_s")), &result, id, err);
	buf_init(&text, TEXT_MAX);
	value_set_text(data, "state", state_of(&result, tests));
	if (result.status == RESULT_DONE && result.exit_code >= 0)
		value_set_integer(data, "exit_code", result.exit_code);
	value_set_real(data, "seconds", result.seconds);
	value_set(turn->checks, name, value_copy(data));
	value_set_text(data, "check", name);
	value_set_integer(data, "round", turn->check_rounds);
	if (!is_green(data)) {
		(void)buf_addf(&text, "The check \"%.64s\" is not green:\n", name);
		checks_add_output(buf_str(&result.text), &text);
	}
	if (result.status == RESULT_CANCELLED)
		turn->check_cancelled = true;
	fine = fine && checks_record(agent, id, data, buf_str(&text), err);
	buf_fini(&text);
	tool_result_fini(&result);
	return fine;
}

/* Append the names of the checks that are not green, and how they ended. */
static size_t list_red(const struct turn *turn, struct buf *names)
{
	size_t count = 0;

	for (void *at = value_first(turn->checks); at; at = value_next(turn->checks, at)) {
		if (is_green(value_at(at)))
			continue;
		add_row(value_key(at), value_at(at), names);
		count++;
	}
	return count;
}

/* Some checks are not green: begin another round of repair, or end the turn. */
static bool go_on(struct agent *agent, struct turn *turn, size_t red, const char *names,
		  struct err *err)
{
	struct agent_outcome *outcome = turn->outcome;
	struct buf text;
	bool fine;

	buf_init(&text, ERR_TEXT_MAX);
	if (turn->check_rounds >= CHECKS_ROUNDS_MAX) {
		outcome->reason = AGENT_CHECKS;
		(void)snprintf(outcome->sentence, sizeof(outcome->sentence),
			       "Not green after %d rounds of repair: %s.",
			       CHECKS_ROUNDS_MAX, names);
		buf_fini(&text);
		return true;
	}
	turn->check_rounds++;
	turn->over = false;
	value_free(turn->patch);
	turn->patch = NULL;
	(void)buf_addf(&text,
		       "This run may not end yet: %zu of %zu checks %s not green: %s. Mend the "
		       "cause, not the check. The checks run again when you are done (round of "
		       "repair %u of %d).",
		       red, value_count(turn->checks), red == 1 ? "is" : "are", names,
		       turn->check_rounds, CHECKS_ROUNDS_MAX);
	fine = agent_notice(agent, text.data, true, err);
	buf_fini(&text);
	return fine;
}

/* Did the model itself end the turn, and is there a change to check? */
static bool is_due(const struct agent *agent, const struct turn *turn)
{
	enum agent_reason reason = turn->outcome->reason;

	if (!turn->over || value_count(agent->options.checks) == 0 ||
	    (reason != AGENT_STOPPED && reason != AGENT_PATCH))
		return false;
	return turn->check_rounds > 0 || turn->patch ||
	       session_has_news(agent->options.session);
}

bool agent_checks_finish(struct agent *agent, struct turn *turn, struct err *err)
{
	const struct value *checks = agent->options.checks;
	struct buf names;
	size_t red;
	bool fine = true;

	if (!is_due(agent, turn))
		return true;
	value_free(turn->checks);
	turn->checks = value_new_object();
	for (void *at = value_first(checks); at && !turn->check_cancelled;
	     at = value_next(checks, at)) {
		if (!check_one(agent, turn, value_key(at), value_at(at), err))
			return false;
	}
	if (turn->check_cancelled) {
		turn->over = false;
		turn_end(turn, AGENT_CANCELLED, turn_interrupted);
		return true;
	}
	buf_init(&names, ERR_TEXT_MAX / 2);
	red = list_red(turn, &names);
	if (red > 0)
		fine = go_on(agent, turn, red, names.data, err);
	buf_fini(&names);
	return fine;
}

void agent_checks_tell(const struct turn *turn, struct buf *text)
{
	bool first = true;

	for (void *at = value_first(turn->checks); at; at = value_next(turn->checks, at)) {
		const char *state = value_text(value_member(value_at(at), "state"));

		(void)buf_addf(text, "%s%.64s %s", first ? "Checks: " : ", ", value_key(at),
			       strcmp(state, "timed_out") == 0 ? "timed out" : state);
		first = false;
	}
	if (!first)
		(void)buf_adds(text, ".\n");
}

void agent_checks_describe(const struct agent *agent, const struct turn *turn,
			   struct value *data)
{
	const struct value *checks = agent->options.checks;
	struct value *list;

	if (value_count(checks) == 0)
		return;
	list = value_new_array();
	for (void *at = value_first(checks); at; at = value_next(checks, at)) {
		const struct value *known = value_member(turn->checks, value_key(at));
		struct value *row = known ? value_copy(known) : value_new_object();

		if (!known)
			value_set_text(row, "state", "not_run");
		value_set_text(row, "check", value_key(at));
		value_append(list, row);
	}
	value_set(data, "checks", list);
}

/*
 * Runs a language's own syntax check on one file, without building or running the
 * project. The result is only advice; only the checks that a role names keep a turn from
 * ending.
 */

enum {
	/* of one answer; a larger change is checked by building it */
	SYNTAX_FILES_MAX = 8,
	SYNTAX_WORDS_MAX = 6,
	SYNTAX_TEXT_MAX = 64 << 10,
	SYNTAX_EXIT_MISSING = 127, /* a shell's exit code for "no such program" */
};

/*
 * The program reads one file. It is not worth waiting longer for a preprocessor that
 * hangs.
 */
static const double syntax_timeout_s = 10;

/*
 * The file's name follows the words. Where the policy has a list of commands, the first
 * form that the list allows is used. When it allows none, the file is not checked.
 */
struct syntax {
	const char *suffixes; /* blank-separated */
	const char *words[SYNTAX_WORDS_MAX + 1];
};

static const struct syntax languages[] = {
	{".c", {"gcc", "-fsyntax-only", "-w", NULL}},
	{".cc .cpp .cxx", {"g++", "-fsyntax-only", "-w", NULL}},
	{".py",
	 {"python3", "-c",
	  "import ast, sys; ast.parse(open(sys.argv[1], 'rb').read(), sys.argv[1])", NULL}},
	/*
	 * it leaves a compiled file behind, so it is used only where the form above may
	 * not run
	 */
	{".py", {"python3", "-m", "py_compile", NULL}},
	{".php", {"php", "-l", NULL}},
	{".js .mjs .cjs", {"node", "--check", NULL}},
	{".sh .bash", {"bash", "-n", NULL}},
	{".pl .pm", {"perl", "-c", NULL}},
	{".rb", {"ruby", "-c", NULL}},
	{".go", {"gofmt", "-l", "-e", NULL}},
	{".json", {"jq", "empty", NULL}},
	{".json",
	 {"python3", "-c", "import json, sys; json.load(open(sys.argv[1], 'rb'))", NULL}},
};

enum { LANGUAGES = sizeof(languages) / sizeof(languages[0]) };
_Static_assert(LANGUAGES <= 8 * sizeof(unsigned),
	       "agent->syntax_missing has a bit for each");

static void note_file(struct turn *turn, const struct value *row)
{
	const char *path = value_text(value_member(row, "moved_to"));

	if (!path)
		path = value_text(value_member(row, "path"));
	/* Skip removed files, which have no size, and empty files. */
	if (!path || value_integer(value_member(row, "size")) == 0)
		return;
	if (!turn->edited)
		turn->edited = value_new_object();
	if (value_count(turn->edited) < SYNTAX_FILES_MAX)
		value_set_boolean(turn->edited, path, true);
}

void agent_checks_note(struct turn *turn, const struct tool *tool,
		       const struct tool_result *result)
{
	const struct value *files = value_member(result->details, "files");

	if (result->status != RESULT_DONE ||
	    (tool->effects & (EFFECT_WRITES | EFFECT_RUNS)) != EFFECT_WRITES)
		return;
	note_file(turn, result->details);
	for (size_t i = 0; i < value_count(files); i++)
		note_file(turn, value_item(files, i));
}

/* The command for FILE, as a person would type it. */
static void add_command(const struct syntax *syntax, const char *file, struct buf *command)
{
	const char *argv[SYNTAX_WORDS_MAX + 2];
	size_t count = 0;

	while (syntax->words[count]) {
		argv[count] = syntax->words[count];
		count++;
	}
	argv[count++] = file;
	argv[count] = NULL;
	commands_print(argv, command);
}

static struct str suffix_of(const char *file)
{
	const char *name = path_base_name(file);
	const char *dot = strrchr(name, '.');

	return dot && dot != name ? str_of(dot) : STR("");
}

/*
 * Does RESULT say nothing about the file's syntax, because the program is missing or
 * because it needs files that only a build makes (headers)?
 */
static bool is_silent(const struct tool_result *result)
{
	struct str text = buf_str(&result->text);

	if (result->status != RESULT_DONE || result->exit_code < 0)
		return true;
	return str_find(text, STR("fatal error: "), 0) != (size_t)-1 &&
	       str_find(text, STR("No such file or directory"), 0) != (size_t)-1;
}

static bool tell(struct agent *agent, const char *id, const char *file,
		 const char *program, const struct tool_result *result, struct err *err)
{
	auto_value struct value *data = value_new_object();
	bool green = result->exit_code == 0;
	struct buf text;
	bool fine;

	buf_init(&text, SYNTAX_TEXT_MAX);
	value_set_text(data, "check", "syntax");
	value_set_text(data, "file", file);
	value_set_text(data, "state", green ? "green" : "red");
	value_set_integer(data, "exit_code", result->exit_code);
	value_set_real(data, "seconds", result->seconds);
	if (green) {
		(void)buf_addf(&text, "Syntax of %s: sound (%s).", file, program);
	} else {
		(void)buf_addf(&text, "Syntax of %s, %s says:\n", file, program);
		checks_add_output(buf_str(&result->text), &text);
	}
	fine = checks_record(agent, id, data, buf_str(&text), err);
	buf_fini(&text);
	return fine;
}

/* *TAKEN: this form of the check was used, and no further form is needed. */
static bool try_syntax(struct agent *agent, struct turn *turn, size_t index,
		       const char *file, bool *taken, struct err *err)
{
	auto_value struct value *arguments = value_new_object();
	struct tool_result result;
	struct verdict verdict;
	char id[AGENT_ID];
	struct buf command;
	bool fine = true;

	buf_init(&command, SYNTAX_TEXT_MAX);
	add_command(&languages[index], file, &command);
	*taken = !command.overflowed &&
		 checks_may_run(agent, "bash", buf_str(&command), &verdict);
	if (*taken) {
		value_set_str(arguments, "command", buf_str(&command));
		tool_result_init(&result);
		fine = checks_run(agent, turn, "bash", arguments, syntax_timeout_s,
				  &result, id, err);
		if (result.status == RESULT_CANCELLED) {
			turn_end(turn, AGENT_CANCELLED, turn_interrupted);
		} else if (result.status == RESULT_DONE &&
			   result.exit_code == SYNTAX_EXIT_MISSING) {
			agent->syntax_missing |= 1U << index;
			*taken = false;
		} else if (fine && !is_silent(&result)) {
			fine = tell(agent, id, file, languages[index].words[0], &result,
				    err);
		}
		tool_result_fini(&result);
	}
	buf_fini(&command);
	return fine;
}

static bool look_at(struct agent *agent, struct turn *turn, const char *path, struct err *err)
{
	const char *shown = path_relative(path, session_workspace(agent->options.session));
	struct str suffix = suffix_of(shown);
	bool taken = false;
	struct buf file;
	bool fine = true;

	buf_init(&file, SYNTAX_TEXT_MAX);
	(void)buf_addf(&file, "%s%s", shown[0] == '-' ? "./" : "", shown);
	for (size_t i = 0; fine && !taken && i < LANGUAGES; i++) {
		if (suffix.size > 0 && str_among(languages[i].suffixes, suffix) &&
		    !(agent->syntax_missing & 1U << i))
			fine = try_syntax(agent, turn, i, file.data, &taken, err);
	}
	buf_fini(&file);
	return fine;
}

/* Tell the person the notices of RESULT, and the model its text. */
static bool tell_diagnoses(struct agent *agent, const char *id,
			   const struct tool_result *result, struct err *err)
{
	const struct value *notices = value_member(result->details, "notices");
	auto_value struct value *data = NULL;

	for (size_t i = 0; i < value_count(notices); i++) {
		if (!agent_notice(agent, value_text(value_item(notices, i)), false, err))
			return false;
	}
	if (result->status != RESULT_DONE || result->text.size == 0)
		return true;
	data = value_new_object();
	value_set_text(data, "check", "diagnostics");
	value_set_text(data, "state", "red");
	value_set_real(data, "seconds", result->seconds);
	return checks_record(agent, id, data, str_trim(buf_str(&result->text)), err);
}

/* Ask agent_options.diagnoses about the files EDITED (path -> true; or NULL). */
static bool diagnose(struct agent *agent, const struct value *edited, struct err *err)
{
	auto_value struct value *arguments = NULL;
	struct value *files;
	struct tool_result result;
	char id[AGENT_ID];
	struct request request = {
		.id = id,
		.by_front = true,
		.unheard = true,
	};
	bool fine;

	if (!agent->options.diagnoses)
		return true;
	arguments = value_new_object();
	files = value_new_array();
	for (void *at = value_first(edited); at; at = value_next(edited, at))
		value_append(files, value_new_text(value_key(at)));
	value_set(arguments, "files", files);
	request.tool = agent->options.diagnoses->name;
	request.made = agent->options.diagnoses;
	request.arguments = arguments;
	agent_new_id(agent, id);
	session_call(agent->options.session, &request, &result);
	fine = tell_diagnoses(agent, id, &result, err);
	tool_result_fini(&result);
	return fine;
}

bool agent_checks_syntax(struct agent *agent, struct turn *turn, struct err *err)
{
	/* The model would not read the results any more. */
	bool last = turn->over || turn->limits.announced != AGENT_STOPPED;
	struct value *edited = turn->edited;
	bool fine = true;

	turn->edited = NULL;
	for (void *at = value_first(edited); at && !last && fine && !turn->over;
	     at = value_next(edited, at))
		fine = look_at(agent, turn, value_key(at), err);
	if (!last && fine && !turn->over)
		fine = diagnose(agent, edited, err);
	value_free(edited);
	return fine;
}
