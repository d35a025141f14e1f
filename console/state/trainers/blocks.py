"""Trainers whose records span several lines. Data only: `formatrules` says what the fields mean."""

from __future__ import annotations

from typing import Final

from console.state.formatrules import INT, NAMED_LOSS, NAMED_STEP, SPACED, VALUE, Block, Format, Kind, Lazy, Rule, Scope

_NAMED: Final = Lazy(rf"(?P<key>[A-Za-z][^=\n]{{0,160}})=(?P<val>{VALUE})\s*$")
"""`    optim/total grad norm=0.4127`: one number a line, its name with blanks in it."""
_AFTER_COLON: Final = Lazy(rf"(?P<key>\S[^:\n]{{0,160}}): (?P<val>{VALUE})\s*$")

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="composer",
        title="Composer, LLM Foundry",
        literals=("atch=", "Train ", "Eval ", "[token=", "[sample=", "[iteration=", "ba/s", "s/ba"),
        aliases={
            "loss/train/total": "loss",
            "loss/train": "loss",
            "metrics/train/LanguageCrossEntropy": "loss",
            "metrics/train/CrossEntropy": "loss",
            "LanguageCrossEntropy": "loss",
            "time/token": "tokens_total",
            "l2_norm/grad/global": "grad_norm",
        },
        rates={"throughput/tokens_per_sec": Scope.GLOBAL, "throughput/device/tokens_per_sec": Scope.PER_DEVICE},
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"\[epoch=(?P<epoch>\d+)(?:/\d+)?\]\[batch={NAMED_STEP}(?:/(?P<total>{INT}))?\]:?\s*$"),
                opens=True,
                epoch_from=1,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"\[batch={NAMED_STEP}/(?:(?P<total>{INT})|\S+?)\]:?\s*$"),
                opens=True,
            ),
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"(?:(?:train +)?Epoch +(?P<epoch>\d+):?(?: +train)?|train) +"
                    rf"\d{{1,3}}%\|[^|]{{0,400}}\| *{NAMED_STEP}/"
                    rf"(?P<total>{INT})(?: ba)? \[[\d:]+<(?P<eta>[^,\]]*), *"
                    r"(?:(?P<steps_per_s>[\d.]+) ?ba/s|(?P<step_s>[\d.]+) ?s/ba)"
                    r"(?:,(?P<rest>[^\]]*))?\]"
                ),
                pairs=(SPACED,),
                bar=True,
                epoch_from=0,
            ),
            # The run is counted in something else than batches: no step is known.
            Rule(
                kind=Kind.STEP,
                head=Lazy(rf"\[token=(?P<tokens_total>{INT})/\S+?\]:?\s*$"),
                opens=True,
            ),
            Rule(kind=Kind.STEP, head=Lazy(rf"\[(?:sample|iteration)={INT}/\S+?\]:?\s*$"), opens=True),
            Rule(kind=Kind.EVAL, head=Lazy(rf"\[Eval batch={INT}/\S+?\]")),
            # The data's label stands first, then when it is evaluated; the batches are those of the evaluation.
            Rule(
                kind=Kind.EVAL,
                head=Lazy(
                    r"(?!train )[\w./-]{1,60} +(?:Epoch|Batch|Token|Sample|Iteration) +\d+: +\d{1,3}%\|[^|]{0,400}\|"
                    rf" *{INT}/{INT} \[[^\]]{{0,60}}(?:ba/s|s/ba|\?ba/s)"
                ),
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"Eval \S*(?:CrossEntropy|/loss|eval_loss)\S*: {NAMED_LOSS}\s*$"),
                continues=True,
            ),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(r"Eval (?P<rest>[\w/.-]+/[^:]+: \S+)\s*$"),
                pairs=(_AFTER_COLON,),
                continues=True,
            ),
            Rule(kind=Kind.OTHER, head=Lazy(rf"Train lr-[\w/.-]+: (?P<lr>{VALUE})\s*$"), continues=True),
            Rule(
                kind=Kind.OTHER,
                head=Lazy(r"Train (?P<rest>(?:[\w/.-]+/[^:]+|LanguageCrossEntropy): \S+)\s*$"),
                pairs=(_AFTER_COLON,),
                continues=True,
            ),
        ),
        samples=(
            ("[batch=64/900]:", {"kind": "step", "step": 64, "total_steps": 900, "loss": None}),
            ("\t Train throughput/tokens_per_sec: 18000.5000", {"kind": "other", "step": None, "tok_s": 18000.5}),
            (
                "\t Train throughput/device/tokens_per_sec: 2250.1",
                {"kind": "other", "tok_s": 2250.1, "scope": "per_device"},
            ),
            ("\t Train loss/train/total: 2.0625", {"kind": "other", "step": None, "loss": 2.0625}),
            ("[Eval batch=6/40] Eval on c4 data:", {"kind": "eval", "step": None}),
            ("\t Eval metrics/eval/LanguageCrossEntropy: 2.2500", {"kind": "eval", "loss": 2.25, "step": None}),
            ("[epoch=2/3][batch=64/300]:", {"kind": "step", "step": 364, "stated_step": 64}),
        ),
        refuses=("[batch=64/900] is large: skipping", "Train loss is falling", "Eval is next"),
    ),
    Format(
        name="olmo",
        title="OLMo and OLMo-core",
        literals=("step=", "eval/"),
        aliases={
            "train/CrossEntropyLoss": "loss",
            "train/CE loss": "loss",
            "optim/total_grad_norm": "grad_norm",
            "optim/total grad norm": "grad_norm",
            "optim/learning_rate_group0": "lr",
            "optim/LR (group 0)": "lr",
            "throughput/total_tokens": "tokens_total",
            "throughput/total tokens": "tokens_total",
        },
        rates={
            "throughput/device/tokens_per_second": Scope.PER_DEVICE,
            "throughput/device/TPS": Scope.PER_DEVICE,
            "throughput/TPS": Scope.GLOBAL,
        },
        derives="the rate of one device x number of devices is the global rate",
        block=Block(line=Lazy(r" {2,8}(?P<rest>[A-Za-z][^=]{0,160}=\S.*)"), pairs=(_NAMED,)),
        rules=(
            Rule(
                kind=Kind.STEP,
                head=Lazy(
                    rf"\[step={NAMED_STEP}/(?:(?P<total>{INT})|\?+)(?:,epoch=\d{{1,9}})?(?:,eta=(?P<eta>[^,\]]{{1,40}}))?(?:,[^,\]]{{1,60}}){{0,6}}\]\s*$"
                ),
                opens=True,
            ),
            Rule(kind=Kind.EVAL, head=Lazy(rf"\[(?:eval_step=|eval=[\w./-]{{1,80}},step=){INT}/\S+?\]")),
            Rule(
                kind=Kind.EVAL,
                head=Lazy(rf"eval/[^=]*(?:CrossEntropyLoss|CE loss)[^=]*={NAMED_LOSS}\s*$"),
                continues=True,
            ),
        ),
        samples=(
            ("[step=64/900,epoch=0]", {"kind": "step", "step": 64, "total_steps": 900, "loss": None}),
            ("[step=64/???,epoch=1,eta=2h5m]", {"kind": "step", "step": 64, "total_steps": None, "eta_s": 7500.0}),
            (
                "2026-02-11 07:15:09.551\thost1:0\tolmo.train:967\tINFO\t[step=65/900,epoch=0]",
                {"kind": "step", "step": 65},
            ),
            ("[eval_step=6/40]", {"kind": "eval", "step": None}),
        ),
        refuses=("[step=64] waiting", "    train/CE loss=2.0625"),
    ),
)
