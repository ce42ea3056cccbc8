/*
 * policy: what one agent may do, and the verdict on one call. This module opens no file.
 * It compares paths as text, component by component. view/shape.c resolves each path of a
 * policy on disk once, before the cell is built, and stores the real path in the policy
 * (policy_set_path). A verdict that nobody has filled in denies: VERDICT_DENY is zero.
 *
 * policy_intersect is the only code that decides what two policies grant together.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command_harm;
struct commands;
struct network_publish;
struct value;

/* One entry of base, read, write or blocked. */
struct policy_path {
	char *text; /* as written in the configuration, for sentences; NULL: not given */
	char *path; /* absolute and normal after policy_paths_normal, else NULL */
	/* only matching paths below `path` (PATTERN_BASENAME); NULL: all */
	char *pattern;
	bool shipped; /* from a shipped role: a missing `write` folder is made */
	/*
	 * Links are followed only within this many bytes of `path` (policy_intersect);
	 * 0: everywhere.
	 */
	size_t trunk;
};

struct policy_paths {
	struct policy_path *items;
	size_t count;
	bool given; /* set by the configuration or a role, even if empty */
};

struct policy_names {
	char **items;
	size_t count;
	bool given;
};

void policy_names_fini(struct policy_names *names);

/*
 * Secrets in what a model gets (tool/mask.h). The policy says which of them have marks; the
 * session makes the marks.
 */
struct policy_secrets {
	bool shown; /* nothing is masked */
	/* files in these paths are shown as they are */
	struct policy_paths show;
	struct policy_paths files; /* more files of NAME=value lines */
};

/* A path that the view shows to every agent: /usr, /etc, the cell's /tmp. */
struct policy_shown {
	char *path;
	bool writable;
};

/* Limits on the paths that a message may advise a person to add to `read` or `write`. */
enum policy_advice {
	/* not this path or a folder above it: too much, or refused */
	ADVICE_NOT_WHOLE = 1,
	/* not this path or anything in it: no entry helps, or it would open too much */
	ADVICE_NOTHING,
	ADVICE_NOT_WRITTEN, /* not this path or anything in it for `write`: the system */
	ADVICE_WHOLE, /* always this whole path: a part of a toolchain does not run */
};

struct policy_advised {
	char *path;
	enum policy_advice advice;
};

#define POLICY_BY_MACHINE UINT64_MAX

/*
 * All numbers of a policy. policy_new fills in the defaults (reasons: policy.c). 0
 * means no limit for `tokens`, `quiet_s`, `free_space`, `read_bytes`, `write_bytes`,
 * `loop_warn` and `loop_stop`. POLICY_BY_MACHINE: the number depends on this machine
 * (view/shape.h).
 */
struct policy_limits {
	uint64_t iterations; /* answers of the model in one run */
	uint64_t tokens;     /* in one run, in and out */
	double money;        /* US dollars in one run */
	double wall_s;       /* one command, unless its call asks for another time */
	double shell_s;      /* all commands of one run together */
	double run_s;        /* one run, from its prompt to its last answer */
	double grace_s;      /* between TERM and KILL, before the deadline */
	double quiet_s;      /* a command is ended after printing nothing for so long */
	uint64_t pids;       /* processes of one command */
	uint64_t cell_pids;  /* of all commands of one cell together */
	uint64_t memory;     /* bytes of one command's processes together */
	uint64_t file_size;  /* bytes of one file that a command writes */
	/* bytes of a file that one call of a tool shows; 0: no limit */
	uint64_t read_bytes;
	/* bytes of text that one call of a file tool writes; 0: no limit */
	uint64_t write_bytes;
	uint64_t tmp; /* bytes of the cell's /tmp, and of its /dev/shm */
	/* bytes that must stay free on the workspace's file system */
	uint64_t free_space;
	uint64_t layer;   /* bytes that the layer of a review may hold (view/review.h) */
	uint64_t writers; /* delegates that write at the same time; 1: in the workspace */
	uint64_t watches; /* folders that a session watches for changes */
	/*
	 * Of one cell with everything in it; 0: no limit. All but `net` need a control
	 * group (cell/groups.h); a cell that cannot have it is not made.
	 */
	double cpus;       /* processors at the same time */
	double cpu_s;      /* seconds of all processors together */
	uint64_t written;  /* bytes to disks */
	uint64_t io_write; /* bytes a second to each disk */
	uint64_t net;      /* bytes of the network, both ways */
	/*
	 * Identical calls without progress (agent/agent.h): at the first number the
	 * model is warned, at the second the run ends.
	 */
	uint64_t loop_warn, loop_stop;
};

