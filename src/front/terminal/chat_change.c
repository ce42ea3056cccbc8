/* chat_change: another agent, or another model, in the same conversation. */
#include "front/terminal/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/text.h"
#include "front/setup.h"
#include "front/verb.h"
#include "undo/plan.h"

enum { SENTENCE_MAX = 1024 };

void chat_each_agent(const struct chat *chat,
		     void (*name)(void *context, const char *name), void *context)
{
	const struct value *agents = chat->setup->agents;

	for (void *at = value_first(agents); at != NULL; at = value_next(agents, at))
		name(context, value_key(at));
}

void chat_each_model(const struct chat *chat,
		     void (*name)(void *context, const char *name), void *context)
{
	const struct value *agents = chat->setup->agents, *models = chat->setup->models;

	for (void *at = value_first(models); at != NULL; at = value_next(models, at))
		name(context, value_key(at));
	for (void *at = value_first(agents); at != NULL; at = value_next(agents, at)) {
		const char *model = value_text(value_at(at));

		if (model != NULL && value_member(models, model) == NULL)
			name(context, model);
	}
}

/* Tell the record and the person of a change and, when TO_MODEL, the model as well. */
static void tell(struct chat *chat, bool to_model, const char *format, const char *what)
{
	struct buf sentence;
	struct err err = {0};

	buf_init(&sentence, SENTENCE_MAX);
	for (const char *at = format; *at != '\0'; at++) {
		if (*at == '%')
			text_add_name(&sentence, str_of(what));
		else
			(void)buf_addc(&sentence, *at);
	}
	if (!agent_notice(talk_agent(chat->talk), sentence.data, to_model, &err)) {
		chat->code = verb_complain(CODE_FAILED, "%s", err.text);
		chat->over = true;
	}
	buf_fini(&sentence);
}

static bool model_of(const struct chat *chat, const struct setup *setup,
		     struct model_options *model)
{
	struct err err = {0};
	const char *name =
		chat->model != NULL ? chat->model : options_text(chat->options, "model");

	if (talk_model(name, &setup->role, model, &err))
		return true;
	(void)verb_complain(CODE_FAILED, "%s", err.text);
	return false;
}

void chat_change_model(struct chat *chat, const char *name)
{
	char *before = chat->model;
	struct model_options model;

	chat->model = memory_copy(name);
	if (model_of(chat, chat->setup, &model) &&
	    talk_change(chat->talk, NULL, &model) == CODE_DONE) {
		free(before);
		tell(chat, false, "The model is now %; the conversation goes on.",
		     talk_model_name(chat->talk));
		return;
	}
	free(chat->model);
	chat->model = before;
}

void chat_change_agent(struct chat *chat, const char *name)
{
	struct setup *setup = memory_alloc(sizeof(*setup));
	struct model_options model = {0}, now = {0};
	bool same_model;

	if (run_setup(chat->options, name, setup) != CODE_DONE ||
	    !model_of(chat, setup, &model) || !model_of(chat, chat->setup, &now)) {
		setup_fini(setup);
		free(setup);
		return;
	}
	same_model = model.temperature == now.temperature &&
		     str_equal(str_of(model.name), str_of(now.name));
	if (talk_change(chat->talk, setup, same_model ? NULL : &model) != CODE_DONE) {
		setup_fini(setup);
		free(setup);
		return;
	}
	if (chat->earlier == NULL)
		chat->earlier = value_new_array();
	value_append(chat->earlier, value_new_text(chat->setup->agent));
	setup_fini(chat->setup);
	free(chat->setup);
	chat->setup = setup;
	tell(chat, true,
	     "The person goes on with the agent %: from here on its tools and its rights hold, in "
	     "a new cell; what ran in the old one has ended.",
	     name);
}

/*
 * Undo the step NUMBER as the agent NAME. True: this agent made the step, and RESULT has
 * the outcome.
 */
static bool undo_as(struct chat *chat, const char *name, uint32_t number,
		    struct tool_result *result)
{
	struct session_options options = {.cancel_fd = talk_interrupt_fd(chat->talk)};
	const struct undo_aim aim = {.step = number};
	struct session *session = NULL;
	struct setup setup;
	bool made;

	made = run_setup(chat->options, name, &setup) == CODE_DONE;
	setup.undoes = &aim;
	made = made && setup_session(&setup, &options, &session) == CODE_DONE &&
	       session_made_step(session, number);
	if (made)
		session_undo(session, number, result);
	session_close(session);
	setup_fini(&setup);
	return made;
}

void chat_undo(struct chat *chat, uint32_t number, struct tool_result *result)
{
	struct session *session = talk_session(chat->talk);
	bool done = false;

	if (!session_made_step(session, number)) {
		for (size_t i = value_count(chat->earlier); !done && i-- > 0;)
			done = undo_as(chat, value_text(value_item(chat->earlier, i)),
				       number, result);
	}
	if (!done)
		session_undo(session, number, result);
}
