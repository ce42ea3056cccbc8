/*
 * banned: names this tree does without, refused by the compiler. The build puts
 * it before every file of ours (-include), so the system headers that declare
 * these names are read first.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* A foreign header whose macros hold such a name; src/meson.build says for which file. */
#ifdef BANNED_READ_FIRST
#include BANNED_READ_FIRST
#endif

/* With clang and fortification these are macros, which a poison does not take. */
#undef sprintf
#undef vsprintf

/* No bounds: base/buf.h and snprintf do these. */
#pragma GCC poison strcpy stpcpy strcat sprintf vsprintf gets
/* Hidden state between calls: str_next_line and strtok_r are there. */
#pragma GCC poison strtok
/* A shell nobody asked for: process/ starts programs. */
#pragma GCC poison system popen
/* A name that somebody else may take first: mkstemp, mkdtemp. */
#pragma GCC poison mktemp tmpnam tempnam
/* No errors: text_parse_count and strtol have them. */
#pragma GCC poison atoi atol atoll atof
