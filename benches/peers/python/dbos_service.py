"""DBOS: the key is the workflow's id, and the workflow is the handler. PostgreSQL keeps both."""

import asyncio
import fcntl
import os
import tempfile

from dbos import DBOS, SetWorkflowID

from service import ANSWER, hold, is_held, service


# Held for as long as the worker lives.
LOCKS = []


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
    if is_held(command):
        await asyncio.to_thread(hold)
    return ANSWER


async def create(key, command):
    with SetWorkflowID(key):
        return await create_payment(command)


app = service(create, start)
