"""Endings of logs as people meet them, each with the reason that is right: other wordings, other trainers, noise.

Written for these tests; hosts, pids, paths and figures are invented. `status` and `signal` are what a launcher would
have recorded: both None means that nobody knows whether the process still lives.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Ending(NamedTuple):
    reason: str
    log: str
    status: int | None = None
    signal: str | None = None


def _ranked(rank: int, text: str) -> str:
    return "\n".join(f"[rank{rank}]: {line}" for line in text.split("\n"))


_STACK: Final = 'Traceback (most recent call last):\n  File "/srv/fit.py", line 88, in <module>\n    main()\n'
_TABLE: Final = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "============================================================\nfit.py FAILED\n"
    "------------------------------------------------------------\nFailures:\n"
    "[1]:\n  time      : 2026-02-14_02:11:09\n  host      : gpu7\n  rank      : 5 (local_rank: 5)\n"
    "  exitcode  : -15 (pid: 4416)\n  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received by PID 4416\n"
    "------------------------------------------------------------\nRoot Cause (first observed failure):\n"
    "[0]:\n  time      : 2026-02-14_02:11:08\n  host      : gpu7\n  rank      : 2 (local_rank: 2)\n"
    "  exitcode  : {code} (pid: 4413)\n  error_file: <N/A>\n  traceback : {why}\n"
    "============================================================"
)
_HF: Final = "{'loss': 1.8821, 'grad_norm': 0.71, 'learning_rate': 2e-05, 'epoch': 0.31}\n"
_MEG: Final = (
    " iteration     5400/  100000 | consumed samples:      1382400 | elapsed time per iteration (ms): 812.4 |"
    " learning rate: 1.2E-04 | global batch size:   256 | lm loss: 2.318841E+00 | loss scale: 1.0 | grad norm: 0.412 |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
_TITAN: Final = "[titan] 2026-02-14 02:11:08,001 - root - INFO - step: 1200  loss:  2.4012  memory: 61.10GiB(77.3%)  tps: 5,201  tflops: 210.1  mfu: 21.2%\n"
_STEP: Final = (
    "[02:11:07] step 9120/48000 | loss 1.4410 | lr 3.1e-04 | tok/s 19,120 | hs_queue min_ready=9 max_depth=16\n"
)
_BAR: Final = " 31%|███       | 310/1000 [10:20<23:00,  2.00s/it]"

ENDINGS: Final[tuple[Ending, ...]] = (
    # -- hang-ups, sessions, signals ------------------------------------------------------------------------------------
    Ending(
        "sighup",
        _STEP
        + "W0214 02:11:09.100000 4410 torch/distributed/elastic/agent/server/api.py:723] Received 1 death signal, shutting down workers\nW0214 02:11:09.101000 4410 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 4411 closing signal SIGHUP\n"
        + _STACK
        + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4410 got signal: 1",
        1,
    ),
    Ending("sighup", _STEP + _STEP.replace("9120", "9130"), 129, "SIGHUP"),
    Ending(
        "sighup",
        _STEP
        + "W0214 02:11:09.100000 4410 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGHUP death signal, shutting down workers",
        1,
    ),
    Ending(
        "sigterm_external",
        _STEP
        + "[2026-02-14 02:11:09,100] torch.distributed.elastic.agent.server.api: [WARNING] Received 15 death signal, shutting down workers",
        1,
    ),
    Ending(
        "gpu_memory_held",
        _STACK
        + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 79.15 GiB of which 1.19 GiB is free. Process 8812 has 77.10 GiB memory in use. Process 9914 has 860.00 MiB memory in use. Of the allocated memory 200.00 MiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but unallocated.",
        1,
    ),
    Ending(
        "sighup",
        _TITAN + "/srv/go.sh: line 14:  4411 Hangup                  torchrun --nproc-per-node 8 train.py",
        129,
    ),
    Ending("sighup", _HF + "\x1b[33mWARNING\x1b[0m received SIGHUP, terminal is gone, stopping", 1),
    Ending(
        "session_killed",
        _STEP
        + "Feb 14 02:11:09 gpu7 systemd[1]: session-c4.scope: Killing process 4411 (python3) with signal SIGTERM.\nFeb 14 02:11:09 gpu7 systemd[1]: session-c4.scope: Deactivated successfully.",
        143,
        "SIGTERM",
    ),
    Ending(
        "session_killed",
        _HF
        + "-- journal --\nFeb 14 02:11:04 gpu7 systemd-logind[702]: Session 41 logged out. Waiting for processes to exit.\nFeb 14 02:11:14 gpu7 systemd[1]: Stopping User Manager for UID 1000...\nFeb 14 02:11:14 gpu7 systemd[1]: user@1000.service: Killing process 4411 (tmux: server) with signal SIGKILL.",
        137,
        "SIGKILL",
    ),
    Ending(
        "session_killed", _STEP + "Killed\nFeb 14 02:11:14 gpu7 systemd[1]: Removed slice User Slice of UID 1000.", 137
    ),
    Ending(
        "sigterm_external",
        _TITAN
        + "W0214 02:11:09.100000 4410 torch/distributed/elastic/agent/server/api.py:723] Received 15 death signal, shutting down workers\nW0214 02:11:09.101000 4410 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 4411 closing signal SIGTERM",
        1,
    ),
    Ending(
        "sigterm_external",
        _STEP + "slurmstepd: error: *** JOB 55121 ON gpu7 CANCELLED AT 2026-02-14T02:11:09 DUE TO TIME LIMIT ***",
        143,
    ),
    Ending("sigterm_external", _HF + "[rank: 0] Received SIGTERM: 15\n[rank: 1] Received SIGTERM: 15", 143, "SIGTERM"),
    Ending("sigterm_external", _STEP, None, "SIGTERM"),
    Ending("sigterm_external", _HF + "/srv/go.sh: line 4:  4411 Terminated              python -u fit.py", None),
    Ending("pkill_self_match", "+ cd /srv\n+ pkill -9 -f fit.py\nKilled", 137, "SIGKILL"),
    Ending("pkill_self_match", "stopping old run\n++ pkill -f 'torchrun.*fit.py'", 143, "SIGTERM"),
    Ending("pkill_self_match", "+ echo restart\nrestart\n+ pkill -f train_drafter.py", 255),
    Ending("pkill_self_match", "$ pkill -f vllm; sleep 3; nohup ./go.sh &\nTerminated", 143),
    Ending("sigkill_unknown", "", 137, "SIGKILL"),
    Ending(
        "sigkill_unknown",
        _STEP + "/srv/go.sh: line 7:  4411 Killed                  python3 -u fit.py >> fit.log 2>&1",
        137,
    ),
    Ending("sigkill_unknown", _STEP + _TABLE.format(code="-9", why="Signal 9 (SIGKILL) received by PID 4413"), 1),
    Ending(
        "sigkill_unknown",
        "[2026-02-14 02:11:09,001] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 4411\n[2026-02-14 02:11:09,002] [ERROR] [launch.py:322:sigkill_handler] ['/venv/bin/python', '-u', 'fit.py', '--local_rank=7'] exits with return code = -9",
        247,
    ),
    Ending(
        "sigkill_unknown",
        _TITAN
        + "E0214 02:11:09.4 4410 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -9) local_rank: 3 (pid: 4414) of binary: /venv/bin/python3",
        1,
    ),
    Ending(
        "sigkill_unknown",
        _STACK + "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL",
        1,
    ),
    Ending(
        "user_interrupt",
        _BAR
        + '^CTraceback (most recent call last):\n  File "/srv/fit.py", line 80, in <module>\n    main()\nKeyboardInterrupt',
        130,
        "SIGINT",
    ),
    Ending("user_interrupt", _HF + "Detected KeyboardInterrupt, attempting graceful shutdown ...", 1),
    Ending("user_interrupt", _STEP, 130),
    Ending(
        "user_interrupt",
        "W0214 02:11:09.1 4410 torch/distributed/elastic/agent/server/api.py:723] Received 2 death signal, shutting down workers",
        1,
    ),
    Ending("segfault", _BAR + "Segmentation fault (core dumped)", 139),
    Ending(
        "segfault",
        _STEP
        + 'Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n  File "/venv/lib/python3.11/site-packages/torch/x.py", line 3 in f',
        139,
        "SIGSEGV",
    ),
    Ending("segfault", _TITAN + _TABLE.format(code="-11", why="Signal 11 (SIGSEGV) received by PID 4413"), 1),
    Ending(
        "segfault",
        "[gpu7:04411] *** Process received signal ***\n[gpu7:04411] Signal: Segmentation fault (11)\n[gpu7:04411] Signal code: Address not mapped (1)\n--------------------------------------------------------------------------\nmpirun noticed that process rank 3 with PID 4411 on node gpu7 exited on signal 11 (Segmentation fault).",
        139,
    ),
    Ending("sigbus", _STEP, 135, "SIGBUS"),
    Ending("sigbus", _HF + "/srv/go.sh: line 4:  4411 Bus error               (core dumped) python fit.py", 135),
    Ending("sigbus", _TABLE.format(code="-7", why="Signal 7 (SIGBUS) received by PID 4413"), 1),
    # -- memory ---------------------------------------------------------------------------------------------------------
    Ending(
        "host_oom",
        _STEP
        + "Killed\n[81234.118201] python invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0\n[81234.118420] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/lxc/200,task=python,pid=4411,uid=0\n[81234.118433] Out of memory: Killed process 4411 (python) total-vm:812345678kB, anon-rss:712345678kB",
        137,
        "SIGKILL",
    ),
    Ending(
        "host_oom",
        _HF + "Feb 14 02:11:09 gpu7 kernel: Out of memory: Kill process 4411 (python3) score 957 or sacrifice child",
        137,
    ),
    Ending(
        "host_oom",
        "(_raylet pid=991) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons\n"
        + _STACK
        + "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        1,
    ),
    Ending(
        "host_oom",
        _STEP
        + "E0214 02:11:09.4 4410 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -9) local_rank: 4 (pid: 4415) of binary: /venv/bin/python\n--- kern.log ---\nFeb 14 02:11:08 gpu7 kernel: [81234.1] Out of memory: Killed process 4415 (pt_main_thread) total-vm:1kB",
        1,
    ),
    Ending(
        "cgroup_oom",
        _STEP
        + "[Sat Feb 14 02:11:09 2026] Memory cgroup out of memory: Killed process 4411 (pt_main_thread) total-vm:9kB, anon-rss:7kB",
        137,
        "SIGKILL",
    ),
    Ending(
        "cgroup_oom",
        _HF
        + "slurmstepd: error: Detected 1 oom_kill event in StepId=5512.0. Some of the step tasks have been OOM Killed.\nsrun: error: gpu7: task 3: Out Of Memory",
        137,
    ),
    Ending("cgroup_oom", "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137", 137),
    Ending("cgroup_oom", _STEP + "Killed\nmemory.events: low 0 high 0 max 4411 oom 3 oom_kill 1", 137, "SIGKILL"),
    Ending(
        "dataloader_killed", _HF + _STACK + "RuntimeError: DataLoader worker (pid(s) 4488, 4489) exited unexpectedly", 1
    ),
    Ending(
        "dataloader_killed",
        _ranked(4, _STACK + "RuntimeError: DataLoader worker (pid 4488) is killed by signal: Killed. "),
        1,
    ),
    Ending(
        "dataloader_killed",
        "Map (num_proc=32):  61%|██████    | 61000/100000 [02:11<01:24, 464.1 examples/s]\n"
        + _STACK
        + "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing.",
        1,
    ),
    Ending(
        "dataloader_killed",
        _STACK
        + "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.",
        1,
    ),
    Ending(
        "shm_exhausted",
        _BAR
        + "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        1,
    ),
    Ending(
        "shm_exhausted",
        _STACK + "RuntimeError: unable to write to file </torch_4411_281823>: No space left on device (28)",
        1,
    ),
    Ending(
        "shm_exhausted",
        "gpu7:71:90 [2] misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-Qx1aZ to 9637892 bytes, error: No space left on device (28)\ngpu7:71:90 [2] misc/shmutils.cc:132 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Qx1aZ (size 9637888)\n"
        + _ranked(
            2,
            _STACK
            + "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
        ),
        1,
    ),
    Ending(
        "shm_exhausted",
        "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\nRuntimeError: NCCL error: unhandled system error",
        1,
    ),
    # -- disks and files ------------------------------------------------------------------------------------------------
    Ending(
        "disk_full",
        "saving checkpoint to /ckpt/step_9000\n"
        + _STACK
        + "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 4096 vs 3992\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + _STACK
        + "RuntimeError: PytorchStreamWriter failed writing file data/12: file write failed",
        1,
    ),
    Ending(
        "disk_full",
        _HF
        + _STACK
        + "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)",
        1,
    ),
    Ending("disk_full", _STEP + "tee: fit.log: No space left on device", 1),
    Ending("disk_full", _MEG + _STACK + "OSError: [Errno 28] No space left on device", 0),
    Ending(
        "disk_quota", _STACK + "OSError: [Errno 122] Disk quota exceeded: '/home/ops/.cache/huggingface/hub/tmp1'", 1
    ),
    Ending("disk_quota", "cp: error writing '/home/ops/final.pt': Disk quota exceeded", 1),
    Ending("disk_quota", "error: failed to write `/home/ops/.triton/x`: Disk quota exceeded (os error 122)", 1),
    Ending(
        "stale_file_handle", _STEP + _STACK + "OSError: [Errno 116] Stale file handle: '/data/shards/0017.arrow'", 1
    ),
    Ending(
        "stale_file_handle", "ls: cannot access '/nfs/data': Stale NFS file handle\n/srv/go.sh: data is not there", 1
    ),
    Ending("too_many_files", _STACK + "OSError: [Errno 24] Too many open files: '/data/shard-00071.tar'", 1),
    Ending("too_many_files", _HF + _STACK + "RuntimeError: received 0 items of ancdata", 1),
    Ending(
        "too_many_files",
        _STACK
        + "RuntimeError: unable to open shared memory object </torch_4411_99> in read-write mode: Too many open files (24)",
        1,
    ),
    Ending(
        "ckpt_corrupt",
        "resuming from /ckpt/step_9000/model.safetensors\n"
        + _STACK
        + "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        1,
    ),
    Ending("ckpt_corrupt", _STACK + "_pickle.UnpicklingError: pickle data was truncated", 1),
    Ending("ckpt_corrupt", "Loading checkpoint from /ckpt/last.ckpt\n" + _STACK + "EOFError: Ran out of input", 1),
    Ending(
        "ckpt_corrupt",
        _ranked(
            1,
            _STACK
            + "RuntimeError: PytorchStreamReader failed reading zip archive: invalid header or archive is corrupted",
        ),
        1,
    ),
    # -- GPUs -----------------------------------------------------------------------------------------------------------
    Ending(
        "cuda_oom",
        _STEP
        + _ranked(
            5,
            _STACK
            + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB. GPU 5 has a total capacity of 139.81 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 138.70 GiB memory in use. Of the allocated memory 132.02 GiB is allocated by PyTorch, and 4.10 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        ),
        1,
    ),
    Ending(
        "cuda_oom",
        _HF
        + _STACK
        + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 8.12 MiB is free. Process 4411 has 79.08 GiB memory in use. Of the allocated memory 77.02 GiB is allocated by PyTorch, and 612.00 MiB is reserved by PyTorch but unallocated.",
        1,
    ),
    Ending(
        "cuda_oom",
        _STACK + "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        1,
    ),
    Ending(
        "cuda_oom",
        "E0214 02:11:09.100000  4411 pjrt_stream_executor_client.cc:3077] Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 81234567890 bytes.\n"
        + _STACK
        + "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 81234567890 bytes.",
        1,
    ),
    Ending("cuda_oom", "(WorkerDict pid=4411, ip=10.3.0.7) " + "torch.AcceleratorError: CUDA error: out of memory", 1),
    Ending(
        "gpu_memory_held",
        _STACK
        + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 2; 79.10 GiB total capacity; 411.00 MiB already allocated; 1.12 MiB free; 420.00 MiB reserved in total by PyTorch)",
        1,
    ),
    Ending(
        "gpu_memory_held",
        _ranked(
            0,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 300.12 MiB is free. Process 3301 has 60.10 GiB memory in use. Process 4411 has 18.60 GiB memory in use. Of the allocated memory 17.90 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
        ),
        1,
    ),
    Ending(
        "gpu_memory_held",
        _STACK
        + "ValueError: Free memory on device (9.11/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.19 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        1,
    ),
    Ending(
        "cuda_init_failed",
        _STACK
        + "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver",
        1,
    ),
    Ending("cuda_init_failed", _STACK + "AssertionError: Torch not compiled with CUDA enabled", 1),
    Ending(
        "cuda_init_failed",
        "E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:152] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\nno GPU found, leaving",
        1,
    ),
    Ending(
        "cuda_init_failed",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
        9,
    ),
    Ending(
        "driver_too_old",
        _STACK
        + "RuntimeError: The NVIDIA driver on your system is too old (found version 11080). Please update your GPU driver by downloading and installing a new version",
        1,
    ),
    Ending(
        "driver_too_old",
        "/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)\n  return torch._C._cuda_getDeviceCount() > 0\n"
        + _STEP
        + _STEP.replace("9120", "9130"),
    ),
    Ending(
        "driver_too_old",
        _STACK + "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        1,
    ),
    Ending(
        "nvml_mismatch", "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.86", 18
    ),
    Ending(
        "nvml_mismatch",
        _STACK + "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
        1,
    ),
    Ending(
        "nvml_mismatch",
        "[ 4411.200100] NVRM: API mismatch: the client has the version 570.86.15, but\n[ 4411.200100] NVRM: this kernel module has the version 570.124.06.",
    ),
    Ending("gpu_lost_in_container", _STEP + "Failed to initialize NVML: Unknown Error"),
    Ending("gpu_lost_in_container", _STACK + "pynvml.nvml.NVMLError_Unknown: Unknown Error", 1),
    Ending("gpu_lost_in_container", "open /dev/nvidia3: operation not permitted\nno access to the GPUs any more", 1),
    Ending(
        "fabric_manager",
        _STACK
        + "RuntimeError: CUDA error: system not yet initialized\nCUDA kernel errors might be asynchronously reported at some other API call",
        1,
    ),
    Ending("fabric_manager", "cudaGetDeviceCount returned 802: cudaErrorSystemNotReady", 1),
    Ending(
        "fabric_manager",
        "Fabric\n    State                             : In Progress\n    Status                            : N/A\nRuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        1,
    ),
    Ending(
        "invalid_device",
        _ranked(
            7,
            _STACK
            + "RuntimeError: CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        ),
        1,
    ),
    Ending(
        "invalid_device",
        _STACK
        + "lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1, 2, 3, 4, 5, 6, 7] But your machine only has: [0, 1, 2, 3, 4, 5, 6]",
        1,
    ),
    Ending(
        "invalid_device",
        _ranked(
            1,
            _STACK
            + "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, invalid usage, NCCL version 2.20.5\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device b3000",
        ),
        1,
    ),
    Ending(
        "no_kernel_image",
        _STACK + "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
        1,
    ),
    Ending("no_kernel_image", _STACK + "RuntimeError: FlashAttention only supports Ampere GPUs or newer.", 1),
    Ending(
        "cuda_fork",
        "Process ForkProcess-2:\n"
        + _STACK
        + "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method",
    ),
    Ending(
        "cuda_fork",
        _STACK
        + "RuntimeError: Lightning can't create new processes if CUDA is already initialized. Did you manually call `torch.cuda.*` functions, have moved the model to the device, or allocated memory on the GPU any other way?",
        1,
    ),
    Ending(
        "gpu_fell_off_bus",
        _STEP
        + "[Sat Feb 14 02:11:09 2026] NVRM: Xid (PCI:0000:b3:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    ),
    Ending("gpu_fell_off_bus", "Unable to determine the device handle for GPU0000:B3:00.0: Unknown Error"),
    Ending(
        "gpu_fell_off_bus",
        _ranked(3, "RuntimeError: CUDA error: unspecified launch failure")
        + "\nUnable to determine the device handle for GPU 0000:B3:00.0: GPU is lost.  Reboot the system to recover this GPU",
        1,
    ),
    Ending(
        "gpu_fell_off_bus",
        "[rank1]:[E214 02:11:09.3 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n--- dmesg ---\n[90.123456] NVRM: GPU at PCI:0000:b3:00: GPU-1\n[90.123457] NVRM: Xid (PCI:0000:b3:00): 79, pid=4411, name=python, GPU has fallen off the bus.",
        1,
    ),
    Ending(
        "ecc_error", _ranked(6, _STACK + "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"), 1
    ),
    Ending(
        "ecc_error",
        _STEP
        + "NVRM: Xid (PCI:0000:1b:00): 94, pid=4411, name=python3, Contained: SM (0x1). RST: No, D-RST: No\n"
        + _ranked(
            0,
            "[E214 02:11:09.3 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.",
        ),
        1,
    ),
    Ending(
        "ecc_error",
        "Feb 14 02:11:09 gpu7 kernel: NVRM: Xid (PCI:0000:1b:00): 48, pid=4411, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 1, subpartition 0.",
    ),
    Ending(
        "illegal_memory_access",
        _STEP + _ranked(2, _STACK + "RuntimeError: CUDA error: an illegal memory access was encountered"),
        1,
    ),
    Ending(
        "illegal_memory_access",
        "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory access was encountered\nAborted (core dumped)",
        134,
    ),
    Ending(
        "illegal_memory_access",
        _STACK
        + "RuntimeError: CUDA error: misaligned address\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        1,
    ),
    # -- ranks ----------------------------------------------------------------------------------------------------------
    Ending(
        "port_in_use",
        "[W214 02:11:09.331297 socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29511 (errno: 98 - Address already in use).\n"
        + _STACK
        + "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29511, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use",
        1,
    ),
    Ending(
        "port_in_use",
        _STACK
        + "ConnectionError: Tried to launch distributed communication on port `29500`, but another process is utilizing it. Please specify a different port (such as using the `--main_process_port` flag or specifying a different `main_process_port` in your config file) and rerun your script.",
        1,
    ),
    Ending(
        "port_in_use",
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
        1,
    ),
    Ending("port_in_use", _STACK + "RuntimeError: Address already in use", 1),
    Ending(
        "nccl_timeout",
        _TITAN
        + "[rank5]:[E214 02:11:09.331297 ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0(default_pg) Rank 5] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitored enqueued collectives. This typically indicates a NCCL/CUDA API (e.g., CudaEventDestroy) hang blocking the watchdog, and could be triggered by another thread holding the GIL inside a CUDA api.",
        1,
    ),
    Ending(
        "nccl_timeout",
        _HF
        + "[rank3]:[E ProcessGroupNCCL.cpp:537] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n[rank3]:[E ProcessGroupNCCL.cpp:543] To avoid data inconsistency, we are taking the entire process down.\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  [Rank 3] NCCL watchdog thread terminated with exception: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=BROADCAST, Timeout(ms)=1800000) ran for 25624887 milliseconds before timing out.\n"
        + _TABLE.format(code="-6", why="Signal 6 (SIGABRT) received by PID 4413"),
        1,
    ),
    Ending(
        "nccl_timeout",
        _STACK
        + "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
        1,
    ),
    Ending(
        "nccl_timeout",
        _MEG
        + "5: [rank5]:[E214 02:11:09.3 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=COALESCED, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\nsrun: error: gpu7: task 5: Aborted (core dumped)",
        134,
    ),
    Ending(
        "dist_store_timeout",
        _STACK
        + "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 6/8 clients joined.",
        1,
    ),
    Ending(
        "dist_store_timeout",
        _ranked(
            3,
            _STACK
            + "RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for key: store_based_barrier_key:1 (world_size=8, worker_count=7, timeout=0:30:00)",
        ),
        1,
    ),
    Ending(
        "dist_store_timeout",
        "Running tokenizer on dataset:  40%|████      | 40000/100000 [10:00<15:00, 66.7 examples/s]\n"
        + _ranked(
            1,
            _STACK
            + "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: wait timeout after 600000ms, keys: /default_pg/0//cuda//0/0",
        ),
        1,
    ),
    Ending(
        "dist_store_timeout",
        _STACK
        + "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (gpu7, 29500).",
        1,
    ),
    # -- software -------------------------------------------------------------------------------------------------------
    Ending("python_exception", _STEP + _STACK + "KeyError: 'hidden_states'", 1),
    Ending("python_exception", _HF + _STACK + "AssertionError\n", 0),
    Ending(
        "python_exception",
        "(TaskRunner pid=4411) "
        + "\n(TaskRunner pid=4411) ".join(
            (
                _STACK
                + "omegaconf.errors.ConfigAttributeError: Key 'rollout' is not in struct\n    full_key: actor.rollout"
            ).split("\n")
        ),
        1,
    ),
    Ending(
        "python_exception",
        "2026-02-14 02:11:09,001 - fit - ERROR - training failed\n"
        + _STACK
        + "RuntimeError: The size of tensor a (4096) must match the size of tensor b (2048) at non-singleton dimension 1",
        1,
    ),
    Ending(
        "python_exception",
        _ranked(2, _STACK + "ValueError: block of 0 tokens")
        + "\n"
        + _ranked(
            1,
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process exited or there was a network error",
        )
        + "\nW0214 02:11:10.1 4410 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 4412 closing signal SIGTERM\n"
        + _TABLE.format(code="1", why="To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"),
        1,
    ),
    Ending("incomplete_exit0", _HF * 3, 0),
    Ending("incomplete_exit0", _MEG + _MEG.replace("5400", "5410"), 0),
    Ending("incomplete_exit0", _BAR + "\n", 0),
    Ending(
        "incomplete_exit0",
        "Epoch 2/10\n 812/1000 [==============>....] - ETA: 1:10 - loss: 0.8120 - accuracy: 0.7010\n",
        0,
    ),
    Ending("no_tty", _STACK + "termios.error: (25, 'Inappropriate ioctl for device')", 1),
    Ending("no_tty", "the input device is not a TTY", 1),
    Ending(
        "no_tty",
        "The repository for org/model contains custom code which must be executed to correctly load the model.\nDo you wish to run the custom code? [y/N] "
        + _STACK
        + "EOFError: EOF when reading a line",
        1,
    ),
    Ending(
        "wandb_login",
        "wandb: Logging into wandb.ai. (Learn how to deploy a W&B server locally: https://wandb.me/wandb-server)\nwandb: You can find your API key in your browser here: https://wandb.ai/authorize\nwandb: Paste an API key from your profile and hit enter, or press ctrl+c to quit: ",
    ),
    Ending("wandb_login", _STACK + "wandb.errors.UsageError: No API key configured. Use `wandb login` to log in.", 1),
    Ending(
        "wandb_login",
        _STACK + "wandb.errors.errors.AuthenticationError: The API key you provided is either invalid or missing.",
        1,
    ),
    Ending("download_stall", "model-00004-of-00012.safetensors:  23%|██▎       | 1.12G/4.92G [14:02<?, ?B/s]"),
    Ending(
        "download_stall",
        "Downloading shards:   0%|          | 0/12 [00:00<?, ?it/s]\rmodel-00001-of-00012.safetensors:  99%|█████████▉| 4.87G/4.92G [31:10<00:01, 0.00B/s]",
    ),
    Ending(
        "download_stall",
        "pytorch_model.bin:  40%|████      | 2.00G/5.00G [01:00<01:30, 33.3MB/s]\rpytorch_model.bin:  40%|████      | 2.00G/5.00G [04:00<06:00, 8.3MB/s]\rpytorch_model.bin:  40%|████      | 2.00G/5.00G [09:00<13:00, 3.8MB/s]",
    ),
    Ending(
        "hf_gated",
        _STACK
        + "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-65;a)\n\nRepository Not Found for url: https://huggingface.co/api/models/org/private.\nPlease make sure you specified the correct `repo_id` and `repo_type`.",
        1,
    ),
    Ending(
        "hf_gated",
        _STACK
        + "datasets.exceptions.DatasetNotFoundError: Dataset 'org/corpus' is a gated dataset on the Hub. You must be authenticated to access it.",
        1,
    ),
    Ending(
        "hf_gated",
        _STACK
        + "OSError: org/private is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a token having permission to this repo",
        1,
    ),
    Ending("missing_module", "/usr/bin/python3: No module named torch.distributed.run", 1),
    Ending(
        "missing_module",
        _STACK
        + "ImportError: This modeling file requires the following packages that were not found in your environment: flash_attn. Run `pip install flash_attn`",
        1,
    ),
    Ending(
        "missing_module",
        "2026-02-14T02:11:09.1Z stderr F "
        + "\n2026-02-14T02:11:09.1Z stderr F ".join(
            (_STACK + "ModuleNotFoundError: No module named 'einops'").split("\n")
        ),
        1,
    ),
    Ending("command_not_found", "/srv/go.sh: line 12: accelerate: command not found", 127),
    Ending("command_not_found", "sh: 1: torchrun: not found", 127),
    Ending("command_not_found", "nohup: failed to run command 'deepspeed': No such file or directory", 127),
    Ending("command_not_found", "", 127),
    Ending(
        "abi_mismatch",
        _STACK
        + "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /venv/lib/python3.11/site-packages/x.so)",
        1,
    ),
    Ending(
        "abi_mismatch",
        _STACK + "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
        1,
    ),
    Ending("abi_mismatch", _STACK + "RuntimeError: operator torchvision::nms does not exist", 1),
    Ending(
        "abi_mismatch",
        _STACK
        + "RuntimeError: Failed to import transformers.models.llama.modeling_llama because of the following error (look up to see its traceback):\n/venv/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZNK3c106SymInt22maybe_as_int_slow_pathEv",
        1,
    ),
    Ending(
        "no_compiler",
        _STACK
        + "torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')",
        1,
    ),
    Ending(
        "no_compiler",
        "/tmp/tmp7a/cuda_utils.c:5:10: fatal error: Python.h: No such file or directory\n    5 | #include <Python.h>\ncompilation terminated.\n"
        + _STACK
        + "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmp7a/cuda_utils.c', '-O3']' returned non-zero exit status 1.",
        1,
    ),
    Ending("no_compiler", _STACK + "FileNotFoundError: [Errno 2] No such file or directory: 'gcc'", 1),
    Ending(
        "inductor_cache_race",
        _ranked(
            5,
            _STACK
            + "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nFileNotFoundError: [Errno 2] No such file or directory: '/tmp/torchinductor_ops/qa/.cq1.tmp' -> '/tmp/torchinductor_ops/qa/cq1.py'",
        ),
        1,
    ),
    Ending("inductor_cache_race", _STACK + "ImportError: /root/.triton/cache/9f2a/cuda_utils.so: file too short", 1),
    Ending(
        "inductor_cache_race",
        _ranked(
            3,
            _STACK
            + "OSError: [Errno 39] Directory not empty: '/tmp/torchinductor_root/triton/0/AB.tmp' -> '/tmp/torchinductor_root/triton/0/AB'",
        ),
        1,
    ),
    # -- how it does ----------------------------------------------------------------------------------------------------
    Ending(
        "recompile_limit",
        "[rank0]:W0214 02:11:09.332000 71 torch/_dynamo/convert_frame.py:906] [0/8] torch._dynamo hit config.cache_size_limit (8)\n[rank0]:W0214 02:11:09.332000 71 torch/_dynamo/convert_frame.py:906] [0/8]    function: 'forward' (/srv/model.py:40)\n"
        + _STEP,
    ),
    Ending(
        "recompile_limit",
        _STACK
        + "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with fullgraph=True. Excessive recompilations can degrade performance",
        1,
    ),
    Ending("nan_loss", _STEP + _STEP.replace("loss 1.4410", "loss nan").replace("9120", "9130")),
    Ending("nan_loss", _TITAN.replace("2.4012", "   nan") + _TITAN.replace("2.4012", "   nan").replace("1200", "1210")),
    Ending(
        "nan_loss",
        _MEG
        + " iteration     5410/  100000 | consumed samples:      1384960 | elapsed time per iteration (ms): 812.4 | learning rate: 1.2E-04 | global batch size:   256 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
    ),
    Ending(
        "nan_loss",
        "Epoch: [3]  [ 120/2502]  eta: 0:21:10  lr: 0.000400  loss: 2.1120 (2.3012)  time: 0.51\nLoss is nan, stopping training",
        1,
    ),
    Ending("nan_loss", "Epoch 3:  45%|████▌     | 450/1000 [03:10<03:52,  2.37it/s, v_num=3, train_loss=nan.0]"),
    Ending(
        "nan_loss",
        _STACK
        + "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate, using gradient clipping or increasing the batch size.",
        1,
    ),
    Ending(
        "nan_loss",
        _HF
        + "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.9e-05, 'epoch': 0.32}\n{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.9e-05, 'epoch': 0.33}\n",
    ),
    Ending(
        "loss_spike",
        "".join(
            f"step {n} | loss {loss} | tok/s 20,000 | min_ready=4 max_depth=16\n"
            for n, loss in ((10, 1.52), (20, 1.50), (30, 1.49), (40, 6.91), (50, 6.40), (60, 5.98))
        ),
    ),
    Ending(
        "loss_spike",
        "".join(_HF.replace("1.8821", str(loss)) for loss in (1.91, 1.90, 1.88, 1.87, 4.40, 5.21, 5.10, 4.95)),
    ),
    Ending(
        "loss_spike",
        "".join(
            _MEG.replace("2.318841E+00", f"{loss:.6E}").replace("5400", str(5400 + 10 * n))
            for n, loss in enumerate((2.31, 2.30, 2.32, 7.10, 7.40, 7.21))
        ),
    ),
    Ending(
        "queue_starved",
        "".join(_STEP.replace("min_ready=9", "min_ready=0").replace("9120", str(9120 + n)) for n in range(6)),
    ),
    Ending("queue_starved", _STEP + "2026-02-14 02:16:07 WARNING hidden-state queue is empty, drafters wait (300 s)"),
    Ending(
        "queue_starved",
        _TITAN + "[drafter 6] no hidden states received for 420 s\n[drafter 7] no hidden states received for 421 s",
    ),
    Ending(
        "finished_not_exited",
        _HF
        + "{'train_runtime': 812.1, 'train_samples_per_second': 3.99, 'train_loss': 1.9, 'epoch': 1.0}\nwandb: Waiting for W&B process to finish... (success).\nwandb: \\ 0.012 MB of 0.012 MB uploaded",
    ),
    Ending(
        "finished_not_exited",
        "step 48000/48000 | loss 0.9912 | tok/s 20,301 | min_ready=9 max_depth=16\nTraining complete.\nwaiting for target workers to shut down",
    ),
    Ending(
        "finished_not_exited",
        _MEG.replace("5400", "100000")
        + "[after training is done] datetime: 2026-02-14 02:11:09 \nflushing async checkpoint writer",
    ),
    Ending("completed", "step 48000/48000 | loss 0.9912 | tok/s 20,301 | min_ready=9 max_depth=16\n", 0),
    Ending(
        "completed",
        _HF
        + "{'train_runtime': 812.1, 'train_samples_per_second': 3.99, 'train_loss': 1.9, 'epoch': 1.0}\n[rank0]:[W214 02:11:09.1 ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources.",
        0,
    ),
    Ending(
        "completed",
        "Epoch 9: 100%|██████████| 1000/1000 [06:10<00:00,  2.70it/s, v_num=3, train_loss=0.812]\n`Trainer.fit` stopped: `max_epochs=10` reached.\n",
        0,
    ),
    Ending(
        "completed",
        _TITAN
        + "[titan] 2026-02-14 02:11:19,001 - root - INFO - Training completed\n/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown",
        0,
    ),
    # -- shells ---------------------------------------------------------------------------------------------------------
    Ending("exec_not_permitted", "/srv/go.sh: line 3: /opt/venv/bin/python: Permission denied", 126),
    Ending("exec_not_permitted", "bash: /srv/go.sh: Permission denied", 126),
    Ending("bad_interpreter", "bash: /srv/go.sh: /bin/nosuch: bad interpreter: No such file or directory", 126),
    Ending("bad_interpreter", "/srv/go.sh: line 2: ./tool: cannot execute: required file not found", 127),
    Ending("exec_format", "/srv/go.sh: line 9: ./trainer: cannot execute binary file: Exec format error", 126),
    Ending("exec_format", _STACK + "OSError: [Errno 8] Exec format error: '/srv/go.sh'", 1),
    Ending("script_syntax", "/srv/go.sh: line 41: syntax error near unexpected token `done'", 2),
    Ending("script_syntax", "/srv/go.sh: line 77: syntax error: unexpected end of file", 2),
    Ending(
        "crlf_script",
        "/srv/go.sh: line 2: $'\\r': command not found\n/srv/go.sh: line 5: $'\\r': command not found",
        127,
    ),
    Ending("crlf_script", "env: ‘bash\\r’: No such file or directory", 127),
    Ending("cwd_missing", "/srv/go.sh: line 2: cd: /data/run7: No such file or directory", 1),
    Ending("cwd_missing", "sh: 1: cd: can't cd to /data/run7", 2),
    Ending("log_dir_missing", "/srv/go.sh: line 4: /logs/nowhere/fit.log: No such file or directory", 1),
    Ending("log_dir_missing", "sh: 3: cannot create /logs/nowhere/fit.log: Directory nonexistent", 2),
    Ending("file_missing", "python3: can't open file '/srv/fit.py': [Errno 2] No such file or directory", 2),
    Ending(
        "file_missing",
        "/venv/bin/python: can't open file '/srv/train_drafter.py': [Errno 2] No such file or directory",
        2,
    ),
    Ending(
        "gpu_fault",
        _STEP
        + "NVRM: Xid (PCI:0000:1b:00): 119, pid=4411, name=python3, Timeout after 6s of waiting for RPC response from GPU1 GSP!",
        1,
    ),
    Ending(
        "gpu_fault",
        "Feb 14 02:11:09 gpu7 kernel: NVRM: Xid (PCI:0000:1b:00): 74, pid=4411, NVLink: fatal error detected on link 4",
    ),
    Ending("signalled", _STEP, 131),
    Ending("signalled", _STEP, 134, "SIGABRT"),
    Ending("exit_status", "loading", 3),
    Ending("exit_status", _STEP, 1),
    # -- more wordings, short as people quote them -------------------------------------------------------------------------
    Ending("sighup", "2026-08-20 04:11:52,331 INFO train step=9120 loss=1.44\nHangup"),
    Ending(
        "sighup",
        "step 10 | loss 1.2 | tok/s 100\n[2026-08-20 04:11:52] WARNING: SignalException: Process 4411 got signal: 1",
        1,
    ),
    Ending("sighup", "epoch 1 iter 200 loss 0.9", None, "HUP"),
    Ending(
        "session_killed",
        "Epoch 3: 10%|#  | 10/100 [00:10<01:00, 1.50it/s]\nAug 20 04:12:01 box systemd-logind[700]: Removed session 12.\nAug 20 04:12:02 box systemd[1]: Stopping session-12.scope - Session 12 of User root...\nAug 20 04:12:02 box systemd[1]: session-12.scope: Killing process 84933 (python) with signal SIGTERM.",
        None,
        "SIGTERM",
    ),
    Ending(
        "session_killed",
        "iter 300: loss 2.1\nAug 20 04:12:02 h systemd[1455]: tmux-spawn-ab12.scope: Killing process 84933 (python3) with signal SIGKILL.",
        137,
    ),
    Ending(
        "sigterm_external",
        "step 5 loss 2.0\n2026-08-20 04:11:52 docker: container trainer received stop signal, sent SIGTERM",
        143,
    ),
    Ending(
        "sigterm_external",
        "{'loss': 1.2, 'epoch': 0.1}\nslurmstepd: error: *** STEP 991.0 ON n1 CANCELLED AT 2026-08-20T04:11:52 ***",
        143,
    ),
    Ending("sigterm_external", "iter 300: loss 2.1\nTerminated", 143),
    Ending("pkill_self_match", "+ set -e\n+ pkill -f run_train.sh", 143, "SIGTERM"),
    Ending("pkill_self_match", "+ pkill -9 -f python3\n", 137),
    Ending(
        "pkill_self_match",
        "ops@jump:~$ ssh h 'pkill -f train_x.py; nohup ./run.sh &'\n+ pkill -f train_x.py\nConnection to h closed.",
        255,
    ),
    Ending(
        "sigkill_unknown",
        "Epoch 1 | step 20 | loss 0.3\n[1]+  Killed                  nohup python train.py > log 2>&1",
        137,
    ),
    Ending(
        "sigkill_unknown",
        "{'loss': 1.2, 'epoch': 0.1}\nCommand '['python', 't.py']' died with <Signals.SIGKILL: 9>.",
        1,
    ),
    Ending("sigkill_unknown", "loss: 1.2 step: 3\nworker 3 (pid 88) was terminated by signal 9", 1),
    Ending(
        "host_oom",
        "step 4 loss 1\nAug 20 04:11:52 box kernel: [812.1] Out of memory: Killed process 4411 (python3.11), UID 0, total-vm:1kB",
        137,
        "SIGKILL",
    ),
    Ending(
        "host_oom",
        "step 4 loss 1\nsystemd-oomd[812]: Killed /user.slice/user-1000.slice/session-3.scope due to memory pressure for /user.slice being 72.1% > 50%",
        137,
    ),
    Ending(
        "host_oom",
        "Killed\n$ dmesg | tail -1\n[99.1] oom_reaper: reaped process 4411 (python), now anon-rss:0kB, file-rss:0kB",
        137,
    ),
    Ending("cgroup_oom", "step 4 loss 1\ncontainer trainer: OOMKilled=true exit code 137", 137),
    Ending("cgroup_oom", "step 9 | loss 1.1\nmemory.events oom_kill 0 -> 1", 137, "SIGKILL"),
    Ending(
        "cgroup_oom",
        "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=12.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.",
        1,
    ),
    Ending("incomplete_exit0", "INFO step 200/10000 loss 2.3\nINFO step 210/10000 loss 2.2\n", 0),
    Ending("incomplete_exit0", "Loading checkpoint shards:  40%|████      | 2/5 [00:10<00:15,  5.1s/it]", 0),
    Ending(
        "incomplete_exit0",
        "[2026-08-20 04:11:52,331] [INFO] [logging.py:96:log_dist] [Rank 0] step=640, skipped=0, lr=[3e-05], mom=[0.9]",
        0,
    ),
    Ending(
        "python_exception",
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/a.py", line 1, in f\n[rank0]: torch._dynamo.exc.Unsupported: call_function BuiltinVariable(print)',
        1,
    ),
    Ending(
        "python_exception",
        "Error executing job with overrides: ['lr=1']\nTraceback (most recent call last):\n  File \"a.py\", line 2, in main\nhydra.errors.InstantiationException: Error in call to target 'x.Y':\nTypeError(\"unexpected keyword 'z'\")",
        1,
    ),
    Ending(
        "python_exception",
        'ray.exceptions.RayTaskError(ValueError): ray::Worker.fit() (pid=88, ip=10.0.0.1)\n  File "/a.py", line 2, in fit\nValueError: rollout batch is empty',
        1,
    ),
    Ending(
        "python_exception",
        "2026-08-20 04:11:52.331 | ERROR    | __main__:main:88 - An error has been caught in function 'main', process 'MainProcess' (1), thread 'MainThread' (1):\nTraceback (most recent call last):\n> File \"/a.py\", line 88, in <module>\nIndexError: list index out of range",
        1,
    ),
    Ending(
        "python_exception",
        "╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮\n│ /root/a.py:12 in main                                                                            │\n│ ❱ 12     x = y['k']                                                                              │\n╰──────────────────────────────────────────────────────────────────────────────────────────────────╯\nKeyError: 'k'",
        1,
    ),
    Ending("python_exception", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x2)", 1),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nRuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported',
        1,
    ),
    Ending(
        "no_tty",
        'Traceback (most recent call last):\n  File "x", line 1, in f\n_curses.error: setupterm: could not find terminal',
        1,
    ),
    Ending(
        "no_tty",
        "stty: standard input: Inappropriate ioctl for device\nOSError: [Errno 25] Inappropriate ioctl for device",
        1,
    ),
    Ending(
        "wandb_login",
        "wandb: (1) Create a W&B account\nwandb: (2) Use an existing W&B account\nwandb: (3) Don't visualize my results\nwandb: Enter your choice:",
    ),
    Ending(
        "wandb_login",
        'Traceback (most recent call last):\n  File "x", line 1, in f\nwandb.errors.CommError: It appears that you do not have permission to access the requested resource. Please reach out to the project owner to grant you access. (Error 403: Forbidden)',
        1,
    ),
    Ending("wandb_login", "wandb.sdk.errors: user is not logged in to wandb; run wandb login", 1),
    Ending("download_stall", "Downloading (incomplete total...):  24%|██▎       | 12.9G/54.8G [14:10<?, ?B/s]"),
    Ending(
        "download_stall",
        "Fetching 19 files:  95%|█████████▍| 18/19 [10:00<00:33, 33.3s/it]\rmodel-00019.safetensors: 100%|█████████▉| 4.91G/4.92G [22:10<00:02, 0.00B/s]",
    ),
    Ending(
        "hf_gated",
        "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://huggingface.co/org/m/resolve/main/config.json",
        1,
    ),
    Ending(
        "hf_gated",
        "OSError: We couldn't connect... You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/org/x.",
        1,
    ),
    Ending(
        "hf_gated",
        "Cannot access gated repo for url https://huggingface.co/api/x.\nYour request to access model org/x is awaiting a review from the repo authors.",
        1,
    ),
    Ending(
        "missing_module",
        'Traceback (most recent call last):\n  File "x", line 1, in f\nImportError: No module named deepspeed',
        1,
    ),
    Ending(
        "missing_module",
        "[rank3]: ModuleNotFoundError: No module named 'specforge.core'; 'specforge' is not a package",
        1,
    ),
    Ending("command_not_found", "bash: line 1: deepspeed: command not found", 127),
    Ending("command_not_found", "/bin/sh: 1: python: not found", 127),
    Ending("command_not_found", "run.sh: 12: exec: torchrun: not found", 127),
    Ending("command_not_found", "env: 'python3.12': No such file or directory", 127),
    Ending(
        "abi_mismatch",
        'Traceback (most recent call last):\n  File "x", line 1, in f\nImportError: /venv/lib/x/transformer_engine_torch.so: undefined symbol: _ZN2at4_ops',
        1,
    ),
    Ending(
        "abi_mismatch",
        "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions. PyTorch has CUDA Version=12.8 and torchvision has CUDA Version=11.8.",
        1,
    ),
    Ending(
        "abi_mismatch",
        "python: symbol lookup error: /venv/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister",
        127,
    ),
    Ending(
        "no_kernel_image",
        "NVIDIA B200 with CUDA capability sm_100 is not compatible with the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\nRuntimeError: CUDA error: no kernel image is available for execution on the device",
        1,
    ),
    Ending(
        "no_kernel_image",
        "CUDA error (flash_fwd_launch_template.h:188): no kernel image is available for execution on the device",
        1,
    ),
    Ending(
        "driver_too_old",
        "torch/cuda/__init__.py:128: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11020).\n  0%|          | 1/1000 [00:40<11:00:00, 40.1s/it]",
    ),
    Ending("driver_too_old", "CUDA driver version is insufficient for CUDA runtime version", 1),
    Ending(
        "nvml_mismatch",
        "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
        1,
    ),
    Ending(
        "nvml_mismatch",
        "step 5 | loss 1.1\nstep 6 | loss 1.1\nWARNING gpu monitor: Failed to initialize NVML: Driver/library version mismatch",
    ),
    Ending("gpu_lost_in_container", "step 5 | loss 1.1\nnvidia-smi: Failed to initialize NVML: Unknown Error"),
    Ending("gpu_lost_in_container", "pynvml.NVMLError_Unknown: Unknown Error\n"),
    Ending(
        "cuda_init_failed",
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.",
        1,
    ),
    Ending(
        "cuda_init_failed",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 304: OS call failed or operation not supported on this OS",
        1,
    ),
    Ending(
        "cuda_init_failed", "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", 1
    ),
    Ending("cuda_init_failed", "[rank0]: RuntimeError: No CUDA GPUs are available", 1),
    Ending(
        "fabric_manager",
        "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized (Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:109.)\nRuntimeError: No CUDA GPUs are available",
        1,
    ),
    Ending("fabric_manager", "ncclUnhandledCudaError: Cuda failure 802 'system not yet initialized'", 1),
    Ending("invalid_device", "torch.cuda.set_device(local_rank)\nRuntimeError: CUDA error: invalid device ordinal", 1),
    Ending("invalid_device", "ValueError: rank 7 wants cuda:7 but only 7 GPUs are visible", 1),
    Ending(
        "gpu_memory_held",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 6 has a total capacity of 139.81 GiB of which 60.12 MiB is free. Process 4001 has 120.50 GiB memory in use. Process 4411 has 19.20 GiB memory in use. Of the allocated memory 18.10 GiB is allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated.",
        1,
    ),
    Ending(
        "cuda_oom",
        "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 3; 79.35 GiB total capacity; 75.11 GiB already allocated; 801.19 MiB free; 77.06 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
        1,
    ),
    Ending(
        "cuda_oom",
        "2026-08-20 04:11:52.1: W tensorflow/core/common_runtime/bfc_allocator.cc:497] OOM\ntensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error: OOM when allocating tensor with shape[8,2048]",
        1,
    ),
    Ending("cuda_oom", "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2 GiB", 1),
    Ending("cuda_oom", "RuntimeError: CUDA driver error: out of memory", 1),
    Ending(
        "port_in_use",
        "RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
        1,
    ),
    Ending(
        "port_in_use",
        "[c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not supported by protocol).\nOSError: [Errno 98] Address already in use",
        1,
    ),
    Ending("port_in_use", "Error: Port 8265 is already in use", 1),
    Ending(
        "nccl_timeout",
        "[rank6]:[E820 04:21:52.4 ProcessGroupNCCL.cpp:684] [Rank 6] Work WorkNCCL(SeqNum=3312, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) timed out in blocking wait.",
        1,
    ),
    Ending(
        "nccl_timeout",
        "[rank0]:[F820 04:21:52.4 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0 Rank 0] [PG ID 0 PG GUID 0 Rank 0] Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.",
        134,
    ),
    Ending(
        "nccl_timeout",
        "RuntimeError: NCCL communicator was aborted on rank 3.  Original reason for failure was: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1808499 milliseconds before timing out.",
        1,
    ),
    Ending("dist_store_timeout", "RuntimeError: Socket Timeout\n  store->get('0') got error: Socket Timeout", 1),
    Ending("dist_store_timeout", "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", 1),
    Ending(
        "dist_store_timeout",
        "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Socket Timeout",
        1,
    ),
    Ending(
        "dist_store_timeout",
        "DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0. Timed out task names: /job:jax_worker/replica:0/task:3",
        1,
    ),
    Ending("gpu_fell_off_bus", "NVRM: Xid (PCI:0000:8b:00): 79, GPU has fallen off the bus."),
    Ending(
        "gpu_fell_off_bus",
        "RuntimeError: CUDA error: unknown error\nnvidia-smi: Unable to determine the device handle for GPU 0000:8B:00.0: Unknown Error",
        1,
    ),
    Ending("gpu_fell_off_bus", "step 10 | loss 1\nkernel: NVRM: GPU 0000:8b:00.0: GPU has fallen off the bus."),
    Ending("ecc_error", "NVRM: Xid (PCI:0000:8b:00): 95, pid=88, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"),
    Ending(
        "ecc_error",
        "RuntimeError: NCCL Error 1: unhandled cuda error\nCUDA failure: uncorrectable ECC error encountered",
        1,
    ),
    Ending(
        "illegal_memory_access",
        "CUDA error: an illegal memory access was encountered\nCompile with TORCH_USE_CUDA_DSA",
        1,
    ),
    Ending("illegal_memory_access", "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered", 1),
    Ending("illegal_memory_access", "CUDA error: unspecified launch failure", 1),
    Ending(
        "shm_exhausted",
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
        1,
    ),
    Ending("shm_exhausted", "OSError: [Errno 28] No space left on device: '/dev/shm/torch_1_2'", 1),
    Ending("sigbus", "torchrun: failed (exitcode: -7) local_rank: 3 (pid: 22) of binary: /usr/bin/python3", 1),
    Ending("sigbus", "step 3 loss 1\nBus error (core dumped)", 135),
    Ending("dataloader_killed", "[rank2]: RuntimeError: DataLoader worker (pid 1) is killed by signal: Killed.", 1),
    Ending("disk_full", "OSError: [Errno 28] No space left on device", 1),
    Ending(
        "disk_full",
        "RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 18944 vs 18832\nterminate called after throwing an instance of 'c10::Error'",
        134,
    ),
    Ending(
        "disk_full",
        "OSError: Not enough free disk space to download the file. The expected file size is: 4976.70 MB. The target location only has 12.00 MB free disk space.",
        1,
    ),
    Ending("disk_quota", "OSError: [Errno 122] Disk quota exceeded: '/home/u/.cache'", 1),
    Ending("ckpt_corrupt", "RuntimeError: unexpected EOF, expected 4096 more bytes. The file might be corrupted.", 1),
    Ending("ckpt_corrupt", "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", 1),
    Ending(
        "ckpt_corrupt", "OSError: Unable to load weights from pytorch checkpoint file for '/ckpt/pytorch_model.bin'", 1
    ),
    Ending("stale_file_handle", "OSError: [Errno 116] Stale file handle", 1),
    Ending(
        "inductor_cache_race",
        "FileNotFoundError: [Errno 2] No such file or directory: '/root/.triton/cache/abc/triton_red.json'",
        1,
    ),
    Ending(
        "inductor_cache_race",
        'torch._inductor.runtime.compile_tasks.SubprocException: An exception occurred in a subprocess:\n\nTraceback (most recent call last):\n  File "x", line 1, in f\nOSError: source code not available',
        1,
    ),
    Ending("no_compiler", "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", 1),
    Ending(
        "no_compiler",
        "sh: 1: gcc: not found\nsubprocess.CalledProcessError: Command 'gcc' returned non-zero exit status 127.",
        1,
    ),
    Ending(
        "no_compiler", "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.", 1
    ),
    Ending(
        "recompile_limit",
        "torch._dynamo hit config.recompile_limit (8)\n   function: 'attn'\n{'loss': 1.2, 'epoch': 0.1}\n",
    ),
    Ending("too_many_files", "OSError: [Errno 24] Too many open files", 1),
    Ending("too_many_files", "OSError: [Errno 24] Too many open files: '/proc/meminfo'\nPlease increase ulimit -n", 1),
    Ending("cuda_fork", "RuntimeError: Cannot re-initialize CUDA in forked subprocess.", 1),
    Ending(
        "segfault",
        "iter 3: loss 2\n/root/run.sh: line 3: 99 Segmentation fault      (core dumped) python train.py",
        139,
    ),
    Ending("segfault", "RuntimeError: DataLoader worker (pid 88) is killed by signal: Segmentation fault.", 1),
    Ending(
        "segfault",
        "E0820 04:11:53.4 84933 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -11) local_rank: 0 (pid: 9) of binary: /venv/bin/python",
        1,
    ),
    Ending("nan_loss", "iter 300: loss 2.1, time 12ms\niter 310: loss nan, time 12ms"),
    Ending("nan_loss", "{'loss': nan, 'grad_norm': nan, 'epoch': 0.5}"),
    Ending("nan_loss", '{"step": 240, "loss": NaN, "lr": 1e-4}\n{"step": 241, "loss": NaN, "lr": 1e-4}'),
    Ending("nan_loss", "Epoch [3/10], Step [100/500], Loss: nan"),
    Ending("nan_loss", "step 240 | loss inf | tok/s 20,000\nstep 250 | loss inf | tok/s 20,000"),
    Ending("nan_loss", "RuntimeError: Loss is nan at step 77, aborting", 1),
    Ending(
        "loss_spike",
        "iter 1: loss 2.1, time 3ms\niter 2: loss 2.09, time 3ms\niter 3: loss 2.08, time 3ms\niter 4: loss 2.07, time 3ms\niter 5: loss 9.4, time 3ms\niter 6: loss 9.1, time 3ms\niter 7: loss 8.8, time 3ms\n",
    ),
    Ending(
        "queue_starved",
        "step 50 | loss 1.1 | tok/s 9 | min_ready=0 max_depth=16\nWARNING: queue empty for 420 s, waiting for targets",
    ),
    Ending("queue_starved", "step 50 | loss 1.1 | tok/s 9\ndrafter waiting for hidden states (300 s)"),
    Ending(
        "finished_not_exited",
        "step 100/100 | loss 0.9\nTraining finished.\nwandb: Waiting for W&B process to finish...",
    ),
    Ending("finished_not_exited", "done training in 812.1 seconds\nWaiting for background threads to finish"),
    Ending("completed", "step 100/100 | loss 0.9\nTraining finished.", 0),
    Ending("completed", "INFO Saved final model to /out\nAll done!", 0),
    Ending(
        "completed",
        "100%|██████████| 500/500 [10:00<00:00, 1.20s/it]\nTraining completed. Do not forget to share your model on huggingface.co/models =)\n",
        0,
    ),
    Ending(
        "completed",
        "| epoch 010 | loss 3.1\n2026-02-14 02:11:09 | INFO | fairseq_cli.train | done training in 4411.0 seconds",
        0,
    ),
    Ending("user_interrupt", "step 5 | loss 1\n^C\nKeyboardInterrupt", 130),
    Ending(
        "user_interrupt",
        'Traceback (most recent call last):\n  File "x", line 1, in f\nKeyboardInterrupt\n[rank1]: torch.distributed.DistBackendError: NCCL error: remote process exited',
        1,
    ),
    Ending("user_interrupt", "Aborted!", 1),
    Ending(
        "ecc_error",
        "[rank0]:[E820 04:21:52.4 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\n[rank6]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
        1,
    ),
    Ending(
        "cuda_oom",
        "[rank0]:[E820 04:21:52.4 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n[rank1]: RuntimeError: NCCL communicator was aborted on rank 1.",
        1,
    ),
    Ending(
        "segfault",
        "[rank0]:[E820 04:21:52.4 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\nRoot Cause (first observed failure):\n[0]:\n  rank      : 2 (local_rank: 2)\n  exitcode  : -11 (pid: 9)\n  traceback : Signal 11 (SIGSEGV) received by PID 9",
        1,
    ),
    Ending(
        "nccl_timeout",
        "[rank0]:[E820 04:21:52.4 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, Timeout(ms)=600000) ran for 600003 milliseconds before timing out.\nFailures:\n[1]:\n  exitcode  : -9 (pid: 12)\n  traceback : Signal 9 (SIGKILL) received by PID 12\nRoot Cause (first observed failure):\n[0]:\n  exitcode  : -6 (pid: 9)\n  traceback : Signal 6 (SIGABRT) received by PID 9",
        1,
    ),
    Ending(
        "nan_loss",
        "Epoch: [3][7426/24290]\tTime 2.460 (2.266)\tData 0.045 (0.046)\tLoss 1.2011 (1.31)\nEpoch: [3][7427/24290]\tTime 2.460 (2.266)\tData 0.045 (0.046)\tLoss nan (nan)",
    ),
    Ending(
        "nan_loss",
        "batch: 0, GD_loss: 8.13, RD_loss: 7.95, combined_loss: nan, \nbatch: 1, GD_loss: nan, RD_loss: nan, combined_loss: nan, ",
    ),
    Ending(
        "nan_loss",
        "10/30 22:10:02 - mmengine - INFO - Epoch(train) [1][200/735]  lr: 1.9e-04  eta: 2:46:39  time: 2.89  data_time: 0.0042  memory: 10762  loss: 2.70  grad_norm: 3.0\n10/30 22:11:02 - mmengine - INFO - Epoch(train) [1][210/735]  lr: 1.9e-04  eta: 2:46:39  time: 2.89  data_time: 0.0042  memory: 10762  loss: 2.71  grad_norm: 2.7\n10/30 22:12:02 - mmengine - INFO - Epoch(train) [1][220/735]  lr: 1.9e-04  eta: 2:46:39  time: 2.89  data_time: 0.0042  memory: 10762  loss: 2.72  grad_norm: 2.7\n10/30 22:13:02 - mmengine - INFO - Epoch(train) [1][230/735]  lr: 1.9e-04  eta: 2:46:39  time: 2.89  data_time: 0.0042  memory: 10762  loss: 2.73  grad_norm: 2.5\n10/30 22:14:02 - mmengine - INFO - Epoch(train) [1][240/735]  lr: 1.9e-04  eta: 2:46:39  time: 2.89  data_time: 0.0042  memory: 10762  loss: 2.74  grad_norm: nan\n10/30 22:15:02 - mmengine - INFO - Epoch(train) [1][250/735]  lr: 1.9e-04  eta: 2:46:39  time: 2.89  data_time: 0.0042  memory: 10762  loss: 2.75  grad_norm: nan\n",
    ),
    Ending(
        "nan_loss",
        " iteration     5428/  250000 | consumed samples:        43424 | consumed tokens:     88932352 | elapsed time per iteration (ms): 4229.2 | learning rate: 2.999E-04 | global batch size:     8 | loss scale: 1.0 | grad norm: nan | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 1.883 | TFLOPs: 78.71 |\n",
    ),
    Ending(
        "sigkill_unknown",
        "2024-05-10 00:00:10,203 - modelscope - INFO - Epoch: 0001/0005, batch: 0030/0300, loss: 0.4696\nKilled",
    ),
    Ending("sigterm_external", "iter 10 loss 2\nCommand terminated by signal 15", 143),
    Ending(
        "sigkill_unknown",
        "stdout: [09:51:08] WARNING  Sending process 94476 closing signal SIGTERM        api.py:698\nstdout:            ERROR    failed (exitcode: -9) local_rank: 1 (pid: 94477) of binary: /x/bin/python    api.py:672\nstderr: ╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮\nstderr: │ /x/bin/accelerate-launch:8 in <module>                           │\nstderr: ╰──────────────╯\nstderr: ChildFailedError: ",
        1,
    ),
    Ending(
        "segfault",
        "[2026-01-01 00:00:00,001] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py'] exits with return code = -11",
        245,
    ),
    Ending(
        "sigbus",
        "[2026-01-01 00:00:00,001] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py'] exits with return code = -7",
        249,
    ),
    Ending(
        "sighup",
        '--- Logging error ---\nTraceback (most recent call last):\n  File "/x/y.py", line 4, in main\n    f()\nOSError: [Errno 5] Input/output error\nCall stack:\n  File "a", line 1, in f\nMessage: \'Received 1 death signal, shutting down workers\'\nArguments: ()\nTraceback (most recent call last):\n  File "/x/y.py", line 4, in main\n    f()\ntorch.distributed.elastic.multiprocessing.api.SignalException: Process 44 got signal: 1',
        1,
    ),
    Ending(
        "dataloader_killed",
        "│ ❱ 1024 │   raise RuntimeError('DataLoader worker (pid(s) {}) exited unexpectedly'.f  │\n╰──────╯\nRuntimeError: DataLoader worker (pid(s) 88) exited unexpectedly",
        1,
    ),
    Ending(
        "inductor_cache_race",
        "torch._inductor.exc.InductorError: FileNotFoundError: [Errno 2] No such file or directory: '/cache/triton/0/xI6/tmp.pid_1_9/triton_poi_fused.source'\n\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack trace",
        1,
    ),
    Ending(
        "inductor_cache_race",
        "[rank60]: FileNotFoundError: [Errno 2] No such file or directory: '/tmp/torchinductor_u/triton/4/5e/triton_.cubin.tmp.pid_9_1'",
        1,
    ),
    Ending("gpu_fell_off_bus", "XID 79(GPU has fallen off the bus) detected on PCI:0000:ae:00"),
    Ending(
        "python_exception",
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "a.py", line 1\n[rank0]: torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0, 1])',
        1,
    ),
    Ending(
        "python_exception",
        'step 10 loss 2\nTraceback (most recent call last):\n  File "/x/y.py", line 4, in main\n    f()\nmy.errors.ShapeMismatch: got (3, 4)',
        1,
    ),
    Ending(
        "python_exception",
        "step 10 loss 2\nthread 'main' panicked at src/lib.rs:12:5:\nindex out of bounds\nTraceback (most recent call last):\n  File \"/x/y.py\", line 4, in main\n    f()\npyo3_runtime.PanicException: index out of bounds",
        101,
    ),
    Ending(
        "python_exception",
        "step 5 | loss 1\nTraceback (most recent call last):\n  File \"/x/y.py\", line 4, in main\n    f()\nConnectionError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url: /a (Caused by NewConnectionError(': Failed to establish a new connection: [Errno 111] Connection refused'))",
        1,
    ),
    Ending(
        "python_exception",
        '2026-08-20 04:11:52,1 ERROR trainer.py:88 Training failed: ValueError: bad batch\nTraceback (most recent call last):\n  File "a", line 1, in f\nValueError: bad batch',
        1,
    ),
    Ending("python_exception", '{"level":"error","ts":1,"msg":"unhandled exception: KeyError: \'x\'"}', 1),
    Ending(
        "cuda_oom",
        'time=2026-08-20T04:11:52Z level=error msg="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"',
        1,
    ),
    Ending(
        "cuda_oom",
        '{"timestamp":"x","levelname":"ERROR","message":"CUDA out of memory. Tried to allocate 2.00 GiB"}',
        1,
    ),
    Ending(
        "cuda_oom", "\x1b[31m[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\x1b[0m", 1
    ),
    Ending(
        "cuda_oom",
        " 31%|███       | 310/1000 [10:20<23:00,  2.00s/it]torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        1,
    ),
    Ending(
        "cuda_oom",
        "Aug 20 04:11:52 gpu1 run.sh[812]: [rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        1,
    ),
    Ending("cuda_oom", "node3: [rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", 1),
    Ending("disk_full", "Aug 20 04:11:52 gpu1 run.sh[812]: OSError: [Errno 28] No space left on device: 'x'", 1),
    Ending(
        "port_in_use",
        "terminate called after throwing an instance of 'std::system_error'\n  what():  bind: Address already in use",
        134,
    ),
    Ending(
        "nccl_timeout",
        "Aug 20 04:21:52 gpu1 run.sh[812]: [rank4]:[E820 04:21:52.4 ProcessGroupNCCL.cpp:632] [Rank 4] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580)",
    ),
    Ending("no_kernel_image", "CUDA error: invalid device function", 1),
    Ending(
        "host_oom",
        "Aug 20 04:11:50 gpu1 kernel: Out of memory: Killed process 1 (python) total-vm:1kB\nAug 20 04:11:50 gpu1 run.sh[812]: Killed",
        137,
        "SIGKILL",
    ),
    Ending("missing_module", "/root/.venv/bin/python: No module named accelerate.commands", 1),
    Ending("command_not_found", "/root/run.sh: line 5: /venv/bin/python: No such file or directory", 127),
    Ending(
        "incomplete_exit0",
        "step 1840/60000 | loss 1.2734 | tok/s 20,318\n[rank0]:[W820 04:11:52.3 ProcessGroupNCCL.cpp:1250] Warning: WARNING: destroy_process_group() was not called",
        0,
    ),
    Ending("incomplete_exit0", "Epoch 1/3 completed, val acc 0.8\nEpoch 2/3: step 10/500 loss 0.4\n", 0),
    Ending(
        "python_exception",
        'step 5 | loss 1\nTraceback (most recent call last):\n  File "/x/y.py", line 4, in main\n    f()\nValueError: x\nstep 6 | loss 1',
        1,
    ),
    Ending(
        "completed",
        "step 59999 | loss 1 | tok/s 9\nTraining complete: 60000 steps in 3h\nsaved final checkpoint to /ckpt/final",
        0,
    ),
    Ending("completed", "Epoch 10/10: loss 0.1\nFinished Training", 0),
    Ending(
        "completed",
        " iteration 100000/ 100000 | consumed samples: 1 | elapsed time per iteration (ms): 1.0 | lm loss: 1.1E+00 | grad norm: 0.4 |\n[exiting program at iteration 100000] datetime: x",
        0,
    ),
    Ending(
        "loss_spike",
        "[titan] 2026 - root - INFO - step: 1  loss:  2.4  tps: 5,201  mfu: 21.2%\n[titan] 2026 - root - INFO - step: 2  loss:  2.41  tps: 5,201  mfu: 21.2%\n[titan] 2026 - root - INFO - step: 3  loss:  2.39  tps: 5,201  mfu: 21.2%\n[titan] 2026 - root - INFO - step: 4  loss:  2.4  tps: 5,201  mfu: 21.2%\n[titan] 2026 - root - INFO - step: 5  loss:  5.9  tps: 5,201  mfu: 21.2%\n[titan] 2026 - root - INFO - step: 6  loss:  6.1  tps: 5,201  mfu: 21.2%\n",
    ),
    Ending(
        "recompile_limit",
        "W0110 12:27:06.3 158 torch/_dynamo/convert_frame.py:1551] [2/8] torch._dynamo hit config.recompile_limit (8)",
    ),
    Ending(
        "driver_too_old",
        '{"level":"warning","msg":"CUDA initialization: The NVIDIA driver on your system is too old (found version 11040)"}\nstep 1 | loss 11 | tok/s 9\nstep 2 | loss 11 | tok/s 9',
    ),
    Ending(
        "hf_gated",
        "[rank0]: huggingface_hub.utils._errors.HfHubHTTPError: 403 Forbidden: Please enable access to public gated repositories in your fine-grained token settings",
        1,
    ),
    Ending(
        "shm_exhausted",
        "RuntimeError: falseINTERNAL ASSERT FAILED ... unable to resize file </torch_1_2_3> to the right size: No space left on device (28)",
        1,
    ),
    Ending("sigterm_external", 'time="x" level=info msg="Container x received SIGTERM"\nstep 1 loss 2', 143, "SIGTERM"),
    Ending("ckpt_corrupt", "checkpoint /ckpt/step_9000 is truncated: 3.1 of 6.4 GB", 1),
    Ending(
        "session_killed",
        "step 1 | loss 2 | tok/s 9\n--- journal ---\nAug 20 04:12:02 gpuhost systemd[1]: user@0.service: State 'stop-sigterm' timed out. Killing.\nAug 20 04:12:02 gpuhost systemd[1]: user@0.service: Killing process 84933 (python) with signal SIGKILL.",
        137,
        "SIGKILL",
    ),
    Ending(
        "sighup",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nW0214 02:11:53.1 4410 torch/distributed/elastic/agent/server/api.py:719] Received 1 death signal, shutting down workers\nW0214 02:11:53.1 4410 x.py:900] Sending process 4415 closing signal SIGHUP\nTraceback (most recent call last):\ntorch.distributed.elastic.multiprocessing.api.SignalException: Process 4410 got signal: 1",
        1,
    ),
    Ending("sighup", "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n", 129, "SIGHUP"),
    Ending(
        "python_exception",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nTraceback (most recent call last):\n  File \"/root/train.py\", line 4, in main\n    f()\nRuntimeError: shape '[8, 4096]' is invalid for input of size 100",
        0,
    ),
    Ending(
        "invalid_device",
        "[rank7]: RuntimeError: CUDA error: invalid device ordinal\nW0820 x.py:900] Sending process 4415 closing signal SIGTERM",
        1,
    ),
    Ending(
        "cuda_oom",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.30 GiB. GPU 5 has a total capacity of 139.81 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 138.70 GiB memory in use. Of the allocated memory 132.10 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated.",
        1,
    ),
    Ending("port_in_use", "OSError: [Errno 98] Address already in use", 1),
    Ending(
        "nccl_timeout",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n[rank4]:[E214 02:21:52.4 ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0 Rank 4] First PG on this rank that detected no heartbeat of its watchdog.\n[rank4]:[E214 02:21:52.4 ProcessGroupNCCL.cpp:1522] [PG ID 0 PG GUID 0 Rank 4] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=1",
        1,
    ),
    Ending("nccl_timeout", "[rank0]: ran for 25624887 milliseconds before timing out.", 1),
    Ending(
        "gpu_fell_off_bus",
        "Feb 14 02:11:50 gpu7 kernel: NVRM: Xid (PCI:0000:03:00): 79, pid=4415, name=python, GPU has fallen off the bus.",
    ),
    Ending("gpu_fell_off_bus", "Unable to determine the device handle for GPU1: 0000:03:00.0: Unknown Error"),
    Ending(
        "gpu_fell_off_bus",
        "nvidia-smi: No devices were found\nNVRM: GPU 0000:03:00.0: RmInitAdapter failed! (0x26:0x65:1239)\nNVRM: GPU 0000:03:00.0: GPU has fallen off the bus.",
    ),
    Ending(
        "sigkill_unknown",
        "Root Cause (first observed failure):\n[0]:\n  time      : x\n  host      : gpu7\n  rank      : 4 (local_rank: 4)\n  exitcode  : -9 (pid: 4419)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 4419",
        1,
    ),
    Ending(
        "shm_exhausted",
        "gpu7:4410:4415 [3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n[rank3]: torch.distributed.DistBackendError: NCCL error, unhandled system error",
        1,
    ),
    Ending("disk_full", "RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 1024 vs 964", 1),
    Ending("disk_full", "RuntimeError: PytorchStreamWriter failed writing file data/14: file write failed", 1),
    Ending(
        "inductor_cache_race",
        "[rank3]: torch._inductor.exc.InductorError: FileNotFoundError: [Errno 2] No such file or directory: '/tmp/torchinductor_root/ab/.123.tmp' -> '/tmp/torchinductor_root/ab/x.py'",
        1,
    ),
    Ending("too_many_files", "RuntimeError: received 0 items of ancdata", 1),
    Ending(
        "nan_loss",
        "step 239 | loss 1.31 | tok/s 20,318\nstep 240 | loss nan | tok/s 20,318\nstep 250 | loss nan | tok/s 20,318",
    ),
    Ending("nan_loss", "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 9.77e-06, 'epoch': 0.53}"),
    Ending(
        "nan_loss",
        "{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '9.77e-06', 'epoch': '0.53'}\n{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '9.77e-06', 'epoch': '0.54'}",
    ),
    Ending(
        "nan_loss",
        " iteration     5425/  250000 | elapsed time per iteration (ms): 4229.2 | learning rate: 2.999E-04 | global batch size: 8 | lm loss: 2.1E+00 | loss scale: 1.0 | grad norm: 0.4 |\n iteration     5426/  250000 | elapsed time per iteration (ms): 4229.2 | learning rate: 2.999E-04 | global batch size: 8 | loss scale: 1.0 | grad norm: nan |",
    ),
    Ending("sigkill_unknown", "", 137, "SIGKILL"),
    Ending("sigkill_unknown", "", 137),
    Ending("completed", "step 60000/60000 | loss 0.9912 | tok/s 20,301\ntraining complete\n", 0),
    Ending(
        "completed",
        "step 60000/60000 | loss 1.2734 | tok/s 20,318 | min_ready=6 max_depth=16\nresource_tracker: There appear to be 2 leaked semaphore objects to clean up at shutdown\n",
        0,
    ),
    Ending(
        "completed",
        "{'loss': 1.2, 'epoch': 1.0}\n{'train_runtime': 5012.8, 'train_samples_per_second': 3.99}\nException ignored in: <function WeakrefCallback>\n",
        0,
    ),
    Ending(
        "user_interrupt",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n^C\nTraceback (most recent call last):\nKeyboardInterrupt",
        130,
        "SIGINT",
    ),
    Ending(
        "cgroup_oom",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n--- memory.events ---\nlow 0\nhigh 0\nmax 812\noom 1\noom_kill 1",
        137,
        "SIGKILL",
    ),
    Ending(
        "host_oom",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nE0820 x.py:874] failed (exitcode: -9) local_rank: 4 (pid: 4419)\n--- dmesg ---\n[1234.5] Out of memory: Killed process 4419 (python) total-vm:1kB",
        1,
    ),
    Ending(
        "gpu_memory_held",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 14.12 MiB is free. Process 100 has 70.10 GiB memory in use. Process 101 has 8.10 GiB memory in use. Of the allocated memory 7.5 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated.",
        1,
    ),
    Ending(
        "python_exception",
        "[rank2]: Traceback (most recent call last):\n[rank2]: ValueError: x\n[rank0]:[E214 02:21:52.4 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran for 600000 milliseconds before timing out.\nRoot Cause (first observed failure):\n[0]:\n  exitcode  : -6 (pid: 9)",
        1,
    ),
    Ending(
        "python_exception",
        "Traceback (most recent call last):\n  File \"/root/train.py\", line 4, in main\n    f()\nFileNotFoundError: [Errno 2] No such file or directory: '/data/train.jsonl'",
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\ntorch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error, NCCL version 2.20',
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)',
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\nMemoryError: Unable to allocate 12.0 GiB for an array with shape (1, 2)',
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\nRuntimeError: Error(s) in loading state_dict for Drafter:\n\tMissing key(s) in state_dict: "layers.0.weight". ',
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\nIndexError: list index out of range',
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\nOSError: [Errno 5] Input/output error',
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\ntriton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.',
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\nTimeoutError: [Errno 110] Connection timed out',
        1,
    ),
    Ending(
        "python_exception",
        "Traceback (most recent call last):\n  File \"/root/train.py\", line 4, in main\n    f()\nrequests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)",
        1,
    ),
    Ending(
        "python_exception",
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\ntorch._dynamo.exc.InternalTorchDynamoError: TypeError: unhashable type',
        1,
    ),
    Ending(
        "python_exception",
        "Traceback (most recent call last):\n  File \"/root/train.py\", line 4, in main\n    f()\nAttributeError: 'NoneType' object has no attribute 'shape'",
        1,
    ),
    Ending("sigterm_external", "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n", 143, "SIGTERM"),
    Ending("segfault", "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n", 139, "SIGSEGV"),
    Ending("sigbus", "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n", 135, "SIGBUS"),
    Ending(
        "incomplete_exit0",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nstep 1850 | loss 1.2734 | tok/s 20,318 | min_ready=6 max_depth=16\n",
        0,
    ),
    Ending(
        "queue_starved",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=0 max_depth=16\n[2026-02-14 02:20:00] WARNING target pool is empty, drafters idle for 480 s",
    ),
    Ending("queue_starved", "INFO queue starved: min_ready=0 for 540 s, targets push 0 batches"),
    Ending(
        "loss_spike",
        "step 1700 | loss 1.27 | tok/s 20,318\nstep 1710 | loss 1.268 | tok/s 20,318\nstep 1720 | loss 1.271 | tok/s 20,318\nstep 1730 | loss 1.266 | tok/s 20,318\nstep 1740 | loss 4.91 | tok/s 20,318\nstep 1750 | loss 4.8 | tok/s 20,318\nstep 1760 | loss 4.7 | tok/s 20,318\nstep 1770 | loss 4.71 | tok/s 20,318\n",
    ),
    Ending(
        "recompile_limit",
        "torch._dynamo hit config.recompile_limit (8)\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n",
    ),
    Ending(
        "dataloader_killed",
        "RuntimeError: DataLoader worker (pid 1) is killed by signal: Killed. \n--- dmesg ---\n(no oom lines)",
        1,
    ),
    Ending(
        "download_stall",
        "Fetching 4 files:   0%|          | 0/4 [00:00<?, ?it/s]\rmodel.safetensors:   0%|          | 0.00/54.8G [12:00<?, ?B/s]",
    ),
    Ending("wandb_login", "wandb: Enter your choice: "),
    Ending(
        "gpu_lost_in_container",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\ngpu telemetry: Failed to initialize NVML: Unknown Error",
    ),
    Ending(
        "cuda_fork",
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method\nmain: waiting for worker",
    ),
    Ending(
        "ecc_error",
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nNVRM: Xid (PCI:0000:c1:00): 48, pid=1, DBE (double bit error) ECC Error\nNVRM: Xid (PCI:0000:c1:00): 63, Row Remapper",
    ),
)
