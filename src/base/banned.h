/*
 * banned: functions that this project does not use, refused by the compiler. The build
 * includes this file before every source file (-include), so it first includes the
 * system headers that declare these names.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/*
 * A foreign header whose macros use such a name; src/meson.build names it for one
 * source file.
 */
#ifdef BANNED_READ_FIRST
#include BANNED_READ_FIRST
#endif

/* With clang and fortification these are macros, which cannot be poisoned. */
#undef sprintf
#undef vsprintf

/* No bounds: use base/buf.h and snprintf. */
#pragma GCC poison strcpy stpcpy strcat sprintf vsprintf gets
/* Hidden state between calls: use str_next_line or strtok_r. */
#pragma GCC poison strtok
/* They start a shell: use process/ to start programs. */
#pragma GCC poison system popen
/* Another process may take the name first: use mkstemp or mkdtemp. */
#pragma GCC poison mktemp tmpnam tempnam
/* No errors: use text_parse_count or strtol. */
#pragma GCC poison atoi atol atoll atof
