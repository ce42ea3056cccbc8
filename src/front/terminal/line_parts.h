/*
 * line_parts: the functions that the files of line share: places in the text, moves and
 * search. A place is an offset that is not inside a character.
 */
#pragma once
#include "front/terminal/line.h"

size_t line_before(const struct line *line, size_t at); /* one character to the left */
size_t line_behind(const struct line *line, size_t at); /* one to the right */
size_t line_row_start(const struct line *line, size_t at);
size_t line_row_end(const struct line *line, size_t at); /* the line end, or the text's */
size_t line_word_left(const struct line *line, size_t at);
size_t line_word_right(const struct line *line, size_t at);
size_t line_blank_left(const struct line *line, size_t at); /* words between blanks */

/*
 * Handle the keys that move the cursor or go to another entry of the history. False: KEY
 * is another key.
 */
bool line_move(struct line *line, enum typing_key key);
/* Leave the history: the text counts as the person's own again. */
void line_history_leave(struct line *line);

void line_search_start(struct line *line);
/*
 * Let the search that is on handle KEY. False: the search has ended, and the caller
 * applies KEY to the text that was found.
 */
bool line_search_take(struct line *line, enum typing_key key, struct str typed);
