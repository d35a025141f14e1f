"""The log formats of the trainers that the console knows, a module for each family: data only, used by `formats`."""
