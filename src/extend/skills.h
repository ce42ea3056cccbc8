/*
 * skills: instructions for tasks of one kind, each a folder with a SKILL.md (agentskills.io). The
 * model is told the name and the description of each; the tool `skill` gives it the rest. Keys of
 * the front matter that nothing here knows are kept. A skill that breaks a rule is left out, with
 * the reason.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "extend/brought.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>

struct skill {
	char *name, *description;
	char *folder;         /* absolute */
	char *body;           /* behind the front matter; may be "" */
	char *problem;        /* why it is left out; NULL: it is not */
	struct value *matter; /* the front matter, whole; NULL with some problems */
	struct value *files;  /* names of its files, relative to the folder */
	bool hidden;          /* `disable-model-invocation`: only a person calls it */
	bool own;             /* of the person, not of the workspace */
	bool shadowed;        /* left out for one of the person with its name */
};

struct skills {
	struct skill *items;
	size_t count;
};

/*
 * Add ITEM, a skill of WORKSPACE that was let in, or (WORKSPACE NULL) one of the person. Of two
 * with one name the first one counts.
 */
void skills_add(struct skills *skills, const struct brought *item, const char *workspace);
void skills_fini(struct skills *skills);

/* The skill NAME that is not left out; NULL: there is none. */
const struct skill *skills_find(const struct skills *skills, const char *name);

/* Append what the model is told in its prompt: nothing when there are no skills for it. */
void skills_prompt(const struct skills *skills, struct buf *out);

/* Append the skill as the model reads it: its text, its folder, and the files in it. */
void skill_print(const struct skill *skill, struct buf *out);

/* The tool; its keeper is the struct skills. */
extern const struct tool skill_tool;
