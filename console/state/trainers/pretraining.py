"""Trainers for pre-training whose records are one line. Data only: `formatrules` says what the fields mean."""

from __future__ import annotations

from typing import Final

from console.state.formatrules import (
    COLON,
    INT,
    NAMED_LOSS,
    NAMED_STEP,
    PIPED,
    SPACED,
    STEP_OF,
    VALUE,
    Format,
    Kind,
    Lazy,
    Rule,
    Scope,
)

_TIGHT: Final = Lazy(rf" (?P<key>lr|norm):(?P<val>{VALUE})(?= |$)")
_NO_COLON: Final = Lazy(rf"\| (?P<key>learning rate|lm loss) (?P<val>{VALUE})(?= \|)")
"""How Megatron-LM wrote its first years."""

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="megatron",
        title="Megatron-LM",
        literals=("iteration", "seq_length ", "global_batch_size ", "train_iters ", "validation loss", "test loss"),
        aliases={
            "lm loss": "loss",
            "loss": "loss",
            "learning rate": "lr",
            "grad norm": "grad_norm",
            "elapsed time per iteration (ms)": "step_ms",
            "elapsed time per iteration (s)": "step_s",
            "global batch size": "global_batch",
            "number of nan iterations": "nan_count",
            "lm loss value": "loss",
            "LM loss": "loss",
            "samples per second": "samples_per_s",
        },
        rates={"tokens-per-second-per-gpu": Scope.PER_DEVICE, "tokens per second": Scope.GLOBAL},
        derives="global batch size x sequence length / time per iteration (the length from the argument dump)",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"iteration +{NAMED_STEP} */ *(?P<total>{INT}) *\|(?P<rest>.*)"),
                pairs=(PIPED, _NO_COLON),
                needs=frozenset({"step_ms", "step_s", "consumed samples", "loss"}),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"(?:validation|test) loss at iteration +{NAMED_STEP}[^|]*\|(?P<rest>.*)"),
                pairs=(PIPED,),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(r"(?:validation|test) loss at [^|]*\|(?P<rest>.*)"),
                pairs=(PIPED,),
                needs=frozenset({"loss"}),
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
                    "rate: 4.000000E-05 | global batch size:    64 | loss scale: 1.0 | number of skipped "
                    "iterations:   0 | number of "
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
    ),
    Format(
        name="nemo",
        title="NeMo",
        literals=("Training epoch", "Validation: iteration", "/gpu)"),
        aliases={
            "reduced_train_loss": "loss",
            "train_loss": "loss",
            "lr": "lr",
            "grad_norm": "grad_norm",
            "train_step_timing in s": "step_s",
            "global_batch_size": "global_batch",
            "global_step": "global_step",
            "loss": "loss",
        },
        rates={"tps": Scope.GLOBAL, "tokens_per_sec_per_gpu": Scope.PER_DEVICE},
        derives="global batch size x sequence length / train_step_timing",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"Training epoch \d+, iteration {STEP_OF} *\|(?P<rest>.*)"),
                pairs=(PIPED,),
                needs=frozenset({"loss", "step_s", "lr", "global_step"}),
            ),
            # NeMo Automodel; behind the rate stands that of one GPU.
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"step {NAMED_STEP} \| epoch \d+ \|(?P<rest> loss .*\btps [\d.]+\([\d.]+/gpu\).*)"),
                pairs=(SPACED,),
                needs=frozenset({"loss"}),
            ),
            # The iteration is that of the validation.
            Rule(kind=Kind.EVAL, head=Lazy(rf"Validation: iteration {INT}/{INT}")),
        ),
        samples=(
            (
                (
                    "Training epoch 0, iteration 63/8999 | lr: 0.0003 | global_batch_size: 64 | global_step: 63 | "
                    "reduced_train_loss: 4.125 | train_step_timing in s: 0.8 | val_loss: 4.5"
                ),
                {"kind": "step", "step": 63, "total_steps": 8999, "loss": 4.125, "lr": 0.0003, "step_s": 0.8},
            ),
            ("Validation: iteration 3/32", {"kind": "eval", "step": None}),
        ),
        refuses=("Sanity checking Validation: iteration 2/2", "Validation: iteration 3 of 32"),
    ),
    Format(
        name="torchtitan",
        title="torchtitan",
        literals=("step:", "total steps"),
        aliases={"loss": "loss", "grad_norm": "grad_norm", "lr": "lr"},
        rates={"tps": Scope.PER_DEVICE, "wps": Scope.PER_DEVICE},
        derives="tps x number of GPUs is the global rate",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"step: *{NAMED_STEP} +(?P<rest>loss: .*)"),
                pairs=(COLON,),
                needs=frozenset({"loss"}),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"validate step: *{NAMED_STEP} +(?P<rest>loss: .*)"),
                pairs=(COLON,),
            ),
            Rule(
                kind=Kind.HEADER,
                head=Lazy(
                    rf"Trainer is initialized with .*?global batch size (?P<global_batch>{INT}).*?"
                    rf"sequence length (?P<seq_len>{INT}), total steps (?P<total>{INT})"
                ),
            ),
        ),
        checkpoint_at_last_step=True,
        samples=(
            (
                (
                    "[titan] 2026-02-11 07:15:09,551 - root - INFO - step: 310  loss:  4.40120  grad_norm:  0.7500  "
                    "memory: 44.10GiB(55.75%)  tps: 6,512  tflops: 371.20  mfu: 37.53%"
                ),
                {
                    "kind": "step",
                    "step": 310,
                    "loss": 4.4012,
                    "grad_norm": 0.75,
                    "tok_s": 6512.0,
                    "scope": "per_device",
                },
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
    ),
    Format(
        name="nanogpt",
        title="nanoGPT",
        literals=("iter ", "val loss", "tokens per iteration"),
        derives="tokens per iteration (of the header) / time",
        rules=(
            Rule(kind=Kind.STEP, head=Lazy(rf"iter {NAMED_STEP}: loss {NAMED_LOSS}, time (?P<step_ms>[\d.]+)ms")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"step {NAMED_STEP}: train loss {VALUE}, val loss {NAMED_LOSS} *$")),
            Rule(kind=Kind.HEADER, head=Lazy(rf"tokens per iteration will be: (?P<tokens_per_step>{INT}) *$")),
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
        name="nanochat",
        title="nanochat, build-nanogpt",
        literals=("| dt: ", "Validation bpb", "alidation loss: "),
        aliases={"grad norm": "grad_norm", "norm": "grad_norm", "lr": "lr"},
        rates={"tok/sec": Scope.GLOBAL},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"step +{NAMED_STEP}(?:/(?P<total>{INT}))?(?: \([\d.]+%\))? \| loss: {NAMED_LOSS} "
                    rf"(?:\| lr (?P<lr>{VALUE}) )?(?P<rest>\| .*)\| dt: (?P<step_ms>[\d.]+)ms "
                    r"\| tok/sec: (?P<tok_s>[\d.,]{1,20})"
                ),
                pairs=(PIPED,),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Step {NAMED_STEP} \| Validation bpb: (?P<bpb>{VALUE})")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Step {NAMED_STEP} \| Validation loss: {NAMED_LOSS} *$")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"validation loss: {NAMED_LOSS} *$")),
        ),
        samples=(
            (
                (
                    "step 00064/9000 (0.71%) | loss: 4.125000 | grad norm: 0.7500 | lrm: 1.00 | dt: 250.00ms | "
                    "tok/sec: 512,001 | mfu: 40.10 | total time: 0.27m"
                ),
                {"kind": "step", "step": 64, "loss": 4.125, "grad_norm": 0.75, "tok_s": 512001.0, "scope": "global"},
            ),
            (
                "step    64 | loss: 4.125000 | lr 3.0000e-04 | norm: 0.7500 | dt: 250.00ms | tok/sec: 512001.50",
                {"kind": "step", "step": 64, "lr": 3e-4, "grad_norm": 0.75, "tok_s": 512001.5, "step_s": 0.25},
            ),
            ("Step 00250 | Validation bpb: 1.0625", {"kind": "eval", "step": 250, "loss": None}),
            ("Step 00100 | Validation loss: 1.062500", {"kind": "eval", "step": 100, "loss": 1.0625}),
        ),
        refuses=("step 00064 | dt: 250.00ms | tok/sec: 9", "HellaSwag accuracy: 64/1000=0.0640"),
    ),
    Format(
        name="llm.c",
        title="llm.c",
        literals=("step ", "val loss", "HellaSwag:", "iteration", " trl:", " tel:"),
        aliases={"lr": "lr", "norm": "grad_norm"},
        rates={"tok/s": Scope.GLOBAL},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"step +{STEP_OF} *\| *(?:train )?loss {NAMED_LOSS}(?: \([^)|]{{1,20}}\))? ?\|"
                    r"(?P<rest> *norm [^|]{1,60}\| *lr [^|]{1,60})\| *\(?(?P<step_ms>[\d.]{1,20}) ms *\|"
                    r"(?:[^|]{1,60}\|)? *(?P<tok_s>[\d.,]{1,20}) tok/s\)? *$"
                ),
                pairs=(SPACED,),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"step {NAMED_STEP}: train loss {NAMED_LOSS} \(took (?P<step_ms>[\d.]+) ms\) *$"),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"iteration {NAMED_STEP}, loss: {NAMED_LOSS}, time: (?P<step_ms>[\d.]+)ms *$"),
            ),
            # main.log of its output directory
            Rule(kind=Kind.STEP, head=Lazy(rf"s:{NAMED_STEP} trl:{NAMED_LOSS}(?P<rest>(?: .*)?)$"), pairs=(_TIGHT,)),
            Rule(kind=Kind.EVAL, head=Lazy(rf"s:{NAMED_STEP} tel:{NAMED_LOSS} *$")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"val loss:? {NAMED_LOSS} *$")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"HellaSwag: \d+/\d+ = (?P<hellaswag>{VALUE}) *$")),
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
            ("iteration 9, loss: 5.03125, time: 90.500ms", {"kind": "step", "step": 9, "loss": 5.03125}),
            (
                "s:90 trl:5.2500 lr:0.000150 norm:0.80",
                {"kind": "step", "step": 90, "loss": 5.25, "lr": 0.00015, "grad_norm": 0.8},
            ),
            ("s:100 tel:4.1250", {"kind": "eval", "step": 100, "loss": 4.125}),
        ),
        refuses=("skipping update due to loss z-score of 4.100000",),
    ),
    Format(
        name="modded-nanogpt",
        title="modded-nanogpt",
        literals=("step:",),
        derives="tokens per step (config) x steps since the last line / growth of train_time",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"step:{STEP_OF} (?:train_loss:{NAMED_LOSS} )?(?:(?!val_)\w+:[\w.+-]{{1,30}} ){{0,4}}?"
                    r"train_time:(?:(?P<train_ms>[\d.]+)ms|[\d.]+s|nanms) step_avg:"
                ),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"step:{STEP_OF} val_loss:{NAMED_LOSS}(?: \w+:[\w.+-]{{1,30}}){{0,4}} train_time:"),
            ),
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
        name="litgpt",
        title="LitGPT",
        literals=(" step ", "val loss", "iter "),
        derives="micro batch x sequence length x ranks / iter time, which is that of one micro batch",
        rules=(
            # Lit-GPT and Lit-LLaMA, from before 2024
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"iter \d+ (?:\| )?step {NAMED_STEP}: loss (?:train: )?{NAMED_LOSS},(?: val: [^|]{{1,20}} \|)?"
                    r" iter time: (?P<iter_ms>[\d.]+) ?ms(?: \(|,| |$)"
                ),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"iter {NAMED_STEP}: loss {NAMED_LOSS}, time: (?P<step_ms>[\d.]+)ms"
                    r"(?:, speed: (?P<tok_s>[\d.]+) toks/s/device| *$)"
                ),
                scope=Scope.PER_DEVICE,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"Epoch \d+ \| iter \d+ step {NAMED_STEP} \| loss train: {NAMED_LOSS}, +val: \S+ \|"
                    r" iter time: (?P<iter_ms>[\d.]+) ms(?: \(step\))?(?: remaining time: (?P<eta>[\w:, ]+))?"
                ),
            ),
            Rule(kind=Kind.EVAL, head=Lazy(rf"(?:iter|step) {NAMED_STEP}: val loss {NAMED_LOSS}, val time")),
            Rule(kind=Kind.EVAL, head=Lazy(rf"Final evaluation \| val loss: {NAMED_LOSS}")),
        ),
        samples=(
            (
                "Epoch 1 | iter 80 step 20 | loss train: 3.125, val: n/a | iter time: 200.50 ms (step)",
                {"kind": "step", "step": 20, "loss": 3.125},
            ),
            ("iter 80: val loss 3.2500, val time: 900.10 ms", {"kind": "eval", "step": 80, "loss": 3.25}),
        ),
    ),
)
