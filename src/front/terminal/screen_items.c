/*
 * screen_items: the items between a model's words and its calls: heads, prompts, notices.
 */
#include "front/terminal/screen.h"
#include "front/terminal/screen_paint.h"
#include "front/terminal/screen_wrap.h"
#include "front/terminal/width.h"

#include "base/text/text.h"

#include <inttypes.h>

enum { PROMPT_LINES = 10 };

void paint_prose(struct paint *paint, enum paint_style style, struct str text, size_t at)
{
	struct screen_wrap wrap;
	struct buf lines;

	if (!paint->wraps) {
		paint_text(paint, style, text);
		return;
	}
	buf_init(&lines, PAINT_MAX);
	screen_wrap_init(&wrap);
	screen_wrap_end(&wrap, paint->columns, at, &lines);
	screen_wrap_add(&wrap, text, paint->columns, &lines);
	screen_wrap_end(&wrap, paint->columns, 0, &lines);
	paint_text(paint, style, buf_str(&lines));
	screen_wrap_fini(&wrap);
	buf_fini(&lines);
}

void paint_session(struct paint *paint, const struct value *data)
{
	const char *dot = paint_dot(paint);
	struct paint head;

	paint_init(&head);
	head.unicode = paint->unicode;
	paint_format(&head, PAINT_PLAIN, "glovebox%sagent ", dot);
	paint_one_line(&head, PAINT_PLAIN, value_str(value_member(data, "agent")),
		       SCREEN_COLUMNS);
	paint_format(&head, PAINT_PLAIN, "%smodel ", dot);
	paint_one_line(&head, PAINT_PLAIN, value_str(value_member(data, "model")),
		       SCREEN_COLUMNS);
	paint_format(&head, PAINT_PLAIN, "%scell L%" PRId64 "%s", dot,
		     value_integer(value_member(data, "level")), dot);
	paint_one_line(&head, PAINT_PLAIN, value_str(value_member(data, "workspace")),
		       SCREEN_COLUMNS * 2);
	paint_prose(paint, PAINT_DIM, buf_str(&head.out), 0);
	paint_fini(&head);
	buf_addc(&paint->out, '\n');
	if (value_is_true(value_member(data, "replay"))) {
		paint_prose(paint, PAINT_PLAIN,
			    STR("The model's words are recorded (a replay). Everything else is "
				"real: the tools,"),
			    0);
		buf_addc(&paint->out, '\n');
		paint_prose(paint, PAINT_PLAIN,
			    STR("the commands and the files run and change inside the cell."),
			    0);
		buf_addc(&paint->out, '\n');
	}
}

void paint_prompt(struct paint *paint, struct str text)
{
	struct buf clean;
	struct str rest, line;
	size_t shown = 0;

	buf_init(&clean, PAINT_MAX);
	paint_clean(str_trim(text), &clean);
	rest = buf_str(&clean);
	while (shown < PROMPT_LINES && str_next_line(&rest, &line)) {
		buf_adds(&paint->out, "> ");
		paint_text(paint, PAINT_BOLD, line);
		buf_addc(&paint->out, '\n');
		shown++;
	}
	if (rest.size > 0) {
		size_t more = text_count_lines(rest);

		paint_format(paint, PAINT_DIM, "> %s %zu more %s", paint_more(paint),
			     more, more == 1 ? "line" : "lines");
		buf_addc(&paint->out, '\n');
	}
	buf_fini(&clean);
}

void paint_notice(struct paint *paint, struct str text, bool to_model)
{
	struct str mark = to_model ? STR("! to the model: ") : STR("! ");
	struct buf clean;

	buf_init(&clean, PAINT_MAX);
	paint_clean(str_trim(text), &clean);
	paint_text(paint, PAINT_YELLOW, mark);
	paint_prose(paint, to_model ? PAINT_DIM : PAINT_YELLOW, buf_str(&clean),
		    width_of(mark));
	buf_addc(&paint->out, '\n');
	buf_fini(&clean);
}
