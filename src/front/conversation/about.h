/*
 * about: reports on the conversation under way: those that a person asks for, the facts in its
 * footer (tui/region/footer.h), and the last answer for the clipboard.
 */
#pragma once

struct chat;

/* The tokens of the next request, and what takes them. */
void about_context(struct chat *chat);
/* The list of the agent's tasks (the tool `todo`). */
void about_tasks(struct chat *chat);
/* The jobs that run. */
void about_jobs(struct chat *chat);
/* The MCP servers of the configuration, and their tools. */
void about_servers(struct chat *chat);
/* Hand the last answer to the terminal's clipboard (OSC 52). */
void about_copy(struct chat *chat);
/* Let the person choose a model, of those that can be asked from here. */
void about_choose_model(struct chat *chat,
			void (*change)(struct chat *chat, const char *name));

/*
 * Show in the footer the facts that the person wants, so far as they are known. On the thread of
 * the conversation, between turns or requests.
 */
void about_footer(const struct chat *chat);
