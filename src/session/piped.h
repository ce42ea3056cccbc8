/*
 * piped: a program in the cell of a session, on pipes of the front or on a terminal. This is
 * the one place that starts a program which the front talks with: its call of the internal
 * tool `exec`, its descriptors, the bytes that wait for it, its signals, and its output, which
 * can be held up. The programs of `glovebox serve` (serve/programs.c), of `glovebox exec-server`
 * (front/exec_server.c), and the servers of hosted.h are such programs. The owner says what
 * becomes of the output and of the end.
 *
 * Nothing here waits. Output that is held up stays in the pipe, and the program waits when it
 * has filled the pipe. At most `input_max` bytes wait for the program.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "process/loop.h"
#include "process/pty.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>

enum piped_stream {
	PIPED_OUTPUT, /* of a terminal: everything */
	PIPED_ERROR,
	PIPED_STREAMS,
};

/* The descriptors that the program gets, as `exec` takes them; the last one takes signals. */
enum { PIPED_IN, PIPED_OUT, PIPED_ERR, PIPED_SIGNALS, PIPED_GIVEN };

struct piped_options {
	/* `exec` under the owner's name for it, with its rows or a schema. It is copied. */
	const struct tool *tool;
	/* what the owner adds to the call, as `exec` takes it; borrowed, may still change */
	struct value *carried;
	size_t input_max;
	/* The program has printed BYTES. The callee may hold it up, or close it. */
	void (*said)(void *owner, enum piped_stream stream, struct str bytes);
	/* STREAM has ended; or NULL. */
	void (*fell_silent)(void *owner, enum piped_stream stream);
	void *owner;
};

/* The descriptors of one start. */
struct piped_wish {
	bool has_input; /* else its input is at its end from the beginning */
	bool takes_signals;
	bool tty;   /* a terminal; the arguments of the call have its size */
	bool merge; /* the error output goes into the output */
	/* the error output, whose other end the owner reads; -1: it is read here */
	int take_error;
};

struct piped;

struct piped_reading {
	struct piped *piped;
	struct watch watch; /* its fd is -1 when the stream has ended */
};

struct piped {
	struct piped_options options;
	struct tool tool; /* as a tool that is in no table */
	struct loop *loop;
	struct session *session; /* of the last start */
	struct running *running; /* the call that runs the program; NULL: none */
	int given[PIPED_GIVEN];  /* closed once the cell has them */
	struct piped_reading readings[PIPED_STREAMS];
	struct watch input; /* its fd is -1 when there is no input, or no more */
	struct buf typed;
	size_t typed_from;
	bool input_ends; /* behind the bytes in `typed` */
	bool resizes;    /* SIZE is to be told to the terminal */
	struct pty_size size;
	bool tty;
	bool held; /* no output is read */
	int signals;
	bool open;
	unsigned generation; /* how often the pipes were opened */
};

/* The members of OPTIONS are borrowed for the life of PIPED, which piped_stop ends. */
void piped_init(struct piped *piped, const struct piped_options *options);

/*
 * Open the pipes on LOOP; bytes may be typed. After a failure piped_close closes what is
 * open.
 */
bool piped_open(struct piped *piped, struct loop *loop, const struct piped_wish *wish,
		struct err *err);
/*
 * Start the program in the cell of SESSION. LIKE has the arguments that `exec` takes, the
 * time and how the call is told; everything else is filled in here. DONE as session_start.
 */
void piped_start(struct piped *piped, struct session *session, const struct request *like,
		 void (*done)(void *context, struct running *running), void *context);
/* Are the pipes open? They stay so until piped_close. */
bool piped_is_open(const struct piped *piped);
/* Once the cell has its descriptors, close ours. Call this in each turn of the loop. */
void piped_settle(struct piped *piped);
/* Close the pipes. The call goes on. */
void piped_close(struct piped *piped);
/* The same, and free the call: it is cancelled and waited for unless it is done. */
void piped_stop(struct piped *piped);

/*
 * Read no output while HELD. A stream that is held up keeps its bytes; piped_drain reads none
 * of it either.
 */
void piped_hold(struct piped *piped, bool held);
/* Read the output that there is now, as long as nothing holds it up. */
void piped_drain(struct piped *piped);
/* The bytes of output that lie in the pipes. */
size_t piped_unread(const struct piped *piped);
/* Close the outputs: what lies in the pipes is lost. */
void piped_end_output(struct piped *piped);
/* Close one of them: the program finds that nobody reads it any more. */
void piped_end_stream(struct piped *piped, enum piped_stream stream);

/* May bytes still be typed? */
bool piped_takes_input(const struct piped *piped);
/* The bytes that the program has not taken yet. */
size_t piped_waiting(const struct piped *piped);
/*
 * Type BYTES; ENDS: the input ends behind them. False, and nothing is typed: more than
 * `input_max` bytes would wait.
 */
bool piped_type(struct piped *piped, struct str bytes, bool ends);
/* The buffer to which an owner appends what it types, before it calls piped_write. */
struct buf *piped_input(struct piped *piped);
/* Write what waits, as far as the program takes it now. */
void piped_write(struct piped *piped);
/* Close the input now, and forget what waits. */
void piped_end_input(struct piped *piped);
/* Tell the terminal its new SIZE. */
void piped_resize(struct piped *piped, struct pty_size size);

enum piped_signal {
	PIPED_SENT,
	PIPED_FULL, /* as many signals as fit wait already */
	PIPED_GONE, /* nothing takes signals any more */
};
/*
 * Send the signal NUMBER to everything that the call has started; 0 is none: the program is in
 * use, and its `idle_s` begins anew. A cell without a pid namespace cannot signal all that a
 * call has started: there any signal cancels the call.
 */
enum piped_signal piped_signal(struct piped *piped, int number);
