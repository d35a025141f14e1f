"""What takes longest is begun first, and the table that says so names files that are there."""

from pathlib import Path

from tests.order import LONGEST_FIRST, by_length


def test_every_file_that_takes_long_is_there_and_named_once() -> None:
    here = Path(__file__).parents[1]

    assert [file for file in LONGEST_FIRST if not (here / file).is_file()] == []
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)


def test_what_takes_long_is_begun_first_and_the_rest_by_its_number_of_tests() -> None:
    few, many = "tests/test_few.py", "tests/test_many.py"

    assert by_length([few, *[many] * 3, LONGEST_FIRST[1], LONGEST_FIRST[0]]) == [*LONGEST_FIRST[:2], many, few]


def test_xdist_hands_the_files_out_as_they_stand(pytestconfig: object) -> None:
    assert pytestconfig.getoption("loadscopereorder", False) is False  # type: ignore[attr-defined]
