/*
 * rules: what a person has answered `always` to, so that nobody asks again. A rule is for
 * one agent in one folder (the workspace) and lets in one thing: a program with its first
 * word, a host with its port, or a folder to be read or written. It is added to the agent's
 * policy when a session is made, like an entry of the configuration; so `blocked`, rules
 * that deny or ask, the bounds of a delegate and the ceiling of the machine come before it.
 * It never lets in a command that destroys much.
 *
 * The rules stand in rules.json beside the configuration:
 *
 *	{"rules": [{"agent": "coder", "folder": "/home/ann/project", "kind": "command",
 *	            "rule": "git push", "since": "2026-11-29"}]}
 *
 * This module reads and writes that text; front/config_file.c keeps the file.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>

enum rule_kind { RULE_COMMAND, RULE_HOST, RULE_READ, RULE_WRITE };
enum { RULE_KINDS = RULE_WRITE + 1 };
/* "command", "host", "read", "write" */
const char *rules_kind_name(enum rule_kind kind);
/* The kind by which a rule answers a question of EFFECT (session/approval.h). */
bool rules_kind_of(struct str effect, enum rule_kind *kind);

struct rule {
	char *agent, *folder, *rule;
	char *since; /* a day: "2026-11-29" */
	enum rule_kind kind;
};

struct rules {
	struct rule *items;
	size_t count;
};

/* More rules than a person can look through are a mistake. */
enum { RULES_MAX = 1000, RULES_TEXT_MAX = 4 << 20 };

/*
 * Read TEXT, a file with the name SOURCE in sentences; an empty text has no rules. Call
 * rules_fini in either case.
 */
bool rules_parse(struct str text, const char *source, struct rules *rules, struct err *err);
void rules_fini(struct rules *rules);
/* Append RULES as the text of the file. */
bool rules_print(const struct rules *rules, struct buf *out);

/* Add a copy of RULE, unless it is there. False: there are RULES_MAX already. */
bool rules_add(struct rules *rules, const struct rule *rule);
/* The number of the rule equal to RULE, except for its day; rules->count: there is none. */
size_t rules_find(const struct rules *rules, const struct rule *rule);
void rules_remove(struct rules *rules, size_t at);

/*
 * Append the rule that would let ARGV (NULL-ended) run: its program and its first word. False,
 * and nothing is appended: these words do not say what would be run. The program is named by a
 * path or runs what it is told, the first word is an option or missing, or a word names code.
 */
bool rules_add_words(const char *const *argv, struct buf *words);
/* Does one of the rules ALWAYS for commands let ARGV run? */
bool rules_let(const struct policy_names *always, const char *const *argv);

/*
 * The rules that would let in all parts of the shell text COMMAND, as a list of texts, which
 * the caller frees; NULL: there are none that say what they let in.
 */
struct value *rules_of_text(struct str command);

/* Does TEXT fit KIND at all: words, host:port, an absolute path in its normal form? */
bool rules_check(enum rule_kind kind, struct str text, struct err *err);
