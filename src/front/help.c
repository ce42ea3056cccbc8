/* help: prints the texts of `--help`. */
#include "front/help.h"

#include "build_config.h"
#include "front/exit_code.h"

/* The width of the column of names: the longest name in a list and two blanks. */
enum { HELP_COLUMN = 24 };

static void print_verb_line(const struct verb *verb, FILE *out)
{
	(void)fprintf(out, "  %-*s%s\n", HELP_COLUMN, verb->name, verb->summary);
}

int help_print_overview(FILE *out)
{
	(void)fprintf(out,
		      "glovebox " GLOVEBOX_VERSION
		      ": tools for coding agents, run inside a kernel-enforced cell\n\n"
		      "usage: glovebox \"PROMPT\"          let an agent work on this folder\n"
		      "       glovebox VERB [options] …\n\nVerbs\n");
	for (size_t i = 0; verbs[i] != NULL; i++)
		print_verb_line(verbs[i], out);
	(void)fprintf(out, "\nglovebox VERB --help explains one, with an example; "
			   "glovebox --version says the version.\n");
	return CODE_DONE;
}

int help_print_group(const char *group, FILE *out)
{
	(void)fprintf(out, "usage: glovebox %s VERB [options] …\n\nVerbs\n", group);
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (verb_is_in_group(verbs[i], group))
			print_verb_line(verbs[i], out);
	(void)fprintf(out, "\nExample\n");
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (verb_is_in_group(verbs[i], group))
			(void)fprintf(out, "%s\n", verbs[i]->example);
	return CODE_DONE;
}

static void print_option(const struct option_row *row, FILE *out)
{
	char name[HELP_COLUMN * 2];
	const char *blank = row->kind == OPTION_FLAG ? "" : " ";
	const char *value = row->kind == OPTION_FLAG ? "" : row->value;

	if (row->letter != 0)
		(void)snprintf(name, sizeof(name), "-%c, --%s%s%s", row->letter,
			       row->name, blank, value);
	else
		(void)snprintf(name, sizeof(name), "    --%s%s%s", row->name, blank, value);
	(void)fprintf(out, "  %-*s%s\n", HELP_COLUMN, name, row->help);
}

/* Do the VERB_OPTIONS of a verb already hold all options that every verb takes? */
static bool has_common(const struct option_row *verb_options)
{
	for (const struct option_row *row = verb_common_options; row->name != NULL; row++) {
		if (!verb_has_option(verb_options, row->name))
			return false;
	}
	return true;
}

int help_print_verb(const struct verb *verb, FILE *out)
{
	(void)fprintf(out, "usage: glovebox %s [options]%s%s\n\n%s\n\nOptions\n", verb->name,
		      verb->arguments[0] != '\0' ? " " : "", verb->arguments, verb->help);
	for (const struct option_row *row = verb->options; row->name != NULL; row++)
		print_option(row, out);
	if (!has_common(verb->options))
		(void)fprintf(out, "\nOptions of every verb\n");
	for (const struct option_row *row = verb_common_options; row->name != NULL; row++) {
		if (!verb_has_option(verb->options, row->name))
			print_option(row, out);
	}
	(void)fprintf(out, "\nExample\n%s\n", verb->example);
	return CODE_DONE;
}
