/*
 * terminal_filter: between the output of a program in a cell and the person's terminal. A
 * terminal obeys what is printed, and some of its commands reach beyond the screen. These
 * are taken out, and every other byte goes on unchanged:
 *
 *   OSC 52                the clipboard (with `clipboard`, setting it passes)
 *   OSC 21, 30001, 30101  colours, which a question could not put back
 *   OSC 5113, 5522, 1337  files, clipboard and settings of the terminal; of 1337, pictures
 *                         (File and MultipartFile with inline=1) pass
 *   CSI 20 t, CSI 21 t    reports of the title, which arrive as if they were typed
 *   CSI 4 t, CSI 8 t      another size of the window, in which a question has no room
 *   CSI ? s, CSI ? r      modes kept and put back, which would be on behind our back
 *   CSI ? 2 l             the commands of a VT52: a question would be garbage
 *   CSI $ }, CSI $ ~      a status line, in which a question would stand
 *   ESC V, ESC W          an area that is not erased, beside a question
 *   DCS $ q               a report of the terminal's state, which arrives as if typed
 *   DCS @                 remote control of kitty, which starts programs outside
 *   DCS tmux;             commands for the terminal around tmux. GNU screen passes every
 *                         DCS on, so commands inside one are judged like all others
 *   ESC % other than G    leaving UTF-8, after which characters would be commands
 *
 * Each is known by its 7-bit form (ESC and a letter), as a C1 byte, and as a C1 character
 * in UTF-8. A byte in a well-formed UTF-8 character is text. An ESC or C1 begins a new
 * sequence wherever it stands, also inside another one, as terminals differ there. A
 * sequence that is not yet complete enough to be judged is held back; text never is, but
 * for the bytes of one character. When a new sequence, CAN or SUB breaks off a held one,
 * the held one is dropped: what is behind it must never continue it. A held sequence over
 * the ceiling is dropped to its end.
 *
 * The filter also notes the modes that the program leaves on, to switch them off, and whether
 * it has sent any command at all.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	/* held of a sequence: numbers, or the arguments of a picture */
	TERMINAL_FILTER_HELD = 4 << 10,
	/* of a clipboard; terminals take less */
	TERMINAL_FILTER_CLIPBOARD = 1 << 20,
};

struct terminal_filter;

struct terminal_filter *terminal_filter_new(bool clipboard);
void terminal_filter_free(struct terminal_filter *filter); /* NULL is fine */

/*
 * Append to OUT what may pass of TEXT, which goes on where the last one ended. OUT has room
 * for TEXT and for a held sequence.
 */
void terminal_filter_pass(struct terminal_filter *filter, struct str text, struct buf *out);

/*
 * Append to OUT what gives the terminal to a question of ours, behind all that has passed
 * so far: an open string and an open link end, the modes that are on are switched off, and there is an
 * empty screen with plain colours. The rest of the string never passes.
 *
 * terminal_filter_resume gives the terminal back with the modes that the program knows.
 * False: the program has drawn on the alternate screen, which is empty now, and must draw
 * again. Nothing may pass in between.
 */
void terminal_filter_pause(struct terminal_filter *filter, struct buf *out);
bool terminal_filter_resume(const struct terminal_filter *filter, struct buf *out);

/*
 * The program has ended: append to OUT what ends an open string and switches off the modes that
 * are on: alternate screen, mouse, focus, bracketed paste, keyboard protocols, a hidden cursor.
 * Behind any command of the program follow plain colours, the usual characters, no link, no
 * margins, no insert mode: text that comes then is seen. Appends nothing after plain text.
 */
void terminal_filter_end(struct terminal_filter *filter, struct buf *out);

/*
 * The commands that bring a terminal back in whatever state a killed program has left it: the
 * usual screen, no mouse, no keyboard protocol, plain text.
 */
extern const char terminal_filter_reset[];
