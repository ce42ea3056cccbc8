/*
 * approval_scope: what an answer for the session would grant, in words: "git push", "cargo build | tee
 * log" are the programs of a plain text, each with its first word. Where these do not say what would be
 * run, it is "exactly this text": of a text that is more than plain commands, of a program that runs what
 * it is told (a shell, an interpreter, env, sudo, xargs, find …), of words that need quotes, and, for a
 * command, where the first word is an option or there is none. Pure.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* Append the scope of TEXT; NETWORK: for a host that it connects to, where options may come first. */
void approval_scope(struct str text, bool network, struct buf *words);
