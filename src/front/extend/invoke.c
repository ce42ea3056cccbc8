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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OUTPUT_MAX = 8 << 10,
	COLUMN = 20,
	NAME_BYTES_MAX = 192,
	PROMPT_MAX = 4 << 20, /* as of a prompt of `run` */
};

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

/* The name of the thing that is called, as a person calls it. */
static char *called_name(const char *prefix, const char *name)
{
	char text[NAME_BYTES_MAX + sizeof(skill_prefix) + 1];

	(void)snprintf(text, sizeof(text), "/%s%s", prefix, name);
	return memory_copy(text);
}

/* Tell the model, so that it plans without the tools that it has not. */
static void tell_allowed(struct invocation *invocation)
{
	if (invocation->allowed.names == NULL)
		return;
	(void)buf_end_line(&invocation->prompt);
	(void)buf_addf(&invocation->prompt,
		       "\nUntil this turn ends, %s lets you use only these tools: ",
		       invocation->who);
	allowed_print(&invocation->allowed, &invocation->prompt);
	(void)buf_adds(&invocation->prompt, ".\n");
}

static enum invoked invoke_skill(const struct extension *extension, const char *name,
				 struct str arguments, struct invocation *invocation)
{
	const struct skill *skill = skills_find(extension_skills(extension), name);
	struct buf *prompt = &invocation->prompt;

	if (skill == NULL) {
		(void)verb_complain(CODE_FAILED,
				    "there is no skill %.64s; /skills lists them", name);
		return INVOKED_FAILED;
	}
	invocation->who = called_name(skill_prefix, skill->name);
	allowed_take(&invocation->allowed, skill->matter);
	(void)buf_addf(prompt, "Follow this skill, %s:\n\n", skill->name);
	skill_print(skill, prompt);
	if (arguments.size > 0) {
		(void)buf_adds(prompt, "\n");
		(void)buf_addstr(prompt, arguments);
	}
	tell_allowed(invocation);
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

/* Copy the text of the key NAME. False: it is there, and is no text. */
static bool take_key(const struct command *command, const char *name, char **text,
		     struct err *err)
{
	const struct value *value = value_member(command->matter, name);

	if (value == NULL || value_kind(value) == VALUE_NULL)
		return true;
	*text = value_text(value) != NULL ? memory_copy(value_text(value)) : NULL;
	return *text != NULL || err_set(err, EINVAL, "the key \"%s\" is no text", name);
}

/* Take the keys of the front matter that hold for the turn. NOW: the mode of the person. */
static bool take_matter(const struct command *command, enum policy_mode now,
			struct invocation *invocation, struct err *err)
{
	auto_free char *mode = NULL;

	allowed_take(&invocation->allowed, command->matter);
	if (!take_key(command, "agent", &invocation->agent, err) ||
	    !take_key(command, "model", &invocation->model, err) ||
	    !take_key(command, "mode", &mode, err))
		return false;
	if (mode == NULL)
		return true;
	if (!policy_mode_parse(mode, &invocation->mode))
		return err_set(err, EINVAL, "there is no mode %.40s; the modes are: %s",
			       mode, POLICY_MODES);
	invocation->has_mode = true;
	if (!command->own)
		invocation->mode = policy_mode_stricter(now, invocation->mode);
	return true;
}

static enum invoked invoke_command(struct talk *talk, const struct command *command,
				   struct str arguments, struct invocation *invocation)
{
	struct err err = {0};

	invocation->who = called_name("", command->name);
	if (!take_matter(command, talk_setup(talk)->mode, invocation, &err) ||
	    !command_expand(command, arguments, run_command, talk, &invocation->prompt,
			    &err)) {
		(void)verb_complain(CODE_FAILED, "/%s: %s", command->name, err.text);
		return INVOKED_FAILED;
	}
	tell_allowed(invocation);
	return INVOKED;
}

enum invoked invoke(struct talk *talk, const char *text, struct invocation *invocation)
{
	const struct extension *extension = talk_setup(talk)->extension;
	const struct command *command = NULL;
	struct remotes_prompt called;
	struct str rest = str_of(text), word;

