/*
 * verb_doctor_attack: prints the results of the attacks of attack.h, for people and
 * programs.
 */
#include "front/verbs/verb_doctor_attack.h"

#include "base/value.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/attack.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static void print_names(const char *title, const struct value *names, FILE *out)
{
	if (value_count(names) == 0)
		return;
	(void)fprintf(out, "\n%s\n", title);
	for (size_t i = 0; i < value_count(names); i++)
		(void)fprintf(out, "  %s\n", value_text(value_item(names, i)));
}

static void print_missing(const struct value *missing, FILE *out)
{
	for (void *at = value_first(missing); at != NULL; at = value_next(missing, at))
		(void)fprintf(out,
			      "\nNot played, since they need %s, which is not installed: %d\n",
			      value_key(at), (int)value_integer(value_at(at)));
}

static void print_score(const struct value *report, FILE *out)
{
	print_names("Got through:", value_member(report, "through"), out);
	print_names("Not counted, since they do not succeed here without a cell either:",
		    value_member(report, "unshown"), out);
	if (value_integer(value_member(report, "root_only")) > 0)
		(void)fprintf(out,
			      "\nNot played, since only root could do them without a cell: %d\n",
			      (int)value_integer(value_member(report, "root_only")));
	print_missing(value_member(report, "missing"), out);
	(void)fprintf(out, "\n%d of %d attacks held\n",
		      (int)value_integer(value_member(report, "held")),
		      (int)value_integer(value_member(report, "shown")));
}

static int play(const char *only, bool json, const struct interrupt *interrupt, FILE *out)
{
	auto_value struct value *report = value_new_object();
	struct err err = {0};
	int printed = CODE_DONE;

	if (!json)
		(void)fprintf(out, "Attacks, each tried in a cell and without one\n");
	if (!attack_play_all(only, json ? NULL : out, interrupt, report, &err))
		return verb_complain(err.code == ECHILD ? CODE_NO_CELL
				     : err.code == ECANCELED
					     ? CODE_SIGNAL + interrupt_signal(interrupt)
					     : CODE_FAILED,
				     "%s", err.text);
	if (json)
		printed = verb_print_json(report, VALUE_PRETTY, out);
	else
		print_score(report, out);
	return value_count(value_member(report, "through")) == 0 &&
			       value_integer(value_member(report, "shown")) > 0
		       ? printed
		       : CODE_FAILED;
}

int doctor_attack(const char *only, bool json, FILE *out)
{
	struct interrupt *interrupt = NULL;
	struct err err = {0};
	int code;

	/*
	 * Set the umask, so that the files of a case get the modes that the case names.
	 */
	(void)umask(S_IWGRP | S_IWOTH);
	if (only != NULL && !attack_check_group(only, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!interrupt_open(&interrupt, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (!interrupt_start(interrupt, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = play(only, json, interrupt, out);
	interrupt_close(interrupt);
	return code;
}
