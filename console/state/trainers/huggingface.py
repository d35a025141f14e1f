"""The Hugging Face Trainer and what is built on it. Data only: `formatrules` says what the fields mean."""

from __future__ import annotations

from typing import Final

from console.state.formatrules import BAR, INT, NAMED_LOSS, QUOTED, SPACED, Format, Kind, Lazy, Rule, Scope

_NESTED: Final = r"(?P<rest>[^{}]*(?:\{[^{}]*\}[^{}]*){0,20})"
"""A dictionary's inside, with those of what `compute_metrics` returns in it."""

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="hf-trainer",
        title="Hugging Face Trainer 4 and 5, TRL, axolotl, Unsloth, LLaMA-Factory",
        literals=(
            "loss'",
            "'loss/",
            "%|",
            "Total optimization steps",
            "otal train batch size",
            "Total steps = ",
            "Total batch size",
        ),
        family="hf-trainer",
        aliases={
            "loss": "loss",
            "eval_loss": "loss",
            "grad_norm": "grad_norm",
            "learning_rate": "lr",
            "step": "step",
            "num_tokens": "tokens_total",
            "num_input_tokens_seen": "tokens_total",
            "tokens/total": "tokens_total",
        },
        rates={
            "train_tokens_per_second": Scope.GLOBAL,
            "throughput": Scope.GLOBAL,
            "tokens/train_per_sec_per_gpu": Scope.PER_DEVICE,
            "tokens_per_second_per_gpu": Scope.PER_DEVICE,
        },
        derives="growth of num_tokens or num_input_tokens_seen / time, else tokens per step / step time",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"\{{(?=[^{{}}]*'loss': ){_NESTED}\}}"),
                pairs=(QUOTED,),
                needs=frozenset({"loss"}),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"\{{(?=[^{{}}]*'eval_(?:\w+_)?loss': ){_NESTED}\}}"),
                pairs=(QUOTED,),
            ),
            # TRL's PPO has two losses, and neither is the loss.
            Rule(
                kind=Kind.STEP,
                head=Lazy(r"\{(?=[^{}]*'loss/policy_avg': )(?P<rest>[^{}]*)\}"),
                pairs=(QUOTED,),
            ),
            Rule(kind=Kind.STEP, head=Lazy(rf" *{BAR}"), pairs=(SPACED,), bar=True, unlabelled=True),
            Rule(kind=Kind.HEADER, head=Lazy(rf"Total optimization steps = (?P<total>{INT}) *$")),
            Rule(kind=Kind.HEADER, head=Lazy(rf"Total train batch size \([^)]*\) = (?P<global_batch>{INT}) *$")),
            # Unsloth's banner
            Rule(kind=Kind.HEADER, head=Lazy(rf"[\\/O^_\s]+Num examples = .*Total steps = (?P<total>{INT}) *$")),
            Rule(kind=Kind.HEADER, head=Lazy(rf"[\\/O^_\s]+.*Total batch size \([^)]*\) = (?P<global_batch>{INT}) *$")),
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
            ("{'eval_loss': 1.5, 'eval_f1': {'f1': 0.5}, 'epoch': 1.0}", {"kind": "eval", "loss": 1.5, "step": None}),
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
            "{'optim': {'loss': 1.5, 'lr': 0.1}, 'steps': 1000}",
        ),
    ),
    Format(
        name="llama-factory",
        title="LLaMA-Factory trainer_log.jsonl",
        literals=('"current_steps"',),
        family="hf-trainer",
        aliases={
            "current_steps": "step",
            "total_steps": "total",
            "loss": "loss",
            "eval_loss": "loss",
            "lr": "lr",
            "learning_rate": "lr",
            "total_tokens": "tokens_total",
        },
        rates={"throughput": Scope.GLOBAL},
        derives="growth of total_tokens / time; throughput is the mean since the start",
        rules=(
            Rule(
                kind=Kind.EVAL,
                head=Lazy(
                    r'\{(?=[^{}]*"eval_loss": (?!null))(?=[^{}]*"current_steps": )'
                    r'(?:(?=[^{}]*"remaining_time": "(?P<eta>[^"]{1,30})"))?(?P<rest>[^{}]*)\}'
                ),
                pairs=(QUOTED,),
                needs=frozenset({"step"}),
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    r'\{(?=[^{}]*"current_steps": )'
                    r'(?:(?=[^{}]*"remaining_time": "(?P<eta>[^"]{1,30})"))?(?P<rest>[^{}]*)\}'
                ),
                pairs=(QUOTED,),
                needs=frozenset({"step"}),
            ),
        ),
        samples=(
            (
                (
                    '{"current_steps": 64, "total_steps": 900, "loss": 2.0625, "lr": 3e-05, "epoch": 0.2, '
                    '"elapsed_time": "0:01:04", "remaining_time": "0:14:00", "throughput": 18000.5, "total_tokens": 9}'
                ),
                {"kind": "step", "step": 64, "total_steps": 900, "loss": 2.0625, "tok_s": 18000.5, "eta_s": 840.0},
            ),
            (
                '{"current_steps": 100, "total_steps": 900, "eval_loss": 2.25, "epoch": 0.3}',
                {"kind": "eval", "step": 100, "loss": 2.25, "tok_s": None},
            ),
        ),
        refuses=('{"steps": 100, "eval_loss": 2.25}',),
    ),
    Format(
        name="lightning",
        title="PyTorch Lightning",
        literals=("Epoch ", "Validation ", "Testing ", "Validating:", "Validation:"),
        aliases={
            "train_loss": "loss",
            "train_loss_step": "loss",
            "train/loss": "loss",
            "train/loss_step": "loss",
            "loss": "loss",
            "loss_step": "loss",
            "reduced_train_loss": "loss",
            "lr": "lr",
            "grad_norm": "grad_norm",
            "global_step": "global_step",
            "train_step_timing in s": "step_s",
        },
        derives="tokens per step x it/s",
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    r"Epoch (?P<epoch>\d+): (?:: )?(?: *\d{1,3}%)?\|?[^|]{0,400}\|? *"
                    rf"(?P<step>{INT}) */ *(?:(?P<total>{INT})|\?) *\[[\d:]+<(?P<eta>[^,\]]*)"
                    r"(?:, *(?:(?P<steps_per_s>[\d.]+) ?it/s|(?P<step_s>[\d.]+) ?s/it|\? ?it/s))?"
                    # NeMo's own loss; the plain one beside it is smoothed.
                    rf"(?=(?:[^\]]*\breduced_train_loss={NAMED_LOSS})?)"
                    r"(?:,(?P<rest>[^\]]*))?\]"
                ),
                pairs=(SPACED,),
                bar=True,
                epoch_from=0,
            ),
            # A data set whose length is not known
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"Epoch (?P<epoch>\d+): (?:: )?(?P<step>{INT})it \[[\d:]+, *"
                    r"(?:(?P<steps_per_s>[\d.]+) ?it/s|(?P<step_s>[\d.]+) ?s/it|\? ?it/s)(?:,(?P<rest>[^\]]*))?\]"
                ),
                pairs=(SPACED,),
                bar=True,
                epoch_from=0,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"Epoch (?P<epoch>\d+)/(?:\d+|-2) +[━╸╺╇─ ]* *(?P<step>{INT})/(?:(?P<total>{INT})|--) +[\d:]+ •"
                    r" (?P<eta>[\d:]+|-:--:--) +(?P<steps_per_s>[\d.]+)it/s(?P<rest>.*)"
                ),
                pairs=(SPACED,),
                bar=True,
                epoch_from=0,
            ),
            # The batches are those of the evaluation.
            Rule(
                kind=Kind.EVAL,
                head=Lazy(
                    r"(?:(?:Validation|Testing) DataLoader \d+|Validati(?:ng|on)): +"
                    rf"(?:(?:\d{{1,3}}%)?\|[^|]{{0,400}}\| *{INT}/|{INT}it \[)"
                ),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"(?:Validation|Testing) +[━╸╺╇─][━╸╺╇─ ]* {INT}/(?:{INT}|--) +[\d:]+ •"),
            ),
        ),
        samples=(
            (
                "Epoch 0:   6%|▋         | 64/1000 [00:32<07:48,  2.00it/s, v_num=1, train_loss=2.062]",
                {"kind": "step", "step": 64, "stated_step": 64, "loss": 2.062, "step_s": 0.5, "eta_s": 468.0},
            ),
            (
                "Epoch 2:   6%|▋         | 64/1000 [02:08<31:12,  0.50it/s, val_loss=2.4, train_loss_step=2.1]",
                {"kind": "step", "step": 2064, "stated_step": 64, "loss": 2.1, "step_s": 2.0},
            ),
            (
                "Epoch 1/9  ━━━━━━━━━━ 64/1000 0:00:32 • 0:07:48 2.00it/s v_num: 1.000 train_loss: 2.062",
                {"kind": "step", "step": 1064, "stated_step": 64, "loss": 2.062},
            ),
            ("Validation DataLoader 0:  15%|█▌        | 6/40 [00:02<00:14,  2.50it/s]", {"kind": "eval", "step": None}),
        ),
        refuses=(
            "Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00,  5.00it/s]",
            "`Trainer.fit` stopped: `max_epochs=3` reached.",
            "Epoch 0: 100%|██████████| 12/12 downloads",
        ),
    ),
)
