/*
 * attack_call: makes a system call by its number for an attack, since no shell can do
 * that. This program does so when its first word is ATTACK_CALL. It has only the rights
 * of its caller. A program of the tests is made of this module alone.
 */
#pragma once
#include <stdint.h>

#define ATTACK_CALL "attack-call"

enum { ATTACK_CALL_ARGUMENTS = 6 };

/*
 * WORDS (NULL-ended) has the number and at most six arguments. An argument is a number,
 * s:TEXT (the address of TEXT), z:N (the address of N zero bytes, at most 512) or w:A,B,…
 * (the address of words of eight bytes, at most 64). Prints "= ANSWER" and returns 0, or
 * prints the name of the error and returns 1. CALL makes the call, and returns as syscall
 * does; NULL: syscall makes it.
 */
int attack_call_make(char **words, long (*call)(long number, const uintptr_t *arguments));

/* When this program is to make a call, make it by syscall, and exit. */
void attack_call_role(int argc, char **argv);
