"""Lines of each trainer with other numbers, prefixes, colours and precision: kind, step, loss, and tokens/s where global.

Every line stands alone; `\\n` in one means a record of several lines. The loss of an `eval` line is the validation loss.
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    line: str
    kind: str
    step: int | None = None
    loss: float | None = None
    tok_s: float | None = None


_MEG = (
    "iteration {step:>8}/   90000 | consumed samples: {samples:>12} | elapsed time per iteration (ms): {ms} | {more}"
    "learning rate: {lr} | global batch size: {batch:>5} | {loss}loss scale: {scale} | grad norm: {norm} | "
    "number of skipped iterations:   0 | number of nan iterations:   {nans} |"
)


def _meg(step: int, loss: str, *, ms: str = "745.1", more: str = "", norm: str = "0.811", nans: int = 0) -> str:
    return _MEG.format(
        step=step,
        samples=step * 512,
        ms=ms,
        more=more,
        lr="2.750000E-04",
        batch=512,
        loss=loss,
        scale="65536.0",
        norm=norm,
        nans=nans,
    )


_TITAN = "step: {step:>2}  loss: {loss}  grad_norm: {norm}  memory: {mem}  tps: {tps}  tflops: {tf}  mfu: {mfu}"
_NEMO = "Training epoch {e}, iteration {n}/{t} | lr: {lr} | global_batch_size: {b} | global_step: {n} | "
_BAR = " {pct}%|{bar}| {n}/{t} [{el}<{eta}, {rate}]"
_VERL = (
    "global_seqlen/mean:{m} - actor/entropy:0.311 - actor/pg_loss:{pg} - actor/grad_norm:{g} - "
    "critic/score/mean:0.52 - perf/mfu/actor:0.31 - perf/time_per_step:{s} - perf/throughput:{t}"
)

LINES: dict[str, list[Case]] = {
    "megatron": [
        Case(" [2026-03-09 22:41:07.004120] " + _meg(7, "lm loss: 1.073301E+01 | "), "step", 7, 10.73301),
        Case(" " + _meg(90000, "lm loss: 1.511200E+00 | "), "step", 90000, 1.5112),
        Case("[rank15]: " + _meg(333, "lm loss: 4.25E+00 | "), "step", 333, 4.25),
        Case(
            " [2026-03-09 22:41:07.004120] "
            + _meg(410, "lm loss: 3.9E+00 | ", more="throughput per GPU (TFLOP/s/GPU): 612.7 | "),
            "step",
            410,
            3.9,
        ),
        Case(" [2026-03-09 22:41:07.004120] " + _meg(500, "", nans=12, norm="nan"), "step", 500),
        Case(
            " iteration      120/   9000 | consumed samples:         7680 | consumed tokens:     15728640 | elapsed time per"
            " iteration (s): 1.52 | learning rate: 5.859E-06 | global batch size:    64 | lm loss: 9.411820E+00 | loss "
            "scale: 4096.0 | grad norm: 3.101 | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan "
            "iterations:   0 | samples per second: 42.105 | tokens per gpu per second (tgs): 10778.9 | TFLOPs: 101.2 |",
            "step",
            120,
            9.41182,
        ),
        Case(
            "\x1b[32m"
            + _meg(64, "lm loss: 6.5E+00 | mtp_1 loss: 7.5E+00 | load_balancing_loss: 1.01E+00 | ")
            + "\x1b[0m",
            "step",
            64,
            6.5,
        ),
        Case(
            " validation loss at iteration 2500 | lm loss value: 2.400000E+00 | lm loss PPL: 1.1E+01 | ",
            "eval",
            2500,
            2.4,
        ),
        Case(
            " validation loss at iteration 300 on validation set | lm loss value: 3.125000E+00 | lm loss PPL: 2.27E+01 | ",
            "eval",
            300,
            3.125,
        ),
        Case(
            " validation loss at the end of training for val data | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 | ",
            "eval",
            None,
            2.5,
        ),
        Case("saving checkpoint at iteration   12000 to /lustre/ckpt in torch_dist format", "ckpt", 12000),
        Case("  successfully saved checkpoint from iteration   12000 to /lustre/ckpt [ t 1/4, p 1/2 ]", "ckpt", 12000),
        Case("  train_iters ..................................... 90000", "header"),
        Case("  micro_batch_size ................................ 2", "header"),
        Case("(min, max) time across ranks (ms):", "other"),
        Case("    forward-backward ...............................: (640.11, 641.92)", "other"),
        Case("  successfully loaded checkpoint from /lustre/ckpt [ t 1/4, p 1/2 ] at iteration 12000", "other"),
    ],
    "nemo": [
        Case(
            _NEMO.format(e=0, n=4, t=999, lr="1e-06", b=32)
            + "reduced_train_loss: 11.03 | train_step_timing in s: 9.871",
            "step",
            4,
            11.03,
        ),
        Case(
            _NEMO.format(e=2, n=15000, t=19999, lr=0.0001, b=1024)
            + "reduced_train_loss: 1.9 | train_step_timing in s: 4",
            "step",
            15000,
            1.9,
        ),
        Case(
            "[NeMo I 2026-03-09 22:41:07 nemo_logging:393] "
            + _NEMO.format(e=0, n=55, t=99, lr=3e-05, b=8)
            + "reduced_train_loss: 4.5 | train_step_timing in s: 0.512 | consumed_samples: 448 | val_loss: 4.75",
            "step",
            55,
            4.5,
        ),
        Case(
            "[rank0]: "
            + _NEMO.format(e=0, n=9, t=99, lr=0, b=8)
            + "reduced_train_loss: 8.25 | train_step_timing in s: 1.5",
            "step",
            9,
            8.25,
        ),
        Case(
            "Training epoch 0, iteration 9/99 | lr: 0 | reduced_train_loss: nan | train_step_timing in s: 1.5",
            "step",
            9,
        ),
        Case("i.finetune/0 Training epoch 0, iteration 9/99 | lr: 0 | reduced_train_loss: 2.5", "step", 9, 2.5),
        Case(
            "Training epoch 1, iteration 0/99 | lr: 2e-05 | global_batch_size: 16 | reduced_train_loss: 3",
            "step",
            0,
            3.0,
        ),
        Case("Validation: iteration 1/5", "eval"),
        Case("Validation: iteration 50/50", "eval"),
        Case("Sanity checking Validation: iteration 2/2", "other"),
        Case(
            "Epoch 0: :   1%|          | 70/7000 [04:00<6:36:00, v_num=2, reduced_train_loss=6.5, global_step=69.0, "
            "consumed_samples=17920, train_step_timing in s=3.41]",
            "step",
            69,
            6.5,
        ),
    ],
    "torchtitan": [
        Case(
            "[titan] 2026-03-09 22:41:07,004 - root - INFO - "
            + _TITAN.format(
                step=3, loss=" 9.87654", norm=" 2.1000", mem="12.01GiB(8.59%)", tps="1,234,567", tf="40.11", mfu="4.05%"
            ),
            "step",
            3,
            9.87654,
        ),
        Case(
            "[titan] 2026-03-09 22:41:07,004 - root - INFO - "
            + _TITAN.format(
                step=150000,
                loss=" 2.00001",
                norm=" 0.2000",
                mem="131.01GiB(93.71%)",
                tps="9,876",
                tf="1,022.40",
                mfu="103.38%",
            ),
            "step",
            150000,
            2.00001,
        ),
        Case(
            "[rank0]:2026-03-09 22:41:07,004 - root - INFO - \x1b[31mstep: 88  \x1b[32mloss:  5.5000  \x1b[33mmemory: 10.00GiB(7.15%)  \x1b[34mtps: 12  \x1b[36mtflops: 1.00  \x1b[35mmfu: N/A\x1b[39m",
            "step",
            88,
            5.5,
        ),
        Case(
            "\x1b[38;2;180;60;0mstep: 41  \x1b[38;2;0;60;180mloss:  4.2500  grad_norm:  1.0000  tps: 5,120\x1b[0m",
            "step",
            41,
            4.25,
        ),
        Case(
            "[rank7]: [rank7]: [titan] 2026-03-09 22:41:07,004 - root - INFO - step: 12  loss:  7.7500  wps: 3,210  mfu: 12.00%",
            "step",
            12,
            7.75,
        ),
        Case(
            "[titan] 2026-03-09 22:41:07,004 - root - INFO - step:  5  loss:      nan  grad_norm:     nan  tps: 800  mfu: 1.00%",
            "step",
            5,
        ),
        Case(
            "[titan] 2026-03-09 22:41:07,004 - root - INFO - validate step: 500  loss:  3.8750  memory: 44.00GiB(31.47%)  tps: 21,000",
            "eval",
            500,
            3.875,
        ),
        Case("[titan] 2026-03-09 22:40:58,104 - root - INFO - Training starts at step 501", "header"),
        Case(
            "[titan] 2026-03-09 22:40:50,104 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]",
            "header",
        ),
        Case(
            "[titan] 2026-03-09 22:40:50,104 - root - INFO - Trainer is initialized with local batch size 2, global batch size 16, gradient accumulation steps 1, sequence length 4096, total steps 900 (warmup 40)",
            "header",
        ),
        Case("[titan] 2026-03-09 22:40:50,104 - root - INFO - Peak FLOPS used for computing MFU: 9.890e+14", "header"),
        Case(
            "[titan] 2026-03-09 22:45:00,104 - root - INFO - Saving the checkpoint (or staging if async is enabled).",
            "ckpt",
        ),
        Case("[titan] 2026-03-09 22:45:09,104 - root - INFO - Finished saving the checkpoint in 9.02 seconds.", "ckpt"),
        Case(
            "[titan] 2026-03-09 22:40:51,104 - root - INFO - Loading the checkpoint from outputs/checkpoint/step-500.",
            "other",
        ),
        Case("[titan] 2026-03-09 22:46:00,104 - root - INFO - Sleeping 2 seconds for other ranks to complete", "other"),
    ],
    "nanogpt": [
        Case("iter 0: loss 10.9886, time 41234.56ms, mfu -100.00%", "step", 0, 10.9886),
        Case("iter 599990: loss 2.8471, time 250.1ms, mfu 51.07%", "step", 599990, 2.8471),
        Case("[rank0]: iter 17: loss 7.5000, time 99.99ms, mfu 40.00%", "step", 17, 7.5),
        Case("2026-03-09 22:41:07 iter 18: loss 7.2500, time 1000.00ms, mfu 4.00%", "step", 18, 7.25),
        Case("0: iter 19: loss 7.0000, time 12.50ms, mfu 4.00%", "step", 19, 7.0),
        Case("iter 20: loss nan, time 412.00ms, mfu 38.00%", "step", 20),
        Case("\x1b[1miter 21: loss 6.7500, time 412.00ms, mfu 38.00%\x1b[0m", "step", 21, 6.75),
        Case("step 0: train loss 10.9890, val loss 10.9871", "eval", 0, 10.9871),
        Case("step 12000: train loss 2.9500, val loss 2.9950", "eval", 12000, 2.995),
        Case("tokens per iteration will be: 32,768", "header"),
        Case("number of parameters: 123.59M", "header"),
        Case("num decayed parameter tensors: 50, with 124,318,464 parameters", "header"),
        Case("using fused AdamW: True", "header"),
        Case("saving checkpoint to out-shakespeare-char", "ckpt"),
        Case("found vocab_size = 65 (inside data/shakespeare_char/meta.pkl)", "header"),
    ],
    "modded-nanogpt": [
        Case("step:0/1750 val_loss:10.8258 train_time:0ms step_avg:0.03ms", "eval", 0, 10.8258),
        Case("step:1/1750 train_time:94ms step_avg:94.21ms", "step", 1),
        Case("step:1749/1750 train_time:160321ms step_avg:91.66ms", "step", 1749),
        Case("step:1750/1750 val_loss:3.2786 train_time:160412ms step_avg:91.66ms", "eval", 1750, 3.2786),
        Case("step:11/9536 train_loss:7.7311 train_time:1031ms step_avg:1030.77ms", "step", 11, 7.7311),
        Case("step:12/9536 train_loss:7.5 train_time:2s step_avg:1030.77ms", "step", 12, 7.5),
        Case("[rank0]: step:40/1395 train_time:5000ms step_avg:125.00ms", "step", 40),
        Case("2026-03-09T22:41:07Z step:41/1395 train_time:5125ms step_avg:125.00ms", "step", 41),
        Case("step:625/1395 val_loss:nan train_time:78600ms step_avg:125.76ms", "eval", 625),
        Case("    model.train() # step:{step}/{total} train_time:{t}ms step_avg:{a}", "other"),
        Case("for step in range(train_steps + 1):", "other"),
        Case("peak memory allocated: 39241 MiB reserved: 40016 MiB", "other"),
    ],
    "hf-trainer": [
        Case("{'loss': 11.25, 'grad_norm': 3.0, 'learning_rate': 0.0, 'epoch': 0}", "step", None, 11.25),
        Case("{'loss': 0.731, 'learning_rate': 1.234567890123e-06, 'epoch': 2.999}", "step", None, 0.731),
        Case("{'loss': '0.5012', 'grad_norm': '12.1', 'learning_rate': '9.9e-05', 'epoch': '1'}", "step", None, 0.5012),
        Case("{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.5}", "step"),
        Case(
            "{'loss': '1.5', 'train_tokens_per_second': '3.055e+04', 'num_input_tokens_seen': 1048576, 'train_runtime': '34.3', 'epoch': '0.1'}",
            "step",
            None,
            1.5,
            30550.0,
        ),
        Case(
            "\r  0%|          | 3/5000 [00:05<2:20:01,  1.68s/it]\r                    \r{'loss': 2.75, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.0}",
            "step",
            3,
            2.75,
        ),
        Case("  4%|▍         | 214/5000 [06:00<2:14:09,  1.68s/it]", "step", 214),
        Case(" 99%|█████████▉| 4,950/5000 [2:18:00<01:24,  1.68s/it]", "step", 4950),
        Case("100%|██████████| 5000/5000 [2:20:00<00:00,  1.05it/s]", "step", 5000),
        Case(
            "  5%|▌         | 250/5000 [07:00<2:13:00,  1.68s/it][INFO|trainer.py:3503] 2026-03-09 22:41:07,004 >> Saving model checkpoint to out/checkpoint-250",
            "ckpt",
            250,
        ),
        Case(
            "  5%|▌         | 251/5000 [07:02<2:13:00,  1.68s/it]{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}",
            "step",
            251,
            2.5,
        ),
        Case(
            "{'eval_loss': 0.912, 'eval_runtime': 3.1, 'eval_samples_per_second': 100.0, 'eval_steps_per_second': 12.5, 'epoch': 1.0}",
            "eval",
            None,
            0.912,
        ),
        Case("{'eval_loss': 'nan', 'eval_accuracy': '0.1', 'epoch': '2'}", "eval"),
        Case(
            "{'train_runtime': '811.5', 'train_samples_per_second': '12.1', 'train_steps_per_second': '0.4', 'train_loss': '1.7', 'epoch': '3'}",
            "other",
        ),
        Case("  Num examples = 12,345", "header"),
        Case("  Total optimization steps = 5,000", "header"),
        Case("  Instantaneous batch size per device = 4", "header"),
        Case("***** Running training *****", "header"),
        Case("[INFO|trainer.py:2134] 2026-03-09 22:41:07,004 >>   Gradient Accumulation steps = 8", "header"),
    ],
    "trl": [
        Case(
            "{'loss': -0.0, 'grad_norm': 0.0, 'learning_rate': 1e-06, 'num_tokens': 99.0, 'reward': 0.0, 'reward_std': 0.0, 'kl': 0.0, 'epoch': 0.0}",
            "step",
            None,
            0.0,
        ),
        Case(
            "{'loss': 0.4811, 'grad_norm': 2.25, 'learning_rate': 4e-07, 'rewards/chosen': 1.25, 'rewards/rejected': -0.5, 'rewards/accuracies': 0.875, 'rewards/margins': 1.75, 'epoch': 0.3}",
            "step",
            None,
            0.4811,
        ),
        Case(
            "{'num_tokens': 5.0, 'completions/mean_length': 12.0, 'rewards/step_format/mean': 0.5, 'loss': 0.0125, 'epoch': 0.03}",
            "step",
            None,
            0.0125,
        ),
        Case(
            "{'loss': '0.6931', 'grad_norm': '8.5', 'learning_rate': '5e-07', 'logps/chosen': '-310.2', 'epoch': '0.01'}",
            "step",
            None,
            0.6931,
        ),
        Case(
            "{'eval_loss': 0.61, 'eval_runtime': 9.0, 'eval_rewards/chosen': 0.5, 'eval_num_tokens': 800.0, 'epoch': 0.5}",
            "eval",
            None,
            0.61,
        ),
        Case("{'eval_val_loss': 0.75, 'eval_val_runtime': 9.0, 'epoch': 0.5}", "eval"),
        Case(
            "{'loss': 1.5, 'entropy': 0.9, 'num_tokens': 2097152.0, 'mean_token_accuracy': 0.66, 'epoch': 0.2}",
            "step",
            None,
            1.5,
        ),
        Case("[rank0]: {'loss': 1.25, 'num_tokens': 1.0, 'epoch': 0.2}", "step", None, 1.25),
        Case("\x1b[34m{'loss': 1.0, 'num_tokens': 1.0, 'epoch': 0.2}\x1b[0m", "step", None, 1.0),
        Case("  2%|▏         | 20/1000 [01:00<49:00,  3.00s/it]", "step", 20),
        Case(
            "Tokenizing train dataset (num_proc=8): 100%|██████████| 52002/52002 [00:10<00:00, 5012.11 examples/s]",
            "other",
        ),
        Case("Truncating train dataset: 100%|██████████| 52002/52002 [00:01<00:00, 50120.11 examples/s]", "other"),
    ],
    "axolotl": [
        Case(
            "{'loss': '2.021', 'grad_norm': '1.1', 'learning_rate': '2e-06', 'ppl': '7.546', 'memory/max_active (GiB)': '20.1', 'tokens/train_per_sec_per_gpu': '811.2', 'tokens/total': 81920, 'tokens/trainable': 4096, 'epoch': '0.01'}",
            "step",
            None,
            2.021,
        ),
        Case(
            "{'loss': 0.75, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'memory/max_mem_active(gib)': 20.1, 'tokens_per_second_per_gpu': 5120.5, 'epoch': 0.9}",
            "step",
            None,
            0.75,
        ),
        Case("\x1b[32m{'loss': '1.5', 'ppl': '4.48', 'epoch': '0.31'}\x1b[39m", "step", None, 1.5),
        Case("{'eval_loss': '1.25', 'eval_ppl': '3.49', 'eval_runtime': '9.1', 'epoch': '1'}", "eval", None, 1.25),
        Case("[2026-03-09 22:41:07,004] [INFO] [axolotl.train.train:201] [PID:4121] Starting trainer...", "header"),
        Case(
            "[2026-03-09 22:41:07,004] [INFO] [axolotl.core.trainers.base.save:1] [RANK:1] Saving model checkpoint to /out/checkpoint-1250",
            "ckpt",
            1250,
        ),
        Case("[2026-03-09 22:41:07,004] [INFO] [axolotl.train] Saving trained model to ./outputs/out.", "other"),
        Case("[2026-03-09 22:41:07,004] [DEBUG] [axolotl.utils.trainer] [RANK:0] total_num_tokens: 4_411_230", "other"),
        Case(
            "[2026-03-09 22:41:07,004] [INFO] [axolotl.utils.data.sft] [RANK:0] Loading prepared dataset from disk",
            "other",
        ),
        Case(" 13%|█▎        | 64/500 [10:00<1:08:07,  9.37s/it]", "step", 64),
        Case(
            "\x1b[33m[2026-03-09 22:41:07,004] [WARNING] [axolotl.utils.schemas] [RANK:5] eval_sample_packing is off\x1b[39m",
            "other",
        ),
    ],
    "llama-factory": [
        Case(
            '{"current_steps": 10, "total_steps": 900, "loss": 2.125, "lr": 1.2e-06, "epoch": 0.03, "percentage": 1.11, "elapsed_time": "0:00:41", "remaining_time": "1:01:00", "throughput": 9876.54, "total_tokens": 405504}',
            "step",
            10,
            2.125,
            9876.54,
        ),
        Case(
            '{"current_steps": 20, "total_steps": 900, "loss": 1.875, "learning_rate": 2.4e-06, "epoch": 0.06, "percentage": 2.22, "elapsed_time": "0:01:22", "remaining_time": "1 day, 1:00:00"}',
            "step",
            20,
            1.875,
        ),
        Case(
            '{"current_steps": 450, "total_steps": 900, "eval_loss": 1.0625, "epoch": 1.5, "percentage": 50.0, "elapsed_time": "0:30:00", "remaining_time": "0:30:00", "throughput": 9800.0}',
            "eval",
            450,
            1.0625,
        ),
        Case('{"current_steps": 30, "total_steps": 900, "loss": NaN, "lr": 3e-06, "epoch": 0.1}', "step", 30),
        Case(
            "{'loss': 1.75, 'learning_rate': 3e-06, 'epoch': 0.1, 'throughput': 9900.25}", "step", None, 1.75, 9900.25
        ),
        Case(
            "[INFO|2026-03-09 22:41:07] llamafactory.train.callbacks:143 >> {'loss': 0.9912, 'learning_rate': 1.1e-05, 'epoch': 2.5, 'throughput': 1500.0}",
            "step",
            None,
            0.9912,
            1500.0,
        ),
        Case(
            "[INFO|callbacks.py:311] 2026-03-09 22:41:07,004 >> {'loss': 0.75, 'learning_rate': 1.1e-05, 'epoch': 2.5, 'throughput': 1600.5}",
            "step",
            None,
            0.75,
            1600.5,
        ),
        Case(
            "{'loss': 0.5, 'grad_norm': 0.25, 'learning_rate': 1e-05, 'epoch': 2.75, 'num_input_tokens_seen': 4096}",
            "step",
            None,
            0.5,
        ),
        Case(
            "{'eval_loss': 0.875, 'eval_runtime': 10.0, 'epoch': 2.75, 'num_input_tokens_seen': 4096}",
            "eval",
            None,
            0.875,
        ),
        Case(
            "[INFO|trainer.py:4226] 2026-03-09 22:41:07,004 >> Saving model checkpoint to saves/lora/sft/checkpoint-300",
            "ckpt",
            300,
        ),
        Case("  8%|▊         | 72/900 [05:00<57:30,  4.17s/it]", "step", 72),
        Case("[INFO|2026-03-09 22:41:07] llamafactory.data.loader:143 >> Loading dataset identity.json...", "other"),
    ],
    "unsloth": [
        Case("==((====))==  Unsloth 2026.3.1: Fast Llama patching. Transformers: 5.1.0.", "header"),
        Case("   \\\\   /|    NVIDIA H200. Num GPUs = 1. Max memory: 139.8 GB. Platform: Linux.", "header"),
        Case("O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4", "header"),
        Case("\\        /    Data Parallel GPUs = 1 | Total batch size (2 x 4 x 1) = 8", "header"),
        Case(' "-____-"     Trainable parameters = 41,943,040/8,072,204,288 (0.52% trained)', "header"),
        Case("   \\\\   /|    Num examples = 9,846 | Num Epochs = 3 | Total steps = 3,693", "header"),
        Case("{'loss': 0.4521, 'grad_norm': 0.31, 'learning_rate': 0.000199, 'epoch': 0.01}", "step", None, 0.4521),
        Case(
            "{'loss': '0.4521', 'grad_norm': '0.31', 'learning_rate': '0.000199', 'epoch': '0.01'}",
            "step",
            None,
            0.4521,
        ),
        Case("  2%|▏         | 60/3693 [00:59<59:59,  1.01it/s]", "step", 60),
        Case("{'train_runtime': 91.2, 'train_loss': 1.01, 'epoch': 0.04}", "other"),
        Case("Unsloth: Will smartly offload gradients to save VRAM!", "header"),
    ],
    "deepspeed": [
        Case(
            "[2026-03-09 22:41:07,004] [INFO] [logging.py:128:log_dist] [Rank 0] step=2500, skipped=12, lr=[0.00015], mom=[[0.9, 0.95]]",
            "step",
            2500,
        ),
        Case(
            "[2026-03-09 22:41:07,004] [INFO] [logging.py:96:log_dist] [Rank 0] step=7, skipped=7, lr=[0.0, 0.0], mom=[(0.9, 0.999), (0.9, 0.999)]",
            "step",
            7,
        ),
        Case(
            "[2026-03-09 22:41:07,004] [INFO] [timer.py:264:stop] epoch=3/micro_step=1600/global_step=200, RunningAvgSamplesPerSec=-inf, CurrSamplesPerSec=7.125, MemAllocated=9.9GB, MaxMemAllocated=70.01GB",
            "step",
            200,
        ),
        Case("[default0]:steps: 900 loss: 1.9531 iter time (s): 0.412 samples/sec: 621.359", "step", 900, 1.9531),
        Case("steps: 1 loss: 10.9375 iter time (s): 31.021 samples/sec: 8.252", "step", 1, 10.9375),
        Case("steps: 12 loss: 2.5000 lr: 1.0e-05 iter time (s): 1.000 samples/sec: 64.000", "step", 12, 2.5),
        Case("steps: 13 loss: nan iter time (s): 1.000 samples/sec: 64.000", "step", 13),
        Case(
            "[2026-03-09 22:41:07,004] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 4096, but hysteresis is 2.",
            "other",
        ),
        Case(
            "[2026-03-09 22:41:07,004] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 99.10 | bwd: 201.33 | step: 11.02",
            "other",
        ),
        Case("[2026-03-09 22:41:07,004] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4121", "other"),
        Case("[2026-03-09 22:41:07,004] [INFO] [config.py:1003:print]   train_batch_size ............. 256", "header"),
        Case(
            "[2026-03-09 22:41:07,004] [INFO] [engine.py:3450:save_16bit_model] Saving model weights to out/pytorch_model.bin",
            "other",
        ),
    ],
    "lightning": [
        Case("Epoch 0:   0%|          | 1/5000 [00:03<5:12:04,  0.27it/s, v_num=0, train_loss=11.20]", "step", 1, 11.2),
        Case(
            "Epoch 12: 100%|██████████| 5000/5000 [1:02:00<00:00,  1.34it/s, v_num=0, train/loss=0.875]",
            "step",
            5000,
            0.875,
        ),
        Case(
            "Epoch 1:  50%|█████     | 50/100 [00:05<00:05, 10.00it/s, v_num=abc1, loss_step=0.625, loss_epoch=0.75]",
            "step",
            50,
            0.625,
        ),
        Case("Epoch 0:  10%|█         | 10/100 [00:01<00:09, 10.00it/s, v_num=0]", "step", 10),
        Case("Epoch 0: |          | 77/? [00:30<00:00,  2.50it/s, v_num=0, train_loss=3.250]", "step", 77, 3.25),
        Case(
            "Epoch 4:  25%|██▌       | 250/1000 [02:05<06:15,  2.00it/s, loss=1.5, v_num=1, val_loss=1.75]",
            "step",
            250,
            1.5,
        ),
        Case(
            "Epoch 2/9  ━━━━━━━╸         300/1000 0:02:30 • 0:05:50 2.00it/s v_num: 0.000 train_loss: 1.125 val_loss: 1.25",
            "step",
            300,
            1.125,
        ),
        Case("Epoch 0/-2 ━━━━━━━━━━━━━━━━ 12/12 0:00:06 • 0:00:00 2.00it/s v_num: 0.000", "step", 12),
        Case("Validation DataLoader 1: 100%|██████████| 40/40 [00:20<00:00,  2.00it/s]", "eval"),
        Case("Validating:  25%|██▌       | 10/40 [00:05<00:15,  2.00it/s]", "eval"),
        Case("Sanity Checking DataLoader 0:  50%|█████     | 1/2 [00:00<00:00,  8.11it/s]", "other"),
        Case("`Trainer.fit` stopped: `max_epochs=12` reached.", "other"),
        Case(
            "[rank0]: Epoch 0:   2%|▏         | 20/1000 [00:10<08:10,  2.00it/s, v_num=0, train_loss=nan.0]", "step", 20
        ),
        Case("GPU available: True (cuda), used: True", "header"),
        Case("LOCAL_RANK: 3 - CUDA_VISIBLE_DEVICES: [0,1,2,3,4,5,6,7]", "header"),
    ],
    "composer": [
        Case("[batch=1/90]:", "step", 1),
        Case("[batch=4,799/4,800]:", "step", 4799),
        Case("[epoch=1/2][batch=45/90]:", "step", 45),
        Case("\t Train time/batch: 119", "other"),
        Case("\t Train loss/train/total: 11.0625", "other", None, 11.0625),
        Case("\t Train metrics/train/LanguageCrossEntropy: 2.5000", "other", None, 2.5),
        Case("\t Train throughput/tokens_per_sec: 1250000.1250", "other", None, None, 1250000.125),
        Case("\t Train throughput/device/tokens_per_sec: 9999.5000", "other"),
        Case("\t Train lr-DecoupledAdamW/group0: 0.0001", "other"),
        Case("[Eval batch=1/40] Eval on lambada data:", "eval"),
        Case("\t Eval metrics/eval/LanguageCrossEntropy: 2.8750", "eval", None, 2.875),
        Case("\t Eval metrics/lambada/0-shot/InContextLearningLMAccuracy: 0.5512", "eval"),
        Case(
            "2026-03-09 22:41:07,004: rank0[4121][MainThread]: INFO: composer.trainer.trainer: Setting seed to 17",
            "other",
        ),
        Case(
            "2026-03-09 22:41:07,004: rank0[4121][MainThread]: INFO: composer.utils.reproducibility: Run name: llm-7b",
            "header",
        ),
        Case(
            "2026-03-09 22:41:07,004: rank0[4121][MainThread]: INFO: composer.callbacks.checkpoint_saver: Saving checkpoint to ckpt/ep0-ba500-rank0.pt",
            "ckpt",
            500,
        ),
    ],
    "specforge": [
        Case("step 5: {'train/loss': 6.5, 'train/acc': 0.01, 'train/lr': 1e-06}", "step", 5, 6.5),
        Case(
            "step 12345: {'loss': 0.8125, 'acc': 0.71, 'lr': 0.0001, 'perf/global_samples_per_second': 101.5}",
            "step",
            12345,
            0.8125,
        ),
        Case("step 500: {'eval/loss': 0.9375, 'eval/acc_0': 0.7}", "eval", 500, 0.9375),
        Case(
            "03/09/2026 22:41:07 - INFO - specforge.training.assembly - step 6: {'train/loss': 6.25, 'train/lr': 1e-06}",
            "step",
            6,
            6.25,
        ),
        Case("Train - Step 77 [77/9000?], Loss: 3.1250, Acc: 0.2222", "step", 77, 3.125),
        Case("Train - Step 9000 [9000/9000], Loss: 0.9999, Acc: 0.7000", "step", 9000, 0.9999),
        Case("Train - Step 1200 [1201/10], position 2,  Acc: 0.45", "step", 1200),
        Case("Eval - Step 1200 [1201/10], position 6,  pLoss: 1.25", "step", 1200),
        Case(
            "Training Epoch 0:  10%|█         | 64/640 [01:04<09:36,  1.00s/it, loss=2.25, acc=0.41, iter_time=1.0]",
            "step",
            64,
            2.25,
        ),
        Case("Saved checkpoint to /out/eagle3/epoch_3_step_12000", "ckpt", 12000),
        Case("Filtered eval dataset: 1000 -> 998 samples", "header"),
        Case("03/09/2026 22:41:07 - INFO - specforge.utils - rank 5: Initialized distributed", "header"),
        Case("Map (num_proc=16):   3%|▎         | 90/3000 [00:01<00:40, 72.10 examples/s]", "other"),
    ],
    "dflash-training": [
        Case("Epoch 0 | Step 10/90 | Loss 9.8750 | LR 1.00e-06 | Elapsed 61.0s", "step", 10, 9.875),
        Case("Epoch 12 | Step 123456/200000 | Loss 0.5001 | LR 0.00e+00 | Elapsed 0.4s", "step", 123456, 0.5001),
        Case("[rank0]: Epoch 1 | Step 20/90 | Loss 8.5000 | LR 2.00e-06 | Elapsed 9.9s", "step", 20, 8.5),
        Case(
            "2026-03-09 22:41:07,004 - INFO - Epoch 1 | Step 30/90 | Loss 8.2500 | LR 3.00e-06 | Elapsed 9.9s",
            "step",
            30,
            8.25,
        ),
        Case("\x1b[36mEpoch 1 | Step 40/90 | Loss 8.0000 | LR 4.00e-06 | Elapsed 9.9s\x1b[0m", "step", 40, 8.0),
        Case("Epoch 1 | Step 50/90 | Loss nan | LR 5.00e-06 | Elapsed 9.9s", "step", 50),
        Case("Epoch 1 | Step 60/90 | Loss 7.7500 | LR 6e-06", "step", 60, 7.75),
        Case("0: Epoch 1 | Step 70/90 | Loss 7.5000 | LR 7.00e-06 | Elapsed 9.9s", "step", 70, 7.5),
        Case("Checkpoint saved at step 90 → out/step_90", "ckpt", 90),
        Case("Total steps: 90, warmup: 3", "header"),
        Case("Epoch 1 | Step is next", "other"),
    ],
    "torchspec": [
        Case(
            "Training:   0%|          | 1/9000 [00:09<25:00:00,  9.99s/step, loss=9.812, acc=0.001, acc_len=1.00, thru=3.1, I=3.1, T=64.0, wait=8.9s, pool=0, epoch=1/2]",
            "step",
            1,
            9.812,
        ),
        Case(
            "Training:  50%|█████     | 4500/9000 [15:00<15:00,  5.00step/s, loss=1.125, acc=0.600, acc_len=3.75, thru=80.0, I=81.0, T=80.0, wait=0.0s, pool=512, epoch=2/2]",
            "step",
            4500,
            1.125,
        ),
        Case(
            "(TrainController pid=77, ip=10.0.0.3) Training:  10%|█         | 900/9000 [03:00<27:00,  5.00step/s, loss=2.5, acc=0.3, acc_len=2.1, thru=80.0, I=81.0, T=80.0, wait=0.0s, pool=64, epoch=1/2]",
            "step",
            900,
            2.5,
        ),
        Case(
            "[2026-03-09 22:41:07] loop.py:347 INFO TIMING step=900: step=1.012s data=0.800s compute=0.190s dispatch=0.040s",
            "step",
            900,
        ),
        Case(
            "(TrainController pid=77) [2026-03-09 22:41:07] loop.py:347 INFO TIMING step=12: step=0.5s data=0.1s",
            "step",
            12,
        ),
        Case("[2026-03-09 22:41:07] loop.py:386 INFO Saving checkpoint at step 9000...", "ckpt", 9000),
        Case(
            "[2026-03-09 22:41:07] inference_manager.py:375 WARNING Sample pool full, pausing generation: pool_size=64/64",
            "other",
        ),
        Case(
            "[2026-03-09 22:41:07] loop.py:280 WARNING Pool insufficient for dispatch (pool_size=0, need=32, 1/4 dispatches done, 9/900 steps in epoch). Reloading dataset.",
            "other",
        ),
        Case(
            "(TrainerActor pid=5121) [2026-03-09 22:41:07] trainer.py:143 INFO [Rank 3] EagleMooncakeStore initialized",
            "header",
        ),
        Case("(InferenceActor pid=5122) Prefilling:  50%|█████     | 32/64 [00:01<00:01, 30.11it/s]", "other"),
    ],
    "speculators": [
        Case(
            "[22:41:07] INFO     train/loss=9.812, train/full_acc=1.00e-04, profile/step_ms=1.20e+03, profile/tokens_per_s=8.81e+03, epoch=0, lr=1.00e-06, global_step=1",
            "step",
            1,
            9.812,
        ),
        Case("           INFO     train/loss=1.125, epoch=3, lr=9.00e-05, global_step=99000", "step", 99000, 1.125),
        Case(
            "[22:41:07] INFO     train/loss=2.500, train/full_acc=0.312,           logger.py:88\n                    profile/fetch_ms=2.110, profile/step_ms=412.110,\n                    profile/tokens_per_s=2.00e+04, epoch=0, lr=5.00e-04,\n                    global_step=640",
            "step",
            640,
            2.5,
        ),
        Case(
            "[03/09/26 22:41:07] INFO     train/loss=2.250, epoch=0, lr=5.00e-04, global_step=641   logger.py:88",
            "step",
            641,
            2.25,
        ),
        Case("[22:41:07] INFO     val/loss_epoch=2.125, val/full_acc_epoch=0.350, epoch=1", "eval", None, 2.125),
        Case("[22:41:07] INFO     Training epoch 4/6 started                        trainer.py:642", "header"),
        Case("[22:41:07] INFO     Saving checkpoint to out/checkpoints/3            trainer.py:700", "ckpt"),
        Case("[22:41:07] INFO     Training epoch 4/6 completed                      trainer.py:660", "other"),
        Case("[22:41:07] INFO     train/loss=nan, epoch=0, lr=5.00e-04, global_step=650", "step", 650),
        Case("[22:41:07] WARNING  train/loss is not finite", "other"),
    ],
    "modelopt": [
        Case("Step 1 Training Acc: [0.0001]", "step", 1),
        Case("Step 25000 Training Acc: [0.71, 0.65, 0.6, 0.55]", "step", 25000),
        Case("[rank0]: Step 30 Training Acc: [0.1, 0.05]", "step", 30),
        Case("Step 1000 AR: 1.0000", "eval", 1000),
        Case("Step 25000 AR: 4.1875", "eval", 25000),
        Case("{'loss': 4.125, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.01}", "step", None, 4.125),
        Case("{'eval_loss': 3.5, 'eval_runtime': 8.0, 'epoch': 0.1}", "eval", None, 3.5),
        Case("  1%|          | 90/9000 [01:30<2:28:30,  1.00s/it]", "step", 90),
        Case("\x1b[32mStep 40 Training Acc: [0.2, 0.1]\x1b[0m", "step", 40),
        Case("Step 2 of 5: export the model", "other"),
    ],
    "litgpt": [
        Case(
            "Epoch 1 | iter 1 step 0 | loss train: 10.977, val: n/a | iter time: 3512.11 ms remaining time: 1 day, 2:03:04",
            "step",
            0,
            10.977,
        ),
        Case(
            "Epoch 3 | iter 99000 step 24750 | loss train: 1.125, val: 1.250 | iter time: 99.00 ms (step) remaining time: 0:00:01",
            "step",
            24750,
            1.125,
        ),
        Case("Epoch 2 | iter 12 step 3 | loss train: 2.250, val: 2.5 | iter time: 45.10 ms (step)", "step", 3, 2.25),
        Case("[rank0]: Epoch 1 | iter 4 step 1 | loss train: 9.5, val: n/a | iter time: 45.10 ms", "step", 1, 9.5),
        Case("Epoch 1 | iter 4 step 1 | loss train: nan, val: n/a | iter time: 45.10 ms", "step", 1),
        Case("iter 4000: val loss 2.1250, val time: 1500.00 ms", "eval", 4000, 2.125),
        Case("Final evaluation | val loss: 1.875 | val ppl: 6.521", "eval", None, 1.875),
        Case("Saving checkpoint to 'out/pretrain/step-00024000'", "ckpt", 24000),
        Case("| - Total tokens  : 4,194,304", "other"),
        Case("| - Tok/sec       : 99.10 tok/s", "other"),
        Case("Number of trainable parameters: 1,100,048,384", "header"),
        Case("Time to instantiate model: 0.41 seconds.", "header"),
    ],
    "maxtext": [
        Case(
            "completed step: 0, seconds: 71.811, TFLOP/s/device: 8.101, Tokens/s/device: 114.071, total_weights: 65536, loss: 10.870",
            "step",
            0,
            10.87,
        ),
        Case(
            "completed step: 99999, seconds: 2.101, TFLOP/s/device: 501.220, Tokens/s/device: 7796.287, total_weights: 524288, loss: 1.750, lm_loss: 1.700, perplexity: 5.474, moe_lb_loss: 0.050",
            "step",
            99999,
            1.75,
        ),
        Case(
            "I0309 22:41:07.004120 4121 metric_logger.py:198] completed step: 12, seconds: 1.5, TFLOP/s/device: 9.0, Tokens/s/device: 800.5, total_weights: 8, loss: 7.5",
            "step",
            12,
            7.5,
        ),
        Case(
            "[Rampup Batch Size Phase], completed step: 9, seconds: 3.5, total_weights: 4096, loss: 9.125, lm_loss: 9.125, perplexity: 9181.9",
            "step",
            9,
            9.125,
        ),
        Case(
            "completed step: 13, seconds: 1.5, TFLOP/s/device: 9.0, Tokens/s/device: 800.5, total_weights: 8, loss: nan",
            "step",
            13,
        ),
        Case(
            "Completed eval after train step 2500, loss=2.500, perplexity=12.182, total_weights=65536.0",
            "eval",
            2500,
            2.5,
        ),
        Case("eval metrics after step: 200, loss=4.125, total_weights=8192.0", "eval", 200, 4.125),
        Case("Completed eval step 7", "eval"),
        Case("Config param max_target_length: 2048", "header"),
        Case("Num_devices: 64, shape (1, 64, 1)", "header"),
        Case("Per train step: Total TFLOPs: 61.01", "other"),
        Case("saved a checkpoint at step 500", "ckpt", 500),
    ],
    "levanter": [
        Case(
            "2026-03-09T22:41:07 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress on:train 9it/9.00kit rate:30.1s/it remaining:75:10:00 elapsed:04:31 postfix:loss=9.5",
            "step",
            9,
            9.5,
        ),
        Case(
            "2026-03-09T22:41:07 - 12 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress on:train 99.9kit/100kit rate:1.1it/s remaining:01:30 elapsed:25:13:00 postfix:loss=1.75",
            "step",
            99900,
            1.75,
        ),
        Case(
            "2026-03-09T22:41:07 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress on:train 640it/900it rate:2.0it/s remaining:02:10 elapsed:05:20 postfix:loss=2.25",
            "step",
            640,
            2.25,
        ),
        Case(
            "2026-03-09T22:41:07 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress on:train 1.00kit/1.20Mit rate:2.0it/s remaining:166:00:00 elapsed:08:20 postfix:loss=2.125",
            "step",
            1000,
            2.125,
        ),
        Case(
            "2026-03-09T22:41:07 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress on:train 2it/900it rate:- remaining:? elapsed:00:20 postfix:loss=nan",
            "step",
            2,
        ),
        Case(
            "2026-03-09T22:41:07 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress on:eval 12it/40it rate:3.0it/s remaining:00:09 elapsed:00:04 postfix:loss=3.1",
            "eval",
        ),
        Case(
            "2026-03-09T22:41:07 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress on:eval -/- rate:- remaining:? elapsed:00:00 postfix:-",
            "eval",
        ),
        Case(
            "2026-03-09T22:41:07 - 0 - levanter.checkpoint - checkpoint.py:301 - INFO :: Saving checkpoint at step 2000 to gs://b/c/step-2000",
            "ckpt",
            2000,
        ),
        Case(
            "2026-03-09T22:41:07 - 0 - levanter.checkpoint - checkpoint.py:330 - INFO :: Loading checkpoint from gs://b/c/step-2000",
            "other",
        ),
        Case(
            "[rank0]: 2026-03-09T22:41:07 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:153 - INFO :: Progress on:train 641it/900it rate:2.0it/s remaining:02:09 elapsed:05:20 postfix:loss=2.2",
            "step",
            641,
            2.2,
        ),
    ],
    "verl": [
        Case("step:1 - " + _VERL.format(m=1.0, pg="-0.0021", g="0.5", s="312.4", t="402.2"), "step", 1),
        Case(
            "step:999 - "
            + _VERL.format(m="20112", pg="np.float64(0.01)", g="np.float64(1.5)", s="60.0", t="np.float64(2500.5)"),
            "step",
            999,
        ),
        Case(
            "\x1b[36m(TaskRunner pid=4121, ip=10.0.0.3)\x1b[0m step:12 - "
            + _VERL.format(m=1, pg="1e-05", g="0.1", s="9", t="8"),
            "step",
            12,
        ),
        Case("(main_task pid=99) step:13 - " + _VERL.format(m=1, pg="-1e-05", g="nan", s="9", t="8"), "step", 13),
        Case("step:40 - val-core/math500/acc/mean@4:0.4410 - val-aux/math500/reward/mean@4:0.2", "eval", 40),
        Case("step:0 - val/test_score/openai/gsm8k:0.071", "eval", 0),
        Case("step:25 - train/loss:1.4375 - train/lr(1e-3):0.01 - train/grad_norm:0.75", "step", 25, 1.4375),
        Case("step:30 - val/loss:1.5", "eval", 30, 1.5),
        Case("Training Progress:   1%|          | 9/900 [10:00<16:30:00, 66.67s/it]", "step", 9),
        Case(
            "Processed prompts: 100%|██████████| 512/512 [00:41<00:00, 12.41it/s, est. speed input: 2100.10 toks/s, output: 9100.50 toks/s]",
            "other",
        ),
        Case("(WorkerDict pid=7) local_global_step_folder: ckpt/global_step_20", "other"),
    ],
    "fairseq": [
        Case(
            "2026-03-09 22:41:07 | INFO | train_inner | epoch 001:      1 / 900 loss=14.25, nll_loss=14.2, ppl=18820.1, wps=0, ups=0, wpb=4096, bsz=64, num_updates=1, lr=1.25e-07, gnorm=5.1, loss_scale=128, train_wall=3, wall=9",
            "step",
            1,
            14.25,
            0.0,
        ),
        Case(
            "2026-03-09 22:41:07 | INFO | train_inner | epoch 041:    500 / 900 loss=3.125, ppl=8.72, wps=310200, ups=3.1, wpb=100000.5, num_updates=36500, lr=0.0003, gnorm=0.5, clip=0, wall=99999",
            "step",
            36500,
            3.125,
            310200.0,
        ),
        Case(
            '2026-03-09 22:41:07 | INFO | train_inner | {"epoch": 2, "update": 1.111, "loss": "4.5", "ppl": "22.6", "wps": "21000.5", "ups": "2.0", "num_updates": "1000", "lr": "0.0001", "gnorm": "1.1", "train_wall": "49"}',
            "step",
            1000,
            4.5,
            21000.5,
        ),
        Case(
            '2026-03-09 22:41:07 | INFO | valid | {"epoch": 2, "valid_loss": "4.125", "valid_ppl": "17.4", "valid_wps": "90000", "valid_num_updates": "1800", "valid_best_loss": "4.125"}',
            "eval",
            1800,
            4.125,
        ),
        Case(
            '2026-03-09 22:41:07 | INFO | train | {"epoch": 2, "train_loss": "4.4", "train_wps": "21000", "train_num_updates": "1800", "train_lr": "0.0001"}',
            "other",
        ),
        Case(
            "2026-03-09 22:41:07 | INFO | valid | epoch 041 | valid on 'valid' subset | loss 3.5 | nll_loss 2.0 | ppl 4.0 | wps 99999.9 | wpb 5000 | bsz 90 | num_updates 36900 | best_loss 3.4",
            "eval",
            36900,
            3.5,
        ),
        Case(
            "2026-03-09 22:41:07 | INFO | train | epoch 041 | loss 3.2 | ppl 9.19 | wps 300100 | ups 3 | num_updates 36900 | lr 0.0003 | gnorm 0.5 | wall 100001",
            "other",
        ),
        Case(
            "2026-03-09 22:41:07 | INFO | fairseq.checkpoint_utils | Saved checkpoint ckpt/checkpoint_41_36900.pt (epoch 41 @ 36900 updates, score 3.5) (writing took 12.1 seconds)",
            "ckpt",
            36900,
        ),
        Case("2026-03-09 22:41:07 | INFO | fairseq.trainer | begin training epoch 41", "header"),
        Case("2026-03-09 22:41:07 | INFO | fairseq_cli.train | Start iterating over samples", "header"),
        Case(
            "2026-03-09 22:41:07 | INFO | fairseq_cli.train | num. shared model params: 62,050,304 (num. trained: 62,050,304)",
            "header",
        ),
    ],
    "olmo": [
        Case(
            "2026-03-09 22:41:07.004\tnode7:0\tolmo.train:967\tINFO\t[step=1/900,epoch=0]\n    train/CrossEntropyLoss=11.06\n    train/Perplexity=63,577\n    throughput/device/tokens_per_second=1,250",
            "step",
            1,
            11.06,
        ),
        Case(
            "[step=450000/450,550,epoch=1]\n    optim/total_grad_norm=0.5012\n    train/CrossEntropyLoss=2.125\n    throughput/total_tokens=1,887,436,800,000",
            "step",
            450000,
            2.125,
        ),
        Case(
            "[step=7/900]\n    optim/learning_rate_group0=2.0000e-06\n    train/CrossEntropyLoss=9.875",
            "step",
            7,
            9.875,
        ),
        Case("[step=8/900,epoch=0]", "step", 8),
        Case("2026-03-09 22:41:07.004\tnode7:0\tolmo.train:967\tINFO\t[step=9/900,epoch=0]", "step", 9),
        Case("[eval_step=40/40]", "eval"),
        Case("2026-03-09 22:41:07.004\tnode7:0\tolmo.train:1101\tINFO\t[eval_step=1/40]", "eval"),
        Case(
            "2026-03-09 22:41:07.004\tnode7:0\tolmo_core.train.callbacks.console_logger:72\tINFO\t[step=5/900,epoch=1,eta=1d 2h]\n    train/CE loss=8.5\n    throughput/device/TPS=11,111",
            "step",
            5,
            8.5,
        ),
        Case(
            "[step=10/???,epoch=1]\n    optim/LR (group 0)=1.0000e-05\n    train/CE loss=8.25\n    train/PPL=3,827",
            "step",
            10,
            8.25,
        ),
        Case("[step=11/900,epoch=1,eta=45m]", "step", 11),
        Case(
            "[step=12/900,epoch=1,eta=45m]\n    eval/lm/c4-validation/CE loss=3.5\n    train/CE loss=7.75",
            "step",
            12,
            7.75,
        ),
        Case("[step=13/900,epoch=1,eta=45m]\n    train/CE loss=nan", "step", 13),
        Case("2026-03-09 22:41:07.004\tnode7:0\tolmo.train:300\tINFO\tCheckpoint saved to /w/step900", "ckpt", 900),
    ],
    "torchtune": [
        Case(
            "Step 1 | loss:2.875 lr:1e-07 tokens_per_second_per_gpu:91.5 peak_memory_active:20.1 peak_memory_alloc:20 peak_memory_reserved:22.2 ",
            "step",
            1,
            2.875,
        ),
        Case(
            "Step 90000 | loss:0.50125 lr:0.0 tokens_per_second_per_gpu:9120.11 grad_norm:1e-05 ",
            "step",
            90000,
            0.50125,
        ),
        Case("Step 12 | loss:nan lr:2e-05 tokens_per_second_per_gpu:100 ", "step", 12),
        Case("[rank0]: Step 13 | loss:1.75 lr:2e-05 ", "step", 13, 1.75),
        Case("Step 14 | lr:2e-05 loss:1.625 grad_norm:nan ", "step", 14, 1.625),
        Case("3|4500|Loss: 0.8125:  50%|█████     | 750/1500 [12:30<12:30,  1.00s/it]", "step", 750, 0.8125),
        Case(
            "1|1|Loss: 2.9011220932006836:   0%|          | 1/1500 [00:09<4:00:00,  9.60s/it]",
            "step",
            1,
            2.9011220932006836,
        ),
        Case(
            '{"step": 15, "loss": 1.5, "lr": 2e-05, "tokens_per_second_per_gpu": 100.5, "peak_memory_active": 20.1}',
            "step",
            15,
            1.5,
        ),
        Case('{"step": 16, "lr": 2e-05, "loss": 1.375}', "step", 16, 1.375),
        Case("Step 500 | val_loss:1.0625 ", "eval", 500, 1.0625),
        Case('{"step": 500, "val_loss": 1.0625}', "eval", 500, 1.0625),
        Case("INFO:torchtune.utils._logging:Model is initialized with precision torch.bfloat16.", "header"),
        Case(
            "INFO:torchtune.utils._logging:Model checkpoint of size 4.97 GiB saved to /out/epoch_0/model-00001-of-00004.safetensors",
            "ckpt",
        ),
        Case("INFO:torchtune.utils._logging: Profiling disabled.", "other"),
    ],
    "llm.c": [
        Case(
            "step    1/19560 | loss 11.009283 (+nanz)| norm 15.3721 (+nanz)| lr 8.57e-07 | 3014.21 ms | 5.8% bf16 MFU | 173940 tok/s",
            "step",
            1,
            11.009283,
            173940.0,
        ),
        Case(
            "step 19560/19560 | loss 3.281100 (-1.20z)| norm 0.2511 (-0.80z)| lr 0.00e+00 | 299.98 ms | 58.6% bf16 MFU | 1748021 tok/s",
            "step",
            19560,
            3.2811,
            1748021.0,
        ),
        Case(
            "step   64/1000 | loss nan (+nanz)| norm nan (+nanz)| lr 1.00e-04 | 100.00 ms | -100.0% bf16 MFU | 500 tok/s",
            "step",
            64,
            None,
            500.0,
        ),
        Case(
            "[rank0]: step    2/900 | train loss 9.500000 | norm 2.0000 | lr 1.00e-05 | (99.10 ms | 41331 tok/s)",
            "step",
            2,
            9.5,
            41331.0,
        ),
        Case(
            "step    3/900 | train loss 9.250000 | norm 2.0000 | lr 1.00e-05 | (99.10 ms | 41331 tok/s)",
            "step",
            3,
            9.25,
            41331.0,
        ),
        Case("step 0: train loss 5.356082 (took 19432.112 ms)", "step", 0, 5.356082),
        Case("step 12: train loss nan (took 1.5 ms)", "step", 12),
        Case("val loss 10.987654", "eval", None, 10.987654),
        Case("val loss 3.5", "eval", None, 3.5),
        Case("HellaSwag: 2751/10042 = 0.273949", "eval"),
        Case("Writing checkpoint at step 15000", "ckpt", 15000),
        Case("skipping update due to grad z-score of 6.100000", "other"),
        Case("allocating 1439 MiB for activations", "header"),
        Case("| max_sequence_length T | 1024                                               |", "header"),
    ],
    "dflash": [
        Case(
            "[2026-03-09 22:41:07] step 1/900 | loss 10.5000 | acc 0.001 | lr 1.00e-07 | tok/s 311 | hs_queue min_ready=0 max_depth=16",
            "step",
            1,
            10.5,
            311.0,
        ),
        Case(
            "[22:41:07] step 59999/60000 | loss 0.9911 | acc 0.612 | lr 0.00e+00 | tok/s 1,021,480 | hs_queue min_ready=16 max_depth=16",
            "step",
            59999,
            0.9911,
            1021480.0,
        ),
        Case("step 300 | loss 3.5 | 9.75K tok/s | min_ready 4 max_depth 8", "step", 300, 3.5, 9750.0),
        Case("step 301 | loss 3.25 | 1.2M tok/s", "step", 301, 3.25, 1.2e6),
        Case("[rank0]: step 302/900 | loss 3.0 | tok/s 20000", "step", 302, 3.0, 20000.0),
        Case("\x1b[32mstep 303/900\x1b[0m | loss \x1b[1m2.75\x1b[0m | tok/s 20,001", "step", 303, 2.75, 20001.0),
        Case("step 304/900 | loss inf | tok/s 20,002", "step", 304, None, 20002.0),
        Case("Step 305/900 | loss 2.5 | tok/s 20,003", "step", 305, 2.5, 20003.0),
        Case("[step 306/900] loss=2.25 lr=1.0e-04 tok/s=20,004 min_ready=3 max_depth=16", "step", 306, 2.25, 20004.0),
        Case("[target 2] step 307 local_loss 2.1 5.1K tok/s", "other"),
        Case("Checkpoint saved at step 900 → /workspace/out/step_900 (41.2 GiB, 12.4 s)", "ckpt", 900),
        Case("targets: cuda:0-1 (Small) | drafters: cuda:2-3 | total_steps=900 warmup=30", "header"),
    ],
}

NOTHING: list[str] = [
    # Settings
    "Namespace(step=5, loss=2.5, tok_s=100, lr=0.0006, max_steps=60000)",
    "  'max_steps': 5000, 'loss': 'ce', 'learning_rate': 1e-05,",
    "{'learning_rate': 1e-05, 'max_steps': 500, 'loss_type': 'kl'}",
    '{"step_size": 3, "loss": "mse", "steps": 100}',
    "train.steps: 1000",
    "loss: cross_entropy",
    "step: 100",
    "lr_scheduler: {warmup: 100, steps: 5000}",
    "logging_steps=10, eval_steps=500, save_steps=500,",
    "TrainingArguments(output_dir=out, max_steps=500, learning_rate=1e-05, logging_steps=10,",
    "--steps 500 --loss 1.5 --tok/s 3",
    "+ python train.py --step 10 --loss 2.0",
    # Source
    "    logger.info(f'step {step} | loss {loss:.4f} | tok/s {tps:,.0f}')",
    '    print("iter %d: loss %.4f, time %.2fms" % (it, loss, dt))',
    "        if step % 10 == 0: print0(f'step:{step}/{n} train_time:{t}ms step_avg:{a}ms')",
    "        self.log_metrics_to_console(f'[step={step}/{total}]', metrics)",
    "    # step 10 | loss 2.5 is what it should print",
    "loss = criterion(out, target); step += 1",
    "    step: int = 0",
    '  File "/venv/lib/python3.11/site-packages/transformers/trainer.py", line 2245, in train',
    "    return inner_training_loop(args=args, resume_from_checkpoint=None)",
    # Inference engines
    "INFO 03-09 22:41:07 [loggers.py:127] Engine 000: Avg prompt throughput: 91.2 tokens/s, Avg generation throughput: 1,812.3 tokens/s, Running: 32 reqs, Waiting: 4 reqs, GPU KV cache usage: 12.3%, Prefix cache hit rate: 0.0%",
    "(APIServer pid=7) INFO 03-09 22:41:07 [api_server.py:1611] Starting vLLM API server 0 on http://0.0.0.0:8000",
    "(EngineCore_DP0 pid=8) INFO 03-09 22:41:07 [core.py:75] Initializing a V1 LLM engine (v0.11.0) with config: model='x'",
    "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  60%|██████    | 40/67 [00:02<00:01, 15.1it/s]",
    "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:01<00:03,  1.2s/it]",
    "[2026-03-09 22:41:07 TP0] Decode batch. #running-req: 12, #token: 8120, token usage: 0.12, gen throughput (token/s): 812.10, #queue-req: 0,",
    "[2026-03-09 22:41:07 TP0] Prefill batch. #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00,",
    "prompt eval time =     412.11 ms /   512 tokens (    0.80 ms per token,  1242.39 tokens per second)",
    "       eval time =   10120.50 ms /   400 runs   (   25.30 ms per token,    39.52 tokens per second)",
    "slot update_slots: id  0 | task 12 | prompt processing progress, n_past = 512, n_tokens = 512, progress = 1.000000",
    "llama_model_loader: - kv   4:                       llama.context_length u32              = 8192",
    # Installing and downloading
    "Collecting torch==2.9.0",
    "  Downloading torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl (899.8 MB)",
    "     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 899.8/899.8 MB 12.1 MB/s eta 0:00:00",
    "Building wheel for flash-attn (setup.py) ... done",
    "Installing collected packages: triton, torch",
    "Downloading shards:  50%|█████     | 2/4 [01:00<01:00, 30.00s/it]",
    "model-00001-of-00004.safetensors: 100%|██████████| 4.9G/4.9G [01:00<00:00, 81.1MB/s]",
    "Fetching 14 files:  50%|█████     | 7/14 [00:10<00:10,  1.43s/it]",
    "Generating train split: 52002 examples [00:00, 101230.11 examples/s]",
    "tokenizing:  31%|███       | 310/1000 [00:10<00:23, 30.1batch/s]",
    # A machine's words
    "Mon Mar  9 22:41:07 2026 up 3 days,  2:01,  4 users,  load average: 0.12, 0.31, 0.40",
    "|   0  NVIDIA H200           On  |   00000000:1B:00.0 Off |                    0 |",
    "[step 3/7] RUN pip install torch",
    "Step 3/12 : RUN apt-get update",
    " => [stage-1 3/9] COPY . /app",
    "wandb: Run data is saved locally in /w/wandb/run-20260309_224107-abc",
    "wandb:       train/loss ▁▂▃",
    "Epoch 3 is done",
]
"""Lines that may stand in a log of training and say nothing about its steps, losses or tokens/s."""
