/*
 * rewind: the conversation of a person goes back to before one of its prompts: what was said
 * (agent_rewind), the files (session_rewind), or both. The text of the prompt comes back into
 * the editor. The record keeps what was.
 */
#pragma once

struct chat;

/* Let the person choose a prompt, and what goes back. */
void rewind_ask(struct chat *chat);
