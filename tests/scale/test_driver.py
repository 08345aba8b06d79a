"""Tasks through any workers: in order, once, and nothing is at work any more after an error."""

import threading
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.errors import CatalogError
from skyfill.scale.driver import Run, Task, run_job, run_tasks
from skyfill.scale.job_folder import Done, folder_of, open_job
from skyfill.scale.workers import alone, threads

PLACES = {"alone": lambda: nullcontext(alone()), "threads": threads}


def write(text, path):
    path.write_text(text)


def named(n):
    return [Task(f"{i:03d}", partial(write, str(i))) for i in range(n)]


class Joined:
    """An output of one text, as simple as can be."""

    def __init__(self, path, is_open=True):
        self.path, self.texts, self._is_open = path, [], is_open

    def check(self):
        if not self._is_open:
            raise CatalogError("no room")

    def add(self, part):
        self.texts.append(part.read_text())
        return {"rows": 1, "length": len(self.texts[-1])}

    def publish(self, folder):
        self.path.write_text(" ".join(self.texts))


def do(output, tasks, *, workers=None, facts=None, keep=False, **run):
    target = Joined(output)
    how = (Run(**run), workers or alone(), facts or {})
    return run_job(*how, output, lambda folder: (target, tasks), keep=keep)


@pytest.mark.parametrize("place", PLACES)
@given(n=st.integers(0, 30), finished=st.sets(st.integers(0, 29)))
@settings(max_examples=20)
def test_every_part_is_made_once_and_given_in_order(place, n, finished, tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("parts"), []
    for i in finished:
        (folder / f"{i:03d}").write_text("old")

    def make(i, path):
        made.append(i)
        path.write_text(str(i))

    tasks = [Task(f"{i:03d}", partial(make, i)) for i in range(n)]
    with PLACES[place]() as workers, closing(run_tasks(tasks, folder, workers)) as parts:
        found = [(part.name, part.read_text()) for part in parts]
    expected = [(f"{i:03d}", "old" if i in finished else str(i)) for i in range(n)]
    assert found == expected
    assert sorted(made) == [i for i in range(n) if i not in finished]
    assert [p for p in folder.iterdir() if p.name.endswith(".new")] == []


def test_after_an_error_nothing_is_written_any_more(tmp_path, monkeypatch):
    monkeypatch.setenv("SKYFILL_THREADS", "3")
    begun, may_end, ended = threading.Barrier(3), threading.Event(), []

    def slow(path):
        begun.wait()
        may_end.wait()
        path.write_text("slow")
        ended.append(path)

    def fail(path):
        begun.wait()
        raise CatalogError("a fault")

    def withdraw(future):
        may_end.set()  # the error has reached the driver
        return future.cancel()

    def never(path):
        path.write_text("never")

    tasks = [Task("0", fail), Task("1", slow), Task("2", slow), Task("3", never)]
    with (
        threads() as workers,
        pytest.raises(CatalogError, match="a fault"),
        closing(run_tasks(tasks, tmp_path, replace(workers, withdraw=withdraw))) as parts,
    ):
        next(parts)
    # Both that were at work have been waited for, and their parts count.
    assert len(ended) == 2
    assert {path.name for path in tmp_path.iterdir()} >= {"1", "2"}
    assert {path.name for path in tmp_path.iterdir()} <= {"1", "2", "3"}


def test_what_has_not_begun_is_withdrawn(tmp_path, monkeypatch):
    monkeypatch.setenv("SKYFILL_THREADS", "1")
    begun, may_end, made = threading.Event(), threading.Event(), []

    def first(path):
        begun.set()
        may_end.wait()
        path.touch()

    def second(path):
        made.append(path)
        path.touch()

    with threads() as workers:
        waiting = [workers.submit(first, tmp_path / "a"), workers.submit(second, tmp_path / "b")]
        begun.wait()
        assert not workers.withdraw(waiting[0])
        assert workers.withdraw(waiting[1])
        may_end.set()
    assert made == []


def test_a_single_task_has_all_cores_for_its_loops(tmp_path):
    places = []

    def make(path):
        places.append(threading.current_thread())
        path.touch()

    for n in (1, 2):
        tasks = [Task(f"{n}{i}", make) for i in range(n)]
        with threads() as workers, closing(run_tasks(tasks, tmp_path, workers)) as parts:
            list(parts)
    assert places[0] is threading.current_thread()
    assert threading.current_thread() not in places[1:]


def test_a_job_counts_tells_and_leaves_nothing_but_its_output(tmp_path):
    told = []
    done = do(tmp_path / "out", named(12), progress=told.append)
    assert done == Done(12, {"length": 14})
    assert told == [1] * 12
    assert (tmp_path / "out").read_text() == " ".join(map(str, range(12)))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("keep", [False, True])
def test_an_error_leaves_parts_only_where_they_are_wanted(keep, tmp_path):
    def fail(path):
        raise CatalogError("a fault")

    tasks = [*named(3), Task("fails", fail)]
    for resume in (False, True):
        with pytest.raises(CatalogError, match="a fault"):
            do(tmp_path / "out", tasks, resume=resume, keep=keep)
        folder = folder_of(tmp_path / "out")
        assert folder.exists() == (resume or keep)
        if folder.exists():
            assert len(list((folder / "parts").iterdir())) == 3
    assert not (tmp_path / "out").exists()


def test_an_error_before_the_first_part_leaves_nothing(tmp_path):
    for resume in (False, True):
        with pytest.raises(CatalogError, match="no room"):
            run_job(
                Run(resume=resume),
                alone(),
                {},
                tmp_path / "out",
                lambda folder: (Joined(tmp_path / "out", is_open=False), named(2)),
            )
        assert [*tmp_path.iterdir()] == []
    with pytest.raises(CatalogError, match="there is no directory"):
        do(tmp_path / "none" / "out", named(2))


class KilledError(BaseException):
    """Stands for a kill: nothing catches it, nothing is tidied up."""


def kill(*_):
    raise KilledError


@pytest.mark.parametrize("moment", ["finish", "publish", "rename", "rmtree"])
def test_a_job_that_was_killed_at_its_end_is_brought_to_its_end(moment, tmp_path, monkeypatch):
    output = tmp_path / "out"
    where = {
        "finish": "skyfill.scale.job_folder.JobFolder.finish",
        "publish": f"{__name__}.Joined.publish",
        "rename": "skyfill.scale.job_folder.Path.rename",
        "rmtree": "skyfill.scale.part_sums._remove",
    }
    with monkeypatch.context() as patch:
        patch.setattr(where[moment], kill)
        with pytest.raises(KilledError):
            do(output, named(5))
    made = []
    again = [Task(task.name, made.append) for task in named(5)]
    assert do(output, again, resume=True) == Done(5, {"length": 5})
    assert made == []
    assert output.read_text() == "0 1 2 3 4"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_output_that_was_finished_and_removed_is_missed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("skyfill.scale.part_sums._remove", kill)
        with pytest.raises(KilledError):
            do(tmp_path / "out", named(2))
    (tmp_path / "out").unlink()
    with pytest.raises(CatalogError, match="gone; run without --resume"):
        do(tmp_path / "out", named(2), resume=True)


def test_parts_of_another_job_are_refused_and_a_new_start_drops_them(tmp_path):
    output = tmp_path / "out"
    with pytest.raises(KilledError):
        do(output, [*named(3), Task("kill", kill)], facts={"seed": 1, "model": "a"})
    with pytest.raises(CatalogError, match=r"another run \(it differs in: model, seed\).*again"):
        do(output, named(3), facts={"seed": 2, "model": "b"}, resume=True)
    assert len(list((folder_of(output) / "parts").iterdir())) == 3
    told = []
    new = [Task(task.name, partial(write, "new")) for task in named(3)]
    do(output, new, facts={"seed": 2, "model": "b"}, progress=told.append)
    assert output.read_text() == "new new new"


def test_leftovers_of_a_kill_are_swept(tmp_path):
    folder = folder_of(tmp_path / "out")
    with pytest.raises(KilledError):
        do(tmp_path / "out", [*named(2), Task("kill", kill)])
    (folder / "parts" / ".002.abcd.new").write_text("torn")
    (folder / "joined").write_text("torn")
    with open_job(tmp_path / "out", {}, resume=True) as own:
        assert sorted(p.name for p in folder.iterdir()) == ["job.json", "lock", "parts", "sums"]
        assert sorted(p.name for p in own.parts.iterdir()) == ["000", "001"]


@pytest.mark.parametrize("damage", ["flip", "cut", "journal", "torn"])
def test_parts_that_are_not_what_was_recorded_are_made_again(tmp_path, damage):
    output, made = tmp_path / "out", []

    def make(i, path):
        made.append(i)
        path.write_text(str(i))

    tasks = [Task(f"part-{i}.parquet", partial(make, i)) for i in range(4)]
    with pytest.raises(KilledError):
        do(output, [*tasks, Task("kill", kill)])
    folder = folder_of(output)
    made.clear()
    if damage in ("flip", "cut"):
        (folder / "parts" / "part-1.parquet").write_text({"flip": "9", "cut": ""}[damage])
    else:
        lines = (folder / "sums").read_bytes()
        (folder / "sums").write_bytes(lines[:-9] if damage == "torn" else b"\xff{]" + lines[9:])
    do(output, tasks, resume=True)
    assert output.read_text() == "0 1 2 3"
    assert made == {"flip": [1], "cut": [1], "journal": [0], "torn": [3]}[damage]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("resume", [True, False])
def test_files_of_others_in_the_folder_of_parts_are_never_removed(tmp_path, resume):
    output, folder = tmp_path / "out", folder_of(tmp_path / "out")
    with pytest.raises(KilledError):
        do(output, [*named(2), Task("kill", kill)])
    notes = [folder / "notes.txt", folder / "parts" / "thesis.tex"]
    for path in notes:
        path.write_text("mine")
    with pytest.raises(CatalogError, match=r"thesis.tex: is no part of the result; move it"):
        do(output, named(2), resume=resume)
    assert [path.read_text() for path in notes] == ["mine", "mine"]
    notes[1].rename(tmp_path / "thesis.tex")
    do(output, named(2), resume=resume)
    assert output.read_text() == "0 1"
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, '{"layout": 3, "done": 5}'])
def test_a_damaged_record_of_a_run_is_named(tmp_path, text):
    output = tmp_path / "out"
    with pytest.raises(KilledError):
        do(output, [*named(2), Task("kill", kill)])
    (folder_of(output) / "job.json").write_text(text)
    with pytest.raises(CatalogError, match=r"job.json: the record of the run is damaged"):
        do(output, named(2), resume=True)
    do(output, named(2))
    assert output.read_text() == "0 1"


