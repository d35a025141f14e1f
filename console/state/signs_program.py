"""Signs of programs: shells and scripts that can't start, Python environments, models, checkpoints, compilers, losses.
Data only."""

from __future__ import annotations

from typing import Final

from console.reasons import Reason
from console.state.sign import Sign, Trust, sign

_SHELL: Final = r"^\S+: (?:line )?\d+: "

SHELL: Final[tuple[Sign, ...]] = (
    # The shell's own words: FILE: line N: PROGRAM: what is wrong.
    sign(
        Reason.CRLF_SCRIPT,
        r"\$'\\r': command not found|\^M: (?:bad interpreter|No such file)|(?:bash|sh|python3?)(?:\\r|␍)['’]?: No such file or directory",
        anywhere=True,
        samples=("/srv/go.sh: line 2: $'\\r': command not found", "env: ‘bash\\r’: No such file or directory"),
    ),
    sign(
        Reason.NO_COMPILER,
        r"(?i)\bfailed to find (?:a )?C(?:\+\+)? compiler\b|\bno working C(?:\+\+)? compiler found\b|\bInvalidCxxCompiler\b",
        r"(?:^|: )(?:\d+: )?(?:x86_64-linux-gnu-)?(?:gcc|g\+\+|cc|c\+\+|clang|nvcc|ninja): (?:command )?not found",
        r"(?:No such file or directory|not found)[:,]? ['\"‘`](?:\S*/)?(?:x86_64-linux-gnu-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|nvcc|ninja)['\"’`]",
        r"\bPython\.h: No such file or directory\b|\bcannot find -lcuda\b|\bcuda_runtime\.h: No such file",
        r"(?i)\bninja is required to load C\+\+ extensions\b|\bCUDA_HOME (?:environment variable is not set|does not exist)",
        r"(?i)\bunable to find (?:a )?(?:C|C\+\+|host) compiler\b|\bcommand ['\"]\S*(?:gcc|g\+\+|cc)['\"] (?:failed: No such|not found)",
        anywhere=True,
        samples=(
            "/tmp/tmp7a/main.c:5:10: fatal error: Python.h: No such file or directory",
            "FileNotFoundError: [Errno 2] No such file or directory: 'gcc'",
            "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
        ),
        refuses=("C compiler: /usr/bin/gcc 12.2", "found ninja at /venv/bin/ninja"),
    ),
    sign(
        Reason.BAD_INTERPRETER,
        r": (?:bad interpreter|cannot execute: required file not found)",
        anywhere=True,
        samples=("bash: /srv/go.sh: /bin/nosuch: bad interpreter: No such file or directory",),
    ),
    sign(
        Reason.EXEC_FORMAT,
        r": cannot execute binary file|\bExec format error\b",
        anywhere=True,
        samples=("OSError: [Errno 8] Exec format error: '/srv/go.sh'",),
    ),
    sign(
        Reason.CWD_MISSING,
        r"^(?:\S+: )?(?:line )?(?:\d+: )?cd: (?:can't cd to )?\S+?(?:: No such file or directory)?$",
        unless=r"^cd: \S+$",
        samples=("/srv/go.sh: line 2: cd: /data/run7: No such file or directory", "sh: 1: cd: can't cd to /data/run7"),
        refuses=("cd /data/run7",),
    ),
    sign(
        Reason.LOG_DIR_MISSING,
        _SHELL + r"(?:cannot create )?\S+\.(?:log|out|err|txt): (?:No such file or directory|Directory nonexistent)$",
        samples=("/srv/go.sh: line 4: /logs/x/train.log: No such file or directory",),
    ),
    sign(
        Reason.EXEC_NOT_PERMITTED,
        _SHELL + r".*: Permission denied$",
        r"^(?:env|nohup|setsid|timeout|exec|bash|sh|sudo): .*: Permission denied$",
        samples=("/srv/go.sh: line 3: /opt/py: Permission denied", "nohup: failed to run command '/srv/go.sh': Permission denied"),
    ),
    sign(
        Reason.FILE_MISSING,
        r"\bcan't open file ['\"].*No such file or directory",
        samples=("python3: can't open file '/srv/train.py': [Errno 2] No such file or directory",),
    ),
    sign(
        Reason.COMMAND_NOT_FOUND,
        r": command not found$|^\S+: (?:line )?\d+: \S+: not found$|^\w+: \S+: not found$|: executable file not found in \$PATH|^command not found: \S+$|: command not found: \S+$",
        _SHELL + r".*: No such file or directory$",
        r"^(?:env|nohup|setsid|timeout|exec|sudo|nice|srun|mpirun)\b.*(?:No such file or directory|command not found|not found)\W?$",
        samples=(
            "/srv/go.sh: line 9: deepspeed: command not found",
            "sh: 1: accelerate: not found",
            "nohup: failed to run command 'torchrun': No such file or directory",
            "zsh: command not found: torchrun",
        ),
        refuses=("apex not found, using native fused Adam", "cache entry not found"),
    ),
    sign(
        Reason.SCRIPT_SYNTAX,
        r": (?:line )?\d+: [Ss]yntax error|: unexpected end of file$|: unexpected EOF while looking for matching",
        samples=("/srv/go.sh: line 4: syntax error near unexpected token `fi'",),
    ),
)

