/* invoke: finds what is called, has commands in it run, and gets prompts of servers. */

#include "front/extend/invoke.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "extend/extension.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OUTPUT_MAX = 8 << 10, COLUMN = 20, NAME_BYTES_MAX = 192 };

static const double run_timeout_s = 10;

static const char skill_prefix[] = "skill:";

/* For command_expand: run COMMAND as the agent's bash would. */
static bool run_command(void *context, const char *command, struct buf *out, struct err *err)
{
	static const struct text_limits limits = {.bytes = OUTPUT_MAX};
	struct talk *talk = context;
	auto_value struct value *arguments = value_new_object();
	const struct request request = {
		.tool = "bash",
		.arguments = arguments,
		.quiet = true, /* a command that somebody would have to allow is denied */
		.timeout_s = run_timeout_s,
	};
	struct tool_result result;
	struct text_cut cut;
	bool fine;

	value_set_text(arguments, "command", command);
	tool_result_init(&result);
	session_call(talk_session(talk), &request, &result);
	fine = result.status == RESULT_DONE && result.exit_code == 0;
	/* Behind the output the text has standard error, and how the command ended. */
	if (fine)
		(void)text_shorten(str_part(buf_str(&result.text), 0,
					    (size_t)value_integer(value_member(
						    result.details, "stdout_bytes"))),
				   &limits, out, &cut);
	else
		(void)err_set(err, ECANCELED,
			      "!`%.200s` failed, and nothing was sent: %.1000s", command,
			      result.text.data);
	tool_result_fini(&result);
	return fine;
}

static enum invoked invoke_skill(const struct extension *extension, const char *name,
				 struct str arguments, struct buf *prompt)
{
	const struct skill *skill = skills_find(extension_skills(extension), name);

	if (skill == NULL) {
		(void)verb_complain(CODE_FAILED,
				    "there is no skill %.64s; /skills lists them", name);
		return INVOKED_FAILED;
	}
	(void)buf_addf(prompt, "Follow this skill, %s:\n\n", skill->name);
	skill_print(skill, prompt);
	if (arguments.size > 0) {
		(void)buf_adds(prompt, "\n");
		(void)buf_addstr(prompt, arguments);
	}
	return INVOKED;
}

/* The prompt of a server that is called "SERVER:name"; false: there is none. */
static bool find_prompt(const struct setup *setup, const char *called,
			struct remotes_prompt *prompt)
{
	const struct remotes *remotes = setup->servers.remotes;
	char name[NAME_BYTES_MAX];

	for (size_t i = 0; remotes != NULL && remotes_prompt(remotes, i, prompt); i++) {
		(void)snprintf(name, sizeof(name), "%s:%s", prompt->server, prompt->name);
		if (strcmp(name, called) == 0)
			return true;
	}
	return false;
}

/*
 * The words of REST as the arguments of PROMPT, in their order; the last one gets all that is
 * left. NULL: a complaint has been printed, because one that must be given is not.
 */
static struct value *arguments_of(const struct remotes_prompt *prompt, struct str rest)
{
	const size_t count = value_count(prompt->arguments);
	struct value *arguments = value_new_object();

	for (size_t i = 0; i < count; i++) {
		const struct value *row = value_item(prompt->arguments, i);
		const char *name = value_text(value_member(row, "name"));
		struct str word = {0};

		if (i + 1 == count)
			word = str_trim(rest);
		else
			(void)str_next_word(&rest, &word);
		if (name != NULL && word.size > 0) {
			value_set_str(arguments, name, word);
		} else if (value_is_true(value_member(row, "required"))) {
			(void)verb_complain(CODE_FAILED, "/%s:%s needs \"%.100s\"",
					    prompt->server, prompt->name,
					    name != NULL ? name : "");
			value_free(arguments);
			return NULL;
		}
	}
	return arguments;
}

static enum invoked invoke_prompt(struct talk *talk, const struct remotes_prompt *called,
				  struct str rest, struct buf *prompt)
{
	auto_value struct value *arguments = value_new_object();
	struct value *given = arguments_of(called, rest);
	const struct request request = {
		.tool = called->name,
		.made = remotes_prompt_tool(talk_setup(talk)->servers.remotes),
		.arguments = arguments,
		.by_front = true,
		.unheard = true,
	};
	struct tool_result result;
	bool fine;

