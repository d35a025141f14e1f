"""What the console says of the ways in which a run fails, falters or ends: one entry a slug.

Only words live here; `console.catalogue` alone imports this module. How each is recognised is in `console.state`.
"""

from __future__ import annotations

from console.advice import Entry, error, info, warning

_LEFT_ALONE = "the run is left alone"
_RUN_GONE = "nothing of ours was killed because of it; what the run saved is still on disk"
_FIX_RESTART = "then restart (r)"

_ENDED = {
    "exit_without_step": error(
        "ended without a step",
        "The run ended with status 0 and never made a step: started is not completed.",
        _RUN_GONE,
        "read the log: did run.sh put the trainer into the background or skip it?",
    ),
    "incomplete_exit0": error(
        "ended with status 0, but it is not finished",
        "A pipe or an old lxc-attach can turn a killed run into status 0; the log does not say that it is done.",
        _RUN_GONE,
        "look for the true end in the kernel's log and the exit record; then go on from the last checkpoint (r)",
    ),
    "exit_status": error(
        "ended with an error status",
        "The run ended by itself before it was done. The status alone says little about why.",
        _RUN_GONE,
        "read the last lines of the log (e)",
    ),
    "python_exception": error(
        "a Python exception ended it",
        "The first traceback since the last step is the cause; what other ranks say after it is a consequence.",
        _RUN_GONE,
        "read the traceback (e), then restart (r)",
    ),
    "sigkill_unknown": error(
        "killed, sender unknown",
        "It got SIGKILL and nobody says from whom; no evidence speaks for memory.",
        _RUN_GONE,
        "ask who else works on this host; look into the kernel's log there",
    ),
    "sigterm_external": error(
        "ended by SIGTERM from outside",
        "A colleague, a scheduler or the container's stop asked it to end; nobody did from here.",
        _RUN_GONE,
        "ask who else works on this host, then restart (r)",
    ),
    "sighup": error(
        "ended by a hang-up of its session",
        "Its terminal or SSH session was closed; nohup doesn't help where the trainer handles SIGHUP.",
        _RUN_GONE,
        "restart it from here (r): a keeper puts it outside every session",
    ),
    "session_killed": error(
        "killed with its login session",
        "systemd ended the session it was started in and killed all that was left of it, tmux and nohup included.",
        _RUN_GONE,
        "restart it from here (r): a keeper puts it outside every session; or enable lingering on the host",
    ),
    "pkill_self_match": error(
        "the launching line killed itself with pkill -f",
        "The pattern stands in the command line of the very shell that runs pkill, so the new run never started.",
        "no run was started by it; whether the old one was killed has to be looked at",
        "restart it from here (r): processes are found by pid and never by a pattern",
    ),
    "user_interrupt": error(
        "interrupted from the keyboard",
        "Somebody pressed control-c in its terminal, or sent SIGINT.",
        _RUN_GONE,
        "nothing is wrong with it; restart (r) when it is wanted",
    ),
    "segfault": error(
        "crashed with a segmentation fault",
        "Native code (a library or the driver) failed; there is no Python error for it.",
        _RUN_GONE,
        "look whether it is always the same GPU or step; a core file may lie in the working directory",
    ),
    "sigbus": error(
        "crashed with a bus error",
        "Memory that is backed by a file or by /dev/shm could not be had: most often /dev/shm is full.",
        _RUN_GONE,
        "look at `df -h /dev/shm` and for leftovers of killed runs in it, then restart (r)",
    ),
    "signalled": error(
        "ended by a signal",
        "It was ended by a signal, and nobody did that from here.",
        _RUN_GONE,
        "read the last lines of the log (e)",
    ),
    "unknown": error(
        "ended, nobody knows how",
        "No exit status was recorded and the log names no cause.",
        _RUN_GONE,
        "read the last lines of the log (e)",
    ),
}

