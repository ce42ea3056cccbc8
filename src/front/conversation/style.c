/* style: lists the styles, and has the agent take one. */

#include "front/conversation/style.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/text/text.h"
#include "extend/extension.h"
#include "front/chat.h"
#include "front/talk.h"
#include "front/verb.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 16, CLEAN_MAX = 1024 };

static const char no_style[] = "none";

/* The styles of the person; NULL: nothing of theirs is read. */
static const struct commands *styles_of(const struct chat *chat)
{
	return chat->setup->extension != NULL ? extension_styles(chat->setup->extension)
					      : NULL;
}

static void add_row(struct buf *out, bool chosen, const char *name, const char *said)
{
	struct buf clean;

	buf_init(&clean, CLEAN_MAX);
	text_add_name(&clean, str_of(name));
	(void)buf_addf(out, "%c %-*s ", chosen ? '*' : ' ', COLUMN, clean.data);
	text_add_name(out, str_of(said));
	(void)buf_addc(out, '\n');
	buf_fini(&clean);
}

static void list(const struct chat *chat, struct buf *out)
{
	const struct commands *styles = styles_of(chat);
	const char *chosen = agent_style(talk_agent(chat->talk));

	for (size_t i = 0; styles != NULL && i < styles->count; i++) {
		const struct command *style = &styles->items[i];
		const bool is_chosen = chosen != NULL && strcmp(chosen, style->name) == 0;

		if (style->problem != NULL)
			add_row(out, false, style->name, style->problem);
		else
			add_row(out, is_chosen, style->name, style->description);
	}
	add_row(out, chosen == NULL, no_style, "no style of yours");
	(void)buf_adds(out, "/style NAME takes another one; a style is a file styles/NAME.md "
			    "beside the configuration.\n");
}

/* Take STYLE, or none (NULL). */
static void take(struct chat *chat, const struct command *style)
{
	struct err err = {0};

	if (agent_set_style(talk_agent(chat->talk), style != NULL ? style->name : "",
			    style != NULL ? style->body : "", &err)) {
		(void)buf_addf(&chat->paint.out, "The style is now %s.\n",
			       style != NULL ? style->name : no_style);
		return;
	}
	chat->code = verb_complain(CODE_FAILED, "%s", err.text);
	chat->over = true;
}

void style_choose(struct chat *chat, const char *name)
{
	const struct commands *styles = styles_of(chat);
	const struct command *style = styles != NULL ? commands_find(styles, name) : NULL;

	if (style != NULL || strcmp(name, no_style) == 0) {
		take(chat, style);
		return;
	}
	if (name[0] != '\0')
		(void)buf_addf(&chat->paint.out, "There is no style \"%.40s\".\n", name);
	list(chat, &chat->paint.out);
}

void style_each(const struct chat *chat, void (*name)(void *context, const char *name),
		void *context)
{
	const struct commands *styles = styles_of(chat);

	for (size_t i = 0; styles != NULL && i < styles->count; i++) {
		if (styles->items[i].problem == NULL)
			name(context, styles->items[i].name);
	}
	name(context, no_style);
}
