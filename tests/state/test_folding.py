"""Eight ranks that fail alike are one line; whoever fails in another way is not hidden among them."""

from __future__ import annotations

import random

import pytest

from console.state.folding import folds


def traceback(rank: int | None, error: str = "RuntimeError: target_layer_ids missing", line: int = 88) -> list[str]:
    mark = f"[rank{rank}]: " if rank is not None else ""
    frames = ["Traceback (most recent call last):", f'  File "/srv/fit.py", line {line}, in <module>', "    main()"]
    return [mark + text for text in [*frames, error]]


def mixed(*blocks: list[str], seed: int = 3) -> list[str]:
    """Lines of several writers, each one's in their order."""
    chance, left, out = random.Random(seed), [list(block) for block in blocks], []
    while left:
        block = chance.choice(left)
        out.append(block.pop(0))
        left = [each for each in left if each]
    return out


def test_equal_tracebacks_of_ranks_become_one_line_that_names_the_first() -> None:
    texts = ["step 1 loss 1.0", *traceback(3), *(line for rank in (0, 1, 2, 4, 5, 6, 7) for line in traceback(rank))]

    (fold,) = folds(texts)

    assert fold.text == "8 ranks: RuntimeError: target_layer_ids missing  (rank 3 first)"
    assert fold.first == 1
    assert fold.members == frozenset(range(1, 33))


@pytest.mark.parametrize("seed", range(6))
def test_lines_of_ranks_may_be_mixed(seed: int) -> None:
    texts = mixed(*(traceback(rank) for rank in range(8)), ["[other] hello"] * 5, seed=seed)

    (fold,) = folds(texts)

    assert fold.count == 8
    assert {texts[index] for index in set(range(len(texts))) - fold.members} == {"[other] hello"}


def test_another_error_or_another_line_of_code_is_not_folded_away() -> None:
    texts = [*traceback(0), *traceback(1), *traceback(2, "ValueError: other"), *traceback(3, line=99)]

    (fold,) = folds(texts)

    assert (fold.count, fold.ranks) == (2, ("0", "1"))
    assert fold.members == frozenset(range(8))


def test_numbers_in_the_message_do_not_make_it_another_error() -> None:
    texts = [
        *traceback(0, "RuntimeError: rank 0 at 0x7fa1 failed"),
        *traceback(1, "RuntimeError: rank 1 at 0x7fb2 failed"),
    ]

    assert [fold.text for fold in folds(texts)] == ["2 ranks: RuntimeError: rank 0 at 0x7fa1 failed  (rank 0 first)"]


def test_tracebacks_without_ranks_fold_where_they_follow_each_other() -> None:
    texts = [*traceback(None), *traceback(None), "after"]

    (fold,) = folds(texts)

    assert fold.text == "2 equal tracebacks: RuntimeError: target_layer_ids missing"
    assert fold.members == frozenset(range(8))


def test_a_chained_traceback_is_one() -> None:
    def chained(rank: int) -> list[str]:
        between = ["", "During handling of the above exception, another exception occurred:", ""]
        inner = [f"[rank{rank}]: {text}" for text in between]
        return [*traceback(rank, "KeyError: 'x'"), *inner, *traceback(rank)]

    texts = [*chained(0), *chained(1)]

    (fold,) = folds(texts)

    assert fold.count == 2
    assert fold.error == "RuntimeError: target_layer_ids missing"
    assert fold.members == frozenset(range(len(texts)))


def test_one_traceback_alone_and_one_that_has_not_ended_are_left_as_they_are() -> None:
    assert folds(traceback(0)) == []
    assert folds([*traceback(0)[:3], *traceback(1)[:3]]) == []
    assert folds([]) == []
