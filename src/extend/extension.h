/*
 * extension: all that extends the agent of one session: its skills, the commands of its person,
 * the notes on its workspace, and the tools that work on them. The person's own things come first, then those of the
 * workspace that were let in.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "extend/brought.h"
#include "extend/commands.h"
#include "extend/notes.h"
#include "extend/skills.h"
#include "extend/trust.h"
#include "tool/tool.h"
#include "view/shape.h"

struct extension;

/* The tools of extensions, NULL-ended; without an extension none of them works. */
extern const struct tool *const extension_rows[];

struct extension_options {
	const char *workspace;
	const char *config; /* the folder of the person's configuration; or NULL */
	const char *home;   /* of the person; or NULL */
	const struct brought_list *brought; /* of the workspace; or NULL */
	const struct trust *trust;          /* the record of the workspace; or NULL */
	const struct shape_shown *shown;    /* shown to the cell already; or NULL */
	enum notes_use notes;
};

/* All members of OPTIONS are only used during the call, but for the texts in SHOWN. */
struct extension *extension_open(const struct extension_options *options);
void extension_close(struct extension *extension); /* NULL is fine */

const struct skills *extension_skills(const struct extension *extension);
const struct commands *extension_commands(const struct extension *extension);
/* The person's styles, which are files as commands are: the body joins the prompt. */
const struct commands *extension_styles(const struct extension *extension);

/*
 * The servers of the workspace that are left out: an object, name -> why in words. Skills that
 * are left out are among extension_skills.
 */
const struct value *extension_servers_left_out(const struct extension *extension);

/* TOOLS, with those of extension_rows that can work here. Valid until the call after the next. */
const struct tool *const *extension_tools(struct extension *extension,
					  const struct tool *const *tools);

/* The cell is shown read-only the folders of all skills, behind those of the options. */
const struct shape_shown *extension_shown(const struct extension *extension);

/*
 * PROMPT (or NULL), with what the model is told of the extension. Valid until the next call.
 * EXTENSION may be NULL.
 */
const char *extension_prompt(struct extension *extension, const char *prompt);
