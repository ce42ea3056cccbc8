/*
 * approval_scope: says in words what an answer for the session would grant. "git push" or
 * "cargo build | tee log" name the programs of a plain text, each with its first word.
 * Where these words do not say what would be run, the scope is "exactly this text". This
 * holds for a text that is more than plain commands, for a program that runs what it is
 * told (a shell, an interpreter, env, sudo, xargs, find …) and for words that need
 * quotes. For a command it also holds when the first word is an option or is missing.
 * Pure.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/*
 * Append the scope of TEXT. NETWORK: the scope is for a host to which TEXT connects, so
 * options may come first.
 */
void approval_scope(struct str text, bool network, struct buf *words);
