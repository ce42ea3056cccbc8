/*
 * checks_syntax: what a language's own tool says of one file, without building or running the
 * project. It is advice: only a role's named checks keep a turn from ending.
 */
#include "agent/checks.h"
#include "base/path.h"
#include "policy/commands.h"

#include <stdlib.h>
#include <string.h>

enum {
	SYNTAX_FILES_MAX = 8, /* of one answer: a larger change is checked by building */
	SYNTAX_WORDS_MAX = 6,
	SYNTAX_TEXT_MAX = 64 << 10,
	SYNTAX_EXIT_MISSING = 127, /* a shell's word for "no such program" */
};

/* It reads one file; a preprocessor that hangs is not worth waiting for. */
static const double syntax_timeout_s = 10;

/*
 * The file's name follows the words. Where a list of commands holds, the first form that it
 * takes is used, and none when it takes none.
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
	/* leaves a compiled file behind: only where the form above may not run */
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

void checks_note(struct turn *turn, const struct tool *tool, const struct tool_result *result)
{
	const struct value *files = value_member(result->details, "files");

	if (result->status != RESULT_DONE ||
	    (tool->effects & (EFFECT_WRITES | EFFECT_RUNS)) != EFFECT_WRITES)
		return;
	note_file(turn, result->details);
	for (size_t i = 0; i < value_count(files); i++)
		note_file(turn, value_item(files, i));
}

/* The command for FILE, as one would type it. */
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
 * Is it no word on the file's syntax: the tool is not there, or wants what only a build can
 * give (headers)?
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

/* *TAKEN: there was an answer, or there is none to be had from this form. */
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

bool checks_syntax(struct agent *agent, struct turn *turn, struct err *err)
{
	/* Nobody would read it any more. */
	bool last = turn->over || turn->limits.announced != AGENT_STOPPED;
	struct value *edited = turn->edited;
	bool fine = true;

	turn->edited = NULL;
	for (void *at = value_first(edited); at && !last && fine && !turn->over;
	     at = value_next(edited, at))
		fine = look_at(agent, turn, value_key(at), err);
	value_free(edited);
	return fine;
}
