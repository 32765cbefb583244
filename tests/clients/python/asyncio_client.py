"""The same library's client for asyncio."""

import asyncio

from kubernetes.aio import client, config, watch
from kubernetes.aio.stream import WsApiClient

from report import check, same

NS = "default"


def checks():
    """Each check has an event loop of its own."""
    run = lambda action: lambda: asyncio.run(with_client(action))
    check("65 asyncio: objects and a watch", run(objects))
    check("65 asyncio: exec", run(command))


async def with_client(action):
    await config.load_kube_config()
    async with client.ApiClient() as api:
        await action(client.CoreV1Api(api))


async def objects(core):
    """From creation to deletion, as a watch tells it."""
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="aio"))
    await core.create_namespaced_config_map(NS, body)
    seen = []
    async with watch.Watch() as watcher:
        stream = watcher.stream(core.list_namespaced_config_map, NS, timeout_seconds=20,
                                field_selector="metadata.name=aio")
        async for event in stream:
            seen.append(event["type"])
            if event["type"] == "ADDED":
                await core.patch_namespaced_config_map("aio", NS, {"data": {"a": "1"}})
            elif event["type"] == "MODIFIED":
                await core.delete_namespaced_config_map("aio", NS)
            else:
                break
    same(seen, ["ADDED", "MODIFIED", "DELETED"])


async def command(core):
    """A command in a pod."""
    main = {"name": "main", "image": "busybox", "command": ["sleep", "60"]}
    pod = {"metadata": {"name": "aio"}, "spec": {"containers": [main]}}
    await core.create_namespaced_pod(NS, pod)
    for _ in range(300):
        if (await core.read_namespaced_pod("aio", NS)).status.phase == "Running":
            break
        await asyncio.sleep(0.1)
    async with WsApiClient() as api:
        said = await client.CoreV1Api(api).connect_get_namespaced_pod_exec(
            "aio", NS, command=["echo", "hello"], stderr=True, stdin=False, stdout=True, tty=False)
    same(said, "hello\n")
    await core.delete_namespaced_pod("aio", NS, grace_period_seconds=0)