PYTHON: Final[tuple[Sign, ...]] = (
    sign(
        Reason.NO_TTY,
        r"\bInappropriate ioctl for device\b|\[Errno 25\]|\bENOTTY\b",
        r"(?i)\b(?:input device|stdin|stdout|standard input) is not a (?:TTY|terminal)\b|\bnot a (?:tty|terminal)$",
        r"(?i)\bcould not find terminal\b|\berror opening terminal\b|\bsetupterm: could not\b|\bmust be (?:run|connected) (?:in|from|to) a terminal\b|\bno controlling (?:tty|terminal)\b",
        r"^EOFError: EOF when reading a line",
        unless=r"(?i)cannot set terminal process group|ttyname failed|stty|no job control|tqdm|disabling|plain output|falling back",
        samples=(
            "termios.error: (25, 'Inappropriate ioctl for device')",
            "the input device is not a TTY",
            "_curses.error: setupterm: could not find terminal",
        ),
        refuses=(
            "bash: cannot set terminal process group (-1): Inappropriate ioctl for device",
            "mesg: ttyname failed: Inappropriate ioctl for device",
            "stdout is not a terminal, disabling colours",
        ),
    ),
    sign(
        Reason.WANDB_LOGIN,
        r"^wandb: (?:Enter your choice|Paste an API key|\(1\) Create a W&B account)",
        r"(?i)\bapi_key not configured\b|\bno api key configured\b",
        r"(?i)wandb: ERROR .{0,40}(?:api[_ ]key|login|authenticat|permission|401|403)",
        r"(?i)\bwandb\.errors\.\S*(?:Authentication|Usage)Error\b.{0,80}(?:api|key|log ?in)|\buser is not logged in\b.{0,40}wandb|\bwandb\b.{0,60}\bnot logged in\b",
        r"(?i)\bplease (?:run|use) .?wandb login\b",
        unless=r"(?i)currently logged in|offline",
        anywhere=True,
        quiet=True,
        samples=(
            "wandb: Paste an API key from your profile and hit enter, or press ctrl+c to quit:",
            "wandb.errors.UsageError: No API key configured. Use `wandb login` to log in.",
            "wandb.errors.errors.AuthenticationError: The API key you provided is either invalid or missing.",
        ),
        refuses=(
            "wandb: Currently logged in as: ops. Use `wandb login --relogin` to force relogin",
            "wandb: WARNING If you're specifying your api key in code, ensure this code is not shared publicly.",
            "wandb: Tracking run with wandb version 0.19",
        ),
    ),
    sign(
        Reason.HF_GATED,
        r"\bGatedRepoError\b|(?i:\bgated (?:repo|repository|dataset|model)\b)|\bRepositoryNotFoundError\b|\bRepository Not Found for url\b",
        r"(?i)\baccess to (?:model|dataset) \S+ is restricted\b|\bmust (?:have access|be authenticated) to access it\b|\bawaiting a review from the repo authors\b",
        r"\b(?:401|403) (?:Client Error|Forbidden|Unauthorized)\b(?=.*(?:huggingface|hf\.co|Request ID|Root=))",
        r"(?i)\bis not a local folder and is not a valid model identifier\b|\bLocalTokenNotFoundError\b|\btoken is required \(`?token=True\b|\bInvalid (?:user token|credentials in Authorization header)\b",
        r"(?i)\bDatasetNotFoundError\b.{0,120}(?:gated|cannot be accessed|doesn't exist)",
        anywhere=True,
        samples=(
            "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-0)",
            "datasets.exceptions.DatasetNotFoundError: Dataset 'org/corpus' is a gated dataset on the Hub.",
            "huggingface_hub.errors.LocalTokenNotFoundError: Token is required (`token=True`), but no token found.",
        ),
        refuses=("gated_mlp: true", "gate_proj loaded, repo org/model"),
    ),
    sign(
        Reason.ABI_MISMATCH,
        r"(?i)\bundefined symbol\b|\bsymbol lookup error\b",
        r"\bversion [`'‘](?:GLIBC|GLIBCXX|CXXABI|GOMP)_?[\d.]*['’] not found\b",
        r"\blib(?!cuda\.so)[\w+-]+\.so(?:\.[\d.]+)?: cannot open shared object file\b",
        r"(?i)\bmay indicate binary incompatibility\b|\bmodule that was compiled using NumPy 1\.x cannot be run in\b|\bcompiled against (?:ABI|API|a newer|a different)\b",
        r"(?i)\bcompiled with different CUDA (?:major )?versions\b|\bmismatches the version that was used to compile\b|\bCUDA version mismatch\b",
        r"\boperator torchvision::\w+ does not exist\b|\b_ARRAY_API not found\b",
        unless=r"(?i)torchinductor|[./]triton/",
        anywhere=True,
        samples=(
            "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /venv/x.so)",
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
            "RuntimeError: operator torchvision::nms does not exist",
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility.",
        ),
        refuses=("torch 2.7.1+cu128, flash_attn 2.8.3: versions match",),
    ),
    sign(
        Reason.MISSING_MODULE,
        r"\bNo module named ['\"]?[\w.]+",
        r"\bModuleNotFoundError\b|\bPackageNotFoundError\b|\bNo package metadata was found for\b",
        r"(?i)\bpackages? that were not found in your environment\b|\brequires the \S+ library but it was not found\b|\bthe package \S+ (?:seems to be|is) not installed\b",
        unless=r"(?i)\b(?:using|without|instead|optional|disabl\w+|skipp\w+|falling|fallback|not required|going on|proceed\w*|continu\w+)\b",
        samples=(
            "/usr/bin/python3: No module named torch.distributed.run",
            "importlib.metadata.PackageNotFoundError: No package metadata was found for bitsandbytes",
            "ImportError: No module named einops",
        ),
        refuses=("No module named 'xformers', proceeding without it", "WARNING optional: No module named 'apex'"),
    ),
    sign(
        Reason.CKPT_CORRUPT,
        r"PytorchStreamReader failed|\bfailed finding central directory\b",
        r"(?i)\binvalid header or archive is corrupted\b|\bpickle data was truncated\b|\binvalid load key\b|\binvalid magic number\b.{0,20}\bcorrupt",
        r"(?i)\bError while deserializing(?: header)?\b|\bHeaderTooLarge\b|\bMetadataIncompleteBuffer\b|\bInvalidHeader\w*\b|\bHeaderTooSmall\b",
        r"(?i)\bunexpected EOF, expected \d+ more bytes\b|\bBadZipFile\b|\bfile might be corrupted\b|\bfile in archive is not in a subdirectory\b",
        r"(?i)\bcheckpoint\b.{0,60}\b(?:is |appears |seems |may be )?(?:to be )?(?:corrupt(?:ed)?|truncated|unreadable|incomplete)\b|\b(?:corrupt(?:ed)?|truncated|incomplete) checkpoint\b",
        r"^EOFError: Ran out of input|\bUnable to load weights from pytorch checkpoint\b|\bstorage has wrong (?:byte )?size\b",
        unless=r"(?i)\bno corrupt|not corrupt|\b0 corrupt|skipp\w+ (?:the )?(?:corrupt|incomplete)|verif\w+ ok|removed? (?:the )?incomplete|delet\w+",
        anywhere=True,
        samples=(
            "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
            "_pickle.UnpicklingError: invalid load key, 'v'.",
            "EOFError: Ran out of input",
            "zipfile.BadZipFile: File is not a zip file",
        ),
        refuses=("checkpoint verified: not corrupted", "deleted incomplete checkpoint of step 1500"),
    ),
    sign(
        Reason.NAN_LOSS,
        r"(?i)\bloss (?:is|was|became|becomes|went|=|:)? ?(?:nan|inf|infinite|non-?finite|not finite)\b.{0,40}(?:stop|abort|exit|terminat|end|crash|quit)",
        r"(?i)\b(?:nan|non-?finite|infinite) (?:loss|gradients?|grad(?:ient)? norm)\b.{0,60}\b(?:stop|abort|exit|terminat|raise|crash|diverg)",
        r"(?i)\bloss returned in `?training_step`? is (?:nan|inf)|\bfound NaN in (?:local )?(?:forward |grad)|\bUnexpected result (?:nan|inf)\b|\breturned nan values in its\b",
        r"(?i)\bminimum loss scale reached\b|\bloss scale already at minimum\b|\bInvalid loss, terminating\b|\btraining (?:has )?diverged\b",
        r"(?i)\bprobability tensor contains either\b|\b(?:Error|Exception|assert\w*)\b.{0,80}\b(?:loss|grad\w*|weights?|logits?)\b.{0,30}\b(?:is|are|contains?|became) (?:nan|inf|non-?finite|not finite)\b",
        r"(?i)\b(?:Error|Exception)\b.{0,40}\b(?:NaN|non-?finite)\b.{0,40}\b(?:loss|grad\w*|weights?|parameters?|logits?|detected)\b",
        unless=r"(?i)\b(?:abort|stop|exit|raise|fail)_on|no (?:nan|inf)|0 nan|if (?:the )?loss|skipp\w+|except|check(?:ing)? for",
        anywhere=True,
        samples=(
            "Loss is nan, stopping training",
            "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.",
            "ValueError: The loss returned in `training_step` is nan.",
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        ),
        refuses=(
            "abort_on_nan: true",
            "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 32768.0",
            "nan_count: 0",
        ),
    ),
)

