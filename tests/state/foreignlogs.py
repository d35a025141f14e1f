"""Logs as other people's launchers and trainers write them: torchrun, DeepSpeed, Ray, Slurm, NeMo, axolotl, JAX ...

Written before the rules were looked at, and none was rewritten to suit them. Hosts, pids, paths and figures are invented.
"""

from __future__ import annotations

from typing import Final

from tests.state.failurelogs import Ending
from tests.state.healthylogs import Healthy

_DEEPSPEED: Final = (
    "[2026-09-02 08:11:02,418] [INFO] [logging.py:128:log_dist] [Rank 0] step=2210, skipped=3, lr=[1.2e-05, 1.2e-05], "
    "mom=[(0.9, 0.95), (0.9, 0.95)]\n"
    "[2026-09-02 08:11:02,419] [INFO] [timer.py:264:stop] epoch=0/micro_step=8840/global_step=2210, "
    "RunningAvgSamplesPerSec=41.20, CurrSamplesPerSec=41.61, MemAllocated=18.4GB, MaxMemAllocated=61.02GB\n"
)
_AXOLOTL: Final = (
    "{'loss': 0.9122, 'grad_norm': 0.3318, 'learning_rate': 1.92e-05, 'epoch': 0.11}\n"
    "  4%|▍         | 118/2904 [09:52<3:52:20,  5.00s/it]\n"
)
_NEMO: Final = (
    "Training epoch 0, iteration 811/9999 | lr: 2.4e-05 | global_batch_size: 256 | global_step: 811 | "
    "reduced_train_loss: 2.114 | train_step_timing in s: 3.201 | consumed_samples: 207872\n"
)
_LIGHTNING_BAR: Final = (
    "Epoch 0:  12%|█▏        | 1211/10000 [1:01:10<7:24:02,  0.33it/s, v_num=4, train_loss_step=2.210]"
)
_MAXTEXT: Final = (
    "completed step: 411, seconds: 4.118, TFLOP/s/device: 198.221, Tokens/s/device: 3978.400, total_weights: 65536, loss: 3.112\n"
    "completed step: 412, seconds: 4.120, TFLOP/s/device: 198.125, Tokens/s/device: 3976.470, total_weights: 65536, loss: 3.108\n"
)
_MEGATRON: Final = (
    " [2026-09-02 08:11:02] iteration     2210/   50000 | consumed samples:       565760 | elapsed time per iteration (ms): 2210.4 | "
    "throughput per GPU (TFLOP/s/GPU): 401.2 | learning rate: 2.900000E-05 | global batch size:   256 | lm loss: 2.210100E+00 | "
    "loss scale: 1.0 | grad norm: 0.611 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
_VERL: Final = (
    "(TaskRunner pid=90211) step:41 - global_seqlen/mean:88211.0 - actor/entropy_loss:0.41 - actor/grad_norm:0.21 - "
    "perf/throughput:1811.2 - timing_s/step:61.2\n"
)

FAILURES: Final[tuple[Ending, ...]] = (
    Ending(
        "sighup",
        _DEEPSPEED + "[2026-09-02 08:14:40,118] [INFO] [launch.py:335:sigkill_handler] Killing subprocess 71210\n"
        "[2026-09-02 08:14:40,118] [INFO] [launch.py:335:sigkill_handler] Killing subprocess 71211\n"
        "/root/run.sh: line 22: 71100 Hangup                  deepspeed --num_gpus 8 sft.py --deepspeed ds_z3.json\n",
        129,
    ),
    Ending(
        "session_killed",
        _AXOLOTL + "-- journalctl -b --since 08:00 --\n"
        "Sep 02 08:14:31 trn-04 systemd-logind[811]: Session 41 logged out. Waiting for processes to exit.\n"
        "Sep 02 08:14:41 trn-04 systemd[1]: session-41.scope: Stopping timed out. Killing.\n"
        "Sep 02 08:14:41 trn-04 systemd[1]: session-41.scope: Killing process 71210 (accelerate) with signal SIGKILL.\n"
        "Sep 02 08:14:41 trn-04 systemd[1]: session-41.scope: Failed with result 'timeout'.\n",
        137,
        "SIGKILL",
    ),
    Ending(
        "sigterm_external",
        _MEGATRON
        + "slurmstepd: error: *** STEP 4410211.0 ON trn-04 CANCELLED AT 2026-09-02T08:14:40 DUE TO TIME LIMIT ***\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        "srun: error: trn-04: tasks 0-7: Terminated\n",
        143,
    ),
    Ending(
        "sigterm_external",
        _LIGHTNING_BAR
        + "\nslurmstepd: error: *** JOB 4410219 ON trn-07 CANCELLED AT 2026-09-02T08:14:40 DUE TO PREEMPTION ***\n"
        "[rank: 3] Received SIGTERM: 15\n[rank: 0] Received SIGTERM: 15\nBypassing SIGTERM: 15\n",
        1,
    ),
    Ending(
        "pkill_self_match",
        "+ set -u\n+ export NCCL_DEBUG=WARN\n+ NCCL_DEBUG=WARN\n+ pkill -9 -f 'axolotl.cli.train'\n"
        "bash: line 1: 71100 Killed                  bash -lc \"set -xu; pkill -9 -f 'axolotl.cli.train'; sleep 5; python -m axolotl.cli.train cfg.yml\"\n",
        137,
        "SIGKILL",
    ),
    Ending(
        "host_oom",
        _VERL + "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.8.0.14, ID: 77aa01) where the task (actor ID: c0ffee01, name=WorkerDict.__init__, pid=90412, "
        "memory used=211.08GB) was running was 1431.77GB / 1471.10GB (0.973264), which exceeds the memory usage threshold of 0.95. "
        "Ray killed this worker (ID: 0a11) because it was the most recently scheduled task; to see more information about memory "
        "usage on this node, use `ray logs raylet.out -ip 10.8.0.14`.\n",
        1,
    ),
    Ending(
        "host_oom",
        _DEEPSPEED + "[2026-09-02 08:14:40,118] [INFO] [launch.py:335:sigkill_handler] Killing subprocess 71210\n"
        "[2026-09-02 08:14:42,020] [ERROR] [launch.py:341:sigkill_handler] ['/venv/bin/python3', '-u', 'sft.py', '--local_rank=7'] exits with return code = -9\n"
        "--- dmesg -T ---\n"
        "[Wed Sep  2 08:14:38 2026] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/user.slice/user-0.slice,task=python3,pid=71217,uid=0\n"
        "[Wed Sep  2 08:14:38 2026] Out of memory: Killed process 71217 (python3) total-vm:811234112kB, anon-rss:301234112kB, file-rss:81200kB, shmem-rss:1200kB, UID:0 pgtables:611200kB oom_score_adj:0\n",
        247,
    ),
    Ending(
        "cgroup_oom",
        _MEGATRON
        + "slurmstepd: error: Detected 2 oom_kill events in StepId=4410211.0. Some of the step tasks have been OOM Killed.\n"
        "srun: error: trn-04: task 3: Out Of Memory\n"
        "srun: launch/slurm: _step_signal: Terminating StepId=4410211.0\n"
        "slurmstepd: error: *** STEP 4410211.0 ON trn-04 CANCELLED AT 2026-09-02T08:14:40 ***\n",
        137,
    ),
    Ending(
        "cgroup_oom",
        _NEMO + "command terminated with exit code 137\n"
        "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
        "      Started:      Wed, 02 Sep 2026 05:11:02 +0000\n      Finished:     Wed, 02 Sep 2026 08:14:38 +0000\n",
        137,
    ),
    Ending("incomplete_exit0", _AXOLOTL, 0),
    Ending(
        "python_exception",
        "(TaskRunner pid=90211) Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): ray::WorkerDict.actor_rollout_init_model()\n"
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.11/site-packages/verl/trainer/main_ppo.py", line 31, in main\n    run_ppo(config)\n'
        '  File "/venv/lib/python3.11/site-packages/ray/_private/worker.py", line 2667, in get\n    values, debugger_breakpoint = worker.get_objects(object_refs, timeout=timeout)\n'
        "ray.exceptions.RayTaskError(AssertionError): \x1b[36mray::TaskRunner.run()\x1b[39m (pid=90211, ip=10.8.0.14, actor_id=0badcafe01, repr=<main_ppo.TaskRunner object at 0x7f10aa>)\n"
        '  File "/venv/lib/python3.11/site-packages/verl/workers/fsdp_workers.py", line 141, in __init__\n'
        "    assert self.config.actor.ppo_mini_batch_size % world == 0\n"
        "AssertionError: ppo_mini_batch_size 60 is not divisible by world size 8\n",
        1,
    ),
    Ending(
        "python_exception",
        "Error executing job with overrides: ['trainer.devices=8', 'model.micro_batch_size=2']\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py", line 38, in main\n    trainer = MegatronTrainerBuilder(cfg).create_trainer()\n'
        "omegaconf.errors.ConfigAttributeError: Key 'sequence_paralel' is not in struct\n"
        "    full_key: model.sequence_paralel\n    object_type=dict\n\n"
        "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
        1,
    ),
    Ending(
        "python_exception",
        _MAXTEXT
        + "jax.errors.SimplifiedTraceback: For simplicity, JAX has removed its internal frames from the traceback of the following exception. "
        "Set JAX_TRACEBACK_FILTERING=off to include these.\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/app/MaxText/train.py", line 812, in train_loop\n    state, metrics = p_train_step(state, batch, rng)\n'
        "TypeError: dot_general requires contracting dimensions to have the same shape, got (4096,) and (5120,).\n",
        1,
    ),
    Ending(
        "no_tty",
        "Traceback (most recent call last):\n"
        '  File "/srv/dash.py", line 12, in <module>\n    curses.wrapper(main)\n'
        '  File "/usr/lib/python3.10/curses/__init__.py", line 29, in initscr\n    setupterm(term=_os.environ.get("TERM", "unknown"),\n'
        "_curses.error: setupterm: could not find terminal\n",
        1,
    ),
    Ending(
        "wandb_login",
        "wandb: Logging into wandb.ai. (Learn how to deploy a W&B server locally: https://wandb.me/wandb-server)\n"
        "wandb: You can find your API key in your browser here: https://wandb.ai/authorize\n"
        "wandb: Paste an API key from your profile and hit enter, or press ctrl+c to quit: ",
    ),
    Ending(
        "wandb_login",
        "wandb: ERROR Error while calling W&B API: user is not logged in (<Response [401]>)\n"
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.11/site-packages/axolotl/train.py", line 190, in train\n    wandb.init(project=cfg.wandb_project)\n'
        "wandb.errors.errors.CommError: It appears that you do not have permission to access the requested resource. Please reach out to "
        "the project owner to grant you access. (Error 401: Unauthorized: user is not logged in)\n",
        1,
    ),
    Ending(
        "download_stall",
        "Downloading shards:  12%|█▏        | 2/17 [00:41<05:09, 20.62s/it]\n"
        "'(ReadTimeoutError(\"HTTPSConnectionPool(host='cas-bridge.xethub.hf.co', port=443): Read timed out. (read timeout=10)\"), "
        "'(Request ID: 4f1c)')' thrown while requesting GET https://huggingface.co/acme/base-27b/resolve/main/model-00003-of-00017.safetensors\n"
        "Retrying in 8s [Retry 5/5].\n"
        "model-00003-of-00017.safetensors:  21%|██        | 1.05G/4.98G [31:12<?, ?B/s]",
    ),
    Ending(
        "hf_gated",
        "OSError: You are trying to access a gated repo.\n"
        "Make sure to have access to it at https://huggingface.co/acme/base-27b.\n"
        "403 Client Error. (Request ID: Root=1-66d5)\n\n"
        "Cannot access gated repo for url https://huggingface.co/acme/base-27b/resolve/main/config.json.\n"
        "Your request to access model acme/base-27b is awaiting a review from the repo authors.\n",
        1,
    ),
    Ending(
        "missing_module",
        "+ exec /usr/bin/python3 -m axolotl.cli.train cfg.yml\n/usr/bin/python3: No module named axolotl\n",
        1,
    ),
    Ending(
        "command_not_found", "/var/spool/slurmd/job4410211/slurm_script: line 41: accelerate: command not found\n", 127
    ),
    Ending(
        "command_not_found",
        "slurmstepd: error: execve(): torchrun: No such file or directory\nsrun: error: trn-04: task 0: Exited with exit code 2\n",
        2,
    ),
    Ending(
        "abi_mismatch",
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.11/site-packages/transformer_engine/__init__.py", line 13, in <module>\n    from . import pytorch\n'
        '  File "/venv/lib/python3.11/site-packages/transformer_engine/pytorch/__init__.py", line 46, in _load_library\n    return ctypes.CDLL(so)\n'
        "OSError: /venv/lib/python3.11/site-packages/transformer_engine_torch.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZNK3c105Error4whatEv\n",
        1,
    ),
    Ending(
        "no_kernel_image",
        "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n"
        "`ptxas` stderr:\nptxas fatal   : Value 'sm_120a' is not defined for option 'gpu-name'\n\n"
        "Repro command: /venv/lib/python3.11/site-packages/triton/backends/nvidia/bin/ptxas -lineinfo -v --gpu-name=sm_120a /tmp/tmpq1.ptx -o /tmp/tmpq1.ptx.o\n",
        1,
    ),
    Ending(
        "driver_too_old",
        "CUDA backend failed to initialize: Found CUDA version 12010, but JAX was built against version 12060, which is newer. "
        "The copy of CUDA that is installed must be at least as new as the version against which JAX was built. "
        "(Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)\n"
        "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.\n",
    ),
    Ending(
        "nvml_mismatch",
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.11/site-packages/ray/_private/accelerators/nvidia_gpu.py", line 60, in get_current_node_num_accelerators\n    pynvml.nvmlInit()\n'
        "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.\n",
        1,
    ),
    Ending(
        "gpu_lost_in_container",
        _AXOLOTL + "$ nvidia-smi\nFailed to initialize NVML: Unknown Error\n"
        "RuntimeError: CUDA error: no CUDA-capable device is detected\n",
        1,
    ),
    Ending(
        "cuda_init_failed",
        "2026-09-02 08:11:02.100101: E external/xla/xla/stream_executor/cuda/cuda_driver.cc:266] failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error\n"
        "Traceback (most recent call last):\n"
        '  File "/app/MaxText/train.py", line 991, in <module>\n    app.run(main)\n'
        "RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices. (you may need to uninstall the failing plugin package, or set JAX_PLATFORMS=cpu to skip this backend.)\n",
        1,
    ),
    Ending(
        "fabric_manager",
        "2026-09-02 08:11:02.100101: E external/xla/xla/stream_executor/cuda/cuda_platform.cc:51] failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized\n"
        "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: no supported devices found for platform CUDA\n",
        1,
    ),
    Ending(
        "invalid_device",
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.11/site-packages/lightning/pytorch/trainer/trainer.py", line 401, in __init__\n    self._accelerator_connector = _AcceleratorConnector(\n'
        "lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1, 2, 3, 4, 5, 6, 7]\n"
        " But your machine only has: [0, 1, 2, 3]\n",
        1,
    ),
    Ending(
        "gpu_memory_held",
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which "
        "900.19 MiB is free. Process 31337 has 71.20 GiB memory in use. Including non-PyTorch memory, this process has 7.02 GiB memory in use. "
        "Of the allocated memory 6.31 GiB is allocated by PyTorch, and 141.02 MiB is reserved by PyTorch but unallocated.\n",
        1,
    ),
    Ending(
        "gpu_memory_held",
        "(EngineCore_DP0 pid=90618) ValueError: Free memory on device (11.2/79.1 GiB) on startup is less than desired GPU memory utilization "
        "(0.9, 71.19 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n",
        1,
    ),
    Ending(
        "cuda_oom",
        _MAXTEXT
        + "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 34359738368 bytes.\n"
        "BufferAssignment OOM Debugging.\nBufferAssignment stats:\n             parameter allocation:   41.10GiB\n",
        1,
    ),
    Ending(
        "cuda_oom",
        '  File "/venv/lib/python3.11/site-packages/deepspeed/runtime/zero/stage3.py", line 2211, in step\n'
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"
        "[2026-09-02 08:14:42,020] [ERROR] [launch.py:341:sigkill_handler] ['/venv/bin/python3', '-u', 'sft.py', '--local_rank=7'] exits with return code = 1\n",
        1,
    ),
    Ending(
        "port_in_use",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, "
        "code: -98, name: EADDRINUSE, message: address already in use\n",
        1,
    ),
    Ending(
        "port_in_use",
        "ConnectionError: Ray is trying to start at 10.8.0.14:6379, but is already running at 10.8.0.14:6379. Please specify a different port using the `--port` flag of `ray start` command.\n",
        1,
    ),
    Ending(
        "nccl_timeout",
        _NEMO
        + "[rank5]:[F902 08:44:40.100101 ProcessGroupNCCL.cpp:1552] [PG ID 0 PG GUID 0(default_pg) Rank 5] [PG ID 0 PG GUID 0(default_pg) Rank 5] "
        "Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.\n"
        "[rank5]:[E902 08:42:40.100101 ProcessGroupNCCL.cpp:1385] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress in monitoring enqueued collectives.\n"
        "srun: error: trn-04: task 5: Aborted (core dumped)\n",
        134,
    ),
    Ending(
        "dist_store_timeout",
        "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 7/8 clients joined.\n"
        "[2026-09-02 08:14:42,020] [ERROR] [launch.py:341:sigkill_handler] ['/venv/bin/python3', '-u', 'sft.py', '--local_rank=7'] exits with return code = 1\n",
        1,
    ),
    Ending(
        "dist_store_timeout",
        "E0902 08:16:02.100101    4411 coordination_service_agent.cc:1105] Failed to connect to coordination service: DEADLINE_EXCEEDED: Deadline Exceeded\n"
        "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0. This usually happens because a task triggered the barrier too early or too slowly.\n"
        "# of tasks that reached the barrier: 7/8.\n",
        1,
    ),
    Ending(
        "gpu_fell_off_bus",
        _MEGATRON + "[rank3]: torch.AcceleratorError: CUDA error: unspecified launch failure\n"
        "--- dmesg ---\n[811231.100101] NVRM: GPU at PCI:0000:4e:00: GPU-1a2b3c4d-0000-1111-2222-333344445555\n"
        "[811231.100110] NVRM: Xid (PCI:0000:4e:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
        1,
    ),
    Ending(
        "ecc_error",
        "2026-09-02 08:11:02.100101: F external/xla/xla/service/gpu/nvptx_executable.cc:210] CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered\n"
        "[811231.100110] NVRM: Xid (PCI:0000:1b:00): 95, pid=4411, name=python3, Uncontained: FBHUB. RST: Yes, D-RST: No\n",
        134,
        "SIGABRT",
    ),
    Ending(
        "illegal_memory_access",
        _MAXTEXT
        + "E0902 08:14:40.100101    4411 pjrt_stream_executor_client.cc:3080] Execution of replica 0 failed: INTERNAL: Failed to load in-memory CUBIN: "
        "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered\n"
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA error: CUDA_ERROR_ILLEGAL_ADDRESS\n",
        1,
    ),
    Ending(
        "shm_exhausted",
        "trn-04:4411:4511 [3] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-hGQmAb to 9637892 bytes, error: No space left on device (28)\n"
        "trn-04:4411:4511 [3] proxy.cc:1252 NCCL WARN [Service thread] Error encountered progressing operation=Connect, res=2, closing connection\n"
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n",
        1,
    ),
    Ending(
        "sigbus",
        _DEEPSPEED + "[2026-09-02 08:14:40,118] [INFO] [launch.py:335:sigkill_handler] Killing subprocess 71210\n"
        "[2026-09-02 08:14:42,020] [ERROR] [launch.py:341:sigkill_handler] ['/venv/bin/python3', '-u', 'sft.py', '--local_rank=7'] exits with return code = -7\n",
        249,
    ),
    Ending(
        "dataloader_killed",
        '  File "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1275, in _try_get_data\n'
        "    raise RuntimeError(\n"
        "RuntimeError: DataLoader worker (pid(s) 4511, 4514) exited unexpectedly\n"
        "slurmstepd: error: *** STEP 4410211.0 ON trn-04 CANCELLED AT 2026-09-02T08:14:40 ***\n",
        1,
    ),
    Ending(
        "disk_full",
        '  File "/venv/lib/python3.11/site-packages/transformers/modeling_utils.py", line 3101, in save_pretrained\n'
        "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)\n",
        1,
    ),
    Ending(
        "disk_full",
        '  File "/venv/lib/python3.11/site-packages/orbax/checkpoint/type_handlers.py", line 611, in serialize\n'
        'ValueError: RESOURCE_EXHAUSTED: Error writing "c/0.0" in local file "/ckpt/412/d/77aa": Failed to write to file: ENOSPC No space left on device\n',
        1,
    ),
    Ending(
        "disk_quota",
        "[WARNING|trainer.py:3010] saving checkpoint-400\n"
        "RuntimeError: [enforce fail at inline_container.cc:815] . PytorchStreamWriter failed writing file data/41: file write failed\n"
        "OSError: [Errno 122] Disk quota exceeded: '/home/ann/out/checkpoint-400/trainer_state.json'\n",
        1,
    ),
    Ending(
        "ckpt_corrupt",
        "Resuming model weights from /out/checkpoint-400\n"
        "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered\n",
        1,
    ),
    Ending(
        "ckpt_corrupt",
        "loading checkpoint shards:   0%|          | 0/11 [00:00<?, ?it/s]\n"
        '  File "/venv/lib/python3.11/site-packages/torch/serialization.py", line 1384, in _legacy_load\n'
        "    magic_number = pickle_module.load(f, **pickle_load_args)\n"
        "_pickle.UnpicklingError: invalid load key, 'v'.\n",
        1,
    ),
    Ending(
        "ckpt_corrupt",
        'ValueError: Error reading local file "/ckpt/412/default/manifest.ocdbt": DATA_LOSS: CRC-32C checksum verification failed\n',
        1,
    ),
    Ending(
        "cuda_oom",
        "(WorkerDict pid=90412) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.55 GiB. GPU 0 has a total capacity of "
        "79.10 GiB of which 3.10 GiB is free. Process 90412 has 76.00 GiB memory in use.\n",
        1,
    ),
    Ending(
        "stale_file_handle",
        '  File "/opt/megatron/core/datasets/indexed_dataset.py", line 410, in __getitem__\n'
        "OSError: [Errno 116] Stale file handle: '/mnt/nfs/corpus/shard_00411.bin'\n"
        "srun: error: trn-04: task 3: Exited with exit code 1\n",
        1,
    ),
    Ending(
        "inductor_cache_race",
        "[rank6]: torch._inductor.exc.InductorError: FileNotFoundError: [Errno 2] No such file or directory: "
        "'/tmp/torchinductor_root/triton/6/QX7/triton_poi_fused_add_mul_3.cubin'\n",
        1,
    ),
    Ending(
        "no_compiler",
        "Using /root/.cache/torch_extensions/py311_cu124 as PyTorch extensions root...\n"
        "[1/4] c++ -MMD -MF cpu_adam.o.d -DTORCH_EXTENSION_NAME=cpu_adam -c cpu_adam.cpp -o cpu_adam.o\n"
        "FAILED: cpu_adam.o\n/bin/sh: 1: c++: not found\nninja: build stopped: subcommand failed.\n"
        "RuntimeError: Error building extension 'cpu_adam'\n",
        1,
    ),
    Ending(
        "recompile_limit",
        "[rank0]: torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with one_graph=True. Excessive recompilations can degrade performance due to the compilation overhead of each recompilation.\n",
        1,
    ),
    Ending(
        "too_many_files",
        "2026-09-02 08:11:02,100\tERROR worker.py:421 -- Unhandled error: ray::DataWorker.read()\n"
        "OSError: [Errno 24] Too many open files: '/data/shards/04411.tar'\n",
        1,
    ),
    Ending(
        "cuda_fork",
        "Process ForkProcess-2:\nTraceback (most recent call last):\n"
        '  File "/venv/lib/python3.11/site-packages/torch/cuda/__init__.py", line 305, in _lazy_init\n    raise RuntimeError(\n'
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method\n",
        1,
    ),
    Ending(
        "segfault",
        "*** SIGSEGV received at time=1788336880 on cpu 17 ***\n"
        "PC: @     0x7f10aa11bb22  (unknown)  ncclProxyService()\n"
        "[2026-09-02 08:14:40,118 E 4411 4511] logging.cc:440: *** SIGSEGV received at time=1788336880 on cpu 17 ***\n"
        "Fatal Python error: Segmentation fault\n\nThread 0x00007f10aa (most recent call first):\n",
        1,
    ),
    Ending(
        "segfault",
        _MEGATRON
        + "srun: error: trn-04: task 3: Segmentation fault (core dumped)\nsrun: Terminating StepId=4410211.0\n",
        139,
    ),
    Ending(
        "nan_loss",
        _MEGATRON
        + "[rank3]: AssertionError: Rank 3: found NaN in local forward loss calculation. Device: 3, node: trn-04\n",
        1,
    ),
    Ending(
        "nan_loss",
        _DEEPSPEED
        + "[2026-09-02 08:14:40,118] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1\n"
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n",
        1,
    ),
    Ending(
        "nan_loss",
        "completed step: 411, seconds: 4.118, TFLOP/s/device: 198.221, Tokens/s/device: 3978.400, total_weights: 65536, loss: nan\n"
        "completed step: 412, seconds: 4.120, TFLOP/s/device: 198.125, Tokens/s/device: 3976.470, total_weights: 65536, loss: nan\n"
        "completed step: 413, seconds: 4.120, TFLOP/s/device: 198.125, Tokens/s/device: 3976.470, total_weights: 65536, loss: nan\n",
    ),
    Ending(
        "loss_spike",
        "".join(
            f"{{'loss': {loss}, 'grad_norm': {norm}, 'learning_rate': 1.92e-05, 'epoch': {0.10 + at / 100:.2f}}}\n"
            for at, (loss, norm) in enumerate(
                (
                    (0.9122, 0.33),
                    (0.9040, 0.31),
                    (0.9101, 0.34),
                    (0.9012, 0.30),
                    (0.8990, 0.32),
                    (5.8812, 91.2),
                    (6.0231, 44.0),
                    (5.9120, 21.2),
                )
            )
        ),
    ),
    Ending(
        "completed",
        "[2026-09-02 08:11:02,100] [INFO] [axolotl.train:train:231] Training completed! Saving trained model to ./out\n"
        "{'train_runtime': 14021.02, 'train_samples_per_second': 6.61, 'train_steps_per_second': 0.207, 'train_loss': 0.8122, 'epoch': 1.0}\n"
        "100%|██████████| 2904/2904 [3:53:41<00:00,  4.83s/it]\n",
    ),
    Ending("completed", _NEMO + "`Trainer.fit` stopped: `max_steps=10000` reached.\n", 0),
    Ending(
        "completed",
        _MEGATRON.replace("2210/   50000", "50000/   50000")
        + "[after training is done] datetime: 2026-09-02 08:14:40 \n"
        "  successfully saved checkpoint from iteration   50000 to /ckpt/gpt [ t 1/1, p 1/1 ]\n",
        0,
    ),
    Ending("user_interrupt", _LIGHTNING_BAR + "\n\nDetected KeyboardInterrupt, attempting graceful shutdown ...\n", 1),
    Ending("sigkill_unknown", _NEMO + "srun: error: trn-04: task 3: Killed\nsrun: Terminating StepId=4410211.0\n", 137),
)

HEALTHY: Final[tuple[Healthy, ...]] = (
    Healthy(
        "/opt/jax/train.py:81: RuntimeWarning: os.fork() was called. os.fork() is incompatible with multithreaded code, and JAX is multithreaded, so this will likely lead to a deadlock.\n"
        + _MAXTEXT
    ),
    Healthy(
        "2026-09-02 08:11:02.1: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:467] Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when one has already been registered\n"
        + _MAXTEXT
    ),
    Healthy(
        "W0902 08:11:02.1 4411 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded\n"
        + _AXOLOTL
    ),
    Healthy(
        "[2026-09-02 08:11:02,418] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
        + _DEEPSPEED
    ),
    Healthy(
        "slurmstepd: error: couldn't chdir to `/home/ann': No such file or directory: going to /tmp instead\n"
        + _MEGATRON
    ),
    Healthy(
        "slurmstepd: error: Unable to create TMPDIR [/scratch/ann]: Permission denied\nslurmstepd: error: Setting TMPDIR to /tmp\n"
        + _NEMO
    ),
    Healthy(
        "(raylet) [2026-09-02 08:11:02,100 E 811 811] file_system_monitor.cc:111: /tmp/ray/session_1 is over 95% full, available space: 40 GB; capacity: 1788 GB. Object creation will fail if spilling is required.\n"
        + _VERL
    ),
    Healthy(
        "2026-09-02 08:11:02,100\tWARNING services.py:2009 -- WARNING: The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available. This will harm performance!\n"
        + _VERL
    ),
    Healthy(
        "trn-04:4411:4411 [0] NCCL INFO NCCL_ASYNC_ERROR_HANDLING set by environment to 1.\ntrn-04:4411:4411 [0] NCCL INFO Could not find: libnccl-net.so\ntrn-04:4411:4411 [0] NCCL INFO NET/IB : No device found.\n"
        + _MEGATRON
    ),
    Healthy(
        "trn-04:4411:4511 [0] NCCL INFO Channel 00/0 : 7[7] -> 0[0] [receive] via NET/Socket/0\nncclCommAbort capability: 1, timeout 1800000 ms\n"
        + _DEEPSPEED
    ),
    Healthy(
        "UserWarning: 'has_cuda' is deprecated; NaN or Inf found in input tensor of tensorboard summary 'grads/first'\n"
        + _NEMO
    ),
    Healthy(
        _LIGHTNING_BAR
        + "\nSLURM auto-requeueing enabled. Setting signal handlers.\nSIGTERM handler installed: will checkpoint on SIGUSR1\n"
        + _LIGHTNING_BAR.replace("1211", "1212")
    ),
    Healthy(
        "wandb: WARNING Path ./wandb wasn't writable, using system temp directory.\nwandb: Network error (ConnectTimeout), entering retry loop.\nwandb: Network error resolved after 0:00:41, resuming normal operation.\n"
        + _AXOLOTL
    ),
    Healthy(
        "wandb: Currently logged in as: ann (acme) to https://api.wandb.ai. Use `wandb login --relogin` to force relogin\n"
        + _AXOLOTL
    ),
    Healthy(
        "Could not cache non-existence of file. Will ignore error and continue. Error: [Errno 30] Read-only file system: '/models/.no_exist'\n"
        + _AXOLOTL
    ),
    Healthy(
        "[W902 08:11:02.1 socket.cpp:697] [c10d] The client socket has failed to connect to [trn-04]:29500 (errno: 111 - Connection refused).\n[W902 08:11:03.1 socket.cpp:697] [c10d] The client socket has failed to connect to [trn-04]:29500 (errno: 22 - Invalid argument).\n"
        + _MEGATRON
    ),
    Healthy(
        "Traceback (most recent call last):\n  File \"/venv/lib/python3.11/site-packages/apex/__init__.py\", line 3, in <module>\n    import amp_C\nModuleNotFoundError: No module named 'amp_C'\nfused kernels not found, using torch implementation\n"
        + _MEGATRON
    ),
    Healthy(
        "skipping sample 4411: PIL.UnidentifiedImageError: cannot identify image file '/data/a.jpg'\n"
        + _NEMO
        + "sample 88121 corrupted (EOFError), replaced\n"
        + _NEMO.replace("811", "812")
    ),
    Healthy(
        "torch.cuda.OutOfMemoryError caught in auto batch size finder: CUDA out of memory. Tried to allocate 4.00 GiB\nBatch size 32 failed, trying batch size 16\nBatch size 16 succeeded\n"
        + _NEMO
    ),
    Healthy(
        "W0902 08:11:02.1 4411 torch/_inductor/select_algorithm.py:1911] Runtime error during autotuning: out of resource: shared memory, Required: 294912, Hardware limit: 232448. Reducing block sizes or `num_stages` may help.. Ignoring this choice.\n"
        + _AXOLOTL
    ),
    Healthy(
        "AUTOTUNE mm(4096x4096, 4096x11008)\n  triton_mm_11 0.4011 ms 100.0% \n  triton_mm_7 inf ms 0.0% <CUDA error: an illegal memory access was encountered>\nSingleProcess AUTOTUNE benchmarking takes 2.1 seconds\n"
        + _AXOLOTL
    ),
    Healthy(
        "[WARNING] no checkpoint found at /ckpt/latest: [Errno 2] No such file or directory: '/ckpt/latest/metadata.json'; starting from scratch\n"
        + _MEGATRON
    ),
    Healthy(
        _MEGATRON
        + "[exiting program after 0 errors] not set; exit_signal_handler: False\n"
        + _MEGATRON.replace("2210/", "2220/")
    ),
    Healthy(
        "bash: cannot set terminal process group (-1): Inappropriate ioctl for device\nbash: no job control in this shell\n"
        + _AXOLOTL
    ),
    Healthy(
        "mesg: ttyname failed: Inappropriate ioctl for device\n+ pkill -f axolotl.cli.train\n+ true\n+ python -m axolotl.cli.train cfg.yml\n"
        + _AXOLOTL
    ),
    Healthy(
        "kernel: NVRM: Xid (PCI:0000:1b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.\n"
        + _MEGATRON
        + _MEGATRON.replace("2210/", "2220/")
    ),
    Healthy(
        "Generating train split: 1000 examples [00:01]\n'question': 'Why does my script say \"Segmentation fault (core dumped)\"?'\n'answer': 'RuntimeError: CUDA error: device-side assert triggered means ...'\n"
        + _AXOLOTL
    ),
    Healthy(
        "(WorkerDict pid=90412) reward sample: [response] Traceback (most recent call last): ValueError: invalid literal for int() -> score 0.0\n"
        + _VERL
        + _VERL.replace("step:41", "step:42")
    ),
    Healthy(
        _AXOLOTL
        + "{'train_runtime': 14021.02, 'train_samples_per_second': 6.61, 'train_loss': 0.8122, 'epoch': 1.0}\nwandb: 🚀 View run crash-test-killed at: https://wandb.ai/acme/x/runs/1\nException ignored in: <function Pool.__del__ at 0x7f10aa>\nTraceback (most recent call last):\nResourceWarning: unclosed running multiprocessing pool\n",
        0,
    ),
    Healthy(
        _NEMO
        + "`Trainer.fit` stopped: `max_steps=10000` reached.\n[rank0]:[W902 08:14:40.1 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL. On normal program exit, the application should call destroy_process_group\n",
        0,
    ),
    Healthy(
        "completed step: 410, seconds: 4.1, TFLOP/s/device: 198.2, Tokens/s/device: 3978.4, total_weights: 65536, loss: 3.113\nW0902 08:11:02.1 4411 pjrt_c_api_client.cc:1400] slow operation alarm: Constant folding an instruction is taking > 2s\nE0902 08:11:02.1 4411 slow_operation_alarm.cc:140] The operation took 4.1s; this isn't necessarily a bug\n"
        + _MAXTEXT
    ),
    Healthy(
        "INFO 09-02 08:11:02 [core.py:58] Preemption mode: recompute; max_num_oom_retries=3; kill_on_failure=False; abort_timeout=600\n"
        + _VERL
    ),
)
