/* skills: reads each SKILL.md, tells the model of it, and gives it out. */

#include "extend/skills.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/front_matter.h"
#include "base/text/text.h"
#include "tool/call.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAME_MAX_BYTES = 64,    /* agentskills.io */
	DESCRIPTION_MAX = 1024, /* agentskills.io */
	PROMPTED_MAX = 100,     /* skills that the prompt names */
	PROMPT_MAX = 8 << 10,   /* descriptions; the names of further ones follow */
	BODY_MAX = 32 << 10,
	FILES_TOLD = 100,
};

/* Words of lower-case letters and digits, with one hyphen between them (agentskills.io). */
static bool name_is_fine(const char *name)
{
	const size_t size = strlen(name);

	for (size_t i = 0; i < size; i++) {
		const bool is_word = (name[i] >= 'a' && name[i] <= 'z') ||
				     (name[i] >= '0' && name[i] <= '9');

		if (!is_word &&
		    (name[i] != '-' || i == 0 || i + 1 == size || name[i - 1] == '-'))
			return false;
	}
	return size > 0 && size <= NAME_MAX_BYTES;
}

/* Take what the front matter of SKILL says. */
static void take_matter(struct skill *skill)
{
	const char *name = value_text(value_member(skill->matter, "name"));
	const char *description = value_text(value_member(skill->matter, "description"));
	const char *body = value_text(value_member(skill->matter, "prompt"));

	if (!name_is_fine(skill->name))
		brought_refuse(&skill->problem,
			       "the name of a skill is made of lower-case letters, digits and single "
			       "hyphens, at most 64",
			       "");
	else if (value_member(skill->matter, "name") != NULL &&
		 (name == NULL || strcmp(name, skill->name) != 0))
		brought_refuse(&skill->problem,
			       "the name in SKILL.md is not that of its folder: ",
			       name != NULL ? name : "it is no text");
	else if (description == NULL || str_trim(str_of(description)).size == 0)
		brought_refuse(&skill->problem, "the key \"description\" is missing", "");
	if (skill->problem != NULL)
		return;
	skill->description = memory_copy_str(
		str_part(str_of(description), 0,
			 text_character_border(str_of(description), DESCRIPTION_MAX)));
	skill->body = memory_copy(body != NULL ? body : "");
	skill->hidden =
		value_is_true(value_member(skill->matter, "disable-model-invocation"));
}

static void take_item(struct skill *skill, const struct brought *item)
{
	struct err err = {0};

	skill->name = memory_copy(item->name);
	skill->files = value_ref(item->files);
	if (item->problem != NULL)
		brought_refuse(&skill->problem, item->problem, "");
	else if (!front_matter_parse(str_of(item->body), &skill->matter, &err))
		brought_refuse(&skill->problem, err.text, "");
	else
		take_matter(skill);
}

void skills_add(struct skills *skills, const struct brought *item, const char *workspace)
{
	const struct skill *first = skills_find(skills, item->name);
	struct skill skill = {.own = workspace == NULL};
	struct buf folder;

	buf_init(&folder, PATH_MAX);
	(void)buf_addf(&folder, "%s%s%s", workspace != NULL ? workspace : "",
		       workspace != NULL ? "/" : "", item->file);
	skill.folder = memory_copy(folder.data);
	buf_fini(&folder);
	take_item(&skill, item);
	if (first != NULL && skill.problem == NULL) {
		brought_refuse(&skill.problem, "the name is taken by ", first->folder);
		skill.shadowed = first->own && !skill.own;
	}
	skills->items =
		memory_grow(skills->items, skills->count + 1, sizeof(skills->items[0]));
	skills->items[skills->count++] = skill;
}

void skills_fini(struct skills *skills)
{
	for (size_t i = 0; i < skills->count; i++) {
		struct skill *skill = &skills->items[i];

		free(skill->name);
		free(skill->description);
		free(skill->folder);
		free(skill->body);
		free(skill->problem);
		value_free(skill->matter);
		value_free(skill->files);
	}
	free(skills->items);
	*skills = (struct skills){0};
}

