"""Powertools: the key and what is paid for are one payload, of which the key is taken and the rest compared. Redis keeps the answer."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import redis
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyValidationError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer

from service import ANSWER, hold, is_held, service

# It waits for Redis, so that each request under way takes a thread.
THREADS = ThreadPoolExecutor(int(os.environ.get("THREADS", "16")))

store = CachePersistenceLayer(client=redis.Redis.from_url(os.environ["REDIS"], decode_responses=True))
config = IdempotencyConfig(event_key_jmespath="key")


@idempotent_function(data_keyword_argument="request", persistence_store=store, config=config)
def create_payment(request):
    if is_held(request["command"]):
        hold()
    return ANSWER


def create_once(key, command):
    try:
        return create_payment(request={"key": key, "command": command})
    except (IdempotencyAlreadyInProgressError, IdempotencyValidationError):
        return None


async def create(key, command):
    return await asyncio.get_running_loop().run_in_executor(THREADS, create_once, key, command)


app = service(create)