_MEMORY_AND_DISK = {
    "host_oom": error(
        "killed: the host ran out of memory",
        "The kernel killed it to free main memory. This is not GPU memory.",
        _RUN_GONE,
        "lower data workers, pinned buffers or queue depth, then restart (r)",
    ),
    "cgroup_oom": error(
        "killed: the container's memory limit was reached",
        "The kernel killed it because its own group hit its limit, whatever the host had free.",
        _RUN_GONE,
        "raise the limit, or lower data workers and buffers, then restart (r)",
    ),
    "dataloader_killed": error(
        "a data worker was killed",
        "A worker process of the data loader died, most often for want of memory; the trainer only reports it.",
        _RUN_GONE,
        "look for an OOM line in the kernel's log; lower the number of workers, then restart (r)",
    ),
    "shm_exhausted": error(
        "no shared memory left (/dev/shm)",
        "/dev/shm of the container is too small or full of what killed runs left. This is not the disk.",
        _RUN_GONE,
        "remove stale torch_* and nccl-* files in /dev/shm, or enlarge it",
        _FIX_RESTART,
    ),
    "disk_full": error(
        "no space left on the disk",
        "A write failed for want of space. The newest checkpoint may be incomplete.",
        _RUN_GONE,
        "make room, check the last checkpoint, then restart (r)",
    ),
    "disk_quota": error(
        "the disk quota is exceeded",
        "The user's or project's quota is used up, whatever df shows; often by caches in the home directory.",
        _RUN_GONE,
        "move caches (TRITON_CACHE_DIR, HF_HOME) to another disk or make room, then restart (r)",
    ),
    "stale_file_handle": error(
        "a network file went stale (ESTALE)",
        "A file that the run had open was replaced or removed on the file server.",
        _RUN_GONE,
        "check the mount on the host (`ls` the path in the line), then restart (r)",
    ),
    "too_many_files": error(
        "too many open files",
        "The process reached its limit of open files, often 1024 where no login shell raised it.",
        _RUN_GONE,
        "put `ulimit -n 65536` into run.sh, then restart (r)",
    ),
    "ckpt_corrupt": error(
        "the checkpoint can't be read",
        "The file is truncated or damaged: the save before it was interrupted, or the disk was full.",
        "older checkpoints are not touched",
        "resume from the checkpoint before it, then restart (r)",
    ),
}

_GPUS = {
    "cuda_oom": error(
        "out of GPU memory",
        "An allocation on a GPU failed. This is not the host's memory.",
        _RUN_GONE,
        "lower the batch or sequence length, or look who else holds that GPU's memory",
    ),
    "gpu_memory_held": error(
        "GPU memory is held by another process",
        "What is missing on that GPU is not used by this run: an old run, an orphan or somebody else has it.",
        "no process was signalled because of it",
        "look who holds it (GPUs); a driver that does not let go needs a GPU reset",
    ),
    "cuda_init_failed": error(
        "CUDA can't be initialized",
        "The driver, the device nodes or the CUDA version do not fit, so no context could be made.",
        _RUN_GONE,
        "check driver and /dev/nvidia-uvm inside the container, and CUDA_VISIBLE_DEVICES",
    ),
    "driver_too_old": error(
        "the GPU driver is older than CUDA needs",
        "CUDA of this build does not run on the driver; a trainer that goes on regardless computes on the CPU.",
        _LEFT_ALONE,
        "update the driver, or use a build for the older CUDA, then restart (r)",
    ),
    "nvml_mismatch": error(
        "driver and its library differ in version",
        "The libraries were updated under a loaded driver, or container and host differ. New starts fail.",
        "a run that already computes goes on; only what asks the driver anew fails",
        "reboot the host or reload the driver when the run may end",
    ),
    "gpu_lost_in_container": error(
        "the container has lost its GPUs",
        "The host took the device access away, often by a daemon-reload; the GPUs themselves are fine.",
        "a run that already computes may go on: do not kill it for this",
        "restart the container when the run may end, then restart (r)",
    ),
    "fabric_manager": error(
        "the NVSwitch fabric is not ready",
        "CUDA waits for the fabric manager (error 802): it does not run, does not fit, or has not finished.",
        _RUN_GONE,
        "start nvidia-fabricmanager on the host, wait until its state is Completed, then restart (r)",
    ),
    "invalid_device": error(
        "a rank wants a GPU that is not there",
        "More ranks than visible GPUs: CUDA_VISIBLE_DEVICES, the number of ranks, or a GPU that dropped off.",
        _RUN_GONE,
        "compare the ranks with `nvidia-smi -L`, then restart (r)",
    ),
    "no_kernel_image": error(
        "this build has no code for this GPU",
        "PyTorch or an extension was built for other GPU architectures.",
        _RUN_GONE,
        "install a build for this architecture, then restart (r)",
    ),
    "cuda_fork": error(
        "CUDA was used in a forked worker",
        "A worker was forked after CUDA had been initialized; the parent may go on waiting for it.",
        _RUN_GONE,
        "set the start method of the workers to spawn, then restart (r)",
    ),
    "gpu_fell_off_bus": error(
        "a GPU fell off the bus (Xid 79)",
        "The host lost contact with the card: power, heat or PCIe. What ranks report after that is a consequence.",
        _RUN_GONE,
        "note the card's bus id; power-cycle or reseat it, then restart (r)",
    ),
    "ecc_error": error(
        "uncorrectable GPU memory error (ECC)",
        "A memory cell of the GPU failed. Timeouts of other ranks are consequences.",
        _RUN_GONE,
        "reset the GPU so that the row is remapped; replace the card if it comes back",
    ),
    "gpu_fault": error(
        "the driver reports a GPU fault (Xid)",
        "The GPU, its firmware or NVLink failed in a way that is not a bug of the trainer.",
        _RUN_GONE,
        "look the Xid up, reset the GPU or reboot, then restart (r)",
    ),
    "illegal_memory_access": error(
        "illegal memory access on a GPU",
        "A kernel touched memory that is not its own. It is reported late, so the stack shown may be innocent.",
        _RUN_GONE,
        "run once with CUDA_LAUNCH_BLOCKING=1; note whether it is always the same GPU",
    ),
}