CONDITIONS: Final[tuple[Sign, ...]] = (
    sign(
        Reason.RECOMPILE_LIMIT,
        r"(?i)\bhit config\.(?:accumulated_)?(?:recompile_limit|cache_size_limit)\b",
        r"(?i)\b(?:recompile|cache[_ ]size)[_ ]limit (?:was |has been )?(?:reached|exceeded|hit)\b|\bFailOnRecompileLimitHit\b|\breached (?:the )?(?:recompile|cache size)[_ ]limit\b",
        anywhere=True,
        quiet=True,
        lasting=True,
        trust=Trust.GENERAL,
        samples=(
            "[rank0]:W0214 02:11:09.332000 71 torch/_dynamo/convert_frame.py:906] [0/8] torch._dynamo hit config.cache_size_limit (8)",
            "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with fullgraph=True.",
        ),
        refuses=("torch._dynamo.config.recompile_limit = 64", "recompile_limit: 64"),
    ),
    sign(
        Reason.QUEUE_STARVED,
        r"(?i)\bpool insufficient for dispatch\b|\b(?:hidden[- ]?states?|hs|sample|batch|data|feature|prefetch|rollout)[ _-]?(?:queue|pool|buffer) (?:is |was |has been |still )?(?:empty|starved|drained|exhausted)\b(?! ?(?:[:=]|slots))",
        r"(?i)\bqueue (?:is |has been |still )?(?:empty|starved) (?:for|since)\b|\b(?:drafters?|trainers?|consumers?|learners?) (?:is |are )?(?:starv\w+|idle|waiting) ?(?:for|:|,)? ?(?:\w+ ){0,3}(?:hidden|targets?|batches|queue|samples|data|states)\b",
        r"(?i)\bno (?:hidden states|batches|samples) (?:are |were )?(?:ready|available|received)\b.{0,40}\bfor \d+|\bstarvation\b.{0,40}\bmin_ready ?= ?0|\bmin_ready ?= ?0\b.{0,60}\bfor \d+",
        unless=r"(?i)\bempty_pct|no longer|refilled|recovered|\b0 starv",
        anywhere=True,
        quiet=True,
        trust=Trust.GENERAL,
        samples=(
            "WARNING hidden-state queue is empty, drafters wait (412 s)",
            "drafter 6: no hidden states received for 300 s",
        ),
        refuses=("queue depth 12/16", "hs_queue min_ready=16 max_depth=16"),
    ),
)
