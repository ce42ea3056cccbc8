/*
 * libglovebox: tools for AI agents, run inside a kernel-enforced cell.
 *
 * A session is one workspace, one policy (what may be read, written and run there) and
 * one cell made from it: a sealed process tree in which every tool and every command
 * runs. Calls go in as JSON and come back as one result. Nothing of a call runs in your
 * process.
 *
 *	struct glovebox_options options = GLOVEBOX_OPTIONS;
 *	char error[GLOVEBOX_ERROR_MAX];
 *
 *	options.workspace = "/home/me/project";
 *	options.policy = "{\"write\": [\"src\"]}";
 *	struct glovebox_session *session = glovebox_open(&options, error, sizeof(error));
 *	struct glovebox_result *result =
 *		glovebox_call(session, "bash", "{\"command\": \"make test\"}");
 *	puts(result->text);
 *	glovebox_result_free(result);
 *	glovebox_close(session);
 *
 * Threads: a session belongs to the thread that opened it, which must live as long as
 * the session (the cell ends with it). Several sessions in several threads are fine.
 * Only glovebox_cancel may be called from any thread.
 *
 * Secrets: nothing of your process's memory, environment or descriptors is in the cell.
 * Whether other programs of the same user may look into your process stays your decision
 * (PR_SET_DUMPABLE).
 *
 * Compatibility: structs are made by the library and grow at their end only, except
 * `struct glovebox_options`, which is yours and says its own size. Names and meanings
 * stay within one soname.
 */
#ifndef GLOVEBOX_H
#define GLOVEBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GLOVEBOX_EXPORT __attribute__((visibility("default")))
#else
#define GLOVEBOX_EXPORT
#endif

/* Room for any error sentence of the library. */
#define GLOVEBOX_ERROR_MAX 1024

struct glovebox_session;

/*
 * Receives output of a running call while it is produced. STREAM is 1 (standard output)
 * or 2 (standard error). BYTES are SIZE bytes, not a C string. The library calls this
 * function from inside glovebox_call. Fragments may be merged or left out when they come
 * too fast; the result holds the important part.
 */
typedef void glovebox_output(void *context, const char *tool, int stream,
			     const char *bytes, size_t size);

/*
 * Start from GLOVEBOX_OPTIONS and set the members that you need. All members except
 * `size` and `workspace` may stay zero.
 */
struct glovebox_options {
	size_t size; /* of this struct, as your compiler saw it */

	/* The folder in which the tools work. */
	const char *workspace;

	/*
	 * The rights, as the JSON text of one policy object: the keys `tools`, `base`,
	 * `read`, `write`, `blocked`, `limits` of docs/policy.md. NULL: the rights of
	 * `agent` in `config`; without these, the workspace may be read and nothing may
	 * be written. Keys given here override those of the agent.
	 */
	const char *policy;

	/*
	 * The text of a configuration file, and the name of one of the agents in it
	 * (NULL: "default"). Its `plugins` (docs/plugins.md) are loaded and are tools like the
	 * others, with the copies and the record of trust that the glovebox program keeps for the
	 * user of this process; paths in them that are not absolute begin at the workspace, and
	 * git sources are not fetched. Its `mcpServers` are not started.
	 */
	const char *config;
	const char *agent;

	/*
	 * The `glovebox` program, which becomes the cell. NULL: the program that was
	 * installed with this library.
	 */
	const char *program;

	/* Workers kept ready for the next call; 0: two. */
	unsigned ready_workers;

	/* Called with every fragment of output; may be NULL. */
	glovebox_output *output;
	void *context;

