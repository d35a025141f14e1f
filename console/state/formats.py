"""The log formats that the console knows, as data, and how to find one by name.

Each format carries lines that it must match and lines that it must refuse; the tests run them all against all formats.
The trainers beyond the first four are in `moreformats`. The order is the order of detection. Pure.
"""

from __future__ import annotations

import difflib
from typing import Final

from console.state.formatrules import (
    BAR,
    COLON,
    INT,
    PIPED,
    QUOTED,
    RATE_LAST,
    SPACED,
    Format,
    FormatError,
    Kind,
    Lazy,
    Rule,
    Scope,
    user_format,
)
from console.state.moreformats import MORE

_DFLASH: Final = Format(
    name="dflash",
    title="DFlash pipeline",
    literals=("step", "Step"),
    aliases={
        "loss": "loss",
        "lr": "lr",
        "grad_norm": "grad_norm",
        "gnorm": "grad_norm",
        "min_ready": "queue_min",
        "max_depth": "queue_max",
    },
    rates={"tok/s": Scope.GLOBAL, "tokens/s": Scope.GLOBAL, "tok_s": Scope.GLOBAL},
    rules=(
        Rule(
            kind=Kind.OTHER,
            head=Lazy(rf"\[(?:drafter|target|worker) ?(?P<worker>\d+)\] step (?P<worker_step>{INT})(?P<rest>.*)"),
            pairs=(SPACED, RATE_LAST),
            scope=Scope.RANK,
        ),
        Rule(
            kind=Kind.STEP,
            head=Lazy(rf"step +(?P<step>{INT})(?: */ *(?P<total>{INT}))? *\|(?!.*\| norm )(?P<rest>.*)"),
            pairs=(SPACED, RATE_LAST),
            needs=frozenset({"loss", "tok_s"}),
            rejects=frozenset({"local_loss", "val_loss", "eval_loss"}),
        ),
        Rule(
            kind=Kind.STEP,
            head=Lazy(
                rf"step[ :=]+(?P<step>{INT})(?: */ *(?P<total>{INT}))?[,;:]? +(?P<rest>[^|].*\btok(?:ens)?[/_]s\b.*)"
            ),
            pairs=(SPACED, RATE_LAST),
            needs=frozenset({"loss"}),
            rejects=frozenset({"local_loss", "val_loss", "eval_loss"}),
        ),
        Rule(
            kind=Kind.HEADER,
            head=Lazy(rf"targets?: .*\btotal_steps=(?P<total>{INT})"),
        ),
    ),
    samples=(
        (
            (
                "[09:12:44] step 15730/48000 | loss 1.2505 | acc 0.532 | lr 4.75e-04 | tok/s 19,960 | hs_queue "
                "min_ready=6 max_depth=16"
            ),
            {"kind": "step", "step": 15730, "total_steps": 48000, "loss": 1.2505, "tok_s": 19960.0, "scope": "global"},
        ),
        (
            (
                "[2026-03-02 11:08:40] step 7/900 | loss 9.8812 | lr 1.00e-05 | tok/s 402 | hs_queue min_ready=0 "
                "max_depth=8"
            ),
            {"kind": "step", "step": 7, "loss": 9.8812, "lr": 1e-05, "queue_min": 0.0, "queue_max": 8.0},
        ),
        (
            "step 3311 | loss 1.4071 | 19.7K tok/s | min_ready 2 max_depth 16",
            {"kind": "step", "step": 3311, "loss": 1.4071, "tok_s": 19700.0, "queue_min": 2.0},
        ),
        ("step 12 | loss nan | tok/s 18,004", {"kind": "step", "step": 12, "loss": None, "loss_state": "nan"}),
        ("step=41 loss=2.25 tok/s=1.2M", {"kind": "step", "step": 41, "loss": 2.25, "tok_s": 1.2e6}),
        (
            "[drafter 7] step 15702 local_loss 1.2611 6.7K tok/s",
            {"kind": "other", "step": None, "loss": None, "tok_s": None, "scope": "rank"},
        ),
        (
            "targets: cuda:0-3 (tiny) | drafters: cuda:4-7 | total_steps=900 warmup=30",
            {"kind": "header", "total_steps": 900},
        ),
    ),
    refuses=(
        "best step 1200, best loss 1.2011, tok/s 3",
        "resumed at step 18000 | optimizer state loaded",
        "step 500: waiting for targets",
        "[drafter 5] step 900 | local_loss 1.31 | 6.9K tok/s",
        "step 900 | local_loss 1.31 | 6.9K tok/s",
        "step 900 | val_loss 1.25 | tok/s 20,000",
        '  File "/root/train_dflash_pipeline.py", line 911, in step',
        "    print(f'step {step}/{total} | loss {loss:.4f} | tok/s {rate:,.0f}')",
        "Namespace(step=0, loss='kl', lr=0.0006, max_steps=60000)",
    ),
)

