/*
 * brought: what a workspace brings along for agents: roles, skills, commands, hooks and servers.
 * A worker reads them in a cell that can only read (tools/read_brought.c). All of it is text of a
 * stranger, and counts only after the person has let in exactly these bytes (extend/trust.h).
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>

enum brought_kind {
	BROUGHT_AGENT, /* .glovebox/agents/NAME.md */
	BROUGHT_SKILL, /* NAME/SKILL.md in .agents/skills, .glovebox/skills, .claude/skills */
	BROUGHT_COMMAND, /* NAME.md in .glovebox/commands, .claude/commands; a/b.md is a:b */
	BROUGHT_HOOK, /* .glovebox/hooks.json, .claude/settings.json; the name is the path */
	BROUGHT_SERVER, /* the members of mcpServers in .mcp.json */
	BROUGHT_KINDS,
};

/* "agent", "skill", … */
const char *brought_kind_name(enum brought_kind kind);
/* False: NAME is no kind. */
bool brought_kind_read(const char *name, enum brought_kind *kind);

struct brought {
	enum brought_kind kind;
	char *name;
	char *file; /* relative to the workspace; of a skill its folder */
	char *problem; /* why it cannot count; the members below are empty then. NULL: none */
	char hash[HASH_HEX + 1]; /* of all bytes; of a skill, of its whole folder */
	char *text; /* what a person reads: the file, the server's entry, the skill's files */
	char *body;          /* the SKILL.md of a skill; else NULL */
	struct value *files; /* the names of all files of a skill; else NULL */
	size_t hooks;        /* the number of hooks in a file of hooks */
};

struct brought_list {
	struct brought *items; /* by kind; of two with one name the first one has no problem */
	size_t count;
	size_t left_out; /* items that were too many */
};

/*
 * Does WORKSPACE have any of the files and folders that are read? Nothing is read from them.
 * Reading takes a cell: make one only where this is true.
 */
bool brought_is_any(const char *workspace);

/*
 * Read all items, or only those of KIND (not BROUGHT_KINDS) and NAME (not NULL), with the rights
 * to read of BOUNDS, the rights of the person's default agent. Call brought_fini in either case.
 */
bool brought_read(const struct policy *bounds, enum brought_kind kind, const char *name,
		  int minimum_level, struct brought_list *list, struct err *err);
void brought_fini(struct brought_list *list);

/* Note in *PROBLEM why an item, or what is made of it, is left out: WHY, and WHAT behind it. */
void brought_refuse(char **problem, const char *why, const char *what);

/* The first item of KIND and NAME; NULL: there is none. */
const struct brought *brought_find(const struct brought_list *list,
				   enum brought_kind kind, const char *name);

/* Append "2 skills, 1 hook, 1 server": the items of ITEMS, counted. */
void brought_count(const struct brought *const *items, size_t count, struct buf *out);