const struct skill *skills_find(const struct skills *skills, const char *name)
{
	for (size_t i = 0; i < skills->count; i++) {
		if (skills->items[i].problem == NULL &&
		    strcmp(skills->items[i].name, name) == 0)
			return &skills->items[i];
	}
	return NULL;
}

static bool is_offered(const struct skill *skill)
{
	return skill->problem == NULL && !skill->hidden;
}

void skills_prompt(const struct skills *skills, struct buf *out)
{
	size_t told = 0;
	struct buf names;

	buf_init(&names,
		 PROMPT_MAX + PROMPTED_MAX * (NAME_MAX_BYTES + 4) + 4 * DESCRIPTION_MAX);
	for (size_t i = 0; i < skills->count && told < PROMPTED_MAX; i++) {
		const struct skill *skill = &skills->items[i];
		const size_t before = names.size;

		if (!is_offered(skill))
			continue;
		told++;
		(void)buf_addf(&names, "- %s: ", skill->name);
		text_add_name(&names, str_of(skill->description));
		/* A skill that is over is told by its name. */
		if (names.size > PROMPT_MAX) {
			buf_truncate(&names, before);
			(void)buf_addf(&names, "- %s", skill->name);
		}
		(void)buf_addc(&names, '\n');
	}
	if (told > 0)
		(void)buf_addf(out,
			       "\nSkills are instructions for tasks of one kind. Before you do "
			       "a task that one of them is for, load it with the tool %s. There "
			       "are:\n%s",
			       skill_tool.name, names.data);
	buf_fini(&names);
}

void skill_print(const struct skill *skill, struct buf *out)
{
	const struct str body = str_of(skill->body);
	const size_t size = text_character_border(body, BODY_MAX);

	(void)buf_addstr(out, str_part(body, 0, size));
	(void)buf_end_line(out);
	if (size < body.size)
		(void)buf_addf(out,
			       "[… %zu bytes left out: read %s/SKILL.md for the rest]\n",
			       body.size - size, skill->folder);
	(void)buf_addf(out,
		       "\nThe folder of this skill is %s; names in it are relative to it. ",
		       skill->folder);
	(void)buf_adds(out, value_count(skill->files) > 1 ? "Its files:\n"
							  : "It has no other file.\n");
	for (size_t i = 0; value_count(skill->files) > 1 && i < value_count(skill->files);
	     i++) {
		if (i == FILES_TOLD) {
			(void)buf_addf(out, "… and %zu more\n",
				       value_count(skill->files) - i);
			break;
		}
		(void)buf_adds(out, "- ");
		text_add_name(out, value_str(value_item(skill->files, i)));
		(void)buf_addc(out, '\n');
	}
}

static const struct row skill_params[] = {
	{"name", ROW_TEXT, true, "Which skill, by the name that the prompt has",
	 .aliases = "skill command", .min = 1, .max = NAME_MAX_BYTES},
	{0},
};

static enum result_status skill_execute(struct call *call, struct tool_result *result)
{
	const struct skills *skills = call->tool->keeper;
	const char *name = value_text(value_member(call->arguments, "name"));
	const struct skill *skill = skills_find(skills, name);
	struct buf names;

	if (skill != NULL && is_offered(skill)) {
		skill_print(skill, &result->text);
		return tool_done(result);
	}
	buf_init(&names, PROMPT_MAX);
	for (size_t i = 0; i < skills->count; i++) {
		if (is_offered(&skills->items[i]))
			(void)buf_addf(&names, "%s%s", names.size > 0 ? ", " : "",
				       skills->items[i].name);
	}
	(void)tool_fail(result, "There is no skill %.64s. There are: %s.", name, names.data);
	buf_fini(&names);
	return result->status;
}

const struct tool skill_tool = {
	.name = "skill",
	.description =
		"Load a skill: instructions for a task of one kind, and the list of the "
		"files that belong to it. Load it before you do such a task.",
	.example = "{\"name\": \"release-notes\"}",
	.params = skill_params,
	.where = IN_FRONT,
	.in_runs = true,
	.timeout_s = 10,
	.execute = skill_execute,
};