_MEGATRON: Final = Format(
    name="megatron",
    title="Megatron-LM",
    literals=("iteration", "seq_length ", "global_batch_size ", "train_iters "),
    aliases={
        "lm loss": "loss",
        "loss": "loss",
        "learning rate": "lr",
        "grad norm": "grad_norm",
        "elapsed time per iteration (ms)": "step_ms",
        "global batch size": "global_batch",
        "number of nan iterations": "nan_count",
        "lm loss value": "loss",
    },
    rules=(
        Rule(
            kind=Kind.STEP,
            head=Lazy(rf"iteration +(?P<step>{INT}) */ *(?P<total>{INT}) *\|(?P<rest>.*)"),
            pairs=(PIPED,),
            needs=frozenset({"step_ms", "consumed samples", "loss"}),
        ),
        Rule(
            kind=Kind.EVAL,
            head=Lazy(rf"(?:validation|test) loss at iteration (?P<step>{INT})[^|]*\|(?P<rest>.*)"),
            pairs=(PIPED,),
        ),
        Rule(kind=Kind.HEADER, head=Lazy(rf"seq_length \.+ (?P<seq_len>{INT})$")),
        Rule(kind=Kind.HEADER, head=Lazy(rf"global_batch_size \.+ (?P<global_batch>{INT})$")),
        Rule(kind=Kind.HEADER, head=Lazy(rf"train_iters \.+ (?P<total>{INT})$")),
    ),
    vanished_loss_is_nan=True,
    samples=(
        (
            (
                " [2026-02-11 07:15:09.551200] iteration       40/    9000 | consumed samples:         2560 | "
                "elapsed time per "
                "iteration (ms): 812.5 | throughput per GPU (TFLOP/s/GPU): 388.1 | learning rate: 4.000000E-05 | "
                "global batch "
                "size:    64 | lm loss: 6.025500E+00 | loss scale: 1.0 | grad norm: 2.750 | number of skipped "
                "iterations:   0 "
                "| number of nan iterations:   0 |"
            ),
            {
                "kind": "step",
                "step": 40,
                "total_steps": 9000,
                "loss": 6.0255,
                "lr": 4e-05,
                "grad_norm": 2.75,
                "tok_s": None,
            },
        ),
        (
            (
                " iteration      500/    9000 | consumed samples:        32000 | elapsed time per iteration (ms): "
                "790.0 | learning "
                "rate: 4.000000E-05 | global batch size:    64 | loss scale: 1.0 | number of skipped iterations:   0 "
                "| number of "
                "nan iterations:   3 |"
            ),
            {"kind": "step", "step": 500, "loss": None, "loss_state": "nan"},
        ),
        (
            " validation loss at iteration 800 | lm loss value: 3.250000E+00 | lm loss PPL: 2.579034E+01 | ",
            {"kind": "eval", "step": 800, "loss": 3.25, "tok_s": None},
        ),
        ("  seq_length ...................................... 4096", {"kind": "header"}),
    ),
    refuses=(
        "min time across ranks (ms):",
        "  successfully loaded checkpoint from /ckpt/a [ t 1/2, p 1/1 ] at iteration 640",
        " > building indices for iteration 3/12 | done",
        "setting training iterations to 9000",
    ),
)

_TORCHTITAN: Final = Format(
    name="torchtitan",
    title="torchtitan",
    literals=("step:",),
    aliases={"loss": "loss", "grad_norm": "grad_norm", "lr": "lr"},
    rates={"tps": Scope.PER_DEVICE, "wps": Scope.PER_DEVICE},
    rules=(
        Rule(
            kind=Kind.STEP,
            head=Lazy(rf"step: *(?P<step>{INT}) +(?P<rest>loss: .*)"),
            pairs=(COLON,),
            needs=frozenset({"loss"}),
        ),
        Rule(
            kind=Kind.EVAL,
            head=Lazy(rf"validate step: *(?P<step>{INT}) +(?P<rest>loss: .*)"),
            pairs=(COLON,),
        ),
    ),
    checkpoint_at_last_step=True,
    samples=(
        (
            (
                "[titan] 2026-02-11 07:15:09,551 - root - INFO - step: 310  loss:  4.40120  grad_norm:  0.7500  "
                "memory: 44.10GiB(55.75%)  tps: 6,512  tflops: 371.20  mfu: 37.53%"
            ),
            {"kind": "step", "step": 310, "loss": 4.4012, "grad_norm": 0.75, "tok_s": 6512.0, "scope": "per_device"},
        ),
        (
            (
                "[rank0]:[titan] 2026-02-11 07:15:09,551 - root - INFO - step:  4  loss: 11.00250  memory: "
                "44.10GiB(55.75%)  "
                "wps: 801  mfu: N/A"
            ),
            {"kind": "step", "step": 4, "loss": 11.0025, "tok_s": 801.0, "scope": "per_device"},
        ),
        (
            "[titan] 2026-02-11 07:20:00,000 - root - INFO - validate step: 300  loss:  4.5000  tps: 8,100",
            {"kind": "eval", "step": 300, "loss": 4.5, "tok_s": None},
        ),
    ),
    refuses=(
        "[titan] 2026-02-11 07:14:58,100 - root - INFO - Training starts at step 1",
        "[titan] 2026-02-11 07:14:57,004 - root - INFO - CUDA capacity: NVIDIA H200 with 139.80GiB memory",
    ),
)