def test_a_lock_is_of_the_folder_that_is_there(tmp_path):
    """A run that waits for nobody may open the folder that another is just removing."""
    held, said, folder = [], [], folder_of(tmp_path / "out")

    def end_and_begin(n):
        for _ in range(n):
            try:
                with open_job(tmp_path / "out", {}):
                    held.append(1)
                    assert sum(held) == 1
                    assert (folder / "lock").exists()
                    held.pop()
            except CatalogError as error:
                said.append(str(error))

    runs = [threading.Thread(target=end_and_begin, args=(100,)) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert not folder.exists()
    assert {text.partition(": ")[2] for text in said} <= {
        "another run is writing it; wait until it is done"
    }


def test_two_runs_cannot_write_one_output(tmp_path):
    with (
        open_job(tmp_path / "out", {}, resume=True),
        pytest.raises(CatalogError, match="another run is writing it"),
        open_job(tmp_path / "out", {}, resume=True),
    ):
        pass


def test_the_first_run_says_where_the_output_comes_from(tmp_path):
    with pytest.raises(KilledError), open_job(tmp_path / "out", {}, provenance={"time": 1}):
        raise KilledError
    with open_job(tmp_path / "out", {}, provenance={"time": 2}, resume=True) as own:
        assert own.provenance == {"time": 1}


def test_a_path_is_all_that_a_part_needs(tmp_path):
    """A part has its name only when it is whole: what fails in the middle leaves none."""

    def half(path):
        Path(path).write_text("half")
        raise CatalogError("a fault")

    with pytest.raises(CatalogError, match="a fault"):
        do(tmp_path / "out", [Task("a", half)], resume=True, keep=True)
    assert not (folder_of(tmp_path / "out") / "parts" / "a").exists()
