/*
 * bridge: makes an MCP server over HTTP look like a program: lines of messages in and out.
 * It is our own program, started in a cell of its own that reaches only the server (and
 * the server that gives out its tokens), so the front meets no byte of HTTP, and the one
 * client of MCP (client/remote.h) serves both kinds of servers.
 *
 * The modern era has one POST for each request; the end of a stream before its answer is a
 * lost connection, and a cancelled call closes its stream. The older era has a session,
 * which is made anew once when the server has forgotten it, a stream of notices by GET, and
 * streams that can be taken up again behind their last event.
 *
 * A lost connection: a call of a tool that only reads is made once more; any other one
 * fails and says that it may have run. Streams of notices are opened again after 1 s,
 * doubling to 30 s; after that with the next call.
 *
 * Standard error of the program is a socket to the front, with lines of JSON, besides those
 * of libraries. The front sends the settings first: {"name", "url", "headers": {NAME:
 * VALUE}}, and those of auth.h. After that the bridge sends, besides the lines of auth.h:
 *
 *   {"fails": PHRASE}            the server cannot be used; behind its name
 *   {"leaves": TOOL, "why"}      a tool that must not be offered
 */
#pragma once

#include "base/value.h"

#include <stdbool.h>

/* The word behind the program's name that makes it a bridge. */
#define BRIDGE_WORD "mcp-bridge"

enum { BRIDGE_LINE_MAX = 16 << 20 }; /* bytes of one message */

/* Is this program a bridge? Then it serves until the end of its input. *CODE: its exit code. */
bool bridge_program(int argc, char **argv, int *code);
