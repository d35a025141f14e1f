"""Trainers of draft models for speculative decoding. Data only: `formatrules` says what the fields mean."""

from __future__ import annotations

from typing import Final

from console.state.formatrules import (
    BAR,
    COLON,
    INT,
    NAMED_LOSS,
    NAMED_STEP,
    QUOTED,
    RATE_LAST,
    SPACED,
    STEP_OF,
    VALUE,
    Block,
    Format,
    Kind,
    Lazy,
    Rule,
    Scope,
)

_OTHERS_LOSS: Final = frozenset({"local_loss", "val_loss", "eval_loss"})
_BEFORE_LOSS: Final = r"(?:(?![^|]*[Ll]oss)[^|]*\|){0,9}"
"""The fields before the first that names a loss."""
_VALIDATION: Final = r"(?:val|eval|validation|Val|Eval|Validation)"

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="dflash",
        title="DFlash pipeline",
        literals=("step", "Step", "targets"),
        aliases={
            "loss": "loss",
            "val_loss": "loss",
            "eval_loss": "loss",
            "lr": "lr",
            "grad_norm": "grad_norm",
            "gnorm": "grad_norm",
            "min_ready": "queue_min",
            "max_depth": "queue_max",
        },
        rates={
            "tok/s": Scope.GLOBAL,
            "tokens/s": Scope.GLOBAL,
            "tok_s": Scope.GLOBAL,
            "tok/sec": Scope.GLOBAL,
            "tokens/sec": Scope.GLOBAL,
        },
        rules=(
            Rule(
                kind=Kind.OTHER,
                head=Lazy(rf"\[(?:drafter|target|worker) ?(?P<worker>\d+)\] step (?P<worker_step>{INT})(?P<rest>.*)"),
                pairs=(SPACED, RATE_LAST),
                scope=Scope.RANK,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"\[?[Ss]tep[ :=]+(?P<step>{INT})(?: */ *(?P<total>{INT}))?\]? *\|"
                    r"(?!.*\| norm |(?:.*\|)? dt: |.*/gpu\)|(?: \w+:[\w.+-]+){2}"
                    rf"|(?! loss){_BEFORE_LOSS} *(?:{_VALIDATION}|[Tt]est|[Bb]est) [Ll]oss)(?P<rest>.*)"
                ),
                pairs=(SPACED, RATE_LAST),
                needs=frozenset({"loss", "tok_s"}),
                rejects=_OTHERS_LOSS,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"\[?[Ss]tep[ :=]+(?P<step>{INT})(?: */ *(?P<total>{INT}))?\]?[,;:]? ++"
                    rf"(?P<rest>(?!.*\| dt: |.*\b{_VALIDATION} loss)[^|].*\btok(?:ens)?[/_]s(?:ec)?\b.*)"
                ),
                pairs=(SPACED, RATE_LAST),
                needs=frozenset({"loss"}),
                rejects=_OTHERS_LOSS,
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(
                    rf"\[?[Ss]tep[ :=]+(?P<step>{INT})(?: */ *(?P<total>{INT}))?\]? *\|"
                    rf"(?!.*\btok/s){_BEFORE_LOSS} *(?:[Vv]al|[Ee]val|validation)[ _][Ll]oss(?:: |[ =])"
                    rf"(?P<loss>{VALUE})(?![\w.])"
                ),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(
                    r"\[?(?:[Ee]val(?:uation)?|[Vv]al(?:idation)?)\]?:?(?: @| at| \|)? +step[ :=]+"
                    rf"(?P<step>{INT})(?: */ *(?P<total>{INT}))?[\s|,:;]+(?P<rest>.*)"
                ),
                pairs=(SPACED,),
                needs=frozenset({"loss"}),
            ),
            Rule(kind=Kind.HEADER, head=Lazy(rf"targets?: .*\btotal_steps=(?P<total>{INT})")),
        ),
        samples=(
            (
                (
                    "[09:12:44] step 15730/48000 | loss 1.2505 | acc 0.532 | lr 4.75e-04 | tok/s 19,960 | hs_queue "
                    "min_ready=6 max_depth=16"
                ),
                {
                    "kind": "step",
                    "step": 15730,
                    "total_steps": 48000,
                    "loss": 1.2505,
                    "tok_s": 19960.0,
                    "scope": "global",
                },
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
                "[drafter 7] step 15702 | loss 1.2611 | 6.7K tok/s",
                {"kind": "other", "step": None, "loss": None, "tok_s": None, "scope": "rank"},
            ),
            ("step 16000 | acc 0.5 | val_loss 1.3125", {"kind": "eval", "step": 16000, "loss": 1.3125}),
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
            "step 900 | best loss 1.25 | tok/s 20,000",
            '  File "/root/train_dflash_pipeline.py", line 911, in step',
            "    print(f'step {step}/{total} | loss {loss:.4f} | tok/s {rate:,.0f}')",
            "Namespace(step=0, loss='kl', lr=0.0006, max_steps=60000)",
        ),
    ),
    Format(
        name="dflash-training",
        title="dflash-training",
        literals=("| Step ", "Total steps:"),
        derives="tokens per step x steps since the last line / Elapsed, which counts from that line",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"Epoch \d+ \| Step {STEP_OF} \| Loss {NAMED_LOSS}(?P<rest>(?: \| (?!LR )[^|]{{1,60}}){{0,9}})"
                    rf" \| LR (?P<lr>{VALUE})"
                    r"(?:(?: \| (?!Elapsed )[^|]{1,60}){0,9} \| Elapsed (?P<window_s>[\d.]+)s)?"
                ),
                pairs=(SPACED,),
            ),
            Rule(kind=Kind.HEADER, head=Lazy(rf"Total steps: (?P<total>{INT}), warmup")),
        ),
        samples=(
            (
                "Epoch 2 | Step 640/9000 | Loss 2.0625 | LR 3.00e-04 | Elapsed 8.5s",
                {"kind": "step", "step": 640, "total_steps": 9000, "loss": 2.0625, "lr": 3e-4, "tok_s": None},
            ),
            ("Total steps: 9000, warmup: 300", {"kind": "header", "total_steps": 9000}),
        ),
    ),
    Format(
        name="torchspec",
        title="TorchSpec",
        literals=("TIMING step=", "Training:", " eval: loss="),
        aliases={"loss": "loss", "pool": "queue_min"},
        derives="tokens per step x steps/s (thru, I and T count samples)",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Training: +{BAR}"),
                pairs=(SPACED,),
                needs=frozenset({"thru", "queue_min", "acc_len"}),
                bar=True,
            ),
            Rule(kind=Kind.STEP, head=Lazy(rf"TIMING step={NAMED_STEP}: step=(?P<step_s>[\d.]+)s\b")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Step {NAMED_STEP} eval: loss={NAMED_LOSS},")),
        ),
        samples=(
            (
                (
                    "Training:   7%|▋         | 640/9000 [02:10<28:20,  4.92step/s, loss=2.062, acc=0.411, thru=70.1, "
                    "wait=0.2s, pool=96]"
                ),
                {"kind": "step", "step": 640, "loss": 2.062, "queue_min": 96.0, "tok_s": None},
            ),
            (
                "[2026-02-11 07:15:09] loop.py:347 INFO TIMING step=640: step=0.203s data=0.010s",
                {"kind": "step", "step": 640},
            ),
            (
                "[2026-02-11 07:15:09] eval.py:181 INFO Step 800 eval: loss=2.2500, acc=0.4100, sim_acc_len=2.10",
                {"kind": "eval", "step": 800, "loss": 2.25},
            ),
        ),
        refuses=("[2026-02-11 07:15:09] loop.py:280 WARNING Pool insufficient (pool_size=2, 40/900 steps in epoch).",),
    ),
    Format(
        name="specforge",
        title="SpecForge",
        literals=("step ", "- Step ", "Training Epoch ", "Training:", "Eval - Epoch ", "Evaluating Epoch "),
        aliases={
            "loss": "loss",
            "train/loss": "loss",
            "eval/loss": "loss",
            "grad_norm": "grad_norm",
            "train/grad_norm": "grad_norm",
            "lr": "lr",
            "train/lr": "lr",
            "perf/optimizer_step_time_s": "step_s",
            "train/perf/optimizer_step_time_s": "step_s",
            "perf/global_samples_per_second": "samples_per_s",
            "train/perf/global_samples_per_second": "samples_per_s",
        },
        derives="tokens per step / optimizer step time, else samples/s x sequence length",
        rules=(
            Rule(kind=Kind.EVAL, head=Lazy(rf"step {NAMED_STEP}: \{{(?P<rest>'eval/.*)\}}"), pairs=(QUOTED,)),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"step {NAMED_STEP}: \{{(?P<rest>'.*)\}}"),
                pairs=(QUOTED,),
                needs=frozenset({"loss", "lr", "step_s", "samples_per_s"}),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"Train - Step {NAMED_STEP} \[{INT}/(?P<total>{INT})\??\],"
                    rf"(?! position) +Loss: {NAMED_LOSS}(?P<rest>.*)"
                ),
                pairs=(COLON,),
            ),
            # The EAGLE3 script writes "Eval -" over training figures, too: one line for each draft position, whose
            # losses are parts of the loss. Behind the slash stands the number of epochs.
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"(?:Train|Eval) - Step {NAMED_STEP} \[{INT}/{INT}\??\], +position \d+, +\w*(?:Acc|Loss): "),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Eval - Epoch \d+ \[{INT}/{INT}\], +position \d+, +\w*(?:Acc|Loss): ")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Evaluating Epoch \d+: +\d{{1,3}}%\|[^|]{{0,400}}\| *{INT}/")),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Training Epoch (?P<epoch>\d+): +{BAR}"),
                pairs=(SPACED,),
                needs=frozenset({"loss"}),
                bar=True,
                epoch_from=0,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Training: +{BAR}"),
                pairs=(SPACED,),
                needs=frozenset({"loss"}),
                bar=True,
            ),
        ),
        samples=(
            (
                "step 640: {'train/loss': 2.0625, 'train/acc': 0.41, 'train/lr': 0.0003}",
                {"kind": "step", "step": 640, "loss": 2.0625},
            ),
            ("step 800: {'eval/loss': 2.25, 'eval/acc_0': 0.5}", {"kind": "eval", "step": 800, "loss": 2.25}),
            (
                "Train - Step 640 [640/9000?], Loss: 2.0625, Acc: 0.41",
                {"kind": "step", "step": 640, "total_steps": 9000},
            ),
            (
                "Training:   7%|▋         | 640/9000 [02:10<28:20,  4.92step/s, loss=2.062, acc=0.411]",
                {"kind": "step", "step": 640, "total_steps": 9000, "loss": 2.062},
            ),
        ),
    ),
    Format(
        name="speculators",
        title="vLLM speculators",
        literals=("train/", "val/"),
        aliases={"train/loss": "loss", "val/loss_epoch": "loss", "lr": "lr", "global_step": "step"},
        rates={"profile/tokens_per_s": Scope.RANK},
        derives="x ranks, roughly: the line counts rank 0's tokens",
        # A console of 80 columns wraps the record, with the source line right-aligned behind its first part.
        block=Block(
            line=Lazy(r" {8,40}(?P<rest>[A-Za-z][\w/]*=[^=]{1,30}(?:,.*|(?:\s+[\w.]+:\d+)?\s*$))"), pairs=(SPACED,)
        ),
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(r"(?P<rest>train/[\w/]+=.*)"),
                pairs=(SPACED,),
                needs=frozenset({"loss", "step"}),
                opens=True,
            ),
            Rule(
                kind=Kind.EVAL, head=Lazy(r"(?P<rest>val/\w+=.*)"), pairs=(SPACED,), needs=frozenset({"loss", "epoch"})
            ),
        ),
        samples=(
            (
                (
                    "[07:15:09] INFO     train/loss=2.062, profile/tokens_per_s=1.80e+04, epoch=0, lr=3.00e-04, "
                    "global_step=640"
                ),
                {"kind": "step", "step": 640, "loss": 2.062, "tok_s": 18000.0, "scope": "rank"},
            ),
            ("[07:20:00] INFO     val/loss_epoch=2.250, epoch=0", {"kind": "eval", "loss": 2.25}),
        ),
    ),
    Format(
        name="modelopt",
        title="NVIDIA Model-Optimizer",
        literals=("Training Acc:", " AR: ", "Validation Acc:"),
        family="hf-trainer",
        derives="as the Hugging Face Trainer",
        rules=(
            Rule(kind=Kind.STEP, head=Lazy(rf"Step {NAMED_STEP} Training Acc: [\[{{(\d]")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Step {NAMED_STEP} (?:[A-Za-z][\w -]{{0,40}} )?AR: (?P<ar>{VALUE})")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Step {NAMED_STEP} Validation Acc: ")),
        ),
        samples=(
            ("Step 640 Training Acc: [0.4110, 0.3502]", {"kind": "step", "step": 640, "loss": None, "tok_s": None}),
            ("Step 800 AR: 2.9010", {"kind": "eval", "step": 800, "loss": None}),
        ),
        refuses=("Step 640 of the installer", "AR: 2.9"),
    ),
)
