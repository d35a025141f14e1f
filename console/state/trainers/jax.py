"""Trainers on JAX. Data only: `formatrules` says what the fields mean."""

from __future__ import annotations

from typing import Final

from console.state.formatrules import COLON, INT, NAMED_LOSS, NAMED_STEP, SPACED, VALUE, Format, Kind, Lazy, Rule, Scope

_SI: Final = r"[\d.]+[kMG]?"

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="maxtext",
        title="MaxText",
        literals=("completed ", "Completed eval", "eval metrics after step", "Config param "),
        aliases={"loss": "loss", "seconds": "step_s", "learning_rate": "lr", "grad_norm": "grad_norm"},
        rates={"Tokens/s/device": Scope.PER_DEVICE},
        derives="Tokens/s/device x number of devices is the global rate",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"(?:\[[\w ]+\], )?completed (?:profiler [\w/]+ )?step: {NAMED_STEP}, (?P<rest>.*)"),
                pairs=(COLON,),
                needs=frozenset({"loss", "step_s"}),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"(?:Completed eval after train step|eval metrics after step:) ?{NAMED_STEP}, (?P<rest>.*)"),
                pairs=(SPACED,),
            ),
            # It counts the batches of the evaluation.
            Rule(kind=Kind.EVAL, head=Lazy(rf"Completed eval step:? {INT}\b")),
            Rule(kind=Kind.HEADER, head=Lazy(rf"Config param max_target_length: (?P<seq_len>{INT})$")),
            Rule(kind=Kind.HEADER, head=Lazy(rf"Config param global_batch_size_to_train_on: (?P<global_batch>{INT})$")),
            Rule(kind=Kind.HEADER, head=Lazy(rf"Config param steps: (?P<total>{INT})$")),
            Rule(kind=Kind.HEADER, head=Lazy(r"Config param \w+: ")),
        ),
        samples=(
            (
                "completed step: 64, seconds: 2.500, TFLOP/s/device: 150.100, Tokens/s/device: 3276.800, loss: 4.125",
                {"kind": "step", "step": 64, "loss": 4.125, "tok_s": 3276.8, "scope": "per_device", "step_s": 2.5},
            ),
            (
                "Completed eval after train step 500, loss=3.250, perplexity=25.790",
                {"kind": "eval", "step": 500, "loss": 3.25},
            ),
        ),
    ),
    Format(
        name="levanter",
        title="Levanter",
        literals=("Progress on:", ":: validation loss", " validation loss: ", ":: eval ", "train: "),
        aliases={"loss": "loss"},
        derives="tokens per step x rate",
        rules=(
            # The step has three digits at most: `1.23kit`.
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"(?:.*?INFO :: )?Progress on:train (?P<step>{_SI})it/(?P<total>{_SI})it rate:"
                    r"(?:(?P<steps_per_s>[\d.]+)it/s|(?P<step_s>[\d.]+)s/it|\S*)"
                    rf"(?: remaining:(?P<eta>\S+))?.*?(?: postfix:(?:.*?\bloss={NAMED_LOSS})?|$)"
                ),
            ),
            # Its loss is that of the batches so far; the whole is said in a line of its own.
            Rule(kind=Kind.EVAL, head=Lazy(rf"(?:.*?INFO :: )?Progress on:eval (?:[\w./-]{{1,60}} )?(?:-|{_SI}it)/")),
            # At a terminal
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"train: +\d{{1,3}}%\|[^|]{{0,400}}\| *(?P<step>{_SI}) */ *(?P<total>{_SI}) *"
                    r"\[[\d:]+<(?P<eta>[^,\]]*), *(?:(?P<steps_per_s>[\d.]+) ?it/s|(?P<step_s>[\d.]+) ?s/it|\? ?it/s)"
                    r"(?:,(?P<rest>[^\]]*))?\]"
                ),
                pairs=(SPACED,),
                needs=frozenset({"loss"}),
                bar=True,
            ),
            Rule(kind=Kind.EVAL, head=Lazy(rf".*?INFO :: (?:\S+ )?validation loss: {NAMED_LOSS}\s*$")),
            Rule(kind=Kind.EVAL, head=Lazy(rf".*?INFO :: eval loss: {NAMED_LOSS}\s*$")),
            # One of several data sets
            Rule(kind=Kind.EVAL, head=Lazy(rf".*?INFO :: eval \S+ loss: {VALUE}\s*$")),
        ),
        samples=(
            (
                (
                    "2026-02-11T07:15:09 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress "
                    "on:train "
                    "2.50kit/9.00kit rate:1.6it/s remaining:01:07:00 elapsed:26:00 postfix:loss=2.06"
                ),
                {"kind": "step", "step": 2500, "total_steps": 9000, "loss": 2.06},
            ),
            (
                "x - INFO :: Progress on:eval -/- rate:- remaining:? elapsed:00:00 postfix:-",
                {"kind": "eval", "step": None, "loss": None},
            ),
            (
                "train:  12%|█▏        | 1.12k/9.00k [09:20<1:05:40, 2.00it/s, loss=2.06]",
                {"kind": "step", "step": 1120, "total_steps": 9000, "loss": 2.06},
            ),
        ),
        refuses=(
            "Progress on:train is slow",
            "train:  12%|█▏        | 120/1000 [00:10<01:13, 12.0it/s]",
            'print("INFO :: Progress on:train {n}it/{total}it rate:{r}")',
        ),
    ),
)
