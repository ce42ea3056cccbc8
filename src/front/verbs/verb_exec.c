/*
 * glovebox exec: runs any program in the cell, with the streams and the exit code that it
 * would have without the cell.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "cell/layer_tell.h"
#include "front/setup.h"
#include "front/terminal/console.h"
#include "front/verb.h"
#include "front/verbs/exec_hints.h"
#include "front/verbs/explain.h"
#include "front/verbs/relay.h"
#include "guard/guard.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "session/session.h"
#include "tool/denial.h"

static const struct option_row exec_options[] = {
	{"timeout", 't', OPTION_SECONDS, "S",
	 "end the program after S seconds, 0: never (default: the policy's wall_s, if it says one)"},
	{"write", 'w', OPTION_TEXTS, "DIR",
	 "DIR may be written, instead of what the policy says (may be repeated)"},
	{"read", 'r', OPTION_TEXTS, "DIR", "show DIR as well, read-only (may be repeated)"},
	{"env", 'e', OPTION_TEXTS, "NAME[=V]",
	 "pass the variable NAME on, or set it to V (may be repeated)"},
	{"memory", 'm', OPTION_TEXT, "SIZE",
	 "memory of all its processes together: 512M, 2G"},
	{"pids", 'p', OPTION_COUNT, "N",
	 "processes and threads at once (where no control group can be made: and up to 300 more)"},
	{"policy", 'P', OPTION_TEXT, "FILE",
	 "the policy (JSON) that holds instead of an agent's"},
	{"tty", 0, OPTION_FLAG, NULL, "give it a terminal: vim, less, a shell to work in"},
	{"explain", 0, OPTION_FLAG, NULL,
	 "print what the cell would show, and why; run nothing"},
	{"json", 0, OPTION_FLAG, NULL, "with --explain: as one JSON object"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_ALLOW_HOST,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

/*
 * Add the folders of option NAME as real paths. Links are followed, since the person
 * named them.
 */
static bool add_folders(const struct options *options, const char *name,
			struct value *entry, struct err *err)
{
	const char *const *folders = options_texts(options, name);
	struct value *list;

	if (*folders == NULL)
		return true;
	list = value_new_array();
	value_set(entry, name, list);
	for (; *folders != NULL; folders++) {
		auto_free char *real = realpath(*folders, NULL);

		if (real == NULL)
			return err_set(err, errno, "--%s %s: %s%s", name, *folders,
				       strerror(errno),
				       errno == ENOENT ? "; make it first: mkdir -p, or touch"
						       : "");
		if (!text_is_utf8(str_of(real)))
			return err_set(err, EILSEQ,
				       "--%s: the path has bytes that are not UTF-8, which no "
				       "policy can name; rename it, or make it the workspace (-C)",
				       name);
		value_append(list, value_new_text(real));
	}
	return true;
}

/* Add the variables of --env. */
static void add_variables(const struct options *options, struct value *entry)
{
	const char *const *variables = options_texts(options, "env");
	struct value *list;

	if (*variables == NULL)
		return;
	list = value_new_array();
	value_set(entry, "env", list);
	for (; *variables != NULL; variables++)
		value_append(list, value_new_text(*variables));
}

/*
 * Name the variables of --env that are not set here: the name may be mistyped, or the
 * variable may be set in another shell only.
 */
static void tell_unset(const struct options *options)
{
	for (const char *const *at = options_texts(options, "env"); *at != NULL; at++) {
		if (strchr(*at, '=') == NULL && getenv(*at) == NULL)
			(void)verb_complain(CODE_DONE,
					    "--env %s: it is not set here, so the program does "
					    "not have it; --env %s=VALUE sets it",
					    *at, *at);
	}
}

/*
 * Check ENTRY, which is made of the values of options. A complaint about a value begins
 * with its option.
 */
static bool check_flags(const struct value *entry, struct err *err)
{
	static const char limit[] = "/limits/", variable[] = "/env/";
	struct err why = {0};
	struct str text;

	if (keys_check(keys_agent, entry, "", &why))
		return true;
	text = str_of(why.text);
	if (str_starts(text, STR(limit)))
		text = str_part(text, sizeof(limit) - 1, text.size);
	/*
	 * Do not quote a variable, which may be a secret. The reason names it when its
	 * name is complete.
	 */
	if (str_starts(text, STR(variable)))
		return err_set(err, EINVAL, "exec: --env: %s",
			       strstr(why.text, ": ") != NULL ? strstr(why.text, ": ") + 2
							      : why.text);
	return err_set(err, EINVAL, "exec: --%.*s", (int)text.size, text.data);
}

