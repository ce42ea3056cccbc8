/*
 * command_decide: the verdict on a command: a rule that denies wins, then one that has a
 * person asked, then, where only listed commands run, the list; what runs in the
 * command's place, and the sentence by which a model finds a form that is allowed.
 */
#include "policy/command.h"
#include "policy/command_code.h"
#include "policy/command_harm.h"
#include "policy/command_seen.h"
#include "policy/commands.h"
#include "policy/policy.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"

#include <limits.h>
#include <string.h>

enum {
	QUOTED_MAX = 120,  /* bytes of a command or word quoted */
	LISTED_MAX = 16,   /* forms of one program, or programs, in one sentence */
	NEAREST_MAX = 512, /* bytes of the nearest form */
};

/* One command of a text, judged. */
struct judged {
	const struct policy *policy;
	const struct policy_request *request;
	const char *const *argv;
	const struct command_rule *rule; /* that fits, or the nearest */
	struct command_match match;
	/* One for each list that has to hold: its rule, and where that stands. */
	const struct command_rule **rules;
	struct command_match *matches;
	size_t list_count;
	struct verdict *verdict;
};

/* The words of the rules that hold, and of the table of what destroys much, on what is seen. */
struct look {
	const struct policy *policy;
	const struct command_rule *denied, *asked; /* the first that holds; or NULL */
	const struct command_harm *harm;           /* the first; or NULL */
	const struct command_harm *harm_asked; /* the first to be asked about; or NULL */
	struct buf command; /* the first that is denied, else asked for, as it is written */
};

/* TEXT in quotes, cut, as it may stand in a sentence. */
static void add_quoted(struct buf *out, struct str text)
{
	size_t size = text.size;

	if (size > QUOTED_MAX)
		size = text_character_border(text, QUOTED_MAX);
	(void)buf_adds(out, "\"");
	text_add_name(out, str_part(text, 0, size));
	(void)buf_adds(out, size < text.size ? "…\"" : "\"");
}

static void add_argv(struct buf *out, const char *const *argv)
{
	struct buf text;

	buf_init(&text, COMMAND_TEXT_MAX);
	commands_print(argv, &text);
	add_quoted(out, buf_str(&text));
	buf_fini(&text);
}

static void add_remedy(struct buf *out, const struct policy *policy)
{
	(void)buf_addf(out,
		       "or ask the user to add a rule to agents.%.64s.commands in the "
		       "configuration.",
		       policy->name);
}

static bool deny(const struct policy *policy, struct verdict *verdict, struct buf *because)
{
	verdict->answer = VERDICT_DENY;
	verdict_end(verdict, because);
	verdict_set_rule(verdict, policy, "commands");
	buf_fini(because);
	return false;
}

static void keep_command(struct look *look, const struct shell_command *command)
{
	buf_clear(&look->command);
	for (size_t i = 0; i < command->count && look->command.size <= QUOTED_MAX; i++) {
		(void)buf_adds(&look->command, i ? " " : "");
		(void)buf_addstr(&look->command, command->words[i]);
	}
}

/* For command_seen_*: ends at the first that is denied. */
static bool look_at(void *context, const struct command_seen *seen)
{
	struct look *look = context;
	const struct commands *commands = look->policy->commands;
	const struct command_harm *harm = command_harm_find(seen, look->policy);

	look->denied = commands_holding(commands, true, seen->command);
	if (look->denied) {
		keep_command(look, seen->command);
		return false;
	}
	if (!look->asked) {
		look->asked = commands_holding(commands, false, seen->command);
		if (look->asked)
			keep_command(look, seen->command);
	}
	if (!look->harm)
		look->harm = harm;
	if (harm && harm->asks && !look->harm_asked &&
	    !commands_named(commands, seen->command))
		look->harm_asked = harm;
	return true;
}

static void look_init(struct look *look, const struct policy *policy)
{
	*look = (struct look){.policy = policy};
	buf_init(&look->command, COMMAND_TEXT_MAX + 1);
}

