/*
 * remembered: the person edits what agents have noted on the workspace (extend/memory.h), in their own
 * editor. Sessions that begin later read what they made of it.
 */
#pragma once

struct chat;

void remembered_edit(struct chat *chat);
