"""Lines that a program writes before it trains: settings, sizes, "starting". They are headers, never steps.

Looked up by the first word of the record, so that the lines of a log cost no more than that. Only shapes that are known
are headers; what is not known stays unnamed. Pure.
"""

from __future__ import annotations

from typing import Final

from console.state.formatrules import INT, Format, Kind, Lazy, Reading, Rule, parse_number

_SHAPES: Final[tuple[tuple[str, str], ...]] = (
    # Any program
    ("nohup:", r"ignoring input|appending output|redirecting stderr"),
    ("Starting", r"(?:the )?(?:train(?:er|ing)|job|run|fine-?tuning|pre-?training)\b"),
    ("Start", r"(?:train(?:ing)?|iterating|fine-?tuning)\b"),
    ("Begin", r"training\b"),
    ("begin", r"training\b"),
    ("Beginning", r"training\b"),
    ("Training", r"(?:starts|begins|started|from scratch)\b|epoch \d+(?:/\d+)? started|with \d|on \d+ "),
    ("Epoch", r"\d+(?:/\d+)? started"),
    ("Compiling", r"(?:the )?(?:model|kernels|each|model's)\b"),
    ("compiling", r"the model\b"),
    ("Initialized", r"(?:distributed|process group|rank|torch|model|optimizer|trainer|tokenizer)\b"),
    (
        "Initializing",
        r"(?:distributed|process group|torch|a new model|model|optimizer|trainer|tokenizer|data|TorchBackend)\b",
    ),
    ("initialized", r"(?:distributed|tensor|model parallel)\b"),
    ("initializing", r"(?:distributed|torch distributed|tensor|model)\b"),
    ("Resolved", r"config\b"),
    ("Configuration:", r""),
    ("Arguments:", r""),
    ("Config:", r""),
    ("Hyperparameters:", r""),
    ("World", r"size\b"),
    ("world_size:", r"\d"),
    ("Run", r"name: "),
    ("Using", r"(?:seed|device|world size|random seed|data ?type|dtype|precision|bf16|fp16|flash|\d+ GPUs?)\b"),
    ("Using", r"(?:auto half precision|\w+ Automatic Mixed Precision|provided total_steps)\b"),
    ("Mixed", r"precision training\b"),
    ("Overriding:", r"\w+ = "),
    ("Overriding", r"config with\b"),
    ("Process", r"rank: \d"),
    ("All", r"distributed processes registered"),
    ("Size", r"of (?:train|val) dataloader: \d"),
    ("dataset", r"len(?:gth)?:? ?\d"),
    ("using", r"(?:world size|bfloat16|fp16|device|fused AdamW|torch)\b"),
    ("Seed", r"set to|: "),
    ("Global", r"(?:batch size|seed set)\b"),
    ("Model", r"(?:is initialized|parameters|has|initialized|built|created|size|loaded with|\S+ \S+ size:)"),
    ("Number", r"of (?:[\w-]+ ){0,3}(?:parameters|samples|examples|steps|GPUs|devices|workers)\b"),
    ("number", r"of parameters|parameters:"),
    ("num", r"(?:non-)?decayed parameter tensors|\. ?\w+ ?\w* ?(?:model )?params"),
    ("num.", r"(?:shared|expert|trainable|model)\b.*params"),
    (
        "Total",
        r"(?:number of )?(?:steps|parameters|params|samples|batch size|memory size|non-parameters|num|training)\b",
    ),
    ("Trainable", r"param(?:eter)?s\b"),
    ("trainable", r"params: "),
    ("Filtered", r"(?:\w+ ){0,3}dataset\b"),
    ("Loaded", r"(?:\w+ ){0,3}(?:dataset|samples|examples|config)\b|[\d,]+ (?:samples|examples)"),
    ("Dataset", r"(?:size|length|and Sampler|loaded|has|contains|initialized)\b|: "),
    ("Train", r"(?:dataset|data|samples|size|batch size)\b"),
    ("train", r"dataset\b"),
    ("Memory", r"stats after (?:model|optimizer) init"),
    ("Optimizer", r"(?:is |was )?(?:initialized|created|:)|: "),
    ("Loss", r"is initialized"),
    ("Tokenizer", r"is initialized"),
    ("Learning", r"rate scheduler is initialized"),
    ("Logging", r"to \S"),
    ("Setting", r"(?:manual seed|up (?:the )?(?:model|data|optimizer|trainer|distributed)|training iterations)\b"),
    ("setting", r"training (?:iterations|data)\b|random seeds to \d"),
    ("learning", r"rate decay style: "),
    ("arguments", r"-{8,}$"),
    ("end", r"of arguments -{8,}$"),
    ("warmup", r"(?:steps|iterations)\b"),
    # Trainers
    ("CUDA", r"capacity: "),
    ("Building", r"\d-D device mesh\b|(?:the )?(?:model|dataset|(?:\w+ )?tokenizer|\S+ (?:\S+ )?with)\b(?!.*wheel)"),
    ("Peak", r"FLOPS used\b"),
    ("Applied", r"(?:\w+ ){1,4}(?:to the model|parallelism)\b|\S+ to the model"),
    ("Preparing", r"\S+ dataset\b"),
    ("Trainer", r"(?:is initialized|already configured|initialized)\b"),
    ("GPU", r"(?:available|memory|peak memory)\b.*(?:used|GiB)"),
    ("TPU", r"available: "),
    ("HPU", r"available: "),
    ("LOCAL_RANK:", r"\d+ - CUDA_VISIBLE_DEVICES"),
    ("GLOBAL_RANK:", r"\d"),
    ("distributed_backend=nccl", r""),
    ("Instantaneous", r"batch size per device"),
    ("Gradient", r"Accumulation steps = "),
    ("Num", r"(?:examples|Epochs|train samples|GPUs|devices)\b"),
    ("Num_devices:", r"\d"),
    ("Memstats:", r"After params"),
    ("*****", r"Running training"),
    ("DeepSpeed", r"(?:Final|Basic|Flops|info)\b"),
    ("Experiments", r"will be logged at "),
    ("Auto-calculated", r"total_steps: \d"),
    ("Starting:", r"num_steps=\d"),
    ("==((====))==", r""),
    ("\\\\", r"/\|"),
    ("O^O/", r""),
    ('"-____-"', r""),
    ("\\", r"/ .* = "),
    ("🦥", r"Unsloth"),
    ("🦥Unsloth", r""),
    ("Unsloth:", r"(?:Will|Fast|Patching|Tokenizing|Standardi)"),
    ("EagleMooncakeStore", r"initialized"),
    ("Time", r"to instantiate model"),
    ("Measured", r"TFLOPs: "),
    ("Verifying", r"settings"),
    ("Running", r"\w+ with resolved config"),
    ("allocating", r"\d+ MiB for"),
    ("allocated", r"\d+ MiB for"),
    ("Multi-GPU", r"support is"),
    ("batch_size", r"B=\d"),
    ("num_parameters:", r"\d"),
    ("=>", r"setting gradient accumulation steps|per-GPU activations|total grad"),
    ("found", r"vocab_size"),
    ("defaulting", r"to vocab_size"),
    ("No", r"meta\.pkl|decay"),
    (">", r"(?:building|number of parameters|padded vocab|initializ|setting|learning rate|datasets? target)"),
    ("building", r"(?:GPT|model|train|\S+ (?:model|tokenizer|datasets?))\b"),
    ("padded", r"vocab"),
    ("training", r"on \d+ devices"),
    ("max", r"tokens per (?:device|GPU)"),
    ("model:", r"\w"),
    ("task:", r"\w"),
    ("criterion:", r"\w"),
    ("targets:", r".*\bdrafters?: "),
)
"""First word of the record, and what must follow it."""

