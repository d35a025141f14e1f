"""A stand-in for the agent: as small as the protocol allows, and with a few duties that only tests need."""

from console.protocol import Hello

PAYLOAD = b"""
import json, os, sys
def say(fields, raw=b""):
    data = json.dumps(fields).encode() + b"\\n" + raw
    while data:
        data = data[os.write(1, data):]
say({"v": 1, "pid": os.getpid(), "python": sys.version.split()[0], "boot": "b/1", "user": "u", "uid": 0, "node": "n",
     "bt": 1.0, "wall": 2.0, "booted_wall": 3.0, "systemd": False})
for line in os.fdopen(0, "rb", 0, closefd=False):
    op = json.loads(line)
    kind = op["op"]
    if kind == "bye":
        break
    if kind == "ping":
        say({"re": op["id"], "ok": True, "data": {"bt": 10.5, "wall": 1000.5}})
    elif kind == "log_read":
        data = bytes(range(256)) * (op["length"] // 256)
        say({"ev": "warn", "bt": 1.0, "reason": "before", "detail": ""})
        say({"re": op["id"], "ok": True, "data": {"size": 7}, "n": len(data)}, data)
    elif kind == "log_follow":
        say({"re": op["id"], "ok": True})
        say({"ev": "log", "bt": 1.0, "path": op["path"], "state": "following", "n": 5}, b"a\\nb\\n\\n")
    elif kind == "recorder" and op["run"] == "die":
        os.write(2, b"something broke\\n")
        os._exit(3)
    elif kind == "recorder" and op["run"] == "garble":
        os.write(1, b"not json\\n[1]\\n{\\"ev\\": \\"nobody knows\\"}\\n")
        say({"re": op["id"], "ok": True})
    elif kind == "recorder" and op["run"] == "silent":
        pass
    else:
        say({"re": op["id"], "ok": False, "error": {"reason": "nothing_runs", "detail": "nothing here"}})
"""

HELLO = Hello(v=1, pid=1, python="", boot="", user="", uid=0, node="", bt=0, wall=0, booted_wall=0, systemd=False)
