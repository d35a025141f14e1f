"""A small CUDA process through all stages on a real NVIDIA GPU; elsewhere the same way with a stand-in for the driver.

By hand, and as one line of JSON: `python -m tests.gpu_real.check FOLDER` (with `--stand-in STATE`: see standin.py).
"""