/*
 * How freely an agent works. A mode takes rights away and never gives any: in MODE_ASK a
 * person is asked before each write, notes included, and each command, in MODE_PLAN nothing
 * that the agent writes stays. The table is the only list of the modes: the command line,
 * the configuration, the terminal and the clients of the Agent Client Protocol have their
 * words from it.
 */

/* A later one allows less. */
enum policy_mode { MODE_AUTO, MODE_ASK, MODE_PLAN };
enum { MODES = MODE_PLAN + 1 };

/* Their names, in this order, separated by blanks. */
#define POLICY_MODES "auto ask plan"

struct policy_mode_row {
	const char *name, *title, *description;
	/* what the model is told when the person goes over to it */
	const char *told;
};
extern const struct policy_mode_row policy_modes[MODES];

/* False: TEXT (or NULL) is no mode. */
bool policy_mode_parse(const char *text, enum policy_mode *mode);
/* The one that allows less. */
enum policy_mode policy_mode_stricter(enum policy_mode a, enum policy_mode b);

/* The user that programs of a cell on a base take themselves for. */
enum policy_cell_user { CELL_USER_ROOT, CELL_USER_PLAIN };

/* Its names, in this order, separated by blanks. */
#define POLICY_CELL_USERS "root plain"

struct policy {
	char *name;      /* of the agent */
	char *workspace; /* absolute */
	char *at; /* where the cell shows it besides (view/shape.h); NULL: nowhere */
	/* not given: every tool (policy_check_tools fills them in) */
	struct policy_names tools;
	/* they were filled in; a later check fills in the tools that exist then */
	bool every_tool;
	struct policy_path base;
	struct policy_paths read, write, blocked;
	struct policy_secrets secrets;
	/*
	 * true: programs write to a temporary layer over read-only paths, which ends
	 * with the cell
	 */
	bool scratch;
	bool review; /* each session writes into a layer (view/review.h) */
	/* the folders below the view (docs/bases.md); NULL or "host": this machine's */
	char *cell_base;
	enum policy_cell_user cell_user;
	enum policy_mode mode; /* set by policy_set_mode */
	/* NAME or NAME=value (policy_check_variable), for programs in the cell */
	struct policy_names environment;
	struct commands *commands; /* commands that may run (commands.h); NULL: any */
	/* rules of the person's for commands that no list has (rules.h): "git push" */
	struct policy_names always;
	struct policy_names network; /* checked entries as in network.h */
	/*
	 * Ports of the cell that this machine reaches, as in network.h. The last
	 * `publish_said` ones are of flags.
	 */
	struct policy_names publish;
	size_t publish_said;
	struct policy_names credentials; /* names, as in credentials/credential.h */
	/*
	 * "commands", "network", "read", "write": instead of a refusal a person is
	 * asked. When no person is there, call policy_ask_nobody.
	 */
	struct policy_names asks;
	struct policy_shown *shown;
	size_t shown_count;
	struct policy_advised *advised;
	size_t advised_count;
	struct policy_limits limits;
};

/* The agent of a run that names no agent. */
#define POLICY_NAME_DEFAULT "default"

/*
 * A policy with the default limits that allows nothing. NAME NULL: POLICY_NAME_DEFAULT.
 */
struct policy *policy_new(const char *name, const char *workspace);
void policy_free(struct policy *policy);
void policy_auto_free(struct policy **policy);
#define auto_policy __attribute__((cleanup(policy_auto_free)))

/*
 * Every view shows PATH (absolute, normal). Tools may read there, and write when
 * WRITABLE.
 */
void policy_show(struct policy *policy, const char *path, bool writable);

/* Sentences about PATH (absolute, normal) and paths around it follow ADVICE. */
void policy_advise(struct policy *policy, const char *path, enum policy_advice advice);

