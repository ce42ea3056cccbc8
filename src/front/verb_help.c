/* glovebox help: prints the overview, or the help of one verb. */
#include <stdio.h>
#include <string.h>

#include "front/exit_code.h"
#include "front/help.h"
#include "front/verb.h"

static const struct option_row help_options[] = {
	OPTION_ROW_HELP,
	{0},
};

/* A name has at most two words. */
enum { NAME_MAX_BYTES = 256 };

static int help_run(const struct options *options, FILE *out)
{
	char name[NAME_MAX_BYTES];
	const struct verb *verb;

	if (options->word_count == 0)
		return help_print_overview(out);
	if (options->word_count == 1 && verb_group_exists(options->words[0]))
		return help_print_group(options->words[0], out);
	(void)snprintf(name, sizeof(name), "%s%s%s", options->words[0],
		       options->word_count > 1 ? " " : "",
		       options->word_count > 1 ? options->words[1] : "");
	verb = verb_find(name);
	if (verb == NULL)
		return verb_complain(CODE_USAGE, "no verb \"%.100s\"; see: glovebox help",
				     name);
	return help_print_verb(verb, out);
}

static const char help_help[] =
	"Print the list of verbs, or what one of them does and which options it has.";

const struct verb verb_help = {
	.name = "help",
	.summary = "explain a verb",
	.arguments = "[VERB]",
	.help = help_help,
	.example = "  glovebox help tool call",
	.options = help_options,
	.words_most = 2,
	.names = NAMES_VERBS,
	.folds = true,
	.run = help_run,
};