/* Turn the options about the policy into keys of a policy, which are checked as such. */
static bool add_flags(const struct options *options, struct value *entry, struct err *err)
{
	struct value *limits = value_new_object();

	value_set(entry, "limits", limits);
	if (options_given(options, "memory"))
		value_set_text(limits, "memory", options_text(options, "memory"));
	if (options_given(options, "pids"))
		value_set_integer(limits, "pids",
				  (int64_t)options_count(options, "pids", 0));
	add_variables(options, entry);
	return check_flags(entry, err) && add_folders(options, "write", entry, err) &&
	       add_folders(options, "read", entry, err);
}

/*
 * Append WORD to ARGV. JSON holds only UTF-8, so with AS_HEX the word becomes hexadecimal
 * digits.
 */
static void append_word(struct value *argv, const char *word, bool as_hex)
{
	static const char digits[] = "0123456789abcdef";
	struct buf hex;

	if (!as_hex) {
		value_append(argv, value_new_text(word));
		return;
	}
	buf_init(&hex, 2 * strlen(word));
	for (; *word != '\0'; word++) {
		(void)buf_addc(&hex, digits[(unsigned char)*word >> 4]);
		(void)buf_addc(&hex, digits[(unsigned char)*word & 15]);
	}
	value_append(argv, value_new_str(buf_str(&hex)));
	buf_fini(&hex);
}

static struct value *arguments_of(const struct options *options)
{
	struct value *arguments = value_new_object();
	struct value *argv = value_new_array();
	bool as_hex = false;

	for (size_t i = 0; i < options->word_count; i++)
		as_hex = as_hex || !text_is_utf8(str_of(options->words[i]));
	for (size_t i = 0; i < options->word_count; i++)
		append_word(argv, options->words[i], as_hex);
	value_set(arguments, "argv", argv);
	if (as_hex)
		value_set_boolean(arguments, "hex", true);
	return arguments;
}

/* Print the tool's sentence about the reason why the program did not end by itself. */
static void print_sentence(const struct tool_result *result)
{
	struct str text = str_trim(buf_str(&result->text));

	if (text.size > 0)
		(void)fprintf(stderr, "glovebox: %.*s\n", (int)text.size, text.data);
}

/* Print LINE unless it is empty, and clear it. */
static void print_line(struct buf *line)
{
	if (line->size > 0)
		(void)fprintf(stderr, "glovebox: %s\n", line->data);
	buf_clear(line);
}

/*
 * Print refusals and limits that the program met; it could itself only say that it
 * failed.
 */
static void print_denials(const struct session *session, const struct tool_result *result,
			  const struct policy_words *policy)
{
	/*
	 * A program that succeeds although a system call was refused has found another
	 * way.
	 */
	bool succeeded = result->status == RESULT_DONE && result->exit_code == 0;
	const struct value *list = denial_list(result);
	/* Each function prints a line or nothing. */
	static void (*const prints[])(const struct tool_result *result, struct buf *out) = {
		audit_print_files,   audit_print_doubtful, audit_print_left,
		audit_print_partial, layer_tell_print,
	};
	struct buf line, words;

	buf_init(&line, RESULT_TEXT_MAX);
	buf_init(&words, RESULT_TEXT_MAX);
	for (size_t i = 0; i < value_count(list); i++) {
		if (succeeded && denial_is(value_item(list, i), DENIAL_PROC))
			continue;
		denial_print(value_item(list, i), &line);
		policy_words_add(policy, line.data, &words);
		print_line(&words);
		buf_clear(&line);
	}
	for (size_t i = 0; i < sizeof(prints) / sizeof(prints[0]); i++) {
		prints[i](result, &line);
		print_line(&line);
	}
	session_print_own(session, result, &line);
	print_line(&line);
	/* The changes of the program stay. Say when not all of them could be examined. */
	if (audit_failed(result) && result->status != RESULT_FAILED)
		print_sentence(result);
	buf_fini(&line);
	buf_fini(&words);
}

/* The time limit of the program (0: none), and where it comes from. */
struct exec_time {
	double seconds;
	const char *why;
};

