/*
 * glovebox policy explain, rules and suggest. The first prints how a command is parsed, which
 * rule decides about it, and which programs would run. No cell is made and nothing runs. The
 * text is made of the same object as the JSON.
 */

#include "policy/policy.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/config_file.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "policy/command.h"
#include "policy/commands.h"
#include "policy/rules.h"
#include "store/asked.h"
#include "store/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

/* A rule of the person's own lets ARGV run (policy/rules.h). */
static void add_always(struct value *part, const char *const *argv)
{
	struct buf words;

	buf_init(&words, COMMAND_TEXT_MAX);
	(void)rules_add_words(argv, &words);
	value_set_boolean(part, "fits", true);
	value_set_str(part, "rule", buf_str(&words));
	value_set_text(part, "from", "rules.json");
	value_set_boolean(part, "runs_code", false);
	buf_fini(&words);
}

static void add_part(struct value *parts, const struct policy *policy, const char *join,
		     const char *const *argv)
{
	struct value *part = value_new_object();
	struct command_match match = {0};
	const struct command_rule *rule;

	if (value_count(parts) > 0)
		value_set_text(part, "join", join);
	value_set(part, "argv", value_new_texts(argv));
	value_append(parts, part);
	if (!commands_listed(policy->commands))
		return;
	if (rules_let(&policy->always, argv)) {
		add_always(part, argv);
		return;
	}
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

/*
 * The rules that answers of `always` have left, and those that a person might want because the
 * answer was the same each time.
 */

enum {
	/* A rule is proposed for a thing that was allowed so often, and never refused. */
	ALLOWED_LEAST = 3,
	SUGGEST_DAYS = 30,
	SHOWN = 3,           /* examples, and neighbours, of a proposal */
	SUBJECTS_MAX = 5000, /* different things that were asked for; a person reads fewer */
	MS_PER_DAY = 24 * 3600 * 1000,
};

static const struct option_row rules_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print one object per line"},
	OPTION_ROW_HELP,
	{0},
};

static void print_rule(const struct rule *rule, FILE *out)
{
	verb_print_name(rule->agent, 0, out);
	(void)fputs(" in ", out);
	verb_print_name(rule->folder, 0, out);
	(void)fprintf(out, ": %s ", rules_kind_name(rule->kind));
	verb_print_name(rule->rule, 0, out);
}

static int print_rule_json(const struct rule *rule, size_t number, FILE *out)
{
	auto_value struct value *row = value_new_object();

	value_set_integer(row, "number", (int64_t)number);
	value_set_text(row, "agent", rule->agent);
	value_set_text(row, "folder", rule->folder);
	value_set_text(row, "kind", rules_kind_name(rule->kind));
	value_set_text(row, "rule", rule->rule);
	if (rule->since != NULL)
		value_set_text(row, "since", rule->since);
	return verb_print_json(row, 0, out);
}

static int list_rules(bool json, FILE *out)
{
	struct rules rules;
	struct err err = {0};
	int code = CODE_DONE;

	if (!config_file_rules_read(&rules, &err))
		code = verb_complain(CODE_USAGE, "%s", err.text);
	else if (rules.count == 0 && !json)
		(void)fprintf(out,
			      "There are no rules. An answer of \"always\" makes one.\n");
	for (size_t i = 0; code == CODE_DONE && i < rules.count; i++) {
		const struct rule *rule = &rules.items[i];

		if (json) {
			code = print_rule_json(rule, i + 1, out);
			continue;
		}
		(void)fprintf(out, "%3zu  ", i + 1);
		print_rule(rule, out);
		(void)fprintf(out, "%s%s\n", rule->since != NULL ? "  since " : "",
			      rule->since != NULL ? rule->since : "");
	}
	rules_fini(&rules);
	return code;
}

struct removal {
	uint64_t number;
	FILE *out;
};

static bool remove_rule(void *context, struct rules *rules, struct err *err)
{
	const struct removal *removal = context;
	const uint64_t number = removal->number;

	if (number == 0 || number > rules->count)
		return err_set(err, EINVAL,
			       "there is no rule %" PRIu64 "; see: glovebox policy rules",
			       number);
	(void)fprintf(removal->out, "Removed: ");
	print_rule(&rules->items[number - 1], removal->out);
	(void)fputc('\n', removal->out);
	rules_remove(rules, number - 1);
	return true;
}

