"""DBOS: the key is the workflow's id, and the workflow is the handler. PostgreSQL keeps both."""

import os

from dbos import DBOS, SetWorkflowID

from service import ANSWER, service


def start():
    DBOS(
        config={
            "name": "payments",
            "system_database_url": os.environ["DATABASE"],
            "log_level": "ERROR",
            # Workers of one machine are told apart, so that none recovers what another has under way.
            "executor_id": f"worker-{os.getpid()}",
            "application_version": "1",
        }
    )
    DBOS.launch()


@DBOS.workflow()
async def create_payment(command):
    return ANSWER


async def create(key, command):
    with SetWorkflowID(key):
        return await create_payment(command)


app = service(create, start)