static void look_through(struct look *look, const struct policy_request *request)
{
	const struct command_visit visit = {look_at, look};
	const char *folder = request->folder ? request->folder : look->policy->workspace;

	if (request->argv)
		command_seen_argv(request->argv, folder, &visit);
	else
		command_seen_text(request->command, folder, &visit);
}

/* A rule of `deny` or `ask` holds: for the model, and for the person who is asked. */
static void tell_rule(const struct look *look, struct verdict *verdict)
{
	const struct policy *policy = look->policy;
	const struct command_rule *rule = look->denied ? look->denied : look->asked;
	const char *key = look->denied ? "commands.deny" : "commands.ask";
	struct buf because;

	verdict_begin(&because);
	(void)buf_adds(&because, "Not run: ");
	add_quoted(&because, buf_str(&look->command));
	(void)buf_addf(&because, " is what the rule \"%.64s\" of agents.%.64s.%s %s. ",
		       rule->name, policy->name, key,
		       look->denied ? "denies" : "leaves to a person's yes");
	(void)buf_addf(&because,
		       "Do without it%s, or ask the user to run it, or to take that rule out of the "
		       "configuration.",
		       look->denied ? ", by another name as well" : "");
	verdict_end(verdict, &because);
	verdict_set_rule(verdict, policy, key);
	(void)snprintf(verdict->by, sizeof(verdict->by), "%s", rule->name);
	buf_fini(&because);
}

/* A command that destroys much runs, unless there is a person who says no. */
static void tell_harm(const struct look *look, struct verdict *verdict)
{
	const struct command_harm *harm = look->harm_asked;
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because,
		       "\"%s\" %s, and a person is asked where one can be. %s To let it run without "
		       "a question, the user adds a rule to agents.%.64s.commands.allow.",
		       harm->name, harm->does, harm->next, look->policy->name);
	verdict_end(verdict, &because);
	verdict_set_rule(verdict, look->policy, "commands");
	(void)snprintf(verdict->by, sizeof(verdict->by), "%s", harm->name);
	buf_fini(&because);
	verdict->answer = VERDICT_ASK;
	verdict->or_runs = true;
}

static bool deny_text(const struct policy *policy, const struct command *command,
		      struct str text, struct verdict *verdict)
{
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because,
		       "Not run: agent \"%s\" runs listed commands only, without a shell, "
		       "and this text is more than plain commands: %s",
		       policy->name, command->reason);
	if (command->at < text.size) {
		(void)buf_addf(&because, " at byte %zu, ", command->at + 1);
		add_quoted(&because, str_part(text, command->at, text.size));
	}
	(void)buf_addf(&because, ". %s", command->remedy);
	return deny(policy, verdict, &because);
}

static void add_once(struct buf *list, const char *name, size_t *count)
{
	struct str rest = buf_str(list);
	size_t size = strlen(name);

	for (size_t at = 0; at + size <= rest.size; at++) {
		bool begins = at == 0 || (at > 1 && rest.data[at - 1] == ' ' &&
					  rest.data[at - 2] == ',');

		if (begins && memcmp(rest.data + at, name, size) == 0 &&
		    (at + size == rest.size || rest.data[at + size] == ','))
			return;
	}
	if ((*count)++ < LISTED_MAX)
		(void)buf_addf(list, "%s%s", rest.size ? ", " : "", name);
}

/* The forms of PROGRAM; NULL: every program. */
static void add_forms(struct buf *out, const struct commands *commands, const char *program)
{
	size_t count = 0;
	struct buf list;

	buf_init(&list, NEAREST_MAX);
	for (size_t i = 0; i < commands->allow.count; i++) {
		const struct command_rule *rule = &commands->allow.items[i];
		struct str rest = rule->programs, one;

		if (rule->runs_code && !commands->runs_code)
			continue;
		if (program && command_rule_is_of(rule, program))
			add_once(&list, rule->name, &count);
		while (!program && command_next_choice(&rest, &one)) {
			auto_free char *name = memory_copy_str(one);

			add_once(&list, name, &count);
		}
	}
	(void)buf_addstr(out, buf_str(&list));
	if (count > LISTED_MAX)
		(void)buf_addf(out, " and %zu more", count - LISTED_MAX);
	if (count == 0)
		(void)buf_adds(out, "none");
	buf_fini(&list);
}

