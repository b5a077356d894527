"""palio parse and palio covers: output and exit codes."""

from __future__ import annotations

from tests.cli.commands import palio


def test_parse_shows_three_notations() -> None:
    done = palio("parse", "NOT (price >= 500 OR dest != 'MXP')")
    assert done.returncode == 0
    assert "price < 500 AND dest = 'MXP'" in done.stdout
    assert "number price < 500\nstring dest = MXP" in done.stdout
    assert '"op": "<"' in done.stdout
    paper = palio("parse", "--from", "paper", "string dest = MXP\nor\nnumber price < 3")
    assert "dest = 'MXP' OR price < 3" in paper.stdout
    assert "y > 0\n" in palio("parse", "--reduce", "x > 10 AND y = 1 OR y > 0").stdout


def test_parse_points_at_the_error() -> None:
    done = palio("parse", "price < 500 AND dest = MXP")
    assert done.returncode == 2
    line, pointer = done.stderr.rstrip("\n").splitlines()[-2:]
    assert line[pointer.index("^") :].startswith("MXP")


def test_covers_answers_with_a_witness() -> None:
    yes = palio("covers", "price < 500", "price < 100 AND dest = 'MXP'")
    assert (yes.returncode, yes.stdout[:3]) == (0, "yes")
    no = palio("covers", "price < 100", "price < 500 AND dest LIKE 'M%'")
    assert no.returncode == 1
    assert 'for example {"price": 100, "dest": "M"}' in no.stdout
    discrete = palio("covers", "x = 4", "x > 3 AND x < 5", "--types", "x=int")
    assert discrete.returncode == 0
    assert palio("covers", "x = 4", "x > 3 AND", "--types", "x=int").returncode == 2
    assert palio("covers", "x = 4", "x = 4", "--types", "x").returncode == 2
