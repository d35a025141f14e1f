"""General frameworks and reinforcement learning. Data only: `formatrules` says what the fields mean."""

from __future__ import annotations

from typing import Final

from console.state.formatrules import (
    BAR,
    COLON,
    INT,
    NAMED_LOSS,
    NAMED_STEP,
    QUOTED,
    SPACED,
    VALUE,
    Format,
    Kind,
    Lazy,
    Rule,
    Scope,
)

_DASHED: Final = Lazy(rf" - (?P<key>[^\s:]+(?::[^\s:]+)?):(?:np\.(?:float|int)\d\d\()?(?P<val>{VALUE})(?=[ )]|$)")
"""` - actor/pg_loss:0.0031 - timing_s/step:60.06`, the numbers as numpy writes them or not."""

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="deepspeed",
        title="DeepSpeed",
        literals=("step=", "steps: "),
        aliases={"loss": "loss", "CurrSamplesPerSec": "samples_per_s", "samples/sec": "samples_per_s"},
        derives="samples/s x sequence length",
        rules=(
            Rule(kind=Kind.STEP, head=Lazy(rf"step={NAMED_STEP}, skipped=\d+, lr=\[(?P<lr>{VALUE})")),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"epoch=\d+/micro_step=\d+/global_step={NAMED_STEP}, (?P<rest>.*)"),
                pairs=(SPACED,),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"steps: {NAMED_STEP} loss: {NAMED_LOSS} (?:lr: (?P<lr>{VALUE}) )?"
                    r"iter time \(s\): (?P<step_s>[\d.]+) (?P<rest>samples/sec: .*)"
                ),
                pairs=(COLON,),
            ),
        ),
        samples=(
            (
                (
                    "[2026-02-11 07:15:09,551] [INFO] [logging.py:96:log_dist] [Rank 0] step=64, skipped=0, "
                    "lr=[3e-05], mom=[0.9]"
                ),
                {"kind": "step", "step": 64, "lr": 3e-05, "loss": None},
            ),
            (
                "steps: 64 loss: 2.0625 iter time (s): 1.500 samples/sec: 170.100",
                {"kind": "step", "step": 64, "step_s": 1.5},
            ),
        ),
        refuses=(
            "[2026-02-11 07:15:09,551] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | step_microstep: 80.01",
        ),
    ),
    Format(
        name="torchtune",
        title="torchtune",
        literals=("Step ", "|Loss: ", '"loss"', '"val_loss"'),
        aliases={"loss": "loss", "val_loss": "loss", "lr": "lr", "grad_norm": "grad_norm"},
        rates={"tokens_per_second_per_gpu": Scope.PER_DEVICE},
        derives="tokens_per_second_per_gpu x number of GPUs is the global rate",
        rules=(
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"Step {NAMED_STEP} \| (?P<rest>(?=[^|]*\bval_loss:)(?!.*(?<![\w.])loss:).*)"),
                pairs=(COLON,),
                needs=frozenset({"loss"}),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Step {NAMED_STEP} \| (?P<rest>\w+:(?:[-+\d.]|nan|inf).*)"),
                pairs=(COLON,),
                needs=frozenset({"loss"}),
            ),
            # The bar is the epoch's; the step stands before it.
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"\d+\|(?P<global_step>{INT})\|Loss: {NAMED_LOSS}: +{BAR}"),
                pairs=(SPACED,),
                bar=True,
                epoch_from=1,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf'\{{"step": {NAMED_STEP}, (?P<rest>(?=[^{{}}]*"loss": )(?!.*"tok[\w/]*s(?:ec)?":)[^{{}}]*)\}}'
                ),
                pairs=(QUOTED,),
                needs=frozenset({"loss"}),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf'\{{"step": {NAMED_STEP}, (?P<rest>(?=[^{{}}]*"val_loss": )[^{{}}]*)\}}'),
                pairs=(QUOTED,),
                needs=frozenset({"loss"}),
            ),
        ),
        samples=(
            (
                (
                    "Step 64 | loss:2.0625 lr:3e-05 tokens_per_second_per_gpu:3100.5 peak_memory_active:40.1 "
                    "grad_norm:0.75 "
                ),
                {"kind": "step", "step": 64, "loss": 2.0625, "tok_s": 3100.5, "scope": "per_device", "grad_norm": 0.75},
            ),
            ("Step 100 | val_loss:2.2500 ", {"kind": "eval", "step": 100, "loss": 2.25}),
            (
                "1|64|Loss: 2.0625:   6%|▋         | 64/1000 [01:04<15:40,  1.00s/it]",
                {"kind": "step", "step": 64, "loss": 2.0625},
            ),
            ('{"step": 64, "loss": 2.0625, "lr": 3e-05}', {"kind": "step", "step": 64, "loss": 2.0625, "lr": 3e-05}),
        ),
    ),
    Format(
        name="fairseq",
        title="fairseq",
        literals=("num_updates",),
        aliases={
            "loss": "loss",
            "num_updates": "step",
            "lr": "lr",
            "gnorm": "grad_norm",
            "valid_loss": "loss",
            "valid_num_updates": "step",
        },
        rates={"wps": Scope.GLOBAL},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(r"train_inner \| epoch \d+:[ \d/]+(?P<rest>[a-z].*)"),
                pairs=(SPACED,),
                needs=frozenset({"step"}),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(r"train_inner \| \{(?P<rest>.*)\}"),
                pairs=(QUOTED,),
                needs=frozenset({"step"}),
            ),
            # Hydra's logger names the part of the program in brackets, which are no part of the record.
            Rule(
                kind=Kind.STEP,
                head=Lazy(r'\{"epoch": \d+, "update": [\d.]+, (?P<rest>"loss": .*)\}'),
                pairs=(QUOTED,),
                needs=frozenset({"step"}),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(r"(?:\w+ \| )?\{(?P<rest>(?=.*\"valid_loss\": ).*)\}"), pairs=(QUOTED,)),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(r"(?:[\w.-]+ \| )?epoch \d+ \| valid on '[^']+' subset \| (?P<rest>.*)"),
                pairs=(SPACED,),
                needs=frozenset({"loss"}),
            ),
            # fairseq before 0.10, and its bar
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"(?:\| )?epoch \d+: +(?:\d{{1,3}}%\|[^|]{{0,400}}\| *)?{INT} ?/ ?{INT} (?P<rest>.*\bloss=.*)"
                ),
                pairs=(SPACED,),
                needs=frozenset({"step"}),
                bar=True,
            ),
        ),
        samples=(
            (
                (
                    "2026-02-11 07:15:09 | INFO | train_inner | epoch 001:     50 / 900 loss=6.125, wps=18000.5, "
                    "num_updates=640, "
                    "lr=0.0003, gnorm=0.9"
                ),
                {"kind": "step", "step": 640, "loss": 6.125, "tok_s": 18000.5, "scope": "global", "grad_norm": 0.9},
            ),
            (
                (
                    "2026-02-11 07:20:00 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 5.5 | wps 50100 | "
                    "num_updates 900"
                ),
                {"kind": "eval", "step": 900, "loss": 5.5, "tok_s": None},
            ),
        ),
        refuses=(
            "2026-02-11 07:20:00 | INFO | train | epoch 001 | loss 5.9 | wps 17900 | num_updates 900 | lr 0.0003",
        ),
    ),
    Format(
        name="verl",
        title="veRL",
        literals=("step:", "Training Progress:"),
        aliases={
            "actor/grad_norm": "grad_norm",
            "actor/lr": "lr",
            "perf/time_per_step": "step_s",
            "perf/total_num_tokens": "step_tokens",
            "train/loss": "loss",
            "train/grad_norm": "grad_norm",
            "train/lr": "lr",
            "val/loss": "loss",
        },
        rates={"perf/throughput": Scope.PER_DEVICE},
        derives="perf/total_num_tokens / perf/time_per_step is the global rate",
        rules=(
            # Where a step was validated, too, both stand in one line, whichever comes first.
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"step:{NAMED_STEP}(?P<rest> - val[-/](?!.* - (?:actor|critic)/).*)"),
                pairs=(_DASHED,),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"step:{NAMED_STEP}(?P<rest> - [\w-]+/[^\s:]+:.*)"),
                pairs=(_DASHED,),
            ),
            Rule(kind=Kind.STEP, head=Lazy(rf"Training Progress: +{BAR}"), pairs=(SPACED,), bar=True),
        ),
        samples=(
            (
                (
                    "step:64 - actor/pg_loss:0.0125 - actor/grad_norm:0.5000 - perf/time_per_step:40.00 - "
                    "perf/throughput:1250.5"
                ),
                {"kind": "step", "step": 64, "loss": None, "grad_norm": 0.5, "tok_s": 1250.5, "scope": "per_device"},
            ),
            ("step:64 - val-core/x/acc/mean@1:0.5", {"kind": "eval", "step": 64}),
            ("Training Progress:   6%|▋         | 64/1000 [42:40<10:24:00, 40.00s/it]", {"kind": "step", "step": 64}),
        ),
    ),
    # Behind those whose JSON lines are known: a script of one's own with a JSON logger.
    Format(
        name="json",
        title="JSON lines of a step and a loss",
        literals=('"step"', '"global_step"', '"iter"', '"iteration"'),
        aliases={
            "step": "step",
            "iter": "step",
            "iteration": "step",
            "global_step": "global_step",
            "total_steps": "total",
            "loss": "loss",
            "train_loss": "loss",
            "train/loss": "loss",
            "val_loss": "loss",
            "eval_loss": "loss",
            "lr": "lr",
            "learning_rate": "lr",
            "grad_norm": "grad_norm",
            "min_ready": "queue_min",
            "max_depth": "queue_max",
        },
        rates={
            "tok_s": Scope.GLOBAL,
            "tok/s": Scope.GLOBAL,
            "tokens/s": Scope.GLOBAL,
            "tokens_per_s": Scope.GLOBAL,
            "tokens_per_sec": Scope.GLOBAL,
            "tokens_per_second": Scope.GLOBAL,
        },
        derives="tokens per step x steps since the last line / time",
        rules=tuple(
            Rule(
                kind=kind,
                head=Lazy(rf'\{{(?P<rest>(?=[^{{}}]*"(?:{losses})": ?"?{VALUE}"?[,\s}}])[^{{}}]*)\}}'),
                pairs=(QUOTED,),
                needs=frozenset({"step", "global_step"}),
            )
            for kind, losses in ((Kind.STEP, "(?:train[_/])?loss"), (Kind.EVAL, "(?:val|eval)_loss"))
        ),
        samples=(
            (
                '{"event": "step", "step": 640, "loss": 2.0625, "tok_s": 18000.5, "level": "info"}',
                {"kind": "step", "step": 640, "loss": 2.0625, "tok_s": 18000.5, "scope": "global"},
            ),
            (
                '{"ts": "2026-02-11T07:15:09Z", "iter": 41, "train/loss": NaN, "lr": 0.0003}',
                {"kind": "step", "step": 41, "loss": None, "loss_state": "nan", "lr": 3e-4, "tok_s": None},
            ),
            ('{"epoch": 1, "step": 800, "val_loss": 2.25}', {"kind": "eval", "step": 800, "loss": 2.25}),
        ),
        refuses=(
            '{"step": 0, "loss": "kl", "max_steps": 60000}',
            '{"best_step": 1200, "best_loss": 1.2011}',
            '{"step": 640, "request": {"loss": 1}}',
        ),
    ),
)