/* No rule is of that program. */
static bool deny_program(const struct judged *judged)
{
	const struct policy *policy = judged->policy;
	const char *program = judged->argv[0];
	struct buf because;

	verdict_begin(&because);
	(void)buf_adds(&because, "Not run: the program ");
	add_quoted(&because, str_of(program));
	(void)buf_addf(&because, " is not one that agent \"%s\" may run; there are ",
		       policy->name);
	add_forms(&because, judged->match.list, NULL);
	if (strcmp(program, "cd") == 0)
		(void)buf_adds(&because, ". Name the folder in the argument workdir, ");
	else if (strcmp(program, "apply_patch") == 0 || strcmp(program, "applypatch") == 0)
		(void)buf_adds(&because, ". Give the patch to the tool apply_patch, ");
	else
		(void)buf_adds(&because, ". Use one of these, ");
	add_remedy(&because, policy);
	return deny(policy, judged->verdict, &because);
}

/* Add what the word is, and the word of a rule that would grant it. */
static void add_code(struct buf *out, const struct command_code *code)
{
	(void)buf_addf(out, " (%s: %s); that would be ",
		       code->kind == CODE_SCRIPT ? "the script" : code->name, code->reason);
	command_code_word(code, out);
}

/* Rules are of that program, but none has this form. */
static bool deny_form(const struct judged *judged)
{
	const struct command_match *match = &judged->match;
	const struct policy *policy = judged->policy;
	const char *word = judged->argv[match->word];
	struct buf because, nearest;

	verdict_begin(&because);
	buf_init(&nearest, NEAREST_MAX);
	(void)buf_adds(&because, "Not run: ");
	add_argv(&because, judged->argv);
	(void)buf_addf(&because, " is not a form that agent \"%s\" may run. ", policy->name);
	if (match->fit == FIT_OTHER_SUBCOMMAND) {
		(void)buf_adds(&because, "Listed are ");
		add_forms(&because, match->list, judged->argv[0]);
		(void)buf_adds(&because, ". ");
	} else {
		(void)buf_addf(&because, "The rule \"%s\"%s%s%s does not take it: ",
			       judged->rule->name, judged->rule->preset ? " (preset " : "",
			       judged->rule->preset ? judged->rule->preset : "",
			       judged->rule->preset ? ")" : "");
		if (word != NULL)
			add_quoted(&because, str_of(word));
		else
			(void)buf_adds(&because, "it");
		(void)buf_addf(&because, " %s", command_fit_clause(match->fit));
		if (match->code != NULL)
			add_code(&because, match->code);
		(void)buf_adds(&because, ". ");
	}
	if (match->fit != FIT_RUNS_CODE)
		commands_nearest(judged->rule, judged->argv, &nearest);
	if (nearest.size > 0)
		(void)buf_addf(&because, "The nearest that is allowed: %s . Use that, ",
			       nearest.data);
	else
		(void)buf_adds(&because, "Do without it, ");
	add_remedy(&because, policy);
	buf_fini(&nearest);
	return deny(policy, judged->verdict, &because);
}

