"""The command line's work on the engine: results on stdout, progress on stderr, one exit code.

No terminal handling beyond plain lines lives here; options are parsed in `console.cli`, which is the only importer.
"""
