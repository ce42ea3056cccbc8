/*
 * config: reads the text of a configuration, checks it by the key table, and makes
 * policies and roles of agents from it.
 */

#include "policy/config.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/pattern.h"
#include "base/text/rows.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/commands.h"
#include "policy/credentials/credential.h"
#include "policy/network.h"
#include "policy/policy.h"
#include "policy/service/recorded.h"
#include "policy/service/service.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All checks of an agent run before its run may finish, so a person names only a few. */
enum { CONFIG_CHECKS_MAX = 32 };

/* The key table, and the list of keys in the manual. */

#define KIBI 1024.0
#define MEBI (1024.0 * 1024)
#define GIBI (1024.0 * MEBI)
#define TEBI (1024.0 * GIBI)

/* Bounds by which a typing error is noticed. */
#define ITERATIONS_MAX     10000
#define WRITERS_MAX        8 /* calls of one answer that go side by side (agent/calls.c) */
#define LOOP_MAX           1000
#define TOKENS_MAX         1e12
#define MONEY_MIN          0.0001
#define CPUS_MIN           0.01 /* the least share that the kernel keeps */
#define CPUS_MAX           4096
#define MONEY_MAX          1e6
#define SECONDS_MAX        (7.0 * 24 * 3600) /* a week; a longer time is no limit */
#define SECONDS_MIN        0.001             /* deadlines have milliseconds */
#define GRACE_MAX          60        /* the grace is taken from the working time */
#define PIDS_MIN           8         /* a shell, a pipeline and a compiler */
#define PIDS_MAX           32768     /* pid_max of a small kernel */
#define WATCHES_MAX        (1 << 30) /* more than any kernel has memory for */
#define FILE_SIZE_MIN      MEBI      /* no linker works with less */
#define CONTENT_MIN        1024      /* enough to read and write a file of one screen */
#define TMP_MIN            (64 * 1024.0)
#define MEMORY_MIN         (16 * MEBI) /* a shell and the program it starts */
#define TEMPERATURE_MAX    2           /* the most that all providers accept */
#define CONTEXT_MAX        1e9         /* a thousand times the largest that exists */
#define PRICE_MAX          1e6         /* a dollar a token */
#define THINKING_MIN       1024        /* no provider thinks with less */
#define THINKING_MAX       1e6
#define FLEET_REPLICAS_MAX 5 /* of a NATS cluster */
#define FLEETS_MAX         64
#define FLEET_LEASE_MIN    2 /* a fleet on trial */
#define FLEET_LEASE_MAX    3600

enum {
	DESCRIPTION_MAX = 1024,
	MODEL_MAX = 256,
	PROMPT_MAX = 256 << 10, /* far more than a model follows */
	COMMAND_WORD_MAX = 256,
	COMMAND_EXAMPLE_MAX = 1024,
	CHECK_COMMAND_MAX = 4096,
	PATH_BYTES_MAX = 4095,
	PLUGIN_SECONDS_MAX = 600,
	UNDO_SPACE_MIN = 1 << 20,
	ENTRIES_MAX = 256, /* agents, models */
	LANGUAGE_SERVERS_MAX = 8,
	QUOTED_MAX = 64,   /* bytes of a wrong word quoted */
	NOTIFY_WORDS = 32, /* as many as tui/notify.h takes */
};

/* The grammars that no kind of row has. */

/* Append BYTES as in a policy, in the largest unit: "16M". */
static void keys_print_size(double bytes, struct buf *out)
{
	static const char units[] = "KMGT";
	size_t unit = 0;

	if (bytes == 0) {
		(void)buf_addc(out, '0');
		return;
	}
	for (bytes /= 1024; bytes >= 1024 && units[unit + 1]; bytes /= 1024)
		unit++;
	(void)buf_addf(out, "%g%c", bytes, units[unit]);
}

static bool is_size(const struct row *row, const struct value *value,
		    struct rows_problem *problem)
{
	/* a negative number becomes too large */
	uint64_t bytes = (uint64_t)value_integer(value);
	struct str text = value_str(value);
	struct buf range;
	struct err why;

	if (value_kind(value) != VALUE_INTEGER &&
	    (text.size == 0 || text.size > QUOTED_MAX || strlen(text.data) < text.size))
		return rows_refuse(problem, NULL,
				   "must be a size (bytes, or text like \"512M\"), not %s",
				   value_kind_name(value_kind(value)));
	if (value_kind(value) == VALUE_STRING &&
	    !text_parse_size(value_text(value), &bytes, &why))
		return rows_refuse(problem, NULL, "%s", why.text);
	if ((double)bytes >= row->min && (double)bytes <= row->max)
		return true;
	buf_init(&range, QUOTED_MAX);
	keys_print_size(row->min, &range);
	(void)buf_adds(&range, " to ");
	keys_print_size(row->max, &range);
	(void)rows_refuse(problem, NULL, "must be %s", range.data);
	buf_fini(&range);
	return false;
}

/* Check the grammar of each entry, and whether one cell can have all of them. */
static bool are_hosts(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	const size_t count = value_count(value);
	struct err why;

	(void)row;
	if (count > NETWORK_ENTRIES_MAX)
		return rows_refuse(problem, NULL, "has %zu entries, at most %d are taken",
				   count, NETWORK_ENTRIES_MAX);
	auto_free struct network_entry *entries = memory_array(count + 1, sizeof(*entries));
	for (size_t i = 0; i < count; i++) {
		struct str text = value_str(value_item(value, i));

		if (!network_parse_entry(text, &entries[i], &why))
			return rows_refuse(problem, &(struct rows_place){.index = i},
					   "\"%.*s\": %s", QUOTED_MAX, text.data, why.text);
	}
	return network_check_ports(entries, count, &why) ||
	       rows_refuse(problem, NULL, "%s", why.text);
}

static bool are_published(const struct row *row, const struct value *value,
			  struct rows_problem *problem)
{
	struct network_publish entries[NETWORK_PUBLISHED_MAX];
	const size_t count = value_count(value);
	struct err why;

	(void)row;
	if (count > NETWORK_PUBLISHED_MAX)
		return rows_refuse(problem, NULL, "has %zu entries, at most %d are taken",
				   count, NETWORK_PUBLISHED_MAX);
	for (size_t i = 0; i < count; i++) {
		struct str text = value_str(value_item(value, i));

		if (!network_parse_publish(text, &entries[i], &why))
			return rows_refuse(problem, &(struct rows_place){.index = i},
					   "\"%.*s\": %s", QUOTED_MAX, text.data, why.text);
	}
	return network_check_publish(entries, count, &why) ||
	       rows_refuse(problem, NULL, "%s", why.text);
}

static bool is_resolver(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	struct network_host host;
	struct err why;
	uint16_t port;

	(void)row;
	if (!network_parse_authority(value_str(value), NETWORK_PORT_DNS, &host, &port, &why))
		return rows_refuse(problem, NULL, "%s", why.text);
	return host.kind != NETWORK_NAME ||
	       rows_refuse(problem, NULL, "must be an address, with or without :port");
}

/* The name of a way, or the words of a program (tui/notify.h). */
static bool is_notification(const struct row *row, const struct value *value,
			    struct rows_problem *problem)
{
	const size_t count = value_count(value);
	bool are_texts =
		value_kind(value) == VALUE_ARRAY && count > 0 && count <= NOTIFY_WORDS;

	(void)row;
	for (size_t i = 0; are_texts && i < count; i++)
		are_texts = value_kind(value_item(value, i)) == VALUE_STRING;
	return are_texts || str_among("auto bell off", value_str(value)) ||
	       rows_refuse(problem, NULL,
			   "must be \"auto\", \"bell\", \"off\", or the words of a program");
}

/* Never quote an entry: it may contain a secret, even where a name was expected. */
static bool are_variables(const struct row *row, const struct value *value,
			  struct rows_problem *problem)
{
	struct err why;

	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		if (!policy_check_variable(value_text(value_item(value, i)), &why))
			return rows_refuse(problem, &(struct rows_place){.index = i},
					   "%s", why.text);
	}
	return true;
}

static bool are_commands(const struct row *row, const struct value *value,
			 struct rows_problem *problem)
{
	char pointer[ROWS_POINTER_MAX];

	(void)row;
	if (value_kind(value) != VALUE_OBJECT)
		return true;
	(void)snprintf(pointer, sizeof(pointer), "%s", problem->pointer);
	/* The sentence has its own pointer. */
	problem->pointer[0] = '\0';
	return commands_check(value, pointer, &problem->why);
}

/*
 * Each check is a command, or an object with exactly one of `command` and `run_tests`.
 */
static bool are_checks(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	(void)row;
	if (value_count(value) > CONFIG_CHECKS_MAX)
		return rows_refuse(problem, NULL, "has %zu entries, at most %d are taken",
				   value_count(value), CONFIG_CHECKS_MAX);
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		const struct rows_place place = {.key = value_key(at)};
		const struct rows_place inner = {.above = &place, .key = "command"};
		const struct value *command = value_member(value_at(at), "command");

		if (place.key[0] == '\0' || strlen(place.key) > CONFIG_NAME_MAX)
			return rows_refuse(problem, NULL,
					   "the name of a check has 1 to %d bytes",
					   CONFIG_NAME_MAX);
		if (value_kind(value_at(at)) == VALUE_STRING)
			continue;
		if ((command != NULL) == (value_member(value_at(at), "run_tests") != NULL))
			return rows_refuse(problem, &place,
					   "must have one of \"command\" and \"run_tests\"");
		if (command && value_str(command).size == 0)
			return rows_refuse(problem, &inner, "may not be empty");
	}
	return true;
}

static bool are_agents(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	struct err why;

	(void)row;
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		if (!config_check_name(value_key(at), &why))
			return rows_refuse(problem, NULL, "%s", why.text);
	}
	return true;
}

