/*
 * gate: any text is literal or has a place and a reason; what is literal, written again with
 * every argument in quotes, is the same. What every preset together allows runs with all of its
 * words, in their order, and nothing that is not literal is allowed. A rule that denies holds for
 * every command of its program that the literal reading knows.
 */
#include "policy/command.h"

#include "base/buf.h"
#include "base/value.h"
#include "policy/commands.h"
#include "policy/config.h"
#include "policy/policy.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A quote becomes four bytes, an argument two more and a blank. */
enum { GROWTH = 8 };

static void add_quoted(struct buf *out, const char *argument)
{
	(void)buf_addc(out, '\'');
	for (; *argument != '\0'; argument++) {
		if (*argument == '\'')
			(void)buf_adds(out, "'\\''");
		else
			(void)buf_addc(out, *argument);
	}
	(void)buf_adds(out, "' ");
}

static void check_again(const struct command *command, size_t size)
{
	struct command again;
	struct buf text;

	buf_init(&text, GROWTH * (size + 1));
	for (size_t i = 0; i < command->count; i++) {
		const struct command_part *part = &command->parts[i];

		if (i > 0)
			(void)buf_adds(&text, command_joins[part->join]);
		for (size_t j = 0; j < part->argc; j++)
			add_quoted(&text, part->argv[j]);
	}
	assert(!text.overflowed);
	if (text.size <= COMMAND_TEXT_MAX) {
		assert(command_parse(&again, buf_str(&text)));
		assert(again.count == command->count);
		for (size_t i = 0; i < again.count; i++) {
			assert(again.parts[i].argc == command->parts[i].argc);
			assert(i == 0 || again.parts[i].join == command->parts[i].join);
			for (size_t j = 0; j <= again.parts[i].argc; j++) {
				const char *one = again.parts[i].argv[j];
				const char *other = command->parts[i].argv[j];

				assert(one == other || strcmp(one, other) == 0);
			}
		}
		command_fini(&again);
	}
	buf_fini(&text);
}

/* Are ARGV's words in LIST, in their order, the first one first? */
static bool runs_all(const char *const *argv, const struct value *list)
{
	size_t at = 0;

	for (size_t i = 0; i < value_count(list) && argv[at] != NULL; i++) {
		if (strcmp(value_text(value_item(list, i)), argv[at]) == 0)
			at++;
		else if (i == 0)
			return false;
	}
	return argv[at] == NULL;
}

static struct policy *policy_of(const char *text)
{
	auto_config struct config *config = NULL;
	struct policy *policy = NULL;

	assert(config_parse(str_of(text), "fuzz", &config, NULL));
	assert(config_policy(config, NULL, NULL, "/ws", &policy, NULL));
	return policy;
}

/* In a box, with rules that deny and ask. */
static void judge_box(const struct command *command, struct str text)
{
	static struct policy *policy; /* made once */
	const struct policy_request request = {.effects = POLICY_RUNS, .command = text};
	struct verdict verdict;
	bool denied = false;

	if (policy == NULL)
		policy = policy_of(
			"{\"agents\": {\"default\": {\"commands\": {"
			"\"deny\": [{\"program\": \"a,rm\"}], \"ask\": [{\"program\": "
			"\"git\", \"subcommand\": \"push\", \"options\": [\"-f\", "
			"\"--force=number\"], \"operands\": [\"path+\", \"b,c\"]}]}}}}");
	commands_decide(policy, &request, &verdict);
	assert(verdict.plan == NULL);
	assert((verdict.answer == VERDICT_ALLOW) == (verdict.because[0] == '\0'));
	assert((verdict.answer == VERDICT_ALLOW) == (verdict.by[0] == '\0'));
	assert(verdict.harm != NULL || !verdict.or_runs);
	for (size_t i = 0; i < command->count; i++)
		denied = denied || strcmp(command->parts[i].argv[0], "rm") == 0 ||
			 strcmp(command->parts[i].argv[0], "a") == 0;
	assert(!denied || verdict.answer == VERDICT_DENY);
}

static void judge(const struct command *command, struct str text)
{
	static struct policy *policy; /* of all presets: made once */
	const struct policy_request request = {.effects = POLICY_RUNS, .command = text};
	struct verdict verdict;

	judge_box(command, text);
	if (policy == NULL)
		policy = policy_of("{\"agents\": {\"default\": {\"commands\": \"list\"}}}");
	commands_decide(policy, &request, &verdict);
	assert((verdict.answer == VERDICT_ALLOW) == (verdict.because[0] == '\0'));
	assert((verdict.answer == VERDICT_ALLOW) == (verdict.plan != NULL));
	if (verdict.plan != NULL) {
		assert(command->literal && value_count(verdict.plan) == command->count);
		for (size_t i = 0; i < command->count; i++)
			assert(runs_all(command->parts[i].argv,
					value_member(value_item(verdict.plan, i), "argv")));
	}
	value_free(verdict.plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	struct command command;

	if (command_parse(&command, text)) {
		assert(command.count > 0 && command.count <= COMMAND_PARTS_MAX);
		check_again(&command, size);
	} else {
		assert(command.at <= size && command.reason && command.remedy);
		assert(command.count == 0);
	}
	if (size > 0)
		judge(&command, text);
	command_fini(&command);
	return 0;
}
