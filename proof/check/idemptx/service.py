"""idemptx on Redis, with its defaults."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fastapi import FastAPI, Request  # noqa: E402
from idemptx import idempotent  # noqa: E402
from idemptx.backend import AsyncRedisBackend  # noqa: E402
from redis.asyncio import Redis  # noqa: E402

from fastapi_service import add_routes, create_payment  # noqa: E402

backend = AsyncRedisBackend(Redis.from_url(os.environ["REDIS"]))


@idempotent(storage_backend=backend)
async def decorated(request: Request):
    return await create_payment(request)


app = add_routes(FastAPI(), decorated)
