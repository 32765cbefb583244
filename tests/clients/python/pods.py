"""Pods: what they say, commands in them, connections to them."""

import json
import os
import sys
import time

from kubernetes import client, watch
from kubernetes.stream import portforward, stream

from objects import pod
from report import check, has, refused, same, until

NS = "default"

SERVER = """
import os, socket
s = socket.create_server((os.environ['IP'], 7711))
while True:
    c = s.accept()[0]
    while True:
        b = c.recv(65536)
        if not b: break
        c.sendall(b)
    c.close()
"""


def phase(core, name, wanted, seconds=30):
    """Waits for a phase."""
    now = lambda: core.read_namespaced_pod(name, NS).status.phase == wanted
    return until(now, seconds)


def logs(core):
    """What pods say."""
    script = "echo one; echo two; echo three"
    check("19 a pod", lambda: core.create_namespaced_pod(NS, pod("said", script)))
    check("19 ends", lambda: phase(core, "said", "Succeeded"))
    said = lambda **by: core.read_namespaced_pod_log("said", NS, **by)
    check("47 logs", lambda: same(said(), "one\ntwo\nthree\n"))
    check("47 the last line", lambda: same(said(tail_lines=1), "three\n"))
    check("47 so many bytes", lambda: same(said(limit_bytes=5), "one\nt"))
    check("47 of a container", lambda: same(said(container="main")[:3], "one"))
    check("47 with times", lambda: has(said(timestamps=True).splitlines()[0], "Z one"))
    check("47 of no container", lambda: refused(
        400, "container nobody is not valid for pod said", lambda: said(container="nobody")))
    slow = "for i in 1 2 3; do echo $i; sleep 0.3; done"
    check("48 a pod that talks", lambda: core.create_namespaced_pod(NS, pod("slow", slow)))
    check("48 is there", lambda: until(
        lambda: core.read_namespaced_pod("slow", NS).status.phase != "Pending"))
    follow = lambda: list(watch.Watch().stream(
        core.read_namespaced_pod_log, name="slow", namespace=NS))
    check("48 logs that follow", lambda: same(follow(), ["1", "2", "3"]))
    events = lambda: [e.reason for e in core.list_namespaced_event(
        NS, field_selector="involvedObject.name=said").items]
    check("46 events", lambda: until(lambda: has(events(), "Started") or True))


