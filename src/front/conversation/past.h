/*
 * past: the recorded conversations, from within one: the list of them, another one that goes on
 * here, a new one, a copy of this one, its title, its text in a file, and the way back to before
 * one of its prompts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct chat;

/* Let the person choose a conversation, which goes on here. */
void past_choose(struct chat *chat);
/* The conversation ID, or a new one (NULL), goes on here; this one has ended then. */
void past_go_on(struct chat *chat, const char *id);
/* A copy of this conversation goes on here. */
void past_fork(struct chat *chat);
/* Give this conversation the title NAME. */
void past_name(struct chat *chat, const char *name);
/* Write this conversation into the new file NAME; "": one with a name of ours. */
void past_export(struct chat *chat, const char *name);

/*
 * Let the person choose a prompt of this conversation, and which parts go back to before it: what was
 * said (agent_rewind), the files (session_rewind), or both. The text of the prompt comes back into
 * the editor. The record keeps all of it.
 */
void past_rewind(struct chat *chat);
