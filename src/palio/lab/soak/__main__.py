"""`python -m palio.lab.soak --minutes 60 --out build/soak --picture build/soak/soak.png`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from palio.lab.soak.drawing import picture
from palio.lab.soak.running import soak


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m palio.lab.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("build/soak"))
    parser.add_argument("--picture", type=Path, help="a PNG file")
    given = parser.parse_args(arguments)
    done = soak(60 * given.minutes, given.out, lambda text: print(text, file=sys.stderr, flush=True))  # fmt: skip
    lines = [
        f"{done.rate:,.0f} messages a second, of {done.maximal_rate:,.0f} at most; durable ones: "
        f"{done.faults['lost']} lost, {done.faults['doubled']} doubled",
        *map(str, done.trends),
        f"verdict: {'flat' if done.is_flat else 'something grows'}",
    ]
    (given.out / "verdict.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if given.picture is not None:
        given.picture.write_bytes(picture(done.samples))
    return 0 if done.is_flat and not any(done.faults.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
