"""The demo: the simulated trainer, its GPUs and the embedded host."""