static struct exec_time time_of(const struct options *options, double wall_s)
{
	if (options_given(options, "timeout"))
		return (struct exec_time){options_seconds(options, "timeout", 0),
					  "--timeout"};
	return (struct exec_time){wall_s, wall_s > 0 ? "limits.wall_s" : "default"};
}

static int code_of(const struct tool_result *result, const struct exec_time *time,
		   const struct interrupt *interrupt)
{
	int number = interrupt_signal(interrupt);

	switch (result->status) {
	case RESULT_DONE:
		return result->signal != 0 ? CODE_SIGNAL + result->signal
					   : result->exit_code;
	case RESULT_TIMED_OUT:
		(void)fprintf(stderr, "glovebox: ended after %g s (%s)\n", time->seconds,
			      time->why);
		return CODE_TIMED_OUT;
	case RESULT_CANCELLED:
		return number != 0 ? CODE_SIGNAL + number : CODE_CANCELLED;
	case RESULT_DENIED:
		return CODE_EXEC_NOT_EXECUTABLE; /* print_denials has printed why */
	case RESULT_FAILED:
		break;
	}
	print_sentence(result);
	if (result->exit_code == CODE_EXEC_NOT_EXECUTABLE ||
	    result->exit_code == CODE_EXEC_NOT_FOUND)
		return result->exit_code;
	return CODE_EXEC_NO_CELL;
}

/* Turn the loop until the program has ended and its last byte is delivered. */
static void wait_for_end(struct session *session, struct running *running,
			 struct relay *relay)
{
	bool given = false;

	while (!running_is_done(running)) {
		if (!given && running_is_sent(running)) {
			relay_give(relay);
			given = true;
		}
		loop_turn(session_loop(session), CLOCK_NEVER);
	}
	relay_drain(relay);
}

static void ask_for_terminal(struct value *arguments)
{
	struct pty_size size = terminal_size();

	value_set_integer(arguments, "rows", size.rows);
	value_set_integer(arguments, "columns", size.columns);
}

static int follow(struct session *session, const struct options *options,
		  const struct policy_words *words, const struct exec_time *time,
		  struct interrupt *interrupt, struct relay *relay)
{
	auto_value struct value *arguments = arguments_of(options);
	struct request request = {
		.tool = "exec",
		.arguments = arguments,
		.fd_count = relay_fd_count(relay),
		.by_front = true,
		.timeout_s = time->seconds > 0 ? time->seconds : -1,
	};
	struct terminal *terminal = NULL;
	struct running *running;
	struct buf messages;
	struct err err = {0};
	int code;

	if (options_given(options, "tty")) {
		ask_for_terminal(arguments);
		if (!terminal_open(session_loop(session), relay_packets(relay), &terminal,
				   &err))
			return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	}
	memcpy(request.fds, relay_fds(relay), sizeof(request.fds));
	running = session_start(session, &request, NULL, NULL);
	wait_for_end(session, running, relay);
	terminal_close(terminal);
	print_denials(session, running_result(running), words);
	hint_harm(running_result(running));
	hint_repository(running_result(running), session, options->words[0]);
	buf_init(&messages, RELAY_TAIL);
	relay_tail(relay, &messages);
	hint_messages(running_result(running), session, words, buf_str(&messages));
	buf_fini(&messages);
	code = code_of(running_result(running), time, interrupt);
	running_free(running);
	/* The program wrote to our pipe, and could not know that its output was lost. */
	return code == CODE_DONE && relay_lost(relay) ? CODE_FAILED : code;
}

static int exec_with(struct setup *setup, const struct options *options,
		     struct interrupt *interrupt)
{
	const struct exec_time time = time_of(options, setup->wall_s);
	const struct policy_words words = {setup->policy_file, setup->said};
	bool tty = options_given(options, "tty");
	struct session *session = NULL;
	struct relay *relay = NULL;
	struct err err = {0};
	int code;

	if (tty)
		terminal_prepare();
	/* An exec is no step that can be undone. */
	free(setup->undo_folder);
	setup->undo_folder = NULL;
	code = setup_session_once(setup, interrupt, &session);
	if (code != CODE_DONE)
		return CODE_EXEC_NO_CELL;
	if (tty ? relay_open_terminal(session_loop(session), &relay, &err)
		: relay_open(session_loop(session), &relay, &err))
		code = follow(session, options, &words, &time, interrupt, relay);
	else
		code = verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	relay_close(relay);
	session_close(session);
	return code;
}

/*
 * Refuse patterns in `write`: the kernel knows no patterns, so the whole folder of a
 * pattern would be open to the command.
 */
