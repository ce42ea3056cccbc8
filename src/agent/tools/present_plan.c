/* present_plan: asks the person about a plan, and tells the model what came of it. */

#include "agent/tools/present_plan.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/policy.h"
#include "session/session.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	PLAN_MAX = 64 << 10,
	WORDS_MAX = 8 << 10,
	TIMEOUT_S = 60, /* the wait for an answer does not count */
};

static const struct row present_plan_params[] = {
	{"plan", ROW_TEXT, true,
	 "The plan in Markdown: what will be changed where, in which order, and how it is "
	 "checked",
	 .aliases = "text content", .min = 1, .max = PLAN_MAX},
	{0},
};

/* The question in the form of EVENT_QUESTION. */
static struct value *form_of(struct str plan)
{
	struct value *request = value_new_object(), *schema = value_new_object();
	struct value *properties = value_new_object(), *mode = value_new_object();
	struct value *words = value_new_object(), *names = value_new_array();
	struct value *required = value_new_array();

	for (size_t i = 0; i < MODES; i++)
		value_append(names, value_new_text(policy_modes[i].name));
	value_set_text(mode, "type", "string");
	value_set_text(mode, "title", "Carry it out in this mode, or go on planning?");
	value_set(mode, "enum", names);
	value_set_text(words, "type", "string");
	value_set_text(words, "title", "What should be different");
	value_set(properties, PRESENT_PLAN_MODE, mode);
	value_set(properties, PRESENT_PLAN_WORDS, words);
	value_append(required, value_new_text(PRESENT_PLAN_MODE));
	value_set_text(schema, "type", "object");
	value_set(schema, "properties", properties);
	value_set(schema, "required", required);
	value_set_str(request, "message", plan);
	value_set(request, "schema", schema);
	return request;
}

/* End RUNNING: the person has chosen NEXT (NULL: nobody was asked) and said WORDS. */
static void end(struct running *running, const enum policy_mode *next, struct str words)
{
	const struct value *plan = value_member(running_arguments(running), "plan");
	struct tool_result result;

	tool_result_init(&result);
	value_set(tool_details(&result), "plan", value_copy(plan));
	if (next != NULL)
		value_set_text(tool_details(&result), "next", policy_modes[*next].name);
	if (next == NULL) {
		(void)buf_adds(&result.text, "The plan is shown to the person.\n");
	} else if (*next != MODE_PLAN) {
		(void)buf_addf(&result.text,
			       "The person agrees with the plan. Carry it out now, in mode "
			       "\"%s\".\n",
			       policy_modes[*next].name);
	} else if (words.size > 0) {
		(void)buf_adds(&result.text, "The person wants another plan: ");
		(void)buf_addstr(&result.text, words);
		(void)buf_addc(&result.text, '\n');
		value_set_boolean(tool_details(&result), "goes_on", true);
	} else {
		(void)buf_adds(&result.text,
			       "The person does not agree yet, and will say what should be "
			       "different.\n");
	}
	(void)tool_done(&result);
	running_end(running, &result);
}

static void present_plan_begin(void *keeper, struct running *running)
{
	const struct value *plan = value_member(running_arguments(running), "plan");
	auto_value struct value *request = form_of(value_str(plan));

	(void)keeper;
	if (!running_ask(running, "form", request))
		end(running, NULL, STR(""));
}

static void present_plan_answered(void *keeper, struct running *running,
				  const struct value *answer)
{
	const struct value *content = value_member(answer, "content");
	const char *name = value_text(value_member(content, PRESENT_PLAN_MODE));
	struct str words = str_trim(value_str(value_member(content, PRESENT_PLAN_WORDS)));
	enum policy_mode next = MODE_PLAN;

	(void)keeper;
	if (!str_is(value_str(value_member(answer, "action")), "accept") ||
	    !policy_mode_parse(name, &next))
		next = MODE_PLAN;
	if (words.size > WORDS_MAX)
		words = str_part(words, 0, text_character_border(words, WORDS_MAX));
	end(running, &next, words);
}

/* A question that is open is closed by the session. */
static void present_plan_stop(void *keeper, struct running *running)
{
	(void)keeper;
	(void)running;
}

const struct tool present_plan_tool = {
	.name = "present_plan",
	.description =
		"In mode plan: show the person your plan, once you have looked at everything that "
		"matters. The person decides whether you carry it out now, or what should be "
		"different.",
	.example = "{\"plan\": \"1. Add a failing test to tests/parser_test.c\\n2. Check the "
		   "length in src/parser.c\\n3. make test\"}",
	.params = present_plan_params,
	.where = IN_FRONT,
	.in_runs = true,
	.plans = true,
	.timeout_s = TIMEOUT_S,
	.begin = present_plan_begin,
	.stop = present_plan_stop,
	.answered = present_plan_answered,
};
