"""Lines of a stock list: NAME, COUNT."""


def parse_line(line):
    """(name, count) of one line; the count is 1 unless told."""
    name, _, count = line.partition(",")
    return name.strip(), int(count or 1)