/*
 * Fill in `path` of each entry. Relative entries start at the base and must stay
 * beneath it; a relative base starts at WORKSPACE and must stay beneath that. Splits
 * patterns off `write` entries. `read` is the base unless it is given. A second call
 * changes nothing.
 */
bool policy_paths_normal(struct policy *policy, const char *workspace, struct err *err);

/* Replace the path of ENTRY by REAL (absolute, normal), its path resolved on disk. */
void policy_set_path(struct policy_path *entry, const char *real);

/* Is PATH the home of a user, judged by its name only? */
bool policy_is_home(const char *path);

/*
 * Let POLICY, whose paths are normal (policy_paths_normal), read PATH (absolute, normal) too,
 * and write there when WRITES.
 */
void policy_add_folder(struct policy *policy, const char *path, bool writes);
/* Let POLICY run what the rule WORDS says (rules.h), beside the commands of its list. */
void policy_add_always(struct policy *policy, const char *words);

/* The effects of a tool. enum tool_effects (tool/tool.h) has the same values. */
enum policy_effects {
	POLICY_READS = 1,
	POLICY_WRITES = 2,
	POLICY_RUNS = 4,
	POLICY_NOTES = 8
};

/* The parts of a tool that a policy needs. */
struct policy_tool {
	const char *name;
	const char *aliases;  /* blank-separated, or NULL */
	unsigned effects;     /* enum policy_effects */
	bool only_when_named; /* not part of "every tool" (orchestration, internal) */
	bool unlisted;        /* not listed to anybody (internal) */
	bool plans;           /* part of MODE_PLAN, and of no other mode */
};

/*
 * Check `tools` against the COUNT existing TOOLS: an unknown name is refused with the
 * nearest one, an alias becomes the name, "not given" becomes every tool. Refuses a
 * pattern in `write` for an agent with a tool that runs commands, because the kernel
 * knows no patterns. In MODE_PLAN tools that only write, files or notes, are left out.
 */
bool policy_check_tools(struct policy *policy, const struct policy_tool *tools,
			size_t count, struct err *err);
/* Behind policy_check_tools: POLICY has the tool NAME as well. */
void policy_add_tool(struct policy *policy, const char *name);
/*
 * May `env` have ENTRY ("NAME" or "NAME=value")? ERR says why not. It quotes only a
 * valid name, because the rest may be a secret.
 */
bool policy_check_variable(const char *entry, struct err *err);

/*
 * Add ENTRY (as in network.h) to the hosts of POLICY. WHERE names its origin in
 * sentences.
 */
bool policy_add_network(struct policy *policy, const char *entry, const char *where,
			struct err *err);

/*
 * Add ENTRY (as in network.h) to the published ports of POLICY, because a flag says so,
 * which may name no other address than 127.0.0.1.
 */
bool policy_add_publish(struct policy *policy, const char *entry, struct err *err);
/* Read the entries of `publish`. ENTRIES has room for NETWORK_PUBLISHED_MAX of them. */
bool policy_read_publish(const struct policy *policy, struct network_publish *entries,
			 struct err *err);

bool policy_has_tool(const struct policy *policy, const char *name);

/* The key of the mode: the rule of a verdict that MODE_ASK gives ends with it. */
#define POLICY_MODE_KEY "mode"
/* The words allowed in `ask`, separated by blanks. */
#define POLICY_ASKABLE "commands network read write"
/* Ask the person for WHAT as well. WHERE names its origin in sentences. */
bool policy_add_ask(struct policy *policy, const char *what, const char *where,
		    struct err *err);
bool policy_asks(const struct policy *policy, const char *what);
/* No person is there to be asked: refuse instead of asking. */
void policy_ask_nobody(struct policy *policy);

/*
 * POLICY, whose paths are normal, holds in MODE from now on. MODE_PLAN takes its `write` away,
 * sets `scratch`, and wants no `review` and no folder to write: there is no way back. Between
 * the other modes there is.
 */
void policy_set_mode(struct policy *policy, enum policy_mode mode);