static bool are_models(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	(void)row;
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		const size_t size = strlen(value_key(at));

		if (size == 0 || size > MODEL_MAX)
			return rows_refuse(problem, NULL,
					   "a name has 1 to %d bytes, not %zu", MODEL_MAX,
					   size);
	}
	return true;
}

/* The key table. */

#define LIMIT(member) \
	.home = KEY_IN_POLICY, .offset = offsetof(struct policy_limits, member)
#define POLICY(member) .home = KEY_IN_POLICY, .offset = offsetof(struct policy, member)
#define ROLE(member)   .home = KEY_IN_ROLE, .offset = offsetof(struct config_role, member)
#define CONFIG(member) .home = KEY_IN_CONFIG, .offset = offsetof(struct config, member)

const struct row config_limit_rows[] = {
	{"iterations", ROW_COUNT, LIMIT(iterations), .min = 1, .max = ITERATIONS_MAX,
	 .description = "Answers of the model in one run."},
	{"tokens", ROW_COUNT, LIMIT(tokens), .min = 1, .max = TOKENS_MAX,
	 .initial = "no limit", .description = "Tokens of one run, in and out."},
	{"money", ROW_NUMBER, LIMIT(money), .min = MONEY_MIN, .max = MONEY_MAX,
	 .initial = "no limit",
	 .description = "US dollars one run may cost; the model's price must be known ([models.md]"
			"(models.md))."},
	{"loop_warn", ROW_COUNT, LIMIT(loop_warn), .min = 0, .max = LOOP_MAX,
	 .description =
		 "From which identical call on that made no progress the model is told so "
		 "([agents.md](agents.md#circles)); likewise from the third timeout in a row. 0: "
		 "never."},
	{"loop_stop", ROW_COUNT, LIMIT(loop_stop), .min = 0, .max = LOOP_MAX,
	 .description = "The identical call without progress that ends the run; likewise the "
			"fifth timeout in a row. 0: none does."},
	{"wall_s", ROW_SECONDS, LIMIT(wall_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .description =
		 "Seconds one command may take, unless its call asks for another "
		 "time. (`glovebox exec` has no limit unless this is said, or `--timeout`.)"},
	{"shell_s", ROW_SECONDS, LIMIT(shell_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .description = "Seconds all commands of one run may take together."},
	{"run_s", ROW_SECONDS, LIMIT(run_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .description = "Seconds one run may take, from its prompt to its last answer."},
	{"grace_s", ROW_SECONDS, LIMIT(grace_s), .min = SECONDS_MIN, .max = GRACE_MAX,
	 .description = "Seconds between TERM and KILL, taken from before the deadline: at "
			"most half of the time."},
	{"quiet_s", ROW_SECONDS, LIMIT(quiet_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .initial = "no limit",
	 .description = "Seconds without a byte of output after which a command is ended. (Not for "
			"`glovebox exec`, whose output is the caller's.)"},
	{"pids", ROW_COUNT, LIMIT(pids), .min = PIDS_MIN, .max = PIDS_MAX,
	 .description = "Processes and threads of one command."},
	{"cell_pids", ROW_COUNT, LIMIT(cell_pids), .min = PIDS_MIN, .max = PIDS_MAX,
	 .description = "Processes and threads of all commands of one cell together."},
	{"memory", ROW_SIZE, .check = is_size, LIMIT(memory), .min = MEMORY_MIN,
	 .max = 1024 * TEBI, .initial = "4G, or half of the machine's when that is less",
	 .description =
		 "Memory of one command's processes together; one that takes more is ended."},
	{"file_size", ROW_SIZE, .check = is_size, LIMIT(file_size), .min = FILE_SIZE_MIN,
	 .max = 1024 * TEBI, .description = "Largest file a command may write."},
	{"read_bytes", ROW_SIZE, .check = is_size, LIMIT(read_bytes), .min = CONTENT_MIN,
	 .max = GIBI, .initial = "no limit",
	 .description =
		 "Largest file that `read_file` and `batch_read` show whole, and most of a "
		 "larger one in one call: there a range is asked for. Commands read what "
		 "they like."},
	{"write_bytes", ROW_SIZE, .check = is_size, LIMIT(write_bytes),
	 .min = CONTENT_MIN, .max = GIBI, .initial = "no limit",
	 .description = "Bytes of new text that one call of `write_file`, `edit_file`, `edit_notebook` or "
			"`apply_patch` may bring. Files of commands: `file_size`."},
	{"tmp", ROW_SIZE, .check = is_size, LIMIT(tmp), .min = TMP_MIN, .max = TEBI,
	 .description = "Room in the cell's `/tmp`, and as much again in `/dev/shm`; both are held "
			"in memory."},
	{"free_space", ROW_SIZE, .check = is_size, LIMIT(free_space), .min = 0,
	 .max = 1024 * TEBI, .initial = "1G, or 5 % of the file system when that is less",
	 .description = "What must stay free on the file system of the workspace; a command that "
			"takes from it is ended. 0 is no limit."},
	{"layer", ROW_SIZE, .check = is_size, LIMIT(layer), .min = TMP_MIN,
	 .max = 1024 * TEBI,
	 .description = "What the layer of a review may hold (`--review`); the next command that "
			"would write into a fuller one is refused."},
	{"writers", ROW_COUNT, LIMIT(writers), .min = 1, .max = WRITERS_MAX,
	 .description = "Delegates that write and work side by side, each in a layer of its own; with 1 "
			"they work one after the other, in the workspace."},
	{"watches", ROW_COUNT, LIMIT(watches), .min = 1, .max = WATCHES_MAX,
	 .initial = "three quarters of what the user may have",
	 .description = "Folders that a session watches (inotify), so that undo need not scan the "
			"workspace at each command. With more folders it scans."},
	{"cpus", ROW_NUMBER, LIMIT(cpus), .min = CPUS_MIN, .max = CPUS_MAX,
	 .initial = "no limit",
	 .description =
		 "Processors that all of a cell may use at the same time; fractions are allowed. "
		 "This and the next three need a control group ([accounts.md](accounts.md)); "
		 "without one the cell is refused."},
	{"cpu_s", ROW_SECONDS, LIMIT(cpu_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .initial = "no limit",
	 .description =
		 "Seconds of processor time of all of a cell; then its commands are ended."},
	{"written", ROW_SIZE, .check = is_size, LIMIT(written), .min = MEBI,
	 .max = 1024 * TEBI, .initial = "no limit",
	 .description =
		 "What a cell may write to disks; then its commands are ended. (Version 2 only.)"},
	{"io_write", ROW_SIZE, .check = is_size, LIMIT(io_write), .min = KIBI,
	 .max = TEBI, .initial = "no limit",
	 .description =
		 "What a cell may write to each disk in a second; more waits. (Version 2 only.)"},
	{"net", ROW_SIZE, .check = is_size, LIMIT(net), .min = KIBI, .max = 1024 * TEBI,
	 .initial = "no limit",
	 .description =
		 "What a cell may send and receive together; then its commands are ended."},
	{0},
};

/* Keys of a rule, read by commands.c. Its lists are short, because people write them. */
const struct row config_rule_rows[] = {
	{"program", ROW_BYTES, .max = COMMAND_WORD_MAX, .initial = "required",
	 .description = "Its name as it is typed, or several: `phpunit,vendor/bin/phpunit`."},
	{"subcommand", ROW_BYTES, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description = "Words that have to follow; each may be several: `analyse,analyze`."},
	{"options", ROW_WORDS, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description =
		 "Options behind these: `-x`, `--name`, `--name=KIND` (also `--name V`; of one "
		 "letter `-x V`, and `-xV` for numbers and choices), `--name[=KIND]` where the "
		 "value may be missing, `-number` for a dash and any number (`-20`). KIND is `text`, `number`, `path`, or choices: `a,b`."},
	{"global", ROW_WORDS, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description = "Options before the subcommand, in the same form."},
	{"operands", ROW_WORDS, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description = "The other arguments in their order: `KIND`, `KIND?`, `KIND*`, `KIND+`, and `--`, "
			"behind which everything is one."},
	{"executes", ROW_WORDS, .max = COMMAND_WORD_MAX, .initial = "nothing",
	 .description =
		 "Words that name a file to run or load, a text to execute, a program to start: options in "
		 "the form of `options`, and what operands begin with (`SHELL=`). No other "
		 "word of a rule grants these."},
	{"insert", ROW_WORDS, .max = COMMAND_WORD_MAX, .initial = "nothing",
	 .description = "Words that are put in behind the subcommand when it runs."},
	{"insert_global", ROW_WORDS, .max = COMMAND_WORD_MAX, .initial = "nothing",
	 .description = "The same behind the program."},
	{"runs_code", ROW_FLAG, .initial = "false",
	 .description =
		 "It runs code of the project or of the model: the cell contains that, no rule."},
	{"harm", ROW_BYTES, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description =
		 "Of rules that deny or ask: only when the command does that, too: `rm -r`, `git clean -x`, "
		 "`git clean -d`, `git push --force`, `git reset --hard`, `dd of=`, `mkfs`, `chmod -R 777`, "
		 "`curl to sh`, `DROP`."},
	{"match", ROW_WORDS, .max = COMMAND_EXAMPLE_MAX, .initial = "none",
	 .description = "Commands that fit, tried when the configuration is read."},
	{"not_match", ROW_WORDS, .max = COMMAND_EXAMPLE_MAX, .initial = "none",
	 .description = "Commands that do not, likewise."},
	{0},
};

static const struct row commands_keys[] = {
	{"profile", ROW_CHOICE, .choices = "box list",
	 .initial = "`list`; `box` where only `deny`, `ask` and `unread` are given",
	 .description = "`box`: anything runs that `deny` does not hold. `list`: what fits a rule, without "
			"a shell."},
	{"deny", ROW_SOURCES, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description =
		 "Rules of what never runs, in every profile: objects, texts (`git push --force`) or "
		 "the preset `danger`. Of a rule that denies or asks only what it names has to be there.",
	 .rows = config_rule_rows},
	{"ask", ROW_SOURCES, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description = "The same of what a person is asked for each time, unless one of `deny` holds; where "
			"nobody can be asked it is refused.",
	 .rows = config_rule_rows},
	{"unread", ROW_CHOICE, .choices = "run ask", .initial = "`run`",
	 .description = "What becomes of a command that Glovebox cannot read (a program whose name comes "
			"from a variable): `ask` asks a person as `ask` does."},
	{"allow", ROW_LIST, .max = ROWS_ITEMS_MAX, .initial = "none",
	 .description = "Rules of what runs: one's own, tried before the presets. In a box they run "
			"without the question about what destroys much.",
	 .rows = config_rule_rows},
	{"presets", ROW_NAMES, .max = CONFIG_NAME_MAX, .initial = "none",
	 .description =
		 "Shipped lists: `c`, `git`, `go`, `node`, `php`, `python`, `rust`, `text`."},
	{"rules", ROW_LIST, .max = ROWS_ITEMS_MAX, .initial = "none",
	 .description = "The older name of `allow`; both may be there.",
	 .rows = config_rule_rows},
	{"runs_code", ROW_FLAG, .initial = "true",
	 .description = "`false` leaves out every rule that is marked so."},
	{0},
};

/* Keys of a check, run by src/agent/checks.c. */
static const struct row check_keys[] = {
	{"command", ROW_BYTES, .max = CHECK_COMMAND_MAX, .initial = "nothing",
	 .description = "What runs, as for the tool bash; green is exit code 0."},
	{"run_tests", ROW_VALUES, .initial = "nothing",
	 .description = "Instead: arguments of the tool run_tests; `{}` is all tests. Green is no "
			"failed test, and at least one."},
	{"timeout_s", ROW_SECONDS, .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .initial = "the tool's", .description = "Seconds it may take."},
	{0},
};

#define SECRETS(member) \
	.home = KEY_IN_POLICY, .offset = offsetof(struct policy_secrets, member)

static const struct row secrets_keys[] = {
	{"show", ROW_PATHS, .max = PATH_MAX - 1, SECRETS(show), .initial = "nothing",
	 .description =
		 "Folders and files whose content is shown as it is, such as `tests`."},
	{"files", ROW_PATHS, .max = PATH_MAX - 1, SECRETS(files), .initial = "nothing",
	 .description = "More files with lines `NAME=value`, beside `.env` and its kind."},
	{0},
};

const struct row keys_agent[] = {
	{"tools", ROW_NAMES, .max = CONFIG_NAME_MAX, POLICY(tools),
	 .initial = "every tool but the orchestration ones",
	 .description = "Tools the agent may call; it is offered no other."},
	{"base", ROW_PATH, .max = PATH_MAX - 1, POLICY(base), .initial = "the workspace",
	 .description = "Folder where relative entries of the next three start."},
	{"read", ROW_PATHS, .max = PATH_MAX - 1, POLICY(read), .initial = "the base",
	 .description =
		 "What may be read, beside what is writable and what the view always shows."},
	{"write", ROW_PATHS, .max = PATH_MAX - 1, POLICY(write), .initial = "nothing",
	 .description = "What may be written. A pattern (`*.md`) is taken for agents without a tool "
			"that runs commands."},
	{"blocked", ROW_PATHS, .max = PATH_MAX - 1, POLICY(blocked), .initial = "nothing",
	 .description =
		 "Hidden from file tools and commands alike; wins over `read` and `write`."},
	{"review", ROW_FLAG, POLICY(review), .initial = "false",
	 .description = "`true`: each session writes into a layer, which a person lands; "
			"`--no-review` beats it."},
	{"secrets", ROW_SECRETS, POLICY(secrets), .choices = "mask show",
	 .initial = "`\"mask\"`",
	 .description =
		 "`\"mask\"`: what a model gets has marks in the place of keys and passwords "
		 "([security.md](security.md#secrets)); `\"show\"`: it has all; or an object. "
		 "`glovebox exec` never masks.",
	 .rows = secrets_keys},
	{"cell_base", ROW_BYTES, .max = PATH_MAX + 64, POLICY(cell_base),
	 .initial = "`\"host\"`",
	 .description =
		 "The root of the cell in place of this machine's: `rootfs:DIR`, `image:REF`, "
		 "`oci:DIR:TAG`, `snapshot:NAME`, `devcontainer` ([bases.md](bases.md)). Everything may be written there, in memory that "
		 "goes with the cell; `read`, `write` and `blocked` are about folders of this machine."},
	{"cell_user", ROW_CHOICE, .choices = POLICY_CELL_USERS, POLICY(cell_user),
	 .initial = "`\"root\"`",
	 .description = "Who programs of a cell on a base are: user 0 without any right of root, or "
			"`plain`: the caller's own number."},
	{"scratch", ROW_FLAG, POLICY(scratch), .initial = "false",
	 .description = "`true`: programs may write what is only to be read, in a layer that goes with "
			"the cell; files on disk change below `write` alone."},
	{"env", ROW_VARIABLES, .max = KERNEL_ARGUMENT_MAX, .check = are_variables,
	 POLICY(environment), .initial = "nothing",
	 .description = "Variables for commands beside what the cell always sets: `NAME` passes "
			"yours, `NAME=value` sets one."},
	{"commands", ROW_EITHER, .check = are_commands, POLICY(commands),
	 .choices = "box list", .initial = "`\"box\"`",
	 .description =
		 "Which commands run: `\"box\"` any, `\"list\"` those of every preset, or an object.",
	 .rows = commands_keys},
	{"ask", ROW_NAMES, .max = CONFIG_NAME_MAX, POLICY(asks),
	 .choices = POLICY_ASKABLE, .initial = "nothing",
	 .description =
		 "What a person is asked for where it would be refused: `commands` that no rule "
		 "of a list lets run, hosts that `network` does not list, folders outside to `read` "
		 "or `write` ([approvals.md](approvals.md))."},
	{"network", ROW_HOSTS, .max = NETWORK_TEXT_MAX, .check = are_hosts,
	 POLICY(network), .initial = "nothing",
	 .description =
		 "What commands may reach: `host`, `host:port`, `*.suffix` (port 443 unless given) "
		 "through a proxy, `tcp://host:port` as a port of the cell's loopback."},
	{"publish", ROW_WORDS, .max = NETWORK_TEXT_MAX, .check = are_published,
	 POLICY(publish), .initial = "nothing",
	 .description =
		 "Ports of the cell that this machine reaches: `PORT`, `HOST:PORT` (HOST is the port "
		 "outside, `0` any free one), in front of it `own:` or an address to listen on "
		 "(127.0.0.1 unless given)."},
	{"credentials", ROW_NAMES, .max = CREDENTIAL_NAME_MAX, POLICY(credentials),
	 .initial = "none",
	 .description = "Keys of services that commands use and do not see: shipped names, or those of "
			"`credentials` at the top level."},
	{"limits", ROW_OBJECT, POLICY(limits), .initial = "see below",
	 .description = "Every number there is; each key is optional.",
	 .rows = config_limit_rows},
	{"description", ROW_BYTES, ROLE(description), .max = DESCRIPTION_MAX,
	 .initial = "nothing", .description = "What the agent is for, in a sentence."},
	{"model", ROW_BYTES, ROLE(model), .max = MODEL_MAX,
	 .initial = "the one of the run", .description = "Model to ask."},
	{"temperature", ROW_NUMBER, ROLE(temperature), .min = 0, .max = TEMPERATURE_MAX,
	 .initial = "the provider's own", .description = "Sampling temperature."},
	{"thinking_budget", ROW_COUNT, ROLE(thinking_budget), .min = THINKING_MIN,
	 .max = THINKING_MAX, .initial = "the provider's own",
	 .description =
		 "Tokens the model may think in one answer, where its API has such a bound."},
	{"mode", ROW_CHOICE, ROLE(mode), .choices = POLICY_MODES,
	 .initial = "that of the top level",
	 .description =
		 "How freely it works until the person says otherwise: `auto`, `ask` before each "
		 "write and command, or `plan`, in which nothing that it writes stays "
		 "([agents.md](agents.md))."},
	{"checks", ROW_CHECKS, .check = are_checks, ROLE(checks),
	 .max = CHECK_COMMAND_MAX, .initial = "none",
	 .description = "`{NAME: command}`, or an object for a command: what must be green before a run "
			"that changed files may finish ([agents.md](agents.md)).",
	 .rows = check_keys},
	{"may_delegate_to", ROW_NAMES, .max = CONFIG_NAME_MAX, ROLE(may_delegate_to),
	 .initial = "every agent",
	 .description = "Agents that it may hand tasks to, when it has the tool for that; each "
			"has to be there."},
	{"prompt", ROW_BYTES, ROLE(prompt), .max = PROMPT_MAX, .initial = "the role's",
	 .description = "System prompt; in a role's file the text below the front matter."},
	{"working_directory", ROW_BYTES, .home = KEY_KEPT, .max = PATH_BYTES_MAX,
	 .initial = "that of the top level",
	 .description = "Folder that plugins start in ([plugins.md](plugins.md))."},
	{0},
};

/* Keys by which a person adds models to the catalogue; model/catalogue.c reads them. */
static const struct row model_keys[] = {
	{"provider", ROW_BYTES, .max = MODEL_MAX, .initial = "not known",
	 .description = "Whose model it is: `anthropic`, `openai`."},
	{"context", ROW_COUNT, .min = 1, .max = CONTEXT_MAX, .initial = "not known",
	 .description = "Tokens of a whole conversation."},
	{"max_output", ROW_COUNT, .min = 1, .max = CONTEXT_MAX, .initial = "not known",
	 .description = "Tokens of one answer at most."},
	{"price_input", ROW_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "not known",
	 .description = "US dollars for a million tokens that are sent."},
	{"price_output", ROW_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "not known",
	 .description = "The same for tokens of an answer."},
	{"price_cached", ROW_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "`price_input`",
	 .description = "The same for tokens that the service had in its cache."},
	{"price_cache_write", ROW_NUMBER, .min = 0, .max = PRICE_MAX,
	 .initial = "`price_input`",
	 .description = "The same for tokens that it put into its cache."},
	{"long_prompt", ROW_COUNT, .min = 1, .max = CONTEXT_MAX, .initial = "none",
	 .description = "A request that sends more tokens than this costs the next four."},
	{"long_input", ROW_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "not known",
	 .description = "`price_input` of a long request."},
	{"long_output", ROW_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "not known",
	 .description = "`price_output` of a long request."},
	{"long_cached", ROW_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "`long_input`",
	 .description = "`price_cached` of a long request."},
	{"long_cache_write", ROW_NUMBER, .min = 0, .max = PRICE_MAX,
	 .initial = "`long_input`", .description = "`price_cache_write` of a long request."},
	{"tools", ROW_FLAG, .initial = "not known", .description = "It can call tools."},
	{"thinking", ROW_FLAG, .initial = "not known",
	 .description = "It thinks before it answers."},
	{"sight", ROW_FLAG, .initial = "not known",
	 .description = "It takes pictures; without it only their sizes are told."},
	{"source", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "Where these numbers are from."},
	{0},
};

static const struct row plugin_policy_keys[] = {
	{"allow_bash_tools", ROW_FLAG, .initial = "false",
	 .description = "`true`: the scripts that `plugins` names may be tools."},
	{"allow_toolboxes", ROW_FLAG, .initial = "false",
	 .description = "`true`: the toolboxes that `plugins` names may be tools."},
	{"bash_timeout_seconds", ROW_SECONDS, .min = SECONDS_MIN, .max = PLUGIN_SECONDS_MAX,
	 .initial = "60", .description = "Seconds one call of a plugin may take."},
	{"stream_stderr", ROW_FLAG, .initial = "false",
	 .description =
		 "`true`: shows what a plugin writes to standard error while it runs."},
	{"allowed_git_hosts", ROW_HOSTS, .max = NETWORK_TEXT_MAX, .check = are_hosts,
	 .initial = "the host that a source names",
	 .description =
		 "The only hosts that `git` sources may be fetched from; `[]` is none."},
	{"python", ROW_BYTES, .max = PATH_BYTES_MAX,
	 .initial = "the first python3 of the cell",
	 .description = "What plugins find in `AGENT_TOOL_PYTHON`."},
	{0},
};

static const struct row bash_tool_keys[] = {
	{"file", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A single script."},
	{"path", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A folder with an `agent_plugin.json`."},
	{"git", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A repository with one."},
	{"ref", ROW_BYTES, .max = COMMAND_WORD_MAX, .initial = "its default branch",
	 .description = "Tag, branch or commit of it: resolved once, and recorded."},
	{0},
};

static const struct row toolbox_keys[] = {
	{"file", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A single executable."},
	{"path", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A folder of them."},
	{0},
};

/* Keys of a plugin, each read by src/plugins/. */
/* A service of its own address, or one that is known by its name. */
static bool is_search(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	const bool has_url = value_member(value, "url") != NULL;
	const bool has_provider = value_member(value, "provider") != NULL;
	const char *url = value_text(value_member(value, "url"));

	(void)row;
	if (!has_url && !has_provider)
		return rows_refuse(problem, NULL, "needs `url` or `provider`");
	return url == NULL || strncmp(url, "https://", strlen("https://")) == 0 ||
	       strncmp(url, "http://", strlen("http://")) == 0 ||
	       rows_refuse(problem, &(struct rows_place){.key = "url"},
			   "must be the address of a server: https://searx.example/");
}

/* The names of language servers stand before what they find. */
static bool are_language_servers(const struct row *row, const struct value *value,
				 struct rows_problem *problem)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.";

	(void)row;
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const char *name = value_key(at);

		if (name[0] == '\0' || strlen(name) > CONFIG_NAME_MAX ||
		    name[strspn(name, letters)] != '\0')
			return rows_refuse(problem, &(struct rows_place){.key = name},
					   "the name of a language server is made of letters, "
					   "digits, \"_\", \"-\" and \".\"");
	}
	return true;
}

static bool are_patterns(const struct row *row, const struct value *value,
			 struct rows_problem *problem)
{
	struct err err = {0};

	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		if (!pattern_check(value_str(value_item(value, i)),
				   PATTERN_BRACES | PATTERN_BASENAME, &err))
			return rows_refuse(problem, &(struct rows_place){.index = i},
					   "%s", err.text);
	}
	return true;
}

#define IDLE_MAX_S 86400.0

static const struct row lsp_keys[] = {
	{"command", ROW_WORDS, true, .max = PATH_BYTES_MAX, .initial = "required",
	 .description =
		 "The program and its arguments; it speaks over standard input and output."},
	{"files", ROW_WORDS, true, .max = PATH_BYTES_MAX, .check = are_patterns,
	 .initial = "required",
	 .description = "Patterns of the files that it is for: `*.c`, `src/**/*.ts`."},
	{"idle_s", ROW_SECONDS, false, .max = IDLE_MAX_S, .initial = "600",
	 .description = "It is ended when it was not used for so long."},
	{0},
};

static const struct row search_keys[] = {
	{"url", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "that of the provider",
	 .description = "Address of a SearXNG server, or of what stands before a provider."},
	{"provider", ROW_CHOICE, .choices = "searxng brave tavily exa model",
	 .initial = "searxng",
	 .description = "Service; brave, tavily and exa need the credential of the same name; "
			"model is the service of the agent's model."},
	{0},
};

/* Fleets that share the jobs are told apart by their names. */
static bool are_fleets(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; value_kind(value) == VALUE_ARRAY && i < value_count(value); i++) {
		const struct rows_place place = {.index = i};
		const char *name = value_text(value_member(value_item(value, i), "name"));

		if (name == NULL)
			return rows_refuse(problem, &place, "needs a name");
		for (size_t j = 0; j < i; j++) {
			if (str_is(value_str(value_member(value_item(value, j), "name")),
				   name))
				return rows_refuse(problem, &place,
						   "has the name of another fleet");
		}
	}
	return true;
}

static const struct row fleet_keys[] = {
	{"url", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "none",
	 .description = "The NATS server, or several with commas between: `nats://HOST:4222`, "
			"`tls://…`."},
	{"store", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "none",
	 .description = "Where tasks and results are: a folder that all machines see, or "
			"`s3://BUCKET/PREFIX`."},
	{"name", ROW_BYTES, .max = CONFIG_NAME_MAX, .initial = "main",
	 .description = "One of several fleets at a server."},
	{"credentials", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "none",
	 .description = "File with NATS credentials, or with an nkey and its public key."},
	{"ca_file", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "those of the system",
	 .description = "Certificates of the authority that signed the server's."},
	{"certificate", ROW_BYTES, .max = PATH_BYTES_MAX, .initial = "none",
	 .description = "Our own certificate, for servers that ask for one."},
	{"key", ROW_BYTES, .max = PATH_BYTES_MAX,
	 .initial = "in the file of `certificate`", .description = "Its key."},
	{"replicas", ROW_COUNT, .min = 1, .max = FLEET_REPLICAS_MAX, .initial = "1",
	 .description = "Servers that keep each message, when the queue is made."},
	{"lease_s", ROW_SECONDS, .min = FLEET_LEASE_MIN, .max = FLEET_LEASE_MAX,
	 .initial = "120",
	 .description = "Seconds after which the task of a lost worker is given to another, when the "
			"queue is made."},
	{0},
};

static const struct row plugin_keys[] = {
	{"bash_tool", ROW_OBJECT, .initial = "nothing",
	 .description = "Scripts; one of `file`, `path` and `git`.", .rows = bash_tool_keys},
	{"toolbox", ROW_OBJECT, .initial = "nothing",
	 .description = "Executables that describe themselves; one of `file` and `path`.",
	 .rows = toolbox_keys},
	{0},
};

const struct row keys_config[] = {
	{"agents", ROW_ENTRIES, .max = ENTRIES_MAX, .check = are_agents,
	 .home = KEY_IN_CONFIG, .initial = "the shipped roles",
	 .description =
		 "`{NAME: entry}`; an entry overrides the shipped role of that name key by key.",
	 .rows = keys_agent},
	{"minimum_level", ROW_CHOICE, CONFIG(minimum_level), .choices = "L0 L2 L3",
	 .initial = "L3",
	 .description =
		 "Strength the cell must reach; below it nothing runs ([levels.md](levels.md))."},
	{"mode", ROW_CHOICE, CONFIG(mode), .choices = POLICY_MODES, .initial = "auto",
	 .description = "`mode` of the agents that name none."},
	{"plugins", ROW_SOURCES, .home = KEY_KEPT, .max = PATH_BYTES_MAX, .initial = "none",
	 .description = "Scripts that are tools ([plugins.md](plugins.md)): `\"bash:./folder\"`, "
			"`\"bash+git:URL#ref\"`, `\"toolbox:./folder\"`, or an object.",
	 .rows = plugin_keys},
	{"plugin_policy", ROW_OBJECT, .home = KEY_KEPT, .initial = "see below",
	 .description = "What plugins may do beside what their agent may.",
	 .rows = plugin_policy_keys},
	{"plugin_config", ROW_VALUES, .home = KEY_KEPT, .initial = "nothing",
	 .description =
		 "Values for the keys that plugins declare. Where `plugins` names some, "
		 "these keys may also stand at the top level and in an entry of `agents`, "
		 "which goes before ([plugins.md](plugins.md))."},
	{"working_directory", ROW_BYTES, .home = KEY_KEPT, .max = PATH_BYTES_MAX,
	 .initial = "the workspace",
	 .description = "Folder that plugins start in; relative to the workspace."},
	{"enabled_plugins", ROW_WORDS, .home = KEY_KEPT, .max = CONFIG_NAME_MAX,
	 .initial = "all",
	 .description =
		 "Ids of the plugins that are loaded, and no others; \"mail_*\" fits several."},
	{"disabled_plugins", ROW_WORDS, .home = KEY_KEPT, .max = CONFIG_NAME_MAX,
	 .initial = "none", .description = "Ids of plugins that are not loaded."},
	{"plugin_cache_dir", ROW_BYTES, .home = KEY_KEPT, .max = PATH_BYTES_MAX,
	 .initial = "`~/.local/state/glovebox/plugins`",
	 .description = "Folder of the copies that plugins run from."},
	{"mcpServers", ROW_VALUES, .home = KEY_KEPT, .initial = "none",
	 .description =
		 "`{NAME: {command, args, env}}` or `{NAME: {type, url, headers, oauth}}`, each "
		 "with `start_s`, `timeout_s` and `disabled`: programs that speak MCP over "
		 "standard input and output, started in a cell, and services that speak it over "
		 "HTTP; their tools are called `NAME_tool` ([servers.md](servers.md))."},
	{"hooks", ROW_VALUES, .home = KEY_KEPT, .initial = "none",
	 .description = "`{MOMENT: [{matcher, hooks: [{type, command, timeout, where, required}]}]}`: "
			"programs that are told what an agent does, and may refuse it "
			"([hooks.md](hooks.md))."},
	{"lsp", ROW_ENTRIES, .home = KEY_KEPT, .max = LANGUAGE_SERVERS_MAX,
	 .check = are_language_servers, .initial = "none",
	 .description = "`{NAME: {command, files, idle_s}}`: language servers, which are asked about the files that "
			"an agent changes ([lsp.md](lsp.md)).",
	 .rows = lsp_keys},
	{"models", ROW_ENTRIES, .home = KEY_KEPT, .max = ENTRIES_MAX, .check = are_models,
	 .initial = "the shipped catalogue",
	 .description = "`{NAME: entry}`: context and prices of models ([models.md](models.md)); an entry "
			"beats the shipped one key by key.",
	 .rows = model_keys},
	{"resolver", ROW_ADDRESS, .max = NETWORK_TEXT_MAX, .check = is_resolver,
	 CONFIG(resolver), .initial = "those of `/etc/resolv.conf`",
	 .description = "Name server that the proxy asks: an address, or `address:port`."},
	{"credentials", ROW_ENTRIES, .home = KEY_KEPT, .max = ENTRIES_MAX,
	 .check = credential_check_all, .initial = "the shipped ones",
	 .description = "`{NAME: entry}`: keys of services that a cell uses and does not see; an entry "
			"beats the shipped one key by key.",
	 .rows = credential_rows},
	{"fleet", ROW_OBJECTS, .home = KEY_KEPT, .min = 1, .max = FLEETS_MAX,
	 .check = are_fleets, .initial = "none",
	 .description = "Where `glovebox fleet` and `glovebox worker` find queue and store; a list: "
			"several fleets that share the jobs ([fleet.md](fleet.md)).",
	 .rows = fleet_keys},
	{"footer", ROW_NAMES, .home = KEY_KEPT, .max = CONFIG_NAME_MAX,
	 .choices = CONFIG_FOOTER_PARTS, .initial = "all, in this order",
	 .description = "What the last row of a conversation tells, in its order; `[]`: there is no "
			"such row ([terminal.md](terminal.md))."},
	{"memory", ROW_FLAG, .home = KEY_KEPT, .initial = "false",
	 .description = "Agents may note facts about a workspace for later sessions, which read them "
			"([extend.md](extend.md#memory))."},
	{"notify", ROW_ANY, .home = KEY_KEPT, .check = is_notification, .initial = "auto",
	 .description =
		 "How a person who looks elsewhere is told that a turn of over 10 s is over, or "
		 "that a question waits: auto, bell, off, or the words of a program "
		 "([terminal.md](terminal.md))."},
	{"reader", ROW_FLAG, .home = KEY_KEPT, .initial = "false",
	 .description = "Print for a screen reader: whole lines, nothing that changes, no boxes "
			"([terminal.md](terminal.md))."},
	{"search", ROW_OBJECT, .home = KEY_KEPT, .check = is_search,
	 .initial = "no `web_search`",
	 .description = "Where `web_search` searches ([tools.md](tools.md#the-web)).",
	 .rows = search_keys},
	{"service", ROW_OBJECT, .home = KEY_KEPT, .check = service_check,
	 .initial = "one cell for all clients, no records",
	 .description = "`mcp --http` as a service for many people ([service.md](service.md)), and what is "
			"recorded of all sessions ([audit.md](audit.md)).",
	 .rows = service_rows},
	{"theme", ROW_BYTES, .home = KEY_KEPT, .max = CONFIG_NAME_MAX, .initial = "auto",
	 .description = "Colours of a conversation: auto, dark, light, plain, or NAME of a file "
			"`themes/NAME.json` beside the configuration "
			"([terminal.md](terminal.md))."},
	{"thinking", ROW_CHOICE, .home = KEY_KEPT, .choices = "line show", .initial = "line",
	 .description = "What a terminal shows of the model's thinking: a line that says how long "
			"it took, or all of it, dim ([terminal.md](terminal.md))."},
	{"undo_space", ROW_SIZE, .check = is_size, CONFIG(undo_space),
	 .min = UNDO_SPACE_MIN, .max = 1024 * TEBI, .initial = "10G",
	 .description = "What undo keeps of all workspaces together; what is over it goes, the "
			"oldest first."},
	{0},
};

/* Append CHOICES (or NULL), each between OPEN and CLOSE. */
static void add_choices(const char *choices, const char *open, const char *close,
			struct buf *out)
{
	struct str rest = str_of(choices), choice;

	while (str_next_word(&rest, &choice))
		(void)buf_addf(out, "%s%s%.*s%s", choice.data == choices ? "" : ", ",
			       open, (int)choice.size, choice.data, close);
}

/* A kind in words; NULL: the row itself says more. */
static const char *words_of(enum row_kind kind)
{
	switch (kind) {
	case ROW_HOSTS:
		return "list of hosts";
	case ROW_ADDRESS:
		return "address";
	case ROW_ANY:
		return "text or list of texts";
	case ROW_ARGV:
		return "program and arguments";
	case ROW_PATH:
		return "path";
	case ROW_PATHS:
		return "list of paths";
	case ROW_VARIABLES:
		return "list of `NAME` or `NAME=value`";
	case ROW_FLAG:
		return "`true` or `false`";
	case ROW_WORDS:
		return "list of texts";
	case ROW_LIST:
		return "list of objects";
	case ROW_SOURCES:
		return "list of texts or objects";
	case ROW_OBJECTS:
		return "object, or list of objects";
	case ROW_OBJECT:
	case ROW_ENTRIES:
	case ROW_VALUES:
	case ROW_CHECKS:
		return "object";
	default:
		return NULL;
	}
}

/* Append a description of the values that KEY may have. */
static void describe_kind(const struct row *key, struct buf *out)
{
	switch (key->kind) {
	case ROW_BYTES:
		(void)buf_addf(out, "text of at most %g bytes", key->max);
		break;
	case ROW_NAMES:
		(void)buf_adds(out, key->choices ? "list of " : "list of names");
		add_choices(key->choices, "`", "`", out);
		break;
	case ROW_COUNT:
		(void)buf_addf(out, "whole number, %.0f to %.0f", key->min, key->max);
		break;
	case ROW_SIZE:
		(void)buf_adds(out, "size, ");
		keys_print_size(key->min, out);
		(void)buf_adds(out, " to ");
		keys_print_size(key->max, out);
		break;
	case ROW_SECONDS:
		(void)buf_addf(out, "seconds, %g to %.0f", key->min, key->max);
		break;
	case ROW_NUMBER:
		(void)buf_addf(out, "number, %g to %g", key->min, key->max);
		break;
	case ROW_CHOICE:
	case ROW_EITHER:
	case ROW_SECRETS:
		if (key->choices == NULL)
			(void)buf_addf(out, "text of at most %g bytes", key->max);
		add_choices(key->choices, "`\"", "\"`", out);
		(void)buf_adds(out, key->kind != ROW_CHOICE ? " or object" : "");
		break;
	default:
		(void)buf_adds(out, words_of(key->kind));
	}
}

/* Append the words of the row, else the number from DEFAULTS. */
static void describe_initial(const struct row *key, const struct policy_limits *defaults,
			     struct buf *out)
{
	const char *place = (const char *)defaults + key->offset;

	if (key->initial)
		(void)buf_adds(out, key->initial);
	else if (key->kind == ROW_SIZE)
		keys_print_size((double)*(const uint64_t *)(const void *)place, out);
	else if (key->kind == ROW_COUNT)
		(void)buf_addf(out, "%" PRIu64, *(const uint64_t *)(const void *)place);
	else
		(void)buf_addf(out, "%g", *(const double *)(const void *)place);
}

static void describe_rows(const char *title, const struct row *rows,
			  const struct policy_limits *defaults, struct buf *out)
{
	(void)buf_addf(out,
		       "### %s\n\n"
		       "| key | value | unless given | meaning |\n"
		       "| --- | --- | --- | --- |\n",
		       title);
	for (const struct row *key = rows; key->name; key++) {
		(void)buf_addf(out, "| `%s` | ", key->name);
		describe_kind(key, out);
		(void)buf_adds(out, " | ");
		describe_initial(key, defaults, out);
		(void)buf_addf(out, " | %s |\n", key->description);
	}
	(void)buf_adds(out, "\n");
}

bool config_keys_describe(struct buf *out)
{
	auto_policy struct policy *policy = policy_new(NULL, "/");
	const struct policy_limits *defaults = &policy->limits;

	describe_rows("Top level", keys_config, defaults, out);
	describe_rows("An entry of `agents`, and the front matter of a role", keys_agent,
		      defaults, out);
	describe_rows("An entry of `plugins`", plugin_keys, defaults, out);
	describe_rows("`bash_tool`", bash_tool_keys, defaults, out);
	describe_rows("`toolbox`", toolbox_keys, defaults, out);
	describe_rows("`plugin_policy`", plugin_policy_keys, defaults, out);
	describe_rows("An entry of `lsp`", lsp_keys, defaults, out);
	describe_rows("An entry of `models`", model_keys, defaults, out);
	describe_rows("An entry of `credentials`", credential_rows, defaults, out);
	describe_rows("A command of `from`", rows_find(credential_rows, "from")->rows,
		      defaults, out);
	describe_rows("`refresh`", rows_find(credential_rows, "refresh")->rows, defaults,
		      out);
	describe_rows("`service`", service_rows, defaults, out);
	describe_rows("`audit` of `service`", recorded_audit_rows, defaults, out);
	describe_rows("`otlp` of `service`", recorded_otlp_rows, defaults, out);
	describe_rows("`fleet`", fleet_keys, defaults, out);
	describe_rows("`limits`", config_limit_rows, defaults, out);
	describe_rows("`secrets`", secrets_keys, defaults, out);
	describe_rows("`commands`", commands_keys, defaults, out);
	describe_rows("A rule of `commands`", config_rule_rows, defaults, out);
	describe_rows("An entry of `checks`", check_keys, defaults, out);
	return !out->overflowed;
}

/* Says in which words a value does not fit the key table. */

static bool refuse_unknown(const struct rows_problem *problem, const char *pointer,
			   struct err *err)
{
	const char *nearest = problem->nearest;
	struct str key = str_of(problem->key);
	struct buf list, word;

	buf_init(&list, ERR_TEXT_MAX);
	buf_init(&word, 4 * QUOTED_MAX);
	for (const struct row *row = problem->row->rows; row->name; row++)
		(void)buf_addf(&list, "%s%s", row == problem->row->rows ? "" : ", ",
			       row->name);
	(void)text_clean(str_part(key, 0, text_character_border(key, QUOTED_MAX)), &word);
	(void)err_set(err, EINVAL, "%s: there is no key \"%s\"%s%s%s; the keys are %s",
		      pointer, word.data, nearest ? " (did you mean \"" : "",
		      nearest ? nearest : "", nearest ? "\"?)" : "", list.data);
	buf_fini(&word);
	buf_fini(&list);
	return false;
}

static const char *words_of_wanted(const struct rows_problem *problem)
{
	static const char *const words[] = {
		[VALUE_BOOLEAN] = "true or false", [VALUE_INTEGER] = "a whole number",
		[VALUE_REAL] = "a number",         [VALUE_STRING] = "text",
		[VALUE_ARRAY] = "a list of texts", [VALUE_OBJECT] = "an object",
	};
	const enum row_kind kind = problem->row->kind;

	if (problem->wanted == VALUE_ARRAY && (kind == ROW_LIST || kind == ROW_OBJECTS))
		return "a list of objects";
	if (problem->wanted == VALUE_ARRAY && kind == ROW_SOURCES)
		return "a list of texts or objects";
	return kind == ROW_EITHER || kind == ROW_SECRETS ? "text or an object"
							 : words[problem->wanted];
}

static bool refuse_kind(const struct rows_problem *problem, const char *pointer,
			struct err *err)
{
	if (problem->wanted == VALUE_INTEGER && value_is_number(problem->value))
		return err_set(err, EINVAL, "%s: must be a whole number, not %.15g",
			       pointer, value_number(problem->value));
	return err_set(err, EINVAL, "%s: must be %s, not %s", pointer,
		       words_of_wanted(problem),
		       value_kind_name(value_kind(problem->value)));
}

static bool refuse_bound(const struct rows_problem *problem, const char *pointer,
			 struct err *err)
{
	if (value_is_number(problem->value))
		return err_set(err, ERANGE, "%s: must be %.15g to %.15g, not %.15g",
			       pointer, problem->row->min, problem->row->max,
			       value_number(problem->value));
	return err_set(err, EINVAL,
		       value_kind(problem->value) == VALUE_STRING
			       ? "%s: is %zu bytes long, at most %.0f are taken"
			       : "%s: has %zu entries, at most %.0f are taken",
		       pointer, problem->size, problem->bound);
}

/* Does OBJECT have only keys of TABLE, each of the right kind and within its bounds? */
bool config_check_rows(const struct row *table, const struct value *object, struct err *err)
{
	const struct row whole = {.kind = ROW_OBJECT, .rows = table};
	struct rows_problem problem;
	const char *pointer = problem.pointer;

	if (rows_check(&whole, object, &problem))
		return true;
	if (problem.fault == ROWS_OTHER && pointer[0] == '\0')
		return err_set(err, EINVAL, "%s", problem.why.text);
	if (pointer[0] == '\0')
		pointer = "/";
	switch (problem.fault) {
	case ROWS_KIND:
		return refuse_kind(&problem, pointer, err);
	case ROWS_UNKNOWN:
		return refuse_unknown(&problem, pointer, err);
	case ROWS_MISSING:
		return err_set(err, EINVAL, "%s: needs \"%s\"", pointer, problem.row->name);
	case ROWS_EMPTY:
		return err_set(err, EINVAL, "%s: may not be empty", pointer);
	case ROWS_BELOW:
	case ROWS_ABOVE:
		return refuse_bound(&problem, pointer, err);
	case ROWS_NUL:
		return err_set(err, EINVAL, "%s: may not hold a NUL character", pointer);
	case ROWS_CHOICE:
		if (str_is(value_str(problem.value), "L1") &&
		    strcmp(problem.row->name, "minimum_level") == 0)
			return err_set(err, EINVAL, "%s: %s", pointer, CONFIG_FORMER_LEVEL);
		return err_set(err, EINVAL, "%s: must be one of: %s", pointer,
			       problem.row->choices);
	case ROWS_OTHER:
		break;
	}
	return err_set(err, EINVAL, "%s: %s", pointer, problem.why.text);
}

/* Stores checked values in the structs that the key table names. */

static void store_names(const struct value *value, struct policy_names *names)
{
	names->count = value_count(value);
	names->items = memory_array(names->count + 1, sizeof(*names->items));
	names->given = true;
	for (size_t i = 0; i < names->count; i++)
		names->items[i] = memory_copy(value_text(value_item(value, i)));
}

static void store_paths(const struct value *value, struct policy_paths *paths)
{
	paths->count = value_count(value);
	paths->items = memory_array(paths->count + 1, sizeof(*paths->items));
	paths->given = true;
	for (size_t i = 0; i < paths->count; i++)
		paths->items[i].text = memory_copy(value_text(value_item(value, i)));
}

static uint64_t size_of(const struct value *value)
{
	uint64_t bytes = (uint64_t)value_integer(value);

	bool fine = value_kind(value) != VALUE_STRING ||
		    text_parse_size(value_text(value), &bytes, NULL);

	assert(fine); /* config_check_rows has checked it */
	return fine ? bytes : 0;
}

static unsigned choice_of(const struct row *key, const struct value *value)
{
	struct str choices = str_of(key->choices), choice;

	for (unsigned index = 0; str_next_word(&choices, &choice); index++) {
		if (str_equal(value_str(value), choice))
			return index;
	}
	abort(); /* config_check_rows allows no other value */
}

static void keys_store(const struct row *rows, const struct value *object, int home,
		       void *target);

static void store_value(const struct row *key, const struct value *value, int home,
			void *place)
{
	switch (key->kind) {
	case ROW_BYTES:
	case ROW_ADDRESS:
		*(char **)place = memory_copy(value_text(value));
		break;
	case ROW_FLAG:
		*(bool *)place = value_is_true(value);
		break;
	case ROW_NAMES:
	case ROW_WORDS:
	case ROW_VARIABLES:
	case ROW_HOSTS:
		store_names(value, place);
		break;
	case ROW_PATH:
		((struct policy_path *)place)->text = memory_copy(value_text(value));
		break;
	case ROW_PATHS:
		store_paths(value, place);
		break;
	case ROW_COUNT:
		*(uint64_t *)place = (uint64_t)value_integer(value);
		break;
	case ROW_SIZE:
		*(uint64_t *)place = size_of(value);
		break;
	case ROW_SECONDS:
	case ROW_NUMBER:
		*(double *)place = value_number(value);
		break;
	case ROW_CHOICE:
		*(unsigned *)place = choice_of(key, value);
		break;
	case ROW_OBJECT:
		keys_store(key->rows, value, home, place);
		break;
	case ROW_EITHER:
		*(struct commands **)place = commands_new(value);
		break;
	case ROW_SECRETS:
		if (value_kind(value) == VALUE_OBJECT)
			keys_store(key->rows, value, home, place);
		else
			((struct policy_secrets *)place)->shown =
				str_is(value_str(value), "show");
		break;
	case ROW_CHECKS:
		*(struct value **)place = value_copy(value);
		break;
	default:
		break;
	}
}

/*
 * Store the members of OBJECT (checked before) whose row lives in HOME into the struct
 * at TARGET. The places of absent members stay unchanged. Former values of a place are
 * not freed.
 */
static void keys_store(const struct row *rows, const struct value *object, int home,
		       void *target)
{
	for (const struct row *key = rows; key->name; key++) {
		const struct value *value = value_member(object, key->name);

		if (value && key->home == home)
			store_value(key, value, home, (char *)target + key->offset);
	}
}

/* The other names of shipped roles, and their search. */

const struct role_name role_names[] = {
	{"VajbCoder", "coder"},     {"TestAgent", "tester"}, {"ReviewAgent", "reviewer"},
	{"DocAgent", "documenter"}, {"KIK", "orchestrator"}, {0},
};

/* The shipped role for which NAME is another name; NULL: none. */
static const char *role_names_role(const char *name)
{
	for (const struct role_name *row = role_names; row->other; row++) {
		if (strcmp(row->other, name) == 0)
			return row->role;
	}
	return NULL;
}

/* The other name of the shipped role ROLE; NULL: it has none. */
static const char *role_names_other(const char *role)
{
	for (const struct role_name *row = role_names; row->role; row++) {
		if (strcmp(row->role, role) == 0)
			return row->other;
	}
	return NULL;
}

/* The levels, in the order of the key's choices. */
static const unsigned levels[] = {0, 2, 3};

/* Only a full cell is enough, unless the user says otherwise. */
enum { MINIMUM_LEVEL = 2 };

struct config *config_new(void)
{
	struct config *config = memory_alloc(sizeof(*config));

	config->minimum_level = MINIMUM_LEVEL;
	return config;
}

static void config_free(struct config *config)
{
	if (!config)
		return;
	free(config->resolver);
	value_free(config->root);
	value_free(config->agents);
	value_free(config->roles);
	value_free(config->overrides);
	value_free(config->plugin_keys);
	value_free(config->agent_plugin_keys);
	for (size_t i = 0; i < config->known_count; i++)
		free(config->known[i]);
	free(config->known);
	free(config);
}

void config_auto_free(struct config **config)
{
	config_free(*config);
}

/*
 * Move the members of OBJECT without a row in ROWS into a new object; NULL: there are
 * none.
 */
static struct value *take_strange(const struct row *rows, struct value *object)
{
	struct value *strange = NULL;

	for (void *at = value_first(object); at; at = value_next(object, at)) {
		if (rows_find(rows, value_key(at)))
			continue;
		if (!strange)
			strange = value_new_object();
		value_set(strange, value_key(at), value_ref(value_at(at)));
	}
	for (void *at = value_first(strange); at; at = value_next(strange, at))
		value_remove(object, value_key(at));
	return strange;
}

/*
 * The keys that plugins declare are known only when the plugins are loaded. Until then,
 * keep all keys without a row separately, if there are plugins at all.
 */
static void take_plugin_keys(struct value *root, struct config *config)
{
	struct value *agents = value_member(root, "agents");

	if (value_count(value_member(root, "plugins")) == 0)
		return;
	config->plugin_keys = take_strange(keys_config, root);
	for (void *at = value_first(agents); at; at = value_next(agents, at)) {
		struct value *strange = take_strange(keys_agent, value_at(at));

		if (!strange)
			continue;
		if (!config->agent_plugin_keys)
			config->agent_plugin_keys = value_new_object();
		value_set(config->agent_plugin_keys, value_key(at), strange);
	}
}

bool config_parse(struct str text, const char *source, struct config **config,
		  struct err *err)
{
	auto_value struct value *root = NULL;
	auto_config struct config *made = config_new();
	struct value *agents;

	if (text.size > CONFIG_TEXT_MAX)
		return err_set(err, EFBIG, "%s: is larger than %d bytes", source,
			       CONFIG_TEXT_MAX);
	if (str_trim(text).size > 0) {
		if (!value_parse(text, VALUE_COMMENTS, &root, err))
			return err_while(err, "%s", source);
		take_plugin_keys(root, made);
		if (!config_check_rows(keys_config, root, err))
			return err_while(err, "%s", source);
		keys_store(keys_config, root, KEY_IN_CONFIG, made);
		made->root = value_ref(root);
		agents = value_member(root, "agents");
		if (agents)
			made->agents = value_ref(agents);
	}
	*config = made;
	made = NULL;
	return true;
}

unsigned config_minimum_level(const struct config *config)
{
	return levels[config ? config->minimum_level : MINIMUM_LEVEL];
}

const struct value *config_value(const struct config *config, const char *key)
{
	return value_member(config ? config->root : NULL, key);
}

uint64_t config_undo_space(const struct config *config)
{
	return config ? config->undo_space : 0;
}

const char *config_resolver(const struct config *config)
{
	return config ? config->resolver : NULL;
}

void config_know_agent(struct config *config, const char *name)
{
	config->known = memory_grow(config->known, config->known_count + 1,
				    sizeof(*config->known));
	config->known[config->known_count++] = memory_copy(name);
}

static bool is_known(const struct config *config, const char *name)
{
	for (size_t i = 0; config && i < config->known_count; i++) {
		if (strcmp(config->known[i], name) == 0)
			return true;
	}
	return false;
}

const char *config_role_name(const struct config *config, const char *agent)
{
	const char *role = role_names_role(agent);

	return role && !is_known(config, agent) ? role : agent;
}

/* The other name under which entries of ROLE may be given, or NULL. */
static const char *other_name(const struct config *config, const char *role)
{
	const char *other = role_names_other(role);

	return other && !is_known(config, other) ? other : NULL;
}

/* The entry of AGENT among ENTRIES, under either of its names. */
static const struct value *entry_in(const struct value *entries,
				    const struct config *config, const char *agent)
{
	const char *role = config_role_name(config, agent);
	const char *other = other_name(config, role);
	const struct value *entry = value_member(entries, role);

	return entry || !other ? entry : value_member(entries, other);
}

bool config_check_entry(const struct value *entry, const char *where, struct err *err)
{
	return config_check_rows(keys_agent, entry, err) ||
	       (where ? err_while(err, "%s", where) : false);
}

bool config_check_policy(const struct value *entry, const char *where, struct err *err)
{
	if (!config_check_entry(entry, where, err))
		return false;
	for (const struct row *key = keys_agent; key->name; key++) {
		if (key->home != KEY_IN_POLICY && value_member(entry, key->name))
			return err_set(err, EINVAL,
				       "%s%s/%s: is a key of an agent, not of a policy",
				       where ? where : "", where ? ": " : "", key->name);
	}
	return true;
}

bool config_parse_policy(struct str text, const char *source, struct value **entry,
			 struct err *err)
{
	auto_value struct value *root = NULL;

	if (text.size > CONFIG_TEXT_MAX)
		return err_set(err, EFBIG, "%s: is larger than %d bytes", source,
			       CONFIG_TEXT_MAX);
	if (!value_parse(text, VALUE_COMMENTS, &root, err))
		return err_while(err, "%s", source);
	if (!config_check_policy(root, source, err))
		return false;
	*entry = root;
	root = NULL;
	return true;
}

bool config_says(const struct config *config, const char *agent)
{
	return config && (entry_in(config->agents, config, agent) ||
			  entry_in(config->roles, config, agent));
}

void config_set_role(struct config *config, const char *agent, const struct value *entry)
{
	if (!config->roles)
		config->roles = value_new_object();
	value_set(config->roles, config_role_name(config, agent), value_copy(entry));
}

void config_set_agent(struct config *config, const char *agent, const struct value *entry)
{
	const char *role = config_role_name(config, agent);
	const char *other = other_name(config, role);

	if (!config->agents)
		config->agents = value_new_object();
	if (other)
		value_remove(config->agents, other);
	value_set(config->agents, role, value_copy(entry));
}

const struct value *config_find(const struct config *config,
				const struct value *shipped_role, const char *agent,
				const char *key, const char *inner, enum config_layer *layer)
{
	const struct value *entries[] = {
		[LAYER_ROLE] = shipped_role,
		[LAYER_USER] = entry_in(config ? config->roles : NULL, config, agent),
		[LAYER_CONFIG] = entry_in(config ? config->agents : NULL, config, agent),
		[LAYER_PERSON] = entry_in(config ? config->overrides : NULL, config, agent),
	};

	for (int at = LAYER_PERSON; at > LAYER_DEFAULT; at--) {
		const struct value *found = value_member(entries[at], key);

		if (found && inner)
			found = value_member(found, inner);
		if (found) {
			*layer = (enum config_layer)at;
			return found;
		}
	}
	*layer = LAYER_DEFAULT;
	return NULL;
}

bool config_check_name(const char *name, struct err *err)
{
	size_t length = name ? strlen(name) : 0;
	bool fine = length > 0 && length <= CONFIG_NAME_MAX;

	for (size_t i = 0; fine && i < length; i++)
		fine = isalnum((unsigned char)name[i]) || name[i] == '-' || name[i] == '_';
	if (fine)
		return true;
	return err_set(err, EINVAL,
		       "the name of an agent is made of 1 to %d letters, digits, '-' and '_'",
		       CONFIG_NAME_MAX);
}

/*
 * Merge OVER and UNDER, key by key; either may be NULL. An object inside an entry
 * (`limits`) is merged key by key too, for DEPTH levels; a value below them is replaced as
 * a whole. The result shares its values with OVER and UNDER.
 */
static struct value *merge_levels(const struct value *under, const struct value *over,
				  unsigned depth)
{
	struct value *merged;

	if (under && value_count(over) == 0)
		return value_ref(under);
	merged = value_new_object();
	for (void *at = value_first(under); at; at = value_next(under, at))
		value_set(merged, value_key(at), value_ref(value_at(at)));
	for (void *at = value_first(over); at; at = value_next(over, at)) {
		const struct value *old = value_member(merged, value_key(at));
		bool both = value_kind(old) == VALUE_OBJECT &&
			    value_kind(value_at(at)) == VALUE_OBJECT;
		struct value *now = both && depth > 0
					    ? merge_levels(old, value_at(at), depth - 1)
					    : value_ref(value_at(at));

		value_set(merged, value_key(at), now);
	}
	return merged;
}

static struct value *merge(const struct value *under, const struct value *over)
{
	return merge_levels(under, over, 1);
}

bool config_override(struct config *config, const char *agent, const struct value *entry,
		     const char *where, struct err *err)
{
	const char *name = config_role_name(config, agent ? agent : POLICY_NAME_DEFAULT);

	if (!config_check_name(name, err) || !config_check_entry(entry, where, err))
		return false;
	if (!config->overrides)
		config->overrides = value_new_object();
	value_set(config->overrides, name,
		  merge(value_member(config->overrides, name), entry));
	return true;
}

static void lay_over(struct value *values, const struct value *more)
{
	for (void *at = value_first(more); at; at = value_next(more, at))
		value_set(values, value_key(at), value_copy(value_at(at)));
}

/* The only key with a row that plugins use besides their own keys. */
static void lay_folder_over(struct value *values, const struct value *folder)
{
	if (folder)
		value_set(values, "working_directory", value_copy(folder));
}

struct value *config_plugin_values(const struct config *config, const char *agent)
{
	struct value *values = value_new_object();
	enum config_layer layer;

	if (!config)
		return values;
	lay_folder_over(values, config_value(config, "working_directory"));
	lay_over(values, config->plugin_keys);
	lay_over(values, config_value(config, "plugin_config"));
	lay_folder_over(values, config_find(config, NULL, agent, "working_directory",
					    NULL, &layer));
	lay_over(values, entry_in(config->agent_plugin_keys, config, agent));
	return values;
}

const struct value *config_own_value(const struct config *config, const char *agent,
				     const char *key)
{
	const struct value *value =
		value_member(entry_in(config ? config->agents : NULL, config, agent), key);

	return value ? value : config_value(config, key);
}

static size_t count_rows(const struct row *rows)
{
	size_t count = 0;

	while (rows[count].name)
		count++;
	return count;
}

/* Check KEYS, which stand at POINTER beside the keys of ROWS: each must be in ASKED. */
static bool check_strange(const struct row *rows, const struct value *keys,
			  const char *pointer, const struct value *asked, struct err *err)
{
	void *at = value_first(keys);
	size_t count = 0;
	const char *nearest;
	struct buf name;

	while (at && value_has_text(asked, value_key(at)))
		at = value_next(keys, at);
	if (!at)
		return true;
	auto_free const char **names =
		memory_array(count_rows(rows) + value_count(asked) + 1, sizeof(*names));
	for (const struct row *key = rows; key->name; key++)
		names[count++] = key->name;
	for (size_t i = 0; i < value_count(asked); i++)
		names[count++] = value_text(value_item(asked, i));
	nearest = text_nearest(value_key(at), names);
	buf_init(&name, ERR_TEXT_MAX);
	text_add_name(&name, str_part(str_of(value_key(at)), 0, CONFIG_NAME_MAX));
	(void)err_set(err, CONFIG_WRONG,
		      "the configuration: %s: there is no key \"%s\"%s%s%s, and no plugin "
		      "declares it in its config_keys",
		      pointer, name.data, nearest ? " (did you mean \"" : "",
		      nearest ? nearest : "", nearest ? "\"?)" : "");
	buf_fini(&name);
	return false;
}

bool config_check_plugin_keys(const struct config *config, const struct value *asked,
			      struct err *err)
{
	const struct value *agents = config ? config->agent_plugin_keys : NULL;
	char pointer[sizeof("/agents/") + CONFIG_NAME_MAX];

	if (!config)
		return true;
	for (void *at = value_first(agents); at; at = value_next(agents, at)) {
		(void)snprintf(pointer, sizeof(pointer), "/agents/%s", value_key(at));
		if (!check_strange(keys_agent, value_at(at), pointer, asked, err))
			return false;
	}
	return check_strange(keys_config, config->plugin_keys, "/", asked, err);
}

static void add_name(const char **names, size_t *count, const char *name)
{
	for (size_t i = 0; i < *count; i++) {
		if (strcmp(names[i], name) == 0)
			return;
	}
	names[(*count)++] = name;
}

const char **config_agents(const struct config *config)
{
	const struct value *agents = config ? config->agents : NULL;
	const struct value *roles = config ? config->roles : NULL;
	size_t known = config ? config->known_count : 0;
	const char **names =
		memory_array(value_count(agents) + value_count(roles) + known + 2,
			     sizeof(*names));
	size_t count = 0;

	add_name(names, &count, POLICY_NAME_DEFAULT);
	for (size_t i = 0; i < known; i++)
		add_name(names, &count, config->known[i]);
	for (void *at = value_first(agents); at; at = value_next(agents, at))
		add_name(names, &count, config_role_name(config, value_key(at)));
	for (void *at = value_first(roles); at; at = value_next(roles, at))
		add_name(names, &count, value_key(at));
	str_sort(names, count);
	return names;
}

static bool refuse_agent(const struct config *config, const char *agent, struct err *err)
{
	auto_free const char **names = config_agents(config);
	const char *nearest;
	struct buf list;

	buf_init(&list, ERR_TEXT_MAX / 2);
	for (size_t i = 0; names[i]; i++)
		(void)buf_addf(&list, "%s%s", i ? ", " : "", names[i]);
	nearest = text_nearest(agent, names);
	(void)err_set(err, ENOENT, "there is no agent \"%.64s\"%s%s%s; there are: %s",
		      agent, nearest ? " (did you mean \"" : "", nearest ? nearest : "",
		      nearest ? "\"?)" : "", list.data);
	buf_fini(&list);
	return false;
}

bool config_check_agent(const struct config *config, const char *agent, struct err *err)
{
	auto_free const char **names = config_agents(config);
	const char *role = config_role_name(config, agent);

	for (size_t i = 0; names[i]; i++) {
		if (strcmp(names[i], role) == 0)
			return true;
	}
	return refuse_agent(config, agent, err);
}

bool config_entry(const struct config *config, const struct value *shipped_role,
		  const char *agent, struct value **entry, struct err *err)
{
	const struct value *agents = config ? config->agents : NULL;
	const struct value *of_config = entry_in(agents, config, agent);
	const struct value *of_person =
		entry_in(config ? config->overrides : NULL, config, agent);
	const struct value *of_user =
		entry_in(config ? config->roles : NULL, config, agent);
	const char *name = config_role_name(config, agent);
	const char *other = other_name(config, name);
	auto_value struct value *role = NULL;
	auto_value struct value *below = NULL;

	if (!shipped_role && !of_user && !of_config &&
	    strcmp(agent, POLICY_NAME_DEFAULT) != 0)
		return refuse_agent(config, agent, err);
	if (other && value_member(agents, name) && value_member(agents, other))
		return err_set(err, EEXIST,
			       "agents.%s and agents.%s are two names of one role: write their "
			       "keys into one entry",
			       name, other);
	if (shipped_role && !config_check_entry(shipped_role, agent, err))
		return false;
	role = merge(shipped_role, of_user);
	below = merge(role, of_config);
	*entry = merge(below, of_person);
	return true;
}

/* When only the shipped role names a `write` entry, it may be missing on disk. */
static void mark_shipped(const struct config *config, const struct value *shipped_role,
			 const char *agent, struct policy_paths *write)
{
	enum config_layer layer;

	(void)config_find(config, shipped_role, agent, "write", NULL, &layer);
	if (layer != LAYER_ROLE)
		return;
	for (size_t i = 0; i < write->count; i++)
		write->items[i].shipped = true;
}

bool config_policy(const struct config *config, const struct value *shipped_role,
		   const char *agent, const char *workspace, struct policy **policy,
		   struct err *err)
{
	const char *name = agent ? agent : POLICY_NAME_DEFAULT;
	auto_value struct value *entry = NULL;
	auto_policy struct policy *made = NULL;

	assert(workspace && workspace[0] == '/');
	if (!config_entry(config, shipped_role, name, &entry, err))
		return false;
	made = policy_new(name, workspace);
	keys_store(keys_agent, entry, KEY_IN_POLICY, made);
	mark_shipped(config, shipped_role, name, &made->write);
	if (!policy_paths_normal(made, workspace, err))
		return false;
	*policy = made;
	made = NULL;
	return true;
}

bool config_role(const struct config *config, const struct value *shipped_role,
		 const char *agent, struct config_role *role, struct err *err)
{
	const char *name = agent ? agent : POLICY_NAME_DEFAULT;
	auto_value struct value *entry = NULL;

	if (!config_entry(config, shipped_role, name, &entry, err))
		return false;
	*role = (struct config_role){
		.temperature = CONFIG_TEMPERATURE_ABSENT,
		.mode = config != NULL ? config->mode : MODE_AUTO,
	};
	keys_store(keys_agent, entry, KEY_IN_ROLE, role);
	return true;
}

void config_role_fini(struct config_role *role)
{
	free(role->description);
	free(role->model);
	free(role->prompt);
	value_free(role->checks);
	policy_names_fini(&role->may_delegate_to);
	*role = (struct config_role){.temperature = CONFIG_TEMPERATURE_ABSENT};
}