/* Words that the rule calls paths are judged as paths that are read. */
static bool judge_paths(const struct judged *judged)
{
	const struct policy_request *request = judged->request;
	const char *folder = request->folder ? request->folder : judged->policy->workspace;

	for (size_t i = 0; i < judged->match.path_count; i++) {
		const char *given = judged->match.paths[i];
		struct buf path, because;
		struct verdict why;
		bool fine;

		buf_init(&path, PATH_MAX);
		fine = path_normal(folder, given, &path);
		if (fine) {
			policy_judge_path(judged->policy, path.data, false, true, &why);
			fine = why.answer == VERDICT_ALLOW;
		} else {
			why = (struct verdict){.because =
						       "it leads above /, or is too long"};
		}
		buf_fini(&path);
		if (fine)
			continue;
		verdict_begin(&because);
		(void)buf_adds(&because, "Not run: ");
		add_quoted(&because, str_of(given));
		(void)buf_addf(&because, " is no path that agent \"%s\" may read: %s.",
			       judged->policy->name, why.because);
		(void)deny(judged->policy, judged->verdict, &because);
		if (why.rule[0])
			memcpy(judged->verdict->rule, why.rule, sizeof(why.rule));
		return false;
	}
	return true;
}

static void append_words(struct value *argv, const struct command_insert *words)
{
	for (size_t i = 0; i < words->count; i++)
		value_append(argv, value_new_text(words->items[i]));
}

static bool same_words(const struct command_insert *a, const struct command_insert *b)
{
	bool same = a->count == b->count;

	for (size_t i = 0; same && i < a->count; i++)
		same = strcmp(a->items[i], b->items[i]) == 0;
	return same;
}

/*
 * Insert the words that the rule of each list adds behind the first AT words of the
 * command; equal words are inserted once.
 */
static void insert_words(const struct judged *judged, size_t at, struct value *argv)
{
	for (size_t i = 0; i < judged->list_count; i++) {
		const struct command_rule *rule = judged->rules[i];
		bool global = at == 1, behind = at == judged->matches[i].subcommand;

		for (size_t j = 0; j < i; j++) {
			if (same_words(&rule->insert_global,
				       &judged->rules[j]->insert_global))
				global = false;
			if (at == judged->matches[j].subcommand &&
			    same_words(&rule->insert, &judged->rules[j]->insert))
				behind = false;
		}
		if (global)
			append_words(argv, &rule->insert_global);
		if (behind)
			append_words(argv, &rule->insert);
	}
}

/* ARGV with what its rules put in. */
static struct value *argv_of(const struct judged *judged)
{
	struct value *argv = value_new_array();
	size_t at = 0;

	while (judged->argv[at] != NULL) {
		value_append(argv, value_new_text(judged->argv[at++]));
		insert_words(judged, at, argv);
	}
	return argv;
}

static size_t lists_of(const struct policy *policy)
{
	size_t count = 0;

	for (const struct commands *at = policy->commands; at; at = at->within)
		count += !at->box;
	return count;
}

/* Does every list take ARGV, with the paths that each finds in it? */
static bool judge_lists(struct judged *judged)
{
	for (const struct commands *at = judged->policy->commands; at; at = at->within) {
		if (at->box)
			continue;
		judged->match.paths = judged->matches[0].paths;
		judged->rule = commands_find(at, judged->argv, &judged->match);
		if (!judged->rule)
			return deny_program(judged);
		if (judged->match.fit != FIT_MATCH)
			return deny_form(judged);
		if (!judge_paths(judged))
			return false;
		judged->rules[judged->list_count] = judged->rule;
		judged->matches[judged->list_count].subcommand = judged->match.subcommand;
		judged->list_count++;
	}
	return true;
}

static bool is_asked(const struct judged *judged)
{
	struct look look;
	bool asked;

	look_init(&look, judged->policy);
	look_through(&look,
		     &(const struct policy_request){.argv = judged->argv,
						    .folder = judged->request->folder});
	asked = look.asked != NULL;
	buf_fini(&look.command);
	return asked;
}

/* Judge ARGV, joined to what is before it by JOIN, and add what runs to the plan. */
static bool judge_argv(struct judged *judged, const char *join, struct value *plan)
{
	size_t count = 0, lists = lists_of(judged->policy);

	while (judged->argv[count] != NULL)
		count++;
	auto_free const char **paths = memory_array(count + 1, sizeof(*paths));
	auto_free const struct command_rule **rules = memory_array(lists, sizeof(*rules));
	auto_free struct command_match *matches = memory_array(lists, sizeof(*matches));

	matches[0].paths = paths;
	judged->rules = rules;
	judged->matches = matches;
	judged->list_count = 0;
	/* A person will see it: no rule of the list has to let it run, and none puts words in. */
	if (!is_asked(judged) && !judge_lists(judged))
		return false;
	struct value *part = value_new_object();
	value_set_text(part, "join", join);
	value_set(part, "argv", argv_of(judged));
	value_append(plan, part);
	return true;
}

