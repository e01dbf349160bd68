"""DBOS: the key is the workflow's id, and the workflow is the handler. PostgreSQL keeps both."""

import asyncio
import fcntl
import os
import tempfile

from dbos import DBOS, SetWorkflowID

from service import ANSWER, hold_if_told, service


def name_of_worker():
    """A name that no other worker has, and the next one gets when this one is dead: it recovers what was under way under that name."""
    database = os.environ["DATABASE"].replace("/", "_")
    number = 0
    while True:
        file = open(os.path.join(tempfile.gettempdir(), f"dbos-worker-{number}-{database}"), "w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            number += 1
            continue
        LOCKS.append(file)
        return f"worker-{number}"


LOCKS = []


def start():
    DBOS(
        config={
            "name": "payments",
            "system_database_url": os.environ["DATABASE"],
            "log_level": "ERROR",
            "executor_id": name_of_worker(),
            "application_version": "1",
        }
    )
    DBOS.launch()


@DBOS.workflow()
async def create_payment(command):
    if command["invoice"] == "held":
        await asyncio.to_thread(hold_if_told, command)
    return ANSWER


async def create(key, command):
    with SetWorkflowID(key):
        return await create_payment(command)


app = service(create, start)