_HF: Final = Format(
    name="hf-trainer",
    title="Hugging Face Trainer",
    literals=("loss'", "%|", "Total optimization steps", "train_runtime"),
    aliases={
        "loss": "loss",
        "eval_loss": "loss",
        "grad_norm": "grad_norm",
        "learning_rate": "lr",
    },
    rates={
        "train_tokens_per_second": Scope.GLOBAL,
        "throughput": Scope.GLOBAL,
        "tokens/train_per_sec_per_gpu": Scope.PER_DEVICE,
    },
    rules=(
        Rule(
            kind=Kind.STEP,
            head=Lazy(r"\{(?=[^{}]*'loss': )(?P<rest>[^{}]*)\}"),
            pairs=(QUOTED,),
            needs=frozenset({"loss"}),
        ),
        Rule(kind=Kind.EVAL, head=Lazy(r"\{(?=[^{}]*'eval_loss': )(?P<rest>[^{}]*)\}"), pairs=(QUOTED,)),
        Rule(kind=Kind.STEP, head=Lazy(rf" *{BAR}"), pairs=(SPACED,), bar=True, unlabelled=True),
        Rule(kind=Kind.HEADER, head=Lazy(rf"Total optimization steps = (?P<total>{INT})$")),
    ),
    zero_loss_is_nan=True,
    step_from_bar=True,
    samples=(
        (
            "{'loss': 1.9044, 'grad_norm': 0.6112, 'learning_rate': 3e-05, 'epoch': 0.07}",
            {"kind": "step", "step": None, "loss": 1.9044, "grad_norm": 0.6112, "lr": 3e-05},
        ),
        (
            (
                "{'loss': '1.904', 'grad_norm': '0.6112', 'learning_rate': '3e-05', 'train_tokens_per_second': "
                "'2.05e+04', 'epoch': '0.07'}"
            ),
            {"kind": "step", "loss": 1.904, "tok_s": 20500.0, "scope": "global"},
        ),
        (
            "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-06, 'epoch': 0.91}",
            {"kind": "step", "loss": 0.0, "loss_state": "nan", "grad_norm": None},
        ),
        ("{'eval_loss': 1.5, 'eval_runtime': 9.5, 'epoch': 1.0}", {"kind": "eval", "loss": 1.5, "step": None}),
        (
            " 31%|███▏      | 310/1000 [10:20<23:00,  2.00s/it]",
            {"kind": "step", "step": 310, "total_steps": 1000, "loss": None},
        ),
    ),
    refuses=(
        "{'train_runtime': 811.5, 'train_samples_per_second': 12.1, 'train_loss': 1.7, 'epoch': 1.0}",
        "Loading weights:  31%|███▏      | 310/1000 [00:20<00:46, 15.00it/s]",
        "Loading checkpoint shards:  42%|████▏     | 5/12 [00:48<01:06,  9.51s/it]",
        "Map (num_proc=16):  31%|███▏      | 31000/100000 [00:20<00:46, 1500.00 examples/s]",
        (
            "Processed prompts:  31%|███▏      | 31/100 [00:06<00:13, 5.10it/s, est. speed input: 900.0 toks/s, "
            "output: 95.1 toks/s]"
        ),
        "model-00002-of-00009.safetensors:  31%|███▏      | 1.5G/4.9G [00:50<01:52, 30.1MB/s]",
        "{'loss': 'cross_entropy', 'steps': 1000}",
    ),
)

FORMATS: Final[tuple[Format, ...]] = (_DFLASH, _MEGATRON, _TORCHTITAN, _HF, *MORE)
"""Every known format, in the order in which a line is tried against them."""


def find_format(text: str) -> Format:
    """Return the format of a name, or that of a regular expression with named groups. Raises: FormatError."""
    by_name = {fmt.name: fmt for fmt in FORMATS}
    if (known := by_name.get(text)) is not None:
        return known
    if "(?P<" in text:
        return user_format(text)
    nearest = difflib.get_close_matches(text, [*by_name, "auto"], n=1)
    hint = f'; did you mean "{nearest[0]}"?' if nearest else ""
    raise FormatError(
        f'unknown log format "{text}"{hint} Known: auto, {", ".join(by_name)}, or a regex with (?P<step>...)'
    )
