/*
 * attack_call: a system call by its number, as an attack asks for it: what no shell can do. The
 * program is this itself when its first word is ATTACK_CALL. It has no more rights than who starts it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define ATTACK_CALL "attack-call"

enum { ATTACK_CALL_ARGUMENTS = 6 };

bool attack_call_is(int argc, char **argv);

/*
 * WORDS (NULL-ended): the number and at most six arguments, each a number, s:TEXT (its address), z:N
 * (that of N zero bytes, at most 512) or w:A,B,… (that of words of eight bytes, at most 64). Prints
 * "= ANSWER" and returns 0, or the name of the error and returns 1. CALL makes the call, as syscall
 * answers.
 */
int attack_call_make(char **words, long (*call)(long number, const uintptr_t *arguments));

/* By the usual gate. */
long attack_call_plain(long number, const uintptr_t *arguments);

/* Make the call by the usual gate and end: whoever has changed his root has no other business there. */
_Noreturn void attack_call_run(char **words);