static int rules_run(const struct options *options, FILE *out)
{
	struct removal removal = {.out = out};
	struct err err = {0};

	if (options->word_count == 0)
		return list_rules(options_given(options, "json"), out);
	if (strcmp(options->words[0], "remove") != 0 || options->word_count != 2)
		return verb_complain(CODE_USAGE,
				     "policy rules: \"%.100s\": say nothing, or remove N",
				     options->words[0]);
	if (!text_parse_count(options->words[1], RULES_MAX, &removal.number, &err))
		return verb_complain(CODE_USAGE, "policy rules remove: %s", err.text);
	if (!config_file_rules_change(remove_rule, &removal, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return CODE_DONE;
}

static const char rules_help[] =
	"List the rules that answers of \"always\" have made, or remove one: for an agent in a\n"
	"folder, a program with its first word, a host with its port, or a folder to be read\n"
	"or written. They stand in rules.json beside your own configuration. What is blocked,\n"
	"denied or asked about each time is not opened by a rule, and no rule lets in what\n"
	"destroys much.";

const struct verb verb_policy_rules = {
	.name = "policy rules",
	.summary = "list or remove what was allowed for always",
	.arguments = "[remove N]",
	.help = rules_help,
	.example = "  glovebox policy rules\n  glovebox policy rules remove 2",
	.options = rules_options,
	.words_most = 2,
	.folds = true,
	.run = rules_run,
};

/* Proposes rules from the answers in the journal. */

static const struct option_row suggest_options[] = {
	{"since", 0, OPTION_TEXT, "WHEN",
	 "look at answers since then: 7d, 2w, or a day as 2026-11-23 (default: 30d)"},
	{"json", 0, OPTION_FLAG, NULL, "print one object per line, and ask nothing"},
	OPTION_ROW_HELP,
	{0},
};

/* One thing that was asked for, with the rules that would let it in; NULL: there are none. */
struct subject {
	char *agent, *folder, *text;
	enum rule_kind kind;
	struct value *rules;
	int64_t allowed, refused;
};

struct subjects {
	struct subject *items;
	size_t count;
};

/* The rules for the subject of QUESTION; NULL: none would let it in. */
static struct value *rules_for(const struct asked_question *question, enum rule_kind kind)
{
	struct value *list;

	/* A rule that asks each time, or the harm of a command, is no question of a list. */
	if (kind == RULE_COMMAND)
		return str_ends(question->rule, STR(".commands"))
			       ? rules_of_text(question->subject)
			       : NULL;
	if (!rules_check(kind, question->subject, NULL))
		return NULL;
	list = value_new_array();
	value_append(list, value_new_str(question->subject));
	return list;
}

static struct subject *subject_of(struct subjects *subjects,
				  const struct asked_question *question, enum rule_kind kind)
{
	for (size_t i = 0; i < subjects->count; i++) {
		struct subject *at = &subjects->items[i];

		if (at->kind == kind && str_is(question->subject, at->text) &&
		    str_is(question->agent, at->agent) &&
		    str_is(question->workspace, at->folder))
			return at;
	}
	if (subjects->count == SUBJECTS_MAX)
		return NULL;
	subjects->items = memory_grow(subjects->items, subjects->count + 1,
				      sizeof(*subjects->items));
	subjects->items[subjects->count] = (struct subject){
		.agent = memory_copy_str(question->agent),
		.folder = memory_copy_str(question->workspace),
		.text = memory_copy_str(question->subject),
		.kind = kind,
		.rules = rules_for(question, kind),
	};
	return &subjects->items[subjects->count++];
}

/* Only what a person has answered counts: silence and an interrupt are no answers. */
static bool take_question(void *context, const struct asked_question *question)
{
	struct subject *subject;
	enum rule_kind kind;

	if (!str_is(question->by, "person") || !rules_kind_of(question->effect, &kind))
		return true;
	subject = subject_of(context, question, kind);
	if (subject == NULL)
		return true;
	if (str_is(question->answer, "no"))
		subject->refused++;
	else
		subject->allowed++;
	return true;
}

static bool is_same_place(const struct subject *subject, const struct rule *rule)
{
	return subject->kind == rule->kind && strcmp(subject->agent, rule->agent) == 0 &&
	       strcmp(subject->folder, rule->folder) == 0;
}

/* Count the answers to what RULE would have let in. */
static void count_answers(const struct subjects *subjects, const struct rule *rule,
			  int64_t *allowed, int64_t *refused)
{
	*allowed = *refused = 0;
	for (size_t i = 0; i < subjects->count; i++) {
		const struct subject *at = &subjects->items[i];

		if (!is_same_place(at, rule) || !value_has_text(at->rules, rule->rule))
			continue;
		*allowed += at->allowed;
		*refused += at->refused;
	}
}

/* The proposals: rules that are not kept yet. */
static void propose(const struct subjects *subjects, const struct rules *kept,
		    struct rules *proposed)
{
	int64_t allowed, refused;

	for (size_t i = 0; i < subjects->count; i++) {
		const struct subject *at = &subjects->items[i];

		for (size_t n = 0; n < value_count(at->rules); n++) {
			const struct rule rule = {
				.agent = at->agent,
				.folder = at->folder,
				.kind = at->kind,
				.rule = (char *)(uintptr_t)value_text(
					value_item(at->rules, n)),
			};

			count_answers(subjects, &rule, &allowed, &refused);
			if (allowed >= ALLOWED_LEAST && refused == 0 &&
			    rules_find(kept, &rule) == kept->count)
				(void)rules_add(proposed, &rule);
		}
	}
}

/* Is TEXT nearer to RULE than others that it does not let in: of the same program? */
static bool begins_alike(const char *text, const struct rule *rule)
{
	const size_t size = strcspn(rule->rule, " :");

	return strncmp(text, rule->rule, size) == 0 && strchr(" :", text[size]) != NULL;
}

/*
 * The things that RULE would have let in (IN), or those nearest to it that it would not: of the
 * same program or host first.
 */
static struct value *examples_of(const struct subjects *subjects, const struct rule *rule,
				 bool in)
{
	struct value *list = value_new_array();

	for (int pass = in ? 1 : 0; pass < 2; pass++) {
		for (size_t i = 0; i < subjects->count && value_count(list) < SHOWN; i++) {
			const struct subject *at = &subjects->items[i];

			if (is_same_place(at, rule) &&
			    value_has_text(at->rules, rule->rule) == in &&
			    (in || begins_alike(at->text, rule) == (pass == 0)))
				value_append(list, value_new_text(at->text));
		}
	}
	return list;
}

static void print_examples(const char *label, const struct value *list, FILE *out)
{
	for (size_t i = 0; i < value_count(list); i++) {
		(void)fputs(i == 0 ? label : "; ", out);
		verb_print_name(value_text(value_item(list, i)), 0, out);
	}
	if (value_count(list) > 0)
		(void)fputc('\n', out);
}

/* Print the proposal RULE, and keep it when the person says yes. */
static int offer(const struct subjects *subjects, const struct rule *rule, bool json,
		 bool asks, FILE *out)
{
	auto_value struct value *in = examples_of(subjects, rule, true);
	auto_value struct value *near = examples_of(subjects, rule, false);
	int64_t allowed, refused;
	struct err err = {0};

	count_answers(subjects, rule, &allowed, &refused);
	if (json) {
		auto_value struct value *row = value_new_object();

		value_set_text(row, "agent", rule->agent);
		value_set_text(row, "folder", rule->folder);
		value_set_text(row, "kind", rules_kind_name(rule->kind));
		value_set_text(row, "rule", rule->rule);
		value_set_integer(row, "allowed", allowed);
		value_set(row, "lets_in", value_ref(in));
		value_set(row, "not", value_ref(near));
		return verb_print_json(row, 0, out);
	}
	print_rule(rule, out);
	(void)fprintf(out, "\n  allowed %" PRId64 " times, never refused\n", allowed);
	print_examples("  would have let in: ", in, out);
	print_examples("  would not: ", near, out);
	(void)fflush(out);
	if (!asks || !talk_confirm(stderr, "Keep this rule?"))
		return CODE_DONE;
	if (!config_file_rules_keep(rule->agent, rule->folder, rule->kind, rule->rule, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return CODE_DONE;
}

static void subjects_fini(struct subjects *subjects)
{
	for (size_t i = 0; i < subjects->count; i++) {
		free(subjects->items[i].agent);
		free(subjects->items[i].folder);
		free(subjects->items[i].text);
		value_free(subjects->items[i].rules);
	}
	free(subjects->items);
}

static bool gather(int64_t since_ms, struct subjects *subjects, struct rules *kept,
		   struct err *err)
{
	struct journal *journal = NULL;
	const bool fine = config_file_rules_read(kept, err) &&
			  journal_open_default(&journal, err) &&
			  asked_read(journal, since_ms, take_question, subjects, err);

	journal_close(journal);
	return fine;
}

static int suggest_run(const struct options *options, FILE *out)
{
	const bool json = options_given(options, "json");
	const bool asks = !json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	const char *since = options_text(options, "since");
	int64_t since_ms = clock_wall_ms() - (int64_t)SUGGEST_DAYS * MS_PER_DAY;
	struct rules kept = {0}, proposed = {0};
	struct subjects subjects = {0};
	struct err err = {0};
	int code = CODE_DONE;

	if (since != NULL && !verb_read_since(since, &since_ms, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (gather(since_ms, &subjects, &kept, &err))
		propose(&subjects, &kept, &proposed);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE && proposed.count == 0 && !json)
		(void)fprintf(out,
			      "Nothing was allowed %d times and never refused, but for what has "
			      "a rule already.\n",
			      ALLOWED_LEAST);
	for (size_t i = 0; code == CODE_DONE && i < proposed.count; i++)
		code = offer(&subjects, &proposed.items[i], json, asks, out);
	rules_fini(&proposed);
	rules_fini(&kept);
	subjects_fini(&subjects);
	return code;
}

static const char suggest_help[] =
	"Propose rules from your answers: what you have allowed three times and never refused,\n"
	"with what the rule would have let in, and the nearest that it would not. At a terminal\n"
	"each one is kept after a yes; else they are only printed.";

const struct verb verb_policy_suggest = {
	.name = "policy suggest",
	.summary = "propose rules for what you allow each time",
	.arguments = "",
	.help = suggest_help,
	.example = "  glovebox policy suggest --since 2w",
	.options = suggest_options,
	.folds = true,
	.run = suggest_run,
};
