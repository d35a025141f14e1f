"""The commands with their options and help; the work is done in `console.headless` and `console.ui`.

Heavy imports (asyncssh, textual) happen inside the commands, so that `--help` and a typing mistake answer at once.
"""
