/* keys: the table itself, and the list of keys that the manual shows. */
#include "policy/keys.h"

#include "policy/config_store.h"
#include "policy/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MEBI (1024.0 * 1024)
#define GIBI (1024.0 * MEBI)
#define TEBI (1024.0 * GIBI)

/* Bounds that keep a slip of the pen from looking like a wish. */
#define ITERATIONS_MAX  10000
#define LOOP_MAX        1000
#define TOKENS_MAX      1e12
#define MONEY_MIN       0.0001
#define MONEY_MAX       1e6
#define SECONDS_MAX     (7.0 * 24 * 3600) /* a week: longer is no limit */
#define SECONDS_MIN     0.001             /* deadlines are kept in milliseconds */
#define GRACE_MAX       60                /* it is taken from the time of the work */
#define PIDS_MIN        8                 /* a shell, a pipeline and a compiler */
#define PIDS_MAX        32768             /* pid_max of a small kernel */
#define FILE_SIZE_MIN   MEBI              /* below it no linker works */
#define CONTENT_MIN     1024 /* a file of a screen is still read and written */
#define TMP_MIN         (64 * 1024.0)
#define MEMORY_MIN      (16 * MEBI) /* a shell and the program it starts */
#define TEMPERATURE_MAX 2           /* what every provider takes at most */
#define CONTEXT_MAX     1e9         /* a thousand times the largest there is */
#define PRICE_MAX       1e6         /* a dollar a token */
#define THINKING_MIN    1024        /* below it no provider thinks at all */
#define THINKING_MAX    1e6

enum {
	DESCRIPTION_MAX = 1024,
	MODEL_MAX = 256,
	PROMPT_MAX = 256 << 10, /* far more than a model heeds */
	COMMAND_WORD_MAX = 256,
	COMMAND_EXAMPLE_MAX = 1024,
	CHECK_COMMAND_MAX = 4096,
	PATH_BYTES_MAX = 4095,
	PLUGIN_SECONDS_MAX = 600,
	UNDO_SPACE_MIN = 1 << 20,
};

#define LIMIT(member)  KEY_IN_POLICY, offsetof(struct policy_limits, member)
#define POLICY(member) KEY_IN_POLICY, offsetof(struct policy, member)
#define ROLE(member)   KEY_IN_ROLE, offsetof(struct config_role, member)
#define CONFIG(member) KEY_IN_CONFIG, offsetof(struct config, member)

