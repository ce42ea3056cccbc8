/*
 * glovebox policy explain: prints how a command is parsed, which rule decides about it,
 * and which programs would run. No cell is made and nothing runs. The text is made of the
 * same object as the JSON.
 */

#include "policy/policy.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/setup.h"
#include "front/verb.h"
#include "policy/command.h"
#include "policy/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LABEL_WIDTH = 10 };

static const struct option_row explain_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as one JSON object"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_HELP,
	{0},
};

/* In the order of enum verdict_answer. */
static const char *const verdict_words[] = {"denied", "asked", "allowed"};

static struct value *words_of(const char *const *argv)
{
	struct value *list = value_new_array();

	for (; *argv != NULL; argv++)
		value_append(list, value_new_text(*argv));
	return list;
}

/* The word that gives code to a program, and the word of a rule that would grant it. */
static struct value *code_of(const struct command_code *code)
{
	struct value *told = value_new_object();
	struct buf word;

	buf_init(&word, COMMAND_TEXT_MAX);
	command_code_word(code, &word);
	value_set_text(told, "word", code->name);
	value_set_text(told, "is", code->reason);
	value_set_str(told, "add", buf_str(&word));
	buf_fini(&word);
	return told;
}

/*
 * Add RULE, which fits or is the most similar one, and the reason why ARGV does not fit.
 */
static void add_rule(struct value *part, const struct command_rule *rule,
		     const struct command_match *match, const char *const *argv)
{
	bool fits = match->fit == FIT_MATCH;
	struct buf text;

	value_set_boolean(part, "fits", fits);
	value_set_text(part, "rule", rule->name);
	value_set_text(part, "from", rule->preset ? rule->preset : "configuration");
	value_set_boolean(part, "runs_code", rule->runs_code);
	if (fits)
		return;
	buf_init(&text, COMMAND_TEXT_MAX);
	if (argv[match->word] != NULL)
		(void)buf_addf(&text, "\"%s\" ", argv[match->word]);
	(void)buf_adds(&text, command_fit_clause(match->fit));
	value_set_str(part, "because", buf_str(&text));
	buf_clear(&text);
	if (match->code != NULL) {
		value_set(part, "executes", code_of(match->code));
		buf_clear(&text);
	}
	if (match->fit != FIT_RUNS_CODE)
		commands_nearest(rule, argv, &text);
	if (text.size > 0)
		value_set_str(part, "nearest", buf_str(&text));
	buf_fini(&text);
}

static void add_part(struct value *parts, const struct policy *policy, const char *join,
		     const char *const *argv)
{
	struct value *part = value_new_object();
	struct command_match match = {0};
	const struct command_rule *rule;

	if (value_count(parts) > 0)
		value_set_text(part, "join", join);
	value_set(part, "argv", words_of(argv));
	value_append(parts, part);
	if (!commands_listed(policy->commands))
		return;
	rule = commands_judge(policy->commands, argv, &match);
	if (rule != NULL)
		add_rule(part, rule, &match, argv);
	else
		value_set_boolean(part, "fits", false);
}

/* Add to each part the words that would really run. */
static void add_plan(struct value *parts, const struct value *plan)
{
	for (size_t i = 0; i < value_count(plan); i++) {
		struct value *argv = value_member(value_item(plan, i), "argv");

		value_set(value_item(parts, i), "runs", value_ref(argv));
	}
}

static void add_parse(struct value *report, struct value *parts,
		      const struct policy *policy, struct str text)
{
	struct command command;

	value_set_boolean(report, "literal", command_parse(&command, text));
	if (!command.literal) {
		value_set_text(report, "reason", command.reason);
		value_set_integer(report, "at", (int64_t)command.at + 1);
		value_set_text(report, "remedy", command.remedy);
	}
	for (size_t i = 0; i < command.count; i++)
		add_part(parts, policy, command_joins[command.parts[i].join],
			 command.parts[i].argv);
	command_fini(&command);
}

/*
 * Make the report. One word is a shell text, as for the tool bash; several words are a
 * program and its arguments, as for exec.
 */