_RANKS = {
    "port_in_use": error(
        "the port is already in use",
        "Another process listens there: the old run, a second run on this host, or a fixed port.",
        "the process that holds the port is left alone",
        "look who listens (`ss -ltnp`), or choose another port, then restart (r)",
    ),
    "nccl_timeout": error(
        "a collective timed out",
        "Ranks waited for one that did not come. The hang began the timeout before the message.",
        _RUN_GONE,
        "look which rank is behind and what it did: data, checkpoint, a swallowed error, its GPU",
    ),
    "dist_store_timeout": error(
        "ranks waited in vain before training",
        "The rendezvous, the store or a barrier timed out, often while one rank prepares data.",
        _RUN_GONE,
        "prepare the data beforehand or raise the timeout, then restart (r)",
    ),
}

_SOFTWARE = {
    "no_tty": error(
        "it needs a terminal",
        "The program asks for a terminal or an answer and has none.",
        _RUN_GONE,
        "switch the fancy output or the question off, then restart (r)",
    ),
    "wandb_login": error(
        "wandb asks for a login",
        "No API key is set, and nobody can answer the question.",
        "the GPUs it holds do nothing meanwhile",
        "set WANDB_API_KEY or WANDB_MODE=offline under `env`, then restart (r)",
    ),
    "download_stall": warning(
        "a download does not move",
        "Nothing arrives any more; there is no overall timeout. This is no hang of the training.",
        _LEFT_ALONE,
        "check network and proxy on the host, or fetch the files beforehand, then restart (r)",
    ),
    "hf_gated": error(
        "no access to the model or data set",
        "It is gated or private, and no valid token is in the run's environment, or its licence was not accepted.",
        _RUN_GONE,
        "accept the licence and set HF_TOKEN under `env`, then restart (r)",
    ),
    "abi_mismatch": error(
        "a native library does not match",
        "An extension was built for another version of PyTorch, CUDA or the C library.",
        _RUN_GONE,
        "install the extension anew for the versions that are there, then restart (r)",
    ),
    "no_compiler": error(
        "a compiler is missing",
        "Kernels are compiled at the first step and need a C compiler, Python's headers or nvcc.",
        _RUN_GONE,
        "install gcc and python3-dev in the container, then restart (r)",
    ),
    "inductor_cache_race": error(
        "ranks or jobs raced in the compile cache",
        "A shared cache was written or wiped by another process in the middle. It is no missing file of yours.",
        _RUN_GONE,
        "restart (r); give each rank or job its own TORCHINDUCTOR_CACHE_DIR if it comes back",
    ),
}

_HEALTH = {
    "nan_loss": error(
        "the loss is not a number",
        "Every further step is wasted: the weights do not recover from it.",
        "the run is left alone; checkpoints before the first bad step are good",
        "restart (r) from a checkpoint before that step",
    ),
    "loss_spike": warning(
        "the loss has jumped and stays up",
        "It rose far above what it was and has not come back. This is no failure yet.",
        _LEFT_ALONE,
        "watch whether it recovers; else restart (r) from a checkpoint before it",
    ),
    "queue_starved": warning(
        "the queue of hidden states is empty",
        "The consumers wait for the producers: these are too slow, unbalanced or dead.",
        _LEFT_ALONE,
        "look whether all target workers live; give them more GPUs at the next restart",
    ),
    "recompile_limit": warning(
        "it stopped compiling and runs slower",
        "Shapes vary so much that dynamo gave up and runs that code uncompiled.",
        _LEFT_ALONE,
        "pad or bucket the shapes, or raise recompile_limit at the next restart",
    ),
    "stalled": warning(
        "no step for too long",
        "The process lives, but no step came within the time that this run's own steps allow.",
        _LEFT_ALONE,
        "look at GPUs and log; restart (r) when it does not come back",
    ),
    "slow": warning(
        "slower than the baseline",
        "The throughput stays below the run that it is compared with.",
        _LEFT_ALONE,
        "look at queue, GPU power and clocks",
    ),
    "finished_not_exited": warning(
        "finished, but the process has not exited",
        "The log says that it is done; something in its teardown still waits.",
        "its results are on disk; it is safe to stop",
        "stop it (s) when nothing is uploaded any more",
    ),
    "completed": info(
        "finished", "The run has done all its steps and ended.", "its results are on disk", "r starts the next one"
    ),
    "running_ok": info(
        "no failure is seen",
        "The log shows no failure; that it makes steps has to be seen, too.",
        _LEFT_ALONE,
        "keep watching",
    ),
}

ENDINGS: dict[str, Entry] = {**_ENDED, **_MEMORY_AND_DISK, **_GPUS, **_RANKS, **_SOFTWARE, **_HEALTH}