	*invocation = (struct invocation){0};
	buf_init(&invocation->prompt, PROMPT_MAX);
	if (!str_starts(rest, STR("/")))
		return INVOKED_NOTHING;
	word = str_part(rest, 1, strcspn(text, " \t\n") - 1);
	if (word.size == 0 || word.size > NAME_BYTES_MAX)
		return INVOKED_NOTHING;
	rest = str_trim(str_part(rest, 1 + word.size, SIZE_MAX));
	auto_free char *name = memory_copy_str(word);
	if (extension != NULL && str_starts(word, STR(skill_prefix)))
		return invoke_skill(extension, name + strlen(skill_prefix), rest,
				    invocation);
	if (extension != NULL)
		command = commands_find(extension_commands(extension), name);
	if (command != NULL)
		return invoke_command(talk, command, rest, invocation);
	return find_prompt(talk_setup(talk), name, &called)
		       ? invoke_prompt(talk, &called, rest, &invocation->prompt)
		       : INVOKED_NOTHING;
}

void invocation_fini(struct invocation *invocation)
{
	buf_fini(&invocation->prompt);
	free(invocation->who);
	free(invocation->agent);
	free(invocation->model);
	allowed_fini(&invocation->allowed);
}

/* The agent, model and mode before the turn of an invocation, and again after it. */
struct before {
	char *agent;              /* NULL: it stays for the turn */
	char *model;              /* NULL with has_model: the built-in recording */
	bool has_model, has_mode; /* they become others for the turn */
	enum policy_mode mode;
};

/* Have TALK work as INVOCATION wants it. Fills BEFORE with what is to be put back. */
static int begin(struct talk *talk, const struct invocation *invocation,
		 struct before *before)
{
	const struct setup *setup = talk_setup(talk);
	const enum policy_mode mode = invocation->has_mode ? invocation->mode : setup->mode;
	int code = CODE_DONE;

	before->mode = setup->mode;
	before->has_mode = mode != setup->mode;
	if (invocation->agent != NULL && strcmp(invocation->agent, setup->agent) != 0) {
		before->agent = memory_copy(setup->agent);
		code = talk_set_agent(talk, invocation->agent, mode);
	} else if (before->has_mode) {
		code = talk_set_mode(talk, mode);
	}
	if (code == CODE_DONE && invocation->model != NULL) {
		before->model = memory_copy(talk_asked_model(talk));
		code = talk_set_model(talk, invocation->model);
		before->has_model = code == CODE_DONE;
	}
	return code;
}

/* Put back what was BEFORE, unless the person has gone over to another mode meanwhile. */
static void end(struct talk *talk, const struct invocation *invocation,
		const struct before *before)
{
	const enum policy_mode now = talk_setup(talk)->mode;
	const enum policy_mode wanted = before->has_mode ? invocation->mode : before->mode;
	const enum policy_mode mode = now == wanted ? before->mode : now;

	if (before->agent != NULL && strcmp(before->agent, talk_setup(talk)->agent) != 0)
		(void)talk_set_agent(talk, before->agent, mode);
	else if (mode != now)
		(void)talk_set_mode(talk, mode);
	if (before->has_model)
		(void)talk_set_model(talk, before->model);
}

int invocation_turn(struct talk *talk, const struct invocation *invocation,
		    const struct value *pictures, struct agent_outcome *outcome)
{
	struct before before = {0};
	int code;

	*outcome = (struct agent_outcome){0};
	talk_narrow(talk, &invocation->allowed, invocation->who);
	code = begin(talk, invocation, &before);
	if (code == CODE_DONE)
		code = talk_turn(talk, invocation->prompt.data, pictures, outcome);
	talk_narrow(talk, NULL, NULL);
	if (!talk_is_over(talk))
		end(talk, invocation, &before);
	free(before.agent);
	free(before.model);
	return code;
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
