"""Logs of runs that are well, full of words that frighten: none may be called failed.

Written for these tests. Where a status stands, the run ended with it, and well.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Healthy(NamedTuple):
    log: str
    status: int | None = None


_STEPS: Final = (
    "step 100 | loss 1.8810 | tok/s 20,100 | min_ready=6 max_depth=16\n"
    "step 110 | loss 1.8790 | tok/s 20,180 | min_ready=5 max_depth=16\n"
)
_HF: Final = "{'loss': 1.8821, 'grad_norm': 0.71, 'learning_rate': 2e-05, 'epoch': 0.31}\n{'loss': 1.8710, 'grad_norm': 0.70, 'learning_rate': 2e-05, 'epoch': 0.32}\n"
_TITAN: Final = (
    "[titan] 2026-02-14 02:11:08,001 - root - INFO - step: 1200  loss:  2.4012  memory: 61.10GiB(77.3%)  tps: 5,201  mfu: 21.2%\n"
    "[titan] 2026-02-14 02:11:18,001 - root - INFO - step: 1210  loss:  2.3991  memory: 61.10GiB(77.3%)  tps: 5,200  mfu: 21.2%\n"
)
_BAR: Final = " 31%|███       | 310/1000 [10:20<23:00,  2.00s/it]\r 31%|███       | 311/1000 [10:22<22:58,  2.00s/it]"
_DONE: Final = "{'train_runtime': 812.1, 'train_samples_per_second': 3.99, 'train_loss': 1.9, 'epoch': 1.0}\n"
_STACK: Final = (
    'Traceback (most recent call last):\n  File "/srv/data.py", line 12, in __getitem__\n    return decode(raw)\n'
)

HEALTHY: Final[tuple[Healthy, ...]] = (
    Healthy(_STEPS + "eval | error_rate=0.1 | word_error=0.07\n"),
    Healthy("checks done: 0 errors, 2 warnings\n" + _STEPS),
    Healthy(_STEPS + "health: nan_count: 0, inf_count: 0, killed 0 workers\n"),
    Healthy("WARNING download failed (ConnectionError: reset by peer), retry 1 of 5\nretry succeeded\n" + _STEPS),
    Healthy("Loading error_correction model\nloaded in 3.1 s\n"),
    Healthy("args: max_errors=3 fail_fast=False\n" + _STEPS),
    Healthy("+ export CUDA_LAUNCH_BLOCKING=1\n" + _HF),
    Healthy("python fit.py --fail-fast --max-errors 3 --abort-on-nan\n" + _STEPS),
    Healthy("abort_on_nan: true\nskip_nan_loss: true\non_oom: 'CUDA out of memory'\n" + _STEPS),
    Healthy("config = {'on_crash': 'Traceback (most recent call last):', 'dist_timeout': 1800}\n" + _STEPS),
    Healthy("init_process_group(backend=nccl, timeout=0:30:00)\nNCCL timeout set to 1800 s\n" + _STEPS),
    Healthy(
        "gpu7:71:90 [2] NCCL INFO NET/Socket : Using [0]eth0:10.3.0.7<0>\ngpu7:71:90 [2] NCCL INFO ncclCommInitRank comm 0x1 rank 2 nranks 8 - Init COMPLETE, no error\n"
        + _TITAN
    ),
    Healthy(
        "gpu7:71:90 [0] NCCL INFO Failed to open libibverbs.so[.1]\ngpu7:71:90 [0] NCCL INFO transport/net.cc:41 -> 2 error ignored\n"
        + _STEPS
    ),
    Healthy("TORCH_NCCL_ASYNC_ERROR_HANDLING=1\nTORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=480\n" + _STEPS),
    Healthy(_STACK + "OSError: image file is truncated\nskipping sample 8812\n" + _STEPS),
    Healthy("step 90 | loss 1.9 | tok/s 20,000\n" + _STACK + "ValueError: bad sample 77\n" + _STEPS),
    Healthy(
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\nbatch was too long, halving the micro batch and retrying\n"
        + _STEPS
    ),
    Healthy("WARNING: ran out of memory on rank 3: CUDA out of memory, skipping batch\n" + _HF),
    Healthy("auto batch size: 64 -> CUDA out of memory, 32 -> ok\nusing batch size 32\n" + _STEPS),
    Healthy("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n" + _HF),
    Healthy("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n" + _HF),
    Healthy("{'loss': 2.1, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.01}\n" + _HF),
    Healthy(
        "{'loss': 2.1, 'grad_norm': inf, 'learning_rate': 0.0, 'epoch': 0.01}\n{'loss': 2.1, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.01}\n"
        + _HF
    ),
    Healthy(_STEPS + "{'eval_loss': nan, 'eval_runtime': 3.1, 'epoch': 0.3}\n" + _STEPS.replace("step 1", "step 2")),
    Healthy(
        "/venv/lib/python3.11/site-packages/torch/optim/lr_scheduler.py:136: UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`. Failure to do this will result in PyTorch skipping the first value\n"
        + _HF
    ),
    Healthy(
        "FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated. This will raise an error in a future version\n"
        + _STEPS
    ),
    Healthy("nohup: ignoring input and appending output to 'nohup.out'\n" + _STEPS),
    Healthy(
        "bash: cannot set terminal process group (-1): Inappropriate ioctl for device\nbash: no job control in this shell\n"
        + _STEPS
    ),
    Healthy("mesg: ttyname failed: Inappropriate ioctl for device\n" + _HF),
    Healthy(
        "INFO: apex not found, using native fused Adam\nWARNING: No module named 'xformers', proceeding without it\n"
        + _STEPS
    ),
    Healthy(
        "flash_attn is not installed, falling back to sdpa\ntriton not found; flop counting will not work for triton kernels\n"
        + _HF
    ),
    Healthy(
        "SIGTERM handler installed; will checkpoint on SIGTERM, SIGUSR1\nfaulthandler enabled for SIGSEGV\n" + _STEPS
    ),
    Healthy(
        "NVRM: Xid (PCI:0000:1b:00): 63, pid=4411, name=python3, Row Remapper: New row (0x1) marked for remapping, reset gpu to activate.\n"
        + _STEPS
    ),
    Healthy("gpu 3: volatile uncorrectable ECC errors: 0, corrected: 12\ngpu 3: XID errors: 0\n" + _STEPS),
    Healthy("Port 6006 is in use by another program. Using 6007 instead.\n" + _STEPS),
    Healthy("dashboard: address already in use on port 8265, trying 8266\n" + _TITAN),
    Healthy(
        "wandb: Currently logged in as: ops (ops-team). Use `wandb login --relogin` to force relogin\nwandb: Tracking run with wandb version 0.19.1\n"
        + _HF
    ),
    Healthy(
        "wandb: WARNING If you're specifying your api key in code, ensure this code is not shared publicly.\nwandb: W&B syncing is set to `offline` in this directory\n"
        + _HF
    ),
    Healthy(
        "wandb: Network error (ConnectTimeout), entering retry loop.\n"
        + _HF
        + "wandb: Network error resolved after 0:01:10\n"
        + _HF
    ),
    Healthy("model-00004-of-00012.safetensors:  23%|██▎       | 1.12G/4.92G [00:12<00:40, 92.1MB/s]"),
    Healthy("Downloading shards:  50%|█████     | 6/12 [03:10<03:10, 31.7s/it]"),
    Healthy("Loading checkpoint shards:  33%|███▎      | 4/12 [00:31<01:02,  7.8s/it]"),
    Healthy("Map (num_proc=8):  96%|█████████▌| 115590/120675 [18:57<00:37, 134.69 examples/s]"),
    Healthy(_STEPS + "Saving checkpoint at step 110 (timeout 600 s) ...\n"),
    Healthy(
        "compiling model with torch.compile, this may take minutes; errors are suppressed (suppress_errors=True)\n"
    ),
    Healthy(_STEPS + "evaluation: exact_match 0.41, failed_parses 12, timeouts 0, crashed 0\n"),
    Healthy("retrying after HTTP Error 503 (attempt 2/5)\nrecovered after 2 attempts\n" + _TITAN),
    Healthy(
        "step 10 | loss 1.90 | tok/s 20,000\n'Connection reset by peer' while reading s3://x/y, will retry\n" + _STEPS
    ),
    Healthy("checkpoint of step 1500 is incomplete, skipping it\nresuming from step 1000\n" + _STEPS),
    Healthy("No checkpoint found at /ckpt, starting from scratch (not an error)\n" + _STEPS),
    Healthy('{"level": "info", "msg": "watchdog: no collective timeouts, 0 errors", "step": 110}\n' + _STEPS),
    Healthy(
        '{"level": "warning", "msg": "CUDA out of memory was caught by the batch finder"}\n{"level": "info", "msg": "batch size 16"}\n'
        + _STEPS
    ),
    Healthy("raised the limit of open files (nofile) from 1024 to 65536 to prevent 'Too many open files'\n" + _STEPS),
    Healthy("disk: 812 GiB free on /ckpt, alert at 'No space left on device'\n" + _STEPS),
    Healthy(
        "Tip: if you see 'CUDA error: an illegal memory access was encountered', set CUDA_LAUNCH_BLOCKING=1\n" + _STEPS
    ),
    Healthy("tests of the guard: simulated segmentation fault handler ok\n" + _STEPS),
    Healthy(
        "Exception ignored in: <function Pool.__del__ at 0x7f>\n"
        + _STACK
        + "ResourceWarning: unclosed running multiprocessing pool\n"
        + _STEPS
    ),
    Healthy(
        _HF
        + _DONE
        + 'Exception ignored in: <function _ConnectionBase.__del__ at 0x7f>\nTraceback (most recent call last):\n  File "/usr/lib/python3.11/multiprocessing/connection.py", line 133, in __del__\nOSError: [Errno 9] Bad file descriptor\n',
        0,
    ),
    Healthy(
        "step 48000/48000 | loss 0.99 | tok/s 20,301\nTraining complete with 0 errors.\n/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 12 leaked semaphore objects to clean up at shutdown\n",
        0,
    ),
    Healthy(
        _HF + _DONE + "W0214 02:11:09.1 4410 torch/distributed/elastic/rendezvous: the node has no failed workers\n", 0
    ),
    Healthy("loss spike guard: threshold 3.0, spikes so far 0, nan guard on\n" + _STEPS),
    Healthy(
        "step 10 | loss 1.50 | tok/s 9\nstep 20 | loss 1.49 | tok/s 9\nstep 30 | loss 4.90 | tok/s 9\nstep 40 | loss 3.10 | tok/s 9\nstep 50 | loss 1.61 | tok/s 9\nstep 60 | loss 1.52 | tok/s 9\n"
    ),
    Healthy(
        "step 10 | loss 11.2 | tok/s 9 | min_ready=0 max_depth=16\nstep 20 | loss 9.1 | tok/s 9 | min_ready=0 max_depth=16\nstep 30 | loss 8.0 | tok/s 9 | min_ready=3 max_depth=16\n"
    ),
    Healthy(
        "step 10 | loss 1.2 | tok/s 9 | min_ready=16 max_depth=16\nINFO pool full (16/16), targets wait for drafters\nstep 20 | loss 1.2 | tok/s 9 | min_ready=16 max_depth=16\n"
    ),
    Healthy(_BAR),
    Healthy("\x00" * 200 + "step 2300 | loss 1.2734 | tok/s 20,318 | min_ready=6 max_depth=16\n"),
    Healthy("\x1b[31mERROR_BUDGET\x1b[0m 0.1 % left\n\x1b[33mWARN\x1b[0m grad clipped\n" + _STEPS),
    Healthy("MeanSquaredError: 0.0123\nRootMeanSquaredError: 0.1109\nepoch 3 loss 0.21\n"),
    Healthy(
        "slurmstepd: info: Setting TMPDIR\nsrun: job 551 queued and waiting for resources\nsrun: job 551 has been allocated resources\n"
        + _STEPS
    ),
    Healthy("Feb 14 02:11:09 gpu7 systemd[1]: Started session-41.scope - Session 41 of User ops.\n" + _STEPS),
    Healthy(
        "W0214 02:11:09.100000 71 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded\n"
        + _TITAN
    ),
    Healthy(
        "[rank0]:[W214 02:11:09.1 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 to perform barrier as devices used by this process are currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect.\n"
        + _TITAN
    ),
    Healthy(
        "(raylet) WARNING: The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available. This will harm performance!\n"
        + _HF
    ),
    Healthy(
        "E0000 00:00:1739.100 4411 cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n"
        + _STEPS
    ),
    Healthy(
        "E0000 00:00:1739.100 4411 cuda_blas.cc:1407] Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS when one has already been registered\nloading the tokenizer\n"
    ),
    Healthy("worker 3 died, respawning it\nworker 3 is back\n" + _STEPS),
    Healthy("torch._dynamo.config.recompile_limit = 64\ncache_size_limit: 64\n" + _STEPS),
    Healthy("Namespace(on_error='abort', kill_timeout=30, error_file='/tmp/e.json', debug_segfault=False)\n" + _STEPS),
    Healthy("  --max-restarts 3 --rdzv-timeout 900 --on-failure kill\n" + _STEPS),
    Healthy(
        "except KeyboardInterrupt:\n    raise SystemExit('Killed')\n# the above is the source of the launcher\n"
        + _STEPS
    ),
    Healthy("Killed processes of the old run: 0; terminated: 0\n" + _STEPS),
    Healthy("data: 3 corrupt records were dropped, 0 files not found\n" + _HF),
    Healthy("UserWarning: Failed to initialize NumPy: no numpy support compiled in; continuing\n" + _STEPS),
    Healthy(
        "reward/error: 0.12 | failure_rate: 0.3 | step 100 | loss 0.2\nreward/error: 0.11 | failure_rate: 0.3 | step 101 | loss 0.2\n"
    ),
    Healthy(
        "Epoch 1/3\n 200/1000 [=====>........................] - ETA: 1:10 - loss: 0.8120 - mean_absolute_error: 0.3\n"
    ),
    Healthy(
        "prompt: 'Explain the error: Segmentation fault (core dumped)'\ncompletion: 'It means that ...'\n" + _STEPS
    ),
    # -- short ones, nothing behind the frightening word ------------------------------------------------------------------
    Healthy("Traceback logging is enabled\nerrors will be reported to sentry\n"),
    Healthy("INFO error handler registered\nINFO killed=0 oom=0 nan=0\n"),
    Healthy("Loading error_correction model\n"),
    Healthy("error_rate=0.1\n"),
    Healthy("0 errors\n"),
    Healthy("retry succeeded\n"),
    Healthy("max_errors=3\n"),
    Healthy("CUDA_LAUNCH_BLOCKING=1\n"),
    Healthy("running with --fail-fast\n"),
    Healthy("abort_on_nan: true\n"),
    Healthy("timeout: 1800\nnccl_timeout: 1800000\nTimeout(ms)=600000 configured\n"),
    Healthy("NCCL INFO NET/OFI error handling enabled\n"),
    Healthy("WARNING:root:CUDA out of memory caught; retry with batch 8\nretry succeeded\n"),
    Healthy(
        "2026-08-20 04:11:52 WARNING failed to fetch s3 object (attempt 1/5): timed out\n2026-08-20 04:11:53 INFO fetched after retry\n"
    ),
    Healthy(
        'Traceback (most recent call last):\n  File "x", line 1, in f\nValueError: bad image\nWARNING skipped 1 sample\nloaded 999 samples\n'
    ),
    Healthy("ERROR: could not connect to metrics server, continuing without metrics\nstarting training\n"),
    Healthy("ERROR 404 for optional file generation_config.json (ignored)\nmodel loaded\n"),
    Healthy("killed 0 workers, respawned 0\n"),
    Healthy("Xid errors since boot: 0\nECC: no uncorrectable errors\n"),
    Healthy(
        "grad_norm: inf detected, scaling down (normal in the first steps)\nstep 1 | loss 11.1 | tok/s 3\nstep 2 | loss 11.0 | tok/s 3\n"
    ),
    Healthy("assert_no_nan=True raise_on_error=False segfault_handler=on\n"),
    Healthy("step 5 | loss 1.1 | error 0.3 | tok/s 9\nstep 6 | loss 1.1 | error 0.2 | tok/s 9\n"),
    Healthy("val_loss nan (no validation yet)\nstep 6 | loss 1.1 | tok/s 9\n"),
    Healthy("UserWarning: The given NumPy array is not writable... may result in undefined behavior\n"),
    Healthy("DeprecationWarning: the load_module() method is deprecated; error in 3.15\n"),
    Healthy(
        "Some weights of LlamaForCausalLM were not initialized from the model checkpoint and are newly initialized: ['lm_head.weight']\nYou should probably TRAIN this model\n"
    ),
    Healthy(
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...\n"
    ),
    Healthy(
        "[W820 04:11:52.3 socket.cpp:752] [c10d] The client socket has failed to connect to [::ffff:10.0.0.1]:29500 (errno: 111 - Connection refused).\nstep 1 | loss 3 | tok/s 1\n"
    ),
    Healthy(
        "[W820 04:11:52.3 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL.\nTraining finished\n",
        0,
    ),
    Healthy(
        "Token indices sequence length is longer than the specified maximum sequence length for this model (8210 > 4096). Running this sequence through the model will result in indexing errors\n"
    ),
    Healthy("skipping 3 corrupt records: invalid load key\nstep 1 | loss 3\nstep 2 | loss 3\n"),
    Healthy("signal handlers: SIGINT SIGTERM SIGHUP ok\n"),
    Healthy("health check: no space left check passed, ulimit ok (too many open files unlikely)\n"),
    Healthy("Checkpoint saved. 0 failed shards. Elapsed: 12 s\n"),
    Healthy("exit_on_oom: false\nexit code of the last run: 0\n"),
    Healthy(
        "last run ended with exit code 137 (killed); resuming from step 900\nstep 910 | loss 1 | tok/s 9\nstep 920 | loss 1 | tok/s 9\n"
    ),
    Healthy("test_traceback.py::test_error PASSED\n12 passed, 0 failed in 3.2s\n"),
    Healthy("I0820 04:11:52.1 4411 trainer.cc:12] Fatal errors: 0\n"),
    Healthy("F1 score: 0.81\nE = mc2\nError analysis written to errors.json\n"),
    Healthy("reward model: 'The Exception proves the rule'\nstep 3 | loss 1.2\n"),
    Healthy("[rank0]: INFO: exception_rate 0.0 crash_count 0\n"),
    Healthy("torch.distributed.barrier timeout is 1800 s\nwaiting for all ranks (this is not an error)\n"),
    Healthy("Warning: CUDA graph capture failed once, falling back to eager\nstep 3 | loss 1.2\nstep 4 | loss 1.2\n"),
    Healthy("INFO: OOM killer score adjusted to -500\n"),
    Healthy("nvidia-smi: no running processes found; ERR! count 0\n"),
    Healthy(
        '{"level":"error","msg":"sample 12 failed to decode, skipped"}\n{"step": 10, "loss": 2.0}\n{"step": 11, "loss": 2.0}\n'
    ),
    Healthy(
        "wandb: ERROR Error while calling W&B API: internal server error (<Response [500]>), retrying\nstep 3 | loss 1.2 | tok/s 9\n"
    ),
    Healthy("Found 2 GPUs (device 3 not found in CUDA_VISIBLE_DEVICES list is fine)\n"),
    Healthy("KeyError handling: lenient\nImportError fallback: enabled\n"),
    Healthy("RuntimeWarning: invalid value encountered in divide\nRuntimeWarning: overflow encountered in exp\n"),
    Healthy("Downloading data: 100%|██████████| 4.92G/4.92G [02:00<00:00, 41.0MB/s]\n"),
    Healthy("Error bars: 0.1\nerror: 0.03\nErrors: none\n"),
    Healthy("epoch 1 done, failed batches: 0\nTraining epoch 2\n"),
    Healthy("process 3 exited with code 0\nprocess 4 exited with code 0\n"),
    Healthy("aborting is disabled; 'Aborted' states: 0\n"),
    Healthy("[INFO] Segmentation model loaded (fault tolerant mode)\n"),
    Healthy("disk full threshold: 95 %\nquota: 71 % used\n"),
    Healthy(
        'Traceback (most recent call last):\n  File "/x/y.py", line 4, in main\n    f()\nRuntimeError: CUDA out of memory\nOOM: batch size reduced to 8, step repeated\nstep 5 | loss 1\n'
    ),
    Healthy("2026-08-20 04:11:52 ERROR Failed to send telemetry: ConnectionError\n"),
    Healthy(
        "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.\nSuccessfully installed x\n"
    ),
    Healthy("[notice] A new release of pip is available\nERROR:root:metrics upload failed, ignored\n"),
    Healthy(
        "step 5 | loss 1 | tok/s 9\nsaving checkpoint ... done, 0 errors\nstep 6 | loss 1 | tok/s 9\nRuntimeError: CUDA out of memory (caught), retrying step\n"
    ),
    Healthy("nvidia-smi\n| N/A   41C    P0   ERR!  |\n"),
    Healthy(
        "NVRM: Xid (PCI:0000:1b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row (0x1) marked for remapping, reset gpu to activate."
    ),
    Healthy("step 1 | loss nan | tok/s 9\nstep 2 | loss 11.0 | tok/s 9\nstep 3 | loss 10.0 | tok/s 9\n"),
    Healthy(
        "Failed to download (attempt 1/3): ReadTimeout. Trying to resume download...\nmodel.safetensors:  50%|█████     | 2.46G/4.92G [01:00<01:00, 41.0MB/s]"
    ),
    Healthy("Fetching 19 files:  42%|████▏     | 8/19 [02:10<03:00, 16.3s/it]"),
    Healthy("dist init done; heartbeat monitor timeout 480 s; watchdog started\n"),
    Healthy("args.error_file=None args.nan_action='abort' args.on_sigterm=checkpoint\n"),
    Healthy("INFO signal: will save on SIGTERM or SIGUSR1\nINFO killed-by-oom counter at start: 0\n"),
    Healthy("usage of /dev/shm: 12 of 64 GiB (no space problems)\n"),
    Healthy("[Errno 2] optional file not found: generation_config.json\nstep 1 | loss 3\nstep 2 | loss 3\n"),
    Healthy("OSError: [Errno 11] Resource temporarily unavailable (retrying)\nconnected\n"),
    Healthy(
        "torch/nn/parallel/distributed.py:243: UserWarning: find_unused_parameters=True was specified ... error\nstep 2 | loss 3\n"
    ),
    Healthy(
        "last error: none\nprevious crash: segmentation fault at step 300 (fixed in this build)\nstep 2 | loss 3\nstep 3 | loss 3\n"
    ),
    Healthy("# Known failure: RuntimeError: CUDA error: device-side assert triggered -> fixed\nstep 2 | loss 3\n"),
    Healthy('{"error": null, "exception": null, "step": 4, "loss": 1.0}\n'),
    Healthy("Compiling... (Timeout: 3600 s)\n"),
    Healthy("sanity check: loss is not nan, grads finite\n"),
    Healthy("grad overflow count: 3, nan skipped: 3, failed: 0\nstep 3 | loss 2 | tok/s 9\n"),
    Healthy("DataLoader worker 3 timed out once, restarted it\nstep 3 | loss 2 | tok/s 9\nstep 4 | loss 2 | tok/s 9\n"),
    Healthy("(EngineCore_DP0 pid=88) INFO no available errors; CUDA graphs captured\n"),
    Healthy(
        "Evaluating: 100%|██████████| 500/500 [01:00<00:00,  8.3it/s]\n{'eval_loss': 1.1, 'eval_error': 0.2}\nstep 4 | loss 2 | tok/s 9\n"
    ),
    Healthy("WARNING: Rank 3 is slow: allreduce took 12 s (timeout 600 s)\nstep 4 | loss 2 | tok/s 9\n"),
    Healthy("ray: 2 tasks failed and were retried (ok)\n"),
    Healthy("Terminated old run (pid 88) as asked\nKilled: none\nstep 4 | loss 2 | tok/s 9\n"),
    Healthy("Loading error_model... Failed tests: 0. Errors: 0. Exceptions: 0.\n"),
    Healthy("E0820 04:11:52.1 4411 something.cc:12] Check skipped (non fatal)\n"),
    Healthy("step 4 | loss 2 | tok/s 9\ncheckpoint: fsync took 12 s; previous incomplete checkpoint removed\n"),
    Healthy(
        "except Exception as error: # noqa\nraise RuntimeError('CUDA out of memory')\nsource dump ends\nstep 4 | loss 2 | tok/s 9\n"
    ),
    Healthy("    raise ValueError('bad')\n"),
    Healthy("wandb: WARNING Unable to render progress bar, see the user log for details\nstep 4 | loss 2 | tok/s 9\n"),
    Healthy(
        "NVRM: Xid (PCI:0000:c1:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy("NVRM: Xid (PCI:0000:c1:00): 63, pid=1, name=python, Row remapping event\n"),
    Healthy(
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=16 max_depth=16\n[2026-02-14 02:12:00] loop.py:280 INFO Pool full (pool_size=64), back-pressure on targets\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=16 max_depth=16\n"
    ),
    Healthy(
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy("step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nSaving checkpoint at step 2000...\n"),
    Healthy("Loading checkpoint shards:  50%|█████     | 2/4 [04:10<04:10, 125.0s/it]"),
    Healthy("Map (num_proc=8):  12%|█▏        | 14000/120675 [18:57<2:20:37, 12.69 examples/s]"),
    Healthy("compiling... first step takes about 7 minutes\n"),
    Healthy(
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nWARNING: error_rate=0.1 errors=0 failed=0 killed=0\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy(
        "ERROR:root:sample 5 broken, skipped\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nstep 1850 | loss 1.2734 | tok/s 20,318 | min_ready=6 max_depth=16\n"
    ),
    Healthy(
        'Traceback (most recent call last):\n  File "/root/train.py", line 4, in main\n    f()\nValueError: broken sample\nWARNING: sample skipped\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nstep 1850 | loss 1.2734 | tok/s 20,318 | min_ready=6 max_depth=16\n'
    ),
    Healthy(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nretrying with batch 4\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nstep 1850 | loss 1.2734 | tok/s 20,318 | min_ready=6 max_depth=16\n"
    ),
    Healthy(
        "def f():\n    raise RuntimeError('CUDA out of memory')  # source dump\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy(
        "[rank3]:[W820 04:15:17.5 socket.cpp:460] [c10d] waitForInput: poll for socket returned 0, likely a timeout\n[rank3]: retry ok\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nstep 1850 | loss 1.2734 | tok/s 20,318 | min_ready=6 max_depth=16\n"
    ),
    Healthy(
        "gpu7:1:2 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\ngpu7:1:2 [0] misc/ibvwrap.cc:66 NCCL WARN Call to ibv_open_device failed\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy(
        "gpu7:1:2 [0] NCCL WARN NET/IB : No device found.\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy("step 10 | loss 1.27 | tok/s 9\nLoss is nan guard: ok\nstep 11 | loss 1.27 | tok/s 9\n"),
    Healthy("{'loss': 1.2, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.0}\n"),
    Healthy("Killed by operator: none\nRestart count: 0\n"),
    Healthy(
        "systemd[1]: Started session-3.scope\nsystemd-logind[7]: Removed session 2.\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy(
        "torch.distributed.elastic: max_restarts=3, exitcode of the last attempt: 0\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy("FAILED tests: 0\nOK\n"),
    Healthy(
        "2026-02-14 02:11:52 - ERROR - evaluation harness: 3 of 100 answers failed to parse\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nstep 1850 | loss 1.2734 | tok/s 20,318 | min_ready=6 max_depth=16\n"
    ),
    Healthy("2026-02-14 02:11:52 - ERROR - 3 of 100 answers failed to parse\n"),
    Healthy(
        "Exception counters: {'ValueError': 0, 'KeyError': 0}\nstep 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\n"
    ),
    Healthy(
        "step 912 | loss 1.5511 | tok/s 18,204 | min_ready=7 max_depth=16\nEpoch 1 validation: error 12.1 %, top-5 error 3.1 %\n"
    ),
)
