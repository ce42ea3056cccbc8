/* aside: one call of bash for the person. */

#include "front/conversation/aside.h"

#include "agent/agent.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/talk.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdlib.h>

enum {
	TOLD_MAX = 16 << 10, /* bytes of the output that the model is told */
	NAME_MAX_BYTES = 4 << 10,
};

bool aside_is_one(struct str text)
{
	return str_starts(text, STR("!"));
}

/* Tell the model with the next prompt that COMMAND was run, and what came of it. */
static void tell(struct talk *talk, struct str command, const struct tool_result *result)
{
	static const struct text_limits limits = {.bytes = TOLD_MAX};
	struct value *items = value_new_array(), *item = value_new_object();
	struct text_cut cut;
	struct buf name, text;

	buf_init(&name, NAME_MAX_BYTES + TOLD_MAX);
	buf_init(&text, 2 * TOLD_MAX);
	(void)buf_adds(&name, "The person has run this command: ");
	(void)buf_addstr(&name, str_part(command, 0,
					 text_character_border(command, NAME_MAX_BYTES)));
	(void)text_shorten(buf_str(&result->text), &limits, &text, &cut);
	value_set_str(item, "name", buf_str(&name));
	value_set_str(item, "text", buf_str(&text));
	value_append(items, item);
	agent_attach(talk_agent(talk), items);
	buf_fini(&text);
	buf_fini(&name);
}

void aside_run(struct talk *talk, struct str text)
{
	const bool is_told = !str_starts(text, STR("!!"));
	const struct str command = str_trim(str_part(text, is_told ? 1 : 2, text.size));
	auto_value struct value *arguments = value_new_object();
	const struct request request = {.tool = "bash", .arguments = arguments};
	struct tool_result result;

	if (command.size == 0)
		return;
	value_set_str(arguments, "command", command);
	tool_result_init(&result);
	agent_call(talk_agent(talk), &request, true, &result);
	talk_rest(talk);
	if (is_told)
		tell(talk, command, &result);
	tool_result_fini(&result);
}