_ANYWHERE: Final = Lazy(
    r"Namespace\(\w+=|[A-Za-z][\w-]{1,60} \.{2,} +\S"
    r"|\w[\w ]{0,40}\| [\w./, -]{1,60}  \|$"  # a table of two columns, as llm.c prints it
    # what Lightning prints beneath its table
    r"|[\d.]+ [KMBT ] +(?:(?:Non-t|T)rainable|Total) params$|[\d.]+ +Total estimated model params size \(MB\)$"
)
_STARTS: Final = ("Namespace(",)
_ENDS: Final = ("|", " params", " (MB)")
_SEQ_LEN: Final = Lazy(rf"\b(?:max_)?seq(?:uence)?_len(?:gth)?=(?P<seq_len>{INT})\b")

STARTUP: Final = Format(name="start-up", title="what a program says before it trains", literals=(), rules=())
_RULE: Final = Rule(kind=Kind.HEADER, head=_ANYWHERE)


def _by_word() -> dict[str, tuple[Lazy, ...]]:
    table: dict[str, tuple[Lazy, ...]] = {}
    for word, follows in _SHAPES:
        table[word] = (*table.get(word, ()), Lazy(rf" *(?:{follows})"))
    return table


_BY_WORD: Final = _by_word()


def read_startup(text: str, start: int) -> Reading | None:
    """Return what a start-up line says, mostly nothing but that it is one; None where the line is none."""
    words = text[start : start + 80].split(None, 1)
    if not words:
        return None
    word = words[0]
    shapes = _BY_WORD.get(word)
    if shapes is not None:
        after = text.index(word, start) + len(word)
        if any(shape.match(text, after) for shape in shapes) and "%|" not in text:
            return Reading(_RULE, {}, {}, None)
    if (word.startswith(_STARTS) or " .." in text[start : start + 70] or text.endswith(_ENDS)) and _ANYWHERE.match(
        text, start
    ):
        fields: dict[str, float] = {}
        if (found := _SEQ_LEN.search(text, start)) is not None:
            value = parse_number(found["seq_len"])
            fields = {"seq_len": value} if value is not None else {}
        return Reading(_RULE, fields, {}, None)
    return None
