/*
 * style: how the agent answers, in words of the person: a file styles/NAME.md beside the
 * configuration, whose text joins the prompt (extend/extension.h, agent_set_style).
 */
#pragma once

struct chat;

/* List the styles; NAME not "": take this one, or with "none" no style. */
void style_choose(struct chat *chat, const char *name);

/* Call NAME with each style that can be chosen, and with "none". */
void style_each(const struct chat *chat, void (*name)(void *context, const char *name),
		void *context);