static const struct key limit_keys[] = {
	{"iterations", KEY_COUNT, LIMIT(iterations), .min = 1, .max = ITERATIONS_MAX,
	 .description = "Answers of the model in one run."},
	{"tokens", KEY_COUNT, LIMIT(tokens), .min = 1, .max = TOKENS_MAX,
	 .initial = "no limit", .description = "Tokens of one run, in and out."},
	{"money", KEY_NUMBER, LIMIT(money), .min = MONEY_MIN, .max = MONEY_MAX,
	 .initial = "no limit",
	 .description = "US dollars one run may cost; the model's price must be known ([models.md]"
			"(models.md))."},
	{"loop_warn", KEY_COUNT, LIMIT(loop_warn), .min = 0, .max = LOOP_MAX,
	 .description =
		 "From which identical call on that made no progress the model is told so "
		 "([agents.md](agents.md#circles)); likewise from the third timeout in a row. 0: "
		 "never."},
	{"loop_stop", KEY_COUNT, LIMIT(loop_stop), .min = 0, .max = LOOP_MAX,
	 .description = "The identical call without progress that ends the run; likewise the "
			"fifth timeout in a row. 0: none does."},
	{"wall_s", KEY_SECONDS, LIMIT(wall_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .description =
		 "Seconds one command may take, unless its call asks for another "
		 "time. (`glovebox exec` has no limit unless this is said, or `--timeout`.)"},
	{"shell_s", KEY_SECONDS, LIMIT(shell_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .description = "Seconds all commands of one run may take together."},
	{"run_s", KEY_SECONDS, LIMIT(run_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .description = "Seconds one run may take, from its prompt to its last answer."},
	{"grace_s", KEY_SECONDS, LIMIT(grace_s), .min = SECONDS_MIN, .max = GRACE_MAX,
	 .description = "Seconds between TERM and KILL, taken from before the deadline."},
	{"quiet_s", KEY_SECONDS, LIMIT(quiet_s), .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .initial = "no limit",
	 .description = "Seconds without a byte of output after which a command is ended. (Not for "
			"`glovebox exec`, whose output is the caller's.)"},
	{"pids", KEY_COUNT, LIMIT(pids), .min = PIDS_MIN, .max = PIDS_MAX,
	 .description = "Processes and threads of one command."},
	{"cell_pids", KEY_COUNT, LIMIT(cell_pids), .min = PIDS_MIN, .max = PIDS_MAX,
	 .description = "Processes and threads of all commands of one cell together."},
	{"memory", KEY_SIZE, LIMIT(memory), .min = MEMORY_MIN, .max = 1024 * TEBI,
	 .initial = "4G, or half of the machine's when that is less",
	 .description =
		 "Memory of one command's processes together; one that takes more is ended."},
	{"file_size", KEY_SIZE, LIMIT(file_size), .min = FILE_SIZE_MIN,
	 .max = 1024 * TEBI, .description = "Largest file a command may write."},
	{"read_bytes", KEY_SIZE, LIMIT(read_bytes), .min = CONTENT_MIN, .max = GIBI,
	 .initial = "no limit",
	 .description =
		 "Largest file that `read_file` and `batch_read` show whole, and most of a "
		 "larger one in one call: there a range is asked for. Commands read what "
		 "they like."},
	{"write_bytes", KEY_SIZE, LIMIT(write_bytes), .min = CONTENT_MIN, .max = GIBI,
	 .initial = "no limit",
	 .description = "Bytes of new text that one call of `write_file`, `edit_file` or "
			"`apply_patch` may bring. Files of commands: `file_size`."},
	{"tmp", KEY_SIZE, LIMIT(tmp), .min = TMP_MIN, .max = TEBI,
	 .description = "Room in the cell's `/tmp`, and as much again in `/dev/shm`; both are held "
			"in memory."},
	{"free_space", KEY_SIZE, LIMIT(free_space), .min = 0, .max = 1024 * TEBI,
	 .initial = "1G, or 5 % of the file system when that is less",
	 .description = "What must stay free on the file system of the workspace; a command that "
			"takes from it is ended. 0 is no limit."},
	{0},
};

/* Of a rule; command_rule.c reads them. A list of a rule is short: people write it. */
static const struct key rule_keys[] = {
	{"program", KEY_TEXT, .max = COMMAND_WORD_MAX, .initial = "required",
	 .description = "Its name as it is typed, or several: `phpunit,vendor/bin/phpunit`."},
	{"subcommand", KEY_TEXT, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description = "Words that have to follow; each may be several: `analyse,analyze`."},
	{"options", KEY_TEXTS, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description =
		 "Options behind these: `-x`, `--name`, `--name=KIND` (also `--name V`; of one "
		 "letter `-x V`, and `-xV` for numbers and choices), `--name[=KIND]` where the "
		 "value may be missing, `-number` for a dash and any number (`-20`). KIND is `text`, `number`, `path`, or choices: `a,b`."},
	{"global", KEY_TEXTS, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description = "Options before the subcommand, in the same form."},
	{"operands", KEY_TEXTS, .max = COMMAND_WORD_MAX, .initial = "none",
	 .description = "The other arguments in their order: `KIND`, `KIND?`, `KIND*`, `KIND+`, and `--`, "
			"behind which everything is one."},
	{"executes", KEY_TEXTS, .max = COMMAND_WORD_MAX, .initial = "nothing",
	 .description =
		 "Words that name a file to run or load, a text to execute, a program to start: options in "
		 "the form of `options`, and what operands begin with (`SHELL=`). No other "
		 "word of a rule grants these."},
	{"insert", KEY_TEXTS, .max = COMMAND_WORD_MAX, .initial = "nothing",
	 .description = "Words that are put in behind the subcommand when it runs."},
	{"insert_global", KEY_TEXTS, .max = COMMAND_WORD_MAX, .initial = "nothing",
	 .description = "The same behind the program."},
	{"runs_code", KEY_FLAG, .initial = "false",
	 .description =
		 "It runs code of the project or of the model: the cell contains that, no rule."},
	{"match", KEY_TEXTS, .max = COMMAND_EXAMPLE_MAX, .initial = "none",
	 .description = "Commands that fit, tried when the configuration is read."},
	{"not_match", KEY_TEXTS, .max = COMMAND_EXAMPLE_MAX, .initial = "none",
	 .description = "Commands that do not, likewise."},
	{0},
};

static const struct key commands_keys[] = {
	{"profile", KEY_CHOICE, .choices = "box list",
	 .initial = "`list`; `box` where only `deny` and `ask` are given",
	 .description = "`box`: anything runs that `deny` does not hold. `list`: what fits a rule, without "
			"a shell."},
	{"deny", KEY_LIST, .initial = "none",
	 .description = "Rules of what never runs, in every profile. Of a rule that denies or asks only "
			"what it names has to be there.",
	 .rows = rule_keys},
	{"ask", KEY_LIST, .initial = "none",
	 .description = "Rules of what a person is asked for each time, unless one of `deny` holds; where "
			"nobody can be asked it is refused.",
	 .rows = rule_keys},
	{"allow", KEY_LIST, .initial = "none",
	 .description = "Rules of what runs: one's own, tried before the presets. In a box they run "
			"without the question about what destroys much.",
	 .rows = rule_keys},
	{"presets", KEY_NAMES, .initial = "none",
	 .description =
		 "Shipped lists: `c`, `git`, `go`, `node`, `php`, `python`, `rust`, `text`."},
	{"rules", KEY_LIST, .initial = "none",
	 .description = "The older name of `allow`; both may be there.", .rows = rule_keys},
	{"runs_code", KEY_FLAG, .initial = "true",
	 .description = "`false` leaves out every rule that is marked so."},
	{0},
};

/* Of a check; src/agent/checks.c runs them. */
static const struct key check_keys[] = {
	{"command", KEY_TEXT, .max = CHECK_COMMAND_MAX, .initial = "nothing",
	 .description = "What runs, as for the tool bash; green is exit code 0."},
	{"run_tests", KEY_VALUES, .initial = "nothing",
	 .description = "Instead: arguments of the tool run_tests; `{}` is all tests. Green is no "
			"failed test, and at least one."},
	{"timeout_s", KEY_SECONDS, .min = SECONDS_MIN, .max = SECONDS_MAX,
	 .initial = "the tool's", .description = "Seconds it may take."},
	{0},
};

const struct key keys_agent[] = {
	{"tools", KEY_NAMES, POLICY(tools),
	 .initial = "every tool but the orchestration ones",
	 .description = "Tools the agent may call; it is offered no other."},
	{"base", KEY_PATH, POLICY(base), .initial = "the workspace",
	 .description = "Folder where relative entries of the next three start."},
	{"read", KEY_PATHS, POLICY(read), .initial = "the base",
	 .description =
		 "What may be read, beside what is writable and what the view always shows."},
	{"write", KEY_PATHS, POLICY(write), .initial = "nothing",
	 .description = "What may be written. A pattern (`*.md`) is taken for agents without a tool "
			"that runs commands."},
	{"blocked", KEY_PATHS, POLICY(blocked), .initial = "nothing",
	 .description =
		 "Hidden from file tools and commands alike; wins over `read` and `write`."},
	{"scratch", KEY_FLAG, POLICY(scratch), .initial = "false",
	 .description = "`true`: programs may write what is only to be read, in a layer that goes with "
			"the cell; files on disk change below `write` alone."},
	{"env", KEY_VARIABLES, POLICY(environment), .initial = "nothing",
	 .description = "Variables for commands beside what the cell always sets: `NAME` passes "
			"yours, `NAME=value` sets one."},
	{"commands", KEY_COMMANDS, POLICY(commands), .choices = "box list",
	 .initial = "`\"box\"`",
	 .description =
		 "Which commands run: `\"box\"` any, `\"list\"` those of every preset, or an object.",
	 .rows = commands_keys},
	{"ask", KEY_NAMES, POLICY(asks), .choices = POLICY_ASKABLE, .initial = "nothing",
	 .description =
		 "What a person is asked for where it would be refused: `commands` that no rule "
		 "of a list lets run, hosts that `network` does not list, folders outside to `read` "
		 "or `write` ([approvals.md](approvals.md))."},
	{"network", KEY_HOSTS, POLICY(network), .initial = "nothing",
	 .description =
		 "What commands may reach: `host`, `host:port`, `*.suffix` (port 443 unless given) "
		 "through a proxy, `tcp://host:port` as a port of the cell's loopback."},
	{"limits", KEY_ROWS, POLICY(limits), .initial = "see below",
	 .description = "Every number there is; each key is optional.", .rows = limit_keys},
	{"description", KEY_TEXT, ROLE(description), .max = DESCRIPTION_MAX,
	 .initial = "nothing", .description = "What the agent is for, in a sentence."},
	{"model", KEY_TEXT, ROLE(model), .max = MODEL_MAX,
	 .initial = "the one of the run", .description = "Model to ask."},
	{"temperature", KEY_NUMBER, ROLE(temperature), .min = 0, .max = TEMPERATURE_MAX,
	 .initial = "the provider's own", .description = "Sampling temperature."},
	{"thinking_budget", KEY_COUNT, ROLE(thinking_budget), .min = THINKING_MIN,
	 .max = THINKING_MAX, .initial = "the provider's own",
	 .description =
		 "Tokens the model may think in one answer, where its API has such a bound."},
	{"checks", KEY_CHECKS, ROLE(checks), .max = CHECK_COMMAND_MAX, .initial = "none",
	 .description = "`{NAME: command}`, or an object for a command: what must be green before a run "
			"that changed files may finish ([agents.md](agents.md)).",
	 .rows = check_keys},
	{"may_delegate_to", KEY_NAMES, ROLE(may_delegate_to), .initial = "every agent",
	 .description = "Agents that it may hand tasks to, when it has the tool for that; each "
			"has to be there."},
	{"prompt", KEY_TEXT, ROLE(prompt), .max = PROMPT_MAX, .initial = "the role's",
	 .description = "System prompt; in a role's file the text below the front matter."},
	{"working_directory", KEY_TEXT, KEY_KEPT, .max = PATH_BYTES_MAX,
	 .initial = "that of the top level",
	 .description = "Folder that plugins start in ([plugins.md](plugins.md))."},
	{0},
};

/* Keys by which a person adds models to the catalogue; model/catalogue.c reads them. */
static const struct key model_keys[] = {
	{"provider", KEY_TEXT, .max = MODEL_MAX, .initial = "not known",
	 .description = "Whose model it is: `anthropic`, `openai`."},
	{"context", KEY_COUNT, .min = 1, .max = CONTEXT_MAX, .initial = "not known",
	 .description = "Tokens of a whole conversation."},
	{"max_output", KEY_COUNT, .min = 1, .max = CONTEXT_MAX, .initial = "not known",
	 .description = "Tokens of one answer at most."},
	{"price_input", KEY_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "not known",
	 .description = "US dollars for a million tokens that are sent."},
	{"price_output", KEY_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "not known",
	 .description = "The same for tokens of an answer."},
	{"price_cached", KEY_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "`price_input`",
	 .description = "The same for tokens that the service had in its cache."},
	{"price_cache_write", KEY_NUMBER, .min = 0, .max = PRICE_MAX,
	 .initial = "`price_input`",
	 .description = "The same for tokens that it put into its cache."},
	{"long_prompt", KEY_COUNT, .min = 1, .max = CONTEXT_MAX, .initial = "none",
	 .description = "A request that sends more tokens than this costs the next four."},
	{"long_input", KEY_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "not known",
	 .description = "`price_input` of a long request."},
	{"long_output", KEY_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "not known",
	 .description = "`price_output` of a long request."},
	{"long_cached", KEY_NUMBER, .min = 0, .max = PRICE_MAX, .initial = "`long_input`",
	 .description = "`price_cached` of a long request."},
	{"long_cache_write", KEY_NUMBER, .min = 0, .max = PRICE_MAX,
	 .initial = "`long_input`", .description = "`price_cache_write` of a long request."},
	{"tools", KEY_FLAG, .initial = "not known", .description = "It can call tools."},
	{"thinking", KEY_FLAG, .initial = "not known",
	 .description = "It thinks before it answers."},
	{"source", KEY_TEXT, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "Where these numbers are from."},
	{0},
};

static const struct key plugin_policy_keys[] = {
	{"allow_bash_tools", KEY_FLAG, .initial = "false",
	 .description = "`true`: the scripts that `plugins` names may be tools."},
	{"allow_toolboxes", KEY_FLAG, .initial = "false",
	 .description = "`true`: the toolboxes that `plugins` names may be tools."},
	{"bash_timeout_seconds", KEY_SECONDS, .min = SECONDS_MIN, .max = PLUGIN_SECONDS_MAX,
	 .initial = "60", .description = "Seconds one call of a plugin may take."},
	{"stream_stderr", KEY_FLAG, .initial = "false",
	 .description =
		 "`true`: shows what a plugin writes to standard error while it runs."},
	{"allowed_git_hosts", KEY_HOSTS, .initial = "the host that a source names",
	 .description =
		 "The only hosts that `git` sources may be fetched from; `[]` is none."},
	{"python", KEY_TEXT, .max = PATH_BYTES_MAX,
	 .initial = "the first python3 of the cell",
	 .description = "What plugins find in `AGENT_TOOL_PYTHON`."},
	{0},
};

static const struct key bash_tool_keys[] = {
	{"file", KEY_TEXT, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A single script."},
	{"path", KEY_TEXT, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A folder with an `agent_plugin.json`."},
	{"git", KEY_TEXT, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A repository with one."},
	{"ref", KEY_TEXT, .max = COMMAND_WORD_MAX, .initial = "its default branch",
	 .description = "Tag, branch or commit of it: resolved once, and recorded."},
	{0},
};

static const struct key toolbox_keys[] = {
	{"file", KEY_TEXT, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A single executable."},
	{"path", KEY_TEXT, .max = PATH_BYTES_MAX, .initial = "nothing",
	 .description = "A folder of them."},
	{0},
};

/* One of them; each is read by src/plugins/. */
static const struct key plugin_keys[] = {
	{"bash_tool", KEY_ROWS, .initial = "nothing",
	 .description = "Scripts; one of `file`, `path` and `git`.", .rows = bash_tool_keys},
	{"toolbox", KEY_ROWS, .initial = "nothing",
	 .description = "Executables that describe themselves; one of `file` and `path`.",
	 .rows = toolbox_keys},
	{0},
};

const struct key keys_config[] = {
	{"agents", KEY_ENTRIES, KEY_IN_CONFIG, .initial = "the shipped roles",
	 .description =
		 "`{NAME: entry}`; an entry overrides the shipped role of that name key by key.",
	 .rows = keys_agent},
	{"minimum_level", KEY_CHOICE, CONFIG(minimum_level), .choices = "L0 L1 L2 L3",
	 .initial = "L3",
	 .description =
		 "Strength the cell must reach; below it nothing runs ([levels.md](levels.md))."},
	{"plugins", KEY_SOURCES, KEY_KEPT, .max = PATH_BYTES_MAX, .initial = "none",
	 .description = "Scripts that are tools ([plugins.md](plugins.md)): `\"bash:./folder\"`, "
			"`\"bash+git:URL#ref\"`, `\"toolbox:./folder\"`, or an object.",
	 .rows = plugin_keys},
	{"plugin_policy", KEY_ROWS, KEY_KEPT, .initial = "see below",
	 .description = "What plugins may do beside what their agent may.",
	 .rows = plugin_policy_keys},
	{"plugin_config", KEY_VALUES, KEY_KEPT, .initial = "nothing",
	 .description =
		 "Values for the keys that plugins declare. Where `plugins` names some, "
		 "these keys may also stand at the top level and in an entry of `agents`, "
		 "which goes before ([plugins.md](plugins.md))."},
	{"working_directory", KEY_TEXT, KEY_KEPT, .max = PATH_BYTES_MAX,
	 .initial = "the workspace",
	 .description = "Folder that plugins start in; relative to the workspace."},
	{"enabled_plugins", KEY_TEXTS, KEY_KEPT, .max = CONFIG_NAME_MAX, .initial = "all",
	 .description =
		 "Ids of the plugins that are loaded, and no others; \"mail_*\" fits several."},
	{"disabled_plugins", KEY_TEXTS, KEY_KEPT, .max = CONFIG_NAME_MAX,
	 .initial = "none", .description = "Ids of plugins that are not loaded."},
	{"plugin_cache_dir", KEY_TEXT, KEY_KEPT, .max = PATH_BYTES_MAX,
	 .initial = "`~/.local/state/glovebox/plugins`",
	 .description = "Folder of the copies that plugins run from."},
	{"mcpServers", KEY_VALUES, KEY_KEPT, .initial = "none",
	 .description =
		 "`{NAME: {command, args, env, start_s, timeout_s, disabled}}`: programs that speak MCP "
		 "over standard input and output, started in a cell; their tools are called "
		 "`NAME_tool` ([servers.md](servers.md))."},
	{"models", KEY_ENTRIES, KEY_KEPT, .max = MODEL_MAX,
	 .initial = "the shipped catalogue",
	 .description = "`{NAME: entry}`: context and prices of models ([models.md](models.md)); an entry "
			"beats the shipped one key by key.",
	 .rows = model_keys},
	{"resolver", KEY_RESOLVER, CONFIG(resolver), .initial = "those of `/etc/resolv.conf`",
	 .description = "Name server that the proxy asks: an address, or `address:port`."},
	{"undo_space", KEY_SIZE, CONFIG(undo_space), .min = UNDO_SPACE_MIN,
	 .max = 1024 * TEBI, .initial = "10G",
	 .description = "What undo keeps of all workspaces together; what is over it goes, the "
			"oldest first."},
	{0},
};

void keys_print_size(double bytes, struct buf *out)
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

/* CHOICES (or NULL), each between OPEN and CLOSE. */
static void add_choices(const char *choices, const char *open, const char *close,
			struct buf *out)
{
	struct str rest = str_of(choices), choice;

	while (str_next_word(&rest, &choice))
		(void)buf_addf(out, "%s%s%.*s%s", choice.data == choices ? "" : ", ",
			       open, (int)choice.size, choice.data, close);
}

/* A kind in words; NULL: its row says more. */
static const char *words_of(enum key_kind kind)
{
	switch (kind) {
	case KEY_HOSTS:
		return "list of hosts";
	case KEY_RESOLVER:
		return "address";
	case KEY_PATH:
		return "path";
	case KEY_PATHS:
		return "list of paths";
	case KEY_VARIABLES:
		return "list of `NAME` or `NAME=value`";
	case KEY_FLAG:
		return "`true` or `false`";
	case KEY_TEXTS:
		return "list of texts";
	case KEY_LIST:
		return "list of objects";
	case KEY_SOURCES:
		return "list of texts or objects";
	case KEY_COMMANDS:
		return "`\"box\"`, `\"list\"` or object";
	case KEY_ROWS:
	case KEY_ENTRIES:
	case KEY_VALUES:
	case KEY_CHECKS:
		return "object";
	case KEY_TEXT:
	case KEY_NAMES:
	case KEY_COUNT:
	case KEY_SIZE:
	case KEY_SECONDS:
	case KEY_NUMBER:
	case KEY_CHOICE:
		break;
	}
	return NULL;
}

/* Append in words which values KEY may have. */
static void describe_kind(const struct key *key, struct buf *out)
{
	switch (key->kind) {
	case KEY_TEXT:
		(void)buf_addf(out, "text of at most %g bytes", key->max);
		break;
	case KEY_NAMES:
		(void)buf_adds(out, key->choices ? "list of " : "list of names");
		add_choices(key->choices, "`", "`", out);
		break;
	case KEY_COUNT:
		(void)buf_addf(out, "whole number, %.0f to %.0f", key->min, key->max);
		break;
	case KEY_SIZE:
		(void)buf_adds(out, "size, ");
		keys_print_size(key->min, out);
		(void)buf_adds(out, " to ");
		keys_print_size(key->max, out);
		break;
	case KEY_SECONDS:
		(void)buf_addf(out, "seconds, %g to %.0f", key->min, key->max);
		break;
	case KEY_NUMBER:
		(void)buf_addf(out, "number, %g to %g", key->min, key->max);
		break;
	case KEY_CHOICE:
		add_choices(key->choices, "`\"", "\"`", out);
		break;
	default:
		(void)buf_adds(out, words_of(key->kind));
	}
}

/* The words of the row, else the number that stands in DEFAULTS. */
static void describe_initial(const struct key *key, const struct policy_limits *defaults,
			     struct buf *out)
{
	const char *place = (const char *)defaults + key->offset;

	if (key->initial)
		(void)buf_adds(out, key->initial);
	else if (key->kind == KEY_SIZE)
		keys_print_size((double)*(const uint64_t *)(const void *)place, out);
	else if (key->kind == KEY_COUNT)
		(void)buf_addf(out, "%" PRIu64, *(const uint64_t *)(const void *)place);
	else
		(void)buf_addf(out, "%g", *(const double *)(const void *)place);
}

static void describe_rows(const char *title, const struct key *rows,
			  const struct policy_limits *defaults, struct buf *out)
{
	(void)buf_addf(out,
		       "### %s\n\n"
		       "| key | value | unless given | meaning |\n"
		       "| --- | --- | --- | --- |\n",
		       title);
	for (const struct key *key = rows; key->name; key++) {
		(void)buf_addf(out, "| `%s` | ", key->name);
		describe_kind(key, out);
		(void)buf_adds(out, " | ");
		describe_initial(key, defaults, out);
		(void)buf_addf(out, " | %s |\n", key->description);
	}
	(void)buf_adds(out, "\n");
}

bool keys_describe(struct buf *out)
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
	describe_rows("An entry of `models`", model_keys, defaults, out);
	describe_rows("`limits`", limit_keys, defaults, out);
	describe_rows("`commands`", commands_keys, defaults, out);
	describe_rows("A rule of `commands`", rule_keys, defaults, out);
	describe_rows("An entry of `checks`", check_keys, defaults, out);
	return !out->overflowed;
}
