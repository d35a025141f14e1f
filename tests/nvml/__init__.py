"""An NVML library for tests: the real binding, ctypes structs included, without a GPU."""