static struct value *report_of(const struct policy *policy, const struct options *options)
{
	struct value *report = value_new_object();
	struct value *parts = value_new_array();
	struct policy_request request = {.effects = POLICY_RUNS};
	struct verdict verdict;
	bool is_text = options->word_count == 1;

	value_set_text(report, "agent", policy->name);
	value_set_text(report, "profile",
		       commands_listed(policy->commands) ? "list" : "box");
	value_set_boolean(report, "has_bash", policy_has_tool(policy, "bash"));
	if (is_text) {
		request.command = str_of(options->words[0]);
		value_set_str(report, "command", request.command);
		add_parse(report, parts, policy, request.command);
	} else {
		request.argv = options->words;
		add_part(parts, policy, "", request.argv);
	}
	commands_decide(policy, &request, &verdict);
	add_plan(parts, verdict.plan);
	value_free(verdict.plan);
	value_set(report, "parts", parts);
	value_set_boolean(report, "allowed",
			  verdict.answer == VERDICT_ALLOW || verdict.or_runs);
	value_set_text(report, "verdict", verdict_words[verdict.answer]);
	if (verdict.answer != VERDICT_ALLOW) {
		value_set_text(report, "rule", verdict.rule);
		value_set_text(report, "because", verdict.because);
	}
	if (verdict.by[0] != '\0')
		value_set_text(report, "by", verdict.by);
	if (verdict.answer == VERDICT_ASK)
		value_set_text(report, "without_a_person",
			       verdict.or_runs ? "allowed" : "denied");
	if (verdict.harm != NULL)
		value_set_text(report, "destroys", verdict.harm->does);
	return report;
}

/*
 * Print TEXT behind LABEL, with escapes for bytes that a terminal would obey or show in a
 * misleading way.
 */
static void print_line(const char *label, const char *text, FILE *out)
{
	struct buf clean;

	buf_init(&clean, 4 * strlen(text) + 1); /* a byte becomes \xHH at most */
	text_add_name(&clean, str_of(text));
	(void)fprintf(out, "%-*s %s\n", LABEL_WIDTH, label, clean.data);
	buf_fini(&clean);
}

static void print_argv(const char *label, const struct value *list, FILE *out)
{
	size_t count = value_count(list);
	auto_free const char **argv = memory_array(count + 1, sizeof(*argv));
	struct buf text;

	for (size_t i = 0; i < count; i++)
		argv[i] = value_text(value_item(list, i));
	buf_init(&text, 2 * VALUE_TEXT_MAX);
	commands_print(argv, &text);
	print_line(label, text.data, out);
	buf_fini(&text);
}

static void print_part(const struct value *part, FILE *out)
{
	const char *join = value_text(value_member(part, "join"));
	const char *rule = value_text(value_member(part, "rule"));
	const char *because = value_text(value_member(part, "because"));
	const char *nearest = value_text(value_member(part, "nearest"));
	const struct value *fits = value_member(part, "fits");
	const struct value *code = value_member(part, "executes");
	char text[256];

	print_argv(join ? join : "", value_member(part, "argv"), out);
	if (fits == NULL)
		return;
	if (rule == NULL) {
		print_line("", "  no rule is of this program", out);
		return;
	}
	(void)snprintf(text, sizeof(text), "  %s rule \"%.100s\" (%.64s)%s",
		       value_is_true(fits) ? "fits" : "does not fit", rule,
		       value_text(value_member(part, "from")),
		       value_is_true(value_member(part, "runs_code"))
			       ? ", which runs code: the cell contains that, no rule"
			       : "");
	print_line("", text, out);
	if (because != NULL)
		print_line("  because", because, out);
	if (code != NULL) {
		(void)snprintf(text, sizeof(text), "%.64s is %.150s",
			       value_text(value_member(code, "word")),
			       value_text(value_member(code, "is")));
		print_line("  code", text, out);
		print_line("  add", value_text(value_member(code, "add")), out);
	}
	if (nearest != NULL)
		print_line("  nearest", nearest, out);
	if (value_member(part, "runs") != NULL)
		print_argv("  runs", value_member(part, "runs"), out);
}

