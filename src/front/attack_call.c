/* attack_call: turns words into the arguments of a system call. */
#include "front/attack_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 64 };

static uintptr_t argument_of(const char *text, uint64_t block[WORDS_MAX])
{
	char *at = (char *)(uintptr_t)text + 2;

	if (strncmp(text, "s:", 2) == 0)
		return (uintptr_t)at;
	if (strncmp(text, "z:", 2) == 0)
		return (uintptr_t)block; /* still all zero */
	if (strncmp(text, "w:", 2) != 0)
		return text[0] == '-' ? (uintptr_t)strtoll(text, NULL, 0)
				      : strtoull(text, NULL, 0);
	for (size_t i = 0; i < WORDS_MAX && *at != '\0'; i++) {
		block[i] = strtoull(at, &at, 0);
		at += *at == ',';
	}
	return (uintptr_t)block;
}

static long plain_call(long number, const uintptr_t *arguments)
{
	return syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
		       arguments[4], arguments[5]);
}

int attack_call_make(char **words, long (*call)(long number, const uintptr_t *arguments))
{
	static uint64_t blocks[ATTACK_CALL_ARGUMENTS][WORDS_MAX];
	uintptr_t arguments[ATTACK_CALL_ARGUMENTS] = {0};
	long number = strtol(words[0], NULL, 0);

	for (size_t i = 0; i < ATTACK_CALL_ARGUMENTS && words[i + 1] != NULL; i++)
		arguments[i] = argument_of(words[i + 1], blocks[i]);
	long answer = (call != NULL ? call : plain_call)(number, arguments);
	if (answer < 0) {
		const char *name = strerrorname_np(errno);
		(void)printf("%s\n", name != NULL ? name : "?");
		return 1;
	}
	(void)printf("= %ld\n", answer);
	return 0;
}

void attack_call_role(int argc, char **argv)
{
	int code;

	if (argc < 3 || strcmp(argv[1], ATTACK_CALL) != 0)
		return;
	code = attack_call_make(argv + 2, NULL);
	(void)fflush(stdout);
	_exit(code);
}
