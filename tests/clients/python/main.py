"""The official Python client on a cluster: `python main.py`, with KUBECONFIG."""

from kubernetes import client, config

import asyncio_client
import dynamic_client
import objects
import pods
import report
import rights
import watches


def main():
    config.load_kube_config()
    core, batch = client.CoreV1Api(), client.BatchV1Api()
    objects.server(core)
    objects.create(core, batch)
    objects.change(core, batch)
    objects.read(core)
    watches.streams(core)
    watches.running(batch, client.CustomObjectsApi())
    watches.informers(core)
    anything = report.check("65 discovery", dynamic_client.discovered)
    dynamic_client.objects(anything)
    dynamic_client.apply(anything)
    dynamic_client.custom(client.CustomObjectsApi())
    pods.logs(core)
    pods.environment(core)
    pods.commands(core)
    pods.ports(core)
    pods.inside(core)
    rights.checks(core)
    rights.strangers()
    watches.leaders()
    asyncio_client.checks()
    objects.delete(core, batch)
    report.end()


if __name__ == "__main__":
    main()
