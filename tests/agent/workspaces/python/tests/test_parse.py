from stock.parse import parse_line


def test_name_and_count():
    assert parse_line("bolt, 12") == ("bolt", 12)


def test_one_unless_told():
    assert parse_line("nut") == ("nut", 1)
