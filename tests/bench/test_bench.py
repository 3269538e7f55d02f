"""The bench's own code: verdicts, medians, the table, the page and what is kept. No speed is asserted."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.__main__ import measured, verdict
from tests.bench.bench import Absent, Bench
from tests.bench.lines import FLOOR, OURS, Line, Row, Target
from tests.bench.measure import environment, figure, in_turns, marginal, spent
from tests.bench.page import as_page, as_text
from tests.bench.records import keep, kept
from tests.bench.suites import write_suite
from tests.bench.table import ROWS
from tests.conftest import Project

PEER = "evalctl 0.3.0"


def line(ours: float, *targets: Target, **sides: float) -> Line:
    return Line(label="CPU", unit="ms", sides={OURS: ours, **sides}, targets=targets)


def row(*lines: Line, name: str = "P1", absent: str = "", broken: bool = False) -> Row:
    stamp = {"date": "2026-01-02 03:04 UTC", "load": "0.1 to 0.2", "kernel": "Linux 6", "evalwright": "1 at abc"}
    return Row(id=name, what="a thing; the floor is another", lines=lines, absent=absent, broken=broken, stamp=stamp)


@pytest.mark.parametrize(
    ("ours", "targets", "expected"),
    [
        (20.0, (Target(2, FLOOR),), "met"),
        (20.1, (Target(2, FLOOR),), "missed"),
        (20.0, (Target(20),), "met"),
        (20.1, (Target(20),), "missed"),
        (9.0, (Target(2, FLOOR), Target(0.3, PEER)), "not measured"),
        (99.0, (Target(2, FLOOR), Target(0.3, PEER)), "missed"),
        (99.0, (), ""),
        (-0.3, (Target(2, FLOOR),), "not measured"),
        (-0.3, (Target(20),), "met"),
    ],
)
def test_verdict_is_met_only_when_every_target_was_measured_and_holds(
    ours: float, targets: tuple[Target, ...], expected: str
) -> None:
    assert line(ours, *targets, floor=10.0).verdict == expected


def test_line_without_our_figure_is_not_measured() -> None:
    assert Line(label="CPU", unit="ms", sides={FLOOR: 1.0}, targets=[Target(2, FLOOR), Target(1)]).verdict == "not measured"


def test_ratio_to_nothing_is_none() -> None:
    assert line(1.0, floor=0.0).ratio(FLOOR) is None
    assert line(1.0).ratio(FLOOR) is None
    assert line(-3.0, floor=2.0).ratio(FLOOR) is None
    assert line(3.0, floor=2.0).ratio(FLOOR) == 1.5


def test_sides_take_turns_and_each_figure_gets_its_own_median() -> None:
    order: list[str] = []
    values = {OURS: iter([5.0, 1.0, 3.0]), FLOOR: iter([9.0, 7.0, 8.0])}

    def side(name: str) -> dict[str, float]:
        order.append(name)
        value = next(values[name])
        return {"cpu": value, "wall": 10 - value}

    measured = in_turns({OURS: lambda: side(OURS), FLOOR: lambda: side(FLOOR)}, 3)

    assert order == [OURS, FLOOR] * 3
    assert measured == {OURS: {"cpu": 3.0, "wall": 7.0}, FLOOR: {"cpu": 8.0, "wall": 2.0}}
    assert figure(measured | {"third": {"rss": 1.0}}, "cpu") == {OURS: 3.0, FLOOR: 8.0}


def test_marginal_cost_leaves_out_what_does_not_grow() -> None:
    assert marginal(lambda count: {"cpu": 100.0 + 3.0 * count, "rss": 7.0}, 40, 400) == {"cpu": 3.0, "rss": 0.0}


def test_program_is_measured_in_cpu_wall_and_its_own_memory() -> None:
    large = spent([sys.executable, "-I", "-c", "bytearray(64 << 20)"])
    small = spent([sys.executable, "-I", "-c", "pass"])

    assert small["cpu"] > 0
    assert small["wall"] > 0
    assert large["rss"] - small["rss"] > 48


def test_program_that_fails_says_so_in_its_own_words() -> None:
    with pytest.raises(RuntimeError, match=r"ended with 3: alas"):
        spent([sys.executable, "-I", "-c", "import sys; print('alas', file=sys.stderr); sys.exit(3)"])
    with pytest.raises(RuntimeError, match="could not be started"):
        spent(["/no/such/program"])


def test_measured_programs_do_not_see_settings_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EVALWRIGHT_JOBS", "EVALCTL_TIMEOUT", "PYTHONDONTWRITEBYTECODE", "SOURCE_DATE_EPOCH"):
        monkeypatch.setenv(name, "1")

    seen = environment(EVALWRIGHT_CLONE="copy")

    assert not {"EVALWRIGHT_JOBS", "EVALCTL_TIMEOUT", "PYTHONDONTWRITEBYTECODE", "SOURCE_DATE_EPOCH"} & set(seen)
    assert seen["EVALWRIGHT_CLONE"] == "copy"


def test_text_of_a_row_shows_figures_ratios_and_the_verdict() -> None:
    text = as_text(row(line(30.0, Target(2, FLOOR), floor=10.0)))

    assert "CPU (ms): ours 30.0   floor 10.0 (3.00x)" in text
    assert "missed: <= 2x floor" in text


def test_text_of_an_absent_row_says_why() -> None:
    assert "not measured: bwrap is not installed" in as_text(row(absent="bwrap is not installed"))


def test_page_shows_every_known_row_in_order_with_machine_and_date() -> None:
    missed = line(1234.5, Target(2, FLOOR), Target(48), floor=10.0)
    rows = [row(missed, name="P2"), row(line(1.0, Target(2, FLOOR), floor=10.0, ideal=4.0), name="P1")]

    page = as_page(rows, {"P1": "first", "P2": "second", "P3": "third", "S1": "curve"})

    assert page.index("**P1**") < page.index("**P2**") < page.index("**P3**") < page.index("## Scale") < page.index("**S1**")
    assert "| P2 | CPU (ms) | 1,234 | 10.0 (123.45x) |  |  |  | <= 2x floor, <= 48 ms | **missed** |" in page
    assert "| P1 | CPU (ms) | 1.00 | 10.0 (0.10x) |  |  | ideal 4.00 (0.25x) | <= 2x floor | met |" in page
    assert "third*: not measured yet" in page
    assert "Lines with a target: 1 met, 1 missed. Missed in: P2. Without figures: P3, S1." in page
    assert page.index("| P1 | 2026") < page.index("| P2 | 2026")
    assert page.count("- kernel: Linux 6") == 1
    assert "| P1 | 2026-01-02 03:04 UTC | 0.1 to 0.2 | 1 at abc |" in page


def test_every_line_of_the_pages_tables_has_as_many_cells_as_their_head() -> None:
    page = as_page([row(line(1.0, floor=2.0), name=name) for name in ROWS], {name: what for name, (what, _) in ROWS.items()})
    blocks = [block.splitlines() for block in page.split("\n\n") if block.startswith("| row")]

    assert len(blocks) == 3
    for block in blocks:
        assert {text.count("|") for text in block} == {block[0].count("|")}


def test_kept_rows_come_back_as_they_were_and_newer_ones_replace_older(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "rows.json"
    first, second = row(line(1.0, Target(2, FLOOR), floor=1.0)), row(absent="no bwrap", name="P14")
    newer = row(line(2.0, Target(48)))

    for one in (first, second, newer):
        keep(path, one)

    assert [as_text(one) for one in kept(path)] == [as_text(newer), as_text(second)]
    assert [one.stamp for one in kept(path)] == [newer.stamp, second.stamp]


def test_nothing_kept_is_no_rows_and_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    assert kept(path) == []

    path.write_text(json.dumps([{"id": "P1"}]))
    with pytest.raises(ValueError, match="holds no rows of the bench; remove it"):
        kept(path)


@pytest.mark.parametrize(
    ("rows", "status", "said"),
    [
        ([row(line(1.0, Target(2, FLOOR), floor=1.0))], 0, ""),
        ([row(absent="bwrap is not installed")], 0, ""),
        ([row(line(3.0, Target(2, FLOOR), Target(5), floor=1.0))], 6, "P1 misses its target: CPU is not <= 2x floor\n"),
        ([row(absent="it ended with 1", broken=True)], 3, "P1 broke: it ended with 1\n"),
        (
            [row(absent="oh", broken=True), row(line(9.0, Target(5)))],
            6,
            "P1 broke: oh\nP1 misses its target: CPU is not <= 5 ms\n",
        ),
    ],
    ids=["met", "absent", "missed", "broken", "both"],
)
def test_check_names_the_rows_that_miss_a_target(
    rows: list[Row], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict(rows) == status
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(("error", "broken"), [(Absent("no bwrap"), False), (RuntimeError("it ended with 1"), True)])
def test_row_that_cannot_be_measured_says_why_and_whether_it_broke(error: Exception, broken: bool, tmp_path: Path) -> None:
    def measure(bench: Bench) -> Iterator[Line]:
        yield line(1.0)
        raise error

    one = measured(Bench(tmp_path), "P14", "a command", measure)

    assert (one.lines, one.absent, one.broken) == ((), str(error), broken)
    assert one.stamp["date"].endswith("UTC")


def test_measured_row_tells_the_load_before_and_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = measured(Bench(tmp_path), "P14", "a command", lambda _: iter([line(1.0, Target(2))]))

    assert one.lines == [line(1.0, Target(2))]
    assert " to " in one.stamp["load"]
    assert "met: <= 2 ms" in capsys.readouterr().out


def test_table_has_every_row_of_the_design() -> None:
    assert [*ROWS] == ["P1", "P1b", *(f"P{number}" for number in range(2, 18)), "S1", "S2", "S3", "S4"]


def test_places_are_new_and_quick_counts_are_the_small_ones(tmp_path: Path) -> None:
    quick, full = Bench(tmp_path, quick=True), Bench(tmp_path, numbers=itertools.count(100))

    assert len({quick.place("a"), quick.place("a"), full.place("a")}) == 3
    assert (quick.count(400, 40), full.count(400, 40)) == (40, 400)
    assert full.rounds == 5


def test_suites_of_the_bench_are_valid(project: Project) -> None:
    write_suite(project.path, "noop", 3)

    assert project.call("validate", "noop", "--json").data["case_count"] == 3
