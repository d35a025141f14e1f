"""A real training host on one machine: OpenSSH's sshd on loopback, a jump host, LXC containers, a wire one can cut.

Needs root, Debian's `openssh-server lxc lxcfs debootstrap iproute2 iptables`, and network once: the first use builds
containers' root filesystems under /var/cache/dflash-console-lab (about a minute), later ones start in about a second.
Nothing of the machine is changed: own keys, own known_hosts, own ports on 127.0.0.1 and 127.0.0.2, own lxc path, own
network namespace. Several sessions run side by side, each with containers 200 to 203 of its own; what a session that
was killed has left behind is cleared away by the next one.

Fixtures (of the whole test tree, session-wide, started when first asked for; a test that asks for one is marked `lab`):

    lab                 the session: `lab.folder`, `lab.host("host" | "jump" | "wire")`, `lab.config(...)` -> TOML
    host, jump          the two sshds: `host.run("uptime")`, `host.ssh_argv(...)`, `host.cut()`, `host.address`, ...
    plain_container     200: a shell loop as init, Python without systemd
    systemd_container   201: systemd as init
    minimal_container   202: python3-minimal only ("incomplete Python")
    unprivileged_container  203: a user namespace and lxcfs, Proxmox's default
    container           200 and then 201: the test runs twice
    training            (in this folder only) the simulated trainer in 200, its GPUs by the NVML test library, and the
                        console's command line on it; `training_in_each`: in 200 and then 201
    wire                an sshd behind a link of its own: `wire.drop()`, `wire.restore()`, `wire.limit(bytes_per_s)`

A container gives `run(argv)`, `write(path, text, mode)`, `read(path)`, `copy_in(source, path)`, `touch_uvm()`,
`processes()`, `pids_of(argument)`, `freeze()`, `thaw()`, `stop()`, `start()`. Every sshd's sessions have `pct` on their
PATH, so `ssh ... "pct exec 200 -- CMD"` works as it does on Proxmox. Containers are shared by all tests of a session: a
test ends what it started, or asks for `lab.fresh_container("plain")`.

By hand: `python -m tests.lab up` prints ssh lines and a config.toml and leaves everything running, `down` ends it.

DFLASH_REQUIRE_LAB=1 turns "skipped, because ..." into a failure.
"""