def environment(core):
    """What a process is given."""
    core.create_namespaced_config_map(NS, client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name="env"), data={"k": "from map"}))
    given = pod("given", 'echo "$A|$B|$C"; cat /tmp/map-$D/k; exit 3')
    given["spec"]["containers"][0]["env"] = [
        {"name": "A", "value": "a"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]
    check("58 a pod with variables", lambda: core.create_namespaced_pod(NS, given))
    check("58 fails", lambda: phase(core, "given", "Failed"))
    check("58 had them", lambda: has(
        core.read_namespaced_pod_log("given", NS), "a|given|from map"))
    def code():
        state = core.read_namespaced_pod("given", NS).status.container_statuses[0].state
        return state.terminated.exit_code
    check("56 its code", lambda: same(code() in (1, 3), True))


def commands(core):
    """Commands in a pod, over a WebSocket."""
    script = "trap 'exit 0' TERM; while read l; do echo got $l; done; while :; do sleep 0.1; done"
    shell = pod("shell", script)
    shell["spec"]["containers"][0]["stdin"] = True
    check("65 a pod to work in", lambda: core.create_namespaced_pod(NS, shell))
    check("65 it runs", lambda: phase(core, "shell", "Running"))
    run = lambda *command, **by: stream(
        core.connect_get_namespaced_pod_exec, "shell", NS, command=list(command),
        **{"stderr": True, "stdin": False, "stdout": True, "tty": False, **by})
    check("65 exec", lambda: same(run("echo", "hello"), "hello\n"))
    def streams():
        talk = run("sh", "-c", "echo out; echo err >&2; exit 7", _preload_content=False)
        talk.run_forever(timeout=20)
        same((talk.read_stdout(), talk.read_stderr()), ("out\n", "err\n"))
        same(talk.returncode, 7)
    check("65 exec: streams and code", streams)
    def talk():
        talk = run("cat", stdin=True, _preload_content=False)
        talk.write_stdin("first\n")
        same(talk.readline_stdout(timeout=10), "first")
        talk.write_stdin("second\n")
        same(talk.readline_stdout(timeout=10), "second")
        talk.close_channel(0)
        talk.run_forever(timeout=10)
        same(talk.returncode, 0)
    check("65 exec: a conversation", talk)
    def terminal():
        talk = run("sh", "-c", "stty size; tty", stdin=True, tty=True, _preload_content=False)
        talk.write_channel(4, json.dumps({"Width": 90, "Height": 30}))
        talk.run_forever(timeout=20)
        has(talk.read_stdout(), "/dev/pts")
    check("65 exec: a terminal", terminal)
    def binary():
        size = 1 << 20
        talk = run("head", "-c", str(size), "/dev/zero", binary=True, _preload_content=False)
        talk.run_forever(timeout=30)
        same(len(talk.read_stdout()), size)
    check("65 exec: a megabyte", binary)
    check("65 exec: no such program", lambda: has(
        stream_error(run, "no-such-program"), "executable file not found"))
    def attach():
        talk = stream(core.connect_get_namespaced_pod_attach, "shell", NS, stdin=True,
                      stdout=True, stderr=True, tty=False, _preload_content=False)
        talk.write_stdin("you\n")
        line = talk.readline_stdout(timeout=10)
        talk.close()
        same(line, "got you")
    check("65 attach", attach)
    check("51 a pod that is stopped", lambda: core.delete_namespaced_pod(
        "shell", NS, grace_period_seconds=5))


def stream_error(run, program):
    """What is said of a command that cannot run."""
    talk = run(program, _preload_content=False)
    talk.run_forever(timeout=20)
    error = talk.read_channel(3) or json.dumps(getattr(talk, "_returncode", None))
    return error + talk.read_all()


def ports(core):
    """Connections to a pod."""
    listening = pod("ports", "exec python3 -c \"$SERVER\"")
    main = listening["spec"]["containers"][0]
    main["env"] = [
        {"name": "SERVER", "value": SERVER},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    main["readinessProbe"] = {"tcpSocket": {"port": 7711}, "periodSeconds": 1}
    check("65 a server", lambda: core.create_namespaced_pod(NS, listening))
    ready = lambda: any(c.type == "Ready" and c.status == "True" for c in
                        core.read_namespaced_pod("ports", NS).status.conditions or [])
    check("65 it is ready", lambda: until(ready, 60))
    def forward():
        forwarded = portforward(core.connect_get_namespaced_pod_portforward, "ports", NS,
                                ports="7711")
        connection = forwarded.socket(7711)
        connection.settimeout(20)
        sent = bytes(range(256)) * 400
        connection.sendall(sent)
        back = b""
        while len(back) < len(sent):
            part = connection.recv(65536)
            if not part:
                break
            back += part
        connection.close()
        same(forwarded.error(7711), None)
        same(back == sent, True)
    check("65 port-forward", forward)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "ports"},
                "deleteOptions": {"gracePeriodSeconds": 0}}
    check("65 evict", lambda: core.create_namespaced_pod_eviction("ports", NS, eviction))
    gone = lambda: refused(404, "not found", lambda: core.read_namespaced_pod("ports", NS))
    check("65 it is gone", lambda: until(gone))


def inside(core):
    """The same library in a pod: it finds the API and its account by itself."""
    script = "; ".join([
        "from kubernetes import client, config",
        "config.load_incluster_config()",
        "who = client.AuthenticationV1Api().create_self_subject_review({})",
        "print(who.status.user_info.username)",
        "print(client.VersionApi().get_code().major)",
    ])
    asker = pod("inside", "")
    asker["spec"]["containers"][0]["command"] = [sys.executable, "-c", script]
    check("62 a pod with the library", lambda: core.create_namespaced_pod(NS, asker))
    check("62 it ends", lambda: phase(core, "inside", "Succeeded", 60))
    check("62 knew who it was", lambda: same(
        core.read_namespaced_pod_log("inside", NS), "system:serviceaccount:default:default\n1\n"))