static bool has_no_pattern(const struct policy *policy, struct err *err)
{
	for (size_t i = 0; i < policy->write.count; i++) {
		const struct policy_path *entry = &policy->write.items[i];

		if (entry->pattern != NULL)
			return err_set(err, EINVAL,
				       "agents.%s.write: the pattern \"%s\" cannot hold for a "
				       "program, which the kernel keeps to folders only; name "
				       "them with --write",
				       policy->name, entry->text);
	}
	return true;
}

static int run_or_explain(struct setup *setup, const struct options *options,
			  const struct setup_flags *flags, FILE *out)
{
	const struct policy_words words = {flags->policy_file, flags->entry};
	struct interrupt *interrupt = NULL;
	struct exec_time time;
	struct err err = {0};
	int code;

	if (!setup_init_with(setup, options, flags, &err) ||
	    !has_no_pattern(setup->policy, &err))
		return policy_words_complain(CODE_EXEC_NO_CELL, &words, err.text);
	if (!setup_allow_hosts(setup, options, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	time = time_of(options, setup->wall_s);
	if (flags->explain)
		return explain_print(setup, flags, time.seconds, time.why,
				     options_given(options, "json"), out);
	if (interrupt_open(&interrupt, &err))
		code = exec_with(setup, options, interrupt);
	else
		code = verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	interrupt_close(interrupt);
	return code;
}

static int exec_run(const struct options *options, FILE *out)
{
	auto_value struct value *entry = value_new_object();
	const struct setup_flags flags = {
		/* Standard error belongs to the program. */
		.quiet_plugins = true,
		.policy_file = options_text(options, "policy"),
		.entry = entry,
		.explain = options_given(options, "explain"),
	};
	struct setup setup = {0};
	struct err err = {0};
	int code;

	if (options->word_count == 0 && !flags.explain)
		return verb_complain(CODE_USAGE, "exec: no command; usage: glovebox exec [--] "
						 "CMD [ARGS…]");
	if (options_given(options, "json") && !flags.explain)
		return verb_complain(CODE_USAGE, "exec: --json goes with --explain");
	if (options_given(options, "agent") && flags.policy_file != NULL)
		return verb_complain(CODE_USAGE, "exec: --agent and --policy each say what "
						 "may be done: give one");
	if (!add_flags(options, entry, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	tell_unset(options);
	code = run_or_explain(&setup, options, &flags, out);
	setup_fini(&setup);
	return code;
}

static const char exec_help[] =
	"Run CMD in the cell, in the workspace's folder. It sees the workspace and the\n"
	"system's programs, no other file of yours, no host but those of --allow-host and\n"
	"the policy's network, and of your environment TERM, LANG and TZ and what --env\n"
	"names only. When it ends, everything that it started ends too.\n\n"
	"What may be read, written and used is an agent's policy (default: the one of\n"
	"`default`), or that of --policy; options beat both. DIR of --write and --read\n"
	"starts where you are, not at the workspace. --explain prints what holds.\n\n"
	"Pipes are handed on to it; a terminal, file, device or socket is relayed\n"
	"through a pipe. With --tty it has a terminal of the cell's own, behind yours, and\n"
	"every key goes to it. The exit code is the program's own, 128+N when signal N ended\n"
	"it, 124 after the timeout, 125 when the cell could not be built, 126 when CMD\n"
	"cannot be executed or is not in the agent's list of commands, 127 when there is\n"
	"none of that name, 1 instead of 0 when its output could not be written.\n"
	"Ctrl+C and SIGTERM end the program first (130, 143).";

const struct verb verb_exec = {
	.name = "exec",
	.summary = "run a program in the cell",
	.arguments = "[--] CMD [ARGS…]",
	.help = exec_help,
	.example =
		"  glovebox exec --timeout 60 -- make -j4\n"
		"  mkdir out; glovebox exec --write out --memory 2G -- sh -c 'date > out/now'\n"
		"  glovebox exec --tty -- bash\n"
		"  glovebox exec -e CI=1 -e NPM_TOKEN -- npm test\n"
		"  echo '{\"write\": []}' > ci.json; glovebox exec --policy ci.json --explain\n"
		"  echo 'print(6 * 7)' | glovebox exec -- python3 -",
	.options = exec_options,
	.words_most = VERB_WORDS_ANY,
	.words_end_options = true,
	.run = exec_run,
};
