/*
 * past: the recorded conversations, from within one: the list of them, another one that goes on
 * here, a new one, a copy of this one, its title, and its text in a file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct chat;

enum { PAST_AGE = 16 };
/* How long ago WALL_MS was: "3 h", "2 d". */
void past_age(int64_t wall_ms, char age[PAST_AGE]);

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
