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
    done = palio("parse", "price < 500 AND dest(x) = MXP")
    assert done.returncode == 2
    line, pointer = done.stderr.rstrip("\n").splitlines()[-2:]
    assert line[pointer.index("^") :].startswith("dest(x)")


def test_covers_answers_with_a_witness() -> None:
    yes = palio("covers", "price < 500", "price < 100 AND dest = 'MXP'")
    assert (yes.returncode, yes.stdout[:3]) == (0, "yes")
    no = palio("covers", "price < 100", "price < 500 AND dest LIKE 'M%'")
    assert no.returncode == 1
    assert 'for example {"price": 100, "dest": "M"}' in no.stdout
    between = palio("covers", "d >= 0.10000000000000002", "d > 0.1 AND d < 0.2")
    assert 'for example {"d": 0.10000000000000001}' in between.stdout
    discrete = palio("covers", "x = 4", "x > 3 AND x < 5", "--types", "x=int")
    assert discrete.returncode == 0
    assert palio("covers", "x = 4", "x > 3 AND", "--types", "x=int").returncode == 2
    assert palio("covers", "x = 4", "x = 4", "--types", "x").returncode == 2


def test_covers_does_not_claim_to_decide_expressions() -> None:
    unproven = palio("covers", "x LIKE 'a%b'", "x LIKE 'a%bb'")
    assert (unproven.returncode, unproven.stdout[:15]) == (1, "no (not proven:")
    assert palio("covers", "x LIKE 'a%'", "x LIKE 'a%b'").returncode == 0
    types = ("--types", "x=int")
    assert palio("covers", "x > 4", "x + 1 > 5").returncode == 1
    assert palio("covers", "x > 4", "x + 1 > 5", *types).returncode == 0
    assert palio("covers", "lower(x) IN ('a', 'b')", "lower(x) = 'a'").returncode == 0


def test_rules_in_another_dialect_or_zone() -> None:
    done = palio("parse", "--dialect", "jms", "weight NOT BETWEEN 10 AND 20")
    assert "weight < 10 OR weight > 20" in done.stdout
    done = palio("parse", "--zone", "Europe/Rome", "at >= TIMESTAMP '2024-03-01 10:00:00'")
    assert "2024-03-01T09:00:00Z" in done.stdout
    rule = '{"price": [{"numeric": ["<", 500]}]}'
    yes = palio("covers", "--dialect", "eventbridge", rule, rule)
    assert (yes.returncode, yes.stdout[:3]) == (0, "yes")
    for wrong, said in (
        (("--dialect", "jms", "--zone", "Europe/Rome", "x = 1"), "--zone is for predicates in SQL"),
        (("--dialect", "nosuch", "x = 1"), "no dialect 'nosuch'; there are sql, "),
        (("--from", "paper", "--dialect", "jms", "x = 1"), "are for --from sql"),
    ):
        refused = palio("parse", *wrong)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