/*
 * Make a new policy with the rights that POLICY and BOUNDS both grant, and with the
 * name and base of POLICY. It has: tools, variables, hosts, credentials and published
 * ports of both; the stricter mode; paths that both show or let be written; blocked paths of either; secrets
 * shown where both show them; `scratch` when no layer would cover a path that one of them
 * protects; the base of BOUNDS, and CELL_USER_PLAIN where one has it; commands that fit
 * both lists; the stricter of each limit. Call policy_paths_normal and policy_check_tools on both before. A number wins
 * over POLICY_BY_MACHINE, so settle the limits of both before when that matters. Two
 * different patterns are left out: the result grants never more, perhaps less. Entries
 * may still be links; a target below the wider one of two entries is refused when the
 * cell is shaped. `ask` is left out: a denial stays one.
 */
struct policy *policy_intersect(const struct policy *policy, const struct policy *bounds);
/*
 * A policy of its own with all rights of POLICY. It asks nobody, and is made as the intersection with
 * itself, so that no key of a policy can be missing in it.
 */
struct policy *policy_copy(const struct policy *policy);

struct policy_request_path {
	const char *path; /* absolute, lexically normal; anything else is denied */
	bool writes;
	/* a person will be asked for its folder: only `blocked` is checked */
	bool wanted;
};

struct policy_request {
	const char *tool; /* the name, not an alias */
	unsigned effects; /* enum policy_effects */
	const struct policy_request_path *paths;
	size_t path_count;
	struct str command; /* shell text to run; data NULL: none */
	/* in place of `command`: one program with its arguments, NULL-ended; or NULL */
	const char *const *argv;
	const char *folder; /* absolute: the working folder; NULL: the workspace */
	bool by_front;      /* the front's own call, about which MODE_ASK does not ask */
};

enum verdict_answer { VERDICT_DENY = 0, VERDICT_ASK, VERDICT_ALLOW };

enum { VERDICT_TEXT_MAX = 2048, VERDICT_RULE_MAX = 128 };

struct verdict {
	enum verdict_answer answer;
	/* for the model: the rule and the remedy; "" if allowed */
	char because[VERDICT_TEXT_MAX];
	char rule[VERDICT_RULE_MAX]; /* "agents.tester.write"; "" if allowed */
	/*
	 * The commands that run in place of the request's command, without a shell: a
	 * list of objects with `join` (command.h) and `argv`. NULL: the command itself.
	 * The caller frees it.
	 */
	struct value *plan;
	/* with VERDICT_ASK: the command runs anyway when nobody can be asked */
	bool or_runs;
	/*
	 * the harm of the command, even when it is allowed (command.h); NULL: no
	 * great harm
	 */
	const struct command_harm *harm;
	/* name of the matching rule of `deny` or `ask` ("git push"); "": none */
	char by[VERDICT_RULE_MAX];
	/*
	 * with VERDICT_ASK: the path of the request that lies outside; NULL: the
	 * command is asked for
	 */
	const struct policy_request_path *outside;
};

/*
 * As path_normal, for TEXT that comes from a program or a model of a cell: a path at the place
 * `at` becomes the one in the workspace. All verdicts, rules and records are about that one.
 */
bool policy_normal(const struct policy *policy, const char *base, const char *text,
		   struct buf *out);

/*
 * The verdict on PATH for any tool. `rule` as above; `because` is only a clause that
 * says how to allow it. LAYERED: for a program, which with `scratch` may write over
 * read-only paths. A path that is not absolute and normal is allowed, because the
 * policy cannot judge it.
 */
void policy_judge_path(const struct policy *policy, const char *path, bool writes,
		       bool layered, struct verdict *verdict);

/*
 * The verdict of POLICY on REQUEST. A pure function. A denial wins over everything
 * else.
 */
void policy_decide(const struct policy *policy, const struct policy_request *request,
		   struct verdict *verdict);

/* Functions by which policy.c and commands.c fill in a verdict. */

/* Begin an empty sentence with room for everything that a verdict may quote. */
void verdict_begin(struct buf *because);
/*
 * Copy BECAUSE, cut to the room in VERDICT, into VERDICT, and free it. The rule becomes
 * KEY of POLICY; NULL: the rule stays.
 */
void verdict_end(struct verdict *verdict, struct buf *because,
		 const struct policy *policy, const char *key);
