/*
 * own: the skills, commands and styles of the person: files in the folder of the configuration, and the
 * skills in ~/.agents/skills and ~/.claude/skills, which other agents read as well. They need no
 * trust, but a file that another user may write is left out.
 */
#pragma once

#include "base/buf.h"
#include "extend/brought.h"

#include <stdbool.h>

/*
 * Read them into LIST, whose items have absolute names of files and no hashes. CONFIG: the folder
 * of the configuration; HOME: that of the person. Either may be NULL. Call brought_fini.
 */
void own_read(const char *config, const char *home, struct brought_list *list);

/* Read the styles, in the folder `styles` of CONFIG, in the same way; their kind says nothing. */
void own_styles_read(const char *config, struct brought_list *list);

/* Append the AGENTS.md in the folder CONFIG, what the person tells each agent. False: none. */
bool own_instructions(const char *config, struct buf *out);
