/*
 * policy: what one agent may do, and the verdict on one call. Pure: no file is opened
 * here. Paths are compared as text, component by component; whoever builds the cell
 * resolves them on disk once and hands the real ones back (policy_set_path). Zero is
 * the safe answer.
 *
 * The question what two policies grant together has one answer, and it is given here.
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
struct value;

/* One entry of base, read, write or blocked. */
struct policy_path {
	char *text; /* as written in the configuration, for sentences; NULL: not given */
	char *path; /* absolute and normal after policy_paths_normal, else NULL */
	char *pattern; /* below `path` only what matches (PATTERN_BASENAME); NULL: all */
	bool shipped;  /* from a shipped role: a missing `write` folder is made */
	/*
	 * Bytes of `path` within which links are followed, and behind them none
	 * (policy_intersect); 0: all of them are.
	 */
	size_t trunk;
};

struct policy_paths {
	struct policy_path *items;
	size_t count;
	bool given; /* by the configuration or a role, even if empty */
};

struct policy_names {
	char **items;
	size_t count;
	bool given;
};

void policy_names_fini(struct policy_names *names);

/* A path that the view shows to every agent: /usr, /etc, the cell's /tmp. */
struct policy_shown {
	char *path;
	bool writable;
};

/* Which paths a message may advise a person to add to `read` or `write`. */
enum policy_advice {
	ADVICE_NOT_WHOLE = 1, /* neither this nor a folder above: too much, or refused */
	ADVICE_NOTHING, /* ... nor anything in it: no entry helps, or it opens doors */
	ADVICE_NOT_WRITTEN, /* neither this nor anything in it in `write`: the system */
	ADVICE_WHOLE, /* for anything in it the whole: a part of a toolchain does not run */
};

struct policy_advised {
	char *path;
	enum policy_advice advice;
};

#define POLICY_BY_MACHINE UINT64_MAX

/*
 * Every number of a policy; policy_new fills in the defaults (reasons: policy.c).
 * A 0 for `tokens`, `quiet_s`, `free_space`, `read_bytes`, `write_bytes`, `loop_warn` or
 * `loop_stop` says that there is no such limit;
 * POLICY_BY_MACHINE that the cell's maker takes it from this machine (shape.h).
 */
struct policy_limits {
	uint64_t iterations; /* of the loop: answers of the model in one run */
	uint64_t tokens;     /* in one run, in and out */
	double money;        /* US dollars in one run */
	double wall_s;       /* one command, unless its call asks for another time */
	double shell_s;      /* all commands of one run together */
	double run_s;        /* one run, from its prompt to its last answer */
	double grace_s;      /* between TERM and KILL, taken from before the deadline */
	double quiet_s;      /* a command that prints nothing for so long is ended */
	uint64_t pids;       /* processes of one command */
	uint64_t cell_pids;  /* of all commands of one cell together */
	uint64_t memory;     /* bytes of one command's processes together */
	uint64_t file_size;  /* bytes of one file that a command writes */
	uint64_t read_bytes; /* bytes of a file that one call of a tool shows; 0: no limit */
	uint64_t write_bytes; /* bytes of text that one call of a file tool brings; likewise */
	uint64_t tmp;         /* bytes of the cell's /tmp, and of its /dev/shm */
	uint64_t free_space; /* bytes that stay free where the workspace is */
	/*
	 * Identical calls without progress (agent/agent.h): the model is told from the
	 * one on, the run ends with the other.
	 */
	uint64_t loop_warn, loop_stop;
};

struct policy {
	char *name;      /* the agent's */
	char *workspace; /* absolute */
	/* not given: every tool (policy_check_tools fills them in) */
	struct policy_names tools;
	bool every_tool; /* they were filled in: asked again it has those there are then */
	struct policy_path base;
	struct policy_paths read, write, blocked;
	/* true: what is only to be read is written in a layer that goes with the cell */
	bool scratch;
	/* NAME or NAME=value (policy_check_variable), for programs in the cell */
	struct policy_names environment;
	struct commands *commands;   /* what may run (commands.h); NULL: anything does */
	struct policy_names network; /* entries as network.h has them, checked */
	/*
	 * "commands", "network", "read", "write": a person is asked for what would be
	 * refused. Without anybody who can be asked: policy_ask_nobody.
	 */
	struct policy_names asks;
	struct policy_shown *shown;
	size_t shown_count;
	struct policy_advised *advised;
	size_t advised_count;
	struct policy_limits limits;
};

/* The agent of a run that names none. */
#define POLICY_NAME_DEFAULT "default"

/* A policy with the default limits that allows nothing. NAME may be NULL: the default. */
struct policy *policy_new(const char *name, const char *workspace);
void policy_free(struct policy *policy);
void policy_auto_free(struct policy **policy);
#define auto_policy __attribute__((cleanup(policy_auto_free)))

/* PATH (absolute, normal) is in every view; a tool may read there, or write too. */
void policy_show(struct policy *policy, const char *path, bool writable);

/* Sentences about PATH (absolute, normal) and what lies around it keep to ADVICE. */
void policy_advise(struct policy *policy, const char *path, enum policy_advice advice);

/*
 * Fill in `path` of each entry: relative entries start at the base and must stay beneath
 * it, a relative base starts at WORKSPACE and must stay beneath that. Splits patterns off
 * `write` entries. `read` is the base unless given. A second time changes nothing.
 */
