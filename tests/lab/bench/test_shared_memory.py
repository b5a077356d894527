"""What workers take of a mapped table is read from /proc."""

from palio.lab.bench.shared_memory import mapped


def test_mappings_of_a_file_are_added_up() -> None:
    smaps = (
        "7f00-7f10 r--s 0 00:01 7 /t/a.palio\nRss: 8 kB\nPss: 4 kB\nPrivate_Dirty: 0 kB\n"
        "7f10-7f20 rw-p 0 00:00 0\nRss: 64 kB\nPss: 64 kB\nPrivate_Dirty: 64 kB\n"
        "7f20-7f30 r--s 0 00:01 7 /t/a.palio\nRss: 4 kB\nPss: 1 kB\nPrivate_Dirty: 1 kB\n"
    )
    assert mapped("/t/a.palio", smaps) == {"Rss": 12, "Pss": 5, "Private_Dirty": 1}
