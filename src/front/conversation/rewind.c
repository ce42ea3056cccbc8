/* rewind: the prompts of the session, and the way back to before one of them. */

#include "front/conversation/rewind.h"

#include "agent/agent.h"
#include "agent/history.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/value.h"
#include "front/chat.h"
#include "front/conversation/past.h"
#include "front/talk.h"
#include "front/verb.h"
#include "session/session.h"
#include "store/journal.h"
#include "tool/event.h"
#include "tool/tool.h"
#include "tui/choose/list.h"
#include "tui/console.h"
#include "tui/line.h"

#include <inttypes.h>
#include <stdlib.h>

struct prompt {
	int64_t number, wall_ms;
	char *text;
};

struct prompts {
	struct prompt *items; /* in their order */
	size_t count;
	struct rewound rewound;
};

static bool take_prompt(void *context, int64_t number, const char *kind, int64_t wall_ms,
			struct str json)
{
	struct prompts *prompts = context;
	auto_value struct value *event = NULL;

	(void)kind;
	if (rewound_has(&prompts->rewound, number) || !value_parse(json, 0, &event, NULL))
		return true;
	prompts->items =
		memory_grow(prompts->items, prompts->count + 1, sizeof(*prompts->items));
	prompts->items[prompts->count++] = (struct prompt){
		.number = number,
		.wall_ms = wall_ms,
		.text = memory_copy_str(value_str(value_member(event, "text"))),
	};
	return true;
}

static bool read_prompts(struct chat *chat, struct prompts *prompts, struct err *err)
{
	const struct recorder *recorder = talk_recorder(chat->talk);

	return recorder_rewound(recorder, talk_session_id(chat->talk), &prompts->rewound,
				err) &&
	       journal_read_kind(recorder_journal(recorder), talk_session_id(chat->talk),
				 event_kind_name(EVENT_TURN_BEGAN), take_prompt, prompts,
				 err);
}

static void prompts_fini(struct prompts *prompts)
{
	for (size_t i = 0; i < prompts->count; i++)
		free(prompts->items[i].text);
	free(prompts->items);
	rewound_fini(&prompts->rewound);
}

/* The newest prompt comes first. NULL: none was chosen. */
static const struct prompt *choose_prompt(struct chat *chat, const struct prompts *prompts)
{
	const struct prompt *chosen = NULL;
	struct list list;
	size_t at;

	list_init(&list, "Go back to before");
	for (size_t i = prompts->count; i-- > 0;) {
		char age[PAST_AGE];

		past_age(prompts->items[i].wall_ms, age);
		list_add(&list, str_of(prompts->items[i].text), str_of(age));
	}
	at = console_pick(chat->console, &list, talk_interrupt_fd(chat->talk));
	if (at < prompts->count)
		chosen = &prompts->items[prompts->count - 1 - at];
	list_fini(&list);
	return chosen;
}

/* The parts that go back. */
enum back { BACK_BOTH, BACK_CONVERSATION, BACK_FILES, BACK_NOTHING };

static enum back choose_back(struct chat *chat)
{
	struct list list;
	size_t at;

	list_init(&list, "What goes back");
	list_add(&list, STR("the conversation and the files"),
		 STR("what it has changed since"));
	list_add(&list, STR("the conversation"), STR("the files stay"));
	list_add(&list, STR("the files"), STR("the conversation goes on"));
	at = console_pick(chat->console, &list, talk_interrupt_fd(chat->talk));
	list_fini(&list);
	return at < BACK_NOTHING ? (enum back)at : BACK_NOTHING;
}

/* True: the files are as they were, but for those that RESULT names. */
static void take_files_back(struct chat *chat, const struct prompt *prompt, bool to_model)
{
	struct tool_result result;
	struct err err = {0};

	tool_result_init(&result);
	session_rewind(talk_session(chat->talk), prompt->wall_ms, &result);
	if (result.status == RESULT_DONE && to_model) {
		if (!talk_tell_undone(chat->talk, &result, &err))
			chat->code = verb_complain(CODE_FAILED, "%s", err.text);
	} else {
		(void)buf_addstr(&chat->paint.out, str_trim(buf_str(&result.text)));
		(void)buf_addc(&chat->paint.out, '\n');
	}
	tool_result_fini(&result);
}

static void go_back(struct chat *chat, const struct prompt *prompt, enum back back)
{
	struct err err = {0};

	if (back != BACK_CONVERSATION)
		take_files_back(chat, prompt, back == BACK_FILES);
	if (back == BACK_FILES)
		return;
	if (!agent_rewind(talk_agent(chat->talk), prompt->number, str_of(prompt->text),
			  &err)) {
		chat->code = verb_complain(CODE_FAILED, "%s", err.text);
		chat->over = true;
		return;
	}
	(void)buf_adds(&chat->paint.out,
		       "The conversation goes on from before that prompt; the record keeps what "
		       "was said since.\n");
	line_start(&chat->line);
	line_insert(&chat->line, str_of(prompt->text));
}

void rewind_ask(struct chat *chat)
{
	struct prompts prompts = {0};
	const struct prompt *prompt;
	struct err err = {0};
	enum back back;

	if (!read_prompts(chat, &prompts, &err)) {
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
	} else if (prompts.count == 0) {
		(void)buf_adds(&chat->paint.out, "There is no prompt to go back to yet.\n");
	} else {
		prompt = choose_prompt(chat, &prompts);
		back = prompt != NULL ? choose_back(chat) : BACK_NOTHING;
		if (back != BACK_NOTHING)
			go_back(chat, prompt, back);
	}
	prompts_fini(&prompts);
}