/*
 * Print the verdict. For "asked", print the rule, and the verdict where nobody can be
 * asked.
 */
static void print_verdict(const struct value *report, const char *because, FILE *out)
{
	const char *verdict = value_text(value_member(report, "verdict"));
	const char *by = value_text(value_member(report, "by"));
	char text[256];

	if (by != NULL) {
		(void)snprintf(text, sizeof(text), "%.100s (%.128s)", by,
			       value_text(value_member(report, "rule")));
		print_line(strcmp(verdict, "asked") == 0 ? "asked by" : "denied by", text,
			   out);
	}
	print_line("verdict", because ? because : "allowed", out);
	if (strcmp(verdict, "asked") == 0) {
		(void)snprintf(text, sizeof(text), "%s where nobody can be asked",
			       value_text(value_member(report, "without_a_person")));
		print_line("", text, out);
	}
}

static void print_report(const struct value *report, FILE *out)
{
	const struct value *parts = value_member(report, "parts");
	const char *because = value_text(value_member(report, "because"));
	bool is_list = strcmp(value_text(value_member(report, "profile")), "list") == 0;
	char text[256];

	(void)snprintf(text, sizeof(text), "%.64s: %s",
		       value_text(value_member(report, "agent")),
		       is_list ? "runs listed commands only, without a shell"
			       : "runs any command (box): the cell contains it");
	print_line("agent", text, out);
	if (value_member(report, "reason") != NULL) {
		(void)snprintf(text, sizeof(text), "no: %s, at byte %lld",
			       value_text(value_member(report, "reason")),
			       (long long)value_integer(value_member(report, "at")));
		print_line("literal", text, out);
		if (is_list)
			print_line("", value_text(value_member(report, "remedy")), out);
	} else if (value_member(report, "literal") != NULL) {
		print_line("literal",
			   "yes: nothing in it but words, quotes, && || ; | and line ends",
			   out);
	}
	for (size_t i = 0; i < value_count(parts); i++)
		print_part(value_item(parts, i), out);
	print_verdict(report, because, out);
	if (because == NULL && !value_is_true(value_member(report, "has_bash")))
		print_line("note",
			   "the agent has no tool bash to call it with; glovebox exec "
			   "runs it as this agent",
			   out);
}

static int explain_run(const struct options *options, FILE *out)
{
	struct setup setup;
	int code = setup_open(&setup, options, NULL);

	if (code == CODE_DONE) {
		auto_value struct value *report = report_of(setup.policy, options);

		if (options_given(options, "json"))
			code = verb_print_json(report, VALUE_PRETTY, out);
		else
			print_report(report, out);
		if (code == CODE_DONE && !value_is_true(value_member(report, "allowed")))
			code = CODE_DENIED;
	}
	setup_fini(&setup);
	return code;
}

static const char policy_explain_help[] =
	"Show how COMMAND, a shell text, is read, which rule of the agent's list decides about\n"
	"each part of it, what would run in its place, and the verdict. Several words are one\n"
	"program and its arguments, as `glovebox exec` takes them. Nothing is run.\n\n"
	"A rule decides whether something is started, not what it does then: forms that run\n"
	"code of the project or of the model are marked, and only the cell contains them.\n\n"
	"The verdict names the rule of `deny` or `ask` that holds, in the box as well, and says\n"
	"what becomes of a command that is asked about where nobody can be.\n\n"
	"Exit codes: 0 allowed (also what is asked about where a person can be, and runs else),\n"
	"4 denied, or asked about and denied else, 2 when the policy is wrong.";

const struct verb verb_policy_explain = {
	.name = "policy explain",
	.summary = "show whether an agent may run a command, and why",
	.arguments = "[--] COMMAND | CMD ARGS…",
	.help = policy_explain_help,
	.example = "  glovebox policy explain -- 'git log -n 5 | head'",
	.options = explain_options,
	.words_least = 1,
	.words_most = VERB_WORDS_ANY,
	.words_end_options = true,
	.folds = true,
	.run = explain_run,
};