bool policy_paths_normal(struct policy *policy, const char *workspace, struct err *err);

/* The entry was resolved on disk: REAL (absolute, normal) takes the place of its path. */
void policy_set_path(struct policy_path *entry, const char *real);

/* Is PATH somebody's home by its name alone? */
bool policy_is_home(const char *path);

/* The effects of a tool; the runtime's enum tool_effects is made of these. */
enum policy_effects { POLICY_READS = 1, POLICY_WRITES = 2, POLICY_RUNS = 4 };

/* A tool as far as a policy is concerned. */
struct policy_tool {
	const char *name;
	const char *aliases;  /* blank-separated, or NULL */
	unsigned effects;     /* enum policy_effects */
	bool only_when_named; /* not part of "every tool" (orchestration, internal) */
	bool unlisted;        /* nobody is told of it (internal) */
};

/*
 * Settle `tools` against the COUNT that exist: unknown names are refused with the
 * nearest, aliases become names, "not given" becomes every tool. Refuses a pattern in
 * `write` for an agent that has a tool that runs commands: the kernel knows no
 * patterns.
 */
bool policy_check_tools(struct policy *policy, const struct policy_tool *tools,
			size_t count, struct err *err);
/*
 * Is ENTRY ("NAME" or "NAME=value") one that `env` may hold? ERR says why not and quotes
 * nothing but a sound name: the rest may be a secret.
 */
bool policy_check_variable(const char *entry, struct err *err);

/*
 * Add ENTRY (as network.h has them) to what the person's policy lists. WHERE names it in
 * sentences.
 */
bool policy_add_network(struct policy *policy, const char *entry, const char *where,
			struct err *err);

bool policy_has_tool(const struct policy *policy, const char *name);

/* The words that `ask` may name, separated by blanks. */
#define POLICY_ASKABLE "commands network read write"
/* Add WHAT to what the person is asked for. WHERE names it in sentences. */
bool policy_add_ask(struct policy *policy, const char *what, const char *where,
		    struct err *err);
bool policy_asks(const struct policy *policy, const char *what);
/* Nobody is there to be asked: what would have been is refused. */
void policy_ask_nobody(struct policy *policy);

/*
 * The rights that POLICY and BOUNDS both grant, as a new policy with the name and base of
 * POLICY: tools, variables and hosts of both; paths that both show or let be written,
 * hidden ones of either; `scratch` when nothing is written in a layer that one of them
 * protects; commands that fit both lists; of each limit the narrower. Both went through
 * policy_paths_normal and policy_check_tools; POLICY_BY_MACHINE gives way to a number, so
 * the limits of both should be settled when that matters. Two different patterns are left
 * out: never more, perhaps less. Entries may still be links then; what they lead to below
 * the wider one of the two is refused when the cell is shaped. `ask` is left out: a
 * denial stays one.
 */
struct policy *policy_intersect(const struct policy *policy, const struct policy *bounds);

struct policy_request_path {
	const char *path; /* absolute, lexically normal; anything else is denied */
	bool writes;
	bool wanted; /* a person will be asked for its folder: only `blocked` stands against it */
};

struct policy_request {
	const char *tool; /* its name, not an alias */
	unsigned effects; /* enum policy_effects */
	const struct policy_request_path *paths;
	size_t path_count;
	struct str command; /* shell text that is to run; data NULL: none */
	const char *const *argv; /* instead: one program and its arguments, NULL-ended; or NULL */
	const char *folder; /* absolute: where it runs; NULL: the workspace */
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
	/* of VERDICT_ASK: where nobody can be asked it runs all the same */
	bool or_runs;
	/* what it destroys, whoever lets it run (command_harm.h); NULL: nothing much */
	const struct command_harm *harm;
	/* the rule of `deny` or `ask` that holds, as it is called ("git push"); "": none */
	char by[VERDICT_RULE_MAX];
	/* of VERDICT_ASK: the request's path that lies outside; NULL: it is the command */
	const struct policy_request_path *outside;
};

/*
 * The verdict on PATH alone, whoever asks: `rule` as above, `because` only how to allow
 * it, a clause. LAYERED: for a program, which with `scratch` may write what is only to be
 * read. A path that is not absolute and normal is allowed: the policy cannot judge it.
 */
void policy_judge_path(const struct policy *policy, const char *path, bool writes,
		       bool layered, struct verdict *verdict);

/* Does POLICY run listed commands only, and these without a shell? */
bool policy_lists_commands(const struct policy *policy);

/* The verdict on what REQUEST runs alone: for the front's own tool, which no policy names. */
void policy_decide_command(const struct policy *policy,
			   const struct policy_request *request, struct verdict *verdict);

/* The verdict of POLICY on REQUEST. A pure function; deny wins over everything. */
void policy_decide(const struct policy *policy, const struct policy_request *request,
		   struct verdict *verdict);

/* How those who judge fill one in; the struct itself is in policy.h. */

/* An empty sentence with room for everything a verdict may quote. */
void verdict_begin(struct buf *because);
/* BECAUSE, cut to what fits, is what VERDICT says. */
void verdict_end(struct verdict *verdict, const struct buf *because);
/* KEY of the agent's policy decided. */
void verdict_set_rule(struct verdict *verdict, const struct policy *policy, const char *key);