	/*
	 * Seconds after which a call that still runs is answered and continues as a job,
	 * which the tool `job` follows. 0: no such limit except that of the tool.
	 */
	double patience_s;
};
#define GLOVEBOX_OPTIONS                                                   \
	{                                                                  \
		sizeof(struct glovebox_options), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

/*
 * Make the cell and wait until its first worker is walled in. Returns NULL on failure. In
 * that case nothing has run, and ERROR (of ERROR_SIZE bytes; may be NULL) holds a
 * sentence that says what to do.
 */
GLOVEBOX_EXPORT struct glovebox_session *glovebox_open(const struct glovebox_options *options,
						       char *error, size_t error_size);

/*
 * End everything that runs in the cell, and the cell itself. If commands could write in a
 * tree of more than 256 folders, the library first looks at the repositories there, which
 * takes a second of work at most, on a busy machine three of the clock (docs/security.md). NULL is fine.
 */
GLOVEBOX_EXPORT void glovebox_close(struct glovebox_session *session);

/*
 * How strong the cell is on this machine: 3 (namespaces, Landlock, seccomp), 2 (Landlock,
 * seccomp) or 0 (seccomp where the kernel has it).
 */
GLOVEBOX_EXPORT int glovebox_level(const struct glovebox_session *session);

/* The workspace's real path; valid as long as the session. */
GLOVEBOX_EXPORT const char *glovebox_workspace(const struct glovebox_session *session);

/* The description of a tool for a model. All texts are valid as long as the session. */
struct glovebox_tool {
	const char *name;
	const char *description;
	const char *schema; /* JSON Schema of its arguments */
	bool reads, writes; /* files of the workspace */
	bool runs;          /* programs */
};

/*
 * The tools that the policy of the session allows. INDEX counts from 0; NULL past the
 * last tool.
 */
GLOVEBOX_EXPORT const struct glovebox_tool *glovebox_tool(
	const struct glovebox_session *session, size_t index);

/*
 * Plugins of the configuration that were left out, with the reason. INDEX counts from 0;
 * NULL past the last one. The text is valid as long as the session.
 */
GLOVEBOX_EXPORT const char *glovebox_problem(const struct glovebox_session *session,
					     size_t index);

enum glovebox_status {
	GLOVEBOX_FAILED = 0, /* the text says what was wrong with the call, and the next step */
	GLOVEBOX_DONE = 1,   /* also when a command exited with 1, because it ran */
	GLOVEBOX_DENIED = 2, /* the policy refused; the text names rule and remedy */
	GLOVEBOX_TIMED_OUT = 3,
	GLOVEBOX_CANCELLED = 4,
};

/* The answer to one call. It belongs to you; free it with glovebox_result_free. */
struct glovebox_result {
	enum glovebox_status status;
	const char *text; /* for the model; a C string */
	size_t text_size;
	int exit_code; /* of a program; -1: none ran, or it died of `signal` */
	int signal;    /* 0: none */
	double seconds;
	int level; /* the level of the cell in which the call ran */
	uint64_t left_out_bytes, left_out_lines; /* of the output, by ceilings */
	const char *details; /* JSON object for people and programs, never for the model */
	const char *content; /* JSON array: content of a plugin besides text, as items of MCP */
	bool unfiltered; /* at level 0: the kernel has no filter of system calls either */
};

/*
 * Call TOOL with ARGUMENTS (JSON text of an object; NULL: none) and wait for its answer.
 * Never returns NULL: an error in the call is answered with a result as well.
 */
GLOVEBOX_EXPORT struct glovebox_result *glovebox_call(struct glovebox_session *session,
						      const char *tool,
						      const char *arguments);
GLOVEBOX_EXPORT void glovebox_result_free(struct glovebox_result *result); /* NULL is fine */

/* "done", "failed", "denied", "timed_out", "cancelled". */
GLOVEBOX_EXPORT const char *glovebox_status_name(enum glovebox_status status);

/*
 * Cancel the running call, which then answers with GLOVEBOX_CANCELLED within half a
 * second. When no call runs, the next one is cancelled. May be called from any thread and
 * from a signal handler. The session must not be closed at the same time.
 */
GLOVEBOX_EXPORT void glovebox_cancel(struct glovebox_session *session);

/* "0.1.0" */
GLOVEBOX_EXPORT const char *glovebox_version(void);

#ifdef __cplusplus
}
#endif

#endif
