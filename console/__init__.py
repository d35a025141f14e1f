"""dflash-console: restart, watch and trust long training runs on remote GPU hosts, from the terminal."""

__version__ = "0.1.0"