	if (given == NULL)
		return INVOKED_FAILED;
	value_set_text(arguments, "server", called->server);
	value_set_text(arguments, "name", called->name);
	value_set(arguments, "arguments", given);
	tool_result_init(&result);
	session_call(talk_session(talk), &request, &result);
	fine = result.status == RESULT_DONE && result.text.size > 0;
	if (fine)
		(void)buf_addstr(prompt, buf_str(&result.text));
	else
		(void)verb_complain(CODE_FAILED, "/%s:%s: %s", called->server, called->name,
				    result.text.size > 0 ? result.text.data
							 : "the server gives no text");
	tool_result_fini(&result);
	return fine ? INVOKED : INVOKED_FAILED;
}

/* Expand COMMAND with the words of REST. */
static enum invoked invoke_command(struct talk *talk, const struct command *command,
				   struct str rest, struct buf *prompt)
{
	struct err err = {0};

	if (command_expand(command, rest, run_command, talk, prompt, &err))
		return INVOKED;
	(void)verb_complain(CODE_FAILED, "/%s: %s", command->name, err.text);
	return INVOKED_FAILED;
}

enum invoked invoke(struct talk *talk, const char *text, struct buf *prompt)
{
	const struct extension *extension = talk_setup(talk)->extension;
	const struct command *command = NULL;
	struct remotes_prompt called;
	struct str rest = str_of(text), word;

	if (!str_starts(rest, STR("/")))
		return INVOKED_NOTHING;
	word = str_part(rest, 1, strcspn(text, " \t\n") - 1);
	if (word.size == 0 || word.size > NAME_BYTES_MAX)
		return INVOKED_NOTHING;
	rest = str_trim(str_part(rest, 1 + word.size, SIZE_MAX));
	auto_free char *name = memory_copy_str(word);
	if (extension != NULL && str_starts(word, STR(skill_prefix)))
		return invoke_skill(extension, name + strlen(skill_prefix), rest, prompt);
	if (extension != NULL)
		command = commands_find(extension_commands(extension), name);
	if (command != NULL)
		return invoke_command(talk, command, rest, prompt);
	return find_prompt(talk_setup(talk), name, &called)
		       ? invoke_prompt(talk, &called, rest, prompt)
		       : INVOKED_NOTHING;
}

/* invoke_each for the prompts of servers. */
static void each_prompt(const struct setup *setup,
			void (*each)(void *context, const char *name,
				     const char *description),
			void *context)
{
	const struct remotes *remotes = setup->servers.remotes;
	struct remotes_prompt prompt;
	char name[NAME_BYTES_MAX];

	for (size_t i = 0; remotes != NULL && remotes_prompt(remotes, i, &prompt); i++) {
		(void)snprintf(name, sizeof(name), "%s:%s", prompt.server, prompt.name);
		each(context, name, prompt.description);
	}
}

void invoke_each(const struct setup *setup,
		 void (*each)(void *context, const char *name, const char *description),
		 void *context)
{
	const struct extension *extension = setup->extension;

	each_prompt(setup, each, context);
	if (extension == NULL)
		return;
	const struct commands *commands = extension_commands(extension);
	const struct skills *skills = extension_skills(extension);
	for (size_t i = 0; i < commands->count; i++) {
		if (commands->items[i].problem == NULL)
			each(context, commands->items[i].name,
			     commands->items[i].description);
	}
	for (size_t i = 0; i < skills->count; i++) {
		char name[NAME_BYTES_MAX];

		if (skills->items[i].problem != NULL)
			continue;
		(void)snprintf(name, sizeof(name), "%s%s", skill_prefix,
			       skills->items[i].name);
		each(context, name, skills->items[i].description);
	}
}

void invoke_list_skills(const struct setup *setup, struct buf *out)
{
	const struct extension *extension = setup->extension;
	const struct skills *skills =
		extension != NULL ? extension_skills(extension) : NULL;

	for (size_t i = 0; skills != NULL && i < skills->count; i++) {
		const struct skill *skill = &skills->items[i];

		(void)buf_adds(out, "  ");
		text_add_name(out, str_of(skill->name));
		(void)buf_addf(out, "%*s",
			       strlen(skill->name) < COLUMN
				       ? (int)(COLUMN - strlen(skill->name))
				       : 1,
			       "");
		if (skill->problem != NULL)
			(void)buf_adds(out, "left out: ");
		text_add_name(out, str_of(skill->problem != NULL ? skill->problem
								 : skill->description));
		(void)buf_addf(out, "%s (", skill->hidden ? "; only you call it" : "");
		text_add_name(out, str_of(skill->folder));
		(void)buf_adds(out, ")\n");
	}
	if (skills == NULL || skills->count == 0)
		(void)buf_adds(out, "There are no skills.\n");
}
