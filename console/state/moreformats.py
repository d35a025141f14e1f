"""Formats of trainers whose lines need a rule or two; the same kind of data as in `formats`. Pure."""

from __future__ import annotations

from typing import Final

from console.state.formatrules import BAR, COLON, INT, PIPED, QUOTED, SPACED, VALUE, Format, Kind, Lazy, Rule, Scope

_LOSS = rf"(?P<loss>{VALUE})"
_STEP = rf"(?P<step>{INT})"
_STEP_OF = rf"(?P<step>{INT})/(?P<total>{INT})"

MORE: Final[tuple[Format, ...]] = (
    Format(
        name="nanogpt",
        title="nanoGPT",
        literals=("iter ", "val loss", "tokens per iteration"),
        rules=(
            Rule(kind=Kind.STEP, head=Lazy(rf"iter {_STEP}: loss {_LOSS}, time (?P<step_ms>[\d.]+)ms")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"step {_STEP}: train loss {VALUE}, val loss {_LOSS}$")),
            Rule(kind=Kind.HEADER, head=Lazy(rf"tokens per iteration will be: (?P<tokens_per_step>{INT})$")),
        ),
        samples=(
            (
                "iter 70: loss 5.1250, time 250.00ms, mfu 31.07%",
                {"kind": "step", "step": 70, "loss": 5.125, "tok_s": None},
            ),
            ("step 500: train loss 4.2500, val loss 4.3125", {"kind": "eval", "step": 500, "loss": 4.3125}),
            ("tokens per iteration will be: 245,760", {"kind": "header"}),
        ),
        refuses=("iter 70: saving", "step 500: train loss"),
    ),
    Format(
        name="llm.c",
        title="llm.c",
        literals=("step ", "val loss"),
        aliases={"lr": "lr", "norm": "grad_norm"},
        rates={"tok/s": Scope.GLOBAL},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"step +{_STEP_OF} \| (?:train )?loss {_LOSS}(?: \([^)]*\))? ?\|(?P<rest> norm .*?)"
                    r"\(?(?P<step_ms>[\d.]+) ms \|.*?(?P<tok_s>[\d.]+) tok/s\)?$"
                ),
                pairs=(SPACED,),
            ),
            Rule(kind=Kind.STEP, head=Lazy(rf"step {_STEP}: train loss {_LOSS} \(took (?P<step_ms>[\d.]+) ms\)$")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"val loss {_LOSS}$")),
        ),
        samples=(
            (
                (
                    "step   90/4000 | loss 5.250000 (-0.40z)| norm 0.8000 (+1.10z)| lr 1.50e-04 | 210.50 ms | 44.0% "
                    "bf16 MFU | 998877 tok/s"
                ),
                {"kind": "step", "step": 90, "total_steps": 4000, "loss": 5.25, "grad_norm": 0.8, "tok_s": 998877.0},
            ),
            (
                "step 9: train loss 5.031250 (took 900.500000 ms)",
                {"kind": "step", "step": 9, "loss": 5.03125, "step_s": 0.9005},
            ),
            ("val loss 4.125000", {"kind": "eval", "loss": 4.125, "step": None}),
        ),
        refuses=("skipping update due to loss z-score of 4.100000",),
    ),
    Format(
        name="modded-nanogpt",
        title="modded-nanogpt",
        literals=("step:",),
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"step:{_STEP_OF} (?:train_loss:{_LOSS} )?train_time:[\d.]+m?s step_avg:"),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(rf"step:{_STEP_OF} val_loss:{_LOSS} train_time:")),
        ),
        samples=(
            ("step:77/1500 train_time:9900ms step_avg:128.57ms", {"kind": "step", "step": 77, "loss": None}),
            (
                "step:125/1500 val_loss:4.5000 train_time:16070ms step_avg:128.56ms",
                {"kind": "eval", "step": 125, "loss": 4.5},
            ),
        ),
        refuses=('print0(f"step:{step}/{train_steps} val_loss:{val_loss:.4f} train_time:{t:.0f}ms", console=True)',),
    ),
    Format(
        name="dflash-training",
        title="dflash-training",
        literals=("| Step ", "Total steps:"),
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Epoch \d+ \| Step {_STEP_OF} \| Loss {_LOSS} \| LR (?P<lr>{VALUE})"),
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
        literals=("TIMING step=", "Training:"),
        aliases={"loss": "loss", "pool": "queue_min"},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Training: +{BAR}"),
                pairs=(SPACED,),
                needs=frozenset({"thru", "queue_min"}),
                bar=True,
            ),
            Rule(kind=Kind.STEP, head=Lazy(rf"TIMING step={_STEP}: step=(?P<step_s>[\d.]+)s\b")),
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
        ),
        refuses=("[2026-02-11 07:15:09] loop.py:280 WARNING Pool insufficient (pool_size=2, 40/900 steps in epoch).",),
    ),
    Format(
        name="specforge",
        title="SpecForge",
        literals=("step ", "Train - Step"),
        aliases={
            "loss": "loss",
            "train/loss": "loss",
            "eval/loss": "loss",
            "train/grad_norm": "grad_norm",
            "train/lr": "lr",
            "train/perf/optimizer_step_time_s": "step_s",
        },
        rules=(
            Rule(kind=Kind.EVAL, head=Lazy(rf"step {_STEP}: \{{(?P<rest>'eval/.*)\}}"), pairs=(QUOTED,)),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"step {_STEP}: \{{(?P<rest>'.*)\}}"),
                pairs=(QUOTED,),
                needs=frozenset({"loss"}),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Train - Step {_STEP} \[{INT}/(?P<total>{INT})\??\], Loss: {_LOSS}(?P<rest>.*)"),
                pairs=(COLON,),
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
        ),
    ),
    Format(
        name="speculators",
        title="vLLM speculators",
        literals=("train/loss=", "val/loss_epoch="),
        aliases={"train/loss": "loss", "val/loss_epoch": "loss", "lr": "lr", "global_step": "step"},
        rates={"profile/tokens_per_s": Scope.RANK},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(r"(?P<rest>train/loss=.*)"),
                pairs=(SPACED,),
                needs=frozenset({"step"}),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(r"(?P<rest>val/loss_epoch=.*)"), pairs=(SPACED,)),
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
        name="litgpt",
        title="LitGPT",
        literals=(" step ", "val loss"),
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Epoch \d+ \| iter \d+ step {_STEP} \| loss train: {_LOSS}, val: \S+ \| iter time: "),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(rf"iter {_STEP}: val loss {_LOSS}, val time")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Final evaluation \| val loss: {_LOSS}")),
        ),
        samples=(
            (
                "Epoch 1 | iter 80 step 20 | loss train: 3.125, val: n/a | iter time: 200.50 ms (step)",
                {"kind": "step", "step": 20, "loss": 3.125},
            ),
            ("iter 80: val loss 3.2500, val time: 900.10 ms", {"kind": "eval", "step": 80, "loss": 3.25}),
        ),
    ),
    Format(
        name="maxtext",
        title="MaxText",
        literals=("completed ", "Completed eval"),
        aliases={"loss": "loss", "seconds": "step_s"},
        rates={"Tokens/s/device": Scope.PER_DEVICE},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"(?:\[[\w ]+\], )?completed (?:profiler [\w/]+ )?step: {_STEP}, (?P<rest>.*)"),
                pairs=(COLON,),
                needs=frozenset({"loss"}),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"Completed eval after train step {_STEP}, (?P<rest>.*)"),
                pairs=(SPACED,),
            ),
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
        literals=("Progress on:",),
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    r"INFO :: Progress on:train (?P<step>[\d.]+k?)it/(?P<total>[\d.]+k?)it rate:"
                    rf"(?:(?P<steps_per_s>[\d.]+)it/s|(?P<step_s>[\d.]+)s/it) .*postfix:loss={_LOSS}"
                ),
                anywhere=True,
            ),
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
        ),
        refuses=("x - INFO :: Progress on:eval -/- rate:- remaining:? elapsed:00:00 postfix:-",),
    ),
    Format(
        name="verl",
        title="veRL",
        literals=("step:", "Training Progress:"),
        aliases={"actor/grad_norm": "grad_norm", "actor/lr": "lr", "perf/time_per_step": "step_s"},
        rates={"perf/throughput": Scope.PER_DEVICE},
        rules=(
            Rule(kind=Kind.EVAL, head=Lazy(rf"step:{_STEP} - val-")),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"step:{_STEP} - (?P<rest>[\w/]+:.*)"),
                pairs=(Lazy(rf"(?<= - )(?P<key>[^\s:]+):(?:np\.float\d\d\()?(?P<val>{VALUE})(?=[ )]|$)"),),
                needs=frozenset({"tok_s"}),
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
    Format(
        name="fairseq",
        title="fairseq",
        literals=("num_updates",),
        aliases={"loss": "loss", "num_updates": "step", "lr": "lr", "gnorm": "grad_norm"},
        rates={"wps": Scope.GLOBAL},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(r"train_inner \| epoch \d+:[ \d/]+(?P<rest>loss=.*)"),
                pairs=(SPACED,),
                needs=frozenset({"step"}),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(r"valid \| .*?(?P<rest>\bloss .*)"), pairs=(SPACED,)),
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
        name="torchtune",
        title="torchtune",
        literals=("Step ", "|Loss: ", '"loss"'),
        aliases={"loss": "loss", "lr": "lr", "grad_norm": "grad_norm"},
        rates={"tokens_per_second_per_gpu": Scope.PER_DEVICE},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Step {_STEP} \| (?P<rest>loss:.*)"),
                pairs=(COLON,),
                needs=frozenset({"loss"}),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Step {_STEP} \| val_loss:{_LOSS}")),
            Rule(kind=Kind.STEP, head=Lazy(rf"\d+\|\d+\|Loss: {_LOSS}: +{BAR}"), pairs=(SPACED,), bar=True),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf'\{{"step": {_STEP}, (?P<rest>"loss": .*)\}}'),
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
        name="deepspeed",
        title="DeepSpeed",
        literals=("step=", "steps: "),
        aliases={"loss": "loss"},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"\[Rank 0\] step={_STEP}, skipped=\d+, lr=\[(?P<lr>{VALUE})"),
                anywhere=True,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"epoch=\d+/micro_step=\d+/global_step={_STEP}, (?P<rest>.*)"),
                pairs=(SPACED,),
                anywhere=True,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"steps: {_STEP} loss: {_LOSS} iter time \(s\): (?P<step_s>[\d.]+) samples/sec: "),
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
        name="nemo",
        title="NeMo",
        literals=("Training epoch",),
        aliases={
            "reduced_train_loss": "loss",
            "lr": "lr",
            "train_step_timing in s": "step_s",
            "global_batch_size": "global_batch",
        },
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Training epoch \d+, iteration {_STEP_OF} \|(?P<rest>.*)"),
                pairs=(PIPED,),
                needs=frozenset({"loss", "step_s"}),
            ),
        ),
        samples=(
            (
                (
                    "Training epoch 0, iteration 63/8999 | lr: 0.0003 | global_batch_size: 64 | global_step: 63 | "
                    "reduced_train_loss: 4.125 | train_step_timing in s: 0.8 | val_loss: 4.5"
                ),
                {"kind": "step", "step": 63, "total_steps": 8999, "loss": 4.125, "lr": 0.0003, "step_s": 0.8},
            ),
        ),
        refuses=("Validation: iteration 3/32", "Sanity checking Validation: iteration 2/2"),
    ),
)