static bool judge_text(struct judged *judged, struct value *plan)
{
	struct command command;
	bool fine = command_parse(&command, judged->request->command);

	if (!fine)
		(void)deny_text(judged->policy, &command, judged->request->command,
				judged->verdict);
	for (size_t i = 0; fine && i < command.count; i++) {
		judged->argv = command.parts[i].argv;
		fine = judge_argv(judged, command_joins[command.parts[i].join], plan);
	}
	command_fini(&command);
	return fine;
}

/* A tool that runs what it chooses itself (a runner of tests): code of the project. */
static bool judge_tool(const struct judged *judged)
{
	const struct commands *list = judged->policy->commands;
	struct buf because;

	while (list && list->runs_code) /* a box has it */
		list = list->within;
	if (!list)
		return true;
	verdict_begin(&because);
	(void)buf_addf(&because,
		       "Not run: %.64s runs code of the project, which the policy of agent "
		       "\"%s\" leaves out; only the user can change runs_code in "
		       "agents.%.64s.commands.",
		       judged->request->tool, judged->policy->name, judged->policy->name);
	return deny(judged->policy, judged->verdict, &because);
}

bool policy_lists_commands(const struct policy *policy)
{
	return commands_listed(policy->commands);
}

/* Where only listed commands run: does REQUEST, and what takes its place? */
static bool decide_listed(const struct policy *policy,
			  const struct policy_request *request, struct verdict *verdict)
{
	struct judged judged = {.policy = policy, .request = request, .verdict = verdict};
	auto_value struct value *plan = value_new_array();
	bool fine;

	if (request->argv) {
		judged.argv = request->argv;
		fine = judge_argv(&judged, command_joins[COMMAND_THEN], plan);
	} else if (request->command.data) {
		fine = judge_text(&judged, plan);
	} else {
		fine = judge_tool(&judged);
	}
	if (fine && value_count(plan) > 0)
		verdict->plan = value_ref(plan);
	/* A person can see and judge the command; blocked paths stay so, whoever says yes. */
	if (!fine && (request->argv || request->command.data) &&
	    str_ends(str_of(verdict->rule), STR(".commands")) &&
	    policy_asks(policy, "commands"))
		verdict->answer = VERDICT_ASK;
	return fine;
}

static void decide_seen(const struct look *look, const struct policy_request *request,
			struct verdict *verdict)
{
	const bool listed = policy_lists_commands(look->policy);

	if (look->denied) {
		tell_rule(look, verdict);
		return;
	}
	if (listed && !decide_listed(look->policy, request, verdict))
		return;
	verdict->harm = look->harm_asked ? look->harm_asked : look->harm;
	if (look->asked) {
		tell_rule(look, verdict);
		verdict->answer = VERDICT_ASK;
	} else if (look->harm_asked && !listed) {
		tell_harm(look, verdict);
	} else {
		verdict->answer = VERDICT_ALLOW;
	}
}

void policy_decide_command(const struct policy *policy,
			   const struct policy_request *request, struct verdict *verdict)
{
	struct look look;

	*verdict = (struct verdict){.answer = VERDICT_DENY};
	if (!(request->effects & POLICY_RUNS)) {
		verdict->answer = VERDICT_ALLOW;
		return;
	}
	if (!request->argv && !request->command.data) {
		if (!policy_lists_commands(policy) ||
		    decide_listed(policy, request, verdict))
			verdict->answer = VERDICT_ALLOW;
		return;
	}
	look_init(&look, policy);
	look_through(&look, request);
	decide_seen(&look, request, verdict);
	buf_fini(&look.command);
}
