/*
 * plugin_arguments: the arguments of a call, which fit the plugin's JSON Schema, as its script
 * wants them: as flags, in positions, as JSON on standard input, or as lines there.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/value.h"
#include "plugins/describe.h"

/* The most bytes that the kernel passes in one argument, its NUL included (execve(2)). */
enum { PLUGIN_ARGUMENT_MAX = 128 << 10 };

struct plugin_argument_rules {
	enum plugin_mode mode;
	const struct value *order; /* names of the properties, in the schema's order */
	const struct value *positional; /* as plugin_schema has it */
};

/*
 * Append to ARGV (of at most MAX words, *COUNT used) what stands behind the subcommand; the
 * words live in ARENA. Mode json and toolboxes: INPUT becomes what is read. ERR names the argument that cannot
 * be passed.
 */
bool plugin_arguments_build(const struct plugin_argument_rules *rules,
			    const struct value *arguments, struct arena *arena,
			    const char **argv, size_t max, size_t *count,
			    struct buf *input, struct err *err);
